//! How far draws are from the posterior: regression of the posterior's score on the draws.
//!
//! For any density p with score s = ∇log p, E_p[(θ − E θ) s(θ)ᵀ] = −I (Stein's identity). For a Gaussian p the score is linear in θ, so that
//! regressing scores on draws gives its precision and mean exactly, from whatever distribution the draws come. Their own means and
//! standard deviations are then compared with it. For other p the regression is an approximation; the part of the scores that is not
//! linear is reported. Weights of separate modes, and modes that no draw has visited, cannot be seen.
//!
//! A normal distribution q that variational inference has fitted satisfies Stein's identity with the scores of p itself, so that the
//! regression gives back q, if q has a full covariance. But p = q exp(h), and the residuals of the regression are ∇h. To second order in h,
//! the variance of a parameter θ_j under p is that under q plus E_q[((Σ∇h)_j)²] + E_q[h (Σ∇²hΣ)_jj], Σ the covariance of q. The second term
//! vanishes if h is a cubic or a quartic Hermite polynomial alone, as it is to leading order for many rows. The first one is added for draws
//! from a fitted normal distribution, and half of it to the margin of error.

use super::convergence::Estimate;
use ndarray::{Array1, Array2, ArrayView2, Axis};
use ndarray_linalg::{FactorizeC, InverseC, SolveC, UPLO};
use serde::Serialize;
use statrs::distribution::{ContinuousCDF, Normal, StudentsT};

/// The probability that a run without bias is reported as biased.
const FALSE_ALARMS: f64 = 0.01;
/// Deviations of a standard deviation up to this factor are tolerated.
pub const TOLERATED_RATIO: f64 = 1.05;
/// A run is called right only if no standard deviation can be off by more than this factor.
const RIGHT_RATIO: f64 = 1.2;
/// Shifts up to this many standard deviations are tolerated.
pub const TOLERATED_SHIFT: f64 = 0.1;
/// A run is called right only if no mean can be off by more than this many standard deviations.
const RIGHT_SHIFT: f64 = 0.25;
/// The regression says nothing if more than this share of the scores' variance is not linear.
const MAX_MEASURABLE_NONLINEARITY: f64 = 0.3;
/// The same for particles and the score of a single parameter. Particles that are too close to each other see the posterior between them only:
/// with a share of 0.23, an sd that was 0.6 times the right one was measured as right.
const MAX_NONLINEARITY_OF_PARTICLES: f64 = 0.15;
/// With a smaller effective sample size, Monte Carlo errors are not known well enough for a verdict.
pub const MIN_ESS: f64 = 50.0;
/// Groups of draws that are left out in turn to estimate standard errors (jackknife).
const GROUPS: usize = 20;
/// Draws beyond 1.5 for each parameter that the regression needs.
const MORE_DRAWS: usize = 8;

/// The bias of models with more parameters is not measured: it would take too many gradients of all rows.
pub const MAX_PARAMETERS: usize = 300;

/// What draws come from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DrawnFrom {
    /// The posterior, or what approaches it.
    #[default]
    Posterior,
    /// The same, by particles that depend on each other.
    Particles,
    /// A normal distribution that variational inference has fitted to the posterior.
    FittedNormal,
}

impl DrawnFrom {
    /// Its name in result files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Posterior => "posterior",
            Self::Particles => "particles",
            Self::FittedNormal => "fitted normal",
        }
    }

    /// What has this name.
    pub fn named(name: &str) -> Option<Self> {
        [Self::Posterior, Self::Particles, Self::FittedNormal].into_iter().find(|from| from.name() == name)
    }
}

/// The number of draws whose scores the regression needs for this many parameters.
pub fn draws_needed(parameters: usize) -> usize {
    parameters + parameters.div_ceil(2) + MORE_DRAWS
}

/// At least this many scores are computed if there are as many draws: with fewer, the standard errors of posteriors that are not Gaussian are
/// too small.
const MIN_WANTED: usize = 100;
/// More scores, up to `MAX_WANTED`, make standard errors smaller, and are computed if they take no more than this many gradients of a row,
/// which is a fraction of a second.
const CHEAP: usize = 4_000_000;
const MAX_WANTED: usize = 400;

