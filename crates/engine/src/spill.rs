//! Tables of a run that are too large for memory: written to temporary files, read back as streams.
//!
//! What a statement gives is written as it comes, a file for each of its partitions, and the files go when the last table
//! that is made of them is gone. If the statement's rows are partitioned by the hash of some columns, so are those of the
//! table: a statement that groups by these columns need not shuffle them again.

use std::fmt;
use std::fs::File;
use std::io::{BufReader, BufWriter};
use std::sync::Arc;

use arrow::array::ArrayRef;
use arrow::compute::{CastOptions, cast_with_options};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use arrow::error::ArrowError;
use arrow::ipc::reader::StreamReader;
use arrow::ipc::writer::StreamWriter;
use arrow::record_batch::RecordBatch;
use async_trait::async_trait;
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::runtime::SpawnedTask;
use datafusion::common::{DataFusionError, Result, exec_err};
use datafusion::execution::TaskContext;
use datafusion::execution::spill_file::SpillFile;
use datafusion::logical_expr::{Expr, TableType};
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr::{Partitioning, PhysicalExpr};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::streaming::{PartitionStream, StreamingTableExec};
use datafusion::physical_plan::{
    ExecutionPlan, ExecutionPlanProperties, SendableRecordBatchStream, execute_stream_partitioned,
};
use futures::{StreamExt, stream};

/// Bytes that are read and written at a time.
const BUFFER: usize = 1 << 18;

/// Rows in temporary files, for as long as anyone holds them.
#[derive(Debug, Clone)]
pub struct Spilled {
    schema: SchemaRef,
    /// The columns by whose hash rows are in one file or another; none if nothing is known.
    hashed_by: Vec<String>,
    files: Vec<Arc<SpilledFile>>,
}

struct SpilledFile {
    file: Arc<dyn SpillFile>,
    rows: usize,
}

impl fmt::Debug for SpilledFile {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} rows in {:?}", self.rows, self.file.path())
    }
}

/// Runs a plan to its end and leaves its rows in temporary files, one for each of its partitions.
pub(crate) async fn spill(plan: Arc<dyn ExecutionPlan>, context: Arc<TaskContext>) -> Result<Spilled> {
    let schema = spilled_schema(&plan.schema());
    let hashed_by = match plan.output_partitioning() {
        Partitioning::Hash(by, _) => names_of(by).unwrap_or_default(),
        _ => Vec::new(),
    };
    let disk = &context.runtime_env().disk_manager;
    let mut writing = Vec::new();
    for batches in execute_stream_partitioned(plan, Arc::clone(&context))? {
        let file = disk.create_tmp_file("collected rows")?;
        writing.push(SpawnedTask::spawn(write(Arc::clone(&schema), batches, file)));
    }
    let mut files = Vec::new();
    for written in writing {
        files.push(written.join_unwind().await.map_err(|error| DataFusionError::External(Box::new(error)))??);
    }
    Ok(Spilled { schema, hashed_by, files })
}

/// The names of columns; `None` if an expression is none.
fn names_of(expressions: &[Arc<dyn PhysicalExpr>]) -> Option<Vec<String>> {
    let name = |expression: &Arc<dyn PhysicalExpr>| Some(expression.downcast_ref::<Column>()?.name().to_owned());
    expressions.iter().map(name).collect()
}

/// Writes batches to a temporary file as they come.
async fn write(
    schema: SchemaRef,
    mut batches: SendableRecordBatchStream,
    file: Arc<dyn SpillFile>,
) -> Result<Arc<SpilledFile>> {
    let out = BufWriter::with_capacity(BUFFER, file.open_writer()?);
    let mut writer = StreamWriter::try_new(out, &schema)?;
    let mut rows = 0;
    while let Some(batch) = batches.next().await {
        let batch = batch?;
        rows += batch.num_rows();
        writer.write(&as_spilled(&batch, &schema)?)?;
    }
    writer.finish()?;
    writer.into_inner()?.into_inner().map_err(|error| error.into_error())?.finish()?;
    Ok(Arc::new(SpilledFile { file, rows }))
}

/// The columns as they are written: strings not as views, which would carry along all texts of their batch.
fn spilled_schema(schema: &Schema) -> SchemaRef {
    let field = |field: &Arc<Field>| match field.data_type() {
        DataType::Utf8View => Arc::new(Field::new(field.name(), DataType::Utf8, field.is_nullable())),
        _ => Arc::clone(field),
    };
    Arc::new(Schema::new(schema.fields().iter().map(field).collect::<Vec<_>>()))
}

