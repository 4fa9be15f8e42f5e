//! Arrays in memory, or in temporary files for corpora that are larger than memory.
//!
//! The file of an array is mapped into memory: the system reads what is used, and takes the memory back when it is needed elsewhere. The files
//! have no names and disappear with the process. They lie in the folder for temporary files. A disk that fails while a mapped file is read or
//! written ends the process with the signal SIGBUS, not with an error.

use bytemuck::Pod;
use memmap2::{Mmap, MmapMut};
use std::fs::File;
use std::io::{self, BufWriter, ErrorKind, Write};
use std::ops::{Deref, DerefMut, Range};
use std::sync::Arc;

/// Where the tokens of a corpus are during a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Residence {
    /// In memory.
    Memory,
    /// In temporary files.
    Files,
}

/// An array that does not change, in memory or a part of a file.
#[derive(Clone, Debug)]
pub(super) enum StoredArray<T> {
    Memory(Vec<T>),
    File { file: Arc<Mmap>, bytes: Range<usize>, values: std::marker::PhantomData<T> },
}

impl<T: Pod> Deref for StoredArray<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        match self {
            Self::Memory(values) => values,
            Self::File { file, bytes, .. } => bytemuck::cast_slice(&file[bytes.clone()]),
        }
    }
}

impl<T: Pod + PartialEq> PartialEq for StoredArray<T> {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl<T> From<Vec<T>> for StoredArray<T> {
    fn from(values: Vec<T>) -> Self {
        Self::Memory(values)
    }
}

/// A temporary file to which arrays are appended.
pub(super) struct ArrayFile {
    file: BufWriter<File>,
    length: usize,
}

/// Arrays begin at multiples of this many bytes, which suits all types of numbers.
const ALIGNMENT: usize = 16;

impl ArrayFile {
    pub fn new() -> io::Result<Self> {
        Ok(Self { file: BufWriter::new(temporary_file()?), length: 0 })
    }

    /// Appends an array, and returns its place.
    pub fn append<T: Pod>(&mut self, array: &[T]) -> io::Result<Range<usize>> {
        let begin = self.length.next_multiple_of(ALIGNMENT);
        self.continue_array(&[0_u8; ALIGNMENT][..begin - self.length])?;
        self.continue_array(array)?;
        Ok(begin..self.length)
    }

    /// Appends a part of an array right after what was written last.
    fn continue_array<T: Pod>(&mut self, part: &[T]) -> io::Result<()> {
        let bytes: &[u8] = bytemuck::cast_slice(part);
        self.length += bytes.len();
        self.file.write_all(bytes).map_err(with_advice)
    }

    /// The file, from which arrays can be read.
    pub fn map(self) -> io::Result<Arc<Mmap>> {
        self.map_mut()?.make_read_only().map(Arc::new).map_err(with_advice)
    }

    /// The file, whose content can be changed.
    fn map_mut(self) -> io::Result<MmapMut> {
        let file = self.file.into_inner().map_err(|failed| with_advice(failed.into_error()))?;
        // SAFETY: the file is open here only and has no name, and this program does not shorten it.
        unsafe { MmapMut::map_mut(&file) }.map_err(with_advice)
    }
}

/// The array at a place of a file.
pub(super) fn array_in<T: Pod>(file: &Arc<Mmap>, bytes: Range<usize>) -> StoredArray<T> {
    StoredArray::File { file: file.clone(), bytes, values: std::marker::PhantomData }
}

/// The topic of each token, in memory or in a temporary file.
#[derive(Debug)]
pub struct AssignedTopics(Topics);

#[derive(Debug)]
enum Topics {
    Memory(Vec<u16>),
    File(MmapMut),
}

impl AssignedTopics {
    /// The same topic for all tokens.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn same(topic: u16, tokens: usize, residence: Residence) -> io::Result<Self> {
        match residence {
            Residence::Memory => Ok(Self(Topics::Memory(vec![topic; tokens]))),
            Residence::Files => {
                const AT_ONCE: usize = 1 << 16;
                let some = vec![topic; AT_ONCE.min(tokens)];
                let pieces = (0..tokens).step_by(AT_ONCE).map(|first| &some[..AT_ONCE.min(tokens - first)]);
                Self::in_file(pieces)
            }
        }
    }

