//! What lies below a telemetry root: partitions with their data files, and what is not to be read.

use std::collections::{BTreeMap, BTreeSet};

use futures::TryStreamExt;
use goodput_model::{Day, Table};
use object_store::path::Path;
use object_store::{ObjectMeta, ObjectStore};

use crate::{Location, StoreError};

/// One partition of one table.
#[derive(Debug, Clone, Default)]
pub struct Partition {
    /// Its data files, by name.
    pub files: Vec<ObjectMeta>,
    /// What is not read, by name, a folder once.
    pub skipped: BTreeMap<String, i64>,
}

/// One table.
#[derive(Debug, Clone, Default)]
pub struct TableListing {
    /// Its partitions; one without a data file holds only what was skipped.
    pub partitions: BTreeMap<Day, Partition>,
    /// What lies beside the partitions, by name, a folder once.
    pub beside: BTreeMap<String, i64>,
}

impl TableListing {
    /// The days that have a partition: those with a data file, even one without rows.
    pub fn days(&self) -> impl DoubleEndedIterator<Item = Day> + '_ {
        self.partitions.iter().filter(|(_, partition)| !partition.files.is_empty()).map(|(day, _)| *day)
    }
}

/// All tables of a telemetry root.
#[derive(Debug, Clone, Default)]
pub struct TelemetryListing {
    tables: [TableListing; Table::ALL.len()],
}

impl TelemetryListing {
    /// One of the tables.
    pub fn table(&self, table: Table) -> &TableListing {
        &self.tables[table.index()]
    }

    /// Takes files out of the partitions and counts them as skipped.
    pub fn skip(&mut self, excluded: &BTreeSet<Path>) {
        for partition in self.tables.iter_mut().flat_map(|table| table.partitions.values_mut()) {
            for file in partition.files.extract_if(.., |file| excluded.contains(&file.location)) {
                let name = file.location.filename().unwrap_or_default().to_owned();
                partition.skipped.insert(name, 1);
            }
        }
    }

    /// The first and the last day that have a partition in any table; `None` if none has.
    pub fn days(&self) -> Option<(Day, Day)> {
        let first = self.tables.iter().filter_map(|table| table.days().next()).min()?;
        let last = self.tables.iter().filter_map(|table| table.days().next_back()).max()?;
        Some((first, last))
    }
}

/// Lists all tables of a root, each object once. A missing table is an empty one.
pub async fn list_telemetry(root: &Location) -> Result<TelemetryListing, StoreError> {
    let tables = Table::ALL.map(|table| list_table(root, table));
    let tables = futures::future::try_join_all(tables).await?;
    let mut listing = TelemetryListing::default();
    for (place, table) in listing.tables.iter_mut().zip(tables) {
        *place = table;
    }
    Ok(listing)
}

async fn list_table(root: &Location, table: Table) -> Result<TableListing, StoreError> {
    let folder = root.join(table.name());
    let mut listing = TableListing::default();
    let mut objects = root.store().list(Some(folder.root()));
    let failed = |source| StoreError::List {
        location: root.to_string(),
        table,
        hint: root.hint(&source),
        source: Box::new(source),
    };
    while let Some(object) = objects.try_next().await.map_err(failed)? {
        let Some(parts) = object.location.prefix_match(folder.root()) else { continue };
        let parts: Vec<String> = parts.map(|part| part.as_ref().to_owned()).collect();
        match parts.as_slice() {
            [] => {}
            [file] => {
                listing.beside.insert(file.clone(), 1);
            }
            [partition, name, below @ ..] => match partition_day(partition) {
                None => {
                    listing.beside.insert(partition.clone(), 1);
                }
                Some(day) => {
                    let partition = listing.partitions.entry(day).or_default();
                    if below.is_empty() && is_data_file(name, object.size) {
                        partition.files.push(object);
                    } else {
                        partition.skipped.insert(name.clone(), 1);
                    }
                }
            },
        }
    }
    for partition in listing.partitions.values_mut() {
        partition.files.sort_by(|left, right| left.location.cmp(&right.location));
    }
    Ok(listing)
}

/// The day of a partition folder, `date=YYYY-MM-DD`; the value may be percent-encoded.
fn partition_day(folder: &str) -> Option<Day> {
    percent_decoded(folder.strip_prefix("date=")?)?.parse().ok()
}

fn is_data_file(name: &str, size: u64) -> bool {
    name.ends_with(".parquet") && !name.starts_with(['.', '_']) && size > 0
}

/// Decodes `%XX`; `None` if that is not UTF-8 or an escape is cut short.
pub(crate) fn percent_decoded(text: &str) -> Option<String> {
    let mut out = Vec::with_capacity(text.len());
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        if byte == b'%' {
            let digits = [bytes.next()?, bytes.next()?];
            let digits = std::str::from_utf8(&digits).ok()?;
            out.push(u8::from_str_radix(digits, 16).ok()?);
        } else {
            out.push(byte);
        }
    }
    String::from_utf8(out).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn partition_folders() {
        let day = Day::from_calendar(2026, 1, 31);
        let cases = [
            ("date=2026-01-31", day),
            ("date=2026%2D01%2D31", day),
            ("date=2026-01-31.old", None),
            ("date=backup", None),
            ("date=__HIVE_DEFAULT_PARTITION__", None),
            ("date=2026%2", None),
            ("day=2026-01-31", None),
            ("date=", None),
        ];
        for (folder, expected) in cases {
            assert_eq!(partition_day(folder), expected, "{folder}");
        }
    }

    #[test]
    fn data_files() {
        let cases = [
            ("part-0.parquet", 1, true),
            ("part-0.parquet", 0, false),
            ("part-0.PARQUET", 1, false),
            ("part-0.parquet.tmp", 1, false),
            (".part-0.parquet", 1, false),
            ("_part-0.parquet", 1, false),
            ("_SUCCESS", 0, false),
        ];
        for (name, size, expected) in cases {
            assert_eq!(is_data_file(name, size), expected, "{name}");
        }
    }
}
