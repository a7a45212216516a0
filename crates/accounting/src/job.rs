//! A job's books: what its chips did on every day of a run, in one pass over its rows.
//!
//! The copies of a row are compared once and give each copy the days on which it counts; a day of the run then takes the
//! rows that count on it, and those alone. Days are visited in order, with the runtime rows that reach into the day kept
//! at hand, so that a row is looked at on the days that it covers and not on all days of the run.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use goodput_model::contract::UNKNOWN;
use goodput_model::{Bucket, Day, JOB_DAY_BUCKETS, MS_PER_DAY, Reason, Table};

use crate::copies::{Counted, choose};
use crate::decoding::{Block, blocks, read_allocations, read_jobs, read_profiles, read_runtime};
use crate::ends::{End, end_of, latest_end};
use crate::findings::Findings;
use crate::phases::{Stretch, decide};
use crate::program::{ProgramTimes, day_of, ideal_step_time};
use crate::progress::{Progress, StepRow};
use crate::rows::{AllocationRow, JobRow, Phase, ProfileRow, RuntimeRow};
use crate::rules::Accelerator;
use crate::scheduling::{Holding, hold_largest, walk};
use crate::{AccountingError, Rules};

/// Bytes of collected rows that are swept together, about: a job of more is swept some days at a time. A runtime row of
/// eight bytes takes 64 while it is swept.
const SWEPT_TOGETHER: usize = 16 << 20;

/// What a job is, as a day's window tells it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobAttributes {
    /// Chips that it must hold at once; 0 if nobody knows the job.
    pub chips_required: i64,
    /// Its size class.
    pub size_class: Arc<str>,
    /// Its axes, in the order of the rules.
    pub axes: Vec<Arc<str>>,
}

/// What is booked for a job on a day in a pool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobDay {
    /// The day.
    pub day: Day,
    /// Where; `None` for chips that it asked for and did not hold.
    pub cell: Option<Arc<str>>,
    /// On what; `None` if it did not hold any and named none.
    pub accelerator: Option<Arc<str>>,
    /// The quantities, in the order of [`JOB_DAY_BUCKETS`].
    pub chip_ms: [i64; JOB_DAY_BUCKETS.len()],
    /// The job as the day's window tells it.
    pub attributes: Arc<JobAttributes>,
}

/// The books of a job over all days of a run.
#[derive(Debug, Clone, Default)]
pub struct JobBooks {
    /// A row for each day and pool in which anything is booked, by day, cell and accelerator; queued chips first.
    pub days: Vec<JobDay>,
    /// What was found about its rows on the days of the run.
    pub findings: Findings,
    /// The days of the run of which an allocation, closed and recorded on that day, says that chips were held. Ascending.
    /// No rule can take such a day away: it must be among `days`.
    pub told: Vec<Day>,
}

/// Books a job from its collected rows, those of all tables. `job_id` serves error messages alone.
pub fn book_job(job_id: &str, collected: &[u8], rules: &Rules) -> Result<JobBooks, AccountingError> {
    book_job_in_portions(job_id, collected, rules, SWEPT_TOGETHER)
}

/// Books a job as many days at a time as `most_bytes` of collected rows allow, but at least one.
pub fn book_job_in_portions(
    job_id: &str,
    collected: &[u8],
    rules: &Rules,
    most_bytes: usize,
) -> Result<JobBooks, AccountingError> {
    let mut blocks = blocks(collected)?;
    blocks.retain(|block| rules.reads(block.recorded));
    let mut books = JobBooks::default();
    if blocks.iter().map(Block::len).sum::<usize>() <= most_bytes {
        sweep(job_id, &blocks, rules, &mut books)?;
        return Ok(books);
    }
    // The figures of a day are a function of its window alone, so days can be swept in any portions.
    let mut from = rules.first_day();
    while from <= rules.last_day() {
        let mut portion = rules.for_days(from, from);
        while portion.last_day() < rules.last_day() {
            let more = rules.for_days(from, portion.last_day().plus(1));
            let read = blocks.iter().filter(|block| more.reads(block.recorded));
            if read.map(Block::len).sum::<usize>() > most_bytes {
                break;
            }
            portion = more;
        }
        let read: Vec<Block<'_>> = blocks.iter().filter(|block| portion.reads(block.recorded)).copied().collect();
        sweep(job_id, &read, &portion, &mut books)?;
        from = portion.last_day().plus(1);
    }
    Ok(books)
}

