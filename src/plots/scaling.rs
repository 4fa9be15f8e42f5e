//! Time, efficiency and memory of a run on more and more ranks: predicted, measured, or both.

use super::canvas::Stroke;
use super::figure::{Axis, Figure, LegendEntry, LegendSample, Mark, Panel, SHADE, bars, series};
use super::logarithmic::logarithmic_ticks;
use super::ticks::bounds;

/// Numbers of ranks that get a tick each; of more, every second, third and so on.
const MOST_TICKS: usize = 9;
/// What ranks do, from the bottom of a bar to its top.
const ACTIVITIES: [&str; 4] = ["computing", "messages", "saving", "idle"];
/// The width of a bar, with a distance of 1 between neighbors.
const BAR_WIDTH: f64 = 0.7;
/// Below and above the data on a logarithmic axis: 10 %.
const MARGIN: f64 = 0.1;
const MIB: f64 = 1024.0 * 1024.0;

/// What is known about a number of ranks.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RanksPoint {
    /// The number of ranks.
    pub ranks: u32,
    /// Seconds of the run, as predicted.
    pub predicted: Option<f64>,
    /// The efficiency that goes with it.
    pub predicted_efficiency: Option<f64>,
    /// Median, shortest and longest time of measured runs.
    pub measured: Option<[f64; 3]>,
    /// The median, the lowest and the highest efficiency.
    pub measured_efficiency: Option<[f64; 3]>,
    /// Bytes of the rank with the most memory, as predicted and as measured.
    pub memory: [Option<u64>; 2],
    /// What the ranks of measured runs did: shares in the order computing, messages, saving, idle.
    pub shares: Option<[f64; 4]>,
}

/// The figure; `is_weak` if the work grows with the number of ranks.
pub fn scaling(points: &[RanksPoint], is_weak: bool) -> Figure {
    let is_measured = points.iter().any(|point| point.measured.is_some());
    let mut panels = vec![time(points, is_weak), efficiency(points), memory(points)];
    let mut legend = Vec::new();
    if points.iter().any(|point| point.predicted.is_some()) {
        legend.push(LegendEntry { label: "predicted".into(), sample: LegendSample::Marked(series(0)) });
    }
    if is_measured {
        panels.push(activities(points));
        legend.push(LegendEntry { label: "measured: median and range".into(), sample: LegendSample::Point(series(1).color) });
    }
    legend.push(LegendEntry { label: "ideal".into(), sample: LegendSample::Line(ideal_stroke()) });
    if is_measured {
        legend.extend(
            (0..ACTIVITIES.len())
                .map(|place| LegendEntry { label: ACTIVITIES[place].into(), sample: bars(color_of_activity(place)) }),
        );
    }
    panels.retain(|panel| !panel.marks.is_empty());
    let title = if is_weak { "More ranks with more work" } else { "The same run on more ranks" };
    Figure { legend, ..Figure::of_equal(title, panels) }
}

fn ideal_stroke() -> Stroke {
    Stroke { dashes: "5 4", ..Stroke::solid("#666666", 1.2) }
}

fn log_ranks(ranks: u32) -> f64 {
    f64::from(ranks).ln()
}

/// The horizontal axis: ranks, logarithmic.
fn ranks_axis(points: &[RanksPoint]) -> Axis {
    let every = points.len().div_ceil(MOST_TICKS).max(1);
    let names = points.iter().step_by(every).map(|point| (log_ranks(point.ranks), point.ranks.to_string())).collect();
    Axis { names, ..Axis::new("ranks") }
}

/// A line of what is predicted, and points with ranges of what is measured; `transform` is applied to all values.
fn marks(
    points: &[RanksPoint],
    predicted: impl Fn(&RanksPoint) -> Option<f64>,
    measured: impl Fn(&RanksPoint) -> Option<[f64; 3]>,
    transform: impl Fn(f64) -> f64,
) -> Vec<Mark> {
    let line: Vec<_> = points.iter().filter_map(|point| Some((log_ranks(point.ranks), transform(predicted(point)?)))).collect();
    let of_runs: Vec<_> =
        points.iter().filter_map(|point| Some((log_ranks(point.ranks), measured(point)?.map(&transform)))).collect();
    let mut marks = Vec::new();
    if !line.is_empty() {
        marks.push(Mark::Line { points: line, stroke: series(0), marked: true });
    }
    if !of_runs.is_empty() {
        let ranges = of_runs.iter().map(|&(x, [_, low, high])| (x, low, high)).collect();
        marks.push(Mark::Whiskers { points: ranges, stroke: Stroke { width: 1.8, ..series(1) } });
        let medians = of_runs.iter().map(|&(x, [median, ..])| (x, median)).collect();
        marks.push(Mark::Points { points: medians, color: series(1).color, radius: 3.6, opacity: 1.0 });
    }
    marks
}

fn time(points: &[RanksPoint], is_weak: bool) -> Panel {
    let mut marks = marks(points, |point| point.predicted, |point| point.measured, f64::ln);
    let known = |point: &RanksPoint| Some((point.ranks, point.measured.map_or(point.predicted, |times| Some(times[0]))?));
    if let Some((first, seconds)) = points.iter().find_map(known) {
        let ideal = |ranks: u32| if is_weak { seconds } else { seconds * f64::from(first) / f64::from(ranks) };
        let line = points.iter().map(|point| (log_ranks(point.ranks), ideal(point.ranks).ln())).collect();
        marks.insert(0, Mark::Line { points: line, stroke: ideal_stroke(), marked: false });
    }
    Panel { x: ranks_axis(points), y: logarithmic("seconds of the run", &marks), marks, ..Panel::default() }
}

