//! Aggregates that collect the rows of a job, or of a block of chips, as one value.
//!
//! `collect_<table>(date, skew_tolerance_ms, <columns of the contract>)`; for `jobs` the segment axes stand where the
//! contract has them, and extra axes behind. Rows are judged one by one on the way in, and what the accounting needs of
//! each is appended to the bytes of its group ([`goodput_accounting::encoding`]). Partial results merge by concatenation,
//! in any order, over partitions and nodes. Rows whose group is null (a required key is missing) are counted like others.
//!
//! `merge_collected(collected)` puts such values together: those of other tables and of other partitions.

use std::collections::VecDeque;
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, Float64Array, Int32Array, Int64Array, LargeBinaryArray, LargeBinaryBuilder,
    PrimitiveArray, StringArray, StringViewArray,
};
use arrow::buffer::OffsetBuffer;
use arrow::datatypes::{
    ArrowPrimitiveType, DataType, Date32Type, Field, FieldRef, Float64Type, Int32Type, Int64Type,
    TimestampMillisecondType,
};
use datafusion::common::{Result, ScalarValue, exec_err, plan_err};
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::utils::format_state_name;
use datafusion::logical_expr::{Accumulator, AggregateUDFImpl, EmitTo, GroupsAccumulator, Signature, Volatility};
use goodput_accounting::encoding::Collector;
use goodput_accounting::raw::{RawAllocation, RawCapacity, RawJob, RawProfile, RawRuntime};
use goodput_accounting::rows::PhaseName;
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

/// What an aggregate takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Takes {
    /// Rows of a table.
    Rows(Table),
    /// What was collected before.
    Collected,
}

/// An aggregate that collects.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct Collect {
    takes: Takes,
    name: String,
    signature: Signature,
}

impl Collect {
    /// The aggregate `collect_<table>`.
    pub fn new(table: Table) -> Collect {
        Collect::named(Takes::Rows(table), format!("collect_{}", table.name()))
    }

    /// The aggregate `merge_collected`.
    pub fn merging() -> Collect {
        Collect::named(Takes::Collected, "merge_collected".to_owned())
    }

    /// What it takes.
    pub(crate) fn takes(&self) -> Takes {
        self.takes
    }

    fn named(takes: Takes, name: String) -> Collect {
        Collect { takes, name, signature: Signature::user_defined(Volatility::Immutable) }
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
        let Takes::Rows(table) = self.takes else {
            return match given {
                [_] => Ok(vec![DataType::LargeBinary]),
                _ => plan_err!("`{}` takes what was collected, and nothing else", self.name),
            };
        };
        let columns = collected_columns(table);
        let fixed = 2 + columns.len();
        let fits = if table == Table::Jobs { given.len() >= fixed } else { given.len() == fixed };
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
        Ok(Box::new(CollectAll { takes: self.takes, rows: Collector::default() }))
    }

    fn groups_accumulator_supported(&self, _: AccumulatorArgs<'_>) -> bool {
        true
    }

    fn create_groups_accumulator(&self, _: AccumulatorArgs<'_>) -> Result<Box<dyn GroupsAccumulator>> {
        let (collected, groups) = (VecDeque::new(), Vec::new());
        Ok(Box::new(CollectGroups { takes: self.takes, collected, forgotten: 0, groups, bytes: 0 }))
    }
}

/// The rows of each group.
#[derive(Debug)]
struct CollectGroups {
    takes: Takes,
    /// What was collected before, as it came; which of it belongs to a group, the group says. Copied once, at the end.
    collected: VecDeque<LargeBinaryArray>,
    /// How many arrays came before those: they were let go of.
    forgotten: u32,
    groups: Vec<Group>,
    /// Bytes set aside.
    bytes: usize,
}

#[derive(Debug, Default)]
struct Group {
    rows: Collector,
    /// Places in what was collected before: which array of all that came, which row of it.
    places: Vec<(u32, u32)>,
}

impl Group {
    fn capacity_bytes(&self) -> usize {
        self.rows.capacity_bytes() + self.places.capacity() * size_of::<(u32, u32)>()
    }
}

impl CollectGroups {
    fn extend_to(&mut self, groups: usize) {
        if self.groups.len() < groups {
            self.groups.resize_with(groups, Group::default);
        }
    }

    /// Appends rows of a table to their groups.
    fn collect(&mut self, rows: &Rows<'_>, group_indices: &[usize], filter: Option<&BooleanArray>) {
        for (row, group) in group_indices.iter().enumerate() {
            if filter.is_some_and(|filter| !filter.is_valid(row) || !filter.value(row)) {
                continue;
            }
            let group = &mut self.groups[*group].rows;
            let before = group.capacity_bytes();
            rows.append(row, group);
            self.bytes += group.capacity_bytes() - before;
        }
    }

