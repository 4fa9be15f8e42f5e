//! Compares the run in a folder with the run that a job is about to carry out: what must be equal, and what may differ.

use super::data::DataFile;
use super::error::JobError;
use super::length::extendable_length;
use crate::config::{ConfigError, Registry, Run, RunFileKind, RunOf};
use crate::results::{
    ExistingRun, ResultsError, RunFolder, check_writable, config_file, digest_file, existing_run, job_using, result_file,
};
use std::path::Path;

/// What came of claiming a folder for a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ClaimOutcome {
    /// The run is to be carried out.
    ToCarryOut,
    /// It is finished already.
    Finished,
    /// The job was asked to stop before it had the folder.
    Stopped,
}

/// Claims the folder for a run. Called on rank 0.
///
/// # Errors
/// If the folder holds another run, or the same run on other data, if another job uses it, if its files were edited, or if it cannot be read or
/// written.
pub(super) fn claim_for_run<D: RunFileKind>(
    run: &RunOf<D>,
    config: &str,
    data: Option<&DataFile>,
    registry: &Registry,
    folder: &mut RunFolder,
) -> Result<ClaimOutcome, JobError>
where
    RunOf<D>: Into<Run>,
{
    let digest = data.map_or("", DataFile::digest);
    let with_data = (data.map(DataFile::path), digest);
    // A finished run is checked without a claim, because its folder may be read-only.
    if let Ok(Some(kept)) = existing_run(folder.path())
        && kept.finished
    {
        check_same(&kept, &run.clone().into(), with_data, || job_using(folder.path()), folder.path(), registry)?;
        return Ok(ClaimOutcome::Finished);
    }
    let claimed = match folder.claim() {
        Err(ResultsError::StoppedWatching { .. }) => return Ok(ClaimOutcome::Stopped),
        claimed => claimed?,
    };
    let kept = match claimed {
        Some(kept) if kept.holds_results => kept,
        kept => {
            // A run that ended before its first checkpoint is replaced: often its run file was corrected since.
            if kept.is_some_and(|kept| kept.config != config || kept.data_digest != digest) {
                folder.report_replacement();
            }
            folder.record_run(config, digest)?;
            return Ok(ClaimOutcome::ToCarryOut);
        }
    };
    // The job that uses the folder is this one.
    check_same(&kept, &run.clone().into(), with_data, || None, folder.path(), registry)?;
    Ok(if kept.finished { ClaimOutcome::Finished } else { ClaimOutcome::ToCarryOut })
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

/// `run` with the length to which the run in the folder was extended, if they are the same run; otherwise `run` as given.
///
/// # Errors
/// If the folder cannot be read.
pub fn with_extended_length(run: Run, folder: &Path, registry: &Registry) -> Result<Run, JobError> {
    let Some(kept) = existing_run(folder)?.filter(|kept| kept.holds_results) else { return Ok(run) };
    with_length_of(&kept, run, folder, registry)
}

/// The same for a folder that was read already.
fn with_length_of(kept: &ExistingRun, run: Run, folder: &Path, registry: &Registry) -> Result<Run, JobError> {
    let Some(first) = &kept.first_config else { return Ok(run) };
    if difference(first, kept.finished, folder, &run, registry)?.is_some() {
        return Ok(run);
    }
    // Only the values that the extension has changed: everything else, such as the path of the data, is taken from `run`.
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
    let run = &with_length_of(&kept, run.clone(), folder, registry)?;
    let (file, digest) = data.map_or((None, ""), |(file, digest)| (Some(file), digest));
    check_same(&kept, run, (file, digest), || job_using(folder), folder, registry)?;
    Ok(if kept.finished { FolderUse::Nothing } else { FolderUse::Resume })
}

/// Checks that the files that identify the run in a folder are those with which its results were made: somebody may have edited them, or a disk
/// may have changed a byte.
///
/// # Errors
/// If the configuration or the digest of the data in the folder differs from that in the result file.
pub(super) fn check_unchanged(kept: &ExistingRun, folder: &Path, registry: &Registry) -> Result<(), JobError> {
    let Some(in_results) = &kept.results else { return Ok(()) };
    if in_results.data_digest != kept.data_digest {
        let what = format!(
            "this file no longer agrees with the run: its line should be {:?}, as in the attribute data_digest of {}",
            in_results.data_digest,
            result_file(folder).display()
        );
        return Err(ResultsError::Content { path: digest_file(folder), what }.into());
    }
    // A result file of another version of the program, with keys that this one does not know, is not compared.
    let (true, Ok(before)) = (in_results.config != kept.config, Run::from_toml(&in_results.config, registry)) else {
        return Ok(());
    };
    let changed = |how: String| {
        let what = format!(
            "this file no longer agrees with the run ({how}). Undo that: the original text is in the attribute config of {}. For other \
             settings, edit your run file and give another --output",
            result_file(folder).display()
        );
        JobError::from(ResultsError::Content { path: config_file(folder), what })
    };
    let now = Run::from_toml(&kept.config, registry).map_err(|error| changed(error.to_string()))?;
    let length = length_key(&now);
    let (mut before, mut now) = comparable_keys(&before, &now)?;
    [&mut before, &mut now].into_iter().for_each(remove_pointwise);
    let was_just_made_longer = kept.first_config.is_some() && in_results.state.finished && !kept.finished;
    if let (Some(key), true) = (length, was_just_made_longer) {
        // The result file is that of the shorter run.
        [&mut before, &mut now].into_iter().for_each(|keys| remove_length(keys, key));
    }
    match differences("", &before, &now).into_iter().next() {
        Some(Difference { key, there: before, here: now }) => Err(changed(format!("{key} was {before}, and is {now}"))),
        None => Ok(()),
    }
}

/// The key of the length of a run, if it can be made longer.
fn length_key(run: &Run) -> Option<&'static str> {
    match run {
        Run::Table(run) => run.method.length(run.settings.agents).map(|length| length.key),
        Run::Corpus(_) => None,
    }
}

