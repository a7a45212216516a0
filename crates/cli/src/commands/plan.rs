//! `goodput plan`.

use goodput_pipeline::preview::preview;
use goodput_pipeline::{Plan, RunOptions};

use crate::args::{Args, DayArgs, PlanArgs};
use crate::output::print;
use crate::{GOOD, summary};

pub(crate) async fn execute(args: &Args, command: &PlanArgs) -> anyhow::Result<u8> {
    let plan = Plan::load(&args.pipeline, &args.plan_options()?).await?;
    let DayArgs { from, to, full_refresh } = command.days;
    let options = RunOptions { from, to, full_refresh, session: args.session_options(), ..RunOptions::default() };
    let preview = preview(&plan, &options).await?;
    if command.json {
        print(&format!("{}\n", serde_json::to_string_pretty(&preview)?))?;
    } else {
        print(&summary::of_plan(&preview))?;
    }
    Ok(GOOD)
}
