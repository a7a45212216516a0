//! For development alone: telemetry from hand-written rows, tables read back, and object stores that fail.

pub mod cases;
pub mod faults;
pub mod servers;