/// Sweeps the time line of a job over the days of some rules.
fn sweep(
    job_id: &str,
    blocks: &[Block<'_>],
    rules: &Rules,
    JobBooks { days, findings, told }: &mut JobBooks,
) -> Result<(), AccountingError> {
    let mut rows = JobRows {
        jobs: read_jobs(blocks, rules, findings)?,
        allocations: read_allocations(blocks, rules, findings)?,
        runtime: read_runtime(blocks, rules, findings)?,
        profiles: read_profiles(blocks, rules, findings)?,
    };
    choose(&mut rows.jobs, rules, findings);
    choose(&mut rows.allocations, rules, findings);
    choose(&mut rows.runtime, rules, findings);
    choose(&mut rows.profiles, rules, findings);
    told.extend(rows.told());
    let mut ledger = Ledger::new(job_id, &rows, rules);
    let Some((first, last)) = ledger.days() else { return Ok(()) };
    for day in first.max(rules.first_day()).through(last.min(rules.last_day())) {
        ledger.book_day(day, days, findings)?;
    }
    Ok(())
}

/// The rows of a job that count on some day of the run.
struct JobRows<'a> {
    jobs: Vec<Counted<JobRow<'a>>>,
    allocations: Vec<Counted<AllocationRow<'a>>>,
    runtime: Vec<Counted<RuntimeRow>>,
    profiles: Vec<Counted<ProfileRow<'a>>>,
}

impl JobRows<'_> {
    /// The days of which an allocation that counts there, closed and recorded on that day, says that chips were held.
    fn told(&self) -> BTreeSet<Day> {
        let says = |counted: &&Counted<AllocationRow<'_>>| {
            let (row, begin) = (&counted.row, counted.row.recorded.midnight());
            let overlap = |end: i64| end.min(begin + MS_PER_DAY) > row.start.max(begin);
            counted.counts_on_its_date() && row.end.is_some_and(overlap)
        };
        self.allocations.iter().filter(says).map(|counted| counted.row.recorded).collect()
    }
}

/// An attempt as a day's window tells it.
#[derive(Debug, Clone, Copy)]
struct Attempt {
    attempt: i64,
    first_start: i64,
    latest_end: i64,
}

/// A job's rows, put in order for the walk over the days.
struct Ledger<'a> {
    job_id: &'a str,
    rules: &'a Rules,
    rows: &'a JobRows<'a>,
    /// The job's pools, in order; and for each allocation row its pool.
    pools: Vec<(Arc<str>, Arc<str>)>,
    pool_of: Vec<usize>,
    progress: Progress<'a>,
    /// The positions of the runtime rows about which something may be found, by the date on which they were recorded.
    doubtful: Vec<(Day, usize)>,
    /// The next runtime row, in the order of starts, that the days so far did not reach.
    next: usize,
    /// Positions of the runtime rows that reach into the day at hand or begin on it.
    at_hand: Vec<usize>,
    /// What each attempt of the day at hand did.
    telemetry: Vec<Telemetry>,
    /// The step rows of the day at hand whose progress may not have survived.
    threatened: Vec<StepRow>,
    unknown: Arc<JobAttributes>,
    /// The attributes that the jobs row at this position gives.
    attributes: Option<(usize, Arc<JobAttributes>)>,
}

