//! Command-line arguments for figures.

use super::import::interval;
use super::summary::per;
use crate::metrics::seeds::Band;
use crate::report::coefficients::Per;
use crate::report::figures::FigureKind;
use crate::results::XAxis;
use anyhow::bail;
use clap::builder::PossibleValue;
use std::path::{Path, PathBuf};

/// Size and formats of figures.
#[derive(Debug, clap::Args)]
pub struct PictureArgs {
    /// Formats, separated by commas [default: both, or the one that --output ends in]
    #[arg(long, value_name = "svg,png", value_delimiter = ',')]
    pub format: Vec<Format>,
    /// Width and height in pixels of the SVG (96 per inch), such as 800x600 [default: chosen by the number of panels]
    #[arg(long, value_name = "WIDTHxHEIGHT", value_parser = size)]
    pub size: Option<(u32, u32)>,
    /// Draw no title, no description of the run and no caption, for a paper that has its own
    #[arg(long)]
    pub bare: bool,
    /// Resolution of the PNG: its pixels for each pixel of the SVG, in each direction
    #[arg(long, value_name = "FACTOR", default_value = "2", value_parser = scale)]
    pub scale: f64,
}

/// Formats that are often wanted but not supported.
const UNSUPPORTED: [&str; 8] = ["pdf", "eps", "ps", "jpg", "jpeg", "gif", "tif", "tiff"];

/// A file format of figures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Format {
    /// Scalable Vector Graphics, for papers and browsers
    Svg,
    /// Portable Network Graphics
    Png,
}

impl Format {
    /// The extension of its files.
    pub fn extension(self) -> &'static str {
        match self {
            Self::Svg => "svg",
            Self::Png => "png",
        }
    }

    /// The format that a file name ends in, if any.
    pub fn of(path: &Path) -> Option<Self> {
        let extension = path.extension()?.to_str()?;
        [Self::Svg, Self::Png].into_iter().find(|format| extension.eq_ignore_ascii_case(format.extension()))
    }
}

fn size(typed: &str) -> Result<(u32, u32), String> {
    let side = |text: &str| text.trim().parse::<u32>().ok().filter(|side| (50..=20_000).contains(side));
    let sides = typed.split_once(['x', '×']).and_then(|(width, height)| Some((side(width)?, side(height)?)));
    sides.ok_or_else(|| "write WIDTHxHEIGHT, both from 50 to 20000, such as 800x600".into())
}

fn scale(typed: &str) -> Result<f64, String> {
    let scale = typed.parse::<f64>().ok().filter(|scale| (0.1..=20.0).contains(scale));
    scale.ok_or_else(|| "write a number from 0.1 to 20".into())
}

/// The horizontal axis, as an argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Axis {
    /// Rounds
    Round,
    /// Seconds since the run began, without evaluations
    Seconds,
    /// Bytes that agents have received and sent since the run began, without evaluations
    Bytes,
}

impl From<Axis> for XAxis {
    fn from(axis: Axis) -> Self {
        match axis {
            Axis::Round => Self::Round,
            Axis::Seconds => Self::Seconds,
            Axis::Bytes => Self::Bytes,
        }
    }
}

/// The band around a mean over seeds.
#[derive(Debug, clap::Args)]
pub struct BandArgs {
    /// The band around the mean over runs that differ only in the seed
    #[arg(long, value_name = "BAND", default_value = "sd")]
    pub band: Band,
}

impl PictureArgs {
    /// Checks that `--output` ends in a format that can be written, and that `--format` contains it.
    ///
    /// # Errors
    /// If it does not.
    pub fn check(&self, output: Option<&Path>) -> anyhow::Result<()> {
        let Some(path) = output else { return Ok(()) };
        let extension = path.extension().and_then(|extension| extension.to_str()).unwrap_or_default().to_ascii_lowercase();
        if UNSUPPORTED.contains(&extension.as_str()) {
            bail!("--output {}: figures are written as .svg or .png", path.display());
        }
        match Format::of(path) {
            Some(format) if !self.format.is_empty() && !self.format.contains(&format) => {
                bail!("--output {} and --format contradict each other: leave one of them out", path.display())
            }
            _ => Ok(()),
        }
    }
}

const EXAMPLES: &str = "\
Examples:
  mpibayes plot runs/first                                    # every figure, into runs/first/plots
  mpibayes plot runs/first history --against seconds --metric accuracy,log_likelihood --format svg
  mpibayes plot runs/first posterior --parameter 'weights_1[0,3]' --parameter log_precision
  mpibayes plot runs/first posterior --pair 'weights_1[0,0]' 'weights_1[0,1]'
  mpibayes plot runs/first reliability --output figure3.png --size 500x500 --scale 3
  mpibayes plot runs/sweep --metric accuracy                  # the runs of a sweep in one figure";

/// Arguments of `mpibayes plot`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct PlotArgs {
    /// The folder of a run, its result file, or the folder of a sweep for a figure of each metric over the settings
    pub run: PathBuf,
    /// The figures of a run to draw [default: all that the run has data for]
    #[arg(value_name = "KIND")]
    pub kinds: Vec<FigureKind>,
    /// The folder for the figures, or the file for a single one [default: RUN/plots]
    #[arg(long, short, value_name = "DIR|FILE")]
    pub output: Option<PathBuf>,
    /// Size and formats.
    #[command(flatten)]
    pub picture: PictureArgs,
    /// The band around a mean.
    #[command(flatten)]
    pub band: BandArgs,
    /// The horizontal axis of `history` and of the figures of a sweep [default: round; for a sweep, that of `compare`]
    #[arg(long, value_name = "AXIS")]
    pub against: Option<Axis>,
    /// Only these columns of the metrics or the history, separated by commas
    #[arg(long, value_name = "NAME,...", value_delimiter = ',')]
    pub metric: Vec<String>,
    /// Also draw all columns of the history, which the method writes in each round
    #[arg(long)]
    pub details: bool,
    /// The share of the posterior in the intervals of `coefficients` [default: 0.9]
    #[arg(long, value_name = "SHARE", value_parser = interval)]
    pub interval: Option<f64>,
    /// Give the coefficient for a change of a column by this many of its units, such as `age=10`; can be repeated
    #[arg(long, value_name = "COLUMN=UNITS", value_parser = per)]
    pub per: Vec<Per>,
    /// A term of `coefficients`, such as `clinic` or `clinic[West]`, or a parameter for `posterior` and `chains`: `NAME[0,3]`, or NAME for all elements of a variable; can be repeated
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_sizes_and_scales_are_refused() {
        assert_eq!((size("800x600"), size("800 × 600")), (Ok((800, 600)), Ok((800, 600))));
        for wrong in ["", "800", "x", "0x5", "-800x600", "800x600x1", "99999999999x5", "1e3x500", "800.5x600"] {
            assert!(size(wrong).is_err(), "{wrong}");
        }
        assert!(scale("1.5").is_ok() && ["0", "-1", "nan", "inf", "x", "1e9"].into_iter().all(|wrong| scale(wrong).is_err()));
        assert_eq!(Format::of(Path::new("a/b.PNG")), Some(Format::Png));
        assert_eq!([Format::of(Path::new("a/b.5")), Format::of(Path::new("svg"))], [None, None]);
    }
}
