//! How a job reports on its run: a progress bar on a terminal, otherwise a line now and then.

use crate::cluster::Progress;
use crate::log;
use indicatif::{HumanDuration, ProgressBar, ProgressState, ProgressStyle};
use std::io::IsTerminal;
use std::time::{Duration, Instant};

/// The shortest time between two lines of progress.
const LINE_INTERVAL: Duration = Duration::from_secs(20);

/// Whether a process reports on the run, and what its lines begin with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reporting {
    /// Not at all, as on all ranks but the first.
    Quiet,
    /// To the person who started it.
    Direct,
    /// To a log of a launcher: each line has the date and the time, and this host if it is given.
    Log {
        /// The host of this process.
        host: Option<String>,
    },
    /// Only the progress, with the title of the run: it is one of several.
    OneOfSeveral {
        /// The title.
        title: String,
        /// What lines begin with, before the title.
        as_of: Box<Reporting>,
    },
}

/// The display of a job.
pub(super) enum Display {
    /// A bar on a terminal.
    Bar { bar: ProgressBar, stage: &'static str, reporting: Reporting },
    /// Lines.
    Lines(Lines),
    /// Nothing.
    Nothing,
}

/// The state of a display in lines.
pub(super) struct Lines {
    reporting: Reporting,
    printed_at: Instant,
    /// What was done when the last line was printed.
    printed: u64,
    /// The stage that is shown, since when, and what was done then.
    stage: (&'static str, Instant, u64),
}

impl Display {
    pub fn new(reporting: Reporting) -> Self {
        match (reporting.is_quiet(), std::io::stderr().is_terminal() && !log::is_json()) {
            (true, _) => Self::Nothing,
            (false, true) => {
                // With an empty template the bar is invisible, until the number of rounds is known.
                let bar = ProgressBar::no_length();
                bar.set_style(ProgressStyle::with_template("").unwrap_or_else(|_| ProgressStyle::default_bar()));
                Self::Bar { bar, stage: "", reporting }
            }
            (false, false) => {
                let now = Instant::now();
                Self::Lines(Lines { reporting, printed_at: now, printed: 0, stage: ("", now, 0) })
            }
        }
    }

    /// Prints a message on standard error, unless the run is one of several.
    pub fn print(&self, text: &str) {
        let reporting = match self {
            Self::Bar { reporting, .. } | Self::Lines(Lines { reporting, .. }) => reporting,
            Self::Nothing => return,
        };
        if !matches!(reporting, Reporting::OneOfSeveral { .. }) {
            self.announce(text);
        }
    }

    /// Prints a message on standard error.
    pub fn announce(&self, text: &str) {
        match self {
            Self::Bar { bar, reporting, .. } => bar.suspend(|| reporting.print(text)),
            Self::Lines(lines) => lines.reporting.print(text),
            Self::Nothing => {}
        }
    }

    /// Shows the progress of a stage: in the bar, or now and then as a line.
    pub fn show(&mut self, stage: &'static str, progress: Progress) {
        let Progress { done, total } = progress;
        match self {
            Self::Bar { bar, stage: shown, reporting } => {
                if (*shown, bar.length()) != (stage, Some(total)) {
                    *shown = stage;
                    bar.set_length(total);
                    let title = reporting.title().map(|title| format!("{title}: ")).unwrap_or_default();
                    bar.set_style(bar_style(&title, stage));
                    bar.set_position(done);
                    // Rounds of earlier jobs must not enter the estimate of the remaining time.
                    bar.reset_eta();
                }
                bar.set_position(done);
            }
            Self::Lines(lines) => {
                if lines.stage.0 != stage {
                    lines.stage = (stage, Instant::now(), done);
                }
                if done != lines.printed && lines.printed_at.elapsed() >= LINE_INTERVAL {
                    (lines.printed_at, lines.printed) = (Instant::now(), done);
                    let (_, since, first) = lines.stage;
                    let line = progress_line(stage, progress, first, since.elapsed());
                    lines.reporting.print(&line);
                }
            }
            Self::Nothing => {}
        }
    }

    /// Ends a stage before the next one begins.
    pub fn end_stage(&self) {
        if let Self::Bar { bar, .. } = self {
            bar.unset_length();
        }
    }

    /// Removes the bar.
    pub fn clear(&self) {
        if let Self::Bar { bar, .. } = self {
            bar.finish_and_clear();
        }
    }
}

impl Reporting {
    /// Prints a message on standard error.
    pub fn print(&self, text: &str) {
        if !self.is_quiet() {
            log::print(&self.prefix(), self.title(), text);
        }
    }

    fn is_quiet(&self) -> bool {
        match self {
            Self::Quiet => true,
            Self::OneOfSeveral { as_of, .. } => as_of.is_quiet(),
            Self::Direct | Self::Log { .. } => false,
        }
    }

    /// The title of a run that is one of several.
    fn title(&self) -> Option<&str> {
        match self {
            Self::OneOfSeveral { title, .. } => Some(title),
            Self::Quiet | Self::Direct | Self::Log { .. } => None,
        }
    }

    /// What a line begins with.
    fn prefix(&self) -> String {
        match self {
            Self::Quiet | Self::Direct => String::new(),
            Self::OneOfSeveral { as_of, .. } => as_of.prefix(),
            Self::Log { host } => log::prefix(host.as_deref()),
        }
    }
}

/// `round 1200 of 5000 (24 %), 2 minutes left`, where `first` rounds were done when the stage began in this job.
fn progress_line(stage: &str, progress: Progress, first: u64, elapsed: Duration) -> String {
    let Progress { done, total } = progress;
    let share = 100.0 * done as f64 / total.max(1) as f64;
    let left = match done.checked_sub(first) {
        None | Some(0) => String::new(),
        Some(new) => {
            let seconds = elapsed.as_secs_f64() * progress.left() as f64 / new as f64;
            let left = Duration::try_from_secs_f64(seconds.round()).unwrap_or(Duration::MAX);
            format!(", {} left", HumanDuration(left))
        }
    };
    match stage {
        "round" => format!("round {done} of {total} ({share:.0} %){left}"),
        _ => format!("{stage}: {share:.0} %{left}"),
    }
}

/// The style of a progress bar with a known length. It shows the remaining time after the first round.
fn bar_style(title: &str, stage: &str) -> ProgressStyle {
    let left = |state: &ProgressState, text: &mut dyn std::fmt::Write| {
        if state.pos() > 0 && !state.eta().is_zero() {
            // Progress is not worth an error.
            let _ = write!(text, ", {} left", HumanDuration(state.eta()));
        }
    };
    let template =
        ProgressStyle::with_template(&format!("{title}{{bar:40}} {stage} {{pos}}/{{len}}  {{elapsed}} elapsed{{left}}"));
    template.unwrap_or_else(|_| ProgressStyle::default_bar()).with_key("left", left)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_percentage_and_time_left() {
        let progress = Progress { done: 1200, total: 5000 };
        let line = |first, seconds| progress_line("round", progress, first, Duration::from_secs(seconds));
        assert_eq!(line(0, 31), "round 1200 of 5000 (24 %), 2 minutes left");
        // Rounds of an earlier job took time that is unknown here.
        assert_eq!(line(1100, 31), "round 1200 of 5000 (24 %), 20 minutes left");
        assert_eq!(line(1200, 31), "round 1200 of 5000 (24 %)");
        assert_eq!(progress_line("preparing", progress, 0, Duration::from_secs(12)), "preparing: 24 %, 38 seconds left");
    }
}
