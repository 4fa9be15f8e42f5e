//! Recalibration: draws are moved so that they have the mean and the covariance of the posterior, as the regression of its scores finds them.
//!
//! The map is θ ↦ μ + A (θ − m), with m the mean of the draws and μ that of the regression. A is the symmetric positive definite matrix that
//! turns the covariance Σ of the draws into that of the regression, P = A Σ A: of all matrices with this effect it moves the draws least (the
//! optimal transport between Gaussians; Gelbrich 1990), in units of their standard deviations. With Σ = L Lᵀ it is L⁻ᵀ (Lᵀ P L)^½ L⁻¹.
//!
//! The shape of the posterior stays that of the draws, so this is right for posteriors that are close to a Gaussian only, and refused for
//! others: unguarded, it would move exact draws of a curved posterior to a wrong place.

use super::bias::{Bias, Moments, Verdict, draws_needed, regression};
use ndarray::{Array1, Array2, ArrayView1, ArrayView2, Axis};
use ndarray_linalg::{Cholesky, Diag, Eigh, SolveTriangular, UPLO};

/// Draws are moved at most this many times.
const MAX_ROUNDS: usize = 4;
/// Moving ends when standard deviations are right to within this factor,
const CLOSE_RATIO: f64 = 1.01;
/// and means to within this many standard deviations.
const CLOSE_SHIFT: f64 = 0.02;
/// The most of the scores' variance that may not be linear. Of logistic and Poisson regressions on tables it is 0.0003 to 0.013, of the
/// logarithm of a Gamma variable 0.15, of Student's t with 5 degrees of freedom 0.25, of hierarchies and curved posteriors above 0.6.
pub const MAX_NONLINEARITY: f64 = 0.05;

/// An affine map of draws.
#[derive(Clone, Debug, PartialEq)]
pub struct AffineMap {
    /// The point that is moved to `mean`.
    pub center: Array1<f64>,
    /// Where it is moved.
    pub mean: Array1<f64>,
    /// By what the distance from it is multiplied.
    pub matrix: Array2<f64>,
}

impl AffineMap {
    /// The draws (N × d), moved.
    pub fn apply(&self, draws: ArrayView2<f64>) -> Array2<f64> {
        (&draws - &self.center).dot(&self.matrix.t()) + &self.mean
    }

    /// This map after another one.
    fn after(&self, first: Self) -> Self {
        let mean = self.apply(first.mean.view().insert_axis(Axis(0))).remove_axis(Axis(0));
        Self { center: first.center, mean, matrix: self.matrix.dot(&first.matrix) }
    }
}

/// How draws were moved.
#[derive(Clone, Debug, PartialEq)]
pub struct Recalibration {
    /// The map from the draws as they were.
    pub map: AffineMap,
    /// How often they were moved.
    pub rounds: usize,
    /// The standard deviation of each parameter before, divided by that of the moved draws.
    pub sd_ratios: Vec<f64>,
    /// How far each mean was from that of the moved draws, in their standard deviations.
    pub shifts: Vec<f64>,
    /// The bias of the moved draws, by fresh scores.
    pub after: Bias,
    /// The moved draws at which scores were computed last.
    pub scored: Array2<f64>,
    /// These scores.
    pub scores: Array2<f64>,
}

/// Why draws were not moved.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Refusal {
    /// There are too few draws for the regression.
    #[error("there are {draws} draws, and {needed} are needed for {parameters} parameters")]
    TooFewDraws {
        /// So many.
        draws: usize,
        /// So many are needed.
        needed: usize,
        /// The number of parameters.
        parameters: usize,
    },
    /// There is no Gaussian with such scores.
    #[error("around these draws, the posterior is too far from a Gaussian, or the draws are constant in some direction")]
    NoGaussian,
    /// The posterior is too far from a Gaussian.
    #[error(
        "the posterior is too far from a Gaussian: {:.0} % of the variance of its scores are not linear in the parameters, and {:.0} % are \
         allowed", 100.0 * .0, 100.0 * MAX_NONLINEARITY
    )]
    Nonlinear(f64),
    /// The moved draws were not found right.
    #[error("the moved draws were not found right either: sds may be off by {:.0} %, and means by {shift:.2} sds", 100.0 * (ratio - 1.0))]
    NotRight {
        /// The factor by which standard deviations may be off.
        ratio: f64,
        /// How many standard deviations means may be off.
        shift: f64,
    },
}

/// The number of draws whose scores are computed in each round, for this many parameters: enough for small standard errors.
fn draws_wanted(parameters: usize) -> usize {
    (4 * parameters).max(200)
}

