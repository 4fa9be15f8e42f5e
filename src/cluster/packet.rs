//! What ranks send each other: a head and a body.

use super::body::Body;
use super::codec::Raw;
use super::fault::Fault;
use super::layout::Rank;
use super::method::AgentId;
use super::outbox::Route;
use super::record::Record;
use crate::number::Number;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// The number of a request; also of the parcel that it promises.
pub(super) type RequestId = u64;

pub(super) struct Packet<N: Number> {
    pub head: Head,
    pub body: Body<N>,
}

#[derive(Clone, Serialize, Deserialize)]
pub(super) enum Head {
    /// Make your agents, from these saved states where there are any.
    Start { saved: Vec<(AgentId, Raw<u8>)> },
    /// A task; pass it on along the tree. The body belongs to every member.
    Request(Arc<Posted>),
    /// A member has performed. `aside` is what its rank has spent on monitoring so far, in seconds of all its workers.
    Report { request: RequestId, from: AgentId, seconds: f64, aside: f64, report: Raw<u8>, records: Vec<Record> },
    /// A member's share of one slice of a sum, for the rank that adds this slice. `len` is the length of the whole body.
    Slice { request: RequestId, from: AgentId, len: u64 },
    /// One added slice of a sum, for these agents on the receiving rank, or for the server where there are none.
    Total { request: RequestId, part: u32, parts: u32, to: Vec<AgentId> },
    /// Say when your agents are at rest and these parcels have come.
    Rest { expected: Vec<(AgentId, RequestId)> },
    /// All agents here are at rest, in these states.
    Rested {
        rank: Rank,
        agents: Vec<(AgentId, Raw<u8>)>,
        parcels: Vec<SavedParcel>,
        records: Vec<Record>,
        traffic: Traffic,
        spent: Vec<(AgentId, AgentTime)>,
        /// What has been put into the rank's store since the last rest.
        stored: u64,
    },
    /// The run is over.
    Stop,
    /// The job has to end.
    Fail(Fault),
}

/// A request as it travels.
#[derive(Clone, Serialize, Deserialize)]
pub(super) struct Posted {
    pub id: RequestId,
    pub task: Raw<u8>,
    pub members: Vec<Member>,
    pub route: Route,
    pub aside: bool,
    /// The ranks that it goes to, the server's first: the tree along which it is passed on.
    pub ranks: Vec<Rank>,
    /// Its number among the sums that all hosting ranks add together, where it is one.
    pub reduction: Option<u64>,
}

/// A rank's share of a sum that all hosting ranks add together.
pub(super) struct Reduction<N: Number> {
    /// All ranks add in the order of these numbers.
    pub number: u64,
    /// The request, with the members on this rank only.
    pub request: Arc<Posted>,
    pub share: Body<N>,
}

impl Posted {
    pub fn member_ids(&self) -> Vec<AgentId> {
        self.members.iter().map(|member| member.agent).collect()
    }
}

/// A member of a request.
#[derive(Clone, Copy, Serialize, Deserialize)]
pub(super) struct Member {
    pub agent: AgentId,
    /// The place of this request among all of the agent's requests: a tree may reorder what it carries.
    pub place: u64,
    /// The parcel that the agent is handed.
    pub parcel: Option<RequestId>,
}

/// A parcel in a checkpoint.
#[derive(Clone, Serialize, Deserialize)]
pub(super) struct SavedParcel {
    pub request: RequestId,
    pub to: Vec<AgentId>,
    /// The bytes of its numbers.
    pub body: Raw<u8>,
}

/// Messages and bytes between ranks, by purpose.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Traffic(pub std::collections::BTreeMap<String, Flow>);

/// How much of one purpose.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Flow {
    /// Messages between ranks.
    pub messages: u64,
    /// Bytes of bodies, draws and saved states; the rest of a message, some tens of bytes, is not counted.
    pub bytes: u64,
}

/// Seconds that an agent's thread was busy with it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct AgentTime {
    /// With tasks.
    pub tasks: f64,
    /// With what may wait until a report is on its way.
    pub after_report: f64,
    /// With monitoring: evaluation.
    pub monitoring: f64,
}

impl AgentTime {
    pub(super) fn add(&mut self, other: Self) {
        self.tasks += other.tasks;
        self.after_report += other.after_report;
        self.monitoring += other.monitoring;
    }
}

/// Seconds of computing, by who spent them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TimeSpent {
    /// The server.
    pub server: f64,
    /// The server with asides.
    pub server_monitoring: f64,
    /// Each agent.
    pub agents: std::collections::BTreeMap<AgentId, AgentTime>,
}

impl Traffic {
    pub(super) fn count(&mut self, purpose: &str, bytes: u64) {
        let flow = match self.0.get_mut(purpose) {
            Some(flow) => flow,
            None => self.0.entry(purpose.to_owned()).or_default(),
        };
        flow.messages += 1;
        flow.bytes += bytes;
    }

    pub(super) fn add(&mut self, other: &Self) {
        for (purpose, flow) in &other.0 {
            let sum = self.0.entry(purpose.clone()).or_default();
            sum.messages += flow.messages;
            sum.bytes += flow.bytes;
        }
    }
}

impl Head {
    /// Bytes of the draws that travel in it.
    pub fn draws(&self) -> u64 {
        let (Self::Report { records, .. } | Self::Rested { records, .. }) = self else { return 0 };
        let bytes = |record: &Record| match record {
            Record::Draws(draws) => draws.bytes.len() as u64,
            Record::Row(_) => 0,
        };
        records.iter().map(bytes).sum()
    }

    /// Bytes of the saved states that travel in it.
    pub fn states(&self) -> u64 {
        match self {
            Self::Start { saved } => saved.iter().map(|state| state.1.0.len() as u64).sum(),
            Self::Rested { agents, parcels, .. } => {
                let parcels = parcels.iter().map(|parcel| parcel.body.0.len() as u64);
                agents.iter().map(|state| state.1.0.len() as u64).chain(parcels).sum()
            }
            _ => 0,
        }
    }

    pub fn purpose(&self) -> &'static str {
        match self {
            Self::Request(_) => "tasks",
            Self::Report { .. } => "reports",
            Self::Slice { .. } => "slices of sums",
            Self::Total { to, .. } => {
                if to.is_empty() {
                    "sums"
                } else {
                    "hand-overs"
                }
            }
            Self::Start { .. } | Self::Rest { .. } | Self::Rested { .. } | Self::Stop | Self::Fail(_) => "control",
        }
    }
}

/// The children of position `at` among `ranks` in a binomial tree rooted at the first, largest subtree first.
pub(super) fn children(at: usize, ranks: usize) -> impl Iterator<Item = usize> {
    let first = (at + 1).next_power_of_two();
    std::iter::successors(Some(first), |step| step.checked_mul(2))
        .map(move |step| at + step)
        .take_while(move |&child| child < ranks)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tree_reaches_every_rank_once() {
        for ranks in 1..70 {
            let mut seen = vec![0; ranks];
            let mut stack = vec![0];
            while let Some(at) = stack.pop() {
                seen[at] += 1;
                stack.extend(children(at, ranks));
            }
            assert_eq!(seen, vec![1; ranks]);
        }
    }
}
