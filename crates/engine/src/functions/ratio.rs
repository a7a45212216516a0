//! Ratios of sums.

use std::sync::Arc;

use arrow::array::{AsArray, Float64Array};
use arrow::datatypes::{DataType, Int64Type};
use datafusion::common::Result;
use datafusion::logical_expr::{
    ColumnarValue, ScalarFunctionArgs, ScalarUDFImpl, Signature, TypeSignature, Volatility,
};

/// `ratio(numerator, denominator)`: two integers, which are to be sums; null if either is null or the denominator is zero.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct Ratio {
    signature: Signature,
}

impl Ratio {
    /// The function.
    pub fn new() -> Ratio {
        let arguments = TypeSignature::Exact(vec![DataType::Int64, DataType::Int64]);
        Ratio { signature: Signature::new(arguments, Volatility::Immutable) }
    }
}

impl Default for Ratio {
    fn default() -> Ratio {
        Ratio::new()
    }
}

impl ScalarUDFImpl for Ratio {
    fn name(&self) -> &str {
        "ratio"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Float64)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let arrays = ColumnarValue::values_to_arrays(&args.args)?;
        let (numerators, denominators) = (arrays[0].as_primitive::<Int64Type>(), arrays[1].as_primitive::<Int64Type>());
        let ratios: Float64Array = numerators
            .iter()
            .zip(denominators)
            .map(|(numerator, denominator)| match (numerator, denominator) {
                (Some(numerator), Some(denominator)) if denominator != 0 => Some(numerator as f64 / denominator as f64),
                _ => None,
            })
            .collect();
        Ok(ColumnarValue::Array(Arc::new(ratios)))
    }
}
