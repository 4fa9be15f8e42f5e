//! Quadratic sites: an approximate likelihood factor that models an agent's loss by its gradient and curvature at each particle.

use crate::cluster::{Context, Result};
use crate::kernels::triangle;
use crate::methods::common::problem::LocalLoss;
use crate::models::{CurvatureSupport, Model};
use crate::number::Real;
use crate::settings::{KeyError, in_range};
use ndarray::{Array2, ArrayView1, ArrayView2, ArrayViewMut2, Axis, Zip};
use serde::{Deserialize, Serialize};

/// Settings of quadratic sites.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SiteSettings {
    /// Factor of the curvature (c): a number, or "measured". Use more than 1 if the part of the curvature that is kept is too small.
    pub caution: Caution,
    /// Part of the Gauss-Newton matrix that is kept: "per_particle", "shared" or, for regressions, "full".
    pub curvature: Curvature,
    /// Rows of the agent's shard over which its loss is expanded, drawn anew for each visit; all rows if the shard has no more.
    pub rows: usize,
}

impl Default for SiteSettings {
    fn default() -> Self {
        Self { caution: Caution::default(), curvature: Curvature::default(), rows: 2000 }
    }
}

/// The factor of the curvature of sites.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged, expecting = "must be a number above 0, or \"measured\"")]
pub enum Caution {
    /// This number.
    Fixed(f64),
    /// A factor that each agent finds itself.
    Found(Found),
}

/// How agents find the factor of the curvature.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Found {
    /// The curvature of the loss along the particles' moves δ in a visit, relative to the part that is kept: c = δᵀHδ/δᵀDδ, both summed
    /// over particles, and at least 1.
    Measured,
}

impl Default for Caution {
    fn default() -> Self {
        Self::Found(Found::Measured)
    }
}

/// The part of the Gauss-Newton matrix that sites keep.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Curvature {
    /// Its diagonal at each particle: N d values.
    #[default]
    PerParticle,
    /// The mean of the particles' diagonals: d values.
    Shared,
    /// The mean of the particles' matrices: d(d + 1)/2 values.
    Full,
}

impl Curvature {
    /// Values that are kept for N particles in d dimensions.
    fn size(self, (particles, dim): (usize, usize)) -> usize {
        match self {
            Self::PerParticle => particles * dim,
            Self::Shared => dim,
            Self::Full => triangle::packed_len(dim),
        }
    }
}

impl SiteSettings {
    /// Checks that every setting is in its range.
    ///
    /// # Errors
    /// Names the first setting that is not.
    pub fn check(&self) -> Result<(), KeyError> {
        in_range("rows", self.rows, self.rows > 0, "at least 1")?;
        match self.caution {
            Caution::Fixed(caution) => {
                in_range("caution", caution, caution.is_finite() && caution > 0.0, "a number above 0, or \"measured\"")
            }
            Caution::Found(_) => Ok(()),
        }
    }

    /// Checks that the model provides the curvature that these sites need.
    ///
    /// # Errors
    /// Names the key of `[method]` that asks for what the model does not provide.
    pub fn check_model<F: Real>(&self, model: &dyn Model<F>) -> Result<(), KeyError> {
        match (model.curvature_support(), self.curvature) {
            (CurvatureSupport::Full, _) | (CurvatureSupport::Diagonal, Curvature::PerParticle | Curvature::Shared) => Ok(()),
            (CurvatureSupport::Diagonal, Curvature::Full) => Err(KeyError::invalid(
                "cavity.sites.curvature",
                "= \"full\" needs the whole curvature matrix of the loss, and this model provides its diagonal only. Use \
                 \"per_particle\" or \"shared\"",
            )),
            (CurvatureSupport::None, _) => Err(KeyError::invalid(
                "cavity",
                "= { sites = ... } needs the curvature of the loss, which this model does not provide. Use cavity = \"kde\"",
            )),
        }
    }

    /// Values of the sites of N particles in d dimensions.
    pub fn size(&self, particles: usize, dim: usize) -> usize {
        particles * dim + self.curvature.size((particles, dim))
    }

    /// The kept part of the curvature of a loss at the particles (N × d), on the minibatch of this step.
    pub fn curvature_of<F: Real>(&self, loss: &mut LocalLoss<F>, theta: ArrayView2<F>, step: u64, cx: &Context) -> Vec<F> {
        if self.curvature == Curvature::Full {
            let mut sum = Array2::zeros((theta.ncols(), theta.ncols()));
            loss.add_full_curvature(theta, step, sum.view_mut(), cx);
            return triangle::pack((sum / F::of(theta.nrows() as f64)).view());
        }
        let mut diagonals = Array2::zeros(theta.raw_dim());
        loss.add_curvature(theta, step, diagonals.view_mut(), cx);
        match self.curvature {
            Curvature::Shared => (diagonals.sum_axis(Axis(0)) / F::of(theta.nrows() as f64)).to_vec(),
            _ => diagonals.into_raw_vec_and_offset().0,
        }
    }
}

