//! The summary of a run as text.

use super::{Summary, TableRow, rows_of_last_step};
use crate::methods::chains::coupled::SPREAD as SPREAD_OF_CHAINS;
use crate::metrics::meaning;
use crate::report::communication::Communication;
use crate::report::exchangeable::has_exchangeable_units;
use crate::report::posterior::{self, PosteriorGroup};
use crate::report::temperature;
use crate::report::test_rows::TestRows;
use crate::report::trajectories::Trajectories;
use crate::results::{BYTES, POSTERIOR, SECONDS, SampleKind};
use crate::text;

/// The largest number of classes, rows and columns of a table in the text; JSON has all.
const MAX_CLASSES: usize = 20;
const MAX_ROWS: usize = 16;
const MAX_COLUMNS: usize = 8;

impl std::fmt::Display for Summary {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.text(false))
    }
}

impl Summary {
    /// The results as text. Tables of estimates list parameters with poor diagnostics or, for particles, some of each variable, unless
    /// `all` is set.
    pub fn text(&self, all: bool) -> String {
        let mut text = self.judgment.as_ref().map_or_else(String::new, |judgment| format!("{}\n\n", judgment.text));
        text += &format!("{}\n", self.file.display());
        if !self.finished {
            let rounds = progress(self.rounds_done, self.rounds_total);
            let draws = match (self.draws.is_empty(), self.can_be_judged) {
                (true, _) => ", without draws",
                (false, true) => "; `mpibayes judge` judges its draws",
                (false, false) => "",
            };
            text += &format!("not finished{rounds}: these are the results so far{draws}\n");
        }
        text += &self.description();
        text += &self.coefficients.as_ref().map(|coefficients| coefficients.text(all)).unwrap_or_default();
        if let Some(why) = &self.why_no_coefficients {
            text += &format!("\nno table in the units of the data: {why}\n");
        }
        text += &self.predicted_by_chains().map_or_else(|| self.final_metrics(), metrics_of_test_rows);
        text += &self.calibration();
        text += &self.accuracy_by_class();
        text += &self.coupling();
        text += &temperature::table(&self.temperatures);
        text += &self.trajectories();
        for draws in &self.draws {
            text += &draws_description(draws, all, &self.model, self.coefficients.is_some() && draws.group == POSTERIOR);
        }
        if !self.expectations.is_empty() {
            text += "\nposterior mean and sd over all updates after burn-in, not only the kept draws\n";
            text += &posterior::expectations_table(&self.expectations, all);
        }
        text += &self.operation.incidents();
        text + "\n--rounds shows metrics and history by round, and what agents received and sent; --ranks shows times and messages\n"
    }

    /// Metrics and history by round, and what agents received and sent, as text.
    pub fn rounds_text(&self) -> String {
        let mut text = String::new();
        if self.predicted_by_chains().is_some() {
            text += &self.final_metrics();
        }
        text += &table_of_rounds("metrics by round", &self.evaluations);
        text += &table_of_rounds("history of the method", &self.history);
        text += &self.agent_bytes.map(Communication::text).unwrap_or_default();
        match text.is_empty() {
            true => "this run has no metrics and no history\n".into(),
            false => text.trim_start().to_owned(),
        }
    }

    /// Method, model, data, seed and version.
    fn description(&self) -> String {
        let digest = text::short_digest(&self.data_digest);
        let data = match &self.data {
            _ if digest.is_empty() => "none".into(),
            Some(file) => format!("{file} (digest {digest})"),
            None => format!("digest {digest}"),
        };
        text::pairs(&[
            ("method", self.method.clone()),
            ("model", self.model.clone()),
            ("data", data),
            ("seed", self.seed.to_string()),
            ("began", self.created_at.clone()),
            ("version", format!("mpibayes {}", self.version)),
        ])
    }

    /// The metrics of the last evaluation, and the range of the accuracy or RMSE over agents.
    fn final_metrics(&self) -> String {
        if self.metrics.is_empty() {
            return String::new();
        }
        let mut lines: Vec<(&str, String)> =
            self.metrics.iter().map(|(name, value)| (name.as_str(), with_meaning(name, *value))).collect();
        let lowest = self.spread.last().and_then(|last| {
            let is_lowest = |value: &&(String, f64)| value.0.ends_with("_lowest");
            Some((last, last.values.iter().find(is_lowest)?))
        });
        if let Some((last, (name, lowest))) = lowest {
            let name = name.strip_suffix("_lowest").unwrap_or(name);
            let highest = with_unit(name, last.value(&format!("{name}_highest")));
            let range = format!("{name} {} to {highest} on each agent's share of the test rows", with_unit(name, *lowest));
            lines.push(("by agent", range));
        }
        let round = self.evaluations.last().map_or(0, |last| last.step);
        let heading = match (self.has_chains(), self.finished) {
            (true, _) => format!("last evaluation during the run (round {round}), by a few states of the chains"),
            (false, true) => format!("final metrics (round {round})"),
            (false, false) => format!("latest metrics (round {round})"),
        };
        format!("\n{heading}\n{}", text::pairs(&lines))
    }

