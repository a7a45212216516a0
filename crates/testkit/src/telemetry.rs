//! Telemetry of the contract, written one partition at a time.
//!
//! Instants are whole milliseconds since the epoch, UTC. `None` stands for null.

use std::cmp::Ordering;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow::array::{ArrayRef, Float64Array, Int64Array, StringArray, TimestampMicrosecondArray};
use arrow::datatypes::{DataType, Field, Schema, TimeUnit};
use arrow::record_batch::RecordBatch;
use goodput_model::{Day, Kind, Table};
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;

/// Why a partition could not be written.
#[derive(Debug, thiserror::Error)]
pub enum TelemetryError {
    /// The file system refused.
    #[error("cannot write `{}`", .path.display())]
    Io {
        /// The folder or file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The rows could not be encoded.
    #[error("cannot encode `{}`", .path.display())]
    Encode {
        /// The file.
        path: PathBuf,
        /// What the encoder said.
        source: ParquetError,
    },
}

/// A row of a table of the contract.
pub trait ContractRow {
    /// The table it is of.
    const TABLE: Table;

    /// Orders rows by their keys.
    fn compare_keys(&self, other: &Self) -> Ordering;

    /// The columns of the contract, in its order.
    fn columns(rows: &[Self]) -> Vec<ArrayRef>
    where
        Self: Sized;
}

/// A state of a block of chips.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CapacityRow {
    /// The cluster.
    pub cell: String,
    /// The generation of its chips.
    pub accelerator: String,
    /// The block, unique within cell and accelerator.
    pub block: String,
    /// Chips in it.
    pub chips: i64,
    /// `available` or `down`.
    pub state: String,
    /// When the state began, ms.
    pub start: i64,
    /// When it ended, ms.
    pub end: Option<i64>,
}

/// What a job asked for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct JobRow {
    /// The job.
    pub job_id: String,
    /// When it became eligible to run, ms.
    pub submit: i64,
    /// When it ended for good, ms.
    pub end: Option<i64>,
    /// How it ended.
    pub end_state: Option<String>,
    /// Chips that it needs at once.
    pub chips_required: i64,
    /// The generation that it asked for.
    pub accelerator: Option<String>,
    /// Such as `jax`.
    pub framework: Option<String>,
    /// Such as `training`.
    pub phase: Option<String>,
    /// The kind of model.
    pub model_family: Option<String>,
    /// Who pays.
    pub team: Option<String>,
    /// Who started it.
    pub user: Option<String>,
    /// How urgent it is.
    pub priority: Option<String>,
    /// The shape of the chips that it asked for.
    pub topology: Option<String>,
}

/// Chips that a task of a job held.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AllocationRow {
    /// The job.
    pub job_id: String,
    /// Which of its starts.
    pub attempt: i64,
    /// Which part of the gang.
    pub task: String,
    /// Where.
    pub cell: String,
    /// On what.
    pub accelerator: String,
    /// Chips held.
    pub chips: i64,
    /// Since when, ms.
    pub start: i64,
    /// Until when, ms.
    pub end: Option<i64>,
    /// Why it ended.
    pub end_reason: Option<String>,
}

/// What a job did while it held chips.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuntimeRow {
    /// The job.
    pub job_id: String,
    /// Which of its starts.
    pub attempt: i64,
    /// What it did. The contract requires it: `None` is the null of a broken producer.
    pub phase: Option<String>,
    /// Since when, ms.
    pub start: i64,
    /// Until when, ms.
    pub end: Option<i64>,
    /// The first step completed in it.
    pub first_step: Option<i64>,
    /// The last step completed in it, or the step saved.
    pub last_step: Option<i64>,
}

/// How good a program was in a window of time.
#[derive(Debug, Clone, PartialEq)]
pub struct ProfileRow {
    /// The job.
    pub job_id: String,
    /// Which of its starts.
    pub attempt: i64,
    /// The fingerprint of the compiled program.
    pub program: String,
    /// When the window began, ms.
    pub start: i64,
    /// When the window ended, ms.
    pub end: i64,
    /// Steps in the window.
    pub steps: i64,
    /// Measured mean time of a step, µs.
    pub step_time_us: f64,
    /// Predicted ideal time of a step, µs.
    pub predicted_step_time_us: Option<f64>,
    /// Operations in a step on all chips.
    pub flops_per_step: Option<f64>,
    /// Bytes moved in a step on all chips.
    pub bytes_per_step: Option<f64>,
    /// Such as `bf16`.
    pub precision: Option<String>,
}

