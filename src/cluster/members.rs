//! The members of a request: its agents, and for each the place of the request among all requests to it.

use super::layout::AgentId;
use super::ranges::Ranges;
use super::request::RequestId;
use serde::{Deserialize, Serialize};

/// A member of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Member {
    pub agent: AgentId,
    /// The sequence number of this request among all requests to the agent: packets may overtake each other in a tree.
    pub sequence: u64,
    /// The transfer that becomes the body of the agent's task.
    pub transfer: Option<Promise>,
}

/// A transfer that was promised to an agent for a later task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Promise {
    /// The request whose sum it is.
    pub request: RequestId,
    /// Whether the agent alone makes it for itself, so that nothing travels.
    pub stays: bool,
}

/// The members of a request, ascending. Consecutive agents that have had equally many requests and wait for the same transfer are kept
/// together, so that a request to thousands of agents takes a few bytes.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Members(Vec<Alike>);

/// Consecutive members that differ in their numbers only: the first, and how many there are.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Alike {
    first: Member,
    count: u32,
}

impl Alike {
    fn end(&self) -> AgentId {
        self.first.agent + self.count
    }
}

impl Members {
    /// These members, which must be ascending.
    pub fn new(members: impl IntoIterator<Item = Member>) -> Self {
        let mut all: Vec<Alike> = Vec::new();
        for member in members {
            match all.last_mut() {
                Some(last) if last.end() == member.agent && (Member { agent: last.first.agent, ..member }) == last.first => {
                    last.count += 1;
                }
                _ => all.push(Alike { first: member, count: 1 }),
            }
        }
        Self(all)
    }

    /// What the request means to an agent, if it is a member.
    pub fn get(&self, agent: AgentId) -> Option<Member> {
        let place = self.0.partition_point(|alike| alike.end() <= agent);
        let alike = self.0.get(place).filter(|alike| alike.first.agent <= agent)?;
        Some(Member { agent, ..alike.first })
    }

    /// Those of these ascending agents that are members.
    pub fn among(&self, agents: &[AgentId]) -> Vec<Member> {
        if self.0.len() >= agents.len() {
            return agents.iter().filter_map(|&agent| self.get(agent)).collect();
        }
        let at = |limit| agents.partition_point(|&agent| agent < limit);
        let of = |&Alike { first, count }: &Alike| {
            let agents = &agents[at(first.agent)..at(first.agent + count)];
            agents.iter().map(move |&agent| Member { agent, ..first })
        };
        self.0.iter().flat_map(of).collect()
    }

    /// Their numbers.
    pub fn agents(&self) -> Ranges {
        Ranges::union(self.0.iter().map(|alike| (alike.first.agent, alike.end())))
    }

    /// The only one, if there are no others.
    pub fn only(&self) -> Option<AgentId> {
        match self.0.as_slice() {
            [Alike { first, count: 1 }] => Some(first.agent),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_member_is_found_and_no_other() {
        let promise = |request| Some(Promise { request, stays: false });
        let member = |agent, sequence, transfer| Member { agent, sequence, transfer };
        let all = [
            member(1, 4, None),
            member(2, 4, None),
            member(3, 5, None),
            member(4, 5, promise(7)),
            member(5, 5, promise(8)),
            member(8, 5, promise(8)),
            member(9, 5, promise(8)),
        ];
        let members = Members::new(all);
        assert_eq!(members.0.len(), 5);
        for agent in 0..12 {
            assert_eq!(members.get(agent), all.iter().copied().find(|member| member.agent == agent));
        }
        for some in [vec![], vec![2], vec![0, 3, 8, 9, 11], (0..12).collect()] {
            let expected: Vec<Member> = some.iter().filter_map(|&agent| members.get(agent)).collect();
            assert_eq!(members.among(&some), expected);
        }
        assert_eq!(members.agents(), Ranges::new([1, 2, 3, 4, 5, 8, 9]));
        assert_eq!((members.only(), Members::new([all[3]]).only()), (None, Some(4)));
    }
}
