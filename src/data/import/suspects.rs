//! Columns of a table that are probably not what they are taken for: row numbers, codes of levels, constants, counts, many numeric
//! classes and marks of missing values; and levels that are rare or spelled in two ways.

use crate::data::dataset::layout::Task;
use crate::data::import::recipe::{ColumnUse, Recipe, UsedColumn};
use std::collections::BTreeMap;

/// Fewer rows say nothing about a column.
const MIN_ROWS: u64 = 30;
/// Levels with fewer rows say little beside the prior.
const FEW_ROWS: u64 = 10;
/// This many rare levels are named.
const MAX_LISTED: usize = 5;
/// A column of at most this many different whole numbers may hold codes.
const MAX_CODES: usize = 9;
/// Larger whole numbers than this are rarely counts.
const MAX_PLAUSIBLE_COUNT: f64 = 1000.0;
/// If there are more classes than this, and all are whole numbers, they may be counts or amounts.
const MAX_NUMERIC_CLASSES: usize = 10;
/// Programs write these numbers for missing values.
const MISSING_MARKS: [f64; 4] = [-9.0, -99.0, -999.0, -9999.0];

/// What is known of the columns of the training rows.
pub(crate) struct Suspects {
    task: Task,
    columns: Vec<Values>,
    target: Values,
    /// A label that is a number with decimals; none if a label is no number.
    decimal_label: Option<f64>,
    /// Whether a label is no number.
    has_text_label: bool,
}

/// What is known of the values of a column.
#[derive(Clone)]
struct Values {
    rows: u64,
    first: Option<f64>,
    last: f64,
    is_constant: bool,
    is_whole: bool,
    is_increasing: bool,
    largest: f64,
    /// The first few different values: at most one more than [`MAX_NUMERIC_CLASSES`].
    different: Vec<f64>,
    negative: Negative,
}

/// The negative values of a column.
#[derive(Clone, Copy, Default, PartialEq)]
enum Negative {
    #[default]
    None,
    /// All of them are this one, in this many rows.
    One(f64, u64),
    Several,
}

impl Negative {
    /// With another negative value.
    fn with(self, value: f64) -> Self {
        match self {
            Self::None => Self::One(value, 1),
            Self::One(known, rows) if known == value => Self::One(known, rows + 1),
            Self::One(..) | Self::Several => Self::Several,
        }
    }
}

impl Default for Values {
    fn default() -> Self {
        let (last, largest) = (f64::NEG_INFINITY, f64::NEG_INFINITY);
        Self {
            rows: 0,
            first: None,
            last,
            is_constant: true,
            is_whole: true,
            is_increasing: true,
            largest,
            different: Vec::new(),
            negative: Negative::None,
        }
    }
}

impl Values {
    fn add(&mut self, value: f64) {
        if value < 0.0 {
            self.negative = self.negative.with(value);
        }
        if value.is_nan() {
            return;
        }
        self.is_constant &= value == *self.first.get_or_insert(value);
        if !self.is_whole {
            return;
        }
        self.rows += 1;
        self.is_whole = value.fract() == 0.0;
        self.is_increasing &= value > self.last;
        self.last = value;
        self.largest = self.largest.max(value);
        if self.different.len() <= MAX_NUMERIC_CLASSES && !self.different.contains(&value) {
            self.different.push(value);
        }
    }

    /// Whole numbers in enough rows.
    fn are_whole(&self) -> bool {
        self.is_whole && self.rows >= MIN_ROWS
    }
}

impl Suspects {
    pub(crate) fn new(task: Task, columns: usize) -> Self {
        Self {
            task,
            columns: vec![Values::default(); columns],
            target: Values::default(),
            decimal_label: None,
            has_text_label: false,
        }
    }

    /// Adds a training row.
    pub(crate) fn add(&mut self, values: &[f64], label: &str) {
        self.columns.iter_mut().zip(values).for_each(|(column, &value)| column.add(value));
        let is_looked_at = self.target.is_whole || self.target.is_constant || self.task == Task::Classification;
        if self.has_text_label || !is_looked_at {
            return;
        }
        match label.parse::<f64>().ok().filter(|number| number.is_finite()) {
            Some(number) => {
                if number.fract() != 0.0 {
                    self.decimal_label.get_or_insert(number);
                }
                self.target.add(number);
            }
            None => {
                (self.has_text_label, self.decimal_label) = (true, None);
                self.target.is_whole = false;
            }
        }
    }

