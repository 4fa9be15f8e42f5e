//! Starts programs for tests, alone or under `mpirun`, watches them, and kills and reports one that hangs.
//!
//! Every start has a temporary folder of its own (`TMPDIR`): two `mpirun` that start at the same moment would race for one session folder
//! of Open MPI and one of them would end with "mkdir: File exists". Variables of a launcher or scheduler that the tests themselves run
//! under are removed, or a program that is started alone would take itself for one of their ranks.

#![allow(dead_code, reason = "each binary that includes this file uses a part of it")]

use std::ffi::OsStr;
use std::io::Read;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, OnceLock};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// A program that takes longer hangs. No test waits for this long, and none depends on it: it is far beyond what the slowest program
/// needs on a busy machine.
pub const HANG: Duration = Duration::from_secs(600);

/// Time between two looks at a program.
pub const POLL: Duration = Duration::from_millis(2);

/// Who starts a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Launcher {
    /// One process without a launcher.
    Alone,
    /// `mpirun` with this many ranks.
    Mpirun(u32),
}

/// A command without the variables that a launcher or scheduler has set for the tests.
fn without_launcher(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(program);
    for (name, _) in std::env::vars_os() {
        let name = name.to_string_lossy().into_owned();
        if ["OMPI_", "PMIX_", "PMI_", "SLURM_"].iter().any(|prefix| name.starts_with(prefix)) {
            command.env_remove(name);
        }
    }
    command
}

/// Whether `mpirun` is that of Open MPI, whose options differ from those of MPICH.
fn is_open_mpi() -> bool {
    static IS_OPEN_MPI: OnceLock<bool> = OnceLock::new();
    *IS_OPEN_MPI.get_or_init(|| {
        let version = without_launcher("mpirun").arg("--version").output();
        version.is_ok_and(|version| String::from_utf8_lossy(&version.stdout).contains("Open MPI"))
    })
}

/// `mpirun` that may run as root, with more ranks than cores, which it does not bind: other tests run on the same cores.
fn mpirun() -> Command {
    let mut command = without_launcher("mpirun");
    command.args(["--bind-to", "none"]);
    if is_open_mpi() {
        command.env("OMPI_ALLOW_RUN_AS_ROOT", "1").env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
        command.env("OMPI_MCA_rmaps_base_oversubscribe", "1").arg("--oversubscribe");
    }
    command
}

/// A program with these arguments, to be started by a launcher.
pub fn program(launcher: Launcher, program: &Path, arguments: &[&str]) -> Command {
    let mut command = match launcher {
        Launcher::Alone => without_launcher(program),
        Launcher::Mpirun(ranks) => {
            let mut command = mpirun();
            command.args(["-n", &ranks.to_string()]).arg(program);
            command
        }
    };
    command.args(arguments);
    command
}

/// A program under `mpirun`, with a rank in each of these folders.
pub fn ranks_in(folders: &[&Path], program: &Path, arguments: &[&str]) -> Command {
    let mut command = mpirun();
    for (rank, folder) in folders.iter().enumerate() {
        if rank > 0 {
            command.arg(":");
        }
        command.args(["-n", "1", "--wdir"]).arg(folder).arg(program).args(arguments);
    }
    command
}

/// This program with these arguments.
pub fn command(launcher: Launcher, arguments: &[&str]) -> Result<Command, String> {
    let this = std::env::current_exe().map_err(|error| format!("cannot find this program: {error}"))?;
    let mut command = program(launcher, &this, arguments);
    command.env("OPENBLAS_NUM_THREADS", "1");
    Ok(command)
}

/// How a program ended.
#[derive(Debug)]
pub struct Ended {
    /// Its exit code, or minus the signal that killed it.
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
    pub seconds: f64,
    /// The most memory that the process held, in bytes.
    pub peak_memory: usize,
    /// Whether this is how the `mpirun` of MPICH has ended, which can hide the code of its ranks.
    by_mpich: bool,
}

