//! Damaged files of the program's own formats: each is read or refused, without a panic, in bounded time and memory.
//!
//! `cargo test --release --test damaged_files` damages each kind of file 400 times, or 25 times if the program resumes a run from it. `-- checkpoint` does so for the kinds with this
//! word in their name, and `MPIBAYES_DAMAGE_SECONDS=600` for this long each.
//!
//! A program without the test harness: each file is read in a child process (fork), because the HDF5 library can crash on damaged files,
//! and HDF5 1.10.8 never ends to read some damaged lists of texts. Both are counted and printed. They are no failures: this program cannot
//! prevent them.

#![allow(clippy::unwrap_used, clippy::expect_used)]

#[path = "support/harness.rs"]
mod harness;
#[path = "support/launcher.rs"]
mod launcher;

use harness::Cli;
use mpibayes::cluster::{Checkpoint, StateStore};
use mpibayes::data::corpus::Corpus;
use mpibayes::data::{Dataset, Split};
use mpibayes::results::{CheckpointParts, ResultFile};
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use std::alloc::{GlobalAlloc, Layout, System};
use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

const PROGRAM: &str = env!("CARGO_BIN_EXE_mpibayes");
/// Rounds of kinds that are read here.
const ROUNDS: u64 = 400;
/// Rounds of kinds that the program reads, which takes longer.
const ROUNDS_OF_PROGRAM: u64 = 25;
/// The most bytes of the Rust heap: arrays up to 64 MiB are allowed in a small file, and are copied when they are read.
const MAX_BYTES: usize = 512 << 20;
/// The most address space, for what libraries allocate.
const MAX_ADDRESS_SPACE: u64 = 8 << 30;
/// Seconds of processor time, which a busy machine does not change.
const MAX_SECONDS: u64 = 20;

/// A run that resumed is asked to stop after so long without a save, and is killed after so long.
const MAX_TIME_TO_SAVE: Duration = Duration::from_secs(60);
const MAX_TIME_TO_STOP: Duration = Duration::from_secs(120);

/// Exit codes of the child process.
const READ: i32 = 0;
const REFUSED: i32 = 1;
const PANIC: i32 = 101;
const MEMORY: i32 = 102;
const MESSAGE: i32 = 103;

/// Ends the process when it has allocated too much, if that is limited.
struct Limited;

static ALLOCATED: AtomicUsize = AtomicUsize::new(0);
static LIMIT: AtomicUsize = AtomicUsize::new(usize::MAX);

