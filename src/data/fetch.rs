//! Downloads over HTTP that go on where they were cut off, and files whose checksum is written down when they first arrive.
//!
//! A download grows in `FILE.part`, beside it `FILE.part.etag` if the server names versions; in the end it gets its name, and its SHA-256
//! goes into `FILE.sha256`, in the form that `sha256sum -c` reads.

use sha2::{Digest, Sha256};
use std::ffi::OsString;
use std::fmt::Write as _;
use std::fs::{self, File, TryLockError};
use std::io::{self, ErrorKind, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;
use ureq::http::{Response, StatusCode, header};
use ureq::{Agent, Body};

/// How patient a download is.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    /// Attempts in a row that bring nothing before it gives up.
    pub attempts: u32,
    /// The wait before the second of them; it doubles from one to the next.
    pub wait: Duration,
    /// The longest silence of a server.
    pub silence: Duration,
}

impl Default for Patience {
    fn default() -> Self {
        Self { attempts: 5, wait: Duration::from_secs(1), silence: Duration::from_secs(60) }
    }
}

/// Why a file could not be had.
#[derive(Debug, thiserror::Error)]
pub enum FetchError {
    /// The server has no such file, or does not give it.
    #[error("{url}: the server says {status}{}", if *status == 404 || *status == 410 { ": the file is not there any more; look at the home page, or name a mirror with --from" } else { "" })]
    Status {
        /// The address.
        url: String,
        /// The HTTP status.
        status: u16,
    },
    /// The network.
    #[error("{url}: {cause} (at attempt {attempts}); what has arrived is kept, the same command goes on with it")]
    Network {
        /// The address.
        url: String,
        /// What was wrong at last.
        cause: String,
        /// How often in a row.
        attempts: u32,
    },
    /// The address is none.
    #[error("{url}: this is no address that can be fetched ({cause}): it must begin with https:// or http://")]
    Address {
        /// What was typed.
        url: String,
        /// What is wrong.
        cause: String,
    },
    /// The server contradicts itself.
    #[error("{url}: {got} bytes came, but the server promised {promised}; delete {} to begin anew, or name a mirror with --from", part.display())]
    Length {
        /// The address.
        url: String,
        /// Bytes that came.
        got: u64,
        /// Bytes that were promised.
        promised: u64,
        /// Where they are.
        part: PathBuf,
    },
    /// The file is not what it was.
    #[error(
        "{}: SHA-256 {found}, but {} says {pinned}: the file is damaged, or another version; delete the one that is wrong",
        path.display(),
        pin.display()
    )]
    Checksum {
        /// The file.
        path: PathBuf,
        /// Where its checksum is written down.
        pin: PathBuf,
        /// What is written there.
        pinned: String,
        /// What it has.
        found: String,
    },
    /// A checksum file that is none.
    #[error("{}: this does not begin with a SHA-256 of 64 digits: delete it to have it written anew", path.display())]
    NoChecksum {
        /// The file.
        path: PathBuf,
    },
    /// Somebody else is at it.
    #[error("{}: another process is fetching this file", part.display())]
    Busy {
        /// The part that is locked.
        part: PathBuf,
    },
    /// The disk is full.
    #[error("{}: the disk is full after {written} bytes: make room, and the same command goes on", part.display())]
    Full {
        /// The file.
        part: PathBuf,
        /// What has arrived.
        written: u64,
    },
    /// The operating system refused.
    #[error("{}: cannot {doing}: {cause}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What was tried.
        doing: &'static str,
        /// Why not.
        cause: io::Error,
    },
}

fn refused(path: &Path, doing: &'static str) -> impl FnOnce(io::Error) -> FetchError {
    let path = path.to_path_buf();
    move |cause| FetchError::Io { path, doing, cause }
}

/// How a file came to be where it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Had {
    /// It was there, and nobody has written its checksum down.
    There,
    /// It was there, and has the checksum that was written down.
    Checked,
    /// It was downloaded, and has this SHA-256, which is now written down.
    Fetched(String),
}

fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name: OsString = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

/// A file that is there: compared with its checksum if that is written down. Nothing is written.
///
/// # Errors
/// When it cannot be read, or is not what it was.
pub fn check(path: &Path) -> Result<Had, FetchError> {
    let Some(pinned) = pinned(path)? else { return Ok(Had::There) };
    match sha256(path)? {
        found if found == pinned => Ok(Had::Checked),
        found => Err(FetchError::Checksum { path: path.to_path_buf(), pin: beside(path, ".sha256"), pinned, found }),
    }
}

