//! SHA-256 checksums of downloaded files, recorded in `FILE.sha256` in the format of `sha256sum`.

use super::error::FetchError;
use sha2::{Digest, Sha256};
use std::ffi::OsString;
use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// What [`fetch`](super::fetch) found or did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fetched {
    /// The file existed; no checksum is recorded for it.
    Existing,
    /// The file existed and matches its recorded checksum.
    Verified,
    /// The file was downloaded; this SHA-256 is now recorded.
    Downloaded(String),
}

/// The path with a suffix appended: `FILE` becomes `FILE.part`.
pub(super) fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name: OsString = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

/// Compares an existing file with its recorded checksum, if there is one.
///
/// # Errors
/// When the file cannot be read or differs.
pub(super) fn check(path: &Path) -> Result<Fetched, FetchError> {
    if recorded(path)?.is_none() {
        return Ok(Fetched::Existing);
    }
    checked_sha256(path, path).map(|_| Fetched::Verified)
}

/// The SHA-256 of a file, which must equal the one recorded for `target`, if there is one.
pub(super) fn checked_sha256(file: &Path, target: &Path) -> Result<String, FetchError> {
    let found = sha256(file)?;
    match recorded(target)? {
        Some(recorded) if recorded != found => {
            Err(FetchError::Checksum { path: file.to_path_buf(), checksum_file: with_suffix(target, ".sha256"), recorded, found })
        }
        _ => Ok(found),
    }
}

/// The checksum recorded for a file.
pub(super) fn recorded(path: &Path) -> Result<Option<String>, FetchError> {
    let path = with_suffix(path, ".sha256");
    let text = match fs::read(&path) {
        Ok(text) => String::from_utf8_lossy(&text).into_owned(),
        Err(cause) if cause.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(cause) => return Err(FetchError::io(&path, "read")(cause)),
    };
    match text.split_whitespace().next() {
        Some(digits) if digits.len() == 64 && digits.bytes().all(|digit| digit.is_ascii_hexdigit()) => {
            Ok(Some(digits.to_ascii_lowercase()))
        }
        _ => Err(FetchError::MalformedChecksum { path }),
    }
}

fn sha256(path: &Path) -> Result<String, FetchError> {
    let mut digest = Sha256::new();
    let mut file = File::open(path).map_err(FetchError::io(path, "open"))?;
    let mut block = vec![0; 1 << 16];
    loop {
        match file.read(&mut block) {
            Ok(0) => break,
            Ok(count) => digest.update(&block[..count]),
            Err(cause) if cause.kind() == io::ErrorKind::Interrupted => {}
            Err(cause) => return Err(FetchError::io(path, "read")(cause)),
        }
    }
    let mut text = String::new();
    for byte in digest.finalize() {
        // Writing into a string cannot fail.
        let _ = write!(text, "{byte:02x}");
    }
    Ok(text)
}
