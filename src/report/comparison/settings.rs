//! The settings in which runs differ, by dotted key.

use crate::config::{Registry, Run};
use crate::lda::LdaSettings;
use std::collections::{BTreeMap, BTreeSet};

/// The key of the seed.
pub(super) const SEED: &str = "seed";
/// The key of the seed of shards.
const DATA_SEED: &str = "data.seed";
/// The key of the dataset.
pub(super) const DATA: &str = "data.file";
/// The key of the method.
pub(super) const METHOD: &str = "method.name";
/// The key of the model.
pub(super) const MODEL: &str = "model.name";
/// The key of the rounds between evaluations.
const EVERY: &str = "evaluate.every";
/// The key of the first round whose predictions are averaged over evaluations.
const AVERAGE_FROM: &str = "evaluate.average_from";

/// A value that the run determines.
const AUTO: &str = "auto";

/// A configuration by dotted key.
pub(super) type Config = BTreeMap<String, String>;

/// The values of a configuration by dotted key, such as `method.particles`. A choice with one value is written with it, as
/// `dirichlet 0.5` for `data.partition = { dirichlet = 0.5 }`. A choice with settings of its own is also a value:
/// `method.cavity = { sites = { damping = 0.5 } }` gives `method.cavity`, which is `sites`, beside `method.cavity.sites.damping`.
pub(super) fn flatten(prefix: &str, value: &toml::Value, flat: &mut Config) {
    match value {
        toml::Value::Table(table) => {
            if let (Some((choice, value)), 1, true) = (table.iter().next(), table.len(), prefix.contains('.')) {
                if !value.is_table() {
                    flat.insert(prefix.to_owned(), format!("{choice} {value}"));
                    return;
                }
                flat.insert(prefix.to_owned(), choice.clone());
            }
            for (key, value) in table {
                flatten(&if prefix.is_empty() { key.clone() } else { format!("{prefix}.{key}") }, value, flat);
            }
        }
        toml::Value::String(text) => drop(flat.insert(prefix.to_owned(), text.clone())),
        other => drop(flat.insert(prefix.to_owned(), other.to_string())),
    }
}

/// A key in which two configurations differ, and its values. Keys that only one of them has, that have no effect on the work of a run, or that the
/// run determines are left out.
pub(in crate::report) fn different_work(first: &toml::Table, second: &toml::Table) -> Option<(String, [String; 2])> {
    let flat = |table: &toml::Table| {
        let mut flat = Config::new();
        flatten("", &toml::Value::Table(table.clone()), &mut flat);
        flat
    };
    let (first, second) = (flat(first), flat(second));
    let has_effect = |key: &str| !key.starts_with("cluster.") && ![SEED, DATA_SEED, DATA].contains(&key);
    let both = first.into_iter().filter_map(|(key, value)| Some((second.get(&key)?.clone(), key, value)));
    let mut different = both.filter(|(other, key, value)| has_effect(key) && other != value && value != AUTO && other != AUTO);
    different.next().map(|(other, key, value)| (key, [value, other]))
}

/// The keys of [method] whose values are the defaults of the method; none if it is not built in.
pub(super) fn keys_at_default(config: &toml::Table) -> BTreeSet<String> {
    let mut shortest = config.clone();
    let method = shortest.get_mut("method").and_then(toml::Value::as_table_mut);
    method.into_iter().for_each(|method| method.retain(|key, _| key == "name"));
    let run = toml::to_string(&shortest).ok().and_then(|text| Run::from_toml(&text, &Registry::default()).ok());
    let Some(defaults) = run.and_then(|run| run.to_table().ok()) else { return BTreeSet::new() };
    let flat = |table: &toml::Table| {
        let mut flat = Config::new();
        table.get("method").into_iter().for_each(|method| flatten("method", method, &mut flat));
        flat
    };
    let defaults = flat(&defaults);
    flat(config).into_iter().filter(|(key, value)| defaults.get(key) == Some(value)).map(|(key, _)| key).collect()
}

/// Removes the keys that do not change results: those of [cluster], and the interval of evaluations unless predictions are averaged over
/// them, as topic models always do. If some runs differ only in these keys, the user compares them, and they stay.
pub(super) fn remove_keys_without_effect(runs: &mut [&mut Config]) {
    let is_averaged =
        |run: &Config| run.contains_key(AVERAGE_FROM) || run.get(MODEL).is_some_and(|model| model == LdaSettings::NAME);
    let is_averaged = runs.iter().any(|run| is_averaged(run));
    let has_effect = |key: &str| !key.starts_with("cluster.") && (is_averaged || key != EVERY);
    let others = runs.iter().map(|run| run.iter().filter(|(key, _)| has_effect(key)).collect::<Vec<_>>());
    if others.collect::<BTreeSet<_>>().len() == runs.len() {
        runs.iter_mut().for_each(|run| run.retain(|key, _| has_effect(key)));
    }
}

