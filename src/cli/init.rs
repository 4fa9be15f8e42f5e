//! `mpibayes init`: writes a starting run file with every key, its default and its meaning.

use super::output::print;
use crate::config::Registry;
use crate::job::template_for;
use crate::methods::{Corpus, Table};
use anyhow::{Context, ensure};
use std::path::PathBuf;
use std::process::ExitCode;

/// Adds the names of all methods and models to the help of `mpibayes init`.
pub(super) fn list_names(command: clap::Command, registry: &Registry) -> clap::Command {
    let list = |names: Vec<&str>| names.join(", ");
    let (table, corpus) = (list(registry.methods_for::<Table>()), list(registry.methods_for::<Corpus>()));
    let method = format!("The method. For tables: {table}. For topic models: {corpus}");
    let model = format!("The model: {}. Without this, one that suits the data", list(registry.models()));
    command.mut_subcommand("init", |init| init.mut_arg("method", |arg| arg.help(method)).mut_arg("model", |arg| arg.help(model)))
}

/// Arguments of `mpibayes init`.
#[derive(clap::Args, Debug)]
pub struct InitArgs {
    /// The method
    #[arg(value_name = "METHOD")]
    pub method: String,
    /// The model
    #[arg(long, value_name = "NAME")]
    pub model: Option<String>,
    /// A dataset made by mpibayes import
    #[arg(long, value_name = "DATA.h5")]
    pub data: Option<PathBuf>,
    /// The file to write. Without this, the run file is printed
    #[arg(short, long, value_name = "FILE.toml")]
    pub output: Option<PathBuf>,
    /// Replace the file if it exists
    #[arg(short, long)]
    pub force: bool,
}

/// Writes the file.
///
/// # Errors
/// If there is no such method or model, the data do not suit it, or the file cannot be written.
pub fn run(args: &InitArgs, registry: &Registry) -> anyhow::Result<ExitCode> {
    let text = template_for(registry, &args.method, args.model.as_deref(), args.data.as_deref())?;
    let Some(output) = &args.output else {
        print(&text)?;
        return Ok(ExitCode::SUCCESS);
    };
    let shown = output.display();
    ensure!(args.force || !output.exists(), "{shown} exists already. Choose another name, or replace it with --force");
    if let Some(folder) = output.parent() {
        std::fs::create_dir_all(folder).with_context(|| format!("cannot create the folder {}", folder.display()))?;
    }
    std::fs::write(output, text).with_context(|| format!("cannot write {shown}"))?;
    print(&format!("wrote {shown}. `mpibayes check {shown}` checks it and says what it needs\n"))?;
    Ok(ExitCode::SUCCESS)
}
