//! Draws that stay on the ranks where they were made until the run is at rest: a file for each rank, in the run's folder.
//!
//! A file is a sequence of blocks: the length of a head (u64), the head (a block without its numbers), the length of the numbers in
//! bytes (u64), the numbers; little-endian. It is closed when the run comes to rest, and its length told; then rank 0 collects all files
//! and takes them away. What a kill leaves lies behind the last checkpoint and is of no use.

use super::error::{Result, ResultsError};
use crate::cluster::codec::{decode, encode};
use crate::cluster::record::Draws;
use crate::cluster::{self, DrawStore, Rank, StoredByRank};
use std::fs::{self, File};
use std::io::{BufReader, BufWriter, ErrorKind, Read, Seek, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Heads are some tens of bytes: a longer one is none.
const LONGEST_HEAD: u64 = 1 << 16;
/// A network file system may show a file, or its length, so much later on another machine.
const PATIENCE: Duration = Duration::from_secs(90);

/// The file of a rank, as the rank sees it.
#[derive(Debug)]
pub struct Spool {
    path: PathBuf,
    open: Mutex<Option<(BufWriter<File>, u64)>>,
}

impl Spool {
    /// Of the run in this folder, which all ranks must see, on this rank.
    pub fn new(run: &Path, rank: Rank) -> Self {
        Self { path: file_of(run, rank), open: Mutex::default() }
    }

    fn create(&self) -> Result<(BufWriter<File>, u64)> {
        let folder = self.path.parent().unwrap_or(Path::new(""));
        match fs::create_dir(folder) {
            Err(cause) if cause.kind() == ErrorKind::NotFound => {
                return Err(ResultsError::Content {
                    path: folder.to_owned(),
                    what: "the run's folder is not there on this rank: draws = \"files\" wants one that all ranks see".into(),
                });
            }
            Err(cause) if cause.kind() != ErrorKind::AlreadyExists => {
                return Err(ResultsError::io(folder, "make the folder")(cause));
            }
            _ => {}
        }
        let file = File::create(&self.path).map_err(ResultsError::io(&self.path, "create"))?;
        Ok((BufWriter::with_capacity(1 << 20, file), 0))
    }
}

impl DrawStore for Spool {
    fn put(&self, draws: Vec<Draws>) -> cluster::Result<()> {
        // A panic of another agent leaves whole blocks behind: they are written below, and nothing there panics.
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let (file, length) = match &mut *open {
            Some(open) => open,
            none => none.insert(self.create()?),
        };
        for mut block in draws {
            let numbers = std::mem::take(&mut block.bytes);
            let head = encode("the head of draws", &block)?;
            for bytes in [&(head.len() as u64).to_le_bytes()[..], &head, &(numbers.len() as u64).to_le_bytes(), &numbers] {
                file.write_all(bytes).map_err(ResultsError::io(&self.path, "write"))?;
                *length += bytes.len() as u64;
            }
        }
        Ok(())
    }

    fn flush(&self) -> cluster::Result<u64> {
        let Some((file, length)) = self.open.lock().unwrap_or_else(PoisonError::into_inner).take() else { return Ok(0) };
        // What a network file system could not write it says here, or not at all.
        let synced = file.into_inner().map_err(std::io::IntoInnerError::into_error).and_then(|file| file.sync_all());
        synced.map_err(ResultsError::io(&self.path, "write"))?;
        Ok(length)
    }
}

/// Where the files of the run in a folder lie.
fn folder_of(run: &Path) -> PathBuf {
    run.join("draws.parts")
}

fn file_of(run: &Path, rank: Rank) -> PathBuf {
    folder_of(run).join(format!("rank-{rank}.part"))
}

/// Takes the files of ranks away, whichever there are, and their folder if there is nothing else in it.
pub(super) fn clear(run: &Path) -> Result<()> {
    let folder = folder_of(run);
    let entries = match fs::read_dir(&folder) {
        Ok(entries) => entries,
        Err(cause) if cause.kind() == ErrorKind::NotFound => return Ok(()),
        Err(cause) => return Err(ResultsError::io(&folder, "list")(cause)),
    };
    for entry in entries {
        let path = entry.map_err(ResultsError::io(&folder, "list"))?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if name.starts_with("rank-") && name.ends_with(".part") {
            fs::remove_file(&path).map_err(ResultsError::io(&path, "take away"))?;
        }
    }
    match fs::remove_dir(&folder) {
        Err(cause) if ![ErrorKind::NotFound, ErrorKind::DirectoryNotEmpty].contains(&cause.kind()) => {
            Err(ResultsError::io(&folder, "take away")(cause))
        }
        _ => Ok(()),
    }
}

/// A block in a file.
struct Place {
    /// Its group, among those that have been met.
    group: usize,
    chain: u32,
    first: u64,
    file: usize,
    /// Where its head begins.
    at: u64,
}

/// All blocks of a run at rest, those of each chain in order.
pub(super) struct Collected {
    files: Vec<Part>,
    places: std::vec::IntoIter<Place>,
}

/// The file of a rank, as rank 0 sees it.
struct Part {
    path: PathBuf,
    reader: BufReader<File>,
    length: u64,
}

impl Collected {
    /// Of the run in this folder, of whose files the ranks have told these lengths.
    pub fn new(run: &Path, stored: &StoredByRank) -> Result<Self> {
        let (mut files, mut places, mut groups) = (Vec::new(), Vec::new(), Vec::new());
        for (&rank, &length) in stored.iter().filter(|(_, length)| **length > 0) {
            let mut part = Part::open(file_of(run, rank), length)?;
            let mut at = 0;
            while at < length {
                let (head, numbers) = part.head(at)?;
                let group = groups.iter().position(|group| *group == head.group).unwrap_or_else(|| {
                    groups.push(head.group);
                    groups.len() - 1
                });
                places.push(Place { group, chain: head.chain, first: head.first, file: files.len(), at });
                at = part.after(numbers)?;
            }
            files.push(part);
        }
        places.sort_unstable_by_key(|place| (place.group, place.chain, place.first));
        Ok(Self { files, places: places.into_iter() })
    }
}

impl Iterator for Collected {
    type Item = Result<Draws>;

    fn next(&mut self) -> Option<Result<Draws>> {
        let Place { file, at, .. } = self.places.next()?;
        Some(self.files.get_mut(file)?.block(at))
    }
}

impl Part {
    /// The file, once it is here with this length.
    fn open(path: PathBuf, length: u64) -> Result<Self> {
        let since = Instant::now();
        loop {
            let found = File::open(&path).and_then(|file| Ok((file.metadata()?.len(), file)));
            match found {
                Ok((found, file)) if found == length => {
                    return Ok(Self { path, reader: BufReader::with_capacity(1 << 16, file), length });
                }
                Err(cause) if cause.kind() != ErrorKind::NotFound => return Err(ResultsError::io(&path, "open")(cause)),
                found if since.elapsed() > PATIENCE => {
                    let there = found.map_or("is not there".to_owned(), |(found, _)| format!("has {found} bytes here"));
                    let what = format!(
                        "this file {there}, and its rank has written {length}: draws = \"files\" wants a folder that all ranks see"
                    );
                    return Err(ResultsError::Content { path, what });
                }
                _ => std::thread::sleep(Duration::from_millis(200)),
            }
        }
    }

    fn damaged(&self) -> ResultsError {
        ResultsError::Content {
            path: self.path.clone(),
            what: "this file of draws is damaged; the same command goes on from the run's last checkpoint".into(),
        }
    }

    /// Reads so many bytes.
    fn read(&mut self, bytes: u64) -> Result<Vec<u8>> {
        let mut read = vec![0; usize::try_from(bytes).map_err(|_| self.damaged())?];
        self.reader.read_exact(&mut read).map_err(ResultsError::io(&self.path, "read"))?;
        Ok(read)
    }

    fn number(&mut self) -> Result<u64> {
        let bytes: [u8; 8] = self.read(8)?.try_into().map_err(|_| self.damaged())?;
        Ok(u64::from_le_bytes(bytes))
    }

    fn position(&mut self) -> Result<u64> {
        self.reader.stream_position().map_err(ResultsError::io(&self.path, "read"))
    }

    /// The head that begins here, and how many bytes of numbers follow.
    fn head(&mut self, at: u64) -> Result<(Draws, u64)> {
        let here = self.position()?;
        if here != at {
            // Within the buffer where that is possible: blocks are small, and most follow on one another.
            let by = at.wrapping_sub(here).cast_signed();
            self.reader.seek_relative(by).map_err(ResultsError::io(&self.path, "read"))?;
        }
        let length = self.number()?;
        if length > LONGEST_HEAD || at + 16 + length > self.length {
            return Err(self.damaged());
        }
        let head = self.read(length)?;
        let head: Draws = decode("the head of draws", &head).map_err(|_| self.damaged())?;
        let numbers = self.number()?;
        let fits = (at + 16 + length).checked_add(numbers).is_some_and(|end| end <= self.length);
        if fits { Ok((head, numbers)) } else { Err(self.damaged()) }
    }

    /// The place behind the numbers that are next.
    fn after(&mut self, numbers: u64) -> Result<u64> {
        Ok(self.position()? + numbers)
    }

    /// The block that begins here.
    fn block(&mut self, at: u64) -> Result<Draws> {
        let (head, numbers) = self.head(at)?;
        let bytes = self.read(numbers)?;
        Ok(Draws { bytes, ..head })
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn block(chain: u32, first: u64, numbers: &[f64]) -> Draws {
        let bytes = bytemuck::cast_slice(numbers).to_vec();
        Draws { group: "posterior".into(), chain, first, dim: 2, kind: "f64".into(), bytes }
    }

    fn rested(spools: &[Spool]) -> StoredByRank {
        (0..).zip(spools).map(|(rank, spool)| (rank, spool.flush().unwrap())).collect()
    }

    fn collected(run: &Path, stored: &StoredByRank) -> Vec<Draws> {
        Collected::new(run, stored).unwrap().map(Result::unwrap).collect()
    }

    #[test]
    fn what_was_put_since_the_last_rest_comes_back_in_the_order_of_chains() {
        let run = tempfile::tempdir().unwrap();
        let spools: Vec<Spool> = (0..3).map(|rank| Spool::new(run.path(), rank)).collect();
        assert!(collected(run.path(), &rested(&spools)).is_empty());
        spools[2].put(vec![block(1, 2, &[5.0, 6.0])]).unwrap();
        spools[0].put(vec![block(1, 0, &[1.0, 2.0, 3.0, 4.0]), block(0, 0, &[9.0, 9.0])]).unwrap();
        spools[2].put(vec![block(0, 1, &[])]).unwrap();
        let stored = rested(&spools);
        assert_eq!(stored[&1], 0);
        let all = [block(0, 0, &[9.0, 9.0]), block(0, 1, &[]), block(1, 0, &[1.0, 2.0, 3.0, 4.0]), block(1, 2, &[5.0, 6.0])];
        assert_eq!(collected(run.path(), &stored), all);
        assert_eq!(collected(run.path(), &stored), all, "reading takes nothing away");
        let foreign = folder_of(run.path()).join("thesis.tex");
        fs::write(&foreign, "years of work").unwrap();
        clear(run.path()).unwrap();
        assert!(foreign.exists(), "what is not ours stays");
        fs::remove_file(foreign).unwrap();
        clear(run.path()).unwrap();
        assert!(!folder_of(run.path()).exists());
        clear(run.path()).unwrap();
        spools[0].put(vec![block(2, 0, &[7.0, 8.0])]).unwrap();
        assert_eq!(collected(run.path(), &rested(&spools)), [block(2, 0, &[7.0, 8.0])]);
    }

    #[test]
    fn damage_is_told() {
        let run = tempfile::tempdir().unwrap();
        let spool = Spool::new(run.path(), 0);
        spool.put(vec![block(1, 0, &[1.0, 2.0])]).unwrap();
        spool.flush().unwrap();
        let path = file_of(run.path(), 0);
        let whole = fs::read(&path).unwrap();
        let refused = |bytes: &[u8]| {
            fs::write(&path, bytes).unwrap();
            Collected::new(run.path(), &StoredByRank::from([(0, bytes.len() as u64)])).err().map(|error| error.to_string())
        };
        for cut in 1..whole.len() {
            let message = refused(&whole[..cut]).unwrap();
            assert!(message.contains("rank-0.part"), "{message}");
        }
        let mut long = whole.clone();
        long[7] = 0xff;
        assert!(refused(&long).unwrap().contains("damaged"));
        assert_eq!(refused(&whole), None);
    }

    #[test]
    fn a_folder_that_is_not_there_is_not_made() {
        let run = tempfile::tempdir().unwrap();
        let spool = Spool::new(&run.path().join("elsewhere"), 0);
        let message = spool.put(vec![block(0, 0, &[1.0, 2.0])]).unwrap_err().to_string();
        assert!(message.contains("elsewhere") && message.contains("all ranks see"), "{message}");
        assert!(!run.path().join("elsewhere").exists());
    }
}
