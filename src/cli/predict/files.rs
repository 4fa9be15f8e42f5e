//! Rows in files that are no tables: datasets, LIBSVM files, NumPy arrays, and images.

use super::args::PredictArgs;
use super::output::Output;
use super::rows::{LabelParser, Rows};
use crate::data::{
    ArrayFile, ChannelOrder, Column, DataError, Dataset, Idx, IndexLimit, Place, Recipe, Source, Split, Targets, read_libsvm,
};
use crate::job::predictor::Predictor;
use anyhow::{bail, ensure};

pub(super) fn predict_dataset(args: &PredictArgs, predictor: &mut Predictor, output: &mut Output) -> anyhow::Result<()> {
    refuse_for("a dataset", args, &["label", "header", "delimiter", "decimal", "features-name", "channels", "keep"])?;
    let data = predictor.adopt(Dataset::open(&args.data)?)?;
    let split = args.split(data.rows(Split::Test) > 0, "rows")?;
    let labels: Vec<String> = match data.targets(split)? {
        Targets::Classes(indices) => indices.into_iter().map(|class| data.classes()[class as usize].clone()).collect(),
        Targets::Numbers(numbers) => numbers.iter().map(f64::to_string).collect(),
    };
    let known = LabelParser::new(&predictor.classes);
    let targets: Result<Vec<f64>, String> = labels.iter().map(|label| known.target(label)).collect();
    let targets = targets.map_err(|what| DataError::content(&args.data, Place::File, what))?;
    output.head(true)?;
    for first in (0..data.rows(split)).step_by(output.block()) {
        let block = first..(first + output.block()).min(data.rows(split));
        let rows: Vec<usize> = block.clone().collect();
        let predictions = predictor.predict_dataset(&data, split, &rows, output.wanted())?;
        output.add(&predictions, &[], &labels[block.clone()], &targets[block])?;
    }
    Ok(())
}

/// Refuses those of these options that were given, because they have no effect on such a file.
pub(super) fn refuse_for(is: &str, args: &PredictArgs, options: &[&str]) -> anyhow::Result<()> {
    let given = [
        ("label", args.label.is_some()),
        ("header", args.header.is_some()),
        ("delimiter", args.delimiter.is_some()),
        ("decimal", args.decimal.is_some()),
        ("features-name", args.features_name.is_some()),
        ("channels", args.channels.is_some()),
        ("interval", args.interval.is_some()),
        ("of", args.of.is_some()),
        ("draws", args.draws.is_some()),
        ("keep", !args.keep.is_empty()),
        ("split", args.split.is_some()),
    ];
    if let Some((option, _)) = given.iter().find(|(option, is_given)| *is_given && options.contains(option)) {
        bail!("{}: this is {is}, for which --{option} has no meaning: leave it out", args.data.display());
    }
    Ok(())
}

/// Refuses rows of numbers alone if the run was on a table whose columns had other uses.
pub(super) fn check_no_recipe(args: &PredictArgs, predictor: &Predictor, is: &str) -> anyhow::Result<()> {
    ensure!(
        predictor.recipe.as_ref().is_none_or(Recipe::has_numbers_only),
        "{}: the run is on a table with texts, dates, gaps, groups, offsets or weights, and this is {is}: give a table with the columns that \
         were imported, or a dataset",
        args.data.display()
    );
    Ok(())
}

pub(super) fn predict_libsvm(args: &PredictArgs, predictor: &mut Predictor, output: &mut Output) -> anyhow::Result<()> {
    refuse_for("a LIBSVM file", args, &["header", "delimiter", "decimal", "features-name", "channels", "split", "keep"])?;
    check_no_recipe(args, predictor, "a LIBSVM file")?;
    ensure!(
        matches!(args.label, None | Some(Column::Number(1))),
        "{}: the labels of a LIBSVM file come first: use --label first, or no --label",
        args.data.display()
    );
    let labelled = args.label.is_some();
    output.head(labelled)?;
    let most = u32::try_from(predictor.columns)?;
    let dense = !predictor.is_sparse();
    let path = &args.data;
    let mut rows = Rows::new(path, predictor, output);
    let mut whole = Vec::new();
    let read = read_libsvm(Source::open(path)?, IndexLimit { max: most, description: "the features of the run" }, |row| {
        let (label, place) = (labelled.then_some(row.label), Place::Line(row.line));
        let entries = row.columns.iter().copied().zip(row.values.iter().copied());
        if !dense {
            return rows.push(entries, label, place);
        }
        whole.clear();
        whole.resize(most as usize, 0.0);
        entries.for_each(|(column, value)| whole[column as usize] = value);
        rows.push((0..).zip(whole.iter().copied()), label, place)
    });
    rows.finish(read)
}

/// Refuses dense rows if the run is on sparse data.
pub(super) fn check_dense(args: &PredictArgs, predictor: &Predictor) -> anyhow::Result<()> {
    ensure!(!predictor.is_sparse(), "{}: the run is on sparse data and needs a LIBSVM file or a dataset", args.data.display());
    Ok(())
}

pub(super) fn predict_array(args: &PredictArgs, predictor: &mut Predictor, output: &mut Output) -> anyhow::Result<()> {
    refuse_for("an array", args, &["header", "delimiter", "decimal", "split", "keep"])?;
    check_no_recipe(args, predictor, "an array")?;
    check_dense(args, predictor)?;
    ensure!(
        args.label.is_none(),
        "{}: an array of features has no labels: import features and labels, and predict the dataset",
        args.data.display()
    );
    output.head(false)?;
    let (path, width) = (&args.data, predictor.columns);
    let channels = args.channels.map(ChannelOrder::from);
    let array = ArrayFile { channels, ..ArrayFile::of_features(path, args.features_name.as_deref())? };
    if let Some(of_run) = &predictor.shape {
        let shape = array.row_shape()?;
        ensure!(
            shape.len() == 1 || shape == *of_run,
            "{}: these images have the shape {shape:?}, but those of the run have {of_run:?}; --channels sets the order of channels",
            path.display()
        );
    }
    let mut rows = Rows::new(path, predictor, output);
    let read = array.rows(width, |row, record| rows.push((0..).zip(row.iter().copied()), None, Place::Record(record)));
    rows.finish(read)
}

pub(super) fn predict_images(args: &PredictArgs, predictor: &mut Predictor, output: &mut Output) -> anyhow::Result<()> {
    refuse_for("a file of images", args, &["header", "delimiter", "decimal", "features-name", "channels", "split", "keep"])?;
    check_no_recipe(args, predictor, "a file of images")?;
    check_dense(args, predictor)?;
    ensure!(
        args.label.is_none(),
        "{}: a file of images has no labels: import images and labels, and predict the dataset",
        args.data.display()
    );
    output.head(false)?;
    let path = &args.data;
    let mut images = Idx::open(Source::open(path)?)?;
    let (size, width) = (images.row_size(), predictor.columns);
    ensure!(
        size == width,
        "{}: these images have {size} pixels, but the run has {width} features: scale them to the size of the training images",
        path.display()
    );
    let mut rows = Rows::new(path, predictor, output);
    let read = images.rows(|row| rows.push((0..).zip(row.iter().copied().map(f64::from)), None, Place::File));
    rows.finish(read)
}
