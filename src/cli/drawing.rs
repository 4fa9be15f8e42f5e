//! Drawing and writing the figures of `mpibayes plot` and `mpibayes compare`.

use super::output::print;
use super::picture::{Axis, Format, PictureArgs, PlotArgs};
use super::scale::row::{Row, Scaling};
use super::several_runs::SeveralRuns;
use crate::metrics::seeds::Band;
use crate::partial::PartialFile;
use crate::plots::{self, Figure, HistoryOptions, RanksPoint};
use crate::report::coefficients::{CoefficientOptions, Interval};
use crate::report::comparison::Comparison;
use crate::report::figures::{ComparisonFigure, FigureKind, RunFigures};
use crate::report::series::Shares;
use crate::report::side_by_side::{self, CoefficientsOfRun};
use crate::report::summary::WORST_CLASS;
use crate::report::{RunResults, runs_of_sweep};
use crate::results::XAxis;
use anyhow::{Context, bail, ensure};
use std::io::Write;
use std::path::{Path, PathBuf};

/// Draws the figures of a run and prints the names of their files.
///
/// # Errors
/// When there is nothing to draw, or a file cannot be written.
pub(super) fn draw_run(args: &PlotArgs) -> anyhow::Result<()> {
    if !runs_of_sweep(&args.run).is_empty() {
        return draw_sweep(args);
    }
    let into_file = args.output.as_deref().filter(|path| Format::of(path).is_some());
    let run = RunResults::open(&args.run)?;
    let options = CoefficientOptions {
        interval: Interval::chosen(args.interval, None),
        per: args.per.clone(),
        ..CoefficientOptions::default()
    };
    let figures = figures(args, &RunFigures::new(&run, options))?;
    if let (Some(file), [_, _, ..]) = (into_file, figures.as_slice()) {
        let names: Vec<&str> = figures.iter().map(|figure| figure.0.as_str()).collect();
        bail!("{} is one file for several figures ({}): choose one kind, or give a folder", file.display(), names.join(", "));
    }
    if !run.is_finished() {
        eprintln!("mpibayes: {}: this run is not finished: the figures show its results so far", args.run.display());
    }
    let folder = match &args.output {
        Some(folder) => folder.clone(),
        None => run.path.parent().unwrap_or(Path::new("")).join("plots"),
    };
    for (name, figure) in figures {
        let stem = into_file.map_or_else(|| folder.join(&name), Path::to_path_buf);
        let files = write(&args.picture, &figure, &stem)?;
        if !figure.remark.is_empty() {
            let option = match name.as_str() {
                "history" => " --metric NAME selects others.",
                "posterior" | "chains" => " --parameter 'NAME[0,3]' selects others.",
                _ => "",
            };
            eprintln!("mpibayes: {name}: {}{option}", figure.remark);
        }
        let lines: String = files.iter().map(|file| format!("{}\n", file.display())).collect();
        print(&lines).context("cannot print the names of the files")?;
    }
    Ok(())
}

/// The figures to draw, each with the name of its file.
fn figures(args: &PlotArgs, run: &RunFigures) -> anyhow::Result<Vec<(String, Figure)>> {
    let path = args.run.display();
    let mut figures = Vec::new();
    let options = HistoryOptions {
        x_axis: args.against.unwrap_or(Axis::Round).into(),
        columns: args.metric.clone(),
        details: args.details,
    };
    let kinds = if args.kinds.is_empty() { &FigureKind::ALL[..] } else { &args.kinds };
    let mut unknown = args.parameter.clone();
    for &kind in kinds {
        let known = if args.kinds.is_empty() && kind.shows_parameters() {
            // One kind knows the parameters of the model, another the terms in the units of the data.
            let known: Vec<String> = args.parameter.iter().filter(|name| knows(run, kind, name)).cloned().collect();
            unknown.retain(|name| !known.contains(name));
            if known.is_empty() && !args.parameter.is_empty() {
                continue;
            }
            known
        } else {
            args.parameter.clone()
        };
        let figure = run.figure(kind, &options, &known).with_context(|| path.to_string())?;
        match figure {
            Some(figure) => figures.push((kind.name().to_owned(), figure)),
            None if args.kinds.is_empty() => {}
            None => {
                let available: Vec<&str> = run.available()?.into_iter().map(FigureKind::name).collect();
                if available.contains(&kind.name()) && !args.parameter.is_empty() {
                    let typed = args.parameter.join(", ");
                    bail!(
                        "{path}: cannot draw {:?}: none with the given --parameter {typed}; `mpibayes summary` lists the terms",
                        kind.name()
                    );
                }
                let available = if available.is_empty() { "nothing".to_owned() } else { available.join(", ") };
                bail!("{path}: cannot draw {:?}: {}; this run has data for: {available}", kind.name(), kind.missing());
            }
        }
    }
    if let (true, Some(name)) = (args.kinds.is_empty(), unknown.first()) {
        // Says which parameters there are, or why they cannot be read.
        run.figure(FigureKind::Posterior, &options, std::slice::from_ref(name)).with_context(|| path.to_string())?;
        bail!("{path}: --parameter {name}: {}", FigureKind::Posterior.missing());
    }
    for (place, names) in args.pair.chunks(2).enumerate() {
        let [first, second] = names else { continue };
        let Some(figure) = run.pair(first, second).with_context(|| path.to_string())? else {
            bail!("{path}: cannot draw --pair: {}", FigureKind::Posterior.missing())
        };
        let name = if args.pair.len() > 2 { format!("pair-{}", place + 1) } else { "pair".into() };
        figures.push((name, figure));
    }
    if figures.is_empty() {
        bail!("{path}: nothing to draw: this run has no metrics, no history, no reliability table and no draws");
    }
    Ok(figures)
}

