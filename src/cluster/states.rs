//! Saved states of agents: within a checkpoint, or stored by the rank that hosts the agent.

use super::codec::Raw;
use super::fault::Result;
use serde::{Deserialize, Serialize};
use std::fmt::Debug;

/// A saved state.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum SavedState {
    /// Its bytes.
    Here(#[serde(with = "super::codec::raw")] Vec<u8>),
    /// Where its bytes are stored.
    Stored(StoredState),
}

/// A state that a [`StateStore`] has stored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredState {
    /// The number of the checkpoint that it was stored for.
    pub checkpoint: u64,
    /// The rank that stored it.
    pub rank: u32,
    /// Where it begins among the bytes that the rank has stored for the checkpoint.
    pub start: u64,
    /// The number of bytes.
    pub bytes: u64,
    /// Their BLAKE3 hash.
    pub hash: [u8; 32],
}

/// Stores states on the ranks that have them, so that checkpoints need not gather them on rank 0.
pub trait StateStore: Debug + Send + Sync {
    /// Stores the states of this rank for the checkpoint with this number. States that are too small for it may be returned as they are.
    /// The number of a checkpoint that was never completed may come again.
    ///
    /// # Errors
    /// If they cannot be stored. The run then continues without this checkpoint.
    fn save(&self, checkpoint: u64, states: Vec<Vec<u8>>) -> Result<Vec<SavedState>>;

    /// Reads a state, which may be that of another rank.
    ///
    /// # Errors
    /// If it is missing or damaged.
    fn load(&self, state: &StoredState) -> Result<Vec<u8>>;
}

impl SavedState {
    /// The bytes that are not stored elsewhere.
    pub(super) fn bytes_here(&self) -> u64 {
        match self {
            Self::Here(bytes) => bytes.len() as u64,
            Self::Stored(_) => 0,
        }
    }

    /// The state.
    pub(super) fn load(self, store: Option<&dyn StateStore>) -> Result<Raw<u8>> {
        match (self, store) {
            (Self::Here(bytes), _) => Ok(Raw(bytes)),
            (Self::Stored(state), Some(store)) => Ok(Raw(store.load(&state)?)),
            (Self::Stored(_), None) => Err("the state is stored outside of the checkpoint, and this job has no store".into()),
        }
    }
}
