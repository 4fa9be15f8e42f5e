//! The documentation: commands in README and book run and print what is shown, links lead somewhere, and the reference of keys is current.
//!
//! In a block that begins with ```` ```console ````, a line `$ command` is run by bash, in a folder of the page's own, and must print the lines
//! below it, where `...` stands for any lines and `[..]` for any text within a line. A command that is shown to print `error:` must fail.

#![allow(clippy::unwrap_used, clippy::expect_used)]

use crate::harness::Cli;
use crate::launcher::watched;
use clap::CommandFactory;
use mpibayes::cli::exit_codes::EXIT_CODES;
use mpibayes::config::{Registry, reference};
use std::path::{Path, PathBuf};
use std::process::Command;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// A page: its path from the root, and its text.
struct Page {
    path: PathBuf,
    text: String,
}

fn pages() -> Vec<Page> {
    let book = std::fs::read_dir(root().join("docs/src")).unwrap().map(|entry| entry.unwrap().path());
    let mut paths: Vec<PathBuf> = book.filter(|path| path.extension().is_some_and(|extension| extension == "md")).collect();
    paths.extend(["README.md", "data/README.md", "CONTRIBUTING.md"].map(|name| root().join(name)));
    paths.sort();
    let page =
        |path: PathBuf| Page { text: std::fs::read_to_string(&path).unwrap(), path: path.strip_prefix(root()).unwrap().into() };
    paths.into_iter().map(page).collect()
}

/// A command and the lines that it is shown to print.
#[derive(Debug, PartialEq)]
struct Shown {
    line: usize,
    command: String,
    output: Vec<String>,
}

/// The commands of a page.
fn commands(text: &str) -> Vec<Shown> {
    let (mut all, mut is_console, mut continues): (Vec<Shown>, _, _) = (Vec::new(), false, false);
    for (number, line) in (1..).zip(text.lines()) {
        if let Some(language) = line.strip_prefix("```") {
            is_console = language == "console";
            continues = false;
        } else if is_console && continues {
            let last = all.last_mut().unwrap();
            last.command += &format!("\n{line}");
            continues = line.ends_with('\\');
        } else if let Some(command) = line.strip_prefix("$ ").filter(|_| is_console) {
            continues = command.ends_with('\\');
            all.push(Shown { line: number, command: command.to_owned(), output: Vec::new() });
        } else if is_console {
            all.last_mut().expect("a console block begins with a command").output.push(line.to_owned());
        }
    }
    all
}

/// Whether a line is as shown: `[..]` stands for any text, and numbers with a point or in thousands may differ by a quarter, because they
/// depend on the machine.
fn line_agrees(shown: &str, printed: &str) -> bool {
    if is_as_shown(shown.trim_end(), printed.trim_end()) {
        return true;
    }
    let (shown, printed): (Vec<&str>, Vec<&str>) = (shown.split_whitespace().collect(), printed.split_whitespace().collect());
    let number = |word: &str| {
        let is_measured = word.contains('.') || word.contains(',') || word.len() > 2;
        word.replace(',', "").parse::<f64>().ok().filter(|_| is_measured)
    };
    let is_close = |shown: &str, printed: &str| match (number(shown), number(printed)) {
        (Some(one), Some(other)) => (one - other).abs() <= 0.25 * one.abs().max(other.abs()) + 0.05,
        _ => false,
    };
    // Only a last word may stand for several.
    let is_open = shown.last() == Some(&"[..]");
    let words = shown.len() - usize::from(is_open);
    let is_long_enough = if is_open { printed.len() >= words } else { printed.len() == words };
    let word_agrees = |(shown, printed): (&&str, &&str)| is_as_shown(shown, printed) || is_close(shown, printed);
    words > 0 && is_long_enough && shown[..words].iter().zip(&printed).all(word_agrees)
}

/// Whether a text is as shown, where `[..]` stands for any text.
fn is_as_shown(shown: &str, printed: &str) -> bool {
    let Some((before, after)) = shown.split_once("[..]") else { return shown == printed };
    let Some(rest) = printed.strip_prefix(before) else { return false };
    let ends = rest.char_indices().map(|(at, _)| at).chain([rest.len()]);
    ends.into_iter().any(|at| is_as_shown(after, &rest[at..]))
}

/// Whether lines are as shown, where `...` stands for any lines.
fn lines_agree(shown: &[String], printed: &[&str]) -> bool {
    match (shown.split_first(), printed.split_first()) {
        (None, rest) => rest.is_none(),
        (Some((first, shown)), _) if first == "..." => (0..=printed.len()).any(|skipped| lines_agree(shown, &printed[skipped..])),
        (Some((first, shown)), Some((line, printed))) => line_agrees(first, line) && lines_agree(shown, printed),
        (Some(_), None) => false,
    }
}

