//! The rule that no files of one room import each other in a circle, directly or through others.

use super::{Source, repository};
use std::collections::{BTreeMap, BTreeSet};

/// Rooms that still have circles.
const EXCEPTIONS: [&str; 0] = [];

/// An imported path, as segments.
type Segments = Vec<String>;

/// A file's module, and what it imports.
#[derive(Default)]
struct Module {
    path: String,
    /// Names that the module imports or exports again, with their paths.
    names: BTreeMap<String, Segments>,
    /// Paths that its code uses, apart from those that it only exports again from its own submodules.
    used: Vec<Segments>,
}

/// All modules of `src/` by name, such as `cluster::mpi::world`.
type Modules = BTreeMap<String, Module>;

fn name_of(path: &str) -> Option<String> {
    let inside = path.strip_prefix("src/")?.strip_suffix(".rs")?;
    let inside = inside.strip_suffix("/mod").unwrap_or(inside);
    let own = inside.rsplit('/').next()?;
    (!["lib", "main", "tests"].contains(&own)).then(|| inside.replace('/', "::"))
}

/// The paths of a `use` tree.
fn expand(prefix: &str, tree: &str, paths: &mut Vec<String>) {
    let tree = tree.trim();
    let Some((head, rest)) = tree.split_once('{') else {
        if !tree.is_empty() {
            paths.push(format!("{prefix}{tree}"));
        }
        return;
    };
    let list = rest.strip_suffix('}').unwrap_or(rest);
    let (mut depth, mut start) = (0, 0);
    for (at, c) in list.char_indices().chain([(list.len(), ',')]) {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => {
                expand(&format!("{prefix}{}", head.trim()), &list[start..at], paths);
                start = at + 1;
            }
            _ => {}
        }
    }
}

/// A path from the root of the crate, if it is one of this crate.
fn absolute(module: &str, path: &str, modules: &BTreeSet<String>) -> Option<Segments> {
    let mut base: Segments = module.split("::").map(str::to_owned).collect();
    let mut segments = path.split("::").peekable();
    match segments.next()? {
        "crate" => base.clear(),
        "self" => {}
        "super" => drop(base.pop()),
        child if modules.contains(&format!("{module}::{child}")) => base.push(child.into()),
        _ => return None,
    }
    while segments.next_if_eq(&"super").is_some() {
        base.pop();
    }
    base.extend(segments.map(str::to_owned));
    Some(base)
}

/// Paths in code that begin with `crate`, `self`, `super` or a submodule.
fn inline_paths(code: &str) -> impl Iterator<Item = &str> {
    code.split(|c: char| !(c.is_alphanumeric() || "_:".contains(c)))
        .filter(|word| word.contains("::"))
        .map(|word| word.trim_end_matches(':'))
}

fn modules(files: &[Source]) -> Modules {
    let names: BTreeSet<String> = files.iter().filter_map(|file| name_of(&file.path)).collect();
    let mut modules = Modules::new();
    for file in files {
        let Some(name) = name_of(&file.path) else { continue };
        let code: Vec<String> = file.code().into_iter().map(|(_, line)| line).collect();
        let mut module = Module { path: file.path.clone(), ..Module::default() };
        let mut add = |path: &str, only_exported: bool| {
            let (path, alias) = path.split_once(" as ").unwrap_or((path, path.rsplit("::").next().unwrap_or(path)));
            let Some(segments) = absolute(&name, path, &names) else { return };
            let is_inside = segments.join("::").starts_with(&format!("{name}::"));
            module.names.insert(alias.trim().into(), segments.clone());
            if !(only_exported && is_inside) {
                module.used.push(segments);
            }
        };
        let mut rest = String::new();
        // Statements end in a semicolon: a `use` is everything behind the last `}`, `]` or `{` before it that begins a line.
        for statement in code.join("\n").split_inclusive(';') {
            let start = statement.match_indices("use ").map(|(at, _)| at).find(|&at| {
                let line = &statement[statement[..at].rfind('\n').map_or(0, |end| end + 1)..at];
                line.trim().is_empty() || line.trim_start().starts_with("pub")
            });
            let Some(start) = start else {
                rest += statement;
                continue;
            };
            let is_public =
                statement[..start].trim_end().rsplit('\n').next().is_some_and(|line| line.trim_start().starts_with("pub"));
            rest += &statement[..start];
            let mut paths = Vec::new();
            expand("", statement[start + 4..].trim_end_matches(';'), &mut paths);
            paths.iter().for_each(|path| add(path, is_public));
        }
        let used = inline_paths(&rest).filter_map(|path| absolute(&name, path, &names));
        module.used.extend(used);
        modules.insert(name, module);
    }
    modules
}

