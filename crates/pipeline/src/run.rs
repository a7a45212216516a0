//! Running a plan: chunks of days, each computed, audited, and published before the next begins.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use arrow::array::{Array, AsArray, UInt32Array};
use arrow::datatypes::{DataType, Date32Type, Field, Float64Type, Int64Type, Schema, SchemaRef};
use arrow::record_batch::RecordBatch;
use goodput_engine::footers::TelemetryFile;
use goodput_engine::scan::{ParquetTable, ScanFile, date_scalar, text_scalar};
use goodput_engine::schema::date_field;
use goodput_engine::session::DERIVED;
use goodput_engine::spill::Spilled;
use goodput_engine::sql::Parameters;
use goodput_engine::write::{plain_sorted, taken};
use goodput_engine::{EngineError, Session, SessionOptions};
use goodput_model::{Day, Grain, METRIC_VERSION, Period};
use goodput_store::{Path, PublishedPartition, PublishedTable};

use crate::audit::{self, AuditFinding, findings_batch, published_findings, run_audits};
use crate::collected::Collected;
use crate::config::StepGrain;
use crate::due::{Published, Why, due, due_quarters, published, quarter_state};
use crate::inputs::Inputs;
use crate::plan::{Moment, Plan, Publish, Step};
use crate::publish::{self, publish_days, publish_period};
use crate::record::FleetQuarter;
use crate::state::{DayState, State, partition_key};
use crate::{PipelineError, RunRecord};

/// The table of what was left out or noticed.
const DATA_QUALITY: &str = "data_quality";

/// What a statement reads that counts files, too.
const FILES_FOUND: &str = "input.files_found";

/// The folder of run records below the warehouse.
const RUNS: &str = "_runs";

/// What a run is to do.
#[derive(Debug, Clone, Default)]
pub struct RunOptions {
    /// First day; the first that the telemetry holds if absent.
    pub from: Option<Day>,
    /// Last day; the last that the telemetry holds if absent. Without either the days that are due are run.
    pub to: Option<Day>,
    /// Whether all days are run, due or not.
    pub full_refresh: bool,
    /// The id of the run, in every row that it publishes.
    pub run_id: String,
    /// What the engine may use.
    pub session: SessionOptions,
}

/// How far a run has come.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Progress<'a> {
    /// Days published.
    pub days_done: i64,
    /// Days in all.
    pub days: i64,
    /// Rows read so far.
    pub rows: i64,
    /// Seconds since the run began.
    pub seconds: f64,
    /// The share of the work that is done, 0 to 1: half of it is reading, half is what comes after.
    pub share: f64,
    /// What it is doing.
    pub doing: &'a str,
}

impl Progress<'_> {
    /// Rows read a second.
    pub fn rows_per_second(&self) -> f64 {
        if self.seconds > 0.0 { self.rows as f64 / self.seconds } else { 0.0 }
    }

    /// Seconds that the rest will take at the pace so far; `None` as long as there is none to speak of.
    pub fn seconds_left(&self) -> Option<f64> {
        const ENOUGH: f64 = 0.01;
        (self.share > ENOUGH).then(|| self.seconds * (1.0 - self.share) / self.share)
    }
}

/// How often a long statement is looked at.
const TICK: Duration = Duration::from_millis(200);

/// Days that are computed together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chunk {
    /// First day.
    pub from: Day,
    /// Last day.
    pub to: Day,
}

impl Chunk {
    /// How many days.
    pub fn days(&self) -> i64 {
        i64::from(self.to.0) - i64::from(self.from.0) + 1
    }

    /// The same days in as few parts as can be, none of more than so many days, and all of about the same size: a small one
    /// at the end would read as much of the days around it as a large one.
    fn in_even_parts(&self, most_days: i32) -> Vec<Chunk> {
        let (days, most_days) = (self.days(), i64::from(most_days.max(1)));
        let parts = days.div_euclid(most_days) + i64::from(days % most_days != 0);
        let begin = |part: i64| self.from.plus(i32::try_from(part * days / parts).unwrap_or(i32::MAX));
        (0..parts).map(|part| Chunk { from: begin(part), to: begin(part + 1).plus(-1) }).collect()
    }
}

