//! What was published from what: kept beside the tables, so that no database is needed to know which days are due.
//!
//! For each month of days an object `_state/month=YYYY-MM.json` says of each day from which files it was computed, with
//! which settings and metric version, and of each partition which object was published. Days are noted as unfinished before
//! anything of them is replaced: a run that dies leaves days that are due, and none that only look done.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures::{StreamExt, TryStreamExt, stream};
use goodput_model::{Day, Grain, Period, Table};
use goodput_store::{Location, ObjectMeta, Path};
use serde::{Deserialize, Serialize};

use crate::PipelineError;

/// The folder below the warehouse.
const FOLDER: &str = "_state";

/// Objects that are read or written at the same time.
const AT_ONCE: usize = 16;

/// The layout of these objects; one of another is not understood.
const LAYOUT: u32 = 1;

/// Which one of the objects that ever had a name: as the store tells it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Version {
    /// Bytes.
    pub size: u64,
    /// What changes with the content; absent where a store has no such thing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub etag: Option<String>,
}

impl Version {
    /// A version by its size and tag. Stores are not of one mind about quotes: listings of some leave them out.
    pub fn new(size: u64, etag: Option<&str>) -> Version {
        Version { size, etag: etag.map(|etag| etag.trim_matches('"').to_owned()) }
    }

    /// The version of a listed object.
    pub fn of(object: &ObjectMeta) -> Version {
        Version::new(object.size, object.e_tag.as_deref())
    }
}

/// The files of a partition of telemetry, by name.
pub type Files = BTreeMap<String, Version>;

/// The partitions of telemetry in the window of a day; those without a file are left out.
pub type Window = BTreeMap<(Table, Day), Arc<Files>>;

/// What figures depend on beside the telemetry, by name.
pub type Basis = BTreeMap<String, String>;

/// From what a day was published.
#[derive(Debug, Clone, PartialEq)]
pub struct DayState {
    /// The run that computed it last.
    pub run_id: String,
    /// The version of the metric.
    pub metric_version: i64,
    /// Whether it was still to change.
    pub is_provisional: bool,
    /// Whether a run began to replace it, and did not say that it was done.
    pub is_unfinished: bool,
    /// The settings and statements.
    pub basis: Arc<Basis>,
    /// The files of its window.
    pub window: Window,
}

/// From what a quarter was computed: the partitions that it read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct QuarterState {
    /// The version of the metric.
    pub metric_version: i64,
    /// The settings and statements.
    pub basis: Basis,
    /// The published partitions that were read, by `<table>/<partition>`.
    pub sources: BTreeMap<String, Version>,
}

/// What is known of the tables of a warehouse.
#[derive(Debug, Clone)]
pub struct State {
    folder: Location,
    /// The days that were published.
    pub days: BTreeMap<Day, DayState>,
    /// The quarters that were, by their first day.
    pub quarters: BTreeMap<Day, QuarterState>,
    /// The partitions that were, by `<table>/<partition>`, with the month of their first day.
    partitions: BTreeMap<String, (Period, Version)>,
}

impl State {
    /// What is known of a warehouse of which nothing is known.
    pub fn empty(warehouse: &Location) -> State {
        let (days, quarters, partitions) = Default::default();
        State { folder: warehouse.join(FOLDER), days, quarters, partitions }
    }

    /// Reads what is known of a warehouse.
    pub async fn load(warehouse: &Location) -> Result<State, PipelineError> {
        let folder = warehouse.join(FOLDER);
        let paths: Vec<Path> = folder.list().await?.into_iter().map(|object| object.location).collect();
        let paths = paths.into_iter().filter(|path| month_of(path).is_some());
        let read = |path: Path| {
            let folder = folder.clone();
            async move { Ok::<_, PipelineError>((folder.read(&path).await?, path)) }
        };
        let objects: Vec<_> = stream::iter(paths).map(read).buffered(AT_ONCE).try_collect().await?;
        let mut state = State::empty(warehouse);
        for (bytes, path) in objects {
            let (Some(bytes), Some(month)) = (bytes, month_of(&path)) else { continue };
            let stored: Stored =
                serde_json::from_slice(&bytes).map_err(|error| damaged(&folder, &path, &error.to_string()))?;
            if stored.layout != LAYOUT {
                let problem = format!("its layout is {}, and {LAYOUT} is known", stored.layout);
                return Err(damaged(&folder, &path, &problem));
            }
            stored.put_into(&mut state, month).map_err(|problem| damaged(&folder, &path, problem))?;
        }
        Ok(state)
    }

    /// Notes which object a partition is.
    pub fn set_partition(&mut self, table: &str, period: Period, version: Version) {
        let month = Grain::Month.of(period.first());
        self.partitions.insert(partition_key(table, period), (month, version));
    }

    /// Which object a partition was when it was published.
    pub fn partition(&self, table: &str, period: Period) -> Option<&Version> {
        self.partitions.get(&partition_key(table, period)).map(|(_, version)| version)
    }

