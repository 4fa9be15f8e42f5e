//! Distributed SVGD as a run file names it: `dsvgd`, `u-dsvgd` whose agents remember their visits, and `p-dsvgd` that visits several
//! agents at a time (Kassab & Simeone, arXiv 2009.06419, Algorithm 1, section 5.1, appendix A.5).

use super::{Curvature, Dsvgd, Factors, PriorConvention, SiteSettings};
use crate::kernels::adagrad::Optimizer;
use crate::kernels::kde::{Kde, KdeMode};
use crate::kernels::rbf::Bandwidth;
use crate::kernels::svgd::Settings;
use crate::methods::common::federated::Federated;
use crate::methods::common::kind::{Launcher, MethodKind, Needs, at_least_one};
use crate::methods::common::participation::Participation;
use crate::methods::common::problem::Problem;
use crate::models::{Curvatures, Model};
use crate::number::Real;
use serde::{Deserialize, Serialize};

const PARTICLES: (&str, &str) = ("particles", "N, how many particles stand for the posterior");
const BATCH: (&str, &str) = ("batch", "rows in a minibatch of the agent");
const DISTILLATION: &str = "L', steps of the agent's distillation loop, by which it knows its factor";
const CAVITY: &str = "what keeps an agent from forgetting the others' data: \"kde\" (the paper's ratio of density estimates), { sites = { caution = \
     \"measured\", curvature = \"per_particle\", rows = 2000 } } (quadratic models of their losses; caution may be a number, curvature \
     \"shared\" or, for regressions, \"full\") or \"auto\" (sites where the model tells the curvature of its loss)";
const PRIOR: (&str, &str) = (
    "prior",
    "who carries the prior with cavity = \"kde\": \"absorbed\" (every agent's factor) or \"pure\" (none; for comparison only)",
);
const KDE: (&str, &str) = (
    "kde",
    "the density estimate behind cavity = \"kde\": { lse = { floor = 1e-9 } }, \"authors_compat\" (as the authors' code) or \"none\"",
);
const KDE_BANDWIDTH: (&str, &str) = ("kde_bandwidth", "λ, the bandwidth of that estimate");

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
    fn factors<F: Real>(self, model: &dyn Model<F>, steps: u64, prior: PriorConvention) -> Factors {
        match (self, model.curvatures()) {
            (Self::Kde, _) | (Self::Auto, Curvatures::None) => Factors::Distilled { steps, prior },
            (Self::Auto, Curvatures::Full) if model.dim() <= MOST_FULL => {
                Factors::Sites(SiteSettings { curvature: Curvature::Full, ..SiteSettings::default() })
            }
            (Self::Auto, _) => Factors::Sites(SiteSettings::default()),
            (Self::Sites(sites), _) => Factors::Sites(sites),
        }
    }

    fn check(self, prior: PriorConvention, kde: KdeMode) -> Result<(), String> {
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
    fn needs(self, particles: usize, parameters: usize) -> (u64, u64) {
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
fn numbers(sets: u64, particles: usize, parameters: usize) -> u64 {
    (particles as u64).saturating_mul(parameters as u64).saturating_mul(sets)
}

/// Numbers that an agent works on: these sets, and the distances between particles.
fn worked_on(sets: u64, particles: usize, parameters: usize) -> u64 {
    numbers(sets, particles, parameters).saturating_add((particles as u64).saturating_mul(particles as u64))
}

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
    /// In which order agents are visited.
    schedule: Participation,
    /// What keeps an agent from forgetting the others' data.
    cavity: Cavity,
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

impl MethodKind for DsvgdSettings {
    const NAME: &'static str = "dsvgd";

    const DOCS: &'static [(&'static str, &'static str)] = &[
        PARTICLES,
        ("rounds", "rounds: one agent is visited in each"),
        ("local_steps", "L, steps of the agent's global loop in its round"),
        ("distillation_steps", DISTILLATION),
        BATCH,
        ("schedule", Participation::ONE),
        ("cavity", CAVITY),
        PRIOR,
        ("bandwidth", Bandwidth::DOCS),
        ("optimizer", Optimizer::DOCS),
        KDE,
        KDE_BANDWIDTH,
    ];

    fn needs(&self, agents: u32, parameters: usize) -> Needs {
        let (sums, sets) = self.cavity.needs(self.particles, parameters);
        let message = numbers(1, self.particles, parameters).saturating_add(sums);
        Needs {
            particles: Some(self.particles as u64),
            rounds: Some(self.rounds),
            minibatch: Some(self.batch as u64),
            numbers_of_agent: Some(worked_on(sets, self.particles, parameters)),
            // To an agent and back; a single agent lives with the server.
            numbers_per_round: Some(if agents > 1 { message.saturating_mul(2) } else { 0 }),
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
        self.cavity.check(self.prior, self.kde)?;
        self.stein().check().map_err(|error| error.to_string())
    }

    fn launch<F: Real, L: Launcher<F>>(&self, problem: Problem<F>, launcher: L) -> L::Outcome {
        let Self { particles, local_steps, batch, .. } = *self;
        let factors = self.cavity.factors(problem.model.as_ref(), self.distillation_steps, self.prior);
        let method = Dsvgd { particles, local_steps, factors, batch, stein: self.stein(), server_steps: None };
        Federated::launch(problem, self.rounds, self.schedule, method, launcher)
    }
}

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
        let Self { particles, local_steps, batch, .. } = *self;
        let (factors, stein) = (Factors::Remembered, self.stein());
        let method = Dsvgd { particles, local_steps, factors, batch, stein, server_steps: None };
        Federated::launch(problem, self.rounds, self.schedule, method, launcher)
    }
}

