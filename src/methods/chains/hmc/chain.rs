//! One chain of the No-U-Turn Sampler, which goes on by one leapfrog step whenever the density at its position is known.

use super::adaptation::{StepSize, Variances, Windows};
use super::trajectory::{Metric, Place, Trajectory, Travelled};
use crate::cluster::{Context, Raw, Result};
use crate::random::{Purpose, Stream, Who};
use serde::{Deserialize, Serialize};

/// The acceptance across which the first step size must change (Hoffman & Gelman 2014, algorithm 4).
const FIRST_ACCEPTANCE: f64 = 0.8;
/// Step sizes to try at most.
const MAX_TRIALS: u32 = 100;

/// How chains learn.
#[derive(Clone, Debug)]
pub struct Learning {
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
    place: Place,
    /// Iterations done.
    iterations: u64,
    /// Densities so far: addresses of random numbers.
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
    momentum: Raw<f64>,
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
    pub travelled: Travelled,
    /// Its step size.
    pub step: f64,
}

impl Chain {
    /// A chain that starts here, with a first guess of the step size.
    pub fn new(number: u32, position: Vec<f64>, guess: f64, learning: &Learning) -> Self {
        let dim = position.len();
        Self {
            number,
            stage: Stage::Start(Raw(position)),
            place: Place::default(),
            iterations: 0,
            evaluations: 0,
            variances: Raw(vec![1.0; dim]),
            step: StepSize::new(guess, learning.acceptance),
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
    pub fn draw(&self) -> &Place {
        &self.place
    }

    /// Iterations done.
    pub fn iterations(&self) -> u64 {
        self.iterations
    }

    /// Goes on with the log density and its gradient at [`Self::position`]. Returns the iteration that this ends, if any.
    ///
    /// # Errors
    /// If the chain cannot begin.
    pub fn go_on(&mut self, log_density: f64, score: Vec<f64>, learning: &Learning, cx: &Context) -> Result<Option<Iteration>> {
        self.evaluations += 1;
        let mut random = cx.stream(Who::Chain(self.number), self.evaluations, Purpose::Trajectory);
        let step = self.step_size(learning);
        match &mut self.stage {
            Stage::Start(position) => {
                if !(log_density.is_finite() && score.iter().all(|value| value.is_finite())) {
                    return Err(format!(
                        "chain {} starts where the posterior or its gradient is not finite: check the data and the prior",
                        self.number
                    )
                    .into());
                }
                self.place = Place { position: std::mem::take(position), score: Raw(score), log_density };
                self.try_step(&mut random, cx);
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
                    *trial.trajectory = Trajectory::new(self.place.clone(), trial.momentum.0.clone(), metric, &mut random);
                } else {
                    self.step = StepSize::new(trial.size, learning.acceptance);
                    self.begin_trajectory(learning, &mut random, cx);
                }
                Ok(None)
            }
            Stage::Trajectory(trajectory) => {
                let metric = Metric { step, variances: &self.variances.0 };
                let Some((place, travelled)) = trajectory.go_on(log_density, score, metric, &mut random) else { return Ok(None) };
                self.place = place;
                let iteration = Iteration { number: self.iterations, travelled, step };
                self.iterations += 1;
                let must_try = self.iterations <= learning.burn_in && self.learn(travelled.acceptance, learning);
                if must_try {
                    self.try_step(&mut random, cx)
                } else {
                    self.begin_trajectory(learning, &mut random, cx)
                }
                Ok(Some(iteration))
            }
        }
    }

    fn step_size(&self, learning: &Learning) -> f64 {
        if self.iterations < learning.burn_in { self.step.current() } else { self.step.found() }
    }

    /// Learns from an iteration. Returns whether masses have changed, so that the step size must be found anew.
    fn learn(&mut self, acceptance: f64, learning: &Learning) -> bool {
        self.step.update(acceptance);
        if learning.windows.contains(self.iterations) {
            self.window.add(&self.place.position.0);
        }
        if !learning.windows.ends_after(self.iterations) {
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
    fn try_step(&mut self, random: &mut Stream, cx: &Context) {
        let (momentum, size) = (self.momentum(cx), self.step.current());
        let metric = Metric { step: size, variances: &self.variances.0 };
        let trajectory = Box::new(Trajectory::new(self.place.clone(), momentum.clone(), metric, random));
        self.stage = Stage::Trial(Trial { trajectory, momentum: Raw(momentum), size, grows: None, trials: 0 });
    }

    fn begin_trajectory(&mut self, learning: &Learning, random: &mut Stream, cx: &Context) {
        let metric = Metric { step: self.step_size(learning), variances: &self.variances.0 };
        let trajectory = Trajectory::new(self.place.clone(), self.momentum(cx), metric, random);
        self.stage = Stage::Trajectory(Box::new(trajectory));
    }
}
