//! The parameters of a regression in the units of the data, as they are written about: coefficients, odds or rate ratios, noise, groups.
//!
//! The model sees standardized columns s x + o and targets t y + c. A weight w of such a column is the coefficient w s / t of x, and the
//! intercept b becomes (b + Σ w o − c)/t.

use super::error::{ReportError, Result};
use crate::data::FeatureScaling;
use crate::job::predictions::{PREPROCESSING, kept_recipe, kept_scaling};
use crate::metrics::convergence::{Convergence, convergence, quantile};
use crate::models::Part;
#[cfg(feature = "plots")]
use crate::plots::{Figure, ForestRow, ForestSeries, forest};
use crate::results::{POSTERIOR, ResultFile, SampleKind};
use crate::text;
use ndarray::{Array1, Array2, ArrayView1, s};
use serde::Serialize;

/// Regressions with more weights have no such table.
const MAX_WEIGHTS: usize = 1000;
/// Effects of groups that are shown, unless all are requested.
const SHOWN_GROUPS: usize = 10;

/// What is wanted of coefficients.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CoefficientOptions {
    /// The interval of each coefficient.
    pub interval: Interval,
    /// The units of columns, where they are not those of the data.
    pub per: Vec<Per>,
    /// Whether the draws themselves are wanted.
    pub draws: bool,
    /// Whether `per` may name columns that are not there.
    pub allows_other_columns: bool,
}

/// A number of units of a column for which its coefficient is given, such as 10 years.
#[derive(Clone, Debug, PartialEq)]
pub struct Per {
    /// The column.
    pub column: String,
    /// The number of its units.
    pub units: f64,
}

/// The parameters of a regression in the units of the data.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Coefficients {
    /// The interval of each coefficient.
    pub interval: Interval,
    /// What e to the power of a coefficient is, if it means something.
    pub ratio: Option<&'static str>,
    /// Of what the odds are, if they are.
    pub odds_of: Option<String>,
    /// The coefficients and other parameters.
    pub rows: Vec<Coefficient>,
    /// Whether groups have slopes, so that their intercepts are those at 0 of other columns.
    #[serde(skip)]
    has_slopes: bool,
    /// The number of draws of each chain, or of particles.
    #[serde(skip)]
    chain_length: usize,
}

/// A parameter in the units of the data.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Coefficient {
    /// Its name.
    pub name: String,
    /// Its posterior mean.
    pub mean: f64,
    /// Its posterior standard deviation.
    pub sd: f64,
    /// The ends of its interval.
    pub interval: [f64; 2],
    /// The median and the ends of the interval of e to its power, if that is a ratio.
    pub ratio: Option<[f64; 3]>,
    /// Convergence diagnostics, if there are chains.
    #[serde(flatten)]
    pub convergence: Option<Convergence>,
    /// Its draws, chain after chain, if they are wanted.
    #[serde(skip)]
    draws: Vec<f64>,
    /// Whether it is one of many groups.
    #[serde(skip)]
    is_group: bool,
    /// Whether it is the effect of a column or a group.
    #[serde(skip)]
    is_effect: bool,
}

impl Coefficient {
    /// Whether it is the effect of one of many groups.
    pub(super) fn is_of_group(&self) -> bool {
        self.is_group
    }
}

/// An interval that contains a share of the posterior.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Interval {
    /// The share.
    pub mass: f64,
    /// Which of all such intervals.
    pub kind: IntervalKind,
}

impl Default for Interval {
    fn default() -> Self {
        Self { mass: 0.9, kind: IntervalKind::Quantile }
    }
}

/// Which of all intervals with the same share of the posterior.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum IntervalKind {
    /// The one that leaves the same share on both sides
    Quantile,
    /// The shortest one (highest density)
    Hdi,
}

impl Interval {
    /// The usual one, except for what is given.
    pub fn chosen(mass: Option<f64>, kind: Option<IntervalKind>) -> Self {
        let usual = Self::default();
        Self { mass: mass.unwrap_or(usual.mass), kind: kind.unwrap_or(usual.kind) }
    }

