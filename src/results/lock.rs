//! The lock that a job holds on the folder of a run, and which job that is.
//!
//! Two things make the lock. The system's lock on `data.digest` is sure between processes of one host, and between hosts where the network file
//! system supports it. Where it does not, as on some installations of Lustre and NFS, the file `job.txt` keeps other hosts away: it names the job
//! that holds the folder, which renews it every half minute. A job that was killed, or whose host was lost, leaves the file behind; another
//! host may use the folder once it has not been renewed for some minutes.

use super::error::{Result, ResultsError};
use crate::cluster::placement::host;
use crate::text;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, SystemTime};

/// The file with the digest of the data, which a job locks.
pub(super) const DIGEST_FILE: &str = "data.digest";
/// The file with the name of the job that holds the lock.
const JOB_FILE: &str = "job.txt";
/// Schedulers, each with the environment variables that have the number of a job and the number of times that it was requeued.
const SCHEDULERS: [(&str, &str, &str); 3] = [
    ("Slurm", "SLURM_JOB_ID", "SLURM_RESTART_COUNT"),
    ("PBS", "PBS_JOBID", "PBS_RUNCOUNT"),
    ("LSF", "LSB_JOBID", "LSB_JOB_RESTARTS"),
];
/// How often locking is tried: a process that only looks for a job also has the lock, for a moment.
const LOCK_ATTEMPTS: usize = 10;
/// The pause between two attempts.
const BETWEEN_ATTEMPTS: Duration = Duration::from_millis(50);
/// How often a job renews its file.
const RENEWAL: Duration = Duration::from_secs(30);
/// A job on another host counts as lost if its file is older: some network file systems show a new time only after a minute.
const LOST_AFTER: Duration = Duration::from_secs(180);

/// The lock on a folder, until it is dropped.
pub(super) struct FolderLock {
    /// The locked `data.digest`.
    pub digest: File,
    job: JobFile,
    /// The job that had the folder and was lost, if there was one on another host.
    pub lost: Option<String>,
    is_over: Arc<AtomicBool>,
    renewal: Option<JoinHandle<()>>,
}

impl FolderLock {
    /// Locks an existing folder.
    ///
    /// # Errors
    /// When another job has the lock, or the file system fails.
    pub fn acquire(folder: &Path) -> Result<Self> {
        let path = folder.join(DIGEST_FILE);
        let open = File::options().create(true).truncate(false).read(true).write(true).open(&path);
        let digest = open.map_err(ResultsError::io(&path, "open"))?;
        let in_use = |job: String| ResultsError::InUse { folder: folder.to_owned(), job };
        let has_system_lock = match lock(&digest) {
            Ok(()) => true,
            Err(TryLockError::WouldBlock) => {
                return Err(in_use(Holder::of(folder).map_or_else(|| ANOTHER_JOB.into(), |holder| holder.job)));
            }
            Err(TryLockError::Error(cause))
                if cause.kind() == ErrorKind::Unsupported || cause.raw_os_error() == Some(libc::ENOLCK) =>
            {
                false
            }
            Err(TryLockError::Error(cause)) => return Err(ResultsError::io(&path, "lock")(cause)),
        };
        let (job, lost) = JobFile::take(folder, &Holder::this(), has_system_lock, LOST_AFTER)
            .map_err(ResultsError::io(&folder.join(JOB_FILE), "write"))?
            .map_err(in_use)?;
        let is_over = Arc::new(AtomicBool::new(false));
        let renewal = job.renew_until(is_over.clone());
        Ok(Self { digest, job, lost, is_over, renewal })
    }

    /// Checks that no other job has taken the folder over, because this one could not be seen for some minutes.
    ///
    /// # Errors
    /// If one has.
    pub fn check(&self) -> Result<()> {
        match self.job.taken_by() {
            None => Ok(()),
            Some(job) => Err(ResultsError::TakenOver { folder: self.job.folder.clone(), job }),
        }
    }
}

