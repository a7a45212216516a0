//! One start of a job: the gang that forms, and what it does from one activity to the next.

use goodput_model::Bucket;

use crate::draw::Draw;
use crate::jobs::{Job, Purpose};
use crate::rows::Phase;
use crate::{HOUR, MINUTE};

/// A part of the gang that holds its chips since `start`, or will.
#[derive(Debug)]
pub(crate) struct Task {
    pub(crate) chips: i64,
    pub(crate) start: i64,
}

/// What an attempt does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Activity {
    /// Waiting for its gang.
    Forming,
    /// Doing so many steps from the first on, each of which takes `pace` ms.
    Steps { first: i64, count: i64, pace: i64 },
    /// A phase without steps.
    Phase(Phase),
    /// Saving all steps before this one while nothing else goes on.
    Saving(i64),
    /// Doing nothing that anyone reports.
    Silence,
    /// Ended; some of its chips are not yet given back.
    Leaving,
}

/// Steps that are saved beside the work.
#[derive(Debug)]
pub(crate) struct Save {
    pub(crate) start: i64,
    pub(crate) end: i64,
    pub(crate) saved_to: i64,
}

/// A job that holds chips.
#[derive(Debug)]
pub(crate) struct Attempt {
    pub(crate) number: i64,
    /// In the order in which they start.
    pub(crate) tasks: Vec<Task>,
    /// How many of them have started, and whether the first one is gone again.
    pub(crate) started: usize,
    pub(crate) first_is_gone: bool,
    /// Chips that it holds.
    pub(crate) held: i64,
    pub(crate) activity: Activity,
    /// When the activity began.
    pub(crate) since: i64,
    /// When the activity ends.
    pub(crate) until: i64,
    /// Whether it ends by a failure.
    fails: bool,
    /// Until when the activity is booked, ms.
    pub(crate) booked_to: i64,
    /// Whether its report was lost at a midnight: nothing of it is told from then on.
    pub(crate) is_forgotten: bool,
    /// Chip-ms of this day on which the whole gang held its chips and no activity is booked.
    pub(crate) silent: i64,
    /// Whether anything was reported on this day.
    pub(crate) has_reported: bool,
    pub(crate) save: Option<Save>,
    /// When it last began to save, ms.
    saved_at: i64,
    /// Why the job ends once its chips are given back.
    pub(crate) end_state: Option<&'static str>,
}

/// What comes next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Next {
    /// Another activity.
    GoesOn,
    /// The job is done, in this state.
    Done(&'static str),
    /// The attempt failed.
    Failed,
}

/// The longest time between two checkpoints, ms.
const SAVES_WITHIN: i64 = 8 * HOUR;

/// The most tasks of a gang, and the chips of each before there are so many.
const MOST_TASKS: i64 = 16;
const CHIPS_PER_TASK: i64 = 8;

impl Attempt {
    /// Starts a job at `now`: its tasks come one after the other, and nothing begins before the last one.
    pub(crate) fn start(job: &mut Job, now: i64) -> Attempt {
        let count = (job.chips / CHIPS_PER_TASK).clamp(1, MOST_TASKS);
        let slow = job.draw.per_mille(300);
        let mut start = now + job.draw.between(1_000, 15_000);
        let mut tasks = Vec::new();
        for number in 0..count {
            // The first tasks take what does not go up evenly.
            let chips = job.chips / count + i64::from(number < job.chips % count);
            tasks.push(Task { chips, start });
            start += if slow { job.draw.between(MINUTE, 12 * MINUTE) } else { job.draw.between(500, 50_000) };
        }
        let ready = tasks.last().map_or(now, |task| task.start) + job.draw.between(500, 8_000);
        let number = job.starts;
        job.starts += 1;
        job.plan.deadline.get_or_insert(now + job.plan.limit_ms);
        Attempt {
            number,
            tasks,
            started: 0,
            first_is_gone: false,
            held: 0,
            activity: Activity::Forming,
            since: now,
            until: ready,
            fails: false,
            booked_to: now,
            is_forgotten: false,
            silent: 0,
            has_reported: false,
            save: None,
            saved_at: ready,
            end_state: None,
        }
    }

    /// The phase and the bucket of what it does, if anyone reports it.
    pub(crate) fn doing(&self, purpose: Purpose) -> Option<(Phase, Bucket)> {
        let phase = match self.activity {
            Activity::Steps { .. } if purpose == Purpose::Serving => Phase::Serve,
            Activity::Steps { .. } => Phase::Step,
            Activity::Phase(phase) => phase,
            Activity::Saving(_) => Phase::Checkpoint,
            Activity::Forming | Activity::Silence | Activity::Leaving => return None,
        };
        Some((phase, bucket_of(phase)?))
    }
}

