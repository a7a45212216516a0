//! A simulated fleet: its telemetry, and the truth about it.
//!
//! A scheduler is played through event by event: jobs arrive, wait, form gangs, initialise, compile, step, save, stall,
//! fail, are preempted and come back to what they saved; blocks of chips go down and come back, and generations of chips
//! come and go over the years. So the rows agree with one another as those of a real fleet do. Then a few of them are
//! spoiled, as in a real fleet too.
//!
//! While it happens it is booked: the ground truth comes from the events and not from the rows, so that a pipeline that
//! reads the telemetry can be held against it, to the chip-millisecond.
//!
//! Only the jobs that have not ended, the rows of a few days and the books of the days that have not settled are held in
//! memory: years of a fleet take no more of it than a month.

mod agenda;
mod attempt;
mod columns;
mod draw;
mod flaws;
mod fleet;
mod jobs;
mod ledger;
mod profile;
mod progress;
mod record;
mod rows;
mod schedule;
mod telling;
mod truth;
mod write;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::thread;

use goodput_model::Day;
use parquet::errors::ParquetError;

use self::ledger::DayBooks;
use self::rows::Partition;
use self::schedule::Schedule;
use self::write::Writer;

const SECOND: i64 = 1_000;
const MINUTE: i64 = 60 * SECOND;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;

/// The folder below the output that holds the ground truth: a table's name does not begin with `_`.
pub const TRUTH: &str = "_truth";

/// The longest settlement that a simulation knows, days: the books of so many days are held in memory.
pub const MOST_SETTLE_DAYS: u32 = 60;

/// A fleet and the days for which it is simulated. The same values give the same bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Simulation {
    /// What all draws are made from.
    pub seed: u64,
    /// The first day.
    pub first_day: Day,
    /// How many days, at least 1.
    pub days: u32,
    /// Jobs that are submitted a day, at least 1; the fleet has the size that they need.
    pub jobs_per_day: u32,
    /// Rows of runtime that a job reports on a day on which it runs, about.
    pub runtime_rows_per_job_day: u32,
    /// Days for which a day can still change: late rows arrive within them, and the truth of a day is what can be known
    /// from the partitions of so many days before and after it. At least 1 and at most [`MOST_SETTLE_DAYS`].
    pub settle_days: u32,
}

/// How far a simulation has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// Days that have passed.
    pub days_done: u32,
    /// Days that shall pass.
    pub days: u32,
    /// Rows of runtime that were recorded so far.
    pub runtime_rows: u64,
}

/// What was written of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Written {
    /// Its folder below the output.
    pub folder: PathBuf,
    /// Its rows.
    pub rows: u64,
    /// The bytes of its files.
    pub bytes: u64,
}

/// Why a fleet was not simulated, or not to the end.
#[derive(Debug, thiserror::Error)]
pub enum SimulateError {
    /// The folder holds something, which is not touched.
    #[error("`{}` is not empty", .path.display())]
    NotEmpty {
        /// The folder.
        path: PathBuf,
    },
    /// A value makes no fleet.
    #[error("{what} must be from {least} to {most}")]
    OutOfRange {
        /// What it stands for.
        what: &'static str,
        /// The least that it can be.
        least: u32,
        /// The most that it can be.
        most: u32,
    },
    /// The file system refused.
    #[error("cannot write `{}`", .path.display())]
    Io {
        /// The folder or file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// Rows could not be encoded.
    #[error("cannot encode `{}`", .path.display())]
    Encode {
        /// The file.
        path: PathBuf,
        /// What the encoder said.
        source: ParquetError,
    },
}

/// Work for the thread that writes.
enum Work {
    /// What was recorded on a day.
    Telemetry(Day, Partition),
    /// What is true of a day.
    Truth(DayBooks),
}

impl SimulateError {
    /// What to do about it, if there is something to say.
    pub fn hint(&self) -> Option<&str> {
        match self {
            SimulateError::NotEmpty { .. } => Some("name a folder that is empty or does not exist yet"),
            _ => None,
        }
    }
}

impl Simulation {
    /// Writes the telemetry in the layout of the contract below `out`, a partition of each table a day, and the truth of
    /// the same days below `out/_truth`, in the layout of the published `job_day` and `pool_day`. `out` must hold nothing.
    ///
    /// Rows of runtime stand as a compacting collector leaves them: job by job, in the order of the first report on the
    /// day, each job's in the order in which they were recorded.
    pub fn write(&self, out: &Path, progress: &mut dyn FnMut(Progress)) -> Result<Vec<Written>, SimulateError> {
        self.check()?;
        claim(out)?;
        let last = self.first_day.plus(i32::try_from(self.days).unwrap_or(i32::MAX) - 1);
        let mut schedule = Schedule::new(self, last);
        let writer = Writer::new(out, schedule.record.places.clone());
        thread::scope(|scope| {
            // One day is written while the next one is played through.
            let (work, received) = mpsc::sync_channel(1);
            let (give_back, returned) = mpsc::channel();
            let writing = scope.spawn(move || write_all(writer, received, give_back));
            // If the other thread has stopped, it says why below.
            let _ = self.play(&mut schedule, last, &work, &returned, progress);
            drop(work);
            writing.join().unwrap_or_else(|fault| std::panic::resume_unwind(fault))
        })
    }

