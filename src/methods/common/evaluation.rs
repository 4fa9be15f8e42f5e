//! Evaluation of particles and chains: their predictions for test rows, and the kernelized Stein discrepancy from the posterior.
//!
//! The discrepancy needs ∇log p at the particles: every agent contributes the score of its shard's loss on all of its rows, and the
//! server receives the sum. The first agent appends the particles to its score, so that the server does not have to keep them.

use crate::cluster::record::METRICS;
use crate::cluster::{AgentId, Body, BoxError, Context, Raw, Result};
use crate::data::Shard;
use crate::kernels::ksd::ksd;
use crate::kernels::rbf::Bandwidth;
use crate::methods::common::predict::{Predicted, predict};
use crate::methods::common::problem::{LocalLoss, OpenShard, Problem};
use crate::methods::common::with_evaluation::{EvaluatedRound, Evaluator, LocalEvaluator};
use crate::metrics::{Quality, Tally};
use crate::models::{Model, Output, Scratch};
use crate::number::Real;
use ndarray::{Array2, ArrayView1, ArrayView2, Axis};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// What is measured of the particles every `every` rounds and after the last.
#[derive(Clone)]
pub struct Evaluation<F> {
    /// The model that predicts.
    pub model: Arc<dyn Model<F>>,
    /// Rounds between evaluations.
    pub every: u64,
    /// Opens an agent's part of the test rows, if there are any.
    pub test_rows: Option<OpenShard<F>>,
    /// Whether each particle's own predictions are evaluated, beside their average.
    pub per_particle: bool,
    /// From this round on, predictions are also averaged over evaluations.
    pub average_from: Option<u64>,
    /// The problem, if the discrepancy of the particles from its posterior is measured.
    pub ksd: Option<Problem<F>>,
    /// Whether the particles of all evaluations are kept: each particle is a chain of the group [`PARTICLE_PATHS`].
    pub particle_paths: bool,
}

/// The group of draws that holds the paths of the particles over the evaluated rounds.
pub const PARTICLE_PATHS: &str = "particle_paths";
/// The table of the lowest and highest accuracy or RMSE over agents, each on its part of the test rows: a row for each evaluation.
pub const SPREAD_OVER_AGENTS: &str = "spread";

/// An agent's contribution: metrics of predictions for its test rows, if there are any.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct PredictionTallies {
    /// Predictions averaged over particles.
    over_particles: Option<Tally>,
    /// Predictions of each particle.
    per_particle: Option<Tally>,
    /// Predictions averaged over particles and evaluations.
    over_evaluations: Option<Tally>,
}

/// The running mean of the predictions for an agent's test rows over several evaluations; its size does not depend on their number.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct RunningMean {
    /// Number of evaluations.
    count: u64,
    /// Rows × outputs.
    mean: Raw<f64>,
    /// Rows.
    density: Raw<f64>,
}

impl RunningMean {
    /// Adds the predictions of one evaluation for all rows.
    fn add(&mut self, mean: &[f64], density: &[f64]) {
        self.count += 1;
        let weight = 1.0 / self.count as f64;
        for (average, values) in [(&mut self.mean.0, mean), (&mut self.density.0, density)] {
            average.resize(values.len(), 0.0);
            average.iter_mut().zip(values).for_each(|(average, value)| *average += weight * (value - *average));
        }
    }
}

impl PredictionTallies {
    fn merge(&mut self, other: &Self) -> Result<()> {
        for (sum, other) in [
            (&mut self.over_particles, &other.over_particles),
            (&mut self.per_particle, &other.per_particle),
            (&mut self.over_evaluations, &other.over_evaluations),
        ] {
            if let (Some(sum), Some(other)) = (sum, other) {
                sum.merge(other)?;
            }
        }
        Ok(())
    }
}

/// The lowest and the highest accuracy or RMSE over agents.
#[derive(Clone, Copy, Debug, Default)]
struct Spread {
    agents: u32,
    range: Option<(f64, f64)>,
}

impl Spread {
    /// Adds an agent; an agent without test rows changes nothing.
    fn add(&mut self, quality: &Quality) {
        self.agents += 1;
        let (_, value) = quality.main();
        if !value.is_nan() {
            let (lowest, highest) = self.range.unwrap_or((value, value));
            self.range = Some((lowest.min(value), highest.max(value)));
        }
    }

    /// Both values with their column names, if there are several agents; the names follow from the quality on all test rows.
    fn values(self, quality: &Quality) -> Option<[(String, f64); 2]> {
        let (name, _) = quality.main();
        let (lowest, highest) = self.range.filter(|_| self.agents > 1)?;
        Some([(format!("{name}_lowest"), lowest), (format!("{name}_highest"), highest)])
    }
}

