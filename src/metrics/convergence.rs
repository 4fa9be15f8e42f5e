//! Convergence diagnostics of Markov chains: rank-normalized split R-hat, effective sample sizes and Monte Carlo standard errors.
//!
//! The definitions are those of Vehtari, Gelman, Simpson, Carpenter & Bürkner 2021 (arXiv 1903.08008), computed as ArviZ does:
//! equal to its `rhat(method="rank")`, `ess(method="bulk" | "tail" | "mean" | "sd" | "quantile")` and
//! `mcse(method="mean" | "sd")` up to rounding. They need draws in order, and are not defined for particles.
//!
//! The result is NaN if chains have fewer than four draws or a draw is NaN. R-hat is also NaN for a single chain and for constant chains.

use ndarray::{ArrayView2, ArrayView3, s};
use rayon::prelude::*;
use realfft::num_complex::Complex;
use realfft::{ComplexToReal, RealFftPlanner, RealToComplex};
use serde::Serialize;
use statrs::distribution::{ContinuousCDF, Normal};
use std::sync::Arc;

/// Chains with fewer draws have no diagnostics.
pub const MIN_DRAWS: usize = 4;

/// Chains with an R-hat of at least this describe different distributions.
pub const UNMIXED_R_HAT: f64 = 1.1;

/// The quantiles for the tail ESS, which tables also show.
pub const TAILS: [f64; 2] = [0.05, 0.95];

/// If all draws are this close to each other, the ESS treats them as constant.
const RESOLUTION: f64 = 1e-15;

/// Estimates of a parameter from its draws.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Estimate {
    /// Mean.
    pub mean: f64,
    /// Standard deviation (n − 1 in the denominator).
    pub sd: f64,
    /// The quantile of the lower tail, 5 %.
    pub q5: f64,
    /// The quantile of the upper tail, 95 %.
    pub q95: f64,
    /// Convergence diagnostics; `None` for particles.
    #[serde(flatten)]
    pub convergence: Option<Convergence>,
}

/// Convergence diagnostics of a parameter.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Convergence {
    /// Monte Carlo standard error of the mean.
    pub mcse_mean: f64,
    /// Monte Carlo standard error of the standard deviation.
    pub mcse_sd: f64,
    /// Effective sample size of rank-normalized draws.
    pub ess_bulk: f64,
    /// The smaller of the effective sample sizes for the 5 % and 95 % quantiles.
    pub ess_tail: f64,
    /// Rank-normalized split R-hat: the larger of the values for the draws and for their distances from the median.
    pub r_hat: f64,
}

impl Convergence {
    const UNKNOWN: Self =
        Self { mcse_mean: f64::NAN, mcse_sd: f64::NAN, ess_bulk: f64::NAN, ess_tail: f64::NAN, r_hat: f64::NAN };
}

/// Estimates of each parameter from chains × draws × parameters, on all threads, in O(n log n) each.
pub fn estimates<T: Copy + Into<f64> + Sync>(draws: ArrayView3<T>) -> Vec<Estimate> {
    let (chains, length, parameters) = draws.dim();
    let diagnostics = Diagnostics::new(chains, length);
    let one = |(diagnostics, column): &mut (Diagnostics, Vec<f64>), parameter| {
        column.clear();
        column.extend(draws.slice(s![.., .., parameter]).iter().map(|&value| value.into()));
        let convergence = diagnostics.convergence_of(column);
        let [q5, q95] = TAILS.map(|tail| quantile(&diagnostics.sorted, tail));
        let (mean, variance) = moments(column);
        Estimate { mean, sd: variance.sqrt(), q5, q95, convergence: Some(convergence) }
    };
    (0..parameters).into_par_iter().map_init(|| (diagnostics.clone(), Vec::new()), one).collect()
}

/// Estimates of each parameter from particles × parameters, without diagnostics.
pub fn particle_estimates<T: Copy + Into<f64> + Sync>(particles: ArrayView2<T>) -> Vec<Estimate> {
    let one = |column: &mut Vec<f64>, parameter| {
        column.clear();
        column.extend(particles.column(parameter).iter().map(|&value| value.into()));
        column.sort_unstable_by(f64::total_cmp);
        let [q5, q95] = TAILS.map(|tail| quantile(column, tail));
        let (mean, variance) = moments(column);
        Estimate { mean, sd: variance.sqrt(), q5, q95, convergence: None }
    };
    (0..particles.ncols()).into_par_iter().map_init(Vec::new, one).collect()
}

