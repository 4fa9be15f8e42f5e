//! Faults: wherever something fails, the whole job ends soon with an error code and one message that names rank, agent and cause.

use crate::faulty::{CAUSE, How, Injection, Place, Who, Workload};
use crate::launch::{Launcher, work};
use crate::roster;
use crate::subject::{Driver, Subject};
use crate::suite::{Group, Suite};
use crate::worker::{Script, Step, Work, WorkerDriver};
use mpibayes::cluster::{EXIT_CODE, Order};
use rayon::prelude::*;
use std::path::Path;

/// The most seconds of a job that ends with a fault, including its start.
const SOON: f64 = 10.0;

/// Jobs that run at the same time: most of a job's time is spent in its launcher.
const AT_ONCE: usize = 3;

/// One failure in one job.
struct Case<'a> {
    subject: &'a dyn Subject,
    launcher: Launcher,
    driver: WorkerDriver,
    threads: usize,
    dedicated: bool,
    injection: Injection,
}

pub fn register(suite: &mut Suite) {
    for subject in roster() {
        suite.test(format!("faults under threads: {}", subject.label()), move |group| {
            let mut cases = Vec::new();
            let Some(workload) = workload(subject, group) else { return };
            for how in How::ALL {
                for (who, place) in everywhere(subject, &workload) {
                    let injection = Injection { who, place, how, others_sleep: 0.0 };
                    let (launcher, driver) = (Launcher::Alone, WorkerDriver::Threads);
                    cases.push(Case { subject, launcher, driver, threads: 2, dedicated: false, injection });
                }
            }
            group.cases(&cases);
        });
    }
    for (subject, how) in roster().zip(How::ALL.into_iter().cycle()) {
        suite.test(format!("faults under simulate: {}", subject.label()), move |group| {
            let mut cases = Vec::new();
            let Some(workload) = workload(subject, group) else { return };
            for (who, place) in everywhere(subject, &workload) {
                let injection = Injection { who, place, how, others_sleep: 0.0 };
                let (launcher, driver) = (Launcher::Alone, WorkerDriver::Simulate { ranks: 3 });
                cases.push(Case { subject, launcher, driver, threads: 1, dedicated: true, injection });
            }
            group.cases(&cases);
        });
    }
    suite.test("faults under mpi: every place and kind", under_mpi);
    suite.test("faults in helper threads", |group| {
        let Some(subject) = roster().find(|subject| subject.label() == "elastic") else { return };
        let mut cases = Vec::new();
        for how in How::ON_HELPERS {
            for (who, place) in [
                (Who::Agent(3), Place::Creating),
                (Who::Agent(3), Place::Working(4)),
                (Who::Agent(0), Place::Following(4)),
                (Who::Server, Place::Working(4)),
            ] {
                let injection = Injection { who, place, how, others_sleep: 0.0 };
                for (launcher, driver) in [
                    (Launcher::Alone, WorkerDriver::Threads),
                    (Launcher::Alone, WorkerDriver::Simulate { ranks: 3 }),
                    (Launcher::Mpirun(3), WorkerDriver::Mpi),
                ] {
                    // If several threads are at work, an exit does not reveal which one was helped: hence one worker, and the server
                    // only if everything runs on one thread.
                    if how == How::HelperExit && who == Who::Server && !matches!(driver, WorkerDriver::Simulate { .. }) {
                        continue;
                    }
                    cases.push(Case { subject, launcher, driver, threads: 1, dedicated: false, injection });
                }
            }
        }
        group.cases(&cases);
    });
    suite.test("faults under mpi: other sizes, busy ranks, all agents at once", |group| {
        let Some(subject) = roster().find(|subject| subject.label() == "elastic") else { return };
        let (driver, server) = (WorkerDriver::Mpi, Who::Server);
        let last = Who::Agent(subject.agents() - 1);
        let mut cases = Vec::new();
        let mut case = |ranks, dedicated, who, place, how, others_sleep| {
            let injection = Injection { who, place, how, others_sleep };
            cases.push(Case { subject, launcher: Launcher::Mpirun(ranks), driver, threads: 2, dedicated, injection });
        };
        for (ranks, dedicated) in [(1, false), (2, true), (5, false)] {
            case(ranks, dedicated, last, Place::Working(3), How::Error, 0.0);
            case(ranks, dedicated, last, Place::Following(3), How::Panic, 0.0);
            case(ranks, dedicated, last, Place::Working(0), How::Exit, 0.0);
            case(ranks, dedicated, server, Place::Working(3), How::Panic, 0.0);
        }
        // The other agents are busy for 20 s.
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
            case(3, false, server, Place::Recording, how, 0.0);
        }
        group.cases(&cases);
    });
}

