//! The jobs of the sample fleet: what they ask for, and what they have in them.

use super::attempt::Attempt;
use super::draw::Draw;
use super::fleet::Pool;
use super::{DAY, HOUR, MINUTE, SECOND};
use crate::telemetry::JobRow;

/// What a job is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Purpose {
    Training,
    Serving,
    BulkInference,
}

/// What a profiler knows of a job's program. The ideal share of its step time is in thousandths.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Profiling {
    /// The compiler predicted the ideal time of a step.
    Predicted(i64),
    /// Only the work in a step is known.
    WorkOnly(i64),
    /// Nobody profiled it.
    Off,
}

/// A job that has not ended.
#[derive(Debug)]
pub(super) struct Job {
    /// What the scheduler records of it; open.
    pub(super) row: JobRow,
    /// Whether the scheduler's export knows it: the allocations of one that it does not are orphans.
    pub(super) listed: bool,
    /// Whether its framework reports what it does.
    pub(super) observed: bool,
    pub(super) plan: Plan,
    pub(super) pool: usize,
    /// Chips that it gets: more than it requires where it is elastic.
    pub(super) chips: i64,
    /// How urgent it is: 0 may preempt 2.
    pub(super) rank: u8,
    pub(super) draw: Draw,
    /// The step to do next.
    pub(super) next_step: i64,
    /// The step after the last one that was saved: where a new attempt goes on.
    pub(super) saved_to: i64,
    /// Since when it waits, ms.
    pub(super) waits_since: i64,
    /// How often it was started.
    pub(super) starts: i64,
    /// When it was last profiled, ms; 0 before the first time.
    pub(super) profiled_at: i64,
    pub(super) attempt: Option<Attempt>,
    /// Grows when what was planned for it becomes void.
    pub(super) epoch: u32,
}

/// What a job would do if nothing went wrong.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) purpose: Purpose,
    /// Time of a step, ms.
    pub(super) step_ms: i64,
    pub(super) steps: i64,
    /// Steps and an interruption of them: two rows of runtime, ms.
    pub(super) cycle_ms: i64,
    /// The share of a cycle that interruptions take, in thousandths.
    pub(super) overhead: i64,
    pub(super) init_ms: i64,
    pub(super) compile_ms: i64,
    pub(super) restore_ms: i64,
    /// Whether it saves its steps beside its work.
    pub(super) saves_async: bool,
    pub(super) profiling: Profiling,
    /// How it ends if it gets that far.
    pub(super) end_state: &'static str,
    /// The latest end after its first start, ms.
    pub(super) limit_ms: i64,
    /// The latest end, ms; known once it has started.
    pub(super) deadline: Option<i64>,
}

/// Sizes in chips; a deck, so that also a small sample has each size and a steady load.
const SIZES: [i64; 40] = [
    1, 1, 1, 1, 1, 1, 1, 1, 2, 2, 2, 4, 4, 4, 4, 4, 4, 8, 8, 8, 8, 8, 8, 8, 16, 16, 16, 16, 16, 32, 32, 32, 32, 64, 64,
    64, 128, 128, 256, 512,
];

/// Time at work from and to (minutes), and its weight among small jobs.
const SHORT: [((i64, i64), i64); 7] = [
    ((10, 30), 3),
    ((30, 90), 5),
    ((90, 240), 5),
    ((240, 600), 4),
    ((600, 1200), 3),
    ((1200, 2400), 2),
    ((2400, 4300), 1),
];

/// The same among jobs of more than 16 chips.
const LONG: [((i64, i64), i64); 5] =
    [((60, 240), 2), ((240, 600), 3), ((600, 1200), 5), ((1200, 2400), 5), ((2400, 4300), 3)];

/// Teams, their models and people.
const TEAMS: [(&str, &str, [&str; 3]); 5] = [
    ("pretraining", "moe-lm", ["amara", "bao", "chen"]),
    ("posttraining", "dense-lm", ["dilara", "emeka", "fatima"]),
    ("vision", "diffusion", ["goran", "hana", "ines"]),
    ("speech", "speech", ["jonas", "kavya", "leila"]),
    ("ranking", "recommender", ["mateo", "nadia", "oskar"]),
];

/// Where jobs come from.
#[derive(Debug)]
pub(super) struct Arrivals {
    seed: u64,
    rows_per_day: i64,
    draw: Draw,
    deck: Vec<i64>,
    next: u64,
}

impl Arrivals {
    pub(super) fn new(seed: u64, rows_per_day: u32) -> Arrivals {
        Arrivals {
            seed,
            rows_per_day: i64::from(rows_per_day.max(2)),
            draw: Draw::new(seed, 1),
            deck: Vec::new(),
            next: 0,
        }
    }

    /// The next job and its number, submitted at `now`.
    pub(super) fn next(&mut self, pools: &[Pool], now: i64) -> (u64, Job) {
        let number = self.next;
        self.next += 1;
        if self.deck.is_empty() {
            self.deck = SIZES.to_vec();
            self.draw.shuffle(&mut self.deck);
        }
        let chips = self.deck.pop().unwrap_or(1);
        // The first streams of a seed are those of the fleet as a whole.
        let mut draw = Draw::new(self.seed, 16 + number);
        let pool = choose_pool(pools, chips, &mut draw);
        (number, job(number, chips, pool, &pools[pool], now, self.rows_per_day, draw))
    }
}

