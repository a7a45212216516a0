//! The progress display of long runs: on a terminal alone.

use std::io::IsTerminal;
use std::time::Duration;

use goodput_pipeline::Progress;
use indicatif::{ProgressBar, ProgressStyle};

/// A bar on stderr, or nothing.
pub(crate) struct Display(ProgressBar);

impl Display {
    /// A display; hidden if asked for, or if stderr is no terminal.
    pub(crate) fn new(is_hidden: bool) -> Display {
        if is_hidden || !std::io::stderr().is_terminal() {
            return Display(ProgressBar::hidden());
        }
        let bar = ProgressBar::new(0);
        let style = ProgressStyle::with_template("{bar:30} {pos}/{len} days  {msg}  {eta} left");
        if let Ok(style) = style {
            bar.set_style(style);
        }
        bar.enable_steady_tick(Duration::from_millis(200));
        Display(bar)
    }

    /// Shows how far a run has come.
    pub(crate) fn show(&self, progress: Progress<'_>) {
        self.0.set_length(progress.days.unsigned_abs());
        self.0.set_position(progress.days_done.unsigned_abs());
        let seconds = self.0.elapsed().as_secs_f64().max(0.001);
        let rate = progress.rows as f64 / seconds;
        self.0.set_message(format!("{}  {rate:.0} rows/s", progress.doing));
    }

    /// Takes the display away.
    pub(crate) fn clear(&self) {
        self.0.finish_and_clear();
    }
}
