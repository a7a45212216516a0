//! What was done, for people and for machines.

use std::collections::BTreeMap;

use goodput_model::Day;
use serde::Serialize;

use crate::audit::AuditFinding;
use crate::inputs::UnreadableFile;
use crate::publish::Published;

/// Rows of an audit that the record shows; all of them are kept in the table of findings.
const FINDINGS_SHOWN: usize = 5;

/// A run.
#[derive(Debug, Clone, Default, Serialize)]
pub struct RunRecord {
    /// The id of the run.
    pub run_id: String,
    /// The pipeline.
    pub pipeline: String,
    /// First and last day of the run, if it has days.
    pub from: Option<String>,
    /// See `from`.
    pub to: Option<String>,
    /// Why each day was run.
    pub due: BTreeMap<String, String>,
    /// The days that kept their figures although other days were run, since partitions of their windows are gone: which.
    pub kept: BTreeMap<String, String>,
    /// Days published.
    pub days: i64,
    /// Days between the first and the last of the run that have no figures, since no partition lies in their windows.
    pub days_without_window: i64,
    /// Data files read: those of the windows of all days.
    pub files: i64,
    /// Their bytes.
    pub bytes: i64,
    /// Their rows.
    pub rows: i64,
    /// Rows decoded: windows overlap, and each chunk of days reads those of its own.
    pub rows_decoded: i64,
    /// Files and folders that are no data files.
    pub skipped_files: i64,
    /// How long it took.
    pub seconds: f64,
    /// Rows a second, each counted once.
    pub rows_per_second: f64,
    /// The fleet's goodput in the quarters that the run touched, as published.
    pub fleet: Vec<FleetQuarter>,
    /// What was published, by table.
    pub tables: BTreeMap<String, TableRecord>,
    /// What the audits found, by audit.
    pub audits: BTreeMap<String, AuditRecord>,
    /// Rows and files counted in `data_quality`, by reason; of files by kind.
    pub data_quality: BTreeMap<String, i64>,
    /// Days that keep what was published before, and why.
    pub held_back: Vec<HeldBack>,
    /// Files that could not be read.
    pub unreadable_files: Vec<UnreadableRecord>,
}

/// The fleet's goodput in a quarter; a ratio is absent where its denominator is zero.
#[derive(Debug, Clone, Default, Serialize, PartialEq)]
pub struct FleetQuarter {
    /// The quarter.
    pub quarter: String,
    /// Days of it that are published.
    pub days: i64,
    /// All-allocated over capacity.
    pub scheduling_goodput: Option<f64>,
    /// Productive over observed.
    pub runtime_goodput: Option<f64>,
    /// Ideal over profiled.
    pub program_goodput: Option<f64>,
    /// The product of the three.
    pub mpg: Option<f64>,
    /// The share of the allocated chip-time that was observed.
    pub runtime_coverage: Option<f64>,
    /// The share of the productive chip-time that was profiled.
    pub program_coverage: Option<f64>,
    /// Whether any day of it may still change.
    pub is_provisional: bool,
}

/// What was published of a table.
#[derive(Debug, Clone, Default, Serialize)]
pub struct TableRecord {
    /// Rows computed.
    pub rows: i64,
    /// Partitions written.
    pub partitions_written: i64,
    /// Partitions left as they were, since nothing changed.
    pub partitions_unchanged: i64,
    /// Bytes written.
    pub bytes: i64,
}

/// What an audit found.
#[derive(Debug, Clone, Default, Serialize)]
pub struct AuditRecord {
    /// `blocking` or `warning`.
    pub severity: String,
    /// Rows that it returned.
    pub rows: i64,
    /// Some of them.
    pub examples: Vec<serde_json::Value>,
}

/// A day that is not published.
#[derive(Debug, Clone, Serialize, PartialEq, Eq)]
pub struct HeldBack {
    /// The day.
    pub date: String,
    /// Why.
    pub reason: String,
}

/// A file that could not be read.
#[derive(Debug, Clone, Serialize, PartialEq, Eq)]
pub struct UnreadableRecord {
    /// The file.
    pub file: String,
    /// What is wrong with it.
    pub problem: String,
}

impl RunRecord {
    /// Adds what was published of a table.
    pub(crate) fn add_table(&mut self, table: &str, published: &Published) {
        let record = self.tables.entry(table.to_owned()).or_default();
        record.rows += published.rows;
        record.partitions_written += published.written;
        record.partitions_unchanged += published.unchanged;
        record.bytes += published.bytes;
    }

    /// Adds what an audit found.
    pub(crate) fn add_finding(&mut self, finding: &AuditFinding) {
        let record = self.audits.entry(finding.audit.clone()).or_default();
        record.severity = if finding.is_blocking { "blocking" } else { "warning" }.to_owned();
        record.rows += 1;
        if record.examples.len() < FINDINGS_SHOWN {
            record.examples.extend(serde_json::from_str::<serde_json::Value>(&finding.detail));
        }
    }

    /// Notes a day that is not published.
    pub(crate) fn hold_back(&mut self, date: Day, reason: String) {
        self.held_back.push(HeldBack { date: date.to_string(), reason });
    }

    /// Notes a file that could not be read.
    pub(crate) fn add_unreadable(&mut self, file: &UnreadableFile) {
        self.unreadable_files.push(UnreadableRecord { file: file.file.clone(), problem: file.problem.clone() });
    }

    /// Whether there was nothing to do.
    pub fn is_idle(&self) -> bool {
        self.due.is_empty() && self.tables.is_empty()
    }

    /// Whether everything that was to be published is.
    pub fn is_complete(&self) -> bool {
        self.held_back.is_empty()
    }
}
