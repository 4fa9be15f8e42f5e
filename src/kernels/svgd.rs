//! Stein variational gradient descent (SVGD): the update direction and the loop over steps.
//!
//! With scores s_j at particles θ_j, particle n moves along (Liu & Wang 2016)
//!
//! φ_n = (1/N) Σ_j [k(θ_j, θ_n) s_j + ∇_{θ_j} k(θ_j, θ_n)].
//!
//! In distributed SVGD (Kassab & Simeone, arXiv 2009.06419) the score is the model's score plus a signed sum of scores of kernel density
//! estimates. The latter are linear in the rows of the particles and of the fixed particle sets C_j. Therefore one product of the
//! particles with [Θ; C_1; ...] gives all distances, and one or two products of small matrices with these rows give the direction. Both
//! are computed on blocks of columns: while a block is in cache, the direction is computed, the optimizer moves the particles, and the
//! products for the next step are computed. A step thus reads memory once.

use super::kde::{Kde, KdeFactor, without_canceling_pairs};
use super::optimizer::{Optimizer, OptimizerState};
use super::rbf::Bandwidth;
use super::select::Selector;
use super::symmetric::Symmetric;
use crate::number::Real;
use crate::settings::KeyError;
use crate::vector::{self, vectorized};
use ndarray::linalg::general_mat_mul;
use ndarray::{Array2, ArrayView2, ArrayViewMut2, Axis, s};

/// The kernel between particles.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kernel {
    /// exp(−‖x − y‖²/h).
    Rbf(Bandwidth),
    /// xᵀy + 1. Its fixed points for a Gaussian target have the exact mean and covariance (Liu & Wang 2018).
    Linear,
}

impl Default for Kernel {
    fn default() -> Self {
        Self::Rbf(Bandwidth::default())
    }
}

/// The settings of an SVGD loop.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Settings {
    /// The kernel between particles.
    pub kernel: Kernel,
    /// The optimizer; its state is reset at the start of each loop.
    pub optimizer: Optimizer,
    /// The density estimate of the factors.
    pub kde: Kde,
}

impl Settings {
    /// Settings with the RBF kernel of this bandwidth.
    pub fn rbf(bandwidth: Bandwidth, optimizer: Optimizer, kde: Kde) -> Self {
        Self { kernel: Kernel::Rbf(bandwidth), optimizer, kde }
    }

    /// Checks that all settings are in range.
    ///
    /// # Errors
    /// Names the first key, as in a `[method]` table, whose value is not.
    pub fn check(&self) -> Result<(), KeyError> {
        if let Kernel::Rbf(bandwidth) = self.kernel {
            bandwidth.check().map_err(|error| error.below("bandwidth"))?;
        }
        self.optimizer.check().map_err(|error| error.below("optimizer"))?;
        self.kde.check()
    }
}

/// Diagnostics of one step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StepReport {
    /// The bandwidth h; NaN for kernels without a bandwidth.
    pub bandwidth: f64,
    /// The mean of the N² kernel values.
    pub mean_kernel: f64,
    /// The total kernel weight of the factors, averaged over particles and factors; NaN without factors.
    pub kde_weight: f64,
}

/// The number of columns of a block: all rows of a loop with three factors of 20 particles fit into a core's cache.
const BLOCK: usize = 1024;
/// Products between particles are computed in panels of this many particles. They are symmetric, so that a panel is multiplied only with itself
/// and those before it.
const PANEL: usize = 64;

/// A block of columns of all rows, with the optimizer state and products of these columns.
#[derive(Clone, Debug)]
struct Block<F> {
    /// The rows [Θ; C_1; ...] minus the center, rows × width.
    rows: Array2<F>,
    center: Vec<F>,
    optimizer: OptimizerState<F>,
    /// Products of the particles with all rows over these columns, N × rows; of the products between particles only the lower half.
    products: Array2<F>,
}

/// Buffers of one thread.
#[derive(Clone, Debug)]
struct Scratch<F> {
    score: Vec<F>,
    direction: Vec<F>,
}

/// The rows of a factor.
#[derive(Clone, Debug)]
struct FactorRows {
    sign: f64,
    first: usize,
    count: usize,
    /// The logarithm of the floor of its density.
    log_floor: f64,
}

