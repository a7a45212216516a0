//! Aggregates that collect the rows of a job, or of a block of chips, as one value.
//!
//! `collect_<table>(date, skew_tolerance_ms, <columns of the contract>)`; for `jobs` the segment axes stand where the
//! contract has them, and extra axes behind. Rows are judged one by one on the way in, and what the accounting needs of
//! each is appended to the bytes of its group ([`goodput_accounting::encoding`]). Partial results merge by concatenation,
//! in any order, over partitions and nodes. Rows whose group is null (a required key is missing) are counted like others.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, Float64Array, Int64Array, LargeBinaryArray, LargeBinaryBuilder,
    PrimitiveArray, StringViewArray,
};
use arrow::datatypes::{
    ArrowPrimitiveType, DataType, Date32Type, Field, FieldRef, Float64Type, Int64Type, TimestampMillisecondType,
};
use datafusion::common::{Result, ScalarValue, exec_err, plan_err};
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::utils::format_state_name;
use datafusion::logical_expr::{Accumulator, AggregateUDFImpl, EmitTo, GroupsAccumulator, Signature, Volatility};
use goodput_accounting::encoding::{self, RawAllocation, RawCapacity, RawJob, RawProfile, RawRuntime};
use goodput_model::{Day, Kind, Table};

use crate::schema::data_type;

/// The columns of a table that `collect_<table>` takes, in their order; for `jobs`, before the axes.
pub fn collected_columns(table: Table) -> &'static [(&'static str, Kind)] {
    use Kind::{Float, Int, String, Timestamp};
    match table {
        Table::Capacity => &[
            ("cell", String),
            ("accelerator", String),
            ("block", String),
            ("chips", Int),
            ("state", String),
            ("start_ts", Timestamp),
            ("end_ts", Timestamp),
        ],
        Table::Jobs => &[
            ("job_id", String),
            ("submit_ts", Timestamp),
            ("end_ts", Timestamp),
            ("end_state", String),
            ("chips_required", Int),
            ("accelerator", String),
        ],
        Table::Allocations => &[
            ("job_id", String),
            ("attempt", Int),
            ("task", String),
            ("cell", String),
            ("accelerator", String),
            ("chips", Int),
            ("start_ts", Timestamp),
            ("end_ts", Timestamp),
        ],
        Table::Runtime => &[
            ("job_id", String),
            ("attempt", Int),
            ("phase", String),
            ("start_ts", Timestamp),
            ("end_ts", Timestamp),
            ("first_step", Int),
            ("last_step", Int),
        ],
        Table::Profiles => &[
            ("job_id", String),
            ("attempt", Int),
            ("program", String),
            ("start_ts", Timestamp),
            ("end_ts", Timestamp),
            ("steps", Int),
            ("step_time_us", Float),
            ("predicted_step_time_us", Float),
            ("flops_per_step", Float),
            ("bytes_per_step", Float),
            ("precision", String),
        ],
    }
}

/// The aggregate of one table.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct Collect {
    table: Table,
    name: String,
    signature: Signature,
}

impl Collect {
    /// The aggregate `collect_<table>`.
    pub fn new(table: Table) -> Collect {
        Collect {
            table,
            name: format!("collect_{}", table.name()),
            signature: Signature::user_defined(Volatility::Immutable),
        }
    }
}

impl AggregateUDFImpl for Collect {
    fn name(&self) -> &str {
        &self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, given: &[DataType]) -> Result<Vec<DataType>> {
        let columns = collected_columns(self.table);
        let fixed = 2 + columns.len();
        let fits = if self.table == Table::Jobs { given.len() >= fixed } else { given.len() == fixed };
        if !fits {
            let names: Vec<_> = columns.iter().map(|(name, _)| *name).collect();
            return plan_err!("`{}` takes (date, skew_tolerance_ms, {})", self.name, names.join(", "));
        }
        let columns = columns.iter().map(|(_, kind)| data_type(*kind));
        let axes = (fixed..given.len()).map(|_| DataType::Utf8View);
        Ok([DataType::Date32, DataType::Int64].into_iter().chain(columns).chain(axes).collect())
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::LargeBinary)
    }

    fn state_fields(&self, args: StateFieldsArgs<'_>) -> Result<Vec<FieldRef>> {
        let name = format_state_name(args.name, "rows");
        Ok(vec![Arc::new(Field::new(name, DataType::LargeBinary, true))])
    }

    fn accumulator(&self, _: AccumulatorArgs<'_>) -> Result<Box<dyn Accumulator>> {
        Ok(Box::new(CollectAll { table: self.table, rows: Vec::new() }))
    }

    fn groups_accumulator_supported(&self, _: AccumulatorArgs<'_>) -> bool {
        true
    }

    fn create_groups_accumulator(&self, _: AccumulatorArgs<'_>) -> Result<Box<dyn GroupsAccumulator>> {
        Ok(Box::new(CollectGroups { table: self.table, groups: Vec::new(), bytes: 0 }))
    }
}

