//! The sample fleet: believable telemetry of a small mixed fleet, from a seed.
//!
//! A scheduler is played through event by event: jobs arrive, wait, form gangs, initialise, compile, step, save, stall,
//! fail, are preempted and come back to what they saved; blocks of chips go down and come back. So the rows agree with one
//! another as those of a real fleet do. Then a few of them are spoiled, as in a real fleet too.
//!
//! Only the jobs that have not ended and the rows of one day are held in memory: the benchmark writes years with it.

mod attempt;
mod draw;
mod flaws;
mod fleet;
mod jobs;
mod profile;
mod schedule;

use std::path::Path;

use goodput_model::Day;

use self::flaws::Flaws;
use self::schedule::Schedule;
use crate::telemetry::TelemetryError;

const SECOND: i64 = 1_000;
const MINUTE: i64 = 60 * SECOND;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;

/// Days that pass before the first one that is written, so that the telemetry begins with a fleet at work.
const WARM_UP_DAYS: i32 = 3;

/// A fleet whose telemetry can be written. The same values give the same bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SampleFleet {
    /// What all draws are made from.
    pub seed: u64,
    /// The first day that is written.
    pub first_day: Day,
    /// How many days are written.
    pub days: u32,
    /// Jobs that are submitted a day; the fleet has the size that they need, and never less than 1280 chips.
    pub jobs_per_day: u32,
    /// Rows of runtime that a job reports on a day on which it runs, about.
    pub runtime_rows_per_job_day: u32,
}

impl SampleFleet {
    /// Writes the telemetry in the layout of the contract below `root`, a partition of each table a day.
    pub fn write(&self, root: &Path) -> Result<(), TelemetryError> {
        let begin = self.first_day.plus(-WARM_UP_DAYS);
        let mut schedule = Schedule::new(self, begin);
        let mut flaws = Flaws::new(self.seed);
        let written = i32::try_from(self.days).unwrap_or(i32::MAX);
        for day in begin.through(self.first_day.plus(written).plus(-1)) {
            schedule.run_day(day);
            if day >= self.first_day {
                flaws.spoil(day, &mut schedule.rows);
                schedule.rows.write(root, day)?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::fs;

    use super::*;
    use crate::cases::{TestError, parquet_files};

    const SMALL: SampleFleet =
        SampleFleet { seed: 1, first_day: Day(20_454), days: 3, jobs_per_day: 12, runtime_rows_per_job_day: 20 };

    fn files_of(sample: SampleFleet) -> Result<BTreeMap<String, Vec<u8>>, TestError> {
        let root = tempfile::tempdir()?;
        sample.write(root.path())?;
        let mut files = BTreeMap::new();
        for path in parquet_files(root.path())? {
            files.insert(path.strip_prefix(root.path())?.display().to_string(), fs::read(&path)?);
        }
        Ok(files)
    }

    #[test]
    fn the_same_seed_gives_the_same_bytes() -> Result<(), TestError> {
        let files = files_of(SMALL)?;
        assert_eq!(files.len(), 15);
        assert!(files == files_of(SMALL)?);
        assert!(files != files_of(SampleFleet { seed: 2, ..SMALL })?);
        Ok(())
    }

    /// What `sample-fleet` writes without arguments is what is kept in git.
    #[test]
    fn testdata_is_what_the_generator_writes() -> Result<(), TestError> {
        let first_day = "2026-03-28".parse()?;
        let sample = SampleFleet { seed: 7, first_day, days: 6, jobs_per_day: 30, runtime_rows_per_job_day: 40 };
        let kept = crate::cases::root().join("testdata/telemetry");
        let mut files = BTreeMap::new();
        for path in parquet_files(&kept)? {
            files.insert(path.strip_prefix(&kept)?.display().to_string(), fs::read(&path)?);
        }
        assert!(files == files_of(sample)?, "write it again: sample-fleet testdata/telemetry");
        Ok(())
    }

    #[test]
    fn no_pool_hands_out_chips_that_it_does_not_have() -> Result<(), TestError> {
        for seed in 0..20 {
            let sample = SampleFleet { seed, ..SMALL };
            let mut schedule = Schedule::new(&sample, sample.first_day);
            for day in sample.first_day.through(sample.first_day.plus(9)) {
                schedule.run_day(day);
                assert!(schedule.least_free() >= 0, "seed {seed}, {day}");
            }
        }
        Ok(())
    }
}
