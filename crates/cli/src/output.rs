//! What is written to stdout or to a file.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

use anyhow::Context;
use arrow::csv::WriterBuilder;
use arrow::datatypes::SchemaRef;
use arrow::json::{ArrayWriter, LineDelimitedWriter};
use arrow::record_batch::RecordBatch;
use arrow::util::display::{ArrayFormatter, FormatOptions};
use arrow::util::pretty::pretty_format_batches_with_options;
use futures::{Stream, StreamExt};
use parquet::arrow::ArrowWriter;

use crate::args::Format;

/// Prints a text to stdout.
pub(crate) fn print(text: &str) -> anyhow::Result<()> {
    let mut stdout = std::io::stdout().lock();
    stdout.write_all(text.as_bytes())?;
    Ok(stdout.flush()?)
}

/// Whether whoever read our output has gone.
pub(crate) fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| {
        let io = cause.downcast_ref::<std::io::Error>();
        let is_pipe = io.is_some_and(|error| error.kind() == std::io::ErrorKind::BrokenPipe);
        // Arrow's writers keep the text of the error alone.
        is_pipe || cause.to_string().contains("Broken pipe")
    })
}

/// Writes rows as they come, to stdout or to a file.
pub(crate) async fn write_rows<E: std::error::Error + Send + Sync + 'static>(
    rows: impl Stream<Item = Result<RecordBatch, E>> + HasSchema,
    format: Format,
    file: Option<&Path>,
) -> anyhow::Result<()> {
    let schema = rows.schema();
    let mut rows = std::pin::pin!(rows);
    let mut out: Box<dyn Write + Send> = match file {
        Some(file) => {
            let created = File::create(file).with_context(|| format!("{} cannot be written", file.display()))?;
            Box::new(BufWriter::new(created))
        }
        None => Box::new(BufWriter::new(std::io::stdout())),
    };
    match format {
        Format::Table | Format::Markdown => {
            let mut batches = Vec::new();
            while let Some(batch) = rows.next().await {
                batches.push(batch?);
            }
            if format == Format::Table {
                if batches.is_empty() {
                    batches.push(RecordBatch::new_empty(schema));
                }
                writeln!(out, "{}", pretty_format_batches_with_options(&batches, &shown())?)?;
            } else {
                write_markdown(&mut out, &schema, &batches)?;
            }
        }
        Format::Csv | Format::Tsv => {
            let delimiter = if format == Format::Csv { b',' } else { b'\t' };
            let mut writer = WriterBuilder::new().with_header(true).with_delimiter(delimiter).build(&mut out);
            let mut is_empty = true;
            while let Some(batch) = rows.next().await {
                writer.write(&batch?)?;
                is_empty = false;
            }
            if is_empty {
                writer.write(&RecordBatch::new_empty(schema))?;
            }
        }
        Format::Json => {
            let mut writer = arrow::json::WriterBuilder::new()
                .with_explicit_nulls(true)
                .build::<_, arrow::json::writer::JsonArray>(&mut out);
            while let Some(batch) = rows.next().await {
                writer.write(&batch?)?;
            }
            finish_array(&mut writer)?;
            drop(writer);
            writeln!(out)?;
        }
        Format::Ndjson => {
            let mut writer = arrow::json::WriterBuilder::new()
                .with_explicit_nulls(true)
                .build::<_, arrow::json::writer::LineDelimited>(&mut out);
            while let Some(batch) = rows.next().await {
                writer.write(&batch?)?;
            }
            finish_lines(&mut writer)?;
        }
        Format::Parquet => {
            let mut writer = ArrowWriter::try_new(&mut out, schema, None)?;
            while let Some(batch) = rows.next().await {
                writer.write(&batch?)?;
            }
            writer.close()?;
        }
    }
    Ok(out.flush()?)
}

fn finish_array<W: Write>(writer: &mut ArrayWriter<W>) -> anyhow::Result<()> {
    Ok(writer.finish()?)
}

fn finish_lines<W: Write>(writer: &mut LineDelimitedWriter<W>) -> anyhow::Result<()> {
    Ok(writer.finish()?)
}

/// A stream that knows its columns.
pub(crate) trait HasSchema {
    /// The columns.
    fn schema(&self) -> SchemaRef;
}

impl HasSchema for goodput_engine::session::Rows {
    fn schema(&self) -> SchemaRef {
        self.as_ref().get_ref().schema()
    }
}

/// How values are shown to people.
fn shown() -> FormatOptions<'static> {
    FormatOptions::default().with_null("NULL").with_timestamp_tz_format(Some("%Y-%m-%dT%H:%M:%S%.3fZ"))
}

fn write_markdown(out: &mut dyn Write, schema: &SchemaRef, batches: &[RecordBatch]) -> anyhow::Result<()> {
    let escaped = |text: String| text.replace('\\', "\\\\").replace('|', "\\|").replace(['\n', '\r'], " ");
    let names: Vec<String> = schema.fields().iter().map(|field| escaped(field.name().clone())).collect();
    writeln!(out, "| {} |", names.join(" | "))?;
    let rule: Vec<&str> =
        schema.fields().iter().map(|field| if field.data_type().is_numeric() { "---:" } else { "---" }).collect();
    writeln!(out, "| {} |", rule.join(" | "))?;
    let options = shown();
    for batch in batches {
        let columns = batch.columns().iter().map(|column| ArrayFormatter::try_new(column.as_ref(), &options));
        let columns = columns.collect::<Result<Vec<_>, _>>()?;
        for row in 0..batch.num_rows() {
            let cells = columns.iter().map(|column| column.value(row).try_to_string().map(escaped));
            writeln!(out, "| {} |", cells.collect::<Result<Vec<_>, _>>()?.join(" | "))?;
        }
    }
    Ok(())
}
