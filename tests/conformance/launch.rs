//! Starts this program as a worker, alone or under mpirun.

use crate::worker::Script;
use std::path::Path;

pub use crate::launcher::{Ended, Launcher, command, watched};

/// Runs a script in a worker and waits for its end.
pub fn work(launcher: Launcher, script: &Script, folder: &Path) -> Result<Ended, String> {
    // Several workers may run at the same time.
    let mut file = tempfile::Builder::new().prefix("script").tempfile_in(folder).map_err(|error| error.to_string())?;
    serde_json::to_writer(&mut file, script).map_err(|error| error.to_string())?;
    let path = file.path().to_str().ok_or("the temporary folder's name is not Unicode")?;
    watched(command(launcher, &["--worker", path])?)
}
