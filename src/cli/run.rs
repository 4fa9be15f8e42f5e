//! `mpibayes run`: starts the run of a run file, or goes on with it.

use crate::cluster::mpi::World;
use crate::cluster::{EXIT_CODE, Fault};
use crate::config::{Assignment, Carrier, Registry, RunError, RunSpec, launch};
use crate::results::RunFolder;
use anyhow::Context as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

/// What can be typed after `mpibayes run`.
#[derive(clap::Args, Debug)]
pub struct RunArgs {
    /// The run file
    #[arg(value_name = "FILE.toml")]
    pub file: PathBuf,
    /// Replace a value of the run file, as in --set method.rounds=20; may be given several times
    #[arg(long = "set", value_name = "KEY=VALUE", value_parser = assignment)]
    pub set: Vec<Assignment>,
    /// The folder for results and checkpoints; runs/NAME for NAME.toml without this
    #[arg(long, value_name = "DIR")]
    pub output: Option<PathBuf>,
}

/// What was typed is a key and a value.
fn assignment(typed: &str) -> Result<Assignment, String> {
    Assignment::parse(typed).ok_or_else(|| "write key=value, such as seed=2".into())
}

/// Runs it.
///
/// # Errors
/// What is wrong with the run file, the data or the folder, or what ended the run; on a single process. With several ranks any
/// error ends the whole job from here.
pub fn run(args: &RunArgs, registry: &Registry) -> anyhow::Result<ExitCode> {
    let spec = RunSpec::read(&args.file, &args.set)?;
    let output = match &args.output {
        Some(output) => output.clone(),
        None => Path::new("runs").join(args.file.file_stem().context("the run file has no name to call the folder after")?),
    };
    let world = if World::is_launched() { Some(World::start()?) } else { None };
    let carrier = world.as_ref().map_or(Carrier::Threads, Carrier::Mpi);
    let is_root = world.as_ref().is_none_or(|world| world.rank() == 0);
    let every = Duration::try_from_secs_f64(spec.cluster.checkpoint_every).unwrap_or(Duration::MAX);
    let mut folder = RunFolder::new(&output, every, is_root);
    if folder.is_finished() {
        if is_root {
            println!("{} is finished already; mpibayes summary {} shows it", output.display(), output.display());
        }
        return Ok(ExitCode::SUCCESS);
    }
    match (launch(&spec, registry, &carrier, &mut folder), &world) {
        (Ok(()), _) => Ok(ExitCode::SUCCESS),
        (Err(RunError::Fault(fault)), _) => Ok(failed(&fault)),
        // One rank that leaves alone would keep the others waiting.
        (Err(error), Some(world)) if world.size() > 1 => {
            eprintln!("mpibayes: error: rank {}: {error}", world.rank());
            world.abort(1)
        }
        (Err(error), _) => Err(error.into()),
    }
}

fn failed(fault: &Fault) -> ExitCode {
    eprintln!("mpibayes: {fault}");
    ExitCode::from(u8::try_from(EXIT_CODE).unwrap_or(1))
}
