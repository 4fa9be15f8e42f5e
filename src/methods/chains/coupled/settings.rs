//! The settings of chains that see all data, a file for each method, and what they have in common.

use super::{CoupledChains, CoupledTransition, CouplingPlan, CouplingSchedule, CouplingStrength};
use crate::kernels::hamiltonian::SghmcDynamics;
use crate::methods::common::kind::{Launcher, Needs, at_least_one};
use crate::methods::transitions::sghmc::Preconditioner;
use crate::models::Model;
use crate::number::Real;
use std::sync::Arc;

pub(in crate::methods) const STEPS: &str = "steps of each chain; every agent has a chain, and sees all data";
pub(in crate::methods) const BURN_IN: &str = "steps of each chain before those that draws are taken of";
pub(in crate::methods) const THIN: &str = "of the steps after those every so-many-th is kept, 0 for none";
pub(in crate::methods) const BATCH: &str = "rows in a minibatch, fresh for every step";
pub(in crate::methods) const GRADIENT: &str =
    "\"plain\", or { control_variate = 100 }: from that period on scores are corrected by that at a fixed point";
pub(in crate::methods) const STEP: &str = "epsilon; what others call learning rate is its square";
pub(in crate::methods) const FRICTION: &str =
    "V, the rate at which velocities are forgotten; what others call momentum decay is step * friction";
pub(in crate::methods) const GRADIENT_NOISE: &str =
    "half of step * the variance of scores of minibatches, which noise that is added does without; 0 if unknown";
pub(in crate::methods) const PRECONDITIONER: &str =
    "{ burn_in = 1000, decay = 0.99, floor = 1.0 }: masses by the size of scores, found in so many steps; not by default";
pub(in crate::methods) const SCHEME: &str =
    "\"middle\", exact for Gaussian posteriors at every stable step, or \"semi_implicit\", that of the papers";
pub(in crate::methods) const SAME_START: &str = "whether all chains begin in the same place";
pub(in crate::methods) const PERIOD: &str = "s, steps between exchanges with the center";
pub(in crate::methods) const COUPLING: &str = "kappa, the strength of the springs between chains and center";
pub(in crate::methods) const COURSE: &str = "\"constant\" (then draws are none of the posterior), { anneal = { from = 500, over = 500 } }, or { cyclic = { coupled = 100, free \
     = 400, settle = 100 } }; by default annealed in the burn-in";
pub(in crate::methods) const ASYNCHRONOUS: &str =
    "whether each chain meets the center on its own time; false waits for the slowest at every exchange";
pub(in crate::methods) const SLEEP: &str = "milliseconds that each agent sleeps for a step: slow machines for experiments";

/// What all of them have to keep to.
pub(in crate::methods) fn check_steps(
    steps: u64,
    period: u64,
    batch: usize,
    strength: CouplingStrength,
    burn_in: u64,
    thin: u64,
) -> Result<(), String> {
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
pub(in crate::methods) fn check_centers(steps: u64, period: u64, burn_in: u64, thin: u64) -> Result<(), String> {
    let exchanges = (steps / period).saturating_sub(burn_in / period);
    match thin {
        1.. if exchanges < thin => Err(format!("thin = {thin}: of {exchanges} exchanges after the burn-in none is kept")),
        _ => Ok(()),
    }
}

/// What steps of second order have to keep to.
pub(in crate::methods) fn check_dynamics(
    dynamics: SghmcDynamics,
    preconditioner: Option<Preconditioner>,
    burn_in: u64,
    thin: u64,
) -> Result<(), String> {
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

/// κ and its schedule; where none is typed it is annealed in the second half of the burn-in.
pub(in crate::methods) fn strength(coupling: f64, schedule: Option<CouplingSchedule>, burn_in: u64) -> CouplingStrength {
    let from = burn_in / 2;
    CouplingStrength { full: coupling, schedule: schedule.unwrap_or(CouplingSchedule::Anneal { from, over: burn_in - from }) }
}

/// What to say of springs that do not go with the time between exchanges.
pub(in crate::methods) fn unstable(kappa: f64, period: u64, step: f64, what: &str) -> Result<(), String> {
    Err(format!(
        "coupling = {kappa} is unstable with {what} and period = {period} steps of {step}: take a weaker one, or exchange more often"
    ))
}

/// What may not be meant by chains that stay coupled while draws are taken.
pub(in crate::methods) fn notes_of(strength: CouplingStrength, keeps_law: bool, agents: u32) -> Vec<String> {
    let biased = strength.full > 0.0 && strength.schedule == CouplingSchedule::Constant && !keeps_law && agents > 1;
    let kappa = strength.full;
    if kappa > 0.0 && !strength.is_active(0, 1) {
        return vec![
            "chains are not coupled at all: with burn_in = 0 there is no time to anneal the coupling in; set schedule".into(),
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
pub(in crate::methods) fn needs_of(agents: u32, parameters: usize, steps: u64, period: u64, batch: usize, arrays: u64) -> Needs {
    let parameters = parameters as u64;
    Needs {
        particles: Some(u64::from(agents)),
        rounds: Some(steps.div_ceil(period.max(1))),
        minibatch: Some(batch as u64),
        numbers_of_agent: Some(parameters.saturating_mul(arrays)),
        numbers_per_round: Some(parameters.saturating_mul(2 * u64::from(agents))),
        ..Needs::default()
    }
}

/// Starts chains, all at once or each on its own time.
pub(in crate::methods) fn launch_coupled<F: Real, T: CoupledTransition<Number = F>, L: Launcher<F>>(
    asynchronous: bool,
    agents: u32,
    transition: T,
    plan: CouplingPlan,
    model: Arc<dyn Model<F>>,
    launcher: L,
) -> L::Outcome {
    launcher.chains(CoupledChains { agents, transition, plan, asynchronous }, model)
}
