//! Progress bars of commands that read or write files.

use indicatif::{ProgressBar, ProgressStyle};
use std::io::IsTerminal;
use std::time::Duration;

/// A bar for bytes.
pub(super) const BYTES: &str = "{msg} {bar:30} {bytes} of {total_bytes}, {bytes_per_sec}, {eta} left";
/// A bar for counts.
pub(super) const COUNT: &str = "{msg} {bar:30} {human_pos} of {human_len}, {eta} left";

/// A progress bar on a terminal; hidden if standard error is redirected.
pub(super) fn progress_bar(name: &str, template: &str) -> ProgressBar {
    if !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::no_length().with_message(name.to_owned());
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style);
    }
    bar.enable_steady_tick(Duration::from_millis(200));
    bar
}
