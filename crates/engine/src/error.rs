//! What can go wrong in the engine.

use datafusion::error::DataFusionError;

/// An error of the engine, by what the caller can do about it.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// A SQL text is wrong: its author mends it.
    #[error("{place}: {problem}")]
    Sql {
        /// The file and, where it is known, line and column.
        place: String,
        /// What is wrong.
        problem: String,
        /// What to do, if there is something to say.
        hint: Option<String>,
    },
    /// A file could not be read as what it is said to be.
    #[error("{file}: {problem}")]
    File {
        /// The file.
        file: String,
        /// What is wrong, naming the column where it is one.
        problem: String,
        /// What to do, if there is something to say.
        hint: Option<String>,
    },
    /// A statement failed while it ran.
    #[error("{what} failed")]
    Run {
        /// Which one.
        what: String,
        /// What DataFusion said.
        #[source]
        source: DataFusionError,
    },
    /// A store failed.
    #[error(transparent)]
    Store(#[from] goodput_store::StoreError),
    /// The session could not be set up.
    #[error("the engine cannot be set up")]
    Setup(#[source] DataFusionError),
}

impl EngineError {
    /// What to do about it, if there is something to say.
    pub fn hint(&self) -> Option<&str> {
        match self {
            EngineError::Sql { hint, .. } | EngineError::File { hint, .. } => hint.as_deref(),
            EngineError::Run { source, .. } if matches!(source.find_root(), DataFusionError::ResourcesExhausted(_)) => {
                Some("give it more memory with `--memory`, or fewer days at a time with `chunk_days`")
            }
            EngineError::Store(error) => error.hint(),
            _ => None,
        }
    }
}

impl From<arrow::error::ArrowError> for EngineError {
    fn from(error: arrow::error::ArrowError) -> EngineError {
        EngineError::Setup(error.into())
    }
}
