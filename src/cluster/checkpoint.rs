//! A run at rest: all that is needed to go on, on any number of ranks.

use super::body::Body;
use super::codec::{CodecError, Raw, decode, encode};
use super::layout::AgentId;
use super::method::Progress;
use super::packet::{RequestId, SavedTransfer, TimeSpent, Traffic};
use super::record::{Extents, Record, StoredByRank};
use super::request::{EncodedRequest, Route};
use crate::number::Number;
use crate::partial::PartialFile;
use serde::{Deserialize, Serialize};
use std::fs;
use std::path::{Path, PathBuf};

/// The first bytes of a checkpoint file, with the version of its layout.
const MAGIC: &[u8; 16] = b"mpibayes-state-6";

/// A run at rest.
#[derive(Clone, Serialize, Deserialize)]
pub struct Checkpoint {
    /// The method's name.
    pub method: String,
    /// What its bodies are made of.
    pub(super) number: String,
    /// Whether the run is over.
    pub finished: bool,
    /// Responses that the server has received.
    pub responses: u64,
    /// Seconds since the run began.
    pub seconds: f64,
    /// What was written down so far and the recorder has nowhere else: its to fill.
    pub records: Vec<Record>,
    /// How many draws the recorder has elsewhere: its to fill.
    pub drawn: Extents,
    /// What ranks have put into their stores since the last rest; the recorder collects it, and no file holds it.
    #[serde(skip)]
    pub stored: StoredByRank,
    /// How far the run is.
    pub progress: Progress,
    /// Messages and bytes between ranks so far.
    pub traffic: Traffic,
    /// Seconds of computing so far.
    pub spent: TimeSpent,
    pub(super) next_request: RequestId,
    pub(super) server: Raw<u8>,
    pub(super) agents: Vec<(AgentId, Raw<u8>)>,
    pub(super) transfers: Vec<SavedTransfer>,
    pub(super) promised_transfers: Vec<Vec<RequestId>>,
    pub(super) held: Vec<HeldRequest>,
}

/// A request that was posted while the run came to rest.
#[derive(Clone, Serialize, Deserialize)]
pub(super) struct HeldRequest {
    to: Vec<AgentId>,
    task: Raw<u8>,
    /// The bytes of its numbers.
    body: Raw<u8>,
    with_transfer: bool,
    route: Route,
    monitoring: bool,
}

impl HeldRequest {
    pub(super) fn new<N: Number>(request: &EncodedRequest<N>) -> Self {
        let EncodedRequest { to, task, body, with_transfer, route, monitoring } = request.clone();
        Self { to, task, body: Raw(body.bytes().to_vec()), with_transfer, route, monitoring }
    }

    /// The request of a run whose bodies are made of these numbers.
    ///
    /// # Errors
    /// Where its body ends within a number.
    pub(super) fn into_ask<N: Number>(self) -> Result<EncodedRequest<N>, String> {
        let Self { to, task, body, with_transfer, route, monitoring } = self;
        Ok(EncodedRequest { to, task, body: Body::from_bytes(&body.0)?, with_transfer, route, monitoring })
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

impl Checkpoint {
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
    /// Where the bytes are cut off, damaged or of another version.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, String> {
        let rest = bytes.strip_prefix(MAGIC).ok_or("it does not begin as a checkpoint of this version")?;
        let (sum, body) = rest.split_at_checked(blake3::OUT_LEN).ok_or("it is cut off")?;
        if blake3::hash(body).as_bytes() != sum {
            return Err("its checksum is wrong".into());
        }
        decode("a checkpoint", body).map_err(|error| error.to_string())
    }

    /// Whether it is of this method, with bodies of these numbers; the error says of what it is.
    ///
    /// # Errors
    /// Where it is of others.
    pub fn check(&self, method: &str, number: &str) -> Result<(), String> {
        if self.method == method && self.number == number {
            return Ok(());
        }
        Err(format!("the checkpoint holds a run of {} in {}, not of {method} in {number}", self.method, self.number))
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