    fn check(&self) -> Result<(), SimulateError> {
        let ranges = [
            ("days", self.days, 1, 100_000),
            ("jobs per day", self.jobs_per_day, 1, 1_000_000),
            ("runtime rows per job and day", self.runtime_rows_per_job_day, 2, 100_000),
            ("settle days", self.settle_days, 1, MOST_SETTLE_DAYS),
        ];
        match ranges.into_iter().find(|(_, value, least, most)| value < least || value > most) {
            Some((what, _, least, most)) => Err(SimulateError::OutOfRange { what, least, most }),
            None => Ok(()),
        }
    }

    /// Plays through all days; stops if nobody takes what comes of them any more.
    fn play(
        &self,
        schedule: &mut Schedule,
        last: Day,
        work: &mpsc::SyncSender<Work>,
        returned: &mpsc::Receiver<Partition>,
        progress: &mut dyn FnMut(Progress),
    ) -> Option<()> {
        let mut runtime_rows = 0;
        for (done, day) in (1..).zip(self.first_day.through(last)) {
            schedule.run_day(day);
            let next = returned.try_recv().unwrap_or_default();
            let rows = std::mem::replace(&mut schedule.record.rows, next);
            runtime_rows += rows.runtime.len() as u64;
            work.send(Work::Telemetry(day, rows)).ok()?;
            while let Some(books) = schedule.record.ledger.take_settled(schedule.record.settle) {
                work.send(Work::Truth(books)).ok()?;
            }
            progress(Progress { days_done: done, days: self.days, runtime_rows });
        }
        // Nothing happens any more that could correct the last days.
        while let Some(books) = schedule.record.ledger.take() {
            work.send(Work::Truth(books)).ok()?;
        }
        Some(())
    }
}

fn write_all(
    mut writer: Writer,
    received: mpsc::Receiver<Work>,
    give_back: mpsc::Sender<Partition>,
) -> Result<Vec<Written>, SimulateError> {
    for work in received {
        match work {
            Work::Telemetry(day, mut rows) => {
                writer.telemetry(day, &mut rows)?;
                // At the end nobody waits for it.
                let _ = give_back.send(rows);
            }
            Work::Truth(mut books) => writer.truth(&mut books)?,
        }
    }
    writer.finish()
}

/// Makes the folder, if need be, and sees that it is empty.
fn claim(out: &Path) -> Result<(), SimulateError> {
    let refused = |source| SimulateError::Io { path: out.to_path_buf(), source };
    fs::create_dir_all(out).map_err(refused)?;
    match fs::read_dir(out).map_err(refused)?.next() {
        None => Ok(()),
        Some(_) => Err(SimulateError::NotEmpty { path: out.to_path_buf() }),
    }
}

#[cfg(test)]
mod tests;