/// Removes the keys that change when a run is made longer.
fn remove_length(keys: &mut toml::Table, length: &str) {
    for (section, key) in [("method", length), ("evaluate", "every")] {
        if let Some(section) = keys.get_mut(section).and_then(toml::Value::as_table_mut) {
            section.remove(key);
        }
    }
}

/// Checks that a folder holds this run on data with this digest; `file` is for messages. If it does not, `other_job` finds the job that uses the
/// folder, also for the message.
fn check_same(
    kept: &ExistingRun,
    run: &Run,
    (file, digest): (Option<&Path>, &str),
    other_job: impl FnOnce() -> Option<String>,
    folder: &Path,
    registry: &Registry,
) -> Result<(), JobError> {
    check_unchanged(kept, folder, registry)?;
    let path = folder.to_owned();
    if let Some(differs) = difference(&kept.config, kept.finished, folder, run, registry)? {
        // The run file of a user resembles the configuration before the run was extended.
        let from_first = kept.first_config.as_ref().map(|first| difference(first, kept.finished, folder, run, registry));
        let differs = match from_first.transpose()?.flatten() {
            Some(differs) => format!("{differs}, compared with the run as it began; it was made longer since"),
            None => differs,
        };
        let longer = if kept.finished { extension_command(kept, run, folder, registry) } else { None };
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
fn extension_command(kept: &ExistingRun, run: &Run, folder: &Path, registry: &Registry) -> Option<String> {
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
            "this version of mpibayes cannot read the run in the folder ({error}). Choose another --output, or delete the folder"
        ),
    };
    Run::from_toml(config, registry).map_err(|error| unreadable(error).into())
}

/// The first key in which `config`, the configuration kept in `folder`, differs from `run`. Keys that are newer than the folder have their
/// defaults.
fn difference(
    config: &str,
    is_finished: bool,
    folder: &Path,
    run: &Run,
    registry: &Registry,
) -> Result<Option<String>, JobError> {
    let kept_run = parse_kept(config, folder, registry)?;
    let (mut there, mut here) = comparable_keys(&kept_run, run)?;
    // Log-likelihoods are computed at the end of a run: a finished one without them cannot get them.
    let keeps_log_likelihoods = |keys: &toml::Table| {
        keys.get("evaluate").and_then(|evaluate| evaluate.get("pointwise")) == Some(&toml::Value::Boolean(true))
    };
    if !(is_finished && keeps_log_likelihoods(&here)) {
        [&mut there, &mut here].into_iter().for_each(remove_pointwise);
    }
    // If the method or the model is another one, that says more than the first key that differs.
    let other_name = ["method", "model"].into_iter().find_map(|section| {
        let name = |keys: &toml::Table| {
            let name = keys.get(section).and_then(|table| table.get("name"));
            toml::Table::from_iter(name.map(|name| ("name".to_owned(), name.clone())))
        };
        differences(&format!("{section}."), &name(&there), &name(&here)).pop()
    });
    if let Some(other_name) = other_name {
        return Ok(Some(other_name.to_string()));
    }
    let all = differences("", &there, &here);
    let mut named: Vec<String> = all.iter().take(MOST_NAMED).map(Difference::to_string).collect();
    if all.len() > named.len() {
        named.push(format!("and {} more", all.len() - named.len()));
    }
    Ok((!named.is_empty()).then(|| named.join("; ")))
}

