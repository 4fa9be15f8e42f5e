//! A test method like coupled D-SGLD: groups of agents average their chains, and the average goes directly to the next agents.

use super::{permutation, rough, stir};
use mpibayes::cluster::{Agent, AgentId, Body, Context, Method, Outbox, Progress, Response, Result, SerializesAs, Server};
use mpibayes::random::Who;
use serde::{Deserialize, Serialize};

const AGENTS: u32 = 7;
const SIZES: [usize; 2] = [3, 2];
const ROUNDS: u64 = 12;
const AHEAD: u64 = 2;
/// 40 kB: sliced where a group lies on several ranks.
const LEN: usize = 5000;

pub struct Groups;

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Visit {
    group: u32,
    round: u64,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ServerState {
    posted: u64,
    answered: u64,
}

pub struct GroupsServer {
    state: ServerState,
}

/// Without a state: the chains are on the road.
pub struct GroupsAgent {
    id: AgentId,
}

impl Method for Groups {
    const NAME: &'static str = "groups";
    type Number = f64;
    type Task = Visit;
    type Report = Visit;
    type Server = GroupsServer;
    type Agent = GroupsAgent;

    fn agents(&self) -> u32 {
        AGENTS
    }

    fn server(&self, saved: Option<ServerState>) -> Result<GroupsServer> {
        Ok(GroupsServer { state: saved.unwrap_or(ServerState { posted: 0, answered: 0 }) })
    }

    fn agent(&self, id: AgentId, _saved: Option<()>) -> Result<GroupsAgent> {
        Ok(GroupsAgent { id })
    }
}

/// The agents that hold the chains of each group in a round.
fn holders(cx: &Context, round: u64) -> [Vec<AgentId>; 2] {
    let order = permutation(cx, round, AGENTS);
    [order[..SIZES[0]].to_vec(), order[SIZES[0]..SIZES[0] + SIZES[1]].to_vec()]
}

impl GroupsServer {
    fn post_round(&mut self, out: &mut Outbox<Groups>, cx: &Context) {
        let round = self.state.posted;
        if round == ROUNDS {
            return;
        }
        for ((group, here), next) in (0..).zip(holders(cx, round)).zip(holders(cx, round + 1)) {
            let request = out.request(here, Visit { group, round }).sum_to(next);
            if round > 0 {
                request.with_transfer();
            }
        }
        self.state.posted += 1;
    }
}

impl Server<Groups> for GroupsServer {
    type State = ServerState;

    fn state(&self) -> impl SerializesAs<ServerState> {
        &self.state
    }

    fn start(&mut self, out: &mut Outbox<Groups>, cx: &mut Context) -> Result<()> {
        for _ in 0..AHEAD {
            self.post_round(out, cx);
        }
        Ok(())
    }

    fn receive(&mut self, _answer: Response<Groups>, out: &mut Outbox<Groups>, cx: &mut Context) -> Result<()> {
        self.state.answered += 1;
        if self.state.answered.is_multiple_of(SIZES.len() as u64) {
            self.post_round(out, cx);
        }
        Ok(())
    }

    fn progress(&self) -> Progress {
        Progress { done: self.state.answered, total: ROUNDS * SIZES.len() as u64 }
    }
}

impl Agent<Groups> for GroupsAgent {
    type State = ();

    fn state(&self) -> impl SerializesAs<()> {
        &()
    }

    fn perform(&mut self, visit: &Visit, body: Body<f64>, cx: &mut Context) -> Result<(Visit, Body<f64>)> {
        let mut chain = if visit.round == 0 { vec![f64::from(visit.group); LEN] } else { body.into_vec() };
        // The receiver divides by the number of members.
        for value in &mut chain {
            *value /= SIZES[visit.group as usize] as f64;
        }
        stir(&mut chain, &rough(cx, Who::Agent(self.id), visit.round, LEN));
        // Terms of very different size, so that their order shows in the sum.
        for (value, scale) in chain.iter_mut().zip(rough::<f64>(cx, Who::Chain(self.id), visit.round, LEN)) {
            *value *= scale;
        }
        cx.record("posterior", self.id, visit.round, 10, &chain[..10]);
        Ok((visit.clone(), chain.into()))
    }
}
