//! Settings of distributed Stein variational gradient descent (`dsvgd`) and the keys that it shares with its variants `u_dsvgd` and `p_dsvgd`.

use super::{Curvature, Dsvgd, Factors, PriorConvention, SiteSettings};
use crate::kernels::adagrad::Optimizer;
use crate::kernels::kde::{Kde, KdeMode};
use crate::kernels::rbf::Bandwidth;
use crate::kernels::svgd::Settings;
use crate::methods::common::settings::{MethodSettings, ResourceEstimate, Table, TableMethod, at_least_one};

use crate::methods::common::participation::Participation;
use crate::methods::common::problem::Problem;
use crate::models::{CurvatureSupport, Model};
use crate::number::Real;
use crate::settings::{Key, keys};
use documented::DocumentedFields;
use serde::{Deserialize, Serialize};

/// What keeps an agent from forgetting the others' data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Cavity {
    /// Sites where the model tells the curvature of its loss, of whole matrices up to 300 parameters; density estimates elsewhere.
    #[default]
    Auto,
    /// Ratios of density estimates, distilled into particles of the agents.
    Kde,
    /// Quadratic models of agents' losses at each particle.
    Sites(SiteSettings),
}

/// Parameters up to which sites keep whole matrices if nobody says otherwise: the product with them is then cheap beside the loss.
const MOST_FULL: usize = 300;

impl Cavity {
    pub(crate) fn factors<F: Real>(self, model: &dyn Model<F>, steps: u64, prior: PriorConvention) -> Factors {
        match (self, model.curvature_support()) {
            (Self::Kde, _) | (Self::Auto, CurvatureSupport::None) => Factors::Distilled { steps, prior },
            (Self::Auto, CurvatureSupport::Full) if model.dim() <= MOST_FULL => {
                Factors::Sites(SiteSettings { curvature: Curvature::Full, ..SiteSettings::default() })
            }
            (Self::Auto, _) => Factors::Sites(SiteSettings::default()),
            (Self::Sites(sites), _) => Factors::Sites(sites),
        }
    }

    pub(crate) fn check(self, prior: PriorConvention, kde: KdeMode) -> Result<(), String> {
        let is_default = prior == PriorConvention::default() && kde == KdeMode::default();
        match self {
            Self::Auto | Self::Sites(_) if !is_default => {
                Err("cavity: `kde` and `prior` are settings of cavity = \"kde\": set that, or leave them out".into())
            }
            Self::Auto => Ok(()),
            Self::Sites(sites) => sites.check(),
            Self::Kde if prior == PriorConvention::Pure && kde == KdeMode::None => {
                Err("prior = \"pure\" with kde = \"none\": the prior travels in the density estimates alone, and would be lost after \
                     the first round; set prior = \"absorbed\""
                    .into())
            }
            Self::Kde => Ok(()),
        }
    }

    /// Numbers of the sums that travel with N particles in d dimensions, and sets of as many numbers as particles have that an agent
    /// keeps and works on.
    pub(crate) fn needs(self, particles: usize, parameters: usize) -> (u64, u64) {
        match self {
            // Global particles before and after, local ones, score, direction, the optimiser's mean square, and two scores of frozen
            // densities.
            Self::Kde => (0, 8),
            // The sums that came, those without its own, its own old and new, and what changed.
            Self::Auto => (SiteSettings::default().size(particles, parameters) as u64, 20),
            Self::Sites(sites) => (sites.size(particles, parameters) as u64, 20),
        }
    }
}

/// Numbers of so many sets of particles.
pub(crate) fn numbers(sets: u64, particles: usize, parameters: usize) -> u64 {
    (particles as u64).saturating_mul(parameters as u64).saturating_mul(sets)
}

/// Numbers that an agent works on: these sets, and the distances between particles.
pub(crate) fn worked_on(sets: u64, particles: usize, parameters: usize) -> u64 {
    numbers(sets, particles, parameters).saturating_add((particles as u64).saturating_mul(particles as u64))
}

