//! `jobs/install.sh`: what an installation contains, installations over older ones, refusals, and batch scripts without a checkout.

#![allow(clippy::unwrap_used, clippy::expect_used)]

use crate::harness::Cli;
use crate::launcher::{Ended, Launcher, program, watched};
use std::collections::BTreeMap;
use std::io::Read as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

const PROGRAM: &str = env!("CARGO_BIN_EXE_mpibayes");
const MANIFEST: &str = "share/mpibayes/manifest";
const SCRIPTS: [&str; 6] = ["run.sbatch", "sweep.sbatch", "scaling.sbatch", "submit.sh", "slurm.sh", "env.sh"];

fn checkout() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Bash with a command, in a folder, without the variables of the batch scripts and of modules that the user's shell may have.
fn bash(folder: &Path, command: &str) -> Command {
    let mut bash = program(Launcher::Alone, Path::new("bash"), &["-c", command]);
    for name in ["MPIBAYES_HOME", "CONFIG", "OUTPUT", "SET", "LAUNCHER", "LOADEDMODULES", "CARGO_TARGET_DIR"] {
        bash.env_remove(name);
    }
    bash.current_dir(folder);
    bash
}

/// `jobs/install.sh` with these arguments, in a folder that has a build of the program with its book in `built`.
fn install(cli: &Cli, arguments: &str) -> Ended {
    let release = cli.path("built/release");
    if !release.exists() {
        std::fs::create_dir_all(&release).unwrap();
        symlink(PROGRAM, release.join("mpibayes")).unwrap();
        std::fs::create_dir(cli.path("built/book")).unwrap();
        cli.write("built/book/index.html", "the book");
    }
    // The folders and files of an administrator with this mask would be invisible to others.
    let script = checkout().join("jobs/install.sh");
    let mut bash = bash(cli.folder(), &format!("umask 077; exec bash {} {arguments}", script.display()));
    bash.env("CARGO_TARGET_DIR", cli.path("built"));
    watched(bash).unwrap()
}

/// Installs into the folder `prefix`, and returns its path.
#[track_caller]
fn installed(cli: &Cli) -> PathBuf {
    let ended = install(cli, "--no-build --prefix prefix");
    assert_eq!(ended.code, 0, "{}", ended.written());
    assert!(ended.stderr.is_empty(), "{}", ended.stderr);
    cli.path("prefix")
}

/// The files and folders below a folder, with their permissions and inodes.
fn tree(root: &Path) -> BTreeMap<String, (u32, u64)> {
    let entries = walkdir::WalkDir::new(root).min_depth(1).into_iter().map(|entry| entry.unwrap());
    let describe = |entry: walkdir::DirEntry| {
        let metadata = entry.metadata().unwrap();
        let path = entry.path().strip_prefix(root).unwrap().to_str().unwrap().to_owned();
        (path, (metadata.permissions().mode(), metadata.ino()))
    };
    entries.map(describe).collect()
}

fn read(path: impl AsRef<Path>) -> String {
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.as_ref().display()))
}

