//! A job's books: what its chips did on every day of a run, in one pass over its rows.
//!
//! The copies of a row are compared once and give each copy the days on which it counts; a day of the run then takes the
//! rows that count on it, and those alone. Days are visited in order, with the runtime rows that reach into the day kept
//! at hand, so that a row is looked at on the days that it covers and not on all days of the run.

use std::collections::BTreeMap;
use std::sync::Arc;

use goodput_model::contract::UNKNOWN;
use goodput_model::{Bucket, Day, JOB_DAY_BUCKETS, MS_PER_DAY, Reason, Table};

use crate::copies::{Counted, choose};
use crate::ends::{End, end_of, latest_end};
use crate::findings::Findings;
use crate::phases::{Stretch, decide};
use crate::program::{ProgramTimes, day_of, ideal_step_time};
use crate::progress::{Progress, StepRow};
use crate::rows::{AllocationRow, JobRow, Phase, ProfileRow, RuntimeRow};
use crate::rules::Accelerator;
use crate::scheduling::{Holding, hold_largest, walk};
use crate::{AccountingError, Rules, encoding};

/// The collected rows of one job, as [`encoding`] writes them; empty where a table has none.
#[derive(Debug, Clone, Copy, Default)]
pub struct CollectedJob<'a> {
    /// Rows of `jobs`.
    pub jobs: &'a [u8],
    /// Rows of `allocations`.
    pub allocations: &'a [u8],
    /// Rows of `runtime`.
    pub runtime: &'a [u8],
    /// Rows of `profiles`.
    pub profiles: &'a [u8],
}

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
}

/// Books a job. `job_id` serves error messages alone.
pub fn book_job(job_id: &str, collected: CollectedJob<'_>, rules: &Rules) -> Result<JobBooks, AccountingError> {
    let mut findings = Findings::default();
    let jobs = encoding::read_jobs(collected.jobs, rules, &mut findings)?;
    let allocations = encoding::read_allocations(collected.allocations, rules, &mut findings)?;
    let runtime = encoding::read_runtime(collected.runtime, rules, &mut findings)?;
    let profiles = encoding::read_profiles(collected.profiles, rules, &mut findings)?;
    let rows = JobRows {
        jobs: choose(jobs, rules, &mut findings),
        allocations: choose(allocations, rules, &mut findings),
        runtime: choose(runtime, rules, &mut findings),
        profiles: choose(profiles, rules, &mut findings),
    };
    let mut days = Vec::new();
    if let Some((first, last)) = rows.days() {
        let mut ledger = Ledger::new(job_id, &rows, rules);
        for day in first.through(last) {
            ledger.book_day(day, &mut days, &mut findings)?;
        }
    }
    Ok(JobBooks { days, findings })
}

/// The rows of a job that count on some day of the run.
struct JobRows {
    jobs: Vec<Counted<JobRow>>,
    allocations: Vec<Counted<AllocationRow>>,
    runtime: Vec<Counted<RuntimeRow>>,
    profiles: Vec<Counted<ProfileRow>>,
}

