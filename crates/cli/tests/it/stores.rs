//! Telemetry and warehouse in stores of different kinds, and what is said of settings that are wrong.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Output;

use goodput_store::{Location, StoreOptions};
use goodput_testkit::cases::root;
use goodput_testkit::faults::{FAULTS, FaultProxy, Plan};
use goodput_testkit::servers::{self, Server};

use crate::program::{Site, goodput, stderr};

const TABLES: [&str; 6] =
    ["pool_day", "job_day", "goodput_daily", "goodput_quarterly", "data_quality", "audit_findings"];

type Settings = Vec<(String, String)>;

/// The program with settings of stores, and none of the machine's own.
fn with(settings: &[(String, String)], arguments: &[&str]) -> Output {
    let mut command = goodput();
    for (name, _) in std::env::vars_os() {
        if ["AWS_", "AZURE_", "GOOGLE_", "ALLOW_"].iter().any(|prefix| name.to_string_lossy().starts_with(prefix)) {
            command.env_remove(name);
        }
    }
    command.envs(settings.iter().cloned()).args(arguments).output().unwrap()
}

/// Runs the main job on the sample; all tables as `sql` tells them, each row a line, in no order.
fn run(telemetry: &str, warehouse: &str, settings: &[(String, String)]) -> BTreeMap<&'static str, Vec<String>> {
    let places = [format!("telemetry={telemetry}"), format!("warehouse={warehouse}")];
    let places = ["--set", &places[0], "--set", &places[1]];
    let done = with(settings, &[&["run", "--run-id", "r"], &places[..]].concat());
    assert_eq!(done.status.code(), Some(0), "{}", stderr(&done));
    let rows = |table: &&'static str| {
        let query = format!("SELECT * FROM {table}");
        let told = with(settings, &[&["sql", "--format", "csv", &query], &places[..]].concat());
        assert_eq!(told.status.code(), Some(0), "{}", stderr(&told));
        let mut rows: Vec<String> = String::from_utf8(told.stdout).unwrap().lines().map(str::to_owned).collect();
        rows[1..].sort();
        (*table, rows)
    };
    TABLES.iter().map(rows).collect()
}

/// What the run makes of the sample with everything on local disks.
fn all_local() -> BTreeMap<&'static str, Vec<String>> {
    let site = Site::empty();
    let rows = run(&sample(), &site.warehouse().display().to_string(), &[]);
    assert!(rows["job_day"].len() > 100 && rows["goodput_quarterly"].len() > 1);
    rows
}

fn sample() -> String {
    root().join("testdata/telemetry").canonicalize().unwrap().display().to_string()
}

/// Copies the sample into a store.
fn upload(to: &str, settings: &Settings) {
    let to = Location::parse(to, Path::new("/"), &StoreOptions::new(settings.clone())).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let sample = sample();
    let mut folders = vec![std::path::PathBuf::from(&sample)];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let name = path.strip_prefix(&sample).unwrap().to_str().unwrap().to_owned();
            let bytes = std::fs::read(&path).unwrap();
            runtime.block_on(to.write(to.join(&name).root(), bytes.into())).unwrap();
        }
    }
}

fn new_name(what: &str) -> String {
    #[expect(clippy::disallowed_methods, reason = "a name that differs from run to run")]
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_micros();
    format!("{what}-{now:x}-{:x}", std::process::id())
}

#[test]
fn telemetry_and_warehouse_may_lie_in_different_stores() {
    let (Some(s3), Some(azure)) = (servers::s3("S3 and Azure"), servers::azure("S3 and Azure")) else { return };
    let expected = all_local();
    let settings = [s3.settings(), azure.settings()].concat();
    assert_eq!(run(&sample(), &s3.url(&new_name("from-local")), &settings), expected);
    let telemetry = s3.url(&new_name("telemetry"));
    upload(&telemetry, &settings);
    assert_eq!(run(&telemetry, &azure.url(&new_name("from-s3")), &settings), expected);
}

#[test]
fn one_in_twenty_requests_may_fail() {
    let Some(server) = servers::s3("a run through a proxy that fails") else { return };
    let expected = all_local();
    let telemetry = server.url(&new_name("faulty-telemetry"));
    upload(&telemetry, &server.settings());
    let plan = Plan { seed: 4, permille: 50, faults: FAULTS.to_vec(), dies_after: None };
    let proxy = FaultProxy::start(server.endpoint(), plan).unwrap();
    let mut settings = server.settings_at(&proxy.url());
    settings.push(("AWS_READ_TIMEOUT".to_owned(), "1s".to_owned()));
    assert_eq!(run(&telemetry, &server.url(&new_name("faulty")), &settings), expected);
    assert!(proxy.failed() > 5, "{} of {} requests failed", proxy.failed(), proxy.requests());
}

const SECRET: &str = "hush-hush-hush-hush";

