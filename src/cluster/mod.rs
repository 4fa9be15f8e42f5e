//! Who computes what, and how it travels: methods, the engine, and the drivers that carry it.
//!
//! A distributed method is plain types with no communication in them: a [`Server`] asks a set of [`Agent`]s to perform a
//! task, and says where the bodies of their reports go ([`Outbox`]). One engine (a state machine for each rank) turns this
//! into packets, and three drivers carry the packets: [`mpi`], [`threads`], [`simulate`]. To the engine tasks, reports and states are
//! bytes, and it is compiled for each type of number once, whatever methods there are.

mod body;
mod checkpoint;
pub mod codec;
mod context;
mod erased;
mod fault;
mod hub;
mod job;
mod layout;
mod method;
pub mod mpi;
mod node;
mod outbox;
mod packed;
mod packet;
#[cfg(test)]
mod plain;
pub mod record;
mod run;
pub mod simulate;
mod sums;
pub mod threads;
mod workers;

pub use body::Body;
pub use checkpoint::{Checkpoint, CheckpointError};
pub use codec::{Raw, Serializable, SerializesAs};
pub use context::Context;
pub use fault::{EXIT_CODE, Fault, end_process};
pub use layout::{Layout, Rank};
pub use method::{
    Agent, AgentId, AgentReport, AgentReportOf, AgentState, BoxError, Method, Order, Placement, Progress, Response, ResponseOf,
    Result, Server, ServerState,
};
pub use outbox::{Outbox, Request, RequestOf};
pub use packet::{AgentTime, Flow, TimeSpent, Traffic};
pub use run::{
    AfterCheckpoint, Collectives, DrawStore, JobOptions, Outcome, Recorder, RequestDelivery, Status, StoredByRank, Sums,
};
