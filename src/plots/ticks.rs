//! The positions and labels of the ticks of an axis.

/// Larger numbers are treated as infinite, so that differences stay finite.
const LARGEST: f64 = 1e300;
/// Smaller intervals are treated as empty.
const SMALLEST: f64 = 1e-290;
/// The most significant digits of a tick label; a common offset or exponent moves to the axis label.
const MAX_DIGITS: i32 = 6;

/// Whether a number can be drawn.
pub(super) fn drawable(value: f64) -> bool {
    value.is_finite() && value.abs() < LARGEST
}

/// The smallest and largest of the numbers that can be drawn.
pub(super) fn bounds(values: impl IntoIterator<Item = f64>) -> Option<(f64, f64)> {
    values.into_iter().filter(|value| drawable(*value)).fold(None, |bounds, value| {
        let (low, high) = bounds.unwrap_or((value, value));
        Some((low.min(value), high.max(value)))
    })
}

/// An interval wide enough to be an axis: a constant gets room on both sides.
pub(super) fn widened((low, high): (f64, f64)) -> (f64, f64) {
    let size = low.abs().max(high.abs());
    if high - low > (1e-12 * size).max(SMALLEST) {
        return (low, high);
    }
    let room = if size < SMALLEST { 1.0 } else { 0.05 * size };
    (low - room, high + room)
}

/// The ticks of an axis.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Ticks {
    /// Their positions in data coordinates.
    pub at: Vec<f64>,
    /// Their labels.
    pub labels: Vec<String>,
    /// The offset that is subtracted from all labels; empty for none.
    pub offset: String,
    /// The power of ten by which all labels are multiplied.
    pub exponent: i32,
}

impl Ticks {
    /// From one to `most` ticks at round numbers in [`low`, `high`], which must come from [`widened`]; only at whole numbers if `whole`.
    pub fn new((low, high): (f64, f64), most: usize, whole: bool) -> Self {
        let mut step = round_step((high - low) / most.max(1) as f64);
        if whole {
            step = step.max(1.0);
        }
        // Rounding must not drop a tick at the very end.
        let slack = 1e-9;
        let (first, last) = ((low / step - slack).ceil(), (high / step + slack).floor());
        let count = (last - first + 1.0).clamp(0.0, 1000.0) as usize;
        let mut at: Vec<f64> = (0..count).map(|k| (first + k as f64) * step).collect();
        if at.is_empty() {
            at.push(0.5 * (low + high));
        }
        Self::labelled(at, step)
    }

    fn labelled(at: Vec<f64>, step: f64) -> Self {
        let largest = |values: &[f64]| values.iter().fold(0.0_f64, |size, value| size.max(value.abs()));
        let (mut values, mut offset) = (at.clone(), String::new());
        if decade(largest(&values)) - decade(step) >= MAX_DIGITS {
            let base = values[0];
            values.iter_mut().for_each(|value| *value -= base);
            let decimals = decimals(step);
            offset = if decimals > 0 || base.abs() < 1e15 { plain(base, decimals) } else { format!("{base:e}") };
        }
        let size = decade(largest(&values).max(step));
        let exponent = if (-3..5).contains(&size) && decimals(step) <= 5 { 0 } else { size.div_euclid(3) * 3 };
        // In two factors, because values near 10^-290 need 10^309, which overflows.
        let half = exponent / 2;
        let scaled = |value: f64| value / 10.0_f64.powi(half) / 10.0_f64.powi(exponent - half);
        let decimals = decimals(scaled(step));
        let labels = values.iter().map(|&value| plain(if value.abs() < 1e-6 * step { 0.0 } else { scaled(value) }, decimals));
        Self { labels: labels.collect(), at, offset, exponent }
    }

    /// An axis label with the offset and the exponent of the tick labels.
    pub fn complete(&self, label: &str) -> String {
        let mut label = label.to_owned();
        if let Some(size) = self.offset.strip_prefix('−') {
            label = format!("{label} +\u{a0}{size}");
        } else if !self.offset.is_empty() {
            label = format!("{label} −\u{a0}{}", self.offset);
        }
        if self.exponent != 0 {
            let exponent: String = self.exponent.to_string().chars().map(superscript).collect();
            label = format!("{label} (×10{exponent})");
        }
        label
    }
}

/// The decade of a positive number: ⌊log10⌋, with 10^k itself in its own.
fn decade(size: f64) -> i32 {
    if size < SMALLEST {
        return 0;
    }
    // Between -291 and 300.
    (size.log10() + 1e-9).floor() as i32
}

