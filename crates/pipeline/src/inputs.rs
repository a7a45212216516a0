//! Which files the days of a run need, and which of them cannot be read.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use arrow::array::{ArrayRef, Date32Array, Int64Array, StringArray};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use arrow::record_batch::RecordBatch;
use goodput_engine::footers::{TelemetryFile, check_footers, verify_files};
use goodput_engine::scan::{ParquetTable, ScanFile, date_scalar};
use goodput_engine::schema::{contract_schema, date_field};
use goodput_engine::session::{INPUT, TELEMETRY};
use goodput_engine::{EngineError, Session};
use goodput_model::{Day, Table};
use goodput_store::{Location, ObjectMeta, Path, TelemetryListing, list_telemetry};

use crate::PipelineError;
use crate::plan::Settings;
use crate::state::{Files, Version, Window};

/// A data file that cannot be read.
#[derive(Debug, Clone)]
pub struct UnreadableFile {
    /// Its table.
    pub table: Table,
    /// The date of its partition.
    pub date: Day,
    /// The file, as messages name it.
    pub file: String,
    /// What is wrong with it.
    pub problem: String,
}

/// The telemetry as it lies there.
#[derive(Debug, Clone)]
pub struct Inputs {
    root: Location,
    listing: TelemetryListing,
    settle_days: i32,
    extra_axes: Vec<String>,
    unreadable: BTreeMap<Path, UnreadableFile>,
    /// Rows of the files whose footers were read.
    rows: BTreeMap<Path, i64>,
}

impl Inputs {
    /// Lists the telemetry. Files that the settings exclude are skipped ones.
    pub async fn list(root: &Location, settings: &Settings) -> Result<Inputs, PipelineError> {
        let mut listing = list_telemetry(root).await?;
        let excluded: BTreeSet<Path> =
            settings.excluded_files.iter().map(|file| root.join(file).root().clone()).collect();
        listing.skip(&excluded);
        Ok(Inputs {
            root: root.clone(),
            listing,
            settle_days: settings.settle_days,
            extra_axes: settings.extra_axes.clone(),
            unreadable: BTreeMap::new(),
            rows: BTreeMap::new(),
        })
    }

    /// The first and the last day that have a partition.
    pub fn days(&self) -> Option<(Day, Day)> {
        self.listing.days()
    }

    /// The last day that is not provisional.
    pub fn settled_through(&self) -> Day {
        self.days().map_or(Day(0), |(_, newest)| newest.plus(-self.settle_days))
    }

    /// For each table the days that have a partition.
    pub fn partitions(&self) -> [Vec<i32>; 5] {
        Table::ALL.map(|table| self.listing.table(table).days().map(|day| day.0).collect())
    }

    /// Whether a table has a data file of a date.
    pub fn has_partition(&self, table: Table, date: Day) -> bool {
        self.listing.table(table).partitions.get(&date).is_some_and(|partition| !partition.files.is_empty())
    }

    /// Whether any partition lies in the window of a day.
    pub fn has_window(&self, day: Day) -> bool {
        let (first, last) = (day.plus(-self.settle_days), day.plus(self.settle_days));
        Table::ALL.into_iter().any(|table| {
            let partitions = self.listing.table(table).partitions.range(first..=last);
            partitions.into_iter().any(|(_, partition)| !partition.files.is_empty())
        })
    }

    /// The first and the last day whose partitions the windows of days reach.
    pub fn window(&self, from: Day, to: Day) -> (Day, Day) {
        (from.plus(-self.settle_days), to.plus(self.settle_days))
    }

    /// The files of the window of a day as they lie there now, those that are not read too: they are counted.
    pub fn window_state(&self, day: Day) -> Window {
        let (first, last) = self.window(day, day);
        let mut window = Window::new();
        for table in Table::ALL {
            for (date, partition) in self.listing.table(table).partitions.range(first..=last) {
                let name = |file: &ObjectMeta| file.location.filename().unwrap_or_default().to_owned();
                let mut files: Files = partition.files.iter().map(|file| (name(file), Version::of(file))).collect();
                if files.is_empty() {
                    continue;
                }
                let skipped = partition.skipped.iter().filter(|_| *date == day);
                files.extend(skipped.map(|(name, number)| {
                    let number = u64::try_from(*number).unwrap_or_default();
                    (format!("{name} (skipped)"), Version::new(number, None))
                }));
                window.insert((table, *date), Arc::new(files));
            }
        }
        window
    }

