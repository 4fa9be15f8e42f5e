//! How a run was carried out: what each rank did with its time, what saving took, and what happened.

use super::communication::Traffic;
use super::error::Result;
use super::run::RunResults;
use crate::results::{Event, EventKind, PHASES, RANKS, SAVES, TRAFFIC, TRAFFIC_BETWEEN_RANKS, Table};
use crate::text;
use serde::Serialize;

/// Bytes between ranks are shown as a matrix for at most this many ranks.
const MAX_RANKS_IN_MATRIX: usize = 16;
/// The text has the ranks with the most idle time if there are more ranks than this; JSON has all.
const MAX_RANKS: usize = 64;

/// A rank that takes this many times as long as others to respond, or computes so much longer, is worth a line. In the second case the others
/// must also be idle for at least [`MUCH_IDLE`] of the time more than it.
const MUCH_LONGER: f64 = 1.5;
const MUCH_IDLE: f64 = 0.15;

/// A rank that takes longer than the others.
struct Slowest {
    rank: usize,
    /// How many times as long.
    times: f64,
}

/// How a run was carried out. Times and messages are those of its last job.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Operation {
    /// The ranks in order.
    pub ranks: Vec<Rank>,
    /// Messages and bytes from one rank to another, for at most 64 ranks.
    pub between_ranks: Vec<Pair>,
    /// What saving took, by column of the table `saves`.
    #[serde(serialize_with = "text::as_object")]
    pub saves: Vec<(String, f64)>,
    /// What happened to the run, in all of its jobs.
    pub events: Vec<Event>,
    /// Seconds by phase, in all jobs together.
    #[serde(skip)]
    pub phases: Vec<(String, f64)>,
    /// Messages and bytes between ranks by purpose, in all jobs together.
    #[serde(skip)]
    pub traffic: Vec<Traffic>,
}

/// A rank.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Rank {
    /// Its host.
    pub host: String,
    /// The values by column of the table `ranks`; the rank is the first.
    #[serde(flatten, serialize_with = "text::as_object")]
    pub values: Vec<(String, f64)>,
}

/// Messages from one rank to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Pair {
    /// The sender.
    pub from: u32,
    /// The receiver.
    pub to: u32,
    /// Messages.
    pub messages: u64,
    /// Bytes of their payloads.
    pub bytes: u64,
}

impl Rank {
    pub(super) fn value(&self, name: &str) -> f64 {
        self.values.iter().find(|value| value.0 == name).map_or(f64::NAN, |value| value.1)
    }
}

impl Operation {
    /// What the result file and the folder of a run tell.
    ///
    /// # Errors
    /// When the result file cannot be read.
    pub fn of(run: &RunResults) -> Result<Self> {
        let file = &run.file;
        let table = |name: &str| file.find_table(name).map(Option::unwrap_or_default);
        let hosts = &file.info().hosts;
        let host = |rank: usize| hosts.get(rank).cloned().unwrap_or_else(|| "unknown".into());
        let ranks =
            rows(&table(RANKS)?).into_iter().enumerate().map(|(rank, values)| Rank { host: host(rank), values }).collect();
        let pair = |values: Vec<(String, f64)>| {
            // The table holds counts as floating-point numbers; the conversion saturates.
            let number = |name: &str| values.iter().find(|value| value.0 == name).map_or(0, |value| value.1 as u64);
            let rank = |name: &str| u32::try_from(number(name)).unwrap_or(u32::MAX);
            Pair { from: rank("from"), to: rank("to"), messages: number("messages"), bytes: number("bytes") }
        };
        Ok(Self {
            ranks,
            between_ranks: rows(&table(TRAFFIC_BETWEEN_RANKS)?).into_iter().map(pair).collect(),
            saves: rows(&table(SAVES)?).pop().unwrap_or_default(),
            events: file.events(),
            phases: phases(&table(PHASES)?),
            traffic: Traffic::read(&table(TRAFFIC)?),
        })
    }

