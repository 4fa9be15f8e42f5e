//! What agents receive and send, and the traffic between ranks.

use crate::config::stored_table;
use crate::results::{AgentBytes, Table};
use crate::text;
use serde::Serialize;

/// Bytes that agents have received and sent, without evaluations and draws. They are the same on any number of ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Communication {
    /// The bytes.
    #[serde(flatten)]
    pub bytes: AgentBytes,
    /// The number of agents.
    #[serde(skip)]
    agents: u64,
    /// The number of rounds.
    #[serde(skip)]
    rounds: u64,
}

impl Communication {
    /// The bytes in a table of one row, for a run of this configuration and this many rounds.
    pub(super) fn read(table: &Table, config: &str, rounds: u64) -> Option<Self> {
        let number = |name: &str| Some(table.column(name)?.last().copied()? as u64);
        let config = stored_table(config).unwrap_or_default();
        let agents = config.get("agents").and_then(toml::Value::as_integer).and_then(|agents| u64::try_from(agents).ok());
        Some(Self {
            bytes: AgentBytes { received: number("received")?, sent: number("sent")? },
            agents: agents.unwrap_or(1).max(1),
            rounds: rounds.max(1),
        })
    }

    pub(super) fn text(self) -> String {
        let AgentBytes { received, sent } = self.bytes;
        let both = |divisor: u64| [received, sent].map(|bytes| text::bytes(bytes / divisor)).to_vec();
        let columns = [
            ("all agents".to_owned(), vec!["received".to_owned(), "sent".to_owned()]),
            ("size".to_owned(), both(1)),
            ("for each round".to_owned(), both(self.rounds)),
            ("for each agent".to_owned(), both(self.agents)),
        ];
        format!(
            "\nwhat agents received and sent in the rounds, on any number of ranks, without evaluations, draws and preparation\n{}",
            text::table(&columns)
        )
    }
}

/// Messages of one purpose.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Traffic {
    /// The purpose: `tasks`, `reports`.
    pub purpose: String,
    /// Messages between ranks.
    pub messages: u64,
    /// Bytes of their payloads.
    pub bytes: u64,
}

impl Traffic {
    /// Messages and bytes by purpose, from the last row of the table.
    pub(super) fn read(table: &Table) -> Vec<Self> {
        let Some(row) = table.rows().checked_sub(1) else { return Vec::new() };
        // The table holds counts as floating-point numbers.
        let number = |name: &str| table.column(name).map_or(0, |values| values[row] as u64);
        let purposes = table.columns.iter().filter_map(|(name, _)| name.strip_suffix("_messages"));
        let of = |purpose: &str| Self {
            purpose: purpose.replace('_', " "),
            messages: number(&format!("{purpose}_messages")),
            bytes: number(&format!("{purpose}_bytes")),
        };
        purposes.map(of).collect()
    }

    pub(super) fn text(all: &[Self]) -> String {
        if all.is_empty() {
            return String::new();
        }
        let columns = [
            ("purpose".into(), all.iter().map(|traffic| traffic.purpose.clone()).collect()),
            ("messages".into(), all.iter().map(|traffic| text::count(traffic.messages)).collect()),
            ("size".into(), all.iter().map(|traffic| text::bytes(traffic.bytes)).collect()),
        ];
        format!("\ntraffic between ranks, all in all\n{}", text::table(&columns))
    }
}
