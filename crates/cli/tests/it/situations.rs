//! Faults that people reported of systems that do parts of this job, each with the right answer here. The numbers are those
//! of the shared list of cases.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::program::Site;

const HOUR: i64 = 3_600_000;
const MINUTE: i64 = 60_000;
const SECOND: i64 = 1_000;

const JOBS: [&str; 6] = ["date", "job_id", "submit_ts", "end_ts", "end_state", "chips_required"];
const ALLOCATIONS: [&str; 9] =
    ["date", "job_id", "attempt", "task", "cell", "accelerator", "chips", "start_ts", "end_ts"];
const RUNTIME: [&str; 8] = ["date", "job_id", "attempt", "phase", "start_ts", "end_ts", "first_step", "last_step"];
const PROFILES: [&str; 9] =
    ["date", "job_id", "attempt", "program", "start_ts", "end_ts", "steps", "step_time_us", "predicted_step_time_us"];
const CAPACITY: [&str; 8] = ["date", "cell", "accelerator", "block", "chips", "state", "start_ts", "end_ts"];

/// Rows of tables under their column names.
fn telemetry(tables: &[(&str, Value)]) -> Value {
    let names = |table: &str| match table {
        "jobs" => json!(JOBS),
        "allocations" => json!(ALLOCATIONS),
        "runtime" => json!(RUNTIME),
        "profiles" => json!(PROFILES),
        _ => json!(CAPACITY),
    };
    let listing = |(table, rows): &(&str, Value)| {
        let mut listing = vec![names(table)];
        listing.extend(rows.as_array().unwrap().clone());
        ((*table).to_owned(), Value::Array(listing))
    };
    Value::Object(tables.iter().map(listing).collect())
}

/// Runs the days and compares the sums over `job_day`, and what was found.
fn check(
    case: &str,
    tables: &[(&str, Value)],
    (from, to): (&str, &str),
    booked: &[(&str, i64)],
    found: &[(&str, i64)],
) -> Site {
    let site = Site::with(&telemetry(tables));
    site.run(&["--from", from, "--to", to]);
    let booked: BTreeMap<String, i64> = booked.iter().map(|(bucket, sum)| ((*bucket).to_owned(), *sum)).collect();
    let found: BTreeMap<String, i64> = found.iter().map(|(finding, rows)| ((*finding).to_owned(), *rows)).collect();
    assert_eq!(site.sums("job_day"), booked, "case {case}");
    assert_eq!(site.findings(), found, "case {case}");
    site
}

/// A job that asked for so many chips, over a stretch of 2026-01-01.
fn job(chips: i64, start: &str, end: &str, state: &str) -> Value {
    let at = |time: &str| format!("2026-01-01T{time}:00Z");
    json!([["2026-01-01", "j", at(start), at(end), state, chips]])
}

/// An allocation of that job.
fn held(chips: i64, start: &str, end: &str) -> Value {
    let at = |time: &str| format!("2026-01-01T{time}:00Z");
    json!([["2026-01-01", "j", 0, "", "c", "x", chips, at(start), at(end)]])
}

const DAY: (&str, &str) = ("2026-01-01", "2026-01-01");

#[test]
fn case_6_and_30_a_job_without_telemetry_is_unobserved_and_not_productive() {
    let tables = [("jobs", job(8, "01:00", "03:00", "completed")), ("allocations", held(8, "01:00", "03:00"))];
    let site = check("6", &tables, DAY, &[("allocated", 16 * HOUR), ("unobserved", 16 * HOUR)], &[]);
    let fleet =
        site.query("SELECT runtime_goodput, runtime_coverage FROM goodput_quarterly WHERE segment_by = 'fleet'");
    assert_eq!(fleet[0]["runtime_goodput"], Value::Null);
    assert_eq!(fleet[0]["runtime_coverage"], json!(0.0));
}

