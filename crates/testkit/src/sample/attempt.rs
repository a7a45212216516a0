//! One start of a job: the gang that forms, and the phases that follow one another.

use super::MINUTE;
use super::draw::Draw;
use super::fleet::Pool;
use super::jobs::{Job, Purpose};
use super::profile::profile;
use crate::telemetry::{AllocationRow, Partition, RuntimeRow};
use goodput_model::Day;

/// A part of the gang that holds its chips since `start`, or will.
#[derive(Debug)]
struct Task {
    name: String,
    chips: i64,
    start: i64,
}

/// What an attempt does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Activity {
    /// Waiting for its gang.
    Forming,
    /// Doing so many steps from the first on, each of which takes `pace` ms.
    Steps { first: i64, count: i64, pace: i64 },
    /// A phase without steps, by its word.
    Phase(&'static str),
    /// Saving all steps before this one while nothing else goes on.
    Saving(i64),
    /// Doing nothing that anyone reports.
    Silence,
    /// Ended; some of its chips are not yet given back.
    Leaving,
}

/// Steps that are saved beside the work.
#[derive(Debug)]
struct Save {
    start: i64,
    end: i64,
    saved_to: i64,
}

/// A job that holds chips.
#[derive(Debug)]
pub(super) struct Attempt {
    number: i64,
    tasks: Vec<Task>,
    pub(super) activity: Activity,
    since: i64,
    /// When the activity ends.
    pub(super) until: i64,
    /// Whether it ends by a failure.
    fails: bool,
    save: Option<Save>,
    /// Why the job ends once its chips are given back.
    pub(super) end_state: Option<&'static str>,
}

/// What comes next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Next {
    /// Another activity.
    GoesOn,
    /// The job is done, in this state.
    Done(&'static str),
    /// The attempt failed.
    Failed,
}

impl Attempt {
    /// Starts a job at `now`: its tasks come one after the other, and nothing begins before the last one.
    pub(super) fn start(job: &mut Job, now: i64) -> Attempt {
        let count = if job.chips < 8 { 1 } else { (job.chips / 8).min(8) };
        let slow = job.draw.per_mille(300);
        let mut start = now + job.draw.between(1_000, 15_000);
        let mut tasks = Vec::new();
        for number in 0..count {
            tasks.push(Task { name: format!("worker-{number}"), chips: job.chips / count, start });
            start += if slow { job.draw.between(2 * MINUTE, 18 * MINUTE) } else { job.draw.between(500, 50_000) };
        }
        let ready = tasks.last().map_or(now, |task| task.start) + job.draw.between(500, 8_000);
        let number = job.starts;
        job.starts += 1;
        job.plan.deadline.get_or_insert(now + job.plan.limit_ms);
        let activity = Activity::Forming;
        Attempt { number, tasks, activity, since: now, until: ready, fails: false, save: None, end_state: None }
    }
}

impl Job {
    /// Ends the current activity at its planned end and begins the next one.
    pub(super) fn go_on(&mut self, now: i64, rows: &mut Partition) -> Next {
        let Some(attempt) = &self.attempt else { return Next::GoesOn };
        let (before, fails) = (attempt.activity, attempt.fails);
        self.close(now, rows);
        if fails {
            return Next::Failed;
        }
        if self.next_step >= self.plan.steps {
            return Next::Done(self.plan.end_state);
        }
        if self.plan.deadline.is_some_and(|deadline| now >= deadline) {
            return Next::Done("timeout");
        }
        let (activity, lasts) = self.following(before);
        let fails = matches!(activity, Activity::Steps { .. }) && self.draws_failure(lasts);
        let lasts = if fails { self.draw.between(1, lasts) } else { lasts };
        if self.plan.saves_async && matches!(before, Activity::Saving(_)) {
            self.save_beside(now);
        }
        if let Some(attempt) = &mut self.attempt {
            (attempt.activity, attempt.since, attempt.until, attempt.fails) = (activity, now, now + lasts, fails);
        }
        Next::GoesOn
    }

