//! The program against a brute-force implementation of the accounting, on nasty generated telemetry.
//!
//! A fixed share of the seeds runs here; all of them with `GOODPUT_SEEDS=1-200 cargo test -p goodput-cli oracle`.

use std::path::Path;
use std::process::Command;

use goodput_testkit::cases::shared;

use crate::program::Site;

/// The seeds of every run of the tests.
const SHARE: (u32, u32) = (1, 6);
const PROFILES: [&str; 3] = ["clean", "dirty", "mixed-schema"];

/// The Python with pyarrow that the test command installs, else the one on the path.
pub(crate) fn python() -> Command {
    #[expect(clippy::disallowed_methods, reason = "the test command says where its Python is")]
    let python = std::env::var_os("GOODPUT_PYTHON").unwrap_or_else(|| "python3".into());
    Command::new(python)
}

/// Runs a script of the oracle, which must succeed.
pub(crate) fn script(oracle: &Path, name: &str, arguments: &[&str]) {
    let output = python().arg(oracle.join(name)).args(arguments).output().unwrap();
    let said = [output.stdout, output.stderr].concat();
    assert!(output.status.success(), "{name} {arguments:?}: {}", String::from_utf8_lossy(&said));
}

fn seeds() -> std::ops::RangeInclusive<u32> {
    #[expect(clippy::disallowed_methods, reason = "the whole is asked for by a variable")]
    let asked = std::env::var("GOODPUT_SEEDS").ok();
    let (first, last) = asked.map_or(SHARE, |asked| {
        let (first, last) = asked.split_once('-').expect("GOODPUT_SEEDS is written as 1-200");
        (first.parse().unwrap(), last.parse().unwrap())
    });
    first..=last
}

fn compare(profile: &str) {
    let Some(shared) = shared("the oracle") else { return };
    let oracle = shared.join("oracle");
    for seed in seeds() {
        let site = Site::empty();
        let (telemetry, warehouse) = (site.telemetry(), site.warehouse());
        let (telemetry, warehouse) = (telemetry.to_str().unwrap(), warehouse.to_str().unwrap());
        let expected = site.path().join("expected");
        let expected = expected.to_str().unwrap();
        // Every settlement that the windows are tested with gets its turn.
        let settle = ["7", "1", "2"][usize::try_from(seed % 3).unwrap()];
        let setting = format!("settle_days={settle}");
        script(&oracle, "generate.py", &[telemetry, "--seed", &seed.to_string(), "--days", "4", "--profile", profile]);
        let days = ["--from", "2026-01-01", "--to", "2026-01-04"];
        let mut arguments = vec![telemetry, "--settle-days", settle, "--out", expected];
        arguments.extend(days);
        script(&oracle, "oracle.py", &arguments);
        let mut arguments = vec!["--set", setting.as_str()];
        arguments.extend(days);
        site.run(&arguments);
        script(&oracle, "compare.py", &[expected, warehouse]);
    }
}

#[test]
fn oracle_agrees_on_clean_telemetry() {
    compare(PROFILES[0]);
}

#[test]
fn oracle_agrees_on_dirty_telemetry() {
    compare(PROFILES[1]);
}

#[test]
fn oracle_agrees_on_mixed_schemas() {
    compare(PROFILES[2]);
}