    /// What is suspicious, each in a sentence with what to do. `options` are the columns as a user writes them in options such as --drop.
    pub(crate) fn warnings(&self, recipe: &Recipe, options: &[String]) -> Vec<String> {
        let is_number =
            |r#use: &ColumnUse| matches!(r#use, ColumnUse::Number | ColumnUse::Filled(_) | ColumnUse::FilledAndFlagged(_));
        let columns = recipe.columns.iter().zip(&self.columns).zip(options).filter(|((column, _), _)| is_number(&column.r#use));
        let mut warnings: Vec<String> = constant_columns(columns.clone()).into_iter().collect();
        warnings.extend(columns.filter_map(|((column, values), option)| suspicion(&column.name, option, values)));
        warnings.extend(recipe.columns.iter().filter_map(alike_levels));
        if let (Task::Classification, Some(label)) = (self.task, self.decimal_label) {
            warnings.push(format!(
                "labels are numbers with decimals, such as {label}: if they are amounts, --task regression; if they are not the labels, name \
                 the column of labels with --label"
            ));
        }
        if self.task != Task::Classification && !self.has_text_label && self.target.is_constant && self.target.first.is_some() {
            warnings.push(
                "the target is the same in all training rows: if this is a mistake, name another column with --label".into(),
            );
        }
        let Values { different, largest, .. } = &self.target;
        if self.target.are_whole() {
            let count = different.len();
            match self.task {
                Task::Regression if self.target.negative == Negative::None && count > 2 && *largest < MAX_PLAUSIBLE_COUNT => {
                    warnings.push("the targets are whole numbers from 0 on: if they are counts, --task counts".into());
                }
                Task::Classification if count > MAX_NUMERIC_CLASSES => warnings.push(format!(
                    "the classes are more than {MAX_NUMERIC_CLASSES} whole numbers: if they are amounts, --task regression; if counts, --task counts"
                )),
                _ => {}
            }
        }
        warnings
    }
}

/// How many training rows have each level of the categorical columns.
pub(crate) struct LevelCounts {
    columns: Vec<ColumnLevels>,
    rows: u64,
}

/// How many training rows have each level of a column.
struct ColumnLevels {
    /// The names of the levels, of which the first is the reference.
    names: Vec<String>,
    /// The index in the features of the indicator of the second level. Those of the others follow.
    first_indicator: usize,
    /// How many rows have each level but the first.
    rows: Vec<u64>,
}

impl LevelCounts {
    /// For features of these names.
    pub(crate) fn new(recipe: &Recipe, features: &[String]) -> Self {
        let levels = |column: &UsedColumn| {
            let ColumnUse::Indicators(levels) = &column.r#use else { return None };
            let names: Vec<String> = levels.iter().map(|level| format!("{}[{level}]", column.name)).collect();
            let first_indicator =
                names.get(1).and_then(|name| features.iter().position(|feature| feature == name)).unwrap_or(features.len());
            let rows = vec![0; names.len().saturating_sub(1)];
            Some(ColumnLevels { names, first_indicator, rows })
        };
        Self { columns: recipe.columns.iter().filter_map(levels).collect(), rows: 0 }
    }

    /// Adds the features of a training row.
    pub(crate) fn add(&mut self, features: &[f64]) {
        self.rows += 1;
        for ColumnLevels { first_indicator, rows, .. } in &mut self.columns {
            rows.iter_mut().zip(&features[*first_indicator..]).for_each(|(rows, value)| *rows += u64::from(*value != 0.0));
        }
    }

    /// A sentence about levels that few rows have.
    pub(crate) fn warning(&self) -> Option<String> {
        let mut rare = Vec::new();
        for ColumnLevels { names, rows, .. } in &self.columns {
            // A row has one level.
            let of_reference = self.rows - rows.iter().sum::<u64>();
            let notes = std::iter::once(", the reference level: choose another with --reference").chain(std::iter::repeat(""));
            for ((name, rows), note) in names.iter().zip(std::iter::once(&of_reference).chain(rows)).zip(notes) {
                if *rows < FEW_ROWS && self.rows >= MIN_ROWS {
                    rare.push(format!("{name} ({}{note})", counted_rows(*rows)));
                }
            }
        }
        let others = rare.len().saturating_sub(MAX_LISTED);
        rare.truncate(MAX_LISTED);
        if others > 0 {
            rare.push(format!("{others} more"));
        }
        (!rare.is_empty()).then(|| {
            format!(
                "few training rows have {}: the coefficients of these levels depend mostly on the prior: merge levels, or try other priors in the units of the \
                 data (model.prior_units = \"original\")",
                rare.join(", ")
            )
        })
    }
}

fn counted_rows(rows: u64) -> String {
    if rows == 1 { "1 row".to_owned() } else { format!("{rows} rows") }
}

/// Classes that differ only in case or blanks.
pub(crate) fn alike_classes(classes: &[String]) -> Option<String> {
    alike("the label", classes)
}

/// Levels of a column that differ only in case or blanks.
fn alike_levels(column: &UsedColumn) -> Option<String> {
    let (ColumnUse::Indicators(levels) | ColumnUse::Group(levels)) = &column.r#use else { return None };
    alike(&column.name, levels)
}

fn alike(name: &str, levels: &[String]) -> Option<String> {
    let mut known: BTreeMap<String, &String> = BTreeMap::new();
    levels.iter().find_map(|level| {
        let plain = level.to_lowercase().split_whitespace().collect::<Vec<_>>().join(" ");
        let other = known.insert(plain, level)?;
        Some(format!(
            "{name} has {other:?} and {level:?}, which differ only in case or blanks: if they are one level, write them alike"
        ))
    })
}

/// A sentence about columns of numbers that are the same in all rows.
fn constant_columns<'a>(columns: impl Iterator<Item = ((&'a UsedColumn, &'a Values), &'a String)>) -> Option<String> {
    let constants: Vec<(&str, f64, &str)> = columns
        .filter(|((_, values), _)| values.is_constant)
        .filter_map(|((column, values), option)| Some((column.name.as_str(), values.first?, option.as_str())))
        .collect();
    let ((name, value, option), others) = constants.split_first()?;
    Some(match others.len() {
        0 => format!(
            "{name} is {value} in all training rows, so that its coefficient cannot be told from the intercept: --drop {option}"
        ),
        more => format!(
            "{name} and {more} other {} the same in all training rows, so that their coefficients cannot be told from the intercept: leave \
             such columns out (--drop {option})",
            if more == 1 { "column are" } else { "columns are" }
        ),
    })
}

