//! `mpibayes resume`: runs that are resumed by their folder alone, and finished runs that are made longer with the bits of a longer run.

#![allow(clippy::unwrap_used)]

use crate::harness::Cli;
use crate::regression::{file, folder};
use mpibayes::results::{ResultFile, Values};
use std::fs;

/// The length of the finished run in a folder, by the command that the program proposes: `--steps +1234`.
fn length(cli: &Cli, run: &str, key: &str) -> u64 {
    let proposal = format!("the run is finished; `mpibayes resume {run} --{key} +");
    let message = cli.alone(&format!("resume {run}")).end(0, &[&proposal]).stderr;
    let digits = message.split_once(&proposal).unwrap().1.split_whitespace().next().unwrap();
    digits.trim_end_matches('`').parse().unwrap()
}

#[test]
fn a_longer_run_has_the_bits_of_one_that_was_as_long_from_the_beginning() {
    let cli = folder();
    for (method, key, settings) in [
        ("sghmc", "steps", ""),
        ("ec_sgld", "steps", "--set method.step=1e-4 --set method.steps=3001 --set method.burn_in=500"),
        ("ec_sghmc", "steps", "--set data.file=tested.h5 --set model.name=network --set method.ess=100 --set dtype=float32"),
        ("dsgld", "rounds", "--set method.expectations=true"),
        ("hmc", "draws", "--set method.draws=120 --set method.burn_in=100"),
    ] {
        if method == "ec_sghmc" {
            cli.succeed("import classes.csv -o tested.h5 --test-fraction 0.3");
        }
        let name = format!("{method}.toml");
        cli.write(&name, file(method, "logistic", "classes.h5"));
        cli.succeed(&format!("run {name} {settings} --output {method}"));
        let short = cli.posterior(method);
        let (now, more) = (length(&cli, method, key), 97);
        cli.mpirun(2, &format!("resume {method} --{key} +{more}")).end(0, &["resuming after", "finished after"]);
        assert_eq!(length(&cli, method, key), now + more, "{method}");
        // Once more, with a stop on the way and the total length.
        let total = 3 * now + more;
        let mut running = cli.alone(&format!("resume {method} --{key} {total}")).start();
        running.wait_until("its first message", |running| running.stderr().contains(" on the model ")).unwrap();
        running.signal(libc::SIGUSR1);
        // The run may be over before the signal arrives.
        if running.finish().unwrap().code == 75 {
            cli.wait_until_released(method);
            // The run file stands for the run that was made longer.
            cli.alone(&format!("check {name} {settings} --output {method}")).end(0, &["`mpibayes run` resumes it"]);
            let resumes =
                if method == "hmc" { format!("run {name} {settings} --output {method}") } else { format!("resume {method}") };
            cli.mpirun(3, &resumes).end(0, &["resuming after"]);
        }
        cli.alone(&format!("run {name} {settings} --output {method}")).end(0, &["is finished"]);
        cli.succeed(&format!("run {name} {settings} --set method.{key}={total} --output {method}-long"));
        let (extended, long) = (cli.posterior(method), cli.posterior(&format!("{method}-long")));
        assert!(extended.values.dim().1 > short.values.dim().1, "{method}: {:?}", extended.values.dim());
        assert!(extended == long, "{method}");
        // Arrays of the former end are replaced.
        let arrays = |run: &str, group: &str| cli.results(run).grid(group).unwrap();
        for group in ["test_predictions", "test_convergence", "scores"] {
            assert!(arrays(method, group) == arrays(&format!("{method}-long"), group), "{method} {group}");
        }
        assert_eq!(arrays(method, "test_convergence").is_some(), method == "ec_sghmc");
        if method == "dsgld" {
            let moments = |run: &str| ["posterior_mean", "posterior_sd"].map(|group| cli.results(run).samples(group).unwrap());
            assert!(moments(method) == moments("dsgld-long"));
        }
    }
}

