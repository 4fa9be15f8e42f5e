//! A method's only way out: addressed random numbers, the clock, and what it writes down.

use super::method::AgentId;
use super::record::{Draws, Record, Row};
use crate::number::Number;
use crate::random::{Purpose, Seed, Stream, Who};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Instant;

/// What a server or an agent is given with every call.
#[derive(Debug)]
pub struct Context {
    seed: Seed,
    agent: Option<AgentId>,
    clock: Clock,
    records: Vec<Record>,
}

/// The time since the run began: time before a resume included, time for asides left out.
#[derive(Clone, Debug)]
pub(super) struct Clock {
    source: Source,
    /// Bits of an `f64`: seconds that do not count.
    left_out: Arc<AtomicU64>,
}

#[derive(Clone, Copy, Debug)]
enum Source {
    /// Seconds before this process, and when it began.
    Wall(f64, Instant),
    /// Virtual seconds.
    Virtual(f64),
}

impl Clock {
    /// A wall clock that starts now at this many seconds.
    pub(super) fn wall(before: f64) -> Self {
        Self { source: Source::Wall(before, Instant::now()), left_out: Arc::default() }
    }

    /// A virtual clock that shows this many seconds.
    pub(super) fn simulated(now: f64) -> Self {
        Self { source: Source::Virtual(now), left_out: Arc::default() }
    }

    /// The same virtual clock at another time.
    pub(super) fn moved_to(&self, now: f64) -> Self {
        Self { source: Source::Virtual(now), left_out: self.left_out.clone() }
    }

    /// Leaves out these seconds since the process began, instead of those that were named before.
    pub(super) fn leave_out(&self, seconds: f64) {
        self.left_out.store(seconds.to_bits(), Relaxed);
    }

    pub(super) fn seconds(&self) -> f64 {
        let raw = match self.source {
            Source::Wall(before, since) => before + since.elapsed().as_secs_f64(),
            Source::Virtual(now) => now,
        };
        raw - f64::from_bits(self.left_out.load(Relaxed))
    }
}

impl Context {
    /// One outside of a run, for tests of agents and transitions: its clock shows 0.
    pub fn outside(seed: Seed) -> Self {
        Self::new(seed, None, Clock::simulated(0.0))
    }

    pub(super) fn new(seed: Seed, agent: Option<AgentId>, clock: Clock) -> Self {
        Self { seed, agent, clock, records: Vec::new() }
    }

    /// The random numbers at an address; see [`crate::random`].
    pub fn stream(&self, who: Who, step: u64, purpose: Purpose) -> Stream {
        self.seed.stream(who, step, purpose)
    }

    /// Seconds since the run began: wall, or virtual in a simulation; the server's clock leaves out the time for asides
    /// ([`Request::monitoring`](super::Request::monitoring)). For information only: a method whose mathematics depends on it gives up
    /// reproducibility.
    pub fn seconds(&self) -> f64 {
        self.clock.seconds()
    }

    /// Writes a row of information: what may be thrown away without changing the run.
    pub fn log_row(&mut self, table: &str, step: u64, values: impl IntoIterator<Item = (impl Into<String>, f64)>) {
        self.records.push(Record::Row(Row {
            table: table.into(),
            step,
            agent: self.agent,
            values: values.into_iter().map(|(name, value)| (name.into(), value)).collect(),
        }));
    }

    /// Writes draws: `values` holds rows of `dim` numbers, the first of which is the chain's draw number `first`.
    pub fn record<N: Number>(&mut self, group: &str, chain: u32, first: u64, dim: usize, values: &[N]) {
        self.records.push(Record::Draws(Draws {
            group: group.into(),
            chain,
            first,
            dim: dim as u64,
            kind: N::NAME.into(),
            bytes: bytemuck::cast_slice(values).to_vec(),
        }));
    }

    pub(super) fn into_records(self) -> Vec<Record> {
        self.records
    }
}
