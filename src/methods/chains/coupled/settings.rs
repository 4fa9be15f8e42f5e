//! The settings of chains that see all data, a file for each method, and what they have in common.

use super::{CoupledChains, CoupledTransition, CouplingPlan, CouplingSchedule, CouplingStrength};
use crate::kernels::hamiltonian::SghmcDynamics;
use crate::methods::common::settings::{ResourceEstimate, TableMethod, at_least_one};

use crate::methods::transitions::sghmc::Preconditioner;
use crate::number::Real;

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
pub(in crate::methods) fn needs_of(
    agents: u32,
    parameters: usize,
    steps: u64,
    period: u64,
    batch: usize,
    arrays: u64,
) -> ResourceEstimate {
    let parameters = parameters as u64;
    ResourceEstimate {
        particles: Some(u64::from(agents)),
        rounds: Some(steps.div_ceil(period.max(1))),
        minibatch: Some(batch as u64),
        values_of_agent: Some(parameters.saturating_mul(arrays)),
        values_per_round: Some(parameters.saturating_mul(2 * u64::from(agents))),
        ..ResourceEstimate::default()
    }
}

/// The method of coupled chains, which exchange all at once or each on its own time.
pub(in crate::methods) fn coupled_method<F: Real, T: CoupledTransition<Number = F>>(
    asynchronous: bool,
    agents: u32,
    transition: T,
    plan: CouplingPlan,
) -> TableMethod<F> {
    TableMethod::chains(CoupledChains { agents, transition, plan, asynchronous })
}
