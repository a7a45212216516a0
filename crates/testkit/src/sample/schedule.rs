//! The scheduler of the sample fleet: a queue of events in time, each of which moves one job or one block.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use goodput_model::Day;

use super::attempt::{Activity, Attempt, Next};
use super::draw::Draw;
use super::fleet::{self, Pool};
use super::jobs::{Arrivals, Job, Purpose};
use super::{DAY, HOUR, MINUTE, SECOND, SampleFleet};
use crate::telemetry::Partition;

/// What happens. The epoch of a job is that of the plan: a later one makes the event void.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    /// A job arrives.
    Submit,
    /// The activity of a job ends.
    GoOn { job: u64, epoch: u32 },
    /// Steps that are saved beside the work are safe.
    Saved { job: u64, epoch: u32 },
    /// A job gives its chips back.
    Leave { job: u64, epoch: u32 },
    /// A job wants to run again.
    Requeue { job: u64 },
    /// The user of a job that never started is no longer interested.
    LoseInterest { job: u64 },
    /// A block goes down or comes back.
    Turn { pool: usize, block: usize },
}

/// Wait of the first job in a queue after which no other one overtakes it, ms.
const PATIENCE: i64 = 3 * HOUR;

/// Why an attempt ends early.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Loss {
    Preempted,
    NodeFail,
}

/// The fleet at an instant, and what it recorded on the day of that instant.
#[derive(Debug)]
pub(super) struct Schedule {
    /// Events with their instants, in the order in which they were planned within an instant.
    events: BinaryHeap<Reverse<(i64, u64, Event)>>,
    planned: u64,
    pools: Vec<Pool>,
    /// Jobs that have not ended, by number.
    jobs: BTreeMap<u64, Job>,
    arrivals: Arrivals,
    jobs_per_day: u32,
    draw: Draw,
    /// What was recorded since [`Schedule::run_day`] was called.
    pub(super) rows: Partition,
}

impl Schedule {
    /// An empty fleet at the beginning of a day.
    pub(super) fn new(sample: &SampleFleet, first: Day) -> Schedule {
        let mut schedule = Schedule {
            events: BinaryHeap::new(),
            planned: 0,
            pools: fleet::pools(sample.jobs_per_day, first.midnight()),
            jobs: BTreeMap::new(),
            arrivals: Arrivals::new(sample.seed, sample.runtime_rows_per_job_day),
            jobs_per_day: sample.jobs_per_day,
            draw: Draw::new(sample.seed, 0),
            rows: Partition::default(),
        };
        for pool in 0..schedule.pools.len() {
            for block in 0..schedule.pools[pool].blocks.len() {
                let at = first.midnight() + schedule.draw.between(HOUR, 10 * DAY);
                schedule.plan(at, Event::Turn { pool, block });
            }
        }
        schedule
    }

    /// Lets a day pass. Afterwards `rows` are what was recorded on it.
    pub(super) fn run_day(&mut self, day: Day) {
        self.rows.clear();
        let midnight = day.plus(1).midnight();
        for _ in 0..self.jobs_per_day {
            let at = day.midnight() + self.draw.between(0, DAY - 1);
            self.plan(at, Event::Submit);
        }
        while let Some(&Reverse((at, _, event))) = self.events.peek().filter(|Reverse((at, ..))| *at < midnight) {
            self.events.pop();
            self.happen(at, event);
        }
        for pool in &self.pools {
            self.rows.capacity.extend(pool.open_rows());
        }
        for job in self.jobs.values() {
            job.record_open(midnight, &self.pools[job.pool], &mut self.rows);
        }
    }

    /// The least number of free chips of a pool: negative if chips were handed out twice.
    #[cfg(test)]
    pub(super) fn least_free(&self) -> i64 {
        self.pools.iter().map(|pool| pool.free).min().unwrap_or(0)
    }

    fn plan(&mut self, at: i64, event: Event) {
        self.events.push(Reverse((at, self.planned, event)));
        self.planned += 1;
    }

    fn happen(&mut self, now: i64, event: Event) {
        match event {
            Event::Submit => self.submit(now),
            Event::GoOn { job, epoch } if self.is_current(job, epoch) => self.go_on(job, now),
            Event::Saved { job, epoch } if self.is_current(job, epoch) => {
                if let Some(job) = self.jobs.get_mut(&job).filter(|job| job.save_ends() == Some(now)) {
                    job.close_save(now, &mut self.rows);
                }
            }
            Event::Leave { job, epoch } if self.is_current(job, epoch) => self.leave(job, now),
            Event::Requeue { job } => self.requeue(job, now),
            Event::LoseInterest { job } => self.lose_interest(job, now),
            Event::Turn { pool, block } => self.turn(pool, block, now),
            Event::GoOn { .. } | Event::Saved { .. } | Event::Leave { .. } => {}
        }
    }

