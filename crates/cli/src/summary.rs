//! What a person reads after a command.

use std::collections::BTreeMap;
use std::fmt::Write;

use goodput_pipeline::preview::{Checked, Preview};
use goodput_pipeline::record::FleetQuarter;
use goodput_pipeline::{Plan, RunRecord};
use goodput_simulate::{TRUTH, Written};

use crate::args::{SETTLE_DAYS, SimulateArgs};

/// The summary of a run.
pub(crate) fn of_run(record: &RunRecord, plan: &Plan) -> String {
    let mut out = String::new();
    if record.is_idle() {
        line(&mut out, &format!("{}: nothing is due, {} stays as it is", record.pipeline, plan.warehouse));
        kept(&mut out, &record.kept);
        return out;
    }
    let range = match (&record.from, &record.to) {
        (Some(from), Some(to)) if from == to => format!("{from}, "),
        (Some(from), Some(to)) => format!("{from} to {to}, "),
        _ => String::new(),
    };
    let published = if record.days == 1 {
        "1 day published".to_owned()
    } else {
        format!("{} days published", grouped(record.days))
    };
    line(&mut out, &format!("{}: {range}{published} to {}", record.pipeline, plan.warehouse));
    line(&mut out, &format!("run {}, {:.2} s", record.run_id, record.seconds));
    if record.files > 0 {
        let rate = grouped(whole(record.rows_per_second));
        let (rows, files) = (grouped(record.rows), grouped(record.files));
        line(&mut out, &format!("read {rows} rows in {files} files, {}, {rate} rows/s", size(record.bytes)));
    }
    if !record.fleet.is_empty() {
        line(&mut out, "");
        let mut rows = vec![["fleet", "SG", "RG", "PG", "MPG", "observed", "profiled", ""].map(str::to_owned)];
        rows.extend(record.fleet.iter().map(fleet_row));
        table(&mut out, &rows);
    }
    line(&mut out, "");
    let mut rows = vec![["table", "rows", "partitions written", "unchanged", "size"].map(str::to_owned)];
    for (name, table) in &record.tables {
        let (written, unchanged) = (grouped(table.partitions_written), grouped(table.partitions_unchanged));
        rows.push([name.clone(), grouped(table.rows), written, unchanged, size(table.bytes)]);
    }
    table(&mut out, &rows);
    if !record.audits.is_empty() {
        line(&mut out, "");
        line(&mut out, "audits");
        for (name, audit) in &record.audits {
            let example = audit.examples.first().map(ToString::to_string).unwrap_or_default();
            let rows = if audit.rows == 1 { "1 row".to_owned() } else { format!("{} rows", grouped(audit.rows)) };
            line(&mut out, &format!("  {}  {name}: {rows}, such as {}", audit.severity, cut(&example, 100)));
        }
    }
    if !record.data_quality.is_empty() || record.skipped_files > 0 {
        line(&mut out, "");
        // A copy of which a newer one counts is no fault: open rows are recorded daily.
        let is_fault = |reason: &str| reason != "superseded";
        let faults = record.data_quality.iter().filter(|(reason, _)| is_fault(reason));
        let faults: Vec<String> = faults.map(|(reason, rows)| format!("{reason} {}", grouped(*rows))).collect();
        let faults = if faults.is_empty() { "nothing found".to_owned() } else { faults.join(", ") };
        let superseded = record.data_quality.get("superseded").copied().unwrap_or(0);
        line(&mut out, &format!("data quality: {faults} ({} rows gave way to newer copies)", grouped(superseded)));
    }
    if record.days_without_window > 0 {
        let days = grouped(record.days_without_window);
        line(&mut out, &format!("no telemetry: {days} days of the range have no partition in their windows"));
    }
    for file in &record.unreadable_files {
        line(&mut out, &format!("unreadable: {}: {}", file.file, file.problem));
    }
    kept(&mut out, &record.kept);
    if !record.held_back.is_empty() {
        line(&mut out, "");
        line(&mut out, "held back: these days keep what was published before");
        for held in &record.held_back {
            line(&mut out, &format!("  {}  {}", held.date, cut(&held.reason, 160)));
        }
    }
    out
}

