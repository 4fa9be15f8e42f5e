//! The figures of a comparison: a metric, or accuracy by confidence, with a curve for each group of runs that differ only in the seed.

use super::draw::classes_of_draws;
use super::kind::FigureKind;
use crate::metrics::Bin;
use crate::metrics::seeds::Band;
use crate::plots::{self, Curve, Figure, ReliabilityCurve};
use crate::report::comparison::{Comparison, Group};
use crate::report::error::{ReportError, Result};
use crate::report::run::RunResults;
use crate::results::{ResultFile, XAxis};

/// The metric of a comparison unless another one is named: the first of these that a run has.
const DEFAULT_METRICS: [&str; 4] = ["accuracy", "rmse", "perplexity", "log_likelihood"];

/// The curves of several runs.
pub struct ComparisonFigure {
    /// The figure; `None` if no runs have a curve.
    pub figure: Option<Figure>,
    /// Why runs are not in the figure, or why there is no figure, in a sentence each.
    pub left_out: Vec<String>,
}

impl ComparisonFigure {
    /// Draws a metric, or the usual one, of all runs of a comparison.
    ///
    /// # Errors
    /// When no run has the metric, or results cannot be read.
    pub fn new(comparison: &Comparison, runs: &[RunResults], metric: Option<&str>, axis: XAxis, band: Band) -> Result<Self> {
        let is_there = |name: &&str| comparison.metrics.iter().any(|metric| metric == name);
        let usual = || DEFAULT_METRICS.into_iter().find(is_there).or(comparison.metrics.first().map(String::as_str));
        let Some(metric) = metric.or_else(usual) else {
            let message = "these runs have no metrics: name a column of their histories with --metric";
            return Err(ReportError::Missing(message.into()));
        };
        comparison.check_metric(runs, metric)?;
        let (mut curves, mut left_out, mut has_axis) = (Vec::new(), Vec::new(), false);
        for group in &comparison.groups {
            let points = |file: &ResultFile| Ok(file.curve(metric, axis)?.filter(|points| !points.is_empty()));
            let (points_of_runs, without) = of_group(group, runs, points)?;
            let names = without.iter().map(|&member| &comparison.runs[member].run);
            left_out.extend(names.map(|run| format!("{run}: not in the figure: it has no {metric} by {}", axis.name())));
            has_axis |= !points_of_runs.is_empty();
            let seeds = points_of_runs.len();
            let curve = Curve { label: group.label.clone(), runs: points_of_runs };
            match seeds {
                _ if curve.has_line() => curves.push(curve),
                0 => {}
                1 => left_out.push(format!("{}: not in the figure: it has no finite {metric}", group.label)),
                _ => left_out.push(format!(
                    "{}: not in the figure: there is no {} where all of its {seeds} seeds have a finite {metric}",
                    group.label,
                    position(axis)
                )),
            }
        }
        if curves.is_empty() {
            left_out.push(match has_axis {
                true => format!("no figure: no line of {metric} can be drawn"),
                false => format!("no figure: these runs have not recorded {}; use --against round", axis.name()),
            });
        }
        let figure = plots::comparison(metric, axis, &curves, band);
        let figure = (!curves.is_empty()).then(|| Figure { subtitle: comparison.heading(), ..figure });
        Ok(Self { figure, left_out })
    }

    /// Draws accuracy by confidence of all runs of a comparison. The runs of a group are those that are finished, or all if none is.
    ///
    /// # Errors
    /// When no run has a reliability table, or results cannot be read.
    pub fn reliability(comparison: &Comparison, runs: &[RunResults]) -> Result<Self> {
        let (mut curves, mut left_out) = (Vec::new(), Vec::new());
        for group in &comparison.groups {
            let (bins_of_runs, without) = of_group(group, runs, bins)?;
            let names = without.iter().map(|&member| &comparison.runs[member].run);
            left_out.extend(names.map(|run| format!("{run}: not in the figure: {}", FigureKind::Reliability.missing())));
            let is_empty = bins_of_runs.is_empty();
            let curve = ReliabilityCurve { label: group.label.clone(), runs: bins_of_runs };
            match curve.has_rows() {
                true => curves.push(curve),
                false if is_empty => {}
                false => left_out.push(format!("{}: not in the figure: its reliability table has no rows", group.label)),
            }
        }
        if curves.is_empty() {
            let message = "--reliability: no run has a reliability table with rows, which needs classes and test rows";
            return Err(ReportError::Missing(message.into()));
        }
        let figure = Figure { subtitle: comparison.heading(), ..plots::reliability_of_groups(&curves) };
        Ok(Self { figure: Some(figure), left_out })
    }
}

/// What is read from the runs of a group, and the places of the runs that do not have it.
fn of_group<T>(
    group: &Group,
    runs: &[RunResults],
    read: impl Fn(&ResultFile) -> Result<Option<T>>,
) -> Result<(Vec<T>, Vec<usize>)> {
    let (mut found, mut without) = (Vec::new(), Vec::new());
    for &member in &group.counted {
        match read(&runs[member].file)? {
            Some(one) => found.push(one),
            None => without.push(member),
        }
    }
    Ok((found, without))
}

/// A position on an axis, in a sentence.
fn position(axis: XAxis) -> &'static str {
    match axis {
        XAxis::Round => "round",
        XAxis::Seconds => "time",
        XAxis::Bytes => "number of bytes",
    }
}

/// The reliability bins of a run: those of all draws of its chains, or else of its last evaluation.
fn bins(file: &ResultFile) -> Result<Option<Vec<Bin>>> {
    match classes_of_draws(file)? {
        Some(found) => Ok(Some(found.reliability)),
        None => Ok(plots::last_bins(file)?.map(|(_, bins)| bins)),
    }
}
