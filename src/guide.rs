//! From an idea to a run: a density on paper becomes a model with the whole command line.
//!
//! The model of this page is regression with an intercept for each group, in full in `examples/hierarchical` with data that are
//! made up. Methods have a page of their own, CONTRIBUTING.md.
//!
//! # 1. The density on paper
//!
//! mpibayes samples from p(θ) ∝ p0(θ) exp(−Σ_i ℓ_i(θ)/α): a prior, and a loss ℓ_i for each row of data, which in Bayes' rule is
//! −log p(y_i | x_i, θ) with temperature α = 1. θ is any vector in R^d, so
//!
//! - what must be positive is sampled as its logarithm. A prior on τ > 0 becomes one on v = log τ by its Jacobian:
//!   log p(v) = log p_τ(e^v) + v;
//! - what varies by group is written non-centred, α_j = μ + τ z_j with z_j ~ N(0, 1), which samplers find easier where groups have few
//!   rows;
//! - rows are independent given θ, for agents see only their own. A group is therefore a column of the data.
//!
//! # 2. The model
//!
//! A type that implements [`Model`](crate::models::Model): six facts about θ and two gradients, each for all particles (rows of
//! `theta`) at once. The smallest that does something, the mean of numbers with a known standard deviation of 1:
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
//!     // The names and shapes under which draws stand in the result file.
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
//!     // Overwrites.
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
//!     // Subtracts weight × the gradient of the loss.
//!     fn add_score(&self, theta: ArrayView2<F>, batch: Batch<F>, weight: F, mut score: ArrayViewMut2<F>, _: &mut Scratch<F>) {
//!         for (score, theta) in score.column_mut(0).iter_mut().zip(theta.column(0)) {
//!             *score += weight * batch.y.iter().map(|y| *y - *theta).sum::<F>();
//!         }
//!     }
//!
//!     // The mean of each row, and the density of its target, both averaged over particles.
//!     fn predict(
//!         &self,
//!         theta: ArrayView2<F>,
//!         batch: Batch<F>,
//!         mut mean: ArrayViewMut2<f64>,
//!         density: &mut [f64],
//!         _: &mut Scratch<F>,
//!     ) {
//!         let share = 1.0 / theta.nrows() as f64;
//!         mean.fill(share * theta.column(0).iter().map(|theta| theta.f64()).sum::<f64>());
//!         for (density, y) in density.iter_mut().zip(batch.y) {
//!             let of = |theta: &F| (-(*y - *theta).f64().powi(2) / 2.0).exp() / std::f64::consts::TAU.sqrt();
//!             *density = share * theta.column(0).iter().map(of).sum::<f64>();
//!         }
//!     }
//! }
//!
//! // 3. The check: a wrong sign in a gradient gives a run that looks like one.
//! let (x, y) = (ndarray::Array2::zeros((3, 1)), ndarray::array![0.5, 2.0, -1.0]);
//! let batch = Batch { x: x.view(), y: y.view() };
//! let density = |theta: f64| {
//!     let (theta, mut prior, mut loss) = (ndarray::array![[theta]], [0.0], [0.0]);
//!     Mean.log_prior(theta.view(), &mut prior);
//!     Mean.loss(theta.view(), batch, &mut loss, &mut Scratch::new());
//!     prior[0] - loss[0]
//! };
//! let (theta, mut score) = (ndarray::array![[0.7]], ndarray::array![[0.0]]);
//! Mean.prior_score(theta.view(), score.view_mut());
//! Mean.add_score(theta.view(), batch, 1.0, score.view_mut(), &mut Scratch::new());
//! let numeric = (density(0.7 + 1e-5) - density(0.7 - 1e-5)) / 2e-5;
//! assert!((score[[0, 0]] - numeric).abs() < 1e-8);
//! ```
//!
//! Targets of a regression come in units of their standard deviation, around their mean; what you predict is turned back. Classes come
//! as 0, 1, ... with [`Output::Classes`](crate::models::Output::Classes). Where values of the data could be wrong for the model, such
//! as a group that there is none of, say so in [`Model::check`](crate::models::Model::check): it is asked before the run begins.
//!
//! # 3. The gradient check
//!
//! As above: central differences of the values, for some θ and rows that exercise every term. `examples/hierarchical/tests.rs` does it
//! for all parameters at once, and holds the particles against quadrature.
//!
//! # 4. The name in run files
//!
//! Settings with defaults, which build the model for the data at hand, and a `main` of one line:
//!
//! ```no_run
//! # use mpibayes::models::{Batch, BuiltModel, DataSchema, ModelSettings, require_data};
//! # use mpibayes::models::toy::ToySettings;
//! # use mpibayes::number::Real;
//! use serde::{Deserialize, Serialize};
//!
//! #[derive(Serialize, Deserialize)]
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
//!     fn build_model<F: Real>(&self, facts: Option<DataSchema>) -> Result<BuiltModel<F>, String> {
//!         let facts = require_data(facts)?;
//!         // Ok(BuiltModel::for_data(VaryingIntercepts { groups: self.groups, slopes: facts.features - 1 }))
//! #       ToySettings::default().build_model(None)
//!     }
//! }
//!
//! fn main() -> std::process::ExitCode {
//!     mpibayes::main_with(&mpibayes::config::Registry::default().with_model::<Settings>())
//! }
//! ```
//!
//! That is a program with every subcommand, method and driver of `mpibayes`, and your model beside those that come along.
//!
//! # 5. Data, run, summary
//!
//! ```text
//! cargo build --release --example hierarchical
//! H=target/release/examples/hierarchical
//! $H import examples/hierarchical/schools.csv --task regression --scaling none --test-fraction 0.2 -o datasets/schools.h5
//! mpirun -n 2 $H run examples/hierarchical/run.toml --output runs/schools
//! $H summary runs/schools
//! ```
//!
//! `--scaling none` because the numbers of groups are no quantities; other columns are then best given in units of their spread.
//! The summary shows metrics on the test rows, and for each parameter what the draws say: of particles mean, standard deviation and
//! quantiles, of chains also MCSE, ESS and R-hat ([`metrics::convergence`](crate::metrics::convergence)), the worst first.
//! A few Stein particles understate how uncertain they are: trust their mean before their spread.
//!
//! # 6. The draws elsewhere
//!
//! `result.h5` is netCDF-4 in ArviZ's layout, one variable for each part. In Python:
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
//! z <- ncvar_get(run, "posterior/z")                          # dimensions in reverse: z_dim_0, draw, chain
//! rowMeans(z)
//! ```
