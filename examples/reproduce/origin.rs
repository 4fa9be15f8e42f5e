//! What made a result: the commit, and a hash of the sources and settings.

use super::Row;
use super::dsvgd::runs::COMPARISON_FILES;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The code that computes results: not that of result files, checkpoints, pictures and the command line.
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
    "examples/reproduce/judge.rs",
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
    /// A hash of the code and of `Cargo.lock`. Lines of comments, tests at the end of files and texts of rows do not count.
    sources: String,
    /// A hash of the run files.
    settings: String,
}

impl Origin {
    /// What each row of a paper would be made from now. The data sets are not looked at.
    pub fn of_rows(paper: &str, rows: &[Row]) -> io::Result<Vec<Self>> {
        let commit = commit();
        rows.iter().map(|row| Self::of(paper, row, &commit)).collect()
    }

    fn of(paper: &str, row: &Row, commit: &str) -> io::Result<Self> {
        let mut files = Vec::new();
        let harness = Path::new("examples/reproduce").join(paper.replace('-', "_"));
        let of_paper = METHODS.iter().filter(|(of, _)| *of == paper).flat_map(|(_, rooms)| *rooms);
        let methods = of_paper.map(|room| Path::new("src/methods").join(room));
        SOURCES.iter().map(PathBuf::from).chain(methods).chain([harness]).try_for_each(|place| collect(&place, &mut files))?;
        files.retain(|file| file != Path::new(OF_ONE_ROW.0) || row.id == OF_ONE_ROW.1);
        files.sort();
        files.dedup();
        let mut sources = blake3::Hasher::new();
        sources.update(&fs::read("Cargo.lock")?);
        for file in files {
            sources.update(code(&fs::read_to_string(&file)?).as_bytes());
        }
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

/// The beginnings of texts that reports show.
const TEXTS: [&str; 6] = ["quote: \"", "claim: \"", "differs: \"", "const DIFFERS", "const FLAT", "pub const LEGEND"];

/// The code before its tests, without comments, empty lines and the texts of rows.
fn code(file: &str) -> String {
    // Attributes may stand between these two lines.
    let is_tests = |place: usize| {
        let mut rest = file[place..].lines().skip_while(|line| line.is_empty() || line.starts_with("#["));
        rest.next().is_some_and(|line| line.starts_with("mod tests {"))
    };
    let tests = file.match_indices("\n#[cfg(test)]\n").find(|(place, _)| is_tests(*place));
    let file = &file[..tests.map_or(file.len(), |(place, _)| place)];
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
    fn a_place_that_does_not_exist_is_refused() {
        assert!(collect(Path::new("src/no_such_place"), &mut Vec::new()).is_err());
    }
}
