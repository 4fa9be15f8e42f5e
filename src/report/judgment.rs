//! Whether a run's draws can be used: the first line of its summary.

use super::evidence::Evidence;
use super::posterior::{HIGH_R_HAT, LOW_ESS, PosteriorGroup};
use super::temperature;
use super::trajectories::Trajectories;
use crate::job::{MAX_TEMPERATURE_PARAMETERS, MIN_TEMPERATURE_DRAWS};
use crate::metrics::bias::{DrawnFrom, MAX_PARAMETERS, Obstacle, ParameterBias, Verdict, draws_needed};
use crate::metrics::convergence::{Convergence, UNMIXED_R_HAT};
use crate::metrics::temperature::Temperature;
use crate::results::{POSTERIOR, SampleKind};
use crate::text;
use serde::Serialize;

/// The share of divergent trajectories above which a measurement of bias does not count: a few also diverge where no part of the posterior is
/// missed.
const MANY_DIVERGED: f64 = 1e-3;
/// A larger excess of a variance makes standard deviations wrong by more than a tenth.
const MOST_EXCESS: f64 = 0.21;
/// Chains must agree about this share of the test rows.
const AGREEING: f64 = 0.9;

/// Whether a run's draws can be used.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Judgment {
    /// The outcome.
    pub outcome: JudgmentOutcome,
    /// The outcome in words, with the parameter that it is about and what to do.
    pub text: String,
}

/// The outcomes of a judgment, worst first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum JudgmentOutcome {
    /// Draws are not finite.
    Diverged,
    /// Chains disagree.
    NotMixed,
    /// The means or standard deviations of the draws are not those of the posterior.
    Biased,
    /// It is not known whether the draws are biased.
    Unknown,
    /// No bias was found, but it cannot be excluded.
    Undecided,
    /// Single parameters mean nothing, because units can change places, but the chains agree about predictions.
    Predictions,
    /// The means and standard deviations of the draws are those of the posterior.
    Right,
}

impl JudgmentOutcome {
    /// The outcome in one or two words.
    pub fn name(self) -> &'static str {
        match self {
            Self::Diverged => "diverged",
            Self::NotMixed => "not mixed",
            Self::Biased => "biased",
            Self::Unknown => "bias unknown",
            Self::Undecided => "undecided",
            Self::Predictions => "for predictions",
            Self::Right => "right",
        }
    }

    /// Whether the draws should not be used.
    pub fn is_unusable(self) -> bool {
        matches!(self, Self::Diverged | Self::NotMixed | Self::Biased)
    }
}

impl Serialize for JudgmentOutcome {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        self.name().serialize(serializer)
    }
}

impl Judgment {
    /// Judges the draws of the posterior, also of a run that goes on; none if there are none, or of a point.
    pub fn of(groups: &[PosteriorGroup], evidence: &Evidence) -> Option<Self> {
        let how_to_extend = evidence.how_to_extend.as_str();
        let trajectories = evidence.trajectories.as_ref();
        let group = groups.iter().find(|group| group.group == POSTERIOR)?;
        if group.kind == SampleKind::Chains && group.draws <= 1 {
            return Some(single_draws(group.draws, !evidence.last_draws_diverged, how_to_extend));
        }
        if group.estimates.is_empty() {
            let is_single = group.kind == SampleKind::Particles && group.chains * group.draws == 1;
            return (is_single && evidence.method_samples).then(|| single_particle(!evidence.last_draws_diverged));
        }
        let (outcome, text) = by_draws(group, evidence);
        let is_open = matches!(outcome, JudgmentOutcome::Undecided | JudgmentOutcome::Unknown);
        let (outcome, text) = match trajectories {
            Some(trajectories) if !outcome.is_unusable() => {
                many_diverged(trajectories).or_else(|| converged(group).filter(|_| is_open)).unwrap_or((outcome, text))
            }
            _ => (outcome, text),
        };
        Some(match &evidence.recalibrated_from {
            None => Self { outcome, text },
            Some(from) => Self { outcome, text: format!("recalibrated, {text}. {RECALIBRATED} {from}") },
        })
    }
}

