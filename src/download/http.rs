//! HTTP downloads that resume where they were interrupted.

use super::checksum::{Fetched, check, checked_sha256, recorded, with_suffix};
use super::error::FetchError;
use super::retry::RetryPolicy;
use std::fs::{self, File, TryLockError};
use std::io::{ErrorKind, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;
use ureq::http::{Response, StatusCode, header};
use ureq::{Agent, Body};

/// Downloads `url` to `target`, which does not exist.
pub(super) fn download(
    url: &str,
    target: &Path,
    retry: RetryPolicy,
    mut progress: impl FnMut(u64, Option<u64>),
) -> Result<Fetched, FetchError> {
    let path = with_suffix(target, ".part");
    let file = File::options()
        .create(true)
        .truncate(false)
        .read(true)
        .write(true)
        .open(&path)
        .map_err(FetchError::io(&path, "create"))?;
    match file.try_lock() {
        Err(TryLockError::WouldBlock) => return Err(FetchError::Busy { part: path }),
        // Some file systems have no locks.
        Ok(()) | Err(TryLockError::Error(_)) => {}
    }
    // Another download may have renamed this file to the target before it released the lock.
    if target.exists() {
        let _ = fs::remove_file(&path);
        return check(target);
    }
    let received = file.metadata().map_err(FetchError::io(&path, "read"))?.len();
    let mut part = PartialDownload { file, etag: with_suffix(&path, ".etag"), path, received };
    part.download(url, retry, &mut progress)?;
    part.file.sync_all().map_err(FetchError::io(&part.path, "finish"))?;
    let checksum = checked_sha256(&part.path, target)?;
    if recorded(target)?.is_none() {
        let name = target.file_name().map_or_else(Default::default, |name| name.to_string_lossy().into_owned());
        let path = with_suffix(target, ".sha256");
        fs::write(&path, format!("{checksum}  {name}\n")).map_err(FetchError::io(&path, "write"))?;
    }
    // `rename` would replace a file that another program wrote in the meantime.
    if target.exists() {
        let _ = fs::remove_file(&part.etag);
        let _ = fs::remove_file(&part.path);
        return check(target);
    }
    fs::rename(&part.path, target).map_err(FetchError::io(target, "finish"))?;
    // Without an ETag there is no such file.
    let _ = fs::remove_file(&part.etag);
    Ok(Fetched::Downloaded(checksum))
}

/// A file that is being downloaded.
struct PartialDownload {
    file: File,
    path: PathBuf,
    /// The file that stores the version (ETag) of the bytes received so far.
    etag: PathBuf,
    received: u64,
}

/// How an attempt ended.
enum Attempt {
    Complete,
    /// Another attempt may succeed.
    Retry(String),
    Fatal(FetchError),
}

impl PartialDownload {
    fn download(&mut self, url: &str, retry: RetryPolicy, progress: &mut impl FnMut(u64, Option<u64>)) -> Result<(), FetchError> {
        let timeout = Some(retry.timeout);
        let config = Agent::config_builder()
            .http_status_as_error(false)
            .accept_encoding("identity")
            .user_agent(concat!("mpibayes/", env!("CARGO_PKG_VERSION")))
            .timeout_connect(Some(retry.timeout.min(Duration::from_secs(30))))
            .timeout_resolve(timeout)
            .timeout_recv_response(timeout)
            .timeout_per_read(timeout);
        let agent = Agent::new_with_config(config.build());
        // Progress means more bytes than ever before: a server that cannot resume starts over at each attempt.
        let (mut failures, mut most) = (0, self.received);
        loop {
            let cause = match self.attempt(&agent, url, progress) {
                Attempt::Complete => return Ok(()),
                Attempt::Fatal(error) => return Err(error),
                Attempt::Retry(cause) => cause,
            };
            failures = if self.received > most { 1 } else { failures + 1 };
            most = most.max(self.received);
            if failures >= retry.attempts {
                return Err(FetchError::Network { url: url.into(), cause, attempts: failures });
            }
            std::thread::sleep(retry.wait.saturating_mul(1 << (failures - 1).min(6)));
        }
    }

    fn attempt(&mut self, agent: &Agent, url: &str, progress: &mut impl FnMut(u64, Option<u64>)) -> Attempt {
        let mut request = agent.get(url);
        // Without a version the file may have changed in between, and the download starts over.
        if self.received > 0
            && let Ok(etag) = fs::read_to_string(&self.etag)
        {
            request = request.header(header::RANGE, format!("bytes={}-", self.received)).header(header::IF_RANGE, etag);
        }
        let response = match request.call() {
            Ok(response) => response,
            Err(cause @ (ureq::Error::BadUri(_) | ureq::Error::Http(_) | ureq::Error::InvalidProxyUrl)) => {
                return Attempt::Fatal(FetchError::Address { url: url.into(), cause: cause.to_string() });
            }
            Err(cause) => return Attempt::Retry(cause.to_string()),
        };
        let announced = match response.status() {
            StatusCode::PARTIAL_CONTENT => match content_range(&response) {
                Some((Some(start), total)) if start == self.received => total,
                _ => return self.start_over("the server sent a range that was not requested"),
            },
            StatusCode::OK => {
                if let Err(error) = self.clear() {
                    return Attempt::Fatal(error);
                }
                let length = response.headers().get(header::CONTENT_LENGTH);
                length.and_then(|length| length.to_str().ok()).and_then(|length| length.parse().ok())
            }
            // All bytes were received before, or the file has become shorter.
            StatusCode::RANGE_NOT_SATISFIABLE if self.received > 0 => {
                return match content_range(&response) {
                    Some((None, Some(total))) if total == self.received => Attempt::Complete,
                    _ => self.start_over("the received part is longer than the file is now"),
                };
            }
            status if status.is_server_error() || status == StatusCode::TOO_MANY_REQUESTS => {
                return Attempt::Retry(format!("the server answers {status}"));
            }
            status => return Attempt::Fatal(FetchError::Status { url: url.into(), status: status.as_u16() }),
        };
        if self.received == 0
            && let Some(etag) = response.headers().get(header::ETAG).and_then(|etag| etag.to_str().ok())
            // A weak ETag does not identify bytes.
            && !etag.starts_with("W/")
            && let Err(cause) = fs::write(&self.etag, etag)
        {
            return Attempt::Fatal(FetchError::io(&self.etag, "write")(cause));
        }
        self.receive(url, response, announced, progress)
    }

    /// Writes the body of a response.
    fn receive(
        &mut self,
        url: &str,
        response: Response<Body>,
        announced: Option<u64>,
        progress: &mut impl FnMut(u64, Option<u64>),
    ) -> Attempt {
        let mut body = response.into_body().into_reader();
        if let Err(cause) = self.file.seek(SeekFrom::Start(self.received)) {
            return Attempt::Fatal(FetchError::io(&self.path, "write")(cause));
        }
        let mut block = vec![0; 1 << 16];
        loop {
            progress(self.received, announced);
            let count = match body.read(&mut block) {
                Ok(0) => break,
                Ok(count) => count,
                Err(cause) if cause.kind() == ErrorKind::Interrupted => continue,
                Err(cause) => return Attempt::Retry(format!("interrupted after {} bytes ({cause})", self.received)),
            };
            if let Err(cause) = self.file.write_all(&block[..count]) {
                // Drop the incomplete block.
                let _ = self.file.set_len(self.received);
                let full = matches!(cause.kind(), ErrorKind::StorageFull | ErrorKind::QuotaExceeded);
                return Attempt::Fatal(if full {
                    FetchError::Full { part: self.path.clone(), written: self.received }
                } else {
                    FetchError::io(&self.path, "write")(cause)
                });
            }
            self.received += count as u64;
        }
        match announced {
            Some(announced) if self.received < announced => {
                Attempt::Retry(format!("interrupted after {} of {announced} bytes", self.received))
            }
            Some(announced) if self.received > announced => {
                Attempt::Fatal(FetchError::Length { url: url.into(), got: self.received, announced, part: self.path.clone() })
            }
            _ => Attempt::Complete,
        }
    }

    /// Discards the bytes received so far.
    fn clear(&mut self) -> Result<(), FetchError> {
        self.file.set_len(0).map_err(FetchError::io(&self.path, "write"))?;
        self.received = 0;
        // Without an ETag there is no such file.
        let _ = fs::remove_file(&self.etag);
        Ok(())
    }

    fn start_over(&mut self, cause: &str) -> Attempt {
        match self.clear() {
            Ok(()) => Attempt::Retry(cause.into()),
            Err(error) => Attempt::Fatal(error),
        }
    }
}

/// The first byte of the content, and the size of the whole file: `bytes 5-9/10`, `bytes */10`, `bytes 5-9/*`.
fn content_range(response: &Response<Body>) -> Option<(Option<u64>, Option<u64>)> {
    let text = response.headers().get(header::CONTENT_RANGE)?.to_str().ok()?;
    let (range, total) = text.strip_prefix("bytes ")?.split_once('/')?;
    let start = range.split_once('-').and_then(|(start, _)| start.trim().parse().ok());
    Some((start, total.trim().parse().ok()))
}
