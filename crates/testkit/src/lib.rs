//! For development alone: telemetry from hand-written rows, tables read back, and the sample fleet.

pub mod cases;
pub mod sample;
pub mod telemetry;
