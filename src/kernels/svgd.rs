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
#[allow(clippy::unwrap_used)]
mod tests {
    use super::super::kde::KdeMode;
    use super::*;
    use crate::random::{Purpose, Seed, Who};
    use ndarray::array;

    fn particles<F: Real>(n: usize, d: usize, seed: u64, spread: f64) -> Array2<F> {
        let mut theta = Array2::<f64>::zeros((n, d));
        Seed(seed).stream(Who::Run, 0, Purpose::Synthetic).normals(theta.as_slice_mut().unwrap());
        theta.mapv(|x| F::of(x * spread))
    }

    fn plain(kernel: Kernel, mode: KdeMode) -> Settings {
        // A step of 1 makes the move the direction itself.
        Settings { kernel, optimizer: Optimizer::Plain { step: 1.0 }, kde: Kde { mode, bandwidth: 0.55 } }
    }

    /// The direction straight from the formula, in f64; `repulsion` is 1, or −1 for a wrong sign.
    fn naive(
        theta: &Array2<f64>,
        score: &Array2<f64>,
        frozen: &[KdeFactor<f64>],
        settings: Settings,
        repulsion: f64,
    ) -> Array2<f64> {
        let (n, d) = theta.dim();
        let mut total = score.clone();
        for set in frozen {
            settings.kde.add_score(set.sign.value(), set.particles, theta.view(), total.view_mut());
        }
        let h = match settings.kernel {
            Kernel::Rbf(bandwidth) => bandwidth.of(theta.view()),
            Kernel::Linear => f64::NAN,
        };
        let mut phi = Array2::zeros((n, d));
        for i in 0..n {
            for j in 0..n {
                let difference = &theta.row(i) - &theta.row(j);
                let (k, gradient) = match settings.kernel {
                    Kernel::Rbf(_) => {
                        let k = (-difference.dot(&difference) / h).exp();
                        (k, &difference * (2.0 / h * k))
                    }
                    Kernel::Linear => (theta.row(i).dot(&theta.row(j)) + 1.0, theta.row(i).to_owned()),
                };
                let term = &total.row(j) * k + gradient * repulsion;
                phi.row_mut(i).scaled_add(1.0 / n as f64, &term);
            }
        }
        phi
    }

    fn direction<F: Real>(
        theta: &Array2<F>,
        score: Option<&Array2<F>>,
        frozen: &[KdeFactor<F>],
        settings: Settings,
    ) -> Array2<F> {
        let mut stein = SvgdLoop::new(theta.nrows(), theta.ncols(), settings);
        stein.begin(theta.view(), frozen);
        let mut moved = theta.clone();
        stein.step(score.map(|s| s.view()), Some(moved.view_mut()));
        moved - theta
    }

    fn largest(matrix: &Array2<f64>) -> f64 {
        matrix.iter().fold(0.0, |top, x| f64::max(top, x.abs()))
    }

    fn modes() -> [KdeMode; 4] {
        [KdeMode::Lse { floor: 0.0 }, KdeMode::Lse { floor: 1e-9 }, KdeMode::AuthorsCompat, KdeMode::None]
    }

