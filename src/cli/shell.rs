//! `mpibayes completions` and `mpibayes man`: shell completions and manual pages, generated from the definition of the command line.

use super::output::print;
use anyhow::Context;
use std::path::PathBuf;
use std::process::ExitCode;

const WHERE: &str = "\
Installation:
  bash   mpibayes completions bash > ~/.local/share/bash-completion/completions/mpibayes
  zsh    mpibayes completions zsh > ~/.zfunc/_mpibayes     (a folder of $fpath)
  fish   mpibayes completions fish > ~/.config/fish/completions/mpibayes.fish";

/// Arguments of `mpibayes completions`.
#[derive(clap::Args, Debug)]
#[command(after_help = WHERE)]
pub struct CompletionsArgs {
    /// The shell
    #[arg(value_enum)]
    pub shell: clap_complete::Shell,
}

/// Arguments of `mpibayes man`.
#[derive(clap::Args, Debug)]
pub struct ManArgs {
    /// Write all pages to this folder: mpibayes.1, mpibayes-run.1, ... [default: print mpibayes.1]
    #[arg(short, long, value_name = "DIR")]
    pub output: Option<PathBuf>,
}

/// Prints the completions.
///
/// # Errors
/// When standard output cannot be written.
pub fn completions(args: &CompletionsArgs, mut command: clap::Command) -> anyhow::Result<ExitCode> {
    let mut text = Vec::new();
    clap_complete::generate(args.shell, &mut command, "mpibayes", &mut text);
    print(&String::from_utf8_lossy(&text))?;
    Ok(ExitCode::SUCCESS)
}

/// Prints the manual page, or writes all pages.
///
/// # Errors
/// When they cannot be written.
pub fn man(args: &ManArgs, command: clap::Command) -> anyhow::Result<ExitCode> {
    let command = command.disable_help_subcommand(true);
    match &args.output {
        None => print(&String::from_utf8_lossy(&page(command)?))?,
        Some(folder) => {
            std::fs::create_dir_all(folder).with_context(|| format!("{}: cannot create this folder", folder.display()))?;
            clap_mangen::generate_to(command, folder).with_context(|| format!("{}: cannot write", folder.display()))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn page(command: clap::Command) -> std::io::Result<Vec<u8>> {
    let mut text = Vec::new();
    clap_mangen::Man::new(command).render(&mut text)?;
    Ok(text)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::cli::Cli;
    use clap::CommandFactory;
    use clap::ValueEnum;

    fn names() -> Vec<String> {
        Cli::command().get_subcommands().map(|command| command.get_name().to_owned()).collect()
    }

    #[test]
    fn completions_and_manual_have_every_subcommand() {
        let mut text = Vec::new();
        for shell in clap_complete::Shell::value_variants() {
            text.clear();
            clap_complete::generate(*shell, &mut Cli::command(), "mpibayes", &mut text);
            let text = String::from_utf8_lossy(&text);
            assert!(names().iter().all(|name| text.contains(name.as_str())) && text.contains("test-fraction"), "{shell}");
            assert!(!text.contains("imprt"));
        }
        let page = String::from_utf8(page(Cli::command()).unwrap()).unwrap();
        assert!(names().iter().all(|name| page.contains(&format!("mpibayes\\-{name}(1)"))), "{page}");
    }

    #[test]
    fn there_is_a_page_for_each_subcommand() {
        let folder = tempfile::tempdir().unwrap();
        man(&ManArgs { output: Some(folder.path().to_owned()) }, Cli::command()).unwrap();
        for name in names() {
            let page = std::fs::read_to_string(folder.path().join(format!("mpibayes-{name}.1"))).unwrap();
            assert!(page.contains(&format!("mpibayes {name}")) || page.contains(&format!("mpibayes\\-{name}")), "{name}: {page}");
        }
        assert!(folder.path().join("mpibayes.1").exists() && !folder.path().join("mpibayes-help.1").exists());
    }
}