impl JobRows {
    /// The first and the last day on which any row counts.
    fn days(&self) -> Option<(Day, Day)> {
        fn span<R>(rows: &[Counted<R>]) -> Option<(Day, Day)> {
            let first = rows.iter().map(|counted| counted.first).min()?;
            let last = rows.iter().map(|counted| counted.last).max()?;
            Some((first, last))
        }
        // Profiles alone book nothing, and nothing more is found about them.
        let spans = [span(&self.jobs), span(&self.allocations), span(&self.runtime)];
        spans
            .into_iter()
            .flatten()
            .reduce(|(first, last), (other_first, other_last)| (first.min(other_first), last.max(other_last)))
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
    rows: &'a JobRows,
    /// The job's pools, in order; and for each allocation row its pool.
    pools: Vec<(Arc<str>, Arc<str>)>,
    pool_of: Vec<usize>,
    progress: Progress<'a>,
    /// Positions of runtime rows by the date on which they were recorded, for what is found about them.
    recorded: Vec<(Day, usize)>,
    /// The next runtime row, in the order of starts, that the days so far did not reach.
    next: usize,
    /// Positions of the runtime rows that reach into the day at hand or begin on it.
    at_hand: Vec<usize>,
    unknown: Arc<JobAttributes>,
    /// The attributes that the jobs row at this position gives.
    attributes: Option<(usize, Arc<JobAttributes>)>,
}

impl<'a> Ledger<'a> {
    fn new(job_id: &'a str, rows: &'a JobRows, rules: &'a Rules) -> Ledger<'a> {
        let mut pools: Vec<(Arc<str>, Arc<str>)> = Vec::new();
        let mut pool_of = Vec::with_capacity(rows.allocations.len());
        let mut position_of: BTreeMap<(&str, &str), usize> = BTreeMap::new();
        for Counted { row, .. } in &rows.allocations {
            let names = (row.cell.as_str(), row.accelerator.as_str());
            let position = *position_of.entry(names).or_insert_with(|| {
                pools.push((names.0.into(), names.1.into()));
                pools.len() - 1
            });
            pool_of.push(position);
        }
        let mut recorded: Vec<_> =
            rows.runtime.iter().enumerate().map(|(position, counted)| (counted.row.recorded, position)).collect();
        recorded.sort_unstable();
        let unknown: Arc<str> = UNKNOWN.into();
        Ledger {
            job_id,
            rules,
            rows,
            pools,
            pool_of,
            progress: Progress::new(&rows.runtime),
            recorded,
            next: 0,
            at_hand: Vec::new(),
            unknown: Arc::new(JobAttributes {
                chips_required: 0,
                size_class: Arc::clone(&unknown),
                axes: vec![unknown; rules.job_axes.len()],
            }),
            attributes: None,
        }
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
        let stretches = self.stretches(day, &attempts, job);
        for (attempt, holdings) in &holdings {
            let telemetry = stretches.get(attempt);
            booked.book_attempt(holdings, telemetry, attributes.chips_required);
        }
        if let Some(job) = job {
            booked.book_queue(day, job, &holdings);
        }
        self.write_day(day, job, booked, &attributes, books)
    }

    /// The ends of the day's allocations, and the attempts that they make, in order.
    fn end_allocations(&self, held: &[usize], job: Option<&JobRow>) -> (Vec<Attempt>, Vec<End>) {
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

    fn find_stale_job(&self, day: Day, job: Option<&JobRow>, findings: &mut Findings) {
        if job.is_some_and(|job| job.recorded == day && job.end.is_none()) && self.rules.went_on_after(Table::Jobs, day)
        {
            findings.count(day, Table::Jobs, Reason::StaleOpen);
        }
    }

    fn find_about_allocations(
        &self,
        day: Day,
        job: Option<&JobRow>,
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
        let first = self.recorded.partition_point(|(recorded, _)| *recorded < day);
        let recorded_today = self.recorded[first..].iter().take_while(|(recorded, _)| *recorded == day);
        for (_, position) in recorded_today {
            let counted = &self.rows.runtime[*position];
            if !counted.counts_on(day) {
                continue;
            }
            let attempt = find_attempt(attempts, counted.row.attempt);
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
        end_of(row.start, row.end, row.recorded, attempt.map(|attempt| attempt.latest_end))
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
            row.start >= begin || latest_end(row.start, row.end, row.recorded) > begin
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

    /// What each attempt with allocations did on the day; attempts without telemetry are absent.
    fn stretches(&self, day: Day, attempts: &[Attempt], job: Option<&JobRow>) -> BTreeMap<i64, Vec<Stretch>> {
        let (begin, end) = (day.midnight(), day.midnight() + MS_PER_DAY);
        let mut stretches: BTreeMap<i64, Vec<Stretch>> = BTreeMap::new();
        let mut steps: Vec<StepRow> = Vec::new();
        for position in &self.at_hand {
            let counted = &self.rows.runtime[*position];
            let row = &counted.row;
            let Some(attempt) = find_attempt(attempts, row.attempt).filter(|_| counted.counts_on(day)) else {
                continue;
            };
            let row_end = self.runtime_end(row, Some(attempt)).at;
            if row.start < begin && row_end <= begin {
                continue;
            }
            let of_attempt = stretches.entry(row.attempt).or_default();
            if row.phase == Phase::Step {
                steps.push(StepRow { position: *position, end: row_end, productive_until: row_end });
            } else {
                let stretch = Stretch::of_phase(&row.phase, row.start, row_end);
                of_attempt.extend(stretch.and_then(|stretch| stretch.clipped(begin, end)));
            }
        }
        let cut = self.progress.cut_of_unclean_end(job, day);
        self.progress.settle(&mut steps, day, cut, self.rules);
        for step in steps {
            let row = &self.rows.runtime[step.position].row;
            let parts = [
                Stretch::of_bucket(Bucket::Productive, row.start, step.productive_until),
                Stretch::of_bucket(Bucket::Lost, step.productive_until, step.end),
            ];
            let parts = parts.into_iter().flatten().filter_map(|part| part.clipped(begin, end));
            stretches.entry(row.attempt).or_default().extend(parts);
        }
        for of_attempt in stretches.values_mut() {
            decide(of_attempt);
        }
        stretches
    }

    /// Ideal and measured time of the day's steps; `None` if no row has a usable prediction.
    fn program_times(&self, day: Day, job: Option<&JobRow>) -> Option<ProgramTimes> {
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
            of_attempt.filter(|counted| counted.row.attempt == attempt).map(|counted| counted.row.accelerator.as_str());
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
            axes: row.axes.iter().map(|axis| axis.as_deref().unwrap_or(UNKNOWN).into()).collect(),
        });
        self.attributes = Some((position, Arc::clone(&attributes)));
        attributes
    }

    /// Appends the rows of a day in which anything is booked.
    fn write_day(
        &self,
        day: Day,
        job: Option<&JobRow>,
        booked: DayBooks,
        attributes: &Arc<JobAttributes>,
        books: &mut Vec<JobDay>,
    ) -> Result<(), AccountingError> {
        let overflow = || AccountingError::Overflow { what: format!("job `{}`", self.job_id), day };
        let first_of_day = books.len();
        if booked.queued > 0 {
            let mut chip_ms = [0; JOB_DAY_BUCKETS.len()];
            chip_ms[Bucket::Queued.index()] = i64::try_from(booked.queued).map_err(|_| overflow())?;
            let accelerator = job.and_then(|job| job.accelerator.as_deref()).map(Arc::from);
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

fn find_attempt(attempts: &[Attempt], attempt: i64) -> Option<&Attempt> {
    let position = attempts.binary_search_by_key(&attempt, |attempt| attempt.attempt).ok()?;
    attempts.get(position)
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
    fn book_attempt(&mut self, holdings: &[Holding], telemetry: Option<&Vec<Stretch>>, chips_required: i64) {
        let stretches = telemetry.map_or(&[][..], Vec::as_slice);
        let when_nothing_is_open = if telemetry.is_some() { Bucket::Stall } else { Bucket::Unobserved };
        let mut next = 0;
        let pools = &mut self.pools;
        walk(holdings, pools.len(), |begin, end, chips_in, held| {
            let mut book = |bucket: Bucket, ms: i64| {
                for (booked, chips) in pools.iter_mut().zip(chips_in) {
                    booked[bucket.index()] += chips * i128::from(ms);
                }
            };
            if held < i128::from(chips_required) {
                book(Bucket::Partial, end - begin);
                return;
            }
            book(Bucket::Allocated, end - begin);
            let mut unaccounted = end - begin;
            while stretches.get(next).is_some_and(|stretch| stretch.end <= begin) {
                next += 1;
            }
            for stretch in stretches[next..].iter().take_while(|stretch| stretch.begin < end) {
                let ms = stretch.end.min(end) - stretch.begin.max(begin);
                book(stretch.bucket(), ms);
                unaccounted -= ms;
            }
            if unaccounted > 0 {
                book(when_nothing_is_open, unaccounted);
            }
        });
    }

    /// Books the chips that a job asked for and did not hold while it was open.
    fn book_queue(&mut self, day: Day, job: &JobRow, holdings: &[(i64, Vec<Holding>)]) {
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
