//! Batches to Parquet bytes and back: plain types, sorted, zstd, statistics on.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, Float64Array, UInt32Array};
use arrow::compute::{CastOptions, SortOptions, cast_with_options, concat_batches, take};
use arrow::datatypes::{DataType, Field, Float64Type, Schema, SchemaRef, TimeUnit};
use arrow::error::ArrowError;
use arrow::record_batch::RecordBatch;
use arrow::row::{Row, RowConverter, SortField};
use bytes::Bytes;
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::basic::{Compression, ZstdLevel};
use parquet::errors::ParquetError;
use parquet::file::metadata::SortingColumn;
use parquet::file::properties::WriterProperties;

use crate::schema::UTC;

/// Rows in a row group: derived tables are read by day and by segment.
const ROW_GROUP_ROWS: usize = 131_072;

/// Why a table could not be written.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// A column has no plain type.
    #[error(
        "column `{column}` is {data_type}, which is none of the plain types DATE, TIMESTAMP, INT64, DOUBLE, UTF8, BOOLEAN"
    )]
    NotPlain {
        /// The column.
        column: String,
        /// Its type.
        data_type: DataType,
    },
    /// A column by which rows are to be sorted is not there.
    #[error("there is no column `{0}`")]
    NoColumn(String),
    /// A column of what is published already would be lost.
    #[error("its other days have a column `{0}` that today's table does not have as it was: compute them again, too")]
    WouldBeLost(String),
    /// The batches do not fit together.
    #[error("the rows cannot be put together")]
    Arrow(#[from] ArrowError),
    /// The file format failed.
    #[error("the rows cannot be written as Parquet")]
    Parquet(#[from] ParquetError),
}

/// The plain type as which a column is published; `None` if it has none.
fn plain_type(data_type: &DataType) -> Option<DataType> {
    match data_type {
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => Some(DataType::Utf8),
        DataType::Dictionary(_, values) => plain_type(values),
        DataType::Int8 | DataType::Int16 | DataType::Int32 | DataType::Int64 => Some(DataType::Int64),
        DataType::UInt8 | DataType::UInt16 | DataType::UInt32 | DataType::UInt64 => Some(DataType::Int64),
        DataType::Float32 | DataType::Float64 => Some(DataType::Float64),
        DataType::Date32 => Some(DataType::Date32),
        DataType::Boolean => Some(DataType::Boolean),
        DataType::Timestamp(..) => Some(DataType::Timestamp(TimeUnit::Microsecond, Some(UTC.into()))),
        _ => None,
    }
}

/// The columns of a table as they are published: plain types, all nullable.
pub fn plain_schema(schema: &Schema) -> Result<SchemaRef, WriteError> {
    let plain = |field: &Arc<Field>| match plain_type(field.data_type()) {
        Some(data_type) => Ok(Field::new(field.name(), data_type, true)),
        None => Err(WriteError::NotPlain { column: field.name().clone(), data_type: field.data_type().clone() }),
    };
    Ok(Arc::new(Schema::new(schema.fields().iter().map(plain).collect::<Result<Vec<_>, _>>()?)))
}

/// Puts batches together as one of plain types, sorted by the given columns, nulls first. NaN and infinities, which no
/// published table holds, become null.
pub fn plain_sorted(schema: &Schema, batches: &[RecordBatch], sort_by: &[String]) -> Result<RecordBatch, WriteError> {
    let plain = plain_schema(schema)?;
    let Some(first) = batches.first() else { return Ok(RecordBatch::new_empty(plain)) };
    let batch = concat_batches(&first.schema(), batches)?;
    let strict = CastOptions { safe: false, ..CastOptions::default() };
    let cast = |(column, field): (&ArrayRef, &Arc<Field>)| {
        let column = cast_with_options(column, field.data_type(), &strict)?;
        Ok::<_, ArrowError>(match column.as_primitive_opt::<Float64Type>() {
            Some(floats) => {
                let finite: Float64Array = floats.iter().map(|value| value.filter(|value| value.is_finite())).collect();
                Arc::new(finite)
            }
            None => column,
        })
    };
    let columns = batch.columns().iter().zip(plain.fields()).map(cast).collect::<Result<Vec<_>, _>>()?;
    sorted(&RecordBatch::try_new(plain, columns)?, sort_by)
}

/// Sorts a batch by columns, nulls first.
pub fn sorted(batch: &RecordBatch, sort_by: &[String]) -> Result<RecordBatch, WriteError> {
    if sort_by.is_empty() || batch.num_rows() < 2 {
        return Ok(batch.clone());
    }
    let options = SortOptions { descending: false, nulls_first: true };
    let column = |name: &String| batch.column_by_name(name).ok_or_else(|| WriteError::NoColumn(name.clone()));
    let columns = sort_by.iter().map(|name| column(name).cloned()).collect::<Result<Vec<_>, _>>()?;
    let fields = columns.iter().map(|column| SortField::new_with_options(column.data_type().clone(), options));
    let rows = RowConverter::new(fields.collect())?.convert_columns(&columns)?;
    let mut order: Vec<(Row<'_>, u32)> = rows.iter().zip(0..).collect();
    if order.is_sorted() {
        return Ok(batch.clone());
    }
    // Rows that are equal in these columns stay in the order in which they came.
    order.sort_unstable();
    taken(batch, &order.into_iter().map(|(_, position)| position).collect())
}

/// The rows of a batch at the given positions.
pub fn taken(batch: &RecordBatch, positions: &UInt32Array) -> Result<RecordBatch, WriteError> {
    let columns = batch.columns().iter().map(|column| take(column, positions, None)).collect::<Result<Vec<_>, _>>()?;
    Ok(RecordBatch::try_new(batch.schema(), columns)?)
}

/// A batch as the bytes of a Parquet file; `sort_by` names the columns by which it is sorted.
pub fn to_parquet(batch: &RecordBatch, sort_by: &[String]) -> Result<Bytes, WriteError> {
    let position = |name: &String| batch.schema().index_of(name).ok().and_then(|at| i32::try_from(at).ok());
    let sorting: Vec<SortingColumn> = sort_by
        .iter()
        .map_while(position)
        .map(|column_idx| SortingColumn { column_idx, descending: false, nulls_first: true })
        .collect();
    let properties = WriterProperties::builder()
        .set_compression(Compression::ZSTD(ZstdLevel::try_new(1)?))
        .set_max_row_group_row_count(Some(ROW_GROUP_ROWS))
        .set_sorting_columns(if sorting.is_empty() { None } else { Some(sorting) })
        .set_created_by("goodput".to_owned())
        .build();
    let mut bytes = Vec::new();
    let mut writer = ArrowWriter::try_new(&mut bytes, batch.schema(), Some(properties))?;
    writer.write(batch)?;
    writer.close()?;
    Ok(Bytes::from(bytes))
}

/// The rows of a Parquet file, as one batch.
pub fn from_parquet(bytes: Bytes) -> Result<RecordBatch, WriteError> {
    let reader = ParquetRecordBatchReaderBuilder::try_new(bytes)?;
    let schema = Arc::clone(reader.schema());
    let batches = reader.build()?.collect::<Result<Vec<_>, _>>()?;
    Ok(concat_batches(&schema, &batches)?)
}
