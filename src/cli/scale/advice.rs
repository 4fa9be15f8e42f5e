//! How many ranks to ask for, and why more would not pay off.

use super::row::Row;
use crate::job::Forecast;
use crate::text;

/// Ranks are worth it with at least this efficiency.
const MIN_EFFICIENCY: f64 = 0.5;
/// The network limits a run that takes this many times as long as on an ideal network.
const LIMITED_BY_NETWORK: f64 = 1.3;

/// The place of the largest number of ranks that are worth it.
pub(super) fn largest_worthwhile(rows: &[Row]) -> Option<usize> {
    rows.iter().rposition(|row| row.efficiency.is_some_and(|efficiency| efficiency >= MIN_EFFICIENCY))
}

/// How many ranks to ask for, those of row `chosen`, and why more would not pay off. `ideal` is the forecast for the ranks of the next row on an
/// ideal network. If there are more ranks than `max_ranks`, the others have no agent.
pub(super) fn advice(rows: &[Row], chosen: usize, ideal: Option<&Forecast>, agents: u32, max_ranks: u32) -> String {
    let row = &rows[chosen];
    let time = row.seconds.map_or_else(String::new, |seconds| format!(" ({})", text::seconds(seconds)));
    let ask = format!("ask for {}{time}", text::counted(row.ranks, "rank"));
    let Some(next) = rows.get(chosen + 1) else {
        return match row.ranks >= max_ranks {
            true => format!("{ask}: each agent has a rank of its own. More ranks need more agents"),
            false => format!("{ask} or more: these are the most in this table, and they are used well"),
        };
    };
    let (Some(efficiency), Some(seconds), Some(ideal)) = (next.efficiency, next.seconds, ideal) else {
        return format!("{ask}: {} finished no round. Measure longer", text::counted(next.ranks, "rank"));
    };
    let next_efficiency =
        format!("{} would have an efficiency of {}", text::counted(next.ranks, "rank"), text::percent(efficiency, 0));
    let reason = match ideal.seconds {
        Some(ideal) if seconds > LIMITED_BY_NETWORK * ideal => {
            format!("The network is the limit: with an ideal one they would take {}", text::seconds(ideal))
        }
        Some(_) => format!(
            "A faster network would help little: even with an ideal one, on average {:.1} of {} work at the same time",
            ideal.busy_agents,
            text::counted(agents, "agent")
        ),
        None => "What limits them could not be measured".into(),
    };
    format!("{ask}: {next_efficiency}. {reason}")
}

#[cfg(test)]
mod tests {
    use super::super::row::Scaling;
    use super::*;
    use crate::cluster::simulate::Load;

    fn forecast_of(seconds: f64) -> Forecast {
        Forecast { seconds: Some(seconds), busy_agents: 2.5, load: Load::default(), done: 1, total: 10, checkpoint: 0 }
    }

    fn rows(times: &[(u32, f64)]) -> Vec<Row> {
        let mut rows: Vec<Row> =
            times.iter().map(|&(ranks, seconds)| Row::predicted(ranks, &forecast_of(seconds), None)).collect();
        Row::compare(&mut rows, Scaling::Strong);
        rows
    }

    #[test]
    fn ranks_are_advised_as_long_as_they_are_used() {
        let all = rows(&[(1, 800.0), (2, 420.0), (4, 230.0), (8, 220.0)]);
        assert_eq!(largest_worthwhile(&all), Some(2));
        let network = advice(&all, 2, Some(&forecast_of(110.0)), 8, 8);
        assert!(
            network.starts_with("ask for 4 ranks (")
                && network.contains("8 ranks would have an efficiency of 45 %. The network is the limit")
        );
        let method = advice(&all, 2, Some(&forecast_of(215.0)), 8, 8);
        assert!(method.contains("on average 2.5 of 8 agents work at the same time"), "{method}");
        let all = rows(&[(1, 800.0), (4, 210.0)]);
        assert!(advice(&all, 1, None, 4, 4).ends_with("each agent has a rank of its own. More ranks need more agents"));
        assert!(advice(&all, 1, None, 8, 8).ends_with(" or more: these are the most in this table, and they are used well"));
        assert_eq!(largest_worthwhile(&rows(&[(1, f64::NAN)])), None);
    }
}
