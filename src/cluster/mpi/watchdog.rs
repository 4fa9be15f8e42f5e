//! Notices ranks that have become silent: a thread of each rank exchanges beats with the neighbors of the rank in a tree.
//!
//! A rank that computes, reads or writes for hours still sends beats, because its thread does nothing else. A rank is silent if its process
//! is stopped or swapped out, or if its node or the network is lost. MPI itself often waits forever in such a case.

use super::super::fault;
use super::super::placement::host;
use super::comm::Comm;
use super::frame::test;
use mpi::ffi;
use std::ffi::c_int;
use std::mem::MaybeUninit;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// The children of a rank in the tree.
const CHILDREN: u32 = 8;
/// At least this many beats fit into the longest silence that is allowed.
const BEATS: u32 = 12;
const SHORTEST_INTERVAL: Duration = Duration::from_millis(20);
const LONGEST_INTERVAL: Duration = Duration::from_secs(5);
/// A rank that seems silent is listened to for this time with short pauses.
const LAST_CHANCE: Duration = Duration::from_secs(1);
/// How long the report of a silent rank may take.
const TIME_TO_REPORT: Duration = Duration::from_secs(3);
/// The pause between looks when something is expected at once.
const SHORT_PAUSE: Duration = Duration::from_millis(1);
/// A rank that cannot end the job through MPI within this time ends its own process.
const TIME_TO_ABORT: Duration = Duration::from_secs(10);
const TAG: c_int = 1;
/// The bytes of a beat. Longer descriptions are cut.
const BEAT_BYTES: usize = 512;

/// A rank that has become silent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Silence {
    /// The silent rank.
    pub rank: u32,
    /// Its host and what it was doing, if it has ever sent a beat.
    pub last_beat: Option<LastBeat>,
    /// How long nothing came from it.
    pub lasts: Duration,
    /// The rank that has noticed it.
    pub noticed_by: u32,
}

/// What a rank said in its last beat.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LastBeat {
    /// Its host.
    pub host: String,
    /// What it was doing.
    pub doing: String,
}

impl std::fmt::Display for Silence {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { rank, last_beat, lasts, noticed_by } = self;
        let (seconds, here) = (lasts.as_secs_f64().round(), host());
        match last_beat {
            Some(LastBeat { host, doing }) => write!(
                f,
                "rank {noticed_by} on {here} has heard nothing from rank {rank} on {host} for {seconds} s: its process is stopped, or its node \
                 or the network is lost. It was {doing}"
            ),
            None => write!(
                f,
                "rank {noticed_by} on {here} has never heard from rank {rank} in {seconds} s: its process is stopped, or the network \
                 between them does not work"
            ),
        }
    }
}

/// The thread that exchanges beats. Dropping it waits for the last beats of the neighbors, so every rank drops its own.
pub(super) struct Watchdog {
    ending: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Watchdog {
    /// When a neighbor of this rank is silent for `max_silence`, calls `on_silence` and ends the job with exit code `code`, also if the call
    /// does not return. The communicator has all ranks, and each of them calls this. MPI must allow calls on several threads.
    ///
    /// # Errors
    /// If no thread can be started.
    pub fn start(
        comm: Comm,
        rank: u32,
        size: u32,
        max_silence: Duration,
        code: i32,
        on_silence: impl Fn(&Silence) + Send + 'static,
    ) -> std::io::Result<Self> {
        let interval = (max_silence / BEATS).clamp(SHORTEST_INTERVAL, LONGEST_INTERVAL);
        let beats = Beats { comm, rank, interval, max_silence };
        let ending = Arc::new(AtomicBool::new(false));
        let is_ending = ending.clone();
        let mut neighbors: Vec<Neighbor> = neighbors(rank, size).into_iter().map(|rank| beats.listen_to(rank)).collect();
        let exchange = move || {
            let silence = beats.exchange(&mut neighbors, &is_ending);
            if let Some(silence) = silence {
                // MPI still writes to the buffers of messages that are on their way.
                std::mem::forget(neighbors);
                beats.end_job(code, move || on_silence(&silence));
            }
        };
        let thread = std::thread::Builder::new().name("watchdog".into()).spawn(exchange)?;
        Ok(Self { ending, thread: Some(thread) })
    }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        self.ending.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            drop(thread.join());
        }
    }
}

