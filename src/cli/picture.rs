//! What can be typed about pictures, and the files that they become.

use crate::partial::PartialFile;
use crate::plots::{Against, Drawing, Figure};
use anyhow::{Context, bail};
use std::io::Write;
use std::path::{Path, PathBuf};

/// The size and the formats of pictures.
#[derive(Debug, clap::Args)]
pub struct PictureArgs {
    /// Formats, separated by commas: both by default, or the one that --output ends in
    #[arg(long, value_name = "svg,png", value_delimiter = ',')]
    pub format: Vec<Format>,
    /// Width and height, such as 800x600: in pixels of the SVG, of which 96 make an inch; fitting by default
    #[arg(long, value_name = "WIDTHxHEIGHT", value_parser = size)]
    pub size: Option<(u32, u32)>,
    /// Pixels of the PNG for each of the SVG, in both directions
    #[arg(long, value_name = "FACTOR", default_value = "2", value_parser = scale)]
    pub scale: f64,
}

/// A format of pictures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Format {
    /// Scalable Vector Graphics, for papers and browsers
    Svg,
    /// Portable Network Graphics
    Png,
}

impl Format {
    fn extension(self) -> &'static str {
        match self {
            Self::Svg => "svg",
            Self::Png => "png",
        }
    }

    /// The format that the name of a file tells.
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

/// The horizontal axis, as typed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Over {
    /// Rounds
    Round,
    /// Seconds since the run began, without those of evaluations
    Seconds,
    /// Bytes between ranks since the run began
    Bytes,
}

impl From<Over> for Against {
    fn from(over: Over) -> Self {
        match over {
            Over::Round => Self::Round,
            Over::Seconds => Self::Seconds,
            Over::Bytes => Self::Bytes,
        }
    }
}

impl PictureArgs {
    /// Draws a figure into `stem` with the extension of each format, replacing what is there, and tells the files.
    ///
    /// # Errors
    /// When the figure does not fit its size, or a file cannot be written.
    pub fn write(&self, figure: &Figure, stem: &Path) -> anyhow::Result<Vec<PathBuf>> {
        let named = Format::of(stem);
        let drawing = figure.draw(self.size)?;
        let mut files = Vec::new();
        for format in [Format::Svg, Format::Png] {
            let wanted = match (self.format.as_slice(), named) {
                ([], Some(named)) => named == format,
                ([], None) => true,
                (formats, _) => formats.contains(&format),
            };
            if wanted {
                let path = match named {
                    Some(_) => stem.with_extension(format.extension()),
                    // A name may have a point that begins no extension, such as `alpha0.5`.
                    None => PathBuf::from(format!("{}.{}", stem.display(), format.extension())),
                };
                write(&path, &self.encode(&drawing, format)?).with_context(|| format!("{}: cannot write", path.display()))?;
                files.push(path);
            }
        }
        Ok(files)
    }

    fn encode(&self, drawing: &Drawing, format: Format) -> anyhow::Result<Vec<u8>> {
        Ok(match format {
            Format::Svg => drawing.svg().as_bytes().to_vec(),
            Format::Png => drawing.png(self.scale)?,
        })
    }

    /// Refuses an `--output` whose extension is that of a picture, but none of those that `--format` asks for.
    ///
    /// # Errors
    /// When they contradict each other.
    pub fn check(&self, output: Option<&Path>) -> anyhow::Result<()> {
        match output.and_then(|path| Some((path, Format::of(path)?))) {
            Some((path, format)) if !self.format.is_empty() && !self.format.contains(&format) => {
                bail!("--output {} and --format contradict each other: leave one of them out", path.display())
            }
            _ => Ok(()),
        }
    }
}

fn write(path: &Path, content: &[u8]) -> std::io::Result<()> {
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)?;
    }
    let partial = PartialFile::new(path);
    std::fs::File::create(partial.path())?.write_all(content)?;
    partial.commit()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_and_scales_are_checked() {
        assert_eq!((size("800x600"), size("800 × 600")), (Ok((800, 600)), Ok((800, 600))));
        for wrong in ["", "800", "x", "0x5", "-800x600", "800x600x1", "99999999999x5", "1e3x500", "800.5x600"] {
            assert!(size(wrong).is_err(), "{wrong}");
        }
        assert!(scale("1.5").is_ok() && ["0", "-1", "nan", "inf", "x", "1e9"].into_iter().all(|wrong| scale(wrong).is_err()));
        assert_eq!(Format::of(Path::new("a/b.PNG")), Some(Format::Png));
        assert_eq!([Format::of(Path::new("a/b.5")), Format::of(Path::new("svg"))], [None, None]);
    }
}
