//! The settings and facts on which the figures of a run depend, as one value that travels with the query.

use std::collections::BTreeMap;

use goodput_model::{Day, Table};
use serde::{Deserialize, Serialize};

/// All that the accounting must know beside the rows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rules {
    /// First day to book (days since the epoch).
    pub from: i32,
    /// Last day to book.
    pub to: i32,
    /// A day is judged from the partitions of so many days before and after it.
    pub settle_days: i32,
    /// How far an end may lie before its start and still be a matter of clocks.
    pub skew_tolerance_ms: i64,
    /// The columns of `jobs` that `job_day` carries, in the order in which they break ties.
    pub job_axes: Vec<String>,
    /// Size classes by `chips_required`, ascending; the last has no limit.
    pub size_classes: Vec<SizeClass>,
    /// What supplies an ideal step time where no prediction was recorded.
    pub ideal_model: IdealModel,
    /// What chips can do, by generation and date.
    pub accelerators: Vec<Accelerator>,
    /// For each table, in the order of [`Table::ALL`], the days that have a partition, ascending.
    pub partitions: [Vec<i32>; 5],
}

/// A class of jobs by the chips they need.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SizeClass {
    /// What segments call it.
    pub name: String,
    /// The most chips of a job in it; none for the last.
    pub up_to: Option<i64>,
}

/// What supplies an ideal step time where no prediction was recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum IdealModel {
    /// Nothing: only recorded predictions count.
    Predicted,
    /// The work of a step over the peak of all required chips.
    Compute,
    /// The greater of the compute time and the time to move the bytes.
    Roofline,
}

/// What one chip of a generation can do from a date on; dense peaks, as its maker publishes them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Accelerator {
    /// The generation, as telemetry names it.
    pub accelerator: String,
    /// The first day (days since the epoch) for which this entry holds.
    pub from: i32,
    /// Peak operations a second, by precision.
    pub peak_flops: BTreeMap<String, f64>,
    /// Bytes a second between the chip and its memory.
    pub memory_bytes_per_second: Option<f64>,
}

impl Rules {
    /// First day to book.
    pub fn first_day(&self) -> Day {
        Day(self.from)
    }

    /// Last day to book.
    pub fn last_day(&self) -> Day {
        Day(self.to)
    }

    /// The rules for some of the days alone.
    pub fn for_days(&self, from: Day, to: Day) -> Rules {
        Rules { from: from.0, to: to.0, ..self.clone() }
    }

    /// Whether a partition lies in the window of a day that is booked.
    pub fn reads(&self, partition: Day) -> bool {
        let (first, last) = (self.first_day().plus(-self.settle_days), self.last_day().plus(self.settle_days));
        first <= partition && partition <= last
    }

    /// Whether the day is booked.
    pub fn books(&self, day: Day) -> bool {
        (self.from..=self.to).contains(&day.0)
    }

    /// Whether the table has a partition after the day, still in the day's window.
    pub fn went_on_after(&self, table: Table, day: Day) -> bool {
        let days = &self.partitions[table.index()];
        let next = days.partition_point(|partition| *partition <= day.0);
        days.get(next).is_some_and(|partition| *partition <= day.plus(self.settle_days).0)
    }

    /// The name of the class of jobs that need so many chips.
    pub fn size_class(&self, chips_required: i64) -> Option<&str> {
        let class = self.size_classes.iter().find(|class| class.up_to.is_none_or(|limit| chips_required <= limit));
        class.map(|class| class.name.as_str())
    }

    /// What a chip of a generation could do on a day: the newest entry that holds then.
    pub fn accelerator_on(&self, accelerator: &str, day: Day) -> Option<&Accelerator> {
        self.accelerators
            .iter()
            .filter(|entry| entry.accelerator == accelerator && entry.from <= day.0)
            .max_by_key(|entry| entry.from)
    }
}
