//! Tests of every regression: derivatives, curvature, offsets, weights, groups and priors against differences and direct formulas.

#![allow(clippy::unwrap_used, clippy::expect_used)]

use crate::models::linear::LinearSettings;
use crate::models::logistic::LogisticSettings;
use crate::models::multinomial::MultinomialSettings;
use crate::models::negative_binomial::NegativeBinomialSettings;
use crate::models::ordinal::OrdinalSettings;
use crate::models::poisson::PoissonSettings;
use crate::models::regression::prior::Prior;
use crate::models::regression::settings::PriorUnits;
use crate::models::student_t::StudentTSettings;
use crate::models::tests as check;
use crate::models::{Batch, DataSchema, Model, ModelSettings, Output, Scratch};
use ndarray::{Array1, Array2, Axis, array, s};
use rand::RngExt;
use std::sync::Arc;

/// The number of groups in the data of these tests.
const GROUPS: usize = 4;

fn schema(features: usize, output: Output, extra: bool) -> DataSchema {
    let names = (0..features).map(|j| format!("x{j}")).collect();
    let groups = (0..if extra { GROUPS } else { 0 }).map(|group| format!("g{group}")).collect();
    DataSchema { offset: extra, weight: extra, groups, names, ..DataSchema::new(features, output) }
}

/// Features, then an offset, a weight and a group if the schema has them.
fn rows(data: &DataSchema, rows: usize, seed: u64) -> Array2<f64> {
    let mut stream = check::stream(seed);
    let mut x = check::normals(&mut stream, rows, data.columns());
    x.slice_mut(s![.., data.features..]).mapv_inplace(|offset| 0.3 * offset);
    if let Some(column) = data.weight_column() {
        x.column_mut(column).mapv_inplace(|_| f64::from(stream.random_range(0..4_u8)));
    }
    if let Some(column) = data.group_column() {
        x.column_mut(column).mapv_inplace(|_| f64::from(stream.random_range(0..4_u8)));
    }
    x
}

/// Targets of a kind; counts include large ones.
fn targets(output: Output, rows: usize, seed: u64) -> Array1<f64> {
    let mut stream = check::stream(seed);
    match output {
        Output::Classes(classes) => Array1::from_shape_fn(rows, |_| stream.random_range(0..classes) as f64),
        Output::Count => Array1::from_shape_fn(rows, |i| f64::from(stream.random_range(0..if i % 5 == 0 { 90_u8 } else { 4 }))),
        Output::Number | Output::Nothing => check::normals(&mut stream, 1, rows).row(0).to_owned(),
    }
}

/// Every regression, for data with and without an offset, weights and groups, with every form of prior.
fn regressions(features: usize) -> Vec<(&'static str, DataSchema, Arc<dyn Model<f64>>)> {
    fn built(settings: &impl ModelSettings, data: &DataSchema) -> Arc<dyn Model<f64>> {
        settings.build_model::<f64>(Some(data)).map_err(|error| error.to_string()).unwrap().model
    }
    let student_t = Prior::StudentT { degrees_of_freedom: 3.0, scale: 0.7 };
    let sampled_precision = Prior::SampledPrecision { shape: 1.7, rate: 2.5 };
    let mut all = Vec::new();
    for extra in [false, true] {
        let mut slopes = if extra { vec!["x0".to_owned(), format!("x{}", features - 1)] } else { Vec::new() };
        slopes.dedup();
        let of = |output| schema(features, output, extra);
        let (number, count, two, four) = (of(Output::Number), of(Output::Count), of(Output::Classes(2)), of(Output::Classes(4)));
        let linear = LinearSettings { prior: student_t, group_slopes: slopes.clone(), ..LinearSettings::default() };
        let known = LinearSettings { noise_variance: Some(0.6), intercept: false, ..LinearSettings::default() };
        let robust = StudentTSettings { prior: sampled_precision, ..StudentTSettings::default() };
        let logistic = LogisticSettings { group_slopes: slopes.clone(), ..LogisticSettings::default() };
        let poisson = PoissonSettings { group_slopes: slopes, group_scale: 0.4, ..PoissonSettings::default() };
        let overdispersed = NegativeBinomialSettings { dispersion_scale: 0.5, ..NegativeBinomialSettings::default() };
        let ordinal = OrdinalSettings { prior: sampled_precision, ..OrdinalSettings::default() };
        all.push(("linear", number.clone(), built(&linear, &number)));
        all.push(("linear, known noise", number.clone(), built(&known, &number)));
        all.push(("student_t", number.clone(), built(&robust, &number)));
        all.push(("logistic", two.clone(), built(&logistic, &two)));
        all.push(("poisson", count.clone(), built(&poisson, &count)));
        all.push(("negative_binomial", count.clone(), built(&overdispersed, &count)));
        all.push(("ordinal", four.clone(), built(&ordinal, &four)));
        if !extra {
            let plain = MultinomialSettings::default();
            let shrunk = MultinomialSettings { prior: sampled_precision, intercept: false, ..plain.clone() };
            all.push(("multinomial", four.clone(), built(&plain, &four)));
            all.push(("multinomial, shrunk", four.clone(), built(&shrunk, &four)));
        }
    }
    all
}

