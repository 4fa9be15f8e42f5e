//! A method under test without its types: runs under any driver from any checkpoint, and returns a digest of its draws and states.

use crate::faulty::{Faulty, How, Injection, Place, Workload};
use mpibayes::cluster::mpi::{World, run as run_on_ranks};
use mpibayes::cluster::record::Record;
use mpibayes::cluster::simulate::{self, Cluster, Cost};
use mpibayes::cluster::{
    AfterCheckpoint, Checkpoint, Collectives, Fault, IntegerSums, JobOptions, Layout, Method, Order, Outcome, Placement, Rank,
    Recorder, RequestDelivery, Status, Sums, TimeSpent, Traffic, threads,
};
use mpibayes::random::Seed;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex};

/// A driver with its layout.
#[derive(Clone, Copy)]
pub enum Driver<'a> {
    Threads {
        threads: usize,
    },
    Simulate {
        ranks: u32,
        threads: usize,
        dedicated: bool,
    },
    /// With or without the collectives that do not change bits.
    Mpi {
        world: &'a World,
        threads: usize,
        dedicated: bool,
        collectives: bool,
    },
}

/// When a run stops.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Until {
    End,
    /// At the end, with a checkpoint after every response.
    EndWithCheckpoints,
    /// At a checkpoint after this many responses.
    Responses(u64),
}

/// The result of a run, on rank 0.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Ran {
    pub finished: bool,
    pub responses: u64,
    /// A digest of all draws and the final states.
    pub digest: String,
    /// A digest of the addresses of the draws: does not depend on the order of responses.
    pub outline: String,
    pub checkpoints: u64,
    #[serde(skip)]
    pub saved: Vec<u8>,
    #[serde(skip)]
    pub traffic: Traffic,
}

/// A method under test.
pub trait Subject: Send + Sync {
    /// The name in this suite.
    fn label(&self) -> &'static str;
    /// The name in messages.
    fn name(&self) -> &'static str;
    fn agents(&self) -> u32;
    fn placement(&self) -> Placement;
    fn order(&self) -> Order;
    /// Runs it; returns a result on rank 0 only.
    fn run(&self, driver: Driver, saved: Option<&[u8]>, until: Until) -> Result<Option<Ran>, Fault>;
    /// Runs it with an injected failure, or without one to count tasks.
    fn run_faulty(&self, driver: Driver, injection: Option<Injection>) -> Result<Workload, Fault>;
    /// Reads a checkpoint file.
    fn read(&self, path: &Path) -> Result<Option<Vec<u8>>, String>;
    fn write(&self, saved: &[u8], path: &Path) -> Result<(), String>;

    fn rank_of(&self, agent: u32, ranks: u32, dedicated: bool) -> Rank {
        Layout { ranks, agents: self.agents(), dedicated, placement: self.placement() }.rank_of(agent)
    }
}

/// A method of the suite: its label and its constructor.
pub fn conforms<M: Method>(label: &'static str, make: impl Fn() -> M + Send + Sync + 'static) -> Box<dyn Subject> {
    Box::new(Conforms { label, make })
}

struct Conforms<F> {
    label: &'static str,
    make: F,
}

impl<F> Conforms<F> {
    /// The method inside the wrapper that can fail. All runs use the wrapper, so that each method is compiled once.
    fn faulty<M: Method>(&self, injection: Option<Injection>, workload: &Arc<Mutex<Workload>>) -> Arc<Faulty<M>>
    where
        F: Fn() -> M,
    {
        Arc::new(Faulty { inner: Arc::new((self.make)()), injection, workload: workload.clone() })
    }
}

impl<M: Method, F: Fn() -> M + Send + Sync> Subject for Conforms<F> {
    fn label(&self) -> &'static str {
        self.label
    }

    fn name(&self) -> &'static str {
        M::NAME
    }

    fn agents(&self) -> u32 {
        (self.make)().agents()
    }

    fn placement(&self) -> Placement {
        (self.make)().placement()
    }

    fn order(&self) -> Order {
        (self.make)().order()
    }

    fn run(&self, driver: Driver, saved: Option<&[u8]>, until: Until) -> Result<Option<Ran>, Fault> {
        let saved = saved.map(|bytes| Checkpoint::from_bytes(bytes).expect("a checkpoint that was read before"));
        let mut recorder = TestRecorder::new(until);
        let outcome = carry(self.faulty(None, &Arc::default()), driver, saved, &mut recorder)?;
        Ok(outcome.map(|outcome| recorder.close(outcome)))
    }

    fn run_faulty(&self, driver: Driver, injection: Option<Injection>) -> Result<Workload, Fault> {
        let workload = Arc::default();
        let faulty = self.faulty(injection, &workload);
        let mut recorder = TestRecorder::new(Until::End);
        recorder.trap = injection.filter(|injection| injection.place == Place::Recording).map(|injection| injection.how);
        carry(faulty, driver, None, &mut recorder)?;
        let workload = workload.lock().unwrap().clone();
        Ok(workload)
    }

    fn read(&self, path: &Path) -> Result<Option<Vec<u8>>, String> {
        let read = Checkpoint::read(path).map_err(|error| error.to_string())?;
        read.map(|checkpoint| checkpoint.to_bytes().map_err(|error| error.to_string())).transpose()
    }

    fn write(&self, saved: &[u8], path: &Path) -> Result<(), String> {
        Checkpoint::from_bytes(saved)?.write(path, None).map_err(|error| error.to_string())
    }
}

