//! Valid rows of telemetry, and the order among copies of one row.
//!
//! Instants are whole milliseconds since the epoch. Validity has bounded them (from the year 2000 to two days after the
//! row's own partition), so that nothing computed from them can overflow.

use std::cmp::Ordering;

use goodput_model::{Day, Table};

/// A row of telemetry of which several copies may have been recorded.
pub trait Recorded {
    /// The table it is of.
    const TABLE: Table;

    /// The date of the partition in which it was recorded.
    fn recorded(&self) -> Day;

    /// Orders rows by their keys; copies of one row are equal.
    fn compare_keys(&self, other: &Self) -> Ordering;

    /// Orders copies of one date: the one that counts comes first.
    fn compare_values(&self, other: &Self) -> Ordering;

    /// Orders copies of one row: the newest date first, then by their values.
    fn compare_copies(&self, other: &Self) -> Ordering {
        other.recorded().cmp(&self.recorded()).then_with(|| self.compare_values(other))
    }
}

/// Orders optional values: the least first, nulls last.
pub(crate) fn nulls_last<T: Ord>(left: &Option<T>, right: &Option<T>) -> Ordering {
    match (left, right) {
        (Some(left), Some(right)) => left.cmp(right),
        (Some(_), None) => Ordering::Less,
        (None, Some(_)) => Ordering::Greater,
        (None, None) => Ordering::Equal,
    }
}

/// Orders optional floats: the least first, then NaN, nulls last.
fn floats_nulls_last(left: Option<f64>, right: Option<f64>) -> Ordering {
    let rank = |value: Option<f64>| match value {
        Some(value) if value.is_nan() => 1,
        Some(_) => 0,
        None => 2,
    };
    rank(left).cmp(&rank(right)).then_with(|| match (left, right) {
        (Some(left), Some(right)) => left.partial_cmp(&right).unwrap_or(Ordering::Equal),
        _ => Ordering::Equal,
    })
}

/// Chips of a block of the fleet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CapacityRow {
    /// The date of its partition.
    pub recorded: Day,
    /// When it begins.
    pub start: i64,
    /// When it ends; `None` while open.
    pub end: Option<i64>,
    /// Chips in the block.
    pub chips: i64,
    /// Whether they cannot be used.
    pub down: bool,
}

impl Recorded for CapacityRow {
    const TABLE: Table = Table::Capacity;

    fn recorded(&self) -> Day {
        self.recorded
    }

    fn compare_keys(&self, other: &Self) -> Ordering {
        self.start.cmp(&other.start)
    }

    fn compare_values(&self, other: &Self) -> Ordering {
        // The states are `available` and `down`: `available` is the lesser text.
        nulls_last(&self.end, &other.end)
            .then_with(|| self.chips.cmp(&other.chips))
            .then_with(|| self.down.cmp(&other.down))
    }
}

/// What a job asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobRow<'a> {
    /// The date of its partition.
    pub recorded: Day,
    /// When it became eligible to run.
    pub submit: i64,
    /// When it ended for good; `None` while pending or running.
    pub end: Option<i64>,
    /// How it ended.
    pub end_state: Option<&'a str>,
    /// Chips that it must hold at once to make progress.
    pub chips_required: i64,
    /// The generation it asked for.
    pub accelerator: Option<&'a str>,
    /// Its segment axes, in the order of the rules.
    pub axes: Vec<Option<&'a str>>,
}

impl JobRow<'_> {
    /// Whether it ended in a way that loses what was not saved.
    pub fn ended_unclean(&self) -> bool {
        const UNCLEAN: [&str; 5] = ["failed", "preempted", "node_fail", "timeout", "out_of_memory"];
        self.end.is_some() && self.end_state.is_some_and(|state| UNCLEAN.contains(&state))
    }
}

impl Recorded for JobRow<'_> {
    const TABLE: Table = Table::Jobs;

    fn recorded(&self) -> Day {
        self.recorded
    }

    fn compare_keys(&self, _: &Self) -> Ordering {
        Ordering::Equal
    }

    fn compare_values(&self, other: &Self) -> Ordering {
        nulls_last(&self.end, &other.end)
            .then_with(|| self.submit.cmp(&other.submit))
            .then_with(|| nulls_last(&self.end_state, &other.end_state))
            .then_with(|| self.chips_required.cmp(&other.chips_required))
            .then_with(|| nulls_last(&self.accelerator, &other.accelerator))
            .then_with(|| {
                let pairs = self.axes.iter().zip(&other.axes);
                pairs
                    .map(|(left, right)| nulls_last(left, right))
                    .find(|order| order.is_ne())
                    .unwrap_or(Ordering::Equal)
            })
    }
}