/// Particles of moderate size: counts with means of e^10 would hide all others.
fn particles(model: &dyn Model<f64>, n: usize, seed: u64) -> Array2<f64> {
    check::particles(model, n, seed).mapv(|value| 0.5 * value)
}

#[test]
fn gradients_agree_with_central_differences() {
    for (features, count, n) in [(1, 0, 3), (3, 1, 1), (8, 40, 1), (20, 131, 2), (3, 60, 9), (2, 600, 20)] {
        for (name, data, model) in regressions(features) {
            let (x, y) = (rows(&data, count, 1), targets(data.output, count, 2));
            let batch = Batch { x: x.view(), y: y.view() };
            let theta = particles(model.as_ref(), n, 3);
            let (prior, loss) = check::gradient_errors(model.as_ref(), &theta, batch, 17.5);
            assert!(prior < 1e-6 && loss < 1e-6, "{name} {features} {count} {n} {}: {prior} {loss}", data.offset);
            check::assert_particles_are_independent(model.as_ref(), &theta, batch);
        }
    }
}

/// The rows of a minibatch count as they do in a batch of their own, also where they are copied.
#[test]
fn minibatches_equal_copied_batches() {
    for n in [1, 5, 20] {
        for (name, data, model) in regressions(9) {
            let (x, y) = (rows(&data, 400, 4), targets(data.output, 400, 5));
            let theta = particles(model.as_ref(), n, 6);
            let selected: Vec<usize> = (0..100).map(|i| i * 7 % 400).collect();
            let (mut in_place, mut copied) = (Array2::zeros(theta.dim()), Array2::zeros(theta.dim()));
            let mut scratch = Scratch::new();
            let all = Batch { x: x.view(), y: y.view() };
            model.add_minibatch_score(&selected, theta.view(), all, 0.5, in_place.view_mut(), &mut scratch);
            let (x, y) = (x.select(Axis(0), &selected), y.select(Axis(0), &selected));
            model.add_score(theta.view(), Batch { x: x.view(), y: y.view() }, 0.5, copied.view_mut(), &mut scratch);
            assert_eq!(in_place, copied, "{name}");
            assert!(copied.iter().any(|score| *score != 0.0));
        }
    }
}

