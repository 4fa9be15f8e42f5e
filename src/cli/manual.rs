//! `mpibayes man`: manual pages, generated from the definition of the command line, with exit codes, signals, files and examples.

use super::exit_codes::EXIT_CODES;
use super::output::print;
use anyhow::Context;
use clap_mangen::Man;
use clap_mangen::roff::{Roff, bold, roman};
use std::path::PathBuf;
use std::process::ExitCode;

/// What signals do to a run, a sweep or a resumed run.
const SIGNALS: [(&str, &str); 3] = [
    (
        "SIGUSR1, SIGTERM, SIGINT",
        "Finish the tasks in progress, save a checkpoint and end with exit code 75. Under mpirun, send SIGUSR1 to mpirun, which forwards it \
         to all ranks and waits: on SIGTERM and Ctrl-C, mpirun kills the ranks about a second later, and the run resumes from its last checkpoint.",
    ),
    ("SIGHUP", "The same, when the terminal is closed. Under nohup it is ignored."),
    ("a second SIGINT", "Half a second later or more, ends a single process at once. The run resumes from its last checkpoint."),
];

/// The most important files of a run.
const FILES: [(&str, &str); 6] = [
    ("RUN/config.toml", "The run with all of its settings."),
    ("RUN/data.digest", "The digest of the data. A job locks this file while it uses the folder."),
    (
        "RUN/result.h5",
        "The results, as HDF5. ArviZ and xarray open it as netCDF. It is replaced as a whole, so it can be read at any time.",
    ),
    (
        "RUN/checkpoint.bin",
        "The state from which an unfinished run resumes. RUN/checkpoint.previous.bin is the one before it, for the case that \
         it is damaged, and RUN/checkpoint.parts has the large states of both.",
    ),
    ("RUN/tuning.bin, RUN/tuning.copy.bin", "What was found before the run, such as steps, for jobs that resume it; and a copy."),
    ("RUN/extension.bin", "The state from which mpibayes resume makes a finished run longer."),
];

/// Commands that save and resume a run.
const RUNNERS: [&str; 3] = ["run", "resume", "sweep"];
/// The line with which examples in a help text begin.
const EXAMPLES: &str = "Examples:";

/// Arguments of `mpibayes man`.
#[derive(clap::Args, Debug)]
pub struct ManArgs {
    /// Write all pages to this folder: mpibayes.1, mpibayes-run.1, ... [default: print mpibayes.1]
    #[arg(short, long, value_name = "DIR")]
    pub output: Option<PathBuf>,
    /// The command whose page is printed, such as run, or import table [default: the program]
    #[arg(value_name = "COMMAND", conflicts_with = "output")]
    pub command: Vec<String>,
}