    /// The files that the windows of days need, readable or not.
    pub fn files(&self, from: Day, to: Day) -> Vec<TelemetryFile> {
        let (first, last) = self.window(from, to);
        self.files_of_partitions(first, last)
    }

    /// The files of partitions, readable or not.
    fn files_of_partitions(&self, first: Day, last: Day) -> Vec<TelemetryFile> {
        let mut files = Vec::new();
        if last < first {
            return files;
        }
        for table in Table::ALL {
            for (date, partition) in self.listing.table(table).partitions.range(first..=last) {
                files.extend(partition.files.iter().map(|file| TelemetryFile {
                    table,
                    date: *date,
                    file: file.clone(),
                }));
            }
        }
        files
    }

    /// Reads the footers of the files that the windows of days need, and holds them against the contract.
    pub async fn check(&mut self, from: Day, to: Day) -> Result<(), PipelineError> {
        let files: Vec<_> =
            self.files(from, to).into_iter().filter(|file| !self.rows.contains_key(&file.file.location)).collect();
        let facts = check_footers(&self.root, &files, &self.extra_axes).await?;
        for (file, facts) in files.iter().zip(facts) {
            match facts {
                Ok(facts) => {
                    self.rows.insert(file.file.location.clone(), facts.rows);
                }
                Err(problem) => self.set_unreadable(file, problem),
            }
        }
        Ok(())
    }

    /// Decodes files to the end; whether any turned out unreadable that was thought readable.
    pub async fn verify(&mut self, files: &[TelemetryFile]) -> Result<bool, PipelineError> {
        let problems = verify_files(&self.root, files, &self.extra_axes).await?;
        let mut found = false;
        for (file, problem) in files.iter().zip(problems) {
            if let Some(problem) = problem {
                self.set_unreadable(file, problem);
                found = true;
            }
        }
        Ok(found)
    }

    fn set_unreadable(&mut self, file: &TelemetryFile, problem: String) {
        let unreadable = UnreadableFile {
            table: file.table,
            date: file.date,
            file: self.root.name_of(&file.file.location),
            problem,
        };
        self.unreadable.insert(file.file.location.clone(), unreadable);
    }

    /// The files that the windows of days need and that can be read.
    pub fn readable(&self, from: Day, to: Day) -> Vec<TelemetryFile> {
        let (first, last) = self.window(from, to);
        self.readable_of_partitions(first, last)
    }

    /// The files of partitions that can be read.
    pub fn readable_of_partitions(&self, first: Day, last: Day) -> Vec<TelemetryFile> {
        let files = self.files_of_partitions(first, last).into_iter();
        files.filter(|file| !self.unreadable.contains_key(&file.file.location)).collect()
    }

    /// The unreadable files that hold back a day: those of partitions from the day on, as far as its window goes.
    pub fn holding_back(&self, day: Day) -> impl Iterator<Item = &UnreadableFile> {
        let last = day.plus(self.settle_days);
        self.unreadable.values().filter(move |file| day <= file.date && file.date <= last)
    }

    /// All unreadable files found so far.
    pub fn unreadable(&self) -> impl Iterator<Item = &UnreadableFile> {
        self.unreadable.values()
    }

    /// Rows in files, as far as their footers have been read.
    pub fn rows_in(&self, files: &[TelemetryFile]) -> i64 {
        files.iter().filter_map(|file| self.rows.get(&file.file.location)).sum()
    }

    /// What lies about and is not read, over all days.
    pub fn skipped_files(&self) -> i64 {
        Table::ALL
            .into_iter()
            .map(|table| {
                let table = self.listing.table(table);
                let in_partitions = table.partitions.values().flat_map(|partition| partition.skipped.values());
                in_partitions.chain(table.beside.values()).sum::<i64>()
            })
            .sum()
    }

    /// Makes the telemetry that the windows of days need known to a session, and what was found about files.
    pub fn register(&self, session: &Session, from: Day, to: Day) -> Result<(), PipelineError> {
        self.register_files(session, &self.readable(from, to))?;
        self.register_facts(session, from, to)
    }