/// Digits after the point that tell multiples of a step apart.
fn decimals(step: f64) -> usize {
    usize::try_from(-decade(step)).unwrap_or(0)
}

/// The smallest of ..., 1, 2, 5, 10, ... that is not smaller.
fn round_step(raw: f64) -> f64 {
    let unit = 10.0_f64.powi(decade(raw));
    [1.0, 2.0, 5.0, 10.0].into_iter().map(|digit| digit * unit).find(|&step| step >= raw * (1.0 - 1e-9)).unwrap_or(10.0 * unit)
}

/// A number with a true minus sign.
fn plain(value: f64, decimals: usize) -> String {
    let text = format!("{:.decimals$}", value.abs());
    if value < 0.0 && text.bytes().any(|digit| (b'1'..=b'9').contains(&digit)) { format!("−{text}") } else { text }
}

fn superscript(digit: char) -> char {
    match digit {
        '0' => '⁰',
        '1' => '¹',
        '2' => '²',
        '3' => '³',
        '4' => '⁴',
        '5' => '⁵',
        '6' => '⁶',
        '7' => '⁷',
        '8' => '⁸',
        '9' => '⁹',
        _ => '⁻',
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn shown(low: f64, high: f64, most: usize) -> (Vec<String>, String) {
        let ticks = Ticks::new(widened((low, high)), most, false);
        (ticks.labels.clone(), ticks.complete("x"))
    }

    #[test]
    fn ticks_are_round_and_short() {
        assert_eq!(shown(0.0, 1.0, 5), (["0.0", "0.2", "0.4", "0.6", "0.8", "1.0"].map(str::to_owned).to_vec(), "x".into()));
        assert_eq!(shown(-0.47, 0.31, 4).0, ["−0.4", "−0.2", "0.0", "0.2"]);
        assert_eq!(shown(-7.0, 13.0, 4).0, ["−5", "0", "5", "10"]);
        assert_eq!(shown(0.0, 12_345.0, 3).0, ["0", "5000", "10000"]);
        assert_eq!(shown(0.0, 3.2e6, 4), (["0", "1", "2", "3"].map(str::to_owned).to_vec(), "x (×10⁶)".into()));
        assert_eq!(shown(0.0, 2e-5, 2), (["0", "10", "20"].map(str::to_owned).to_vec(), "x (×10⁻⁶)".into()));
        // Twelve digits: the common offset moves to the axis label.
        let (labels, label) = shown(0.875_301_1, 0.875_301_4, 3);
        assert_eq!(
            (labels.as_slice(), label.as_str()),
            (&["0", "100", "200", "300"].map(str::to_owned)[..], "x −\u{a0}0.8753011 (×10⁻⁹)")
        );
        assert_eq!(shown(-1e9 - 2.0, -1e9, 2), (["0", "1", "2"].map(str::to_owned).to_vec(), "x +\u{a0}1000000002".into()));
    }

    #[test]
    fn whole_axes_have_whole_ticks() {
        assert_eq!(Ticks::new((0.9, 3.1), 8, true).labels, ["1", "2", "3"]);
        // The control.
        assert_eq!(Ticks::new((0.9, 3.1), 8, false).labels, ["1.0", "1.5", "2.0", "2.5", "3.0"]);
        assert_eq!(Ticks::new((4.75, 5.25), 8, true).labels, ["5"]);
    }

    #[test]
    fn constants_and_extremes_have_an_axis() {
        for value in [0.0, 1.0, -3.5, 1e-300, 5e-324, 1e299, -1e299, 0.1 + 0.2, 1e-280] {
            let (low, high) = widened((value, value));
            assert!(low < value && value < high, "{value}");
            let ticks = Ticks::new((low, high), 5, false);
            assert!(!ticks.at.is_empty() && ticks.at.len() <= 12, "{value}: {ticks:?}");
            assert!(ticks.labels.iter().all(|label| label.chars().count() <= 8), "{value}: {ticks:?}");
        }
        assert_eq!(bounds([f64::NAN, 2.0, f64::NEG_INFINITY, -1.0, f64::MAX]), Some((-1.0, 2.0)));
        assert_eq!(bounds([f64::NAN]), None);
        let wide = Ticks::new((-9e299, 9e299), 4, false);
        assert!(wide.at.iter().all(|at| at.is_finite()) && wide.labels.len() >= 2, "{wide:?}");
    }
}
