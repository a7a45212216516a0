//! `goodput check`.

use goodput_pipeline::Plan;
use goodput_pipeline::preview::check;

use crate::args::Args;
use crate::output::print;
use crate::{GOOD, YOURS, summary};

pub(crate) async fn execute(args: &Args) -> anyhow::Result<u8> {
    let plan = Plan::load(&args.pipeline, &args.plan_options()?).await?;
    let checked = check(&plan).await?;
    print(&summary::of_check(&checked, &plan))?;
    Ok(if checked.unreadable_files.is_empty() { GOOD } else { YOURS })
}
