//! What a pipeline file means: everything resolved, and every SQL file planned, before anything runs.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use goodput_accounting::Rules;
use goodput_accounting::rules::{Accelerator, IdealModel, SizeClass};
use goodput_engine::session::DERIVED;
use goodput_engine::source::{CsvOptions, register_csv, register_document};
use goodput_engine::sql::{ColumnLists, Parameter, Parameters, SqlFile};
use goodput_engine::write::plain_schema;
use goodput_engine::{Session, SessionOptions};
use goodput_model::contract::JOB_AXES;
use goodput_model::{Day, METRIC_VERSION};
use goodput_store::{Location, PublishedTable, StoreOptions};
use twox_hash::XxHash64;

use crate::PipelineError;
use crate::config::{Severity, StepGrain};
use crate::inputs::register_empty_inputs;
use crate::state::Basis;
use crate::understand::understand;

/// What the command line and the environment have to say.
#[derive(Debug, Clone, Default)]
pub struct PlanOptions {
    /// Variables that are overridden.
    pub variables: BTreeMap<String, String>,
    /// What relative paths of overridden variables are relative to.
    pub working_dir: PathBuf,
    /// Settings of stores.
    pub stores: StoreOptions,
    /// What the engine may use.
    pub session: SessionOptions,
}

/// A pipeline, understood.
#[derive(Debug, Clone)]
pub struct Plan {
    /// The file.
    pub place: String,
    /// What it is called.
    pub name: String,
    /// The root of the telemetry, if it reads any.
    pub telemetry: Option<Location>,
    /// The root of the tables that are published.
    pub warehouse: Location,
    /// Sources that are not contract telemetry.
    pub sources: Vec<Source>,
    /// What figures depend on.
    pub settings: Settings,
    /// What is computed, in order.
    pub steps: Vec<Step>,
    /// The columns that a pipeline chooses.
    pub lists: ColumnLists,
    /// Variables as they hold for this run, which statements may use.
    pub(crate) variables: Parameters,
}

/// A source that is not contract telemetry.
#[derive(Debug, Clone)]
pub struct Source {
    /// Its table in the schema `input`.
    pub name: String,
    /// Where it lies.
    pub location: Location,
    /// How it is read.
    pub format: SourceFormat,
}

/// How a source is read.
#[derive(Debug, Clone)]
pub enum SourceFormat {
    /// As CSV.
    Csv(CsvOptions),
    /// As one text.
    Document,
}

/// What figures depend on.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Days of the window on either side.
    pub settle_days: i32,
    /// How far an end may lie before its start.
    pub skew_tolerance_ms: i64,
    /// Days computed together.
    pub chunk_days: i32,
    /// Size classes, ascending.
    pub size_classes: Vec<SizeClass>,
    /// What supplies an ideal step time.
    pub ideal_model: IdealModel,
    /// What chips can do.
    pub accelerators: Vec<Accelerator>,
    /// The segments.
    pub axes: Vec<String>,
    /// Columns of `jobs` beside the contract's that are axes, by name.
    pub extra_axes: Vec<String>,
    /// Data files that are not read, by their path below the telemetry root.
    pub excluded_files: BTreeSet<String>,
    /// The share of allocated chip-time that is to be observed.
    pub least_runtime_coverage: f64,
    /// The share of productive chip-time that is to be profiled.
    pub least_program_coverage: f64,
    /// The quarantined rows of a day and table that are put up with.
    pub most_quarantined_rows: i64,
}

/// A step, understood.
#[derive(Debug, Clone)]
pub struct Step {
    /// The table that it makes.
    pub table: String,
    /// Its statement.
    pub sql: SqlFile,
    /// What it is computed for at a time.
    pub grain: StepGrain,
    /// Where it is published; `None` for a table that only later steps read.
    pub publish: Option<Publish>,
    /// What must hold before it is published.
    pub audits: Vec<Audit>,
}

/// Where a step's table is published.
#[derive(Debug, Clone)]
pub struct Publish {
    /// The table in the warehouse.
    pub table: PublishedTable,
    /// The columns by which rows are sorted.
    pub sort_by: Vec<String>,
    /// Its columns, of plain types.
    pub schema: arrow::datatypes::SchemaRef,
}

