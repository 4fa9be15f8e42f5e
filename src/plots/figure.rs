//! Figures: panels with axes and marks, their layout, and rendering as SVG and PNG.

use super::canvas::{Anchor, Canvas, Stroke};
use super::error::PlotError;
use super::font::{FONT, shorten, width, wrap};
use super::ticks::{Ticks, bounds, drawable, widened};
use resvg::tiny_skia::{Pixmap, Transform};
use resvg::usvg;

/// A palette for all kinds of color vision (Okabe & Ito, <https://jfly.uni-koeln.de/color/>), without yellow, which is too light for lines
/// on white.
const PALETTE: [&str; 7] = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000"];
/// Dashes, which distinguish lines of the same color.
const DASHES: [&str; 4] = ["", "6 3", "2 2", "8 3 2 3"];

const INK: &str = "#222222";
const FAINT_INK: &str = "#666666";
const AXIS: &str = "#444444";
const GRID: &str = "#e4e4e4";
/// The color of shaded areas behind marks.
pub(super) const SHADE: &str = "#bbbbbb";

const MARGIN: f64 = 18.0;
/// Font sizes and line heights in pixels.
const TITLE: (f64, f64) = (16.0, 22.0);
const SUBTITLE: (f64, f64) = (12.0, 17.0);
const LEGEND: (f64, f64) = (12.0, 20.0);
const LABEL: (f64, f64) = (12.0, 18.0);
/// The line height within a label, and the most lines of a label.
const LINE: f64 = 15.0;
const MAX_LABEL_LINES: usize = 2;
const TICK: (f64, f64) = (11.0, 17.0);
const CAPTION: (f64, f64) = (11.5, 16.0);
/// The largest width of a named tick.
const MAX_NAME: f64 = 230.0;
/// The width of a sample in the legend, and the space between two entries.
const SAMPLE: f64 = 24.0;
const BETWEEN: f64 = 22.0;
/// The smallest width and height of the area for data.
const MIN_PANEL: (f64, f64) = (80.0, 36.0);
/// Lines with at most this many points show each point.
const MARKED: usize = 40;
/// The most pixels of a PNG.
const MAX_PIXELS: f64 = 1e8;

/// The style of a series by its index: a color, and dashes once all colors are used.
pub fn series(index: usize) -> Stroke {
    let dashes = DASHES[index / PALETTE.len() % DASHES.len()];
    Stroke { color: PALETTE[index % PALETTE.len()], width: 1.6, dashes, opacity: 1.0 }
}

/// A mark in a panel, in data coordinates; values that are not finite are not drawn.
#[derive(Clone, Debug, PartialEq)]
pub enum Mark {
    /// A line with gaps at missing values. Points are marked if there are few, or if a point has no neighbors.
    Line {
        /// x and y.
        points: Vec<(f64, f64)>,
        /// Its style.
        stroke: Stroke,
        /// Whether points may be marked.
        marked: bool,
    },
    /// Points.
    Points {
        /// x and y.
        points: Vec<(f64, f64)>,
        /// Their color.
        color: &'static str,
        /// Their radius in pixels.
        radius: f64,
        /// Opacity from 0 to 1.
        opacity: f64,
    },
    /// The area between two lines.
    Band {
        /// x, lower and upper y.
        points: Vec<(f64, f64, f64)>,
        /// Its color.
        color: &'static str,
    },
    /// Bars.
    Bars {
        /// Left and right edge, lower and upper end.
        bars: Vec<(f64, f64, [f64; 2])>,
        /// Their color.
        color: &'static str,
    },
    /// Vertical intervals.
    Whiskers {
        /// x, lower and upper y.
        points: Vec<(f64, f64, f64)>,
        /// Their style.
        stroke: Stroke,
    },
    /// Horizontal intervals.
    Spans {
        /// y, lower and upper x.
        spans: Vec<(f64, f64, f64)>,
        /// Their style.
        stroke: Stroke,
    },
    /// A shaded interval of x, over the whole height.
    Region(f64, f64),
    /// A vertical line over the whole height.
    Vertical(f64, Stroke),
    /// A rug: a short stroke at the bottom for each x.
    Rug(Vec<f64>, &'static str),
}

impl Mark {
    pub(super) fn xs(&self) -> Vec<f64> {
        match self {
            Self::Line { points, .. } | Self::Points { points, .. } => points.iter().map(|point| point.0).collect(),
            Self::Band { points, .. } | Self::Whiskers { points, .. } => points.iter().map(|point| point.0).collect(),
            Self::Bars { bars, .. } => bars.iter().flat_map(|bar| [bar.0, bar.1]).collect(),
            Self::Spans { spans, .. } => spans.iter().flat_map(|span| [span.1, span.2]).collect(),
            Self::Region(low, high) => vec![*low, *high],
            Self::Vertical(x, _) => vec![*x],
            Self::Rug(xs, _) => xs.clone(),
        }
    }

