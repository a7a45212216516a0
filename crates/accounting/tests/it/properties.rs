use goodput_accounting::job::JobDay;
use goodput_model::buckets::ALLOCATED_BUCKETS;
use goodput_model::{Bucket, MS_PER_DAY};
use proptest::prelude::*;

use crate::random::{LAST, rows, rules};

fn of(day: &JobDay, bucket: Bucket) -> i64 {
    day.chip_ms[bucket.index()]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn job_books_close(rows in rows(), settle in 1..4) {
        for day in rows.book(&rules(settle, 0, LAST)).days {
            let parts: i64 = ALLOCATED_BUCKETS.iter().map(|bucket| of(&day, *bucket)).sum();
            prop_assert_eq!(of(&day, Bucket::Allocated), parts);
            prop_assert!([0, of(&day, Bucket::Productive)].contains(&of(&day, Bucket::Profiled)));
            prop_assert!(of(&day, Bucket::Profiled) > 0 || of(&day, Bucket::Ideal) == 0);
        }
    }

    #[test]
    fn no_negative_bucket(rows in rows(), settle in 1..4) {
        for day in rows.book(&rules(settle, 0, LAST)).days {
            prop_assert!(day.chip_ms.iter().all(|quantity| *quantity >= 0));
            prop_assert!(day.chip_ms.iter().any(|quantity| *quantity > 0), "a row in which all is zero");
        }
    }

    #[test]
    fn job_keys(rows in rows(), settle in 1..4) {
        let days = rows.book(&rules(settle, 0, LAST)).days;
        for pair in days.windows(2) {
            let key = |day: &JobDay| (day.day, day.cell.clone(), day.accelerator.clone());
            prop_assert!(key(&pair[0]) < key(&pair[1]), "the keys ascend, so none occurs twice");
        }
        for day in days {
            let is_queue = day.cell.is_none();
            prop_assert_eq!(is_queue, of(&day, Bucket::Queued) > 0);
            prop_assert_eq!(is_queue, of(&day, Bucket::Partial) + of(&day, Bucket::Allocated) == 0);
        }
    }

    /// A task holds at most its chips all day, whatever its rows say.
    #[test]
    fn held_within_what_tasks_can_hold(rows in rows(), settle in 1..4) {
        for day in rows.book(&rules(settle, 0, LAST)).days {
            // Three attempts of two tasks with at most five chips each.
            prop_assert!(of(&day, Bucket::Partial) + of(&day, Bucket::Allocated) <= 3 * 2 * 5 * MS_PER_DAY);
            prop_assert!(of(&day, Bucket::Queued) <= 8 * MS_PER_DAY);
        }
    }

    /// One run over all days, and each day on its own, book the same.
    #[test]
    fn window_rule(rows in rows(), settle in 1..4) {
        let whole = rows.book(&rules(settle, 0, LAST));
        let mut days = Vec::new();
        let mut findings = Vec::new();
        for day in 0..=LAST {
            let alone = rows.book(&rules(settle, day, day));
            days.extend(alone.days);
            findings.extend(alone.findings.iter());
        }
        prop_assert_eq!(&whole.days, &days);
        prop_assert_eq!(whole.findings.iter().collect::<Vec<_>>(), findings);
    }

    /// How rows are written does not depend on the rows before them as far as anyone can see.
    #[test]
    fn rows_collected_together_or_alone(rows in rows(), settle in 1..4) {
        let rules = rules(settle, 0, LAST);
        let (alone, together) = (rows.book(&rules), rows.book_together(&rules));
        prop_assert_eq!(alone.days, together.days);
        prop_assert_eq!(alone.findings, together.findings);
    }

    /// A huge job is swept some days at a time.
    #[test]
    fn portions_of_days_do_not_matter(rows in rows(), settle in 1..4, most_bytes in 0..200_usize) {
        let rules = rules(settle, 0, LAST);
        let (whole, portions) = (rows.book(&rules), rows.book_in_portions(&rules, most_bytes));
        prop_assert_eq!(whole.days, portions.days);
        prop_assert_eq!(whole.findings, portions.findings);
    }

    /// Partial results merge in any order.
    #[test]
    fn order_of_rows_does_not_matter(rows in rows(), settle in 1..4) {
        let rules = rules(settle, 0, LAST);
        let (there, back) = (rows.book(&rules), rows.reversed().book(&rules));
        prop_assert_eq!(there.days, back.days);
        prop_assert_eq!(there.findings, back.findings);
    }
}
