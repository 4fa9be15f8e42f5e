//! AD-LDA, approximate distributed LDA: collapsed Gibbs sweeps by all agents in parallel, with topic-word counts that are summed after each.
//!
//! Agent s sweeps over its tokens with its own copy n^s of the counts n_kw of all agents. The copy does not include the changes that other
//! agents make during the sweep. Then n ← n + Σ_s (n^s − n), and n^s ← n (Newman, Asuncion, Smyth & Welling 2009). With one agent this is
//! collapsed Gibbs sampling. Agents sum their changes among themselves; the counts do not pass through the server. If priors are optimized,
//! agents report histograms of the counts before a sweep, and the server's estimates are used from the next sweep on.

use super::prior_updates::AgentPriorStatistics;
use super::problem::TopicProblem;
use super::shard::{Shard, SweepReport, check_conserved, check_token_count, record_draw};
use super::sweeps::SweepSettings;
use crate::cluster::{
    Agent, AgentId, Body, Context, Method, Outbox, Packed, Progress, Raw, Response, Result, SerializesAs, Server,
};
use crate::lda::Priors;
use crate::methods::common::settings::{Corpus, MethodSettings, ResourceEstimate, TopicMethod};
use crate::methods::common::with_evaluation::Posterior;
use crate::number::Real;
use crate::settings::{Key, KeyError, keys};
use serde::{Deserialize, Serialize};

/// The settings of `adlda`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct AdLdaSettings(pub SweepSettings);

impl MethodSettings for AdLdaSettings {
    type Data = Corpus;

    const NAME: &'static str = "adlda";

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
        TopicMethod::new(AdLda { problem, settings: self.0 }, self.0.shown())
    }
}

/// AD-LDA.
#[derive(Clone)]
pub struct AdLda {
    /// The problem.
    pub problem: TopicProblem,
    /// The number and order of sweeps, and which draws are kept.
    pub settings: SweepSettings,
}

/// A task of an agent.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Task {
    /// Draw initial topics.
    Draw,
    /// Apply the summed changes, and perform the next sweep unless all are done.
    Sweep {
        /// The number of completed sweeps.
        done: u64,
        /// The number of tokens of all agents.
        tokens: u64,
        /// The priors for the next sweep.
        priors: Priors,
    },
}

impl Method for AdLda {
    const NAME: &'static str = "adlda";
    type Number = i32;
    type Task = Task;
    type Report = SweepReport;
    type Server = AdLdaServer;
    type Agent = AdLdaAgent;

    fn agents(&self) -> u32 {
        self.problem.agents
    }

    fn server(&self, saved: Option<ServerState>) -> Result<AdLdaServer> {
        let initial = || ServerState { done: 0, tokens: 0, initialized: false, priors: self.problem.priors() };
        Ok(AdLdaServer { method: self.clone(), state: saved.unwrap_or_else(initial) })
    }

    fn agent(&self, id: AgentId, saved: Option<AgentState>) -> Result<AdLdaAgent> {
        let zero_counts = || [vec![0; self.problem.size()], self.problem.priors().to_i32s()].concat();
        let initial = || AgentState { topics: Raw(Vec::new()), counts: Packed(zero_counts()) };
        let state = saved.unwrap_or_else(initial);
        Ok(AdLdaAgent { id, method: self.clone(), shard: Shard::open(&self.problem, id, self.settings.sweep_by)?, state })
    }
}

/// The server's state.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ServerState {
    /// The number of completed sweeps.
    done: u64,
    /// The number of tokens of all agents.
    tokens: u64,
    /// Whether the agents have drawn initial topics.
    initialized: bool,
    /// The current α and β.
    priors: Priors,
}

/// Requests sweeps, and estimates priors.
pub struct AdLdaServer {
    method: AdLda,
    state: ServerState,
}

impl AdLdaServer {
    /// Requests the next sweep. After the last, agents only apply the changes.
    fn request(&self, out: &mut Outbox<AdLda>) {
        let ServerState { done, tokens, .. } = self.state;
        let priors = self.state.priors.clone();
        let agents = self.method.problem.agents;
        let request = out.request(0..agents, Task::Sweep { done, tokens, priors }).with_transfer();
        if done < self.method.settings.rounds {
            request.sum_to(0..agents);
        }
    }
}

