//! The `[sweep]` of a run file: keys with lists of values, and the grid of runs that they span.

use super::error::Problem;
use super::run_file::RunFile;
use super::sections::SWEEP;

/// More runs than this are a mistake.
const MAX_POINTS: usize = 100_000;
/// A folder's name may be 255 bytes long; beside it there is room for `.partial` and the like.
const MAX_NAME_LENGTH: usize = 120;
/// Digits of a digest in a name: enough for all names of a sweep to differ.
const DIGITS: usize = 12;

/// The sections whose name decides which other keys they have, each with a list of its tables.
const LISTS_OF_TABLES: [(&str, &str); 2] = [
    ("method", "method = [{ name = \"hmc\" }, { name = \"svgd\" }]"),
    ("model", "model = [{ name = \"logistic\" }, { name = \"network\" }]"),
];

/// A grid of runs.
#[derive(Clone, Debug)]
pub struct Sweep {
    /// The keys that vary, dotted, in the order of writing.
    pub keys: Vec<String>,
    /// The runs; the last key varies fastest.
    pub points: Vec<Point>,
    /// Which keys of the file have no effect, in a sentence for each table that the sweep replaces.
    pub notes: Vec<String>,
}

/// One run of a grid.
#[derive(Clone, Debug)]
pub struct Point {
    /// What varies, as the name of a folder: `method=dsvgd,seed=2`.
    pub name: String,
    /// The value of each key for people.
    pub labels: Vec<String>,
    /// The run file with these values.
    pub file: RunFile,
}

/// A key with its values.
struct Varied {
    at: Vec<String>,
    place: String,
    values: Vec<(toml::Value, String)>,
}

/// Whether a run file describes a sweep.
pub fn is_sweep(file: &RunFile) -> bool {
    file.table().contains_key(SWEEP)
}

/// The grid that a run file describes.
///
/// # Errors
/// What is wrong with its `[sweep]`; its runs are not looked at.
pub fn grid(file: &RunFile) -> Result<Sweep, Vec<Problem>> {
    let wrong = |at: &[String], what: String| file.problem_at(at, what);
    let root = [SWEEP.to_owned()];
    let Some(table) = file.table().get(SWEEP) else {
        let example = "seed = [1, 2, 3]";
        return Err(vec![wrong(
            &[],
            format!("there is no [sweep]: add one with a list for each key that varies, such as {example}"),
        )]);
    };
    let mut found = Vec::new();
    leaves(table, &mut root.to_vec(), &mut found);
    let order: Vec<&[String]> = file.keys_below(&root).collect();
    found.sort_by_key(|(at, _)| order.iter().position(|key| key == at).unwrap_or(usize::MAX));
    let mut problems = Vec::new();
    let mut varied: Vec<Varied> = Vec::new();
    for (at, value) in found {
        let key: Vec<String> = at[1..].iter().flat_map(|part| part.split('.')).map(str::to_owned).collect();
        let dotted = key.join(".");
        if key.iter().any(String::is_empty) {
            problems.push(wrong(&at, "has a key with an empty part".into()));
        } else if let Some(set) = file.override_of(&key) {
            problems.push(wrong(&at, format!("varies {dotted}, which {set} sets: leave one out")));
        } else if let (Some(set), true) = (file.overrides_below(&key).next(), has_tables(&value)) {
            let what = format!("replaces [{dotted}], in which {set} sets a value without effect: write it into the entries");
            problems.push(wrong(&at, what));
        } else if dotted == "cluster.threads" || dotted == "cluster" && sets_threads(&value) {
            let what = "cannot vary within a job, whose threads start once. Start a job for each number: --set cluster.threads=2";
            problems.push(wrong(&at, what.into()));
        } else if let Some((section, example)) = LISTS_OF_TABLES.iter().find(|(section, _)| dotted == format!("{section}.name")) {
            let what = format!(
                "cannot vary, because other keys of [{section}] depend on it. To vary the {section}, list tables: {example}"
            );
            problems.push(wrong(&at, what));
        } else if varied.iter().any(|other| other.at == key) {
            problems.push(wrong(&at, "is there twice".into()));
        } else {
            match value.as_array().map(Vec::as_slice) {
                None => problems.push(wrong(&at, "must be a list of values, such as [1, 2]".into())),
                Some([]) => problems.push(wrong(&at, "is an empty list: give at least one value".into())),
                Some(values) => {
                    let labels = labels(values);
                    let twice = (1..values.len()).find(|&later| {
                        labels[..later].contains(&labels[later])
                            || values[..later].iter().any(|earlier| are_equal(earlier, &values[later]))
                    });
                    if let Some(twice) = twice {
                        problems.push(wrong(&at, format!("has {} twice", values[twice])));
                    }
                    let place = wrong(&at, String::new()).place;
                    varied.push(Varied { at: key, place, values: values.iter().cloned().zip(labels).collect() });
                }
            }
        }
    }
    if varied.is_empty() && problems.is_empty() {
        problems.push(wrong(&root, "names no key: give a list for each key that varies, such as seed = [1, 2, 3]".into()));
    }
    let total = varied.iter().try_fold(1_usize, |total, key| total.checked_mul(key.values.len())).filter(|&n| n <= MAX_POINTS);
    match total {
        Some(total) if problems.is_empty() => points(file, &varied, total),
        None => Err(vec![wrong(&root, format!("spans more than {MAX_POINTS} runs"))]),
        Some(_) => Err(problems),
    }
}