#[test]
fn an_installation_is_complete_and_readable_for_all() {
    let cli = Cli::new();
    let prefix = installed(&cli);
    let found = tree(&prefix);
    let module = format!("share/modulefiles/mpibayes/{}", env!("CARGO_PKG_VERSION"));
    let mut promised: Vec<String> = SCRIPTS.iter().map(|name| format!("share/mpibayes/jobs/{name}")).collect();
    promised.extend(
        ["LICENSE-MIT", "LICENSE-APACHE", "CITATION.cff", "book/index.html"].map(|name| format!("share/doc/mpibayes/{name}")),
    );
    promised.extend(["mpibayes.1", "mpibayes-run.1", "mpibayes-import-table.1"].map(|name| format!("share/man/man1/{name}")));
    promised.extend(
        [
            "bin/mpibayes",
            "bin/mpibayes-submit",
            "share/mpibayes/jobs/scaling.toml",
            "share/bash-completion/completions/mpibayes",
            "share/zsh/site-functions/_mpibayes",
            "share/fish/vendor_completions.d/mpibayes.fish",
            &module,
        ]
        .map(str::to_owned),
    );
    for path in &promised {
        assert!(found.contains_key(path), "{path} is missing");
        assert!(!read_bytes(&prefix.join(path)).is_empty(), "{path} is empty");
    }
    for (path, (mode, _)) in &found {
        let wanted = if path.starts_with("bin") || prefix.join(path).is_dir() { 0o755 } else { 0o644 };
        assert_eq!(mode & 0o777, wanted, "{path}");
    }
    assert_eq!(std::fs::metadata(&prefix).unwrap().permissions().mode() & 0o777, 0o755);

    // The manifest lists all files.
    let files: Vec<&str> = found.keys().map(String::as_str).filter(|path| prefix.join(path).is_file()).collect();
    let manifest = read(prefix.join(MANIFEST));
    assert_eq!(manifest.lines().collect::<Vec<_>>(), files);

    // All paths of the modulefile exist, and nothing leads to the checkout.
    let module = read(prefix.join(module));
    let home = prefix.join("share/mpibayes");
    let module = module.replace("$MPIBAYES_HOME", home.to_str().unwrap()).replace('\\', "");
    let paths: Vec<&str> =
        module.split([' ', '\n', '"']).filter(|word| word.starts_with(cli.folder().to_str().unwrap())).collect();
    assert!(paths.len() >= 5, "{module}");
    for path in paths {
        assert!(Path::new(path).exists(), "the modulefile names {path}");
    }
    for name in SCRIPTS {
        let path = home.join("jobs").join(name);
        let text = read(&path);
        assert!(!text.contains(checkout().to_str().unwrap()) && !text.contains("MPIBAYES_HOME:-."), "{text}");
        let ended = watched(bash(cli.folder(), &format!("bash -n {}", path.display()))).unwrap();
        assert_eq!(ended.code, 0, "{}", ended.stderr);
    }

    // env.sh needs neither a checkout nor cargo, and comes before another mpibayes on the PATH.
    std::fs::create_dir(cli.path("other")).unwrap();
    cli.write("other/mpibayes", "");
    std::fs::set_permissions(cli.path("other/mpibayes"), std::fs::Permissions::from_mode(0o755)).unwrap();
    let env = home.join("jobs/env.sh");
    let other = cli.path("other");
    let mut shell = bash(cli.folder(), &format!("set -eu; source {}; command -v mpibayes", env.display()));
    shell.env("PATH", format!("{}:{}/bin:/usr/bin:/bin", other.display(), prefix.display()));
    let ended = watched(shell).unwrap();
    assert_eq!(ended.stdout.trim(), prefix.join("bin/mpibayes").to_str().unwrap(), "{}", ended.stderr);
}

fn read_bytes(path: &Path) -> Vec<u8> {
    std::fs::read(path).unwrap()
}

