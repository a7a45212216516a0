//! The scheduler of the fleet: events in time, each of which moves one job or one block.

use goodput_model::Day;

use crate::agenda::Agenda;
use crate::attempt::{Activity, Attempt, Next};
use crate::draw::Draw;
use crate::flaws::Flaw;
use crate::fleet::{self, Pool};
use crate::jobs::{self, Arrivals, Job, LONGEST_DAYS, Purpose};
use crate::record::Record;
use crate::{DAY, HOUR, MINUTE, SECOND, Simulation};

/// What happens. A job is named by where it is kept, and by the epoch of its plan: a later one makes the event void.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    /// A job arrives.
    Submit,
    /// A job arrives that would have worked for so long, ms, had the fleet begun earlier.
    Inherit(i64),
    /// The activity of a job ends.
    GoOn { job: usize, epoch: u64 },
    /// Steps that are saved beside the work are safe.
    Saved { job: usize, epoch: u64 },
    /// A job gives its chips back.
    Leave { job: usize, epoch: u64 },
    /// A job wants to run again.
    Requeue { job: usize, epoch: u64 },
    /// The user of a job that never started is no longer interested.
    LoseInterest { job: usize, number: u64 },
    /// A block goes down or comes back.
    Turn { pool: usize, block: usize, epoch: u32 },
    /// Blocks are bought and sold.
    Refit,
}

/// Wait of the first job in a queue after which no other one overtakes it, ms.
const PATIENCE: i64 = 3 * HOUR;

/// Waiting jobs that a scheduler looks at before it gives up.
const LOOKED_AT: usize = 64;

/// The share of its chips that a fleet needs on average for what is asked of it, in thousandths.
const BUSY: i64 = 820;

/// The smallest fleet, chips.
const FEWEST_CHIPS: i64 = 640;

/// Thousandths of the planned chip-time that a job takes in the end: some do part of it again, more of them stop early.
const TAKES: i64 = 810;

/// Restarts in a thousand for which a job looks at all cells that have its chips.
const WANDERS: i64 = 400;

/// Starts of a job after which it is given up.
const MOST_STARTS: i64 = 8;

/// The fleet at an instant, and what it recorded on the day of that instant.
#[derive(Debug)]
pub(crate) struct Schedule {
    agenda: Agenda<Event>,
    epochs: u64,
    pub(crate) pools: Vec<Pool>,
    chips: i64,
    /// Jobs that have not ended, in places that are used again.
    jobs: Vec<Option<Box<Job>>>,
    vacant: Vec<usize>,
    arrivals: Arrivals,
    jobs_per_day: i64,
    draw: Draw,
    pub(crate) record: Record,
}

impl Schedule {
    /// A fleet at the beginning of the first day of a simulation that ends with `last_day`.
    pub(crate) fn new(simulation: &Simulation, last_day: Day) -> Schedule {
        let first = simulation.first_day;
        let begin = first.midnight();
        let jobs_per_day = i64::from(simulation.jobs_per_day);
        let chips = jobs_per_day * jobs::mean_load(jobs_per_day) / 1000 * TAKES / BUSY;
        let chips = chips.max(FEWEST_CHIPS);
        let mut pools = fleet::pools(begin);
        fleet::set_targets(&mut pools, chips, first);
        let places = pools.iter().map(|pool| pool.place).collect();
        let mut schedule = Schedule {
            agenda: Agenda::new(),
            epochs: 0,
            pools,
            chips,
            jobs: Vec::new(),
            vacant: Vec::new(),
            arrivals: Arrivals::new(simulation.seed, jobs_per_day, simulation.runtime_rows_per_job_day),
            jobs_per_day,
            draw: Draw::new(simulation.seed, 0),
            record: Record::new(simulation, places, last_day),
        };
        for pool in 0..schedule.pools.len() {
            schedule.grow(pool, begin);
        }
        // The jobs that would be there if the fleet had been at work for long, all submitted within minutes.
        let virtual_jobs = LONGEST_DAYS * 5 / 4 * jobs_per_day;
        for number in 0..virtual_jobs {
            let age = DAY * (2 * number + 1) / (2 * jobs_per_day);
            schedule.agenda.plan(begin + 20 * MINUTE * (number + 1) / (virtual_jobs + 1), Event::Inherit(age));
        }
        schedule
    }

