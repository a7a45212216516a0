//! Understanding a pipeline file: variables put in, paths resolved, settings checked, SQL files read.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use arrow::datatypes::Schema;
use goodput_accounting::rules::{Accelerator, IdealModel, SizeClass};
use goodput_engine::source::CsvOptions;
use goodput_engine::sql::{ColumnLists, Parameter, Parameters, SqlFile};
use goodput_model::contract::{JOB_AXES, POOL_AXES, SIZE_CLASS};
use goodput_model::{Day, Grain, Kind, Table};
use goodput_store::{Location, PublishedTable};

use crate::PipelineError;
use crate::config::{
    self, AcceleratorConfig, AuditConfig, Config, Scalar, SettingsConfig, SourceConfig, StepConfig, StepGrain,
    TypeName, line_of,
};
use crate::order::check_order;
use crate::plan::{Audit, Plan, PlanOptions, Publish, Settings, Source, SourceFormat, Step, job_axes};

/// The most days of a window on either side: a year of settling is a slip of the pen.
const MOST_SETTLE_DAYS: i64 = 366;

/// Reads a pipeline file and all that it names, but for the data.
pub(crate) fn understand(file: &Path, options: &PlanOptions) -> Result<Plan, PipelineError> {
    let place = file.display().to_string();
    let text = read_text(file, "name another pipeline with `--pipeline FILE`")?;
    let config: Config = config::parse(&place, &text)?;
    let folder = file.parent().unwrap_or(Path::new(""));
    Reader { place: &place, text: &text, config: &config, folder, options }.understand()
}

fn read_text(file: &Path, hint: &str) -> Result<String, PipelineError> {
    std::fs::read_to_string(file).map_err(|error| PipelineError::Config {
        place: file.display().to_string(),
        problem: format!("it cannot be read: {error}"),
        hint: Some(hint.to_owned()),
    })
}

/// Understands a file.
struct Reader<'a> {
    place: &'a str,
    text: &'a str,
    config: &'a Config,
    folder: &'a Path,
    options: &'a PlanOptions,
}