/// What a run works on.
#[derive(Debug, Clone, Default)]
pub struct Work {
    /// The days in chunks.
    pub chunks: Vec<Chunk>,
    /// Why each day is worked on.
    pub why: BTreeMap<Day, Vec<Why>>,
    /// The days that keep their figures, since partitions of their windows are gone.
    pub kept: BTreeMap<Day, Vec<String>>,
}

/// Which days a run works on: those that are asked for, or all that are due.
pub fn work(
    plan: &Plan,
    inputs: &Inputs,
    options: &RunOptions,
    state: &State,
    published: &Published,
) -> Result<Work, PipelineError> {
    // Says what is wrong with the days that are asked for, too.
    let asked = days_asked_for(plan, inputs, options.from, options.to)?;
    let mut due = due(plan, inputs, state, published);
    if options.full_refresh || options.from.is_some() || options.to.is_some() {
        due.days =
            asked.iter().map(|day| (*day, due.days.remove(day).unwrap_or_else(|| vec![Why::AskedFor]))).collect();
        due.kept.clear();
    }
    let chunks = in_chunks(due.days.keys().copied(), plan.settings.chunk_days);
    Ok(Work { chunks, why: due.days, kept: due.kept })
}

/// Days in chunks of days on end.
fn in_chunks(days: impl Iterator<Item = Day>, chunk_days: i32) -> Vec<Chunk> {
    let mut stretches: Vec<Chunk> = Vec::new();
    for day in days {
        match stretches.last_mut() {
            Some(stretch) if stretch.to.plus(1) == day => stretch.to = day,
            _ => stretches.push(Chunk { from: day, to: day }),
        }
    }
    stretches.iter().flat_map(|stretch| stretch.in_even_parts(chunk_days)).collect()
}

/// The days from one to another whose windows hold a partition.
fn days_asked_for(plan: &Plan, inputs: &Inputs, from: Option<Day>, to: Option<Day>) -> Result<Vec<Day>, PipelineError> {
    let Some((first, last)) = inputs.days() else {
        let root = plan.telemetry.as_ref().map(ToString::to_string).unwrap_or_default();
        return Err(PipelineError::Days {
            problem: format!("there is no telemetry in `{root}`"),
            hint: "it wants <root>/<table>/date=YYYY-MM-DD/*.parquet: set the variable that names the root".to_owned(),
        });
    };
    let (from, to) = (from.unwrap_or(first), to.unwrap_or(last));
    if to < from {
        return Err(PipelineError::Days {
            problem: format!("the last day, {to}, is before the first, {from}"),
            hint: format!("the telemetry holds {first} to {last}"),
        });
    }
    // What lies further from every partition than a window reaches has no figures.
    let settle = plan.settings.settle_days;
    let reach = from.max(first.plus(-settle)).through(to.min(last.plus(settle)));
    let days: Vec<Day> = reach.filter(|day| inputs.has_window(*day)).collect();
    if days.is_empty() {
        return Err(PipelineError::Days {
            problem: format!("there is no telemetry for {from} to {to}"),
            hint: format!("the telemetry holds {first} to {last}"),
        });
    }
    Ok(days)
}

