//! A test method like parallel DSVGD: a random subset of agents returns bodies to a server that keeps each agent's factor.

use super::{permutation, rough, stir};
use mpibayes::cluster::{Agent, AgentId, Body, Context, Method, Outbox, Progress, Raw, Response, Result, SerializesAs, Server};
use mpibayes::random::{Purpose, Who};
use rand::RngExt;
use serde::{Deserialize, Serialize};

const AGENTS: u32 = 6;
const ROUNDS: u64 = 15;
const LEN: usize = 300;

pub struct Subset;

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct State {
    round: u64,
    theta: Raw<f32>,
    factors: Vec<Raw<f32>>,
}

pub struct SubsetServer {
    state: State,
}

/// Has no state: all that an agent of this method needs comes with the task.
pub struct SubsetAgent {
    id: AgentId,
}

impl Method for Subset {
    const NAME: &'static str = "subset";
    type Number = f32;
    type Task = u64;
    type Report = ();
    type Server = SubsetServer;
    type Agent = SubsetAgent;

    fn agents(&self) -> u32 {
        AGENTS
    }

    fn server(&self, saved: Option<State>) -> Result<SubsetServer> {
        let factors = vec![Raw(vec![0.0; LEN]); AGENTS as usize];
        Ok(SubsetServer { state: saved.unwrap_or(State { round: 0, theta: Raw(vec![0.1; LEN]), factors }) })
    }

    fn agent(&self, id: AgentId, _saved: Option<()>) -> Result<SubsetAgent> {
        Ok(SubsetAgent { id })
    }
}

impl SubsetServer {
    fn post(&self, out: &mut Outbox<Subset>, cx: &Context) {
        let size = cx.stream(Who::Server, self.state.round, Purpose::Schedule).random_range(1..=AGENTS);
        let members = permutation(cx, self.state.round, AGENTS).into_iter().take(size as usize);
        out.request(members, self.state.round).with(self.state.theta.0.clone());
    }
}

impl Server<Subset> for SubsetServer {
    type State = State;

    fn state(&self) -> impl SerializesAs<State> {
        &self.state
    }

    fn start(&mut self, out: &mut Outbox<Subset>, cx: &mut Context) -> Result<()> {
        self.post(out, cx);
        Ok(())
    }

    fn receive(&mut self, response: Response<Subset>, out: &mut Outbox<Subset>, cx: &mut Context) -> Result<()> {
        for reported in response.reports {
            // Reveals the order of reports: each replaces its factor and changes the shared state.
            let factor = &mut self.state.factors[reported.from as usize].0;
            stir(&mut self.state.theta.0, &reported.body);
            stir(&mut self.state.theta.0, factor);
            *factor = reported.body.into_vec();
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

impl Agent<Subset> for SubsetAgent {
    type State = ();

    fn state(&self) -> impl SerializesAs<()> {
        &()
    }

    fn perform(&mut self, &round: &u64, body: Body<f32>, cx: &mut Context) -> Result<((), Body<f32>)> {
        let mut theta = body.into_vec();
        stir(&mut theta, &rough(cx, Who::Agent(self.id), round, LEN));
        Ok(((), theta.into()))
    }
}