/// The parent and the children of a rank.
fn neighbors(rank: u32, size: u32) -> Vec<u32> {
    let parent = rank.checked_sub(1).map(|before| before / CHILDREN);
    let first = u64::from(rank) * u64::from(CHILDREN) + 1;
    let children = (first..first + u64::from(CHILDREN)).filter_map(|child| u32::try_from(child).ok());
    parent.into_iter().chain(children.take_while(|&child| child < size)).collect()
}

/// This rank's part in the exchange of beats.
struct Beats {
    comm: Comm,
    rank: u32,
    interval: Duration,
    max_silence: Duration,
}

/// A neighbor and the messages on their way to and from it.
struct Neighbor {
    rank: u32,
    /// How long nothing has come from it, not counting time in which this process was suspended itself.
    silence: Duration,
    last_beat: Option<LastBeat>,
    /// Whether it has sent its last beat.
    has_received_last_beat: bool,
    /// Whether this rank has sent its last beat to it.
    has_sent_last_beat: bool,
    receiving: Option<Message>,
    sending: Option<Message>,
}

/// A beat that is being sent or received. The buffer must stay where it is until the operation has completed.
struct Message {
    request: ffi::MPI_Request,
    bytes: Box<[u8; BEAT_BYTES]>,
}

// SAFETY: a handle and a buffer, moved to the thread that uses them, where MPI allows calls on several threads.
unsafe impl Send for Message {}

impl Beats {
    /// Exchanges beats until all neighbors have ended, or returns the one that is silent.
    fn exchange(&self, neighbors: &mut [Neighbor], is_ending: &AtomicBool) -> Option<Silence> {
        let host = host();
        let mut last = Instant::now();
        loop {
            let now = Instant::now();
            // If this process was suspended itself, with the others or alone, it could not hear them.
            let listened = now.duration_since(last).min(2 * self.interval);
            last = now;
            let ending = is_ending.load(Ordering::Relaxed);
            for neighbor in &mut *neighbors {
                neighbor.silence += listened;
                self.receive(neighbor);
                self.listen_closely(neighbor);
                if self.is_silent(neighbor) {
                    return Some(Silence {
                        rank: neighbor.rank,
                        last_beat: neighbor.last_beat.clone(),
                        lasts: neighbor.silence,
                        noticed_by: self.rank,
                    });
                }
                self.send(neighbor, &host, ending);
            }
            let is_over = |neighbor: &Neighbor| {
                neighbor.has_received_last_beat && neighbor.has_sent_last_beat && neighbor.sending.is_none()
            };
            if ending && neighbors.iter().all(is_over) {
                return None;
            }
            std::thread::park_timeout(if ending { SHORT_PAUSE } else { self.interval });
        }
    }

    fn listen_to(&self, rank: u32) -> Neighbor {
        Neighbor {
            rank,
            silence: Duration::ZERO,
            last_beat: None,
            has_received_last_beat: false,
            has_sent_last_beat: false,
            receiving: Some(self.receive_from(rank)),
            sending: None,
        }
    }

    /// Takes all beats that have arrived from a neighbor.
    fn receive(&self, neighbor: &mut Neighbor) {
        while let Some(mut message) = neighbor.receiving.take() {
            if !test(&mut message.request) {
                neighbor.receiving = Some(message);
                return;
            }
            neighbor.silence = Duration::ZERO;
            match parse(&message.bytes[..]) {
                Some(beat) => {
                    neighbor.last_beat = Some(beat);
                    neighbor.receiving = Some(self.receive_from(neighbor.rank));
                }
                None => neighbor.has_received_last_beat = true,
            }
        }
    }

    fn is_silent(&self, neighbor: &Neighbor) -> bool {
        neighbor.silence >= self.max_silence && !neighbor.has_received_last_beat
    }

    /// Listens to a neighbor that seems silent for a while, with short pauses. If nothing else on this rank calls MPI, a beat may wait behind a
    /// large message.
    fn listen_closely(&self, neighbor: &mut Neighbor) {
        let since = Instant::now();
        while self.is_silent(neighbor) && since.elapsed() < LAST_CHANCE {
            self.receive(neighbor);
            std::thread::sleep(SHORT_PAUSE);
        }
    }

    /// Sends a beat, unless the last one is still on its way.
    fn send(&self, neighbor: &mut Neighbor, host: &str, ending: bool) {
        drop(neighbor.sending.take_if(|message| test(&mut message.request)));
        if neighbor.has_sent_last_beat || neighbor.sending.is_some() {
            return;
        }
        let beat = if ending { Box::new([0; BEAT_BYTES]) } else { compose(host, &fault::describe_activity()) };
        neighbor.has_sent_last_beat = ending;
        neighbor.sending = Some(self.send_to(neighbor.rank, beat));
    }

