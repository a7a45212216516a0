//! Object storage: where telemetry and derived tables lie, what is there, and how a partition is replaced.
//!
//! Every store that `object_store` speaks is reached in the same way; nothing here knows what is inside a file.

pub mod layout;
pub mod location;
pub mod partitions;

use goodput_model::Table;

pub use layout::{Partition, TableListing, TelemetryListing, list_telemetry};
pub use location::{Location, StoreOptions};
pub use object_store::ObjectMeta;
pub use object_store::path::Path;
pub use partitions::{PublishedPartition, PublishedTable};

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
        source: object_store::Error,
    },
    /// An object could not be read, written or listed.
    #[error("`{location}` cannot be {action}")]
    Object {
        /// The object.
        location: String,
        /// What was tried: `read`, `written`, `listed`, `reached`.
        action: &'static str,
        /// What the store said.
        #[source]
        source: object_store::Error,
    },
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
    /// A store of a kind that is not known, or settings that are missing or wrong.
    #[error("its store cannot be set up")]
    Store(#[from] object_store::Error),
}
