//! The Stein variational direction and the loop that follows it.
//!
//! With scores s_j at particles θ_j, particle n moves along (Liu & Wang 2016)
//!
//! φ_n = (1/N) Σ_j [k(θ_j, θ_n) s_j + ∇_{θ_j} k(θ_j, θ_n)].
//!
//! In distributed SVGD (Kassab & Simeone, arXiv 2009.06419) the score is, beside a model's gradient, a signed sum of scores of kernel
//! density estimates. These are linear in the rows of the particles and of the frozen sets C_j, so one product of the particles with
//! [Θ; C_1; ...] gives all distances, and one or two products of small matrices with those rows give the direction. Both are done on
//! blocks of columns: while a block is in cache, the direction is formed, the optimiser moves the particles and the next step's
//! products are taken, so that a step passes over memory once.

use super::SettingsError;
use super::adagrad::{AdaGrad, Optimizer};
use super::kde::{Kde, KdeFactor, uncancelled};
use super::rbf::Bandwidth;
use super::select::Selector;
use super::symmetric::Symmetric;
use crate::number::Real;
use crate::vector::{self, vectorized};
use ndarray::linalg::general_mat_mul;
use ndarray::{Array2, ArrayView2, ArrayViewMut2, Axis, s};

/// The kernel between particles.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kernel {
    /// exp(−‖x − y‖²/h).
    Rbf(Bandwidth),
    /// xᵀy + 1: fixed points for a Gaussian target have its exact mean and covariance (Liu & Wang 2018).
    Linear,
}

impl Default for Kernel {
    fn default() -> Self {
        Self::Rbf(Bandwidth::default())
    }
}

/// What a loop is made of.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Settings {
    /// The kernel between particles.
    pub kernel: Kernel,
    /// How the direction becomes a step; its state starts afresh with each loop.
    pub optimizer: Optimizer,
    /// The density estimates of the frozen sets.
    pub kde: Kde,
}

impl Settings {
    /// With the RBF kernel of this bandwidth.
    pub fn rbf(bandwidth: Bandwidth, optimizer: Optimizer, kde: Kde) -> Self {
        Self { kernel: Kernel::Rbf(bandwidth), optimizer, kde }
    }

    /// Whether every number is in its range.
    pub fn check(&self) -> Result<(), SettingsError> {
        if let Kernel::Rbf(bandwidth) = self.kernel {
            bandwidth.check()?;
        }
        self.optimizer.check()?;
        self.kde.check()
    }
}

/// What one step tells.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Step {
    /// h, not a number for kernels that have none.
    pub bandwidth: f64,
    /// The mean of the N² kernel values.
    pub mean_kernel: f64,
    /// The total kernel weight of the frozen sets, averaged over particles and sets; not a number without sets.
    pub kde_weight: f64,
}

/// Columns of a block: the rows of a loop with three frozen sets of 20 particles then fit into a core's cache.
const BLOCK: usize = 1024;
/// Particles in a panel, where only the lower half of their products is wanted.
const PANEL: usize = 64;

/// Some columns of all rows, with everything that belongs to them.
#[derive(Clone, Debug)]
struct Block<F> {
    /// The rows [Θ; C_1; ...] minus the centre, rows × width.
    rows: Array2<F>,
    centre: Vec<F>,
    optimizer: AdaGrad<F>,
    /// Products of the particles with all rows over these columns, N × rows; of the particles among themselves the lower half.
    products: Array2<F>,
}

/// A block's direction on the way, one for each thread.
#[derive(Clone, Debug)]
struct Scratch<F> {
    score: Vec<F>,
    direction: Vec<F>,
}

/// A frozen set's place among the rows.
#[derive(Clone, Debug)]
struct Site {
    sign: f64,
    first: usize,
    count: usize,
    /// The floor of its density, as a logarithm.
    log_floor: f64,
}

/// The direction's coefficients of a step: T = S + `scores` · C − diag(`pull`) Θ, Φ = (1/N) K T + diag(`push`) Θ; or, with no score from
/// outside, Φ = `stacked` · [Θ; C] + diag(`push`) Θ.
#[derive(Clone, Debug)]
struct Coefficients<F> {
    /// K, or the squared distances on the way to it.
    kernel: Symmetric<F>,
    scores: Array2<F>,
    stacked: Array2<F>,
    pull: Vec<F>,
    push: Vec<F>,
}

