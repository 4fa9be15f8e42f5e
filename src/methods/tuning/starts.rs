//! Starting points of chains, and the scale of parameters, the noise of scores and the curvature there: for models such as networks, whose
//! posterior has many modes or too many parameters for a matrix of curvature.
//!
//! Points descend to low −log p by Adam (Kingma & Ba 2015). The scale of parameter j is (F_j + P_j)^(−1/2), with N times the variance of
//! the scores of single rows F_j, an estimate of the curvature of the loss, and the curvature P_j of the prior. Where the density is
//! highest, parameters and noise have other scales than where the posterior has its mass. The points therefore move on by SGHMC with the
//! steps that were found, and scales, noise and curvature are measured again, several times.

use super::needs::VisitShare;
use super::plan::{HamiltonianSteps, Measurement, hamiltonian_steps};
use crate::cluster::{Agent, AgentId, Body, Context, Method, Outbox, Progress, Raw, Response, Result, SerializesAs, Server};
use crate::kernels::hamiltonian::{ChainState, Scheme, SghmcDynamics};
use crate::kernels::reduce::all_finite;
use crate::methods::common::problem::{LocalLoss, Problem};
use crate::number::Real;
use crate::random::{Purpose, Who};
use ndarray::{Array1, Array2, ArrayView2, Axis, s};
use serde::{Deserialize, Serialize};

/// The group of records with a row for each starting point, then the scale of each parameter, the noise of minibatches, the noise of shards,
/// the largest curvature and the factor that shortens steps; these two are repeated. All but points and scale are in scaled coordinates.
pub const STARTS: &str = "starts";

/// The step size of Adam at first; it falls linearly to 0.
const RATE: f64 = 3e-3;
/// The decay rates of Adam's means of scores and of their squares.
const DECAYS: [f64; 2] = [0.9, 0.999];
/// Passes over the data that the descent takes, within the next limits.
const PASSES: usize = 20;
/// The least and the most steps of the descent.
const STEPS: [usize; 2] = [2000, 6000];
/// The number of windows of SGHMC. Scale, noise and curvature are measured before each, and after the last.
const WINDOWS: u64 = 4;
/// Steps of SGHMC in each window.
const WINDOW_STEPS: u64 = 1000;
/// Points with more kinetic energy than this have diverged, in units of what it should be.
const MAX_KINETIC: f64 = 25.0;
/// The factor of the step where points have diverged.
const SHORTER: f64 = 0.5;
/// The search fails if points still diverge with a step that is shorter than the one that was found by this factor.
const LEAST_FACTOR: f64 = 1e-3;
/// Minibatches at each agent, from which the noise of scores is estimated.
const MINIBATCHES: u64 = 16;
/// Power iterations for the largest curvature.
const ITERATIONS: u64 = 20;
/// Rows from which the curvature is estimated.
const CURVATURE_ROWS: usize = 4000;
/// How far the two points whose scores are compared for a curvature lie from a start, on either side, in units of scales.
const HALF_DISTANCE: f64 = 0.02;
/// Curvatures of the loss below this share of their mean count as this share.
const LEAST_CURVATURE: f64 = 0.01;

/// Finds starting points of chains.
#[derive(Clone)]
pub struct FindStarts<F> {
    /// The problem, in which no two agents have the same rows.
    pub problem: Problem<F>,
    /// The number of starting points.
    pub points: u32,
    /// Rows in a minibatch.
    pub batch: usize,
    /// How often chains visit an agent.
    pub share: VisitShare,
    /// The rows of all agents.
    pub rows: usize,
}

impl<F: Real> FindStarts<F> {
    fn descent_steps(&self) -> u64 {
        // At most 6000.
        (PASSES * self.rows).div_ceil(self.batch.max(1)).clamp(STEPS[0], STEPS[1]) as u64
    }
}

/// What the server asks for, at the points in the body.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub enum Task {
    /// The scores on the minibatch with this number.
    Minibatch {
        number: u64,
        /// Rows over all agents.
        rows: usize,
    },
    /// The rows of the reply are an estimate of the curvature of the loss for each parameter; the noise of minibatches, and the squared scores of
    /// the shard, both divided by the share of visits; and the scores at each point.
    Moments,
    /// The scores, on many rows that are always the same.
    Curvature,
}

