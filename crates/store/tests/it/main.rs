//! What every kind of store must do, on local files, in memory, and on the servers that `.ci/servers` starts.
//!
//! There is no server for Google's store: no emulator speaks the interface of it that `object_store` uses. Its settings are
//! tested where they are read.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test fails where it cannot go on, and compares what must be equal"
)]

mod conformance;
mod faults;
mod locking;
mod refusals;
mod sites;