// SAFETY: all requests go to the system's allocator as they are.
unsafe impl GlobalAlloc for Limited {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if ALLOCATED.fetch_add(layout.size(), Ordering::Relaxed).saturating_add(layout.size()) > LIMIT.load(Ordering::Relaxed) {
            // SAFETY: ends the process.
            unsafe { libc::_exit(MEMORY) };
        }
        // SAFETY: the caller's promise.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        ALLOCATED.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Limited = Limited;

/// How a file is read.
enum Reader {
    /// In a child process, by this function.
    Here(fn(&Path) -> Result<(), String>),
    /// By the program with these arguments.
    Program(&'static str),
}

/// A kind of file.
struct Kind {
    name: String,
    /// A folder with everything, which is copied for each round.
    folder: PathBuf,
    /// The file in it that is damaged.
    file: String,
    /// Makes a damaged file consistent, so that the damage is not found by a checksum.
    seal: fn(&mut Vec<u8>),
    reader: Reader,
    /// Whether the HDF5 library reads it.
    is_hdf5: bool,
}

/// The bytes before the content of a checkpoint: what it is, and a checksum.
const HEADER: usize = Checkpoint::MAGIC.len() + 32;

fn seal_checkpoint(bytes: &mut Vec<u8>) {
    bytes.resize(bytes.len().max(HEADER), 0);
    bytes[..Checkpoint::MAGIC.len()].copy_from_slice(Checkpoint::MAGIC);
    let sum = *blake3::hash(&bytes[HEADER..]).as_bytes();
    bytes[Checkpoint::MAGIC.len()..HEADER].copy_from_slice(&sum);
}

fn text(error: impl ToString) -> String {
    error.to_string()
}

fn read_dataset(folder: &Path) -> Result<(), String> {
    let data = Dataset::open(&folder.join("x.h5")).map_err(text)?;
    data.feature_names().map_err(text)?;
    for split in [Split::Train, Split::Test] {
        let rows: Vec<usize> = (0..data.rows(split)).collect();
        data.targets(split).map_err(text)?;
        data.read_rows::<f64>(split, &rows).map_err(text)?;
        data.read_rows::<f32>(split, &rows.iter().copied().step_by(3).collect::<Vec<_>>()).map_err(text)?;
        data.values(split).map_err(text)?;
    }
    data.verify(&mut |_| ()).map(drop).map_err(text)
}

fn read_corpus(folder: &Path) -> Result<(), String> {
    let corpus = Corpus::open(&folder.join("x.h5")).map_err(text)?;
    corpus.vocabulary().map_err(text)?;
    for split in [Split::Train, Split::Test] {
        let all = 0..corpus.documents(split);
        corpus.whole(split, all.clone()).map_err(text)?;
        corpus.numbers(split, all).map_err(text)?;
    }
    if corpus.documents(Split::Test) > 0 {
        corpus.held_out(0..corpus.documents(Split::Test)).map_err(text)?;
    }
    corpus.verify(&mut |_| ()).map(drop).map_err(text)
}

fn read_results(folder: &Path) -> Result<(), String> {
    let file = ResultFile::open(&folder.join("result.h5")).map_err(text)?;
    for table in file.tables().map_err(text)? {
        file.table(&table).map_err(text)?;
    }
    for group in file.sample_groups().map_err(text)? {
        let (_, _, parts) = file.shape(&group).map_err(text)?;
        file.lengths(&group).map_err(text)?;
        file.samples(&group).map_err(text)?;
        parts.iter().try_for_each(|part| file.part(&group, part).map(drop)).map_err(text)?;
        file.draws::<f64>(&group, &[(0, 0)]).map_err(text)?;
    }
    ["test_predictions", "test_convergence", "scores"].iter().try_for_each(|name| file.grid(name).map(drop)).map_err(text)
}

fn read_checkpoint(folder: &Path) -> Result<(), String> {
    let bytes = std::fs::read(folder.join("checkpoint.bin")).map_err(text)?;
    let mut checkpoint = Checkpoint::from_bytes(&bytes)?;
    checkpoint.load_stored_states(&CheckpointParts::new(folder, 1, 0, 1, true)).map_err(text)?;
    // What can be read can be written.
    checkpoint.to_bytes().map(drop).map_err(text)
}

fn read_parts(folder: &Path) -> Result<(), String> {
    let checkpoint = Checkpoint::read(&folder.join("checkpoint.bin")).map_err(text)?.ok_or("there is no checkpoint")?;
    let parts = CheckpointParts::new(folder, 1, 0, 1, true);
    for state in checkpoint.stored_states() {
        let (verified, loaded) = (parts.verify(&state).map_err(text), parts.load(&state).map_err(text));
        assert_eq!(verified.is_ok(), loaded.is_ok());
        loaded?;
    }
    Ok(())
}

/// The runs whose checkpoints are damaged: a method, its model, its data, and keys of a short run.
const RUNS: [(&str, &str, &str); 8] = [
    ("hmc", "logistic", "draws = 100000\nburn_in = 100\n"),
    ("sghmc", "logistic", "step = 0.01\nsteps = 1000000\n"),
    ("ec_sghmc", "logistic", "step = 1e-4\nsteps = 1000000\n"),
    ("dsgld", "logistic", "step = 1e-4\nrounds = 1000000\n"),
    ("svgd", "logistic", "particles = 8\nrounds = 1000000\nsteps = 2\n"),
    ("dsvgd", "logistic", "particles = 8\nrounds = 1000000\nbatch = 20\n"),
    ("u_dsvgd", "logistic", "particles = 8\nrounds = 1000000\nbatch = 20\n"),
    ("adlda", "lda", "rounds = 100000\n"),
];

/// The kinds that are read here.
const NAMES: [&str; 7] = [
    "dense dataset",
    "sparse dataset",
    "corpus",
    "result file",
    "checkpoint",
    "checkpoint, sealed again",
    "part of a checkpoint",
];

fn name_of_run(method: &str) -> String {
    format!("run of {method}, its checkpoint sealed again")
}

/// The names of all kinds.
fn names() -> Vec<String> {
    NAMES.iter().map(|name| (*name).to_owned()).chain(RUNS.iter().map(|(method, ..)| name_of_run(method))).collect()
}

/// A run file with nothing but what must be chosen, and these keys of the method.
fn run_file(method: &str, model: &str, data: &Path, keys: &str) -> String {
    let (data, sizes) = (data.display(), if model == "lda" { "topics = 10\nalpha = 0.1\nbeta = 0.01\n" } else { "" });
    format!(
        "agents = 2\n[data]\nfile = \"{data}\"\n[model]\nname = \"{model}\"\n{sizes}[method]\nname = \"{method}\"\n{keys}[cluster]\ncheckpoint_every = 0.1\n"
    )
}

/// Stops a run once this file of it is there.
fn stop_with(cli: &Cli, arguments: &str, file: &str) {
    let mut running = cli.alone(arguments).start();
    running.wait_until(file, |_| cli.exists(file)).unwrap();
    running.signal(libc::SIGUSR1);
    assert_eq!(running.finish().unwrap().code, 75, "{arguments} is too short");
}

/// All kinds; their files are in this folder.
fn kinds(cli: &Cli) -> Vec<Kind> {
    let mut kinds = Vec::new();
    let fresh = |name: &str| {
        let folder = cli.path(format!("kind-{name}"));
        std::fs::create_dir(&folder).unwrap();
        folder
    };
    let row = |row: usize| format!("{},{}.5,{},{}\n", row % 7, row * 3 % 11, ["n", "s"][row % 2], row % 3);
    cli.write("x.csv", format!("a,b,c,y\n{}", (0..60).map(row).collect::<String>()));
    let row = |row: usize| format!("{} {}:{} {}:0.1\n", row % 3, row % 5 + 1, row + 1, row % 4 + 6);
    cli.write("x.libsvm", (0..60).map(row).collect::<String>());
    let document = |row: usize| format!("3 {}:{} {}:1 {}:2\n", row % 4, row + 1, 4 + row % 3, 7 + row % 5);
    cli.write("c.ldac", (0..40).map(document).collect::<String>());
    cli.write("v.txt", (0..12).map(|word| format!("word{word}\n")).collect::<String>());
    for (name, import, read) in [
        ("dense dataset", "import x.csv --categorical c --test-fraction 0.2 --scaling principal", read_dataset as fn(&Path) -> _),
        ("sparse dataset", "import x.libsvm --task regression --test-fraction 0.2", read_dataset),
        ("corpus", "import counts c.ldac --vocabulary v.txt --test-fraction 0.3", read_corpus),
    ] {
        let folder = fresh(name);
        cli.succeed(&format!("{import} -o x.h5"));
        std::fs::rename(cli.path("x.h5"), folder.join("x.h5")).unwrap();
        let file = "x.h5".into();
        kinds.push(Kind { name: name.into(), folder, file, seal: |_| (), reader: Reader::Here(read), is_hdf5: true });
    }
    std::fs::copy(cli.path("kind-corpus/x.h5"), cli.path("documents.h5")).unwrap();
    let folder = fresh("result file");
    let row = |row: usize| format!("{},{},{}\n", row * 7 % 11, row * 5 % 13, ["no", "yes"][row * 3 / 7 % 2]);
    cli.write("classes.csv", (0..60).map(row).collect::<String>());
    cli.succeed("import classes.csv --test-fraction 0.2 -o classes.h5");
    let classes = cli.path("classes.h5");
    cli.write("result.toml", run_file("hmc", "logistic", &classes, "draws = 50\nburn_in = 50\n"));
    cli.succeed("run result.toml --output result");
    std::fs::copy(cli.path("result/result.h5"), folder.join("result.h5")).unwrap();
    let (name, file, reader) = ("result file".into(), "result.h5".into(), Reader::Here(read_results));
    kinds.push(Kind { name, folder, file, seal: |_| (), reader, is_hdf5: true });
    // States of more than a mebibyte are in parts.
    cli.succeed("data make topics --documents 15000 --words 500 --topics 10 --tokens 100 --test-documents 1 --seed 1 -o c.h5");
    cli.write("parts.toml", run_file("lda", "lda", &cli.path("c.h5"), "rounds = 100000\nburn_in = 40\nthin = 10\n"));
    stop_with(cli, "run parts.toml --output parts", "parts/checkpoint.parts");
    let part = std::fs::read_dir(cli.path("parts/checkpoint.parts")).unwrap().next().unwrap().unwrap().file_name();
    let in_parts = |name: &str, file: String, seal, read| Kind {
        name: name.into(),
        folder: cli.path("parts"),
        file,
        seal,
        reader: Reader::Here(read),
        is_hdf5: false,
    };
    kinds.push(in_parts("checkpoint", "checkpoint.bin".into(), |_| (), read_checkpoint as fn(&Path) -> _));
    kinds.push(in_parts("checkpoint, sealed again", "checkpoint.bin".into(), seal_checkpoint, read_checkpoint));
    kinds.push(in_parts("part of a checkpoint", format!("checkpoint.parts/{}", part.display()), |_| (), read_parts));
    for (method, model, keys) in RUNS {
        let data = if model == "lda" { cli.path("documents.h5") } else { classes.clone() };
        let folder = fresh(method);
        std::fs::write(folder.join("run.toml"), run_file(method, model, &data, keys)).unwrap();
        let run = format!("kind-{method}/run");
        let previous = format!("{run}/checkpoint.previous.bin");
        stop_with(cli, &format!("run kind-{method}/run.toml --output {run}"), &previous);
        // A damaged run would fall back to this one.
        std::fs::remove_file(cli.path(previous)).unwrap();
        let name = name_of_run(method);
        let (file, reader) = ("run/checkpoint.bin".into(), Reader::Program("run run.toml --output run"));
        kinds.push(Kind { name, folder, file, seal: seal_checkpoint, reader, is_hdf5: false });
    }
    kinds
}

/// Damages a file in a few places, most often without changing its length.
fn damage(file: &mut Vec<u8>, random: &mut SmallRng) {
    const EXTREMES: [u64; 8] = [u64::MAX, 1 << 63, u64::MAX >> 1, 1 << 40, 1 << 32, u32::MAX as u64, 0, 1];
    for _ in 0..random.random_range(1..4) {
        if file.is_empty() {
            return;
        }
        let at = random.random_range(0..file.len());
        let end = (at + random.random_range(1..64)).min(file.len());
        match random.random_range(0..12) {
            0..3 => file[at] ^= 1 << random.random_range(0..8),
            3..5 => file[at] = random.random(),
            5..8 => {
                let extreme = EXTREMES[random.random_range(0..EXTREMES.len())].to_le_bytes();
                let length = [1, 2, 4, 8][random.random_range(0..4)].min(file.len() - at);
                file[at..at + length].copy_from_slice(&extreme[..length]);
            }
            8 => file[at..end].fill(0),
            // A huge length as a variable-length integer.
            9 => drop(file.splice(at..at + 1, [255, 255, 255, 255, 255, 255, 255, 255, 127])),
            10 => drop(file.drain(at..end)),
            _ => file.truncate(at),
        }
    }
}

/// What came of reading a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Read,
    Refused,
    Panicked,
    TooMuchMemory,
    TooLong,
    /// The message is empty, very long, or has several lines.
    BadMessage,
    /// The process was ended by this signal.
    Crashed(i32),
}

fn limit(resource: libc::__rlimit_resource_t, most: u64) {
    // SAFETY: a plain structure that outlives the call.
    unsafe { libc::setrlimit(resource, &libc::rlimit { rlim_cur: most, rlim_max: most }) };
}

fn limit_process() {
    limit(libc::RLIMIT_AS, MAX_ADDRESS_SPACE);
    limit(libc::RLIMIT_CPU, MAX_SECONDS);
    limit(libc::RLIMIT_CORE, 0);
}

/// Reads in a child process.
fn read_in_child(read: fn(&Path) -> Result<(), String>, folder: &Path) -> End {
    std::io::stdout().flush().unwrap();
    // SAFETY: this process has one thread, so that the child can do all that it could.
    let child = unsafe { libc::fork() };
    assert!(child >= 0, "cannot fork");
    if child == 0 {
        limit_process();
        LIMIT.store(ALLOCATED.load(Ordering::Relaxed).saturating_add(MAX_BYTES), Ordering::Relaxed);
        let code = match std::panic::catch_unwind(|| read(folder)) {
            Err(_) => PANIC,
            Ok(Ok(())) => READ,
            Ok(Err(message)) if message.is_empty() || message.contains('\n') || message.len() > 2000 => {
                eprintln!("{message}");
                MESSAGE
            }
            Ok(Err(_)) => REFUSED,
        };
        // SAFETY: ends the process without what the parent registered to happen at its end.
        unsafe { libc::_exit(code) };
    }
    let mut status = 0;
    // SAFETY: waits for the child that was just made.
    assert_eq!(unsafe { libc::waitpid(child, &mut status, 0) }, child);
    if libc::WIFSIGNALED(status) {
        return signal(libc::WTERMSIG(status));
    }
    match libc::WEXITSTATUS(status) {
        READ => End::Read,
        REFUSED => End::Refused,
        MEMORY => End::TooMuchMemory,
        MESSAGE => End::BadMessage,
        _ => End::Panicked,
    }
}

fn signal(signal: i32) -> End {
    if [libc::SIGXCPU, libc::SIGKILL].contains(&signal) { End::TooLong } else { End::Crashed(signal) }
}

/// Lets the program resume a run from this checkpoint, until it has replaced it. Returns what it writes to standard error.
fn read_by_program(arguments: &str, folder: &Path, checkpoint: &Path) -> (End, String) {
    let file_number = || std::fs::metadata(checkpoint).ok().map(|file| file.ino());
    let damaged = file_number();
    let messages = folder.join("stderr");
    let mut command = Command::new(PROGRAM);
    command.args(arguments.split(' ')).current_dir(folder).stdin(Stdio::null()).stdout(Stdio::null());
    command.stderr(std::fs::File::create(&messages).unwrap());
    // SAFETY: only system calls.
    unsafe {
        command.pre_exec(|| {
            limit_process();
            Ok(())
        })
    };
    let (mut child, since) = (command.spawn().unwrap(), Instant::now());
    let process = i32::try_from(child.id()).unwrap();
    let mut signals = [(MAX_TIME_TO_STOP, libc::SIGKILL), (MAX_TIME_TO_SAVE, libc::SIGUSR1)].to_vec();
    let status = loop {
        if let Some(status) = child.try_wait().unwrap() {
            break status;
        }
        let is_due = |(time, signal): &mut (Duration, i32)| {
            since.elapsed() >= *time || (*signal == libc::SIGUSR1 && file_number().is_some_and(|number| Some(number) != damaged))
        };
        if let Some((_, signal)) = signals.pop_if(is_due) {
            // SAFETY: a signal to the child, which was not waited for.
            unsafe { libc::kill(process, signal) };
        }
        std::thread::sleep(Duration::from_millis(2));
    };
    let said = String::from_utf8_lossy(&std::fs::read(messages).unwrap()).into_owned();
    let end = match (status.code(), status.signal()) {
        _ if said.contains("panicked") => End::Panicked,
        (_, Some(number)) => signal(number),
        (Some(0 | 75), _) => End::Read,
        _ => End::Refused,
    };
    (end, said)
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let to = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &to)
        } else {
            assert!(std::fs::copy(entry.path(), to).is_ok())
        }
    }
}