/// Whether one of several tables sets `threads`.
fn sets_threads(values: &toml::Value) -> bool {
    values.as_array().is_some_and(|values| values.iter().any(|value| value.get("threads").is_some()))
}

/// Whether a list has tables.
fn has_tables(values: &toml::Value) -> bool {
    values.as_array().is_some_and(|values| values.iter().any(toml::Value::is_table))
}

fn points(file: &RunFile, varied: &[Varied], total: usize) -> Result<Sweep, Vec<Problem>> {
    let base = file.without_sweep();
    let names = short_names(varied);
    // A table replaces the one that is there, and must do so before one of its keys is set.
    let mut order_of_setting: Vec<usize> = (0..varied.len()).collect();
    order_of_setting.sort_by_key(|&key| varied[key].at.len());
    let mut points = Vec::with_capacity(total);
    for number in 0..total {
        let mut rest = number;
        let mut chosen = vec![0; varied.len()];
        for (choice, key) in chosen.iter_mut().zip(varied).rev() {
            *choice = rest % key.values.len();
            rest /= key.values.len();
        }
        let mut point = base.clone();
        for &key in &order_of_setting {
            let Varied { at, place, values } = &varied[key];
            let with = point.with(at, values[chosen[key]].0.clone(), place.clone());
            point = with.map_err(|part| {
                let root = [SWEEP.to_owned(), at.join(".")];
                vec![file.problem_at(&root, format!("cannot be set: {part} is a value, not a table"))]
            })?;
        }
        let labels: Vec<String> = varied.iter().zip(&chosen).map(|(key, &choice)| key.values[choice].1.clone()).collect();
        // A key with a single value tells no runs apart.
        let tells = |key: &Varied| key.values.len() > 1 || total == 1;
        let parts = varied.iter().zip(names.iter().zip(&labels)).filter(|(key, _)| tells(key));
        let name: Vec<String> = parts.map(|(_, (name, label))| format!("{name}={label}")).collect();
        points.push(Point { name: shortened(name.join(",")), labels, file: point });
    }
    let notes = varied.iter().filter_map(|key| replaced_keys(&base, varied, key)).collect();
    Ok(Sweep { keys: varied.iter().map(|key| key.at.join(".")).collect(), points, notes })
}