#[test]
fn what_cannot_be_made_longer_is_refused_and_stays_as_it_is() {
    let cli = folder();
    cli.write("chains.toml", file("sghmc", "logistic", "classes.h5"));
    cli.write("particles.toml", file("svgd", "logistic", "classes.h5"));
    cli.succeed("run chains.toml --set method.step=0.01 --set method.steps=4000 --output chains");
    cli.succeed("run particles.toml --set method.rounds=1 --set method.steps=2 --output particles");
    let before = (cli.posterior("chains"), cli.read("chains/config.toml"));
    for (typed, says) in [
        ("resume none", "none: there is no such folder"),
        ("resume chains --rounds +5", "the length of runs of sghmc is given in steps, and this run has 4000: type --steps +5"),
        ("resume chains --draws 9000", "and this run has 4000: type --steps 9000"),
        ("resume chains --draws 500", "and this run has 4000: type --steps +4000"),
        ("resume chains --steps 3000", "the run has steps = 4000 already: type --steps +4000, or a number above 4000"),
        ("resume particles --steps +5", "this run of svgd cannot be made longer, because its course depends on its length"),
    ] {
        cli.alone(typed).end(1, &[says]);
        cli.mpirun(2, typed).end(1, &[says]);
    }
    assert!((cli.posterior("chains"), cli.read("chains/config.toml")) == before);
    // A longer one is a command away.
    for (steps, says) in [(5000, "make that run longer with `mpibayes resume chains --steps 5000`"), (3000, "or delete that run")]
    {
        let typed = format!("run chains.toml --set method.step=0.01 --set method.steps={steps} --output chains");
        let said = cli.alone(&typed).end(1, &["method.steps is 4000 there", says]).written();
        assert_eq!(said.contains("longer with"), steps == 5000, "{said}");
    }
    // A run without a state from before its end, as those of other versions.
    fs::remove_file(cli.path("chains/extension.bin")).unwrap();
    cli.alone("resume chains --steps +5").end(1, &["its folder has no state from shortly before the end"]);
    assert!((cli.posterior("chains"), cli.read("chains/config.toml")) == before);
    // A run that has not finished is resumed without its run file, but not to another end.
    cli.stop("half", || cli.alone("run chains.toml --set method.ess=40000 --output half"));
    cli.alone("resume half --steps +5")
        .end(1, &["half: the run is not finished (it ends at steps = ", "). Resume it without --steps first"]);
    cli.alone("resume half").end(0, &["resuming after"]);
    cli.alone("resume half").end(0, &["the run is finished; `mpibayes resume half --steps +"]);
    cli.alone("resume particles").end(0, &["the run in particles is finished"]);
    // A run with other settings is another one, though it was made longer.
    cli.alone("resume half --steps +500").end(0, &["finished after"]);
    cli.alone("run chains.toml --set method.ess=40000 --output half").end(0, &["is finished"]);
    for command in ["run", "check"] {
        let typed = format!("{command} chains.toml --set method.ess=20000 --output half");
        let said = cli.alone(&typed).end(1, &["holds a run with another configuration", "or delete that run"]).written();
        assert!(!said.contains("carrying out") && !said.contains("longer with"), "{said}");
    }
}

#[test]
fn the_command_that_made_a_run_longer_resumes_it_after_a_stop() {
    let cli = folder();
    cli.write("chains.toml", file("hmc", "logistic", "classes.h5"));
    cli.succeed("run chains.toml --set method.draws=100 --set method.burn_in=100 --output chains");
    let command = "resume chains --draws +200000";
    cli.stop("chains", || cli.alone(command));
    cli.alone("summary chains").end(0, &["not finished"]);
    fs::rename(cli.path("classes.h5"), cli.path("elsewhere.h5")).unwrap();
    let moved = "If they have moved, name the file: `mpibayes resume chains --data FILE`";
    cli.alone(command).end(1, &["the data of the run, classes.h5, do not exist here: a relative path counts", moved]);
    cli.stop("chains", || cli.alone("run chains/config.toml --set data.file=elsewhere.h5 --output chains"));
    cli.stop("chains", || cli.alone("resume chains --data elsewhere.h5"));
    fs::rename(cli.path("elsewhere.h5"), cli.path("classes.h5")).unwrap();
    cli.alone("predict chains classes.h5").end(1, &["the run is not finished; `mpibayes resume` with its folder resumes it"]);
    let mut running = cli.alone(command).start();
    running.wait_until("its first message", |running| running.stderr().contains("resuming after")).unwrap();
    assert!(running.stderr().contains("+N is not added"));
    running.signal(libc::SIGUSR1);
    assert!([0, 75].contains(&running.finish().unwrap().code));
    // What a user has changed is named, not what the extension has.
    cli.wait_until_released("chains");
    let says = ["method.draws is 100 there, 120 here"];
    cli.alone("run chains.toml --set method.draws=120 --set method.burn_in=100 --output chains").end(1, &says);
    // A run that ended before its first checkpoint begins again.
    for file in ["result.h5", "checkpoint.bin", "checkpoint.previous.bin", "extension.bin"] {
        drop(fs::remove_file(cli.path("chains").join(file)));
    }
    cli.write("chains/config.toml", cli.read("chains/config-before-extension.toml"));
    cli.alone("resume chains").end(0, &["finished after"]);
}

