//! Checkpoints: everything needed to resume a run on any number of ranks, and their files.

use super::body::Body;
use super::codec::{CodecError, Raw, seal, unseal};
use super::fault::BoxError;
use super::layout::{AgentId, Rank};
use super::members::Promise;
use super::method::Progress;
use super::packet::{AgentBytes, SavedTransfer, TimeSpent, Traffic};
use super::ranges::Ranges;
use super::record::{Extents, Record, StoredDraws};
use super::request::{EncodedRequest, RequestId, Route};
use super::states::{SavedState, StateStore, StoredState};
use super::usage::RankReport;
use crate::number::Number;
use crate::partial::PartialFile;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// A checkpoint of a run.
#[derive(Clone, Serialize, Deserialize)]
#[cfg_attr(test, derive(Default))]
pub struct Checkpoint {
    /// The method's name.
    pub method: String,
    /// The name of the number type.
    pub(super) number: String,
    /// Whether the run is over.
    pub finished: bool,
    /// Responses that the server has received.
    pub responses: u64,
    /// Seconds since the run began.
    pub seconds: f64,
    /// Records that are only kept here; filled by the recorder.
    pub records: Vec<Record>,
    /// The number of draws that the recorder has written elsewhere; filled by the recorder.
    pub recorded_draws: Extents,
    /// The draws that ranks have stored, for the recorder to collect; not saved.
    #[serde(skip)]
    pub stored: Vec<StoredDraws>,
    /// What each rank has done in this job; not saved.
    #[serde(skip)]
    pub ranks: BTreeMap<Rank, RankReport>,
    /// The progress of the run.
    pub progress: Progress,
    /// Messages and bytes between ranks so far.
    pub traffic: Traffic,
    /// Computing time of the server and the agents so far.
    pub spent: TimeSpent,
    /// Bytes that agents have received and sent so far.
    pub bytes: AgentBytes,
    /// Why states could not be stored. Such a checkpoint is of no use; not saved.
    #[serde(skip)]
    pub failure: Option<String>,
    /// The longest time that a rank took to save its states; not saved.
    #[serde(skip)]
    pub saving_seconds: f64,
    pub(super) next_request: RequestId,
    pub(super) server: Raw<u8>,
    /// The state of each agent; none if the run is over and ranks store their states, or if they could not be stored.
    pub(super) agents: Vec<(AgentId, SavedState)>,
    pub(super) transfers: Vec<SavedTransfer>,
    pub(super) promised_transfers: Vec<Vec<Promise>>,
    pub(super) held: Vec<HeldRequest>,
}

/// A request that was posted but not sent before the checkpoint.
#[derive(Clone, Serialize, Deserialize)]
pub(super) struct HeldRequest {
    to: Ranges,
    task: Raw<u8>,
    /// The values as bytes.
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

    /// The request, with its body as values of type `N`.
    ///
    /// # Errors
    /// If the number of bytes is not a multiple of the size of a value.
    pub(super) fn into_request<N: Number>(self) -> Result<EncodedRequest<N>, String> {
        let Self { to, task, body, with_transfer, route, monitoring } = self;
        Ok(EncodedRequest { to, task, body: Body::from_bytes(&body.0)?, with_transfer, route, monitoring })
    }
}

/// A checkpoint that cannot be written or read.
#[derive(Debug, thiserror::Error)]
pub enum CheckpointError {
    /// The system refused to read or write.
    #[error("cannot {action} the checkpoint {}: {cause}", path.display())]
    Io {
        /// The failed action.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// The system's error.
        cause: std::io::Error,
    },
    /// The file is not a checkpoint of this version.
    #[error("the checkpoint {} is damaged or was written by another version: {cause}", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The reason.
        cause: String,
    },
    /// The state could not be serialized.
    #[error(transparent)]
    Codec(#[from] CodecError),
}

impl Checkpoint {
    /// The first bytes of a file, with the version of its layout. A BLAKE3 checksum of the content follows, then the content.
    pub const MAGIC: &'static [u8; 16] = b"mpibayes-state14";

