//! The chips of the sample fleet: pools of blocks that go down and come back.

use std::collections::BTreeSet;

use super::draw::Draw;
use super::{HOUR, MINUTE};
use crate::telemetry::CapacityRow;

/// Chips of one generation in one cell. Jobs are placed by counting: which block a task stands on does not matter.
#[derive(Debug)]
pub(super) struct Pool {
    pub(super) cell: &'static str,
    pub(super) accelerator: &'static str,
    /// All chips, also those that are down.
    pub(super) total: i64,
    /// Chips of available blocks that no job has reserved.
    pub(super) free: i64,
    /// Chips that unfinished jobs of this pool asked for: what its queue looks like to a user who has the choice.
    pub(super) demand: i64,
    /// Waiting jobs by rank and number, the first first.
    pub(super) queue: BTreeSet<(u8, u64)>,
    /// Running jobs, in the order in which they started.
    pub(super) running: Vec<u64>,
    pub(super) blocks: Vec<Block>,
}

/// A block, in the state that began last.
#[derive(Debug)]
pub(super) struct Block {
    name: String,
    pub(super) chips: i64,
    pub(super) down: bool,
    since: i64,
}

/// Cell, accelerator, chips of a block, and blocks in the smallest fleet.
const POOLS: [(&str, &str, i64, i64); 4] = [
    ("us-east5-a", "tpu-v5p", 64, 10),
    ("us-east5-a", "tpu-v6e", 16, 8),
    ("europe-west4-b", "tpu-v6e", 32, 8),
    ("iad-gpu-1", "h100-sxm", 32, 8),
];

/// Jobs a day that the smallest fleet can serve.
const JOBS_OF_SMALLEST_FLEET: i64 = 30;

/// The pools of a fleet that serves so many jobs a day, all of it available since `start`.
pub(super) fn pools(jobs_per_day: u32, start: i64) -> Vec<Pool> {
    let pool = |&(cell, accelerator, chips, fewest): &(&'static str, &'static str, i64, i64)| {
        let count = (fewest * i64::from(jobs_per_day) / JOBS_OF_SMALLEST_FLEET).max(fewest);
        let blocks = (0..count).map(|number| Block { name: format!("b{number:04}"), chips, down: false, since: start });
        Pool {
            cell,
            accelerator,
            total: chips * count,
            free: chips * count,
            demand: 0,
            queue: BTreeSet::new(),
            running: Vec::new(),
            blocks: blocks.collect(),
        }
    };
    POOLS.iter().map(pool).collect()
}

impl Pool {
    /// Turns a block from available to down or back at `now`: counts its chips and returns the row that ends.
    pub(super) fn turn(&mut self, block: usize, now: i64) -> CapacityRow {
        let mut ended = self.row(&self.blocks[block]);
        ended.end = Some(now);
        let block = &mut self.blocks[block];
        self.free += if block.down { block.chips } else { -block.chips };
        debug_assert!(self.free >= 0, "chips went down that a job holds");
        block.down = !block.down;
        block.since = now;
        ended
    }

    /// The rows that are open.
    pub(super) fn open_rows(&self) -> impl Iterator<Item = CapacityRow> {
        self.blocks.iter().map(|block| self.row(block))
    }

    fn row(&self, block: &Block) -> CapacityRow {
        CapacityRow {
            cell: self.cell.to_owned(),
            accelerator: self.accelerator.to_owned(),
            block: block.name.clone(),
            chips: block.chips,
            state: if block.down { "down" } else { "available" }.to_owned(),
            start: block.since,
            end: None,
        }
    }
}

/// How long a block stays up, ms.
pub(super) fn uptime(draw: &mut Draw) -> i64 {
    draw.between(6 * HOUR, 14 * 24 * HOUR)
}

/// How long a block stays down, ms: a restart, or a visit of a technician.
pub(super) fn downtime(draw: &mut Draw) -> i64 {
    if draw.per_mille(600) { draw.between(10 * MINUTE, 2 * HOUR) } else { draw.between(3 * HOUR, 14 * HOUR) }
}
