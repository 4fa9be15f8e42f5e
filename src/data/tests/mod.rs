//! Imports of small files: what went in comes out, and every kind of bad input has its message and leaves nothing behind.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod arrays;
mod scaling;
mod tables;

use super::*;
use crate::random::Seed;
use flate2::Compression;
use flate2::write::GzEncoder;
use ndarray::{Array1, Array2, array};
use std::io::Write;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

pub(super) struct Place {
    folder: TempDir,
}

impl Place {
    pub fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    pub fn file(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.folder.path().join(name);
        std::fs::write(&path, content).unwrap();
        path
    }

    pub fn folder(&self, name: &str) -> PathBuf {
        let path = self.folder.path().join(name);
        std::fs::create_dir(&path).unwrap();
        path
    }

    pub fn output(&self) -> PathBuf {
        self.folder.path().join("out.h5")
    }

    /// Asserts that an import failed with a message that says all of this on one line, and left neither file nor half a file.
    pub fn refused<T: std::fmt::Debug>(&self, result: Result<T>, says: &[&str]) {
        let message = result.expect_err("must be refused").to_string();
        assert!(says.iter().all(|says| message.contains(says)) && !message.contains('\n'), "{message:?} must say {says:?}");
        for path in [self.output(), self.folder.path().join("out.h5.partial")] {
            assert!(!path.exists(), "{} stayed after: {message}", path.display());
        }
    }
}

pub(super) fn gzip(content: impl AsRef<[u8]>) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(content.as_ref()).unwrap();
    encoder.finish().unwrap()
}

fn csv(train: &Path) -> TableImport {
    TableImport {
        train: vec![train.to_path_buf()],
        test: TestRows::None,
        task: Task::Classification,
        layout: TableLayout::default(),
        columns: ColumnOptions::default(),
        scaling: Scaling::None,
    }
}

fn idx(dimensions: &[u32], bytes: &[u8]) -> Vec<u8> {
    let mut file = vec![0, 0, 8, u8::try_from(dimensions.len()).unwrap()];
    dimensions.iter().for_each(|size| file.extend(size.to_be_bytes()));
    file.extend(bytes);
    file
}

/// Six columns that three hidden numbers mix, of very different size and far from zero; over many blocks of rotated rows.
fn correlated(rows: std::ops::Range<usize>) -> Vec<[f64; 6]> {
    let hidden = |row: usize, by: usize| (row * by % 1009) as f64 / 1009.0 - 0.5;
    let row = |row: usize| {
        let [a, b, c] = [hidden(row, 7), hidden(row, 331), hidden(row, 577)];
        let noise = |by| 0.01 * hidden(row, by);
        [
            100.0 + a + noise(11),
            3.0 * a - b + noise(13),
            b + noise(17),
            -50.0 + 20.0 * c + a,
            c - b + noise(19),
            2.0 * a + b - c + noise(23),
        ]
    };
    rows.map(row).collect()
}

fn lines(rows: &[[f64; 6]]) -> String {
    let line = |(number, row): (usize, &[f64; 6])| {
        row.iter().map(|x| format!("{x},")).collect::<String>() + &format!("{}\n", number % 2)
    };
    rows.iter().enumerate().map(line).collect()
}

/// Bytes that look random.
fn noise() -> impl FnMut() -> u8 {
    let mut noise = 1_u64;
    move || {
        noise = noise.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        noise.to_be_bytes()[0]
    }
}

#[test]
fn datasets_of_other_versions_are_read_or_refused() {
    let place = Place::new();
    let import = TableImport { task: Task::Regression, ..csv(&place.file("x.csv", "1,90\n2,130\n")) };
    let changed = |change: &dyn Fn(&hdf5::File)| {
        import_table(&import, &place.output()).unwrap();
        change(&hdf5::File::open_rw(place.output()).unwrap());
        Dataset::open(&place.output())
    };
    let version = |file: &hdf5::File, version: u32| file.attr("version").unwrap().write_scalar(&version).unwrap();
    let first = changed(&|file| {
        version(file, 1);
        file.unlink("targets").unwrap();
    });
    let shard = first.unwrap().read_rows::<f64>(Split::Train, &[0, 1]).unwrap();
    assert_eq!((shard.y(), shard.target_unit()), (array![90.0, 130.0].view(), 1.0));
    for unknown in [0, 5, 7] {
        let message = changed(&|file| version(file, unknown)).unwrap_err().to_string();
        assert!(message.contains(&format!("version {unknown}")) && message.contains("import the data again"), "{message}");
    }
    for scale in [0.0, -1.0, f64::NAN] {
        let message = changed(&|file| file.dataset("targets/scale").unwrap().write(&[scale]).unwrap()).unwrap_err().to_string();
        assert!(message.contains("targets have the scale"), "{message}");
    }
}

