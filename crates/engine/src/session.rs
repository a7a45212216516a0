//! A DataFusion session with our settings, functions and tables.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arrow::datatypes::SchemaRef;
use arrow::record_batch::RecordBatch;
use datafusion::catalog::{MemorySchemaProvider, TableProvider};
use datafusion::common::{DataFusionError, TableReference};
use datafusion::datasource::MemTable;
use datafusion::datasource::object_store::ObjectStoreUrl;
use datafusion::execution::SessionStateBuilder;
use datafusion::execution::context::SQLOptions;
use datafusion::execution::memory_pool::{FairSpillPool, TrackConsumersPool};
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use datafusion::logical_expr::LogicalPlan;
use datafusion::physical_plan::SendableRecordBatchStream;
use datafusion::prelude::{SessionConfig, SessionContext};
use goodput_store::Location;

use crate::gather::GatherAtScan;
use crate::spill::{Spilled, spill, spilled_table};
use crate::sql::{ColumnLists, Parameters, SqlFile, parse_statement, sql_error};
use crate::{EngineError, functions};

/// The catalog of every session.
const CATALOG: &str = "fleet";
/// The schema of derived tables, which is the default.
pub const DERIVED: &str = "goodput";
/// The schema of telemetry.
pub const TELEMETRY: &str = "telemetry";
/// The schema of sources of other kinds and of what the pipeline knows about its inputs.
pub const INPUT: &str = "input";

/// Rows in a batch where memory is limited.
const ROWS_AT_A_TIME_IN_LITTLE_MEMORY: usize = 512;

/// What a session may use.
#[derive(Debug, Clone, Default)]
pub struct SessionOptions {
    /// Threads that compute; 0 for one a core.
    pub threads: usize,
    /// The most memory of the engine in bytes; work beyond it spills to disk.
    pub memory_bytes: Option<usize>,
    /// Where it spills; the system's folder for temporary files if none is given.
    pub spill_dir: Option<PathBuf>,
}

/// Batches as they come, with their columns.
pub type Rows = SendableRecordBatchStream;

/// A session.
#[derive(Clone)]
pub struct Session {
    context: SessionContext,
    rows_gathered: Arc<AtomicU64>,
}

impl Session {
    /// A session without tables.
    pub fn new(options: &SessionOptions) -> Result<Session, EngineError> {
        let cores = std::thread::available_parallelism().map_or(2, std::num::NonZero::get);
        // With one partition the engine would not use the joins that spill.
        let partitions = if options.threads == 0 { cores } else { options.threads }.max(2);
        let mut config = SessionConfig::new()
            .with_target_partitions(partitions)
            .with_information_schema(true)
            .with_create_default_catalog_and_schema(true)
            .with_default_catalog_and_schema(CATALOG, DERIVED)
            .with_collect_statistics(false);
        if options.memory_bytes.is_some() {
            config = config.with_batch_size(ROWS_AT_A_TIME_IN_LITTLE_MEMORY);
        }
        let settings = config.options_mut();
        settings.execution.time_zone = Some("UTC".to_owned());
        settings.execution.parquet.coerce_int96 = Some("us".to_owned());
        settings.execution.parquet.coerce_int96_tz = Some("UTC".to_owned());
        settings.optimizer.enable_dynamic_filter_pushdown = false;
        if let Some(bytes) = options.memory_bytes {
            // Joins that spill; and since a row may be all that is known of a job, few rows at a time, and little set aside
            // by each of the many sorts.
            settings.optimizer.prefer_hash_join = false;
            settings.execution.sort_spill_reservation_bytes = bytes / 128;
        }
        settings.sql_parser.collect_spans = true;

        let mut runtime = RuntimeEnvBuilder::new();
        if let Some(bytes) = options.memory_bytes {
            let consumers = std::num::NonZeroUsize::MIN.saturating_add(4);
            runtime = runtime.with_memory_pool(Arc::new(TrackConsumersPool::new(FairSpillPool::new(bytes), consumers)));
        }
        if let Some(folder) = &options.spill_dir {
            runtime = runtime.with_temp_file_path(folder);
        }
        let runtime = runtime.build_arc().map_err(EngineError::Setup)?;
        let gather = GatherAtScan::default();
        let rows_gathered = Arc::clone(&gather.rows);
        let state = SessionStateBuilder::new()
            .with_config(config)
            .with_runtime_env(runtime)
            .with_default_features()
            .with_physical_optimizer_rule(Arc::new(gather))
            .build();
        let mut context = SessionContext::new_with_state(state);
        datafusion_functions_json::register_all(&mut context).map_err(EngineError::Setup)?;
        functions::register(&context);
        if let Some(catalog) = context.catalog(CATALOG) {
            for schema in [TELEMETRY, INPUT] {
                catalog.register_schema(schema, Arc::new(MemorySchemaProvider::new())).map_err(EngineError::Setup)?;
            }
        }
        Ok(Session { context, rows_gathered })
    }

    /// Rows of telemetry that statements have gathered so far: what there is to see of one that runs.
    pub fn rows_gathered(&self) -> u64 {
        self.rows_gathered.load(Ordering::Relaxed)
    }

