//! The CSV file of predictions, with a tally for the metrics.

use super::args::{BLOCK, IntervalOf, PredictArgs};
use crate::job::predictor::{Predictions, Predictor, Wanted};
use crate::metrics::Tally;
use crate::report::coefficients::Interval;
use crate::text;
use anyhow::ensure;
use ndarray::{ArrayView1, Axis};
use std::io::Write;

/// The values of a block in which each row has predictions for every draw.
const BLOCK_VALUES: usize = 1 << 21;

/// What was predicted.
pub(super) struct Predicted {
    /// The number of rows or documents, with the noun.
    pub count: String,
    /// The rows that could not be predicted, if there are any.
    pub unpredicted: Option<Unpredicted>,
    /// How many rows are of groups that no training row has.
    pub of_new_groups: usize,
    /// How many rows lack a number, which the mean of the training rows replaces.
    pub filled_in: usize,
    /// How many rows are far from most training rows, and which number of the first of them is.
    pub far: Option<(usize, String)>,
    /// The metrics, if labels are known.
    pub metrics: Option<String>,
}

/// Rows that could not be predicted.
pub(super) struct Unpredicted {
    /// Why the first of them could not be predicted.
    first: String,
    /// How many rows there are of each kind, such as "a missing value", in the order of their first rows.
    kinds: Vec<(&'static str, usize)>,
}

impl Unpredicted {
    fn rows(&self) -> usize {
        self.kinds.iter().map(|(_, rows)| rows).sum()
    }

    fn count(&mut self, kind: &'static str) {
        match self.kinds.iter_mut().find(|(known, _)| *known == kind) {
            Some((_, rows)) => *rows += 1,
            None => self.kinds.push((kind, 1)),
        }
    }
}

impl std::fmt::Display for Unpredicted {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} without a prediction", text::counted(self.rows(), "row"))?;
        // The first row explains rows of one kind.
        if self.kinds.len() > 1 {
            let kinds: Vec<String> = self.kinds.iter().map(|(kind, rows)| format!("{rows} with {kind}")).collect();
            write!(f, " ({})", kinds.join(", "))?;
        }
        write!(f, ", of which the first is {}", self.first)
    }
}

/// The CSV file of predictions, with a tally for the metrics.
pub(super) struct Output {
    csv: csv::Writer<Box<dyn Write>>,
    /// The columns that are copied.
    copied: Vec<String>,
    /// The interval, if there is one.
    interval: Option<Interval>,
    /// What it is of.
    of: IntervalOf,
    /// How many predictive draws are written.
    draws: usize,
    /// How many draws of the posterior predict.
    draws_of_posterior: usize,
    classes: Vec<String>,
    labelled: bool,
    tally: Tally,
    rows: usize,
    /// How many rows of a table with labels have none.
    without_label: usize,
    /// The rows that could not be predicted, if there are any.
    unpredicted: Option<Unpredicted>,
    /// How many rows are of groups that no training row has.
    of_new_groups: usize,
    /// How many rows lack a number, which the mean of the training rows replaces.
    filled_in: usize,
    /// How many rows are far from most training rows, and which number of the first of them is.
    far: Option<(usize, String)>,
}

impl Output {
    pub(super) fn new(args: &PredictArgs, predictor: &mut Predictor, to: Box<dyn Write>) -> anyhow::Result<Self> {
        let classes = predictor.classes.clone();
        let tally = if classes.is_empty() { Tally::number() } else { Tally::classes(classes.len()) };
        let (can_draw, draws, most) = (predictor.can_draw(), args.draws.unwrap_or(0), predictor.draws());
        let usual = if classes.is_empty() && can_draw { IntervalOf::Target } else { IntervalOf::Mean };
        let of = args.of.unwrap_or(usual);
        ensure!(
            can_draw || draws == 0 && of == IntervalOf::Mean,
            "--draws and --of target are for models that draw targets, such as regressions: the model of this run does not"
        );
        ensure!(
            can_draw || !classes.is_empty() || args.interval.is_none() || args.of.is_some(),
            "--interval: the model of this run draws no targets; --of mean gives the interval of their mean"
        );
        ensure!(
            classes.is_empty() || of == IntervalOf::Mean,
            "--of target is for numbers and counts: leave it out for intervals of probabilities"
        );
        ensure!(
            draws <= most,
            "--draws {draws}: must be at most {most}, the draws of the posterior with which predictions are made"
        );
        let is_wanted = args.interval.is_some() || args.of.is_some() || of == IntervalOf::Target;
        let interval = is_wanted.then(|| Interval::chosen(args.interval, None));
        Ok(Self {
            csv: csv::Writer::from_writer(to),
            copied: args.keep.clone(),
            interval,
            of,
            draws,
            draws_of_posterior: most,
            classes,
            labelled: false,
            tally,
            rows: 0,
            without_label: 0,
            unpredicted: None,
            of_new_groups: 0,
            filled_in: 0,
            far: None,
        })
    }

