//! What a day's partitions hold, before it becomes columns. Instants are whole milliseconds since the epoch, UTC.

use std::borrow::Cow;
use std::sync::Arc;

use goodput_model::contract::JOB_AXES;

/// What the scheduler knows of a job from its submission on.
#[derive(Debug)]
pub(crate) struct JobFacts {
    pub(crate) job_id: String,
    pub(crate) submit: i64,
    pub(crate) chips_required: i64,
    /// The generation that it asked for.
    pub(crate) accelerator: Option<&'static str>,
    /// In the order of [`JOB_AXES`].
    pub(crate) axes: [Option<Cow<'static, str>>; JOB_AXES.len()],
    /// Whether the scheduler's export knows it: the allocations of one that it does not are orphans.
    pub(crate) is_listed: bool,
}

/// Chips of one generation in one cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place {
    pub(crate) cell: &'static str,
    pub(crate) accelerator: &'static str,
}

/// When something ended, and the word for how.
pub(crate) type Ended = Option<(i64, &'static str)>;

/// What a job does, as its runtime calls it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Phase {
    Init,
    Compile,
    Restore,
    Checkpoint,
    DataWait,
    Idle,
    Eval,
    Step,
    Serve,
    CheckpointAsync,
    DataAsync,
    /// A word that the contract does not know.
    Warmup,
    /// The null of a broken producer.
    Missing,
}

/// The words of [`Phase`], in its order.
pub(crate) const PHASE_WORDS: [&str; 12] = [
    "init",
    "compile",
    "restore",
    "checkpoint",
    "data_wait",
    "idle",
    "eval",
    "step",
    "serve",
    "checkpoint_async",
    "data_async",
    "warmup",
];

#[derive(Debug, Clone)]
pub(crate) struct CapacityRow {
    pub(crate) place: Place,
    /// The number of the block in its pool.
    pub(crate) block: u32,
    pub(crate) chips: i64,
    pub(crate) is_down: bool,
    pub(crate) start: i64,
    pub(crate) end: Option<i64>,
}

#[derive(Debug, Clone)]
pub(crate) struct JobRow {
    pub(crate) job: Arc<JobFacts>,
    pub(crate) ended: Ended,
}

#[derive(Debug, Clone)]
pub(crate) struct AllocationRow {
    pub(crate) job: Arc<JobFacts>,
    pub(crate) attempt: i64,
    /// The number of the task in its gang.
    pub(crate) task: usize,
    pub(crate) place: Place,
    pub(crate) chips: i64,
    pub(crate) start: i64,
    pub(crate) ended: Ended,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct RuntimeRow {
    /// The position of the job in [`Partition::reporters`].
    pub(crate) reporter: u32,
    pub(crate) phase: Phase,
    pub(crate) attempt: i64,
    pub(crate) start: i64,
    pub(crate) end: Option<i64>,
    pub(crate) first_step: Option<i64>,
    pub(crate) last_step: Option<i64>,
}

#[derive(Debug, Clone)]
pub(crate) struct ProfileRow {
    pub(crate) job: Arc<JobFacts>,
    pub(crate) attempt: i64,
    pub(crate) program: String,
    pub(crate) start: i64,
    pub(crate) end: i64,
    pub(crate) steps: i64,
    pub(crate) step_time_us: f64,
    pub(crate) predicted_step_time_us: Option<f64>,
    pub(crate) flops_per_step: Option<f64>,
    pub(crate) bytes_per_step: Option<f64>,
    pub(crate) precision: &'static str,
}

/// What all tables recorded on one day.
#[derive(Debug, Default)]
pub(crate) struct Partition {
    pub(crate) capacity: Vec<CapacityRow>,
    pub(crate) jobs: Vec<JobRow>,
    pub(crate) allocations: Vec<AllocationRow>,
    /// In the order in which they were recorded.
    pub(crate) runtime: Vec<RuntimeRow>,
    /// The jobs whose runtime rows these are, in the order of their first report.
    pub(crate) reporters: Vec<Arc<JobFacts>>,
    pub(crate) profiles: Vec<ProfileRow>,
}

impl Partition {
    /// Forgets all rows and keeps the memory for another day's.
    pub(crate) fn clear(&mut self) {
        self.capacity.clear();
        self.jobs.clear();
        self.allocations.clear();
        self.runtime.clear();
        self.reporters.clear();
        self.profiles.clear();
    }
}
