//! Other sources as contract telemetry.

use std::path::Path;

use goodput_testkit::cases::shared;
use serde_json::{Value, json};

use crate::oracle::script;
use crate::program::{Site, goodput, stderr};

/// Runs the adapter on a folder; it must succeed.
fn ingest(site: &Site, input: &Path) {
    let output = goodput()
        .args(["run", "-p", "pipelines/ingest-clustercockpit.yaml"])
        .arg("--set")
        .arg(format!("input={}", input.display()))
        .arg("--set")
        .arg(format!("telemetry={}", site.telemetry().display()))
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
}

#[test]
fn clustercockpit_from_csv_to_books() {
    let Some(shared) = shared("the ClusterCockpit export") else { return };
    let site = Site::empty();
    ingest(&site, &shared.join("data/clustercockpit"));
    let record = site.run(&[]);
    assert_eq!((&record["from"], &record["to"]), (&json!("2023-02-07"), &json!("2023-02-10")));
    let pools = site.query(
        "SELECT accelerator, sum(allocated_chip_ms) AS allocated_chip_ms, min(capacity_chip_ms) AS least, \
         max(capacity_chip_ms) AS most FROM pool_day GROUP BY accelerator ORDER BY accelerator",
    );
    // Accelerator-seconds of the export, added up on their own; capacity of a day.
    let expected = [("a100", 4_149_600, 160), ("a100m80", 2_347_208, 120), ("a40", 7_831_326, 352)];
    assert_eq!(pools.len(), expected.len());
    for (pool, (accelerator, seconds, chips)) in pools.iter().zip(expected) {
        assert_eq!(pool["accelerator"], accelerator);
        assert_eq!(pool["allocated_chip_ms"], json!(seconds * 1_000_i64), "{accelerator}");
        assert_eq!(pool["least"], json!(chips * 86_400_000_i64), "{accelerator}");
        assert_eq!(pool["most"], json!(chips * 86_400_000_i64), "{accelerator}");
    }
    let fleet = site.query(
        "SELECT allocated_chip_ms / 3600000.0 AS hours, allocated_chip_ms, unobserved_chip_ms, runtime_goodput, \
         runtime_coverage FROM goodput_quarterly WHERE segment_by = 'fleet'",
    );
    assert!((fleet[0]["hours"].as_f64().unwrap() - 3980.0372).abs() < 1e-4);
    assert_eq!(fleet[0]["allocated_chip_ms"], fleet[0]["unobserved_chip_ms"]);
    assert_eq!(fleet[0]["runtime_goodput"], Value::Null);
    assert_eq!(fleet[0]["runtime_coverage"], json!(0.0));

    let expected = site.path().join("expected");
    let (telemetry, warehouse) = (site.telemetry(), site.warehouse());
    let oracle = shared.join("oracle");
    let days = ["--from", "2023-02-07", "--to", "2023-02-10", "--out", expected.to_str().unwrap()];
    let mut arguments = vec![telemetry.to_str().unwrap()];
    arguments.extend(days);
    script(&oracle, "oracle.py", &arguments);
    script(&oracle, "compare.py", &[expected.to_str().unwrap(), warehouse.to_str().unwrap()]);
}

const HEADER: &str = "id,job_id,cluster,subcluster,cluster_partition,submit_time,start_time,duration,walltime,job_state,\
num_nodes,num_hwthreads,num_acc,smt,shared,hpc_user,project,array_job_id,resources,footprint";

/// A job: number, submission, start, duration, state, hosts with so many accelerators each.
type Job<'a> = (&'a str, i64, i64, i64, &'a str, &'a [i64]);

