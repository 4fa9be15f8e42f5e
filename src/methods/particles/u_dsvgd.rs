//! Unconstrained-memory distributed Stein variational gradient descent (U-DSVGD): agents keep the particles before and after all of their
//! visits (Kassab & Simeone, arXiv 2009.06419, section 5.1).

use super::dsvgd::settings::{numbers, worked_on};
use super::dsvgd::{Dsvgd, DsvgdSettings, Factors};
use crate::kernels::adagrad::Optimizer;
use crate::kernels::kde::{Kde, KdeMode};
use crate::kernels::rbf::Bandwidth;
use crate::kernels::svgd::Settings;
use crate::methods::common::settings::{MethodSettings, ResourceEstimate, Table, TableMethod, at_least_one};

use crate::methods::common::participation::Participation;
use crate::methods::common::problem::Problem;
use crate::number::Real;
use crate::settings::{Key, keys};
use documented::DocumentedFields;
use serde::{Deserialize, Serialize};

/// The settings of `u_dsvgd`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, DocumentedFields)]
#[serde(deny_unknown_fields, default)]
pub struct UDsvgdSettings {
    /// N.
    particles: usize,
    /// I; one agent is visited in each round.
    rounds: u64,
    /// L, steps of a visit.
    local_steps: u64,
    /// Rows in a minibatch.
    batch: usize,
    /// In which order agents are visited.
    schedule: Participation,
    /// The bandwidth h of the kernel.
    bandwidth: Bandwidth,
    /// The density estimates behind the cavity.
    kde: KdeMode,
    /// Their bandwidth λ.
    kde_bandwidth: f64,
    /// How a direction becomes a step.
    optimizer: Optimizer,
}

impl Default for UDsvgdSettings {
    fn default() -> Self {
        let DsvgdSettings { particles, rounds, local_steps, batch, schedule, bandwidth, kde, kde_bandwidth, optimizer, .. } =
            DsvgdSettings::default();
        Self { particles, rounds, local_steps, batch, schedule, bandwidth, kde, kde_bandwidth, optimizer }
    }
}

impl UDsvgdSettings {
    fn stein(&self) -> Settings {
        Settings::rbf(self.bandwidth, self.optimizer, Kde { mode: self.kde, bandwidth: self.kde_bandwidth })
    }
}

impl MethodSettings for UDsvgdSettings {
    type Data = Table;

    const NAME: &'static str = "u_dsvgd";

    fn keys() -> Vec<Key> {
        keys::<Self>()
    }

    fn estimate(&self, agents: u32, parameters: usize) -> ResourceEstimate {
        let visits = self.rounds.div_ceil(u64::from(agents.max(1)));
        ResourceEstimate {
            particles: Some(self.particles as u64),
            rounds: Some(self.rounds),
            minibatch: Some(self.batch as u64),
            // Two sets for each visit, twice: in memory, and among the rows of the loop. Particles, score, direction, the optimiser's
            // mean square.
            values_of_agent: Some(worked_on(visits.saturating_mul(4).saturating_add(5), self.particles, parameters)),
            values_per_round: Some(if agents > 1 { numbers(2, self.particles, parameters) } else { 0 }),
            ..ResourceEstimate::default()
        }
    }

    fn check(&self) -> Result<(), String> {
        let Self { particles, rounds, local_steps, batch, .. } = *self;
        at_least_one(&[
            ("particles", particles as u64),
            ("rounds", rounds),
            ("local_steps", local_steps),
            ("batch", batch as u64),
        ])?;
        self.schedule.check_one()?;
        if self.kde == KdeMode::None {
            return Err("kde = \"none\": the prior and other agents' data travel in the density estimates alone; take dsvgd to see what is \
                        left without them"
                .into());
        }
        self.stein().check().map_err(|error| error.to_string())
    }

    fn method<F: Real>(&self, problem: Problem<F>) -> TableMethod<F> {
        let Self { particles, rounds, schedule, local_steps, batch, .. } = *self;
        let (factors, stein) = (Factors::Remembered, self.stein());
        TableMethod::particles(Dsvgd {
            problem,
            rounds,
            schedule,
            particles,
            local_steps,
            factors,
            batch,
            stein,
            server_steps: None,
        })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn check<K: MethodSettings>(text: &str) -> Result<(), String> {
        toml::from_str::<K>(text).unwrap().check()
    }

    #[test]
    fn settings_that_agents_cannot_remember_are_refused() {
        for fine in ["", "schedule = \"random_permutation\"", "kde = \"authors_compat\""] {
            assert_eq!(check::<UDsvgdSettings>(fine), Ok(()), "{fine}");
        }
        for (bad, says) in
            [("rounds = 0", "rounds"), ("batch = 0", "batch"), ("kde = \"none\"", "the prior"), ("schedule = \"all\"", "p_dsvgd")]
        {
            assert!(check::<UDsvgdSettings>(bad).unwrap_err().contains(says), "{bad}");
        }
    }
}
