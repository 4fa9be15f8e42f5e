//! Checkpoints: a run that is saved, stopped and resumed under any driver has the bits of an uninterrupted run.

use crate::bits::{agree, batch, undisturbed};
use crate::launch::Launcher;
use crate::roster;
use crate::subject::{Driver, Ran, Subject, Until};
use crate::suite::{Group, Suite, same};
use crate::worker::{Step, Work, WorkerDriver};
use mpibayes::cluster::Order;
use std::path::PathBuf;

/// Layouts without mpirun; consecutive ones differ.
const LAYOUTS: [Driver; 6] = [
    Driver::Threads { threads: 2 },
    Driver::Simulate { ranks: 3, threads: 1, dedicated: false },
    Driver::Simulate { ranks: 5, threads: 2, dedicated: true },
    Driver::Threads { threads: 1 },
    Driver::Simulate { ranks: 2, threads: 1, dedicated: false },
    Driver::Simulate { ranks: 1, threads: 2, dedicated: false },
];

pub fn register(suite: &mut Suite) {
    for subject in roster() {
        suite.test(format!("saved after any response and resumed elsewhere: {}", subject.label()), move |group| {
            let responses = undisturbed(subject).map_or(0, |ran| ran.responses);
            for at in 1..=responses {
                let first = LAYOUTS[at as usize % LAYOUTS.len()];
                let second = LAYOUTS[(at as usize + 1) % LAYOUTS.len()];
                group.check(format!("after {at} responses"), saved_and_resumed(subject, first, second, at));
            }
        });
    }
    for subject in roster() {
        suite.test(format!("saved after every response, each time resumed elsewhere: {}", subject.label()), move |group| {
            group.check(subject.label(), agree(subject, hop_on(subject, &LAYOUTS).map(Some)));
        });
    }
    // Asynchronous runs differ between layouts. In one layout, a run that is stopped and resumed after every response must equal the run
    // that only takes a checkpoint after each: states hold everything that matters.
    for subject in roster().filter(|subject| subject.order() == Order::Arrival) {
        suite.test(format!("stopping after every response changes nothing: {}", subject.label()), move |group| {
            for ranks in [1, 3, 5] {
                let driver = Driver::Simulate { ranks, threads: 1, dedicated: ranks == 5 };
                group.check(format!("{ranks} ranks"), stopping_equals_checkpoints(subject, driver));
            }
        });
    }
    for (at_once, chain) in [
        (false, [At::Threads, At::Mpi(3), At::Simulate(5), At::Mpi(2)]),
        (false, [At::Mpi(3), At::Simulate(2), At::Mpi(5), At::Threads]),
        (true, [At::Threads, At::Mpi(3), At::Mpi(2), At::Threads]),
    ] {
        suite.test(format!("saved and resumed across drivers: {chain:?}"), move |group| across_drivers(group, at_once, chain));
    }
}

/// Saves and resumes all methods from one driver to the next.
fn across_drivers(group: &mut Group, at_once: bool, chain: [At; 4]) {
    // Early, in the middle, late; or again as soon as it is resumed, while large states are still being sent.
    let points = |responses: u64| {
        let early = if at_once { responses / 2 } else { 1 };
        let late = if at_once { responses / 2 } else { responses.max(2) - 1 };
        [Until::Responses(early), Until::Responses(responses / 2), Until::Responses(late), Until::End]
    };
    let mut ends: Vec<Result<Ran, String>> = Vec::new();
    for (stage, at) in chain.into_iter().enumerate() {
        let steps = roster().map(|subject| {
            let path = group.folder.join(format!("{}.state", subject.label()));
            let from = Some(path.clone()).filter(|_| stage > 0);
            let until = points(undisturbed(subject).map_or(0, |ran| ran.responses))[stage];
            step(subject, from, until, path, stage)
        });
        let steps = steps.collect();
        let (launcher, driver) = at.launch();
        ends = batch(group, launcher, driver, steps);
        if stage + 1 < chain.len() {
            for (subject, end) in roster().zip(&ends) {
                if let Err(cause) = end {
                    group.check(format!("{}, stage {stage}", subject.label()), Err(cause.clone()));
                }
            }
            if ends.iter().any(Result::is_err) {
                return;
            }
        }
    }
    for (subject, end) in roster().zip(ends) {
        group.check(subject.label(), agree(subject, end.map(Some)));
    }
}

#[derive(Clone, Copy, Debug)]
enum At {
    Threads,
    Simulate(u32),
    Mpi(u32),
}

impl At {
    fn launch(self) -> (Launcher, WorkerDriver) {
        match self {
            Self::Threads => (Launcher::Alone, WorkerDriver::Threads),
            Self::Simulate(ranks) => (Launcher::Alone, WorkerDriver::Simulate { ranks }),
            Self::Mpi(ranks) => (Launcher::Mpirun(ranks), WorkerDriver::Mpi),
        }
    }
}

fn step(subject: &dyn Subject, from: Option<PathBuf>, until: Until, save: PathBuf, stage: usize) -> Step {
    let save = Some(save).filter(|_| until != Until::End);
    // The number of threads, `dedicated` and collectives change as well.
    Step {
        method: subject.label().into(),
        threads: 1 + stage % 2,
        dedicated: stage >= 2,
        collectives: stage % 2 == 1,
        work: Work::Carry { from, until, save },
    }
}

fn saved_and_resumed(subject: &dyn Subject, first: Driver, second: Driver, at: u64) -> Result<(), String> {
    let run = |driver, saved, until| subject.run(driver, saved, until).map_err(|fault| fault.to_string());
    let saved = run(first, None, Until::Responses(at))?.ok_or("no outcome")?;
    if saved.responses < at || saved.checkpoints != 1 {
        return Err(format!("took {} checkpoints, the last after {} responses", saved.checkpoints, saved.responses));
    }
    agree(subject, run(second, Some(&saved.saved), Until::End))
}

/// Compares a run that is stopped and resumed after every response with one that only takes a checkpoint after each.
pub fn stopping_equals_checkpoints(subject: &dyn Subject, driver: Driver) -> Result<(), String> {
    let at_rest = subject.run(driver, None, Until::EndWithCheckpoints).map_err(|fault| fault.to_string())?.ok_or("no outcome")?;
    let stopped = hop_on(subject, &[driver])?;
    same("responses", &stopped.responses, &at_rest.responses)?;
    same("the bits", &stopped.digest, &at_rest.digest)
}

/// Stops after every response and resumes in the next of these layouts, to the end.
fn hop_on(subject: &dyn Subject, layouts: &[Driver]) -> Result<Ran, String> {
    let mut saved: Option<Ran> = None;
    for (hop, &driver) in layouts.iter().cycle().enumerate() {
        let responses = saved.as_ref().map_or(0, |ran| ran.responses);
        let ran = subject.run(driver, saved.as_ref().map(|ran| ran.saved.as_slice()), Until::Responses(responses + 1));
        let ran = ran.map_err(|fault| format!("hop {hop}: {fault}"))?.ok_or("no outcome")?;
        if ran.finished {
            return Ok(ran);
        }
        if ran.responses == responses {
            return Err(format!("hop {hop} received nothing"));
        }
        saved = Some(ran);
    }
    unreachable!("the layouts repeat forever")
}
