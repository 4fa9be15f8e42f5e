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
pub use codec::{Raw, Saves, Words};
pub use context::Context;
pub use fault::{EXIT_CODE, Fault, end_process};
pub use layout::{Layout, Rank};
pub use method::{
    Agent, AgentId, AgentState, Answer, AnswerOf, BoxError, Dealing, Method, Order, Progress, Reported, ReportedOf, Result,
    Server, ServerState,
};
pub use outbox::{Ask, AskOf, Outbox};
pub use packet::{Flow, Spent, SpentByAll, Traffic};
pub use run::{Asks, Collectives, Keeper, Outcome, Plan, Status, Store, Stored, Sums, Then};