    fn is_current(&self, job: u64, epoch: u32) -> bool {
        self.jobs.get(&job).is_some_and(|job| job.epoch == epoch)
    }

    fn submit(&mut self, now: i64) {
        let (number, mut job) = self.arrivals.next(&self.pools, now);
        let patience = job.draw.between(10 * HOUR, 40 * HOUR);
        self.pools[job.pool].demand += job.chips;
        self.jobs.insert(number, job);
        self.plan(now + patience, Event::LoseInterest { job: number });
        self.requeue(number, now);
    }

    fn requeue(&mut self, number: u64, now: i64) {
        let Some(job) = self.jobs.get_mut(&number) else { return };
        job.waits_since = now;
        let pool = job.pool;
        self.pools[pool].queue.insert((job.rank, number));
        self.fill(pool, now);
    }

    /// Starts the waiting jobs of a pool that fit, in their order; the others let them by, but not for ever.
    fn fill(&mut self, pool: usize, now: i64) {
        let waiting: Vec<(u8, u64)> = self.pools[pool].queue.iter().copied().collect();
        for place in waiting {
            let Some(job) = self.jobs.get(&place.1) else { continue };
            let (chips, rank, waits_since) = (job.chips, job.rank, job.waits_since);
            let fits = chips <= self.pools[pool].free || (rank == 0 && self.preempt(pool, chips, now));
            if fits {
                self.pools[pool].queue.remove(&place);
                self.start(place.1, now);
            } else if now - waits_since > PATIENCE {
                break;
            }
        }
    }

    fn start(&mut self, number: u64, now: i64) {
        let Some(job) = self.jobs.get_mut(&number) else { return };
        let pool = &mut self.pools[job.pool];
        pool.free -= job.chips;
        debug_assert!(pool.free >= 0, "chips were handed out twice");
        pool.running.push(number);
        let attempt = Attempt::start(job, now);
        let (at, epoch) = (attempt.until, job.epoch);
        job.attempt = Some(attempt);
        self.plan(at, Event::GoOn { job: number, epoch });
    }

    /// Takes the chips that are missing from the least urgent jobs, the youngest first; none if that is not enough.
    fn preempt(&mut self, pool: usize, chips: i64, now: i64) -> bool {
        let mut free = self.pools[pool].free;
        let mut victims = Vec::new();
        for number in self.pools[pool].running.iter().rev() {
            let Some(job) = self.jobs.get(number).filter(|job| job.rank == 2) else { continue };
            if free >= chips {
                break;
            }
            free += job.chips;
            victims.push(*number);
        }
        if free < chips {
            return false;
        }
        for victim in victims {
            self.evict(victim, now, Loss::Preempted);
        }
        true
    }

    /// Ends an attempt at once; the job waits for another one.
    fn evict(&mut self, number: u64, now: i64, loss: Loss) {
        let Some(job) = self.jobs.get_mut(&number) else { return };
        let reason = match loss {
            Loss::Preempted => "preempted",
            Loss::NodeFail => "node_fail",
        };
        job.close(now, &mut self.rows);
        job.close_save(now, &mut self.rows);
        self.end_attempt(number, now, reason);
    }

    fn go_on(&mut self, number: u64, now: i64) {
        let Some(job) = self.jobs.get_mut(&number) else { return };
        let saved_before = job.save_ends();
        let next = job.go_on(now, &mut self.rows);
        let epoch = job.epoch;
        if next == Next::GoesOn {
            let until = job.attempt.as_ref().map(|attempt| attempt.until);
            let save = job.save_ends().filter(|_| job.save_ends() != saved_before);
            if let Some(at) = save {
                self.plan(at, Event::Saved { job: number, epoch });
            }
            if let Some(at) = until {
                self.plan(at, Event::GoOn { job: number, epoch });
            }
            return;
        }
        self.begin_leaving(number, now, next);
    }

