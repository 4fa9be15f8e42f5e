//! Fetching a file: check it if it exists, download it otherwise.

use super::checksum::{Fetched, check};
use super::error::FetchError;
use super::retry::RetryPolicy;
use std::path::Path;

/// Downloads `url` to `target`, or checks the file if it exists. Resumes an interrupted download. `progress` receives the bytes so far and
/// the size of the file, if the server reports it.
///
/// # Errors
/// See [`FetchError`].
#[cfg_attr(not(feature = "download"), allow(unused_variables))]
pub fn fetch(
    url: &str,
    target: &Path,
    retry: RetryPolicy,
    progress: impl FnMut(u64, Option<u64>),
) -> Result<Fetched, FetchError> {
    if target.exists() {
        return check(target);
    }
    #[cfg(feature = "download")]
    return super::http::download(url, target, retry, progress);
    #[cfg(not(feature = "download"))]
    Err(FetchError::NotBuiltIn { url: url.into(), target: target.to_path_buf() })
}
