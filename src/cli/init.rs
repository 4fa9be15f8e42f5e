//! `mpibayes init`: writes a starting run file with every key, its default and its meaning.

use super::output::print;
use super::output_file::{self, Content};
use crate::config::Registry;
use crate::data::Split;
use crate::job::{DataFile, template_for};
use crate::methods::{Corpus, Table};
use crate::partial::PartialFile;
use crate::text;
use anyhow::Context;
use std::path::PathBuf;
use std::process::ExitCode;

/// Adds the names of all methods and models to the help of `mpibayes init`.
pub(super) fn list_names(command: clap::Command, registry: &Registry) -> clap::Command {
    let list = |names: Vec<&str>| names.join(", ");
    let (table, corpus) = (list(registry.methods_for::<Table>()), list(registry.methods_for::<Corpus>()));
    let method = format!("The method. For tables: {table}. For topic models: {corpus}");
    let model = format!("The model: {}. Without this, one that suits the data", list(registry.models()));
    command.mut_subcommand("init", |init| init.mut_arg("method", |arg| arg.help(method)).mut_arg("model", |arg| arg.help(model)))
}

/// Which method suits what, after the options.
const METHODS_BY_PURPOSE: &str = "\
Which method for what:
  hmc              posteriors without bias, with all rows in each step; a reference for other methods
  sghmc, ec_sghmc  posteriors of many rows that every rank can read
  dsgld            posteriors of many rows that stay where they are; chains travel
  dsvgd, p_dsvgd   posteriors of rows that stay where they are, in few rounds; particles travel
  svgd             particles in many rounds that sum gradients
  pvi, gvi         a Gaussian approximation: the fastest
  lda              topic models; results do not depend on the number of agents
  adlda, async_lda topic models as in the papers";

/// Tables with more rows get minibatches for intervals.
const MANY_ROWS: usize = 100_000;

/// What a run is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Goal {
    /// Means, standard deviations and intervals of parameters: hmc, or sghmc for more than 100,000 rows
    Intervals,
    /// Predictions for new rows: svgd
    Prediction,
    /// Data that stay at their agents: dsvgd
    Federated,
}

impl Goal {
    /// The method for data of this kind, and why; topic models have one for all goals.
    fn method(self, data: Option<&DataFile>) -> (&'static str, String) {
        match (self, data) {
            (_, Some(DataFile::Corpus(_))) => ("lda", "the data are documents".into()),
            (Self::Intervals, Some(data)) if data.len(Split::Train) > MANY_ROWS => {
                let rows = text::count(data.len(Split::Train));
                ("sghmc", format!("intervals are wanted, and of {rows} rows each step should need only some"))
            }
            (Self::Intervals, _) => ("hmc", "intervals are wanted, and each step can afford all rows".into()),
            (Self::Prediction, _) => ("svgd", "predictions are wanted, for which few particles suffice".into()),
            (Self::Federated, _) => ("dsvgd", "the data stay at their agents, between which particles travel".into()),
        }
    }
}

/// Arguments of `mpibayes init`.
#[derive(clap::Args, Debug)]
#[command(after_help = METHODS_BY_PURPOSE)]
pub struct InitArgs {
    /// The method [default: the one for --goal]
    #[arg(value_name = "METHOD", conflicts_with = "goal")]
    pub method: Option<String>,
    /// Choose the method by what the run is for [default: intervals]
    #[arg(long, value_name = "GOAL")]
    pub goal: Option<Goal>,
    /// The model
    #[arg(long, value_name = "NAME")]
    pub model: Option<String>,
    /// A dataset made by mpibayes import
    #[arg(long, value_name = "DATA.h5")]
    pub data: Option<PathBuf>,
    /// The file to write. Without this, the run file is printed
    #[arg(short, long, value_name = "FILE.toml")]
    pub output: Option<PathBuf>,
    /// Replace the file if it exists
    #[arg(short, long)]
    pub force: bool,
}

/// Writes the file.
///
/// # Errors
/// If there is no such method or model, the data do not suit it, or the file cannot be written.
pub fn run(args: &InitArgs, registry: &Registry) -> anyhow::Result<ExitCode> {
    let (method, reason) = match (&args.method, args.goal) {
        (Some(method), _) => (method.clone(), None),
        (None, goal) => {
            let data = args.data.as_deref().map(DataFile::open).transpose()?;
            let (method, reason) = goal.unwrap_or(Goal::Intervals).method(data.as_ref());
            (method.to_owned(), Some(reason))
        }
    };
    let text = template_for(registry, &method, reason.as_deref(), args.model.as_deref(), args.data.as_deref())?;
    let Some(output) = &args.output else {
        print(&text)?;
        return Ok(ExitCode::SUCCESS);
    };
    let shown = output.display();
    output_file::check(output, Content::Text, args.force, args.data.as_deref())?;
    if let Some(folder) = output.parent() {
        std::fs::create_dir_all(folder).with_context(|| format!("cannot create the folder {}", folder.display()))?;
    }
    let partial = PartialFile::new(output);
    std::fs::write(partial.path(), text).and_then(|()| partial.commit()).with_context(|| format!("cannot write {shown}"))?;
    print(&format!("wrote {shown} for {method}. `mpibayes check {shown}` checks it and says what it needs\n"))?;
    Ok(ExitCode::SUCCESS)
}