/// Runs a plan.
pub async fn run(
    plan: &Plan,
    options: &RunOptions,
    progress: &(dyn Fn(Progress<'_>) + Send + Sync),
) -> Result<RunRecord, PipelineError> {
    let started = Instant::now();
    let session = Session::new(&options.session)?;
    plan.register_sources(&session).await?;
    let (state, published) = match &plan.telemetry {
        Some(_) => futures::future::try_join(State::load(&plan.warehouse), published(plan)).await?,
        None => (State::empty(&plan.warehouse), Published::new()),
    };
    let record = RunRecord { run_id: options.run_id.clone(), pipeline: plan.name.clone(), ..RunRecord::default() };
    let collected = Collected::default();
    let (days, days_done) = (0, 0);
    let mut run =
        Run { plan, options, session, progress, started, record, state, published, collected, days, days_done };
    match &plan.telemetry {
        Some(_) => run.by_days().await?,
        None => run.at_once().await?,
    }
    let mut record = run.record;
    record.seconds = started.elapsed().as_secs_f64();
    record.rows_per_second = if record.seconds > 0.0 { record.rows as f64 / record.seconds } else { 0.0 };
    if !record.is_idle() {
        write_record(plan, &record).await?;
    }
    Ok(record)
}

async fn write_record(plan: &Plan, record: &RunRecord) -> Result<(), PipelineError> {
    let runs = plan.warehouse.join(RUNS);
    let path = runs.root().clone().join(format!("{}.json", record.run_id));
    let mut text = serde_json::to_string_pretty(record).map_err(|error| PipelineError::Fault(error.to_string()))?;
    text.push('\n');
    runs.write(&path, text.into_bytes().into()).await?;
    Ok(())
}

/// A run under way.
struct Run<'a> {
    plan: &'a Plan,
    options: &'a RunOptions,
    session: Session,
    progress: &'a (dyn Fn(Progress<'_>) + Send + Sync),
    record: RunRecord,
    /// What was published from what.
    state: State,
    /// The published partitions as they lie there.
    published: Published,
    collected: Collected,
    started: Instant,
    /// Days in all, and those that are done.
    days: i64,
    days_done: i64,
}

/// A table that a chunk computed.
struct Computed<'a> {
    step: &'a Step,
    publish: &'a Publish,
    batch: RecordBatch,
}

impl<'a> Run<'a> {
    async fn by_days(&mut self) -> Result<(), PipelineError> {
        let Some(root) = &self.plan.telemetry else { return Ok(()) };
        let mut inputs = Inputs::list(root, &self.plan.settings).await?;
        let Work { chunks, why, kept } = work(self.plan, &inputs, self.options, &self.state, &self.published)?;
        let reasons = |reasons: &Vec<Why>| reasons.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ");
        self.record.due = why.iter().map(|(day, why)| (day.to_string(), reasons(why))).collect();
        self.record.kept = kept.iter().map(|(day, gone)| (day.to_string(), gone.join(", "))).collect();
        self.record.from = chunks.first().map(|chunk| chunk.from.to_string());
        self.record.to = chunks.last().map(|chunk| chunk.to.to_string());
        self.record.skipped_files = inputs.skipped_files();
        let days: i64 = chunks.iter().map(|chunk| chunk.days()).sum();
        if let (Some(first), Some(last)) = (chunks.first(), chunks.last()) {
            let without = first.from.through(last.to).filter(|day| !inputs.has_window(*day)).count();
            self.record.days_without_window = i64::try_from(without).unwrap_or(i64::MAX);
        }
        self.days = days;
        self.report("reading footers");
        for chunk in &chunks {
            inputs.check(chunk.from, chunk.to).await?;
        }
        self.count_inputs(&inputs, &chunks);
        for chunk in &chunks {
            self.run_chunk(&mut inputs, chunk).await?;
            self.days_done += chunk.days();
            let progress = self.progress_at("published");
            tracing::info!(
                through = %chunk.to,
                days_done = self.days_done,
                days,
                rows_per_second = progress.rows_per_second().round(),
                seconds_left = progress.seconds_left().map(f64::round),
                "published"
            );
        }
        for file in inputs.unreadable() {
            self.record.add_unreadable(file);
        }
        self.run_quarters(&inputs).await
    }

    /// Notes days whose partitions are about to be replaced: until they are noted as published, they are due.
    async fn begin_publishing(&mut self, days: &BTreeSet<Day>) -> Result<(), PipelineError> {
        let mut noted = Vec::new();
        for day in days {
            if let Some(known) = self.state.days.get_mut(day).filter(|known| !known.is_unfinished) {
                known.is_unfinished = true;
                noted.push(*day);
            }
        }
        self.state.save(noted).await
    }