    /// The ends of the interval of these sorted values.
    pub fn of(self, sorted: &[f64]) -> [f64; 2] {
        match self.kind {
            IntervalKind::Quantile => [quantile(sorted, 0.5 - 0.5 * self.mass), quantile(sorted, 0.5 + 0.5 * self.mass)],
            IntervalKind::Hdi => {
                let inside = ((self.mass * sorted.len() as f64).floor() as usize).clamp(1, sorted.len() - 1);
                let ends = (0..sorted.len() - inside).map(|first| [sorted[first], sorted[first + inside]]);
                ends.min_by(|a, b| (a[1] - a[0]).total_cmp(&(b[1] - b[0]))).unwrap_or([f64::NAN; 2])
            }
        }
    }

    /// The headings of its two columns.
    pub fn headings(self) -> [String; 2] {
        match self.kind {
            IntervalKind::Quantile => [50.0 - 50.0 * self.mass, 50.0 + 50.0 * self.mass].map(|share| {
                // Up to two decimals.
                format!("{} %", (100.0 * share).round() / 100.0)
            }),
            IntervalKind::Hdi => ["HDI from".into(), "to".into()],
        }
    }

    /// What it is, in a heading.
    pub(super) fn description(self) -> String {
        let kind = match self.kind {
            IntervalKind::Quantile => "interval",
            IntervalKind::Hdi => "highest-density interval",
        };
        format!("{} % {kind}", (1e4 * self.mass).round() / 100.0)
    }
}

/// What the parameters of a model mean.
struct Meaning {
    ratio: Option<&'static str>,
    /// Whether targets are standardized.
    has_target_units: bool,
}

fn meaning(model: &str) -> Option<Meaning> {
    let of = |ratio, has_target_units| Some(Meaning { ratio, has_target_units });
    match model {
        "linear" | "student_t" => of(None, true),
        "logistic" | "multinomial" | "ordinal" => of(Some("odds ratio"), false),
        "poisson" | "negative_binomial" => of(Some("rate ratio"), false),
        _ => None,
    }
}

/// Whether the parameters of a model are those of standardized columns, which have coefficients in the units of the data.
pub(super) fn is_standardized(model: &str) -> bool {
    meaning(model).is_some()
}

/// The draws of the posterior, part by part.
struct Draws<'a> {
    file: &'a ResultFile,
    parts: Vec<Part>,
    /// How many draws all chains have.
    common: usize,
}

impl Draws<'_> {
    /// The draws of a part as rows, if there is such a part.
    fn of(&self, name: &str) -> Result<Option<(&Part, Array2<f64>)>> {
        let Some(part) = self.parts.iter().find(|part| part.name == name) else { return Ok(None) };
        let values = self.file.part(POSTERIOR, part)?;
        let (chains, draws, size) = values.dim();
        let all = values.matrix();
        let rows = (0..chains).flat_map(|chain| (0..self.common.min(draws)).map(move |draw| chain * draws + draw));
        let mut kept = Array2::zeros((chains * self.common.min(draws), size));
        kept.rows_mut().into_iter().zip(rows).for_each(|(mut kept, row)| kept.assign(&all.row(row)));
        Ok(Some((part, kept)))
    }
}

/// Whether a run has parameters in the units of the data.
pub enum InDataUnits {
    /// These.
    Table(Coefficients),
    /// It is a regression, but they are not known, because of this.
    Unknown(String),
    /// It is no regression, or has no draws.
    Nothing,
}

