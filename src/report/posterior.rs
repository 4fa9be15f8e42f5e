//! Posterior summaries of a run: mean, standard deviation, quantiles and convergence diagnostics of each parameter.

use super::error::Result;
use crate::job::{DRAWN_FROM, RECALIBRATION, TUNING};
use crate::methods::chains::dsgld::EXPECTATIONS;
use crate::methods::common::full_scores::SCORES;
use crate::metrics::bias::{Bias, DrawnFrom, Moments, ParameterBias};
use crate::metrics::convergence::{Convergence, Estimate, MIN_DRAWS, estimates, particle_estimates};
use crate::models::Part;
use crate::results::{POSTERIOR, ResultFile, SampleKind, Values};
use crate::text;
use ndarray::{Array3, ArrayView3, Ix2, s};
use serde::Serialize;

/// In the coordinates of the model, fewer particles per parameter underestimate the spread: on Gaussians, 7 per parameter give 0.72 of the standard deviation (measured),
/// and 100 would give about 0.98 by the same trend.
const ENOUGH_PER_PARAMETER: usize = 100;
/// Rows of a table, unless all are requested.
const SHOWN: usize = 15;
/// Of larger groups only every n-th parameter is assessed. This many values take about five seconds on one core.
const MAX_VALUES: usize = 16_000_000;
/// Chains with an R-hat from here on have not converged (Vehtari et al. 2021, section 4).
pub(super) const HIGH_R_HAT: f64 = 1.01;
/// Up to this effective sample size, quantiles and diagnostics are unreliable (Vehtari et al. 2021, section 4).
pub(super) const LOW_ESS: f64 = 400.0;
/// Characters of a parameter's name in a table.
const NAME_WIDTH: usize = 30;

/// A group of draws with the estimates of its parameters.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PosteriorGroup {
    /// The group in the result file: `posterior`.
    pub group: String,
    /// What the draws are.
    pub kind: SampleKind,
    /// The number of chains; particles are one chain.
    pub chains: usize,
    /// Draws of each chain, or particles.
    pub draws: usize,
    /// The number of parameters.
    pub parameters: usize,
    /// The variables with their shapes.
    pub parts: Vec<Part>,
    /// The estimates of all parameters in order, or of every n-th one if there are very many.
    pub estimates: Vec<Parameter>,
    /// How far the draws are from the posterior, if the run has measured it.
    pub bias: Option<Bias>,
}

/// A parameter with its estimates.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Parameter {
    /// Its variable, with an index if that is not a scalar: `weights[3]`.
    pub name: String,
    /// Its estimates.
    #[serde(flatten)]
    pub estimate: Estimate,
    /// How far its draws are from the posterior, if that is known.
    #[serde(flatten)]
    pub bias: Option<ParameterBias>,
    /// The Laplace approximation, if the run has one.
    #[serde(flatten)]
    pub laplace: Option<Laplace>,
}

/// The Laplace approximation of a parameter: the Gaussian with the posterior's mode and its curvature there.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Laplace {
    /// The mode.
    pub mode: f64,
    /// The standard deviation.
    pub laplace_sd: f64,
}

/// Posterior mean and standard deviation of a parameter, accumulated over all updates instead of draws.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Expectation {
    /// Its variable, with an index if that is not a scalar.
    pub name: String,
    /// E θ.
    pub mean: f64,
    /// The square root of E (θ − E θ)².
    pub sd: f64,
}

/// The posterior means and standard deviations that the run has accumulated over all updates; empty if it has not.
///
/// # Errors
/// When the file cannot be read.
pub fn expectations(file: &ResultFile) -> Result<Vec<Expectation>> {
    let groups = file.sample_groups()?;
    if !EXPECTATIONS.iter().all(|name| groups.iter().any(|group| group == name)) {
        return Ok(Vec::new());
    }
    let [mean, sd] = [file.samples(EXPECTATIONS[0])?, file.samples(EXPECTATIONS[1])?];
    let names = mean.parts.iter().flat_map(|part| (0..part.size()).map(|place| part.element_name(place)));
    let flat = |values: &Values| values.matrix().into_iter().collect::<Vec<f64>>();
    let moments = flat(&mean.values).into_iter().zip(flat(&sd.values));
    Ok(names.zip(moments).map(|(name, (mean, sd))| Expectation { name, mean, sd }).collect())
}

/// The table of the first expectations, or of all.
pub(super) fn expectations_table(expectations: &[Expectation], all: bool) -> String {
    let rows = &expectations[..if all { expectations.len() } else { expectations.len().min(SHOWN) }];
    let cells = |of: fn(&Expectation) -> f64| rows.iter().map(|row| text::value(of(row))).collect::<Vec<_>>();
    let columns = [
        ("parameter".to_owned(), rows.iter().map(|row| shortened(&row.name)).collect()),
        ("mean".into(), cells(|row| row.mean)),
        ("sd".into(), cells(|row| row.sd)),
    ];
    text::table(&columns) + &omitted("", expectations.len() - rows.len())
}

