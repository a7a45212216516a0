//! Collecting rows where they are read: a scan and the `collect_*` of its rows as one operator.
//!
//! A statement says `SELECT job_id, collect_runtime(…) FROM telemetry.runtime GROUP BY job_id`. As planned, the scan makes a
//! text of the job's name for every row, and the aggregate hashes that text again. Files hold names in dictionaries: this
//! rule puts an operator in the place of the scan and the partial aggregate which reads them as such, looks up each name
//! once, and each row by its number. What it gives is what the partial aggregate gave: partial results, which merge
//! by concatenation, so that it may also give them away at any time when memory is short.
//!
//! Statements that group or filter in another way keep the plan that they had.

use std::collections::{BTreeSet, VecDeque};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arrow::array::{
    Array, ArrayRef, AsArray, DictionaryArray, LargeBinaryBuilder, RecordBatch, StringViewBuilder, new_null_array,
};
use arrow::datatypes::{DataType, Field, Int32Type, Schema, SchemaRef, TimeUnit};
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::common::{DataFusionError, HashMap, Result, ScalarValue, exec_err, internal_err};
use datafusion::config::ConfigOptions;
use datafusion::datasource::listing::{FileRange, PartitionedFile};
use datafusion::datasource::object_store::ObjectStoreUrl;
use datafusion::datasource::physical_plan::ParquetSource;
use datafusion::datasource::source::DataSourceExec;
use datafusion::execution::TaskContext;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryReservation};
use datafusion::physical_expr::expressions::{Column, Literal};
use datafusion::physical_expr::{EquivalenceProperties, Partitioning, PhysicalExpr};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::aggregates::{AggregateExec, AggregateMode};
use datafusion::physical_plan::coop::CooperativeExec;
use datafusion::physical_plan::execution_plan::{
    Boundedness, ChildrenPropertiesMode, EmissionType, ReplaceChildrenOptions, SchedulingType,
};
use datafusion::physical_plan::repartition::RepartitionExec;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties, SendableRecordBatchStream,
};
use futures::{StreamExt, TryStreamExt, stream};
use goodput_accounting::encoding::Collector;
use object_store::ObjectStore;
use parquet::arrow::arrow_reader::{ArrowReaderMetadata, ArrowReaderOptions};
use parquet::arrow::async_reader::ParquetRecordBatchStream;
use parquet::arrow::{ParquetRecordBatchStreamBuilder, ProjectionMask};
use parquet::basic::Type as PhysicalType;
use parquet::file::metadata::RowGroupMetaData;

use crate::adapt::convert;
use crate::footers::StoreReader;
use crate::functions::collect::{Collect, Rows, Takes};
use crate::schema::UTC;

/// Rows that are decoded at a time.
const ROWS_AT_A_TIME: usize = 8192;

/// Texts as files hold them.
fn dictionary() -> DataType {
    DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8))
}

/// The rule.
#[derive(Debug, Default)]
pub(crate) struct GatherAtScan {
    /// Counts the rows that are gathered.
    pub(crate) rows: Arc<AtomicU64>,
}

