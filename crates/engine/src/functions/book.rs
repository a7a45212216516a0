//! The sweep over the time line of a job, or of a block of chips, as functions.
//!
//! `book_job(job_id, collected, rules)` and `book_capacity(block, collected, rules)` take what the collecting aggregates
//! give, of all tables together, and answer with a struct of three lists: `days`, a row for each day and pool in
//! which anything is booked; `findings`, what was found about the rows; and `told`, the days that cannot be without a row. `rules` is the JSON text of
//! [`goodput_accounting::Rules`], a constant: it names the axes, which are columns of the result.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, Date32Builder, Int64Builder, ListArray, StringArray, StringBuilder, StructArray,
};
use arrow::buffer::OffsetBuffer;
use arrow::datatypes::{DataType, Field, FieldRef, Fields};
use datafusion::common::{DataFusionError, Result, ScalarValue, exec_err, plan_err};
use datafusion::logical_expr::{
    ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDFImpl, Signature, TypeSignature, Volatility,
};
use goodput_accounting::capacity::{CapacityBooks, book_capacity};
use goodput_accounting::job::{JobBooks, book_job};
use goodput_accounting::{AccountingError, Findings, Rules};
use goodput_model::contract::SIZE_CLASS;
use goodput_model::{Day, JOB_DAY_BUCKETS, Table};

/// `book_job`.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct BookJob {
    signature: Signature,
}

/// `book_capacity`.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct BookCapacity {
    signature: Signature,
}

/// Whose rows, what was collected of them, and the rules.
fn signature() -> Signature {
    let arguments = vec![DataType::Utf8, DataType::LargeBinary, DataType::Utf8];
    Signature::new(TypeSignature::Exact(arguments), Volatility::Immutable)
}

impl BookJob {
    /// The function.
    pub fn new() -> BookJob {
        BookJob { signature: signature() }
    }
}

impl Default for BookJob {
    fn default() -> BookJob {
        BookJob::new()
    }
}

impl BookCapacity {
    /// The function.
    pub fn new() -> BookCapacity {
        BookCapacity { signature: signature() }
    }
}

impl Default for BookCapacity {
    fn default() -> BookCapacity {
        BookCapacity::new()
    }
}

impl ScalarUDFImpl for BookJob {
    fn name(&self) -> &str {
        "book_job"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        plan_err!("the type of `book_job` depends on its rules")
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        let rules = constant_rules(args.scalar_arguments.get(2).copied().flatten())?;
        Ok(Arc::new(Field::new(self.name(), books_type(job_day_fields(&rules)), false)))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let (books, rules) = book_each(&args, book_job)?;
        Ok(ColumnarValue::Array(Arc::new(job_books_array(&books, &rules)?)))
    }
}

impl ScalarUDFImpl for BookCapacity {
    fn name(&self) -> &str {
        "book_capacity"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(books_type(capacity_day_fields()))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let (books, _) = book_each(&args, book_capacity)?;
        Ok(ColumnarValue::Array(Arc::new(capacity_books_array(&books)?)))
    }
}

/// Books the rows of each row's job or block.
fn book_each<B>(
    args: &ScalarFunctionArgs,
    book: impl Fn(&str, &[u8], &Rules) -> std::result::Result<B, AccountingError>,
) -> Result<(Vec<B>, Rules)> {
    let rules = scalar_rules(&args.args[2])?;
    let arrays = ColumnarValue::values_to_arrays(&args.args[..2])?;
    let (names, collected) = (arrays[0].as_string::<i32>(), arrays[1].as_binary::<i64>());
    let book_one = |row: usize| {
        let rows = if collected.is_valid(row) { collected.value(row) } else { &[] };
        book(text_of(names, row), rows, &rules).map_err(|error| DataFusionError::External(Box::new(error)))
    };
    let books = (0..args.number_rows).map(book_one).collect::<Result<Vec<_>>>()?;
    Ok((books, rules))
}

fn text_of(texts: &StringArray, row: usize) -> &str {
    if texts.is_valid(row) { texts.value(row) } else { "" }
}

/// The rules of a call, which are a constant.
fn constant_rules(argument: Option<&ScalarValue>) -> Result<Rules> {
    let Some(text) = argument.and_then(|value| value.try_as_str().flatten()) else {
        return plan_err!("the rules of the accounting must be a constant text");
    };
    serde_json::from_str(text).map_err(|error| DataFusionError::Plan(format!("the rules cannot be read: {error}")))
}

fn scalar_rules(argument: &ColumnarValue) -> Result<Rules> {
    match argument {
        ColumnarValue::Scalar(value) => constant_rules(Some(value)),
        ColumnarValue::Array(_) => exec_err!("the rules of the accounting must be a constant text"),
    }
}

/// The columns of a job's day: date, pool, quantities, attributes, axes.
fn job_day_fields(rules: &Rules) -> Fields {
    let quantities = JOB_DAY_BUCKETS.iter().map(|bucket| Field::new(bucket.column(), DataType::Int64, false));
    let axes = rules.job_axes.iter().map(|axis| Field::new(axis, DataType::Utf8, false));
    [
        Field::new("date", DataType::Date32, false),
        Field::new("cell", DataType::Utf8, true),
        Field::new("accelerator", DataType::Utf8, true),
    ]
    .into_iter()
    .chain(quantities)
    .chain([Field::new("chips_required", DataType::Int64, false), Field::new(SIZE_CLASS, DataType::Utf8, false)])
    .chain(axes)
    .collect()
}

