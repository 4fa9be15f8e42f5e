//! LDA with φ fixed during a sweep: documents are independent given φ, so topics and draws have the same bits on any number of agents, ranks
//! and threads.
//!
//! A sweep draws the topics of all tokens given φ. Before it, agents sum the topic-word counts n_kw of all tokens among
//! themselves, and set φ in one of two ways:
//!
//! - drawn: φ_k ~ Dirichlet(n_k + β). This is partially collapsed Gibbs sampling, with the weights of documents integrated out; its
//!   stationary distribution is the posterior.
//! - collapsed: φ is its mean given the counts before the sweep; for each token, that token is left out of the counts. This is close to AD-LDA (Newman, Asuncion, Smyth &
//!   Welling 2009) with an agent for each document. It needs fewer sweeps, and is approximate.
//!
//! The documents of all agents are numbered in the order of the agents. To start, the first third of them (but not many more than 20 million
//! tokens) get topics sequentially, each token given those before it. Agents pass on the counts, and only these are kept: the first sweep
//! draws a topic for every token. In the first sweeps φ is smoothed by s p_w, with p_w the frequency of the word and a decreasing s. Otherwise
//! the topics that the first documents happened to get would persist for many sweeps.
//!
//! The counts include the pseudo-counts of seed words, which the first agent adds, so that φ has their prior.

mod settings;
mod shared_table;

use super::prior_updates::{AgentPriorStatistics, OptimizePriors};
use super::problem::TopicProblem;
use super::shard::check_conserved;
use crate::cluster::{Agent, AgentId, Body, Context, Method, Outbox, Progress, Raw, Response, Result, SerializesAs, Server, raw};
use crate::lda::{
    Alpha, AssignedTopics, Documents, FixedSweep, Priors, TokenBlocks, Tokens, TopicCounts, TopicTable, draw_topics_sequentially,
};
use crate::methods::common::thinning::draw_after;
use crate::methods::common::with_evaluation::Posterior;
use crate::random::{Purpose, Who};
use rand::RngExt;
use serde::{Deserialize, Serialize};
pub use settings::{LdaSamplerSettings, PhiUpdate};
use shared_table::SharedTable;
use std::sync::Arc;

/// The number of tokens after which no further document gets initial topics: drawing the topic of a token takes time that grows with K there.
const MAX_INITIAL_TOKENS: u64 = 20_000_000;
/// Documents that are read at once where initial topics are drawn.
const READ_AT_ONCE: usize = 4096;
/// The smallest recorded value of φ. Smaller draws may be 0 in single precision.
const MIN_PHI: f32 = 1e-30;

/// LDA with φ fixed during a sweep.
#[derive(Clone)]
pub struct Lda {
    problem: TopicProblem,
    settings: LdaSamplerSettings,
    shared_table: SharedTable,
}

impl Lda {
    /// The method for a problem.
    pub fn new(problem: TopicProblem, settings: LdaSamplerSettings) -> Self {
        Self { problem, settings, shared_table: SharedTable::default() }
    }
}

/// A task of an agent.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Task {
    /// Report the numbers of documents and tokens.
    Measure,
    /// Draw initial topics of documents, each token given those before it, and add them to the counts.
    DrawInitialTopics {
        /// The number of the agent's first document among the documents of all agents.
        first_document: u64,
        /// The number of tokens of the documents before it.
        tokens_before: u64,
        /// The number of documents of all agents that get initial topics.
        documents: u64,
    },
    /// Record a draw if one is due, and perform the next sweep unless all are done.
    Sweep {
        /// The number of completed sweeps.
        done: u64,
        /// The number of tokens in the counts, with pseudo-counts of seed words.
        counted: u64,
        /// The number of the first document of each agent.
        first_documents: Vec<u64>,
        /// The priors of the sweep.
        priors: Priors,
    },
}

/// The report of an agent.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Report {
    /// The documents and tokens of the agent, or those to which it has given initial topics.
    size: ShardSize,
    /// Statistics for the estimate of the priors, if one is due.
    statistics: Option<AgentPriorStatistics>,
}