/// Prints the manual page, or writes all pages.
///
/// # Errors
/// When they cannot be written.
pub fn run(args: &ManArgs, command: clap::Command) -> anyhow::Result<ExitCode> {
    let mut command = command.disable_help_subcommand(true);
    command.build();
    match &args.output {
        None => {
            let chosen = args.command.iter().try_fold(&command, |command, name| command.find_subcommand(name));
            let chosen = chosen.with_context(|| format!("there is no subcommand {:?}", args.command.join(" ")))?;
            print(&String::from_utf8_lossy(&page(chosen)?))?
        }
        Some(folder) => {
            std::fs::create_dir_all(folder).with_context(|| format!("{}: cannot create this folder", folder.display()))?;
            let mut commands = vec![&command];
            while let Some(command) = commands.pop() {
                commands.extend(command.get_subcommands().filter(|command| command.get_name() != "help"));
                let path = folder.join(format!("{}.1", title(command)));
                std::fs::write(&path, page(command)?).with_context(|| format!("{}: cannot write", path.display()))?;
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// The name of a page: `mpibayes-import-table`.
fn title(command: &clap::Command) -> &str {
    command.get_display_name().unwrap_or_else(|| command.get_name())
}

/// The manual page of a command.
fn page(command: &clap::Command) -> std::io::Result<Vec<u8>> {
    let mut text = Vec::new();
    let source = format!("mpibayes {}", env!("CARGO_PKG_VERSION"));
    let man = Man::new(command.clone().disable_help_subcommand(true)).manual("mpibayes").source(source);
    man.render_title(&mut text)?;
    man.render_name_section(&mut text)?;
    man.render_synopsis_section(&mut text)?;
    man.render_description_section(&mut text)?;
    man.render_options_section(&mut text)?;
    if command.get_subcommands().any(|command| command.get_name() != "help") {
        man.render_subcommands_section(&mut text)?;
    }
    let is_top = title(command) == "mpibayes";
    let mut rest = Roff::new();
    let help = command.get_after_long_help().or_else(|| command.get_after_help()).map(ToString::to_string);
    // The exit codes at the end of the program's own help have a section of their own.
    if let Some(help) = help.filter(|_| !is_top) {
        let (notes, examples) = help.split_once(EXAMPLES).unwrap_or((&help, ""));
        preformatted(&mut rest, "NOTES", notes);
        preformatted(&mut rest, "EXAMPLES", examples);
    }
    let codes = EXIT_CODES.map(|(code, meaning)| (code.to_string(), meaning));
    list(&mut rest, "EXIT STATUS", codes.iter().map(|(code, meaning)| (code.as_str(), *meaning)));
    if is_top || RUNNERS.contains(&command.get_name()) {
        list(&mut rest, "SIGNALS", SIGNALS);
        list(&mut rest, "FILES", FILES);
    }
    if !is_top {
        rest.control("SH", ["SEE ALSO"]).text([bold("mpibayes"), roman("(1)")]);
    }
    rest.to_writer(&mut text)?;
    Ok(text)
}

/// A section of terms with their meanings.
fn list<'a>(page: &mut Roff, heading: &str, terms: impl IntoIterator<Item = (&'a str, &'a str)>) {
    page.control("SH", [heading]);
    for (term, meaning) in terms {
        page.control("TP", []).text([bold(term)]).text([roman(meaning)]);
    }
}

/// A section whose lines stay as they are; none without text.
fn preformatted(page: &mut Roff, heading: &str, text: &str) {
    if text.trim().is_empty() {
        return;
    }
    page.control("SH", [heading]).control("nf", []);
    for line in text.trim_matches('\n').trim_end().lines() {
        page.text([roman(line.strip_prefix("  ").unwrap_or(line))]);
    }
    page.control("fi", []);
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::cli::Cli;
    use clap::CommandFactory;

    #[test]
    fn every_command_has_a_page_with_its_sections() {
        let folder = tempfile::tempdir().unwrap();
        run(&ManArgs { output: Some(folder.path().to_owned()), command: Vec::new() }, Cli::command()).unwrap();
        let read = |name: &str| std::fs::read_to_string(folder.path().join(format!("{name}.1"))).unwrap();
        let names: Vec<String> = Cli::command().get_subcommands().map(|command| command.get_name().to_owned()).collect();
        for name in &names {
            let page = read(&format!("mpibayes-{name}"));
            assert!(page.contains("EXIT STATUS") && page.contains("ended early"), "{name}: {page}");
            assert!(!page.contains(EXAMPLES), "{name}: {page}");
        }
        let page = read("mpibayes-run");
        assert!(page.contains("SIGUSR1") && page.contains("checkpoint.bin"), "{page}");
        assert!(read("mpibayes-compare").contains(".SH EXAMPLES\n.nf\nmpibayes compare"), "{}", read("mpibayes-compare"));
        assert!(!read("mpibayes-compare").contains("SIGUSR1") && read("mpibayes-import-table").contains("EXIT STATUS"));
        let page = read("mpibayes");
        assert!(names.iter().all(|name| page.contains(&format!("mpibayes\\-{name}(1)"))), "{page}");
        assert!(!folder.path().join("mpibayes-help.1").exists());
    }
}