fn capacity_day_fields() -> Fields {
    Fields::from(vec![
        Field::new("date", DataType::Date32, false),
        Field::new("capacity_chip_ms", DataType::Int64, false),
        Field::new("down_chip_ms", DataType::Int64, false),
    ])
}

fn finding_fields() -> Fields {
    Fields::from(vec![
        Field::new("date", DataType::Date32, false),
        Field::new("source_table", DataType::Utf8, false),
        Field::new("reason", DataType::Utf8, false),
        Field::new("rows", DataType::Int64, false),
    ])
}

fn list_of(fields: Fields) -> DataType {
    DataType::List(Arc::new(Field::new_list_field(DataType::Struct(fields), false)))
}

fn books_fields(days: Fields) -> Fields {
    Fields::from(vec![
        Field::new("days", list_of(days), false),
        Field::new("findings", list_of(finding_fields()), false),
        Field::new("told", DataType::new_list(DataType::Date32, false), false),
    ])
}

fn books_type(days: Fields) -> DataType {
    DataType::Struct(books_fields(days))
}

fn dates(days: impl Iterator<Item = Day>) -> ArrayRef {
    let mut dates = Date32Builder::new();
    days.for_each(|day| dates.append_value(day.0));
    Arc::new(dates.finish())
}

fn ints(values: impl Iterator<Item = i64>) -> ArrayRef {
    let mut ints = Int64Builder::new();
    values.for_each(|value| ints.append_value(value));
    Arc::new(ints.finish())
}

fn texts<'a>(values: impl Iterator<Item = Option<&'a str>>) -> ArrayRef {
    let mut texts = StringBuilder::new();
    values.for_each(|value| texts.append_option(value));
    Arc::new(texts.finish())
}

/// Lists of the given lengths over rows of the given columns.
fn lists(fields: Fields, columns: Vec<ArrayRef>, lengths: impl Iterator<Item = usize>) -> Result<ArrayRef> {
    let rows = StructArray::try_new(fields.clone(), columns, None)?;
    let item = Arc::new(Field::new_list_field(DataType::Struct(fields), false));
    Ok(Arc::new(ListArray::try_new(item, OffsetBuffer::from_lengths(lengths), Arc::new(rows), None)?))
}

fn findings_lists<'a>(findings: impl Iterator<Item = &'a Findings> + Clone) -> Result<ArrayRef> {
    let all: Vec<_> = findings.clone().flat_map(Findings::iter).collect();
    let columns = vec![
        dates(all.iter().map(|(day, ..)| *day)),
        texts(all.iter().map(|(_, table, ..)| Some(Table::name(*table)))),
        texts(all.iter().map(|(_, _, reason, _)| Some(reason.name()))),
        ints(all.iter().map(|(.., rows)| *rows)),
    ];
    lists(finding_fields(), columns, findings.map(|findings| findings.iter().count()))
}

fn told_lists<'a>(told: impl Iterator<Item = &'a Vec<Day>> + Clone) -> Result<ArrayRef> {
    let item = Arc::new(Field::new_list_field(DataType::Date32, false));
    let lengths = OffsetBuffer::from_lengths(told.clone().map(Vec::len));
    Ok(Arc::new(ListArray::try_new(item, lengths, dates(told.flatten().copied()), None)?))
}

fn job_books_array(books: &[JobBooks], rules: &Rules) -> Result<StructArray> {
    let fields = job_day_fields(rules);
    let days = || books.iter().flat_map(|books| &books.days);
    let mut columns = vec![
        dates(days().map(|day| day.day)),
        texts(days().map(|day| day.cell.as_deref())),
        texts(days().map(|day| day.accelerator.as_deref())),
    ];
    for bucket in JOB_DAY_BUCKETS {
        columns.push(ints(days().map(|day| day.chip_ms[bucket.index()])));
    }
    columns.push(ints(days().map(|day| day.attributes.chips_required)));
    columns.push(texts(days().map(|day| Some(&*day.attributes.size_class))));
    for axis in 0..rules.job_axes.len() {
        columns.push(texts(days().map(|day| day.attributes.axes.get(axis).map(|axis| &**axis))));
    }
    let days = lists(fields.clone(), columns, books.iter().map(|books| books.days.len()))?;
    let findings = findings_lists(books.iter().map(|books| &books.findings))?;
    let told = told_lists(books.iter().map(|books| &books.told))?;
    Ok(StructArray::try_new(books_fields(fields), vec![days, findings, told], None)?)
}

fn capacity_books_array(books: &[CapacityBooks]) -> Result<StructArray> {
    let fields = capacity_day_fields();
    let days = || books.iter().flat_map(|books| &books.days);
    let columns = vec![
        dates(days().map(|day| day.day)),
        ints(days().map(|day| day.capacity_chip_ms)),
        ints(days().map(|day| day.down_chip_ms)),
    ];
    let days = lists(fields.clone(), columns, books.iter().map(|books| books.days.len()))?;
    let findings = findings_lists(books.iter().map(|books| &books.findings))?;
    let told = told_lists(books.iter().map(|books| &books.told))?;
    Ok(StructArray::try_new(books_fields(fields), vec![days, findings, told], None)?)
}
