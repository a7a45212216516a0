//! The command line.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::{Parser, Subcommand, ValueEnum};
use goodput_engine::SessionOptions;
use goodput_model::Day;
use goodput_pipeline::PlanOptions;
use goodput_store::StoreOptions;

/// Goodput of ML fleets: every chip-millisecond in exactly one bucket.
#[derive(Debug, Parser)]
#[command(name = "goodput", version, propagate_version = true)]
pub(crate) struct Args {
    /// The pipeline file.
    #[arg(short, long, global = true, value_name = "FILE", default_value = "pipelines/goodput.yaml")]
    pub(crate) pipeline: PathBuf,
    /// Override a variable that the pipeline declares (repeatable).
    #[arg(long = "set", global = true, value_name = "NAME=VALUE", value_parser = parse_setting)]
    set: Vec<(String, String)>,
    /// Threads that compute [default: one a core].
    #[arg(long, global = true, value_name = "N")]
    pub(crate) threads: Option<NonZeroUsize>,
    /// The most memory of the engine, such as 512MiB or 4GB; work beyond it spills to disk.
    #[arg(long, global = true, value_name = "SIZE", value_parser = parse_size)]
    memory: Option<usize>,
    /// How diagnostics are written to stderr.
    #[arg(long, global = true, value_enum, default_value_t = LogFormat::Text)]
    log_format: LogFormat,
    /// Say more (-vv: still more).
    #[arg(short, long, global = true, action = clap::ArgAction::Count)]
    verbose: u8,
    /// Say nothing but errors.
    #[arg(short, long, global = true, conflicts_with = "verbose")]
    pub(crate) quiet: bool,
    /// No progress display, even on a terminal.
    #[arg(long, global = true)]
    pub(crate) no_progress: bool,
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Compute days and publish the tables.
    Run(RunArgs),
    /// What `run` would do; writes nothing.
    Plan(PlanArgs),
    /// Validate the pipeline and its SQL, reach every store, hold every file against the contract.
    Check,
    /// SQL over the telemetry (schema `telemetry`) and the published tables (schema `goodput`, the default).
    Sql(SqlArgs),
    /// Play through a made-up fleet: write its telemetry, and the truth about it to hold published tables against.
    Simulate(SimulateArgs),
}

/// Which days; without any of these, those that are due.
#[derive(Debug, clap::Args)]
pub(crate) struct DayArgs {
    /// First day, due or not [default with --to: the first that the telemetry holds].
    #[arg(long, value_name = "YYYY-MM-DD")]
    pub(crate) from: Option<Day>,
    /// Last day, due or not [default with --from: the last that the telemetry holds].
    #[arg(long, value_name = "YYYY-MM-DD")]
    pub(crate) to: Option<Day>,
    /// All days, due or not.
    #[arg(long, conflicts_with_all = ["from", "to"])]
    pub(crate) full_refresh: bool,
}

#[derive(Debug, clap::Args)]
pub(crate) struct RunArgs {
    #[command(flatten)]
    pub(crate) days: DayArgs,
    /// The id of the run, in every row that it publishes [default: made of the clock].
    #[arg(long, value_name = "ID", value_parser = parse_run_id)]
    pub(crate) run_id: Option<String>,
    /// Print the summary as JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, clap::Args)]
pub(crate) struct PlanArgs {
    #[command(flatten)]
    pub(crate) days: DayArgs,
    /// Print the plan as JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, clap::Args)]
pub(crate) struct SqlArgs {
    /// The query; read from stdin if there is neither this nor -f.
    #[arg(conflicts_with = "file")]
    pub(crate) query: Option<String>,
    /// Read the query from a file.
    #[arg(short, long, value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,
    /// How the rows are written.
    #[arg(long, value_enum, default_value_t = Format::Table)]
    pub(crate) format: Format,
    /// Write to a file.
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}

#[derive(Debug, clap::Args)]
pub(crate) struct SimulateArgs {
    /// The folder to write to, which must be empty or new: a telemetry root, with the truth in `_truth` beside the tables.
    pub(crate) out: PathBuf,
    /// How many days.
    #[arg(long, value_name = "N")]
    pub(crate) days: u32,
    /// Jobs that are submitted a day; the fleet has the size that they need.
    #[arg(long, value_name = "N")]
    pub(crate) jobs_per_day: u32,
    /// What all draws are made from: the same seed and arguments give the same bytes.
    #[arg(long, value_name = "N")]
    pub(crate) seed: u64,
    /// First day: generations of chips come and go with the years.
    #[arg(long, value_name = "YYYY-MM-DD", default_value = "2026-01-01")]
    pub(crate) from: Day,
    /// Rows of runtime that a job reports on a day on which it runs, about.
    #[arg(long, value_name = "N", default_value_t = 60)]
    pub(crate) runtime_rows_per_job_day: u32,
    /// Days for which a day can still change; the pipeline's setting of that name must be the same.
    #[arg(long, value_name = "N", default_value_t = SETTLE_DAYS)]
    pub(crate) settle_days: u32,
}

/// What `settle_days` is in the main job.
pub(crate) const SETTLE_DAYS: u32 = 7;

/// How rows are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// Aligned columns; a null reads NULL.
    Table,
    /// Comma-separated; a null is empty.
    Csv,
    /// Tab-separated; a null is empty.
    Tsv,
    /// One array of objects.
    Json,
    /// An object a line.
    Ndjson,
    /// A Markdown table; a null reads NULL.
    Markdown,
    /// A Parquet file.
    Parquet,
}

/// How diagnostics are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum LogFormat {
    /// For people.
    Text,
    /// An object a line.
    Json,
}

