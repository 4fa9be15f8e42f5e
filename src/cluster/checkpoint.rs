//! A run at rest: all that is needed to go on, on any number of ranks.

use super::codec::{CodecError, Raw, decode, encode};
use super::method::{AgentId, Method, Progress};
use super::outbox::{Ask, Route};
use super::packet::{AskId, SavedParcel, SpentByAll, Traffic};
use super::record::{Extents, Record};
use super::run::Stored;
use crate::partial::PartialFile;
use serde::{Deserialize, Serialize};
use std::fs;
use std::path::{Path, PathBuf};

/// The first bytes of a checkpoint file, with the version of its layout.
const MAGIC: &[u8; 16] = b"mpibayes-state-3";

/// A run at rest.
#[derive(Clone, Serialize, Deserialize)]
#[serde(bound = "")]
pub struct Checkpoint<M: Method> {
    /// The method's name.
    pub method: String,
    /// Whether the run is over.
    pub finished: bool,
    /// Answers that the server has received.
    pub answers: u64,
    /// Seconds since the run began.
    pub seconds: f64,
    /// What was written down so far and the keeper has nowhere else: its to fill.
    pub records: Vec<Record>,
    /// How many draws the keeper has elsewhere: its to fill.
    pub drawn: Extents,
    /// What ranks have put into their stores since the last rest; the keeper collects it, and no file holds it.
    #[serde(skip)]
    pub stored: Stored,
    /// How far the run is.
    pub progress: Progress,
    /// Messages and bytes between ranks so far.
    pub traffic: Traffic,
    /// Seconds of computing so far.
    pub spent: SpentByAll,
    pub(super) next_ask: AskId,
    pub(super) server: Raw<u8>,
    pub(super) agents: Vec<(AgentId, Raw<u8>)>,
    pub(super) parcels: Vec<SavedParcel<M::Number>>,
    pub(super) promises: Vec<Vec<AskId>>,
    pub(super) held: Vec<HeldAsk<M>>,
}

/// An ask that was posted while the run came to rest.
#[derive(Clone, Serialize, Deserialize)]
#[serde(bound = "")]
pub(super) struct HeldAsk<M: Method> {
    to: Vec<AgentId>,
    task: M::Task,
    body: Raw<M::Number>,
    handed: bool,
    route: Route,
    aside: bool,
}

impl<M: Method> From<&Ask<M>> for HeldAsk<M> {
    fn from(ask: &Ask<M>) -> Self {
        let body = Raw(ask.body.to_vec());
        Self { to: ask.to.clone(), task: ask.task.clone(), body, handed: ask.handed, route: ask.route.clone(), aside: ask.aside }
    }
}

impl<M: Method> From<HeldAsk<M>> for Ask<M> {
    fn from(held: HeldAsk<M>) -> Self {
        Self { to: held.to, task: held.task, body: held.body.0.into(), handed: held.handed, route: held.route, aside: held.aside }
    }
}

/// What went wrong with a checkpoint.
#[derive(Debug, thiserror::Error)]
pub enum CheckpointError {
    /// The system refused to read or write.
    #[error("cannot {action} the checkpoint {}: {cause}", path.display())]
    Io {
        /// What was tried.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// What the system said.
        cause: std::io::Error,
    },
    /// The bytes are not those of a checkpoint that was written here.
    #[error("the checkpoint {} is damaged or was written by another version: {cause}; delete it to start the run afresh", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What does not fit.
        cause: String,
    },
    /// The state could not be turned into bytes.
    #[error(transparent)]
    Codec(#[from] CodecError),
}

impl<M: Method> Checkpoint<M> {
    /// The checkpoint as bytes with a checksum.
    ///
    /// # Errors
    /// Where a state cannot be encoded.
    pub fn to_bytes(&self) -> Result<Vec<u8>, CodecError> {
        let body = encode("a checkpoint", self)?;
        let mut bytes = Vec::with_capacity(MAGIC.len() + blake3::OUT_LEN + body.len());
        bytes.extend_from_slice(MAGIC);
        bytes.extend_from_slice(blake3::hash(&body).as_bytes());
        bytes.extend_from_slice(&body);
        Ok(bytes)
    }

    /// Reads a checkpoint back; the error says what does not fit.
    ///
    /// # Errors
    /// Where the bytes are cut off, damaged, of another version or of another method.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, String> {
        let rest = bytes.strip_prefix(MAGIC).ok_or("it does not begin as a checkpoint of this version")?;
        let (sum, body) = rest.split_at_checked(blake3::OUT_LEN).ok_or("it is cut off")?;
        if blake3::hash(body).as_bytes() != sum {
            return Err("its checksum is wrong".into());
        }
        let checkpoint: Self = decode("a checkpoint", body).map_err(|error| error.to_string())?;
        if checkpoint.method != M::NAME {
            return Err(format!("it holds a run of {}, not of {}", checkpoint.method, M::NAME));
        }
        Ok(checkpoint)
    }

    /// Writes the checkpoint so that `path` always holds a whole one.
    ///
    /// # Errors
    /// Where the system refuses; the old checkpoint is then untouched.
    pub fn write(&self, path: &Path) -> Result<(), CheckpointError> {
        let bytes = self.to_bytes()?;
        let partial = PartialFile::new(path);
        let io = |action, path: &Path| {
            let path = path.to_owned();
            move |cause| CheckpointError::Io { action, path, cause }
        };
        fs::write(partial.path(), bytes).map_err(io("write", partial.path()))?;
        partial.commit().map_err(io("finish", path))
    }

    /// The checkpoint at `path`, or nothing where there is no such file.
    ///
    /// # Errors
    /// Where the file cannot be read or is damaged.
    pub fn read(path: &Path) -> Result<Option<Self>, CheckpointError> {
        match fs::read(path) {
            Ok(bytes) => match Self::from_bytes(&bytes) {
                Ok(checkpoint) => Ok(Some(checkpoint)),
                Err(cause) => Err(CheckpointError::Damaged { path: path.to_owned(), cause }),
            },
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(cause) => Err(CheckpointError::Io { action: "read", path: path.to_owned(), cause }),
        }
    }
}