/// The number of draws whose scores are computed if there are as many, for this many parameters and rows.
pub fn draws_wanted(parameters: usize, rows: usize) -> usize {
    let cheap = (CHEAP / rows.max(1)).min(MAX_WANTED);
    draws_needed(parameters).max(MIN_WANTED).max(cheap).next_multiple_of(GROUPS)
}

/// The bias of draws.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Bias {
    /// What can be said of the draws.
    pub verdict: Verdict,
    /// What the draws come from.
    #[serde(skip)]
    pub drawn_from: DrawnFrom,
    /// The parameter that the verdict is about: the one that is furthest off.
    pub worst: Option<usize>,
    /// The number of draws whose scores were computed.
    pub scored_draws: usize,
    /// The share of the scores' variance that is not linear in the parameters: 0 for a Gaussian posterior.
    pub nonlinearity: f64,
    /// The largest such share of the score of a single parameter.
    pub largest_nonlinearity: f64,
    /// Why there is no such share.
    #[serde(skip)]
    pub obstacle: Option<Obstacle>,
    /// The bias of each parameter; empty without a verdict.
    #[serde(skip)]
    pub parameters: Vec<ParameterBias>,
}

/// Why there is no Gaussian with the scores at some draws.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Obstacle {
    /// There are too few draws.
    TooFewDraws,
    /// The draws are the same in some direction.
    ConstantDirection,
    /// In some direction, the scores do not fall.
    NoGaussian,
}

/// The bias of the draws of a parameter.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct ParameterBias {
    /// The standard deviation of the draws, divided by that of the posterior.
    pub sd_ratio: f64,
    /// The mean of the draws minus that of the posterior, in standard deviations of the posterior.
    pub shift: f64,
    /// The standard error of log `sd_ratio`.
    pub sd_ratio_error: f64,
    /// The standard error of `shift`.
    pub shift_error: f64,
    /// By how much log `sd_ratio` may be off, at the level at which this holds for all parameters together.
    #[serde(skip)]
    pub sd_ratio_margin: f64,
    /// The same of `shift`.
    #[serde(skip)]
    pub shift_margin: f64,
}

/// What can be said of draws.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// A standard deviation is too large.
    Wide,
    /// A standard deviation is too small.
    Narrow,
    /// A mean is off.
    Shifted,
    /// All standard deviations are right within a factor of 1.2, and all means within a quarter of one.
    Right,
    /// The draws are too few to tell.
    Undecided,
    /// The posterior is too far from a Gaussian around these draws, or there are too few draws for the regression.
    Unknown,
}

/// The mean and the standard deviation of the draws of a parameter, with their Monte Carlo errors.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Moments {
    /// The mean.
    pub mean: f64,
    /// The standard deviation.
    pub sd: f64,
    /// The standard error of the mean, in standard deviations.
    mean_error: f64,
    /// The relative standard error of the standard deviation.
    sd_error: f64,
    /// The effective sample size of chains.
    ess: Option<f64>,
}

impl Moments {
    /// Those of draws with this estimate, of which there are `total` in all.
    pub fn of(estimate: &Estimate, total: usize) -> Self {
        let Estimate { mean, sd, .. } = *estimate;
        // Particles count as independent draws.
        let independent = [1.0, 0.5].map(|variance| (variance / total as f64).sqrt());
        let errors = estimate.convergence.map(|convergence| [convergence.mcse_mean / sd, convergence.mcse_sd / sd]);
        let [mean_error, sd_error] = errors.unwrap_or(independent);
        Self { mean, sd, mean_error, sd_error, ess: estimate.convergence.map(|convergence| convergence.ess_bulk) }
    }

    /// Those of draws that were moved to this mean and standard deviation, and have them without a Monte Carlo error.
    pub fn exact(mean: f64, sd: f64) -> Self {
        Self { mean, sd, mean_error: 0.0, sd_error: 0.0, ess: None }
    }

