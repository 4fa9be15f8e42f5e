//! What made a result: the commit, and a hash of the sources and settings.

use super::Row;
use super::dsvgd::runs::COMPARISON_FILES;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The code that computes results: not that of result files, checkpoints, pictures and the command line. Nor the rule of verdicts: a test in its
/// file applies it to all stored results.
const SOURCES: [&str; 26] = [
    "src/cluster/block.rs",
    "src/cluster/simulate.rs",
    "src/cluster/sums.rs",
    "src/config",
    "src/data",
    "src/kernels",
    "src/layout.rs",
    "src/lda",
    "src/methods/common",
    "src/methods/mod.rs",
    "src/methods/transitions",
    "src/methods/tuning",
    "src/metrics",
    "src/models",
    "src/number.rs",
    "src/quadrature.rs",
    "src/random",
    "src/settings",
    "src/vector.rs",
    "tests/support/covertype.rs",
    "tests/support/delayed_gradients.rs",
    "tests/support/gaussian_shards.rs",
    "tests/support/grid.rs",
    "tests/support/recording.rs",
    "examples/reproduce/dsvgd/sets.rs",
    "examples/reproduce/numbers.rs",
];
/// The folders of methods that each paper's rows use.
const METHODS: [(&str, &[&str]); 3] = [
    ("dsgld", &["chains", "topics"]),
    ("dsvgd", &["chains", "particles", "point", "variational"]),
    ("ec-sghmc", &["chains", "point"]),
];
/// A file that only this row uses: the file and the row.
const OF_ONE_ROW: (&str, &str) = ("src/methods/variational/npv.rs", "fig11");

/// What made a result.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Origin {
    commit: String,
    /// A hash of the code and of `Cargo.lock`; of the harness, of what the row reaches. Lines of comments, tests at the end of files and texts of
    /// rows do not count.
    sources: String,
    /// A hash of the run files.
    settings: String,
}

impl Origin {
    /// What each row of a paper would be made from now. The data sets are not looked at.
    pub fn of_rows(paper: &str, rows: &[Row]) -> io::Result<Vec<Self>> {
        let (commit, harness) = (commit(), harness_of(paper)?);
        rows.iter().map(|row| Self::of(paper, row, &harness, &commit)).collect()
    }

    fn of(paper: &str, row: &Row, harness: &[String], commit: &str) -> io::Result<Self> {
        let mut files = Vec::new();
        let of_paper = METHODS.iter().filter(|(of, _)| *of == paper).flat_map(|(_, rooms)| *rooms);
        let methods = of_paper.map(|room| Path::new("src/methods").join(room));
        SOURCES.iter().map(PathBuf::from).chain(methods).try_for_each(|place| collect(&place, &mut files))?;
        files.retain(|file| file != Path::new(OF_ONE_ROW.0) || row.id == OF_ONE_ROW.1);
        files.sort();
        files.dedup();
        let mut sources = blake3::Hasher::new();
        sources.update(&fs::read("Cargo.lock")?);
        for file in files {
            sources.update(code(&fs::read_to_string(&file)?).as_bytes());
        }
        sources.update(of_row(row.id, harness).as_bytes());
        let mut settings = blake3::Hasher::new();
        let of_comparisons: &[&str] = if paper == "dsvgd" { &COMPARISON_FILES } else { &[] };
        for name in row.files.iter().chain(of_comparisons) {
            settings.update(&fs::read(Path::new("jobs/papers").join(format!("{name}.toml")))?);
        }
        let short = |hash: blake3::Hash| hash.to_hex()[..16].to_owned();
        Ok(Self { commit: commit.to_owned(), sources: short(sources.finalize()), settings: short(settings.finalize()) })
    }

    /// The commit, with `+` after it if files were changed.
    pub fn commit(&self) -> &str {
        &self.commit
    }

    /// These sources and settings, with the commit of a result that they would make too.
    pub fn with_commit_of(self, result: &Self) -> Self {
        Self { commit: result.commit.clone(), ..self }
    }

    pub fn has_settings_of(&self, other: &Self) -> bool {
        self.settings == other.settings
    }

    /// Whether the same code and settings make both.
    pub fn is_same(&self, other: &Self) -> bool {
        (&self.sources, &self.settings) == (&other.sources, &other.settings)
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.commit.as_str() {
            "" => f.write_str("of an unknown commit"),
            commit => write!(f, "commit {commit}"),
        }
    }
}