#[test]
fn case_7_all_rounds_back_to_the_last_checkpoint_are_lost() {
    // Saved at step 99; rounds of 10, 10 and 5 minutes, all unsaved; preempted.
    let tables = [
        ("jobs", job(1, "00:00", "01:00", "preempted")),
        ("allocations", held(1, "00:00", "01:00")),
        (
            "runtime",
            json!([
                ["2026-01-01", "j", 0, "step", "2026-01-01T00:00Z", "2026-01-01T00:30Z", 0, 99],
                ["2026-01-01", "j", 0, "checkpoint", "2026-01-01T00:30Z", "2026-01-01T00:35Z", null, 99],
                ["2026-01-01", "j", 0, "step", "2026-01-01T00:35Z", "2026-01-01T00:45Z", 100, 119],
                ["2026-01-01", "j", 0, "step", "2026-01-01T00:45Z", "2026-01-01T00:55Z", 120, 139],
                ["2026-01-01", "j", 0, "step", "2026-01-01T00:55Z", "2026-01-01T01:00Z", 140, 149],
            ]),
        ),
    ];
    let booked = [("allocated", HOUR), ("productive", 30 * MINUTE), ("checkpoint", 5 * MINUTE), ("lost", 25 * MINUTE)];
    check("7", &tables, DAY, &booked, &[]);
}

#[test]
fn case_10_cancelled_before_it_started_is_queue_demand_alone() {
    check("10", &[("jobs", job(4, "02:00", "05:00", "cancelled"))], DAY, &[("queued", 12 * HOUR)], &[]);
}

#[test]
fn case_11_an_allocation_without_an_end_is_closed_when_it_is_recorded_no_more() {
    let tables = [(
        "allocations",
        json!([
            ["2026-01-01", "j", 0, "", "c", "x", 1, "2026-01-01T12:00Z", null],
            ["2026-01-03", "k", 0, "", "c", "x", 1, "2026-01-03T00:00Z", "2026-01-03T06:00Z"],
        ]),
    )];
    let found = [("allocations stale_open", 1), ("allocations orphan_allocation", 2)];
    check("11", &tables, ("2026-01-01", "2026-01-03"), &[("allocated", 18 * HOUR), ("unobserved", 18 * HOUR)], &found);
}

#[test]
fn a_gap_in_the_telemetry_is_told() {
    let row = |date: &str| json!([date, "j", 0, "", "c", "x", 1, "2026-01-01T00:00Z", "2026-01-01T01:00Z"]);
    let site = Site::with(&telemetry(&[("allocations", json!([row("2026-01-01"), row("2026-01-10")]))]));
    let record = site.run(&["--set", "settle_days=2"]);
    assert_eq!(record["days_without_window"], json!(4));
    // Within the windows of the days that have some: 2026-01-02 and 03, 08 and 09.
    assert_eq!(record["audits"]["days_without_telemetry"]["rows"], json!(4));
}

#[test]
fn case_12_of_two_terminal_events_the_first_is_true() {
    let row = |end: &str| json!(["2026-01-02", "j", 0, "", "c", "x", 1, "2026-01-01T00:00:00Z", end]);
    let tables = [("allocations", json!([row("2026-01-01T23:24:20Z"), row("2026-01-01T00:00:39Z")]))];
    let found = [("allocations duplicate", 1), ("allocations orphan_allocation", 1)];
    let days = ("2026-01-01", "2026-01-02");
    check("12", &tables, days, &[("allocated", 39 * SECOND), ("unobserved", 39 * SECOND)], &found);
}

