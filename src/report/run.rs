//! The results of a run, found and opened by the folder of the run or by its result file.

use super::error::{ReportError, Result};
use crate::config::{Registry, Run};
use crate::job::{RECALIBRATION, doubling_command};
use crate::results::{ResultFile, config_file, has_checkpoint, result_file};
use crate::text;
use std::path::{Path, PathBuf};

/// An open result file.
#[derive(Debug)]
pub struct RunResults {
    /// The result file.
    pub file: ResultFile,
    /// Its path.
    pub path: PathBuf,
}

impl RunResults {
    /// Opens the results of a run: `run` is the folder of the run or its result file.
    ///
    /// # Errors
    /// When there is no such run, it has no results yet, or its file cannot be read or is not a result file.
    pub fn open(run: &Path) -> Result<Self> {
        let path = find(run)?;
        Ok(Self { file: ResultFile::open(&path)?, path })
    }

    /// Whether the run is finished; otherwise these are its results so far.
    pub fn is_finished(&self) -> bool {
        self.file.info().state.finished
    }

    /// The path of the dataset in the configuration of the run, if it has one.
    pub fn dataset(&self) -> Option<String> {
        let config: toml::Table = self.file.info().config.parse().ok()?;
        Some(config.get("data")?.get("file")?.as_str()?.to_owned())
    }

    /// Whether this is a run of a built-in method whose draws are meant to follow the posterior of parameters.
    pub(super) fn has_draws_to_judge(&self) -> bool {
        let run = Run::from_toml(&self.file.info().config, &Registry::default());
        run.is_ok_and(|run| matches!(run, Run::Table(run) if run.method.samples()))
    }

    /// The command that makes the run longer, if it is a run of a built-in method that can be made longer.
    pub(super) fn doubling_command(&self) -> Option<String> {
        let folder = self.path.parent().filter(|_| self.is_finished())?;
        doubling_command(folder, &self.file.info().config, &Registry::default())
    }

    /// Method, model, data and seed in one line.
    pub fn heading(&self) -> String {
        let info = self.file.info();
        let digest = || match info.data_digest.as_str() {
            "" => None,
            digest => Some(format!("data with digest {}", text::short_digest(digest))),
        };
        let data = self.dataset().map(|file| data_label(&file)).or_else(digest);
        let unfinished = (!self.is_finished()).then(|| "not finished".to_owned());
        let method = if self.file.has(RECALIBRATION) { format!("{}, recalibrated", info.method) } else { info.method.clone() };
        let facts = [Some(format!("method {method}")), Some(format!("model {}", info.model)), data];
        let facts = facts.into_iter().chain([Some(format!("seed {}", info.seed)), unfinished]);
        facts.flatten().collect::<Vec<_>>().join(" · ")
    }
}

/// The runs with results in a folder of several runs, such as that of a sweep, sorted by name, with numbers by their value; none in the
/// folder of a run.
pub fn runs_of_sweep(folder: &Path) -> Vec<PathBuf> {
    if result_file(folder).exists() || config_file(folder).exists() {
        return Vec::new();
    }
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let mut runs: Vec<PathBuf> = entries.filter(|path| result_file(path).exists()).collect();
    runs.sort_by_cached_key(|path| numbers_by_value(&path.to_string_lossy()));
    runs
}

/// A key that sorts `seed=2` before `seed=10`.
fn numbers_by_value(name: &str) -> Vec<(String, u64)> {
    let mut parts = vec![(String::new(), 0_u64)];
    for c in name.chars() {
        match (c.to_digit(10), parts.last_mut()) {
            (Some(digit), Some(part)) => part.1 = part.1.saturating_mul(10).saturating_add(u64::from(digit)),
            (None, Some(part)) if part.1 == 0 => part.0.push(c),
            (_, _) => parts.push((c.to_string(), 0)),
        }
    }
    parts
}

/// The file name of a dataset, for a heading.
pub(super) fn data_label(file: &str) -> String {
    format!("data {}", Path::new(file).file_name().map_or(file.into(), |name| name.to_string_lossy()))
}

/// The result file of a run, which is given by its folder or by the file itself.
fn find(run: &Path) -> Result<PathBuf> {
    if run.is_file() {
        return Ok(run.to_path_buf());
    }
    if !run.is_dir() {
        return Err(ReportError::missing(run, "there is no such folder or file"));
    }
    let file = result_file(run);
    if file.exists() {
        return Ok(file);
    }
    Err(if let Err(cause) = std::fs::read_dir(run) {
        ReportError::missing(run, format_args!("cannot look into this folder: {cause}"))
    } else if has_checkpoint(run) || config_file(run).exists() {
        ReportError::missing(
            run,
            format_args!(
                "this run is not finished and has no results yet. If it was stopped, `mpibayes resume {}` resumes it",
                run.display()
            ),
        )
    } else if !runs_of_sweep(run).is_empty() {
        ReportError::missing(run, "this folder holds several runs: name one of them, or see all with `mpibayes compare`")
    } else {
        ReportError::missing(run, "this is not the folder of a run: it contains neither a result file nor a configuration")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeds_are_sorted_by_their_value() {
        let mut names = ["a=2,seed=10", "a=10,seed=1", "a=2,seed=9", "b=1"];
        names.sort_by_cached_key(|name| numbers_by_value(name));
        assert_eq!(names, ["a=2,seed=9", "a=2,seed=10", "a=10,seed=1", "b=1"]);
    }
}
