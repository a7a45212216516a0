//! `goodput plan`.

use goodput_pipeline::Plan;
use goodput_pipeline::preview::preview;

use crate::args::{Args, PlanArgs};
use crate::output::print;
use crate::{GOOD, summary};

pub(crate) async fn execute(args: &Args, command: &PlanArgs) -> anyhow::Result<u8> {
    let plan = Plan::load(&args.pipeline, &args.plan_options()?).await?;
    let preview = preview(&plan, command.from, command.to).await?;
    if command.json {
        print(&format!("{}\n", serde_json::to_string_pretty(&preview)?))?;
    } else {
        print(&summary::of_plan(&preview))?;
    }
    Ok(GOOD)
}