/// Every place and kind of failure on 3 ranks, in turn on the agents of each rank; every method has one in an agent and one in its
/// server at least. Asynchronous methods have those that every run reaches, each in one way.
fn under_mpi(group: &mut Group) {
    let synchronous: Vec<_> = roster().filter(|subject| subject.order() == Order::Posted).collect();
    let workloads: Vec<_> = synchronous.iter().filter_map(|subject| workload(*subject, group)).collect();
    if workloads.len() < synchronous.len() {
        return;
    }
    let mut cases = Vec::new();
    for subject in roster().filter(|subject| subject.order() == Order::Arrival) {
        let Some(workload) = workload(subject, group) else { return };
        for ((who, place), how) in everywhere(subject, &workload).into_iter().zip(How::ALL.into_iter().cycle()) {
            let injection = Injection { who, place, how, others_sleep: 0.0 };
            let (launcher, driver) = (Launcher::Mpirun(3), WorkerDriver::Mpi);
            cases.push(Case { subject, launcher, driver, threads: 1, dedicated: false, injection });
        }
    }
    for in_server in [false, true] {
        let (mut failures, mut left) = (Vec::new(), synchronous.len());
        while left > 0 || failures.len() < How::ALL.len() * PLACES {
            let turn = failures.len();
            let (number, how) = (turn % PLACES, How::ALL[turn / PLACES % How::ALL.len()]);
            // The next method that has such a place, those first that have not failed yet.
            let mut order: Vec<_> = (0..synchronous.len()).map(|further| (turn + further) % synchronous.len()).collect();
            order.sort_by_key(|at| failures.contains(at));
            let found = order.into_iter().find_map(|at| {
                let who = if in_server { None } else { Some(busiest(synchronous[at], &workloads[at], turn as u32 % 3)?) };
                let place = places(who, &workloads[at])[number]?;
                Some((at, Injection { who: who.map_or(Who::Server, Who::Agent), place, how, others_sleep: 0.0 }))
            });
            let Some((at, injection)) = found else {
                return group.check(format!("place {number}, in the server: {in_server}"), Err("no method has it".into()));
            };
            failures.push(at);
            left = (0..synchronous.len()).filter(|at| !failures.contains(at)).count();
            if failures.len() > 4 * synchronous.len() {
                return group.check("every method fails", Err(format!("{left} methods were not reached")));
            }
            let (launcher, driver) = (Launcher::Mpirun(3), WorkerDriver::Mpi);
            cases.push(Case { subject: synchronous[at], launcher, driver, threads: 1 + turn % 2, dedicated: false, injection });
        }
    }
    group.cases(&cases);
}

/// The agent of this rank that has most to do.
fn busiest(subject: &dyn Subject, workload: &Workload, rank: u32) -> Option<u32> {
    let here = (0..subject.agents()).filter(|&agent| subject.rank_of(agent, 3, false) == rank);
    here.max_by_key(|&agent| workload.get(&Some(agent)).copied().unwrap_or(0))
}

/// How many kinds of places there are.
const PLACES: usize = 6;

/// The places where one can fail, by kind: creation, start (or first task), a task in the middle, the last task, and after
/// these two. Nothing where one has too little to do for the kind.
fn places(agent: Option<u32>, workload: &Workload) -> [Option<Place>; PLACES] {
    let first = if agent.is_some() { Place::Working(0) } else { Place::Starting };
    let tasks = workload.get(&agent).copied().unwrap_or(0);
    let (middle, last) = (tasks / 2, tasks.saturating_sub(1));
    let places = [
        (true, Place::Creating),
        (tasks > 0 || agent.is_none(), first),
        (tasks > 0 && Place::Working(middle) != first, Place::Working(middle)),
        (tasks > 0 && Place::Working(last) != first && last != middle, Place::Working(last)),
        (tasks > 0, Place::Following(middle)),
        (tasks > 0 && last != middle, Place::Following(last)),
    ];
    places.map(|(exists, place)| exists.then_some(place))
}