    #[test]
    fn direction_is_the_formula() {
        // Shapes on both sides of n = d, of the panel and of the block.
        for (n, d) in [(1, 3), (2, 1), (6, 55), (20, 9), (70, 3), (5, 2500), (70, 71)] {
            let spread = 1.5 / (d as f64).sqrt();
            let theta = particles::<f64>(n, d, 1, spread);
            let score = particles::<f64>(n, d, 2, 1.0);
            let sets: Vec<Array2<f64>> = (3..6).map(|seed| particles(n + 1, d, seed, spread)).collect();
            let [q, t, new] = [sets[0].view(), sets[1].view(), sets[2].view()];
            let none = Array2::zeros((n, d));
            for mode in modes() {
                for kernel in [Kernel::Rbf(Bandwidth::Repository), Kernel::Rbf(Bandwidth::Paper), Kernel::Linear] {
                    let settings = plain(kernel, mode);
                    let plain = (Some(&score), vec![]);
                    let cavity = (Some(&score), vec![KdeFactor::plus(q), KdeFactor::minus(t)]);
                    let distillation = (None, vec![KdeFactor::plus(new), KdeFactor::plus(t), KdeFactor::minus(q)]);
                    for (s, frozen) in [plain, cavity, distillation] {
                        let moved = direction(&theta, s, &frozen, settings);
                        let expected = naive(&theta, s.unwrap_or(&none), &frozen, settings, 1.0);
                        let error = largest(&(&moved - &expected));
                        assert!(error <= 1e-12 * largest(&expected).max(1.0), "{n}×{d} {mode:?} {kernel:?}: {error}");
                        if n > 1 && kernel != Kernel::Linear {
                            // Negative control: the repulsion's sign matters to this comparison.
                            let wrong = naive(&theta, s.unwrap_or(&none), &frozen, settings, -1.0);
                            assert!(largest(&(&moved - &wrong)) > 1e-6);
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn step_reports_the_kernel() {
        let theta = particles::<f64>(9, 4, 1, 0.5);
        let sets = [particles::<f64>(9, 4, 2, 0.5), particles::<f64>(9, 4, 3, 0.5)];
        let settings = plain(Kernel::default(), KdeMode::Lse { floor: 1e-2 });
        let frozen = [KdeFactor::plus(sets[0].view()), KdeFactor::minus(sets[1].view())];
        let mut stein = SvgdLoop::new(9, 4, settings);
        stein.begin(theta.view(), &frozen);
        let step = stein.step(None, None);
        let h = Bandwidth::Repository.of(theta.view());
        let kernel = super::super::rbf::squared_distances(theta.view(), theta.view()).mapv(|d| (-d / h).exp());
        assert!((step.bandwidth - h).abs() < 1e-13 * h);
        assert!((step.mean_kernel - kernel.mean().unwrap()).abs() < 1e-13);
        let mut score = Array2::zeros((9, 4));
        let report = super::super::kde::add_cavity_score(settings.kde, &frozen, theta.view(), score.view_mut());
        let weight = report.weights.iter().sum::<f64>() / 2.0;
        assert!((step.kde_weight - weight).abs() < 1e-13, "{step:?} {report:?}");
    }

    #[test]
    fn repulsion_is_internal() {
        for n in [2, 6, 100] {
            let theta = particles::<f64>(n, 5, 4, 1.0);
            let none = Array2::zeros((n, 5));
            let phi = direction(&theta, Some(&none), &[], plain(Kernel::default(), KdeMode::None));
            assert!(largest(&phi) > 1e-3);
            for column in phi.columns() {
                assert!(column.sum().abs() < 1e-13);
            }
        }
    }

    #[test]
    fn equivariances() {
        let (n, d) = (7, 3);
        let (theta, score) = (particles::<f64>(n, d, 1, 0.6), particles::<f64>(n, d, 2, 1.0));
        let (q, t) = (particles::<f64>(n, d, 3, 0.6), particles::<f64>(n, d, 4, 0.6));
        let settings = plain(Kernel::default(), KdeMode::default());
        let phi = |map: &dyn Fn(&Array2<f64>) -> Array2<f64>, turn: &dyn Fn(&Array2<f64>) -> Array2<f64>| {
            let (q, t) = (map(&q), map(&t));
            direction(&map(&theta), Some(&turn(&score)), &[KdeFactor::plus(q.view()), KdeFactor::minus(t.view())], settings)
        };
        let same = |m: &Array2<f64>| m.clone();
        let base = phi(&same, &same);
        let close = |a: &Array2<f64>, b: &Array2<f64>| assert!(largest(&(a - b)) < 1e-12, "{a} {b}");
        // Translation; far away, so that uncentred products would lose ten digits.
        let far = |m: &Array2<f64>| m + 1e3;
        assert!(largest(&(phi(&far, &same) - &base)) < 1e-10);
        // Rotation in two planes.
        let (c, s) = (0.8, 0.6);
        let rotation =
            array![[c, s, 0.0], [-s, c, 0.0], [0.0, 0.0, 1.0]].dot(&array![[1.0, 0.0, 0.0], [0.0, c, s], [0.0, -s, c]]);
        let turn = |m: &Array2<f64>| m.dot(&rotation);
        close(&phi(&turn, &turn), &turn(&base));
        // Permutation.
        let order = [3, 0, 6, 1, 5, 2, 4];
        let permute = |m: &Array2<f64>| m.select(Axis(0), &order);
        close(&phi(&permute, &permute), &permute(&base));
    }

    #[test]
    fn one_particle_climbs_the_gradient() {
        let theta = array![[0.1, -3.0, 1e5]];
        let score = array![[1.0 / 3.0, 0.7, -2.0]];
        for kernel in [Kernel::Rbf(Bandwidth::Repository), Kernel::Rbf(Bandwidth::Paper), Kernel::Rbf(Bandwidth::Fixed(2.0))] {
            let mut stein = SvgdLoop::new(1, 3, plain(kernel, KdeMode::None));
            stein.begin(theta.view(), &[]);
            let mut moved = theta.clone();
            for _ in 0..3 {
                let before = moved.clone();
                stein.step(Some(score.view()), Some(moved.view_mut()));
                assert_eq!(moved, before + &score);
            }
        }
    }

    #[test]
    fn equal_sets_of_opposite_sign_cancel_to_the_bit() {
        let (theta, score) = (particles::<f64>(6, 55, 1, 1.0), particles::<f64>(6, 55, 2, 1.0));
        let settings = Settings::default();
        let frozen = [KdeFactor::plus(theta.view()), KdeFactor::minus(theta.view())];
        let (mut with, mut without) = (SvgdLoop::new(6, 55, settings), SvgdLoop::new(6, 55, settings));
        with.begin(theta.view(), &frozen);
        without.begin(theta.view(), &[]);
        let (mut a, mut b) = (theta.clone(), theta.clone());
        for _ in 0..20 {
            with.step(Some(score.view()), Some(a.view_mut()));
            without.step(Some(score.view()), Some(b.view_mut()));
        }
        assert_eq!(a, b);
        assert_ne!(a, theta);
    }

    #[test]
    fn loops_start_afresh() {
        let theta = particles::<f64>(5, 7, 1, 1.0);
        let other = particles::<f64>(4, 7, 2, 1.0);
        let score = particles::<f64>(5, 7, 3, 1.0);
        let run = |stein: &mut SvgdLoop<f64>| {
            stein.begin(theta.view(), &[KdeFactor::plus(other.view())]);
            let mut moved = theta.clone();
            for _ in 0..5 {
                stein.step(Some(score.view()), None);
            }
            stein.read(moved.view_mut());
            moved
        };
        let mut stein = SvgdLoop::new(5, 7, Settings::default());
        let first = run(&mut stein);
        stein.begin(score.view(), &[]);
        stein.step(None, None);
        assert_eq!(run(&mut stein), first);
    }

    #[test]
    fn bits_do_not_depend_on_threads() {
        let theta = particles::<f32>(8, 5000, 1, 0.02);
        let score = particles::<f32>(8, 5000, 2, 1.0);
        let sets = [particles::<f32>(8, 5000, 3, 0.02), particles::<f32>(8, 5000, 4, 0.02)];
        let run = |threads: usize, scored: bool| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| {
                let mut stein = SvgdLoop::new(8, 5000, Settings::default());
                stein.begin(theta.view(), &[KdeFactor::plus(sets[0].view()), KdeFactor::minus(sets[1].view())]);
                let mut moved = theta.clone();
                for _ in 0..4 {
                    stein.step(scored.then(|| score.view()), Some(moved.view_mut()));
                }
                moved
            })
        };
        for scored in [true, false] {
            let one = run(1, scored);
            for threads in [2, 3] {
                assert_eq!(run(threads, scored), one);
            }
        }
    }

    #[test]
    fn single_precision_stays_accurate_with_close_particles_far_out() {
        // Particles 1e-2 apart at a distance of 1 from the origin in each of many coordinates: uncentred products would leave
        // nothing of the squared distances, 8 out of 80,000.
        let (n, d) = (20, 79_510);
        let theta = particles::<f32>(n, d, 1, 0.01) + 1.0;
        let t = particles::<f32>(n, d, 2, 0.0005) + &theta;
        let score = particles::<f32>(n, d, 3, 1.0);
        let wide = |m: &Array2<f32>| m.mapv(f64::from);
        let settings = plain(Kernel::default(), KdeMode::Lse { floor: 0.0 });
        let (theta64, t64) = (wide(&theta), wide(&t));
        let frozen = [KdeFactor::plus(theta.view()), KdeFactor::minus(t.view())];
        let frozen64 = [KdeFactor::plus(theta64.view()), KdeFactor::minus(t64.view())];
        let mut stein = SvgdLoop::<f32>::new(n, d, settings);
        stein.begin(theta.view(), &frozen);
        let step = stein.step(Some(score.view()), None);
        let h = Bandwidth::Repository.of(theta64.view());
        assert!((step.bandwidth / h - 1.0).abs() < 1e-5, "{} {h}", step.bandwidth);
        let mut moved = theta.clone();
        stein.read(moved.view_mut());
        let exact = direction(&theta64, Some(&wide(&score)), &frozen64, settings);
        let error = largest(&(wide(&moved) - &theta64 - &exact));
        assert!(error < 1e-5 * largest(&exact), "{error} of {}", largest(&exact));
    }

    #[test]
    fn distillation_of_one_particle_has_a_closed_form() {
        // Three Gaussians of one width: the product's mode is t + new − q, and a plain step of λ² lands on it.
        let [q, t, new] = [array![[0.3, -1.0]], array![[2.0, 0.7]], array![[-0.4, 1.1]]];
        let mut settings = plain(Kernel::default(), KdeMode::Lse { floor: 0.0 });
        settings.optimizer = Optimizer::Plain { step: 0.55 * 0.55 };
        let mut stein = SvgdLoop::new(1, 2, settings);
        stein.begin(t.view(), &[KdeFactor::plus(new.view()), KdeFactor::plus(t.view()), KdeFactor::minus(q.view())]);
        let mut local = t.clone();
        stein.step(None, Some(local.view_mut()));
        assert!(largest(&(&local - &(&t + &new - &q))) < 1e-14);
        assert!(super::super::kde::distillation_residual([t.view(), local.view()], [q.view(), new.view()]) < 1e-14);
    }

    #[test]
    fn linear_kernel_finds_gaussian_moments() {
        let (n, d) = (8, 3);
        let mean = array![0.5, -1.0, 0.3];
        let factor = array![[1.0, 0.0, 0.0], [0.4, 0.8, 0.0], [-0.3, 0.2, 1.1]];
        let precision = factor.dot(&factor.t());
        let run = |kernel: Kernel| {
            let mut theta = particles::<f64>(n, d, 5, 1.0);
            let settings = Settings { optimizer: Optimizer::Plain { step: 0.05 }, ..plain(kernel, KdeMode::None) };
            let mut stein = SvgdLoop::new(n, d, settings);
            stein.begin(theta.view(), &[]);
            for _ in 0..4000 {
                let score = (&mean - &theta).dot(&precision);
                stein.step(Some(score.view()), Some(theta.view_mut()));
            }
            let centre = theta.mean_axis(Axis(0)).unwrap();
            let around = &theta - &centre;
            let covariance = around.t().dot(&around) / n as f64;
            // Covariance times precision is the unit matrix.
            let product = covariance.dot(&precision) - Array2::<f64>::eye(d);
            (largest(&product), (&centre - &mean).mapv(f64::abs).sum())
        };
        let (covariance, centre) = run(Kernel::Linear);
        assert!(covariance < 1e-9 && centre < 1e-9, "{covariance} {centre}");
        // Negative control: with few particles the RBF kernel has other fixed points.
        assert!(run(Kernel::default()).0 > 1e-2);
    }
}
