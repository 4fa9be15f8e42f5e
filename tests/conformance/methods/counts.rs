//! A test method like AD-LDA: integer sums go directly to all agents, without passing through the server.

use mpibayes::cluster::{Agent, AgentId, Body, Context, Method, Outbox, Progress, Raw, Response, Result, SerializesAs, Server};
use mpibayes::random::{Purpose, Who};
use rand::RngExt;
use serde::{Deserialize, Serialize};

const AGENTS: u32 = 6;
const ROUNDS: u64 = 12;

/// Counts of `LEN` kinds (sliced from 8192 on).
pub struct Counts<const LEN: usize>;

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ServerState {
    round: u64,
}

pub struct CountsServer {
    state: ServerState,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct AgentState {
    counts: Raw<i32>,
    all: Raw<i32>,
}

pub struct CountsAgent {
    id: AgentId,
    state: AgentState,
}

impl<const LEN: usize> Method for Counts<LEN> {
    const NAME: &'static str = "counts";
    type Number = i32;
    type Task = u64;
    type Report = i64;
    type Server = CountsServer;
    type Agent = CountsAgent;

    fn agents(&self) -> u32 {
        AGENTS
    }

    fn server(&self, saved: Option<ServerState>) -> Result<CountsServer> {
        Ok(CountsServer { state: saved.unwrap_or(ServerState { round: 0 }) })
    }

    fn agent(&self, id: AgentId, saved: Option<AgentState>) -> Result<CountsAgent> {
        let fresh = AgentState { counts: Raw(vec![10; LEN]), all: Raw(vec![10 * AGENTS as i32; LEN]) };
        Ok(CountsAgent { id, state: saved.unwrap_or(fresh) })
    }
}

impl<const LEN: usize> Server<Counts<LEN>> for CountsServer {
    type State = ServerState;

    fn state(&self) -> impl SerializesAs<ServerState> {
        &self.state
    }

    fn start(&mut self, out: &mut Outbox<Counts<LEN>>, _cx: &mut Context) -> Result<()> {
        out.request(0..AGENTS, 0).sum_to(0..AGENTS);
        Ok(())
    }

    fn receive(&mut self, response: Response<Counts<LEN>>, out: &mut Outbox<Counts<LEN>>, cx: &mut Context) -> Result<()> {
        if !response.sum.is_empty() {
            return Err("the counts passed through the server".into());
        }
        let tokens: i64 = response.reports.iter().map(|reported| reported.report).sum();
        if tokens != i64::from(AGENTS) * 10 * LEN as i64 {
            return Err(format!("the agents have {tokens} tokens in total").into());
        }
        self.state.round += 1;
        cx.log_row("history", self.state.round, [("tokens", tokens as f64)]);
        if self.state.round < ROUNDS {
            out.request(0..AGENTS, self.state.round).with_transfer().sum_to(0..AGENTS);
        }
        Ok(())
    }

    fn progress(&self) -> Progress {
        Progress { done: self.state.round, total: ROUNDS }
    }
}

impl<const LEN: usize> Agent<Counts<LEN>> for CountsAgent {
    type State = AgentState;

    fn state(&self) -> impl SerializesAs<AgentState> {
        &self.state
    }

    fn perform(&mut self, &round: &u64, body: Body<i32>, cx: &mut Context) -> Result<(i64, Body<i32>)> {
        if round > 0 {
            self.state.all = Raw(body.into_vec());
        }
        // Tokens move between kinds depending on the counts of all agents: a stale total changes where they go.
        let mut random = cx.stream(Who::Agent(self.id), round, Purpose::Noise);
        for kind in 0..LEN {
            let to =
                (kind as u64 + u64::from(self.state.all.0[kind].unsigned_abs()) + random.random_range(0..3_u64)) % LEN as u64;
            if self.state.counts.0[kind] > 0 {
                self.state.counts.0[kind] -= 1;
                self.state.counts.0[to as usize] += 1;
            }
        }
        let tokens = self.state.counts.0.iter().map(|&count| i64::from(count)).sum();
        cx.record("counts", self.id, round, 10, &self.state.counts.0[..10]);
        Ok((tokens, self.state.counts.0.clone().into()))
    }
}
