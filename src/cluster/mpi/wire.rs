//! Point-to-point packets: a small packet is one message; large heads and bodies are further messages without intermediate copies.

use super::super::packet::Packet;
use super::comm::Comm;
use super::frame::{Frame, Incoming, PIECE, test};
use super::world::World;
use crate::number::Number;
use mpi::ffi;
use std::collections::VecDeque;
use std::ffi::c_int;
use std::mem::MaybeUninit;

/// Packets up to this many bytes are sent as one message.
const ROOM: usize = 16 * 1024;
const TAG_FIRST: c_int = 1;
const TAG_PIECE: c_int = 2;

/// This rank's point-to-point communication in one run.
pub(super) struct Wire<N: Number> {
    // A communicator for each run: a rank may already send packets of the next run while another still ends this one.
    comm: Comm,
    rank: u32,
    size: u32,
    sending: Vec<Sending<N>>,
    receiving: VecDeque<Incoming<N>>,
}

/// A packet being sent; its buffers live until the operations have completed.
struct Sending<N> {
    requests: Vec<ffi::MPI_Request>,
    _frame: Frame<N>,
}

impl<N: Number> Wire<N> {
    /// Collective: every rank calls this.
    pub fn new(world: &World) -> Self {
        Self { comm: world.duplicate(), rank: world.rank(), size: world.size(), sending: Vec::new(), receiving: VecDeque::new() }
    }

    pub fn rank(&self) -> u32 {
        self.rank
    }

    /// The number of ranks.
    pub fn size(&self) -> u32 {
        self.size
    }

    /// Whether all sends and receives have completed.
    pub fn is_quiet(&mut self) -> bool {
        self.drop_sent();
        self.sending.is_empty() && self.receiving.is_empty()
    }

    /// Whether any packet is being sent or received.
    pub fn is_moving(&self) -> bool {
        !self.sending.is_empty() || !self.receiving.is_empty()
    }

    /// Drops packets that have been sent.
    fn drop_sent(&mut self) {
        self.sending.retain_mut(|sending| {
            sending.requests.retain_mut(|request| !test(request));
            !sending.requests.is_empty()
        });
    }

    /// Starts sending a packet.
    pub fn send(&mut self, to: u32, packet: Packet<N>) -> Result<(), String> {
        if to >= self.size {
            return Err(format!("there is no rank {to}"));
        }
        let to = to.cast_signed();
        let frame = Frame::new(packet, ROOM)?;
        let mut requests = vec![self.isend(&frame.first, to, TAG_FIRST)];
        requests.extend(frame.pieces(PIECE).map(|piece| self.isend(piece, to, TAG_PIECE)));
        self.sending.push(Sending { requests, _frame: frame });
        Ok(())
    }

    fn isend(&self, bytes: &[u8], to: c_int, tag: c_int) -> ffi::MPI_Request {
        let mut request = MaybeUninit::uninit();
        // SAFETY: the caller keeps `bytes` on the heap until the operation has completed (`Sending`); the length fits a C int.
        unsafe {
            let (start, len) = (bytes.as_ptr().cast(), bytes.len() as c_int);
            ffi::MPI_Isend(start, len, ffi::RSMPI_UINT8_T, to, tag, self.comm.raw(), request.as_mut_ptr());
            request.assume_init()
        }
    }

    /// The next packet that has been received completely, if any.
    pub fn receive(&mut self) -> Result<Option<Packet<N>>, String> {
        self.drop_sent();
        if let Some(packet) = self.finished()? {
            return Ok(Some(packet));
        }
        let Some((from, first)) = self.probe() else { return Ok(None) };
        let comm = self.comm.raw();
        let incoming = Incoming::new(&first, PIECE, |start, len| {
            let mut request = MaybeUninit::uninit();
            // SAFETY: `Incoming` keeps the buffer until the operation has completed.
            unsafe {
                ffi::MPI_Irecv(start.cast(), len, ffi::RSMPI_UINT8_T, from, TAG_PIECE, comm, request.as_mut_ptr());
                request.assume_init()
            }
        })?;
        self.receiving.push_back(incoming);
        self.finished()
    }

    /// A packet that has been received completely.
    fn finished(&mut self) -> Result<Option<Packet<N>>, String> {
        let place = self.receiving.iter_mut().position(Incoming::is_complete);
        place.and_then(|place| self.receiving.remove(place)).map(Incoming::into_packet).transpose()
    }

    /// The first message of a packet from any rank, if one has arrived.
    fn probe(&self) -> Option<(c_int, Vec<u8>)> {
        // SAFETY: plain C calls on live buffers; the message handle is used at once by the matching receive.
        unsafe {
            let (mut flag, mut message, mut status) = (0, MaybeUninit::uninit(), MaybeUninit::uninit());
            ffi::MPI_Improbe(
                ffi::RSMPI_ANY_SOURCE,
                TAG_FIRST,
                self.comm.raw(),
                &raw mut flag,
                message.as_mut_ptr(),
                status.as_mut_ptr(),
            );
            if flag == 0 {
                return None;
            }
            let (mut message, status) = (message.assume_init(), status.assume_init());
            let mut count = 0;
            ffi::MPI_Get_count(&raw const status, ffi::RSMPI_UINT8_T, &raw mut count);
            let mut bytes = vec![0_u8; usize::try_from(count).unwrap_or(0)];
            let ignore = ffi::RSMPI_STATUS_IGNORE;
            ffi::MPI_Mrecv(bytes.as_mut_ptr().cast(), count, ffi::RSMPI_UINT8_T, &raw mut message, ignore);
            Some((status.MPI_SOURCE, bytes))
        }
    }
}
