//! What a job's attempt leaves behind: rows for the record, and chip-time in the books, from the same events.

use std::sync::Arc;

use goodput_model::Bucket;

use crate::attempt::Activity;
use crate::flaws::Flaw;
use crate::jobs::{Job, Purpose};
use crate::profile::profile;
use crate::progress::Stretch;
use crate::record::{Record, Report};
use crate::rows::{AllocationRow, JobRow, Phase};

/// A row of a phase without steps.
fn told(phase: Phase, start: i64, end: Option<i64>) -> Report {
    Report { phase, start, end, first_step: None, last_step: None }
}

impl Job {
    /// Books the chips that it holds, and those that it waits for, up to `now`, which is on this day or ends it.
    pub(crate) fn book_chips(&mut self, now: i64, record: &mut Record) {
        let required = if self.facts.is_listed { self.facts.chips_required } else { 0 };
        loop {
            let next = self.attempt.as_ref().and_then(|attempt| {
                let task = attempt.tasks.get(attempt.started)?;
                (task.start <= now).then_some((task.start, task.chips))
            });
            let to = next.map_or(now, |(start, _)| start);
            let ms = to - self.booked_to;
            self.booked_to = to;
            let held = self.attempt.as_ref().map_or(0, |attempt| attempt.held);
            if ms > 0 {
                if held >= required && held > 0 {
                    record.book(self, Bucket::Allocated, held * ms);
                    if let Some(attempt) = &mut self.attempt {
                        attempt.silent += held * ms;
                    }
                } else if held > 0 {
                    record.book(self, Bucket::Partial, held * ms);
                }
                if required > held
                    && let Some(day) = record.ledger.job_today(&mut self.account, &self.facts)
                {
                    day.queued += (required - held) * ms;
                }
            }
            match (next, &mut self.attempt) {
                (Some((_, chips)), Some(attempt)) => {
                    attempt.held += chips;
                    attempt.started += 1;
                }
                _ => return,
            }
        }
    }

    /// Books what no activity accounts for, at the end of a day or of the attempt.
    fn book_silence(&mut self, record: &mut Record) {
        let Some(attempt) = &mut self.attempt else { return };
        let bucket = if attempt.has_reported { Bucket::Stall } else { Bucket::Unobserved };
        let silent = std::mem::take(&mut attempt.silent);
        attempt.has_reported = false;
        if silent != 0 {
            record.book(self, bucket, silent);
        }
    }

    /// Books an activity that was reported, from where it is booked up to `to`, a later instant of this day or its end.
    fn book_activity(&mut self, bucket: Bucket, to: i64, record: &mut Record) {
        let Some(attempt) = &mut self.attempt else { return };
        let chip_ms = self.chips * (to - attempt.booked_to);
        attempt.booked_to = to;
        attempt.silent -= chip_ms;
        attempt.has_reported = true;
        record.book(self, bucket, chip_ms);
    }

    fn report(&mut self, report: Report, may_be_late: bool, record: &mut Record) {
        let Some(number) = self.attempt.as_ref().map(|attempt| attempt.number) else { return };
        // A row of which an open copy is recorded already stays as it is.
        let is_whole = report.start >= record.today.midnight() && report.end.is_some();
        if self.is_observed {
            record.report(self, number, report, may_be_late && is_whole);
        }
    }

