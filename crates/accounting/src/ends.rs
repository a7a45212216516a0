//! The ends of rows that are still open.

use goodput_model::Day;

/// When a row ends, and which rule said so.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct End {
    /// The end (ms), not before the start.
    pub at: i64,
    /// Open, and closed by nothing but the date of its newest copy.
    pub by_newest_copy: bool,
}

/// The end of a row whose newest copy in the window is of date `recorded`: its own if it is closed; else the earlier of
/// `by_rule_1` (what other rows say of it) and the midnight after that date.
pub fn end_of(start: i64, end: Option<i64>, recorded: Day, by_rule_1: Option<i64>) -> End {
    if let Some(at) = end {
        return End { at, by_newest_copy: false };
    }
    let newest_copy = latest_end(start, None, recorded);
    match by_rule_1 {
        Some(at) if at <= newest_copy_midnight(recorded) => End { at: at.max(start), by_newest_copy: false },
        _ => End { at: newest_copy, by_newest_copy: true },
    }
}

/// The latest end that the row can have in any window.
pub fn latest_end(start: i64, end: Option<i64>, recorded: Day) -> i64 {
    end.unwrap_or_else(|| start.max(newest_copy_midnight(recorded)))
}

fn newest_copy_midnight(recorded: Day) -> i64 {
    recorded.plus(1).midnight()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_earliest_end_counts_but_not_before_the_start() {
        let midnight = Day(11).midnight();
        let cases = [
            (5, Some(7), Some(6), End { at: 7, by_newest_copy: false }),
            (5, None, None, End { at: midnight, by_newest_copy: true }),
            (5, None, Some(midnight - 1), End { at: midnight - 1, by_newest_copy: false }),
            (5, None, Some(midnight), End { at: midnight, by_newest_copy: false }),
            (5, None, Some(midnight + 1), End { at: midnight, by_newest_copy: true }),
            (5, None, Some(3), End { at: 5, by_newest_copy: false }),
            (midnight + 4, None, None, End { at: midnight + 4, by_newest_copy: true }),
        ];
        for (start, end, by_rule_1, expected) in cases {
            assert_eq!(end_of(start, end, Day(10), by_rule_1), expected);
        }
    }
}