/// The settings of `dsvgd`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, DocumentedFields)]
#[serde(deny_unknown_fields, default)]
pub struct DsvgdSettings {
    /// N.
    pub(crate) particles: usize,
    /// I; one agent is visited in each round.
    pub(crate) rounds: u64,
    /// L, steps of the global loop.
    pub(crate) local_steps: u64,
    /// L', steps of the distillation loop.
    pub(crate) distillation_steps: u64,
    /// Rows in a minibatch.
    pub(crate) batch: usize,
    /// In which order agents are visited.
    pub(crate) schedule: Participation,
    /// What keeps an agent from forgetting the others' data.
    pub(crate) cavity: Cavity,
    /// Who carries the prior.
    pub(crate) prior: PriorConvention,
    /// The bandwidth h of the kernel.
    pub(crate) bandwidth: Bandwidth,
    /// The density estimate behind the cavity.
    pub(crate) kde: KdeMode,
    /// Its bandwidth λ.
    pub(crate) kde_bandwidth: f64,
    /// How a direction becomes a step.
    pub(crate) optimizer: Optimizer,
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
            schedule: Participation::default(),
            cavity: Cavity::default(),
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
        Settings::rbf(self.bandwidth, self.optimizer, Kde { mode: self.kde, bandwidth: self.kde_bandwidth })
    }
}

impl MethodSettings for DsvgdSettings {
    type Data = Table;

    const NAME: &'static str = "dsvgd";

    fn keys() -> Vec<Key> {
        keys::<Self>()
    }

    fn estimate(&self, agents: u32, parameters: usize) -> ResourceEstimate {
        let (sums, sets) = self.cavity.needs(self.particles, parameters);
        let message = numbers(1, self.particles, parameters).saturating_add(sums);
        ResourceEstimate {
            particles: Some(self.particles as u64),
            rounds: Some(self.rounds),
            minibatch: Some(self.batch as u64),
            values_of_agent: Some(worked_on(sets, self.particles, parameters)),
            // To an agent and back; a single agent lives with the server.
            values_per_round: Some(if agents > 1 { message.saturating_mul(2) } else { 0 }),
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
        self.cavity.check(self.prior, self.kde)?;
        self.stein().check().map_err(|error| error.to_string())
    }

    fn method<F: Real>(&self, problem: Problem<F>) -> TableMethod<F> {
        let Self { particles, rounds, schedule, local_steps, batch, .. } = *self;
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
    fn settings_that_cannot_be_run_are_refused() {
        for fine in
            ["", "rounds = 1", "distillation_steps = 0", "cavity = { sites = {} }", "cavity = { sites = { caution = 3.0 } }"]
        {
            assert_eq!(check::<DsvgdSettings>(fine), Ok(()), "{fine}");
        }
        for fine in ["", "prior = \"pure\"", "kde = \"none\""] {
            assert_eq!(check::<DsvgdSettings>(&format!("cavity = \"kde\"\n{fine}")), Ok(()), "{fine}");
        }
        for (bad, says) in [
            ("rounds = 0", "rounds"),
            ("particles = 0", "particles"),
            ("local_steps = 0", "local_steps"),
            ("kde_bandwidth = 0.0", "bandwidth"),
            ("schedule = \"all\"", "p_dsvgd"),
            ("cavity = { sites = { caution = 0.0 } }", "caution"),
            ("kde = \"none\"", "cavity = \"kde\""),
            ("cavity = { sites = {} }\nprior = \"pure\"", "cavity = \"kde\""),
            ("cavity = \"kde\"\nprior = \"pure\"\nkde = \"none\"", "the prior travels"),
        ] {
            let message = check::<DsvgdSettings>(bad).unwrap_err();
            assert!(message.contains(says) && !message.contains("  "), "{bad}: {message}");
        }
    }
}
