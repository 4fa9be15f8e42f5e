//! A model in other coordinates, in which its posterior is close to a standard normal distribution, or every parameter has the same scale.

use super::batch::Batch;
use super::model::{CurvatureSupport, Model, Output, Part};
use super::scaling::Scaling;
use super::scratch::Scratch;
use super::whitening::Whitening;
use crate::layout::{flat, flat_mut, matrix, matrix_mut};
use crate::number::Real;
use crate::random::Stream;
use ndarray::{Array2, ArrayView1, ArrayView2, ArrayViewMut1, ArrayViewMut2, Axis};
use std::sync::Arc;

/// Around a mode, chains start at z ~ N(0, 1.5² I): more spread than the posterior, so that chains which do not meet are seen.
const INITIAL_SD: f64 = 1.5;

/// A model whose parameter vector is z. Its parts, predictions and rows are those of the model inside.
pub struct Whitened<F> {
    inner: Arc<dyn Model<F>>,
    coordinates: Coordinates<F>,
}

enum Coordinates<F> {
    AroundMode(Whitening<F>),
    Scaled(Scaling<F>),
}

impl<F: Real> Coordinates<F> {
    /// Writes θ at z.
    fn write_parameters(&self, z: &[F], theta: &mut [F]) {
        match self {
            Self::AroundMode(whitening) => whitening.write_parameters(z, theta),
            Self::Scaled(scaling) => scaling.write_parameters(z, theta),
        }
    }
}

impl<F: Real> Whitened<F> {
    /// A model in these coordinates.
    ///
    /// # Panics
    /// If the model has another number of parameters.
    pub fn new(inner: Arc<dyn Model<F>>, whitening: Whitening<F>) -> Self {
        assert_eq!(inner.dim(), whitening.dim(), "a whitening needs one value for each parameter");
        Self { inner, coordinates: Coordinates::AroundMode(whitening) }
    }

    /// A model whose parameters are scaled.
    ///
    /// # Panics
    /// If the model has another number of parameters.
    pub fn scaled(inner: Arc<dyn Model<F>>, scaling: Scaling<F>) -> Self {
        assert_eq!(inner.dim(), scaling.dim(), "a scaling needs one value for each parameter");
        Self { inner, coordinates: Coordinates::Scaled(scaling) }
    }

    /// Calls `with` with θ at all particles.
    fn at_parameters<T>(
        &self,
        z: ArrayView2<F>,
        scratch: &mut Scratch<F>,
        with: impl FnOnce(ArrayView2<F>, &mut Scratch<F>) -> T,
    ) -> T {
        let mut theta = scratch.take(z.len());
        for (z, theta) in flat(z).chunks_exact(z.ncols()).zip(theta.chunks_exact_mut(z.ncols())) {
            self.coordinates.write_parameters(z, theta);
        }
        let result = with(matrix(&theta, z.nrows(), z.ncols()), scratch);
        scratch.put(theta);
        result
    }

    /// Adds gradients by z to `score`, where `add` adds those by θ.
    fn add_gradients(
        &self,
        z: ArrayView2<F>,
        score: ArrayViewMut2<F>,
        scratch: &mut Scratch<F>,
        add: impl FnOnce(ArrayView2<F>, ArrayViewMut2<F>, &mut Scratch<F>),
    ) {
        let mut by_theta = scratch.take(z.len());
        by_theta.fill(F::zero());
        self.at_parameters(z, scratch, |theta, scratch| add(theta, matrix_mut(&mut by_theta, z.nrows(), z.ncols()), scratch));
        for (score, by_theta) in flat_mut(score).chunks_exact_mut(z.ncols()).zip(by_theta.chunks_exact(z.ncols())) {
            match &self.coordinates {
                Coordinates::AroundMode(whitening) => whitening.add_gradient(by_theta, score),
                Coordinates::Scaled(scaling) => scaling.add_gradient(by_theta, score),
            }
        }
        scratch.put(by_theta);
    }
}

impl<F: Real> Model<F> for Whitened<F> {
    fn dim(&self) -> usize {
        self.inner.dim()
    }

    fn parts(&self) -> Vec<Part> {
        self.inner.parts()
    }

    fn output(&self) -> Output {
        self.inner.output()
    }

    fn buffered_values(&self) -> usize {
        self.inner.buffered_values()
    }

    fn has_symmetries(&self) -> bool {
        self.inner.has_symmetries()
    }

