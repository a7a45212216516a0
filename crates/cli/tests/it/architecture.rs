//! What ARCHITECTURE.md says is so.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

use goodput_testkit::cases::root;
use serde_json::Value;

/// The crates in dependency order: each may use those before it.
const ORDER: [&str; 8] = [
    "goodput-model",
    "goodput-accounting",
    "goodput-store",
    "goodput-engine",
    "goodput-pipeline",
    "goodput-simulate",
    "goodput-cli",
    "goodput-testkit",
];

/// Crates and what they use, but for development.
fn dependencies() -> BTreeMap<String, BTreeSet<String>> {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--no-deps", "--offline"])
        .current_dir(root())
        .output()
        .unwrap();
    let metadata: Value = serde_json::from_slice(&output.stdout).unwrap();
    let packages = metadata["packages"].as_array().unwrap().iter();
    packages
        .map(|package| {
            let used = package["dependencies"].as_array().unwrap().iter();
            let used = used.filter(|used| used["kind"].is_null()).map(|used| used["name"].as_str().unwrap().to_owned());
            (package["name"].as_str().unwrap().to_owned(), used.collect())
        })
        .collect()
}

#[test]
fn crates_use_only_those_before_them() {
    let dependencies = dependencies();
    let names: BTreeSet<&str> = dependencies.keys().map(String::as_str).collect();
    assert_eq!(names, ORDER.into_iter().collect());
    for (position, name) in ORDER.iter().enumerate() {
        let allowed: BTreeSet<&str> = ORDER[..position].iter().copied().collect();
        for used in dependencies[*name].iter().filter(|used| used.starts_with("goodput-")) {
            assert!(allowed.contains(used.as_str()), "{name} uses {used}");
            // The test kit is for development, and needs neither stores nor the engine.
            assert!(used != "goodput-testkit", "{name} uses {used}");
        }
    }
}

#[test]
fn only_some_crates_know_the_engine_and_the_stores() {
    let may_use = BTreeMap::from([
        ("datafusion", vec!["goodput-engine"]),
        ("object_store", vec!["goodput-engine", "goodput-store"]),
        ("yaml_serde", vec!["goodput-pipeline"]),
        ("rand", vec!["goodput-simulate"]),
        ("clap", vec!["goodput-cli"]),
        ("anyhow", vec!["goodput-cli"]),
    ]);
    for (name, used) in dependencies() {
        for (library, users) in &may_use {
            let uses = used.contains(*library);
            assert!(!uses || users.contains(&name.as_str()), "{name} uses {library}");
        }
    }
}

#[test]
fn the_code_map_names_every_crate_and_every_table() {
    let text = std::fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap();
    for name in ORDER {
        let folder = name.trim_start_matches("goodput-");
        assert!(text.contains(&format!("| `{folder}` |")), "ARCHITECTURE.md has no row for `{folder}`");
    }
    for entry in std::fs::read_dir(root().join("sql")).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "sql") {
            let table = path.file_stem().unwrap().to_string_lossy().into_owned();
            assert!(text.contains(&format!("`{table}`")), "ARCHITECTURE.md does not name `{table}`");
        }
    }
    assert!(text.lines().count() < 150, "ARCHITECTURE.md is two pages at most");
}