impl From<ShardSize> for Report {
    fn from(size: ShardSize) -> Self {
        Self { size, statistics: None }
    }
}

/// A number of documents with their tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShardSize {
    documents: u64,
    tokens: u64,
}

impl Method for Lda {
    const NAME: &'static str = "lda";
    type Number = i32;
    type Task = Task;
    type Report = Report;
    type Server = LdaServer;
    type Agent = LdaAgent;

    fn agents(&self) -> u32 {
        self.problem.agents
    }

    fn server(&self, saved: Option<ServerState>) -> Result<LdaServer> {
        let (counted, priors) = (self.problem.seed_words.total(), self.problem.priors());
        let initial = || ServerState { sizes: Vec::new(), initialized_agents: 0, counted, done: 0, priors };
        Ok(LdaServer { method: self.clone(), state: saved.unwrap_or_else(initial) })
    }

    fn agent(&self, id: AgentId, saved: Option<AgentState>) -> Result<LdaAgent> {
        let residence = self.settings.residence();
        let blocks = TokenBlocks::new(self.problem.source(id)?.as_ref(), self.problem.topics as usize, residence)?;
        let topics = AssignedTopics::new(saved.unwrap_or_default().topics.0, residence)?;
        if !topics.is_empty()
            && (topics.len() != blocks.len() || topics.iter().any(|&topic| u32::from(topic) >= self.problem.topics))
        {
            return Err(format!("the saved topics do not fit the {} tokens of this agent", blocks.len()).into());
        }
        Ok(LdaAgent { id, method: self.clone(), blocks, topics, counts: Body::empty() })
    }
}

/// The server's state.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ServerState {
    /// The documents and tokens of each agent; empty before they are known.
    sizes: Vec<ShardSize>,
    /// The number of agents that have drawn their initial topics.
    initialized_agents: u32,
    /// The number of tokens in the counts, with pseudo-counts of seed words.
    counted: u64,
    /// The number of completed sweeps.
    done: u64,
    /// The current α and β.
    priors: Priors,
}

impl ServerState {
    /// The documents and tokens of the agents before each agent.
    fn sizes_before(&self) -> Vec<ShardSize> {
        let add = |sum: &mut ShardSize, size: &ShardSize| {
            let before = *sum;
            *sum = ShardSize { documents: before.documents + size.documents, tokens: before.tokens + size.tokens };
            Some(before)
        };
        self.sizes.iter().scan(ShardSize::default(), add).collect()
    }

    /// The documents and tokens of all agents.
    fn total_size(&self) -> ShardSize {
        let sum = |of: fn(&ShardSize) -> u64| self.sizes.iter().map(of).sum();
        ShardSize { documents: sum(|size| size.documents), tokens: sum(|size| size.tokens) }
    }

    /// The number of documents that get initial topics, unless they have too many tokens.
    fn initial_documents(&self) -> u64 {
        self.total_size().documents.div_ceil(3)
    }

    /// The number of agents that draw initial topics, one after the other.
    fn initializing_agents(&self) -> u32 {
        let documents = self.initial_documents();
        let before = self.sizes_before();
        let others = before.iter().skip(1);
        let further = others.take_while(|before| before.documents < documents && before.tokens < MAX_INITIAL_TOKENS);
        // There are fewer agents than 2^32.
        1 + further.count() as u32
    }
}

/// Requests sweeps.
pub struct LdaServer {
    method: Lda,
    state: ServerState,
}

impl LdaServer {
    /// Requests that the next agent draws its initial topics.
    fn request_initial_topics(&self, out: &mut Outbox<Lda>) {
        let (state, agents) = (&self.state, self.method.problem.agents);
        let agent = state.initialized_agents;
        let ShardSize { documents: first_document, tokens: tokens_before } = state.sizes_before()[agent as usize];
        let task = Task::DrawInitialTopics { first_document, tokens_before, documents: state.initial_documents() };
        let request = out.request([agent], task);
        if agent > 0 {
            request.with_transfer();
        }
        if agent + 1 < state.initializing_agents() {
            request.sum_to([agent + 1]);
        } else {
            request.sum_to(0..agents);
        }
    }

