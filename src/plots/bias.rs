//! The bias of draws: standard deviations and means of all parameters beside those of the posterior, with intervals.

use super::canvas::Stroke;
use super::figure::{Axis, Figure, LegendEntry, LegendSample, Mark, Panel, SHADE, series};
use crate::metrics::bias::{Bias, TOLERATED_RATIO, TOLERATED_SHIFT};
use crate::text::counted;

/// At most this many variables are in the caption.
const NAMED: usize = 8;

/// If a larger share than this of the variance of a parameter's score is not linear in the parameters, the measurement is not accurate.
const MUCH_NONLINEARITY: f64 = 0.02;

/// The figure of a measured bias of parameters with these names; `None` if there is none.
pub fn bias(bias: &Bias, names: &[String]) -> Option<Figure> {
    let last = bias.parameters.len().checked_sub(1)? as f64;
    let of_parameters = series(0);
    let panel = |label: &str, tolerated: [f64; 2], ideal: f64, values: Vec<(f64, f64, f64)>| {
        let edges = [-0.5, last + 0.5];
        let numbered = |value: fn(&(f64, f64, f64)) -> f64| (0..).map(f64::from).zip(values.iter().map(value)).collect();
        Panel {
            x: Axis { low: Some(edges[0]), high: Some(edges[1]), domain: Some((0.0, last)), whole: true, ..Axis::new("") },
            y: Axis::new(label),
            marks: vec![
                Mark::Band { points: edges.map(|x| (x, tolerated[0], tolerated[1])).to_vec(), color: SHADE },
                Mark::Line {
                    points: edges.map(|x| (x, ideal)).to_vec(),
                    stroke: Stroke { dashes: "5 4", ..Stroke::solid("#666666", 1.2) },
                    marked: false,
                },
                Mark::Whiskers {
                    points: (0..).map(f64::from).zip(&values).map(|(x, &(_, low, high))| (x, low, high)).collect(),
                    stroke: Stroke { opacity: 0.55, ..Stroke::solid(of_parameters.color, 1.4) },
                },
                Mark::Points { points: numbered(|value| value.0), color: of_parameters.color, radius: 3.0, opacity: 1.0 },
            ],
            height: 1.0,
            ..Panel::default()
        }
    };
    let ratios = bias.parameters.iter().map(|parameter| {
        let (low, high) = parameter.sd_ratio_interval();
        (parameter.sd_ratio, low, high)
    });
    let shifts = bias.parameters.iter().map(|parameter| {
        let (low, high) = parameter.shift_interval();
        (parameter.shift, low, high)
    });
    let upper = panel("sd of draws / sd of posterior", [TOLERATED_RATIO.recip(), TOLERATED_RATIO], 1.0, ratios.collect());
    let mut lower = panel("error of mean, in posterior sds", [-TOLERATED_SHIFT, TOLERATED_SHIFT], 0.0, shifts.collect());
    lower.x.label = "parameter".into();
    let worst_parameter = bias.worst.and_then(|worst| Some(format!("Farthest off: {} ({worst}). ", names.get(worst)?)));
    let approximate = match bias.largest_nonlinearity > MUCH_NONLINEARITY {
        true => "The posterior is not quite a Gaussian, so that errors of means are approximate. ",
        false => "",
    };
    let legend = vec![
        LegendEntry { label: "parameter, with a simultaneous 99 % interval".into(), sample: LegendSample::Marked(of_parameters) },
        LegendEntry { label: "tolerated".into(), sample: LegendSample::Area(SHADE, 0.2) },
    ];
    Some(Figure {
        title: "Bias of the draws".into(),
        subtitle: String::new(),
        legend,
        panels: vec![upper, lower],
        columns: 1,
        cell: (640.0, 240.0),
        caption: format!(
            "{}{approximate}Measured by the gradients of all rows at {}. Parameters: {}.",
            worst_parameter.unwrap_or_default(),
            counted(bias.scored_draws, "draw"),
            numbered_names(names)
        ),
        remark: String::new(),
    })
}

/// The first and the last parameter of each variable with their numbers: `0 weights[age] to 2 weights[dose], 3 intercept`.
fn numbered_names(names: &[String]) -> String {
    let variable = |name: &str| name.split('[').next().unwrap_or_default().to_owned();
    let mut places = 0..names.len();
    let mut listed = Vec::new();
    while let Some(first) = places.next() {
        let last = first + names[first + 1..].iter().take_while(|name| variable(name) == variable(&names[first])).count();
        listed.push(match last > first {
            true => format!("{first} {} to {last} {}", names[first], names[last]),
            false => format!("{first} {}", names[first]),
        });
        places = last + 1..names.len();
    }
    if listed.len() > NAMED {
        listed.truncate(NAMED);
        listed.push("..., in the order of the result file".into());
    }
    listed.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_are_numbered() {
        let names = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect::<Vec<_>>();
        let found = numbered_names(&names(&["weights[a]", "weights[b]", "intercept", "z[0]"]));
        assert_eq!(found, "0 weights[a] to 1 weights[b], 2 intercept, 3 z[0]");
        let many: Vec<String> = (0..10).map(|number| format!("v{number}")).collect();
        assert!(numbered_names(&many).ends_with("7 v7, ..., in the order of the result file"));
        assert_eq!(numbered_names(&[]), "");
    }
}
