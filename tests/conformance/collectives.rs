//! Collectives of the MPI driver on 2, 3 and 5 ranks: same results as point-to-point, consecutive runs, failures.

use crate::launch::{Launcher, command, watched};
use crate::suite::Suite;
use mpibayes::cluster::mpi::{World, run};
use mpibayes::cluster::record::Record;
use mpibayes::cluster::{
    AfterCheckpoint, Agent, AgentId, Body, Checkpoint, Collectives, Context, EXIT_CODE, IntegerSums, JobOptions, Method, Outbox,
    Progress, Recorder, RequestDelivery, Response, Result, SerializesAs, Server, Status, Sums, Traffic,
};
use mpibayes::number::Number;
use mpibayes::random::Seed;
use std::marker::PhantomData;
use std::sync::{Arc, Mutex};

const AGENTS: u32 = 7;
const ROUNDS: u64 = 6;
/// Seconds that a run is said to have taken before it is resumed.
const BEFORE: f64 = 1000.0;

/// What goes wrong in the run.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Trouble {
    None,
    /// Agent 3 gives a body of another length.
    Unequal,
    /// Agent 3 fails in round 2.
    Error,
    /// The recorder panics.
    Recorder,
}

/// Rounds of all-reduce (`SumTo` all), a sum over all to the server, one over agents 0 to 2, and a large head.
struct Rounds<N> {
    numbers: usize,
    trouble: Trouble,
    /// No agent's clock may show less.
    since: f64,
    sums: Arc<Mutex<Vec<Vec<N>>>>,
}

/// Numbers that can be made from small integers without rounding.
trait Whole: Number + From<i16> {}
impl<N: Number + From<i16>> Whole for N {}

/// What agent `id` adds in round `round` at place `at`.
fn share(id: AgentId, round: u64, at: usize) -> i16 {
    ((id as usize * 31 + round as usize * 7 + at * 3) % 101) as i16 - 50
}

fn shares<N: Whole>(id: AgentId, round: u64, numbers: usize) -> Vec<N> {
    (0..numbers).map(|at| share(id, round, at).into()).collect()
}

/// What the sum over these agents must be, added up here.
fn expected<N: Whole>(agents: std::ops::Range<u32>, round: u64, numbers: usize) -> Vec<N> {
    (0..numbers).map(|at| agents.clone().map(|id| share(id, round, at)).sum::<i16>().into()).collect()
}

#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
enum Task {
    /// Contribute; the padding makes the head large.
    Give { round: u64, padding: Vec<u8> },
    /// Return the transfer of this round, as a sum of one body.
    Show,
}

struct Clerk<N> {
    state: (u64, u64),
    method: Rounds<N>,
}

struct Member<N> {
    id: AgentId,
    numbers: usize,
    trouble: Trouble,
    since: f64,
    number: PhantomData<N>,
}

impl<N: Whole> Method for Rounds<N> {
    const NAME: &'static str = "rounds";
    type Number = N;
    type Task = Task;
    type Report = bool;
    type Server = Clerk<N>;
    type Agent = Member<N>;

    fn agents(&self) -> u32 {
        AGENTS
    }

    fn server(&self, saved: Option<(u64, u64)>) -> Result<Clerk<N>> {
        Ok(Clerk { state: saved.unwrap_or((0, 0)), method: Rounds { sums: self.sums.clone(), ..*self } })
    }

    fn agent(&self, id: AgentId, _: Option<()>) -> Result<Member<N>> {
        Ok(Member { id, numbers: self.numbers, trouble: self.trouble, since: self.since, number: PhantomData })
    }
}

impl<N: Whole> Clerk<N> {
    /// Four requests a round, all at once.
    fn post(&mut self, out: &mut Outbox<Rounds<N>>) {
        let round = self.state.0;
        let padding = vec![round as u8; if round % 2 == 1 { 100_000 } else { 0 }];
        let task = Task::Give { round, padding };
        let body = shares::<N>(99, round, self.method.numbers);
        out.request(0..AGENTS, task.clone()).with(body).sum_to(0..AGENTS);
        out.request(0..AGENTS, task.clone()).with(shares::<N>(99, round, self.method.numbers)).sum();
        out.request(0..3, task).with(shares::<N>(99, round, self.method.numbers)).sum();
        out.request(0..AGENTS, Task::Show).with_transfer();
    }
}

impl<N: Whole> Server<Rounds<N>> for Clerk<N> {
    type State = (u64, u64);

    fn state(&self) -> impl SerializesAs<(u64, u64)> {
        &self.state
    }

