//! Periods of whole days: what a partition holds and what a report speaks of.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::Day;

/// How long the periods of a partitioning are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Grain {
    /// One UTC day, `2026-01-31`.
    Date,
    /// A calendar month, `2026-01`.
    Month,
    /// A calendar quarter, `2026-Q1`.
    Quarter,
    /// A calendar year, `2026`.
    Year,
}

impl Grain {
    /// The name of the partition column: `date`, `month`, `quarter` or `year`.
    pub fn column(self) -> &'static str {
        match self {
            Grain::Date => "date",
            Grain::Month => "month",
            Grain::Quarter => "quarter",
            Grain::Year => "year",
        }
    }

    /// The period of this length that holds the day.
    pub fn of(self, day: Day) -> Period {
        Period { grain: self, first: self.first_of(day) }
    }

    fn first_of(self, day: Day) -> Day {
        let Some((year, month, _)) = day.calendar() else { return day };
        let first = match self {
            Grain::Date => return day,
            Grain::Month => Day::from_calendar(year, month, 1),
            Grain::Quarter => Day::from_calendar(year, (month - 1) / 3 * 3 + 1, 1),
            Grain::Year => Day::from_calendar(year, 1, 1),
        };
        first.unwrap_or(day)
    }

    /// Reads what [`Period`] displays.
    pub fn parse(self, label: &str) -> Option<Period> {
        let first = match self {
            Grain::Date => label.to_owned(),
            Grain::Month => format!("{label}-01"),
            Grain::Quarter => {
                let (year, quarter) = label.split_once("-Q")?;
                let month = match quarter {
                    "1" => "01",
                    "2" => "04",
                    "3" => "07",
                    "4" => "10",
                    _ => return None,
                };
                format!("{year}-{month}-01")
            }
            Grain::Year => format!("{label}-01-01"),
        };
        let period = self.of(first.parse().ok()?);
        (period.to_string() == label).then_some(period)
    }
}

/// A day, month, quarter or year.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Period {
    grain: Grain,
    first: Day,
}

impl Period {
    /// The first day of the period.
    pub fn first(self) -> Day {
        self.first
    }

    /// The last day of the period.
    pub fn last(self) -> Day {
        let longest = match self.grain {
            Grain::Date => 0,
            Grain::Month => 31,
            Grain::Quarter => 92,
            Grain::Year => 366,
        };
        if longest == 0 {
            return self.first;
        }
        self.grain.first_of(self.first.plus(longest)).plus(-1)
    }
}

impl fmt::Display for Period {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some((year, month, _)) = self.first.calendar() else { return self.first.fmt(formatter) };
        match self.grain {
            Grain::Date => self.first.fmt(formatter),
            Grain::Month => write!(formatter, "{year:04}-{month:02}"),
            Grain::Quarter => write!(formatter, "{year:04}-Q{}", (month - 1) / 3 + 1),
            Grain::Year => write!(formatter, "{year:04}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_day_lies_in_its_periods() {
        let cases = [
            ("2024-02-29", Grain::Date, "2024-02-29", "2024-02-29", "2024-02-29"),
            ("2024-02-29", Grain::Month, "2024-02", "2024-02-01", "2024-02-29"),
            ("2023-02-01", Grain::Month, "2023-02", "2023-02-01", "2023-02-28"),
            ("2026-12-31", Grain::Quarter, "2026-Q4", "2026-10-01", "2026-12-31"),
            ("2026-01-01", Grain::Quarter, "2026-Q1", "2026-01-01", "2026-03-31"),
            ("2024-06-15", Grain::Year, "2024", "2024-01-01", "2024-12-31"),
            ("2023-06-15", Grain::Year, "2023", "2023-01-01", "2023-12-31"),
        ];
        for (day, grain, label, first, last) in cases {
            let period = grain.of(day.parse().unwrap_or(Day(0)));
            assert_eq!(period.to_string(), label);
            assert_eq!(period.first().to_string(), first);
            assert_eq!(period.last().to_string(), last);
            assert_eq!(grain.parse(label), Some(period));
        }
    }

    #[test]
    fn other_texts_are_no_periods() {
        for (grain, text) in [
            (Grain::Date, "2026-02-30"),
            (Grain::Month, "2026-13"),
            (Grain::Month, "2026-1"),
            (Grain::Quarter, "2026-Q5"),
            (Grain::Quarter, "2026Q1"),
            (Grain::Year, "26"),
            (Grain::Date, "__HIVE_DEFAULT_PARTITION__"),
        ] {
            assert_eq!(grain.parse(text), None, "{text}");
        }
    }
}