#[test]
fn a_class_that_does_not_exist_is_found_by_who_reads_it() {
    let place = Place::new();
    import_table(&csv(&place.file("x.csv", "1,0\n2,1\n3,0\n")), &place.output()).unwrap();
    hdf5::File::open_rw(place.output()).unwrap().dataset("train/y").unwrap().write(&[0_u32, 7, 1]).unwrap();
    let data = Dataset::open(&place.output()).unwrap();
    assert_eq!(data.read_rows::<f64>(Split::Train, &[2, 0]).unwrap().y(), array![1.0, 0.0]);
    let message = data.read_rows::<f64>(Split::Train, &[0, 1]).unwrap_err().to_string();
    assert!(message.contains("record 2: the train row has class 7 of 2"), "{message}");
}

#[test]
fn any_rows_in_any_order_over_many_chunks() {
    let place = Place::new();
    // 300 features × 8 bytes: chunks of 109 rows, blocks of 872, gaps of up to 13 rows are read through.
    let (rows, features) = (2000_usize, 300_usize);
    let mut text = String::new();
    for i in 0..rows {
        (0..features).for_each(|j| text.push_str(&format!("{},", (i * 7 + j) % 1000)));
        text.push_str(&format!("{i}.5\n"));
    }
    // The first row happens to count the columns, as a header without names does.
    let layout = TableLayout { header: Header::No, ..TableLayout::default() };
    let import = TableImport { task: Task::Regression, layout, ..csv(&place.file("x.csv", gzip(text))) };
    import_table(&import, &place.output()).unwrap();
    let data = Dataset::open(&place.output()).unwrap();
    let picks: [Vec<usize>; 5] = [
        (0..rows).collect(),
        (0..rows).rev().collect(),
        (0..rows).step_by(13).collect(),
        (0..rows).step_by(14).collect(),
        vec![5, 5, 4, 1999, 0, 0],
    ];
    for pick in picks {
        let shard = data.read_rows::<f64>(Split::Train, &pick).unwrap();
        for (position, &row) in pick.iter().enumerate() {
            let (scale, offset) = data.target_scaling();
            assert!(((shard.y()[position] - offset) / scale - (row as f64 + 0.5)).abs() < 1e-11);
            assert!(shard.x().row(position).iter().enumerate().all(|(j, &x)| x == ((row * 7 + j) % 1000) as f64));
        }
    }
    assert_eq!(data.read_rows::<f64>(Split::Train, &[]).unwrap().x().dim(), (0, features));
    let message = data.read_rows::<f64>(Split::Train, &[0, rows]).unwrap_err().to_string();
    assert!(message.contains("no train row 2000"), "{message}");
    assert!(data.read_rows::<f64>(Split::Test, &[0]).is_err());
}

#[test]
fn the_digest_tells_contents_apart() {
    let place = Place::new();
    let digest = |text: &str, change: &dyn Fn(&mut TableImport)| {
        let mut import = csv(&place.file("x.csv", text));
        change(&mut import);
        import_table(&import, &place.output()).unwrap();
        Dataset::open(&place.output()).unwrap().digest().to_owned()
    };
    let plain = "1,2,0\n3,4,1\n";
    let same = |_: &mut TableImport| {};
    let all = [
        digest(plain, &same),
        digest("1,2,0\n3,5,1\n", &same),
        digest("1,2,1\n3,4,0\n", &same),
        digest("1,2,0\n3,4,7\n", &same),
        digest("a,b,c\n1,2,0\n3,4,1\n", &same),
        digest(plain, &|import| import.scaling = Scaling::Standardize),
        digest(plain, &|import| import.scaling = Scaling::Principal),
        digest(plain, &|import| import.task = Task::Regression),
    ];
    assert_eq!(digest("1.0, 2 ,0\n3e0,4,1", &same), all[0], "another spelling of the same numbers");
    assert!(all.iter().enumerate().all(|(i, one)| one.len() == 64 && all[..i].iter().all(|other| one != other)), "{all:?}");
}

#[test]
fn a_failed_import_leaves_an_older_dataset_untouched() {
    let place = Place::new();
    import_table(&csv(&place.file("x.csv", "1,0\n2,1\n")), &place.output()).unwrap();
    let before = std::fs::read(place.output()).unwrap();
    import_table(&csv(&place.file("x.csv", "1,0\nq,1\n")), &place.output()).unwrap_err();
    assert_eq!(std::fs::read(place.output()).unwrap(), before);
    // And the same input makes the same file, to the byte.
    import_table(&csv(&place.file("x.csv", "1,0\n2,1\n")), &place.output()).unwrap();
    assert_eq!(std::fs::read(place.output()).unwrap(), before);
}

