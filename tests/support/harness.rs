//! Runs the built program in a temporary folder, alone or under `mpirun`, and asserts its exit code and messages.

#![allow(dead_code, reason = "each binary that includes this file uses a part of it")]
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "not shipped: a failure here stops the test")]

use crate::launcher::{self, Ended, HANG, Launcher, POLL, Running};
use mpibayes::results::{ResultFile, Samples};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;
use tempfile::TempDir;

const PROGRAM: &str = env!("CARGO_BIN_EXE_mpibayes");

/// A temporary folder in which the program runs. Arguments are separated by blanks.
pub struct Cli {
    folder: TempDir,
}

impl Cli {
    pub fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// The path of a file in the folder.
    pub fn path(&self, name: impl AsRef<Path>) -> PathBuf {
        self.folder().join(name)
    }

    pub fn exists(&self, name: &str) -> bool {
        self.path(name).exists()
    }

    pub fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        std::fs::write(self.path(name), content).unwrap();
    }

    pub fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap()
    }

    /// The result file of a run.
    pub fn results(&self, run: &str) -> ResultFile {
        ResultFile::open(&self.path(run).join("result.h5")).unwrap()
    }

    pub fn posterior(&self, run: &str) -> Samples {
        self.results(run).samples("posterior").unwrap()
    }

    /// The program in one process.
    pub fn alone(&self, arguments: &str) -> Launch {
        self.launched(Launcher::Alone, arguments)
    }

    /// The program under `mpirun`.
    pub fn mpirun(&self, ranks: u32, arguments: &str) -> Launch {
        self.launched(Launcher::Mpirun(ranks), arguments)
    }

    pub fn launched(&self, launcher: Launcher, arguments: &str) -> Launch {
        let command = launcher::program(launcher, Path::new(PROGRAM), &split(arguments));
        self.launch(command, launcher != Launcher::Alone, arguments)
    }

    /// The program on two ranks, the second of them in another folder.
    pub fn mpirun_apart(&self, other: &Cli, arguments: &str) -> Launch {
        let command = launcher::ranks_in(&[self.folder(), other.folder()], Path::new(PROGRAM), &split(arguments));
        self.launch(command, true, arguments)
    }

    fn launch(&self, mut command: Command, is_mpirun: bool, arguments: &str) -> Launch {
        command.current_dir(self.folder());
        // Settings of the user's shell.
        for (name, _) in std::env::vars() {
            if name.to_ascii_lowercase().ends_with("_proxy") || name == "MPIBAYES_DATA" {
                command.env_remove(name);
            }
        }
        Launch { command, is_mpirun, arguments: arguments.to_owned() }
    }

    /// Waits until no process holds the folder of a run: the ranks of a killed `mpirun` end some time after it.
    pub fn wait_until_released(&self, run: &str) {
        let (digest, since) = (std::fs::File::open(self.path(run).join("data.digest")).unwrap(), Instant::now());
        while digest.try_lock().is_err() {
            assert!(since.elapsed() < HANG, "a rank of the killed run in {run} goes on");
            std::thread::sleep(POLL);
        }
    }

    /// Starts a run, and asks it to save itself and stop as soon as it has begun. Starts it again if it has finished before the request
    /// reaches it, as can happen on a busy machine.
    #[track_caller]
    pub fn stop(&self, run: &str, launch: impl Fn() -> Launch) -> Ended {
        self.stop_by(&[libc::SIGUSR1], run, launch)
    }

    /// The same by these signals, one right after the other.
    #[track_caller]
    pub fn stop_by(&self, signals: &[i32], run: &str, launch: impl Fn() -> Launch) -> Ended {
        for _ in 0..50 {
            let mut running = launch().start();
            running.wait_until("its first message", |running| running.stderr().contains(" on the model ")).unwrap();
            signals.iter().for_each(|&signal| running.signal(signal));
            let ended = running.finish().unwrap();
            if ended.was_stopped() {
                return ended;
            }
            assert_eq!(ended.code, 0, "{}", ended.stderr);
            std::fs::remove_dir_all(self.path(run)).unwrap();
        }
        panic!("the run in {run} finishes before a signal can reach it: it is too short");
    }

    /// Runs the program in one process to whatever end.
    #[track_caller]
    pub fn run(&self, arguments: &str) -> Ended {
        self.alone(arguments).run()
    }

    /// Runs the program in one process to success.
    #[track_caller]
    pub fn succeed(&self, arguments: &str) -> Ended {
        self.alone(arguments).succeed(&[])
    }

    /// What the program prints when it succeeds.
    #[track_caller]
    pub fn stdout(&self, arguments: &str) -> String {
        self.succeed(arguments).stdout
    }

    /// The JSON document that the program prints.
    #[track_caller]
    pub fn json(&self, arguments: &str) -> serde_json::Value {
        serde_json::from_str(&self.stdout(arguments)).unwrap()
    }

    /// Asserts that the arguments are a usage error, whose message contains this.
    #[track_caller]
    pub fn refuse_usage(&self, arguments: &str, message: &str) {
        let ended = self.run(arguments);
        assert!(ended.code == 2 && ended.stderr.contains(message), "{}: {}", ended.code, ended.stderr);
    }

    /// Asserts that the program in one process refuses the arguments, see [`Launch::refuse`].
    #[track_caller]
    pub fn refuse(&self, arguments: &str, message: &[&str]) {
        self.alone(arguments).refuse(message);
    }
}

