//! How to write your own model and run it with every method and subcommand of mpibayes.
//!
//! The example is a hierarchical regression with one intercept per group. The complete program and synthetic data are in
//! `examples/hierarchical`. `docs/src/tutorial-method.md` describes how to write your own method.
//!
//! # 1. The posterior density
//!
//! mpibayes samples from p(θ) ∝ p0(θ) exp(−Σ_i ℓ_i(θ)/α), with a prior p0 and a loss ℓ_i per row of data. Bayes' rule is
//! ℓ_i(θ) = −log p(y_i | x_i, θ) with the temperature α = 1. The parameters θ are an unconstrained vector in R^d. Therefore:
//!
//! - Sample the logarithm of a positive parameter. The prior of v = log τ includes the Jacobian: log p(v) = log p_τ(e^v) + v.
//! - Use the non-centered parameterization for parameters that vary by group: α_j = μ + τ z_j with z_j ~ N(0, 1). It is easier to sample
//!   if groups have few rows.
//! - Rows must be independent given θ, because each agent sees only its own rows. The group of a row is therefore a column of the data.
//!
//! # 2. The model
//!
//! A model is a type that implements the nine required functions of [`Model`](crate::models::Model). Each function handles all particles,
//! the rows of `theta`, at once. A minimal example is the mean of a Gaussian with standard deviation 1:
//!
//! ```
//! use mpibayes::models::{Batch, Model, Output, Part, Scratch};
//! use mpibayes::number::Real;
//! use mpibayes::random::Stream;
//! use ndarray::{ArrayView2, ArrayViewMut1, ArrayViewMut2};
//!
//! /// y_i ~ N(θ, 1), θ ~ N(0, 1).
//! struct Mean;
//!
//! impl<F: Real> Model<F> for Mean {
//!     fn dim(&self) -> usize {
//!         1
//!     }
//!
//!     // The names and shapes of the variables in the result file.
//!     fn parts(&self) -> Vec<Part> {
//!         vec![Part::new("mean", &[])]
//!     }
//!
//!     fn output(&self) -> Output {
//!         Output::Number
//!     }
//!
//!     fn draw_initial(&self, stream: &mut Stream, mut theta: ArrayViewMut1<F>) {
//!         let mut normal = [0.0];
//!         stream.normals(&mut normal);
//!         theta[0] = F::of(normal[0]);
//!     }
//!
//!     fn log_prior(&self, theta: ArrayView2<F>, out: &mut [f64]) {
//!         out.iter_mut().zip(theta.column(0)).for_each(|(out, theta)| *out = -theta.f64().powi(2) / 2.0);
//!     }
//!
//!     // Overwrites `score`.
//!     fn prior_score(&self, theta: ArrayView2<F>, mut score: ArrayViewMut2<F>) {
//!         score.assign(&theta.mapv(|theta| -theta));
//!     }
//!
//!     fn loss(&self, theta: ArrayView2<F>, batch: Batch<F>, out: &mut [f64], _: &mut Scratch<F>) {
//!         for (out, theta) in out.iter_mut().zip(theta.column(0)) {
//!             *out = batch.y.iter().map(|y| (*y - *theta).f64().powi(2) / 2.0).sum();
//!         }
//!     }
//!
//!     // Subtracts `weight` times the gradient of the loss from `score`.
//!     fn add_score(&self, theta: ArrayView2<F>, batch: Batch<F>, weight: F, mut score: ArrayViewMut2<F>, _: &mut Scratch<F>) {
//!         for (score, theta) in score.column_mut(0).iter_mut().zip(theta.column(0)) {
//!             *score += weight * batch.y.iter().map(|y| *y - *theta).sum::<F>();
//!         }
//!     }
//!
//!     // The predicted mean and the density of the target of each row, averaged over particles.
//!     fn predict(
//!         &self,
//!         theta: ArrayView2<F>,
//!         batch: Batch<F>,
//!         mut mean: ArrayViewMut2<f64>,
//!         density: &mut [f64],
//!         _: &mut Scratch<F>,
//!     ) {
//!         let weight = 1.0 / theta.nrows() as f64;
//!         mean.fill(weight * theta.column(0).iter().map(|theta| theta.f64()).sum::<f64>());
//!         for (density, y) in density.iter_mut().zip(batch.y) {
//!             let normal = |theta: &F| (-(*y - *theta).f64().powi(2) / 2.0).exp() / std::f64::consts::TAU.sqrt();
//!             *density = weight * theta.column(0).iter().map(normal).sum::<f64>();
//!         }
//!     }
//! }
//!
//! // Compare the score with central differences of the log-density.
//! let (x, y) = (ndarray::Array2::zeros((3, 1)), ndarray::array![0.5, 2.0, -1.0]);
//! let batch = Batch { x: x.view(), y: y.view() };
//! let log_density = |theta: f64| {
//!     let (theta, mut prior, mut loss) = (ndarray::array![[theta]], [0.0], [0.0]);
//!     Mean.log_prior(theta.view(), &mut prior);
//!     Mean.loss(theta.view(), batch, &mut loss, &mut Scratch::new());
//!     prior[0] - loss[0]
//! };
//! let (theta, mut score) = (ndarray::array![[0.7]], ndarray::array![[0.0]]);
//! Mean.prior_score(theta.view(), score.view_mut());
//! Mean.add_score(theta.view(), batch, 1.0, score.view_mut(), &mut Scratch::new());
//! let numeric = (log_density(0.7 + 1e-5) - log_density(0.7 - 1e-5)) / 2e-5;
//! assert!((score[[0, 0]] - numeric).abs() < 1e-8);
//! ```
//!
//! Regression targets are standardized: the model sees them with mean 0 and standard deviation 1, and its predictions are transformed
//! back. For classification, `output` is [`Output::Classes`](crate::models::Output::Classes) and targets are the class indices 0, 1, ....
//! If the data may hold values that the model cannot handle, such as a group index out of range, implement
//! [`Model::check`](crate::models::Model::check), which runs before sampling begins.
//!
//! # 3. The gradient check
//!
//! A run with a wrong gradient looks like any other run, so test the gradient: compare it with central differences, as above, for values
//! of θ and rows that exercise every term. `examples/hierarchical/tests.rs` does this for all parameters, and compares the particles with
//! quadrature.
//!
//! # 4. Settings and the program
//!
//! [`ModelSettings`](crate::models::ModelSettings) names the model in run files. It holds the keys of `[model]` with their defaults and
//! builds the model for the data. The program itself is one line:
//!
//! ```no_run
//! # use mpibayes::models::{Batch, BuiltModel, DataSchema, ModelSettings, require_data};
//! # use mpibayes::models::toy::ToySettings;
//! # use mpibayes::number::Real;
//! # use mpibayes::settings::KeyError;
//! use serde::{Deserialize, Serialize};
//!
//! #[derive(Clone, Serialize, Deserialize)]
//! #[serde(deny_unknown_fields, default)]
//! struct Settings {
//!     groups: usize,
//! }
//!
//! impl Default for Settings {
//!     fn default() -> Self {
//!         Self { groups: 8 }
//!     }
//! }
//!
//! impl ModelSettings for Settings {
//!     const NAME: &'static str = "varying-intercepts";
//!
//!     fn build_model<F: Real>(&self, data: Option<&DataSchema>) -> Result<BuiltModel<F>, KeyError> {
//!         let data = require_data(data)?;
//!         // Ok(BuiltModel::for_data(VaryingIntercepts { groups: self.groups, slopes: data.features - 1 }))
//! #       ToySettings::default().build_model(None)
//!     }
//! }
//!
//! fn main() -> std::process::ExitCode {
//!     mpibayes::main_with(&mpibayes::config::Registry::default().with_model::<Settings>())
//! }
//! ```
//!
//! This program has every subcommand and method of `mpibayes`, and your model beside the built-in ones.
//!
//! # 5. Import, run, summary
//!
//! ```text
//! cargo build --release --example hierarchical
//! H=target/release/examples/hierarchical
//! $H import examples/hierarchical/schools.csv --task regression --scaling none --test-fraction 0.2 -o datasets/schools.h5
//! mpirun -n 2 $H run examples/hierarchical/run.toml --output runs/schools
//! $H summary runs/schools
//! ```
//!
//! The import uses `--scaling none` because group indices must not be standardized; standardize the other columns yourself. The summary
//! shows metrics of the test rows and a table of the parameters: mean, standard deviation and quantiles, and for chains also MCSE, ESS and
//! R-hat ([`metrics::convergence`](crate::metrics::convergence)), with the worst first. A small number of SVGD particles underestimates
//! the posterior variance, so rely on their mean rather than their spread.
//!
//! # 6. Results in Python and R
//!
//! `result.h5` is a netCDF-4 file in the layout of ArviZ, with one variable per part of θ. In Python:
//!
//! ```python
//! import arviz as az, numpy as np
//! run = az.from_netcdf("runs/schools/result.h5")
//! print(run.posterior)                                        # xarray: chain × draw × ...
//! tau = np.exp(run.posterior["log_spread"])
//! print(az.summary(run, kind="stats"))
//! ```
//!
//! In R:
//!
//! ```r
//! library(ncdf4)
//! run <- nc_open("runs/schools/result.h5")
//! z <- ncvar_get(run, "posterior/z")                          # dimensions in reverse order: z_dim_0, draw, chain
//! rowMeans(z)
//! ```