fn efficiency(points: &[RanksPoint]) -> Panel {
    let mut marks = marks(points, |point| point.predicted_efficiency, |point| point.measured_efficiency, |share| 100.0 * share);
    if !marks.is_empty() {
        let line = points.iter().map(|point| (log_ranks(point.ranks), 100.0)).collect();
        marks.insert(0, Mark::Line { points: line, stroke: ideal_stroke(), marked: false });
    }
    Panel { x: ranks_axis(points), y: Axis { low: Some(0.0), ..Axis::new("efficiency (%)") }, marks, ..Panel::default() }
}

fn memory(points: &[RanksPoint]) -> Panel {
    let bytes = |bytes: Option<u64>| bytes.map(|bytes| bytes as f64 / MIB);
    let measured = |point: &RanksPoint| bytes(point.memory[1]).map(|bytes| [bytes; 3]);
    let marks = marks(points, |point| bytes(point.memory[0]), measured, |mib| mib);
    let most = marks.iter().flat_map(Mark::ys).fold(0.0, f64::max);
    // Equal values would lie on the upper edge.
    let y = Axis { low: Some(0.0), high: Some(1.1 * most), ..Axis::new("memory of a rank (MiB)") };
    Panel { x: ranks_axis(points), y, marks, ..Panel::default() }
}

/// A logarithmic axis for marks whose heights are logarithms.
fn logarithmic(label: &str, marks: &[Mark]) -> Axis {
    let Some((low, high)) = bounds(marks.iter().flat_map(Mark::ys)) else { return Axis::new(label) };
    let (low, high) = (low - MARGIN, high + MARGIN);
    Axis { names: logarithmic_ticks((low, high)), low: Some(low), high: Some(high), ..Axis::new(label) }
}

fn color_of_activity(place: usize) -> &'static str {
    [series(2).color, series(3).color, series(4).color, SHADE][place]
}

/// Stacked bars, one for each number of ranks that was measured.
fn activities(points: &[RanksPoint]) -> Panel {
    let runs: Vec<(u32, [f64; 4])> = points.iter().filter_map(|point| Some((point.ranks, point.shares?))).collect();
    let stacked = (0..ACTIVITIES.len()).map(|activity| {
        let bar = |(place, (_, shares)): (usize, &(u32, [f64; 4]))| {
            let ends = [activity, activity + 1].map(|end| 100.0 * shares[..end].iter().sum::<f64>());
            (place as f64 - BAR_WIDTH / 2.0, place as f64 + BAR_WIDTH / 2.0, ends)
        };
        Mark::Bars { bars: runs.iter().enumerate().map(bar).collect(), color: color_of_activity(activity) }
    });
    let names = runs.iter().enumerate().map(|(place, run)| (place as f64, run.0.to_string())).collect();
    let y = Axis { low: Some(0.0), high: Some(100.0), ..Axis::new("time of the ranks (%)") };
    Panel { x: Axis { names, ..Axis::new("ranks") }, y, marks: stacked.collect(), ..Panel::default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(ranks: u32, predicted: f64, measured: Option<[f64; 3]>) -> RanksPoint {
        RanksPoint {
            ranks,
            predicted: Some(predicted),
            predicted_efficiency: Some(0.5),
            measured,
            measured_efficiency: measured.map(|_| [0.5; 3]),
            memory: [Some(1 << 20), measured.map(|_| 2 << 20)],
            shares: measured.map(|_| [0.5, 0.25, 0.0, 0.25]),
        }
    }

    #[test]
    fn measured_runs_have_points_with_ranges_and_bars() {
        let points = [point(1, 80.0, Some([100.0, 90.0, 120.0])), point(4, 40.0, Some([50.0, 45.0, 60.0])), point(8, 30.0, None)];
        let figure = scaling(&points, false);
        assert_eq!(figure.panels.len(), 4);
        let close = |found: f64, right: f64| (found - right).abs() < 1e-12;
        // What is ideal begins with the first measured time.
        let Mark::Line { points: ideal, .. } = &figure.panels[0].marks[0] else { panic!("no line") };
        assert!(close(ideal[2].1, 12.5_f64.ln()), "{ideal:?}");
        let Mark::Whiskers { points: ranges, .. } = &figure.panels[0].marks[2] else { panic!("no ranges") };
        assert!(ranges.len() == 2 && close(ranges[1].1, 45_f64.ln()) && close(ranges[1].2, 60_f64.ln()), "{ranges:?}");
        let Mark::Bars { bars, .. } = &figure.panels[3].marks[1] else { panic!("no bars") };
        assert_eq!(bars[0].2, [50.0, 75.0]);
        // All ticks lie within the axes.
        for axis in figure.panels.iter().flat_map(|panel| [&panel.x, &panel.y]) {
            let (low, high) = (axis.low.unwrap_or(f64::NEG_INFINITY), axis.high.unwrap_or(f64::INFINITY));
            assert!(axis.names.iter().all(|tick| (low..=high).contains(&tick.0)), "{axis:?}");
        }
        assert!(figure.draw(None).is_ok());
    }

    #[test]
    fn a_weak_series_would_ideally_take_the_same_time() {
        let figure = scaling(&[point(1, 80.0, None), point(2, 90.0, None)], true);
        assert_eq!((figure.panels.len(), figure.legend.len()), (3, 2));
        let Mark::Line { points: ideal, .. } = &figure.panels[0].marks[0] else { panic!("no line") };
        assert_eq!(ideal[0].1, ideal[1].1);
    }
}
