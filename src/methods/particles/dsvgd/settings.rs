//! Settings of distributed Stein variational gradient descent (`dsvgd`), and the keys that it shares with its variants `u_dsvgd` and
//! `p_dsvgd`.

use super::{Curvature, Dsvgd, Factors, PriorConvention, SiteSettings};
use crate::kernels::kde::KdeMode;
use crate::kernels::svgd::Settings;
use crate::methods::common::participation::Participation;
use crate::methods::common::problem::Problem;
use crate::methods::common::settings::{MethodSettings, ResourceEstimate, Table, TableMethod, at_least_one};
use crate::methods::tuning::{Found, TuningNeeds};
use crate::models::{CurvatureSupport, Model};
use crate::number::Real;
use crate::settings::{Key, KeyError, keys};
use serde::{Deserialize, Serialize};

/// Declares the settings of DSVGD or of one of its variants: the keys that all of them share, and own keys with their defaults. `distilled`
/// adds the keys of variants whose agents may distill their factors.
macro_rules! dsvgd_settings {
    ($(#[$doc:meta])* distilled $name:ident { $($own:tt)* }) => {
        $crate::methods::particles::dsvgd::settings::dsvgd_settings! {
            $(#[$doc])*
            $name {
                $($own)*
                /// Steps of an agent's distillation loop (L') with cavity = "kde", in which it updates its own factor.
                distillation_steps: u64 = 200,
                /// How an agent accounts for the data of all other agents: "kde" (the paper's ratio of density estimates), { sites = {
                /// caution = "measured", curvature = "per_particle", rows = 2000 } } (quadratic models of their losses; caution may be
                /// a number, curvature may be "shared" or, for regressions, "full"), or "auto" (sites if the model provides the
                /// curvature of its loss).
                cavity: $crate::methods::particles::dsvgd::Cavity = Default::default(),
                /// Which densities contain the prior with cavity = "kde": "absorbed" (every agent's factor) or "pure" (none of them; for
                /// comparison only).
                prior: $crate::methods::particles::dsvgd::PriorConvention = Default::default(),
            }
        }
    };
    ($(#[$doc:meta])* $name:ident { $($(#[$key_doc:meta])* $key:ident: $type:ty = $default:expr,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize, documented::DocumentedFields)]
        #[serde(deny_unknown_fields, default)]
        pub struct $name {
            /// Number of particles that represent the posterior (N). Default: three for each parameter, at least 500 and at most
            /// 1000, if `whitened`; otherwise 20.
            particles: Option<usize>,
            /// Rounds. In each, the agents that `schedule` selects are visited. Default: as many as visit each agent five times, at
            /// least 10.
            rounds: Option<u64>,
            /// Steps of an agent's global loop in a round (L).
            local_steps: u64,
            /// Rows in a minibatch of the agent.
            batch: usize,
            $($(#[$key_doc])* $key: $type,)*
            /// Bandwidth h of the kernel: "repository" (as in the authors' code: the median of all squared distances, divided by log(N + 1)),
            /// "paper" (Liu & Wang 2016) or { fixed = 1.0 }. Default: 20 times the number of parameters if `whitened`, otherwise "repository".
            bandwidth: Option<$crate::kernels::rbf::Bandwidth>,
            /// Whether particles move in coordinates in which the posterior is close to a standard normal distribution, for models with a
            /// full matrix of curvature and at most 2,000 parameters. The mode is found before the run, and scores of
            /// minibatches have a control variate at the mode.
            whitened: bool,
            /// Optimizer of the particles: { adagrad = { step = 0.05, decay = 0.9, fudge = 1e-9 } } or { plain = { step = 1e-3 } }.
            optimizer: $crate::kernels::optimizer::Optimizer,
            /// Density estimate of particles: { lse = { floor = 1e-9 } }, "authors_compat" (as in the authors' code), or "none", which
            /// only dsvgd allows.
            kde: $crate::kernels::kde::KdeMode,
            /// Bandwidth of the density estimate (λ).
            kde_bandwidth: f64,
        }

        impl Default for $name {
            fn default() -> Self {
                let kde = $crate::kernels::kde::Kde::default();
                Self {
                    particles: None,
                    rounds: None,
                    local_steps: 200,
                    batch: 100,
                    $($key: $default,)*
                    bandwidth: None,
                    whitened: true,
                    optimizer: Default::default(),
                    kde: kde.mode,
                    kde_bandwidth: kde.bandwidth,
                }
            }
        }

        impl $name {
            /// The rounds; those of a single agent if the number of agents is not known yet.
            fn rounds(&self) -> u64 {
                self.schedule.rounds(self.rounds, 1)
            }

            fn with_rounds_for(&self, agents: u32) -> Self {
                Self { rounds: Some(self.schedule.rounds(self.rounds, agents)), ..self.clone() }
            }

            fn shared_for<F: $crate::number::Real>(
                &self,
                problem: &$crate::methods::common::problem::Problem<F>,
            ) -> $crate::methods::particles::dsvgd::settings::Shared {
                self.shared(problem.model.whitening().is_some(), problem.model.dim())
            }

            /// What the variants share, for this many parameters in whitened coordinates or in those of the model.
            fn shared(&self, is_whitened: bool, parameters: usize) -> $crate::methods::particles::dsvgd::settings::Shared {
                use $crate::methods::particles::defaults;
                let Self { local_steps, batch, schedule, optimizer, kde, kde_bandwidth, .. } = *self;
                let rounds = self.rounds();
                let kde = $crate::kernels::kde::Kde { mode: kde, bandwidth: kde_bandwidth };
                let bandwidth = defaults::bandwidth(self.bandwidth, is_whitened, parameters);
                let stein = $crate::kernels::svgd::Settings::rbf(bandwidth, optimizer, kde);
                let particles = defaults::particles(self.particles, is_whitened, parameters);
                $crate::methods::particles::dsvgd::settings::Shared { particles, rounds, local_steps, batch, schedule, stein }
            }
        }
    };
}

pub(crate) use dsvgd_settings;

/// The settings that DSVGD shares with its variants.
pub(crate) struct Shared {
    pub(crate) particles: usize,
    pub(crate) rounds: u64,
    pub(crate) local_steps: u64,
    pub(crate) batch: usize,
    pub(crate) schedule: Participation,
    pub(crate) stein: Settings,
}

impl Shared {
    pub(crate) fn check(&self) -> Result<(), KeyError> {
        at_least_one(&[
            ("particles", self.particles as u64),
            ("rounds", self.rounds),
            ("local_steps", self.local_steps),
            ("batch", self.batch as u64),
        ])?;
        self.stein.check()
    }

    /// The estimate for agents that work on this many sets of particles, with this many values sent per visit in both directions together.
    pub(crate) fn estimate(&self, agents: u32, parameters: usize, sets: u64, sent: u64) -> ResourceEstimate {
        let particles = self.particles as u64;
        ResourceEstimate {
            particles: Some(particles),
            rounds: Some(self.rounds),
            minibatch: Some(self.batch as u64),
            // The sets, and the distances between particles.
            values_of_agent: Some(self.set(parameters).saturating_mul(sets).saturating_add(particles.saturating_mul(particles))),
            // A single agent shares a rank with the server.
            values_per_round: Some(if agents > 1 { sent.saturating_mul(u64::from(self.schedule.size(agents))) } else { 0 }),
            ..ResourceEstimate::default()
        }
    }

    /// Values of one set of particles.
    pub(crate) fn set(&self, parameters: usize) -> u64 {
        (self.particles as u64).saturating_mul(parameters as u64)
    }

    pub(crate) fn method<F: Real>(&self, problem: Problem<F>, factors: Factors, server_steps: Option<u64>) -> Dsvgd<F> {
        let Self { particles, rounds, local_steps, batch, schedule, stein } = *self;
        Dsvgd { problem, rounds, schedule, particles, local_steps, factors, batch, stein, server_steps }
    }
}

/// How an agent accounts for the data of all other agents.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Cavity {
    /// Sites if the model provides the curvature of its loss, with whole matrices up to 300 parameters; density estimates otherwise.
    #[default]
    Auto,
    /// Ratios of density estimates, distilled into particles of the agents.
    Kde,
    /// Quadratic models of agents' losses at each particle.
    Sites(SiteSettings),
}

/// The largest number of parameters for which `auto` keeps whole matrices, unless the model is whitened: products with them then cost little
/// beside the loss. In whitened coordinates diagonals cost more than whole matrices.
const MAX_FULL_DIM: usize = 300;

impl Cavity {
    pub(crate) fn factors<F: Real>(self, model: &dyn Model<F>, steps: u64, prior: PriorConvention) -> Factors {
        match (self, model.curvature_support()) {
            (Self::Kde, _) | (Self::Auto, CurvatureSupport::None) => Factors::Distilled { steps, prior },
            (Self::Auto, CurvatureSupport::Full) if model.dim() <= MAX_FULL_DIM || model.whitening().is_some() => {
                Factors::Sites(SiteSettings { curvature: Curvature::Full, ..SiteSettings::default() })
            }
            (Self::Auto, _) => Factors::Sites(SiteSettings::default()),
            (Self::Sites(sites), _) => Factors::Sites(sites),
        }
    }

    /// Whether particles may start elsewhere than at draws from the prior: density estimates of the first particles stand for it.
    pub(crate) fn allows_whitening(self) -> bool {
        self != Self::Kde
    }

    pub(crate) fn check_model<F: Real>(self, model: &dyn Model<F>) -> Result<(), KeyError> {
        match self {
            Self::Sites(sites) => sites.check_model(model),
            Self::Auto | Self::Kde => Ok(()),
        }
    }

    pub(crate) fn check(self, prior: PriorConvention, kde: KdeMode) -> Result<(), KeyError> {
        let no_effect = |key| Err(KeyError::invalid(key, "has no effect without cavity = \"kde\". Set that, or remove this key"));
        match self {
            Self::Auto | Self::Sites(_) if prior != PriorConvention::default() => no_effect("prior"),
            Self::Auto | Self::Sites(_) if kde != KdeMode::default() => no_effect("kde"),
            Self::Sites(sites) => sites.check().map_err(|error| error.below("sites").below("cavity")),
            Self::Kde if prior == PriorConvention::Pure && kde == KdeMode::None => Err(KeyError::invalid(
                "prior",
                "= \"pure\" with kde = \"none\" loses the prior after the first round, because only density estimates carry it. Set \
                 prior = \"absorbed\"",
            )),
            Self::Auto | Self::Kde => Ok(()),
        }
    }

    /// Values of an agent's sites, and how many sets of particles an agent keeps and works on.
    pub(crate) fn needs(self, particles: usize, parameters: usize) -> (u64, u64) {
        match self {
            // Global particles before and after, local particles, score, direction, the optimizer's mean square, and two scores of
            // density estimates.
            Self::Kde => (0, 8),
            // The product of all sites, the product without own sites, own old and new sites, and their change.
            Self::Auto => (SiteSettings::default().size(particles, parameters) as u64, 20),
            Self::Sites(sites) => (sites.size(particles, parameters) as u64, 20),
        }
    }
}

dsvgd_settings! {
    /// The settings of `dsvgd`.
    distilled DsvgdSettings {
        /// Order in which agents are visited, one in each round: "round_robin", "random_permutation" (all agents in a new random order in
        /// every cycle) or "random".
        schedule: Participation = Participation::default(),
    }
}

impl MethodSettings for DsvgdSettings {
    type Data = Table;

    const NAME: &'static str = "dsvgd";

    fn keys() -> Vec<Key> {
        keys::<Self>()
    }

    fn estimate(&self, agents: u32, parameters: usize) -> ResourceEstimate {
        let shared = self.shared(self.tuning().is_some(), parameters);
        let (sites, sets) = self.cavity.needs(shared.particles, parameters);
        shared.estimate(agents, parameters, sets, shared.set(parameters).saturating_add(sites).saturating_mul(2))
    }

    fn for_agents(&self, agents: u32) -> Self {
        self.with_rounds_for(agents)
    }

    fn notes(&self, agents: u32) -> Vec<String> {
        self.schedule.note_on_rounds(self.rounds(), agents).into_iter().collect()
    }

    fn tuning(&self) -> Option<TuningNeeds> {
        TuningNeeds::coordinates(self.whitened && self.cavity.allows_whitening(), self.rounds())
    }

    fn tuned(&self, found: Found, _agents: u32) -> Self {
        Self { whitened: found != Found::Nothing, ..self.clone() }
    }

    fn check(&self) -> Result<(), KeyError> {
        self.shared(self.whitened, 1).check()?;
        self.schedule.check_one()?;
        self.cavity.check(self.prior, self.kde)
    }

    fn check_model(&self, model: &dyn Model<f64>) -> Result<(), KeyError> {
        self.cavity.check_model(model)
    }

    fn method<F: Real>(&self, problem: Problem<F>) -> TableMethod<F> {
        let factors = self.cavity.factors(problem.model.as_ref(), self.distillation_steps, self.prior);
        TableMethod::particles(self.shared_for(&problem).method(problem, factors, None))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn check<K: MethodSettings>(text: &str) -> Result<(), String> {
        toml::from_str::<K>(text).unwrap().check().map_err(|error| error.to_string())
    }

    #[test]
    fn invalid_settings_are_refused() {
        for valid in
            ["", "rounds = 1", "distillation_steps = 0", "cavity = { sites = {} }", "cavity = { sites = { caution = 3.0 } }"]
        {
            assert_eq!(check::<DsvgdSettings>(valid), Ok(()), "{valid}");
        }
        for valid in ["", "prior = \"pure\"", "kde = \"none\""] {
            assert_eq!(check::<DsvgdSettings>(&format!("cavity = \"kde\"\n{valid}")), Ok(()), "{valid}");
        }
        for (bad, expected) in [
            ("rounds = 0", "rounds"),
            ("particles = 0", "particles"),
            ("local_steps = 0", "local_steps"),
            ("kde_bandwidth = 0.0", "kde_bandwidth"),
            ("schedule = \"all\"", "p_dsvgd"),
            ("cavity = { sites = { caution = 0.0 } }", "cavity.sites.caution"),
            ("kde = \"none\"", "cavity = \"kde\""),
            ("cavity = { sites = {} }\nprior = \"pure\"", "cavity = \"kde\""),
            ("cavity = \"kde\"\nprior = \"pure\"\nkde = \"none\"", "loses the prior"),
        ] {
            let message = check::<DsvgdSettings>(bad).unwrap_err();
            assert!(message.contains(expected) && !message.contains("  "), "{bad}: {message}");
        }
    }
}
