//! Marginal posterior densities, and scatter plots of two parameters.

use super::canvas::Stroke;
use super::density::{bandwidth, density, shares};
use super::error::{PlotError, Result};
use super::figure::{Axis, Figure, LegendEntry, LegendSample, Mark, Panel, region, series};
use super::parameters::{Selection, column};
use super::ticks::drawable;
use crate::metrics::convergence::quantile;
use crate::results::Samples;
use crate::text::counted;

const MAX_PANELS: usize = 12;
/// If there are more chains, all are gray, with the density of all draws on top.
const MAX_CHAINS: usize = 7;
/// Chains with fewer draws get no density of their own.
const MIN_DRAWS: usize = 5;
/// Up to this many draws are marked individually by a rug.
const MAX_RUG: usize = 200;
/// The most points of a scatter plot.
const MAX_POINTS: usize = 4000;

const MEAN: Stroke = Stroke { dashes: "5 3", ..Stroke::solid("#222222", 1.3) };

/// The legend entries of chains; none if there is only one.
pub(super) fn keys_of_chains(chains: usize, sample: fn(Stroke) -> LegendSample) -> Vec<LegendEntry> {
    match chains {
        0 | 1 => Vec::new(),
        2..=MAX_CHAINS => {
            (0..chains).map(|chain| LegendEntry { label: format!("chain {chain}"), sample: sample(series(chain)) }).collect()
        }
        _ => vec![LegendEntry { label: format!("each of the {chains} chains"), sample: sample(of_chain(0, chains)) }],
    }
}

/// The style of a chain.
pub(super) fn of_chain(chain: usize, chains: usize) -> Stroke {
    if chains > MAX_CHAINS { Stroke { opacity: 0.6, ..Stroke::solid("#8a8a8a", 0.9) } } else { series(chain) }
}

/// The number of chains and draws, for a caption.
pub(super) fn extent(samples: &Samples) -> String {
    match samples.values.dim() {
        (1, draws, _) => format!("{}.", counted(draws, "draw")),
        (chains, draws, _) => format!("{}, {} each.", counted(chains, "chain"), counted(draws, "draw")),
    }
}

fn finite_and_sorted(values: impl IntoIterator<Item = f64>) -> Vec<f64> {
    let mut sorted: Vec<f64> = values.into_iter().filter(|value| drawable(*value)).collect();
    sorted.sort_by(f64::total_cmp);
    sorted
}

/// Marginal densities of these parameters, or of a selection of at most 12; `None` if there are no draws.
///
/// Each chain has its own density; mean and 90 % interval are computed from all draws.
///
/// # Errors
/// When there is no such parameter.
pub fn posterior(samples: &Samples, names: &[String]) -> Result<Option<Figure>> {
    let selection = Selection::new(samples, names, MAX_PANELS)?;
    let (chains, draws, _) = samples.values.dim();
    if selection.shown.is_empty() || chains * draws == 0 {
        return Ok(None);
    }
    let mut panels = Vec::new();
    let mut bars = false;
    for (name, index) in &selection.shown {
        let (panel, of_bars) = marginal(name, &column(samples, *index));
        bars |= of_bars;
        panels.push(panel);
    }
    let apart = draws >= MIN_DRAWS;
    let mut legend = if apart { keys_of_chains(chains, LegendSample::Line) } else { Vec::new() };
    if !apart || chains == 1 || chains > MAX_CHAINS {
        let label = if chains > 1 { "density of all draws" } else { "density of the draws" };
        legend.push(LegendEntry { label: label.into(), sample: LegendSample::Line(series(0)) });
    }
    legend.push(LegendEntry { label: "mean".into(), sample: LegendSample::Line(MEAN) });
    legend.push(LegendEntry { label: "90 % interval".into(), sample: region() });
    let mut caption = extent(samples);
    if bars {
        caption += " Bars are relative frequencies.";
    }
    Ok(Some(Figure { legend, caption, remark: selection.remark, ..Figure::of_equal("Posterior densities", panels) }))
}

