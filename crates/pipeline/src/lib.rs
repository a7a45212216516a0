//! Pipelines: what the YAML says, what it means, what was done.
//!
//! | module | what it is for |
//! |---|---|
//! | [`config`] | what a pipeline file says, key by key; unknown keys are errors |
//! | [`plan`] | what it means: everything resolved, every SQL file planned, before anything runs |
//! | [`inputs`] | which files the days of a run need, and which of them cannot be read |
//! | [`run`] | chunks of days: compute, audit, publish |
//! | `collected` | what was made of partitions, each read once, while windows ask for it |
//! | [`state`] | what was published from what, kept beside the tables |
//! | [`due`] | which days are due, and why |
//! | [`publish`] | days into partitions, replaced whole, unchanged ones left alone |
//! | [`preview`] | what a run would do, and whether it could |
//! | [`catalog`] | telemetry and published tables for queries |
//! | [`audit`] | queries that must return no row |
//! | [`record`] | what was done, for people and for machines |

pub mod audit;
pub mod catalog;
mod collected;
pub mod config;
pub mod due;
pub mod error;
pub mod inputs;
mod order;
pub mod plan;
pub mod preview;
pub mod publish;
pub mod record;
pub mod run;
pub mod state;
mod understand;

pub use error::PipelineError;
pub use plan::{Plan, PlanOptions};
pub use record::RunRecord;
pub use run::{Progress, RunOptions, run};