/// What the draws and their scores say: the first that applies, in this order.
fn by_draws(group: &PosteriorGroup, evidence: &Evidence) -> (JudgmentOutcome, String) {
    let how_to_extend = evidence.how_to_extend.as_str();
    if let Some(found) = diverged(group) {
        return found;
    }
    // Estimates use as many draws of each chain as the shortest has; later ones may not be finite.
    if evidence.last_draws_diverged {
        return not_finite("the last draws of a chain");
    }
    // Chains of networks, whose single parameters mean nothing, because units can change places.
    let predictions = evidence.test_rows.as_ref().and_then(|rows| rows.agreement).map(|share| predictions(share, evidence));
    let has_trajectories = evidence.trajectories.is_some();
    match predictions {
        Some(found @ (JudgmentOutcome::NotMixed | JudgmentOutcome::Diverged, _)) => return found,
        Some(_) => {}
        None => {
            if let Some(found) = not_mixed(group, has_trajectories, evidence.step_is_given, how_to_extend) {
                return found;
            }
        }
    }
    if let Some(found) = evidence.expected_excess_variance.and_then(too_wide) {
        return found;
    }
    if let Some(found) = predictions {
        return found;
    }
    // The steps of hmc have no bias: the spread of its draws is right once they have converged.
    let is_exact = has_trajectories && converged(group).is_some();
    match spread(group, evidence) {
        Some(found) if !is_exact => found,
        _ => bias(group, evidence),
    }
}

/// What to do if a fitted normal distribution is not the posterior.
const NO_FITTED_NORMAL: &str = "use hmc or dsgld: the posterior is not normal, and the method fits a normal distribution to it";

/// What to do about particles that are too far from each other, or from the mean of the posterior.
const MORE_ROUNDS: &str = "run more rounds or steps. If that does not help, the approximation of the method does not fit this posterior: compare with hmc";

/// What to do about particles that are too close to each other.
const MORE_PARTICLES: &str =
    "take more particles. If that does not help, the approximation of the method does not fit this posterior: compare with hmc";

/// What is said of moved draws.
const RECALIBRATED: &str = "The draws were moved to the mean and covariance that the scores of the posterior show. Their shape and \
                            their mixing are still those of";

/// The judgment of chains of which one has at most one draw.
fn single_draws(draws: usize, is_finite: bool, how_to_extend: &str) -> Judgment {
    if !is_finite {
        let (outcome, text) = not_finite("draws");
        return Judgment { outcome, text };
    }
    let draws = text::counted(draws, "draw");
    let text = format!("bias unknown: a chain has only {draws}, which says nothing about its spread. Run longer{how_to_extend}");
    Judgment { outcome: JudgmentOutcome::Unknown, text }
}

/// The judgment of a single particle of a method that samples.
fn single_particle(is_finite: bool) -> Judgment {
    if !is_finite {
        let (outcome, text) = not_finite("the particle");
        return Judgment { outcome, text };
    }
    let text = "bias unknown: a single particle has no spread. Take more particles".to_owned();
    Judgment { outcome: JudgmentOutcome::Unknown, text }
}

fn diverged(group: &PosteriorGroup) -> Option<(JudgmentOutcome, String)> {
    let is_finite = |value: f64| value.is_finite();
    let wrong =
        group.estimates.iter().find(|parameter| !is_finite(parameter.estimate.mean) || !is_finite(parameter.estimate.sd))?;
    Some(not_finite(&format!("draws of {}", wrong.name)))
}

fn not_finite(what: &str) -> (JudgmentOutcome, String) {
    (JudgmentOutcome::Diverged, format!("diverged: {what} are not finite. Do not use this run; set a smaller step"))
}

/// The judgment of draws that are too wide, because the noise of minibatches adds to their variance.
fn too_wide(excess: f64) -> Option<(JudgmentOutcome, String)> {
    if excess.is_nan() || excess <= MOST_EXCESS {
        return None;
    }
    let text = format!(
        "biased: with this step, the noise of minibatches and shards is expected to make the variance of the \
         draws up to {:.1} times that of the posterior in the directions in which the posterior is narrowest: predictions may be too \
         uncertain. The variance comes closer with a larger method.batch (up to the rows of an agent), or with fewer agents that have \
         more rows each",
        1.0 + excess
    );
    Some((JudgmentOutcome::Biased, text))
}