/// The checksum that is written down for a file.
fn pinned(path: &Path) -> Result<Option<String>, FetchError> {
    let pin = beside(path, ".sha256");
    let text = match fs::read(&pin) {
        Ok(text) => String::from_utf8_lossy(&text).into_owned(),
        Err(cause) if cause.kind() == ErrorKind::NotFound => return Ok(None),
        Err(cause) => return Err(refused(&pin, "read")(cause)),
    };
    match text.split_whitespace().next() {
        Some(digits) if digits.len() == 64 && digits.bytes().all(|digit| digit.is_ascii_hexdigit()) => {
            Ok(Some(digits.to_ascii_lowercase()))
        }
        _ => Err(FetchError::NoChecksum { path: pin }),
    }
}

fn sha256(path: &Path) -> Result<String, FetchError> {
    let mut file = File::open(path).map_err(refused(path, "open"))?;
    let mut digest = Sha256::new();
    let mut block = vec![0; 1 << 16];
    loop {
        match file.read(&mut block) {
            Ok(0) => break,
            Ok(count) => digest.update(&block[..count]),
            Err(cause) if cause.kind() == ErrorKind::Interrupted => {}
            Err(cause) => return Err(refused(path, "read")(cause)),
        }
    }
    let mut text = String::new();
    for byte in digest.finalize() {
        // Writing into a string cannot fail.
        let _ = write!(text, "{byte:02x}");
    }
    Ok(text)
}

/// Downloads `url` as `target`, unless it is there already, which is then checked. Goes on with what an earlier attempt left.
/// `progress` is told how many bytes there are, and of how many, if the server says.
///
/// # Errors
/// See [`FetchError`].
pub fn fetch(
    url: &str,
    target: &Path,
    patience: Patience,
    mut progress: impl FnMut(u64, Option<u64>),
) -> Result<Had, FetchError> {
    if target.exists() {
        return check(target);
    }
    let path = beside(target, ".part");
    let file =
        File::options().create(true).truncate(false).read(true).write(true).open(&path).map_err(refused(&path, "create"))?;
    match file.try_lock() {
        Err(TryLockError::WouldBlock) => return Err(FetchError::Busy { part: path }),
        // Not every file system has locks.
        Ok(()) | Err(TryLockError::Error(_)) => {}
    }
    let have = file.metadata().map_err(refused(&path, "read"))?.len();
    let mut part = Part { file, etag: beside(&path, ".etag"), path, have };
    part.download(url, patience, &mut progress)?;
    part.file.sync_all().map_err(refused(&part.path, "finish"))?;
    let found = sha256(&part.path)?;
    let pin = beside(target, ".sha256");
    match pinned(target)? {
        Some(pinned) if pinned != found => return Err(FetchError::Checksum { path: part.path, pin, pinned, found }),
        Some(_) => {}
        None => {
            let name = target.file_name().map_or_else(Default::default, |name| name.to_string_lossy().into_owned());
            fs::write(&pin, format!("{found}  {name}\n")).map_err(refused(&pin, "write"))?;
        }
    }
    // Never over a file that has come from elsewhere in the meantime, which a plain renaming would replace.
    if target.exists() {
        return check(target);
    }
    fs::rename(&part.path, target).map_err(refused(target, "finish"))?;
    // It may never have been there.
    let _ = fs::remove_file(&part.etag);
    Ok(Had::Fetched(found))
}

/// A download that is under way.
struct Part {
    file: File,
    path: PathBuf,
    etag: PathBuf,
    have: u64,
}

/// What an attempt came to, if it came to no end.
enum Attempt {
    Complete,
    /// Worth another.
    Failed(String),
    Hopeless(FetchError),
}

impl Part {
    fn download(&mut self, url: &str, patience: Patience, progress: &mut impl FnMut(u64, Option<u64>)) -> Result<(), FetchError> {
        let silence = Some(patience.silence);
        let config = Agent::config_builder()
            .http_status_as_error(false)
            .accept_encoding("identity")
            .user_agent(concat!("mpibayes/", env!("CARGO_PKG_VERSION")))
            .timeout_connect(Some(patience.silence.min(Duration::from_secs(30))))
            .timeout_resolve(silence)
            .timeout_recv_response(silence)
            .timeout_per_read(silence);
        let agent = Agent::new_with_config(config.build());
        // An attempt brings something if there is more afterwards than ever before: a server that cannot go on begins anew each time.
        let (mut failures, mut most) = (0, self.have);
        loop {
            let cause = match self.attempt(&agent, url, progress) {
                Attempt::Complete => return Ok(()),
                Attempt::Hopeless(error) => return Err(error),
                Attempt::Failed(cause) => cause,
            };
            failures = if self.have > most { 1 } else { failures + 1 };
            most = most.max(self.have);
            if failures >= patience.attempts {
                return Err(FetchError::Network { url: url.into(), cause, attempts: failures });
            }
            std::thread::sleep(patience.wait.saturating_mul(1 << (failures - 1).min(6)));
        }
    }

