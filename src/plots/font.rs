//! The built-in font of figures, and the widths of texts in it.

use skrifa::instance::{LocationRef, Size};
use skrifa::metrics::GlyphMetrics;
use skrifa::{FontRef, MetadataProvider as _};

/// DejaVu Sans, reduced to Latin, Greek and Cyrillic letters, numbers and mathematical symbols; its license is in the same folder.
pub(super) const FONT: &[u8] = include_bytes!("font/DejaVuSans.ttf");
/// The font families of an SVG; Verdana, which is common on other systems, has the same widths.
pub(super) const FAMILIES: &str = "'DejaVu Sans', Verdana, sans-serif";
/// The width of characters that are missing in the font, relative to the font size.
const UNKNOWN: f64 = 1.0;

/// The width of a text in pixels, at this font size.
pub(super) fn width(text: &str, size: f64) -> f64 {
    let Ok(font) = FontRef::new(FONT) else { return UNKNOWN * size * text.chars().count() as f64 };
    let charmap = font.charmap();
    let metrics = GlyphMetrics::new(&font, Size::new(1.0), LocationRef::default());
    let advance = |c: char| charmap.map(c).and_then(|glyph| metrics.advance_width(glyph)).map_or(UNKNOWN, f64::from);
    size * text.chars().map(advance).sum::<f64>()
}

/// Wraps a text into lines of at most this width: at spaces that are not non-breaking, and within words that are longer than a line.
pub(super) fn wrap(text: &str, size: f64, most: f64) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    let mut line = String::new();
    for word in text.split([' ', '\n']).filter(|word| !word.is_empty()) {
        let longer = if line.is_empty() { word.to_owned() } else { format!("{line} {word}") };
        if width(&longer, size) <= most {
            line = longer;
            continue;
        }
        if !line.is_empty() {
            lines.push(std::mem::take(&mut line));
        }
        for c in word.chars() {
            line.push(c);
            if width(&line, size) > most && line.chars().count() > 1 {
                line.pop();
                lines.push(std::mem::replace(&mut line, c.to_string()));
            }
        }
    }
    if !line.is_empty() {
        lines.push(line);
    }
    lines
}

/// A text with its middle replaced by an ellipsis if it is wider than `most`.
pub(super) fn shorten(text: &str, size: f64, most: f64) -> String {
    if width(text, size) <= most {
        return text.to_owned();
    }
    let all: Vec<char> = text.chars().collect();
    let with = |kept: usize| -> String {
        let (head, tail) = (kept.div_ceil(2), kept / 2);
        all[..head].iter().chain(&['…']).chain(&all[all.len() - tail..]).collect()
    };
    (0..all.len()).rev().map(with).find(|short| width(short, size) <= most).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn the_font_has_all_needed_characters() {
        let font = FontRef::new(FONT).unwrap();
        let lacking = "Aaé0−×⁻⁹…αθ°±≤·ß%".chars().find(|&c| font.charmap().map(c).is_none());
        assert_eq!(lacking, None);
        // Widths of DejaVu Sans in units of 1/2048: i 569, W 2025.
        assert!((width("i", 2048.0) - 569.0).abs() < 0.5 && (width("W", 2048.0) - 2025.0).abs() < 0.5);
        assert_eq!(width("漢", 10.0), 10.0);
    }

    #[test]
    fn wrapped_lines_fit_and_keep_the_text() {
        let text = "several words, and_a_very_long_one_that_does_not_fit_into_any_line_of_this_width, then an end";
        let lines = wrap(text, 12.0, 120.0);
        assert!(lines.len() > 3 && lines.iter().all(|line| width(line, 12.0) <= 120.0), "{lines:?}");
        assert_eq!(lines.concat().replace(' ', ""), text.replace(' ', ""));
        assert_eq!(wrap("", 12.0, 50.0), Vec::<String>::new());
        assert_eq!(wrap("a +\u{a0}1", 12.0, 30.0), ["a", "+\u{a0}1"]);
        assert_eq!(wrap("abc", 12.0, 0.0), ["a", "b", "c"]);
        let short = shorten(text, 12.0, 120.0);
        assert!(short.starts_with("several") && short.ends_with("end") && short.contains('…') && width(&short, 12.0) <= 120.0);
        assert_eq!(shorten("abc", 12.0, 120.0), "abc");
        assert_eq!(shorten("abc", 12.0, 0.0), "");
    }
}
