//! Every kind of file passes as it was imported, and a changed bit in any of its arrays is found.

#![allow(clippy::unwrap_used)]

use super::super::corpus::{BagFormat, Corpus, CorpusImport, Input, TestSize, import_corpus};
use super::super::*;
use super::Verified;
use crate::random::Seed;
use hdf5::types::{FloatSize, IntSize, TypeDescriptor};
use std::path::{Path, PathBuf};

/// A folder with an imported file `out.h5`.
struct Imported(tempfile::TempDir);

impl Imported {
    fn new(import: impl FnOnce(&Path, &Path)) -> Self {
        let folder = tempfile::tempdir().unwrap();
        import(folder.path(), &folder.path().join("out.h5"));
        Self(folder)
    }

    fn path(&self) -> PathBuf {
        self.0.path().join("out.h5")
    }
}

fn verify(path: &Path) -> Result<Verified> {
    let mut last = 0;
    let mut report = |bytes| {
        assert!(bytes >= last);
        last = bytes;
    };
    match Corpus::is_corpus(path) {
        true => Corpus::open(path)?.verify(&mut report),
        false => Dataset::open(path)?.verify(&mut report),
    }
}

/// The names of all arrays.
fn arrays(path: &Path) -> Vec<String> {
    let file = hdf5::File::open(path).unwrap();
    let groups = file.groups().unwrap();
    groups.iter().flat_map(|group| group.datasets().unwrap()).map(|data| data.name()).collect()
}

/// Flips the lowest bit of the value of an array at an index, or of the last one; appends a blank to a text.
fn flip(path: &Path, array: &str, at: usize) {
    fn change<T: hdf5::H5Type + Clone>(data: &hdf5::Dataset, at: usize, change: impl FnOnce(&T) -> T) {
        let mut values = data.read_dyn::<T>().unwrap();
        let value = values.iter_mut().nth(at).unwrap();
        *value = change(value);
        data.write(values.view()).unwrap();
    }
    let file = hdf5::File::open_rw(path).unwrap();
    let data = file.dataset(array).unwrap();
    let at = at.min(data.size() - 1);
    match data.dtype().unwrap().to_descriptor().unwrap() {
        TypeDescriptor::Unsigned(IntSize::U1) => change(&data, at, |value: &u8| value ^ 1),
        TypeDescriptor::Unsigned(IntSize::U4) => change(&data, at, |value: &u32| value ^ 1),
        TypeDescriptor::Unsigned(IntSize::U8) => change(&data, at, |value: &u64| value ^ 1),
        TypeDescriptor::Float(FloatSize::U4) => change(&data, at, |value: &f32| f32::from_bits(value.to_bits() ^ 1)),
        TypeDescriptor::Float(FloatSize::U8) => change(&data, at, |value: &f64| f64::from_bits(value.to_bits() ^ 1)),
        TypeDescriptor::VarLenUnicode => {
            let changed = |text: &hdf5::types::VarLenUnicode| format!("{text} ").parse().unwrap();
            change(&data, at, changed);
        }
        other => unreachable!("{array} is of the type {other:?}"),
    }
}

fn table(import: impl FnOnce(TableImport) -> TableImport + 'static) -> Imported {
    Imported::new(|folder, output| {
        let file = folder.join("x.csv");
        let row = |row: u32| format!("{},{}.5,{},{}\n", row % 7, row * 3 % 11, ["n", "s"][row as usize % 2], row % 3);
        std::fs::write(&file, format!("a,b,c,y\n{}", (0..50).map(row).collect::<String>())).unwrap();
        let columns = ColumnOptions { categorical: vec![Column::Name("c".into())], ..ColumnOptions::default() };
        let plain = TableImport {
            train: vec![file],
            test: TestRows::Fraction(0.2, Seed(1)),
            task: Task::Classification,
            layout: TableLayout::default(),
            columns,
            scaling: Scaling::Standardize,
        };
        import_table(&import(plain), output).unwrap();
    })
}

fn images() -> Imported {
    Imported::new(|folder, output| {
        let (images, labels) = (folder.join("x"), folder.join("y"));
        let pixels: Vec<u8> = (0..40 * 6).map(|at| (at * 7 % 256) as u8).collect();
        std::fs::write(&images, [&[0, 0, 8, 3, 0, 0, 0, 40, 0, 0, 0, 2, 0, 0, 0, 3], &pixels[..]].concat()).unwrap();
        std::fs::write(
            &labels,
            [&[0, 0, 8, 1, 0, 0, 0, 40], &pixels[..40].iter().map(|x| x % 3).collect::<Vec<_>>()[..]].concat(),
        )
        .unwrap();
        import_idx(&IdxPair { images, labels }, None, Scaling::Pixels, output).unwrap();
    })
}

/// Sparse rows, whose values need double precision or not.
fn sparse(value: &'static str) -> Imported {
    Imported::new(|folder, output| {
        let train = folder.join("x");
        let row = |row: u32| format!("{} {}:{} {}:{value}\n", row % 3, row % 5 + 1, row + 1, row % 4 + 6);
        std::fs::write(&train, (0..40).map(row).collect::<String>()).unwrap();
        let (test, task, scaling) = (TestRows::Fraction(0.2, Seed(3)), Task::Regression, Scaling::MaxAbs);
        import_libsvm(&LibsvmImport { train, test, task, features: None, scaling }, output).unwrap();
    })
}

