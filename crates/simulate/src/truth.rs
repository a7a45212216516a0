//! The columns of the truth: those of the published tables, in their partitions, without what a run adds. So whatever reads
//! the published tables can read the truth.

use std::sync::Arc;

use arrow::array::Date32Array;
use goodput_model::contract::{JOB_AXES, SIZE_CLASS, UNKNOWN};
use goodput_model::{Bucket, Day, JOB_DAY_BUCKETS};

use crate::columns::{NamedColumn, ints, texts};
use crate::ledger::{DayBooks, Quantities};
use crate::rows::{JobFacts, Place};

/// A row of `job_day`.
struct JobDayRow<'a> {
    job: &'a JobFacts,
    cell: Option<&'static str>,
    accelerator: Option<&'static str>,
    quantities: Quantities,
}

/// The rows of `job_day`, in the order of the published ones.
pub(crate) fn job_day(books: &DayBooks, places: &[Place]) -> Vec<NamedColumn> {
    let mut rows = Vec::new();
    for day in &books.jobs {
        let job = day.job.as_ref();
        if day.queued != 0 {
            let mut quantities = [0; JOB_DAY_BUCKETS.len()];
            quantities[Bucket::Queued.index()] = day.queued;
            rows.push(JobDayRow { job, cell: None, accelerator: job.accelerator, quantities });
        }
        for (pool, quantities) in day.held.iter().filter(|(_, quantities)| quantities.iter().any(|value| *value != 0)) {
            let Place { cell, accelerator } = places[*pool];
            let (cell, accelerator) = (Some(cell), Some(accelerator));
            rows.push(JobDayRow { job, cell, accelerator, quantities: *quantities });
        }
    }
    rows.sort_by_key(|row| (row.job.job_id.as_str(), row.cell, row.accelerator));
    let mut columns: Vec<NamedColumn> = vec![
        ("job_id", texts(&rows, |row| Some(&row.job.job_id))),
        ("cell", texts(&rows, |row| row.cell)),
        ("accelerator", texts(&rows, |row| row.accelerator)),
    ];
    for bucket in JOB_DAY_BUCKETS {
        columns.push((bucket.column(), ints(&rows, |row| Some(row.quantities[bucket.index()]))));
    }
    for (at, name) in JOB_AXES.into_iter().enumerate() {
        let axis = texts(&rows, |row| {
            let said = row.job.axes[at].as_deref().filter(|_| row.job.is_listed);
            Some(said.unwrap_or(UNKNOWN))
        });
        columns.push((name, axis));
    }
    let required = |row: &JobDayRow<'_>| if row.job.is_listed { row.job.chips_required } else { 0 };
    columns.push(("chips_required", ints(&rows, |row| Some(required(row)))));
    columns.push((
        SIZE_CLASS,
        texts(&rows, |row| Some(if row.job.is_listed { size_class(required(row)) } else { UNKNOWN })),
    ));
    columns
}

/// The quantities of `pool_day`.
const POOL_COLUMNS: [&str; 6] =
    ["capacity_chip_ms", "down_chip_ms", "held_chip_ms", "partial_chip_ms", "allocated_chip_ms", "idle_chip_ms"];

/// A row of `pool_day`.
pub(crate) struct PoolDayRow {
    day: Day,
    place: Place,
    quantities: [i64; POOL_COLUMNS.len()],
}

/// The pools of a day, in the order of the published ones; none that is not there.
pub(crate) fn pools(books: &DayBooks, places: &[Place]) -> Vec<PoolDayRow> {
    let mut held = vec![(0, 0); places.len()];
    for (pool, quantities) in books.jobs.iter().flat_map(|day| &day.held) {
        held[*pool].0 += quantities[Bucket::Partial.index()];
        held[*pool].1 += quantities[Bucket::Allocated.index()];
    }
    let mut rows = Vec::new();
    for ((place, pool), (partial, allocated)) in places.iter().zip(&books.pools).zip(held) {
        let held = partial + allocated;
        let idle = pool.capacity - pool.down - held;
        if pool.capacity != 0 || held != 0 {
            let quantities = [pool.capacity, pool.down, held, partial, allocated, idle];
            rows.push(PoolDayRow { day: books.day, place: *place, quantities });
        }
    }
    rows.sort_by_key(|row| row.place);
    rows
}

/// Rows of `pool_day`, as columns.
pub(crate) fn pool_day(rows: &[PoolDayRow]) -> Vec<NamedColumn> {
    let dates: Date32Array = rows.iter().map(|row| Some(row.day.0)).collect();
    let mut columns: Vec<NamedColumn> = vec![
        ("date", Arc::new(dates)),
        ("cell", texts(rows, |row| Some(row.place.cell))),
        ("accelerator", texts(rows, |row| Some(row.place.accelerator))),
    ];
    for (at, name) in POOL_COLUMNS.into_iter().enumerate() {
        columns.push((name, ints(rows, |row| Some(row.quantities[at]))));
    }
    columns
}

/// The size classes that the main job has unless it is told otherwise.
fn size_class(chips_required: i64) -> &'static str {
    match chips_required {
        ..=16 => "small",
        17..=128 => "medium",
        129..=1024 => "large",
        _ => "extra_large",
    }
}
