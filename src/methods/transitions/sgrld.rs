//! SGRLD as a transition: stochastic gradient Riemannian Langevin dynamics of topics, for distributed LDA by D-SGLD.
//!
//! The update is that of [`crate::lda::sgrld_step`], with ρ = |D_s|/(n q_s) at agent s: |D_s| documents, n of them in a minibatch, the
//! fraction q_s of all updates (Ahn, Shahbaba & Welling 2014, section 4.2; Patterson & Teh 2013). Its noise depends on the state.

use crate::cluster::{AgentId, Context, Result};
use crate::kernels::langevin::StepSize;
use crate::lda::{Documents, ExpectedCounts, PackedDocuments, SgrldUpdate, Sweeps, sgrld_step};
use crate::methods::topics::TopicProblem;
use crate::methods::transitions::transition::{LocalTransition, Transition, Update};
use crate::number::Real;
use crate::random::{Minibatch, Purpose, Stream, Who};
use rand_distr::{Distribution, Exp1};
use std::marker::PhantomData;

/// SGRLD of topics; the state of a chain is ϑ (W × K) of type `F`.
#[derive(Clone)]
pub struct Sgrld<F> {
    problem: TopicProblem,
    batch: u32,
    step: StepSize,
    sweeps: Sweeps,
    number: PhantomData<F>,
}

impl<F> Sgrld<F> {
    /// Minibatches of `batch` documents are drawn anew for every update, with `sweeps` Gibbs sweeps over each document.
    pub fn new(problem: TopicProblem, batch: u32, step: StepSize, sweeps: Sweeps) -> Self {
        Self { problem, batch, step, sweeps, number: PhantomData }
    }
}

impl<F: Real> Transition for Sgrld<F> {
    type Number = F;
    type Local = LocalSgrld<F>;

    fn dim(&self) -> usize {
        self.problem.size()
    }

    /// φ.
    fn keep(&self, chain: &[F], kept: &mut Vec<F>) {
        let topics = self.problem.topics as usize;
        let mut totals = vec![0.0; topics];
        for word in chain.chunks_exact(topics) {
            totals.iter_mut().zip(word).for_each(|(total, theta)| *total += theta.f64());
        }
        kept.extend(
            chain.chunks_exact(topics).flat_map(|word| word.iter().zip(&totals).map(|(&theta, total)| theta / F::of(*total))),
        );
    }

    /// ϑ_kw ~ Gamma(1, 1).
    fn draw_initial(&self, _chain: u64, stream: &mut Stream, state: &mut [F]) {
        state.fill_with(|| F::of(Exp1.sample(stream)));
    }

    fn step(&self, update: u64) -> f64 {
        self.step.at(update)
    }

    fn open(&self, agent: AgentId) -> Result<LocalSgrld<F>> {
        if self.sweeps.kept == 0 || self.batch == 0 {
            return Err(format!("batch = {} and sweeps.kept = {}: both must be at least 1", self.batch, self.sweeps.kept).into());
        }
        let documents = PackedDocuments::new(self.problem.source(agent)?.as_ref())?;
        // Counts of a word and topic in a minibatch, over all sweeps, have 32 bits.
        let most = documents.largest_count();
        let batch = documents.len().min(self.batch as usize) as u64;
        let seen = u64::from(most).saturating_mul(batch).saturating_mul(self.sweeps.kept.into());
        if u32::try_from(seen).is_err() {
            return Err(format!(
                "minibatches of {batch} documents with up to {most} tokens of a word and {} kept sweeps: {seen} counts exceed the \
                 maximum of {}; set a smaller batch or fewer sweeps",
                self.sweeps.kept,
                u32::MAX
            )
            .into());
        }
        let TopicProblem { vocabulary, topics, alpha, .. } = self.problem;
        Ok(LocalSgrld {
            minibatch: Minibatch::new(documents.len(), self.batch as usize),
            documents,
            drawn: Documents::new(vocabulary),
            expected: ExpectedCounts::new(vocabulary, topics as usize, alpha, self.sweeps),
            settings: self.clone(),
        })
    }
}

/// The transition on the documents of one agent.
pub struct LocalSgrld<F> {
    settings: Sgrld<F>,
    documents: PackedDocuments,
    minibatch: Minibatch,
    /// The documents of the minibatch.
    drawn: Documents,
    expected: ExpectedCounts<F>,
}

impl<F: Real> LocalTransition<F> for LocalSgrld<F> {
    type State = ();

    fn rows(&self) -> usize {
        self.documents.len()
    }

    fn arrive(&mut self, _: &mut (), _: u64, _: &[F], _: &Context) -> Result<bool> {
        Ok(false)
    }

    fn update(&mut self, _: &mut (), theta: &mut [F], update: Update<F>, cx: &Context) -> Result<()> {
        if update.pull.is_some() {
            return Err("SGRLD does not support an elastic force".into());
        }
        let Sgrld { problem, step, .. } = &self.settings;
        let who = Who::Chain(update.chain);
        let drawn = self.minibatch.draw(&mut cx.stream(who, update.number, Purpose::Minibatch));
        self.documents.unpack(drawn, &mut self.drawn);
        self.expected.sample(theta, self.drawn.iter(), |number| cx.stream(who, update.number << 32 | number, Purpose::Topics));
        // Avoids a division by zero for an agent without documents.
        let scale = update.scale * self.documents.len() as f64 / drawn.len().max(1) as f64;
        let numbers = SgrldUpdate { beta: problem.beta, step: step.at(update.number), scale };
        sgrld_step(theta, &self.expected, numbers, &mut cx.stream(who, update.number, Purpose::Noise));
        Ok(())
    }
}