    /// Notes days that were published.
    async fn end_publishing(&mut self, inputs: &Inputs, days: &BTreeSet<Day>) -> Result<(), PipelineError> {
        let basis = Arc::new(self.plan.basis());
        for day in days {
            let known = DayState {
                run_id: self.options.run_id.clone(),
                metric_version: METRIC_VERSION,
                is_provisional: *day > inputs.settled_through(),
                is_unfinished: false,
                basis: Arc::clone(&basis),
                window: inputs.window_state(*day),
            };
            self.state.days.insert(*day, known);
            for (table, publish) in self.plan.published_by_day() {
                let period = publish.table.grain().of(*day);
                if let Some(version) = self.published.get(&partition_key(table, period)) {
                    self.state.set_partition(table, period, version.clone());
                }
            }
        }
        self.state.save(days.iter().copied()).await
    }

    /// Notes what was published of a table.
    fn note(&mut self, table: &str, done: &publish::Published) {
        for (period, version) in &done.objects {
            self.published.insert(partition_key(table, *period), version.clone());
        }
        self.record.add_table(table, done);
    }

    fn progress_at<'d>(&self, doing: &'d str) -> Progress<'d> {
        let gathered = i64::try_from(self.session.rows_gathered()).unwrap_or(i64::MAX);
        let rows = gathered.max(self.record.rows_decoded);
        let share = |done: i64, all: i64| if all > 0 { (done as f64 / all as f64).min(1.0) } else { 0.0 };
        let share = (share(rows, self.record.rows) + share(self.days_done, self.days)) / 2.0;
        let seconds = self.started.elapsed().as_secs_f64();
        Progress { days_done: self.days_done, days: self.days, rows, seconds, share, doing }
    }

    fn report(&self, doing: &str) {
        (self.progress)(self.progress_at(doing));
    }

    /// Waits for work, and says meanwhile how far it has come.
    async fn watched<T>(&self, doing: &str, work: impl Future<Output = T>) -> T {
        let mut work = std::pin::pin!(work);
        let mut tick = tokio::time::interval(TICK);
        loop {
            tokio::select! {
                done = &mut work => return done,
                _ = tick.tick() => self.report(doing),
            }
        }
    }

    async fn run_chunk(&mut self, inputs: &mut Inputs, chunk: &Chunk) -> Result<(), PipelineError> {
        let settled_through = inputs.settled_through();
        let partitions = inputs.partitions();
        let run_id = self.options.run_id.as_str();
        let moment = Moment { from: chunk.from, to: chunk.to, settled_through, run_id, partitions: &partitions };
        let parameters = self.plan.parameters(moment)?;
        self.collect_partitions(inputs, chunk, &parameters).await?;
        self.report(&format!("books of {} to {}", chunk.from, chunk.to));
        let computed = loop {
            inputs.register(&self.session, chunk.from, chunk.to)?;
            match self.compute(StepGrain::Day, &parameters).await {
                Ok(computed) => break computed,
                Err(error) => {
                    let files = inputs.readable(chunk.from, chunk.to);
                    blame_a_file(error, inputs, &files).await?;
                }
            }
        };

        let all_days: BTreeSet<Day> = chunk.from.through(chunk.to).collect();
        let mut held_back: BTreeMap<Day, String> = BTreeMap::new();
        for day in &all_days {
            if let Some(file) = inputs.holding_back(*day).next() {
                held_back.insert(*day, format!("{}: {}", file.file, file.problem));
            }
        }
        let audited: BTreeSet<Day> = all_days.iter().filter(|day| !held_back.contains_key(day)).copied().collect();
        let began = Instant::now();
        let findings = run_audits(&self.session, self.plan, &parameters, &audited).await?;
        tracing::debug!(seconds = began.elapsed().as_secs_f64(), "audited");
        held_back.extend(self.blocked_days(&findings, &audited));
        let published: BTreeSet<Day> = all_days.iter().filter(|day| !held_back.contains_key(day)).copied().collect();
        let began = Instant::now();
        self.begin_publishing(&published).await?;
        self.publish_chunk(computed, &findings, &audited, &published, settled_through).await?;
        self.end_publishing(inputs, &published).await?;
        tracing::debug!(seconds = began.elapsed().as_secs_f64(), "published");
        for (day, reason) in held_back {
            self.record.hold_back(day, reason);
        }
        self.record.days += i64::try_from(published.len()).unwrap_or(i64::MAX);
        Ok(())
    }

    /// Reads the partitions that the windows of a chunk need and that none before it needed, lets go of those that nobody
    /// needs any more, and makes known what was made of the others.
    async fn collect_partitions(
        &mut self,
        inputs: &mut Inputs,
        chunk: &Chunk,
        parameters: &Parameters,
    ) -> Result<(), PipelineError> {
        let steps: Vec<&Step> = self.plan.steps.iter().filter(|step| step.grain == StepGrain::Partition).collect();
        if steps.is_empty() {
            self.record.rows_decoded += inputs.rows_in(&inputs.readable(chunk.from, chunk.to));
            return Ok(());
        }
        let (first, last) = inputs.window(chunk.from, chunk.to);
        self.collected.forget_before(first);
        while let Some(first) = self.collected.unread(first, last) {
            let files = inputs.readable_of_partitions(first, last);
            inputs.register_files(&self.session, &files)?;
            match self.read_partitions(&steps, parameters).await {
                Ok(made) => {
                    self.record.rows_decoded += inputs.rows_in(&files);
                    self.collected.add(last, made);
                }
                Err(error) => blame_a_file(error, inputs, &files).await?,
            }
        }
        for step in steps {
            self.session.register_spilled(DERIVED, &step.table, &self.collected.of(&step.table))?;
        }
        Ok(())
    }

    /// Lets the steps read the partitions that are known to the session.
    async fn read_partitions(
        &self,
        steps: &[&Step],
        parameters: &Parameters,
    ) -> Result<BTreeMap<String, Spilled>, PipelineError> {
        let mut made = BTreeMap::new();
        for step in steps {
            let began = Instant::now();
            let plan = self.session.plan(&step.sql, parameters, &self.plan.lists).await?;
            let what = format!("step `{}`", step.table);
            let spilled = self.watched("reading", self.session.spill(&what, plan)).await?;
            made.insert(step.table.clone(), spilled);
            tracing::debug!(step = step.table, seconds = began.elapsed().as_secs_f64(), "read");
        }
        Ok(made)
    }

    /// Records what the audits found; the days that may not be published, and why. A finding without a date is about all.
    fn blocked_days(&mut self, findings: &[AuditFinding], audited: &BTreeSet<Day>) -> BTreeMap<Day, String> {
        let mut blocked: BTreeMap<Day, String> = BTreeMap::new();
        for finding in findings {
            self.record.add_finding(finding);
            if finding.is_blocking {
                let offending = finding.date.map_or_else(|| audited.clone(), |date| BTreeSet::from([date]));
                for day in offending {
                    blocked.entry(day).or_insert_with(|| format!("audit `{}`: {}", finding.audit, finding.detail));
                }
            }
        }
        blocked
    }

    /// Counts the files that the windows of all days need, each once.
    fn count_inputs(&mut self, inputs: &Inputs, chunks: &[Chunk]) {
        let mut counted: BTreeSet<Path> = BTreeSet::new();
        for chunk in chunks {
            let files = inputs.readable(chunk.from, chunk.to).into_iter();
            let files: Vec<_> = files.filter(|file| counted.insert(file.file.location.clone())).collect();
            self.record.files += i64::try_from(files.len()).unwrap_or(i64::MAX);
            self.record.rows += inputs.rows_in(&files);
            let bytes = files.iter().map(|file| file.file.size).sum::<u64>();
            self.record.bytes += i64::try_from(bytes).unwrap_or(i64::MAX);
        }
    }

    /// Computes the steps of a grain in order and makes each known to the ones behind it; gives those to publish.
    async fn compute(&self, grain: StepGrain, parameters: &Parameters) -> Result<Vec<Computed<'a>>, PipelineError> {
        let mut computed = Vec::new();
        let plan = self.plan;
        for step in plan.steps.iter().filter(|step| step.grain == grain) {
            let (schema, batches) = self.collect(step, parameters).await?;
            match &step.publish {
                None => self.session.register_batches(DERIVED, &step.table, schema, batches)?,
                Some(publish) => {
                    let batch = plain_sorted(&schema, &batches, &publish.sort_by)
                        .map_err(|source| PipelineError::Write { table: step.table.clone(), source })?;
                    let rows = vec![batch.clone()];
                    self.session.register_batches(DERIVED, &step.table, Arc::clone(&publish.schema), rows)?;
                    computed.push(Computed { step, publish, batch });
                }
            }
        }
        Ok(computed)
    }

    async fn collect(
        &self,
        step: &Step,
        parameters: &Parameters,
    ) -> Result<(SchemaRef, Vec<RecordBatch>), PipelineError> {
        let began = Instant::now();
        let plan = self.session.plan(&step.sql, parameters, &self.plan.lists).await?;
        let schema = Arc::new(plan.schema().as_arrow().clone());
        let batches = self.session.collect(&format!("step `{}`", step.table), plan).await?;
        tracing::debug!(step = step.table, seconds = began.elapsed().as_secs_f64(), "computed");
        // What an operator gives may differ from the plan in nullability alone.
        let schema = batches.first().map_or(schema, RecordBatch::schema);
        Ok((schema, batches))
    }

    async fn publish_chunk(
        &mut self,
        computed: Vec<Computed<'a>>,
        findings: &[AuditFinding],
        audited: &BTreeSet<Day>,
        published: &BTreeSet<Day>,
        settled_through: Day,
    ) -> Result<(), PipelineError> {
        let days_of_step = |step: &Step| {
            let mut days: BTreeSet<Option<Day>> = published.iter().copied().map(Some).collect();
            if step.sql.reads.contains(FILES_FOUND) && !published.is_empty() {
                // What lies beside the partitions has no date.
                days.insert(None);
            }
            days
        };
        // Side by side: one table is encoded while another is written.
        let publishing = computed.iter().map(|Computed { step, publish, batch }| {
            let days = days_of_step(step);
            async move { publish_days(publish, batch, &days).await }
        });
        let done = futures::future::try_join_all(publishing).await?;
        for (Computed { step, batch, .. }, done) in computed.iter().zip(done) {
            self.note(&step.table, &done);
            if step.table == DATA_QUALITY {
                self.count_quality(batch, published);
            }
        }
        let mut days: BTreeSet<Option<Day>> = audited.iter().copied().map(Some).collect();
        if findings.iter().any(|finding| finding.date.is_none()) {
            days.insert(None);
        }
        let batch = findings_batch(findings, &self.options.run_id, settled_through)?;
        let done = publish_days(&published_findings(&self.plan.warehouse), &batch, &days).await?;
        self.note(audit::TABLE, &done);
        Ok(())
    }

    /// Adds up the published counts of `data_quality` by reason, those of skipped files as one.
    fn count_quality(&mut self, batch: &RecordBatch, published: &BTreeSet<Day>) {
        let dates = batch.column_by_name("date").and_then(|column| column.as_primitive_opt::<Date32Type>());
        let reasons = batch.column_by_name("reason").and_then(|column| column.as_string_opt::<i32>());
        let rows = batch.column_by_name("rows").and_then(|column| column.as_primitive_opt::<Int64Type>());
        let (Some(dates), Some(reasons), Some(rows)) = (dates, reasons, rows) else { return };
        for row in (0..batch.num_rows()).filter(|row| dates.is_valid(*row)) {
            if published.contains(&Day(dates.value(row))) {
                let reason = reasons.value(row).split(':').next().unwrap_or_default();
                *self.record.data_quality.entry(reason.to_owned()).or_default() += rows.value(row);
            }
        }
    }

    /// Computes the quarters of which other days are published than they were computed from, by this run and by earlier ones.
    async fn run_quarters(&mut self, inputs: &Inputs) -> Result<(), PipelineError> {
        // One after the other: years of them need no more memory than one.
        for quarter in due_quarters(self.plan, &self.state, &self.published) {
            self.run_quarter(inputs, quarter).await?;
            let known = quarter_state(self.plan, &self.published, quarter);
            self.state.quarters.insert(quarter.first(), known);
            for (table, _) in self.plan.published_by_quarter() {
                if let Some(version) = self.published.get(&partition_key(table, quarter)) {
                    self.state.set_partition(table, quarter, version.clone());
                }
            }
            self.state.save([quarter.first()]).await?;
        }
        Ok(())
    }

    async fn run_quarter(&mut self, inputs: &Inputs, quarter: Period) -> Result<(), PipelineError> {
        let plan = self.plan;
        let label = quarter.to_string();
        self.report(&label);
        let partitions = inputs.partitions();
        let moment = Moment {
            from: quarter.first(),
            to: quarter.last(),
            settled_through: inputs.settled_through(),
            run_id: &self.options.run_id,
            partitions: &partitions,
        };
        let parameters = plan.parameters(moment)?;
        for step in plan.steps.iter().filter(|step| step.grain == StepGrain::Quarter) {
            for source in plan.steps.iter().filter(|source| step.sql.reads.contains(&source.table)) {
                if let Some(publish) = source.publish.as_ref().filter(|_| source.grain == StepGrain::Day) {
                    self.register_published(&source.table, publish, quarter).await?;
                }
            }
        }
        for Computed { step, publish, batch } in self.compute(StepGrain::Quarter, &parameters).await? {
            self.record.fleet.extend(fleet_quarters(&batch));
            let labels = batch.column_by_name("quarter").and_then(|column| column.as_string_opt::<i32>());
            let positions: Vec<u32> = labels
                .into_iter()
                .flat_map(|labels| labels.iter().enumerate())
                .filter(|(_, found)| *found == Some(label.as_str()))
                .filter_map(|(position, _)| u32::try_from(position).ok())
                .collect();
            let failed = |source| PipelineError::Write { table: step.table.clone(), source };
            let rows = taken(&batch, &UInt32Array::from(positions)).map_err(failed)?;
            let done = publish_period(publish, &rows, quarter).await?;
            self.note(&step.table, &done);
        }
        Ok(())
    }

    /// Makes the published partitions of a quarter known as a table.
    async fn register_published(&self, name: &str, publish: &Publish, quarter: Period) -> Result<(), PipelineError> {
        let table = &publish.table;
        let partitions = table.partitions().await?;
        let wanted = partitions.into_iter().filter(|partition| {
            let first = partition.period.map(Period::first);
            first.is_some_and(|first| Grain::Quarter.of(first) == quarter)
        });
        let provider = published_table(&self.session, table, &publish.schema, wanted.collect())?;
        Ok(self.session.register(DERIVED, name, Arc::new(provider))?)
    }

    /// Runs a pipeline whose sources have no days.
    async fn at_once(&mut self) -> Result<(), PipelineError> {
        if self.options.from.is_some() || self.options.to.is_some() {
            return Err(PipelineError::Days {
                problem: format!("pipeline `{}` reads sources that have no days", self.plan.name),
                hint: "run it without --from and --to".to_owned(),
            });
        }
        let run_id = self.options.run_id.as_str();
        let day = Day(0);
        let moment = Moment { from: day, to: day, settled_through: day, run_id, partitions: &Default::default() };
        let parameters = self.plan.parameters(moment)?;
        self.report(&self.plan.name);
        let computed = self.compute(StepGrain::Run, &parameters).await?;
        let days: BTreeSet<Day> = computed.iter().flat_map(|computed| days_of(&computed.batch)).collect();
        let findings = run_audits(&self.session, self.plan, &parameters, &days).await?;
        let held_back = self.blocked_days(&findings, &days);
        for Computed { step, publish, batch } in computed {
            let days = days_of(&batch).into_iter().filter(|day| !held_back.contains_key(day)).map(Some).collect();
            let done = publish_days(publish, &batch, &days).await?;
            self.note(&step.table, &done);
        }
        self.record.days = i64::try_from(days.len() - held_back.len()).unwrap_or(i64::MAX);
        self.record.from = days.first().map(ToString::to_string);
        self.record.to = days.last().map(ToString::to_string);
        for (day, reason) in held_back {
            self.record.hold_back(day, reason);
        }
        Ok(())
    }
}