    fn attempt(&mut self, agent: &Agent, url: &str, progress: &mut impl FnMut(u64, Option<u64>)) -> Attempt {
        let mut request = agent.get(url);
        // Without a name of the version nothing tells whether the file has changed in between: it comes anew.
        if self.have > 0
            && let Ok(etag) = fs::read_to_string(&self.etag)
        {
            request = request.header(header::RANGE, format!("bytes={}-", self.have)).header(header::IF_RANGE, etag);
        }
        let response = match request.call() {
            Ok(response) => response,
            Err(cause @ (ureq::Error::BadUri(_) | ureq::Error::Http(_) | ureq::Error::InvalidProxyUrl)) => {
                return Attempt::Hopeless(FetchError::Address { url: url.into(), cause: cause.to_string() });
            }
            Err(cause) => return Attempt::Failed(cause.to_string()),
        };
        let promised = match response.status() {
            StatusCode::PARTIAL_CONTENT => match content_range(&response) {
                Some((Some(start), total)) if start == self.have => total,
                _ => return self.anew("the server sent another part of the file than was asked for"),
            },
            StatusCode::OK => {
                if let Err(error) = self.clear() {
                    return Attempt::Hopeless(error);
                }
                let length = response.headers().get(header::CONTENT_LENGTH);
                length.and_then(|length| length.to_str().ok()).and_then(|length| length.parse().ok())
            }
            // All of it was there already, or more than there is.
            StatusCode::RANGE_NOT_SATISFIABLE if self.have > 0 => {
                return match content_range(&response) {
                    Some((None, Some(total))) if total == self.have => Attempt::Complete,
                    _ => self.anew("what had arrived was longer than the file is now"),
                };
            }
            status if status.is_server_error() || status == StatusCode::TOO_MANY_REQUESTS => {
                return Attempt::Failed(format!("the server says {status}"));
            }
            status => return Attempt::Hopeless(FetchError::Status { url: url.into(), status: status.as_u16() }),
        };
        if self.have == 0
            && let Some(etag) = response.headers().get(header::ETAG).and_then(|etag| etag.to_str().ok())
            // A weak one names no bytes.
            && !etag.starts_with("W/")
            && let Err(cause) = fs::write(&self.etag, etag)
        {
            return Attempt::Hopeless(refused(&self.etag, "write")(cause));
        }
        self.take(url, response, promised, progress)
    }

    /// Writes what comes.
    fn take(
        &mut self,
        url: &str,
        response: Response<Body>,
        promised: Option<u64>,
        progress: &mut impl FnMut(u64, Option<u64>),
    ) -> Attempt {
        let mut body = response.into_body().into_reader();
        if let Err(cause) = self.file.seek(SeekFrom::Start(self.have)) {
            return Attempt::Hopeless(refused(&self.path, "write")(cause));
        }
        let mut block = vec![0; 1 << 16];
        loop {
            progress(self.have, promised);
            let count = match body.read(&mut block) {
                Ok(0) => break,
                Ok(count) => count,
                Err(cause) if cause.kind() == ErrorKind::Interrupted => continue,
                Err(cause) => return Attempt::Failed(format!("cut off after {} bytes ({cause})", self.have)),
            };
            if let Err(cause) = self.file.write_all(&block[..count]) {
                // What is not whole is cut off again.
                let _ = self.file.set_len(self.have);
                let full = matches!(cause.kind(), ErrorKind::StorageFull | ErrorKind::QuotaExceeded);
                return Attempt::Hopeless(if full {
                    FetchError::Full { part: self.path.clone(), written: self.have }
                } else {
                    refused(&self.path, "write")(cause)
                });
            }
            self.have += count as u64;
        }
        match promised {
            Some(promised) if self.have < promised => Attempt::Failed(format!("cut off after {} of {promised} bytes", self.have)),
            Some(promised) if self.have > promised => {
                Attempt::Hopeless(FetchError::Length { url: url.into(), got: self.have, promised, part: self.path.clone() })
            }
            _ => Attempt::Complete,
        }
    }

    /// Forgets what has arrived.
    fn clear(&mut self) -> Result<(), FetchError> {
        self.file.set_len(0).map_err(refused(&self.path, "write"))?;
        self.have = 0;
        // It may not be there.
        let _ = fs::remove_file(&self.etag);
        Ok(())
    }

    fn anew(&mut self, why: &str) -> Attempt {
        match self.clear() {
            Ok(()) => Attempt::Failed(why.into()),
            Err(error) => Attempt::Hopeless(error),
        }
    }
}

/// Where the content begins, and how long the whole file is: `bytes 5-9/10`, `bytes */10`, `bytes 5-9/*`.
fn content_range(response: &Response<Body>) -> Option<(Option<u64>, Option<u64>)> {
    let text = response.headers().get(header::CONTENT_RANGE)?.to_str().ok()?;
    let (range, total) = text.strip_prefix("bytes ")?.split_once('/')?;
    let start = range.split_once('-').and_then(|(start, _)| start.trim().parse().ok());
    Some((start, total.trim().parse().ok()))
}
