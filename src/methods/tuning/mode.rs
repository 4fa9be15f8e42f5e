//! The mode of a posterior and its curvature there, by Newton steps that use all rows of all agents.

use super::prior::prior_curvature;
use crate::cluster::{Agent, AgentId, Body, Context, Method, Outbox, Progress, Raw, Response, Result, SerializesAs, Server};
use crate::methods::common::problem::{LocalLoss, Problem};
use ndarray::{Array1, Array2, ArrayView2};
use ndarray_linalg::{FactorizeC, SolveC, UPLO};
use serde::{Deserialize, Serialize};

/// The group of records with the mode θ*, then −∇ Σ_k L_k/α there, then the rows of the curvature. If no mode was found, its only value is
/// the code of a [`NoMode`].
pub const MODE: &str = "mode";

/// The steps end when the next one would be shorter than this in units of posterior standard deviations.
const TOLERANCE: f64 = 1e-4;
/// More evaluations mean that the posterior has no mode that Newton steps find.
const MAX_EVALUATIONS: u32 = 100;
/// The relative error of −log p, which is a sum over all rows.
const ROUNDING: f64 = 1e-11;
/// A step must lower −log p by this share of what its slope promises (Armijo's condition).
const SUFFICIENT_DECREASE: f64 = 1e-4;

/// Finds the mode of a posterior whose model has curvature. Each row must be at one agent, or it would count several times.
#[derive(Clone)]
pub struct FindMode {
    /// The problem.
    pub problem: Problem<f64>,
}

impl Method for FindMode {
    const NAME: &'static str = "find_mode";
    type Number = f64;
    type Task = ();
    type Report = ();
    type Server = ModeServer;
    type Agent = ModeAgent;

    fn agents(&self) -> u32 {
        self.problem.agents
    }

    fn server(&self, saved: Option<Search>) -> Result<ModeServer> {
        let zeros = || Raw(vec![0.0; self.problem.model.dim()]);
        let fresh = || Search { trial: zeros(), evaluations: 0, step: None };
        Ok(ModeServer { problem: self.problem.clone(), search: saved.unwrap_or_else(fresh) })
    }

    fn agent(&self, id: AgentId, _saved: Option<()>) -> Result<ModeAgent> {
        Ok(ModeAgent { loss: self.problem.open(id, usize::MAX)? })
    }
}

/// Why no mode of a posterior was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum NoMode {
    /// The density or its derivatives are not finite at θ = 0 or on the way.
    NotFinite,
    /// The steps ended at a point around which the density is constant in some direction, or grows.
    Flat,
    /// The steps came to no end.
    NotReached,
}

impl NoMode {
    const ALL: [Self; 3] = [Self::NotFinite, Self::Flat, Self::NotReached];

    fn code(self) -> f64 {
        f64::from(self as u8)
    }

    /// The reason with this code.
    pub fn with_code(code: f64) -> Option<Self> {
        Self::ALL.into_iter().find(|reason| reason.code() == code)
    }
}

impl std::fmt::Display for NoMode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::NotFinite => f.write_str("its density or the derivatives of it are not finite"),
            Self::Flat => {
                f.write_str("it is flat in some direction, as with a flat prior and few rows or columns that repeat each other")
            }
            Self::NotReached => write!(f, "Newton's method did not converge in {MAX_EVALUATIONS} evaluations"),
        }
    }
}

/// A search for the mode: the trial point, and the step that it is part of.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Search {
    trial: Raw<f64>,
    evaluations: u32,
    step: Option<NewtonStep>,
}

/// A step from a point with −log p = `value` along `direction`.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct NewtonStep {
    from: Raw<f64>,
    value: f64,
    direction: Raw<f64>,
    /// The slope of log p along the direction: the square of the step's length in posterior standard deviations.
    slope: f64,
    /// The part of the step that is tried.
    fraction: f64,
    /// The curvature of the data at each parameter that is integrated out.
    of_data: Raw<f64>,
}

/// Sends trial points to all agents and moves on with the sum of what they return.
pub struct ModeServer {
    problem: Problem<f64>,
    search: Search,
}

