//! One chain of the No-U-Turn Sampler, which advances by one leapfrog step whenever the density at its position is known.

use super::adaptation::{StepSize, Variances, Windows};
use super::trajectory::{Metric, Point, Trajectory, TrajectoryStats};
use crate::cluster::{Context, Raw, Result};
use crate::random::{Purpose, Stream, Who};
use serde::{Deserialize, Serialize};

/// The acceptance that the first step size must cross (Hoffman & Gelman 2014, algorithm 4, with the value of Stan).
const FIRST_ACCEPTANCE: f64 = 0.8;
/// Step sizes to try at most.
const MAX_TRIALS: u32 = 100;

/// How chains adapt step sizes and variances during burn-in.
#[derive(Clone, Debug)]
pub struct Adaptation {
    /// Iterations before the first draw.
    pub burn_in: u64,
    /// When variances are estimated.
    pub windows: Windows,
    /// The acceptance that step sizes aim at.
    pub acceptance: f64,
}

/// A chain.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Chain {
    number: u32,
    stage: Stage,
    /// The last draw; empty as long as its density is not known.
    point: Point,
    /// Iterations done.
    iterations: u64,
    /// Densities evaluated so far, which are part of the addresses of random numbers.
    evaluations: u64,
    /// The inverse masses.
    variances: Raw<f64>,
    step: StepSize,
    window: Variances,
}

/// What the density at a chain's position is needed for.
#[derive(Clone, Debug, Serialize, Deserialize)]
enum Stage {
    /// To begin.
    Start(Raw<f64>),
    /// To find a first step size.
    Trial(Trial),
    /// To go on along a trajectory.
    Trajectory(Box<Trajectory>),
}

/// A step that is tried with larger or smaller sizes until its acceptance crosses a value.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Trial {
    /// The trajectory whose first step is tried.
    trajectory: Box<Trajectory>,
    size: f64,
    /// Whether sizes grow; unknown before the first trial.
    grows: Option<bool>,
    trials: u32,
}

/// An iteration of a chain.
#[derive(Clone, Debug, PartialEq)]
pub struct Iteration {
    /// Its number, from 0 on.
    pub number: u64,
    /// The trajectory.
    pub stats: TrajectoryStats,
    /// Its step size.
    pub step: f64,
}

impl Chain {
    /// A chain that starts here, with a first guess of the step size.
    pub fn new(number: u32, position: Vec<f64>, guess: f64, adaptation: &Adaptation) -> Self {
        let dim = position.len();
        Self {
            number,
            stage: Stage::Start(Raw(position)),
            point: Point::default(),
            iterations: 0,
            evaluations: 0,
            variances: Raw(vec![1.0; dim]),
            step: StepSize::new(guess, adaptation.acceptance),
            window: Variances::new(dim),
        }
    }

    /// Where the density is needed next.
    pub fn position(&self) -> &[f64] {
        match &self.stage {
            Stage::Start(position) => &position.0,
            Stage::Trial(trial) => trial.trajectory.position(),
            Stage::Trajectory(trajectory) => trajectory.position(),
        }
    }

    /// The last draw.
    pub fn draw(&self) -> &Point {
        &self.point
    }

    /// Iterations done.
    pub fn iterations(&self) -> u64 {
        self.iterations
    }