impl Ended {
    /// What the program has written to both streams.
    pub fn written(&self) -> String {
        format!("{}{}", self.stderr, self.stdout)
    }

    /// Whether the program was stopped before it was finished, and ends with 75. The `mpirun` of MPICH may end with 0 if it has received
    /// the signal.
    pub fn was_stopped(&self) -> bool {
        self.code == 75 || self.by_mpich && self.code == 0 && self.stderr.contains("stopped")
    }

    /// Whether the program failed with this code. The `mpirun` of MPICH ends with 9 if it had to kill a rank.
    pub fn failed_with(&self, code: i32) -> bool {
        self.code == code || self.by_mpich && self.code == libc::SIGKILL
    }

    /// The messages that name a rank.
    pub fn faults(&self) -> Vec<&str> {
        self.stderr.lines().filter(|line| line.starts_with("mpibayes: rank")).collect()
    }
}

/// Runs a command to its end.
pub fn watched(command: Command) -> Result<Ended, String> {
    Running::start(command)?.finish()
}

/// A program that has been started. It is killed when this is dropped.
pub struct Running {
    child: Child,
    exit: Option<(i32, usize)>,
    stdout: Stream,
    stderr: Stream,
    since: Instant,
    by_mpich: bool,
    /// Its `TMPDIR`.
    session: tempfile::TempDir,
}

impl Running {
    pub fn start(mut command: Command) -> Result<Self, String> {
        let session = tempfile::tempdir().map_err(|error| format!("cannot make a temporary folder: {error}"))?;
        command.env("TMPDIR", session.path());
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
        // Programs inherit from `nohup` that they ignore this signal, which some tests send.
        // SAFETY: the function is one that a process may call between fork and exec.
        unsafe {
            command.pre_exec(|| {
                libc::signal(libc::SIGHUP, libc::SIG_DFL);
                Ok(())
            });
        }
        let program = command.get_program().to_string_lossy().into_owned();
        let by_mpich = program == "mpirun" && !is_open_mpi();
        let mut child = command.spawn().map_err(|error| match error.kind() {
            std::io::ErrorKind::NotFound => {
                format!("{program} is not on the PATH: install Open MPI (openmpi-bin) to run this suite")
            }
            _ => format!("cannot start {program}: {error}"),
        })?;
        let (stdout, stderr) = (Stream::of(child.stdout.take()), Stream::of(child.stderr.take()));
        Ok(Self { child, exit: None, stdout, stderr, since: Instant::now(), by_mpich, session })
    }

    /// Sends a signal to one of the ranks that `mpirun` has started.
    pub fn signal_rank(&self, rank: u32, signal: i32) -> Result<(), String> {
        let process = self.process_of(rank).ok_or_else(|| format!("no process of rank {rank} is found"))?;
        // SAFETY: a plain system call. A rank that ends in between is not replaced by another process: mpirun has not waited for it.
        if unsafe { libc::kill(process, signal) } == 0 { Ok(()) } else { Err(std::io::Error::last_os_error().to_string()) }
    }

    /// The process number of a rank. A process that the rank has started itself has a larger one.
    fn process_of(&self, rank: u32) -> Option<i32> {
        let session = format!("TMPDIR={}", self.session.path().display());
        let of_rank = [format!("OMPI_COMM_WORLD_RANK={rank}"), format!("PMI_RANK={rank}")];
        let is_rank = |process: &std::fs::DirEntry| {
            let variables = std::fs::read(process.path().join("environ")).unwrap_or_default();
            let has = |wanted: &String| variables.split(|byte| *byte == 0).any(|variable| variable == wanted.as_bytes());
            has(&session) && of_rank.iter().any(has)
        };
        let found = std::fs::read_dir("/proc").ok()?.filter_map(Result::ok).filter(is_rank);
        found.filter_map(|process| process.file_name().to_str()?.parse().ok()).min()
    }

    /// What the program has written to standard error so far.
    pub fn stderr(&self) -> String {
        self.stderr.text()
    }

