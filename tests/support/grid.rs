//! Distributed variational inference with densities on a grid: the exact method that particle methods approximate.

#![allow(dead_code, reason = "each binary that includes this file uses a part of it")]
#![allow(clippy::unwrap_used, reason = "not shipped: a failure here stops the test")]

use mpibayes::kernels::kde::Kde;
use ndarray::{Array2, ArrayView2};

/// A regular grid in one or two dimensions: the points (M × d) and the volume that each stands for.
#[derive(Clone, Debug)]
pub struct Grid {
    pub points: Array2<f64>,
    pub volume: f64,
}

impl Grid {
    /// `count` midpoints of equal cells of [from, to].
    pub fn line(from: f64, to: f64, count: usize) -> Self {
        let width = (to - from) / count as f64;
        Self { points: Array2::from_shape_fn((count, 1), |(i, _)| from + width * (i as f64 + 0.5)), volume: width }
    }

    /// `count`² midpoints of equal cells of [from, to]².
    pub fn square(from: f64, to: f64, count: usize) -> Self {
        let width = (to - from) / count as f64;
        let at = |i: usize| from + width * (i as f64 + 0.5);
        let points = Array2::from_shape_fn((count * count, 2), |(i, c)| at(if c == 0 { i / count } else { i % count }));
        Self { points, volume: width * width }
    }

    /// The logarithm of a function at every point.
    pub fn map(&self, function: impl Fn(&[f64]) -> f64) -> Vec<f64> {
        self.points.rows().into_iter().map(|row| function(row.as_slice().unwrap())).collect()
    }

    /// A log-density shifted so that its exponential integrates to 1.
    pub fn normalize(&self, mut log: Vec<f64>) -> Vec<f64> {
        let top = log.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let sum: f64 = log.iter().map(|l| (l - top).exp()).sum();
        log.iter_mut().for_each(|l| *l -= top + (sum * self.volume).ln());
        log
    }

    /// KL(q ‖ p) of two log-densities, both normalized on the grid first.
    pub fn kl(&self, q: &[f64], p: &[f64]) -> f64 {
        let (q, p) = (self.normalize(q.to_vec()), self.normalize(p.to_vec()));
        // Where q underflows its share is 0, also where p is −∞.
        q.iter().zip(p).map(|(q, p)| if q.exp() == 0.0 { 0.0 } else { q.exp() * (q - p) }).sum::<f64>() * self.volume
    }

    /// KL of the density estimate of particles (N × d) from a log-density.
    pub fn kl_of_particles(&self, kde: Kde, particles: ArrayView2<f64>, p: &[f64]) -> f64 {
        let mut q = vec![0.0; p.len()];
        kde.log_density(particles, self.points.view(), &mut q);
        self.kl(&q, p)
    }

    /// The mean of a function under a log-density.
    pub fn mean(&self, log: &[f64], function: impl Fn(&[f64]) -> f64) -> f64 {
        let q = self.normalize(log.to_vec());
        self.points.rows().into_iter().zip(q).map(|(row, q)| q.exp() * function(row.as_slice().unwrap())).sum::<f64>()
            * self.volume
    }
}

/// Distributed variational inference (Kassab & Simeone, arXiv 2009.06419, section 3) with log-densities on a grid.
#[derive(Clone, Debug)]
pub struct GridDvi {
    grid: Grid,
    prior: Vec<f64>,
    losses: Vec<Vec<f64>>,
    alpha: f64,
    /// log q, the server's density.
    pub q: Vec<f64>,
    /// log t_k, each agent's factor.
    pub factors: Vec<Vec<f64>>,
}

impl GridDvi {
    /// Starts at q = p0 and factors of 1. `losses` holds each agent's L_k on the grid, `alpha` is the temperature.
    pub fn new(grid: Grid, log_prior: Vec<f64>, losses: Vec<Vec<f64>>, alpha: f64) -> Self {
        let prior = grid.normalize(log_prior);
        let factors = vec![vec![0.0; prior.len()]; losses.len()];
        Self { grid, q: prior.clone(), prior, losses, alpha, factors }
    }

    /// log of the cavity q / t_k.
    pub fn cavity(&self, k: usize) -> Vec<f64> {
        self.q.iter().zip(&self.factors[k]).map(|(q, t)| q - t).collect()
    }

    /// log of the tilted density, cavity · exp(−L_k/α): the minimizer of agent k's local free energy.
    pub fn tilted(&self, k: usize) -> Vec<f64> {
        let tilted = self.cavity(k).iter().zip(&self.losses[k]).map(|(cavity, loss)| cavity - loss / self.alpha).collect();
        self.grid.normalize(tilted)
    }

    /// A round of one agent: q becomes its tilted density, its factor takes up the change.
    pub fn visit(&mut self, k: usize) {
        let q = self.tilted(k);
        self.factors[k].iter_mut().zip(q.iter().zip(&self.q)).for_each(|(t, (new, old))| *t += new - old);
        self.q = q;
    }

    /// A round of several agents at once: q = p0 · Π of all factors.
    pub fn visit_all(&mut self, agents: &[usize]) {
        let tilted: Vec<_> = agents.iter().map(|&k| self.tilted(k)).collect();
        for (&k, tilted) in agents.iter().zip(tilted) {
            self.factors[k].iter_mut().zip(tilted.iter().zip(&self.q)).for_each(|(t, (new, old))| *t += new - old);
        }
        let mut q = self.prior.clone();
        for factor in &self.factors {
            q.iter_mut().zip(factor).for_each(|(q, t)| *q += t);
        }
        self.q = self.grid.normalize(q);
    }

    /// log of the generalized posterior p0 · exp(−Σ L_k/α).
    pub fn optimum(&self) -> Vec<f64> {
        let mut log = self.prior.clone();
        for loss in &self.losses {
            log.iter_mut().zip(loss).for_each(|(q, loss)| *q -= loss / self.alpha);
        }
        self.grid.normalize(log)
    }

    /// The grid.
    pub fn grid(&self) -> &Grid {
        &self.grid
    }
}

/// log N(x | mean, variance).
pub fn log_normal(x: f64, mean: f64, variance: f64) -> f64 {
    -0.5 * (x - mean).powi(2) / variance - 0.5 * (2.0 * std::f64::consts::PI * variance).ln()
}

/// The losses of the one-dimensional example: −log N(1, 4) and −log [N(−3, 1) + N(3, 2)].
pub fn toy_loss(agent: usize, x: f64) -> f64 {
    match agent {
        0 => -log_normal(x, 1.0, 4.0),
        _ => -(log_normal(x, -3.0, 1.0).exp() + log_normal(x, 3.0, 2.0).exp()).ln(),
    }
}

/// The derivatives of the losses of the one-dimensional example.
pub fn toy_gradient(agent: usize, x: f64) -> f64 {
    match agent {
        0 => (x - 1.0) / 4.0,
        _ => {
            let (a, b) = (log_normal(x, -3.0, 1.0), log_normal(x, 3.0, 2.0));
            let weight = 1.0 / (1.0 + (b - a).exp());
            weight * (x + 3.0) + (1.0 - weight) * (x - 3.0) / 2.0
        }
    }
}
