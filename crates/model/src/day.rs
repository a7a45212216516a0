//! Whole UTC days, the unit in which telemetry arrives and figures are published.

use std::fmt;
use std::str::FromStr;

use chrono::{Datelike, NaiveDate};

/// Milliseconds in a UTC day: days have no leap seconds here, as in Unix time.
pub const MS_PER_DAY: i64 = 86_400_000;

/// Days from the epoch to 0000-01-01 and to 9999-12-31: what `YYYY-MM-DD` can say.
const FIRST_DAY: i32 = -719_528;
const LAST_DAY: i32 = 2_932_896;

/// A UTC day, counted from 1970-01-01.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Day(pub i32);

/// A text that is no day of the form `YYYY-MM-DD`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a date of the form YYYY-MM-DD")]
pub struct InvalidDay(pub String);

impl Day {
    /// The day on which an instant (ms since the epoch) falls. Instants beyond what a day can count are held at its ends.
    pub fn of_instant(ms: i64) -> Day {
        let day = ms.div_euclid(MS_PER_DAY);
        Day(i32::try_from(day).unwrap_or(if day < 0 { i32::MIN } else { i32::MAX }))
    }

    /// The instant (ms since the epoch) at which the day begins.
    pub fn midnight(self) -> i64 {
        i64::from(self.0) * MS_PER_DAY
    }

    /// The day that many days later (earlier, if negative); held at the ends of what can be counted.
    pub fn plus(self, days: i32) -> Day {
        Day(self.0.saturating_add(days))
    }

    /// The days from this one to `last`, both included; none if `last` is earlier.
    pub fn through(self, last: Day) -> impl DoubleEndedIterator<Item = Day> + Clone {
        (self.0..=last.0).map(Day)
    }

    /// Year, month (1 to 12) and day of the month; `None` outside of the years 0 to 9999.
    pub fn calendar(self) -> Option<(i32, u32, u32)> {
        if !(FIRST_DAY..=LAST_DAY).contains(&self.0) {
            return None;
        }
        let date = NaiveDate::from_epoch_days(self.0)?;
        Some((date.year(), date.month(), date.day()))
    }

    /// The day of a calendar date; `None` if there is no such date or its year is not one of 0 to 9999.
    pub fn from_calendar(year: i32, month: u32, day: u32) -> Option<Day> {
        let days = NaiveDate::from_ymd_opt(year, month, day)?.to_epoch_days();
        (FIRST_DAY..=LAST_DAY).contains(&days).then_some(Day(days))
    }
}

impl fmt::Display for Day {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.calendar() {
            Some((year, month, day)) => write!(formatter, "{year:04}-{month:02}-{day:02}"),
            None => write!(formatter, "day {}", self.0),
        }
    }
}

impl FromStr for Day {
    type Err = InvalidDay;

    /// Reads exactly `YYYY-MM-DD`: no signs, no spaces, no shorter forms.
    fn from_str(text: &str) -> Result<Day, InvalidDay> {
        let invalid = || InvalidDay(text.to_owned());
        let bytes = text.as_bytes();
        let has_form = bytes.len() == 10
            && bytes.iter().enumerate().all(|(position, byte)| match position {
                4 | 7 => *byte == b'-',
                _ => byte.is_ascii_digit(),
            });
        if !has_form {
            return Err(invalid());
        }
        let (year, month, day) = (&text[..4], &text[5..7], &text[8..]);
        match (year.parse(), month.parse(), day.parse()) {
            (Ok(year), Ok(month), Ok(day)) => Day::from_calendar(year, month, day).ok_or_else(invalid),
            _ => Err(invalid()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_only_iso_dates() {
        let cases = [
            ("1970-01-01", Some(0)),
            ("2026-01-01", Some(20_454)),
            ("2024-02-29", Some(19_782)),
            ("0000-01-01", Some(FIRST_DAY)),
            ("9999-12-31", Some(LAST_DAY)),
            ("2026-02-29", None),
            ("2026-1-1", None),
            ("+026-01-01", None),
            ("2026-01-01 ", None),
            ("2026-01-01T00", None),
            ("2026/01/01", None),
            ("２026-01-1", None),
            ("backup", None),
            ("", None),
        ];
        for (text, expected) in cases {
            assert_eq!(text.parse::<Day>().ok().map(|day| day.0), expected, "{text}");
        }
    }

    #[test]
    fn writes_what_it_reads() {
        for days in [FIRST_DAY, -1, 0, 20_454, LAST_DAY] {
            assert_eq!(Day(days).to_string().parse::<Day>(), Ok(Day(days)));
        }
    }

    #[test]
    fn an_instant_before_the_epoch_falls_on_the_day_before() {
        assert_eq!(Day::of_instant(-1), Day(-1));
        assert_eq!(Day::of_instant(0), Day(0));
        assert_eq!(Day::of_instant(i64::MAX), Day(i32::MAX));
        assert_eq!(Day::of_instant(i64::MIN), Day(i32::MIN));
    }
}