/// The module whose file defines what a path names.
fn definition(modules: &Modules, segments: &[String], depth: usize) -> Option<String> {
    let mut at = String::new();
    for (place, segment) in segments.iter().enumerate() {
        let next = if at.is_empty() { segment.clone() } else { format!("{at}::{segment}") };
        if modules.contains_key(&next) {
            at = next;
            continue;
        }
        if let Some(target) = modules.get(&at).and_then(|module| module.names.get(segment)).filter(|_| depth < 10) {
            let target: Vec<String> = target.iter().chain(&segments[place + 1..]).cloned().collect();
            return definition(modules, &target, depth + 1);
        }
        break;
    }
    modules.contains_key(&at).then_some(at)
}

/// For each room the files that lie on circles.
fn circles(files: &[Source]) -> BTreeMap<String, BTreeSet<String>> {
    let modules = modules(files);
    let room = |name: &str| name.split("::").next().unwrap_or(name).to_owned();
    let uses = |name: &String| -> BTreeSet<String> {
        let found = modules[name].used.iter().filter_map(|segments| definition(&modules, segments, 0));
        found.filter(|other| other != name && room(other) == room(name)).collect()
    };
    let arrows: BTreeMap<&String, BTreeSet<String>> = modules.keys().map(|name| (name, uses(name))).collect();
    let mut circles: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for name in modules.keys() {
        let (mut reached, mut stack) = (BTreeSet::new(), vec![name.clone()]);
        while let Some(at) = stack.pop() {
            stack.extend(arrows[&at].iter().filter(|next| reached.insert((*next).clone())).cloned());
        }
        if reached.contains(name) {
            circles.entry(room(name)).or_default().insert(modules[name].path.clone());
        }
    }
    circles
}

#[test]
fn files_of_a_room_do_not_import_each_other_in_a_circle() {
    let found: Vec<_> = circles(&repository()).into_iter().filter(|(room, _)| !EXCEPTIONS.contains(&room.as_str())).collect();
    assert!(found.is_empty(), "files that import each other in a circle: {found:#?}");
    let room = |first: &str, second: &str, third: &str| {
        let files = [
            Source::made_up("src/cellar/mod.rs", "mod a;\nmod b;\nmod c;\npub use a::A;\n"),
            Source::made_up("src/cellar/a.rs", first),
            Source::made_up("src/cellar/b.rs", second),
            Source::made_up("src/cellar/c.rs", third),
        ];
        circles(&files).remove("cellar").unwrap_or_default().len()
    };
    assert_eq!(
        room("use super::b::B;\npub struct A;", "use super::c::{C, D};\n", "use crate::cellar::A;\n"),
        3,
        "through `pub use`"
    );
    assert_eq!(room("use super::{b::B, c};\n", "fn f() -> super::a::A {}\n", ""), 2, "without `use`");
    assert_eq!(room("use super::b::B;\n", "use super::helper;\n", ""), 0);
    assert_eq!(
        room("use super::{b::B, c::C};\n", "use super::c::C;\n", "//! [`super::a::A`]\n#[cfg(test)]\nuse super::a::A;\n"),
        0
    );
}
