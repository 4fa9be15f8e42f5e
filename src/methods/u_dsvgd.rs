//! Unconstrained-memory distributed SVGD as a run file names it: DSVGD whose agents remember all of their visits (Kassab & Simeone,
//! arXiv 2009.06419, section 5.1).

use super::dsvgd::{Dsvgd, Factors};
use super::kind::{Launcher, MethodKind, Needs, at_least_one};
use super::problem::Problem;
use super::visit_order::VisitOrder;
use crate::kernels::adagrad::Optimizer;
use crate::kernels::kde::{Kde, KdeMode};
use crate::kernels::rbf::Bandwidth;
use crate::kernels::svgd::{Kernel, Settings};
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
    schedule: VisitOrder,
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
        let Kde { mode, bandwidth } = Kde::default();
        Self {
            particles: 20,
            rounds: 10,
            local_steps: 200,
            batch: 100,
            schedule: VisitOrder::default(),
            bandwidth: Bandwidth::default(),
            kde: mode,
            kde_bandwidth: bandwidth,
            optimizer: Optimizer::default(),
        }
    }
}

impl UDsvgdSettings {
    fn stein(&self) -> Settings {
        let kde = Kde { mode: self.kde, bandwidth: self.kde_bandwidth };
        Settings { kernel: Kernel::Rbf(self.bandwidth), optimizer: self.optimizer, kde }
    }
}

impl MethodKind for UDsvgdSettings {
    const NAME: &'static str = "u-dsvgd";

    const DOCS: &'static [(&'static str, &'static str)] = &[
        ("particles", "N, how many particles stand for the posterior"),
        ("rounds", "rounds: one agent is visited in each, and remembers it"),
        ("local_steps", "L, steps of the agent's loop in its round"),
        ("batch", "rows in a minibatch of the agent"),
        ("schedule", VisitOrder::DOCS),
        (
            "bandwidth",
            "h of the kernel: \"repository\" (the median of all squared distances over log(N + 1)), \"paper\" (Liu & Wang 2016) or { fixed = 1.0 }",
        ),
        (
            "optimizer",
            "{ adagrad = { step = 0.05, decay = 0.9, fudge = 1e-9 } } or { plain = { step = 1e-3 } }; networks want step = 1e-3, fudge = 1e-6",
        ),
        (
            "kde",
            "the density estimates behind the cavity: { lse = { floor = 1e-9 } } or \"authors_compat\" (as the authors' code)",
        ),
        ("kde_bandwidth", "λ, the bandwidth of these estimates"),
    ];

    fn needs(&self, agents: u32, parameters: usize) -> Needs {
        let particles = self.particles as u64;
        let set = particles.saturating_mul(parameters as u64);
        let visits = self.rounds.div_ceil(u64::from(agents.max(1)));
        Needs {
            particles: Some(particles),
            rounds: Some(self.rounds),
            minibatch: Some(self.batch as u64),
            // Two sets for each visit, twice: in memory, and among the rows of the loop. Particles, score, direction, the optimiser's
            // mean square.
            numbers_of_agent: Some(set.saturating_mul(visits.saturating_mul(4).saturating_add(5))),
            numbers_per_round: Some(if agents > 1 { set.saturating_mul(2) } else { 0 }),
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
        if self.kde == KdeMode::None {
            return Err("kde = \"none\": the prior and other agents' data travel in the density estimates alone; take dsvgd to see what is \
                        left without them"
                .into());
        }
        self.stein().check().map_err(|error| error.to_string())
    }

    fn launch<F: Real, L: Launcher<F>>(&self, problem: Problem<F>, launcher: L) -> L::Outcome {
        let model = problem.model.clone();
        let Self { particles, rounds, local_steps, batch, schedule, .. } = *self;
        let (factors, stein) = (Factors::Remembered, self.stein());
        launcher.particles(Dsvgd { problem, particles, rounds, local_steps, factors, batch, schedule, stein }, model)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn settings_that_cannot_be_run_are_refused() {
        let check = |text: &str| toml::from_str::<UDsvgdSettings>(text).unwrap().check();
        for fine in ["", "schedule = \"random_permutation\"", "kde = \"authors_compat\""] {
            assert_eq!(check(fine), Ok(()), "{fine}");
        }
        for (bad, says) in [("rounds = 0", "rounds"), ("batch = 0", "batch"), ("kde = \"none\"", "the prior")] {
            assert!(check(bad).unwrap_err().contains(says), "{bad}");
        }
    }
}
