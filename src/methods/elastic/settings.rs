//! The settings of chains that see all data: `sghmc`, `ec_sghmc`, `ec_sgld` and `easgd`.

use super::stability::{Steps, extrapolation_is_stable, kicks_are_stable, turns_are_stable};
use super::{CenterDynamics, Coupled, Coupling, Course, Elastic, Plan, Strength};
use crate::kernels::hamiltonian::{Hamiltonian, Scheme};
use crate::kernels::langevin::StepSize;
use crate::methods::kind::{Launcher, MethodKind, Needs, Sharing, at_least_one};
use crate::methods::problem::Problem;
use crate::methods::scores::Estimator;
use crate::methods::sgd::Sgd;
use crate::methods::sghmc::{Preconditioner, Sghmc};
use crate::methods::sgld::Sgld;
use crate::models::Model;
use crate::number::Real;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

const STEPS: &str = "steps of each chain; every agent has a chain, and sees all data";
const BURN_IN: &str = "steps of each chain before those that draws are taken of";
const THIN: &str = "of the steps after those every so-many-th is kept, 0 for none";
const BATCH: &str = "rows in a minibatch, fresh for every step";
const GRADIENT: &str =
    "\"plain\", or { control_variate = 100 }: from that period on scores are corrected by that at a fixed point";
const STEP: &str = "epsilon; what others call learning rate is its square";
const FRICTION: &str = "V, the rate at which velocities are forgotten; what others call momentum decay is step * friction";
const GRADIENT_NOISE: &str =
    "half of step * the variance of scores of minibatches, which noise that is added does without; 0 if unknown";
const PRECONDITIONER: &str =
    "{ burn_in = 1000, decay = 0.99, floor = 1.0 }: masses by the size of scores, found in so many steps; not by default";
const SCHEME: &str = "\"middle\", exact for Gaussian posteriors at every stable step, or \"semi_implicit\", that of the papers";
const SAME_START: &str = "whether all chains begin in the same place";
const PERIOD: &str = "s, steps between exchanges with the center";
const COUPLING: &str = "kappa, the strength of the springs between chains and center";
const COURSE: &str = "\"constant\" (then draws are none of the posterior), { anneal = { from = 500, over = 500 } }, or { cyclic = { coupled = 100, free \
     = 400, settle = 100 } }; by default annealed in the burn-in";
const ASYNCHRONOUS: &str = "whether each chain meets the center on its own time; false waits for the slowest at every exchange";
const SLEEP: &str = "milliseconds that each agent sleeps for a step: slow machines for experiments";

/// The settings of `sghmc`: chains that know nothing of each other.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SghmcSettings {
    /// Steps of each chain.
    pub steps: u64,
    /// Rows in a minibatch.
    pub batch: usize,
    /// ε.
    pub step: f64,
    /// V.
    pub friction: f64,
    /// How a step follows the dynamics.
    pub scheme: Scheme,
    /// B̂.
    pub gradient_noise: f64,
    /// How masses are found.
    pub preconditioner: Option<Preconditioner>,
    /// How minibatches become scores.
    pub gradient: Estimator,
    /// Steps between two reports to the server.
    pub period: u64,
    /// Whether all chains begin in the same place.
    pub same_start: bool,
    /// Steps before the first draw.
    pub burn_in: u64,
    /// Of the steps after those every so-many-th is kept.
    pub thin: u64,
}

impl Default for SghmcSettings {
    fn default() -> Self {
        let EcSghmcSettings { steps, batch, step, friction, gradient_noise, burn_in, thin, period, .. } =
            EcSghmcSettings::default();
        let gradient = Estimator::default();
        let (scheme, preconditioner, same_start) = (Scheme::default(), None, false);
        Self { steps, batch, step, friction, scheme, gradient_noise, preconditioner, gradient, period, same_start, burn_in, thin }
    }
}