    /// Notes to which groups belongs what was collected before.
    fn merge(&mut self, collected: &LargeBinaryArray, group_indices: &[usize], filter: Option<&BooleanArray>) {
        let array = self.forgotten.saturating_add(u32::try_from(self.collected.len()).unwrap_or(u32::MAX));
        for (row, group) in (0_u32..).zip(group_indices) {
            let at = row as usize;
            if collected.is_null(at) || filter.is_some_and(|filter| !filter.is_valid(at) || !filter.value(at)) {
                continue;
            }
            let places = &mut self.groups[*group].places;
            let before = places.capacity();
            places.push((array, row));
            self.bytes += (places.capacity() - before) * size_of::<(u32, u32)>();
        }
        self.bytes += held_bytes(collected);
        self.collected.push_back(collected.clone());
    }

    fn emit(&mut self, emit_to: EmitTo) -> LargeBinaryArray {
        let groups = emit_to.take_needed(&mut self.groups);
        let value = |(array, row): &(u32, u32)| self.collected[(array - self.forgotten) as usize].value(*row as usize);
        let of_group = |group: &Group| group.rows.len() + group.places.iter().map(|at| value(at).len()).sum::<usize>();
        let bytes = groups.iter().map(of_group).sum();
        let mut values: Vec<u8> = Vec::with_capacity(bytes);
        let mut lengths = Vec::with_capacity(groups.len());
        let mut freed = 0;
        for mut group in groups {
            freed += group.capacity_bytes();
            let begin = values.len();
            values.extend_from_slice(&group.rows.take());
            group.places.iter().for_each(|at| values.extend_from_slice(value(at)));
            lengths.push(values.len() - begin);
        }
        // Where groups come in order, what is still needed came last.
        let needed = self.groups.iter().flat_map(|group| &group.places).map(|(array, _)| *array).min();
        while self.collected.front().is_some() && needed.is_none_or(|needed| self.forgotten < needed) {
            freed += self.collected.pop_front().map_or(0, |array| held_bytes(&array));
            self.forgotten += 1;
        }
        self.bytes = self.bytes.saturating_sub(freed);
        LargeBinaryArray::new(OffsetBuffer::from_lengths(lengths), values.into(), None)
    }
}

/// The bytes of the values of an array, which may be a part of a larger one.
fn held_bytes(array: &LargeBinaryArray) -> usize {
    let (first, last) = (array.value_offsets().first(), array.value_offsets().last());
    let bytes = last.zip(first).map_or(0, |(last, first)| last - first);
    usize::try_from(bytes).unwrap_or(0) + array.len() * size_of::<i64>()
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
        match Rows::new(self.takes, values)? {
            Rows::Collected(collected) => self.merge(collected, group_indices, filter),
            rows => self.collect(&rows, group_indices, filter),
        }
        Ok(())
    }

    fn merge_batch(&mut self, values: &[ArrayRef], group_indices: &[usize], total_num_groups: usize) -> Result<()> {
        self.extend_to(total_num_groups);
        self.merge(binary(&values[0])?, group_indices, None);
        Ok(())
    }

    fn evaluate(&mut self, emit_to: EmitTo) -> Result<ArrayRef> {
        Ok(Arc::new(self.emit(emit_to)))
    }

    fn state(&mut self, emit_to: EmitTo) -> Result<Vec<ArrayRef>> {
        Ok(vec![Arc::new(self.emit(emit_to))])
    }

    fn convert_to_state(&self, values: &[ArrayRef], filter: Option<&BooleanArray>) -> Result<Vec<ArrayRef>> {
        let rows = Rows::new(self.takes, values)?;
        let mut array = LargeBinaryBuilder::new();
        let mut collector = Collector::default();
        for row in 0..values[0].len() {
            if filter.is_none_or(|filter| filter.is_valid(row) && filter.value(row)) {
                rows.append(row, &mut collector);
            }
            array.append_value(collector.take());
        }
        Ok(vec![Arc::new(array.finish())])
    }

    fn size(&self) -> usize {
        self.bytes + self.groups.capacity() * size_of::<Group>()
    }
}

/// All rows as one group.
#[derive(Debug)]
struct CollectAll {
    takes: Takes,
    rows: Collector,
}

impl Accumulator for CollectAll {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let rows = Rows::new(self.takes, values)?;
        (0..values[0].len()).for_each(|row| rows.append(row, &mut self.rows));
        Ok(())
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        let rows = Rows::new(Takes::Collected, states)?;
        (0..states[0].len()).for_each(|row| rows.append(row, &mut self.rows));
        Ok(())
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        let collected = self.rows.take();
        // A window asks again for what it was given before.
        self.rows.append(&collected);
        Ok(ScalarValue::LargeBinary(Some(collected)))
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        Ok(vec![ScalarValue::LargeBinary(Some(self.rows.take()))])
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.rows.capacity_bytes()
    }
}