#[test]
fn files_of_a_run_that_are_damaged_changed_or_gone_are_named_before_it_resumes() {
    let cli = folder();
    cli.write("chains.toml", file("sghmc", "logistic", "classes.h5"));
    let run = "run chains.toml --set method.ess=1000000 --set cluster.checkpoint_every=0.02 --output run";
    let mut running = cli.alone(run).start();
    let draws = || Some(ResultFile::open(&cli.path("run/result.h5")).ok()?.lengths("posterior").ok()?.iter().sum::<usize>());
    running.wait_until("draws in a checkpoint", |_| draws().is_some_and(|draws| draws > 100)).unwrap();
    running.signal(libc::SIGUSR1);
    assert_eq!(running.finish().unwrap().code, 75);
    cli.wait_until_released("run");

    let whole = fs::read(cli.path("run/result.h5")).unwrap();
    let Values::F64(draws) = cli.results("run").samples("posterior").unwrap().values else { panic!("draws of another type") };
    let first = draws[[0, 0, 0]].to_le_bytes();
    let place = whole.windows(first.len()).position(|bytes| bytes == first).unwrap();
    let flipped = {
        let mut bytes = whole.clone();
        bytes[place] ^= 1;
        bytes
    };
    for (content, says) in [
        (&b""[..], "run/result.h5: this result file is damaged: restore it"),
        (&flipped, "run/result.h5: this file is damaged (cannot read the draws of \"posterior\": "),
    ] {
        fs::write(cli.path("run/result.h5"), content).unwrap();
        for command in ["resume run", run] {
            cli.alone(command).end(1, &[says, "restore it, or run again with another --output"]);
        }
    }
    fs::remove_file(cli.path("run/result.h5")).unwrap();
    cli.alone("resume run").end(1, &["run/result.h5: this file with the draws before the checkpoint is missing: restore it"]);
    fs::write(cli.path("run/result.h5"), whole).unwrap();

    let config = cli.read("run/config.toml");
    let digest = cli.read("run/data.digest");
    for (name, content, says) in [
        ("run/config.toml", config.replacen("seed = 1\n", "seed = 3\n", 1), "(seed was 1, and is 3). Undo that"),
        ("run/config.toml", config.replacen("[method]", "[mathod]", 1), "mathod"),
        (
            "run/data.digest",
            digest.replacen(|digit: char| digit != 'f', "f", 1),
            &format!("its line should be {:?}", digest.trim()),
        ),
    ] {
        let before = cli.read(name);
        assert_ne!(before, content);
        cli.write(name, content);
        for command in ["resume run", run, "check chains.toml --set method.ess=1000000 --output run"] {
            cli.alone(command).end(1, &[&format!("{name}: this file no longer agrees with the run"), says]);
        }
        cli.write(name, before);
    }
    // All is as it was: it resumes.
    let mut running = cli.alone("resume run").start();
    running.wait_until("it resumes", |running| running.stderr().contains("resuming after round")).unwrap();
    running.signal(libc::SIGHUP);
    assert_eq!(running.finish().unwrap().code, 75);
}