/// The settings of `ec_sghmc`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct EcSghmcSettings {
    /// Steps of each chain.
    pub steps: u64,
    /// s.
    pub period: u64,
    /// Rows in a minibatch.
    pub batch: usize,
    /// ε.
    pub step: f64,
    /// V.
    pub friction: f64,
    /// κ.
    pub coupling: f64,
    /// How κ changes; annealed in the burn-in where nothing is said.
    pub course: Option<Course>,
    /// How chains are coupled.
    pub variant: Variant,
    /// M_c: that of a chain's parameter is 1. Chains drag the center along, so that it should be light beside all of them.
    pub center_mass: f64,
    /// C; V·M_c where nothing is said.
    pub center_friction: Option<f64>,
    /// Whether chains follow the center's velocity between exchanges.
    pub extrapolate: bool,
    /// Whether each chain meets the center on its own time.
    pub asynchronous: bool,
    /// Whether noise is added.
    pub noise: bool,
    /// How a step follows the dynamics.
    pub scheme: Scheme,
    /// B̂.
    pub gradient_noise: f64,
    /// How masses are found.
    pub preconditioner: Option<Preconditioner>,
    /// How minibatches become scores.
    pub gradient: Estimator,
    /// Whether all chains begin in the same place.
    pub same_start: bool,
    /// Steps before the first draw.
    pub burn_in: u64,
    /// Of the steps after those every so-many-th is kept.
    pub thin: u64,
    /// Milliseconds that each agent sleeps for a step.
    pub sleep_ms: Vec<f64>,
}

/// How chains are coupled, as it is typed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Variant {
    /// Each to the center.
    #[default]
    Elastic,
    /// The center to the mean of the chains.
    Mean,
    /// Velocities to their mean, by friction.
    Friction,
}

impl Default for EcSghmcSettings {
    fn default() -> Self {
        Self {
            steps: 10_000,
            period: 8,
            batch: 100,
            step: 1e-3,
            friction: 50.0,
            coupling: 1.0,
            course: None,
            variant: Variant::default(),
            center_mass: 1.0,
            center_friction: None,
            extrapolate: false,
            asynchronous: false,
            noise: true,
            scheme: Scheme::default(),
            gradient_noise: 0.0,
            preconditioner: None,
            gradient: Estimator::default(),
            same_start: false,
            burn_in: 2000,
            thin: 10,
            sleep_ms: Vec::new(),
        }
    }
}

/// The settings of `ec_sgld`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct EcSgldSettings {
    /// Steps of each chain.
    pub steps: u64,
    /// s.
    pub period: u64,
    /// Rows in a minibatch.
    pub batch: usize,
    /// The variance of the noise of a step.
    pub step: f64,
    /// κ.
    pub coupling: f64,
    /// How κ changes; annealed in the burn-in where nothing is said.
    pub course: Option<Course>,
    /// Whether each chain meets the center on its own time.
    pub asynchronous: bool,
    /// How minibatches become scores.
    pub gradient: Estimator,
    /// Whether all chains begin in the same place.
    pub same_start: bool,
    /// Steps before the first draw.
    pub burn_in: u64,
    /// Of the steps after those every so-many-th is kept.
    pub thin: u64,
}

impl Default for EcSgldSettings {
    fn default() -> Self {
        let EcSghmcSettings { steps, period, batch, coupling, burn_in, thin, .. } = EcSghmcSettings::default();
        let gradient = Estimator::default();
        let (asynchronous, same_start) = (false, false);
        Self { steps, period, batch, step: 1e-5, coupling, course: None, asynchronous, gradient, same_start, burn_in, thin }
    }
}

/// The settings of `easgd`: elastic averaging SGD, without momentum and with it (EAMSGD).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct EasgdSettings {
    /// Steps of each worker.
    pub steps: u64,
    /// s.
    pub period: u64,
    /// Rows in a minibatch.
    pub batch: usize,
    /// η.
    pub step: f64,
    /// μ.
    pub momentum: f64,
    /// Whether gradients are taken ahead.
    pub nesterov: bool,
    /// β = K a.
    pub rate: f64,
    /// Whether each worker meets the center on its own time.
    pub asynchronous: bool,
    /// How minibatches become scores.
    pub gradient: Estimator,
    /// Whether all workers begin in the same place.
    pub same_start: bool,
    /// Steps before the first center that is kept.
    pub burn_in: u64,
    /// Of the centers after those every so-many-th is kept.
    pub thin: u64,
}