    /// The activity after another one, and how long it takes, ms.
    fn following(&mut self, before: Activity) -> (Activity, i64) {
        let (draw, plan) = (&mut self.draw, &self.plan);
        match before {
            Activity::Forming => (Activity::Phase("init"), jittered(draw, plan.init_ms)),
            Activity::Phase("init") => (Activity::Phase("compile"), jittered(draw, plan.compile_ms)),
            Activity::Phase("compile") if self.saved_to > 0 && self.next_step == self.saved_to => {
                (Activity::Phase("restore"), jittered(draw, plan.restore_ms))
            }
            Activity::Steps { .. } => self.interruption(),
            _ => {
                let pace = jittered(draw, plan.step_ms).max(1);
                let working_ms = plan.cycle_ms * (1000 - plan.overhead) / 1000;
                let count = (working_ms / pace).clamp(1, plan.steps - self.next_step);
                (Activity::Steps { first: self.next_step, count, pace }, count * pace)
            }
        }
    }

    fn interruption(&mut self) -> (Activity, i64) {
        let (draw, plan) = (&mut self.draw, &self.plan);
        // Interruptions take their share of the cycle on average; each is between almost nothing and twice that.
        let lasts = draw.between(plan.cycle_ms * plan.overhead / 10_000, plan.cycle_ms * plan.overhead / 540).max(20);
        let saving = Activity::Saving(self.next_step);
        let activity = match plan.purpose {
            Purpose::Serving => draw.weighted(&[
                (Activity::Phase("idle"), 70),
                (Activity::Phase("data_wait"), 15),
                (Activity::Phase("compile"), 5),
                (Activity::Silence, 10),
            ]),
            Purpose::Training => draw.weighted(&[
                (Activity::Phase("data_wait"), 35),
                (saving, 40),
                (Activity::Phase("eval"), 13),
                (Activity::Phase("idle"), 8),
                (Activity::Silence, 10),
            ]),
            Purpose::BulkInference => draw.weighted(&[
                (Activity::Phase("data_wait"), 55),
                (saving, 20),
                (Activity::Phase("idle"), 15),
                (Activity::Silence, 10),
            ]),
        };
        match activity {
            // Of a save beside the work only the copy to the host blocks.
            Activity::Saving(_) if plan.saves_async => (activity, (lasts / 10).max(10)),
            Activity::Saving(_) => (activity, lasts.min(10 * MINUTE)),
            _ => (activity, lasts),
        }
    }

    /// Whether something fails within that time: the more chips, the likelier.
    fn draws_failure(&mut self, lasts_ms: i64) -> bool {
        let per_million_a_day = 120_000 + 1_500 * self.chips;
        self.draw.per_million(per_million_a_day * (lasts_ms / 1000) / 86_400)
    }

    fn save_beside(&mut self, now: i64) {
        let lasts = self.draw.between(self.plan.cycle_ms / 20, self.plan.cycle_ms / 3).max(1);
        let saved_to = self.next_step;
        if let Some(attempt) = self.attempt.as_mut().filter(|attempt| attempt.save.is_none()) {
            attempt.save = Some(Save { start: now, end: now + lasts, saved_to });
        }
    }

    /// When the steps that are saved beside the work will be safe.
    pub(super) fn save_ends(&self) -> Option<i64> {
        self.attempt.as_ref()?.save.as_ref().map(|save| save.end)
    }

    /// Ends the save beside the work: complete, or cut off.
    pub(super) fn close_save(&mut self, now: i64, rows: &mut Partition) {
        let Some(save) = self.attempt.as_mut().and_then(|attempt| attempt.save.take()) else { return };
        let is_complete = now >= save.end;
        if is_complete {
            self.saved_to = save.saved_to;
        }
        let last_step = is_complete.then_some(save.saved_to - 1);
        self.report(rows, "checkpoint_async", save.start, Some(now), (None, last_step));
    }

    /// Ends the current activity at `now`, at its planned end or before.
    pub(super) fn close(&mut self, now: i64, rows: &mut Partition) {
        let Some(attempt) = &self.attempt else { return };
        let (activity, since) = (attempt.activity, attempt.since);
        match activity {
            Activity::Steps { first, count, pace } => {
                let done = count.min((now - since) / pace);
                self.next_step = first + done;
                let has_numbers = done > 0 && self.plan.purpose != Purpose::Serving;
                let steps = if has_numbers { (Some(first), Some(first + done - 1)) } else { (None, None) };
                self.report(rows, self.work(), since, Some(now), steps);
                self.wait_inside(since, now, rows);
                profile(self, since, now, pace, rows);
            }
            Activity::Phase(word) => self.report(rows, word, since, Some(now), (None, None)),
            Activity::Saving(saved_to) => {
                let is_complete = now >= self.attempt.as_ref().map_or(now, |attempt| attempt.until);
                // The copy to the host saves nothing: the steps are safe when they have left it.
                let is_safe = is_complete && !self.plan.saves_async;
                if is_safe {
                    self.saved_to = saved_to;
                }
                self.report(rows, "checkpoint", since, Some(now), (None, is_safe.then_some(saved_to - 1)));
            }
            Activity::Forming | Activity::Silence | Activity::Leaving => {}
        }
    }

