//! `mpibayes init`: writes a starting run file with every key, its default and its meaning.

use super::output::print;
use crate::config::Registry;
use crate::job::template_for;
use anyhow::{Context, ensure};
use std::path::PathBuf;
use std::process::ExitCode;

/// What can be typed after `mpibayes init`.
#[derive(clap::Args, Debug)]
pub struct InitArgs {
    /// The method
    #[arg(value_name = "METHOD")]
    pub method: String,
    /// The model; without this, one that suits the data
    #[arg(long, value_name = "NAME")]
    pub model: Option<String>,
    /// A dataset made by mpibayes import
    #[arg(long, value_name = "DATA.h5")]
    pub data: Option<PathBuf>,
    /// Where to write; without this, to the screen
    #[arg(short, long, value_name = "FILE.toml")]
    pub output: Option<PathBuf>,
    /// Replace the file if it exists
    #[arg(short, long)]
    pub force: bool,
}

/// Writes the file.
///
/// # Errors
/// Where there is no such method or model, the data do not suit, or the file cannot be written.
pub fn run(args: &InitArgs, registry: &Registry) -> anyhow::Result<ExitCode> {
    let text = template_for(registry, &args.method, args.model.as_deref(), args.data.as_deref())?;
    let Some(output) = &args.output else {
        print(&text)?;
        return Ok(ExitCode::SUCCESS);
    };
    let shown = output.display();
    ensure!(args.force || !output.exists(), "{shown}: this file exists; choose another name, or replace it with --force");
    if let Some(folder) = output.parent() {
        std::fs::create_dir_all(folder).with_context(|| format!("{}: cannot make the folder", folder.display()))?;
    }
    std::fs::write(output, text).with_context(|| format!("{shown}: cannot write"))?;
    print(&format!("wrote {shown}; mpibayes check {shown} says what it asks for\n"))?;
    Ok(ExitCode::SUCCESS)
}