    fn check(&self, batch: Batch<F>) -> Result<(), String> {
        self.inner.check(batch)
    }

    fn draw_initial(&self, stream: &mut Stream, mut z: ArrayViewMut1<F>) {
        match &self.coordinates {
            Coordinates::AroundMode(_) => {
                z.fill(F::zero());
                if let Some(z) = z.as_slice_mut() {
                    stream.add_normals(F::of(INITIAL_SD), z);
                }
            }
            Coordinates::Scaled(scaling) => {
                self.inner.draw_initial(stream, z.view_mut());
                if let Some(z) = z.as_slice_mut() {
                    scaling.to_coordinates(z);
                }
            }
        }
    }

    fn start(&self, chain: u64, z: &mut [F]) -> bool {
        match &self.coordinates {
            Coordinates::AroundMode(_) => false,
            Coordinates::Scaled(scaling) => scaling.start(chain, z),
        }
    }

    fn log_prior(&self, z: ArrayView2<F>, out: &mut [f64]) {
        self.at_parameters(z, &mut Scratch::new(), |theta, _| self.inner.log_prior(theta, out));
    }

    fn prior_score(&self, z: ArrayView2<F>, mut score: ArrayViewMut2<F>) {
        score.fill(F::zero());
        self.add_gradients(z, score, &mut Scratch::new(), |theta, by_theta, _| self.inner.prior_score(theta, by_theta));
    }

    fn loss(&self, z: ArrayView2<F>, batch: Batch<F>, out: &mut [f64], scratch: &mut Scratch<F>) {
        self.at_parameters(z, scratch, |theta, scratch| self.inner.loss(theta, batch, out, scratch));
    }

    fn add_score(&self, z: ArrayView2<F>, batch: Batch<F>, weight: F, score: ArrayViewMut2<F>, scratch: &mut Scratch<F>) {
        self.add_gradients(z, score, scratch, |theta, by_theta, scratch| {
            self.inner.add_score(theta, batch, weight, by_theta, scratch);
        });
    }

    fn add_minibatch_score(
        &self,
        rows: &[usize],
        z: ArrayView2<F>,
        batch: Batch<F>,
        weight: F,
        score: ArrayViewMut2<F>,
        scratch: &mut Scratch<F>,
    ) {
        self.add_gradients(z, score, scratch, |theta, by_theta, scratch| {
            self.inner.add_minibatch_score(rows, theta, batch, weight, by_theta, scratch);
        });
    }

    fn curvature_support(&self) -> CurvatureSupport {
        self.inner.curvature_support()
    }

    fn add_curvature(
        &self,
        z: ArrayView2<F>,
        batch: Batch<F>,
        weight: F,
        mut curvature: ArrayViewMut2<F>,
        scratch: &mut Scratch<F>,
    ) {
        if let Coordinates::Scaled(scaling) = &self.coordinates {
            let mut by_theta = Array2::zeros(z.raw_dim());
            self.at_parameters(z, scratch, |theta, scratch| {
                self.inner.add_curvature(theta, batch, weight, by_theta.view_mut(), scratch);
            });
            for (mut curvature, by_theta) in curvature.rows_mut().into_iter().zip(by_theta.rows()) {
                curvature
                    .iter_mut()
                    .zip(by_theta)
                    .zip(scaling.scale())
                    .for_each(|((out, &value), &scale)| *out += scale * scale * value);
            }
            return;
        }
        let dim = self.dim();
        for (z, mut diagonal) in z.axis_chunks_iter(Axis(0), 1).zip(curvature.rows_mut()) {
            let mut full = Array2::zeros((dim, dim));
            self.add_full_curvature(z, batch, weight, full.view_mut(), scratch);
            diagonal += &full.diag();
        }
    }

    fn add_full_curvature(
        &self,
        z: ArrayView2<F>,
        batch: Batch<F>,
        weight: F,
        curvature: ArrayViewMut2<F>,
        scratch: &mut Scratch<F>,
    ) {
        let dim = self.dim();
        let mut by_theta = scratch.take(dim * dim);
        by_theta.fill(F::zero());
        self.at_parameters(z, scratch, |theta, scratch| {
            self.inner.add_full_curvature(theta, batch, weight, matrix_mut(&mut by_theta, dim, dim), scratch);
        });
        match &self.coordinates {
            Coordinates::AroundMode(whitening) => whitening.add_curvature(matrix(&by_theta, dim, dim), curvature),
            Coordinates::Scaled(scaling) => scaling.add_curvature(&by_theta, flat_mut(curvature)),
        }
        scratch.put(by_theta);
    }