fn binary(array: &ArrayRef) -> Result<&LargeBinaryArray> {
    match array.as_binary_opt::<i64>() {
        Some(array) => Ok(array),
        None => exec_err!("collected rows are {}, not LargeBinary", array.data_type()),
    }
}

/// The arguments of a batch.
pub(crate) enum Rows<'a> {
    /// Rows of `runtime`, of which there are by far the most.
    Runtime(RuntimeRows<'a>),
    /// Rows of another table.
    Of(Table, Dates<'a>, Vec<ColumnOf<'a>>),
    /// What was collected before.
    Collected(&'a LargeBinaryArray),
}

/// When rows were recorded, and what their clocks are allowed.
pub(crate) struct Dates<'a> {
    dates: &'a PrimitiveArray<Date32Type>,
    tolerances: &'a Int64Array,
}

impl Dates<'_> {
    /// A row without a date belongs to no partition and to no day.
    #[inline]
    fn of(&self, row: usize) -> Option<(Day, i64)> {
        let tolerance = if self.tolerances.is_valid(row) { self.tolerances.value(row) } else { 0 };
        self.dates.is_valid(row).then(|| (Day(self.dates.value(row)), tolerance))
    }
}

pub(crate) struct RuntimeRows<'a> {
    dates: Dates<'a>,
    job_ids: Texts<'a>,
    attempts: &'a Int64Array,
    phases: Phases<'a>,
    starts: &'a PrimitiveArray<TimestampMillisecondType>,
    ends: &'a PrimitiveArray<TimestampMillisecondType>,
    first_steps: &'a Int64Array,
    last_steps: &'a Int64Array,
}

