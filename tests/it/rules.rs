//! The rules of the source code as tests, each with an example of a violation that it must find.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod circles;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// A text file of the repository: its path from the root, and its content.
struct Source {
    path: String,
    text: String,
}

impl Source {
    fn made_up(path: &str, text: &str) -> Self {
        Self { path: path.into(), text: text.into() }
    }

    fn is_rust(&self) -> bool {
        self.path.ends_with(".rs")
    }

    /// The room of `src/` that the file belongs to.
    fn room(&self) -> Option<&str> {
        let inside = self.path.strip_prefix("src/")?;
        inside.split('/').next().map(|room| room.strip_suffix(".rs").unwrap_or(room))
    }

    /// Numbered lines of code: without comments and doc comments, and without items that exist for tests only.
    fn code(&self) -> Vec<(usize, String)> {
        if self.path.starts_with("src/") && (self.path.ends_with("/tests.rs") || self.path.contains("/tests/")) {
            return Vec::new();
        }
        let mut lines = (1..).zip(self.text.lines());
        let mut code = Vec::new();
        while let Some((number, line)) = lines.next() {
            if line.trim() == "#[cfg(test)]" {
                // rustfmt puts the end of an item at its own indentation, and ends those without a body in a semicolon.
                let indent = &line[..line.len() - line.trim_start().len()];
                for (_, line) in lines.by_ref() {
                    let own = line.strip_prefix(indent).is_some_and(|rest| !rest.starts_with(' '));
                    if own && (line.ends_with(';') || line.trim() == "}") {
                        break;
                    }
                }
                continue;
            }
            let line = match line.find("//") {
                // A web address in a string is no comment.
                Some(at) if !line[..at].ends_with(':') => &line[..at],
                _ => line,
            };
            code.push((number, line.to_owned()));
        }
        code
    }
}

/// Every text file that belongs to the repository.
fn repository() -> Vec<Source> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut found = Vec::new();
    let mut folders = vec![PathBuf::new()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(root.join(&folder)).unwrap() {
            let entry = entry.unwrap();
            let path = folder.join(entry.file_name());
            let name = path.to_str().unwrap().to_owned();
            let kind = entry.file_type().unwrap();
            if kind.is_dir()
                && !["target", ".git", "runs", "datasets", "fuzz/target", "fuzz/corpus", "fuzz/artifacts", "fuzz/seeds"]
                    .contains(&name.as_str())
            {
                folders.push(path);
            } else if kind.is_file()
                && ![".git", "Cargo.lock", "fuzz/Cargo.lock"].contains(&name.as_str())
                && let Ok(text) = std::fs::read_to_string(root.join(&path))
            {
                found.push(Source { path: name, text });
            }
        }
    }
    found.sort_by(|a, b| a.path.cmp(&b.path));
    assert!(found.iter().any(|file| file.path == "src/cluster/mpi/mod.rs"), "the files of the repository are not found");
    found
}

/// Fails with the violations of a rule over the whole repository.
fn holds(rule: impl Fn(&Source) -> Vec<String>) {
    let violations: Vec<String> = repository().iter().flat_map(&rule).collect();
    assert!(violations.is_empty(), "\n{}", violations.join("\n"));
}

/// Whether `word` occurs in a line as a word or as the first segment of a path, also after the leading `::`.
fn occurs(line: &str, word: &str) -> bool {
    line.match_indices(word).any(|(at, _)| {
        let before = line[..at].strip_suffix("::").unwrap_or(&line[..at]).chars().next_back();
        !before.is_some_and(|c| c.is_alphanumeric() || "_:>".contains(c))
    })
}

/// Uses of a library outside of its places: in a path (`name::`) or as `use name`.
fn confined(file: &Source, library: &str, places: &[&str]) -> Vec<String> {
    // This file quotes violations.
    if !file.is_rust() || file.path == "tests/it/rules.rs" || places.iter().any(|place| file.path.starts_with(place)) {
        return Vec::new();
    }
    let imports = |line: &str| {
        let rest = line.trim().strip_prefix("use ").map(|rest| rest.strip_prefix("::").unwrap_or(rest));
        let rest = rest.and_then(|rest| rest.strip_prefix(library));
        rest.is_some_and(|rest| rest.starts_with([';', ' ']))
    };
    file.code()
        .into_iter()
        .filter(|(_, line)| occurs(line, &format!("{library}::")) || imports(line))
        .map(|(number, line)| format!("{}:{number}: {library} has no place here: {}", file.path, line.trim()))
        .collect()
}

