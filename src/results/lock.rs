//! The lock that a job holds on the folder of a run, and which job that is.

use super::error::{Result, ResultsError};
use crate::cluster::placement::host;
use std::fs::{self, File, TryLockError};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The file with the digest of the data, which a job locks.
pub(super) const DIGEST_FILE: &str = "data.digest";
/// The file in which the job that has the lock says what it is.
const JOB_FILE: &str = "job.txt";
/// Where schedulers tell a job its number.
const SCHEDULERS: [(&str, &str); 3] = [("Slurm", "SLURM_JOB_ID"), ("PBS", "PBS_JOBID"), ("LSF", "LSB_JOBID")];
/// How often a lock is tried that another process holds, and the time between: one that looks whether it is held has it for a moment.
const LOCK_ATTEMPTS: usize = 10;
const BETWEEN_ATTEMPTS: Duration = Duration::from_millis(50);

/// The lock on a folder, until it is dropped.
pub(super) struct FolderLock {
    /// The locked `data.digest`.
    pub digest: File,
    job: PathBuf,
}

impl FolderLock {
    /// Locks an existing folder. Some file systems have no locks; the run works without one.
    ///
    /// # Errors
    /// When another job has the lock, or the file system fails.
    pub fn of(folder: &Path) -> Result<Self> {
        let path = folder.join(DIGEST_FILE);
        let open = File::options().create(true).truncate(false).read(true).write(true).open(&path);
        let digest = open.map_err(ResultsError::io(&path, "open"))?;
        match lock(&digest) {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(ResultsError::InUse { folder: folder.to_owned(), job: job_of(folder) });
            }
            Err(TryLockError::Error(cause))
                if cause.kind() == ErrorKind::Unsupported || cause.raw_os_error() == Some(libc::ENOLCK) => {}
            Err(TryLockError::Error(cause)) => return Err(ResultsError::io(&path, "lock")(cause)),
        }
        let job = folder.join(JOB_FILE);
        // Only for messages.
        drop(fs::write(&job, format!("{}\n", this_job())));
        Ok(Self { digest, job })
    }
}

impl Drop for FolderLock {
    fn drop(&mut self) {
        drop(fs::remove_file(&self.job));
    }
}

fn lock(file: &File) -> std::result::Result<(), TryLockError> {
    for _ in 1..LOCK_ATTEMPTS {
        match file.try_lock() {
            Err(TryLockError::WouldBlock) => std::thread::sleep(BETWEEN_ATTEMPTS),
            other => return other,
        }
    }
    file.try_lock()
}

/// The job that uses the folder of a run, such as `Slurm job 42 on node7`, as far as the file system has locks.
pub fn user_of(folder: &Path) -> Option<String> {
    let digest = File::open(folder.join(DIGEST_FILE)).ok()?;
    matches!(digest.try_lock_shared(), Err(TryLockError::WouldBlock)).then(|| job_of(folder))
}

/// What the job that has the lock says it is.
fn job_of(folder: &Path) -> String {
    let said = fs::read_to_string(folder.join(JOB_FILE)).unwrap_or_default();
    match said.trim() {
        "" => "another job".to_owned(),
        job => job.to_owned(),
    }
}

fn this_job() -> String {
    let variable = |name: &str| std::env::var(name).ok();
    // As `squeue` lists the tasks of an array.
    let task = variable("SLURM_ARRAY_JOB_ID").zip(variable("SLURM_ARRAY_TASK_ID"));
    let task = task.map(|(array, task)| format!("Slurm job {array}_{task}"));
    let number = |(name, of): &(&str, &str)| variable(of).map(|number| format!("{name} job {number}"));
    let job = task.or_else(|| SCHEDULERS.iter().find_map(number)).unwrap_or_else(|| format!("process {}", std::process::id()));
    format!("{job} on {}", host())
}
