//! The driver without MPI: server and agents in one process, agents on worker threads.

use super::checkpoint::Checkpoint;
use super::context::Clock;
use super::erased::{AnyMethod, Erased, erased};
use super::fault::{self, Fault};
use super::job::Bench;
use super::layout::Layout;
use super::method::Method;
use super::node::Node;
use super::run::{Keeper, LOOK_EVERY, Outcome, Plan, look_after};
use super::workers::Workers;
use crate::number::{Number, Picked};
use crossbeam_channel::RecvTimeoutError;
use std::sync::Arc;

/// Runs a method to its end, or until its keeper stops it, in this process.
///
/// # Errors
/// The first failure of the server or an agent.
pub fn run<M: Method>(method: Arc<M>, plan: Plan, saved: Option<Checkpoint>, keeper: &mut dyn Keeper) -> Result<Outcome, Fault> {
    carry_any(erased(method, &plan), plan, saved, keeper)
}

fn carry_any(method: AnyMethod, plan: Plan, saved: Option<Checkpoint>, keeper: &mut dyn Keeper) -> Result<Outcome, Fault> {
    match method {
        Picked::F32(method) => carry(method, plan, saved, keeper),
        Picked::F64(method) => carry(method, plan, saved, keeper),
        Picked::I32(method) => carry(method, plan, saved, keeper),
    }
}

fn carry<N: Number>(method: Erased<N>, plan: Plan, saved: Option<Checkpoint>, keeper: &mut dyn Keeper) -> Result<Outcome, Fault> {
    fault::install(Box::new(|fault| fault.say()));
    let layout = Layout { ranks: 1, agents: method.agents(), dedicated: false, dealing: method.dealing() };
    let clock = Clock::wall(saved.as_ref().map_or(0.0, |saved| saved.seconds));
    let mut node = Node::new(method.clone(), 0, layout, plan.threads);
    node.store.clone_from(&plan.store);
    node.lead(saved)?;
    let bench = Bench { method, seed: plan.seed, rank: 0, clock: clock.clone(), store: plan.store };
    let workers = Workers::start(bench, plan.threads);
    loop {
        while let Some((_, packet)) = node.out.pop_front() {
            node.handle(packet)?;
        }
        if let Some(outcome) = look_after(&mut node, keeper, &clock)? {
            return Ok(outcome);
        }
        node.jobs.drain(..).for_each(|job| workers.give(job));
        if node.out.is_empty() {
            match workers.results.recv_timeout(LOOK_EVERY) {
                Ok(done) => node.done(done)?,
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {}
            }
        }
    }
}
