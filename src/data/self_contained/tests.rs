//! Files that refer to other files are refused, and the same files without such references are opened.

#![allow(clippy::unwrap_used)]

use super::super::hdf;
use super::*;
use hdf5::File;
use std::path::{Path, PathBuf};

/// A folder with `secret.h5`, the file that others try to lead to.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let secret = File::create(folder.path().join("secret.h5")).unwrap();
    secret.new_dataset_builder().with_data(&[1.0, 2.0, 3.0]).create("x").unwrap();
    folder
}

/// A file with a group and two arrays, changed like this.
fn file(folder: &Path, change: impl FnOnce(&File)) -> PathBuf {
    let path = folder.join("file.h5");
    let file = File::create(&path).unwrap();
    file.new_dataset_builder().with_data(&[1.0, 2.0]).create("train/x").unwrap();
    file.new_dataset::<u8>().shape(9).chunk(4).shuffle().deflate(1).create("train/packed").unwrap();
    change(&file);
    path
}

/// Asserts that a file is refused with a message that contains all of this, also for writing.
fn assert_refused(path: &Path, contains: &[&str]) {
    for opened in [hdf::open(path), hdf::open_rw(path)] {
        let Err(Refusal::NotSelfContained(what)) = opened else { unreachable!("{contains:?}: {opened:?}") };
        assert!(contains.iter().all(|part| what.contains(part)), "{what:?} must contain {contains:?}");
    }
}

#[test]
fn ordinary_files_are_opened() {
    let folder = folder();
    let path = file(folder.path(), |_| {});
    assert_eq!(hdf::open(&path).unwrap().dataset("train/x").unwrap().read_raw::<f64>().unwrap(), [1.0, 2.0]);
    drop(hdf::open_rw(&path).unwrap());
}

#[test]
fn links_to_other_files_are_refused_wherever_they_are() {
    let folder = folder();
    for at in ["link", "train/link", "a/b/c/link"] {
        let path = file(folder.path(), |file| {
            file.create_group("a/b/c").unwrap();
            file.link_external("secret.h5", "x", at).unwrap();
        });
        // The library itself follows the link.
        assert_eq!(File::open(&path).unwrap().dataset(at).unwrap().size(), 3);
        assert_refused(&path, &[&format!("its link '{at}' leads to another file"), "import them again"]);
    }
}

#[test]
fn links_inside_of_a_file_are_followed_even_in_circles() {
    let folder = folder();
    let circles = |file: &File| {
        file.link_soft("/train", "soft").unwrap();
        file.link_soft("/nowhere", "dangling").unwrap();
        file.group("train").unwrap().link_hard("/", "up").unwrap();
        file.create_group("other").unwrap().link_hard("/train", "again").unwrap();
    };
    let opened = hdf::open(&file(folder.path(), circles)).unwrap();
    assert_eq!(opened.dataset("soft/up/other/again/x").unwrap().size(), 2);
    opened.close().unwrap();
    // What circles hide is found.
    let hidden = |file: &File| {
        circles(file);
        file.link_external("secret.h5", "x", "train/link").unwrap();
    };
    assert_refused(&file(folder.path(), hidden), &["link'", "another file"]);
}

#[test]
fn values_in_other_files_are_refused() {
    let folder = folder();
    let raw = folder.path().join("raw.bin");
    std::fs::write(&raw, 7.0_f64.to_le_bytes()).unwrap();
    let path = file(folder.path(), |file| {
        file.new_dataset::<f64>().shape(1).external(raw.to_str().unwrap(), 0, 8).create("train/outside").unwrap();
    });
    assert_eq!(File::open(&path).unwrap().dataset("train/outside").unwrap().read_raw::<f64>().unwrap(), [7.0]);
    assert_refused(
        &path,
        &["the values of its array 'train/outside' lie in another file", "Ask for a file that contains its data", "h5repack"],
    );
}

#[test]
fn virtual_datasets_are_refused() {
    let folder = folder();
    let secret = folder.path().join("secret.h5");
    let path = file(folder.path(), |file| {
        let data = file.new_dataset::<f64>().shape(3);
        data.virtual_map(secret.to_str().unwrap(), "x", 3, .., 3, ..).create("train/pieces").unwrap();
    });
    assert_eq!(File::open(&path).unwrap().dataset("train/pieces").unwrap().read_raw::<f64>().unwrap(), [1.0, 2.0, 3.0]);
    assert_refused(
        &path,
        &["its array 'train/pieces' is a virtual dataset", "Ask for a file that contains its data", "h5repack"],
    );
}

#[test]
fn filters_of_plugins_are_refused() {
    let folder = folder();
    let path = file(folder.path(), |_| {});
    let mut bytes = std::fs::read(&path).unwrap();
    // The number of a filter stands eight bytes before its name.
    let at = bytes.windows(8).position(|window| window == b"deflate\0").unwrap() - 8;
    assert_eq!(bytes[at..at + 2], [1, 0]);
    bytes[at..at + 2].copy_from_slice(&32_001_u16.to_le_bytes());
    std::fs::write(&path, bytes).unwrap();
    assert_refused(&path, &["its array 'train/packed' is compressed with the HDF5 filter 32001 (blosc)", "h5repack"]);
}

#[test]
fn names_that_could_be_taken_for_paths_are_refused() {
    let folder = folder();
    let path = file(folder.path(), |file| drop(file.create_group("a_link_inside").unwrap()));
    let mut bytes = std::fs::read(&path).unwrap();
    let at = bytes.windows(13).position(|window| window == b"a_link_inside").unwrap();
    bytes[at + 1] = b'/';
    std::fs::write(&path, bytes).unwrap();
    assert_refused(&path, &["its link 'a/link_inside' has a name that no file of mpibayes has"]);
}

