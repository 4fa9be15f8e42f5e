//! Sums on their way: what a rank contributes, what it passes on, and what it delivers.

use super::super::body::Body;
use super::super::coordinator::total_packet;
use super::super::fault::Fault;
use super::super::layout::AgentId;
use super::super::packet::{Head, Packet, Posted};
use super::super::ranges::Ranges;
use super::super::request::{RequestId, Route};
use super::super::sums::Step;
use super::super::tree;
use super::{Node, Transfer};
use crate::number::Number;

impl<N: Number> Node<N> {
    /// Takes a sum that was added by all-reduce, which all hosting ranks have. If it is for the server, the first of them sends it, as one part.
    pub fn reduced(&mut self, request: &Posted, sum: Body<N>) -> Result<(), Fault> {
        match &request.route {
            Route::SumTo(to) => self.deliver(request.id, to, sum),
            Route::Back | Route::Sum => {
                if self.layout.hosting().first() == Some(self.rank) {
                    self.send_total(request.id, (0, 1), &request.route, sum);
                }
                Ok(())
            }
        }
    }

    /// Delivers a complete sum: to the server if `to` is empty, otherwise as a transfer to the receivers that this rank hosts.
    pub(super) fn deliver(&mut self, request: RequestId, to: &Ranges, body: Body<N>) -> Result<(), Fault> {
        if to.is_empty() {
            if let Some(coordinator) = &mut self.coordinator {
                coordinator.receive_sum(request, body);
            }
            return self.advance_server();
        }
        let to: Vec<AgentId> = to.among(&self.own_agents).collect();
        if to.is_empty() {
            return Ok(());
        }
        self.transfers.insert(request, Transfer { body, to: to.clone() });
        for id in to {
            self.advance_agent(id);
        }
        self.try_quiesce()
    }

    /// Sends a part of a total on its way to its receivers.
    pub(super) fn send_total(&mut self, request: RequestId, part: (u32, u32), route: &Route, body: Body<N>) {
        let to = match route {
            Route::SumTo(to) => to.clone(),
            Route::Back | Route::Sum => Ranges::default(),
        };
        let (rank, packet) = total_packet(&self.layout, request, part, to, body);
        self.send(rank, packet);
    }

    /// Forwards a part of a total to the ranks below this one in the tree of its receivers.
    pub(super) fn forward_total(&mut self, request: RequestId, (part, parts): (u32, u32), to: &Ranges, body: &Body<N>) {
        // The tree numbers the ranks that host agents from 0: their places.
        let places = self.layout.places(&self.layout.ranks_of(to));
        for place in tree::children(self.layout.place_of(self.rank), &places, part) {
            let head = Head::Total { request, part, parts, to: to.clone() };
            self.send(self.layout.rank_at(place), Packet { head, body: body.clone() });
        }
    }

    /// Sends on the parts of a sum that are ready; a contribution to an all-reduce goes to the driver.
    pub(super) fn advance_sum(&mut self, id: RequestId) {
        let Some(sum) = self.sums.get_mut(&id) else { return };
        let Some(request) = sum.request().cloned() else { return };
        if request.reduction.is_some() {
            if let Some(reduction) = sum.take_local() {
                self.traffic.count("sums by all-reduce", (reduction.contribution.len() * size_of::<N>()) as u64);
                self.reductions.push(reduction);
                self.sums.remove(&id);
            }
            return;
        }
        let steps = sum.advance();
        if sum.is_finished() {
            self.sums.remove(&id);
        }
        for step in steps {
            match step {
                Step::Send { to, part, body } => {
                    self.send(self.layout.rank_at(to), Packet { head: Head::PartOfSum { request: id, part }, body });
                }
                Step::Done { part, parts, total } => self.send_total(id, (part, parts), &request.route, total),
            }
        }
    }
}