/// A line for the parameters that a table does not show.
fn omitted(order: &str, parameters: usize) -> String {
    match parameters {
        0 => String::new(),
        omitted => format!("  {order}{} omitted: --all shows them, --json lists them\n", text::counted(omitted, "parameter")),
    }
}

impl PosteriorGroup {
    /// Reads a group of draws and estimates its parameters: `all`, or every n-th one if there are very many.
    ///
    /// # Errors
    /// When there is no such group, or it cannot be read.
    pub fn read(file: &ResultFile, group: &str, all: bool) -> Result<Self> {
        // The verdict on bias needs the estimates of all parameters.
        let all = all || group == POSTERIOR && file.grid(SCORES)?.is_some();
        Self::read_at_most(file, group, if all { usize::MAX } else { MAX_VALUES })
    }

    /// Reads a group of draws and estimates as many of its parameters as have at most `values` values.
    fn read_at_most(file: &ResultFile, group: &str, values: usize) -> Result<Self> {
        let kind = file.kind(group)?;
        let (chains, draws, parts) = file.shape(group)?;
        // During a run, chains may have different lengths.
        let common = file.lengths(group)?.into_iter().min().unwrap_or(0).min(draws);
        let parameters = parts.iter().map(Part::size).sum();
        let stride = chains.saturating_mul(common).saturating_mul(parameters).div_ceil(values).max(1);
        let mut found = Vec::new();
        let mut before: usize = 0;
        let has_estimates = !matches!(kind, SampleKind::Paths | SampleKind::Topics) && common > 1;
        for part in parts.iter().filter(|_| has_estimates) {
            let first = before.next_multiple_of(stride) - before;
            before += part.size();
            if first >= part.size() {
                continue;
            }
            let estimates = match &file.part(group, part)? {
                Values::F32(values) => estimated(values, kind, common, first, stride),
                Values::F64(values) => estimated(values, kind, common, first, stride),
                Values::I32(values) => estimated(values, kind, common, first, stride),
            };
            let names = (first..part.size()).step_by(stride).map(|place| part.element_name(place));
            found.extend(names.zip(estimates).map(|(name, estimate)| Parameter { name, estimate, bias: None, laplace: None }));
        }
        let bias = if group == POSTERIOR && found.len() == parameters { bias(file, &found, chains * common)? } else { None };
        for (parameter, bias) in found.iter_mut().zip(bias.iter().flat_map(|bias| &bias.parameters)) {
            parameter.bias = Some(*bias);
        }
        if group == POSTERIOR && found.len() == parameters {
            found.iter_mut().zip(laplace(file)?).for_each(|(parameter, laplace)| parameter.laplace = Some(laplace));
        }
        Ok(Self { group: group.to_owned(), kind, chains, draws: common, parameters, parts, estimates: found, bias })
    }

    /// The rows of the table: all parameters, or the worst ones of chains, or some of each variable of particles.
    fn rows(&self, all: bool) -> Vec<&Parameter> {
        if self.kind == SampleKind::Particles {
            if all {
                return self.estimates.iter().collect();
            }
            let sizes: Vec<usize> = self.parts.iter().map(Part::size).collect();
            let mut start = 0;
            let mut rows = Vec::new();
            for (size, quota) in sizes.iter().zip(quotas(&sizes, SHOWN)) {
                rows.extend(self.estimates.iter().skip(start).take(quota));
                start += size;
            }
            return rows;
        }
        let mut rows: Vec<&Parameter> = self.estimates.iter().collect();
        // Undefined diagnostics count as the worst. The sort is stable, so that ties stay in order.
        rows.sort_by(|a, b| badness(b).partial_cmp(&badness(a)).unwrap_or(std::cmp::Ordering::Equal));
        rows.truncate(if all { usize::MAX } else { SHOWN });
        rows
    }