    /// After its work or a failure, an attempt holds its chips a little longer; a task that failed does not.
    fn begin_leaving(&mut self, number: u64, now: i64, next: Next) {
        let Some(job) = self.jobs.get_mut(&number) else { return };
        job.close_save(now, &mut self.rows);
        job.epoch += 1;
        let place = &mut self.pools[job.pool];
        place.running.retain(|other| *other != number);
        let mut lasts = job.draw.between(SECOND, 20 * SECOND);
        let end_state = match next {
            Next::Done(state) => Some(state),
            // Most failures are of the machines, and the job tries again.
            _ if job.starts < 6 && job.draw.per_mille(780) => None,
            _ => Some(job.draw.weighted(&[("failed", 60), ("out_of_memory", 20), ("node_fail", 20)])),
        };
        if next == Next::Failed && job.draw.per_mille(600) {
            lasts = job.draw.between(MINUTE, 9 * MINUTE);
            job.give_back(now, "failed", true, place, &mut self.rows);
        }
        if let Some(attempt) = &mut job.attempt {
            (attempt.activity, attempt.end_state) = (Activity::Leaving, end_state);
        }
        let epoch = job.epoch;
        self.plan(now + lasts, Event::Leave { job: number, epoch });
    }

    fn leave(&mut self, number: u64, now: i64) {
        let Some(job) = self.jobs.get(&number) else { return };
        let end_state = job.attempt.as_ref().and_then(|attempt| attempt.end_state);
        let pool = job.pool;
        self.end_attempt(number, now, end_state.unwrap_or("failed"));
        if let Some(state) = end_state {
            self.end_job(number, now, state);
        }
        self.fill(pool, now);
    }

    /// Gives back all chips of an attempt, and goes back to what was saved.
    fn end_attempt(&mut self, number: u64, now: i64, reason: &str) {
        let Some(job) = self.jobs.get_mut(&number) else { return };
        let place = &mut self.pools[job.pool];
        job.give_back(now, reason, false, place, &mut self.rows);
        place.running.retain(|other| *other != number);
        place.free += job.chips;
        let is_over = job.attempt.as_ref().is_some_and(|attempt| attempt.end_state.is_some());
        job.attempt = None;
        job.epoch += 1;
        // Requests that were served stay served.
        if job.plan.purpose != Purpose::Serving {
            job.next_step = job.saved_to;
        }
        if !is_over {
            let pause = job.draw.between(20 * SECOND, 4 * MINUTE);
            self.plan(now + pause, Event::Requeue { job: number });
        }
    }

    fn end_job(&mut self, number: u64, now: i64, state: &str) {
        let Some(mut job) = self.jobs.remove(&number) else { return };
        self.pools[job.pool].demand -= job.chips;
        self.pools[job.pool].queue.remove(&(job.rank, number));
        (job.row.end, job.row.end_state) = (Some(now), Some(state.to_owned()));
        if job.listed {
            self.rows.jobs.push(job.row);
        }
    }

    fn lose_interest(&mut self, number: u64, now: i64) {
        if self.jobs.get(&number).is_some_and(|job| job.starts == 0) {
            self.end_job(number, now, "cancelled");
        }
    }

    fn turn(&mut self, pool: usize, block: usize, now: i64) {
        let goes_down = !self.pools[pool].blocks[block].down;
        if goes_down && !self.clear_chips(pool, self.pools[pool].blocks[block].chips, now) {
            // Chips that are just being given back cannot be taken: the block holds out until they are.
            self.plan(now + 10 * MINUTE, Event::Turn { pool, block });
            return;
        }
        let ended = self.pools[pool].turn(block, now);
        self.rows.capacity.push(ended);
        let lasts = if goes_down { fleet::downtime(&mut self.draw) } else { fleet::uptime(&mut self.draw) };
        self.plan(now + lasts, Event::Turn { pool, block });
        self.fill(pool, now);
    }

    /// Makes so many chips of a pool free: a failing block takes a job with it, and more of them in a full pool.
    fn clear_chips(&mut self, pool: usize, chips: i64, now: i64) -> bool {
        let running = &self.pools[pool].running;
        let unlucky = (!running.is_empty()).then(|| running[self.draw.position(running.len())]);
        if let Some(unlucky) = unlucky.filter(|_| self.draw.per_mille(700)) {
            self.evict(unlucky, now, Loss::NodeFail);
        }
        while self.pools[pool].free < chips {
            let Some(youngest) = self.pools[pool].running.last().copied() else { return false };
            self.evict(youngest, now, Loss::NodeFail);
        }
        true
    }
}
