//! The pipeline against the truth: a fleet is played through, and what is published of its telemetry is what happened.

use std::collections::BTreeMap;

use goodput_testkit::cases::{Row, read_table};
use serde_json::Value;

use crate::program::{Site, goodput, stderr};

/// What a run adds to a published row.
const OF_THE_RUN: [&str; 5] = ["metric_version", "run_id", "is_provisional", "month", "date"];

/// Simulates into the telemetry of a site, with further arguments; what is said on stdout.
fn simulate(site: &Site, seed: u32, arguments: &[&str]) -> String {
    let output = goodput()
        .arg("simulate")
        .arg(site.telemetry())
        .args(["--seed", &seed.to_string()])
        .args(["--days", "16", "--jobs-per-day", "25", "--runtime-rows-per-job-day", "30"])
        .args(arguments)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    String::from_utf8(output.stdout).unwrap()
}

/// The rows of a table by their keys.
fn by_key(rows: Vec<Row>) -> BTreeMap<String, Row> {
    let number = rows.len();
    let keyed: BTreeMap<String, Row> = rows
        .into_iter()
        .map(|mut row| {
            let key = ["date", "job_id", "cell", "accelerator"]
                .map(|column| row.get(column).and_then(Value::as_str).unwrap_or("-").to_owned())
                .join(" ");
            row.retain(|column, _| !OF_THE_RUN.contains(&column.as_str()));
            (key, row)
        })
        .collect();
    assert_eq!(keyed.len(), number, "a key occurs twice");
    keyed
}

/// Compares a published table with the truth: every row, every column; ideal time, which is a quotient, within 1.
fn compare(site: &Site, table: &str) {
    let published = by_key(site.table(table));
    let truth = by_key(read_table(&site.telemetry().join("_truth"), table).unwrap());
    assert!(truth.len() > 16, "{table} has {} rows", truth.len());
    let keys = |rows: &BTreeMap<String, Row>| rows.keys().cloned().collect::<Vec<_>>();
    assert_eq!(keys(&published), keys(&truth), "{table}");
    for (key, row) in &truth {
        let found = &published[key];
        assert_eq!(found.keys().collect::<Vec<_>>(), row.keys().collect::<Vec<_>>(), "{table}");
        for (column, value) in row {
            let differs = match (column.as_str(), value.as_i64(), found[column].as_i64()) {
                ("ideal_chip_ms", Some(value), Some(found)) => value.abs_diff(found) > 1,
                _ => *value != found[column],
            };
            assert!(!differs, "{table}, {key}: {column} is {} and not {value}", found[column]);
        }
    }
}

#[test]
fn what_is_published_is_what_happened() {
    for (seed, settle, from) in [(1, "7", "2026-01-01"), (2, "7", "2024-06-20"), (3, "2", "2028-02-25")] {
        let site = Site::empty();
        simulate(&site, seed, &["--from", from, "--settle-days", settle]);
        site.run(&["--set", &format!("settle_days={settle}")]);
        compare(&site, "job_day");
        compare(&site, "pool_day");
        let findings = site.findings();
        for found in [
            "allocations orphan_allocation",
            "runtime bad_value",
            "runtime duplicate",
            "runtime from_the_future",
            "runtime implausible_start",
            "runtime negative_interval",
            "runtime null_required",
            "runtime orphan_runtime",
            "runtime skewed",
            "runtime stale_open",
            "runtime superseded",
            "runtime unknown_phase",
        ] {
            assert!(findings.contains_key(found), "seed {seed} has no {found}: {findings:?}");
        }
    }
}

#[test]
fn a_simulation_says_what_to_do_next() {
    let site = Site::empty();
    let said = simulate(&site, 5, &["--settle-days", "3"]);
    let (telemetry, folder) = (site.telemetry(), site.path().display().to_string());
    for expected in [
        "16 days from 2026-01-01 to ",
        "runtime",
        "_truth/job_day",
        &format!("goodput run --set telemetry={} --set warehouse={folder}/telemetry.goodput", telemetry.display()),
        "--set settle_days=3",
    ] {
        assert!(said.contains(expected), "no `{expected}` in {said}");
    }
    // The query that it proposes finds the truth.
    let query = said.lines().find_map(|line| line.trim().strip_prefix("Q='")?.strip_suffix('\'')).unwrap();
    site.run(&["--set", "settle_days=3"]);
    let rows = |warehouse: String| {
        let set = format!("warehouse={warehouse}");
        let output = goodput().args(["sql", "--set", &set, "--format", "csv", query]).output().unwrap();
        assert!(output.status.success(), "{}", stderr(&output));
        String::from_utf8(output.stdout).unwrap()
    };
    let truth = rows(format!("{}/_truth", telemetry.display()));
    assert!(truth.lines().count() > 16);
    assert_eq!(rows(site.warehouse().display().to_string()), truth);
}

#[test]
fn a_simulation_overwrites_nothing() {
    let site = Site::empty();
    simulate(&site, 6, &[]);
    let output = goodput()
        .arg("simulate")
        .arg(site.telemetry())
        .args(["--seed", "6", "--days", "1", "--jobs-per-day", "1"])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1));
    let said = stderr(&output);
    assert!(said.contains("is not empty") && said.contains("hint: name a folder"), "{said}");
}
