//! What was made of partitions of telemetry: each is read once in a run and kept for as long as a window asks for it.

use std::collections::BTreeMap;

use goodput_engine::spill::Spilled;
use goodput_model::Day;

/// What the steps of grain `partition` made of the partitions that were read.
#[derive(Debug, Default)]
pub(crate) struct Collected {
    /// The last day whose partitions were read; days are read in order.
    through: Option<Day>,
    /// For each step, what it made at each reading.
    pieces: BTreeMap<String, Vec<Piece>>,
}

#[derive(Debug)]
struct Piece {
    /// The last day whose partitions are in it.
    last: Day,
    rows: Spilled,
}

impl Collected {
    /// The first day whose partitions are to be read for a window that begins on a day; `None` if the window, which ends
    /// on another, was read.
    pub(crate) fn unread(&self, first: Day, last: Day) -> Option<Day> {
        let Some(through) = self.through else { return Some(first) };
        let next = first.max(through.plus(1));
        (next <= last).then_some(next)
    }

    /// Adds what the steps made of the partitions up to a day.
    pub(crate) fn add(&mut self, last: Day, made: BTreeMap<String, Spilled>) {
        for (step, rows) in made {
            self.pieces.entry(step).or_default().push(Piece { last, rows });
        }
        self.through = Some(last);
    }

    /// Lets go of what lies before a day altogether.
    pub(crate) fn forget_before(&mut self, first: Day) {
        for pieces in self.pieces.values_mut() {
            pieces.retain(|piece| piece.last >= first);
        }
    }

    /// What a step made that is still kept.
    pub(crate) fn of(&self, step: &str) -> Vec<Spilled> {
        self.pieces.get(step).into_iter().flatten().map(|piece| piece.rows.clone()).collect()
    }
}
