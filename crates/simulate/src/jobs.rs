//! The jobs of the fleet: what they ask for, and what they have in them.

use std::borrow::Cow;
use std::sync::Arc;

use goodput_model::Day;

use crate::attempt::Attempt;
use crate::draw::Draw;
use crate::fleet::Pool;
use crate::ledger::Account;
use crate::progress::Progress;
use crate::rows::{JobFacts, Place};
use crate::{HOUR, MINUTE, SECOND};

/// What a job is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    Training,
    Serving,
    BulkInference,
}

/// What a profiler knows of a job's program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Profiling {
    /// The compiler predicted the ideal time of a step.
    Predicted,
    /// Only the work in a step is known.
    WorkOnly,
    /// Nobody profiled it.
    Off,
}

/// A job that has not ended.
#[derive(Debug)]
pub(crate) struct Job {
    pub(crate) facts: Arc<JobFacts>,
    pub(crate) number: u64,
    /// Whether its framework reports what it does.
    pub(crate) is_observed: bool,
    pub(crate) plan: Plan,
    pub(crate) pool: usize,
    /// Chips that it gets: more than it requires where it is elastic.
    pub(crate) chips: i64,
    /// How urgent it is: 0 may preempt 2.
    pub(crate) rank: u8,
    pub(crate) draw: Draw,
    /// The step to do next.
    pub(crate) next_step: i64,
    pub(crate) progress: Progress,
    /// Since when it waits, ms.
    pub(crate) waits_since: i64,
    /// How often it was started.
    pub(crate) starts: i64,
    /// When it was last profiled, ms; 0 before the first time.
    pub(crate) profiled_at: i64,
    pub(crate) attempt: Option<Attempt>,
    /// Names what is planned for it: an event with another epoch is void.
    pub(crate) epoch: u64,
    /// Where its days stand in the ledger.
    pub(crate) account: Account,
    /// Until when its chips are booked, ms.
    pub(crate) booked_to: i64,
    /// Its position among those that reported on a day.
    pub(crate) reporter: Option<(Day, u32)>,
}

/// What a job would do if nothing went wrong.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) purpose: Purpose,
    /// Time of a step, ms.
    pub(crate) step_ms: i64,
    pub(crate) steps: i64,
    /// Steps and an interruption of them: two rows of runtime, ms.
    pub(crate) cycle_ms: i64,
    /// The share of a cycle that interruptions take, in thousandths.
    pub(crate) overhead: i64,
    pub(crate) init_ms: i64,
    pub(crate) compile_ms: i64,
    pub(crate) restore_ms: i64,
    /// Whether it saves its steps beside its work.
    pub(crate) saves_async: bool,
    /// Whether it reads its data beside its work.
    pub(crate) reads_async: bool,
    /// Whether what it compiled once is there for its next start.
    pub(crate) caches_programs: bool,
    pub(crate) profiling: Profiling,
    /// The share of its first program's step time that an ideal one would need, in thousandths.
    pub(crate) ideal: i64,
    /// How it ends if it gets that far.
    pub(crate) end_state: &'static str,
    /// The latest end after its first start, ms.
    pub(crate) limit_ms: i64,
    /// The latest end, ms; known once it has started.
    pub(crate) deadline: Option<i64>,
}

/// Weights of sizes: each twice as large as the one before, and not quite three quarters as frequent.
const SIZE_WEIGHTS: [i64; 13] = [1000, 720, 518, 373, 269, 193, 139, 100, 72, 52, 37, 27, 19];

/// Time at work from and to (minutes), and its weight in thousandths, among jobs of up to 16 chips.
const SHORT: [((i64, i64), i64); 7] = [
    ((6, 20), 200),
    ((20, 60), 220),
    ((60, 240), 220),
    ((240, 720), 160),
    ((720, 1800), 110),
    ((1800, 5760), 60),
    ((5760, 20160), 30),
];

/// The same among larger jobs.
const LONG: [((i64, i64), i64); 6] = [
    ((30, 120), 120),
    ((120, 480), 220),
    ((480, 1200), 260),
    ((1200, 2880), 220),
    ((2880, 8640), 140),
    ((8640, 28800), 40),
];

