//! The vocabulary of goodput: days and periods, the tables of the telemetry contract, buckets, reasons, units.
//!
//! Nothing here does I/O, knows Arrow, or computes a figure. The words are those of the telemetry contract and of the
//! accounting; every other crate speaks in them.

pub mod buckets;
pub mod contract;
pub mod day;
pub mod period;
pub mod reason;

pub use buckets::{Bucket, JOB_DAY_BUCKETS};
pub use contract::{Column, Kind, Table};
pub use day::{Day, InvalidDay, MS_PER_DAY};
pub use period::{Grain, Period};
pub use reason::Reason;

/// The version of the accounting that the published figures follow.
pub const METRIC_VERSION: i64 = 1;
