//! Tables made of explicit lists of Parquet files, partitioned by path.
//!
//! There is no listing, no inference and no cache here: a table is the files that it was given, their columns those that
//! were declared, and no statistics of files are believed (a NaN hides in minima and maxima). A filter on the partition
//! column leaves out the files that it excludes before any is opened.

use std::sync::Arc;

use arrow::array::{ArrayRef, BooleanArray, RecordBatch};
use arrow::datatypes::{Field, Schema, SchemaRef};
use async_trait::async_trait;
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::{DFSchema, Result, ScalarValue};
use datafusion::config::TableParquetOptions;
use datafusion::datasource::listing::PartitionedFile;
use datafusion::datasource::object_store::ObjectStoreUrl;
use datafusion::datasource::physical_plan::{FileGroup, FileScanConfigBuilder, ParquetSource};
use datafusion::datasource::source::DataSourceExec;
use datafusion::datasource::table_schema::TableSchema;
use datafusion::logical_expr::utils::conjunction;
use datafusion::logical_expr::{Expr, TableProviderFilterPushDown, TableType};
use datafusion::physical_plan::ExecutionPlan;
use goodput_model::Day;
use object_store::ObjectMeta;

use crate::adapt::AdapterFactory;

/// A file and the value of the partition column that its path gives.
#[derive(Debug, Clone)]
pub struct ScanFile {
    /// The object.
    pub file: ObjectMeta,
    /// The value, of the type of the partition column.
    pub partition: ScalarValue,
}

/// A day, or none, as the value of a partition column.
pub fn date_scalar(day: Option<Day>) -> ScalarValue {
    ScalarValue::Date32(day.map(|day| day.0))
}

/// A text, or none, as the value of a partition column.
pub fn text_scalar(text: Option<String>) -> ScalarValue {
    ScalarValue::Utf8(text)
}

/// A table made of Parquet files.
#[derive(Debug)]
pub struct ParquetTable {
    store: ObjectStoreUrl,
    /// The declared columns of the files.
    columns: SchemaRef,
    partition: Arc<Field>,
    /// The columns of the files, then the partition column.
    schema: SchemaRef,
    files: Vec<ScanFile>,
}

impl ParquetTable {
    /// A table of the given files, all in the store of that URL.
    pub fn new(store: ObjectStoreUrl, columns: SchemaRef, partition: Field, files: Vec<ScanFile>) -> ParquetTable {
        let partition = Arc::new(partition);
        let mut fields: Vec<Arc<Field>> = columns.fields().iter().cloned().collect();
        fields.push(Arc::clone(&partition));
        ParquetTable { store, columns, partition, schema: Arc::new(Schema::new(fields)), files }
    }

    /// The files that filters on the partition column do not exclude.
    fn remaining_files(&self, state: &dyn Session, filters: &[Expr]) -> Result<Vec<&ScanFile>> {
        let on_partition = filters.iter().filter(|filter| self.is_on_partition(filter)).cloned();
        let Some(filter) = conjunction(on_partition).filter(|_| !self.files.is_empty()) else {
            return Ok(self.files.iter().collect());
        };
        let schema = Arc::new(Schema::new(vec![Arc::clone(&self.partition)]));
        let values: ArrayRef = ScalarValue::iter_to_array(self.files.iter().map(|file| file.partition.clone()))?;
        let batch = RecordBatch::try_new(Arc::clone(&schema), vec![values])?;
        let filter = state.create_physical_expr(filter, &DFSchema::try_from(schema)?)?;
        let kept = filter.evaluate(&batch)?.into_array(self.files.len())?;
        let Some(kept) = kept.as_any().downcast_ref::<BooleanArray>() else { return Ok(self.files.iter().collect()) };
        Ok(self.files.iter().zip(kept).filter(|(_, kept)| *kept == Some(true)).map(|(file, _)| file).collect())
    }

    fn is_on_partition(&self, filter: &Expr) -> bool {
        let columns = filter.column_refs();
        !columns.is_empty()
            && columns.iter().all(|column| column.name() == self.partition.name())
            && !filter.is_volatile()
    }
}

#[async_trait]
impl TableProvider for ParquetTable {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    fn supports_filters_pushdown(&self, filters: &[&Expr]) -> Result<Vec<TableProviderFilterPushDown>> {
        Ok(filters
            .iter()
            .map(|filter| {
                if self.is_on_partition(filter) {
                    TableProviderFilterPushDown::Exact
                } else {
                    TableProviderFilterPushDown::Inexact
                }
            })
            .collect())
    }

    async fn scan(
        &self,
        state: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let files = self.remaining_files(state, filters)?;
        let files = files.into_iter().map(|file| {
            PartitionedFile::new_from_meta(file.file.clone()).with_partition_values(vec![file.partition.clone()])
        });
        let groups = FileGroup::new(files.collect()).split_files(state.config().target_partitions());
        let schema = TableSchema::builder(Arc::clone(&self.columns))
            .with_table_partition_cols(vec![Arc::clone(&self.partition)])
            .build();
        let global = state.config_options().execution.parquet.clone();
        let source = ParquetSource::new(schema)
            .with_table_parquet_options(TableParquetOptions { global, ..TableParquetOptions::default() });
        // A limit is only safe to apply here if no filter has rows left out after it.
        let limit = limit.filter(|_| filters.iter().all(|filter| self.is_on_partition(filter)));
        let config = FileScanConfigBuilder::new(self.store.clone(), Arc::new(source))
            .with_file_groups(groups)
            .with_projection_indices(projection.cloned())?
            .with_limit(limit)
            .with_expr_adapter(Some(Arc::new(AdapterFactory)))
            .build();
        Ok(DataSourceExec::from_data_source(config))
    }
}
