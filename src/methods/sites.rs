//! Quadratic sites: what an agent leaves behind of its loss at each particle, and where those of all agents together pull particles.

use crate::cluster::Result;
use crate::number::Real;
use ndarray::{ArrayView2, ArrayViewMut2, Zip};

/// A Gaussian factor at each particle, log t_n(θ) = η_n·θ − θᵀ diag(Λ_n) θ/2, or a product of such factors: η (N × d), then Λ (N × d).
#[derive(Clone, Debug, PartialEq)]
pub struct Sites<F>(Vec<F>);

impl<F: Real> Sites<F> {
    /// Factors that are 1, for so many numbers of all particles.
    pub fn none(size: usize) -> Self {
        Self(vec![F::zero(); 2 * size])
    }

    /// From their numbers, η and then Λ.
    pub fn of(numbers: Vec<F>) -> Self {
        Self(numbers)
    }

    /// Their numbers.
    pub fn numbers(&self) -> &[F] {
        &self.0
    }

    /// The expansion of a loss at the particles (N × d): from −∇L there and the diagonal of its curvature, which is multiplied by
    /// `caution`. The factor's score at the particles is −∇L, whatever the curvature.
    pub fn expanded(theta: ArrayView2<F>, score: ArrayView2<F>, curvature: ArrayView2<F>, caution: f64) -> Self {
        let caution = F::of(caution);
        let lambda = || curvature.iter().map(move |&curvature| caution * curvature);
        let eta = theta.iter().zip(&score).zip(lambda()).map(|((&theta, &score), lambda)| score + lambda * theta);
        Self(eta.chain(lambda()).collect())
    }

    /// The quotient of factors.
    ///
    /// # Errors
    /// Where they are not of the same particles.
    pub fn over(&self, others: &Self) -> Result<Self> {
        if self.0.len() != others.0.len() {
            return Err(format!("{} numbers of sites, and {} of others", self.0.len(), others.0.len()).into());
        }
        Ok(Self(self.0.iter().zip(&others.0).map(|(&own, &other)| own - other).collect()))
    }

    /// Adds their score η − Λ θ at the particles (N × d).
    ///
    /// # Errors
    /// Where they are not of these particles.
    pub fn add_score(&self, theta: ArrayView2<F>, score: ArrayViewMut2<F>) -> Result<()> {
        if self.0.len() != 2 * theta.len() {
            return Err(format!("{} numbers of sites for {} of particles", self.0.len(), theta.len()).into());
        }
        let (eta, lambda) = self.0.split_at(theta.len());
        let eta = ArrayView2::from_shape(theta.dim(), eta)?;
        let lambda = ArrayView2::from_shape(theta.dim(), lambda)?;
        Zip::from(score).and(theta).and(eta).and(lambda).for_each(|score, &theta, &eta, &lambda| *score += eta - lambda * theta);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use ndarray::{Array2, array};

    #[test]
    fn the_score_of_an_expansion_is_that_of_the_loss_where_it_was_made() {
        let (theta, gradient) = (array![[1.0, -2.0], [0.5, 3.0]], array![[0.3, 0.1], [-4.0, 2.0]]);
        let curvature = array![[2.0, 0.0], [1.0, 5.0]];
        let score = |sites: &Sites<f64>, at: &Array2<f64>| {
            let mut score = Array2::zeros((2, 2));
            sites.add_score(at.view(), score.view_mut()).unwrap();
            score
        };
        for caution in [1.0, 3.0] {
            let sites = Sites::expanded(theta.view(), gradient.view(), curvature.view(), caution);
            assert!((score(&sites, &theta) - &gradient).iter().all(|off| off.abs() < 1e-14));
            let away = &theta + 0.1;
            assert!((score(&sites, &away) - (&gradient - &(&curvature * (0.1 * caution)))).iter().all(|off| off.abs() < 1e-14));
            let nothing = sites.over(&sites).unwrap();
            assert_eq!(nothing, Sites::none(4));
        }
        assert!(Sites::<f64>::none(4).over(&Sites::none(3)).is_err());
        assert!(Sites::none(4).add_score(array![[1.0]].view(), Array2::zeros((1, 1)).view_mut()).is_err());
    }
}
