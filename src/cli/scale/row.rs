//! What is known about one number of ranks: predicted, and measured by runs.

use crate::cluster::simulate::Load;
use crate::job::Forecast;
use crate::report::series::RunsOnRanks;
use serde::Serialize;

/// What more ranks are used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::cli) enum Scaling {
    /// The same run.
    Strong,
    /// A run with as many agents as ranks.
    Weak,
}

impl Scaling {
    /// The speed-up on `ranks` over `from` ranks, divided by how many times as many they are. The run takes `first` seconds on `from` ranks.
    fn efficiency(self, (from, first): (u32, f64), (ranks, seconds): (u32, f64)) -> f64 {
        match self {
            Self::Strong => first * f64::from(from) / (seconds * f64::from(ranks)),
            Self::Weak => first / seconds,
        }
    }
}

/// A number of ranks, and how long the run takes on them.
#[derive(Clone, Debug, Default, Serialize)]
pub(in crate::cli) struct Row {
    pub ranks: u32,
    /// Predicted seconds of the whole run; none if no round was finished.
    pub seconds: Option<f64>,
    /// See [`Scaling`].
    pub efficiency: Option<f64>,
    /// How many times as much is done in the same time as in the row with which all compare.
    pub speed_up: Option<f64>,
    /// How many agents work at the same time, on average.
    pub busy_agents: f64,
    /// The most messages, and bytes, that a rank sends or receives for one request.
    pub messages: u64,
    pub bytes: u64,
    /// Bytes of the rank that needs the most memory, if that is known.
    pub memory: Option<u64>,
    /// Runs on this many ranks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub measured: Option<MeasuredRow>,
}

/// Runs on a number of ranks.
#[derive(Clone, Debug, Serialize)]
pub(in crate::cli) struct MeasuredRow {
    #[serde(flatten)]
    pub runs: RunsOnRanks,
    /// Their median time in seconds.
    pub median: f64,
    /// Efficiencies of the median, of the longest and of the shortest time.
    pub efficiency: [f64; 3],
}

impl Row {
    /// Of a forecast for a number of ranks.
    pub fn predicted(ranks: u32, found: &Forecast, memory: Option<u64>) -> Self {
        let Load { sent, received } = found.load;
        let (messages, bytes) = (sent.messages.max(received.messages), sent.bytes.max(received.bytes));
        Self { ranks, seconds: found.seconds, busy_agents: found.busy_agents, messages, bytes, memory, ..Self::default() }
    }

    /// Sets the efficiencies. Predicted times compare with the first row that has one, measured times with the first that has one; if some row
    /// has both, all compare with that.
    pub fn compare(rows: &mut [Self], scaling: Scaling) {
        let both = rows.iter().find(|row| row.seconds.is_some() && row.measured.is_some()).map(|row| row.ranks);
        let is_base = |row: &Self| both.is_none_or(|ranks| row.ranks == ranks);
        let predicted = rows.iter().filter(|row| is_base(row)).find_map(|row| Some((row.ranks, row.seconds?)));
        let measured = rows.iter().filter(|row| is_base(row)).find_map(|row| Some((row.ranks, row.measured.as_ref()?.median)));
        for row in rows {
            row.efficiency = predicted.zip(row.seconds).map(|(first, seconds)| scaling.efficiency(first, (row.ranks, seconds)));
            row.speed_up = predicted.zip(row.efficiency).map(|(first, used)| used * f64::from(row.ranks) / f64::from(first.0));
            if let Some((first, measured)) = measured.zip(row.measured.as_mut()) {
                let (shortest, longest) = measured.runs.range();
                let efficiency = |seconds| scaling.efficiency(first, (row.ranks, seconds));
                measured.efficiency = [measured.median, longest, shortest].map(efficiency);
            }
        }
    }
}

impl MeasuredRow {
    /// Of runs, before they are compared.
    pub fn new(runs: RunsOnRanks) -> Self {
        Self { median: runs.median(), runs, efficiency: [f64::NAN; 3] }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn efficiencies_compare_with_the_first_row_that_has_both_times() {
        let runs = |seconds: &[f64]| Some(MeasuredRow::new(RunsOnRanks { seconds: seconds.to_vec(), ..RunsOnRanks::default() }));
        let row = |ranks, seconds, measured| Row { ranks, seconds, measured, ..Row::default() };
        let mut rows =
            vec![row(2, Some(400.0), None), row(4, Some(250.0), runs(&[100.0])), row(8, Some(200.0), runs(&[80.0, 100.0]))];
        Row::compare(&mut rows, Scaling::Strong);
        // Four ranks take 250 s, eight 200 s.
        assert_eq!((rows[2].speed_up, rows[2].efficiency), (Some(1.25), Some(0.625)));
        assert_eq!(rows[0].efficiency, Some(1.25));
        let efficiency = rows[2].measured.as_ref().unwrap().efficiency;
        assert!((efficiency[0] - 50.0 / 90.0).abs() < 1e-12 && efficiency[1..] == [0.5, 0.625], "{efficiency:?}");
        Row::compare(&mut rows, Scaling::Weak);
        assert_eq!((rows[2].speed_up, rows[2].efficiency), (Some(2.5), Some(1.25)));
        assert_eq!(rows[2].measured.as_ref().unwrap().efficiency[1..], [1.0, 1.25]);
    }
}