fn as_spilled(batch: &RecordBatch, schema: &SchemaRef) -> Result<RecordBatch, ArrowError> {
    let strict = CastOptions { safe: false, ..CastOptions::default() };
    let cast = |(column, field): (&ArrayRef, &Arc<Field>)| cast_with_options(column, field.data_type(), &strict);
    let columns = batch.columns().iter().zip(schema.fields()).map(cast).collect::<Result<_, _>>()?;
    RecordBatch::try_new(Arc::clone(schema), columns)
}

/// What one statement left at several times, as a table.
#[derive(Debug)]
struct SpilledTable {
    schema: SchemaRef,
    hashed_by: Vec<String>,
    /// The files of each partition.
    partitions: Vec<Vec<Arc<SpilledFile>>>,
}

/// A table made of what one statement left at several times; `None` if it was never run.
pub(crate) fn spilled_table(pieces: &[Spilled]) -> Option<Arc<dyn TableProvider>> {
    let first = pieces.first()?;
    let is_alike = |piece: &Spilled| piece.hashed_by == first.hashed_by && piece.files.len() == first.files.len();
    let hashed_by = if pieces.iter().all(is_alike) { first.hashed_by.clone() } else { Vec::new() };
    let mut partitions: Vec<Vec<Arc<SpilledFile>>> = Vec::new();
    for piece in pieces {
        partitions.resize_with(piece.files.len().max(partitions.len()), Vec::new);
        for (files, file) in partitions.iter_mut().zip(&piece.files) {
            files.push(Arc::clone(file));
        }
    }
    Some(Arc::new(SpilledTable { schema: Arc::clone(&first.schema), hashed_by, partitions }))
}

#[async_trait]
impl TableProvider for SpilledTable {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn table_type(&self) -> TableType {
        TableType::Temporary
    }

    async fn scan(
        &self,
        _: &dyn Session,
        projection: Option<&Vec<usize>>,
        _: &[Expr],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let stream = |files: &Vec<Arc<SpilledFile>>| {
            let stream = SpilledStream { schema: Arc::clone(&self.schema), files: files.clone() };
            Arc::new(stream) as Arc<dyn PartitionStream>
        };
        let streams = self.partitions.iter().map(stream).collect();
        let plan = StreamingTableExec::try_new(Arc::clone(&self.schema), streams, projection, [], false, limit)?;
        let schema = plan.schema();
        let column = |name: &String| {
            let at = schema.index_of(name).ok()?;
            Some(Arc::new(Column::new(name, at)) as Arc<dyn PhysicalExpr>)
        };
        let hashed_by = self.hashed_by.iter().map(column).collect::<Option<Vec<_>>>().unwrap_or_default();
        if hashed_by.is_empty() {
            return Ok(Arc::new(plan));
        }
        let partitioning = Partitioning::Hash(hashed_by, self.partitions.len());
        Ok(Arc::new(plan.with_output_partitioning(partitioning)?))
    }
}

/// The rows of one partition.
#[derive(Debug)]
struct SpilledStream {
    schema: SchemaRef,
    files: Vec<Arc<SpilledFile>>,
}

impl PartitionStream for SpilledStream {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn execute(&self, _: Arc<TaskContext>) -> SendableRecordBatchStream {
        let batches = self.files.clone().into_iter().flat_map(|file| match file.read() {
            Ok(batches) => batches,
            Err(error) => Box::new(std::iter::once(Err(error))),
        });
        Box::pin(RecordBatchStreamAdapter::new(Arc::clone(&self.schema), stream::iter(batches)))
    }
}

/// Batches of a file, one after the other.
type Batches = Box<dyn Iterator<Item = Result<RecordBatch>> + Send>;

impl SpilledFile {
    /// Reads the file; it stays for as long as it is read.
    fn read(self: Arc<SpilledFile>) -> Result<Batches> {
        let Some(path) = self.file.path() else { return exec_err!("a temporary file is not on a disk") };
        let reader = StreamReader::try_new(BufReader::with_capacity(BUFFER, File::open(path)?), None)?;
        Ok(Box::new(reader.map(move |batch| {
            let _held = &self;
            Ok(batch?)
        })))
    }
}
