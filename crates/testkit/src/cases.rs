//! Telemetry from hand-written rows, in the format of the oracle's worked cases; and tables read back as JSON.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow::array::{ArrayRef, Float64Array, Int64Array, StringArray, TimestampMicrosecondArray};
use arrow::datatypes::{Field, Schema};
use arrow::json::writer::{JsonArray, WriterBuilder};
use arrow::record_batch::RecordBatch;
use chrono::{DateTime, NaiveDateTime};
use goodput_model::{Kind, Table};
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use serde_json::{Map, Value};

/// What a test helper fails with: the test shows it and fails.
pub type TestError = Box<dyn std::error::Error + Send + Sync>;

/// A row as JSON.
pub type Row = Map<String, Value>;

/// The folder of shared data: `$GOODPUT_SHARED`, else `../shared` beside the checkout. `None`, said on stderr, if there is
/// none; in CI that is an error.
pub fn shared(what: &str) -> Option<PathBuf> {
    #[expect(clippy::disallowed_methods, reason = "tests find shared data by a variable of the environment")]
    let (chosen, in_ci) = (std::env::var_os("GOODPUT_SHARED"), std::env::var_os("CI").is_some());
    let folder = chosen.map_or_else(|| root().join("../shared"), PathBuf::from);
    if folder.is_dir() {
        return Some(folder);
    }
    assert!(!in_ci, "{} is missing, which CI has", folder.display());
    #[expect(clippy::print_stderr, reason = "a test that skips says so")]
    {
        eprintln!("skipped: {what} wants {}; set GOODPUT_SHARED", folder.display());
    }
    None
}

/// The root of the checkout.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// A listing, a row of column names and then rows, as objects.
pub fn rows_of(listing: Option<&Value>) -> Result<Vec<Row>, TestError> {
    let Some(listing) = listing.and_then(Value::as_array) else { return Ok(Vec::new()) };
    let Some((names, rows)) = listing.split_first() else { return Ok(Vec::new()) };
    let names: Vec<String> = serde_json::from_value(names.clone())?;
    rows.iter()
        .map(|row| {
            let values: Vec<Value> = serde_json::from_value(row.clone())?;
            if values.len() != names.len() {
                return Err(format!("a row has {} values for {} columns: {row}", values.len(), names.len()).into());
            }
            Ok(names.iter().cloned().zip(values).collect())
        })
        .collect()
}

/// Writes the rows of a case (`{"jobs": [[names], [row], ...], ...}`) in the layout of the contract. Columns that are not
/// the contract's are texts.
pub fn write_telemetry(root: &Path, rows: &Value) -> Result<(), TestError> {
    let tables = rows.as_object().ok_or("the rows are no object")?;
    for (name, listing) in tables {
        let table = Table::from_name(name).ok_or_else(|| format!("there is no table {name}"))?;
        let mut partitions: BTreeMap<String, Vec<Row>> = BTreeMap::new();
        for mut row in rows_of(Some(listing))? {
            let dates = match row.remove("date") {
                Some(Value::Array(dates)) => dates,
                Some(date) => vec![date],
                None => return Err("a row has no date".into()),
            };
            for date in dates {
                let date = date.as_str().ok_or("a date is no text")?.to_owned();
                partitions.entry(date).or_default().push(row.clone());
            }
        }
        for (date, rows) in partitions {
            let folder = root.join(table.name()).join(format!("date={date}"));
            write_parquet(&folder.join("part-0.parquet"), &batch_of(table, &rows)?)?;
        }
    }
    Ok(())
}

/// Writes the further files of a case: copies of others, or files without bytes.
pub fn write_files(root: &Path, files: Option<&Value>) -> Result<(), TestError> {
    for file in rows_of(files)? {
        let path = root.join(file.get("path").and_then(Value::as_str).ok_or("a file has no path")?);
        fs::create_dir_all(path.parent().ok_or("a file has no folder")?)?;
        match file.get("copy_of").and_then(Value::as_str) {
            Some(source) => fs::copy(root.join(source), &path).map(|_| ())?,
            None => fs::write(&path, [])?,
        }
    }
    Ok(())
}

/// Writes a batch as a Parquet file, with its folder.
pub fn write_parquet(path: &Path, batch: &RecordBatch) -> Result<(), TestError> {
    fs::create_dir_all(path.parent().ok_or("a file has no folder")?)?;
    let mut writer = ArrowWriter::try_new(fs::File::create(path)?, batch.schema(), None)?;
    writer.write(batch)?;
    writer.close()?;
    Ok(())
}

