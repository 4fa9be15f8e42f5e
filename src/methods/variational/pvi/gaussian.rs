//! Gaussian distributions in natural parameters h = Λm and Λ, with a full or diagonal precision matrix.

use super::covariance::Covariance;
use super::nodes::Nodes;
use crate::kernels::reduce::all_finite;
use crate::kernels::triangle;
use ndarray::{Array1, Array2, ArrayView1, ArrayView2, Axis};
use ndarray_linalg::{Cholesky, Diag, SolveTriangular, UPLO};

/// How often a step is halved before it is skipped.
const MAX_HALVINGS: u32 = 40;

/// Layout of natural parameters: h (d values), followed by the lower triangle of Λ row by row, or its diagonal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Natural {
    /// Structure of the covariance.
    pub covariance: Covariance,
    /// d.
    pub dim: usize,
}

impl Natural {
    /// The number of parameters.
    pub fn size(self) -> usize {
        match self.covariance {
            Covariance::Full => self.dim + triangle::packed_len(self.dim),
            Covariance::Diagonal => 2 * self.dim,
        }
    }

    /// The parameters of N(0, I).
    pub fn standard(self) -> Vec<f64> {
        let precision = match self.covariance {
            Covariance::Full => triangle::pack(Array2::eye(self.dim).view()),
            Covariance::Diagonal => vec![1.0; self.dim],
        };
        [vec![0.0; self.dim], precision].concat()
    }

    /// The parameters of a factor with this score and curvature at 0.
    pub fn around(self, score: ArrayView1<f64>, curvature: ArrayView2<f64>) -> Vec<f64> {
        let precision = match self.covariance {
            Covariance::Full => triangle::pack(curvature),
            Covariance::Diagonal => curvature.diag().to_vec(),
        };
        [score.to_vec(), precision].concat()
    }

    /// The diagonal of Λ.
    pub fn precisions(self, parameters: &[f64]) -> impl Iterator<Item = f64> {
        let place = move |i: usize| match self.covariance {
            Covariance::Full => triangle::packed_index(i, i),
            Covariance::Diagonal => i,
        };
        (0..self.dim).map(move |i| parameters[self.dim + place(i)])
    }

    /// Moves `now` ← now + ρ (target − now) and `slack` ← slack + many · ρ (target − now). ρ starts at `damping` and is halved until `slack`
    /// has a positive definite precision; with a diagonal covariance, for each coordinate separately. Returns ρ, averaged over coordinates.
    pub fn step(self, now: &mut [f64], target: &[f64], slack: &mut [f64], many: f64, damping: f64) -> f64 {
        let halved = |halvings: u32| damping * 0.5_f64.powi(halvings as i32);
        match self.covariance {
            Covariance::Full => {
                for rate in (0..MAX_HALVINGS).map(halved) {
                    let moved = |from: &[f64], many: f64| -> Vec<f64> {
                        from.iter().zip(&*now).zip(target).map(|((from, now), to)| from + many * rate * (to - now)).collect()
                    };
                    let left = moved(slack, many);
                    if Gaussian::of(self, &left).is_some() {
                        let to = moved(now, 1.0);
                        slack.copy_from_slice(&left);
                        now.copy_from_slice(&to);
                        return rate;
                    }
                }
                0.0
            }
            Covariance::Diagonal => {
                let mut rates = 0.0;
                for (h, lambda) in (0..self.dim).map(|i| (i, self.dim + i)) {
                    let [by_h, by_lambda] = [h, lambda].map(|place| target[place] - now[place]);
                    let proper = |rate: &f64| {
                        let left = slack[lambda] + many * rate * by_lambda;
                        left > 0.0 && left.is_finite() && by_h.is_finite()
                    };
                    let Some(rate) = (0..MAX_HALVINGS).map(halved).find(proper) else { continue };
                    for (place, by) in [(h, by_h), (lambda, by_lambda)] {
                        now[place] += rate * by;
                        slack[place] += many * rate * by;
                    }
                    rates += rate;
                }
                rates / self.dim as f64
            }
        }
    }
}

/// A Gaussian N(m, Λ⁻¹).
#[derive(Clone, Debug)]
pub struct Gaussian {
    natural: Natural,
    mean: Array1<f64>,
    root: Root,
}

/// C with Λ = CCᵀ.
#[derive(Clone, Debug)]
enum Root {
    /// Lower triangular, and its inverse.
    Full(Array2<f64>, Array2<f64>),
    Diagonal(Array1<f64>),
}

