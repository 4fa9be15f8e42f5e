//! A test method like synchronous elastic coupling: all agents receive the center and return the sum of their positions.

use super::{rough, stir};
use mpibayes::cluster::{Agent, AgentId, Body, Context, Method, Outbox, Progress, Raw, Response, Result, SerializesAs, Server};
use mpibayes::methods::Posterior;
use mpibayes::random::Who;
use serde::{Deserialize, Serialize};

const AGENTS: u32 = 6;
const PERIODS: u64 = 16;
const LEN: usize = 700;

pub struct Elastic;

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ServerState {
    period: u64,
    center: Raw<f32>,
}

pub struct ElasticServer {
    state: ServerState,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct AgentState {
    position: Raw<f32>,
    momentum: Raw<f32>,
}

pub struct ElasticAgent {
    id: AgentId,
    state: AgentState,
    period: u64,
}

impl Method for Elastic {
    const NAME: &'static str = "elastic";
    type Number = f32;
    type Task = u64;
    type Report = f32;
    type Server = ElasticServer;
    type Agent = ElasticAgent;

    fn agents(&self) -> u32 {
        AGENTS
    }

    fn server(&self, saved: Option<ServerState>) -> Result<ElasticServer> {
        Ok(ElasticServer { state: saved.unwrap_or(ServerState { period: 0, center: Raw(vec![0.0; LEN]) }) })
    }

    fn agent(&self, id: AgentId, saved: Option<AgentState>) -> Result<ElasticAgent> {
        let fresh = AgentState { position: Raw(vec![0.4; LEN]), momentum: Raw(vec![0.0; LEN]) };
        Ok(ElasticAgent { id, state: saved.unwrap_or(fresh), period: 0 })
    }
}

impl ElasticServer {
    fn post(&self, out: &mut Outbox<Elastic>) {
        out.request(0..AGENTS, self.state.period).with(self.state.center.0.clone()).sum();
    }
}

impl Server<Elastic> for ElasticServer {
    type State = ServerState;

    fn state(&self) -> impl SerializesAs<ServerState> {
        &self.state
    }

    fn start(&mut self, out: &mut Outbox<Elastic>, _cx: &mut Context) -> Result<()> {
        self.post(out);
        Ok(())
    }

    fn receive(&mut self, response: Response<Elastic>, out: &mut Outbox<Elastic>, cx: &mut Context) -> Result<()> {
        let noise = rough::<f32>(cx, Who::Server, self.state.period, LEN);
        stir(&mut self.state.center.0, &response.sum);
        stir(&mut self.state.center.0, &noise);
        self.state.period += 1;
        if self.state.period < PERIODS {
            self.post(out);
        }
        Ok(())
    }

    fn after_requests(&mut self, cx: &mut Context) -> Result<()> {
        cx.record("center", 0, self.state.period, 10, &self.state.center.0[..10]);
        Ok(())
    }

    fn progress(&self) -> Progress {
        Progress { done: self.state.period, total: PERIODS }
    }
}

impl Posterior<f32> for ElasticServer {
    fn posterior(&self) -> (u64, &[f32]) {
        (self.state.period, &self.state.center.0)
    }
}

impl Agent<Elastic> for ElasticAgent {
    type State = AgentState;

    fn state(&self) -> impl SerializesAs<AgentState> {
        &self.state
    }

    fn perform(&mut self, &period: &u64, center: Body<f32>, cx: &mut Context) -> Result<(f32, Body<f32>)> {
        self.period = period;
        let AgentState { position, momentum } = &mut self.state;
        stir(&mut momentum.0, &rough(cx, Who::Agent(self.id), period, LEN));
        for ((position, momentum), center) in position.0.iter_mut().zip(&mut momentum.0).zip(&*center) {
            *momentum -= 0.1 * (*position - center);
            *position += *momentum;
        }
        let sent: Vec<f32> =
            position.0.iter().zip(rough::<f32>(cx, Who::Chain(self.id), period, LEN)).map(|(x, scale)| x * scale).collect();
        Ok((momentum.0[0], sent.into()))
    }

    fn after_report(&mut self, cx: &mut Context) -> Result<()> {
        cx.record("posterior", self.id, self.period, 10, &self.state.position.0[..10]);
        self.state.momentum.0[0] *= 0.5;
        Ok(())
    }
}
