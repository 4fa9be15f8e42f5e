//! What the trajectories of Hamiltonian Monte Carlo were like: how many diverged, and their mean acceptance and length.

use super::error::Result;
use crate::methods::chains::hmc::{MAX_DOUBLINGS, SAMPLE_STATS, SAMPLE_STATS_GROUP};
use crate::results::ResultFile;
use ndarray::ArrayView1;
use serde::Serialize;

/// The trajectories that led to the draws of a run.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Trajectories {
    /// How many.
    pub count: usize,
    /// How many ended because a step changed the energy by too much.
    pub diverged: usize,
    /// How many reached the largest length.
    pub longest: usize,
    /// The mean acceptance of their steps.
    pub acceptance: f64,
    /// The mean number of leapfrog steps.
    pub leapfrog_steps: f64,
}

impl Trajectories {
    /// Those of a result file; none if the method has none, or there is no draw yet.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn of(file: &ResultFile) -> Result<Option<Self>> {
        if !file.sample_groups()?.iter().any(|group| group == SAMPLE_STATS_GROUP) {
            return Ok(None);
        }
        let statistics = file.samples(SAMPLE_STATS_GROUP)?.values.matrix();
        let column =
            |name: &str| SAMPLE_STATS.iter().position(|statistic| *statistic == name).map(|place| statistics.column(place));
        let (Some(diverging), Some(acceptance), Some(steps), Some(depth)) =
            (column("diverging"), column("acceptance_rate"), column("n_steps"), column("tree_depth"))
        else {
            return Ok(None);
        };
        // During a run, chains may have different lengths, and shorter ones are filled with NaN.
        let present = |values: ArrayView1<f64>| values.into_iter().copied().filter(|value| !value.is_nan()).collect::<Vec<f64>>();
        let mean = |values: Vec<f64>| values.iter().sum::<f64>() / values.len() as f64;
        let count = present(steps).len();
        let diverged = diverging.iter().filter(|&&value| value > 0.0).count();
        let longest = depth.iter().filter(|&&depth| depth >= f64::from(MAX_DOUBLINGS)).count();
        let (acceptance, leapfrog_steps) = (mean(present(acceptance)), mean(present(steps)));
        Ok((count > 0).then_some(Self { count, diverged, longest, acceptance, leapfrog_steps }))
    }
}
