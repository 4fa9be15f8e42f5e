//! Settings of partitioned variational inference (`pvi`) and the keys that it shares with `gvi`.

use super::nodes::node_count;
use super::{Covariance, Pvi};
use crate::methods::common::participation::Participation;
use crate::methods::common::problem::Problem;
use crate::methods::common::settings::{MethodSettings, ResourceEstimate, Table, TableMethod, at_least_one};
use crate::methods::tuning::TuningNeeds;
use crate::models::Model;
use crate::number::Real;
use crate::settings::{Key, KeyError, in_range, keys};
use documented::DocumentedFields;
use ndarray::{Array2, array};
use serde::{Deserialize, Serialize};

/// The settings of `pvi`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, DocumentedFields)]
#[serde(deny_unknown_fields, default)]
pub struct PviSettings {
    /// Rounds: in each, the agents that `schedule` selects fit their factors again. By default each agent is visited five times on average, in
    /// at least 10 rounds.
    pub(crate) rounds: Option<u64>,
    /// Steps in which an agent fits its factor in a round (L).
    pub(crate) iterations: u64,
    /// Weight of the new factor in each step (ρ), above 0 and at most 1.
    pub(crate) damping: f64,
    /// Which agents take part in a round: "all", { subset = 20 } (that many, drawn anew for each round), or one agent:
    /// "round_robin", "random_permutation" or "random".
    pub(crate) schedule: Participation,
    /// Whether the mode of the posterior is found before the run, the approximation is made in coordinates in which the posterior is close to
    /// a standard normal distribution, and factors start from the Gaussian around the mode instead of the prior. It has no effect on models
    /// without a full matrix of curvature or with more than 2,000 parameters, or if no mode is found.
    pub(crate) whitened: bool,
    /// Covariance of the Gaussian: "full" or "diagonal".
    pub(crate) covariance: Covariance,
    /// Points over which expectations are averaged: per axis in one and two dimensions (default 80 and 40), in total in more
    /// dimensions, where they are random (default twice the number of parameters; with a diagonal covariance at most 200).
    pub(crate) nodes: Option<usize>,
    /// Rows in a minibatch of each agent. By default all rows are used.
    pub(crate) batch: Option<usize>,
    /// Number of draws from the Gaussian that make predictions and are kept in the result file.
    pub(crate) particles: usize,
}

impl Default for PviSettings {
    fn default() -> Self {
        Self {
            rounds: None,
            iterations: 50,
            damping: 0.2,
            schedule: Participation::default(),
            whitened: true,
            covariance: Covariance::default(),
            nodes: None,
            batch: None,
            particles: 500,
        }
    }
}

impl PviSettings {
    /// The rounds. If they are neither given nor filled in by `for_agents`, those of a run with one agent.
    fn rounds(&self) -> u64 {
        self.schedule.rounds(self.rounds, 1)
    }

    pub(crate) fn pvi<F: Real>(&self, problem: Problem<F>) -> Pvi<F> {
        let Self { iterations, damping, schedule, covariance, nodes, batch, particles, .. } = *self;
        let rounds = self.rounds();
        Pvi { problem, rounds, schedule, iterations, damping, covariance, nodes, batch, particles }
    }
}

impl MethodSettings for PviSettings {
    type Data = Table;

    const NAME: &'static str = "pvi";

    fn keys() -> Vec<Key> {
        keys::<Self>()
    }

    fn estimate(&self, agents: u32, parameters: usize) -> ResourceEstimate {
        let d = parameters as u64;
        let (factor, matrices) = match self.covariance {
            Covariance::Full => (d.saturating_add(d.saturating_mul(d.saturating_add(1)) / 2), 3 * d),
            Covariance::Diagonal => (2 * d, 3),
        };
        let nodes = node_count(parameters, self.nodes, self.covariance) as u64;
        // The nodes, their scores, and two arrays of products; then matrices (full or diagonal) for Cholesky factors.
        let work = nodes.saturating_mul(4).saturating_add(matrices).saturating_mul(d);
        let together = u64::from(self.schedule.size(agents).max(1));
        ResourceEstimate {
            particles: Some(self.particles as u64),
            rounds: Some(self.rounds()),
            minibatch: self.batch.map(|batch| batch as u64),
            values_of_agent: Some(work.saturating_add(factor.saturating_mul(6))),
            values_per_round: Some(if agents > 1 { factor.saturating_mul(2 * together) } else { 0 }),
            ..ResourceEstimate::default()
        }
    }

