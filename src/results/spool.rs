//! Files in which ranks store their draws until the next checkpoint: one file for each rank, in the folder of the run.
//!
//! A file is a sequence of blocks: length of the header (u64), header (a block without its values), length of the values in bytes (u64),
//! values; all little-endian. At a checkpoint, ranks close their files and report the lengths; rank 0 then collects and deletes the files.
//! Draws of a killed job come after its last checkpoint and are discarded.

use super::delete_files::delete_files;
use super::error::{Result, ResultsError};
use crate::cluster::codec::{decode, encode};
use crate::cluster::record::DrawBlock;
use crate::cluster::{self, DrawStore, Rank, StoredByRank};
use std::fs::{self, File};
use std::io::{BufReader, BufWriter, ErrorKind, Read, Seek, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Headers have some tens of bytes; a longer one is a sign of damage.
const MAX_HEADER_LENGTH: u64 = 1 << 16;
/// How long a network file system may take to show a file or its length on another machine.
const VISIBILITY_DELAY: Duration = Duration::from_secs(90);

/// The file of this rank, for writing.
#[derive(Debug)]
pub struct Spool {
    path: PathBuf,
    open: Mutex<Option<(BufWriter<File>, u64)>>,
    /// Whether this job has written the file. Draws are appended until rank 0 has collected and deleted it, which a failed checkpoint does not.
    has_written: AtomicBool,
}

impl Spool {
    /// The file of this rank for the run in a folder, which all ranks must share.
    pub fn new(run: &Path, rank: Rank) -> Self {
        Self { path: file_of(run, rank), open: Mutex::default(), has_written: AtomicBool::new(false) }
    }

    fn create(&self) -> Result<(BufWriter<File>, u64)> {
        let folder = self.path.parent().unwrap_or(Path::new(""));
        match fs::create_dir(folder) {
            Err(cause) if cause.kind() == ErrorKind::NotFound => {
                return Err(ResultsError::Content {
                    path: folder.to_owned(),
                    what: "this rank does not see the folder of the run: draws = \"files\" needs a folder that all ranks share"
                        .into(),
                });
            }
            Err(cause) if cause.kind() != ErrorKind::AlreadyExists => {
                return Err(ResultsError::io(folder, "create the folder")(cause));
            }
            _ => {}
        }
        let length = self.uncollected()?;
        let mut options = File::options();
        options.create(true).write(true).truncate(length == 0).append(length > 0);
        let file = options.open(&self.path).map_err(ResultsError::io(&self.path, "create"))?;
        self.has_written.store(true, Ordering::Relaxed);
        Ok((BufWriter::with_capacity(1 << 20, file), length))
    }

    /// The length of the file, if this job has written it and rank 0 has not collected it.
    fn uncollected(&self) -> Result<u64> {
        if !self.has_written.load(Ordering::Relaxed) {
            return Ok(0);
        }
        match File::open(&self.path).and_then(|file| file.metadata()) {
            Ok(file) => Ok(file.len()),
            Err(cause) if cause.kind() == ErrorKind::NotFound => Ok(0),
            Err(cause) => Err(ResultsError::io(&self.path, "open")(cause)),
        }
    }
}

impl DrawStore for Spool {
    fn put(&self, draws: Vec<DrawBlock>) -> cluster::Result<()> {
        // A poisoned lock is harmless: nothing below panics, so that a panic elsewhere leaves whole blocks.
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let (file, length) = match &mut *open {
            Some(open) => open,
            none => none.insert(self.create()?),
        };
        for mut block in draws {
            let values = std::mem::take(&mut block.bytes);
            let header = encode("the header of draws", &block)?;
            for bytes in [&(header.len() as u64).to_le_bytes()[..], &header, &(values.len() as u64).to_le_bytes(), &values] {
                file.write_all(bytes).map_err(ResultsError::io(&self.path, "write"))?;
                *length += bytes.len() as u64;
            }
        }
        Ok(())
    }

    fn flush(&self) -> cluster::Result<u64> {
        let open = self.open.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some((file, length)) = open else { return Ok(self.uncollected()?) };
        // Network file systems report failed writes at this point.
        let synced = file.into_inner().map_err(std::io::IntoInnerError::into_error).and_then(|file| file.sync_all());
        synced.map_err(ResultsError::io(&self.path, "write"))?;
        Ok(length)
    }
}

/// The folder with the files of all ranks.
fn folder_of(run: &Path) -> PathBuf {
    run.join("draws.parts")
}

fn file_of(run: &Path, rank: Rank) -> PathBuf {
    folder_of(run).join(format!("rank-{rank}.part"))
}

/// Deletes the files of all ranks, and their folder if it is then empty.
pub(super) fn clear(run: &Path) -> Result<()> {
    delete_files(&folder_of(run), |name| name.starts_with("rank-") && name.ends_with(".part"))
}

/// The position of a block.
struct Place {
    /// The index of its group, in order of appearance.
    group: usize,
    chain: u32,
    first: u64,
    file: usize,
    /// Where its header begins.
    at: u64,
}

/// All stored blocks at a checkpoint, those of each chain in order.
pub(super) struct Collected {
    files: Vec<Part>,
    places: std::vec::IntoIter<Place>,
}

/// The file of a rank, for reading on rank 0.
struct Part {
    path: PathBuf,
    reader: BufReader<File>,
    length: u64,
}

impl Collected {
    /// The blocks of the run in a folder, whose files have these lengths.
    pub fn new(run: &Path, stored: &StoredByRank) -> Result<Self> {
        let (mut files, mut places, mut groups) = (Vec::new(), Vec::new(), Vec::new());
        for (&rank, &length) in stored.iter().filter(|(_, length)| **length > 0) {
            let mut part = Part::open(file_of(run, rank), length)?;
            let mut at = 0;
            while at < length {
                let (header, values) = part.header(at)?;
                let group = groups.iter().position(|group| *group == header.group).unwrap_or_else(|| {
                    groups.push(header.group);
                    groups.len() - 1
                });
                places.push(Place { group, chain: header.chain, first: header.first, file: files.len(), at });
                at = part.after(values)?;
            }
            files.push(part);
        }
        places.sort_unstable_by_key(|place| (place.group, place.chain, place.first));
        Ok(Self { files, places: places.into_iter() })
    }
}

impl Iterator for Collected {
    type Item = Result<DrawBlock>;

    fn next(&mut self) -> Option<Result<DrawBlock>> {
        let Place { file, at, .. } = self.places.next()?;
        Some(self.files.get_mut(file)?.block(at))
    }
}

impl Part {
    /// Opens a file as soon as it is visible with this length.
    fn open(path: PathBuf, length: u64) -> Result<Self> {
        let since = Instant::now();
        loop {
            let found = File::open(&path).and_then(|file| Ok((file.metadata()?.len(), file)));
            match found {
                Ok((found, file)) if found == length => {
                    return Ok(Self { path, reader: BufReader::with_capacity(1 << 16, file), length });
                }
                Err(cause) if cause.kind() != ErrorKind::NotFound => return Err(ResultsError::io(&path, "open")(cause)),
                found if since.elapsed() > VISIBILITY_DELAY => {
                    let found = found.map_or("is missing".to_owned(), |(found, _)| format!("has {found} bytes"));
                    let what = format!(
                        "this file {found} on rank 0, but its rank has written {length}: draws = \"files\" needs a folder that all ranks share"
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
            what: "this file of draws is damaged; the same command resumes the run from its last checkpoint".into(),
        }
    }

    /// Reads this many bytes.
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

    /// The header at this position, and the number of bytes of values that follow.
    fn header(&mut self, at: u64) -> Result<(DrawBlock, u64)> {
        let here = self.position()?;
        if here != at {
            // Most blocks are small and consecutive, so this usually stays within the buffer.
            let by = at.wrapping_sub(here).cast_signed();
            self.reader.seek_relative(by).map_err(ResultsError::io(&self.path, "read"))?;
        }
        let length = self.number()?;
        if length > MAX_HEADER_LENGTH || at + 16 + length > self.length {
            return Err(self.damaged());
        }
        let header = self.read(length)?;
        let header: DrawBlock = decode("the header of draws", &header).map_err(|_| self.damaged())?;
        let values = self.number()?;
        let fits = (at + 16 + length).checked_add(values).is_some_and(|end| end <= self.length);
        if fits { Ok((header, values)) } else { Err(self.damaged()) }
    }

    /// The position after the values, which begin at the current position.
    fn after(&mut self, values: u64) -> Result<u64> {
        Ok(self.position()? + values)
    }

    /// The block at this position.
    fn block(&mut self, at: u64) -> Result<DrawBlock> {
        let (header, values) = self.header(at)?;
        let bytes = self.read(values)?;
        Ok(DrawBlock { bytes, ..header })
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn block(chain: u32, first: u64, numbers: &[f64]) -> DrawBlock {
        let bytes = bytemuck::cast_slice(numbers).to_vec();
        DrawBlock { group: "posterior".into(), chain, first, dim: 2, kind: "f64".into(), bytes }
    }

    fn flushed(spools: &[Spool]) -> StoredByRank {
        (0..).zip(spools).map(|(rank, spool)| (rank, spool.flush().unwrap())).collect()
    }

    fn collected(run: &Path, stored: &StoredByRank) -> Vec<DrawBlock> {
        Collected::new(run, stored).unwrap().map(Result::unwrap).collect()
    }

    #[test]
    fn stored_draws_are_collected_in_the_order_of_chains() {
        let run = tempfile::tempdir().unwrap();
        let spools: Vec<Spool> = (0..3).map(|rank| Spool::new(run.path(), rank)).collect();
        assert!(collected(run.path(), &flushed(&spools)).is_empty());
        spools[2].put(vec![block(1, 2, &[5.0, 6.0])]).unwrap();
        spools[0].put(vec![block(1, 0, &[1.0, 2.0, 3.0, 4.0]), block(0, 0, &[9.0, 9.0])]).unwrap();
        spools[2].put(vec![block(0, 1, &[])]).unwrap();
        let stored = flushed(&spools);
        assert_eq!(stored[&1], 0);
        let all = [block(0, 0, &[9.0, 9.0]), block(0, 1, &[]), block(1, 0, &[1.0, 2.0, 3.0, 4.0]), block(1, 2, &[5.0, 6.0])];
        assert_eq!(collected(run.path(), &stored), all);
        assert_eq!(collected(run.path(), &stored), all, "reading deletes nothing");
        let foreign = folder_of(run.path()).join("thesis.tex");
        fs::write(&foreign, "years of work").unwrap();
        clear(run.path()).unwrap();
        assert!(foreign.exists(), "files of others stay");
        fs::remove_file(foreign).unwrap();
        clear(run.path()).unwrap();
        assert!(!folder_of(run.path()).exists());
        clear(run.path()).unwrap();
        spools[0].put(vec![block(2, 0, &[7.0, 8.0])]).unwrap();
        assert_eq!(collected(run.path(), &flushed(&spools)), [block(2, 0, &[7.0, 8.0])]);
    }

    #[test]
    fn draws_that_were_not_collected_are_kept_for_the_next_time() {
        let run = tempfile::tempdir().unwrap();
        let spool = [Spool::new(run.path(), 0)];
        let [first, second] = [block(0, 0, &[1.0, 2.0]), block(0, 1, &[3.0, 4.0])];
        spool[0].put(vec![first.clone()]).unwrap();
        flushed(&spool);
        // The checkpoint has failed: with nothing new, and with another draw.
        assert_eq!(collected(run.path(), &flushed(&spool)), vec![first.clone()]);
        spool[0].put(vec![second.clone()]).unwrap();
        assert_eq!(collected(run.path(), &flushed(&spool)), [first, second.clone()]);
        clear(run.path()).unwrap();
        assert!(collected(run.path(), &flushed(&spool)).is_empty());
        // Files of an earlier job are no draws of this one.
        spool[0].put(vec![second.clone()]).unwrap();
        flushed(&spool);
        let later = [Spool::new(run.path(), 0)];
        assert!(collected(run.path(), &flushed(&later)).is_empty());
        later[0].put(vec![second.clone()]).unwrap();
        assert_eq!(collected(run.path(), &flushed(&later)), [second]);
    }

    #[test]
    fn damaged_files_are_refused() {
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
    fn the_folder_of_the_run_is_not_created() {
        let run = tempfile::tempdir().unwrap();
        let spool = Spool::new(&run.path().join("elsewhere"), 0);
        let message = spool.put(vec![block(0, 0, &[1.0, 2.0])]).unwrap_err().to_string();
        assert!(message.contains("elsewhere") && message.contains("all ranks share"), "{message}");
        assert!(!run.path().join("elsewhere").exists());
    }
}
