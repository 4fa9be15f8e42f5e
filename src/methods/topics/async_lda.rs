//! Asynchronous LDA: collapsed Gibbs sweeps by agents that wait for nobody, with the counts at the server.
//!
//! After a sweep agent s tells what it has changed of the counts that it knew, n^s − ñ^s; the server adds it, n ← n + (n^s − ñ^s), and
//! gives n back, with which the agent goes on: n^s ← ñ^s ← n (Smola & Narayanamurthy 2010, as Ahn, Shahbaba & Welling 2014 have it). As
//! adding and giving back are one step, an agent's own tokens are always counted in what it knows. Where priors are optimized, each agent
//! tells before some of its sweeps how often each number is among the counts; once all have told, the server finds better priors with what
//! each has told last, and gives them with n.

use super::problem::TopicProblem;
use super::shard::{PriorEvidence, Shard, Told, conserved, countable, keep_draw, log_history, parted};
use super::sweeps::SweepSettings;
use crate::cluster::{
    Agent, AgentId, Body, Context, Method, Order, Outbox, Progress, Raw, Response, Result, SerializesAs, Server,
};
use crate::methods::common::settings::{Corpus, MethodSettings, ResourceEstimate, TopicMethod};

use crate::methods::common::with_evaluation::Posterior;
use crate::number::Real;
use crate::settings::{Key, keys};
use serde::{Deserialize, Serialize};

/// The settings of `async_lda`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct AsyncLdaSettings(pub SweepSettings);

impl MethodSettings for AsyncLdaSettings {
    type Data = Corpus;

    const NAME: &'static str = "async_lda";

    fn keys() -> Vec<Key> {
        keys::<SweepSettings>()
    }

    fn check(&self) -> Result<(), String> {
        self.0.check()
    }

    fn estimate(&self, agents: u32, parameters: usize) -> ResourceEstimate {
        self.0.needs(agents, parameters)
    }

    fn method<F: Real>(&self, problem: TopicProblem) -> TopicMethod {
        TopicMethod::new(AsyncLda { problem, settings: self.0 }, self.0.shown())
    }
}

/// Async-LDA.
#[derive(Clone)]
pub struct AsyncLda {
    /// What is inferred.
    pub problem: TopicProblem,
    /// How often and in which order it is swept, and what is kept.
    pub settings: SweepSettings,
}

/// What an agent is asked to do.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub enum Task {
    /// Draw topics for its tokens.
    Draw,
    /// Sweep for the time with this number, from 0.
    Sweep(u64),
}

impl Method for AsyncLda {
    const NAME: &'static str = "async_lda";
    type Number = i32;
    type Task = Task;
    type Report = Told;
    type Server = AsyncLdaServer;
    type Agent = AsyncLdaAgent;

    fn order(&self) -> Order {
        Order::Arrival
    }

    fn agents(&self) -> u32 {
        self.problem.agents
    }

    fn server(&self, saved: Option<ServerState>) -> Result<AsyncLdaServer> {
        let agents = self.problem.agents as usize;
        let fresh = || ServerState {
            counts: Raw([vec![0; self.problem.size()], self.problem.priors().to_words().to_vec()].concat()),
            tokens: 0,
            drawn: 0,
            swept: vec![0; agents],
            told: vec![None; agents],
        };
        Ok(AsyncLdaServer { method: self.clone(), state: saved.unwrap_or_else(fresh) })
    }

    fn agent(&self, id: AgentId, saved: Option<AgentState>) -> Result<AsyncLdaAgent> {
        let shard = Shard::open(&self.problem, id, self.settings.sweep_by)?;
        Ok(AsyncLdaAgent { settings: self.settings, shard, state: saved.unwrap_or_default() })
    }
}

/// The server's state.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ServerState {
    /// n, and the priors behind it (W × K + 4).
    counts: Raw<i32>,
    /// Tokens of all agents, and how many of these have drawn topics.
    tokens: u64,
    drawn: u32,
    /// Sweeps of each agent.
    swept: Vec<u64>,
    /// What each agent has told last of the priors, since they last changed.
    told: Vec<Option<PriorEvidence>>,
}