/// What breaks in the middle of a step may be a file whose footer is whole: which one, only reading to the end tells. If
/// one is found the step can be tried without it; if none is, the error stands.
async fn blame_a_file(error: PipelineError, inputs: &mut Inputs, files: &[TelemetryFile]) -> Result<(), PipelineError> {
    if !matches!(error, PipelineError::Engine(EngineError::Run { .. })) {
        return Err(error);
    }
    tracing::debug!(%error, "a step failed: the files that it read are read to the end");
    if inputs.verify(files).await? { Ok(()) } else { Err(error) }
}

/// The fleet's rows of a table of quarters; none if it is another kind of table.
fn fleet_quarters(batch: &RecordBatch) -> Vec<FleetQuarter> {
    let text = |name| batch.column_by_name(name).and_then(|column| column.as_string_opt::<i32>());
    let float = |name, row: usize| {
        let column = batch.column_by_name(name)?.as_primitive_opt::<Float64Type>()?;
        column.is_valid(row).then(|| column.value(row))
    };
    let (Some(quarters), Some(segments)) = (text("quarter"), text("segment_by")) else { return Vec::new() };
    let days = batch.column_by_name("days").and_then(|column| column.as_primitive_opt::<Int64Type>());
    let provisional = batch.column_by_name("is_provisional").and_then(|column| column.as_boolean_opt());
    (0..batch.num_rows())
        .filter(|row| segments.is_valid(*row) && segments.value(*row) == "fleet")
        .map(|row| FleetQuarter {
            quarter: quarters.value(row).to_owned(),
            days: days.map_or(0, |days| days.value(row)),
            scheduling_goodput: float("scheduling_goodput", row),
            runtime_goodput: float("runtime_goodput", row),
            program_goodput: float("program_goodput", row),
            mpg: float("mpg", row),
            runtime_coverage: float("runtime_coverage", row),
            program_coverage: float("program_coverage", row),
            is_provisional: provisional.is_some_and(|provisional| provisional.value(row)),
        })
        .collect()
}