/// The coefficients of the direction Φ of a step: T = S + `weights` · C − diag(`pull`) Θ, Φ = (1/N) K T + diag(`push`) Θ. Without a model
/// score S, Φ = `stacked` · [Θ; C] + diag(`push`) Θ.
#[derive(Clone, Debug)]
struct Coefficients<F> {
    /// The kernel matrix K; squared distances before it is finished.
    kernel: Symmetric<F>,
    /// The weights of the factor rows in the score of each particle, N × factor rows.
    weights: Array2<F>,
    stacked: Array2<F>,
    pull: Vec<F>,
    push: Vec<F>,
}

/// An SVGD loop over N particles in d dimensions. It owns all its buffers and allocates nothing in a step.
///
/// [`SvgdLoop::begin`] starts a loop and [`SvgdLoop::step`] moves all particles once. Results are bit-identical for any number of threads.
#[derive(Clone, Debug)]
pub struct SvgdLoop<F> {
    settings: Settings,
    n: usize,
    dim: usize,
    factors: Vec<FactorRows>,
    blocks: Vec<Block<F>>,
    scratch: Vec<Scratch<F>>,
    coefficients: Coefficients<F>,
    /// ‖C − center‖² of each row of the factors.
    factor_norms: Vec<f64>,
    norms: Vec<f64>,
    /// A row of products, summed over the blocks.
    sums: Vec<f64>,
    /// The floors relative to the largest exponential, N × factors.
    floors: Vec<f64>,
    /// Exponents of the kernel weights of factor rows at the particles, minus the largest of each factor; then their exponentials.
    exponents: Vec<F>,
    selector: Selector<F>,
}

impl<F: Real> SvgdLoop<F> {
    /// A loop over N particles in d dimensions, both at least 1.
    pub fn new(n: usize, dim: usize, settings: Settings) -> Self {
        assert!(n > 0 && dim > 0, "SVGD needs at least one particle and one dimension");
        let blocks = (0..dim).step_by(BLOCK).map(|first| {
            let width = BLOCK.min(dim - first);
            Block {
                rows: Array2::zeros((n, width)),
                center: vec![F::zero(); width],
                optimizer: OptimizerState::new(settings.optimizer, n * width),
                products: Array2::zeros((n, n)),
            }
        });
        Self {
            settings,
            n,
            dim,
            factors: Vec::new(),
            blocks: blocks.collect(),
            scratch: Vec::new(),
            coefficients: Coefficients {
                kernel: Symmetric::new(n),
                weights: Array2::zeros((n, 0)),
                stacked: Array2::zeros((n, n)),
                pull: vec![F::zero(); n],
                push: vec![F::zero(); n],
            },
            factor_norms: Vec::new(),
            norms: vec![0.0; n],
            sums: vec![0.0; n],
            floors: Vec::new(),
            exponents: Vec::new(),
            selector: Selector::new(n * (n - 1) / 2),
        }
    }

    /// Starts a loop at the particles `theta` (N × d) with these factors of the target, and resets the optimizer. Pairs of equal sets with
    /// opposite signs are dropped.
    pub fn begin(&mut self, theta: ArrayView2<F>, factors: &[KdeFactor<F>]) {
        assert_eq!(theta.dim(), (self.n, self.dim), "the shape of the particles");
        let factors = if self.settings.kde.is_none() { Vec::new() } else { without_canceling_pairs(factors) };
        let mut rows = self.n;
        self.factors.clear();
        for set in &factors {
            assert_eq!(set.particles.ncols(), self.dim, "the dimension of a factor");
            let count = set.particles.nrows();
            let log_floor = self.settings.kde.log_floor(count, self.dim);
            self.factors.push(FactorRows { sign: set.sign.value(), first: rows - self.n, count, log_floor });
            rows += count;
        }
        self.factor_norms.clear();
        self.factor_norms.resize(rows - self.n, 0.0);
        self.exponents.resize(self.n * (rows - self.n), F::zero());
        self.sums.resize(rows, 0.0);
        self.floors.resize(self.n * self.factors.len(), 0.0);
        reshape(&mut self.coefficients.weights, self.n, rows - self.n);
        reshape(&mut self.coefficients.stacked, self.n, rows);
        // Distances are differences of products, which are inaccurate far from the origin. The linear kernel depends on the origin.
        let centered = matches!(self.settings.kernel, Kernel::Rbf(_));
        let inverse_n = F::of(1.0 / self.n as f64);
        for (b, block) in self.blocks.iter_mut().enumerate() {
            let columns = b * BLOCK..b * BLOCK + block.center.len();
            block.optimizer.reset();
            reshape(&mut block.products, self.n, rows);
            reshape(&mut block.rows, rows, columns.len());
            let part = theta.slice(s![.., columns.clone()]);
            block.center.fill(F::zero());
            // A single particle would be its own center; without centering its steps are bit-identical to gradient ascent.
            if centered && self.n > 1 {
                for row in part.rows() {
                    block.center.iter_mut().zip(row).for_each(|(center, &x)| *center += x * inverse_n);
                }
            }
            let mut first = 0;
            for set in std::iter::once(part).chain(factors.iter().map(|set| set.particles.slice(s![.., columns.clone()]))) {
                let mut rows = block.rows.slice_mut(s![first..first + set.nrows(), ..]);
                for (mut row, source) in rows.rows_mut().into_iter().zip(set.rows()) {
                    ndarray::Zip::from(&mut row).and(&source).and(&block.center[..]).for_each(|to, &x, &center| *to = x - center);
                }
                first += set.nrows();
            }
            for (norm, row) in self.factor_norms.iter_mut().zip(block.rows.rows().into_iter().skip(self.n)) {
                *norm += row.iter().map(|x| x.f64() * x.f64()).sum::<f64>();
            }
            block.multiply(self.n);
        }
    }

