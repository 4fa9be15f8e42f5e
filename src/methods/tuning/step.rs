//! The value of a key `step`: `"auto"`, or a number.

use serde::{Deserialize, Serialize};

/// A step size that is given, or found before the run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(from = "StepInFile", into = "StepInFile")]
pub enum Step {
    /// Found before the run.
    #[default]
    Auto,
    /// Given.
    Size(f64),
}

impl Step {
    /// The given size, or `if_auto` for `"auto"`.
    pub fn size_or(self, if_auto: f64) -> f64 {
        match self {
            Self::Auto => if_auto,
            Self::Size(size) => size,
        }
    }
}

/// A step as a run file has it.
#[derive(Serialize, Deserialize)]
#[serde(untagged, expecting = "must be \"auto\" or a number")]
enum StepInFile {
    Word(Auto),
    Size(f64),
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Auto {
    Auto,
}

impl From<StepInFile> for Step {
    fn from(written: StepInFile) -> Self {
        match written {
            StepInFile::Word(Auto::Auto) => Self::Auto,
            StepInFile::Size(size) => Self::Size(size),
        }
    }
}

impl From<Step> for StepInFile {
    fn from(step: Step) -> Self {
        match step {
            Step::Auto => Self::Word(Auto::Auto),
            Step::Size(size) => Self::Size(size),
        }
    }
}