fn fleet_row(quarter: &FleetQuarter) -> [String; 8] {
    let ratio = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), |value| format!("{value:.4}"));
    let percent = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), |value| format!("{:.1} %", value * 100.0));
    [
        format!("{} ({} days)", quarter.quarter, quarter.days),
        ratio(quarter.scheduling_goodput),
        ratio(quarter.runtime_goodput),
        ratio(quarter.program_goodput),
        ratio(quarter.mpg),
        percent(quarter.runtime_coverage),
        percent(quarter.program_coverage),
        if quarter.is_provisional { "provisional" } else { "" }.to_owned(),
    ]
}

/// The summary of a plan.
pub(crate) fn of_plan(preview: &Preview) -> String {
    let mut out = String::new();
    if preview.chunks == 0 {
        line(&mut out, &format!("{}: nothing is due", preview.pipeline));
        line(&mut out, &format!("reads {}", preview.reads));
    } else if preview.days.is_empty() {
        line(&mut out, &format!("{}: all at once", preview.pipeline));
        line(&mut out, &format!("reads {}", preview.reads));
    } else {
        let plural = |number: usize, what: &str| format!("{number} {what}{}", if number == 1 { "" } else { "s" });
        let (days, chunks) = (plural(preview.days.len(), "day"), plural(preview.chunks, "chunk"));
        line(&mut out, &format!("{}: {days} in {chunks}", preview.pipeline));
        let (files, bytes) = (grouped(preview.files), size(preview.bytes));
        line(&mut out, &format!("reads {files} files, {bytes}, from {}", preview.reads));
    }
    line(&mut out, &format!("publishes to {}", preview.warehouse));
    line(&mut out, "");
    let mut rows = vec![["step", "grain", "partitions", "reads", "audits"].map(str::to_owned)];
    for step in &preview.steps {
        let partitions = step.partition_by.clone().unwrap_or_else(|| "not published".to_owned());
        rows.push([step.table.clone(), step.grain.clone(), partitions, step.reads.join(", "), step.audits.to_string()]);
    }
    table(&mut out, &rows);
    if !preview.days.is_empty() {
        line(&mut out, "");
        let mut rows = vec![["day", "files of its window", "size", "why it is due"].map(str::to_owned)];
        for day in &preview.days {
            rows.push([day.date.clone(), grouped(day.files), size(day.bytes), day.due.clone()]);
        }
        table(&mut out, &rows);
    }
    kept(&mut out, &preview.kept);
    out
}

/// The days that keep their figures because there is less telemetry than they were computed from.
fn kept(out: &mut String, kept: &BTreeMap<String, String>) {
    if let (Some((first, gone)), Some((last, _))) = (kept.first_key_value(), kept.last_key_value()) {
        let days = if kept.len() == 1 { format!("{first} keeps its") } else { format!("{first} to {last} keep their") };
        line(out, "");
        line(
            out,
            &format!("kept: {days} figures, since telemetry of their windows is gone, such as {}", cut(gone, 100)),
        );
        line(out, "      --from and --to compute them from what is left");
    }
}

/// The summary of a check.
pub(crate) fn of_check(checked: &Checked, plan: &Plan) -> String {
    let mut out = String::new();
    line(&mut out, &format!("{}: {} steps, all statements plan", plan.place, plan.steps.len()));
    line(&mut out, &format!("warehouse {} is reached", plan.warehouse));
    if let Some(telemetry) = &plan.telemetry {
        let range = match (&checked.from, &checked.to) {
            (Some(from), Some(to)) => format!("{from} to {to}"),
            _ => "no partitions".to_owned(),
        };
        let (files, skipped) = (grouped(checked.files), grouped(checked.skipped_files));
        line(&mut out, &format!("telemetry {telemetry}: {range}, {files} data files, {skipped} others skipped"));
    }
    for file in &checked.unreadable_files {
        line(&mut out, &format!("unreadable: {}: {}", file.file, file.problem));
    }
    if !checked.unreadable_files.is_empty() {
        line(&mut out, "hint: write these files again, or name them under `excluded_files` to do without them");
    } else if plan.telemetry.is_some() {
        line(&mut out, "every data file has the columns of the contract");
    }
    out
}