/// A Stein loop over N particles in d dimensions; owns all its memory and allocates nothing in a step.
///
/// [`SvgdLoop::begin`] starts a loop, [`SvgdLoop::step`] moves all particles once. The bits of the result do not depend on the number of
/// threads.
#[derive(Clone, Debug)]
pub struct SvgdLoop<F> {
    settings: Settings,
    n: usize,
    dim: usize,
    sites: Vec<Site>,
    blocks: Vec<Block<F>>,
    scratch: Vec<Scratch<F>>,
    coefficients: Coefficients<F>,
    /// ‖C‖² of each frozen row, minus the centre.
    frozen_norms: Vec<f64>,
    norms: Vec<f64>,
    /// A row of products, summed over the blocks.
    sums: Vec<f64>,
    /// The floors beside the shifted exponentials, N × sets.
    floors: Vec<f64>,
    /// Exponents of the kernel weights of frozen rows at the particles, each set's minus its largest; then their exponentials.
    exponents: Vec<F>,
    selector: Selector<F>,
}

impl<F: Real> SvgdLoop<F> {
    /// For N particles in d dimensions, both at least 1.
    pub fn new(n: usize, dim: usize, settings: Settings) -> Self {
        assert!(n > 0 && dim > 0, "a Stein loop needs particles and dimensions");
        let blocks = (0..dim).step_by(BLOCK).map(|first| {
            let width = BLOCK.min(dim - first);
            Block {
                rows: Array2::zeros((n, width)),
                centre: vec![F::zero(); width],
                optimizer: AdaGrad::new(settings.optimizer, n * width),
                products: Array2::zeros((n, n)),
            }
        });
        Self {
            settings,
            n,
            dim,
            sites: Vec::new(),
            blocks: blocks.collect(),
            scratch: Vec::new(),
            coefficients: Coefficients {
                kernel: Symmetric::new(n),
                scores: Array2::zeros((n, 0)),
                stacked: Array2::zeros((n, n)),
                pull: vec![F::zero(); n],
                push: vec![F::zero(); n],
            },
            frozen_norms: Vec::new(),
            norms: vec![0.0; n],
            sums: vec![0.0; n],
            floors: Vec::new(),
            exponents: Vec::new(),
            selector: Selector::new(n * (n - 1) / 2),
        }
    }

    /// Starts a loop at the particles `theta` (N × d), with the optimiser at its start and these frozen sets as factors of the target.
    /// A pair of equal sets with opposite signs is dropped.
    pub fn begin(&mut self, theta: ArrayView2<F>, frozen: &[KdeFactor<F>]) {
        assert_eq!(theta.dim(), (self.n, self.dim), "the particles' shape");
        let frozen = if self.settings.kde.is_none() { Vec::new() } else { uncancelled(frozen) };
        let mut rows = self.n;
        self.sites.clear();
        for set in &frozen {
            assert_eq!(set.particles.ncols(), self.dim, "the dimension of a frozen set");
            let count = set.particles.nrows();
            let log_floor = self.settings.kde.log_floor(count, self.dim);
            self.sites.push(Site { sign: set.sign.value(), first: rows - self.n, count, log_floor });
            rows += count;
        }
        self.frozen_norms.clear();
        self.frozen_norms.resize(rows - self.n, 0.0);
        self.exponents.resize(self.n * (rows - self.n), F::zero());
        self.sums.resize(rows, 0.0);
        self.floors.resize(self.n * self.sites.len(), 0.0);
        reshape(&mut self.coefficients.scores, self.n, rows - self.n);
        reshape(&mut self.coefficients.stacked, self.n, rows);
        // Distances come from products, which cancel badly far from the origin. The linear kernel knows where the origin is.
        let centred = matches!(self.settings.kernel, Kernel::Rbf(_));
        let share = F::of(1.0 / self.n as f64);
        for (b, block) in self.blocks.iter_mut().enumerate() {
            let columns = b * BLOCK..b * BLOCK + block.centre.len();
            block.optimizer.reset();
            reshape(&mut block.products, self.n, rows);
            reshape(&mut block.rows, rows, columns.len());
            let part = theta.slice(s![.., columns.clone()]);
            block.centre.fill(F::zero());
            // One particle would be its own centre: harmless, but its steps would not be those of plain ascent to the bit.
            if centred && self.n > 1 {
                for row in part.rows() {
                    block.centre.iter_mut().zip(row).for_each(|(centre, &x)| *centre += x * share);
                }
            }
            let mut first = 0;
            for set in std::iter::once(part).chain(frozen.iter().map(|set| set.particles.slice(s![.., columns.clone()]))) {
                let mut rows = block.rows.slice_mut(s![first..first + set.nrows(), ..]);
                for (mut row, source) in rows.rows_mut().into_iter().zip(set.rows()) {
                    ndarray::Zip::from(&mut row).and(&source).and(&block.centre[..]).for_each(|to, &x, &centre| *to = x - centre);
                }
                first += set.nrows();
            }
            for (norm, row) in self.frozen_norms.iter_mut().zip(block.rows.rows().into_iter().skip(self.n)) {
                *norm += row.iter().map(|x| x.f64() * x.f64()).sum::<f64>();
            }
            block.multiply(self.n);
        }
    }