    pub(super) fn ys(&self) -> Vec<f64> {
        match self {
            Self::Line { points, .. } | Self::Points { points, .. } => points.iter().map(|point| point.1).collect(),
            Self::Band { points, .. } | Self::Whiskers { points, .. } => {
                points.iter().flat_map(|point| [point.1, point.2]).collect()
            }
            Self::Bars { bars, .. } => bars.iter().flat_map(|bar| bar.2).collect(),
            Self::Spans { spans, .. } => spans.iter().map(|span| span.0).collect(),
            Self::Region(..) | Self::Vertical(..) | Self::Rug(..) => Vec::new(),
        }
    }
}

/// An axis.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Axis {
    /// Its label with the unit; empty for none.
    pub label: String,
    /// Its lower limit, instead of that of the data with a margin.
    pub low: Option<f64>,
    /// Its upper limit, likewise.
    pub high: Option<f64>,
    /// The range of possible values; there are no ticks beyond it.
    pub domain: Option<(f64, f64)>,
    /// Whether only whole numbers get ticks.
    pub whole: bool,
    /// Whether the ticks have no labels.
    pub bare: bool,
    /// Ticks with names, instead of ticks at round numbers.
    pub names: Vec<(f64, String)>,
}

impl Axis {
    /// An axis that fits its data.
    pub fn new(label: impl Into<String>) -> Self {
        Self { label: label.into(), ..Self::default() }
    }

    /// The limits of the axis for data in this range.
    fn limits(&self, data: Option<(f64, f64)>, room: f64) -> (f64, f64) {
        let (low, high) = widened(data.unwrap_or((0.0, 1.0)));
        let room = room * (high - low);
        let (mut low, mut high) = (low - room, high + room);
        if let Some((least, most)) = self.domain {
            let beyond = 0.03 * (most - least).min(high - low);
            (low, high) = (low.max(least - beyond), high.min(most + beyond));
        }
        let ends = (self.low.unwrap_or(low), self.high.unwrap_or(high));
        if ends.0 < ends.1 { widened(ends) } else { (ends.0, ends.0 + 1.0) }
    }

    fn ticks(&self, limits: (f64, f64), most: usize) -> Ticks {
        if !self.names.is_empty() {
            let (at, labels) = self.names.iter().map(|(at, name)| (*at, shorten(name, TICK.0, MAX_NAME))).unzip();
            return Ticks { at, labels, offset: String::new(), exponent: 0 };
        }
        let (least, greatest) = self.domain.unwrap_or((f64::NEG_INFINITY, f64::INFINITY));
        let slack = 1e-9 * (limits.1 - limits.0);
        let inside = (limits.0.max(least - slack), limits.1.min(greatest + slack));
        Ticks::new(if inside.0 < inside.1 { inside } else { limits }, most, self.whole)
    }
}

/// Axes and what is drawn between them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Panel {
    /// Title above the panel; empty for none.
    pub title: String,
    /// Note at the upper right; empty for none.
    pub note: String,
    /// The horizontal axis.
    pub x: Axis,
    /// The vertical axis.
    pub y: Axis,
    /// Its marks, the last one on top.
    pub marks: Vec<Mark>,
    /// Texts to the right of the panel, at these heights.
    pub beside: Vec<(f64, String)>,
    /// Its relative height; the first panel of a row counts.
    pub height: f64,
}

/// An entry of the legend.
#[derive(Clone, Debug, PartialEq)]
pub struct LegendEntry {
    /// Its label.
    pub label: String,
    /// The sample before the label.
    pub sample: LegendSample,
}

