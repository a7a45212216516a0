//! The rows of a job, or of a block, as bytes: the partial results of the collecting aggregates.
//!
//! Each record stands for itself, so that partial results merge by concatenation, in any order and over any number of
//! partitions and nodes. Instants are written relative to the row's partition: a runtime row takes about 16 bytes.
//!
//! A `write_*` function judges one row as it was read and appends what the accounting needs of it: the row if it is valid,
//! and in any case what was found. A `read_*` function gives the rows back.

use goodput_model::{Day, Reason, Table};

use crate::findings::Findings;
use crate::rows::{AllocationRow, CapacityRow, JobRow, Phase, ProfileRow, RuntimeRow};
use crate::validity::{self, Interval, required, rule};
use crate::{AccountingError, Rules};

/// Record tags: a quarantined row has one, a valid row the sum of [`ROW`] and its flags.
const QUARANTINED: u8 = 0;
const ROW: u8 = 1;
const SKEWED: u8 = 2;
const END_IN_FUTURE: u8 = 4;
const CLOSED: u8 = 8;

/// The code of a phase that the contract does not have; its name follows.
const UNKNOWN_PHASE: u8 = u8::MAX;

/// A row of `capacity` as it was read. Instants in ms.
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

/// A row of `jobs` as it was read. Instants in ms.
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

/// A row of `allocations` as it was read. Instants in ms.
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

/// A row of `runtime` as it was read. Instants in ms.
#[derive(Debug, Clone, Copy, Default)]
pub struct RawRuntime<'a> {
    /// Column `job_id`.
    pub job_id: Option<&'a str>,
    /// Column `attempt`.
    pub attempt: Option<i64>,
    /// Column `phase`.
    pub phase: Option<&'a str>,
    /// Column `start_ts`.
    pub start: Option<i64>,
    /// Column `end_ts`.
    pub end: Option<i64>,
    /// Column `first_step`.
    pub first_step: Option<i64>,
    /// Column `last_step`.
    pub last_step: Option<i64>,
}

/// A row of `profiles` as it was read. Instants in ms.
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

/// Appends a row of `capacity`.
pub fn write_capacity(out: &mut Vec<u8>, recorded: Day, raw: &RawCapacity<'_>, skew_tolerance_ms: i64) {
    let judge = || {
        required(raw.cell)?;
        required(raw.accelerator)?;
        required(raw.block)?;
        let (chips, state, start) = (required(raw.chips)?, required(raw.state)?, required(raw.start)?);
        rule(chips > 0 && (state == "available" || state == "down"))?;
        let interval = validity::interval(recorded, start, raw.end, skew_tolerance_ms)?;
        Ok((interval, chips, state == "down"))
    };
    write_judged(out, recorded, judge(), |out, (interval, chips, down)| {
        write_interval(out, recorded, interval);
        write_int(out, chips);
        out.push(u8::from(down));
    });
}

/// Appends a row of `jobs`.
pub fn write_job(out: &mut Vec<u8>, recorded: Day, raw: &RawJob<'_>, skew_tolerance_ms: i64) {
    let judge = || {
        required(raw.job_id)?;
        let (submit, chips_required) = (required(raw.submit)?, required(raw.chips_required)?);
        rule(chips_required >= 0)?;
        let interval = validity::interval(recorded, submit, raw.end, skew_tolerance_ms)?;
        Ok((interval, chips_required))
    };
    write_judged(out, recorded, judge(), |out, (interval, chips_required)| {
        write_interval(out, recorded, interval);
        write_text_or_null(out, raw.end_state);
        write_int(out, chips_required);
        write_text_or_null(out, raw.accelerator);
        write_unsigned(out, raw.axes.len() as u64);
        for axis in &raw.axes {
            write_text_or_null(out, *axis);
        }
    });
}

