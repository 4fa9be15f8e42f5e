//! Parallel distributed Stein variational gradient descent (P-DSVGD): several agents in each round, whose factors the server multiplies
//! (Kassab & Simeone, arXiv 2009.06419, appendix A.5).

use super::dsvgd::settings::{numbers, worked_on};
use super::dsvgd::{Cavity, Dsvgd, DsvgdSettings, PriorConvention};
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

/// The settings of `p_dsvgd`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, DocumentedFields)]
#[serde(deny_unknown_fields, default)]
pub struct PDsvgdSettings {
    /// N.
    particles: usize,
    /// I.
    rounds: u64,
    /// L, steps of agents' global loops.
    local_steps: u64,
    /// L', steps of their distillation loops.
    distillation_steps: u64,
    /// L_s, steps of the server's loop.
    server_steps: u64,
    /// Rows in a minibatch.
    batch: usize,
    /// Who takes part in a round.
    schedule: Participation,
    /// What keeps an agent from forgetting the others' data.
    cavity: Cavity,
    /// Who carries the prior.
    prior: PriorConvention,
    /// The bandwidth h of the kernel.
    bandwidth: Bandwidth,
    /// The density estimates of factors.
    kde: KdeMode,
    /// Their bandwidth λ.
    kde_bandwidth: f64,
    /// How a direction becomes a step.
    optimizer: Optimizer,
}

impl Default for PDsvgdSettings {
    fn default() -> Self {
        let DsvgdSettings {
            particles,
            rounds,
            local_steps,
            distillation_steps,
            batch,
            cavity,
            prior,
            bandwidth,
            kde,
            kde_bandwidth,
            optimizer,
            ..
        } = DsvgdSettings::default();
        Self {
            particles,
            rounds,
            local_steps,
            distillation_steps,
            server_steps: local_steps,
            batch,
            schedule: Participation::All,
            cavity,
            prior,
            bandwidth,
            kde,
            kde_bandwidth,
            optimizer,
        }
    }
}

impl PDsvgdSettings {
    fn stein(&self) -> Settings {
        Settings::rbf(self.bandwidth, self.optimizer, Kde { mode: self.kde, bandwidth: self.kde_bandwidth })
    }
}

impl MethodSettings for PDsvgdSettings {
    type Data = Table;

    const NAME: &'static str = "p_dsvgd";

    fn keys() -> Vec<Key> {
        keys::<Self>()
    }

    fn estimate(&self, agents: u32, parameters: usize) -> ResourceEstimate {
        let (sums, sets) = self.cavity.needs(self.particles, parameters);
        let set = numbers(1, self.particles, parameters);
        let answer = if sums > 0 { sums } else { set };
        let messages = set.saturating_add(sums).saturating_add(answer);
        let visited = u64::from(self.schedule.size(agents));
        ResourceEstimate {
            particles: Some(self.particles as u64),
            rounds: Some(self.rounds),
            minibatch: Some(self.batch as u64),
            values_of_agent: Some(worked_on(sets, self.particles, parameters)),
            values_per_round: Some(if agents > 1 { messages.saturating_mul(visited) } else { 0 }),
            ..ResourceEstimate::default()
        }
    }

    fn check(&self) -> Result<(), String> {
        let Self { particles, rounds, local_steps, server_steps, batch, .. } = *self;
        at_least_one(&[
            ("particles", particles as u64),
            ("rounds", rounds),
            ("local_steps", local_steps),
            ("server_steps", server_steps),
            ("batch", batch as u64),
        ])?;
        self.schedule.check()?;
        self.cavity.check(self.prior, self.kde)?;
        if self.kde == KdeMode::None {
            return Err(
                "kde = \"none\": agents' data come to the server in density estimates alone; take cavity = { sites = {} }, or \
                        dsvgd to see what is left without them"
                    .into(),
            );
        }
        self.stein().check().map_err(|error| error.to_string())
    }

    fn check_agents(&self, agents: u32) -> Result<(), String> {
        self.schedule.check_agents(agents)
    }

    fn method<F: Real>(&self, problem: Problem<F>) -> TableMethod<F> {
        let Self { particles, rounds, schedule, local_steps, batch, server_steps, .. } = *self;
        let (factors, stein) = (self.cavity.factors(problem.model.as_ref(), self.distillation_steps, self.prior), self.stein());
        TableMethod::particles(Dsvgd {
            problem,
            rounds,
            schedule,
            particles,
            local_steps,
            factors,
            batch,
            stein,
            server_steps: Some(server_steps),
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
    fn settings_that_a_server_cannot_put_together_are_refused() {
        for fine in ["", "schedule = { subset = 20 }", "cavity = { sites = { caution = 3.0 } }"] {
            assert_eq!(check::<PDsvgdSettings>(fine), Ok(()), "{fine}");
        }
        for (bad, says) in [
            ("server_steps = 0", "server_steps"),
            ("schedule = { subset = 0 }", "at least 1"),
            ("cavity = \"kde\"\nkde = \"none\"", "sites"),
            ("cavity = { sites = { caution = -1.0 } }", "caution"),
        ] {
            assert!(check::<PDsvgdSettings>(bad).unwrap_err().contains(says), "{bad}");
        }
        let few = toml::from_str::<PDsvgdSettings>("schedule = { subset = 20 }").unwrap();
        assert!(few.check_agents(20).is_ok() && few.check_agents(19).unwrap_err().contains("at most 19"));
    }
}