    /// These moments of draws that were moved to them.
    pub fn moved(self) -> Self {
        Self { ess: self.ess, ..Self::exact(self.mean, self.sd) }
    }
}

/// The Gaussian whose scores are the closest, in the least-squares sense, to some of the posterior.
pub(super) struct Regression {
    /// Its mean.
    pub mean: Array1<f64>,
    /// Its covariance.
    pub covariance: Array2<f64>,
    /// By how much the residual scores widen the variance of each parameter, as a share of it; see [`DrawnFrom::FittedNormal`].
    widening: Array1<f64>,
    /// The share of the variance of the scores that it does not explain.
    pub nonlinearity: f64,
    /// The largest such share of the score of a single parameter.
    pub largest_nonlinearity: f64,
}

impl Regression {
    /// The standard deviation of a parameter of the posterior.
    fn sd(&self, parameter: usize, drawn_from: DrawnFrom) -> f64 {
        self.covariance[[parameter, parameter]].sqrt() * self.log_widening(parameter, drawn_from).exp()
    }

    /// The logarithm of the factor by which the residual scores widen a standard deviation.
    fn log_widening(&self, parameter: usize, drawn_from: DrawnFrom) -> f64 {
        match drawn_from {
            DrawnFrom::Posterior | DrawnFrom::Particles => 0.0,
            DrawnFrom::FittedNormal => 0.5 * self.widening[parameter].ln_1p(),
        }
    }
}

impl Bias {
    /// Compares draws with the posterior by the scores at some of them (both M × d). The moments are those of all draws.
    ///
    /// # Panics
    /// If the sizes of draws, scores and moments differ.
    pub fn of(draws: ArrayView2<f64>, scores: ArrayView2<f64>, moments: &[Moments], drawn_from: DrawnFrom) -> Self {
        assert_eq!(draws.dim(), scores.dim(), "a score for each draw");
        assert_eq!(draws.ncols(), moments.len(), "moments of each parameter");
        let unknown = Self {
            verdict: Verdict::Unknown,
            drawn_from,
            worst: None,
            scored_draws: draws.nrows(),
            nonlinearity: f64::NAN,
            largest_nonlinearity: f64::NAN,
            obstacle: None,
            parameters: Vec::new(),
        };
        let without = |obstacle| Self { obstacle: Some(obstacle), ..unknown.clone() };
        // In units of the draws' standard deviations, so that matrices are well conditioned.
        let scale: Array1<f64> = moments.iter().map(|moments| moments.sd).collect();
        let center: Array1<f64> = moments.iter().map(|moments| moments.mean).collect();
        if !scale.iter().all(|sd| sd.is_finite() && *sd > 0.0) {
            return without(Obstacle::ConstantDirection);
        }
        let draws = (&draws - &center) / &scale;
        let scores = &scores * &scale;
        let full = match regression(&draws, &scores) {
            Ok(full) => full,
            Err(obstacle) => return without(obstacle),
        };
        if full.nonlinearity > MAX_MEASURABLE_NONLINEARITY
            || drawn_from == DrawnFrom::Particles && full.largest_nonlinearity > MAX_NONLINEARITY_OF_PARTICLES
        {
            let Regression { nonlinearity, largest_nonlinearity, .. } = full;
            return Self { nonlinearity, largest_nonlinearity, ..unknown };
        }
        let leave_out = |group: usize| {
            let kept: Vec<usize> = (0..draws.nrows()).filter(|draw| draw % GROUPS != group).collect();
            regression(&draws.select(Axis(0), &kept), &scores.select(Axis(0), &kept))
        };
        let partial = match (0..GROUPS).map(leave_out).collect::<Result<Vec<_>, _>>() {
            Ok(partial) => partial,
            Err(obstacle) => return without(obstacle),
        };
        // Two-sided, for two statistics of each parameter.
        let level = 1.0 - FALSE_ALARMS / (4.0 * moments.len() as f64);
        let parameter = |(j, moments): (usize, &Moments)| {
            let log_ratio = |regression: &Regression| -regression.sd(j, drawn_from).ln();
            let shift = |regression: &Regression| -regression.mean[j] / regression.sd(j, drawn_from);
            let sd_ratio = log_ratio(&full).exp();
            let (sd_ratio_error, margin) = error_and_margin(jackknife(partial.iter().map(log_ratio)), moments.sd_error, level);
            let sd_ratio_margin = margin + 0.5 * full.log_widening(j, drawn_from);
            // The Monte Carlo error of the mean, in standard deviations of the posterior.
            let mean_error = moments.mean_error * sd_ratio;
            let (shift_error, shift_margin) = error_and_margin(jackknife(partial.iter().map(shift)), mean_error, level);
            ParameterBias { sd_ratio, shift: shift(&full), sd_ratio_error, shift_error, sd_ratio_margin, shift_margin }
        };
        let parameters: Vec<ParameterBias> = moments.iter().enumerate().map(parameter).collect();
        let ess = moments.iter().filter_map(|moments| moments.ess);
        let (verdict, worst) = match ess.reduce(|a, b| if a.is_nan() || a < b { a } else { b }) {
            Some(ess) if ess.is_nan() || ess < MIN_ESS => (Verdict::Undecided, None),
            _ => judge(&parameters),
        };
        let Regression { nonlinearity, largest_nonlinearity, .. } = full;
        Self {
            verdict,
            drawn_from,
            worst,
            scored_draws: draws.nrows(),
            nonlinearity,
            largest_nonlinearity,
            obstacle: None,
            parameters,
        }
    }
}

