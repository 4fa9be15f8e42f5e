//! Rows in tables, whose columns are found by name or by position.

use super::args::PredictArgs;
use super::files::{check_dense, refuse_for};
use super::output::Output;
use super::rows::Rows;
use crate::cli::import::{DecimalMark, HeaderName};
use crate::data::{Column, ColumnUse, DataError, Levels, Recipe, Table, TableLayout, UnusableValue, UsedColumn, listed};
use crate::job::predictor::Predictor;
use anyhow::{Context, bail, ensure};
use std::path::Path;

pub(super) fn predict_table(args: &PredictArgs, predictor: &mut Predictor, output: &mut Output) -> anyhow::Result<()> {
    refuse_for("a table", args, &["features-name", "channels", "split"])?;
    check_dense(args, predictor)?;
    let path = &args.data;
    let mut layout = TableLayout {
        label: args.label.clone().unwrap_or(Column::None),
        header: args.header.unwrap_or(HeaderName::Auto).into(),
        delimiter: args.delimiter,
        ..TableLayout::default()
    };
    let recipe = predictor.recipe.clone().unwrap_or_else(|| plain_recipe(predictor));
    layout.decimal_comma = args.decimal.map_or(recipe.decimal_comma, |mark| mark == DecimalMark::Comma);
    let Places { order, copied } = columns(path, predictor, &recipe, &args.keep, &mut layout)?;
    let labelled = layout.label != Column::None;
    output.head(labelled)?;
    // Texts of the run, then those that are copied.
    let texts: Vec<Levels> = recipe.texts().map(|(_, levels)| levels).collect();
    let of_run = texts.len();
    let levels = texts.into_iter().chain(std::iter::repeat_n(Levels::default(), copied.len())).collect();
    let mut table = Table::open(path, &layout)?.with_levels(levels);
    let mut rows = Rows::new(path, predictor, output);
    let (mut values, mut used) = (Vec::new(), Vec::new());
    let names = recipe.names();
    let read = table.rows(|row| {
        values.clear();
        // A row to predict needs no weight.
        values.extend(order.iter().map(|at| at.map_or(1.0, |at| row.features[at])));
        let (place, label) = (row.place, labelled.then_some(row.label));
        // Codes are whole numbers.
        let text = |(number, at): (usize, &usize)| {
            let code = row.features[*at];
            if code.is_nan() { String::new() } else { row.levels[of_run + number].names()[code as usize].clone() }
        };
        let copied = copied.iter().enumerate().map(text).collect();
        match recipe.apply(&values, &mut used) {
            Ok(()) => {
                if recipe.fills_in_a_mean(&values) {
                    rows.count_filled_in();
                }
                rows.count_if_far(&used, &names, place);
                rows.push_with(copied, (0..).zip(used.iter().copied()), label, place)
            }
            Err(what) => {
                let (kind, text) = match what {
                    UnusableValue::Missing { .. } => ("a missing value", None),
                    UnusableValue::UnknownLevel { .. } => {
                        ("a value that no training row has", recipe.unknown_text(&values, row.levels))
                    }
                    UnusableValue::Exposure { .. } | UnusableValue::Weight { .. } => {
                        ("an exposure or a weight that is not allowed", None)
                    }
                };
                let text = text.map_or_else(String::new, |text| format!(", not {text:?}"));
                rows.push_unpredicted(copied, label, kind, DataError::content(path, place, format!("{what}{text}")).to_string())
            }
        }
    });
    rows.finish(read)
}

