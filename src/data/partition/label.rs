//! Labels of classes as they are typed in a run file.

/// A class as it is typed: its label, with or without quotes if that is a number.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(untagged, expecting = "must be a number, or text in quotes")]
pub enum Label {
    /// `3`
    Whole(i64),
    /// `0.5`
    Number(f64),
    /// `"shirt"`
    Text(String),
}

impl Label {
    pub(super) fn matches(&self, class: &str) -> bool {
        let number = || class.parse::<f64>().ok();
        match self {
            // Whole numbers beyond 2^53 are compared as doubles, which may round them to the same value.
            Self::Whole(label) => label.to_string() == class || number() == Some(*label as f64),
            Self::Number(label) => number() == Some(*label),
            Self::Text(label) => label == class,
        }
    }
}

impl std::fmt::Display for Label {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Whole(label) => write!(f, "{label}"),
            Self::Number(label) => write!(f, "{label}"),
            Self::Text(label) => write!(f, "{label:?}"),
        }
    }
}
