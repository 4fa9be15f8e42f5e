//! Quadratic sites: what an agent leaves behind of its loss at each particle, and where those of all agents together pull particles.

use crate::cluster::{Context, Result};
use crate::kernels::triangle;
use crate::methods::common::problem::LocalLoss;
use crate::models::{CurvatureSupport, Model};
use crate::number::Real;
use ndarray::{Array2, ArrayView1, ArrayView2, ArrayViewMut2, Axis, Zip};
use serde::{Deserialize, Serialize};

/// How sites are made.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SiteSettings {
    /// c, what the curvature is multiplied by: above 1 for models whose curvature is far from what is kept of it.
    pub caution: Caution,
    /// What is kept of the Gauss-Newton matrix.
    pub curvature: Curvature,
    /// Over how many rows of an agent's shard its loss is expanded, drawn afresh for each visit; over all where it has no more.
    pub rows: usize,
}

impl Default for SiteSettings {
    fn default() -> Self {
        Self { caution: Caution::default(), curvature: Curvature::default(), rows: 2000 }
    }
}

/// What the curvature of sites is multiplied by.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Caution {
    /// This number.
    Fixed(f64),
    /// What each agent finds.
    Found(Found),
}

/// How agents find their caution.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Found {
    /// How much more curvature their loss has along the way that particles have gone in a visit than is kept of it: c = δᵀHδ/δᵀDδ, summed
    /// over particles, and at least 1.
    Measured,
}

impl Default for Caution {
    fn default() -> Self {
        Self::Found(Found::Measured)
    }
}

/// What sites keep of the Gauss-Newton matrix.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Curvature {
    /// Its diagonal, at each particle: N d numbers.
    #[default]
    PerParticle,
    /// The mean of the particles' diagonals: d numbers.
    Shared,
    /// The mean of the particles' matrices: d(d + 1)/2 numbers.
    Full,
}

impl Curvature {
    /// How many numbers are kept of N × d.
    fn size(self, (particles, dim): (usize, usize)) -> usize {
        match self {
            Self::PerParticle => particles * dim,
            Self::Shared => dim,
            Self::Full => triangle::packed_len(dim),
        }
    }
}

impl SiteSettings {
    /// Whether every number is in its range.
    ///
    /// # Errors
    /// A message that says which is not.
    pub fn check(&self) -> Result<(), String> {
        if self.rows == 0 {
            return Err("cavity: rows = 0 leaves nothing to expand; take at least 1".into());
        }
        match self.caution {
            Caution::Fixed(caution) if !(caution.is_finite() && caution > 0.0) => {
                Err(format!("cavity: caution = {caution} must be a number above 0, or \"measured\""))
            }
            Caution::Fixed(_) | Caution::Found(_) => Ok(()),
        }
    }

    /// Whether a model tells what sites want to know.
    ///
    /// # Errors
    /// A message that says what it does not tell.
    pub fn check_model<F: Real>(&self, model: &dyn Model<F>) -> Result<(), String> {
        match (model.curvature_support(), self.curvature) {
            (CurvatureSupport::Full, _) | (CurvatureSupport::Diagonal, Curvature::PerParticle | Curvature::Shared) => Ok(()),
            (CurvatureSupport::Diagonal, Curvature::Full) => Err(
                "cavity: curvature = \"full\" wants a model that tells all of the curvature of its loss, and this one tells its \
                 diagonal: take \"per_particle\" or \"shared\""
                    .into(),
            ),
            (CurvatureSupport::None, _) => {
                Err("cavity = { sites = ... } wants a model that tells the curvature of its loss, which this one does not: take \
                 cavity = \"kde\""
                    .into())
            }
        }
    }

    /// How many numbers sites of N particles in d dimensions have.
    pub fn size(&self, particles: usize, dim: usize) -> usize {
        particles * dim + self.curvature.size((particles, dim))
    }