/// The sample of a mark in the legend.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum LegendSample {
    /// A line.
    Line(Stroke),
    /// A line with a point on it.
    Marked(Stroke),
    /// A filled area.
    Area(&'static str, f64),
    /// A line within an area of its color.
    Banded(Stroke),
    /// A point.
    Point(&'static str),
}

/// The opacity of bands.
const BAND: f64 = 0.2;
/// The opacity of bars.
const BAR: f64 = 0.85;

/// Panels under a title and a legend, over a caption.
#[derive(Clone, Debug, PartialEq)]
pub struct Figure {
    /// What the figure shows.
    pub title: String,
    /// The run that it shows.
    pub subtitle: String,
    /// The entries of the legend above the panels.
    pub legend: Vec<LegendEntry>,
    /// The panels, row by row.
    pub panels: Vec<Panel>,
    /// Panels in a row.
    pub columns: usize,
    /// Width and height of a panel with its labels in pixels, unless the size of the figure is given.
    pub cell: (f64, f64),
    /// The caption below.
    pub caption: String,
    /// Sentences about data that are not shown, which follow the caption.
    pub remark: String,
}

impl Figure {
    /// A figure of equal panels, with columns and size according to their number.
    pub fn of_equal(title: impl Into<String>, mut panels: Vec<Panel>) -> Self {
        panels.iter_mut().for_each(|panel| panel.height = 1.0);
        let (columns, cell) = match panels.len() {
            0 | 1 => (1, (640.0, 380.0)),
            2..=4 => (2, (410.0, 260.0)),
            _ => (3, (330.0, 215.0)),
        };
        let (subtitle, caption, remark) = (String::new(), String::new(), String::new());
        Self { title: title.into(), subtitle, legend: Vec::new(), panels, columns, cell, caption, remark }
    }

    /// Draws the figure in this size, or in its natural size.
    ///
    /// # Errors
    /// When the panels do not fit into the size.
    pub fn draw(&self, size: Option<(u32, u32)>) -> Result<Drawing, PlotError> {
        let columns = self.columns.clamp(1, self.panels.len().max(1));
        let wide = size.map_or(columns as f64 * self.cell.0 + 2.0 * MARGIN, |size| f64::from(size.0));
        let inner = wide - 2.0 * MARGIN;
        let titles = wrap(&self.title, TITLE.0, inner);
        let subtitles = wrap(&self.subtitle, SUBTITLE.0, inner);
        let captions = wrap(&format!("{} {}", self.caption, self.remark), CAPTION.0, inner);
        let keys = self.lines_of_keys(inner);
        let head = MARGIN
            + titles.len() as f64 * TITLE.1
            + subtitles.len() as f64 * SUBTITLE.1
            + if keys.is_empty() { 4.0 } else { keys.len() as f64 * LEGEND.1 + 10.0 };
        let foot = if captions.is_empty() { 8.0 } else { captions.len() as f64 * CAPTION.1 + 20.0 };
        let rows: Vec<&[Panel]> = self.panels.chunks(columns).collect();
        let weights: Vec<f64> = rows.iter().map(|row| row.first().map_or(1.0, |panel| panel.height)).collect();
        let total: f64 = weights.iter().sum();
        let high = size.map_or(head + foot + total * self.cell.1, |size| f64::from(size.1));
        let unit = (high - head - foot) / total;

        // Rows come first: the heights of the data areas determine the y ticks, whose widths determine the widths of the data areas.
        let mut frames: Vec<Vec<Frame>> = Vec::new();
        let mut top = head;
        for (row, weight) in rows.iter().zip(&weights) {
            let over = if row.iter().any(|panel| !panel.title.is_empty() || !panel.note.is_empty()) { 20.0 } else { 8.0 };
            let labelled = row.iter().any(|panel| !panel.x.label.is_empty());
            let under = if row.iter().all(|panel| panel.x.bare) { 6.0 } else { 4.0 + TICK.1 }
                + if labelled { LABEL.1 } else { 0.0 }
                + 8.0;
            let height = unit * weight - over - under;
            frames.push(row.iter().map(|panel| Frame::new(panel, top + over, height)).collect());
            top += unit * weight;
        }
        let left: Vec<f64> = (0..columns)
            .map(|column| frames.iter().filter_map(|row| row.get(column)).fold(0.0, |left: f64, frame| left.max(frame.left())))
            .collect();
        let right: Vec<f64> = (0..columns)
            .map(|column| frames.iter().filter_map(|row| row.get(column)).fold(0.0, |right: f64, frame| right.max(frame.right())))
            .collect();
        let width = (inner - left.iter().chain(&right).sum::<f64>()) / columns as f64 - 14.0;
        let tight = frames.iter().flatten().any(|frame| frame.height < MIN_PANEL.1);
        if !self.panels.is_empty() && (tight || width < MIN_PANEL.0) {
            return Err(PlotError::TooSmall { width: wide, height: high, panels: self.panels.len(), title: self.title.clone() });
        }

        let mut canvas = Canvas::new(wide, high, &format!("{}: {}", self.title, self.subtitle));
        let mut y = MARGIN;
        for line in &titles {
            canvas.text((MARGIN, y + TITLE.0 - 2.0), line, TITLE.0, INK, Anchor::Start, false);
            y += TITLE.1;
        }
        for line in &subtitles {
            canvas.text((MARGIN, y + SUBTITLE.0 - 1.0), line, SUBTITLE.0, FAINT_INK, Anchor::Start, false);
            y += SUBTITLE.1;
        }
        draw_keys(&mut canvas, &keys, y + 6.0);
        let mut number = 0;
        for row in &mut frames {
            let mut x = MARGIN;
            for ((frame, left), right) in row.iter_mut().zip(&left).zip(&right) {
                frame.place(x + left, width);
                frame.draw(&mut canvas, &format!("panel-{number}"));
                number += 1;
                x += left + width + right + 14.0;
            }
        }
        y = high - foot + 14.0;
        for line in &captions {
            canvas.text((MARGIN, y + CAPTION.0 - 2.0), line, CAPTION.0, FAINT_INK, Anchor::Start, false);
            y += CAPTION.1;
        }
        Ok(Drawing { width: wide, height: high, svg: canvas.finish() })
    }

    /// The legend in lines: x position, sample and shortened label of each entry.
    fn lines_of_keys(&self, inner: f64) -> Vec<Vec<(f64, LegendSample, String)>> {
        let mut lines: Vec<Vec<(f64, LegendSample, String)>> = Vec::new();
        let mut x = 0.0;
        for key in &self.legend {
            let label = shorten(&key.label, LEGEND.0, inner - SAMPLE - 6.0);
            let taken = SAMPLE + 6.0 + width(&label, LEGEND.0);
            if lines.is_empty() || x + taken > inner {
                lines.push(Vec::new());
                x = 0.0;
            }
            if let Some(line) = lines.last_mut() {
                line.push((x, key.sample, label));
            }
            x += taken + BETWEEN;
        }
        lines
    }
}

fn draw_keys(canvas: &mut Canvas, keys: &[Vec<(f64, LegendSample, String)>], mut y: f64) {
    for line in keys {
        let middle = y + 0.5 * LEGEND.1 - 2.0;
        for (x, sample, label) in line {
            let x = MARGIN + x;
            let ends = [(x, middle), (x + SAMPLE, middle)];
            canvas.open("key");
            match sample {
                LegendSample::Line(stroke) => canvas.path(&ends, stroke),
                LegendSample::Marked(stroke) => {
                    canvas.path(&ends, stroke);
                    canvas.circle((x + 0.5 * SAMPLE, middle), 3.0, stroke.color, 1.0);
                }
                LegendSample::Point(color) => canvas.circle((x + 0.5 * SAMPLE, middle), 4.0, color, 1.0),
                LegendSample::Area(color, opacity) => canvas.rect([x, middle - 5.5, SAMPLE, 11.0], color, *opacity),
                LegendSample::Banded(stroke) => {
                    canvas.rect([x, middle - 5.5, SAMPLE, 11.0], stroke.color, BAND);
                    canvas.path(&ends, stroke);
                }
            }
            canvas.close();
            canvas.text((x + SAMPLE + 6.0, middle + 4.2), label, LEGEND.0, INK, Anchor::Start, false);
        }
        y += LEGEND.1;
    }
}

/// A panel with its position.
struct Frame<'a> {
    panel: &'a Panel,
    /// Whether it has any data.
    filled: bool,
    limits: [(f64, f64); 2],
    y_ticks: Ticks,
    /// The label of y, in lines.
    y_label: Vec<String>,
    /// Left and upper edge, width and height of the area for data.
    x: f64,
    y: f64,
    width: f64,
    height: f64,
}