/// Appends a row of `allocations`.
pub fn write_allocation(out: &mut Vec<u8>, recorded: Day, raw: &RawAllocation<'_>, skew_tolerance_ms: i64) {
    let judge = || {
        required(raw.job_id)?;
        let attempt = required(raw.attempt)?;
        let (task, cell, accelerator) = (required(raw.task)?, required(raw.cell)?, required(raw.accelerator)?);
        let (chips, start) = (required(raw.chips)?, required(raw.start)?);
        rule(attempt >= 0 && chips > 0)?;
        let interval = validity::interval(recorded, start, raw.end, skew_tolerance_ms)?;
        Ok((interval, attempt, task, cell, accelerator, chips))
    };
    write_judged(out, recorded, judge(), |out, (interval, attempt, task, cell, accelerator, chips)| {
        write_interval(out, recorded, interval);
        write_int(out, attempt);
        write_text(out, task);
        write_text(out, cell);
        write_text(out, accelerator);
        write_int(out, chips);
    });
}

/// Appends a row of `runtime`.
pub fn write_runtime(out: &mut Vec<u8>, recorded: Day, raw: &RawRuntime<'_>, skew_tolerance_ms: i64) {
    let judge = || {
        required(raw.job_id)?;
        let (attempt, phase, start) = (required(raw.attempt)?, required(raw.phase)?, required(raw.start)?);
        let backwards = matches!((raw.first_step, raw.last_step), (Some(first), Some(last)) if last < first);
        rule(attempt >= 0 && !(phase == "step" && backwards))?;
        let interval = validity::interval(recorded, start, raw.end, skew_tolerance_ms)?;
        Ok((interval, attempt, phase))
    };
    write_judged(out, recorded, judge(), |out, (interval, attempt, phase)| {
        write_interval(out, recorded, interval);
        write_int(out, attempt);
        match Phase::code_of(phase) {
            Some(code) => out.push(code),
            None => {
                out.push(UNKNOWN_PHASE);
                write_text(out, phase);
            }
        }
        write_int_or_null(out, raw.first_step);
        write_int_or_null(out, raw.last_step);
    });
}

/// Appends a row of `profiles`.
pub fn write_profile(out: &mut Vec<u8>, recorded: Day, raw: &RawProfile<'_>, skew_tolerance_ms: i64) {
    let judge = || {
        required(raw.job_id)?;
        let (attempt, program) = (required(raw.attempt)?, required(raw.program)?);
        let (start, end) = (required(raw.start)?, required(raw.end)?);
        let (steps, step_time_us) = (required(raw.steps)?, required(raw.step_time_us)?);
        rule(
            attempt >= 0
                && steps > 0
                && validity::is_usable_time(step_time_us)
                && raw.predicted_step_time_us.is_none_or(validity::is_usable_time),
        )?;
        let interval = validity::interval(recorded, start, Some(end), skew_tolerance_ms)?;
        Ok((interval, attempt, program, steps, step_time_us))
    };
    write_judged(out, recorded, judge(), |out, (interval, attempt, program, steps, step_time_us)| {
        write_interval(out, recorded, interval);
        write_int(out, attempt);
        write_text(out, program);
        write_int(out, steps);
        write_float(out, step_time_us);
        for value in [raw.predicted_step_time_us, raw.flops_per_step, raw.bytes_per_step] {
            out.push(u8::from(value.is_some()));
            if let Some(value) = value {
                write_float(out, value);
            }
        }
        write_text_or_null(out, raw.precision);
    });
}

/// Reads the rows of a block.
pub fn read_capacity(
    bytes: &[u8],
    rules: &Rules,
    findings: &mut Findings,
) -> Result<Vec<CapacityRow>, AccountingError> {
    read_rows(bytes, Table::Capacity, rules, findings, |reader, recorded, interval, _| {
        let (chips, down) = (reader.int()?, reader.byte()? == 1);
        Ok(CapacityRow { recorded, start: interval.start, end: interval.end, chips, down })
    })
}

/// Reads the copies of a job's row.
pub fn read_jobs(bytes: &[u8], rules: &Rules, findings: &mut Findings) -> Result<Vec<JobRow>, AccountingError> {
    read_rows(bytes, Table::Jobs, rules, findings, |reader, recorded, interval, _| {
        let end_state = reader.text_or_null()?;
        let (chips_required, accelerator) = (reader.int()?, reader.text_or_null()?);
        let number = reader.unsigned()?;
        let axes = (0..number).map(|_| reader.text_or_null()).collect::<Result<_, _>>()?;
        let (submit, end) = (interval.start, interval.end);
        Ok(JobRow { recorded, submit, end, end_state, chips_required, accelerator, axes })
    })
}