/// Fraction of the particles' moves by which they are moved back to measure curvature from gradients.
const NUDGE: f64 = 0.1;

/// Gradient and curvature of a loss at the particles where it is expanded.
pub struct Expansion<'a, F> {
    /// The particles (N × d).
    pub theta: ArrayView2<'a, F>,
    /// −∇L there.
    pub score: ArrayView2<'a, F>,
    /// The kept part of D.
    pub curvature: Vec<F>,
}

impl<F: Real> Expansion<'_, F> {
    /// The particles, moved back a little towards where they were before.
    pub fn nudged(&self, before: ArrayView2<F>) -> Array2<F> {
        let nudge = F::of(NUDGE);
        Zip::from(self.theta).and(before).map_collect(|&theta, &before| theta + nudge * (before - theta))
    }

    /// The ratio of the curvature along the moves, from −∇L at the nudged particles, to the kept part of it; at least 1.
    ///
    /// # Errors
    /// If shapes do not match.
    pub fn measured_caution(&self, kept: Curvature, nudged: ArrayView2<F>, score: ArrayView2<F>) -> Result<f64> {
        let mut modeled = Array2::zeros(nudged.raw_dim());
        self.sites(kept, 1.0)?.add_score(nudged, modeled.view_mut())?;
        let (mut exact, mut approximate) = (0.0, 0.0);
        Zip::from(nudged).and(self.theta).and(self.score).and(score).and(&modeled).for_each(
            |&nudged, &theta, &score, &nudged_score, &modeled| {
                let moved = (nudged - theta).f64();
                exact += moved * (score - nudged_score).f64();
                approximate += moved * (score - modeled).f64();
            },
        );
        Ok(if approximate > 0.0 { (exact / approximate).max(1.0) } else { 1.0 })
    }

    /// The sites; their score at the particles is −∇L, whatever the curvature.
    ///
    /// # Errors
    /// If the curvature has the wrong size.
    pub fn sites(&self, kept: Curvature, caution: f64) -> Result<Sites<F>> {
        let caution = F::of(caution);
        let mut values = vec![F::zero(); self.theta.len()];
        values.extend(self.curvature.iter().map(|&curvature| caution * curvature));
        let mut sites = Sites::new(kept, self.theta.dim(), values)?;
        // With η = 0 their score is −Λθ.
        let mut linear = Array2::zeros(self.theta.raw_dim());
        sites.add_score(self.theta, linear.view_mut())?;
        sites.values.iter_mut().zip(&self.score).zip(&linear).for_each(|((eta, &score), &linear)| *eta = score - linear);
        Ok(sites)
    }
}

/// The values of sites that expand a loss with this score at 0, for this many particles.
pub(super) fn sites_at_zero<N: Copy>(particles: usize, score: &[N], curvature: &[N]) -> Vec<N> {
    [score.repeat(particles), curvature.to_vec()].concat()
}

/// A Gaussian factor at each particle, log t_n(θ) = η_n·θ − θᵀΛ_nθ/2, or a product of such factors.
#[derive(Clone, Debug, PartialEq)]
pub struct Sites<F> {
    shape: (usize, usize),
    curvature: Curvature,
    /// η (N × d), followed by the kept part of Λ.
    values: Vec<F>,
    /// Λ, if it is kept as a matrix.
    matrix: Option<Array2<F>>,
}

impl<F: Real> Sites<F> {
    /// From their values: η, followed by the kept part of Λ.
    ///
    /// # Errors
    /// If their number does not fit.
    pub fn new(curvature: Curvature, shape: (usize, usize), values: Vec<F>) -> Result<Self> {
        let wanted = shape.0 * shape.1 + curvature.size(shape);
        if values.len() != wanted {
            return Err(format!("dsvgd: {} values of sites, not {wanted}", values.len()).into());
        }
        let matrix = (curvature == Curvature::Full).then(|| triangle::unpack(&values[shape.0 * shape.1..], shape.1));
        Ok(Self { shape, curvature, values, matrix })
    }

    /// Their values.
    pub fn into_values(self) -> Vec<F> {
        self.values
    }

    /// The quotient of two products of sites.
    ///
    /// # Errors
    /// If their shapes differ.
    pub fn divided_by(&self, divisor: &Self) -> Result<Self> {
        if (self.shape, self.curvature) != (divisor.shape, divisor.curvature) {
            return Err("dsvgd: sites of different shapes".into());
        }
        let quotient = self.values.iter().zip(&divisor.values).map(|(&own, &divisor)| own - divisor).collect();
        Self::new(self.curvature, self.shape, quotient)
    }

