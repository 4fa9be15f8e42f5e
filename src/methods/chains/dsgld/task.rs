//! Tasks and reports of D-SGLD: visits of chains to agents, and sums over all states at the end.

use super::settings::DsgldSettings;
use crate::cluster::{AgentId, Raw};
use crate::number::Real;
use serde::{Deserialize, Serialize};

/// Chains that travel from agent to agent.
#[derive(Clone)]
pub struct Dsgld<T> {
    /// S, the number of agents.
    pub agents: u32,
    /// How chains are updated.
    pub transition: T,
    /// How they travel, and which draws are kept. The keys of the transition (batch, step, gradient) are not read again.
    pub settings: DsgldSettings,
}

/// A task of an agent.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Task {
    /// Report the number of rows.
    Rows,
    /// Update the chain that visits.
    Visit(GroupVisit),
    /// Return the weighted sum of the states that visited.
    Sum,
    /// Return their weighted squares about this mean.
    Squares,
}

impl Task {
    /// The number of updates of an agent: a simulated cluster computes durations from it.
    pub fn updates(&self, agent: AgentId) -> u64 {
        let Self::Visit(group) = self else { return 0 };
        group.visits.iter().find(|visit| visit.agent == agent).map_or(0, |visit| visit.updates)
    }
}

/// The visits of the chains of a group in a round, each at an agent of its own.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct GroupVisit {
    pub(super) round: u64,
    pub(super) visits: Vec<Visit>,
    /// Whether no further visit follows, so that the states are not passed on.
    pub(super) is_last: bool,
    /// Whether agents report the states.
    pub(super) reports_state: bool,
}

/// A visit of a chain at an agent.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Visit {
    pub(super) agent: AgentId,
    pub(super) chain: u32,
    /// The number of the chain's first update in this visit.
    pub(super) first_update: u64,
    pub(super) updates: u64,
    /// What the score of the shard is multiplied by: 1/q_s, or N/N_s without `correction`.
    pub(super) scale: f64,
    /// The number of chains whose states are summed in the body that arrives; 0 if none arrives.
    pub(super) group_size: u32,
    /// The first of these chains.
    pub(super) first_chain: u32,
}

/// A report of an agent.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(bound = "")]
pub enum Report<F: Real> {
    /// The number of rows.
    Rows(u64),
    /// A visit is done.
    Visited(Visited<F>),
    /// The total weight of the states in [`Task::Sum`] or [`Task::Squares`].
    Weight(f64),
}

/// The report of a visit.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(bound = "")]
pub struct Visited<F: Real> {
    pub(super) chain: u32,
    pub(super) updates: u64,
    pub(super) step: f64,
    /// Whether something other than updates took time, such as the fixed point of a control variate.
    pub(super) did_other_work: bool,
    /// The state, if it was requested.
    pub(super) state: Raw<F>,
}
