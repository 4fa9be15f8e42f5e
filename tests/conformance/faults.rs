//! Whatever fails, wherever: the whole job ends soon, not with code 0, and one message names rank, agent and cause.

use crate::faulty::{CAUSE, How, Injection, Place, Who, Workload};
use crate::launch::{Launcher, work};
use crate::subject::{Carrier, Subject};
use crate::tally::{Group, Tally};
use crate::worker::{Driver, Script, Step, Work};
use mpibayes::cluster::{EXIT_CODE, Order};

/// A job that a fault ended may take this long, start-up included.
const SOON: f64 = 10.0;

/// One failure in one job.
struct Case<'a> {
    subject: &'a dyn Subject,
    launcher: Launcher,
    driver: Driver,
    threads: usize,
    dedicated: bool,
    injection: Injection,
}

pub fn groups(roster: &[Box<dyn Subject>], tally: &mut Tally) {
    tally.group("faults under threads", |group| {
        for subject in roster {
            let subject = subject.as_ref();
            let Some(workload) = workload(subject, group) else { continue };
            for how in How::ALL {
                for (who, place) in everywhere(subject, &workload) {
                    let injection = Injection { who, place, how, others_sleep: 0.0 };
                    let (launcher, driver) = (Launcher::Alone, Driver::Threads);
                    group.case(Case { subject, launcher, driver, threads: 2, dedicated: false, injection });
                }
            }
        }
    });
    tally.group("faults under simulate", |group| {
        for (subject, how) in roster.iter().zip(How::ALL.into_iter().cycle()) {
            let subject = subject.as_ref();
            let Some(workload) = workload(subject, group) else { continue };
            for (who, place) in everywhere(subject, &workload) {
                let injection = Injection { who, place, how, others_sleep: 0.0 };
                let (launcher, driver) = (Launcher::Alone, Driver::Simulate { ranks: 3 });
                group.case(Case { subject, launcher, driver, threads: 1, dedicated: true, injection });
            }
        }
    });
    tally.group("faults under mpi", |group| {
        let synchronous: Vec<_> = roster.iter().filter(|subject| subject.order() == Order::Posted).collect();
        let mut methods = synchronous.iter().cycle();
        // Every place and kind of failure on 3 ranks, in turn on the agents of each rank and for each method.
        let mut turn = 0;
        for how in How::ALL {
            for kind in 0..11 {
                let Some(subject) = methods.next().map(|subject| subject.as_ref()) else { return };
                let Some(workload) = workload(subject, group) else { continue };
                let rank = turn % 3;
                turn += 1;
                let agents: Vec<u32> = (0..subject.agents()).filter(|&agent| subject.rank_of(agent, 3, false) == rank).collect();
                let Some(&agent) = agents.iter().max_by_key(|agent| workload.get(&Some(**agent)).copied().unwrap_or(0)) else {
                    continue;
                };
                let places = places(Some(agent), &workload).into_iter().chain(places(None, &workload));
                // Six places of an agent, five of the server (its state, the sixth, is tried below).
                let Some((who, place)) = places.into_iter().nth(kind) else { continue };
                let injection = Injection { who, place, how, others_sleep: 0.0 };
                let (launcher, driver) = (Launcher::Mpirun(3), Driver::Mpi);
                group.case(Case { subject, launcher, driver, threads: 1 + kind % 2, dedicated: false, injection });
            }
        }
    });
    tally.group("faults under mpi: other sizes, busy ranks, all at once", |group| {
        let Some(subject) = roster.iter().find(|subject| subject.label() == "elastic").map(AsRef::as_ref) else { return };
        let (driver, server) = (Driver::Mpi, Who::Server);
        let last = Who::Agent(subject.agents() - 1);
        let mut case = |ranks, dedicated, who, place, how, others_sleep| {
            let injection = Injection { who, place, how, others_sleep };
            group.case(Case { subject, launcher: Launcher::Mpirun(ranks), driver, threads: 2, dedicated, injection });
        };
        for (ranks, dedicated) in [(1, false), (2, true), (5, false)] {
            case(ranks, dedicated, last, Place::Working(3), How::Error, 0.0);
            case(ranks, dedicated, last, Place::Settling(3), How::Panic, 0.0);
            case(ranks, dedicated, last, Place::Working(0), How::Exit, 0.0);
            case(ranks, dedicated, server, Place::Working(3), How::Panic, 0.0);
        }
        // The others are in the middle of 20 s of work.
        for how in How::ALL {
            case(3, false, last, Place::Working(0), how, 20.0);
        }
        for how in How::ALL {
            case(3, false, Who::EveryAgent, Place::Working(2), how, 0.0);
        }
        for who in [server, last, Who::EveryAgent] {
            case(3, false, who, Place::Saving, How::Panic, 0.0);
            case(3, false, who, Place::Saving, How::Exit, 0.0);
        }
        for how in How::ALL {
            case(3, false, server, Place::Keeping, how, 0.0);
        }
    });
}