/// The half that counts.
pub struct AsyncLdaServer {
    method: AsyncLda,
    state: ServerState,
}

impl AsyncLdaServer {
    /// Asks an agent for its next sweep.
    fn request(&self, agent: AgentId, out: &mut Outbox<AsyncLda>) {
        let sweep = self.state.swept[agent as usize];
        if sweep < self.method.settings.rounds {
            out.request([agent], Task::Sweep(sweep)).with(self.state.counts.0.clone());
        }
    }
}

impl Server<AsyncLda> for AsyncLdaServer {
    type State = ServerState;

    fn state(&self) -> impl SerializesAs<ServerState> {
        &self.state
    }

    fn start(&mut self, out: &mut Outbox<AsyncLda>, _: &mut Context) -> Result<()> {
        for agent in 0..self.method.problem.agents {
            out.request([agent], Task::Draw);
        }
        Ok(())
    }

    fn receive(&mut self, response: Response<AsyncLda>, out: &mut Outbox<AsyncLda>, cx: &mut Context) -> Result<()> {
        let reported = response.only()?;
        let Self { method: AsyncLda { problem, settings }, state } = self;
        let agents = problem.agents;
        if reported.body.len() != problem.size() {
            return Err(format!("{} counts came, not {}", reported.body.len(), problem.size()).into());
        }
        state.counts.0.iter_mut().zip(&*reported.body).for_each(|(count, changed)| *count += changed);
        if state.drawn < agents {
            state.drawn += 1;
            state.tokens += reported.report.tokens;
            countable(state.tokens)?;
            // Nobody sweeps before all are counted.
            if state.drawn == agents {
                (0..agents).for_each(|agent| self.request(agent, out));
            }
            return Ok(());
        }
        let (counts, mut priors) = parted(&state.counts.0, problem)?;
        conserved(counts, state.tokens)?;
        if reported.report.evidence.is_some() {
            state.told[reported.from as usize] = reported.report.evidence;
            if state.told.iter().all(Option::is_some) {
                priors = PriorEvidence::improve(state.told.iter().flatten(), problem, priors);
                state.told.fill(None);
                state.counts.0[problem.size()..].copy_from_slice(&priors.to_words());
            }
        }
        state.swept[reported.from as usize] += 1;
        let swept: u64 = state.swept.iter().sum();
        // A sweep of all agents together.
        if swept.is_multiple_of(u64::from(agents)) {
            let sweep = swept / u64::from(agents);
            keep_draw(problem, &state.counts.0, sweep, settings, cx)?;
            log_history(settings, sweep, priors, &[("seconds", cx.seconds()), ("tokens", state.tokens as f64)], cx);
        }
        self.request(reported.from, out);
        Ok(())
    }

    fn progress(&self) -> Progress {
        let agents = u64::from(self.method.problem.agents);
        Progress { done: self.state.swept.iter().sum::<u64>() / agents, total: self.method.settings.rounds }
    }
}

impl Posterior<i32> for AsyncLdaServer {
    fn posterior(&self) -> (u64, &[i32]) {
        (self.progress().done, &self.state.counts.0)
    }
}

/// An agent's state: the topics of its tokens.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct AgentState {
    topics: Raw<u32>,
}

/// The half that sweeps.
pub struct AsyncLdaAgent {
    settings: SweepSettings,
    shard: Shard,
    state: AgentState,
}

impl Agent<AsyncLda> for AsyncLdaAgent {
    type State = AgentState;

    fn state(&self) -> impl SerializesAs<AgentState> {
        &self.state
    }

    fn perform(&mut self, task: &Task, body: Body<i32>, cx: &mut Context) -> Result<(Told, Body<i32>)> {
        let (told, changed) = match *task {
            Task::Draw => {
                let (topics, counts) = self.shard.draw(cx);
                self.state.topics = Raw(topics);
                (Told { tokens: self.shard.tokens(), evidence: None }, counts)
            }
            Task::Sweep(sweep) => self.shard.sweep(&mut self.state.topics.0, &body, sweep, &self.settings, cx)?,
        };
        Ok((told, changed.into()))
    }
}
