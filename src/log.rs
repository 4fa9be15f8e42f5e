//! Lines on standard error: as text, or as a line of JSON each for programs that collect logs.

use std::io::Write;
use std::sync::OnceLock;

/// Set if lines are JSON: who writes them.
static WRITER: OnceLock<Writer> = OnceLock::new();

#[derive(Debug)]
struct Writer {
    host: String,
    rank: u32,
}

/// Prefixes of messages above the level `info`.
const LEVELS: [&str; 2] = ["warning", "error"];

/// From now on, lines of this process are JSON, with the name of its host and its rank.
pub fn use_json(host: String, rank: u32) {
    // Only the first call of a process counts.
    drop(WRITER.set(Writer { host, rank }));
}

/// Whether lines are JSON.
pub fn is_json() -> bool {
    WRITER.get().is_some()
}

/// Prints a line, about one of several runs if its title is given. As text, `prefix` stands before it; JSON has its own time and host.
pub fn print(prefix: &str, run: Option<&str>, text: &str) {
    write(match WRITER.get() {
        None => format!("mpibayes: {prefix}{}{text}\n", run.map(|run| format!("{run}: ")).unwrap_or_default()),
        Some(writer) => json(writer, run, text) + "\n",
    });
}

/// Prints a note.
pub fn note(text: &str) {
    print("", None, &format!("note: {text}"));
}

/// Prints why this process fails.
pub fn print_error(text: &str) {
    write(match WRITER.get() {
        None => format!("mpibayes: {text}\n"),
        Some(writer) => json(writer, None, &format!("error: {}", text.strip_prefix("error: ").unwrap_or(text))) + "\n",
    });
}

fn write(line: String) {
    // One write, so that no line of a launcher comes between. A closed standard error is no reason to end a run.
    drop(std::io::stderr().write_all(line.as_bytes()));
}

fn json(Writer { host, rank }: &Writer, run: Option<&str>, text: &str) -> String {
    let level = LEVELS.into_iter().find_map(|level| Some((level, text.strip_prefix(level)?.strip_prefix(": ")?)));
    let (level, message) = level.unwrap_or(("info", text));
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    let to_the_second = crate::text::iso_time(now.as_secs());
    let time = format!("{}.{:03}Z", to_the_second.trim_end_matches('Z'), now.subsec_millis());
    let mut line = serde_json::json!({ "time": time, "level": level, "host": host, "rank": rank, "message": message });
    if let (Some(run), Some(line)) = (run, line.as_object_mut()) {
        line.insert("run".into(), run.into());
    }
    line.to_string()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_json_has_time_level_host_rank_and_message() {
        let writer = Writer { host: "node7".into(), rank: 3 };
        for (text, level, message) in [
            ("warning: \"x\"\nis odd", "warning", "\"x\"\nis odd"),
            ("error: no", "error", "no"),
            ("errors: 3", "info", "errors: 3"),
        ] {
            let line = json(&writer, Some("seed=1"), text);
            let read: serde_json::Value = serde_json::from_str(&line).unwrap();
            assert_eq!((&read["level"], &read["message"]), (&level.into(), &message.into()));
            assert_eq!(read["run"], "seed=1");
            assert_eq!((&read["host"], &read["rank"], line.lines().count()), (&"node7".into(), &3.into(), 1));
            let time = read["time"].as_str().unwrap();
            assert!(time.len() == "2026-11-26T14:00:00.123Z".len() && time.ends_with('Z'), "{time}");
        }
    }
}
