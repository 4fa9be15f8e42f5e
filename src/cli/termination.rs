//! What a job prints when its launcher ends it, because it was interrupted or a rank died: what is saved, and how to resume.

use super::exit_codes::STOPPED;
use crate::cluster::mpi::World;
use crate::cluster::observe_faults;
use crate::log;
use crate::results::{
    EventKind, Reporting, asked_to_stop, checkpoint_file, claim_announcement_of_stop, has_checkpoint, has_failed, is_finished,
    job_with_lock, note_event, was_terminated,
};
use crate::text;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::time::Duration;

/// How often a rank looks for the signal.
const POLL: Duration = Duration::from_millis(50);
/// A run that is saved within this time ends in order. Open MPI kills all ranks one second after the signal.
const TIME_TO_SAVE: Duration = Duration::from_millis(300);
/// A run that stops within this time does not say that it is about to.
const TIME_TO_STOP: Duration = Duration::from_secs(1);
/// Rank 1 waits this much longer, so that a living rank 0 reports first.
const GRACE_PERIOD: Duration = Duration::from_millis(150);

/// How long a job that ends may take to note why.
const TIME_TO_NOTE: Duration = Duration::from_secs(2);
/// How long ranks that predict may be silent.
const MAX_SILENCE: Duration = Duration::from_secs(60);

static HAS_ENDED: AtomicBool = AtomicBool::new(false);

/// Nothing is left to be reported.
pub(super) fn end() {
    HAS_ENDED.store(true, Ordering::Relaxed);
}

/// The folder of the run that the job carries out.
#[derive(Clone)]
pub(super) struct CurrentRun(Arc<Mutex<Option<PathBuf>>>);

impl CurrentRun {
    /// None before the first run of a sweep.
    pub(super) fn new(folder: Option<&Path>) -> Self {
        Self(Arc::new(Mutex::new(folder.map(Path::to_owned))))
    }

    pub(super) fn set(&self, folder: PathBuf) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(folder);
    }

    fn get(&self) -> Option<PathBuf> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// What the command line carries out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum JobKind {
    Run,
    Sweep,
}

/// Ends the job with the exit code of a run that can be resumed when nothing was heard from a rank for `max_silence`. Every rank calls this.
pub(super) fn watch(world: &mut World, max_silence: Duration, current: &CurrentRun, kind: JobKind) {
    let (size, current) = (world.size(), current.clone());
    let is_watched = world.watch(max_silence, STOPPED.into(), move |silence| {
        log::print_error(&format!("error: {silence}. The job ends with exit code {STOPPED}"));
        let Some(folder) = current.get() else { return };
        Reporting::Log { host: None }.print(&saved_state(&folder, size, kind));
        note_event(&folder, EventKind::RankSilent, silence.to_string());
        end();
    });
    if !is_watched && world.size() > 1 && !max_silence.is_zero() && world.rank() == 0 {
        let level = world.thread_level();
        log::note(&format!("this MPI library allows calls on one thread only ({level}): silent ranks are not noticed"));
    }
}

/// Says that a run was asked to stop if that takes longer than a moment, because of long tasks.
pub(super) fn announce_long_stops(reporting: Reporting) {
    if reporting == Reporting::Quiet {
        return;
    }
    std::thread::spawn(move || {
        while !asked_to_stop() {
            std::thread::sleep(POLL);
        }
        std::thread::sleep(TIME_TO_STOP);
        if !HAS_ENDED.load(Ordering::Relaxed) && claim_announcement_of_stop() {
            reporting.print("asked to stop: what is in progress ends first");
        }
    });
}

/// Notes an error that ends the job among the events of the run, and says which run of a sweep it was.
pub(super) fn note_faults(current: &CurrentRun, kind: JobKind) {
    let current = current.clone();
    observe_faults(move |fault| {
        let Some(folder) = current.get() else { return };
        if kind == JobKind::Sweep {
            let run = folder.display();
            let next = "the same command continues with the other runs, and tries this one last";
            Reporting::Log { host: None }.print(&format!("this ends the job during the run {run}: {next}"));
        }
        let (text, (done, is_done)) = (fault.to_string(), mpsc::channel());
        // A file system that does not respond must not delay the end of the job.
        std::thread::spawn(move || {
            note_event(&folder, EventKind::Failed, text);
            let _ = done.send(());
        });
        let _ = is_done.recv_timeout(TIME_TO_NOTE);
    });
}

/// Ends a job that predicts with exit code 1 when a rank is silent. It has nothing to resume.
pub(super) fn watch_predictions(world: &mut World) {
    world.watch(MAX_SILENCE, 1, |silence| log::print_error(&format!("error: {silence}")));
}

/// Reports what is saved in the folder of a run when the launcher ends the job, by SIGTERM. Rank 0 reports, or rank 1 if rank 0 has died and
/// therefore no longer locks the folder.
pub(super) fn report_when_terminated(world: &World, current: &CurrentRun, kind: JobKind) {
    let (rank, size, current, began) = (world.rank(), world.size(), current.clone(), text::iso_time_now());
    if rank > 1 {
        return;
    }
    std::thread::spawn(move || {
        while !was_terminated() {
            std::thread::sleep(POLL);
        }
        std::thread::sleep(TIME_TO_SAVE);
        if rank == 1 {
            std::thread::sleep(GRACE_PERIOD);
        }
        let Some(folder) = current.get() else { return };
        let other_reports = rank == 1 && job_with_lock(&folder).is_some();
        // Then the launcher ends the job because of an error, which was printed.
        let has_failed = has_failed(&folder, &began);
        if !HAS_ENDED.load(Ordering::Relaxed) && !other_reports && !has_failed && !is_finished(&folder).unwrap_or(false) {
            let saved = saved_state(&folder, size, kind);
            let why = "the launcher ends this job, because it was interrupted or a rank was lost";
            Reporting::Log { host: None }.print(&format!("{why}: {saved}"));
            note_event(
                &folder,
                EventKind::Terminated,
                "the launcher ended the job: it was interrupted, or a rank was lost".into(),
            );
        }
    });
}

/// What is saved of a run, and how it is resumed.
fn saved_state(folder: &Path, ranks: u32, kind: JobKind) -> String {
    let shown = folder.display();
    match has_checkpoint(folder) {
        true => {
            // The clock of a file server may be ahead.
            let file = std::fs::metadata(checkpoint_file(folder));
            let age = file.and_then(|file| file.modified()).ok().and_then(|time| time.elapsed().ok());
            let age = age.map_or_else(String::new, |age| format!(" from {} ago", text::seconds(age.as_secs_f64())));
            let program = std::env::args().next().unwrap_or_else(|| "mpibayes".into());
            let resume = match kind {
                JobKind::Run => format!("`mpirun -n {ranks} {program} resume '{shown}'` continues from it"),
                JobKind::Sweep => "the same command continues from it".into(),
            };
            format!("the checkpoint in {shown}{age} is complete; {resume}")
        }
        false if kind == JobKind::Sweep => {
            format!("{shown} has no checkpoint yet; the same command starts this run again and continues with the others")
        }
        false => format!("{shown} has no checkpoint yet; the same command starts the run again"),
    }
}