fn split(arguments: &str) -> Vec<&str> {
    arguments.split_whitespace().collect()
}

/// The program with arguments, before it is started.
pub struct Launch {
    command: Command,
    is_mpirun: bool,
    arguments: String,
}

impl Launch {
    pub fn env(mut self, name: &str, value: &str) -> Self {
        self.command.env(name, value);
        self
    }

    /// The command, for a test that connects its streams in another way.
    pub fn command(self) -> Command {
        self.command
    }

    #[track_caller]
    pub fn start(self) -> Running {
        Running::start(self.command).unwrap()
    }

    #[track_caller]
    pub fn run(self) -> Ended {
        launcher::watched(self.command).unwrap_or_else(|cause| panic!("mpibayes {}: {cause}", self.arguments))
    }

    /// Runs to success, with nothing on standard output. Asserts that the messages contain all of this.
    #[track_caller]
    pub fn report(self, messages: &[&str]) {
        let ended = self.succeed(messages);
        assert!(ended.stdout.is_empty(), "{}", ended.stdout);
    }

    /// Runs to an exit code. Asserts that standard error and standard output together contain all of this.
    #[track_caller]
    pub fn end(self, code: i32, contents: &[&str]) -> Ended {
        let arguments = self.arguments.clone();
        let ended = self.run();
        let written = ended.written();
        assert_eq!(ended.code, code, "exit code of mpibayes {arguments}:\n{written}");
        for content in contents {
            assert!(written.contains(content), "mpibayes {arguments} does not print {content:?} but\n{written}");
        }
        ended
    }

    #[track_caller]
    pub fn succeed(self, contents: &[&str]) -> Ended {
        self.end(0, contents)
    }

    /// Asserts exit code 1 and one message of the program, which contains all of this. `mpirun` adds lines of its own.
    #[track_caller]
    pub fn fail(self, message: &[&str]) -> Ended {
        let (is_mpirun, arguments) = (self.is_mpirun, self.arguments.clone());
        let ended = self.end(1, &[]);
        let lines: Vec<&str> = ended.stderr.lines().filter(|line| !is_mpirun || line.starts_with("mpibayes:")).collect();
        let [line] = lines[..] else { panic!("mpibayes {arguments} must print one message:\n{}", ended.stderr) };
        // Under a launcher, the date and the time come before it: two blocks of digits.
        let text = if is_mpirun { line.replace(|digit: char| digit.is_ascii_digit(), "") } else { line.to_owned() };
        let begin = if is_mpirun { "mpibayes: -- :: error: " } else { "mpibayes: error: " };
        assert!(text.starts_with(begin), "mpibayes {arguments}: {line}");
        for part in message {
            assert!(line.contains(part), "mpibayes {arguments} does not say {part:?} but {line}");
        }
        ended
    }

    /// The same, before anything is written to standard output.
    #[track_caller]
    pub fn refuse(self, message: &[&str]) {
        let stdout = self.fail(message).stdout;
        assert!(stdout.is_empty(), "{stdout}");
    }
}