/// Adds a file of code, or those of a folder that are no tests.
fn collect(place: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    if place.is_dir() {
        for entry in fs::read_dir(place)? {
            let path = entry?.path();
            if path.file_stem().is_none_or(|name| name != "tests") {
                collect(&path, files)?;
            }
        }
    } else if !place.exists() {
        return Err(io::Error::new(
            io::ErrorKind::NotFound,
            format!("{} is among the sources of rows, but missing", place.display()),
        ));
    } else if place.extension().is_some_and(|extension| extension == "rs") {
        files.push(place.to_owned());
    }
    Ok(())
}

/// The files of a paper's harness, as text.
fn harness_of(paper: &str) -> io::Result<Vec<String>> {
    let mut files = Vec::new();
    collect(&Path::new("examples/reproduce").join(paper.replace('-', "_")), &mut files)?;
    files.sort();
    files.iter().map(fs::read_to_string).collect()
}

/// The beginnings of texts that reports show.
const TEXTS: [&str; 6] = ["quote: \"", "claim: \"", "differs: \"", "const DIFFERS", "const FLAT", "pub const LEGEND"];

/// A file before its tests.
fn before_tests(file: &str) -> &str {
    // Attributes may stand between these two lines.
    let is_tests = |place: usize| {
        let mut rest = file[place..].lines().skip_while(|line| line.is_empty() || line.starts_with("#["));
        rest.next().is_some_and(|line| line.starts_with("mod tests {"))
    };
    let tests = file.match_indices("\n#[cfg(test)]\n").find(|(place, _)| is_tests(*place));
    &file[..tests.map_or(file.len(), |(place, _)| place)]
}

/// The code before its tests, without comments, empty lines and the texts of rows.
fn code(file: &str) -> String {
    let file = before_tests(file);
    let (mut code, mut in_text) = (String::new(), false);
    for line in file.lines().map(str::trim) {
        in_text |= TEXTS.iter().any(|text| line.starts_with(text));
        if !in_text && !line.is_empty() && !line.starts_with("//") {
            code += line;
            code.push('\n');
        }
        in_text &= !(line.ends_with("\",") || line.ends_with("\";"));
    }
    code
}

/// The code of the harness that a row reaches from its call, by name: of two items with one name, both.
fn of_row(id: &str, files: &[String]) -> String {
    let call = files.iter().find_map(|file| call_of(id, file)).unwrap_or_default();
    let items: Vec<Item> = files.iter().flat_map(|file| items(before_tests(file))).collect();
    let mut is_reached = vec![false; items.len()];
    let mut known: BTreeSet<&str> = names(call).collect();
    while let Some(place) = (0..items.len()).find(|&place| !is_reached[place] && known.contains(items[place].name.as_str())) {
        is_reached[place] = true;
        known.extend(names(&items[place].text));
    }
    let reached = items.iter().zip(is_reached).filter(|(_, is_reached)| *is_reached);
    reached.fold(code(call), |all, (item, _)| all + &code(&item.text))
}

/// What a row calls: the end of its entry, as it is written.
fn call_of<'a>(id: &str, file: &'a str) -> Option<&'a str> {
    let row = &file[file.find(&format!("\n        id: \"{id}\",\n"))?..];
    let row = &row[..row.find("\n    },\n")?];
    row.find("\n        run: ").map(|place| &row[place..])
}

/// The words that may be names of items: what follows a single dot is a method or a field.
fn names(text: &str) -> impl Iterator<Item = &str> {
    let is_other = |c: char| !c.is_alphanumeric() && c != '_';
    let is_member = move |place: usize| text[..place].ends_with('.') && !text[..place].ends_with("..");
    let words = text.split(is_other).filter(|word| !word.is_empty());
    words.filter(move |word| !is_member(word.as_ptr().addr() - text.as_ptr().addr()))
}

/// A function, type, constant or implementation outside of others.
struct Item {
    /// Its name; that of the type of an implementation.
    name: String,
    text: String,
}

/// The items of a file, without imports and modules.
fn items(file: &str) -> Vec<Item> {
    let mut items: Vec<Item> = Vec::new();
    for line in file.lines().filter(|line| !line.starts_with("//") && !line.starts_with("#[")) {
        if let Some(name) = name_of_item(line) {
            items.push(Item { name, text: String::new() });
        }
        if let Some(item) = items.last_mut() {
            item.text += line;
            item.text.push('\n');
        }
    }
    items.retain(|item| !item.name.is_empty());
    items
}

