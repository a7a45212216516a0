//! Parquet of many years, and what else lies about.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow::array::{
    ArrayRef, DictionaryArray, Int32Array, Int64Array, LargeStringArray, StringArray, StringViewArray,
    TimestampMicrosecondArray, TimestampMillisecondArray, TimestampNanosecondArray, TimestampSecondArray, UInt64Array,
};
use arrow::datatypes::Int32Type;
use arrow::record_batch::RecordBatch;
use goodput_testkit::cases::{parquet_files, shared, write_parquet};
use serde_json::{Value, json};

use crate::program::{Site, stderr};

/// 2026-01-01T00:00:00Z in seconds.
const MIDNIGHT: i64 = 1_767_225_600;
const HOUR: i64 = 3_600_000;

/// Columns by name.
type Columns = Vec<(&'static str, ArrayRef)>;

fn strings(text: &str) -> ArrayRef {
    Arc::new(StringArray::from(vec![text]))
}

/// The columns of an allocation of one chip for the first hour of 2026-01-01.
fn allocation(job: &str) -> Columns {
    let instant =
        |seconds: i64| Arc::new(TimestampMicrosecondArray::from(vec![seconds * 1_000_000]).with_timezone("UTC"));
    vec![
        ("job_id", strings(job)),
        ("attempt", Arc::new(Int64Array::from(vec![0]))),
        ("task", strings("")),
        ("cell", strings("c")),
        ("accelerator", strings("x")),
        ("chips", Arc::new(Int64Array::from(vec![1]))),
        ("start_ts", instant(MIDNIGHT)),
        ("end_ts", instant(MIDNIGHT + 3_600)),
    ]
}

fn with(mut columns: Columns, name: &'static str, array: ArrayRef) -> Columns {
    columns.retain(|(other, _)| *other != name);
    columns.push((name, array));
    columns
}

fn without(mut columns: Columns, name: &str) -> Columns {
    columns.retain(|(other, _)| *other != name);
    columns
}

fn write(site: &Site, path: &str, columns: Columns) -> PathBuf {
    let path = site.telemetry().join(path);
    write_parquet(&path, &RecordBatch::try_from_iter(columns).unwrap()).unwrap();
    path
}

fn allocated(site: &Site) -> i64 {
    site.sums("job_day").get("allocated").copied().unwrap_or(0)
}

#[test]
fn case_40_and_15_columns_may_be_stored_in_many_ways() {
    let site = Site::empty();
    let seconds = [MIDNIGHT, MIDNIGHT + 3_600];
    let instants: [fn(i64) -> ArrayRef; 6] = [
        |at| Arc::new(TimestampSecondArray::from(vec![at])),
        |at| Arc::new(TimestampMillisecondArray::from(vec![at * 1_000])),
        |at| Arc::new(TimestampMillisecondArray::from(vec![at * 1_000]).with_timezone("America/Los_Angeles")),
        |at| Arc::new(TimestampMicrosecondArray::from(vec![at * 1_000_000 + 999])),
        |at| Arc::new(TimestampNanosecondArray::from(vec![at * 1_000_000_000 + 999_999])),
        |at| Arc::new(TimestampNanosecondArray::from(vec![at * 1_000_000_000]).with_timezone("+05:30")),
    ];
    for (number, instant) in instants.iter().enumerate() {
        let mut columns = allocation(&format!("instant {number}"));
        columns = with(columns, "start_ts", instant(seconds[0]));
        columns = with(columns, "end_ts", instant(seconds[1]));
        write(&site, &format!("allocations/date=2026-01-01/instant-{number}.parquet"), columns);
    }
    let dictionary: DictionaryArray<Int32Type> = vec!["c"].into_iter().collect();
    let texts: [ArrayRef; 3] =
        [Arc::new(dictionary), Arc::new(LargeStringArray::from(vec!["c"])), Arc::new(StringViewArray::from(vec!["c"]))];
    for (number, text) in texts.into_iter().enumerate() {
        let columns = with(allocation(&format!("text {number}")), "cell", text);
        write(&site, &format!("allocations/date=2026-01-01/text-{number}.parquet"), columns);
    }
    let ints: [ArrayRef; 2] = [Arc::new(Int32Array::from(vec![1])), Arc::new(UInt64Array::from(vec![1]))];
    for (number, int) in ints.into_iter().enumerate() {
        let columns = with(allocation(&format!("int {number}")), "chips", int);
        write(&site, &format!("allocations/date=2026-01-01/int-{number}.parquet"), columns);
    }
    write(&site, "allocations/date=2026-01-01/no-end-reason.parquet", without(allocation("short"), "end_reason"));
    site.run(&["--from", "2026-01-01", "--to", "2026-01-01"]);
    assert_eq!(allocated(&site), 12 * HOUR);
    let starts = site.query("SELECT DISTINCT start_ts, end_ts FROM telemetry.allocations");
    assert_eq!(starts.len(), 1, "{starts:?}");
}

#[test]
fn case_41_to_43_a_file_of_another_contract_is_named_with_its_column() {
    let cases: [(&str, Columns, &[&str]); 5] = [
        (
            "text instead of an instant",
            with(allocation("j"), "start_ts", strings("2026-01-01")),
            &["`start_ts`", "Utf8", "a timestamp"],
        ),
        (
            "a fraction instead of an integer",
            with(allocation("j"), "chips", Arc::new(arrow::array::Float64Array::from(vec![1.5]))),
            &["`chips`", "Float64", "an integer"],
        ),
        (
            "renamed",
            {
                let mut columns = without(allocation("j"), "chips");
                columns.push(("gpus", Arc::new(Int64Array::from(vec![1]))));
                columns
            },
            &["`chips` is missing"],
        ),
        (
            "re-cased",
            {
                let mut columns = without(allocation("j"), "job_id");
                columns.push(("JOB_ID", strings("j")));
                columns
            },
            &["`job_id` is missing", "`JOB_ID`", "names are exact"],
        ),
        (
            "too large for an integer",
            with(allocation("j"), "chips", Arc::new(UInt64Array::from(vec![u64::MAX]))),
            &["`chips`", "18446744073709551615"],
        ),
    ];
    for (what, columns, expected) in cases {
        let site = Site::empty();
        write(&site, "allocations/date=2026-01-01/good.parquet", allocation("good"));
        write(&site, "allocations/date=2026-01-20/bad.parquet", columns);
        write(&site, "allocations/date=2026-01-20/good.parquet", allocation("late"));
        // Its partition's days are held back, the others are published.
        let (_, record) = site.run_to(3, &["--set", "settle_days=1"]);
        let held: Vec<&str> =
            record["held_back"].as_array().unwrap().iter().map(|held| held["date"].as_str().unwrap()).collect();
        assert_eq!(held, ["2026-01-19", "2026-01-20"], "{what}");
        let problem = record["held_back"][0]["reason"].as_str().unwrap();
        assert!(problem.contains("allocations/date=2026-01-20/bad.parquet"), "{what}: {problem}");
        for part in expected {
            assert!(problem.contains(part), "{what}: {problem}");
        }
        assert_eq!(allocated(&site), HOUR, "{what}");
        if what == "too large for an integer" {
            continue; // Only reading to the end tells that.
        }
        let output = site.command("check", &[]).output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{what}");
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(said.contains("bad.parquet") && said.contains("hint:"), "{what}: {said}");
    }
}

#[test]
fn an_excluded_file_is_a_skipped_one_and_holds_back_nothing() {
    let site = Site::empty();
    write(&site, "allocations/date=2026-01-01/good.parquet", allocation("good"));
    std::fs::write(site.telemetry().join("allocations/date=2026-01-01/bad.parquet"), b"PAR1 no more").unwrap();
    let (_, record) = site.run_to(1, &[]);
    assert_eq!(record["days"], json!(0));
    let excluded = "excluded_files: [allocations/date=2026-01-01/bad.parquet]";
    let pipeline = site.edited_pipeline("p", "excluded_files: []", excluded);
    site.run(&["-p", pipeline.to_str().unwrap()]);
    assert_eq!(allocated(&site), HOUR);
    assert_eq!(site.findings().get("allocations skipped_file:bad.parquet"), Some(&1));
}

#[test]
fn an_unreadable_file_holds_back_its_days_and_later_ones_say_that_they_do_without_it() {
    let site = Site::empty();
    write(&site, "allocations/date=2026-01-05/good.parquet", allocation("good"));
    for bytes in [
        &b"PAR1"[..],
        b"",
        b"no parquet at all, but long enough to have a footer",
        b"PAR1\x00\x00\x00\xff\xff\xff\xffPAR1",
    ] {
        let bad = site.telemetry().join("runtime/date=2026-01-03/bad.parquet");
        std::fs::create_dir_all(bad.parent().unwrap()).unwrap();
        std::fs::write(&bad, bytes).unwrap();
        let arguments = ["--set", "settle_days=2", "--from", "2026-01-01", "--to", "2026-01-06"];
        if bytes.is_empty() {
            site.run(&arguments);
            assert_eq!(site.findings().get("runtime skipped_file:bad.parquet"), Some(&1));
            std::fs::remove_dir_all(site.warehouse()).unwrap();
            continue;
        }
        let (_, record) = site.run_to(3, &arguments);
        let held: Vec<&str> =
            record["held_back"].as_array().unwrap().iter().map(|held| held["date"].as_str().unwrap()).collect();
        assert_eq!(held, ["2026-01-01", "2026-01-02", "2026-01-03"]);
        let incomplete = site.query("SELECT date FROM data_quality WHERE reason = 'incomplete_window' ORDER BY date");
        let incomplete: Vec<&Value> = incomplete.iter().map(|row| &row["date"]).collect();
        assert_eq!(incomplete, ["2026-01-04", "2026-01-05"]);
    }
}

#[test]
fn case_44_and_46_the_path_says_the_date() {
    let site = Site::empty();
    let columns = with(allocation("encoded"), "date", strings("1999-09-09"));
    write(&site, "allocations/date=2026%2D01%2D01/part.parquet", columns);
    write(&site, "allocations/date=__HIVE_DEFAULT_PARTITION__/part.parquet", allocation("no date"));
    site.run(&[]);
    assert_eq!(allocated(&site), HOUR);
    let dates = site.query("SELECT date FROM telemetry.allocations WHERE date = DATE '2026-01-01'");
    assert_eq!(dates.len(), 1);
    let beside = site.query("SELECT reason FROM data_quality WHERE date IS NULL");
    assert_eq!(beside[0]["reason"], "skipped_file:date=__HIVE_DEFAULT_PARTITION__");
}

#[test]
fn case_45_what_is_no_data_file_is_skipped_and_counted_by_name() {
    let site = Site::empty();
    let good = write(&site, "allocations/date=2026-01-01/good.parquet", allocation("good"));
    let stray = ["allocations/stray.parquet", "allocations/_SUCCESS", "allocations/part=1/part.parquet"];
    let in_partition = [
        "_SUCCESS",
        ".x.parquet",
        "_inprogress.parquet",
        "_temporary/part.parquet",
        "sub/part.parquet",
        "part.parquet.tmp",
    ];
    let in_partition = in_partition.map(|name| format!("allocations/date=2026-01-01/{name}"));
    for path in stray.into_iter().map(str::to_owned).chain(in_partition) {
        let path = site.telemetry().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::copy(&good, &path).unwrap();
    }
    site.run(&[]);
    assert_eq!(allocated(&site), HOUR);
    let mut found: Vec<String> = site.findings().into_keys().filter(|finding| finding.contains("skipped")).collect();
    found.sort();
    let expected = [
        ".x.parquet",
        "_SUCCESS",
        "_inprogress.parquet",
        "_temporary",
        "part.parquet.tmp",
        "part=1",
        "stray.parquet",
        "sub",
    ];
    assert_eq!(found, expected.map(|name| format!("allocations skipped_file:{name}")));
}

/// Flips and cuts bytes of good files, and takes public broken ones: no panic, and a file that is not read is named.
#[test]
fn broken_files_never_end_the_program() {
    let site = Site::empty();
    let good = write(&site, "allocations/date=2026-01-01/good.parquet", allocation("good"));
    let bad = site.telemetry().join("allocations/date=2026-01-01/bad.parquet");
    let bytes = std::fs::read(&good).unwrap();
    let mut broken: Vec<Vec<u8>> = Vec::new();
    for number in 0..40_usize {
        let mut copy = bytes.clone();
        let at = number * 7_919 % copy.len();
        if number % 4 == 0 {
            copy.truncate(at);
        } else {
            copy[at] ^= 1 << (number % 8);
            let other = (at * 31 + 5) % copy.len();
            copy[other] = copy[other].wrapping_add(128);
        }
        broken.push(copy);
    }
    if let Some(shared) = shared("public files with broken pages") {
        let files = parquet_files(&shared.join("data/parquet-bad")).unwrap();
        assert!(!files.is_empty());
        broken.extend(files.iter().map(|file| std::fs::read(file).unwrap()));
    }
    for bytes in broken {
        std::fs::write(&bad, &bytes).unwrap();
        let output = site.command("run", &["--json"]).output().unwrap();
        let said = stderr(&output);
        let code = output.status.code();
        assert!(matches!(code, Some(0 | 1 | 3)), "{code:?}: {said}");
        assert!(!said.contains("panicked"), "{said}");
        if code != Some(0) {
            let shown = format!("{said}{}", String::from_utf8_lossy(&output.stdout));
            assert!(shown.contains("bad.parquet") || shown.contains("exceed 64 bits"), "{shown}");
        }
    }
}

#[test]
fn paths_may_hold_anything() {
    let site = Site::empty();
    let odd = site.path().join("a b%20c ü#1");
    std::fs::create_dir_all(&odd).unwrap();
    write(&site, "allocations/date=2026-01-01/pärt 1%.parquet", allocation("odd"));
    std::fs::rename(site.telemetry(), odd.join("telemetry")).unwrap();
    let telemetry = format!("telemetry={}", odd.join("telemetry").display());
    let warehouse = format!("warehouse={}", odd.join("warehouse").display());
    site.run(&["--set", &telemetry, "--set", &warehouse]);
    let files = parquet_files(&odd.join("warehouse/job_day")).unwrap();
    assert_eq!(files.len(), 1, "{files:?}");
    assert!(Path::new(&files[0]).ends_with("date=2026-01-01/part-0.parquet"));
}