    /// Whether the draws can be trusted, in one or two lines.
    pub fn verdict(&self) -> String {
        if self.kind == SampleKind::Particles {
            let mut verdict = "R-hat, ESS and MCSE are not defined for particles".to_owned();
            if self.bias.is_none() && self.draws < ENOUGH_PER_PARAMETER * self.parameters {
                verdict += &format!("\n  fewer than {ENOUGH_PER_PARAMETER} particles per parameter: sd may be too small");
            }
            return verdict;
        }
        if self.draws < MIN_DRAWS {
            return format!("fewer than {MIN_DRAWS} draws per chain: too few for convergence diagnostics");
        }
        let assessed: Vec<&Convergence> =
            self.estimates.iter().filter_map(|parameter| parameter.estimate.convergence.as_ref()).collect();
        let total = text::count(assessed.len());
        let of_total = |count: usize| format!("{} of {total} parameters", text::count(count));
        let few = assessed.iter().filter(|c| c.ess_bulk.min(c.ess_tail) <= LOW_ESS).count();
        let ess = match few {
            0 => format!("ESS > {LOW_ESS}"),
            few => format!("{} have ESS ≤ {LOW_ESS}: run longer", of_total(few)),
        };
        if self.chains == 1 {
            let ess = if few == 0 { format!("all {total} parameters have {ess}") } else { ess };
            return format!("{ess}; R-hat needs at least two chains");
        }
        let undefined = assessed.iter().filter(|c| c.r_hat.is_nan()).count();
        let high = assessed.iter().filter(|c| c.r_hat >= HIGH_R_HAT).count();
        if undefined > 0 {
            let more = if high > 0 { format!("; {} have R-hat ≥ {HIGH_R_HAT}", of_total(high)) } else { String::new() };
            return format!("{} are constant or not finite and have no R-hat{more}", of_total(undefined));
        }
        match (high, few) {
            (0, 0) => format!("all {total} parameters have R-hat < {HIGH_R_HAT} and {ess}"),
            (0, _) => ess,
            (high, _) => format!("{} have R-hat ≥ {HIGH_R_HAT}: run longer", of_total(high)),
        }
    }

    /// How far the Laplace approximation is from the draws, in a line.
    fn laplace(&self) -> String {
        let known = || self.estimates.iter().filter_map(|parameter| Some((parameter, parameter.laplace?)));
        let ratios = || known().map(|(parameter, laplace)| laplace.laplace_sd / parameter.estimate.sd);
        let shift = |(parameter, laplace): &(&Parameter, Laplace)| {
            ((laplace.mode - parameter.estimate.mean) / parameter.estimate.sd).abs()
        };
        let Some(farthest) = known().max_by(|one, other| shift(one).total_cmp(&shift(other))) else { return String::new() };
        format!(
            "  the Laplace approximation, for comparison: sds {:.2} to {:.2} times those of the draws, modes up to {:.2} sds from means ({}); \
             --json lists it\n",
            ratios().fold(f64::INFINITY, f64::min),
            ratios().fold(0.0, f64::max),
            shift(&farthest),
            farthest.0.name
        )
    }

    /// The table of the worst parameters, or of all, with the verdict. The weights of a network get none.
    pub(super) fn table(&self, all: bool, of_network: bool) -> String {
        if self.estimates.is_empty() {
            return String::new();
        }
        let rows = self.rows(all);
        let cells = |of: fn(&Estimate) -> f64| rows.iter().map(|row| text::value(of(&row.estimate))).collect::<Vec<_>>();
        let mut columns = vec![
            ("parameter".to_owned(), rows.iter().map(|row| shortened(&row.name)).collect()),
            ("mean".into(), cells(|e| e.mean)),
            ("sd".into(), cells(|e| e.sd)),
            ("5 %".into(), cells(|e| e.q5)),
            ("95 %".into(), cells(|e| e.q95)),
        ];
        let is_chains = self.kind == SampleKind::Chains;
        if is_chains {
            let diagnostic = |of: fn(&Convergence) -> f64, format: fn(f64) -> String| {
                rows.iter().map(|row| format(row.estimate.convergence.as_ref().map_or(f64::NAN, of))).collect::<Vec<_>>()
            };
            columns.push(("MCSE".into(), diagnostic(|c| c.mcse_mean, text::value)));
            columns.push(("bulk ESS".into(), diagnostic(|c| c.ess_bulk, rounded)));
            columns.push(("tail ESS".into(), diagnostic(|c| c.ess_tail, rounded)));
            columns.push(("R-hat".into(), diagnostic(|c| c.r_hat, three_decimals)));
        }
        if rows.iter().any(|row| row.bias.is_some()) {
            let of = |value: fn(&ParameterBias) -> f64| rows.iter().map(move |row| row.bias.as_ref().map_or(f64::NAN, value));
            columns.push(("sd ratio".into(), of(|bias| bias.sd_ratio).map(|value| format!("{value:.2}")).collect()));
            columns.push(("shift".into(), of(|bias| bias.shift).map(|value| format!("{value:+.2}")).collect()));
        }
        let mut shown = text::table(&columns);
        if rows.len() < self.estimates.len() {
            let order = if is_chains { "sorted by R-hat, worst first; " } else { "" };
            shown += &omitted(order, self.parameters - rows.len());
        }
        if self.estimates.len() < self.parameters {
            let (assessed, all) = (text::count(self.estimates.len()), text::count(self.parameters));
            shown += &format!("  assessed {assessed} of {all} parameters, evenly spaced; --all assesses every one\n");
        }
        if self.estimates.iter().any(|parameter| parameter.bias.is_some()) {
            shown +=
                "  sd ratio: sd of the draws over that of the posterior; shift: error of the mean, in sds of the posterior\n";
        }
        shown += &self.laplace();
        let verdict = match of_network {
            true => "units of a network can change places, so single weights need not agree: judge the predictions".to_owned(),
            false => self.verdict(),
        };
        shown + &format!("  {verdict}\n")
    }
}

