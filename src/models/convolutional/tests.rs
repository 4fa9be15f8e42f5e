//! Convolutional networks against central differences, a forward pass by plain loops, and other partitions of the work.

#![allow(clippy::unwrap_used, clippy::expect_used)]

use super::model::BLOCK_IMAGES;
use super::*;
use crate::models::network::Loss;
use crate::models::tests as check;
use crate::models::tests::stream;
use crate::models::{Batch, DataSchema, Model, Output, Part, Scratch};
use ndarray::{Array1, Array2, array, s};
use rand::RngExt;

const CLASSES: Output = Output::Classes(3);

fn images(height: usize, width: usize, channels: usize, output: Output) -> DataSchema {
    DataSchema { shape: vec![height, width, channels], ..DataSchema::new(height * width * channels, output) }
}

fn resnet(normalization: Normalization, activation: Activation, shortcuts: Shortcuts) -> ResnetSettings {
    ResnetSettings { depth: 8, width: 3, normalization, activation, shortcuts, ..ResnetSettings::default() }
}

fn data(schema: &DataSchema, rows: usize, seed: u64) -> (Array2<f64>, Array1<f64>) {
    let mut stream = stream(seed);
    let x = check::normals(&mut stream, rows, schema.features);
    let y = match schema.output {
        Output::Classes(classes) => Array1::from_shape_fn(rows, |_| stream.random_range(0..classes) as f64),
        _ => check::normals(&mut stream, rows, 1).column(0).to_owned(),
    };
    (x, y)
}

/// Every kind of network: residual with all shortcuts and both normalizations, and stacks with all sizes and strides.
fn networks(activation: Activation) -> Vec<(String, ConvolutionalNetwork, DataSchema)> {
    let mut networks = Vec::new();
    for normalization in [Normalization::FilterResponse, Normalization::None] {
        for shortcuts in [Shortcuts::Padding, Shortcuts::Projection] {
            let schema = images(7, 6, 2, CLASSES);
            let name = format!("residual, {normalization:?}, {activation:?}, {shortcuts:?}");
            networks.push((name, resnet(normalization, activation, shortcuts).build(&schema).unwrap(), schema));
        }
        for output in [CLASSES, Output::Number] {
            let layers = [(5, 1, 1), (17, 3, 2), (4, 3, 1), (6, 1, 2)];
            let layers = layers.map(|(channels, size, stride)| LayerSettings { channels, size, stride }).to_vec();
            let settings = ConvolutionalSettings { layers, normalization, activation, ..ConvolutionalSettings::default() };
            let schema = images(6, 5, 1, output);
            let name = format!("stack, {normalization:?}, {activation:?}, {output:?}");
            networks.push((name, settings.build(&schema).unwrap(), schema));
        }
        let settings =
            ResnetSettings { depth: 14, loss: Some(Loss::Huber(0.8)), ..resnet(normalization, activation, Shortcuts::Padding) };
        let schema = images(4, 6, 1, Output::Number);
        let name = format!("residual of two blocks a stage, {normalization:?}, {activation:?}, Huber's loss");
        networks.push((name, settings.build(&schema).unwrap(), schema));
    }
    networks
}

/// Gradients for this many images, from all networks with this activation.
fn check_gradients(activation: Activation, rows: usize, bound: f64) {
    for (name, model, schema) in networks(activation) {
        let (x, y) = data(&schema, rows, 5);
        let batch = Batch { x: x.view(), y: y.view() };
        let theta = check::particles(&model, 2, 8);
        let (prior, loss) = check::gradient_errors(&model, &theta, batch, 1.5);
        // The second derivative of Huber's loss jumps, so that a difference is off by about its step.
        let bound = if name.contains("Huber") { 1e-5 } else { bound };
        assert!(prior < 1e-7 && loss < bound, "{name}: {prior} {loss}");
        check::assert_particles_are_independent(&model, &theta, batch);
        check::assert_precisions_agree(&model, &model, &theta, batch, 1e-4);
    }
}

#[test]
fn gradients_of_smooth_units_agree_with_central_differences() {
    check_gradients(Activation::Swish, BLOCK_IMAGES + 3, 1e-7);
}

/// Differences are wrong where a step crosses a kink, which is rarer with fewer images.
#[test]
fn gradients_of_rectified_units_agree_with_central_differences() {
    check_gradients(Activation::Relu, 2, 1e-5);
}