/// The panel of a parameter, and whether it has bars.
fn marginal(name: &str, chains: &[Vec<f64>]) -> (Panel, bool) {
    let all = finite_and_sorted(chains.iter().flatten().copied());
    let total: usize = chains.iter().map(Vec::len).sum();
    let mut panel = Panel { x: Axis::new(name), y: Axis { low: Some(0.0), ..Axis::new("density") }, ..Panel::default() };
    if all.len() < total {
        panel.note = format!("{} of {total} not finite", total - all.len());
    }
    if all.is_empty() {
        return (panel, false);
    }
    let (low, high) = (quantile(&all, 0.05), quantile(&all, 0.95));
    if low < high {
        panel.marks.push(Mark::Region(low, high));
    }
    let mut of_bars = false;
    if let Some(bars) = shares(&all) {
        panel.marks.push(Mark::Bars { bars, color: series(0).color });
        panel.y.label = "relative frequency".into();
        of_bars = true;
    } else if let Some(width) = bandwidth(&all) {
        let several = chains.len() > 1 && chains.iter().all(|draws| draws.len() >= MIN_DRAWS);
        for (chain, draws) in chains.iter().enumerate().filter(|_| several) {
            let draws = finite_and_sorted(draws.iter().copied());
            if let Some(width) = bandwidth(&draws) {
                let stroke = of_chain(chain, chains.len());
                panel.marks.push(Mark::Line { points: density(&draws, width), stroke, marked: false });
            }
        }
        if !several || chains.len() > MAX_CHAINS || panel.marks.len() == 1 {
            panel.marks.push(Mark::Line { points: density(&all, width), stroke: series(0), marked: false });
        }
        if total <= MAX_RUG {
            panel.marks.push(Mark::Rug(all.clone(), series(0).color));
        }
    } else {
        panel.note = if all.len() == 1 { "one draw".into() } else { "all draws are equal".into() };
        panel.y.bare = true;
        panel.marks.push(Mark::Rug(all.clone(), series(0).color));
    }
    // Dividing first avoids overflow of the sum.
    let n = all.len() as f64;
    let mean: f64 = all.iter().map(|value| value / n).sum();
    panel.marks.push(Mark::Vertical(mean, MEAN));
    (panel, of_bars)
}

/// A scatter plot of two parameters; `None` if there are no draws.
///
/// # Errors
/// When there is no such parameter, or a name refers to several.
pub fn pair(samples: &Samples, first: &str, second: &str) -> Result<Option<Figure>> {
    let one = |name: &str| -> Result<(String, usize)> {
        let mut found = Selection::new(samples, &[name.to_owned()], 2)?.shown;
        match (found.pop(), found.is_empty()) {
            (Some(found), true) => Ok(found),
            (None, _) => Err(PlotError::Parameter(format!("{name:?} has no elements"))),
            _ => Err(PlotError::Parameter(format!("{name:?} has several elements: choose one, such as {name}[0]"))),
        }
    };
    let ((first, i), (second, j)) = (one(first)?, one(second)?);
    let (chains, draws, _) = samples.values.dim();
    if chains * draws == 0 {
        return Ok(None);
    }
    let every = (chains * draws).div_ceil(MAX_POINTS);
    let (xs, ys) = (column(samples, i), column(samples, j));
    let (radius, opacity) = if chains * draws <= MAX_RUG { (3.2, 0.8) } else { (1.9, 0.4) };
    let marks = xs.iter().zip(&ys).enumerate().map(|(chain, (xs, ys))| Mark::Points {
        points: xs.iter().copied().zip(ys.iter().copied()).step_by(every).collect(),
        color: of_chain(chain, chains).color,
        radius,
        opacity,
    });
    let panel = Panel { x: Axis::new(&first), y: Axis::new(&second), marks: marks.collect(), ..Panel::default() };
    let remark = if every > 1 { format!("Every {every}th draw is shown.") } else { String::new() };
    let mut figure = Figure::of_equal("Posterior draws of two parameters", vec![panel]);
    figure.cell = (520.0, 470.0);
    let legend = keys_of_chains(chains, |stroke| LegendSample::Point(stroke.color));
    Ok(Some(Figure { legend, caption: extent(samples), remark, ..figure }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marginals_of_few_many_and_missing_draws() {
        let lines = |panel: &Panel| panel.marks.iter().filter(|mark| matches!(mark, Mark::Line { .. })).count();
        let chain = |shift: f64| (0..100).map(|i| f64::from(i * i % 53) / 3.0 + shift).collect::<Vec<f64>>();
        let four: Vec<Vec<f64>> = (0..4).map(|chain_| chain(f64::from(chain_))).collect();
        assert_eq!(lines(&marginal("a", &four).0), 4);
        let nine: Vec<Vec<f64>> = (0..9).map(|_| chain(0.0)).collect();
        assert_eq!(lines(&marginal("a", &nine).0), 10);
        assert_eq!(lines(&marginal("a", &[vec![1.5], vec![2.5]]).0), 1);
        let (panel, _) = marginal("a", &[vec![1.5, f64::NAN, 2.5, f64::INFINITY, 3.5]]);
        assert_eq!((panel.note.as_str(), lines(&panel)), ("2 of 5 not finite", 1));
        assert!(panel.marks.contains(&Mark::Vertical(2.5, MEAN)), "{panel:?}");
        assert!(marginal("a", &[vec![f64::NAN; 3]]).0.marks.is_empty());
        assert_eq!(marginal("a", &[vec![2.0; 3]]).0.note, "all draws are equal");
        assert!(marginal("a", &[vec![1.0, 2.0, 2.0]]).1);
    }
}
