//! Partitions as Parquet files: rows become columns at once, and no text is copied for a row of runtime.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow::array::{ArrayRef, DictionaryArray, Int8Array, Int32Array, StringArray};
use arrow::datatypes::{Field, Int8Type, Int32Type, Schema};
use arrow::error::ArrowError;
use arrow::record_batch::RecordBatch;
use goodput_model::{Day, Grain, Period, Table};
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_writer::ArrowWriterOptions;
use parquet::basic::{Compression, ZstdLevel};
use parquet::errors::ParquetError;
use parquet::file::properties::{EnabledStatistics, WriterProperties};

use crate::columns::{NamedColumn, floats, instants, ints, texts};
use crate::ledger::DayBooks;
use crate::rows::{
    AllocationRow, CapacityRow, Ended, JobRow, PHASE_WORDS, Partition, Phase, Place, ProfileRow, RuntimeRow,
};
use crate::truth::{self, PoolDayRow};
use crate::{SimulateError, TRUTH, Written};

/// Writes below a folder, and counts.
pub(crate) struct Writer {
    out: PathBuf,
    places: Vec<Place>,
    written: Vec<Written>,
    /// The true pools of the month at hand: its partition is written as a whole.
    month: Option<Period>,
    pools: Vec<PoolDayRow>,
}

impl Writer {
    pub(crate) fn new(out: &Path, places: Vec<Place>) -> Writer {
        Writer { out: out.to_path_buf(), places, written: Vec::new(), month: None, pools: Vec::new() }
    }

    /// Writes what is left; what was written, table by table.
    pub(crate) fn finish(mut self) -> Result<Vec<Written>, SimulateError> {
        self.truth_of_month()?;
        Ok(self.written)
    }

    /// Writes a file for every table of the contract, also for one without rows: the partition exists.
    pub(crate) fn telemetry(&mut self, day: Day, rows: &mut Partition) -> Result<(), SimulateError> {
        rows.capacity.sort_by_key(|row| (row.place, row.block, row.start));
        rows.jobs.sort_by(|one, other| one.job.job_id.cmp(&other.job.job_id));
        let key = |row: &AllocationRow| (row.attempt, row.task, row.start);
        rows.allocations
            .sort_by(|one, other| one.job.job_id.cmp(&other.job.job_id).then_with(|| key(one).cmp(&key(other))));
        self.table(Table::Capacity, day, capacity(&rows.capacity))?;
        self.table(Table::Jobs, day, jobs(&rows.jobs))?;
        self.table(Table::Allocations, day, allocations(&rows.allocations))?;
        let runtime = runtime(rows).map_err(|source| SimulateError::Encode {
            path: self.out.join(Table::Runtime.name()).join(date(day)),
            source: source.into(),
        })?;
        self.table(Table::Runtime, day, runtime)?;
        self.table(Table::Profiles, day, profiles(&rows.profiles))
    }

    /// Writes what is true of a day; the days come in order.
    pub(crate) fn truth(&mut self, books: &mut DayBooks) -> Result<(), SimulateError> {
        for job in &mut books.jobs {
            job.close();
        }
        self.file(&Path::new(TRUTH).join("job_day"), &date(books.day), truth::job_day(books, &self.places))?;
        let month = Some(Grain::Month.of(books.day));
        if self.month != month {
            self.truth_of_month()?;
            self.month = month;
        }
        self.pools.extend(truth::pools(books, &self.places));
        Ok(())
    }

    fn truth_of_month(&mut self) -> Result<(), SimulateError> {
        let Some(month) = self.month.take() else { return Ok(()) };
        let columns = truth::pool_day(&self.pools);
        self.pools.clear();
        self.file(&Path::new(TRUTH).join("pool_day"), &format!("month={month}"), columns)
    }

    /// Writes columns under the names that the contract has for them, in its order.
    fn table(&mut self, table: Table, day: Day, columns: Vec<ArrayRef>) -> Result<(), SimulateError> {
        let columns = table.columns().iter().map(|column| column.name).zip(columns).collect();
        self.file(Path::new(table.name()), &date(day), columns)
    }

    fn file(&mut self, folder: &Path, partition: &str, columns: Vec<NamedColumn>) -> Result<(), SimulateError> {
        let path = self.out.join(folder).join(partition).join("part-0.parquet");
        let refused = |source| SimulateError::Io { path: path.clone(), source };
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent).map_err(refused)?;
        }
        let file = File::create(&path).map_err(refused)?;
        let rows = encode(file, columns).map_err(|source| SimulateError::Encode { path: path.clone(), source })?;
        let bytes = fs::metadata(&path).map_err(refused)?.len();
        let at = self.written.iter().position(|table| table.folder == folder).unwrap_or_else(|| {
            self.written.push(Written { folder: folder.to_path_buf(), rows: 0, bytes: 0 });
            self.written.len() - 1
        });
        self.written[at].rows += rows;
        self.written[at].bytes += bytes;
        Ok(())
    }
}

fn date(day: Day) -> String {
    format!("date={day}")
}