impl Coefficients {
    /// Those of a result file.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn of(file: &ResultFile, options: &CoefficientOptions) -> Result<InDataUnits> {
        let Some(Meaning { ratio, has_target_units }) = meaning(&file.info().model) else { return Ok(InDataUnits::Nothing) };
        if !file.has_posterior()? {
            return Ok(InDataUnits::Nothing);
        }
        let (_, _, parts) = file.shape(POSTERIOR)?;
        let common = file.lengths(POSTERIOR)?.into_iter().min().unwrap_or(0);
        let kind = file.kind(POSTERIOR)?;
        let is_draws = matches!(kind, SampleKind::Chains | SampleKind::Particles);
        // The last axis of the weights is that of the features; a multinomial regression has one of classes before.
        let shape = parts.iter().find(|part| part.name == "weights").map_or(&[][..], |part| &part.shape);
        let (weights, features): (usize, usize) = (shape.iter().product(), shape.last().copied().unwrap_or(0));
        let Some(grid) = file.grid(PREPROCESSING)?.filter(|_| is_draws && common > 1 && weights > 0) else {
            return Ok(InDataUnits::Nothing);
        };
        if weights > MAX_WEIGHTS {
            let (weights, most) = (text::count(weights), text::count(MAX_WEIGHTS));
            return Ok(InDataUnits::Unknown(format!("the model has {weights} weights, more than {most}")));
        }
        let (scale, offset) = match kept_scaling(&grid) {
            Some((_, FeatureScaling::Dense { scale, offset, rotation: None })) => (scale, offset),
            Some((_, FeatureScaling::Dense { .. })) => {
                return Ok(InDataUnits::Unknown("principal components mix the columns".into()));
            }
            Some(_) => return Ok(InDataUnits::Unknown("the rows are sparse".into())),
            None => return Ok(InDataUnits::Nothing),
        };
        if scale.len() < features || offset.len() < features {
            return Ok(InDataUnits::Nothing);
        }
        let number = |name: &str| grid.array(name).and_then(|array| array.iter().next().copied());
        let target = match has_target_units {
            true => (number("target_scale").unwrap_or(1.0), number("target_offset").unwrap_or(0.0)),
            false => (1.0, 0.0),
        };
        let classes = grid.list("classes");
        let noise = if file.info().model == "student_t" { "scale of noise" } else { "sd of noise" };
        let group = kept_recipe(&grid)
            .ok()
            .flatten()
            .and_then(|recipe| Some(recipe.group()?.0.to_owned()))
            .unwrap_or_else(|| "group".into());
        let CoefficientOptions { interval, per, draws: keeps_draws, allows_other_columns } = options;
        let (interval, keeps_draws) = (*interval, *keeps_draws);
        let units = Units { scale: &scale[..features], offset: &offset[..features], target, classes, noise, group, per };
        let draws = Draws { file, parts, common };
        let chain_length = (kind == SampleKind::Chains).then_some(common);
        let mut rows = Table { interval, ratio: ratio.is_some(), chain_length, keeps_draws, rows: Vec::new() };
        if !allows_other_columns {
            units.check_per(&draws)?;
        }
        units.coefficients(&draws, &mut rows)?;
        units.scales_and_groups(&draws, &mut rows)?;
        let odds_of = match (file.info().model.as_str(), classes) {
            ("logistic", [other, class]) => Some(format!("{class} against {other}")),
            ("ordinal", _) => Some("a later class".into()),
            ("multinomial", [first, ..]) => Some(format!("the class of the term against {first}")),
            _ => None,
        };
        let chain_length = chain_length.unwrap_or(usize::MAX);
        let has_slopes = draws.parts.iter().any(|part| part.name == "log_group_scale" && part.size() > 1);
        Ok(InDataUnits::Table(Self { interval, ratio, odds_of, rows: rows.rows, has_slopes, chain_length }))
    }

    /// The effects of columns, and with `has_groups` those of groups, of runs with their names as a forest plot, or only these terms: `age`,
    /// `clinic[West]`, or `clinic` for all of its levels. All runs must have the same kind of ratio. `None` if there are no such effects.
    #[cfg(feature = "plots")]
    pub(super) fn forest(runs: &[(&str, &Self)], terms: &[String], has_groups: bool) -> Option<Figure> {
        let first = runs.first()?.1;
        let is_same_class = runs.iter().all(|(_, run)| run.odds_of == first.odds_of);
        let series = |&(name, run): &(&str, &Self)| {
            let label = match &run.odds_of {
                Some(class) if !is_same_class => format!("{name}: odds of {class}"),
                _ => name.to_owned(),
            };
            ForestSeries { label, rows: run.effects(terms, has_groups) }
        };
        let all: Vec<ForestSeries> = runs.iter().map(series).collect();
        let of = first.odds_of.as_ref().filter(|_| is_same_class).map_or_else(String::new, |class| format!(" of {class}"));
        let (title, label) = match first.ratio {
            Some(ratio) => {
                let title = ratio[..1].to_uppercase() + &ratio[1..] + "s";
                (title, format!("{ratio}{of}"))
            }
            None => ("Coefficients".to_owned(), "change of the target".into()),
        };
        forest(&title, &label, &first.interval.description(), first.ratio.is_some(), &all)
    }

    /// The effects of columns and groups as rows of a forest plot. Terms that are named may be groups in any case.
    #[cfg(feature = "plots")]
    pub(super) fn effects(&self, terms: &[String], has_groups: bool) -> Vec<ForestRow> {
        let is_chosen = |row: &&Coefficient| {
            let is_of = |term: &String| {
                let rest = row.name.strip_prefix(term.as_str());
                rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('[') || rest.starts_with(" (per "))
            };
            if terms.is_empty() { has_groups || !row.is_group } else { terms.iter().any(is_of) }
        };
        let row = |row: &Coefficient| {
            let shown = row.ratio.filter(|_| self.ratio.is_some()).unwrap_or([row.mean, row.interval[0], row.interval[1]]);
            let [center, low, high] = shown;
            ForestRow { name: row.name.clone(), center, interval: [low, high], numbers: text::with_interval(shown) }
        };
        self.rows.iter().filter(|row| row.is_effect).filter(is_chosen).map(row).collect()
    }

    /// The draws as CSV: the chain and the number of each draw, counted from 0, and a column for each row of the table.
    ///
    /// # Errors
    /// When they cannot be written.
    pub fn write_draws(&self, to: impl std::io::Write) -> csv::Result<()> {
        let mut writer = csv::Writer::from_writer(to);
        let head = ["chain", "draw"].map(str::to_owned);
        writer.write_record(head.iter().chain(self.rows.iter().map(|row| &row.name)))?;
        let count = self.rows.first().map_or(0, |row| row.draws.len());
        for place in 0..count {
            let at = [place / self.chain_length, place % self.chain_length].map(|number| number.to_string());
            writer.write_record(at.into_iter().chain(self.rows.iter().map(|row| row.draws[place].to_string())))?;
        }
        Ok(writer.flush()?)
    }

    /// The table with its heading.
    pub(super) fn text(&self, all: bool) -> String {
        let (mut shown, mut groups) = (Vec::new(), 0);
        for row in &self.rows {
            groups += usize::from(row.is_group);
            if all || !row.is_group || groups <= SHOWN_GROUPS {
                shown.push(row);
            }
        }
        let cells = |of: &dyn Fn(&Coefficient) -> f64| shown.iter().map(|row| text::value(of(row))).collect::<Vec<_>>();
        let [low, high] = self.interval.headings();
        let mut columns = vec![
            ("term".to_owned(), shown.iter().map(|row| row.name.clone()).collect()),
            ("mean".into(), cells(&|row| row.mean)),
            ("sd".into(), cells(&|row| row.sd)),
            (low.clone(), cells(&|row| row.interval[0])),
            (high.clone(), cells(&|row| row.interval[1])),
        ];
        let ratio = self.ratio.filter(|_| self.rows.iter().any(|row| row.ratio.is_some()));
        if let Some(ratio) = ratio {
            let cells = |place: usize| {
                shown.iter().map(|row| row.ratio.map(|ratio| text::value(ratio[place])).unwrap_or_default()).collect()
            };
            columns.extend([(ratio.to_owned(), cells(0)), (low, cells(1)), (high, cells(2))]);
        }
        let mut of_ess = "";
        if shown.iter().any(|row| row.convergence.is_some()) {
            let cells = |of: fn(&Convergence) -> f64, decimals: usize| {
                let cell = |row: &&Coefficient| match row.convergence.as_ref().map(of) {
                    Some(value) if !value.is_nan() => format!("{value:.decimals$}"),
                    _ => "-".into(),
                };
                shown.iter().map(cell).collect()
            };
            of_ess = "  ESS: the smaller effective sample size, of the mean and of the tails\n";
            columns.push(("ESS".into(), cells(|c| c.ess_bulk.min(c.ess_tail), 0)));
            columns.push(("R-hat".into(), cells(|c| c.r_hat, 3)));
        }
        let more = match self.rows.len() - shown.len() {
            0 => String::new(),
            more => format!("  {} of groups omitted: --all shows them, --json lists them\n", text::counted(more, "effect")),
        };
        let footnote = ratio.map_or_else(String::new, |ratio| format!("  {ratio}: median of e^coefficient\n"));
        let of =
            self.odds_of.as_ref().filter(|_| self.ratio.is_some()).map(|class| format!("; odds of {class}")).unwrap_or_default();
        let heading = format!("\nin the units of the data ({}{of})\n", self.interval.description());
        let of_slopes = match self.has_slopes {
            true => "  intercepts of groups, and their sd, are those where the columns with slopes are 0\n",
            false => "",
        };
        heading + &text::table(&columns) + &footnote + of_slopes + of_ess + &more
    }
}

