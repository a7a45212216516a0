//! The window rule: a day's figures are those of its window, whatever range is run and however it is cut.

use goodput_testkit::cases::shared;

use crate::oracle::script;
use crate::program::{Site, published};

const DAYS: [&str; 4] = ["2026-01-01", "2026-01-02", "2026-01-03", "2026-01-04"];

/// Publishes the same days in a warehouse of its own, in the given ranges, with further arguments.
fn publish(site: &Site, name: &str, arguments: &[&str], ranges: &[(&str, &str)]) -> std::path::PathBuf {
    let warehouse = site.path().join(name);
    for (from, to) in ranges {
        let set = format!("warehouse={}", warehouse.display());
        site.run(&[&["--set", &set, "--from", from, "--to", to], arguments].concat());
    }
    warehouse
}

fn check(profile: &str, seeds: std::ops::RangeInclusive<u32>) {
    let Some(shared) = shared("the generator of nasty telemetry") else { return };
    for seed in seeds {
        for settle in ["1", "2", "7"] {
            let site = Site::empty();
            let telemetry = site.telemetry();
            let arguments =
                [telemetry.to_str().unwrap(), "--seed", &seed.to_string(), "--profile", profile, "--jobs", "8"];
            script(&shared.join("oracle"), "generate.py", &arguments);
            let settle_days = format!("settle_days={settle}");
            let chunks = |chunk_days, more: &[&'static str]| {
                [&["--set", settle_days.as_str(), "--set", chunk_days], more].concat()
            };
            let whole = publish(&site, "whole", &chunks("chunk_days=7", &[]), &[(DAYS[0], DAYS[3])]);
            let whole = published(&whole);
            assert!(whole.values().all(|rows| !rows.is_empty()) || profile == "clean", "seed {seed}");
            let all = [(DAYS[0], DAYS[3])];
            let daily: Vec<_> = DAYS.iter().map(|day| (*day, *day)).collect();
            let backwards = [(DAYS[2], DAYS[3]), (DAYS[0], DAYS[1]), (DAYS[1], DAYS[2])];
            let ways = [
                publish(&site, "daily", &chunks("chunk_days=7", &[]), &daily),
                publish(&site, "chunks-of-1", &chunks("chunk_days=1", &["--threads", "1"]), &all),
                publish(&site, "chunks-of-3", &chunks("chunk_days=3", &["--threads", "5"]), &all),
                publish(&site, "little-memory", &chunks("chunk_days=2", &["--memory", "48MiB"]), &all),
                publish(&site, "backwards", &chunks("chunk_days=2", &[]), &backwards),
            ];
            for way in ways {
                for (table, rows) in published(&way) {
                    assert_eq!(rows, whole[table], "{table} by {}, seed {seed}, settle_days {settle}", way.display());
                }
            }
        }
    }
}

#[test]
fn any_cut_of_clean_telemetry_publishes_the_same_rows() {
    check("clean", 10..=11);
}

#[test]
fn any_cut_of_dirty_telemetry_publishes_the_same_rows() {
    check("dirty", 12..=13);
}

#[test]
fn any_cut_of_mixed_schemas_publishes_the_same_rows() {
    check("mixed-schema", 14..=15);
}
