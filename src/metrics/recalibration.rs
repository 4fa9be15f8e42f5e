//! Recalibration: draws are moved so that they have the mean and the covariance of the posterior, as the regression of its scores finds them.
//!
//! The map is θ ↦ μ + A (θ − m), with m the mean of the draws and μ that of the regression. In units of the draws' standard deviations, A is
//! the symmetric positive definite matrix that turns the covariance Σ of the draws into that of the regression, C = A Σ A. It moves draws
//! less than any other matrix with this effect (optimal transport between Gaussians; Gelbrich 1990). With Σ = L Lᵀ it is
//! L⁻ᵀ (Lᵀ C L)^½ L⁻¹. Maps follow each other until C = Σ, and the result is checked at other draws.
//!
//! The shape of the posterior stays that of the draws, so this is right for posteriors that are close to a Gaussian only, and refused for
//! others: unguarded, it would move exact draws of a curved posterior to a wrong place.

use super::bias::{Bias, DrawnFrom, Moments, Verdict, draws_needed, regression};
use ndarray::{Array1, Array2, ArrayView1, ArrayView2, Axis};
use ndarray_linalg::{Cholesky, Diag, Eigh, SolveTriangular, UPLO};

/// Draws are moved at most this many times.
const MAX_ROUNDS: usize = 20;
/// Moving ends when no standard deviation in any direction would change by more than this factor.
const CLOSE_RATIO: f64 = 1.02;
/// Moving ends when no mean would change by more standard deviations.
const CLOSE_SHIFT: f64 = 0.02;
/// The largest share of the variance of scores that may not be linear in the parameters. For logistic and Poisson regressions on tables it
/// is 0.0003 to 0.013, for hierarchies and curved posteriors above 0.6.
const MAX_NONLINEARITY: f64 = 0.05;
/// The same for the score of a single parameter. For the logarithm of a Gamma variable with shape k it is 0.5/k, and draws with the shape of
/// a Gaussian then get a standard deviation that is too small by about half of that.
const MAX_PARAMETER_NONLINEARITY: f64 = 0.1;

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
    /// The map from the draws as they were. A product of symmetric matrices, its matrix need not be symmetric.
    pub map: AffineMap,
    /// How often they were moved.
    pub rounds: usize,
    /// The standard deviation of each parameter before, divided by that of the moved draws.
    pub sd_ratios: Vec<f64>,
    /// How far each mean was from that of the moved draws, in their standard deviations.
    pub shifts: Vec<f64>,
    /// The moved draws, at which scores were computed.
    pub checked: Scored,
}

/// Draws with their scores, and the bias that these show.
#[derive(Clone, Debug, PartialEq)]
pub struct Scored {
    /// The draws.
    pub draws: Array2<f64>,
    /// Their scores.
    pub scores: Array2<f64>,
    /// The bias of all draws.
    pub bias: Bias,
}

/// Why draws were not moved.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Refusal {
    /// There are too few draws for the regression.
    #[error("there are {draws} draws, and {needed} are needed for {parameters} parameters")]
    TooFewDraws {
        /// This many.
        draws: usize,
        /// This many are needed.
        needed: usize,
        /// The number of parameters.
        parameters: usize,
    },
    /// There is no Gaussian with such scores.
    #[error("around these draws, the posterior is too far from a Gaussian, or the draws are constant in some direction")]
    NoGaussian,
    /// The posterior is too far from a Gaussian.
    #[error(
        "the posterior is too far from a Gaussian: {:.1} % of the variance of its scores is not linear in the parameters, and {:.0} % are \
         allowed", 100.0 * .0, 100.0 * MAX_NONLINEARITY
    )]
    Nonlinear(f64),
    /// The posterior of a parameter is too far from a Gaussian.
    #[error(
        "the posterior of a parameter is too far from a Gaussian: {:.1} % of the variance of its score is not linear in the parameters, and \
         {:.0} % are allowed", 100.0 * .0, 100.0 * MAX_PARAMETER_NONLINEARITY
    )]
    NonlinearParameter(f64),
    /// Moving the draws did not end.
    #[error("the mean and covariance did not converge in {MAX_ROUNDS} rounds")]
    NotConverged,
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
fn scored_in_a_round(parameters: usize) -> usize {
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
    // The result is checked halfway between the draws that it was made from.
    let (count, needed) = (scored_in_a_round(parameters).min(total / 2), 2 * draws_needed(parameters));
    if total < needed {
        return Ok(Err(Refusal::TooFewDraws { draws: total, needed, parameters }));
    }
    let [used, checked] = [0, 1].map(|half| (0..count).map(|place| (2 * place + half) * total / (2 * count)).collect::<Vec<_>>());
    let mut scored = |moved: &Array2<f64>, places: &[usize]| {
        let draws = moved.select(Axis(0), places);
        let scores = scores(&draws)?;
        let bias = Bias::of(draws.view(), scores.view(), &moments_of(moved.view()), DrawnFrom::Posterior);
        Ok(Scored { draws, scores, bias })
    };
    let mut moved = draws.to_owned();
    let mut map: Option<AffineMap> = None;
    for rounds in 0..=MAX_ROUNDS {
        let now = scored(&moved, &used)?;
        if now.bias.verdict == Verdict::Unknown {
            return Ok(Err(unmeasurable(&now.bias)));
        }
        let Some(step) = Step::new(&moved, &now) else { return Ok(Err(Refusal::NoGaussian)) };
        if let Some(map) = map.take_if(|_| step.ratio < CLOSE_RATIO && step.shift < CLOSE_SHIFT) {
            let checked = scored(&moved, &checked)?;
            return Ok(refusal(&checked.bias).map_or_else(|| Ok(recalibration(draws, moved, map, rounds, checked)), Err));
        }
        moved = step.map.apply(moved.view());
        map = Some(match map {
            None => step.map,
            Some(map) => step.map.after(map),
        });
    }
    Ok(Err(Refusal::NotConverged))
}

