//! `mpibayes plot`: pictures of a run.

use super::output::print;
use super::picture::{Format, Over, PictureArgs};
use super::summary::{data_file, find};
use crate::plots::{self, Figure, HistoryOptions};
use crate::results::{RunFile, SampleKind, Samples};
use anyhow::{Context, bail};
use std::cell::OnceCell;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// The group of draws that is drawn.
const POSTERIOR: &str = "posterior";

const EXAMPLES: &str = "\
Examples:
  mpibayes plot runs/first                                    # all there is, into runs/first/plots
  mpibayes plot runs/first history --against seconds --metric accuracy,log_likelihood --format svg
  mpibayes plot runs/first posterior --parameter 'weights_1[0,3]' --parameter log_precision
  mpibayes plot runs/first posterior --pair 'weights_1[0,0]' 'weights_1[0,1]'
  mpibayes plot runs/first reliability --output figure3.png --size 500x500 --scale 3";

/// What can be typed after `mpibayes plot`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct PlotArgs {
    /// The folder of a run, or its result file
    pub run: PathBuf,
    /// What to draw; all that the run has data for by default
    #[arg(value_name = "KIND")]
    pub kinds: Vec<Kind>,
    /// The folder for the pictures, or the file for a single one; RUN/plots by default
    #[arg(long, short, value_name = "DIR|FILE")]
    pub output: Option<PathBuf>,
    /// The size and the formats.
    #[command(flatten)]
    pub picture: PictureArgs,
    /// What the horizontal axis of `history` shows
    #[arg(long, value_name = "AXIS", default_value = "round")]
    pub against: Over,
    /// Only these columns of the metrics or the method's history, separated by commas
    #[arg(long, value_name = "NAME,...", value_delimiter = ',')]
    pub metric: Vec<String>,
    /// Also all that the method itself logged
    #[arg(long)]
    pub details: bool,
    /// A parameter for `posterior` and `chains`: `NAME[0,3]`, or NAME for all of a part; may be given several times
    #[arg(long, value_name = "NAME")]
    pub parameter: Vec<String>,
    /// Also a scatter of two parameters; may be given several times
    #[arg(long, num_args = 2, value_names = ["NAME", "NAME"], action = clap::ArgAction::Append)]
    pub pair: Vec<String>,
}

/// A kind of picture.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Kind {
    /// Metrics over rounds or seconds
    History,
    /// Accuracy by confidence, with the sizes of the bins
    Reliability,
    /// Marginal densities of parameters, with mean and 90 % interval
    Posterior,
    /// The draws of chains in their order
    Chains,
}

impl Kind {
    const ALL: [Self; 4] = [Self::History, Self::Reliability, Self::Posterior, Self::Chains];

    fn name(self) -> &'static str {
        match self {
            Self::History => "history",
            Self::Reliability => "reliability",
            Self::Posterior => "posterior",
            Self::Chains => "chains",
        }
    }

    /// What a run lacks that cannot be drawn so.
    fn lacks(self) -> &'static str {
        match self {
            Self::History => "it has neither metrics nor a history",
            Self::Reliability => "it has no reliability table, which runs on data with classes and test rows have",
            Self::Posterior => "it has no draws of parameters",
            Self::Chains => "it has no chains of draws in an order: particles have none",
        }
    }
}

/// A run that pictures are made of.
pub(super) struct Subject {
    /// Its result file.
    pub file: RunFile,
    /// Where that lies.
    pub path: PathBuf,
    /// Whether it is over.
    pub finished: bool,
}

impl Subject {
    /// Opens what was named: the folder of a run, or its result file.
    ///
    /// # Errors
    /// When there is no such run, it has no results yet, or its file cannot be read or is of another program.
    pub fn open(run: &Path) -> anyhow::Result<Self> {
        let path = find(run)?;
        let file = RunFile::open(&path)?;
        let finished = file.info().state.finished;
        Ok(Self { file, path, finished })
    }

    /// Method, model, data and seed in a line.
    fn heading(&self) -> String {
        let info = self.file.info();
        let data = match data_file(&info.config) {
            Some(file) => data_name(&file),
            None => match info.data_digest.get(..super::DIGEST_SHOWN) {
                Some(digest) => format!("data with digest {digest}"),
                None => String::new(),
            },
        };
        let facts = [format!("method {}", info.method), format!("model {}", info.model), data, format!("seed {}", info.seed)];
        let facts = facts.into_iter().filter(|fact| !fact.is_empty());
        let unfinished = (!self.finished).then(|| "not finished".to_owned());
        facts.chain(unfinished).collect::<Vec<_>>().join(" · ")
    }
}

/// The name of a dataset's file, for a heading.
pub(super) fn data_name(file: &str) -> String {
    format!("data {}", Path::new(file).file_name().map_or(file.into(), |name| name.to_string_lossy()))
}

/// A run with its draws, which are read when a picture first needs them.
struct Source<'a> {
    subject: &'a Subject,
    samples: OnceCell<Option<Samples>>,
}

