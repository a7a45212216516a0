//! What the files of a telemetry root hold, before anything is computed; and whether they can be read to the end.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use futures::future::BoxFuture;
use futures::{FutureExt, StreamExt, TryFutureExt, TryStreamExt, stream};
use goodput_model::{Day, Table};
use goodput_store::{Location, StoreError};
use object_store::{ObjectMeta, ObjectStore, ObjectStoreExt};
use parquet::arrow::ParquetRecordBatchStreamBuilder;
use parquet::arrow::arrow_reader::ArrowReaderOptions;
use parquet::arrow::async_reader::AsyncFileReader;
use parquet::errors::ParquetError;
use parquet::file::metadata::{ParquetMetaData, ParquetMetaDataReader};

use crate::adapt::convert;
use crate::schema::{contract_schema, mismatch};

/// Footers that are fetched at the same time.
const AT_ONCE: usize = 32;

/// A data file of telemetry.
#[derive(Debug, Clone)]
pub struct TelemetryFile {
    /// Its table.
    pub table: Table,
    /// The date of its partition.
    pub date: Day,
    /// The object.
    pub file: ObjectMeta,
}

/// What a footer says.
#[derive(Debug, Clone)]
pub struct FileFacts {
    /// Rows in the file.
    pub rows: i64,
    /// All its columns.
    pub columns: Vec<String>,
}

/// A file that cannot be read, and why: the message names the column where it is one.
pub type Unreadable = String;

/// Reads the footers of files and holds them against the contract, extra axes included. An error of the store is no fault
/// of a file and ends the check.
pub async fn check_footers(
    root: &Location,
    files: &[TelemetryFile],
    extra_axes: &[String],
) -> Result<Vec<Result<FileFacts, Unreadable>>, StoreError> {
    let checks = files.iter().map(|file| guarded(root, file, Depth::Footer, extra_axes));
    // In order, so that the answers belong to the files.
    stream::iter(checks).buffered(AT_ONCE).try_collect().await
}

/// Decodes files to the end and gives for each what is wrong with it.
pub async fn verify_files(
    root: &Location,
    files: &[TelemetryFile],
    extra_axes: &[String],
) -> Result<Vec<Option<Unreadable>>, StoreError> {
    let checks = files.iter().map(|file| guarded(root, file, Depth::Content, extra_axes));
    let checked: Vec<_> = stream::iter(checks).buffered(2).try_collect().await?;
    Ok(checked.into_iter().map(Result::err).collect())
}

/// How far a file is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Depth {
    Footer,
    Content,
}

/// Checks a file on a task of its own: what is in a file must not be able to end the program.
async fn guarded(
    root: &Location,
    file: &TelemetryFile,
    depth: Depth,
    extra_axes: &[String],
) -> Result<Result<FileFacts, Unreadable>, StoreError> {
    let (store, object, table) = (Arc::clone(root.store()), file.file.clone(), file.table);
    let extra: Vec<String> = if table == Table::Jobs { extra_axes.to_vec() } else { Vec::new() };
    let task = tokio::spawn(async move {
        let reader = StoreReader { store, file: object };
        let builder = ParquetRecordBatchStreamBuilder::new(reader).await.map_err(sorted)?;
        let schema = Arc::clone(builder.schema());
        if let Some(problem) = mismatch(table, &extra, &schema) {
            return Err(Problem::File(problem));
        }
        let facts = FileFacts {
            rows: builder.metadata().file_metadata().num_rows(),
            columns: schema.fields().iter().map(|field| field.name().clone()).collect(),
        };
        if depth == Depth::Content {
            let mut batches = builder.build().map_err(sorted)?;
            while let Some(batch) = batches.try_next().await.map_err(sorted)? {
                for field in contract_schema(table, &extra).fields() {
                    let Some(column) = batch.column_by_name(field.name()) else { continue };
                    let converted = convert(column, field.data_type());
                    if let Err(problem) = converted {
                        return Err(Problem::File(format!("column `{}`: {problem}", field.name())));
                    }
                }
            }
        }
        Ok(facts)
    });
    match task.await {
        Ok(Ok(facts)) => Ok(Ok(facts)),
        Ok(Err(Problem::File(problem))) => Ok(Err(problem)),
        Ok(Err(Problem::Store(source))) => Err(root.problem(&file.file.location, "read", *source)),
        Err(_) => Ok(Err("its content breaks the Parquet reader".to_owned())),
    }
}

enum Problem {
    File(String),
    Store(Box<object_store::Error>),
}

/// Tells what a file is to blame for from what the store is.
fn sorted(error: ParquetError) -> Problem {
    match error {
        ParquetError::External(source) => match source.downcast::<object_store::Error>() {
            Ok(source) => Problem::Store(source),
            Err(source) => Problem::File(source.to_string()),
        },
        other => Problem::File(other.to_string()),
    }
}

/// A file of a store as the Parquet reader wants it.
pub(crate) struct StoreReader {
    pub(crate) store: Arc<dyn ObjectStore>,
    pub(crate) file: ObjectMeta,
}

impl AsyncFileReader for StoreReader {
    fn get_bytes(&mut self, range: Range<u64>) -> BoxFuture<'_, Result<Bytes, ParquetError>> {
        self.store
            .get_range(&self.file.location, range)
            .map_err(|error| ParquetError::External(Box::new(error)))
            .boxed()
    }

    fn get_byte_ranges(&mut self, ranges: Vec<Range<u64>>) -> BoxFuture<'_, Result<Vec<Bytes>, ParquetError>> {
        async move {
            let bytes = self.store.get_ranges(&self.file.location, &ranges).await;
            bytes.map_err(|error| ParquetError::External(Box::new(error)))
        }
        .boxed()
    }

    fn get_metadata<'a>(
        &'a mut self,
        options: Option<&'a ArrowReaderOptions>,
    ) -> BoxFuture<'a, Result<Arc<ParquetMetaData>, ParquetError>> {
        async move {
            let size = self.file.size;
            let reader = ParquetMetaDataReader::new().with_arrow_reader_options(options);
            Ok(Arc::new(reader.load_and_finish(self, size).await?))
        }
        .boxed()
    }
}
