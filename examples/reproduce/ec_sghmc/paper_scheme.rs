//! The paper's own discretization of coupled chains, by Euler steps and with a center that is as old as the last exchange.
//!
//! Our sampler moves the center exactly, and sends it when it is new. The paper's steps are all of one time: positions and velocities of chains
//! and center move by what was there before the step. Every s steps a chain and the server exchange copies, and what either side does in between is
//! by these. Noise enters the velocities alone.

use mpibayes::random::{Purpose, Seed, Stream, Who};
use rand_distr::{Distribution, StandardNormal};

/// In which order a step moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// All by what was there before, as written in the paper.
    Explicit,
    /// Velocities first, then positions by the new ones.
    SemiImplicit,
}

/// Coupled chains on a Gaussian with mean 0.
#[derive(Clone, Copy, Debug)]
pub struct PaperScheme<const D: usize> {
    pub chains: usize,
    pub step: f64,
    /// Frictions of the chains and of the center, whose masses are 1.
    pub friction: f64,
    pub center_friction: f64,
    /// The stiffness κ of each spring.
    pub coupling: f64,
    /// Steps between exchanges.
    pub period: u64,
    pub order: Order,
    /// The inverse of the covariance.
    pub precision: [[f64; D]; D],
    /// Where all chains and the center begin.
    pub start: [f64; D],
}

impl<const D: usize> PaperScheme<D> {
    /// The positions of all chains after each of so many steps.
    pub fn run(&self, steps: u64, seed: u64, mut each: impl FnMut(u64, &[[f64; D]])) {
        let stream = |who: Who| Seed(seed).stream(who, 0, Purpose::Noise);
        let mut streams: Vec<Stream> = (0..self.chains).map(|chain| stream(Who::Agent(chain as u32))).collect();
        let mut of_center = stream(Who::Server);
        let mut x = vec![self.start; self.chains];
        let mut p: Vec<[f64; D]> = streams.iter_mut().map(|stream| [0.0; D].map(|_| normal(stream))).collect();
        let (mut c, mut r) = (self.start, [0.0; D]);
        // What chains know of the center, and the server of the chains.
        let (mut known_center, mut known_chains) = (vec![c; self.chains], x.clone());
        let h = self.step;
        for step in 0..steps {
            if step % self.period == 0 {
                known_chains.clone_from(&x);
                known_center.fill(c);
            }
            for chain in 0..self.chains {
                let before = p[chain];
                for j in 0..D {
                    let gradient: f64 = self.precision[j].iter().zip(&x[chain]).map(|(a, x)| a * x).sum();
                    let pull = self.coupling * (x[chain][j] - known_center[chain][j]);
                    let noise = (2.0 * h * self.friction).sqrt() * normal(&mut streams[chain]);
                    p[chain][j] += -h * (gradient + self.friction * before[j] + pull) + noise;
                }
                for j in 0..D {
                    x[chain][j] += h * if self.order == Order::Explicit { before[j] } else { p[chain][j] };
                }
            }
            let before = r;
            for j in 0..D {
                let pull: f64 = known_chains.iter().map(|known| self.coupling * (c[j] - known[j])).sum();
                let noise = (2.0 * h * self.center_friction).sqrt() * normal(&mut of_center);
                r[j] += -h * (self.center_friction * before[j] + pull) + noise;
            }
            for j in 0..D {
                c[j] += h * if self.order == Order::Explicit { before[j] } else { r[j] };
            }
            each(step, &x);
        }
    }
}

fn normal(stream: &mut Stream) -> f64 {
    StandardNormal.sample(stream)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scheme(order: Order, coupling: f64) -> PaperScheme<20> {
        let mut precision = [[0.0; 20]; 20];
        (0..20).for_each(|j| precision[j][j] = 1.0);
        PaperScheme {
            chains: 4,
            step: 0.05,
            friction: 1.0,
            center_friction: 1.0,
            coupling,
            period: 1,
            order,
            precision,
            start: [0.0; 20],
        }
    }

    fn variance(scheme: &PaperScheme<20>) -> f64 {
        let (mut sum, mut count) = (0.0, 0.0);
        scheme.run(100_000, 1, |step, chains| {
            if step >= 1000 {
                chains.iter().flatten().for_each(|x| sum += x * x);
                count += 80.0;
            }
        });
        sum / count
    }

    /// The exact variances of the linear maps, to 1.5 % or some five standard errors.
    #[test]
    fn variances_are_those_of_the_linear_maps() {
        for (order, exact) in [(Order::Explicit, 1.0533), (Order::SemiImplicit, 1.0006)] {
            let found = variance(&scheme(order, 0.0));
            assert!((found / exact - 1.0).abs() < 0.015, "{order:?}: {found}");
        }
        // Coupled chains with small steps: 1/K + (K − 1)/K / (1 + κ).
        let found = variance(&scheme(Order::SemiImplicit, 1.0));
        assert!((found / 0.625 - 1.0).abs() < 0.02, "{found}");
    }
}
