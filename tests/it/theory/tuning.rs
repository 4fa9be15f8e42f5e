//! The noise of scores that is measured before a run, against sums over all rows.

#![allow(clippy::unwrap_used)]

use super::normals;
use crate::recording::Recording;
use mpibayes::cluster::JobOptions;
use mpibayes::data::Shard;
use mpibayes::methods::Problem;
use mpibayes::methods::tuning::{FindMode, FindStarts, MODE, MeasureNoise, NOISE, NoMode, STARTS, VisitShare};
use mpibayes::models::gaussian_mean::GaussianMeanSettings;
use mpibayes::models::linear::LinearSettings;
use mpibayes::models::{DataSchema, Model, Output, Whitened, Whitening};
use mpibayes::random::{Purpose, Seed, Who};
use ndarray::{Array1, Array2, ArrayView1, Axis, s};
use ndarray_linalg::{Cholesky, EigValsh, InverseC, UPLO};
use std::sync::Arc;

const FEATURES: usize = 3;
const SIZES: [usize; 2] = [30, 50];
const BATCH: usize = 7;
/// Points at which noise is measured.
const POINTS: usize = 12;
const SEED: Seed = Seed(5);

/// The rows of both agents; those of the second are twice as large.
fn rows() -> (Array2<f64>, Array1<f64>) {
    let mut x = normals(SIZES[0] + SIZES[1], FEATURES, 1);
    x.slice_mut(s![SIZES[0].., ..]).mapv_inplace(|value| 2.0 * value);
    let y = x.dot(&Array1::from(vec![1.0, -1.0, 0.5])) + normals(1, x.nrows(), 2).row(0);
    (x, y)
}

fn problem() -> Problem<f64> {
    let (x, y) = rows();
    let model = LinearSettings { intercept: false, noise_variance: Some(1.0), ..LinearSettings::default() }
        .build(&DataSchema::new(FEATURES, Output::Number))
        .unwrap();
    let shard = move |agent: u32| {
        let range = if agent == 0 { 0..SIZES[0] } else { SIZES[0]..SIZES[0] + SIZES[1] };
        Ok(Shard::new(x.slice(s![range.clone(), ..]).to_owned(), y.slice(s![range]).to_owned()))
    };
    Problem { model: Arc::new(model), agents: 2, temperature: 1.0, shard: Arc::new(shard) }
}

/// The records of a group, each with a value for every parameter.
fn records(recording: &Recording, group: &str) -> Array2<f64> {
    let values = recording.values(group);
    Array2::from_shape_vec((values.len() / FEATURES, FEATURES), values).unwrap()
}

/// L, upper triangular with L Lᵀ = (XᵀX + I)⁻¹.
fn factor() -> Array2<f64> {
    let (x, _) = rows();
    let precision = x.t().dot(&x) + Array2::<f64>::eye(FEATURES);
    // The lower factor of the inverse with its rows and columns in reverse order, reversed again.
    let reversed = precision.invc().unwrap().slice(s![..;-1, ..;-1]).to_owned();
    reversed.cholesky(UPLO::Lower).unwrap().slice(s![..;-1, ..;-1]).to_owned()
}

#[test]
fn the_mode_of_a_gaussian_posterior_is_found_in_one_step() {
    let recording = Recording::of(FindMode { problem: problem() }, JobOptions::new(SEED)).unwrap();
    let (x, y) = rows();
    let precision = x.t().dot(&x) + Array2::<f64>::eye(FEATURES);
    let mode = precision.invc().unwrap().dot(&x.t().dot(&y));
    let records = records(&recording, MODE);
    assert!((&records.row(0) - &mode).iter().all(|error| error.abs() < 1e-9));
    let score = x.t().dot(&(&y - &x.dot(&mode)));
    assert!((&records.row(1) - &score).iter().all(|error| error.abs() < 1e-6));
    assert_eq!(records.nrows(), 2 + FEATURES);
    for (row, exact) in records.rows().into_iter().skip(2).zip(precision.rows()) {
        assert!((&row - &exact).iter().all(|error| error.abs() < 1e-6));
    }
}