#[test]
fn files_that_name_other_files_are_refused() {
    let place = Place::new();
    import_table(&csv(&place.file("x.csv", "1,0\n2,1\n3,0\n")), &place.output()).unwrap();
    hdf5::File::open_rw(place.output()).unwrap().link_external("other.h5", "x", "test").unwrap();
    let message = Dataset::open(&place.output()).unwrap_err().to_string();
    assert!(message.contains("out.h5: its link 'test' leads to another file"), "{message}");
    assert!(!corpus::Corpus::is_corpus(&place.output()));
    let message = corpus::Corpus::open(&place.output()).unwrap_err().to_string();
    assert!(message.contains("out.h5: its link 'test' leads to another file"), "{message}");
}

#[test]
fn shards_that_are_read_together_have_the_bits_of_single_ones() {
    let place = Place::new();
    let sparse: String = (0..300).map(|row| format!("{} {}:{}\n", row % 3, row % 7 + 1, row + 1)).collect();
    let dense = lines(&correlated(0..300));
    let table = csv(&place.file("x.csv", dense));
    let imports: [&dyn Fn(); 3] = [
        &|| drop(import_table(&TableImport { scaling: Scaling::Principal, ..table.clone() }, &place.output()).unwrap()),
        &|| drop(import_table(&TableImport { scaling: Scaling::Standardize, ..table.clone() }, &place.output()).unwrap()),
        &|| {
            let train = place.file("x", sparse.clone());
            let (test, task, scaling) = (TestRows::None, Task::Regression, Scaling::None);
            import_libsvm(&LibsvmImport { train, test, task, features: None, scaling }, &place.output()).unwrap();
        },
    ];
    for import in imports {
        drop(std::fs::remove_file(place.output()));
        import();
        let data = Dataset::open(&place.output()).unwrap();
        let shards = [vec![0, 7, 299], vec![], vec![1, 2, 3, 250], (10..200).step_by(3).collect::<Vec<usize>>()];
        let together = data.read_shards::<f64>(Split::Train, &shards).unwrap();
        for (rows, shard) in shards.iter().zip(together) {
            assert_eq!(shard, data.read_rows::<f64>(Split::Train, rows).unwrap());
        }
        assert!(
            data.read_shards::<f64>(Split::Train, &[vec![0], vec![300]]).unwrap_err().to_string().contains("no train row 300")
        );
    }
}

#[test]
fn a_small_file_of_sparse_rows_needs_little_memory() {
    let place = Place::new();
    let train = place.file("x", "1 1:5 2:6\n2 3:7\n1 1:2 3:1\n2 2:2\n");
    let (test, task, scaling) = (TestRows::None, Task::Regression, Scaling::None);
    import_libsvm(&LibsvmImport { train, test, task, features: None, scaling }, &place.output()).unwrap();
    let starts = |starts: &[u64]| {
        hdf5::File::open_rw(place.output()).unwrap().dataset("train/indptr").unwrap().write(starts).unwrap();
        let data = Dataset::open(&place.output()).unwrap();
        data.read_rows::<f64>(Split::Train, &[0, 2]).map(|shard| shard.y().len()).map_err(|error| error.to_string())
    };
    assert_eq!(starts(&[0, 2, 3, 5, 6]), Ok(2));
    // Two rows that both have all entries.
    assert!(starts(&[0, 6, 0, 6, 6]).unwrap_err().contains("the train rows do not fit together"));
    hdf5::File::open_rw(place.output()).unwrap().group("features").unwrap().attr("shape").unwrap().write(&[1_u64 << 40]).unwrap();
    let message = Dataset::open(&place.output()).unwrap_err().to_string();
    assert!(message.contains("rows of 1099511627776 features: sparse rows have at most 2147483648"), "{message}");
}

#[test]
fn foreign_files_are_no_datasets() {
    let place = Place::new();
    for path in [place.file("text", "hello"), place.output()] {
        let message = Dataset::open(&path).unwrap_err().to_string();
        assert!(message.contains("no dataset of this program") || message.contains("cannot open"), "{message}");
    }
    drop(hdf5::File::create(place.output()).unwrap());
    assert!(Dataset::open(&place.output()).unwrap_err().to_string().contains("mpibayes import"));
}

#[test]
fn an_open_dataset_may_be_opened_again_and_replaced() {
    let place = Place::new();
    let train = place.file("x.csv", "1,0\n2,1\n");
    import_table(&csv(&train), &place.output()).unwrap();
    let (one, two) = (Dataset::open(&place.output()).unwrap(), Dataset::open(&place.output()).unwrap());
    import_table(&csv(&place.file("x.csv", "8,0\n9,1\n")), &place.output()).unwrap();
    for data in [one, two] {
        assert_eq!(data.read_rows::<f64>(Split::Train, &[0]).unwrap().x(), array![[1.0]]);
    }
    assert_eq!(Dataset::open(&place.output()).unwrap().read_rows::<f64>(Split::Train, &[0]).unwrap().x(), array![[8.0]]);
}
