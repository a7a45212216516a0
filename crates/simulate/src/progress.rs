//! The steps of a job that are not yet safe, and what becomes of them.
//!
//! A day is judged from what its window recorded. So steps that a restart repeats are lost on the days whose windows hold
//! the first report of the repetition, and steps behind the last checkpoint of a job that ended unclean on the days whose
//! windows hold that end and that checkpoint.

use std::collections::VecDeque;

use goodput_model::{Bucket, Day, MS_PER_DAY};

use crate::ledger::{Account, Ledger};

/// Steps that were reported.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Stretch {
    pub(crate) attempt: i64,
    pub(crate) first: i64,
    pub(crate) last: i64,
    pub(crate) start: i64,
    /// Time of each step, ms.
    pub(crate) pace: i64,
    /// A wait for data within them, from and to.
    pub(crate) wait: (i64, i64),
    pub(crate) pool: usize,
    pub(crate) chips: i64,
}

/// What a job has done and could still lose.
#[derive(Debug, Default)]
pub(crate) struct Progress {
    /// Steps after the last committed checkpoint, in order.
    unsafe_steps: VecDeque<Stretch>,
    /// The day on which the last checkpoint was recorded.
    committed_on: Option<Day>,
    /// The step after the last one that was saved: where a new attempt goes on.
    pub(crate) saved_to: i64,
    /// The last attempt that reported a step.
    reported_by: Option<i64>,
}

impl Progress {
    /// Notes steps that were reported on `today`, the first of an attempt on that very day. They undo those of earlier
    /// attempts from their own first one on.
    pub(crate) fn report(&mut self, steps: Stretch, today: Day, settle: i32, account: &Account, ledger: &mut Ledger) {
        if self.reported_by != Some(steps.attempt) {
            self.lose(steps.first, (today.plus(-settle), Day(i32::MAX)), account, ledger);
            self.reported_by = Some(steps.attempt);
        }
        self.unsafe_steps.push_back(steps);
    }

    /// Whether the attempt has reported steps.
    pub(crate) fn has_reported(&self, attempt: i64) -> bool {
        self.reported_by == Some(attempt)
    }

    /// All steps before `saved_to` are safe.
    pub(crate) fn commit(&mut self, saved_to: i64, today: Day) {
        self.saved_to = saved_to;
        self.committed_on = Some(today);
        while self.unsafe_steps.front().is_some_and(|steps| steps.last < saved_to) {
            self.unsafe_steps.pop_front();
        }
    }

    /// The job ends unclean, which is recorded on `recorded`.
    pub(crate) fn end_unclean(&mut self, recorded: Day, settle: i32, account: &Account, ledger: &mut Ledger) {
        if let Some(committed) = self.committed_on {
            self.lose(self.saved_to, (recorded.plus(-settle), committed.plus(settle)), account, ledger);
        }
    }

    /// The steps from `cut` on are lost, on some days. Those before it may be lost later.
    fn lose(&mut self, cut: i64, days: (Day, Day), account: &Account, ledger: &mut Ledger) {
        for steps in self.unsafe_steps.iter_mut().filter(|steps| steps.last >= cut) {
            let from = steps.start + (cut - steps.first).max(0) * steps.pace;
            let to = steps.start + (steps.last - steps.first + 1) * steps.pace;
            for day in Day::of_instant(from).max(days.0).through(Day::of_instant(to - 1).min(days.1)) {
                let (begin, end) = (day.midnight(), day.midnight() + MS_PER_DAY);
                let waited = overlap(steps.wait, (from.max(begin), to.min(end)));
                let ms = overlap((from, to), (begin, end)) - waited;
                ledger.correct(account, day, steps.pool, Bucket::Productive, Bucket::Lost, steps.chips * ms);
            }
            steps.last = cut - 1;
        }
        self.unsafe_steps.retain(|steps| steps.first <= steps.last);
    }
}

/// The time that two intervals have in common.
fn overlap(one: (i64, i64), other: (i64, i64)) -> i64 {
    (one.1.min(other.1) - one.0.max(other.0)).max(0)
}
