//! The lock that a job holds on the folder of a run, and which job that is.
//!
//! The lock has two parts. The file lock on `data.digest` is reliable between processes of one host, and between hosts where the network file
//! system supports it. Where it does not, as on some installations of Lustre and NFS, the file `job.txt` keeps other hosts away: it names the job
//! that holds the folder, which renews it every half minute. A job that was killed, or whose host was lost, leaves the file behind. A job on
//! another host therefore watches the file for a while and takes the folder over if it is not renewed.

use super::error::{Result, ResultsError};
use super::stop;
use crate::cluster::placement::host;
use crate::text;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, ErrorKind};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime};

/// The file with the digest of the data, which a job locks.
pub(super) const DIGEST_FILE: &str = "data.digest";
/// The file with the name of the job that holds the lock.
const JOB_FILE: &str = "job.txt";
/// Schedulers, each with the environment variable that has the number of a job.
const SCHEDULERS: [(&str, &str); 3] = [("Slurm", "SLURM_JOB_ID"), ("PBS", "PBS_JOBID"), ("LSF", "LSB_JOBID")];
/// The variable with the number of times that Slurm has requeued a job, which keeps its number.
const RESTARTS: &str = "SLURM_RESTART_COUNT";
/// How often locking is tried: a process that looks whose a folder is ([`job_with_lock`]) has the lock for a moment.
const LOCK_ATTEMPTS: usize = 10;
/// The pause between two attempts.
const BETWEEN_ATTEMPTS: Duration = Duration::from_millis(50);
/// Variables that launchers set for the ranks that they start.
const RANK_VARIABLES: [&str; 3] = ["OMPI_COMM_WORLD_RANK=", "PMI_RANK=", "PMIX_RANK="];
/// How long a job whose launcher was killed may take to end.
const TIME_TO_END: Duration = Duration::from_secs(10);
/// How often a job renews its file.
const RENEWAL: Duration = Duration::from_secs(30);
/// A job on another host counts as lost if its file does not change while it is watched for this long.
const WATCH: Duration = Duration::from_secs(100);
/// The pause between looks at the file.
const BETWEEN_LOOKS: Duration = Duration::from_millis(500);
/// A file that was renewed within this time is taken for that of a living job by processes that do not wait.
const RECENT: Duration = Duration::from_secs(100);

/// The lock on a folder, until it is dropped.
pub(super) struct FolderLock {
    /// The locked `data.digest`.
    pub digest: File,
    /// None if the file could not be written, such as on a full disk: then only the system's lock keeps others away.
    job: Option<JobFile>,
    /// The job that had the folder and was lost, if there was one on another host.
    pub lost: Option<String>,
    ends: Arc<AtomicBool>,
    renewal: Option<JoinHandle<()>>,
}

impl FolderLock {
    /// Locks an existing folder. If it has to be watched for a while, `say` tells why.
    ///
    /// # Errors
    /// When another job has the lock, or the file system fails.
    pub fn acquire(folder: &Path, say: &dyn Fn(&str)) -> Result<Self> {
        let path = folder.join(DIGEST_FILE);
        let open = File::options().create(true).truncate(false).read(true).write(true).open(&path);
        let digest = open.map_err(ResultsError::io(&path, "open"))?;
        let in_use = |job: String| ResultsError::InUse { folder: folder.to_owned(), job };
        let has_file_lock = match lock(&digest, folder, say) {
            Ok(()) => true,
            // The wait for a job without its launcher was cut short.
            Err(TryLockError::WouldBlock)
                if stop::asked() && Holder::of(folder).is_some_and(|holder| holder.is_orphan_here()) =>
            {
                return Err(ResultsError::StoppedWatching { folder: folder.to_owned() });
            }
            Err(TryLockError::WouldBlock) => {
                return Err(in_use(name_of_holder(folder)));
            }
            Err(TryLockError::Error(cause))
                if cause.kind() == ErrorKind::Unsupported || cause.raw_os_error() == Some(libc::ENOLCK) =>
            {
                false
            }
            Err(TryLockError::Error(cause)) => return Err(ResultsError::io(&path, "lock")(cause)),
        };
        let (job, lost) = match JobFile::take(folder, &Holder::this(), has_file_lock, WATCH, say) {
            Ok(Taken::Mine(job, lost)) => (Some(job), lost),
            Ok(Taken::ByOther(job)) => return Err(in_use(job)),
            Ok(Taken::Stopped) => return Err(ResultsError::StoppedWatching { folder: folder.to_owned() }),
            // A full disk is no reason not to resume: the run goes on, and saves later.
            Err(cause) if has_file_lock => {
                let path = folder.join(JOB_FILE);
                say(&format!("{}: {cause}. Jobs on other hosts may not see that this one uses the folder", path.display()));
                (None, None)
            }
            Err(cause) => return Err(ResultsError::io(&folder.join(JOB_FILE), "write")(cause)),
        };
        let ends = Arc::new(AtomicBool::new(false));
        let renewal = job.as_ref().and_then(|job| job.renew_until(ends.clone()));
        Ok(Self { digest, job, lost, ends, renewal })
    }