/// The judgment of chains of networks.
fn predictions(agreement: f64, evidence: &Evidence) -> (JudgmentOutcome, String) {
    let how_to_extend = &evidence.how_to_extend;
    let share = (100.0 * agreement).floor();
    let weights = "Do not interpret single weights: networks with exchanged units are equal";
    if agreement < AGREEING {
        let text = format!(
            "not mixed: the chains agree about the predictions of only {share} % of the test rows (R-hat below 1.1): the spread of \
             predictions is not that of the posterior. Their average over all chains is an ensemble, to be judged by its metrics. A longer \
             run{how_to_extend} may mix. {weights}"
        );
        return (JudgmentOutcome::NotMixed, text);
    }
    let wrong = temperature::worst(&evidence.temperatures);
    if let Some(wrong) = wrong.filter(|wrong| wrong.temperature.is_nan()) {
        return not_finite(&gradients_of(wrong));
    }
    let temperature = wrong.map_or_else(String::new, |wrong| {
        format!(
            ". Their spread is not that of the posterior: {}. To come closer, {}",
            temperature::described(wrong),
            advice_on(wrong, evidence)
        )
    });
    let text =
        format!("for predictions: the chains agree about {share} % of the test rows (R-hat below 1.1){temperature}. {weights}");
    (JudgmentOutcome::Predictions, text)
}

/// What to do about a wrong temperature of chains.
fn advice_on(wrong: &Temperature, evidence: &Evidence) -> String {
    // The steps of hmc have no bias.
    match wrong.temperature > 1.0 && evidence.trajectories.is_none() {
        true => advice_on_wide_chains(evidence.step_is_given).into(),
        false => format!("run longer{}", evidence.how_to_extend),
    }
}

/// The gradients that are not finite, if a temperature is not.
fn gradients_of(wrong: &Temperature) -> String {
    format!("gradients of the posterior with respect to {}", wrong.variable)
}

/// What to do about chains whose draws are too far from each other.
fn advice_on_wide_chains(step_is_given: bool) -> &'static str {
    match step_is_given {
        true => "take a smaller method.step or a larger batch, or let the step be found (method.step = \"auto\")",
        // A step is found in coordinates of its own: users cannot derive a smaller method.step from it.
        false => "take a larger method.batch, or use hmc",
    }
}

/// The judgment of draws of many parameters by their spread; none if it was not measured.
fn spread(group: &PosteriorGroup, evidence: &Evidence) -> Option<(JudgmentOutcome, String)> {
    let temperatures = &evidence.temperatures;
    let is_particles = group.kind == SampleKind::Particles;
    if let Some(wrong) = temperature::worst(temperatures) {
        if wrong.temperature.is_nan() {
            return Some(not_finite(&gradients_of(wrong)));
        }
        let factor = wrong.temperature.sqrt();
        let meaning = if wrong.temperature > 1.0 {
            format!("sds are {factor:.2} times too large on average")
        } else if wrong.temperature > 0.0 {
            format!("sds are {:.2} times too small on average", factor.recip())
        } else {
            // Draws that move along the gradient, as in burn-in, make it negative.
            "the draws are still moving away from where they began".into()
        };
        let is_narrow = wrong.temperature > 0.0 && wrong.temperature <= 1.0;
        let advice = match (is_particles, is_narrow) {
            (true, false) => MORE_ROUNDS.into(),
            (true, true) => MORE_PARTICLES.into(),
            (false, _) => advice_on(wrong, evidence),
        };
        let text = format!("biased: {} ({meaning}). To fix this, {advice}", temperature::described(wrong));
        return Some((JudgmentOutcome::Biased, text));
    }
    let judged = || temperatures.iter().filter(|one| one.is_judged());
    judged().next()?;
    let text = format!(
        "bias unknown: of a model with {} parameters only the average spread is measured, and it is {}. Judge the run by how it predicts \
         test rows, beside other methods",
        text::count(group.parameters),
        if judged().all(Temperature::is_right) { "right within 5 %" } else { "not known well enough" }
    );
    Some((JudgmentOutcome::Unknown, text))
}

