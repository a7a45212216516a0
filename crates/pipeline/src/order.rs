//! The order of steps.

use std::collections::{BTreeMap, BTreeSet};

use goodput_engine::session::TELEMETRY;
use goodput_model::Table;

use crate::PipelineError;
use crate::config::StepGrain;
use crate::plan::{Plan, Step};

/// Every step reads what earlier steps made; a circle of steps has no order at all.
pub(crate) fn check_order(plan: &Plan, wrong: impl Fn(&str, &str, &str) -> PipelineError) -> Result<(), PipelineError> {
    let position: BTreeMap<&str, usize> =
        plan.steps.iter().enumerate().map(|(at, step)| (step.table.as_str(), at)).collect();
    if position.len() < plan.steps.len() {
        let mut seen = BTreeSet::new();
        let twice = plan.steps.iter().find(|step| !seen.insert(&step.table)).map(|step| step.table.as_str());
        return Err(wrong(twice.unwrap_or_default(), "two steps make this table", ""));
    }
    if plan.telemetry.is_none() {
        let of_days = plan.steps.iter().find(|step| step.grain != StepGrain::Run);
        if let Some(step) = of_days {
            let hint = "declare `telemetry`, or give the step the grain `run`";
            return Err(wrong(&step.table, "a step by day or quarter needs telemetry", hint));
        }
    }
    for (at, step) in plan.steps.iter().enumerate() {
        for read in step.sql.reads.iter().filter(|read| !read.starts_with("input.")) {
            if let Some(table) = read.strip_prefix(&format!("{TELEMETRY}.")) {
                if plan.telemetry.is_none() || Table::from_name(table).is_none() {
                    return Err(wrong(&step.table, &format!("it reads `{read}`, which there is not"), ""));
                }
                continue;
            }
            if step.grain == StepGrain::Partition && position.contains_key(read.as_str()) {
                let hint = "it can read telemetry.* and nothing else: give the step the grain `day`";
                return Err(wrong(&step.table, &format!("a step of grain `partition` reads `{read}`"), hint));
            }
            match position.get(read.as_str()) {
                Some(read_at) if *read_at < at => {}
                Some(read_at) => {
                    if let Some(circle) = circle(&plan.steps, &position, at) {
                        let hint = "break the circle: a table cannot be made of itself";
                        return Err(wrong(&step.table, &format!("the steps go round in a circle: {circle}"), hint));
                    }
                    let later = &plan.steps[*read_at].table;
                    let hint = format!("move step `{later}` before step `{}`", step.table);
                    return Err(wrong(&step.table, &format!("it reads `{later}`, which a later step makes"), &hint));
                }
                None => {
                    let hint = "it can read telemetry.*, input.*, and what earlier steps make";
                    return Err(wrong(&step.table, &format!("it reads `{read}`, which no step makes"), hint));
                }
            }
        }
    }
    Ok(())
}

/// The circle of steps in which a step stands, written out; `None` if it stands in none.
fn circle(steps: &[Step], position: &BTreeMap<&str, usize>, start: usize) -> Option<String> {
    let mut came_from: BTreeMap<usize, usize> = BTreeMap::new();
    let mut queue = vec![start];
    while let Some(at) = queue.pop() {
        for read in &steps[at].sql.reads {
            let Some(next) = position.get(read.as_str()).copied() else { continue };
            if next == start {
                let mut names = vec![steps[start].table.as_str(), steps[at].table.as_str()];
                let mut back = at;
                while back != start {
                    back = *came_from.get(&back)?;
                    names.push(&steps[back].table);
                }
                if at == start {
                    names.pop();
                }
                names.reverse();
                return Some(names.join(" reads "));
            }
            if let std::collections::btree_map::Entry::Vacant(entry) = came_from.entry(next) {
                entry.insert(at);
                queue.push(next);
            }
        }
    }
    None
}