    /// Sometimes steps wait for data without ending their own row.
    fn wait_inside(&mut self, since: i64, now: i64, rows: &mut Partition) {
        let lasts = (now - since) / 12;
        let start = since + (now - since) / 3;
        // Rows are recorded on the day on which they end.
        let is_today = Day::of_instant(start + lasts) == Day::of_instant(now);
        if lasts > 0 && is_today && self.draw.per_mille(100) {
            self.report(rows, "data_wait", start, Some(start + lasts), (None, None));
        }
    }

    fn work(&self) -> &'static str {
        if self.plan.purpose == Purpose::Serving { "serve" } else { "step" }
    }

    fn report(
        &self,
        rows: &mut Partition,
        phase: &str,
        start: i64,
        end: Option<i64>,
        steps: (Option<i64>, Option<i64>),
    ) {
        let Some(attempt) = self.attempt.as_ref().filter(|_| self.observed) else { return };
        rows.runtime.push(RuntimeRow {
            job_id: self.row.job_id.clone(),
            attempt: attempt.number,
            phase: Some(phase.to_owned()),
            start,
            end,
            first_step: steps.0,
            last_step: steps.1,
        });
    }

    /// Gives back the chips of all tasks (of the first one alone, if `first_only`) at `now`.
    pub(super) fn give_back(&mut self, now: i64, reason: &str, first_only: bool, place: &Pool, rows: &mut Partition) {
        let Some(mut attempt) = self.attempt.take() else { return };
        let count = if first_only { attempt.tasks.len().min(1) } else { attempt.tasks.len() };
        // Tasks that were yet to come never held anything.
        for task in attempt.tasks.drain(..count).filter(|task| task.start < now) {
            let mut ended = self.allocation(attempt.number, &task, place);
            (ended.end, ended.end_reason) = (Some(now), Some(reason.to_owned()));
            rows.allocations.push(ended);
        }
        self.attempt = Some(attempt);
    }

    fn allocation(&self, attempt: i64, task: &Task, place: &Pool) -> AllocationRow {
        AllocationRow {
            job_id: self.row.job_id.clone(),
            attempt,
            task: task.name.clone(),
            cell: place.cell.to_owned(),
            accelerator: place.accelerator.to_owned(),
            chips: task.chips,
            start: task.start,
            end: None,
            end_reason: None,
        }
    }

    /// Records what is open at the end of a day.
    pub(super) fn record_open(&self, midnight: i64, place: &Pool, rows: &mut Partition) {
        if self.listed {
            rows.jobs.push(self.row.clone());
        }
        let Some(attempt) = &self.attempt else { return };
        let held = attempt.tasks.iter().filter(|task| task.start < midnight);
        rows.allocations.extend(held.map(|task| self.allocation(attempt.number, task, place)));
        match attempt.activity {
            Activity::Steps { first, .. } => {
                let first = (self.plan.purpose != Purpose::Serving).then_some(first);
                self.report(rows, self.work(), attempt.since, None, (first, None));
            }
            Activity::Phase(word) => self.report(rows, word, attempt.since, None, (None, None)),
            Activity::Saving(_) => self.report(rows, "checkpoint", attempt.since, None, (None, None)),
            Activity::Forming | Activity::Silence | Activity::Leaving => {}
        }
        if let Some(save) = &attempt.save {
            self.report(rows, "checkpoint_async", save.start, None, (None, None));
        }
    }

    /// The number of the attempt that runs.
    pub(super) fn attempt_number(&self) -> i64 {
        self.attempt.as_ref().map_or(0, |attempt| attempt.number)
    }
}

/// A time that is not the same every time: up to a tenth more or less.
fn jittered(draw: &mut Draw, ms: i64) -> i64 {
    ms * draw.between(900, 1100) / 1000
}
