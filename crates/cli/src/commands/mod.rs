//! The commands, a module each.

pub(crate) mod check;
pub(crate) mod plan;
pub(crate) mod run;
pub(crate) mod simulate;
pub(crate) mod sql;