impl PhysicalOptimizerRule for GatherAtScan {
    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, _: &ConfigOptions) -> Result<Arc<dyn ExecutionPlan>> {
        let gather = |plan: Arc<dyn ExecutionPlan>| match gathering(&plan, &self.rows) {
            Some(gather) => Ok(Transformed::yes(gather)),
            None => Ok(Transformed::no(plan)),
        };
        plan.transform_down(gather).data()
    }

    fn name(&self) -> &str {
        "gather_at_scan"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// The operator that can stand in the place of a plan, if it is the partial aggregate of a scan that collects by one column.
fn gathering(plan: &Arc<dyn ExecutionPlan>, rows: &Arc<AtomicU64>) -> Option<Arc<dyn ExecutionPlan>> {
    let aggregate = plan.downcast_ref::<AggregateExec>()?;
    let ([collect], [None], true) =
        (aggregate.aggr_expr(), aggregate.filter_expr(), *aggregate.mode() == AggregateMode::Partial)
    else {
        return None;
    };
    let takes = collect.fun().inner().downcast_ref::<Collect>()?.takes();
    let groups = aggregate.group_expr();
    let ([(group, _)], true) = (groups.expr(), groups.is_single()) else { return None };
    let scan = scan_below(aggregate.input())?;
    let (config, _) = scan.downcast_to_file_source::<ParquetSource>()?;
    let source = config.file_source();
    let is_whole = source.projection().is_none_or(|projection| {
        projection.iter().all(|column| column.expr.downcast_ref::<Column>().is_some_and(|of| of.name() == column.alias))
    });
    if config.limit.is_some() || source.filter().is_some() || !is_whole {
        return None;
    }
    let table = source.table_schema();
    let argument = |expression: &Arc<dyn PhysicalExpr>| {
        if let Some(constant) = expression.downcast_ref::<Literal>() {
            return Some(Argument::Constant(constant.value().clone()));
        }
        let name = expression.downcast_ref::<Column>()?.name();
        if let Some(at) = table.table_partition_cols().iter().position(|field| field.name() == name) {
            return Some(Argument::Partition(at));
        }
        let field = table.file_schema().field_with_name(name).ok()?;
        Some(Argument::Column(name.to_owned(), field.data_type().clone()))
    };
    let group = match argument(group)? {
        Argument::Column(name, DataType::Utf8View) => name,
        _ => return None,
    };
    let what = What {
        takes,
        group,
        arguments: collect.expressions().iter().map(argument).collect::<Option<_>>()?,
        store: config.object_store_url.clone(),
        rows: Arc::clone(rows),
    };
    let groups = config.file_groups.iter().map(|group| group.files().to_vec()).collect();
    Some(Arc::new(GatherExec::new(what, groups, aggregate.schema())))
}

/// The scan of files below operators that do nothing to rows.
fn scan_below(plan: &Arc<dyn ExecutionPlan>) -> Option<&DataSourceExec> {
    if let Some(scan) = plan.downcast_ref::<DataSourceExec>() {
        return Some(scan);
    }
    let is_round_robin =
        |repartition: &RepartitionExec| matches!(repartition.partitioning(), Partitioning::RoundRobinBatch(_));
    if let Some(repartition) = plan.downcast_ref::<RepartitionExec>().filter(|plan| is_round_robin(plan)) {
        return scan_below(repartition.input());
    }
    plan.downcast_ref::<CooperativeExec>().and_then(|plan| scan_below(plan.input()))
}

/// Collects the rows of each group of files.
struct GatherExec {
    what: Arc<What>,
    /// The files of each partition.
    files: Vec<Vec<PartitionedFile>>,
    properties: Arc<PlanProperties>,
}

/// What is gathered.
struct What {
    takes: Takes,
    /// The column by which rows are grouped.
    group: String,
    arguments: Vec<Argument>,
    store: ObjectStoreUrl,
    /// Counts the rows.
    rows: Arc<AtomicU64>,
}

/// What an argument of the aggregate is.
#[derive(Debug)]
enum Argument {
    /// A column of the files, to be read as a type.
    Column(String, DataType),
    /// A value that the path of a file gives.
    Partition(usize),
    /// The same for all rows.
    Constant(ScalarValue),
}

impl GatherExec {
    fn new(what: What, files: Vec<Vec<PartitionedFile>>, schema: SchemaRef) -> GatherExec {
        let partitioning = Partitioning::UnknownPartitioning(files.len());
        let equivalences = EquivalenceProperties::new(schema);
        let properties = PlanProperties::new(equivalences, partitioning, EmissionType::Final, Boundedness::Bounded);
        let properties = properties.with_scheduling_type(SchedulingType::Cooperative);
        GatherExec { what: Arc::new(what), files, properties: Arc::new(properties) }
    }
}

impl fmt::Debug for GatherExec {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.fmt_as(DisplayFormatType::Default, formatter)
    }
}