impl<'a> Frame<'a> {
    fn new(panel: &'a Panel, y: f64, height: f64) -> Self {
        let xs = bounds(panel.marks.iter().flat_map(Mark::xs));
        let ys = bounds(panel.marks.iter().flat_map(Mark::ys));
        let filled = xs.is_some() && (ys.is_some() || panel.y.bare);
        let limits = [panel.x.limits(xs, 0.02), panel.y.limits(ys, 0.06)];
        let most = (height / 24.0).round().clamp(2.0, 8.0) as usize;
        // A scale needs at least two ticks.
        let tries = (most..most + 4).map(|most| panel.y.ticks(limits[1], most)).find(|ticks| ticks.at.len() > 1);
        let y_ticks = tries.unwrap_or_else(|| panel.y.ticks(limits[1], most));
        let label = if filled && !panel.y.bare { y_ticks.complete(&panel.y.label) } else { panel.y.label.clone() };
        let mut y_label = wrap(&label, LABEL.0, height + 12.0);
        if y_label.len() > MAX_LABEL_LINES {
            y_label = vec![shorten(&label, LABEL.0, height + 12.0)];
        }
        Self { panel, filled, limits, y_ticks, y_label, x: 0.0, y, width: 0.0, height }
    }

    fn shows_y_labels(&self) -> bool {
        self.filled && !self.panel.y.bare
    }

