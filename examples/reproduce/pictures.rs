//! Pictures of rows: who was busy when, and draws beside the laws that they should have.

use mpibayes::plots::{Axis, Figure, Key, Mark, Panel, Sample, Stroke, series};
use std::f64::consts::TAU;

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
    let legend = vec![Key { label: "computing".into(), sample: Sample::Line(Stroke { width: 8.0, opacity: 0.75, ..series(0) }) }];
    Figure { legend, caption: caption.into(), cell: (560.0, 230.0), ..Figure::of_equal(title, vec![panel]) }
}

/// Draws of two coordinates in units of the posterior's standard deviation about its mean, and circles of two standard deviations of
/// some laws: of the posterior (1 at the origin), and of others with their centres.
pub fn scatter(title: &str, draws: &[(f64, f64)], laws: &[(&str, f64, (f64, f64))], caption: &str) -> Figure {
    let radius = if draws.len() > 500 { 1.4 } else { 2.4 };
    let mut marks = vec![Mark::Points { points: draws.to_vec(), colour: series(0).colour, radius, opacity: 0.35 }];
    let mut legend = vec![Key { label: "draws".into(), sample: Sample::Point(series(0).colour) }];
    for (law, &(name, sd, (x, y))) in laws.iter().enumerate() {
        let stroke = series(law + 1);
        let circle = (0..=90).map(|step| f64::from(step) / 90.0 * TAU).map(|t| (x + 2.0 * sd * t.cos(), y + 2.0 * sd * t.sin()));
        marks.push(Mark::Line { points: circle.collect(), stroke, marked: false });
        if !name.is_empty() {
            legend.push(Key { label: name.into(), sample: Sample::Line(stroke) });
        }
    }
    let axis = |number: u32| Axis::new(format!("coordinate {number}, in posterior standard deviations"));
    let panel = Panel { x: axis(1), y: axis(2), marks, ..Panel::default() };
    Figure { legend, caption: caption.into(), cell: (500.0, 450.0), ..Figure::of_equal(title, vec![panel]) }
}
