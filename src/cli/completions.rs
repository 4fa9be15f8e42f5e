//! `mpibayes completions`: shell completions, generated from the definition of the command line.

use super::output::print;
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

/// Prints the completions.
///
/// # Errors
/// When standard output cannot be written.
pub fn run(args: &CompletionsArgs, mut command: clap::Command) -> anyhow::Result<ExitCode> {
    let mut text = Vec::new();
    clap_complete::generate(args.shell, &mut command, "mpibayes", &mut text);
    print(&String::from_utf8_lossy(&text))?;
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use crate::cli::Cli;
    use clap::CommandFactory;
    use clap::ValueEnum;

    fn names() -> Vec<String> {
        Cli::command().get_subcommands().map(|command| command.get_name().to_owned()).collect()
    }

    #[test]
    fn completions_have_every_subcommand() {
        let mut text = Vec::new();
        for shell in clap_complete::Shell::value_variants() {
            text.clear();
            clap_complete::generate(*shell, &mut Cli::command(), "mpibayes", &mut text);
            let text = String::from_utf8_lossy(&text);
            assert!(names().iter().all(|name| text.contains(name.as_str())) && text.contains("test-fraction"), "{shell}");
            assert!(!text.contains("imprt"));
        }
    }
}