    /// What is kept of the curvature of a loss at the particles (N × d), on the minibatch of this step.
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

/// How far back, as a share of the way that particles have gone, gradients are compared.
const NUDGE: f64 = 0.1;

/// What −∇L and D say of a loss where sites are expanded.
pub struct Expansion<'a, F> {
    /// The particles (N × d).
    pub theta: ArrayView2<'a, F>,
    /// −∇L there.
    pub score: ArrayView2<'a, F>,
    /// What is kept of D.
    pub curvature: Vec<F>,
}

impl<F: Real> Expansion<'_, F> {
    /// Particles a little back on the way from where they came.
    pub fn nudged(&self, before: ArrayView2<F>) -> Array2<F> {
        let nudge = F::of(NUDGE);
        Zip::from(self.theta).and(before).map_collect(|&theta, &before| theta + nudge * (before - theta))
    }

    /// By how much the curvature along the way exceeds what is kept of it, from −∇L at the nudged particles; at least 1.
    ///
    /// # Errors
    /// Where the numbers are not of these particles.
    pub fn measured(&self, kept: Curvature, nudged: ArrayView2<F>, score: ArrayView2<F>) -> Result<f64> {
        let mut modelled = Array2::zeros(nudged.raw_dim());
        self.sites(kept, 1.0)?.add_score(nudged, modelled.view_mut())?;
        let (mut found, mut said) = (0.0, 0.0);
        Zip::from(nudged).and(self.theta).and(self.score).and(score).and(&modelled).for_each(
            |&nudged, &theta, &here, &there, &modelled| {
                let moved = (nudged - theta).f64();
                found += moved * (here - there).f64();
                said += moved * (here - modelled).f64();
            },
        );
        Ok(if said > 0.0 { (found / said).max(1.0) } else { 1.0 })
    }

    /// The sites: their score at the particles is −∇L, whatever the curvature.
    ///
    /// # Errors
    /// Where the curvature is not of these particles.
    pub fn sites(&self, kept: Curvature, caution: f64) -> Result<Sites<F>> {
        let caution = F::of(caution);
        let mut numbers = vec![F::zero(); self.theta.len()];
        numbers.extend(self.curvature.iter().map(|&curvature| caution * curvature));
        let mut sites = Sites::of(kept, self.theta.dim(), numbers)?;
        // With η = 0 their score is −Λθ.
        let mut pull = Array2::zeros(self.theta.raw_dim());
        sites.add_score(self.theta, pull.view_mut())?;
        sites.numbers.iter_mut().zip(&self.score).zip(&pull).for_each(|((number, &score), &pull)| *number = score - pull);
        Ok(sites)
    }
}

/// A Gaussian factor at each particle, log t_n(θ) = η_n·θ − θᵀΛ_nθ/2, or a product of such factors: η (N × d), then what is kept of Λ.
#[derive(Clone, Debug, PartialEq)]
pub struct Sites<F> {
    shape: (usize, usize),
    curvature: Curvature,
    numbers: Vec<F>,
    /// Λ where it is a matrix.
    matrix: Option<Array2<F>>,
}

impl<F: Real> Sites<F> {
    /// From their numbers, η and then Λ.
    ///
    /// # Errors
    /// Where there are too few of them or too many.
    pub fn of(curvature: Curvature, shape: (usize, usize), numbers: Vec<F>) -> Result<Self> {
        let wanted = shape.0 * shape.1 + curvature.size(shape);
        if numbers.len() != wanted {
            return Err(format!("{} numbers of sites, not {wanted}", numbers.len()).into());
        }
        let matrix = (curvature == Curvature::Full).then(|| triangle::unpack(&numbers[shape.0 * shape.1..], shape.1));
        Ok(Self { shape, curvature, numbers, matrix })
    }

    /// Their numbers, for good.
    pub fn into_numbers(self) -> Vec<F> {
        self.numbers
    }

    /// The quotient of factors.
    ///
    /// # Errors
    /// Where they are not of the same particles.
    pub fn over(&self, others: &Self) -> Result<Self> {
        if (self.shape, self.curvature) != (others.shape, others.curvature) {
            return Err("these sites are not of the same particles".into());
        }
        let quotient = self.numbers.iter().zip(&others.numbers).map(|(&own, &other)| own - other).collect();
        Self::of(self.curvature, self.shape, quotient)
    }

