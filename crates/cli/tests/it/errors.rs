//! What a wrong pipeline leads to: an error that points at the place, before anything runs.

use std::path::{Path, PathBuf};

use proptest::prelude::*;
use serde_json::json;

use crate::program::{Site, stderr};

/// Copies the pipelines and SQL files beside a site, where a test can spoil them.
fn copied(site: &Site) -> PathBuf {
    let root = goodput_testkit::cases::root();
    for folder in ["pipelines", "sql"] {
        copy(&root.join(folder), &site.path().join(folder));
    }
    site.path().join("pipelines/goodput.yaml")
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        let target = to.join(path.file_name().unwrap());
        if path.is_dir() { copy(&path, &target) } else { std::fs::copy(&path, &target).map(|_| ()).unwrap() }
    }
}

fn edit(file: &Path, from: &str, to: &str) {
    let text = std::fs::read_to_string(file).unwrap();
    assert!(text.contains(from), "{} has no `{from}`", file.display());
    std::fs::write(file, text.replacen(from, to, 1)).unwrap();
}

/// Spoils a file, runs, and looks for words in what is said; nothing may be published.
fn check(file: &str, from: &str, to: &str, expected: &[&str]) {
    let site = Site::with(&json!({ "jobs": [["date", "job_id"], ["2026-01-01", "j"]] }));
    let pipeline = copied(&site);
    edit(&site.path().join(file), from, to);
    for command in ["run", "check", "plan"] {
        let output = site.command(command, &["-p", pipeline.to_str().unwrap()]).output().unwrap();
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(1), "{command}, `{to}`: {said}");
        for part in expected {
            assert!(said.contains(part), "{command}, `{to}` wants `{part}`: {said}");
        }
        assert!(!site.warehouse().exists(), "{command}, `{to}`: something was published");
    }
}

#[test]
fn a_wrong_pipeline_file_is_named_with_line_and_key() {
    let file = "pipelines/goodput.yaml";
    let cases: [(&str, &str, &[&str]); 20] = [
        (
            "chunk_days: ${chunk_days}",
            "chunk_dais: 7",
            &["goodput.yaml:23: ", "unknown field `chunk_dais`", "chunk_days"],
        ),
        ("name: goodput", "name: [goodput", &["goodput.yaml:"]),
        ("grain: day", "grain: hour", &["goodput.yaml:", "steps[2].grain", "hour"]),
        (
            "capacity_rows.sql\n    grain: partition",
            "capacity_rows.sql\n    grain: partition\n    partition_by: date\n    sort_by: [cell]",
            &["capacity_rows", "a step of grain `partition` is not published", "hint: publish a table"],
        ),
        (
            "capacity_rows.sql\n    grain: partition",
            "capacity_rows.sql\n    grain: partition\n    audits: [{ sql: ../sql/audits/pool_keys.sql, severity: warning }]",
            &["capacity_rows", "a step of grain `partition` has no days to audit"],
        ),
        (
            "capacity_books.sql\n    grain: day",
            "capacity_books.sql\n    grain: partition",
            &["capacity_books", "a step of grain `partition` reads `capacity_rows`", "hint: it can read telemetry.*"],
        ),
        (
            "chunk_days: ${chunk_days}",
            "chunk_days: 0",
            &["goodput.yaml:23", "`settings.chunk_days`", "0 is not between 1"],
        ),
        ("chunk_days: ${chunk_days}", "chunk_days: seven", &["`settings.chunk_days`", "`seven` is not a number"]),
        ("settle_days: ${settle_days}", "settle_days: ${settle}", &["there is no variable `settle`"]),
        ("settle_days: ${settle_days}", "settle_days: ${settle_days", &["a `${` is not closed"]),
        ("ideal_model: predicted", "ideal_model: magic", &["there is no model `magic`", "hint: one of predicted"]),
        ("accelerators: accelerators.yaml", "accelerators: none.yaml", &["none.yaml", "cannot be read"]),
        ("{ name: medium, up_to: 128 }", "{ name: medium, up_to: 8 }", &["`settings.size_classes`", "do not ascend"]),
        ("axes: [cell, accelerator", "axes: [cell, cell", &["axis `cell` is named twice"]),
        ("axes: [cell, accelerator, size_class", "axes: [size_class", &["neither `cell` nor `accelerator`"]),
        ("team]\n  # Data", "chips_required]\n  # Data", &["`chips_required` cannot be an axis"]),
        ("sql: ../sql/job_books.sql", "sql: ../sql/none.sql", &["none.sql", "cannot be read"]),
        ("    sort_by: [date, job_id, cell, accelerator]\n", "", &["a published table needs `sort_by`"]),
        ("sort_by: [date, job_id", "sort_by: [date, jobid", &["sorted by `jobid`"]),
        ("  - table: capacity_books", "  - table: job_books", &["two steps make this table"]),
    ];
    for (from, to, expected) in cases {
        check(file, from, to, expected);
    }
}

