//! One SGHMC chain whose gradients are a known number of steps old, and what exact theory says of it on a Gaussian target.

use super::recording::Recording;
use mpibayes::cluster::{AgentId, Fault, JobOptions};
use mpibayes::kernels::hamiltonian::Scheme;
use mpibayes::methods::Problem;
use mpibayes::methods::chains::async_sghmc::{AsyncSghmc, AsyncSghmcSettings};
use mpibayes::methods::tuning::Step;
use mpibayes::random::Seed;

/// λ times the variance of SGLD on a target of precision λ with steps ελ = 0.1, by the delay of its gradients.
pub const SGLD_VARIANCES: [(u32, f64); 5] = [(0, 1.0526), (1, 1.1640), (2, 1.2892), (4, 1.5959), (8, 2.6583)];

/// The largest ελ at which SGD converges with gradients that are `delay` steps old.
pub fn stability_threshold(delay: u32) -> f64 {
    2.0 * (std::f64::consts::PI / (2.0 * f64::from(2 * delay + 1))).sin()
}

/// SGHMC whose friction forgets the velocity in every step, which is SGLD with this ελ, or SGD without noise.
pub fn overdamped(rate: f64, lambda: f64, steps: u64, noise: bool) -> AsyncSghmcSettings {
    let step = (rate / lambda).sqrt();
    let (steps, friction, step) = (Some(steps), Some(1.0 / step), Step::Size(step));
    AsyncSghmcSettings { steps, step, friction, scheme: Scheme::SemiImplicit, noise, ..AsyncSghmcSettings::default() }
}

/// Runs the chain with a tenth of its steps as burn-in. Agents of equal speed deliver gradients in turn: each gradient is as many steps old
/// as there are other agents.
pub fn delayed_by_turns(problem: Problem<f64>, settings: AsyncSghmcSettings, seed: u64) -> Result<Recording, Fault> {
    let settings = AsyncSghmcSettings { burn_in: settings.steps.map(|steps| steps / 10), ..settings };
    let task = |agent: AgentId, &made: &u64| 1.0 + if made == 0 { 0.1 * f64::from(agent) } else { 0.0 };
    Recording::simulated(AsyncSghmc { problem, settings }, JobOptions::new(Seed(seed)), task)
}

/// The largest value in the last `count` draws of a chain, over that in the first.
pub fn growth(chain: &[f64], count: usize) -> f64 {
    let size = |part: &[f64]| part.iter().fold(0.0_f64, |most, value| most.max(value.abs()));
    size(&chain[chain.len() - count..]) / size(&chain[..count])
}
