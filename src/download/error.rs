//! Why a file could not be downloaded or failed its check, and what to do about it.

use std::io;
use std::path::{Path, PathBuf};

/// Why a file could not be fetched.
#[derive(Debug, thiserror::Error)]
pub enum FetchError {
    /// The server refuses the request.
    #[error("{url}: the server answers {status}{}", if matches!(status, 404 | 410) { ": the file is no longer there; look at the home page, or name a mirror with --from" } else { "" })]
    Status {
        /// The address.
        url: String,
        /// The HTTP status.
        status: u16,
    },
    /// The network fails.
    #[error("{url}: {cause} (attempt {attempts}); the part that has arrived is kept, the same command resumes the download")]
    Network {
        /// The address.
        url: String,
        /// The last failure.
        cause: String,
        /// Consecutive attempts without progress.
        attempts: u32,
    },
    /// The URL is malformed.
    #[error("{url}: not a valid URL ({cause}): it must begin with https:// or http://")]
    Address {
        /// What the user typed.
        url: String,
        /// What is wrong with it.
        cause: String,
    },
    /// The server sends more bytes than it announces.
    #[error("{url}: received {got} bytes, but the server announced {announced}; delete {} to start over, or name a mirror with --from", part.display())]
    Length {
        /// The address.
        url: String,
        /// Bytes received.
        got: u64,
        /// Bytes announced.
        announced: u64,
        /// The file with the received bytes.
        part: PathBuf,
    },
    /// The file differs from its recorded checksum.
    #[error(
        "{}: SHA-256 {found}, but {} records {recorded}: the file is damaged, or another version; delete the wrong one of the two",
        path.display(),
        checksum_file.display()
    )]
    Checksum {
        /// The file.
        path: PathBuf,
        /// The file that records its checksum.
        checksum_file: PathBuf,
        /// The recorded checksum.
        recorded: String,
        /// The checksum of the file.
        found: String,
    },
    /// A checksum file is malformed.
    #[error("{}: does not begin with a SHA-256 of 64 hexadecimal digits: delete this file, and it is written again", path.display())]
    MalformedChecksum {
        /// The checksum file.
        path: PathBuf,
    },
    /// Another process downloads the same file.
    #[error("{}: another process is downloading this file", part.display())]
    Busy {
        /// The locked file.
        part: PathBuf,
    },
    /// The disk is full.
    #[error("{}: the disk is full after {written} bytes: free some space and repeat the command, which resumes the download", part.display())]
    Full {
        /// The file.
        part: PathBuf,
        /// Bytes received.
        written: u64,
    },
    /// This program was built without downloads.
    #[error("{}: this mpibayes was built without downloads (cargo feature `download`): fetch {url} by hand", target.display())]
    NotBuiltIn {
        /// The address.
        url: String,
        /// The file to write.
        target: PathBuf,
    },
    /// The operating system refuses.
    #[error("{}: cannot {doing}: {cause}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What was tried.
        doing: &'static str,
        /// Why it failed.
        cause: io::Error,
    },
}

impl FetchError {
    pub(super) fn io(path: &Path, doing: &'static str) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_path_buf();
        move |cause| Self::Io { path, doing, cause }
    }
}
