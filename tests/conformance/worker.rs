//! Workers: run the steps of a script, one after another, in one process or one MPI job.

use crate::faulty::Injection;
use crate::methods::Burn;
use crate::roster;
use crate::subject::{Driver, Ran, Subject, Until, carry};
use mpibayes::cluster::mpi::World;
use mpibayes::cluster::record::Record;
use mpibayes::cluster::{AfterCheckpoint, Checkpoint, EXIT_CODE, Recorder, Status};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Work for a worker.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Script {
    pub driver: WorkerDriver,
    pub steps: Vec<Step>,
    /// Where rank 0 writes a line of JSON for each step.
    pub results: PathBuf,
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub enum WorkerDriver {
    Threads,
    Simulate { ranks: u32 },
    Mpi,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Step {
    pub method: String,
    pub threads: usize,
    pub dedicated: bool,
    pub collectives: bool,
    pub work: Work,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Work {
    /// Run the method from this checkpoint or the start, and save a checkpoint where it stops.
    Carry { from: Option<PathBuf>, until: Until, save: Option<PathBuf> },
    /// Run it with this failure.
    Fail(Injection),
    /// Measure the CPU time of rank 0 while it waits for a busy rank.
    Wait,
}

/// The result of a step.
#[derive(Debug, Serialize, Deserialize)]
pub enum Became {
    Ran(Ran),
    /// The share of a core that rank 0's main thread used after its start, and the seconds of wall time.
    Waited {
        share: f64,
        seconds: f64,
    },
}

/// Runs the script in this file; the exit code.
pub fn main(script: &str) -> i32 {
    #[cfg(target_os = "linux")]
    // SAFETY: sets a property of this process: it ends with mpirun, even if the suite kills mpirun.
    unsafe {
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL)
    };
    let script: Script = serde_json::from_slice(&std::fs::read(script).expect("the script")).expect("a script");
    let world = match script.driver {
        WorkerDriver::Mpi => Some(World::start().expect("MPI")),
        WorkerDriver::Threads | WorkerDriver::Simulate { .. } => None,
    };
    let mut lines = String::new();
    for step in &script.steps {
        if let Some(became) = perform(step, script.driver, world.as_ref()) {
            lines += &serde_json::to_string(&became).expect("a result in JSON");
            lines.push('\n');
            // After each step, so that a job that fails later leaves the results of earlier steps.
            std::fs::write(&script.results, &lines).expect("the file of results");
        }
    }
    0
}

/// Starts MPI and nothing else: for processes that another MPI's launcher started.
pub fn start_only() -> i32 {
    match World::start() {
        Ok(world) => {
            println!("started as rank {} of {}", world.rank(), world.size());
            0
        }
        Err(error) => {
            eprintln!("mpibayes: {error}");
            EXIT_CODE
        }
    }
}

fn perform(step: &Step, driver: WorkerDriver, world: Option<&World>) -> Option<Became> {
    let &Step { threads, dedicated, collectives, .. } = step;
    let runner = match (driver, world) {
        (WorkerDriver::Mpi, Some(world)) => Driver::Mpi { world, threads, dedicated, collectives },
        (WorkerDriver::Simulate { ranks }, _) => Driver::Simulate { ranks, threads, dedicated },
        _ => Driver::Threads { threads },
    };
    let fault = match &step.work {
        Work::Carry { from, until, save } => {
            let subject = subject(&step.method);
            let leads = world.is_none_or(|world| world.rank() == 0);
            let saved = from
                .as_ref()
                .filter(|_| leads)
                .map(|path| subject.read(path).expect("a sound checkpoint").expect("a checkpoint in this place"));
            match subject.run(runner, saved.as_deref(), *until) {
                Ok(None) => return None,
                Ok(Some(ran)) => {
                    if let Some(path) = save {
                        subject.write(&ran.saved, path).expect("the checkpoint can be written");
                    }
                    return Some(Became::Ran(ran));
                }
                Err(fault) => fault,
            }
        }
        Work::Fail(injection) => match subject(&step.method).run_faulty(runner, Some(*injection)) {
            Ok(_) => return None,
            Err(fault) => fault,
        },
        Work::Wait => {
            let mut watch = Watch { since: Instant::now(), begun: None, waited: None };
            match carry(Arc::new(Burn), runner, None, &mut watch) {
                Ok(_) => return watch.waited,
                Err(fault) => fault,
            }
        }
    };
    fault.end_process()
}

/// Measures the CPU time of rank 0's main thread, from after its start to the end.
struct Watch {
    since: Instant,
    /// The start of the measurement, and the thread's CPU time at that moment.
    begun: Option<(Instant, f64)>,
    waited: Option<Became>,
}

impl Recorder for Watch {
    fn write(&mut self, _: Vec<Record>) -> mpibayes::cluster::Result<()> {
        Ok(())
    }

    fn wants_checkpoint(&mut self, _: Status) -> mpibayes::cluster::Result<bool> {
        // The first naps of a wait are short and would distort the measurement.
        if self.begun.is_none() && self.since.elapsed() > Duration::from_millis(500) {
            self.begun = thread_seconds().map(|seconds| (Instant::now(), seconds));
        }
        Ok(false)
    }

    fn on_checkpoint(&mut self, _: Checkpoint) -> mpibayes::cluster::Result<AfterCheckpoint> {
        if let (Some((since, before)), Some(now)) = (self.begun, thread_seconds()) {
            let seconds = since.elapsed().as_secs_f64();
            self.waited = Some(Became::Waited { share: (now - before) / seconds, seconds });
        }
        Ok(AfterCheckpoint::Continue)
    }
}

fn subject(label: &str) -> &'static dyn Subject {
    roster().find(|subject| subject.label() == label).expect("a method of the roster")
}

/// Seconds of CPU time of the calling thread, if the system reports them.
#[cfg(target_os = "linux")]
fn thread_seconds() -> Option<f64> {
    // SAFETY: an all-zero rusage is valid, and the call only writes into it.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(libc::RUSAGE_THREAD, &raw mut usage);
        usage
    };
    let seconds = |time: libc::timeval| time.tv_sec as f64 + time.tv_usec as f64 * 1e-6;
    Some(seconds(usage.ru_utime) + seconds(usage.ru_stime))
}

/// Seconds of CPU time of the calling thread, if the system reports them.
#[cfg(not(target_os = "linux"))]
fn thread_seconds() -> Option<f64> {
    None
}
