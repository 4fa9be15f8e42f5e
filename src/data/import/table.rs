//! Imports tables row by row.

use crate::data::dataset::layout::Split;
use crate::data::dataset::layout::Task;
use crate::data::dataset::scaling::Scaling;
use crate::data::dataset::write::{Description, Writer};
use crate::data::error::{DataError, Place, Result, listed};
use crate::data::import::recipe::{ColumnUse, MISSING_LEVEL, Recipe, UnusableValue, UsedColumn};
use crate::data::import::suspects::{LevelCounts, Suspects, alike_classes};
use crate::data::import::targets::TargetCollector;
use crate::data::import::test_rows::{RowSplitter, TestRows};
use crate::data::readers::cells::is_missing;
use crate::data::readers::columns::{Column, Header, TableLayout};
use crate::data::readers::levels::Levels;
use crate::data::readers::source::file_name;
use crate::data::readers::table::{Row, Table, Unread};
use std::cell::Cell;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::{Path, PathBuf};

/// What to import from a table, and how.
#[derive(Clone, Debug)]
pub struct TableImport {
    /// The files, one after the other: texts, plain or gzip, Parquet or Arrow.
    pub train: Vec<PathBuf>,
    /// The test rows.
    pub test: TestRows,
    /// What the label column contains.
    pub task: Task,
    /// The layout of the file, and of the file of test rows.
    pub layout: TableLayout,
    /// Columns that are more than a number, and missing values.
    pub columns: ColumnOptions,
    /// The scaling of features.
    pub scaling: Scaling,
}

/// The order of classes, which columns are more than a number, and what becomes of missing values.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ColumnOptions {
    /// All labels in their order, for classes; empty to sort them.
    pub classes: Vec<String>,
    /// Columns of texts or codes, which become indicators.
    pub categorical: Vec<Column>,
    /// Which value of such a column the others are compared with; else its first one.
    pub references: Vec<(Column, String)>,
    /// The column of groups, for effects of groups.
    pub group: Option<Column>,
    /// A column of numbers that are added to linear predictors.
    pub offset: Option<Column>,
    /// A column of numbers whose logarithms are added to linear predictors.
    pub exposure: Option<Column>,
    /// A column of numbers that say how often each row counts.
    pub weight: Option<Column>,
    /// What becomes of rows with missing values.
    pub missing: Missing,
    /// Further texts that stand for a missing value.
    pub na: Vec<String>,
}

/// A column with more texts than this, and than half of the rows, names rows rather than kinds of rows.
const MAX_INDICATORS: usize = 50;

/// This many columns of texts are named.
const MAX_TEXTS: usize = 12;
/// In this many rows texts are looked for.
const ROWS_FOR_TEXTS: u64 = 1000;

/// What becomes of rows with missing values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Missing {
    /// They are an error.
    #[default]
    Refuse,
    /// They are left out.
    Drop,
    /// A missing number becomes the mean of the training rows, and a feature says that it was missing; a missing text of a column of
    /// indicators becomes a level of its own. Rows that lack another value are left out.
    MeanAndFlag,
}

/// What a first pass over the rows has found.
struct Survey {
    recipe: Recipe,
    /// For each feature, which of the columns of texts it is, if it is one.
    texts: Vec<Option<usize>>,
    /// How a user names each feature in options.
    options: Vec<String>,
    /// For each column of texts.
    levels: Vec<SortedLevels>,
}

/// The texts of a column.
struct SortedLevels {
    /// All of them, as they were numbered.
    levels: Levels,
    /// The place of each among those of training rows in their order; none for those that only test rows have.
    places: Vec<Option<usize>>,
    /// Those of training rows in their order.
    names: Vec<String>,
}

impl SortedLevels {
    /// The place of the text with this number, after the last one if training rows do not have it.
    fn place(&self, code: usize) -> usize {
        self.places.get(code).copied().flatten().unwrap_or(self.names.len())
    }

    /// Adds the level of rows that lack a text.
    fn add_missing(&mut self) {
        if !self.names.iter().any(|name| name == MISSING_LEVEL) {
            self.names.push(MISSING_LEVEL.to_owned());
        }
    }
}

