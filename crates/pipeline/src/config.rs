//! What a pipeline file says.
//!
//! Values may be written as `${variable}`; they are put in when the file is understood ([`crate::plan`]). Unknown keys are
//! errors that name line and column.

use std::collections::BTreeMap;

use goodput_model::Grain;
use serde::Deserialize;

use crate::PipelineError;

/// A pipeline file.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// What the pipeline is called.
    pub name: String,
    /// What `--set` may override, with the values that hold otherwise.
    #[serde(default)]
    pub variables: BTreeMap<String, Scalar>,
    /// The root of the telemetry, for pipelines that read it.
    pub telemetry: Option<Scalar>,
    /// The root of the tables that are published.
    pub warehouse: Scalar,
    /// Other sources, by the name of their table in the schema `input`.
    #[serde(default)]
    pub sources: BTreeMap<String, SourceConfig>,
    /// What figures depend on.
    #[serde(default)]
    pub settings: SettingsConfig,
    /// What is computed, in order.
    pub steps: Vec<StepConfig>,
}

/// A source that is not contract telemetry.
#[derive(Debug, Clone, Deserialize)]
#[serde(tag = "format", rename_all = "snake_case", deny_unknown_fields)]
pub enum SourceConfig {
    /// A CSV file with a line of column names.
    Csv {
        /// Where.
        path: Scalar,
        /// The character between fields; a comma if absent.
        delimiter: Option<char>,
        /// Columns that are not texts: `int`, `float`, `timestamp`.
        #[serde(default)]
        types: BTreeMap<String, TypeName>,
    },
    /// A whole file as one row: `path`, `content`.
    Document {
        /// Where.
        path: Scalar,
    },
}

/// The type of a column of a CSV file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TypeName {
    /// Text.
    String,
    /// 64-bit integer.
    Int,
    /// 64-bit float.
    Float,
    /// An instant.
    Timestamp,
}

/// What figures depend on; the main job sets all, an adapter none.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SettingsConfig {
    /// Days of the window on either side.
    pub settle_days: Option<Scalar>,
    /// How far an end may lie before its start.
    pub skew_tolerance_ms: Option<Scalar>,
    /// Days computed together.
    pub chunk_days: Option<Scalar>,
    /// Jobs by the chips that they need.
    pub size_classes: Option<Vec<SizeClassConfig>>,
    /// What supplies an ideal step time.
    pub ideal_model: Option<Scalar>,
    /// The file that says what chips can do.
    pub accelerators: Option<Scalar>,
    /// The segments.
    pub axes: Option<Vec<String>>,
    /// Data files that are not read, by their path below the telemetry root.
    pub excluded_files: Vec<String>,
    /// The share of allocated chip-time that is to be observed.
    pub least_runtime_coverage: Option<Scalar>,
    /// The share of productive chip-time that is to be profiled.
    pub least_program_coverage: Option<Scalar>,
    /// The quarantined rows of a day and table that are put up with.
    pub most_quarantined_rows: Option<Scalar>,
}

/// A size class.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SizeClassConfig {
    /// What segments call it.
    pub name: String,
    /// The most chips of a job in it; absent in the last.
    pub up_to: Option<i64>,
}

/// A step.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StepConfig {
    /// The table that it makes.
    pub table: String,
    /// The SQL file.
    pub sql: String,
    /// What it is computed for at a time.
    pub grain: StepGrain,
    /// How its partitions are cut; absent for a table that later steps read and nobody else.
    pub partition_by: Option<Grain>,
    /// The columns by which rows are sorted, which make every row's place certain.
    #[serde(default)]
    pub sort_by: Vec<String>,
    /// What must hold before it is published.
    #[serde(default)]
    pub audits: Vec<AuditConfig>,
}

/// What a step is computed for at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StepGrain {
    /// Partitions of telemetry, each read once: what is made of them is kept for as long as a day's window asks for it.
    Partition,
    /// A chunk of days, from the windows of the days.
    Day,
    /// The quarters that the run touched, from published tables.
    Quarter,
    /// The whole run at once: sources have no days.
    Run,
}

/// An audit of a step.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AuditConfig {
    /// The SQL file: it returns the rows that offend, with a column `date`.
    pub sql: String,
    /// What an offending row leads to.
    pub severity: Severity,
}

