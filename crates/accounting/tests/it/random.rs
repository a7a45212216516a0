//! Random telemetry of one job: few instants, few attempts, few tasks, so that everything collides.

use goodput_accounting::encoding::{
    RawAllocation, RawJob, RawProfile, RawRuntime, write_allocation, write_job, write_profile, write_runtime,
};
use goodput_accounting::job::{CollectedJob, JobBooks, book_job};
use goodput_accounting::rules::{IdealModel, Rules, SizeClass};
use goodput_model::Day;
use proptest::prelude::*;

/// 2026-01-01.
const FIRST: i32 = 20_454;
const DAYS: i32 = 4;
const PHASES: [&str; 13] = [
    "init",
    "compile",
    "restore",
    "checkpoint",
    "data_wait",
    "idle",
    "eval",
    "step",
    "step",
    "serve",
    "checkpoint_async",
    "data_async",
    "warmup",
];

/// A row of any table, as bytes.
#[derive(Debug, Clone)]
pub(crate) struct Rows {
    pub(crate) jobs: Vec<Vec<u8>>,
    pub(crate) allocations: Vec<Vec<u8>>,
    pub(crate) runtime: Vec<Vec<u8>>,
    pub(crate) profiles: Vec<Vec<u8>>,
}

impl Rows {
    /// Books the rows as they stand, for a range of days.
    pub(crate) fn book(&self, rules: &Rules) -> JobBooks {
        let (jobs, allocations) = (self.jobs.concat(), self.allocations.concat());
        let (runtime, profiles) = (self.runtime.concat(), self.profiles.concat());
        let collected = CollectedJob { jobs: &jobs, allocations: &allocations, runtime: &runtime, profiles: &profiles };
        book_job("job", collected, rules).unwrap()
    }

    /// The same rows in the opposite order.
    pub(crate) fn reversed(&self) -> Rows {
        let reversed = |rows: &[Vec<u8>]| rows.iter().rev().cloned().collect();
        Rows {
            jobs: reversed(&self.jobs),
            allocations: reversed(&self.allocations),
            runtime: reversed(&self.runtime),
            profiles: reversed(&self.profiles),
        }
    }
}

/// Rules for days of the random telemetry.
pub(crate) fn rules(settle_days: i32, from: i32, to: i32) -> Rules {
    let partitions: Vec<i32> = (FIRST - 2..FIRST + DAYS + 2).collect();
    Rules {
        from: FIRST + from,
        to: FIRST + to,
        settle_days,
        skew_tolerance_ms: 1000,
        job_axes: vec!["team".to_owned()],
        size_classes: vec![SizeClass { name: "any".to_owned(), up_to: None }],
        ideal_model: IdealModel::Predicted,
        accelerators: Vec::new(),
        partitions: std::array::from_fn(|_| partitions.clone()),
    }
}

/// The last of the days, counted from the first.
pub(crate) const LAST: i32 = DAYS - 1;

/// An instant near the days, mostly at full hours, so that edges meet.
fn instant() -> impl Strategy<Value = i64> {
    let hours = (-30..24 * i64::from(DAYS) + 30).prop_map(|hour| hour * 3_600_000);
    let any = -86_400_000..86_400_000 * (i64::from(DAYS) + 1);
    prop_oneof![4 => hours, 1 => any].prop_map(|at| Day(FIRST).midnight() + at)
}

/// A date, a start, and an end that is mostly later.
fn interval() -> impl Strategy<Value = (Day, i64, Option<i64>)> {
    let length = prop_oneof![1 => Just(None), 1 => Just(Some(0)), 6 => (-1_500..90_000_000_i64).prop_map(Some)];
    (-1..DAYS + 2, instant(), length)
        .prop_map(|(day, start, length)| (Day(FIRST + day), start, length.map(|length| start + length)))
}

fn job() -> impl Strategy<Value = Vec<u8>> {
    let state = prop::option::of(prop::sample::select(vec!["failed", "completed", "preempted"]));
    (interval(), state, 0..9_i64, prop::option::of("[ab]")).prop_map(|((day, submit, end), end_state, chips, team)| {
        let raw = RawJob {
            job_id: Some("job"),
            submit: Some(submit),
            end,
            end_state,
            chips_required: Some(chips),
            accelerator: Some("x"),
            axes: vec![team.as_deref()],
        };
        let mut out = Vec::new();
        write_job(&mut out, day, &raw, 1000);
        out
    })
}

fn allocation() -> impl Strategy<Value = Vec<u8>> {
    let place = (prop::sample::select(vec!["", "w"]), prop::sample::select(vec!["c", "d"]));
    (interval(), 0..3_i64, place, 0..6_i64).prop_map(|((day, start, end), attempt, (task, cell), chips)| {
        let raw = RawAllocation {
            job_id: Some("job"),
            attempt: Some(attempt),
            task: Some(task),
            cell: Some(cell),
            accelerator: Some("x"),
            chips: Some(chips),
            start: Some(start),
            end,
        };
        let mut out = Vec::new();
        write_allocation(&mut out, day, &raw, 1000);
        out
    })
}

fn runtime() -> impl Strategy<Value = Vec<u8>> {
    let steps = (prop::option::weighted(0.9, 0..40_i64), prop::option::weighted(0.9, 0..40_i64));
    (interval(), 0..3_i64, prop::sample::select(PHASES.to_vec()), steps).prop_map(
        |((day, start, end), attempt, phase, (first_step, more))| {
            let last_step = more.map(|more| first_step.unwrap_or(0) + more);
            let raw = RawRuntime {
                job_id: Some("job"),
                attempt: Some(attempt),
                phase: Some(phase),
                start: Some(start),
                end,
                first_step,
                last_step,
            };
            let mut out = Vec::new();
            write_runtime(&mut out, day, &raw, 1000);
            out
        },
    )
}

fn profile() -> impl Strategy<Value = Vec<u8>> {
    let times = (1.0..1e7_f64, prop::option::of(1.0..1e7_f64));
    (interval(), 0..3_i64, 1..100_i64, times).prop_map(|((day, start, end), attempt, steps, (measured, predicted))| {
        let raw = RawProfile {
            job_id: Some("job"),
            attempt: Some(attempt),
            program: Some("p"),
            start: Some(start),
            end: Some(end.unwrap_or(start)),
            steps: Some(steps),
            step_time_us: Some(measured),
            predicted_step_time_us: predicted,
            ..RawProfile::default()
        };
        let mut out = Vec::new();
        write_profile(&mut out, day, &raw, 1000);
        out
    })
}

/// Telemetry of a job.
pub(crate) fn rows() -> impl Strategy<Value = Rows> {
    let of = |rows: proptest::strategy::BoxedStrategy<Vec<u8>>, most: usize| prop::collection::vec(rows, 0..most);
    (of(job().boxed(), 4), of(allocation().boxed(), 8), of(runtime().boxed(), 24), of(profile().boxed(), 4))
        .prop_map(|(jobs, allocations, runtime, profiles)| Rows { jobs, allocations, runtime, profiles })
}
