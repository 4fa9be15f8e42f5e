//! A keeper that remembers all that a run writes down: the rows of its tables, and the draws of each chain in order.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "not shipped: a failure here shall stop it")]
#![allow(dead_code, reason = "each binary that includes this file uses a part of it")]

use mpibayes::cluster::record::{Draws, Record, Row};
use mpibayes::cluster::simulate::{self, Cluster};
use mpibayes::cluster::{AgentId, Fault, JobOptions, Method, Recorder, Result, threads};
use mpibayes::random::Seed;
use ndarray::{Array2, Axis};
use std::collections::BTreeMap;
use std::sync::Arc;

/// What a run wrote down.
#[derive(Default)]
pub struct Seen {
    pub rows: Vec<Row>,
    /// Blocks of draws by group, chain and the number of their first.
    pub draws: BTreeMap<(String, u32, u64), Draws>,
}

impl Recorder for Seen {
    fn write(&mut self, records: Vec<Record>) -> Result<()> {
        for record in records {
            match record {
                Record::Row(row) => self.rows.push(row),
                Record::Draws(draws) => drop(self.draws.insert((draws.group.clone(), draws.chain, draws.first), draws)),
            }
        }
        Ok(())
    }
}

impl Seen {
    /// Of a run in this process, to its end.
    pub fn of<M: Method>(method: M, plan: JobOptions) -> Result<Self, Fault> {
        let mut seen = Self::default();
        threads::run(Arc::new(method), plan, None, &mut seen)?;
        Ok(seen)
    }

    /// Of a run on a simulated cluster without a network, each agent on a rank of its own, whose tasks take so many seconds.
    pub fn timed<M: Method>(
        method: M,
        plan: JobOptions,
        task: impl Fn(AgentId, &M::Task) -> f64 + Send + Sync + 'static,
    ) -> Result<Self, Fault> {
        let ranks = method.agents();
        let cluster = Cluster { ranks, task: Some(Box::new(task)), after_report: None, latency: 0.0, bandwidth: f64::INFINITY };
        let mut seen = Self::default();
        simulate::run(Arc::new(method), plan, &cluster, None, &mut seen)?;
        Ok(seen)
    }

    /// The rows of a table.
    pub fn table(&self, name: &str) -> impl Iterator<Item = &Row> {
        self.rows.iter().filter(move |row| row.table == name)
    }

    /// A column of a table, from the first row that has it on.
    pub fn column(&self, table: &str, name: &str) -> Vec<f64> {
        let values = self.table(table).flat_map(|row| &row.values);
        values.filter(|(other, _)| other == name).map(|(_, value)| *value).collect()
    }

    /// All numbers of a group, which must be there, chain after chain.
    pub fn numbers<N: bytemuck::AnyBitPattern + bytemuck::NoUninit>(&self, group: &str) -> Vec<N> {
        let mut blocks = self.draws.iter().filter(|((other, ..), _)| other == group).peekable();
        assert!(blocks.peek().is_some(), "nothing was drawn of {group}");
        blocks.flat_map(|(_, draws)| bytemuck::pod_collect_to_vec::<u8, N>(&draws.bytes)).collect()
    }

    /// The blocks of a chain of the posterior (draws × parameters), with the number of the first draw of each.
    pub fn blocks(&self, chain: u32) -> impl Iterator<Item = (u64, Array2<f64>)> {
        let posterior = self.draws.values().filter(move |draws| draws.group == "posterior" && draws.chain == chain);
        posterior.map(|draws| {
            let (dim, values) = (draws.dim as usize, bytemuck::pod_collect_to_vec(&draws.bytes));
            (draws.first, Array2::from_shape_vec((values.len() / dim, dim), values).unwrap())
        })
    }

    /// All draws of a chain (draws × parameters).
    pub fn chain(&self, chain: u32) -> Array2<f64> {
        let blocks: Vec<_> = self.blocks(chain).map(|block| block.1).collect();
        let views: Vec<_> = blocks.iter().map(|block| block.view()).collect();
        ndarray::concatenate(Axis(0), &views).unwrap()
    }
}

/// A run with this seed, in this process, that must come to its end.
pub fn run<M: Method>(method: M, seed: u64) -> Seen {
    Seen::of(method, JobOptions::new(Seed(seed))).unwrap()
}

/// A number of a row.
pub fn value(row: &Row, name: &str) -> f64 {
    row.values.iter().find(|value| value.0 == name).unwrap().1
}