/// Where the time of a phase is booked; nowhere if it runs beside the work or says nothing.
fn bucket_of(phase: Phase) -> Option<Bucket> {
    Some(match phase {
        Phase::Init => Bucket::Init,
        Phase::Compile => Bucket::Compile,
        Phase::Restore => Bucket::Restore,
        Phase::Checkpoint => Bucket::Checkpoint,
        Phase::DataWait => Bucket::DataWait,
        Phase::Idle | Phase::Warmup => Bucket::IdleRuntime,
        Phase::Eval => Bucket::Eval,
        Phase::Step | Phase::Serve => Bucket::Productive,
        Phase::CheckpointAsync | Phase::DataAsync | Phase::Missing => return None,
    })
}

impl Job {
    /// What comes after the activity that has just been closed at `now`; begun if it is another one. `renames` gives an
    /// idle phase a word of the framework's own.
    pub(crate) fn go_on(&mut self, now: i64, renames: impl FnOnce() -> bool) -> Next {
        let Some(attempt) = &self.attempt else { return Next::GoesOn };
        let before = attempt.activity;
        if attempt.fails {
            return Next::Failed;
        }
        if self.next_step >= self.plan.steps {
            return Next::Done(self.plan.end_state);
        }
        if self.plan.deadline.is_some_and(|deadline| now >= deadline) {
            return Next::Done("timeout");
        }
        let (mut activity, lasts) = self.following(before, now);
        if activity == Activity::Phase(Phase::Idle) && renames() {
            activity = Activity::Phase(Phase::Warmup);
        }
        let fails = matches!(activity, Activity::Steps { .. }) && self.draws_failure(lasts);
        let lasts = if fails { self.draw.between(1, lasts) } else { lasts };
        if self.plan.saves_async && matches!(before, Activity::Saving(_)) {
            self.save_beside(now);
        }
        if let Some(attempt) = &mut self.attempt {
            if matches!(activity, Activity::Saving(_)) {
                attempt.saved_at = now;
            }
            (attempt.activity, attempt.since, attempt.until, attempt.fails) = (activity, now, now + lasts, fails);
            (attempt.booked_to, attempt.is_forgotten) = (now, false);
        }
        Next::GoesOn
    }

    /// The activity after another one, and how long it takes, ms.
    fn following(&mut self, before: Activity, now: i64) -> (Activity, i64) {
        let (draw, plan) = (&mut self.draw, &self.plan);
        match before {
            Activity::Forming => (Activity::Phase(Phase::Init), jittered(draw, plan.init_ms)),
            Activity::Phase(Phase::Init) => {
                let is_cached = plan.caches_programs && (self.starts > 1 || draw.per_mille(300));
                let compile_ms = if is_cached { plan.compile_ms / 10 } else { plan.compile_ms };
                (Activity::Phase(Phase::Compile), jittered(draw, compile_ms.max(1_000)))
            }
            Activity::Phase(Phase::Compile)
                if self.progress.saved_to > 0 && self.next_step == self.progress.saved_to =>
            {
                (Activity::Phase(Phase::Restore), jittered(draw, plan.restore_ms.max(1_000)))
            }
            Activity::Steps { .. } => self.interruption(now),
            _ => {
                let pace = jittered(draw, plan.step_ms).max(1);
                let working_ms = plan.cycle_ms * (1000 - plan.overhead) / 1000;
                let count = (working_ms / pace).clamp(1, plan.steps - self.next_step);
                (Activity::Steps { first: self.next_step, count, pace }, count * pace)
            }
        }
    }

    fn interruption(&mut self, now: i64) -> (Activity, i64) {
        let (draw, plan) = (&mut self.draw, &self.plan);
        // Interruptions take their share of the cycle on average; each is between almost nothing and twice that.
        let lasts = draw.between(plan.cycle_ms * plan.overhead / 10_000, plan.cycle_ms * plan.overhead / 540).max(20);
        let saving = Activity::Saving(self.next_step);
        let waits_for_data = Activity::Phase(Phase::DataWait);
        let data = if plan.reads_async { 10 } else { 40 };
        let is_due = self.attempt.as_ref().is_some_and(|attempt| now - attempt.saved_at > SAVES_WITHIN);
        let activity = match plan.purpose {
            Purpose::Serving => draw.weighted(&[
                (Activity::Phase(Phase::Idle), 70),
                (waits_for_data, data / 2),
                (Activity::Phase(Phase::Compile), 5),
                (Activity::Silence, 10),
            ]),
            _ if is_due => saving,
            Purpose::Training => draw.weighted(&[
                (waits_for_data, data),
                (saving, 40),
                (Activity::Phase(Phase::Eval), 13),
                (Activity::Phase(Phase::Idle), 8),
                (Activity::Silence, 10),
            ]),
            Purpose::BulkInference => draw.weighted(&[
                (waits_for_data, data * 3 / 2),
                (saving, 20),
                (Activity::Phase(Phase::Idle), 15),
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
        let per_million_a_day = 100_000 + 900 * self.chips;
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
    pub(crate) fn save_ends(&self) -> Option<i64> {
        self.attempt.as_ref()?.save.as_ref().map(|save| save.end)
    }
}

/// A time that is not the same every time: up to a tenth more or less.
fn jittered(draw: &mut Draw, ms: i64) -> i64 {
    ms * draw.between(900, 1100) / 1000
}