    /// Makes the store of a location known and gives the URL under which files of it are scanned.
    pub fn store(&self, location: &Location) -> Result<ObjectStoreUrl, EngineError> {
        self.context.register_object_store(location.store_url(), Arc::clone(location.store()));
        ObjectStoreUrl::parse(location.store_url()).map_err(EngineError::Setup)
    }

    /// Makes a table known, in the place of one of the same name.
    pub fn register(&self, schema: &str, name: &str, table: Arc<dyn TableProvider>) -> Result<(), EngineError> {
        let reference = TableReference::full(CATALOG, schema, name);
        self.context.deregister_table(reference.clone()).map_err(EngineError::Setup)?;
        self.context.register_table(reference, table).map(|_| ()).map_err(EngineError::Setup)
    }

    /// Makes batches known as a table.
    pub fn register_batches(
        &self,
        schema: &str,
        name: &str,
        columns: SchemaRef,
        batches: Vec<RecordBatch>,
    ) -> Result<(), EngineError> {
        let table = MemTable::try_new(columns, vec![batches]).map_err(EngineError::Setup)?;
        self.register(schema, name, Arc::new(table))
    }

    /// Plans a SQL file: names, types and functions are resolved, nothing runs.
    pub async fn plan(
        &self,
        file: &SqlFile,
        parameters: &Parameters,
        lists: &ColumnLists,
    ) -> Result<LogicalPlan, EngineError> {
        let statement = file.expanded(parameters, lists)?;
        let plan = self.context.state().statement_to_plan(statement).await;
        read_only(plan).map_err(|error| sql_error(&file.place, &error))
    }

    /// Plans a SQL file to the end, as if it were to run: types are coerced and operators chosen, nothing runs.
    pub async fn check(
        &self,
        file: &SqlFile,
        parameters: &Parameters,
        lists: &ColumnLists,
    ) -> Result<SchemaRef, EngineError> {
        let plan = self.plan(file, parameters, lists).await?;
        let schema = Arc::new(plan.schema().as_arrow().clone());
        let physical = self.context.state().create_physical_plan(&plan).await;
        physical.map(|_| schema).map_err(|error| sql_error(&file.place, &error))
    }

    /// Plans a query that a user typed.
    pub async fn plan_query(&self, query: &str) -> Result<LogicalPlan, EngineError> {
        let place = "query";
        let statement = parse_statement(place, query)?;
        let plan = self.context.state().statement_to_plan(statement).await;
        read_only(plan).map_err(|error| sql_error(place, &error))
    }

    /// Runs a plan to its end. `what` names it in messages.
    pub async fn collect(&self, what: &str, plan: LogicalPlan) -> Result<Vec<RecordBatch>, EngineError> {
        let context = self.context.clone();
        // On a task of its own: a fault in the code of a file format ends the task, not the program.
        let run = tokio::spawn(async move { context.execute_logical_plan(plan).await?.collect().await });
        let run = AbortOnDrop(run);
        let failed = |source| EngineError::Run { what: what.to_owned(), source };
        run.await.map_err(failed)?.map_err(failed)
    }

    /// Runs a plan to its end and leaves its rows in temporary files.
    pub async fn spill(&self, what: &str, plan: LogicalPlan) -> Result<Spilled, EngineError> {
        let failed = |source| EngineError::Run { what: what.to_owned(), source };
        let frame = self.context.execute_logical_plan(plan).await.map_err(failed)?;
        let context = Arc::new(frame.task_ctx());
        let plan = frame.create_physical_plan().await.map_err(failed)?;
        let run = AbortOnDrop(tokio::spawn(spill(plan, context)));
        run.await.map_err(failed)?.map_err(failed)
    }

    /// Makes what a statement left in temporary files at several times, at least once, known as one table.
    pub fn register_spilled(&self, schema: &str, name: &str, pieces: &[Spilled]) -> Result<(), EngineError> {
        match spilled_table(pieces) {
            Some(table) => self.register(schema, name, table),
            None => Ok(()),
        }
    }

    /// Starts a plan and gives its batches as they come.
    pub async fn stream(&self, what: &str, plan: LogicalPlan) -> Result<Rows, EngineError> {
        let failed = |source| EngineError::Run { what: what.to_owned(), source };
        let frame = self.context.execute_logical_plan(plan).await.map_err(failed)?;
        frame.execute_stream().await.map_err(failed)
    }
}

/// Lets queries through and nothing that writes or sets.
fn read_only(plan: Result<LogicalPlan, DataFusionError>) -> Result<LogicalPlan, DataFusionError> {
    let plan = plan?;
    let options = SQLOptions::new().with_allow_ddl(false).with_allow_dml(false).with_allow_statements(false);
    options.verify_plan(&plan)?;
    Ok(plan)
}

/// A task that ends when nobody waits for it any more.
struct AbortOnDrop<T>(tokio::task::JoinHandle<T>);

impl<T> Drop for AbortOnDrop<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl<T> Future for AbortOnDrop<T> {
    type Output = Result<T, DataFusionError>;

    fn poll(mut self: std::pin::Pin<&mut Self>, context: &mut std::task::Context<'_>) -> std::task::Poll<Self::Output> {
        let poll = std::pin::Pin::new(&mut self.0).poll(context);
        poll.map_err(|error| DataFusionError::Execution(format!("a task of the engine broke off: {error}")))
    }
}
