//! `goodput simulate`.

use std::time::Instant;

use goodput_simulate::Simulation;

use crate::args::{Args, SimulateArgs};
use crate::output::print;
use crate::progress::Display;
use crate::{GOOD, summary};

pub(crate) async fn execute(args: &Args, command: &SimulateArgs) -> anyhow::Result<u8> {
    let simulation = Simulation {
        seed: command.seed,
        first_day: command.from,
        days: command.days,
        jobs_per_day: command.jobs_per_day,
        runtime_rows_per_job_day: command.runtime_rows_per_job_day,
        settle_days: command.settle_days,
    };
    let display = Display::new(args.no_progress || args.quiet);
    let out = command.out.clone();
    let began = Instant::now();
    // A thread of its own: Ctrl-C is still heard meanwhile.
    let written = tokio::task::spawn_blocking(move || {
        let written = simulation.write(&out, &mut |progress| display.show_simulation(progress));
        display.clear();
        written
    });
    let written = written.await??;
    if !args.quiet {
        print(&summary::of_simulation(command, &written, began.elapsed().as_secs_f64()))?;
    }
    Ok(GOOD)
}