fn mpi_is_confined(file: &Source) -> Vec<String> {
    // The benchmark measures the driver beside MPI itself.
    confined(file, "mpi", &["src/cluster/mpi/", "benches/messages.rs"])
}

fn hdf5_is_confined(file: &Source) -> Vec<String> {
    confined(file, "hdf5", &["src/data/", "src/results/"])
}

#[test]
fn mpi_appears_in_its_driver_only() {
    holds(mpi_is_confined);
    for violation in [
        "use mpi::topology::Communicator;",
        "    mpi::initialize();",
        "use mpi;",
        "use mpi as m;",
        "fn f(c: &mpi::X) {}",
        "use ::mpi::ffi;",
        "use ::mpi;",
        "    let x = ::mpi::initialize();",
    ] {
        assert_eq!(mpi_is_confined(&Source::made_up("src/methods/x.rs", violation)).len(), 1, "{violation}");
        assert!(mpi_is_confined(&Source::made_up("src/cluster/mpi/x.rs", violation)).is_empty());
    }
    for fine in
        ["use crate::cluster::mpi::World;", "<A<B>>::mpi::f()", "// mpi::run", "#[cfg(test)]\nmod tests {\n    use mpi::x;\n}"]
    {
        assert!(mpi_is_confined(&Source::made_up("src/cli/x.rs", fine)).is_empty(), "{fine}");
    }
}

#[test]
fn hdf5_appears_in_data_and_results_only() {
    holds(hdf5_is_confined);
    for violation in ["use hdf5::File;", "fn f(file: &::hdf5::File) {}"] {
        assert_eq!(hdf5_is_confined(&Source::made_up("src/cli/x.rs", violation)).len(), 1, "{violation}");
        assert!(hdf5_is_confined(&Source::made_up("src/results/x.rs", violation)).is_empty());
    }
}

/// Errors of the library have types; only the command line, which prints them, mixes them.
fn anyhow_is_confined(file: &Source) -> Vec<String> {
    confined(file, "anyhow", &["src/main.rs", "src/cli/", "examples/reproduce/main.rs", "examples/reproduce/kept.rs"])
}

#[test]
fn anyhow_appears_on_the_command_line_only() {
    holds(anyhow_is_confined);
    for violation in ["use anyhow::Context as _;", "fn f() -> anyhow::Result<()> {", "    ::anyhow::bail!(\"x\")", "use anyhow;"]
    {
        assert_eq!(anyhow_is_confined(&Source::made_up("src/data/x.rs", violation)).len(), 1, "{violation}");
        assert!(anyhow_is_confined(&Source::made_up("src/cli/x.rs", violation)).is_empty());
    }
}

/// The file must begin with one sentence that says what it is for.
fn begins_with_its_purpose(file: &Source) -> Vec<String> {
    if !file.is_rust() {
        return Vec::new();
    }
    let docs = file.text.lines().map_while(|line| line.strip_prefix("//!"));
    let sentence: Vec<&str> = docs.map(str::trim).take_while(|line| !line.is_empty()).collect();
    let sentence = sentence.join(" ");
    let full_stops = sentence.match_indices(". ").filter(|(at, _)| sentence[at + 2..].starts_with(char::is_uppercase)).count();
    if sentence.ends_with('.') && full_stops == 0 {
        return Vec::new();
    }
    vec![format!("{}: does not begin with one `//!` sentence that says what it is for: {sentence:?}", file.path)]
}

#[test]
fn every_file_begins_with_its_purpose_in_one_sentence() {
    holds(begins_with_its_purpose);
    for violation in ["", "use std::fs;\n", "/// Wrong kind.\n", "//! No end\n", "//! One. Two.\n", "//! One\n//!\n//! more.\n"] {
        assert_eq!(begins_with_its_purpose(&Source::made_up("src/x.rs", violation)).len(), 1, "{violation:?}");
    }
    for fine in ["//! Says its job, e.g. this.\n//!\n//! More. And more\n", "//! Over\n//! two lines.\nuse x;\n"] {
        assert!(begins_with_its_purpose(&Source::made_up("src/x.rs", fine)).is_empty(), "{fine:?}");
    }
}

/// Which rooms a room may use: read from the table of `src/lib.rs`.
type Map = BTreeMap<String, Vec<String>>;

