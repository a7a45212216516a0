//! The program as its users run it.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test fails where it cannot go on, and compares what must be equal"
)]

mod adapters;
mod architecture;
mod commands;
mod errors;
mod files;
mod nights;
mod oracle;
mod program;
mod scale;
mod simulate;
mod situations;
mod stores;
mod windows;
mod worked;