impl<F: Real> Evaluator<F> for Evaluation<F> {
    type Local = LocalEvaluation<F>;

    fn every(&self) -> u64 {
        self.every.max(1)
    }

    fn needs_agents(&self) -> bool {
        self.test_rows.is_some() || self.ksd.is_some()
    }

    fn sums_bodies(&self) -> bool {
        self.ksd.is_some()
    }

    fn open(&self, agent: AgentId) -> Result<LocalEvaluation<F>> {
        let test_rows = self.test_rows.as_ref().map(|open| open(agent)).transpose()?;
        let mut scratch = Scratch::new();
        test_rows.as_ref().map_or(Ok(()), |shard| shard.check(self.model.as_ref(), &mut scratch))?;
        Ok(LocalEvaluation {
            model: self.model.clone(),
            test_rows,
            per_particle: self.per_particle,
            average_from: self.average_from,
            appends_particles: agent == 0,
            loss: self.ksd.as_ref().map(|problem| problem.open(agent, usize::MAX)).transpose()?,
            scratch,
        })
    }

    /// Records the particles as a draw. If the method has skipped rounds that were to be evaluated, these particles are also their draws.
    fn begin(&self, last_evaluated: u64, round: u64, theta: &[F], cx: &mut Context) {
        if !self.particle_paths {
            return;
        }
        for draw in last_evaluated / self.every()..round.div_ceil(self.every()) {
            for (particle, theta) in (0..).zip(theta.chunks_exact(self.model.dim())) {
                let mut parameters = Vec::with_capacity(theta.len());
                self.model.append_parameters(theta, &mut parameters);
                cx.record(PARTICLE_PATHS, particle, draw, theta.len(), &parameters);
            }
        }
    }

    /// Writes an evaluation; `score` is the sum of the shards' scores at the particles, followed by the particles.
    fn finish(
        &self,
        evaluated: EvaluatedRound,
        contributions: Vec<PredictionTallies>,
        score: Body<F>,
        cx: &mut Context,
    ) -> Result<()> {
        let EvaluatedRound { round, seconds } = evaluated;
        let mut spread = Spread::default();
        contributions
            .iter()
            .filter_map(|tallies| tallies.over_particles.as_ref())
            .for_each(|tally| spread.add(&tally.finish().quality));
        let mut contributions = contributions.into_iter();
        let mut all = contributions.next().unwrap_or_default();
        contributions.try_for_each(|tallies| all.merge(&tallies))?;
        let mut values = vec![("seconds".to_owned(), seconds)];
        if let Some(tally) = &all.over_particles {
            let metrics = tally.finish();
            values.extend(metrics.values());
            if let Some(range) = spread.values(&metrics.quality) {
                cx.log_row(SPREAD_OVER_AGENTS, round, range);
            }
            if let Quality::Classes(quality) = &metrics.quality {
                for bin in &quality.reliability {
                    let edges = [("lower", bin.lower), ("upper", bin.upper), ("rows", bin.rows as f64)];
                    cx.log_row(
                        "reliability",
                        round,
                        edges.into_iter().chain([("accuracy", bin.accuracy), ("confidence", bin.confidence)]),
                    );
                }
                for (class, (&accuracy, &rows)) in quality.class_accuracy.iter().zip(&quality.class_rows).enumerate() {
                    cx.log_row("classes", round, [("class", class as f64), ("rows", rows as f64), ("accuracy", accuracy)]);
                }
            }
        }
        // Before round `average_from`, the columns of the posterior hold NaN.
        let missing = Tally::number();
        let over_evaluations = self.average_from.map(|_| all.over_evaluations.as_ref());
        let tallies = [("particle", all.per_particle.as_ref().map(Some)), ("posterior", over_evaluations)];
        for (prefix, tally) in tallies.into_iter().filter_map(|(prefix, tally)| Some((prefix, tally?))) {
            let main = all.over_particles.as_ref().map_or("rmse", |tally| tally.finish().quality.main().0);
            let metrics = tally.unwrap_or(&missing).finish();
            values.push((format!("{prefix}_{main}"), metrics.quality.main().1));
            values.push((format!("{prefix}_log_likelihood"), metrics.log_likelihood));
        }
        if self.ksd.is_some() {
            let (score, theta) = score.split_at(score.len() / 2);
            let shape = (theta.len() / self.model.dim(), self.model.dim());
            let theta = ArrayView2::from_shape(shape, theta)?;
            let mut full = Array2::zeros(shape);
            self.model.prior_score(theta, full.view_mut());
            full += &ArrayView2::from_shape(shape, score)?;
            let squared = ksd(theta, full.view(), Bandwidth::Paper.of(theta));
            // Rounding may give a value below 0. `max` would turn the NaN of diverged particles into a perfect score.
            values.push(("ksd".into(), if squared < 0.0 { 0.0 } else { squared.sqrt() }));
        }
        cx.log_row(METRICS, round, values);
        Ok(())
    }
}

