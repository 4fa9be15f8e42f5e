//! Printing results on standard output and errors on standard error.

use crate::log;
use std::io::{ErrorKind, Write};

/// Prints a result. A closed pipe is no error: the reader, such as `head`, has seen enough.
///
/// # Errors
/// When standard output cannot be written.
pub(super) fn print(text: &str) -> std::io::Result<()> {
    match std::io::stdout().write_all(text.as_bytes()).and_then(|()| std::io::stdout().flush()) {
        Err(cause) if cause.kind() != ErrorKind::BrokenPipe => Err(cause),
        _ => Ok(()),
    }
}

/// Prints an error on standard error in a single write, so that mpirun cannot put its own lines in between.
pub(super) fn print_error(error: &anyhow::Error) {
    log::print_error(&format!("error: {}", in_one_line(error)));
}

/// An error with its causes in one line, without causes that are already quoted.
fn in_one_line(error: &anyhow::Error) -> String {
    let mut text = String::new();
    for cause in error.chain().map(ToString::to_string) {
        if text.is_empty() {
            text = cause;
        } else if !text.contains(&cause) {
            text = format!("{text}: {cause}");
        }
    }
    text
}