/// The longest time at work, days.
pub(crate) const LONGEST_DAYS: i64 = 20;

/// Teams, their models and people.
const TEAMS: [(&str, &str, [&str; 3]); 8] = [
    ("pretraining", "moe-lm", ["amara", "bao", "chen"]),
    ("posttraining", "dense-lm", ["dilara", "emeka", "fatima"]),
    ("vision", "diffusion", ["goran", "hana", "ines"]),
    ("speech", "speech", ["jonas", "kavya", "leila"]),
    ("ranking", "recommender", ["mateo", "nadia", "oskar"]),
    ("video", "diffusion", ["priya", "quentin", "rosa"]),
    ("science", "graph-net", ["sven", "tomoko", "uma"]),
    ("assistant", "moe-lm", ["viktor", "wanjiru", "yusuf"]),
];

/// The largest size of a fleet that serves so many jobs a day, as a power of two.
fn largest_size(jobs_per_day: i64) -> usize {
    let power = usize::try_from((jobs_per_day * 5).max(1).ilog2()).unwrap_or(0);
    power.clamp(8, SIZE_WEIGHTS.len() - 1)
}

/// Chip-days that a job takes on average in a fleet that serves so many a day, in thousandths.
pub(crate) fn mean_load(jobs_per_day: i64) -> i64 {
    let mean =
        |times: &[((i64, i64), i64)]| times.iter().map(|((from, to), weight)| (from + to) / 2 * weight).sum::<i64>();
    let weights = &SIZE_WEIGHTS[..=largest_size(jobs_per_day)];
    let load =
        |(power, weight): (usize, &i64)| weight * (1 << power) * if power > 4 { mean(&LONG) } else { mean(&SHORT) };
    weights.iter().enumerate().map(load).sum::<i64>() / weights.iter().sum::<i64>() / 1440
}

/// Where jobs come from. Sizes and times are dealt evenly, so that the load of a fleet is steady for years.
#[derive(Debug)]
pub(crate) struct Arrivals {
    seed: u64,
    rows_per_day: i64,
    draw: Draw,
    /// By power of two: how much the size has been missed, and where in the distribution of times it stands.
    sizes: Vec<(i64, u32)>,
    next_stream: u64,
    next_number: u64,
}

impl Arrivals {
    pub(crate) fn new(seed: u64, jobs_per_day: i64, rows_per_day: u32) -> Arrivals {
        let mut draw = Draw::new(seed, 1);
        let sizes = (0..=largest_size(jobs_per_day)).map(|_| (0, u32::try_from(draw.between(0, 1 << 31)).unwrap_or(0)));
        let sizes = sizes.collect();
        let rows_per_day = i64::from(rows_per_day.max(2));
        // The first streams of a seed are those of the fleet as a whole.
        Arrivals { seed, rows_per_day, draw, sizes, next_stream: 16, next_number: 0 }
    }

    /// The next job, submitted at `now`. A job of before the first day has worked for `age_ms`; there is none if it
    /// would have ended.
    pub(crate) fn next(&mut self, pools: &[Pool], now: i64, age_ms: i64) -> Option<Job> {
        let mut draw = Draw::new(self.seed, self.next_stream);
        self.next_stream += 1;
        let total: i64 = SIZE_WEIGHTS[..self.sizes.len()].iter().sum();
        let mut chosen = (i64::MIN, 0);
        for (power, (missed, _)) in self.sizes.iter_mut().enumerate() {
            *missed += SIZE_WEIGHTS[power];
            let urgency = *missed + self.draw.between(0, SIZE_WEIGHTS[power]);
            chosen = chosen.max((urgency, power));
        }
        let power = chosen.1;
        self.sizes[power].0 -= total;
        let place = &mut self.sizes[power].1;
        // Multiples of the golden ratio fill an interval evenly, however many of them there are.
        *place = place.wrapping_add(2_654_435_769);
        let thousandths = (i64::from(*place) * 1_000_000) >> 32;
        let work_ms = time_at_work(if power > 4 { &LONG } else { &SHORT }, thousandths);
        let left_ms = work_ms - age_ms * 19 / 20;
        if left_ms < MINUTE {
            return None;
        }
        let mut chips = 1 << power;
        if (3..9).contains(&power) && draw.per_mille(100) {
            chips = chips * 3 / 2;
        }
        let pool = choose_pool(pools, &mut chips, &mut draw);
        let number = self.next_number;
        self.next_number += 1;
        let mut job = job(number, chips, pool, pools[pool].place, now, (work_ms, self.rows_per_day), draw);
        job.plan.steps = (job.plan.steps * (left_ms / 1000) / (work_ms / 1000)).max(1);
        Some(job)
    }
}

