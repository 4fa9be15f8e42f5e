//! What a rank does with its time, its memory and its messages during a job.

use super::layout::Rank;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Messages are counted by receiver up to this many ranks: the table of all pairs grows with their square.
pub(super) const MAX_RANKS_IN_PAIRS: u32 = 64;

/// Times are counted in steps: step `i` has the times from `2^((FIRST_STEP + i) / STEPS)` seconds on. There are `ALL_STEPS`, from nanoseconds to
/// weeks.
const STEPS: f64 = 8.0;
const FIRST_STEP: f64 = -240.0;
const ALL_STEPS: usize = 400;

/// What a rank has done in this job. Times are seconds of the wall clock: messages, saving, idle and [`computing`](Self::computing) together
/// are `seconds`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RankUsage {
    /// Its host.
    pub host: String,
    /// Worker threads for its agents.
    pub threads: usize,
    /// The whole time of the run.
    pub seconds: f64,
    /// Sending, receiving, adding sums, and waiting for messages on their way.
    pub messages: f64,
    /// Writing states, draws and results.
    pub saving: f64,
    /// Waiting for other ranks, with nothing to do.
    pub idle: f64,
    /// Time in tasks, summed over worker threads.
    pub thread_seconds: f64,
    /// The most bytes of memory that the process has had.
    pub peak_memory: u64,
    /// Messages and bytes that it has sent, by receiver, if there are few ranks.
    pub sent_to: BTreeMap<Rank, Flow>,
    /// The same to all ranks.
    pub sent: Flow,
}

impl RankUsage {
    /// The rest of the time, in which its workers computed, or the server on rank 0.
    pub fn computing(&self) -> f64 {
        (self.seconds - self.messages - self.saving - self.idle).max(0.0)
    }

    /// Counts a message.
    pub(super) fn count_sent(&mut self, to: Rank, bytes: u64, ranks: u32) {
        self.sent.count(bytes);
        if ranks <= MAX_RANKS_IN_PAIRS {
            self.sent_to.entry(to).or_default().count(bytes);
        }
    }

    /// Adds what the same rank has done since.
    pub(super) fn add(&mut self, later: Self) {
        let Self { host, threads, seconds, messages, saving, idle, thread_seconds, peak_memory, sent_to, sent } = later;
        (self.host, self.threads) = (host, threads);
        self.seconds += seconds;
        self.messages += messages;
        self.saving += saving;
        self.idle += idle;
        self.thread_seconds += thread_seconds;
        self.peak_memory = self.peak_memory.max(peak_memory);
        self.sent.add(sent);
        for (to, flow) in sent_to {
            self.sent_to.entry(to).or_default().add(flow);
        }
    }
}

/// Messages and their bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Flow {
    /// Messages between ranks.
    pub messages: u64,
    /// Bytes of bodies, draws and saved states; the few tens of bytes besides them in each message are not counted.
    pub bytes: u64,
}

impl Flow {
    pub(super) fn count(&mut self, bytes: u64) {
        self.messages += 1;
        self.bytes += bytes;
    }

    pub(super) fn add(&mut self, other: Self) {
        self.messages += other.messages;
        self.bytes += other.bytes;
    }

    pub(super) fn most(self, other: Self) -> Self {
        Self { messages: self.messages.max(other.messages), bytes: self.bytes.max(other.bytes) }
    }
}

/// A rank as rank 0 sees it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RankReport {
    /// What it said itself.
    pub usage: RankUsage,
    /// How long it took to respond to tasks, without evaluations.
    pub response_times: Times,
}

/// Any number of times, of which quantiles are known to within 5 %.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Times {
    /// The number of times in each step; empty if there are none.
    counts: Vec<u64>,
    longest: f64,
}

impl Times {
    /// Adds a time.
    pub fn add(&mut self, seconds: f64) {
        self.counts.resize(ALL_STEPS, 0);
        let step = (STEPS * seconds.max(1e-9).log2() - FIRST_STEP).clamp(0.0, (ALL_STEPS - 1) as f64);
        self.counts[step as usize] += 1;
        self.longest = self.longest.max(seconds);
    }

    /// How many there are.
    pub fn count(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// The longest; 0 if there is none.
    pub fn longest(&self) -> f64 {
        self.longest
    }

    /// The time that this share of them does not exceed; NaN if there is none.
    pub fn quantile(&self, share: f64) -> f64 {
        let wanted = (share * self.count() as f64).ceil().max(1.0) as u64;
        let mut so_far = 0;
        let step = self.counts.iter().position(|count| {
            so_far += count;
            so_far >= wanted
        });
        // The middle of the step, but a time that was seen if it is the longest.
        step.map_or(f64::NAN, |step| ((step as f64 + 0.5 + FIRST_STEP) / STEPS).exp2().min(self.longest))
    }
}

/// The most bytes of memory that this process has had; 0 where the system does not tell.
pub(super) fn peak_memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()).unwrap_or(0) << 10
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_known_to_within_a_step() {
        let mut times = Times::default();
        assert!(times.quantile(0.5).is_nan());
        (1..=1000).for_each(|millis| times.add(f64::from(millis) / 1000.0));
        for share in [0.01, 0.25, 0.5, 0.9, 0.99] {
            let ratio = times.quantile(share) / share;
            assert!((1.0 / 1.1..1.1).contains(&ratio), "{share}: {}", times.quantile(share));
        }
        assert_eq!((times.count(), times.longest(), times.quantile(1.0)), (1000, 1.0, 1.0));
        times.add(0.0);
        assert!(times.quantile(0.0) < 1e-8);
    }

    #[test]
    fn a_process_has_memory_and_usage_adds_up() {
        assert!(!cfg!(target_os = "linux") || peak_memory() > 1 << 20);
        let mut first = RankUsage { seconds: 4.0, idle: 1.0, messages: 0.5, saving: 0.5, ..RankUsage::default() };
        first.count_sent(3, 100, 4);
        assert!((first.computing() - 2.0).abs() < 1e-12);
        let mut both = RankUsage::default();
        both.add(first.clone());
        both.add(first);
        assert_eq!((both.seconds, both.sent.messages, both.sent_to[&3].bytes), (8.0, 2, 200));
        let mut many = RankUsage::default();
        many.count_sent(3, 100, MAX_RANKS_IN_PAIRS + 1);
        assert!(many.sent_to.is_empty() && many.sent.bytes == 100);
    }
}
