//! Packets between ranks, and their statistics: messages, bytes and seconds of computing.

use super::block::PartOfSum;
use super::body::Body;
use super::codec::Raw;
use super::fault::{Fault, Result};
use super::layout::{AgentId, Rank};
use super::members::Members;
use super::packing::{pack_saved, unpack_saved};
use super::ranges::Ranges;
use super::record::{Record, StoredDraws};
use super::request::{RequestId, Route};
use super::states::{SavedState, StateStore};
use super::usage::{Flow, RankUsage};
use crate::number::Number;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::sync::Arc;

pub(super) struct Packet<N: Number> {
    pub head: Head,
    pub body: Body<N>,
}

/// The content of a packet besides its body.
#[derive(Clone, Serialize, Deserialize)]
pub(super) enum Head {
    /// Makes the agents of the receiving rank, from saved states if the run is resumed.
    Start { saved: Vec<(AgentId, SavedState)> },
    /// A task, to be forwarded along the tree of the ranks of its members, with rank 0 at the root. The body goes to every member.
    Request(Arc<Posted>),
    /// Members have performed their task. The body has the bodies of the reports one after another.
    Reports { request: RequestId, reports: Vec<Report> },
    /// What the sending rank and those below it contribute to a part of a sum.
    PartOfSum { request: RequestId, part: PartOfSum },
    /// A part of a total, for these agents, or for the server if there are none. It is forwarded to the other ranks that host some of them.
    Total { request: RequestId, part: u32, parts: u32, to: Ranges },
    /// Asks for the states of the receiving rank's agents, once they are idle and these transfers have arrived. A transfer that waits on
    /// several ranks is saved by one of them: the bodies of these are. States are not wanted at the end of a run.
    Quiesce { expected: Vec<(AgentId, RequestId)>, saved_here: BTreeSet<RequestId>, wants_states: bool },
    /// The states of a rank whose agents are idle.
    Quiesced {
        rank: Rank,
        agents: Vec<(AgentId, SavedState)>,
        transfers: Vec<SavedTransfer>,
        records: Vec<Record>,
        traffic: Traffic,
        spent: Vec<(AgentId, AgentTime)>,
        /// The draws that the rank has stored and the recorder has perhaps not collected yet.
        stored: Vec<StoredDraws>,
        /// Why the rank could not store its states.
        failure: Option<String>,
        /// The time that it took to save them.
        saving_seconds: f64,
        /// What the rank has done since it was last asked.
        usage: Box<RankUsage>,
    },
    /// The run is over.
    Stop,
    /// The job must end.
    Fail(Fault),
}

/// A member's report.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Report {
    pub from: AgentId,
    /// The duration of the task.
    pub seconds: f64,
    /// The time from the arrival of the request at its rank to the end of the task.
    pub response_seconds: f64,
    /// The time that its rank has spent on monitoring so far: seconds during which all its workers are busy.
    pub monitoring_seconds: f64,
    pub bytes: AgentBytes,
    pub report: Raw<u8>,
    pub records: Vec<Record>,
    /// The number of values in its body.
    pub values: usize,
    /// Of a contribution to a sum: whether packed messages are faster for it than an all-reduce.
    pub is_faster_packed: Option<bool>,
}

impl Report {
    /// Bytes of the draws in it.
    pub fn draws(&self) -> u64 {
        bytes_of_draws(&self.records)
    }
}

fn bytes_of_draws(records: &[Record]) -> u64 {
    let bytes = |record: &Record| match record {
        Record::Draws(draws) => draws.bytes.len() as u64,
        Record::Row(_) => 0,
    };
    records.iter().map(bytes).sum()
}

/// A request on its way to the ranks of its members.
#[derive(Clone, Serialize, Deserialize)]
pub(super) struct Posted {
    pub id: RequestId,
    pub task: Raw<u8>,
    pub members: Members,
    pub route: Route,
    pub monitoring: bool,
    /// Its number among the sums over all hosting ranks by all-reduce, if it is one of them.
    pub reduction: Option<u64>,
}

/// A rank's contribution to a sum over all hosting ranks by all-reduce.
pub(super) struct Reduction<N: Number> {
    /// The number of the sum: all ranks add in this order.
    pub number: u64,
    pub request: Arc<Posted>,
    /// An agent on this rank that has contributed.
    pub from: AgentId,
    pub contribution: Body<N>,
}

impl Posted {
    /// Whether the body of its report stays where it is made.
    pub fn stays(&self) -> bool {
        self.members.only().is_some_and(|agent| self.route.stays_at(&Ranges::new([agent])))
    }
}

/// A transfer in a checkpoint.
#[derive(Clone, Serialize, Deserialize)]
pub(super) struct SavedTransfer {
    pub request: RequestId,
    pub to: Vec<AgentId>,
    /// None in the message of a rank that does not save it.
    pub body: Option<SavedBody>,
}

/// The body of a transfer in a checkpoint.
#[derive(Clone, Serialize, Deserialize)]
pub(super) struct SavedBody {
    /// The number of values.
    pub values: usize,
    /// Whether the bytes are packed integers.
    pub is_packed: bool,
    pub bytes: SavedState,
}

impl SavedBody {
    /// The values as bytes, packed if that is shorter and [`load`](Self::load) accepts it, and whether they are.
    pub fn to_bytes<N: Number>(body: &Body<N>) -> (Vec<u8>, bool) {
        match pack_saved(body) {
            Some(packed) => (packed, true),
            None => (body.bytes().to_vec(), false),
        }
    }