/// The places where one can fail: made, started, the first task, one in the middle, the last, and behind the middle and the last.
fn places(agent: Option<u32>, workload: &Workload) -> Vec<(Who, Place)> {
    let (who, first) = agent.map_or((Who::Server, Place::Starting), |agent| (Who::Agent(agent), Place::Working(0)));
    let tasks = workload.get(&agent).copied().unwrap_or(0);
    let mut places = vec![(who, Place::Making)];
    if tasks > 0 {
        let (middle, last) = (tasks / 2, tasks - 1);
        places.push((who, first));
        for place in [Place::Working(middle), Place::Working(last), Place::Settling(middle), Place::Settling(last)] {
            if !places.contains(&(who, place)) {
                places.push((who, place));
            }
        }
    }
    places
}

fn everywhere(subject: &dyn Subject, workload: &Workload) -> Vec<(Who, Place)> {
    let saving = [(Who::Server, Place::Saving), (Who::Agent(0), Place::Saving), (Who::Server, Place::Keeping)];
    let last = subject.agents() - 1;
    [None, Some(0), Some(last)].into_iter().flat_map(|who| places(who, workload)).chain(saving).collect()
}

fn workload(subject: &dyn Subject, group: &mut Group) -> Option<Workload> {
    match subject.run_faulty(Carrier::Threads { threads: 1 }, None) {
        Ok(workload) => Some(workload),
        Err(fault) => {
            group.check(format!("{} without a fault", subject.label()), Err(fault.to_string()));
            None
        }
    }
}

impl Group<'_> {
    fn case(&mut self, case: Case) {
        let Case { subject, launcher, driver, threads, dedicated, injection } = case;
        let name = format!("{} {launcher:?} {driver:?} {injection:?}", subject.label());

        let step =
            Step { method: subject.label().into(), threads, dedicated, collectives: threads == 2, work: Work::Fail(injection) };
        let script = Script { driver, steps: vec![step], results: self.folder.join("none.jsonl") };
        let ended = work(launcher, &script, self.folder);
        let result = ended.and_then(|ended| {
            let say = |cause: String| Err(format!("{cause}\n(code {}, {:.1} s)\n{}", ended.code, ended.seconds, ended.stderr));
            if ended.code != EXIT_CODE {
                return say(format!("the exit code is not {EXIT_CODE}"));
            }
            if ended.seconds > SOON {
                return say(format!("it took longer than {SOON} s"));
            }
            let faults = ended.faults();
            let [line] = faults.as_slice() else { return say(format!("{} messages", faults.len())) };
            let ranks = match (launcher, driver) {
                (Launcher::Mpirun(ranks), _) | (_, Driver::Simulate { ranks }) => ranks,
                _ => 1,
            };
            let who = |agent| format!("rank {}, agent {agent}, ", subject.rank_of(agent, ranks, dedicated));
            let named = match injection.who {
                Who::Server => line.contains("rank 0, server, "),
                Who::Agent(agent) => line.contains(&who(agent)),
                Who::EveryAgent => (0..subject.agents()).any(|agent| line.contains(&who(agent))),
            };
            let cause = match injection.how {
                How::Error | How::Panic => CAUSE,
                How::Exit => "a call of exit",
            };
            match (named, line.contains(cause) && line.contains(subject.name())) {
                (true, true) => Ok(()),
                (false, _) => say(format!("the message names somebody else: {line}")),
                (true, false) => say(format!("the message names another cause: {line}")),
            }
        });
        self.check(name, result);
    }
}