    fn start(&mut self, out: &mut Outbox<Rounds<N>>, _: &mut Context) -> Result<()> {
        self.post(out);
        Ok(())
    }

    fn receive(&mut self, response: Response<Rounds<N>>, out: &mut Outbox<Rounds<N>>, _: &mut Context) -> Result<()> {
        if response.reports.iter().any(|report| !report.report) {
            return Err("the body of a task was not what was sent".into());
        }
        let mut sums = self.method.sums.lock().unwrap();
        if !response.sum.is_empty() {
            sums.push(response.sum.into_vec());
        }
        sums.extend(response.reports.into_iter().filter(|report| !report.body.is_empty()).map(|report| report.body.into_vec()));
        drop(sums);
        self.state.1 += 1;
        if self.state.1 == 4 {
            self.state = (self.state.0 + 1, 0);
            if self.state.0 < ROUNDS {
                self.post(out);
            }
        }
        Ok(())
    }

    fn progress(&self) -> Progress {
        Progress { done: self.state.0, total: ROUNDS }
    }
}

impl<N: Whole> Agent<Rounds<N>> for Member<N> {
    type State = ();

    fn state(&self) -> impl SerializesAs<()> {
        &()
    }

    fn perform(&mut self, task: &Task, body: Body<N>, cx: &mut Context) -> Result<(bool, Body<N>)> {
        if cx.seconds() < self.since {
            return Err(format!("the clock shows {} s", cx.seconds()).into());
        }
        match task {
            Task::Show => Ok((true, body)),
            Task::Give { round, padding } => {
                if self.id == 3 && *round == 2 && self.trouble == Trouble::Error {
                    return Err("singular matrix".into());
                }
                let short = usize::from(self.id == 3 && *round == 2 && self.trouble == Trouble::Unequal);
                let well = *body == shares::<N>(99, *round, self.numbers)[..] && padding.iter().all(|&x| x == *round as u8);
                Ok((well, shares::<N>(self.id, *round, self.numbers - short).into()))
            }
        }
    }
}

/// Stops the run after this many responses and keeps its checkpoint.
struct Stopper {
    at: Option<u64>,
    panics: bool,
    saved: Option<Checkpoint>,
}

impl Recorder for Stopper {
    fn write(&mut self, _: Vec<Record>) -> mpibayes::cluster::Result<()> {
        Ok(())
    }

    fn wants_checkpoint(&mut self, status: Status) -> Result<bool> {
        assert!(!self.panics || status.responses < 5, "the recorder's own panic");
        Ok(self.at.is_some_and(|at| status.responses >= at))
    }

    fn on_checkpoint(&mut self, checkpoint: Checkpoint) -> Result<AfterCheckpoint> {
        self.saved = Some(checkpoint);
        Ok(AfterCheckpoint::Stop)
    }
}

const OFF: Collectives = Collectives {
    requests: RequestDelivery::PointToPoint,
    integer_sums: IntegerSums::PointToPoint,
    float_sums: Sums::PointToPoint,
};
const ON: Collectives =
    Collectives { requests: RequestDelivery::Broadcast, integer_sums: IntegerSums::Allreduce, float_sums: Sums::Allreduce };

fn carry<N: Whole>(
    world: &World,
    numbers: usize,
    collectives: Collectives,
    dedicated: bool,
    stop: Option<u64>,
) -> (Vec<Vec<N>>, Traffic) {
    let sums = Arc::new(Mutex::new(Vec::new()));
    let method = |since| Arc::new(Rounds { numbers, trouble: Trouble::None, since, sums: sums.clone() });
    let plan = JobOptions { threads: 2, dedicated, collectives, ..JobOptions::new(Seed(1)) };
    let mut recorder = Stopper { at: stop, panics: false, saved: None };
    let mut outcome = run(world, method(0.0), plan.clone(), None, &mut recorder);
    if stop.is_some() {
        assert!(outcome.is_none_or(|outcome| !outcome.finished), "the run was not stopped before its end");
        // Resumes with the opposite collectives: a checkpoint does not depend on them.
        let collectives = if collectives == OFF { ON } else { OFF };
        let saved = recorder.saved.take().map(|mut saved| {
            saved.seconds = BEFORE;
            saved
        });
        recorder.at = None;
        outcome = run(world, method(BEFORE), JobOptions { collectives, ..plan }, saved, &mut recorder);
    }
    let traffic = outcome.map(|outcome| outcome.traffic).unwrap_or_default();
    (std::mem::take(&mut *sums.lock().unwrap()), traffic)
}

