//! The buckets of the books: every chip-millisecond that a job holds is in exactly one of them.

/// A quantity that is booked for a job, a day and a pool, in chip-ms.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Bucket {
    /// Held, but fewer chips than the job needs to make progress.
    Partial,
    /// Held while the whole gang runs at once.
    Allocated,
    /// Allocated, of that: starting up.
    Init,
    /// Allocated, of that: compiling the program.
    Compile,
    /// Allocated, of that: restoring a checkpoint.
    Restore,
    /// Allocated, of that: writing a checkpoint that blocks.
    Checkpoint,
    /// Allocated, of that: waiting for data.
    DataWait,
    /// Allocated, of that: idle by the runtime's own word, or in a phase that nobody knows.
    IdleRuntime,
    /// Allocated, of that: evaluating.
    Eval,
    /// Allocated, of that: no phase open on a day with telemetry.
    Stall,
    /// Allocated, of that: no telemetry that day.
    Unobserved,
    /// Allocated, of that: steps whose progress did not survive.
    Lost,
    /// Allocated, of that: steps and serving that count.
    Productive,
    /// Productive, of that: covered by a profile with a usable prediction.
    Profiled,
    /// Profiled, of that: what an ideal program would have needed.
    Ideal,
    /// Chips asked for and not held, outside of capacity.
    Queued,
}

/// The buckets of `job_day`, in the order of its columns.
pub const JOB_DAY_BUCKETS: [Bucket; 16] = [
    Bucket::Partial,
    Bucket::Allocated,
    Bucket::Init,
    Bucket::Compile,
    Bucket::Restore,
    Bucket::Checkpoint,
    Bucket::DataWait,
    Bucket::IdleRuntime,
    Bucket::Eval,
    Bucket::Stall,
    Bucket::Unobserved,
    Bucket::Lost,
    Bucket::Productive,
    Bucket::Profiled,
    Bucket::Ideal,
    Bucket::Queued,
];

/// The buckets that add up to [`Bucket::Allocated`].
pub const ALLOCATED_BUCKETS: [Bucket; 11] = [
    Bucket::Init,
    Bucket::Compile,
    Bucket::Restore,
    Bucket::Checkpoint,
    Bucket::DataWait,
    Bucket::IdleRuntime,
    Bucket::Eval,
    Bucket::Stall,
    Bucket::Unobserved,
    Bucket::Lost,
    Bucket::Productive,
];

impl Bucket {
    /// The position in [`JOB_DAY_BUCKETS`].
    pub fn index(self) -> usize {
        self as usize
    }

    /// The name of the column that holds it.
    pub fn column(self) -> &'static str {
        match self {
            Bucket::Partial => "partial_chip_ms",
            Bucket::Allocated => "allocated_chip_ms",
            Bucket::Init => "init_chip_ms",
            Bucket::Compile => "compile_chip_ms",
            Bucket::Restore => "restore_chip_ms",
            Bucket::Checkpoint => "checkpoint_chip_ms",
            Bucket::DataWait => "data_wait_chip_ms",
            Bucket::IdleRuntime => "idle_runtime_chip_ms",
            Bucket::Eval => "eval_chip_ms",
            Bucket::Stall => "stall_chip_ms",
            Bucket::Unobserved => "unobserved_chip_ms",
            Bucket::Lost => "lost_chip_ms",
            Bucket::Productive => "productive_chip_ms",
            Bucket::Profiled => "profiled_chip_ms",
            Bucket::Ideal => "ideal_chip_ms",
            Bucket::Queued => "queued_chip_ms",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_agree_with_the_list() {
        for (position, bucket) in JOB_DAY_BUCKETS.into_iter().enumerate() {
            assert_eq!(bucket.index(), position);
        }
    }
}
