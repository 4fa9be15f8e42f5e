//! The layout of dataset files: versions, tasks and splits, and how every file of `mpibayes import` is opened.

use crate::data::error::{DataError, Place, Result};
use crate::data::hdf;
use crate::data::self_contained::Refusal;
use std::io::Read;
use std::path::Path;

/// The layout version of dense rows.
pub(crate) const DENSE_VERSION: u32 = 2;
/// The layout version of sparse rows.
pub(crate) const SPARSE_VERSION: u32 = 3;
/// The layout version of dense rows with a rotation, which readers of version 2 would ignore.
pub(crate) const ROTATED_VERSION: u32 = 4;
/// The layout version of documents.
pub(crate) const DOCUMENTS_VERSION: u32 = 5;
/// The layout version of dense rows that end with an offset, a weight or a group, which readers of other versions would take for
/// features.
pub(crate) const EXTRA_VERSION: u32 = 6;
/// The value of the attribute `task` in a corpus file.
pub(crate) const TOPICS: &str = "topics";
/// The newest layout version of rows that this program reads.
pub(crate) const NEWEST_VERSION: u32 = EXTRA_VERSION;

/// The kind of prediction task: what the targets are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Task {
    /// Indices of classes.
    Classification,
    /// Numbers.
    Regression,
    /// Counts 0, 1, 2, ..., which are not scaled.
    Counts,
}

impl Task {
    /// The name in configurations and files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Classification => "classification",
            Self::Regression => "regression",
            Self::Counts => "counts",
        }
    }

    pub(crate) fn named(name: &str) -> Option<Self> {
        [Self::Classification, Self::Regression, Self::Counts].into_iter().find(|task| task.name() == name)
    }
}

/// Training or test data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Split {
    /// The rows that models are fitted to.
    Train = 0,
    /// The rows that predictions are evaluated on.
    Test = 1,
}

impl Split {
    /// The name of its group in the file.
    pub fn name(self) -> &'static str {
        match self {
            Self::Train => "train",
            Self::Test => "test",
        }
    }

    /// The path of an array of the split.
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

/// Opens a file of `mpibayes import` and reads its task; messages call the file a `kind`.
pub(crate) fn open_own(path: &Path, kind: &str) -> Result<(hdf5::File, String)> {
    // HDF5's own message for a missing file spans many lines.
    let opened = std::fs::File::open(path).map_err(DataError::io(path, "open"))?;
    let refuse = |what: String| DataError::content(path, Place::File, what);
    let found = opened.metadata().map_err(DataError::io(path, "open"))?;
    if found.is_dir() {
        return Err(refuse(format!("this is a folder, not a {kind}")));
    }
    if found.len() == 0 {
        return Err(refuse("this file is empty".into()));
    }
    let foreign = || refuse(format!("this is no {kind} of this program: make one with `mpibayes import`"));
    let unreadable = || {
        let mut begin = [0; hdf::SIGNATURE.len()];
        if (&opened).read_exact(&mut begin).is_ok() && begin == hdf::SIGNATURE {
            return refuse("this HDF5 file is cut short or damaged: copy it again".into());
        }
        foreign()
    };
    let file = hdf::open(path).map_err(|refusal| match refusal {
        Refusal::NotSelfContained(what) => DataError::content(path, Place::File, what),
        Refusal::Unchecked(cause) => DataError::hdf5(path, "open")(cause),
        Refusal::Unreadable(_) => unreadable(),
    })?;
    match hdf::read_text(&file, "format").as_deref() {
        Ok(hdf::DATASET_FORMAT) => {}
        Ok(hdf::RESULT_FORMAT) => return Err(refuse(format!("this is the result file of a run, not a {kind}"))),
        _ => return Err(foreign()),
    }
    let task = hdf::read_text(&file, "task").map_err(DataError::hdf5(path, "read the description"))?;
    Ok((file, task))
}