/// A search for starting points.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(bound = "")]
pub struct Search<F: Real> {
    phase: Phase,
    points: Raw<F>,
    /// Adam's means of scores and of their squares.
    means: Raw<F>,
    squares: Raw<F>,
    scale: Raw<F>,
    noise: [Raw<F>; 2],
    /// A unit vector for each point, in units of scales.
    directions: Raw<F>,
    curvature: f64,
    /// The largest curvature that was measured before window 1 and later ones. Before window 0, points are still where the density is highest.
    earlier_curvature: f64,
    /// The steps of the window.
    steps: WindowSteps,
    velocities: Raw<F>,
    /// The points at the start of the window.
    before_window: Raw<F>,
    /// The factor of the step that is found: less than 1 after points have diverged.
    factor: f64,
}

/// The steps of SGHMC in a window.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
struct WindowSteps {
    batch: usize,
    step: f64,
    friction: f64,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
enum Phase {
    /// Adam has made this many steps.
    Descent(u64),
    /// The noise is measured before this window.
    Noise(u64),
    /// The curvature is measured before this window; this many power iterations are done.
    Curvature(u64, u64),
    /// Points have made this many steps of this window.
    Window(u64, u64),
    Done,
}

impl<F: Real> Method for FindStarts<F> {
    const NAME: &'static str = "find_starts";
    type Number = F;
    type Task = Task;
    type Report = ();
    type Server = StartServer<F>;
    type Agent = StartAgent<F>;

    fn agents(&self) -> u32 {
        self.problem.agents
    }

    fn server(&self, saved: Option<Search<F>>) -> Result<StartServer<F>> {
        let empty = || Raw(Vec::new());
        let fresh = || Search {
            phase: Phase::Descent(0),
            points: empty(),
            means: empty(),
            squares: empty(),
            scale: empty(),
            noise: [empty(), empty()],
            directions: empty(),
            curvature: 0.0,
            earlier_curvature: 0.0,
            steps: WindowSteps::default(),
            velocities: empty(),
            before_window: empty(),
            factor: 1.0,
        };
        Ok(StartServer { method: self.clone(), search: saved.unwrap_or_else(fresh) })
    }

    fn agent(&self, id: AgentId, _saved: Option<()>) -> Result<StartAgent<F>> {
        let loss = self.problem.open(id, 1)?;
        Ok(StartAgent { id, method: self.clone(), loss })
    }
}

/// Moves the points and combines what agents return.
pub struct StartServer<F: Real> {
    method: FindStarts<F>,
    search: Search<F>,
}

impl<F: Real> StartServer<F> {
    fn dim(&self) -> usize {
        self.method.problem.model.dim()
    }

    fn shape(&self) -> (usize, usize) {
        (self.method.points as usize, self.dim())
    }

    fn points(&self) -> Result<ArrayView2<'_, F>> {
        Ok(ArrayView2::from_shape(self.shape(), &self.search.points.0)?)
    }

    fn ask(&self, task: Task, body: Vec<F>, out: &mut Outbox<FindStarts<F>>) {
        out.request(0..self.method.problem.agents, task).with(body).sum();
    }

    /// The scores of the posterior, from those of all shards.
    fn with_prior(&self, points: ArrayView2<F>, scores: &[F]) -> Result<Array2<F>> {
        let mut all = Array2::zeros(points.raw_dim());
        self.method.problem.model.prior_score(points, all.view_mut());
        all += &ArrayView2::from_shape(points.raw_dim(), scores)?;
        Ok(all)
    }

    /// A step of Adam.
    fn descend(&mut self, step: u64, sum: &[F]) -> Result<()> {
        let scores = self.with_prior(self.points()?, sum)?;
        let rate = RATE * (1.0 - step as f64 / self.method.descent_steps() as f64);
        let [first, second] = DECAYS;
        // Below 6000 steps.
        let correction = |decay: f64| F::of(1.0 / (1.0 - decay.powi(step as i32 + 1)));
        let (of_mean, of_square) = (correction(first), correction(second));
        let Search { points, means, squares, .. } = &mut self.search;
        for (((point, mean), square), &score) in points.0.iter_mut().zip(&mut means.0).zip(&mut squares.0).zip(&scores) {
            *mean = F::of(first) * *mean + F::of(1.0 - first) * score;
            *square = F::of(second) * *square + F::of(1.0 - second) * score * score;
            *point += F::of(rate) * of_mean * *mean / ((of_square * *square).sqrt() + F::of(1e-8));
        }
        Ok(())
    }