#[test]
fn case_13_an_interval_is_cut_at_every_midnight() {
    // Over the ends of a month, of a quarter and of a year, and over a leap day.
    for (before, after) in [
        ("2026-01-31", "2026-02-01"),
        ("2026-03-31", "2026-04-01"),
        ("2025-12-31", "2026-01-01"),
        ("2024-02-28", "2024-02-29"),
    ] {
        let start = format!("{before}T23:00Z");
        let end = format!("{after}T01:00Z");
        let tables = [("allocations", json!([[after, "j", 0, "", "c", "x", 1, start, end]]))];
        let found = [("allocations orphan_allocation", 1)];
        let booked = [("allocated", 2 * HOUR), ("unobserved", 2 * HOUR)];
        let site = check("13", &tables, (before, after), &booked, &found);
        let days = site.query("SELECT date, allocated_chip_ms FROM job_day ORDER BY date");
        let days: Vec<_> = days.iter().map(|row| (row["date"].clone(), row["allocated_chip_ms"].clone())).collect();
        assert_eq!(days, [(json!(before), json!(HOUR)), (json!(after), json!(HOUR))]);
    }
}

#[test]
fn case_14_and_17_a_job_is_found_by_overlap_and_by_arrival() {
    // Submitted before midnight, ended after it, recorded four days later.
    let tables = [
        ("jobs", json!([["2026-01-06", "j", "2026-01-01T23:50Z", "2026-01-02T00:20Z", "completed", 1]])),
        ("allocations", json!([["2026-01-06", "j", 0, "", "c", "x", 1, "2026-01-01T23:50Z", "2026-01-02T00:20Z"]])),
    ];
    let alone = ("2026-01-02", "2026-01-02");
    check("14", &tables, alone, &[("allocated", 20 * MINUTE), ("unobserved", 20 * MINUTE)], &[]);
}

#[test]
fn case_16_and_18_rows_of_other_times_are_quarantined_and_honest_ones_are_not() {
    let tables = [(
        "allocations",
        json!([
            ["2026-01-01", "j", 0, "", "c", "x", 1, "2026-01-01T00:00Z", "2026-01-01T01:00Z"],
            ["2026-01-01", "k", 0, "", "c", "x", 1, "2031-01-01T00:00Z", null],
            ["2026-01-01", "l", 0, "", "c", "x", 1, "2026-01-03T00:00:00.001Z", null],
            ["2026-01-01", "m", 0, "", "c", "x", 1, "1970-01-01T00:00Z", "2026-01-01T01:00Z"],
            ["2026-01-01", "n", 0, "", "c", "x", 1, "1970-01-21T10:40Z", "1970-01-21T11:40Z"],
        ]),
    )];
    let found = [
        ("allocations orphan_allocation", 1),
        ("allocations from_the_future", 2),
        ("allocations implausible_start", 2),
    ];
    check("16", &tables, DAY, &[("allocated", HOUR), ("unobserved", HOUR)], &found);
}

#[test]
fn case_19_an_end_in_9999_is_no_end() {
    let tables = [(
        "allocations",
        json!([["2026-01-01", "j", 0, "", "c", "x", 1, "2026-01-01T12:00Z", "9999-12-31T23:59:59Z"]]),
    )];
    let found = [("allocations end_in_future", 1), ("allocations orphan_allocation", 1)];
    check("19", &tables, DAY, &[("allocated", 12 * HOUR), ("unobserved", 12 * HOUR)], &found);
}

