//! The posterior's scores at given draws, from all rows of all agents or estimated from some.

use crate::cluster::{Agent, AgentId, Body, Context, Method, Outbox, Progress, Response, Result, SerializesAs, Server};
use crate::methods::common::problem::{LocalLoss, Problem};
use crate::number::Real;
use ndarray::{Array2, ArrayView2, Axis};

/// The group of records with the scores: a record for each draw.
pub const SCORES: &str = "scores";

/// The number of draws in a request: enough for fast matrix products on many threads, and few enough that the job can stop between two requests.
const DRAWS_AT_ONCE: usize = 64;

/// Computes ∇log p at draws: every agent computes the scores of its shard's loss, and the server adds the prior's.
#[derive(Clone)]
pub struct FullScores<F> {
    /// The problem. No two agents may have the same rows, which would be counted twice.
    pub problem: Problem<F>,
    /// The draws (M × d), row-major; only the server's rank needs them.
    pub draws: Vec<F>,
    /// From which rows scores are computed.
    pub rows: ScoredRows,
}

/// From which rows scores are computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScoredRows {
    /// From all.
    All,
    /// From some, other ones for each draw: an estimate without bias.
    Sample {
        /// How many for a draw.
        rows: usize,
        /// How many all agents have.
        of: usize,
    },
}

impl<F: Real> Method for FullScores<F> {
    const NAME: &'static str = "full_scores";
    type Number = F;
    type Task = u64;
    type Report = ();
    type Server = ScoreServer<F>;
    type Agent = ScoreAgent<F>;

    fn agents(&self) -> u32 {
        self.problem.agents
    }

    fn server(&self, saved: Option<usize>) -> Result<ScoreServer<F>> {
        Ok(ScoreServer { method: self.clone(), done: saved.unwrap_or_default() })
    }

    fn agent(&self, id: AgentId, _saved: Option<()>) -> Result<ScoreAgent<F>> {
        let mut loss = self.problem.open(id, usize::MAX)?;
        let has_minibatches = match self.rows {
            ScoredRows::Sample { rows, of } if rows < of => {
                loss.set_share_of_batch(rows, of);
                true
            }
            _ => false,
        };
        Ok(ScoreAgent { loss, parameters: self.problem.model.dim(), has_minibatches })
    }
}

/// Sends the draws to all agents, some at a time, and records the sums of their scores. A task is the number of its first draw.
pub struct ScoreServer<F> {
    method: FullScores<F>,
    /// The number of draws whose scores are known.
    done: usize,
}

impl<F: Real> ScoreServer<F> {
    fn draws(&self) -> usize {
        self.method.draws.len() / self.method.problem.model.dim()
    }

    /// The next draws, one after the other.
    fn next_draws(&self) -> &[F] {
        let parameters = self.method.problem.model.dim();
        let end = self.draws().min(self.done + DRAWS_AT_ONCE);
        &self.method.draws[self.done * parameters..end * parameters]
    }

    fn request(&self, out: &mut Outbox<FullScores<F>>) {
        out.request(0..self.method.problem.agents, self.done as u64).with(self.next_draws().to_vec()).sum();
    }
}

impl<F: Real> Server<FullScores<F>> for ScoreServer<F> {
    type State = usize;

    fn state(&self) -> impl SerializesAs<usize> {
        &self.done
    }

    fn start(&mut self, out: &mut Outbox<FullScores<F>>, _cx: &mut Context) -> Result<()> {
        self.request(out);
        Ok(())
    }

    fn receive(&mut self, response: Response<FullScores<F>>, out: &mut Outbox<FullScores<F>>, cx: &mut Context) -> Result<()> {
        let model = &self.method.problem.model;
        let draws = self.next_draws();
        let shape = (draws.len() / model.dim(), model.dim());
        let mut scores = Array2::zeros(shape);
        model.prior_score(ArrayView2::from_shape(shape, draws)?, scores.view_mut());
        scores += &Array2::from_shape_vec(shape, response.sum.into_vec())?;
        for (draw, score) in (self.done as u64..).zip(scores.rows()) {
            cx.record(SCORES, 0, draw, shape.1, &score.to_vec());
        }
        self.done += shape.0;
        if self.done < self.draws() {
            self.request(out);
        }
        Ok(())
    }

    fn progress(&self) -> Progress {
        Progress { done: self.done as u64, total: self.draws() as u64 }
    }
}

/// Computes the scores of the loss of an agent's shard.
pub struct ScoreAgent<F: Real> {
    loss: LocalLoss<F>,
    parameters: usize,
    has_minibatches: bool,
}

impl<F: Real> Agent<FullScores<F>> for ScoreAgent<F> {
    type State = ();

    fn state(&self) -> impl SerializesAs<()> {
        &()
    }

    fn perform(&mut self, first_draw: &u64, body: Body<F>, cx: &mut Context) -> Result<((), Body<F>)> {
        let draws = ArrayView2::from_shape((body.len() / self.parameters, self.parameters), &body)?;
        let mut scores = Array2::zeros(draws.dim());
        if self.has_minibatches {
            let each = draws.axis_chunks_iter(Axis(0), 1).zip(scores.axis_chunks_iter_mut(Axis(0), 1));
            (*first_draw..).zip(each).for_each(|(step, (draw, score))| self.loss.add_score(draw, step, score, cx));
        } else {
            self.loss.add_score(draws, 0, scores.view_mut(), cx);
        }
        Ok(((), scores.into_raw_vec_and_offset().0.into()))
    }
}
