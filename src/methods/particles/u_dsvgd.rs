//! Unconstrained-memory distributed Stein variational gradient descent (U-DSVGD): agents keep the particles before and after all of their
//! visits (Kassab & Simeone, arXiv 2009.06419, section 5.1).

use super::dsvgd::settings::{BATCH, KDE_BANDWIDTH, PARTICLES, numbers, worked_on};
use super::dsvgd::{Dsvgd, DsvgdSettings, Factors};
use crate::kernels::adagrad::Optimizer;
use crate::kernels::kde::{Kde, KdeMode};
use crate::kernels::rbf::Bandwidth;
use crate::kernels::svgd::Settings;
use crate::methods::common::kind::{Launcher, MethodKind, Needs, at_least_one};
use crate::methods::common::participation::Participation;
use crate::methods::common::problem::Problem;
use crate::number::Real;
use serde::{Deserialize, Serialize};

/// The settings of `u-dsvgd`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
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

impl MethodKind for UDsvgdSettings {
    const NAME: &'static str = "u-dsvgd";

    const DOCS: &'static [(&'static str, &'static str)] = &[
        PARTICLES,
        ("rounds", "rounds: one agent is visited in each, and remembers it"),
        ("local_steps", "L, steps of the agent's loop in its round"),
        BATCH,
        ("schedule", Participation::ONE),
        ("bandwidth", Bandwidth::DOCS),
        ("optimizer", Optimizer::DOCS),
        (
            "kde",
            "the density estimates behind the cavity: { lse = { floor = 1e-9 } } or \"authors_compat\" (as the authors' code)",
        ),
        KDE_BANDWIDTH,
    ];

    fn needs(&self, agents: u32, parameters: usize) -> Needs {
        let visits = self.rounds.div_ceil(u64::from(agents.max(1)));
        Needs {
            particles: Some(self.particles as u64),
            rounds: Some(self.rounds),
            minibatch: Some(self.batch as u64),
            // Two sets for each visit, twice: in memory, and among the rows of the loop. Particles, score, direction, the optimiser's
            // mean square.
            numbers_of_agent: Some(worked_on(visits.saturating_mul(4).saturating_add(5), self.particles, parameters)),
            numbers_per_round: Some(if agents > 1 { numbers(2, self.particles, parameters) } else { 0 }),
            ..Needs::default()
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

    fn launch<F: Real, L: Launcher<F>>(&self, problem: Problem<F>, launcher: L) -> L::Outcome {
        let Self { particles, rounds, schedule, local_steps, batch, .. } = *self;
        let model = problem.model.clone();
        let (factors, stein) = (Factors::Remembered, self.stein());
        launcher.particles(
            Dsvgd { problem, rounds, schedule, particles, local_steps, factors, batch, stein, server_steps: None },
            model,
        )
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn check<K: MethodKind>(text: &str) -> Result<(), String> {
        toml::from_str::<K>(text).unwrap().check()
    }

    #[test]
    fn settings_that_agents_cannot_remember_are_refused() {
        for fine in ["", "schedule = \"random_permutation\"", "kde = \"authors_compat\""] {
            assert_eq!(check::<UDsvgdSettings>(fine), Ok(()), "{fine}");
        }
        for (bad, says) in
            [("rounds = 0", "rounds"), ("batch = 0", "batch"), ("kde = \"none\"", "the prior"), ("schedule = \"all\"", "p-dsvgd")]
        {
            assert!(check::<UDsvgdSettings>(bad).unwrap_err().contains(says), "{bad}");
        }
    }
}
