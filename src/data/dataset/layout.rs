//! The layout of dataset files: versions, tasks and splits, and how every file of `mpibayes import` is opened.

use crate::data::error::{DataError, Place, Result};
use crate::data::hdf;
use std::path::Path;

/// The root attribute `format` of a dataset.
pub(crate) const FORMAT: &str = "mpibayes-dataset";
/// The version of the layout of dense rows.
pub(crate) const DENSE_VERSION: u32 = 2;
/// The version of the layout of sparse rows.
pub(crate) const SPARSE_VERSION: u32 = 3;
/// The version of the layout of dense rows with a rotation: older programs would pass over it.
pub(crate) const ROTATED_VERSION: u32 = 4;
/// The attribute `task` of a corpus of documents.
pub(crate) const TOPICS: &str = "topics";
/// The newest that is read.
pub(crate) const NEWEST_VERSION: u32 = ROTATED_VERSION;

/// What the targets of a dataset are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Task {
    /// Indices of classes.
    Classification,
    /// Numbers.
    Regression,
}

impl Task {
    /// Its name in configuration and files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Classification => "classification",
            Self::Regression => "regression",
        }
    }

    pub(crate) fn named(name: &str) -> Option<Self> {
        [Self::Classification, Self::Regression].into_iter().find(|task| task.name() == name)
    }
}

/// A part of a dataset.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Split {
    /// The rows that agents learn from.
    Train = 0,
    /// The rows that predictions are judged on.
    Test = 1,
}

impl Split {
    /// Its name: the group in the file.
    pub fn name(self) -> &'static str {
        match self {
            Self::Train => "train",
            Self::Test => "test",
        }
    }

    /// A list of the split.
    pub(crate) fn list(self, name: &str) -> String {
        format!("{}/{name}", self.name())
    }

    pub(crate) fn x(self) -> &'static str {
        match self {
            Self::Train => "train/x",
            Self::Test => "test/x",
        }
    }

    pub(crate) fn y(self) -> &'static str {
        match self {
            Self::Train => "train/y",
            Self::Test => "test/y",
        }
    }
}

/// Opens a file that `mpibayes import` has made, which its reader calls a `thing`; gives its task, too.
pub(crate) fn open_own(path: &Path, thing: &str) -> Result<(hdf5::File, String)> {
    // HDF5's own message for a missing file runs over many lines.
    std::fs::File::open(path).map_err(DataError::io(path, "open"))?;
    let foreign = || {
        let what = format!("this is no {thing} of this program: make one with `mpibayes import`");
        DataError::content(path, Place::File, what)
    };
    let file = hdf::open(path).map_err(|_| foreign())?;
    if hdf::read_text(&file, "format").map_err(|_| foreign())? != FORMAT {
        return Err(foreign());
    }
    let task = hdf::read_text(&file, "task").map_err(DataError::hdf5(path, "read the description"))?;
    Ok((file, task))
}
