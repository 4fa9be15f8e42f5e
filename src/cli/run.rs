//! `mpibayes run`: starts the run of a run file, or goes on with it.

use super::output::print_error;
use crate::cluster::mpi::World;
use crate::config::{Assignment, Carrier, Registry, RunError, RunSpec, launch};
use crate::results::{self, RunFolder};
use anyhow::{Context as _, anyhow};
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

/// The folder of a run: the one that was typed, or one called after the run file.
pub(super) fn output(typed: Option<&Path>, file: &Path) -> anyhow::Result<PathBuf> {
    match typed {
        Some(output) => Ok(output.to_owned()),
        None => Ok(Path::new("runs").join(file.file_stem().context("the run file has no name to call the folder after")?)),
    }
}

/// What was typed is a key and a value.
pub(super) fn assignment(typed: &str) -> Result<Assignment, String> {
    Assignment::parse(typed).ok_or_else(|| "write key=value, such as seed=2".into())
}

/// The exit code of a run that was saved and stopped: the same command goes on with it (`EX_TEMPFAIL` of sysexits.h).
pub const STOPPED: u8 = 75;

/// Runs it.
///
/// # Errors
/// What is wrong with the run file, the data or the folder, or what ended the run; on a single process. With several ranks any
/// error is said from here.
pub fn run(args: &RunArgs, registry: &Registry) -> anyhow::Result<ExitCode> {
    results::listen();
    let output = output(args.output.as_deref(), &args.file)?;
    let Some(world) = (if World::is_launched() { Some(World::start()?) } else { None }) else {
        let spec = RunSpec::read(&args.file, &args.set, registry)?;
        return match carry(&spec, registry, &Carrier::Threads, &output) {
            Err(RunError::Fault(fault)) => fault.end_process(),
            other => Ok(other?),
        };
    };
    // Rank 0 reads for all: the others might see another state of a shared file system, or none.
    let is_root = world.rank() == 0;
    let read = || RunSpec::read(&args.file, &args.set, registry)?.to_toml().map_err(anyhow::Error::from);
    let read = if is_root { read().map_err(|error| error.to_string()) } else { Ok(String::new()) };
    let outcome = world.agree(read).map_err(RunError::Agreed).and_then(|text| {
        let text = world.broadcast_bytes(is_root.then(|| text.into_bytes()));
        let spec = RunSpec::from_toml(&String::from_utf8_lossy(&text))?;
        carry(&spec, registry, &Carrier::Mpi(&world), &output)
    });
    let code = match outcome {
        Ok(code) => code,
        // All ranks know of it and leave together; one of them says so.
        Err(error @ RunError::Agreed(_)) => {
            if is_root {
                print_error(&error.into());
            }
            ExitCode::FAILURE
        }
        // One rank that leaves alone would keep the others waiting.
        Err(error) => {
            print_error(&anyhow!("rank {}: {error}", world.rank()));
            world.abort(1)
        }
    };
    // Until rank 0 has written the results and said what there is to say. Ending MPI waits as well, but takes all of a core, and
    // a launcher that saw another rank fail first might kill rank 0 before: its exit code is that of the job.
    drop(world.agree(Ok(())));
    Ok(if is_root { code } else { ExitCode::SUCCESS })
}

/// Carries the run to its end.
fn carry(spec: &RunSpec, registry: &Registry, carrier: &Carrier, output: &Path) -> Result<ExitCode, RunError> {
    let every = Duration::try_from_secs_f64(spec.cluster.checkpoint_every).unwrap_or(Duration::MAX);
    let mut folder = RunFolder::new(output, every, World::is_primary());
    launch(spec, registry, carrier, &mut folder)?;
    Ok(if folder.stopped() { ExitCode::from(STOPPED) } else { ExitCode::SUCCESS })
}
