//! Automatic steps: the mode and the curvature of a posterior and the noise of its scores are measured before chains run.

mod mode;
mod noise;
mod notes;
mod plan;
mod prior;
mod step;

pub use mode::{FindMode, MODE};
pub use noise::{MeasureNoise, NOISE};
pub use notes::idle_keys;
pub use plan::{
    HamiltonianSteps, LangevinSteps, Lengths, Measurement, TuningNeeds, VisitShare, hamiltonian_steps, langevin_steps, lengths,
};
pub use step::Step;