    /// All of it as text.
    pub fn text(&self) -> String {
        let mut text = self.ranks_text();
        text += &self.phases_text();
        text += &Traffic::text(&self.traffic);
        text += &self.between_ranks_text();
        text += &self.saves_text();
        text += &self.events_text();
        match text.is_empty() {
            true => "this run has not been saved yet, or was carried out by an earlier version\n".into(),
            false => text.trim_start().to_owned(),
        }
    }

    /// What happened, if that is more than a run that began and finished.
    pub fn incidents(&self) -> String {
        let is_usual = |event: &Event| matches!(event.event, EventKind::Began | EventKind::Finished);
        if self.events.iter().all(is_usual) { String::new() } else { self.events_text() }
    }

    fn ranks_text(&self) -> String {
        if self.ranks.is_empty() {
            return String::new();
        }
        let mut ranks: Vec<&Rank> = self.ranks.iter().collect();
        let mut heading = "\nranks of the last job: what their time was spent on, and how long they took to respond".to_owned();
        if ranks.len() > MAX_RANKS {
            ranks.sort_by(|a, b| b.value("idle").total_cmp(&a.value("idle")));
            ranks.truncate(MAX_RANKS);
            heading += &format!(" (the {MAX_RANKS} of {} that were idle longest; --json has all)", text::count(self.ranks.len()));
        }
        let column =
            |name: &str, cell: &dyn Fn(&Rank) -> String| (name.to_owned(), ranks.iter().map(|rank| cell(rank)).collect());
        let share = |name: &'static str| move |rank: &Rank| text::percent(rank.value(name) / rank.value("seconds"), 1);
        let time = |name: &'static str| move |rank: &Rank| time(rank.value(name));
        let size = |name: &'static str| move |rank: &Rank| text::bytes(rank.value(name) as u64);
        let columns = [
            column("rank", &|rank| text::count(rank.value("rank"))),
            column("host", &|rank| rank.host.clone()),
            column("time", &time("seconds")),
            column("computing", &share("computing")),
            column("messages", &share("messages")),
            column("saving", &share("saving")),
            column("idle", &share("idle")),
            column("busy threads", &|rank| busy_threads(rank)),
            column("peak memory", &size("peak_memory")),
            column("sent", &size("sent_bytes")),
            column("median response", &time("response_median")),
            column("90 %", &time("response_p90")),
            column("longest", &time("response_longest")),
        ];
        format!("{heading}\n{}{}", text::table(&columns), self.straggler())
    }

    fn phases_text(&self) -> String {
        let measured: Vec<&(String, f64)> = self.phases.iter().filter(|phase| phase.1.is_finite()).collect();
        if measured.is_empty() {
            return String::new();
        }
        let total: f64 = measured.iter().map(|phase| phase.1).sum();
        let columns = [
            ("phase".into(), measured.iter().map(|phase| phase.0.replace('_', " ")).collect()),
            ("time".into(), measured.iter().map(|phase| text::seconds(phase.1)).collect()),
            ("share".into(), measured.iter().map(|phase| text::percent(phase.1 / total, 1)).collect()),
        ];
        format!("\ntime by phase, summed over all agents\n{}", text::table(&columns))
    }

    /// The rank for which the others wait, if there is one that takes much longer to respond, or much longer in all.
    fn straggler(&self) -> String {
        let others = if self.ranks_with_agents().count() == 2 { "the other" } else { "the median rank" };
        let host = |rank: usize| &self.ranks[rank].host;
        if let Some(Slowest { rank, times }) = self.slowest("response_median") {
            return format!(
                "  rank {rank} on {} takes {times:.1} times as long to respond as {others}: other ranks may wait for it\n",
                host(rank)
            );
        }
        let idle = |rank: &Rank| rank.value("idle") / rank.value("seconds");
        let mut idle_shares: Vec<f64> = self.ranks_with_agents().map(|(_, rank)| idle(rank)).collect();
        idle_shares.sort_by(f64::total_cmp);
        let usual = idle_shares.get(idle_shares.len() / 2).copied().unwrap_or(0.0);
        match self.slowest("computing") {
            Some(Slowest { rank, times }) if usual - idle(&self.ranks[rank]) >= MUCH_IDLE => format!(
                "  rank {rank} on {} computes {times:.1} times as long as {others}, and others wait {} of the time: rank {rank} has more \
                 work, is slow, or was stopped for a while\n",
                host(rank),
                text::percent(usual, 0)
            ),
            _ => String::new(),
        }
    }