/// A row of weight w counts as w rows in losses, scores and both curvatures, and as one in predictions.
#[test]
fn a_row_of_weight_two_counts_twice() {
    for (name, data, model) in regressions(3) {
        let Some(column) = data.weight_column() else { continue };
        let (x, y) = (rows(&data, 60, 21), targets(data.output, 60, 22));
        let copies: Vec<usize> = (0..60).flat_map(|row| std::iter::repeat_n(row, x[[row, column]] as usize)).collect();
        let (mut plain, copied_y) = (x.select(Axis(0), &copies), y.select(Axis(0), &copies));
        plain.column_mut(column).fill(1.0);
        let weighted = Batch { x: x.view(), y: y.view() };
        let copied = Batch { x: plain.view(), y: copied_y.view() };
        let theta = particles(model.as_ref(), 5, 23);
        let (n, dim) = theta.dim();
        let mut scratch = Scratch::new();
        let mut of = |batch: Batch<f64>| {
            let (mut losses, mut score) = (vec![0.0; n], Array2::zeros((n, dim)));
            let (mut curvature, mut full) = (Array2::zeros((n, dim)), Array2::zeros((dim, dim)));
            model.loss(theta.view(), batch, &mut losses, &mut scratch);
            model.add_score(theta.view(), batch, 1.0, score.view_mut(), &mut scratch);
            model.add_curvature(theta.view(), batch, 1.0, curvature.view_mut(), &mut scratch);
            model.add_full_curvature(theta.view(), batch, 1.0, full.view_mut(), &mut scratch);
            losses.into_iter().chain(score).chain(curvature).chain(full).collect::<Vec<f64>>()
        };
        for (one, other) in of(weighted).into_iter().zip(of(copied)) {
            assert!((one - other).abs() < 1e-9 * (1.0 + one.abs()), "{name}: {one} {other}");
        }
        let mut unit = x.clone();
        unit.column_mut(column).fill(1.0);
        let outputs = if let Output::Classes(classes) = data.output { classes } else { 1 };
        let [mut of_weighted, mut of_unit] = [(); 2].map(|()| Array2::zeros((60, outputs)));
        let mut density = [vec![0.0; 60], vec![0.0; 60]];
        model.predict(theta.view(), weighted, of_weighted.view_mut(), &mut density[0], &mut scratch);
        model.predict(theta.view(), Batch { x: unit.view(), y: y.view() }, of_unit.view_mut(), &mut density[1], &mut scratch);
        assert!(of_weighted == of_unit && density[0] == density[1], "{name}");
    }
}

/// The information of the families whose loss is not quadratic near its minimum is checked against its definition: the expected products of
/// scores, here averaged over targets drawn from the model's own predictive probabilities.
#[test]
fn curvature_is_the_expected_square_of_scores() {
    for (name, data, model) in regressions(2) {
        let is_discrete = matches!(data.output, Output::Classes(_) | Output::Count);
        if !is_discrete {
            continue;
        }
        let mut x = rows(&data, 12, 7);
        if let Some(column) = data.weight_column() {
            x.column_mut(column).fill(1.0);
        }
        let theta = particles(model.as_ref(), 1, 8);
        let d = theta.ncols();
        let (mut expected, mut scratch) = (Array2::<f64>::zeros((d, d)), Scratch::new());
        for row in x.rows() {
            let x = row.insert_axis(Axis(0));
            let most = if let Output::Classes(classes) = data.output { classes } else { 3000 };
            let mut total = 0.0;
            for y in 0..most {
                let y = array![y as f64];
                let batch = Batch { x, y: y.view() };
                let (mut loss, mut score) = ([0.0], Array2::zeros((1, d)));
                model.loss(theta.view(), batch, &mut loss, &mut scratch);
                model.add_score(theta.view(), batch, 1.0, score.view_mut(), &mut scratch);
                let probability = (-loss[0]).exp();
                total += probability;
                expected.scaled_add(probability, &score.t().dot(&score));
            }
            assert!((total - 1.0).abs() < 1e-9, "{name}: probabilities add up to {total}");
        }
        let y = targets(data.output, 12, 9);
        let batch = Batch { x: x.view(), y: y.view() };
        let (mut full, mut diagonal) = (Array2::ones((d, d)), Array2::ones((1, d)));
        model.add_full_curvature(theta.view(), batch, 2.0, full.view_mut(), &mut scratch);
        model.add_curvature(theta.view(), batch, 2.0, diagonal.view_mut(), &mut scratch);
        let scale = expected.iter().fold(1e-3, |scale: f64, value| scale.max(value.abs()));
        for ((i, j), &value) in full.indexed_iter() {
            let found = 0.5 * (value - 1.0);
            assert!((found - expected[[i, j]]).abs() < 1e-7 * scale, "{name} {i} {j}: {found} {}", expected[[i, j]]);
        }
        for (found, expected) in diagonal.iter().zip(expected.diag()) {
            assert!((0.5 * (found - 1.0) - expected).abs() < 1e-7 * scale, "{name}");
        }
    }
}