/// Writes columns as a file; the number of its rows. The same columns give the same bytes.
fn encode(file: File, columns: Vec<NamedColumn>) -> Result<u64, ParquetError> {
    // Required columns may hold nulls too: telemetry comes as it comes, and the pipeline has to cope.
    let fields: Vec<Field> =
        columns.iter().map(|(name, array)| Field::new(*name, array.data_type().clone(), true)).collect();
    let arrays = columns.into_iter().map(|(_, array)| array).collect();
    let batch = RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays)?;
    // Encodings are the library's own choice, as nearly all producers leave them.
    let properties = WriterProperties::builder()
        .set_compression(Compression::ZSTD(ZstdLevel::try_new(1)?))
        .set_statistics_enabled(EnabledStatistics::Chunk)
        // The default names the version of the library, which would change the bytes with every update.
        .set_created_by("goodput-simulate".to_owned());
    // How the columns looked in this process is nobody's business: texts are texts.
    let options = ArrowWriterOptions::new().with_properties(properties.build()).with_skip_arrow_metadata(true);
    let mut writer = ArrowWriter::try_new_with_options(file, batch.schema(), options)?;
    writer.write(&batch)?;
    writer.close()?;
    Ok(batch.num_rows() as u64)
}

fn end_of(ended: Ended) -> Option<i64> {
    ended.map(|(end, _)| end)
}

fn capacity(rows: &[CapacityRow]) -> Vec<ArrayRef> {
    let blocks: StringArray = rows.iter().map(|row| Some(format!("b{:05}", row.block))).collect();
    vec![
        texts(rows, |row| Some(row.place.cell)),
        texts(rows, |row| Some(row.place.accelerator)),
        Arc::new(blocks),
        ints(rows, |row| Some(row.chips)),
        texts(rows, |row| Some(if row.is_down { "down" } else { "available" })),
        instants(rows, |row| Some(row.start)),
        instants(rows, |row| row.end),
    ]
}

fn jobs(rows: &[JobRow]) -> Vec<ArrayRef> {
    let mut columns = vec![
        texts(rows, |row| Some(&row.job.job_id)),
        instants(rows, |row| Some(row.job.submit)),
        instants(rows, |row| end_of(row.ended)),
        texts(rows, |row| row.ended.map(|(_, state)| state)),
        ints(rows, |row| Some(row.job.chips_required)),
        texts(rows, |row| row.job.accelerator),
    ];
    let axes = rows.first().map_or(goodput_model::contract::JOB_AXES.len(), |row| row.job.axes.len());
    columns.extend((0..axes).map(|axis| texts(rows, |row| row.job.axes[axis].as_deref())));
    columns
}

fn allocations(rows: &[AllocationRow]) -> Vec<ArrayRef> {
    let most = rows.iter().map(|row| row.task).max().unwrap_or(0);
    let tasks: Vec<String> = (0..=most).map(|task| format!("worker-{task}")).collect();
    vec![
        texts(rows, |row| Some(&row.job.job_id)),
        ints(rows, |row| Some(row.attempt)),
        Arc::new(rows.iter().map(|row| Some(&tasks[row.task])).collect::<StringArray>()),
        texts(rows, |row| Some(row.place.cell)),
        texts(rows, |row| Some(row.place.accelerator)),
        ints(rows, |row| Some(row.chips)),
        instants(rows, |row| Some(row.start)),
        instants(rows, |row| end_of(row.ended)),
        texts(rows, |row| row.ended.map(|(_, reason)| reason)),
    ]
}

fn runtime(rows: &Partition) -> Result<Vec<ArrayRef>, ArrowError> {
    let sorted = by_reporter(rows);
    let reporters: Int32Array = sorted.iter().map(|row| i32::try_from(row.reporter).ok()).collect();
    let names: StringArray = rows.reporters.iter().map(|job| Some(job.job_id.as_str())).collect();
    let phases: Int8Array = sorted.iter().map(|row| word_of(row.phase)).collect();
    let words = StringArray::from_iter_values(PHASE_WORDS);
    Ok(vec![
        Arc::new(DictionaryArray::<Int32Type>::try_new(reporters, Arc::new(names))?),
        ints(&sorted, |row| Some(row.attempt)),
        Arc::new(DictionaryArray::<Int8Type>::try_new(phases, Arc::new(words))?),
        instants(&sorted, |row| Some(row.start)),
        instants(&sorted, |row| row.end),
        ints(&sorted, |row| row.first_step),
        ints(&sorted, |row| row.last_step),
    ])
}

fn word_of(phase: Phase) -> Option<i8> {
    i8::try_from(phase as usize).ok().filter(|_| phase != Phase::Missing)
}

/// Rows of runtime job by job, otherwise in the order in which they were recorded.
fn by_reporter(rows: &Partition) -> Vec<RuntimeRow> {
    let position = |row: &RuntimeRow| usize::try_from(row.reporter).unwrap_or(usize::MAX);
    let mut next = vec![0; rows.reporters.len() + 1];
    for row in &rows.runtime {
        next[position(row) + 1] += 1;
    }
    for at in 1..next.len() {
        next[at] += next[at - 1];
    }
    let mut sorted = rows.runtime.clone();
    for row in &rows.runtime {
        let at = &mut next[position(row)];
        sorted[*at] = *row;
        *at += 1;
    }
    sorted
}

fn profiles(rows: &[ProfileRow]) -> Vec<ArrayRef> {
    vec![
        texts(rows, |row| Some(&row.job.job_id)),
        ints(rows, |row| Some(row.attempt)),
        texts(rows, |row| Some(&row.program)),
        instants(rows, |row| Some(row.start)),
        instants(rows, |row| Some(row.end)),
        ints(rows, |row| Some(row.steps)),
        floats(rows, |row| Some(row.step_time_us)),
        floats(rows, |row| row.predicted_step_time_us),
        floats(rows, |row| row.flops_per_step),
        floats(rows, |row| row.bytes_per_step),
        texts(rows, |row| Some(row.precision)),
    ]
}