/// Moves draws (N × d) by the scores of the posterior at some of them, which `scores` computes.
///
/// # Errors
/// If `scores` fails. The inner result is the reason why draws are better left as they are.
pub fn recalibrate<E>(
    draws: ArrayView2<f64>,
    mut scores: impl FnMut(&Array2<f64>) -> Result<Array2<f64>, E>,
) -> Result<Result<Recalibration, Refusal>, E> {
    let (total, parameters) = draws.dim();
    let needed = draws_needed(parameters);
    if total < needed {
        return Ok(Err(Refusal::TooFewDraws { draws: total, needed, parameters }));
    }
    let count = draws_wanted(parameters).min(total);
    let places: Vec<usize> = (0..count).map(|place| place * total / count).collect();
    let mut moved = draws.to_owned();
    let mut done: Option<AffineMap> = None;
    for rounds in 0.. {
        let scored = moved.select(Axis(0), &places);
        let scores = scores(&scored)?;
        let moments = moments_of(&moved);
        let bias = Bias::of(scored.view(), scores.view(), &moments);
        if bias.verdict == Verdict::Unknown {
            return Ok(Err(if bias.nonlinearity.is_finite() {
                Refusal::Nonlinear(bias.nonlinearity)
            } else {
                Refusal::NoGaussian
            }));
        }
        let is_close =
            bias.parameters.iter().all(|bias| bias.sd_ratio.ln().abs() < CLOSE_RATIO.ln() && bias.shift.abs() < CLOSE_SHIFT);
        if let Some(map) = done.take_if(|_| is_close || rounds == MAX_ROUNDS) {
            let changes = || moments_of(&draws.to_owned()).into_iter().zip(&moments);
            let sd_ratios = changes().map(|(before, now)| before.sd / now.sd).collect();
            let shifts = changes().map(|(before, now)| (before.mean - now.mean) / now.sd).collect();
            return Ok(guarded(Recalibration { map, rounds, sd_ratios, shifts, after: bias, scored, scores }));
        }
        let Some(step) = step(&moved, &moments, &scored, &scores) else { return Ok(Err(Refusal::NoGaussian)) };
        moved = step.apply(moved.view());
        done = Some(match done {
            None => step,
            Some(map) => step.after(map),
        });
    }
    Ok(Err(Refusal::NoGaussian))
}

fn moments_of(draws: &Array2<f64>) -> Vec<Moments> {
    let of_column = |draws: ArrayView1<f64>| Moments::exact(draws.sum() / draws.len() as f64, draws.std(1.0));
    draws.columns().into_iter().map(of_column).collect()
}

/// The recalibration, if it can be trusted.
fn guarded(recalibration: Recalibration) -> Result<Recalibration, Refusal> {
    let after = &recalibration.after;
    if after.nonlinearity > MAX_NONLINEARITY {
        return Err(Refusal::Nonlinear(after.nonlinearity));
    }
    if after.verdict != Verdict::Right {
        let (ratio, shift) = after.largest_possible();
        return Err(Refusal::NotRight { ratio, shift });
    }
    Ok(recalibration)
}

/// The map that gives all draws the moments that the scores at some of them show.
fn step(draws: &Array2<f64>, moments: &[Moments], scored: &Array2<f64>, scores: &Array2<f64>) -> Option<AffineMap> {
    let center: Array1<f64> = moments.iter().map(|moments| moments.mean).collect();
    let scale: Array1<f64> = moments.iter().map(|moments| moments.sd).collect();
    let standard = |draws: &Array2<f64>| (draws - &center) / &scale;
    let posterior = regression(&standard(scored), &(scores * &scale))?;
    let all = standard(draws);
    let lower = (all.t().dot(&all) / (all.nrows() as f64 - 1.0)).cholesky(UPLO::Lower).ok()?;
    let (values, vectors) = lower.t().dot(&posterior.covariance).dot(&lower).eigh(UPLO::Lower).ok()?;
    if !values.iter().all(|value| *value > 0.0) {
        return None;
    }
    let root = (&vectors * &values.mapv(f64::sqrt)).dot(&vectors.t());
    let upper = lower.t().to_owned();
    let right = upper.solve_triangular(UPLO::Upper, Diag::NonUnit, &root.t().to_owned()).ok()?;
    let matrix = upper.solve_triangular(UPLO::Upper, Diag::NonUnit, &right.t().to_owned()).ok()?;
    let matrix = &scale.view().insert_axis(Axis(1)) * &matrix / &scale;
    let mean = &center + &(&scale * &posterior.mean);
    matrix.iter().chain(&mean).all(|value| value.is_finite()).then_some(AffineMap { center, mean, matrix })
}
