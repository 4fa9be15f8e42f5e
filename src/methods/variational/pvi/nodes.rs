//! Nodes and weights of cubature rules for expectations under a standard normal distribution.

use super::covariance::Covariance;
use crate::cluster::Result;
use crate::quadrature::gauss_hermite;
use crate::random::Stream;
use ndarray::{Array1, Array2, Axis, concatenate};
use ndarray_linalg::QR;

/// Default nodes per axis in one and in two dimensions.
const NODES_PER_AXIS: [usize; 2] = [80, 40];

/// Largest default number of nodes for a diagonal covariance.
const MAX_DIAGONAL_NODES: usize = 200;

/// E[f(z)] ≈ Σ_n w_n f(z_n) for z ~ N(0, I).
#[derive(Clone, Debug)]
pub struct Nodes {
    /// The nodes (n × d).
    pub z: Array2<f64>,
    /// Their weights, which add up to 1.
    pub weights: Array1<f64>,
}

/// A cubature rule.
#[derive(Clone, Debug)]
pub enum Cubature {
    /// The same nodes in every step.
    Fixed(Nodes),
    /// ±√d times the columns of random orthogonal matrices, with equal weights. With all columns of each matrix, the rule is exact for
    /// polynomials of degree 3. With some columns, each coordinate is scaled to unit variance, and the rule is exact for such polynomials
    /// of single coordinates.
    Rotated {
        /// d.
        dim: usize,
        /// Columns of each matrix.
        columns: usize,
        /// The number of matrices.
        blocks: usize,
    },
}

/// The number of nodes in total, for a requested number as in [`Cubature::new`].
pub(super) fn node_count(dim: usize, requested: Option<usize>, covariance: Covariance) -> usize {
    let count = requested_or_default(dim, requested, covariance);
    match dim {
        1 => count,
        2 => count.saturating_mul(count),
        _ => {
            let (columns, blocks) = columns_and_blocks(dim, count);
            columns.saturating_mul(blocks).saturating_mul(2)
        }
    }
}

/// The requested or default number of nodes: per axis in one and two dimensions, in total in more.
fn requested_or_default(dim: usize, requested: Option<usize>, covariance: Covariance) -> usize {
    requested.unwrap_or(match (dim, covariance) {
        (1 | 2, _) => NODES_PER_AXIS[dim - 1],
        (_, Covariance::Full) => 2 * dim,
        (_, Covariance::Diagonal) => (2 * dim).min(MAX_DIAGONAL_NODES),
    })
}

/// The columns of each random matrix, and the number of matrices, for at least `count` nodes: pairs of nodes, and whole matrices if there are
/// enough pairs for one.
fn columns_and_blocks(dim: usize, count: usize) -> (usize, usize) {
    let pairs = count.div_ceil(2).max(1);
    (pairs.min(dim), if pairs < dim { 1 } else { pairs.div_ceil(dim.max(1)) })
}

impl Cubature {
    /// In one and two dimensions, Gauss-Hermite nodes, `count` along each axis (default 80 and 40). In more dimensions, `count` random nodes in
    /// total (default 2d; at most 200 for a diagonal covariance), rounded up to whole matrices from 2d on.
    ///
    /// # Errors
    /// If an eigenvalue problem cannot be solved.
    pub fn new(dim: usize, count: Option<usize>, covariance: Covariance) -> Result<Self> {
        let count = requested_or_default(dim, count, covariance);
        if let 1 | 2 = dim {
            let (z, weights) = gauss_hermite(count)?;
            let line = Nodes { z: z.insert_axis(Axis(1)), weights };
            return Ok(Self::Fixed(if dim == 1 { line } else { square(&line) }));
        }
        let (columns, blocks) = columns_and_blocks(dim, count);
        Ok(Self::Rotated { dim, columns, blocks })
    }

    /// The number of nodes.
    pub fn size(&self) -> usize {
        match self {
            Self::Fixed(nodes) => nodes.weights.len(),
            Self::Rotated { columns, blocks, .. } => 2 * columns * blocks,
        }
    }