    /// Makes files known to a session as the tables of the telemetry.
    pub fn register_files(&self, session: &Session, files: &[TelemetryFile]) -> Result<(), PipelineError> {
        let store = session.store(&self.root)?;
        for table in Table::ALL {
            let of_table = files.iter().filter(|file| file.table == table);
            let of_table =
                of_table.map(|file| ScanFile { file: file.file.clone(), partition: date_scalar(Some(file.date)) });
            let extra = if table == Table::Jobs { self.extra_axes.as_slice() } else { &[] };
            let columns = contract_schema(table, extra);
            let provider = ParquetTable::new(store.clone(), columns, date_field(), of_table.collect());
            session.register(TELEMETRY, table.name(), Arc::new(provider))?;
        }
        Ok(())
    }

    /// Makes known what was found about files, and what each day has.
    fn register_facts(&self, session: &Session, from: Day, to: Day) -> Result<(), PipelineError> {
        let mut found: Vec<(Option<Day>, Table, String, i64)> = Vec::new();
        for table in Table::ALL {
            let listing = self.listing.table(table);
            for (name, number) in &listing.beside {
                found.push((None, table, format!("skipped_file:{name}"), *number));
            }
            for (date, partition) in listing.partitions.range(from..=to) {
                for (name, number) in &partition.skipped {
                    found.push((Some(*date), table, format!("skipped_file:{name}"), *number));
                }
            }
        }
        for day in from.through(to) {
            let first = day.plus(-self.settle_days);
            for file in self.unreadable.values().filter(|file| first <= file.date && file.date < day) {
                found.push((Some(day), file.table, "incomplete_window".to_owned(), 1));
            }
        }
        let columns: Vec<ArrayRef> = vec![
            Arc::new(found.iter().map(|(date, ..)| date.map(|date| date.0)).collect::<Date32Array>()),
            Arc::new(StringArray::from_iter_values(found.iter().map(|(_, table, ..)| table.name()))),
            Arc::new(StringArray::from_iter_values(found.iter().map(|(_, _, reason, _)| reason))),
            Arc::new(Int64Array::from_iter_values(found.iter().map(|(.., rows)| *rows))),
        ];
        register_batch(session, "files_found", files_found_schema(), columns)?;

        let (first, last) = self.days().unwrap_or((to, from));
        let days: Vec<Day> = from.max(first).through(to.min(last)).collect();
        let files_on = |day: Day| -> i64 {
            let partitions = Table::ALL.into_iter().filter_map(|table| self.listing.table(table).partitions.get(&day));
            partitions.map(|partition| i64::try_from(partition.files.len()).unwrap_or(i64::MAX)).sum()
        };
        let columns: Vec<ArrayRef> = vec![
            Arc::new(Date32Array::from_iter_values(days.iter().map(|day| day.0))),
            Arc::new(Int64Array::from_iter_values(days.iter().map(|day| files_on(*day)))),
        ];
        register_batch(session, "days", days_schema(), columns)
    }
}

/// Makes tables without rows known, for planning.
pub(crate) fn register_empty_inputs(session: &Session, extra_axes: &[String]) -> Result<(), PipelineError> {
    for table in Table::ALL {
        let extra = if table == Table::Jobs { extra_axes } else { &[] };
        let mut fields: Vec<_> = contract_schema(table, extra).fields().iter().cloned().collect();
        fields.push(Arc::new(date_field()));
        session.register_batches(TELEMETRY, table.name(), Arc::new(Schema::new(fields)), Vec::new())?;
    }
    session.register_batches(INPUT, "files_found", files_found_schema(), Vec::new())?;
    session.register_batches(INPUT, "days", days_schema(), Vec::new())?;
    Ok(())
}

/// `input.files_found`: what was found about files.
fn files_found_schema() -> SchemaRef {
    Arc::new(Schema::new(vec![
        Field::new("date", DataType::Date32, true),
        Field::new("source_table", DataType::Utf8, false),
        Field::new("reason", DataType::Utf8, false),
        Field::new("rows", DataType::Int64, false),
    ]))
}

/// `input.days`: the days of the run that lie between the first and the last partition, and how many data files each has.
fn days_schema() -> SchemaRef {
    Arc::new(Schema::new(vec![
        Field::new("date", DataType::Date32, false),
        Field::new("files", DataType::Int64, false),
    ]))
}

fn register_batch(
    session: &Session,
    name: &str,
    schema: SchemaRef,
    columns: Vec<ArrayRef>,
) -> Result<(), PipelineError> {
    let batch = RecordBatch::try_new(Arc::clone(&schema), columns).map_err(EngineError::from)?;
    Ok(session.register_batches(INPUT, name, schema, vec![batch])?)
}