    /// Sets scales and noise, and draws directions for the power iterations.
    fn measure(&mut self, sum: &[F], cx: &Context) -> Result<()> {
        let (points, dim) = self.shape();
        let moments = ArrayView2::from_shape((3 + points, dim), sum)?.mapv(F::f64);
        let total = moments.slice(s![3.., ..]).mapv(|score| score * score).mean_axis(Axis(0)).ok_or("there are no points")?;
        let (of_loss, of_batches) = (moments.row(0), moments.row(1));
        let of_shards = (&moments.row(2) - &total).mapv(|variance| variance.max(0.0));
        let least = LEAST_CURVATURE * of_loss.mean().unwrap_or(0.0);
        let curvature = of_loss.mapv(|curvature| curvature.max(least)) + self.prior_curvature()?;
        let scale = curvature.mapv(|curvature| curvature.max(f64::MIN_POSITIVE.sqrt()).sqrt().recip());
        let squared = scale.mapv(|scale| scale * scale);
        let numbers = |values: Array1<f64>| Raw(values.iter().map(|&value| F::of(value)).collect::<Vec<_>>());
        self.search.noise = [numbers(&squared * &of_batches), numbers(of_shards * &squared)];
        self.search.scale = numbers(scale);
        let mut directions = vec![F::zero(); points * dim];
        cx.stream(Who::Server, 0, Purpose::Nodes).normals(&mut directions);
        for direction in directions.chunks_exact_mut(dim) {
            normalize(direction);
        }
        self.search.directions = Raw(directions);
        Ok(())
    }

    /// The curvature of the prior for each parameter, averaged over points. Priors of dependent parameters are treated as if they were not.
    fn prior_curvature(&self) -> Result<Array1<f64>> {
        let distance = F::epsilon().f64().powf(0.25);
        let scores = |sign: f64| -> Result<Array2<F>> {
            let mut scores = Array2::zeros(self.shape());
            self.method.problem.model.prior_score(self.points()?.mapv(|x| x + F::of(sign * distance)).view(), scores.view_mut());
            Ok(scores)
        };
        let change = (scores(-1.0)? - scores(1.0)?).mapv(|change| (change.f64() / (2.0 * distance)).max(0.0));
        change.mean_axis(Axis(0)).ok_or_else(|| "there are no points".into())
    }

    /// The points on both sides of each start, along its direction.
    fn both_sides(&self) -> Vec<F> {
        let Search { points, scale, directions, .. } = &self.search;
        let dim = self.dim();
        let side = |sign: f64| {
            let each = points.0.chunks_exact(dim).zip(directions.0.chunks_exact(dim));
            each.flat_map(move |(point, direction)| {
                let moved = point.iter().zip(direction).zip(&scale.0);
                moved.map(move |((&point, &direction), &scale)| point + F::of(sign * HALF_DISTANCE) * direction * scale)
            })
        };
        side(-1.0).chain(side(1.0)).collect()
    }

    /// A power iteration.
    fn iterate(&mut self, sum: &[F]) -> Result<()> {
        let (points, dim) = self.shape();
        let sides = self.both_sides();
        let scores = self.with_prior(ArrayView2::from_shape((2 * points, dim), &sides)?, sum)?;
        let (before, after) = scores.view().split_at(Axis(0), points);
        let per_distance = F::of(0.5 / HALF_DISTANCE);
        let mut directions: Vec<F> = (&before - &after).iter().map(|&change| per_distance * change).collect();
        let scale = &self.search.scale.0;
        self.search.curvature = 0.0;
        for direction in directions.chunks_exact_mut(dim) {
            direction.iter_mut().zip(scale).for_each(|(value, &scale)| *value *= scale);
            let curvature = normalize(direction);
            // `max` would lose a curvature that is not a number.
            self.search.curvature =
                if curvature > self.search.curvature || curvature.is_nan() { curvature } else { self.search.curvature };
        }
        self.search.directions = Raw(directions);
        Ok(())
    }

