//! Progress that did not survive: until when the steps of a row count.
//!
//! A row's progress is cut by the least first step among the step rows that come after it and belong to a higher attempt
//! or start when it has ended; and, after an unclean end, by the step behind the last checkpoint. Which rows come after
//! depends on the day, whose window may not hold them all. Rows are put in order once; a row that no later row threatens
//! in any window, which are nearly all, is settled then, and only for the others the rows of a day's window are searched.

use std::collections::BTreeMap;

use goodput_model::Day;

use crate::Rules;
use crate::copies::Counted;
use crate::rows::{JobRow, RuntimeRow};

/// A step row on a day whose progress may not have survived.
#[derive(Debug, Clone, Copy)]
pub struct StepRow {
    /// Its position among the job's runtime rows.
    pub position: usize,
    /// The position of its attempt among those of the day.
    pub attempt: usize,
    /// When it ends in the day's window (ms).
    pub end: i64,
    /// Until when it is productive (ms); lost from there.
    pub productive_until: i64,
}

/// The runtime rows of a job, in the order of (start, attempt), and what threatens their progress.
#[derive(Debug)]
pub struct Progress<'a> {
    rows: &'a [Counted<RuntimeRow>],
    /// For each row the least first step of all rows behind it, in whichever window.
    least_behind: Vec<i64>,
    /// The positions of completed checkpoints that name a step.
    checkpoints: Vec<usize>,
}

impl<'a> Progress<'a> {
    /// Looks at all rows of a job once.
    pub fn new(rows: &'a [Counted<RuntimeRow>]) -> Progress<'a> {
        let mut least_behind = vec![i64::MAX; rows.len()];
        let mut least = i64::MAX;
        for (position, counted) in rows.iter().enumerate().rev() {
            least_behind[position] = least;
            if let Some((first, _)) = counted.row.steps() {
                least = least.min(first);
            }
        }
        let completed = |row: &RuntimeRow| row.phase.saves() && row.end().is_some() && row.last_step().is_some();
        let checkpoints = (0..rows.len()).filter(|position| completed(&rows[*position].row)).collect();
        Progress { rows, least_behind, checkpoints }
    }

    /// The step with which a job that ended unclean would have gone on: behind the checkpoint that was completed last.
    pub fn cut_of_unclean_end(&self, job: Option<&JobRow<'_>>, day: Day) -> Option<i64> {
        if !job.is_some_and(|job| job.ended_unclean()) {
            return None;
        }
        let saved = self.checkpoints.iter().map(|position| &self.rows[*position]);
        let saved =
            saved.filter(|counted| counted.counts_on(day)).map(|counted| (counted.row.end(), counted.row.last_step()));
        saved.max().and_then(|(_, step)| step).map(|step| step.saturating_add(1))
    }

    /// Whether the progress of a step row may not have survived: some row behind it, in whichever window, or an unclean end
    /// could cut it. Nearly all rows are safe.
    pub fn is_threatened(&self, position: usize, cut_of_unclean_end: Option<i64>) -> bool {
        let Some((_, last)) = self.rows[position].row.steps() else { return false };
        self.least_behind[position] <= last || cut_of_unclean_end.is_some_and(|cut| cut <= last)
    }

    /// Sets until when the threatened step rows of a day are productive. They are in the order of their positions.
    pub fn settle(&self, threatened: &mut [StepRow], day: Day, cut_of_unclean_end: Option<i64>, rules: &Rules) {
        let Some(first) = threatened.first() else { return };
        let mut behind = Behind::default();
        let later = self.later_rows(first.position, day, rules);
        let mut later = later.iter().rev().copied().peekable();
        for step in threatened.iter_mut().rev() {
            let row = &self.rows[step.position].row;
            while let Some(position) = later.next_if(|position| *position > step.position) {
                behind.add(&self.rows[position].row);
            }
            let Some((first, last)) = row.steps() else { continue };
            let cuts = [behind.least_from(step.end), behind.least_above(row.attempt), cut_of_unclean_end];
            let cut = cuts.into_iter().flatten().min();
            step.productive_until = productive_until(row.start, step.end, first, last, cut);
        }
    }

    /// The positions of the numbered step rows behind a position that the day's window holds.
    fn later_rows(&self, position: usize, day: Day, rules: &Rules) -> Vec<usize> {
        // A row starts at most one day after the end of its partition's date.
        let horizon = day.plus(rules.settle_days).plus(2).midnight();
        (position + 1..self.rows.len())
            .take_while(|position| self.rows[*position].row.start <= horizon)
            .filter(|position| self.rows[*position].counts_on(day) && self.rows[*position].row.steps().is_some())
            .collect()
    }
}

/// The step rows behind the one at hand, added from the last to the first.
#[derive(Debug, Default)]
struct Behind {
    /// Start and the least first step of all rows that start then or later; the latest start first.
    by_start: Vec<(i64, i64)>,
    /// Attempt -> the least first step of that attempt and of all higher ones; ascending in both.
    by_attempt: BTreeMap<i64, i64>,
}

impl Behind {
    fn add(&mut self, row: &RuntimeRow) {
        let Some((first, _)) = row.steps() else { return };
        let least = self.by_start.last().map_or(first, |(_, least)| first.min(*least));
        self.by_start.push((row.start, least));

        if self.by_attempt.range(row.attempt..).next().is_some_and(|(_, least)| *least <= first) {
            return;
        }
        while let Some((attempt, _)) =
            self.by_attempt.range(..=row.attempt).next_back().filter(|(_, least)| **least >= first)
        {
            let attempt = *attempt;
            self.by_attempt.remove(&attempt);
        }
        self.by_attempt.insert(row.attempt, first);
    }

    /// The least first step of the rows that start at an instant or later.
    fn least_from(&self, instant: i64) -> Option<i64> {
        let number = self.by_start.partition_point(|(start, _)| *start >= instant);
        number.checked_sub(1).map(|last| self.by_start[last].1)
    }

    /// The least first step of the rows of higher attempts.
    fn least_above(&self, attempt: i64) -> Option<i64> {
        self.by_attempt.range(attempt.checked_add(1)?..).next().map(|(_, least)| *least)
    }
}

/// The instant until which a row of steps `first..=last` over [start, end) is productive, if the job went on from `cut`.
fn productive_until(start: i64, end: i64, first: i64, last: i64, cut: Option<i64>) -> i64 {
    match cut {
        Some(cut) if cut <= first => start,
        Some(cut) if cut <= last => {
            // Step numbers may be any 64-bit integers: their differences and the product need more.
            let (done, all) = (i128::from(cut) - i128::from(first), i128::from(last) - i128::from(first) + 1);
            let share = done * i128::from(end - start) / all;
            start + i64::try_from(share).unwrap_or(end - start)
        }
        _ => end,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_split_is_floored_and_does_not_overflow() {
        let cases = [
            ((0, 100, 0, 9, None), 100),
            ((0, 100, 0, 9, Some(10)), 100),
            ((0, 100, 0, 9, Some(9)), 90),
            ((0, 100, 0, 9, Some(0)), 0),
            ((0, 100, 5, 9, Some(-3)), 0),
            ((0, 100, 0, 2, Some(1)), 33),
            ((50, 100, 0, 2, Some(2)), 83),
            ((0, i64::MAX, i64::MIN, i64::MAX, Some(0)), i64::MAX / 2),
        ];
        for ((start, end, first, last, cut), expected) in cases {
            assert_eq!(
                productive_until(start, end, first, last, cut),
                expected,
                "{start} {end} {first} {last} {cut:?}"
            );
        }
    }
}