impl Gaussian {
    /// From its natural parameters; `None` if their number is wrong or the precision is not positive definite.
    pub fn of(natural: Natural, parameters: &[f64]) -> Option<Self> {
        if parameters.len() != natural.size() || !all_finite(parameters) {
            return None;
        }
        let (h, packed) = parameters.split_at(natural.dim);
        let h = ArrayView1::from(h);
        match natural.covariance {
            Covariance::Full => {
                let root = triangle::unpack(packed, natural.dim).cholesky(UPLO::Lower).ok()?;
                let inverse = root.solve_triangular(UPLO::Lower, Diag::NonUnit, &Array2::eye(natural.dim)).ok()?;
                let mean = inverse.t().dot(&inverse.dot(&h));
                Some(Self { natural, mean, root: Root::Full(root, inverse) })
            }
            Covariance::Diagonal => {
                let precision = ArrayView1::from(packed);
                precision.iter().all(|&precision| precision > 0.0).then(|| Self {
                    natural,
                    mean: &h / &precision,
                    root: Root::Diagonal(precision.mapv(f64::sqrt)),
                })
            }
        }
    }

    /// The mean m.
    pub fn mean(&self) -> ArrayView1<'_, f64> {
        self.mean.view()
    }

    /// The covariance (d × d).
    pub fn covariance(&self) -> Array2<f64> {
        match &self.root {
            Root::Full(_, inverse) => inverse.t().dot(inverse),
            Root::Diagonal(root) => Array2::from_diag(&root.mapv(|root| root.powi(-2))),
        }
    }

    /// The standard deviation of each coordinate.
    pub fn deviations(&self) -> Array1<f64> {
        match &self.root {
            Root::Full(_, inverse) => inverse.mapv(|x| x * x).sum_axis(Axis(0)).mapv(f64::sqrt),
            Root::Diagonal(root) => root.mapv(f64::recip),
        }
    }

    /// log |Λ|.
    pub fn log_determinant(&self) -> f64 {
        let log = |root: &f64| 2.0 * root.ln();
        match &self.root {
            Root::Full(root, _) => root.diag().iter().map(log).sum(),
            Root::Diagonal(root) => root.iter().map(log).sum(),
        }
    }

    /// m + C⁻ᵀz for the rows z of a matrix (n × d): draws, if z are standard normal.
    pub fn place(&self, z: ArrayView2<f64>) -> Array2<f64> {
        match &self.root {
            Root::Full(_, inverse) => z.dot(inverse) + &self.mean,
            Root::Diagonal(root) => &z / root + &self.mean,
        }
    }

    /// KL(self ‖ other); infinite if one covariance is full and the other diagonal.
    pub fn divergence(&self, other: &Self) -> f64 {
        let difference = &self.mean - &other.mean;
        let (trace, square) = match (&self.root, &other.root) {
            (Root::Full(_, own), Root::Full(root, _)) => {
                (own.dot(root).mapv(|x| x * x).sum(), difference.dot(root).mapv(|x| x * x).sum())
            }
            (Root::Diagonal(own), Root::Diagonal(root)) => {
                ((root / own).mapv(|x| x * x).sum(), (&difference * root).mapv(|x| x * x).sum())
            }
            _ => return f64::INFINITY,
        };
        0.5 * (trace + square - self.natural.dim as f64 + self.log_determinant() - other.log_determinant())
    }

    /// Natural parameters of the Gaussian factor that fits a log-density ℓ best under this Gaussian, Λ = `precision` and h = `gradient` + Λm, from `gradient` = E[∇ℓ] and
    /// `precision` = −E[∇²ℓ]: the matrix, or its diagonal as one column.
    pub(super) fn fitted_to(&self, gradient: &Array1<f64>, precision: &Array2<f64>) -> Vec<f64> {
        let (product, precision) = match self.root {
            Root::Full(..) => (precision.dot(&self.mean), triangle::pack(precision.view())),
            Root::Diagonal(_) => (&precision.column(0) * &self.mean, precision.column(0).to_vec()),
        };
        [(gradient + &product).to_vec(), precision].concat()
    }

    /// The same from gradients (n × d) of ℓ at the nodes alone, by −E[∇²ℓ] = −E[∇ℓ zᵀ] Cᵀ.
    pub fn fitted(&self, nodes: &Nodes, gradient: ArrayView2<f64>) -> Vec<f64> {
        let weighted = &gradient * &nodes.weights.view().insert_axis(Axis(1));
        let precision = match &self.root {
            Root::Full(root, _) => {
                let hessian = weighted.t().dot(&nodes.z).dot(&root.t());
                (&hessian + &hessian.t()) * -0.5
            }
            Root::Diagonal(root) => (-(&weighted * &nodes.z).sum_axis(Axis(0)) * root).insert_axis(Axis(1)),
        };
        self.fitted_to(&weighted.sum_axis(Axis(0)), &precision)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use ndarray::array;

    const FULL: Natural = Natural { covariance: Covariance::Full, dim: 2 };
    const DIAGONAL: Natural = Natural { covariance: Covariance::Diagonal, dim: 2 };

    /// Natural parameters with this h and a diagonal precision.
    fn parameters(natural: Natural, h: Vec<f64>, [first, second]: [f64; 2]) -> Vec<f64> {
        let precision = if natural == FULL { vec![first, 0.0, second] } else { vec![first, second] };
        [h, precision].concat()
    }

    #[test]
    fn gaussians_have_the_moments_of_their_natural_parameters() {
        // Λ = [2 1; 1 3], Λ⁻¹ = [3 −1; −1 2]/5, h = Λ (1, −2).
        let full = Gaussian::of(FULL, &[0.0, -5.0, 2.0, 1.0, 3.0]).unwrap();
        let near = |a: &Array2<f64>, b: &Array2<f64>| (a - b).iter().all(|off| off.abs() < 1e-14);
        assert!(near(&full.covariance(), &array![[0.6, -0.2], [-0.2, 0.4]]));
        assert!((full.mean()[0] - 1.0).abs() < 1e-14 && (full.mean()[1] + 2.0).abs() < 1e-14);
        assert!((full.log_determinant() - 5.0_f64.ln()).abs() < 1e-14);
        assert!((full.deviations()[0] - 0.6_f64.sqrt()).abs() < 1e-14);
        // C⁻ᵀ C⁻¹ = Λ⁻¹.
        let placed = full.place(Array2::eye(2).view()) - full.mean();
        assert!(near(&placed.t().dot(&placed), &full.covariance()));
        let diagonal = Gaussian::of(DIAGONAL, &[2.0, -6.0, 2.0, 3.0]).unwrap();
        assert!(near(&diagonal.covariance(), &array![[0.5, 0.0], [0.0, 1.0 / 3.0]]));
        assert!((diagonal.log_determinant() - 6.0_f64.ln()).abs() < 1e-14);
        for improper in [[0.0, 0.0, 1.0, 2.0, 1.0], [0.0, 0.0, 0.0, 0.0, 1.0], [f64::NAN, 0.0, 1.0, 0.0, 1.0]] {
            assert!(Gaussian::of(FULL, &improper).is_none(), "{improper:?}");
        }
        assert!(Gaussian::of(DIAGONAL, &[0.0, 0.0, 1.0, -1.0]).is_none() && Gaussian::of(DIAGONAL, &[0.0; 5]).is_none());
    }

    /// In one dimension, log(σ_p/σ_q) + (σ_q² + (m_q − m_p)²)/(2σ_p²) − 1/2; of independent coordinates the sum.
    #[test]
    fn divergences_are_the_closed_form() {
        let one = |m_q: f64, v_q: f64, m_p: f64, v_p: f64| 0.5 * ((v_p / v_q).ln() + (v_q + (m_q - m_p).powi(2)) / v_p - 1.0);
        let exact = one(1.0, 0.5, 0.0, 2.0) + one(-2.0, 0.25, 1.0, 4.0);
        for natural in [FULL, DIAGONAL] {
            let of = |mean: [f64; 2], precision: [f64; 2]| {
                let h = mean.iter().zip(precision).map(|(m, p)| m * p).collect();
                Gaussian::of(natural, &parameters(natural, h, precision)).unwrap()
            };
            let (q, p) = (of([1.0, -2.0], [2.0, 4.0]), of([0.0, 1.0], [0.5, 0.25]));
            assert!((q.divergence(&p) - exact).abs() < 1e-13 && q.divergence(&q).abs() < 1e-14, "{natural:?}");
            assert!((p.divergence(&q) - exact).abs() > 1.0, "control: KL is not symmetric");
        }
    }

    #[test]
    fn steps_are_shortened_to_keep_the_precision_positive_definite() {
        for natural in [FULL, DIAGONAL] {
            let standard = natural.standard();
            let target = |precision| parameters(natural, vec![1.0, 1.0], precision);
            let go = |precision, many| {
                let (mut now, mut slack) = (standard.clone(), standard.clone());
                let rate = natural.step(&mut now, &target(precision), &mut slack, many, 0.5);
                (now, Gaussian::of(natural, &slack).is_some(), rate)
            };
            let (now, proper, rate) = go([3.0, 2.0], 1.0);
            assert!(proper && rate == 0.5 && now[..2] == [0.5, 0.5] && now[2] == 2.0, "{natural:?}: {now:?}");
            // 1 + many ρ (−3 − 1) > 0 below 1/4 and 1/16.
            let short = |rate: f64| if natural == FULL { rate } else { 0.5 * (rate + 0.5) };
            assert!(go([-3.0, 2.0], 1.0).1 && go([-3.0, 2.0], 1.0).2 == short(0.125), "{natural:?}");
            assert_eq!(go([-3.0, 1.0], 4.0).2, short(0.03125), "{natural:?}");
            let (now, proper, rate) = go([f64::NAN, f64::NAN], 1.0);
            assert!(proper && rate == 0.0 && now == standard, "{natural:?}: {now:?}");
        }
    }
}
