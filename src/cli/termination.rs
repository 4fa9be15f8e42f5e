//! What a job prints when its launcher ends it, because it was interrupted or a rank died: what is saved, and how to resume.

use crate::cluster::mpi::World;
use crate::report::text;
use crate::results::{Reporting, checkpoint_file, is_locked, was_terminated};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// How often a rank looks for the signal.
const POLL: Duration = Duration::from_millis(50);
/// Rank 1 reports after this time if rank 0 is dead. Open MPI kills all ranks one second after the signal.
const GRACE_PERIOD: Duration = Duration::from_millis(150);

static HAS_ENDED: AtomicBool = AtomicBool::new(false);

/// The job has ended in order: nothing is to be reported.
pub(super) fn end() {
    HAS_ENDED.store(true, Ordering::Relaxed);
}

/// Reports what is saved in the folder of a run when the launcher ends the job, by SIGTERM. Rank 0 reports, or rank 1 if rank 0 has died and
/// therefore no longer locks the folder.
pub(super) fn report_when_terminated(world: &World, folder: &Path) {
    let (rank, size, folder) = (world.rank(), world.size(), folder.to_owned());
    if rank > 1 {
        return;
    }
    std::thread::spawn(move || {
        while !was_terminated() {
            std::thread::sleep(POLL);
        }
        if rank == 1 {
            std::thread::sleep(GRACE_PERIOD);
            if HAS_ENDED.load(Ordering::Relaxed) || is_locked(&folder) {
                return;
            }
        }
        Reporting::Log { host: None }.print(&message(&folder, size));
    });
}

fn message(folder: &Path, ranks: u32) -> String {
    let shown = folder.display();
    let saved_at = std::fs::metadata(checkpoint_file(folder)).and_then(|file| file.modified());
    let saved = match saved_at.ok().and_then(|time| time.elapsed().ok()) {
        Some(age) => {
            let age = text::seconds(age.as_secs_f64());
            format!(
                "the checkpoint in {shown} from {age} ago is complete; `mpirun -n {ranks} mpibayes resume {shown}` continues from it"
            )
        }
        None => format!("{shown} has no checkpoint yet; the same command starts the run again"),
    };
    format!("the launcher ends this job, because it was interrupted or a rank died: {saved}")
}