    /// The checkpoint as bytes with a checksum.
    ///
    /// # Errors
    /// If a state cannot be serialized.
    pub fn to_bytes(&self) -> Result<Vec<u8>, CodecError> {
        seal(Self::MAGIC, "a checkpoint", self)
    }

    /// Reads a checkpoint from bytes.
    ///
    /// # Errors
    /// If the bytes are truncated, damaged or of another version, or states overlap.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, String> {
        let checkpoint: Self = unseal(Self::MAGIC, "a checkpoint", bytes)?;
        checkpoint.check_places()?;
        Ok(checkpoint)
    }

    /// Checks that no two states are stored at the same place: a small checkpoint could otherwise need much memory.
    fn check_places(&self) -> Result<(), String> {
        let mut states = self.stored_states();
        states.retain(|state| state.bytes > 0);
        states.sort_by_key(|state| (state.part, state.start));
        let overlap = |pair: &[StoredState]| {
            let [first, second] = pair else { return false };
            first.part == second.part && first.start.checked_add(first.bytes).is_none_or(|end| end > second.start)
        };
        if states.windows(2).any(overlap) { Err("two of its states are stored at the same place".into()) } else { Ok(()) }
    }

    /// Reads the states that are stored outside of the checkpoint, for ranks that do not see the store.
    ///
    /// # Errors
    /// If one is missing or damaged.
    pub fn load_stored_states(&mut self, store: &dyn StateStore) -> Result<(), BoxError> {
        let bodies = self.transfers.iter_mut().filter_map(|transfer| transfer.body.as_mut()).map(|body| &mut body.bytes);
        for state in self.agents.iter_mut().map(|(_, state)| state).chain(bodies) {
            if let SavedState::Stored(stored) = state {
                *state = SavedState::Here(store.load(stored)?);
            }
        }
        Ok(())
    }

    /// The states that are stored outside of the checkpoint.
    pub fn stored_states(&self) -> Vec<StoredState> {
        let bodies = self.transfers.iter().filter_map(|transfer| transfer.body.as_ref()).map(|body| &body.bytes);
        let all = self.agents.iter().map(|(_, state)| state).chain(bodies);
        all.filter_map(|state| if let SavedState::Stored(state) = state { Some(state.clone()) } else { None }).collect()
    }

    /// Checks that the checkpoint belongs to this method with this number type.
    ///
    /// # Errors
    /// If it does not; the error names both methods and number types.
    pub fn check(&self, method: &str, number: &str) -> Result<(), String> {
        if self.method == method && self.number == number {
            return Ok(());
        }
        Err(format!("the checkpoint holds a run of {} in {}, not of {method} in {number}", self.method, self.number))
    }

    /// Writes the checkpoint to `path`. The checkpoint that was there becomes `previous`, if that is given.
    ///
    /// # Errors
    /// If it cannot be written. The old checkpoint is then at `path` or at `previous`.
    pub fn write(&self, path: &Path, previous: Option<&Path>) -> Result<(), CheckpointError> {
        let bytes = self.to_bytes()?;
        let partial = PartialFile::new(path);
        let io = |action, path: &Path| {
            let path = path.to_owned();
            move |cause| CheckpointError::Io { action, path, cause }
        };
        fs::write(partial.path(), bytes).map_err(io("write", partial.path()))?;
        // Network file systems report a full disk only now.
        partial.sync().map_err(io("write", partial.path()))?;
        match previous.map_or(Ok(()), |previous| fs::rename(path, previous)) {
            Err(cause) if cause.kind() != std::io::ErrorKind::NotFound => return Err(io("rename", path)(cause)),
            _ => {}
        }
        partial.commit_synchronized().map_err(io("finish", path))
    }

    /// The checkpoint at `path`, or none if there is no such file.
    ///
    /// # Errors
    /// If the file cannot be read or is damaged.
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