/// The rows of a table.
struct Table {
    interval: Interval,
    ratio: bool,
    /// How many consecutive draws are of one chain, if there are chains.
    chain_length: Option<usize>,
    keeps_draws: bool,
    rows: Vec<Coefficient>,
}

impl Table {
    /// Adds a parameter with these draws. For effects of columns and groups, e to their power may be a ratio.
    fn push(&mut self, name: String, draws: ArrayView1<f64>, is_effect: bool, is_group: bool) {
        let mut sorted = draws.to_vec();
        sorted.sort_by(f64::total_cmp);
        let interval = self.interval.of(&sorted);
        let ratio = (self.ratio && is_effect).then(|| {
            let ratios: Vec<f64> = sorted.iter().map(|value| value.exp()).collect();
            // The shortest interval of ratios would be another one than that of the effect, and could exclude 1 where that one contains 0.
            let [low, high] = match self.interval.kind {
                IntervalKind::Quantile => self.interval.of(&ratios),
                IntervalKind::Hdi => interval.map(f64::exp),
            };
            [quantile(&ratios, 0.5), low, high]
        });
        let (mean, sd) = (draws.mean().unwrap_or(f64::NAN), draws.std(1.0));
        let by_chain = |length: usize| draws.to_shape((draws.len() / length, length)).ok().map(|draws| convergence(draws.view()));
        let convergence = self.chain_length.and_then(by_chain);
        let draws = if self.keeps_draws { draws.to_vec() } else { Vec::new() };
        self.rows.push(Coefficient { name, mean, sd, interval, ratio, convergence, draws, is_group, is_effect });
    }
}