    /// What the model must predict for the next rows.
    pub(super) fn wanted(&self) -> Wanted {
        let draws_targets = self.draws > 0 || self.interval.is_some() && self.of == IntervalOf::Target;
        let means_by_draw = self.interval.is_some() && self.of == IntervalOf::Mean;
        Wanted { first_row: self.rows as u64, targets: draws_targets, means_by_draw }
    }

    /// How many rows are predicted at once, so that memory does not grow with the file.
    pub(super) fn block(&self) -> usize {
        let values_of_row = self.draws_of_posterior * self.classes.len().max(1);
        if self.wanted().means_by_draw { (BLOCK_VALUES / values_of_row.max(1)).clamp(1, BLOCK) } else { BLOCK }
    }

    /// The names of the numbers with an interval: each class, or the mean or target.
    fn subjects(&self) -> Vec<String> {
        match (self.classes.is_empty(), self.of) {
            (true, IntervalOf::Target) => vec![String::new()],
            (true, IntervalOf::Mean) => vec!["mean ".to_owned()],
            (false, _) => self.classes.iter().map(|class| format!("p({class}) ")).collect(),
        }
    }

    pub(super) fn head(&mut self, labelled: bool) -> anyhow::Result<()> {
        self.labelled = labelled;
        let mut head = vec!["row".to_owned()];
        head.extend(self.copied.iter().cloned());
        head.push("predicted".to_owned());
        head.extend(labelled.then(|| "label".to_owned()));
        head.extend(self.classes.iter().map(|class| format!("p({class})")));
        if let Some(interval) = self.interval {
            for subject in self.subjects() {
                head.push(format!("{subject}sd"));
                head.extend(interval.headings().map(|heading| format!("{subject}{heading}")));
            }
        }
        head.extend((1..=self.draws).map(|draw| format!("draw_{draw}")));
        Ok(self.csv.write_record(head)?)
    }

    /// Writes predictions of the next rows, with the values of copied columns, and with labels if known.
    pub(super) fn add(
        &mut self,
        predictions: &Predictions,
        copied: &[Vec<String>],
        labels: &[String],
        targets: &[f64],
    ) -> anyhow::Result<()> {
        let Predictions { means, means_by_draw, drawn_targets, of_new_groups } = predictions;
        for (at, mean) in means.rows().into_iter().enumerate() {
            let mut record = vec![(self.rows + at).to_string()];
            record.extend(copied.get(at).into_iter().flatten().cloned());
            record.push(match self.classes.is_empty() {
                true => number(mean[0]),
                false => most_probable(mean).map_or_else(String::new, |class| self.classes[class].clone()),
            });
            record.extend(labels.get(at).cloned());
            if !self.classes.is_empty() {
                record.extend(mean.iter().copied().map(number));
            }
            if let Some(means) = means_by_draw {
                means.index_axis(Axis(1), at).columns().into_iter().for_each(|values| self.add_interval(values, &mut record));
            }
            if let Some(drawn) = drawn_targets {
                self.add_draws(drawn.row(at), &mut record);
            }
            self.csv.write_record(record)?;
        }
        self.rows += means.nrows();
        self.of_new_groups += of_new_groups;
        if self.labelled {
            let known: Vec<usize> = (0..targets.len()).filter(|&row| !targets[row].is_nan()).collect();
            self.without_label += targets.len() - known.len();
            let (means, targets) = (means.select(Axis(0), &known), ArrayView1::from(targets).select(Axis(0), &known));
            // The density of a number needs the noise of the model, which is unknown here.
            let density = |(mean, &target): (ArrayView1<f64>, &f64)| {
                if self.classes.is_empty() { f64::NAN } else { mean[target as usize] }
            };
            let density: Vec<f64> = means.rows().into_iter().zip(&targets).map(density).collect();
            self.tally.add(means.view(), &density, targets.view());
        }
        Ok(())
    }

