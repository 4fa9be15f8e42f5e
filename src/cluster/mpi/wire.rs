//! Packets as MPI messages: small ones in one message, large bodies in messages of their own, straight from and into their arrays.

use super::super::body::Body;
use super::super::codec::{decode, encode};
use super::super::method::Method;
use super::super::packet::{Head, Packet};
use super::world::World;
use mpi::ffi;
use mpi::raw::AsRaw;
use std::collections::VecDeque;
use std::ffi::c_int;
use std::mem::MaybeUninit;
use std::sync::Arc;

/// Bodies up to this many bytes travel behind their head in one message.
const INLINE: usize = 16 * 1024;
/// Larger bodies are cut into messages of at most this many bytes: MPI counts in C ints.
const PIECE: usize = 1 << 30;
/// The tags of a run are its own: a rank may be in the next run already and send to one that has not yet heard of the end of this
/// one. MPI promises tags up to 32767.
const RUNS_APART: u32 = 8192;

/// This rank's end of all connections.
pub(super) struct Wire<M: Method> {
    comm: ffi::MPI_Comm,
    rank: u32,
    size: usize,
    tag_head: c_int,
    tag_body: c_int,
    sending: Vec<Sending<M::Number>>,
    receiving: VecDeque<Receiving<M>>,
}

/// A message on its way out; the buffers live until it has left.
struct Sending<N> {
    request: ffi::MPI_Request,
    _bytes: Arc<Vec<u8>>,
    _body: Option<Body<N>>,
}

/// A packet whose body is on its way in.
struct Receiving<M: Method> {
    head: Head<M>,
    body: Vec<M::Number>,
    requests: Vec<ffi::MPI_Request>,
}

/// The length prefix of a head message: bytes of the head, numbers of the body, whether the body is inside.
const PREFIX: usize = 17;

impl<M: Method> Wire<M> {
    pub fn new(world: &World) -> Self {
        let tag_head = 2 * (world.next_run() % RUNS_APART).cast_signed() + 1;
        Self {
            comm: world.comm().as_raw(),
            rank: world.rank(),
            size: world.size() as usize,
            tag_head,
            tag_body: tag_head + 1,
            sending: Vec::new(),
            receiving: VecDeque::new(),
        }
    }

    pub fn rank(&self) -> u32 {
        self.rank
    }

    /// Whether all messages have left and every body has come.
    pub fn is_quiet(&mut self) -> bool {
        self.sending.retain_mut(|sending| !test(&mut sending.request));
        self.sending.is_empty() && self.receiving.is_empty()
    }

    /// Whether anything is on its way.
    pub fn is_moving(&self) -> bool {
        !self.sending.is_empty() || !self.receiving.is_empty()
    }

    /// Starts to send a packet.
    pub fn send(&mut self, to: u32, packet: Packet<M>) -> Result<(), String> {
        if to as usize >= self.size {
            return Err(format!("there is no rank {to}"));
        }
        let to = to.cast_signed();
        let head = encode("a packet", &packet.head).map_err(|error| error.to_string())?;
        let body: &[u8] = bytemuck::cast_slice(&packet.body);
        let inside = body.len() <= INLINE;
        let mut bytes = Vec::with_capacity(PREFIX + head.len() + if inside { body.len() } else { 0 });
        bytes.extend_from_slice(&(head.len() as u64).to_le_bytes());
        bytes.extend_from_slice(&(packet.body.len() as u64).to_le_bytes());
        bytes.push(u8::from(inside));
        bytes.extend_from_slice(&head);
        if inside {
            bytes.extend_from_slice(body);
        }
        let bytes = Arc::new(bytes);
        // A head is small, but a checkpoint's states travel in one.
        if bytes.len() > c_int::MAX as usize {
            return Err(format!("the head of a message has {} bytes, more than MPI can count", bytes.len()));
        }
        let request = self.isend(&bytes, to, self.tag_head);
        self.sending.push(Sending { request, _bytes: bytes.clone(), _body: None });
        if !inside {
            for piece in body.chunks(PIECE) {
                let request = self.isend(piece, to, self.tag_body);
                self.sending.push(Sending { request, _bytes: bytes.clone(), _body: Some(packet.body.clone()) });
            }
        }
        Ok(())
    }