/// How the columns and targets of the data were standardized.
struct Units<'a> {
    scale: &'a [f64],
    offset: &'a [f64],
    /// Scale and offset of the targets.
    target: (f64, f64),
    /// The names of the classes.
    classes: &'a [String],
    /// What the noise is called.
    noise: &'static str,
    /// The name of the column of groups.
    group: String,
    /// The units of columns, where they are not those of the data.
    per: &'a [Per],
}

impl Units<'_> {
    /// Checks that there are these columns.
    fn check_per(&self, draws: &Draws) -> Result<()> {
        let weights = draws.parts.iter().find(|part| part.name == "weights");
        let columns = weights.and_then(|part| part.labels.last()).map_or(&[][..], Vec::as_slice);
        match self.per.iter().find(|per| !columns.contains(&per.column)) {
            None => Ok(()),
            Some(_) if columns.is_empty() => Err(ReportError::Missing("--per: the columns of these data have no names".into())),
            Some(Per { column, .. }) => {
                let there = columns.join(", ");
                Err(ReportError::Missing(format!("--per {column}: there is no such column; there are {there}")))
            }
        }
    }

    /// The units of a column for which its coefficients are given, and how the names of these end.
    fn units(&self, column: &str) -> (f64, String) {
        let per = self.per.iter().find(|per| per.column == column);
        per.map_or_else(|| (1.0, String::new()), |per| (per.units, format!(" (per {})", per.units)))
    }

    /// The coefficients, the intercept or the cutpoints.
    fn coefficients(&self, draws: &Draws, table: &mut Table) -> Result<()> {
        let Some((part, weights)) = draws.of("weights")? else { return Ok(()) };
        let (scale, offset) = self.target;
        let (means, features) = (Array1::from(self.offset.to_vec()), self.offset.len());
        let (intercepts, cutpoints) = (draws.of("intercept")?, draws.of("first_cutpoint")?);
        // A multinomial regression has weights and an intercept for each class but the first one.
        let has_classes = part.shape.len() > 1;
        for class in 0..weights.ncols() / features {
            let term = |what: &str| match self.classes.get(class + 1) {
                _ if !has_classes => what.to_owned(),
                Some(name) => format!("{name}: {what}"),
                None => format!("{class}: {what}"),
            };
            let own = weights.slice(s![.., class * features..(class + 1) * features]);
            // What the means of columns contribute to the intercept.
            let moved: Array1<f64> = own.dot(&means);
            match &cutpoints {
                Some((_, first)) => self.cutpoints(draws, &first.column(0) - &moved, table)?,
                None => {
                    // Without an intercept, the linear predictor is 0 where all scaled features are 0.
                    let none = || Array1::zeros(moved.len());
                    let own = intercepts.as_ref().map_or_else(none, |(_, all)| all.column(class).to_owned());
                    table.push(term("intercept"), ((own + &moved - offset) / scale).view(), false, false);
                }
            }
            for (feature, (draws, own)) in own.columns().into_iter().zip(self.scale).enumerate() {
                let name = part.labels.last().and_then(|names| names.get(feature)).cloned();
                let name = name.unwrap_or_else(|| format!("weights[{feature}]"));
                let (units, suffix) = self.units(&name);
                table.push(term(&(name + &suffix)), (&draws * (units * own / scale)).view(), true, false);
            }
        }
        Ok(())
    }

    /// The cutpoints, of which the first has these draws.
    fn cutpoints(&self, draws: &Draws, mut cutpoint: Array1<f64>, table: &mut Table) -> Result<()> {
        let Some((_, gaps)) = draws.of("log_gaps")? else { return Ok(()) };
        let name = |k: usize| match self.classes.get(k..k + 2) {
            Some([low, high]) => format!("cutpoint[{low} | {high}]"),
            _ => format!("cutpoint[{k}]"),
        };
        table.push(name(0), cutpoint.view(), false, false);
        for (k, gap) in (1..).zip(gaps.columns()) {
            cutpoint += &gap.mapv(f64::exp);
            table.push(name(k), cutpoint.view(), false, false);
        }
        Ok(())
    }

    /// The noise, the dispersion, and the groups with their standard deviations.
    fn scales_and_groups(&self, draws: &Draws, table: &mut Table) -> Result<()> {
        let scale = self.target.0;
        if let Some((_, noise)) = draws.of("log_noise")? {
            table.push(self.noise.into(), (noise.column(0).mapv(f64::exp) / scale).view(), false, false);
        }
        if let Some((_, dispersion)) = draws.of("log_dispersion")? {
            table.push("dispersion".into(), dispersion.column(0).mapv(f64::exp).view(), false, false);
        }
        let (Some((part, logs)), Some((effects, standardized))) =
            (draws.of("log_group_scale")?, draws.of("standardized_group_effects")?)
        else {
            return Ok(());
        };
        let width = logs.ncols();
        let kind = |k: usize| part.labels.first().and_then(|kinds| kinds.get(k)).cloned();
        let weights = draws.parts.iter().find(|part| part.name == "weights");
        // The feature of a slope.
        let feature = |k: usize| {
            let name = kind(k).filter(|_| k > 0)?;
            weights?.labels.first()?.iter().position(|other| *other == name)
        };
        // The units of a slope, and how its name ends.
        let units = |k: usize| kind(k).filter(|_| k > 0).map_or_else(|| (1.0, String::new()), |name| self.units(&name));
        let unit = |k: usize| units(k).0 * feature(k).map_or(1.0, |place| self.scale[place]) / scale;
        // The part of an intercept at 0 that comes from the slope of a standardized column.
        let moved = |k: usize| feature(k).map_or(0.0, |place| self.offset[place]) / scale;
        let scales = logs.mapv(f64::exp);
        for k in 0..width {
            let name = kind(k).map_or_else(|| format!("sd of {}", self.group), |kind| format!("sd of {}: {kind}", self.group));
            let own = match k {
                0 => {
                    let squares = |j: usize| scales.column(j).mapv(|scale| scale * scale);
                    let others = (1..width).map(|j| squares(j) * moved(j).powi(2));
                    others.fold(squares(0) / (scale * scale), |sum, other| sum + other).mapv(f64::sqrt)
                }
                _ => &scales.column(k) * unit(k),
            };
            table.push(name + &units(k).1, own.view(), false, false);
        }
        for place in 0..standardized.ncols() {
            let k = place % width;
            let deviation = |j: usize| &standardized.column(place - k + j) * &scales.column(j);
            let own = match k {
                0 => (1..width).map(|j| deviation(j) * moved(j)).fold(deviation(0) / scale, |sum, other| sum + other),
                _ => deviation(k) * unit(k),
            };
            let name = effects.element_name(place).replacen(&effects.name, &self.group, 1);
            table.push(name + &units(k).1, own.view(), k == 0, true);
        }
        Ok(())
    }
}
