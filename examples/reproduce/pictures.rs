//! Pictures of rows: who was busy when, and draws beside the laws that they should have.

use super::judge::mean_and_error;
use mpibayes::plots::{Axis, Figure, LegendEntry, LegendSample, Mark, Panel, Stroke, series};
use std::f64::consts::TAU;

/// Curves by name, of each seed its points.
pub type Curves = Vec<(String, Vec<Vec<(f64, f64)>>)>;

/// Who was busy when: agent (from 0), begin and end in seconds.
pub fn timeline(title: &str, busy: &[(u32, f64, f64)], caption: &str) -> Figure {
    let agents = busy.iter().map(|visit| visit.0).max().unwrap_or(0) + 1;
    let mut marks: Vec<Mark> = busy
        .iter()
        .map(|&(agent, begin, end)| {
            let stroke = Stroke { width: 14.0, opacity: 0.75, ..series(0) };
            // A gap between visits that follow on one another.
            let gap = 0.02 * (end - begin);
            let y = f64::from(agent + 1);
            Mark::Line { points: vec![(begin + gap, y), (end - gap, y)], stroke, marked: false }
        })
        .collect();
    marks.push(Mark::Vertical(0.0, Stroke::solid("#444444", 0.5)));
    let y = Axis { low: Some(0.5), high: Some(f64::from(agents) + 0.5), whole: true, ..Axis::new("agent") };
    let panel = Panel { x: Axis::new("seconds"), y, marks, ..Panel::default() };
    let legend = vec![LegendEntry {
        label: "computing".into(),
        sample: LegendSample::Line(Stroke { width: 8.0, opacity: 0.75, ..series(0) }),
    }];
    Figure { legend, caption: caption.into(), cell: (560.0, 230.0), ..Figure::of_equal(title, vec![panel]) }
}

/// Draws of two coordinates in units of the posterior's standard deviation about its mean, and circles of two standard deviations of
/// some laws: of the posterior (1 at the origin), and of others with their centres.
pub fn scatter(title: &str, draws: &[(f64, f64)], laws: &[(&str, f64, (f64, f64))], caption: &str) -> Figure {
    let radius = if draws.len() > 500 { 1.4 } else { 2.4 };
    let mut marks = vec![Mark::Points { points: draws.to_vec(), color: series(0).color, radius, opacity: 0.35 }];
    let mut legend = vec![LegendEntry { label: "draws".into(), sample: LegendSample::Point(series(0).color) }];
    for (law, &(name, sd, (x, y))) in laws.iter().enumerate() {
        let stroke = series(law + 1);
        let circle = (0..=90).map(|step| f64::from(step) / 90.0 * TAU).map(|t| (x + 2.0 * sd * t.cos(), y + 2.0 * sd * t.sin()));
        marks.push(Mark::Line { points: circle.collect(), stroke, marked: false });
        if !name.is_empty() {
            legend.push(LegendEntry { label: name.into(), sample: LegendSample::Line(stroke) });
        }
    }
    let axis = |number: u32| Axis::new(format!("coordinate {number}, in posterior standard deviations"));
    let panel = Panel { x: axis(1), y: axis(2), marks, ..Panel::default() };
    Figure { legend, caption: caption.into(), cell: (500.0, 450.0), ..Figure::of_equal(title, vec![panel]) }
}

/// A panel of curves: what each is called, and its points seed by seed.
pub struct Chart {
    title: String,
    x: String,
    y: String,
    lines: Curves,
    /// The vertical axis, if not that of all values.
    range: Option<(f64, f64)>,
}

impl Chart {
    pub fn new(title: &str, x: &str, y: &str, lines: Curves) -> Self {
        Self { title: title.into(), x: x.into(), y: y.into(), lines, range: None }
    }

    /// Leaves out what is lower than this, of values that cannot be higher than that.
    pub fn within(self, low: f64, high: f64) -> Self {
        Self { range: Some((low, high)), ..self }
    }
}

