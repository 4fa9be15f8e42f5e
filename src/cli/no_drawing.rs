//! Stands in for `drawing` if mpibayes was built without the cargo feature `plots`.

use super::picture::{Band, PictureArgs, PlotArgs};
use crate::report::RunResults;
use crate::report::comparison::Comparison;
use crate::results::XAxis;
use anyhow::bail;
use std::path::Path;

const NO_PLOTS: &str = "this mpibayes was built without figures: build it with `cargo build --release --features plots`";

pub(super) fn draw_run(_: &PlotArgs) -> anyhow::Result<()> {
    bail!(NO_PLOTS)
}

/// How and where a figure is written.
pub(super) struct Place<'a> {
    pub picture: &'a PictureArgs,
    pub output: &'a Path,
}

pub(super) fn draw_comparison(
    _: &Comparison,
    _: &[RunResults],
    _: Option<&str>,
    _: XAxis,
    _: Band,
    place: Place,
) -> anyhow::Result<Vec<String>> {
    let Place { picture: _, output } = place;
    bail!("{}: {NO_PLOTS}", output.display())
}
