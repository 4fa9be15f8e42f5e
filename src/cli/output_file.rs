//! Files that a command writes: what they may replace.

use crate::data::hdf;
use crate::partial::folder_of;
use crate::results::{check_writable, is_file_of_run};
use anyhow::{Context, bail, ensure};
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// What a command writes into a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Content {
    /// Text of any kind, also compressed.
    Text,
    Hdf5,
}

/// Checks that nothing is lost when a command that reads `inputs` writes a file. An existing file may be replaced with `--force`, but not an
/// input, nor a file of a run, nor an HDF5 file by a text.
///
/// # Errors
/// If something would be lost, or `output` is no place for a file.
pub(super) fn check<'a>(
    output: &Path,
    content: Content,
    force: bool,
    inputs: impl IntoIterator<Item = &'a Path>,
) -> anyhow::Result<()> {
    let shown = output.display();
    let exists = is_existing_file(output)?;
    ensure!(!is_file_of_run(output), "{shown}: this is the name of a file of the run in this folder: choose another name");
    if !exists {
        return Ok(());
    }
    let canonical = output.canonicalize().with_context(|| shown.to_string())?;
    for input in inputs {
        // An input that is missing is reported by those who read it.
        let Ok(input) = input.canonicalize() else { continue };
        ensure!(input != canonical, "{shown}: the output would replace this input file: choose another name");
    }
    if content == Content::Text && begins_with(output, &hdf::SIGNATURE) {
        bail!("{shown}: this is an HDF5 file, which is not replaced by a text: choose another name");
    }
    ensure!(force, "{shown}: this file exists; choose another name, or replace it with --force");
    Ok(())
}

/// Whether there is a file; an error if there is something else.
fn is_existing_file(output: &Path) -> anyhow::Result<bool> {
    let shown = output.display();
    let Ok(found) = output.metadata() else { return Ok(false) };
    ensure!(!found.is_dir(), "{shown}: this is a folder; name the file to write");
    ensure!(found.is_file(), "{shown}: this is a device or a pipe, not a file; name the file to write");
    Ok(true)
}

/// Whether a file begins with these bytes.
fn begins_with(path: &Path, bytes: &[u8]) -> bool {
    let mut begin = Vec::new();
    let read = File::open(path).and_then(|file| file.take(bytes.len() as u64).read_to_end(&mut begin));
    read.is_ok() && begin == bytes
}

/// Checks before a long computation that a file can be written after it. An existing file may only be replaced if it is empty or begins with
/// `begin`, as an earlier output of the same kind does.
///
/// # Errors
/// If it cannot.
pub(super) fn check_replaces_same_kind(output: &Path, begin: &str, what: &str) -> anyhow::Result<()> {
    let shown = output.display();
    if is_existing_file(output)? {
        let is_empty = output.metadata().is_ok_and(|found| found.len() == 0);
        ensure!(
            is_empty || begins_with(output, begin.as_bytes()),
            "{shown}: this file is not {what}, so it is not replaced: choose another name"
        );
    }
    let folder = folder_of(output);
    ensure!(folder.is_dir(), "{shown}: there is no folder {}", folder.display());
    check_writable(folder).with_context(|| shown.to_string())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_lost() {
        let folder = tempfile::TempDir::new().unwrap();
        let at = |name: &str| folder.path().join(name);
        let run = at("run");
        std::fs::create_dir(&run).unwrap();
        for name in ["run/result.h5", "run/config.toml", "run/draws.csv", "rows.csv"] {
            std::fs::write(at(name), "x").unwrap();
        }
        std::fs::write(at("data.h5"), hdf::SIGNATURE).unwrap();
        let check = |name: &str, content, force| check(&at(name), content, force, [run.as_path(), &at("rows.csv")]);
        let refused = |name: &str, content, force| check(name, content, force).unwrap_err().to_string();
        assert!(check("new.csv", Content::Text, false).is_ok());
        assert!(check("run/draws.csv", Content::Text, true).is_ok() && check("data.h5", Content::Hdf5, true).is_ok());
        assert!(refused("run/draws.csv", Content::Text, false).contains("--force"));
        assert!(refused("run", Content::Text, true).contains("this is a folder"));
        assert!(refused("rows.csv", Content::Text, true).contains("input file"));
        for name in ["run/result.h5", "run/config.toml", "run/checkpoint.bin"] {
            assert!(refused(name, Content::Hdf5, true).contains("a file of the run"), "{name}");
        }
        assert!([false, true].iter().all(|force| refused("data.h5", Content::Text, *force).contains("HDF5")));
        let device = super::check(Path::new("/dev/null"), Content::Text, true, []).unwrap_err().to_string();
        assert!(device.contains("device"), "{device}");
    }

    #[test]
    fn only_a_former_file_of_its_kind_is_replaced_after_a_computation() {
        let folder = tempfile::TempDir::new().unwrap();
        let at = |name: &str| folder.path().join(name);
        std::fs::write(at("old"), "{begin").unwrap();
        std::fs::write(at("empty"), "").unwrap();
        std::fs::write(at("other"), "begin").unwrap();
        let check = |name: &str| check_replaces_same_kind(&at(name), "{", "a timeline");
        ["new", "old", "empty"].iter().for_each(|name| check(name).unwrap());
        assert!(check("other").unwrap_err().to_string().contains("is not a timeline, so it is not replaced"));
        assert!(check("missing/new").unwrap_err().to_string().contains("there is no folder"));
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 3);
    }
}
