//! The center variable of coupled chains, and the exact solution of its linear dynamics between two exchanges.

use crate::cluster::Raw;
use crate::number::Real;
use crate::random::Stream;
use serde::{Deserialize, Serialize};

/// Coordinates per block, so that the normals of a block fit on the stack.
const BLOCK: usize = 1024;

/// The dynamics of each coordinate of the center while the chains are fixed.
///
/// Second order: dc = u dt, du = −(k/M)(c − m) dt − (C/M) u dt + N(0, 2C/M² dt), with m the mean of the K chains, k = κK, M the center's
/// mass and C its friction. First order: dc = −k (c − m) dt + N(0, 2 dt).
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum CenterDynamics {
    /// Overdamped: the state is a position.
    FirstOrder,
    /// Underdamped: the state is a position and a velocity.
    SecondOrder {
        /// M.
        mass: f64,
        /// C.
        friction: f64,
    },
}

/// The solution over some time: (c − m, u) is multiplied by a matrix, and noise with covariance L Lᵀ is added.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Flow {
    /// The matrix.
    pub drift: [[f64; 2]; 2],
    /// L, lower triangular: L11, L21, L22.
    pub noise: [f64; 3],
}

impl CenterDynamics {
    /// The exact solution over this time under a spring of stiffness k, with or without noise.
    pub fn flow(self, stiffness: f64, time: f64, noise: bool) -> Flow {
        let (rate, diffusion) = match self {
            Self::FirstOrder => ([[-stiffness, 0.0], [0.0, 0.0]], [1.0, 0.0]),
            Self::SecondOrder { mass, friction } => {
                ([[0.0, 1.0], [-stiffness / mass, -friction / mass]], [0.0, friction / (mass * mass)])
            }
        };
        let largest = rate.as_flattened().iter().fold(0.0_f64, |most, rate| most.max(rate.abs()));
        // Scaling and squaring: a series for a short time, then doubled as often as the time was halved.
        let halvings = ((time * largest).max(1e-300).log2().ceil() as i32 + 7).max(0);
        let short = time * 0.5_f64.powi(halvings);
        let mut drift = exponential(rate, short);
        let mut covariance = [[0.0; 2]; 2];
        // ∫ e^{Bs} 2D e^{Bᵀs} ds by Gauss-Legendre quadrature with three nodes.
        for (node, weight) in [(-(0.6_f64.sqrt()), 5.0 / 9.0), (0.0, 8.0 / 9.0), (0.6_f64.sqrt(), 5.0 / 9.0)] {
            let propagator = exponential(rate, 0.5 * short * (1.0 + node));
            for (i, row) in covariance.iter_mut().enumerate() {
                for (j, entry) in row.iter_mut().enumerate() {
                    let both: f64 = (0..2).map(|k| propagator[i][k] * diffusion[k] * propagator[j][k]).sum();
                    *entry += weight * short * both;
                }
            }
        }
        for _ in 0..halvings {
            let moved = product(product(drift, covariance), transposed(drift));
            covariance = std::array::from_fn(|i| std::array::from_fn(|j| covariance[i][j] + moved[i][j]));
            drift = product(drift, drift);
        }
        let first = covariance[0][0].sqrt();
        let shared = if first > 0.0 { covariance[1][0] / first } else { 0.0 };
        let second = (covariance[1][1] - shared * shared).max(0.0).sqrt();
        Flow { drift, noise: if noise { [first, shared, second] } else { [0.0; 3] } }
    }
}

fn product(a: [[f64; 2]; 2], b: [[f64; 2]; 2]) -> [[f64; 2]; 2] {
    std::array::from_fn(|i| std::array::from_fn(|j| a[i][0] * b[0][j] + a[i][1] * b[1][j]))
}

fn transposed(a: [[f64; 2]; 2]) -> [[f64; 2]; 2] {
    [[a[0][0], a[1][0]], [a[0][1], a[1][1]]]
}

/// e^{Bt} by its series, for small Bt.
fn exponential(rate: [[f64; 2]; 2], time: f64) -> [[f64; 2]; 2] {
    let mut term = [[1.0, 0.0], [0.0, 1.0]];
    let mut sum = term;
    for n in 1..=10 {
        let share = time / f64::from(n);
        term = product(term, rate.map(|row| row.map(|entry| entry * share)));
        sum = std::array::from_fn(|i| std::array::from_fn(|j| sum[i][j] + term[i][j]));
    }
    sum
}

/// The center's position and velocity; the velocity is empty for dynamics of first order.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(bound = "")]
pub struct Center<F: Real> {
    /// c.
    pub position: Raw<F>,
    /// u.
    pub velocity: Raw<F>,
}

impl<F: Real> Center<F> {
    /// At rest at this position.
    pub fn at(position: Vec<F>, dynamics: CenterDynamics) -> Self {
        let has_velocity = matches!(dynamics, CenterDynamics::SecondOrder { .. });
        let velocity = vec![F::zero(); if has_velocity { position.len() } else { 0 }];
        Self { position: Raw(position), velocity: Raw(velocity) }
    }