    /// Adds their score η − Λ θ at the particles (N × d).
    ///
    /// # Errors
    /// If shapes do not match.
    pub fn add_score(&self, theta: ArrayView2<F>, mut score: ArrayViewMut2<F>) -> Result<()> {
        if theta.dim() != self.shape {
            return Err(format!("dsvgd: sites of shape {:?} and particles of shape {:?}", self.shape, theta.dim()).into());
        }
        let (eta, lambda) = self.values.split_at(theta.len());
        let eta = ArrayView2::from_shape(self.shape, eta)?;
        if let Some(matrix) = &self.matrix {
            score += &eta;
            ndarray::linalg::general_mat_mul(-F::one(), &theta, matrix, F::one(), &mut score);
            return Ok(());
        }
        let shared = ArrayView1::from(lambda);
        let lambda = match self.curvature {
            Curvature::Shared => shared.broadcast(self.shape).ok_or("dsvgd: too few values of a shared curvature")?,
            _ => ArrayView2::from_shape(self.shape, lambda)?,
        };
        Zip::from(score).and(theta).and(eta).and(lambda).for_each(|score, &theta, &eta, &lambda| *score += eta - lambda * theta);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use ndarray::array;

    const KEPT: [Curvature; 3] = [Curvature::PerParticle, Curvature::Shared, Curvature::Full];

    /// The kept part of the matrix [[2, 1], [1, 3]] at two particles.
    fn curvature(kept: Curvature) -> Vec<f64> {
        match kept {
            Curvature::PerParticle => vec![2.0, 3.0, 2.0, 3.0],
            Curvature::Shared => vec![2.0, 3.0],
            Curvature::Full => vec![2.0, 1.0, 3.0],
        }
    }

    fn score(sites: &Sites<f64>, at: &Array2<f64>) -> Array2<f64> {
        let mut score = Array2::zeros(at.raw_dim());
        sites.add_score(at.view(), score.view_mut()).unwrap();
        score
    }

    fn is_near(found: &Array2<f64>, expected: &Array2<f64>) -> bool {
        (found - expected).iter().all(|off| off.abs() < 1e-14)
    }

    #[test]
    fn sites_have_the_score_of_the_loss_at_the_point_of_expansion() {
        let (theta, gradient) = (array![[1.0, -2.0], [0.5, 3.0]], array![[0.3, 0.1], [-4.0, 2.0]]);
        for kept in KEPT {
            let expansion = Expansion { theta: theta.view(), score: gradient.view(), curvature: curvature(kept) };
            for caution in [1.0, 3.0] {
                let sites = expansion.sites(kept, caution).unwrap();
                assert!(is_near(&score(&sites, &theta), &gradient), "{kept:?}");
                let product = if kept == Curvature::Full { array![3.0, 4.0] } else { array![2.0, 3.0] };
                assert!(is_near(&score(&sites, &(&theta + 0.1)), &(&gradient - &(product * (0.1 * caution)))), "{kept:?}");
                let ratio = sites.divided_by(&sites).unwrap();
                assert!(ratio.into_values().iter().all(|value| *value == 0.0));
                assert!(sites.add_score(array![[1.0, 0.0]].view(), Array2::zeros((1, 2)).view_mut()).is_err());
            }
        }
        let zero = |kept, size| Sites::new(kept, (2, 2), vec![0.0; size]);
        assert!(zero(Curvature::Full, 6).is_err() && zero(Curvature::Full, 7).is_ok());
        let (one, other) = (zero(Curvature::Shared, 6).unwrap(), zero(Curvature::PerParticle, 8).unwrap());
        assert!(one.divided_by(&other).is_err());
    }

    /// The curvature of this quadratic loss along (1, 1) is 7, of which a diagonal keeps 5; along (1, −1) it is 3, below the 5 that are kept.
    #[test]
    fn measured_caution_is_the_ratio_of_the_curvature_along_the_moves_to_the_kept_part() {
        let hessian = array![[2.0, 1.0], [1.0, 3.0]];
        let theta = array![[1.0, -2.0], [0.5, 3.0]];
        let score = |theta: &Array2<f64>| -theta.dot(&hessian);
        for (step, diagonal) in [(array![1.0, 1.0], 7.0 / 5.0), (array![1.0, -1.0], 1.0)] {
            let before = &theta - &step;
            for (kept, expected) in [(Curvature::PerParticle, diagonal), (Curvature::Shared, diagonal), (Curvature::Full, 1.0)] {
                let score_at_theta = score(&theta);
                let expansion = Expansion { theta: theta.view(), score: score_at_theta.view(), curvature: curvature(kept) };
                let nudged = expansion.nudged(before.view());
                let found = expansion.measured_caution(kept, nudged.view(), score(&nudged).view()).unwrap();
                assert!((found - expected).abs() < 1e-12, "{kept:?}: {found}, not {expected}");
            }
        }
        // Particles that have not moved give no measurement.
        let score = score(&theta);
        let unmoved = Expansion { theta: theta.view(), score: score.view(), curvature: curvature(Curvature::Shared) };
        assert_eq!(unmoved.measured_caution(Curvature::Shared, theta.view(), score.view()).unwrap(), 1.0);
    }
}