/// The time at which a distribution has a share (in millionths) of its weight below, ms.
fn time_at_work(times: &[((i64, i64), i64)], share: i64) -> i64 {
    let mut rest = share;
    for ((from, to), weight) in times {
        if rest < weight * 1000 {
            return from * MINUTE + (to - from) * MINUTE / 1000 * rest / weight;
        }
        rest -= weight * 1000;
    }
    LONGEST_DAYS * 24 * HOUR
}

/// Users go where the queue is shortest, or where they always go. In a fleet that is too small for it, a job is smaller.
pub(crate) fn choose_pool(pools: &[Pool], chips: &mut i64, draw: &mut Draw) -> usize {
    let largest = pools.iter().map(|pool| pool.target).max().unwrap_or(0);
    while *chips > 1 && *chips * 10 > largest * 6 {
        *chips /= 2;
    }
    let fits: Vec<usize> = (0..pools.len()).filter(|&pool| *chips * 10 <= pools[pool].target * 6).collect();
    if fits.is_empty() {
        return 0;
    }
    if draw.per_mille(150) {
        return fits[draw.position(fits.len())];
    }
    fits.into_iter().min_by_key(|&pool| pools[pool].demand * 1000 / pools[pool].target).unwrap_or(0)
}

fn job(number: u64, chips: i64, pool: usize, place: Place, now: i64, work: (i64, i64), mut draw: Draw) -> Job {
    let purpose = match chips {
        1..=32 => draw.weighted(&[(Purpose::Training, 50), (Purpose::Serving, 20), (Purpose::BulkInference, 30)]),
        33..=64 => draw.weighted(&[(Purpose::Training, 80), (Purpose::BulkInference, 20)]),
        _ => Purpose::Training,
    };
    let rank = match purpose {
        Purpose::Serving => 0,
        Purpose::Training => draw.weighted(&[(0, 15), (1, 50), (2, 35)]),
        Purpose::BulkInference => draw.weighted(&[(1, 40), (2, 60)]),
    };
    // An elastic service works with half of its chips.
    let is_elastic = purpose == Purpose::Serving && chips >= 16 && draw.per_mille(500);
    let chips_required = if is_elastic { chips / 2 } else { chips };
    Job {
        facts: Arc::new(facts(number, purpose, rank, chips_required, place, now, &mut draw)),
        number,
        // A job that takes much is watched.
        is_observed: !draw.per_mille(if chips >= 128 { 20 } else { 80 }),
        plan: plan(purpose, chips, Day::of_instant(now), work, &mut draw),
        pool,
        chips,
        rank,
        draw,
        next_step: 0,
        progress: Progress::default(),
        waits_since: now,
        starts: 0,
        profiled_at: 0,
        attempt: None,
        epoch: 0,
        account: Account::default(),
        booked_to: now,
        reporter: None,
    }
}