/// For numbers with noise: the weights' curvature is the Hessian where the noise is known; of the noise it is the expected one.
#[test]
fn curvature_of_numbers_is_the_information() {
    for (name, data, model) in regressions(3) {
        if data.output != Output::Number {
            continue;
        }
        let count = 200_000;
        let theta = particles(model.as_ref(), 1, 10);
        let d = theta.ncols();
        let mut x = rows(&data, 1, 11);
        x = Array2::from_shape_fn((count, x.ncols()), |(_, j)| x[[0, j]]);
        // Targets drawn from the model: η plus noise.
        let mut mean = Array2::zeros((1, 1));
        let (first, y0) = (x.slice(s![..1, ..]), array![0.0]);
        model.predict(theta.view(), Batch { x: first, y: y0.view() }, mean.view_mut(), &mut [0.0], &mut Scratch::new());
        let place = model.parts().iter().take_while(|part| part.name != "log_noise").map(|part| part.size()).sum::<usize>();
        let scale = if name.contains("known") { 0.6_f64.sqrt() } else { theta[[0, place]].exp() };
        let mut stream = check::stream(12);
        let student = rand_distr::StudentT::new(4.0).unwrap();
        let y = Array1::from_shape_fn(count, |_| {
            let noise = match name {
                "student_t" => rand_distr::Distribution::<f64>::sample(&student, &mut stream),
                _ => rand_distr::Distribution::<f64>::sample(&rand_distr::StandardNormal, &mut stream),
            };
            mean[[0, 0]] + scale * noise
        });
        let mut squares = Array2::<f64>::zeros((d, d));
        let mut scratch = Scratch::new();
        for i in 0..count {
            let batch = Batch { x: x.slice(s![i..=i, ..]), y: y.slice(s![i..=i]) };
            let mut score = Array2::zeros((1, d));
            model.add_score(theta.view(), batch, 1.0, score.view_mut(), &mut scratch);
            squares += &score.t().dot(&score);
        }
        let mut full = Array2::zeros((d, d));
        let batch = Batch { x: x.view(), y: y.view() };
        model.add_full_curvature(theta.view(), batch, 1.0, full.view_mut(), &mut scratch);
        let size = full.iter().fold(1e-3, |scale: f64, value| scale.max(value.abs()));
        // Products of two scores have a standard deviation below 4 times their size: 5 standard errors are .045.
        let worst = (&full - &squares).iter().fold(0.0, |worst: f64, value| worst.max(value.abs())) / size;
        assert!(worst < 0.045, "{name}: {worst}");
    }
}