/// The differences between two runs that are named.
const MOST_NAMED: usize = 3;

/// The keys of two runs that decide the results.
fn comparable_keys(a: &Run, b: &Run) -> Result<(toml::Table, toml::Table), JobError> {
    let (mut a, mut b) = (result_keys(a)?, result_keys(b)?);
    // Without data.seed, shards follow the seed of the run. If either run sets it, the seeds that shards use are compared.
    if [&a, &b].into_iter().any(|keys| shard_seed(keys).is_some()) {
        for keys in [&mut a, &mut b] {
            let seed = shard_seed(keys).or_else(|| keys.get("seed")).cloned();
            if let (Some(data), Some(seed)) = (keys.get_mut("data").and_then(toml::Value::as_table_mut), seed) {
                data.insert("seed".into(), seed);
            }
        }
    }
    Ok((a, b))
}

/// Removes the keys of log-likelihoods, which may differ unless a finished run would have to compute them.
fn remove_pointwise(keys: &mut toml::Table) {
    if let Some(evaluate) = keys.get_mut("evaluate").and_then(toml::Value::as_table_mut) {
        evaluate.remove("pointwise");
        evaluate.remove("pointwise_rows");
    }
}

/// The keys that decide the results: not those that say how the run uses the machine, nor where the data lie, whose digest is compared instead.
fn result_keys(run: &Run) -> Result<toml::Table, JobError> {
    let mut keys = run.to_table().map_err(ConfigError::unwritable)?;
    let cluster = keys.remove("cluster");
    if let Some(float_sums) = cluster.as_ref().and_then(|cluster| cluster.get("collectives")?.get("float_sums")) {
        keys.insert("cluster.collectives.float_sums".into(), float_sums.clone());
    }
    if let Some(method) = keys.get_mut("method").and_then(toml::Value::as_table_mut) {
        let without_effect = match run {
            Run::Table(run) => run.method.keys_without_effect_on_results(),
            Run::Corpus(run) => run.method.keys_without_effect_on_results(),
        };
        without_effect.iter().for_each(|key| drop(method.remove(*key)));
    }
    // Predictions and bias are computed after the last round: runs with the same draws may differ in them.
    if let Some(evaluate) = keys.get_mut("evaluate").and_then(toml::Value::as_table_mut) {
        evaluate.remove("predictions");
        evaluate.remove("bias");
    }
    // A run without [data] counts as one with the default partition. Whether the data are the same is decided by their digest.
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

/// A key whose values differ.
struct Difference {
    key: String,
    there: String,
    here: String,
}

impl std::fmt::Display for Difference {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} is {} there, {} here", self.key, self.there, self.here)
    }
}