    /// Requests the next sweep. After the last one, agents take the counts, and agent 0 records a draw if one is due.
    fn request_sweep(&self, out: &mut Outbox<Lda>) {
        let (state, agents) = (&self.state, self.method.problem.agents);
        let first_documents = state.sizes_before().iter().map(|before| before.documents).collect();
        let (done, counted, priors) = (state.done, state.counted, state.priors.clone());
        let task = Task::Sweep { done, counted, first_documents, priors };
        let request = out.request(0..agents, task).with_transfer();
        if state.done < self.method.settings.rounds {
            request.sum_to(0..agents);
        }
    }
}

impl Server<Lda> for LdaServer {
    type State = ServerState;

    fn state(&self) -> impl SerializesAs<ServerState> {
        &self.state
    }

    fn start(&mut self, out: &mut Outbox<Lda>, _: &mut Context) -> Result<()> {
        out.request(0..self.method.problem.agents, Task::Measure);
        Ok(())
    }

    fn receive(&mut self, response: Response<Lda>, out: &mut Outbox<Lda>, cx: &mut Context) -> Result<()> {
        let rounds = self.method.settings.rounds;
        if self.state.sizes.is_empty() {
            self.state.sizes = response.reports.iter().map(|reported| reported.report.size).collect();
            self.request_initial_topics(out);
        } else if self.state.initialized_agents < self.state.initializing_agents() {
            self.state.initialized_agents += 1;
            self.state.counted += response.only()?.report.size.tokens;
            if self.state.initialized_agents < self.state.initializing_agents() {
                self.request_initial_topics(out);
            } else {
                self.request_sweep(out);
            }
        } else if self.state.done < rounds {
            let tokens = self.state.total_size().tokens;
            let Lda { problem, settings, .. } = &self.method;
            (self.state.done, self.state.counted) = (self.state.done + 1, tokens + problem.seed_words.total());
            let longest_sweep = response.reports.iter().map(|reported| reported.seconds).fold(0.0, f64::max);
            let statistics = response.reports.iter().filter_map(|reported| reported.report.statistics.as_ref());
            self.state.priors = AgentPriorStatistics::update_priors(statistics, problem, &self.state.priors);
            let columns = [("seconds", cx.seconds()), ("longest_sweep", longest_sweep), ("tokens", tokens as f64)];
            settings.prior_updates().log_history(self.state.done, &self.state.priors, &columns, cx);
            self.request_sweep(out);
        }
        Ok(())
    }

    fn progress(&self) -> Progress {
        Progress { done: self.state.done, total: self.method.settings.rounds }
    }
}

impl Posterior<i32> for LdaServer {
    const AT_AGENTS: bool = true;

    fn posterior(&self) -> (u64, &[i32]) {
        (self.state.done, &[])
    }
}

/// An agent's state.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct AgentState {
    /// The topic of each token of the agent; empty before the first sweep.
    topics: Raw<u16>,
}

/// The same state, wherever the topics are.
#[derive(Serialize)]
struct StateToSave<'a> {
    #[serde(with = "raw")]
    topics: &'a [u16],
}

impl SerializesAs<AgentState> for StateToSave<'_> {}

/// Sweeps over the tokens of its shard.
pub struct LdaAgent {
    id: AgentId,
    method: Lda,
    blocks: TokenBlocks,
    /// The topic of each token; empty before the first sweep.
    topics: AssignedTopics,
    /// The counts of all agents, followed by the priors of the sweep that they are from. The next task brings them to a resumed run.
    counts: Body<i32>,
}

/// The key of the random numbers of the sweep after `done` sweeps. With `done` it identifies the table of topics, also where another run of this
/// process uses the same method.
fn sweep_key(done: u64, cx: &Context) -> u64 {
    cx.stream(Who::Run, done, Purpose::Topics).random()
}

