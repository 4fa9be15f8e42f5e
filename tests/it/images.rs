//! Images from import to predictions, by a small residual network.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use crate::harness::Cli;
use mpibayes::random::{Purpose, Seed, Who};
use mpibayes::results::Values;

const RUN: &str = r#"agents = 2
dtype = "float32"
[data]
file = "images.h5"
[model]
name = "resnet"
depth = 8
width = 4
[method]
name = "ec_sghmc"
steps = 1600
period = 4
batch = 8
step = 0.01
friction = 20.0
coupling_schedule = "constant"
burn_in = 1200
thin = 100
[evaluate]
every = 200
[cluster]
checkpoint_every = 0.1
"#;

/// CIFAR-10 records of noise: class 0 is dark, class 1 bright.
fn records(count: usize, seed: u64) -> Vec<u8> {
    let mut noise = vec![0.0_f64; 3072 * count];
    Seed(seed).stream(Who::Run, 0, Purpose::Synthetic).normals(&mut noise);
    let record = |(number, noise): (usize, &[f64])| {
        let class = u8::from(number % 2 == 1);
        let level = 100.0 + 60.0 * f64::from(class);
        let pixels = noise.iter().map(|noise| (level + 30.0 * noise).clamp(0.0, 255.0) as u8);
        std::iter::once(class).chain(pixels).collect::<Vec<u8>>()
    };
    noise.chunks_exact(3072).enumerate().flat_map(record).collect()
}

fn folder() -> Cli {
    let cli = Cli::new();
    cli.write("train.bin", records(48, 1));
    cli.write("test.bin", records(20, 2));
    cli.write("run.toml", RUN);
    cli.succeed("import images train.bin --test-images test.bin -o images.h5");
    cli
}

#[test]
fn a_killed_run_of_a_residual_network_is_resumed_with_the_same_bits_and_predicts_test_images() {
    let cli = folder();
    cli.alone("run run.toml --output whole").succeed(&["finished"]);
    let mut running = cli.mpirun(2, "run run.toml --output killed").start();
    running.wait_until("a checkpoint", |_| cli.exists("killed/checkpoint.bin")).unwrap();
    running.signal(libc::SIGKILL);
    running.finish().unwrap();
    cli.wait_until_released("killed");
    cli.mpirun(2, "run run.toml --output killed").succeed(&["resuming", "finished"]);
    assert_eq!(cli.posterior("killed"), cli.posterior("whole"), "the draws");
    let Values::F32(draws) = cli.posterior("whole").values else { panic!("draws in another precision") };
    assert_eq!((draws.dim().0, draws.dim().1), (2, 4), "chains and draws");

    // The classes differ in brightness, so the accuracy is high.
    let accuracy = |run: &str| cli.json(&format!("summary {run} --json"))["metrics"]["accuracy"].as_f64();
    assert!(accuracy("whole").unwrap() > 0.9 && accuracy("whole") == accuracy("killed"));
    let predicted = cli.stdout("predict whole images.h5");
    assert_eq!(predicted.lines().count(), 21, "a line for each test image, and a header: {predicted}");
}

#[test]
fn memory_of_a_residual_network_is_stated_and_tables_are_refused() {
    let cli = folder();
    let mebibytes = |depth: usize| {
        let text = cli.stdout(&format!("check run.toml --set model.depth={depth} --ranks 1 --measure 0"));
        let memory = text.lines().find(|line| line.contains("at most about")).unwrap().to_owned();
        let number = memory.split_whitespace().find_map(|word| word.parse::<f64>().ok()).unwrap();
        if memory.contains("GiB") { 1024.0 * number } else { number }
    };
    // Each agent buffers eight images for every layer, so that 56 layers need more memory than 8.
    let (small, large) = (mebibytes(8), mebibytes(56));
    assert!(large > small + 20.0, "{small} and {large} MiB");

    cli.write("table.csv", "1,2,no\n3,4,yes\n2,2,no\n");
    cli.succeed("import table.csv -o table.h5");
    let refused = cli.run("check run.toml --set data.file=\"table.h5\"");
    let written = refused.written();
    assert!(refused.code == 1 && written.contains("needs images") && written.contains("mpibayes import images"), "{written}");
}