impl Server<AdLda> for AdLdaServer {
    type State = ServerState;

    fn state(&self) -> impl SerializesAs<ServerState> {
        &self.state
    }

    fn start(&mut self, out: &mut Outbox<AdLda>, _: &mut Context) -> Result<()> {
        let agents = self.method.problem.agents;
        out.request(0..agents, Task::Draw).sum_to(0..agents);
        Ok(())
    }

    fn receive(&mut self, response: Response<AdLda>, out: &mut Outbox<AdLda>, cx: &mut Context) -> Result<()> {
        let Self { method: AdLda { problem, settings }, state } = self;
        if !state.initialized {
            (state.initialized, state.tokens) = (true, response.reports.iter().map(|reported| reported.report.tokens).sum());
            check_token_count(state.tokens)?;
            self.request(out);
            return Ok(());
        }
        if state.done == settings.rounds {
            return Ok(());
        }
        state.done += 1;
        let longest_sweep = response.reports.iter().map(|reported| reported.seconds).fold(0.0, f64::max);
        let statistics = response.reports.iter().filter_map(|reported| reported.report.statistics.as_ref());
        state.priors = AgentPriorStatistics::update_priors(statistics, problem, &state.priors);
        let columns = [("seconds", cx.seconds()), ("longest_sweep", longest_sweep), ("tokens", state.tokens as f64)];
        settings.prior_updates().log_history(state.done, &state.priors, &columns, cx);
        self.request(out);
        Ok(())
    }

    fn progress(&self) -> Progress {
        Progress { done: self.state.done, total: self.method.settings.rounds }
    }
}

impl Posterior<i32> for AdLdaServer {
    const AT_AGENTS: bool = true;

    fn posterior(&self) -> (u64, &[i32]) {
        (self.state.done, &[])
    }
}

/// An agent's state.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct AgentState {
    /// The topic of each token of the agent.
    topics: Raw<u32>,
    /// The counts of all agents after the last exchange, followed by the priors.
    counts: Packed,
}

/// Sweeps over the tokens of its shard.
pub struct AdLdaAgent {
    id: AgentId,
    method: AdLda,
    shard: Shard,
    state: AgentState,
}

impl AdLdaAgent {
    /// Applies the changes of all agents and the priors, and records a draw if one is due.
    fn apply(&mut self, changes: &[i32], done: u64, tokens: u64, priors: &Priors, cx: &mut Context) -> Result<()> {
        let AdLda { problem, settings } = &self.method;
        problem.split_priors(&self.state.counts.0)?;
        let counts = &mut self.state.counts.0;
        counts.truncate(problem.size());
        if changes.len() != counts.len() {
            return Err(format!("expected {1} topic-word counts, got {0}", changes.len(), counts.len()).into());
        }
        counts.iter_mut().zip(changes).for_each(|(count, change)| *count += change);
        check_conserved(counts, tokens)?;
        counts.extend(priors.to_i32s());
        if self.id == 0 {
            record_draw(problem, &self.state.counts.0, done, settings, cx)?;
        }
        Ok(())
    }
}

impl Agent<AdLda> for AdLdaAgent {
    type State = AgentState;

    fn state(&self) -> impl SerializesAs<AgentState> {
        &self.state
    }

    /// The counts of all agents, followed by the priors.
    fn posterior(&self) -> &[i32] {
        &self.state.counts.0
    }

    fn perform(&mut self, task: &Task, body: Body<i32>, cx: &mut Context) -> Result<(SweepReport, Body<i32>)> {
        let tokens = self.shard.tokens();
        let report = || SweepReport { tokens, statistics: None };
        let (report, counts) = match task {
            Task::Draw => {
                let (topics, counts) = self.shard.draw_initial_topics(cx);
                self.state.topics = Raw(topics);
                (report(), counts)
            }
            Task::Sweep { done, tokens, priors } => {
                let (done, tokens) = (*done, *tokens);
                self.apply(&body, done, tokens, priors, cx)?;
                if done == self.method.settings.rounds {
                    return Ok((report(), Body::empty()));
                }
                let AgentState { topics, counts } = &mut self.state;
                self.shard.sweep(&mut topics.0, &counts.0, done, &self.method.settings, cx)?
            }
        };
        Ok((report, counts.into()))
    }
}