/// The rows that all tables recorded on one day.
#[derive(Debug, Default)]
pub struct Partition {
    /// Rows of `capacity`.
    pub capacity: Vec<CapacityRow>,
    /// Rows of `jobs`.
    pub jobs: Vec<JobRow>,
    /// Rows of `allocations`.
    pub allocations: Vec<AllocationRow>,
    /// Rows of `runtime`.
    pub runtime: Vec<RuntimeRow>,
    /// Rows of `profiles`.
    pub profiles: Vec<ProfileRow>,
}

impl Partition {
    /// Writes a file for every table, also for one without rows: the partition exists.
    pub fn write(&mut self, root: &Path, day: Day) -> Result<(), TelemetryError> {
        write_partition(root, day, &mut self.capacity)?;
        write_partition(root, day, &mut self.jobs)?;
        write_partition(root, day, &mut self.allocations)?;
        write_partition(root, day, &mut self.runtime)?;
        write_partition(root, day, &mut self.profiles)
    }

    /// Forgets all rows and keeps the memory for the next day's.
    pub fn clear(&mut self) {
        self.capacity.clear();
        self.jobs.clear();
        self.allocations.clear();
        self.runtime.clear();
        self.profiles.clear();
    }
}

/// Writes rows, sorted by their keys, to `<root>/<table>/date=<day>/part-0.parquet`. The same rows give the same bytes.
pub fn write_partition<R: ContractRow>(root: &Path, day: Day, rows: &mut [R]) -> Result<(), TelemetryError> {
    rows.sort_by(R::compare_keys);
    let folder = root.join(R::TABLE.name()).join(format!("date={day}"));
    fs::create_dir_all(&folder).map_err(|source| TelemetryError::Io { path: folder.clone(), source })?;
    let path = folder.join("part-0.parquet");
    let file = File::create(&path).map_err(|source| TelemetryError::Io { path: path.clone(), source })?;
    encode(file, rows).map_err(|source| TelemetryError::Encode { path, source })
}

fn encode<R: ContractRow>(file: File, rows: &[R]) -> Result<(), ParquetError> {
    let fields: Vec<Field> = R::TABLE
        .columns()
        .iter()
        // Required columns may hold nulls too: telemetry comes as it comes, and the pipeline has to cope.
        .map(|column| Field::new(column.name, type_of(column.kind), true))
        .collect();
    let batch = RecordBatch::try_new(Arc::new(Schema::new(fields)), R::columns(rows))?;
    let properties = WriterProperties::builder()
        .set_compression(Compression::ZSTD(ZstdLevel::try_new(3)?))
        // The default names the version of the library, which would change the bytes with every update.
        .set_created_by("goodput-testkit".to_owned())
        .build();
    let mut writer = ArrowWriter::try_new(file, batch.schema(), Some(properties))?;
    writer.write(&batch)?;
    writer.close()?;
    Ok(())
}

fn type_of(kind: Kind) -> DataType {
    match kind {
        Kind::String => DataType::Utf8,
        Kind::Int => DataType::Int64,
        Kind::Float => DataType::Float64,
        Kind::Timestamp => DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())),
    }
}

fn texts<'a, R>(rows: &'a [R], value: impl Fn(&'a R) -> Option<&'a str>) -> ArrayRef {
    Arc::new(rows.iter().map(value).collect::<StringArray>())
}

fn ints<R>(rows: &[R], value: impl Fn(&R) -> Option<i64>) -> ArrayRef {
    Arc::new(rows.iter().map(value).collect::<Int64Array>())
}

fn floats<R>(rows: &[R], value: impl Fn(&R) -> Option<f64>) -> ArrayRef {
    Arc::new(rows.iter().map(value).collect::<Float64Array>())
}

fn instants<R>(rows: &[R], value: impl Fn(&R) -> Option<i64>) -> ArrayRef {
    let micros = rows.iter().map(|row| value(row).map(|ms| ms * 1000));
    Arc::new(micros.collect::<TimestampMicrosecondArray>().with_timezone("UTC"))
}

impl ContractRow for CapacityRow {
    const TABLE: Table = Table::Capacity;