/// The curvature of classes is Fisher's information, Σ_c p_c (∂ log p_c)², and that of numbers the square of the mean's derivative times
/// the precision, each from central differences of predictions.
#[test]
fn curvatures_agree_with_central_differences_of_predictions() {
    for (name, model, schema) in networks(Activation::Swish) {
        let (x, y) = data(&schema, 3, 25);
        let batch = Batch { x: x.view(), y: y.view() };
        let theta = check::particles(&model, 1, 28);
        let mut curvature = Array2::from_elem(theta.raw_dim(), 0.5);
        model.add_curvature(theta.view(), batch, 2.0, curvature.view_mut(), &mut Scratch::new());
        let (outputs, is_number) = (model.architecture.outputs, schema.output == Output::Number);
        let mean = check::predict(&model, &theta, batch, outputs).0;
        let scale = curvature.iter().fold(1.0, |scale: f64, value| scale.max(value.abs()));
        for j in 0..model.architecture.parameters() {
            let moved = |step: f64| {
                let mut moved = theta.clone();
                moved[[0, j]] += step;
                let mean = check::predict(&model, &moved, batch, outputs).0;
                if is_number { mean } else { mean.mapv(f64::ln) }
            };
            let slope = (moved(1e-5) - moved(-1e-5)) / 2e-5;
            let weights = match (is_number, model.likelihood.has_log_precision()) {
                (false, _) => mean.clone(),
                (true, true) => mean.mapv(|_| theta[[0, model.dim() - 1]].exp()),
                // Huber's loss is flat beyond .8.
                (true, false) => {
                    Array2::from_shape_fn(mean.raw_dim(), |(row, _)| f64::from(u8::from((mean[[row, 0]] - y[row]).abs() <= 0.8)))
                }
            };
            let exact = 0.5 + 2.0 * (&slope * &slope * &weights).sum();
            assert!((curvature[[0, j]] - exact).abs() < 1e-6 * scale, "{name} {j}: {} {exact}", curvature[[0, j]]);
        }
        // Half for each row.
        assert!(!model.likelihood.has_log_precision() || curvature[[0, model.dim() - 1]] == 0.5 + 2.0 * 1.5);
    }
}

/// An image with channels last, as plain loops see it.
#[derive(Clone)]
struct Plain {
    height: usize,
    width: usize,
    channels: usize,
    values: Vec<f64>,
}

impl Plain {
    fn at(&self, row: isize, column: isize, channel: usize) -> f64 {
        let inside = |place: isize, size: usize| usize::try_from(place).ok().filter(|&place| place < size);
        match (inside(row, self.height), inside(column, self.width)) {
            (Some(row), Some(column)) => self.values[(row * self.width + column) * self.channels + channel],
            _ => 0.0,
        }
    }

    fn convolved(&self, filters: &[f64], outputs: usize, size: usize, stride: usize) -> Self {
        let (height, width) = (self.height.div_ceil(stride), self.width.div_ceil(stride));
        let mut values = Vec::new();
        for (row, column, output) in places(height, width, outputs) {
            let mut sum = 0.0;
            for (i, j, input) in places(size, size, self.channels) {
                let place = |at: usize, k: usize| (at * stride + k) as isize - (size / 2) as isize;
                let weight = filters[((i * size + j) * self.channels + input) * outputs + output];
                sum += weight * self.at(place(row, i), place(column, j), input);
            }
            values.push(sum);
        }
        Self { height, width, channels: outputs, values }
    }

    /// Filter response normalization with gains and offsets, or biases.
    fn normalized(mut self, gains: Option<&[f64]>, offsets: &[f64]) -> Self {
        let pixels = (self.height * self.width) as f64;
        for channel in 0..self.channels {
            let own = || (channel..self.values.len()).step_by(self.channels);
            let square: f64 = own().map(|place| self.values[place].powi(2)).sum::<f64>() / pixels;
            let scale = gains.map_or(1.0, |gains| gains[channel] / (square + 1e-6).sqrt());
            for place in own().collect::<Vec<_>>() {
                self.values[place] = scale * self.values[place] + offsets[channel];
            }
        }
        self
    }

    fn activated(mut self, activation: Activation) -> Self {
        self.values.iter_mut().for_each(|value| {
            *value = match activation {
                Activation::Relu => value.max(0.0),
                Activation::Swish => *value / (1.0 + (-*value).exp()),
            }
        });
        self
    }

    fn plus(mut self, other: &Self) -> Self {
        self.values.iter_mut().zip(&other.values).for_each(|(value, other)| *value += other);
        self
    }
}