/// Whether the figure of a kind can show a parameter or term of this name.
fn knows(run: &RunFigures, kind: FigureKind, name: &String) -> bool {
    run.figure(kind, &HistoryOptions::default(), std::slice::from_ref(name)).is_ok_and(|figure| figure.is_some())
}

/// Draws a figure of each metric of a sweep, with a line for each setting, and reports the files on standard error.
fn draw_sweep(args: &PlotArgs) -> anyhow::Result<()> {
    let path = args.run.display();
    ensure!(
        args.kinds.is_empty()
            && args.parameter.is_empty()
            && args.pair.is_empty()
            && args.per.is_empty()
            && args.interval.is_none()
            && !args.details,
        "{path}: this folder holds several runs, whose figures show metrics: name one of them to draw more, or see `mpibayes compare --reliability`"
    );
    let SeveralRuns { paths, results } = SeveralRuns::open(std::slice::from_ref(&args.run))?;
    let comparison = Comparison::of(&paths, &results)?;
    for entry in comparison.runs.iter().filter(|entry| !entry.finished) {
        eprintln!("mpibayes: {}: this run is not finished: the figures show its results so far", entry.run);
    }
    // The accuracy of the worst class is known at the end of a run only.
    let curves: Vec<String> = comparison.metrics.iter().filter(|name| *name != WORST_CLASS).cloned().collect();
    let metrics = if args.metric.is_empty() { &curves } else { &args.metric };
    for metric in metrics {
        comparison.check_metric(&results, metric)?;
    }
    ensure!(
        !metrics.is_empty(),
        "{path}: nothing to draw: these runs have no metrics. Name a column of their histories with --metric"
    );
    let into_file = args.output.as_deref().filter(|path| Format::of(path).is_some());
    if let (Some(file), [_, _, ..]) = (into_file, metrics.as_slice()) {
        bail!("{}: this is one file for several figures: choose one with --metric NAME, or give a folder", file.display());
    }
    let folder = args.output.clone().unwrap_or_else(|| args.run.join("plots"));
    let axis = args.against.map_or_else(|| comparison.default_axis(), XAxis::from);
    for metric in metrics {
        let output = into_file.map_or_else(|| folder.join(metric), Path::to_path_buf);
        let notes = draw_comparison(&comparison, &results, Some(metric), axis, args.band.band, &args.picture, &output)?;
        notes.iter().for_each(|note| eprintln!("mpibayes: {note}"));
    }
    Ok(())
}

/// Draws the figure of a comparison, and returns what to report about it.
///
/// # Errors
/// When no run has the metric, or a file cannot be written.
pub(super) fn draw_comparison(
    comparison: &Comparison,
    runs: &[RunResults],
    metric: Option<&str>,
    axis: XAxis,
    band: Band,
    picture: &PictureArgs,
    output: &Path,
) -> anyhow::Result<Vec<String>> {
    write_comparison(ComparisonFigure::new(comparison, runs, metric, axis, band)?, picture, output)
}