/// An audit, understood.
#[derive(Debug, Clone)]
pub struct Audit {
    /// The name of its file.
    pub name: String,
    /// Its statement.
    pub sql: SqlFile,
    /// What an offending row leads to.
    pub severity: Severity,
}

/// The parts of the parameters that change from chunk to chunk.
#[derive(Debug, Clone, Copy)]
pub struct Moment<'a> {
    /// First day to book.
    pub from: Day,
    /// Last day to book.
    pub to: Day,
    /// The last day that is not provisional.
    pub settled_through: Day,
    /// The run.
    pub run_id: &'a str,
    /// For each table the days that have a partition.
    pub partitions: &'a [Vec<i32>; 5],
}

impl Plan {
    /// Reads and understands a pipeline file, and plans all its SQL.
    pub async fn load(file: &Path, options: &PlanOptions) -> Result<Plan, PipelineError> {
        let mut plan = understand(file, options)?;
        plan.plan_statements(&options.session).await?;
        Ok(plan)
    }

    /// All parameters of statements.
    pub fn parameters(&self, moment: Moment<'_>) -> Result<Parameters, PipelineError> {
        let settings = &self.settings;
        let rules = Rules {
            from: moment.from.0,
            to: moment.to.0,
            settle_days: settings.settle_days,
            skew_tolerance_ms: settings.skew_tolerance_ms,
            job_axes: self.job_axes(),
            size_classes: settings.size_classes.clone(),
            ideal_model: settings.ideal_model,
            accelerators: settings.accelerators.clone(),
            partitions: moment.partitions.clone(),
        };
        let rules = serde_json::to_string(&rules).map_err(|error| PipelineError::Fault(error.to_string()))?;
        let mut parameters = self.variables.clone();
        parameters.extend([
            ("rules".to_owned(), Parameter::Text(rules)),
            ("from".to_owned(), Parameter::Date(moment.from)),
            ("to".to_owned(), Parameter::Date(moment.to)),
            ("settled_through".to_owned(), Parameter::Date(moment.settled_through)),
            ("run_id".to_owned(), Parameter::Text(moment.run_id.to_owned())),
            ("metric_version".to_owned(), Parameter::Int(METRIC_VERSION)),
            ("skew_tolerance_ms".to_owned(), Parameter::Int(settings.skew_tolerance_ms)),
            ("least_runtime_coverage".to_owned(), Parameter::Float(settings.least_runtime_coverage)),
            ("least_program_coverage".to_owned(), Parameter::Float(settings.least_program_coverage)),
            ("most_quarantined_rows".to_owned(), Parameter::Int(settings.most_quarantined_rows)),
        ]);
        Ok(parameters)
    }

    /// The columns of `jobs` that `job_day` carries: the contract's axes, then the extra ones.
    pub fn job_axes(&self) -> Vec<String> {
        job_axes(&self.settings.extra_axes)
    }

    /// What the figures of days depend on beside the telemetry and the version of the metric, by name: settings, the
    /// variables that statements use, and of each statement a hash.
    pub fn basis(&self) -> Basis {
        let settings = &self.settings;
        let json = |value: serde_json::Result<String>| value.unwrap_or_default();
        let mut basis = self.basis_of(|step| step.grain != StepGrain::Quarter);
        basis.extend([
            ("settle_days".to_owned(), settings.settle_days.to_string()),
            ("skew_tolerance_ms".to_owned(), settings.skew_tolerance_ms.to_string()),
            ("size_classes".to_owned(), json(serde_json::to_string(&settings.size_classes))),
            ("ideal_model".to_owned(), json(serde_json::to_string(&settings.ideal_model))),
            ("accelerators".to_owned(), json(serde_json::to_string(&settings.accelerators))),
            ("axes".to_owned(), settings.axes.join(", ")),
            ("axes of jobs".to_owned(), self.job_axes().join(", ")),
        ]);
        basis
    }

    /// What the figures of quarters depend on beside those of their days.
    pub fn basis_of_quarters(&self) -> Basis {
        self.basis_of(|step| step.grain == StepGrain::Quarter)
    }

