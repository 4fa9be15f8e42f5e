//! A test method for waiting times: one chain for each agent, which all move to the next agent after a planned number of steps.

use mpibayes::cluster::{Agent, AgentId, Body, Context, Method, Outbox, Progress, Response, Result, SerializesAs, Server};
use serde::{Deserialize, Serialize};

/// Chains go around all agents for `rounds` rounds, `ahead` of which are posted at a time.
pub struct Visits {
    pub agents: u32,
    pub rounds: u64,
    pub ahead: u64,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct State {
    posted: u64,
    answered: u64,
}

pub struct VisitsServer {
    agents: u32,
    rounds: u64,
    ahead: u64,
    state: State,
}

pub struct VisitsAgent;

impl Method for Visits {
    const NAME: &'static str = "visits";
    type Number = f64;
    type Task = u64;
    type Report = ();
    type Server = VisitsServer;
    type Agent = VisitsAgent;

    fn agents(&self) -> u32 {
        self.agents
    }

    fn server(&self, saved: Option<State>) -> Result<VisitsServer> {
        let state = saved.unwrap_or(State { posted: 0, answered: 0 });
        Ok(VisitsServer { agents: self.agents, rounds: self.rounds, ahead: self.ahead, state })
    }

    fn agent(&self, _id: AgentId, _saved: Option<()>) -> Result<VisitsAgent> {
        Ok(VisitsAgent)
    }
}

impl VisitsServer {
    fn post_round(&mut self, out: &mut Outbox<Visits>) {
        if self.state.posted == self.rounds {
            return;
        }
        for agent in 0..self.agents {
            let request = out.request([agent], self.state.posted).sum_to([(agent + 1) % self.agents]);
            if self.state.posted > 0 {
                request.with_transfer();
            }
        }
        self.state.posted += 1;
    }
}

impl Server<Visits> for VisitsServer {
    type State = State;

    fn state(&self) -> impl SerializesAs<State> {
        &self.state
    }

    fn start(&mut self, out: &mut Outbox<Visits>, _cx: &mut Context) -> Result<()> {
        for _ in 0..self.ahead {
            self.post_round(out);
        }
        Ok(())
    }

    fn receive(&mut self, _answer: Response<Visits>, out: &mut Outbox<Visits>, _cx: &mut Context) -> Result<()> {
        self.state.answered += 1;
        if self.state.answered.is_multiple_of(u64::from(self.agents)) {
            self.post_round(out);
        }
        Ok(())
    }

    fn progress(&self) -> Progress {
        Progress { done: self.state.answered, total: self.rounds * u64::from(self.agents) }
    }
}

impl Agent<Visits> for VisitsAgent {
    type State = ();

    fn state(&self) -> impl SerializesAs<()> {
        &()
    }

    fn perform(&mut self, &round: &u64, body: Body<f64>, cx: &mut Context) -> Result<((), Body<f64>)> {
        let now = cx.seconds();
        cx.log_row("visits", round, [("start", now)]);
        Ok(((), if round == 0 { vec![0.0].into() } else { body }))
    }
}
