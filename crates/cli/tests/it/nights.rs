//! Night after night: what arrives, when it arrives, and which days are due for it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use goodput_testkit::cases::parquet_files;
use serde_json::Value;

use crate::program::{Site, goodput, without_run};

/// Days of the window on either side, here: fewer than the main job has, so that nights are short.
const SETTLE: usize = 2;

/// The tables that runs are compared in.
const TABLES: [&str; 6] =
    ["job_day", "pool_day", "goodput_daily", "goodput_quarterly", "data_quality", "audit_findings"];

/// Telemetry of a small simulated fleet, and the days that it has partitions of.
fn simulated(days: usize, seed: u64) -> (Site, Vec<String>) {
    let site = Site::empty();
    let output = goodput()
        .args(["simulate", "--quiet", "--jobs-per-day", "5", "--runtime-rows-per-job-day", "8"])
        .args(["--from", "2026-02-20", "--days", &days.to_string(), "--seed", &seed.to_string()])
        .args(["--settle-days", &SETTLE.to_string()])
        .arg(site.telemetry())
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    let dates: BTreeSet<String> = parquet_files(&site.telemetry())
        .unwrap()
        .iter()
        .filter(|file| !file.to_string_lossy().contains("_truth"))
        .filter_map(|file| Some(file.parent()?.file_name()?.to_str()?.strip_prefix("date=")?.to_owned()))
        .collect();
    (site, dates.into_iter().collect())
}

/// The files of a date, by their path below the root.
fn files_of(root: &Path, date: &str) -> Vec<PathBuf> {
    let folder = format!("date={date}");
    let files = parquet_files(root).unwrap().into_iter().filter(|file| !file.to_string_lossy().contains("_truth"));
    let files = files.filter(|file| file.parent().is_some_and(|parent| parent.ends_with(&folder)));
    files.map(|file| file.strip_prefix(root).unwrap().to_path_buf()).collect()
}

fn deliver(from: &Site, to: &Site, file: &Path) {
    let path = to.telemetry().join(file);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    // Aside first: a run must not see half a file.
    let aside = path.with_extension("unfinished");
    std::fs::copy(from.telemetry().join(file), &aside).unwrap();
    std::fs::rename(aside, path).unwrap();
}

fn run(site: &Site, arguments: &[&str]) -> Value {
    let settle = format!("settle_days={SETTLE}");
    let mut all = vec!["--set", settle.as_str()];
    all.extend(arguments);
    site.run(&all)
}

/// The days that a run worked on.
fn due(record: &Value) -> BTreeSet<String> {
    record["due"].as_object().unwrap().keys().cloned().collect()
}

fn reason(record: &Value, day: &str) -> String {
    record["due"][day].as_str().unwrap_or_default().to_owned()
}

/// The bytes of the files that lie in the windows of days, at positions among all dates.
fn bytes_of_windows(site: &Site, dates: &[String], days: &BTreeSet<String>) -> u64 {
    let position = |day: &String| dates.iter().position(|date| date == day).unwrap();
    let windows = days.iter().map(position).flat_map(|at| at.saturating_sub(SETTLE)..=at + SETTLE);
    let windows: BTreeSet<usize> = windows.filter(|at| *at < dates.len()).collect();
    let files = windows.into_iter().flat_map(|at| files_of(&site.telemetry(), &dates[at]));
    files.map(|file| site.telemetry().join(file).metadata().unwrap().len()).sum()
}

fn assert_same_tables(left: &Site, right: &Site) {
    for table in TABLES {
        assert_eq!(without_run(left.table(table)), without_run(right.table(table)), "{table}");
    }
}

/// All files of a warehouse but for run records and state, with what is in them.
fn published(site: &Site) -> BTreeMap<PathBuf, Vec<u8>> {
    let files = parquet_files(&site.warehouse()).unwrap();
    files.into_iter().map(|file| (file.clone(), std::fs::read(file).unwrap())).collect()
}

