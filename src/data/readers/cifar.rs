//! Reads CIFAR-10 and CIFAR-100 images: binary records of one or two labels and three planes of 32 × 32 bytes.
//!
//! The format is the one of A. Krizhevsky, "Learning Multiple Layers of Features from Tiny Images" (2009): the label (in CIFAR-100 a
//! coarse and a fine one), and then the red, the green and the blue plane, each row by row.

use crate::data::error::{DataError, Place, Result};
use crate::data::readers::source::read_error;
use std::io::Read;
use std::path::Path;

/// The height and the width of an image.
pub(crate) const SIDE: usize = 32;
/// The number of planes.
pub(crate) const CHANNELS: usize = 3;
/// The number of bytes of an image.
const PIXELS: usize = CHANNELS * SIDE * SIDE;
/// The number of bytes that are read at once to find the format.
const CHUNK: usize = 1 << 16;

/// A format of records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CifarFormat {
    /// One label of 10 classes.
    Ten,
    /// A label of 20 coarse classes, and one of 100 fine classes.
    Hundred,
}

impl CifarFormat {
    const ALL: [Self; 2] = [Self::Ten, Self::Hundred];

    /// Its name.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Ten => "CIFAR-10",
            Self::Hundred => "CIFAR-100",
        }
    }

    /// The number of classes of each label of a record.
    pub(crate) fn classes(self) -> &'static [u8] {
        match self {
            Self::Ten => &[10],
            Self::Hundred => &[20, 100],
        }
    }

    /// The number of bytes of a record.
    fn record_size(self) -> usize {
        self.classes().len() + PIXELS
    }

    /// The format of a file with this name in the original archives.
    fn by_name(path: &Path) -> Option<Self> {
        let name = path.file_name()?.to_str()?;
        // Members of an archive have the name of the archive before their own.
        let name = name.strip_suffix(']').and_then(|name| name.rsplit('[').next()).unwrap_or(name);
        match name.strip_suffix(".gz").unwrap_or(name) {
            "train.bin" | "test.bin" => Some(Self::Hundred),
            name if name.starts_with("data_batch") || name.starts_with("test_batch") => Some(Self::Ten),
            _ => None,
        }
    }
}

/// Finds the format from the size of the file and its labels. If these leave both formats possible, the name of the file decides.
///
/// # Errors
/// If the size fits neither format, the format cannot be decided, or the file cannot be read.
pub(crate) fn detect_cifar(path: &Path, reader: &mut dyn Read) -> Result<CifarFormat> {
    let mut bytes = 0_usize;
    let mut has_labels = CifarFormat::ALL.map(|_| true);
    let mut chunk = Vec::with_capacity(CHUNK);
    loop {
        chunk.clear();
        // The cast is lossless.
        let read = (&mut *reader).take(CHUNK as u64).read_to_end(&mut chunk);
        read.map_err(|error| read_error(path, Place::File, error))?;
        if chunk.is_empty() {
            break;
        }
        for (format, has_labels) in CifarFormat::ALL.into_iter().zip(&mut has_labels) {
            let size = format.record_size();
            for (index, &classes) in format.classes().iter().enumerate() {
                // The first byte of the chunk that is this label of a record.
                let first = (index + size - bytes % size) % size;
                *has_labels &= chunk.iter().skip(first).step_by(size).all(|&label| label < classes);
            }
        }
        bytes += chunk.len();
    }
    let wrong = |what: String| DataError::content(path, Place::File, what);
    let of_size: Vec<(CifarFormat, bool)> = CifarFormat::ALL
        .into_iter()
        .zip(has_labels)
        .filter(|(format, _)| bytes > 0 && bytes.is_multiple_of(format.record_size()))
        .collect();
    let possible: Vec<CifarFormat> = of_size.iter().filter(|(_, has_labels)| *has_labels).map(|(format, _)| *format).collect();
    match (&possible[..], &of_size[..]) {
        (&[format], _) => Ok(format),
        // The reader of records says where the label is that does not fit.
        (&[], &[(format, _)]) => Ok(format),
        (&[], &[]) => Err(wrong(format!(
            "{bytes} bytes are neither records of CIFAR-10 (3,073 bytes each) nor of CIFAR-100 (3,074 bytes each), and this is no IDX \
             file: if it should be one of them, fetch it again; other images are folders of PNG files, or arrays (`mpibayes import arrays`)"
        ))),
        _ => CifarFormat::by_name(path).ok_or_else(|| {
            wrong("these may be records of CIFAR-10 or of CIFAR-100: rename the file to data_batch_1.bin (CIFAR-10) or train.bin (CIFAR-100)".into())
        }),
    }
}

/// A record.
pub(crate) struct CifarRecord<'a> {
    /// The labels: of CIFAR-100 the coarse and the fine one.
    pub labels: &'a [u8],
    /// The red, the green and the blue plane.
    pub planes: &'a [u8],
    /// Its number from 1.
    pub number: u64,
}

/// Calls `each` with every record, until it returns `false`.
///
/// # Errors
/// If a record is cut short or has a label that does not exist, or the file cannot be read; and those of `each`.
pub(crate) fn for_records(
    path: &Path,
    reader: &mut dyn Read,
    format: CifarFormat,
    mut each: impl FnMut(CifarRecord<'_>) -> Result<bool>,
) -> Result<()> {
    let mut record = Vec::with_capacity(format.record_size());
    for number in 1.. {
        record.clear();
        // Records are small.
        let read = (&mut *reader).take(format.record_size() as u64).read_to_end(&mut record);
        read.map_err(|error| read_error(path, Place::Record(number), error))?;
        if record.is_empty() {
            break;
        }
        if record.len() < format.record_size() {
            let what = format!("the file ends inside this record of {}: fetch the file again", format.name());
            return Err(DataError::content(path, Place::Record(number), what));
        }
        let (labels, planes) = record.split_at(format.classes().len());
        if let Some((label, classes)) = labels.iter().zip(format.classes()).find(|(label, classes)| label >= classes) {
            let what = format!(
                "the label {label}, but labels of {} are 0 to {} here: the file is damaged, or of another format",
                format.name(),
                classes - 1
            );
            return Err(DataError::content(path, Place::Record(number), what));
        }
        if !each(CifarRecord { labels, planes, number })? {
            break;
        }
    }
    Ok(())
}
