//! Telemetry and published tables as one catalog, for queries.

use std::sync::Arc;

use goodput_engine::scan::{ParquetTable, ScanFile, date_scalar};
use goodput_engine::schema::{contract_schema, date_field};
use goodput_engine::session::{DERIVED, TELEMETRY};
use goodput_engine::{Session, SessionOptions};
use goodput_model::Table;
use goodput_store::list_telemetry;

use crate::PipelineError;
use crate::audit::{TABLE, published_findings};
use crate::plan::{Plan, Publish};
use crate::run::published_table;

/// A session that knows the telemetry (schema `telemetry`) and the published tables (schema `goodput`). A table that was
/// never published is there without rows.
pub async fn open_catalog(plan: &Plan, options: &SessionOptions) -> Result<Session, PipelineError> {
    let session = Session::new(options)?;
    if let Some(root) = &plan.telemetry {
        let listing = list_telemetry(root).await?;
        let store = session.store(root)?;
        for table in Table::ALL {
            let partitions = listing.table(table).partitions.iter();
            let files = partitions.flat_map(|(date, partition)| {
                partition.files.iter().map(|file| ScanFile { file: file.clone(), partition: date_scalar(Some(*date)) })
            });
            let extra = if table == Table::Jobs { plan.settings.extra_axes.as_slice() } else { &[] };
            let provider =
                ParquetTable::new(store.clone(), contract_schema(table, extra), date_field(), files.collect());
            session.register(TELEMETRY, table.name(), Arc::new(provider))?;
        }
    }
    for step in &plan.steps {
        if let Some(publish) = &step.publish {
            register(&session, &step.table, publish).await?;
        }
    }
    register(&session, TABLE, &published_findings(&plan.warehouse)).await?;
    Ok(session)
}

async fn register(session: &Session, name: &str, publish: &Publish) -> Result<(), PipelineError> {
    let partitions = publish.table.partitions().await?;
    let provider = published_table(session, &publish.table, &publish.schema, partitions)?;
    Ok(session.register(DERIVED, name, Arc::new(provider))?)
}
