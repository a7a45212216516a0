//! Which phase decides: what an attempt's allocated chips did at each instant of a day.

use goodput_model::Bucket;

use crate::rows::Phase;

/// The buckets that runtime rows give, in the order in which they decide.
const DECIDING: [Bucket; 9] = [
    Bucket::Restore,
    Bucket::Compile,
    Bucket::Init,
    Bucket::Checkpoint,
    Bucket::DataWait,
    Bucket::IdleRuntime,
    Bucket::Eval,
    Bucket::Productive,
    Bucket::Lost,
];

/// A stretch of time that one bucket has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stretch {
    /// When it begins (ms).
    pub begin: i64,
    /// When it ends (ms), later than it begins.
    pub end: i64,
    /// Position in the order of deciding.
    rank: usize,
}

impl Stretch {
    /// A stretch of a phase other than `step`; `None` for phases that take no chip-time and for empty ones.
    pub fn of_phase(phase: Phase, begin: i64, end: i64) -> Option<Stretch> {
        let bucket = match phase {
            Phase::Restore => Bucket::Restore,
            Phase::Compile => Bucket::Compile,
            Phase::Init => Bucket::Init,
            Phase::Checkpoint => Bucket::Checkpoint,
            Phase::DataWait => Bucket::DataWait,
            Phase::Idle | Phase::Unknown(_) => Bucket::IdleRuntime,
            Phase::Eval => Bucket::Eval,
            Phase::Step | Phase::Serve => Bucket::Productive,
            Phase::CheckpointAsync | Phase::DataAsync => return None,
        };
        Stretch::of_bucket(bucket, begin, end)
    }

    /// A stretch of a bucket; `None` for an empty one.
    pub fn of_bucket(bucket: Bucket, begin: i64, end: i64) -> Option<Stretch> {
        let rank = DECIDING.iter().position(|deciding| *deciding == bucket)?;
        (begin < end).then_some(Stretch { begin, end, rank })
    }

    /// What it is booked as.
    pub fn bucket(&self) -> Bucket {
        DECIDING[self.rank]
    }

    /// The part of it in [begin, end).
    pub fn clipped(self, begin: i64, end: i64) -> Option<Stretch> {
        let (begin, end) = (self.begin.max(begin), self.end.min(end));
        (begin < end).then_some(Stretch { begin, end, ..self })
    }
}

/// Makes of stretches that may overlap ones that do not, in the order of time: at each instant the first that decides.
pub fn decide(stretches: &mut Vec<Stretch>) {
    // Nearly all come in order: a stable sort sees that at once.
    stretches.sort_by_key(|stretch| (stretch.begin, stretch.end));
    if stretches.windows(2).all(|pair| pair[0].end <= pair[1].begin) {
        return;
    }
    let given = std::mem::take(stretches);
    stretches.reserve(2 * given.len());
    let mut edges: Vec<(i64, usize, bool)> = Vec::new();
    // Stretches that are open together are looked at together.
    let mut rest = given.as_slice();
    while let Some(first) = rest.first() {
        let (mut number, mut end) = (1, first.end);
        while let Some(next) = rest.get(number).filter(|next| next.begin < end) {
            end = end.max(next.end);
            number += 1;
        }
        let (together, behind) = rest.split_at(number);
        match together {
            [alone] => append(*alone, stretches),
            _ => decide_together(together, &mut edges, stretches),
        }
        rest = behind;
    }
}

/// Decides among stretches that are open together.
fn decide_together(given: &[Stretch], edges: &mut Vec<(i64, usize, bool)>, decided: &mut Vec<Stretch>) {
    edges.clear();
    for stretch in given {
        edges.push((stretch.begin, stretch.rank, true));
        edges.push((stretch.end, stretch.rank, false));
    }
    edges.sort_unstable_by_key(|(at, _, _)| *at);
    let mut open = [0_u32; DECIDING.len()];
    let mut since = i64::MIN;
    for (at, rank, begins) in edges.drain(..) {
        if at > since {
            if let Some(rank) = open.iter().position(|number| *number > 0) {
                append(Stretch { begin: since, end: at, rank }, decided);
            }
            since = at;
        }
        // Edges of one instant come in any order: an end may precede its own begin only if the stretch is empty, and none is.
        if begins { open[rank] += 1 } else { open[rank] -= 1 }
    }
}

/// Appends a stretch, or lengthens the last one if it goes on with it.
fn append(stretch: Stretch, decided: &mut Vec<Stretch>) {
    match decided.last_mut().filter(|last| last.end == stretch.begin && last.rank == stretch.rank) {
        Some(last) => last.end = stretch.end,
        None => decided.push(stretch),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(given: &[(Bucket, i64, i64)], expected: &[(Bucket, i64, i64)]) {
        let mut stretches: Vec<_> =
            given.iter().filter_map(|(bucket, begin, end)| Stretch::of_bucket(*bucket, *begin, *end)).collect();
        decide(&mut stretches);
        let found: Vec<_> = stretches.iter().map(|s| (s.bucket(), s.begin, s.end)).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn the_first_in_the_written_order_decides() {
        use Bucket::{Checkpoint, Eval, Lost, Productive, Restore};
        check(&[], &[]);
        check(&[(Productive, 5, 9), (Eval, 0, 5)], &[(Eval, 0, 5), (Productive, 5, 9)]);
        check(
            &[(Productive, 0, 10), (Checkpoint, 3, 5)],
            &[(Productive, 0, 3), (Checkpoint, 3, 5), (Productive, 5, 10)],
        );
        check(&[(Lost, 0, 10), (Productive, 5, 20)], &[(Lost, 0, 5), (Productive, 5, 20)]);
        check(&[(Eval, 0, 10), (Restore, 0, 10)], &[(Restore, 0, 10)]);
        check(&[(Eval, 0, 6), (Eval, 4, 10)], &[(Eval, 0, 10)]);
        check(&[(Eval, 0, 0), (Productive, 0, 1)], &[(Productive, 0, 1)]);
        check(&[(Eval, 0, 4), (Restore, 4, 8), (Eval, 6, 9)], &[(Eval, 0, 4), (Restore, 4, 8), (Eval, 8, 9)]);
    }
}