/// Draws accuracy by confidence of all runs of a comparison, and returns what to report about it.
///
/// # Errors
/// When no run has a reliability table, or a file cannot be written.
pub(super) fn draw_reliability(
    comparison: &Comparison,
    runs: &[RunResults],
    picture: &PictureArgs,
    output: &Path,
) -> anyhow::Result<Vec<String>> {
    write_comparison(ComparisonFigure::reliability(comparison, runs)?, picture, output)
}

/// Draws the coefficients of runs as a forest plot, those of `terms` if there are any, and returns what to report about it.
///
/// # Errors
/// When no run has such a term, or a file cannot be written.
pub(super) fn draw_coefficients(
    comparison: &Comparison,
    runs: &[CoefficientsOfRun],
    terms: &[String],
    all: bool,
    picture: &PictureArgs,
    output: &Path,
) -> anyhow::Result<Vec<String>> {
    let figure = Figure { subtitle: comparison.heading(), ..side_by_side::forest(runs, terms, all)? };
    let note = (!figure.remark.is_empty()).then(|| format!("{} --parameter TERM chooses terms.", figure.remark));
    write_comparison(ComparisonFigure { figure: Some(figure), left_out: note.into_iter().collect() }, picture, output)
}

/// Draws times on more and more ranks, and returns what to report about it.
///
/// # Errors
/// When a file cannot be written.
pub(super) fn draw_scaling(
    rows: &[Row],
    scaling: Scaling,
    heading: &str,
    picture: &PictureArgs,
    output: &Path,
) -> anyhow::Result<Vec<String>> {
    let point = |row: &Row| {
        let measured = row.measured.as_ref();
        RanksPoint {
            ranks: row.ranks,
            predicted: row.seconds,
            predicted_efficiency: row.efficiency,
            measured: measured.map(|found| [found.median, found.runs.range().0, found.runs.range().1]),
            measured_efficiency: measured.map(|found| found.efficiency),
            memory: [row.memory, measured.map(|found| found.runs.memory)],
            shares: measured.map(|found| {
                let Shares { computing, messages, saving, idle } = found.runs.shares;
                [computing, messages, saving, idle]
            }),
        }
    };
    let points: Vec<RanksPoint> = rows.iter().map(point).collect();
    let figure = Figure { subtitle: heading.into(), ..plots::scaling(&points, scaling == Scaling::Weak) };
    write_comparison(ComparisonFigure { figure: Some(figure), left_out: Vec::new() }, picture, output)
}

/// Writes the figure of a comparison, if there is one, and returns what to report about it.
fn write_comparison(drawn: ComparisonFigure, picture: &PictureArgs, output: &Path) -> anyhow::Result<Vec<String>> {
    let ComparisonFigure { figure, left_out: mut notes } = drawn;
    if let Some(figure) = figure {
        let files = write(picture, &figure, output)?;
        notes.extend(files.iter().map(|file| format!("wrote {}", file.display())));
    }
    Ok(notes)
}

/// Writes a figure to `output`, a file or a path to which the extension of each format is added. Replaces existing files, and returns the files.
///
/// # Errors
/// When the figure does not fit its size, or a file cannot be written.
fn write(picture: &PictureArgs, figure: &Figure, output: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let named = Format::of(output);
    let drawing = if picture.bare {
        let (title, subtitle, caption, remark) = Default::default();
        Figure { title, subtitle, caption, remark, ..figure.clone() }.draw(picture.size)?
    } else {
        figure.draw(picture.size)?
    };
    let mut files = Vec::new();
    for format in [Format::Svg, Format::Png] {
        let wanted = match (picture.format.as_slice(), named) {
            ([], Some(named)) => named == format,
            ([], None) => true,
            (formats, _) => formats.contains(&format),
        };
        if !wanted {
            continue;
        }
        let path = match named {
            Some(_) => output.with_extension(format.extension()),
            // The point in a name such as `alpha0.5` does not begin an extension.
            None => {
                let mut name = output.as_os_str().to_owned();
                name.push(".");
                name.push(format.extension());
                PathBuf::from(name)
            }
        };
        let content = match format {
            Format::Svg => drawing.svg().as_bytes().to_vec(),
            Format::Png => drawing.png(picture.scale)?,
        };
        write_file(&path, &content).with_context(|| format!("{}: cannot write", path.display()))?;
        files.push(path);
    }
    Ok(files)
}

fn write_file(path: &Path, content: &[u8]) -> std::io::Result<()> {
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)?;
    }
    let partial = PartialFile::new(path);
    std::fs::File::create(partial.path())?.write_all(content)?;
    partial.commit()
}
