//! Audits: queries that must return no row, run before anything is published.

use std::collections::BTreeSet;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, Date32Array, Int64Array, StringArray};
use arrow::datatypes::{DataType, Date32Type, Field, Schema, SchemaRef};
use arrow::json::LineDelimitedWriter;
use arrow::record_batch::RecordBatch;
use goodput_engine::sql::Parameters;
use goodput_engine::write::plain_sorted;
use goodput_engine::{EngineError, Session};
use goodput_model::{Day, Grain, METRIC_VERSION};
use goodput_store::{Location, PublishedTable};

use crate::PipelineError;
use crate::config::Severity;
use crate::plan::{Audit, Plan, Publish};

/// The table that keeps the rows that audits returned.
pub const TABLE: &str = "audit_findings";

/// A row that an audit returned.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct AuditFinding {
    /// The day that offends; `None` if the audit could not say.
    pub date: Option<Day>,
    /// The audit.
    pub audit: String,
    /// The row, as JSON.
    pub detail: String,
    /// What it leads to.
    pub is_blocking: bool,
}

/// Runs the audits of a plan over the tables of a session; findings about other days than those of the chunk are not its
/// concern.
pub(crate) async fn run_audits(
    session: &Session,
    plan: &Plan,
    parameters: &Parameters,
    days: &BTreeSet<Day>,
) -> Result<Vec<AuditFinding>, PipelineError> {
    let mut findings = Vec::new();
    for audit in plan.steps.iter().flat_map(|step| &step.audits) {
        let statement = session.plan(&audit.sql, parameters, &plan.lists).await?;
        let schema = Arc::new(statement.schema().as_arrow().clone());
        let batches = session.collect(&format!("audit `{}`", audit.name), statement).await?;
        let batch = plain_sorted(&schema, &batches, &[])
            .map_err(|source| PipelineError::Write { table: audit.name.clone(), source })?;
        findings.extend(findings_of(audit, &batch)?);
    }
    findings.retain(|finding| finding.date.is_none_or(|date| days.contains(&date)));
    findings.sort();
    Ok(findings)
}

fn findings_of(audit: &Audit, batch: &RecordBatch) -> Result<Vec<AuditFinding>, PipelineError> {
    let mut details = LineDelimitedWriter::new(Vec::new());
    details.write(batch).and_then(|()| details.finish()).map_err(EngineError::from)?;
    let details = String::from_utf8(details.into_inner()).map_err(|error| PipelineError::Fault(error.to_string()))?;
    let dates = batch.column_by_name("date").and_then(|dates| dates.as_primitive_opt::<Date32Type>());
    let date_of = |row: usize| {
        let dates: &Date32Array = dates?;
        (dates.is_valid(row)).then(|| Day(dates.value(row)))
    };
    let finding = |(row, detail): (usize, &str)| AuditFinding {
        date: date_of(row),
        audit: audit.name.clone(),
        detail: detail.to_owned(),
        is_blocking: audit.severity == Severity::Blocking,
    };
    Ok(details.lines().enumerate().map(finding).collect())
}

/// Where the findings are kept.
pub(crate) fn published_findings(warehouse: &Location) -> Publish {
    Publish {
        table: PublishedTable::new(warehouse, TABLE, Grain::Month),
        sort_by: ["date", "audit", "detail"].map(str::to_owned).to_vec(),
        schema: schema(),
    }
}

/// The columns of the table that keeps findings.
fn schema() -> SchemaRef {
    Arc::new(Schema::new(vec![
        Field::new("date", DataType::Date32, true),
        Field::new("audit", DataType::Utf8, true),
        Field::new("severity", DataType::Utf8, true),
        Field::new("detail", DataType::Utf8, true),
        Field::new("metric_version", DataType::Int64, true),
        Field::new("run_id", DataType::Utf8, true),
        Field::new("is_provisional", DataType::Boolean, true),
    ]))
}

/// The findings as rows of that table.
pub(crate) fn findings_batch(
    findings: &[AuditFinding],
    run_id: &str,
    settled_through: Day,
) -> Result<RecordBatch, PipelineError> {
    let severity = |finding: &AuditFinding| {
        if finding.is_blocking { Severity::Blocking.name() } else { Severity::Warning.name() }
    };
    let columns: Vec<ArrayRef> = vec![
        Arc::new(findings.iter().map(|finding| finding.date.map(|date| date.0)).collect::<Date32Array>()),
        Arc::new(StringArray::from_iter_values(findings.iter().map(|finding| &finding.audit))),
        Arc::new(StringArray::from_iter_values(findings.iter().map(severity))),
        Arc::new(StringArray::from_iter_values(findings.iter().map(|finding| &finding.detail))),
        Arc::new(Int64Array::from_iter_values(findings.iter().map(|_| METRIC_VERSION))),
        Arc::new(StringArray::from_iter_values(findings.iter().map(|_| run_id))),
        Arc::new(
            findings.iter().map(|finding| finding.date.map(|date| date > settled_through)).collect::<BooleanArray>(),
        ),
    ];
    Ok(RecordBatch::try_new(schema(), columns).map_err(EngineError::from)?)
}
