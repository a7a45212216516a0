//! Random telemetry of one job: few instants, few attempts, few tasks, so that everything collides.

use std::fmt;
use std::sync::Arc;

use goodput_accounting::encoding::Collector;
use goodput_accounting::job::{JobBooks, book_job, book_job_in_portions};
use goodput_accounting::raw::{RawAllocation, RawJob, RawProfile, RawRuntime};
use goodput_accounting::rows::PhaseName;
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

/// A row of any table, as what appends it.
#[derive(Clone)]
pub(crate) struct Row(Arc<dyn Fn(&mut Collector) + Send + Sync>);

impl Row {
    fn new(append: impl Fn(&mut Collector) + Send + Sync + 'static) -> Row {
        Row(Arc::new(append))
    }

    fn bytes(&self) -> Vec<u8> {
        let mut collector = Collector::default();
        (self.0)(&mut collector);
        collector.take()
    }
}

impl fmt::Debug for Row {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{:?}", self.bytes())
    }
}

/// Rows of a job.
#[derive(Debug, Clone)]
pub(crate) struct Rows(Vec<Row>);

impl Rows {
    /// Books the rows, each collected on its own, for a range of days.
    pub(crate) fn book(&self, rules: &Rules) -> JobBooks {
        let bytes: Vec<u8> = self.0.iter().flat_map(Row::bytes).collect();
        book_job("job", &bytes, rules).unwrap()
    }

    /// The same rows, collected together.
    pub(crate) fn book_together(&self, rules: &Rules) -> JobBooks {
        let mut collector = Collector::default();
        for row in &self.0 {
            (row.0)(&mut collector);
        }
        book_job("job", &collector.take(), rules).unwrap()
    }

    /// The same, swept as few days at a time as can be.
    pub(crate) fn book_in_portions(&self, rules: &Rules, most_bytes: usize) -> JobBooks {
        let bytes: Vec<u8> = self.0.iter().flat_map(Row::bytes).collect();
        book_job_in_portions("job", &bytes, rules, most_bytes).unwrap()
    }

    /// The same rows in the opposite order.
    pub(crate) fn reversed(&self) -> Rows {
        Rows(self.0.iter().rev().cloned().collect())
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

fn job() -> impl Strategy<Value = Row> {
    let state = prop::option::of(prop::sample::select(vec!["failed", "completed", "preempted"]));
    (interval(), state, 0..9_i64, prop::option::of("[ab]")).prop_map(|((day, submit, end), end_state, chips, team)| {
        Row::new(move |collector| {
            let raw = RawJob {
                job_id: Some("job"),
                submit: Some(submit),
                end,
                end_state,
                chips_required: Some(chips),
                accelerator: Some("x"),
                axes: vec![team.as_deref()],
            };
            collector.job(day, &raw, 1000);
        })
    })
}

fn allocation() -> impl Strategy<Value = Row> {
    let place = (prop::sample::select(vec!["", "w"]), prop::sample::select(vec!["c", "d"]));
    (interval(), 0..3_i64, place, 0..6_i64).prop_map(|((day, start, end), attempt, (task, cell), chips)| {
        Row::new(move |collector| {
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
            collector.allocation(day, &raw, 1000);
        })
    })
}

fn runtime() -> impl Strategy<Value = Row> {
    let steps = (prop::option::weighted(0.9, 0..40_i64), prop::option::weighted(0.9, 0..40_i64));
    (interval(), 0..3_i64, prop::sample::select(PHASES.to_vec()), steps).prop_map(
        |((day, start, end), attempt, phase, (first_step, more))| {
            let last_step = more.map(|more| first_step.unwrap_or(0) + more);
            Row::new(move |collector| {
                let raw = RawRuntime {
                    has_job_id: true,
                    attempt: Some(attempt),
                    phase: Some(PhaseName::of(phase)),
                    start: Some(start),
                    end,
                    first_step,
                    last_step,
                };
                collector.runtime(day, &raw, 1000);
            })
        },
    )
}

fn profile() -> impl Strategy<Value = Row> {
    let times = (1.0..1e7_f64, prop::option::of(1.0..1e7_f64));
    (interval(), 0..3_i64, 1..100_i64, times).prop_map(|((day, start, end), attempt, steps, (measured, predicted))| {
        Row::new(move |collector| {
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
            collector.profile(day, &raw, 1000);
        })
    })
}

/// Telemetry of a job.
pub(crate) fn rows() -> impl Strategy<Value = Rows> {
    let of = |rows: proptest::strategy::BoxedStrategy<Row>, most: usize| prop::collection::vec(rows, 0..most);
    (of(job().boxed(), 4), of(allocation().boxed(), 8), of(runtime().boxed(), 24), of(profile().boxed(), 4))
        .prop_map(|(jobs, allocations, runtime, profiles)| Rows([jobs, allocations, runtime, profiles].concat()))
}