#[test]
fn sixty_nights_end_in_the_tables_of_one_run() {
    let (source, dates) = simulated(60, 11);
    let (other, _) = simulated(60, 12);
    let nights = Site::empty();
    let late = |at: usize| (at % 9 == 4).then_some(1 + at % 4);
    let mut on_their_way: BTreeMap<usize, Vec<PathBuf>> = BTreeMap::new();
    // The runtime rows of this day were those of another fleet at first; the right ones come when it is long final.
    let (restated, corrected_on) = (20, 33);
    let mut missed = BTreeSet::new();
    for (at, date) in dates.iter().enumerate() {
        let mut arrived: Vec<PathBuf> = on_their_way.remove(&at).unwrap_or_default();
        for file in files_of(&source.telemetry(), date) {
            match late(at).filter(|_| file.starts_with("runtime")) {
                Some(nights) => on_their_way.entry(at + nights).or_default().push(file),
                None => arrived.push(file),
            }
        }
        for file in &arrived {
            let is_wrong = at == restated && file.starts_with("runtime");
            deliver(if is_wrong { &other } else { &source }, &nights, file);
        }
        if at == corrected_on {
            for file in files_of(&source.telemetry(), &dates[restated]) {
                if file.starts_with("runtime") {
                    deliver(&source, &nights, &file);
                    arrived.push(file);
                }
            }
        }
        missed.extend(arrived);
        if (25..28).contains(&at) {
            continue;
        }
        // Due are the days whose windows hold what arrived since the last run, as far as telemetry goes.
        let mut expected: BTreeSet<String> = BTreeSet::new();
        for file in std::mem::take(&mut missed) {
            let date = file.parent().unwrap().file_name().unwrap().to_str().unwrap().replace("date=", "");
            let of = dates.iter().position(|other| *other == date).unwrap();
            let days = of.saturating_sub(SETTLE)..=(of + SETTLE).min(at);
            expected.extend(days.map(|day| dates[day].clone()));
        }
        let record = run(&nights, &[]);
        assert_eq!(due(&record), expected, "night {at}");
        assert_eq!(record["bytes"].as_u64().unwrap(), bytes_of_windows(&nights, &dates, &expected), "night {at}");
        if at == corrected_on {
            assert!(reason(&record, &dates[restated]).contains("part-0.parquet has changed"), "{record}");
        }
    }
    // What was on its way beyond the last night.
    for file in on_their_way.into_values().flatten() {
        deliver(&source, &nights, &file);
    }
    run(&nights, &[]);
    let before = published(&nights);
    let idle = run(&nights, &[]);
    assert_eq!((due(&idle), &idle["tables"]), (BTreeSet::new(), &serde_json::json!({})));
    assert_eq!(published(&nights), before);

    let once = Site::empty();
    for date in &dates {
        files_of(&source.telemetry(), date).iter().for_each(|file| deliver(&source, &once, file));
    }
    run(&once, &["--full-refresh"]);
    assert_same_tables(&nights, &once);
}

#[test]
fn a_day_is_due_for_a_reason_that_is_told() {
    let (source, dates) = simulated(8, 3);
    let site = Site::empty();
    for date in &dates {
        files_of(&source.telemetry(), date).iter().for_each(|file| deliver(&source, &site, file));
    }
    let first = run(&site, &[]);
    assert_eq!(due(&first).len(), dates.len());
    assert_eq!(reason(&first, &dates[0]), "never published");
    assert!(due(&run(&site, &[])).is_empty());

    // Other settings than before, and back again.
    let other = run(&site, &["--set", "settle_days=1"]);
    assert_eq!(due(&other).len(), dates.len());
    assert!(reason(&other, &dates[3]).contains("settings: settle_days 2 -> 1"), "{other}");
    assert_eq!(due(&run(&site, &[])).len(), dates.len());

    // A partition that somebody deleted, or wrote.
    let partition = site.warehouse().join(format!("job_day/date={}/part-0.parquet", dates[3]));
    std::fs::remove_file(&partition).unwrap();
    let record = run(&site, &[]);
    assert_eq!(due(&record), BTreeSet::from([dates[3].clone()]));
    assert_eq!(reason(&record, &dates[3]), format!("job_day/{} is not what was published", dates[3]));
    std::fs::write(&partition, b"nonsense").unwrap();
    let plan = site.command("plan", &["--json", "--set", "settle_days=2"]).output().unwrap();
    let plan: Value = serde_json::from_slice(&plan.stdout).unwrap();
    assert_eq!(plan["days"].as_array().unwrap().len(), 1, "{plan}");

    // A file that is gone from a partition, and a partition that is gone.
    let (_, run_id) = (std::fs::remove_file(&partition), "again");
    run(&site, &["--run-id", run_id]);
    std::fs::copy(
        site.telemetry().join(&files_of(&site.telemetry(), &dates[1])[0]),
        site.telemetry().join(&files_of(&site.telemetry(), &dates[1])[0]).with_file_name("part-1.parquet"),
    )
    .unwrap();
    let record = run(&site, &[]);
    assert!(reason(&record, &dates[3]).contains("part-1.parquet is new"), "{record}");
    for file in files_of(&site.telemetry(), &dates[1]).iter().filter(|file| file.ends_with("part-1.parquet")) {
        std::fs::remove_file(site.telemetry().join(file)).unwrap();
    }
    let record = run(&site, &[]);
    assert!(reason(&record, &dates[0]).contains("part-1.parquet is gone"), "{record}");
    let before = published(&site);
    for file in files_of(&site.telemetry(), &dates[0]) {
        std::fs::remove_file(site.telemetry().join(file)).unwrap();
    }
    let record = run(&site, &[]);
    assert!(due(&record).is_empty(), "{record}");
    assert_eq!(record["kept"].as_object().unwrap().len(), SETTLE, "{record}");
    assert_eq!(published(&site), before);
}

#[test]
fn days_that_were_missed_are_found() {
    let (source, dates) = simulated(5, 4);
    let site = Site::empty();
    for date in &dates {
        files_of(&source.telemetry(), date).iter().for_each(|file| deliver(&source, &site, file));
    }
    for at in [0, 1, 4] {
        run(&site, &["--from", &dates[at], "--to", &dates[at]]);
    }
    let missing = (2..dates.len()).filter(|at| *at != 4).map(|at| dates[at].clone()).collect();
    let record = run(&site, &[]);
    assert_eq!(due(&record), missing, "{record}");
}
