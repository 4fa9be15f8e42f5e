//! Whether a run folder holds the same run: what must be equal, and what may differ.

use super::data::DataFile;
use super::error::JobError;
use super::length::extendable_length;
use crate::config::{ConfigError, Registry, Run, RunFileKind, RunOf};
use crate::results::{ExistingRun, ResultsError, RunFolder, check_writable, config_file, existing_run, job_using};
use std::path::Path;

/// Takes the folder for a run. Called on rank 0.
///
/// Returns whether the run in the folder has finished already.
///
/// # Errors
/// If the folder holds another run, or the same run on other data.
pub(super) fn enter<D: RunFileKind>(
    run: &RunOf<D>,
    config: &str,
    data: Option<&DataFile>,
    registry: &Registry,
    folder: &mut RunFolder,
) -> Result<bool, JobError>
where
    RunOf<D>: Into<Run>,
{
    let digest = data.map_or("", DataFile::digest);
    let kept = match folder.claim()? {
        Some(kept) if kept.holds_results => kept,
        kept => {
            // A run that ended before its first checkpoint is replaced: often its run file was corrected since.
            if kept.is_some_and(|kept| kept.config != config || kept.data_digest != digest) {
                folder.report_replacement();
            }
            folder.record_run(config, digest)?;
            return Ok(false);
        }
    };
    // The job that uses the folder is this one.
    check_same(&kept, &run.clone().into(), (data.map(DataFile::path), digest), || None, folder.path(), registry)?;
    Ok(kept.finished)
}

/// What a run would do with the folder that it is to write to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FolderUse {
    /// Begin there.
    Begin,
    /// Resume there.
    Resume,
    /// Nothing: the run is finished.
    Nothing,
}

/// This run with its new length, if the folder holds it and it was made longer; otherwise the run unchanged.
///
/// # Errors
/// If the folder cannot be read.
pub fn made_longer(run: Run, folder: &Path, registry: &Registry) -> Result<Run, JobError> {
    let Some(kept) = existing_run(folder)?.filter(|kept| kept.holds_results) else { return Ok(run) };
    as_made_longer(&kept, run, folder, registry)
}

/// The same for a folder that was read already.
fn as_made_longer(kept: &ExistingRun, run: Run, folder: &Path, registry: &Registry) -> Result<Run, JobError> {
    let Some(first) = &kept.first_config else { return Ok(run) };
    if difference(first, kept.finished, folder, &run, registry)?.is_some() {
        return Ok(run);
    }
    // Only the values that the extension has changed: everything else, such as the place of the data, is that of now.
    let table = |config: &str| -> Result<toml::Table, JobError> {
        Ok(parse_kept(config, folder, registry)?.to_table().map_err(ConfigError::unwritable)?)
    };
    let (before, after) = (table(first)?, table(&kept.config)?);
    let mut longer = run.to_table().map_err(ConfigError::unwritable)?;
    for section in ["method", "evaluate"] {
        let of = |table: &toml::Table| table.get(section).and_then(toml::Value::as_table).cloned().unwrap_or_default();
        let (before, after) = (of(&before), of(&after));
        let changed = after.into_iter().filter(|(key, value)| before.get(key) != Some(value));
        if let Some(own) = longer.entry(section).or_insert_with(|| toml::Table::new().into()).as_table_mut() {
            own.extend(changed);
        }
    }
    let text = toml::to_string(&longer).map_err(ConfigError::unwritable)?;
    Ok(Run::from_toml(&text, registry)?)
}

/// What a run on data with this digest would do with a folder. Changes nothing.
///
/// # Errors
/// If it would refuse the folder.
pub fn folder_use(run: &Run, data: Option<(&Path, &str)>, folder: &Path, registry: &Registry) -> Result<FolderUse, JobError> {
    let kept = existing_run(folder)?.filter(|kept| kept.holds_results);
    if kept.as_ref().is_none_or(|kept| !kept.finished) {
        check_writable(folder)?;
    }
    let Some(kept) = kept else { return Ok(FolderUse::Begin) };
    let run = &as_made_longer(&kept, run.clone(), folder, registry)?;
    let (file, digest) = data.map_or((None, ""), |(file, digest)| (Some(file), digest));
    check_same(&kept, run, (file, digest), || job_using(folder), folder, registry)?;
    Ok(if kept.finished { FolderUse::Nothing } else { FolderUse::Resume })
}