#[test]
fn the_number_of_links_is_bounded() {
    let folder = folder();
    let with_links = |count: usize| {
        file(folder.path(), |file| {
            let group = file.create_group("many").unwrap();
            (0..count).for_each(|link| group.link_soft("/train", &link.to_string()).unwrap());
        })
    };
    // Four links are there before.
    drop(hdf::open(&with_links(MAX_LINKS - 4)).unwrap());
    assert_refused(&with_links(MAX_LINKS - 3), &["more than 65536 links"]);
}

#[test]
fn arrays_that_a_file_cannot_hold_are_refused() {
    let folder = folder();
    let with_array = |rows: usize| {
        file(folder.path(), |file| {
            // Space is reserved when values are written, and none are.
            file.new_dataset::<f64>().chunk((1000, 10)).shape((rows, 10)).create("train/empty").unwrap();
        })
    };
    drop(hdf::open(&with_array(1000)).unwrap());
    for rows in [1 << 20, 1 << 40, usize::MAX / 64] {
        assert_refused(
            &with_array(rows),
            &["its array 'train/empty' has the shape", "which needs ", "but the file has 0 B for it: restore the file"],
        );
    }
}

/// A damaged file may say that its numbers have one byte each, and they are read as longer ones.
#[test]
fn numbers_of_one_byte_count_as_four() {
    let folder = folder();
    let with_bytes = |count: usize| {
        file(folder.path(), |file| {
            file.new_dataset::<u8>().chunk(1000).shape(count).create("train/empty").unwrap();
        })
    };
    drop(hdf::open(&with_bytes(16 << 20)).unwrap());
    assert_refused(&with_bytes((16 << 20) + 1), &["its array 'train/empty' has the shape [16777217], which needs 16.0 MiB"]);
}

#[test]
fn stored_bytes_bound_the_bytes_of_an_array() {
    const MIB: u64 = 1 << 20;
    for (bytes, stored, layout, expected) in [
        (65 * MIB, 0, Layout::Contiguous, false),
        (65 * MIB, 64 * MIB, Layout::Contiguous, false),
        (65 * MIB, 65 * MIB, Layout::Contiguous, true),
        (65 * MIB, 0, Layout::Chunked, false),
        (1100 * MIB, MIB, Layout::Chunked, true),
        (1100 * MIB + 1, MIB, Layout::Chunked, false),
        (u64::MAX, MIB, Layout::Chunked, false),
    ] {
        assert_eq!(is_plausible(bytes, stored, layout), expected, "{bytes} bytes, {stored} stored, {layout:?}");
    }
    assert_eq!((size(&[3, 4], 8), size(&[], 8), size(&[usize::MAX, 0], 8)), (96, 8, 0));
    assert_eq!(size(&[usize::MAX, 4], 8), u64::MAX);
}

/// One-hot tables of bytes are nearly all zeros.
#[test]
fn well_compressed_arrays_are_opened() {
    let folder = folder();
    let path = file(folder.path(), |file| {
        let data =
            file.new_dataset::<u8>().chunk((700, 1000)).shuffle().deflate(1).shape((70_000, 1000)).create("train/zeros").unwrap();
        data.write(ndarray::Array2::<u8>::zeros((70_000, 1000)).view()).unwrap();
    });
    assert!(std::fs::metadata(&path).unwrap().len() < 1 << 20, "70 MB of zeros are compressed more than 60 times");
    assert_eq!(hdf::open(&path).unwrap().dataset("train/zeros").unwrap().size(), 70_000_000);
}

#[test]
fn chunks_that_a_file_cannot_hold_are_refused() {
    let folder = folder();
    let with_rows = |rows: usize| {
        file(folder.path(), |file| {
            file.new_dataset::<f64>().chunk((1 << 20, 10)).shape((rows.., 10)).create("train/large").unwrap();
        })
    };
    assert_refused(&with_rows(1), &["its array 'train/large' has chunks of the shape [1048576, 10], which needs 80.0 MiB"]);
    // No chunk of an empty array is read.
    drop(hdf::open(&with_rows(0)).unwrap());
}

#[test]
fn filters_are_available_and_applied_once() {
    disable_plugins().unwrap();
    let refused = |filters: &[c_int]| match check_filters(filters, "x") {
        Err(Refusal::NotSelfContained(what)) => what,
        other => unreachable!("{other:?}"),
    };
    check_filters(&[2, 1, 3], "x").unwrap();
    assert!(refused(&[1, 2, 1]).contains("its array 'x' has the HDF5 filter 1 (deflate) twice"));
    assert!(refused(&[32_000]).contains("the HDF5 filter 32000 (lzf), which needs a plugin"));
    assert!(refused(&[40_000]).contains("the HDF5 filter 40000, which needs a plugin"));
    // Some builds of the library have no szip.
    assert_eq!(check_filters(&[4], "x").is_ok(), hdf5::filters::szip_available());
}

/// This is what a file looks like if the disk fails.
#[test]
fn files_with_unreadable_objects_are_not_taken_for_other_files() {
    let folder = folder();
    let path = file(folder.path(), |_| {});
    let mut bytes = std::fs::read(&path).unwrap();
    // The signature of the links of a group.
    let places: Vec<usize> = (0..bytes.len() - 4).filter(|&at| &bytes[at..at + 4] == b"SNOD").collect();
    places.iter().for_each(|&at| bytes[at] = b'X');
    std::fs::write(&path, bytes).unwrap();
    let Err(Refusal::Unchecked(error)) = hdf::open(&path) else { unreachable!("{} groups are damaged", places.len()) };
    let message = error.to_string();
    assert!(message.starts_with("its object '/' cannot be read: ") && message.contains(". Try again. "), "{message}");
}
