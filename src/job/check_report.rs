//! The report of a check: what a run consists of, and what it needs.

use super::pointwise;
use crate::data::Task;
use crate::methods::tuning::{DrawCount, TuningNeeds, draws_of};
use crate::methods::{DocumentBytes, ResourceEstimate, Sharing};
use ndarray::Array2;
use std::path::{Path, PathBuf};

/// The data of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct DataReport {
    /// The file.
    pub path: PathBuf,
    /// What they consist of.
    pub content: DataContent,
    /// Training rows or documents.
    pub train: usize,
    /// Test rows or held-out documents.
    pub test: usize,
    /// The digest of their content.
    pub digest: String,
}

/// What data consist of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DataContent {
    /// Rows.
    Table {
        /// Classification or regression.
        task: Task,
        /// Features of a row.
        features: usize,
        /// How many classes; 0 for regression.
        classes: usize,
    },
    /// Documents.
    Corpus {
        /// The size of the vocabulary (W).
        words: u32,
        /// Tokens of the training documents.
        tokens: u64,
        /// Distinct words of each training document, summed over documents.
        entries: usize,
    },
}

/// The training rows of each class at each agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClassCounts {
    /// The classes.
    pub classes: Vec<String>,
    /// Rows (agents × classes).
    pub rows: Array2<usize>,
}

/// How many draws a run keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlannedDraws {
    /// The particles of the last round, or the last state of a method without draws.
    Particles,
    /// This many of each chain.
    Each(u64),
    /// About this many of each chain: the length of the run is found before it starts.
    About(u64),
    /// The lengths on which it depends are found before the run starts.
    Unknown,
}

impl PlannedDraws {
    pub(super) fn of(estimate: &ResourceEstimate, needs: Option<&TuningNeeds>, has_curvature: bool) -> Self {
        let Some(draws) = estimate.draws else { return Self::Particles };
        match needs.map_or(DrawCount::Given, |needs| needs.draws) {
            DrawCount::Given => Self::Each(draws),
            // At most 3.5e9 in all.
            DrawCount::OfEss(ess) => {
                Self::About((draws_of(ess, !has_curvature) / estimate.particles.unwrap_or(1) as f64).ceil() as u64)
            }
            DrawCount::Unknown => Self::Unknown,
        }
    }

    /// About how many draws each chain keeps, if that is known.
    fn of_each(self) -> Option<u64> {
        match self {
            Self::Particles => Some(1),
            Self::Each(draws) | Self::About(draws) => Some(draws),
            Self::Unknown => None,
        }
    }
}

/// A run that can be started.
#[derive(Clone, Debug)]
pub struct CheckReport {
    /// The seed.
    pub seed: u64,
    /// The number of agents.
    pub agents: u32,
    /// The temperature; none for topic models.
    pub temperature: Option<f64>,
    /// Rounds between evaluations; 0 for none. None if that depends on the length of the run, which is found before it starts.
    pub evaluate_every: Option<u64>,
    /// The method's name.
    pub method: &'static str,
    /// The model's name.
    pub model: &'static str,
    /// The number of parameters (d).
    pub parameters: usize,
    /// The number of values that each agent needs for each thread in addition.
    pub buffered_values: usize,
    /// Whether the model makes predictions, which could be evaluated.
    pub predicts: bool,
    /// The data; none for a model that brings its own.
    pub data: Option<DataReport>,
    /// Training rows or documents of the agents with the fewest and with the most.
    pub rows_per_agent: (usize, usize),
    /// The training rows of each class at each agent, if the partition depends on classes.
    pub class_counts: Option<ClassCounts>,
    /// What the method needs.
    pub estimate: ResourceEstimate,
    /// Bytes of a value.
    pub value_bytes: u64,
    /// Who holds which rows.
    pub sharing: Sharing,
    /// Whether the length of the run is found before it starts.
    pub lengths_are_found: bool,
    /// How many draws the run keeps.
    pub draws: PlannedDraws,
    /// Whether rank 0 hosts no agents.
    pub dedicated: bool,
    /// The rows whose log-likelihoods are kept; 0 for none.
    pub pointwise_rows: usize,
    /// Remarks on settings that are allowed but perhaps not meant.
    pub notes: Vec<String>,
}

