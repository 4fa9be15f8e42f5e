//! A method under test, whatever its types: carried by any driver from any checkpoint, with what it did as a digest.

use crate::faulty::{Faulty, How, Injection, Place, Workload};
use mpibayes::cluster::mpi::{World, run as run_on_ranks};
use mpibayes::cluster::record::Record;
use mpibayes::cluster::simulate::{self, Cluster, Cost};
use mpibayes::cluster::{
    AfterCheckpoint, Checkpoint, Collectives, Fault, JobOptions, Layout, Method, Order, Outcome, Placement, Rank, Recorder,
    RequestDelivery, Status, Sums, TimeSpent, Traffic, threads,
};
use mpibayes::random::Seed;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex};

/// What carries a run.
#[derive(Clone, Copy)]
pub enum Carrier<'a> {
    Threads {
        threads: usize,
    },
    Simulate {
        ranks: u32,
        threads: usize,
        dedicated: bool,
    },
    /// With or without the collectives that keep the bits.
    Mpi {
        world: &'a World,
        threads: usize,
        dedicated: bool,
        collectives: bool,
    },
}

/// How far a run shall go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Until {
    End,
    /// To the end, with a rest after every response.
    EndWithRests,
    /// To a rest after this many responses; the run is saved there.
    Responses(u64),
}

/// What a run did, on the rank that knows.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Ran {
    pub finished: bool,
    pub responses: u64,
    /// Of all draws and the final states.
    pub digest: String,
    /// Of the draws' addresses alone: the same whatever the order of responses.
    pub outline: String,
    pub rests: u64,
    #[serde(skip)]
    pub saved: Vec<u8>,
    #[serde(skip)]
    pub traffic: Traffic,
}

/// A method under test.
pub trait Subject: Send + Sync {
    /// Its name in this suite.
    fn label(&self) -> &'static str;
    /// Its name in messages.
    fn name(&self) -> &'static str;
    fn agents(&self) -> u32;
    fn placement(&self) -> Placement;
    fn order(&self) -> Order;
    /// Carries it; nothing comes back on ranks other than 0.
    fn run(&self, carrier: Carrier, saved: Option<&[u8]>, until: Until) -> Result<Option<Ran>, Fault>;
    /// Carries it with a failure built in, or with none to see who works how much.
    fn run_faulty(&self, carrier: Carrier, injection: Option<Injection>) -> Result<Workload, Fault>;
    /// What a checkpoint file in this place says.
    fn read(&self, path: &Path) -> Result<Option<Vec<u8>>, String>;
    fn write(&self, saved: &[u8], path: &Path) -> Result<(), String>;

    fn rank_of(&self, agent: u32, ranks: u32, dedicated: bool) -> Rank {
        Layout { ranks, agents: self.agents(), dedicated, placement: self.placement() }.rank_of(agent)
    }
}

/// The one line with which a method joins: its label here, and how it is made.
pub fn conforms<M: Method>(label: &'static str, make: impl Fn() -> M + Send + Sync + 'static) -> Box<dyn Subject> {
    Box::new(Conforms { label, make })
}

struct Conforms<F> {
    label: &'static str,
    make: F,
}

impl<F> Conforms<F> {
    /// The method, always inside the wrapper that can fail: the engine is then compiled once for each method, not twice.
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

    fn run(&self, carrier: Carrier, saved: Option<&[u8]>, until: Until) -> Result<Option<Ran>, Fault> {
        let saved = saved.map(|bytes| Checkpoint::from_bytes(bytes).expect("a checkpoint that was read before"));
        let mut diary = Diary::new(until);
        let outcome = carry(self.faulty(None, &Arc::default()), carrier, saved, &mut diary)?;
        Ok(outcome.map(|outcome| diary.close(outcome)))
    }

    fn run_faulty(&self, carrier: Carrier, injection: Option<Injection>) -> Result<Workload, Fault> {
        let workload = Arc::default();
        let faulty = self.faulty(injection, &workload);
        let mut diary = Diary::new(Until::End);
        diary.trap = injection.filter(|injection| injection.place == Place::Keeping).map(|injection| injection.how);
        carry(faulty, carrier, None, &mut diary)?;
        let workload = workload.lock().unwrap().clone();
        Ok(workload)
    }