/// Evaluates particles on an agent's test rows.
pub struct LocalEvaluation<F> {
    model: Arc<dyn Model<F>>,
    test_rows: Option<Shard<F>>,
    per_particle: bool,
    average_from: Option<u64>,
    appends_particles: bool,
    loss: Option<LocalLoss<F>>,
    scratch: Scratch<F>,
}

impl<F: Real> LocalEvaluator<F> for LocalEvaluation<F> {
    type State = RunningMean;
    type Contribution = PredictionTallies;

    fn evaluate(
        &mut self,
        running_mean: &mut RunningMean,
        round: u64,
        particles: &[F],
        cx: &Context,
    ) -> Result<(PredictionTallies, Body<F>)> {
        let theta = ArrayView2::from_shape((particles.len() / self.model.dim(), self.model.dim()), particles)?;
        let mut tallies = PredictionTallies::default();
        if let Some(test_rows) = &self.test_rows {
            let (mut means, mut densities, mut targets) = (Vec::new(), Vec::new(), Vec::new());
            let is_averaged = self.average_from.is_some_and(|from| round >= from);
            let tally = evaluate_with(self.model.as_ref(), theta, test_rows, &mut self.scratch, |predicted| {
                if is_averaged {
                    means.extend(predicted.mean);
                    densities.extend(predicted.density);
                    targets.extend(predicted.targets);
                }
            })?;
            tallies.over_particles = Some(tally);
            if is_averaged {
                running_mean.add(&means, &densities);
                let mut tally = tally_for(self.model.as_ref());
                let outputs = means.len() / targets.len().max(1);
                let mean = ArrayView2::from_shape((targets.len(), outputs), &running_mean.mean.0)?;
                tally.add(mean, &running_mean.density.0, ArrayView1::from(&targets));
                tallies.over_evaluations = Some(tally);
            }
            if self.per_particle {
                let mut each = theta
                    .outer_iter()
                    .map(|particle| evaluate(self.model.as_ref(), particle.insert_axis(Axis(0)), test_rows, &mut self.scratch));
                let mut sum = each.next().ok_or("there are no particles")??;
                each.try_for_each(|one| Ok::<_, BoxError>(sum.merge(&one?)?))?;
                tallies.per_particle = Some(sum);
            }
        }
        let mut score = Body::empty();
        if let Some(loss) = &mut self.loss {
            let mut own_score = Array2::zeros(theta.dim());
            loss.add_score(theta, round, own_score.view_mut(), cx);
            let mut score_and_particles = own_score.into_raw_vec_and_offset().0;
            match self.appends_particles {
                true => score_and_particles.extend_from_slice(particles),
                false => score_and_particles.resize(2 * particles.len(), num_traits::Zero::zero()),
            }
            score = score_and_particles.into();
        }
        Ok((tallies, score))
    }
}

/// An empty tally of the metrics for the model's kind of predictions.
fn tally_for<F: Real>(model: &dyn Model<F>) -> Tally {
    match model.output() {
        Output::Classes(classes) => Tally::classes(classes),
        Output::Number | Output::Count | Output::Nothing => Tally::number(),
    }
}

/// The metrics of these particles (N × d), summed over a shard. The RMSE is in the dataset's own units.
///
/// # Errors
/// If the model predicts nothing.
pub fn evaluate<F: Real>(
    model: &dyn Model<F>,
    theta: ArrayView2<F>,
    shard: &Shard<F>,
    scratch: &mut Scratch<F>,
) -> Result<Tally, BoxError> {
    evaluate_with(model, theta, shard, scratch, drop)
}

