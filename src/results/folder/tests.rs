//! Tests of saving while a run goes on.

#![allow(clippy::unwrap_used, clippy::expect_used)]

use super::*;
use crate::cluster::record::{DrawBlock, Record};
use crate::cluster::{AfterCheckpoint, Checkpoint, Outcome, Recorder, Status};
use crate::models::Part;
use crate::results::existing::result_file;
use crate::results::{POSTERIOR, ResultFile, RunInfo, SampleGroup, SampleKind};
use crossbeam_channel::{Sender, bounded};

const TOTAL: u64 = 10;

/// The folder of a run with one chain of two numbers.
fn begun(place: &tempfile::TempDir) -> RunFolder {
    let mut folder = RunFolder::new(&place.path().join("run"), Duration::ZERO, Reporting::Quiet);
    assert_eq!(folder.claim().unwrap(), None);
    folder.record_run("seed = 1\n", "abc").unwrap();
    folder.begin("a test", None, info(), groups()).unwrap();
    folder
}

fn info() -> RunInfo {
    RunInfo::new("hmc", "logistic", 1, "abc", "seed = 1\n")
}

fn groups() -> Vec<SampleGroup> {
    vec![SampleGroup { name: POSTERIOR.into(), parts: vec![Part::new("weights", &[2])], kind: SampleKind::Chains }]
}

/// The end of a run that has finished.
fn outcome() -> Outcome {
    Outcome { finished: true, seconds: 2.0, traffic: crate::cluster::Traffic::default() }
}

/// Some draws, whose numbers are those of the draws.
fn draws(numbers: std::ops::Range<u64>) -> Record {
    let values: Vec<f64> = numbers.clone().flat_map(|number| [number as f64; 2]).collect();
    let bytes = bytemuck::cast_slice(&values).to_vec();
    Record::Draws(DrawBlock { group: POSTERIOR.into(), chain: 0, first: numbers.start, dim: 2, kind: "f64".into(), bytes })
}

fn progress(done: u64) -> Progress {
    Progress { done, total: TOTAL }
}

fn checkpoint(done: u64) -> Checkpoint {
    let mut checkpoint = Checkpoint::default();
    (checkpoint.progress, checkpoint.finished) = (progress(done), done == TOTAL);
    checkpoint
}

fn status(done: u64) -> Status {
    Status { progress: progress(done), responses: done, seconds: 1.0, longest_response: 0.0 }
}

/// Keeps others from using the HDF5 library until the sender is dropped.
fn hold_hdf5() -> Sender<()> {
    let (holds, is_held) = bounded::<()>(0);
    let (release, released) = bounded::<()>(0);
    std::thread::spawn(move || {
        hdf5::sync::sync(|| {
            holds.send(()).unwrap();
            assert!(released.recv().is_err());
        })
    });
    is_held.recv().unwrap();
    release
}

fn recorded(path: &Path) -> u64 {
    Checkpoint::read(path).unwrap().map_or(0, |saved| saved.recorded_draws.of(POSTERIOR, 0))
}

#[test]
fn a_run_goes_on_while_it_is_saved() {
    let place = tempfile::tempdir().unwrap();
    let mut folder = begun(&place);
    folder.write(vec![draws(0..2)]).unwrap();
    let release = hold_hdf5();
    assert_eq!(folder.on_checkpoint(checkpoint(2)).unwrap(), AfterCheckpoint::Continue);
    // The save cannot progress. What is recorded meanwhile belongs to the next one.
    folder.write(vec![draws(2..3)]).unwrap();
    assert!(!folder.wants_checkpoint(status(3)).unwrap() && !folder.checkpoint().exists());
    drop(release);
    while !folder.wants_checkpoint(status(3)).unwrap() {
        std::thread::sleep(Duration::from_millis(1));
    }
    assert_eq!(recorded(&folder.checkpoint()), 2);
    assert_eq!(folder.on_checkpoint(checkpoint(3)).unwrap(), AfterCheckpoint::Continue);
    folder.write(vec![draws(3..5)]).unwrap();
    // The end of a run waits for its last checkpoint.
    folder.on_checkpoint(checkpoint(TOTAL)).unwrap();
    assert_eq!((recorded(&folder.checkpoint()), recorded(&folder.previous_checkpoint())), (3, 2));
    let outcome = outcome();
    folder.end(&outcome).unwrap();
    assert!(!folder.checkpoint().exists() && !folder.previous_checkpoint().exists());
    let file = ResultFile::open(&result_file(folder.path())).unwrap();
    assert!(file.info().state.finished);
    let values = file.samples(POSTERIOR).unwrap().values.matrix();
    assert_eq!(values.column(0).to_vec(), [0.0, 1.0, 2.0, 3.0, 4.0]);
}