/// The truth and a warehouse as texts that are equal if every row is.
const COMPARED: &str =
    "SELECT * EXCEPT (metric_version, run_id, is_provisional) FROM job_day ORDER BY date, job_id, cell, accelerator";

/// The summary of a simulation.
pub(crate) fn of_simulation(command: &SimulateArgs, written: &[Written], seconds: f64) -> String {
    let mut out = String::new();
    let root = command.out.display();
    let days = if command.days == 1 { "1 day".to_owned() } else { format!("{} days", grouped(command.days.into())) };
    line(&mut out, &format!("{days} from {} to {root}, seed {}, {seconds:.2} s", command.from, command.seed));
    line(&mut out, "");
    let mut rows = vec![["table", "rows", "size"].map(str::to_owned)];
    let number = |value: u64| i64::try_from(value).unwrap_or(i64::MAX);
    for table in written {
        let folder = table.folder.display().to_string();
        rows.push([folder, grouped(number(table.rows)), size(number(table.bytes))]);
    }
    table(&mut out, &rows);
    let is_set = command.settle_days != SETTLE_DAYS;
    let settle = if is_set { format!(" --set settle_days={}", command.settle_days) } else { String::new() };
    let warehouse = format!("{}.goodput", root.to_string().trim_end_matches('/'));
    line(&mut out, "");
    line(&mut out, "publish the tables, and hold them against the truth, which is the same if nothing is printed:");
    line(&mut out, &format!("  goodput run --set telemetry={root} --set warehouse={warehouse}{settle}"));
    line(&mut out, &format!("  Q='{COMPARED}'"));
    let query = |warehouse: &str| format!("<(goodput sql --set warehouse={warehouse} --format csv \"$Q\")");
    line(&mut out, &format!("  diff {} {}", query(&format!("{root}/{TRUTH}")), query(&warehouse)));
    out
}

fn line(out: &mut String, text: &str) {
    out.push_str(text);
    out.push('\n');
}

/// Aligned columns: the first to the left, numbers to the right.
fn table<const N: usize>(out: &mut String, rows: &[[String; N]]) {
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..N).map(width).collect();
    let is_number =
        |text: &str| text.is_empty() || text.starts_with(|first: char| first.is_ascii_digit() || first == '-');
    for row in rows {
        let mut text = String::from("  ");
        for (column, cell) in row.iter().enumerate() {
            let right = column > 0 && rows[1..].iter().all(|row| is_number(&row[column]));
            // Writing to a String does not fail.
            let _ = if right {
                write!(text, "{cell:>width$}  ", width = widths[column])
            } else {
                write!(text, "{cell:<width$}  ", width = widths[column])
            };
        }
        line(out, text.trim_end());
    }
}

/// 1234567 -> 1,234,567.
fn grouped(number: i64) -> String {
    let digits = number.unsigned_abs().to_string();
    let mut out = String::new();
    for (position, digit) in digits.chars().enumerate() {
        if position > 0 && (digits.len() - position).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    if number < 0 { format!("-{out}") } else { out }
}

fn whole(number: f64) -> i64 {
    format!("{:.0}", number.clamp(0.0, 9e15)).parse().unwrap_or(0)
}

fn size(bytes: i64) -> String {
    const UNITS: [&str; 5] = ["B", "KiB", "MiB", "GiB", "TiB"];
    let (mut value, mut unit) = (bytes as f64, 0);
    while value >= 1024.0 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    if unit == 0 { format!("{bytes} B") } else { format!("{value:.1} {}", UNITS[unit]) }
}

fn cut(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        return text.to_owned();
    }
    let kept: String = text.chars().take(most).collect();
    format!("{kept}...")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_for_people() {
        for (number, expected) in [(0, "0"), (999, "999"), (1_000, "1,000"), (-1_234_567, "-1,234,567")] {
            assert_eq!(grouped(number), expected);
        }
        for (bytes, expected) in [(0, "0 B"), (1_023, "1023 B"), (1_536, "1.5 KiB"), (5 << 30, "5.0 GiB")] {
            assert_eq!(size(bytes), expected);
        }
    }
}
