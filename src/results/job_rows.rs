//! The rows of tables about the jobs of a run: bytes, messages, seconds by phase, what each rank did, what saving takes.

use crate::cluster::record::Row;
use crate::cluster::{AgentBytes, AgentTime, Checkpoint, RankReport, RankUsage, TimeSpent};

/// The table of messages and bytes between ranks, with columns `PURPOSE_messages` and `PURPOSE_bytes`.
pub const TRAFFIC: &str = "traffic";
/// The table of bytes that agents receive and send, on any number of ranks.
pub const AGENT_BYTES: &str = "agent_bytes";
/// The table of seconds by phase: a row for the server, which includes saving, and a row for each agent.
pub const PHASES: &str = "phases";
/// The table of the ranks of the last job, in order.
pub const RANKS: &str = "ranks";
/// The table of messages and bytes from one rank of the last job to another, for jobs of at most 64 ranks.
pub const TRAFFIC_BETWEEN_RANKS: &str = "traffic_between_ranks";
/// The table of what the checkpoints before the last took in the last job; one row, if there were any.
pub const SAVES: &str = "saves";

const ALL: [&str; 6] = [TRAFFIC, AGENT_BYTES, PHASES, RANKS, TRAFFIC_BETWEEN_RANKS, SAVES];

/// What saving has taken in this job.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Saves {
    /// How many checkpoints were written.
    pub count: u64,
    /// Seconds in which the slowest rank wrote its states.
    pub states_seconds: f64,
    /// Seconds for the result file.
    pub results_seconds: f64,
    /// Seconds for the checkpoint.
    pub checkpoint_seconds: f64,
    /// Bytes of the last: states that ranks have written, the result file, the checkpoint.
    pub states_bytes: u64,
    pub results_bytes: u64,
    pub checkpoint_bytes: u64,
}

/// Replaces the rows about jobs by those of a checkpoint. `saving_seconds` is that of all jobs of the run.
pub(super) fn replace(rows: &mut Vec<Row>, checkpoint: &Checkpoint, saves: Saves, saving_seconds: f64) {
    rows.retain(|row| !ALL.contains(&row.table.as_str()));
    let mut add = |table: &str, agent: Option<u32>, values: Vec<(String, f64)>| {
        rows.push(Row { table: table.into(), step: 0, agent, values });
    };
    let AgentBytes { received, sent } = checkpoint.bytes;
    add(AGENT_BYTES, None, named(&[("received", received as f64), ("sent", sent as f64)]));
    let traffic = checkpoint.traffic.0.iter().flat_map(|(purpose, flow)| {
        let purpose = purpose.replace(' ', "_");
        [(format!("{purpose}_messages"), flow.messages as f64), (format!("{purpose}_bytes"), flow.bytes as f64)]
    });
    add(TRAFFIC, None, traffic.collect());
    let TimeSpent { server, server_monitoring, .. } = checkpoint.spent;
    add(PHASES, None, named(&[("server", server), ("evaluation", server_monitoring), ("saving", saving_seconds)]));
    for (&agent, spent) in &checkpoint.spent.agents {
        let AgentTime { tasks, after_report, monitoring } = *spent;
        add(PHASES, Some(agent), named(&[("tasks", tasks), ("after_report", after_report), ("evaluation", monitoring)]));
    }
    for (&rank, report) in &checkpoint.ranks {
        add(RANKS, None, of_rank(rank, report));
        for (&to, flow) in &report.usage.sent_to {
            let values =
                [("from", rank.into()), ("to", to.into()), ("messages", flow.messages as f64), ("bytes", flow.bytes as f64)];
            add(TRAFFIC_BETWEEN_RANKS, None, named(&values));
        }
    }
    let Saves { count, states_seconds, results_seconds, checkpoint_seconds, states_bytes, results_bytes, checkpoint_bytes } =
        saves;
    if count > 0 {
        let values = [
            ("saves", count as f64),
            ("states_seconds", states_seconds),
            ("results_seconds", results_seconds),
            ("checkpoint_seconds", checkpoint_seconds),
            ("states_bytes", states_bytes as f64),
            ("results_bytes", results_bytes as f64),
            ("checkpoint_bytes", checkpoint_bytes as f64),
        ];
        add(SAVES, None, named(&values));
    }
}

fn of_rank(rank: u32, RankReport { usage, response_times }: &RankReport) -> Vec<(String, f64)> {
    let RankUsage { threads, seconds, messages, saving, idle, thread_seconds, peak_memory, sent, .. } = usage;
    named(&[
        ("rank", rank.into()),
        ("threads", *threads as f64),
        ("seconds", *seconds),
        ("computing", usage.computing()),
        ("messages", *messages),
        ("saving", *saving),
        ("idle", *idle),
        ("thread_seconds", *thread_seconds),
        ("peak_memory", *peak_memory as f64),
        ("sent_messages", sent.messages as f64),
        ("sent_bytes", sent.bytes as f64),
        ("responses", response_times.count() as f64),
        ("response_median", response_times.quantile(0.5)),
        ("response_p90", response_times.quantile(0.9)),
        ("response_longest", if response_times.count() == 0 { f64::NAN } else { response_times.longest() }),
    ])
}

fn named(values: &[(&str, f64)]) -> Vec<(String, f64)> {
    values.iter().map(|&(name, value)| (name.to_owned(), value)).collect()
}

/// The seconds that earlier jobs have spent on saving, according to the rows of their last checkpoint.
pub(super) fn saving_seconds<'a>(mut rows: impl Iterator<Item = &'a Row>) -> f64 {
    rows.find_map(|row| row.values.iter().find(|value| row.table == PHASES && value.0 == "saving").map(|value| value.1))
        .unwrap_or(0.0)
}