/// As [`evaluate`]; every block of predictions is also passed to `inspect`.
fn evaluate_with<F: Real>(
    model: &dyn Model<F>,
    theta: ArrayView2<F>,
    shard: &Shard<F>,
    scratch: &mut Scratch<F>,
    mut inspect: impl FnMut(Predicted),
) -> Result<Tally, BoxError> {
    let mut tally = tally_for(model);
    predict(model, theta, shard, scratch, |predicted| {
        tally.add(predicted.mean.view(), &predicted.density, ArrayView1::from(&predicted.targets));
        inspect(predicted);
        Ok::<_, BoxError>(())
    })?;
    Ok(tally)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::metrics::Quality;
    use crate::models::DataSchema;
    use crate::models::logistic::LogisticSettings;
    use crate::models::network::NetworkSettings;
    use ndarray::{Array1, array};

    /// Targets in units of 20: errors are 20 times as large as in the model's own units, densities a twentieth.
    #[test]
    fn numbers_are_evaluated_in_the_units_of_the_dataset() {
        let model = NetworkSettings { hidden: vec![], ..NetworkSettings::default() }.build(1, Output::Number).unwrap();
        let theta = array![[0.5, 0.25, 0.3], [-0.5, 1.0, -0.2]];
        let shard = Shard::new(array![[1.0], [-2.0], [0.5]], array![0.5, -1.0, 2.0]);
        let metrics = |shard: &Shard<f64>| {
            let metrics = evaluate(&model, theta.view(), shard, &mut Scratch::new()).unwrap().finish();
            match metrics.quality {
                Quality::Number { rmse } => (rmse, metrics.log_likelihood),
                Quality::Classes(_) => panic!("not a number"),
            }
        };
        let (rmse, log_likelihood) = metrics(&shard);
        // Means of (w x + b) over particles: 0.625 for every x, as the slopes cancel.
        let exact = ((0.125_f64.powi(2) + 1.625_f64.powi(2) + 1.375_f64.powi(2)) / 3.0).sqrt();
        assert!((rmse - exact).abs() < 1e-14, "{rmse} {exact}");
        let (larger, smaller) = metrics(&shard.with_target_unit(20.0));
        assert!((larger - 20.0 * rmse).abs() < 1e-13 && (smaller - (log_likelihood - 20_f64.ln())).abs() < 1e-14);
    }

    /// The mean over evaluations equals that of all their particles together, from `average_from` on.
    #[test]
    fn predictions_are_averaged_over_evaluations() {
        let model = Arc::new(
            LogisticSettings { intercept: false, ..LogisticSettings::default() }
                .build(&DataSchema::new(2, Output::Classes(2)))
                .unwrap(),
        );
        let shard = Shard::new(array![[1.0, -2.0], [0.5, 0.25], [-1.0, 3.0]], array![1.0, 0.0, 1.0]);
        let own = shard.clone();
        let test_rows: OpenShard<f64> = Arc::new(move |_| Ok(own.clone()));
        let evaluation = Evaluation {
            model: model.clone() as Arc<dyn Model<f64>>,
            every: 1,
            test_rows: Some(test_rows),
            per_particle: false,
            average_from: Some(2),
            ksd: None,
            particle_paths: false,
        };
        let mut local = evaluation.open(0).unwrap();
        let sets: Vec<Array2<f64>> = (0..4)
            .map(|set| Array2::from_shape_fn((2, Model::<f64>::dim(&*model)), |(i, j)| f64::from(set) - (i + 2 * j) as f64 * 0.4))
            .collect();
        let mut state = RunningMean::default();
        let cx = Context::detached(crate::random::Seed(1));
        let contributions: Vec<PredictionTallies> = (1..)
            .zip(&sets)
            .map(|(round, set)| local.evaluate(&mut state, round, set.as_slice().unwrap(), &cx).unwrap().0)
            .collect();
        assert!(contributions[0].over_evaluations.is_none());
        let all = ndarray::concatenate(Axis(0), &[sets[1].view(), sets[2].view(), sets[3].view()]).unwrap();
        let together = evaluate(&*model, all.view(), &shard, &mut Scratch::new()).unwrap().finish().log_likelihood;
        let log_likelihood = |tallies: &PredictionTallies| tallies.over_evaluations.as_ref().unwrap().finish().log_likelihood;
        assert!((log_likelihood(&contributions[3]) - together).abs() < 1e-13);
        assert!((log_likelihood(&contributions[2]) - together).abs() > 1e-3, "the control");
    }

    /// With fewer test rows than agents some agents have none; their sums change nothing.
    #[test]
    fn an_agent_without_test_rows_adds_nothing() {
        let logistic = LogisticSettings { intercept: false, ..LogisticSettings::default() }
            .build(&DataSchema::new(2, Output::Classes(2)))
            .unwrap();
        let network = NetworkSettings::default().build(2, Output::Classes(2)).unwrap();
        let models: [&dyn Model<f64>; 2] = [&logistic, &network];
        for model in models {
            let theta = Array2::from_elem((3, model.dim()), 0.1);
            let evaluate_on = |shard: &Shard<f64>| evaluate(model, theta.view(), shard, &mut Scratch::new()).unwrap();
            let one = evaluate_on(&Shard::new(array![[1.0, -2.0]], array![1.0]));
            let mut both = one.clone();
            both.merge(&evaluate_on(&Shard::new(Array2::zeros((0, 2)), Array1::zeros(0)))).unwrap();
            assert_eq!(both, one);
        }
    }
}
