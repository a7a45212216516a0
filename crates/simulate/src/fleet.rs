//! The chips of the fleet: pools of blocks that go down and come back, and generations that come and go over the years.

use std::collections::BTreeSet;

use goodput_model::Day;

use crate::draw::Draw;
use crate::ledger::PoolDay;
use crate::rows::{CapacityRow, Place};
use crate::{DAY, HOUR, MINUTE};

/// A block, in the state that began last.
#[derive(Debug)]
pub(crate) struct Block {
    number: u32,
    pub(crate) is_down: bool,
    since: i64,
    /// Whether it is part of the fleet: the place of a retired one is taken by a new one.
    pub(crate) is_here: bool,
    /// Grows when the place is taken by another block.
    pub(crate) epoch: u32,
}

/// Chips of one generation in one cell. Jobs are placed by counting: which block a task stands on does not matter.
#[derive(Debug)]
pub(crate) struct Pool {
    pub(crate) place: Place,
    pub(crate) block_chips: i64,
    /// All chips, also those that are down.
    pub(crate) total: i64,
    /// Of those, the chips that are down.
    down: i64,
    /// Chips that it is meant to have.
    pub(crate) target: i64,
    /// Chips of available blocks that no job has reserved.
    pub(crate) free: i64,
    /// Chips that unfinished jobs of this pool asked for: what its queue looks like to a user who has the choice.
    pub(crate) demand: i64,
    /// Waiting jobs by rank and number, the first first, with the place where they are kept.
    pub(crate) queue: BTreeSet<(u8, u64, usize)>,
    /// Where running jobs are kept, in the order in which they started.
    pub(crate) running: Vec<usize>,
    pub(crate) blocks: Vec<Block>,
    next_block: u32,
    /// Until when its capacity is booked, ms.
    booked_to: i64,
}

/// Days from the epoch to about the beginning of a month.
const fn month(year: i64, month: i64) -> i64 {
    (year - 1970) * 1461 / 4 + (month - 1) * 61 / 2
}

const ALWAYS: i64 = i64::MIN / 4;
const NEVER: i64 = i64::MAX / 4;

/// Cell, generation, chips of a block, weight at its height; when it comes, is all there, begins to go, and is gone.
type Generation = (&'static str, &'static str, i64, i64, [i64; 4]);

/// Generations come within a year or two and go block by block.
const GENERATIONS: [Generation; 10] = [
    ("us-central2-b", "tpu-v4", 64, 360, [ALWAYS, ALWAYS, month(2024, 3), month(2026, 9)]),
    ("las-gpu-1", "a100-80gb", 16, 200, [ALWAYS, ALWAYS, month(2024, 6), month(2026, 6)]),
    ("us-west4-a", "tpu-v5e", 16, 120, [month(2023, 6), month(2024, 6), month(2026, 9), month(2028, 6)]),
    ("europe-west4-b", "tpu-v5e", 16, 80, [month(2023, 9), month(2024, 9), month(2026, 6), month(2028, 3)]),
    ("iad-gpu-1", "h100-sxm", 32, 220, [month(2023, 3), month(2024, 6), month(2027, 1), month(2029, 1)]),
    ("us-east5-a", "tpu-v5p", 64, 340, [month(2023, 12), month(2025, 1), month(2027, 6), month(2030, 1)]),
    ("phx-gpu-2", "h200-sxm", 32, 110, [month(2024, 8), month(2025, 8), month(2028, 6), month(2030, 6)]),
    ("europe-west4-b", "tpu-v6e", 32, 180, [month(2024, 10), month(2026, 1), NEVER, NEVER + 1]),
    ("us-east5-a", "tpu-v6e", 32, 140, [month(2025, 3), month(2026, 6), NEVER, NEVER + 1]),
    ("iad-gpu-1", "b200", 32, 280, [month(2025, 6), month(2027, 1), NEVER, NEVER + 1]),
];

/// Chips for each pool of a fleet: a small one has few.
const CHIPS_PER_POOL: i64 = 256;
const FEWEST_POOLS: usize = 3;
/// Fewer blocks make no pool.
const FEWEST_BLOCKS: i64 = 3;

/// The pools that the fleet has or will have, without blocks, at the beginning of a day.
pub(crate) fn pools(begin: i64) -> Vec<Pool> {
    let pool = |&(cell, accelerator, block_chips, ..): &Generation| Pool {
        place: Place { cell, accelerator },
        block_chips,
        total: 0,
        down: 0,
        target: 0,
        free: 0,
        demand: 0,
        queue: BTreeSet::new(),
        running: Vec::new(),
        blocks: Vec::new(),
        next_block: 0,
        booked_to: begin,
    };
    GENERATIONS.iter().map(pool).collect()
}