/// Reads the allocations of a job.
pub fn read_allocations(
    bytes: &[u8],
    rules: &Rules,
    findings: &mut Findings,
) -> Result<Vec<AllocationRow>, AccountingError> {
    read_rows(bytes, Table::Allocations, rules, findings, |reader, recorded, interval, _| {
        Ok(AllocationRow {
            recorded,
            attempt: reader.int()?,
            task: reader.text()?,
            cell: reader.text()?,
            accelerator: reader.text()?,
            chips: reader.int()?,
            start: interval.start,
            end: interval.end,
        })
    })
}

/// Reads the runtime rows of a job.
pub fn read_runtime(bytes: &[u8], rules: &Rules, findings: &mut Findings) -> Result<Vec<RuntimeRow>, AccountingError> {
    read_rows(bytes, Table::Runtime, rules, findings, |reader, recorded, interval, findings| {
        let attempt = reader.int()?;
        let phase = match reader.byte()? {
            UNKNOWN_PHASE => {
                if rules.books(recorded) {
                    findings.count(recorded, Table::Runtime, Reason::UnknownPhase);
                }
                Phase::Unknown(reader.text()?)
            }
            code => Phase::from_code(code).ok_or(AccountingError::Damaged("phase"))?,
        };
        let (first_step, last_step) = (reader.int_or_null()?, reader.int_or_null()?);
        Ok(RuntimeRow { recorded, attempt, phase, start: interval.start, end: interval.end, first_step, last_step })
    })
}

/// Reads the profile rows of a job.
pub fn read_profiles(bytes: &[u8], rules: &Rules, findings: &mut Findings) -> Result<Vec<ProfileRow>, AccountingError> {
    read_rows(bytes, Table::Profiles, rules, findings, |reader, recorded, interval, _| {
        Ok(ProfileRow {
            recorded,
            attempt: reader.int()?,
            program: reader.text()?,
            start: interval.start,
            end: interval.end,
            steps: reader.int()?,
            step_time_us: reader.float()?,
            predicted_step_time_us: reader.float_or_null()?,
            flops_per_step: reader.float_or_null()?,
            bytes_per_step: reader.float_or_null()?,
            precision: reader.text_or_null()?,
        })
    })
}

/// Appends a record: a quarantined row's reason, or what `write` makes of a valid one.
fn write_judged<V>(out: &mut Vec<u8>, recorded: Day, judged: Result<V, Reason>, write: impl FnOnce(&mut Vec<u8>, V)) {
    match judged {
        Ok(valid) => write(out, valid),
        Err(reason) => {
            out.push(QUARANTINED);
            out.push(reason.code());
            write_int(out, i64::from(recorded.0));
        }
    }
}

/// Appends the head of a valid row.
fn write_interval(out: &mut Vec<u8>, recorded: Day, interval: Interval) {
    let flag = |set: bool, flag: u8| if set { flag } else { 0 };
    out.push(
        ROW | flag(interval.skewed, SKEWED)
            | flag(interval.end_in_future, END_IN_FUTURE)
            | flag(interval.end.is_some(), CLOSED),
    );
    write_int(out, i64::from(recorded.0));
    write_int(out, interval.start - recorded.midnight());
    if let Some(end) = interval.end {
        write_int(out, end - interval.start);
    }
}

/// Reads all records; counts what was found about rows of the days of the run.
fn read_rows<R>(
    bytes: &[u8],
    table: Table,
    rules: &Rules,
    findings: &mut Findings,
    mut read: impl FnMut(&mut Reader<'_>, Day, Interval, &mut Findings) -> Result<R, AccountingError>,
) -> Result<Vec<R>, AccountingError> {
    let mut reader = Reader { bytes };
    let mut rows = Vec::new();
    while !reader.bytes.is_empty() {
        let tag = reader.byte()?;
        if tag == QUARANTINED {
            let code = usize::from(reader.byte()?);
            let reason = *Reason::ALL.get(code).ok_or(AccountingError::Damaged("reason"))?;
            let recorded = reader.day()?;
            if rules.books(recorded) {
                findings.count(recorded, table, reason);
            }
            continue;
        }
        let recorded = reader.day()?;
        let start = reader.int()?.saturating_add(recorded.midnight());
        let end = if tag & CLOSED != 0 { Some(reader.int()?.saturating_add(start)) } else { None };
        let (skewed, end_in_future) = (tag & SKEWED != 0, tag & END_IN_FUTURE != 0);
        if rules.books(recorded) {
            if skewed {
                findings.count(recorded, table, Reason::Skewed);
            }
            if end_in_future {
                findings.count(recorded, table, Reason::EndInFuture);
            }
        }
        rows.push(read(&mut reader, recorded, Interval { start, end, skewed, end_in_future }, findings)?);
    }
    Ok(rows)
}

/// Appends an unsigned integer, seven bits a byte, the lowest first.
fn write_unsigned(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value.to_le_bytes()[0] | 0x80);
        value >>= 7;
    }
    out.push(value.to_le_bytes()[0]);
}

