//! Days into partitions: each partition is one object, replaced whole; what does not change is left alone.
//!
//! A partition may hold more days than a run computed: the others are carried over from what was published. A day whose
//! figures are the same as before keeps its rows as they are, with the id of the run that computed them first, so that a
//! run that changes nothing writes nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, Date32Array, new_null_array};
use arrow::compute::concat_batches;
use arrow::datatypes::{DataType, Date32Type, Field, Schema, SchemaRef};
use arrow::record_batch::RecordBatch;
use futures::{StreamExt, stream};
use goodput_engine::write::{WriteError, from_parquet, sorted, to_parquet};
use goodput_model::{Day, Grain, Period};

use crate::PipelineError;
use crate::plan::Publish;
use crate::state::Version;

/// The column that differs from run to run even where nothing else does.
const RUN_ID: &str = "run_id";

/// What publishing a table did.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Published {
    /// Rows computed for the days that were published.
    pub rows: i64,
    /// Partitions that were written.
    pub written: i64,
    /// Partitions that stayed as they were.
    pub unchanged: i64,
    /// Bytes written.
    pub bytes: i64,
    /// The objects that were written, by their periods.
    pub objects: Vec<(Period, Version)>,
}

impl Published {
    fn add(&mut self, other: Published) {
        self.rows += other.rows;
        self.written += other.written;
        self.unchanged += other.unchanged;
        self.bytes += other.bytes;
        self.objects.extend(other.objects);
    }
}

/// Partitions of a table that are written at the same time.
const PARTITIONS_AT_ONCE: usize = 4;

/// Publishes the rows of days: in each partition the rows of these days are replaced. `None` stands for rows without a
/// date. `batch` has the table's columns and no rows of other days.
pub async fn publish_days(
    publish: &Publish,
    batch: &RecordBatch,
    days: &BTreeSet<Option<Day>>,
) -> Result<Published, PipelineError> {
    let grain = publish.table.grain();
    let failed = |source| PipelineError::Write { table: publish.table.location().to_string(), source };
    let mut rows = rows_of_days(batch, |day| days.contains(&day)).map_err(failed)?;
    let mut periods: BTreeMap<Option<Period>, Days> = BTreeMap::new();
    for day in days {
        let rows = rows.remove(day).unwrap_or_else(|| batch.slice(0, 0));
        periods.entry(day.map(|day| grain.of(day))).or_default().insert(*day, rows);
    }
    // A partition is a task of its own, so that encoding one goes on beside writing another.
    let partition = |(period, days): (Option<Period>, Days)| {
        let publish = publish.clone();
        tokio::spawn(async move { publish_partition(&publish, period, days).await })
    };
    let mut partitions = stream::iter(periods).map(partition).buffered(PARTITIONS_AT_ONCE);
    let mut done = Published::default();
    while let Some(published) = partitions.next().await {
        done.add(published.map_err(|error| PipelineError::Fault(error.to_string()))??);
    }
    Ok(done)
}

/// The rows of days, none for a day without any.
type Days = BTreeMap<Option<Day>, RecordBatch>;

/// Publishes the rows of days that lie in one partition.
async fn publish_partition(publish: &Publish, period: Option<Period>, days: Days) -> Result<Published, PipelineError> {
    let path = publish.table.path_of(period);
    let name = publish.table.location().name_of(&path);
    let failed = |source| PipelineError::Write { table: name.clone(), source };
    let old = match publish.table.location().read(&path).await? {
        Some(bytes) => {
            let old = from_parquet(bytes).and_then(|old| dated(old, publish, period)).map_err(failed)?;
            let carried = rows_of_days(&old, |day| !days.contains_key(&day)).map_err(failed)?;
            if carried.is_empty() && old.schema().fields() != publish.schema.fields() {
                // Nothing of it stays, so its columns need not be today's.
                Some(RecordBatch::new_empty(Arc::clone(&publish.schema)))
            } else {
                Some(projected(&old, &publish.schema).map_err(failed)?)
            }
        }
        None => None,
    };
    let mut done = Published { rows: days.values().map(rows).sum::<i64>(), ..Published::default() };
    if period.is_none() && done.rows == 0 && old.is_none() {
        return Ok(done);
    }
    let merged = merge(old.as_ref(), days, &publish.schema, &publish.sort_by).map_err(failed)?;
    if old.as_ref() == Some(&merged) {
        done.unchanged += 1;
    } else {
        write(publish, period, &merged, &mut done).await?;
    }
    Ok(done)
}

/// Publishes the rows of whole periods, such as quarters.
pub async fn publish_period(
    publish: &Publish,
    batch: &RecordBatch,
    period: Period,
) -> Result<Published, PipelineError> {
    let table = publish.table.location().to_string();
    let failed = |source| PipelineError::Write { table: table.clone(), source };
    let mut done = Published { rows: rows(batch), ..Published::default() };
    // The path says the period.
    let column = publish.table.grain().column();
    let kept: Vec<usize> = (0..batch.num_columns()).filter(|at| batch.schema().field(*at).name() != column).collect();
    let batch = batch.project(&kept).map_err(|error| failed(error.into()))?;
    let old = publish.table.location().read(&publish.table.path_of(Some(period))).await?;
    if let Some(bytes) = old {
        let old = from_parquet(bytes).map_err(failed)?;
        if same_but_run(&old, &batch) {
            done.unchanged += 1;
            return Ok(done);
        }
    }
    write(publish, Some(period), &batch, &mut done).await?;
    Ok(done)
}

