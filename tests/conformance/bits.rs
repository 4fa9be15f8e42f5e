//! The same bits under every driver, for any number of ranks and threads, rank 0 dedicated or not.

use crate::launch::{Launcher, work};
use crate::roster;
use crate::subject::{Driver, Ran, Subject, Until};
use crate::suite::{Group, Suite, same};
use crate::worker::{Became, Script, Step, Work, WorkerDriver};
use mpibayes::cluster::Order;
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

/// The run of a method under `threads` with one thread, without interruption: the reference for all others. It runs once per process.
pub fn undisturbed(subject: &dyn Subject) -> Result<&'static Ran, String> {
    type Runs = BTreeMap<&'static str, Result<&'static Ran, String>>;
    static RUNS: Mutex<Runs> = Mutex::new(BTreeMap::new());
    let run = || match subject.run(Driver::Threads { threads: 1 }, None, Until::End) {
        Ok(Some(ran)) => Ok(&*Box::leak(Box::new(ran))),
        Ok(None) => Err("rank 0 had no outcome".to_owned()),
        Err(fault) => Err(format!("without interruption: {fault}")),
    };
    RUNS.lock().unwrap_or_else(PoisonError::into_inner).entry(subject.label()).or_insert_with(run).clone()
}

pub fn register(suite: &mut Suite) {
    for subject in roster() {
        suite.test(format!("same bits under threads: {}", subject.label()), move |group| {
            for threads in [1, 2, 4] {
                for until in [Until::End, Until::EndWithCheckpoints] {
                    let ran = subject.run(Driver::Threads { threads }, None, until);
                    let result = agree(subject, ran.map_err(|fault| fault.to_string()));
                    group.check(format!("{threads} threads, {until:?}"), result);
                }
            }
        });
    }
    for subject in roster() {
        suite.test(format!("same bits under simulate: {}", subject.label()), move |group| {
            for ranks in [1, 2, 3, 5, 8] {
                for (threads, dedicated) in [(1, false), (2, false), (1, true)] {
                    for until in [Until::End, Until::EndWithCheckpoints] {
                        let driver = Driver::Simulate { ranks, threads, dedicated };
                        let case = format!("{ranks} ranks, {threads} threads, dedicated {dedicated}, {until:?}");
                        let ran = subject.run(driver, None, until).map_err(|fault| fault.to_string());
                        let again = subject.run(driver, None, until).map_err(|fault| fault.to_string());
                        let digest =
                            |ran: &Result<Option<Ran>, String>| ran.as_ref().ok()?.as_ref().map(|ran| ran.digest.clone());
                        let repeats = same("the second run's bits", &digest(&again), &digest(&ran));
                        group.check(case, agree(subject, ran).and(repeats));
                    }
                }
            }
        });
    }
    // The sums of the large bodies must be added in parts, or the tests above would not cover that. A whole sum takes a message of each rank
    // but one.
    for subject in roster().filter(|subject| ["spread sliced", "counts sliced", "average"].contains(&subject.label())) {
        suite.test(format!("large sums are added in parts: {}", subject.label()), move |group| {
            let driver = Driver::Simulate { ranks: 3, threads: 1, dedicated: false };
            let parts = subject
                .run(driver, None, Until::End)
                .ok()
                .flatten()
                .map_or(0, |ran| ran.traffic.0.get("parts of sums").map_or(0, |flow| flow.messages));
            let requests = undisturbed(subject).map_or(u64::MAX / 4, |ran| ran.responses);
            let result = if parts > 2 * requests { Ok(()) } else { Err(format!("{parts} parts in {requests} requests")) };
            group.check(subject.label(), result);
        });
    }
    for ranks in [1, 2, 3, 5] {
        suite.test(format!("same bits under mpi: {ranks} ranks, all methods in one job"), move |group| {
            // (threads, dedicated, collectives, until): each method four times, or twice on a single rank.
            let layouts = [
                (1, false, false, Until::End),
                (2, false, true, Until::EndWithCheckpoints),
                (1, true, true, Until::End),
                (2, true, false, Until::EndWithCheckpoints),
            ];
            let layouts = &layouts[..if ranks == 1 { 2 } else { 4 }];
            let cases: Vec<_> = roster().flat_map(|subject| layouts.iter().map(move |layout| (subject, *layout))).collect();
            let steps = cases.iter().map(|&(subject, (threads, dedicated, collectives, until))| Step {
                method: subject.label().into(),
                threads,
                dedicated,
                collectives,
                work: Work::Carry { from: None, until, save: None },
            });
            let results = batch(group, Launcher::Mpirun(ranks), WorkerDriver::Mpi, steps.collect());
            for ((subject, (threads, dedicated, collectives, until)), ran) in cases.into_iter().zip(results) {
                let label = subject.label();
                let case = format!("{label}, {threads} threads, dedicated {dedicated}, collectives {collectives}, {until:?}");
                group.check(case, agree(subject, ran.map(Some)));
            }
        });
    }
}

/// Runs these steps in one worker; a result for each, an error for those that it did not reach.
pub fn batch(group: &Group, launcher: Launcher, driver: WorkerDriver, steps: Vec<Step>) -> Vec<Result<Ran, String>> {
    let count = steps.len();
    let results = group.folder.join("results.jsonl");
    drop(std::fs::remove_file(&results));
    let ended = work(launcher, &Script { driver, steps, results: results.clone() }, group.folder);
    let mut ran: Vec<Result<Ran, String>> = std::fs::read_to_string(&results)
        .unwrap_or_default()
        .lines()
        .map(|line| match serde_json::from_str(line) {
            Ok(Became::Ran(ran)) => Ok(ran),
            other => Err(format!("an unexpected result: {other:?}")),
        })
        .collect();
    let failure = match ended {
        Ok(ended) if ended.code == 0 => None,
        Ok(ended) => Some(format!("the worker ended with code {}\n{}", ended.code, ended.stderr)),
        Err(cause) => Some(cause),
    };
    if let Some(cause) = &failure {
        // A job that fails after its last step has failed all the same.
        ran.truncate(count.saturating_sub(1));
        ran.push(Err(cause.clone()));
    }
    ran.resize_with(count, || Err("not reached".into()));
    ran
}

/// Compares a run that went to its end with the undisturbed run of the method.
pub fn agree(subject: &dyn Subject, ran: Result<Option<Ran>, String>) -> Result<(), String> {
    agree_with(undisturbed(subject)?, subject.order(), ran)
}

/// Compares a run that went to its end with another one.
pub fn agree_with(reference: &Ran, order: Order, ran: Result<Option<Ran>, String>) -> Result<(), String> {
    let ran = ran?.ok_or("rank 0 had no outcome")?;
    same("finished", &ran.finished, &true)?;
    same("responses", &ran.responses, &reference.responses)?;
    same("the draws written", &ran.outline, &reference.outline)?;
    match order {
        Order::Posted => same("the bits", &ran.digest, &reference.digest),
        // Asynchronous methods check in themselves that nothing was lost.
        Order::Arrival => Ok(()),
    }
}