/// For agents that get these shares of all visits: the noise of minibatches and of shards by sums over rows, and as it is measured.
fn noise(share: VisitShare, shares: [f64; 2]) -> [[Array1<f64>; 2]; 2] {
    let (problem, factor, (x, y)) = (problem(), factor(), rows());
    let precision = x.t().dot(&x) + Array2::<f64>::eye(FEATURES);
    let mode = precision.invc().unwrap().dot(&x.t().dot(&y));
    let sd = factor.dot(&factor.t()).diag().mapv(f64::sqrt);
    let whitening = Whitening::new(mode.view(), factor.view(), Array1::zeros(FEATURES).view());
    let model: Arc<dyn Model<f64>> = Arc::new(Whitened::new(problem.model.clone(), whitening));
    let method = MeasureNoise {
        problem: Problem { model, ..problem },
        factor: factor.clone(),
        batch: BATCH,
        share,
        rows: SIZES[0] + SIZES[1],
    };
    let recording = Recording::of(method, JobOptions::new(SEED)).unwrap();
    let records = records(&recording, NOISE);
    let measured = [records.row(0).to_owned(), records.row(1).to_owned()];
    // A Gaussian posterior has the same curvature everywhere.
    assert!(records.row(2).iter().all(|value| (value - 1.0).abs() < 1e-6));

    let mut points = vec![0.0; POINTS * FEATURES];
    SEED.stream(Who::Server, 0, Purpose::Nodes).normals(&mut points);
    for j in 0..FEATURES {
        let square: f64 = points.iter().skip(j).step_by(FEATURES).map(|value| value * value).sum();
        points.iter_mut().skip(j).step_by(FEATURES).for_each(|value| *value *= (POINTS as f64 / square).sqrt());
    }
    let mut exact = [Array1::zeros(FEATURES), Array1::zeros(FEATURES)];
    for z in points.chunks_exact(FEATURES) {
        // The displacement of the parameters, in sds, by the difference of each row's score.
        let moved = factor.dot(&ArrayView1::from(z));
        let rows = -(&x * &x.dot(&moved).insert_axis(Axis(1)));
        let rows = rows.dot(&factor).dot(&factor.t()) / &sd;
        let (first, second) = rows.view().split_at(Axis(0), SIZES[0]);
        let (mut sum, mut squares) = (Array1::zeros(FEATURES), Array1::zeros(FEATURES));
        for (rows, share) in [first, second].into_iter().zip(shares) {
            let (count, batch) = (rows.nrows() as f64, BATCH as f64);
            let variance = rows.var_axis(Axis(0), 1.0) * count * count * (1.0 / batch - 1.0 / count);
            exact[0] += &(variance / (share * POINTS as f64));
            let force = rows.sum_axis(Axis(0));
            squares += &(&force * &force / share);
            sum += &force;
        }
        exact[1] += &((squares - &sum * &sum) / POINTS as f64);
    }
    [exact, measured]
}

#[test]
fn the_noise_of_minibatches_and_shards_is_that_of_all_rows() {
    let total = (SIZES[0] + SIZES[1]) as f64;
    let by_rows = SIZES.map(|size| size as f64 / total);
    let proportional = |weights: &[f64]| VisitShare::Proportional(weights.to_vec());
    for (share, shares) in
        [(proportional(&[10.0]), [0.5; 2]), (proportional(&[10.0, 30.0]), [0.25, 0.75]), (VisitShare::ByRows, by_rows)]
    {
        let [exact, measured] = noise(share.clone(), shares);
        assert!((&measured[1] / &exact[1] - 1.0).iter().all(|error| error.abs() < 1e-9), "{measured:?} {exact:?}");
        // Each is a mean of 192 squares at each agent, whose relative error is about √(2/192) = .1: five of them.
        assert!((&measured[0] / &exact[0]).iter().all(|ratio| (0.5..1.5).contains(ratio)), "{measured:?} {exact:?}");
        // Control: the noise of other shares.
        let [other, _] = noise(share, [0.1, 0.9]);
        assert!((&measured[1] / &other[1] - 1.0).iter().any(|error| error.abs() > 0.2), "{measured:?} {other:?}");
    }
}

