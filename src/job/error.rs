//! What ends a job early.

use crate::cluster::{CheckpointError, Fault};
use crate::config::ConfigError;
use crate::data::DataError;
use crate::results::{ResultsError, SaveError};
use std::path::PathBuf;

/// Why a run cannot be used yet.
pub(super) const NOT_FINISHED: &str = "the run is not finished; `mpibayes resume` with its folder resumes it";

/// What ends a job early.
#[derive(Debug, thiserror::Error)]
pub enum JobError {
    /// The run file is wrong.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The data cannot be read, or do not suit the run.
    #[error(transparent)]
    Data(#[from] DataError),
    /// Ranks see different files under one name.
    #[error(
        "{}: this rank sees another dataset (digest {here:.12}) than rank 0 (digest {root:.12}). Give every rank the same file",
        file.display()
    )]
    DifferentData {
        /// The file.
        file: PathBuf,
        /// Its digest on this rank.
        here: String,
        /// Its digest on rank 0.
        root: String,
    },
    /// A result file or run folder cannot be used.
    #[error(transparent)]
    Results(#[from] ResultsError),
    /// The run cannot be saved.
    #[error(transparent)]
    Save(#[from] SaveError),
    /// The run cannot be resumed or made longer.
    #[error(transparent)]
    Extension(#[from] ExtensionError),
    /// A checkpoint cannot be read or written.
    #[error(transparent)]
    Checkpoint(#[from] CheckpointError),
    /// A checkpoint cannot be read at the moment, because the file system fails; it may be undamaged.
    #[error(
        "{cause}. Nothing was changed: try again when the file system is in order{}",
        if *has_previous { ". If the error stays, move this file away, and the run resumes from the checkpoint before it" } else { "" }
    )]
    UnreadableCheckpoint {
        /// The error.
        cause: String,
        /// Whether the run can resume from the checkpoint before it.
        has_previous: bool,
    },
    /// The checkpoint is one of another method, or of another number type.
    #[error("{cause}: delete {} to start the run from the beginning, or choose another --output", folder.display())]
    OtherCheckpoint {
        /// The folder of the run.
        folder: PathBuf,
        /// What differs.
        cause: String,
    },
    /// No checkpoint of the run is whole.
    #[error("{damage}. No checkpoint is whole: delete {} to start the run from the beginning", folder.display())]
    NoWholeCheckpoint {
        /// The folder of the run.
        folder: PathBuf,
        /// What is wrong with each checkpoint.
        damage: String,
    },
    /// Rows cannot be predicted, or their log-likelihoods cannot be computed.
    #[error("cannot predict: {0}")]
    Prediction(String),
    /// The topics of a run cannot be read.
    #[error("{0}")]
    Topics(String),
    /// Settings could not be found automatically, or those that were found cannot be read.
    #[error("{0}")]
    Tuning(String),
    /// The draws of a run cannot be recalibrated, or that would not help.
    #[error("cannot recalibrate: {0}. Nothing was written")]
    Recalibration(String),
    /// The draws of a run cannot be judged.
    #[error("cannot judge: {0}")]
    Judgment(String),
    /// The method failed.
    #[error(transparent)]
    Fault(#[from] Fault),
    /// A temporary folder cannot be created.
    #[error("cannot create a temporary folder: {0}")]
    TemporaryFolder(std::io::Error),
    /// A file beside the run folder, or standard output, cannot be written.
    #[error("{0}")]
    Output(String),
    /// Something failed on a rank, before or after the method ran. All ranks know it; rank 0 reports it.
    #[error("{0}")]
    OnSomeRank(String),
}

/// A run that cannot be resumed or made longer.
#[derive(Debug, thiserror::Error)]
pub enum ExtensionError {
    /// There is no run.
    #[error("{}: there is no {what}", folder.display())]
    NoRun {
        /// The folder.
        folder: PathBuf,
        /// What is missing.
        what: &'static str,
    },
    /// The run is not at its end yet.
    #[error("{}: the run is not finished{until}. Resume it without --{key} first", folder.display())]
    NotFinished {
        /// The folder.
        folder: PathBuf,
        /// The key that was typed.
        key: String,
        /// The length at which the run ends, in parentheses after a space; empty if it is not known.
        until: String,
    },
    /// The method, its settings or the folder do not allow it.
    #[error("{}: this run of {method} cannot be made longer, because {reason}. Start another run with a larger length", folder.display())]
    NotExtendable {
        /// The folder.
        folder: PathBuf,
        /// The method.
        method: String,
        /// Why.
        reason: &'static str,
    },
    /// The length of the run has another name.
    #[error("the length of runs of {method} is given in {key}, and this run has {now}: type --{key} {example}")]
    OtherKey {
        /// The method.
        method: String,
        /// The key.
        key: &'static str,
        /// The length now.
        now: u64,
        /// What to type.
        example: String,
    },
    /// The run would become shorter.
    #[error("the run has {key} = {now} already: type --{key} +{more}, or a number above {now}")]
    Shorter {
        /// The key.
        key: &'static str,
        /// The length now.
        now: u64,
        /// A length to add.
        more: u64,
    },
}