    /// The width of the tick labels to the left of the data.
    fn tick_room(&self) -> f64 {
        if !self.shows_y_labels() {
            return 6.0;
        }
        self.y_ticks.labels.iter().map(|label| width(label, TICK.0)).fold(0.0, f64::max) + 8.0
    }

    /// The width of all labels to the left of the data.
    fn left(&self) -> f64 {
        self.tick_room() + if self.y_label.is_empty() { 4.0 } else { LINE * self.y_label.len() as f64 + 6.0 }
    }

    /// The width of the texts to the right of the data.
    fn right(&self) -> f64 {
        let widest = self.panel.beside.iter().map(|(_, text)| width(text, TICK.0)).fold(0.0, f64::max);
        if widest > 0.0 { widest + 8.0 } else { 0.0 }
    }

    fn place(&mut self, x: f64, width: f64) {
        (self.x, self.width) = (x, width);
    }

    /// As many ticks as fit without overlapping labels.
    fn x_ticks(&self) -> Ticks {
        let fits = |ticks: &Ticks| {
            let widest = ticks.labels.iter().map(|label| width(label, TICK.0)).fold(0.0, f64::max);
            let gap = match ticks.at.as_slice() {
                [first, second, ..] => self.px(*second) - self.px(*first),
                _ => self.width,
            };
            widest + 10.0 <= gap
        };
        let most = (self.width / 45.0).clamp(2.0, 10.0) as usize;
        let tries = (1..=most).rev().map(|most| self.panel.x.ticks(self.limits[0], most));
        let mut last = None;
        for ticks in tries {
            if fits(&ticks) {
                return ticks;
            }
            last = Some(ticks);
        }
        last.unwrap_or_else(|| self.panel.x.ticks(self.limits[0], 1))
    }

    fn px(&self, x: f64) -> f64 {
        let (low, high) = self.limits[0];
        self.x + self.width * (x - low) / (high - low)
    }

    fn py(&self, y: f64) -> f64 {
        let (low, high) = self.limits[1];
        self.y + self.height * (1.0 - (y - low) / (high - low))
    }

    fn at(&self, (x, y): (f64, f64)) -> (f64, f64) {
        (self.px(x), self.py(y))
    }