/// Sets what each pool of a fleet of so many chips is meant to have on a day.
pub(crate) fn set_targets(pools: &mut [Pool], chips: i64, day: Day) {
    let weights: Vec<i64> = GENERATIONS.iter().map(|generation| weight(generation, i64::from(day.0))).collect();
    let mut order: Vec<usize> = (0..weights.len()).collect();
    order.sort_by_key(|at| (-weights[*at], *at));
    let most = usize::try_from(chips / CHIPS_PER_POOL).unwrap_or(usize::MAX);
    order.truncate(most.max(FEWEST_POOLS));
    for pool in pools.iter_mut() {
        pool.target = 0;
    }
    // What is too little for a pool goes to the others.
    while let Some(least) = order.last().copied() {
        let sum: i64 = order.iter().map(|at| weights[*at]).sum();
        let blocks =
            |at: usize| (chips * weights[at] + sum * pools[at].block_chips / 2) / (sum * pools[at].block_chips);
        let counts: Vec<i64> = order.iter().map(|at| blocks(*at)).collect();
        let is_enough = |(at, count): (&usize, &i64)| *count >= FEWEST_BLOCKS && weights[*at] > 0;
        if order.len() == 1 || order.iter().zip(&counts).all(is_enough) {
            for (at, count) in order.iter().zip(&counts) {
                pools[*at].target = count * pools[*at].block_chips;
            }
            break;
        }
        order.retain(|at| *at != least);
    }
}

/// The weight of a generation on a day: rising, at its height, or falling.
fn weight(&(.., height, [comes, is_there, goes, is_gone]): &Generation, day: i64) -> i64 {
    if day < is_there {
        height * (day - comes).max(0) / (is_there - comes).max(1)
    } else {
        height * (is_gone - day.max(goes)).max(0) / (is_gone - goes).max(1)
    }
}

impl Pool {
    /// Books capacity up to `now`, which must be on the same day as what was booked last.
    pub(crate) fn book(&mut self, now: i64, books: Option<&mut PoolDay>) {
        if let Some(books) = books {
            books.capacity += self.total * (now - self.booked_to);
            books.down += self.down * (now - self.booked_to);
        }
        self.booked_to = now;
    }

    /// Puts a new block into the pool at `now`; its place. What came before must be booked.
    pub(crate) fn add_block(&mut self, now: i64) -> usize {
        self.total += self.block_chips;
        self.free += self.block_chips;
        let number = self.next_block;
        self.next_block += 1;
        let block = Block { number, is_down: false, since: now, is_here: true, epoch: 0 };
        match self.blocks.iter().position(|block| !block.is_here) {
            Some(at) => {
                let epoch = self.blocks[at].epoch + 1;
                self.blocks[at] = Block { epoch, ..block };
                at
            }
            None => {
                self.blocks.push(block);
                self.blocks.len() - 1
            }
        }
    }

    /// Takes the oldest block out of the pool that can go, a down one rather than others; the row that ends. What came
    /// before must be booked. Nothing, if the chips are in use.
    pub(crate) fn retire_block(&mut self, now: i64) -> Option<CapacityRow> {
        let here = self.blocks.iter().enumerate().filter(|(_, block)| block.is_here);
        let (at, block) = here.min_by_key(|(_, block)| (!block.is_down, block.number))?;
        if !block.is_down && self.free < self.block_chips {
            return None;
        }
        let mut row = self.row(block);
        row.end = Some(now);
        self.total -= self.block_chips;
        if block.is_down {
            self.down -= self.block_chips;
        } else {
            self.free -= self.block_chips;
        }
        let block = &mut self.blocks[at];
        block.is_here = false;
        block.epoch += 1;
        Some(row)
    }

    /// Turns a block from available to down or back at `now`: counts its chips and returns the row that ends. What came
    /// before must be booked.
    pub(crate) fn turn(&mut self, block: usize, now: i64) -> CapacityRow {
        let mut ended = self.row(&self.blocks[block]);
        ended.end = Some(now);
        let chips = if self.blocks[block].is_down { self.block_chips } else { -self.block_chips };
        self.free += chips;
        self.down -= chips;
        debug_assert!(self.free >= 0, "chips went down that a job holds");
        let block = &mut self.blocks[block];
        block.is_down = !block.is_down;
        block.since = now;
        ended
    }

    /// The rows that are open.
    pub(crate) fn open_rows(&self) -> impl Iterator<Item = CapacityRow> {
        self.blocks.iter().filter(|block| block.is_here).map(|block| self.row(block))
    }

    fn row(&self, block: &Block) -> CapacityRow {
        CapacityRow {
            place: self.place,
            block: block.number,
            chips: self.block_chips,
            is_down: block.is_down,
            start: block.since,
            end: None,
        }
    }
}

/// How long a block stays up, ms.
pub(crate) fn uptime(draw: &mut Draw) -> i64 {
    draw.between(6 * HOUR, 20 * DAY)
}

/// How long a block stays up that the fleet begins with, ms: some fail at once, as on any day.
pub(crate) fn uptime_left(draw: &mut Draw) -> i64 {
    let uptime = uptime(draw);
    if draw.per_mille(25) { draw.between(MINUTE, HOUR) } else { draw.between(HOUR, uptime) }
}

/// How long a block stays down, ms: a restart, a visit of a technician, or a wait for a spare part.
pub(crate) fn downtime(draw: &mut Draw) -> i64 {
    let (least, most) =
        draw.weighted(&[((10 * MINUTE, 2 * HOUR), 56), ((3 * HOUR, 14 * HOUR), 37), ((DAY, 5 * DAY), 7)]);
    draw.between(least, most)
}
