//! A test method like D-SGLD: several chains move from agent to agent, with one request for each chain and two rounds in flight.

use super::{permutation, rough, stir};
use mpibayes::cluster::{Agent, AgentId, Body, Context, Method, Outbox, Progress, Response, Result, SerializesAs, Server};
use mpibayes::random::Who;
use serde::{Deserialize, Serialize};

const AGENTS: u32 = 5;
const CHAINS: u32 = 3;
const ROUNDS: u64 = 12;
const AHEAD: u64 = 2;
/// 24 kB: a message of its own.
const LEN: usize = 3000;

pub struct Chains;

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Visit {
    chain: u32,
    round: u64,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ServerState {
    posted: u64,
    visits: u64,
}

pub struct ChainsServer {
    state: ServerState,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct AgentState {
    /// Changed by every visiting chain: reveals the order of visits.
    seen: f64,
}

pub struct ChainsAgent {
    id: AgentId,
    state: AgentState,
}

impl Method for Chains {
    const NAME: &'static str = "chains";
    type Number = f64;
    type Task = Visit;
    type Report = Visit;
    type Server = ChainsServer;
    type Agent = ChainsAgent;

    fn agents(&self) -> u32 {
        AGENTS
    }

    fn server(&self, saved: Option<ServerState>) -> Result<ChainsServer> {
        Ok(ChainsServer { state: saved.unwrap_or(ServerState { posted: 0, visits: 0 }) })
    }

    fn agent(&self, id: AgentId, saved: Option<AgentState>) -> Result<ChainsAgent> {
        Ok(ChainsAgent { id, state: saved.unwrap_or(AgentState { seen: 0.0 }) })
    }
}

impl ChainsServer {
    fn post_round(&mut self, out: &mut Outbox<Chains>, cx: &Context) {
        let round = self.state.posted;
        if round == ROUNDS {
            return;
        }
        let (here, next) = (permutation(cx, round, AGENTS), permutation(cx, round + 1, AGENTS));
        for chain in 0..CHAINS {
            let (holder, heir) = (here[chain as usize], next[chain as usize]);
            let request = out.request([holder], Visit { chain, round }).sum_to([heir]);
            if round > 0 {
                request.with_transfer();
            }
        }
        self.state.posted += 1;
    }
}

impl Server<Chains> for ChainsServer {
    type State = ServerState;

    fn state(&self) -> impl SerializesAs<ServerState> {
        &self.state
    }

    fn start(&mut self, out: &mut Outbox<Chains>, cx: &mut Context) -> Result<()> {
        for _ in 0..AHEAD {
            self.post_round(out, cx);
        }
        Ok(())
    }

    fn receive(&mut self, response: Response<Chains>, out: &mut Outbox<Chains>, cx: &mut Context) -> Result<()> {
        let visit = response.only()?.report;
        if (visit.round, u64::from(visit.chain)) != (self.state.visits / u64::from(CHAINS), self.state.visits % u64::from(CHAINS))
        {
            return Err(format!("{visit:?} was answered as number {}", self.state.visits).into());
        }
        self.state.visits += 1;
        if self.state.visits.is_multiple_of(u64::from(CHAINS)) {
            self.post_round(out, cx);
        }
        Ok(())
    }

    fn progress(&self) -> Progress {
        Progress { done: self.state.visits, total: ROUNDS * u64::from(CHAINS) }
    }
}

impl Agent<Chains> for ChainsAgent {
    type State = AgentState;

    fn state(&self) -> impl SerializesAs<AgentState> {
        &self.state
    }

    fn perform(&mut self, visit: &Visit, body: Body<f64>, cx: &mut Context) -> Result<(Visit, Body<f64>)> {
        let mut chain = body.into_vec();
        if visit.round == 0 {
            chain = vec![0.2; LEN];
            chain[0] = f64::from(visit.chain);
        }
        // The first value is the number of the chain: reveals a transfer that went to the wrong request.
        if chain[0] != f64::from(visit.chain) {
            return Err(format!("chain {} arrived at the visit of chain {}", chain[0], visit.chain).into());
        }
        let noise = rough::<f64>(cx, Who::Chain(visit.chain), visit.round, LEN - 1);
        stir(&mut chain[1..], &noise);
        chain[1] += self.state.seen;
        self.state.seen = (self.state.seen + chain[2]).sin();
        cx.record("posterior", visit.chain, visit.round, 10, &chain[..10]);
        cx.log_row("visits", visit.round, [("chain", f64::from(visit.chain)), ("agent", f64::from(self.id))]);
        Ok((visit.clone(), chain.into()))
    }
}
