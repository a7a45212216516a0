//! Running the program, and the tables that it publishes.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use goodput_testkit::cases::{Row, read_table, root, write_telemetry};
use serde_json::Value;
use tempfile::TempDir;

/// The program, from the root of the checkout.
pub(crate) fn goodput() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_goodput"));
    command.current_dir(root());
    command
}

/// Telemetry and a warehouse in a folder of their own.
pub(crate) struct Site {
    folder: TempDir,
}

impl Site {
    /// Folders without anything in them.
    pub(crate) fn empty() -> Site {
        Site { folder: tempfile::tempdir().unwrap() }
    }

    /// Telemetry of hand-written rows.
    pub(crate) fn with(rows: &Value) -> Site {
        let site = Site::empty();
        write_telemetry(&site.telemetry(), rows).unwrap();
        site
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn telemetry(&self) -> PathBuf {
        self.path().join("telemetry")
    }

    pub(crate) fn warehouse(&self) -> PathBuf {
        self.path().join("warehouse")
    }

    /// The main job's pipeline with a text of it replaced, as a file of this site; it still finds the SQL of the checkout.
    pub(crate) fn edited_pipeline(&self, name: &str, from: &str, to: &str) -> PathBuf {
        let root = root().canonicalize().unwrap();
        let text = std::fs::read_to_string(root.join("pipelines/goodput.yaml")).unwrap();
        assert!(text.contains(from), "the pipeline has no `{from}`");
        let text = text
            .replace(from, to)
            .replace("../sql/", &format!("{}/sql/", root.display()))
            .replace("accelerators.yaml", &format!("{}/pipelines/accelerators.yaml", root.display()));
        let pipeline = self.path().join(format!("{name}.yaml"));
        std::fs::write(&pipeline, text).unwrap();
        pipeline
    }

    /// `goodput COMMAND` on this telemetry and warehouse, with further arguments.
    pub(crate) fn command(&self, command: &str, arguments: &[&str]) -> Command {
        let mut goodput = goodput();
        goodput.arg(command);
        goodput.arg("--set").arg(format!("telemetry={}", self.telemetry().display()));
        goodput.arg("--set").arg(format!("warehouse={}", self.warehouse().display()));
        goodput.args(arguments);
        goodput
    }

    /// Runs and must succeed; the run record.
    pub(crate) fn run(&self, arguments: &[&str]) -> Value {
        let mut all = vec!["--json"];
        all.extend(arguments);
        let output = self.command("run", &all).output().unwrap();
        assert!(output.status.success(), "{}", stderr(&output));
        serde_json::from_slice(&output.stdout).unwrap()
    }

    /// Runs and must end with a status; what it says on stderr, and the run record if there is one.
    pub(crate) fn run_to(&self, status: i32, arguments: &[&str]) -> (String, Value) {
        let mut all = vec!["--json"];
        all.extend(arguments);
        let output = self.command("run", &all).output().unwrap();
        assert_eq!(
            output.status.code(),
            Some(status),
            "{}{}",
            stderr(&output),
            String::from_utf8_lossy(&output.stdout)
        );
        (stderr(&output), serde_json::from_slice(&output.stdout).unwrap_or_default())
    }

    /// Asks a query; the rows as JSON.
    pub(crate) fn query(&self, query: &str) -> Vec<Row> {
        let output = self.command("sql", &["--format", "json", query]).output().unwrap();
        assert!(output.status.success(), "{}", stderr(&output));
        serde_json::from_slice(&output.stdout).unwrap()
    }

    /// A published table.
    pub(crate) fn table(&self, table: &str) -> Vec<Row> {
        read_table(&self.warehouse(), table).unwrap()
    }

    /// The sums of the chip-ms columns of a published table.
    pub(crate) fn sums(&self, table: &str) -> BTreeMap<String, i64> {
        let mut sums = BTreeMap::new();
        for (name, value) in self.table(table).into_iter().flatten() {
            if let Some(bucket) = name.strip_suffix("_chip_ms") {
                *sums.entry(bucket.to_owned()).or_default() += value.as_i64().unwrap_or(0);
            }
        }
        sums.retain(|_, sum| *sum != 0);
        sums
    }

    /// The counts of `data_quality`, as `table reason` -> rows over all dates.
    pub(crate) fn findings(&self) -> BTreeMap<String, i64> {
        let mut counts = BTreeMap::new();
        for row in self.table("data_quality") {
            let key = format!("{} {}", text(&row, "source_table"), text(&row, "reason"));
            *counts.entry(key).or_default() += row["rows"].as_i64().unwrap();
        }
        counts
    }
}

/// A text of a row.
pub(crate) fn text<'a>(row: &'a Row, column: &str) -> &'a str {
    row[column].as_str().unwrap_or_else(|| panic!("{column} of {row:?} is no text"))
}

/// What a program said on stderr.
pub(crate) fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Rows without the columns that differ from run to run.
pub(crate) fn without_run(rows: Vec<Row>) -> Vec<Row> {
    rows.into_iter()
        .map(|mut row| {
            row.remove("run_id");
            row
        })
        .collect()
}

/// The tables that the main job publishes, without what differs from run to run.
pub(crate) fn published(warehouse: &Path) -> BTreeMap<&'static str, Vec<Row>> {
    ["pool_day", "job_day", "goodput_daily", "goodput_quarterly", "data_quality", "audit_findings"]
        .into_iter()
        .map(|table| (table, without_run(read_table(warehouse, table).unwrap())))
        .collect()
}