fn places(height: usize, width: usize, channels: usize) -> impl Iterator<Item = (usize, usize, usize)> {
    (0..height).flat_map(move |row| (0..width).flat_map(move |column| (0..channels).map(move |channel| (row, column, channel))))
}

/// Reads θ part by part, in the order that the documentation states.
struct Parameters<'a>(&'a [f64]);

impl<'a> Parameters<'a> {
    fn next(&mut self, len: usize) -> &'a [f64] {
        let (part, rest) = self.0.split_at(len);
        self.0 = rest;
        part
    }

    fn normalized(&mut self, sums: Plain, normalization: Normalization) -> Plain {
        let channels = sums.channels;
        let gains = (normalization == Normalization::FilterResponse).then(|| self.next(channels));
        sums.normalized(gains, self.next(channels))
    }
}

/// The outputs of a residual network for an image, by its definition.
fn plain_resnet(settings: &ResnetSettings, image: Plain, theta: &[f64], outputs: usize) -> Vec<f64> {
    let mut parameters = Parameters(theta);
    let convolve = |input: &Plain, channels: usize, stride: usize, parameters: &mut Parameters| {
        let filters = parameters.next(9 * input.channels * channels);
        parameters.normalized(input.convolved(filters, channels, 3, stride), settings.normalization)
    };
    let mut image = convolve(&image, settings.width, 1, &mut parameters).activated(settings.activation);
    for stage in 0..3 {
        for block in 0..(settings.depth - 2) / 6 {
            let (channels, stride) = (settings.width << stage, if stage > 0 && block == 0 { 2 } else { 1 });
            let middle = convolve(&image, channels, stride, &mut parameters).activated(settings.activation);
            let sums = convolve(&middle, channels, 1, &mut parameters);
            let shortcut = if stride == 1 {
                image
            } else if settings.shortcuts == Shortcuts::Projection {
                image.convolved(parameters.next(image.channels * channels), channels, 1, stride)
            } else {
                let pixel = |(row, column, channel): (usize, usize, usize)| {
                    if channel < image.channels { image.at(2 * row as isize, 2 * column as isize, channel) } else { 0.0 }
                };
                Plain { values: places(sums.height, sums.width, channels).map(pixel).collect(), ..sums.clone() }
            };
            image = sums.plus(&shortcut).activated(settings.activation);
        }
    }
    let pixels = (image.height * image.width) as f64;
    let weights = parameters.next(image.channels * outputs);
    let biases = parameters.next(outputs);
    assert!(parameters.0.is_empty(), "parameters are left");
    let mean = |channel: usize| image.values.iter().skip(channel).step_by(image.channels).sum::<f64>() / pixels;
    (0..outputs)
        .map(|output| biases[output] + (0..image.channels).map(|c| mean(c) * weights[c * outputs + output]).sum::<f64>())
        .collect()
}

#[test]
fn predictions_agree_with_plain_loops() {
    for normalization in [Normalization::FilterResponse, Normalization::None] {
        for (activation, shortcuts) in [(Activation::Swish, Shortcuts::Projection), (Activation::Relu, Shortcuts::Padding)] {
            let settings = ResnetSettings { depth: 14, ..resnet(normalization, activation, shortcuts) };
            let schema = images(9, 6, 2, CLASSES);
            let model = settings.build(&schema).unwrap();
            let (x, y) = data(&schema, 2, 3);
            let theta = check::particles(&model, 2, 4);
            let (mean, density) = check::predict(&model, &theta, Batch { x: x.view(), y: y.view() }, 3);
            for row in 0..2 {
                let mut expected = [0.0; 3];
                for theta in theta.rows() {
                    let image = Plain { height: 9, width: 6, channels: 2, values: x.row(row).to_vec() };
                    let outputs = plain_resnet(&settings, image, theta.as_slice().unwrap(), 3);
                    let total: f64 = outputs.iter().map(|output| output.exp()).sum();
                    expected.iter_mut().zip(outputs).for_each(|(mean, output)| *mean += output.exp() / total / 2.0);
                }
                for (class, expected) in expected.into_iter().enumerate() {
                    assert!((mean[[row, class]] - expected).abs() < 1e-12, "{settings:?}: {} {expected}", mean[[row, class]]);
                }
                assert!((density[row] - mean[[row, y[row] as usize]]).abs() < 1e-14);
            }
        }
    }
}