impl Drop for FolderLock {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        if let Some(renewal) = self.renewal.take() {
            renewal.thread().unpark();
            drop(renewal.join());
        }
        if self.job.taken_by().is_none() {
            drop(fs::remove_file(self.job.folder.join(JOB_FILE)));
        }
    }
}

const ANOTHER_JOB: &str = "another job";

/// A job that holds a folder, as its file has it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Holder {
    /// `Slurm job 42 on node7`.
    job: String,
    host: String,
    /// How often the scheduler had requeued the job.
    restarts: u32,
    /// A number of this process, because hosts reuse theirs.
    process: String,
}

impl Holder {
    /// This job.
    fn this() -> Self {
        let restarts = SCHEDULERS.iter().find_map(|(_, job, restarts)| {
            std::env::var(job).ok()?;
            std::env::var(restarts).ok()?.parse().ok()
        });
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_nanos();
        Self { job: this_job(), host: host(), restarts: restarts.unwrap_or(0), process: format!("{} {now}", std::process::id()) }
    }

    /// The job in the file of a folder, if there is one.
    fn of(folder: &Path) -> Option<Self> {
        fs::read_to_string(folder.join(JOB_FILE)).ok().map(|text| Self::parse(&text))
    }

    /// The first line is for people.
    fn parse(text: &str) -> Self {
        let value = |key: &str| text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(": ")).unwrap_or("");
        let job = match text.lines().next().map(str::trim) {
            None | Some("") => ANOTHER_JOB,
            Some(job) => job,
        };
        Self {
            job: job.to_owned(),
            host: value("host").to_owned(),
            restarts: value("restarts").parse().unwrap_or(0),
            process: value("process").to_owned(),
        }
    }

    fn to_text(&self) -> String {
        let Self { job, host, restarts, process } = self;
        format!("{job}\nhost: {host}\nrestarts: {restarts}\nprocess: {process}\n")
    }

    /// Whether `later` may use the folder because this job is over for sure: it was on the same host, whose lock is free, or the scheduler has
    /// requeued it.
    fn is_over_for(&self, later: &Self, has_system_lock: bool) -> bool {
        let is_requeued = self.number() == later.number() && self.restarts < later.restarts;
        let is_gone_here = self.host == later.host && (has_system_lock || !self.is_alive_here());
        is_requeued || is_gone_here || self.host.is_empty()
    }

    /// Whether this host has a process with its number.
    fn is_alive_here(&self) -> bool {
        self.process.split(' ').next().is_some_and(|number| Path::new("/proc").join(number).exists())
    }

    /// The job without its host.
    fn number(&self) -> &str {
        self.job.rsplit_once(" on ").map_or(&self.job, |(number, _)| number)
    }
}

/// The file of this job and the job that was lost before, if there was one; or the job that uses the folder.
type Taken = std::result::Result<(JobFile, Option<String>), String>;

/// The file with the job that holds a folder.
struct JobFile {
    folder: PathBuf,
    holder: Holder,
}