/// Chips that a task of a job held.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AllocationRow<'a> {
    /// The date of its partition.
    pub recorded: Day,
    /// Which start of the job it belongs to.
    pub attempt: i64,
    /// Which part of the gang it is.
    pub task: &'a str,
    /// Where.
    pub cell: &'a str,
    /// On what.
    pub accelerator: &'a str,
    /// Chips held.
    pub chips: i64,
    /// When it begins.
    pub start: i64,
    /// When it ends; `None` while open.
    pub end: Option<i64>,
}

impl AllocationRow<'_> {
    /// Orders by what the rows of one set of chips share: attempt, task, cell and accelerator.
    pub fn compare_chips(&self, other: &Self) -> Ordering {
        (self.attempt, self.task, self.cell, self.accelerator).cmp(&(
            other.attempt,
            other.task,
            other.cell,
            other.accelerator,
        ))
    }
}

impl Recorded for AllocationRow<'_> {
    const TABLE: Table = Table::Allocations;

    fn recorded(&self) -> Day {
        self.recorded
    }

    fn compare_keys(&self, other: &Self) -> Ordering {
        self.compare_chips(other).then_with(|| self.start.cmp(&other.start))
    }

    fn compare_values(&self, other: &Self) -> Ordering {
        // What is left, `end_reason`, has no part in any figure.
        nulls_last(&self.end, &other.end).then_with(|| self.chips.cmp(&other.chips))
    }
}

/// The phases of the contract, those that decide in the order in which they do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    /// Restoring a checkpoint.
    Restore,
    /// Compiling.
    Compile,
    /// Starting up.
    Init,
    /// Writing a checkpoint that blocks.
    Checkpoint,
    /// Waiting for data.
    DataWait,
    /// Idle.
    Idle,
    /// Evaluating.
    Eval,
    /// Stepping.
    Step,
    /// Serving.
    Serve,
    /// Writing a checkpoint beside the steps.
    CheckpointAsync,
    /// Loading data beside the steps.
    DataAsync,
    /// None of the contract's: counts as idle. Which one, as a number among those of the job.
    Unknown(u32),
}

/// A phase as a source names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PhaseName<'a> {
    /// One of the contract's, by its code.
    Known(u8),
    /// Another one.
    Unknown(&'a str),
}

impl<'a> PhaseName<'a> {
    /// What a name stands for.
    pub fn of(name: &'a str) -> PhaseName<'a> {
        Phase::code_of(name).map_or(PhaseName::Unknown(name), PhaseName::Known)
    }

    /// Whether it is a phase of the contract.
    #[inline]
    pub fn is(&self, phase: Phase) -> bool {
        matches!(self, PhaseName::Known(code) if Phase::from_code(*code) == Some(phase))
    }
}

impl Phase {
    /// The phases with a code, in the order of their codes.
    const KNOWN: [Phase; 11] = [
        Phase::Restore,
        Phase::Compile,
        Phase::Init,
        Phase::Checkpoint,
        Phase::DataWait,
        Phase::Idle,
        Phase::Eval,
        Phase::Step,
        Phase::Serve,
        Phase::CheckpointAsync,
        Phase::DataAsync,
    ];

    /// The code of a phase by its name; `None` for one that the contract does not have.
    pub fn code_of(name: &str) -> Option<u8> {
        let position = match name {
            "restore" => 0,
            "compile" => 1,
            "init" => 2,
            "checkpoint" => 3,
            "data_wait" => 4,
            "idle" => 5,
            "eval" => 6,
            "step" => 7,
            "serve" => 8,
            "checkpoint_async" => 9,
            "data_async" => 10,
            _ => return None,
        };
        Some(position)
    }

    /// The phase of a code.
    pub fn from_code(code: u8) -> Option<Phase> {
        Phase::KNOWN.get(usize::from(code)).copied()
    }

    /// Whether it takes chip-time: all but the phases that run beside the steps.
    pub fn can_decide(&self) -> bool {
        !matches!(self, Phase::CheckpointAsync | Phase::DataAsync)
    }

    /// Whether it saves a step.
    pub fn saves(&self) -> bool {
        matches!(self, Phase::Checkpoint | Phase::CheckpointAsync)
    }
}

/// What a job did. A row of 56 bytes: a job may have millions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RuntimeRow {
    /// When it begins.
    pub start: i64,
    /// When it ends, if it has an end.
    end: i64,
    /// The first step completed in it, if it has one.
    first_step: i64,
    /// The last step completed in it, or the step saved, if it has one.
    last_step: i64,
    /// Which start of the job it belongs to.
    pub attempt: i64,
    /// The date of its partition.
    pub recorded: Day,
    /// What it did.
    pub phase: Phase,
    has_end: bool,
    has_first_step: bool,
    has_last_step: bool,
}

