//! The exit codes of mpibayes, for the help, the manual pages and the book.

/// The exit code of a run that ended early and that the same command resumes (`EX_TEMPFAIL` of sysexits.h).
pub const STOPPED: u8 = 75;

/// The exit code if draws have diverged: they are not finite. With `--strict` also if they have not mixed or are biased.
pub const UNUSABLE: u8 = 3;

/// Each exit code with its meaning.
pub const EXIT_CODES: [(u8, &str); 7] = [
    (0, "success; a run is finished"),
    (1, "an error, reported in one line"),
    (2, "invalid arguments"),
    (UNUSABLE, "the draws of a run have diverged; with --strict also if they are biased or not mixed"),
    (70, "a run failed; one line reports the rank and the agent"),
    (
        STOPPED,
        "a run ended early and can go on with the same command: it was stopped (and saved, unless a message says otherwise), a rank was silent, or other jobs carry out the rest of a sweep",
    ),
    (130, "a second Ctrl-C ended the run; the same command resumes it from the last checkpoint"),
];

/// The exit codes in a paragraph.
pub fn paragraph() -> String {
    let codes: Vec<String> = EXIT_CODES.iter().map(|(code, meaning)| format!("{code} {meaning}")).collect();
    format!("Exit codes: {}.", codes.join(". "))
}
