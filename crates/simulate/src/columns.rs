//! Columns of rows, a function for each kind of value; `None` is a null.

use std::sync::Arc;

use arrow::array::{ArrayRef, Float64Array, Int64Array, StringArray, TimestampMicrosecondArray};

/// A column and its name.
pub(crate) type NamedColumn = (&'static str, ArrayRef);

/// Texts.
pub(crate) fn texts<'a, R>(rows: &'a [R], value: impl Fn(&'a R) -> Option<&'a str>) -> ArrayRef {
    Arc::new(rows.iter().map(value).collect::<StringArray>())
}

/// Whole numbers.
pub(crate) fn ints<R>(rows: &[R], value: impl Fn(&R) -> Option<i64>) -> ArrayRef {
    Arc::new(rows.iter().map(value).collect::<Int64Array>())
}

/// Quotients.
pub(crate) fn floats<R>(rows: &[R], value: impl Fn(&R) -> Option<f64>) -> ArrayRef {
    Arc::new(rows.iter().map(value).collect::<Float64Array>())
}

/// Instants, given in ms and kept in µs.
pub(crate) fn instants<R>(rows: &[R], value: impl Fn(&R) -> Option<i64>) -> ArrayRef {
    let micros = rows.iter().map(|row| value(row).map(|ms| ms * 1000));
    Arc::new(micros.collect::<TimestampMicrosecondArray>().with_timezone("UTC"))
}
