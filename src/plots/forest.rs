//! A forest plot: a row for each coefficient, with its center and its interval.

use super::canvas::Stroke;
use super::figure::{Axis, Figure, Key, Mark, Panel, Sample, series};
use super::ticks::{bounds, drawable};

/// The most rows of a figure.
const MOST: usize = 40;
/// The height of a row in pixels, and that of everything else in the panel.
const ROW: f64 = 21.0;
const OTHER: f64 = 70.0;
/// Ratios that get a tick, from coarse to fine: these times powers of ten.
const LADDERS: [&[f64]; 3] = [
    &[1.0, 2.0, 5.0],
    &[1.0, 1.5, 2.0, 3.0, 5.0, 7.0],
    &[1.0, 1.1, 1.2, 1.3, 1.5, 1.7, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0],
];
/// More powers of ten than this do not fit.
const MOST_DECADES: i32 = 8;
/// Fewer ticks than this are too few.
const ENOUGH_TICKS: usize = 4;

/// A row of the plot.
#[derive(Clone, Debug, PartialEq)]
pub struct ForestRow {
    /// What it is about.
    pub name: String,
    /// The center: a mean or a median.
    pub center: f64,
    /// The ends of the interval.
    pub interval: [f64; 2],
    /// These numbers in words, to the right of the row.
    pub numbers: String,
}

/// A forest plot with this label of the values; ratios have a logarithmic axis. `None` without rows.
pub fn forest(title: &str, label: &str, interval: &str, are_ratios: bool, rows: &[ForestRow]) -> Option<Figure> {
    if rows.is_empty() {
        return None;
    }
    let at = |value: f64| if are_ratios { value.ln() } else { value };
    let finite: Vec<&ForestRow> = rows
        .iter()
        .filter(|row| [row.center, row.interval[0], row.interval[1]].into_iter().all(|value| drawable(at(value))))
        .collect();
    let shown = &finite[..finite.len().min(MOST)];
    let height = |place: usize| (shown.len() - 1 - place) as f64;
    let neutral = at(if are_ratios { 1.0 } else { 0.0 });
    let color = series(0).color;
    let centers = shown.iter().enumerate().map(|(place, row)| (at(row.center), height(place)));
    let spans = shown.iter().enumerate().map(|(place, row)| (height(place), at(row.interval[0]), at(row.interval[1])));
    let ends = bounds(shown.iter().flat_map(|row| row.interval.map(at)).chain([neutral]));
    let x = Axis { names: ends.filter(|_| are_ratios).map(ratio_ticks).unwrap_or_default(), ..Axis::new(label) };
    let names = shown.iter().enumerate().map(|(place, row)| (height(place), row.name.clone())).collect();
    let y = Axis { names, low: Some(-0.7), high: Some(shown.len() as f64 - 0.3), ..Axis::new("") };
    let marks = vec![
        Mark::Vertical(neutral, Stroke { dashes: "5 4", ..Stroke::solid("#666666", 1.2) }),
        Mark::Spans { spans: spans.collect(), stroke: Stroke::solid(color, 1.8) },
        Mark::Points { points: centers.collect(), color, radius: 3.6, opacity: 1.0 },
    ];
    let beside = shown.iter().enumerate().map(|(place, row)| (height(place), row.numbers.clone())).collect();
    let figure = Figure::of_equal(title, vec![Panel { x, y, marks, beside, ..Panel::default() }]);
    let center = if are_ratios { "median" } else { "mean" };
    let legend = vec![Key { label: format!("{center} and {interval}"), sample: Sample::Marked(series(0)) }];
    let remark = match rows.len() - shown.len() {
        0 => String::new(),
        more => format!("{more} more are not shown."),
    };
    let caption = "For one unit of a column or the number that is named; for a level against its reference; for a group against the mean of groups.".into();
    Some(Figure { legend, caption, cell: (720.0, OTHER + ROW * shown.len() as f64), remark, ..figure })
}

/// Round ratios between these logarithms, at their logarithms.
fn ratio_ticks((low, high): (f64, f64)) -> Vec<(f64, String)> {
    let decade = |at: f64| (at / std::f64::consts::LN_10).floor() as i32;
    let (first, last) = (decade(low), decade(high));
    // Wide ranges have powers of ten only, and not all of them.
    let step = usize::try_from((last - first) / MOST_DECADES + 1).unwrap_or(1);
    let ticks = |ladder: &[f64]| -> Vec<(f64, String)> {
        let ratios = (first..=last).step_by(step).flat_map(|decade| ladder.iter().map(move |digit| (digit, decade)));
        let named = ratios.map(|(digit, decade)| {
            // 0.2 and 20, without the rounding of powers.
            let ratio: f64 = format!("{digit}e{decade}").parse().unwrap_or(f64::NAN);
            let name = if (-4..6).contains(&decade) { ratio.to_string() } else { format!("{digit}e{decade}") };
            (ratio.ln(), name)
        });
        named.filter(|(at, _)| (low..=high).contains(at)).collect()
    };
    if last - first > MOST_DECADES / 2 {
        return ticks(&[1.0]);
    }
    let enough = LADDERS.iter().map(|ladder| ticks(ladder)).find(|ticks| ticks.len() >= ENOUGH_TICKS);
    enough.unwrap_or_else(|| ticks(LADDERS[LADDERS.len() - 1]))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn row(name: &str, center: f64, low: f64, high: f64) -> ForestRow {
        ForestRow { name: name.into(), center, interval: [low, high], numbers: format!("{center} ({low} to {high})") }
    }

    #[test]
    fn ratios_have_round_ticks_on_a_logarithmic_axis() {
        let labels = |low: f64, high: f64| ratio_ticks((low.ln(), high.ln())).into_iter().map(|tick| tick.1).collect::<Vec<_>>();
        assert_eq!(labels(0.09, 11.0), ["0.1", "0.2", "0.5", "1", "2", "5", "10"]);
        assert_eq!(labels(0.65, 2.1), ["0.7", "1", "1.5", "2"]);
        assert_eq!(labels(0.88, 1.25), ["0.9", "1", "1.1", "1.2"]);
        assert_eq!(labels(0.5, 2e5), ["1", "10", "100", "1000", "10000", "100000"]);
        let wide = labels(1e-30, 1e30);
        assert!(wide.len() <= 9 && wide.contains(&"1e-30".to_owned()), "{wide:?}");
    }

    #[test]
    fn every_row_has_its_name_and_its_interval() {
        let rows = [row("age", 1.03, 1.02, 1.05), row("clinic[west]", 0.56, 0.39, 0.79)];
        let figure = forest("Odds ratios", "odds ratio", "90 % interval", true, &rows).unwrap();
        let svg = figure.draw(None).unwrap().svg().to_owned();
        for says in [">age<", ">clinic[west]<", ">1.03 (1.02 to 1.05)<", ">odds ratio<", "median and 90 % interval"] {
            assert!(svg.contains(says), "{says} in {svg}");
        }
        // From top to bottom.
        assert_eq!(figure.panels[0].y.names[0], (1.0, "age".into()));
        assert!(forest("a", "b", "c", false, &[]).is_none());
        let many = vec![row("x", 0.0, -1.0, 1.0); 50];
        assert_eq!(forest("a", "b", "c", false, &many).unwrap().remark, "10 more are not shown.");
    }
}
