//! The progress display of long runs: on a terminal alone.

use std::io::IsTerminal;
use std::time::Duration;

use goodput_pipeline::Progress;
use indicatif::{HumanCount, HumanDuration, ProgressBar, ProgressStyle};

/// Parts of the bar.
const PARTS: u64 = 1000;

/// A bar on stderr, or nothing.
pub(crate) struct Display(ProgressBar);

impl Display {
    /// A display; hidden if asked for, or if stderr is no terminal.
    pub(crate) fn new(is_hidden: bool) -> Display {
        if is_hidden || !std::io::stderr().is_terminal() {
            return Display(ProgressBar::hidden());
        }
        let bar = ProgressBar::new(PARTS);
        if let Ok(style) = ProgressStyle::with_template("{bar:30} {msg}") {
            bar.set_style(style);
        }
        bar.enable_steady_tick(Duration::from_millis(200));
        Display(bar)
    }

    /// Shows how far a run has come.
    pub(crate) fn show(&self, progress: Progress<'_>) {
        // Between 0 and the number of parts.
        let parts = (0..PARTS).find(|part| *part as f64 >= progress.share * PARTS as f64).unwrap_or(PARTS);
        self.0.set_position(parts);
        let left = match progress.seconds_left() {
            Some(seconds) => format!("{} left", HumanDuration(Duration::from_secs_f64(seconds.clamp(0.0, 1e9)))),
            None => String::new(),
        };
        let Progress { days_done, days, doing, .. } = progress;
        let rate = HumanCount(format!("{:.0}", progress.rows_per_second()).parse().unwrap_or(0));
        self.0.set_message(format!("{days_done}/{days} days  {rate} rows/s  {left}  {doing}"));
    }

    /// Shows how far a simulation has come.
    pub(crate) fn show_simulation(&self, progress: goodput_simulate::Progress) {
        let (days_done, days) = (i64::from(progress.days_done), i64::from(progress.days));
        self.show(Progress {
            days_done,
            days,
            rows: i64::try_from(progress.runtime_rows).unwrap_or(i64::MAX),
            seconds: self.0.elapsed().as_secs_f64(),
            share: days_done as f64 / days.max(1) as f64,
            doing: "simulating",
        });
    }

    /// Takes the display away.
    pub(crate) fn clear(&self) {
        self.0.finish_and_clear();
    }
}
