//! A timeline of what the threads of each rank do, which Perfetto and Chrome's tracing page open.

use super::layout::{AgentId, Rank};
use super::request::RequestId;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// All ranks together keep at most this many spans, each its first ones: about 120 MB in the file.
const MAX_SPANS: usize = 1_000_000;
const MAX_SPANS_OF_RANK: usize = 100_000;
/// Shorter spans of waiting are not worth a line.
pub(super) const SHORTEST_WAIT: Duration = Duration::from_millis(1);

/// The spans of this process. All ranks make it at the same moment, from which times count.
#[derive(Debug)]
pub struct Timeline {
    began: Instant,
    spans: Mutex<Vec<Span>>,
    max_spans: usize,
}

/// What a span of time was spent on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Doing {
    Task,
    Evaluation,
    AfterReport,
    Server,
    SavingStates,
    Recording,
    Idle,
}

impl Doing {
    fn name(self) -> &'static str {
        match self {
            Self::Task => "task",
            Self::Evaluation => "evaluation",
            Self::AfterReport => "after the report",
            Self::Server => "server",
            Self::SavingStates => "saving states",
            Self::Recording => "writing results",
            Self::Idle => "idle",
        }
    }
}

/// A span of time of a thread.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Span {
    doing: Doing,
    /// 0 for the main thread.
    thread: u32,
    agent: Option<AgentId>,
    request: Option<RequestId>,
    /// Microseconds since the beginning.
    start: u64,
    micros: u64,
}

const NAME: &str = "a timeline";

/// The spans of a rank, on their way to rank 0.
#[derive(Serialize, Deserialize)]
struct RankSpans {
    rank: Rank,
    host: String,
    spans: Vec<Span>,
    is_cut: bool,
}

impl Timeline {
    /// How the JSON of [`Self::to_json`] begins.
    pub const BEGIN: &str = "{\"displayTimeUnit\"";

    /// The timeline of a rank in a job of this many ranks, which begins now.
    pub fn new(ranks: u32) -> Self {
        let max_spans = (MAX_SPANS / ranks.max(1) as usize).clamp(1, MAX_SPANS_OF_RANK);
        Self { began: Instant::now(), spans: Mutex::new(Vec::new()), max_spans }
    }

    /// Whether nothing was done, because the run was finished before.
    pub fn is_empty(&self) -> bool {
        self.spans.lock().unwrap_or_else(PoisonError::into_inner).is_empty()
    }

    /// Adds a span of a thread that ends now.
    pub(super) fn add(&self, doing: Doing, thread: u32, agent: Option<AgentId>, request: Option<RequestId>, since: Instant) {
        self.add_until(doing, thread, agent, request, (since, Instant::now()));
    }

    /// Adds a span of a thread.
    pub(super) fn add_until(
        &self,
        doing: Doing,
        thread: u32,
        agent: Option<AgentId>,
        request: Option<RequestId>,
        (since, until): (Instant, Instant),
    ) {
        let micros = |time: Duration| u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        let start = micros(since.saturating_duration_since(self.began));
        let micros = micros(until.saturating_duration_since(since));
        let mut spans = self.spans.lock().unwrap_or_else(PoisonError::into_inner);
        if spans.len() < self.max_spans {
            spans.push(Span { doing, thread, agent, request, start, micros });
        }
    }

    /// Adds the time until now in which results and a checkpoint were written while messages were forwarded.
    pub fn add_save(&self, since: Instant) {
        self.add(Doing::Recording, WRITER, None, None, since);
    }

    /// The spans of this process, for [`Timeline::to_json`] on rank 0.
    pub fn to_bytes(&self, rank: Rank, host: String) -> Vec<u8> {
        let spans = self.spans.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let is_cut = spans.len() >= self.max_spans;
        // Numbers and texts can always be encoded.
        super::codec::encode(NAME, &RankSpans { rank, host, spans, is_cut }).unwrap_or_default()
    }