impl Reader<'_> {
    fn understand(&self) -> Result<Plan, PipelineError> {
        for name in self.options.variables.keys() {
            if !self.config.variables.contains_key(name) {
                let known: Vec<&str> = self.config.variables.keys().map(String::as_str).collect();
                return Err(PipelineError::Config {
                    place: self.place.to_owned(),
                    problem: format!("there is no variable `{name}` to set"),
                    hint: Some(format!("it declares {}", known.join(", "))),
                });
            }
        }
        let settings = self.settings(&self.config.settings)?;
        let telemetry = self.config.telemetry.as_ref().map(|root| self.location("telemetry", root)).transpose()?;
        let warehouse = self.location("warehouse", &self.config.warehouse)?;
        let sources = self.config.sources.iter().map(|(name, source)| self.source(name, source));
        let sources = sources.collect::<Result<Vec<_>, _>>()?;
        let steps = self.config.steps.iter().enumerate().map(|(at, step)| self.step(at, step, &warehouse));
        let steps = steps.collect::<Result<Vec<_>, _>>()?;
        let plan = Plan {
            place: self.place.to_owned(),
            name: self.config.name.clone(),
            telemetry,
            warehouse,
            sources,
            lists: column_lists(&settings),
            settings,
            steps,
            variables: self.variables()?,
        };
        check_order(&plan, |table, problem, hint| self.wrong(table, problem, hint))?;
        Ok(plan)
    }

    /// An error about a key, with its line where it can be found.
    fn wrong(&self, key: &str, problem: impl std::fmt::Display, hint: &str) -> PipelineError {
        let line = line_of(self.text, key).map(|line| format!(":{line}")).unwrap_or_default();
        PipelineError::Config {
            place: format!("{}{line}", self.place),
            problem: format!("`{key}`: {problem}"),
            hint: (!hint.is_empty()).then(|| hint.to_owned()),
        }
    }

    /// The value of a variable: as it was set, else as the file has it.
    fn variable(&self, key: &str, name: &str) -> Result<String, PipelineError> {
        if let Some(value) = self.options.variables.get(name) {
            return Ok(value.clone());
        }
        match self.config.variables.get(name) {
            Some(value) => Ok(value.to_string()),
            None => Err(self.wrong(key, format!("there is no variable `{name}`"), "declare it under `variables`")),
        }
    }

    /// A value as a text, its variables put in; and whether it begins with one that was set on the command line.
    fn text(&self, key: &str, value: &Scalar) -> Result<(String, bool), PipelineError> {
        let written = value.to_string();
        let (mut out, mut rest, mut is_set) = (String::new(), written.as_str(), false);
        while let Some((before, after)) = rest.split_once("${") {
            let Some((name, after)) = after.split_once('}') else {
                return Err(self.wrong(key, "a `${` is not closed", "write `${variable}`"));
            };
            if out.is_empty() && before.is_empty() {
                is_set = self.options.variables.contains_key(name);
            }
            out.push_str(before);
            out.push_str(&self.variable(key, name)?);
            rest = after;
        }
        out.push_str(rest);
        Ok((out, is_set))
    }

    fn location(&self, key: &str, value: &Scalar) -> Result<Location, PipelineError> {
        let (text, is_set) = self.text(key, value)?;
        let base = if is_set { &self.options.working_dir } else { &self.options.working_dir.join(self.folder) };
        Ok(Location::parse(&text, base, &self.options.stores)?)
    }

    fn number<T: std::str::FromStr>(&self, key: &str, value: &Option<Scalar>, default: T) -> Result<T, PipelineError> {
        let Some(value) = value else { return Ok(default) };
        let (text, _) = self.text(key, value)?;
        text.parse().map_err(|_| self.wrong(key, format!("`{text}` is not a number that fits here"), ""))
    }

    fn within<T: PartialOrd + std::fmt::Display>(
        &self,
        key: &str,
        value: T,
        least: T,
        most: T,
    ) -> Result<T, PipelineError> {
        if value >= least && value <= most {
            return Ok(value);
        }
        Err(self.wrong(key, format!("{value} is not between {least} and {most}"), ""))
    }

    fn settings(&self, settings: &SettingsConfig) -> Result<Settings, PipelineError> {
        let key = "settings.settle_days";
        let settle_days = self.within(key, self.number(key, &settings.settle_days, 7_i64)?, 0, MOST_SETTLE_DAYS)?;
        let key = "settings.chunk_days";
        let chunk_days = self.within(key, self.number(key, &settings.chunk_days, 15_i64)?, 1, 36_600)?;
        let key = "settings.skew_tolerance_ms";
        let skew_tolerance_ms =
            self.within(key, self.number(key, &settings.skew_tolerance_ms, 1_000_i64)?, 0, 86_400_000)?;
        let share = |key: &str, value: &Option<Scalar>| self.within(key, self.number(key, value, 0.0_f64)?, 0.0, 1.0);
        let (axes, extra_axes) = self.axes(settings.axes.as_deref())?;
        let days = |days: i64| i32::try_from(days).unwrap_or(i32::MAX);
        Ok(Settings {
            settle_days: days(settle_days),
            skew_tolerance_ms,
            chunk_days: days(chunk_days),
            size_classes: self.size_classes(settings)?,
            ideal_model: self.ideal_model(settings)?,
            accelerators: self.accelerators(settings)?,
            axes,
            extra_axes,
            excluded_files: settings.excluded_files.iter().cloned().collect(),
            least_runtime_coverage: share("settings.least_runtime_coverage", &settings.least_runtime_coverage)?,
            least_program_coverage: share("settings.least_program_coverage", &settings.least_program_coverage)?,
            most_quarantined_rows: self.number(
                "settings.most_quarantined_rows",
                &settings.most_quarantined_rows,
                i64::MAX,
            )?,
        })
    }

    fn size_classes(&self, settings: &SettingsConfig) -> Result<Vec<SizeClass>, PipelineError> {
        let key = "settings.size_classes";
        let Some(classes) = &settings.size_classes else {
            let classes = [("small", Some(16)), ("medium", Some(128)), ("large", Some(1024)), ("extra_large", None)];
            return Ok(classes.map(|(name, up_to)| SizeClass { name: name.to_owned(), up_to }).to_vec());
        };
        let limits: Vec<Option<i64>> = classes.iter().map(|class| class.up_to).collect();
        let ascends = limits.windows(2).all(|pair| match (pair[0], pair[1]) {
            (Some(lower), Some(higher)) => lower < higher,
            (lower, None) => lower.is_some(),
            (None, Some(_)) => false,
        });
        if !ascends || limits.last() != Some(&None) {
            let hint = "give every class but the last a greater `up_to` than the one before, and the last none";
            return Err(self.wrong(key, "the classes do not ascend and cover all jobs", hint));
        }
        let names: BTreeSet<&str> = classes.iter().map(|class| class.name.as_str()).collect();
        if names.len() < classes.len() {
            return Err(self.wrong(key, "two classes have one name", ""));
        }
        Ok(classes.iter().map(|class| SizeClass { name: class.name.clone(), up_to: class.up_to }).collect())
    }

    fn ideal_model(&self, settings: &SettingsConfig) -> Result<IdealModel, PipelineError> {
        let key = "settings.ideal_model";
        let Some(value) = &settings.ideal_model else { return Ok(IdealModel::Predicted) };
        match self.text(key, value)?.0.as_str() {
            "predicted" => Ok(IdealModel::Predicted),
            "compute" => Ok(IdealModel::Compute),
            "roofline" => Ok(IdealModel::Roofline),
            other => {
                Err(self.wrong(key, format!("there is no model `{other}`"), "one of predicted, compute, roofline"))
            }
        }
    }

    fn accelerators(&self, settings: &SettingsConfig) -> Result<Vec<Accelerator>, PipelineError> {
        let key = "settings.accelerators";
        let Some(value) = &settings.accelerators else { return Ok(Vec::new()) };
        let file = self.folder.join(self.text(key, value)?.0);
        let text = read_text(&file, "correct `settings.accelerators`")?;
        let place = file.display().to_string();
        let entries: Vec<AcceleratorConfig> = config::parse(&place, &text)?;
        let mut known = BTreeSet::new();
        let wrong = |entry: &AcceleratorConfig, problem: &str| PipelineError::Config {
            place: match line_of(&text, &entry.accelerator) {
                Some(line) => format!("{place}:{line}"),
                None => place.clone(),
            },
            problem: format!("accelerator `{}`: {problem}", entry.accelerator),
            hint: None,
        };
        let understand = |entry: AcceleratorConfig| {
            let from: Day = entry.from.parse().map_err(|error| wrong(&entry, &format!("`from`: {error}")))?;
            let mut figures = entry.peak_flops.values().chain(&entry.memory_bytes_per_second);
            if !figures.all(|figure| figure.is_finite() && *figure > 0.0) {
                return Err(wrong(&entry, "a figure is not above zero"));
            }
            if !known.insert((entry.accelerator.clone(), from)) {
                return Err(wrong(&entry, "there is another entry with this date"));
            }
            Ok(Accelerator {
                accelerator: entry.accelerator,
                from: from.0,
                peak_flops: entry.peak_flops,
                memory_bytes_per_second: entry.memory_bytes_per_second,
            })
        };
        entries.into_iter().map(understand).collect()
    }

    /// The axes, and those of them that are extra columns of `jobs`, by name.
    fn axes(&self, axes: Option<&[String]>) -> Result<(Vec<String>, Vec<String>), PipelineError> {
        let key = "settings.axes";
        let Some(axes) = axes else { return Ok((Vec::new(), Vec::new())) };
        let mut seen = BTreeSet::new();
        let mut extra = BTreeSet::new();
        for axis in axes {
            if !seen.insert(axis) {
                return Err(self.wrong(key, format!("axis `{axis}` is named twice"), ""));
            }
            let is_known =
                POOL_AXES.contains(&axis.as_str()) || JOB_AXES.contains(&axis.as_str()) || axis == SIZE_CLASS;
            if is_known {
                continue;
            }
            let is_contract = Table::Jobs.columns().iter().any(|column| column.name == axis);
            if is_contract || axis == "date" || axis.ends_with("_chip_ms") || axis.is_empty() {
                let hint = "an axis is cell, accelerator, size_class, or a text column of `jobs`";
                return Err(self.wrong(key, format!("`{axis}` cannot be an axis"), hint));
            }
            extra.insert(axis.clone());
        }
        if !axes.iter().any(|axis| POOL_AXES.contains(&axis.as_str())) {
            return Err(self.wrong(
                key,
                "neither `cell` nor `accelerator` is an axis",
                "capacity belongs to them: name one",
            ));
        }
        Ok((axes.to_vec(), extra.into_iter().collect()))
    }

    fn source(&self, name: &str, source: &SourceConfig) -> Result<Source, PipelineError> {
        let key = format!("sources.{name}");
        let (path, format) = match source {
            SourceConfig::Document { path } => (path, SourceFormat::Document),
            SourceConfig::Csv { path, delimiter, types } => {
                let delimiter = u8::try_from(delimiter.unwrap_or(','))
                    .map_err(|_| self.wrong(&key, "the delimiter is not one byte", ""))?;
                let kind = |name: &TypeName| match name {
                    TypeName::String => Kind::String,
                    TypeName::Int => Kind::Int,
                    TypeName::Float => Kind::Float,
                    TypeName::Timestamp => Kind::Timestamp,
                };
                let types = types.iter().map(|(column, name)| (column.clone(), kind(name))).collect();
                (path, SourceFormat::Csv(CsvOptions { delimiter, types }))
            }
        };
        Ok(Source { name: name.to_owned(), location: self.location(&key, path)?, format })
    }

    fn step(&self, at: usize, step: &StepConfig, warehouse: &Location) -> Result<Step, PipelineError> {
        let key = format!("steps[{at}]");
        let is_name = |name: &str| {
            !name.is_empty()
                && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_')
        };
        if !is_name(&step.table) || step.table == crate::audit::TABLE {
            let hint = format!("lower case, digits and `_`; `{}` is taken", crate::audit::TABLE);
            return Err(self.wrong(&step.table, "this is no name for a table", &hint));
        }
        let publish = match (step.partition_by, step.grain) {
            (None, _) if !step.sort_by.is_empty() => {
                return Err(self.wrong(
                    &step.table,
                    "`sort_by` without `partition_by`: the table is not published",
                    "",
                ));
            }
            (None, _) => None,
            (Some(_), StepGrain::Partition) => {
                let hint = "publish a table that a step of grain `day` makes of it";
                return Err(self.wrong(&step.table, "a step of grain `partition` is not published", hint));
            }
            (Some(grain), StepGrain::Quarter) if grain != Grain::Quarter => {
                return Err(self.wrong(&step.table, "a step of grain `quarter` is partitioned by quarter", ""));
            }
            (Some(_), _) if step.sort_by.is_empty() => {
                let hint = "name the columns of its key: same input, same bytes";
                return Err(self.wrong(&step.table, "a published table needs `sort_by`", hint));
            }
            (Some(grain), _) => Some(Publish {
                table: PublishedTable::new(warehouse, &step.table, grain),
                sort_by: step.sort_by.clone(),
                schema: Arc::new(Schema::empty()),
            }),
        };
        if step.grain == StepGrain::Partition && !step.audits.is_empty() {
            let hint = "audit a table that a step of grain `day` makes of it";
            return Err(self.wrong(&step.table, "a step of grain `partition` has no days to audit", hint));
        }
        let audit = |(number, audit): (usize, &AuditConfig)| {
            let sql = self.sql(&format!("{key}.audits[{number}].sql"), &audit.sql)?;
            let name = Path::new(&audit.sql).file_stem().map(|name| name.to_string_lossy().into_owned());
            Ok(Audit { name: name.unwrap_or_default(), sql, severity: audit.severity })
        };
        let audits = step.audits.iter().enumerate().map(audit).collect::<Result<_, PipelineError>>()?;
        let sql = self.sql(&format!("{key}.sql"), &step.sql)?;
        Ok(Step { table: step.table.clone(), sql, grain: step.grain, publish, audits })
    }

    fn sql(&self, key: &str, path: &str) -> Result<SqlFile, PipelineError> {
        let file = self.folder.join(path);
        let text = std::fs::read_to_string(&file).map_err(|error| {
            self.wrong(path, format!("{} cannot be read: {error}", file.display()), &format!("correct `{key}`"))
        })?;
        Ok(SqlFile::parse(&file.display().to_string(), &text)?)
    }

    fn variables(&self) -> Result<Parameters, PipelineError> {
        let mut variables = Parameters::new();
        for (name, declared) in &self.config.variables {
            let value = self.variable("variables", name)?;
            let parameter = match declared {
                Scalar::Int(_) => value.parse().map(Parameter::Int).ok(),
                Scalar::Float(_) => value.parse().map(Parameter::Float).ok(),
                Scalar::Bool(_) => value.parse().map(Parameter::Bool).ok(),
                Scalar::Text(_) => Some(Parameter::Text(value.clone())),
            };
            let Some(parameter) = parameter else {
                let problem = format!("`{value}` is not of the type that `{declared}` has");
                return Err(self.wrong(name, problem, ""));
            };
            variables.insert(name.clone(), parameter);
        }
        Ok(variables)
    }
}

fn column_lists(settings: &Settings) -> ColumnLists {
    let of = |keep: &dyn Fn(&str) -> bool| -> Vec<String> {
        settings.axes.iter().filter(|axis| keep(axis)).cloned().collect()
    };
    ColumnLists::new([
        ("axes", settings.axes.clone()),
        ("pool_axes", of(&|axis| POOL_AXES.contains(&axis))),
        ("segment_axes", of(&|axis| !POOL_AXES.contains(&axis))),
        ("job_axes", job_axes(&settings.extra_axes)),
    ])
}