    /// Moves all particles once. `score` (N × d) is the score of the rest of the target at the particles, or `None` if the target is the
    /// product of the factors. The new particles are written to `theta` (N × d), if given.
    pub fn step(&mut self, score: Option<ArrayView2<F>>, theta: Option<ArrayViewMut2<F>>) -> StepReport {
        for shape in [score.as_ref().map(|m| m.dim()), theta.as_ref().map(|m| m.dim())].into_iter().flatten() {
            assert_eq!(shape, (self.n, self.dim), "the shape of the scores and particles");
        }
        // Without a model score, Φ is one product of `stacked` with all rows. For `stacked`, K is multiplied by the weights, which have a column
        // for each factor row, in place of T, which has d columns.
        let stack = score.is_none() && self.n <= self.dim;
        let step = self.prepare(stack);
        let threads = rayon::current_num_threads().min(self.blocks.len());
        while self.scratch.len() < threads {
            self.scratch.push(Scratch { score: Vec::new(), direction: Vec::new() });
        }
        let pass = Pass { coefficients: &self.coefficients, stack, score };
        pass.run(&mut self.blocks, &mut self.scratch[..threads], 0, theta);
        step
    }

    /// Writes the particles to `theta` (N × d).
    pub fn read(&self, mut theta: ArrayViewMut2<F>) {
        for (block, mut part) in self.blocks.iter().zip(theta.axis_chunks_iter_mut(Axis(1), BLOCK)) {
            block.write(&mut part);
        }
    }

    /// Computes the coefficients of the direction from the products in the blocks.
    fn prepare(&mut self, stack: bool) -> StepReport {
        let (n, factor_rows) = (self.n, self.factor_norms.len());
        self.sum_products();
        let inverse_n = 1.0 / n as f64;
        let Coefficients { kernel, weights, stacked, pull, push } = &mut self.coefficients;
        let rbf = match self.settings.kernel {
            // A single particle has no repulsion: its kernel is 1, and the step is bit-identical to gradient ascent.
            Kernel::Rbf(mode) if n > 1 => Some(mode.of_pairs(kernel.below(), n, &mut self.selector)),
            Kernel::Rbf(_) | Kernel::Linear => None,
        };
        let linear = self.settings.kernel == Kernel::Linear;
        let diagonal = |i: usize| if linear { F::of(self.norms[i] + 1.0) } else { F::one() };
        // `push` first holds the row sums of the kernel.
        kernel.finish(rbf.map(|h| F::of(-1.0 / h)), diagonal, push);
        let kernel_sum: f64 = push.iter().map(|sum| sum.f64()).sum();
        let twice = rbf.map_or(0.0, |h| 2.0 / h);
        pull.fill(F::of(twice));
        if linear {
            push.fill(F::one());
        } else {
            push.iter_mut().for_each(|sum| *sum *= F::of(twice * inverse_n));
        }

        let mut total_weight = 0.0;
        if factor_rows > 0 {
            vector::exp(&mut self.exponents);
            let variance = self.settings.kde.bandwidth * self.settings.kde.bandwidth;
            let rows = self.exponents.chunks_exact(factor_rows).zip(self.floors.chunks_exact(self.factors.len()));
            for (((exponentials, floors), mut weights), pull) in rows.zip(weights.rows_mut()).zip(pull.iter_mut()) {
                for (rows, &floor) in self.factors.iter().zip(floors) {
                    let range = rows.first..rows.first + rows.count;
                    let kernels: f64 = exponentials[range.clone()].iter().map(|e| e.f64()).sum();
                    let total = kernels + floor;
                    let factor = F::of(rows.sign / (variance * total));
                    for (weight, &e) in weights.slice_mut(s![range.clone()]).iter_mut().zip(&exponentials[range]) {
                        *weight = factor * e;
                    }
                    *pull += F::of(rows.sign * kernels / (variance * total));
                    total_weight += kernels / total;
                }
            }
        }
        if stack {
            let (mut own, of_factors) = stacked.view_mut().split_at(Axis(1), n);
            kernel.write(own.view_mut());
            for mut row in own.rows_mut() {
                row.iter_mut().zip(pull.iter()).for_each(|(a, &pull)| *a = -F::of(inverse_n) * *a * pull);
            }
            if factor_rows > 0 {
                kernel.multiply(F::of(inverse_n), weights.view(), of_factors);
            }
        }
        StepReport {
            bandwidth: rbf.unwrap_or(f64::NAN),
            mean_kernel: kernel_sum * inverse_n * inverse_n,
            kde_weight: total_weight * inverse_n / self.factors.len() as f64,
        }
    }