#[test]
fn an_installation_over_another_one_replaces_by_renaming_and_leaves_nothing_stale() {
    let cli = Cli::new();
    let prefix = installed(&cli);
    let without_manifest = || {
        let mut tree = tree(&prefix);
        tree.remove(MANIFEST);
        tree
    };
    let (first, manifest) = (without_manifest(), read(prefix.join(MANIFEST)));
    installed(&cli);
    assert_eq!(without_manifest(), first);
    assert_eq!(read(prefix.join(MANIFEST)), manifest);

    // An older installation, with another program, which runs, and with a file that the new one does not have.
    std::fs::remove_file(prefix.join("bin/mpibayes")).unwrap();
    cli.write("prefix/bin/mpibayes", "the older program");
    std::fs::create_dir(prefix.join("share/mpibayes/old")).unwrap();
    cli.write("prefix/share/mpibayes/old/file", "");
    cli.write("prefix/bin/foreign", "");
    let mut paths: Vec<&str> = manifest.lines().chain(["share/mpibayes/old/file"]).collect();
    paths.sort_unstable();
    cli.write(&format!("prefix/{MANIFEST}"), paths.join("\n") + "\n");
    let mut running = std::fs::File::open(prefix.join("bin/mpibayes")).unwrap();
    installed(&cli);
    let mut old = String::new();
    running.read_to_string(&mut old).unwrap();
    assert_eq!(old, "the older program");
    assert!(read_bytes(&prefix.join("bin/mpibayes")) == read_bytes(Path::new(PROGRAM)));
    assert!(!prefix.join("share/mpibayes/old").exists() && prefix.join("bin/foreign").exists());
    assert_eq!(read(prefix.join(MANIFEST)), manifest);

    let ended = install(&cli, "--uninstall --prefix prefix");
    assert_eq!(ended.code, 0, "{}", ended.written());
    assert_eq!(tree(&prefix).into_keys().collect::<Vec<_>>(), ["bin", "bin/foreign"]);
}

#[test]
fn refusals_are_one_line_and_install_nothing() {
    let cli = Cli::new();
    cli.write("file", "");
    for (arguments, code, message) in [
        ("--no-build", 2, "--prefix DIR is missing"),
        ("--prefix", 2, "--prefix needs a value"),
        ("--prefix p --fast", 2, "unknown argument --fast"),
        ("--prefix 'p q' --no-build", 2, "has a blank or special character"),
        ("--prefix p --no-build --modules 'a;b'", 2, "has a blank or special character"),
        ("--prefix file/p --no-build", 1, "cannot create the folder"),
        ("--prefix p --uninstall", 1, "nothing is installed in"),
    ] {
        let ended = install(&cli, arguments);
        assert_eq!(ended.code, code, "{arguments}: {}", ended.written());
        let lines: Vec<&str> = ended.stderr.lines().collect();
        assert!(lines.len() == 1 && lines[0].starts_with("install: ") && lines[0].contains(message), "{}", ended.stderr);
        assert!(ended.stdout.is_empty() && !cli.exists("p"), "{arguments}: {}", ended.stdout);
    }
    // A folder that cannot be made, found before any file is moved.
    std::fs::create_dir_all(cli.path("q/share/man")).unwrap();
    cli.write("q/share/man/man1", "");
    let ended = install(&cli, "--prefix q --no-build");
    assert!(ended.code == 1 && ended.stderr.contains("share/man/man1") && !cli.exists("q/bin/mpibayes"), "{}", ended.written());
    assert!(tree(&cli.path("q")).keys().all(|path| !path.contains(".mpibayes-")));

    std::fs::remove_file(cli.path("built/release/mpibayes")).unwrap();
    let ended = install(&cli, "--prefix p --no-build");
    assert!(ended.code == 1 && ended.stderr.contains("nothing is built") && !cli.exists("p"), "{}", ended.written());
    let help = install(&cli, "--help");
    assert!(help.code == 0 && help.stdout.contains("--prefix DIR") && help.stderr.is_empty(), "{}", help.written());
}

/// Writes a program that bash runs into the folder `stubs`.
fn stub(cli: &Cli, name: &str, text: &str) {
    std::fs::create_dir_all(cli.path("stubs")).unwrap();
    cli.write(&format!("stubs/{name}"), format!("#!/bin/bash\n{text}\n"));
    std::fs::set_permissions(cli.path("stubs").join(name), std::fs::Permissions::from_mode(0o755)).unwrap();
}

/// A command in the folder of a project, with `stubs` on the PATH, but not the program.
fn in_project(cli: &Cli, command: &str) -> Command {
    let mut bash = bash(&cli.path("project"), command);
    let path = std::env::var("PATH").unwrap();
    let others = path.split(':').filter(|folder| !Path::new(folder).join("mpibayes").exists());
    let folders = [cli.path("stubs")].into_iter().chain(others.map(PathBuf::from));
    bash.env("PATH", std::env::join_paths(folders).unwrap());
    bash
}

