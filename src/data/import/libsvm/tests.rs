//! LIBSVM files become sparse rows, and bad files are refused.

#![allow(clippy::unwrap_used, clippy::expect_used)]
use super::*;
use crate::data::{ColumnOptions, Dataset, Header, Split, TableImport, TableLayout, import_table, is_libsvm};
use crate::models::Scratch;
use crate::random::{Purpose, Seed, Who};
use flate2::Compression;
use flate2::write::GzEncoder;
use ndarray::array;
use rand::RngExt;
use std::io::Write;
use tempfile::TempDir;

/// A folder with a file in it.
fn file(content: impl AsRef<[u8]>) -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.svm");
    std::fs::write(&path, content).unwrap();
    (folder, path)
}

fn gzip(content: &str) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(content.as_bytes()).unwrap();
    encoder.finish().unwrap()
}

fn import(train: &Path) -> LibsvmImport {
    let (test, task) = (TestRows::None, Task::Classification);
    LibsvmImport { train: train.to_path_buf(), test, task, features: None, scaling: Scaling::None }
}

fn imported(import: &LibsvmImport) -> Dataset {
    let output = import.train.with_extension("h5");
    import_libsvm(import, &output).unwrap();
    Dataset::open(&output).unwrap()
}

/// Asserts that an import is refused with a message of one line that says all of this, and leaves nothing behind.
fn refused(import: &LibsvmImport, says: &[&str]) {
    let output = import.train.with_extension("h5");
    let message = import_libsvm(import, &output).expect_err("must be refused").to_string();
    assert!(says.iter().all(|says| message.contains(says)) && !message.contains('\n'), "{message:?} must say {says:?}");
    assert!(!output.exists() && !import.train.with_extension("h5.partial").exists());
}

const SMALL: &str = "# a comment\n+1 1:0.5 3:-2 # and one more\r\n\n-1\n+1 2:0 4:1e2 6:0\n";

#[test]
fn what_went_in_comes_out_and_stays_sparse() {
    for content in [SMALL.as_bytes().to_vec(), gzip(SMALL), [b"\xef\xbb\xbf", SMALL.as_bytes()].concat()] {
        let (_folder, path) = file(content);
        assert!(is_libsvm(&path).unwrap());
        let data = imported(&import(&path));
        assert_eq!((data.rows(Split::Train), data.rows(Split::Test), data.features()), (3, 0, 6));
        assert_eq!((data.classes(), data.shape(), data.source()), (&["-1".into(), "1".into()][..], &[6][..], "a.svm"));
        assert!(data.is_sparse() && data.values(Split::Train).unwrap() == 3 && data.feature_names().unwrap().is_none());
        assert_eq!(data.raw::<u64>("train/indptr"), [0, 2, 2, 3]);
        assert_eq!(data.raw::<u32>("train/indices"), [0, 2, 3]);
        assert_eq!(data.raw::<f32>("train/values"), [0.5, -2.0, 100.0]);
        let shard = data.read_rows::<f64>(Split::Train, &[2, 0, 1, 0]).unwrap();
        let row = [0.5, 0.0, -2.0, 0.0, 0.0, 0.0];
        assert_eq!(shard.x(), array![[0.0, 0.0, 0.0, 100.0, 0.0, 0.0], row, [0.0; 6], row]);
        assert_eq!(shard.y(), array![1.0, 1.0, 0.0, 1.0]);
        assert!(shard.dense().is_none());
        assert_eq!(data.read_rows::<f32>(Split::Train, &[]).unwrap().rows(), 0);
    }
}

#[test]
fn values_are_kept_in_single_precision_only_where_it_holds_them() {
    // The last value of many needs double precision.
    let mut text: String = (0..70_000).map(|row| format!("{} 1:{} 2:0.25\n", row % 2, row + 1)).collect();
    let (_folder, path) = file(&text);
    let single = imported(&import(&path));
    assert_eq!(single.raw::<f32>("train/values").len(), 140_000);
    assert!(single.stored_in::<f32>("train/values"));
    text.push_str("1 2:0.1\n");
    let (_folder, path) = file(&text);
    let double = imported(&import(&path));
    assert!(double.stored_in::<f64>("train/values"));
    let values = double.raw::<f64>("train/values");
    assert_eq!((values.len(), values[0], values[139_998], values[140_000]), (140_001, 1.0, 70_000.0, 0.1));
    // Rows far apart and in any order, over many chunks.
    let wanted = [69_999, 3, 40_000, 40_001, 0];
    let shard = double.read_rows::<f64>(Split::Train, &wanted).unwrap();
    assert_eq!(shard.x().column(0), array![70_000.0, 4.0, 40_001.0, 40_002.0, 1.0]);
}

