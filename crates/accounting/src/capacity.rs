//! The capacity of a block: how many of its chips there were, and how many were down, day by day.

use std::collections::BTreeSet;

use goodput_model::{Day, MS_PER_DAY, Reason, Table};

use crate::copies::{Counted, choose};
use crate::ends::{end_of, latest_end};
use crate::findings::Findings;
use crate::rows::CapacityRow;
use crate::{AccountingError, Rules, decoding};

/// What a block had on a day, in chip-ms.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CapacityDay {
    /// The day.
    pub day: Day,
    /// All its chips.
    pub capacity_chip_ms: i64,
    /// Those that were down.
    pub down_chip_ms: i64,
}

/// The capacity of a block over all days of a run.
#[derive(Debug, Clone, Default)]
pub struct CapacityBooks {
    /// A row for each day on which the block had chips.
    pub days: Vec<CapacityDay>,
    /// What was found about its rows on the days of the run.
    pub findings: Findings,
    /// The days of the run of which a row that was recorded on that day says that there were chips. Ascending. No rule can
    /// take such a day away: it must be among `days`.
    pub told: Vec<Day>,
}

/// Books a block from its collected rows. `block` serves error messages alone.
pub fn book_capacity(block: &str, collected: &[u8], rules: &Rules) -> Result<CapacityBooks, AccountingError> {
    let mut findings = Findings::default();
    let mut rows = decoding::read_capacity(&decoding::blocks(collected)?, rules, &mut findings)?;
    choose(&mut rows, rules, &mut findings);
    let mut told = BTreeSet::new();
    for Counted { row, .. } in rows.iter().filter(|counted| counted.counts_on_its_date()) {
        let begin = row.recorded.midnight();
        if latest_end(row.start, row.end, row.recorded).min(begin + MS_PER_DAY) > row.start.max(begin) {
            told.insert(row.recorded);
        }
        if row.end.is_none() && rules.books(row.recorded) && rules.went_on_after(Table::Capacity, row.recorded) {
            findings.count(row.recorded, Table::Capacity, Reason::StaleOpen);
        }
    }
    let mut days = Vec::new();
    let (first, last) = (rows.iter().map(|counted| counted.first).min(), rows.iter().map(|counted| counted.last).max());
    if let (Some(first), Some(last)) = (first, last) {
        let mut next = 0;
        let mut at_hand: Vec<usize> = Vec::new();
        for day in first.through(last) {
            // Rows are in the order of their starts, which are their keys.
            while rows.get(next).is_some_and(|counted| counted.row.start < day.midnight() + MS_PER_DAY) {
                at_hand.push(next);
                next += 1;
            }
            at_hand.retain(|position| {
                let row = &rows[*position].row;
                latest_end(row.start, row.end, row.recorded) > day.midnight()
            });
            let open = at_hand.iter().map(|position| &rows[*position]);
            let open: Vec<&CapacityRow> =
                open.filter(|counted| counted.counts_on(day)).map(|counted| &counted.row).collect();
            days.extend(book_day(block, day, &open)?);
        }
    }
    Ok(CapacityBooks { days, findings, told: told.into_iter().collect() })
}

/// Of the rows that are open at an instant, in the order of their starts, the last counts.
fn book_day(block: &str, day: Day, rows: &[&CapacityRow]) -> Result<Option<CapacityDay>, AccountingError> {
    let (begin, end) = (day.midnight(), day.midnight() + MS_PER_DAY);
    let mut edges: Vec<(i64, usize, bool)> = Vec::with_capacity(2 * rows.len());
    for (position, row) in rows.iter().enumerate() {
        let row_end = end_of(row.start, row.end, row.recorded, None).at;
        let (row_begin, row_end) = (row.start.max(begin), row_end.min(end));
        if row_begin < row_end {
            edges.push((row_begin, position, true));
            edges.push((row_end, position, false));
        }
    }
    edges.sort_unstable_by_key(|(at, _, _)| *at);
    let (mut capacity, mut down) = (0_i128, 0_i128);
    let mut open: BTreeSet<usize> = BTreeSet::new();
    let mut since = begin;
    for (at, position, begins) in edges {
        if let Some(latest) = open.last().filter(|_| at > since) {
            let row = rows[*latest];
            let chip_ms = i128::from(row.chips) * i128::from(at - since);
            capacity += chip_ms;
            down += if row.down { chip_ms } else { 0 };
        }
        since = at;
        if begins {
            open.insert(position);
        } else {
            open.remove(&position);
        }
    }
    let overflow = |_| AccountingError::Overflow { what: format!("block `{block}`"), day };
    let capacity_chip_ms = i64::try_from(capacity).map_err(overflow)?;
    let down_chip_ms = i64::try_from(down).map_err(overflow)?;
    Ok((capacity_chip_ms > 0).then_some(CapacityDay { day, capacity_chip_ms, down_chip_ms }))
}