    fn for_agents(&self, agents: u32) -> Self {
        Self { rounds: Some(self.schedule.rounds(self.rounds, agents)), ..self.clone() }
    }

    fn check(&self) -> Result<(), KeyError> {
        let Self { iterations, damping, nodes, batch, particles, .. } = *self;
        let [nodes, batch] = [nodes, batch].map(|count| count.unwrap_or(1) as u64);
        at_least_one(&[
            ("rounds", self.rounds()),
            ("iterations", iterations),
            ("nodes", nodes),
            ("batch", batch),
            ("particles", particles as u64),
        ])?;
        in_range("damping", damping, damping > 0.0 && damping <= 1.0, "above 0 and at most 1")?;
        self.schedule.check()
    }

    fn check_model(&self, model: &dyn Model<f64>) -> Result<(), KeyError> {
        let theta = array![[1.0], [-1.0]].broadcast((2, model.dim())).map(|both| both.to_owned());
        let Some(theta) = theta else { return Ok(()) };
        let mut scores = Array2::zeros(theta.dim());
        model.prior_score(theta.view(), scores.view_mut());
        match scores.columns().into_iter().all(|scores| scores.iter().any(|score| *score != 0.0)) {
            true => Ok(()),
            false => Err(KeyError::table(
                "needs a prior that is not flat in any parameter. Choose another prior, which gaussian_mean has with prior_precision above 0, or \
                 another method",
            )),
        }
    }

    fn notes(&self, agents: u32) -> Vec<String> {
        self.schedule.note_on_rounds(self.rounds(), agents).into_iter().collect()
    }

    fn tuning(&self) -> Option<TuningNeeds> {
        TuningNeeds::coordinates(self.whitened, self.rounds())
    }

    fn check_agents(&self, agents: u32) -> Result<(), KeyError> {
        self.schedule.check_agents(agents)
    }

    fn method<F: Real>(&self, problem: Problem<F>) -> TableMethod<F> {
        TableMethod::fitted_normal(self.pvi(problem))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::methods::variational::gvi::GviSettings;

    #[test]
    fn invalid_settings_are_refused() {
        let pvi = |text: &str| toml::from_str::<PviSettings>(text).unwrap().check();
        let gvi = |text: &str| toml::from_str::<GviSettings>(text).unwrap().check();
        for fine in ["", "damping = 1.0", "covariance = \"diagonal\"\nnodes = 7\nbatch = 10"] {
            assert!(pvi(fine) == Ok(()) && gvi(fine) == Ok(()), "{fine}");
        }
        for (bad, message) in [
            ("rounds = 0", "rounds"),
            ("damping = 0.0", "damping"),
            ("damping = 1.5", "at most 1"),
            ("damping = nan", "damping"),
            ("nodes = 0", "nodes"),
            ("batch = 0", "batch"),
            ("particles = 0", "particles"),
        ] {
            assert!(
                pvi(bad).unwrap_err().to_string().contains(message) && gvi(bad).unwrap_err().to_string().contains(message),
                "{bad}"
            );
        }
        assert!(pvi("iterations = 0").unwrap_err().to_string().contains("iterations"));
        assert!(pvi("schedule = { subset = 0 }").unwrap_err().to_string().contains("at least 1"));
        let subset = toml::from_str::<PviSettings>("schedule = { subset = 20 }").unwrap();
        assert!(subset.check_agents(20).is_ok() && subset.check_agents(19).unwrap_err().to_string().contains("at most 19"));
    }

    #[test]
    fn traffic_and_minibatches_are_predicted() {
        let needs = PviSettings::default().estimate(3, 10);
        assert_eq!((needs.values_per_round, needs.minibatch), (Some(2 * (10 + 55)), None));
        assert_eq!(GviSettings::default().estimate(3, 10).values_per_round, Some(3 * 2 * (10 + 55)));
        assert_eq!(GviSettings::default().estimate(1, 10).values_per_round, Some(0));
        let diagonal: PviSettings = toml::from_str("covariance = \"diagonal\"\nschedule = { subset = 4 }").unwrap();
        assert_eq!(diagonal.estimate(9, 10).values_per_round, Some(4 * 2 * 20));
    }
}
