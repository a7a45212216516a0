//! The command `goodput`: the only place that reads the environment, the clock and the terminal, and that prints.

mod args;
mod commands;
mod output;
mod progress;
mod summary;

use std::io::Write;
use std::process::ExitCode;

use clap::Parser;
use goodput_engine::EngineError;
use goodput_pipeline::PipelineError;
use goodput_simulate::SimulateError;

use crate::args::{Args, Command};

#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

/// All good.
const GOOD: u8 = 0;
/// The user's or the data's side.
const YOURS: u8 = 1;
/// A fault of the program.
const OURS: u8 = 2;
/// Published, but some partitions were held back.
const HELD_BACK: u8 = 3;
/// Ctrl-C.
const INTERRUPTED: u8 = 130;
/// SIGTERM.
const TERMINATED: u8 = 143;

fn main() -> ExitCode {
    let args = match Args::try_parse() {
        Ok(args) => args,
        Err(error) => {
            let is_answer = !error.use_stderr();
            // Nobody is left to tell if this cannot be printed.
            let _ = error.print();
            return ExitCode::from(if is_answer { GOOD } else { YOURS });
        }
    };
    args.start_logging();
    hush_workers();
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    if let Some(threads) = args.threads {
        runtime.worker_threads(threads.get());
    }
    let runtime = match runtime.enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            report(&anyhow::Error::new(error));
            return ExitCode::from(OURS);
        }
    };
    let code = runtime.block_on(async {
        tokio::select! {
            done = execute(&args) => done.unwrap_or_else(|error| report(&error)),
            code = interrupted() => code,
        }
    });
    // What still runs was interrupted: it must not keep the process.
    runtime.shutdown_background();
    ExitCode::from(code)
}

async fn execute(args: &Args) -> anyhow::Result<u8> {
    match &args.command {
        Command::Run(command) => commands::run::execute(args, command).await,
        Command::Plan(command) => commands::plan::execute(args, command).await,
        Command::Check => commands::check::execute(args).await,
        Command::Sql(command) => commands::sql::execute(args, command).await,
        Command::Simulate(command) => commands::simulate::execute(args, command).await,
    }
}

/// A fault in a library's code on a worker ends its task and becomes an error; it is not told twice.
fn hush_workers() {
    let told = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |fault| {
        if std::thread::current().name() == Some("main") {
            told(fault);
        } else {
            tracing::debug!("{fault}");
        }
    }));
}

/// Waits for Ctrl-C or SIGTERM.
async fn interrupted() -> u8 {
    use tokio::signal::unix::{SignalKind, signal};
    let (Ok(mut interrupt), Ok(mut terminate)) = (signal(SignalKind::interrupt()), signal(SignalKind::terminate()))
    else {
        return std::future::pending().await;
    };
    tokio::select! {
        _ = interrupt.recv() => INTERRUPTED,
        _ = terminate.recv() => TERMINATED,
    }
}

/// Prints an error with its causes, once, and gives the exit code.
fn report(error: &anyhow::Error) -> u8 {
    if output::is_broken_pipe(error) {
        return GOOD;
    }
    let mut lines = vec![format!("error: {error}")];
    let mut said = error.to_string();
    for cause in error.chain().skip(1) {
        let cause = cause.to_string();
        // Some libraries repeat their causes.
        if !said.contains(&cause) {
            lines.push(format!("  caused by: {cause}"));
            said = cause;
        }
    }
    let pipeline = error.downcast_ref::<PipelineError>();
    let hint = pipeline
        .and_then(PipelineError::hint)
        .or_else(|| error.downcast_ref::<EngineError>()?.hint())
        .or_else(|| error.downcast_ref::<SimulateError>()?.hint());
    if let Some(hint) = hint {
        lines.push(format!("hint: {hint}"));
    }
    // Nobody is left to tell if this cannot be printed.
    let _ = writeln!(std::io::stderr(), "{}", lines.join("\n"));
    if pipeline.is_some_and(PipelineError::is_fault) { OURS } else { YOURS }
}
