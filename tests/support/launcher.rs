//! Programs that tests start, under mpirun or alone: they know of no other launcher, for a suite that itself runs under one must not
//! hand its word on; and they are watched, so that one that hangs is killed and reported.

#![allow(dead_code, reason = "each binary that includes this file uses a part of it")]

use std::ffi::OsStr;
use std::io::Read;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// The command without what `mpirun` or `srun` has told the tests.
pub fn unlaunched(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(program);
    for (name, _) in std::env::vars_os() {
        let name = name.to_string_lossy().into_owned();
        if ["OMPI_", "PMIX_", "PMI_", "SLURM_"].iter().any(|prefix| name.starts_with(prefix)) {
            command.env_remove(name);
        }
    }
    command
}

/// A program that takes longer hangs.
const PATIENCE: Duration = Duration::from_secs(240);

/// Who starts a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Launcher {
    /// Nobody: one process.
    Alone,
    /// `mpirun` with this many ranks.
    Mpirun(u32),
}

/// How it ended.
pub struct Ended {
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
    pub seconds: f64,
}

impl Ended {
    /// The messages that name a rank.
    pub fn faults(&self) -> Vec<&str> {
        self.stderr.lines().filter(|line| line.starts_with("mpibayes: rank")).collect()
    }
}

/// This program with these arguments.
pub fn command(launcher: Launcher, arguments: &[&str]) -> Result<Command, String> {
    let program = std::env::current_exe().map_err(|error| format!("cannot find this program: {error}"))?;
    let mut command = match launcher {
        Launcher::Alone => unlaunched(program),
        Launcher::Mpirun(ranks) => {
            let mut command = unlaunched("mpirun");
            command.args(["--oversubscribe", "-n", &ranks.to_string()]).arg(program);
            command
        }
    };
    command.env("OPENBLAS_NUM_THREADS", "1");
    if launcher != Launcher::Alone {
        command.env("OMPI_ALLOW_RUN_AS_ROOT", "1").env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
        command.env("OMPI_MCA_rmaps_base_oversubscribe", "1");
    }
    command.args(arguments);
    Ok(command)
}

/// Runs a command to its end, at the latest until the patience ends.
pub fn watched(mut command: Command) -> Result<Ended, String> {
    let since = Instant::now();
    let program = command.get_program().to_string_lossy().into_owned();
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
    let mut child = command.spawn().map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => format!("{program} is not on the PATH: install Open MPI (openmpi-bin) to run this suite"),
        _ => format!("cannot start {program}: {error}"),
    })?;
    let (stdout, stderr) = (reader(child.stdout.take()), reader(child.stderr.take()));
    let status = loop {
        if let Some(status) = child.try_wait().map_err(|error| error.to_string())? {
            break status;
        }
        if since.elapsed() > PATIENCE {
            end(&mut child);
            let (stdout, stderr) = (stdout.join().unwrap_or_default(), stderr.join().unwrap_or_default());
            return Err(format!("it hangs: killed after {} s\n{stdout}{stderr}", PATIENCE.as_secs()));
        }
        std::thread::sleep(Duration::from_millis(2));
    };
    let seconds = since.elapsed().as_secs_f64();
    let code = status.code().unwrap_or_else(|| -status.signal().unwrap_or(0));
    Ok(Ended { code, stdout: stdout.join().unwrap_or_default(), stderr: stderr.join().unwrap_or_default(), seconds })
}

fn reader(pipe: Option<impl Read + Send + 'static>) -> std::thread::JoinHandle<String> {
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Some(mut pipe) = pipe {
            drop(pipe.read_to_end(&mut bytes));
        }
        String::from_utf8_lossy(&bytes).into_owned()
    })
}

/// Ends a process and its group: first so that mpirun can take its ranks along, then for certain.
fn end(child: &mut Child) {
    let group = -child.id().cast_signed();
    // SAFETY: plain system calls; the group was made for this child.
    unsafe { libc::kill(group, libc::SIGTERM) };
    let since = Instant::now();
    while matches!(child.try_wait(), Ok(None)) && since.elapsed() < Duration::from_secs(3) {
        std::thread::sleep(Duration::from_millis(20));
    }
    // SAFETY: as above.
    unsafe { libc::kill(group, libc::SIGKILL) };
    drop(child.wait());
}