/// A note about the keys of a table that the tables of a sweep, which replace it, do not repeat.
fn replaced_keys(base: &RunFile, varied: &[Varied], key: &Varied) -> Option<String> {
    let (first, rest) = key.at.split_first()?;
    let replaced = rest.iter().try_fold(base.table().get(first)?, |table, part| table.get(part))?.as_table()?;
    let tables: Vec<&toml::Table> = key.values.iter().filter_map(|(value, _)| value.as_table()).collect();
    if tables.is_empty() {
        return None;
    }
    let is_varied =
        |name: &String| varied.iter().any(|other| other.at.starts_with(&key.at) && other.at.get(key.at.len()) == Some(name));
    // Another method may not know the key.
    let alike = || tables.iter().filter(|table| table.get("name") == replaced.get("name"));
    let replaced_names = || replaced.keys().filter(|name| *name != "name" && !is_varied(name));
    let place = key.at.join(".");
    if alike().next().is_none() {
        let what = || format!("[{place}] of the file has no effect: the sweep replaces it in every run");
        return replaced_names().next().map(|_| what());
    }
    let lost: Vec<&str> =
        replaced_names().filter(|name| alike().any(|table| !table.contains_key(*name))).map(String::as_str).collect();
    (!lost.is_empty())
        .then(|| format!("[{place}] of the file has no effect where the sweep replaces it: repeat {} there", lost.join(", ")))
}

/// The values below a table that are no tables.
fn leaves(value: &toml::Value, at: &mut Vec<String>, found: &mut Vec<(Vec<String>, toml::Value)>) {
    match value {
        toml::Value::Table(table) => {
            for (key, value) in table {
                at.push(key.clone());
                leaves(value, at, found);
                at.pop();
            }
        }
        value => found.push((at.clone(), value.clone())),
    }
}

/// The last part of each key, or all of it where that says too little.
fn short_names(varied: &[Varied]) -> Vec<String> {
    let last = |key: &Varied| key.at.last().cloned().unwrap_or_default();
    let alone = |key: &Varied| varied.iter().filter(|other| last(other) == last(key)).count() == 1;
    // `seed` alone would be taken for the seed of the run.
    let is_clear = |key: &Varied| key.at.len() == 1 || last(key) != "seed";
    varied.iter().map(|key| if alone(key) && is_clear(key) { last(key) } else { key.at.join(".") }).collect()
}

/// A label of each value, in characters that suit the name of a folder. A digest follows where two labels would be equal.
fn labels(values: &[toml::Value]) -> Vec<String> {
    let plain: Vec<String> = values.iter().map(|value| plain(&label(value, values))).collect();
    let is_clear = |label: &String| !label.is_empty() && plain.iter().filter(|other| *other == label).count() == 1;
    let with_digest = |(value, label): (&toml::Value, &String)| match is_clear(label) {
        true => label.clone(),
        false => format!("{label}-{}", digest(&value.to_string())),
    };
    values.iter().zip(&plain).map(with_digest).collect()
}

/// The label of a value among all values of a key: of a table, its name and the keys in which tables of this name differ.
fn label(value: &toml::Value, values: &[toml::Value]) -> String {
    match value {
        // The name of a file, without its folder.
        toml::Value::String(text) => {
            let name = text.rsplit('/').next().unwrap_or(text);
            name.strip_suffix(".h5").unwrap_or(name).to_owned()
        }
        toml::Value::Array(items) => items.iter().map(|item| label(item, items)).collect::<Vec<_>>().join("+"),
        toml::Value::Table(table) => {
            let (name, settings) = named(table);
            let rivals: Vec<toml::Table> = values
                .iter()
                .filter_map(|other| Some(named(other.as_table()?)).filter(|other| other.0 == name).map(|other| other.1))
                .collect();
            let varies = |key: &String| rivals.iter().any(|other| other.get(key) != settings.get(key));
            let differing = settings.iter().filter(|(key, _)| name.is_empty() || varies(key));
            let parts = differing.map(|(key, value)| format!("{key}={}", label(value, &[])));
            Some(name.to_owned()).into_iter().filter(|name| !name.is_empty()).chain(parts).collect::<Vec<_>>().join("+")
        }
        value => value.to_string(),
    }
}