impl ParameterBias {
    /// The interval of the ratio of standard deviations.
    pub fn sd_ratio_interval(&self) -> (f64, f64) {
        let of = |sign: f64| self.sd_ratio * (sign * self.sd_ratio_margin).exp();
        (of(-1.0), of(1.0))
    }

    /// The interval of the shift.
    pub fn shift_interval(&self) -> (f64, f64) {
        (self.shift - self.shift_margin, self.shift + self.shift_margin)
    }

    /// By what factor the standard deviation may be off, and by how many standard deviations the mean.
    fn largest_possible(&self) -> (f64, f64) {
        let ((least, ratio), (low, high)) = (self.sd_ratio_interval(), self.shift_interval());
        (ratio.max(least.recip()), high.max(-low))
    }
}

impl Bias {
    /// By what factor a standard deviation may be off at most, and by how many standard deviations a mean.
    pub fn largest_possible(&self) -> (f64, f64) {
        self.parameters
            .iter()
            .map(ParameterBias::largest_possible)
            .fold((1.0, 0.0), |worst, (ratio, shift)| (f64::max(worst.0, ratio), f64::max(worst.1, shift)))
    }
}

/// The standard error of an estimate with this error by the jackknife, whose variance has `GROUPS` − 1 degrees of freedom, and with this
/// known Monte Carlo error; and its margin at a level (Welch & Satterthwaite).
fn error_and_margin(jackknife: f64, monte_carlo: f64, level: f64) -> (f64, f64) {
    let error = jackknife.hypot(monte_carlo);
    let freedom = (GROUPS as f64 - 1.0) * (error / jackknife).powi(4);
    let quantile = match StudentsT::new(0.0, 1.0, freedom) {
        Ok(distribution) if freedom < 1e4 => distribution.inverse_cdf(level),
        _ => Normal::standard().inverse_cdf(level),
    };
    (error, quantile * error)
}

