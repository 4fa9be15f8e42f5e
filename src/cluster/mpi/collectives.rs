//! Requests to all ranks by broadcasts that wait for them, and sums over all hosting ranks by all-reduce.

use super::super::body::Body;
use super::super::fault::{Action, Activity, Fault};
use super::super::layout::Rank;
use super::super::packet::{Packet, Posted, Reduction};
use super::frame::{Frame, Incoming, PIECE, test};
use super::world::{Comm, World};
use crate::number::Number;
use mpi::ffi;
use std::collections::{BTreeMap, VecDeque};
use std::ffi::c_int;
use std::mem::MaybeUninit;
use std::sync::Arc;

/// Every broadcast begins with a message of this many bytes; what does not fit follows in broadcasts of known size.
const BLOCK: usize = 4 * 1024;
/// An all-reduce adds at most this many numbers: MPI counts in C ints.
const NUMBERS: usize = 1 << 28;

/// Broadcasts from rank 0, one of which is always posted on the other ranks.
pub(super) struct Broadcasts<N: Number> {
    comm: Comm,
    is_root: bool,
    sending: VecDeque<(Vec<ffi::MPI_Request>, Frame<N>)>,
    posted: Option<(Vec<u8>, ffi::MPI_Request)>,
    receiving: VecDeque<Incoming<N>>,
    /// Rank 0 has sent the empty message that ends the broadcasts, or another rank has it.
    ended: bool,
}

impl<N: Number> Broadcasts<N> {
    /// Every rank calls this.
    pub fn new(world: &World) -> Self {
        let mut new = Self {
            comm: Comm::duplicate(world),
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

    /// Whether anything but the waiting broadcast is on its way.
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
        // The root's buffer is only read, although MPI takes it as mutable.
        let pieces = frame.pieces(PIECE);
        requests.extend(pieces.map(|piece| broadcast(&self.comm, piece.as_ptr().cast_mut(), piece.len() as c_int)));
        self.sending.push_back((requests, frame));
    }

    /// The next packet that is here whole, if there is one.
    pub fn receive(&mut self) -> Result<Option<Packet<N>>, String> {
        self.sending.retain_mut(|(requests, _)| {
            requests.retain_mut(|request| !test(request));
            !requests.is_empty()
        });
        let came = self.posted.take_if(|(_, request)| test(request));
        if let Some((block, _)) = came {
            if block.iter().take(8).all(|&byte| byte == 0) {
                self.ended = true;
            } else {
                let comm = &self.comm;
                self.receiving.push_back(Incoming::new(&block, PIECE, |start, len| broadcast(comm, start, len))?);
                // After the pieces: all ranks post in the same order.
                self.post();
            }
        }
        let place = self.receiving.iter_mut().position(Incoming::is_here);
        place.and_then(|place| self.receiving.remove(place)).map(Incoming::into_packet).transpose()
    }

    /// Ends the broadcasts when the run is over; whether they have ended here.
    pub fn end(&mut self) -> Result<bool, String> {
        if self.is_root && !self.ended {
            self.ended = true;
            // A head is never empty, so a block of zeros says it.
            self.start(Frame::blank(BLOCK));
        }
        if let Some(_late) = self.receive()? {
            return Err("a request came after the end of the run".into());
        }
        Ok(self.ended && self.sending.is_empty() && self.receiving.is_empty())
    }
}

/// Starts a broadcast from rank 0; the buffer has to outlive the request.
fn broadcast(comm: &Comm, start: *mut u8, len: c_int) -> ffi::MPI_Request {
    let mut request = MaybeUninit::uninit();
    // SAFETY: the callers keep the buffer on the heap beside the request.
    unsafe {
        ffi::MPI_Ibcast(start.cast(), len, ffi::RSMPI_UINT8_T, 0, comm.raw(), request.as_mut_ptr());
        request.assume_init()
    }
}

/// Action MPI calls a number type, where it can add it.
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

/// Sums over all ranks that host agents, one after another in the order of their numbers.
pub(super) struct Reductions<N: Number> {
    comm: Comm,
    kind: ffi::MPI_Datatype,
    next: u64,
    waiting: BTreeMap<u64, Reduction<N>>,
    current: Option<Current<N>>,
}

/// A finished sum, and the request that it is of.
type Reduced<N> = (Arc<Posted>, Body<N>);

/// The sum under way.
struct Current<N: Number> {
    request: Arc<Posted>,
    contribution: Body<N>,
    /// Not yet agreed on: (len, −len) here, and the largest of each. On the heap, for MPI holds on to them.
    lengths: Option<Box<[[i64; 2]; 2]>>,
    sum: Vec<N>,
    requests: Vec<ffi::MPI_Request>,
}

impl<N: Number> Reductions<N> {
    /// Every rank calls this; those that host no agents get nothing.
    pub fn new(world: &World, hosts: bool) -> Option<Self> {
        let comm = Comm::split(world, hosts)?;
        let kind = datatype::<N>()?;
        Some(Self { comm, kind, next: 0, waiting: BTreeMap::new(), current: None })
    }

    /// Whether any sum is not finished.
    pub fn is_moving(&self) -> bool {
        self.current.is_some() || !self.waiting.is_empty()
    }

    /// Takes this rank's contribution of a sum.
    pub fn add(&mut self, contribution: Reduction<N>) {
        self.waiting.insert(contribution.number, contribution);
    }

    /// The next finished sum, if there is one.
    ///
    /// # Errors
    /// Where the shares of a sum differ in length.
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
                let agent = current.request.members.first().map(|member| member.agent);
                let here = current.contribution.len();
                return Err(Activity { method, rank, agent, action: Action::Communicating }.fault(format!(
                    "bodies of one sum differ in length: {here} numbers here, from {} to {most} on all ranks (request {})",
                    -least, current.request.id
                )));
            }
            current.sum.reserve_exact(current.contribution.len());
            for (at, piece) in (0..).step_by(NUMBERS).zip(current.contribution.chunks(NUMBERS)) {
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

    /// Asks all hosting ranks for the lengths of their shares.
    fn begin(&self, contribution: Reduction<N>) -> Current<N> {
        let len = contribution.contribution.len() as i64;
        let mut lengths = Box::new([[len, -len], [0, 0]]);
        let mut request = MaybeUninit::uninit();
        // SAFETY: the numbers keep their place on the heap inside `Current` until the request has completed.
        let request = unsafe {
            let (send, receive) = ((&raw const lengths[0]).cast(), (&raw mut lengths[1]).cast());
            let comm = self.comm.raw();
            ffi::MPI_Iallreduce(send, receive, 2, ffi::RSMPI_INT64_T, ffi::RSMPI_MAX, comm, request.as_mut_ptr());
            request.assume_init()
        };
        Current {
            request: contribution.request,
            contribution: contribution.contribution,
            lengths: Some(lengths),
            sum: Vec::new(),
            requests: vec![request],
        }
    }
}