impl Args {
    /// What the pipeline is understood with.
    pub(crate) fn plan_options(&self) -> anyhow::Result<PlanOptions> {
        Ok(PlanOptions {
            variables: self.set.iter().cloned().collect::<BTreeMap<_, _>>(),
            working_dir: std::env::current_dir()?,
            stores: store_options(),
            session: self.session_options(),
        })
    }

    /// What the engine may use.
    pub(crate) fn session_options(&self) -> SessionOptions {
        SessionOptions {
            threads: self.threads.map_or(0, NonZeroUsize::get),
            memory_bytes: self.memory,
            spill_dir: None,
        }
    }

    /// Diagnostics go to stderr, as loud as asked for.
    pub(crate) fn start_logging(&self) {
        let level = match (self.quiet, self.verbose) {
            (true, _) => "error",
            (false, 0) => "warn",
            (false, 1) => "warn,goodput_store=info,goodput_engine=info,goodput_pipeline=info",
            (false, 2) => "warn,goodput_store=debug,goodput_engine=debug,goodput_pipeline=debug",
            (false, _) => "debug",
        };
        let filter = tracing_subscriber::EnvFilter::new(level);
        let log = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
        match self.log_format {
            LogFormat::Text => log.without_time().init(),
            LogFormat::Json => log.json().init(),
        }
    }
}

/// The environment's settings of stores, under the names that the users of each cloud know.
fn store_options() -> StoreOptions {
    const PREFIXES: [&str; 4] = ["AWS_", "GOOGLE_", "AZURE_", "ALLOW_"];
    let settings =
        std::env::vars_os().filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
    StoreOptions::new(settings.filter(|(name, _)| PREFIXES.iter().any(|prefix| name.starts_with(prefix))))
}

fn parse_setting(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err("write it as NAME=VALUE".to_owned()),
    }
}

fn parse_run_id(text: &str) -> Result<String, String> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    if text.is_empty() || text.len() > 128 || text.starts_with('.') || !text.bytes().all(is_plain) {
        return Err("use up to 128 letters, digits, `-`, `_` and `.`".to_owned());
    }
    Ok(text.to_owned())
}

/// A number of bytes: `1048576`, `512MiB`, `4GB`, `1.5g`.
fn parse_size(text: &str) -> Result<usize, String> {
    let wrong = || format!("`{text}` is not a size such as 512MiB or 4GB");
    let digits = text.find(|character: char| !character.is_ascii_digit() && character != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let factor: u64 = match unit.trim().to_ascii_lowercase().as_str() {
        "" | "b" => 1,
        "kb" => 1_000,
        "k" | "kib" => 1 << 10,
        "mb" => 1_000_000,
        "m" | "mib" => 1 << 20,
        "gb" => 1_000_000_000,
        "g" | "gib" => 1 << 30,
        "tb" => 1_000_000_000_000,
        "t" | "tib" => 1 << 40,
        _ => return Err(wrong()),
    };
    let number: f64 = number.parse().map_err(|_| wrong())?;
    let bytes = number * factor as f64;
    if !(1.0..9e15).contains(&bytes) {
        return Err(wrong());
    }
    // Rounded down; the range above fits.
    format!("{}", bytes.floor()).parse().map_err(|_| wrong())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes() {
        let cases = [
            ("1048576", Some(1 << 20)),
            ("512MiB", Some(512 << 20)),
            ("4GB", Some(4_000_000_000)),
            ("1.5g", Some(3 << 29)),
            ("2 kb", Some(2_000)),
            ("", None),
            ("0", None),
            ("MiB", None),
            ("1e9", None),
            ("12 apples", None),
            ("99999999999999999999", None),
        ];
        for (text, expected) in cases {
            assert_eq!(parse_size(text).ok(), expected, "{text}");
        }
    }

    #[test]
    fn the_command_line_is_consistent() {
        use clap::CommandFactory;
        Args::command().debug_assert();
    }
}
