//! Formatting of numbers, durations, sizes and tables for the terminal, and of named values for JSON.

use num_traits::ToPrimitive;
use serde::Serializer;

/// Serializes named values as a JSON object in their order, with NaN as `null`.
pub(crate) fn as_object<S: Serializer>(values: &[(String, f64)], serializer: S) -> std::result::Result<S::Ok, S::Error> {
    serializer.collect_map(values.iter().map(|(name, value)| (name, value)))
}

/// A count with commas between thousands: `60,000`.
pub fn count(number: impl ToPrimitive) -> String {
    let digits = number.to_u64().unwrap_or(0).to_string();
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A count with its noun, in the plural unless it is 1: `1 agent`, `1,200 rows`, `2 classes`.
pub fn counted(number: impl ToPrimitive, noun: &str) -> String {
    let ending = match (number.to_u64(), noun.ends_with('s')) {
        (Some(1), _) => "",
        (_, true) => "es",
        (_, false) => "s",
    };
    format!("{} {noun}{ending}", count(number))
}

/// The first digits of a digest, enough to recognize it.
pub fn short_digest(digest: &str) -> &str {
    digest.get(..12).unwrap_or(digest)
}

/// A size in the largest binary unit of which there is at least one: `47.1 MiB`.
pub fn bytes(bytes: u64) -> String {
    const UNITS: [&str; 5] = ["KiB", "MiB", "GiB", "TiB", "PiB"];
    if bytes < 1024 {
        return format!("{bytes} B");
    }
    // One decimal is shown, so rounding to 53 bits does no harm.
    let mut size = bytes as f64 / 1024.0;
    let mut unit = 0;
    // 1023.95 would be written as 1024.0.
    while size >= 1023.95 && unit + 1 < UNITS.len() {
        size /= 1024.0;
        unit += 1;
    }
    format!("{size:.1} {}", UNITS[unit])
}

/// The time now: ISO 8601, UTC, to the second.
pub fn iso_time_now() -> String {
    // A clock before 1970 must not be an error.
    iso_time(std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).map_or(0, |since| since.as_secs()))
}

