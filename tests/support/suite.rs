//! Test suites on libtest-mimic: each test checks many cases, and a failure lists the failed cases by name.

use libtest_mimic::{Arguments, Failed, Trial};
use std::path::Path;

/// The most failed cases that a test lists: one cause often fails many.
const SHOWN: usize = 12;

/// Tests that the standard options of `cargo test` select and run.
#[derive(Default)]
pub struct Suite {
    tests: Vec<Trial>,
}

/// The cases of one test.
pub struct Group<'a> {
    /// A temporary folder of this test.
    pub folder: &'a Path,
    passed: usize,
    failures: Vec<String>,
}

impl Suite {
    /// Adds a test.
    pub fn test(&mut self, name: impl Into<String>, cases: impl FnOnce(&mut Group) + Send + 'static) {
        self.tests.push(Trial::test(name, move || {
            let folder = tempfile::tempdir()?;
            let mut group = Group { folder: folder.path(), passed: 0, failures: Vec::new() };
            cases(&mut group);
            group.finish()
        }));
    }

    /// Runs the tests that the command line selects, and ends the process.
    pub fn run(self) -> ! {
        let mut arguments = Arguments::from_args();
        // Tests start several processes or threads themselves, and wait for launchers half of their time.
        arguments.test_threads.get_or_insert(2);
        libtest_mimic::run(&arguments, self.tests).exit()
    }
}

impl Group<'_> {
    /// Adds the result of a case.
    pub fn check(&mut self, case: impl std::fmt::Display, result: Result<(), String>) {
        match result {
            Ok(()) => self.passed += 1,
            Err(cause) => self.failures.push(format!("{case}: {cause}")),
        }
    }

    /// A test without cases has not passed.
    fn finish(self) -> Result<(), Failed> {
        let failed = self.failures.len();
        if failed == 0 && self.passed > 0 {
            return Ok(());
        }
        let mut message = format!("{failed} of {} cases failed", self.passed + failed);
        for failure in self.failures.iter().take(SHOWN) {
            message += &format!("\n  {}", failure.trim_end().replace('\n', "\n    "));
        }
        if failed > SHOWN {
            message += &format!("\n  and {} more", failed - SHOWN);
        }
        Err(message.into())
    }
}

/// An error that shows both values, unless they are equal.
pub fn same<T: PartialEq + std::fmt::Debug>(what: &str, got: &T, expected: &T) -> Result<(), String> {
    if got == expected { Ok(()) } else { Err(format!("{what} {got:?}, expected {expected:?}")) }
}