impl Default for EasgdSettings {
    fn default() -> Self {
        let EcSghmcSettings { steps, period, batch, .. } = EcSghmcSettings::default();
        let (nesterov, asynchronous, same_start) = (true, false, true);
        let gradient = Estimator::default();
        let (step, momentum, rate) = (1e-6, 0.0, 0.9);
        Self { steps, period, batch, step, momentum, nesterov, rate, asynchronous, gradient, same_start, burn_in: 0, thin: 100 }
    }
}

/// What all of them have to keep to.
fn check_steps(steps: u64, period: u64, batch: usize, strength: Strength, burn_in: u64, thin: u64) -> Result<(), String> {
    at_least_one(&[("steps", steps), ("period", period), ("batch", batch as u64)])?;
    strength.check()?;
    if thin > 0 && strength.draws(steps, burn_in, thin) == 0 {
        return Err(format!(
            "burn_in = {burn_in} leaves no draws: with thin = {thin} and this coupling none of {steps} steps is one; thin = 0 wants none"
        ));
    }
    Ok(())
}

/// Whether any center is kept.
fn check_centers(steps: u64, period: u64, burn_in: u64, thin: u64) -> Result<(), String> {
    let exchanges = (steps / period).saturating_sub(burn_in / period);
    match thin {
        1.. if exchanges < thin => Err(format!("thin = {thin}: of {exchanges} exchanges after the burn-in none is kept")),
        _ => Ok(()),
    }
}

/// What steps of second order have to keep to.
fn check_dynamics(dynamics: Hamiltonian, preconditioner: Option<Preconditioner>, burn_in: u64, thin: u64) -> Result<(), String> {
    let lightest = match preconditioner {
        None => 1.0,
        Some(preconditioner) => {
            preconditioner.check()?;
            if thin > 0 && preconditioner.burn_in > burn_in {
                return Err(format!(
                    "preconditioner: masses change for {} steps, and draws begin after burn_in = {burn_in}: no later than that",
                    preconditioner.burn_in
                ));
            }
            preconditioner.floor.recip()
        }
    };
    dynamics.check(lightest).map_err(|error| error.to_string())
}

/// κ and its course; where none is typed it is annealed in the second half of the burn-in.
fn strength(coupling: f64, course: Option<Course>, burn_in: u64) -> Strength {
    let from = burn_in / 2;
    Strength { full: coupling, course: course.unwrap_or(Course::Anneal { from, over: burn_in - from }) }
}

/// What to say of springs that do not go with the time between exchanges.
fn unstable(kappa: f64, period: u64, step: f64, what: &str) -> Result<(), String> {
    Err(format!(
        "coupling = {kappa} is unstable with {what} and period = {period} steps of {step}: take a weaker one, or exchange more often"
    ))
}

/// What may not be meant by chains that stay coupled while draws are taken.
fn notes_of(strength: Strength, keeps_law: bool, agents: u32) -> Vec<String> {
    let biased = strength.full > 0.0 && strength.course == Course::Constant && !keeps_law && agents > 1;
    let kappa = strength.full;
    if kappa > 0.0 && !strength.acts(0, 1) {
        return vec![
            "chains are not coupled at all: with burn_in = 0 there is no time to anneal the coupling in; set course".into(),
        ];
    }
    biased
        .then(|| {
            format!(
                "draws are of p(θ_1) ... p(θ_{agents}) exp(-κ/2 Σ|θ_i - mean|²), not of the posterior: where its precision is λ, a \
                 chain's variance is 1/λ times 1 - {:.3} κ/(λ + κ), with κ = {kappa}; annealed or cyclic coupling has no such bias",
                f64::from(agents - 1) / f64::from(agents)
            )
        })
        .into_iter()
        .collect()
}

