//! Makes a finished run longer: its configuration gets a new length, and its state from shortly before the end becomes its checkpoint.

use super::error::{ExtensionError, JobError};
use super::length::resolved;
use super::prepare::{RELATIVE_PATH, open};
use super::recalibrate::RECALIBRATION;
use super::resume::{check_unchanged, folder_use};
use super::whole_checkpoint::check_checkpoint;
use crate::config::{ConfigError, Registry, Run, RunFileKind, RunOf, evaluation_interval, stored_table};
use crate::log;
use crate::methods::{Corpus, Length, Table};
use crate::results::{ExistingRun, Reporting, ResultFile, ResultsError, RunFolder, config_file, existing_run, result_file};
use std::cmp::Ordering;
use std::path::Path;
use std::time::Duration;

/// The length that a run is to get.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewLength {
    /// The key that was typed: `steps`.
    pub key: String,
    /// Its value.
    pub value: Amount,
}

/// A number of steps, rounds or draws.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Amount {
    /// This many in all.
    Total(u64),
    /// This many in addition.
    More(u64),
}

/// The run in a folder, made longer if a length is given, with its data at `data` if they have moved. Called on rank 0; the run then goes on from
/// its checkpoint, if it has one.
///
/// # Errors
/// If there is no run, or it cannot be resumed or made longer. The folder is then as it was; if writing to it fails, the run may resume to its
/// former end.
pub fn run_to_resume(
    folder: &Path,
    data: Option<&Path>,
    length: Option<&NewLength>,
    registry: &Registry,
) -> Result<Run, JobError> {
    let kept = existing_run(folder)?.ok_or_else(|| {
        let what = if folder.exists() { "run in this folder" } else { "such folder" };
        ExtensionError::NoRun { folder: folder.to_owned(), what }
    })?;
    check_unchanged(&kept, folder, registry)?;
    let config = data.map_or_else(|| Ok(kept.config.clone()), |data| with_data(&kept.config, data))?;
    let run = Run::from_toml(&config, registry).map_err(|error| unreadable(folder, &error))?;
    refuse_missing_data(folder, &run)?;
    // Without a new length, a finished run has nothing left to do, and one that was stopped before its first checkpoint begins again.
    let Some(length) = length else { return Ok(run) };
    match &run {
        Run::Table(table) => longer_run(folder, &kept, table, length, registry),
        Run::Corpus(corpus) => Err(not_extendable(folder, corpus.method.name(), "the state of all tokens is not kept")),
    }
}

/// Refuses a run whose data are not where they were, and says how it is resumed with data that have moved.
fn refuse_missing_data(folder: &Path, run: &Run) -> Result<(), JobError> {
    let file = match run {
        Run::Table(run) => run.data.as_ref().map(Table::file),
        Run::Corpus(run) => run.data.as_ref().map(Corpus::file),
    };
    let Some(file) = file.filter(|file| file.try_exists().is_ok_and(|exists| !exists)) else { return Ok(()) };
    let (file, folder) = (file.display(), folder.display());
    Err(ConfigError::Choice(format!(
        "the data of the run, {file}, do not exist here: {RELATIVE_PATH}. If they have moved, name the file: \
         `mpibayes resume {folder} --data FILE`"
    ))
    .into())
}

/// A configuration whose data are in this file.
fn with_data(config: &str, file: &Path) -> Result<String, JobError> {
    let mut config = stored_table(config)?;
    let Some(toml::Value::Table(data)) = config.get_mut("data") else {
        return Err(ConfigError::Choice("--data: this run has no data".into()).into());
    };
    if !file.exists() {
        return Err(ConfigError::Choice(format!("--data {}: there is no such file", file.display())).into());
    }
    let Some(name) = file.to_str() else {
        return Err(ConfigError::Choice(format!("--data {}: run files are UTF-8, and this path is not", file.display())).into());
    };
    data.insert("file".into(), name.into());
    Ok(config.to_string())
}