    /// Ends the current activity at `now`, at its planned end or before.
    pub(crate) fn close(&mut self, now: i64, record: &mut Record) {
        let Some(attempt) = &self.attempt else { return };
        let (since, is_complete) = (attempt.since, now >= attempt.until);
        let is_told = self.is_observed && !attempt.is_forgotten && now > since;
        let Some((phase, bucket)) = attempt.doing(self.plan.purpose) else { return };
        match attempt.activity {
            Activity::Steps { first, count, pace } => {
                let done = count.min((now - since) / pace);
                self.next_step = first + done;
                if !is_told {
                    return;
                }
                if self.plan.purpose == Purpose::Serving {
                    self.report(told(phase, since, Some(now)), true, record);
                    self.book_activity(bucket, now, record);
                    self.wait_inside(since, now, record);
                } else {
                    self.close_steps((first, done, pace), since, now, record);
                }
                profile(self, since, now, pace, record);
            }
            Activity::Saving(saved_to) => {
                // The copy to the host saves nothing: the steps are safe when they have left it.
                let is_safe = is_complete && !self.plan.saves_async;
                if is_safe {
                    self.commit(saved_to, record);
                }
                if is_told {
                    let last_step = is_safe.then_some(saved_to - 1);
                    self.report(Report { last_step, ..told(phase, since, Some(now)) }, false, record);
                    self.book_activity(bucket, now, record);
                }
            }
            _ if !is_told => {}
            _ => {
                let can_break = [Phase::DataWait, Phase::Idle].contains(&phase) && since >= record.today.midnight();
                if can_break && record.flaws.strikes(Flaw::Erase) {
                    self.report(told(Phase::Missing, since, Some(now)), false, record);
                } else {
                    self.report(told(phase, since, Some(now)), true, record);
                    self.book_activity(bucket, now, record);
                }
            }
        }
    }

    /// Reports steps up to the last one that was completed; of one that was cut off nobody tells.
    fn close_steps(&mut self, (first, done, pace): (i64, i64, i64), since: i64, now: i64, record: &mut Record) {
        let Some(attempt) = &self.attempt else { return };
        let (number, booked_to) = (attempt.number, attempt.booked_to);
        let end = since + done * pace;
        if done == 0 {
            // An open copy may be recorded, which must be closed.
            if since < record.today.midnight() {
                self.report(told(Phase::Step, since, Some(now)), false, record);
                self.book_activity(Bucket::Productive, now, record);
            }
            return;
        }
        let last = first + done - 1;
        let may_be_late = self.progress.has_reported(number);
        let row = Report { first_step: Some(first), last_step: Some(last), ..told(Phase::Step, since, Some(end)) };
        self.report(row, may_be_late, record);
        let mut wait = (since, since);
        if end > booked_to {
            self.book_activity(Bucket::Productive, end, record);
            wait = self.wait_inside(since, end, record);
        } else {
            // It was booked until midnight, and its last step was completed before.
            let silent = self.chips * (booked_to - end);
            let yesterday = record.today.plus(-1);
            let (from, to) = (Bucket::Productive, Bucket::Stall);
            record.ledger.correct(&self.account, yesterday, self.pool, from, to, silent);
        }
        let (pool, chips) = (self.pool, self.chips);
        let steps = Stretch { attempt: number, first, last, start: since, pace, wait, pool, chips };
        self.progress.report(steps, record.today, record.settle, &self.account, &mut record.ledger);
    }

    /// Sometimes work waits for data without ending its own row, and data is read beside it; when it waited.
    fn wait_inside(&mut self, since: i64, end: i64, record: &mut Record) -> (i64, i64) {
        let never = (since, since);
        let lasts = (end - since) / 12;
        let start = since + (end - since) / 3;
        // Rows are recorded on the day on which they end.
        if lasts == 0 || start < record.today.midnight() {
            return never;
        }
        if record.flaws.strikes(Flaw::Skew) {
            let skewed = end - lasts;
            let before = skewed - record.flaws.skew();
            self.report(told(Phase::DataWait, skewed, Some(before)), false, record);
        }
        if self.plan.reads_async && self.draw.per_mille(60) {
            self.report(told(Phase::DataAsync, start, Some(end)), true, record);
        }
        if !self.draw.per_mille(60) {
            return never;
        }
        let wait = (start, start + lasts);
        self.report(told(Phase::DataWait, wait.0, Some(wait.1)), true, record);
        let chip_ms = self.chips * lasts;
        record.book(self, Bucket::Productive, -chip_ms);
        record.book(self, Bucket::DataWait, chip_ms);
        wait
    }

