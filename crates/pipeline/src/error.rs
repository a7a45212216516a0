//! What can go wrong with a pipeline.

use goodput_engine::EngineError;
use goodput_engine::write::WriteError;
use goodput_store::StoreError;

/// An error of a pipeline, by what the caller can do about it.
#[derive(Debug, thiserror::Error)]
pub enum PipelineError {
    /// The pipeline file is wrong: its author mends it.
    #[error("{place}: {problem}")]
    Config {
        /// The file, with line and column or key where they are known.
        place: String,
        /// What is wrong.
        problem: String,
        /// What to do, if there is something to say.
        hint: Option<String>,
    },
    /// The days that were asked for do not exist.
    #[error("{problem}")]
    Days {
        /// What is wrong.
        problem: String,
        /// What to do.
        hint: String,
    },
    /// A step's SQL or its run failed.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// A store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A table could not be written.
    #[error("table `{table}` cannot be written")]
    Write {
        /// The table.
        table: String,
        /// Why not.
        #[source]
        source: WriteError,
    },
    /// What is known of the tables beside them cannot be read.
    #[error("{object}: {problem}")]
    State {
        /// The object.
        object: String,
        /// What is wrong with it.
        problem: String,
        /// What to do.
        hint: String,
    },
    /// The program is at fault.
    #[error("{0}")]
    Fault(String),
}

impl PipelineError {
    /// What to do about it, if there is something to say.
    pub fn hint(&self) -> Option<&str> {
        match self {
            PipelineError::Config { hint, .. } => hint.as_deref(),
            PipelineError::Days { hint, .. } | PipelineError::State { hint, .. } => Some(hint),
            PipelineError::Engine(error) => error.hint(),
            PipelineError::Store(error) => error.hint(),
            _ => None,
        }
    }

    /// Whether the program is at fault, and neither the user nor the data.
    pub fn is_fault(&self) -> bool {
        matches!(self, PipelineError::Fault(_))
    }
}