/// The judgment if many trajectories diverged: the draws may then miss regions of large curvature.
fn many_diverged(trajectories: &Trajectories) -> Option<(JudgmentOutcome, String)> {
    let Trajectories { count, diverged, .. } = *trajectories;
    if diverged as f64 <= MANY_DIVERGED * count as f64 {
        return None;
    }
    let text = format!(
        "bias unknown: {diverged} of {} trajectories diverged, so that draws may miss a part of the posterior. Set method.acceptance = \
         0.99, or closer to 1",
        text::count(count)
    );
    Some((JudgmentOutcome::Unknown, text))
}

/// The judgment of chains whose transitions have no bias, where the measurement of bias does not tell.
fn converged(group: &PosteriorGroup) -> Option<(JudgmentOutcome, String)> {
    let has_converged = group.estimates.iter().all(|parameter| {
        let Some(Convergence { r_hat, ess_bulk, ess_tail, .. }) = parameter.estimate.convergence else { return false };
        r_hat < HIGH_R_HAT && ess_bulk > LOW_ESS && ess_tail > LOW_ESS
    });
    // Of very many parameters, estimates are made of some.
    let which = match group.estimates.len() {
        estimated if estimated < group.parameters => {
            format!("the {} of {} parameters that were checked", text::count(estimated), text::count(group.parameters))
        }
        _ => "all parameters".into(),
    };
    let text = format!(
        "right: the steps of hmc have no bias, R-hat is below {HIGH_R_HAT} and the effective sample size above {LOW_ESS} for {which}. Modes \
         that no draw has visited cannot be seen"
    );
    has_converged.then_some((JudgmentOutcome::Right, text))
}

/// Which parameter has not converged enough for [`converged`], and why.
fn not_converged(group: &PosteriorGroup) -> String {
    let all = || group.estimates.iter().filter_map(|parameter| Some((&parameter.name, parameter.estimate.convergence?)));
    let ess = |convergence: &Convergence| convergence.ess_bulk.min(convergence.ess_tail);
    let worst = all().filter(|(_, convergence)| convergence.r_hat >= HIGH_R_HAT).max_by(|a, b| a.1.r_hat.total_cmp(&b.1.r_hat));
    if let Some((name, Convergence { r_hat, .. })) = worst {
        return format!("R-hat of {name} is {r_hat:.3}, not below {HIGH_R_HAT}");
    }
    match all().min_by(|a, b| ess(&a.1).total_cmp(&ess(&b.1))) {
        Some((name, least)) if ess(&least) <= LOW_ESS => {
            format!("the effective sample size of {name} is {:.0}, not above {LOW_ESS}", ess(&least))
        }
        _ => "R-hat or the effective sample size of a parameter is not known".into(),
    }
}

fn not_mixed(
    group: &PosteriorGroup,
    has_trajectories: bool,
    step_is_given: bool,
    how_to_extend: &str,
) -> Option<(JudgmentOutcome, String)> {
    let r_hats = group.estimates.iter().filter_map(|parameter| {
        let r_hat = parameter.estimate.convergence?.r_hat;
        (r_hat >= UNMIXED_R_HAT).then_some((parameter, r_hat))
    });
    let (worst, r_hat) = r_hats.max_by(|a, b| a.1.total_cmp(&b.1))?;
    let advice = match (has_trajectories, step_is_given) {
        (true, _) | (false, false) => "take a longer run",
        (false, true) => "let the step be found (method.step = \"auto\"), or take a longer run",
    };
    let text = format!(
        "not mixed: the chains disagree (R-hat {r_hat:.2} of {}). Do not use these numbers; {advice}{how_to_extend}",
        worst.name
    );
    Some((JudgmentOutcome::NotMixed, text))
}

/// Why the bias of a run was not measured.
fn not_measured(group: &PosteriorGroup, evidence: &Evidence) -> String {
    let has_many = group.parameters > MAX_PARAMETERS;
    let (draws, needed) =
        (group.chains * group.draws, if has_many { MIN_TEMPERATURE_DRAWS } else { draws_needed(group.parameters) });
    let are_particles = group.kind == SampleKind::Particles;
    let what = if are_particles { "particle" } else { "draw" };
    // The temperature of draws of a fitted normal distribution is 1 whatever the posterior is.
    let is_measurable = !has_many || !evidence.draws_are_of_fitted_normal && group.parameters <= MAX_TEMPERATURE_PARAMETERS;
    let reason = if are_particles && evidence.has_exchangeable_units {
        "single weights of a network mean nothing. Judge the particles by how they predict test rows, beside other methods".into()
    } else if draws < needed {
        format!("the run has {}, and {needed} are needed", text::counted(draws, what))
    } else if evidence.bias_is_off && is_measurable {
        "evaluate.bias = false. `mpibayes judge` measures it".into()
    } else if has_many {
        format!(
            "the model has {} parameters, more than {MAX_PARAMETERS}, and the spread of its draws was not measured. Judge it by how it \
             predicts test rows, beside other methods",
            text::count(group.parameters)
        )
    } else {
        "the method does not sample the posterior".into()
    };
    format!("bias unknown: {reason}")
}

