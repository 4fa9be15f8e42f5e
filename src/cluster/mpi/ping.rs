//! Measures the network between the first and the last rank with the messages of the driver.

use super::super::body::Body;
use super::super::nap::Meanwhile;
use super::super::packet::{Head, Packet};
use super::super::ranges::Ranges;
use super::wait::Backoff;
use super::wire::Wire;
use super::world::World;
use std::time::{Duration, Instant};

/// Round trips of a small message, and of a large one.
const SMALL_TRIPS: usize = 1000;
const LARGE_TRIPS: usize = 10;
/// Messages in a row.
const BURST: usize = 200;
/// The values of a large message: 4 MiB.
const LARGE: usize = 1 << 20;
/// No measurement takes much longer.
const MAX_SECONDS: f64 = 5.0;

/// What messages between two ranks cost.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MessageCosts {
    /// Seconds from sending to arrival.
    pub latency: f64,
    /// Bytes per second.
    pub bandwidth: f64,
    /// Seconds of computing of each of the two ranks.
    pub message_overhead: f64,
}

impl MessageCosts {
    /// From the seconds of a small message and of a message of this many bytes to the other rank, and of a message among many in a row.
    fn new(small: f64, large: f64, bytes: f64, in_a_row: f64) -> Self {
        // What is less than the clock can tell.
        let least = 1e-8;
        let message_overhead = in_a_row.min(small / 2.0).max(least);
        Self {
            latency: (small - 2.0 * message_overhead).max(least),
            bandwidth: bytes / (large - small).max(least),
            message_overhead,
        }
    }
}

/// Measures the network between rank 0 and the last rank; none on other ranks, or if there is only one. Every rank calls this.
///
/// # Errors
/// If a message is damaged.
pub fn measure_network(world: &World) -> Result<Option<MessageCosts>, String> {
    let last = world.size() - 1;
    let is_first = world.rank() == 0;
    world.barrier();
    let mut pair = Pair { wire: Wire::new(world), other: if is_first { last } else { 0 }, backoff: Backoff::new(2) };
    let costs = if last == 0 || !is_first && world.rank() < last {
        None
    } else {
        let small = pair.round_trips(is_first, 1, SMALL_TRIPS)? / 2.0;
        let large = pair.round_trips(is_first, LARGE, LARGE_TRIPS)? / 2.0;
        let in_a_row = pair.burst(is_first)?;
        is_first.then(|| MessageCosts::new(small, large, (LARGE * size_of::<i32>()) as f64, in_a_row))
    };
    world.barrier();
    Ok(costs)
}

/// Two ranks that exchange messages.
struct Pair {
    wire: Wire<i32>,
    other: u32,
    backoff: Backoff,
}

impl Pair {
    fn send(&mut self, values: usize) -> Result<(), String> {
        let head = Head::Total { request: 0, part: 0, parts: 1, to: Ranges::default() };
        self.wire.send(self.other, Packet { head, body: vec![1; values].into() })
    }

    fn receive(&mut self) -> Result<Body<i32>, String> {
        self.backoff.reset();
        loop {
            if let Some(packet) = self.wire.receive()? {
                return Ok(packet.body);
            }
            self.backoff.wait(&crossbeam_channel::never::<()>(), Meanwhile { sends: true, computes: false });
        }
    }

    fn finish_sending(&mut self) {
        while !self.wire.is_quiet() {
            std::thread::yield_now();
        }
    }

    /// The median of the seconds of round trips of this many values. Slow networks see fewer of them.
    fn round_trips(&mut self, is_first: bool, values: usize, trips: usize) -> Result<f64, String> {
        let began = Instant::now();
        let mut times: Vec<f64> = Vec::with_capacity(trips);
        loop {
            if !is_first {
                // The first rank says with an empty message that there are enough.
                let body = self.receive()?;
                if body.is_empty() {
                    return Ok(0.0);
                }
                self.send(values)?;
                continue;
            }
            let enough = times.len() == trips || times.len() > 2 && began.elapsed() > Duration::from_secs_f64(MAX_SECONDS);
            if enough {
                self.send(0)?;
                self.finish_sending();
                times.sort_by(f64::total_cmp);
                return Ok(times[times.len() / 2]);
            }
            let since = Instant::now();
            self.send(values)?;
            self.receive()?;
            times.push(since.elapsed().as_secs_f64());
        }
    }

    /// The seconds of each of many small messages in a row.
    fn burst(&mut self, is_first: bool) -> Result<f64, String> {
        if !is_first {
            for _ in 0..BURST {
                self.receive()?;
            }
            self.send(1)?;
            self.finish_sending();
            return Ok(0.0);
        }
        let since = Instant::now();
        for _ in 0..BURST {
            self.send(1)?;
        }
        self.receive()?;
        self.finish_sending();
        Ok(since.elapsed().as_secs_f64() / BURST as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn costs_are_those_of_which_the_times_are_made() {
        // 10 µs of latency, 1 GB/s, 2 µs of each rank.
        let (small, large) = (14e-6, 14e-6 + 4e-3);
        let costs = MessageCosts::new(small, large, 4e6, 2e-6);
        let close = |found: f64, right: f64| (found / right - 1.0).abs() < 1e-9;
        assert!(close(costs.latency, 10e-6) && close(costs.bandwidth, 1e9) && close(costs.message_overhead, 2e-6), "{costs:?}");
        // Clocks that are too coarse do not lead to zeros.
        let costs = MessageCosts::new(1e-9, 1e-9, 4e6, 0.0);
        assert!(costs.latency > 0.0 && costs.bandwidth.is_finite() && costs.message_overhead > 0.0);
    }
}