/// Why there is no measurement of bias.
fn unmeasurable(bias: &Bias) -> Refusal {
    if bias.nonlinearity.is_finite() { Refusal::Nonlinear(bias.nonlinearity) } else { Refusal::NoGaussian }
}

fn recalibration(draws: ArrayView2<f64>, moved: Array2<f64>, map: AffineMap, rounds: usize, checked: Scored) -> Recalibration {
    let changes: Vec<(Moments, Moments)> = moments_of(draws).into_iter().zip(moments_of(moved.view())).collect();
    Recalibration {
        map,
        rounds,
        sd_ratios: changes.iter().map(|(before, now)| before.sd / now.sd).collect(),
        shifts: changes.iter().map(|(before, now)| (before.mean - now.mean) / now.sd).collect(),
        checked,
    }
}

fn moments_of(draws: ArrayView2<f64>) -> Vec<Moments> {
    let of_column = |draws: ArrayView1<f64>| Moments::exact(draws.sum() / draws.len() as f64, draws.std(1.0));
    draws.columns().into_iter().map(of_column).collect()
}

/// Why moved draws with this bias cannot be trusted; none if they can.
fn refusal(bias: &Bias) -> Option<Refusal> {
    if bias.verdict == Verdict::Unknown {
        return Some(unmeasurable(bias));
    }
    if bias.nonlinearity > MAX_NONLINEARITY {
        return Some(Refusal::Nonlinear(bias.nonlinearity));
    }
    if bias.largest_nonlinearity > MAX_PARAMETER_NONLINEARITY {
        return Some(Refusal::NonlinearParameter(bias.largest_nonlinearity));
    }
    let (ratio, shift) = bias.largest_possible();
    (bias.verdict != Verdict::Right).then_some(Refusal::NotRight { ratio, shift })
}

/// A map that gives all draws the moments that the scores at some of them show, and how much it changes them.
struct Step {
    map: AffineMap,
    /// The largest factor by which it changes a standard deviation, in any direction.
    ratio: f64,
    /// The largest distance by which it moves a mean, in standard deviations.
    shift: f64,
}

impl Step {
    fn new(draws: &Array2<f64>, Scored { draws: scored, scores, .. }: &Scored) -> Option<Self> {
        let moments = moments_of(draws.view());
        let center: Array1<f64> = moments.iter().map(|moments| moments.mean).collect();
        let scale: Array1<f64> = moments.iter().map(|moments| moments.sd).collect();
        let standard = |draws: &Array2<f64>| (draws - &center) / &scale;
        let posterior = regression(&standard(scored), &(scores * &scale)).ok()?;
        let all = standard(draws);
        let lower = (all.t().dot(&all) / (all.nrows() as f64 - 1.0)).cholesky(UPLO::Lower).ok()?;
        // The ratios of variances of C to those of Σ, over all directions, are between the eigenvalues of L⁻¹ C L⁻ᵀ.
        let inverse = lower.solve_triangular(UPLO::Lower, Diag::NonUnit, &posterior.covariance).ok()?;
        let ratios = lower.solve_triangular(UPLO::Lower, Diag::NonUnit, &inverse.t().to_owned()).ok()?.eigh(UPLO::Lower).ok()?.0;
        let (values, vectors) = lower.t().dot(&posterior.covariance).dot(&lower).eigh(UPLO::Lower).ok()?;
        if !values.iter().chain(&ratios).all(|value| *value > 0.0) {
            return None;
        }
        let root = (&vectors * &values.mapv(f64::sqrt)).dot(&vectors.t());
        let upper = lower.t().to_owned();
        let right = upper.solve_triangular(UPLO::Upper, Diag::NonUnit, &root).ok()?;
        let matrix = upper.solve_triangular(UPLO::Upper, Diag::NonUnit, &right.t().to_owned()).ok()?;
        let matrix = &scale.view().insert_axis(Axis(1)) * &matrix / &scale;
        let mean = &center + &(&scale * &posterior.mean);
        let ratio = ratios.iter().map(|ratio| ratio.max(ratio.recip()).sqrt()).fold(1.0, f64::max);
        let shift = posterior.mean.iter().map(|shift| shift.abs()).fold(0.0, f64::max);
        let is_finite = matrix.iter().chain(&mean).all(|value| value.is_finite());
        is_finite.then_some(Self { map: AffineMap { center, mean, matrix }, ratio, shift })
    }
}