    fn predict(
        &self,
        z: ArrayView2<F>,
        batch: Batch<F>,
        mean: ArrayViewMut2<f64>,
        density: &mut [f64],
        scratch: &mut Scratch<F>,
    ) {
        self.at_parameters(z, scratch, |theta, scratch| self.inner.predict(theta, batch, mean, density, scratch));
    }

    fn is_hierarchical(&self) -> bool {
        self.inner.is_hierarchical()
    }

    fn draw_targets(
        &self,
        z: ArrayView2<F>,
        row: Batch<F>,
        stream: &mut Stream,
        out: &mut [f64],
        scratch: &mut Scratch<F>,
    ) -> bool {
        let mut can_draw = false;
        self.at_parameters(z, scratch, |theta, scratch| can_draw = self.inner.draw_targets(theta, row, stream, out, scratch));
        can_draw
    }

    fn is_of_new_group(&self, row: ArrayView1<F>) -> bool {
        self.inner.is_of_new_group(row)
    }

    fn draw_means(
        &self,
        z: ArrayView2<F>,
        row: Batch<F>,
        stream: &mut Stream,
        out: ArrayViewMut2<f64>,
        scratch: &mut Scratch<F>,
    ) {
        self.at_parameters(z, scratch, |theta, scratch| self.inner.draw_means(theta, row, stream, out, scratch));
    }

    fn inside(&self) -> Option<(&dyn Model<F>, &Whitening<F>)> {
        match &self.coordinates {
            Coordinates::AroundMode(whitening) => Some((self.inner.as_ref(), whitening)),
            Coordinates::Scaled(_) => None,
        }
    }

