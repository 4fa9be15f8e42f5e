//! Saved states of agents: within a checkpoint, or stored by the rank that hosts the agent.

use super::fault::{BoxError, Result};
use super::layout::Rank;
use serde::{Deserialize, Serialize};
use std::fmt::Debug;
use std::io::Write;

/// A saved state.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum SavedState {
    /// Its bytes.
    Here(#[serde(with = "super::codec::raw")] Vec<u8>),
    /// Where its bytes are stored.
    Stored(StoredState),
}

/// Identifies states or draws that a rank has stored until a checkpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct PartId {
    /// A random number of the job, so that a rank of a killed job never writes what another job uses.
    pub job: u64,
    /// The number of the part among those of the rank in this job.
    pub number: u64,
    /// The rank.
    pub rank: Rank,
}

/// A state that a [`StateStore`] has stored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredState {
    /// The part of the checkpoint that has it.
    pub part: PartId,
    /// Its offset there.
    pub start: u64,
    /// The number of bytes.
    pub bytes: u64,
    /// Their BLAKE3 hash.
    pub hash: [u8; 32],
}

/// Writes a state.
pub type WriteState<'a> = Box<dyn FnOnce(&mut dyn Write) -> Result<()> + 'a>;

/// Why states were not saved.
#[derive(Debug)]
pub enum NotSaved {
    /// A state could not be serialized.
    State(BoxError),
    /// The store could not be written.
    Store(BoxError),
}

/// Stores states on the ranks that have them, so that checkpoints need not gather them on rank 0.
pub trait StateStore: Debug + Send + Sync {
    /// Stores the states of this rank for a checkpoint, and returns each of them in the same order. States that are too small for it may be
    /// returned as they are.
    ///
    /// # Errors
    /// If a state cannot be written, which ends the job, or the store fails, so that the run continues without this checkpoint.
    fn save(&self, states: Vec<WriteState>) -> Result<Vec<SavedState>, NotSaved>;

    /// Reads a state, which may be that of another rank.
    ///
    /// # Errors
    /// If it is missing or damaged.
    fn load(&self, state: &StoredState) -> Result<Vec<u8>>;
}

/// Keeps states in memory.
pub(super) fn in_memory(states: Vec<WriteState>) -> Result<Vec<SavedState>, NotSaved> {
    let written = states.into_iter().map(|write| {
        let mut bytes = Vec::new();
        write(&mut bytes).map(|()| SavedState::Here(bytes))
    });
    written.collect::<Result<_>>().map_err(NotSaved::State)
}

impl SavedState {
    /// The number of bytes that are held here.
    pub(super) fn bytes_here(&self) -> u64 {
        match self {
            Self::Here(bytes) => bytes.len() as u64,
            Self::Stored(_) => 0,
        }
    }

    /// The state.
    pub(super) fn load(self, store: Option<&dyn StateStore>) -> Result<Vec<u8>> {
        match (self, store) {
            (Self::Here(bytes), _) => Ok(bytes),
            (Self::Stored(state), Some(store)) => store.load(&state),
            (Self::Stored(_), None) => Err("the state is stored outside of the checkpoint, and this job has no store".into()),
        }
    }
}