    /// Moves all particles once. `score` (N × d) holds ∇log of the target's other factors at the particles, none if there are none. The
    /// new particles are written to `theta` (N × d), where one is given.
    pub fn step(&mut self, score: Option<ArrayView2<F>>, theta: Option<ArrayViewMut2<F>>) -> Step {
        for shape in [score.as_ref().map(|m| m.dim()), theta.as_ref().map(|m| m.dim())].into_iter().flatten() {
            assert_eq!(shape, (self.n, self.dim), "the shape of the scores and particles");
        }
        // With no score from outside, one product with all rows replaces one with the frozen rows and one with the particles; but its
        // coefficients are a product themselves, K with the weights, of N columns where the others have d.
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

    /// Distances, bandwidth, kernel and weights from the products that the blocks hold.
    fn prepare(&mut self, stack: bool) -> Step {
        let (n, frozen) = (self.n, self.frozen_norms.len());
        self.fold();
        let share = 1.0 / n as f64;
        let Coefficients { kernel, scores, stacked, pull, push } = &mut self.coefficients;
        let rbf = match self.settings.kernel {
            // One particle does not repel itself: its kernel is 1, and plain gradient ascent remains, to the bit.
            Kernel::Rbf(mode) if n > 1 => Some(mode.of_pairs(kernel.pairs(), n, &mut self.selector)),
            Kernel::Rbf(_) | Kernel::Linear => None,
        };
        let linear = self.settings.kernel == Kernel::Linear;
        let diagonal = |i: usize| if linear { F::of(self.norms[i] + 1.0) } else { F::one() };
        // `push` holds the sums of the kernel's rows for a moment.
        kernel.finish(rbf.map(|h| F::of(-1.0 / h)), diagonal, push);
        let kernel_sum: f64 = push.iter().map(|sum| sum.f64()).sum();
        let twice = rbf.map_or(0.0, |h| 2.0 / h);
        pull.fill(F::of(twice));
        if linear {
            push.fill(F::one());
        } else {
            push.iter_mut().for_each(|sum| *sum *= F::of(twice * share));
        }

        let mut total_weight = 0.0;
        if frozen > 0 {
            vector::exp(&mut self.exponents);
            let variance = self.settings.kde.bandwidth * self.settings.kde.bandwidth;
            let rows = self.exponents.chunks_exact(frozen).zip(self.floors.chunks_exact(self.sites.len()));
            for (((exponentials, floors), mut scores), pull) in rows.zip(scores.rows_mut()).zip(pull.iter_mut()) {
                for (site, &floor) in self.sites.iter().zip(floors) {
                    let range = site.first..site.first + site.count;
                    let kernels: f64 = exponentials[range.clone()].iter().map(|e| e.f64()).sum();
                    let total = kernels + floor;
                    let factor = F::of(site.sign / (variance * total));
                    for (score, &e) in scores.slice_mut(s![range.clone()]).iter_mut().zip(&exponentials[range]) {
                        *score = factor * e;
                    }
                    *pull += F::of(site.sign * kernels / (variance * total));
                    total_weight += kernels / total;
                }
            }
        }
        if stack {
            let (mut own, others) = stacked.view_mut().split_at(Axis(1), n);
            kernel.write(own.view_mut());
            for mut row in own.rows_mut() {
                row.iter_mut().zip(pull.iter()).for_each(|(a, &pull)| *a = -F::of(share) * *a * pull);
            }
            if frozen > 0 {
                kernel.multiply(F::of(share), scores.view(), others);
            }
        }
        Step {
            bandwidth: rbf.unwrap_or(f64::NAN),
            mean_kernel: kernel_sum * share * share,
            kde_weight: total_weight * share / self.sites.len() as f64,
        }
    }

    /// Squared distances of pairs (or xᵀy + 1 for the linear kernel), and the exponents of the kernel weights, minus the largest of
    /// their set: from the sums of the blocks' products, in the order of the blocks.
    fn fold(&mut self) {
        let (n, linear) = (self.n, self.settings.kernel == Kernel::Linear);
        let half = 0.5 / (self.settings.kde.bandwidth * self.settings.kde.bandwidth);
        let width = self.frozen_norms.len();
        for i in 0..n {
            self.sums.fill(0.0);
            for block in &self.blocks {
                if let Some(row) = block.products.row(i).as_slice() {
                    accumulate(&mut self.sums[..=i], &row[..=i]);
                    accumulate(&mut self.sums[n..], &row[n..]);
                }
            }
            let (products, with_frozen) = self.sums.split_at_mut(n);
            self.norms[i] = products[i];
            let norms = &self.norms;
            self.coefficients.kernel.fill_row(i, |columns, out| {
                if linear {
                    out.iter_mut().zip(&products[columns]).for_each(|(k, product)| *k = F::of(*product + 1.0));
                } else {
                    distances(out, &products[columns.clone()], &norms[columns], norms[i]);
                }
            });
            for (product, norm) in with_frozen.iter_mut().zip(&self.frozen_norms) {
                *product = -half * (self.norms[i] + norm - 2.0 * *product).max(0.0);
            }
            for (k, site) in self.sites.iter().enumerate() {
                let range = site.first..site.first + site.count;
                let top = with_frozen[range.clone()].iter().copied().fold(site.log_floor, f64::max);
                for (to, e) in self.exponents[i * width..][range.clone()].iter_mut().zip(&with_frozen[range]) {
                    *to = F::of(e - top);
                }
                self.floors[i * self.sites.len() + k] = (site.log_floor - top).exp();
            }
        }
    }
}

impl<F: Real> Block<F> {
    /// Products of the first n rows with all rows.
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
                add(to, from, &self.centre);
            } else {
                ndarray::Zip::from(&mut to).and(&from).and(&self.centre[..]).for_each(|to, &x, &c| *to = x + c);
            }
        }
    }
}

