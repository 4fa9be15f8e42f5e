//! What the server asks agents of coupled chains to do.

use serde::{Deserialize, Serialize};

/// A task of an agent.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub enum Task {
    /// Draw the chain's initial state, and send the chain's part of the first exchange: its position, or for coupled friction a vector made
    /// from its velocities and noise.
    Begin,
    /// Make the steps of a period.
    Run(Period),
}

impl Task {
    /// The number of updates, one for each step: a simulated cluster computes durations from it.
    pub fn updates(&self) -> u64 {
        match self {
            Self::Begin => 0,
            Self::Run(period) => period.steps,
        }
    }
}

/// The steps of a chain between two exchanges.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Period {
    /// Its number, from 0.
    pub(super) number: u64,
    pub(super) steps: u64,
    /// Whether the agent sends the chain's position.
    pub(super) sends_position: bool,
    /// Whether the agent reports |θ|².
    pub(super) reports_square: bool,
}