/// Imports tables into the dataset `output`. Returns what is suspicious about columns, each in a sentence.
///
/// Features and regression targets are stored in double precision, regardless of the precision of runs. It preserves decimal numbers of up
/// to 15 digits, while scaling a large column in single precision would lose digits.
///
/// # Errors
/// If a file cannot be read, has no rows, lines of different length, a feature that is not a finite number,
/// a test label that does not occur in the training rows, or does not have the requested test rows. No partial output remains.
pub fn import_table(import: &TableImport, output: &Path) -> Result<Vec<String>> {
    let path = import.train.first().ok_or_else(|| DataError::Request("name the table to import".into()))?;
    let layout = import.layout()?;
    if !import.columns.classes.is_empty() && import.task != Task::Classification {
        return Err(DataError::Request("an order of classes is for classifications: this is none".into()));
    }
    if import.columns.exposure.is_some() && import.task == Task::Classification {
        return Err(DataError::Request("an exposure is for counts: add --task counts".into()));
    }
    for other in import.train.iter().skip(1) {
        has_same_header(other, path, &layout)?;
    }
    let has_header = match &import.test {
        TestRows::File(test) => has_same_header(test, path, &layout)?,
        TestRows::None | TestRows::Fraction(..) | TestRows::Rows { .. } => true,
    };
    let count = || import.train.iter().map(|path| Table::open(path, &layout)?.count()).sum();
    let mut splitter = RowSplitter::new(&import.test, path, count)?;
    let Survey { recipe, texts, options, levels } = import.survey(&layout, splitter.clone())?;
    if recipe.extra().count() > 0 && import.scaling == Scaling::Principal {
        return Err(DataError::Request(
            "principal components mix all columns: offsets, weights and groups need another scaling".into(),
        ));
    }
    let known = || levels.iter().map(|sorted| sorted.levels.clone()).collect();
    let names = recipe.names();
    if names.len() == recipe.extra().count() {
        return Err(DataError::Request("no feature remains: give at least one column beside the label".into()));
    }
    let mut seen = HashSet::new();
    if let Some(name) = names.iter().find(|name| !seen.insert(*name)) {
        let what = format!("two features would be called {name:?}: rename a column, or leave it out with --drop");
        return Err(DataError::content(path, Place::File, what));
    }
    let mut writer = Writer::new(output, &[names.len()], import.scaling)?;
    let mut targets = TargetCollector::new(import.task).in_order(&import.columns.classes);
    let mut suspects = Suspects::new(import.task, texts.len());
    let mut level_counts = LevelCounts::new(&recipe, &names);
    let (mut rows, mut values, mut used, left_out) = (0, Vec::new(), Vec::new(), Cell::new(0));
    let is_left_out = |label: &str| {
        let is_left_out = import.columns.missing != Missing::Refuse && is_missing(label.as_bytes());
        left_out.set(left_out.get() + usize::from(is_left_out));
        is_left_out
    };
    // Test rows that are left out, by the column that has a value that no training row has.
    let mut unknown: BTreeMap<String, usize> = BTreeMap::new();
    let of_new_groups = Cell::new(0);
    // Whether the row is used; then `used` holds it.
    let mut convert = |split: Split, features: &[f64], used: &mut Vec<f64>| -> std::result::Result<bool, String> {
        values.clear();
        values.extend(features.iter().zip(&texts).map(|(&value, text)| match text {
            // Codes are whole numbers. A text that the first pass has not seen is in a file that has changed meanwhile.
            Some(index) if !value.is_nan() => levels[*index].place(value as usize) as f64,
            _ => value,
        }));
        match recipe.apply(&values, used) {
            Err(UnusableValue::Missing { .. }) if import.columns.missing != Missing::Refuse => {
                left_out.set(left_out.get() + 1);
                Ok(false)
            }
            Err(UnusableValue::UnknownLevel { column, .. }) if split == Split::Test => {
                *unknown.entry(column.to_owned()).or_default() += 1;
                Ok(false)
            }
            Err(what) => Err(what.to_string()),
            Ok(()) => {
                let is_of_new_group = split == Split::Test && recipe.has_new_group(&values);
                of_new_groups.set(of_new_groups.get() + usize::from(is_of_new_group));
                Ok(true)
            }
        }
    };
    import.each_row(&layout, known(), |path, row| {
        let split = splitter.split(row.index);
        rows = row.index + 1;
        if !is_left_out(row.label)
            && convert(split, row.features, &mut used).map_err(|what| DataError::content(path, row.place, what))?
        {
            targets.add_table_label(split, row.label, path, row.place)?;
            writer.push(split, &used)?;
            if split == Split::Train {
                suspects.add(row.features, row.label);
                level_counts.add(&used);
            }
        }
        Ok(())
    })?;
    splitter.finish(rows, &import.train)?;
    targets.check(&splitter, path)?;
    let mut source = import.train.iter().map(|path| file_name(path)).collect::<Vec<_>>().join(", ") + &splitter.source;
    if let TestRows::File(test_path) = &import.test {
        let mut test = Table::open(test_path, &layout)?.with_levels(known());
        test.check_columns_match(&Table::open(path, &layout)?)?;
        let path = test_path;
        test.rows(|row| {
            let place = row.place;
            if !is_left_out(row.label)
                && convert(Split::Test, row.features, &mut used).map_err(|what| DataError::content(path, place, what))?
            {
                targets.add_test_table_label(row.label, path, place)?;
                writer.push(Split::Test, &used)?;
            }
            Ok(())
        })?;
        source.push_str(&format!(", {}", file_name(path)));
    }
    let (classes, train, test) = targets.finish(path)?;
    if train.len() == 0 {
        return Err(DataError::content(path, Place::File, "every training row lacks a value: no row remains"));
    }
    let (shape, mut warnings) = (vec![names.len()], suspects.warnings(&recipe, &options));
    warnings.extend(level_counts.warning());
    warnings.extend(alike_classes(&classes));
    let rows_are = |rows: usize| if rows == 1 { "row is" } else { "rows are" };
    warnings.extend(unknown.iter().map(|(name, &rows)| {
        format!("{rows} test {} left out, because {name:?} has a value there that no training row has", rows_are(rows))
    }));
    if of_new_groups.get() > 0 {
        let rows = of_new_groups.get();
        let group = recipe.group().map_or("", |(name, _)| name);
        warnings.push(format!(
            "{rows} test {} of groups without training rows: predictions take {} for members of new groups. If this is not meant, compare \
             how the files write {group:?}",
            rows_are(rows),
            if rows == 1 { "it" } else { "them" },
        ));
    }
    if let (TestRows::File(test), false) = (&import.test, has_header) {
        warnings.push(format!("{} has no header: its columns are taken in the order of {}", test.display(), path.display()));
    }
    let recipe = Recipe { left_out: left_out.get(), ..recipe };
    let recipe = (!recipe.is_plain()).then_some(recipe);
    let description = Description { task: import.task, source, features: Some(names), shape, classes, recipe };
    writer.finish(&description, train, test, path)?;
    Ok(warnings)
}

