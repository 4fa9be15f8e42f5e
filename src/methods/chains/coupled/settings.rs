//! What the settings of SGHMC, EC-SGHMC, EC-SGLD and EASGD have in common: checks, notes and resource estimates.

use super::server::MAX_PERIODS_IN_FLIGHT;
use super::{CoupledChains, CoupledTransition, CouplingPlan, CouplingSchedule, CouplingStrength};
use crate::kernels::hamiltonian::SghmcDynamics;
use crate::methods::common::settings::{Length, ResourceEstimate, TableMethod, at_least_one, no_draws};

use crate::methods::transitions::sghmc::Preconditioner;
use crate::methods::tuning::{BURN_IN, Lengths, lengths};
use crate::number::Real;
use crate::settings::KeyError;

/// Checks the number of steps, and that there are draws.
pub(in crate::methods) fn check_steps(
    steps: u64,
    period: u64,
    batch: usize,
    strength: CouplingStrength,
    burn_in: u64,
    thin: u64,
) -> Result<(), KeyError> {
    at_least_one(&[("steps", steps), ("period", period), ("batch", batch as u64)])?;
    strength.check()?;
    if thin > 0 && strength.draws(steps, burn_in, thin) == 0 {
        if CouplingStrength::NONE.draws(steps, burn_in, thin) == 0 {
            return Err(no_draws(burn_in, thin, steps));
        }
        let sentence = "leaves no draws: none of the steps after burn_in is free of coupling";
        return Err(KeyError::invalid("coupling_schedule", sentence));
    }
    Ok(())
}

/// A spring and the posterior together are at most this stiff, in units in which steps are unstable from 4 (second order) or 2 (first
/// order) on.
const MAX_STIFFNESS: f64 = 1.0;
/// The smallest coupling that is found.
const MIN_COUPLING: f64 = 1e-6;

/// The lengths of coupled chains, where those in `given` are kept, burn-in and thinning, and the steps if they are given. Draws begin when an
/// annealing that is given is over.
pub(in crate::methods) fn found_lengths(
    relaxation: f64,
    draws: f64,
    agents: u32,
    given: (Option<u64>, Option<u64>),
    (steps, schedule): (Option<u64>, Option<CouplingSchedule>),
) -> Lengths {
    let annealed = match schedule {
        Some(CouplingSchedule::Anneal { from, over }) if given.0.is_none() => from.saturating_add(over),
        _ => return lengths(relaxation, draws, agents, given).within(steps, given),
    };
    let burn_in = annealed.saturating_add((BURN_IN * relaxation) as u64);
    let found = lengths(relaxation, draws, agents, (Some(burn_in), given.1)).within(steps, given);
    let burn_in = found.burn_in.max(annealed);
    let most = found.updates.saturating_sub(burn_in).max(1);
    Lengths { burn_in, thin: given.1.unwrap_or(found.thin.min(most)), updates: found.updates }
}

/// The largest of coupling, its half and so on with which found steps are stable: where neither `stiffness` of spring and posterior together
/// nor `is_unstable` objects.
pub(in crate::methods) fn found_coupling(
    mut coupling: f64,
    stiffness: impl Fn(f64) -> f64,
    is_unstable: impl Fn(f64) -> bool,
) -> f64 {
    while coupling > MIN_COUPLING && (stiffness(coupling) > MAX_STIFFNESS || is_unstable(coupling)) {
        coupling *= 0.5;
    }
    coupling
}

/// The rounds of a run with this many steps, if they are given.
pub(in crate::methods) fn given_rounds(steps: Option<u64>, period: u64) -> Option<u64> {
    steps.map(|steps| steps.div_ceil(period.max(1)))
}

/// Checks that a center is kept.
pub(in crate::methods) fn check_centers(steps: u64, period: u64, burn_in: u64, thin: u64) -> Result<(), KeyError> {
    let exchanges = (steps / period).saturating_sub(burn_in / period);
    match thin {
        1.. if exchanges < thin => {
            let sentence = format!("= {thin} keeps none of the {exchanges} exchanges after burn-in. Set a smaller thin");
            Err(KeyError::invalid("thin", sentence))
        }
        _ => Ok(()),
    }
}

