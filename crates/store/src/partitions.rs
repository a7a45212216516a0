//! Published tables: one object of a fixed name for each partition, replaced whole.
//!
//! A reader of the table sees the old partition or the new one, never none, both or half: every store that we speak
//! replaces one object in one step (on local disks by a rename).

use std::collections::BTreeMap;

use futures::TryStreamExt;
use goodput_model::{Grain, Period};
use object_store::path::Path;
use object_store::{ObjectMeta, ObjectStore};

use crate::layout::percent_decoded;
use crate::{Location, StoreError};

/// The name of the one data object of a partition.
const DATA_FILE: &str = "part-0.parquet";

/// What Hive calls the partition of rows whose partition column is null.
const NULL_PARTITION: &str = "__HIVE_DEFAULT_PARTITION__";

/// A table below a warehouse root.
#[derive(Debug, Clone)]
pub struct PublishedTable {
    location: Location,
    grain: Grain,
}

/// A partition that has been published.
#[derive(Debug, Clone)]
pub struct PublishedPartition {
    /// Its period; `None` for rows without a date.
    pub period: Option<Period>,
    /// Its data object.
    pub file: ObjectMeta,
}

impl PublishedTable {
    /// A table of a warehouse, there or not.
    pub fn new(warehouse: &Location, table: &str, grain: Grain) -> PublishedTable {
        PublishedTable { location: warehouse.join(table), grain }
    }

    /// Where the table lies.
    pub fn location(&self) -> &Location {
        &self.location
    }

    /// How its partitions are cut.
    pub fn grain(&self) -> Grain {
        self.grain
    }

    /// The path of a partition's data object.
    pub fn path_of(&self, period: Option<Period>) -> Path {
        let label = period.map_or_else(|| NULL_PARTITION.to_owned(), |period| period.to_string());
        let folder = format!("{}={label}", self.grain.column());
        self.location.root().clone().join(folder).join(DATA_FILE)
    }

    /// The published partitions, in order of their periods; what is no partition of this table is passed over.
    pub async fn partitions(&self) -> Result<Vec<PublishedPartition>, StoreError> {
        let root = self.location.root();
        let mut objects = self.location.store().list(Some(root));
        let mut found = BTreeMap::new();
        let failed = |source| self.location.problem(root, "listed", source);
        while let Some(file) = objects.try_next().await.map_err(failed)? {
            let Some(parts) = file.location.prefix_match(root) else { continue };
            let parts: Vec<String> = parts.map(|part| part.as_ref().to_owned()).collect();
            let [folder, name] = parts.as_slice() else { continue };
            let Some(label) = folder.strip_prefix(self.grain.column()).and_then(|rest| rest.strip_prefix('=')) else {
                continue;
            };
            if name != DATA_FILE {
                continue;
            }
            let period = percent_decoded(label).and_then(|label| self.grain.parse(&label));
            if period.is_some() || label == NULL_PARTITION {
                found.insert(period, PublishedPartition { period, file });
            }
        }
        Ok(found.into_values().collect())
    }
}
