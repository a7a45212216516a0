//! Integer arithmetic that reports an overflow instead of wrapping.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, Decimal128Array, Int64Array};
use arrow::datatypes::{DataType, Decimal128Type, Field, FieldRef, Int64Type};
use datafusion::common::{Result, ScalarValue, exec_err, plan_err};
use datafusion::functions_aggregate::sum::Sum;
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::utils::{AggregateOrderSensitivity, format_state_name};
use datafusion::logical_expr::{
    Accumulator, AggregateUDFImpl, ColumnarValue, EmitTo, GroupsAccumulator, ReversedUDAF, ScalarFunctionArgs,
    ScalarUDFImpl, Signature, Volatility,
};

/// Digits of a partial sum: room for 2^63 rows of 64-bit values.
const STATE_DIGITS: u8 = 38;

/// `sum`, in the place of the engine's own: sums of 64-bit integers are taken with 128 bits and must fit into 64 at the
/// end. Whether they do does not depend on the order of the rows. All other types go to the engine's own.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct CheckedSum {
    plain: Sum,
}

impl CheckedSum {
    /// The aggregate.
    pub fn new() -> CheckedSum {
        CheckedSum { plain: Sum::new() }
    }
}

impl Default for CheckedSum {
    fn default() -> CheckedSum {
        CheckedSum::new()
    }
}

fn is_checked(return_type: &DataType, is_distinct: bool) -> bool {
    *return_type == DataType::Int64 && !is_distinct
}

impl AggregateUDFImpl for CheckedSum {
    fn name(&self) -> &str {
        "sum"
    }

    fn signature(&self) -> &Signature {
        self.plain.signature()
    }

    fn return_type(&self, given: &[DataType]) -> Result<DataType> {
        self.plain.return_type(given)
    }

    fn coerce_types(&self, given: &[DataType]) -> Result<Vec<DataType>> {
        self.plain.coerce_types(given)
    }

    fn state_fields(&self, args: StateFieldsArgs<'_>) -> Result<Vec<FieldRef>> {
        if !is_checked(args.return_field.data_type(), args.is_distinct) {
            return self.plain.state_fields(args);
        }
        let name = format_state_name(args.name, "checked sum");
        Ok(vec![Arc::new(Field::new(name, DataType::Decimal128(STATE_DIGITS, 0), true))])
    }

    fn accumulator(&self, args: AccumulatorArgs<'_>) -> Result<Box<dyn Accumulator>> {
        if is_checked(args.return_field.data_type(), args.is_distinct) {
            return Ok(Box::new(SumAll::default()));
        }
        self.plain.accumulator(args)
    }

    fn groups_accumulator_supported(&self, args: AccumulatorArgs<'_>) -> bool {
        self.plain.groups_accumulator_supported(args)
    }

    fn create_groups_accumulator(&self, args: AccumulatorArgs<'_>) -> Result<Box<dyn GroupsAccumulator>> {
        if is_checked(args.return_field.data_type(), args.is_distinct) {
            return Ok(Box::new(SumGroups::default()));
        }
        self.plain.create_groups_accumulator(args)
    }

    fn create_sliding_accumulator(&self, args: AccumulatorArgs<'_>) -> Result<Box<dyn Accumulator>> {
        if is_checked(args.return_field.data_type(), args.is_distinct) {
            return Ok(Box::new(SumAll::default()));
        }
        self.plain.create_sliding_accumulator(args)
    }

    fn reverse_expr(&self) -> ReversedUDAF {
        ReversedUDAF::Identical
    }

    fn order_sensitivity(&self) -> AggregateOrderSensitivity {
        AggregateOrderSensitivity::Insensitive
    }
}

fn ints(array: &ArrayRef) -> Result<&Int64Array> {
    match array.as_primitive_opt::<Int64Type>() {
        Some(array) => Ok(array),
        None => exec_err!("a sum of 64-bit integers was given {}", array.data_type()),
    }
}

fn partial_sums(array: &ArrayRef) -> Result<&Decimal128Array> {
    match array.as_primitive_opt::<Decimal128Type>() {
        Some(array) => Ok(array),
        None => exec_err!("a partial sum is {}", array.data_type()),
    }
}

fn fitting(sum: i128) -> Result<i64> {
    match i64::try_from(sum) {
        Ok(sum) => Ok(sum),
        Err(_) => exec_err!("a sum of 64-bit integers does not fit into 64 bits: {sum}"),
    }
}

/// Sums by group; `None` while a group has had no value.
#[derive(Debug, Default)]
struct SumGroups {
    sums: Vec<Option<i128>>,
}

impl SumGroups {
    fn add(&mut self, group: usize, value: i128) {
        let sum = &mut self.sums[group];
        *sum = Some(sum.unwrap_or(0) + value);
    }
}

