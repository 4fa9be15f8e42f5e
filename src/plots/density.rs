//! Kernel density estimates, and bars for whole numbers.

use crate::metrics::convergence::quantile;

/// Cells of the grid per bandwidth.
const CELLS_PER_BANDWIDTH: f64 = 6.0;
/// The fewest and the most cells.
const CELLS: (f64, f64) = (200.0, 6000.0);
/// The radius of a kernel in bandwidths.
const KERNEL_RADIUS: f64 = 4.0;
/// By how many bandwidths the curve goes beyond the draws.
const MARGIN: f64 = 3.0;
/// Whole numbers within a range of this size are shown as bars.
const MAX_RANGE_OF_BARS: f64 = 40.0;

/// The bandwidth of Silverman's rule of thumb (1986, eq. 3.31): 0.9 min(s, IQR/1.34) n^(-1/5); `None` for a single
/// draw, and if all draws are equal.
pub(super) fn bandwidth(sorted: &[f64]) -> Option<f64> {
    let n = sorted.len() as f64;
    let mean = sorted.iter().sum::<f64>() / n;
    let deviation = (sorted.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (n - 1.0)).sqrt();
    let robust = (quantile(sorted, 0.75) - quantile(sorted, 0.25)) / 1.34;
    let spread = if robust > 0.0 { deviation.min(robust) } else { deviation };
    let width = 0.9 * spread * n.powf(-0.2);
    // Rounding errors give equal numbers a tiny standard deviation.
    let largest = sorted.iter().fold(0.0_f64, |largest, value| largest.max(value.abs()));
    (width.is_finite() && width > 1e-12 * largest).then_some(width)
}

/// A Gaussian kernel density estimate of finite, sorted draws, as points of its curve.
///
/// Draws are binned linearly on a grid, which is then smoothed, so that the cost of smoothing does not depend on the number of draws.
pub(super) fn density(sorted: &[f64], width: f64) -> Vec<(f64, f64)> {
    let (Some(first), Some(last)) = (sorted.first(), sorted.last()) else { return Vec::new() };
    let (low, high) = (first - MARGIN * width, last + MARGIN * width);
    let cells = (CELLS_PER_BANDWIDTH * (high - low) / width).clamp(CELLS.0, CELLS.1).round();
    let step = (high - low) / cells;
    let cells = cells as usize;
    let mut weights = vec![0.0; cells + 1];
    for value in sorted {
        let place = (value - low) / step;
        let below = (place.floor().max(0.0) as usize).min(cells.saturating_sub(1));
        let share = place - below as f64;
        weights[below] += 1.0 - share;
        weights[below + 1] += share;
    }
    // If the range is so large that a cell is wider than the bandwidth, the kernel is widened to one cell.
    let width = width.max(step);
    let reach = (KERNEL_RADIUS * width / step).ceil() as usize;
    let kernel: Vec<f64> = (0..=reach).map(|k| (-0.5 * (k as f64 * step / width).powi(2)).exp()).collect();
    let normalizer = (kernel[0] + 2.0 * kernel[1..].iter().sum::<f64>()) * step * sorted.len() as f64;
    let smoothed = |at: usize| -> f64 {
        let near = at.saturating_sub(reach)..=(at + reach).min(cells);
        near.map(|from| weights[from] * kernel[at.abs_diff(from)]).sum::<f64>() / normalizer
    };
    (0..=cells).map(|at| (low + at as f64 * step, smoothed(at))).collect()
}

/// Relative frequencies of whole numbers as bars (left, right, [bottom, top]), .8 wide; `None` if the draws are not whole numbers within a small range.
pub(super) fn shares(sorted: &[f64]) -> Option<Vec<(f64, f64, [f64; 2])>> {
    let (first, last) = (sorted.first()?, sorted.last()?);
    if last - first > MAX_RANGE_OF_BARS || last == first || sorted.iter().any(|value| value.fract() != 0.0) {
        return None;
    }
    let n = sorted.len() as f64;
    let bars = sorted.chunk_by(|a, b| a == b).map(|same| (same[0] - 0.4, same[0] + 0.4, [0.0, same.len() as f64 / n]));
    Some(bars.collect())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn the_estimate_is_the_sum_of_its_kernels() {
        let mut sorted: Vec<f64> = (0..50).map(|i| f64::from(i * i % 37) / 7.0).collect();
        sorted.sort_by(f64::total_cmp);
        let width = bandwidth(&sorted).unwrap();
        let curve = density(&sorted, width);
        let exact = |x: f64, h: f64| -> f64 {
            let kernel = |value: f64| (-0.5 * ((x - value) / h).powi(2)).exp() / (h * (2.0 * std::f64::consts::PI).sqrt());
            sorted.iter().map(|&value| kernel(value)).sum::<f64>() / sorted.len() as f64
        };
        let error = |h: f64| curve.iter().map(|&(x, y)| (y - exact(x, h)).abs()).fold(0.0, f64::max);
        let peak = curve.iter().map(|point| point.1).fold(0.0, f64::max);
        // The error is at most step²/8 times the second derivative, which is at most about peak/h². With step = h/6 that is peak/288.
        assert!(error(width) < peak / 200.0, "{} of {peak}", error(width));
        // The control: another bandwidth gives another estimate.
        assert!(error(1.2 * width) > peak / 50.0);
        let area: f64 = curve.windows(2).map(|pair| (pair[1].0 - pair[0].0) * 0.5 * (pair[0].1 + pair[1].1)).sum();
        // The grid ends three bandwidths beyond the draws, which cuts 0.13 % of one or two kernels.
        assert!((area - 1.0).abs() < 2e-3, "{area}");
    }

    #[test]
    fn equal_and_extreme_draws() {
        assert_eq!(bandwidth(&[3.0; 10]), None);
        assert_eq!(bandwidth(&[0.1 + 0.2; 7]), None);
        assert_eq!(bandwidth(&[1.0]), None);
        let far = [0.0, 1.0, 2.0, 1e9];
        let curve = density(&far, bandwidth(&far).unwrap());
        assert!(curve.len() <= 6001 && curve.iter().all(|point| point.1.is_finite()));
        assert_eq!(
            shares(&[1.0, 1.0, 3.0, 4.0]).unwrap(),
            [(0.6, 1.4, [0.0, 0.5]), (2.6, 3.4, [0.0, 0.25]), (3.6, 4.4, [0.0, 0.25])]
        );
        assert_eq!((shares(&[1.0, 1.5]), shares(&[0.0, 100.0]), shares(&[2.0, 2.0])), (None, None, None));
    }
}
