//! Automatic steps: the mode and the curvature of a posterior and the noise of its scores are measured before chains run.

mod keys;
mod mode;
mod needs;
mod noise;
mod plan;
mod prior;
mod starts;
mod step;

pub use keys::{check_ess, check_noise_share, idle_keys};
pub use mode::{FindMode, MODE, NoMode};
pub use needs::{DrawCount, Found, NoiseNeeds, TuningNeeds, VisitShare};
pub use noise::{MeasureNoise, NOISE};
pub use plan::{
    BURN_IN, HamiltonianSteps, LangevinSteps, Lengths, Measurement, draws_of, hamiltonian_steps, langevin_steps, lengths,
};
pub use prior::prior_curvature;
pub use starts::{FindStarts, STARTS};
pub use step::Step;
