//! Packets as MPI messages: a first message of limited size, and further pieces for a large head or body.

use super::super::body::Body;
use super::super::codec::{decode, encode};
use super::super::packet::Packet;
use super::super::packing::{pack, unpack};
use crate::number::Number;
use mpi::ffi;
use std::ffi::c_int;

/// The most bytes in a further message: MPI counts in C ints.
pub(super) const PIECE: usize = 1 << 30;

/// The prefix of a first message: bytes of the head, length of the body, bytes of the body, flags.
const PREFIX: usize = 25;
/// Flag: the head is in the first message.
const HEAD_INSIDE: u8 = 1;
/// Flag: the body is in the first message.
const BODY_INSIDE: u8 = 2;
/// Flag: the body is packed.
const PACKED: u8 = 4;

/// A packet to be sent. Its head may be large too: it may contain the states of a checkpoint.
pub(super) struct Frame<N> {
    /// The first message.
    pub first: Vec<u8>,
    head: Vec<u8>,
    body: Content<N>,
}

/// A body to be sent.
enum Content<N> {
    Nothing,
    Plain(Body<N>),
    Packed(Vec<u8>),
}

impl<N: Number> Content<N> {
    fn bytes(&self) -> &[u8] {
        match self {
            Self::Nothing => &[],
            Self::Plain(body) => body.bytes(),
            Self::Packed(bytes) => bytes,
        }
    }
}

impl<N: Number> Frame<N> {
    /// Splits a packet into messages, the first with at most `room` bytes.
    pub fn new(packet: Packet<N>, room: usize) -> Result<Self, String> {
        let head = encode("a packet", &packet.head).map_err(|error| error.to_string())?;
        let numbers = packet.body.len();
        let content = pack(&packet.body).map_or(Content::Plain(packet.body), Content::Packed);
        let is_packed = matches!(content, Content::Packed(_));
        let body = content.bytes();
        let head_inside = PREFIX + head.len() <= room;
        let body_inside = head_inside && PREFIX + head.len() + body.len() <= room;
        let mut first = Vec::with_capacity(room.min(PREFIX + head.len() + body.len()));
        first.extend_from_slice(&(head.len() as u64).to_le_bytes());
        first.extend_from_slice(&(numbers as u64).to_le_bytes());
        first.extend_from_slice(&(body.len() as u64).to_le_bytes());
        first.push(u8::from(head_inside) * HEAD_INSIDE + u8::from(body_inside) * BODY_INSIDE + u8::from(is_packed) * PACKED);
        if head_inside {
            first.extend_from_slice(&head);
        }
        if body_inside {
            first.extend_from_slice(body);
        }
        let body = if body_inside { Content::Nothing } else { content };
        Ok(Self { first, head: if head_inside { Vec::new() } else { head }, body })
    }

    /// A first message of `room` zeros, which is never that of a packet.
    pub fn blank(room: usize) -> Self {
        Self { first: vec![0; room], head: Vec::new(), body: Content::Nothing }
    }

    /// The further messages, of at most `piece` bytes each.
    pub fn pieces(&self, piece: usize) -> impl Iterator<Item = &[u8]> {
        self.head.chunks(piece).chain(self.body.bytes().chunks(piece))
    }
}

/// A packet being received: MPI writes into the spare capacity of its arrays, whose lengths are set at the end.
pub(super) struct Incoming<N: Number> {
    head: Vec<u8>,
    head_len: usize,
    body: Vec<N>,
    numbers: usize,
    /// The bytes of a packed body, and their number.
    packed: Option<(Vec<u8>, usize)>,
    requests: Vec<ffi::MPI_Request>,
}

impl<N: Number> Incoming<N> {
    /// Reads a first message and calls `receive` with buffer and length of each further message. The buffers stay valid until the
    /// packet has been received, or forever if this value is leaked.
    pub fn new(first: &[u8], piece: usize, mut receive: impl FnMut(*mut u8, c_int) -> ffi::MPI_Request) -> Result<Self, String> {
        let number = |at: usize| {
            let field = first.get(at..at + 8).and_then(|field| field.try_into().ok());
            field.map(u64::from_le_bytes).and_then(|n| usize::try_from(n).ok()).ok_or("a message is too short")
        };
        let (head_len, numbers, bytes) = (number(0)?, number(8)?, number(16)?);
        let inside = *first.get(PREFIX - 1).ok_or("a message is too short")?;
        let mut rest = first.get(PREFIX..).unwrap_or(&[]);
        let mut incoming = Self { head: Vec::new(), head_len, body: Vec::new(), numbers, packed: None, requests: Vec::new() };
        let mut post = |start: *mut u8, bytes: usize| {
            for at in (0..bytes).step_by(piece) {
                // A piece fits a C int: see PIECE.
                incoming.requests.push(receive(start.wrapping_add(at), piece.min(bytes - at) as c_int));
            }
        };
        if inside & HEAD_INSIDE != 0 {
            let (head, after) = rest.split_at_checked(head_len).ok_or("a message is shorter than the head that it announces")?;
            incoming.head = head.to_vec();
            rest = after;
        } else {
            incoming.head.reserve_exact(head_len);
            post(incoming.head.as_mut_ptr(), head_len);
        }
        let plain = numbers.checked_mul(size_of::<N>()).filter(|&plain| bytes <= plain);
        let plain = plain.ok_or("a message announces an impossible length")?;
        let is_packed = inside & PACKED != 0;
        if !is_packed && bytes != plain {
            return Err("the length of a message's body does not match its number of bytes".into());
        }
        if inside & BODY_INSIDE != 0 {
            let body = rest.get(..bytes).ok_or("a message is shorter than the body that it announces")?;
            match is_packed {
                true => incoming.packed = Some((body.to_vec(), bytes)),
                false => incoming.body = bytemuck::allocation::pod_collect_to_vec(body),
            }
        } else if is_packed {
            let mut packed = Vec::with_capacity(bytes);
            post(packed.as_mut_ptr(), bytes);
            incoming.packed = Some((packed, bytes));
        } else {
            incoming.body.reserve_exact(numbers);
            post(incoming.body.as_mut_ptr().cast(), bytes);
        }
        Ok(incoming)
    }

