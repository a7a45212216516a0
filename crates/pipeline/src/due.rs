//! Which days are due, and why: what was published is held against what lies there now.
//!
//! Late files are found by their arrival and not by a high-water mark: the files of a day's whole window are compared, by
//! name, size and tag. Where a whole partition of telemetry is gone, which is what keeping raw data for a limited time looks
//! like, its days keep their figures: computed from what is left they would be wrong.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use goodput_model::{Day, METRIC_VERSION, Period};

use crate::PipelineError;
use crate::inputs::Inputs;
use crate::plan::Plan;
use crate::state::{Basis, DayState, Files, QuarterState, State, Version, Window};

/// Differences of one kind that a reason names; the others it counts.
const NAMED: usize = 3;

/// Why a day is due.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Why {
    /// Nothing is known of it.
    NeverPublished,
    /// A run that was to replace it died.
    Unfinished,
    /// Files of its window came, changed, or went.
    Input(Vec<String>),
    /// It was published with other settings or statements.
    Settings(Vec<String>),
    /// It was published by another version of the metric.
    MetricVersion(i64),
    /// Its window is complete: its figures are no longer provisional.
    Final,
    /// The window has become incomplete again, since the newest partitions are gone.
    Provisional,
    /// A published partition is not the one that was published.
    Partition(String),
    /// Somebody said so.
    AskedFor,
}

impl fmt::Display for Why {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let named = |what: &[String]| {
            let more = what.len().saturating_sub(NAMED);
            let named = what.iter().take(NAMED).cloned().collect::<Vec<_>>().join(", ");
            if more == 0 { named } else { format!("{named}, and {more} more") }
        };
        match self {
            Why::NeverPublished => write!(formatter, "never published"),
            Why::Unfinished => write!(formatter, "a run that was to replace it did not end"),
            Why::Input(files) => write!(formatter, "input: {}", named(files)),
            Why::Settings(names) => write!(formatter, "settings: {}", named(names)),
            Why::MetricVersion(old) => write!(formatter, "metric version {old}, now {METRIC_VERSION}"),
            Why::Final => write!(formatter, "its window is complete: no longer provisional"),
            Why::Provisional => write!(formatter, "its window is no longer complete: provisional"),
            Why::Partition(key) => write!(formatter, "{key} is not what was published"),
            Why::AskedFor => write!(formatter, "asked for"),
        }
    }
}

/// What is to be done, and what is not although it might seem so.
#[derive(Debug, Clone, Default)]
pub struct Due {
    /// The days that are due, and why.
    pub days: BTreeMap<Day, Vec<Why>>,
    /// The days that keep their figures, since partitions of their windows are gone: which ones.
    pub kept: BTreeMap<Day, Vec<String>>,
}

/// The published partitions as they lie there, by `<table>/<partition>`.
pub type Published = BTreeMap<String, Version>;

/// Lists the partitions of all tables that a plan publishes.
pub async fn published(plan: &Plan) -> Result<Published, PipelineError> {
    let mut found = Published::new();
    for step in &plan.steps {
        let Some(publish) = &step.publish else { continue };
        for partition in publish.table.partitions().await? {
            if let Some(period) = partition.period {
                found.insert(crate::state::partition_key(&step.table, period), Version::of(&partition.file));
            }
        }
    }
    Ok(found)
}

/// The days between the first and the last partition of telemetry that are due.
pub fn due(plan: &Plan, inputs: &Inputs, state: &State, published: &Published) -> Due {
    let mut due = Due::default();
    let Some((first, last)) = inputs.days() else { return due };
    let basis = plan.basis();
    let settled_through = inputs.settled_through();
    for day in first.through(last).filter(|day| inputs.has_window(*day)) {
        let Some(known) = state.days.get(&day) else {
            due.days.insert(day, vec![Why::NeverPublished]);
            continue;
        };
        let mut reasons = Vec::new();
        let (changed, gone) = differences(&known.window, inputs, day);
        if !gone.is_empty() {
            due.kept.insert(day, gone);
            continue;
        }
        if known.is_unfinished {
            reasons.push(Why::Unfinished);
        }
        if !changed.is_empty() {
            reasons.push(Why::Input(changed));
        }
        reasons.extend(why_by_basis(known, &basis));
        match (known.is_provisional, day > settled_through) {
            (true, false) => reasons.push(Why::Final),
            (false, true) => reasons.push(Why::Provisional),
            _ => {}
        }
        reasons.extend(other_partition(plan, state, published, day).map(Why::Partition));
        if !reasons.is_empty() {
            due.days.insert(day, reasons);
        }
    }
    due
}

