//! Draws that stay on the ranks where they were made until the run is at rest: a file for each agent, in the run's folder.
//!
//! A file is a sequence of blocks: the length of a head (u64), the head (a block without its numbers), the length of the numbers in
//! bytes (u64), the numbers; little-endian. It is closed when the run comes to rest, then collected and taken away by rank 0: what a
//! kill leaves lies behind the last checkpoint and is of no use.

use super::error::{Result, ResultsError};
use crate::cluster::codec::{decode, encode};
use crate::cluster::record::Draws;
use crate::cluster::{self, AgentId, Store};
use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{BufReader, BufWriter, ErrorKind, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// Heads are some tens of bytes: a longer one is none.
const LONGEST_HEAD: u64 = 1 << 16;

/// The files of one run, as a rank that writes to them sees them.
#[derive(Debug)]
pub struct Spool {
    folder: PathBuf,
    open: Mutex<HashMap<AgentId, BufWriter<File>>>,
}

impl Spool {
    /// Of the run in this folder.
    pub fn new(run: &Path) -> Self {
        Self { folder: folder_of(run), open: Mutex::default() }
    }

    fn path(&self, agent: AgentId) -> PathBuf {
        self.folder.join(format!("agent-{agent}.part"))
    }

    /// The agent's file, taken out so that other agents need not wait; a new one if there is none open.
    fn take(&self, agent: AgentId) -> Result<BufWriter<File>> {
        // A panic of another agent leaves whole files behind.
        if let Some(file) = self.open.lock().unwrap_or_else(PoisonError::into_inner).remove(&agent) {
            return Ok(file);
        }
        fs::create_dir_all(&self.folder).map_err(ResultsError::io(&self.folder, "make the folder"))?;
        let path = self.path(agent);
        let file = File::create(&path).map_err(ResultsError::io(&path, "create"))?;
        Ok(BufWriter::with_capacity(1 << 20, file))
    }
}

impl Store for Spool {
    fn put(&self, agent: AgentId, draws: Vec<Draws>) -> cluster::Result<()> {
        let mut file = self.take(agent)?;
        for mut block in draws {
            let numbers = std::mem::take(&mut block.bytes);
            let head = encode("the head of draws", &block)?;
            let written = [&(head.len() as u64).to_le_bytes()[..], &head, &(numbers.len() as u64).to_le_bytes(), &numbers]
                .into_iter()
                .try_for_each(|bytes| file.write_all(bytes));
            written.map_err(ResultsError::io(&self.path(agent), "write"))?;
        }
        self.open.lock().unwrap_or_else(PoisonError::into_inner).insert(agent, file);
        Ok(())
    }

    fn rest(&self, agent: AgentId) -> cluster::Result<()> {
        let file = self.open.lock().unwrap_or_else(PoisonError::into_inner).remove(&agent);
        let written = file.map_or(Ok(()), |mut file| file.flush());
        Ok(written.map_err(ResultsError::io(&self.path(agent), "write"))?)
    }
}

/// Where the files of the run in a folder lie.
fn folder_of(run: &Path) -> PathBuf {
    run.join("draws")
}

/// Takes away whatever lies there.
pub(super) fn clear(run: &Path) -> Result<()> {
    let folder = folder_of(run);
    match fs::remove_dir_all(&folder) {
        Err(cause) if cause.kind() != ErrorKind::NotFound => Err(ResultsError::io(&folder, "take away")(cause)),
        _ => Ok(()),
    }
}

/// A block in a file.
struct Place {
    file: usize,
    head: Draws,
    start: u64,
    bytes: usize,
}

/// All blocks of a run at rest, those of each chain in order.
pub(super) struct Collected {
    files: Vec<(PathBuf, BufReader<File>)>,
    places: std::vec::IntoIter<Place>,
}

impl Collected {
    /// Of the run in this folder.
    pub fn new(run: &Path) -> Result<Self> {
        let folder = folder_of(run);
        let mut paths = Vec::new();
        match fs::read_dir(&folder) {
            Ok(entries) => {
                for entry in entries {
                    paths.push(entry.map_err(ResultsError::io(&folder, "list"))?.path());
                }
            }
            Err(cause) if cause.kind() == ErrorKind::NotFound => {}
            Err(cause) => return Err(ResultsError::io(&folder, "list")(cause)),
        }
        paths.retain(|path| path.extension().is_some_and(|ending| ending == "part"));
        let (mut files, mut places) = (Vec::new(), Vec::new());
        for path in paths {
            let file = File::open(&path).map_err(ResultsError::io(&path, "open"))?;
            let length = file.metadata().map_err(ResultsError::io(&path, "look at"))?.len();
            let mut reader = BufReader::with_capacity(1 << 16, file);
            while let Some((head, start, bytes)) = next_head(&mut reader, &path, length)? {
                places.push(Place { file: files.len(), head, start, bytes });
            }
            files.push((path, reader));
        }
        let key = |place: &Place| (place.head.group.clone(), place.head.chain, place.head.first);
        places.sort_by_cached_key(key);
        Ok(Self { files, places: places.into_iter() })
    }
}

impl Iterator for Collected {
    type Item = Result<Draws>;

    fn next(&mut self) -> Option<Result<Draws>> {
        let Place { file, head, start, bytes } = self.places.next()?;
        let (path, reader) = self.files.get_mut(file)?;
        let mut numbers = vec![0; bytes];
        let read = reader.seek(SeekFrom::Start(start)).and_then(|_| reader.read_exact(&mut numbers));
        Some(read.map(|()| Draws { bytes: numbers, ..head }).map_err(ResultsError::io(path, "read")))
    }
}

/// The next head of a file, where its numbers start and how many bytes they take; the reader then stands behind them.
fn next_head(reader: &mut BufReader<File>, path: &Path, length: u64) -> Result<Option<(Draws, u64, usize)>> {
    let at = reader.stream_position().map_err(ResultsError::io(path, "read"))?;
    if at == length {
        return Ok(None);
    }
    let damaged = || ResultsError::Content {
        path: path.to_owned(),
        what: "this file of draws is damaged; the run goes on from its last checkpoint when it is started again".into(),
    };
    let mut number = || {
        let mut bytes = [0; 8];
        reader.read_exact(&mut bytes).map(|()| u64::from_le_bytes(bytes))
    };
    let head = number().map_err(ResultsError::io(path, "read"))?;
    if head > LONGEST_HEAD {
        return Err(damaged());
    }
    let mut bytes = vec![0; usize::try_from(head).map_err(|_| damaged())?];
    reader.read_exact(&mut bytes).map_err(ResultsError::io(path, "read"))?;
    let draws: Draws = decode("the head of draws", &bytes).map_err(|_| damaged())?;
    let mut bytes = [0; 8];
    reader.read_exact(&mut bytes).map_err(ResultsError::io(path, "read"))?;
    let (numbers, start) = (u64::from_le_bytes(bytes), at + 16 + head);
    if start.checked_add(numbers).is_none_or(|end| end > length) {
        return Err(damaged());
    }
    let skip = i64::try_from(numbers).map_err(|_| damaged())?;
    reader.seek_relative(skip).map_err(ResultsError::io(path, "read"))?;
    Ok(Some((draws, start, usize::try_from(numbers).map_err(|_| damaged())?)))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn block(chain: u32, first: u64, numbers: &[f64]) -> Draws {
        let bytes = bytemuck::cast_slice(numbers).to_vec();
        Draws { group: "posterior".into(), chain, first, dim: 2, kind: "f64".into(), bytes }
    }

    fn collected(run: &Path) -> Vec<Draws> {
        Collected::new(run).unwrap().map(Result::unwrap).collect()
    }

    #[test]
    fn what_was_put_since_the_last_rest_comes_back_in_the_order_of_chains() {
        let run = tempfile::tempdir().unwrap();
        assert!(collected(run.path()).is_empty());
        let spool = Spool::new(run.path());
        spool.put(3, vec![block(1, 2, &[5.0, 6.0])]).unwrap();
        spool.put(0, vec![block(1, 0, &[1.0, 2.0, 3.0, 4.0]), block(0, 0, &[9.0, 9.0])]).unwrap();
        spool.put(3, vec![block(0, 1, &[])]).unwrap();
        for agent in 0..4 {
            spool.rest(agent).unwrap();
        }
        let all = [block(0, 0, &[9.0, 9.0]), block(0, 1, &[]), block(1, 0, &[1.0, 2.0, 3.0, 4.0]), block(1, 2, &[5.0, 6.0])];
        assert_eq!(collected(run.path()), all);
        assert_eq!(collected(run.path()), all, "reading takes nothing away");
        clear(run.path()).unwrap();
        clear(run.path()).unwrap();
        spool.put(0, vec![block(2, 0, &[7.0, 8.0])]).unwrap();
        spool.rest(0).unwrap();
        assert_eq!(collected(run.path()), [block(2, 0, &[7.0, 8.0])]);
    }

    #[test]
    fn damage_is_told() {
        let run = tempfile::tempdir().unwrap();
        let spool = Spool::new(run.path());
        spool.put(0, vec![block(1, 0, &[1.0, 2.0])]).unwrap();
        spool.rest(0).unwrap();
        let path = spool.path(0);
        let whole = fs::read(&path).unwrap();
        let refused = |bytes: &[u8]| {
            fs::write(&path, bytes).unwrap();
            Collected::new(run.path()).err().map(|error| error.to_string())
        };
        for cut in 1..whole.len() {
            let message = refused(&whole[..cut]).unwrap();
            assert!(message.contains("agent-0.part"), "{message}");
        }
        let mut long = whole.clone();
        long[7] = 0xff;
        assert!(refused(&long).unwrap().contains("damaged"));
        assert_eq!(refused(&whole), None);
    }
}