/// An offset moves η, and groups move the rows of their own, by τ z; loss and prediction by hand.
#[test]
fn offsets_and_groups_enter_the_predictor() {
    let data = schema(2, Output::Count, true);
    let settings = PoissonSettings { group_slopes: vec!["x1".into()], ..PoissonSettings::default() };
    let model = settings.build(&data).unwrap();
    let names: Vec<(String, usize)> = Model::<f64>::parts(&model).iter().map(|part| (part.name.clone(), part.size())).collect();
    let expected = [("weights", 2), ("intercept", 1), ("log_group_scale", 2), ("standardized_group_effects", 8)];
    assert_eq!(names, expected.map(|(name, size)| (name.to_owned(), size)));
    let mut theta = Array2::<f64>::zeros((1, 13));
    theta.row_mut(0).assign(&array![0.5, -0.2, 0.1, -1.0, 0.3, 0.0, 0.0, 0.7, -0.4, 0.0, 0.0, 0.0, 0.0]);
    // x0, x1, offset, weight, group.
    let (x, y) = (array![[1.0, 2.0, 0.25, 3.0, 1.0], [1.0, 2.0, 0.25, 1.0, 0.0]], array![3.0, 1.0]);
    let common = 0.5 - 0.4 + 0.1 + 0.25;
    let eta = [common + (-1.0_f64).exp() * 0.7 + 0.3_f64.exp() * -0.4 * 2.0, common];
    let (mean, density) = check::predict(&model, &theta, Batch { x: x.view(), y: y.view() }, 1);
    let factorials = [6.0, 1.0];
    for i in 0..2 {
        assert!((mean[[i, 0]] - eta[i].exp()).abs() < 1e-13);
        let by_hand = (y[i] * eta[i] - eta[i].exp()).exp() / factorials[i];
        assert!((density[i] - by_hand).abs() < 1e-14, "{} {by_hand}", density[i]);
    }
    assert!(Model::<f64>::check(&model, Batch { x: x.view(), y: y.view() }).is_ok());
    // The deviation of a group that the training rows do not have is N(0, s²); rows of known groups beside it are predicted as without it.
    let x = array![[1.0, 2.0, 0.25, 1.0, 1.0], [1.0, 2.0, 0.25, 1.0, 4.0], [1.0, 2.0, 0.25, 1.0, 0.0]];
    let variance = (-2.0_f64).exp() + (0.6_f64).exp() * 4.0;
    let (mean, density) = check::predict(&model, &theta, Batch { x: x.view(), y: array![3.0, 2.0, 1.0].view() }, 1);
    assert!((mean[[1, 0]] / (common + 0.5 * variance).exp() - 1.0).abs() < 1e-6, "{mean}");
    assert!((mean[[0, 0]] - eta[0].exp()).abs() < 1e-13 && (mean[[2, 0]] - eta[1].exp()).abs() < 1e-13);
    let at = |z: f64| common + variance.sqrt() * z;
    let step = 1e-3;
    let by_hand: f64 =
        (-8000..=8000).map(|place| f64::from(place) * step).map(|z| (2.0 * at(z) - at(z).exp() - 0.5 * z * z).exp()).sum();
    let by_hand = by_hand * step / (2.0 * std::f64::consts::PI).sqrt() / 2.0;
    assert!((density[1] / by_hand - 1.0).abs() < 1e-4, "{} {by_hand}", density[1]);
    let mut loss = [0.0];
    let (new, y2) = (x.slice(s![1..2, ..]), array![2.0]);
    model.loss(theta.view(), Batch { x: new, y: y2.view() }, &mut loss, &mut Scratch::new());
    assert!((loss[0] + by_hand.ln()).abs() < 1e-4, "{} {by_hand}", loss[0]);
    let x = array![[1.0, 2.0, 0.25, 3.0, 1.0], [1.0, 2.0, 0.25, 1.0, 0.0]];
    let far = array![[1.0, 2.0, 0.25, 1.0, 5.0]];
    let message = Model::<f64>::check(&model, Batch { x: far.view(), y: array![0.0].view() }).unwrap_err();
    assert_eq!(message, "a row has the group 5; groups are 0 to 3, or 4 for an unknown group");
    let message = Model::<f64>::check(&model, Batch { x: x.view(), y: array![1.5, 0.0].view() }).unwrap_err();
    assert_eq!(message, "a target is 1.5; counts are 0, 1, 2, ...");
}