/// What a run takes, with so many arrays of parameters for each chain.
fn needs_of(agents: u32, parameters: usize, periods: u64, batch: usize, arrays: u64) -> Needs {
    let parameters = parameters as u64;
    Needs {
        particles: Some(u64::from(agents)),
        rounds: Some(periods),
        minibatch: Some(batch as u64),
        numbers_of_agent: Some(parameters.saturating_mul(arrays)),
        numbers_per_round: Some(parameters.saturating_mul(2 * u64::from(agents))),
        ..Needs::default()
    }
}

/// Starts chains, all at once or each on its own time.
fn launch_coupled<F: Real, T: Coupled<Number = F>, L: Launcher<F>>(
    asynchronous: bool,
    agents: u32,
    transition: T,
    plan: Plan,
    model: Arc<dyn Model<F>>,
    launcher: L,
) -> L::Outcome {
    if asynchronous {
        launcher.chains(Elastic::<_, true> { agents, transition, plan }, model)
    } else {
        launcher.chains(Elastic::<_, false> { agents, transition, plan }, model)
    }
}

impl SghmcSettings {
    fn dynamics(&self) -> Hamiltonian {
        let Self { scheme, step, friction, gradient_noise, .. } = *self;
        Hamiltonian { scheme, step, friction, gradient_noise, noise: true }
    }
}

impl MethodKind for SghmcSettings {
    const NAME: &'static str = "sghmc";

    const SHARING: Sharing = Sharing::Everyone;

    const DOCS: &'static [(&'static str, &'static str)] = &[
        ("steps", STEPS),
        ("batch", BATCH),
        ("step", STEP),
        ("friction", FRICTION),
        ("scheme", SCHEME),
        ("gradient_noise", GRADIENT_NOISE),
        ("preconditioner", PRECONDITIONER),
        ("gradient", GRADIENT),
        ("period", "steps between two reports to the server: what evaluation counts in"),
        ("same_start", SAME_START),
        ("burn_in", BURN_IN),
        ("thin", THIN),
    ];

    fn needs(&self, agents: u32, parameters: usize) -> Needs {
        let needs = needs_of(agents, parameters, self.steps.div_ceil(self.period.max(1)), self.batch, 5);
        Needs { numbers_per_round: None, ..needs }
    }

    fn check(&self) -> Result<(), String> {
        check_steps(self.steps, self.period, self.batch, Strength::NONE, self.burn_in, self.thin)?;
        check_dynamics(self.dynamics(), self.preconditioner, self.burn_in, self.thin)
    }

    fn launch<F: Real, L: Launcher<F>>(&self, problem: Problem<F>, launcher: L) -> L::Outcome {
        let Self { steps, period, burn_in, thin, same_start, batch, gradient, preconditioner, .. } = *self;
        let (model, agents) = (problem.model.clone(), problem.agents);
        let transition = Sghmc { problem, batch, gradient, dynamics: self.dynamics(), preconditioner };
        let (strength, coupling) = (Strength::NONE, Coupling::Friction);
        let plan =
            Plan { steps, period, burn_in, thin, same_start, strength, coupling, extrapolate: false, sleep_ms: Vec::new() };
        launcher.chains(Elastic::<_, false> { agents, transition, plan }, model)
    }
}

impl EcSghmcSettings {
    fn dynamics(&self) -> Hamiltonian {
        let Self { scheme, step, friction, gradient_noise, noise, .. } = *self;
        Hamiltonian { scheme, step, friction, gradient_noise, noise }
    }

    fn strength(&self) -> Strength {
        strength(self.coupling, self.course, self.burn_in)
    }

    /// The dynamics of the lightest parameter that masses may make: as if its step were longer.
    fn stiffest_dynamics(&self) -> Hamiltonian {
        let lightest = self.preconditioner.map_or(1.0, |preconditioner| preconditioner.floor.recip());
        Hamiltonian { step: self.step * lightest.sqrt(), friction: self.friction / lightest.sqrt(), ..self.dynamics() }
    }

