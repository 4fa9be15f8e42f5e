//! Means over seeds, and how they are written in results.

/// A mean and its standard error; not a number where one of them is none.
pub fn mean_and_error(values: &[f64]) -> (f64, f64) {
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    let square = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>();
    (mean, (square / (count * (count - 1.0))).sqrt())
}

/// A mean with its standard error, as it is written.
pub fn told(values: &[f64]) -> String {
    let (mean, error) = mean_and_error(values);
    format!("{mean:.4} ± {error:.4}")
}

/// A bound with at most four digits after the point.
pub fn short(bound: f64) -> String {
    ((bound * 1e4).round() / 1e4).to_string()
}

/// The differences of two lists, seed by seed.
pub fn minus(one: &[f64], other: &[f64]) -> Vec<f64> {
    one.iter().zip(other).map(|(one, other)| one - other).collect()
}