/// Damages a kind of file again and again; returns the number of failures.
fn check(kind: &Kind, shared: &Path, seconds: Option<Duration>) -> usize {
    let folder = shared.join("damaged");
    let whole = std::fs::read(kind.folder.join(&kind.file)).unwrap();
    let read = |bytes: &[u8]| {
        let is_program = matches!(kind.reader, Reader::Program(_));
        if is_program || !folder.exists() {
            drop(std::fs::remove_dir_all(&folder));
            copy(&kind.folder, &folder);
        }
        std::fs::write(folder.join(&kind.file), bytes).unwrap();
        match kind.reader {
            Reader::Here(read) => (read_in_child(read, &folder), String::new()),
            Reader::Program(arguments) => read_by_program(arguments, &folder, &folder.join(&kind.file)),
        }
    };
    drop(std::fs::remove_dir_all(&folder));
    let (end, said) = read(&whole);
    assert_eq!(end, End::Read, "{}, undamaged: {said}", kind.name);
    let mut half = whole[..whole.len() / 2].to_vec();
    (kind.seal)(&mut half);
    let (end, said) = read(&half);
    assert_eq!(end, End::Refused, "{}, half of it: {said}", kind.name);
    let rounds = if matches!(kind.reader, Reader::Here(_)) { ROUNDS } else { ROUNDS_OF_PROGRAM };
    let (since, mut round, mut failures) = (Instant::now(), 0, 0);
    let mut ends: Vec<(End, u64)> = Vec::new();
    while seconds.map_or(round < rounds, |seconds| since.elapsed() < seconds) {
        let mut bytes = whole.clone();
        damage(&mut bytes, &mut SmallRng::seed_from_u64(round));
        (kind.seal)(&mut bytes);
        let (end, said) = read(&bytes);
        let is_failure = match end {
            End::Read | End::Refused => false,
            End::Crashed(_) | End::TooLong => !kind.is_hdf5,
            End::Panicked | End::TooMuchMemory | End::BadMessage => true,
        };
        if is_failure || !matches!(end, End::Read | End::Refused) {
            println!("{} round {round}: {end:?} {said}", kind.name);
        }
        if is_failure {
            let kept = std::env::temp_dir().join(format!("damaged-{}-{round}", kind.name.replace(' ', "-")));
            std::fs::write(&kept, &bytes).unwrap();
            println!("the damaged file is {}", kept.display());
        }
        failures += usize::from(is_failure);
        match ends.iter_mut().find(|(other, _)| *other == end) {
            Some((_, count)) => *count += 1,
            None => ends.push((end, 1)),
        }
        round += 1;
    }
    println!("{}: {round} rounds, {ends:?}, {failures} failures", kind.name);
    failures
}

