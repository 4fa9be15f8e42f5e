//! Downloads of public data sets: the catalog, and an HTTP downloader that resumes and records SHA-256 checksums.
//!
//! A download grows in `FILE.part`, and `FILE.part.etag` stores the version that the server names. The complete file gets its own name, and
//! its SHA-256 goes into `FILE.sha256`, in the format of `sha256sum -c`.
//!
//! Downloads need the cargo feature `download` (default), which brings an HTTP client with TLS. Without it [`fetch`] checks files that
//! exist, and for missing ones returns [`FetchError::NotBuiltIn`].

pub mod catalog;
mod checksum;
mod error;
mod fetch;
#[cfg(feature = "download")]
mod http;
mod retry;

pub use checksum::Fetched;
pub use error::FetchError;
pub use fetch::fetch;
pub use retry::RetryPolicy;