/// The logarithm of the mean count of a new group is N(η, s²). False alarm: 1e-4.
#[test]
fn means_of_new_groups_are_as_wide_as_groups_differ() {
    const DRAWS: usize = 20_000;
    let data = schema(2, Output::Count, true);
    let settings = PoissonSettings { group_slopes: vec!["x1".into()], ..PoissonSettings::default() };
    let model = settings.build(&data).unwrap();
    let own = array![0.5, -0.2, 0.1, -1.0, -0.7, 0.0, 0.0, 0.7, -0.4, 0.0, 0.0, 0.0, 0.0];
    let theta = own.broadcast((DRAWS, 13)).unwrap().to_owned();
    let x = array![[1.0, 2.0, 0.25, 1.0, 1.0], [1.0, 2.0, 0.25, 1.0, 4.0]];
    let is_new: Vec<bool> = x.rows().into_iter().map(|row| Model::<f64>::is_of_new_group(&model, row)).collect();
    assert_eq!(is_new, [false, true]);
    let drawn = |row: usize| {
        let (x, y) = (x.slice(s![row..=row, ..]), array![0.0]);
        let mut means = Array2::zeros((DRAWS, 1));
        let batch = Batch { x, y: y.view() };
        model.draw_means(theta.view(), batch, &mut check::stream(5), means.view_mut(), &mut Scratch::new());
        let logs = means.column(0).mapv(f64::ln);
        (logs.mean().unwrap(), logs.var(1.0))
    };
    let (eta, variance) = (0.5 - 0.4 + 0.1 + 0.25, (-2.0_f64).exp() + (-1.4_f64).exp() * 4.0);
    let (mean, spread) = drawn(1);
    let draws = DRAWS as f64;
    assert!((mean - eta).abs() < 4.0 * (variance / draws).sqrt(), "{mean} {eta}");
    assert!((spread / variance - 1.0).abs() < 4.0 * (2.0 / draws).sqrt(), "{spread} {variance}");
    // The control: the mean of a known group has no spread, given the parameters.
    assert!(drawn(0).1 < 1e-20);
}

/// Where its dispersion vanishes, the negative binomial distribution is Poisson's, for small and large counts.
#[test]
fn a_negative_binomial_without_dispersion_is_poisson() {
    let data = schema(1, Output::Count, false);
    let overdispersed = NegativeBinomialSettings::default().build(&data).unwrap();
    let poisson = PoissonSettings::default().build(&data).unwrap();
    for (count, eta) in [(0.0, -1.0), (3.0, 0.5), (31.0, 3.0), (80.0, 4.5)] {
        let (x, y) = (array![[1.0]], array![count]);
        let batch = Batch { x: x.view(), y: y.view() };
        let (mut with, mut without, mut far) = ([0.0], [0.0], [0.0]);
        overdispersed.loss(array![[eta, 0.0, -18.0]].view(), batch, &mut with, &mut Scratch::new());
        poisson.loss(array![[eta, 0.0]].view(), batch, &mut without, &mut Scratch::new());
        overdispersed.loss(array![[eta, 0.0, 0.0]].view(), batch, &mut far, &mut Scratch::new());
        assert!((with[0] - without[0]).abs() < 1e-4, "{count}: {} {}", with[0], without[0]);
        assert!((far[0] - without[0]).abs() > 0.05, "negative control: {count}");
    }
}

/// Parameters that lie far out give finite losses and scores.
#[test]
fn extreme_parameters_stay_finite() {
    for (name, data, model) in regressions(2) {
        let (x, y) = (rows(&data, 20, 13), targets(data.output, 20, 14));
        let batch = Batch { x: x.view(), y: y.view() };
        for at in [-40.0, 40.0] {
            // Weights stay 0, so that counts do not overflow; a group's scale of e^30 makes every predictor overflow.
            let values = model.parts().into_iter().flat_map(|part| {
                let value = match part.name.as_str() {
                    // A gap of e^40 overflows.
                    "log_gaps" => 0.2 * at,
                    "log_noise" | "log_dispersion" | "log_precision" | "first_cutpoint" => at,
                    _ => 0.0,
                };
                vec![value; part.size()]
            });
            let theta = Array2::from_shape_vec((1, model.dim()), values.collect()).unwrap();
            let (mut loss, mut score) = ([0.0], Array2::zeros((1, model.dim())));
            model.loss(theta.view(), batch, &mut loss, &mut Scratch::new());
            model.add_score(theta.view(), batch, 1.0, score.view_mut(), &mut Scratch::new());
            assert!(loss[0].is_finite() && score.iter().all(|score| score.is_finite()), "{name} {at}: {loss:?} {score}");
        }
    }
}