#[test]
fn the_digest_is_that_of_the_content() {
    let same = |text: &str| {
        let (_folder, path) = file(text);
        imported(&import(&path)).digest().to_owned()
    };
    let base = same("1 1:0.5 3:1\n2 2:7\n");
    for equal in ["# x\n+1 1:.5 2:0 3:1.0\n\n2\t2:7 3:0\n", "1 1:5e-1 3:1\r\n2 2:7"] {
        assert_eq!(same(equal), base, "{equal:?}");
    }
    for other in [
        "1 1:0.5 3:1\n2 2:8\n",
        "1 1:0.5 3:1\n2 1:7\n",
        "1 1:0.5\n2 2:7 3:1\n",
        "1 1:0.5 3:1\n2 2:7 4:0\n",
        "2 1:0.5 3:1\n1 2:7\n",
    ] {
        assert_ne!(same(other), base, "{other:?}");
    }
}

#[test]
fn bad_files_are_refused_with_their_line() {
    let good = "1 1:1\n2 2:1\n";
    for (line, says) in [
        ("1 0:1", "count from 1"),
        ("1 3:1 2:1", "index 2 comes after a larger one"),
        ("1 3:1 3:1", "index 3 comes twice"),
        ("1 a:1", "\"a:1\" is not index:value"),
        ("1 3", "\"3\" is not index:value"),
        ("1 -3:1", "is not index:value"),
        ("1 3:", "the value is missing"),
        ("1 3:x", "the value is not a number"),
        ("1 3:nan", "not a finite number"),
        ("1 3:-inf", "not a finite number"),
        ("1 3:1e999", "beyond double precision"),
        ("1 2147483649:1", "above 2147483648, the most features"),
        ("1 99999999999999999999999:1", "above 2147483648"),
        ("1 qid:3 1:1", "qid"),
        ("3:1 4:1", "not with a label"),
        ("1,2 3:1", "several labels"),
        ("\u{fffd}\u{fffd} 3:1:2", "not a number"),
    ] {
        let (_folder, path) = file(format!("{good}\n{line}\n"));
        refused(&import(&path), &["a.svm, line 4: ", says]);
    }
    let (_folder, path) = file(b"1 1:1\n\xff 1:1\n");
    refused(&import(&path), &["line 2", "UTF-8"]);
    for (text, says) in
        [("# nothing\n\n", "no rows"), ("1\n2\n", "no row has a feature"), ("1 1:1\n1 2:1\n", "two classes"), ("", "empty")]
    {
        let (_folder, path) = file(text);
        refused(&import(&path), &["a.svm: ", says]);
    }
    let whole = gzip(&good.repeat(1000));
    let (_folder, path) = file(&whole[..whole.len() / 2]);
    refused(&import(&path), &["a.svm, line ", "cut short"]);
    let (_folder, path) = file("a 1:1\n2 1:1\n");
    refused(&LibsvmImport { task: Task::Regression, ..import(&path) }, &["line 1", "the target \"a\" is not a number"]);
    for scaling in [Scaling::Standardize, Scaling::Pixels, Scaling::UnitInterval, Scaling::Principal] {
        refused(&LibsvmImport { scaling, ..import(&path) }, &[scaling.name(), "max-abs"]);
    }
    refused(&LibsvmImport { features: Some(0), ..import(&path) }, &["must be at least 1"]);
    refused(&LibsvmImport { features: Some(MAX_FEATURES + 1), ..import(&path) }, &["at most 2147483648"]);
}