fn facts(number: u64, purpose: Purpose, rank: u8, chips: i64, place: Place, now: i64, draw: &mut Draw) -> JobFacts {
    let is_tpu = place.accelerator.starts_with("tpu");
    let framework = if draw.per_mille(if is_tpu { 850 } else { 200 }) { "jax" } else { "pytorch" };
    let (team, family, people) = TEAMS[draw.position(TEAMS.len())];
    let phase = match purpose {
        Purpose::Training => "training",
        Purpose::Serving => "serving",
        Purpose::BulkInference => "bulk_inference",
    };
    let priority = ["production", "batch", "free"][usize::from(rank)];
    let said = |text: &'static str| Some(Cow::Borrowed(text));
    let family = if draw.per_mille(80) { None } else { said(family) };
    let user = said(people[draw.position(people.len())]);
    let topology = is_tpu.then(|| Cow::Owned(topology(chips, place.accelerator)));
    JobFacts {
        job_id: format!("{team}-{number:06}"),
        submit: now,
        chips_required: chips,
        // Some ask for any chip.
        accelerator: if draw.per_mille(60) { None } else { Some(place.accelerator) },
        axes: [said(framework), said(phase), family, said(team), user, said(priority), topology],
        is_listed: number % 53 != 17,
    }
}

/// The shape of a slice: a torus in three dimensions for v4 and v5p, in two for others.
fn topology(chips: i64, accelerator: &str) -> String {
    let dimensions = if ["tpu-v4", "tpu-v5p"].contains(&accelerator) { 3 } else { 2 };
    let mut sides = vec![1_i64; dimensions];
    let (mut rest, mut side) = (chips, dimensions - 1);
    while rest > 1 {
        let factor = if rest % 3 == 0 { 3 } else { 2 };
        sides[side] *= factor;
        rest /= factor;
        side = if side == 0 { dimensions - 1 } else { side - 1 };
    }
    sides.iter().map(i64::to_string).collect::<Vec<_>>().join("x")
}

/// How much of what runtimes learned over the years a job of that day has, in thousandths.
fn modernity(day: Day) -> i64 {
    // From the beginning of 2021 to that of 2028.
    ((i64::from(day.0) - 18_628) * 1000 / 2_556).clamp(50, 950)
}

fn plan(purpose: Purpose, chips: i64, today: Day, (work_ms, rows_per_day): (i64, i64), draw: &mut Draw) -> Plan {
    let modernity = modernity(today);
    // Several rows a day also of a job that says little, and none that lasts longer than half a day.
    let cycle_ms = (work_ms.min(24 * HOUR) * 2 / rows_per_day).clamp(2 * SECOND, 6 * HOUR);
    // Larger models have longer steps, but a cycle has several.
    let step_ms = draw.between(300, 2_000 + 40 * chips.min(500)).min(cycle_ms / 4).max(50);
    let stops_early = draw.per_mille(90);
    let share_done = if stops_early { draw.between(100, 800) } else { 1000 };
    let overhead = draw.between(60, 170) - modernity / 25;
    let restore_ms = draw.between(20 * SECOND, 2 * MINUTE + chips.min(1000) * SECOND);
    let restores_fast = draw.per_mille(modernity);
    // Large jobs are worth somebody's look at their program.
    let (predicted, work_only) = if chips >= 128 { (92, 5) } else { (78, 9) };
    Plan {
        purpose,
        step_ms,
        // What interrupts the steps is part of the work.
        steps: (work_ms / step_ms * share_done / 1000 * (1000 - overhead) / 1000).max(1),
        cycle_ms,
        overhead,
        init_ms: draw.between(20 * SECOND, 90 * SECOND + chips.min(500) * SECOND / 2).min(work_ms / 8),
        compile_ms: draw.between(30 * SECOND, 5 * MINUTE + chips.min(500) * SECOND).min(work_ms / 6),
        restore_ms: if restores_fast { restore_ms / 4 } else { restore_ms }.min(work_ms / 8),
        saves_async: draw.per_mille(modernity),
        reads_async: draw.per_mille(modernity),
        caches_programs: draw.per_mille(modernity),
        profiling: draw.weighted(&[
            (Profiling::Predicted, predicted),
            (Profiling::WorkOnly, work_only),
            (Profiling::Off, 100 - predicted - work_only),
        ]),
        ideal: draw.between(300, 560) + modernity / 6,
        end_state: if stops_early { "cancelled" } else { "completed" },
        limit_ms: if draw.per_mille(50) {
            (work_ms * draw.between(5, 10) / 10).max(HOUR)
        } else {
            3 * work_ms + 48 * HOUR
        },
        deadline: None,
    }
}
