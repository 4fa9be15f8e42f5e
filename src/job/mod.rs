//! Jobs: a validated run meets its data and is checked, carried out, resumed, or used to predict.

mod check;
mod check_report;
mod data;
mod error;
mod extend;
mod findings;
mod forecast;
mod length;
mod notes;
pub mod pointwise;
pub mod predictions;
pub mod predictor;
mod prepare;
mod problem;
mod ranks;
mod recalibrate;
mod records;
mod resume;
pub mod scoring;
mod shards;
mod start;
pub mod topic_model;
mod tune;

pub use check::{check, check_sweep, notes_on_sweep};
pub use check_report::{CheckReport, ClassCounts, DataContent, DataReport, PlannedDraws};
pub use data::{DataFile, template_for};
pub use error::{ExtensionError, JobError};
pub use extend::{Amount, NewLength, run_to_resume};
pub use forecast::{BANDWIDTH, Forecast, LATENCY, forecast};
pub use length::doubling_command;
pub use ranks::Ranks;
pub use recalibrate::{RECALIBRATED_FROM, RECALIBRATION, recalibrate};
pub use resume::{FolderUse, folder_use, made_longer};
pub use scoring::DRAWN_FROM;
pub use start::{notes_on_placement, start, threads_of};
pub use tune::{EXCESS, TUNING};