    fn largest_curvature(&self) -> f64 {
        // `max` would lose a curvature that is not a number.
        if self.search.curvature.is_nan() { f64::NAN } else { self.search.curvature.max(self.search.earlier_curvature) }
    }

    /// The steps that follow from what was measured.
    fn window_steps(&self) -> WindowSteps {
        let numbers = |values: &Raw<F>| values.0.iter().map(|value| value.f64()).collect();
        let [of_batches, of_shards] = &self.search.noise;
        let (minibatches, shards) = (numbers(of_batches), numbers(of_shards));
        let (curvature, rows) = (self.largest_curvature(), self.method.rows as f64);
        let shortened = self.search.factor;
        let measured = Measurement { minibatches, shards, curvature, rows, knows_only_scale: true, shortened };
        let HamiltonianSteps { batch, step, friction, .. } = hamiltonian_steps(&measured, self.method.batch, None, 0.0);
        WindowSteps { batch, step, friction }
    }

    /// The number of a minibatch in a window, and of the stream of the step's noise.
    fn number(&self, window: u64, step: u64) -> u64 {
        self.method.descent_steps() + window * WINDOW_STEPS + step
    }

    /// Steps and velocities of a new window.
    fn begin_window(&mut self, window: u64, cx: &Context) {
        let (scale, dim) = (&self.search.scale.0, self.dim());
        let mut velocities = vec![F::zero(); self.search.points.0.len()];
        cx.stream(Who::Server, 1 + window, Purpose::Initial).normals(&mut velocities);
        velocities.chunks_exact_mut(dim).for_each(|point| point.iter_mut().zip(scale).for_each(|(v, &scale)| *v *= scale));
        self.search.velocities = Raw(velocities);
        self.search.steps = self.window_steps();
        self.search.before_window = self.search.points.clone();
    }

    /// Calls a function with the state of each point, with the masses that belong to the scale, and its number.
    fn for_each_point(&mut self, mut visit: impl FnMut(ChainState<F>, usize)) {
        let dim = self.dim();
        let Search { points, velocities, scale, .. } = &mut self.search;
        let inverse_mass: Vec<F> = scale.0.iter().map(|&scale| scale * scale).collect();
        let each = points.0.chunks_exact_mut(dim).zip(velocities.0.chunks_exact_mut(dim));
        for (point, (theta, velocity)) in each.enumerate() {
            visit(ChainState { theta, velocity, inverse_mass: Some(&inverse_mass) }, point);
        }
    }

    /// Moves points to where the scores of a step in a window are needed, and asks for them.
    fn ask_in_window(&mut self, window: u64, step: u64, out: &mut Outbox<FindStarts<F>>, cx: &Context) {
        let (dynamics, batch) = (self.dynamics(), self.search.steps.batch);
        let number = self.number(window, step);
        let mut noise = cx.stream(Who::Server, number, Purpose::Noise);
        self.for_each_point(|point, _| dynamics.first_half(point, &mut noise));
        self.search.phase = Phase::Window(window, step);
        self.ask(Task::Minibatch { number, rows: batch }, self.search.points.0.clone(), out);
    }

    fn dynamics(&self) -> SghmcDynamics {
        let WindowSteps { step, friction, .. } = self.search.steps;
        SghmcDynamics { scheme: Scheme::Middle, step, friction, gradient_noise: 0.0, noise: true }
    }

    /// Finishes a step in a window. Returns false if a point has diverged.
    fn finish_step(&mut self, sum: &[F]) -> Result<bool> {
        let scores = self.with_prior(self.points()?, sum)?;
        let dynamics = self.dynamics();
        self.for_each_point(|point, number| {
            dynamics.second_half(point, scores.row(number).as_slice().unwrap_or_default(), None);
        });
        let mut kinetic = 0.0_f64;
        self.for_each_point(|point, _| {
            let masses = point.inverse_mass.unwrap_or_default();
            let energy: f64 = point.velocity.iter().zip(masses).map(|(v, mass)| v.f64().powi(2) / mass.f64()).sum();
            kinetic = kinetic.max(energy / masses.len().max(1) as f64);
        });
        Ok(all_finite(&self.search.points.0) && kinetic < MAX_KINETIC)
    }