    /// Applies a flow about the mean of the chains: `weight` times the sum of their positions.
    pub fn flow(&mut self, flow: &Flow, sum: &[F], weight: F, noise: &mut Stream) {
        let [[a, b], [c, d]] = flow.drift.map(|row| row.map(F::of));
        let [first, shared, second] = flow.noise.map(F::of);
        let noisy = flow.noise != [0.0; 3];
        let mut normals = [F::zero(); 2 * BLOCK];
        let Self { position: Raw(position), velocity: Raw(velocity) } = self;
        for from in (0..position.len()).step_by(BLOCK) {
            let part = from..(from + BLOCK).min(position.len());
            let len = part.len();
            if velocity.is_empty() {
                let z = &mut normals[..len];
                if noisy {
                    noise.normals(z);
                }
                for ((c, &sum), &z) in position[part.clone()].iter_mut().zip(&sum[part]).zip(&*z) {
                    let mean = weight * sum;
                    *c = mean + a * (*c - mean) + first * z;
                }
                continue;
            }
            if noisy {
                noise.normals(&mut normals[..2 * len]);
            }
            let (z1, z2) = normals[..2 * len].split_at(len);
            let both = position[part.clone()].iter_mut().zip(&mut velocity[part.clone()]);
            for (((x, u), &sum), (&z1, &z2)) in both.zip(&sum[part]).zip(z1.iter().zip(z2)) {
                let mean = weight * sum;
                let (off, rate) = (*x - mean, *u);
                *x = mean + a * off + b * rate + first * z1;
                *u = c * off + d * rate + shared * z1 + second * z2;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::{Purpose, Seed, Who};

    fn close(a: f64, b: f64) -> bool {
        (a - b).abs() < 1e-11 * (1.0 + b.abs())
    }

    /// Flows compose; they keep the stationary distribution, with variances 1/k and 1/M; a long flow forgets the start.
    #[test]
    fn flows_compose_and_keep_the_stationary_distribution() {
        for (mass, friction, stiffness) in [(1.0, 1.0, 3.0), (4.0, 0.5, 8.0), (2.0, 30.0, 0.7)] {
            let dynamics = CenterDynamics::SecondOrder { mass, friction };
            let covariance = |flow: Flow| {
                let [a, b, c] = flow.noise;
                [[a * a, a * b], [a * b, b * b + c * c]]
            };
            let (one, two) = (dynamics.flow(stiffness, 0.37, true), dynamics.flow(stiffness, 0.74, true));
            let composed = product(one.drift, one.drift);
            let moved = product(product(one.drift, covariance(one)), transposed(one.drift));
            let stationary = [[1.0 / stiffness, 0.0], [0.0, 1.0 / mass]];
            let kept = product(product(one.drift, stationary), transposed(one.drift));
            for (i, j) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
                assert!(close(composed[i][j], two.drift[i][j]));
                assert!(close(moved[i][j] + covariance(one)[i][j], covariance(two)[i][j]));
                assert!(close(kept[i][j] + covariance(one)[i][j], stationary[i][j]), "{kept:?}");
            }
            let long = dynamics.flow(stiffness, 2000.0, true);
            assert!(long.drift.as_flattened().iter().all(|entry| entry.abs() < 1e-12));
            assert!(close(long.noise[0].powi(2), stationary[0][0]));
        }
        let first = CenterDynamics::FirstOrder.flow(2.0, 0.3, true);
        assert!(close(first.drift[0][0], (-0.6_f64).exp()) && close(first.noise[0].powi(2), (1.0 - (-1.2_f64).exp()) / 2.0));
    }

    /// Without a spring the flow is that of free Langevin motion.
    #[test]
    fn a_free_center_diffuses() {
        let (mass, friction, time) = (2.0, 3.0, 0.8);
        let flow = CenterDynamics::SecondOrder { mass, friction }.flow(0.0, time, true);
        let rate = friction / mass;
        let left = (-rate * time).exp();
        assert!(close(flow.drift[0][0], 1.0) && close(flow.drift[0][1], (1.0 - left) / rate) && close(flow.drift[1][1], left));
        let of_velocity = (1.0 - left * left) / mass;
        assert!(close(flow.noise[1].powi(2) + flow.noise[2].powi(2), of_velocity));
    }

    /// Without noise only the drift acts, also on the last, incomplete block.
    #[test]
    fn every_coordinate_flows_alike() {
        let dim = BLOCK + 3;
        let dynamics = CenterDynamics::SecondOrder { mass: 1.5, friction: 0.4 };
        let flow = dynamics.flow(2.0, 0.5, false);
        let start: Vec<f64> = (0..dim).map(|j| (j as f64).sin()).collect();
        let mean: Vec<f64> = start.iter().map(|value| 0.5 * value - 1.0).collect();
        let mut center = Center::at(start.clone(), dynamics);
        let mut stream = Seed(1).stream(Who::Server, 0, Purpose::Noise);
        center.flow(&flow, &mean, 1.0, &mut stream);
        for j in 0..dim {
            assert!(close(center.position.0[j], mean[j] + flow.drift[0][0] * (start[j] - mean[j])));
            assert!(close(center.velocity.0[j], flow.drift[1][0] * (start[j] - mean[j])));
        }
    }
}