/// The rows of each group.
#[derive(Debug)]
struct CollectGroups {
    table: Table,
    groups: Vec<Vec<u8>>,
    /// Bytes reserved by the groups.
    bytes: usize,
}

impl CollectGroups {
    fn extend_to(&mut self, groups: usize) {
        if self.groups.len() < groups {
            self.groups.resize_with(groups, Vec::new);
        }
    }

    fn emit(&mut self, emit_to: EmitTo) -> LargeBinaryArray {
        let groups = emit_to.take_needed(&mut self.groups);
        let bytes = groups.iter().map(Vec::len).sum();
        let mut array = LargeBinaryBuilder::with_capacity(groups.len(), bytes);
        for group in groups {
            self.bytes = self.bytes.saturating_sub(group.capacity());
            array.append_value(group);
        }
        array.finish()
    }
}

impl GroupsAccumulator for CollectGroups {
    fn update_batch(
        &mut self,
        values: &[ArrayRef],
        group_indices: &[usize],
        filter: Option<&BooleanArray>,
        total_num_groups: usize,
    ) -> Result<()> {
        self.extend_to(total_num_groups);
        let rows = Rows::new(self.table, values)?;
        for (row, group) in group_indices.iter().enumerate() {
            if filter.is_some_and(|filter| filter.is_null(row) || !filter.value(row)) {
                continue;
            }
            let group = &mut self.groups[*group];
            let before = group.capacity();
            rows.write(row, group);
            self.bytes += group.capacity() - before;
        }
        Ok(())
    }

    fn merge_batch(&mut self, values: &[ArrayRef], group_indices: &[usize], total_num_groups: usize) -> Result<()> {
        self.extend_to(total_num_groups);
        let states = binary(&values[0])?;
        for (row, group) in group_indices.iter().enumerate() {
            if states.is_null(row) {
                continue;
            }
            let group = &mut self.groups[*group];
            let before = group.capacity();
            group.extend_from_slice(states.value(row));
            self.bytes += group.capacity() - before;
        }
        Ok(())
    }

    fn evaluate(&mut self, emit_to: EmitTo) -> Result<ArrayRef> {
        Ok(Arc::new(self.emit(emit_to)))
    }

    fn state(&mut self, emit_to: EmitTo) -> Result<Vec<ArrayRef>> {
        Ok(vec![Arc::new(self.emit(emit_to))])
    }

    fn convert_to_state(&self, values: &[ArrayRef], filter: Option<&BooleanArray>) -> Result<Vec<ArrayRef>> {
        let rows = Rows::new(self.table, values)?;
        let mut array = LargeBinaryBuilder::new();
        let mut bytes = Vec::new();
        for row in 0..values[0].len() {
            bytes.clear();
            if filter.is_none_or(|filter| filter.is_valid(row) && filter.value(row)) {
                rows.write(row, &mut bytes);
            }
            array.append_value(&bytes);
        }
        Ok(vec![Arc::new(array.finish())])
    }

    fn size(&self) -> usize {
        self.bytes + self.groups.capacity() * size_of::<Vec<u8>>()
    }
}

/// All rows as one group.
#[derive(Debug)]
struct CollectAll {
    table: Table,
    rows: Vec<u8>,
}

impl Accumulator for CollectAll {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let rows = Rows::new(self.table, values)?;
        for row in 0..values[0].len() {
            rows.write(row, &mut self.rows);
        }
        Ok(())
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        for state in binary(&states[0])?.iter().flatten() {
            self.rows.extend_from_slice(state);
        }
        Ok(())
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        Ok(ScalarValue::LargeBinary(Some(self.rows.clone())))
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        Ok(vec![ScalarValue::LargeBinary(Some(std::mem::take(&mut self.rows)))])
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.rows.capacity()
    }
}

fn binary(array: &ArrayRef) -> Result<&LargeBinaryArray> {
    match array.as_binary_opt::<i64>() {
        Some(array) => Ok(array),
        None => exec_err!("collected rows are {}, not LargeBinary", array.data_type()),
    }
}

/// The arguments of a batch as columns of their types.
struct Rows<'a> {
    table: Table,
    dates: &'a PrimitiveArray<Date32Type>,
    tolerances: &'a Int64Array,
    columns: Vec<ColumnOf<'a>>,
}