impl CheckReport {
    /// The file and the digest of the data, if the run has any.
    pub fn data_identity(&self) -> Option<(&Path, &str)> {
        self.data.as_ref().map(|data| (data.path.as_path(), data.digest.as_str()))
    }

    /// Memory of an agent in bytes, rows and working arrays, if the method estimates it.
    pub fn bytes_of_agent(&self, threads: usize) -> Option<u64> {
        self.bytes_of_agents(1, threads)
    }

    /// Memory of agents on one rank with this many threads, who share rows if all of them see all rows.
    pub fn bytes_of_agents(&self, agents: u32, threads: usize) -> Option<u64> {
        let buffers = (self.buffered_values as u64).saturating_mul(threads as u64);
        let working = self.estimate.values_of_agent?.saturating_add(buffers).saturating_mul(self.value_bytes);
        let shards = self.sharing.shards(agents as usize) as u64;
        Some(self.bytes_of_shard().saturating_mul(shards).saturating_add(working.saturating_mul(agents.into())))
    }

    /// About the bytes of the draws of the whole run, if that is known.
    pub fn bytes_of_draws(&self) -> Option<u64> {
        // All agents share the topics of a draw.
        let sets = self.estimate.particles.unwrap_or(1).saturating_mul(self.draws.of_each()?);
        let values = sets.saturating_mul(self.parameters as u64);
        Some(values.saturating_mul(self.value_bytes))
    }

    /// About the bytes of the log-likelihoods of rows and of what the model predicts for them, if the number of draws is known.
    pub fn bytes_of_pointwise(&self) -> Option<u64> {
        if self.pointwise_rows == 0 {
            return Some(0);
        }
        let draws = self.draws.of_each()?.saturating_mul(self.estimate.particles?);
        Some(16 * pointwise::kept_values(self.pointwise_rows as u64, draws))
    }

    /// Bytes of the rows or documents of an agent.
    fn bytes_of_shard(&self) -> u64 {
        let rows = self.rows_per_agent.1 as u64;
        match self.data.as_ref().map(|data| (data.content, data.train as u64)) {
            None => rows.saturating_mul(2 * self.value_bytes),
            Some((DataContent::Table { features, .. }, _)) => {
                rows.saturating_mul(features as u64 + 1).saturating_mul(self.value_bytes)
            }
            Some((DataContent::Corpus { tokens, entries, .. }, documents)) => {
                let DocumentBytes { document, entry, token } = self.estimate.document_bytes;
                let all = document as f64 * documents as f64 + entry as f64 * entries as f64 + token as f64 * tokens as f64;
                (all * rows as f64 / documents.max(1) as f64) as u64
            }
        }
    }

    /// Bytes sent in a round, on average, if every agent has a rank of its own and the method estimates it.
    pub fn bytes_per_round(&self) -> Option<u64> {
        let set = self.estimate.particles.unwrap_or(0).saturating_mul(self.parameters as u64);
        // An evaluation sends the particles to all ranks.
        let to_all = set.saturating_mul(u64::from(self.agents.saturating_sub(1)));
        let evaluation = match self.evaluate_every {
            // Of at most twenty evaluations, little comes to a round.
            None => 0,
            Some(every) if self.is_evaluated() => to_all / every.max(1),
            Some(_) => 0,
        };
        Some(self.estimate.values_per_round?.saturating_add(evaluation).saturating_mul(self.value_bytes))
    }

    /// Whether predictions are evaluated during the run.
    pub fn is_evaluated(&self) -> bool {
        self.predicts && self.evaluate_every != Some(0) && self.data.as_ref().is_some_and(|data| data.test > 0)
    }
}
