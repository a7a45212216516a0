//! Object storage: where telemetry and derived tables lie, what is there, and how a partition is replaced.
//!
//! Local disks, S3, Azure and GCS are reached in the same way; nothing here knows what is inside a file.

mod client;
mod hints;
pub mod layout;
mod local;
pub mod location;
pub mod lock;
pub mod partitions;
pub mod settings;

use goodput_model::Table;

pub use layout::{Partition, TableListing, TelemetryListing, list_telemetry};
pub use location::{Location, Tag, Tagged};
pub use lock::{Holder, Lock, LockError, LockRecord};
pub use object_store::ObjectMeta;
pub use object_store::path::Path;
pub use partitions::{PublishedPartition, PublishedTable};
pub use settings::StoreOptions;

/// What went wrong with a store.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The location cannot be understood or its store cannot be set up.
    #[error("`{location}` is not a usable location")]
    Location {
        /// As it was written.
        location: String,
        /// Why not.
        #[source]
        source: LocationProblem,
    },
    /// A table could not be listed.
    #[error("table `{table}` cannot be listed in `{location}`")]
    List {
        /// The root.
        location: String,
        /// The telemetry table.
        table: Table,
        /// What the store said.
        #[source]
        source: Box<object_store::Error>,
        /// What to do, if there is something to say.
        hint: Option<String>,
    },
    /// An object could not be read, written or listed.
    #[error("`{location}` cannot be {action}")]
    Object {
        /// The object.
        location: String,
        /// What was tried: `read`, `written`, `listed`, `deleted`.
        action: &'static str,
        /// What the store said.
        #[source]
        source: Box<object_store::Error>,
        /// What to do, if there is something to say.
        hint: Option<String>,
    },
}

impl StoreError {
    /// What to do about it, if there is something to say.
    pub fn hint(&self) -> Option<&str> {
        match self {
            StoreError::Location { source: LocationProblem::Setting { hint, .. }, .. } => Some(hint),
            StoreError::Location { .. } => None,
            StoreError::List { hint, .. } | StoreError::Object { hint, .. } => hint.as_deref(),
        }
    }
}

/// Why a location is not usable.
#[derive(Debug, thiserror::Error)]
pub enum LocationProblem {
    /// No path of this machine.
    #[error("it is no path of this machine: {0}")]
    Path(String),
    /// No URL.
    #[error("it is no URL")]
    Url(#[from] url::ParseError),
    /// A setting is missing, or contradicts another.
    #[error("{problem}")]
    Setting {
        /// What is wrong, naming the setting.
        problem: String,
        /// What to do.
        hint: String,
    },
    /// Settings that are wrong, in the words of their reader.
    #[error("its store cannot be set up: {0}")]
    Setup(String),
}

impl LocationProblem {
    pub(crate) fn setting(problem: impl Into<String>, hint: impl Into<String>) -> LocationProblem {
        LocationProblem::Setting { problem: problem.into(), hint: hint.into() }
    }
}