/// Starts the real `mpirun` on this machine, instead of the nodes of the job; ranks share its cores, in Open MPI 4 and 5 as in MPICH.
const REAL_MPIRUN: &str = "exec env -u SLURM_JOB_ID OMPI_MCA_rmaps_base_oversubscribe=1 \
                           PRTE_MCA_rmaps_default_mapping_policy=:oversubscribe \"$MPIRUN\"";

/// The folder `project` with a dataset and the run file `my.toml`, which ends with these lines, and the folder `spool` of Slurm.
fn make_project(cli: &Cli, lines: &str) {
    for folder in ["project", "spool"] {
        std::fs::create_dir(cli.path(folder)).unwrap();
    }
    let rows: String = (0..40).map(|i| format!("{},{}\n", (i * 7) % 11, ["no", "yes"][(i * 7) % 11 / 6])).collect();
    cli.write("a.csv", rows);
    cli.succeed("import a.csv -o project/a.h5");
    let head = "agents = 2\n[data]\nfile = \"a.h5\"\n[model]\nname = \"logistic\"\n[method]\nname = \"svgd\"\nparticles = 4\n";
    cli.write("project/my.toml", format!("{head}{lines}"));
}

#[test]
fn a_scaling_study_keeps_its_runs_and_compares_them() {
    let cli = Cli::new();
    let prefix = installed(&cli);
    make_project(&cli, "rounds = 20\nsteps = 5\n[evaluate]\nevery = 0\n");
    stub(&cli, "mpirun", &format!("echo \"$@\" >>used; {REAL_MPIRUN} \"$@\""));
    stub(
        &cli,
        "scontrol",
        "[ \"$1\" = show ] && echo \"JobId=7 JobState=RUNNING Requeue=1 Restarts=${SLURM_RESTART_COUNT:-0} BatchFlag=1\" || echo \"$@\" >>requests",
    );
    stub(&cli, "squeue", "echo ${LEFT:-UNLIMITED}");
    let mpirun = watched(bash(cli.folder(), "command -v mpirun")).unwrap().stdout;
    let job = |values: &[(&str, &str)]| {
        std::fs::copy(prefix.join("share/mpibayes/jobs/scaling.sbatch"), cli.path("spool/slurm_script")).unwrap();
        let mut job = in_project(&cli, "exec bash ../spool/slurm_script");
        job.env("SLURM_JOB_ID", "7").env("SLURM_NTASKS", "2").env("CONFIG", "my.toml").env("MPIRUN", mpirun.trim());
        for (name, value) in values {
            job.env(name, value);
        }
        let ended = watched(job).unwrap();
        (ended.code, ended.written())
    };
    for (name, value) in [("REPEATS", "0"), ("REPEATS", "2x"), ("WEAK", "yes")] {
        let (code, said) = job(&[(name, value)]);
        assert!(code == 2 && said.contains(&format!("{name} is {value}")), "{said}");
    }
    // Little time is left: the runs are compared without a prediction.
    let (code, said) = job(&[("REPEATS", "2"), ("LEFT", "0:30")]);
    assert!(code == 0 && said.contains("no time is left for a prediction"), "{said}");
    let table = read(cli.path("project/runs/my/scaling.txt"));
    let counts: Vec<Vec<&str>> = table.lines().skip(2).map(|line| line.split_whitespace().take(2).collect()).collect();
    assert_eq!(counts, [["1", "2"], ["2", "2"]], "{table}");
    assert!(cli.exists("project/runs/my/scaling.svg") && cli.exists("project/runs/my/scaling.png"));
    // Finished runs are not repeated; another study has another folder.
    std::fs::remove_file(cli.path("project/used")).unwrap();
    let (code, said) = job(&[("REPEATS", "2"), ("LEFT", "0:30")]);
    assert!(code == 0 && read(cli.path("project/used")).lines().count() == 1, "{said}");
    let (code, said) = job(&[("REPEATS", "2"), ("WEAK", "1")]);
    assert!(code == 1 && said.contains("runs/my has runs of another study"), "{said}");
    let (code, said) = job(&[("REPEATS", "1"), ("WEAK", "1"), ("OUTPUT", "runs/weak"), ("LEFT", "0:30")]);
    assert!(code == 0 && read(cli.path("project/runs/weak/ranks-1-1/config.toml")).contains("agents = 1"), "{said}");
    // A limit that is too short for the first run is not tried again.
    stub(&cli, "mpirun", "exit 75");
    let (code, said) = job(&[("OUTPUT", "runs/short"), ("LEFT", "0:30")]);
    assert!(
        code == 1 && said.contains("the time limit is too short for a run on 1 ranks") && !cli.exists("project/requests"),
        "{said}"
    );
}

