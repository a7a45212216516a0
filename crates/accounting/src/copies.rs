//! Which copy of a row counts, and on which days.
//!
//! A row may have been recorded many times. A day of the run sees the copies of its own window, so one copy can count for
//! some days and another for others. For a copy of date `d`, of which the next better one is of date `n`, these are the
//! days from `d - settle_days` to the lesser of `d + settle_days` and `n - settle_days - 1`.

use goodput_model::{Day, Reason};

use crate::Rules;
use crate::findings::Findings;
use crate::rows::Recorded;

/// A copy of a row with the days of the run on which it is the one that counts.
#[derive(Debug, Clone)]
pub struct Counted<R> {
    /// The copy.
    pub row: R,
    /// The first of those days.
    pub first: Day,
    /// The last of those days.
    pub last: Day,
}

impl<R> Counted<R> {
    /// Whether this copy counts on a day.
    pub fn counts_on(&self, day: Day) -> bool {
        self.first <= day && day <= self.last
    }
}

impl<R: Recorded> Counted<R> {
    /// Whether this copy counts on the date on which it was recorded, where findings about it belong.
    pub fn counts_on_its_date(&self) -> bool {
        self.counts_on(self.row.recorded())
    }
}

/// Chooses among the copies of each row; those that count on no day of the run are left out. The rows come back in the
/// order of their keys. The copies that do not count on their own date are counted as `duplicate` or `superseded`.
pub fn choose<R: Recorded>(mut rows: Vec<R>, rules: &Rules, findings: &mut Findings) -> Vec<Counted<R>> {
    rows.sort_unstable_by(|left, right| left.compare_keys(right).then_with(|| left.compare_copies(right)));
    let mut counted: Vec<Counted<R>> = Vec::with_capacity(rows.len());
    // Of the row at hand: the date of the copy before, and the dates of its copies that may win on their own date.
    let mut dates: Vec<Day> = Vec::new();
    let mut previous_is_copy = false;
    let mut rows = rows.into_iter().peekable();
    while let Some(row) = rows.next() {
        let date = row.recorded();
        if !previous_is_copy {
            dates.clear();
        }
        let mut last = date.plus(rules.settle_days);
        if let Some(newer) = dates.last() {
            last = last.min(newer.plus(-rules.settle_days - 1));
            if rules.books(date) && last < date {
                // Whichever copy counts on this date: the newest that its window holds.
                let horizon = date.plus(rules.settle_days);
                let winner = dates.iter().copied().find(|other| *other <= horizon).unwrap_or(date);
                let reason = if winner == date { Reason::Duplicate } else { Reason::Superseded };
                findings.count(date, R::TABLE, reason);
            }
        }
        previous_is_copy = rows.peek().is_some_and(|next| row.compare_keys(next).is_eq());
        if dates.last() != Some(&date) {
            dates.push(date);
        }
        let first = date.plus(-rules.settle_days).max(rules.first_day());
        let last = last.min(rules.last_day());
        if first <= last {
            counted.push(Counted { row, first, last });
        }
    }
    counted
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rows::CapacityRow;
    use crate::rules::IdealModel;

    /// Checks the days of copies, given as date and chips, of one row (settle_days 1, days 10 to 20).
    fn check(copies: &[(i32, i64)], expected: &[(i64, i32, i32)], found: &[(i32, Reason)]) {
        let rules = Rules {
            from: 10,
            to: 20,
            settle_days: 1,
            skew_tolerance_ms: 0,
            job_axes: Vec::new(),
            size_classes: Vec::new(),
            ideal_model: IdealModel::Predicted,
            accelerators: Vec::new(),
            partitions: Default::default(),
        };
        let rows = copies.iter().map(|(date, chips)| CapacityRow {
            recorded: Day(*date),
            start: 0,
            end: None,
            chips: *chips,
            down: false,
        });
        let mut findings = Findings::default();
        let mut days: Vec<_> = choose(rows.collect(), &rules, &mut findings)
            .into_iter()
            .map(|counted| (counted.row.chips, counted.first.0, counted.last.0))
            .collect();
        days.sort_unstable();
        assert_eq!(days, expected, "{copies:?}");
        let findings: Vec<_> = findings.iter().map(|(day, _, reason, _)| (day.0, reason)).collect();
        assert_eq!(findings, found, "{copies:?}");
    }

    #[test]
    fn a_copy_counts_until_a_newer_one_is_in_the_window() {
        check(&[(15, 1)], &[(1, 14, 16)], &[]);
        check(&[(15, 1), (16, 2)], &[(1, 14, 14), (2, 15, 17)], &[(15, Reason::Superseded)]);
        check(&[(15, 1), (17, 2)], &[(1, 14, 15), (2, 16, 18)], &[]);
        check(&[(15, 1), (18, 2)], &[(1, 14, 16), (2, 17, 19)], &[]);
        check(&[(15, 1), (15, 2)], &[(1, 14, 16)], &[(15, Reason::Duplicate)]);
        // The two copies of date 15 both give way to that of date 16, on their own date too.
        check(&[(15, 1), (15, 2), (16, 3)], &[(1, 14, 14), (3, 15, 17)], &[(15, Reason::Superseded)]);
        // Those of date 15 do not see the one of date 17: one of them counts there.
        check(&[(15, 1), (15, 2), (17, 3)], &[(1, 14, 15), (3, 16, 18)], &[(15, Reason::Duplicate)]);
        check(&[(9, 1), (21, 2), (22, 3)], &[(1, 10, 10), (2, 20, 20)], &[]);
    }
}
