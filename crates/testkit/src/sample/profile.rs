//! What a profiler measures of a job's program.

use goodput_model::Day;

use super::jobs::{Job, Profiling, Purpose};
use super::{HOUR, MINUTE};
use crate::telemetry::{Partition, ProfileRow};

/// Time between two profiles of a job, ms.
const EVERY: i64 = 7 * HOUR;

/// The longest window of a profile, ms.
const WINDOW: i64 = 5 * MINUTE;

/// Profiles the last minutes of steps that went from `since` to `now`, if it is time to. A profile is recorded on the
/// day on which it ends, so it begins on that day too: figures of a day are made of the profiles that begin on it.
pub(super) fn profile(job: &mut Job, since: i64, now: i64, pace: i64, rows: &mut Partition) {
    let ideal = match job.plan.profiling {
        Profiling::Predicted(ideal) | Profiling::WorkOnly(ideal) => ideal,
        Profiling::Off => return,
    };
    let today = Day::of_instant(now);
    let is_due = Day::of_instant(job.profiled_at) < today || now - job.profiled_at > EVERY;
    let start = since.max(today.midnight()).max(now - WINDOW);
    let steps = (now - start) / pace;
    if !is_due || !job.observed || steps < 2 {
        return;
    }
    job.profiled_at = now;
    let step_time_us = decimal(pace * 1_000_000 + job.draw.between(0, 999_999), 1000);
    // The compiler's ideal does not change between two profiles of a program, but the program does now and then.
    let ideal = (ideal + job.draw.between(-15, 15)).max(50);
    let predicted = matches!(job.plan.profiling, Profiling::Predicted(_));
    let flops = flops_per_step(job, pace, ideal);
    rows.profiles.push(ProfileRow {
        job_id: job.row.job_id.clone(),
        attempt: job.attempt_number(),
        program: program(job),
        start,
        end: now,
        steps,
        step_time_us,
        predicted_step_time_us: predicted.then(|| decimal(pace * ideal, 1)),
        flops_per_step: Some(flops),
        bytes_per_step: Some(flops / 300.0),
        precision: Some("bf16".to_owned()),
    });
}

/// The fingerprint of the program: another one after some restarts.
fn program(job: &Job) -> String {
    let what = if job.plan.purpose == Purpose::Serving { "decode" } else { "step" };
    format!("{what}-{:08x}", (job.plan.step_ms * 2_654_435_761 + job.attempt_number() / 2 * 40_503) % 0xffff_ffff)
}

/// Operations in a step of `pace` ms, of which `ideal` thousandths are needed at the peak of 459e12 operations a second:
/// a v5p's; on other chips the ideal models see more or less than the compiler does.
fn flops_per_step(job: &Job, pace: i64, ideal: i64) -> f64 {
    (job.chips * pace * ideal) as f64 * 459e6
}

fn decimal(numerator: i64, denominator: i64) -> f64 {
    numerator as f64 / denominator as f64
}
