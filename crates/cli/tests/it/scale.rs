//! What does not fit into memory, and what comes in odd proportions.

use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array, RecordBatch, StringArray, TimestampMillisecondArray};
use goodput_testkit::cases::write_parquet;
use serde_json::json;

use crate::program::{Site, goodput, published, stderr};

/// Milliseconds since the epoch at which 2026-01-01 begins.
const FIRST: i64 = 1_767_225_600_000;
const DAY: i64 = 86_400_000;
const DAYS: i64 = 10;
/// Rows of the huge job a day, a step each: nine in ten of all rows.
const STEPS_PER_DAY: i64 = 8_000;
/// A little less than what fits: the rest of each step's time is a stall.
const STEP_MS: i64 = 10_000;

fn write(site: &Site, table: &str, day: i64, columns: Vec<(&str, ArrayRef)>) {
    let batch = RecordBatch::try_from_iter(columns).unwrap();
    let path = site.telemetry().join(format!("{table}/date=2026-01-{:02}/huge.parquet", day + 1));
    write_parquet(&path, &batch).unwrap();
}

fn texts(values: &[&str]) -> ArrayRef {
    Arc::new(StringArray::from(values.to_vec()))
}

fn ints(values: impl IntoIterator<Item = i64>) -> ArrayRef {
    Arc::new(Int64Array::from_iter_values(values))
}

fn instants(values: impl IntoIterator<Item = Option<i64>>) -> ArrayRef {
    Arc::new(values.into_iter().collect::<TimestampMillisecondArray>().with_timezone("UTC"))
}

/// A job of 4 chips that steps all the time, beside a simulated fleet.
fn write_huge_job(site: &Site) {
    let output = goodput()
        .arg("simulate")
        .arg(site.telemetry())
        .args(["--seed", "1", "--days", &DAYS.to_string(), "--jobs-per-day", "12"])
        .args(["--runtime-rows-per-job-day", "30"])
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    for day in 0..DAYS {
        let midnight = FIRST + day * DAY;
        let last = day == DAYS - 1;
        let end = last.then_some(midnight + DAY);
        let open = || instants([end]);
        let begin = || instants([Some(FIRST)]);
        write(
            site,
            "jobs",
            day,
            vec![
                ("job_id", texts(&["huge"])),
                ("submit_ts", begin()),
                ("end_ts", open()),
                ("chips_required", ints([4])),
            ],
        );
        write(
            site,
            "allocations",
            day,
            vec![
                ("job_id", texts(&["huge"])),
                ("attempt", ints([0])),
                ("task", texts(&[""])),
                ("cell", texts(&["annex"])),
                ("accelerator", texts(&["tpu-v5p"])),
                ("chips", ints([4])),
                ("start_ts", begin()),
                ("end_ts", open()),
            ],
        );
        let steps = || 0..STEPS_PER_DAY;
        let all = usize::try_from(STEPS_PER_DAY).unwrap();
        write(
            site,
            "runtime",
            day,
            vec![
                ("job_id", texts(&vec!["huge"; all])),
                ("attempt", ints(steps().map(|_| 0))),
                ("phase", texts(&vec!["step"; all])),
                ("start_ts", instants(steps().map(|step| Some(midnight + step * STEP_MS)))),
                ("end_ts", instants(steps().map(|step| Some(midnight + (step + 1) * STEP_MS)))),
                ("first_step", ints(steps().map(|step| day * STEPS_PER_DAY + step))),
                ("last_step", ints(steps().map(|step| day * STEPS_PER_DAY + step))),
            ],
        );
    }
}

#[test]
fn a_job_of_nearly_all_rows_is_booked_in_little_memory_as_in_much() {
    let site = Site::empty();
    write_huge_job(&site);
    let rows = site.run(&[]);
    let read = rows["rows"].as_i64().unwrap();
    assert!(STEPS_PER_DAY * DAYS * 10 > read * 8, "the job has {} of {read} rows", STEPS_PER_DAY * DAYS);
    let whole = published(&site.warehouse());
    let of_job: Vec<_> = whole["job_day"].iter().filter(|row| row["job_id"] == json!("huge")).collect();
    assert_eq!(of_job.len(), usize::try_from(DAYS).unwrap());
    for row in of_job {
        let productive = 4 * STEPS_PER_DAY * STEP_MS;
        assert_eq!(row["productive_chip_ms"], json!(productive), "{row:?}");
        assert_eq!(row["stall_chip_ms"], json!(4 * DAY - productive), "{row:?}");
    }

    let warehouse = site.path().join("little");
    let set = format!("warehouse={}", warehouse.display());
    site.run(&["--set", &set, "--set", "chunk_days=3", "--memory", "4MiB", "--threads", "2"]);
    for (table, rows) in published(&warehouse) {
        assert_eq!(rows, whole[table], "{table}");
    }
}
