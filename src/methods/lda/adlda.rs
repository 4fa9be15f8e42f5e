//! Approximate distributed LDA: collapsed Gibbs sweeps by all agents at once, whose counts are added up behind each.
//!
//! Agent s sweeps over its tokens with its own copy n^s of the counts n_kw of all agents, which knows nothing of what others change
//! meanwhile; then n ← n + Σ_s (n^s − n), and n^s ← n (Newman, Asuncion, Smyth & Welling 2009). With one agent this is collapsed Gibbs
//! sampling. Counts go from agent to agent; the server sees none.

use super::problem::TopicProblem;
use super::settings::SweepSettings;
use super::shard::{Shard, conserved, countable, keep_draw};
use crate::cluster::{Agent, AgentId, Answer, Body, Context, Method, Outbox, Progress, Raw, Result, Saves, Server};
use crate::methods::monitored::Posterior;
use serde::{Deserialize, Serialize};

/// AD-LDA.
#[derive(Clone)]
pub struct AdLda {
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
    /// Take the counts of all `tokens` after so many sweeps, and sweep once more, unless that was the last one.
    Sweep {
        /// Sweeps that are done.
        done: u64,
        /// Tokens of all agents.
        tokens: u64,
    },
}

impl Method for AdLda {
    const NAME: &'static str = "adlda";
    type Number = i32;
    type Task = Task;
    /// Its tokens.
    type Report = u64;
    type Server = AdLdaServer;
    type Agent = AdLdaAgent;

    fn agents(&self) -> u32 {
        self.problem.agents
    }

    fn server(&self, saved: Option<ServerState>) -> Result<AdLdaServer> {
        Ok(AdLdaServer { agents: self.problem.agents, rounds: self.settings.rounds, state: saved.unwrap_or_default() })
    }

    fn agent(&self, id: AgentId, saved: Option<AgentState>) -> Result<AdLdaAgent> {
        let fresh = || AgentState { topics: Raw(Vec::new()), counts: Raw(vec![0; self.problem.size()]) };
        let state = saved.unwrap_or_else(fresh);
        Ok(AdLdaAgent { id, method: self.clone(), shard: Shard::open(&self.problem, id, self.settings.by)?, state })
    }
}

/// The server's state.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct ServerState {
    /// Sweeps that are done.
    done: u64,
    /// Tokens of all agents.
    tokens: u64,
    /// Whether topics are drawn.
    begun: bool,
}

/// The half that calls for sweeps.
pub struct AdLdaServer {
    agents: u32,
    rounds: u64,
    state: ServerState,
}

impl AdLdaServer {
    /// Asks for the next sweep; behind the last, for a look at the counts.
    fn ask(&self, out: &mut Outbox<AdLda>) {
        let ServerState { done, tokens, .. } = self.state;
        let ask = out.ask(0..self.agents, Task::Sweep { done, tokens }).handed();
        if done < self.rounds {
            ask.sum_to(0..self.agents);
        }
    }
}

impl Server<AdLda> for AdLdaServer {
    type State = ServerState;

    fn state(&self) -> impl Saves<ServerState> {
        &self.state
    }

    fn start(&mut self, out: &mut Outbox<AdLda>, _: &mut Context) -> Result<()> {
        out.ask(0..self.agents, Task::Draw).sum_to(0..self.agents);
        Ok(())
    }

    fn receive(&mut self, answer: Answer<AdLda>, out: &mut Outbox<AdLda>, cx: &mut Context) -> Result<()> {
        let state = &mut self.state;
        if !state.begun {
            (state.begun, state.tokens) = (true, answer.reports.iter().map(|reported| reported.report).sum());
            countable(state.tokens)?;
            self.ask(out);
            return Ok(());
        }
        if state.done == self.rounds {
            return Ok(());
        }
        state.done += 1;
        let longest = answer.reports.iter().map(|reported| reported.seconds).fold(0.0, f64::max);
        cx.info("trace", state.done, [("seconds", cx.seconds()), ("longest_sweep", longest), ("tokens", state.tokens as f64)]);
        self.ask(out);
        Ok(())
    }

    fn progress(&self) -> Progress {
        Progress { done: self.state.done, total: self.rounds }
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
    /// Of its tokens.
    topics: Raw<u32>,
    /// Of all agents' tokens, as they were added up last (W × K).
    counts: Raw<i32>,
}

/// The half that sweeps.
pub struct AdLdaAgent {
    id: AgentId,
    method: AdLda,
    shard: Shard,
    state: AgentState,
}

impl AdLdaAgent {
    /// Takes what all agents have changed, and keeps a draw where one is due.
    fn take(&mut self, changed: &[i32], done: u64, tokens: u64, cx: &mut Context) -> Result<()> {
        let AdLda { problem, settings: SweepSettings { burn_in, thin, .. } } = &self.method;
        let counts = &mut self.state.counts.0;
        if changed.len() != counts.len() {
            return Err(format!("{} counts came, not {}", changed.len(), counts.len()).into());
        }
        counts.iter_mut().zip(changed).for_each(|(count, changed)| *count += changed);
        conserved(counts, tokens)?;
        if self.id == 0 {
            keep_draw(problem, counts, done, *burn_in, *thin, cx);
        }
        Ok(())
    }
}

impl Agent<AdLda> for AdLdaAgent {
    type State = AgentState;

    fn state(&self) -> impl Saves<AgentState> {
        &self.state
    }

    /// The counts of all agents' tokens.
    fn posterior(&self) -> &[i32] {
        &self.state.counts.0
    }

    fn perform(&mut self, task: &Task, body: Body<i32>, cx: &mut Context) -> Result<(u64, Body<i32>)> {
        let changed = match *task {
            Task::Draw => {
                let (topics, counts) = self.shard.draw(cx);
                self.state.topics = Raw(topics);
                counts
            }
            Task::Sweep { done, tokens } => {
                self.take(&body, done, tokens, cx)?;
                if done == self.method.settings.rounds {
                    return Ok((self.shard.tokens(), Body::empty()));
                }
                self.shard.sweep(&mut self.state.topics.0, &self.state.counts.0, done, cx)?
            }
        };
        Ok((self.shard.tokens(), changed.into()))
    }
}