/// The days of the rows of a batch.
fn days_of(batch: &RecordBatch) -> BTreeSet<Day> {
    let dates = batch.column_by_name("date").and_then(|column| column.as_primitive_opt::<Date32Type>());
    dates.into_iter().flat_map(|dates| dates.iter().flatten()).map(Day).collect()
}

/// Published partitions as a table with the columns of its files and, where that is none of them, the partition column.
pub fn published_table(
    session: &Session,
    table: &PublishedTable,
    schema: &SchemaRef,
    partitions: Vec<PublishedPartition>,
) -> Result<ParquetTable, PipelineError> {
    let store = session.store(table.location())?;
    let column = table.grain().column();
    let in_files: Vec<_> = schema.fields().iter().filter(|field| field.name() != column).cloned().collect();
    let columns = Arc::new(Schema::new(in_files));
    let is_date = table.grain() == Grain::Date;
    let field = if is_date { date_field() } else { Field::new(column, DataType::Utf8, true) };
    let file = |partition: PublishedPartition| {
        let value = match partition.period {
            Some(period) if is_date => date_scalar(Some(period.first())),
            None if is_date => date_scalar(None),
            period => text_scalar(period.map(|period| period.to_string())),
        };
        ScanFile { file: partition.file, partition: value }
    };
    Ok(ParquetTable::new(store, columns, field, partitions.into_iter().map(file).collect()))
}
