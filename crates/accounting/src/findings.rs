//! What was found about rows, counted.

use std::collections::BTreeMap;

use goodput_model::{Day, Reason, Table};

/// Counts of rows by the date of their partition, their table, and what was found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Findings(BTreeMap<(Day, Table, Reason), i64>);

impl Findings {
    /// Counts one row.
    pub fn count(&mut self, day: Day, table: Table, reason: Reason) {
        *self.0.entry((day, table, reason)).or_default() += 1;
    }

    /// All counts, in the order of date, table and reason.
    pub fn iter(&self) -> impl Iterator<Item = (Day, Table, Reason, i64)> + '_ {
        self.0.iter().map(|((day, table, reason), rows)| (*day, *table, *reason, *rows))
    }

    /// Whether nothing was found.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}