/// What is suspicious about a column of numbers.
fn suspicion(name: &str, option: &str, values: &Values) -> Option<String> {
    if let Negative::One(mark, rows) = values.negative
        && MISSING_MARKS.contains(&mark)
    {
        let rows = counted_rows(rows);
        return Some(format!(
            "{name} is {mark} in {rows} and has no other negative value: if it stands for a missing value, --na={mark}"
        ));
    }
    let codes = values.different.len();
    if !values.are_whole() {
        return None;
    }
    if values.is_increasing {
        return Some(format!("{name} grows from row to row: if it is a row number or an id, --drop {option}"));
    }
    (3..=MAX_CODES).contains(&codes).then(|| {
        let mut different = values.different.clone();
        different.sort_by(f64::total_cmp);
        let listed = different.iter().map(f64::to_string).collect::<Vec<_>>().join(", ");
        format!("{name} has no other values than {listed}: if they are codes, --categorical {option}")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_that_differ_only_in_case_or_blanks_are_noticed() {
        let column = |levels: &[&str]| UsedColumn {
            name: "sex".into(),
            r#use: ColumnUse::Indicators(levels.iter().map(|&level| level.to_owned()).collect()),
        };
        let found = alike_levels(&column(&["F", "d", "f"])).unwrap_or_default();
        assert!(found.contains("sex has \"F\" and \"f\", which differ only in case"), "{found}");
        assert!(alike_levels(&column(&["a b", "a  b "])).is_some());
        // The control.
        assert_eq!(alike_levels(&column(&["f", "m", "fm"])), None);
    }

    #[test]
    fn levels_with_few_rows_are_noticed() {
        let levels = ["none", "public", "Other"].map(str::to_owned).to_vec();
        let column = UsedColumn { name: "insurance".into(), r#use: ColumnUse::Indicators(levels) };
        let recipe = Recipe { columns: vec![column], ..Recipe::default() };
        let names = recipe.names();
        let warning = |rare: usize| {
            let mut counts = LevelCounts::new(&recipe, &names);
            (0..100).for_each(|row| counts.add(&[f64::from(u8::from(row > 50)), f64::from(u8::from(row < rare))]));
            counts.warning()
        };
        let found = warning(3).unwrap_or_default();
        assert!(found.starts_with("few training rows have insurance[Other] (3 rows): "), "{found}");
        assert_eq!(warning(10), None);
        let mut counts = LevelCounts::new(&recipe, &names);
        (0..100).for_each(|row| counts.add(&[f64::from(u8::from(row > 4)), 0.0]));
        let found = counts.warning().unwrap_or_default();
        assert!(found.contains("insurance[none] (5 rows, the reference level: choose another with --reference)"), "{found}");
        assert!(alike_classes(&["No", "Yes", "no"].map(str::to_owned)).is_some_and(|found| found.starts_with("the label has")));
    }

    fn warnings(task: Task, columns: &[fn(u64) -> f64], label: impl Fn(u64) -> String) -> Vec<String> {
        let mut suspects = Suspects::new(task, columns.len());
        for row in 0..100 {
            suspects.add(&columns.iter().map(|column| column(row)).collect::<Vec<_>>(), &label(row));
        }
        let used = |place| UsedColumn { name: format!("c{place}"), r#use: ColumnUse::Filled(0.0) };
        let options: Vec<String> = (0..columns.len()).map(|place| format!("c{place}")).collect();
        suspects.warnings(&Recipe { columns: (0..columns.len()).map(used).collect(), ..Recipe::default() }, &options)
    }

    #[test]
    fn ids_codes_and_counts_are_suspicious_and_other_numbers_are_not() {
        let columns: [fn(u64) -> f64; 6] = [
            |row| if row == 50 { f64::NAN } else { (7 * row) as f64 },
            |row| (row % 4 + 1) as f64,
            |row| (row % 2) as f64,
            |row| (row * 37 % 101) as f64,
            |row| row as f64 / 8.0,
            |row| if row % 40 == 7 { -999.0 } else { row as f64 / 8.0 },
        ];
        let found = warnings(Task::Regression, &columns, |row| (row % 5).to_string());
        assert_eq!(found.len(), 4, "{found:?}");
        assert!(found[0].contains("c0 grows") && found[0].contains("--drop c0"), "{found:?}");
        assert!(found[1].contains("1, 2, 3, 4") && found[1].contains("--categorical c1"), "{found:?}");
        assert!(found[2].contains("c5 is -999 in 3 rows") && found[2].contains("--na=-999"), "{found:?}");
        assert!(found[3].contains("--task counts"), "{found:?}");
        let constants: [fn(u64) -> f64; 3] = [|_| 5.5, |row| if row == 3 { f64::NAN } else { 2.0 }, |row| row as f64 / 8.0];
        let found = warnings(Task::Regression, &constants, |row| (row as f64 / 3.0).to_string());
        assert!(found.len() == 1 && found[0].starts_with("c0 and 1 other column are the same"), "{found:?}");
        let found = warnings(Task::Regression, &constants[1..], |row| (row as f64 / 3.0).to_string());
        assert!(found.len() == 1 && found[0].starts_with("c0 is 2 in all training rows"), "{found:?}");
        let found = warnings(Task::Classification, &columns[4..5], |row| (row as f64 / 8.0).to_string());
        assert!(found.len() == 1 && found[0].contains("decimals, such as 0.125"), "{found:?}");
        // Wherever the text stands, the labels are no amounts.
        for text in [0, 50] {
            let label = |row| if row == text { "high".to_owned() } else { (row as f64 / 8.0).to_string() };
            assert!(warnings(Task::Classification, &columns[4..5], label).is_empty());
        }
        // Targets that are all the same, and some that only begin alike or with decimals.
        let found = warnings(Task::Regression, &columns[4..5], |_| "2.5".to_owned());
        assert!(found.len() == 1 && found[0].contains("the target is the same in all training rows"), "{found:?}");
        for label in
            [|row: u64| (row as f64 + 1.5).to_string(), |row: u64| if row < 90 { "2.5".to_owned() } else { "3".to_owned() }]
        {
            assert!(warnings(Task::Regression, &columns[4..5], label).is_empty());
        }
        // A negative target after many others.
        let found =
            warnings(Task::Regression, &columns[4..5], |row| if row == 90 { "-5".to_owned() } else { (row % 21).to_string() });
        assert!(found.is_empty(), "{found:?}");
        let columns = &columns[2..5];
        let found = warnings(Task::Classification, columns, |row| (row * 3 % 50).to_string());
        assert!(found.len() == 1 && found[0].contains("--task regression"), "{found:?}");
        assert!(warnings(Task::Classification, columns, |row| (row % 3).to_string()).is_empty());
        assert!(warnings(Task::Classification, &columns[2..], |row| format!("a{row}")).is_empty());
        assert!(warnings(Task::Regression, &columns[2..], |row| (row as f64 / 3.0).to_string()).is_empty());
    }
}