/// Checks that a folder holds this run on the data with this file and digest. If it does not, `other_job` tells which job uses it.
fn check_same(
    kept: &ExistingRun,
    run: &Run,
    (file, digest): (Option<&Path>, &str),
    other_job: impl FnOnce() -> Option<String>,
    folder: &Path,
    registry: &Registry,
) -> Result<(), JobError> {
    let path = folder.to_owned();
    if let Some(differs) = difference(&kept.config, kept.finished, folder, run, registry)? {
        // Of a run that was made longer, what a user has changed is seen in the configuration that it began with.
        let since_begin = kept.first_config.as_ref().map(|first| difference(first, kept.finished, folder, run, registry));
        let differs = match since_begin.transpose()?.flatten() {
            Some(since_begin) => format!("{since_begin}, when the run began; it was made longer since"),
            None => differs,
        };
        let longer = if kept.finished { longer_run(kept, run, folder, registry) } else { None };
        return Err(ResultsError::OtherRun { folder: path, differs, job: other_job(), longer }.into());
    }
    if kept.data_digest != digest {
        let file = file.map_or_else(String::new, |file| file.display().to_string());
        let (recorded, found) = (kept.data_digest.clone(), digest.to_owned());
        return Err(ResultsError::OtherData { folder: path, recorded, found, file }.into());
    }
    Ok(())
}

/// The command that makes the finished run in a folder as long as this one, if that is possible and they differ only in length.
fn longer_run(kept: &ExistingRun, run: &Run, folder: &Path, registry: &Registry) -> Option<String> {
    let (key, before) = extendable_length(folder, &kept.config, registry)?;
    let mut keys = run.to_table().ok()?;
    let length = keys.get_mut("method")?.as_table_mut()?.get_mut(key)?;
    let wanted = u64::try_from(length.as_integer()?).ok().filter(|wanted| *wanted > before)?;
    *length = i64::try_from(before).ok()?.into();
    let shorter = Run::from_toml(&toml::to_string(&keys).ok()?, registry).ok()?;
    let is_same = difference(&kept.config, true, folder, &shorter, registry).ok()?.is_none();
    is_same.then(|| format!("mpibayes resume {} --{key} {wanted}", folder.display()))
}

/// The run with a configuration that is kept in a folder.
fn parse_kept(config: &str, folder: &Path, registry: &Registry) -> Result<Run, JobError> {
    let unreadable = |error: ConfigError| ResultsError::Content {
        path: config_file(folder),
        what: format!(
            "this version of mpibayes cannot read the run in the folder ({error}). Choose another --output, or delete it"
        ),
    };
    Run::from_toml(config, registry).map_err(|error| unreadable(error).into())
}

/// The first value in which the run in the folder, with this configuration, differs from this one. Keys that are newer than the folder have
/// their defaults.
fn difference(
    config: &str,
    is_finished: bool,
    folder: &Path,
    run: &Run,
    registry: &Registry,
) -> Result<Option<String>, JobError> {
    let kept_run = parse_kept(config, folder, registry)?;
    let (mut there, mut here) = (result_keys(&kept_run)?, result_keys(run)?);
    // Log-likelihoods are computed at the end of a run: a finished one without them cannot get them.
    let is_wanted = |keys: &toml::Table| {
        keys.get("evaluate").and_then(|evaluate| evaluate.get("pointwise")) == Some(&toml::Value::Boolean(true))
    };
    if !(is_finished && is_wanted(&here)) {
        for evaluate in [&mut there, &mut here].into_iter().filter_map(|keys| keys.get_mut("evaluate")?.as_table_mut()) {
            evaluate.remove("pointwise");
            evaluate.remove("pointwise_rows");
        }
    }
    // Without data.seed, shards follow the seed of the run. If either run sets it, the seeds that shards use are compared.
    if [&there, &here].into_iter().any(|keys| shard_seed(keys).is_some()) {
        for keys in [&mut there, &mut here] {
            let seed = shard_seed(keys).or_else(|| keys.get("seed")).cloned();
            if let (Some(data), Some(seed)) = (keys.get_mut("data").and_then(toml::Value::as_table_mut), seed) {
                data.insert("seed".into(), seed);
            }
        }
    }
    // The names of the method and the model say more than the keys in which they differ.
    let names = ["method", "model"].into_iter().find_map(|section| {
        let name = |keys: &toml::Table| {
            let name = keys.get(section).and_then(|table| table.get("name"));
            toml::Table::from_iter(name.map(|name| ("name".to_owned(), name.clone())))
        };
        first_difference(&format!("{section}."), &name(&there), &name(&here))
    });
    Ok(names.or_else(|| first_difference("", &there, &here)))
}

