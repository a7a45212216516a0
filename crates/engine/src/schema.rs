//! The contract's tables in Arrow types, and whether a file's columns can be read as them.

use std::sync::Arc;

use arrow::datatypes::{DataType, Field, Schema, SchemaRef, TimeUnit};
use goodput_model::{Kind, Table};

/// The zone of all instants.
pub const UTC: &str = "UTC";

/// The type in which a column of the contract is computed with.
pub fn data_type(kind: Kind) -> DataType {
    match kind {
        Kind::String => DataType::Utf8View,
        Kind::Int => DataType::Int64,
        Kind::Float => DataType::Float64,
        Kind::Timestamp => DataType::Timestamp(TimeUnit::Millisecond, Some(UTC.into())),
    }
}

/// The columns of a table in files: those of the contract, then extra ones (axes of `jobs`), all of them strings.
pub fn contract_schema(table: Table, extra: &[String]) -> SchemaRef {
    let contract = table.columns().iter().map(|column| Field::new(column.name, data_type(column.kind), true));
    let extra = extra.iter().map(|name| Field::new(name, DataType::Utf8View, true));
    Arc::new(Schema::new(contract.chain(extra).collect::<Vec<_>>()))
}

/// The partition column that the path gives.
pub fn date_field() -> Field {
    Field::new("date", DataType::Date32, true)
}

/// What a column of a file would have to be read as, for messages.
pub fn wanted(field: &Field) -> &'static str {
    match field.data_type() {
        DataType::Utf8View => "a string",
        DataType::Int64 => "an integer",
        DataType::Float64 => "a number",
        DataType::Timestamp(..) => "a timestamp",
        _ => "its own type",
    }
}

/// Whether values of a stored type can be read as those of a column without loss.
pub fn can_be_read_as(stored: &DataType, wanted: &DataType) -> bool {
    let stored = match stored {
        DataType::Dictionary(_, values) => values.as_ref(),
        other => other,
    };
    match wanted {
        _ if *stored == DataType::Null || stored == wanted => true,
        DataType::Utf8View | DataType::Utf8 => {
            matches!(stored, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View)
        }
        DataType::Int64 => stored.is_integer(),
        DataType::Float64 => stored.is_floating() || stored.is_integer(),
        DataType::Timestamp(..) => matches!(stored, DataType::Timestamp(..)),
        _ => false,
    }
}

/// What keeps a file from being read as a table: the first missing or ill-typed column of the contract.
pub fn mismatch(table: Table, extra: &[String], file: &Schema) -> Option<String> {
    let contract = contract_schema(table, extra);
    for (position, field) in contract.fields().iter().enumerate() {
        let required = table.columns().get(position).is_some_and(|column| column.required);
        match file.field_with_name(field.name()) {
            Err(_) if required => {
                let other = file.fields().iter().find(|other| other.name().eq_ignore_ascii_case(field.name()));
                let other = other.map(|other| format!(" (there is a column `{}`: names are exact)", other.name()));
                return Some(format!("required column `{}` is missing{}", field.name(), other.unwrap_or_default()));
            }
            Err(_) => {}
            Ok(stored) if can_be_read_as(stored.data_type(), field.data_type()) => {}
            Ok(stored) => {
                return Some(format!(
                    "column `{}` is {}, which cannot be read as {}",
                    field.name(),
                    stored.data_type(),
                    wanted(field)
                ));
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_column_may_be_stored_as() {
        let dictionary = |values| DataType::Dictionary(Box::new(DataType::Int32), Box::new(values));
        let cases = [
            (DataType::Int32, Kind::Int, true),
            (DataType::UInt64, Kind::Int, true),
            (DataType::Float64, Kind::Int, false),
            (DataType::Utf8, Kind::Int, false),
            (DataType::Float32, Kind::Float, true),
            (DataType::Int64, Kind::Float, true),
            (DataType::Utf8, Kind::Float, false),
            (dictionary(DataType::Utf8), Kind::String, true),
            (DataType::LargeUtf8, Kind::String, true),
            (DataType::Binary, Kind::String, false),
            (DataType::Int64, Kind::String, false),
            (DataType::Timestamp(TimeUnit::Nanosecond, None), Kind::Timestamp, true),
            (DataType::Timestamp(TimeUnit::Second, Some("Europe/Berlin".into())), Kind::Timestamp, true),
            (DataType::Int64, Kind::Timestamp, false),
            (DataType::Date32, Kind::Timestamp, false),
            (DataType::Utf8, Kind::Timestamp, false),
            (DataType::Null, Kind::Timestamp, true),
        ];
        for (stored, kind, expected) in cases {
            assert_eq!(can_be_read_as(&stored, &data_type(kind)), expected, "{stored} as {kind}");
        }
    }
}