/// A negative control of the comparison above: the same parameters under another shortcut give other predictions.
#[test]
fn shortcuts_matter() {
    let schema = images(8, 8, 1, CLASSES);
    let (x, y) = data(&schema, 1, 3);
    let settings = resnet(Normalization::FilterResponse, Activation::Swish, Shortcuts::Padding);
    let model = settings.build(&schema).unwrap();
    let mut without = model.clone();
    without.architecture.units.iter_mut().for_each(|unit| unit.shortcut = None);
    let theta = check::particles(&model, 1, 4);
    let batch = Batch { x: x.view(), y: y.view() };
    let [with, without] = [model, without].map(|model| check::predict(&model, &theta, batch, 3).0);
    assert!((&with - &without).iter().any(|difference| difference.abs() > 1e-3));
}

/// With several blocks of images, the bits of results do not depend on the number of threads, and the score of many images is the sum of
/// those of their blocks.
#[test]
fn bits_do_not_depend_on_threads() {
    let schema = images(8, 8, 3, CLASSES);
    let model = resnet(Normalization::FilterResponse, Activation::Swish, Shortcuts::Projection).build(&schema).unwrap();
    let rows = 4 * BLOCK_IMAGES + 5;
    let (x, y) = data(&schema, rows, 10);
    let (x, y) = (x.mapv(|x| x as f32), y.mapv(|y| y as f32));
    let theta = check::particles(&model, 3, 11).mapv(|theta| theta as f32);
    let score_of = |rows: std::ops::Range<usize>| {
        let mut score = Array2::<f32>::zeros(theta.raw_dim());
        let batch = Batch { x: x.slice(s![rows.clone(), ..]), y: y.slice(s![rows]) };
        model.add_score(theta.view(), batch, 3.0, score.view_mut(), &mut Scratch::new());
        score
    };
    let on = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| {
            let batch = Batch { x: x.view(), y: y.view() };
            let mut loss = vec![0.0; 3];
            model.loss(theta.view(), batch, &mut loss, &mut Scratch::new());
            let (mut mean, mut density) = (Array2::zeros((rows, 3)), vec![0.0; rows]);
            model.predict(theta.view(), batch, mean.view_mut(), &mut density, &mut Scratch::new());
            let mut curvature = Array2::<f32>::zeros(theta.raw_dim());
            model.add_curvature(theta.view(), batch, 3.0, curvature.view_mut(), &mut Scratch::new());
            (score_of(0..rows), loss, mean, density, curvature)
        })
    };
    let one = on(1);
    assert!(one.2.rows().into_iter().all(|row| (row.sum() - 1.0).abs() < 1e-6));
    for threads in [2, 3] {
        assert!(one == on(threads), "{threads} threads");
    }
    let mut sum = Array2::<f32>::zeros(theta.raw_dim());
    for first in (0..rows).step_by(BLOCK_IMAGES) {
        sum += &score_of(first..rows.min(first + BLOCK_IMAGES));
    }
    assert_eq!(sum, one.0);
}

/// Buffers that other passes have left behind do not matter.
#[test]
fn used_buffers_do_not_matter() {
    let mut scratch = Scratch::new();
    for (name, model, schema) in [Activation::Swish, Activation::Relu].into_iter().flat_map(networks) {
        let (x, y) = data(&schema, 3, 5);
        let batch = Batch { x: x.view(), y: y.view() };
        let theta = check::particles(&model, 1, 8);
        let outputs = model.architecture.outputs;
        let all = |scratch: &mut Scratch<f64>, refill: &dyn Fn(&mut Scratch<f64>)| {
            let (mut score, mut curvature) = (Array2::zeros(theta.raw_dim()), Array2::zeros(theta.raw_dim()));
            let (mut loss, mut mean, mut density) = ([0.0], Array2::zeros((3, outputs)), [0.0; 3]);
            refill(scratch);
            model.add_score(theta.view(), batch, 1.0, score.view_mut(), scratch);
            refill(scratch);
            model.add_curvature(theta.view(), batch, 1.0, curvature.view_mut(), scratch);
            refill(scratch);
            model.loss(theta.view(), batch, &mut loss, scratch);
            refill(scratch);
            model.predict(theta.view(), batch, mean.view_mut(), &mut density, scratch);
            (score, curvature, loss, mean, density)
        };
        let clean = all(&mut Scratch::new(), &|_| {});
        let refill = |scratch: &mut Scratch<f64>| {
            let buffers: Vec<_> = (0..40).map(|_| scratch.take(4000)).collect();
            for mut buffer in buffers {
                buffer.fill(f64::NAN);
                scratch.put(buffer);
            }
        };
        assert_eq!(all(&mut scratch, &refill), clean, "{name}");
    }
}

