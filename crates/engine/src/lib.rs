//! The engine: the only crate that knows DataFusion.
//!
//! | module | what it is for |
//! |---|---|
//! | [`session`] | a DataFusion session with our settings, functions and tables; running a statement |
//! | [`sql`] | one SQL file = one table: header, parameters, list macros, planning |
//! | [`functions`] | the accounting as functions and aggregates; checked sums; ratios |
//! | [`schema`] | the contract's tables in Arrow types; whether a file's columns can be read as them |
//! | [`footers`] | what the files of a telemetry root hold, before anything is computed |
//! | [`scan`] | tables made of explicit lists of Parquet files, partitioned by path |
//! | [`adapt`] | columns of files of many years as the columns of the contract |
//! | `gather` | a scan and the collecting of its rows as one operator |
//! | [`source`] | CSV files and whole documents as tables, for adapters |
//! | [`spill`] | tables of a run that are too large for memory, in temporary files |
//! | [`write`] | batches to Parquet bytes: plain types, sorted, statistics on |

pub mod adapt;
pub mod error;
pub mod footers;
pub mod functions;
mod gather;
pub mod scan;
pub mod schema;
pub mod session;
pub mod source;
pub mod spill;
pub mod sql;
pub mod write;

pub use error::EngineError;
pub use session::{Session, SessionOptions};
