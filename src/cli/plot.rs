//! `mpibayes plot`: figures of a run.

use super::drawing;
use super::picture::{Axis, Format, PictureArgs};
use crate::report::figures::FigureKind;
use anyhow::bail;
use clap::builder::PossibleValue;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

const EXAMPLES: &str = "\
Examples:
  mpibayes plot runs/first                                    # every figure, into runs/first/plots
  mpibayes plot runs/first history --against seconds --metric accuracy,log_likelihood --format svg
  mpibayes plot runs/first posterior --parameter 'weights_1[0,3]' --parameter log_precision
  mpibayes plot runs/first posterior --pair 'weights_1[0,0]' 'weights_1[0,1]'
  mpibayes plot runs/first reliability --output figure3.png --size 500x500 --scale 3";

/// Arguments of `mpibayes plot`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct PlotArgs {
    /// The folder of a run, or its result file
    pub run: PathBuf,
    /// The figures to draw [default: all that the run has data for]
    #[arg(value_name = "KIND")]
    pub kinds: Vec<FigureKind>,
    /// The folder for the figures, or the file for a single one [default: RUN/plots]
    #[arg(long, short, value_name = "DIR|FILE")]
    pub output: Option<PathBuf>,
    /// Size and formats.
    #[command(flatten)]
    pub picture: PictureArgs,
    /// The horizontal axis of `history`
    #[arg(long, value_name = "AXIS", default_value = "round")]
    pub against: Axis,
    /// Only these columns of the metrics or the history, separated by commas
    #[arg(long, value_name = "NAME,...", value_delimiter = ',')]
    pub metric: Vec<String>,
    /// Add all columns of the history, which the method logged
    #[arg(long)]
    pub details: bool,
    /// A parameter for `posterior` and `chains`: `NAME[0,3]`, or NAME for all elements of a variable; can be repeated
    #[arg(long, value_name = "NAME")]
    pub parameter: Vec<String>,
    /// Add a scatter plot of two parameters; can be repeated
    #[arg(long, num_args = 2, value_names = ["NAME", "NAME"], action = clap::ArgAction::Append)]
    pub pair: Vec<String>,
}

impl clap::ValueEnum for FigureKind {
    fn value_variants<'a>() -> &'a [Self] {
        &Self::ALL
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        Some(PossibleValue::new(self.name()).help(self.description()))
    }
}

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
