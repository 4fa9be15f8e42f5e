//! The noise of scores and the curvature around a mode, in coordinates in which the posterior is close to a standard normal distribution.

use super::needs::VisitShare;
use super::prior::prior_curvature;
use crate::cluster::{Agent, AgentId, Body, Context, Method, Outbox, Progress, Response, Result, SerializesAs, Server};
use crate::methods::common::problem::{LocalLoss, Problem};
use crate::random::{Purpose, Who};
use ndarray::{Array1, Array2, ArrayView1, ArrayView2, Axis};
use ndarray_linalg::{AllocatedArray, AllocatedArrayMut, Lapack, UPLO};

/// The group of records with the noise of minibatches of each parameter, then the noise of shards, then the eigenvalues of the curvature
/// at the point where the largest of them is largest.
pub const NOISE: &str = "noise";

/// Points z ~ N(0, I) at which noise is measured.
const POINTS: usize = 12;
/// At most this many of the first points get a curvature.
const MAX_CURVED_POINTS: usize = 4;
/// An agent sends at most about this many numbers of curvatures, or those of one point.
const MAX_CURVATURE_VALUES: usize = 4_000_000;
/// Minibatches at each point and agent.
const MINIBATCHES: u64 = 16;

/// Measures the variance of the scores that chains see, with the control variate at z = 0, for a problem whose model is whitened.
///
/// For parameter j this is Var(L ĝ)_j/(L Lᵀ)_jj, where ĝ is the estimate of the score by z: 1 where the noise of the score is as large as
/// the score itself in a draw from the posterior.
#[derive(Clone)]
pub struct MeasureNoise {
    /// The problem, in which no two agents have the same rows.
    pub problem: Problem<f64>,
    /// L.
    pub factor: Array2<f64>,
    /// Rows in a minibatch.
    pub batch: usize,
    /// How often chains visit an agent.
    pub share: VisitShare,
    /// The rows of all agents.
    pub rows: usize,
}

impl Method for MeasureNoise {
    const NAME: &'static str = "measure_noise";
    type Number = f64;
    type Task = ();
    type Report = ();
    type Server = NoiseServer;
    type Agent = NoiseAgent;

    fn agents(&self) -> u32 {
        self.problem.agents
    }

    fn server(&self, saved: Option<bool>) -> Result<NoiseServer> {
        Ok(NoiseServer { problem: self.problem.clone(), points: Vec::new(), done: saved.unwrap_or_default() })
    }

    fn agent(&self, id: AgentId, _saved: Option<()>) -> Result<NoiseAgent> {
        let sd = self.factor.rows().into_iter().map(|row| row.dot(&row).sqrt()).collect();
        let loss = self.problem.open(id, self.batch)?;
        let share = self.share.of(id, self.problem.agents, loss.rows() as f64 / self.rows as f64);
        Ok(NoiseAgent { id, loss, all: self.problem.open(id, usize::MAX)?, factor: self.factor.clone(), sd, share })
    }
}

/// The number of points at which the curvature of this many parameters is computed.
fn curved_points(dim: usize) -> usize {
    (MAX_CURVATURE_VALUES / (dim * dim)).clamp(1, MAX_CURVED_POINTS)
}

/// The eigenvalues of a symmetric matrix in ascending order. The method `eigvalsh` of the library computes the eigenvectors as well, which takes
/// several times as long.
fn eigenvalues(mut matrix: Array2<f64>) -> Result<Array1<f64>> {
    let layout = matrix.square_layout()?;
    Ok(f64::eigh(false, layout, UPLO::Lower, matrix.as_allocated_mut()?).map(Array1::from)?)
}

/// Sends points to all agents and combines the moments that they return.
pub struct NoiseServer {
    problem: Problem<f64>,
    points: Vec<f64>,
    done: bool,
}

impl Server<MeasureNoise> for NoiseServer {
    type State = bool;

    fn state(&self) -> impl SerializesAs<bool> {
        &self.done
    }

    fn start(&mut self, out: &mut Outbox<MeasureNoise>, cx: &mut Context) -> Result<()> {
        let dim = self.problem.model.dim();
        let mut points = vec![0.0; POINTS * dim];
        cx.stream(Who::Server, 0, Purpose::Nodes).normals(&mut points);
        // In every coordinate with a mean square of 1, as few points have it by chance.
        for j in 0..dim {
            let square: f64 = points.iter().skip(j).step_by(dim).map(|value| value * value).sum();
            points.iter_mut().skip(j).step_by(dim).for_each(|value| *value *= (POINTS as f64 / square).sqrt());
        }
        // The control point, z = 0.
        points.resize((POINTS + 1) * dim, 0.0);
        self.points = points.clone();
        out.request(0..self.problem.agents, ()).with(points).sum();
        Ok(())
    }