impl RuntimeRow {
    /// A row over an interval, whose end is `None` while it is open, with its first and its last step.
    #[inline]
    pub fn new(
        recorded: Day,
        attempt: i64,
        phase: Phase,
        (start, end): (i64, Option<i64>),
        (first_step, last_step): (Option<i64>, Option<i64>),
    ) -> RuntimeRow {
        RuntimeRow {
            start,
            end: end.unwrap_or(0),
            first_step: first_step.unwrap_or(0),
            last_step: last_step.unwrap_or(0),
            attempt,
            recorded,
            phase,
            has_end: end.is_some(),
            has_first_step: first_step.is_some(),
            has_last_step: last_step.is_some(),
        }
    }

    /// When it ends; `None` while open.
    #[inline]
    pub fn end(&self) -> Option<i64> {
        self.has_end.then_some(self.end)
    }

    /// The last step completed in it, or the step saved.
    #[inline]
    pub fn last_step(&self) -> Option<i64> {
        self.has_last_step.then_some(self.last_step)
    }

    /// First and last step of a step row that has both.
    #[inline]
    pub fn steps(&self) -> Option<(i64, i64)> {
        let is_numbered = self.phase == Phase::Step && self.has_first_step && self.has_last_step;
        is_numbered.then_some((self.first_step, self.last_step))
    }
}

impl Recorded for RuntimeRow {
    const TABLE: Table = Table::Runtime;

    #[inline]
    fn recorded(&self) -> Day {
        self.recorded
    }

    /// By start and attempt first: the order of the step rows, and the order of time.
    #[inline]
    fn compare_keys(&self, other: &Self) -> Ordering {
        (self.start, self.attempt).cmp(&(other.start, other.attempt)).then_with(|| self.phase.cmp(&other.phase))
    }

    fn compare_values(&self, other: &Self) -> Ordering {
        let first_step = |row: &RuntimeRow| row.has_first_step.then_some(row.first_step);
        nulls_last(&self.end(), &other.end())
            .then_with(|| nulls_last(&first_step(self), &first_step(other)))
            .then_with(|| nulls_last(&self.last_step(), &other.last_step()))
    }
}

/// How good a program was in a window of time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ProfileRow<'a> {
    /// The date of its partition.
    pub recorded: Day,
    /// Which start of the job it belongs to.
    pub attempt: i64,
    /// The fingerprint of the program.
    pub program: &'a str,
    /// When the window begins.
    pub start: i64,
    /// When the window ends; `None` where that was only planned.
    pub end: Option<i64>,
    /// Steps in the window.
    pub steps: i64,
    /// Measured mean time of a step.
    pub step_time_us: f64,
    /// Predicted ideal time of a step.
    pub predicted_step_time_us: Option<f64>,
    /// Operations in one step on all chips.
    pub flops_per_step: Option<f64>,
    /// Bytes moved in one step on all chips.
    pub bytes_per_step: Option<f64>,
    /// The precision that picks the peak.
    pub precision: Option<&'a str>,
}

impl Recorded for ProfileRow<'_> {
    const TABLE: Table = Table::Profiles;

    fn recorded(&self) -> Day {
        self.recorded
    }

    fn compare_keys(&self, other: &Self) -> Ordering {
        (self.attempt, self.program, self.start).cmp(&(other.attempt, other.program, other.start))
    }

    fn compare_values(&self, other: &Self) -> Ordering {
        nulls_last(&self.end, &other.end)
            .then_with(|| self.steps.cmp(&other.steps))
            .then_with(|| floats_nulls_last(Some(self.step_time_us), Some(other.step_time_us)))
            .then_with(|| floats_nulls_last(self.predicted_step_time_us, other.predicted_step_time_us))
            .then_with(|| floats_nulls_last(self.flops_per_step, other.flops_per_step))
            .then_with(|| floats_nulls_last(self.bytes_per_step, other.bytes_per_step))
            .then_with(|| nulls_last(&self.precision, &other.precision))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nan_comes_after_numbers_and_nulls_last() {
        let mut values = [None, Some(f64::NAN), Some(2.0), Some(f64::INFINITY), Some(1.0)];
        values.sort_by(|left, right| floats_nulls_last(*left, *right));
        let shown: Vec<_> = values.iter().map(|value| format!("{value:?}")).collect();
        assert_eq!(shown, ["Some(1.0)", "Some(2.0)", "Some(inf)", "Some(NaN)", "None"]);
    }

    #[test]
    fn phases_have_the_codes_of_their_order() {
        let names = [
            "restore",
            "compile",
            "init",
            "checkpoint",
            "data_wait",
            "idle",
            "eval",
            "step",
            "serve",
            "checkpoint_async",
            "data_async",
        ];
        assert_eq!(names.len(), Phase::KNOWN.len());
        for (position, name) in names.into_iter().enumerate() {
            assert_eq!(Phase::code_of(name).map(usize::from), Some(position));
            assert_eq!(Phase::code_of(name).and_then(Phase::from_code), Some(Phase::KNOWN[position]));
        }
        assert_eq!(Phase::code_of("warmup"), None);
        assert!(Phase::KNOWN.windows(2).all(|pair| pair[0] < pair[1]));
    }
}
