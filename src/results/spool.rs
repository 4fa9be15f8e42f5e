//! Files in which ranks store their draws until the next checkpoint, in the folder of the run.
//!
//! A file is a sequence of blocks: length of the header (u64), header (a block without its values), length of the values in bytes (u64),
//! values; all little-endian. At a checkpoint, each rank closes its file, reports its length, and begins another; rank 0 collects and deletes
//! the closed ones meanwhile. Draws that a killed job stored after its last checkpoint are discarded: the job that resumes it makes them again.

use super::delete_files::delete_files;
use super::error::{Result, ResultsError};
use super::parts;
use crate::cluster::codec::{decode, encode};
use crate::cluster::record::DrawBlock;
use crate::cluster::{self, DrawStore, PartId, Rank, StoredDraws};
use std::collections::VecDeque;
use std::fs::{self, File};
use std::io::{BufReader, BufWriter, ErrorKind, Read, Seek, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Headers have some tens of bytes; a longer one is a sign of damage.
const MAX_HEADER_LENGTH: u64 = 1 << 16;
/// How long a network file system may take to show a file or its length on another machine.
const VISIBILITY_DELAY: Duration = Duration::from_secs(90);

/// The files of this rank, for writing.
#[derive(Debug)]
pub struct Spool {
    run: PathBuf,
    job: u64,
    rank: Rank,
    files: Mutex<Files>,
}

#[derive(Debug, Default)]
struct Files {
    open: Option<(BufWriter<File>, StoredDraws)>,
    /// Closed files that rank 0 may not have collected.
    closed: Vec<StoredDraws>,
    /// How many files there were.
    count: u64,
}

impl Spool {
    /// The files of this rank for the run in a folder, which all ranks must share, in the job with this random number.
    pub fn new(run: &Path, job: u64, rank: Rank) -> Self {
        Self { run: run.to_owned(), job, rank, files: Mutex::default() }
    }

    fn create(&self, number: u64) -> Result<(BufWriter<File>, StoredDraws)> {
        let folder = folder_of(&self.run);
        match fs::create_dir(&folder) {
            Err(cause) if cause.kind() == ErrorKind::NotFound => {
                return Err(ResultsError::Content {
                    path: folder,
                    what: "this rank does not see the folder of the run: draws = \"files\" needs a folder that all ranks share"
                        .into(),
                });
            }
            Err(cause) if cause.kind() != ErrorKind::AlreadyExists => {
                return Err(ResultsError::io(&folder, "create the folder")(cause));
            }
            _ => {}
        }
        let part = PartId { job: self.job, number, rank: self.rank };
        let path = file_of(&self.run, part);
        let file = File::create(&path).map_err(ResultsError::io(&path, "create"))?;
        Ok((BufWriter::with_capacity(1 << 20, file), StoredDraws { part, amount: 0 }))
    }

    /// Whether a file is still there.
    fn exists(&self, draws: &StoredDraws) -> Result<bool> {
        let path = file_of(&self.run, draws.part);
        match File::open(&path) {
            Ok(_) => Ok(true),
            Err(cause) if cause.kind() == ErrorKind::NotFound => Ok(false),
            Err(cause) => Err(ResultsError::io(&path, "open")(cause)),
        }
    }
}

impl DrawStore for Spool {
    fn put(&self, draws: Vec<DrawBlock>) -> cluster::Result<()> {
        // Nothing below panics, so that the blocks are whole even if a thread panicked elsewhere.
        let Files { open, count, .. } = &mut *self.files.lock().unwrap_or_else(PoisonError::into_inner);
        let (file, written) = match open {
            Some(open) => open,
            none => {
                *count += 1;
                none.insert(self.create(*count)?)
            }
        };
        for mut block in draws {
            let values = std::mem::take(&mut block.bytes);
            let header = encode("the header of draws", &block)?;
            for bytes in [&(header.len() as u64).to_le_bytes()[..], &header, &(values.len() as u64).to_le_bytes(), &values] {
                file.write_all(bytes).map_err(ResultsError::io(&file_of(&self.run, written.part), "write"))?;
                written.amount += bytes.len() as u64;
            }
        }
        Ok(())
    }

    fn flush(&self) -> cluster::Result<Vec<StoredDraws>> {
        let Files { open, closed, .. } = &mut *self.files.lock().unwrap_or_else(PoisonError::into_inner);
        let mut left = Vec::with_capacity(closed.len() + 1);
        for draws in closed.drain(..) {
            if self.exists(&draws)? {
                left.push(draws);
            }
        }
        if let Some((file, draws)) = open.take() {
            // Network file systems report failed writes at this point.
            let synced = file.into_inner().map_err(std::io::IntoInnerError::into_error).and_then(|file| file.sync_all());
            synced.map_err(ResultsError::io(&file_of(&self.run, draws.part), "write"))?;
            left.push(draws);
        }
        closed.clone_from(&left);
        Ok(left)
    }
}

/// The folder with the files of all ranks.
fn folder_of(run: &Path) -> PathBuf {
    run.join("draws.parts")
}

fn file_of(run: &Path, part: PartId) -> PathBuf {
    folder_of(run).join(parts::name_of(part))
}

/// Deletes these files, as far as that is possible.
pub(super) fn delete(run: &Path, stored: &[StoredDraws]) {
    stored.iter().for_each(|draws| drop(fs::remove_file(file_of(run, draws.part))));
}

/// Deletes the files of all ranks and jobs, and their folder if it is then empty. No rank may be at work.
pub(super) fn clear(run: &Path) -> Result<()> {
    // Earlier versions had one file for each rank.
    let is_old = |name: &str| name.starts_with("rank-") && name.ends_with(".part");
    delete_files(&folder_of(run), |name| parts::part_of(name).is_some() || is_old(name))
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
    /// The files that are open, in the order in which they were opened.
    open: VecDeque<usize>,
    places: std::vec::IntoIter<Place>,
}

/// At most this many files are open.
const MAX_OPEN: usize = 100;

/// A file of a rank, for reading on rank 0.
struct Part {
    path: PathBuf,
    /// None while others are read.
    reader: Option<BufReader<File>>,
    length: u64,
}

impl Collected {
    /// The blocks in these files of the run in a folder.
    pub fn new(run: &Path, stored: &[StoredDraws]) -> Result<Self> {
        let (mut files, mut places, mut groups) = (Vec::new(), Vec::new(), Vec::new());
        for draws in stored {
            let mut part = Part { path: file_of(run, draws.part), reader: None, length: draws.amount };
            part.open()?;
            let mut at = 0;
            while at < draws.amount {
                let (header, values) = part.header(at)?;
                let group = groups.iter().position(|group| *group == header.group).unwrap_or_else(|| {
                    groups.push(header.group);
                    groups.len() - 1
                });
                places.push(Place { group, chain: header.chain, first: header.first, file: files.len(), at });
                at = part.after(values)?;
            }
            part.reader = None;
            files.push(part);
        }
        places.sort_unstable_by_key(|place| (place.group, place.chain, place.first));
        Ok(Self { files, open: VecDeque::new(), places: places.into_iter() })
    }
}

impl Iterator for Collected {
    type Item = Result<DrawBlock>;

    fn next(&mut self) -> Option<Result<DrawBlock>> {
        let Place { file, at, .. } = self.places.next()?;
        if self.files[file].reader.is_none() {
            if self.open.len() == MAX_OPEN
                && let Some(oldest) = self.open.pop_front()
            {
                self.files[oldest].reader = None;
            }
            if let Err(cause) = self.files[file].open() {
                return Some(Err(cause));
            }
            self.open.push_back(file);
        }
        Some(self.files[file].block(at))
    }
}

impl Part {
    /// Opens the file as soon as it is visible with its length.
    fn open(&mut self) -> Result<()> {
        let (path, length, since) = (&self.path, self.length, Instant::now());
        loop {
            let found = File::open(path).and_then(|file| Ok((file.metadata()?.len(), file)));
            match found {
                Ok((found, file)) if found == length => {
                    self.reader = Some(BufReader::with_capacity(1 << 16, file));
                    return Ok(());
                }
                Err(cause) if cause.kind() != ErrorKind::NotFound => return Err(ResultsError::io(path, "open")(cause)),
                found if since.elapsed() > VISIBILITY_DELAY => {
                    let found = found.map_or("is missing".to_owned(), |(found, _)| format!("has {found} bytes"));
                    let what = format!(
                        "this file {found} on rank 0, but its rank has written {length}: draws = \"files\" needs a folder that all ranks share"
                    );
                    return Err(ResultsError::Content { path: path.clone(), what });
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

    /// The open file.
    ///
    /// # Errors
    /// If it could not be opened.
    fn reader(&mut self) -> Result<&mut BufReader<File>> {
        let damaged = self.damaged();
        self.reader.as_mut().ok_or(damaged)
    }

    /// Reads this many bytes.
    fn read(&mut self, bytes: u64) -> Result<Vec<u8>> {
        let mut read = vec![0; usize::try_from(bytes).map_err(|_| self.damaged())?];
        let failed = ResultsError::io(&self.path, "read");
        self.reader()?.read_exact(&mut read).map_err(failed)?;
        Ok(read)
    }

    fn number(&mut self) -> Result<u64> {
        let bytes: [u8; 8] = self.read(8)?.try_into().map_err(|_| self.damaged())?;
        Ok(u64::from_le_bytes(bytes))
    }

    fn position(&mut self) -> Result<u64> {
        let failed = ResultsError::io(&self.path, "read");
        self.reader()?.stream_position().map_err(failed)
    }

    /// The header at this position, and the number of bytes of values that follow.
    fn header(&mut self, at: u64) -> Result<(DrawBlock, u64)> {
        let here = self.position()?;
        if here != at {
            // Most blocks are small and consecutive, so this usually stays within the buffer.
            let by = at.wrapping_sub(here).cast_signed();
            let failed = ResultsError::io(&self.path, "read");
            self.reader()?.seek_relative(by).map_err(failed)?;
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

    const JOB: u64 = 17;

    fn flushed(spools: &[Spool]) -> Vec<StoredDraws> {
        spools.iter().flat_map(|spool| spool.flush().unwrap()).collect()
    }

    fn collected(run: &Path, stored: &[StoredDraws]) -> Vec<DrawBlock> {
        Collected::new(run, stored).unwrap().map(Result::unwrap).collect()
    }

    #[test]
    fn stored_draws_are_collected_in_the_order_of_chains() {
        let run = tempfile::tempdir().unwrap();
        let spools: Vec<Spool> = (0..3).map(|rank| Spool::new(run.path(), JOB, rank)).collect();
        assert!(collected(run.path(), &flushed(&spools)).is_empty());
        spools[2].put(vec![block(1, 2, &[5.0, 6.0])]).unwrap();
        spools[0].put(vec![block(1, 0, &[1.0, 2.0, 3.0, 4.0]), block(0, 0, &[9.0, 9.0])]).unwrap();
        spools[2].put(vec![block(0, 1, &[])]).unwrap();
        let stored = flushed(&spools);
        assert_eq!(stored.iter().map(|draws| draws.part.rank).collect::<Vec<_>>(), [0, 2], "rank 1 has no draws");
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
        let spool = [Spool::new(run.path(), JOB, 0)];
        let [first, second, third] = [0, 1, 2].map(|at| block(0, at, &[1.0, at as f64]));
        spool[0].put(vec![first.clone()]).unwrap();
        let former = flushed(&spool);
        // The checkpoint has failed: with nothing new, and with another draw.
        assert_eq!(flushed(&spool), former);
        spool[0].put(vec![second.clone()]).unwrap();
        let both = flushed(&spool);
        assert_eq!(collected(run.path(), &both), [first.clone(), second.clone()]);
        // The next draws come while the former are collected.
        spool[0].put(vec![third.clone()]).unwrap();
        assert_eq!(collected(run.path(), &both), [first, second.clone()]);
        delete(run.path(), &both);
        delete(run.path(), &both);
        assert_eq!(collected(run.path(), &flushed(&spool)), std::slice::from_ref(&third));
        // Another job neither uses these files nor writes to them.
        let later = [Spool::new(run.path(), JOB + 1, 0)];
        assert!(flushed(&later).is_empty());
        later[0].put(vec![second.clone()]).unwrap();
        assert_eq!(collected(run.path(), &flushed(&later)), [second]);
        assert_eq!(collected(run.path(), &flushed(&spool)), [third]);
    }

    #[test]
    fn more_files_are_collected_than_may_be_open() {
        let run = tempfile::tempdir().unwrap();
        let count = MAX_OPEN as u32 + 20;
        let spools: Vec<Spool> = (0..count).map(|rank| Spool::new(run.path(), JOB, rank)).collect();
        // Each chain has a draw in the file of each rank, so that none can be read to its end at once.
        let all: Vec<DrawBlock> = (0..3)
            .flat_map(|chain| (0..u64::from(count)).map(move |first| block(chain, first, &[f64::from(chain), first as f64])))
            .collect();
        for (rank, spool) in spools.iter().enumerate() {
            spool.put((0..3).map(|chain| all[chain * count as usize + rank].clone()).collect()).unwrap();
        }
        assert_eq!(collected(run.path(), &flushed(&spools)), all);
    }

    #[test]
    fn damaged_files_are_refused() {
        let run = tempfile::tempdir().unwrap();
        let spool = Spool::new(run.path(), JOB, 0);
        spool.put(vec![block(1, 0, &[1.0, 2.0])]).unwrap();
        let [StoredDraws { part, .. }] = spool.flush().unwrap()[..] else { unreachable!("one file") };
        let path = file_of(run.path(), part);
        let whole = fs::read(&path).unwrap();
        let refused = |bytes: &[u8]| {
            fs::write(&path, bytes).unwrap();
            let stored = [StoredDraws { part, amount: bytes.len() as u64 }];
            Collected::new(run.path(), &stored).err().map(|error| error.to_string())
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
        let spool = Spool::new(&run.path().join("elsewhere"), JOB, 0);
        let message = spool.put(vec![block(0, 0, &[1.0, 2.0])]).unwrap_err().to_string();
        assert!(message.contains("elsewhere") && message.contains("all ranks share"), "{message}");
        assert!(!run.path().join("elsewhere").exists());
    }
}
