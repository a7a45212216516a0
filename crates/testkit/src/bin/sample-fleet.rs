//! Writes the telemetry of the sample fleet. The default arguments make the project's `testdata/telemetry`.

use std::path::PathBuf;

use clap::Parser;
use goodput_model::Day;
use goodput_testkit::sample::SampleFleet;

/// Write the telemetry of a made-up fleet, in the layout of the contract
#[derive(Debug, Parser)]
struct Args {
    /// The folder to write below
    out: PathBuf,
    /// What all draws are made from: the same seed gives the same bytes
    #[arg(long, default_value_t = 7)]
    seed: u64,
    /// The first day
    #[arg(long, value_name = "YYYY-MM-DD", default_value = "2026-03-28")]
    first_day: Day,
    /// How many days
    #[arg(long, default_value_t = 6)]
    days: u32,
    /// Jobs that are submitted a day; the fleet grows with them
    #[arg(long, default_value_t = 30)]
    jobs_per_day: u32,
    /// Rows of runtime that a job reports on a day on which it runs, about
    #[arg(long, default_value_t = 40)]
    runtime_rows_per_job_day: u32,
}

fn main() -> anyhow::Result<()> {
    let args = Args::parse();
    let sample = SampleFleet {
        seed: args.seed,
        first_day: args.first_day,
        days: args.days,
        jobs_per_day: args.jobs_per_day,
        runtime_rows_per_job_day: args.runtime_rows_per_job_day,
    };
    sample.write(&args.out)?;
    Ok(())
}