/// The name of a table and its other settings: `{ name = "svgd", steps = 1 }` is named svgd, and so is `{ svgd = { steps = 1 } }`.
fn named(table: &toml::Table) -> (&str, toml::Table) {
    let mut entries = table.iter();
    match (table.get("name").and_then(toml::Value::as_str), entries.next(), entries.next()) {
        (Some(name), ..) => (name, table.iter().filter(|(key, _)| *key != "name").map(|(k, v)| (k.clone(), v.clone())).collect()),
        (None, Some((name, toml::Value::Table(settings))), None) => (name, settings.clone()),
        _ => ("", table.clone()),
    }
}

/// The text without characters that are unusual in the names of folders.
fn plain(text: &str) -> String {
    let kept: String = text.chars().map(|c| if c.is_ascii_alphanumeric() || "._-+=".contains(c) { c } else { '-' }).collect();
    // A point in front would hide the folder, or lead out of it.
    kept.trim_start_matches('.').to_owned()
}

/// Whether two values are the same, where a number may be written with or without a fraction.
fn are_equal(a: &toml::Value, b: &toml::Value) -> bool {
    let number = |value: &toml::Value| value.as_float().or_else(|| value.as_integer().map(|value| value as f64));
    a == b || number(a).is_some_and(|a| number(b) == Some(a))
}

fn digest(text: &str) -> String {
    blake3::hash(text.as_bytes()).to_hex().chars().take(DIGITS).collect()
}

