//! A method's only way out: addressed random numbers, the clock, and what it writes down.

use super::method::AgentId;
use super::record::{Draws, Record, Row};
use crate::number::Number;
use crate::random::{Purpose, Seed, Stream, Who};
use std::time::Instant;

/// What a server or an agent is given with every call.
#[derive(Debug)]
pub struct Context {
    seed: Seed,
    agent: Option<AgentId>,
    clock: Clock,
    records: Vec<Record>,
}

/// The time since the run began, time before a resume included.
#[derive(Clone, Copy, Debug)]
pub(super) enum Clock {
    /// Wall seconds before this process, and when it began.
    Wall(f64, Instant),
    /// Virtual seconds.
    Virtual(f64),
}

impl Clock {
    pub(super) fn seconds(self) -> f64 {
        match self {
            Self::Wall(before, since) => before + since.elapsed().as_secs_f64(),
            Self::Virtual(seconds) => seconds,
        }
    }
}

impl Context {
    pub(super) fn new(seed: Seed, agent: Option<AgentId>, clock: Clock) -> Self {
        Self { seed, agent, clock, records: Vec::new() }
    }

    /// The random numbers at an address; see [`crate::random`].
    pub fn stream(&self, who: Who, step: u64, purpose: Purpose) -> Stream {
        self.seed.stream(who, step, purpose)
    }

    /// Seconds since the run began: wall, or virtual in a simulation. For information only: a method whose mathematics
    /// depends on it gives up reproducibility.
    pub fn seconds(&self) -> f64 {
        self.clock.seconds()
    }

    /// Writes a row of information: what may be thrown away without changing the run.
    pub fn info(&mut self, table: &str, step: u64, values: impl IntoIterator<Item = (impl Into<String>, f64)>) {
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
