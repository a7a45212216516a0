//! What is planned: a queue of events in time. Most of them lie within minutes, so a day is cut into slots, and only the
//! events of the slot at hand are kept in order.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use goodput_model::Day;

use crate::{DAY, MINUTE};

/// Events of this many ms are put in order together.
const SLOT: i64 = MINUTE;

/// An event with its instant, in the order in which they were planned within an instant.
type Planned<E> = (i64, u64, E);

/// Events in the order of time.
#[derive(Debug)]
pub(crate) struct Agenda<E> {
    /// The instant at which the day at hand begins, and ends.
    begin: i64,
    end: i64,
    /// Events of the slot at hand.
    at_hand: BinaryHeap<Reverse<Planned<E>>>,
    /// The number of the slot at hand, and the events of those after it.
    slot: usize,
    slots: Vec<Vec<Planned<E>>>,
    /// Events of later days.
    later: BTreeMap<Day, Vec<Planned<E>>>,
    planned: u64,
}

impl<E: Ord> Agenda<E> {
    /// An agenda without events, of no day.
    pub(crate) fn new() -> Agenda<E> {
        let slots = usize::try_from(DAY / SLOT).unwrap_or(0);
        Agenda {
            begin: i64::MIN,
            end: i64::MIN,
            at_hand: BinaryHeap::new(),
            slot: 0,
            slots: (0..slots).map(|_| Vec::new()).collect(),
            later: BTreeMap::new(),
            planned: 0,
        }
    }

    /// Turns to a day, when all events of the one before it have happened.
    pub(crate) fn begin(&mut self, day: Day) {
        (self.begin, self.end, self.slot) = (day.midnight(), day.plus(1).midnight(), 0);
        for planned in self.later.remove(&day).unwrap_or_default() {
            self.file(planned);
        }
    }

    /// Plans an event, which must not lie before the one that was taken last.
    pub(crate) fn plan(&mut self, at: i64, event: E) {
        let planned = (at, self.planned, event);
        self.planned += 1;
        if at < self.end {
            self.file(planned);
        } else {
            self.later.entry(Day::of_instant(at)).or_default().push(planned);
        }
    }

    fn file(&mut self, planned: Planned<E>) {
        let slot = usize::try_from((planned.0 - self.begin) / SLOT).unwrap_or(0);
        match self.slots.get_mut(slot) {
            Some(events) if slot > self.slot => events.push(planned),
            _ => self.at_hand.push(Reverse(planned)),
        }
    }

    /// Takes the next event of the day.
    pub(crate) fn take(&mut self) -> Option<(i64, E)> {
        while self.at_hand.is_empty() {
            self.slot += 1;
            let events = self.slots.get_mut(self.slot)?;
            self.at_hand.extend(events.drain(..).map(Reverse));
        }
        self.at_hand.pop().map(|Reverse((at, _, event))| (at, event))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_come_in_the_order_of_time_and_of_plans() {
        let mut agenda = Agenda::new();
        let (first, second) = (Day(10), Day(11));
        for (at, event) in [(DAY, 'e'), (5 * MINUTE, 'c'), (3, 'b'), (DAY - 1, 'd'), (0, 'a'), (DAY, 'f')] {
            agenda.plan(first.midnight() + at, event);
        }
        let mut seen = String::new();
        for day in [first, second] {
            agenda.begin(day);
            while let Some((at, event)) = agenda.take() {
                seen.push(event);
                if event == 'c' {
                    agenda.plan(at, 'x');
                    agenda.plan(at + MINUTE, 'y');
                }
            }
            seen.push('|');
        }
        assert_eq!(seen, "abcxyd|ef|");
    }
}