    /// Sums the products over the blocks, in order, and computes from them the squared distances of pairs (xᵀy + 1 for the linear kernel)
    /// and the exponents of the kernel weights, minus the largest of each factor.
    fn sum_products(&mut self) {
        let (n, linear) = (self.n, self.settings.kernel == Kernel::Linear);
        let half = 0.5 / (self.settings.kde.bandwidth * self.settings.kde.bandwidth);
        let width = self.factor_norms.len();
        for i in 0..n {
            self.sums.fill(0.0);
            for block in &self.blocks {
                if let Some(row) = block.products.row(i).as_slice() {
                    accumulate(&mut self.sums[..=i], &row[..=i]);
                    accumulate(&mut self.sums[n..], &row[n..]);
                }
            }
            let (products, with_factors) = self.sums.split_at_mut(n);
            self.norms[i] = products[i];
            let norms = &self.norms;
            self.coefficients.kernel.fill_row(i, |columns, out| {
                if linear {
                    out.iter_mut().zip(&products[columns]).for_each(|(k, product)| *k = F::of(*product + 1.0));
                } else {
                    distances(out, &products[columns.clone()], &norms[columns], norms[i]);
                }
            });
            for (product, norm) in with_factors.iter_mut().zip(&self.factor_norms) {
                *product = -half * (self.norms[i] + norm - 2.0 * *product).max(0.0);
            }
            for (k, rows) in self.factors.iter().enumerate() {
                let range = rows.first..rows.first + rows.count;
                let top = with_factors[range.clone()].iter().copied().fold(rows.log_floor, f64::max);
                for (to, e) in self.exponents[i * width..][range.clone()].iter_mut().zip(&with_factors[range]) {
                    *to = F::of(e - top);
                }
                self.floors[i * self.factors.len() + k] = (rows.log_floor - top).exp();
            }
        }
    }
}

impl<F: Real> Block<F> {
    /// Computes the products of the first n rows with all rows.
    fn multiply(&mut self, n: usize) {
        let panel = if n <= PANEL { n } else { PANEL };
        for first in (0..n).step_by(panel) {
            let last = (first + panel).min(n);
            let left = self.rows.slice(s![first..last, ..]);
            let mut product = |columns: std::ops::Range<usize>| {
                let right = self.rows.slice(s![columns.clone(), ..]);
                let mut out = self.products.slice_mut(s![first..last, columns]);
                general_mat_mul(F::one(), &left, &right.t(), F::zero(), &mut out);
            };
            if panel == n {
                product(0..self.rows.nrows());
            } else {
                product(0..last);
                if self.rows.nrows() > n {
                    product(n..self.rows.nrows());
                }
            }
        }
    }

    fn write(&self, part: &mut ArrayViewMut2<F>) {
        for (mut to, from) in part.rows_mut().into_iter().zip(self.rows.rows()) {
            if let (Some(to), Some(from)) = (to.as_slice_mut(), from.as_slice()) {
                add_center(to, from, &self.center);
            } else {
                ndarray::Zip::from(&mut to).and(&from).and(&self.center[..]).for_each(|to, &x, &c| *to = x + c);
            }
        }
    }
}

/// A step on all blocks.
struct Pass<'a, F> {
    coefficients: &'a Coefficients<F>,
    stack: bool,
    score: Option<ArrayView2<'a, F>>,
}