/// Whether a file has the header of the training table, if that has one; false if it has none.
///
/// # Errors
/// If its header has other names, or the same in another order.
fn has_same_header(path: &Path, train: &Path, layout: &TableLayout) -> Result<bool> {
    let table = Table::open(train, layout)?;
    let Some(names) = table.names() else { return Ok(true) };
    let fields = Table::first_fields(path, layout)?;
    if fields == names {
        return Ok(true);
    }
    if !fields.iter().any(|field| names.contains(field)) {
        return Ok(false);
    }
    let without =
        |of: &[String], others: &[String]| -> Vec<String> { of.iter().filter(|name| !others.contains(*name)).cloned().collect() };
    let (lacks, has) = (without(names, &fields), without(&fields, names));
    let train = train.display();
    let what = match (lacks.as_slice(), has.as_slice()) {
        ([], []) => format!("the columns have another order than those of {train}"),
        ([], has) => format!("the header has {}, which that of {train} lacks", listed(has)),
        (lacks, _) => format!("the header lacks {}, which that of {train} has", listed(lacks)),
    };
    let what = format!("{what}: give the file the same columns in the same order");
    Err(DataError::content(path, Place::Line(1), what))
}

impl TableImport {
    /// The layout with the columns of texts.
    fn layout(&self) -> Result<TableLayout> {
        let texts: Vec<Column> = self.columns.categorical.iter().chain(&self.columns.group).cloned().collect();
        if self.columns.offset.is_some() && self.columns.exposure.is_some() {
            let what = "both an offset and an exposure: an exposure is an offset whose logarithm is taken, so give one of them";
            return Err(DataError::Request(what.into()));
        }
        let allow_missing = self.columns.missing != Missing::Refuse;
        let ColumnOptions { offset, exposure, weight, .. } = &self.columns;
        let located = offset.iter().chain(exposure).chain(weight).cloned().collect();
        Ok(TableLayout { texts, located, allow_missing, is_import: true, na: self.columns.na.clone(), ..self.layout.clone() })
    }

