//! `mpibayes resume`: resumes the run in a folder, and makes a finished one longer.

use super::run::{OneRunArgs, carry_out, launch};
use crate::config::Registry;
use crate::job::{Amount, NewLength, doubling_command, run_to_resume};
use crate::results::is_finished;
use std::path::PathBuf;
use std::process::ExitCode;

const EXAMPLES: &str = "\
Examples:
  mpirun -n 8 mpibayes resume runs/my                      # resumes a run that was stopped or killed
  mpibayes resume runs/my --steps +20000                   # makes a finished run longer";

/// Arguments of `mpibayes resume`.
#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct ResumeArgs {
    /// The folder of the run
    #[arg(value_name = "RUN")]
    pub folder: PathBuf,
    /// Make a finished run of sghmc, ec_sghmc, ec_sgld or async_sghmc longer: +20000 for that many more steps, or 30000 for the total
    #[arg(long, value_name = "+N or N", value_parser = parse_amount, group = "length")]
    pub steps: Option<Amount>,
    /// Make a finished run of dsgld longer: +200 for that many more rounds, or 300 for the total
    #[arg(long, value_name = "+N or N", value_parser = parse_amount, group = "length")]
    pub rounds: Option<Amount>,
    /// Make a finished run of hmc longer: +500 for that many more draws of each chain, or 1500 for the total
    #[arg(long, value_name = "+N or N", value_parser = parse_amount, group = "length")]
    pub draws: Option<Amount>,
    /// Where the data of the run are now, if they have moved
    #[arg(long, value_name = "FILE")]
    pub data: Option<PathBuf>,
    /// How the run is carried out.
    #[command(flatten)]
    pub one: OneRunArgs,
}

/// Parses `+N` or `N`.
fn parse_amount(typed: &str) -> Result<Amount, String> {
    let number = |digits: &str| digits.replace(['_', ','], "").parse().ok().filter(|number| *number > 0);
    let amount = match typed.strip_prefix('+') {
        Some(more) => number(more).map(Amount::More),
        None => number(typed).map(Amount::Total),
    };
    amount.ok_or_else(|| "write +20000 for that many more, or 30000 for the total".into())
}

/// Resumes the run.
///
/// # Errors
/// On a single process, anything that is wrong with the folder or the data, or that ended the run. With several ranks errors are printed.
pub fn run(args: &ResumeArgs, registry: &Registry) -> anyhow::Result<ExitCode> {
    let lengths = [("steps", args.steps), ("rounds", args.rounds), ("draws", args.draws)];
    let length = lengths.into_iter().find_map(|(key, value)| Some(NewLength { key: key.to_owned(), value: value? }));
    args.one.job.begin(Some(&args.one.limit));
    let read = || {
        let run = run_to_resume(&args.folder, args.data.as_deref(), length.as_ref(), registry)?;
        if length.is_none()
            && is_finished(&args.folder)?
            && let Some(command) = doubling_command(&args.folder, &run.to_toml()?, registry)
        {
            let data = args.data.as_ref().map_or_else(String::new, |data| format!(" --data {}", data.display()));
            args.one.job.reporting().print(&format!("the run is finished; `{command}{data}` makes it longer"));
        }
        Ok(run)
    };
    launch(registry, Some(&args.folder), &args.one.job, read, |run, ranks| {
        carry_out(run, registry, ranks, &args.folder, &args.one)
    })
}