#[test]
fn case_20_and_27_ratios_are_ratios_of_sums_and_null_without_a_denominator() {
    // Two pools: 1 of 2 and 1 of 4 chips allocated; a third without capacity or chips has no row at all.
    let tables = [
        (
            "capacity",
            json!([
                ["2026-01-01", "a", "x", "b", 2, "available", "2026-01-01T00:00Z", "2026-01-01T01:00Z"],
                ["2026-01-01", "b", "x", "b", 4, "available", "2026-01-01T00:00Z", "2026-01-01T01:00Z"],
            ]),
        ),
        (
            "allocations",
            json!([
                ["2026-01-01", "j", 0, "", "a", "x", 1, "2026-01-01T00:00Z", "2026-01-01T01:00Z"],
                ["2026-01-01", "k", 0, "", "b", "x", 1, "2026-01-01T00:00Z", "2026-01-01T01:00Z"],
            ]),
        ),
    ];
    let booked = [("allocated", 2 * HOUR), ("unobserved", 2 * HOUR)];
    let site = check("20", &tables, DAY, &booked, &[("allocations orphan_allocation", 2)]);
    let rows = site.query(
        "SELECT segment_by, cell, scheduling_goodput, runtime_goodput, program_goodput, mpg, mpg_floor, demand_goodput \
         FROM goodput_quarterly WHERE owns_capacity(segment_by) ORDER BY segment_by, cell",
    );
    let of = |segment: &str, cell: Value| {
        rows.iter().find(|row| row["segment_by"] == segment && row["cell"] == cell).unwrap()
    };
    assert_eq!(of("fleet", Value::Null)["scheduling_goodput"], json!(2.0 / 6.0));
    assert_eq!(of("cell", json!("a"))["scheduling_goodput"], json!(0.5));
    assert_eq!(of("cell", json!("b"))["scheduling_goodput"], json!(0.25));
    for row in &rows {
        for ratio in ["runtime_goodput", "program_goodput", "mpg"] {
            assert_eq!(row[ratio], Value::Null, "{ratio} of {row:?}");
        }
        assert_eq!(row["mpg_floor"], json!(0.0));
        assert_eq!(row["demand_goodput"], json!(1.0));
    }
    // The same from the table for dashboards.
    let daily = site.query("SELECT ratio(sum(allocated_chip_ms), sum(capacity_chip_ms)) AS sg FROM goodput_daily");
    assert_eq!(daily[0]["sg"], json!(2.0 / 6.0));
}

#[test]
fn case_21_chips_held_without_capacity_are_kept_and_reported() {
    let tables = [("allocations", held(21, "00:00", "01:00"))];
    let booked = [("allocated", 21 * HOUR), ("unobserved", 21 * HOUR)];
    let site = check("21", &tables, DAY, &booked, &[("allocations orphan_allocation", 1)]);
    assert_eq!(site.sums("pool_day").get("idle"), Some(&(-21 * HOUR)));
    let fleet =
        site.query("SELECT scheduling_goodput, mpg, occupancy FROM goodput_quarterly WHERE segment_by = 'fleet'");
    assert!(fleet[0].values().all(Value::is_null), "{fleet:?}");
    let audits = site.query("SELECT audit, severity FROM audit_findings");
    assert!(audits.iter().any(|row| row["audit"] == "held_within_capacity" && row["severity"] == "warning"));
}

#[test]
fn case_22_and_29_phases_that_overlap_are_booked_once_and_arrival_order_does_not_matter() {
    let mut rows = vec![
        json!(["2026-01-01", "j", 0, "step", "2026-01-01T00:00:00Z", "2026-01-01T01:00:00Z", 0, 59]),
        json!(["2026-01-01", "j", 0, "step", "2026-01-01T00:00:00.500Z", "2026-01-01T01:00:00.500Z", 0, 59]),
        json!(["2026-01-01", "j", 0, "data_wait", "2026-01-01T00:10:00Z", "2026-01-01T00:20:00Z", null, null]),
        json!(["2026-01-01", "j", 0, "checkpoint", "2026-01-01T00:15:00Z", "2026-01-01T00:25:00Z", null, 20]),
        json!(["2026-01-01", "j", 0, "data_async", "2026-01-01T00:00:00Z", "2026-01-01T02:00:00Z", null, null]),
    ];
    for _ in 0..2 {
        let tables = [
            ("jobs", job(1, "00:00", "02:00", "completed")),
            ("allocations", held(1, "00:00", "02:00")),
            ("runtime", Value::Array(rows.clone())),
        ];
        let booked = [
            ("allocated", 2 * HOUR),
            ("data_wait", 5 * MINUTE),
            ("checkpoint", 10 * MINUTE),
            ("productive", 45 * MINUTE + 500),
            ("stall", HOUR - 500),
        ];
        check("22", &tables, DAY, &booked, &[]);
        rows.reverse();
    }
}