    /// Writes what is known of the months of some days.
    pub async fn save(&self, days: impl IntoIterator<Item = Day>) -> Result<(), PipelineError> {
        let mut months: Vec<Period> = days.into_iter().map(|day| Grain::Month.of(day)).collect();
        months.sort_unstable();
        months.dedup();
        let write = |month: Period| async move {
            let path = self.folder.root().clone().join(format!("month={month}.json"));
            let stored = Stored::of(self, month);
            let mut text = serde_json::to_vec(&stored).map_err(|error| PipelineError::Fault(error.to_string()))?;
            text.push(b'\n');
            self.folder.write(&path, text.into()).await?;
            Ok::<_, PipelineError>(())
        };
        stream::iter(months).map(write).buffered(AT_ONCE).try_collect().await
    }
}

/// How a partition is named.
pub fn partition_key(table: &str, period: Period) -> String {
    format!("{table}/{period}")
}

/// The month of an object of this folder; `None` if it is another object.
fn month_of(path: &Path) -> Option<Period> {
    Grain::Month.parse(path.filename()?.strip_prefix("month=")?.strip_suffix(".json")?)
}

fn damaged(folder: &Location, path: &Path, problem: &str) -> PipelineError {
    PipelineError::State {
        object: folder.name_of(path),
        problem: problem.to_owned(),
        hint: "delete it: its days are then computed again, and what did not change stays as it is".to_owned(),
    }
}

/// A month as it is written: what many days share stands once.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Stored {
    layout: u32,
    days: BTreeMap<String, StoredDay>,
    bases: Vec<Basis>,
    windows: Vec<StoredPartition>,
    partitions: BTreeMap<String, Version>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    quarters: BTreeMap<String, QuarterState>,
}

#[derive(Debug, Serialize, Deserialize)]
struct StoredDay {
    run_id: String,
    metric_version: i64,
    is_provisional: bool,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    is_unfinished: bool,
    /// Which one of the bases.
    basis: usize,
    /// Which ones of the partitions.
    window: Vec<usize>,
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct StoredPartition {
    table: String,
    date: String,
    files: Files,
}

impl Stored {
    fn of(state: &State, month: Period) -> Stored {
        let mut stored = Stored { layout: LAYOUT, ..Stored::default() };
        let mut numbers: BTreeMap<(Table, Day, &Files), usize> = BTreeMap::new();
        for (day, known) in state.days.range(month.first()..=month.last()) {
            let basis = stored.bases.iter().position(|basis| *basis == *known.basis).unwrap_or_else(|| {
                stored.bases.push(known.basis.as_ref().clone());
                stored.bases.len() - 1
            });
            let number = |((table, date), files): (&(Table, Day), &'_ Arc<Files>)| (*table, *date, Arc::clone(files));
            let mut window = Vec::with_capacity(known.window.len());
            for (table, date, _) in known.window.iter().map(number) {
                let Some(files) = known.window.get(&(table, date)) else { continue };
                let next = stored.windows.len();
                let number = *numbers.entry((table, date, files.as_ref())).or_insert(next);
                if number == next {
                    let (table, date) = (table.name().to_owned(), date.to_string());
                    stored.windows.push(StoredPartition { table, date, files: files.as_ref().clone() });
                }
                window.push(number);
            }
            let day_state = StoredDay {
                run_id: known.run_id.clone(),
                metric_version: known.metric_version,
                is_provisional: known.is_provisional,
                is_unfinished: known.is_unfinished,
                basis,
                window,
            };
            stored.days.insert(day.to_string(), day_state);
        }
        let of_month = state.partitions.iter().filter(|(_, (of, _))| *of == month);
        stored.partitions = of_month.map(|(key, (_, version))| (key.clone(), version.clone())).collect();
        let quarters = state.quarters.range(month.first()..=month.last());
        stored.quarters = quarters.map(|(first, quarter)| (first.to_string(), quarter.clone())).collect();
        stored
    }

    fn put_into(self, state: &mut State, month: Period) -> Result<(), &'static str> {
        let bases: Vec<Arc<Basis>> = self.bases.into_iter().map(Arc::new).collect();
        let mut windows = Vec::with_capacity(self.windows.len());
        for partition in self.windows {
            let table = Table::ALL.into_iter().find(|table| table.name() == partition.table);
            let (Some(table), Ok(date)) = (table, partition.date.parse::<Day>()) else {
                return Err("it names a partition that there cannot be");
            };
            windows.push(((table, date), Arc::new(partition.files)));
        }
        for (day, stored) in self.days {
            let day: Day = day.parse().map_err(|_| "it names a day that there is not")?;
            let basis = bases.get(stored.basis).ok_or("a day refers to settings that are not in it")?;
            let partition = |number: usize| windows.get(number).cloned();
            let window = stored.window.into_iter().map(partition).collect::<Option<Window>>();
            let known = DayState {
                run_id: stored.run_id,
                metric_version: stored.metric_version,
                is_provisional: stored.is_provisional,
                is_unfinished: stored.is_unfinished,
                basis: Arc::clone(basis),
                window: window.ok_or("a day refers to a partition that is not in it")?,
            };
            state.days.insert(day, known);
        }
        state.partitions.extend(self.partitions.into_iter().map(|(key, version)| (key, (month, version))));
        for (first, quarter) in self.quarters {
            state.quarters.insert(first.parse().map_err(|_| "it names a quarter that there is not")?, quarter);
        }
        Ok(())
    }
}