    /// What chains do.
    pub fn plan(&self) -> Plan {
        let mass = self.center_mass;
        let friction = self.center_friction.unwrap_or(self.friction * mass);
        Plan {
            steps: self.steps,
            period: self.period,
            burn_in: self.burn_in,
            thin: self.thin,
            same_start: self.same_start,
            strength: self.strength(),
            coupling: match self.variant {
                Variant::Elastic => Coupling::Elastic(CenterDynamics::SecondOrder { mass, friction }),
                Variant::Mean => Coupling::Mean { mass, friction },
                Variant::Friction => Coupling::Friction,
            },
            extrapolate: self.extrapolate,
            sleep_ms: self.sleep_ms.clone(),
        }
    }

    /// The transition of its chains.
    pub fn transition<F: Real>(&self, problem: Problem<F>) -> Sghmc<F> {
        let Self { batch, gradient, preconditioner, .. } = *self;
        Sghmc { problem, batch, gradient, dynamics: self.dynamics(), preconditioner }
    }
}

impl MethodKind for EcSghmcSettings {
    const NAME: &'static str = "ec_sghmc";

    const SHARING: Sharing = Sharing::Everyone;

    const DOCS: &'static [(&'static str, &'static str)] = &[
        ("steps", STEPS),
        ("period", PERIOD),
        ("batch", BATCH),
        ("step", STEP),
        ("friction", FRICTION),
        ("coupling", COUPLING),
        ("course", COURSE),
        (
            "variant",
            "\"elastic\", or without its bias: \"mean\" (the center follows the mean of the chains) or \"friction\" (velocities only)",
        ),
        ("center_mass", "of the center, where that of a chain is 1; chains drag it along: light beside all of them together"),
        ("center_friction", "of the center; friction * center_mass by default"),
        ("extrapolate", "whether chains follow the center's velocity between exchanges, from where it was"),
        ("asynchronous", ASYNCHRONOUS),
        ("noise", "false descends to a mode instead; what comes out of constant coupling is then the center, kept as with easgd"),
        ("scheme", SCHEME),
        ("gradient_noise", GRADIENT_NOISE),
        ("preconditioner", PRECONDITIONER),
        ("gradient", GRADIENT),
        ("same_start", SAME_START),
        ("burn_in", BURN_IN),
        ("thin", THIN),
        ("sleep_ms", SLEEP),
    ];

    fn check_for(&self, agents: u32) -> Result<(), String> {
        if !self.sleep_ms.is_empty() && self.sleep_ms.len() != agents as usize {
            return Err(format!("sleep_ms lists {} numbers for {agents} agents: one for each", self.sleep_ms.len()));
        }
        let (kappa, period) = (self.coupling, self.period.min(self.steps));
        if kappa == 0.0 {
            return Ok(());
        }
        let steps = Steps::SecondOrder(self.stiffest_dynamics());
        match self.plan().coupling {
            Coupling::Elastic(center) if self.asynchronous && !turns_are_stable(steps, kappa, agents, center, period) => {
                unstable(kappa, period, self.step, "asynchronous = true")
            }
            Coupling::Elastic(center) if self.extrapolate && !extrapolation_is_stable(steps, kappa, agents, center, period) => {
                unstable(kappa, period, self.step, "extrapolate = true")
            }
            Coupling::Mean { mass, friction } if !kicks_are_stable(steps, kappa, agents, mass, friction, period) => {
                unstable(kappa, period, self.step, "variant = \"mean\"")
            }
            _ => Ok(()),
        }
    }

    fn needs(&self, agents: u32, parameters: usize) -> Needs {
        needs_of(agents, parameters, self.steps.div_ceil(self.period.max(1)), self.batch, 6)
    }

    fn notes(&self, agents: u32) -> Vec<String> {
        notes_of(self.strength(), self.variant != Variant::Elastic, agents)
    }

    fn check(&self) -> Result<(), String> {
        let Self { steps, period, batch, burn_in, thin, .. } = *self;
        check_steps(steps, period, batch, self.strength(), burn_in, thin)?;
        check_dynamics(self.dynamics(), self.preconditioner, burn_in, thin)?;
        if self.plan().shows_center(self.noise) {
            check_centers(steps, period, burn_in, thin)?;
        }
        for (name, number) in [("center_mass", Some(self.center_mass)), ("center_friction", self.center_friction)] {
            if number.is_some_and(|number| !(number.is_finite() && number > 0.0)) {
                return Err(format!("{name} must be above 0"));
            }
        }
        if let Some(wrong) = self.sleep_ms.iter().find(|sleep| !(0.0..=1e6).contains(*sleep)) {
            return Err(format!("sleep_ms = {wrong}: must lie between 0 and 1e6"));
        }
        if self.variant != Variant::Elastic {
            if self.preconditioner.is_some() {
                return Err("preconditioner: chains whose velocities are coupled must have the same masses".into());
            }
            if self.asynchronous {
                return Err("asynchronous: this variant wants all chains at an exchange; only \"elastic\" does not".into());
            }
            if self.extrapolate {
                return Err("extrapolate: only chains of the variant \"elastic\" follow a center".into());
            }
        }
        if self.extrapolate && self.asynchronous {
            return Err("extrapolate is for chains that all meet the center at once: without asynchronous".into());
        }
        if self.variant == Variant::Friction && self.scheme != Scheme::Middle {
            return Err("scheme = \"semi_implicit\" has velocities that are too fast by step · friction/4: coupled friction wants \"middle\"".into());
        }
        // A spring alone, where the data say nothing.
        let dynamics = self.stiffest_dynamics();
        let (stiff, most) = (dynamics.step.powi(2) * self.coupling, dynamics.stable_below());
        if self.variant == Variant::Elastic && stiff >= most {
            let masses = if self.preconditioner.is_some() { "/floor" } else { "" };
            return Err(format!(
                "coupling = {} is unstable: step² coupling{masses} = {stiff:.3} must be below {most:.3}",
                self.coupling
            ));
        }
        Ok(())
    }

    fn launch<F: Real, L: Launcher<F>>(&self, problem: Problem<F>, launcher: L) -> L::Outcome {
        let (model, agents, plan) = (problem.model.clone(), problem.agents, self.plan());
        let transition = self.transition(problem);
        launch_coupled(self.asynchronous, agents, transition, plan, model, launcher)
    }
}