impl JobFile {
    /// Makes the file of a job in a folder, over that of one that was lost, which is also returned. The inner error is the job that uses
    /// the folder.
    ///
    /// # Errors
    /// When the file system fails.
    fn take(folder: &Path, holder: &Holder, has_system_lock: bool, lost_after: Duration) -> io::Result<Taken> {
        let path = folder.join(JOB_FILE);
        let this = Self { folder: folder.to_owned(), holder: holder.clone() };
        let Some(former) = Holder::of(folder) else {
            return Ok(match this.create() {
                Err(cause) if cause.kind() == ErrorKind::AlreadyExists => Err(Self::name_of_user(folder)),
                created => Ok((created.map(|()| this)?, None)),
            });
        };
        let is_over = former.is_over_for(holder, has_system_lock);
        let age = age_by_file_server(folder, &path)?;
        if !is_over && age < lost_after {
            let (ago, left) = (text::seconds(age.as_secs_f64()), text::seconds((lost_after - age).as_secs_f64()));
            return Ok(Err(format!(
                "{} (its last sign of life came {ago} ago: if it is lost, the folder is free after {left}, or when {} is deleted)",
                former.job,
                path.display()
            )));
        }
        // Another job may find the same. Only one of them can move the file away, and it sees whether it was still the file that it had read.
        let aside = folder.join(format!("{JOB_FILE}.{}", std::process::id()));
        match fs::rename(&path, &aside) {
            Err(cause) if cause.kind() == ErrorKind::NotFound => {}
            renamed => renamed?,
        }
        let moved = fs::read_to_string(&aside).map(|text| Holder::parse(&text));
        drop(fs::remove_file(&aside));
        if moved.as_ref().is_ok_and(|moved| *moved != former) {
            drop(moved.map(|holder| Self { folder: folder.to_owned(), holder }.create()));
            return Ok(Err(Self::name_of_user(folder)));
        }
        Ok(match this.create() {
            Err(cause) if cause.kind() == ErrorKind::AlreadyExists => Err(Self::name_of_user(folder)),
            created => Ok((created.map(|()| this)?, (!is_over).then_some(former.job))),
        })
    }

    fn name_of_user(folder: &Path) -> String {
        Holder::of(folder).map_or_else(|| ANOTHER_JOB.into(), |holder| holder.job)
    }

    /// Writes the file, if there is none.
    fn create(&self) -> io::Result<()> {
        let mut file = OpenOptions::new().create_new(true).write(true).open(self.folder.join(JOB_FILE))?;
        file.write_all(self.holder.to_text().as_bytes())
    }

    /// The job that has taken the folder over, if one has.
    fn taken_by(&self) -> Option<String> {
        let now = Holder::of(&self.folder)?;
        // A new file is empty for a moment.
        (now != self.holder && !now.process.is_empty()).then_some(now.job)
    }

    /// Writes the same again every half minute, so that the file server gives it the present time.
    fn renew_until(&self, is_over: Arc<AtomicBool>) -> Option<JoinHandle<()>> {
        let this = Self { folder: self.folder.clone(), holder: self.holder.clone() };
        let renew = move || {
            while !is_over.load(Ordering::Relaxed) {
                std::thread::park_timeout(RENEWAL);
                // A failure passes, or the folder is given up in time.
                if this.taken_by().is_none() && !is_over.load(Ordering::Relaxed) {
                    drop(this.renew());
                }
            }
        };
        std::thread::Builder::new().name("folder lock".into()).spawn(renew).ok()
    }

    fn renew(&self) -> io::Result<()> {
        let file = OpenOptions::new().write(true).open(self.folder.join(JOB_FILE))?;
        file.write_all_at(self.holder.to_text().as_bytes(), 0)
    }
}

