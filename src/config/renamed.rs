//! Old names of keys and methods: a run file that uses one is told the new one, and stored configurations are upgraded.

/// A key that has another name now: its section, the old name, the new name.
const KEYS: &[(&str, &str, &str)] = &[
    ("", "precision", "dtype"),
    ("evaluate", "single", "per_particle"),
    ("evaluate", "history", "particle_paths"),
    ("cluster.collectives", "asks", "requests"),
    ("method", "judged", "evaluation_window"),
    ("method", "ahead", "max_rounds_in_flight"),
    ("method", "course", "coupling_schedule"),
    ("method", "by", "sweep_by"),
    ("method", "optimise", "optimize"),
    ("method", "optimise_every", "optimize_every"),
    ("method", "optimise_after", "optimize_after"),
];

/// A value that is written differently now: the section and key, the old value, the new value.
const VALUES: &[(&str, &str, &str, &str)] = &[
    ("", "dtype", "f32", "float32"),
    ("", "dtype", "f64", "float64"),
    ("method", "name", "u-dsvgd", "u_dsvgd"),
    ("method", "name", "p-dsvgd", "p_dsvgd"),
];

/// The new name of a key in a section.
pub(super) fn new_key(section: &str, key: &str) -> Option<&'static str> {
    KEYS.iter().find(|(of, old, _)| (*of, *old) == (section, key)).map(|(.., new)| *new)
}

/// The new form of a value.
pub(super) fn new_value(section: &str, key: &str, value: &str) -> Option<&'static str> {
    VALUES.iter().find(|(of, at, old, _)| (*of, *at, *old) == (section, key, value)).map(|(.., new)| *new)
}

/// Replaces old names in a configuration that was stored with a run.
pub(super) fn upgrade(file: &mut toml::Table) {
    for (section, old, new) in KEYS {
        if let Some(table) = section_mut(file, section)
            && let Some(value) = table.remove(*old)
        {
            table.insert((*new).to_owned(), value);
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
    }
}