/// One pass over the blocks.
struct Pass<'a, F> {
    coefficients: &'a Coefficients<F>,
    stack: bool,
    score: Option<ArrayView2<'a, F>>,
}

impl<F: Real> Pass<'_, F> {
    /// Moves the blocks from column `first` on, on as many threads as there is scratch.
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
                let (from, width) = (b * BLOCK, block.centre.len());
                self.apply(block, scratch, first + from);
                if let Some(theta) = &mut theta {
                    block.write(&mut theta.slice_mut(s![.., from..from + width]));
                }
            }
        }
    }

    /// The direction on one block, the optimiser's step along it, and the products for the next step.
    fn apply(&self, block: &mut Block<F>, scratch: &mut Scratch<F>, first: usize) {
        let Coefficients { kernel, scores, stacked, pull, push } = self.coefficients;
        let (n, width) = (push.len(), block.centre.len());
        let fit = |buffer: &mut Vec<F>| buffer.resize(n * width, F::zero());
        fit(&mut scratch.direction);
        let Ok(mut direction) = ArrayViewMut2::from_shape((n, width), &mut scratch.direction) else { return };
        if self.stack {
            general_mat_mul(F::one(), stacked, &block.rows, F::zero(), &mut direction);
        } else {
            fit(&mut scratch.score);
            let Ok(mut total) = ArrayViewMut2::from_shape((n, width), &mut scratch.score) else { return };
            let (particles, frozen) = block.rows.view().split_at(Axis(0), n);
            for (n, (mut total, x)) in total.rows_mut().into_iter().zip(particles.rows()).enumerate() {
                let score = self.score.as_ref().map(|score| score.slice(s![n, first..first + width]));
                match (total.as_slice_mut(), x.as_slice(), score.as_ref().map(|score| score.as_slice())) {
                    (Some(total), Some(x), Some(Some(score))) => start(total, x, score, pull[n]),
                    _ => {
                        for (c, (total, &x)) in total.iter_mut().zip(x).enumerate() {
                            *total = score.as_ref().map_or(F::zero(), |score| score[c]) - pull[n] * x;
                        }
                    }
                }
            }
            if frozen.nrows() > 0 {
                general_mat_mul(F::one(), scores, &frozen, F::one(), &mut total);
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
    /// ‖x‖² + ‖y‖² − 2 xᵀy, which rounding must not make negative.
    fn distances<F: Real>(out: &mut [F], products: &[f64], norms: &[f64], norm: f64) {
        for ((out, product), other) in out.iter_mut().zip(products).zip(norms) {
            let distance = norm + other - 2.0 * product;
            *out = F::of(if distance < 0.0 { 0.0 } else { distance });
        }
    }
}

vectorized! {
    fn start<F: Real>(total: &mut [F], x: &[F], score: &[F], pull: F) {
        for ((total, &x), &score) in total.iter_mut().zip(x).zip(score) {
            *total = score - pull * x;
        }
    }
}

vectorized! {
    fn add<F: Real>(to: &mut [F], x: &[F], centre: &[F]) {
        for ((to, &x), &centre) in to.iter_mut().zip(x).zip(centre) {
            *to = x + centre;
        }
    }
}

#[cfg(test)]
mod tests;