    /// The reliability table of the last evaluation, without empty bins.
    fn calibration(&self) -> String {
        let bins: Vec<&TableRow> =
            rows_of_last_step(&self.reliability).into_iter().filter(|bin| bin.value("rows") > 0.0).collect();
        if bins.is_empty() {
            return String::new();
        }
        let percent = |of: fn(&TableRow) -> f64| bins.iter().map(|bin| text::percent(of(bin), 1)).collect();
        let edge = |share: f64| (1e4 * share).round() / 1e2;
        let edges = |bin: &&TableRow| format!("{} to {} %", edge(bin.value("lower")), edge(bin.value("upper")));
        let columns = [
            ("bin".into(), bins.iter().map(edges).collect()),
            ("rows".into(), bins.iter().map(|bin| whole_number(bin.value("rows"))).collect()),
            ("confidence".into(), percent(|bin| bin.value("confidence"))),
            ("accuracy".into(), percent(|bin| bin.value("accuracy"))),
            ("overconfidence".into(), percent(|bin| bin.value("confidence") - bin.value("accuracy"))),
        ];
        format!("\ncalibration: accuracy of predictions by their confidence\n{}", text::table(&columns))
    }

    /// The accuracy of each class in the last evaluation, or of the worst classes if there are many.
    fn accuracy_by_class(&self) -> String {
        let mut classes = rows_of_last_step(&self.classes);
        let count = classes.len();
        if count == 0 {
            return String::new();
        }
        let mut heading = "\naccuracy by class".to_owned();
        if count > MAX_CLASSES {
            classes.sort_by(|a, b| a.value("accuracy").total_cmp(&b.value("accuracy")));
            classes.truncate(MAX_CLASSES);
            heading += &format!(" (the worst {MAX_CLASSES} of {}; --json has all)", text::count(count));
        }
        let name = |class: &&TableRow| {
            let number = whole_number(class.value("class"));
            number.parse().ok().and_then(|index: usize| self.class_names.get(index)).cloned().unwrap_or(number)
        };
        let columns = [
            ("class".into(), classes.iter().map(name).collect()),
            ("rows".into(), classes.iter().map(|class| whole_number(class.value("rows"))).collect()),
            ("accuracy".into(), classes.iter().map(|class| text::percent(class.value("accuracy"), 1)).collect()),
        ];
        format!("{heading}\n{}", text::table(&columns))
    }

    /// The bias of draws from chains that stay coupled by springs.
    fn coupling(&self) -> String {
        // One row is noisy if there are few parameters, so the second half of the rows is averaged. The last period has no value, because
        // no exchange follows it.
        let measured: Vec<&TableRow> = self.history.iter().filter(|round| round.value(SPREAD_OF_CHAINS).is_finite()).collect();
        let second_half = &measured[measured.len() / 2..];
        let (Some(last), true) = (second_half.last(), self.stays_coupled) else { return String::new() };
        let mean_square =
            second_half.iter().map(|round| round.value(SPREAD_OF_CHAINS).powi(2)).sum::<f64>() / second_half.len() as f64;
        let (spread, kappa) = (mean_square.sqrt(), last.value("coupling"));
        // S = 1/(λ + κ) for a Gaussian posterior with precision λ.
        let precision = 1.0 / (spread * spread) - kappa;
        let posterior_sd =
            if precision > 0.0 { format!("{:.3e}", precision.sqrt().recip()) } else { "too large to estimate".into() };
        format!(
            "\ncoupled chains: draws do not have the posterior distribution\n  distance of a parameter from the mean of the chains (root \
             mean square): {spread:.3e}; by the coupling alone it would be {:.3e}\n  corresponding posterior sd, if the posterior is \
             Gaussian: {posterior_sd}\n",
            kappa.sqrt().recip()
        )
    }

    fn trajectories(&self) -> String {
        let Some(trajectories) = self.trajectories else { return String::new() };
        let Trajectories { count, diverged, longest, acceptance, leapfrog_steps } = trajectories;
        let longest = match longest {
            0 => String::new(),
            _ => format!("  {} reached the largest length: parameters are strongly correlated\n", text::count(longest)),
        };
        format!(
            "\ntrajectories: {diverged} of {} diverged, {leapfrog_steps:.1} leapfrog steps each, mean acceptance {acceptance:.2}\n{longest}",
            text::count(count)
        )
    }
}

/// How far a run is, in parentheses after a space; empty if that is unknown.
pub(in crate::report) fn progress(done: u64, total: u64) -> String {
    if total == 0 { String::new() } else { format!(" (round {done} of {total})") }
}