    fn receive(&mut self, response: Response<MeasureNoise>, _out: &mut Outbox<MeasureNoise>, cx: &mut Context) -> Result<()> {
        let model = self.problem.model.as_ref();
        let dim = model.dim();
        let (moments, curvatures) =
            response.sum.split_at_checked((1 + 2 * POINTS) * dim).ok_or("the agents returned too little")?;
        let moments = ArrayView2::from_shape((1 + 2 * POINTS, dim), moments)?;
        let (batches, rest) = moments.split_at(Axis(0), 1);
        let (forces, squares) = rest.split_at(Axis(0), POINTS);
        // The variance over shards at each point, averaged over points.
        let shards = (&squares - &forces.mapv(|force| force * force)).mapv(|variance| variance.max(0.0));
        let shards = shards.mean_axis(Axis(0)).unwrap_or_else(|| Array1::zeros(dim));
        let mut most_curved: Option<Array1<f64>> = None;
        for (point, curvature) in self.points.chunks_exact(dim).zip(curvatures.chunks_exact(dim * dim)) {
            let curvature = ArrayView2::from_shape((dim, dim), curvature)?.to_owned() + prior_curvature(model, point);
            let values = eigenvalues(curvature)?;
            if most_curved.as_ref().and_then(|most| most.last()) < values.last() {
                most_curved = Some(values);
            }
        }
        let most_curved = most_curved.ok_or("the curvature around the mode is not a number")?;
        cx.record(NOISE, 0, 0, dim, &batches.row(0).to_vec());
        cx.record(NOISE, 0, 1, dim, &shards.to_vec());
        cx.record(NOISE, 0, 2, dim, &most_curved.to_vec());
        self.done = true;
        Ok(())
    }

    fn progress(&self) -> Progress {
        Progress { done: u64::from(self.done), total: 1 }
    }
}

/// Measures the noise on an agent's shard.
pub struct NoiseAgent {
    id: AgentId,
    loss: LocalLoss<f64>,
    all: LocalLoss<f64>,
    factor: Array2<f64>,
    sd: Array1<f64>,
    share: f64,
}

impl NoiseAgent {
    /// A force by z as a displacement of each parameter in standard deviations.
    fn displacement(&self, force: ArrayView1<f64>) -> Array1<f64> {
        self.factor.dot(&force) / &self.sd
    }
}

impl Agent<MeasureNoise> for NoiseAgent {
    type State = ();

    fn state(&self) -> impl SerializesAs<()> {
        &()
    }

    /// Returns, weighted by the share of visits: the variance over minibatches, averaged over points; at each point the force of this
    /// shard and its square. The forces are those of the control variate, times 1/share. Then the curvatures at the first points.
    fn perform(&mut self, _task: &(), body: Body<f64>, cx: &mut Context) -> Result<((), Body<f64>)> {
        let dim = self.sd.len();
        let mut moments = Array2::zeros((1 + 2 * POINTS, dim));
        if self.loss.rows() > 0 && self.share > 0.0 {
            let scale = 1.0 / self.share;
            // The control point is the last.
            let all_points = ArrayView2::from_shape((POINTS + 1, dim), &body)?;
            let mut all_scores = Array2::zeros(all_points.dim());
            self.all.add_score_for(Who::Agent(self.id), all_points, 0, scale, all_scores.view_mut(), cx);
            for point in 0..POINTS {
                let force = self.displacement((&all_scores.row(point) - &all_scores.row(POINTS)).view());
                let pair = all_points.select(Axis(0), &[point, POINTS]);
                let mut scores = Array2::zeros((2, dim));
                for minibatch in 0..MINIBATCHES {
                    let number = point as u64 * MINIBATCHES + minibatch;
                    scores.fill(0.0);
                    self.loss.add_score_for(Who::Agent(self.id), pair.view(), number, scale, scores.view_mut(), cx);
                    let estimate = self.displacement((&scores.row(0) - &scores.row(1)).view());
                    let noise = (&estimate - &force).mapv(|noise| noise * noise);
                    moments.row_mut(0).scaled_add(self.share / (POINTS as f64 * MINIBATCHES as f64), &noise);
                }
                moments.row_mut(1 + point).scaled_add(self.share, &force);
                moments.row_mut(1 + POINTS + point).scaled_add(self.share, &force.mapv(|force| force * force));
            }
        }
        let mut all = moments.into_raw_vec_and_offset().0;
        for z in body.chunks_exact(dim).take(curved_points(dim)) {
            let mut curvature = Array2::zeros((dim, dim));
            self.all.add_full_curvature(ArrayView2::from_shape((1, dim), z)?, 0, curvature.view_mut(), cx);
            all.extend(curvature);
        }
        Ok(((), all.into()))
    }
}