/// What becomes of the columns of a table of numbers.
pub(super) fn plain_recipe(predictor: &Predictor) -> Recipe {
    let numbered = || (1..=predictor.columns).map(|number| format!("x{number}")).collect();
    let names = if predictor.features.is_empty() { numbered() } else { predictor.features.clone() };
    let columns = names.into_iter().map(|name| UsedColumn { name, r#use: ColumnUse::Number }).collect();
    Recipe { columns, ..Recipe::default() }
}

/// The places of columns among the features of a table.
pub(super) struct Places {
    /// For each column that the run was given; a weight need not be there.
    order: Vec<Option<usize>>,
    /// Those of the columns that are copied.
    copied: Vec<usize>,
}

/// Finds the columns of the run, and those in `keep`. Columns are matched by name if both have names, otherwise by position. Completes the
/// layout.
pub(super) fn columns(
    path: &Path,
    predictor: &Predictor,
    recipe: &Recipe,
    keep: &[String],
    layout: &mut TableLayout,
) -> anyhow::Result<Places> {
    let wanted = &recipe.columns[..];
    layout.allow_missing = true;
    layout.na.clone_from(&recipe.na);
    // A first line of numbers and texts is a row if the texts are where the run had texts.
    let in_places = by_position(wanted, layout);
    let names = Table::names_in(path, layout).or_else(|cause| Table::names_in(path, &in_places).map_err(|_| cause))?;
    let has_names = predictor.recipe.is_some() || !predictor.features.is_empty();
    if let Some(names) = names.filter(|_| has_names) {
        return by_name(path, wanted, keep, &names, layout);
    }
    ensure!(
        keep.is_empty(),
        "{}: --keep needs a header with the names of the columns, and a run that knows them",
        path.display()
    );
    let count = wanted.len();
    let features = Table::open(path, &in_places)?.features();
    let advice = match features == count + 1 {
        true => "name the column of labels with --label",
        false if has_names => "give a row the columns of the training rows, or add a header with their names",
        false => "give a row the columns of the training rows",
    };
    ensure!(
        features == count,
        "{}: the table has {} of features, but the run has {count}: {advice}",
        path.display(),
        crate::text::counted(features, "column"),
    );
    if has_names {
        let order = wanted.iter().map(|column| column.name.clone()).collect::<Vec<_>>();
        eprintln!("mpibayes: {} has no header: its columns are taken in the order {}", path.display(), order.join(", "));
    }
    *layout = in_places;
    Ok(Places { order: (0..count).map(Some).collect(), copied: Vec::new() })
}

/// The layout with the texts and dates where the run had them, around the label.
pub(super) fn by_position(wanted: &[UsedColumn], layout: &TableLayout) -> TableLayout {
    let label = if let Column::Number(number) = layout.label { number } else { usize::MAX };
    let mut layout = layout.clone();
    for (number, column) in (1..).zip(wanted) {
        add_text_or_date(column, Column::Number(if number < label { number } else { number + 1 }), &mut layout);
    }
    layout
}

/// Adds a column of the table to those of texts or dates if it is one.
pub(super) fn add_text_or_date(wanted: &UsedColumn, column: Column, layout: &mut TableLayout) {
    match wanted.r#use {
        ColumnUse::Date => layout.dates.push(column),
        ColumnUse::Indicators(_) | ColumnUse::Group(_) => layout.texts.push(column),
        _ => {}
    }
}

/// Matches columns by their names, and leaves out all others.
pub(super) fn by_name(
    path: &Path,
    wanted: &[UsedColumn],
    keep: &[String],
    names: &[String],
    layout: &mut TableLayout,
) -> anyhow::Result<Places> {
    let is_needed = |column: &&UsedColumn| column.r#use != ColumnUse::Weight;
    let missing: Vec<String> = wanted
        .iter()
        .filter(|column| is_needed(column) && !names.contains(&column.name))
        .map(|column| column.name.clone())
        .collect();
    ensure!(missing.is_empty(), "{}: the header lacks {}; it has {}", path.display(), listed(&missing), listed(names));
    let is_label = |place: usize, name: &String| match &layout.label {
        Column::Name(label) => label == name,
        Column::Number(number) => place + 1 == *number,
        Column::Last => place + 1 == names.len(),
        Column::None => false,
    };
    let absent: Vec<String> = keep.iter().filter(|name| !names.contains(name)).cloned().collect();
    ensure!(absent.is_empty(), "{}: --keep: the header lacks {}; it has {}", path.display(), listed(&absent), listed(names));
    let is_used = |name: &&String| wanted.iter().any(|column| column.name == **name);
    if let Some(used) = keep.iter().find(is_used) {
        bail!("--keep {used}: the model uses this column; only other columns can be copied");
    }
    let is_wanted = |name: &String| is_used(&name) || keep.contains(name);
    let (kept, others): (Vec<_>, Vec<_>) =
        names.iter().enumerate().filter(|(place, name)| !is_label(*place, name)).partition(|(_, name)| is_wanted(name));
    layout.drop = others.into_iter().map(|(place, _)| Column::Number(place + 1)).collect();
    layout.header = crate::data::Header::Yes;
    let mut order = Vec::new();
    for column in wanted {
        let place = kept.iter().position(|(_, kept)| **kept == column.name);
        ensure!(place.is_some() || !is_needed(&column), "{}: {:?} is both a feature and the label", path.display(), column.name);
        order.push(place);
        if place.is_some() {
            add_text_or_date(column, Column::Name(column.name.clone()), layout);
        }
    }
    // Columns that are copied come last.
    let copied = keep.iter().map(|name| kept.iter().position(|(_, kept)| *kept == name)).collect::<Option<Vec<usize>>>();
    let copied = copied.with_context(|| format!("{}: --keep: the label cannot be copied", path.display()))?;
    layout.texts.extend(keep.iter().cloned().map(Column::Name));
    Ok(Places { order, copied })
}