/// Sums over thousands of pixels in single precision are precise enough.
#[test]
fn single_precision_agrees_with_double_precision_on_a_deep_network() {
    let schema = images(32, 32, 3, Output::Classes(10));
    for normalization in [Normalization::FilterResponse, Normalization::None] {
        let model = ResnetSettings { normalization, ..ResnetSettings::default() }.build(&schema).unwrap();
        let (x, y) = data(&schema, 4, 5);
        let mut theta = Array2::<f64>::zeros((1, model.dim()));
        model.draw_initial(&mut stream(3), theta.row_mut(0));
        check::assert_precisions_agree(&model, &model, &theta, Batch { x: x.view(), y: y.view() }, 2e-5);
    }
}

/// The residual network of He et al. (2016) for CIFAR-10, with biases in place of batch normalization.
#[test]
fn a_residual_network_has_the_known_number_of_parameters() {
    let schema = images(32, 32, 3, Output::Classes(10));
    let settings = ResnetSettings { normalization: Normalization::None, ..ResnetSettings::default() };
    let model = settings.build(&schema).unwrap();
    let stage = |inputs: usize, channels: usize, others: usize| {
        9 * inputs * channels + channels + others * (9 * channels * channels + channels)
    };
    assert_eq!(model.dim(), stage(3, 16, 10) + stage(16, 32, 9) + stage(32, 64, 9) + 650);
    assert_eq!(model.dim(), 463_018);
    let parts = Model::<f32>::parts(&model);
    assert_eq!(parts.iter().map(Part::size).sum::<usize>(), model.dim());
    assert_eq!((parts[0].name.as_str(), parts[0].shape.as_slice()), ("filters_1", &[3, 3, 3, 16][..]));
    assert_eq!(parts.last().unwrap().name, "biases");
    // 69 million multiply-adds of an image.
    assert_eq!(model.products() / 1_000_000, 68);
    let values = Model::<f32>::buffered_values(&model);
    assert!((5_000_000..10_000_000).contains(&values), "{values}");
    // Other settings have the same parameters and more.
    let normalized = ResnetSettings::default().build(&schema).unwrap();
    assert_eq!(normalized.dim(), 463_018 + 16 * 11 + 32 * 10 + 64 * 10);
    let projected = ResnetSettings { shortcuts: Shortcuts::Projection, ..settings }.build(&schema).unwrap();
    assert_eq!(projected.dim(), 463_018 + 16 * 32 + 32 * 64);
}

/// Filters have variance 2/inputs, within 4.5 standard errors; gains are 1, biases 0, and without normalization the last filters of the 15
/// blocks are smaller.
#[test]
fn initial_filters_are_scaled_by_fan_in() {
    let schema = images(32, 32, 3, Output::Classes(10));
    for normalization in [Normalization::FilterResponse, Normalization::None] {
        let model = ResnetSettings { normalization, ..ResnetSettings::default() }.build(&schema).unwrap();
        let mut theta = Array1::<f64>::from_elem(model.dim(), f64::NAN);
        model.draw_initial(&mut stream(3), theta.view_mut());
        let factor = if normalization == Normalization::None { 1.0 / 15.0 } else { 1.0 };
        for (number, wanted) in [(29, 1.0), (30, factor)] {
            let filters = &model.architecture.units[number].filters;
            let count = filters.convolution.weights();
            let weights = theta.slice(s![filters.offset..filters.offset + count]);
            let variance = weights.mapv(|weight| weight * weight).mean().unwrap() * (9.0 * 64.0 / 2.0) / wanted;
            assert!((variance - 1.0).abs() < 4.5 * (2.0 / count as f64).sqrt(), "{number}: {variance}");
        }
        let unit = &model.architecture.units[7];
        assert!(unit.gains.is_none_or(|gains| theta.slice(s![gains..gains + 16]).iter().all(|&gain| gain == 1.0)));
        assert!(theta.slice(s![unit.offsets..unit.offsets + 16]).iter().all(|&offset| offset == 0.0));
        assert!(theta.iter().all(|theta| theta.is_finite()));
    }
}

