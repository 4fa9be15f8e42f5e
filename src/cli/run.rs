//! `mpibayes run`: runs what a TOML file describes.

use std::path::PathBuf;
use std::process::ExitCode;

/// What can be typed after `mpibayes run`.
#[derive(Debug, clap::Args)]
pub struct RunArgs {
    /// The run file
    #[arg(value_name = "FILE.toml")]
    pub file: PathBuf,
    /// Replace a value of the run file; may be given several times
    #[arg(long = "set", value_name = "KEY=VALUE", value_parser = assignment)]
    pub set: Vec<(String, String)>,
    /// The folder for results and checkpoints
    #[arg(long, value_name = "DIR")]
    pub output: Option<PathBuf>,
}

/// A key and a value, as typed.
fn assignment(typed: &str) -> Result<(String, String), String> {
    match typed.split_once('=') {
        Some((key, value)) if !key.trim().is_empty() => Ok((key.trim().to_owned(), value.trim().to_owned())),
        _ => Err("write key=value, such as seed=2".into()),
    }
}

/// Runs what the file describes.
///
/// # Errors
/// Always: this version has no methods.
pub fn run(_args: &RunArgs) -> anyhow::Result<ExitCode> {
    anyhow::bail!("this version cannot run anything")
}
