//! Files in which ranks store their draws until the next checkpoint, in the folder of the run.
//!
//! A file is a sequence of blocks: length of the header (u64), header (a block without its values), length of the values in bytes (u64),
//! values, and a digest of both (32 bytes); all little-endian. At a checkpoint, each rank closes its file, reports its length, and begins
//! another; rank 0 collects and deletes the closed ones meanwhile. Draws that a killed job stored after its last checkpoint are discarded: the
//! job that resumes it makes them again.

use super::delete_files::delete_files;
use super::error::{Result, ResultsError};
use super::parts;
use crate::cluster::codec::{decode, encode};
use crate::cluster::record::DrawBlock;
use crate::cluster::{self, DrawStore, Flushed, PartId, Rank, StoredDraws};
use std::collections::VecDeque;
use std::fs::{self, File};
use std::io::{BufReader, ErrorKind, Read, Seek};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Headers have some tens of bytes; a longer one is a sign of damage.
const MAX_HEADER_LENGTH: u64 = 1 << 16;
const DIGEST_BYTES: usize = blake3::OUT_LEN;
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
    open: Option<(File, StoredDraws)>,
    /// Draws that are not in the file yet.
    unwritten: Vec<DrawBlock>,
    /// The bytes of these draws.
    unwritten_bytes: usize,
    /// Closed files that rank 0 has perhaps not collected yet.
    closed: Vec<StoredDraws>,
    /// How many files there were.
    count: u64,
}

/// Draws are written once they have this many bytes.
const MIN_BYTES_TO_WRITE: usize = 1 << 20;

impl Spool {
    /// The files of this rank for the run in a folder, which all ranks must share, in the job with this random number.
    pub fn new(run: &Path, job: u64, rank: Rank) -> Self {
        Self { run: run.to_owned(), job, rank, files: Mutex::default() }
    }

