//! A test method like federated averaging: a random subset of agents, whose weighted bodies are summed for the server.

use super::{permutation, rough};
use mpibayes::cluster::{
    Agent, AgentId, Body, Context, Method, Outbox, Placement, Progress, Raw, Response, Result, SerializesAs, Server,
};
use mpibayes::random::Who;
use serde::{Deserialize, Serialize};

const AGENTS: u32 = 7;
const SELECTED: usize = 5;
const ROUNDS: u64 = 12;
/// 48 kB: the sum is cut into slices, and 6001 numbers cut evenly for no number of ranks but one.
const LEN: usize = 6000;

pub struct Average;

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct State {
    round: u64,
    theta: Raw<f64>,
}

pub struct AverageServer {
    state: State,
}

pub struct AverageAgent {
    id: AgentId,
}

impl Method for Average {
    const NAME: &'static str = "average";
    type Number = f64;
    type Task = u64;
    type Report = u32;
    type Server = AverageServer;
    type Agent = AverageAgent;

    fn agents(&self) -> u32 {
        AGENTS
    }

    fn placement(&self) -> Placement {
        Placement::Cyclic
    }

    fn server(&self, saved: Option<State>) -> Result<AverageServer> {
        Ok(AverageServer { state: saved.unwrap_or(State { round: 0, theta: Raw(vec![1.0; LEN]) }) })
    }

    fn agent(&self, id: AgentId, _saved: Option<()>) -> Result<AverageAgent> {
        Ok(AverageAgent { id })
    }
}

impl AverageServer {
    fn post(&self, out: &mut Outbox<Average>, cx: &Context) {
        let members = permutation(cx, self.state.round, AGENTS).into_iter().take(SELECTED);
        out.request(members, self.state.round).with(self.state.theta.0.clone()).sum();
    }
}

impl Server<Average> for AverageServer {
    type State = State;

    fn state(&self) -> impl SerializesAs<State> {
        &self.state
    }

    fn start(&mut self, out: &mut Outbox<Average>, cx: &mut Context) -> Result<()> {
        self.post(out, cx);
        Ok(())
    }

    fn receive(&mut self, response: Response<Average>, out: &mut Outbox<Average>, cx: &mut Context) -> Result<()> {
        let from: Vec<AgentId> = response.reports.iter().map(|reported| reported.report).collect();
        if from.len() != SELECTED || !from.is_sorted() {
            return Err(format!("the reports came from {from:?}").into());
        }
        let mut sum = response.sum.into_vec();
        let weight = sum.pop().ok_or("the sum is empty")?;
        for (value, term) in self.state.theta.0.iter_mut().zip(sum) {
            *value = (term / weight).cos();
        }
        self.state.round += 1;
        cx.record("posterior", 0, self.state.round, 10, &self.state.theta.0[..10]);
        if self.state.round < ROUNDS {
            self.post(out, cx);
        }
        Ok(())
    }

    fn progress(&self) -> Progress {
        Progress { done: self.state.round, total: ROUNDS }
    }
}

impl Agent<Average> for AverageAgent {
    type State = ();

    fn state(&self) -> impl SerializesAs<()> {
        &()
    }

    fn perform(&mut self, &round: &u64, body: Body<f64>, cx: &mut Context) -> Result<(u32, Body<f64>)> {
        let weight = f64::from(self.id + 1);
        let mut theta = body.into_vec();
        for (value, noise) in theta.iter_mut().zip(rough::<f64>(cx, Who::Agent(self.id), round, LEN)) {
            *value = weight * (*value + noise);
        }
        theta.push(weight);
        Ok((self.id, theta.into()))
    }
}