    /// Decides what becomes of each column: by a first pass over the rows, if that depends on their values.
    fn survey(&self, layout: &TableLayout, mut splitter: RowSplitter) -> Result<Survey> {
        let first = self.train.first().map_or(Path::new(""), PathBuf::as_path);
        let table = Table::open(first, layout)?;
        let (names, texts, dates) = (table.feature_names(), table.texts(), table.dates());
        let (options, of_texts) = (table.feature_options(), only_texts(layout, &table));
        let mut located = table.located().into_iter();
        let has_offset = self.columns.offset.is_some() || self.columns.exposure.is_some();
        let offset = if has_offset { located.next() } else { None };
        let weight = located.next();
        drop(table);
        let mut uses = Vec::new();
        for (place, &text) in texts.iter().enumerate() {
            uses.push(match text {
                Some(index) if index == self.columns.categorical.len() => ColumnUse::Group(Vec::new()),
                Some(_) => ColumnUse::Indicators(Vec::new()),
                None if offset == Some(place) && self.columns.exposure.is_some() => ColumnUse::Exposure,
                None if offset == Some(place) => ColumnUse::Offset,
                None if weight == Some(place) => ColumnUse::Weight,
                None if dates[place] => ColumnUse::Date,
                None => ColumnUse::Number,
            });
        }
        let mut levels = vec![Levels::default(); layout.texts.len()];
        let mut train_rows = 0.0;
        // Which texts training rows have, by their numbers.
        let mut in_train: Vec<Vec<bool>> = vec![Vec::new(); layout.texts.len()];
        let mut lacks_text = vec![false; layout.texts.len()];
        let (mut sums, mut missing) = (vec![0.0; names.len()], vec![0.0; names.len()]);
        if !layout.texts.is_empty() || layout.allow_missing {
            // Numbers are only needed for means.
            let layout = &if layout.allow_missing { layout.clone() } else { of_texts };
            let texts = Table::open(first, layout)?.texts();
            let mut add = |split: Split, features: &[f64], label: &str| {
                let is_filled_in = |r#use: &ColumnUse| {
                    let can_be = matches!(r#use, ColumnUse::Number | ColumnUse::Indicators(_));
                    can_be && self.columns.missing == Missing::MeanAndFlag
                };
                let lacks = |(value, r#use): (&f64, &ColumnUse)| value.is_nan() && !is_filled_in(r#use);
                let is_left_out = self.columns.missing != Missing::Refuse && is_missing(label.as_bytes());
                if split == Split::Train && !is_left_out && !features.iter().zip(&uses).any(lacks) {
                    train_rows += 1.0;
                    for ((sum, missing), value) in sums.iter_mut().zip(&mut missing).zip(features) {
                        if value.is_nan() { *missing += 1.0 } else { *sum += value }
                    }
                    for (text, value) in texts.iter().zip(features) {
                        let Some(index) = *text else { continue };
                        if value.is_nan() {
                            lacks_text[index] = true;
                            continue;
                        }
                        let seen = &mut in_train[index];
                        // Codes are whole numbers.
                        let code = *value as usize;
                        seen.resize(seen.len().max(code + 1), false);
                        seen[code] = true;
                    }
                }
            };
            levels = self.each_row(layout, levels, |_, row| {
                add(splitter.split(row.index), row.features, row.label);
                Ok(())
            })?;
            if let TestRows::File(path) = &self.test {
                // The file may spell levels in another way.
                let known = levels.iter().map(|levels| Levels::known(levels.names())).collect();
                let mut test = Table::open(path, layout)?.with_levels(known);
                test.check_columns_match(&Table::open(first, layout)?)?;
                test.rows(|row| {
                    add(Split::Test, row.features, row.label);
                    Ok(())
                })?;
                levels = test.levels().to_vec();
            }
        }
        let mut levels: Vec<SortedLevels> =
            levels.iter().zip(&in_train).map(|(levels, seen)| sorted(levels, seen, first)).collect::<Result<_>>()?;
        levels.iter_mut().zip(lacks_text).filter(|(_, lacks)| *lacks).for_each(|(levels, _)| levels.add_missing());
        self.put_references_first(&names, &texts, &mut levels)?;
        let columns = names.into_iter().zip(uses).zip(&texts).enumerate().map(|(place, ((name, r#use), text))| {
            let texts = || text.map(|index| levels[index].names.clone()).unwrap_or_default();
            let r#use = match r#use {
                ColumnUse::Number if missing[place] == train_rows && missing[place] > 0.0 => {
                    let what =
                        format!("column {name:?} is missing in all training rows: leave it out with --drop {}", options[place]);
                    return Err(DataError::content(first, Place::File, what));
                }
                ColumnUse::Number if missing[place] > 0.0 => {
                    ColumnUse::FilledAndFlagged(sums[place] / (train_rows - missing[place]))
                }
                ColumnUse::Number if self.columns.missing == Missing::MeanAndFlag => {
                    ColumnUse::Filled(sums[place] / train_rows)
                }
                ColumnUse::Indicators(_) if texts().len() < 2 => {
                    let what = format!(
                        "column {name:?} has the same value in all rows that remain: leave it out with --drop {}",
                        options[place]
                    );
                    return Err(DataError::content(first, Place::File, what));
                }
                ColumnUse::Indicators(_) if texts().len() > MAX_INDICATORS && 2.0 * texts().len() as f64 > train_rows => {
                    let (count, rows) = (texts().len(), train_rows);
                    let what = format!(
                        "column {name:?} has {count} different values in {rows} training rows, too many to make an indicator of each: leave \
                         it out with --drop {option}, or give each value an effect with --group {option}",
                        option = options[place],
                    );
                    return Err(DataError::content(first, Place::File, what));
                }
                ColumnUse::Indicators(_) => ColumnUse::Indicators(texts()),
                ColumnUse::Group(_) => ColumnUse::Group(texts()),
                other => other,
            };
            Ok(UsedColumn { name, r#use })
        });
        let has_ordered_classes = !self.columns.classes.is_empty();
        let recipe = Recipe {
            columns: columns.collect::<Result<_>>()?,
            left_out: 0,
            na: self.columns.na.clone(),
            has_missing_texts: self.columns.missing == Missing::MeanAndFlag,
            decimal_comma: self.layout.decimal_comma,
            has_ordered_classes,
        };
        Ok(Survey { recipe, texts, options, levels })
    }

    /// Calls `each` with every row of all files and its file; indices go on from file to file. Returns the texts, of which some are known.
    fn each_row(
        &self,
        layout: &TableLayout,
        mut levels: Vec<Levels>,
        mut each: impl FnMut(&Path, Row<'_>) -> Result<()>,
    ) -> Result<Vec<Levels>> {
        let mut before = 0;
        for (place, path) in self.train.iter().enumerate() {
            let mut table = Table::open(path, layout)?.with_levels(levels);
            if place > 0 {
                table.check_columns_match(&Table::open(&self.train[0], layout)?)?;
            }
            let mut rows = 0;
            let read = table.rows(|row| {
                rows = row.index + 1;
                each(path, Row { index: before + row.index, ..row })
            });
            read.map_err(|error| Self::with_extent(error, &table, layout))?;
            before += rows;
            levels = table.levels().to_vec();
        }
        Ok(levels)
    }

    /// Makes the wanted values of columns the first ones.
    fn put_references_first(&self, names: &[String], texts: &[Option<usize>], levels: &mut [SortedLevels]) -> Result<()> {
        for (column, wanted) in &self.columns.references {
            let by_name = |column: &Column| match column {
                Column::Name(name) => names.iter().position(|other| other == name).and_then(|place| texts[place]),
                _ => None,
            };
            let index = self.columns.categorical.iter().position(|other| other == column).or_else(|| by_name(column));
            let column = match column {
                Column::Name(name) => name.clone(),
                Column::Number(number) => number.to_string(),
                Column::Last | Column::None => "last".into(),
            };
            let Some(sorted) = index.filter(|&index| index < self.columns.categorical.len()).map(|index| &mut levels[index])
            else {
                let what = format!("--reference {column}={wanted}: {column:?} is no column of --categorical");
                return Err(DataError::Request(what));
            };
            let place = Levels::known(&sorted.names).find(wanted.as_bytes()).and_then(|code| usize::try_from(code).ok());
            let Some(place) = place else {
                let known = listed(&sorted.names);
                return Err(DataError::Request(format!(
                    "--reference {column}={wanted}: the values of training rows are {known}"
                )));
            };
            sorted.names[..=place].rotate_right(1);
            for other in sorted.places.iter_mut().flatten().filter(|other| **other <= place) {
                *other = if *other == place { 0 } else { *other + 1 };
            }
        }
        Ok(())
    }

    /// An error at a missing value, with the number of rows that lack one; an error at a text among numbers, with the other columns that hold
    /// texts.
    fn with_extent(error: DataError, table: &Table, layout: &TableLayout) -> DataError {
        let DataError::Content { path, place, what } = error else { return error };
        let (mut lacking, mut texts, options) = (0_u64, Vec::new(), table.feature_options());
        let mut lacking_in = vec![0_u64; options.len()];
        let is_text = |end: &Unread| end.is_word && table.holds_numbers(end.column);
        if let Some(end) = table.ended_at().filter(is_text) {
            texts = other_texts(&path, end.column, table, layout);
        }
        if table.ended_at().is_some_and(|end| end.is_missing) {
            let layout = TableLayout { allow_missing: true, ..layout.clone() };
            let count = |row: Row<'_>| {
                lacking += u64::from(row.features.iter().any(|value| value.is_nan()));
                lacking_in.iter_mut().zip(row.features).for_each(|(lacking, value)| *lacking += u64::from(value.is_nan()));
                Ok(())
            };
            // Another mistake further on ends the count.
            drop(Table::open(&path, &layout).and_then(|mut table| table.rows(count)));
        }
        let by_column: Vec<String> = lacking_in
            .iter()
            .zip(&options)
            .filter(|(lacking, _)| **lacking > 0)
            .map(|(lacking, column)| format!("{column} in {lacking}"))
            .collect();
        let rows = if lacking == 1 { "1 row lacks".to_owned() } else { format!("{lacking} rows lack") };
        let count = match by_column.len() {
            2.. => format!(" ({rows} a value: {})", listed(&by_column)),
            _ if lacking > 1 => format!(" ({rows} a value)"),
            _ => String::new(),
        };
        let others = match texts.as_slice() {
            [] => String::new(),
            texts => format!(". There are texts in {} too", texts.join(",")),
        };
        DataError::Content { path, place, what: format!("{what}{count}{others}") }
    }
}

/// How a user names the columns beside this one that hold texts in the first rows, where numbers are expected.
fn other_texts(path: &Path, column: usize, table: &Table, layout: &TableLayout) -> Vec<String> {
    let header = if table.names().is_some() { Header::Yes } else { Header::No };
    let mut layout = TableLayout { header, allow_missing: true, ..layout.clone() };
    layout.drop.push(Column::Number(column + 1));
    let mut found = Vec::new();
    while let Ok(mut table) = Table::open(path, &layout) {
        let read = table.rows(|row| {
            let is_enough = row.index > ROWS_FOR_TEXTS;
            if is_enough { Err(DataError::Request(String::new())) } else { Ok(()) }
        });
        // Rows without numbers, dates that are none, and records that cannot be read end the search.
        let Some(end) = table.ended_at().filter(|end| read.is_err() && table.holds_numbers(end.column)) else { break };
        // A column with another mistake may hide one of texts.
        if end.is_word {
            found.push(table.option(end.column));
        }
        if found.len() == MAX_TEXTS {
            found.push("...".into());
            break;
        }
        layout.drop.push(Column::Number(end.column + 1));
    }
    found
}

/// The layout with nothing but the label and the texts.
fn only_texts(layout: &TableLayout, table: &Table) -> TableLayout {
    let drop = table.other_columns().into_iter().map(|place| Column::Number(place + 1)).collect();
    let header = if table.names().is_some() { Header::Yes } else { Header::No };
    TableLayout { header, drop, dates: Vec::new(), located: Vec::new(), ..layout.clone() }
}

/// The texts of training rows in order: by number if all are numbers, else by text.
fn sorted(levels: &Levels, in_train: &[bool], path: &Path) -> Result<SortedLevels> {
    let all = levels.names();
    let mut order: Vec<usize> = (0..all.len()).filter(|&code| in_train.get(code) == Some(&true)).collect();
    // Texts that only test rows have do not change the order.
    let numbers: Option<HashMap<usize, f64>> = order.iter().map(|&code| Some((code, all[code].parse().ok()?))).collect();
    match &numbers {
        Some(numbers) => order.sort_by(|a, b| numbers[a].total_cmp(&numbers[b])),
        None => order.sort_by(|&a, &b| all[a].cmp(&all[b])),
    }
    if let Some(numbers) = &numbers
        && let Some(pair) = order.windows(2).find(|pair| numbers[&pair[0]] == numbers[&pair[1]])
    {
        let what = format!("{:?} and {:?} are the same number written in two ways: write it in one", all[pair[0]], all[pair[1]]);
        return Err(DataError::content(path, Place::File, what));
    }
    let mut places = vec![None; all.len()];
    order.iter().enumerate().for_each(|(place, &code)| places[code] = Some(place));
    Ok(SortedLevels { levels: levels.clone(), places, names: order.into_iter().map(|code| all[code].clone()).collect() })
}