    pub fn has_ended(&mut self) -> bool {
        if self.exit.is_none() {
            let (mut status, process) = (0, self.child.id().cast_signed());
            // SAFETY: plain numbers, for which zeros are values, filled in by the call; the process is a child that nobody else waits for.
            let (found, usage) = unsafe {
                let mut usage: libc::rusage = std::mem::zeroed();
                (libc::wait4(process, &mut status, libc::WNOHANG, &mut usage), usage)
            };
            if found == process {
                let signal = libc::WTERMSIG(status);
                let code = if libc::WIFEXITED(status) { libc::WEXITSTATUS(status) } else { -signal };
                // Linux counts in KiB.
                self.exit = Some((code, usize::try_from(usage.ru_maxrss).unwrap_or(0) * 1024));
            }
        }
        self.exit.is_some()
    }

    /// Waits until the program has made some progress. Errors if it ends or hangs before, with all that it has written.
    pub fn wait_until(&mut self, progress: &str, mut is_made: impl FnMut(&Self) -> bool) -> Result<(), String> {
        loop {
            let has_ended = self.has_ended();
            if is_made(self) {
                return Ok(());
            }
            if has_ended || self.since.elapsed() > HANG {
                let how = if has_ended { "ended" } else { "hangs" };
                return Err(format!("the program {how} before {progress}:\n{}{}", self.stdout.text(), self.stderr()));
            }
            std::thread::sleep(POLL);
        }
    }

    /// Sends a signal to the program, or to `mpirun`. A program that has ended gets none.
    pub fn signal(&mut self, signal: i32) {
        if !self.has_ended() {
            // SAFETY: a plain system call; the process is a child that nobody has waited for.
            unsafe { libc::kill(self.child.id().cast_signed(), signal) };
        }
    }

    /// Waits for the end of the program and of all that it has written.
    pub fn finish(mut self) -> Result<Ended, String> {
        while !(self.has_ended() && self.stdout.has_ended() && self.stderr.has_ended()) {
            if self.since.elapsed() > HANG {
                self.kill();
                return Err(format!("it hangs: killed after {} s\n{}{}", HANG.as_secs(), self.stdout.text(), self.stderr()));
            }
            std::thread::sleep(POLL);
        }
        let seconds = self.since.elapsed().as_secs_f64();
        let (code, peak_memory) = self.exit.unwrap_or_default();
        Ok(Ended { code, stdout: self.stdout.text(), stderr: self.stderr.text(), seconds, peak_memory, by_mpich: self.by_mpich })
    }

    /// Ends the program and its process group: first so that `mpirun` can end its ranks, then for certain.
    fn kill(&mut self) {
        let group = -self.child.id().cast_signed();
        self.signal(libc::SIGTERM);
        let since = Instant::now();
        while !self.has_ended() && since.elapsed() < Duration::from_secs(5) {
            std::thread::sleep(POLL);
        }
        // SAFETY: a plain system call; the group was made for this child.
        unsafe { libc::kill(group, libc::SIGKILL) };
        while !self.has_ended() {
            std::thread::sleep(POLL);
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if !self.has_ended() {
            self.kill();
        }
    }
}

/// What a program writes to a stream, read by a thread.
struct Stream {
    bytes: Arc<Mutex<Vec<u8>>>,
    reader: JoinHandle<()>,
}

impl Stream {
    fn of(pipe: Option<impl Read + Send + 'static>) -> Self {
        let bytes = Arc::new(Mutex::new(Vec::new()));
        let written = Arc::clone(&bytes);
        let reader = std::thread::spawn(move || {
            let (Some(mut pipe), mut block) = (pipe, [0; 4096]) else { return };
            while let Ok(count) = pipe.read(&mut block)
                && count > 0
                && let Ok(mut written) = written.lock()
            {
                written.extend_from_slice(&block[..count]);
            }
        });
        Self { bytes, reader }
    }

    fn has_ended(&self) -> bool {
        self.reader.is_finished()
    }

    fn text(&self) -> String {
        self.bytes.lock().map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default()
    }
}