/// Writes an export of jobs.
fn export(site: &Site, jobs: &[Job<'_>]) -> std::path::PathBuf {
    let input = site.path().join("input");
    std::fs::create_dir_all(&input).unwrap();
    let mut text = format!("{HEADER}\n");
    for (at, (number, submit, start, duration, state, hosts)) in jobs.iter().enumerate() {
        let resources: Vec<Value> = hosts
            .iter()
            .enumerate()
            .map(|(host, chips)| {
                let accelerators: Vec<String> = (0..*chips).map(|chip| format!("00:{chip:02}")).collect();
                json!({ "hostname": format!("n{host}"), "accelerators": accelerators })
            })
            .collect();
        let resources = Value::Array(resources).to_string().replace('"', "\"\"");
        let chips: i64 = hosts.iter().sum();
        text.push_str(&format!(
            "{at},{number},alex,a40,a40,{submit},{start},{duration},0,{state},{},1,{chips},1,x,u,p,0,\"{resources}\",{{}}\n",
            hosts.len()
        ));
    }
    std::fs::write(input.join("job.csv"), text).unwrap();
    let cluster = json!({ "name": "alex", "subClusters": [{
        "name": "a40", "nodes": "n[0-3]", "topology": { "accelerators": [{}, {}, {}, {}, {}, {}, {}, {}] } }] });
    std::fs::write(input.join("alex_cluster.json"), cluster.to_string()).unwrap();
    input
}

/// 2026-01-01T00:00:00Z in seconds.
const MIDNIGHT: i64 = 1_767_225_600;

#[test]
fn case_1_a_number_used_again_is_another_job() {
    let site = Site::empty();
    let later = MIDNIGHT + 3 * 86_400;
    let input = export(
        &site,
        &[("7", MIDNIGHT, MIDNIGHT + 60, 3_600, "completed", &[1]), ("7", later, later + 60, 3_600, "running", &[2])],
    );
    ingest(&site, &input);
    let jobs = site.query("SELECT DISTINCT job_id, chips_required FROM telemetry.jobs ORDER BY job_id");
    assert_eq!(jobs.len(), 2, "{jobs:?}");
    assert_eq!(jobs[0]["job_id"], format!("alex/7/{MIDNIGHT}"));
    let open = site.query("SELECT count(*) AS n FROM telemetry.jobs WHERE chips_required = 2 AND end_ts IS NOT NULL");
    assert_eq!(open[0]["n"], json!(0));
}

#[test]
fn case_2_every_attempt_of_a_requeued_job_counts() {
    let site = Site::empty();
    let input = export(
        &site,
        &[
            ("7", MIDNIGHT, MIDNIGHT + 30_000, 6_104, "completed", &[1]),
            ("7", MIDNIGHT, MIDNIGHT + 100, 3_882, "failed", &[1]),
            ("7", MIDNIGHT, MIDNIGHT + 10_000, 4_456, "failed", &[1]),
        ],
    );
    ingest(&site, &input);
    site.run(&[]);
    assert_eq!(site.sums("job_day")["allocated"], (3_882 + 4_456 + 6_104) * 1_000);
    let attempts = site.query("SELECT attempt, start_ts FROM telemetry.allocations ORDER BY start_ts");
    let attempts: Vec<&Value> = attempts.iter().map(|row| &row["attempt"]).collect();
    assert_eq!(attempts, [0, 1, 2]);
    assert_eq!(site.query("SELECT DISTINCT job_id FROM telemetry.jobs").len(), 1);
}

#[test]
fn case_4_and_5_chips_are_counted_once_and_numbers_are_texts() {
    let site = Site::empty();
    let input = export(&site, &[("715219_23", 0, MIDNIGHT, 3_600, "completed", &[8, 8, 8, 8])]);
    ingest(&site, &input);
    site.run(&[]);
    assert_eq!(site.sums("job_day")["allocated"], 32 * 3_600_000);
    assert_eq!(site.query("SELECT DISTINCT job_id FROM job_day")[0]["job_id"], format!("alex/715219_23/{MIDNIGHT}"));
}

#[test]
fn a_broken_export_is_named_with_its_line() {
    let site = Site::empty();
    let input =
        export(&site, &[("7", 0, MIDNIGHT, 3_600, "completed", &[1]), ("8", 0, MIDNIGHT, 3_600, "completed", &[1])]);
    let file = input.join("job.csv");
    let text = std::fs::read_to_string(&file).unwrap();
    let cases = [
        (text.replace("1,8,alex,a40,a40,0,", "1,8,alex,a40,a40,never,"), "line 3"),
        (text.replace("start_time", "begin"), "`start_time`"),
        (text.replacen("1,8,alex", "1,8", 1), "line 3"),
    ];
    for (spoiled, expected) in cases {
        std::fs::write(&file, spoiled).unwrap();
        let output = goodput()
            .args(["run", "-p", "pipelines/ingest-clustercockpit.yaml", "--set"])
            .arg(format!("input={}", input.display()))
            .arg("--set")
            .arg(format!("telemetry={}", site.telemetry().display()))
            .output()
            .unwrap();
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(said.contains("job.csv") && said.contains(expected), "wants {expected}: {said}");
    }
}