impl LdaAgent {
    /// Draws topics for those documents of this agent that are among the first `documents` of all, until there are `MAX_INITIAL_TOKENS` tokens, and
    /// adds them to `counts` (W × K). `first` and `tokens_before` count the documents and tokens of earlier agents. Returns the numbers of documents
    /// and tokens; the topics are not kept.
    fn draw_initial_topics(
        &self,
        first: u64,
        tokens_before: u64,
        documents: u64,
        counts: &mut Vec<i32>,
        cx: &Context,
    ) -> Result<ShardSize> {
        let &TopicProblem { vocabulary, topics, alpha, beta, .. } = &self.method.problem;
        let source = self.method.problem.source(self.id)?;
        let mut drawn = Documents::new(vocabulary);
        // The agent's documents among the first `documents` of all.
        let own = (documents.saturating_sub(first) as usize).min(source.len());
        'reading: for from in (0..own).step_by(READ_AT_ONCE) {
            for bag in source.read(from..own.min(from + READ_AT_ONCE))?.iter() {
                if tokens_before + drawn.tokens() >= MAX_INITIAL_TOKENS {
                    break 'reading;
                }
                drawn.push(bag.words, bag.counts);
            }
        }
        let tokens = Tokens::from_documents(&drawn);
        let mut assigned = vec![0; tokens.len()];
        let mut all = TopicCounts::from_counts(std::mem::take(counts), topics as usize);
        let stream = |document: u64| cx.stream(Who::Run, first + document, Purpose::Initial);
        draw_topics_sequentially(&tokens, drawn.len(), &mut assigned, &mut all, alpha, beta, stream);
        *counts = all.into_counts();
        Ok(ShardSize { documents: drawn.len() as u64, tokens: drawn.tokens() })
    }

    /// The table of topics after `done` sweeps, given the counts of all agents, of `counted` tokens.
    fn table(&self, done: u64, counted: u64, Priors { alpha, beta }: &Priors, cx: &Context) -> Result<Arc<TopicTable>> {
        let Lda { problem, settings, shared_table } = &self.method;
        let (vocabulary, topics) = (problem.vocabulary as usize, problem.topics as usize);
        let id = (done, sweep_key(done, cx));
        let fill = |table: &mut TopicTable| {
            let (counts, _) = problem.split_priors(&self.counts)?;
            check_conserved(counts, counted)?;
            table.set_relative_alpha(alpha.relative(topics));
            if settings.draws_phi(done) {
                // Addresses do not repeat within 2^31 sweeps.
                let stream = |address: u64| cx.stream(Who::Server, done << 32 | address, Purpose::Topics);
                table.draw(counts, *beta, stream, |topic| stream(1 << 63 | topic));
            } else {
                let tokens = counted.saturating_sub(problem.seed_words.total());
                table.set_mean(counts, *beta, settings.background(done, tokens as f64 / topics as f64));
            }
            Ok(())
        };
        shared_table.at(id, || TopicTable::new(vocabulary, topics), fill)
    }

    /// Records φ, and α of each topic if these are estimated, as draw number `number`.
    fn record(&self, table: &TopicTable, alpha: &Alpha, number: u64, cx: &mut Context) {
        let Lda { problem, settings, .. } = &self.method;
        let mut draw: Vec<f32> = Vec::with_capacity(problem.size() + table.topics());
        for word in 0..table.vocabulary() {
            draw.extend(table.phi(word).iter().map(|phi| phi.max(MIN_PHI)));
        }
        if settings.optimize == OptimizePriors::Asymmetric {
            draw.extend(alpha.of_topics(table.topics()).map(|alpha| alpha as f32));
        }
        cx.record("posterior", 0, number, draw.len(), &draw);
    }

    /// Draws new topics for all tokens, and returns their counts (W × K).
    fn sweep(&mut self, table: &TopicTable, done: u64, alpha: f64, first_document: u64, cx: &Context) -> Result<Vec<i32>> {
        let Lda { problem, settings, .. } = &self.method;
        if done == 0 {
            // No token has a topic yet: K is the mark for that, and fits into u16.
            self.topics = AssignedTopics::same(problem.topics as u16, self.blocks.len(), settings.residence())?;
        }
        let key = sweep_key(done, cx);
        let values_of_priors = 2 * (problem.topics as usize + 1);
        let mut counts = Vec::with_capacity(problem.size() + values_of_priors);
        counts.resize(problem.size(), 0);
        self.blocks.sweep(&mut self.topics, FixedSweep { table, alpha, key, first_document }, &mut counts);
        Ok(counts)
    }

    /// Statistics of the topics before a sweep, if priors are estimated from them.
    fn prior_statistics(&self, done: u64) -> Result<Option<AgentPriorStatistics>> {
        let Lda { problem, settings, .. } = &self.method;
        let updates = settings.prior_updates();
        if !updates.is_due(done) {
            return Ok(None);
        }
        let (spans, assigned) = (self.blocks.spans(), &self.topics);
        let (counts, _) = problem.split_priors(&self.counts)?;
        Ok(Some(updates.statistics(spans, assigned, counts, self.id, problem)))
    }

    /// Appends the priors to the counts of this agent. Only agent 0 adds the pseudo-counts of seed words and sends the priors, the others send
    /// zeros, so that the sum over agents has them once.
    fn counts_to_send(&self, mut counts: Vec<i32>, priors: &Priors) -> Body<i32> {
        let mut prior_bits = priors.to_i32s();
        match self.id {
            0 => self.method.problem.seed_words.add_to(&mut counts, self.method.problem.topics as usize),
            _ => prior_bits.fill(0),
        }
        counts.extend(prior_bits);
        counts.into()
    }
}