impl<'a> Ledger<'a> {
    fn new(job_id: &'a str, rows: &'a JobRows<'a>, rules: &'a Rules) -> Ledger<'a> {
        let mut pools: Vec<(Arc<str>, Arc<str>)> = Vec::new();
        let mut pool_of = Vec::with_capacity(rows.allocations.len());
        let mut position_of: BTreeMap<(&str, &str), usize> = BTreeMap::new();
        for Counted { row, .. } in &rows.allocations {
            let names = (row.cell, row.accelerator);
            let position = *position_of.entry(names).or_insert_with(|| {
                pools.push((names.0.into(), names.1.into()));
                pools.len() - 1
            });
            pool_of.push(position);
        }
        let unknown: Arc<str> = UNKNOWN.into();
        Ledger {
            job_id,
            rules,
            rows,
            pools,
            pool_of,
            progress: Progress::new(&rows.runtime),
            doubtful: doubtful(rows),
            next: 0,
            at_hand: Vec::new(),
            telemetry: Vec::new(),
            threatened: Vec::new(),
            unknown: Arc::new(JobAttributes {
                chips_required: 0,
                size_class: Arc::clone(&unknown),
                axes: vec![unknown; rules.job_axes.len()],
            }),
            attributes: None,
        }
    }

    /// The first and the last day on which anything can be booked or found: those that an allocation reaches, on which the
    /// job is open, or on which a row was recorded of which something may be found. `None` if there is no such day.
    fn days(&self) -> Option<(Day, Day)> {
        let span = |recorded: Day, start: i64, end: Option<i64>| {
            let last = Day::of_instant(latest_end(start, end, recorded));
            (recorded.min(Day::of_instant(start)), recorded.max(last))
        };
        let jobs = self.rows.jobs.iter().map(|Counted { row, .. }| span(row.recorded, row.submit, row.end));
        let allocations =
            self.rows.allocations.iter().map(|Counted { row, .. }| span(row.recorded, row.start, row.end));
        let doubtful = self.doubtful.iter().map(|(recorded, _)| (*recorded, *recorded));
        jobs.chain(allocations)
            .chain(doubtful)
            .reduce(|(first, last), (other_first, other_last)| (first.min(other_first), last.max(other_last)))
    }

    /// Books one day; the days come in order.
    fn book_day(&mut self, day: Day, books: &mut Vec<JobDay>, findings: &mut Findings) -> Result<(), AccountingError> {
        let job_position = self.rows.jobs.iter().position(|counted| counted.counts_on(day));
        let job = job_position.map(|position| &self.rows.jobs[position].row);
        let held: Vec<usize> = (0..self.rows.allocations.len())
            .filter(|position| self.rows.allocations[*position].counts_on(day))
            .collect();
        let (attempts, ends) = self.end_allocations(&held, job);

        self.find_stale_job(day, job, findings);
        self.find_about_allocations(day, job, &held, &ends, findings);
        self.find_about_runtime(day, &attempts, findings);
        self.reach_day(day);
        if job.is_none() && held.is_empty() {
            return Ok(());
        }

        let attributes = self.attributes(job_position);
        let mut booked = DayBooks::new(self.pools.len());
        let holdings = self.holdings(day, &held, &ends);
        self.see_attempts(day, &attempts, job);
        for (attempt, holdings) in &holdings {
            let telemetry = find_attempt(&attempts, *attempt).and_then(|position| self.telemetry.get(position));
            booked.book_attempt(holdings, telemetry, attributes.chips_required);
        }
        if let Some(job) = job {
            booked.book_queue(day, job, &holdings);
        }
        self.write_day(day, job, booked, &attributes, books)
    }

    /// The ends of the day's allocations, and the attempts that they make, in order.
    fn end_allocations(&self, held: &[usize], job: Option<&JobRow<'_>>) -> (Vec<Attempt>, Vec<End>) {
        let mut attempts: Vec<Attempt> = Vec::new();
        // Rows are in the order of their keys, so those of one attempt stand together.
        for position in held {
            let row = &self.rows.allocations[*position].row;
            match attempts.last_mut().filter(|last| last.attempt == row.attempt) {
                Some(last) => last.first_start = last.first_start.min(row.start),
                None => {
                    attempts.push(Attempt { attempt: row.attempt, first_start: row.start, latest_end: i64::MIN });
                }
            }
        }
        let job_end = job.and_then(|job| job.end);
        let mut ends = Vec::with_capacity(held.len());
        let mut at = 0;
        for position in held {
            let row = &self.rows.allocations[*position].row;
            while attempts[at].attempt != row.attempt {
                at += 1;
            }
            let next_start = attempts.get(at + 1).map(|next| next.first_start);
            let by_rule_1 = [next_start, job_end].into_iter().flatten().min();
            let end = end_of(row.start, row.end, row.recorded, by_rule_1);
            attempts[at].latest_end = attempts[at].latest_end.max(end.at);
            ends.push(end);
        }
        (attempts, ends)
    }

    fn find_stale_job(&self, day: Day, job: Option<&JobRow<'_>>, findings: &mut Findings) {
        if job.is_some_and(|job| job.recorded == day && job.end.is_none()) && self.rules.went_on_after(Table::Jobs, day)
        {
            findings.count(day, Table::Jobs, Reason::StaleOpen);
        }
    }

    fn find_about_allocations(
        &self,
        day: Day,
        job: Option<&JobRow<'_>>,
        held: &[usize],
        ends: &[End],
        findings: &mut Findings,
    ) {
        for (position, end) in held.iter().zip(ends) {
            if self.rows.allocations[*position].row.recorded != day {
                continue;
            }
            if end.by_newest_copy && self.rules.went_on_after(Table::Allocations, day) {
                findings.count(day, Table::Allocations, Reason::StaleOpen);
            }
            if job.is_none() {
                findings.count(day, Table::Allocations, Reason::OrphanAllocation);
            }
        }
    }

    fn find_about_runtime(&self, day: Day, attempts: &[Attempt], findings: &mut Findings) {
        let first = self.doubtful.partition_point(|(recorded, _)| *recorded < day);
        let recorded_today = self.doubtful[first..].iter().take_while(|(recorded, _)| *recorded == day);
        for (_, position) in recorded_today {
            let counted = &self.rows.runtime[*position];
            if !counted.counts_on(day) {
                continue;
            }
            let attempt = find_attempt(attempts, counted.row.attempt).map(|position| &attempts[position]);
            if attempt.is_none() {
                findings.count(day, Table::Runtime, Reason::OrphanRuntime);
            }
            let end = self.runtime_end(&counted.row, attempt);
            if end.by_newest_copy && self.rules.went_on_after(Table::Runtime, day) {
                findings.count(day, Table::Runtime, Reason::StaleOpen);
            }
        }
    }

    fn runtime_end(&self, row: &RuntimeRow, attempt: Option<&Attempt>) -> End {
        end_of(row.start, row.end(), row.recorded, attempt.map(|attempt| attempt.latest_end))
    }

    /// Takes up the runtime rows that reach into the day or begin on it, and lays down those that lie before it.
    fn reach_day(&mut self, day: Day) {
        let (begin, end) = (day.midnight(), day.midnight() + MS_PER_DAY);
        let rows = &self.rows.runtime;
        while let Some(counted) = rows.get(self.next).filter(|counted| counted.row.start < end) {
            if counted.row.phase.can_decide() {
                self.at_hand.push(self.next);
            }
            self.next += 1;
        }
        self.at_hand.retain(|position| {
            let row = &rows[*position].row;
            row.start >= begin || latest_end(row.start, row.end(), row.recorded) > begin
        });
    }

    /// What the chips of each attempt with allocations held on the day, by attempt.
    fn holdings(&self, day: Day, held: &[usize], ends: &[End]) -> Vec<(i64, Vec<Holding>)> {
        let (begin, end) = (day.midnight(), day.midnight() + MS_PER_DAY);
        let mut holdings: Vec<(i64, Vec<Holding>)> = Vec::new();
        let mut of_task: Vec<Holding> = Vec::new();
        for (number, position) in held.iter().enumerate() {
            let row = &self.rows.allocations[*position].row;
            let (row_begin, row_end) = (row.start.max(begin), ends[number].at.min(end));
            if row_begin < row_end {
                let pool = self.pool_of[*position];
                of_task.push(Holding { pool, begin: row_begin, end: row_end, chips: row.chips });
            }
            let next = held.get(number + 1).map(|next| &self.rows.allocations[*next].row);
            if next.is_some_and(|next| row.compare_chips(next).is_eq()) {
                continue;
            }
            if !of_task.is_empty() {
                if holdings.last().is_none_or(|(attempt, _)| *attempt != row.attempt) {
                    holdings.push((row.attempt, Vec::new()));
                }
                if let Some((_, of_attempt)) = holdings.last_mut() {
                    hold_largest(&mut of_task, of_attempt);
                }
                of_task.clear();
            }
        }
        holdings
    }

    /// Finds out what each attempt with allocations did on the day.
    fn see_attempts(&mut self, day: Day, attempts: &[Attempt], job: Option<&JobRow<'_>>) {
        let (begin, end) = (day.midnight(), day.midnight() + MS_PER_DAY);
        for telemetry in &mut self.telemetry {
            telemetry.clear();
        }
        if self.telemetry.len() < attempts.len() {
            self.telemetry.resize_with(attempts.len(), Telemetry::default);
        }
        self.threatened.clear();
        let cut = self.progress.cut_of_unclean_end(job, day);
        // Rows of one attempt come one after the other.
        let mut last_found: Option<(i64, Option<usize>)> = None;
        for position in &self.at_hand {
            let counted = &self.rows.runtime[*position];
            let row = &counted.row;
            let found = match last_found {
                Some((attempt, found)) if attempt == row.attempt => found,
                _ => find_attempt(attempts, row.attempt),
            };
            last_found = Some((row.attempt, found));
            let Some(attempt) = found.filter(|_| counted.counts_on(day)) else { continue };
            let row_end = self.runtime_end(row, Some(&attempts[attempt])).at;
            if row.start < begin && row_end <= begin {
                continue;
            }
            let telemetry = &mut self.telemetry[attempt];
            telemetry.is_there = true;
            if row.phase == Phase::Step && self.progress.is_threatened(*position, cut) {
                let (position, productive_until) = (*position, row_end);
                self.threatened.push(StepRow { position, attempt, end: row_end, productive_until });
            } else {
                let stretch = Stretch::of_phase(row.phase, row.start, row_end);
                telemetry.stretches.extend(stretch.and_then(|stretch| stretch.clipped(begin, end)));
            }
        }
        self.progress.settle(&mut self.threatened, day, cut, self.rules);
        for step in &self.threatened {
            let row = &self.rows.runtime[step.position].row;
            let parts = [
                Stretch::of_bucket(Bucket::Productive, row.start, step.productive_until),
                Stretch::of_bucket(Bucket::Lost, step.productive_until, step.end),
            ];
            let parts = parts.into_iter().flatten().filter_map(|part| part.clipped(begin, end));
            self.telemetry[step.attempt].stretches.extend(parts);
        }
        for telemetry in &mut self.telemetry {
            decide(&mut telemetry.stretches);
        }
    }

    /// Ideal and measured time of the day's steps; `None` if no row has a usable prediction.
    fn program_times(&self, day: Day, job: Option<&JobRow<'_>>) -> Option<ProgramTimes> {
        let mut times: Option<ProgramTimes> = None;
        for Counted { row, .. } in self.rows.profiles.iter().filter(|counted| counted.counts_on(day)) {
            if day_of(row) != day {
                continue;
            }
            let chips = job.map_or(0, |job| job.chips_required);
            let chip = || self.chip_of_attempt(day, row.attempt);
            let chip = if row.predicted_step_time_us.is_none() { chip() } else { None };
            if let Some(ideal_us) = ideal_step_time(row, self.rules.ideal_model, chips, chip) {
                times.get_or_insert_default().add(row.steps, ideal_us, row.step_time_us);
            }
        }
        times
    }

    /// What the chips of an attempt can do, if its allocations in the day's window are all of one kind that is known.
    fn chip_of_attempt(&self, day: Day, attempt: i64) -> Option<&'a Accelerator> {
        let of_attempt = self.rows.allocations.iter().filter(|counted| counted.counts_on(day));
        let mut kinds =
            of_attempt.filter(|counted| counted.row.attempt == attempt).map(|counted| counted.row.accelerator);
        let kind = kinds.next()?;
        kinds.all(|other| other == kind).then(|| self.rules.accelerator_on(kind, day)).flatten()
    }

    fn attributes(&mut self, job_position: Option<usize>) -> Arc<JobAttributes> {
        let Some(position) = job_position else { return Arc::clone(&self.unknown) };
        if let Some((_, attributes)) = self.attributes.as_ref().filter(|(of, _)| *of == position) {
            return Arc::clone(attributes);
        }
        let row = &self.rows.jobs[position].row;
        let attributes = Arc::new(JobAttributes {
            chips_required: row.chips_required,
            size_class: self.rules.size_class(row.chips_required).unwrap_or(UNKNOWN).into(),
            axes: row.axes.iter().map(|axis| axis.unwrap_or(UNKNOWN).into()).collect(),
        });
        self.attributes = Some((position, Arc::clone(&attributes)));
        attributes
    }

    /// Appends the rows of a day in which anything is booked.
    fn write_day(
        &self,
        day: Day,
        job: Option<&JobRow<'_>>,
        booked: DayBooks,
        attributes: &Arc<JobAttributes>,
        books: &mut Vec<JobDay>,
    ) -> Result<(), AccountingError> {
        let overflow = || AccountingError::Overflow { what: format!("job `{}`", self.job_id), day };
        let first_of_day = books.len();
        if booked.queued > 0 {
            let mut chip_ms = [0; JOB_DAY_BUCKETS.len()];
            chip_ms[Bucket::Queued.index()] = i64::try_from(booked.queued).map_err(|_| overflow())?;
            let accelerator = job.and_then(|job| job.accelerator).map(Arc::from);
            books.push(JobDay { day, cell: None, accelerator, chip_ms, attributes: Arc::clone(attributes) });
        }
        let mut times: Option<Option<ProgramTimes>> = None;
        for (pool, booked) in booked.pools.iter().enumerate() {
            if booked.iter().all(|quantity| *quantity == 0) {
                continue;
            }
            let mut chip_ms = [0; JOB_DAY_BUCKETS.len()];
            for (quantity, booked) in chip_ms.iter_mut().zip(booked) {
                *quantity = i64::try_from(*booked).map_err(|_| overflow())?;
            }
            let productive = chip_ms[Bucket::Productive.index()];
            if productive > 0 {
                let times = times.get_or_insert_with(|| self.program_times(day, job));
                if let Some(times) = times {
                    chip_ms[Bucket::Profiled.index()] = productive;
                    chip_ms[Bucket::Ideal.index()] = times.ideal_of(productive).ok_or_else(overflow)?;
                }
            }
            let (cell, accelerator) = self.pools[pool].clone();
            let (cell, accelerator) = (Some(cell), Some(accelerator));
            books.push(JobDay { day, cell, accelerator, chip_ms, attributes: Arc::clone(attributes) });
        }
        books[first_of_day..]
            .sort_unstable_by(|left, right| (&left.cell, &left.accelerator).cmp(&(&right.cell, &right.accelerator)));
        Ok(())
    }
}