impl<F: Real> Pass<'_, F> {
    /// Moves the blocks, which begin at column `first`, on one thread per scratch buffer.
    fn run(&self, blocks: &mut [Block<F>], scratch: &mut [Scratch<F>], first: usize, theta: Option<ArrayViewMut2<F>>) {
        if scratch.len() > 1 {
            let half = blocks.len() / 2;
            let (blocks, later) = blocks.split_at_mut(half);
            let (scratch, others) = scratch.split_at_mut(scratch.len() / 2);
            let (theta, rest) = theta.map(|theta| theta.split_at(Axis(1), half * BLOCK)).unzip();
            rayon::join(|| self.run(blocks, scratch, first, theta), || self.run(later, others, first + half * BLOCK, rest));
        } else if let [scratch] = scratch {
            let mut theta = theta;
            for (b, block) in blocks.iter_mut().enumerate() {
                let (from, width) = (b * BLOCK, block.center.len());
                self.apply(block, scratch, first + from);
                if let Some(theta) = &mut theta {
                    block.write(&mut theta.slice_mut(s![.., from..from + width]));
                }
            }
        }
    }

    /// Computes the direction on one block, moves the particles along it, and computes the products for the next step.
    fn apply(&self, block: &mut Block<F>, scratch: &mut Scratch<F>, first: usize) {
        let Coefficients { kernel, weights, stacked, pull, push } = self.coefficients;
        let (n, width) = (push.len(), block.center.len());
        let fit = |buffer: &mut Vec<F>| buffer.resize(n * width, F::zero());
        fit(&mut scratch.direction);
        let Ok(mut direction) = ArrayViewMut2::from_shape((n, width), &mut scratch.direction) else { return };
        if self.stack {
            general_mat_mul(F::one(), stacked, &block.rows, F::zero(), &mut direction);
        } else {
            fit(&mut scratch.score);
            let Ok(mut total) = ArrayViewMut2::from_shape((n, width), &mut scratch.score) else { return };
            let (particles, factor_rows) = block.rows.view().split_at(Axis(0), n);
            for (n, (mut total, x)) in total.rows_mut().into_iter().zip(particles.rows()).enumerate() {
                let score = self.score.as_ref().map(|score| score.slice(s![n, first..first + width]));
                match (total.as_slice_mut(), x.as_slice(), score.as_ref().map(|score| score.as_slice())) {
                    (Some(total), Some(x), Some(Some(score))) => subtract_pull(total, x, score, pull[n]),
                    _ => {
                        for (c, (total, &x)) in total.iter_mut().zip(x).enumerate() {
                            *total = score.as_ref().map_or(F::zero(), |score| score[c]) - pull[n] * x;
                        }
                    }
                }
            }
            if factor_rows.nrows() > 0 {
                general_mat_mul(F::one(), weights, &factor_rows, F::one(), &mut total);
            }
            kernel.multiply(F::of(1.0 / n as f64), total.view(), direction);
        }
        if let Some(rows) = block.rows.as_slice_mut() {
            block.optimizer.step_rows(&mut rows[..n * width], &scratch.direction, push, width);
        }
        block.multiply(n);
    }
}

fn reshape<F: Real>(matrix: &mut Array2<F>, rows: usize, columns: usize) {
    if matrix.dim() != (rows, columns) {
        *matrix = Array2::zeros((rows, columns));
    }
}

vectorized! {
    fn accumulate<F: Real>(sums: &mut [f64], row: &[F]) {
        for (sum, x) in sums.iter_mut().zip(row) {
            *sum += x.f64();
        }
    }
}

vectorized! {
    /// ‖x‖² + ‖y‖² − 2 xᵀy, at least 0 despite rounding.
    fn distances<F: Real>(out: &mut [F], products: &[f64], norms: &[f64], norm: f64) {
        for ((out, product), other) in out.iter_mut().zip(products).zip(norms) {
            let distance = norm + other - 2.0 * product;
            *out = F::of(if distance < 0.0 { 0.0 } else { distance });
        }
    }
}

vectorized! {
    fn subtract_pull<F: Real>(total: &mut [F], x: &[F], score: &[F], pull: F) {
        for ((total, &x), &score) in total.iter_mut().zip(x).zip(score) {
            *total = score - pull * x;
        }
    }
}

vectorized! {
    fn add_center<F: Real>(to: &mut [F], x: &[F], center: &[F]) {
        for ((to, &x), &center) in to.iter_mut().zip(x).zip(center) {
            *to = x + center;
        }
    }
}

#[cfg(test)]
mod tests;