impl Agent<Lda> for LdaAgent {
    type State = AgentState;

    fn state(&self) -> impl SerializesAs<AgentState> {
        StateToSave { topics: &self.topics }
    }

    /// The counts of all agents, followed by the priors.
    fn posterior(&self) -> &[i32] {
        &self.counts
    }

    fn perform(&mut self, task: &Task, body: Body<i32>, cx: &mut Context) -> Result<(Report, Body<i32>)> {
        let size = ShardSize { documents: self.blocks.documents() as u64, tokens: self.blocks.len() as u64 };
        match task {
            Task::Measure => Ok((size.into(), Body::empty())),
            &Task::DrawInitialTopics { first_document, tokens_before, documents } => {
                let problem = &self.method.problem;
                let mut counts = match self.id {
                    0 => {
                        let mut pseudo_counts = vec![0; problem.size()];
                        problem.seed_words.add_to(&mut pseudo_counts, problem.topics as usize);
                        pseudo_counts
                    }
                    _ => problem.split_priors(&body)?.0.to_vec(),
                };
                let drawn = self.draw_initial_topics(first_document, tokens_before, documents, &mut counts, cx)?;
                counts.extend(problem.priors().to_i32s());
                Ok((drawn.into(), counts.into()))
            }
            Task::Sweep { done, counted, first_documents, priors } => {
                let (done, settings) = (*done, self.method.settings);
                self.counts = body;
                let draw = draw_after(done, settings.burn_in, settings.thin).filter(|_| self.id == 0);
                if done == settings.rounds && draw.is_none() {
                    return Ok((size.into(), Body::empty()));
                }
                let table = self.table(done, *counted, priors, cx)?;
                if let Some(number) = draw {
                    self.record(&table, &priors.alpha, number, cx);
                }
                if done == settings.rounds {
                    return Ok((size.into(), Body::empty()));
                }
                let Some(&first_document) = first_documents.get(self.id as usize) else {
                    return Err(format!("the task has {} agents", first_documents.len()).into());
                };
                let statistics = self.prior_statistics(done)?;
                let counts = self.sweep(&table, done, priors.alpha.mean(), first_document, cx)?;
                Ok((Report { size, statistics }, self.counts_to_send(counts, priors)))
            }
        }
    }
}
