//! What is wrong with telemetry in real life: a few rows a day are late, doubled, broken or never heard of again.

use goodput_model::Day;

use super::draw::Draw;
use super::{HOUR, MINUTE};
use crate::telemetry::{Partition, RuntimeRow};

/// Rows of runtime per flaw of each kind and day, once there are that many.
const ROWS_PER_FLAW: usize = 5_000;

/// Spoils telemetry, and remembers what it owes to later days.
#[derive(Debug)]
pub(super) struct Flaws {
    draw: Draw,
    /// Rows that arrive late, with the day on which they do.
    late: Vec<(Day, RuntimeRow)>,
    /// Open rows of which nothing more will be recorded.
    forgotten: Vec<RuntimeRow>,
}

impl Flaws {
    pub(super) fn new(seed: u64) -> Flaws {
        Flaws { draw: Draw::new(seed, 2), late: Vec::new(), forgotten: Vec::new() }
    }

    /// Spoils what was recorded on a day. Held chips stay what they are, so that the books of the pools stay sound.
    pub(super) fn spoil(&mut self, day: Day, rows: &mut Partition) {
        rows.runtime.retain(|row| !self.forgotten.iter().any(|forgotten| is_same(forgotten, row)));
        for _ in 0..=rows.runtime.len() / ROWS_PER_FLAW {
            self.repeat(rows);
            self.delay(day, rows);
            self.skew(day, rows);
            self.rename(day, rows);
            self.forget(rows);
            self.erase(day, rows);
        }
        self.add_strays(day, rows);
        let due = self.late.iter().filter(|(due, _)| *due == day).map(|(_, row)| row.clone());
        rows.runtime.extend(due);
        self.late.retain(|(due, _)| *due > day);
    }

    /// A producer sends twice.
    fn repeat(&mut self, rows: &mut Partition) {
        if !rows.runtime.is_empty() {
            let row = rows.runtime[self.draw.position(rows.runtime.len())].clone();
            rows.runtime.push(row);
        }
        if !rows.allocations.is_empty() {
            let row = rows.allocations[self.draw.position(rows.allocations.len())].clone();
            rows.allocations.push(row);
        }
    }

    /// A producer could not send for a day or two.
    fn delay(&mut self, day: Day, rows: &mut Partition) {
        if let Some(at) = self.find(day, rows, |_| true) {
            let row = rows.runtime.swap_remove(at);
            let days = if self.draw.per_mille(700) { 1 } else { 2 };
            self.late.push((day.plus(days), row));
        }
    }

    /// Two clocks disagree about a wait that took no time.
    fn skew(&mut self, day: Day, rows: &mut Partition) {
        if let Some(at) = self.find(day, rows, |row| row.phase.as_deref() == Some("data_wait")) {
            let row = &mut rows.runtime[at];
            row.end = Some(row.start - self.draw.between(1, 900));
        }
    }

    /// A framework has a word of its own.
    fn rename(&mut self, day: Day, rows: &mut Partition) {
        if let Some(at) = self.find(day, rows, |row| row.phase.as_deref() == Some("idle")) {
            rows.runtime[at].phase = Some("warmup".to_owned());
        }
    }

    /// A producer crashes between two days and never says how a row ended.
    fn forget(&mut self, rows: &mut Partition) {
        let open: Vec<usize> = (0..rows.runtime.len()).filter(|&at| rows.runtime[at].end.is_none()).collect();
        if !open.is_empty() {
            self.forgotten.push(rows.runtime[open[self.draw.position(open.len())]].clone());
        }
    }

    /// A producer leaves out what it must not.
    fn erase(&mut self, day: Day, rows: &mut Partition) {
        if let Some(at) = self.find(day, rows, |_| true) {
            rows.runtime[at].phase = None;
        }
    }

    /// Somebody tries something out beside the scheduler.
    fn add_strays(&mut self, day: Day, rows: &mut Partition) {
        let start = day.midnight() + self.draw.between(8 * HOUR, 18 * HOUR);
        let middle = start + self.draw.between(MINUTE, 3 * MINUTE);
        let end = middle + self.draw.between(MINUTE, HOUR);
        for (phase, start, end, steps) in [("init", start, middle, None), ("step", middle, end, Some((0, 99)))] {
            rows.runtime.push(RuntimeRow {
                job_id: format!("notebook-{day}"),
                attempt: 0,
                phase: Some(phase.to_owned()),
                start,
                end: Some(end),
                first_step: steps.map(|(first, _)| first),
                last_step: steps.map(|(_, last)| last),
            });
        }
    }

    /// The position of some row that began and ended on the day: no copy of it was recorded before, so that what is done
    /// to it stays one flaw of one kind.
    fn find(&mut self, day: Day, rows: &Partition, suits: impl Fn(&RuntimeRow) -> bool) -> Option<usize> {
        let count = rows.runtime.len();
        let first = if count == 0 { 0 } else { self.draw.position(count) };
        let is_whole = |row: &RuntimeRow| row.start >= day.midnight() && row.end.is_some_and(|end| end > row.start);
        (first..count).chain(0..first).find(|&at| is_whole(&rows.runtime[at]) && suits(&rows.runtime[at]))
    }
}

fn is_same(left: &RuntimeRow, right: &RuntimeRow) -> bool {
    (left.start, left.attempt, &left.job_id, &left.phase) == (right.start, right.attempt, &right.job_id, &right.phase)
}