/// The Laplace approximation that automatic settings were made with; empty if there is none.
fn laplace(file: &ResultFile) -> Result<Vec<Laplace>> {
    let Some(grid) = file.grid(TUNING)? else { return Ok(Vec::new()) };
    let (Some(mode), Some(sd)) = (grid.array("mode"), grid.array("laplace_sd")) else { return Ok(Vec::new()) };
    Ok(mode.iter().zip(&sd).map(|(&mode, &laplace_sd)| Laplace { mode, laplace_sd }).collect())
}

/// The bias of the draws with these estimates, if the run has computed scores.
fn bias(file: &ResultFile, parameters: &[Parameter], total: usize) -> Result<Option<Bias>> {
    let Some(grid) = file.grid(SCORES)? else { return Ok(None) };
    let matrix = |name: &str| grid.array(name)?.into_dimensionality::<Ix2>().ok();
    let (Some(draws), Some(scores)) = (matrix("draws"), matrix("scores")) else { return Ok(None) };
    // Of chains with different lengths, the moments are those of equal parts, and not what the draws were moved to.
    let lengths = file.lengths(POSTERIOR)?;
    let is_recalibrated = file.has(RECALIBRATION) && lengths.windows(2).all(|pair| pair[0] == pair[1]);
    let moments = |Parameter { estimate, .. }: &Parameter| match is_recalibrated {
        true => Moments::of(estimate, total).moved(),
        false => Moments::of(estimate, total),
    };
    let moments: Vec<Moments> = parameters.iter().map(moments).collect();
    // Files of older versions do not say it.
    let recorded = grid.list(DRAWN_FROM).first().and_then(|name| DrawnFrom::named(name)).unwrap_or_default();
    let are_particles = recorded == DrawnFrom::Posterior && file.kind(POSTERIOR)? == SampleKind::Particles;
    let drawn_from = if are_particles { DrawnFrom::Particles } else { recorded };
    let fits = draws.dim() == scores.dim() && draws.ncols() == moments.len();
    Ok(fits.then(|| Bias::of(draws.view(), scores.view(), &moments, drawn_from)))
}

/// Estimates of every `stride`-th parameter of a variable from the first `draws` draws.
fn estimated<T: Copy + Into<f64> + Sync>(
    values: &Array3<T>,
    kind: SampleKind,
    draws: usize,
    first: usize,
    stride: usize,
) -> Vec<Estimate> {
    // Strides of arrays are `isize`, and every length in memory fits.
    let step = isize::try_from(stride).unwrap_or(isize::MAX);
    let chosen: ArrayView3<T> = values.slice(s![.., ..draws, first..;step]);
    match (kind, chosen.outer_iter().next()) {
        (SampleKind::Particles, Some(particles)) => particle_estimates(particles),
        _ => estimates(chosen),
    }
}

/// The sort key of a parameter: R-hat, then the smaller ESS.
fn badness(parameter: &Parameter) -> (f64, f64) {
    let worst = |value: f64| if value.is_nan() { f64::INFINITY } else { value };
    parameter.estimate.convergence.map_or((0.0, 0.0), |c| (worst(c.r_hat), worst(-c.ess_bulk.min(c.ess_tail))))
}

/// Distributes rows over variables of these sizes: small variables are shown completely, large ones get equal numbers of rows.
fn quotas(sizes: &[usize], rows: usize) -> Vec<usize> {
    let mut quotas = vec![0; sizes.len()];
    for _ in 0..rows {
        let open = (0..sizes.len()).filter(|&part| quotas[part] < sizes[part]);
        match open.min_by_key(|&part| quotas[part]) {
            Some(part) => quotas[part] += 1,
            None => break,
        }
    }
    quotas
}

fn shortened(name: &str) -> String {
    let letters = name.chars().count();
    if letters <= NAME_WIDTH {
        return name.to_owned();
    }
    // Keep the index at the end, which distinguishes parameters.
    let end: String = name.chars().skip(letters - NAME_WIDTH / 2).collect();
    name.chars().take(NAME_WIDTH - 1 - NAME_WIDTH / 2).chain(['…']).collect::<String>() + &end
}

/// An effective sample size without decimals.
fn rounded(value: f64) -> String {
    if value.is_finite() { text::count(value.max(0.0).round() as u64) } else { text::value(value) }
}

fn three_decimals(value: f64) -> String {
    if value.is_finite() && value < 1e4 { format!("{value:.3}") } else { text::value(value) }
}

#[cfg(test)]
mod tests;