    /// The nodes; random ones are drawn from this stream.
    ///
    /// # Errors
    /// If a QR factorization fails.
    pub fn nodes(&self, mut stream: Stream) -> Result<Nodes> {
        let (dim, columns, blocks) = match self {
            Self::Fixed(nodes) => return Ok(nodes.clone()),
            &Self::Rotated { dim, columns, blocks } => (dim, columns, blocks),
        };
        let mut parts = Vec::with_capacity(2 * blocks);
        for _ in 0..blocks {
            let mut normals = vec![0.0; dim * columns];
            stream.normals(&mut normals);
            // The factorization chooses the signs of columns, which do not matter, as negative columns are added.
            let (orthogonal, _) = Array2::from_shape_vec((dim, columns), normals)?.qr()?;
            let mut points = orthogonal.reversed_axes() * (dim as f64).sqrt();
            if columns < dim {
                for mut coordinate in points.columns_mut() {
                    let size = (coordinate.dot(&coordinate) / columns as f64).sqrt();
                    coordinate /= size;
                }
            }
            parts.push(-&points);
            parts.push(points);
        }
        let z = concatenate(Axis(0), &parts.iter().map(|part| part.view()).collect::<Vec<_>>())?;
        let weights = Array1::from_elem(z.nrows(), 1.0 / z.nrows() as f64);
        Ok(Nodes { z, weights })
    }
}

/// The product of a one-dimensional rule with itself.
fn square(line: &Nodes) -> Nodes {
    let count = line.weights.len();
    let z = Array2::from_shape_fn((count * count, 2), |(n, axis)| line.z[[if axis == 0 { n / count } else { n % count }, 0]]);
    let weights = Array1::from_shape_fn(count * count, |n| line.weights[n / count] * line.weights[n % count]);
    Nodes { z, weights }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::random::{Purpose, Seed, Who};

    fn stream(step: u64) -> Stream {
        Seed(3).stream(Who::Run, step, Purpose::Nodes)
    }

    /// E cos(az) = exp(−a²/2), and E z^4 y^2 = 3.
    #[test]
    fn rules_in_one_and_two_dimensions_are_exact() {
        let mean = |nodes: &Nodes, of: &dyn Fn(f64) -> f64| {
            nodes.z.column(0).iter().zip(&nodes.weights).map(|(&z, w)| w * of(z)).sum::<f64>()
        };
        let Cubature::Fixed(line) = Cubature::new(1, None, Covariance::Full).unwrap() else { panic!() };
        assert!((mean(&line, &|z| (3.0 * z).cos()) - (-4.5_f64).exp()).abs() < 1e-13 && line.weights.len() == 80);
        let Cubature::Fixed(plane) = Cubature::new(2, None, Covariance::Full).unwrap() else { panic!() };
        let both: f64 = plane.z.rows().into_iter().zip(&plane.weights).map(|(z, w)| w * z[0].powi(4) * z[1].powi(2)).sum();
        assert!((both - 3.0).abs() < 1e-11 && plane.weights.len() == 1600);
        assert_eq!([1, 2].map(|dim| node_count(dim, None, Covariance::Full)), [80, 1600]);
    }

    #[test]
    fn rotated_nodes_have_the_moments_of_a_normal_distribution() {
        let moments = |nodes: &Nodes| (nodes.z.mean_axis(Axis(0)).unwrap(), nodes.z.t().dot(&nodes.z) / nodes.z.nrows() as f64);
        let off = |second: &Array2<f64>| {
            (second - &Array2::<f64>::eye(second.nrows())).iter().fold(0.0_f64, |worst, x| worst.max(x.abs()))
        };
        for (count, size) in [(None, 14), (Some(15), 28), (Some(28), 28)] {
            let rule = Cubature::new(7, count, Covariance::Full).unwrap();
            assert_eq!((rule.size(), node_count(7, count, Covariance::Full)), (size, size));
            let nodes = rule.nodes(stream(0)).unwrap();
            let (first, second) = moments(&nodes);
            assert!(nodes.z.nrows() == size && first.iter().all(|x| x.abs() < 1e-14) && off(&second) < 1e-13);
            assert_ne!(nodes.z, rule.nodes(stream(1)).unwrap().z);
        }
        // With some columns, only the diagonal is exact. Other entries vary by at most 1: 5 standard errors of their mean over 4000 rules are
        // 0.08, which any of 21 exceeds with probability below 2e-5.
        let some = Cubature::new(7, Some(6), Covariance::Diagonal).unwrap();
        assert_eq!(some.size(), 6);
        let mut sum = Array2::zeros((7, 7));
        for step in 0..4000 {
            let (_, second) = moments(&some.nodes(stream(step)).unwrap());
            assert!(second.diag().iter().all(|x| (x - 1.0).abs() < 1e-13));
            sum += &second;
        }
        assert!(off(&(sum / 4000.0)) < 0.08);
        assert!(off(&moments(&some.nodes(stream(0)).unwrap()).1) > 0.5, "control");
        assert_eq!(Cubature::new(1000, None, Covariance::Diagonal).unwrap().size(), 200);
    }
}