pub(crate) enum ColumnOf<'a> {
    Text(Texts<'a>),
    Int(&'a Int64Array),
    Float(&'a Float64Array),
    Instant(&'a PrimitiveArray<TimestampMillisecondType>),
}

fn numbers<T: ArrowPrimitiveType>(array: &ArrayRef) -> Result<&PrimitiveArray<T>> {
    match array.as_primitive_opt::<T>() {
        Some(array) => Ok(array),
        None => exec_err!("an argument is {}, not {}", array.data_type(), T::DATA_TYPE),
    }
}

/// Texts, as the engine or as files hold them.
#[derive(Clone, Copy)]
pub(crate) enum Texts<'a> {
    Views(&'a StringViewArray),
    Dictionary(&'a Int32Array, &'a StringArray),
}

impl<'a> Texts<'a> {
    #[inline]
    fn is_there(self, row: usize) -> bool {
        match self {
            Texts::Views(array) => array.is_valid(row),
            Texts::Dictionary(keys, values) if keys.is_valid(row) => {
                values.null_count() == 0 || usize::try_from(keys.value(row)).is_ok_and(|key| values.is_valid(key))
            }
            Texts::Dictionary(..) => false,
        }
    }

    #[inline]
    fn get(self, row: usize) -> Option<&'a str> {
        match self {
            Texts::Views(array) => array.is_valid(row).then(|| array.value(row)),
            Texts::Dictionary(keys, values) => {
                let key = if keys.is_valid(row) { usize::try_from(keys.value(row)).ok()? } else { return None };
                values.is_valid(key).then(|| values.value(key))
            }
        }
    }
}

/// Phases by their names, each name of a dictionary looked up once.
enum Phases<'a> {
    Texts(Texts<'a>),
    Dictionary(&'a Int32Array, Vec<Option<PhaseName<'a>>>),
}

impl<'a> Phases<'a> {
    fn of(texts: Texts<'a>) -> Phases<'a> {
        match texts {
            // A dictionary that is larger than the rows of a batch is that of a column of many names.
            Texts::Dictionary(keys, names) if names.len() <= keys.len() => {
                Phases::Dictionary(keys, names.iter().map(|name| name.map(PhaseName::of)).collect())
            }
            texts => Phases::Texts(texts),
        }
    }

    #[inline]
    fn get(&self, row: usize) -> Option<PhaseName<'a>> {
        match self {
            Phases::Texts(texts) => texts.get(row).map(PhaseName::of),
            Phases::Dictionary(keys, names) => {
                let key = if keys.is_valid(row) { usize::try_from(keys.value(row)).ok()? } else { return None };
                names.get(key).copied().flatten()
            }
        }
    }
}

fn texts(array: &ArrayRef) -> Result<Texts<'_>> {
    if let Some(array) = array.as_string_view_opt() {
        return Ok(Texts::Views(array));
    }
    let dictionary = array.as_dictionary_opt::<Int32Type>();
    match dictionary.and_then(|array| Some((array.keys(), array.values().as_string_opt::<i32>()?))) {
        Some((keys, values)) => Ok(Texts::Dictionary(keys, values)),
        None => exec_err!("an argument is {}, not a text", array.data_type()),
    }
}

#[inline]
fn number<T: ArrowPrimitiveType>(array: &PrimitiveArray<T>, row: usize) -> Option<T::Native> {
    array.is_valid(row).then(|| array.value(row))
}

impl<'a> Rows<'a> {
    pub(crate) fn new(takes: Takes, values: &'a [ArrayRef]) -> Result<Rows<'a>> {
        let table = match (takes, values) {
            (Takes::Rows(table), _) => table,
            (Takes::Collected, [collected]) => return Ok(Rows::Collected(binary(collected)?)),
            (Takes::Collected, _) => return exec_err!("collected rows are one argument"),
        };
        if values.len() < 2 + collected_columns(table).len() {
            return exec_err!("{} arguments are too few for a row of `{}`", values.len(), table.name());
        }
        let (dates, columns) = values.split_at(2);
        let dates = Dates { dates: numbers(&dates[0])?, tolerances: numbers(&dates[1])? };
        if table == Table::Runtime {
            return Ok(Rows::Runtime(RuntimeRows {
                dates,
                job_ids: texts(&columns[0])?,
                attempts: numbers(&columns[1])?,
                phases: Phases::of(texts(&columns[2])?),
                starts: numbers(&columns[3])?,
                ends: numbers(&columns[4])?,
                first_steps: numbers(&columns[5])?,
                last_steps: numbers(&columns[6])?,
            }));
        }
        let column = |array: &'a ArrayRef| {
            Ok(match array.data_type() {
                DataType::Int64 => ColumnOf::Int(numbers::<Int64Type>(array)?),
                DataType::Float64 => ColumnOf::Float(numbers::<Float64Type>(array)?),
                DataType::Timestamp(..) => ColumnOf::Instant(numbers(array)?),
                _ => ColumnOf::Text(texts(array)?),
            })
        };
        Ok(Rows::Of(table, dates, columns.iter().map(column).collect::<Result<_>>()?))
    }

    /// Appends a row to its group.
    #[inline]
    pub(crate) fn append(&self, row: usize, group: &mut Collector) {
        match self {
            Rows::Runtime(rows) => rows.append(row, group),
            Rows::Collected(collected) if collected.is_valid(row) => group.append(collected.value(row)),
            Rows::Collected(_) => {}
            Rows::Of(table, dates, columns) => {
                if let Some((date, tolerance)) = dates.of(row) {
                    append(*table, columns, row, date, tolerance, group);
                }
            }
        }
    }
}

impl RuntimeRows<'_> {
    #[inline]
    fn append(&self, row: usize, group: &mut Collector) {
        let Some((date, tolerance)) = self.dates.of(row) else { return };
        let raw = RawRuntime {
            has_job_id: self.job_ids.is_there(row),
            attempt: number(self.attempts, row),
            phase: self.phases.get(row),
            start: number(self.starts, row),
            end: number(self.ends, row),
            first_step: number(self.first_steps, row),
            last_step: number(self.last_steps, row),
        };
        group.runtime(date, &raw, tolerance);
    }
}

impl<'a> ColumnOf<'a> {
    fn text(&self, row: usize) -> Option<&'a str> {
        match self {
            ColumnOf::Text(texts) => texts.get(row),
            _ => None,
        }
    }

    fn int(&self, row: usize) -> Option<i64> {
        match self {
            ColumnOf::Int(array) => number(array, row),
            ColumnOf::Instant(array) => number(array, row),
            _ => None,
        }
    }

    fn float(&self, row: usize) -> Option<f64> {
        match self {
            ColumnOf::Float(array) => number(array, row),
            _ => None,
        }
    }
}

/// Appends a row of any table but `runtime`, whose columns are as [`collected_columns`] says.
fn append(table: Table, columns: &[ColumnOf<'_>], row: usize, date: Day, tolerance: i64, group: &mut Collector) {
    let (text, int, float) =
        (|at: usize| columns[at].text(row), |at: usize| columns[at].int(row), |at: usize| columns[at].float(row));
    match table {
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
            group.capacity(date, &raw, tolerance);
        }
        Table::Jobs => {
            let raw = RawJob {
                job_id: text(0),
                submit: int(1),
                end: int(2),
                end_state: text(3),
                chips_required: int(4),
                accelerator: text(5),
                axes: columns[6..].iter().map(|column| column.text(row)).collect(),
            };
            group.job(date, &raw, tolerance);
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
            group.allocation(date, &raw, tolerance);
        }
        Table::Runtime => {}
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
            group.profile(date, &raw, tolerance);
        }
    }
}