#[test]
fn a_save_that_fails_is_tried_again_with_all_draws() {
    let place = tempfile::tempdir().unwrap();
    let mut folder = begun(&place);
    folder.write(vec![draws(0..2)]).unwrap();
    let obstacle = folder.path().join("result.h5.partial");
    fs::create_dir(&obstacle).unwrap();
    folder.on_checkpoint(checkpoint(2)).unwrap();
    folder.write(vec![draws(2..3)]).unwrap();
    folder.complete_save(true).unwrap();
    assert!(folder.failed_saves.is_some() && !folder.checkpoint().exists());
    assert!(!folder.wants_checkpoint(status(3)).unwrap(), "it waits for some seconds");
    fs::remove_dir(&obstacle).unwrap();
    folder.on_checkpoint(checkpoint(3)).unwrap();
    folder.complete_save(true).unwrap();
    assert!(folder.failed_saves.is_none());
    assert_eq!(recorded(&folder.checkpoint()), 3);
    let events: Vec<EventKind> = events::read(folder.path()).into_iter().map(|event| event.event).collect();
    assert_eq!(events, [EventKind::Began, EventKind::NotSaved, EventKind::SavedAgain]);
}

#[test]
fn results_are_written_once_the_file_system_allows_it() {
    let place = tempfile::tempdir().unwrap();
    let mut folder = begun(&place);
    folder.write(vec![draws(0..2)]).unwrap();
    folder.on_checkpoint(checkpoint(TOTAL)).unwrap();
    let obstacle = folder.path().join("result.h5.partial");
    fs::create_dir(&obstacle).unwrap();
    let mends = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(200));
        fs::remove_dir(&obstacle).unwrap();
    });
    let outcome = outcome();
    assert!(folder.write_draws_of_completed_run(&outcome).unwrap());
    mends.join().unwrap();
    folder.end(&outcome).unwrap();
    assert_eq!(folder.open_results().unwrap().lengths(POSTERIOR).unwrap(), [2]);
}

#[test]
fn a_run_that_is_stopped_after_its_last_round_is_completed_by_the_next_job() {
    let place = tempfile::tempdir().unwrap();
    let mut folder = begun(&place);
    let began = folder.path().to_owned();
    folder.write(vec![draws(0..2)]).unwrap();
    folder.on_checkpoint(checkpoint(2)).unwrap();
    folder.complete_save(true).unwrap();
    folder.write(vec![draws(2..5)]).unwrap();
    assert!(folder.write_draws_of_completed_run(&outcome()).unwrap());
    folder.end_stage(Stage::Gradients, true);
    assert!(!folder.was_stopped());
    folder.end_stage(Stage::LogLikelihoods, false);
    assert!(folder.was_stopped());
    folder.end(&outcome()).unwrap();
    let file = folder.open_results().unwrap();
    let created_at = file.info().created_at.clone();
    assert!(!file.info().state.finished && folder.checkpoint().exists());
    drop((file, folder));

    let mut folder = RunFolder::new(&began, Duration::ZERO, Reporting::Quiet);
    folder.claim().unwrap();
    let saved = Checkpoint::read(&folder.checkpoint()).unwrap();
    let later = RunInfo { created_at: "later".into(), ..info() };
    folder.begin("a test", saved.as_ref(), later, groups()).unwrap();
    folder.write(vec![draws(2..5)]).unwrap();
    folder.end(&outcome()).unwrap();
    let file = folder.open_results().unwrap();
    assert!(file.info().state.finished);
    assert_eq!((&file.info().created_at, file.lengths(POSTERIOR).unwrap()), (&created_at, vec![5]));
    let events: Vec<EventKind> = file.events().into_iter().map(|event| event.event).collect();
    assert_eq!(events, [EventKind::Began, EventKind::Stopped, EventKind::Resumed, EventKind::Finished]);
}

#[test]
fn what_the_saving_thread_finds_wrong_ends_the_run() {
    let place = tempfile::tempdir().unwrap();
    let mut folder = begun(&place);
    // A draw is missing.
    folder.write(vec![draws(1..2)]).unwrap();
    folder.on_checkpoint(checkpoint(2)).unwrap();
    let message = folder.on_checkpoint(checkpoint(3)).unwrap_err().to_string();
    assert!(message.contains("gap before draw 1"), "{message}");
}