fn main() -> ExitCode {
    let (options, words): (Vec<String>, Vec<String>) = std::env::args().skip(1).partition(|word| word.starts_with('-'));
    let is_chosen = |name: &String| words.is_empty() || words.iter().any(|word| name.contains(word.as_str()));
    let chosen: Vec<String> = names().into_iter().filter(is_chosen).collect();
    if options.iter().any(|option| option == "--list") {
        chosen.iter().for_each(|name| println!("{name}: test"));
        return ExitCode::SUCCESS;
    }
    // Filters that are meant for other tests.
    if chosen.is_empty() {
        return ExitCode::SUCCESS;
    }
    let seconds = std::env::var("MPIBAYES_DAMAGE_SECONDS").ok().map(|text| Duration::from_secs(text.parse().unwrap()));
    let cli = Cli::new();
    let shared = Path::new("/dev/shm");
    let shared = if shared.is_dir() { tempfile::tempdir_in(shared) } else { tempfile::tempdir() }.unwrap();
    let kinds = kinds(&cli);
    assert!(kinds.iter().map(|kind| &kind.name).eq(&names()));
    let failures: usize = kinds.iter().filter(|kind| is_chosen(&kind.name)).map(|kind| check(kind, shared.path(), seconds)).sum();
    if failures == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
