//! Counts what passed: a line for each group of cases, and each failure by name.

use std::path::Path;
use std::time::Instant;

/// So many failures of a group are shown: one cause often fails many cases.
const SHOWN: usize = 12;

pub struct Tally {
    word: String,
    folder: tempfile::TempDir,
    passed: usize,
    failed: usize,
}

/// The cases of one group.
pub struct Group<'a> {
    pub folder: &'a Path,
    passed: usize,
    failures: Vec<String>,
    figure: Option<String>,
}

impl Tally {
    /// For the groups whose names contain `word`.
    pub fn new(word: &str) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        Self { word: word.into(), folder, passed: 0, failed: 0 }
    }

    /// Runs a group of cases, unless it is not wanted.
    pub fn group(&mut self, name: &str, cases: impl FnOnce(&mut Group)) {
        if !name.contains(&self.word) {
            return;
        }
        let since = Instant::now();
        let mut group = Group { folder: self.folder.path(), passed: 0, failures: Vec::new(), figure: None };
        cases(&mut group);
        let (passed, failed) = (group.passed, group.failures.len());
        let word = if failed == 0 { "ok    " } else { "FAILED" };
        let figure = group.figure.map(|figure| format!("; {figure}")).unwrap_or_default();
        println!("{word} {name}: {passed} of {} in {:.1} s{figure}", passed + failed, since.elapsed().as_secs_f64());
        for failure in group.failures.iter().take(SHOWN) {
            println!("       {}", failure.trim_end().replace('\n', "\n         "));
        }
        if failed > SHOWN {
            println!("       and {} more", failed - SHOWN);
        }
        self.passed += passed;
        self.failed += failed;
    }

    /// Prints the sums; the exit code. A suite that ran nothing has not passed.
    pub fn close(self) -> i32 {
        println!("{} passed, {} failed", self.passed, self.failed);
        i32::from(self.failed > 0 || self.passed == 0)
    }
}

impl Group<'_> {
    /// One case.
    pub fn check(&mut self, case: impl std::fmt::Display, result: Result<(), String>) {
        match result {
            Ok(()) => self.passed += 1,
            Err(cause) => self.failures.push(format!("{case}: {cause}")),
        }
    }

    /// A measured figure, to be printed behind the group's name.
    pub fn figure(&mut self, figure: String) {
        self.figure = Some(figure);
    }
}

/// An error that shows both, unless they are equal.
pub fn same<T: PartialEq + std::fmt::Debug>(what: &str, got: &T, expected: &T) -> Result<(), String> {
    if got == expected { Ok(()) } else { Err(format!("{what} {got:?}, expected {expected:?}")) }
}
