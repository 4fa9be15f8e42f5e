//! What is shown of results: summaries, posterior tables, comparisons of runs, topics, figures.

pub mod agreement;
pub mod coefficients;
pub mod communication;
pub mod comparison;
mod error;
pub mod evidence;
mod exchangeable;
pub mod figures;
pub mod judged_draws;
pub mod judgment;
pub mod loo;
pub mod operation;
pub mod posterior;
mod run;
pub mod series;
pub mod side_by_side;
pub mod summary;
pub mod temperature;
pub mod test_rows;
pub mod topics;
pub mod trajectories;

pub use error::{ReportError, Result};
pub use run::{RunResults, runs_of_sweep};
