//! Stands in for `drawing` if mpibayes was built without the cargo feature `plots`.

use super::picture::{PictureArgs, PlotArgs};
use super::scale::row::{Row, Scaling};
use crate::metrics::seeds::Band;
use crate::report::RunResults;
use crate::report::comparison::Comparison;
use crate::report::side_by_side::CoefficientsOfRun;
use crate::results::XAxis;
use anyhow::bail;
use std::path::Path;

const NO_PLOTS: &str = "this mpibayes was built without figures: build it with `cargo build --release --features plots`";

pub(super) fn draw_run(_: &PlotArgs) -> anyhow::Result<()> {
    bail!(NO_PLOTS)
}

pub(super) fn draw_comparison(
    _: &Comparison,
    _: &[RunResults],
    _: Option<&str>,
    _: XAxis,
    _: Band,
    _: &PictureArgs,
    _: &Path,
) -> anyhow::Result<Vec<String>> {
    bail!(NO_PLOTS)
}

pub(super) fn draw_reliability(_: &Comparison, _: &[RunResults], _: &PictureArgs, _: &Path) -> anyhow::Result<Vec<String>> {
    bail!(NO_PLOTS)
}

pub(super) fn draw_coefficients(
    _: &Comparison,
    _: &[CoefficientsOfRun],
    _: &[String],
    _: bool,
    _: &PictureArgs,
    _: &Path,
) -> anyhow::Result<Vec<String>> {
    bail!(NO_PLOTS)
}

pub(super) fn draw_scaling(_: &[Row], _: Scaling, _: &str, _: &PictureArgs, _: &Path) -> anyhow::Result<Vec<String>> {
    bail!(NO_PLOTS)
}