/// What an offending row leads to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// Its day is not published.
    Blocking,
    /// It is shown and kept.
    Warning,
}

impl Severity {
    /// The word in files and tables.
    pub fn name(self) -> &'static str {
        match self {
            Severity::Blocking => "blocking",
            Severity::Warning => "warning",
        }
    }
}

/// An entry of the accelerator table.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AcceleratorConfig {
    /// The generation, as telemetry names it.
    pub accelerator: String,
    /// The first day for which the entry holds.
    pub from: String,
    /// Dense peak operations a second, by precision.
    pub peak_flops: BTreeMap<String, f64>,
    /// Bytes a second between the chip and its memory.
    pub memory_bytes_per_second: Option<f64>,
}

/// A value as it is written.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(untagged)]
pub enum Scalar {
    /// A truth value.
    Bool(bool),
    /// An integer.
    Int(i64),
    /// Another number.
    Float(f64),
    /// A text, in which `${variable}` stands for the variable's value.
    Text(String),
}

impl std::fmt::Display for Scalar {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Scalar::Bool(value) => value.fmt(formatter),
            Scalar::Int(value) => value.fmt(formatter),
            Scalar::Float(value) => value.fmt(formatter),
            Scalar::Text(value) => value.fmt(formatter),
        }
    }
}

/// Reads a YAML text. `place` names the file in messages.
pub fn parse<'de, T: Deserialize<'de>>(place: &str, text: &'de str) -> Result<T, PipelineError> {
    let deserializer = serde_yaml::Deserializer::from_str(text);
    serde_path_to_error::deserialize(deserializer).map_err(|error| {
        let path = error.path().to_string();
        let source = error.into_inner();
        let mut problem = source.to_string();
        // Of an unknown key the reader knows the mapping in which it stands; the key itself is found by its path.
        let of_key = if problem.contains("unknown field") && !path.contains('[') { line_of(text, &path) } else { None };
        let at = match (of_key, source.location()) {
            (Some(line), _) => format!(":{line}"),
            (None, Some(at)) => format!(":{}:{}", at.line(), at.column()),
            (None, None) => String::new(),
        };
        // The reader adds the place that is already in front.
        if let Some(end) = problem.rfind(" at line ") {
            problem.truncate(end);
        }
        let key = if path == "." || problem.starts_with(&path) { String::new() } else { format!("`{path}`: ") };
        PipelineError::Config { place: format!("{place}{at}"), problem: format!("{key}{problem}"), hint: None }
    })
}

/// The line of a key path such as `settings.chunk_days`, or of a word: each part is looked for behind the one before.
pub(crate) fn line_of(text: &str, path: &str) -> Option<usize> {
    let mut lines = text.lines().enumerate();
    let mut found = None;
    for part in path.split('.') {
        let part = part.split('[').next().unwrap_or(part);
        found = lines.by_ref().find(|(_, line)| line.contains(part)).map(|(at, _)| at + 1);
        found?;
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str =
        "name: x\nwarehouse: out\nsteps:\n  - { table: a, sql: a.sql, grain: day, partition_by: date }\n";

    fn problem(text: &str) -> String {
        match parse::<Config>("p.yaml", text) {
            Ok(_) => "none".to_owned(),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn errors_point_at_the_place() {
        assert_eq!(problem(GOOD), "none");
        let cases = [
            (format!("{GOOD}extra: 1\n"), "p.yaml:5: ", "unknown field `extra`"),
            (GOOD.replace("grain: day", "grain: week"), "p.yaml:4:", "steps[0].grain"),
            (GOOD.replace("table: a,", ""), "p.yaml:4:", "missing field `table`"),
            (GOOD.replace("name: x\n", ""), "p.yaml", "missing field `name`"),
            (GOOD.replace("steps:", "settings: { settle: 3 }\nsteps:"), "p.yaml:3:", "unknown field `settle`"),
            ("name: [".to_owned(), "p.yaml:", ""),
            (String::new(), "p.yaml", ""),
        ];
        for (text, place, expected) in cases {
            let problem = problem(&text);
            assert!(problem.starts_with(place) && problem.contains(expected), "{problem}");
        }
    }
}
