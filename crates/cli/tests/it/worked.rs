//! The cases that were worked out by hand.

use std::collections::BTreeMap;

use goodput_testkit::cases::{Row, rows_of, shared, write_files};
use serde_json::Value;

use crate::program::{Site, text};

const POOL_BUCKETS: [&str; 6] = ["capacity", "down", "held", "partial", "allocated", "idle"];

type Quantities = BTreeMap<String, i64>;

#[test]
fn every_worked_case_gives_the_numbers_worked_out_by_hand() {
    let Some(shared) = shared("the worked cases") else { return };
    let mut files: Vec<_> =
        std::fs::read_dir(shared.join("oracle/worked")).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.extension().is_some_and(|extension| extension == "json"));
    files.sort();
    assert!(files.len() >= 30, "there are {} cases", files.len());
    for file in files {
        let case: Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
        check(&file.display().to_string(), &case);
    }
}

fn check(name: &str, case: &Value) {
    let site = Site::with(&case["rows"]);
    write_files(&site.telemetry(), case.get("files")).unwrap();
    let (from, to) = (case["from"].as_str().unwrap(), case["to"].as_str().unwrap());
    let settle = format!("settle_days={}", case["settle_days"].as_i64().unwrap_or(7));
    site.run(&["--from", from, "--to", to, "--set", &settle]);

    let unit = case["unit_ms"].as_i64().unwrap();
    let expected = &case["expected"];
    for (table, keys) in
        [("pool_day", &["date", "cell", "accelerator"][..]), ("job_day", &["date", "job_id", "cell", "accelerator"])]
    {
        let found = quantities(site.table(table), keys, 1, "_chip_ms");
        let wanted = quantities(rows_of(expected.get(table)).unwrap(), keys, unit, "");
        assert_eq!(found, wanted, "{name}: {table}");
    }
    let counted = |rows: Vec<Row>| -> BTreeMap<String, i64> {
        let count = |row: Row| {
            (
                format!("{} {} {}", row["date"], text(&row, "source_table"), text(&row, "reason")),
                row["rows"].as_i64().unwrap(),
            )
        };
        rows.into_iter().map(count).collect()
    };
    assert_eq!(
        counted(site.table("data_quality")),
        counted(rows_of(expected.get("data_quality")).unwrap()),
        "{name}: data_quality"
    );
    for wanted in rows_of(expected.get("job_attributes")).unwrap() {
        let rows: Vec<Row> = site.table("job_day");
        let of_job = rows.iter().filter(|row| row["date"] == wanted["date"] && row["job_id"] == wanted["job_id"]);
        let mut number = 0;
        for row in of_job {
            for (column, value) in &wanted {
                assert_eq!(&row[column], value, "{name}: {column} of {wanted:?}");
            }
            number += 1;
        }
        assert!(number > 0, "{name}: no row of {wanted:?}");
    }
    if let Some(ratios) = expected.get("ratios").and_then(Value::as_object) {
        let fleet = site.query("SELECT * FROM goodput_quarterly WHERE segment_by = 'fleet'");
        assert_eq!(fleet.len(), 1);
        for (ratio, wanted) in ratios {
            let wanted = fraction(wanted.as_str().unwrap());
            let found = fleet[0][ratio].as_f64().unwrap();
            assert!((found - wanted).abs() < 1e-15, "{name}: {ratio} is {found}, not {wanted}");
        }
    }
}

fn fraction(text: &str) -> f64 {
    let (numerator, denominator) = text.split_once('/').unwrap_or((text, "1"));
    numerator.parse::<f64>().unwrap() / denominator.parse::<f64>().unwrap()
}

/// Key -> the quantities of a row that are not zero; rows in which all are zero are left out of pools.
fn quantities(rows: Vec<Row>, keys: &[&str], unit: i64, suffix: &str) -> BTreeMap<String, Quantities> {
    let mut found = BTreeMap::new();
    let number = rows.len();
    for row in rows {
        let key: Vec<String> = keys.iter().map(|key| row[*key].to_string()).collect();
        let mut quantities = Quantities::new();
        for (column, value) in row.iter().filter(|(column, _)| !keys.contains(&column.as_str())) {
            if let (Some(bucket), Some(value)) = (column.strip_suffix(suffix), value.as_i64())
                && value != 0
            {
                quantities.insert(bucket.to_owned(), value * unit);
            }
        }
        found.insert(key.join(" "), quantities);
    }
    assert_eq!(found.len(), number, "a key occurs twice");
    let is_pool = !keys.contains(&"job_id");
    found.retain(|_, quantities| !is_pool || POOL_BUCKETS.iter().any(|bucket| quantities.contains_key(*bucket)));
    found
}