/// The loss, its negative gradient and its curvature at a point, and the same of −log p.
struct Surface {
    value: f64,
    /// The value to compare with that of the step's first point.
    value_in_step: f64,
    loss_score: Array1<f64>,
    score: Array1<f64>,
    curvature: Array2<f64>,
    /// The curvature of the data at each parameter that is integrated out.
    of_data: Raw<f64>,
}

impl Surface {
    /// Integrates out the parameters z that are standard normal a priori and multiplied by e^s, by Laplace's method: −log p gains half of
    /// Σ log C_zz. The curvature C_zz = 1 + G has a part G of the data, which grows with e^2s. In a step, G is taken not to depend on other
    /// parameters: it is that of the step's first point, apart from the factor e^2s.
    fn integrate_out(&mut self, point: &[f64], scale: usize, standard_normal: &[usize], step: Option<&NewtonStep>) {
        for &z in standard_normal {
            let total = self.curvature[[z, z]];
            let of_data = total - 1.0;
            self.of_data.0.push(of_data);
            self.value += 0.5 * total.ln();
            let first = step.and_then(|step| Some((step.of_data.0.get(self.of_data.0.len() - 1)?, step.from.0[scale])));
            let in_step = first.map_or(of_data, |(of_data, from)| of_data * (2.0 * (point[scale] - from)).exp());
            self.value_in_step += 0.5 * in_step.ln_1p();
            self.score[scale] -= of_data / total;
            self.curvature[[scale, scale]] += 2.0 * of_data / (total * total);
            // Gauss-Newton matrices lack what the scores of the data add to the curvature in (s, z): without it steps would be twice as long.
            self.curvature[[scale, scale]] += point[z] * point[z] * of_data / total;
        }
    }
}

impl ModeServer {
    /// −log p with its derivatives, from the sum over agents.
    fn surface(&self, sum: &[f64]) -> Result<Surface> {
        let model = self.problem.model.as_ref();
        let dim = model.dim();
        let (loss, rest) = sum.split_first().ok_or("the agents returned nothing")?;
        let (loss_score, curvature) = rest.split_at_checked(dim).ok_or("the agents returned too little")?;
        let theta = ArrayView2::from_shape((1, dim), &self.search.trial.0)?;
        let mut log_prior = [0.0];
        model.log_prior(theta, &mut log_prior);
        let mut score = Array2::zeros((1, dim));
        model.prior_score(theta, score.view_mut());
        let loss_score = Array1::from(loss_score.to_vec());
        let curvature = Array2::from_shape_vec((dim, dim), curvature.to_vec())? + prior_curvature(model, &self.search.trial.0);
        let (value, score) = (loss - log_prior[0], score.row(0).to_owned() + &loss_score);
        let mut surface = Surface { value, value_in_step: value, score, loss_score, curvature, of_data: Raw(Vec::new()) };
        for (scale, standard_normal) in model.log_scales() {
            surface.integrate_out(&self.search.trial.0, scale, &standard_normal, self.search.step.as_ref());
        }
        Ok(surface)
    }

    fn fail(&self, reason: NoMode, cx: &mut Context) {
        cx.record(MODE, 0, 0, 1, &[reason.code()]);
    }

    fn try_point(&mut self, out: &mut Outbox<FindMode>, cx: &mut Context) {
        self.search.evaluations += 1;
        if self.search.evaluations > MAX_EVALUATIONS {
            self.fail(NoMode::NotReached, cx);
            return;
        }
        out.request(0..self.problem.agents, ()).with(self.search.trial.0.clone()).sum();
    }
}

