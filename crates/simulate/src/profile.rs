//! What a profiler measures of a job's program.

use std::sync::Arc;

use goodput_model::Day;

use crate::jobs::{Job, Profiling, Purpose};
use crate::record::Record;
use crate::rows::ProfileRow;
use crate::{DAY, HOUR, MINUTE};

/// Time between two profiles of a job, ms.
const EVERY: i64 = 7 * HOUR;

/// The longest window of a profile, ms.
const WINDOW: i64 = 5 * MINUTE;

/// How often somebody improves the program of a running job, ms, and by how many thousandths.
const IMPROVED_EVERY: i64 = 3 * DAY;
const IMPROVED_BY: i64 = 20;

/// Parts of a microsecond that a profiler tells apart: a power of two, so that every time is exact as a float.
const PARTS: i64 = 8;

/// Profiles the last minutes of steps that went from `since` to `now`, if it is time to. A profile is recorded on the
/// day on which it ends, so it begins on that day too: figures of a day are made of the profiles that begin on it.
pub(crate) fn profile(job: &mut Job, since: i64, now: i64, pace: i64, record: &mut Record) {
    let start = since.max(record.today.midnight()).max(now - WINDOW);
    let steps = (now - start) / pace;
    let is_due = Day::of_instant(job.profiled_at) < record.today || now - job.profiled_at > EVERY;
    if !is_due || job.plan.profiling == Profiling::Off || steps < 2 {
        return;
    }
    job.profiled_at = now;
    let program = (now - job.facts.submit) / IMPROVED_EVERY;
    // The compiler's ideal does not change between two profiles of a program, but the program does now and then.
    let ideal = (job.plan.ideal + program.min(8) * IMPROVED_BY + job.draw.between(-15, 15)).clamp(50, 950);
    let measured = pace * 1000 * PARTS + job.draw.between(0, 1000 * PARTS - 1);
    let predicted = pace * ideal * PARTS;
    let is_predicted = job.plan.profiling == Profiling::Predicted;
    if is_predicted && let Some(day) = record.ledger.job_today(&mut job.account, &job.facts) {
        day.predicted += i128::from(steps) * i128::from(predicted);
        day.measured += i128::from(steps) * i128::from(measured);
    }
    let flops = flops_per_step(job, pace, ideal);
    record.rows.profiles.push(ProfileRow {
        job: Arc::clone(&job.facts),
        attempt: job.attempt.as_ref().map_or(0, |attempt| attempt.number),
        program: fingerprint(job, program),
        start,
        end: now,
        steps,
        step_time_us: measured as f64 / PARTS as f64,
        predicted_step_time_us: is_predicted.then_some(predicted as f64 / PARTS as f64),
        flops_per_step: Some(flops),
        bytes_per_step: Some(flops / 300.0),
        precision: "bf16",
    });
}

/// The fingerprint of a program: another one after each improvement.
fn fingerprint(job: &Job, program: i64) -> String {
    let what = if job.plan.purpose == Purpose::Serving { "decode" } else { "step" };
    format!("{what}-{:08x}", (job.plan.step_ms * 2_654_435_761 + program * 40_503) % 0xffff_ffff)
}

/// Operations in a step of `pace` ms, of which `ideal` thousandths are needed at the peak of 459e12 operations a second:
/// a v5p's; on other chips the ideal models see more or less than the compiler does.
fn flops_per_step(job: &Job, pace: i64, ideal: i64) -> f64 {
    (job.chips * pace * ideal) as f64 * 459e6
}
