//! Saved, stopped and resumed anywhere else: the same bits as a run that was left alone.

use crate::bits::{Reference, agree, batch};
use crate::launch::Launcher;
use crate::subject::{Carrier, Ran, Subject, Until};
use crate::tally::{Tally, same};
use crate::worker::{Driver, Step, Work};
use mpibayes::cluster::Order;
use std::path::PathBuf;

/// Layouts without mpirun, in an order in which neighbours differ.
const LAYOUTS: [Carrier; 6] = [
    Carrier::Threads { threads: 2 },
    Carrier::Simulate { ranks: 3, threads: 1, dedicated: false },
    Carrier::Simulate { ranks: 5, threads: 2, dedicated: true },
    Carrier::Threads { threads: 1 },
    Carrier::Simulate { ranks: 2, threads: 1, dedicated: false },
    Carrier::Simulate { ranks: 1, threads: 2, dedicated: false },
];

pub fn groups(roster: &[Box<dyn Subject>], reference: &Reference, tally: &mut Tally) {
    tally.group("saved after any response and resumed elsewhere", |group| {
        for subject in roster {
            let responses = reference.get(subject.label()).map_or(0, |ran| ran.responses);
            for at in 1..=responses {
                let here = LAYOUTS[at as usize % LAYOUTS.len()];
                let there = LAYOUTS[(at as usize + 1) % LAYOUTS.len()];
                group.check(
                    format!("{}, after {at} responses", subject.label()),
                    twice(subject.as_ref(), reference, here, there, at),
                );
            }
        }
    });
    tally.group("saved after every response, each time resumed elsewhere", |group| {
        for subject in roster {
            group.check(subject.label(), agree(subject.as_ref(), reference, hop_on(subject.as_ref(), &LAYOUTS).map(Some)));
        }
    });
    // Where responses count as they arrive no two layouts agree. In one, a run that is stopped at every response and resumed there is the
    // run that only rests at each: all that matters is in the states.
    tally.group("asynchronous: stopped after every response, or at rest there", |group| {
        for subject in roster.iter().map(AsRef::as_ref).filter(|subject| subject.order() == Order::Arrival) {
            for ranks in [1, 3, 5] {
                let carrier = Carrier::Simulate { ranks, threads: 1, dedicated: ranks == 5 };
                group.check(format!("{}, {ranks} ranks", subject.label()), stops_like_it_rests(subject, carrier));
            }
        }
    });
    tally.group("saved and resumed across threads, mpi and simulate", |group| {
        let chains = [
            (false, [At::Threads, At::Mpi(3), At::Simulate(5), At::Mpi(2)]),
            (false, [At::Mpi(3), At::Simulate(2), At::Mpi(5), At::Threads]),
            (true, [At::Threads, At::Mpi(3), At::Mpi(2), At::Threads]),
        ];
        for (number, (at_once, chain)) in chains.into_iter().enumerate() {
            // Early, in the middle, late; or again as soon as it is resumed, while large states are still on their way.
            let points = |responses: u64| {
                let early = if at_once { responses / 2 } else { 1 };
                let late = if at_once { responses / 2 } else { responses.max(2) - 1 };
                [Until::Responses(early), Until::Responses(responses / 2), Until::Responses(late), Until::End]
            };
            let place = |subject: &dyn Subject| group.folder.join(format!("{number}-{}.state", subject.label()));
            let mut ends: Vec<Result<Ran, String>> = Vec::new();
            for (stage, at) in chain.into_iter().enumerate() {
                let steps = roster.iter().map(|subject| {
                    let path = place(subject.as_ref());
                    let from = Some(path.clone()).filter(|_| stage > 0);
                    let until = points(reference.get(subject.label()).map_or(0, |ran| ran.responses))[stage];
                    step(subject.as_ref(), from, until, path, stage)
                });
                let steps = steps.collect();
                let (launcher, driver) = at.launch();
                ends = batch(group, launcher, driver, steps);
                if stage + 1 < chain.len() {
                    for (subject, end) in roster.iter().zip(&ends) {
                        if let Err(cause) = end {
                            group.check(format!("{} {chain:?}, stage {stage}", subject.label()), Err(cause.clone()));
                        }
                    }
                    if ends.iter().any(Result::is_err) {
                        return;
                    }
                }
            }
            for (subject, end) in roster.iter().zip(ends) {
                group.check(format!("{} {chain:?}", subject.label()), agree(subject.as_ref(), reference, end.map(Some)));
            }
        }
    });
}

#[derive(Clone, Copy, Debug)]
enum At {
    Threads,
    Simulate(u32),
    Mpi(u32),
}

impl At {
    fn launch(self) -> (Launcher, Driver) {
        match self {
            Self::Threads => (Launcher::Alone, Driver::Threads),
            Self::Simulate(ranks) => (Launcher::Alone, Driver::Simulate { ranks }),
            Self::Mpi(ranks) => (Launcher::Mpirun(ranks), Driver::Mpi),
        }
    }
}

fn step(subject: &dyn Subject, from: Option<PathBuf>, until: Until, save: PathBuf, stage: usize) -> Step {
    let save = Some(save).filter(|_| until != Until::End);
    // Threads, dedication and collectives change along the way as well.
    Step {
        method: subject.label().into(),
        threads: 1 + stage % 2,
        dedicated: stage >= 2,
        collectives: stage % 2 == 1,
        work: Work::Carry { from, until, save },
    }
}

fn twice(subject: &dyn Subject, reference: &Reference, here: Carrier, there: Carrier, at: u64) -> Result<(), String> {
    let run = |carrier, saved, until| subject.run(carrier, saved, until).map_err(|fault| fault.to_string());
    let first = run(here, None, Until::Responses(at))?.ok_or("no outcome")?;
    if first.responses < at || first.rests != 1 {
        return Err(format!("came to rest after {} responses, {} times", first.responses, first.rests));
    }
    agree(subject, reference, run(there, Some(&first.saved), Until::End))
}

/// Whether a run that is stopped after every response and goes on in the same way is the one that only rests at each.
pub fn stops_like_it_rests(subject: &dyn Subject, carrier: Carrier) -> Result<(), String> {
    let at_rest = subject.run(carrier, None, Until::EndWithRests).map_err(|fault| fault.to_string())?.ok_or("no outcome")?;
    let stopped = hop_on(subject, &[carrier])?;
    same("responses", &stopped.responses, &at_rest.responses)?;
    same("the bits", &stopped.digest, &at_rest.digest)
}

/// Stops after every response and goes on in the next of these layouts, to the end.
fn hop_on(subject: &dyn Subject, layouts: &[Carrier]) -> Result<Ran, String> {
    let mut saved: Option<Ran> = None;
    for (hop, &carrier) in layouts.iter().cycle().enumerate() {
        let responses = saved.as_ref().map_or(0, |ran| ran.responses);
        let ran = subject.run(carrier, saved.as_ref().map(|ran| ran.saved.as_slice()), Until::Responses(responses + 1));
        let ran = ran.map_err(|fault| format!("hop {hop}: {fault}"))?.ok_or("no outcome")?;
        if ran.finished {
            return Ok(ran);
        }
        if ran.responses == responses {
            return Err(format!("hop {hop} received nothing"));
        }
        saved = Some(ran);
    }
    unreachable!("the layouts go round for ever")
}
