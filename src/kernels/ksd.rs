//! The kernelized Stein discrepancy (KSD) of particles from a density with a known score.

use super::rbf::squared_distances;
use crate::number::Real;
use ndarray::{ArrayView1, ArrayView2};

/// The V-statistic S = (1/N²) Σ_{n,m} u(θ_n, θ_m) of the kernel k(x, y) = exp(−‖x − y‖²/h) (Liu, Lee & Jordan
/// 2016). S is at least 0. If the particles are draws from the density, N · S stays bounded as N grows. `theta` and `score`, ∇log p at the
/// particles, are N × d.
pub fn ksd<F: Real>(theta: ArrayView2<F>, score: ArrayView2<F>, h: f64) -> f64 {
    let n = theta.nrows();
    let squared = squared_distances(theta, theta);
    let pairs = (0..n).flat_map(|i| (0..n).map(move |j| (i, j)));
    let sum: f64 =
        pairs.map(|(i, j)| stein([theta.row(i), theta.row(j)], [score.row(i), score.row(j)], squared[(i, j)], h)).sum();
    sum / (n * n) as f64
}

/// The Stein kernel u(x, y) = k s(x)·s(y) + (2/h) k (x − y)·(s(x) − s(y)) + k (2d/h − 4‖x − y‖²/h²).
fn stein<F: Real>([x, y]: [ArrayView1<F>; 2], [sx, sy]: [ArrayView1<F>; 2], squared_distance: f64, h: f64) -> f64 {
    let (mut product, mut cross) = (0.0, 0.0);
    for ((x, y), (sx, sy)) in x.iter().zip(y).zip(sx.iter().zip(sy)) {
        product += sx.f64() * sy.f64();
        cross += (x.f64() - y.f64()) * (sx.f64() - sy.f64());
    }
    let d = x.len() as f64;
    (-squared_distance / h).exp() * (product + 2.0 / h * cross + 2.0 * d / h - 4.0 * squared_distance / (h * h))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::random::{Purpose, Seed, Who};
    use ndarray::{Array1, Array2, array};

    #[test]
    fn stein_kernel_by_finite_differences() {
        // u = s·s' k + s·∇_y k + s'·∇_x k + tr ∇_x ∇_y k.
        let (x, y, h) = (array![0.3, -0.7, 0.2], array![-0.4, 0.1, 0.9], 1.3);
        let (sx, sy) = (array![1.0, -0.5, 2.0], array![0.4, 0.8, -1.5]);
        let k = |x: &Array1<f64>, y: &Array1<f64>| (-(x - y).mapv(|v| v * v).sum() / h).exp();
        let step = 1e-4;
        let shift = |x: &Array1<f64>, i: usize, by: f64| {
            let mut moved = x.clone();
            moved[i] += by;
            moved
        };
        let mut expected = sx.dot(&sy) * k(&x, &y);
        for i in 0..3 {
            expected += sx[i] * (k(&x, &shift(&y, i, step)) - k(&x, &shift(&y, i, -step))) / (2.0 * step);
            expected += sy[i] * (k(&shift(&x, i, step), &y) - k(&shift(&x, i, -step), &y)) / (2.0 * step);
            let corner = |a: f64, b: f64| k(&shift(&x, i, a * step), &shift(&y, i, b * step));
            expected += (corner(1.0, 1.0) - corner(1.0, -1.0) - corner(-1.0, 1.0) + corner(-1.0, -1.0)) / (4.0 * step * step);
        }
        let squared_distance = (&x - &y).mapv(|v| v * v).sum();
        let value = stein([x.view(), y.view()], [sx.view(), sy.view()], squared_distance, h);
        assert!((value - expected).abs() < 1e-6 * value.abs(), "{value} {expected}");
    }

    #[test]
    fn bounded_for_draws_from_the_density() {
        let d = 2;
        let h = 2.0;
        let scaled = |n: usize, seed: u64, shift: f64| {
            let mut theta = Array2::zeros((n, d));
            Seed(seed).stream(Who::Run, 0, Purpose::Synthetic).normals(theta.as_slice_mut().unwrap());
            theta += shift;
            n as f64 * ksd(theta.view(), theta.mapv(|x: f64| -x).view(), h)
        };
        let mean = |n: usize, shift: f64| (0..20).map(|seed| scaled(n, seed, shift)).sum::<f64>() / 20.0;
        // For draws from N(0, I), E[N S] = E u(x, x) = E‖x‖² + 2d/h = d + 2d/h at every N. One value's standard deviation is below
        // its mean, so the mean of 20 has a standard error below 0.224 of it, of which 0.9 is four.
        let expected = d as f64 * (1.0 + 2.0 / h);
        for n in [25, 100, 400] {
            let value = mean(n, 0.0);
            assert!((value / expected - 1.0).abs() < 0.9, "N={n}: {value} {expected}");
        }
        // Negative control: for draws from another density N · S grows like N.
        assert!(mean(400, 1.0) > 10.0 * expected);
    }
}