    /// Whether all messages have been received.
    pub fn is_complete(&mut self) -> bool {
        self.requests.retain_mut(|request| !test(request));
        self.requests.is_empty()
    }

    /// The packet, once all messages have been received.
    pub fn into_packet(mut self) -> Result<Packet<N>, String> {
        if !self.requests.is_empty() {
            return Err("a packet was opened before it was complete".into());
        }
        // SAFETY: the array has this much room, and the completed receives have written all of it.
        unsafe { self.head.set_len(self.head_len) };
        match &mut self.packed {
            Some((packed, bytes)) => {
                // SAFETY: as above.
                unsafe { packed.set_len(*bytes) };
                self.body = unpack(packed, self.numbers)?;
            }
            // SAFETY: as above.
            None => unsafe { self.body.set_len(self.numbers) },
        }
        let head = decode("a packet", &self.head).map_err(|error| error.to_string())?;
        Ok(Packet { head, body: self.body.into() })
    }
}

/// Whether an MPI operation has completed.
pub(super) fn test(request: &mut ffi::MPI_Request) -> bool {
    let mut flag = 0;
    // SAFETY: the request is live or null, both of which MPI_Test takes.
    unsafe { ffi::MPI_Test(request, &raw mut flag, ffi::RSMPI_STATUS_IGNORE) };
    flag != 0
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::super::super::packet::Head;
    use super::*;
    use crate::cluster::states::SavedState;

    fn round_trip(head_bytes: usize, numbers: usize, room: usize, piece: usize) -> usize {
        round_trip_of(head_bytes, (0..numbers).map(|at| at as f64).collect(), room, piece)
    }

    /// Splits a packet into messages and reads it from them; returns the number of messages after the first.
    fn round_trip_of<N: Number>(head_bytes: usize, body: Vec<N>, room: usize, piece: usize) -> usize {
        let state: Vec<u8> = (0..head_bytes).map(|at| (at % 251) as u8).collect();
        let head = Head::Start { saved: vec![(0, SavedState::Here(state.clone()))] };
        let frame = Frame::new(Packet { head, body: body.clone().into() }, room).unwrap();
        assert!(frame.first.len() <= room);
        let mut pieces = frame.pieces(piece);
        let mut count = 0;
        // A receive that completes at once: the null request.
        let incoming = Incoming::<N>::new(&frame.first, piece, |place, len| {
            let from = pieces.next().unwrap();
            assert_eq!(from.len(), len as usize);
            assert!(from.len() <= piece);
            count += 1;
            // SAFETY: `place` has room for `len` bytes: that is what is tested.
            unsafe {
                std::ptr::copy_nonoverlapping(from.as_ptr(), place, from.len());
                ffi::RSMPI_REQUEST_NULL
            }
        });
        let mut incoming = incoming.unwrap();
        assert!(pieces.next().is_none());
        incoming.requests.clear();
        let packet = incoming.into_packet().unwrap();
        assert_eq!(&*packet.body, &body[..]);
        let Head::Start { saved } = packet.head else { panic!("another head") };
        assert_eq!(saved[0].1, SavedState::Here(state));
        count
    }

    #[test]
    fn heads_and_bodies_survive_pieces_of_any_size() {
        assert_eq!(round_trip(10, 10, 1000, 7), 0);
        assert_eq!(round_trip(10, 200, 1000, 1 << 30), 1);
        assert_eq!(round_trip(5000, 0, 1000, 1 << 30), 1);
        for piece in [1, 7, 8, 64, 999, 1600, 1601] {
            assert_eq!(round_trip(10, 200, 1000, piece), 1600_usize.div_ceil(piece));
            // The head of 5000 bytes of state has 5006: a tag, a count, an agent, a tag of the state, a length of two bytes.
            assert_eq!(round_trip(5000, 200, 1000, piece), 5006_usize.div_ceil(piece) + 1600_usize.div_ceil(piece));
        }
    }

    #[test]
    fn sparse_integers_are_packed() {
        let numbers = |filled: i32| (0..5000).map(|at| if at % 10 < filled { at } else { 0 }).collect::<Vec<i32>>();
        // Some three bytes for each of 500, where 20,000 would be; in one message, and in pieces.
        assert_eq!(round_trip_of(10, numbers(1), 1600, 10_000), 0);
        assert_eq!(round_trip_of(10, numbers(1), 1000, 10_000), 1);
        // The control: full bodies as they are.
        assert_eq!(round_trip_of(10, numbers(9), 1600, 10_000), 2);
    }

    #[test]
    fn a_truncated_message_is_an_error() {
        let packet = || Packet { head: Head::Stop, body: vec![1.0; 3].into() };
        let first = Frame::new(packet(), 100).unwrap().first;
        for len in 0..first.len() {
            let cut = Incoming::<f64>::new(&first[..len], PIECE, |_, _| panic!("a piece"));
            assert!(cut.is_err(), "{len} bytes");
        }
    }
}
