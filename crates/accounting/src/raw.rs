//! Rows as they were read: nothing has been judged yet. Instants in ms.

use goodput_model::{Day, Reason};

use crate::rows::{Phase, PhaseName};
use crate::validity::{self, Interval, required, rule};

/// A row of `capacity`.
#[derive(Debug, Clone, Copy, Default)]
pub struct RawCapacity<'a> {
    /// Column `cell`.
    pub cell: Option<&'a str>,
    /// Column `accelerator`.
    pub accelerator: Option<&'a str>,
    /// Column `block`.
    pub block: Option<&'a str>,
    /// Column `chips`.
    pub chips: Option<i64>,
    /// Column `state`.
    pub state: Option<&'a str>,
    /// Column `start_ts`.
    pub start: Option<i64>,
    /// Column `end_ts`.
    pub end: Option<i64>,
}

/// A row of `jobs`.
#[derive(Debug, Clone, Default)]
pub struct RawJob<'a> {
    /// Column `job_id`.
    pub job_id: Option<&'a str>,
    /// Column `submit_ts`.
    pub submit: Option<i64>,
    /// Column `end_ts`.
    pub end: Option<i64>,
    /// Column `end_state`.
    pub end_state: Option<&'a str>,
    /// Column `chips_required`.
    pub chips_required: Option<i64>,
    /// Column `accelerator`.
    pub accelerator: Option<&'a str>,
    /// The columns that are axes, in the order of the rules.
    pub axes: Vec<Option<&'a str>>,
}

/// A row of `allocations`.
#[derive(Debug, Clone, Copy, Default)]
pub struct RawAllocation<'a> {
    /// Column `job_id`.
    pub job_id: Option<&'a str>,
    /// Column `attempt`.
    pub attempt: Option<i64>,
    /// Column `task`.
    pub task: Option<&'a str>,
    /// Column `cell`.
    pub cell: Option<&'a str>,
    /// Column `accelerator`.
    pub accelerator: Option<&'a str>,
    /// Column `chips`.
    pub chips: Option<i64>,
    /// Column `start_ts`.
    pub start: Option<i64>,
    /// Column `end_ts`.
    pub end: Option<i64>,
}

/// A row of `runtime`.
#[derive(Debug, Clone, Copy, Default)]
pub struct RawRuntime<'a> {
    /// Whether column `job_id` is there.
    pub has_job_id: bool,
    /// Column `attempt`.
    pub attempt: Option<i64>,
    /// Column `phase`.
    pub phase: Option<PhaseName<'a>>,
    /// Column `start_ts`.
    pub start: Option<i64>,
    /// Column `end_ts`.
    pub end: Option<i64>,
    /// Column `first_step`.
    pub first_step: Option<i64>,
    /// Column `last_step`.
    pub last_step: Option<i64>,
}

/// A row of `profiles`.
#[derive(Debug, Clone, Copy, Default)]
pub struct RawProfile<'a> {
    /// Column `job_id`.
    pub job_id: Option<&'a str>,
    /// Column `attempt`.
    pub attempt: Option<i64>,
    /// Column `program`.
    pub program: Option<&'a str>,
    /// Column `start_ts`.
    pub start: Option<i64>,
    /// Column `end_ts`.
    pub end: Option<i64>,
    /// Column `steps`.
    pub steps: Option<i64>,
    /// Column `step_time_us`.
    pub step_time_us: Option<f64>,
    /// Column `predicted_step_time_us`.
    pub predicted_step_time_us: Option<f64>,
    /// Column `flops_per_step`.
    pub flops_per_step: Option<f64>,
    /// Column `bytes_per_step`.
    pub bytes_per_step: Option<f64>,
    /// Column `precision`.
    pub precision: Option<&'a str>,
}

impl RawCapacity<'_> {
    /// The interval of a valid row, its chips, and whether they are down; or why it is quarantined.
    pub fn judge(&self, recorded: Day, skew_tolerance_ms: i64) -> Result<(Interval, i64, bool), Reason> {
        required(self.cell)?;
        required(self.accelerator)?;
        required(self.block)?;
        let (chips, state, start) = (required(self.chips)?, required(self.state)?, required(self.start)?);
        rule(chips > 0 && (state == "available" || state == "down"))?;
        let interval = validity::interval(recorded, start, self.end, skew_tolerance_ms)?;
        Ok((interval, chips, state == "down"))
    }
}