    /// Checks that the folder is still that of this job. Another one takes it over if this one has not renewed its file for a while.
    ///
    /// # Errors
    /// If one has, the file is gone, or it cannot be read now.
    pub fn check(&self) -> Result<()> {
        let Some(job) = &self.job else { return Ok(()) };
        let folder = || job.folder.clone();
        match job.owner() {
            Ok(Owner::This) => Ok(()),
            Ok(Owner::Other(other)) => Err(ResultsError::TakenOver { folder: folder(), job: other }),
            Ok(Owner::Nobody) => Err(ResultsError::LockDeleted { folder: folder() }),
            Err(cause) => Err(ResultsError::io(&job.folder.join(JOB_FILE), "read")(cause)),
        }
    }
}

impl Drop for FolderLock {
    fn drop(&mut self) {
        self.ends.store(true, Ordering::Relaxed);
        if let Some(renewal) = self.renewal.take() {
            renewal.thread().unpark();
            drop(renewal.join());
        }
        if let Some(job) = self.job.as_ref().filter(|job| job.is_mine()) {
            drop(fs::remove_file(job.folder.join(JOB_FILE)));
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
    /// The ID of this process and when it took the folder, because hosts reuse IDs.
    process: String,
}

impl Holder {
    /// This job.
    fn this() -> Self {
        let restarts = std::env::var(RESTARTS).ok().and_then(|restarts| restarts.parse().ok());
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_nanos();
        Self { job: this_job(), host: host(), restarts: restarts.unwrap_or(0), process: format!("{} {now}", std::process::id()) }
    }

    /// The job in the file of a folder, if there is one that can be read.
    fn of(folder: &Path) -> Option<Self> {
        fs::read_to_string(folder.join(JOB_FILE)).ok().map(|text| Self::parse(&text))
    }

    /// The first line is the name of the job.
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

    /// The file, which says how often it was renewed. Its length is always the same.
    fn to_text(&self, renewals: u64) -> String {
        let Self { job, host, restarts, process } = self;
        format!("{job}\nhost: {host}\nrestarts: {restarts}\nprocess: {process}\nrenewals: {renewals:020}\n")
    }

    /// Whether this job has certainly ended: `later` runs on the same host and has the file lock, or its process is gone there; or `later` is the
    /// same job, requeued.
    fn is_over_for(&self, later: &Self, has_file_lock: bool) -> bool {
        let is_requeued = self.job_without_host() == later.job_without_host() && self.restarts < later.restarts;
        let is_gone_here = self.host == later.host && (has_file_lock || !self.is_alive_here());
        is_requeued || is_gone_here
    }

    /// Whether this host has a process with its ID.
    fn is_alive_here(&self) -> bool {
        self.process_id().is_some_and(|number| Path::new("/proc").join(number).exists())
    }

    fn process_id(&self) -> Option<&str> {
        self.process.split(' ').next()
    }

    /// Whether this job is a rank on this host that has lost its launcher: `mpirun` was killed, and its ranks end within seconds.
    fn is_orphan_here(&self) -> bool {
        let Some(number) = self.process_id().filter(|_| self.host == host()) else { return false };
        let of = |number: &str, file: &str| fs::read(Path::new("/proc").join(number).join(file)).ok();
        let is_rank = of(number, "environ").is_some_and(|variables| {
            let has = |name: &&str| variables.split(|byte| *byte == 0).any(|variable| variable.starts_with(name.as_bytes()));
            RANK_VARIABLES.iter().any(has)
        });
        // The name of the program, in parentheses, may contain anything. After it come the state and the parent.
        let stat = of(number, "stat").map(|stat| String::from_utf8_lossy(&stat).into_owned());
        let parent = stat.as_ref().and_then(|stat| stat.rsplit_once(") ")?.1.split(' ').nth(1));
        let is_adopted = |parent: &str| parent == "1" || of(parent, "comm").is_some_and(|name| name.starts_with(b"systemd"));
        is_rank && parent.is_some_and(is_adopted)
    }

    /// The job without its host.
    fn job_without_host(&self) -> &str {
        self.job.rsplit_once(" on ").map_or(&self.job, |(number, _)| number)
    }
}

/// What came of an attempt to take a folder.
enum Taken {
    /// It is this job's: its file, and the job that was lost before, if there was one.
    Mine(JobFile, Option<String>),
    /// Another job, with this name, uses it.
    ByOther(String),
    /// This process was asked to stop while it watched the file of a job.
    Stopped,
}

/// Whose a folder is.
enum Owner {
    This,
    Other(String),
    /// The file of the job is gone. Somebody has deleted it, or another job has had the folder and has ended.
    Nobody,
}

/// The file with the job that holds a folder.
struct JobFile {
    folder: PathBuf,
    holder: Holder,
    renewals: Arc<AtomicU64>,
}

impl JobFile {
    fn new(folder: &Path, holder: &Holder) -> Self {
        Self { folder: folder.to_owned(), holder: holder.clone(), renewals: Arc::new(AtomicU64::new(0)) }
    }

    /// Makes the file of a job in a folder, over that of one that was lost, which is also returned.
    ///
    /// # Errors
    /// When the file system fails.
    fn take(folder: &Path, holder: &Holder, has_file_lock: bool, watch: Duration, say: &dyn Fn(&str)) -> io::Result<Taken> {
        let path = folder.join(JOB_FILE);
        let this = Self::new(folder, holder);
        let text = match fs::read_to_string(&path) {
            Err(cause) if cause.kind() == ErrorKind::NotFound => return this.create_or_find_holder(None),
            // Not text: the file of an unknown job, which is watched like others.
            Err(cause) if cause.kind() == ErrorKind::InvalidData => String::new(),
            text => text?,
        };
        let former = Holder::parse(&text);
        let is_over = former.is_over_for(holder, has_file_lock);
        if !is_over {
            let seconds = text::seconds(watch.as_secs_f64());
            let (job, place) = (&former.job, folder.display());
            say(&format!("{job} used {place} last and may still be running: watching its job.txt for {seconds}"));
            match watch_file(&path, &text, watch)? {
                Watched::Unchanged => {}
                // The job has ended and deleted its file.
                Watched::Gone => return this.create_or_find_holder(None),
                Watched::Renewed => return Ok(Taken::ByOther(name_of_holder(folder))),
                Watched::Stopped => return Ok(Taken::Stopped),
            }
        }
        // Another job may find the same. Only one of them can move the file away, and it sees whether it was still the file that it had read.
        let aside = folder.join(format!("{JOB_FILE}.{}-{}", host(), std::process::id()));
        match fs::rename(&path, &aside) {
            Err(cause) if cause.kind() == ErrorKind::NotFound => {}
            Err(cause) => return Err(cause),
            Ok(()) => {
                let is_other = fs::read_to_string(&aside).is_ok_and(|moved| moved != text);
                if is_other {
                    // Back to its place, unless somebody else was faster.
                    drop(fs::hard_link(&aside, &path));
                }
                drop(fs::remove_file(&aside));
                if is_other {
                    return Ok(Taken::ByOther(name_of_holder(folder)));
                }
            }
        }
        this.create_or_find_holder((!is_over).then_some(former.job))
    }

    fn create_or_find_holder(self, lost: Option<String>) -> io::Result<Taken> {
        match self.create() {
            Err(cause) if cause.kind() == ErrorKind::AlreadyExists => Ok(Taken::ByOther(name_of_holder(&self.folder))),
            created => created.map(|()| Taken::Mine(self, lost)),
        }
    }

    /// Makes the file, which appears with its content, if there is none.
    fn create(&self) -> io::Result<()> {
        let path = self.folder.join(JOB_FILE);
        let partial = self.folder.join(format!("{JOB_FILE}.{}-{}.new", host(), std::process::id()));
        let text = self.holder.to_text(0);
        let created = fs::write(&partial, &text).and_then(|()| match fs::hard_link(&partial, &path) {
            // Some file systems have no links.
            Err(cause) if cause.kind() != ErrorKind::AlreadyExists => {
                OpenOptions::new().create_new(true).write(true).open(&path)?.write_all_at(text.as_bytes(), 0)
            }
            linked => linked,
        });
        drop(fs::remove_file(&partial));
        created
    }

    /// Whose the folder is now.
    ///
    /// # Errors
    /// When the file cannot be read.
    fn owner(&self) -> io::Result<Owner> {
        match fs::read_to_string(self.folder.join(JOB_FILE)) {
            Ok(text) if Holder::parse(&text) == self.holder => Ok(Owner::This),
            Ok(text) => Ok(Owner::Other(Holder::parse(&text).job)),
            Err(cause) if cause.kind() == ErrorKind::NotFound => Ok(Owner::Nobody),
            Err(cause) => Err(cause),
        }
    }

    /// Whether the folder is certainly still that of this job.
    fn is_mine(&self) -> bool {
        matches!(self.owner(), Ok(Owner::This))
    }

    /// Renews the file every half minute.
    fn renew_until(&self, ends: Arc<AtomicBool>) -> Option<JoinHandle<()>> {
        let this = Self { folder: self.folder.clone(), holder: self.holder.clone(), renewals: self.renewals.clone() };
        let renew = move || {
            while !ends.load(Ordering::Relaxed) {
                std::thread::park_timeout(RENEWAL);
                // If renewal keeps failing, another job takes the folder over, and `check` notices that before the next save.
                if this.is_mine() && !ends.load(Ordering::Relaxed) {
                    drop(this.renew());
                }
            }
        };
        std::thread::Builder::new().name("folder lock".into()).spawn(renew).ok()
    }

    /// Writes the file over itself, with another number.
    fn renew(&self) -> io::Result<()> {
        let file = OpenOptions::new().write(true).open(self.folder.join(JOB_FILE))?;
        let renewals = self.renewals.fetch_add(1, Ordering::Relaxed) + 1;
        file.write_all_at(self.holder.to_text(renewals).as_bytes(), 0)
    }
}

/// What happened to a file while it was watched.
enum Watched {
    Unchanged,
    Gone,
    Renewed,
    /// This process was asked to stop.
    Stopped,
}

/// Watches a file for so long, until something happens to it, or until this process is asked to stop.
fn watch_file(path: &Path, text: &str, watch: Duration) -> io::Result<Watched> {
    let since = Instant::now();
    while since.elapsed() < watch {
        std::thread::sleep(BETWEEN_LOOKS.min(watch));
        match fs::read_to_string(path) {
            Err(cause) if cause.kind() == ErrorKind::NotFound => return Ok(Watched::Gone),
            Err(cause) if cause.kind() == ErrorKind::InvalidData && text.is_empty() => {}
            now => {
                if now? != text {
                    return Ok(Watched::Renewed);
                }
            }
        }
        if stop::asked() {
            return Ok(Watched::Stopped);
        }
    }
    Ok(Watched::Unchanged)
}

/// The job in the file of a folder, for messages.
fn name_of_holder(folder: &Path) -> String {
    Holder::of(folder).map_or_else(|| ANOTHER_JOB.into(), |holder| holder.job)
}

/// Takes the file lock. A job whose launcher was killed gets time to end.
fn lock(file: &File, folder: &Path, say: &dyn Fn(&str)) -> std::result::Result<(), TryLockError> {
    for _ in 0..LOCK_ATTEMPTS {
        match file.try_lock() {
            Err(TryLockError::WouldBlock) => std::thread::sleep(BETWEEN_ATTEMPTS),
            other => return other,
        }
    }
    let is_ending = || Holder::of(folder).is_some_and(|holder| holder.is_orphan_here());
    if is_ending() {
        let seconds = text::seconds(TIME_TO_END.as_secs_f64());
        say(&format!("{} has lost its launcher, and may be about to end: waiting for up to {seconds}", name_of_holder(folder)));
        let since = Instant::now();
        while since.elapsed() < TIME_TO_END && is_ending() && !stop::asked() {
            std::thread::sleep(BETWEEN_ATTEMPTS);
        }
    }
    file.try_lock()
}

/// The job that has the file lock on the folder of a run, such as `Slurm job 42 on node7`. It may be this one.
pub fn job_with_lock(folder: &Path) -> Option<String> {
    let digest = File::open(folder.join(DIGEST_FILE)).ok()?;
    matches!(digest.try_lock_shared(), Err(TryLockError::WouldBlock)).then(|| name_of_holder(folder))
}

/// The job that uses the folder of a run, as far as the file lock and the age of the job's file tell without waiting. It may be this one.
pub fn job_using(folder: &Path) -> Option<String> {
    let is_on_other_host = || Holder::of(folder).is_some_and(|holder| holder.host != host());
    let is_recent = || {
        let modified = fs::metadata(folder.join(JOB_FILE)).and_then(|file| file.modified());
        // The clock of a file server may be ahead.
        modified.is_ok_and(|time| time.elapsed().map_or(true, |age| age < RECENT))
    };
    job_with_lock(folder).or_else(|| (is_on_other_host() && is_recent()).then(|| name_of_holder(folder)))
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
    SCHEDULERS.iter().find_map(|(name, number)| Some(format!("{name} job {}", variable(number)?)))
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

    /// How long tests watch a file.
    const SHORT: Duration = Duration::from_millis(200);

    fn take(folder: &Path, job: &Holder) -> Taken {
        JobFile::take(folder, job, true, SHORT, &|_| ()).unwrap()
    }

    /// The file and the job that was lost, or the job that uses the folder.
    fn taken(taken: Taken) -> std::result::Result<(JobFile, Option<String>), String> {
        match taken {
            Taken::Mine(job, lost) => Ok((job, lost)),
            Taken::ByOther(job) => Err(job),
            Taken::Stopped => unreachable!("nobody asks tests to stop"),
        }
    }

    #[test]
    fn a_job_whose_file_was_deleted_is_told_so() {
        let place = tempfile::tempdir().unwrap();
        let lock = FolderLock::acquire(place.path(), &|_| ()).unwrap();
        assert!(lock.check().is_ok());
        fs::remove_file(place.path().join(JOB_FILE)).unwrap();
        let message = lock.check().unwrap_err().to_string();
        assert!(message.contains("or its job.txt is gone") && !message.contains("taken over by"), "{message}");
    }

    #[test]
    fn a_rank_without_its_launcher_is_an_orphan() {
        let this = Holder::this();
        assert!(!this.is_orphan_here(), "its parent is the runner of tests, or a shell");
        // The shell ends at once, and leaves its child behind.
        let left_behind = |variable: &str| {
            let command = format!("env {variable} sleep 60 >/dev/null 2>&1 & echo $!");
            let child = std::process::Command::new("sh").args(["-c", &command]).output().unwrap();
            let number = String::from_utf8(child.stdout).unwrap().trim().to_owned();
            // `env` becomes `sleep`.
            while fs::read(format!("/proc/{number}/comm")).unwrap() != b"sleep\n" {
                std::thread::sleep(BETWEEN_ATTEMPTS);
            }
            let holder = Holder { process: format!("{number} 0"), ..this.clone() };
            let outcome = (holder.is_orphan_here(), Holder { host: "elsewhere".into(), ..holder }.is_orphan_here());
            std::process::Command::new("kill").arg(&number).status().unwrap();
            outcome
        };
        assert_eq!(left_behind("OMPI_COMM_WORLD_RANK=0"), (true, false));
        assert_eq!(left_behind("A=0"), (false, false), "a single process that was left running goes on");
    }

    #[test]
    fn a_folder_is_kept_from_other_hosts_until_its_job_is_lost() {
        let place = tempfile::tempdir().unwrap();
        let folder = place.path();
        let (first, other) = (holder("Slurm job 1", "a", 0), holder("Slurm job 2", "b", 0));
        let (mine, lost) = taken(take(folder, &first)).unwrap();
        assert!(lost.is_none() && mine.is_mine());
        // On another host, without the system's lock. The job renews its file while it is watched.
        let said = std::sync::Mutex::new(String::new());
        let say = |text: &str| said.lock().unwrap().push_str(text);
        let refused = std::thread::scope(|scope| {
            let renewing = scope.spawn(|| {
                std::thread::sleep(SHORT / 4);
                mine.renew().unwrap();
            });
            let refused = taken(JobFile::take(folder, &other, true, 50 * SHORT, &|text| say(text)).unwrap()).err();
            renewing.join().unwrap();
            refused
        });
        assert_eq!(refused.as_deref(), Some("Slurm job 1 on a"));
        assert!(said.lock().unwrap().contains("Slurm job 1 on a used "));
        assert!(mine.is_mine(), "a job that is refused changes nothing");
        // A job that is not seen.
        let (theirs, lost) = taken(take(folder, &other)).unwrap();
        assert_eq!(lost.as_deref(), Some("Slurm job 1 on a"));
        assert!(theirs.is_mine() && matches!(mine.owner().unwrap(), Owner::Other(job) if job == "Slurm job 2 on b"));
        // That job may have ended since, or the file was deleted.
        fs::remove_file(folder.join(JOB_FILE)).unwrap();
        assert!(matches!(mine.owner().unwrap(), Owner::Nobody));
        theirs.create().unwrap();
        // A requeued job takes what it had before at once, also from another host.
        let requeued = holder("Slurm job 2", "c", 1);
        let at_once = |job: &Holder| taken(JobFile::take(folder, job, true, Duration::MAX, &|_| ()).unwrap());
        assert!(at_once(&requeued).is_ok_and(|(_, lost)| lost.is_none()));
        // The system's lock is enough on the same host.
        let same_host = holder("process 5", "c", 0);
        assert!(at_once(&same_host).is_ok_and(|(_, lost)| lost.is_none()));
        // Without that lock, a process that lives keeps the folder.
        let mut alive = holder("process 6", "c", 0);
        alive.process = format!("{} 0", std::process::id());
        assert!(taken(take(folder, &alive)).is_ok());
        assert!(!alive.is_over_for(&same_host, false) && alive.is_over_for(&same_host, true));
        // What a disk that was full has left of a file.
        fs::write(folder.join(JOB_FILE), "").unwrap();
        assert!(taken(take(folder, &first)).is_ok_and(|(_, lost)| lost.as_deref() == Some(ANOTHER_JOB)));
        let files: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(files, [JOB_FILE], "nothing else stays");
    }

    #[test]
    fn a_lock_is_taken_and_given_back() {
        let place = tempfile::tempdir().unwrap();
        let lock = FolderLock::acquire(place.path(), &|_| ()).unwrap();
        lock.check().unwrap();
        fs::write(place.path().join(JOB_FILE), holder("Slurm job 2", "b", 0).to_text(0)).unwrap();
        assert!(lock.check().unwrap_err().to_string().contains("Slurm job 2 on b"));
        drop(lock);
        assert!(Holder::of(place.path()).is_some(), "the file of another job stays");
        assert!(job_using(place.path()).is_some(), "and is recent");
    }
}
