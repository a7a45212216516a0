//! By which axes a row of grouping sets is grouped, and what is valid there.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, StringArray};
use arrow::datatypes::{DataType, Int64Type};
use datafusion::common::{Result, plan_err};
use datafusion::logical_expr::{
    ColumnarValue, ScalarFunctionArgs, ScalarUDFImpl, Signature, TypeSignature, Volatility,
};
use goodput_model::contract::POOL_AXES;

/// What the segment without axes is called.
const FLEET: &str = "fleet";

/// `grouped_by(mask, axis, ...)`: the names of the axes by which a row is grouped, joined by commas; `fleet` if there are
/// none, `all` if all are and they are not pools'. `mask` is what `grouping(axis, ...)` gives: the first axis has the
/// highest bit, and a set bit says that the row is not grouped by it.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct GroupedBy {
    signature: Signature,
}

impl GroupedBy {
    /// The function.
    pub fn new() -> GroupedBy {
        GroupedBy { signature: Signature::user_defined(Volatility::Immutable) }
    }
}

impl Default for GroupedBy {
    fn default() -> GroupedBy {
        GroupedBy::new()
    }
}

impl ScalarUDFImpl for GroupedBy {
    fn name(&self) -> &str {
        "grouped_by"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, given: &[DataType]) -> Result<Vec<DataType>> {
        if !(2..=64).contains(&given.len()) || !given[0].is_integer() {
            return plan_err!("`grouped_by` takes what `grouping` gives, and the names of its 1 to 63 axes");
        }
        let names = (1..given.len()).map(|_| DataType::Utf8);
        Ok(std::iter::once(DataType::Int64).chain(names).collect())
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Utf8)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let arrays: Vec<ArrayRef> = ColumnarValue::values_to_arrays(&args.args)?;
        let masks = arrays[0].as_primitive::<Int64Type>();
        let names: Vec<&StringArray> = arrays[1..].iter().map(|array| array.as_string()).collect();
        let name_of = |row: usize| {
            masks.is_valid(row).then(|| {
                let all: Vec<&str> = names.iter().map(|names| names.value(row)).collect();
                segment_name(masks.value(row), &all)
            })
        };
        let segments: StringArray = (0..masks.len()).map(name_of).collect();
        Ok(ColumnarValue::Array(Arc::new(segments)))
    }
}

fn segment_name(mask: i64, axes: &[&str]) -> String {
    let bit = |position: usize| mask >> (axes.len() - 1 - position) & 1;
    let grouped: Vec<&str> = axes.iter().enumerate().filter(|(at, _)| bit(*at) == 0).map(|(_, axis)| *axis).collect();
    if grouped.is_empty() {
        return FLEET.to_owned();
    }
    if grouped.len() == axes.len() && grouped.len() > 1 && !grouped.iter().all(|axis| POOL_AXES.contains(axis)) {
        return "all".to_owned();
    }
    grouped.join(",")
}

/// `owns_capacity(segment_by)`: whether capacity belongs to segments of that name: the fleet, and pools.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct OwnsCapacity {
    signature: Signature,
}

impl OwnsCapacity {
    /// The function.
    pub fn new() -> OwnsCapacity {
        OwnsCapacity { signature: Signature::new(TypeSignature::Exact(vec![DataType::Utf8]), Volatility::Immutable) }
    }
}

impl Default for OwnsCapacity {
    fn default() -> OwnsCapacity {
        OwnsCapacity::new()
    }
}

impl ScalarUDFImpl for OwnsCapacity {
    fn name(&self) -> &str {
        "owns_capacity"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Boolean)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let arrays = ColumnarValue::values_to_arrays(&args.args)?;
        let owns = |segment: &str| segment == FLEET || segment.split(',').all(|axis| POOL_AXES.contains(&axis));
        let answers: BooleanArray = arrays[0].as_string::<i32>().iter().map(|segment| segment.map(owns)).collect();
        Ok(ColumnarValue::Array(Arc::new(answers)))
    }
}

#[cfg(test)]
mod tests {
    use super::segment_name;

    #[test]
    fn segments_are_named_by_their_axes() {
        let axes = ["cell", "accelerator", "team"];
        let cases = [(0b111, "fleet"), (0b011, "cell"), (0b110, "team"), (0b001, "cell,accelerator"), (0b000, "all")];
        for (mask, expected) in cases {
            assert_eq!(segment_name(mask, &axes), expected);
        }
        assert_eq!(segment_name(0, &["cell", "accelerator"]), "cell,accelerator");
        assert_eq!(segment_name(0, &["team"]), "team");
    }
}