impl RawJob<'_> {
    /// The interval of a valid row and the chips that the job requires; or why it is quarantined.
    pub fn judge(&self, recorded: Day, skew_tolerance_ms: i64) -> Result<(Interval, i64), Reason> {
        required(self.job_id)?;
        let (submit, chips_required) = (required(self.submit)?, required(self.chips_required)?);
        rule(chips_required >= 0)?;
        let interval = validity::interval(recorded, submit, self.end, skew_tolerance_ms)?;
        Ok((interval, chips_required))
    }
}

/// What a valid row of `allocations` says.
#[derive(Debug, Clone, Copy)]
pub struct ValidAllocation<'a> {
    /// From when to when.
    pub interval: Interval,
    /// Column `attempt`.
    pub attempt: i64,
    /// Column `task`.
    pub task: &'a str,
    /// Column `cell`.
    pub cell: &'a str,
    /// Column `accelerator`.
    pub accelerator: &'a str,
    /// Column `chips`.
    pub chips: i64,
}

impl<'a> RawAllocation<'a> {
    /// What a valid row says; or why it is quarantined.
    pub fn judge(&self, recorded: Day, skew_tolerance_ms: i64) -> Result<ValidAllocation<'a>, Reason> {
        required(self.job_id)?;
        let attempt = required(self.attempt)?;
        let (task, cell, accelerator) = (required(self.task)?, required(self.cell)?, required(self.accelerator)?);
        let (chips, start) = (required(self.chips)?, required(self.start)?);
        rule(attempt >= 0 && chips > 0)?;
        let interval = validity::interval(recorded, start, self.end, skew_tolerance_ms)?;
        Ok(ValidAllocation { interval, attempt, task, cell, accelerator, chips })
    }
}

impl<'a> RawRuntime<'a> {
    /// The interval, the attempt and the phase of a valid row; or why it is quarantined.
    #[inline]
    pub fn judge(&self, recorded: Day, skew_tolerance_ms: i64) -> Result<(Interval, i64, PhaseName<'a>), Reason> {
        required(self.has_job_id.then_some(()))?;
        let (attempt, phase, start) = (required(self.attempt)?, required(self.phase)?, required(self.start)?);
        let backwards = matches!((self.first_step, self.last_step), (Some(first), Some(last)) if last < first);
        rule(attempt >= 0 && !(backwards && phase.is(Phase::Step)))?;
        let interval = validity::interval(recorded, start, self.end, skew_tolerance_ms)?;
        Ok((interval, attempt, phase))
    }
}

/// What a valid row of `profiles` says, as far as it cannot be null.
#[derive(Debug, Clone, Copy)]
pub struct ValidProfile<'a> {
    /// From when to when.
    pub interval: Interval,
    /// Column `attempt`.
    pub attempt: i64,
    /// Column `program`.
    pub program: &'a str,
    /// Column `steps`.
    pub steps: i64,
    /// Column `step_time_us`.
    pub step_time_us: f64,
}

impl<'a> RawProfile<'a> {
    /// What a valid row says; or why it is quarantined.
    pub fn judge(&self, recorded: Day, skew_tolerance_ms: i64) -> Result<ValidProfile<'a>, Reason> {
        required(self.job_id)?;
        let (attempt, program) = (required(self.attempt)?, required(self.program)?);
        let (start, end) = (required(self.start)?, required(self.end)?);
        let (steps, step_time_us) = (required(self.steps)?, required(self.step_time_us)?);
        rule(
            attempt >= 0
                && steps > 0
                && validity::is_usable_time(step_time_us)
                && self.predicted_step_time_us.is_none_or(validity::is_usable_time),
        )?;
        let interval = validity::interval(recorded, start, Some(end), skew_tolerance_ms)?;
        Ok(ValidProfile { interval, attempt, program, steps, step_time_us })
    }
}
