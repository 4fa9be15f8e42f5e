//! `mpibayes plot`: figures of a run.

use super::drawing;
use super::picture::Format;
pub use super::picture::PlotArgs;
use anyhow::bail;
use std::path::Path;
use std::process::ExitCode;

/// Formats that are often wanted but not supported.
const UNSUPPORTED: [&str; 8] = ["pdf", "eps", "ps", "jpg", "jpeg", "gif", "tif", "tiff"];

/// Draws the figures.
///
/// # Errors
/// When there is no such run, it has no data for a figure, or a file cannot be written.
pub fn run(args: &PlotArgs) -> anyhow::Result<ExitCode> {
    let output = args.output.as_deref();
    args.picture.check(output.filter(|path| Format::of(path).is_some()))?;
    let is_unsupported = |path: &&Path| {
        let extension = path.extension().and_then(|extension| extension.to_str()).unwrap_or_default().to_ascii_lowercase();
        UNSUPPORTED.contains(&extension.as_str())
    };
    if let Some(output) = output.filter(is_unsupported) {
        bail!("--output {}: figures are written as .svg or .png", output.display());
    }
    drawing::draw_run(args)?;
    Ok(ExitCode::SUCCESS)
}
