//! Lines on standard error: as text, or as a line of JSON each for programs that collect logs.

use std::io::Write;
use std::sync::OnceLock;

/// Set if lines are JSON: who writes them.
static WRITER: OnceLock<Writer> = OnceLock::new();
/// Set if errors have the date, the time and perhaps the host, as other lines of a log in text have.
static HOST_IN_ERRORS: OnceLock<Option<String>> = OnceLock::new();

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

/// From now on, errors of this process have the date and the time, and this host if there is one.
pub fn date_errors(host: Option<String>) {
    // Only the first call of a process counts.
    drop(HOST_IN_ERRORS.set(host));
}

/// What a line of a log in text begins with: the date, the time and perhaps the host.
pub fn prefix(host: Option<&str>) -> String {
    match host {
        None => format!("{} ", local_time()),
        Some(host) => format!("{} {host} ", local_time()),
    }
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
        None => {
            let prefix = HOST_IN_ERRORS.get().map(|host| prefix(host.as_deref())).unwrap_or_default();
            format!("mpibayes: {prefix}{text}\n")
        }
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

/// The date and the time where this process runs: `2026-11-25 07:12:33`.
fn local_time() -> String {
    let mut text = [0_u8; 32];
    // SAFETY: all zeros are a valid `tm`, the calls write at most to it and to the buffer of the given length, and the format is a C string.
    let length = unsafe {
        let now = libc::time(std::ptr::null_mut());
        let mut fields: libc::tm = std::mem::zeroed();
        libc::localtime_r(&raw const now, &raw mut fields);
        libc::strftime(text.as_mut_ptr().cast(), text.len(), c"%Y-%m-%d %H:%M:%S".as_ptr(), &raw const fields)
    };
    String::from_utf8_lossy(&text[..length.min(text.len())]).into_owned()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_log_has_the_time_and_the_host() {
        let time = local_time();
        let digits = time.chars().filter(char::is_ascii_digit).count();
        assert_eq!((time.len(), digits, &time[10..11]), (19, 14, " "), "{time}");
        assert_eq!(prefix(Some("node7")).len(), prefix(None).len() + 6);
        assert!(prefix(Some("node7")).ends_with(" node7 "));
    }

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