/// The keys that decide the results: not how the run uses the machine, nor where the data lie, whose digest is compared instead.
fn result_keys(run: &Run) -> Result<toml::Table, JobError> {
    let mut keys = run.to_table().map_err(ConfigError::unwritable)?;
    let float_sums = run.cluster().collectives.float_sums;
    keys.remove("cluster");
    keys.insert("float_sums".into(), toml::Value::from(format!("{float_sums:?}")));
    // What is computed when the run has finished.
    if let Some(evaluate) = keys.get_mut("evaluate").and_then(toml::Value::as_table_mut) {
        evaluate.remove("predictions");
        evaluate.remove("bias");
    }
    // A run without [data] gets the default partition, so that this section does not differ. Its digest is compared elsewhere.
    let mut data = keys.remove("data").and_then(|data| data.try_into::<toml::Table>().ok()).unwrap_or_default();
    let seed = data.remove("seed").map(|seed| ("seed".to_owned(), seed));
    let partition = data.remove("partition").unwrap_or_else(|| toml::Value::from("equal"));
    let shards = [("partition".to_owned(), partition)].into_iter().chain(seed);
    keys.insert("data".into(), toml::Table::from_iter(shards).into());
    Ok(keys)
}

fn shard_seed(keys: &toml::Table) -> Option<&toml::Value> {
    keys.get("data")?.get("seed")
}

fn first_difference(path: &str, kept: &toml::Table, here: &toml::Table) -> Option<String> {
    kept.keys().chain(here.keys()).find_map(|key| {
        let text = |value: Option<&toml::Value>| value.map_or_else(|| "not set".to_owned(), ToString::to_string);
        match (kept.get(key), here.get(key)) {
            (kept, here) if kept == here => None,
            (Some(toml::Value::Table(kept)), Some(toml::Value::Table(here))) => {
                first_difference(&format!("{path}{key}."), kept, here)
            }
            (kept, here) => Some(format!("{path}{key} is {} there, {} here", text(kept), text(here))),
        }
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    const CONFIG: &str = "[model]\nname = \"toy\"\n[method]\nname = \"svgd\"\nparticles = 5\n";

    /// The difference between a folder with one configuration and a run with another.
    fn differs(kept: &str, here: &str) -> Result<Option<String>, String> {
        let registry = Registry::default();
        let here = Run::from_toml(here, &registry).map_err(|error| error.to_string())?;
        difference(kept, false, "folder".as_ref(), &here, &registry).map_err(|error| error.to_string())
    }

    #[test]
    fn runs_with_equal_results_are_the_same_run() {
        for same in [
            "",
            "[cluster]\nthreads = 3\ndedicated = true\ncheckpoint_every = 1.0\n",
            "[cluster.collectives]\nrequests = \"broadcast\"\ninteger_sums = \"point_to_point\"\n",
            "[data]\nfile = \"elsewhere.h5\"\n",
            "[data]\nfile = \"elsewhere.h5\"\npartition = \"equal\"\n",
            "[evaluate]\nbias = true\n",
        ] {
            assert_eq!(differs(CONFIG, &format!("{CONFIG}{same}")), Ok(None), "{same}");
            assert_eq!(differs(&format!("{CONFIG}{same}"), CONFIG), Ok(None), "{same}");
        }
    }

    #[test]
    fn runs_with_other_results_differ_in_the_key_that_is_named() {
        for (other, message) in [
            ("rounds = 3\n", "method.rounds is 10 there, 3 here"),
            ("optimizer = { plain = { step = 0.5 } }\n", "method.optimizer.adagrad is "),
            ("[evaluate]\nevery = 2\n", "evaluate.every is not set there, 2 here"),
            ("[data]\nfile = \"a.h5\"\npartition = \"by_label\"\n", "data.partition is \"equal\" there, \"by_label\" here"),
            ("[data]\nfile = \"a.h5\"\nseed = 77\n", "data.seed is 1 there, 77 here"),
            ("[cluster.collectives]\nfloat_sums = \"allreduce\"\n", "float_sums is \"PointToPoint\" there, \"Allreduce\" here"),
        ] {
            let found = differs(CONFIG, &format!("{CONFIG}{other}")).unwrap().unwrap();
            assert!(found.starts_with(message), "{found}");
        }
    }

    #[test]
    fn newer_keys_have_their_defaults_and_unknown_keys_are_reported() {
        let registry = Registry::default();
        let resolved = Run::from_toml(CONFIG, &registry).unwrap().to_toml().unwrap();
        let older: Vec<&str> = resolved.lines().filter(|line| !line.starts_with("temp") && !line.starts_with("batch")).collect();
        assert!(older.len() + 2 == resolved.lines().count());
        assert_eq!(differs(&older.join("\n"), CONFIG), Ok(None));
        let message = differs(&format!("novelty = 1\n{CONFIG}"), CONFIG).unwrap_err();
        assert!(message.contains("config.toml") && message.contains("novelty") && message.contains("--output"), "{message}");
    }

    #[test]
    fn old_names_in_a_folder_are_understood() {
        let old = CONFIG.replace("[model]", "precision = \"f32\"\n[model]");
        let new = CONFIG.replace("[model]", "dtype = \"float32\"\n[model]");
        assert_eq!(differs(&old, &new), Ok(None));
    }
}
