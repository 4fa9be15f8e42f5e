//! Collective communication: requests to all ranks by broadcast, sums over all hosting ranks by all-reduce.

use super::super::body::Body;
use super::super::fault::{Action, Activity, Fault};
use super::super::layout::{AgentId, Rank};
use super::super::packet::{Packet, Posted, Reduction};
use super::comm::Comm;
use super::frame::{Frame, Incoming, PIECE, test};
use super::world::World;
use crate::number::Number;
use mpi::ffi;
use std::collections::{BTreeMap, VecDeque};
use std::ffi::c_int;
use std::mem::MaybeUninit;
use std::sync::Arc;

/// The size of the first broadcast of a packet; the rest follows in broadcasts whose sizes are then known.
const BLOCK: usize = 4 * 1024;
/// The most values in one all-reduce: MPI counts in C ints.
const MAX_CHUNK: usize = 1 << 28;

/// Broadcasts from rank 0; the other ranks always have one posted in advance.
pub(super) struct Broadcasts<N: Number> {
    comm: Comm,
    is_root: bool,
    sending: VecDeque<(Vec<ffi::MPI_Request>, Frame<N>)>,
    posted: Option<(Vec<u8>, ffi::MPI_Request)>,
    receiving: VecDeque<Incoming<N>>,
    /// Whether rank 0 has sent the empty message that ends the broadcasts, or another rank has received it.
    ended: bool,
}

impl<N: Number> Broadcasts<N> {
    /// Collective: every rank calls this.
    pub fn new(world: &World) -> Self {
        let mut new = Self {
            comm: world.duplicate(),
            is_root: world.rank() == 0,
            sending: VecDeque::new(),
            posted: None,
            receiving: VecDeque::new(),
            ended: false,
        };
        if !new.is_root {
            new.post();
        }
        new
    }

    /// Whether any broadcast is under way, apart from the one posted in advance.
    pub fn is_moving(&self) -> bool {
        !self.sending.is_empty() || !self.receiving.is_empty()
    }

    fn post(&mut self) {
        let mut block = vec![0; BLOCK];
        let request = broadcast(&self.comm, block.as_mut_ptr(), BLOCK as c_int);
        self.posted = Some((block, request));
    }

    /// Sends a packet to all other ranks; only on rank 0.
    pub fn send(&mut self, packet: Packet<N>) -> Result<(), String> {
        let mut frame = Frame::new(packet, BLOCK)?;
        frame.first.resize(BLOCK, 0);
        self.start(frame);
        Ok(())
    }

    fn start(&mut self, frame: Frame<N>) {
        let mut requests = vec![broadcast(&self.comm, frame.first.as_ptr().cast_mut(), BLOCK as c_int)];
        // MPI takes the root's buffer as mutable, but only reads it.
        let pieces = frame.pieces(PIECE);
        requests.extend(pieces.map(|piece| broadcast(&self.comm, piece.as_ptr().cast_mut(), piece.len() as c_int)));
        self.sending.push_back((requests, frame));
    }

    /// The next packet that has been received completely, if any.
    pub fn receive(&mut self) -> Result<Option<Packet<N>>, String> {
        self.sending.retain_mut(|(requests, _)| {
            requests.retain_mut(|request| !test(request));
            !requests.is_empty()
        });
        let received = self.posted.take_if(|(_, request)| test(request));
        if let Some((block, _)) = received {
            if block.iter().take(8).all(|&byte| byte == 0) {
                self.ended = true;
            } else {
                let comm = &self.comm;
                self.receiving.push_back(Incoming::new(&block, PIECE, |start, len| broadcast(comm, start, len))?);
                // After the pieces, because all ranks must post in the same order.
                self.post();
            }
        }
        let place = self.receiving.iter_mut().position(Incoming::is_complete);
        place.and_then(|place| self.receiving.remove(place)).map(Incoming::into_packet).transpose()
    }

    /// Ends the broadcasts when the run is over; returns whether they have ended on this rank.
    pub fn end(&mut self) -> Result<bool, String> {
        if self.is_root && !self.ended {
            self.ended = true;
            // A head is never empty, so a block of zeros marks the end.
            self.start(Frame::blank(BLOCK));
        }
        if self.receive()?.is_some() {
            return Err("a request arrived after the end of the run".into());
        }
        Ok(self.ended && self.sending.is_empty() && self.receiving.is_empty())
    }
}

/// Starts a broadcast from rank 0; the buffer must outlive the operation.
fn broadcast(comm: &Comm, start: *mut u8, len: c_int) -> ffi::MPI_Request {
    let mut request = MaybeUninit::uninit();
    // SAFETY: the callers keep the buffer on the heap together with the MPI request.
    unsafe {
        ffi::MPI_Ibcast(start.cast(), len, ffi::RSMPI_UINT8_T, 0, comm.raw(), request.as_mut_ptr());
        request.assume_init()
    }
}