    /// The values.
    ///
    /// # Errors
    /// If they cannot be read.
    pub fn load<N: Number>(self, store: Option<&dyn StateStore>) -> Result<Body<N>> {
        let bytes = self.bytes.load(store)?;
        let body: Body<N> = match self.is_packed {
            true => unpack_saved::<N>(&bytes, self.values).map_err(|cause| format!("a saved sum: {cause}"))?.into(),
            false => Body::from_bytes(&bytes)?,
        };
        match body.len() == self.values {
            true => Ok(body),
            false => Err(format!("a saved sum has {} values instead of {}", body.len(), self.values).into()),
        }
    }
}

/// Messages and bytes between ranks, by purpose.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Traffic(pub std::collections::BTreeMap<String, Flow>);

/// Bytes of the bodies that agents receive with their tasks and send with their reports, as if the server and each agent were on ranks of
/// their own. Monitoring is not counted, nor is what an agent sends only to itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentBytes {
    /// Bytes of received bodies.
    pub received: u64,
    /// Bytes of sent bodies.
    pub sent: u64,
}

impl AgentBytes {
    pub(super) fn add(&mut self, other: Self) {
        self.received += other.received;
        self.sent += other.sent;
    }

    /// Bytes in both directions.
    pub fn total(self) -> u64 {
        self.received + self.sent
    }
}

/// Seconds of computing of one agent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct AgentTime {
    /// Tasks.
    pub tasks: f64,
    /// Work after reports.
    pub after_report: f64,
    /// Monitoring tasks, such as evaluation.
    pub monitoring: f64,
}

impl AgentTime {
    pub(super) fn total(self) -> f64 {
        self.tasks + self.after_report + self.monitoring
    }

    pub(super) fn add(&mut self, other: Self) {
        self.tasks += other.tasks;
        self.after_report += other.after_report;
        self.monitoring += other.monitoring;
    }
}

/// Seconds of computing of the server and of each agent.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TimeSpent {
    /// The server.
    pub server: f64,
    /// The server, on responses to monitoring requests.
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
        flow.count(bytes);
    }

    pub(super) fn add(&mut self, other: &Self) {
        for (purpose, flow) in &other.0 {
            self.0.entry(purpose.clone()).or_default().add(*flow);
        }
    }
}

impl Head {
    /// Bytes of the draws in it.
    pub fn draws(&self) -> u64 {
        match self {
            Self::Reports { reports, .. } => reports.iter().map(Report::draws).sum(),
            Self::Quiesced { records, .. } => bytes_of_draws(records),
            _ => 0,
        }
    }

    /// Bytes of the saved states in it.
    pub fn states(&self) -> u64 {
        match self {
            Self::Start { saved } => saved.iter().map(|state| state.1.bytes_here()).sum(),
            Self::Quiesced { agents, transfers, .. } => {
                let bodies = transfers.iter().filter_map(|transfer| transfer.body.as_ref()).map(|body| body.bytes.bytes_here());
                agents.iter().map(|state| state.1.bytes_here()).chain(bodies).sum()
            }
            _ => 0,
        }
    }

    /// The request that it serves.
    pub fn request(&self) -> Option<RequestId> {
        match self {
            Self::Request(posted) => Some(posted.id),
            Self::Reports { request, .. } | Self::PartOfSum { request, .. } | Self::Total { request, .. } => Some(*request),
            _ => None,
        }
    }

    pub fn purpose(&self) -> &'static str {
        match self {
            Self::Request(_) => "tasks",
            Self::Reports { .. } => "reports",
            Self::PartOfSum { .. } => "parts of sums",
            Self::Total { to, .. } => {
                if to.is_empty() {
                    "sums"
                } else {
                    "transfers"
                }
            }
            Self::Start { .. } | Self::Quiesce { .. } | Self::Quiesced { .. } | Self::Stop | Self::Fail(_) => "control",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn saved_bodies_survive_and_damaged_ones_do_not_exhaust_memory() {
        use super::super::packing::is_plausible;
        let sparse = |values: usize, filled: usize| {
            let mut body = vec![0_i32; values];
            (0..filled).for_each(|at| body[at * (values / filled)] = 7);
            Body::from(body)
        };
        for (values, filled, is_packed) in [(1000, 1, true), (1000, 900, false), (3 << 20, 3000, true), (3 << 20, 5, true)] {
            let body = sparse(values, filled);
            let (bytes, packed) = SavedBody::to_bytes(&body);
            assert_eq!(packed, is_packed, "{filled} of {values}");
            let saved = |values| SavedBody { values, is_packed, bytes: SavedState::Here(bytes.clone()) };
            assert_eq!(saved(values).load::<i32>(None).ok().as_deref(), Some(&*body));
            assert!(saved(1 << 33).load::<i32>(None).is_err() && saved(usize::MAX).load::<i32>(None).is_err());
        }
        // A few bytes need at most 1 GiB; more bytes may need more.
        assert!(is_plausible(100_000_000, 10) && is_plausible(1 << 28, 0) && is_plausible(1 << 30, 1 << 18));
        assert!(!is_plausible((1 << 28) + 1, 10) && !is_plausible(1 << 30, (1 << 18) - 1));
    }
}