impl DisplayAs for GatherExec {
    fn fmt_as(&self, _: DisplayFormatType, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (what, files) = (&self.what, self.files.iter().map(Vec::len).sum::<usize>());
        write!(formatter, "GatherExec: {:?} of {files} files by {}", what.takes, what.group)
    }
}

impl ExecutionPlan for GatherExec {
    fn name(&self) -> &str {
        "GatherExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        Vec::new()
    }

    fn apply_expressions(
        &self,
        _: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn replace_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
        _: ReplaceChildrenOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        if children.is_empty() { Ok(self) } else { internal_err!("a gathering has no children") }
    }

    fn with_new_children(self: Arc<Self>, children: Vec<Arc<dyn ExecutionPlan>>) -> Result<Arc<dyn ExecutionPlan>> {
        self.replace_children(children, ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute))
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let consumer = MemoryConsumer::new(format!("GatherExec[{partition}]")).with_can_spill(true);
        let gathering = Gathering {
            store: context.runtime_env().object_store(&self.what.store)?,
            what: Arc::clone(&self.what),
            files: self.files.get(partition).cloned().unwrap_or_default().into(),
            open: None,
            schema: self.schema(),
            reservation: consumer.register(context.memory_pool()),
            groups: Groups::default(),
            batch_size: context.session_config().batch_size(),
        };
        let batches = stream::try_unfold(gathering, |mut gathering| async move {
            Ok::<_, DataFusionError>(gathering.next().await?.map(|batches| (batches, gathering)))
        });
        let batches = batches.flat_map(|batches| match batches {
            Ok(batches) => stream::iter(batches.into_iter().map(Ok)).left_stream(),
            Err(error) => stream::iter([Err(error)]).right_stream(),
        });
        Ok(Box::pin(RecordBatchStreamAdapter::new(self.schema(), batches)))
    }
}

/// A gathering under way.
struct Gathering {
    store: Arc<dyn ObjectStore>,
    what: Arc<What>,
    /// The files that are still to be read.
    files: VecDeque<PartitionedFile>,
    open: Option<(PartitionedFile, ParquetRecordBatchStream<StoreReader>)>,
    schema: SchemaRef,
    reservation: MemoryReservation,
    groups: Groups,
    batch_size: usize,
}

impl Gathering {
    /// What was gathered until memory ran out or the input ended; `None` if there is nothing more.
    async fn next(&mut self) -> Result<Option<Vec<RecordBatch>>> {
        while let Some((file, batch)) = self.read().await? {
            self.take(&file, &batch)?;
            // Others have work to do, too.
            tokio::task::consume_budget().await;
            if self.reservation.try_resize(self.groups.bytes()).is_err() {
                return self.give().map(Some);
            }
        }
        if self.groups.names.is_empty() { Ok(None) } else { self.give().map(Some) }
    }

    /// The next rows, and the file in which they are.
    async fn read(&mut self) -> Result<Option<(PartitionedFile, RecordBatch)>> {
        loop {
            if let Some((file, batches)) = &mut self.open {
                if let Some(batch) = batches.try_next().await? {
                    return Ok(Some((file.clone(), batch)));
                }
                self.open = None;
            }
            let Some(file) = self.files.pop_front() else { return Ok(None) };
            let reader = StoreReader { store: Arc::clone(&self.store), file: file.object_meta.clone() };
            let names = self.what.arguments.iter().filter_map(|argument| match argument {
                Argument::Column(name, _) => Some(name.as_str()),
                _ => None,
            });
            let names: BTreeSet<&str> = names.chain([self.what.group.as_str()]).collect();
            let batches = open(reader, &names, file.range.as_ref()).await?;
            self.open = Some((file, batches));
        }
    }

