//! The same bits under every driver, for any number of ranks and threads, rank 0 dedicated or not.

use crate::launch::{Launcher, work};
use crate::subject::{Carrier, Ran, Subject, Until};
use crate::tally::{Group, Tally, same};
use crate::worker::{Became, Driver, Script, Step, Work};
use mpibayes::cluster::Order;
use std::collections::BTreeMap;

/// What each method does under `threads` with one thread, by label.
pub type Reference = BTreeMap<&'static str, Ran>;

pub fn reference(roster: &[Box<dyn Subject>], tally: &mut Tally) -> Reference {
    let mut reference = Reference::new();
    for subject in roster {
        match subject.run(Carrier::Threads { threads: 1 }, None, Until::End) {
            Ok(Some(ran)) => drop(reference.insert(subject.label(), ran)),
            Ok(None) => unreachable!("threads is always rank 0"),
            Err(fault) => tally.group("the undisturbed run", |group| group.check(subject.label(), Err(fault.to_string()))),
        }
    }
    reference
}

pub fn groups(roster: &[Box<dyn Subject>], reference: &Reference, tally: &mut Tally) {
    tally.group("same bits under threads", |group| {
        for subject in roster {
            for threads in [1, 2, 4] {
                for until in [Until::End, Until::EndWithRests] {
                    let ran = subject.run(Carrier::Threads { threads }, None, until);
                    let result = agree(subject.as_ref(), reference, ran.map_err(|fault| fault.to_string()));
                    group.check(format!("{}, {threads} threads, {until:?}", subject.label()), result);
                }
            }
        }
    });
    tally.group("same bits under simulate", |group| {
        for subject in roster {
            for ranks in [1, 2, 3, 5, 8] {
                for (threads, dedicated) in [(1, false), (2, false), (1, true)] {
                    for until in [Until::End, Until::EndWithRests] {
                        let carrier = Carrier::Simulate { ranks, threads, dedicated };
                        let case =
                            format!("{}, {ranks} ranks, {threads} threads, dedicated {dedicated}, {until:?}", subject.label());
                        let ran = subject.run(carrier, None, until).map_err(|fault| fault.to_string());
                        let again = subject.run(carrier, None, until).map_err(|fault| fault.to_string());
                        let digest =
                            |ran: &Result<Option<Ran>, String>| ran.as_ref().ok()?.as_ref().map(|ran| ran.digest.clone());
                        let repeats = same("the second run's bits", &digest(&again), &digest(&ran));
                        group.check(case, agree(subject.as_ref(), reference, ran).and(repeats));
                    }
                }
            }
        }
    });
    // The sums of the large bodies must have been cut, or the cases above did not see what they are for.
    tally.group("large sums are sliced", |group| {
        for subject in roster.iter().filter(|subject| ["spread sliced", "counts sliced", "average"].contains(&subject.label())) {
            let carrier = Carrier::Simulate { ranks: 3, threads: 1, dedicated: false };
            let slices = subject
                .run(carrier, None, Until::End)
                .ok()
                .flatten()
                .map_or(0, |ran| ran.traffic.0.get("slices of sums").map_or(0, |flow| flow.messages));
            let requests = reference.get(subject.label()).map_or(u64::MAX, |ran| ran.responses);
            let result = if slices > 4 * requests { Ok(()) } else { Err(format!("{slices} slices in {requests} requests")) };
            group.check(subject.label(), result);
        }
    });
    for ranks in [1, 2, 3, 5] {
        tally.group(&format!("same bits under mpi, {ranks} ranks, all runs in one job"), |group| {
            // (threads, dedicated, collectives, until): each method four times, twice where there is one rank only.
            let layouts = [
                (1, false, false, Until::End),
                (2, false, true, Until::EndWithRests),
                (1, true, true, Until::End),
                (2, true, false, Until::EndWithRests),
            ];
            let layouts = &layouts[..if ranks == 1 { 2 } else { 4 }];
            let cases: Vec<_> =
                roster.iter().flat_map(|subject| layouts.iter().map(move |layout| (subject.as_ref(), *layout))).collect();
            let steps = cases.iter().map(|&(subject, (threads, dedicated, collectives, until))| Step {
                method: subject.label().into(),
                threads,
                dedicated,
                collectives,
                work: Work::Carry { from: None, until, save: None },
            });
            let results = batch(group, Launcher::Mpirun(ranks), Driver::Mpi, steps.collect());
            for ((subject, (threads, dedicated, collectives, until)), ran) in cases.into_iter().zip(results) {
                let label = subject.label();
                let case = format!("{label}, {threads} threads, dedicated {dedicated}, collectives {collectives}, {until:?}");
                group.check(case, agree(subject, reference, ran.map(Some)));
            }
        });
    }
}

/// Runs these steps in one worker; a result for each, an error for those that it did not come to.
pub fn batch(group: &Group, launcher: Launcher, driver: Driver, steps: Vec<Step>) -> Vec<Result<Ran, String>> {
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
        // A job that failed behind its last step has failed all the same.
        ran.truncate(count.saturating_sub(1));
        ran.push(Err(cause.clone()));
    }
    ran.resize_with(count, || Err("not reached".into()));
    ran
}

/// Whether a run that went to its end did what the undisturbed run did.
pub fn agree(subject: &dyn Subject, reference: &Reference, ran: Result<Option<Ran>, String>) -> Result<(), String> {
    let ran = ran?.ok_or("rank 0 had no outcome")?;
    let reference = reference.get(subject.label()).ok_or("there is no undisturbed run to compare with")?;
    same("finished", &ran.finished, &true)?;
    same("responses", &ran.responses, &reference.responses)?;
    same("the draws written", &ran.outline, &reference.outline)?;
    match subject.order() {
        Order::Posted => same("the bits", &ran.digest, &reference.digest),
        // Asynchronous methods check in themselves that nothing was lost.
        Order::Arrival => Ok(()),
    }
}