/// The verdict of these parameters, and the parameter that it is about.
fn judge(parameters: &[ParameterBias]) -> (Verdict, Option<usize>) {
    // How far each parameter is surely beyond what is tolerated, in units of what is tolerated.
    let excess = |parameter: &ParameterBias| {
        let ratio = (parameter.sd_ratio.ln().abs() - parameter.sd_ratio_margin) / TOLERATED_RATIO.ln();
        let shift = (parameter.shift.abs() - parameter.shift_margin) / TOLERATED_SHIFT;
        (ratio, shift)
    };
    let alarms = parameters.iter().enumerate().map(|(j, parameter)| (j, excess(parameter)));
    let worst = alarms.max_by(|(_, a), (_, b)| a.0.max(a.1).total_cmp(&b.0.max(b.1)));
    let Some((worst, (ratio_excess, shift_excess))) = worst else { return (Verdict::Unknown, None) };
    if ratio_excess.max(shift_excess) > 1.0 {
        let verdict = match parameters[worst].sd_ratio {
            _ if shift_excess > ratio_excess => Verdict::Shifted,
            ratio if ratio > 1.0 => Verdict::Wide,
            _ => Verdict::Narrow,
        };
        return (verdict, Some(worst));
    }
    let is_right = |parameter: &ParameterBias| {
        let (ratio, shift) = parameter.largest_possible();
        ratio < RIGHT_RATIO && shift < RIGHT_SHIFT
    };
    (if parameters.iter().all(is_right) { Verdict::Right } else { Verdict::Undecided }, None)
}

/// The Gaussian whose scores these are, in the least-squares sense.
///
/// # Errors
/// If there is no such Gaussian.
pub(super) fn regression(draws: &Array2<f64>, scores: &Array2<f64>) -> Result<Regression, Obstacle> {
    let (count, parameters) = draws.dim();
    if count < parameters + 2 {
        return Err(Obstacle::TooFewDraws);
    }
    let draws_mean = draws.mean_axis(Axis(0)).ok_or(Obstacle::TooFewDraws)?;
    let scores_mean = scores.mean_axis(Axis(0)).ok_or(Obstacle::TooFewDraws)?;
    let (draws, scores) = (draws - &draws_mean, scores - &scores_mean);
    let covariance = draws.t().dot(&draws);
    let factor = covariance.factorizec(UPLO::Lower).map_err(|_| Obstacle::ConstantDirection)?;
    let crossed = draws.t().dot(&scores);
    let mut precision = Array2::zeros((parameters, parameters));
    for (column, mut row) in crossed.columns().into_iter().zip(precision.rows_mut()) {
        row.assign(&(-factor.solvec(&column).map_err(|_| Obstacle::ConstantDirection)?));
    }
    let precision = (&precision + &precision.t()) * 0.5;
    if !precision.iter().all(|value| value.is_finite()) {
        return Err(Obstacle::NoGaussian);
    }
    let posterior = precision.factorizec(UPLO::Lower).and_then(|factor| factor.invc()).map_err(|_| Obstacle::NoGaussian)?;
    let mean = &draws_mean + &posterior.dot(&scores_mean);
    // Scores are compared in the metric of the draws' covariance.
    let root = factor.into_lower();
    let norm = |scores: &Array2<f64>| scores.dot(&root).iter().map(|value| value * value).sum::<f64>();
    let residual = &scores + &draws.dot(&precision);
    // A fit leaves less than the true residuals.
    let unused = (count as f64 - 1.0) / (count - 1 - parameters) as f64;
    let nonlinearity = (unused * norm(&residual) / norm(&scores)).min(1.0);
    let moved = residual.dot(&posterior);
    let widening = moved.columns().into_iter().zip(posterior.diag()).map(|(moved, variance)| moved.dot(&moved) / variance);
    let widening = widening.map(|sum| unused * sum / (count as f64 - 1.0)).collect();
    let shares = residual.columns().into_iter().zip(scores.columns()).map(|(left, all)| left.dot(&left) / all.dot(&all));
    let largest_nonlinearity = (unused * shares.fold(0.0, f64::max)).min(1.0);
    let is_valid =
        posterior.diag().iter().all(|variance| *variance > 0.0) && posterior.iter().chain(&mean).all(|value| value.is_finite());
    let regression = Regression { mean, covariance: posterior, widening, nonlinearity, largest_nonlinearity };
    if is_valid { Ok(regression) } else { Err(Obstacle::NoGaussian) }
}

/// The standard error of an estimate from its values without one group each.
fn jackknife(values: impl Iterator<Item = f64> + Clone) -> f64 {
    let count = GROUPS as f64;
    let mean = values.clone().sum::<f64>() / count;
    ((count - 1.0) / count * values.map(|value| (value - mean).powi(2)).sum::<f64>()).sqrt()
}