/// The MPI datatype of a number type, if MPI can add it.
pub(super) fn datatype<N: Number>() -> Option<ffi::MPI_Datatype> {
    // SAFETY: constants of the MPI library.
    unsafe {
        match N::NAME {
            "i32" => Some(ffi::RSMPI_INT32_T),
            "f32" => Some(ffi::RSMPI_FLOAT),
            "f64" => Some(ffi::RSMPI_DOUBLE),
            _ => None,
        }
    }
}

/// Sums over all ranks that host agents, one at a time, in the order of their numbers.
pub(super) struct Reductions<N: Number> {
    comm: Comm,
    kind: ffi::MPI_Datatype,
    next: u64,
    waiting: BTreeMap<u64, Reduction<N>>,
    current: Option<Current<N>>,
}

/// A request and its finished sum.
type Reduced<N> = (Arc<Posted>, Body<N>);

/// The sum that is being computed.
struct Current<N: Number> {
    request: Arc<Posted>,
    /// An agent on this rank that has contributed.
    from: AgentId,
    contribution: Body<N>,
    /// While ranks compare lengths: (length, −length) of this rank, and the maximum of each over ranks. On the heap, because MPI keeps
    /// their addresses.
    lengths: Option<Box<[[i64; 2]; 2]>>,
    sum: Vec<N>,
    requests: Vec<ffi::MPI_Request>,
}

impl<N: Number> Reductions<N> {
    /// Collective: every rank calls this; ranks without agents get none.
    pub fn new(world: &World, hosts: bool) -> Option<Self> {
        let comm = world.split(hosts)?;
        let kind = datatype::<N>()?;
        Some(Self { comm, kind, next: 0, waiting: BTreeMap::new(), current: None })
    }

    /// Whether any sum is unfinished.
    pub fn is_moving(&self) -> bool {
        self.current.is_some() || !self.waiting.is_empty()
    }

    /// Takes this rank's contribution to a sum.
    pub fn add(&mut self, contribution: Reduction<N>) {
        self.waiting.insert(contribution.number, contribution);
    }

    /// The next finished sum, if any.
    ///
    /// # Errors
    /// If the contributions to a sum differ in length.
    pub fn finished(&mut self, rank: Rank, method: &'static str) -> Result<Option<Reduced<N>>, Fault> {
        loop {
            let Some(current) = &mut self.current else {
                let Some(contribution) = self.waiting.remove(&self.next) else { return Ok(None) };
                self.next += 1;
                self.current = Some(self.begin(contribution));
                continue;
            };
            current.requests.retain_mut(|request| !test(request));
            if !current.requests.is_empty() {
                return Ok(None);
            }
            let Some(lengths) = current.lengths.take() else {
                let Some(Current { request, contribution, mut sum, .. }) = self.current.take() else { return Ok(None) };
                // SAFETY: the sum has this much room, and the completed operations have written all of it.
                unsafe { sum.set_len(contribution.len()) };
                return Ok(Some((request, sum.into())));
            };
            let [_, [most, least]] = *lengths;
            if most != -least {
                let agent = Some(current.from);
                let own = current.contribution.len();
                return Err(Activity { method, rank, agent, action: Action::Communicating }.fault(format!(
                    "bodies of one sum differ in length: {own} values on this rank, from {} to {most} on all ranks (request {})",
                    -least, current.request.id
                )));
            }
            current.sum.reserve_exact(current.contribution.len());
            for (at, piece) in (0..).step_by(MAX_CHUNK).zip(current.contribution.chunks(MAX_CHUNK)) {
                let mut request = MaybeUninit::uninit();
                // SAFETY: `Current` keeps both arrays on the heap until the request has completed; the length fits a C int.
                unsafe {
                    let (send, receive) = (piece.as_ptr().cast(), current.sum.as_mut_ptr().add(at).cast());
                    let (len, comm) = (piece.len() as c_int, self.comm.raw());
                    ffi::MPI_Iallreduce(send, receive, len, self.kind, ffi::RSMPI_SUM, comm, request.as_mut_ptr());
                    current.requests.push(request.assume_init());
                }
            }
        }
    }

    /// Compares the lengths of the contributions of all hosting ranks.
    fn begin(&self, contribution: Reduction<N>) -> Current<N> {
        let len = contribution.contribution.len() as i64;
        let mut lengths = Box::new([[len, -len], [0, 0]]);
        let mut request = MaybeUninit::uninit();
        // SAFETY: `Current` keeps the lengths on the heap until the operation has completed.
        let request = unsafe {
            let (send, receive) = ((&raw const lengths[0]).cast(), (&raw mut lengths[1]).cast());
            let comm = self.comm.raw();
            ffi::MPI_Iallreduce(send, receive, 2, ffi::RSMPI_INT64_T, ffi::RSMPI_MAX, comm, request.as_mut_ptr());
            request.assume_init()
        };
        Current {
            request: contribution.request,
            from: contribution.from,
            contribution: contribution.contribution,
            lengths: Some(lengths),
            sum: Vec::new(),
            requests: vec![request],
        }
    }
}