/// Checks the dynamics of second order and the preconditioner.
pub(in crate::methods) fn check_dynamics(
    dynamics: SghmcDynamics,
    preconditioner: Option<Preconditioner>,
    burn_in: u64,
    thin: u64,
) -> Result<(), KeyError> {
    let lightest = match preconditioner {
        None => 1.0,
        Some(preconditioner) => {
            preconditioner.check().map_err(|error| error.below("preconditioner"))?;
            if thin > 0 && preconditioner.burn_in > burn_in {
                let sentence = format!(
                    "must be at most {burn_in}, the burn_in of the method, not {}: masses would change between draws",
                    preconditioner.burn_in
                );
                return Err(KeyError::invalid("preconditioner.burn_in", sentence));
            }
            preconditioner.floor.recip()
        }
    };
    dynamics.check(lightest)
}

/// κ and its schedule, by default annealed to 0 in the second half of burn-in.
pub(in crate::methods) fn strength(coupling: f64, schedule: Option<CouplingSchedule>, burn_in: u64) -> CouplingStrength {
    let from = burn_in / 2;
    CouplingStrength { full: coupling, schedule: schedule.unwrap_or(CouplingSchedule::Anneal { from, over: burn_in - from }) }
}

/// The error for springs that are too stiff for the time between exchanges.
pub(in crate::methods) fn unstable(kappa: f64, period: u64, step: f64, setting: &str) -> Result<(), KeyError> {
    let sentence =
        format!("= {kappa} is unstable with {setting} and period = {period} steps of {step}. Set a smaller coupling or period");
    Err(KeyError::invalid("coupling", sentence))
}

/// Notes on chains that are never coupled, or that stay coupled while draws are taken and so are biased.
pub(in crate::methods) fn notes_of(strength: CouplingStrength, is_unbiased: bool, agents: u32) -> Vec<String> {
    let biased = strength.full > 0.0 && strength.schedule == CouplingSchedule::Constant && !is_unbiased && agents > 1;
    let kappa = strength.full;
    if kappa > 0.0 && !strength.is_active(0, 1) {
        return vec!["chains are never coupled: burn_in = 0 leaves no steps with coupling; set coupling_schedule".into()];
    }
    biased
        .then(|| {
            format!(
                "draws are from p(θ_1) ... p(θ_{agents}) exp(-κ/2 Σ|θ_i - mean|²), not from the posterior: for a Gaussian posterior of \
                 precision λ, the variance of a chain is 1/λ times 1 - {:.3} κ/(λ + κ), with κ = {kappa}; annealed and cyclic coupling \
                 are unbiased",
                f64::from(agents - 1) / f64::from(agents)
            )
        })
        .into_iter()
        .collect()
}

/// What a run takes, with this number of arrays of parameters for each chain.
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
        draws: None,
        minibatch: Some(batch as u64),
        values_of_agent: Some(parameters.saturating_mul(arrays)),
        values_per_round: Some(parameters.saturating_mul(2 * u64::from(agents))),
        ..ResourceEstimate::default()
    }
}

/// How a run of this many steps can be made longer. Asynchronous chains cannot: those that are ahead have ended when others have not.
pub(in crate::methods) fn length_of(steps: u64, asynchronous: bool) -> Option<Length> {
    (!asynchronous).then_some(Length { key: "steps", value: steps, last_rounds: MAX_PERIODS_IN_FLIGHT + 1 })
}

/// Coupled chains, synchronous or asynchronous.
pub(in crate::methods) fn coupled_method<F: Real, T: CoupledTransition<Number = F>>(
    asynchronous: bool,
    agents: u32,
    transition: T,
    plan: CouplingPlan,
) -> TableMethod<F> {
    let is_center = plan.result_is_center(transition.noisy());
    let method = CoupledChains { agents, transition, plan, asynchronous };
    if is_center { TableMethod::particles(method) } else { TableMethod::chains(method) }
}