    fn take(&mut self, file: &PartitionedFile, batch: &RecordBatch) -> Result<()> {
        let number = batch.num_rows();
        let value = |argument: &Argument| match argument {
            Argument::Constant(value) => value.to_array_of_size(number),
            Argument::Partition(at) => match file.partition_values.get(*at) {
                Some(value) => value.to_array_of_size(number),
                None => internal_err!("a file has no partition value {at}"),
            },
            Argument::Column(name, DataType::Utf8View) => converted(batch, name, &dictionary()),
            Argument::Column(name, wanted) => converted(batch, name, wanted),
        };
        let values = self.what.arguments.iter().map(value).collect::<Result<Vec<ArrayRef>>>()?;
        let rows = Rows::new(self.what.takes, &values)?;
        let names = converted(batch, &self.what.group, &dictionary())?;
        let Some(names) = names.as_dictionary_opt::<Int32Type>() else {
            return internal_err!("groups are {}, not a dictionary", names.data_type());
        };
        self.groups.append(names, &rows)?;
        self.what.rows.fetch_add(number as u64, Ordering::Relaxed);
        Ok(())
    }

    /// Everything gathered so far, in batches.
    fn give(&mut self) -> Result<Vec<RecordBatch>> {
        let (names, collected) = self.groups.give();
        self.reservation.free();
        let whole = RecordBatch::try_new(Arc::clone(&self.schema), vec![names, collected])?;
        let begins = (0..whole.num_rows()).step_by(self.batch_size.max(1));
        Ok(begins.map(|begin| whole.slice(begin, self.batch_size.min(whole.num_rows() - begin))).collect())
    }
}

/// Opens a file to read some of its columns, those that it has, or the row groups that begin in a part of it. Texts come as
/// dictionaries, which is how files hold them, whatever their writer called them.
async fn open(
    mut reader: StoreReader,
    names: &BTreeSet<&str>,
    part: Option<&FileRange>,
) -> Result<ParquetRecordBatchStream<StoreReader>> {
    let stored = ArrowReaderMetadata::load_async(&mut reader, ArrowReaderOptions::default()).await?;
    let footer = Arc::clone(stored.metadata());
    let columns = footer.file_metadata().schema_descr();
    let field = |(at, field): (usize, &Arc<Field>)| {
        let wanted = match field.data_type() {
            _ if !names.contains(field.name().as_str()) => None,
            DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View | DataType::Dictionary(..) => Some(dictionary()),
            // As nanoseconds they would only reach from 1677 to 2262.
            DataType::Timestamp(..) if columns.column(at).physical_type() == PhysicalType::INT96 => {
                Some(DataType::Timestamp(TimeUnit::Microsecond, Some(UTC.into())))
            }
            _ => None,
        };
        wanted.map_or_else(|| Arc::clone(field), |wanted| Arc::new(field.as_ref().clone().with_data_type(wanted)))
    };
    // Fields and columns of the file are the same where nothing is nested; else it is read as its writer said.
    let is_flat = stored.schema().fields().len() == columns.num_columns();
    let as_wanted = if is_flat {
        let fields: Vec<_> = stored.schema().fields().iter().enumerate().map(field).collect();
        let options = ArrowReaderOptions::default().with_schema(Arc::new(Schema::new(fields)));
        ArrowReaderMetadata::try_new(Arc::clone(&footer), options).ok()
    } else {
        None
    };
    let fields = stored.schema().fields().iter().enumerate();
    let roots = fields.filter(|(_, field)| names.contains(field.name().as_str())).map(|(at, _)| at);
    let projection = ProjectionMask::roots(columns, roots);
    let mut builder = ParquetRecordBatchStreamBuilder::new_with_metadata(reader, as_wanted.unwrap_or(stored))
        .with_projection(projection)
        .with_batch_size(ROWS_AT_A_TIME);
    if let Some(part) = part {
        let begins_in_part = |group: &RowGroupMetaData| {
            let first = group.column(0);
            let begin = first.dictionary_page_offset().unwrap_or_else(|| first.data_page_offset());
            part.start <= begin && begin < part.end
        };
        let groups = footer.row_groups().iter().enumerate();
        builder =
            builder.with_row_groups(groups.filter(|(_, group)| begins_in_part(group)).map(|(at, _)| at).collect());
    }
    Ok(builder.build()?)
}

