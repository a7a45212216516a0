//! CSV files and whole documents as tables, for adapters of other sources.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::{ArrayRef, StringArray};
use arrow::datatypes::{DataType, Field, Schema};
use arrow::record_batch::RecordBatch;
use goodput_model::Kind;
use goodput_store::Location;

use crate::session::INPUT;
use crate::{EngineError, Session};

/// How a CSV file is read.
#[derive(Debug, Clone)]
pub struct CsvOptions {
    /// The character between fields.
    pub delimiter: u8,
    /// Columns whose values are not texts; an instant has a time with a zone, or is UTC.
    pub types: BTreeMap<String, Kind>,
}

/// Registers a CSV file with a header line as the table `input.<name>`. The header gives the columns; a value that is not
/// of its declared type is an error that names the line.
pub async fn register_csv(
    session: &Session,
    name: &str,
    location: &Location,
    options: &CsvOptions,
) -> Result<(), EngineError> {
    let wrong = |problem: String, hint: &str| EngineError::File {
        file: location.to_string(),
        problem,
        hint: Some(hint.to_owned()),
    };
    let bytes = read(location).await?;
    let format = || arrow::csv::reader::Format::default().with_header(true).with_delimiter(options.delimiter);
    let (inferred, _) = format()
        .infer_schema(&bytes[..], Some(0))
        .map_err(|error| wrong(error.to_string(), "a CSV file begins with a line of column names"))?;
    let columns: Vec<Field> = inferred
        .fields()
        .iter()
        .map(|field| {
            let kind = options.types.get(field.name()).copied().unwrap_or(Kind::String);
            Field::new(field.name(), csv_type(kind), true)
        })
        .collect();
    for declared in options.types.keys() {
        if !columns.iter().any(|column| column.name() == declared) {
            return Err(wrong(format!("there is no column `{declared}`"), "correct `types` of this source"));
        }
    }
    let schema = Arc::new(Schema::new(columns));
    let reader = arrow::csv::ReaderBuilder::new(Arc::clone(&schema)).with_format(format()).build(&bytes[..]);
    let batches: Result<Vec<RecordBatch>, _> = reader.and_then(Iterator::collect);
    let batches = batches.map_err(|error| {
        wrong(said_by_lines(&error.to_string()), "correct the row, or the type that `types` gives the column")
    })?;
    session.register_batches(INPUT, name, schema, batches)
}

/// Registers a whole file as the table `input.<name>` with one row: `path`, `content`.
pub async fn register_document(session: &Session, name: &str, location: &Location) -> Result<(), EngineError> {
    let bytes = read(location).await?;
    let content = std::str::from_utf8(&bytes).map_err(|error| EngineError::File {
        file: location.to_string(),
        problem: format!("it is not UTF-8 from byte {}", error.valid_up_to()),
        hint: None,
    })?;
    let schema = document_schema();
    let columns: Vec<ArrayRef> =
        vec![Arc::new(StringArray::from(vec![location.to_string()])), Arc::new(StringArray::from(vec![content]))];
    let batch = RecordBatch::try_new(Arc::clone(&schema), columns).map_err(|error| EngineError::Setup(error.into()))?;
    session.register_batches(INPUT, name, schema, vec![batch])
}

/// The columns of a document.
pub fn document_schema() -> Arc<Schema> {
    Arc::new(Schema::new(vec![Field::new("path", DataType::Utf8, false), Field::new("content", DataType::Utf8, false)]))
}

/// Of a value that it cannot parse, the reader counts the line from the first behind the column names; of everything
/// else, from the first of the file. Here all count from the first of the file.
fn said_by_lines(problem: &str) -> String {
    let counted = problem.contains("Error while parsing value");
    let Some((before, after)) = problem.split_once("at line ").filter(|_| counted) else { return problem.to_owned() };
    let digits = after.find(|character: char| !character.is_ascii_digit()).unwrap_or(after.len());
    let (number, rest) = after.split_at(digits);
    match number.parse::<u64>() {
        Ok(number) => format!("{before}at line {}{rest}", number + 1),
        Err(_) => problem.to_owned(),
    }
}

fn csv_type(kind: Kind) -> DataType {
    match kind {
        Kind::String => DataType::Utf8,
        Kind::Timestamp => crate::schema::data_type(Kind::Timestamp),
        Kind::Int => DataType::Int64,
        Kind::Float => DataType::Float64,
    }
}

async fn read(location: &Location) -> Result<bytes::Bytes, EngineError> {
    location.read(location.root()).await?.ok_or_else(|| EngineError::File {
        file: location.to_string(),
        problem: "there is no such file".to_owned(),
        hint: Some("set the variable that names it: `--set NAME=VALUE`".to_owned()),
    })
}