    fn create(&self, number: u64) -> Result<(File, StoredDraws)> {
        let folder = folder_of(&self.run);
        match fs::create_dir(&folder) {
            Err(cause) if cause.kind() == ErrorKind::NotFound => {
                return Err(ResultsError::Content {
                    path: folder,
                    what: "this rank does not see the folder of the run: draw_transport = \"files\" needs a folder that all \
                           ranks share"
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
        Ok((file, StoredDraws { part, amount: 0 }))
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

    /// Writes the draws that are not in the file yet. Returns them if the disk is full.
    fn write(&self, files: &mut Files) -> cluster::Result<Vec<DrawBlock>> {
        let draws = std::mem::take(&mut files.unwritten);
        files.unwritten_bytes = 0;
        if draws.is_empty() {
            return Ok(draws);
        }
        match self.append(files, &draws) {
            Ok(()) => Ok(Vec::new()),
            Err(cause) if is_full_disk(cause.as_ref()) => Ok(draws),
            Err(cause) => Err(cause),
        }
    }

    /// Appends draws to the open file, or leaves it as it is.
    fn append(&self, files: &mut Files, draws: &[DrawBlock]) -> cluster::Result<()> {
        let Files { open, count, .. } = files;
        let (file, written) = match open {
            Some(open) => open,
            none => {
                *count += 1;
                none.insert(self.create(*count)?)
            }
        };
        let mut bytes = Vec::new();
        for block in draws {
            let header = encode("the header of draws", &without_values(block))?;
            let (of_header, of_values) = ((header.len() as u64).to_le_bytes(), (block.bytes.len() as u64).to_le_bytes());
            let digest = digest(&header, &block.bytes);
            for part in [&of_header[..], &header, &of_values, &block.bytes, &digest] {
                bytes.extend_from_slice(part);
            }
        }
        let path = file_of(&self.run, written.part);
        if let Err(cause) = file.write_all_at(&bytes, written.amount) {
            // What was written of them goes: the file is as long as it is said to be.
            if file.metadata().is_ok_and(|file| file.len() > written.amount) {
                file.set_len(written.amount).map_err(ResultsError::io(&path, "shorten"))?;
            }
            return Err(ResultsError::io(&path, "write")(cause).into());
        }
        written.amount += bytes.len() as u64;
        Ok(())
    }
}

/// The digest of a block. A network file system that finds too late that the disk is full leaves zeros in a file.
fn digest(header: &[u8], values: &[u8]) -> [u8; DIGEST_BYTES] {
    let mut hasher = blake3::Hasher::new();
    hasher.update(header).update(values);
    *hasher.finalize().as_bytes()
}

/// The header of a block.
fn without_values(DrawBlock { group, chain, first, dim, kind, .. }: &DrawBlock) -> DrawBlock {
    DrawBlock { group: group.clone(), chain: *chain, first: *first, dim: *dim, kind: kind.clone(), bytes: Vec::new() }
}

/// Whether the disk, a quota or a limit of file sizes leaves no room.
fn is_full_disk(error: &(dyn std::error::Error + 'static)) -> bool {
    let full = [ErrorKind::StorageFull, ErrorKind::QuotaExceeded, ErrorKind::FileTooLarge];
    matches!(error.downcast_ref(), Some(ResultsError::Io { source, .. }) if full.contains(&source.kind()))
}

impl DrawStore for Spool {
    fn put(&self, draws: Vec<DrawBlock>) -> cluster::Result<Vec<DrawBlock>> {
        // After a panic of another thread, at most a block that was not written is missing, and the job ends.
        let files = &mut *self.files.lock().unwrap_or_else(PoisonError::into_inner);
        files.unwritten_bytes += draws.iter().map(|block| block.bytes.len()).sum::<usize>();
        files.unwritten.extend(draws);
        if files.unwritten_bytes < MIN_BYTES_TO_WRITE { Ok(Vec::new()) } else { self.write(files) }
    }

    fn flush(&self) -> cluster::Result<Flushed> {
        let files = &mut *self.files.lock().unwrap_or_else(PoisonError::into_inner);
        let unstored = self.write(files)?;
        let mut stored = Vec::with_capacity(files.closed.len() + 1);
        for draws in files.closed.drain(..) {
            if self.exists(&draws)? {
                stored.push(draws);
            }
        }
        if let Some((file, draws)) = files.open.take() {
            let path = file_of(&self.run, draws.part);
            if draws.amount == 0 {
                // It only takes room.
                drop(fs::remove_file(&path));
            } else {
                // Network file systems report failed writes at this point.
                file.sync_all().map_err(ResultsError::io(&path, "write"))?;
                stored.push(draws);
            }
        }
        files.closed.clone_from(&stored);
        Ok(Flushed { stored, unstored })
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

/// Deletes the files of all ranks and jobs, and their folder if it is then empty, while no rank writes draws.
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

/// Reads the blocks in the files of ranks at a checkpoint, those of each chain in order.
pub(super) struct StoredBlocks {
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

impl StoredBlocks {
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

impl Iterator for StoredBlocks {
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
                    let found = found.map_or(0, |(found, _)| found);
                    let what = format!(
                        "rank 0 sees {found} of the {length} bytes that another rank has written to this file: draw_transport = \"files\" \
                         needs a folder that all ranks share, or the file is damaged"
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
        let end = (at + 16 + length + DIGEST_BYTES as u64).checked_add(values);
        let fits = end.is_some_and(|end| end <= self.length);
        if fits { Ok((header, values)) } else { Err(self.damaged()) }
    }

    /// The position of the next block, if the values begin at the current position.
    fn after(&mut self, values: u64) -> Result<u64> {
        Ok(self.position()? + values + DIGEST_BYTES as u64)
    }

    /// The block at this position.
    fn block(&mut self, at: u64) -> Result<DrawBlock> {
        let (header, values) = self.header(at)?;
        let (bytes, stored) = (self.read(values)?, self.read(DIGEST_BYTES as u64)?);
        let encoded = encode("the header of draws", &header).map_err(|_| self.damaged())?;
        if stored == digest(&encoded, &bytes) { Ok(DrawBlock { bytes, ..header }) } else { Err(self.damaged()) }
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
        spools.iter().flat_map(|spool| spool.flush().unwrap().stored).collect()
    }

    fn collected(run: &Path, stored: &[StoredDraws]) -> Vec<DrawBlock> {
        StoredBlocks::new(run, stored).unwrap().map(Result::unwrap).collect()
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
        let [StoredDraws { part, .. }] = spool.flush().unwrap().stored[..] else { unreachable!("one file") };
        let path = file_of(run.path(), part);
        let whole = fs::read(&path).unwrap();
        let refused = |bytes: &[u8]| {
            fs::write(&path, bytes).unwrap();
            let stored = [StoredDraws { part, amount: bytes.len() as u64 }];
            StoredBlocks::new(run.path(), &stored).err().map(|error| error.to_string())
        };
        for cut in 1..whole.len() {
            let message = refused(&whole[..cut]).unwrap();
            assert!(message.contains("rank-0.part"), "{message}");
        }
        let mut long = whole.clone();
        long[7] = 0xff;
        assert!(refused(&long).unwrap().contains("damaged"));
        // Zeros where a file system had no room.
        let zeros = [&whole[..whole.len() - 40], &[0; 40]].concat();
        assert_eq!(refused(&zeros), None, "the length and the header are whole");
        let read = StoredBlocks::new(run.path(), &[StoredDraws { part, amount: zeros.len() as u64 }]).unwrap().next().unwrap();
        assert!(read.unwrap_err().to_string().contains("damaged"));
        assert_eq!(refused(&whole), None);
    }

    #[test]
    fn draws_for_which_a_full_disk_has_no_room_are_returned() {
        let run = tempfile::tempdir().unwrap();
        let spool = [Spool::new(run.path(), JOB, 0)];
        fs::create_dir(folder_of(run.path())).unwrap();
        let first_file = file_of(run.path(), PartId { job: JOB, number: 1, rank: 0 });
        std::os::unix::fs::symlink("/dev/full", &first_file).unwrap();
        let [large, small, later] =
            [(0, 1 << 17), (1 << 16, 2), ((1 << 16) + 1, 2)].map(|(first, numbers)| block(0, first, &vec![1.0; numbers]));
        assert_eq!(spool[0].put(vec![large.clone()]).unwrap(), [large]);
        assert!(spool[0].put(vec![small.clone()]).unwrap().is_empty(), "few draws are written later");
        let Flushed { stored, unstored } = spool[0].flush().unwrap();
        assert_eq!((unstored, stored.len()), (vec![small], 0));
        assert!(!first_file.exists(), "an empty file does not stay");
        // The next file finds room.
        assert!(spool[0].put(vec![later.clone()]).unwrap().is_empty());
        assert_eq!(collected(run.path(), &flushed(&spool)), [later]);
    }

    #[test]
    fn the_folder_of_the_run_is_not_created() {
        let run = tempfile::tempdir().unwrap();
        let spool = Spool::new(&run.path().join("elsewhere"), JOB, 0);
        assert!(spool.put(vec![block(0, 0, &[1.0, 2.0])]).unwrap().is_empty());
        let message = spool.flush().unwrap_err().to_string();
        assert!(message.contains("elsewhere") && message.contains("all ranks share"), "{message}");
        assert!(!run.path().join("elsewhere").exists());
    }
}