    /// Lets a day pass. Afterwards the record holds what was recorded on it.
    pub(crate) fn run_day(&mut self, day: Day) {
        self.record.begin(day);
        self.agenda.begin(day);
        let midnight = day.plus(1).midnight();
        for _ in 0..self.jobs_per_day {
            // Most people work by day.
            let at = if self.draw.per_mille(500) {
                self.draw.between(0, DAY - 1)
            } else {
                self.draw.between(8 * HOUR, 20 * HOUR)
            };
            self.agenda.plan(day.midnight() + at, Event::Submit);
        }
        self.agenda.plan(day.midnight() + 9 * HOUR, Event::Refit);
        while let Some((at, event)) = self.agenda.take() {
            self.happen(at, event);
        }
        for (at, pool) in self.pools.iter_mut().enumerate() {
            pool.book(midnight, self.record.ledger.pool_today(at));
            self.record.rows.capacity.extend(pool.open_rows());
        }
        for job in self.jobs.iter_mut().flatten() {
            job.end_day(midnight, &mut self.record);
        }
    }

    fn happen(&mut self, now: i64, event: Event) {
        match event {
            Event::Submit => self.submit(now, 0),
            Event::Inherit(age) => self.submit(now, age),
            Event::GoOn { job, epoch } if self.is_current(job, epoch) => self.go_on(job, now),
            Event::Saved { job, epoch } if self.is_current(job, epoch) => {
                if let Some(job) = self.jobs[job].as_mut().filter(|job| job.save_ends() == Some(now)) {
                    job.close_save(now, &mut self.record);
                }
            }
            Event::Leave { job, epoch } if self.is_current(job, epoch) => self.leave(job, now),
            Event::Requeue { job, epoch } if self.is_current(job, epoch) => self.requeue(job, now),
            Event::LoseInterest { job, number } => self.lose_interest(job, number, now),
            Event::Turn { pool, block, epoch } => self.turn(pool, block, epoch, now),
            Event::Refit => self.refit(now),
            Event::GoOn { .. } | Event::Saved { .. } | Event::Leave { .. } | Event::Requeue { .. } => {}
        }
    }

    fn is_current(&self, job: usize, epoch: u64) -> bool {
        self.jobs[job].as_ref().is_some_and(|job| job.epoch == epoch)
    }

    /// Makes void what is planned for a job.
    fn begin_epoch(&mut self, job: usize) -> u64 {
        self.epochs += 1;
        if let Some(job) = &mut self.jobs[job] {
            job.epoch = self.epochs;
        }
        self.epochs
    }

    fn submit(&mut self, now: i64, age_ms: i64) {
        let Some(mut job) = self.arrivals.next(&self.pools, now, age_ms) else { return };
        let patience = job.draw.between(10 * HOUR, 40 * HOUR);
        let number = job.number;
        self.pools[job.pool].demand += job.chips;
        let place = match self.vacant.pop() {
            Some(place) => {
                self.jobs[place] = Some(Box::new(job));
                place
            }
            None => {
                self.jobs.push(Some(Box::new(job)));
                self.jobs.len() - 1
            }
        };
        self.begin_epoch(place);
        self.agenda.plan(now + patience, Event::LoseInterest { job: place, number });
        self.requeue(place, now);
    }

    fn requeue(&mut self, place: usize, now: i64) {
        let Some(job) = &mut self.jobs[place] else { return };
        job.waits_since = now;
        let accelerator = self.pools[job.pool].place.accelerator;
        let pool = if job.chips * 10 > self.pools[job.pool].target * 9 {
            let Some(pool) = refuge(&self.pools, job.chips, None) else {
                self.end_job(place, now, "cancelled");
                return;
            };
            pool
        } else if job.starts > 0 && job.draw.per_mille(WANDERS) {
            refuge(&self.pools, job.chips, Some(accelerator)).unwrap_or(job.pool)
        } else {
            job.pool
        };
        self.pools[job.pool].demand -= job.chips;
        self.pools[pool].demand += job.chips;
        job.pool = pool;
        self.pools[pool].queue.insert((job.rank, job.number, place));
        self.fill(pool, now);
    }

    /// Starts the waiting jobs of a pool that fit, in their order; the others let them by, but not for ever.
    fn fill(&mut self, pool: usize, now: i64) {
        self.shrink(pool, now);
        let waiting: Vec<_> = self.pools[pool].queue.iter().take(LOOKED_AT).copied().collect();
        for entry in waiting {
            let Some(job) = &self.jobs[entry.2] else { continue };
            let (chips, rank, waits_since) = (job.chips, job.rank, job.waits_since);
            let fits = chips <= self.pools[pool].free || (rank == 0 && self.preempt(pool, chips, now));
            if fits {
                self.pools[pool].queue.remove(&entry);
                self.start(entry.2, now);
            } else if now - waits_since > PATIENCE {
                break;
            }
        }
    }

