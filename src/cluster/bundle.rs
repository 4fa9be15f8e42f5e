//! Reports on their way to rank 0: a rank sends those of its agents and of the ranks below it in the tree together.

use super::body::Body;
use super::layout::Rank;
use super::packet::Report;
use crate::number::Number;

/// A report with more bytes travels alone and directly: what is passed on costs every rank on the way.
const MAX_BYTES: usize = 4096;

/// Whether a report is so large that it is better sent directly to rank 0.
pub(super) fn is_large<N: Number>(report: &Report, body: &Body<N>) -> bool {
    size_of_val(&**body) + report.report.0.len() + report.draws() as usize > MAX_BYTES
}

/// The reports of one request that this rank has so far.
pub(super) struct Bundle<N: Number> {
    /// Unknown if a rank below reports before the request arrives.
    expected: Option<Expected>,
    arrived: usize,
    reports: Vec<Report>,
    bodies: Vec<Body<N>>,
}

/// What a rank waits for, and where it sends that.
#[derive(Clone, Copy)]
struct Expected {
    /// Members on this rank and ranks below it.
    count: usize,
    above: Rank,
}

impl<N: Number> Default for Bundle<N> {
    fn default() -> Self {
        Self { expected: None, arrived: 0, reports: Vec::new(), bodies: Vec::new() }
    }
}

impl<N: Number> Bundle<N> {
    /// Says for how many members and ranks to wait, and to which rank their reports go.
    pub fn open(&mut self, count: usize, above: Rank) {
        self.expected = Some(Expected { count, above });
    }

    /// Takes what a member or a rank below has reported: nothing, if all of it was sent directly.
    pub fn add(&mut self, reports: impl IntoIterator<Item = Report>, body: Body<N>) {
        self.arrived += 1;
        self.reports.extend(reports);
        self.bodies.push(body);
    }

    /// The rank above, once all have reported.
    pub fn ready(&self) -> Option<Rank> {
        self.expected.filter(|expected| expected.count == self.arrived).map(|expected| expected.above)
    }

    /// The reports, and their bodies one after another.
    pub fn into_parts(self) -> (Vec<Report>, Body<N>) {
        (self.reports, Body::joined(self.bodies))
    }
}