/// The diagnostics of one parameter from chains × draws.
pub fn convergence(draws: ArrayView2<f64>) -> Convergence {
    diagnostics(draws).convergence_of(&flat(draws))
}

/// Rank-normalized split R-hat of chains × draws; NaN for a single chain.
pub fn r_hat(draws: ArrayView2<f64>) -> f64 {
    diagnostics(draws).convergence_of(&flat(draws)).r_hat
}

/// The effective sample size for the mean of chains × draws.
pub fn ess_mean(draws: ArrayView2<f64>) -> f64 {
    diagnostics(draws).checked(&flat(draws), |diagnostics, draws| diagnostics.ess_of(draws, |draw| draw))
}

/// The effective sample size for the standard deviation of chains × draws.
pub fn ess_sd(draws: ArrayView2<f64>) -> f64 {
    diagnostics(draws).checked(&flat(draws), |diagnostics, draws| {
        let mean = mean(draws);
        diagnostics.ess_of(draws, |draw| (draw - mean).powi(2))
    })
}

/// The effective sample size for a quantile, `probability` in (0, 1), of chains × draws.
pub fn ess_quantile(draws: ArrayView2<f64>, probability: f64) -> f64 {
    diagnostics(draws).checked(&flat(draws), |diagnostics, draws| {
        diagnostics.sort(draws);
        diagnostics.ess_below(draws, probability)
    })
}

fn diagnostics(draws: ArrayView2<f64>) -> Diagnostics {
    Diagnostics::new(draws.nrows(), draws.ncols())
}

