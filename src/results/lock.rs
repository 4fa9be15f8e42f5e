//! The lock that a job holds on the folder of a run, and which job that is.

use super::error::{Result, ResultsError};
use crate::cluster::placement::host;
use crate::partial::PartialFile;
use std::fs::{self, File, TryLockError};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The file with the digest of the data, which a job locks.
pub(super) const DIGEST_FILE: &str = "data.digest";
/// The file with the name of the job that holds the lock.
const JOB_FILE: &str = "job.txt";
/// Schedulers, each with the environment variable that has the number of a job.
const SCHEDULERS: [(&str, &str); 3] = [("Slurm", "SLURM_JOB_ID"), ("PBS", "PBS_JOBID"), ("LSF", "LSB_JOBID")];
/// How often locking is tried: a process that only looks for a job also has the lock, for a moment.
const LOCK_ATTEMPTS: usize = 10;
/// The pause between two attempts.
const BETWEEN_ATTEMPTS: Duration = Duration::from_millis(50);

/// The lock on a folder, until it is dropped.
pub(super) struct FolderLock {
    /// The locked `data.digest`.
    pub digest: File,
    /// The file with the name of this job. None if the file system has no locks: several jobs may then use the folder.
    job: Option<PathBuf>,
}

impl FolderLock {
    /// Locks an existing folder. Some file systems have no locks; the run works without one.
    ///
    /// # Errors
    /// When another job has the lock, or the file system fails.
    pub fn acquire(folder: &Path) -> Result<Self> {
        let path = folder.join(DIGEST_FILE);
        let open = File::options().create(true).truncate(false).read(true).write(true).open(&path);
        let digest = open.map_err(ResultsError::io(&path, "open"))?;
        match lock(&digest) {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(ResultsError::InUse { folder: folder.to_owned(), job: job_in(folder) });
            }
            Err(TryLockError::Error(cause))
                if cause.kind() == ErrorKind::Unsupported || cause.raw_os_error() == Some(libc::ENOLCK) =>
            {
                return Ok(Self { digest, job: None });
            }
            Err(TryLockError::Error(cause)) => return Err(ResultsError::io(&path, "lock")(cause)),
        }
        let job = folder.join(JOB_FILE);
        let partial = PartialFile::new(&job);
        // Errors do not matter: the file is only used in messages.
        drop(fs::write(partial.path(), this_job()).and_then(|()| partial.commit()));
        Ok(Self { digest, job: Some(job) })
    }
}

impl Drop for FolderLock {
    fn drop(&mut self) {
        drop(self.job.as_ref().map(fs::remove_file));
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

/// The job that uses the folder of a run, such as `Slurm job 42 on node7`, as far as the file system has locks. It may be this one.
pub fn job_using(folder: &Path) -> Option<String> {
    let digest = File::open(folder.join(DIGEST_FILE)).ok()?;
    matches!(digest.try_lock_shared(), Err(TryLockError::WouldBlock)).then(|| job_in(folder))
}

/// The job in the file.
fn job_in(folder: &Path) -> String {
    let said = fs::read_to_string(folder.join(JOB_FILE)).unwrap_or_default();
    match said.trim() {
        "" => "another job".to_owned(),
        job => job.to_owned(),
    }
}

fn this_job() -> String {
    let job = job_of_scheduler(|name| std::env::var(name).ok());
    format!("{} on {}\n", job.unwrap_or_else(|| format!("process {}", std::process::id())), host())
}

/// The job in the environment variables of a scheduler; a task of an array as `squeue` lists it.
fn job_of_scheduler(variable: impl Fn(&str) -> Option<String>) -> Option<String> {
    if let (Some(array), Some(task)) = (variable("SLURM_ARRAY_JOB_ID"), variable("SLURM_ARRAY_TASK_ID")) {
        return Some(format!("Slurm job {array}_{task}"));
    }
    SCHEDULERS.iter().find_map(|(name, number)| Some(format!("{name} job {}", variable(number)?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jobs_are_named_as_their_schedulers_list_them() {
        let array = [("SLURM_JOB_ID", "8"), ("SLURM_ARRAY_JOB_ID", "7"), ("SLURM_ARRAY_TASK_ID", "1")];
        for (variables, job) in [
            (&array[..1], Some("Slurm job 8")),
            (&array, Some("Slurm job 7_1")),
            (&[("PBS_JOBID", "5.server")], Some("PBS job 5.server")),
            (&[("LSB_JOBID", "6")], Some("LSF job 6")),
            (&[], None),
        ] {
            let variable = |name: &str| variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned());
            assert_eq!(job_of_scheduler(variable).as_deref(), job);
        }
    }
}