    fn record(&self, cx: &mut Context) {
        let dim = self.dim();
        let Search { points, scale, noise: [of_batches, of_shards], factor, .. } = &self.search;
        let [curvature, shortened] = [self.largest_curvature(), *factor].map(|number| vec![F::of(number); dim]);
        let rows = points.0.chunks_exact(dim).chain([scale.0.as_slice(), &of_batches.0, &of_shards.0, &curvature, &shortened]);
        for (number, row) in (0..).zip(rows) {
            cx.record(STARTS, 0, number, dim, row);
        }
    }
}

/// Divides a vector by its length, which is returned.
fn normalize<F: Real>(vector: &mut [F]) -> f64 {
    let length = vector.iter().map(|value| value.f64().powi(2)).sum::<f64>().sqrt();
    if length > 0.0 {
        vector.iter_mut().for_each(|value| *value = F::of(value.f64() / length));
    }
    length
}

impl<F: Real> Server<FindStarts<F>> for StartServer<F> {
    type State = Search<F>;

    fn state(&self) -> impl SerializesAs<Search<F>> {
        &self.search
    }

    fn start(&mut self, out: &mut Outbox<FindStarts<F>>, cx: &mut Context) -> Result<()> {
        let points = self.method.problem.initial_particles(self.method.points as usize, cx).into_raw_vec_and_offset().0;
        let zeros = || Raw(vec![F::zero(); points.len()]);
        (self.search.means, self.search.squares) = (zeros(), zeros());
        self.search.points = Raw(points.clone());
        self.ask(Task::Minibatch { number: 0, rows: self.method.batch }, points, out);
        Ok(())
    }

    fn receive(&mut self, response: Response<FindStarts<F>>, out: &mut Outbox<FindStarts<F>>, cx: &mut Context) -> Result<()> {
        match self.search.phase {
            Phase::Descent(step) => {
                self.descend(step, &response.sum)?;
                let points = self.search.points.0.clone();
                let next = step + 1;
                if next < self.method.descent_steps() {
                    self.search.phase = Phase::Descent(next);
                    self.ask(Task::Minibatch { number: next, rows: self.method.batch }, points, out);
                } else {
                    self.search.phase = Phase::Noise(0);
                    self.ask(Task::Moments, points, out);
                }
            }
            Phase::Noise(window) => {
                self.measure(&response.sum, cx)?;
                self.search.phase = Phase::Curvature(window, 0);
                self.ask(Task::Curvature, self.both_sides(), out);
            }
            Phase::Curvature(window, done) => {
                self.iterate(&response.sum)?;
                if done + 1 < ITERATIONS {
                    self.search.phase = Phase::Curvature(window, done + 1);
                    self.ask(Task::Curvature, self.both_sides(), out);
                } else if window < WINDOWS && self.search.curvature.is_finite() {
                    self.begin_window(window, cx);
                    self.ask_in_window(window, 0, out, cx);
                } else {
                    self.search.phase = Phase::Done;
                    self.record(cx);
                }
            }
            Phase::Window(window, step) => {
                let is_stable = self.finish_step(&response.sum)?;
                if !is_stable && self.search.factor > LEAST_FACTOR {
                    self.search.factor *= SHORTER;
                    self.search.points = self.search.before_window.clone();
                    self.begin_window(window, cx);
                    self.ask_in_window(window, 0, out, cx);
                } else if !is_stable {
                    // Reported as a search that failed.
                    self.search.points.0.fill(F::of(f64::NAN));
                    self.search.phase = Phase::Done;
                    self.record(cx);
                } else if step + 1 < WINDOW_STEPS {
                    self.ask_in_window(window, step + 1, out, cx);
                } else {
                    if window > 0 {
                        self.search.earlier_curvature = self.largest_curvature();
                    }
                    self.search.phase = Phase::Noise(window + 1);
                    self.ask(Task::Moments, self.search.points.0.clone(), out);
                }
            }
            Phase::Done => return Err("a response after the search for starting points".into()),
        }
        Ok(())
    }