/// Chains that cannot be given coordinates around the mode start at draws of the posterior, and what is measured there is what sums over rows
/// give.
#[test]
fn starting_points_are_draws_and_their_scale_is_that_of_the_curvature() {
    const STARTING_POINTS: usize = 8;
    let shares = [0.25, 0.75];
    let share = VisitShare::Proportional(vec![1.0, 3.0]);
    let method =
        FindStarts { problem: problem(), points: STARTING_POINTS as u32, batch: BATCH, share, rows: SIZES[0] + SIZES[1] };
    let recording = Recording::of(method, JobOptions::new(SEED)).unwrap();
    let records = records(&recording, STARTS);
    let (points, rest) = records.view().split_at(Axis(0), STARTING_POINTS);
    let [scale, of_batches, of_shards, largest, shortened] = [0, 1, 2, 3, 4].map(|row| rest.row(row));
    assert_eq!(rest.nrows(), 5);
    assert!(shortened.iter().all(|factor| *factor == 1.0), "no point diverges");

    let (x, y) = rows();
    let precision = x.t().dot(&x) + Array2::<f64>::eye(FEATURES);
    let mode = precision.invc().unwrap().dot(&x.t().dot(&y));
    let distances: f64 = points.rows().into_iter().map(|point| (&point - &mode).dot(&precision.dot(&(&point - &mode)))).sum();
    // χ² with 24 degrees of freedom leaves this range with probability 2e-4; the noise of minibatches adds a tenth at most. At the mode, where
    // the descent ends, it would be 0.
    assert!((6.0..63.0).contains(&distances), "{distances}");

    let (mut curvature, mut batches, mut shards) = (Array1::zeros(FEATURES), Array1::zeros(FEATURES), Array1::zeros(FEATURES));
    for point in points.rows() {
        let scores = &x * &(&y - &x.dot(&point)).insert_axis(Axis(1));
        let total = scores.sum_axis(Axis(0));
        let (first, second) = scores.view().split_at(Axis(0), SIZES[0]);
        for (scores, share) in [first, second].into_iter().zip(shares) {
            let count = scores.nrows() as f64;
            let of_rows = scores.var_axis(Axis(0), 1.0) * count;
            batches += &(&of_rows * ((count / BATCH as f64 - 1.0) / share));
            curvature += &of_rows;
            shards += &(scores.sum_axis(Axis(0)).mapv(|score| score * score) / share);
        }
        shards -= &(&total * &total);
    }
    let per_point = scale.mapv(|scale| scale * scale) / STARTING_POINTS as f64;
    let found = scale.mapv(|scale| 1.0 / (scale * scale) - 1.0);
    // Each from 16 minibatches at each of two agents, whose relative error is about √(2/32) = .25.
    assert!(
        (&found / &(&curvature / STARTING_POINTS as f64)).iter().all(|ratio| (0.4..1.9).contains(ratio)),
        "{found} {curvature}"
    );
    assert!((&of_batches / &(&batches * &per_point)).iter().all(|ratio| (0.4..1.9).contains(ratio)), "{of_batches}");
    assert!((&of_shards / &(&shards * &per_point) - 1.0).iter().all(|error| error.abs() < 1e-9), "{of_shards}");
    let scaled = &precision * &scale.insert_axis(Axis(1)) * scale.insert_axis(Axis(0));
    let exact = scaled.eigvalsh(UPLO::Lower).unwrap()[FEATURES - 1];
    assert!((largest[0] / exact - 1.0).abs() < 0.01, "{largest} {exact}");
}

#[test]
fn a_flat_posterior_has_no_mode() {
    let model = GaussianMeanSettings::default().build(FEATURES).unwrap();
    let shard = |_| Ok(Shard::new(Array2::zeros((0, FEATURES)), Array1::zeros(0)));
    let problem = Problem { model: Arc::new(model), agents: 1, temperature: 1.0, shard: Arc::new(shard) };
    let recording = Recording::of(FindMode { problem }, JobOptions::new(SEED)).unwrap();
    let values = recording.values::<f64>(MODE);
    assert_eq!(values.len(), 1);
    assert_eq!(NoMode::with_code(values[0]), Some(NoMode::Flat));
    assert_eq!(NoMode::with_code(7.0), None);
}
