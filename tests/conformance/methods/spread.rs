//! A test method like distributed SVGD: sums of all agents' bodies go directly to all agents, with several rounds in flight.

use super::{rough, stir};
use mpibayes::cluster::{Agent, AgentId, Body, Context, Method, Outbox, Progress, Raw, Response, Result, SerializesAs, Server};
use mpibayes::random::Who;
use serde::{Deserialize, Serialize};

const AGENTS: u32 = 5;
const ROUNDS: u64 = 14;

/// With bodies of `LEN` numbers (sliced from 4096 on) and `AHEAD` rounds under way at a time.
pub struct Spread<const LEN: usize, const AHEAD: u64>;

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ServerState {
    posted: u64,
    answered: u64,
    norm: f64,
}

pub struct SpreadServer<const LEN: usize, const AHEAD: u64> {
    state: ServerState,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct AgentState {
    all: Raw<f64>,
}

pub struct SpreadAgent {
    id: AgentId,
    state: AgentState,
}

impl<const LEN: usize, const AHEAD: u64> Method for Spread<LEN, AHEAD> {
    const NAME: &'static str = "spread";
    type Number = f64;
    type Task = u64;
    type Report = f64;
    type Server = SpreadServer<LEN, AHEAD>;
    type Agent = SpreadAgent;

    fn agents(&self) -> u32 {
        AGENTS
    }

    fn server(&self, saved: Option<ServerState>) -> Result<Self::Server> {
        Ok(SpreadServer { state: saved.unwrap_or(ServerState { posted: 0, answered: 0, norm: 0.0 }) })
    }

    fn agent(&self, id: AgentId, saved: Option<AgentState>) -> Result<SpreadAgent> {
        Ok(SpreadAgent { id, state: saved.unwrap_or(AgentState { all: Raw(vec![0.3; LEN]) }) })
    }
}

impl<const LEN: usize, const AHEAD: u64> SpreadServer<LEN, AHEAD> {
    fn post(&mut self, out: &mut Outbox<Spread<LEN, AHEAD>>) {
        if self.state.posted == ROUNDS {
            return;
        }
        let request = out.request(0..AGENTS, self.state.posted).sum_to(0..AGENTS);
        if self.state.posted > 0 {
            request.with_transfer();
        }
        self.state.posted += 1;
    }
}

impl<const LEN: usize, const AHEAD: u64> Server<Spread<LEN, AHEAD>> for SpreadServer<LEN, AHEAD> {
    type State = ServerState;

    fn state(&self) -> impl SerializesAs<ServerState> {
        &self.state
    }

    fn start(&mut self, out: &mut Outbox<Spread<LEN, AHEAD>>, _cx: &mut Context) -> Result<()> {
        for _ in 0..AHEAD {
            self.post(out);
        }
        Ok(())
    }

    fn receive(
        &mut self,
        response: Response<Spread<LEN, AHEAD>>,
        out: &mut Outbox<Spread<LEN, AHEAD>>,
        cx: &mut Context,
    ) -> Result<()> {
        for reported in response.reports {
            self.state.norm = (self.state.norm + reported.report).sin();
        }
        self.state.answered += 1;
        cx.record("posterior", 0, self.state.answered, 1, &[self.state.norm]);
        self.post(out);
        Ok(())
    }

    fn progress(&self) -> Progress {
        Progress { done: self.state.answered, total: ROUNDS }
    }
}

impl<const LEN: usize, const AHEAD: u64> Agent<Spread<LEN, AHEAD>> for SpreadAgent {
    type State = AgentState;

    fn state(&self) -> impl SerializesAs<AgentState> {
        &self.state
    }

    fn perform(&mut self, &round: &u64, body: Body<f64>, cx: &mut Context) -> Result<(f64, Body<f64>)> {
        if body.len() != if round == 0 { 0 } else { LEN } {
            return Err(format!("round {round} was handed {} numbers", body.len()).into());
        }
        stir(&mut self.state.all.0, &body);
        let mut share = rough(cx, Who::Agent(self.id), round, LEN);
        let own = LEN / AGENTS as usize * self.id as usize;
        for (value, &mine) in share[own..].iter_mut().zip(&self.state.all.0[own..]) {
            *value += mine;
        }
        Ok((share[0] * 1e-3, share.into()))
    }
}
