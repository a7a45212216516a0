//! Scheduling: which chips a job holds at each instant of a day.

use std::collections::BTreeMap;

/// Chips that a task holds for a while.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Holding {
    /// Where: the position of a pool among the job's.
    pub pool: usize,
    /// When it begins (ms).
    pub begin: i64,
    /// When it ends (ms), later than it begins.
    pub end: i64,
    /// Chips held.
    pub chips: i64,
}

/// Appends the holdings of one task in one pool, whose rows speak of the same chips: where they overlap, the largest counts.
pub fn hold_largest(rows: &mut [Holding], holdings: &mut Vec<Holding>) {
    rows.sort_unstable_by_key(|row| (row.begin, row.end));
    if rows.windows(2).all(|pair| pair[0].end <= pair[1].begin) {
        holdings.extend_from_slice(rows);
        return;
    }
    let mut edges: Vec<(i64, i64, bool)> = Vec::with_capacity(2 * rows.len());
    for row in rows.iter() {
        edges.push((row.begin, row.chips, true));
        edges.push((row.end, row.chips, false));
    }
    edges.sort_unstable_by_key(|(at, _, _)| *at);
    let Some(pool) = rows.first().map(|row| row.pool) else { return };
    let mut open: BTreeMap<i64, i64> = BTreeMap::new();
    let mut since = i64::MIN;
    for (at, chips, begins) in edges {
        if at > since {
            if let Some((chips, _)) = open.last_key_value() {
                holdings.push(Holding { pool, begin: since, end: at, chips: *chips });
            }
            since = at;
        }
        let number = open.entry(chips).or_default();
        *number += if begins { 1 } else { -1 };
        if *number == 0 {
            open.remove(&chips);
        }
    }
}

/// Walks over the stretches of time in which an attempt holds the same chips.
///
/// Calls `visit(begin, end, chips of each pool, chips in all)` for each, in the order of time; stretches in which it holds
/// nothing are left out. Sums are 128-bit, so that no holding of 64 bits can wrap them.
pub fn walk(holdings: &[Holding], pools: usize, mut visit: impl FnMut(i64, i64, &[i128], i128)) {
    let mut edges: Vec<(i64, usize, i128)> = Vec::with_capacity(2 * holdings.len());
    for holding in holdings {
        edges.push((holding.begin, holding.pool, i128::from(holding.chips)));
        edges.push((holding.end, holding.pool, -i128::from(holding.chips)));
    }
    edges.sort_unstable_by_key(|(at, _, _)| *at);
    let mut held_in = vec![0_i128; pools];
    let (mut held, mut since) = (0_i128, i64::MIN);
    for (at, pool, chips) in edges {
        if at > since {
            if held > 0 {
                visit(since, at, &held_in, held);
            }
            since = at;
        }
        held_in[pool] += chips;
        held += chips;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(given: &[(i64, i64, i64)], expected: &[(i64, i64, i64)]) {
        let mut rows: Vec<_> = given
            .iter()
            .map(|(begin, end, chips)| Holding { pool: 0, begin: *begin, end: *end, chips: *chips })
            .collect();
        let mut holdings = Vec::new();
        hold_largest(&mut rows, &mut holdings);
        let mut found = Vec::new();
        walk(&holdings, 1, |begin, end, _, held| found.push((begin, end, i64::try_from(held).unwrap_or(-1))));
        assert_eq!(found, expected);
    }

    #[test]
    fn of_rows_that_overlap_the_largest_counts() {
        check(&[(0, 5, 3), (5, 9, 4)], &[(0, 5, 3), (5, 9, 4)]);
        check(&[(0, 5, 3), (3, 9, 4)], &[(0, 3, 3), (3, 5, 4), (5, 9, 4)]);
        check(&[(0, 9, 4), (3, 5, 3)], &[(0, 3, 4), (3, 5, 4), (5, 9, 4)]);
        check(&[(0, 9, 2), (3, 5, 2), (4, 6, 7)], &[(0, 3, 2), (3, 4, 2), (4, 5, 7), (5, 6, 7), (6, 9, 2)]);
        check(&[(0, 2, i64::MAX), (4, 6, i64::MAX)], &[(0, 2, i64::MAX), (4, 6, i64::MAX)]);
    }

    #[test]
    fn edges_of_one_instant_come_in_any_order() {
        check(&[(0, 4, 5), (2, 4, 9), (4, 8, 5), (4, 6, 9)], &[(0, 2, 5), (2, 4, 9), (4, 6, 9), (6, 8, 5)]);
    }
}
