//! Properties of metrics by name: label with unit, range of possible values, and whether higher or lower is better.

/// Whether higher or lower values of a metric are better.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Better {
    /// Higher values are better.
    Higher,
    /// Lower values are better.
    Lower,
}

impl Better {
    /// The best of the finite values, if there are any.
    pub fn best(self, values: impl IntoIterator<Item = f64>) -> Option<f64> {
        let finite = values.into_iter().filter(|value| value.is_finite());
        match self {
            Self::Higher => finite.reduce(f64::max),
            Self::Lower => finite.reduce(f64::min),
        }
    }
}

/// Whether higher or lower values of a metric are better, if that is known.
pub fn better_direction(name: &str) -> Option<Better> {
    match name {
        "accuracy" | "worst_class" | "log_likelihood" | "log_posterior" => Some(Better::Higher),
        "ece" | "mce" | "rmse" | "ksd" | "perplexity" => Some(Better::Lower),
        _ if name.starts_with("mce_") => Some(Better::Lower),
        _ => None,
    }
}

/// The label of a column on an axis, with its unit.
pub fn axis_label(name: &str) -> String {
    match name {
        "log_likelihood" => "log-likelihood (nats per row)".into(),
        "worst_class" => "accuracy of the class with the lowest one".into(),
        "rmse" => "RMSE (units of the target)".into(),
        "ece" => "expected calibration error".into(),
        "mce" => "maximum calibration error".into(),
        "ksd" => "kernel Stein discrepancy".into(),
        "seconds" => "time (s)".into(),
        "round" => "round".into(),
        "bytes" => "bytes received and sent by agents".into(),
        _ => match (name.strip_suffix("_seconds"), name.strip_prefix("mce_")) {
            (Some(what), _) => format!("{} (s)", spaced(what)),
            (_, Some(rows)) if rows.parse::<u32>().is_ok() => {
                format!("maximum calibration error of bins with at least {rows} rows")
            }
            _ => spaced(name),
        },
    }
}

/// What an abbreviation stands for; none for names of metrics that are words.
pub fn meaning(name: &str) -> Option<String> {
    (["ece", "mce", "ksd", "worst_class"].contains(&name) || name.starts_with("mce_")).then(|| axis_label(name))
}

/// The smallest and largest possible value of a bounded metric.
pub fn possible_range(name: &str) -> Option<(f64, f64)> {
    match name {
        "accuracy" | "worst_class" | "ece" | "mce" => Some((0.0, 1.0)),
        _ if name.starts_with("mce_") => Some((0.0, 1.0)),
        "rmse" | "seconds" | "bytes" => Some((0.0, f64::INFINITY)),
        _ => None,
    }
}

fn spaced(name: &str) -> String {
    name.replace('_', " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metrics_have_readable_labels_and_directions() {
        let names = ["accuracy", "log_likelihood", "mce_20", "distil_seconds", "effective_number"].map(axis_label);
        let readable = [
            "accuracy",
            "log-likelihood (nats per row)",
            "maximum calibration error of bins with at least 20 rows",
            "distil (s)",
            "effective number",
        ];
        assert_eq!(names, readable);
        assert_eq!(["accuracy", "mce_20", "bandwidth"].map(better_direction), [Some(Better::Higher), Some(Better::Lower), None]);
        assert_eq!(["ece", "accuracy"].map(meaning), [Some("expected calibration error".into()), None]);
        let values = [0.5, f64::NAN, 2.0, f64::INFINITY, -f64::INFINITY];
        assert_eq!((Better::Higher.best(values), Better::Lower.best(values)), (Some(2.0), Some(0.5)));
        assert_eq!(Better::Lower.best([f64::NAN]), None);
    }
}