#[test]
fn steps_in_the_wrong_order_and_circles_are_told_apart() {
    let later = "- table: later\n    sql: ../sql/pool_day.sql\n    grain: day\n\n  - table: job_books";
    check(
        "pipelines/goodput.yaml",
        "- table: job_books",
        later,
        &["reads `", "which a later step makes", "hint: move step"],
    );
    let site_file = "sql/capacity_books.sql";
    check(
        site_file,
        "capacity_rows\n-- why",
        "capacity_rows, capacity_books\n-- why",
        &["capacity_books.sql", "the statement reads"],
    );
    let circle = [
        ("-- reads: capacity_rows", "-- reads: capacity_rows, pool_day"),
        ("FROM capacity_rows", "FROM capacity_rows JOIN pool_day ON true"),
    ];
    let site = Site::empty();
    let pipeline = copied(&site);
    for (from, to) in circle {
        edit(&site.path().join(site_file), from, to);
    }
    let output = site.command("check", &["-p", pipeline.to_str().unwrap()]).output().unwrap();
    let said = stderr(&output);
    assert!(said.contains("circle: capacity_books reads pool_day reads capacity_books"), "{said}");
}

#[test]
fn sql_that_does_not_plan_is_named_with_its_file() {
    let cases: [(&str, &str, &str, &[&str]); 8] = [
        (
            "sql/pool_day.sql",
            "sum(day['capacity_chip_ms'])",
            "summ(day['capacity_chip_ms'])",
            &["pool_day.sql", "summ"],
        ),
        (
            "sql/pool_day.sql",
            "    cell,\n    accelerator,\n    capacity",
            "    cel,\n    accelerator,\n    capacity",
            &["pool_day.sql:", "cel"],
        ),
        ("sql/pool_day.sql", "FULL JOIN", "FUL JOIN", &["pool_day.sql"]),
        ("sql/job_day.sql", "$run_id", "$run_ID", &["job_day.sql", "no parameter `$run_ID`", "$run_id"]),
        ("sql/job_day.sql", "-- grain", "-- corn", &["job_day.sql", "no `-- grain:` line"]),
        (
            "sql/job_day.sql",
            "-- reads: job_books",
            "-- reads: job_books, pool_day",
            &["job_day.sql", "the statement reads job_books"],
        ),
        (
            "sql/audits/pool_keys.sql",
            "SELECT date, cell",
            "SELECT date AS day, cell",
            &["pool_keys.sql", "no column `date`"],
        ),
        // Types clash only when the statement is analysed.
        (
            "sql/audits/held_within_capacity.sql",
            "idle_chip_ms < 0",
            "idle_chip_ms AND true",
            &["held_within_capacity.sql"],
        ),
    ];
    for (file, from, to, expected) in cases {
        check(file, from, to, expected);
    }
}

#[test]
fn a_day_that_a_blocking_audit_finds_keeps_what_was_published() {
    let chips = |number: i64| {
        let row = |date: &str, end: &str| {
            json!([date, "j", 0, "", "c", "x", number, format!("{date}T00:00Z"), format!("{date}T{end}Z")])
        };
        json!({ "allocations": [
            ["date", "job_id", "attempt", "task", "cell", "accelerator", "chips", "start_ts", "end_ts"],
            row("2026-01-01", "01:00"), row("2026-01-02", "02:00") ] })
    };
    let site = Site::with(&chips(1));
    let pipeline = copied(&site);
    let arguments = ["-p", pipeline.to_str().unwrap()];
    site.run(&arguments);
    let before = site.table("pool_day");
    // The second day offends now; the figures of both changed.
    goodput_testkit::cases::write_telemetry(&site.telemetry(), &chips(5)).unwrap();
    let audit = site.path().join("sql/audits/pool_books_close.sql");
    edit(&audit, "WHERE capacity_chip_ms", "WHERE date = DATE '2026-01-02' OR capacity_chip_ms");
    let (_, record) = site.run_to(3, &arguments);
    assert_eq!(record["held_back"][0]["date"], "2026-01-02");
    assert!(record["held_back"][0]["reason"].as_str().unwrap().contains("audit `pool_books_close`"));
    assert_eq!(record["days"], json!(1));
    let after = site.table("pool_day");
    assert_eq!(before[1], after[1]);
    assert_eq!(after[0]["allocated_chip_ms"], json!(5 * 3_600_000));
    let kept = site.query("SELECT date, audit, severity FROM audit_findings WHERE severity = 'blocking'");
    assert_eq!(kept.len(), 1);
    // All days held back: nothing of the step was published.
    edit(&audit, "date = DATE '2026-01-02' OR", "true OR");
    site.run_to(1, &arguments);
    assert_eq!(after, site.table("pool_day"));
}