/// Users go where the queue is shortest, or where they always go.
fn choose_pool(pools: &[Pool], chips: i64, draw: &mut Draw) -> usize {
    let fits: Vec<usize> = (0..pools.len()).filter(|&pool| chips * 5 <= pools[pool].total * 4).collect();
    if fits.is_empty() {
        return 0;
    }
    if draw.per_mille(250) {
        return fits[draw.position(fits.len())];
    }
    fits.into_iter().min_by_key(|&pool| pools[pool].demand * 1000 / pools[pool].total).unwrap_or(0)
}

fn job(number: u64, chips: i64, pool: usize, place: &Pool, now: i64, rows_per_day: i64, mut draw: Draw) -> Job {
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
        row: row(number, purpose, rank, chips_required, place, now, &mut draw),
        listed: number % 53 != 17,
        observed: number % 13 != 5,
        plan: plan(purpose, chips, rows_per_day, &mut draw),
        pool,
        chips,
        rank,
        draw,
        next_step: 0,
        saved_to: 0,
        waits_since: now,
        starts: 0,
        profiled_at: 0,
        attempt: None,
        epoch: 0,
    }
}

fn row(number: u64, purpose: Purpose, rank: u8, chips: i64, place: &Pool, now: i64, draw: &mut Draw) -> JobRow {
    let is_gpu = place.accelerator.starts_with("h100");
    let framework = if draw.per_mille(if is_gpu { 200 } else { 850 }) { "jax" } else { "pytorch" };
    let (team, family, people) = TEAMS[draw.position(TEAMS.len())];
    let phase = match purpose {
        Purpose::Training => "training",
        Purpose::Serving => "serving",
        Purpose::BulkInference => "bulk_inference",
    };
    let priority = ["production", "batch", "free"][usize::from(rank)];
    let said = |text: &str| Some(text.to_owned());
    JobRow {
        job_id: format!("{team}-{number:06}"),
        submit: now,
        end: None,
        end_state: None,
        chips_required: chips,
        // Some ask for any chip.
        accelerator: if draw.per_mille(60) { None } else { said(place.accelerator) },
        framework: said(framework),
        phase: said(phase),
        model_family: if draw.per_mille(80) { None } else { said(family) },
        team: said(team),
        user: said(people[draw.position(people.len())]),
        priority: said(priority),
        topology: if is_gpu { None } else { Some(topology(chips, place.accelerator)) },
    }
}

/// The shape of a slice: a torus in three dimensions for v5p, in two for others.
fn topology(chips: i64, accelerator: &str) -> String {
    let dimensions = if accelerator == "tpu-v5p" { 3 } else { 2 };
    let mut sides = vec![1_i64; dimensions];
    let (mut rest, mut side) = (chips, dimensions - 1);
    while rest > 1 {
        sides[side] *= 2;
        rest /= 2;
        side = if side == 0 { dimensions - 1 } else { side - 1 };
    }
    sides.iter().map(i64::to_string).collect::<Vec<_>>().join("x")
}

fn plan(purpose: Purpose, chips: i64, rows_per_day: i64, draw: &mut Draw) -> Plan {
    let (least, most) = if chips > 16 { draw.weighted(&LONG) } else { draw.weighted(&SHORT) };
    let work_ms = draw.between(least * MINUTE, most * MINUTE);
    let cycle_ms = work_ms.min(DAY) * 2 / rows_per_day;
    // Larger models have longer steps, but a cycle has several.
    let step_ms = draw.between(300, 2_000 + 40 * chips).min(cycle_ms / 4).max(50);
    let stops_early = draw.per_mille(90);
    let share_done = if stops_early { draw.between(100, 800) } else { 1000 };
    let ideal = draw.between(400, 720);
    // Large jobs are worth somebody's look at their program.
    let (predicted, work_only) = if chips >= 128 { (92, 5) } else { (78, 9) };
    let profiling = draw.weighted(&[
        (Profiling::Predicted(ideal), predicted),
        (Profiling::WorkOnly(ideal), work_only),
        (Profiling::Off, 100 - predicted - work_only),
    ]);
    Plan {
        purpose,
        step_ms,
        steps: (work_ms / step_ms * share_done / 1000).max(1),
        cycle_ms,
        overhead: draw.between(60, 170),
        init_ms: draw.between(20 * SECOND, 90 * SECOND + chips * SECOND / 2),
        compile_ms: draw.between(30 * SECOND, 5 * MINUTE + chips * SECOND),
        restore_ms: draw.between(20 * SECOND, 2 * MINUTE + chips * SECOND),
        saves_async: draw.per_mille(400),
        profiling,
        end_state: if stops_early { "cancelled" } else { "completed" },
        limit_ms: if draw.per_mille(50) { (work_ms * draw.between(5, 10) / 10).max(HOUR) } else { 5 * DAY },
        deadline: None,
    }
}
