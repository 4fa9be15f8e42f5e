//! Detects the format of a file from its first bytes.

use crate::data::error::Result;
use crate::data::readers::batches::BatchFormat;
use crate::data::readers::npy;
use crate::data::readers::npz;
use crate::data::readers::source::Source;
use crate::data::readers::tar::is_tar;
use std::path::Path;

/// A format of files with features, targets or both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// A table of numbers in text.
    Table,
    /// One NumPy array.
    Npy,
    /// NumPy arrays in an archive.
    Npz,
    /// Images or their labels.
    Idx,
    /// HDF5, such as datasets and results of this program.
    Hdf5,
    /// A table in columns.
    Batches(BatchFormat),
    /// A tar archive, such as those of CIFAR.
    Tar,
    /// An unsupported format, such as a spreadsheet; the text names it and says what to do.
    Other(&'static str),
}

/// Detects the format of a file, plain or gzip, from its content. A file of unknown format is taken for text.
///
/// # Errors
/// If the file cannot be read or is empty.
pub fn detect(path: &Path) -> Result<Format> {
    Ok(format_of(&Source::head(path, 512)?))
}

pub(crate) const SPREADSHEET: &str = "a spreadsheet: save it as CSV";

const IMAGE: &str = "an image: images are imported as PNG files in folders, one for each class, with `mpibayes import images FOLDER`; convert other formats";

/// A document of a corpus may be JSON, as it is text.
pub(crate) const JSON: &str = "JSON: save it as CSV or Parquet";

/// Whether this begins like an object or a list of objects in JSON.
fn is_json(head: &[u8]) -> bool {
    let head = head.trim_ascii_start();
    let inner = head.strip_prefix(b"[").map_or(head, <[u8]>::trim_ascii_start);
    inner.strip_prefix(b"{").is_some_and(|inside| inside.trim_ascii_start().starts_with(b"\""))
}

/// The format of what begins with these bytes.
pub(crate) fn format_of(head: &[u8]) -> Format {
    match head {
        [b'P', b'K', 5, 6, ..] => Format::Npz,
        head if head.starts_with(npy::MAGIC) => Format::Npy,
        head if head.starts_with(npz::MAGIC) => {
            // The first member of a spreadsheet depends on the program that has written it. Names start at byte 30.
            let office = ["[Content_Types].xml", "_rels/", "docProps/", "xl/", "mimetype"];
            let name = head.get(30..).unwrap_or_default();
            if office.iter().any(|known| name.starts_with(known.as_bytes())) { Format::Other(SPREADSHEET) } else { Format::Npz }
        }
        [0, 0, 8..=14, ..] => Format::Idx,
        head if head.starts_with(b"\x89HDF\r\n\x1a\n") => Format::Hdf5,
        head if head.starts_with(b"PAR1") => Format::Batches(BatchFormat::Parquet),
        head if head.starts_with(b"ARROW1") => Format::Batches(BatchFormat::ArrowFile),
        head if head.starts_with(&[0xff; 4]) => Format::Batches(BatchFormat::ArrowStream),
        head if is_tar(head) => Format::Tar,
        head if head.starts_with(b"FEA1") => Format::Other("a Feather file of the first version: save it as CSV"),
        head if head.starts_with(b"\x89PNG") || head.starts_with(&[0xff, 0xd8, 0xff]) => Format::Other(IMAGE),
        head if is_json(head) => Format::Other(JSON),
        _ => Format::Table,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn formats_are_detected_from_content() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x");
        let zip = |member: &[u8]| [b"PK\x03\x04".as_slice(), &[0; 26], member].concat();
        let (office, of_python, arrays) = (zip(b"[Content_Types].xml"), zip(b"docProps/app.xml"), zip(b"x.npy"));
        let archive = [b"data_batch_1.bin".as_slice(), &[0; 241], b"ustar\0"].concat();
        for (content, format) in [
            (b"\x93NUMPY\x01\0".as_slice(), Format::Npy),
            (b"PK\x03\x04xxxx", Format::Npz),
            (&office, Format::Other(SPREADSHEET)),
            (&of_python, Format::Other(SPREADSHEET)),
            (b"\x89PNG\r\n\x1a\n", Format::Other(IMAGE)),
            (b" [\n{ \"a\": 1}]", Format::Other(JSON)),
            (b"{1}", Format::Table),
            (&arrays, Format::Npz),
            (b"PAR1", Format::Batches(BatchFormat::Parquet)),
            (b"ARROW1", Format::Batches(BatchFormat::ArrowFile)),
            (&[0xff; 4], Format::Batches(BatchFormat::ArrowStream)),
            (b"FEA1", Format::Other("a Feather file of the first version: save it as CSV")),
            (&[0, 0, 8, 3], Format::Idx),
            (&archive, Format::Tar),
            (b"\x89HDF\r\n\x1a\n", Format::Hdf5),
            (b"1,2", Format::Table),
            (b"1", Format::Table),
        ] {
            std::fs::write(&path, content).unwrap();
            assert_eq!(detect(&path).unwrap(), format);
        }
    }
}
