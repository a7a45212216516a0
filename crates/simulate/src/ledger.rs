//! The truth: what happened to every chip, booked while it happens and open to correction until its day has settled.
//!
//! Nothing here looks at a row of telemetry. A day is corrected as long as its window can still tell: progress that a
//! restart or an unclean end undoes is moved from productive to lost on the days whose windows see it, and on no others.

use std::collections::VecDeque;
use std::sync::Arc;

use goodput_model::{Bucket, Day, JOB_DAY_BUCKETS};

use crate::rows::JobFacts;

/// Chip-ms by [`Bucket`].
pub(crate) type Quantities = [i64; JOB_DAY_BUCKETS.len()];

/// A job on a day.
#[derive(Debug)]
pub(crate) struct JobDay {
    pub(crate) job: Arc<JobFacts>,
    pub(crate) queued: i64,
    /// The pools that it held chips in, with what they did. Program quantities are left to the end of the day.
    pub(crate) held: Vec<(usize, Quantities)>,
    /// Steps times their predicted and their measured time, both in the same unit, over the profiles with a prediction.
    pub(crate) predicted: i128,
    pub(crate) measured: i128,
}

/// A pool on a day, chip-ms.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct PoolDay {
    pub(crate) capacity: i64,
    pub(crate) down: i64,
}

/// All that happened on a day.
#[derive(Debug)]
pub(crate) struct DayBooks {
    pub(crate) day: Day,
    pub(crate) jobs: Vec<JobDay>,
    pub(crate) pools: Vec<PoolDay>,
}

/// Where the days of a job stand in the ledger: those that can still be corrected.
#[derive(Debug, Default)]
pub(crate) struct Account(VecDeque<(Day, usize)>);

/// The days that can still be corrected.
#[derive(Debug)]
pub(crate) struct Ledger {
    days: VecDeque<DayBooks>,
    pools: usize,
}

impl Ledger {
    pub(crate) fn new(pools: usize) -> Ledger {
        Ledger { days: VecDeque::new(), pools }
    }

    /// Opens the books of a day.
    pub(crate) fn begin(&mut self, day: Day) {
        self.days.push_back(DayBooks { day, jobs: Vec::new(), pools: vec![PoolDay::default(); self.pools] });
    }

    /// Takes the first day out if it is that many days before the last one.
    pub(crate) fn take_settled(&mut self, settle_days: i32) -> Option<DayBooks> {
        let last = self.days.back()?.day;
        if self.days.front()?.day.plus(settle_days) > last {
            return None;
        }
        self.days.pop_front()
    }

    /// Takes the first day out.
    pub(crate) fn take(&mut self) -> Option<DayBooks> {
        self.days.pop_front()
    }

    /// The pool on the last day.
    pub(crate) fn pool_today(&mut self, pool: usize) -> Option<&mut PoolDay> {
        self.days.back_mut()?.pools.get_mut(pool)
    }

    /// The job on the last day.
    pub(crate) fn job_today(&mut self, account: &mut Account, job: &Arc<JobFacts>) -> Option<&mut JobDay> {
        let first = self.days.front()?.day;
        let books = self.days.back_mut()?;
        let at = match account.0.back() {
            Some((day, at)) if *day == books.day => *at,
            _ => {
                while account.0.front().is_some_and(|(day, _)| *day < first) {
                    account.0.pop_front();
                }
                let at = books.jobs.len();
                let job = Arc::clone(job);
                books.jobs.push(JobDay { job, queued: 0, held: Vec::new(), predicted: 0, measured: 0 });
                account.0.push_back((books.day, at));
                at
            }
        };
        books.jobs.get_mut(at)
    }

    /// Moves chip-ms of a job in a pool between buckets; a day without books stays as it was written.
    pub(crate) fn correct(&mut self, account: &Account, day: Day, pool: usize, from: Bucket, to: Bucket, chip_ms: i64) {
        let Some((_, at)) = account.0.iter().rev().find(|(of, _)| *of == day) else { return };
        let Some(first) = self.days.front().map(|books| books.day) else { return };
        let Ok(position) = usize::try_from(i64::from(day.0) - i64::from(first.0)) else { return };
        if let Some(job) = self.days.get_mut(position).and_then(|books| books.jobs.get_mut(*at)) {
            job.add(pool, from, -chip_ms);
            job.add(pool, to, chip_ms);
        }
    }
}

impl JobDay {
    /// Books chip-ms in a pool.
    pub(crate) fn add(&mut self, pool: usize, bucket: Bucket, chip_ms: i64) {
        let position = self.held.iter().position(|(at, _)| *at == pool);
        let position = position.unwrap_or_else(|| {
            self.held.push((pool, [0; JOB_DAY_BUCKETS.len()]));
            self.held.len() - 1
        });
        self.held[position].1[bucket.index()] += chip_ms;
    }

    /// Ends the day: what was productive is profiled if the program was, and a share of it ideal.
    pub(crate) fn close(&mut self) {
        if self.measured == 0 {
            return;
        }
        for (_, quantities) in &mut self.held {
            let productive = quantities[Bucket::Productive.index()];
            quantities[Bucket::Profiled.index()] = productive;
            let ideal = i128::from(productive) * self.predicted / self.measured;
            quantities[Bucket::Ideal.index()] = i64::try_from(ideal).unwrap_or(i64::MAX);
        }
    }
}
