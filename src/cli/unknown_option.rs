//! Advice on options that a subcommand does not have.

use crate::config::{Registry, dotted_key};
use clap::Command;
use clap::error::{ContextKind, ContextValue, ErrorKind};

/// The error with advice that can be followed, if it is about an unknown option. clap proposes to pass the option as a value, which no subcommand
/// wants.
pub(super) fn with_advice(mut error: clap::Error, typed: &[String], root: &Command, registry: &Registry) -> clap::Error {
    let Some(ContextValue::String(option)) =
        error.get(ContextKind::InvalidArg).filter(|_| error.kind() == ErrorKind::UnknownArgument)
    else {
        return error;
    };
    let option = option.clone();
    let path = subcommands(typed, root);
    let advice = advice(&option, &path, registry);
    let is_resumed = path.iter().any(|command| command.get_name() == "resume");
    // `--step` is rather `--steps` there than a key; `--set` is not.
    let keeps_suggestion = is_resumed && option != "--set" && error.get(ContextKind::SuggestedArg).is_some();
    let mut tips = match error.remove(ContextKind::Suggested) {
        Some(ContextValue::StyledStrs(tips)) => tips,
        _ => Vec::new(),
    };
    tips.retain(|tip| !tip.to_string().contains("as a value"));
    if let Some(advice) = advice.filter(|_| !keeps_suggestion) {
        error.remove(ContextKind::SuggestedArg);
        tips = vec![advice.into()];
    }
    if !tips.is_empty() {
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(tips));
    }
    error
}

/// What to type instead of an option that the last of these subcommands does not have.
fn advice(option: &str, path: &[&Command], registry: &Registry) -> Option<String> {
    let here = *path.last()?;
    let name = option.trim_start_matches('-');
    let has_output = here.get_arguments().any(|argument| argument.get_long() == Some("output"));
    if option == "-o" && has_output {
        return Some("the folder is given with --output".into());
    }
    let key = dotted_key(&name.replace('-', "_"), registry);
    match (here.get_name(), key) {
        ("run" | "check" | "sweep" | "scale", Some(key)) => {
            return Some(format!("settings are keys of the run file; --set {key}=VALUE replaces one"));
        }
        ("resume", key) if key.is_some() || name == "set" => return Some(OWN_SETTINGS.into()),
        _ => {}
    }
    // The formats of `import` have options of their own.
    let formats = path.iter().find(|command| command.get_name() == "import")?;
    let has = |command: &&Command| command.get_arguments().any(|argument| argument.get_long() == Some(name));
    let others: Vec<String> =
        formats.get_subcommands().filter(has).map(|other| format!("`mpibayes import {}`", other.get_name())).collect();
    (!others.is_empty()).then(|| format!("{option} is an option of {}", others.join(" and ")))
}

const OWN_SETTINGS: &str = "resume takes no settings: `mpibayes run FILE.toml --set KEY=VALUE` takes those of [cluster] with the same --output, and others with another \
     one";

/// The subcommands that were typed, the innermost last; without the program.
fn subcommands<'a>(typed: &[String], root: &'a Command) -> Vec<&'a Command> {
    let mut path = Vec::new();
    let mut here = root;
    for word in typed {
        let Some(next) = here.find_subcommand(word) else { break };
        path.push(next);
        here = next;
    }
    path
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::cli::arguments::Cli;
    use clap::CommandFactory;

    #[test]
    fn advice_on_unknown_options_can_be_followed() {
        for (typed, says) in [
            ("run a.toml --draws 300", Some("--set method.draws=VALUE")),
            ("run a.toml --agents 4", Some("--set agents=VALUE")),
            ("run a.toml --threads=4", Some("--set cluster.threads=VALUE")),
            ("run a.toml --prior 1", Some("--set model.prior=VALUE")),
            ("run a.toml --topics 20", Some("--set model.topics=VALUE")),
            ("resume runs/a --step +100", Some("--steps")),
            ("check a.toml --data r.h5", Some("--set data.file=VALUE")),
            ("run a.toml -o runs/x", Some("--output")),
            ("resume runs/a --set seed=2", Some("resume takes no settings")),
            ("import x.npy --labels y.npy --channels first -o q.h5", Some("--channels is an option of `mpibayes import arrays`")),
            ("import arrays x.npy --label y -o q.h5", Some("--label is an option of `mpibayes import table`")),
            ("summary runs/a --nonsense", None),
        ] {
            let words: Vec<String> = typed.split(' ').map(str::to_owned).collect();
            let error = Cli::command().try_get_matches_from(std::iter::once("mpibayes").chain(typed.split(' '))).unwrap_err();
            let text = with_advice(error, &words, &Cli::command(), &Registry::default()).render().to_string();
            assert!(text.contains(says.unwrap_or("unexpected argument")) && !text.contains("as a value"), "{typed}: {text}");
        }
    }
}