impl EcSgldSettings {
    fn strength(&self) -> Strength {
        strength(self.coupling, self.course, self.burn_in)
    }

    /// What chains do.
    pub fn plan(&self) -> Plan {
        let Self { steps, period, burn_in, thin, same_start, .. } = *self;
        let coupling = Coupling::Elastic(CenterDynamics::FirstOrder);
        let (strength, extrapolate, sleep_ms) = (self.strength(), false, Vec::new());
        Plan { steps, period, burn_in, thin, same_start, strength, coupling, extrapolate, sleep_ms }
    }

    /// The transition of its chains.
    pub fn transition<F: Real>(&self, problem: Problem<F>) -> Sgld<F> {
        Sgld { problem, batch: self.batch, step: StepSize::Constant(self.step), gradient: self.gradient }
    }
}

impl MethodKind for EcSgldSettings {
    const NAME: &'static str = "ec_sgld";

    const SHARING: Sharing = Sharing::Everyone;

    const DOCS: &'static [(&'static str, &'static str)] = &[
        ("steps", STEPS),
        ("period", PERIOD),
        ("batch", BATCH),
        ("step", "variance of the noise of a step, whose drift is half of it times the score"),
        ("coupling", COUPLING),
        ("course", COURSE),
        ("asynchronous", ASYNCHRONOUS),
        ("gradient", GRADIENT),
        ("same_start", SAME_START),
        ("burn_in", BURN_IN),
        ("thin", THIN),
    ];

    fn needs(&self, agents: u32, parameters: usize) -> Needs {
        needs_of(agents, parameters, self.steps.div_ceil(self.period.max(1)), self.batch, 5)
    }

    fn notes(&self, agents: u32) -> Vec<String> {
        notes_of(self.strength(), false, agents)
    }

    fn check_for(&self, agents: u32) -> Result<(), String> {
        let (kappa, period) = (self.coupling, self.period.min(self.steps));
        let steps = Steps::FirstOrder(0.5 * self.step);
        if self.asynchronous && kappa > 0.0 && !turns_are_stable(steps, kappa, agents, CenterDynamics::FirstOrder, period) {
            return unstable(kappa, period, self.step, "asynchronous = true");
        }
        Ok(())
    }

    fn check(&self) -> Result<(), String> {
        check_steps(self.steps, self.period, self.batch, self.strength(), self.burn_in, self.thin)?;
        StepSize::Constant(self.step).check().map_err(|_| format!("step = {} must be above 0", self.step))?;
        let stiff = 0.5 * self.step * self.coupling;
        if stiff >= 2.0 {
            return Err(format!("coupling = {} is unstable: step · coupling/2 = {stiff:.3} must be below 2", self.coupling));
        }
        Ok(())
    }

    fn launch<F: Real, L: Launcher<F>>(&self, problem: Problem<F>, launcher: L) -> L::Outcome {
        let (model, agents, plan) = (problem.model.clone(), problem.agents, self.plan());
        let transition = self.transition(problem);
        launch_coupled(self.asynchronous, agents, transition, plan, model, launcher)
    }
}