/// A column of a file as a type of the contract; nulls if the file does not have it.
fn converted(batch: &RecordBatch, name: &str, wanted: &DataType) -> Result<ArrayRef> {
    match batch.column_by_name(name) {
        Some(column) => Ok(convert(column, wanted)?),
        None => Ok(new_null_array(wanted, batch.num_rows())),
    }
}

/// The groups that were met, and their rows.
#[derive(Default)]
struct Groups {
    number_of: HashMap<Option<Arc<str>>, usize>,
    names: Vec<Option<Arc<str>>>,
    collectors: Vec<Collector>,
    /// Bytes set aside by the collectors, and by names.
    collected: usize,
    named: usize,
    /// The dictionary that came last, and which group each of its entries is, as far as that was asked.
    values: Option<ArrayRef>,
    number_of_key: Vec<Option<usize>>,
}

impl Groups {
    fn append(&mut self, names: &DictionaryArray<Int32Type>, rows: &Rows<'_>) -> Result<()> {
        let Some(values) = names.values().as_string_opt::<i32>() else {
            return exec_err!("groups are a dictionary of {}", names.values().data_type());
        };
        if self.values.as_ref().is_none_or(|known| !Arc::ptr_eq(known, names.values())) {
            self.values = Some(Arc::clone(names.values()));
            self.number_of_key.clear();
            self.number_of_key.resize(values.len(), None);
        }
        let keys = names.keys();
        for row in 0..keys.len() {
            let key = if keys.is_valid(row) { usize::try_from(keys.value(row)).ok() } else { None };
            let known = key.and_then(|key| self.number_of_key.get(key).copied().flatten());
            let number = match known {
                Some(number) => number,
                None => {
                    let name = key.filter(|key| values.is_valid(*key)).map(|key| values.value(key));
                    let number = self.number(name);
                    if let Some(place) = key.and_then(|key| self.number_of_key.get_mut(key)) {
                        *place = Some(number);
                    }
                    number
                }
            };
            let collector = &mut self.collectors[number];
            let before = collector.capacity_bytes();
            rows.append(row, collector);
            self.collected += collector.capacity_bytes() - before;
        }
        Ok(())
    }

    /// The number of a group by its name.
    fn number(&mut self, name: Option<&str>) -> usize {
        let name: Option<Arc<str>> = name.map(Arc::from);
        if let Some(number) = self.number_of.get(&name) {
            return *number;
        }
        let number = self.names.len();
        self.named += name.as_ref().map_or(0, |name| name.len());
        self.number_of.insert(name.clone(), number);
        self.names.push(name);
        self.collectors.push(Collector::default());
        number
    }

    /// What is set aside, and once more as much for what will be given away.
    fn bytes(&self) -> usize {
        // A name stands in the map and in the list.
        let of_group = size_of::<Collector>() + 3 * size_of::<Option<Arc<str>>>() + size_of::<usize>();
        2 * self.collected + self.named + self.names.len() * of_group
    }

    /// The names and what was collected; none are left.
    fn give(&mut self) -> (ArrayRef, ArrayRef) {
        let groups = std::mem::take(self);
        let bytes = groups.collectors.iter().map(Collector::len).sum();
        let mut names = StringViewBuilder::with_capacity(groups.names.len());
        let mut collected = LargeBinaryBuilder::with_capacity(groups.collectors.len(), bytes);
        for (name, mut collector) in groups.names.iter().zip(groups.collectors) {
            names.append_option(name.as_deref());
            collected.append_value(collector.take());
        }
        (Arc::new(names.finish()), Arc::new(collected.finish()))
    }
}
