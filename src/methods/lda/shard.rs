//! The tokens of one agent and their topics: what AD-LDA and Async-LDA sweep over.

use super::problem::TopicProblem;
use crate::cluster::{AgentId, Context, Result};
use crate::lda::{Tokens, TopicCounts, dense_sweep};
use crate::random::{Purpose, Who};

/// The tokens of an agent.
pub(super) struct Shard {
    id: AgentId,
    problem: TopicProblem,
    tokens: Tokens,
}

impl Shard {
    pub fn open(problem: &TopicProblem, id: AgentId) -> Result<Self> {
        Ok(Self { id, problem: problem.clone(), tokens: Tokens::of(&problem.open(id)?) })
    }

    /// How many tokens there are.
    pub fn tokens(&self) -> u64 {
        self.tokens.len() as u64
    }

    /// Draws a topic for each token; gives them and their counts (W × K).
    pub fn draw(&self, cx: &Context) -> (Vec<u32>, Vec<i32>) {
        let TopicProblem { vocabulary, topics, .. } = self.problem;
        let drawn = self.tokens.draw_topics(topics, |document| cx.stream(Who::Agent(self.id), document, Purpose::Initial));
        let mut counts = TopicCounts::new(vocabulary, topics as usize);
        counts.count(self.tokens.words(), &drawn);
        (drawn, counts.into_words())
    }

    /// A sweep over all tokens, with the counts of all agents' tokens (W × K) as they were told; gives what it has changed of them.
    pub fn sweep(&self, topics: &mut [u32], counts: &[i32], sweep: u64, cx: &Context) -> Vec<i32> {
        let TopicProblem { alpha, beta, .. } = self.problem;
        let first = sweep * self.tokens.documents() as u64;
        let mut here = TopicCounts::of(counts.to_vec(), self.problem.topics as usize);
        let stream = |document| cx.stream(Who::Agent(self.id), first + document, Purpose::Topics);
        dense_sweep(&self.tokens, topics, &mut here, alpha, beta, stream);
        let mut changed = here.into_words();
        changed.iter_mut().zip(counts).for_each(|(changed, before)| *changed -= before);
        changed
    }
}

/// Whether counts are those of so many tokens, none of them below 0.
///
/// # Errors
/// Says what they are.
pub(super) fn conserved(counts: &[i32], tokens: u64) -> Result<()> {
    let all: i64 = counts.iter().map(|&count| i64::from(count)).sum();
    match counts.iter().any(|&count| count < 0) {
        false if i64::try_from(tokens) == Ok(all) => Ok(()),
        below => {
            Err(format!("{all} tokens are counted of {tokens}{}", if below { ", and fewer than none of some" } else { "" })
                .into())
        }
    }
}