#[test]
fn days_that_are_carried_over_lose_no_column() {
    let site = Site::empty();
    let row = |date: &str| json!([date, "j", 0, "", "c", "x", 1, format!("{date}T00:00Z"), format!("{date}T01:00Z")]);
    let rows = json!({ "allocations": [
        ["date", "job_id", "attempt", "task", "cell", "accelerator", "chips", "start_ts", "end_ts"],
        row("2026-01-01"), row("2026-01-02") ] });
    goodput_testkit::cases::write_telemetry(&site.telemetry(), &rows).unwrap();
    let pipeline = copied(&site);
    let arguments = ["-p", pipeline.to_str().unwrap()];
    site.run(&arguments);
    // An axis less: the other day of the month has a column that is not there any more.
    let text = std::fs::read_to_string(&pipeline).unwrap();
    std::fs::write(&pipeline, text.replace(", model_family, team]", ", model_family]")).unwrap();
    let (said, _) = site.run_to(1, &[&arguments[..], &["--from", "2026-01-02"]].concat());
    assert!(said.contains("goodput_daily/month=2026-01") && said.contains("`team`"), "{said}");
    site.run(&arguments);
    // And one more: null on the day that is carried over.
    std::fs::write(&pipeline, text).unwrap();
    site.run(&[&arguments[..], &["--from", "2026-01-02"]].concat());
    let teams = site.query("SELECT DISTINCT date, team FROM goodput_daily WHERE size_class IS NOT NULL ORDER BY date");
    assert_eq!((&teams[0]["team"], &teams[1]["team"]), (&json!(null), &json!("unknown")));
}

#[test]
fn a_wrong_command_line_is_the_users_side() {
    let site = Site::empty();
    let cases: [(&[&str], &[&str]); 7] = [
        (&["run", "--from", "2026-13-01"], &["2026-13-01", "YYYY-MM-DD"]),
        (&["run", "--memory", "lots"], &["lots", "512MiB"]),
        (&["run", "--set", "settle_days"], &["NAME=VALUE"]),
        (
            &["run", "--set", "colour=red"],
            &["no variable `colour`", "hint: it declares chunk_days, settle_days, telemetry, warehouse"],
        ),
        (&["run", "--set", "settle_days=-1"], &["-1 is not between 0"]),
        (&["run", "-p", "none.yaml"], &["none.yaml", "cannot be read", "hint:"]),
        (&["fly"], &["fly"]),
    ];
    for (arguments, expected) in cases {
        let output = crate::program::goodput().args(arguments).output().unwrap();
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(1), "{arguments:?}: {said}");
        for part in expected {
            assert!(said.contains(part), "{arguments:?} wants `{part}`: {said}");
        }
    }
    let (said, _) = site.run_to(1, &[]);
    assert!(said.contains("there is no telemetry in") && said.contains("hint:"), "{said}");
    let site = Site::with(&json!({ "jobs": [["date", "job_id"], ["2026-01-01", "j"]] }));
    let (said, _) = site.run_to(1, &["--from", "2026-01-03", "--to", "2026-01-02"]);
    assert!(said.contains("2026-01-02, is before the first"), "{said}");
    let (said, _) = site.run_to(1, &["--from", "2027-01-01"]);
    assert!(said.contains("hint: the telemetry holds 2026-01-01 to 2026-01-01"), "{said}");
}

#[test]
fn a_query_reads_and_nothing_else() {
    let site = Site::empty();
    let file = site.path().join("out.parquet");
    let copy = format!("COPY (SELECT 1) TO '{}'", file.display());
    for query in [
        copy.as_str(),
        "CREATE TABLE t AS SELECT 1",
        "CREATE EXTERNAL TABLE t STORED AS CSV LOCATION '/etc/passwd'",
        "INSERT INTO job_day SELECT * FROM job_day",
        "DROP TABLE job_day",
        "SET datafusion.execution.batch_size = 1",
        "SELECT * FROM '/etc/passwd'",
        "SELECT 1; SELECT 2",
        "SELECT * FROM nothing",
        "",
    ] {
        let output = site.command("sql", &[query]).output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{query}: {}", stderr(&output));
        assert!(output.stdout.is_empty(), "{query}");
    }
    assert!(!file.exists());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    /// A pipeline file with bytes changed is read or refused, never a panic.
    #[test]
    fn pipeline_files_with_errors_do_not_panic(at in 0..4_000_usize, bytes in "[ -~\n\t:{}\\[\\]$]{0,12}", cut in 0..40_usize) {
        let root = goodput_testkit::cases::root();
        let mut text = std::fs::read_to_string(root.join("pipelines/goodput.yaml")).unwrap();
        let at = at % text.len();
        let end = (at + cut).min(text.len());
        prop_assume!(text.is_char_boundary(at) && text.is_char_boundary(end));
        text.replace_range(at..end, &bytes);
        let parsed = goodput_pipeline::config::parse::<goodput_pipeline::config::Config>("p.yaml", &text);
        if let Err(error) = parsed {
            prop_assert!(error.to_string().starts_with("p.yaml"));
        }
    }
}
