//! The commands on the sample fleet, as a new user runs them.

use std::collections::BTreeMap;

use goodput_model::JOB_DAY_BUCKETS;
use goodput_testkit::cases::{parquet_files, root};
use serde_json::{Value, json};

use crate::program::{Site, goodput, published, stderr};

/// A run of the main job on the sample, published beside the test.
fn sample(site: &Site, arguments: &[&str]) -> std::process::Output {
    goodput()
        .arg("run")
        .arg("--set")
        .arg(format!("warehouse={}", site.warehouse().display()))
        .args(["--run-id", "test"])
        .args(arguments)
        .output()
        .unwrap()
}

fn query(site: &Site, arguments: &[&str]) -> String {
    let output = goodput()
        .arg("sql")
        .arg("--set")
        .arg(format!("warehouse={}", site.warehouse().display()))
        .args(arguments)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn the_sample_shows_every_bucket_and_its_books_close() {
    let site = Site::empty();
    let output = sample(&site, &[]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let sums = site.sums("job_day");
    for bucket in JOB_DAY_BUCKETS {
        let name = bucket.column().trim_end_matches("_chip_ms");
        assert!(sums.get(name).is_some_and(|sum| *sum > 0), "{name}: {sums:?}");
    }
    let pools = site.sums("pool_day");
    for name in ["capacity", "down", "held", "idle"] {
        assert!(pools.get(name).is_some_and(|sum| *sum > 0), "{name}: {pools:?}");
    }
    assert_eq!(pools["capacity"], pools["down"] + pools["idle"] + pools["held"]);
    assert_eq!(pools["held"], sums["partial"] + sums["allocated"]);
    let daily = site.sums("goodput_daily");
    for (name, sum) in pools.iter().chain(&sums) {
        assert_eq!(daily.get(name), Some(sum), "{name}");
    }
}

#[test]
fn what_a_person_reads() {
    let site = Site::empty();
    let output = sample(&site, &["--threads", "2"]);
    let plan = goodput()
        .args(["plan", "--from", "2026-04-01"])
        .arg("--set")
        .arg(format!("warehouse={}", site.warehouse().display()))
        .output()
        .unwrap();
    let check =
        goodput().arg("check").arg("--set").arg(format!("warehouse={}", site.warehouse().display())).output().unwrap();
    let folder = site.path().display().to_string();
    let checkout = root().canonicalize().unwrap().display().to_string();
    let show = |output: std::process::Output| {
        let text = format!("{}{}", String::from_utf8_lossy(&output.stdout), stderr(&output));
        text.replace(&folder, "[folder]").replace(&checkout, "[checkout]")
    };
    let mut settings = insta::Settings::clone_current();
    settings.set_prepend_module_to_snapshot(false);
    settings.add_filter(r"\d+\.\d\d s\b", "[seconds] s");
    settings.add_filter(r"[\d,]+ rows/s", "[rate] rows/s");
    settings.bind(|| {
        insta::assert_snapshot!("run", show(output));
        insta::assert_snapshot!("plan", show(plan));
        insta::assert_snapshot!("check", show(check));
        let fleet = "SELECT quarter, days, scheduling_goodput, runtime_goodput, program_goodput, mpg, is_provisional \
                     FROM goodput_quarterly WHERE segment_by = 'fleet' ORDER BY quarter";
        insta::assert_snapshot!("sql_table", query(&site, &[fleet]));
        insta::assert_snapshot!("sql_markdown", query(&site, &["--format", "markdown", fleet]));
        insta::assert_snapshot!("sql_csv", query(&site, &["--format", "csv", fleet]));
    });
}

#[test]
fn the_same_run_twice_changes_no_byte() {
    let site = Site::empty();
    let bytes = || -> BTreeMap<_, _> {
        parquet_files(&site.warehouse())
            .unwrap()
            .into_iter()
            .map(|file| (file.clone(), std::fs::read(file).unwrap()))
            .collect()
    };
    sample(&site, &["--threads", "2"]);
    let first = bytes();
    assert!(!first.is_empty());
    let output = goodput()
        .args(["run", "--full-refresh", "--json", "--threads", "1", "--run-id", "another", "--set"])
        .arg(format!("warehouse={}", site.warehouse().display()))
        .output()
        .unwrap();
    let record: Value = serde_json::from_slice(&output.stdout).unwrap();
    for (table, done) in record["tables"].as_object().unwrap() {
        assert_eq!(done["partitions_written"], json!(0), "{table}");
    }
    assert_eq!(record["due"].as_object().unwrap().len(), 6);
    assert_eq!(first, bytes());
}

#[test]
fn threads_and_memory_change_no_figure() {
    let plain = Site::empty();
    sample(&plain, &[]);
    let expected = published(&plain.warehouse());
    for arguments in [&["--threads", "1"][..], &["--threads", "5"], &["--memory", "64MiB"]] {
        let site = Site::empty();
        let output = sample(&site, arguments);
        assert_eq!(output.status.code(), Some(0), "{arguments:?}: {}", stderr(&output));
        assert_eq!(published(&site.warehouse()), expected, "{arguments:?}");
    }
}

#[test]
fn formats_of_queries() {
    let site = Site::empty();
    let rows = "SELECT * FROM (VALUES (1, 'a|b', NULL), (2, 'c', 2.5)) AS t(n, text, x) ORDER BY n";
    assert_eq!(query(&site, &["--format", "csv", rows]), "n,text,x\n1,a|b,\n2,c,2.5\n");
    assert_eq!(query(&site, &["--format", "tsv", rows]), "n\ttext\tx\n1\ta|b\t\n2\tc\t2.5\n");
    assert_eq!(
        query(&site, &["--format", "ndjson", rows]),
        "{\"n\":1,\"text\":\"a|b\",\"x\":null}\n{\"n\":2,\"text\":\"c\",\"x\":2.5}\n"
    );
    assert_eq!(
        query(&site, &["--format", "markdown", rows]),
        "| n | text | x |\n| ---: | --- | ---: |\n| 1 | a\\|b | NULL |\n| 2 | c | 2.5 |\n"
    );
    assert!(query(&site, &[rows]).contains("NULL"));
    for format in ["csv", "tsv", "table"] {
        assert!(query(&site, &["--format", format, "SELECT 1 AS n WHERE false"]).contains('n'));
    }
    assert_eq!(query(&site, &["--format", "json", "SELECT 1 AS n WHERE false"]).trim(), "[]");
    let file = site.path().join("rows.parquet");
    query(&site, &["--format", "parquet", "-o", file.to_str().unwrap(), rows]);
    assert_eq!(&std::fs::read(file).unwrap()[..4], b"PAR1");
}

#[test]
fn a_table_that_was_never_published_is_there_without_rows() {
    let site = Site::empty();
    for table in [
        "pool_day",
        "job_day",
        "goodput_daily",
        "goodput_quarterly",
        "data_quality",
        "audit_findings",
        "telemetry.runtime",
    ] {
        let rows = site.query(&format!("SELECT count(*) AS rows FROM {table}"));
        assert_eq!(rows[0]["rows"], json!(0), "{table}");
    }
}

#[test]
fn a_plan_writes_nothing() {
    let site = Site::empty();
    let output = goodput()
        .args(["plan", "--json", "--set"])
        .arg(format!("warehouse={}", site.warehouse().display()))
        .output()
        .unwrap();
    let plan: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(
        plan["days"]
            .as_array()
            .unwrap()
            .iter()
            .all(|day| day["due"] == "never published" && day["files"].as_i64() > Some(0))
    );
    assert!(!site.warehouse().exists());
}