/// Runs the commands of a page one after the other; returns what does not agree.
fn mistakes(page: &Page) -> Vec<String> {
    let cli = Cli::new();
    std::os::unix::fs::symlink(root().join("data"), cli.path("data")).unwrap();
    let mut wrong = Vec::new();
    for Shown { line, command, output } in commands(&page.text) {
        let place = format!("{}:{line}: {command}", page.path.display());
        let mut bash = Command::new("bash");
        bash.args(["-c", &format!("exec 2>&1; set -eo pipefail; {command}")]).current_dir(cli.folder());
        let program = Path::new(env!("CARGO_BIN_EXE_mpibayes")).parent().unwrap();
        bash.env("PATH", format!("{}:{}", program.display(), std::env::var("PATH").unwrap()));
        bash.env("OMPI_ALLOW_RUN_AS_ROOT", "1").env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
        bash.env("OMPI_MCA_rmaps_base_oversubscribe", "1").env("OMPI_MCA_hwloc_base_binding_policy", "none");
        bash.env("OPENBLAS_NUM_THREADS", "1");
        let ended = watched(bash).unwrap();
        let printed = ended.stdout;
        let fails = output.iter().any(|line| line.contains("error:"));
        if (ended.code == 0) == fails {
            wrong.push(format!("{place}: ended with code {}:\n{printed}", ended.code));
        }
        let printed_lines: Vec<&str> = printed.lines().collect();
        let shown: Vec<String> = output.iter().rev().skip_while(|line| line.is_empty()).cloned().collect();
        let shown: Vec<String> = shown.into_iter().rev().collect();
        if !shown.is_empty() && !lines_agree(&shown, &printed_lines) {
            wrong.push(format!("{place}: printed\n{printed}"));
        }
    }
    wrong
}