    /// The ranks that have responded to the server, with their numbers. Others have no agents.
    fn ranks_with_agents(&self) -> impl Iterator<Item = (usize, &Rank)> {
        self.ranks.iter().enumerate().filter(|(_, rank)| rank.value("response_median") > 0.0)
    }

    /// The rank with the largest value of this name, if it is much larger than that of the median rank, or of the other of two ranks.
    fn slowest(&self, name: &str) -> Option<Slowest> {
        let mut values: Vec<(f64, usize)> = self.ranks_with_agents().map(|(number, rank)| (rank.value(name), number)).collect();
        values.sort_by(|a, b| a.0.total_cmp(&b.0));
        let (&(longest, rank), &(middle, _)) = (values.last()?, values.get(values.len().saturating_sub(1) / 2)?);
        let times = longest / middle;
        (times >= MUCH_LONGER).then_some(Slowest { rank, times })
    }

    fn between_ranks_text(&self) -> String {
        let ranks = self.ranks.len();
        if self.between_ranks.is_empty() || ranks > MAX_RANKS_IN_MATRIX {
            return String::new();
        }
        let sent = |from: usize, to: usize| {
            let is_it = |pair: &&Pair| (pair.from as usize, pair.to as usize) == (from, to);
            self.between_ranks.iter().find(is_it).map_or_else(|| "-".into(), |pair| text::bytes(pair.bytes))
        };
        let mut columns = vec![("from".to_owned(), (0..ranks).map(|rank| rank.to_string()).collect::<Vec<_>>())];
        columns.extend((0..ranks).map(|to| (format!("to {to}"), (0..ranks).map(|from| sent(from, to)).collect())));
        format!("\nbytes between ranks in the last job\n{}", text::table(&columns))
    }

    fn saves_text(&self) -> String {
        let value = |name: &str| self.saves.iter().find(|value| value.0 == name).map_or(f64::NAN, |value| value.1);
        if self.saves.is_empty() {
            return String::new();
        }
        let saves = value("saves");
        let parts = [("states of agents", "states"), ("result file", "results"), ("checkpoint", "checkpoint")];
        let cells = |cell: &dyn Fn(&str) -> String| parts.iter().map(|part| cell(part.1)).collect();
        let columns = [
            ("what".to_owned(), parts.iter().map(|part| part.0.to_owned()).collect()),
            ("time each".to_owned(), cells(&|part| time(value(&format!("{part}_seconds")) / saves))),
            ("last size".to_owned(), cells(&|part| text::bytes(value(&format!("{part}_bytes")) as u64))),
        ];
        format!("\n{} in the last job\n{}", text::counted(saves, "save"), text::table(&columns))
    }

    fn events_text(&self) -> String {
        if self.events.is_empty() {
            return String::new();
        }
        let line = |Event { time, job, text, .. }: &Event| format!("  {time}  {job}: {text}\n");
        format!("\nwhat happened\n{}", self.events.iter().map(line).collect::<String>())
    }
}

fn rows(table: &Table) -> Vec<Vec<(String, f64)>> {
    let row = |row: usize| table.columns.iter().map(|(name, values)| (name.clone(), values[row])).collect();
    (0..table.rows()).map(row).collect()
}

fn time(seconds: f64) -> String {
    if seconds.is_finite() { text::seconds(seconds) } else { "-".into() }
}