    fn commit(&mut self, saved_to: i64, record: &Record) {
        if self.is_observed {
            self.progress.commit(saved_to, record.today);
        } else {
            self.progress.saved_to = saved_to;
        }
    }

    /// Ends the save beside the work: complete, or cut off.
    pub(crate) fn close_save(&mut self, now: i64, record: &mut Record) {
        let Some(save) = self.attempt.as_mut().and_then(|attempt| attempt.save.take()) else { return };
        let is_complete = now >= save.end;
        if is_complete {
            self.commit(save.saved_to, record);
        }
        let last_step = is_complete.then_some(save.saved_to - 1);
        let row = Report { last_step, ..told(Phase::CheckpointAsync, save.start, Some(now)) };
        self.report(row, false, record);
    }

    /// Gives back the chips of the first task, which failed.
    pub(crate) fn give_back_first(&mut self, now: i64, reason: &'static str, record: &mut Record) {
        self.book_chips(now, record);
        let Some(attempt) = &mut self.attempt else { return };
        if attempt.started > 0 {
            attempt.held -= attempt.tasks[0].chips;
            attempt.first_is_gone = true;
            record.allocate(self.allocation(0, Some((now, reason)), record));
        }
    }

    /// Gives back all chips, which ends the attempt.
    pub(crate) fn give_back(&mut self, now: i64, reason: &'static str, record: &mut Record) {
        self.book_chips(now, record);
        self.book_silence(record);
        for task in self.holding_tasks(now) {
            record.allocate(self.allocation(task, Some((now, reason)), record));
        }
        self.attempt = None;
    }

    /// The tasks that began to hold chips before `now`. Tasks that were yet to come never held anything.
    fn holding_tasks(&self, now: i64) -> Vec<usize> {
        let Some(attempt) = &self.attempt else { return Vec::new() };
        let is_held = |task: &usize| attempt.tasks[*task].start < now && (*task > 0 || !attempt.first_is_gone);
        (0..attempt.tasks.len()).filter(is_held).collect()
    }

    fn allocation(&self, task: usize, ended: Option<(i64, &'static str)>, record: &Record) -> AllocationRow {
        let attempt = self.attempt.as_ref();
        let held = attempt.and_then(|attempt| attempt.tasks.get(task));
        AllocationRow {
            job: Arc::clone(&self.facts),
            attempt: attempt.map_or(0, |attempt| attempt.number),
            task,
            place: record.places[self.pool],
            chips: held.map_or(0, |task| task.chips),
            start: held.map_or(0, |task| task.start),
            ended,
        }
    }

    /// Records and books what is open at the end of a day.
    pub(crate) fn end_day(&mut self, midnight: i64, record: &mut Record) {
        self.book_chips(midnight, record);
        if self.facts.is_listed {
            record.rows.jobs.push(JobRow { job: Arc::clone(&self.facts), ended: None });
        }
        for task in self.holding_tasks(midnight) {
            record.allocate(self.allocation(task, None, record));
        }
        let Some(attempt) = &self.attempt else { return };
        let (since, save) = (attempt.since, attempt.save.as_ref().map(|save| save.start));
        let first_step = match attempt.activity {
            Activity::Steps { first, .. } if self.plan.purpose != Purpose::Serving => Some(first),
            _ => None,
        };
        let is_told = self.is_observed && !attempt.is_forgotten;
        let doing = attempt.doing(self.plan.purpose).filter(|_| is_told);
        if let Some((phase, bucket)) = doing {
            self.report(Report { first_step, ..told(phase, since, None) }, false, record);
            self.book_activity(bucket, midnight, record);
            if phase != Phase::Checkpoint
                && record.flaws.strikes(Flaw::Forget)
                && let Some(attempt) = &mut self.attempt
            {
                attempt.is_forgotten = true;
            }
        }
        if let Some(start) = save {
            self.report(told(Phase::CheckpointAsync, start, None), false, record);
        }
        self.book_silence(record);
    }
}