/// The settings of `p-dsvgd`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
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

impl MethodKind for PDsvgdSettings {
    const NAME: &'static str = "p-dsvgd";

    const DOCS: &'static [(&'static str, &'static str)] = &[
        PARTICLES,
        ("rounds", "rounds: in each, some agents make new factors and the server new particles of all factors"),
        ("local_steps", "L, steps of an agent's global loop"),
        ("distillation_steps", DISTILLATION),
        ("server_steps", "L_s, steps of the server's loop"),
        BATCH,
        ("schedule", Participation::ANY),
        ("cavity", CAVITY),
        PRIOR,
        ("bandwidth", Bandwidth::DOCS),
        ("optimizer", Optimizer::DOCS),
        ("kde", "the density estimates of factors: { lse = { floor = 1e-9 } } or \"authors_compat\" (as the authors' code)"),
        KDE_BANDWIDTH,
    ];

    fn needs(&self, agents: u32, parameters: usize) -> Needs {
        let (sums, sets) = self.cavity.needs(self.particles, parameters);
        let set = numbers(1, self.particles, parameters);
        let answer = if sums > 0 { sums } else { set };
        let messages = set.saturating_add(sums).saturating_add(answer);
        let visited = u64::from(self.schedule.size(agents));
        Needs {
            particles: Some(self.particles as u64),
            rounds: Some(self.rounds),
            minibatch: Some(self.batch as u64),
            numbers_of_agent: Some(worked_on(sets, self.particles, parameters)),
            numbers_per_round: Some(if agents > 1 { messages.saturating_mul(visited) } else { 0 }),
            ..Needs::default()
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

    fn check_for(&self, agents: u32) -> Result<(), String> {
        self.schedule.check_for(agents)
    }

    fn launch<F: Real, L: Launcher<F>>(&self, problem: Problem<F>, launcher: L) -> L::Outcome {
        let Self { particles, local_steps, batch, server_steps, .. } = *self;
        let factors = self.cavity.factors(problem.model.as_ref(), self.distillation_steps, self.prior);
        let method = Dsvgd { particles, local_steps, factors, batch, stein: self.stein(), server_steps: Some(server_steps) };
        Federated::launch(problem, self.rounds, self.schedule, method, launcher)
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
            ("schedule = \"all\"", "p-dsvgd"),
            ("cavity = { sites = { caution = 0.0 } }", "caution"),
            ("kde = \"none\"", "cavity = \"kde\""),
            ("cavity = { sites = {} }\nprior = \"pure\"", "cavity = \"kde\""),
            ("cavity = \"kde\"\nprior = \"pure\"\nkde = \"none\"", "the prior travels"),
        ] {
            let message = check::<DsvgdSettings>(bad).unwrap_err();
            assert!(message.contains(says) && !message.contains("  "), "{bad}: {message}");
        }
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
        assert!(few.check_for(20).is_ok() && few.check_for(19).unwrap_err().contains("at most 19"));
    }
}