impl EasgdSettings {
    /// What so many workers do.
    pub fn plan(&self, agents: u32) -> Plan {
        let Self { steps, period, burn_in, thin, same_start, .. } = *self;
        let coupling = Coupling::Average { rate: self.rate / f64::from(agents) };
        let strength = Strength { full: 1.0, course: Course::Constant };
        Plan { steps, period, burn_in, thin, same_start, strength, coupling, extrapolate: false, sleep_ms: Vec::new() }
    }

    /// The transition of its workers.
    pub fn transition<F: Real>(&self, problem: Problem<F>) -> Sgd<F> {
        let Self { batch, gradient, step, momentum, nesterov, .. } = *self;
        Sgd { problem, batch, gradient, step, momentum, nesterov }
    }
}

impl MethodKind for EasgdSettings {
    const NAME: &'static str = "easgd";

    const SHARING: Sharing = Sharing::Everyone;

    const DOCS: &'static [(&'static str, &'static str)] = &[
        ("steps", "steps of each worker; every agent is one, and sees all data. It descends to a mode: no sampler"),
        ("period", PERIOD),
        ("batch", BATCH),
        ("step", "eta, in units of the whole potential: what others call learning rate is step * rows"),
        ("momentum", "0 for EASGD; EAMSGD has 0.99"),
        ("nesterov", "whether gradients are taken where momentum leads"),
        ("rate", "beta, by which share of its distance the center moves to the mean of the workers at an exchange"),
        ("asynchronous", ASYNCHRONOUS),
        ("gradient", GRADIENT),
        ("same_start", SAME_START),
        ("burn_in", "steps before the first center that is kept"),
        ("thin", "of the exchanges after those every so-many-th center is kept, 0 for none"),
    ];

    fn needs(&self, agents: u32, parameters: usize) -> Needs {
        needs_of(agents, parameters, self.steps.div_ceil(self.period.max(1)), self.batch, 5)
    }

    fn check(&self) -> Result<(), String> {
        let Self { steps, period, batch, burn_in, thin, .. } = *self;
        at_least_one(&[("steps", steps), ("period", period), ("batch", batch as u64)])?;
        check_centers(steps, period, burn_in, thin)?;
        if !(self.step.is_finite() && self.step > 0.0) {
            return Err(format!("step = {} must be above 0", self.step));
        }
        if !(0.0..1.0).contains(&self.momentum) {
            return Err(format!("momentum = {} must be from 0 to below 1", self.momentum));
        }
        if !(self.rate > 0.0 && self.rate < 1.0) {
            return Err(format!("rate = {} must lie between 0 and 1", self.rate));
        }
        Ok(())
    }

    fn launch<F: Real, L: Launcher<F>>(&self, problem: Problem<F>, launcher: L) -> L::Outcome {
        let (model, agents, plan) = (problem.model.clone(), problem.agents, self.plan(problem.agents));
        let transition = self.transition(problem);
        launch_coupled(self.asynchronous, agents, transition, plan, model, launcher)
    }
}