    fn read(&self, path: &Path) -> Result<Option<Vec<u8>>, String> {
        let read = Checkpoint::read(path).map_err(|error| error.to_string())?;
        read.map(|checkpoint| checkpoint.to_bytes().map_err(|error| error.to_string())).transpose()
    }

    fn write(&self, saved: &[u8], path: &Path) -> Result<(), String> {
        Checkpoint::from_bytes(saved)?.write(path).map_err(|error| error.to_string())
    }
}

/// The root of all random numbers of the suite.
pub const SEED: Seed = Seed(20_240_817);

/// With the switches of the collectives that keep the bits all on or all off.
pub fn plan(threads: usize, dedicated: bool, collectives: bool) -> JobOptions {
    let (requests, integer_sums) = if collectives {
        (RequestDelivery::Broadcast, Sums::Allreduce)
    } else {
        (RequestDelivery::PointToPoint, Sums::PointToPoint)
    };
    let collectives = Collectives { requests, integer_sums, float_sums: Sums::PointToPoint };
    JobOptions { threads, dedicated, collectives, ..JobOptions::new(SEED) }
}

/// Carries any method.
pub fn carry<M: Method>(
    method: Arc<M>,
    carrier: Carrier,
    saved: Option<Checkpoint>,
    recorder: &mut dyn Recorder,
) -> Result<Option<Outcome>, Fault> {
    match carrier {
        Carrier::Threads { threads } => threads::run(method, plan(threads, false, false), saved, recorder).map(Some),
        Carrier::Simulate { ranks, threads, dedicated } => {
            // Agents of uneven speed on a slow network: packets overtake each other as they never would on one machine.
            let cost = |agent: u32, _: &M::Task| f64::from((agent * 7 + 3) % 5 + 1) * 1e-3;
            let settle: Cost<M> = Box::new(|_, _| 2e-3);
            let cluster =
                Cluster { ranks, task: Some(Box::new(cost)), after_report: Some(settle), latency: 5e-4, bandwidth: 2e7 };
            simulate::run(method, plan(threads, dedicated, false), &cluster, saved, recorder).map(Some)
        }
        Carrier::Mpi { world, threads, dedicated, collectives } => {
            Ok(run_on_ranks(world, method, plan(threads, dedicated, collectives), saved, recorder))
        }
    }
}

/// Keeps what a run writes down and its last checkpoint.
pub struct Diary {
    until: Until,
    pub records: Vec<Record>,
    rests: u64,
    rested_at: u64,
    responses: u64,
    saved: Vec<u8>,
    state: Vec<u8>,
    trap: Option<How>,
}

impl Diary {
    pub fn new(until: Until) -> Self {
        Self {
            until,
            records: Vec::new(),
            rests: 0,
            rested_at: 0,
            responses: 0,
            saved: Vec::new(),
            state: Vec::new(),
            trap: None,
        }
    }

    fn close(self, outcome: Outcome) -> Ran {
        // Agents write at any time: only the order within a chain is promised.
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
            rests: self.rests,
            saved: self.saved,
            traffic: outcome.traffic,
        }
    }
}

impl Recorder for Diary {
    fn write(&mut self, records: Vec<Record>) -> mpibayes::cluster::Result<()> {
        self.records.extend(records);
        Ok(())
    }

    fn wants_checkpoint(&mut self, status: Status) -> bool {
        match self.until {
            Until::End => false,
            Until::EndWithRests => status.responses > self.rested_at,
            Until::Responses(responses) => status.responses >= responses,
        }
    }

    fn on_checkpoint(&mut self, mut checkpoint: Checkpoint) -> mpibayes::cluster::Result<AfterCheckpoint> {
        self.trap.map_or(Ok(()), How::fail)?;
        self.rests += 1;
        self.rested_at = checkpoint.responses;
        self.responses = checkpoint.responses;
        checkpoint.records.clone_from(&self.records);
        self.saved = checkpoint.to_bytes()?;
        // What remains is the state: times, traffic and draws are judged elsewhere or not at all.
        checkpoint.records.clear();
        checkpoint.seconds = 0.0;
        checkpoint.traffic = Traffic::default();
        checkpoint.spent = TimeSpent::default();
        self.state = checkpoint.to_bytes()?;
        Ok(if matches!(self.until, Until::Responses(_)) { AfterCheckpoint::Stop } else { AfterCheckpoint::Continue })
    }
}