fn shortened(name: String) -> String {
    if name.len() <= MAX_NAME_LENGTH {
        return name;
    }
    let kept: String = name.chars().take(MAX_NAME_LENGTH - DIGITS - 1).collect();
    format!("{kept}-{}", digest(&name))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    const BASE: &str = "seed = 9\n[model]\nname = \"toy\"\n[method]\nname = \"svgd\"\nparticles = 5\n";

    fn read(sweep: &str) -> Result<Sweep, Vec<String>> {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), format!("{BASE}{sweep}")).unwrap();
        let file = RunFile::read(file.path(), &[]).unwrap();
        grid(&file).map_err(|problems| problems.iter().map(ToString::to_string).collect())
    }

    fn names(sweep: &str) -> Vec<String> {
        read(sweep).unwrap().points.into_iter().map(|point| point.name).collect()
    }

    #[test]
    fn the_grid_is_the_product_in_the_order_of_writing() {
        let sweep = read("[sweep]\nseed = [1, 2]\n\"method.steps\" = [10, 20]\n").unwrap();
        assert_eq!(sweep.keys, ["seed", "method.steps"]);
        let names: Vec<&str> = sweep.points.iter().map(|point| point.name.as_str()).collect();
        assert_eq!(names, ["seed=1,steps=10", "seed=1,steps=20", "seed=2,steps=10", "seed=2,steps=20"]);
        let table = sweep.points[2].file.table();
        assert_eq!((&table["seed"], &table["method"]["steps"]), (&2.into(), &10.into()));
        assert_eq!(table["method"]["particles"], 5.into());
        assert!(!table.contains_key(SWEEP));
        // Dotted without quotes, and the other way round.
        assert_eq!(self::names("[sweep]\nmethod.steps = [10, 20]\nseed = [1]\n"), ["steps=10", "steps=20"]);
    }

    #[test]
    fn a_table_replaces_the_one_of_the_file_whatever_is_written_first() {
        let text = "[sweep]\n\"method.rounds\" = [3]\nmethod = [{ name = \"svgd\" }, { name = \"dsvgd\", local_steps = 7 }]\n";
        let sweep = read(text).unwrap();
        assert_eq!(sweep.points[1].name, "method=dsvgd");
        let method = &sweep.points[1].file.table()["method"];
        assert_eq!((&method["local_steps"], &method["rounds"], method.get("particles")), (&7.into(), &3.into(), None));
        assert!(sweep.notes.len() == 1 && sweep.notes[0].ends_with("repeat particles there"), "{:?}", sweep.notes);
        // The control: nothing is lost.
        let text = "[sweep]\nmethod = [{ name = \"svgd\", particles = 1 }, { name = \"dsvgd\", particles = 2 }]\nseed = [1]\n";
        assert!(read(text).unwrap().notes.is_empty());
    }

    #[test]
    fn names_of_folders_are_readable_and_distinct() {
        for (list, expected) in [
            (r#"data.file = ["a/german.h5", "a/heart.h5"]"#, ["file=german", "file=heart"]),
            (r#"data.partition = ["by_label", { dirichlet = 0.5 }]"#, ["partition=by_label", "partition=dirichlet=0.5"]),
            (
                r#"method.cavity = [{ sites = { damping = 0.5 } }, { sites = { damping = 1 } }]"#,
                ["cavity=sites+damping=0.5", "cavity=sites+damping=1"],
            ),
            (r#"method.cavity = ["density", { sites = { damping = 1 } }]"#, ["cavity=density", "cavity=sites"]),
            (
                r#"method = [{ name = "svgd", x = 3 }, { name = "svgd", x = 3, steps = 1 }]"#,
                ["method=svgd", "method=svgd+steps=1"],
            ),
            ("model.hidden = [[50], [10, 5]]", ["hidden=50", "hidden=10+5"]),
            ("method.step = [1e-3, -2]", ["step=0.001", "step=-2"]),
        ] {
            assert_eq!(names(&format!("[sweep]\n{list}\n")), expected);
        }
        assert!(names("[sweep]\nmodel.x = [1]\nmethod.x = [2.5]\n")[0].starts_with("model.x=1,method.x=2.5"));
        // Equal labels get a digest, and no name leads out of the folder.
        let found = names("[sweep]\ndata.file = [\"a/b.h5\", \"c/b.h5\", \"../..\", \"\"]\n");
        assert!(found[0].starts_with("file=b-") && found[1].starts_with("file=b-") && found[0] != found[1], "{found:?}");
        assert!(found[2].starts_with("file=-") && found[3].starts_with("file=-") && found[2] != found[3], "{found:?}");
        let long = names(&format!("[sweep]\nmodel.x = [\"{}\", \"{}\"]\n", "a".repeat(300), "a".repeat(301)));
        assert!(long.iter().all(|name| name.len() <= MAX_NAME_LENGTH) && long[0] != long[1]);
    }

    #[test]
    fn mistakes_are_told_with_their_line() {
        for (text, says) in [
            ("", "there is no [sweep]"),
            ("[sweep]\n", "names no key"),
            ("[sweep]\nseed = 1\n", "line 8: 'sweep.seed' must be a list"),
            ("[sweep]\nseed = []\n", "is an empty list"),
            ("[sweep]\nseed = [1, 2, 1]\n", "has 1 twice"),
            ("[sweep]\nmethod.step = [1, 1.0]\n", "has 1.0 twice"),
            ("[sweep]\nmethod.x = [1]\n\"method.x\" = [2]\n", "twice"),
            ("[sweep]\nseed.x = [1]\n", "seed is a value, not a table"),
            ("[sweep]\n\"method..x\" = [1]\n", "an empty part"),
            (
                "[sweep]\n\"method.name\" = [\"hmc\", \"svgd\"]\n",
                "To vary the method, list tables: method = [{ name = \"hmc\" }, { name = \"svgd\" }]",
            ),
            (
                "[sweep]\nmodel.name = [\"logistic\", \"network\"]\n",
                "To vary the model, list tables: model = [{ name = \"logistic\" }",
            ),
        ] {
            let found = read(text).unwrap_err();
            assert!(found.len() == 1 && found[0].contains(says), "{says:?} in {found:?}");
        }
        let list: Vec<String> = (0..400).map(|number| number.to_string()).collect();
        let many = format!("[sweep]\nseed = [{0}]\nagents = [{0}]\n", list.join(", "));
        assert!(read(&many).unwrap_err()[0].contains("more than 100000 runs"));
    }
}