/// ISO 8601 of seconds since 1970, by the calendar of Howard Hinnant, "chrono-Compatible Low-Level Date Algorithms".
pub fn iso_time(seconds: u64) -> String {
    let (days, second) = (seconds / 86_400 + 719_468, seconds % 86_400);
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

/// A duration: `0.42 s`, `12.3 s`, `3 min 05 s`, `2 h 07 min`.
pub fn seconds(seconds: f64) -> String {
    if !seconds.is_finite() || seconds < 0.0 {
        return format!("{seconds} s");
    }
    if seconds < 9.995 {
        return format!("{seconds:.2} s");
    }
    if seconds < 99.95 {
        return format!("{seconds:.1} s");
    }
    // Finite and not negative; beyond 2^64 seconds the conversion saturates.
    let whole = seconds.round() as u64;
    if whole < 3600 {
        format!("{} min {:02} s", whole / 60, whole % 60)
    } else {
        format!("{} h {:02} min", whole / 3600, whole / 60 % 60)
    }
}

/// A share in percent with this many decimals: `12.5 %`; `-` if it is not known.
pub fn percent(share: f64, decimals: usize) -> String {
    if share.is_finite() { format!("{:.decimals$} %", 100.0 * share) } else { "-".into() }
}

/// A number with four decimals, or with four significant digits if it is very small or large; `-` for NaN.
pub fn value(value: f64) -> String {
    let size = value.abs();
    if value.is_nan() {
        "-".into()
    } else if value.is_finite() && value == value.trunc() && size < 1e9 {
        format!("{value}")
    } else if (1e-3..1e5).contains(&size) {
        format!("{value:.4}")
    } else {
        format!("{value:.3e}")
    }
}

/// A number with its interval, `1.74 (1.46 to 2.07)`: with two decimals, or as many as tell the number and the ends apart.
pub fn with_interval([center, low, high]: [f64; 3]) -> String {
    let is_usual = [center, low, high].into_iter().all(|number| number == 0.0 || (0.005..1000.0).contains(&number.abs()));
    let tells_apart = |decimals: &usize| {
        let differ = |a: f64, b: f64| a == b || format!("{a:.decimals$}") != format!("{b:.decimals$}");
        low < high && differ(low, center) && differ(center, high) && differ(low, high)
    };
    match (2..=6).find(tells_apart).filter(|_| is_usual) {
        Some(decimals) => format!("{center:.decimals$} ({low:.decimals$} to {high:.decimals$})"),
        None => format!("{} ({} to {})", value(center), value(low), value(high)),
    }
}

/// A column of numbers, formatted as by [`value`] but all in the same way, so that their decimal points are aligned.
pub fn values(values: &[f64]) -> Vec<String> {
    let finite = || values.iter().filter(|value| value.is_finite());
    let whole = finite().all(|value| *value == value.trunc() && value.abs() < 1e9);
    let plain = finite().all(|value| *value == 0.0 || value.abs() < 1e5) && finite().any(|value| value.abs() >= 1e-3);
    values
        .iter()
        .map(|&number| match number {
            _ if !number.is_finite() => value(number),
            _ if whole => format!("{number}"),
            _ if plain => format!("{number:.4}"),
            _ => format!("{number:.3e}"),
        })
        .collect()
}

/// A table with a heading for each column, indented by two spaces. A first column of names is aligned left, everything else right.
pub fn table(columns: &[(String, Vec<String>)]) -> String {
    let widths: Vec<usize> = columns
        .iter()
        .map(|(heading, cells)| cells.iter().chain([heading]).map(|cell| cell.chars().count()).max().unwrap_or(0))
        .collect();
    let rows = columns.iter().map(|(_, cells)| cells.len()).max().unwrap_or(0);
    let names = columns.iter().take(1).flat_map(|(_, cells)| cells).any(|cell| cell.starts_with(char::is_alphabetic));
    let line = |cell: &dyn Fn(usize) -> String| {
        let pad = |(j, &width): (usize, &usize)| match j {
            0 if names => format!("{:width$}", cell(j)),
            _ => format!("{:>width$}", cell(j)),
        };
        format!("  {}\n", widths.iter().enumerate().map(pad).collect::<Vec<_>>().join("  "))
    };
    let mut text = line(&|j| columns[j].0.clone());
    for row in 0..rows {
        text.push_str(&line(&|j| columns[j].1.get(row).cloned().unwrap_or_default()));
    }
    text
}

/// Names and values in two columns, indented by two spaces.
pub fn pairs<N: AsRef<str>>(pairs: &[(N, String)]) -> String {
    let width = pairs.iter().map(|(name, _)| name.as_ref().chars().count()).max().unwrap_or(0);
    pairs.iter().map(|(name, text)| format!("  {:width$}  {text}\n", name.as_ref())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_iso() {
        assert_eq!(iso_time(0), "1970-01-01T00:00:00Z");
        assert_eq!(iso_time(951_782_400 + 86_399), "2000-02-29T23:59:59Z");
        assert_eq!(iso_time(1_700_000_000), "2023-11-14T22:13:20Z");
    }

    #[test]
    fn numbers_are_readable() {
        assert_eq!([0_u64, 999, 1000, 60_000, 1_234_567].map(count), ["0", "999", "1,000", "60,000", "1,234,567"]);
        assert_eq!([0, 1023, 1024, 1536, 1_048_575].map(bytes), ["0 B", "1023 B", "1.0 KiB", "1.5 KiB", "1.0 MiB"]);
        assert_eq!(bytes(u64::MAX), "16384.0 PiB");
        let times = [0.0, 0.424, 9.996, 99.94, 99.96, 185.4, 3599.6, 7620.0].map(seconds);
        assert_eq!(times, ["0.00 s", "0.42 s", "10.0 s", "99.9 s", "1 min 40 s", "3 min 05 s", "1 h 00 min", "2 h 07 min"]);
        let numbers = [0.0, 3.0, -0.45678, 1.23456e-5, 123456.7, f64::NAN, f64::INFINITY].map(value);
        assert_eq!(numbers, ["0", "3", "-0.4568", "1.235e-5", "1.235e5", "-", "inf"]);
    }

    #[test]
    fn intervals_have_as_many_decimals_as_tell_their_ends_apart() {
        assert_eq!(with_interval([1.7358, 1.4625, 2.0748]), "1.74 (1.46 to 2.07)");
        assert_eq!(with_interval([1.000_003_8, 0.999_98, 1.000_02]), "1.00000 (0.99998 to 1.00002)");
        assert_eq!(with_interval([3.859e-6, -1.434e-5, 2.272e-5]), "3.859e-6 (-1.434e-5 to 2.272e-5)");
        assert_eq!(with_interval([-2.89, -3.9898, -1.8559]), "-2.89 (-3.99 to -1.86)");
        assert_eq!(with_interval([1.0191, 1.0161, 1.0229]), "1.019 (1.016 to 1.023)");
        assert_eq!(with_interval([f64::NAN; 3]), "- (- to -)");
    }

    #[test]
    fn decimal_points_of_a_column_are_aligned() {
        assert_eq!(values(&[1.0, 0.5, 0.00001, f64::NAN]), ["1.0000", "0.5000", "0.0000", "-"]);
        assert_eq!(values(&[1e-7, 2.5e-8]), ["1.000e-7", "2.500e-8"]);
        assert_eq!(values(&[10.0, 20.0]), ["10", "20"]);
    }

    #[test]
    fn tables_are_aligned() {
        let text = table(&[("a".into(), vec!["1".into(), "10".into()]), ("long".into(), vec!["x".into()])]);
        assert_eq!(text, "   a  long\n   1     x\n  10      \n");
        assert_eq!(pairs(&[("a", "x".into()), ("bcd", "y".into())]), "  a    x\n  bcd  y\n");
    }
}