/// The position of an attempt among those of a day.
fn find_attempt(attempts: &[Attempt], attempt: i64) -> Option<usize> {
    attempts.binary_search_by_key(&attempt, |attempt| attempt.attempt).ok()
}

/// What an attempt did on a day.
#[derive(Debug, Default)]
struct Telemetry {
    /// Whether any row says something about the day, though it be an empty one.
    is_there: bool,
    stretches: Vec<Stretch>,
}

impl Telemetry {
    fn clear(&mut self) {
        self.is_there = false;
        self.stretches.clear();
    }
}

/// The runtime rows about which something may be found: those that are open, and those of which it is not plain that the
/// window of their date holds an allocation of their attempt. By date.
fn doubtful(rows: &JobRows<'_>) -> Vec<(Day, usize)> {
    // Attempt -> the days on which allocations of it count, if they are days on end. Rows are in the order of attempts.
    let mut spans: Vec<(i64, Option<(Day, Day)>)> = Vec::new();
    for Counted { row, first, last } in &rows.allocations {
        match spans.last_mut().filter(|(attempt, _)| *attempt == row.attempt) {
            None => spans.push((row.attempt, Some((*first, *last)))),
            Some((_, span)) => {
                *span = span
                    .filter(|(begin, end)| *first <= end.plus(1) && *begin <= last.plus(1))
                    .map(|(begin, end)| (begin.min(*first), end.max(*last)));
            }
        }
    }
    let is_plain = |row: &RuntimeRow| {
        let span = spans.binary_search_by_key(&row.attempt, |(attempt, _)| *attempt).ok().and_then(|at| spans[at].1);
        row.end().is_some() && span.is_some_and(|(first, last)| first <= row.recorded && row.recorded <= last)
    };
    let doubtful = rows.runtime.iter().enumerate().filter(|(_, counted)| !is_plain(&counted.row));
    let mut doubtful: Vec<_> = doubtful.map(|(position, counted)| (counted.row.recorded, position)).collect();
    doubtful.sort_unstable();
    doubtful
}