/// The direction of a Newton step, and whether the curvature is positive definite. Where it is not, as far from a mode, as much of the
/// identity is added as is needed.
fn direction(surface: &Surface) -> std::result::Result<(Array1<f64>, bool), NoMode> {
    let dim = surface.score.len();
    if !surface.score.iter().chain(&surface.curvature).all(|value| value.is_finite()) {
        return Err(NoMode::NotFinite);
    }
    if surface.curvature.iter().all(|value| *value == 0.0) {
        return Err(NoMode::Flat);
    }
    let scale = surface.curvature.diag().iter().map(|value| value.abs()).sum::<f64>() / dim as f64;
    for added in std::iter::once(0.0).chain((-6..=6).map(|power| 10_f64.powi(power) * scale)) {
        let curvature = &surface.curvature + &(Array2::<f64>::eye(dim) * added);
        if let Ok(factor) = curvature.factorizec(UPLO::Lower) {
            let direction = factor.solvec(&surface.score).map_err(|_| NoMode::NotFinite)?;
            return Ok((direction, added == 0.0));
        }
    }
    Err(NoMode::NotReached)
}

impl Server<FindMode> for ModeServer {
    type State = Search;

    fn state(&self) -> impl SerializesAs<Search> {
        &self.search
    }

    fn start(&mut self, out: &mut Outbox<FindMode>, cx: &mut Context) -> Result<()> {
        self.try_point(out, cx);
        Ok(())
    }

    fn receive(&mut self, response: Response<FindMode>, out: &mut Outbox<FindMode>, cx: &mut Context) -> Result<()> {
        let surface = self.surface(&response.sum)?;
        if let Some(step) = &mut self.search.step {
            let rounding = ROUNDING * step.value.abs();
            let wanted = step.value - SUFFICIENT_DECREASE * step.fraction * step.slope + rounding;
            if surface.value_in_step.is_nan() || surface.value_in_step > wanted {
                step.fraction *= 0.5;
                let point = step.from.0.iter().zip(&step.direction.0).map(|(from, by)| from + step.fraction * by);
                self.search.trial = Raw(point.collect());
                self.try_point(out, cx);
                return Ok(());
            }
        } else if !surface.value.is_finite() {
            self.fail(NoMode::NotFinite, cx);
            return Ok(());
        }
        let (direction, is_definite) = match direction(&surface) {
            Ok(found) => found,
            Err(reason) => {
                self.fail(reason, cx);
                return Ok(());
            }
        };
        let slope = direction.dot(&surface.score);
        if slope <= TOLERANCE * TOLERANCE {
            if !is_definite {
                self.fail(NoMode::Flat, cx);
                return Ok(());
            }
            let dim = surface.score.len();
            for (draw, row) in (0..).zip([&self.search.trial.0, &surface.loss_score.to_vec()]) {
                cx.record(MODE, 0, draw, dim, row);
            }
            for (draw, row) in (2..).zip(surface.curvature.rows()) {
                cx.record(MODE, 0, draw, dim, &row.to_vec());
            }
            return Ok(());
        }
        let from = self.search.trial.clone();
        self.search.trial = Raw(from.0.iter().zip(&direction).map(|(from, by)| from + by).collect());
        let direction = Raw(direction.to_vec());
        self.search.step =
            Some(NewtonStep { from, value: surface.value, direction, slope, fraction: 1.0, of_data: surface.of_data });
        self.try_point(out, cx);
        Ok(())
    }

    fn progress(&self) -> Progress {
        Progress { done: u64::from(self.search.evaluations), total: u64::from(MAX_EVALUATIONS) }
    }
}

/// Computes the loss of an agent's shard, its negative gradient and its curvature.
pub struct ModeAgent {
    loss: LocalLoss<f64>,
}

impl Agent<FindMode> for ModeAgent {
    type State = ();

    fn state(&self) -> impl SerializesAs<()> {
        &()
    }

    fn perform(&mut self, _task: &(), body: Body<f64>, cx: &mut Context) -> Result<((), Body<f64>)> {
        let dim = body.len();
        let theta = ArrayView2::from_shape((1, dim), &body)?;
        let (mut loss, mut score) = ([0.0], Array2::zeros((1, dim)));
        let mut curvature = Array2::zeros((dim, dim));
        self.loss.loss(theta, 0, &mut loss, cx);
        self.loss.add_score(theta, 0, score.view_mut(), cx);
        self.loss.add_full_curvature(theta, 0, curvature.view_mut(), cx);
        let all: Vec<f64> = loss.into_iter().chain(score).chain(curvature).collect();
        Ok(((), all.into()))
    }
}