    fn draw(&self, canvas: &mut Canvas, id: &str) {
        let (right, bottom, panel) = (self.x + self.width, self.y + self.height, self.panel);
        let note = width(&panel.note, TICK.0);
        let title = shorten(&panel.title, LABEL.0, self.width - if note > 0.0 { note + 10.0 } else { 0.0 });
        canvas.text((self.x, self.y - 6.0), &title, LABEL.0, INK, Anchor::Start, false);
        if note > 0.0 {
            canvas.text((right, self.y - 6.0), &panel.note, TICK.0, FAINT_INK, Anchor::End, false);
        }
        let middle = (self.x + 0.5 * self.width, self.y + 0.5 * self.height);
        let mut x_label = panel.x.label.clone();
        if self.filled {
            let ticks = self.x_ticks();
            x_label = ticks.complete(&x_label);
            if self.shows_y_labels() {
                for (&at, label) in self.y_ticks.at.iter().zip(&self.y_ticks.labels) {
                    let y = self.py(at);
                    canvas.path(&[(self.x, y), (right, y)], &Stroke::solid(GRID, 0.8));
                    canvas.text((self.x - 6.0, y + 4.0), label, TICK.0, INK, Anchor::End, false);
                }
            }
            for (at, text) in &panel.beside {
                canvas.text((right + 8.0, self.py(*at) + 4.0), text, TICK.0, INK, Anchor::Start, false);
            }
            canvas.open_clipped(id, [self.x, self.y, self.width, self.height]);
            panel.marks.iter().for_each(|mark| self.draw_mark(canvas, mark));
            canvas.close();
            for (&at, label) in ticks.at.iter().zip(&ticks.labels) {
                let x = self.px(at);
                canvas.path(&[(x, bottom), (x, bottom + 4.0)], &Stroke::solid(AXIS, 0.9));
                if !panel.x.bare {
                    canvas.text((x, bottom + TICK.1), label, TICK.0, INK, Anchor::Middle, false);
                }
            }
        } else {
            canvas.text(middle, "no finite values", LABEL.0, FAINT_INK, Anchor::Middle, false);
        }
        canvas.path(&[(self.x, self.y), (self.x, bottom), (right, bottom)], &Stroke::solid(AXIS, 0.9));
        let below = bottom + if panel.x.bare { 6.0 } else { 4.0 + TICK.1 } + LABEL.1 - 5.0;
        let x_label = shorten(&x_label, LABEL.0, self.width + 10.0);
        canvas.text((middle.0, below), &x_label, LABEL.0, INK, Anchor::Middle, false);
        let mut beside = self.x - self.tick_room() - 6.0;
        for line in self.y_label.iter().rev() {
            canvas.text((beside, middle.1), line, LABEL.0, INK, Anchor::Middle, true);
            beside -= LINE;
        }
    }

    fn draw_mark(&self, canvas: &mut Canvas, mark: &Mark) {
        let (top, bottom) = (self.y, self.y + self.height);
        match mark {
            Mark::Line { points, stroke, marked } => {
                canvas.open("line");
                let few = *marked && points.iter().filter(|(x, y)| drawable(*x) && drawable(*y)).count() <= MARKED;
                for run in points.split(|(x, y)| !drawable(*x) || !drawable(*y)).filter(|run| !run.is_empty()) {
                    let run: Vec<(f64, f64)> = run.iter().map(|&point| self.at(point)).collect();
                    canvas.path(&thinned(&run), stroke);
                    if few || run.len() == 1 {
                        run.iter().for_each(|&point| canvas.circle(point, 2.6, stroke.color, stroke.opacity));
                    }
                }
                canvas.close();
            }
            Mark::Points { points, color, radius, opacity } => {
                canvas.open("points");
                for &point in points.iter().filter(|(x, y)| drawable(*x) && drawable(*y)) {
                    canvas.circle(self.at(point), *radius, color, *opacity);
                }
                canvas.close();
            }
            Mark::Band { points, color } => {
                canvas.open("band");
                let whole = |&(x, low, high): &(f64, f64, f64)| [x, low, high].into_iter().all(drawable);
                for run in points.split(|point| !whole(point)).filter(|run| run.len() > 1) {
                    let upper = run.iter().map(|&(x, _, high)| self.at((x, high))).collect::<Vec<_>>();
                    let lower = run.iter().map(|&(x, low, _)| self.at((x, low))).collect::<Vec<_>>();
                    let around: Vec<(f64, f64)> = thinned(&upper).into_iter().chain(thinned(&lower).into_iter().rev()).collect();
                    canvas.polygon(&around, color, BAND);
                }
                canvas.close();
            }
            Mark::Bars { bars, color } => {
                canvas.open("bars");
                for &(left, right, [low, high]) in
                    bars.iter().filter(|bar| [bar.0, bar.1, bar.2[0], bar.2[1]].into_iter().all(drawable))
                {
                    let ((x, y), (end, base)) = (self.at((left, high)), self.at((right, low)));
                    // A thin gap between adjacent bars.
                    canvas.rect([x + 0.5, y.min(base), (end - x - 1.0).max(0.5), (base - y).abs()], color, BAR);
                }
                canvas.close();
            }
            Mark::Whiskers { points, stroke } => {
                canvas.open("whiskers");
                for &(x, low, high) in points.iter().filter(|point| [point.0, point.1, point.2].into_iter().all(drawable)) {
                    let (x, low, high) = (self.px(x), self.py(low), self.py(high));
                    canvas.path(&[(x, low), (x, high)], stroke);
                    for end in [low, high] {
                        canvas.path(&[(x - 3.0, end), (x + 3.0, end)], stroke);
                    }
                }
                canvas.close();
            }
            Mark::Spans { spans, stroke } => {
                canvas.open("spans");
                for &(y, low, high) in spans.iter().filter(|span| [span.0, span.1, span.2].into_iter().all(drawable)) {
                    let y = self.py(y);
                    canvas.path(&[(self.px(low), y), (self.px(high), y)], stroke);
                }
                canvas.close();
            }
            Mark::Region(low, high) if drawable(*low) && drawable(*high) => {
                canvas.rect([self.px(*low), top, self.px(*high) - self.px(*low), self.height], SHADE, 0.35);
            }
            Mark::Vertical(x, stroke) if drawable(*x) => canvas.path(&[(self.px(*x), top), (self.px(*x), bottom)], stroke),
            Mark::Region(..) | Mark::Vertical(..) => {}
            Mark::Rug(xs, color) => {
                canvas.open("rug");
                let stroke = Stroke { opacity: 0.6, ..Stroke::solid(color, 1.0) };
                for x in xs.iter().filter(|x| drawable(**x)).map(|&x| self.px(x)) {
                    canvas.path(&[(x, bottom - 7.0), (x, bottom)], &stroke);
                }
                canvas.close();
            }
        }
    }
}

