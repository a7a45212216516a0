//! What a run would do, and whether it could: nothing is computed here, and nothing written.

use std::collections::BTreeMap;

use goodput_model::Day;
use serde::Serialize;

use crate::PipelineError;
use crate::due::published;
use crate::inputs::Inputs;
use crate::plan::Plan;
use crate::record::UnreadableRecord;
use crate::run::{RunOptions, Work, work};
use crate::state::State;

/// What a run would do.
#[derive(Debug, Clone, Serialize)]
pub struct Preview {
    /// The pipeline.
    pub pipeline: String,
    /// Where it reads.
    pub reads: String,
    /// Where it publishes.
    pub warehouse: String,
    /// Chunks of days.
    pub chunks: usize,
    /// Data files that all windows together need.
    pub files: i64,
    /// Their bytes.
    pub bytes: i64,
    /// What is computed, in order.
    pub steps: Vec<StepPreview>,
    /// The days.
    pub days: Vec<DayPreview>,
    /// The days that keep their figures, since partitions of their windows are gone: which.
    pub kept: BTreeMap<String, String>,
}

/// A step of a plan.
#[derive(Debug, Clone, Serialize)]
pub struct StepPreview {
    /// The table that it makes.
    pub table: String,
    /// What it is computed for at a time.
    pub grain: String,
    /// How its partitions are cut; absent if it is not published.
    pub partition_by: Option<String>,
    /// What it reads.
    pub reads: Vec<String>,
    /// How many audits watch it.
    pub audits: usize,
}

/// A day of a plan.
#[derive(Debug, Clone, Serialize)]
pub struct DayPreview {
    /// The day.
    pub date: String,
    /// Data files of its window.
    pub files: i64,
    /// Their bytes.
    pub bytes: i64,
    /// Why it is due.
    pub due: String,
}

/// Says what a run would do.
pub async fn preview(plan: &Plan, options: &RunOptions) -> Result<Preview, PipelineError> {
    let steps = plan.steps.iter().map(|step| StepPreview {
        table: step.table.clone(),
        grain: format!("{:?}", step.grain).to_lowercase(),
        partition_by: step.publish.as_ref().map(|publish| publish.table.grain().column().to_owned()),
        reads: step.sql.reads.iter().cloned().collect(),
        audits: step.audits.len(),
    });
    let sources: Vec<String> = plan.sources.iter().map(|source| source.location.to_string()).collect();
    let mut preview = Preview {
        pipeline: plan.name.clone(),
        reads: plan.telemetry.as_ref().map_or_else(|| sources.join(", "), ToString::to_string),
        warehouse: plan.warehouse.to_string(),
        chunks: 1,
        files: i64::try_from(plan.sources.len()).unwrap_or(i64::MAX),
        bytes: 0,
        steps: steps.collect(),
        days: Vec::new(),
        kept: BTreeMap::new(),
    };
    let Some(root) = &plan.telemetry else { return Ok(preview) };
    let inputs = Inputs::list(root, &plan.settings).await?;
    let (state, published) = futures::future::try_join(State::load(&plan.warehouse), published(plan)).await?;
    let Work { chunks, why, kept } = work(plan, &inputs, options, &state, &published)?;
    let counted = |from: Day, to: Day| {
        let files = inputs.files(from, to);
        let bytes: u64 = files.iter().map(|file| file.file.size).sum();
        (i64::try_from(files.len()).unwrap_or(i64::MAX), i64::try_from(bytes).unwrap_or(i64::MAX))
    };
    preview.chunks = chunks.len();
    let files = chunks.iter().flat_map(|chunk| inputs.files(chunk.from, chunk.to));
    let files: BTreeMap<_, _> = files.map(|file| (file.file.location, file.file.size)).collect();
    preview.files = i64::try_from(files.len()).unwrap_or(i64::MAX);
    preview.bytes = i64::try_from(files.values().sum::<u64>()).unwrap_or(i64::MAX);
    for day in chunks.iter().flat_map(|chunk| chunk.from.through(chunk.to)) {
        let (files, bytes) = counted(day, day);
        let due: Vec<String> = why.get(&day).into_iter().flatten().map(ToString::to_string).collect();
        preview.days.push(DayPreview { date: day.to_string(), files, bytes, due: due.join("; ") });
    }
    preview.kept = kept.iter().map(|(day, gone)| (day.to_string(), gone.join(", "))).collect();
    Ok(preview)
}

/// What a check found.
#[derive(Debug, Clone, Serialize)]
pub struct Checked {
    /// First and last day that have a partition.
    pub from: Option<String>,
    /// See `from`.
    pub to: Option<String>,
    /// Data files.
    pub files: i64,
    /// Files and folders that are no data files.
    pub skipped_files: i64,
    /// Files that cannot be read as what they are said to be.
    pub unreadable_files: Vec<UnreadableRecord>,
}

/// Reaches every store and holds every footer against the contract. The statements were planned when the plan was loaded.
pub async fn check(plan: &Plan) -> Result<Checked, PipelineError> {
    for publish in plan.steps.iter().filter_map(|step| step.publish.as_ref()) {
        publish.table.partitions().await?;
    }
    let mut checked = Checked { from: None, to: None, files: 0, skipped_files: 0, unreadable_files: Vec::new() };
    let Some(root) = &plan.telemetry else { return Ok(checked) };
    let mut inputs = Inputs::list(root, &plan.settings).await?;
    checked.skipped_files = inputs.skipped_files();
    if let Some((first, last)) = inputs.days() {
        checked.from = Some(first.to_string());
        checked.to = Some(last.to_string());
        checked.files = i64::try_from(inputs.files(first, last).len()).unwrap_or(i64::MAX);
        inputs.check(first, last).await?;
    }
    checked.unreadable_files = inputs
        .unreadable()
        .map(|file| UnreadableRecord { file: file.file.clone(), problem: file.problem.clone() })
        .collect();
    Ok(checked)
}