/// All combinations of collectives give the sums that are computed here, in consecutive runs of one job.
fn sums<N: Whole>(world: &World) -> u32 {
    let mut passed = 0;
    // One value, one block of a broadcast, several slices, and messages above MPI's rendezvous limit.
    for numbers in [1, 1000, 20_000, 100_000] {
        let requests = Collectives { requests: RequestDelivery::Broadcast, ..OFF };
        let reduces = Collectives { requests: RequestDelivery::PointToPoint, ..ON };
        for (collectives, dedicated, stop) in [
            (OFF, false, None),
            (requests, false, None),
            (reduces, false, None),
            (ON, false, None),
            (ON, true, None),
            (ON, false, Some(9)),
            (OFF, true, Some(10)),
        ] {
            let (got, traffic) = carry::<N>(world, numbers, collectives, dedicated, stop);
            if world.rank() != 0 {
                continue;
            }
            let mut want = Vec::new();
            for round in 0..ROUNDS {
                let all = expected::<N>(0..AGENTS, round, numbers);
                want.extend([all.clone(), expected(0..3, round, numbers)]);
                want.extend((0..AGENTS).map(|_| all.clone()));
            }
            assert!(got == want, "{} × {numbers}, {collectives:?}, dedicated {dedicated}, stop {stop:?}", N::NAME);
            // Without this, options that have no effect would pass.
            let hosts = world.size() - u32::from(dedicated);
            let on = |switched: bool| switched || stop.is_some();
            let reduced = traffic.0.contains_key("sums by all-reduce");
            assert_eq!(
                reduced,
                on(collectives.integer_sums == IntegerSums::Allreduce) && hosts > 1,
                "{collectives:?} {traffic:?}"
            );
            assert_eq!(
                traffic.0.contains_key("tasks to all"),
                on(collectives.requests == RequestDelivery::Broadcast),
                "{collectives:?}"
            );
            passed += 1;
        }
    }
    passed
}

/// Broadcast bytes arrive on all ranks, and an error on one rank is reported by all.
fn facts(world: &World) -> u32 {
    for len in [0, 5, 3_000_000] {
        let bytes: Vec<u8> = (0..len).map(|at| (at % 251) as u8).collect();
        let got = world.broadcast_bytes((world.rank() == 0).then(|| bytes.clone()));
        assert!(got == bytes);
    }
    assert_eq!(world.agree(Ok(world.rank())), Ok(world.rank()));
    let last = world.size() - 1;
    let mine = if world.rank() == last { Err("no such file".to_owned()) } else { Ok(()) };
    assert_eq!(world.agree(mine), Err(format!("rank {last}: no such file")));
    assert_eq!(world.agree::<()>(Err(format!("own {}", world.rank()))), Err("rank 0: own 0".into()));
    4
}

/// Runs one case on this rank.
pub fn rank(what: &str) {
    let world = World::start().unwrap();
    let trouble = match what {
        "sums" => {
            let passed = facts(&world) + sums::<i32>(&world) + sums::<f32>(&world) + sums::<f64>(&world);
            if world.rank() == 0 {
                println!("passed {passed}");
            }
            return;
        }
        "unequal" => Trouble::Unequal,
        "error" => Trouble::Error,
        _ => Trouble::Recorder,
    };
    let method = Rounds::<i32> { numbers: 1000, trouble, since: 0.0, sums: Arc::default() };
    let mut recorder = Stopper { at: None, panics: trouble == Trouble::Recorder, saved: None };
    let plan = JobOptions { collectives: ON, ..JobOptions::new(Seed(1)) };
    run(&world, Arc::new(method), plan, None, &mut recorder);
    println!("finished without a failure");
}

/// Runs each case on some ranks.
pub fn register(suite: &mut Suite) {
    for ranks in [2, 3, 5] {
        suite.test(format!("collectives: {ranks} ranks"), move |group| {
            // For each of three number types 4 lengths × 7 cases, and 4 checks of broadcasts and agreement.
            let cases = [
                ("sums", 0, "passed 88"),
                ("unequal", EXIT_CODE, "bodies of one sum differ in length"),
                ("error", EXIT_CODE, "singular matrix"),
                ("recorder", EXIT_CODE, "the recorder's own panic"),
            ];
            for (what, code, text) in cases {
                let ended = command(Launcher::Mpirun(ranks), &["--collectives", what]).and_then(watched);
                let result = ended.and_then(|ended| {
                    let output = ended.stdout + &ended.stderr;
                    let well = ended.code == code && output.contains(text);
                    if well { Ok(()) } else { Err(format!("code {}\n{output}", ended.code)) }
                });
                group.check(what, result);
            }
        });
    }
}
