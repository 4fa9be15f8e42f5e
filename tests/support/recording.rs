//! A recorder that keeps all that a run writes in memory: the rows of its tables, and the draws of each chain in order.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "not shipped: a failure here stops the test")]
#![allow(dead_code, reason = "each binary that includes this file uses a part of it")]

use mpibayes::cluster::record::{DrawBlock, Record, Row};
use mpibayes::cluster::simulate::{self, Cluster};
use mpibayes::cluster::{AgentId, Fault, JobOptions, Method, Recorder, Result, threads};
use mpibayes::random::Seed;
use ndarray::{Array2, Axis};
use std::collections::BTreeMap;
use std::sync::Arc;

/// What a run has written.
#[derive(Default)]
pub struct Recording {
    pub rows: Vec<Row>,
    /// Blocks of draws, by group, chain and the number of their first draw.
    pub draws: BTreeMap<(String, u32, u64), DrawBlock>,
}

impl Recorder for Recording {
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

impl Recording {
    /// Runs a method with threads in this process.
    pub fn of<M: Method>(method: M, options: JobOptions) -> Result<Self, Fault> {
        let mut recording = Self::default();
        threads::run(Arc::new(method), options, None, &mut recording)?;
        Ok(recording)
    }

    /// Runs a method on a simulated cluster without latency, each agent on a rank of its own. `task` gives the seconds that a task takes.
    pub fn simulated<M: Method>(
        method: M,
        options: JobOptions,
        task: impl Fn(AgentId, &M::Task) -> f64 + Send + Sync + 'static,
    ) -> Result<Self, Fault> {
        let ranks = method.agents();
        let cluster = Cluster { ranks, task: Some(Box::new(task)), after_report: None, latency: 0.0, bandwidth: f64::INFINITY };
        let mut recording = Self::default();
        simulate::run(Arc::new(method), options, &cluster, None, &mut recording)?;
        Ok(recording)
    }

    /// The rows of a table.
    pub fn table(&self, name: &str) -> impl Iterator<Item = &Row> {
        self.rows.iter().filter(move |row| row.table == name)
    }

    /// The values of a column of a table, in the rows that have one.
    pub fn column(&self, table: &str, name: &str) -> Vec<f64> {
        let values = self.table(table).flat_map(|row| &row.values);
        values.filter(|(other, _)| other == name).map(|(_, value)| *value).collect()
    }

    /// All values of a group of draws, chain after chain. Panics if the group has none.
    pub fn values<N: bytemuck::AnyBitPattern + bytemuck::NoUninit>(&self, group: &str) -> Vec<N> {
        let mut blocks = self.draws.iter().filter(|((other, ..), _)| other == group).peekable();
        assert!(blocks.peek().is_some(), "no draws of the group {group}");
        blocks.flat_map(|(_, draws)| bytemuck::pod_collect_to_vec::<u8, N>(&draws.bytes)).collect()
    }

    /// The blocks of a posterior chain (draws × parameters), each with the number of its first draw.
    pub fn blocks(&self, chain: u32) -> impl Iterator<Item = (u64, Array2<f64>)> {
        let posterior = self.draws.values().filter(move |draws| draws.group == "posterior" && draws.chain == chain);
        posterior.map(|draws| {
            let (dim, values) = (draws.dim as usize, bytemuck::pod_collect_to_vec(&draws.bytes));
            (draws.first, Array2::from_shape_vec((values.len() / dim, dim), values).unwrap())
        })
    }

    /// The particles at the end of the run (particles × parameters).
    pub fn particles(&self) -> Array2<f64> {
        self.chain(0)
    }

    /// All draws of a chain (draws × parameters).
    pub fn chain(&self, chain: u32) -> Array2<f64> {
        let blocks: Vec<_> = self.blocks(chain).map(|block| block.1).collect();
        let views: Vec<_> = blocks.iter().map(|block| block.view()).collect();
        ndarray::concatenate(Axis(0), &views).unwrap()
    }
}

/// Runs a method with a seed to success.
pub fn run<M: Method>(method: M, seed: u64) -> Recording {
    Recording::of(method, JobOptions::new(Seed(seed))).unwrap()
}

/// The value of a column in a row.
pub fn value(row: &Row, name: &str) -> f64 {
    row.values.iter().find(|value| value.0 == name).unwrap().1
}