impl GroupsAccumulator for SumGroups {
    fn update_batch(
        &mut self,
        values: &[ArrayRef],
        group_indices: &[usize],
        filter: Option<&BooleanArray>,
        total_num_groups: usize,
    ) -> Result<()> {
        self.sums.resize(total_num_groups, None);
        let values = ints(&values[0])?;
        for (row, group) in group_indices.iter().enumerate() {
            let counts = filter.is_none_or(|filter| filter.is_valid(row) && filter.value(row));
            if counts && values.is_valid(row) {
                self.add(*group, i128::from(values.value(row)));
            }
        }
        Ok(())
    }

    fn merge_batch(&mut self, values: &[ArrayRef], group_indices: &[usize], total_num_groups: usize) -> Result<()> {
        self.sums.resize(total_num_groups, None);
        let sums = partial_sums(&values[0])?;
        for (row, group) in group_indices.iter().enumerate() {
            if sums.is_valid(row) {
                self.add(*group, sums.value(row));
            }
        }
        Ok(())
    }

    fn evaluate(&mut self, emit_to: EmitTo) -> Result<ArrayRef> {
        let sums = emit_to.take_needed(&mut self.sums);
        let sums: Int64Array = sums.into_iter().map(|sum| sum.map(fitting).transpose()).collect::<Result<_>>()?;
        Ok(Arc::new(sums))
    }

    fn state(&mut self, emit_to: EmitTo) -> Result<Vec<ArrayRef>> {
        let sums: Decimal128Array = emit_to.take_needed(&mut self.sums).into_iter().collect();
        Ok(vec![Arc::new(sums.with_precision_and_scale(STATE_DIGITS, 0)?)])
    }

    fn convert_to_state(&self, values: &[ArrayRef], filter: Option<&BooleanArray>) -> Result<Vec<ArrayRef>> {
        let values = ints(&values[0])?;
        let counts = |row: usize| filter.is_none_or(|filter| filter.is_valid(row) && filter.value(row));
        let sums: Decimal128Array =
            values.iter().enumerate().map(|(row, value)| value.filter(|_| counts(row)).map(i128::from)).collect();
        Ok(vec![Arc::new(sums.with_precision_and_scale(STATE_DIGITS, 0)?)])
    }

    fn size(&self) -> usize {
        self.sums.capacity() * size_of::<Option<i128>>()
    }
}

/// A sum of all rows, or of those in a window frame.
#[derive(Debug, Default)]
struct SumAll {
    sum: i128,
    values: i64,
}

impl Accumulator for SumAll {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        for value in ints(&values[0])?.iter().flatten() {
            self.sum += i128::from(value);
            self.values += 1;
        }
        Ok(())
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        for value in ints(&values[0])?.iter().flatten() {
            self.sum -= i128::from(value);
            self.values -= 1;
        }
        Ok(())
    }

    fn supports_retract_batch(&self) -> bool {
        true
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        for sum in partial_sums(&states[0])?.iter().flatten() {
            self.sum += sum;
            self.values += 1;
        }
        Ok(())
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        let sum = if self.values == 0 { None } else { Some(fitting(self.sum)?) };
        Ok(ScalarValue::Int64(sum))
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        let sum = (self.values > 0).then_some(self.sum);
        Ok(vec![ScalarValue::Decimal128(sum, STATE_DIGITS, 0)])
    }

    fn size(&self) -> usize {
        size_of_val(self)
    }
}

/// `checked_add(a, b, ...)` and `checked_sub(a, b, ...)`, which is a - b - ...; an error where the result does not fit into
/// 64 bits.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct Checked {
    operation: Operation,
    signature: Signature,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Operation {
    Add,
    Sub,
}

impl Checked {
    /// `checked_add`.
    pub fn add() -> Checked {
        Checked { operation: Operation::Add, signature: Signature::user_defined(Volatility::Immutable) }
    }

    /// `checked_sub`.
    pub fn sub() -> Checked {
        Checked { operation: Operation::Sub, signature: Signature::user_defined(Volatility::Immutable) }
    }
}

impl ScalarUDFImpl for Checked {
    fn name(&self) -> &str {
        match self.operation {
            Operation::Add => "checked_add",
            Operation::Sub => "checked_sub",
        }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, given: &[DataType]) -> Result<Vec<DataType>> {
        if given.len() < 2 || !given.iter().all(|given| given.is_integer() || given.is_null()) {
            return plan_err!("`{}` takes two integers or more", self.name());
        }
        Ok(vec![DataType::Int64; given.len()])
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Int64)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let arrays = ColumnarValue::values_to_arrays(&args.args)?;
        let arrays = arrays.iter().map(ints).collect::<Result<Vec<_>>>()?;
        let rows = arrays.first().map_or(0, |array| array.len());
        let sign = if self.operation == Operation::Add { 1 } else { -1 };
        let result = |row: usize| -> Result<Option<i64>> {
            if arrays.iter().any(|array| array.is_null(row)) {
                return Ok(None);
            }
            let mut values = arrays.iter().map(|array| i128::from(array.value(row)));
            let first = values.next().unwrap_or(0);
            Ok(Some(fitting(values.fold(first, |left, right| left + sign * right))?))
        };
        let results: Int64Array = (0..rows).map(result).collect::<Result<_>>()?;
        Ok(ColumnarValue::Array(Arc::new(results)))
    }
}