/// Appends a signed integer: small ones of either sign take few bytes.
fn write_int(out: &mut Vec<u8>, value: i64) {
    write_unsigned(out, ((value << 1) ^ (value >> 63)).cast_unsigned());
}

fn write_int_or_null(out: &mut Vec<u8>, value: Option<i64>) {
    out.push(u8::from(value.is_some()));
    if let Some(value) = value {
        write_int(out, value);
    }
}

fn write_text(out: &mut Vec<u8>, text: &str) {
    write_unsigned(out, text.len() as u64);
    out.extend_from_slice(text.as_bytes());
}

fn write_text_or_null(out: &mut Vec<u8>, text: Option<&str>) {
    out.push(u8::from(text.is_some()));
    if let Some(text) = text {
        write_text(out, text);
    }
}

fn write_float(out: &mut Vec<u8>, value: f64) {
    out.extend_from_slice(&value.to_le_bytes());
}

/// Reads what the `write_*` functions wrote.
struct Reader<'a> {
    bytes: &'a [u8],
}

impl<'a> Reader<'a> {
    fn take(&mut self, number: usize) -> Result<&'a [u8], AccountingError> {
        let (taken, rest) = self.bytes.split_at_checked(number).ok_or(AccountingError::Damaged("it ends early"))?;
        self.bytes = rest;
        Ok(taken)
    }

    fn byte(&mut self) -> Result<u8, AccountingError> {
        let (byte, rest) = self.bytes.split_first().ok_or(AccountingError::Damaged("it ends early"))?;
        self.bytes = rest;
        Ok(*byte)
    }

    fn unsigned(&mut self) -> Result<u64, AccountingError> {
        let (mut value, mut shift) = (0_u64, 0);
        loop {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7f).checked_shl(shift).ok_or(AccountingError::Damaged("integer"))?;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
            shift += 7;
        }
    }

    fn int(&mut self) -> Result<i64, AccountingError> {
        let value = self.unsigned()?;
        Ok((value >> 1).cast_signed() ^ -(value & 1).cast_signed())
    }

    fn day(&mut self) -> Result<Day, AccountingError> {
        i32::try_from(self.int()?).map(Day).map_err(|_| AccountingError::Damaged("date"))
    }

    fn float(&mut self) -> Result<f64, AccountingError> {
        let mut bytes = [0; 8];
        bytes.copy_from_slice(self.take(8)?);
        Ok(f64::from_le_bytes(bytes))
    }

    fn text(&mut self) -> Result<String, AccountingError> {
        let length = usize::try_from(self.unsigned()?).map_err(|_| AccountingError::Damaged("length"))?;
        let text = std::str::from_utf8(self.take(length)?).map_err(|_| AccountingError::Damaged("text"))?;
        Ok(text.to_owned())
    }

    fn or_null<T>(
        &mut self,
        read: impl FnOnce(&mut Self) -> Result<T, AccountingError>,
    ) -> Result<Option<T>, AccountingError> {
        match self.byte()? {
            0 => Ok(None),
            1 => read(self).map(Some),
            _ => Err(AccountingError::Damaged("null mark")),
        }
    }

    fn int_or_null(&mut self) -> Result<Option<i64>, AccountingError> {
        self.or_null(Self::int)
    }

    fn float_or_null(&mut self) -> Result<Option<f64>, AccountingError> {
        self.or_null(Self::float)
    }

    fn text_or_null(&mut self) -> Result<Option<String>, AccountingError> {
        self.or_null(Self::text)
    }
}
