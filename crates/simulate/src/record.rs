//! What is recorded on a day, and what is true of it.

use std::sync::Arc;

use goodput_model::{Bucket, Day};

use crate::Simulation;
use crate::flaws::{Flaw, Flaws};
use crate::jobs::Job;
use crate::ledger::Ledger;
use crate::rows::{AllocationRow, JobFacts, JobRow, Partition, Phase, Place, RuntimeRow};

/// The rows of the day at hand, the books, and what goes wrong between the two.
#[derive(Debug)]
pub(crate) struct Record {
    pub(crate) rows: Partition,
    pub(crate) ledger: Ledger,
    pub(crate) flaws: Flaws,
    pub(crate) today: Day,
    pub(crate) settle: i32,
    pub(crate) places: Vec<Place>,
}

/// A row of runtime that a job reports.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Report {
    pub(crate) phase: Phase,
    pub(crate) start: i64,
    pub(crate) end: Option<i64>,
    pub(crate) first_step: Option<i64>,
    pub(crate) last_step: Option<i64>,
}

impl Record {
    pub(crate) fn new(simulation: &Simulation, places: Vec<Place>, last_day: Day) -> Record {
        Record {
            rows: Partition::default(),
            ledger: Ledger::new(places.len()),
            flaws: Flaws::new(simulation, last_day),
            today: simulation.first_day,
            settle: i32::try_from(simulation.settle_days).unwrap_or(i32::MAX),
            places,
        }
    }

    /// Begins a day: with empty partitions, but for what was owed to it.
    pub(crate) fn begin(&mut self, day: Day) {
        self.today = day;
        self.rows.clear();
        self.ledger.begin(day);
        let owed = self.flaws.take_due(day);
        self.rows.jobs.extend(owed.jobs);
        self.rows.allocations.extend(owed.allocations);
        for (job, row) in owed.runtime {
            self.push_late(job, row);
        }
        let (stray, rows) = self.flaws.stray(day);
        for row in rows {
            self.push_late(Arc::clone(&stray), row);
        }
    }

    fn push_late(&mut self, job: Arc<JobFacts>, row: RuntimeRow) {
        let reporter = reporter_number(&self.rows);
        self.rows.reporters.push(job);
        self.rows.runtime.push(RuntimeRow { reporter, ..row });
    }

    /// Books chip-ms of a job on this day.
    pub(crate) fn book(&mut self, job: &mut Job, bucket: Bucket, chip_ms: i64) {
        let pool = job.pool;
        if let Some(day) = self.ledger.job_today(&mut job.account, &job.facts) {
            day.add(pool, bucket, chip_ms);
        }
    }

    /// Records a row of runtime. One that may be late matters to no day but this.
    pub(crate) fn report(&mut self, job: &mut Job, attempt: i64, report: Report, may_be_late: bool) {
        let reporter = match job.reporter {
            Some((day, reporter)) if day == self.today => reporter,
            _ => {
                let reporter = reporter_number(&self.rows);
                self.rows.reporters.push(Arc::clone(&job.facts));
                job.reporter = Some((self.today, reporter));
                reporter
            }
        };
        let Report { phase, start, end, first_step, last_step } = report;
        let row = RuntimeRow { reporter, phase, attempt, start, end, first_step, last_step };
        if may_be_late {
            if self.flaws.strikes(Flaw::Delay)
                && let Some(owed) = self.flaws.owe(self.today)
            {
                owed.runtime.push((Arc::clone(&job.facts), row));
                return;
            }
            if self.flaws.strikes(Flaw::RepeatLater)
                && let Some(owed) = self.flaws.owe(self.today)
            {
                owed.runtime.push((Arc::clone(&job.facts), row));
            }
        }
        if self.flaws.strikes(Flaw::Repeat) {
            self.rows.runtime.push(row);
        }
        self.rows.runtime.push(row);
    }

    /// Records an allocation.
    pub(crate) fn allocate(&mut self, row: AllocationRow) {
        if row.ended.is_some()
            && self.flaws.strikes(Flaw::DelayAllocation)
            && let Some(owed) = self.flaws.owe(self.today)
        {
            owed.allocations.push(row);
            return;
        }
        if self.flaws.strikes(Flaw::RepeatAllocation) {
            self.rows.allocations.push(row.clone());
        }
        self.rows.allocations.push(row);
    }

    /// Records the end of a job; the day on which that is.
    pub(crate) fn end_job(&mut self, job: &Job, end: i64, state: &'static str) -> Day {
        let row = JobRow { job: Arc::clone(&job.facts), ended: Some((end, state)) };
        let day = if self.flaws.strikes(Flaw::DelayJob) { self.flaws.due(self.today) } else { self.today };
        if day > self.today {
            self.flaws.owed_on(day).jobs.push(row);
        } else {
            self.rows.jobs.push(row);
        }
        day
    }
}

fn reporter_number(rows: &Partition) -> u32 {
    u32::try_from(rows.reporters.len()).unwrap_or(u32::MAX)
}
