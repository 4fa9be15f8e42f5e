//! Random numbers, the clock and records for a method's server and agents.

use super::layout::AgentId;
use super::packet::AgentBytes;
use super::record::{BYTES, DrawBlock, HISTORY, Record, Row};
use crate::number::Number;
use crate::random::{Purpose, Seed, Stream, Who};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Instant;

/// Gives a server or an agent access to random numbers, the clock and records, in every call.
#[derive(Debug)]
pub struct Context {
    seed: Seed,
    agent: Option<AgentId>,
    clock: Clock,
    /// Bytes that agents have received and sent; only known at the server.
    bytes: Option<AgentBytes>,
    records: Vec<Record>,
}

/// The time since the run began, including the time before a resume and excluding the time for monitoring requests.
#[derive(Clone, Debug)]
pub(super) struct Clock {
    source: Source,
    /// Bits of an `f64`: seconds to subtract.
    excluded: Arc<AtomicU64>,
}

#[derive(Clone, Copy, Debug)]
enum Source {
    /// Seconds before this process started, and when it started.
    Wall(f64, Instant),
    /// Virtual seconds.
    Virtual(f64),
}

impl Clock {
    /// A wall clock that starts now with the value `before`, in seconds.
    pub(super) fn wall(before: f64) -> Self {
        Self { source: Source::Wall(before, Instant::now()), excluded: Arc::default() }
    }

    /// A virtual clock with the value `now`, in seconds.
    pub(super) fn simulated(now: f64) -> Self {
        Self { source: Source::Virtual(now), excluded: Arc::default() }
    }

    /// The same virtual clock at another time.
    pub(super) fn moved_to(&self, now: f64) -> Self {
        Self { source: Source::Virtual(now), excluded: self.excluded.clone() }
    }

    /// Replaces the seconds to subtract.
    pub(super) fn exclude(&self, seconds: f64) {
        self.excluded.store(seconds.to_bits(), Relaxed);
    }

    pub(super) fn seconds(&self) -> f64 {
        let raw = match self.source {
            Source::Wall(before, since) => before + since.elapsed().as_secs_f64(),
            Source::Virtual(now) => now,
        };
        raw - f64::from_bits(self.excluded.load(Relaxed))
    }
}

impl Context {
    /// A context without a run, for tests of agents and transitions; its clock stays at 0.
    pub fn detached(seed: Seed) -> Self {
        Self::new(seed, None, Clock::simulated(0.0))
    }

    pub(super) fn new(seed: Seed, agent: Option<AgentId>, clock: Clock) -> Self {
        Self { seed, agent, clock, bytes: None, records: Vec::new() }
    }

    pub(super) fn with_bytes(self, bytes: AgentBytes) -> Self {
        Self { bytes: Some(bytes), ..self }
    }

    /// The random stream at an address; see [`crate::random`].
    pub fn stream(&self, who: Who, step: u64, purpose: Purpose) -> Stream {
        self.seed.stream(who, step, purpose)
    }

    /// Seconds since the run began: wall time, or virtual time in a simulation. The server's clock excludes the time for
    /// [`monitoring`](super::RequestOf::monitoring) requests. For information only: a method that computes with it is not reproducible.
    pub fn seconds(&self) -> f64 {
        self.clock.seconds()
    }

    /// Writes a row of a table: for information, without influence on the run. Rows of the history that the server writes get a column
    /// of the bytes that agents have received and sent so far.
    pub fn log_row(&mut self, table: &str, step: u64, values: impl IntoIterator<Item = (impl Into<String>, f64)>) {
        let mut values: Vec<(String, f64)> = values.into_iter().map(|(name, value)| (name.into(), value)).collect();
        if let Some(bytes) = self.bytes.filter(|_| table == HISTORY) {
            values.push((BYTES.into(), bytes.total() as f64));
        }
        self.records.push(Record::Row(Row { table: table.into(), step, agent: self.agent, values }));
    }

    /// Records draws: `values` holds rows of length `dim`; the first row is the chain's draw number `first`.
    pub fn record<N: Number>(&mut self, group: &str, chain: u32, first: u64, dim: usize, values: &[N]) {
        self.records.push(Record::Draws(DrawBlock {
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