#[test]
fn case_23_and_24_values_that_are_no_times_are_quarantined_and_never_used() {
    let profile = |start: &str, measured: Value, predicted: Value| {
        let (start, end) = (format!("2026-01-01T00:{start}:00Z"), "2026-01-01T01:00:00Z");
        json!(["2026-01-01", "j", 0, "p", start, end, 1, measured, predicted])
    };
    let tables = [
        ("jobs", job(1, "00:00", "01:00", "completed")),
        ("allocations", held(1, "00:00", "01:00")),
        ("runtime", json!([["2026-01-01", "j", 0, "step", "2026-01-01T00:00Z", "2026-01-01T01:00Z", 0, 9]])),
        (
            "profiles",
            json!([
                profile("01", json!(1.0), json!(0.5)),
                profile("02", json!("NaN"), json!(0.5)),
                profile("03", json!(1.0), json!(0.5)),
                profile("04", json!(1.4e16), json!(0.5)),
                profile("05", json!(9.223372036854775e18), json!(0.5)),
                profile("06", json!("Infinity"), json!(0.5)),
                profile("07", json!(0.0), json!(0.5)),
                profile("08", json!(1.0), json!("NaN")),
                profile("09", json!(1.0), json!(-1.0)),
            ]),
        ),
    ];
    let booked = [("allocated", HOUR), ("productive", HOUR), ("profiled", HOUR), ("ideal", HOUR / 2)];
    let site = check("23", &tables, DAY, &booked, &[("profiles bad_value", 7)]);
    // Statistics of the file must not hide the NaN.
    let seen = site.query(
        "SELECT count(*) AS rows, count(*) FILTER (WHERE isnan(step_time_us)) AS nans, max(step_time_us) AS most \
         FROM telemetry.profiles",
    );
    assert_eq!((&seen[0]["rows"], &seen[0]["nans"]), (&json!(9), &json!(1)));
}

#[test]
fn case_25_a_sum_that_does_not_fit_is_an_error() {
    let site = Site::empty();
    let most = i64::MAX;
    for query in [
        format!("SELECT sum(x) FROM (VALUES ({most}), (1)) AS t(x)"),
        format!("SELECT k, sum(x) FROM (VALUES (1, {most}), (1, 1)) AS t(k, x) GROUP BY k"),
        format!("SELECT sum(x) OVER () FROM (VALUES ({most}), (1)) AS t(x)"),
        format!("SELECT checked_add({most}, 1)"),
        format!("SELECT checked_sub(-2, {most})"),
    ] {
        let output = site.command("sql", &[&query]).output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{query}");
        assert!(crate::program::stderr(&output).contains("does not fit into 64 bits"), "{query}");
    }
    // What fits in the end may pass beyond on the way.
    let rows = site.query(&format!("SELECT sum(x) AS s FROM (VALUES ({most}), (1), (-1)) AS t(x)"));
    assert_eq!(rows[0]["s"], json!(most));
    // In the books it is an error, too, that names job and day.
    let chips = i64::MAX / 10;
    let site = Site::with(&telemetry(&[("allocations", held(chips, "00:00", "01:00"))]));
    let (said, _) = site.run_to(1, &[]);
    assert!(said.contains("job `j`") && said.contains("2026-01-01") && said.contains("exceed 64 bits"), "{said}");
}

