//! The methods that come along, as run files name them.

use super::super::registry::MethodKind;
use super::{Launch, RunError, Setup};
use crate::kernels::adagrad::Optimizer;
use crate::kernels::kde::{Kde, KdeMode};
use crate::kernels::rbf::Bandwidth;
use crate::kernels::svgd::{Kernel, Settings};
use crate::methods::dsvgd::PriorConvention;
use crate::methods::{dsvgd, svgd};
use crate::number::Real;
use serde::{Deserialize, Serialize};

/// `svgd`.
pub struct Svgd;

/// The settings of `svgd`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SvgdSettings {
    /// N.
    particles: usize,
    /// Rounds of steps; the particles are evaluated after each.
    rounds: u64,
    /// Steps in a round; the optimiser starts afresh with each round.
    steps: u64,
    /// Rows in a minibatch, over all agents.
    batch: usize,
    /// The bandwidth h of the kernel.
    bandwidth: Bandwidth,
    /// How a direction becomes a step.
    optimizer: Optimizer,
}

impl Default for SvgdSettings {
    fn default() -> Self {
        let (bandwidth, optimizer) = (Bandwidth::default(), Optimizer::default());
        Self { particles: 20, rounds: 10, steps: 200, batch: 100, bandwidth, optimizer }
    }
}

impl SvgdSettings {
    fn stein(&self) -> Settings {
        Settings { kernel: Kernel::Rbf(self.bandwidth), optimizer: self.optimizer, kde: Kde::default() }
    }
}

impl MethodKind for Svgd {
    const NAME: &'static str = "svgd";
    const ABOUT: &'static str = "Stein variational gradient descent on all data, on one agent or spread over agents";
    type Settings = SvgdSettings;

    fn check(settings: &SvgdSettings) -> Result<(), String> {
        at_least_one(&[("particles", settings.particles as u64), ("steps", settings.steps), ("batch", settings.batch as u64)])?;
        settings.stein().check().map_err(|error| error.to_string())
    }

    fn launch<F: Real>(settings: &SvgdSettings, setup: Setup<F>, launch: Launch) -> Result<(), RunError> {
        let model = setup.problem.model.clone();
        let method = svgd::Svgd {
            problem: setup.problem,
            particles: settings.particles,
            rounds: settings.rounds,
            steps: settings.steps,
            batch: settings.batch,
            stein: settings.stein(),
        };
        launch.particles(method, model, setup.test, setup.evaluate_every)
    }
}

/// `dsvgd`.
pub struct Dsvgd;

/// The settings of `dsvgd`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct DsvgdSettings {
    /// N.
    particles: usize,
    /// I; one agent is visited in each round.
    rounds: u64,
    /// L, steps of the global loop.
    local_steps: u64,
    /// L', steps of the distillation loop.
    distillation_steps: u64,
    /// Rows in a minibatch.
    batch: usize,
    /// Who carries the prior.
    prior: PriorConvention,
    /// The bandwidth h of the kernel.
    bandwidth: Bandwidth,
    /// The density estimate behind the cavity.
    kde: KdeMode,
    /// Its bandwidth λ.
    kde_bandwidth: f64,
    /// How a direction becomes a step.
    optimizer: Optimizer,
}

impl Default for DsvgdSettings {
    fn default() -> Self {
        let Kde { mode, bandwidth } = Kde::default();
        Self {
            particles: 20,
            rounds: 10,
            local_steps: 200,
            distillation_steps: 200,
            batch: 100,
            prior: PriorConvention::default(),
            bandwidth: Bandwidth::default(),
            kde: mode,
            kde_bandwidth: bandwidth,
            optimizer: Optimizer::default(),
        }
    }
}

impl DsvgdSettings {
    fn stein(&self) -> Settings {
        let kde = Kde { mode: self.kde, bandwidth: self.kde_bandwidth };
        Settings { kernel: Kernel::Rbf(self.bandwidth), optimizer: self.optimizer, kde }
    }
}

impl MethodKind for Dsvgd {
    const NAME: &'static str = "dsvgd";
    const ABOUT: &'static str = "distributed SVGD: particles visit one agent after another (Kassab & Simeone)";
    type Settings = DsvgdSettings;

    fn check(settings: &DsvgdSettings) -> Result<(), String> {
        let counts =
            [("particles", settings.particles as u64), ("local_steps", settings.local_steps), ("batch", settings.batch as u64)];
        at_least_one(&counts)?;
        settings.stein().check().map_err(|error| error.to_string())
    }

    fn launch<F: Real>(settings: &DsvgdSettings, setup: Setup<F>, launch: Launch) -> Result<(), RunError> {
        let model = setup.problem.model.clone();
        let method = dsvgd::Dsvgd {
            problem: setup.problem,
            particles: settings.particles,
            rounds: settings.rounds,
            local_steps: settings.local_steps,
            distillation_steps: settings.distillation_steps,
            batch: settings.batch,
            prior: settings.prior,
            stein: settings.stein(),
        };
        launch.particles(method, model, setup.test, setup.evaluate_every)
    }
}

fn at_least_one(counts: &[(&str, u64)]) -> Result<(), String> {
    match counts.iter().find(|(_, count)| *count == 0) {
        Some((name, _)) => Err(format!("{name} = 0: must be at least 1")),
        None => Ok(()),
    }
}