/// How old a file is by the clock of the file server, which may differ from ours.
fn age_by_file_server(folder: &Path, path: &Path) -> io::Result<Duration> {
    let probe = folder.join(format!("{JOB_FILE}.now-{}", std::process::id()));
    fs::write(&probe, "x")?;
    let now = fs::metadata(&probe).and_then(|file| file.modified());
    drop(fs::remove_file(&probe));
    match fs::metadata(path).and_then(|file| file.modified()) {
        Ok(then) => Ok(now?.duration_since(then).unwrap_or_default()),
        // The job has ended since.
        Err(cause) if cause.kind() == ErrorKind::NotFound => Ok(Duration::MAX),
        Err(cause) => Err(cause),
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

/// The job that uses the folder of a run, such as `Slurm job 42 on node7`, as far as the system's locks tell. It may be this one.
pub fn job_using(folder: &Path) -> Option<String> {
    let digest = File::open(folder.join(DIGEST_FILE)).ok()?;
    matches!(digest.try_lock_shared(), Err(TryLockError::WouldBlock)).then(|| JobFile::name_of_user(folder))
}

/// This job, such as `Slurm job 42 on node7`.
pub(super) fn this_job() -> String {
    let job = job_of_scheduler(|name| std::env::var(name).ok());
    format!("{} on {}", job.unwrap_or_else(|| format!("process {}", std::process::id())), host())
}

/// The job in the environment variables of a scheduler; a task of an array as `squeue` lists it.
fn job_of_scheduler(variable: impl Fn(&str) -> Option<String>) -> Option<String> {
    if let (Some(array), Some(task)) = (variable("SLURM_ARRAY_JOB_ID"), variable("SLURM_ARRAY_TASK_ID")) {
        return Some(format!("Slurm job {array}_{task}"));
    }
    SCHEDULERS.iter().find_map(|(name, number, _)| Some(format!("{name} job {}", variable(number)?)))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn holder(job: &str, host: &str, restarts: u32) -> Holder {
        Holder { job: format!("{job} on {host}"), host: host.into(), restarts, process: format!("{job} {host} {restarts}") }
    }

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

    #[test]
    fn a_folder_is_kept_from_other_hosts_until_its_job_is_lost() {
        let place = tempfile::tempdir().unwrap();
        let folder = place.path();
        let take = |job: &Holder, lost_after| JobFile::take(folder, job, true, lost_after).unwrap();
        let (first, other) = (holder("Slurm job 1", "a", 0), holder("Slurm job 2", "b", 0));
        let (mine, lost) = take(&first, LOST_AFTER).ok().unwrap();
        assert!(lost.is_none() && mine.taken_by().is_none());
        // On another host, without the system's lock.
        let refused = take(&other, LOST_AFTER).err().unwrap();
        assert!(refused.starts_with("Slurm job 1 on a (its last sign of life came") && refused.contains("job.txt"), "{refused}");
        assert_eq!(Holder::of(folder), Some(first.clone()), "a job that is refused changes nothing");
        // The file is renewed where it is.
        mine.renew().unwrap();
        assert!(mine.taken_by().is_none());
        // A job that was not seen for long.
        let (theirs, lost) = take(&other, Duration::ZERO).ok().unwrap();
        assert_eq!(lost.as_deref(), Some("Slurm job 1 on a"));
        assert_eq!((theirs.taken_by(), mine.taken_by().as_deref()), (None, Some("Slurm job 2 on b")));
        // A requeued job takes what it had before at once, also from another host; a second step of it does not.
        let requeued = holder("Slurm job 2", "c", 1);
        assert!(take(&holder("Slurm job 2", "c", 0), LOST_AFTER).is_err());
        assert!(take(&requeued, LOST_AFTER).is_ok_and(|(_, lost)| lost.is_none()));
        // The system's lock is enough on the same host.
        assert!(take(&holder("process 5", "c", 0), LOST_AFTER).is_ok_and(|(_, lost)| lost.is_none()));
        // Without that lock, a process that lives keeps the folder.
        let mut alive = holder("process 6", "c", 0);
        alive.process = format!("{} 0", std::process::id());
        assert!(take(&alive, LOST_AFTER).is_ok());
        assert!(JobFile::take(folder, &requeued, false, LOST_AFTER).unwrap().is_err());
        let files: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(files, [JOB_FILE], "nothing else stays");
    }

    #[test]
    fn a_lock_is_taken_and_given_back() {
        let place = tempfile::tempdir().unwrap();
        let lock = FolderLock::acquire(place.path()).unwrap();
        lock.check().unwrap();
        fs::write(place.path().join(JOB_FILE), holder("Slurm job 2", "b", 0).to_text()).unwrap();
        assert!(lock.check().unwrap_err().to_string().contains("Slurm job 2 on b"));
        drop(lock);
        assert!(Holder::of(place.path()).is_some(), "the file of another job stays");
    }
}