/// What is booked on one day, before it is known to fit into 64 bits.
struct DayBooks {
    /// For each pool of the job, the quantities in the order of [`JOB_DAY_BUCKETS`].
    pools: Vec<[i128; JOB_DAY_BUCKETS.len()]>,
    queued: i128,
}

impl DayBooks {
    fn new(pools: usize) -> DayBooks {
        DayBooks { pools: vec![[0; JOB_DAY_BUCKETS.len()]; pools], queued: 0 }
    }

    /// Books what an attempt held; `telemetry` is what it did, `None` if it left no word on the day.
    fn book_attempt(&mut self, holdings: &[Holding], telemetry: Option<&Telemetry>, chips_required: i64) {
        let telemetry = telemetry.filter(|telemetry| telemetry.is_there);
        let stretches = telemetry.map_or(&[][..], |telemetry| telemetry.stretches.as_slice());
        let when_nothing_is_open = if telemetry.is_some() { Bucket::Stall } else { Bucket::Unobserved };
        let mut next = 0;
        let pools = &mut self.pools;
        walk(holdings, pools.len(), |begin, end, chips_in, held| {
            let mut ms_of = [0_i64; JOB_DAY_BUCKETS.len()];
            if held < i128::from(chips_required) {
                ms_of[Bucket::Partial.index()] = end - begin;
            } else {
                ms_of[Bucket::Allocated.index()] = end - begin;
                let mut unaccounted = end - begin;
                while stretches.get(next).is_some_and(|stretch| stretch.end <= begin) {
                    next += 1;
                }
                for stretch in stretches[next..].iter().take_while(|stretch| stretch.begin < end) {
                    let ms = stretch.end.min(end) - stretch.begin.max(begin);
                    ms_of[stretch.bucket().index()] += ms;
                    unaccounted -= ms;
                }
                ms_of[when_nothing_is_open.index()] += unaccounted;
            }
            for (booked, chips) in pools.iter_mut().zip(chips_in).filter(|(_, chips)| **chips != 0) {
                for (booked, ms) in booked.iter_mut().zip(ms_of) {
                    *booked += chips * i128::from(ms);
                }
            }
        });
    }

    /// Books the chips that a job asked for and did not hold while it was open.
    fn book_queue(&mut self, day: Day, job: &JobRow<'_>, holdings: &[(i64, Vec<Holding>)]) {
        let (begin, end) = (day.midnight(), day.midnight() + MS_PER_DAY);
        let begin = job.submit.max(begin);
        let end = end_of(job.submit, job.end, job.recorded, None).at.min(end);
        if begin >= end || job.chips_required == 0 {
            return;
        }
        let required = i128::from(job.chips_required);
        self.queued = required * i128::from(end - begin);
        // What all attempts hold together counts, whichever pool it is in.
        let all: Vec<Holding> = holdings
            .iter()
            .flat_map(|(_, holdings)| holdings)
            .map(|holding| Holding { pool: 0, begin: holding.begin.max(begin), end: holding.end.min(end), ..*holding })
            .filter(|holding| holding.begin < holding.end)
            .collect();
        let queued = &mut self.queued;
        walk(&all, 1, |begin, end, _, held| *queued -= held.min(required) * i128::from(end - begin));
    }
}
