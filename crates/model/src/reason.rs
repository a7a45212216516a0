//! Why a row was left out or noticed: the words of `data_quality`.

/// What was found wrong, or worth counting, about one row of telemetry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Reason {
    /// A required column is null: quarantined.
    NullRequired,
    /// A value is out of the range that the contract gives it: quarantined.
    BadValue,
    /// It ends before it starts by more than clocks may differ: quarantined.
    NegativeInterval,
    /// It starts before the year 2000: quarantined.
    ImplausibleStart,
    /// It starts more than a day after it was recorded: quarantined.
    FromTheFuture,
    /// It ends before it starts by as much as clocks may differ: an empty interval.
    Skewed,
    /// It ends more than a day after it was recorded: read as open.
    EndInFuture,
    /// Its phase is none of the contract's: counts as idle.
    UnknownPhase,
    /// A copy of a row of the same date that counts instead.
    Duplicate,
    /// A copy of a row of a newer date that counts instead.
    Superseded,
    /// Open, and not recorded again although its table went on.
    StaleOpen,
    /// An allocation of a job that `jobs` does not know.
    OrphanAllocation,
    /// A runtime row of an attempt that holds nothing.
    OrphanRuntime,
}

impl Reason {
    /// All reasons; the position is the code under which a partial result carries it.
    pub const ALL: [Reason; 13] = [
        Reason::NullRequired,
        Reason::BadValue,
        Reason::NegativeInterval,
        Reason::ImplausibleStart,
        Reason::FromTheFuture,
        Reason::Skewed,
        Reason::EndInFuture,
        Reason::UnknownPhase,
        Reason::Duplicate,
        Reason::Superseded,
        Reason::StaleOpen,
        Reason::OrphanAllocation,
        Reason::OrphanRuntime,
    ];

    /// The position in [`Reason::ALL`].
    pub fn code(self) -> u8 {
        self as u8
    }

    /// The word in the column `reason`.
    pub fn name(self) -> &'static str {
        match self {
            Reason::NullRequired => "null_required",
            Reason::BadValue => "bad_value",
            Reason::NegativeInterval => "negative_interval",
            Reason::ImplausibleStart => "implausible_start",
            Reason::FromTheFuture => "from_the_future",
            Reason::Skewed => "skewed",
            Reason::EndInFuture => "end_in_future",
            Reason::UnknownPhase => "unknown_phase",
            Reason::Duplicate => "duplicate",
            Reason::Superseded => "superseded",
            Reason::StaleOpen => "stale_open",
            Reason::OrphanAllocation => "orphan_allocation",
            Reason::OrphanRuntime => "orphan_runtime",
        }
    }

    /// Whether a row with this finding is left out of the accounting.
    pub fn is_quarantine(self) -> bool {
        self <= Reason::FromTheFuture
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_agree_with_the_list() {
        for (position, reason) in Reason::ALL.into_iter().enumerate() {
            assert_eq!(usize::from(reason.code()), position);
        }
    }
}