    fn append_parameters(&self, z: &[F], theta: &mut Vec<F>) {
        let first = theta.len();
        theta.resize(first + z.len(), F::zero());
        self.coordinates.write_parameters(z, &mut theta[first..]);
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::models::DataSchema;
    use crate::models::logistic::LogisticSettings;
    use crate::models::regression::prior::Prior;
    use crate::models::tests::{gradient_errors, normals, stream};
    use ndarray::Array1;

    const D: usize = 4;

    fn coordinates() -> (Array1<f64>, Array2<f64>) {
        (normals(&mut stream(3), 1, D).row(0).to_owned(), normals(&mut stream(4), D, D) + Array2::<f64>::eye(D) * 2.0)
    }

    fn whitened() -> (Arc<dyn Model<f64>>, Whitened<f64>) {
        let settings =
            LogisticSettings { prior: Prior::Normal(0.3_f64.powf(-0.5)), intercept: false, ..LogisticSettings::default() };
        let inner: Arc<dyn Model<f64>> = Arc::new(settings.build(&DataSchema::new(D, Output::Classes(2))).unwrap());
        let (center, factor) = coordinates();
        let whitening = Whitening::new(center.view(), factor.view(), Array1::ones(D).view());
        (inner.clone(), Whitened::new(inner, whitening))
    }

    /// c + L z with the upper triangle of L.
    fn parameters(z: &Array2<f64>) -> Array2<f64> {
        let (center, mut factor) = coordinates();
        factor.indexed_iter_mut().filter(|((i, j), _)| j < i).for_each(|(_, value)| *value = 0.0);
        z.dot(&factor.t()) + &center
    }

    #[test]
    fn gradients_are_those_of_the_loss_and_the_prior_by_z() {
        let (_, model) = whitened();
        let (x, y) = (normals(&mut stream(1), 9, D), Array1::from_iter((0..9).map(|i| f64::from(i % 2))));
        let z = normals(&mut stream(2), 3, D);
        let (prior, loss) = gradient_errors(&model, &z, Batch { x: x.view(), y: y.view() }, 0.7);
        assert!(prior < 1e-6 && loss < 1e-6, "{prior} {loss}");
    }

    #[test]
    fn values_are_those_of_the_model_at_the_parameters() {
        let (inner, model) = whitened();
        let (x, y) = (normals(&mut stream(1), 9, D), Array1::from_iter((0..9).map(|i| f64::from(i % 2))));
        let (batch, z) = (Batch { x: x.view(), y: y.view() }, normals(&mut stream(2), 3, D));
        let theta = parameters(&z);
        let scratch = &mut Scratch::new();
        let (mut here, mut there) = ([0.0; 3], [0.0; 3]);
        model.loss(z.view(), batch, &mut here, scratch);
        inner.loss(theta.view(), batch, &mut there, scratch);
        assert!(here.iter().zip(there).all(|(here, there)| (here - there).abs() < 1e-12), "{here:?} {there:?}");
        let mut appended = vec![7.0];
        model.append_parameters(z.row(1).as_slice().unwrap(), &mut appended);
        assert!(appended[1..].iter().zip(theta.row(1)).all(|(here, there)| (here - there).abs() < 1e-12));

        // The curvature is Lᵀ G L: by the chain rule, the change of the gradient between two points that are close.
        let mut curvature = Array2::zeros((D, D));
        let at = z.slice(ndarray::s![..1, ..]);
        model.add_full_curvature(at, batch, 1.0, curvature.view_mut(), scratch);
        let gradient = |z: Array2<f64>| {
            let mut score = Array2::zeros((1, D));
            model.add_score(z.view(), batch, -1.0, score.view_mut(), &mut Scratch::new());
            score
        };
        for j in 0..D {
            let moved = |by: f64| {
                let mut z = at.to_owned();
                z[[0, j]] += by;
                gradient(z)
            };
            let change = (moved(1e-5) - moved(-1e-5)) / 2e-5;
            assert!((&change.index_axis(Axis(0), 0) - &curvature.row(j)).iter().all(|error| error.abs() < 1e-6));
        }
        let mut diagonal = Array2::zeros((3, D));
        model.add_curvature(z.view(), batch, 1.0, diagonal.view_mut(), scratch);
        assert!((&diagonal.row(0) - &curvature.diag()).iter().all(|error| error.abs() < 1e-12));
    }

    #[test]
    fn scaled_parameters_have_the_values_and_derivatives_of_the_model() {
        let (inner, _) = whitened();
        let scale = Array1::from_vec(vec![0.5, 2.0, 1.0, 3.0]);
        let starts = normals(&mut stream(5), 2, D);
        let model = Whitened::scaled(inner.clone(), Scaling::new(scale.view(), starts.view()));
        let (x, y) = (normals(&mut stream(1), 9, D), Array1::from_iter((0..9).map(|i| f64::from(i % 2))));
        let (batch, z) = (Batch { x: x.view(), y: y.view() }, normals(&mut stream(2), 3, D));
        let (prior, loss) = gradient_errors(&model, &z, batch, 0.7);
        assert!(prior < 1e-6 && loss < 1e-6, "{prior} {loss}");
        let (mut here, mut there, scratch) = ([0.0; 3], [0.0; 3], &mut Scratch::new());
        model.loss(z.view(), batch, &mut here, scratch);
        inner.loss((&z * &scale).view(), batch, &mut there, scratch);
        assert!(here.iter().zip(there).all(|(here, there)| (here - there).abs() < 1e-12), "{here:?} {there:?}");
        // A chain starts at its point, which it shares if there are more chains than points; z = 0 is not known to be the mode.
        let (mut position, mut theta) = ([0.0; D], Vec::new());
        assert!(model.start(3, &mut position) && model.whitening().is_none());
        model.append_parameters(&position, &mut theta);
        assert!(theta.iter().zip(starts.row(1)).all(|(theta, start)| (theta - start).abs() < 1e-12));
        let (mut full, mut diagonal) = (Array2::zeros((D, D)), Array2::zeros((1, D)));
        let at = z.slice(ndarray::s![..1, ..]);
        model.add_full_curvature(at, batch, 1.0, full.view_mut(), scratch);
        model.add_curvature(at, batch, 1.0, diagonal.view_mut(), scratch);
        assert!(diagonal.row(0).iter().zip(full.diag()).all(|(a, b)| (a - b).abs() < 1e-12 && *a > 0.0));
    }

    #[test]
    fn single_precision_agrees() {
        let (center, factor) = coordinates();
        let double = Whitening::<f64>::new(center.view(), factor.view(), center.view());
        let single = Whitening::<f32>::new(center.view(), factor.view(), center.view());
        let (mut long, mut short) = ([0.0; D], [0.0; D]);
        double.write_parameters(&[1.0, -2.0, 0.5, 3.0], &mut long);
        single.write_parameters(&[1.0, -2.0, 0.5, 3.0], &mut short);
        assert!(long.iter().zip(&short).all(|(long, short)| (long - f64::from(*short)).abs() < 1e-5));
    }
}
