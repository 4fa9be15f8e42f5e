//! The tables of `mpibayes scale`.

use super::row::{MeasuredRow, Row};
use crate::text;

/// What is predicted for each number of ranks.
pub(super) fn predicted(rows: &[Row]) -> String {
    let column = |name: &str, cell: &dyn Fn(&Row) -> Option<String>| {
        (name.to_owned(), rows.iter().map(|row| cell(row).unwrap_or_else(|| "-".into())).collect())
    };
    text::table(&[
        column("ranks", &|row| Some(text::count(row.ranks))),
        column("time of the run", &|row| row.seconds.map(text::seconds)),
        column("speed-up", &|row| row.speed_up.map(|speed_up| format!("{speed_up:.1}"))),
        column("efficiency", &|row| row.efficiency.map(|efficiency| text::percent(efficiency, 0))),
        column("agents at work", &|row| (row.busy_agents > 0.0).then(|| format!("{:.1}", row.busy_agents))),
        column("messages per request", &|row| row.seconds.map(|_| text::count(row.messages))),
        column("memory of a rank", &|row| row.memory.map(text::bytes)),
    ])
}

/// What runs have shown, and how far the predictions were from it; empty without runs.
pub(super) fn measured(rows: &[Row]) -> String {
    let measured: Vec<(&Row, &MeasuredRow)> = rows.iter().filter_map(|row| Some((row, row.measured.as_ref()?))).collect();
    if measured.is_empty() {
        return String::new();
    }
    let column = |name: &str, cell: &dyn Fn(&Row, &MeasuredRow) -> String| {
        (name.to_owned(), measured.iter().map(|(row, of_runs)| cell(row, of_runs)).collect())
    };
    let mut columns = vec![
        column("ranks", &|row, _| text::count(row.ranks)),
        column("runs", &|_, of_runs| text::count(of_runs.runs.seconds.len())),
        column("median time", &|_, of_runs| text::seconds(of_runs.median)),
        column("shortest", &|_, of_runs| text::seconds(of_runs.runs.range().0)),
        column("longest", &|_, of_runs| text::seconds(of_runs.runs.range().1)),
        column("efficiency", &|_, of_runs| text::percent(of_runs.efficiency[0], 0)),
        column("computing", &|_, of_runs| text::percent(of_runs.runs.shares.computing, 0)),
        column("messages", &|_, of_runs| text::percent(of_runs.runs.shares.messages, 0)),
        column("saving", &|_, of_runs| text::percent(of_runs.runs.shares.saving, 0)),
        column("idle", &|_, of_runs| text::percent(of_runs.runs.shares.idle, 0)),
        column("memory of a rank", &|_, of_runs| text::bytes(of_runs.runs.memory)),
    ];
    let mut ratios: Vec<f64> = measured.iter().filter_map(|(row, of_runs)| Some(row.seconds? / of_runs.median)).collect();
    ratios.sort_by(f64::total_cmp);
    let (Some(least), Some(most)) = (ratios.first(), ratios.last()) else {
        return format!("measured runs (times without saving)\n{}", text::table(&columns));
    };
    columns.insert(3, column("predicted", &|row, _| row.seconds.map_or_else(|| "-".into(), text::seconds)));
    let percent = |ratio: &f64| text::percent(*ratio, 0);
    let range = if ratios.len() == 1 { percent(least) } else { format!("{} to {}", percent(least), percent(most)) };
    format!("measured runs (times without saving)\n{}predicted times are {range} of the measured ones\n", text::table(&columns))
}