/// The judgment of draws that are the same in some direction of the space of parameters.
fn constant_direction(is_particles: bool, has_trajectories: bool, how_to_extend: &str) -> (JudgmentOutcome, String) {
    let advice = match (is_particles, has_trajectories) {
        (true, _) => "set a smaller step of the optimizer, or run more rounds".to_owned(),
        (false, true) => format!("run longer{how_to_extend}, or with a larger method.burn_in"),
        (false, false) => format!("set a smaller step, or run longer{how_to_extend}"),
    };
    let text = format!(
        "biased: a combination of parameters is the same in all draws, so that its sd is 0: they have not left their start, or were thrown \
         far away along a line. To fix this, {advice}"
    );
    (JudgmentOutcome::Biased, text)
}

/// What to do about a wrong mean.
fn advice_on_shift(is_particles: bool, is_normal: bool, run_longer: &str) -> &str {
    match (is_particles, is_normal) {
        (true, true) => NO_FITTED_NORMAL,
        // With more rounds alone, particles can also move farther from the mean.
        (true, false) => MORE_ROUNDS,
        (false, _) => run_longer,
    }
}

/// The judgment of draws whose chains agree.
fn bias(group: &PosteriorGroup, evidence: &Evidence) -> (JudgmentOutcome, String) {
    let (has_trajectories, how_to_extend) = (evidence.trajectories.is_some(), evidence.how_to_extend.as_str());
    let Some(bias) = &group.bias else { return (JudgmentOutcome::Unknown, not_measured(group, evidence)) };
    let worst = bias.worst.and_then(|worst| Some((&group.estimates.get(worst)?.name, bias.parameters.get(worst)?)));
    let is_particles = group.kind == SampleKind::Particles;
    let is_normal = bias.drawn_from == DrawnFrom::FittedNormal;
    let run_longer = format!("run longer{how_to_extend}");
    let advice = |parameter: &ParameterBias| match (is_particles, parameter.sd_ratio > 1.0) {
        _ if has_trajectories => run_longer.as_str(),
        (true, false) if is_normal => NO_FITTED_NORMAL,
        (true, true) => MORE_ROUNDS,
        (true, false) => MORE_PARTICLES,
        (false, true) => advice_on_wide_chains(evidence.step_is_given),
        (false, false) => &run_longer,
    };
    match (bias.verdict, worst) {
        (Verdict::Wide | Verdict::Narrow, Some((name, worst))) => {
            let (ratio, word) = if worst.sd_ratio > 1.0 { (worst.sd_ratio, "large") } else { (worst.sd_ratio.recip(), "small") };
            let error = 100.0 * worst.sd_ratio_error;
            let text = format!(
                "biased: the sd of {name} is {ratio:.2} times too {word} (± {error:.0} %). To fix this, {}",
                advice(worst)
            );
            (JudgmentOutcome::Biased, text)
        }
        (Verdict::Shifted, Some((name, worst))) => {
            let advice = advice_on_shift(is_particles, is_normal, &run_longer);
            let text = format!(
                "biased: the mean of {name} is off by {:.2} posterior sds (± {:.2}). To fix this, {advice}",
                worst.shift.abs(),
                worst.shift_error
            );
            (JudgmentOutcome::Biased, text)
        }
        (Verdict::Right, _) => {
            let text = format!(
                "right: all sds within 20 %, all means within 0.25 sd (checked with the gradients at {} draws). Modes that no draw has visited cannot be \
                 seen",
                bias.scored_draws
            );
            (JudgmentOutcome::Right, text)
        }
        (Verdict::Undecided, _) if is_normal => (
            JudgmentOutcome::Undecided,
            "undecided: no bias was found, but the method fits a normal distribution, and the posterior is not close enough to one to confirm \
             that the fit is right. Compare with hmc"
                .into(),
        ),
        (Verdict::Undecided, _) if has_trajectories => (
            JudgmentOutcome::Undecided,
            format!("undecided: no bias was found, but {}. Run longer{how_to_extend}", not_converged(group)),
        ),
        (Verdict::Undecided, _) if is_particles => (
            JudgmentOutcome::Undecided,
            "undecided: no bias was found, but the errors are too large to exclude it. More particles may tell; else compare with hmc".into(),
        ),
        (Verdict::Undecided, _) => (
            JudgmentOutcome::Undecided,
            format!("undecided: no bias was found, but the errors are too large to exclude it. A longer run{how_to_extend} may tell; else compare with hmc"),
        ),
        _ => {
            let unknown = |reason: &str| (JudgmentOutcome::Unknown, format!("bias unknown: {reason}. Compare with hmc"));
            match bias.obstacle {
                Some(Obstacle::ConstantDirection) => constant_direction(is_particles, has_trajectories, how_to_extend),
                _ if has_trajectories => (
                    JudgmentOutcome::Undecided,
                    format!("undecided: the steps of hmc have no bias, but {}. Run longer{how_to_extend}", not_converged(group)),
                ),
                Some(Obstacle::TooFewDraws) => unknown("the draws are too few"),
                Some(Obstacle::NoGaussian) | None => unknown(
                    "around these draws the posterior is too far from a Gaussian for this measurement, for example because a scale is \
                     estimated from few weights or groups. A longer run does not change this",
                ),
            }
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::metrics::temperature::temperatures;

    #[test]
    fn chains_that_disagree_about_predictions_or_are_too_wide_are_not_for_predictions() {
        assert_eq!(predictions(0.95, &Evidence::default()).0, JudgmentOutcome::Predictions);
        let (outcome, text) = predictions(0.899, &Evidence::default());
        assert!(outcome == JudgmentOutcome::NotMixed && text.contains("only 89 % of the test rows"), "{text}");
        assert!(too_wide(0.2).is_none());
        let (outcome, text) = too_wide(2.44).unwrap();
        assert!(outcome == JudgmentOutcome::Biased && text.contains("up to 3.4 times that of the posterior"), "{text}");
        assert!(!JudgmentOutcome::Predictions.is_unusable());
    }

    /// Draws that were not measured, without estimates.
    fn group(kind: SampleKind, draws: usize, parameters: usize) -> PosteriorGroup {
        let (parts, estimates) = Default::default();
        PosteriorGroup { group: POSTERIOR.into(), kind, chains: 1, draws, parameters, parts, estimates, bias: None }
    }

    /// A variable of which 100 draws have this mean temperature.
    fn evidence(temperature: f64) -> Evidence {
        let by_draw = ndarray::Array2::from_shape_fn((100, 1), |(draw, _)| temperature + 0.01 * (-1_f64).powi(draw as i32));
        let temperatures = temperatures(&[("weights".into(), 400)], by_draw.view(), &[0; 100]);
        Evidence { temperatures, how_to_extend: " (`longer`)".into(), ..Evidence::default() }
    }

    #[test]
    fn the_spread_of_many_parameters_is_judged_by_its_temperature() {
        let group = group(SampleKind::Chains, 100, 400);
        let judged = |temperature| spread(&group, &evidence(temperature)).unwrap();
        let with_given_step = Evidence { step_is_given: true, ..evidence(1.44) };
        assert!(spread(&group, &with_given_step).unwrap().1.contains("let the step be found"));
        let (outcome, text) = judged(1.44);
        assert!(
            outcome == JudgmentOutcome::Biased
                && text.contains("1.20 times too large")
                && text.contains("take a larger method.batch, or use hmc"),
            "{text}"
        );
        let (outcome, text) = judged(0.25);
        assert!(
            outcome == JudgmentOutcome::Biased && text.contains("2.00 times too small") && text.contains("`longer`"),
            "{text}"
        );
        let (outcome, text) = judged(1.01);
        assert!(outcome == JudgmentOutcome::Unknown && text.contains("right within 5 %"), "{text}");
        assert!(spread(&group, &Evidence::default()).is_none());
        // Of networks, predictions are judged.
        let (outcome, text) = predictions(0.95, &evidence(4.9));
        assert!(outcome == JudgmentOutcome::Predictions && text.contains("of weights is 4.90"), "{text}");
        assert!(!predictions(0.95, &evidence(1.0)).1.contains("temperature"));
        // The steps of hmc have no bias, so that only a longer run helps.
        let trajectories = Some(Trajectories { count: 100, diverged: 0, longest: 0, acceptance: 0.8, leapfrog_steps: 7.0 });
        let (_, text) = predictions(0.95, &Evidence { trajectories, ..evidence(4.9) });
        assert!(text.contains("To come closer, run longer (`longer`)") && !text.contains("batch"), "{text}");
        // What is not finite is no temperature.
        assert_eq!(predictions(0.95, &evidence(f64::NAN)).0, JudgmentOutcome::Diverged);
        // Particles that are still on their way need more rounds, not more particles.
        let particles = self::group(SampleKind::Particles, 100, 400);
        for (temperature, advice) in [(-0.5, MORE_ROUNDS), (0.25, MORE_PARTICLES), (1.44, MORE_ROUNDS)] {
            let (_, text) = spread(&particles, &evidence(temperature)).unwrap();
            assert!(text.contains(advice), "{temperature}: {text}");
        }
    }

    #[test]
    fn the_reason_why_nothing_was_measured_is_the_true_one() {
        let (chains, particles) = (SampleKind::Chains, SampleKind::Particles);
        let off = || Evidence { bias_is_off: true, ..Evidence::default() };
        let network = || Evidence { has_exchangeable_units: true, ..off() };
        for (kind, draws, parameters, evidence, says) in [
            (chains, 5, 3, off(), "the run has 5 draws, and 13 are needed"),
            (chains, 9, 400, off(), "the run has 9 draws, and 10 are needed"),
            (chains, 500, 3, off(), "`mpibayes judge` measures it"),
            (chains, 500, 400, off(), "`mpibayes judge` measures it"),
            (chains, 500, 400, network(), "`mpibayes judge` measures it"),
            (chains, 500, 2_000_000, off(), "the model has 2,000,000 parameters"),
            (particles, 500, 400, off(), "`mpibayes judge` measures it"),
            (particles, 500, 400, Evidence { draws_are_of_fitted_normal: true, ..off() }, "the model has 400 parameters"),
            (particles, 500, 400, Evidence::default(), "the model has 400 parameters"),
            (particles, 500, 3, network(), "single weights of a network mean nothing"),
            (particles, 500, 3, Evidence::default(), "does not sample the posterior"),
        ] {
            let text = not_measured(&group(kind, draws, parameters), &evidence);
            assert!(text.starts_with("bias unknown: ") && text.contains(says), "{text}");
        }
        // A single particle, unless the method finds a point.
        let single = |method_samples| {
            Judgment::of(&[group(SampleKind::Particles, 1, 2)], &Evidence { method_samples, ..Evidence::default() })
        };
        assert_eq!(single(false), None);
        assert!(single(true).is_some_and(|judgment| judgment.text.contains("a single particle has no spread")));
        let diverged = Evidence { last_draws_diverged: true, ..Evidence::default() };
        let (outcome, text) = by_draws(&group(chains, 500, 3), &diverged);
        assert!(outcome == JudgmentOutcome::Diverged && text.contains("the last draws of a chain are not finite"), "{text}");
    }

    #[test]
    fn longer_chains_mend_a_wrong_mean_but_particles_may_not_fit() {
        assert_eq!(advice_on_shift(false, false, "run longer"), "run longer");
        assert!(advice_on_shift(true, false, "run longer").ends_with("compare with hmc"));
        assert!(advice_on_shift(true, true, "run longer").starts_with("use hmc"));
    }

    #[test]
    fn draws_that_are_the_same_in_some_direction_are_biased() {
        let (outcome, text) = constant_direction(true, false, "");
        assert!(outcome.is_unusable() && text.contains("optimizer"), "{text}");
        assert!(constant_direction(false, false, " (`longer`)").1.ends_with("run longer (`longer`)"));
        assert!(constant_direction(false, true, "").1.ends_with("run longer, or with a larger method.burn_in"));
    }
}