/// How many of the rank's threads computed on average.
fn busy_threads(rank: &Rank) -> String {
    let busy = rank.value("thread_seconds") / rank.value("seconds");
    if busy.is_finite() { format!("{busy:.2} of {}", text::count(rank.value("threads"))) } else { "-".into() }
}

/// Seconds by phase, summed over the server and all agents.
fn phases(table: &Table) -> Vec<(String, f64)> {
    let total = |values: &[f64]| 0.0 + values.iter().filter(|value| !value.is_nan()).sum::<f64>();
    table.columns.iter().map(|(name, values)| (name.clone(), total(values))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rank(number: f64, median: f64) -> Rank {
        let values = [("rank", number), ("seconds", 10.0), ("computing", 5.0), ("idle", 4.0), ("messages", 1.0), ("saving", 0.0)];
        let more = [("threads", 2.0), ("thread_seconds", 9.0), ("response_median", median), ("sent_bytes", 2048.0)];
        let values = values.into_iter().chain(more).map(|(name, value)| (name.to_owned(), value)).collect();
        Rank { host: format!("node{number}"), values }
    }

    fn event(event: EventKind) -> Event {
        Event { time: "2026-11-26T14:00:00Z".into(), job: "Slurm job 7 on node1".into(), event, text: format!("{event:?}") }
    }

    #[test]
    fn ranks_are_a_table_and_a_straggler_is_named() {
        let mut operation = Operation {
            ranks: [0.1, 0.1, 0.1, 0.3].into_iter().zip(0..).map(|(median, number)| rank(f64::from(number), median)).collect(),
            between_ranks: vec![Pair { from: 0, to: 1, messages: 2, bytes: 4096 }],
            saves: [("saves", 2.0), ("states_seconds", 1.0), ("states_bytes", 1024.0)]
                .map(|(name, value)| (name.to_owned(), value))
                .to_vec(),
            events: vec![event(EventKind::Began)],
            phases: vec![("after_report".into(), 3.0), ("tasks".into(), 9.0)],
            traffic: vec![Traffic { purpose: "tasks".into(), messages: 1200, bytes: 3 << 20 }],
        };
        let text = operation.text();
        for part in [
            "after report  3.00 s  25.0 %",
            "tasks       1,200  3.0 MiB",
            "node2",
            "50.0 %",
            "40.0 %",
            "0.90 of 2",
            "rank 3 on node3 takes 3.0 times",
            "4.0 KiB",
            "2 saves",
            "0.50 s",
        ] {
            assert!(text.contains(part), "{part} in\n{text}");
        }
        operation.ranks.drain(1..3);
        assert!(
            operation.text().contains("rank 1 on node3 takes 3.0 times as long to respond as the other"),
            "{}",
            operation.text()
        );
        operation.ranks.pop();
        assert!(!operation.text().contains("times as long"));
        // Equal medians, but one rank was stopped for a while: the other waits.
        let with = |computing: f64, idle: f64| {
            let mut rank = rank(if idle > 5.0 { 0.0 } else { 1.0 }, 0.1);
            for value in &mut rank.values {
                match value.0.as_str() {
                    "computing" => value.1 = computing,
                    "idle" => value.1 = idle,
                    _ => {}
                }
            }
            rank
        };
        operation.ranks = vec![with(3.0, 6.5), with(5.0, 4.4)];
        assert!(operation.text().contains("rank 1 on node1 computes 1.7 times as long as the other, and others wait 65 %"));
        let mut server = with(0.1, 9.0);
        server.values.retain(|value| value.0 != "response_median");
        operation.ranks = vec![server, with(5.0, 4.4)];
        assert!(!operation.text().contains("times as long"), "a rank without agents waits for the others");
        operation.ranks = vec![with(1.0, 6.5), with(2.0, 5.9)];
        assert!(!operation.text().contains("times as long"), "both wait for something else");
        // A run that began and finished has no incidents.
        assert!(operation.incidents().is_empty());
        operation.events.push(event(EventKind::FellBack));
        assert!(operation.incidents().contains("FellBack"));
    }
}