/// The sample of a shaded interval in the legend.
pub(super) const fn region() -> LegendSample {
    LegendSample::Area(SHADE, 0.35)
}

/// The sample of bars in the legend.
pub(super) const fn bars(color: &'static str) -> LegendSample {
    LegendSample::Area(color, BAR)
}

/// Thins a line in pixels without a visible change: in each column of half a pixel the first, lowest, highest and last point are kept.
fn thinned(points: &[(f64, f64)]) -> Vec<(f64, f64)> {
    const FEW: usize = 2000;
    if points.len() <= FEW {
        return points.to_vec();
    }
    let column = |point: &(f64, f64)| (2.0 * point.0).floor();
    let mut kept = Vec::new();
    for run in points.chunk_by(|a, b| column(a) == column(b)) {
        let of = |pick: fn(f64, f64) -> bool| {
            (0..run.len()).reduce(|best, next| if pick(run[next].1, run[best].1) { next } else { best }).unwrap_or(0)
        };
        let mut places = [0, of(|a, b| a < b), of(|a, b| a > b), run.len() - 1];
        places.sort_unstable();
        kept.extend(places.chunk_by(|a, b| a == b).map(|same| run[same[0]]));
    }
    kept
}

/// A drawn figure.
#[derive(Clone, Debug, PartialEq)]
pub struct Drawing {
    width: f64,
    height: f64,
    svg: String,
}

impl Drawing {
    /// The SVG document. Texts remain texts, which can be searched and edited.
    pub fn svg(&self) -> &str {
        &self.svg
    }

    /// Width and height of the SVG in pixels, at 96 per inch.
    pub fn size(&self) -> (f64, f64) {
        (self.width, self.height)
    }

    /// Renders a PNG file with `scale` pixels for each pixel of the SVG, in each direction.
    ///
    /// # Errors
    /// When it would have more than 100 million pixels, or rendering fails.
    pub fn png(&self, scale: f64) -> Result<Vec<u8>, PlotError> {
        let (width, height) = ((scale * self.width).round(), (scale * self.height).round());
        if !(width >= 1.0 && height >= 1.0 && width * height <= MAX_PIXELS) {
            return Err(PlotError::TooLarge { width, height });
        }
        let render = || -> Result<Vec<u8>, String> {
            let mut options = usvg::Options::default();
            options.fontdb_mut().load_font_data(FONT.to_vec());
            let tree = usvg::Tree::from_str(&self.svg, &options).map_err(|error| error.to_string())?;
            // The check above ensures that both are positive and small enough.
            let mut pixmap = Pixmap::new(width as u32, height as u32).ok_or("no memory for the picture")?;
            pixmap.fill(resvg::tiny_skia::Color::WHITE);
            resvg::render(&tree, Transform::from_scale(scale as f32, scale as f32), &mut pixmap.as_mut());
            pixmap.encode_png().map_err(|error| error.to_string())
        };
        render().map_err(PlotError::Png)
    }
}