/// A prior in original units is N(0, s²) for the weight that multiplies the imported feature in the units of the imported target.
#[test]
fn priors_in_original_units_follow_the_scaling_of_the_data() {
    let data = DataSchema { scales: Some(vec![0.5, 4.0]), target_scale: 0.1, ..DataSchema::new(2, Output::Number) };
    let settings = LinearSettings {
        prior: Prior::Normal(3.0),
        prior_units: PriorUnits::Original,
        noise_variance: Some(1.0),
        ..LinearSettings::default()
    };
    let model = settings.build(&data).unwrap();
    // Standardized weights w: y/10 = w x/2, so the original weight is 5 w, and 40 w for the other.
    let at = |theta: [f64; 3]| {
        let mut out = [0.0];
        Model::<f64>::log_prior(&model, array![theta].view(), &mut out);
        out[0]
    };
    assert!((at([1.0, 0.0, 0.0]) + 0.5 * (5.0_f64 / 3.0).powi(2)).abs() < 1e-12);
    assert!((at([0.0, 1.0, 0.0]) + 0.5 * (40.0_f64 / 3.0).powi(2)).abs() < 1e-12);
    for (prior, scales, says) in [
        (Prior::SampledPrecision { shape: 1.0, rate: 1.0 }, data.scales.clone(), "one scale for all weights"),
        (Prior::Normal(1.0), None, "principal components"),
    ] {
        let message =
            LinearSettings { prior, ..settings.clone() }.build(&DataSchema { scales, ..data.clone() }).unwrap_err().to_string();
        assert!(message.starts_with("prior_units = \"original\" does not suit") && message.contains(says), "{message}");
    }
}

#[test]
fn slopes_need_groups_and_known_features() {
    let settings = |slope: &str| LinearSettings { group_slopes: vec![slope.into()], ..LinearSettings::default() };
    let with = schema(2, Output::Number, true);
    let message = settings("y1").build(&with).unwrap_err().to_string();
    let says = "group_slopes: names \"y1\", which is no feature. Did you mean \"x1\"? Choose one of: x0, x1";
    assert!(message.starts_with(says), "{message}");
    let without_names = DataSchema { names: Vec::new(), ..with.clone() };
    let message = settings("x1").build(&without_names).unwrap_err().to_string();
    assert!(message.contains("import a table with a header"), "{message}");
    let message = settings("x1").build(&schema(2, Output::Number, false)).unwrap_err().to_string();
    assert!(message.contains("--group COLUMN"), "{message}");
    let pooled = LinearSettings { group_effects: false, ..settings("x1") };
    assert!(pooled.build(&with).unwrap_err().to_string().contains("group_effects = true"));
    // Without effects, the column of groups is ignored.
    let pooled = LinearSettings { group_effects: false, ..LinearSettings::default() }.build(&with).unwrap();
    assert_eq!(Model::<f64>::dim(&pooled), 4);
}

#[test]
fn settings_without_effect_are_refused() {
    let refused = |settings: LinearSettings| settings.build(&schema(2, Output::Number, false)).unwrap_err().to_string();
    let standard = LinearSettings::default;
    let message = refused(LinearSettings { noise_variance: Some(0.5), noise_scale: 2.0, ..standard() });
    assert!(message.contains("noise_scale") && message.contains("noise_variance"), "{message}");
    let message = refused(LinearSettings { intercept: false, intercept_scale: 2.0, ..standard() });
    assert!(message.contains("intercept_scale") && message.contains("intercept = true"), "{message}");
    let message = refused(LinearSettings { group_effects: false, group_scale: 2.0, ..standard() });
    assert!(message.contains("group_scale") && message.contains("group_effects = true"), "{message}");
}
