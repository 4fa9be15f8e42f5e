//! The memory that importing sparse rows and a run on them take: that of the nonzero values, not of the table.
//!
//! A program of its own with one test: the system counts the memory of a child process from that of its parent on, and other tests would
//! add theirs.

#![allow(clippy::unwrap_used, clippy::expect_used)]

#[path = "support/harness.rs"]
mod harness;
#[path = "support/launcher.rs"]
mod launcher;

use harness::Cli;
use mpibayes::random::{Purpose, Seed, Who};
use rand::RngExt;
use std::fmt::Write;

const RUN: &str = "\
seed = 3
agents = 1
[data]
file = \"a.h5\"
[model]
name = \"logistic\"
[method]
name = \"svgd\"
particles = 2
rounds = 4
batch = 50
steps = 2
";

#[test]
fn wide_sparse_rows_take_the_memory_of_their_nonzero_values() {
    const ROWS: usize = 100_000;
    const FEATURES: u32 = 50_000;
    const LIMIT: usize = 200_000_000;
    let cli = Cli::new();
    let mut stream = Seed(8).stream(Who::Run, 0, Purpose::Synthetic);
    let mut text = String::new();
    for row in 0..ROWS {
        write!(text, "{}", row % 2).unwrap();
        // Twenty columns, one of every twentieth of them.
        for part in 0..20 {
            let column = part * (FEATURES / 20) + stream.random_range(1..=FEATURES / 20);
            write!(text, " {column}:{}", stream.random_range(1..100)).unwrap();
        }
        text.push('\n');
    }
    cli.write("wide.svm", text);
    let imported = cli.succeed("import libsvm wide.svm --features 50000 --test-fraction 0.01 --scaling max-abs -o a.h5");
    let said = imported.stdout;
    assert!(said.contains("50,000") && said.contains("2,000,000 nonzero values"), "{said}");
    cli.write("run.toml", RUN);
    let run = cli.succeed("run run.toml --set method.rounds=1 --output wide");
    let most = imported.peak_memory.max(run.peak_memory);
    assert!(most < LIMIT, "{most} bytes");
    // The control: the measurement sees at least what is stored, and dense rows would not pass.
    assert!(most > ROWS * 20 * 12 && ROWS * FEATURES as usize * 8 > 100 * LIMIT);
}
