//! A canvas that writes SVG elements.

use super::font::FAMILIES;
use std::fmt::Write as _;

/// The style of a line.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Stroke {
    /// Its color, as `#rrggbb`.
    pub color: &'static str,
    /// Its width in pixels.
    pub width: f64,
    /// Lengths of dashes and gaps in pixels; empty for a solid line.
    pub dashes: &'static str,
    /// Opacity from 0 to 1.
    pub opacity: f64,
}

impl Stroke {
    /// A solid line.
    pub const fn solid(color: &'static str, width: f64) -> Self {
        Self { color, width, dashes: "", opacity: 1.0 }
    }

    fn attributes(&self) -> String {
        let mut text = format!("stroke=\"{}\" stroke-width=\"{}\"", self.color, number(self.width));
        if !self.dashes.is_empty() {
            text += &format!(" stroke-dasharray=\"{}\"", self.dashes);
        }
        if self.opacity < 1.0 {
            text += &format!(" stroke-opacity=\"{}\"", number(self.opacity));
        }
        text
    }
}

/// The alignment of a text at its position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Anchor {
    Start,
    Middle,
    End,
}

/// SVG elements, with coordinates in pixels from the upper left corner.
pub(super) struct Canvas(String);

impl Canvas {
    /// A white canvas with a title for browsers and screen readers.
    pub fn new(width: f64, height: f64, title: &str) -> Self {
        let (w, h) = (number(width), number(height));
        Self(format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{w}\" height=\"{h}\" viewBox=\"0 0 {w} {h}\" \
             font-family=\"{FAMILIES}\">\n<title>{}</title>\n<rect width=\"{w}\" height=\"{h}\" fill=\"#ffffff\"/>\n",
            escaped(title)
        ))
    }

    /// Returns the document.
    pub fn finish(mut self) -> String {
        self.0 += "</svg>\n";
        self.0
    }

    /// Opens a group that is clipped to a rectangle; `id` must be unique.
    pub fn open_clipped(&mut self, id: &str, [x, y, width, height]: [f64; 4]) {
        let [x, y, width, height] = [x, y, width, height].map(number);
        let rect = format!("<rect x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\"/>");
        self.line(&format!("<clipPath id=\"{id}\">{rect}</clipPath>\n<g clip-path=\"url(#{id})\">"));
    }

    /// Opens a group of marks of one kind.
    pub fn open(&mut self, class: &str) {
        self.line(&format!("<g class=\"{class}\">"));
    }

    /// Closes the last open group.
    pub fn close(&mut self) {
        self.line("</g>");
    }

    /// A line through at least two points.
    pub fn path(&mut self, points: &[(f64, f64)], stroke: &Stroke) {
        if points.len() > 1 {
            let attributes = stroke.attributes();
            self.line(&format!("<path d=\"{}\" fill=\"none\" stroke-linejoin=\"round\" {attributes}/>", outline(points)));
        }
    }

    /// A filled shape.
    pub fn polygon(&mut self, points: &[(f64, f64)], color: &str, opacity: f64) {
        self.line(&format!("<path d=\"{}Z\" fill=\"{color}\" fill-opacity=\"{}\"/>", outline(points), number(opacity)));
    }

    /// A filled rectangle.
    pub fn rect(&mut self, [x, y, width, height]: [f64; 4], color: &str, opacity: f64) {
        let [x, y, width, height, opacity] = [x, y, width, height, opacity].map(number);
        let at = format!("x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\"");
        self.line(&format!("<rect {at} fill=\"{color}\" fill-opacity=\"{opacity}\"/>"));
    }

    /// A filled circle.
    pub fn circle(&mut self, (x, y): (f64, f64), radius: f64, color: &str, opacity: f64) {
        let [x, y, radius, opacity] = [x, y, radius, opacity].map(number);
        self.line(&format!("<circle cx=\"{x}\" cy=\"{y}\" r=\"{radius}\" fill=\"{color}\" fill-opacity=\"{opacity}\"/>"));
    }

    /// A text at its baseline, rotated by 90° if `upwards`.
    pub fn text(&mut self, (x, y): (f64, f64), text: &str, size: f64, color: &str, anchor: Anchor, upwards: bool) {
        let [x, y, size] = [x, y, size].map(number);
        let anchor = match anchor {
            Anchor::Start => "start",
            Anchor::Middle => "middle",
            Anchor::End => "end",
        };
        let turned = if upwards { format!(" transform=\"rotate(-90 {x} {y})\"") } else { String::new() };
        let at = format!("x=\"{x}\" y=\"{y}\" font-size=\"{size}\" fill=\"{color}\" text-anchor=\"{anchor}\"{turned}");
        self.line(&format!("<text {at}>{}</text>", escaped(text)));
    }

    fn line(&mut self, element: &str) {
        self.0 += element;
        self.0.push('\n');
    }
}

fn outline(points: &[(f64, f64)]) -> String {
    let mut text = String::with_capacity(16 * points.len());
    for (place, (x, y)) in points.iter().enumerate() {
        let command = if place == 0 { 'M' } else { 'L' };
        // Writing to a String cannot fail.
        let _ = write!(text, "{command}{},{}", number(*x), number(*y));
    }
    text
}

/// A number with at most two decimals.
fn number(value: f64) -> String {
    let text = format!("{value:.2}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    if text == "-0" { "0".into() } else { text.into() }
}

/// A text with XML entities; control characters are invalid in XML and are replaced.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped += "&amp;",
            '<' => escaped += "&lt;",
            '>' => escaped += "&gt;",
            '"' => escaped += "&quot;",
            c if c.is_control() || ('\u{fffe}'..='\u{ffff}').contains(&c) => escaped.push('\u{fffd}'),
            c => escaped.push(c),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn svg_is_escaped_and_numbers_are_short() {
        assert_eq!([1.0, 0.126, -0.001, 1e3, -2.5].map(number), ["1", "0.13", "0", "1000", "-2.5"].map(str::to_owned));
        assert_eq!(escaped("a<b & \"c\"\u{1}"), "a&lt;b &amp; &quot;c&quot;\u{fffd}");
        let mut canvas = Canvas::new(10.0, 20.0, "a & b");
        canvas.path(&[(0.0, 0.5), (1.0, 2.0)], &Stroke::solid("#000000", 1.0));
        canvas.path(&[(0.0, 0.5)], &Stroke::solid("#000000", 1.0));
        let svg = canvas.finish();
        assert!(svg.contains("d=\"M0,0.5L1,2\"") && svg.contains("<title>a &amp; b</title>"), "{svg}");
        assert_eq!(svg.matches("<path").count(), 1);
    }
}