/// The metrics of predictions by the draws of all chains.
pub(in crate::report) fn metrics_of_test_rows(test_rows: &TestRows) -> String {
    let lines: Vec<(&str, String)> =
        test_rows.metrics.iter().map(|(name, value)| (name.as_str(), with_meaning(name, *value))).collect();
    format!("\ntest rows, predicted by all draws of all chains: the metrics to report\n{}", text::pairs(&lines))
}

/// A count that a table holds as a floating-point number; `-` for NaN.
fn whole_number(number: f64) -> String {
    // The conversion saturates.
    if number.is_nan() { "-".into() } else { text::count(number as u64) }
}

/// A group of draws: its size, its variables and the estimates of its parameters.
pub(in crate::report) fn draws_description(draws: &PosteriorGroup, all: bool, model: &str, is_standardized: bool) -> String {
    let (noun, chains) = match draws.kind {
        SampleKind::Particles => ("particle", String::new()),
        SampleKind::Paths => ("evaluation", format!("{} × ", text::counted(draws.chains, "particle"))),
        // Expectations have a table of their own.
        SampleKind::Expectation | SampleKind::Statistics => return String::new(),
        SampleKind::Chains | SampleKind::Topics => ("draw", format!("{} × ", text::counted(draws.chains, "chain"))),
    };
    let size = format!("{chains}{} × {}", text::counted(draws.draws, noun), text::counted(draws.parameters, "parameter"));
    let columns: Vec<(String, Vec<String>)> = vec![
        ("variable".into(), draws.parts.iter().map(|part| part.name.clone()).collect()),
        ("shape".into(), draws.parts.iter().map(|part| shape(&part.shape)).collect()),
        ("size".into(), draws.parts.iter().map(|part| text::count(part.size())).collect()),
    ];
    let mut text = format!("\n{}: {size}\n{}", draws.group, text::table(&columns));
    if draws.kind == SampleKind::Topics {
        text += "  `mpibayes topics` lists the top words of each topic\n";
    }
    let table = draws.table(all, has_exchangeable_units(model));
    if !table.is_empty() {
        text += &format!(
            "\n{} estimates{}\n{table}",
            draws.group,
            if is_standardized { " (in standardized units, as the model has them)" } else { "" }
        );
    }
    text
}

/// A text table of at most `MAX_ROWS` of these rows, evenly spaced.
fn table_of_rounds(title: &str, all: &[TableRow]) -> String {
    let Some(first) = all.first() else { return String::new() };
    let rows: Vec<&TableRow> = evenly_spaced(all.len(), MAX_ROWS).into_iter().map(|row| &all[row]).collect();
    let mut text = format!("\n{title}");
    if rows.len() < all.len() {
        text += &format!(" ({} of {} rows; --json has all)", rows.len(), all.len());
    }
    let mut columns = vec![("round".to_owned(), rows.iter().map(|row| row.step.to_string()).collect())];
    for (column, (name, _)) in first.values.iter().enumerate().take(MAX_COLUMNS) {
        let values: Vec<f64> = rows.iter().map(|row| row.values[column].1).collect();
        let cells = match name.as_str() {
            name if is_time(name) => values.iter().map(|value| format!("{value:.2}")).collect(),
            // Counts of bytes are far below 2^53.
            BYTES => values.iter().map(|&value| text::bytes(value as u64)).collect(),
            _ => text::values(&values),
        };
        columns.push((name.clone(), cells));
    }
    text += &format!("\n{}", text::table(&columns));
    if let Some(rest @ [_, ..]) = first.values.get(MAX_COLUMNS..) {
        let names: Vec<&str> = rest.iter().map(|value| value.0.as_str()).collect();
        text += &format!("  more columns in --json: {}\n", names.join(", "));
    }
    text
}

fn is_time(name: &str) -> bool {
    name == SECONDS || name.ends_with("_seconds")
}

/// A metric with its unit and what it means.
fn with_meaning(name: &str, value: f64) -> String {
    match meaning(name) {
        Some(meaning) => format!("{}  {meaning}", with_unit(name, value)),
        None => with_unit(name, value),
    }
}

/// A metric with its unit.
fn with_unit(name: &str, value: f64) -> String {
    match name {
        _ if value.is_nan() => "-".into(),
        "accuracy" | "particle_accuracy" | "posterior_accuracy" => format!("{:.2} %", 100.0 * value),
        "log_likelihood" | "particle_log_likelihood" | "posterior_log_likelihood" => format!("{value:.4} nats per row"),
        _ if is_time(name) => text::seconds(value),
        _ => text::value(value),
    }
}

fn shape(sides: &[usize]) -> String {
    match sides {
        [] => "scalar".into(),
        sides => sides.iter().map(usize::to_string).collect::<Vec<_>>().join(" × "),
    }
}

/// The indices of at most `most` of `rows` rows, evenly spaced, including the first and the last.
pub(super) fn evenly_spaced(rows: usize, most: usize) -> Vec<usize> {
    if rows <= most {
        return (0..rows).collect();
    }
    (0..most).map(|i| i * (rows - 1) / (most - 1)).collect()
}