#[test]
fn test_rows_must_fit_the_training_rows() {
    let (folder, path) = file("1 1:1\n2 3:1\n");
    let with = |text: &str, features| {
        let test = folder.path().join("t.svm");
        std::fs::write(&test, text).unwrap();
        LibsvmImport { test: TestRows::File(test), features, ..import(&path) }
    };
    refused(&with("1 1:1\n1 4:1\n", None), &["t.svm, line 2", "\"4:1\"", "above 3", "a.svm", "--features"]);
    refused(&with("1 1:1\n3 2:1\n", None), &["t.svm, line 2", "\"3\" does not occur in the training data"]);
    refused(&with("1 5:1\n", Some(4)), &["t.svm, line 1", "above 4"]);
    refused(&with("1 1:1\n", Some(2)), &["a.svm, line 2", "above 2"]);
    let data = imported(&with("+1 1:1 4:2\n", Some(4)));
    assert_eq!((data.rows(Split::Test), data.features(), data.source()), (1, 4, "a.svm, t.svm"));
    assert_eq!(data.read_rows::<f64>(Split::Test, &[0]).unwrap().x(), array![[1.0, 0.0, 0.0, 2.0]]);
}

/// An index of 2^31 takes no memory; a dense column list would take 17 GB.
#[test]
fn a_wide_dataset_is_small() {
    let (_folder, path) = file("1 1:-4 2147483648:2\n2 7:8 2147483648:-1\n");
    let data = imported(&LibsvmImport { scaling: Scaling::MaxAbs, ..import(&path) });
    assert_eq!(data.features(), 1 << 31);
    assert!(std::fs::metadata(data.path()).unwrap().len() < 1 << 21);
    assert_eq!(data.raw::<u32>("features/column"), [0, 6, (1 << 31) - 1]);
    assert_eq!(data.raw::<f64>("features/scale"), [0.25, 0.125, 0.5]);
    assert_eq!(data.read_rows::<f64>(Split::Train, &[1, 0]).unwrap().features(), 1 << 31);
}

/// The same table once sparse and once dense: the same rows in each split, the same numbers in the same bits.
#[test]
fn sparse_rows_are_those_of_a_dense_import() {
    let (folder, path) = file("");
    let mut stream = Seed(2).stream(Who::Run, 0, Purpose::Synthetic);
    let (mut dense, mut sparse) = (String::new(), String::new());
    for row in 0..300 {
        let values: Vec<f64> = (0..9).map(|_| if stream.random() { 0.0 } else { stream.random_range(-3.0..5.0) }).collect();
        sparse.push_str(&(row % 3).to_string());
        for (column, value) in values.iter().enumerate() {
            dense.push_str(&format!("{value},"));
            if *value != 0.0 {
                sparse.push_str(&format!(" {}:{value}", column + 1));
            }
        }
        sparse.push('\n');
        dense.push_str(&format!("{}\n", row % 3));
    }
    std::fs::write(&path, sparse).unwrap();
    let train = folder.path().join("a.csv");
    std::fs::write(&train, dense).unwrap();
    assert!(!is_libsvm(&train).unwrap());
    for scaling in [Scaling::None, Scaling::MaxAbs] {
        for task in [Task::Classification, Task::Regression] {
            let test = TestRows::Fraction(0.2, Seed(5));
            let sparse = imported(&LibsvmImport { scaling, task, test: test.clone(), ..import(&path) });
            let output = folder.path().join("dense.h5");
            let layout = TableLayout { header: Header::No, ..TableLayout::default() };
            import_table(
                &TableImport { train: vec![train.clone()], test, task, layout, columns: ColumnOptions::default(), scaling },
                &output,
            )
            .unwrap();
            let dense = Dataset::open(&output).unwrap();
            for split in [Split::Train, Split::Test] {
                let rows: Vec<usize> = (0..dense.rows(split)).collect();
                let read = |data: &Dataset| data.read_rows::<f64>(split, &rows).unwrap();
                let (sparse, dense) = (read(&sparse), read(&dense));
                assert_eq!((sparse.x(), sparse.y(), sparse.target_unit()), (dense.x(), dense.y(), dense.target_unit()));
                sparse.blocks(&mut Scratch::new(), |rows, batch, _| {
                    assert_eq!((rows, Some(batch.x)), (0..dense.rows(), dense.dense().map(|batch| batch.x)));
                });
            }
        }
    }
}

#[test]
fn labels_of_test_rows_may_be_spelled_in_another_way() {
    let (folder, train) = file("1 1:1\n0 1:2\n");
    let test = folder.path().join("test.svm");
    std::fs::write(&test, "1.0 1:3\n0.0 1:4\n").unwrap();
    let data = imported(&LibsvmImport { test: TestRows::File(test), ..import(&train) });
    assert_eq!((data.classes().len(), data.raw::<u32>("test/y")), (2, vec![1, 0]));
}