#[test]
fn batch_scripts_find_the_installation_from_the_spool_folder_of_slurm() {
    let cli = Cli::new();
    let prefix = installed(&cli);
    make_project(&cli, "rounds = 2\nsteps = 5\n");

    stub(&cli, "mpirun", &format!("command -v mpibayes >>used; {REAL_MPIRUN} -n 2 \"$@\""));
    // `scontrol show job` describes the job as Slurm does. With SIGNAL, the signal before the time limit arrives while the job is requeued.
    let running = "JobState=${STATE:-RUNNING} Requeue=${REQUEUE:-1} Restarts=${RESTARTS:-${SLURM_RESTART_COUNT:-0}} BatchFlag=1";
    stub(
        &cli,
        "scontrol",
        &format!(
            "if [ \"$1\" = show ]; then echo \"JobId=$3 {running}\"; exit; fi\n\
             echo \"$@\" >>requests; [ -z \"$SIGNAL\" ] || kill -USR1 $PPID"
        ),
    );
    // The script sleeps until the end of a job that was requeued.
    stub(&cli, "sleep", "");
    stub(&cli, "squeue", "echo UNLIMITED");
    stub(&cli, "sbatch", "echo \"$MPIBAYES_HOME $*\"");

    let job = |script: &Path, prepare: &dyn Fn(&mut Command)| {
        std::fs::copy(script, cli.path("spool/slurm_script")).unwrap();
        let mut job = in_project(&cli, "exec bash ../spool/slurm_script");
        job.env("SLURM_JOB_ID", "7").env("CONFIG", "my.toml");
        job.env("MPIRUN", watched(bash(cli.folder(), "command -v mpirun")).unwrap().stdout.trim());
        prepare(&mut job);
        watched(job).unwrap()
    };
    let jobs = prefix.join("share/mpibayes/jobs");
    let ended = job(&jobs.join("run.sbatch"), &|_| ());
    assert_eq!(ended.code, 0, "{}", ended.written());
    assert!(ended.written().contains("2 ranks × 1 thread"), "{}", ended.written());
    assert!(cli.exists("project/runs/my/result.h5") && !cli.exists("project/requests"));
    let used = read(cli.path("project/used"));
    assert!(used.lines().count() == 2 && used.lines().all(|path| Path::new(path) == prefix.join("bin/mpibayes")), "{used}");

    // A saved run is requeued, and one that has lost a rank, but not one with an error or a crash.
    let requeued = [75, 137, 143, 205, 253].map(|code| (code, true));
    let ends = [1, 3, 70, 130, 134, 139].map(|code| (code, false));
    for (code, is_requeued) in requeued.into_iter().chain(ends) {
        stub(&cli, "mpirun", &format!("exit {code}"));
        let ended = job(&jobs.join("run.sbatch"), &|_| ());
        assert_eq!(ended.code, code, "{}", ended.written());
        assert_eq!(cli.exists("project/requests"), is_requeued, "{code}: {}", ended.written());
        if is_requeued {
            assert_eq!(read(cli.path("project/requests")), "requeue 7\n");
            std::fs::remove_file(cli.path("project/requests")).unwrap();
        }
    }
    stub(&cli, "mpirun", "exit 75");
    // Of an array only this task: the last one has the number of the array.
    let ended = job(&jobs.join("sweep.sbatch"), &|job| {
        job.env("SLURM_ARRAY_JOB_ID", "7").env("SLURM_ARRAY_TASK_ID", "3");
    });
    assert_eq!(ended.code, 75, "{}", ended.written());
    assert_eq!(read(cli.path("project/requests")), "requeue 7_3\n");

    // A job that is not running, that Slurm has requeued already or that must not be requeued is left alone. A signal changes nothing.
    std::fs::remove_file(cli.path("project/requests")).unwrap();
    stub(&cli, "mpirun", "exit 137");
    let cases = [
        ("STATE", "CANCELLED", false, ""),
        ("STATE", "COMPLETING", false, ""),
        ("RESTARTS", "1", false, ""),
        ("REQUEUE", "0", false, "submit it again, and it resumes"),
        ("SIGNAL", "yes", true, "requeuing job 7"),
    ];
    for (name, value, is_requeued, message) in cases {
        let ended = job(&jobs.join("run.sbatch"), &|job| {
            job.env(name, value);
        });
        assert!(ended.code == 137 && ended.written().contains(message), "{name}={value}: {}", ended.written());
        assert_eq!(cli.exists("project/requests"), is_requeued, "{name}={value}: {}", ended.written());
    }
    assert_eq!(read(cli.path("project/requests")), "requeue 7\n");

    // srun ends with 0 even if it could not start a single rank.
    for (start, code) in [("", 205), ("rm -f \"$4\"", 0)] {
        std::fs::remove_file(cli.path("project/requests")).unwrap_or_default();
        stub(&cli, "srun", start);
        let ended = job(&jobs.join("run.sbatch"), &|job| {
            job.env("LAUNCHER", "srun");
        });
        assert_eq!(ended.code, code, "{}", ended.written());
        assert_eq!(cli.exists("project/requests"), code == 205, "{}", ended.written());
        assert!(!cli.exists("project/runs/my/waiting-7"));
    }
    // A job that was requeued once skips the numbers of the two steps of its first start.
    stub(&cli, "srun", "echo \"$*\" >>steps; rm -f \"$4\"");
    job(&jobs.join("run.sbatch"), &|job| {
        job.env("LAUNCHER", "srun").env("SLURM_RESTART_COUNT", "1");
    });
    let steps = read(cli.path("project/steps"));
    let skipped = steps.lines().take_while(|line| line.ends_with(" true")).count();
    assert!(skipped == 2 && steps.lines().any(|line| line.contains("mpibayes run my.toml")), "{steps}");

    // A job without a newer checkpoint is requeued three times. One with a newer checkpoint starts to count again.
    let restarted = |restarts: u32, code: i32, says: &str| {
        let ended = job(&jobs.join("run.sbatch"), &|job| {
            job.env("OUTPUT", "runs/lost").env("RESUME", "--rounds 20").env("SLURM_RESTART_COUNT", restarts.to_string());
        });
        assert!(ended.code == code && ended.written().contains(says), "restart {restarts}: {}", ended.written());
    };
    let (again, gives_up) = ("requeuing job 7", "3 times in a row without a newer checkpoint in runs/lost");
    std::fs::create_dir_all(cli.path("project/runs/lost")).unwrap();
    stub(&cli, "mpirun", "exit 137");
    (0..3).for_each(|restarts| restarted(restarts, 137, again));
    restarted(3, 137, gives_up);
    // Slurm itself requeues a job whose node was lost.
    restarted(4, 75, gives_up);
    cli.write("project/runs/lost/checkpoint.bin", "");
    (4..7).for_each(|restarts| restarted(restarts, 137, again));
    restarted(7, 137, gives_up);
    restarted(0, 137, again);
    assert!(cli.exists("project/runs/lost/requeues"));
    // A job that always writes a newer checkpoint is requeued ten times after faults, and again and again because of its time limit.
    let new_checkpoint = "rm -f runs/lost/checkpoint.bin; touch runs/lost/checkpoint.bin";
    stub(&cli, "mpirun", &format!("{new_checkpoint}; exit 137"));
    (0..10).for_each(|restarts| restarted(restarts, 137, again));
    restarted(10, 137, "requeued 10 times after faults");
    stub(&cli, "mpirun", &format!("{new_checkpoint}; exit 75"));
    stub(&cli, "squeue", "echo 1:05");
    (0..12).for_each(|restarts| restarted(restarts, 75, again));
    stub(&cli, "squeue", "echo 10:05");
    (12..22).for_each(|restarts| restarted(restarts, 75, again));
    restarted(22, 75, "requeued 10 times after faults");
    stub(&cli, "mpirun", "");
    restarted(1, 0, "");
    assert!(!cli.exists("project/runs/lost/requeues"));

    // The remaining time is passed to the run, before OPTIONS. A limit in OPTIONS replaces it, and an unlimited job has none.
    stub(&cli, "mpirun", "echo \"$@\" >>limited");
    for (left, options, passed) in [
        ("1-02:00:08", "--log-host", " --max-time 93608s --log-host"),
        ("09:08", "--max-time 5m", " --max-time 5m"),
        ("UNLIMITED", "", ""),
    ] {
        stub(&cli, "squeue", &format!("echo {left}"));
        let _ = std::fs::remove_file(cli.path("project/limited"));
        job(&jobs.join("run.sbatch"), &|job| {
            job.env("OPTIONS", options).env("SLURM_JOB_END_TIME", "9999999999");
        });
        let limited = read(cli.path("project/limited"));
        let command = format!(" mpibayes run my.toml --output runs/my --set cluster.threads=1{passed}\n");
        assert!(limited.contains(&command), "{left}: {limited}");
    }
    stub(&cli, "squeue", "exit 1");

    // What the script starts for a longer run, and for a run that is judged.
    stub(&cli, "mpirun", "echo \"$@\" >>started");
    job(&jobs.join("run.sbatch"), &|job| {
        job.env("RESUME", "--rounds 20");
    });
    job(&jobs.join("run.sbatch"), &|job| {
        job.env("STRICT", "1").env("OUTPUT", "runs/my");
    });
    let started = read(cli.path("project/started"));
    assert!(started.contains(" mpibayes resume runs/my --rounds 20\n"), "{started}");
    assert!(started.contains(" mpibayes run my.toml --output runs/my --set cluster.threads=1 --strict\n"), "{started}");

    // A wrong MPIBAYES_HOME, and the script of a checkout that is submitted elsewhere, say what to do.
    for (script, home, message) in [
        (jobs.join("run.sbatch"), "nowhere", "unset MPIBAYES_HOME"),
        (checkout().join("jobs/run.sbatch"), ".", "submit from the checkout"),
    ] {
        let ended = job(&script, &|job| {
            job.env("MPIBAYES_HOME", home);
        });
        assert!(ended.code == 2 && ended.stderr.contains(message), "{}", ended.written());
    }

    let mut submit = in_project(&cli, &format!("exec {}/bin/mpibayes-submit run --partition=x", prefix.display()));
    submit.env("CONFIG", "my.toml").env("RANKS", "2").env("MPIBAYES_HOME", "nowhere");
    let ended = watched(submit).unwrap();
    let (home, script) = (prefix.join("share/mpibayes"), jobs.join("run.sbatch"));
    assert_eq!(
        ended.stdout.trim(),
        format!("{} --export=ALL --ntasks=2 --partition=x {}", home.display(), script.display()),
        "{}",
        ended.stderr
    );
}
