//! What a worker does: the steps of a script, one after another in one process or one MPI job.

use crate::faulty::Injection;
use crate::methods::Burn;
use crate::roster;
use crate::subject::{Carrier, Ran, Subject, Until, carry};
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
    pub driver: Driver,
    pub steps: Vec<Step>,
    /// Where rank 0 writes a line of JSON for each step.
    pub results: PathBuf,
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub enum Driver {
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
    /// Carry the method from this checkpoint or the start, and save it here where it stops.
    Carry { from: Option<PathBuf>, until: Until, save: Option<PathBuf> },
    /// Carry it with this failure.
    Fail(Injection),
    /// Measure what waiting for a busy rank costs rank 0.
    Wait,
}

/// What became of a step.
#[derive(Debug, Serialize, Deserialize)]
pub enum Became {
    Ran(Ran),
    /// The share of a core that rank 0's main thread took when it had started, and the wall seconds.
    Waited {
        share: f64,
        seconds: f64,
    },
}

/// Runs the script in this file; the exit code.
pub fn main(script: &str) -> i32 {
    #[cfg(target_os = "linux")]
    // SAFETY: sets a property of this process; mpirun's death shall be this rank's, even where the suite had to kill it.
    unsafe {
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL)
    };
    let script: Script = serde_json::from_slice(&std::fs::read(script).expect("the script")).expect("a script");
    let world = match script.driver {
        Driver::Mpi => Some(World::start().expect("MPI")),
        Driver::Threads | Driver::Simulate { .. } => None,
    };
    let mut lines = String::new();
    for step in &script.steps {
        if let Some(became) = perform(step, script.driver, world.as_ref()) {
            lines += &serde_json::to_string(&became).expect("a result in JSON");
            lines.push('\n');
            // After each step, so that a job that fails later shows how far it came.
            std::fs::write(&script.results, &lines).expect("the file of results");
        }
    }
    0
}

/// Starts MPI and nothing else: for processes that no launcher of this MPI started.
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

fn perform(step: &Step, driver: Driver, world: Option<&World>) -> Option<Became> {
    let &Step { threads, dedicated, collectives, .. } = step;
    let carrier = match (driver, world) {
        (Driver::Mpi, Some(world)) => Carrier::Mpi { world, threads, dedicated, collectives },
        (Driver::Simulate { ranks }, _) => Carrier::Simulate { ranks, threads, dedicated },
        _ => Carrier::Threads { threads },
    };
    let fault = match &step.work {
        Work::Carry { from, until, save } => {
            let subject = subject(&step.method);
            let leads = world.is_none_or(|world| world.rank() == 0);
            let saved = from
                .as_ref()
                .filter(|_| leads)
                .map(|path| subject.read(path).expect("a sound checkpoint").expect("a checkpoint in this place"));
            match subject.run(carrier, saved.as_deref(), *until) {
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
        Work::Fail(injection) => match subject(&step.method).run_faulty(carrier, Some(*injection)) {
            Ok(_) => return None,
            Err(fault) => fault,
        },
        Work::Wait => {
            let mut watch = Watch { since: Instant::now(), begun: None, waited: None };
            match carry(Arc::new(Burn), carrier, None, &mut watch) {
                Ok(_) => return watch.waited,
                Err(fault) => fault,
            }
        }
    };
    fault.end_process()
}

/// Measures the thread that carries messages on rank 0, from when it has started to the end.
struct Watch {
    since: Instant,
    /// When, and the thread's seconds of CPU time then.
    begun: Option<(Instant, f64)>,
    waited: Option<Became>,
}

impl Recorder for Watch {
    fn write(&mut self, _: Vec<Record>) -> mpibayes::cluster::Result<()> {
        Ok(())
    }

    fn wants_checkpoint(&mut self, _: Status) -> bool {
        // The first naps of a wait are short, so that a short one does not become longer.
        if self.begun.is_none() && self.since.elapsed() > Duration::from_millis(500) {
            self.begun = thread_seconds().map(|seconds| (Instant::now(), seconds));
        }
        false
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

/// Seconds of CPU time of the calling thread, where the system tells them.
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

/// Seconds of CPU time of the calling thread, where the system tells them.
#[cfg(not(target_os = "linux"))]
fn thread_seconds() -> Option<f64> {
    None
}
