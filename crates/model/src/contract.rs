//! The five tables of the telemetry contract: columns, keys, words.

use std::fmt;

/// A table of the telemetry contract.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Table {
    /// Which chips the fleet has.
    Capacity,
    /// What was asked for.
    Jobs,
    /// Who held which chips.
    Allocations,
    /// What a job did while it held them.
    Runtime,
    /// How good the program is.
    Profiles,
}

/// What a column holds; years of files store each in several ways.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// UTF-8 text: plain, large, view or dictionary-encoded.
    String,
    /// A 64-bit signed integer; narrower and unsigned ones that fit are read.
    Int,
    /// A 64-bit float; narrower ones and integers are read.
    Float,
    /// An instant, floored to whole milliseconds on reading.
    Timestamp,
}

impl fmt::Display for Kind {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Kind::String => "string",
            Kind::Int => "int64",
            Kind::Float => "float64",
            Kind::Timestamp => "timestamp",
        })
    }
}

/// A column of the contract.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Column {
    /// Its exact, lower-case name.
    pub name: &'static str,
    /// What it holds.
    pub kind: Kind,
    /// Whether every file must have it and no row may have a null in it.
    pub required: bool,
}

const fn required(name: &'static str, kind: Kind) -> Column {
    Column { name, kind, required: true }
}

const fn optional(name: &'static str, kind: Kind) -> Column {
    Column { name, kind, required: false }
}

const CAPACITY: &[Column] = &[
    required("cell", Kind::String),
    required("accelerator", Kind::String),
    required("block", Kind::String),
    required("chips", Kind::Int),
    required("state", Kind::String),
    required("start_ts", Kind::Timestamp),
    optional("end_ts", Kind::Timestamp),
];

const JOBS: &[Column] = &[
    required("job_id", Kind::String),
    required("submit_ts", Kind::Timestamp),
    optional("end_ts", Kind::Timestamp),
    optional("end_state", Kind::String),
    required("chips_required", Kind::Int),
    optional("accelerator", Kind::String),
    optional("framework", Kind::String),
    optional("phase", Kind::String),
    optional("model_family", Kind::String),
    optional("team", Kind::String),
    optional("user", Kind::String),
    optional("priority", Kind::String),
    optional("topology", Kind::String),
];

const ALLOCATIONS: &[Column] = &[
    required("job_id", Kind::String),
    required("attempt", Kind::Int),
    required("task", Kind::String),
    required("cell", Kind::String),
    required("accelerator", Kind::String),
    required("chips", Kind::Int),
    required("start_ts", Kind::Timestamp),
    optional("end_ts", Kind::Timestamp),
    optional("end_reason", Kind::String),
];

const RUNTIME: &[Column] = &[
    required("job_id", Kind::String),
    required("attempt", Kind::Int),
    required("phase", Kind::String),
    required("start_ts", Kind::Timestamp),
    optional("end_ts", Kind::Timestamp),
    optional("first_step", Kind::Int),
    optional("last_step", Kind::Int),
];

const PROFILES: &[Column] = &[
    required("job_id", Kind::String),
    required("attempt", Kind::Int),
    required("program", Kind::String),
    required("start_ts", Kind::Timestamp),
    required("end_ts", Kind::Timestamp),
    required("steps", Kind::Int),
    required("step_time_us", Kind::Float),
    optional("predicted_step_time_us", Kind::Float),
    optional("flops_per_step", Kind::Float),
    optional("bytes_per_step", Kind::Float),
    optional("precision", Kind::String),
];

/// The columns of `jobs` that are segment axes in every fleet, in the order of the contract.
pub const JOB_AXES: [&str; 7] = ["framework", "phase", "model_family", "team", "user", "priority", "topology"];

/// The axes that belong to where a job runs, and to capacity too.
pub const POOL_AXES: [&str; 2] = ["cell", "accelerator"];

/// The axis that the size classes give.
pub const SIZE_CLASS: &str = "size_class";

/// What an axis reads as where nothing is known.
pub const UNKNOWN: &str = "unknown";

impl Table {
    /// All tables, in the order in which they are named everywhere.
    pub const ALL: [Table; 5] = [Table::Capacity, Table::Jobs, Table::Allocations, Table::Runtime, Table::Profiles];

    /// The name of the table and of its folder.
    pub fn name(self) -> &'static str {
        match self {
            Table::Capacity => "capacity",
            Table::Jobs => "jobs",
            Table::Allocations => "allocations",
            Table::Runtime => "runtime",
            Table::Profiles => "profiles",
        }
    }

    /// The table of that name.
    pub fn from_name(name: &str) -> Option<Table> {
        Table::ALL.into_iter().find(|table| table.name() == name)
    }

    /// Its columns, in the order of the contract.
    pub fn columns(self) -> &'static [Column] {
        match self {
            Table::Capacity => CAPACITY,
            Table::Jobs => JOBS,
            Table::Allocations => ALLOCATIONS,
            Table::Runtime => RUNTIME,
            Table::Profiles => PROFILES,
        }
    }

    /// The columns whose values together name a row.
    pub fn key(self) -> &'static [&'static str] {
        match self {
            Table::Capacity => &["cell", "accelerator", "block", "start_ts"],
            Table::Jobs => &["job_id"],
            Table::Allocations => &["job_id", "attempt", "task", "cell", "accelerator", "start_ts"],
            Table::Runtime => &["job_id", "attempt", "phase", "start_ts"],
            Table::Profiles => &["job_id", "attempt", "program", "start_ts"],
        }
    }

    /// The position in [`Table::ALL`].
    pub fn index(self) -> usize {
        self as usize
    }

    /// The position in [`Table::ALL`], as partial results carry it.
    pub fn code(self) -> u8 {
        self as u8
    }
}

impl fmt::Display for Table {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_required_columns() {
        for table in Table::ALL {
            for key in table.key() {
                assert!(table.columns().iter().any(|column| column.name == *key && column.required), "{table}.{key}");
            }
            assert_eq!(Table::ALL[table.index()], table);
            assert_eq!(usize::from(table.code()), table.index());
            assert_eq!(Table::from_name(table.name()), Some(table));
        }
    }

    #[test]
    fn axes_are_columns_of_jobs_in_the_order_of_the_contract() {
        let names: Vec<_> = JOBS.iter().map(|column| column.name).filter(|name| JOB_AXES.contains(name)).collect();
        assert_eq!(names, JOB_AXES);
    }
}