fn documents() -> Imported {
    Imported::new(|folder, output| {
        let (documents, vocabulary) = (folder.join("x"), folder.join("v"));
        let document = |row: u32| format!("3 {}:{} {}:1 {}:2\n", row % 4, row + 1, 4 + row % 3, 7 + row % 5);
        std::fs::write(&documents, (0..40).map(document).collect::<String>()).unwrap();
        std::fs::write(&vocabulary, (0..12).map(|word| format!("word{word}\n")).collect::<String>()).unwrap();
        let input = Input::Counted { documents, format: BagFormat::LdaC, vocabulary: Some(vocabulary) };
        let import = CorpusImport { input, held_out: TestSize::Share(0.3), scored_share: 0.3, seed: Seed(3) };
        import_corpus(&import, output).unwrap();
    })
}

/// Asserts that a file passes, that it does not after a change of any array, and that it has these arrays.
fn assert_covered(imported: &Imported, has: &[&str]) {
    let path = imported.path();
    let verified = verify(&path).unwrap();
    assert!(verified.uncovered.is_none() && verified.bytes > 0);
    let arrays = arrays(&path);
    assert!(has.iter().all(|name| arrays.iter().any(|array| array == name)), "{arrays:?} must contain {has:?}");
    let whole = std::fs::read(&path).unwrap();
    for array in &arrays {
        for at in [0, 3, usize::MAX] {
            flip(&path, array, at);
            let error = verify(&path).unwrap_err().to_string();
            assert!(error.contains("out.h5") && !error.contains('\n'), "{array}: {error}");
            std::fs::write(&path, &whole).unwrap();
        }
    }
    verify(&path).unwrap();
}

#[test]
fn changes_of_tables_are_found() {
    let has = ["/train/x", "/train/y", "/test/x", "/test/y", "/features/scale", "/features/offset", "/features/name"];
    assert_covered(&table(|import| import), &[&has[..], &["/features/recipe", "/classes/name"]].concat());
    let regression = |import| TableImport { task: Task::Regression, scaling: Scaling::Principal, ..import };
    assert_covered(&table(regression), &[&has[..], &["/features/rotation", "/targets/scale", "/targets/offset"]].concat());
    assert_covered(&table(|import| TableImport { task: Task::Counts, ..import }), &has);
}

#[test]
fn changes_of_images_are_found() {
    assert_covered(&images(), &["/train/x", "/train/y", "/features/scale", "/classes/name"]);
}

#[test]
fn changes_of_sparse_rows_are_found() {
    for value in ["0.5", "0.1"] {
        let has = ["/train/indptr", "/train/indices", "/train/values", "/test/values", "/features/column", "/features/scale"];
        assert_covered(&sparse(value), &has);
    }
}

#[test]
fn changes_of_documents_are_found() {
    let has = ["/train/indptr", "/train/indices", "/train/values", "/train/document", "/test/scored", "/vocabulary/word"];
    let imported = documents();
    assert_covered(&imported, &has);
    let path = imported.path();
    let train = || hdf5::File::open_rw(&path).unwrap().group("train").unwrap();
    for attribute in ["tokens", "longest"] {
        let number: u64 = train().attr(attribute).unwrap().read_scalar().unwrap();
        let set = |number: u64| train().attr(attribute).unwrap().write_scalar(&number).unwrap();
        set(number + 1);
        let error = verify(&path).unwrap_err().to_string();
        assert!(error.contains("the numbers of tokens of the train documents"), "{error}");
        set(number);
    }
    // Files of earlier versions.
    train().delete_attr("document_digest").unwrap();
    assert!(verify(&path).unwrap().uncovered.unwrap().contains("from an earlier version"));
}

#[test]
fn the_message_says_what_to_do() {
    let imported = table(|import| import);
    flip(&imported.path(), "train/x", 5);
    let error = verify(&imported.path()).unwrap_err().to_string();
    assert!(error.contains("the file was changed or damaged. Restore it from a copy, or import the data again"), "{error}");
    for imported in [sparse("0.5"), documents()] {
        flip(&imported.path(), "train/indptr", 0);
        let error = verify(&imported.path()).unwrap_err().to_string();
        assert!(error.contains("starts at entry 1, not 0. Restore it from a copy, or import the data again"), "{error}");
    }
}

#[test]
fn lists_and_rows_longer_than_a_block_are_verified() {
    let imported = Imported::new(|folder, output| {
        let train = folder.join("x");
        let long: String = (1..=1_100_000).map(|column| format!(" {column}:1")).collect();
        std::fs::write(&train, format!("1{long}\n2 1:3\n1{long}\n")).unwrap();
        let (test, task, scaling) = (TestRows::None, Task::Regression, Scaling::None);
        import_libsvm(&LibsvmImport { train, test, task, features: None, scaling }, output).unwrap();
    });
    let path = imported.path();
    // Columns and values of four bytes, three targets, and four starts.
    assert_eq!(verify(&path).unwrap().bytes, 2_200_001 * 8 + 3 * 8 + 4 * 8);
    flip(&path, "train/values", 2_000_000);
    verify(&path).unwrap_err();
}