/// The rows of a table as a batch of the contract's columns, and of others that occur.
fn batch_of(table: Table, rows: &[Row]) -> Result<RecordBatch, TestError> {
    let contract: BTreeMap<&str, Kind> = table.columns().iter().map(|column| (column.name, column.kind)).collect();
    let extra: BTreeSet<&str> = rows
        .iter()
        .flat_map(|row| row.keys().map(String::as_str))
        .filter(|name| !contract.contains_key(name))
        .collect();
    let columns = table.columns().iter().map(|column| (column.name, column.kind));
    let columns = columns.chain(extra.into_iter().map(|name| (name, Kind::String)));
    let mut fields = Vec::new();
    let mut arrays = Vec::new();
    for (name, kind) in columns {
        let array = array_of(rows, name, kind)?;
        fields.push(Field::new(name, array.data_type().clone(), true));
        arrays.push(array);
    }
    Ok(RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays)?)
}

fn array_of(rows: &[Row], name: &str, kind: Kind) -> Result<ArrayRef, TestError> {
    let values = rows.iter().map(|row| row.get(name).filter(|value| !value.is_null()));
    let wrong = |value: &Value| -> TestError { format!("{name}: {value} is no {kind}").into() };
    fn all<T>(values: impl Iterator<Item = Result<Option<T>, TestError>>) -> Result<Vec<Option<T>>, TestError> {
        values.collect()
    }
    Ok(match kind {
        Kind::String => {
            let texts = values.map(|value| value.map(|value| value.as_str().ok_or_else(|| wrong(value))).transpose());
            Arc::new(StringArray::from(all(texts)?))
        }
        Kind::Int => {
            let ints = values.map(|value| value.map(|value| value.as_i64().ok_or_else(|| wrong(value))).transpose());
            Arc::new(Int64Array::from(all(ints)?))
        }
        Kind::Float => {
            let float = |value: &Value| match value {
                Value::String(text) => text.parse().map_err(|_| wrong(value)),
                other => other.as_f64().ok_or_else(|| wrong(value)),
            };
            let floats = values.map(|value| value.map(float).transpose());
            Arc::new(Float64Array::from(all(floats)?))
        }
        Kind::Timestamp => {
            let instant = |value: &Value| micros(value.as_str().ok_or_else(|| wrong(value))?);
            let instants = values.map(|value| value.map(instant).transpose());
            Arc::new(TimestampMicrosecondArray::from(all(instants)?).with_timezone("UTC"))
        }
    })
}

/// An instant such as `2026-01-01T00:00Z`, `2026-01-01T01:00:00.250Z` or with an offset, in µs since the epoch.
fn micros(text: &str) -> Result<i64, TestError> {
    if let Ok(instant) = DateTime::parse_from_rfc3339(text) {
        return Ok(instant.timestamp_micros());
    }
    let short = NaiveDateTime::parse_from_str(text, "%Y-%m-%dT%H:%MZ");
    Ok(short.map_err(|error| format!("{text}: {error}"))?.and_utc().timestamp_micros())
}

/// All rows of a published table as JSON, with the columns that the paths carry; in the order of files and rows. An empty
/// table if there is no such folder.
pub fn read_table(warehouse: &Path, table: &str) -> Result<Vec<Row>, TestError> {
    let mut rows = Vec::new();
    let folder = warehouse.join(table);
    for path in parquet_files(&folder)? {
        let reader = ParquetRecordBatchReaderBuilder::try_new(fs::File::open(&path)?)?.build()?;
        for batch in reader {
            let mut bytes = Vec::new();
            let mut writer = WriterBuilder::new().with_explicit_nulls(true).build::<_, JsonArray>(&mut bytes);
            writer.write(&batch?)?;
            writer.finish()?;
            drop(writer);
            let batch: Vec<Row> = serde_json::from_slice(&bytes)?;
            rows.extend(batch.into_iter().map(|row| with_path_columns(row, &path, &folder)));
        }
    }
    Ok(rows)
}

fn with_path_columns(mut row: Row, path: &Path, folder: &Path) -> Row {
    let below = path.strip_prefix(folder).unwrap_or(path);
    for part in below.components() {
        if let Some((name, value)) = part.as_os_str().to_string_lossy().split_once('=') {
            let is_null = value == "__HIVE_DEFAULT_PARTITION__";
            row.entry(name).or_insert(if is_null { Value::Null } else { Value::String(value.to_owned()) });
        }
    }
    row
}

/// The Parquet files below a folder, in order.
pub fn parquet_files(folder: &Path) -> Result<Vec<PathBuf>, TestError> {
    let mut files = Vec::new();
    if folder.is_dir() {
        for entry in fs::read_dir(folder)? {
            let path = entry?.path();
            if path.is_dir() {
                files.extend(parquet_files(&path)?);
            } else if path.extension().is_some_and(|extension| extension == "parquet") {
                files.push(path);
            }
        }
    }
    files.sort();
    Ok(files)
}
