//! Rows in tables, whose columns are found by name or by position.

use super::args::PredictArgs;
use super::files::{check_dense, refuse_for};
use super::output::Output;
use super::rows::Rows;
use crate::cli::import::{DecimalMark, HeaderName};
use crate::data::{Column, ColumnUse, DataError, Recipe, Table, TableLayout, UsedColumn, listed};
use crate::job::predictor::Predictor;
use anyhow::ensure;
use std::path::Path;

pub(super) fn predict_table(args: &PredictArgs, predictor: &mut Predictor, output: &mut Output) -> anyhow::Result<()> {
    refuse_for("a table", args, &["features-name", "split"])?;
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
    let order = columns(path, predictor, &recipe, &mut layout)?;
    let labelled = layout.label != Column::None;
    output.head(labelled)?;
    let mut table = Table::open(path, &layout)?.with_levels(recipe.texts().map(|(_, levels)| levels).collect());
    let mut rows = Rows::new(path, predictor, output);
    let (mut values, mut used) = (Vec::new(), Vec::new());
    let read = table.rows(|row| {
        values.clear();
        // A row to predict needs no weight.
        values.extend(order.iter().map(|at| at.map_or(1.0, |at| row.features[at])));
        let (place, label) = (row.place, labelled.then_some(row.label));
        match recipe.apply(&values, &mut used) {
            Ok(()) => rows.push((0..).zip(used.iter().copied()), label, place),
            Err(what) => {
                let text = recipe.unknown_text(&values, row.levels).map_or_else(String::new, |text| format!(", not {text:?}"));
                rows.push_unpredicted(label, DataError::content(path, place, what + &text).to_string())
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

/// For each column that the run was given, the index of its column among the features of the table, which a weight need not have. Columns
/// are matched by name if both have names, otherwise by position. Completes the layout.
pub(super) fn columns(
    path: &Path,
    predictor: &Predictor,
    recipe: &Recipe,
    layout: &mut TableLayout,
) -> anyhow::Result<Vec<Option<usize>>> {
    let wanted = &recipe.columns[..];
    layout.allow_missing = true;
    layout.na.clone_from(&recipe.na);
    // A first line of numbers and texts is a row if the texts are where the run had texts.
    let in_places = by_position(wanted, layout);
    let names = Table::names_in(path, layout).or_else(|cause| Table::names_in(path, &in_places).map_err(|_| cause))?;
    let has_names = predictor.recipe.is_some() || !predictor.features.is_empty();
    if let Some(names) = names.filter(|_| has_names) {
        return by_name(path, wanted, &names, layout);
    }
    let count = wanted.len();
    let features = Table::open(path, &in_places)?.features();
    ensure!(
        features == count,
        "{}: the table has {features} columns of features, but the run has {count}: name the column of labels with --label, or add a \
         header with the names of the features",
        path.display(),
    );
    *layout = in_places;
    Ok((0..count).map(Some).collect())
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
    names: &[String],
    layout: &mut TableLayout,
) -> anyhow::Result<Vec<Option<usize>>> {
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
    let is_wanted = |name: &String| wanted.iter().any(|column| column.name == *name);
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
    Ok(order)
}
