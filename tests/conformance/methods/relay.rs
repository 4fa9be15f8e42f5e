//! A test method like DSVGD: agents are visited in turn, keep a state, and work after their reports.

use super::{rough, stir};
use mpibayes::cluster::{
    Agent, AgentId, Body, Context, Method, Outbox, Placement, Progress, Raw, Response, Result, SerializesAs, Server,
};
use mpibayes::random::{Purpose, Who};
use rand::RngExt;
use serde::{Deserialize, Serialize};

const AGENTS: u32 = 4;
const ROUNDS: u64 = 24;
/// 40 kB: the body travels in a message of its own.
const LEN: usize = 5000;

pub struct Relay;

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ServerState {
    round: u64,
    theta: Raw<f64>,
}

pub struct RelayServer {
    state: ServerState,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct AgentState {
    local: Raw<f64>,
    visits: u64,
}

pub struct RelayAgent {
    id: AgentId,
    state: AgentState,
    /// The input of the distillation after the report.
    fresh: Option<Body<f64>>,
}

impl Method for Relay {
    const NAME: &'static str = "relay";
    type Number = f64;
    type Task = u64;
    type Report = u64;
    type Server = RelayServer;
    type Agent = RelayAgent;

    fn agents(&self) -> u32 {
        AGENTS
    }

    fn placement(&self) -> Placement {
        Placement::Cyclic
    }

    fn server(&self, saved: Option<ServerState>) -> Result<RelayServer> {
        Ok(RelayServer { state: saved.unwrap_or(ServerState { round: 0, theta: Raw(vec![0.5; LEN]) }) })
    }

    fn agent(&self, id: AgentId, saved: Option<AgentState>) -> Result<RelayAgent> {
        let state = saved.unwrap_or(AgentState { local: Raw(vec![0.0; LEN]), visits: 0 });
        Ok(RelayAgent { id, state, fresh: None })
    }
}

impl RelayServer {
    fn post(&self, out: &mut Outbox<Relay>, cx: &Context) {
        let agent = cx.stream(Who::Server, self.state.round, Purpose::Schedule).random_range(0..AGENTS);
        out.request([agent], self.state.round).with(self.state.theta.0.clone());
    }
}

impl Server<Relay> for RelayServer {
    type State = ServerState;

    fn state(&self) -> impl SerializesAs<ServerState> {
        &self.state
    }

    fn start(&mut self, out: &mut Outbox<Relay>, cx: &mut Context) -> Result<()> {
        self.post(out, cx);
        Ok(())
    }

    fn receive(&mut self, response: Response<Relay>, out: &mut Outbox<Relay>, cx: &mut Context) -> Result<()> {
        let only = response.only()?;
        if only.report != self.state.round {
            return Err(format!("the response to round {} came in round {}", only.report, self.state.round).into());
        }
        self.state.theta = Raw(only.body.into_vec());
        self.state.round += 1;
        if self.state.round < ROUNDS {
            self.post(out, cx);
        }
        Ok(())
    }

    fn after_requests(&mut self, cx: &mut Context) -> Result<()> {
        cx.record("posterior", 0, self.state.round, 20, &self.state.theta.0[..20]);
        // The server's work after requests changes its state as well.
        self.state.theta.0[0] += 1e-9;
        Ok(())
    }

    fn progress(&self) -> Progress {
        Progress { done: self.state.round, total: ROUNDS }
    }
}

impl Agent<Relay> for RelayAgent {
    type State = AgentState;

    fn state(&self) -> impl SerializesAs<AgentState> {
        &self.state
    }

    fn perform(&mut self, &round: &u64, body: Body<f64>, cx: &mut Context) -> Result<(u64, Body<f64>)> {
        if self.fresh.is_some() {
            return Err("the work after the last visit is missing".into());
        }
        let mut theta = body.into_vec();
        stir(&mut theta, &rough(cx, Who::Agent(self.id), round, LEN));
        stir(&mut theta, &self.state.local.0);
        self.state.visits += 1;
        let theta = Body::from(theta);
        self.fresh = Some(theta.clone());
        Ok((round, theta))
    }

    fn after_report(&mut self, cx: &mut Context) -> Result<()> {
        let fresh = self.fresh.take().ok_or("there is no work after this report")?;
        stir(&mut self.state.local.0, &fresh);
        cx.record("factors", self.id, self.state.visits, 10, &self.state.local.0[..10]);
        Ok(())
    }
}
