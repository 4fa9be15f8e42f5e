//! What the folder of a run holds: its files, and the run.

use super::error::{Result, ResultsError};
use super::events::events_file;
use super::info::RunInfo;
use super::lock::DIGEST_FILE;
use super::read::{RESULT_FILE, ResultFile};
use std::ffi::CString;
use std::fs;
use std::io::ErrorKind;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// The result file in the folder of a run, which is first written with the first checkpoint, or earlier if draws fill the memory.
pub fn result_file(folder: &Path) -> PathBuf {
    folder.join(RESULT_FILE)
}

/// The checkpoint in the folder of a run, which exists until the run is finished.
pub fn checkpoint_file(folder: &Path) -> PathBuf {
    folder.join("checkpoint.bin")
}

/// The checkpoint before that one, from which a run resumes if the newest is damaged.
pub(super) fn previous_checkpoint_file(folder: &Path) -> PathBuf {
    folder.join("checkpoint.previous.bin")
}

/// Whether a folder has a checkpoint from which its run would resume.
pub fn has_checkpoint(folder: &Path) -> bool {
    checkpoint_file(folder).exists() || previous_checkpoint_file(folder).exists()
}

/// A damaged checkpoint that a job has set aside.
pub(super) fn damaged_checkpoint_file(folder: &Path) -> PathBuf {
    folder.join("checkpoint.damaged.bin")
}

/// A checkpoint from shortly before the end of a finished run, from which a longer run continues.
pub(super) fn late_checkpoint_file(folder: &Path) -> PathBuf {
    folder.join("extension.bin")
}

/// What was found before the run began: the coordinates in which it samples, and the noise of gradients, from which steps follow.
/// Deleted when the run ends, unless it can be made longer.
pub(super) fn tuning_file(folder: &Path) -> PathBuf {
    folder.join("tuning.bin")
}

/// A copy of that file, because a run cannot be resumed without it.
pub(super) fn tuning_copy_file(folder: &Path) -> PathBuf {
    folder.join("tuning.copy.bin")
}

/// The file with the digest of the data, which a job locks.
pub fn digest_file(folder: &Path) -> PathBuf {
    folder.join(DIGEST_FILE)
}

/// The resolved configuration in the folder of a run, which exists from the beginning.
pub fn config_file(folder: &Path) -> PathBuf {
    folder.join("config.toml")
}

/// The configuration that the run had before it was made longer, if it was.
pub(super) fn first_config_file(folder: &Path) -> PathBuf {
    folder.join("config-before-extension.toml")
}

/// Whether a file, which may not exist, is one of those that make up the run in its folder; false if the folder holds no run.
pub fn is_file_of_run(file: &Path) -> bool {
    let folder = file.parent().unwrap_or(Path::new(""));
    let files = [
        result_file,
        checkpoint_file,
        previous_checkpoint_file,
        damaged_checkpoint_file,
        late_checkpoint_file,
        tuning_file,
        tuning_copy_file,
        config_file,
        digest_file,
        first_config_file,
        events_file,
    ];
    let is_one = files.into_iter().any(|of| of(folder) == file);
    is_one && (config_file(folder).exists() || result_file(folder).exists())
}

/// Whether the run in a folder is finished, according to its result file. One that is being made longer has a checkpoint again.
///
/// # Errors
/// When there is a result file that cannot be read.
pub fn is_finished(folder: &Path) -> Result<bool> {
    Ok(!has_checkpoint(folder) && described_by_results(folder)?.is_some_and(|results| results.state.finished))
}

/// What the result file in a folder says of its run, if there is one. A damaged one beside a checkpoint says nothing: the job that resumes the
/// run needs its draws or writes it anew, and reports the damage in the first case.
fn described_by_results(folder: &Path) -> Result<Option<RunInfo>> {
    let file = result_file(folder);
    if !file.exists() {
        return Ok(None);
    }
    match ResultFile::open(&file) {
        Ok(file) => Ok(Some(file.info().clone())),
        Err(ResultsError::Content { .. } | ResultsError::Hdf5 { .. }) if has_checkpoint(folder) => Ok(None),
        Err(cause) => Err(cause),
    }
}

/// Checks that a run could be written into a folder, which may not exist yet. Changes nothing.
///
/// # Errors
/// If the folder, or the first existing one above it, cannot be written.
pub fn check_writable(folder: &Path) -> Result<()> {
    let absolute = std::path::absolute(folder).map_err(ResultsError::io(folder, "use it as a folder"))?;
    let Some(existing) = absolute.ancestors().find(|place| place.exists()) else { return Ok(()) };
    let Ok(name) = CString::new(existing.as_os_str().as_bytes()) else { return Ok(()) };
    // SAFETY: the name ends with a zero byte.
    match unsafe { libc::access(name.as_ptr(), libc::W_OK | libc::X_OK) } {
        0 => Ok(()),
        _ => Err(ResultsError::io(folder, "write there")(std::io::Error::last_os_error())),
    }
}

