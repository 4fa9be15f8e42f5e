//! The engine for distributed methods, and the drivers that run it: MPI, threads, simulation.
//!
//! A distributed method is plain types with no communication code: a [`Server`] asks a set of [`Agent`]s to perform a task, and decides
//! where the bodies of their reports go ([`Outbox`]). The engine is a state machine for each rank that turns requests into packets. Three
//! drivers carry the packets: [`mpi`], [`threads`], [`simulate`]. The engine sees tasks, reports and states as bytes, so it is compiled
//! once for each number type and not for each method.

mod block;
mod body;
mod bundle;
mod checkpoint;
pub mod codec;
mod context;
mod coordinator;
#[cfg(test)]
mod echo;
mod erased;
mod fault;
mod hand_off;
mod layout;
mod members;
mod method;
pub mod mpi;
mod nap;
mod node;
mod options;
mod packet;
mod packing;
pub mod placement;
mod ranges;
pub mod record;
mod request;
mod run;
mod short_work;
pub mod simulate;
mod states;
mod sums;
pub mod threads;
mod timeline;
mod tree;
mod usage;
mod work;
mod workers;

pub use body::Body;
pub use checkpoint::{Checkpoint, CheckpointError};
pub use codec::{Raw, Serializable, SerializesAs, raw};
pub use context::Context;
pub use erased::{AnyMethod, erase};
pub use fault::{BoxError, EXIT_CODE, Fault, Result, end_process, observe_faults};
pub use layout::{AgentId, Layout, Placement, Rank};
pub use method::{Agent, AgentReport, AgentState, Method, Order, Outbox, Progress, Request, Response, Server, ServerState};
pub use options::{Collectives, DrawStore, Flushed, IntegerSums, JobOptions, RequestDelivery, Sums};
pub use packet::{AgentBytes, AgentTime, TimeSpent, Traffic};
pub use packing::Packed;
pub use record::StoredDraws;
pub use request::{AgentReportOf, RequestOf, ResponseOf};
pub use run::{AfterCheckpoint, Outcome, Recorder, Status};
pub use states::{NotSaved, PartId, SavedState, StateStore, StoredState, WriteState};
pub use timeline::Timeline;
pub use usage::{Flow, RankReport, RankUsage, Times};
