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
pub struct JobRow {
    /// The date of its partition.
    pub recorded: Day,
    /// When it became eligible to run.
    pub submit: i64,
    /// When it ended for good; `None` while pending or running.
    pub end: Option<i64>,
    /// How it ended.
    pub end_state: Option<String>,
    /// Chips that it must hold at once to make progress.
    pub chips_required: i64,
    /// The generation it asked for.
    pub accelerator: Option<String>,
    /// Its segment axes, in the order of the rules.
    pub axes: Vec<Option<String>>,
}

impl JobRow {
    /// Whether it ended in a way that loses what was not saved.
    pub fn ended_unclean(&self) -> bool {
        const UNCLEAN: [&str; 5] = ["failed", "preempted", "node_fail", "timeout", "out_of_memory"];
        self.end.is_some() && self.end_state.as_deref().is_some_and(|state| UNCLEAN.contains(&state))
    }
}

impl Recorded for JobRow {
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
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AllocationRow {
    /// The date of its partition.
    pub recorded: Day,
    /// Which start of the job it belongs to.
    pub attempt: i64,
    /// Which part of the gang it is.
    pub task: String,
    /// Where.
    pub cell: String,
    /// On what.
    pub accelerator: String,
    /// Chips held.
    pub chips: i64,
    /// When it begins.
    pub start: i64,
    /// When it ends; `None` while open.
    pub end: Option<i64>,
}

impl AllocationRow {
    /// Orders by what the rows of one set of chips share: attempt, task, cell and accelerator.
    pub fn compare_chips(&self, other: &Self) -> Ordering {
        (self.attempt, &self.task, &self.cell, &self.accelerator).cmp(&(
            other.attempt,
            &other.task,
            &other.cell,
            &other.accelerator,
        ))
    }
}

impl Recorded for AllocationRow {
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
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
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
    /// None of the contract's: counts as idle.
    Unknown(String),
}

impl Phase {
    /// The phases with a code, in the order of their codes.
    const KNOWN: [(&'static str, Phase); 11] = [
        ("restore", Phase::Restore),
        ("compile", Phase::Compile),
        ("init", Phase::Init),
        ("checkpoint", Phase::Checkpoint),
        ("data_wait", Phase::DataWait),
        ("idle", Phase::Idle),
        ("eval", Phase::Eval),
        ("step", Phase::Step),
        ("serve", Phase::Serve),
        ("checkpoint_async", Phase::CheckpointAsync),
        ("data_async", Phase::DataAsync),
    ];

    /// The code of a phase by its name; `None` for one that the contract does not have.
    pub fn code_of(name: &str) -> Option<u8> {
        let position = Phase::KNOWN.iter().position(|(known, _)| *known == name)?;
        u8::try_from(position).ok()
    }

    /// The phase of a code.
    pub fn from_code(code: u8) -> Option<Phase> {
        Phase::KNOWN.get(usize::from(code)).map(|(_, phase)| phase.clone())
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

/// What a job did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuntimeRow {
    /// The date of its partition.
    pub recorded: Day,
    /// Which start of the job it belongs to.
    pub attempt: i64,
    /// What it did.
    pub phase: Phase,
    /// When it begins.
    pub start: i64,
    /// When it ends; `None` while open.
    pub end: Option<i64>,
    /// The first step completed in it.
    pub first_step: Option<i64>,
    /// The last step completed in it, or the step saved.
    pub last_step: Option<i64>,
}

impl RuntimeRow {
    /// First and last step of a step row that has both.
    pub fn steps(&self) -> Option<(i64, i64)> {
        match (&self.phase, self.first_step, self.last_step) {
            (Phase::Step, Some(first), Some(last)) => Some((first, last)),
            _ => None,
        }
    }
}

impl Recorded for RuntimeRow {
    const TABLE: Table = Table::Runtime;

    fn recorded(&self) -> Day {
        self.recorded
    }

    /// By start and attempt first: the order of the step rows, and the order of time.
    fn compare_keys(&self, other: &Self) -> Ordering {
        (self.start, self.attempt).cmp(&(other.start, other.attempt)).then_with(|| self.phase.cmp(&other.phase))
    }

    fn compare_values(&self, other: &Self) -> Ordering {
        nulls_last(&self.end, &other.end)
            .then_with(|| nulls_last(&self.first_step, &other.first_step))
            .then_with(|| nulls_last(&self.last_step, &other.last_step))
    }
}

/// How good a program was in a window of time.
#[derive(Debug, Clone, PartialEq)]
pub struct ProfileRow {
    /// The date of its partition.
    pub recorded: Day,
    /// Which start of the job it belongs to.
    pub attempt: i64,
    /// The fingerprint of the program.
    pub program: String,
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
    pub precision: Option<String>,
}

impl Recorded for ProfileRow {
    const TABLE: Table = Table::Profiles;

    fn recorded(&self) -> Day {
        self.recorded
    }

    fn compare_keys(&self, other: &Self) -> Ordering {
        (self.attempt, &self.program, self.start).cmp(&(other.attempt, &other.program, other.start))
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
        for (position, (name, phase)) in Phase::KNOWN.iter().enumerate() {
            assert_eq!(Phase::code_of(name).map(usize::from), Some(position));
            assert_eq!(Phase::from_code(Phase::code_of(name).unwrap_or(255)).as_ref(), Some(phase));
        }
        assert_eq!(Phase::code_of("warmup"), None);
        assert!(Phase::KNOWN.windows(2).all(|pair| pair[0].1 < pair[1].1));
    }
}