    /// Counts a row that lacks a number, which the mean of the training rows replaces.
    pub(super) fn count_filled_in(&mut self) {
        self.filled_in += 1;
    }

    /// Counts a row that is far from most training rows; `what` says which of its numbers is.
    pub(super) fn count_far(&mut self, what: impl FnOnce() -> String) {
        self.far.get_or_insert_with(|| (0, what())).0 += 1;
    }

    /// Writes a row without a prediction, for a reason of this kind.
    pub(super) fn add_unpredicted(
        &mut self,
        copied: Vec<String>,
        label: Option<&str>,
        kind: &'static str,
        why: String,
    ) -> anyhow::Result<()> {
        let mut record = vec![self.rows.to_string()];
        record.extend(copied);
        record.push(String::new());
        record.extend(label.map(str::to_owned));
        let of_intervals = self.interval.map_or(0, |interval| self.subjects().len() * (1 + interval.headings().len()));
        let numbers = of_intervals + self.classes.len() + self.draws;
        record.resize(record.len() + numbers, String::new());
        self.csv.write_record(record)?;
        self.rows += 1;
        self.unpredicted.get_or_insert_with(|| Unpredicted { first: why, kinds: Vec::new() }).count(kind);
        Ok(())
    }

    /// Appends the standard deviation and the interval of values.
    fn add_interval(&self, values: ArrayView1<f64>, record: &mut Vec<String>) {
        if let Some(interval) = self.interval {
            let mut sorted = values.to_vec();
            sorted.sort_by(f64::total_cmp);
            record.push(number(values.std(1.0)));
            record.extend(interval.of(&sorted).map(number));
        }
    }

    /// Appends the standard deviation and the interval of predictive draws, and some of these.
    fn add_draws(&self, drawn: ArrayView1<f64>, record: &mut Vec<String>) {
        if self.of == IntervalOf::Target {
            self.add_interval(drawn, record);
        }
        let spread = (0..self.draws).map(|draw| drawn[draw * drawn.len() / self.draws]);
        record.extend(spread.map(|value| match self.classes.get(value as usize) {
            Some(class) if !value.is_nan() => class.clone(),
            _ => number(value),
        }));
    }

    /// What was predicted.
    pub(super) fn finish(mut self) -> anyhow::Result<Predicted> {
        self.csv.flush()?;
        let unpredicted = self.unpredicted.take();
        let count = text::counted(self.rows - unpredicted.as_ref().map_or(0, Unpredicted::rows), "row");
        let metrics = self.labelled.then(|| {
            let values = self.tally.finish().values();
            let known = values.into_iter().filter(|(_, value)| !value.is_nan());
            let metrics = known.map(|(name, value)| format!("{name} {}", text::value(value))).collect::<Vec<_>>().join(", ");
            match self.without_label {
                0 => metrics,
                rows => format!("{metrics} ({} without a label left out)", text::counted(rows, "row")),
            }
        });
        let Self { of_new_groups, filled_in, far, .. } = self;
        Ok(Predicted { count, unpredicted, of_new_groups, filled_in, far, metrics })
    }
}

/// A number with twelve digits: the others are rounding errors of averages.
fn number(value: f64) -> String {
    format!("{value:.11e}").parse::<f64>().map_or_else(|_| value.to_string(), |rounded| rounded.to_string())
}

/// The most probable class, the first one among ties; `None` if a probability is NaN because draws have diverged.
fn most_probable(row: ArrayView1<f64>) -> Option<usize> {
    let largest = row.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    if row.iter().any(|p| p.is_nan()) { None } else { row.iter().position(|&p| p == largest) }
}
