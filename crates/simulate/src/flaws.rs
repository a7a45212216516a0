//! What is wrong with telemetry in real life: some rows are late, doubled, broken or never heard of again.
//!
//! A flaw either changes nothing that is true of the fleet, or the ledger knows of it: what a broken row said is booked as
//! nothing said.

use std::collections::BTreeMap;
use std::sync::Arc;

use goodput_model::Day;

use crate::draw::Draw;
use crate::rows::{AllocationRow, JobFacts, JobRow, Phase, RuntimeRow};
use crate::{DAY, HOUR, MINUTE, Simulation};

/// A kind of flaw.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Flaw {
    /// A producer sends a row of runtime twice on a day.
    Repeat,
    /// A producer sends a row of runtime again days later.
    RepeatLater,
    /// A producer of runtime rows could not send for some days.
    Delay,
    /// Two clocks disagree about a wait that took no time.
    Skew,
    /// A producer leaves out what it must not.
    Erase,
    /// A framework has a word of its own.
    Rename,
    /// A producer crashes between two days and never says how a row ended.
    Forget,
    /// The scheduler sends an allocation twice on a day.
    RepeatAllocation,
    /// The scheduler says days later that an allocation has ended.
    DelayAllocation,
    /// The scheduler says days later that a job has ended.
    DelayJob,
}

const KINDS: usize = 10;

/// Rows that are owed to a later day.
#[derive(Debug, Default)]
pub(crate) struct Owed {
    pub(crate) runtime: Vec<(Arc<JobFacts>, RuntimeRow)>,
    pub(crate) allocations: Vec<AllocationRow>,
    pub(crate) jobs: Vec<JobRow>,
}

/// Chooses the rows that are spoiled, and remembers what is owed to later days.
#[derive(Debug)]
pub(crate) struct Flaws {
    draw: Draw,
    /// For each kind the rows that could have it, in the mean to the next one that does, and in fact.
    kinds: [(i64, i64); KINDS],
    last_day: Day,
    settle: i64,
    owed: BTreeMap<Day, Owed>,
}

impl Flaws {
    /// Flaws of a simulation whose last day is `last_day`.
    pub(crate) fn new(simulation: &Simulation, last_day: Day) -> Flaws {
        let mut draw = Draw::new(simulation.seed, 2);
        let jobs = i64::from(simulation.jobs_per_day);
        let rows = jobs * i64::from(simulation.runtime_rows_per_job_day);
        let mean = |flaw: Flaw| match flaw {
            Flaw::Repeat | Flaw::RepeatLater | Flaw::Delay => (rows / 4).clamp(30, 6_000),
            Flaw::Skew => (rows / 6).clamp(20, 3_000),
            Flaw::Erase => (rows / 12).clamp(10, 1_500),
            Flaw::Rename => (rows / 40).clamp(4, 300),
            Flaw::Forget => (jobs / 5).clamp(5, 400),
            Flaw::RepeatAllocation | Flaw::DelayAllocation => jobs.clamp(20, 2_000),
            Flaw::DelayJob => (jobs / 2).clamp(10, 1_000),
        };
        let all = [
            Flaw::Repeat,
            Flaw::RepeatLater,
            Flaw::Delay,
            Flaw::Skew,
            Flaw::Erase,
            Flaw::Rename,
            Flaw::Forget,
            Flaw::RepeatAllocation,
            Flaw::DelayAllocation,
            Flaw::DelayJob,
        ];
        let kinds = all.map(|flaw| (mean(flaw), draw.between(1, mean(flaw))));
        Flaws { draw, kinds, last_day, settle: i64::from(simulation.settle_days), owed: BTreeMap::new() }
    }

    /// Whether the row at hand, which could have that flaw, has it.
    pub(crate) fn strikes(&mut self, flaw: Flaw) -> bool {
        let (mean, left) = &mut self.kinds[flaw as usize];
        *left -= 1;
        if *left > 0 {
            return false;
        }
        *left = self.draw.between(1, 2 * *mean);
        true
    }

    /// Decides that a row arrives after `today`, though in time for its day: what is owed on the day when it does.
    /// Nothing is owed beyond the last day.
    pub(crate) fn owe(&mut self, today: Day) -> Option<&mut Owed> {
        let days = if self.draw.per_mille(600) { 1 } else { self.draw.between(1, self.settle) };
        let due = today.plus(i32::try_from(days).unwrap_or(1));
        (due <= self.last_day).then(|| self.owed.entry(due).or_default())
    }

    /// The day on which [`Flaws::owe`] would have a row arrive, for one that matters then.
    pub(crate) fn due(&mut self, today: Day) -> Day {
        let due = today.plus(i32::try_from(self.draw.between(1, self.settle)).unwrap_or(1));
        if due <= self.last_day { due } else { today }
    }

    /// What is owed to a day that [`Flaws::due`] chose.
    pub(crate) fn owed_on(&mut self, due: Day) -> &mut Owed {
        self.owed.entry(due).or_default()
    }

    /// Takes what arrives on a day.
    pub(crate) fn take_due(&mut self, today: Day) -> Owed {
        self.owed.remove(&today).unwrap_or_default()
    }

    /// How much the clocks disagree, ms.
    pub(crate) fn skew(&mut self) -> i64 {
        self.draw.between(1, 900)
    }

    /// Somebody tries something out beside the scheduler: a job that nobody knows, and its rows. One of them is such
    /// that no reader can believe it.
    pub(crate) fn stray(&mut self, day: Day) -> (Arc<JobFacts>, [RuntimeRow; 3]) {
        let start = day.midnight() + self.draw.between(8 * HOUR, 18 * HOUR);
        let middle = start + self.draw.between(MINUTE, 3 * MINUTE);
        let end = middle + self.draw.between(MINUTE, HOUR);
        let facts = JobFacts {
            job_id: format!("notebook-{day}"),
            submit: start,
            chips_required: 0,
            accelerator: None,
            axes: Default::default(),
            is_listed: false,
        };
        let row = |phase, start, end, steps: Option<(i64, i64)>| RuntimeRow {
            reporter: 0,
            phase,
            attempt: 0,
            start,
            end: Some(end),
            first_step: steps.map(|(first, _)| first),
            last_step: steps.map(|(_, last)| last),
        };
        let unbelievable = match day.0.rem_euclid(5) {
            0 => row(Phase::Idle, end, start, None),
            1 => row(Phase::Idle, 0, MINUTE, None),
            2 => row(Phase::Idle, start + 3 * DAY, end + 3 * DAY, None),
            3 => row(Phase::Idle, end, day.midnight() + 30 * DAY, None),
            _ => row(Phase::Step, end, end + MINUTE, Some((200, 100))),
        };
        let rows = [row(Phase::Init, start, middle, None), row(Phase::Step, middle, end, Some((0, 99))), unbelievable];
        (Arc::new(facts), rows)
    }
}
