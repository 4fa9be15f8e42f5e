//! Asynchronous LDA: collapsed Gibbs sweeps by agents that do not wait for each other, with the topic-word counts at the server.
//!
//! After a sweep agent s sends its change of the counts, n^s − ñ^s. The server adds it, n ← n + (n^s − ñ^s), and returns n, with which the
//! agent continues: n^s ← ñ^s ← n (Smola & Narayanamurthy 2010, in the form of Ahn, Shahbaba & Welling 2014). Both happen in one step, so an
//! agent's copy always counts its own tokens. If priors are optimized, agents report histograms of the counts before some of their sweeps.
//! Once all agents have reported, the server estimates the priors from their latest reports, and sends them with n.

use super::prior_updates::AgentPriorStatistics;
use super::problem::TopicProblem;
use super::shard::{Shard, SweepReport, check_conserved, check_token_count, record_draw};
use super::sweeps::SweepSettings;
use crate::cluster::{
    Agent, AgentId, Body, Context, Method, Order, Outbox, Packed, Progress, Raw, Response, Result, SerializesAs, Server,
};
use crate::methods::common::settings::{Corpus, MethodSettings, ResourceEstimate, TopicMethod};

use crate::methods::common::with_evaluation::Posterior;
use crate::number::Real;
use crate::settings::{Key, KeyError, keys};
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

    fn check(&self) -> Result<(), KeyError> {
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
    /// The problem.
    pub problem: TopicProblem,
    /// Number and order of sweeps, and draws.
    pub settings: SweepSettings,
}

/// A task of an agent.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub enum Task {
    /// Draw initial topics.
    Draw,
    /// Make the sweep with this number, from 0.
    Sweep(u64),
}

impl Method for AsyncLda {
    const NAME: &'static str = "async_lda";
    type Number = i32;
    type Task = Task;
    type Report = SweepReport;
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
            counts: Packed([vec![0; self.problem.size()], self.problem.priors().to_i32s()].concat()),
            tokens: 0,
            drawn: 0,
            swept: vec![0; agents],
            statistics: vec![None; agents],
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
    /// n, followed by the priors.
    counts: Packed,
    /// The tokens of all agents that have drawn topics.
    tokens: u64,
    /// The number of agents that have drawn topics.
    drawn: u32,
    /// The number of sweeps of each agent.
    swept: Vec<u64>,
    /// The latest statistics of each agent for the priors, since they last changed.
    statistics: Vec<Option<AgentPriorStatistics>>,
}

/// Holds the counts of all agents.
pub struct AsyncLdaServer {
    method: AsyncLda,
    state: ServerState,
}

impl AsyncLdaServer {
    /// Requests the next sweep of an agent.
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
            return Err(format!("expected {1} topic-word counts, got {0}", reported.body.len(), problem.size()).into());
        }
        state.counts.0.iter_mut().zip(&*reported.body).for_each(|(count, changed)| *count += changed);
        if state.drawn < agents {
            state.drawn += 1;
            state.tokens += reported.report.tokens;
            check_token_count(state.tokens)?;
            // Sweeps start when all tokens are counted.
            if state.drawn == agents {
                (0..agents).for_each(|agent| self.request(agent, out));
            }
            return Ok(());
        }
        let (counts, mut priors) = problem.split_priors(&state.counts.0)?;
        check_conserved(counts, state.tokens)?;
        if reported.report.statistics.is_some() {
            state.statistics[reported.from as usize] = reported.report.statistics;
            if state.statistics.iter().all(Option::is_some) {
                priors = AgentPriorStatistics::update_priors(state.statistics.iter().flatten(), problem, &priors);
                state.statistics.fill(None);
                state.counts.0[problem.size()..].copy_from_slice(&priors.to_i32s());
            }
        }
        state.swept[reported.from as usize] += 1;
        let swept: u64 = state.swept.iter().sum();
        // On average over agents, a sweep is done.
        if swept.is_multiple_of(u64::from(agents)) {
            let sweep = swept / u64::from(agents);
            record_draw(problem, &state.counts.0, sweep, settings, cx)?;
            settings.prior_updates().log_history(
                sweep,
                &priors,
                &[("seconds", cx.seconds()), ("tokens", state.tokens as f64)],
                cx,
            );
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

/// Sweeps over the tokens of its shard.
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

    fn perform(&mut self, task: &Task, body: Body<i32>, cx: &mut Context) -> Result<(SweepReport, Body<i32>)> {
        let (report, changed) = match *task {
            Task::Draw => {
                let (topics, counts) = self.shard.draw_initial_topics(cx);
                self.state.topics = Raw(topics);
                (SweepReport { tokens: self.shard.tokens(), statistics: None }, counts)
            }
            Task::Sweep(sweep) => self.shard.sweep(&mut self.state.topics.0, &body, sweep, &self.settings, cx)?,
        };
        Ok((report, changed.into()))
    }
}