/// Means over seeds with a band of their standard errors; a name has the same color in all panels.
pub fn curves(title: &str, charts: Vec<Chart>, caption: &str) -> Figure {
    let mut names: Vec<String> = Vec::new();
    let panels: Vec<Panel> = charts
        .into_iter()
        .map(|chart| {
            let (mut bands, mut means) = (Vec::new(), Vec::new());
            for (name, seeds) in chart.lines {
                let place = names.iter().position(|known| *known == name).unwrap_or_else(|| {
                    names.push(name);
                    names.len() - 1
                });
                let points: Vec<(f64, f64, f64)> = (0..seeds.first().map_or(0, Vec::len))
                    .map(|at| {
                        let values: Vec<f64> = seeds.iter().filter_map(|seed| seed.get(at)).map(|point| point.1).collect();
                        let (mean, error) = mean_and_error(&values);
                        (seeds[0][at].0, mean, if values.len() > 1 { error } else { 0.0 })
                    })
                    .collect();
                let stroke = series(place);
                let edge = |&(x, mean, error): &(f64, f64, f64)| (x, mean - error, mean + error);
                bands.push(Mark::Band { points: points.iter().map(edge).collect(), color: stroke.color });
                let points = points.into_iter().map(|(x, mean, _)| (x, mean)).collect();
                means.push(Mark::Line { points, stroke, marked: true });
            }
            bands.append(&mut means);
            Panel {
                title: chart.title,
                x: Axis::new(chart.x),
                y: Axis { low: chart.range.map(|range| range.0), domain: chart.range, ..Axis::new(chart.y) },
                marks: bands,
                ..Panel::default()
            }
        })
        .collect();
    let legend =
        (0..).zip(names).map(|(place, label)| LegendEntry { label, sample: LegendSample::Banded(series(place)) }).collect();
    Figure { legend, caption: caption.into(), ..Figure::of_equal(title, panels) }
}

/// A panel of densities: its title, and named curves of which those without points are left out.
pub type Densities<'a> = (String, Vec<(&'a str, Vec<(f64, f64)>)>);

/// Densities on a line, side by side.
pub fn densities(title: &str, shown: &[Densities], caption: &str) -> Figure {
    let mut legend: Vec<LegendEntry> = Vec::new();
    let panels = shown
        .iter()
        .map(|(title, lines)| {
            let mut marks = Vec::new();
            for (place, (name, points)) in lines.iter().enumerate().filter(|(_, line)| !line.1.is_empty()) {
                let stroke = series(place);
                if legend.iter().all(|key| key.label != *name) {
                    legend.push(LegendEntry { label: (*name).into(), sample: LegendSample::Line(stroke) });
                }
                marks.push(Mark::Line { points: points.clone(), stroke, marked: false });
            }
            let y = Axis { low: Some(0.0), ..Axis::new("density") };
            Panel { title: title.clone(), x: Axis::new("θ"), y, marks, ..Panel::default() }
        })
        .collect();
    Figure { legend, caption: caption.into(), ..Figure::of_equal(title, panels) }
}

/// A Gaussian in the plane: its name (none for one that stands with the law before), mean, covariance, and how many standard
/// deviations away its ellipse is.
pub type Law<'a> = (&'a str, [f64; 2], [[f64; 2]; 2], f64);

/// Points in the plane side by side, which are called so, with the ellipses of some laws.
pub fn scatters(title: &str, points: &str, shown: &[(&str, Vec<(f64, f64)>)], laws: &[Law], caption: &str) -> Figure {
    let mut legend = vec![LegendEntry { label: points.into(), sample: LegendSample::Point(series(0).color) }];
    let mut ellipses = Vec::new();
    for &(name, [x, y], [[a, b], [_, c]], far) in laws {
        if !name.is_empty() {
            legend.push(LegendEntry { label: name.into(), sample: LegendSample::Line(series(legend.len())) });
        }
        // By the Cholesky factor of the covariance.
        let (first, slope) = (a.sqrt(), b / a.sqrt());
        let second = (c - slope * slope).sqrt();
        let at = |t: f64| (x + far * first * t.cos(), y + far * (slope * t.cos() + second * t.sin()));
        let points = (0..=90).map(|step| at(f64::from(step) / 90.0 * TAU)).collect();
        ellipses.push(Mark::Line { points, stroke: series(legend.len() - 1), marked: false });
    }
    let panels = shown
        .iter()
        .map(|(title, points)| {
            let mut marks = vec![Mark::Points { points: points.clone(), color: series(0).color, radius: 2.0, opacity: 0.5 }];
            marks.extend(ellipses.iter().cloned());
            let axis = |name: &str| Axis { low: Some(-4.0), high: Some(4.0), ..Axis::new(name) };
            Panel { title: (*title).into(), x: axis("θ₁"), y: axis("θ₂"), marks, ..Panel::default() }
        })
        .collect();
    Figure { legend, caption: caption.into(), columns: 3, cell: (330.0, 330.0), ..Figure::of_equal(title, panels) }
}
