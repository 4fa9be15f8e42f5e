//! Old names of keys and methods: a run file that uses one is told the new one, and stored configurations are upgraded.

/// A key that has another name now: its section, the methods that had it (none listed: any run), the old name, the new name.
const KEYS: &[(&str, &[&str], &str, &str)] = &[
    ("", &[], "precision", "dtype"),
    ("evaluate", &[], "single", "per_particle"),
    ("evaluate", &[], "history", "particle_paths"),
    ("cluster.collectives", &[], "asks", "requests"),
    ("method", &["dsgld"], "judged", "evaluation_window"),
    ("method", &["dsgld"], "ahead", "max_rounds_in_flight"),
    ("method", &["ec_sghmc", "ec_sgld"], "course", "coupling_schedule"),
    ("method", COLLAPSED, "by", "sweep_by"),
    ("method", COLLAPSED, "optimise", "optimize"),
    ("method", COLLAPSED, "optimise_every", "optimize_every"),
    ("method", COLLAPSED, "optimise_after", "optimize_after"),
];

/// The collapsed Gibbs samplers.
const COLLAPSED: &[&str] = &["adlda", "async_lda"];

/// A value that is written differently now: the section and key, the old value, the new value.
const VALUES: &[(&str, &str, &str, &str)] = &[
    ("", "dtype", "f32", "float32"),
    ("", "dtype", "f64", "float64"),
    ("method", "name", "u-dsvgd", "u_dsvgd"),
    ("method", "name", "p-dsvgd", "p_dsvgd"),
];

/// The new name of a key in a section of a run with this method.
pub(super) fn new_key(section: &str, method: &str, key: &str) -> Option<&'static str> {
    let is_renamed = |(of, methods, old, _): &&(&str, &[&str], &str, &str)| {
        (*of, *old) == (section, key) && (methods.is_empty() || methods.contains(&method))
    };
    KEYS.iter().find(is_renamed).map(|(.., new)| *new)
}

/// The new form of a value.
pub(super) fn new_value(section: &str, key: &str, value: &str) -> Option<&'static str> {
    VALUES.iter().find(|(of, at, old, _)| (*of, *at, *old) == (section, key, value)).map(|(.., new)| *new)
}

/// Replaces old names in a configuration that was stored with a run.
pub(super) fn upgrade(file: &mut toml::Table) {
    let method = section_mut(file, "method").and_then(|table| Some(table.get("name")?.as_str()?.to_owned()));
    for (section, _, old, _) in KEYS {
        if let Some(new) = new_key(section, method.as_deref().unwrap_or_default(), old)
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

fn section_mut<'a>(file: &'a mut toml::Table, path: &str) -> Option<&'a mut toml::Table> {
    path.split('.').filter(|part| !part.is_empty()).try_fold(file, |table, part| table.get_mut(part)?.as_table_mut())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn stored_configurations_get_the_new_names() {
        let old = "precision = \"f32\"\n[method]\nname = \"u-dsvgd\"\n[evaluate]\nsingle = true\n";
        let mut table: toml::Table = old.parse().unwrap();
        upgrade(&mut table);
        let new = "dtype = \"float32\"\n[method]\nname = \"u_dsvgd\"\n[evaluate]\nper_particle = true\n";
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