    fn compare_keys(&self, other: &Self) -> Ordering {
        (&self.cell, &self.accelerator, &self.block, self.start).cmp(&(
            &other.cell,
            &other.accelerator,
            &other.block,
            other.start,
        ))
    }

    fn columns(rows: &[Self]) -> Vec<ArrayRef> {
        vec![
            texts(rows, |row| Some(&row.cell)),
            texts(rows, |row| Some(&row.accelerator)),
            texts(rows, |row| Some(&row.block)),
            ints(rows, |row| Some(row.chips)),
            texts(rows, |row| Some(&row.state)),
            instants(rows, |row| Some(row.start)),
            instants(rows, |row| row.end),
        ]
    }
}

impl ContractRow for JobRow {
    const TABLE: Table = Table::Jobs;

    fn compare_keys(&self, other: &Self) -> Ordering {
        self.job_id.cmp(&other.job_id)
    }

    fn columns(rows: &[Self]) -> Vec<ArrayRef> {
        vec![
            texts(rows, |row| Some(&row.job_id)),
            instants(rows, |row| Some(row.submit)),
            instants(rows, |row| row.end),
            texts(rows, |row| row.end_state.as_deref()),
            ints(rows, |row| Some(row.chips_required)),
            texts(rows, |row| row.accelerator.as_deref()),
            texts(rows, |row| row.framework.as_deref()),
            texts(rows, |row| row.phase.as_deref()),
            texts(rows, |row| row.model_family.as_deref()),
            texts(rows, |row| row.team.as_deref()),
            texts(rows, |row| row.user.as_deref()),
            texts(rows, |row| row.priority.as_deref()),
            texts(rows, |row| row.topology.as_deref()),
        ]
    }
}

impl ContractRow for AllocationRow {
    const TABLE: Table = Table::Allocations;

    fn compare_keys(&self, other: &Self) -> Ordering {
        (&self.job_id, self.attempt, &self.task, &self.cell, &self.accelerator, self.start).cmp(&(
            &other.job_id,
            other.attempt,
            &other.task,
            &other.cell,
            &other.accelerator,
            other.start,
        ))
    }

    fn columns(rows: &[Self]) -> Vec<ArrayRef> {
        vec![
            texts(rows, |row| Some(&row.job_id)),
            ints(rows, |row| Some(row.attempt)),
            texts(rows, |row| Some(&row.task)),
            texts(rows, |row| Some(&row.cell)),
            texts(rows, |row| Some(&row.accelerator)),
            ints(rows, |row| Some(row.chips)),
            instants(rows, |row| Some(row.start)),
            instants(rows, |row| row.end),
            texts(rows, |row| row.end_reason.as_deref()),
        ]
    }
}

impl ContractRow for RuntimeRow {
    const TABLE: Table = Table::Runtime;

    fn compare_keys(&self, other: &Self) -> Ordering {
        (&self.job_id, self.attempt, &self.phase, self.start).cmp(&(
            &other.job_id,
            other.attempt,
            &other.phase,
            other.start,
        ))
    }

    fn columns(rows: &[Self]) -> Vec<ArrayRef> {
        vec![
            texts(rows, |row| Some(&row.job_id)),
            ints(rows, |row| Some(row.attempt)),
            texts(rows, |row| row.phase.as_deref()),
            instants(rows, |row| Some(row.start)),
            instants(rows, |row| row.end),
            ints(rows, |row| row.first_step),
            ints(rows, |row| row.last_step),
        ]
    }
}

impl ContractRow for ProfileRow {
    const TABLE: Table = Table::Profiles;

    fn compare_keys(&self, other: &Self) -> Ordering {
        (&self.job_id, self.attempt, &self.program, self.start).cmp(&(
            &other.job_id,
            other.attempt,
            &other.program,
            other.start,
        ))
    }

    fn columns(rows: &[Self]) -> Vec<ArrayRef> {
        vec![
            texts(rows, |row| Some(&row.job_id)),
            ints(rows, |row| Some(row.attempt)),
            texts(rows, |row| Some(&row.program)),
            instants(rows, |row| Some(row.start)),
            instants(rows, |row| Some(row.end)),
            ints(rows, |row| Some(row.steps)),
            floats(rows, |row| Some(row.step_time_us)),
            floats(rows, |row| row.predicted_step_time_us),
            floats(rows, |row| row.flops_per_step),
            floats(rows, |row| row.bytes_per_step),
            texts(rows, |row| row.precision.as_deref()),
        ]
    }
}
