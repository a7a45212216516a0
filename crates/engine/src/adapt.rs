//! Columns of files of many years as the columns of the contract.
//!
//! A file may lack optional columns, store integers in 32 bits, strings in a dictionary, instants in any unit with or
//! without a zone. Missing columns read as null, and everything else is converted, instants by rounding down to whole
//! milliseconds, which a plain cast does not do before 1970. What cannot be converted without loss is an error.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, PrimitiveArray, TimestampMillisecondArray};
use arrow::compute::{CastOptions, cast_with_options};
use arrow::datatypes::{
    ArrowPrimitiveType, DataType, SchemaRef, TimeUnit, TimestampMicrosecondType, TimestampMillisecondType,
    TimestampNanosecondType, TimestampSecondType,
};
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::common::{Result, ScalarValue, exec_err, plan_err};
use datafusion::config::ConfigOptions;
use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility};
use datafusion::physical_expr::expressions::{CastExpr, Column, lit};
use datafusion::physical_expr::{PhysicalExpr, ScalarFunctionExpr};
use datafusion::physical_expr_adapter::{PhysicalExprAdapter, PhysicalExprAdapterFactory};

use crate::schema::{UTC, can_be_read_as, data_type, wanted};
use goodput_model::Kind;

/// Makes adapters from a file's columns to a table's.
#[derive(Debug)]
pub struct AdapterFactory;

impl PhysicalExprAdapterFactory for AdapterFactory {
    fn create(&self, table: SchemaRef, file: SchemaRef) -> Result<Arc<dyn PhysicalExprAdapter>> {
        Ok(Arc::new(Adapter { table, file }))
    }
}

#[derive(Debug)]
struct Adapter {
    table: SchemaRef,
    file: SchemaRef,
}

impl PhysicalExprAdapter for Adapter {
    fn rewrite(&self, expr: Arc<dyn PhysicalExpr>) -> Result<Arc<dyn PhysicalExpr>> {
        expr.transform_up(|expr| self.rewrite_column(expr)).data()
    }
}

impl Adapter {
    /// Puts in the place of a column of the table what gives its values from the file.
    fn rewrite_column(&self, expr: Arc<dyn PhysicalExpr>) -> Result<Transformed<Arc<dyn PhysicalExpr>>> {
        let Some(column) = expr.downcast_ref::<Column>() else { return Ok(Transformed::no(expr)) };
        let Ok(field) = self.table.field_with_name(column.name()) else { return Ok(Transformed::no(expr)) };
        let wanted_type = field.data_type();
        let Some((position, stored)) = self.file.column_with_name(column.name()) else {
            return Ok(Transformed::yes(lit(ScalarValue::try_from(wanted_type)?)));
        };
        if !can_be_read_as(stored.data_type(), wanted_type) {
            return plan_err!(
                "column `{}` is {} in a file, which cannot be read as {}",
                column.name(),
                stored.data_type(),
                wanted(field)
            );
        }
        let stored_column: Arc<dyn PhysicalExpr> = Arc::new(Column::new(column.name(), position));
        if stored.data_type() == wanted_type {
            return Ok(Transformed::yes(stored_column));
        }
        let is_instant = matches!(stored.data_type(), DataType::Timestamp(..));
        if !is_instant {
            return Ok(Transformed::yes(Arc::new(CastExpr::new(stored_column, wanted_type.clone(), None))));
        }
        Ok(Transformed::yes(Arc::new(ScalarFunctionExpr::new(
            "floor_to_ms",
            Arc::new(ScalarUDF::from(FloorToMs::new())),
            vec![stored_column],
            Arc::new(field.clone()),
            Arc::new(ConfigOptions::default()),
        ))))
    }
}

/// Rounds instants of any unit down to whole milliseconds.
#[derive(Debug, PartialEq, Eq, Hash)]
struct FloorToMs {
    signature: Signature,
}

impl FloorToMs {
    fn new() -> FloorToMs {
        FloorToMs { signature: Signature::any(1, Volatility::Immutable) }
    }
}

impl ScalarUDFImpl for FloorToMs {
    fn name(&self) -> &str {
        "floor_to_ms"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(data_type(Kind::Timestamp))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let arrays = ColumnarValue::values_to_arrays(&args.args)?;
        Ok(ColumnarValue::Array(floor_to_ms(&arrays[0])?))
    }
}

/// Rounds an array of instants down to whole milliseconds, UTC. A naive instant is UTC.
///
/// Seconds beyond what 64 bits of milliseconds can say are held at the ends: no such instant is plausible, and validity
/// quarantines or counts the row.
pub fn floor_to_ms(instants: &ArrayRef) -> Result<ArrayRef> {
    fn floored<T: ArrowPrimitiveType<Native = i64>>(
        instants: &ArrayRef,
        floor: impl Fn(i64) -> i64,
    ) -> TimestampMillisecondArray {
        let floored: PrimitiveArray<TimestampMillisecondType> = instants.as_primitive::<T>().unary(floor);
        floored.with_timezone(UTC)
    }
    let DataType::Timestamp(unit, _) = instants.data_type() else {
        return exec_err!("{} is no timestamp", instants.data_type());
    };
    Ok(Arc::new(match unit {
        TimeUnit::Second => floored::<TimestampSecondType>(instants, |value| value.saturating_mul(1_000)),
        TimeUnit::Millisecond => floored::<TimestampMillisecondType>(instants, |value| value),
        TimeUnit::Microsecond => floored::<TimestampMicrosecondType>(instants, |value| value.div_euclid(1_000)),
        TimeUnit::Nanosecond => floored::<TimestampNanosecondType>(instants, |value| value.div_euclid(1_000_000)),
    }))
}

/// A stored column as a type of the contract; an error if a value does not fit. Whether the types can be read as one another
/// is asked of the footer ([`crate::schema::can_be_read_as`]).
pub fn convert(column: &ArrayRef, wanted: &DataType) -> Result<ArrayRef> {
    match (column.data_type(), wanted) {
        (stored, _) if stored == wanted => Ok(Arc::clone(column)),
        (DataType::Timestamp(..), DataType::Timestamp(..)) => floor_to_ms(column),
        _ => {
            let strict = CastOptions { safe: false, ..CastOptions::default() };
            Ok(cast_with_options(column, wanted, &strict)?)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::{TimestampMicrosecondArray, TimestampNanosecondArray, TimestampSecondArray};

    #[test]
    fn instants_are_rounded_down() {
        let cases: [(ArrayRef, Vec<i64>); 3] = [
            (Arc::new(TimestampMicrosecondArray::from(vec![1_999, 2_000, -1, -1_000, -1_001])), vec![1, 2, -1, -1, -2]),
            (Arc::new(TimestampNanosecondArray::from(vec![1_999_999, -1])), vec![1, -1]),
            (Arc::new(TimestampSecondArray::from(vec![2, i64::MAX, i64::MIN])), vec![2_000, i64::MAX, i64::MIN]),
        ];
        for (stored, expected) in cases {
            let floored =
                floor_to_ms(&stored).map(|array| array.as_primitive::<TimestampMillisecondType>().values().to_vec());
            assert_eq!(floored.ok(), Some(expected));
        }
    }
}
