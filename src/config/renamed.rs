//! Old names of keys and methods: a run file that uses one is told the new one, and stored configurations are upgraded.

/// A key that has another name now: its section, the methods or models that had it (none listed: any run), the old name, the new name.
const KEYS: &[(&str, &[&str], &str, &str)] = &[
    ("", &[], "precision", "dtype"),
    ("evaluate", &[], "single", "per_particle"),
    ("evaluate", &[], "history", "particle_paths"),
    ("cluster", &[], "draws", "draw_transport"),
    ("cluster.collectives", &[], "asks", "requests"),
    ("model", REGRESSIONS, "prior_precision", "prior"),
    ("model", REGRESSIONS, "gamma_shape", "prior"),
    ("model", REGRESSIONS, "gamma_rate", "prior"),
    ("method", &["dsgld"], "judged", "evaluation_window"),
    ("method", &["dsgld"], "ahead", "max_rounds_in_flight"),
    ("method", &["ec_sghmc", "ec_sgld"], "course", "coupling_schedule"),
    ("method", COLLAPSED, "by", "sweep_by"),
    ("method", COLLAPSED, "optimise", "optimize"),
    ("method", COLLAPSED, "optimise_every", "optimize_every"),
    ("method", COLLAPSED, "optimise_after", "optimize_after"),
];

/// The regressions of the first version.
const REGRESSIONS: &[&str] = &["logistic", "linear"];

/// The collapsed Gibbs samplers.
const COLLAPSED: &[&str] = &["adlda", "async_lda"];

/// A value that is written differently now: the section and key, the old value, the new value.
const VALUES: &[(&str, &str, &str, &str)] = &[
    ("", "dtype", "f32", "float32"),
    ("", "dtype", "f64", "float64"),
    ("method", "name", "u-dsvgd", "u_dsvgd"),
    ("method", "name", "p-dsvgd", "p_dsvgd"),
];

/// The new name of a key in a section whose method or model has this name.
pub(super) fn new_key(section: &str, name: &str, key: &str) -> Option<&'static str> {
    let is_renamed = |(of, methods, old, _): &&(&str, &[&str], &str, &str)| {
        (*of, *old) == (section, key) && (methods.is_empty() || methods.contains(&name))
    };
    KEYS.iter().find(is_renamed).map(|(.., new)| *new)
}

/// The new form of a value.
pub(super) fn new_value(section: &str, key: &str, value: &str) -> Option<&'static str> {
    VALUES.iter().find(|(of, at, old, _)| (*of, *at, *old) == (section, key, value)).map(|(.., new)| *new)
}

/// Replaces old names in a configuration that was stored with a run.
pub(super) fn upgrade(file: &mut toml::Table) {
    if let Some(model) = section_mut(file, "model") {
        upgrade_prior(model);
    }
    let named = |file: &mut toml::Table, section: &str| {
        section_mut(file, section).and_then(|table| Some(table.get("name")?.as_str()?.to_owned()))
    };
    for (section, _, old, _) in KEYS {
        let name = named(file, section).unwrap_or_default();
        if let Some(new) = new_key(section, &name, old)
            && let Some(table) = section_mut(file, section)
            && let Some(value) = table.remove(*old)
        {
            table.insert(new.to_owned(), value);
        }
    }
    for (section, key, old, new) in VALUES {
        if let Some(value) = section_mut(file, section).and_then(|table| table.get_mut(*key))
            && value.as_str() == Some(old)
        {
            *value = toml::Value::from(*new);
        }
    }
}

/// Turns the precision of a regression's prior, or the Gamma distribution of that, into its prior.
fn upgrade_prior(model: &mut toml::Table) {
    let is_regression = model.get("name").and_then(toml::Value::as_str).is_some_and(|name| REGRESSIONS.contains(&name));
    if !is_regression {
        return;
    }
    let mut number = |key: &str| model.remove(key)?.as_float();
    let [precision, shape, rate] = ["prior_precision", "gamma_shape", "gamma_rate"].map(&mut number);
    let prior = match (precision, shape.or(rate)) {
        (Some(precision), _) => {
            let scale = toml::Value::from(precision.powf(-0.5));
            model.insert("intercept_scale".into(), scale.clone());
            ("normal", scale)
        }
        (None, Some(_)) => {
            let of = |key: &str, value: Option<f64>, default: f64| (key.to_owned(), toml::Value::from(value.unwrap_or(default)));
            ("sampled_precision", toml::Table::from_iter([of("shape", shape, 1.0), of("rate", rate, 100.0)]).into())
        }
        (None, None) => return,
    };
    model.insert("prior".into(), toml::Table::from_iter([(prior.0.to_owned(), prior.1)]).into());
}

fn section_mut<'a>(file: &'a mut toml::Table, path: &str) -> Option<&'a mut toml::Table> {
    path.split('.').filter(|part| !part.is_empty()).try_fold(file, |table, part| table.get_mut(part)?.as_table_mut())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn stored_priors_of_regressions_are_upgraded() {
        for (old, new) in [
            (
                "name = \"logistic\"\nprior_precision = 4.0\n",
                "name = \"logistic\"\nintercept_scale = 0.5\nprior = { normal = 0.5 }\n",
            ),
            (
                "name = \"logistic\"\ngamma_shape = 1.5\ngamma_rate = 2.0\n",
                "name = \"logistic\"\nprior = { sampled_precision = { shape = 1.5, rate = 2.0 } }\n",
            ),
            ("name = \"network\"\nprior_precision = 4.0\n", "name = \"network\"\nprior_precision = 4.0\n"),
        ] {
            let mut table: toml::Table = format!("[model]\n{old}").parse().unwrap();
            upgrade(&mut table);
            assert_eq!(table, format!("[model]\n{new}").parse().unwrap());
        }
    }

    #[test]
    fn stored_configurations_get_the_new_names() {
        let old = "precision = \"f32\"\n[method]\nname = \"u-dsvgd\"\n[evaluate]\nsingle = true\n[cluster]\ndraws = \"files\"\n";
        let mut table: toml::Table = old.parse().unwrap();
        upgrade(&mut table);
        let new = "dtype = \"float32\"\n[method]\nname = \"u_dsvgd\"\n[evaluate]\nper_particle = true\n[cluster]\ndraw_transport = \"files\"\n";
        assert_eq!(table, new.parse().unwrap());
        let mut unchanged = table.clone();
        upgrade(&mut unchanged);
        assert_eq!(unchanged, table);
        // Keys of methods are renamed in these methods only.
        let renamed = |method: &str| {
            let mut table: toml::Table = format!("[method]\nname = \"{method}\"\nahead = 3\n").parse().unwrap();
            upgrade(&mut table);
            table["method"].get("ahead").is_none()
        };
        assert!(renamed("dsgld") && !renamed("a_method_of_ones_own"));
    }
}
