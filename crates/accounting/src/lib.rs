//! The accounting: every chip-millisecond of the fleet in exactly one bucket.
//!
//! Pure functions from telemetry rows to booked quantities: no I/O, no Arrow, no clock. The engine feeds them the rows of
//! one job (or of one block of chips) and they answer for every day of a run at once, each day judged from its own window
//! of partitions and from nothing else.
//!
//! | module | section of the accounting or the contract |
//! |---|---|
//! | [`rules`] | the settings and facts of a run on which figures depend |
//! | [`validity`] | contract: quarantine, plausibility and clocks |
//! | [`raw`] | rows as they were read, and what is wrong with them |
//! | [`rows`] | the valid rows; their order among copies |
//! | [`encoding`] | the rows of a job as bytes: partial results that merge by concatenation |
//! | [`decoding`] | the bytes as rows again |
//! | [`copies`] | contract: which copy of a row counts, on which days |
//! | [`ends`] | section 1: ends of open rows |
//! | [`scheduling`] | section 2: chips held at an instant |
//! | [`progress`] | section 3: progress that did not survive |
//! | [`phases`] | section 3: which phase decides |
//! | [`program`] | section 4: ideal over measured time |
//! | [`job`] | a job's books, day by day |
//! | [`capacity`] | a block's capacity, day by day |

pub mod capacity;
pub mod copies;
pub mod decoding;
pub mod encoding;
pub mod ends;
pub mod findings;
pub mod job;
pub mod phases;
pub mod program;
pub mod progress;
pub mod raw;
pub mod rows;
pub mod rules;
pub mod scheduling;
pub mod validity;

use goodput_model::Day;

pub use findings::Findings;
pub use rules::Rules;

/// Why no figure can be given.
#[derive(Debug, thiserror::Error)]
pub enum AccountingError {
    /// A quantity does not fit into 64 bits. It is never wrapped.
    #[error("chip-milliseconds of {what} on {day} exceed 64 bits")]
    Overflow {
        /// What was being booked: a job or a block.
        what: String,
        /// The day on which it happened.
        day: Day,
    },
    /// The bytes of a partial result are not what [`encoding`] writes.
    #[error("a partial result is damaged: {0}")]
    Damaged(&'static str),
}