fn everywhere(subject: &dyn Subject, workload: &Workload) -> Vec<(Who, Place)> {
    let saving = [(Who::Server, Place::Saving), (Who::Agent(0), Place::Saving), (Who::Server, Place::Recording)];
    // A method of one agent has no other.
    let last = Some(subject.agents() - 1).filter(|&last| last > 0);
    let all = [Some(None), Some(Some(0)), last.map(Some)].into_iter().flatten();
    let (sure, later) = match subject.order() {
        Order::Posted => (workload.clone(), Vec::new()),
        Order::Arrival => {
            let first = |(&who, &tasks): (&Option<u32>, &u64)| (who, if who.is_some() { tasks.min(1) } else { tasks });
            (workload.iter().map(first).collect(), any_agent(subject, workload))
        }
    };
    let working = all.flat_map(|agent| {
        let who = agent.map_or(Who::Server, Who::Agent);
        places(agent, &sure).into_iter().flatten().map(move |place| (who, place))
    });
    working.chain(later).chain(saving).collect()
}

/// In asynchronous methods a slow agent may have no second task. Later places fail in the first agent that reaches them: the total
/// number of tasks is fixed, so that at least one agent gets an average share.
fn any_agent(subject: &dyn Subject, workload: &Workload) -> Vec<(Who, Place)> {
    let tasks = workload.iter().filter(|(who, _)| who.is_some()).map(|(_, tasks)| tasks).sum::<u64>();
    let share = tasks / u64::from(subject.agents());
    assert!(share > 2, "{}: too few tasks for a place between the first and the last", subject.label());
    let later = [Place::Working(share / 2), Place::Working(share - 1), Place::Following(share - 1)];
    later.map(|place| (Who::EveryAgent, place)).into()
}

fn workload(subject: &dyn Subject, group: &mut Group) -> Option<Workload> {
    match subject.run_faulty(Driver::Threads { threads: 1 }, None) {
        Ok(workload) => Some(workload),
        Err(fault) => {
            group.check(format!("{} without a fault", subject.label()), Err(fault.to_string()));
            None
        }
    }
}

impl Group<'_> {
    fn cases(&mut self, cases: &[Case]) {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(AT_ONCE).build().expect("threads");
        let folder = self.folder;
        let results: Vec<_> = pool.install(|| cases.par_iter().map(|case| case.outcome(folder)).collect());
        for (case, result) in cases.iter().zip(results) {
            self.check(format!("{} {:?} {:?} {:?}", case.subject.label(), case.launcher, case.driver, case.injection), result);
        }
    }
}

impl Case<'_> {
    /// Runs the job; how it ended otherwise than it must.
    fn outcome(&self, folder: &Path) -> Result<(), String> {
        let &Self { subject, launcher, driver, threads, dedicated, injection } = self;
        let step =
            Step { method: subject.label().into(), threads, dedicated, collectives: threads == 2, work: Work::Fail(injection) };
        let script = Script { driver, steps: vec![step], results: folder.join("none.jsonl") };
        let ended = work(launcher, &script, folder)?;
        let say = |cause: String| Err(format!("{cause}\n(code {}, {:.1} s)\n{}", ended.code, ended.seconds, ended.stderr));
        if !ended.failed_with(EXIT_CODE) {
            return say(format!("the exit code is not {EXIT_CODE}"));
        }
        if ended.seconds > SOON {
            return say(format!("it took longer than {SOON} s"));
        }
        let faults = ended.faults();
        let [line] = faults.as_slice() else { return say(format!("{} messages", faults.len())) };
        let ranks = match (launcher, driver) {
            (Launcher::Mpirun(ranks), _) | (_, WorkerDriver::Simulate { ranks }) => ranks,
            _ => 1,
        };
        let who = |agent| format!("rank {}, agent {agent}, ", subject.rank_of(agent, ranks, dedicated));
        let named = match injection.who {
            Who::Server => line.contains("rank 0, server, "),
            Who::Agent(agent) => line.contains(&who(agent)),
            Who::EveryAgent => (0..subject.agents()).any(|agent| line.contains(&who(agent))),
        };
        let (cause, place) = match injection.how {
            // A state cannot fail in any other way than by a panic.
            How::Error if injection.place != Place::Saving => (CAUSE, ""),
            How::Error | How::Panic | How::HelperPanic => (CAUSE, "panicked at tests/conformance/"),
            How::Exit | How::HelperExit => ("a call of exit", ""),
        };
        if ended.stderr.matches("panicked at").count() != usize::from(!place.is_empty()) || !line.contains(place) {
            return say(format!("the place of a panic belongs into the message, and nowhere else: {line}"));
        }
        match (named, line.contains(cause) && line.contains(subject.name())) {
            (true, true) => Ok(()),
            (false, _) => say(format!("the message names another rank or agent: {line}")),
            (true, false) => say(format!("the message names another cause: {line}")),
        }
    }
}