    /// Advances with the log density and its gradient at [`Self::position`]. Returns the iteration, if this completes one.
    ///
    /// # Errors
    /// If the chain starts where the density is not finite, or finds no step size.
    pub fn advance(
        &mut self,
        log_density: f64,
        score: Vec<f64>,
        adaptation: &Adaptation,
        cx: &Context,
    ) -> Result<Option<Iteration>> {
        self.evaluations += 1;
        let mut random = cx.stream(Who::Chain(self.number), self.evaluations, Purpose::Trajectory);
        let step = self.step_size(adaptation);
        match &mut self.stage {
            Stage::Start(position) => {
                if !(log_density.is_finite() && score.iter().all(|value| value.is_finite())) {
                    return Err(format!(
                        "chain {} starts where the posterior or its gradient is not finite: check the data and the prior",
                        self.number
                    )
                    .into());
                }
                self.point = Point { position: std::mem::take(position), score: Raw(score), log_density };
                self.begin_trial(&mut random, cx);
                Ok(None)
            }
            Stage::Trial(trial) => {
                let metric = Metric { step: trial.size, variances: &self.variances.0 };
                let is_accepted = trial.trajectory.first_acceptance(log_density, &score, metric) > FIRST_ACCEPTANCE;
                let grows = *trial.grows.get_or_insert(is_accepted);
                trial.trials += 1;
                if trial.trials > MAX_TRIALS {
                    return Err(format!("chain {} finds no step size: check the data and the prior", self.number).into());
                }
                if is_accepted == grows {
                    trial.size *= if grows { 2.0 } else { 0.5 };
                    let metric = Metric { step: trial.size, variances: &self.variances.0 };
                    trial.trajectory.begin_step(metric);
                } else {
                    self.step = StepSize::new(trial.size, adaptation.acceptance);
                    self.begin_trajectory(adaptation, &mut random, cx);
                }
                Ok(None)
            }
            Stage::Trajectory(trajectory) => {
                let metric = Metric { step, variances: &self.variances.0 };
                let Some((point, stats)) = trajectory.advance(log_density, score, metric, &mut random) else { return Ok(None) };
                self.point = point;
                let iteration = Iteration { number: self.iterations, stats, step };
                self.iterations += 1;
                let is_burn_in = self.iterations <= adaptation.burn_in;
                let masses_changed = if is_burn_in { self.adapt(stats.acceptance, adaptation) } else { false };
                if masses_changed {
                    self.begin_trial(&mut random, cx)
                } else {
                    self.begin_trajectory(adaptation, &mut random, cx)
                }
                Ok(Some(iteration))
            }
        }
    }

    fn step_size(&self, adaptation: &Adaptation) -> f64 {
        if self.iterations < adaptation.burn_in { self.step.current() } else { self.step.found() }
    }

    /// Adapts to an iteration. Returns whether masses have changed, so that the step size must be found anew.
    fn adapt(&mut self, acceptance: f64, adaptation: &Adaptation) -> bool {
        self.step.update(acceptance);
        if adaptation.windows.contains(self.iterations) {
            self.window.add(&self.point.position.0);
        }
        if !adaptation.windows.ends_after(self.iterations) {
            return false;
        }
        let window = std::mem::replace(&mut self.window, Variances::new(self.variances.0.len()));
        match window.estimate() {
            Some(variances) => {
                self.variances = Raw(variances);
                true
            }
            None => false,
        }
    }

    fn momentum(&self, cx: &Context) -> Vec<f64> {
        let mut noise = cx.stream(Who::Chain(self.number), self.evaluations, Purpose::Noise);
        Metric { step: 0.0, variances: &self.variances.0 }.draw_momentum(&mut noise)
    }

    /// Begins to look for a step size.
    fn begin_trial(&mut self, random: &mut Stream, cx: &Context) {
        let (momentum, size) = (self.momentum(cx), self.step.current());
        let metric = Metric { step: size, variances: &self.variances.0 };
        let trajectory = Box::new(Trajectory::new(self.point.clone(), momentum, metric, random));
        self.stage = Stage::Trial(Trial { trajectory, size, grows: None, trials: 0 });
    }

    fn begin_trajectory(&mut self, adaptation: &Adaptation, random: &mut Stream, cx: &Context) {
        let metric = Metric { step: self.step_size(adaptation), variances: &self.variances.0 };
        let trajectory = Trajectory::new(self.point.clone(), self.momentum(cx), metric, random);
        self.stage = Stage::Trajectory(Box::new(trajectory));
    }
}
