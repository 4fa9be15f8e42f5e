//! This program again as a worker, under mpirun or alone, watched.

use crate::worker::Script;
use std::path::Path;

pub use crate::launcher::{Ended, Launcher, command, watched};

/// Runs a script in a worker and waits for its end.
pub fn work(launcher: Launcher, script: &Script, folder: &Path) -> Result<Ended, String> {
    let path = folder.join("script.json");
    let text = serde_json::to_vec(script).map_err(|error| error.to_string())?;
    std::fs::write(&path, text).map_err(|error| format!("cannot write {}: {error}", path.display()))?;
    let path = path.to_str().ok_or("the temporary folder's name is not Unicode")?;
    watched(command(launcher, &["--worker", path])?)
}