/// The keys in which runs differ. A key that only one method, model or other choice has, with the same value in all of its runs, is left
/// out.
pub(super) fn differing(runs: &[&Config], same_data: bool) -> Vec<String> {
    let keys: BTreeSet<&String> = runs.iter().flat_map(|run| run.keys()).collect();
    let differ = |key: &str, runs: &mut dyn Iterator<Item = &&Config>| -> bool {
        let values: BTreeSet<Option<&String>> = runs.map(|run| run.get(key)).collect();
        values.len() > 1
    };
    let differs = |key: &&&String| -> bool {
        if ***key == DATA && same_data || !differ(key, &mut runs.iter()) {
            return false;
        }
        let choices: Vec<String> = choices(key).filter(|choice| keys.contains(choice)).collect();
        if choices.is_empty() || runs.iter().all(|run| run.contains_key(**key)) {
            return true;
        }
        // Compare the runs of each choice with one another.
        let chosen = |run: &Config| choices.iter().map(|choice| run.get(choice).cloned()).collect::<Vec<_>>();
        let by_choice: BTreeSet<Vec<Option<String>>> = runs.iter().map(|run| chosen(run)).collect();
        by_choice.into_iter().any(|own| differ(key, &mut runs.iter().filter(|run| chosen(run) == own)))
    };
    let mut differing: Vec<String> = keys.iter().filter(differs).map(|key| (*key).clone()).collect();
    // Methods and models first, the seed last.
    differing.sort_by_key(|key| (key == SEED, !key.ends_with(".name")));
    differing
}

/// The keys whose values decide whether there is a key: `method.name` and `method.cavity` for `method.cavity.sites.damping`.
fn choices(key: &str) -> impl Iterator<Item = String> {
    let table = key.split('.').next().unwrap_or_default();
    let name = format!("{table}.name");
    let above = key.match_indices('.').map(|(end, _)| key[..end].to_owned());
    above.chain((name != key && table != key).then_some(name))
}

/// Keys without their tables, unless two would then be equal; `TABLE.name` becomes `TABLE`.
pub(super) fn shortened(keys: &[&String]) -> Vec<String> {
    let short = |key: &str| match key.strip_suffix(".name") {
        Some(table) => table.to_owned(),
        // Alone, it would be taken for the seed of the run.
        None if key == DATA_SEED => key.to_owned(),
        None => key.rsplit('.').next().unwrap_or(key).to_owned(),
    };
    let all: Vec<String> = keys.iter().map(|key| short(key)).collect();
    let once = |name: &String| all.iter().filter(|other| *other == name).count() == 1;
    keys.iter().zip(&all).map(|(key, name)| if once(name) { name.clone() } else { (*key).clone() }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(text: &str) -> Config {
        let mut flat = Config::new();
        flatten("", &toml::Value::Table(text.parse().unwrap_or_default()), &mut flat);
        flat
    }

    #[test]
    fn a_choice_is_written_with_its_value() {
        let found = config("data.partition = { dirichlet = 0.5 }\nmethod.cavity = { sites = { damping = 0.5, rows = 3 } }");
        let value = |key: &str| found.get(key).map(String::as_str);
        assert_eq!([value("data.partition"), value("data.partition.dirichlet")], [Some("dirichlet 0.5"), None]);
        assert_eq!([value("method.cavity"), value("method.cavity.sites.rows")], [Some("sites"), Some("3")]);
    }

    #[test]
    fn keys_at_their_defaults_are_found() {
        let decided = |text: &str| keys_at_default(&text.parse().unwrap_or_default());
        let run = "agents = 4\nmodel.name = \"logistic\"\n[method]\nname = \"dsgld\"\nschedule = \"permutation\"\nchains = 7\n";
        let found = decided(run);
        assert!(found.contains("method.schedule") && !found.contains("method.chains"), "{found:?}");
        // Control: another value is one of the run.
        assert!(!decided(&run.replace("permutation", "cyclic")).contains("method.schedule"));
        assert!(decided(&run.replace("dsgld", "own_method")).is_empty());
    }

    #[test]
    fn keys_of_the_cluster_are_settings_only_where_runs_are_equal_otherwise() {
        let of = |texts: [&str; 2]| {
            let mut runs = texts.map(config);
            remove_keys_without_effect(&mut runs.each_mut());
            differing(&runs.iter().collect::<Vec<_>>(), true)
        };
        assert_eq!(of(["seed = 1\ncluster.threads = 1", "seed = 2\ncluster.threads = 4"]), ["seed"]);
        assert_eq!(of(["seed = 1\ncluster.threads = 1", "seed = 1\ncluster.threads = 4"]), ["cluster.threads"]);
        // How often runs are evaluated is a setting if predictions are averaged over evaluations.
        let every =
            |more: &str| of([1, 2].map(|n| format!("seed = {n}\nevaluate.every = {n}\n{more}")).each_ref().map(String::as_str));
        assert_eq!(every(""), ["seed"]);
        assert_eq!(every("evaluate.average_from = 2"), ["evaluate.every", "seed"]);
        assert_eq!(every("model.name = \"lda\""), ["evaluate.every", "seed"]);
    }
}