    fn progress(&self) -> Progress {
        let (steps, of_window) = (self.method.descent_steps(), WINDOW_STEPS + 1 + ITERATIONS);
        let total = steps + WINDOWS * of_window + 1 + ITERATIONS;
        let done = match self.search.phase {
            Phase::Descent(step) => step,
            Phase::Noise(window) => steps + window * of_window,
            Phase::Curvature(window, iterations) => steps + window * of_window + 1 + iterations,
            Phase::Window(window, step) => steps + window * of_window + 1 + ITERATIONS + step,
            Phase::Done => total,
        };
        Progress { done, total }
    }
}

/// Computes scores on an agent's shard.
pub struct StartAgent<F: Real> {
    id: AgentId,
    method: FindStarts<F>,
    loss: LocalLoss<F>,
}

impl<F: Real> StartAgent<F> {
    /// The scores on this agent's part of a minibatch that has `batch` rows over all agents.
    fn scores(&mut self, points: ArrayView2<F>, batch: usize, minibatch: u64, cx: &Context) -> Array2<F> {
        let mut scores = Array2::zeros(points.raw_dim());
        self.loss.set_share_of_batch(batch, self.method.rows);
        self.loss.add_score(points, minibatch, scores.view_mut(), cx);
        scores
    }

    fn moments(&mut self, points: ArrayView2<F>, cx: &Context) -> Array2<F> {
        let (count, dim) = points.dim();
        let mut moments = Array2::zeros((3 + count, dim));
        let rows = self.loss.rows();
        let share = self.method.share.of(self.id, self.method.problem.agents, rows as f64 / self.method.rows.max(1) as f64);
        if rows == 0 || share <= 0.0 {
            return moments;
        }
        let mut all = Array2::zeros(points.raw_dim());
        self.loss.set_batch(usize::MAX);
        self.loss.add_score(points, 0, all.view_mut(), cx);
        let mean_square = |scores: &Array2<F>| scores.mapv(|score| score * score).sum_axis(Axis(0)) / F::of(count as f64);
        let squares = mean_square(&all);
        // The variance of N times the mean of n of N rows is N (N/n − 1) times that of a row.
        let excess = |batch: usize| (rows as f64 / batch as f64 - 1.0).max(0.0);
        let batch = self.method.batch.min(rows / 2).max(1);
        let curvature = if rows == 1 {
            squares.clone()
        } else {
            self.loss.set_batch(batch);
            let mut variance = Array1::zeros(dim);
            for minibatch in 0..MINIBATCHES {
                let mut scores = Array2::zeros(points.raw_dim());
                self.loss.add_score(points, minibatch, scores.view_mut(), cx);
                scores -= &all;
                variance += &mean_square(&scores);
            }
            variance * F::of(1.0 / (MINIBATCHES as f64 * excess(batch)))
        };
        // As seen by a chain that visits this shard: its scores are divided by the share of visits.
        moments.row_mut(1).scaled_add(F::of(excess(self.method.batch) / share), &curvature);
        moments.row_mut(2).scaled_add(F::of(1.0 / share), &squares);
        // Scores are divided by the temperature T, so that their variance is divided by T². The curvature is divided by T alone.
        moments.row_mut(0).scaled_add(F::of(self.method.problem.temperature), &curvature);
        moments.slice_mut(s![3.., ..]).assign(&all);
        moments
    }
}

impl<F: Real> Agent<FindStarts<F>> for StartAgent<F> {
    type State = ();

    fn state(&self) -> impl SerializesAs<()> {
        &()
    }

    fn perform(&mut self, task: &Task, body: Body<F>, cx: &mut Context) -> Result<((), Body<F>)> {
        let dim = self.method.problem.model.dim();
        let points = ArrayView2::from_shape((body.len() / dim.max(1), dim), &body)?;
        let result = match *task {
            Task::Minibatch { number, rows } => self.scores(points, rows, number, cx),
            Task::Moments => self.moments(points, cx),
            Task::Curvature => self.scores(points, CURVATURE_ROWS, 0, cx),
        };
        Ok(((), result.into_raw_vec_and_offset().0.into()))
    }
}
