//! For development alone: telemetry from hand-written rows, and tables read back.

pub mod cases;