#[test]
fn case_26_an_unknown_chip_gives_no_prediction_and_too_good_a_program_is_reported() {
    let rows = |accelerator: &str, precision: &str| {
        json!({
            "jobs": [JOBS, ["2026-01-01", "j", "2026-01-01T00:00Z", "2026-01-01T01:00Z", "completed", 10]],
            "allocations": [ALLOCATIONS,
                ["2026-01-01", "j", 0, "", "c", accelerator, 10, "2026-01-01T00:00Z", "2026-01-01T01:00Z"]],
            "runtime": [RUNTIME,
                ["2026-01-01", "j", 0, "step", "2026-01-01T00:00Z", "2026-01-01T01:00Z", 0, 9]],
            "profiles": [
                ["date", "job_id", "attempt", "program", "start_ts", "end_ts", "steps", "step_time_us",
                 "flops_per_step", "bytes_per_step", "precision"],
                // Ten chips of 459e12 a second need a second for this work; 2e6 us were measured.
                ["2026-01-01", "j", 0, "p", "2026-01-01T00:00Z", "2026-01-01T00:30Z", 10, 2e6,
                 4_590e12, 41_475e9, precision]],
        })
    };
    let ideal = |accelerator: &str, precision: &str, model: &str| {
        let site = Site::with(&rows(accelerator, precision));
        let pipeline = site.edited_pipeline("p", "ideal_model: predicted", &format!("ideal_model: {model}"));
        let record = site.run(&["-p", pipeline.to_str().unwrap()]);
        let sums = site.sums("job_day");
        let too_good = record["audits"].get("program_goodput_at_most_one").is_some();
        (sums.get("profiled").copied(), sums.get("ideal").copied(), too_good)
    };
    let all = 10 * HOUR;
    assert_eq!(ideal("tpu-v5p", "bf16", "predicted"), (None, None, false));
    assert_eq!(ideal("tpu-v5p", "bf16", "compute"), (Some(all), Some(all / 2), false));
    // Ten chips of 2765e9 bytes a second need 1.5 seconds for the bytes.
    assert_eq!(ideal("tpu-v5p", "bf16", "roofline"), (Some(all), Some(all * 3 / 4), false));
    assert_eq!(ideal("tpu-v5p", "fp4", "compute"), (None, None, false));
    assert_eq!(ideal("tpu-v99", "bf16", "compute"), (None, None, false));
    // An older chip: the ideal is slower than what was measured, so the model is wrong.
    assert_eq!(ideal("tpu-v5e", "bf16", "compute"), (Some(all), Some(41_939_086), true));
}

#[test]
fn case_28_an_outage_is_a_loss_of_whoever_held_the_chips() {
    let step = |attempt: i64, start: &str, end: &str, first: i64, last: i64| {
        let at = |time: &str| format!("2026-01-01T00:{time}Z");
        json!(["2026-01-01", "j", attempt, "step", at(start), at(end), first, last])
    };
    // Crashed at 60 s, down for 1000 s, restarted at exactly the next step, ended at 1100 s: ten steps of ten seconds.
    let runtime = json!([step(0, "00:00", "01:00", 0, 5), step(1, "17:40", "18:20", 6, 9)]);
    let jobs = json!([["2026-01-01", "j", "2026-01-01T00:00:00Z", "2026-01-01T00:18:20Z", "completed", 1]]);
    let hold = |attempt: i64, start: &str, end: &str| {
        let at = |time: &str| format!("2026-01-01T00:{time}Z");
        json!(["2026-01-01", "j", attempt, "", "c", "x", 1, at(start), at(end)])
    };
    let kept = json!([hold(0, "00:00", "17:40"), hold(1, "17:40", "18:20")]);
    let tables = [("jobs", jobs.clone()), ("allocations", kept), ("runtime", runtime.clone())];
    let booked = [("allocated", 1_100 * SECOND), ("productive", 100 * SECOND), ("stall", 1_000 * SECOND)];
    check("28, held", &tables, DAY, &booked, &[]);
    let released = json!([hold(0, "00:00", "01:00"), hold(1, "17:40", "18:20")]);
    let tables = [("jobs", jobs), ("allocations", released), ("runtime", runtime)];
    let booked = [("allocated", 100 * SECOND), ("productive", 100 * SECOND), ("queued", 1_000 * SECOND)];
    check("28, released", &tables, DAY, &booked, &[]);
}
