//! `mpibayes recalibrate`: biased draws are moved into a folder of their own, which says so; draws that should stay as they are do.

#![allow(clippy::unwrap_used)]

use crate::harness::Cli;

/// Rows with three features and two classes that overlap.
fn folder() -> Cli {
    let cli = Cli::new();
    let label = |i: usize| if (i * 7) % 10 + (i * i) % 7 > 7 { "yes" } else { "no" };
    let rows: String = (0..300).map(|i| format!("{},{},{},{}\n", (i * 7) % 11, (i * 5) % 13, (i * i) % 17, label(i))).collect();
    cli.write("a.csv", rows);
    cli.succeed("import a.csv --test-fraction 0.2 -o a.h5");
    cli.write("reference.toml", file("hmc", ""));
    // Langevin steps inflate the variance of a Gaussian by 1/(1 − step · precision/4).
    cli.write(
        "biased.toml",
        file("ec_sgld", "steps = 20000\nbatch = 60\nburn_in = 1000\nthin = 10\ncoupling = 0.0\nstep = 0.03\n"),
    );
    cli
}

fn file(method: &str, settings: &str) -> String {
    format!(
        "agents = 4\n[data]\nfile = \"a.h5\"\n[model]\nname = \"logistic\"\nprior.normal = 1.0\nintercept_scale = 1.0\n\
         [method]\nname = \"{method}\"\n{settings}"
    )
}

#[test]
fn biased_draws_become_right_on_any_number_of_ranks_and_say_that_they_were_moved() {
    let cli = folder();
    cli.succeed("run reference.toml --output reference");
    cli.alone("run biased.toml --output biased").end(0, &["biased: the sd of "]);
    cli.alone("recalibrate biased")
        .end(0, &["moved the draws: sds were ", "recalibrated, right: ", "written to biased-recalibrated"]);
    cli.mpirun(2, "recalibrate biased --output two").end(0, &["recalibrated, right: "]);
    let moved = cli.posterior("biased-recalibrated");
    assert!(moved == cli.posterior("two"));
    assert!(moved.values.dim() == cli.posterior("biased").values.dim() && moved != cli.posterior("biased"));

    // Hamiltonian Monte Carlo has no bias. The control: the draws as they were.
    let worst = |run: &str| {
        let json = cli.stdout(&format!("compare {run} --reference reference --json"));
        let json: serde_json::Value = serde_json::from_str(&json).unwrap();
        let of = |key: &str| json[0][key].as_f64().unwrap();
        (of("shift").abs(), of("smallest_sd_ratio"), of("largest_sd_ratio"))
    };
    let (shift, least, largest) = worst("biased-recalibrated");
    assert!(shift < 0.15 && least > 0.93 && largest < 1.07, "{shift} {least} {largest}");
    assert!(worst("biased").2 > 1.1, "{:?}", worst("biased"));

    let summary = cli.stdout("summary biased-recalibrated");
    assert!(summary.starts_with("recalibrated, right: ") && summary.contains("of biased/result.h5"), "{summary}");
    let json: serde_json::Value = serde_json::from_str(&cli.stdout("summary biased-recalibrated --json")).unwrap();
    assert_eq!(json["judgment"]["outcome"], "right");
    assert_eq!(json["recalibrated_from"], "biased/result.h5");
    assert!(cli.stdout("compare biased-recalibrated biased").contains("biased-recalibrated"));
    #[cfg(feature = "plots")]
    for (run, says) in
        [("biased", "Farthest off: "), ("biased-recalibrated", "Measured by the gradients of all rows at 200 draws")]
    {
        assert_eq!(cli.stdout(&format!("plot {run} bias --format svg")), format!("{run}/plots/bias.svg\n"));
        let text = cli.read(&format!("{run}/plots/bias.svg"));
        assert!(text.contains(says), "{text}");
    }
    // What they predict is computed again, and new rows are predicted from them.
    let density = |run: &str| cli.results(run).grid("test_predictions").unwrap().unwrap().array("density").unwrap();
    assert_ne!(density("biased-recalibrated"), density("biased"));
    cli.succeed("predict biased-recalibrated a.csv --label last -o predicted.csv");

    for (typed, says) in [
        ("recalibrate biased", "biased-recalibrated holds a run already: choose another --output"),
        ("recalibrate biased-recalibrated --output again", "these draws were recalibrated already"),
        ("recalibrate reference", "nothing to recalibrate: the steps of hmc have no bias"),
        ("recalibrate none", "none: there is no such folder or file"),
        ("recalibrate biased/result.h5", "this is a file: name the folder of the run"),
        ("resume two --steps +5", "its folder has recalibrated draws (make the run that they are from longer"),
    ] {
        cli.alone(typed).end(1, &[says]);
        cli.mpirun(2, typed).end(1, &[says]);
    }
    assert!(!cli.path("again").exists() && !cli.path("reference-recalibrated").exists());
}

/// Too few particles are too narrow. Other data than those of the run are refused.
#[test]
fn particles_in_single_precision_are_moved_and_other_data_are_refused() {
    let cli = folder();
    cli.write("narrow.toml", file("svgd", "particles = 60\nrounds = 1\nsteps = 400\nwhitened = false\n"));
    cli.alone("run narrow.toml --set dtype=float32 --output narrow").end(0, &["biased: "]);
    cli.alone("recalibrate narrow").end(0, &["recalibrated, right: "]);
    let moved = cli.posterior("narrow-recalibrated");
    assert_eq!(moved.values.dim(), cli.posterior("narrow").values.dim());
    assert!(matches!(moved.values, mpibayes::results::Values::F32(_)));

    cli.write("b.csv", cli.read("a.csv").replace("no\n", "never\n"));
    cli.succeed("import b.csv --test-fraction 0.2 -o a.h5 --force");
    let says = "now holds other data";
    cli.alone("recalibrate narrow --output other").end(1, &[says]);
    cli.mpirun(2, "recalibrate narrow --output other").end(1, &[says]);
    assert!(!cli.exists("other/result.h5"));
}

#[test]
fn draws_that_should_stay_as_they_are_are_refused_with_a_reason() {
    let cli = folder();
    cli.write("mixture.toml", "[model]\nname = \"toy\"\n[method]\nname = \"svgd\"\nparticles = 200\nrounds = 1\nsteps = 500\n");
    cli.write("apart.toml", file("ec_sgld", "steps = 300\nbatch = 60\nburn_in = 0\nstep = 1e-6\ncoupling = 0.0\n"));
    cli.write("unfinished.toml", file("sghmc", "ess = 1000000\n"));
    cli.succeed("run mixture.toml --output mixture");
    cli.succeed("run apart.toml --output apart");
    cli.stop("unfinished", || cli.alone("run unfinished.toml --output unfinished"));
    for (run, says) in [
        ("mixture", "cannot recalibrate: "),
        ("apart", "cannot recalibrate: the run is not mixed"),
        ("unfinished", "unfinished: the run is not finished. `mpibayes resume unfinished` resumes it"),
    ] {
        for ranks in [1, 2] {
            let typed = format!("recalibrate {run}");
            let ended = if ranks == 1 { cli.alone(&typed).end(1, &[says]) } else { cli.mpirun(2, &typed).end(1, &[says]) };
            assert_eq!(ended.stderr.matches("recalibrate").count(), usize::from(run != "unfinished"), "{}", ended.stderr);
            assert!(!cli.path(format!("{run}-recalibrated")).exists());
        }
    }
}
