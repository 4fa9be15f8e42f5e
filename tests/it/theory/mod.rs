//! Methods against exact theory, a module for each method: every threshold follows from rounding or from standard errors with a stated
//! rate of false alarms, and a control that must fail stands beside every statistical test.

#![allow(clippy::unwrap_used)]

mod adlda;
mod bias;
mod dsgld;
mod dsgld_scale;
mod dsvgd;
mod ec_sghmc;
mod fedavg;
mod full_scores;
mod hmc;
mod lda;
mod npv_and_pmd;
mod pvi;
mod recalibration;
mod regressions;
mod svgd;
mod tuning;

use mpibayes::random::{Purpose, Seed, Who};
use ndarray::Array2;

/// Independent standard normal numbers.
fn normals(rows: usize, columns: usize, seed: u64) -> Array2<f64> {
    let mut numbers = Array2::zeros((rows, columns));
    Seed(seed).stream(Who::Run, 0, Purpose::Synthetic).normals(numbers.as_slice_mut().unwrap());
    numbers
}