fn flat(draws: ArrayView2<f64>) -> Vec<f64> {
    draws.iter().copied().collect()
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// Mean, and variance with n − 1 in the denominator.
fn moments(values: &[f64]) -> (f64, f64) {
    let mean = mean(values);
    (mean, values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (values.len() as f64 - 1.0))
}

/// Quantile of sorted values as R has it by default (its type 7); NaN if there are none or one is NaN.
pub fn quantile(sorted: &[f64], probability: f64) -> f64 {
    let n = sorted.len() as f64;
    match sorted {
        [] => f64::NAN,
        _ if sorted.iter().any(|value| value.is_nan()) => f64::NAN,
        [only] => *only,
        _ => {
            // In the order of operations of SciPy's `mquantiles`: where many draws are equal, a last bit decides who lies below.
            let place = n * probability + (1.0 - probability);
            let below = place.clamp(1.0, n - 1.0).floor();
            let share = (place - below).clamp(0.0, 1.0);
            // Between 1 and n − 1.
            let below = below as usize;
            (1.0 - share) * sorted[below - 1] + share * sorted[below]
        }
    }
}

/// An integer with the same order as the values; zeros of both signs are equal.
fn order(value: f64) -> u64 {
    let bits = (value + 0.0).to_bits();
    bits ^ if bits >> 63 == 1 { u64::MAX } else { 1 << 63 }
}

/// Computes diagnostics for one parameter at a time, all with the same numbers of chains and draws.
#[derive(Clone)]
struct Diagnostics {
    chains: usize,
    draws: usize,
    /// Draws in half a chain; an odd middle draw is in neither half.
    half: usize,
    forward: Arc<dyn RealToComplex<f64>>,
    backward: Arc<dyn ComplexToReal<f64>>,
    /// The normal score of each rank of the split chains, half ranks included: that of rank r is number 2r.
    scores: Arc<[f64]>,
    /// All draws, sorted.
    sorted: Vec<f64>,
    /// The split chains: twice as many, of half the length.
    split: Vec<f64>,
    /// Draws by rank: sort key and position.
    ranked: Vec<(u64, u32)>,
    padded: Vec<f64>,
    spectrum: Vec<Complex<f64>>,
    power: Vec<Complex<f64>>,
    correlation: Vec<f64>,
    scratch: Vec<Complex<f64>>,
}

impl Diagnostics {
    fn new(chains: usize, draws: usize) -> Self {
        let half = draws / 2;
        // Zero padding to twice the length avoids circular correlation.
        let padded = (2 * half).max(2).next_power_of_two();
        let mut planner = RealFftPlanner::new();
        let (forward, backward) = (planner.plan_fft_forward(padded), planner.plan_fft_inverse(padded));
        let size = 2 * chains * half;
        let scratch = vec![Complex::default(); forward.get_scratch_len().max(backward.get_scratch_len())];
        let normal = Normal::standard();
        let score = |twice: usize| normal.inverse_cdf((twice as f64 / 2.0 - 0.375) / (size as f64 + 0.25));
        Self {
            chains,
            draws,
            half,
            scores: (0..=2 * size).map(|twice| if twice < 2 { f64::NAN } else { score(twice) }).collect(),
            sorted: Vec::new(),
            split: Vec::new(),
            ranked: Vec::new(),
            padded: vec![0.0; padded],
            spectrum: forward.make_output_vec(),
            power: forward.make_output_vec(),
            correlation: Vec::new(),
            scratch,
            forward,
            backward,
        }
    }

    /// The result of `measure`, or NaN if there are too few draws or a draw is NaN.
    fn checked(&mut self, draws: &[f64], measure: impl FnOnce(&mut Self, &[f64]) -> f64) -> f64 {
        if self.is_defined(draws) { measure(self, draws) } else { f64::NAN }
    }

    fn is_defined(&self, draws: &[f64]) -> bool {
        self.chains > 0 && self.draws >= MIN_DRAWS && !draws.iter().any(|draw| draw.is_nan())
    }

    /// All diagnostics of a parameter; also sorts its draws into `self.sorted`.
    fn convergence_of(&mut self, draws: &[f64]) -> Convergence {
        self.sort(draws);
        if !self.is_defined(draws) {
            return Convergence::UNKNOWN;
        }
        let (mean, variance) = moments(draws);
        let mcse_mean = (variance / self.ess_of(draws, |draw| draw)).sqrt();
        let square = |draw: f64| (draw - mean).powi(2);
        let ess = self.ess_of(draws, square);
        let size = draws.len() as f64;
        let second = draws.iter().map(|&draw| square(draw)).sum::<f64>() / size;
        let fourth = draws.iter().map(|&draw| square(draw).powi(2)).sum::<f64>() / size;
        let mcse_sd = ((fourth - second.powi(2)) / ess / second / 4.0).sqrt();
        let [low, high] = TAILS.map(|tail| self.ess_below(draws, tail));
        self.split(draws, |draw| draw);
        // The median of the split chains, without an odd middle draw.
        let median = self.median_of_split();
        let folded: Vec<f64> = self.split.iter().map(|draw| (draw - median).abs()).collect();
        self.rank_normalize();
        let (ess_bulk, bulk) = (self.ess(), self.spread());
        self.split.clone_from(&folded);
        let r_hat = match self.chains {
            1 => f64::NAN,
            // Infinity minus infinity is NaN.
            _ if folded.iter().any(|distance| distance.is_nan()) => bulk,
            _ => {
                self.rank_normalize();
                let tail = self.spread();
                if tail > bulk { tail } else { bulk }
            }
        };
        Convergence { mcse_mean, mcse_sd, ess_bulk, ess_tail: if high < low { high } else { low }, r_hat }
    }

    fn sort(&mut self, draws: &[f64]) {
        self.sorted.clear();
        self.sorted.extend_from_slice(draws);
        self.sorted.sort_unstable_by(f64::total_cmp);
    }

    /// The split chains of a function of the draws.
    fn split(&mut self, draws: &[f64], of: impl Fn(f64) -> f64) {
        self.split.clear();
        for chain in draws.chunks_exact(self.draws) {
            for half in [&chain[..self.half], &chain[self.draws - self.half..]] {
                self.split.extend(half.iter().map(|&draw| of(draw)));
            }
        }
    }

    fn median_of_split(&mut self) -> f64 {
        let mut sorted = self.split.clone();
        // The number of values is even, because halves come in pairs.
        let middle = sorted.len() / 2;
        let (below, upper, _) = sorted.select_nth_unstable_by(middle, f64::total_cmp);
        let lower = below.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        (lower + *upper) / 2.0
    }

    /// Replaces the split chains by the normal scores of their ranks, with average ranks for ties.
    fn rank_normalize(&mut self) {
        self.ranked.clear();
        // Memory would not hold four copies of more than 2^32 draws.
        self.ranked.extend((0..).zip(&self.split).map(|(place, &draw)| (order(draw), place)));
        self.ranked.sort_unstable();
        let mut before = 0;
        for equal in self.ranked.chunk_by(|a, b| a.0 == b.0) {
            let after = before + equal.len();
            let score = self.scores[before + 1 + after];
            equal.iter().for_each(|&(_, place)| self.split[place as usize] = score);
            before = after;
        }
    }

    /// R-hat of the current split chains.
    fn spread(&self) -> f64 {
        let length = self.half as f64;
        let (means, variances): (Vec<f64>, Vec<f64>) = self.split.chunks_exact(self.half).map(moments).unzip();
        let between = length * moments(&means).1;
        let within = mean(&variances);
        ((between / within + length - 1.0) / length).sqrt()
    }

    /// The effective sample size for a quantile; needs `self.sorted`.
    fn ess_below(&mut self, draws: &[f64], probability: f64) -> f64 {
        let quantile = quantile(&self.sorted, probability);
        self.ess_of(draws, |draw| if draw <= quantile { 1.0 } else { 0.0 })
    }

    /// The effective sample size for the mean of a function of the draws.
    fn ess_of(&mut self, draws: &[f64], of: impl Fn(f64) -> f64) -> f64 {
        self.split(draws, of);
        self.ess()
    }

    /// The effective sample size for the mean of the current split chains, from the initial monotone sequence of autocorrelations (Geyer
    /// 1992).
    fn ess(&mut self) -> f64 {
        let size = self.split.len() as f64;
        let (lowest, highest) =
            self.split.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), &x| (low.min(x), high.max(x)));
        if self.split.iter().any(|x| x.is_nan()) {
            return f64::NAN;
        }
        if highest - lowest < RESOLUTION {
            return size;
        }
        let Some(between) = self.correlate() else { return f64::NAN };
        let n = self.half;
        let within = self.correlation[0] * n as f64 / (n as f64 - 1.0);
        let total = within * (n as f64 - 1.0) / n as f64 + between;
        // In place: autocovariances are replaced by autocorrelations from the front.
        let rho = &mut self.correlation;
        let correlation = |covariance: f64| 1.0 - (within - covariance) / total;
        let (mut even, mut odd) = (1.0, correlation(rho[1]));
        (rho[0], rho[1]) = (even, odd);
        if odd.is_nan() {
            return f64::NAN;
        }
        let mut t = 1;
        while t + 3 < n && even + odd > 0.0 {
            (even, odd) = (correlation(rho[t + 1]), correlation(rho[t + 2]));
            // The last pair, with a negative sum, is not counted.
            (rho[t + 1], rho[t + 2]) = if even + odd >= 0.0 { (even, odd) } else { (0.0, 0.0) };
            t += 2;
        }
        let end = t - 1;
        if even > 0.0 {
            rho[end] = even;
        }
        for t in (1..).step_by(2).take_while(|t| t + 3 <= end) {
            let before = rho[t - 1] + rho[t];
            if rho[t + 1] + rho[t + 2] > before {
                (rho[t + 1], rho[t + 2]) = (before / 2.0, before / 2.0);
            }
        }
        let time = -1.0 + 2.0 * rho[..end].iter().sum::<f64>() + rho[end];
        // Antithetic draws are worth more than independent ones, but only up to this limit.
        let least = 1.0 / size.log10();
        size / if least > time { least } else { time }
    }

    /// Computes the mean autocovariance of the split chains at each lag into `self.correlation`. Returns the variance of the chain means, or
    /// `None` if the transform fails.
    fn correlate(&mut self) -> Option<f64> {
        self.power.fill(Complex::default());
        let mut means = Vec::with_capacity(2 * self.chains);
        for chain in self.split.chunks_exact(self.half) {
            let mean = mean(chain);
            means.push(mean);
            self.padded.fill(0.0);
            self.padded.iter_mut().zip(chain).for_each(|(place, x)| *place = x - mean);
            self.forward.process_with_scratch(&mut self.padded, &mut self.spectrum, &mut self.scratch).ok()?;
            // The transform is linear, so that the sum over chains needs a single inverse transform.
            self.power.iter_mut().zip(&self.spectrum).for_each(|(sum, x)| sum.re += x.norm_sqr());
        }
        self.backward.process_with_scratch(&mut self.power, &mut self.padded, &mut self.scratch).ok()?;
        let scale = 1.0 / (self.padded.len() as f64 * self.half as f64 * means.len() as f64);
        self.correlation.clear();
        self.correlation.extend(self.padded[..self.half].iter().map(|sum| sum * scale));
        Some(moments(&means).1)
    }
}
