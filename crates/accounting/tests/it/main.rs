//! What holds of any telemetry: properties with the names of the audits that guard the same in published tables.

#![expect(clippy::unwrap_used, reason = "a test fails where it cannot go on")]

mod properties;
mod random;
