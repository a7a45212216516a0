//! Which rows are left out, and how far the ends of the others can be relied on.
//!
//! A row alone tells: neither the window nor other rows have a part in this.

use goodput_model::{Day, Reason};

/// What a row's interval is, once its clock is accounted for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Interval {
    /// When it begins (ms), from the year 2000 to two days after the partition.
    pub start: i64,
    /// When it ends (ms), not before it begins; `None` while open.
    pub end: Option<i64>,
    /// It ended before it began, within the tolerance: now empty.
    pub skewed: bool,
    /// Its end lay in the future: now open.
    pub end_in_future: bool,
}

/// 2000-01-01T00:00:00Z: nothing that is accounted for here began earlier.
const FIRST_PLAUSIBLE_START: i64 = 946_684_800_000;

/// Judges the interval of a row that was recorded on a date: the first reason that applies, or the interval to use.
pub fn interval(recorded: Day, start: i64, end: Option<i64>, skew_tolerance_ms: i64) -> Result<Interval, Reason> {
    // One day after the end of the partition's date: nothing later could be known then.
    let latest_known = recorded.plus(2).midnight();
    // Instants in files reach to the ends of 64 bits: the difference is taken where it cannot wrap.
    let negative = end.is_some_and(|end| i128::from(start) - i128::from(end) > i128::from(skew_tolerance_ms));
    if negative {
        return Err(Reason::NegativeInterval);
    }
    if start < FIRST_PLAUSIBLE_START {
        return Err(Reason::ImplausibleStart);
    }
    if start > latest_known {
        return Err(Reason::FromTheFuture);
    }
    let skewed = end.is_some_and(|end| end < start);
    let end_in_future = end.is_some_and(|end| end > latest_known);
    let end = if end_in_future { None } else { end.map(|end| end.max(start)) };
    Ok(Interval { start, end, skewed, end_in_future })
}

/// Whether a measured or predicted time of a step is a time: 0 < x < 1e12, and no NaN.
pub fn is_usable_time(us: f64) -> bool {
    us > 0.0 && us < 1e12
}

/// Requires a value that may not be null.
pub fn required<T>(value: Option<T>) -> Result<T, Reason> {
    value.ok_or(Reason::NullRequired)
}

/// Requires that a value obeys its rule.
pub fn rule(obeyed: bool) -> Result<(), Reason> {
    if obeyed { Ok(()) } else { Err(Reason::BadValue) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals() {
        let day = Day(20_454); // 2026-01-01
        let midnight = day.midnight();
        let latest = midnight + 2 * 86_400_000;
        let valid = |start, end, skewed, end_in_future| Ok(Interval { start, end, skewed, end_in_future });
        let cases = [
            (midnight, Some(midnight + 5), valid(midnight, Some(midnight + 5), false, false)),
            (midnight, Some(midnight), valid(midnight, Some(midnight), false, false)),
            (midnight, None, valid(midnight, None, false, false)),
            (midnight, Some(midnight - 1000), valid(midnight, Some(midnight), true, false)),
            (midnight, Some(midnight - 1001), Err(Reason::NegativeInterval)),
            (latest, None, valid(latest, None, false, false)),
            (latest + 1, None, Err(Reason::FromTheFuture)),
            (latest + 1, Some(0), Err(Reason::NegativeInterval)),
            (midnight, Some(latest), valid(midnight, Some(latest), false, false)),
            (midnight, Some(latest + 1), valid(midnight, None, false, true)),
            (midnight, Some(i64::MAX), valid(midnight, None, false, true)),
            (FIRST_PLAUSIBLE_START, None, valid(FIRST_PLAUSIBLE_START, None, false, false)),
            (FIRST_PLAUSIBLE_START - 1, None, Err(Reason::ImplausibleStart)),
            (0, Some(-1), Err(Reason::ImplausibleStart)),
            (i64::MIN, Some(i64::MAX), Err(Reason::ImplausibleStart)),
            (i64::MAX, Some(i64::MIN), Err(Reason::NegativeInterval)),
            (i64::MAX, None, Err(Reason::FromTheFuture)),
        ];
        for (start, end, expected) in cases {
            assert_eq!(interval(day, start, end, 1000), expected, "{start} {end:?}");
        }
    }

    #[test]
    fn times() {
        for (us, usable) in [(1.0, true), (5e-324, true), (999_999_999_999.9, true), (1e12, false), (0.0, false)] {
            assert_eq!(is_usable_time(us), usable, "{us}");
        }
        for us in [-1.0, f64::NAN, f64::INFINITY, 1.4e16] {
            assert!(!is_usable_time(us), "{us}");
        }
    }
}
