//! Errors of result files and folders of runs.

use std::path::{Path, PathBuf};

/// A problem with a result file or the folder of a run.
#[derive(Debug, thiserror::Error)]
pub enum ResultsError {
    /// An operation of the operating system failed.
    #[error("{}: cannot {doing}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The operation.
        doing: &'static str,
        /// The cause.
        source: std::io::Error,
    },
    /// An operation of the HDF5 library failed.
    #[error("{}: cannot {doing}: {}", path.display(), cause(source))]
    Hdf5 {
        /// The file.
        path: PathBuf,
        /// The operation.
        doing: String,
        /// The cause.
        source: Box<hdf5::Error>,
    },
    /// The file has an unexpected content.
    #[error("{}: {what}", path.display())]
    Content {
        /// The file.
        path: PathBuf,
        /// What is wrong, and what to do.
        what: String,
    },
    /// The folder holds another run.
    #[error("{}", other_run(folder, differs, job.as_deref(), longer.as_deref()))]
    OtherRun {
        /// The folder.
        folder: PathBuf,
        /// The first value that differs.
        differs: String,
        /// Another job that uses it now, if one does.
        job: Option<String>,
        /// The command that extends the run in the folder to the length of this one, if it only differs in being shorter.
        longer: Option<String>,
    },
    /// The folder holds a run on other data.
    #[error(
        "{} holds a run that was begun on other data (digest {recorded:.12}, but {found:.12} in {file}): restore its data, begin another run \
         with another --output, or delete that run",
        folder.display()
    )]
    OtherData {
        /// The folder.
        folder: PathBuf,
        /// The digest of the data that the run was begun on.
        recorded: String,
        /// The digest of the data now.
        found: String,
        /// The dataset.
        file: String,
    },
    /// Another job uses the folder.
    #[error("{} is used by {job}: wait until it ends, or begin another run with another --output", folder.display())]
    InUse {
        /// The folder.
        folder: PathBuf,
        /// The job: `Slurm job 42 on node7`.
        job: String,
    },
    /// Another job has taken the folder over.
    #[error(
        "{} was taken over by {job}, because this job could not be seen for some minutes: it ends without saving, and the other continues",
        folder.display()
    )]
    TakenOver {
        /// The folder.
        folder: PathBuf,
        /// The job.
        job: String,
    },
    /// The file that shows whose the folder is was deleted.
    #[error(
        "{} or its job.txt is gone: somebody has deleted it, or another job has taken the folder over and has ended. This job ends without \
         saving; what the folder still holds can be resumed",
        folder.display()
    )]
    LockDeleted {
        /// The folder.
        folder: PathBuf,
    },
    /// This process was asked to stop while it waited whether another job is alive.
    #[error("stopped while waiting for {}; the same command begins again", folder.display())]
    StoppedWatching {
        /// The folder.
        folder: PathBuf,
    },
    /// Draws or tables are inconsistent.
    #[error("{0}")]
    Shape(String),
}

/// What to do about a result file that is not whole.
pub(super) const REMEDY: &str = "restore it, or run again with another --output";

/// What made an operation of the HDF5 library fail: what the operating system said, if the library names that.
fn cause(error: &hdf5::Error) -> String {
    match system_error(error) {
        Some(number) => std::io::Error::from_raw_os_error(number).to_string(),
        None => error.to_string(),
    }
}

/// The number of the error of the operating system that the HDF5 library passes on, if it does.
pub(super) fn system_error(error: &hdf5::Error) -> Option<i32> {
    let text = error.to_string();
    let (_, after) = text.split_once("errno = ")?;
    after.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
}

fn other_run(folder: &Path, differs: &str, job: Option<&str>, longer: Option<&str>) -> String {
    let holds = format!("{} holds a run with another configuration ({differs})", folder.display());
    match (job, longer) {
        (Some(job), _) => format!("{holds}, which {job} is carrying out: choose another --output"),
        (None, Some(longer)) => {
            format!("{holds}: make that run longer with `{longer}`, choose another --output, or delete that run")
        }
        (None, None) => format!("{holds}: choose another --output, or delete that run"),
    }
}

impl ResultsError {
    /// Whether the error may come from the file system and not from the content, so that it may be gone later.
    pub fn may_be_temporary(&self) -> bool {
        matches!(self, Self::Io { .. } | Self::Hdf5 { .. })
    }

    pub(super) fn io(path: &Path, doing: &'static str) -> impl FnOnce(std::io::Error) -> Self + use<> {
        let path = path.to_path_buf();
        move |source| Self::Io { path, doing, source }
    }

    pub(super) fn hdf5(path: &Path, doing: impl Into<String>) -> impl FnOnce(hdf5::Error) -> Self {
        let (path, doing) = (path.to_path_buf(), doing.into());
        move |source| Self::Hdf5 { path, doing, source: Box::new(source) }
    }
}

/// A `Result` whose error is a [`ResultsError`].
pub type Result<T> = std::result::Result<T, ResultsError>;