fn longer_run(
    folder: &Path,
    kept: &ExistingRun,
    run: &RunOf<Table>,
    typed: &NewLength,
    registry: &Registry,
) -> Result<Run, JobError> {
    let mut run_folder = RunFolder::new(folder, Duration::MAX, Reporting::Quiet);
    let (agents, name) = (run.settings.agents, run.method.name());
    if !kept.finished {
        let length = || Ok::<_, JobError>(resolved(run, &run_folder)?.length(agents));
        // Any +N while the run is being made longer, or the length that it has already.
        let continues = match typed.value {
            Amount::More(_) => kept.first_config.is_some() && length()?.is_some_and(|length| length.key == typed.key),
            Amount::Total(total) => length()?.is_some_and(|length| length.key == typed.key && length.value == total),
        };
        if !continues {
            let until = length()?.map_or_else(String::new, |length| format!(" (it ends at {} = {})", length.key, length.value));
            return Err(ExtensionError::NotFinished { folder: folder.to_owned(), key: typed.key.clone(), until }.into());
        }
        if matches!(typed.value, Amount::More(_)) {
            log::note("the run is being made longer already, and continues to that end: +N is not added");
        }
        return Ok(Run::Table(run.clone()));
    }
    let method = resolved(run, &run_folder)?;
    let Some(Length { key, value, .. }) = method.length(agents) else {
        return Err(not_extendable(folder, name, "its course depends on its length"));
    };
    if ResultFile::open(&result_file(folder))?.has(RECALIBRATION) {
        let reason = "its folder has recalibrated draws (make the run that they are from longer, and recalibrate it)";
        return Err(not_extendable(folder, name, reason));
    }
    if !run_folder.can_be_extended() {
        let reason = "its folder has no state from shortly before the end (the run was too short, or it was stopped shortly before its end and resumed, or its result file took long to write, or extension.bin was deleted)";
        return Err(not_extendable(folder, name, reason));
    }
    if typed.key != key {
        // As many as were asked for, unless that is less than the run has.
        let example = match typed.value {
            Amount::More(more) => format!("+{more}"),
            Amount::Total(total) if total > value => total.to_string(),
            Amount::Total(_) => format!("+{value}"),
        };
        return Err(ExtensionError::OtherKey { method: name.into(), key, now: value, example }.into());
    }
    let longer = match typed.value {
        Amount::Total(total) => total,
        Amount::More(more) => value.saturating_add(more),
    };
    match longer.cmp(&value) {
        Ordering::Less => return Err(ExtensionError::Shorter { key, now: value, more: value }.into()),
        Ordering::Equal => return Ok(Run::Table(run.clone())),
        Ordering::Greater => {}
    }
    let every = evaluation_interval(run.evaluate.every, method.estimate(agents, 1).rounds);
    let config = with_length(run, key, longer, every)?;
    // The length was typed: nothing is wrong with what is stored.
    let longer = Run::from_toml(&config, registry).map_err(|error| match error {
        ConfigError::Stored(errors) => ConfigError::Settings(errors),
        error => error,
    })?;
    // Nothing is changed before all of this is known to fit.
    let data = open(run)?;
    folder_use(&Run::Table(run.clone()), data.as_ref().map(|data| (data.path(), data.digest())), folder, registry)?;
    check_checkpoint(&run_folder.late_checkpoint(), &run_folder)?;
    run_folder.claim()?;
    run_folder.extend(&config)?;
    Ok(longer)
}

/// The configuration of the run with another length, and with evaluations as far apart as before.
fn with_length(run: &RunOf<Table>, key: &str, value: u64, every: u64) -> Result<String, JobError> {
    let mut table = run.to_table().map_err(ConfigError::unwritable)?;
    for (section, key, value) in [("method", key, value), ("evaluate", "every", every)] {
        let value = i64::try_from(value).unwrap_or(i64::MAX);
        let section = table.entry(section).or_insert_with(|| toml::Table::new().into());
        if let Some(section) = section.as_table_mut() {
            section.insert(key.to_owned(), value.into());
        }
    }
    toml::to_string_pretty(&table).map_err(|error| ConfigError::unwritable(error).into())
}

fn not_extendable(folder: &Path, method: &str, reason: &'static str) -> JobError {
    ExtensionError::NotExtendable { folder: folder.to_owned(), method: method.to_owned(), reason }.into()
}

fn unreadable(folder: &Path, error: &ConfigError) -> JobError {
    let what = format!("this version of mpibayes cannot read the run ({error})");
    ResultsError::Content { path: config_file(folder), what }.into()
}
