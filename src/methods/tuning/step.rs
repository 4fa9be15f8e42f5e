//! The value of a key `step`: `"auto"`, or a number.

use serde::{Deserialize, Serialize};

/// A step size that is given, or found before the run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(from = "Written", into = "Written")]
pub enum Step {
    /// Found before the run.
    #[default]
    Auto,
    /// Given.
    Size(f64),
}

impl Step {
    /// The given step size; `unless_found` where it is to be found.
    pub fn size_or(self, unless_found: f64) -> f64 {
        match self {
            Self::Auto => unless_found,
            Self::Size(size) => size,
        }
    }
}

/// A step as a run file has it.
#[derive(Serialize, Deserialize)]
#[serde(untagged, expecting = "must be \"auto\" or a number")]
enum Written {
    Word(Auto),
    Size(f64),
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Auto {
    Auto,
}

impl From<Written> for Step {
    fn from(written: Written) -> Self {
        match written {
            Written::Word(Auto::Auto) => Self::Auto,
            Written::Size(size) => Self::Size(size),
        }
    }
}

impl From<Step> for Written {
    fn from(step: Step) -> Self {
        match step {
            Step::Auto => Self::Word(Auto::Auto),
            Step::Size(size) => Self::Size(size),
        }
    }
}
