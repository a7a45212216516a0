//! `goodput run`.

use goodput_pipeline::{Plan, RunOptions};

use crate::args::{Args, RunArgs};
use crate::output::print;
use crate::progress::Display;
use crate::{GOOD, HELD_BACK, YOURS, summary};

pub(crate) async fn execute(args: &Args, command: &RunArgs) -> anyhow::Result<u8> {
    let plan = Plan::load(&args.pipeline, &args.plan_options()?).await?;
    let options = RunOptions {
        from: command.days.from,
        to: command.days.to,
        full_refresh: command.days.full_refresh,
        run_id: command.run_id.clone().unwrap_or_else(new_run_id),
        session: args.session_options(),
    };
    let display = Display::new(args.no_progress || args.quiet);
    let record = goodput_pipeline::run(&plan, &options, &|progress| display.show(progress)).await;
    display.clear();
    let record = record?;
    if command.json {
        print(&format!("{}\n", serde_json::to_string_pretty(&record)?))?;
    } else if !args.quiet {
        print(&summary::of_run(&record, &plan))?;
    }
    Ok(match (record.is_complete(), record.days) {
        (true, _) => GOOD,
        (false, 0) => YOURS,
        (false, _) => HELD_BACK,
    })
}

/// Sorts by time; two runs of one second differ in the process.
fn new_run_id() -> String {
    #[expect(clippy::disallowed_methods, reason = "the binary is where the clock is read")]
    let now = chrono::Utc::now();
    format!("{}-{:x}", now.format("%Y%m%dT%H%M%SZ"), std::process::id())
}