    /// The spans of all ranks in the trace event format, and the ranks with more spans than are kept.
    ///
    /// # Errors
    /// If the bytes of a rank cannot be read.
    pub fn to_json(ranks: &[Vec<u8>]) -> Result<(String, Vec<Rank>), super::codec::CodecError> {
        let (mut events, mut full) = (Vec::new(), Vec::new());
        for bytes in ranks {
            let RankSpans { rank, host, spans, is_cut } = super::codec::decode(NAME, bytes)?;
            full.extend(is_cut.then_some(rank));
            events.push(Event::name("process_name", rank, 0, format!("rank {rank} on {host}")));
            let threads: BTreeSet<u32> = spans.iter().map(|span| span.thread).collect();
            let names = threads.into_iter().map(|thread| match thread {
                0 => (thread, "messages and files".to_owned()),
                SERVER => (thread, "server".to_owned()),
                WRITER => (thread, "results and checkpoints".to_owned()),
                worker => (thread, format!("agents, thread {worker}")),
            });
            events.extend(names.map(|(thread, name)| Event::name("thread_name", rank, thread, name)));
            events.extend(spans.into_iter().map(|span| Event::of(span, rank)));
        }
        let json = serde_json::json!({ "displayTimeUnit": "ms", "traceEvents": events });
        Ok((json.to_string(), full))
    }
}

/// The number of the server's thread; workers count from 1.
pub(super) const SERVER: u32 = u32::MAX;
/// The number of the thread that writes results and checkpoints.
const WRITER: u32 = u32::MAX - 1;

/// An event of the trace event format.
#[derive(Serialize)]
struct Event {
    name: Cow<'static, str>,
    ph: &'static str,
    pid: Rank,
    tid: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    ts: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    dur: Option<u64>,
    args: serde_json::Value,
}

impl Event {
    /// The name of a process or thread.
    fn name(kind: &'static str, rank: Rank, thread: u32, name: String) -> Self {
        let args = serde_json::json!({ "name": name });
        Self { name: kind.into(), ph: "M", pid: rank, tid: thread, ts: None, dur: None, args }
    }

    fn of(span: Span, rank: Rank) -> Self {
        let Span { doing, thread, agent, request, start, micros } = span;
        let name = match agent {
            Some(agent) => format!("{} of agent {agent}", doing.name()).into(),
            None => doing.name().into(),
        };
        let mut args = serde_json::Map::new();
        args.extend(agent.map(|agent| ("agent".to_owned(), agent.into())));
        args.extend(request.map(|request| ("request".to_owned(), request.into())));
        Self { name, ph: "X", pid: rank, tid: thread, ts: Some(start), dur: Some(micros), args: args.into() }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn ranks_and_threads_have_names_and_spans_have_times() {
        let timeline = Timeline::new(2);
        timeline.add(Doing::Task, 1, Some(3), Some(17), timeline.began);
        timeline.add(Doing::Server, SERVER, None, None, timeline.began);
        let ranks = [timeline.to_bytes(0, "a".into()), timeline.to_bytes(1, "b".into())];
        let (json, full) = Timeline::to_json(&ranks).unwrap();
        assert!(full.is_empty() && json.starts_with(Timeline::BEGIN));
        let read: serde_json::Value = serde_json::from_str(&json).unwrap();
        let events = read["traceEvents"].as_array().unwrap();
        let of = |kind: &str| events.iter().filter(|event| event["ph"] == kind).count();
        assert_eq!((of("M"), of("X")), (6, 4));
        let task = events.iter().find(|event| event["name"] == "task of agent 3").unwrap();
        assert_eq!((&task["args"]["request"], &task["pid"], &task["tid"]), (&17.into(), &0.into(), &1.into()));
        assert!(task["dur"].is_u64() && task["ts"] == 0);
        assert!(events.iter().any(|event| event["args"]["name"] == "rank 1 on b"));
    }
}