impl Source<'_> {
    fn samples(&self) -> anyhow::Result<Option<&Samples>> {
        if self.samples.get().is_none() {
            let file = &self.subject.file;
            let there = file.sample_groups()?.iter().any(|group| group == POSTERIOR);
            // Of topics a single number says nothing.
            let there = there && file.kind(POSTERIOR)? != SampleKind::Topics;
            let samples = if there { Some(file.samples(POSTERIOR)?) } else { None };
            return Ok(self.samples.get_or_init(|| samples).as_ref());
        }
        Ok(self.samples.get().and_then(Option::as_ref))
    }

    /// The picture of a kind; none if the run has no data for it.
    fn figure(&self, kind: Kind, options: &HistoryOptions, parameters: &[String]) -> anyhow::Result<Option<Figure>> {
        let file = &self.subject.file;
        Ok(match kind {
            Kind::History => plots::history(file, options)?,
            Kind::Reliability => plots::reliability(file)?,
            Kind::Posterior => self.samples()?.map(|samples| plots::posterior(samples, parameters)).transpose()?.flatten(),
            // The order of particles means nothing.
            Kind::Chains => self
                .samples()?
                .filter(|samples| samples.kind == SampleKind::Chains)
                .map(|samples| plots::chains(samples, parameters))
                .transpose()?
                .flatten(),
        })
    }

    /// What could be drawn, for a message.
    fn there(&self) -> anyhow::Result<String> {
        let mut names = Vec::new();
        for kind in Kind::ALL {
            if self.figure(kind, &HistoryOptions::default(), &[])?.is_some() {
                names.push(kind.name());
            }
        }
        Ok(if names.is_empty() { "nor anything else to draw".into() } else { format!("there is {}", names.join(", ")) })
    }
}

/// Formats that people may ask for, and that are not written.
const OTHER_PICTURES: [&str; 8] = ["pdf", "eps", "ps", "jpg", "jpeg", "gif", "tif", "tiff"];

/// Draws what was asked for.
///
/// # Errors
/// When there is no such run, nothing of the kind to draw, or a file cannot be written.
pub fn run(args: &PlotArgs) -> anyhow::Result<ExitCode> {
    let into_file = args.output.as_deref().filter(|path| Format::of(path).is_some());
    args.picture.check(into_file)?;
    let is_other = |path: &&Path| {
        let extension = path.extension().and_then(|extension| extension.to_str()).unwrap_or_default().to_ascii_lowercase();
        OTHER_PICTURES.contains(&extension.as_str())
    };
    if let Some(other) = args.output.as_deref().filter(is_other) {
        bail!("--output {}: pictures are written as .svg or .png", other.display());
    }
    let subject = Subject::open(&args.run)?;
    let pictures = pictures(args, &Source { subject: &subject, samples: OnceCell::new() })?;
    if let (Some(file), [_, _, ..]) = (into_file, pictures.as_slice()) {
        let names: Vec<&str> = pictures.iter().map(|picture| picture.0.as_str()).collect();
        bail!("{} is one file for several pictures ({}): name one kind, or a folder", file.display(), names.join(", "));
    }
    if !subject.finished {
        eprintln!("mpibayes: {}: this run is not finished: the pictures show what is there so far", args.run.display());
    }
    let folder = match &args.output {
        Some(folder) => folder.clone(),
        None => subject.path.parent().unwrap_or(Path::new("")).join("plots"),
    };
    for (name, mut picture) in pictures {
        picture.subtitle = subject.heading();
        let stem = into_file.map_or_else(|| folder.join(&name), Path::to_path_buf);
        let files = args.picture.write(&picture, &stem)?;
        if !picture.remark.is_empty() {
            let chooses = if name == Kind::History.name() { "--metric NAME" } else { "--parameter 'NAME[0,3]'" };
            eprintln!("mpibayes: {name}: {} {chooses} chooses others.", picture.remark);
        }
        let lines: String = files.iter().map(|file| format!("{}\n", file.display())).collect();
        print(&lines).context("cannot print the names of the files")?;
    }
    Ok(ExitCode::SUCCESS)
}

/// The pictures that were asked for, each with its name.
fn pictures(args: &PlotArgs, source: &Source) -> anyhow::Result<Vec<(String, Figure)>> {
    let run = args.run.display();
    let mut pictures = Vec::new();
    let options = HistoryOptions { against: args.against.into(), columns: args.metric.clone(), details: args.details };
    let kinds = if args.kinds.is_empty() { &Kind::ALL[..] } else { &args.kinds };
    for &kind in kinds {
        let drawn = source.figure(kind, &options, &args.parameter);
        match drawn.with_context(|| run.to_string())? {
            Some(figure) => pictures.push((kind.name().to_owned(), figure)),
            None if args.kinds.is_empty() => {}
            None => bail!("{run}: nothing to draw for {:?}: {}; {}", kind.name(), kind.lacks(), source.there()?),
        }
    }
    for (place, names) in args.pair.chunks(2).enumerate() {
        let [first, second] = names else { continue };
        let Some(samples) = source.samples()? else { bail!("{run}: nothing to draw for --pair: {}", Kind::Posterior.lacks()) };
        let name = if args.pair.len() > 2 { format!("pair-{}", place + 1) } else { "pair".into() };
        pictures.extend(plots::pair(samples, first, second).with_context(|| run.to_string())?.map(|figure| (name, figure)));
    }
    if pictures.is_empty() {
        bail!("{run}: nothing to draw: the run has no metrics, no history, no reliability table and no draws");
    }
    Ok(pictures)
}