    /// These topics.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn new(topics: Vec<u16>, residence: Residence) -> io::Result<Self> {
        match residence {
            Residence::Memory => Ok(Self(Topics::Memory(topics))),
            Residence::Files => Self::in_file(std::iter::once(&topics[..])),
        }
    }

    fn in_file<'a>(pieces: impl Iterator<Item = &'a [u16]>) -> io::Result<Self> {
        let mut file = ArrayFile::new()?;
        for piece in pieces {
            file.continue_array(piece)?;
        }
        Ok(Self(Topics::File(file.map_mut()?)))
    }
}

impl Deref for AssignedTopics {
    type Target = [u16];

    fn deref(&self) -> &[u16] {
        match &self.0 {
            Topics::Memory(topics) => topics,
            Topics::File(file) => bytemuck::cast_slice(file),
        }
    }
}

impl DerefMut for AssignedTopics {
    fn deref_mut(&mut self) -> &mut [u16] {
        match &mut self.0 {
            Topics::Memory(topics) => topics,
            Topics::File(file) => bytemuck::cast_slice_mut(file),
        }
    }
}

/// Why temporary files would not save memory, if they lie in memory.
#[cfg(target_os = "linux")]
pub fn note_on_temporary_files() -> Option<String> {
    let folder = std::env::temp_dir();
    let name = std::ffi::CString::new(folder.as_os_str().as_encoded_bytes()).ok()?;
    let mut file_system = std::mem::MaybeUninit::<libc::statfs>::uninit();
    // SAFETY: the name ends with a zero byte, and the system fills the structure if it returns 0.
    let found = unsafe { (libc::statfs(name.as_ptr(), file_system.as_mut_ptr()) == 0).then(|| file_system.assume_init()) }?;
    let is_in_memory = found.f_type == libc::TMPFS_MAGIC;
    is_in_memory.then(|| {
        format!(
            "the temporary files of resident = false lie in {}, which is in memory: set TMPDIR to a folder on a disk",
            folder.display()
        )
    })
}

/// Why temporary files would not save memory, if they lie in memory: not known here.
#[cfg(not(target_os = "linux"))]
pub fn note_on_temporary_files() -> Option<String> {
    None
}

fn temporary_file() -> io::Result<File> {
    tempfile::tempfile().map_err(with_advice)
}

/// The error of a temporary file, with its folder and what to do.
fn with_advice(cause: io::Error) -> io::Error {
    let folder = std::env::temp_dir();
    let advice = match cause.kind() {
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => "; set TMPDIR to a folder on a disk with more room",
        ErrorKind::NotFound | ErrorKind::PermissionDenied => "; set TMPDIR to a folder that exists and can be written",
        _ => "",
    };
    io::Error::new(cause.kind(), format!("a temporary file in {}: {cause}{advice}", folder.display()))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn arrays_in_a_file_are_what_they_were() {
        let mut file = ArrayFile::new().unwrap();
        let (few, pairs, none) = ([1_u16, 2, 3], [[4_u32, 5], [6, 7]], [0_u32; 0]);
        let places = [file.append(&few).unwrap(), file.append(&pairs).unwrap(), file.append(&none).unwrap()];
        let file = file.map().unwrap();
        let [of_few, of_pairs, of_none] = places;
        assert_eq!(*array_in::<u16>(&file, of_few), few);
        assert_eq!(*array_in::<[u32; 2]>(&file, of_pairs), pairs);
        assert!(array_in::<u32>(&file, of_none).is_empty());
    }

    #[test]
    fn topics_in_a_file_can_be_changed() {
        for residence in [Residence::Memory, Residence::Files] {
            let mut topics = AssignedTopics::same(7, 100_000, residence).unwrap();
            assert_eq!(*topics, [7; 100_000]);
            topics[99_999] = 2;
            let mut copy = AssignedTopics::new(topics.to_vec(), residence).unwrap();
            assert_eq!(*copy, *topics);
            copy[0] = 1;
            assert_eq!((copy[0], copy[99_999], topics[0]), (1, 2, 7));
            assert!(AssignedTopics::same(7, 0, residence).unwrap().is_empty());
        }
    }
}