/// The name of the item that begins in this line, if one does; empty for imports and modules.
fn name_of_item(line: &str) -> Option<String> {
    let mut words = names(line).skip_while(|word| ["pub", "super", "crate", "async", "unsafe"].contains(word)).peekable();
    if !line.starts_with(char::is_alphabetic) {
        return None;
    }
    let name = match words.next()? {
        "use" | "mod" => "",
        "fn" | "struct" | "enum" | "type" | "trait" | "static" => words.next()?,
        "const" if words.peek() == Some(&"fn") => words.nth(1)?,
        "const" => words.next()?,
        "impl" => {
            let header = line.split('{').next().unwrap_or(line);
            let implemented = match header.split_once(" for ") {
                Some((_, implemented)) => implemented,
                // After the parameters of the implementation, if it has any.
                None => header
                    .strip_prefix("impl<")
                    .map_or(&header["impl".len()..], |rest| rest.split_once("> ").map_or("", |parts| parts.1)),
            };
            names(implemented).next()?
        }
        _ => return None,
    };
    Some(name.to_owned())
}

fn commit() -> String {
    let git = |arguments: &[&str]| {
        let output = Command::new("git").args(arguments).output().ok().filter(|output| output.status.success())?;
        Some(String::from_utf8_lossy(&output.stdout).trim().to_owned())
    };
    let changed = git(&["status", "--porcelain", "src", "examples", "tests/support", "Cargo.lock", "jobs/papers/*.toml"]);
    let commit = git(&["rev-parse", "--short=12", "HEAD"]).unwrap_or_default();
    if changed.is_some_and(|changed| !changed.is_empty()) { commit + "+" } else { commit }
}

#[cfg(test)]
mod tests {
    use super::super::{PAPERS, rows};
    use super::*;

    #[test]
    fn comments_tests_and_texts_do_not_count() {
        let file = "// a comment\n\nlet x = 1; // here\nRow {\n    quote: \"one \\\n  two\",\n    claim: \"c\",\n    /// more\n  let y;\n}\n\
                    \n#[cfg(test)]\nfn helper() {}\n#[cfg(test)]\nmod tests {}\n";
        let expected = "let x = 1; // here\nRow {\nlet y;\n}\n#[cfg(test)]\nfn helper() {}\n";
        assert_eq!(code(file), expected);
        let with_attribute = file.replace("mod tests {}", "#[allow(clippy::unwrap_used)]\nmod tests {}");
        assert_eq!(code(&with_attribute), expected);
    }

    #[test]
    fn the_code_of_a_row_is_what_it_reaches() {
        let files = [
            "use a::b;\n\nconst ROWS: &[Row] = &[\n    Row {\n        id: \"one\",\n        claim: \"text\",\n        run: first,\n    },\n    Row {\n        \
             id: \"two\",\n        run: |effort| second(effort, 2),\n    },\n];\n\n/// First.\nfn first() -> Shared {\n    Shared::new(helper())\n}\n",
            "pub(super) fn second(effort: Effort, times: u64) {\n    other();\n}\n\nstruct Shared<T> {\n    x: T,\n}\n\n#[derive(Clone)]\nstruct Unused;\n\n\
             impl<T: Into<f64>> Shared<T> {\n    fn new(x: T) -> Self {\n        Self { x }\n    }\n}\n\nimpl Default for Shared<f64> {\n}\n\n\
             pub const fn helper() -> f64 {\n    LIMIT\n}\n\nconst LIMIT: f64 = 1.0;\n\nfn other() {\n    shared.first();\n    0..LIMIT\n}\n\n#[cfg(test)]\nmod tests {\n    fn first() {}\n}\n",
        ]
        .map(str::to_owned);
        let one = of_row("one", &files);
        for reached in
            ["run: first,", "Shared::new(helper())", "x: T,", "Self { x }", "impl Default", "LIMIT\n}", "LIMIT: f64 = 1.0;"]
        {
            assert!(one.contains(reached), "{reached} in {one}");
        }
        assert!(!["second", "other", "Unused", "ROWS", "use a", "mod tests"].iter().any(|not| one.contains(not)), "{one}");
        let two = of_row("two", &files);
        assert!(two.contains("fn second(") && two.contains("fn other()") && two.contains("LIMIT: f64"), "{two}");
        assert!(!two.contains("Shared"), "{two}");
    }

    #[test]
    fn every_row_reaches_its_code() {
        for paper in PAPERS {
            let harness = harness_of(paper).unwrap();
            for row in rows(paper) {
                assert!(of_row(row.id, &harness).contains("fn "), "{paper} {}", row.id);
            }
        }
    }

    #[test]
    fn a_place_that_does_not_exist_is_refused() {
        assert!(collect(Path::new("src/no_such_place"), &mut Vec::new()).is_err());
    }
}
