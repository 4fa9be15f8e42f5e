//! `mpibayes plot`: figures of a run.

use super::drawing;
pub use super::picture::PlotArgs;
use std::process::ExitCode;

/// Draws the figures.
///
/// # Errors
/// When there is no such run, it has no data for a figure, or a file cannot be written.
pub fn run(args: &PlotArgs) -> anyhow::Result<ExitCode> {
    let output = args.output.as_deref();
    args.picture.check(output)?;
    drawing::draw_run(args)?;
    Ok(ExitCode::SUCCESS)
}
