//! `mpibayes data`: lists the data sets of the papers, fetches them from their public homes, makes those that have a rule.

use super::make::{self, MakeArgs};
use super::output::print;
use crate::data::catalog::{CATALOG, DataSet, RemoteFile, Way, data_set};
use crate::data::fetch::{self, Had, Patience};
use crate::report::text;
use anyhow::{Context, anyhow, bail};
use indicatif::{ProgressBar, ProgressStyle};
use std::io::IsTerminal;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

const EXAMPLES: &str = "\
Examples:
  mpibayes data list
  mpibayes data get mnist
  mpibayes data get mnist --from https://mirror.example.org/mnist
  mpibayes data make twonorm --rows 7400 --seed 1 -o twonorm.csv
  mpibayes data make topics --documents 20000 --words 2000 --topics 20 --seed 1 -o topics.docword.txt.gz

Files go into a folder of the set's name in $MPIBAYES_DATA, or in `datasets` where that is not set.";

/// What can be typed after `mpibayes data`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct DataArgs {
    /// What to do
    #[command(subcommand)]
    pub action: DataAction,
}

/// What can be done about data sets.
#[derive(Debug, clap::Subcommand)]
pub enum DataAction {
    /// Show the data sets of the papers: size, licence, home page, and which are here
    List,
    /// Fetch a data set, or go on with it where that was cut off; what is there already is taken
    Get(GetArgs),
    /// Make a data set by its rule: rows as CSV with the label in the last column, or documents with known topics
    Make(MakeArgs),
}

/// What can be typed after `mpibayes data get`.
#[derive(Debug, clap::Args)]
pub struct GetArgs {
    /// Its name, as `mpibayes data list` shows it
    pub name: String,
    /// A mirror: the address of the folder that holds the files
    #[arg(long, value_name = "URL")]
    pub from: Option<String>,
    /// The folder to put them into [default: NAME in $MPIBAYES_DATA, or in datasets]
    #[arg(long, value_name = "DIR")]
    pub into: Option<PathBuf>,
    /// How often to try in a row before giving up
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=100))]
    pub attempts: u32,
}

/// Does what was typed.
///
/// # Errors
/// What could not be fetched, made or written.
pub fn run(args: &DataArgs) -> anyhow::Result<ExitCode> {
    let said = match &args.action {
        DataAction::List => list(),
        DataAction::Get(args) => get(args)?,
        DataAction::Make(args) => make::make(args)?,
    };
    print(&said).context("cannot print what was done")?;
    Ok(ExitCode::SUCCESS)
}

/// The folders that data sets may lie in, the one to write to first.
fn folders() -> Vec<PathBuf> {
    let named = std::env::var_os("MPIBAYES_DATA").filter(|folder| !folder.is_empty());
    named.map(PathBuf::from).into_iter().chain([PathBuf::from("datasets")]).collect()
}

/// Where all files of a set lie, if they do.
fn here(name: &str, files: &[RemoteFile]) -> Option<PathBuf> {
    folders().into_iter().map(|folder| folder.join(name)).find(|folder| files.iter().all(|file| folder.join(file.name).exists()))
}

/// How a set is had, for people.
fn how(set: &DataSet) -> String {
    match set.way {
        Way::Fetch { files, .. } => match here(set.name, files) {
            Some(folder) => format!("here, in {}", folder.display()),
            None => format!("mpibayes data get {}", set.name),
        },
        Way::Make(generator) => format!("mpibayes data make {0} -o {0}.csv", generator.name()),
        Way::Look(what) => format!("by hand: {what}"),
    }
}

fn list() -> String {
    let mut text = String::new();
    for set in CATALOG {
        let lines = [("for", set.used_for), ("size", set.size), ("licence", set.licence), ("home", set.home), ("how", &how(set))]
            .map(|(name, line)| (name, line.to_owned()));
        text.push_str(&format!("{}\n{}\n", set.name, text::pairs(&lines)));
    }
    text
}

fn get(args: &GetArgs) -> anyhow::Result<String> {
    let set = data_set(&args.name).ok_or_else(|| {
        let names: Vec<&str> = CATALOG.iter().map(|set| set.name).collect();
        anyhow!("there is no data set {:?}; there are: {}", args.name, names.join(", "))
    })?;
    let (files, then) = match set.way {
        Way::Fetch { files, then } => (files, then),
        Way::Make(_) => bail!("{} is made, not fetched: {}", set.name, how(set)),
        Way::Look(what) => bail!("{} has no address that a program could fetch; at {} {what}", set.name, set.home),
    };
    let default = || here(set.name, files).or_else(|| folders().first().map(|folder| folder.join(set.name)));
    let folder = args.into.clone().or_else(default).unwrap_or_default();
    std::fs::create_dir_all(&folder)
        .with_context(|| format!("{}: cannot make this folder; name another with --into", folder.display()))?;
    let patience = Patience { attempts: args.attempts, ..Patience::default() };
    let mut lines = Vec::new();
    for file in files {
        let url = match &args.from {
            Some(mirror) => format!("{}/{}", mirror.trim_end_matches('/'), file.name),
            None => file.url.to_owned(),
        };
        let target = folder.join(file.name);
        let bar = bar(file.name);
        let had = fetch::fetch(&url, &target, patience, |have, total| {
            if let Some(total) = total {
                bar.set_length(total);
            }
            bar.set_position(have);
        });
        bar.finish_and_clear();
        lines.push((
            file.name,
            match had? {
                Had::There => "there already, with no checksum to compare it with".to_owned(),
                Had::Checked => "there already, with the checksum of its first download".to_owned(),
                Had::Fetched(sha256) => {
                    let size = std::fs::metadata(&target).with_context(|| target.display().to_string())?.len();
                    format!(
                        "{}, SHA-256 {}... written beside it",
                        text::bytes(size),
                        sha256.chars().take(super::DIGEST_SHOWN).collect::<String>()
                    )
                }
            },
        ));
    }
    let then = then.replace("{}", &folder.display().to_string()).replace("NAME", set.name);
    Ok(format!("{}\n{}licence: {} ({})\nthen: {then}\n", folder.display(), text::pairs(&lines), set.licence, set.home))
}

/// A bar on a terminal, and nothing elsewhere.
fn bar(name: &str) -> ProgressBar {
    if !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::no_length().with_message(name.to_owned());
    if let Ok(style) = ProgressStyle::with_template("{msg} {bar:30} {bytes} of {total_bytes}, {bytes_per_sec}, {eta} left") {
        bar.set_style(style);
    }
    bar.enable_steady_tick(Duration::from_millis(200));
    bar
}