    fn basis_of(&self, is_meant: impl Fn(&Step) -> bool) -> Basis {
        let mut basis = Basis::new();
        for step in self.steps.iter().filter(|step| is_meant(step)) {
            let hash = XxHash64::oneshot(0, step.sql.normalized().as_bytes());
            basis.insert(format!("statement of {}", step.table), format!("{hash:016x}"));
            for name in step.sql.parameters() {
                if let Some(value) = self.variables.get(&name) {
                    basis.insert(format!("variable {name}"), format!("{value:?}"));
                }
            }
        }
        basis
    }

    /// The tables that are published by days.
    pub fn published_by_day(&self) -> impl Iterator<Item = (&str, &Publish)> {
        self.published_with_grain(StepGrain::Day)
    }

    /// The tables that are published by quarters.
    pub fn published_by_quarter(&self) -> impl Iterator<Item = (&str, &Publish)> {
        self.published_with_grain(StepGrain::Quarter)
    }

    fn published_with_grain(&self, grain: StepGrain) -> impl Iterator<Item = (&str, &Publish)> {
        let of_grain = self.steps.iter().filter(move |step| step.grain == grain);
        of_grain.filter_map(|step| Some((step.table.as_str(), step.publish.as_ref()?)))
    }

    /// The tables of days from which quarters are computed.
    pub fn sources_of_quarters(&self) -> impl Iterator<Item = (&str, &Publish)> {
        let quarterly = |table: &str| {
            let mut steps = self.steps.iter().filter(|step| step.grain == StepGrain::Quarter);
            steps.any(|step| step.sql.reads.contains(table))
        };
        self.published_by_day().filter(move |(table, _)| quarterly(table))
    }

    /// Makes the sources known to a session.
    pub async fn register_sources(&self, session: &Session) -> Result<(), PipelineError> {
        for source in &self.sources {
            match &source.format {
                SourceFormat::Csv(options) => register_csv(session, &source.name, &source.location, options).await?,
                SourceFormat::Document => register_document(session, &source.name, &source.location).await?,
            }
        }
        Ok(())
    }

    /// Plans every statement over tables without rows, and learns the columns of the tables that are published.
    async fn plan_statements(&mut self, options: &SessionOptions) -> Result<(), PipelineError> {
        let session = Session::new(options)?;
        register_empty_inputs(&session, &self.settings.extra_axes)?;
        self.register_sources(&session).await?;
        let day = Day(0);
        let moment = Moment { from: day, to: day, settled_through: day, run_id: "", partitions: &Default::default() };
        let parameters = self.parameters(moment)?;
        let lists = self.lists.clone();
        for step in &mut self.steps {
            let schema = session.check(&step.sql, &parameters, &lists).await?;
            if let Some(publish) = &mut step.publish {
                let table = &step.table;
                publish.schema =
                    plain_schema(&schema).map_err(|error| wrong_table(&step.sql.place, &error.to_string()))?;
                for name in &publish.sort_by {
                    if publish.schema.index_of(name).is_err() {
                        let problem = format!("table `{table}` is to be sorted by `{name}`, which it does not have");
                        return Err(wrong_table(&self.place, &problem));
                    }
                }
                let needed = match step.grain {
                    StepGrain::Quarter => "quarter",
                    StepGrain::Partition | StepGrain::Day | StepGrain::Run => "date",
                };
                if publish.schema.index_of(needed).is_err() {
                    let problem = format!("table `{table}` has no column `{needed}`, by which it is published");
                    return Err(wrong_table(&step.sql.place, &problem));
                }
            }
            session.register_batches(DERIVED, &step.table, schema, Vec::new())?;
        }
        for step in &self.steps {
            for audit in &step.audits {
                if session.check(&audit.sql, &parameters, &lists).await?.index_of("date").is_err() {
                    return Err(wrong_table(
                        &audit.sql.place,
                        "the audit has no column `date`: it must say which day offends",
                    ));
                }
            }
        }
        Ok(())
    }
}

fn wrong_table(place: &str, problem: &str) -> PipelineError {
    PipelineError::Config { place: place.to_owned(), problem: problem.to_owned(), hint: None }
}

/// The contract's axes, then the extra ones.
pub(crate) fn job_axes(extra: &[String]) -> Vec<String> {
    JOB_AXES.iter().map(|axis| (*axis).to_owned()).chain(extra.iter().cloned()).collect()
}