#[test]
fn bad_settings_and_data_are_refused() {
    let read = |text: &str| toml::from_str::<ResnetSettings>(text).unwrap();
    let schema = images(8, 8, 1, CLASSES);
    for (text, message) in [
        (
            "depth = 33",
            "depth: must be 6n + 2 for n blocks in each of three stages, at most 2000, such as 8, 20, 32 or 56, not 33",
        ),
        ("depth = 2", "depth: must be 6n + 2"),
        ("width = 4096", "weights; at most 4294967296 are possible"),
        ("width = 0", "width: must be from 1 to 4096, not 0"),
        ("prior_precision = 0.0", "prior_precision: must be"),
        ("loss = \"gaussian\"", "loss = \"gaussian\" does not fit targets that are classes"),
    ] {
        let error = read(text).build(&schema).unwrap_err().to_string();
        assert!(error.contains(message), "{text}: {error}");
    }
    let default = ResnetSettings::default();
    for (schema, message) in [
        (DataSchema::new(64, CLASSES), "a convolutional network needs images"),
        (DataSchema { scales: None, ..schema.clone() }, "needs pixels"),
        (DataSchema { shape: vec![4, 4, 4], ..schema.clone() }, "the channels of these images come first"),
        (DataSchema { weight: true, ..schema.clone() }, "whose rows have weights: a convolutional network has no use for them"),
        (DataSchema { output: Output::Count, ..schema.clone() }, "classes or numbers"),
    ] {
        let error = default.build(&schema).unwrap_err().to_string();
        assert!(error.contains(message), "{error}");
    }
    let one_pixel = ConvolutionalSettings { layers: vec![LayerSettings::new(4, 2); 3], ..ConvolutionalSettings::default() };
    let error = one_pixel.build(&schema).unwrap_err().to_string();
    assert!(
        error.contains("normalization = \"filter_response\" needs images of several pixels, and the output of layer 3 has one"),
        "{error}"
    );
    // Images with one channel need not say so.
    assert!(default.build(&DataSchema { shape: vec![8, 8], ..schema.clone() }).is_ok());

    let read = |text: &str| toml::from_str::<ConvolutionalSettings>(text).unwrap();
    let settings = read("layers = [{ channels = 8 }, { channels = 4, size = 1, stride = 2 }]\nloss = { huber = 1.5 }");
    assert_eq!(settings.layers[1], LayerSettings { channels: 4, size: 1, stride: 2 });
    assert_eq!(settings.loss, Some(Loss::Huber(1.5)));
    assert_eq!(read(&toml::to_string(&settings).unwrap()), settings);
    for (text, message) in [
        ("layers = []", "layers: must have from 1 to 2000 layers, not 0"),
        ("layers = [{ channels = 8 }, { channels = 0 }]", "layers.1.channels: must be from 1 to 16384, not 0"),
        ("layers = [{ channels = 8, size = 5 }]", "layers.0.size: must be 1 or 3, not 5"),
        ("layers = [{ channels = 8, stride = 3 }]", "layers.0.stride: must be 1 or 2, not 3"),
    ] {
        let error = read(text).build(&schema).unwrap_err().to_string();
        assert!(error.contains(message), "{text}: {error}");
    }
}

/// A single 1 × 1 convolution of an image of one pixel is a dense layer, and can be followed by hand.
#[test]
fn the_smallest_network_agrees_with_hand_computation() {
    let settings = ConvolutionalSettings {
        layers: vec![LayerSettings { channels: 1, size: 1, stride: 1 }],
        normalization: Normalization::None,
        activation: Activation::Relu,
        ..ConvolutionalSettings::default()
    };
    let model = settings.build(&images(1, 2, 1, Output::Classes(2))).unwrap();
    // relu(2·3 − 1), relu(2·(−4) − 1) → mean 2.5 → outputs 2.5·(1, −1) + (0, 0.5).
    let theta = array![[2.0, -1.0, 1.0, -1.0, 0.0, 0.5]];
    let (x, y) = (array![[3.0, -4.0]], array![1.0]);
    let (mean, _) = check::predict(&model, &theta, Batch { x: x.view(), y: y.view() }, 2);
    let expected = 1.0 / (1.0 + (2.5_f64 - -2.0).exp());
    assert!((mean[[0, 1]] - expected).abs() < 1e-14);
    let mut prior = [0.0];
    model.log_prior(theta.view(), &mut prior);
    assert!((prior[0] + 0.5 * 5.0 * (4.0 + 1.0 + 1.0 + 1.0 + 0.25)).abs() < 1e-14);
}