    /// Adds their score η − Λ θ at the particles (N × d).
    ///
    /// # Errors
    /// Where they are not of these particles.
    pub fn add_score(&self, theta: ArrayView2<F>, mut score: ArrayViewMut2<F>) -> Result<()> {
        if theta.dim() != self.shape {
            return Err(format!("sites of {:?} particles and parameters for {:?}", self.shape, theta.dim()).into());
        }
        let (eta, lambda) = self.numbers.split_at(theta.len());
        let eta = ArrayView2::from_shape(self.shape, eta)?;
        if let Some(matrix) = &self.matrix {
            score += &eta;
            ndarray::linalg::general_mat_mul(-F::one(), &theta, matrix, F::one(), &mut score);
            return Ok(());
        }
        let shared = ArrayView1::from(lambda);
        let lambda = match self.curvature {
            Curvature::Shared => shared.broadcast(self.shape).ok_or("too few numbers of a shared curvature")?,
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

    /// What is kept of the matrix [[2, 1], [1, 3]] at two particles.
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
    fn the_score_of_an_expansion_is_that_of_the_loss_where_it_was_made() {
        let (theta, gradient) = (array![[1.0, -2.0], [0.5, 3.0]], array![[0.3, 0.1], [-4.0, 2.0]]);
        for kept in KEPT {
            let expansion = Expansion { theta: theta.view(), score: gradient.view(), curvature: curvature(kept) };
            for caution in [1.0, 3.0] {
                let sites = expansion.sites(kept, caution).unwrap();
                assert!(is_near(&score(&sites, &theta), &gradient), "{kept:?}");
                let along = if kept == Curvature::Full { array![3.0, 4.0] } else { array![2.0, 3.0] };
                assert!(is_near(&score(&sites, &(&theta + 0.1)), &(&gradient - &(along * (0.1 * caution)))), "{kept:?}");
                let nothing = sites.over(&sites).unwrap();
                assert!(nothing.into_numbers().iter().all(|number| *number == 0.0));
                assert!(sites.add_score(array![[1.0, 0.0]].view(), Array2::zeros((1, 2)).view_mut()).is_err());
            }
        }
        let none = |kept, numbers| Sites::of(kept, (2, 2), vec![0.0; numbers]);
        assert!(none(Curvature::Full, 6).is_err() && none(Curvature::Full, 7).is_ok());
        let (one, other) = (none(Curvature::Shared, 6).unwrap(), none(Curvature::PerParticle, 8).unwrap());
        assert!(one.over(&other).is_err());
    }

    /// A quadratic loss whose curvature along (1, 1) is 7, of which a diagonal keeps 5; along (1, −1) it is 3, and 5 is caution enough.
    #[test]
    fn measured_caution_is_the_curvature_along_the_way_over_what_is_kept() {
        let hessian = array![[2.0, 1.0], [1.0, 3.0]];
        let theta = array![[1.0, -2.0], [0.5, 3.0]];
        let score = |theta: &Array2<f64>| -theta.dot(&hessian);
        for (way, diagonal) in [(array![1.0, 1.0], 7.0 / 5.0), (array![1.0, -1.0], 1.0)] {
            let before = &theta - &way;
            for (kept, expected) in [(Curvature::PerParticle, diagonal), (Curvature::Shared, diagonal), (Curvature::Full, 1.0)] {
                let here = score(&theta);
                let expansion = Expansion { theta: theta.view(), score: here.view(), curvature: curvature(kept) };
                let nudged = expansion.nudged(before.view());
                let found = expansion.measured(kept, nudged.view(), score(&nudged).view()).unwrap();
                assert!((found - expected).abs() < 1e-12, "{kept:?}: {found}, not {expected}");
            }
        }
        // Particles that have not moved tell nothing.
        let here = score(&theta);
        let still = Expansion { theta: theta.view(), score: here.view(), curvature: curvature(Curvature::Shared) };
        assert_eq!(still.measured(Curvature::Shared, theta.view(), here.view()).unwrap(), 1.0);
    }
}