fn names(cell: &str) -> Vec<String> {
    cell.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

fn map(lib: &str) -> Map {
    let rows: Vec<(String, String)> = lib
        .lines()
        .filter_map(|line| line.strip_prefix("//! | [`")?.split_once('`'))
        .map(|(room, rest)| {
            (room.to_owned(), rest.trim_end().trim_end_matches('|').rsplit('|').next().unwrap_or("").trim().to_owned())
        })
        .collect();
    let rooms: Vec<String> = rows.iter().map(|(room, _)| room.clone()).collect();
    let allowed = |cell: &str| match cell {
        "everything" => rooms.clone(),
        "nothing" => Vec::new(),
        cell if cell.starts_with("everything but ") => {
            let not = names(cell);
            rooms.iter().filter(|room| !not.contains(room)).cloned().collect()
        }
        cell => names(cell),
    };
    rows.iter().map(|(room, cell)| (room.clone(), allowed(cell))).collect()
}

/// The rooms that a line of code names: `crate::room`, or each of `crate::{...}`.
fn rooms_in(code: &str) -> Vec<String> {
    let mut rooms = Vec::new();
    for (at, found) in code.match_indices("crate::") {
        let rest = &code[at + found.len()..];
        let first = |text: &str| text.trim_start().chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect::<String>();
        let Some(list) = rest.strip_prefix('{') else {
            rooms.push(first(rest));
            continue;
        };
        let mut depth = 1;
        let mut start = 0;
        for (at, c) in list.char_indices() {
            match c {
                '{' => depth += 1,
                '}' => depth -= 1,
                _ => {}
            }
            if depth == 0 || (depth == 1 && c == ',') {
                rooms.push(first(&list[start..at]));
                start = at + 1;
            }
            if depth == 0 {
                break;
            }
        }
    }
    rooms.retain(|room| !room.is_empty());
    rooms
}

fn keeps_to_the_map(file: &Source, map: &Map) -> Vec<String> {
    let Some(room) = file.room().filter(|room| file.is_rust() && !["lib", "main"].contains(room)) else { return Vec::new() };
    let Some(allowed) = map.get(room) else {
        return vec![format!("{}: the table of src/lib.rs has no room `{room}`", file.path)];
    };
    let code: Vec<String> = file.code().into_iter().map(|(_, line)| line).collect();
    rooms_in(&code.join("\n"))
        .into_iter()
        .filter(|used| used != room && map.contains_key(used) && !allowed.contains(used))
        .map(|used| format!("{}: `{room}` may not use `{used}`", file.path))
        .collect()
}

#[test]
fn modules_use_only_what_the_table_of_lib_rs_allows() {
    let files = repository();
    let lib = &files.iter().find(|file| file.path == "src/lib.rs").unwrap().text;
    let map = map(lib);
    for module in lib.lines().filter_map(|line| line.strip_prefix("pub mod ")?.strip_suffix(';')) {
        assert!(map.contains_key(module), "the table of src/lib.rs lacks `{module}`");
    }
    assert_eq!(map["random"], ["number"]);
    assert!(map["number"].is_empty() && map["cli"].contains(&"methods".to_owned()));
    assert!(map["config"].contains(&"methods".to_owned()) && !map["config"].contains(&"cli".to_owned()));
    holds(|file| keeps_to_the_map(file, &map));
    for violation in
        ["use crate::methods::X;", "use crate::{\n    number::{Real, X},\n    cli,\n};", "fn f() { crate::data::x() }"]
    {
        assert_eq!(keeps_to_the_map(&Source::made_up("src/kernels/x.rs", violation), &map).len(), 1, "{violation}");
    }
    for fine in ["use crate::{number::Real, vector::exp};", "use crate::kernels::y;", "//! [`crate::methods`]"] {
        assert!(keeps_to_the_map(&Source::made_up("src/kernels/x.rs", fine), &map).is_empty(), "{fine}");
    }
    assert_eq!(keeps_to_the_map(&Source::made_up("src/cellar/x.rs", ""), &map).len(), 1);
}

fn does_not_unwrap(file: &Source) -> Vec<String> {
    if !file.is_rust() || !file.path.starts_with("src/") {
        return Vec::new();
    }
    file.code()
        .into_iter()
        .filter(|(_, line)| line.contains(".unwrap()") || line.contains(".expect("))
        .map(|(number, line)| format!("{}:{number}: unwraps: {}", file.path, line.trim()))
        .collect()
}

#[test]
fn nothing_is_unwrapped_outside_tests() {
    holds(does_not_unwrap);
    let tests = "#[cfg(test)]\n#[allow(clippy::x)]\nmod tests {\n    fn f() {\n        x.unwrap();\n    }\n}\n";
    let one = "    #[cfg(test)]\n    use a::b;\n";
    for (text, violations) in [
        ("fn f() { x.unwrap(); }\n", 1),
        ("fn f() { x.expect(\"y\"); }\n", 1),
        ("/// x.unwrap()\nfn f() { x.unwrap_or(1) }\n", 0),
        (tests, 0),
        (&format!("{tests}fn g() {{ x.unwrap() }}\n"), 1),
        (&format!("{one}    fn g() {{ x.unwrap() }}\n"), 1),
    ] {
        assert_eq!(does_not_unwrap(&Source::made_up("src/x.rs", text)).len(), violations, "{text}");
    }
}

/// Lines with one of these words, unless it is part of a longer word or path.
fn lines_with(file: &Source, words: &[&str], what: &str) -> Vec<String> {
    let offends = |line: &str| {
        words.iter().any(|word| {
            line.match_indices(word)
                .any(|(at, _)| !line[..at].chars().next_back().is_some_and(|c| c.is_alphanumeric() || "_.-/}".contains(c)))
        })
    };
    let lines = (1..).zip(file.text.lines()).filter(|(_, line)| offends(line));
    lines.map(|(number, line)| format!("{}:{number}: {what}: {}", file.path, line.trim())).collect()
}

/// Absolute paths of some machine. Their strings are in two pieces, or this file would violate the rule.
fn has_no_machine_paths(file: &Source) -> Vec<String> {
    const PLACES: [&str; 7] = [
        concat!("/ho", "me/"),
        concat!("/ro", "ot/"),
        concat!("/Us", "ers/"),
        concat!("/wo", "rk/"),
        concat!("/fa", "rm/"),
        concat!("/t", "mp/"),
        concat!("/scr", "atch/"),
    ];
    lines_with(file, &PLACES, "a path of one machine")
}

#[test]
fn no_file_contains_a_path_of_one_machine() {
    holds(has_no_machine_paths);
    let violation = concat!("open(\"/ho", "me/me/data.h5\")");
    assert_eq!(has_no_machine_paths(&Source::made_up("jobs/x.sh", violation)).len(), 1);
    let fine = concat!("https://example.org/ho", "me/ and $DIR/ho", "me/ and ./t", "mp/x");
    assert!(has_no_machine_paths(&Source::made_up("README.md", fine)).is_empty());
}

fn has_no_loose_ends(file: &Source) -> Vec<String> {
    const MARKS: [&str; 5] =
        [concat!("TO", "DO"), concat!("FIX", "ME"), concat!("XX", "X:"), concat!("todo", "!("), concat!("unimplemented", "!(")];
    lines_with(file, &MARKS, "a loose end")
}

#[test]
fn no_loose_ends_are_left() {
    holds(has_no_loose_ends);
    for violation in [concat!("// TO", "DO: later"), concat!("    todo", "!()"), concat!("# FIX", "ME")] {
        assert_eq!(has_no_loose_ends(&Source::made_up("src/x.rs", violation)).len(), 1, "{violation}");
    }
}

/// The part of a text between two lines.
fn between<'a>(text: &'a str, begin: &str, end: &str) -> Option<&'a str> {
    let start = text.find(begin)? + begin.len();
    Some(text[start..start + text[start..].find(end)?].trim())
}

/// Whether the book shows the listing of the example as it is.
fn shows_the_listing(guide: &str, example: &str) -> bool {
    let listing = between(example, "// listing: begin\n", "// listing: end\n").expect("the example has a listing");
    between(guide, "```rust,ignore\n", "\n```").is_some_and(|shown| shown == listing)
}

#[test]
fn the_listing_of_the_guide_is_the_compiled_example() {
    let files = repository();
    let text = |path: &str| &files.iter().find(|file| file.path == path).expect(path).text;
    let (guide, example) = (text("docs/src/tutorial-method.md"), text("examples/fedprox.rs"));
    assert!(shows_the_listing(guide, example), "copy the listing of examples/fedprox.rs into docs/src/tutorial-method.md");
    assert!(!shows_the_listing(&guide.replacen("weight /= rows", "weight *= rows", 1), example));
}