enum ColumnOf<'a> {
    Text(&'a StringViewArray),
    Int(&'a Int64Array),
    Float(&'a Float64Array),
    Instant(&'a PrimitiveArray<TimestampMillisecondType>),
}

impl<'a> Rows<'a> {
    fn new(table: Table, values: &'a [ArrayRef]) -> Result<Rows<'a>> {
        fn of<T: ArrowPrimitiveType>(array: &ArrayRef) -> Result<&PrimitiveArray<T>> {
            match array.as_primitive_opt::<T>() {
                Some(array) => Ok(array),
                None => exec_err!("an argument is {}, not {}", array.data_type(), T::DATA_TYPE),
            }
        }
        let mut columns = Vec::with_capacity(values.len());
        for array in values.get(2..).unwrap_or_default() {
            columns.push(match array.data_type() {
                DataType::Int64 => ColumnOf::Int(of::<Int64Type>(array)?),
                DataType::Float64 => ColumnOf::Float(of::<Float64Type>(array)?),
                DataType::Timestamp(..) => ColumnOf::Instant(of::<TimestampMillisecondType>(array)?),
                _ => match array.as_string_view_opt() {
                    Some(array) => ColumnOf::Text(array),
                    None => return exec_err!("an argument is {}", array.data_type()),
                },
            });
        }
        let (dates, tolerances) = (of::<Date32Type>(&values[0])?, of::<Int64Type>(&values[1])?);
        Ok(Rows { table, dates, tolerances, columns })
    }

    fn text(&self, column: usize, row: usize) -> Option<&'a str> {
        match self.columns.get(column) {
            Some(ColumnOf::Text(array)) if array.is_valid(row) => Some(array.value(row)),
            _ => None,
        }
    }

    fn int(&self, column: usize, row: usize) -> Option<i64> {
        match self.columns.get(column) {
            Some(ColumnOf::Int(array)) if array.is_valid(row) => Some(array.value(row)),
            Some(ColumnOf::Instant(array)) if array.is_valid(row) => Some(array.value(row)),
            _ => None,
        }
    }

    fn float(&self, column: usize, row: usize) -> Option<f64> {
        match self.columns.get(column) {
            Some(ColumnOf::Float(array)) if array.is_valid(row) => Some(array.value(row)),
            _ => None,
        }
    }

    /// Appends what the accounting needs of a row. A row without a date belongs to no partition and to no day.
    fn write(&self, row: usize, out: &mut Vec<u8>) {
        if self.dates.is_null(row) {
            return;
        }
        let date = Day(self.dates.value(row));
        let tolerance = if self.tolerances.is_valid(row) { self.tolerances.value(row) } else { 0 };
        let (text, int, float) = (|at| self.text(at, row), |at| self.int(at, row), |at| self.float(at, row));
        match self.table {
            Table::Capacity => {
                let raw = RawCapacity {
                    cell: text(0),
                    accelerator: text(1),
                    block: text(2),
                    chips: int(3),
                    state: text(4),
                    start: int(5),
                    end: int(6),
                };
                encoding::write_capacity(out, date, &raw, tolerance);
            }
            Table::Jobs => {
                let raw = RawJob {
                    job_id: text(0),
                    submit: int(1),
                    end: int(2),
                    end_state: text(3),
                    chips_required: int(4),
                    accelerator: text(5),
                    axes: (6..self.columns.len()).map(text).collect(),
                };
                encoding::write_job(out, date, &raw, tolerance);
            }
            Table::Allocations => {
                let raw = RawAllocation {
                    job_id: text(0),
                    attempt: int(1),
                    task: text(2),
                    cell: text(3),
                    accelerator: text(4),
                    chips: int(5),
                    start: int(6),
                    end: int(7),
                };
                encoding::write_allocation(out, date, &raw, tolerance);
            }
            Table::Runtime => {
                let raw = RawRuntime {
                    job_id: text(0),
                    attempt: int(1),
                    phase: text(2),
                    start: int(3),
                    end: int(4),
                    first_step: int(5),
                    last_step: int(6),
                };
                encoding::write_runtime(out, date, &raw, tolerance);
            }
            Table::Profiles => {
                let raw = RawProfile {
                    job_id: text(0),
                    attempt: int(1),
                    program: text(2),
                    start: int(3),
                    end: int(4),
                    steps: int(5),
                    step_time_us: float(6),
                    predicted_step_time_us: float(7),
                    flops_per_step: float(8),
                    bytes_per_step: float(9),
                    precision: text(10),
                };
                encoding::write_profile(out, date, &raw, tolerance);
            }
        }
    }
}
