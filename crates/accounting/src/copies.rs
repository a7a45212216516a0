//! Which copy of a row counts, and on which days.
//!
//! A row may have been recorded many times. A day of the run sees the copies of its own window, so one copy can count for
//! some days and another for others. For a copy of date `d`, of which the next better one is of date `n`, these are the
//! days from `d - settle_days` to the lesser of `d + settle_days` and `n - settle_days - 1`.

use std::cmp::Ordering;

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
    #[inline]
    pub fn counts_on(&self, day: Day) -> bool {
        self.first <= day && day <= self.last
    }
}

impl<R: Recorded> Counted<R> {
    /// A row that counts on all days whose windows hold it, as if it were the only copy.
    #[cfg(test)]
    fn alone(row: R, rules: &Rules) -> Counted<R> {
        let (first, last) = days_of_partition(row.recorded(), rules);
        Counted { row, first, last }
    }

    /// Whether this copy counts on the date on which it was recorded, where findings about it belong.
    pub fn counts_on_its_date(&self) -> bool {
        self.counts_on(self.row.recorded())
    }

    fn compare(&self, other: &Self) -> Ordering {
        self.row.compare_keys(&other.row).then_with(|| self.row.compare_copies(&other.row))
    }
}

/// The first and the last day of the run whose windows hold the partition of a date.
pub fn days_of_partition(date: Day, rules: &Rules) -> (Day, Day) {
    let first = date.plus(-rules.settle_days).max(rules.first_day());
    (first, date.plus(rules.settle_days).min(rules.last_day()))
}

/// Chooses among the copies of each row; those that count on no day of the run are left out. The rows come back in the
/// order of their keys. The copies that do not count on their own date are counted as `duplicate` or `superseded`.
pub fn choose<R: Recorded>(rows: &mut Vec<Counted<R>>, rules: &Rules, findings: &mut Findings) {
    put_in_order(rows);
    // Of the row at hand: the dates of its copies that may win on their own date.
    let mut dates: Vec<Day> = Vec::new();
    let mut previous_is_copy = false;
    let mut superfluous = false;
    for at in 0..rows.len() {
        let next_is_copy = rows.get(at + 1).is_some_and(|next| rows[at].row.compare_keys(&next.row).is_eq());
        if previous_is_copy || next_is_copy {
            let date = rows[at].row.recorded();
            if !previous_is_copy {
                dates.clear();
            } else if let Some(newer) = dates.last() {
                let last = newer.plus(-rules.settle_days - 1);
                if rules.books(date) && last < date {
                    // Whichever copy counts on this date: the newest that its window holds.
                    let horizon = date.plus(rules.settle_days);
                    let winner = dates.iter().copied().find(|other| *other <= horizon).unwrap_or(date);
                    let reason = if winner == date { Reason::Duplicate } else { Reason::Superseded };
                    findings.count(date, R::TABLE, reason);
                }
                rows[at].last = rows[at].last.min(last);
            }
            if dates.last() != Some(&date) {
                dates.push(date);
            }
        }
        superfluous |= rows[at].last < rows[at].first;
        previous_is_copy = next_is_copy;
    }
    if superfluous {
        rows.retain(|counted| counted.first <= counted.last);
    }
}

/// Rows out of place that are put back one by one; more of them are merged in one pass.
const FEW: usize = 8;

/// Sorts rows by their keys, the copies of a row by which of them counts.
///
/// Producers write in the order of time, so nearly all rows come in order; the few that do not are taken out, sorted, and
/// put back in one pass.
fn put_in_order<R: Recorded>(rows: &mut Vec<Counted<R>>) {
    let number = rows.len();
    let follows = |left: &Counted<R>, right: &Counted<R>| left.compare(right).is_le();
    let Some(in_order) = rows.windows(2).position(|pair| !follows(&pair[0], &pair[1])) else { return };
    let mut strays: Vec<Counted<R>> = Vec::new();
    let rest = rows.split_off(in_order + 1);
    rows.reserve(number - rows.len());
    for row in rest {
        if rows.last().is_none_or(|last| follows(last, &row)) {
            rows.push(row);
        } else if rows.len() < 2 || follows(&rows[rows.len() - 2], &row) {
            // Either of the two may be out of place; the one before is, if this one follows what came before that.
            strays.extend(rows.pop());
            rows.push(row);
        } else {
            strays.push(row);
        }
    }
    if strays.len() <= FEW {
        for stray in strays {
            let place = rows.partition_point(|row| follows(row, &stray));
            rows.insert(place, stray);
        }
    } else if strays.len() > number / 4 {
        rows.append(&mut strays);
        rows.sort_unstable_by(Counted::compare);
    } else {
        strays.sort_unstable_by(Counted::compare);
        let mut strays = strays.into_iter().peekable();
        let mut ordered = Vec::with_capacity(number);
        for row in rows.drain(..) {
            while let Some(stray) = strays.next_if(|stray| stray.compare(&row).is_lt()) {
                ordered.push(stray);
            }
            ordered.push(row);
        }
        ordered.extend(strays);
        *rows = ordered;
    }
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
        let mut rows: Vec<_> = rows.map(|row| Counted::alone(row, &rules)).collect();
        choose(&mut rows, &rules, &mut findings);
        let mut days: Vec<_> =
            rows.into_iter().map(|counted| (counted.row.chips, counted.first.0, counted.last.0)).collect();
        days.sort_unstable();
        assert_eq!(days, expected, "{copies:?}");
        let findings: Vec<_> = findings.iter().map(|(day, _, reason, _)| (day.0, reason)).collect();
        assert_eq!(findings, found, "{copies:?}");
    }

    #[test]
    fn rows_are_put_in_order_however_they_come() {
        let mut orders: Vec<Vec<i64>> = vec![vec![], vec![1], vec![1, 2, 3], vec![3, 2, 1], vec![9, 1, 2, 3, 4, 5]];
        orders.push(vec![1, 2, 9, 3, 4, 5, 0, 6, 7, 8]);
        orders.push((0..100).map(|number| number * 37 % 101).collect());
        orders.push((0..100).chain([50, 3, 99, -1]).collect());
        orders.push((0..100).chain((0..20).map(|number| number * 13 % 97)).collect());
        for starts in orders {
            let row = |start: &i64| {
                let row = CapacityRow { recorded: Day(1), start: *start, end: None, chips: 1, down: false };
                Counted { row, first: Day(1), last: Day(1) }
            };
            let mut rows: Vec<_> = starts.iter().map(row).collect();
            put_in_order(&mut rows);
            let found: Vec<i64> = rows.iter().map(|counted| counted.row.start).collect();
            let mut expected = starts.clone();
            expected.sort_unstable();
            assert_eq!(found, expected, "{starts:?}");
        }
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
