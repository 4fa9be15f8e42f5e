//! A forest plot: a row for each coefficient, with its center and its interval, of one run or of several.

use super::canvas::Stroke;
use super::figure::{Axis, Figure, LegendEntry, LegendSample, Mark, Panel, series};
use super::logarithmic::logarithmic_ticks;
use super::ticks::{bounds, drawable};
use std::collections::BTreeSet;

/// The most rows of a figure.
const MOST: usize = 40;
/// The height of a row with one series in pixels, what each further series adds, and the height of everything else in the panel.
const ROW: f64 = 21.0;
const SERIES: f64 = 9.0;
const OTHER: f64 = 70.0;

/// The rows of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct ForestSeries {
    /// Its label in the legend, which shows several series only.
    pub label: String,
    /// Its rows.
    pub rows: Vec<ForestRow>,
}

/// A row of the plot.
#[derive(Clone, Debug, PartialEq)]
pub struct ForestRow {
    /// What it is about.
    pub name: String,
    /// The center: a mean or a median.
    pub center: f64,
    /// The ends of the interval.
    pub interval: [f64; 2],
    /// These numbers as text, to the right of the row if there is one series.
    pub numbers: String,
}

/// A forest plot with this label of the values; ratios have a logarithmic axis. Several series share the rows of the same name, each with
/// its color and below the series before. `None` if no row can be drawn.
pub fn forest(title: &str, label: &str, interval: &str, are_ratios: bool, all: &[ForestSeries]) -> Option<Figure> {
    let at = |value: f64| if are_ratios { value.ln() } else { value };
    let is_drawable =
        |row: &&ForestRow| [row.center, row.interval[0], row.interval[1]].into_iter().all(|value| drawable(at(value)));
    let names: BTreeSet<&str> = all.iter().flat_map(|one| &one.rows).map(|row| row.name.as_str()).collect();
    let mut seen = BTreeSet::new();
    let drawn = all.iter().flat_map(|one| &one.rows).filter(is_drawable).map(|row| row.name.as_str());
    let shown: Vec<&str> = drawn.filter(|name| seen.insert(*name)).take(MOST).collect();
    if shown.is_empty() {
        return None;
    }
    let height = |place: usize| (shown.len() - 1 - place) as f64;
    let row_height = ROW + SERIES * (all.len() - 1) as f64;
    let neutral = at(if are_ratios { 1.0 } else { 0.0 });
    let mut marks = vec![Mark::Vertical(neutral, Stroke { dashes: "5 4", ..Stroke::solid("#666666", 1.2) })];
    let (mut values, mut beside) = (vec![neutral], Vec::new());
    for (number, one) in all.iter().enumerate() {
        let offset = SERIES / row_height * ((all.len() - 1) as f64 / 2.0 - number as f64);
        let row_of = |name: &str| one.rows.iter().find(|row| row.name == name && is_drawable(row));
        let rows: Vec<(f64, &ForestRow)> =
            shown.iter().enumerate().filter_map(|(place, name)| Some((height(place) + offset, row_of(name)?))).collect();
        let spans = rows.iter().map(|(y, row)| (*y, at(row.interval[0]), at(row.interval[1])));
        let centers = rows.iter().map(|(y, row)| (at(row.center), *y));
        let color = series(number).color;
        marks.push(Mark::Spans { spans: spans.collect(), stroke: Stroke { width: 1.8, ..series(number) } });
        marks.push(Mark::Points { points: centers.collect(), color, radius: 3.6, opacity: 1.0 });
        values.extend(rows.iter().flat_map(|(_, row)| row.interval.map(at)));
        if all.len() == 1 {
            beside.extend(rows.iter().map(|(y, row)| (*y, row.numbers.clone())));
        }
    }
    let names_of_ticks = bounds(values).filter(|_| are_ratios).map(logarithmic_ticks).unwrap_or_default();
    let x = Axis { names: names_of_ticks, ..Axis::new(label) };
    let terms = shown.iter().enumerate().map(|(place, name)| (height(place), (*name).to_owned())).collect();
    let y = Axis { names: terms, low: Some(-0.7), high: Some(shown.len() as f64 - 0.3), ..Axis::new("") };
    let figure = Figure::of_equal(title, vec![Panel { x, y, marks, beside, ..Panel::default() }]);
    let center = if are_ratios { "median" } else { "mean" };
    let key = |(number, one): (usize, &ForestSeries)| LegendEntry {
        label: one.label.clone(),
        sample: LegendSample::Marked(series(number)),
    };
    let (legend, what) = match all {
        [_] => (
            vec![LegendEntry { label: format!("{center} and {interval}"), sample: LegendSample::Marked(series(0)) }],
            String::new(),
        ),
        _ => (all.iter().enumerate().map(key).collect(), format!("The {center} and the {interval} of each run. ")),
    };
    let remark = match names.len() - shown.len() {
        0 => String::new(),
        more => format!("{more} more are not shown."),
    };
    let caption = what
        + "For one unit of a column or the number that is named; for a level against its reference; for a group against the mean of groups.";
    Some(Figure { legend, caption, cell: (720.0, OTHER + row_height * shown.len() as f64), remark, ..figure })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn row(name: &str, center: f64, low: f64, high: f64) -> ForestRow {
        ForestRow { name: name.into(), center, interval: [low, high], numbers: format!("{center} ({low} to {high})") }
    }

    fn one(label: &str, rows: Vec<ForestRow>) -> ForestSeries {
        ForestSeries { label: label.into(), rows }
    }

    #[test]
    fn every_row_has_its_name_and_its_interval() {
        let rows = vec![row("age", 1.03, 1.02, 1.05), row("clinic[west]", 0.56, 0.39, 0.79)];
        let figure = forest("Odds ratios", "odds ratio", "90 % interval", true, &[one("", rows)]).unwrap();
        let svg = figure.draw(None).unwrap().svg().to_owned();
        for says in [">age<", ">clinic[west]<", ">1.03 (1.02 to 1.05)<", ">odds ratio<", "median and 90 % interval"] {
            assert!(svg.contains(says), "{says} in {svg}");
        }
        // From top to bottom.
        assert_eq!(figure.panels[0].y.names[0], (1.0, "age".into()));
        assert!(forest("a", "b", "c", false, &[]).is_none() && forest("a", "b", "c", false, &[one("", Vec::new())]).is_none());
        let many = (0..50).map(|number| row(&format!("x{number}"), 0.0, -1.0, 1.0)).collect();
        assert_eq!(forest("a", "b", "c", false, &[one("", many)]).unwrap().remark, "10 more are not shown.");
    }

    #[test]
    fn several_series_have_colors_positions_and_gaps() {
        let first = one("hmc", vec![row("age", 2.0, 1.0, 4.0), row("smoker", 3.0, 2.0, 5.0)]);
        let second = one("dsgld", vec![row("smoker", 4.0, 3.0, 6.0), row("age[missing]", 0.5, 0.25, 1.0)]);
        let figure = forest("Odds ratios", "odds ratio", "90 % interval", true, &[first, second]).unwrap();
        let labels: Vec<(&str, LegendSample)> = figure.legend.iter().map(|key| (key.label.as_str(), key.sample)).collect();
        assert_eq!(labels, [("hmc", LegendSample::Marked(series(0))), ("dsgld", LegendSample::Marked(series(1)))]);
        let panel = &figure.panels[0];
        assert_eq!(panel.y.names, [(2.0, "age".into()), (1.0, "smoker".into()), (0.0, "age[missing]".into())]);
        // Half of 9 pixels in a row of 30 above and below the middle.
        let (above, below) = (0.15, -0.15);
        let points = |mark: usize| match &panel.marks[mark] {
            Mark::Points { points, color, .. } => (points.clone(), *color),
            other => panic!("no points: {other:?}"),
        };
        let close = |found: &[(f64, f64)], expected: &[(f64, f64)]| {
            let is_close = |(a, b): (&(f64, f64), &(f64, f64))| (a.0 - b.0).abs() < 1e-12 && (a.1 - b.1).abs() < 1e-12;
            found.len() == expected.len() && found.iter().zip(expected).all(is_close)
        };
        let ((of_first, blue), (of_second, orange)) = (points(2), points(4));
        assert_eq!((blue, orange), (series(0).color, series(1).color));
        // Each series lacks a term: the first the last one, the second the first one.
        assert!(close(&of_first, &[(2.0_f64.ln(), 2.0 + above), (3.0_f64.ln(), 1.0 + above)]), "{of_first:?}");
        assert!(close(&of_second, &[(4.0_f64.ln(), 1.0 + below), (0.5_f64.ln(), below)]), "{of_second:?}");
        let Mark::Spans { spans, stroke } = &panel.marks[3] else { panic!("no intervals") };
        assert!((spans[0].1 - 3.0_f64.ln()).abs() < 1e-12 && (spans[0].2 - 6.0_f64.ln()).abs() < 1e-12);
        assert_eq!((spans.len(), stroke.color), (2, orange));
        assert!(panel.beside.is_empty() && panel.x.names.iter().any(|tick| tick.1 == "2"));
        let svg = figure.draw(None).unwrap().svg().to_owned();
        for says in [">hmc<", ">dsgld<", ">smoker<", ">age[missing]<", "The median and the 90 % interval of each run."] {
            assert!(svg.contains(says), "{says} in {svg}");
        }
        // Two rows of each run, and the two keys.
        assert_eq!(svg.matches("<circle").count(), 6);
    }
}