    fn start(&mut self, place: usize, now: i64) {
        let Some(job) = &mut self.jobs[place] else { return };
        let pool = &mut self.pools[job.pool];
        pool.free -= job.chips;
        debug_assert!(pool.free >= 0, "chips were handed out twice");
        pool.running.push(place);
        job.book_chips(now, &mut self.record);
        let attempt = Attempt::start(job, now);
        let (at, epoch) = (attempt.until, job.epoch);
        job.attempt = Some(attempt);
        self.agenda.plan(at, Event::GoOn { job: place, epoch });
    }

    /// Takes the chips that are missing from the least urgent jobs, the youngest first; none if that is not enough.
    fn preempt(&mut self, pool: usize, chips: i64, now: i64) -> bool {
        let mut free = self.pools[pool].free;
        let mut victims = Vec::new();
        for place in self.pools[pool].running.iter().rev() {
            if free >= chips {
                break;
            }
            let Some(job) = self.jobs[*place].as_ref().filter(|job| job.rank == 2) else { continue };
            free += job.chips;
            victims.push(*place);
        }
        if free < chips {
            return false;
        }
        for victim in victims {
            self.evict(victim, now, "preempted");
        }
        true
    }

    /// Ends an attempt at once; the job waits for another one.
    fn evict(&mut self, place: usize, now: i64, reason: &'static str) {
        let Some(job) = &mut self.jobs[place] else { return };
        job.close(now, &mut self.record);
        job.close_save(now, &mut self.record);
        self.end_attempt(place, now, reason);
    }

    fn go_on(&mut self, place: usize, now: i64) {
        let Some(job) = &mut self.jobs[place] else { return };
        let saved_before = job.save_ends();
        job.close(now, &mut self.record);
        let flaws = &mut self.record.flaws;
        let next = job.go_on(now, || flaws.strikes(Flaw::Rename));
        if next != Next::GoesOn {
            self.begin_leaving(place, now, next);
            return;
        }
        let epoch = job.epoch;
        let until = job.attempt.as_ref().map(|attempt| attempt.until);
        let save = job.save_ends().filter(|_| job.save_ends() != saved_before);
        if let Some(at) = save {
            self.agenda.plan(at, Event::Saved { job: place, epoch });
        }
        if let Some(at) = until {
            self.agenda.plan(at, Event::GoOn { job: place, epoch });
        }
    }

    /// After its work or a failure, an attempt holds its chips a little longer; a task that failed does not.
    fn begin_leaving(&mut self, place: usize, now: i64, next: Next) {
        let epoch = self.begin_epoch(place);
        let Some(job) = &mut self.jobs[place] else { return };
        job.close_save(now, &mut self.record);
        self.pools[job.pool].running.retain(|other| *other != place);
        let mut lasts = job.draw.between(SECOND, 20 * SECOND);
        let end_state = match next {
            Next::Done(state) => Some(state),
            // Most failures are of the machines, and the job tries again.
            _ if job.starts < MOST_STARTS && job.draw.per_mille(840) => None,
            _ => Some(job.draw.weighted(&[("failed", 60), ("out_of_memory", 20), ("node_fail", 20)])),
        };
        if next == Next::Failed && job.draw.per_mille(600) {
            lasts = job.draw.between(MINUTE, 9 * MINUTE);
            job.give_back_first(now, "failed", &mut self.record);
        }
        if let Some(attempt) = &mut job.attempt {
            (attempt.activity, attempt.end_state) = (Activity::Leaving, end_state);
        }
        self.agenda.plan(now + lasts, Event::Leave { job: place, epoch });
    }

    fn leave(&mut self, place: usize, now: i64) {
        let Some(job) = &self.jobs[place] else { return };
        let end_state = job.attempt.as_ref().and_then(|attempt| attempt.end_state);
        let pool = job.pool;
        self.end_attempt(place, now, end_state.unwrap_or("failed"));
        if let Some(state) = end_state {
            self.end_job(place, now, state);
        }
        self.fill(pool, now);
    }

    /// Gives back all chips of an attempt, and goes back to what was saved.
    fn end_attempt(&mut self, place: usize, now: i64, reason: &'static str) {
        let epoch = self.begin_epoch(place);
        let Some(job) = &mut self.jobs[place] else { return };
        let is_over = job.attempt.as_ref().is_some_and(|attempt| attempt.end_state.is_some());
        job.give_back(now, reason, &mut self.record);
        let pool = &mut self.pools[job.pool];
        pool.running.retain(|other| *other != place);
        pool.free += job.chips;
        // Requests that were served stay served.
        if job.plan.purpose != Purpose::Serving {
            job.next_step = job.progress.saved_to;
        }
        if !is_over {
            let pause = job.draw.between(20 * SECOND, 4 * MINUTE);
            self.agenda.plan(now + pause, Event::Requeue { job: place, epoch });
        }
    }