    fn isend(&self, bytes: &[u8], to: c_int, tag: c_int) -> ffi::MPI_Request {
        let mut request = MaybeUninit::uninit();
        // SAFETY: the caller keeps `bytes` alive until the request has completed (`Sending`); the length fits a C int.
        unsafe {
            let byte = ffi::RSMPI_UINT8_T;
            ffi::MPI_Isend(bytes.as_ptr().cast(), bytes.len() as c_int, byte, to, tag, self.comm, request.as_mut_ptr());
            request.assume_init()
        }
    }

    /// The next packet that is here whole, if there is one.
    pub fn receive(&mut self) -> Result<Option<Packet<M>>, String> {
        self.sending.retain_mut(|sending| !test(&mut sending.request));
        if let Some(packet) = self.finished() {
            return Ok(Some(packet));
        }
        let Some((from, bytes)) = self.probe() else { return Ok(None) };
        let number = |at: usize| {
            let field = bytes.get(at..at + 8).and_then(|field| field.try_into().ok());
            field.map(u64::from_le_bytes).and_then(|n| usize::try_from(n).ok()).ok_or("a message is too short")
        };
        let (head_len, numbers) = (number(0)?, number(8)?);
        let inside = bytes.get(16) == Some(&1);
        let head_bytes = bytes.get(PREFIX..PREFIX + head_len).ok_or("a message is shorter than its head says")?;
        let head: Head<M> = decode("a packet", head_bytes).map_err(|error| error.to_string())?;
        if inside {
            let body: Vec<M::Number> = bytemuck::allocation::pod_collect_to_vec(&bytes[PREFIX + head_len..]);
            return Ok(Some(Packet { head, body: body.into() }));
        }
        let mut body = vec![M::Number::default(); numbers];
        let mut requests = Vec::new();
        for piece in bytemuck::cast_slice_mut::<_, u8>(&mut body).chunks_mut(PIECE) {
            let mut request = MaybeUninit::uninit();
            // SAFETY: `body` keeps its place on the heap inside `Receiving` until all of its requests have completed.
            unsafe {
                let (byte, len) = (ffi::RSMPI_UINT8_T, piece.len() as c_int);
                ffi::MPI_Irecv(piece.as_mut_ptr().cast(), len, byte, from, self.tag_body, self.comm, request.as_mut_ptr());
                requests.push(request.assume_init());
            }
        }
        self.receiving.push_back(Receiving { head, body, requests });
        Ok(self.finished())
    }

    /// A packet whose body has come in whole.
    fn finished(&mut self) -> Option<Packet<M>> {
        let place = self.receiving.iter_mut().position(|receiving| {
            receiving.requests.retain_mut(|request| !test(request));
            receiving.requests.is_empty()
        })?;
        self.receiving.remove(place).map(|receiving| Packet { head: receiving.head, body: receiving.body.into() })
    }

    /// A head message from anybody, if one is there.
    fn probe(&self) -> Option<(c_int, Vec<u8>)> {
        // SAFETY: plain C calls on live buffers; the message handle is used at once by the matching receive.
        unsafe {
            let (mut flag, mut message, mut status) = (0, MaybeUninit::uninit(), MaybeUninit::uninit());
            ffi::MPI_Improbe(
                ffi::RSMPI_ANY_SOURCE,
                self.tag_head,
                self.comm,
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

/// Whether a request has completed.
fn test(request: &mut ffi::MPI_Request) -> bool {
    let mut flag = 0;
    // SAFETY: the request is live or null, both of which MPI_Test takes.
    unsafe { ffi::MPI_Test(request, &raw mut flag, ffi::RSMPI_STATUS_IGNORE) };
    flag != 0
}