/// The run that a folder holds, if any. Changes nothing, and does not need the folder to exist.
///
/// # Errors
/// If the folder is a file, cannot be read, has only a part of the files that identify a run, or holds folders of other runs.
pub fn existing_run(folder: &Path) -> Result<Option<ExistingRun>> {
    refuse_folder_of_runs(folder)?;
    match fs::read_to_string(digest_file(folder)) {
        Ok(data_digest) => run_with_digest(folder, &data_digest),
        Err(cause) if cause.kind() == ErrorKind::NotFound => run_with_digest(folder, ""),
        Err(_) if folder.is_file() => Err(not_a_folder(folder)),
        Err(cause) => Err(ResultsError::io(folder, "use it as a folder")(cause)),
    }
}

/// The run that a folder holds.
#[derive(Clone, Debug, PartialEq)]
pub struct ExistingRun {
    /// Its resolved configuration.
    pub config: String,
    /// The one that it had before it was made longer, if it was.
    pub first_config: Option<String>,
    /// The digest of its data; empty if it has none.
    pub data_digest: String,
    /// What its result file says of it, if there is one.
    pub results: Option<RunInfo>,
    /// Whether it is finished.
    pub finished: bool,
    /// Whether it has a result file or a checkpoint.
    pub holds_results: bool,
}

pub(super) fn not_a_folder(path: &Path) -> ResultsError {
    ResultsError::Content { path: path.to_owned(), what: "this is a file: name the folder of a run".into() }
}

/// The run that a folder with this `data.digest` holds, if any.
pub(super) fn run_with_digest(folder: &Path, data_digest: &str) -> Result<Option<ExistingRun>> {
    let results = described_by_results(folder)?;
    let finished = !has_checkpoint(folder) && results.as_ref().is_some_and(|results| results.state.finished);
    let config = config_file(folder);
    let exists = |path: PathBuf| path.try_exists().map_err(ResultsError::io(&path, "look for"));
    let holds_results = [result_file, checkpoint_file, previous_checkpoint_file].into_iter();
    let holds_results = holds_results.map(|file| exists(file(folder))).collect::<Result<Vec<bool>>>()?.contains(&true);
    match fs::read_to_string(&config) {
        // A run without data has a digest, too: an empty line.
        Ok(_) if data_digest.is_empty() => Err(ResultsError::Content {
            path: folder.to_owned(),
            what: format!(
                "there is a config.toml, but {DIGEST_FILE}, which identifies the data of its run, is missing or empty: choose another --output"
            ),
        }),
        Ok(config) => {
            let first_config = first_config_file(folder);
            let first_config = match fs::read_to_string(&first_config) {
                Err(cause) if cause.kind() == ErrorKind::NotFound => None,
                read => Some(read.map_err(ResultsError::io(&first_config, "read"))?),
            };
            let data_digest = data_digest.trim_end().into();
            Ok(Some(ExistingRun { config, first_config, data_digest, results, finished, holds_results }))
        }
        Err(cause) if cause.kind() != ErrorKind::NotFound => Err(ResultsError::io(&config, "read")(cause)),
        Err(_) if holds_results => Err(ResultsError::Content {
            path: folder.to_owned(),
            what: format!(
                "the config.toml of the run in this folder is missing: restore it, or choose another --output{}",
                if results.is_some() { ". `mpibayes summary` still reads the results" } else { "" }
            ),
        }),
        Err(_) => Ok(None),
    }
}

/// Refuses a folder that holds no run of its own, but folders of runs.
pub(super) fn refuse_folder_of_runs(folder: &Path) -> Result<()> {
    if config_file(folder).exists() || result_file(folder).exists() || !holds_runs(folder) {
        return Ok(());
    }
    Err(ResultsError::Content {
        path: folder.to_owned(),
        what: "this folder holds other runs, such as those of a sweep: choose another --output for a new run, or name one of these runs to resume \
               it. A sweep continues with `mpibayes sweep`"
            .into(),
    })
}

/// Whether folders in this one hold runs.
fn holds_runs(folder: &Path) -> bool {
    let mut folders = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    folders.any(|folder| result_file(&folder).exists() || config_file(&folder).exists() && digest_file(&folder).exists())
}