    fn end_job(&mut self, place: usize, now: i64, state: &'static str) {
        let Some(mut job) = self.jobs[place].take() else { return };
        self.vacant.push(place);
        self.pools[job.pool].demand -= job.chips;
        self.pools[job.pool].queue.remove(&(job.rank, job.number, place));
        job.book_chips(now, &mut self.record);
        if !job.facts.is_listed {
            return;
        }
        let recorded = self.record.end_job(&job, now, state);
        if !["completed", "cancelled"].contains(&state) {
            let settle = self.record.settle;
            job.progress.end_unclean(recorded, settle, &job.account, &mut self.record.ledger);
        }
    }

    fn lose_interest(&mut self, place: usize, number: u64, now: i64) {
        if self.jobs[place].as_ref().is_some_and(|job| job.number == number && job.starts == 0) {
            self.end_job(place, now, "cancelled");
        }
    }

    fn turn(&mut self, pool: usize, block: usize, epoch: u32, now: i64) {
        if self.pools[pool].blocks[block].epoch != epoch {
            return;
        }
        let goes_down = !self.pools[pool].blocks[block].is_down;
        if goes_down && !self.clear_chips(pool, self.pools[pool].block_chips, now) {
            // Chips that are just being given back cannot be taken: the block holds out until they are.
            self.agenda.plan(now + 10 * MINUTE, Event::Turn { pool, block, epoch });
            return;
        }
        self.pools[pool].book(now, self.record.ledger.pool_today(pool));
        let ended = self.pools[pool].turn(block, now);
        self.record.rows.capacity.push(ended);
        let lasts = if goes_down { fleet::downtime(&mut self.draw) } else { fleet::uptime(&mut self.draw) };
        self.agenda.plan(now + lasts, Event::Turn { pool, block, epoch });
        self.fill(pool, now);
    }

    /// Makes so many chips of a pool free: a failing block takes a job with it, and more of them in a full pool.
    fn clear_chips(&mut self, pool: usize, chips: i64, now: i64) -> bool {
        let running = &self.pools[pool].running;
        let unlucky = (!running.is_empty()).then(|| running[self.draw.position(running.len())]);
        if let Some(unlucky) = unlucky.filter(|_| self.draw.per_mille(700)) {
            self.evict(unlucky, now, "node_fail");
        }
        while self.pools[pool].free < chips {
            let Some(youngest) = self.pools[pool].running.last().copied() else { return false };
            self.evict(youngest, now, "node_fail");
        }
        true
    }

    /// Brings each pool nearer to what it is meant to have by now.
    fn refit(&mut self, now: i64) {
        fleet::set_targets(&mut self.pools, self.chips, Day::of_instant(now));
        for pool in 0..self.pools.len() {
            self.grow(pool, now);
            // Jobs that will never fit any more go elsewhere.
            let target = self.pools[pool].target;
            let queue: Vec<_> = self.pools[pool].queue.iter().copied().collect();
            for entry in queue {
                if self.jobs[entry.2].as_ref().is_some_and(|job| job.chips * 10 > target * 9) {
                    self.pools[pool].queue.remove(&entry);
                    self.requeue(entry.2, now);
                }
            }
            self.fill(pool, now);
        }
    }

    fn grow(&mut self, pool: usize, now: i64) {
        let place = &mut self.pools[pool];
        place.book(now, self.record.ledger.pool_today(pool));
        while self.pools[pool].total + self.pools[pool].block_chips <= self.pools[pool].target {
            let block = self.pools[pool].add_block(now);
            let epoch = self.pools[pool].blocks[block].epoch;
            let lasts = fleet::uptime_left(&mut self.draw);
            self.agenda.plan(now + lasts, Event::Turn { pool, block, epoch });
        }
    }

    fn shrink(&mut self, pool: usize, now: i64) {
        let place = &mut self.pools[pool];
        while place.total - place.block_chips >= place.target && place.total > 0 {
            place.book(now, self.record.ledger.pool_today(pool));
            let Some(ended) = place.retire_block(now) else { return };
            self.record.rows.capacity.push(ended);
        }
    }
}

/// The pool that is least asked for, of those (of a generation, if there is one) that have room for so many chips.
fn refuge(pools: &[Pool], chips: i64, accelerator: Option<&str>) -> Option<usize> {
    let suits = |pool: &Pool| accelerator.is_none_or(|accelerator| pool.place.accelerator == accelerator);
    let fits = (0..pools.len()).filter(|&pool| chips * 10 <= pools[pool].target * 9 && suits(&pools[pool]));
    fits.min_by_key(|&pool| pools[pool].demand * 1000 / pools[pool].target)
}
