//! `mpibayes data`: lists public data sets, downloads them, generates synthetic ones, and verifies datasets.

use super::bar::{BYTES, progress_bar};
use super::make::{self, MakeArgs};
use super::output::print;
use super::verify::verify;
use crate::download::catalog::{Availability, CATALOG, DataSet, RemoteFile, data_set};
use crate::download::{Fetched, RetryPolicy, fetch};
use crate::text;
use anyhow::{Context, anyhow, bail, ensure};
use std::path::PathBuf;
use std::process::ExitCode;

const EXAMPLES: &str = "\
Examples:
  mpibayes data list
  mpibayes data get mnist
  mpibayes data get mnist --from https://mirror.example.org/mnist
  mpibayes data make twonorm --rows 7400 --seed 1 -o twonorm.csv
  mpibayes data make topics --documents 20000 --words 2000 --topics 20 --seed 1 -o topics.docword.txt.gz
  mpibayes data verify datasets/mnist.h5

Files go into $MPIBAYES_DATA/NAME, or into datasets/NAME if the variable is not set.";

/// Arguments of `mpibayes data`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct DataArgs {
    /// What to do
    #[command(subcommand)]
    pub action: DataAction,
}

/// Subcommands of `mpibayes data`.
#[derive(Debug, clap::Subcommand)]
pub enum DataAction {
    /// Show the data sets of the papers: size, license, home page, and which of them are on this machine
    List,
    /// Download a data set, or resume an interrupted download; existing files are kept
    Get(GetArgs),
    /// Generate a synthetic data set: rows as CSV with the label in the last column, or documents with known topics
    Make(MakeArgs),
    /// Read all of a dataset, and compare its content with the digest in its file
    Verify(VerifyArgs),
}

/// Arguments of `mpibayes data verify`.
#[derive(Debug, clap::Args)]
pub struct VerifyArgs {
    /// The dataset, made by `mpibayes import`
    #[arg(value_name = "FILE.h5")]
    pub file: PathBuf,
}

/// Arguments of `mpibayes data get`.
#[derive(Debug, clap::Args)]
pub struct GetArgs {
    /// The data set, as `mpibayes data list` names it
    pub name: String,
    /// A mirror: the URL of the folder that holds the files
    #[arg(long, value_name = "URL")]
    pub from: Option<String>,
    /// The folder to download into [default: NAME in $MPIBAYES_DATA, or in datasets]
    #[arg(long, value_name = "DIR")]
    pub into: Option<PathBuf>,
    /// Consecutive failed attempts before giving up
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=100))]
    pub attempts: u32,
}

/// Runs `mpibayes data`.
///
/// # Errors
/// When a data set cannot be downloaded, generated or written, or a dataset is damaged.
pub fn run(args: &DataArgs) -> anyhow::Result<ExitCode> {
    let report = match &args.action {
        DataAction::List => list(),
        DataAction::Get(args) => get(args)?,
        DataAction::Make(args) => make::make(args)?,
        DataAction::Verify(VerifyArgs { file }) => verify(file)?,
    };
    print(&report).context("cannot print the report")?;
    Ok(ExitCode::SUCCESS)
}

/// The folders that may contain data sets; downloads go to the first.
fn folders() -> Vec<PathBuf> {
    let configured = std::env::var_os("MPIBAYES_DATA").filter(|folder| !folder.is_empty());
    configured.map(PathBuf::from).into_iter().chain([PathBuf::from("datasets")]).collect()
}

/// The folder that contains all files of a data set, if there is one.
fn local_folder(name: &str, files: &[RemoteFile]) -> Option<PathBuf> {
    folders().into_iter().map(|folder| folder.join(name)).find(|folder| files.iter().all(|file| folder.join(file.name).exists()))
}

/// How to get a data set, for people.
fn instructions(set: &DataSet) -> String {
    match set.availability {
        Availability::Download { files, .. } => match local_folder(set.name, files) {
            Some(folder) => format!("available in {}", folder.display()),
            None => format!("mpibayes data get {}", set.name),
        },
        Availability::Generate(generator) => format!("mpibayes data make {0} -o {0}.csv", generator.name()),
        Availability::Manual(steps) => format!("by hand: {steps}"),
    }
}

fn list() -> String {
    let mut report = String::new();
    for set in CATALOG {
        let lines = [
            ("for", set.used_for),
            ("size", set.size),
            ("license", set.license),
            ("home", set.home),
            ("get it", &instructions(set)),
        ]
        .map(|(name, line)| (name, line.to_owned()));
        report.push_str(&format!("{}\n{}\n", set.name, text::pairs(&lines)));
    }
    report
}

fn get(args: &GetArgs) -> anyhow::Result<String> {
    let set = data_set(&args.name).ok_or_else(|| {
        let names: Vec<&str> = CATALOG.iter().map(|set| set.name).collect();
        anyhow!("there is no data set {:?}; choose one of: {}", args.name, names.join(", "))
    })?;
    let (files, then) = match set.availability {
        Availability::Download { files, then } => (files, then),
        Availability::Generate(_) => bail!("{} is synthetic; generate it: {}", set.name, instructions(set)),
        Availability::Manual(steps) => bail!("{} cannot be downloaded by a program; at {} {steps}", set.name, set.home),
    };
    let default = || local_folder(set.name, files).or_else(|| folders().first().map(|folder| folder.join(set.name)));
    let folder = args.into.clone().or_else(default).unwrap_or_default();
    std::fs::create_dir_all(&folder)
        .with_context(|| format!("{}: cannot create this folder; name another with --into", folder.display()))?;
    let retry = RetryPolicy { attempts: args.attempts, ..RetryPolicy::default() };
    let url = |file: &RemoteFile| match &args.from {
        Some(mirror) => format!("{}/{}", mirror.trim_end_matches('/'), file.name),
        None => file.url.to_owned(),
    };
    if !cfg!(feature = "download") {
        let missing = files.iter().filter(|file| !folder.join(file.name).exists());
        let commands: Vec<String> =
            missing.map(|file| format!("curl -L -o {} {}", folder.join(file.name).display(), url(file))).collect();
        ensure!(
            commands.is_empty(),
            "this mpibayes was built without downloads (cargo feature `download`); fetch the files by hand: {}",
            commands.join("; ")
        );
    }
    let mut lines = Vec::new();
    for file in files {
        let target = folder.join(file.name);
        let bar = progress_bar(file.name, BYTES);
        let fetched = fetch(&url(file), &target, retry, |received, total| {
            if let Some(total) = total {
                bar.set_length(total);
            }
            bar.set_position(received);
        });
        bar.finish_and_clear();
        let line = match fetched? {
            Fetched::Existing => "exists, without a recorded checksum to compare with".to_owned(),
            Fetched::Verified => "exists, with the checksum of its first download".to_owned(),
            Fetched::Downloaded(sha256) => {
                let size = std::fs::metadata(&target).with_context(|| target.display().to_string())?.len();
                let digest = text::short_digest(&sha256);
                format!("{}, SHA-256 {digest}... recorded in {}.sha256", text::bytes(size), file.name)
            }
        };
        lines.push((file.name, line));
    }
    let then = then.replace("{}", &folder.display().to_string()).replace("NAME", set.name);
    Ok(format!("{}\n{}license: {} ({})\nthen: {then}\n", folder.display(), text::pairs(&lines), set.license, set.home))
}