/// The keys whose values differ.
fn differences(path: &str, kept: &toml::Table, here: &toml::Table) -> Vec<Difference> {
    let text = |value: Option<&toml::Value>| value.map_or_else(|| "not set".to_owned(), ToString::to_string);
    let keys = kept.keys().chain(here.keys().filter(|key| !kept.contains_key(*key)));
    keys.flat_map(|key| match (kept.get(key), here.get(key)) {
        (kept, here) if kept == here => Vec::new(),
        (Some(toml::Value::Table(kept)), Some(toml::Value::Table(here))) => differences(&format!("{path}{key}."), kept, here),
        (kept, here) => vec![Difference { key: format!("{path}{key}"), there: text(kept), here: text(here) }],
    })
    .collect()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::results::RunInfo;

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
    fn keys_of_a_method_that_change_no_result_may_differ() {
        let of_topics = |keys: &str| {
            format!("[data]\nfile = \"a.h5\"\n[model]\nname = \"lda\"\ntopics = 3\n[method]\nname = \"lda\"\n{keys}")
        };
        let kept = of_topics("resident = false\n");
        assert_eq!(differs(&kept, &of_topics("")), Ok(None));
        let longer = differs(&kept, &of_topics("rounds = 300\n"));
        assert_eq!(longer, Ok(Some("method.rounds is 200 there, 300 here".into())));
    }

    #[test]
    fn runs_with_other_results_differ_in_the_key_that_is_named() {
        for (other, message) in [
            ("rounds = 3\n", "method.rounds is 10 there, 3 here"),
            ("optimizer = { plain = { step = 0.5 } }\n", "method.optimizer.adagrad is "),
            ("[evaluate]\nevery = 2\n", "evaluate.every is not set there, 2 here"),
            ("[data]\nfile = \"a.h5\"\npartition = \"by_label\"\n", "data.partition is \"equal\" there, \"by_label\" here"),
            ("[data]\nfile = \"a.h5\"\nseed = 77\n", "data.seed is 1 there, 77 here"),
            (
                "[cluster.collectives]\nfloat_sums = \"allreduce\"\n",
                "cluster.collectives.float_sums is \"point_to_point\" there, \"allreduce\" here",
            ),
        ] {
            let found = differs(CONFIG, &format!("{CONFIG}{other}")).unwrap().unwrap();
            assert!(found.starts_with(message), "{found}");
        }
        let several =
            differs(CONFIG, &format!("{CONFIG}rounds = 3\nsteps = 7\nbatch = 9\n[evaluate]\nevery = 2\n")).unwrap().unwrap();
        assert!(
            several.contains("evaluate.every is not set there, 2 here; method.batch is ") && several.ends_with("; and 1 more"),
            "{several}"
        );
    }

    /// What is said of the folder of a run with one configuration whose result file has another.
    fn unchanged(config: &str, first_config: Option<&str>, of_results: &str, digest: &str) -> Result<(), String> {
        let kept = ExistingRun {
            config: config.to_owned(),
            first_config: first_config.map(str::to_owned),
            data_digest: "abc".into(),
            results: Some(RunInfo::new("svgd", "toy", 1, digest, of_results)),
            finished: false,
            holds_results: true,
        };
        check_unchanged(&kept, "folder".as_ref(), &Registry::default()).map_err(|error| error.to_string())
    }

    #[test]
    fn a_configuration_that_has_changed_since_the_run_began_is_refused() {
        assert_eq!(unchanged(CONFIG, None, CONFIG, "abc"), Ok(()));
        for same in ["[cluster]\nthreads = 3\n", "[data]\nfile = \"moved.h5\"\nseed = 1\n", "[evaluate]\npointwise = true\n"] {
            let other = format!("{CONFIG}{same}");
            assert_eq!(unchanged(&other, None, CONFIG, "abc"), Ok(()), "a user may change {same}");
            assert_eq!(unchanged(CONFIG, None, &other, "abc"), Ok(()), "a user may change {same}");
        }
        assert_eq!(unchanged(CONFIG, None, "from = \"a newer version\"", "abc"), Ok(()));
        for (config, of_results, how) in [
            (format!("seed = 3\n{CONFIG}"), CONFIG.to_owned(), "(seed was 1, and is 3)"),
            (CONFIG.replace("= 5", "= 7"), CONFIG.to_owned(), "(method.particles was 5, and is 7)"),
            (CONFIG.replace("[model]", "[modem]"), CONFIG.to_owned(), "modem"),
            (CONFIG.replace("\"svgd\"", "\"svgd"), CONFIG.to_owned(), "basic string"),
        ] {
            let message = unchanged(&config, None, &of_results, "abc").unwrap_err();
            assert!(message.starts_with("folder/config.toml: this file no longer agrees") && message.contains(how), "{message}");
        }
        let message = unchanged(CONFIG, None, CONFIG, "abd").unwrap_err();
        assert!(
            message.starts_with("folder/data.digest: this file no longer agrees") && message.contains("\"abd\""),
            "{message}"
        );
    }

    #[test]
    fn a_run_that_was_made_longer_may_have_the_results_of_the_shorter_one() {
        let short = "[model]\nname = \"toy\"\n[method]\nname = \"sghmc\"\nstep = 0.01\nsteps = 10000\n";
        let long = short.replace("10000", "20000");
        assert_eq!(unchanged(&long, Some(short), short, "abc"), Ok(()));
        assert!(unchanged(&long, None, short, "abc").unwrap_err().contains("(method.steps was 10000, and is 20000)"));
        let other = long.replace("0.01", "0.02");
        let message = unchanged(&other, Some(short), short, "abc").unwrap_err();
        assert!(message.contains("method.step was "), "{message}");
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