/// Runs; the program must end with 1, say what is expected, and nowhere the secret, however much it is asked to say.
fn refused(url: &str, settings: &[(&str, &str)], expected: &[&str]) {
    let settings: Settings = settings.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    for command in ["run", "check"] {
        for set in ["telemetry", "warehouse"] {
            // Whether the warehouse is there is seen when something is published, which a run of nothing does not.
            if set == "warehouse" && command == "run" {
                continue;
            }
            let place = format!("{set}={url}");
            let output = with(&settings, &[command, "-vvv", "--set", &place]);
            let said = stderr(&output);
            let shown = format!("{}{said}", String::from_utf8_lossy(&output.stdout));
            assert!(!shown.contains(SECRET), "{command} {place}: {shown}");
            assert_eq!(output.status.code(), Some(1), "{command} {place}: {shown}");
            for part in expected {
                assert!(said.contains(part), "{command} {place} wants `{part}`: {shown}");
            }
        }
    }
}

#[test]
fn case_65_a_setting_that_is_missing_is_named() {
    let keys = [("AWS_ACCESS_KEY_ID", "key"), ("AWS_SECRET_ACCESS_KEY", SECRET)];
    refused(
        "s3://fleet/a",
        &keys,
        &["error: `s3://fleet/a` is not a usable location", "`AWS_REGION` is not set", "hint: set"],
    );
    let http = [&keys[..], &[("AWS_ENDPOINT_URL", "http://127.0.0.1:9")]].concat();
    refused("s3://fleet/a", &http, &["`AWS_ENDPOINT_URL` is plain http", "hint: set `AWS_ALLOW_HTTP=true`"]);
    let half = [("AWS_REGION", "eu-west-1"), ("AWS_SECRET_ACCESS_KEY", SECRET)];
    refused("s3://fleet/a", &half, &["`AWS_ACCESS_KEY_ID` is not", "hint: set `AWS_ACCESS_KEY_ID` as well"]);
    let profile = [("AWS_REGION", "eu-west-1"), ("AWS_PROFILE", "dev")];
    refused("s3://fleet/a", &profile, &["profiles are not read", "aws configure export-credentials --format env"]);
    let nothing = [("AWS_REGION", "eu-west-1"), ("AWS_EC2_METADATA_DISABLED", "true")];
    refused("s3://fleet/a", &nothing, &["hint: set `AWS_ACCESS_KEY_ID` and `AWS_SECRET_ACCESS_KEY`"]);
    refused("az://fleet/a", &[("AZURE_STORAGE_KEY", SECRET)], &["hint: set `AZURE_STORAGE_ACCOUNT_NAME`"]);
    refused(&format!("s3://key:{SECRET}@fleet/a"), &[], &["`s3://fleet/a`", "do not belong into a URL"]);
}

#[test]
fn case_65_what_a_store_refuses_is_told_with_its_setting() {
    let Some(server) = servers::s3("settings that a store refuses") else { return };
    let settings = server.settings();
    let changed = |name: &'static str, value: &'static str| -> Vec<(&str, &str)> {
        let settings = settings.iter().map(|(other, set)| (other.as_str(), set.as_str()));
        settings.filter(|(other, _)| *other != name).chain([(name, value)]).collect()
    };
    let listed =
        |url: &str, settings: &[(&str, &str)], expected: &[&str]| telemetry_refused(&server, url, settings, expected);
    let url = server.url("a");
    listed(
        &url,
        &changed("AWS_SECRET_ACCESS_KEY", SECRET),
        &["403", "hint: the secret is wrong: check `AWS_SECRET_ACCESS_KEY`"],
    );
    listed(&url, &changed("AWS_ACCESS_KEY_ID", SECRET), &["403", "check `AWS_ACCESS_KEY_ID`"]);
    listed(
        "s3://no-such-bucket/a",
        &changed("AWS_REGION", "r"),
        &["hint: there is no bucket `no-such-bucket` at http://"],
    );
}

/// As `refused`, of a store that must be asked.
fn telemetry_refused(server: &Server, url: &str, settings: &[(&str, &str)], expected: &[&str]) {
    let settings: Settings = settings.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    for command in ["run", "check", "plan"] {
        let output = with(&settings, &[command, "-vvv", "--set", &format!("telemetry={url}")]);
        let said = stderr(&output);
        let shown = format!("{}{said}", String::from_utf8_lossy(&output.stdout));
        assert_eq!(output.status.code(), Some(1), "{command} {url} at {}: {shown}", server.endpoint());
        for part in expected {
            assert!(shown.contains(part), "{command} {url} wants `{part}`: {shown}");
        }
        if settings.iter().any(|(name, value)| name == "AWS_SECRET_ACCESS_KEY" && value == SECRET) {
            assert!(!shown.contains(SECRET), "{command} {url}: {shown}");
        }
    }
}