fn why_by_basis(known: &DayState, basis: &Basis) -> Vec<Why> {
    let mut reasons = Vec::new();
    if known.metric_version != METRIC_VERSION {
        reasons.push(Why::MetricVersion(known.metric_version));
    }
    let settings = changed_settings(&known.basis, basis);
    if !settings.is_empty() {
        reasons.push(Why::Settings(settings));
    }
    reasons
}

/// The names of settings that differ, with both values where they are short.
fn changed_settings(old: &Basis, new: &Basis) -> Vec<String> {
    const SHORT: usize = 40;
    let mut names: Vec<&String> = old.keys().chain(new.keys()).collect();
    names.sort_unstable();
    names.dedup();
    let changed = names.into_iter().filter(|name| old.get(*name) != new.get(*name));
    changed
        .map(|name| match (old.get(name), new.get(name)) {
            (Some(old), Some(new)) if old.len() <= SHORT && new.len() <= SHORT => format!("{name} {old} -> {new}"),
            _ => name.clone(),
        })
        .collect()
}

/// What changed in a window: files that came, changed or went, and partitions of which no file is left.
fn differences(old: &Window, inputs: &Inputs, day: Day) -> (Vec<String>, Vec<String>) {
    let new = inputs.window_state(day);
    let (mut changed, mut gone) = (Vec::new(), Vec::new());
    let none = Arc::new(Files::new());
    let mut keys: Vec<_> = old.keys().chain(new.keys()).copied().collect();
    keys.sort_unstable();
    keys.dedup();
    for key in keys {
        let (before, now) = (old.get(&key).unwrap_or(&none), new.get(&key).unwrap_or(&none));
        if before == now {
            continue;
        }
        let folder = format!("{}/date={}", key.0.name(), key.1);
        if now.is_empty() {
            // Windows of other settings reach further or less far.
            gone.extend((!inputs.has_partition(key.0, key.1)).then_some(folder));
            continue;
        }
        for (name, version) in now.iter() {
            match before.get(name) {
                None => changed.push(format!("{folder}/{name} is new")),
                Some(old) if old != version => changed.push(format!("{folder}/{name} has changed")),
                Some(_) => {}
            }
        }
        let went = before.keys().filter(|name| !now.contains_key(*name));
        changed.extend(went.map(|name| format!("{folder}/{name} is gone")));
    }
    (changed, gone)
}

/// A partition of the day that is not what was published there.
fn other_partition(plan: &Plan, state: &State, published: &Published, day: Day) -> Option<String> {
    plan.published_by_day().find_map(|(table, publish)| {
        let period = publish.table.grain().of(day);
        let key = crate::state::partition_key(table, period);
        (state.partition(table, period) != published.get(&key)).then_some(key)
    })
}

/// The quarters whose figures are not those of what is published of their days.
pub fn due_quarters(plan: &Plan, state: &State, published: &Published) -> Vec<Period> {
    let steps: Vec<_> = plan.published_by_quarter().collect();
    if steps.is_empty() {
        return Vec::new();
    }
    let mut quarters: Vec<Period> = state.days.keys().map(|day| goodput_model::Grain::Quarter.of(*day)).collect();
    quarters.dedup();
    quarters.retain(|quarter| {
        let is_there = |(table, _): &(&str, _)| {
            state
                .partition(table, *quarter)
                .is_some_and(|version| published.get(&crate::state::partition_key(table, *quarter)) == Some(version))
        };
        !steps.iter().all(is_there)
            || state.quarters.get(&quarter.first()) != Some(&quarter_state(plan, published, *quarter))
    });
    quarters
}

/// From what a quarter is computed now.
pub fn quarter_state(plan: &Plan, published: &Published, quarter: Period) -> QuarterState {
    let mut sources = Published::new();
    for (table, publish) in plan.sources_of_quarters() {
        let periods = quarter.first().through(quarter.last()).map(|day| publish.table.grain().of(day));
        for period in periods {
            let key = crate::state::partition_key(table, period);
            if let Some(version) = published.get(&key) {
                sources.insert(key, version.clone());
            }
        }
    }
    QuarterState { metric_version: METRIC_VERSION, basis: plan.basis_of_quarters(), sources }
}