/// The root of all random numbers of the suite.
pub const SEED: Seed = Seed(20_240_817);

/// Options with all collectives that do not change bits on or off.
pub fn plan(threads: usize, dedicated: bool, collectives: bool) -> JobOptions {
    let (requests, integer_sums) = if collectives {
        (RequestDelivery::Broadcast, IntegerSums::Auto)
    } else {
        (RequestDelivery::PointToPoint, IntegerSums::PointToPoint)
    };
    let collectives = Collectives { requests, integer_sums, float_sums: Sums::PointToPoint };
    JobOptions { threads, dedicated, collectives, ..JobOptions::new(SEED) }
}

/// Runs any method.
pub fn carry<M: Method>(
    method: Arc<M>,
    driver: Driver,
    saved: Option<Checkpoint>,
    recorder: &mut dyn Recorder,
) -> Result<Option<Outcome>, Fault> {
    match driver {
        Driver::Threads { threads } => threads::run(method, plan(threads, false, false), saved, recorder).map(Some),
        Driver::Simulate { ranks, threads, dedicated } => {
            // Agents of different speeds on a slow network: packets overtake each other, unlike on one machine.
            let cost = |agent: u32, _: &M::Task| f64::from((agent * 7 + 3) % 5 + 1) * 1e-3;
            let after_report: Cost<M> = Box::new(|_, _| 2e-3);
            let cluster =
                Cluster { ranks, task: Some(Box::new(cost)), after_report: Some(after_report), latency: 5e-4, bandwidth: 2e7 };
            simulate::run(method, plan(threads, dedicated, false), &cluster, saved, recorder).map(Some)
        }
        Driver::Mpi { world, threads, dedicated, collectives } => {
            Ok(run_on_ranks(world, method, plan(threads, dedicated, collectives), saved, recorder))
        }
    }
}

/// Keeps the records and the last checkpoint of a run.
pub struct TestRecorder {
    until: Until,
    pub records: Vec<Record>,
    checkpoints: u64,
    checkpoint_at: u64,
    responses: u64,
    saved: Vec<u8>,
    state: Vec<u8>,
    trap: Option<How>,
}

impl TestRecorder {
    pub fn new(until: Until) -> Self {
        Self {
            until,
            records: Vec::new(),
            checkpoints: 0,
            checkpoint_at: 0,
            responses: 0,
            saved: Vec::new(),
            state: Vec::new(),
            trap: None,
        }
    }

    fn close(self, outcome: Outcome) -> Ran {
        // Agents write at any time: only the order within a chain is fixed.
        let mut draws = BTreeMap::new();
        for record in self.records {
            if let Record::Draws(block) = record {
                let twice = draws.insert((block.group.clone(), block.chain, block.first), block);
                assert!(twice.is_none(), "a draw was written twice: {twice:?}");
            }
        }
        let mut outline = blake3::Hasher::new();
        let mut digest = blake3::Hasher::new();
        for (address, block) in &draws {
            outline.update(format!("{address:?}").as_bytes());
            digest.update(format!("{address:?} {} {}", block.dim, block.kind).as_bytes()).update(&block.bytes);
        }
        digest.update(&self.state);
        Ran {
            finished: outcome.finished,
            responses: self.responses,
            digest: digest.finalize().to_hex()[..16].into(),
            outline: outline.finalize().to_hex()[..16].into(),
            checkpoints: self.checkpoints,
            saved: self.saved,
            traffic: outcome.traffic,
        }
    }
}

impl Recorder for TestRecorder {
    fn write(&mut self, records: Vec<Record>) -> mpibayes::cluster::Result<()> {
        self.records.extend(records);
        Ok(())
    }

    fn wants_checkpoint(&mut self, status: Status) -> mpibayes::cluster::Result<bool> {
        Ok(match self.until {
            Until::End => false,
            Until::EndWithCheckpoints => status.responses > self.checkpoint_at,
            Until::Responses(responses) => status.responses >= responses,
        })
    }

    fn on_checkpoint(&mut self, mut checkpoint: Checkpoint) -> mpibayes::cluster::Result<AfterCheckpoint> {
        self.trap.map_or(Ok(()), How::fail)?;
        self.checkpoints += 1;
        self.checkpoint_at = checkpoint.responses;
        self.responses = checkpoint.responses;
        checkpoint.records.clone_from(&self.records);
        self.saved = checkpoint.to_bytes()?;
        // The state alone: times, traffic and draws are compared elsewhere or not at all.
        checkpoint.records.clear();
        checkpoint.seconds = 0.0;
        checkpoint.traffic = Traffic::default();
        checkpoint.spent = TimeSpent::default();
        self.state = checkpoint.to_bytes()?;
        Ok(if matches!(self.until, Until::Responses(_)) { AfterCheckpoint::Stop } else { AfterCheckpoint::Continue })
    }
}
