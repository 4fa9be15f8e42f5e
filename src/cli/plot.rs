//! `mpibayes plot`: figures of a run.

use super::drawing;
use super::picture::Format;
pub use super::picture::PlotArgs;
use anyhow::bail;
use std::process::ExitCode;

/// Draws the figures.
///
/// # Errors
/// When `--output` has an ending of no supported format, contradicts `--format`, or is an existing file that is no figure; when there is no
/// such run, it has no data for a figure, or a file cannot be written.
pub fn run(args: &PlotArgs) -> anyhow::Result<ExitCode> {
    let output = args.output.as_deref();
    args.picture.check(output)?;
    if let Some(output) = output.filter(|output| Format::of(output).is_none() && output.is_file()) {
        bail!("--output {}: this is a file: name a folder, or a file that ends in .svg or .png", output.display());
    }
    drawing::draw_run(args)?;
    Ok(ExitCode::SUCCESS)
}