async fn write(
    publish: &Publish,
    period: Option<Period>,
    batch: &RecordBatch,
    done: &mut Published,
) -> Result<(), PipelineError> {
    let grain = publish.table.grain();
    let failed = |source| PipelineError::Write { table: publish.table.location().to_string(), source };
    // The path says the partition column; a column of that name in the file would say it twice.
    let kept: Vec<usize> = (0..batch.num_columns())
        .filter(|at| !(grain == Grain::Date && batch.schema().field(*at).name() == grain.column()))
        .collect();
    let batch = batch.project(&kept).map_err(|error| failed(error.into()))?;
    let in_file: Vec<String> = publish.sort_by.iter().filter(|name| *name != grain.column()).cloned().collect();
    let bytes = to_parquet(&batch, &in_file).map_err(failed)?;
    done.bytes += i64::try_from(bytes.len()).unwrap_or(i64::MAX);
    done.written += 1;
    let size = bytes.len() as u64;
    let etag = publish.table.location().write(&publish.table.path_of(period), bytes).await?;
    done.objects.extend(period.map(|period| (period, Version::new(size, etag.as_deref()))));
    Ok(())
}

fn rows(batch: &RecordBatch) -> i64 {
    i64::try_from(batch.num_rows()).unwrap_or(i64::MAX)
}

/// What was published, with its date where only the path says it.
fn dated(old: RecordBatch, publish: &Publish, period: Option<Period>) -> Result<RecordBatch, WriteError> {
    if publish.table.grain() != Grain::Date {
        return Ok(old);
    }
    let date = period.map(|period| period.first().0);
    let dates: ArrayRef = Arc::new(std::iter::repeat_n(date, old.num_rows()).collect::<Date32Array>());
    let at = publish.schema.index_of("date").unwrap_or(0).min(old.num_columns());
    let mut fields: Vec<_> = old.schema().fields().iter().cloned().collect();
    fields.insert(at, Arc::new(Field::new("date", DataType::Date32, true)));
    let mut columns = old.columns().to_vec();
    columns.insert(at, dates);
    Ok(RecordBatch::try_new(Arc::new(Schema::new(fields)), columns)?)
}

/// The columns of a schema, of rows that are carried over: columns that were not there yet are null; one that is there no
/// more, or of another type, would be lost.
fn projected(batch: &RecordBatch, schema: &SchemaRef) -> Result<RecordBatch, WriteError> {
    for old in batch.schema().fields() {
        let is_kept = schema.field_with_name(old.name()).is_ok_and(|field| field.data_type() == old.data_type());
        if !is_kept {
            return Err(WriteError::WouldBeLost(old.name().clone()));
        }
    }
    let column = |field: &Arc<Field>| match batch.column_by_name(field.name()) {
        Some(column) => Arc::clone(column),
        None => new_null_array(field.data_type(), batch.num_rows()),
    };
    let options = arrow::record_batch::RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    let columns = schema.fields().iter().map(column).collect();
    Ok(RecordBatch::try_new_with_options(Arc::clone(schema), columns, &options)?)
}

/// What a partition holds afterwards: the new rows of the days that were computed, the old rows of all others.
fn merge(
    old: Option<&RecordBatch>,
    new: Days,
    schema: &SchemaRef,
    sort_by: &[String],
) -> Result<RecordBatch, WriteError> {
    let mut all = match old {
        Some(old) => rows_of_days(old, |_| true)?,
        None => Days::new(),
    };
    for (day, rows) in new {
        match all.remove(&day) {
            Some(old_rows) if same_but_run(&old_rows, &rows) => all.insert(day, old_rows),
            _ => all.insert(day, rows),
        };
    }
    let parts: Vec<_> = all.into_values().collect();
    put_together(schema, &parts, sort_by)
}

/// The rows of days, in the order of the days and each sorted, as one batch, sorted.
fn put_together(schema: &SchemaRef, days: &[RecordBatch], sort_by: &[String]) -> Result<RecordBatch, WriteError> {
    let batch = concat_batches(schema, days)?;
    let is_by_date_first = sort_by.first().is_some_and(|first| first == "date");
    if is_by_date_first { Ok(batch) } else { sorted(&batch, sort_by) }
}

/// The rows of each day that is asked for, in the order in which they stand.
fn rows_of_days(batch: &RecordBatch, keep: impl Fn(Option<Day>) -> bool) -> Result<Days, WriteError> {
    let dates = batch.column_by_name("date").and_then(|dates| dates.as_primitive_opt::<Date32Type>());
    let dates = dates.ok_or_else(|| WriteError::NoColumn("date".to_owned()))?;
    let mut stretches: BTreeMap<Option<Day>, Vec<Range<usize>>> = BTreeMap::new();
    for (position, date) in dates.iter().enumerate() {
        let stretches = stretches.entry(date.map(Day)).or_default();
        match stretches.last_mut().filter(|last| last.end == position) {
            Some(last) => last.end += 1,
            None => stretches.push(position..position + 1),
        }
    }
    let stretches = stretches.into_iter().filter(|(day, _)| keep(*day));
    stretches
        .map(|(day, stretches)| {
            let parts: Vec<_> = stretches.into_iter().map(|rows| batch.slice(rows.start, rows.len())).collect();
            let rows = match parts.as_slice() {
                [part] => part.clone(),
                parts => concat_batches(&batch.schema(), parts)?,
            };
            Ok((day, rows))
        })
        .collect()
}

/// Whether two sets of rows are the same but for the run that computed them.
fn same_but_run(left: &RecordBatch, right: &RecordBatch) -> bool {
    left.schema().fields() == right.schema().fields()
        && left.num_rows() == right.num_rows()
        && left
            .schema()
            .fields()
            .iter()
            .zip(left.columns().iter().zip(right.columns()))
            .all(|(field, (left, right))| field.name() == RUN_ID || left.as_ref() == right.as_ref())
}
