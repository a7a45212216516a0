//! What holds of every simulation; that the pipeline agrees with the truth is told by the tests of the command line.

use std::collections::BTreeMap;
use std::fs::File;

use arrow::array::{Array, Int64Array, StringArray};
use arrow::record_batch::RecordBatch;
use goodput_model::buckets::ALLOCATED_BUCKETS;
use goodput_model::{Bucket, JOB_DAY_BUCKETS, Table};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

use super::*;

type TestError = Box<dyn std::error::Error + Send + Sync>;

const SMALL: Simulation = Simulation {
    seed: 1,
    first_day: Day(20_454),
    days: 12,
    jobs_per_day: 20,
    runtime_rows_per_job_day: 30,
    settle_days: 3,
};

/// The files below a folder, by their paths.
fn files_below(root: &Path) -> Result<BTreeMap<PathBuf, Vec<u8>>, TestError> {
    let mut files = BTreeMap::new();
    let mut folders = vec![root.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder)? {
            let path = entry?.path();
            if path.is_dir() {
                folders.push(path);
            } else {
                files.insert(path.strip_prefix(root)?.to_path_buf(), fs::read(&path)?);
            }
        }
    }
    Ok(files)
}

fn files_of(simulation: Simulation) -> Result<BTreeMap<PathBuf, Vec<u8>>, TestError> {
    let root = tempfile::tempdir()?;
    simulation.write(root.path(), &mut |_| {})?;
    files_below(root.path())
}

/// The rows of all files below a folder.
fn read(root: &Path, folder: &str) -> Result<Vec<RecordBatch>, TestError> {
    let mut batches = Vec::new();
    for path in files_below(&root.join(folder))?.keys() {
        let file = File::open(root.join(folder).join(path))?;
        for batch in ParquetRecordBatchReaderBuilder::try_new(file)?.build()? {
            batches.push(batch?);
        }
    }
    Ok(batches)
}

fn ints<'a>(batch: &'a RecordBatch, column: &str) -> Result<&'a Int64Array, TestError> {
    let column = batch.column_by_name(column).ok_or("there is no such column")?;
    Ok(column.as_any().downcast_ref().ok_or("it holds no integers")?)
}

fn texts<'a>(batch: &'a RecordBatch, column: &str) -> Result<&'a StringArray, TestError> {
    let column = batch.column_by_name(column).ok_or("there is no such column")?;
    Ok(column.as_any().downcast_ref().ok_or("it holds no texts")?)
}

#[test]
fn the_same_seed_gives_the_same_bytes() -> Result<(), TestError> {
    let files = files_of(SMALL)?;
    // Five tables and `job_day` by day, `pool_day` by month.
    assert_eq!(files.len(), 12 * 6 + 1);
    assert!(files == files_of(SMALL)?);
    assert!(files != files_of(Simulation { seed: 2, ..SMALL })?);
    Ok(())
}

/// What `goodput simulate testdata/telemetry --seed 7 --from 2026-03-28 --days 6 --jobs-per-day 30
/// --runtime-rows-per-job-day 40` writes is what is kept in git.
#[test]
fn testdata_is_what_the_simulator_writes() -> Result<(), TestError> {
    let kept = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/telemetry");
    let simulation = Simulation {
        seed: 7,
        first_day: "2026-03-28".parse()?,
        days: 6,
        jobs_per_day: 30,
        runtime_rows_per_job_day: 40,
        settle_days: 7,
    };
    assert!(files_below(&kept)? == files_of(simulation)?, "write it again with `goodput simulate`");
    Ok(())
}

#[test]
fn a_longer_simulation_begins_as_a_shorter_one() -> Result<(), TestError> {
    let (short, long) = (files_of(SMALL)?, files_of(Simulation { days: 20, ..SMALL })?);
    // Rows that are owed to a day after the last one arrive on time, so the last days differ.
    let settled = SMALL.first_day.plus(12 - 3 - 1);
    for table in Table::ALL {
        for day in SMALL.first_day.through(settled) {
            let path = Path::new(table.name()).join(format!("date={day}/part-0.parquet"));
            assert!(short.contains_key(&path) && short.get(&path) == long.get(&path), "{}", path.display());
        }
    }
    Ok(())
}

#[test]
fn the_books_of_the_truth_close() -> Result<(), TestError> {
    for seed in 0..6 {
        let root = tempfile::tempdir()?;
        Simulation { seed, ..SMALL }.write(root.path(), &mut |_| {})?;
        let mut sums = [0; JOB_DAY_BUCKETS.len()];
        let mut held = 0;
        for batch in read(root.path(), "_truth/job_day")? {
            let mut columns = Vec::new();
            for bucket in JOB_DAY_BUCKETS {
                columns.push(ints(&batch, bucket.column())?);
            }
            for row in 0..batch.num_rows() {
                let of = |bucket: Bucket| columns[bucket.index()].value(row);
                let parts: i64 = ALLOCATED_BUCKETS.into_iter().map(of).sum();
                assert_eq!(of(Bucket::Allocated), parts);
                assert!([0, of(Bucket::Productive)].contains(&of(Bucket::Profiled)));
                assert!(of(Bucket::Ideal) <= of(Bucket::Profiled));
                assert!(JOB_DAY_BUCKETS.into_iter().all(|bucket| of(bucket) >= 0));
                assert!(JOB_DAY_BUCKETS.into_iter().any(|bucket| of(bucket) > 0));
                held += of(Bucket::Partial) + of(Bucket::Allocated);
                JOB_DAY_BUCKETS.into_iter().for_each(|bucket| sums[bucket.index()] += of(bucket));
            }
        }
        assert!(sums.iter().all(|sum| *sum > 0), "seed {seed} does not show every bucket: {sums:?}");
        for batch in read(root.path(), "_truth/pool_day")? {
            let of = |name: &str| ints(&batch, &format!("{name}_chip_ms"));
            for row in 0..batch.num_rows() {
                let idle = of("idle")?.value(row);
                assert!(idle >= 0, "a pool hands out chips that it does not have");
                assert_eq!(of("capacity")?.value(row), of("down")?.value(row) + idle + of("held")?.value(row));
                held -= of("held")?.value(row);
            }
        }
        assert_eq!(held, 0, "seed {seed}");
    }
    Ok(())
}