/// Every page runs, and a page whose output is wrong does not pass.
#[test]
fn commands_run_and_print_what_is_shown() {
    let (mut wrong, mut count) = (Vec::new(), 0);
    for page in pages() {
        count += commands(&page.text).len();
        wrong.extend(mistakes(&page));
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
    assert!(count >= 30, "only {count} commands were found");
    let control =
        |output: &str| Page { path: "control".into(), text: format!("```console\n$ mpibayes --version\n{output}\n```\n") };
    assert!(mistakes(&control("mpibayes 0.[..]")).is_empty());
    assert_eq!(mistakes(&control("mpibayes 7[..]")).len(), 1);
    assert_eq!(mistakes(&control("error: mpibayes 0.[..]")).len(), 2);
}

#[test]
fn shown_lines_agree_with_printed_ones_up_to_gaps() {
    for (shown, printed, agree) in [
        ("a b", "a b  ", true),
        ("a b", "a bc", false),
        ("a [..] c", "a bb c", true),
        ("[..]c", "c a c", true),
        ("a[..]", "b", false),
        ("x [..] s: y", "x 12.3 s: z", false),
        ("age  0.50  3032", "age 0.4911  2990", true),
        ("age  0.50  3032", "age 0.91  2990", false),
        ("age  0.50  3032", "sex 0.50  3032", false),
        ("dsvgd 0.85 * [..]", "dsvgd 0.84 * 15 0.6 s", true),
    ] {
        assert_eq!(line_agrees(shown, printed), agree, "{shown:?} {printed:?}");
    }
    let shown = ["a", "...", "c"].map(str::to_owned);
    assert!(lines_agree(&shown, &["a", "b", "b", "c"]) && lines_agree(&shown, &["a", "c"]));
    assert!(!lines_agree(&shown, &["a", "b"]) && !lines_agree(&shown[..1], &["a", "b"]));
    let text = "```console\n$ one \\\n  two\nout\n$ three\n```\n```sh\n$ no\n```\n";
    let found: Vec<(usize, String, usize)> =
        commands(text).into_iter().map(|shown| (shown.line, shown.command, shown.output.len())).collect();
    assert_eq!(found, [(2, "one \\\n  two".into(), 1), (5, "three".into(), 0)]);
}

/// The words of a command line of a shell, up to a pipe, a redirection, another command or a comment.
fn words(line: &str) -> Vec<String> {
    let (mut words, mut word, mut quote): (Vec<String>, Option<String>, Option<char>) = (Vec::new(), None, None);
    for c in line.chars() {
        match (c, quote) {
            (c, Some(open)) if c == open => quote = None,
            ('\'' | '"', None) => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            ('|' | '>' | ';' | '&', None) => break,
            ('#', None) if word.is_none() => break,
            (' ' | '\t', None) => words.extend(word.take()),
            (c, _) => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    words
}

/// What is wrong with the arguments of mpibayes in blocks of a page that are not run.
fn wrong_arguments(page: &Page) -> Vec<String> {
    let (mut wrong, mut is_shell, mut command) = (Vec::new(), false, String::new());
    for (number, line) in (1..).zip(page.text.lines()) {
        if let Some(language) = line.strip_prefix("```") {
            is_shell = language == "sh";
            continue;
        }
        command.push_str(line.trim_end_matches('\\'));
        if !is_shell || !line.ends_with('\\') {
            let words = words(&std::mem::take(&mut command));
            // After a launcher, its options and variables.
            let from = words.iter().position(|word| word == "mpibayes").filter(|&at| {
                is_shell
                    && words[..at].iter().all(|word| !["bash", "sbatch", "cargo", "man", "cd", "module"].contains(&word.as_str()))
            });
            if let Some(Err(error)) = from.map(|from| mpibayes::cli::Cli::command().try_get_matches_from(&words[from..]))
                && error.use_stderr()
            {
                wrong.push(format!("{}:{number}: {line}\n{error}", page.path.display()));
            }
        }
    }
    wrong
}

#[test]
fn commands_that_are_not_run_have_valid_arguments() {
    let pages = pages();
    let wrong: Vec<String> = pages.iter().flat_map(wrong_arguments).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    // The control: a page with an option that does not exist, after a launcher and over two lines.
    let text = "```sh\nmpirun -n 2 mpibayes run a.toml \\\n  --no-such-option # remark\nmpibayes run 'b c.toml' | tail\n```\n";
    assert_eq!(wrong_arguments(&Page { path: "made-up.md".into(), text: text.into() }).len(), 1);
}

/// The exit codes of the program are those of the book.
#[test]
fn the_book_lists_the_exit_codes() {
    let text = std::fs::read_to_string(root().join("docs/src/cluster.md")).unwrap();
    for (code, meaning) in EXIT_CODES {
        let row = format!("| {code} | {} |", meaning.replace("--strict", "`--strict`"));
        assert!(text.contains(&row), "{row}");
    }
}

/// The anchors of a page, as GitHub and mdBook make them.
fn anchors(text: &str) -> Vec<String> {
    let mut is_code = false;
    let headings = text.lines().filter(|line| {
        is_code ^= line.starts_with("```");
        !is_code && line.starts_with('#')
    });
    let anchor = |heading: &str| -> String {
        let words = heading.trim_start_matches('#').trim().to_lowercase();
        words.chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c)).map(|c| if c == ' ' { '-' } else { c }).collect()
    };
    headings.map(anchor).collect()
}

/// Links of a page that lead nowhere.
fn dead_links(page: &Page) -> Vec<String> {
    let text: String = page.text.split("```").step_by(2).collect();
    let targets = text.match_indices("](").filter_map(|(at, _)| text[at + 2..].split(')').next().map(str::to_owned));
    let is_dead = |target: &String| {
        if target.starts_with("http://") || target.starts_with("https://") {
            return false;
        }
        let (file, anchor) = target.split_once('#').unwrap_or((target, ""));
        let path = match file {
            "" => root().join(&page.path),
            file => root().join(page.path.parent().unwrap()).join(file),
        };
        let leads = |path: &Path| {
            anchor.is_empty() || anchors(&std::fs::read_to_string(path).unwrap_or_default()).iter().any(|own| own == anchor)
        };
        !path.exists() || !leads(&path)
    };
    targets.filter(is_dead).map(|target| format!("{}: {target} leads nowhere", page.path.display())).collect()
}

#[test]
fn links_lead_somewhere() {
    let dead: Vec<String> = pages().iter().flat_map(dead_links).collect();
    assert!(dead.is_empty(), "\n{}", dead.join("\n"));
    let control =
        Page { path: "README.md".into(), text: "[a](no.md) [b](#none) [c](data/README.md) [d](https://example.org)".into() };
    assert_eq!(dead_links(&control).len(), 2);
    // Every page of the book is in its table of contents.
    let summary = std::fs::read_to_string(root().join("docs/src/SUMMARY.md")).unwrap();
    for page in pages().iter().filter(|page| page.path.starts_with("docs/src") && !page.path.ends_with("SUMMARY.md")) {
        let name = page.path.file_name().unwrap().to_str().unwrap();
        assert!(summary.contains(&format!("({name})")), "SUMMARY.md lacks {name}");
    }
}

/// To write it anew: `MPIBAYES_WRITE_REFERENCE=1 cargo test --release --test it book::`.
#[test]
fn the_reference_of_keys_is_that_of_the_program() {
    let path = root().join("docs/src/reference-keys.md");
    let current = reference(&Registry::default()).unwrap();
    if std::env::var_os("MPIBAYES_WRITE_REFERENCE").is_some() {
        std::fs::write(&path, &current).unwrap();
    }
    let stored = std::fs::read_to_string(&path).unwrap();
    assert!(stored == current, "docs/src/reference-keys.md is out of date: write it anew, see this test");
    assert!(current.contains("`pointwise_rows`") && current.matches("### ").count() > 30, "{current}");
}

#[test]
fn the_front_page_is_short() {
    let size = std::fs::metadata(root().join("README.md")).unwrap().len();
    assert!(size <= 10_240, "README.md has {size} bytes; details belong into the book");
}