    fn send_to(&self, rank: u32, bytes: Box<[u8; BEAT_BYTES]>) -> Message {
        let mut request = MaybeUninit::uninit();
        // SAFETY: `Message` keeps the buffer until the operation has completed.
        let request = unsafe {
            let (start, len, to) = (bytes.as_ptr().cast(), BEAT_BYTES as c_int, rank.cast_signed());
            ffi::MPI_Isend(start, len, ffi::RSMPI_UINT8_T, to, TAG, self.comm.raw(), request.as_mut_ptr());
            request.assume_init()
        };
        Message { request, bytes }
    }

    fn receive_from(&self, rank: u32) -> Message {
        let mut bytes = Box::new([0; BEAT_BYTES]);
        let mut request = MaybeUninit::uninit();
        // SAFETY: as above.
        let request = unsafe {
            let (start, len, from) = (bytes.as_mut_ptr().cast(), BEAT_BYTES as c_int, rank.cast_signed());
            ffi::MPI_Irecv(start, len, ffi::RSMPI_UINT8_T, from, TAG, self.comm.raw(), request.as_mut_ptr());
            request.assume_init()
        };
        Message { request, bytes }
    }

    /// Reports and ends the job. Neither may take long: the file system may be lost as well.
    fn end_job(&self, code: i32, report: impl FnOnce() + Send) {
        let end_process = move || {
            std::thread::sleep(TIME_TO_REPORT + TIME_TO_ABORT);
            fault::end_process(code)
        };
        if std::thread::Builder::new().spawn(end_process).is_err() {
            fault::end_process(code);
        }
        std::thread::scope(|scope| {
            let reporting = scope.spawn(report);
            let since = Instant::now();
            while !reporting.is_finished() && since.elapsed() < TIME_TO_REPORT {
                std::thread::sleep(SHORT_PAUSE);
            }
            // SAFETY: a plain call, which ends this process and all others.
            unsafe { ffi::MPI_Abort(self.comm.raw(), code) };
        });
    }
}

/// A beat: the host, a line break, what the rank is doing, and zeros.
fn compose(host: &str, doing: &str) -> Box<[u8; BEAT_BYTES]> {
    let text = format!("{host}\n{doing}");
    let mut bytes = Box::new([0; BEAT_BYTES]);
    // The last byte stays zero.
    let len = (0..BEAT_BYTES.min(text.len() + 1)).rev().find(|&len| text.is_char_boundary(len)).unwrap_or(0);
    bytes[..len].copy_from_slice(&text.as_bytes()[..len]);
    bytes
}

/// What a beat says; none if it is the last one.
fn parse(bytes: &[u8]) -> Option<LastBeat> {
    let len = bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len());
    let text = String::from_utf8_lossy(&bytes[..len]);
    let (host, doing) = text.split_once('\n')?;
    Some(LastBeat { host: host.to_owned(), doing: doing.to_owned() })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_rank_is_watched_and_neighbors_watch_each_other() {
        for size in [2, 3, 8, 9, 10, 75, 1000] {
            let mut edges = BTreeSet::new();
            for rank in 0..size {
                let near = neighbors(rank, size);
                assert!(!near.is_empty() && near.len() <= 1 + CHILDREN as usize, "{rank} of {size}");
                edges.extend(near.into_iter().map(|other| (rank, other)));
            }
            assert_eq!(edges.len(), 2 * (size as usize - 1));
            assert!(edges.iter().all(|&(a, b)| edges.contains(&(b, a))));
        }
        assert!(neighbors(0, 1).is_empty());
        assert_eq!(neighbors(u32::MAX - 1, u32::MAX), [(u32::MAX - 2) / CHILDREN]);
    }

    #[test]
    fn beats_are_read_as_they_were_written() {
        let beat = parse(&compose("node7", "performing a task")[..]).unwrap();
        assert_eq!((beat.host.as_str(), beat.doing.as_str()), ("node7", "performing a task"));
        // Long ones are cut between characters.
        let long = parse(&compose("node7", &"é".repeat(BEAT_BYTES))[..]).unwrap();
        assert!(long.doing.chars().all(|letter| letter == 'é') && long.doing.len() > BEAT_BYTES - 10, "{}", long.doing.len());
        // The last beat of a rank is empty.
        assert_eq!(parse(&[0; BEAT_BYTES]), None);
    }
}