#[test]
fn no_pool_hands_out_chips_that_it_does_not_have() {
    for seed in 0..10 {
        let simulation = Simulation { seed, days: 40, ..SMALL };
        let last = simulation.first_day.plus(39);
        let mut schedule = Schedule::new(&simulation, last);
        for day in simulation.first_day.through(last) {
            schedule.run_day(day);
            assert!(schedule.pools.iter().all(|pool| pool.free >= 0 && pool.total >= pool.free), "seed {seed}, {day}");
            while schedule.record.ledger.take_settled(3).is_some() {}
        }
    }
}

/// Generations come and go over years, jobs come from the first day on, and a day has as many rows as another.
#[test]
fn volume_is_steady_while_the_fleet_changes() {
    let simulation = Simulation { first_day: Day(19_723), days: 1_000, jobs_per_day: 60, ..SMALL };
    let last = simulation.first_day.plus(999);
    let mut schedule = Schedule::new(&simulation, last);
    let mut rows = Vec::new();
    let mut generations = Vec::new();
    for day in simulation.first_day.through(last) {
        schedule.run_day(day);
        rows.push(schedule.record.rows.runtime.len());
        generations
            .push(schedule.pools.iter().filter(|pool| pool.total > 0).map(|pool| pool.place).collect::<Vec<_>>());
        while schedule.record.ledger.take_settled(3).is_some() {}
    }
    let mean = |days: &[usize]| days.iter().sum::<usize>() / days.len();
    let whole = mean(&rows);
    for days in rows.chunks(100).chain([&rows[..10]]) {
        assert!(mean(days).abs_diff(whole) * 100 < whole * 15, "{} and {whole} rows a day", mean(days));
    }
    assert_ne!(generations.first(), generations.last());
}

#[test]
fn the_flaws_of_real_telemetry_are_there() -> Result<(), TestError> {
    let root = tempfile::tempdir()?;
    SMALL.write(root.path(), &mut |_| {})?;
    let mut seen = BTreeMap::new();
    let mut see = |what: &'static str| *seen.entry(what).or_insert(0) += 1;
    for batch in read(root.path(), "runtime")? {
        let phases = texts(&batch, "phase")?;
        let end = batch.column_by_name("end_ts").ok_or("there is no end")?;
        for row in 0..batch.num_rows() {
            if phases.is_null(row) {
                see("null");
            } else if phases.value(row) == "warmup" {
                see("unknown phase");
            }
            if end.is_null(row) {
                see("open");
            }
        }
        let stray = texts(&batch, "job_id")?.iter().flatten().any(|job| job.starts_with("notebook"));
        if stray {
            see("stray");
        }
    }
    assert_eq!(seen.len(), 4, "{seen:?}");
    Ok(())
}

#[test]
fn a_folder_that_holds_something_is_left_alone() -> Result<(), TestError> {
    let root = tempfile::tempdir()?;
    fs::write(root.path().join("notes"), "mine")?;
    let error = SMALL.write(root.path(), &mut |_| {}).err();
    assert!(matches!(error, Some(SimulateError::NotEmpty { .. })), "{error:?}");
    assert_eq!(files_below(root.path())?.len(), 1);
    Ok(())
}

#[test]
fn values_that_make_no_fleet_are_refused() -> Result<(), TestError> {
    let root = tempfile::tempdir()?;
    let cases = [
        (Simulation { days: 0, ..SMALL }, "days must be from 1 to 100000"),
        (Simulation { jobs_per_day: 0, ..SMALL }, "jobs per day must be from 1 to 1000000"),
        (Simulation { settle_days: 0, ..SMALL }, "settle days must be from 1 to 60"),
    ];
    for (simulation, expected) in cases {
        let error = simulation.write(root.path(), &mut |_| {}).err().map(|error| error.to_string());
        assert_eq!(error.as_deref(), Some(expected));
    }
    Ok(())
}

#[test]
fn progress_is_told_day_by_day() -> Result<(), TestError> {
    let root = tempfile::tempdir()?;
    let mut told = Vec::new();
    let written = SMALL.write(root.path(), &mut |progress| told.push(progress))?;
    assert_eq!(told.iter().map(|progress| progress.days_done).collect::<Vec<_>>(), (1..=12).collect::<Vec<_>>());
    let runtime = written.iter().find(|table| table.folder == Path::new("runtime")).map(|table| table.rows);
    assert_eq!(told.last().map(|progress| progress.runtime_rows), runtime);
    Ok(())
}
