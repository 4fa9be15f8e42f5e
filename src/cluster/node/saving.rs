//! How a rank saves its agents and transfers for a checkpoint.

use super::super::body::Body;
use super::super::fault::{Action, Fault, guard};
use super::super::layout::AgentId;
use super::super::options::Flushed;
use super::super::packet::{AgentTime, Head, Packet, SavedBody, SavedTransfer};
use super::super::placement::host;
use super::super::record::Record;
use super::super::request::RequestId;
use super::super::states::{NotSaved, WriteState, in_memory};
use super::super::timeline::Doing;
use super::super::usage::{RankUsage, peak_memory};
use super::{Node, Quiescing, Saved};
use crate::number::Number;
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::time::Instant;

impl<N: Number> Node<N> {
    /// If rank 0 has asked for it and this rank has nothing under way any more: writes the draws, saves the states if there is to be a
    /// checkpoint, and sends rank 0 all that it needs.
    pub(super) fn try_quiesce(&mut self) -> Result<(), Fault> {
        let (started, agents, transfers) = (self.started, &self.agents, &self.transfers);
        // Large reports do not go up the tree. Rank 0 can therefore have all reports, and ask, while this rank still has to pass on a bundle.
        let passes_on_reports = !self.bundles.is_empty();
        let is_quiet = |waiting: &mut Quiescing| {
            started
                && !passes_on_reports
                && agents.values().all(|hosted| hosted.agent.is_some() && hosted.agenda.is_empty())
                && waiting.expected.iter().all(|(_, transfer)| transfers.contains_key(transfer))
        };
        let Some(Quiescing { saved_here, wants_states, .. }) = self.quiescing.take_if(is_quiet) else { return Ok(()) };
        let recording = self.activity(None, Action::Recording);
        let since = Instant::now();
        let Flushed { stored, unstored } =
            self.store.as_ref().map_or_else(|| Ok(Flushed::default()), |store| guard(recording, || store.flush()))?;
        if self.store.is_some() {
            self.note_saving(Doing::Recording, since);
        }
        let since = Instant::now();
        let saved = if wants_states { self.save_states(&saved_here)? } else { Ok(Saved::default()) };
        let saving_seconds = since.elapsed().as_secs_f64();
        if wants_states {
            self.note_saving(Doing::SavingStates, since);
        }
        let (Saved { agents, transfers }, failure) = match saved {
            Ok(saved) => (saved, None),
            Err(cause) => (Saved::default(), Some(cause)),
        };
        let mut records = std::mem::take(&mut self.records);
        records.extend(unstored.into_iter().map(Record::Draws));
        let traffic = std::mem::take(&mut self.traffic);
        let spent: Vec<(AgentId, AgentTime)> = std::mem::take(&mut self.spent).into_iter().collect();
        let usage = Box::new(RankUsage {
            host: host(),
            threads: self.threads,
            thread_seconds: spent.iter().map(|(_, spent)| spent.total()).sum(),
            peak_memory: peak_memory(),
            ..std::mem::take(&mut self.usage)
        });
        let rank = self.rank;
        let head = Head::Quiesced { rank, agents, transfers, records, traffic, spent, stored, failure, saving_seconds, usage };
        self.send(0, Packet { head, body: Body::empty() });
        Ok(())
    }

    /// Adds the time since `since`, spent on saving, to the usage and the timeline.
    pub fn note_saving(&mut self, doing: Doing, since: Instant) {
        let seconds = since.elapsed().as_secs_f64();
        self.usage.saving += seconds;
        self.seconds_saving += seconds;
        if let Some(timeline) = &self.timeline {
            timeline.add(doing, 0, None, None, since);
        }
    }

    /// Saves the states of this rank's agents and its transfers; the bodies only of transfers whose request is in `saved_here`. The inner error is
    /// that of the store: the run continues without this checkpoint.
    fn save_states(&self, saved_here: &BTreeSet<RequestId>) -> Result<Result<Saved, String>, Fault> {
        // A store passes on only the cause of a failure; the fault, which names the agent, is kept here.
        let agent_fault = &RefCell::new(None);
        let mut ids = Vec::with_capacity(self.agents.len());
        let mut states: Vec<WriteState> = Vec::with_capacity(self.agents.len());
        for (&id, hosted) in &self.agents {
            if let Some(agent) = &hosted.agent {
                let activity = self.activity(Some(id), Action::Saving);
                ids.push(id);
                states.push(Box::new(move |to| {
                    guard(activity, || agent.write_state(to)).map_err(|fault| {
                        let cause = fault.cause.clone();
                        agent_fault.replace(Some(fault));
                        cause.into()
                    })
                }));
            }
        }
        let mut transfers = Vec::with_capacity(self.transfers.len());
        for (&request, transfer) in &self.transfers {
            let body_saved_here = saved_here.contains(&request).then(|| {
                let (bytes, is_packed) = SavedBody::to_bytes(&transfer.body);
                states.push(Box::new(move |to| Ok(to.write_all(&bytes)?)));
                (transfer.body.len(), is_packed)
            });
            transfers.push((request, transfer.to.clone(), body_saved_here));
        }
        let wanted = states.len();
        let stored = match &self.states {
            Some(store) => guard(self.activity(None, Action::Saving), || Ok(store.save(states)))?,
            None => in_memory(states),
        };
        let mut stored = match stored {
            Ok(stored) if stored.len() != wanted => {
                return Ok(Err(format!("rank {}: {wanted} states were to be saved, and {} were", self.rank, stored.len())));
            }
            Ok(stored) => stored.into_iter(),
            Err(NotSaved::State(cause)) => {
                return Err(agent_fault.take().unwrap_or_else(|| self.activity(None, Action::Saving).fault(cause.to_string())));
            }
            Err(NotSaved::Store(cause)) => return Ok(Err(format!("rank {}: {cause}", self.rank))),
        };
        // The states of the agents come first, then the bodies.
        let agents = ids.into_iter().zip(&mut stored).collect();
        let mut saved_body = |(values, is_packed)| Some(SavedBody { values, is_packed, bytes: stored.next()? });
        let saved_transfer = |(request, to, body_saved_here): (RequestId, Vec<AgentId>, Option<(usize, bool)>)| SavedTransfer {
            request,
            to,
            body: body_saved_here.and_then(&mut saved_body),
        };
        Ok(Ok(Saved { agents, transfers: transfers.into_iter().map(saved_transfer).collect() }))
    }
}
