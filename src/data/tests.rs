//! Imports of small files: what went in comes out, and every kind of bad input has its message and leaves nothing behind.

#![allow(clippy::unwrap_used, clippy::expect_used)]

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

#[test]
fn csv_with_header_and_text_labels() {
    let place = Place::new();
    let text = "wide ,\"high, really\", species\n1.5,2,b\n\n -3e2 ,4,a\n5,6,b\n";
    for content in [text.as_bytes().to_vec(), gzip(text)] {
        // A name that says the opposite of the content: only the content counts.
        let train = place.file("x.csv.gz", content);
        import_table(&csv(&train), &place.output()).unwrap();
        let data = Dataset::open(&place.output()).unwrap();
        assert_eq!((data.rows(Split::Train), data.rows(Split::Test), data.features()), (3, 0, 2));
        assert_eq!(data.classes(), ["a", "b"]);
        assert_eq!(data.feature_names().unwrap().unwrap(), ["wide", "high, really"]);
        assert_eq!((data.task(), data.shape(), data.source()), (Task::Classification, &[2][..], "x.csv.gz"));
        let shard = data.read_rows::<f64>(Split::Train, &[0, 1, 2]).unwrap();
        assert_eq!(shard.x(), array![[1.5, 2.0], [-300.0, 4.0], [5.0, 6.0]]);
        assert_eq!(shard.y(), array![1.0, 0.0, 1.0]);
    }
}

#[test]
fn csv_label_columns_and_regression() {
    let place = Place::new();
    let train = place.file("x.csv", "y,a,b\n0.125,1,2\n7,3,4\n");
    let test = place.file("t.csv", "y,a,b\n9,5,6\n");
    for label in [Column::Name("y".into()), Column::Number(1)] {
        let layout = TableLayout { label, ..TableLayout::default() };
        let import = TableImport { layout, task: Task::Regression, test: TestRows::File(test.clone()), ..csv(&train) };
        import_table(&import, &place.output()).unwrap();
        let data = Dataset::open(&place.output()).unwrap();
        assert!(data.classes().is_empty());
        let shard = data.read_rows::<f32>(Split::Train, &[1, 0]).unwrap();
        assert_eq!(shard.x(), array![[3.0, 4.0], [1.0, 2.0]]);
        assert_eq!(shard.y(), array![1.0, -1.0]);
        assert_eq!(data.raw::<f64>("train/y"), [0.125, 7.0]);
        assert_eq!(data.read_rows::<f64>(Split::Test, &[0]).unwrap().x(), array![[5.0, 6.0]]);
    }
}

#[test]
fn raw_values_stay_and_scaling_is_applied_on_reading() {
    let place = Place::new();
    let train = place.file("x.csv", "1,10,0\n3,10,1\n");
    let test = place.file("t.csv", "5,11,1\n");
    let import = TableImport { scaling: Scaling::Standardize, test: TestRows::File(test), ..csv(&train) };
    import_table(&import, &place.output()).unwrap();
    let data = Dataset::open(&place.output()).unwrap();
    assert_eq!(data.raw::<f64>("train/x"), [1.0, 10.0, 3.0, 10.0]);
    assert_eq!(data.read_rows::<f64>(Split::Train, &[0, 1]).unwrap().x(), array![[-1.0, 0.0], [1.0, 0.0]]);
    // By the mean and deviation of the training rows, not its own.
    assert_eq!(data.read_rows::<f64>(Split::Test, &[0]).unwrap().x(), array![[3.0, 1.0]]);
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

/// Means of the columns, and their covariance.
fn moments(x: ndarray::ArrayView2<f64>) -> (Array1<f64>, Array2<f64>) {
    let mean = x.mean_axis(ndarray::Axis(0)).unwrap();
    let centred = &x - &mean;
    let covariance = centred.t().dot(&centred) / x.nrows() as f64;
    (mean, covariance)
}

/// The largest entry beside the diagonal.
fn beside(matrix: &Array2<f64>) -> f64 {
    matrix.indexed_iter().filter(|((i, j), _)| i != j).fold(0.0, |most, (_, entry)| most.max(entry.abs()))
}

#[test]
fn rows_in_their_principal_axes_are_uncorrelated_and_lose_nothing() {
    let place = Place::new();
    let (rows, new) = (correlated(0..1000), correlated(5000..5300));
    let test = TestRows::File(place.file("t.csv", lines(&new)));
    let train = place.file("x.csv", lines(&rows));
    import_table(&TableImport { scaling: Scaling::Principal, test, ..csv(&train) }, &place.output()).unwrap();
    let data = Dataset::open(&place.output()).unwrap();
    let all: Vec<usize> = (0..1000).collect();
    let read = |data: &Dataset, split, rows: &[usize]| data.read_rows::<f64>(split, rows).unwrap().x().to_owned();
    let seen = read(&data, Split::Train, &all);
    let raw = Array2::from_shape_vec((1000, 6), data.raw::<f64>("train/x")).unwrap();
    assert!(raw.iter().eq(rows.iter().flatten()), "the file keeps raw values");
    let (mean, covariance) = moments(seen.view());
    // The mean variance is 1: 6 in all. Offsets round to 1e-16 of a hundred over a deviation of two.
    assert!(mean.iter().all(|mean| mean.abs() < 1e-12), "{mean}");
    assert!(beside(&covariance) < 1e-9 && (covariance.diag().sum() - 6.0).abs() < 1e-9, "{covariance}");
    assert!(covariance.diag().windows(2).into_iter().all(|pair| pair[0] > pair[1]), "{covariance}");
    // One unit for all: distances are those of raw rows, times s; also from test rows, which are in the axes of the training rows.
    let unit = (6.0 / moments(raw.view()).1.diag().sum()).sqrt();
    let seen_test = read(&data, Split::Test, &(0..300).collect::<Vec<_>>());
    for (number, row) in new.iter().enumerate() {
        for other in [0, number, 999] {
            let distance = |one: &[f64], other: &[f64]| one.iter().zip(other).map(|(a, b)| (a - b).powi(2)).sum::<f64>().sqrt();
            let (z, other_z) = (seen_test.row(number).to_vec(), seen.row(other).to_vec());
            assert!((distance(&z, &other_z) - unit * distance(row, &rows[other])).abs() < 1e-10);
        }
    }
    // The controls: the same rows without their rotation, and test rows in axes of their own.
    let FeatureScaling::Dense { scale, offset, rotation: Some(rotation) } = data.scaling().clone() else { panic!() };
    assert!(rotation.t().dot(&*rotation).indexed_iter().all(|((i, j), entry)| (entry - f64::from(i == j)).abs() < 1e-13));
    let bare = FeatureScaling::Dense { scale, offset, rotation: None };
    let bare = Dataset::open(&place.output()).unwrap().scaled_as(6, bare).unwrap();
    let (_, covariance) = moments(read(&bare, Split::Train, &all).view());
    assert!(beside(&covariance) > 0.01 && (covariance.diag().sum() - 6.0).abs() < 1e-9, "{covariance}");
    assert!(beside(&moments(seen_test.view()).1) > 1e-4);
}

/// Bytes that look random.
fn noise() -> impl FnMut() -> u8 {
    let mut noise = 1_u64;
    move || {
        noise = noise.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        noise.to_be_bytes()[0]
    }
}

/// Images that are large enough for the products of the library, whose last bits depend on the rows that are read together.
#[test]
fn a_rotated_row_is_the_same_to_rounding_whatever_rows_it_is_read_with() {
    let place = Place::new();
    let mut byte = noise();
    let images: Vec<u8> = (0..500 * 300).map(|_| byte()).collect();
    let labels: Vec<u8> = (0..500).map(|row| u8::from(row % 3 == 0)).collect();
    let train = IdxPair { images: place.file("i", idx(&[500, 20, 15], &images)), labels: place.file("l", idx(&[500], &labels)) };
    import_idx(&train, None, Scaling::Principal, &place.output()).unwrap();
    let data = Dataset::open(&place.output()).unwrap();
    let double = data.read_rows::<f64>(Split::Train, &(0..500).collect::<Vec<_>>()).unwrap();
    let double = double.x();
    for wanted in [vec![499], vec![7, 3, 300], (0..500).rev().collect(), (100..400).step_by(3).collect()] {
        let read = || data.read_rows::<f32>(Split::Train, &wanted).unwrap().x().to_owned();
        let shard = read();
        assert_eq!(shard, read(), "the same rows, the same bits");
        for (row, &number) in shard.rows().into_iter().zip(&wanted) {
            // 300 products of numbers below 1 with an axis of length 1: 300 roundings of at most 6e-8 of √300/2.
            let off = row.iter().zip(double.row(number)).map(|(one, other)| (f64::from(*one) - other).abs());
            assert!(off.fold(0.0, f64::max) < 1.6e-4);
        }
    }
    assert_eq!(data.read_rows::<f32>(Split::Train, &[]).unwrap().rows(), 0);
}

#[test]
fn images_in_principal_axes_keep_their_bytes_and_one_unit() {
    let place = Place::new();
    let mut byte = noise();
    // A border that is never inked, as in MNIST.
    let images: Vec<u8> = (0..40 * 12).map(|at| if at % 12 < 3 { 0 } else { byte() }).collect();
    let labels: Vec<u8> = (0..40).map(|row| row % 2).collect();
    let train = IdxPair { images: place.file("i", idx(&[40, 4, 3], &images)), labels: place.file("l", idx(&[40], &labels)) };
    let test = IdxPair { images: place.file("ti", idx(&[1, 4, 3], &[255; 12])), labels: place.file("tl", idx(&[1], &[1])) };
    import_idx(&train, Some(&test), Scaling::Principal, &place.output()).unwrap();
    let data = Dataset::open(&place.output()).unwrap();
    assert_eq!((data.shape(), data.raw::<u8>("train/x")), (&[4, 3][..], images.clone()));
    let x = data.read_rows::<f64>(Split::Train, &(0..40).collect::<Vec<_>>()).unwrap().x().to_owned();
    let (mean, covariance) = moments(x.view());
    let raw = Array2::from_shape_fn((40, 12), |(row, column)| f64::from(images[row * 12 + column]) / 255.0);
    let total = moments(raw.view()).1.diag().sum();
    assert!(mean.iter().all(|mean| mean.abs() < 1e-13) && beside(&covariance) < 1e-9 * total, "{mean} {covariance}");
    assert!((covariance.diag().sum() - total).abs() < 1e-12 * 12.0 && covariance.diag().iter().skip(9).all(|v| *v < 1e-20));
    // A test row that is inked where no training row is: what stands there is not lost.
    let white = data.read_rows::<f64>(Split::Test, &[0]).unwrap();
    let hidden: f64 = white.x().iter().skip(9).map(|z| z * z).sum();
    assert!((hidden - 3.0).abs() < 1e-12, "{hidden}");
}

#[test]
fn rotations_that_do_not_fit_and_rows_that_are_too_long_are_refused() {
    let place = Place::new();
    let train = place.file("x.csv", lines(&correlated(0..50)));
    let import = TableImport { scaling: Scaling::Principal, ..csv(&train) };
    import_table(&import, &place.output()).unwrap();
    let file = hdf5::File::open_rw(place.output()).unwrap();
    assert_eq!(file.attr("version").unwrap().read_scalar::<u32>().unwrap(), 4);
    file.unlink("features/rotation").unwrap();
    file.new_dataset_builder().with_data(&Array2::<f64>::eye(5)).create("features/rotation").unwrap();
    file.close().unwrap();
    let message = Dataset::open(&place.output()).unwrap_err().to_string();
    assert!(message.contains("a rotation of shape [5, 5] does not fit rows of shape [6]"), "{message}");
    std::fs::remove_file(place.output()).unwrap();
    let long = format!("{}0\n{}1\n", "1,".repeat(4097), "2,".repeat(4097));
    let layout = TableLayout { header: Header::No, ..TableLayout::default() };
    let import = TableImport { layout, train: vec![place.file("x.csv", long)], ..import };
    place.refused(import_table(&import, &place.output()), &["4097 features", "principal", "at most 4096"]);
}

#[test]
fn regression_targets_are_standardised_by_the_training_rows() {
    let place = Place::new();
    let import = |train: &str| {
        let test = TestRows::File(place.file("t.csv", "5,110\n"));
        let import = TableImport { task: Task::Regression, test, ..csv(&place.file("x.csv", train)) };
        import_table(&import, &place.output())
    };
    import("1,90\n2,130\n").unwrap();
    let data = Dataset::open(&place.output()).unwrap();
    assert_eq!((data.target_scaling(), data.raw::<f64>("train/y")), ((0.05, -5.5), vec![90.0, 130.0]));
    let shard = data.read_rows::<f64>(Split::Train, &[0, 1]).unwrap();
    assert_eq!((shard.y(), shard.target_unit()), (array![-1.0, 1.0].view(), 20.0));
    // By the mean and deviation of the training rows, not its own.
    assert_eq!(data.read_rows::<f32>(Split::Test, &[0]).unwrap().y(), array![0.0]);
    // Targets that are all equal are only moved.
    import("1,90\n2,90\n").unwrap();
    let data = Dataset::open(&place.output()).unwrap();
    assert_eq!(data.target_scaling(), (1.0, -90.0));
    // Classes stay what they are.
    import_table(&csv(&place.file("x.csv", "1,90\n2,130\n")), &place.output()).unwrap();
    let data = Dataset::open(&place.output()).unwrap();
    let shard = data.read_rows::<f64>(Split::Train, &[0, 1]).unwrap();
    assert_eq!((shard.y(), shard.target_unit()), (array![0.0, 1.0].view(), 1.0));
    std::fs::remove_file(place.output()).unwrap();
    place.refused(import("1,1e308\n2,-1e308\n"), &["x.csv: the target spans more"]);
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
        assert!(message.contains("targets of scale"), "{message}");
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
fn idx_images_keep_their_bytes() {
    let place = Place::new();
    let images: Vec<u8> = (0..=255).cycle().take(6 * 4 * 3).collect();
    let train = IdxPair {
        images: place.file("i", gzip(idx(&[6, 4, 3], &images))),
        labels: place.file("l", idx(&[6], &[9, 0, 9, 200, 0, 9])),
    };
    let test = IdxPair { images: place.file("ti", idx(&[1, 4, 3], &[255; 12])), labels: place.file("tl", idx(&[1], &[200])) };
    import_idx(&train, Some(&test), Scaling::Pixels, &place.output()).unwrap();
    let data = Dataset::open(&place.output()).unwrap();
    assert_eq!(data.classes(), ["0", "9", "200"]);
    assert_eq!((data.shape(), data.feature_names().unwrap()), (&[4, 3][..], None));
    assert_eq!(data.raw::<u8>("train/x"), images);
    let shard = data.read_rows::<f32>(Split::Train, &[0, 3, 5]).unwrap();
    assert_eq!(shard.y(), array![1.0, 2.0, 1.0]);
    assert_eq!(shard.x()[[1, 2]], (38.0 * (0.99 / 255.0) + 0.01) as f32);
    // One rounding of the scale times 255, one of the sum.
    let white = data.read_rows::<f64>(Split::Test, &[0]).unwrap();
    assert!(white.x().iter().all(|pixel| (pixel - 1.0).abs() < 4.0 * f64::EPSILON));
    assert_eq!(white.y(), array![2.0]);
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
fn numbers_that_are_taken_for_classes_are_noticed() {
    let place = Place::new();
    let rows = |distinct: usize| -> String { (0..120).map(|i| format!("{i},{}\n", (i % distinct) as f64 + 0.5)).collect() };
    let many = place.file("many.csv", rows(61));
    for test in [TestRows::None, TestRows::Fraction(0.2, Seed(1))] {
        let import = TableImport { test, ..csv(&many) };
        place.refused(
            import_table(&import, &place.output()),
            &["many.csv: 120 rows have 61 different numbers", "--task regression"],
        );
    }
    let some = place.file("some.csv", rows(60));
    import_table(&csv(&some), &place.output()).unwrap();
    assert_eq!(Dataset::open(&place.output()).unwrap().classes().len(), 60);
    // Whole numbers and texts may well be classes.
    for text in [rows(61).replace(".5", ""), rows(61).replace(".5", "th")] {
        import_table(&csv(&place.file("classes.csv", text)), &place.output()).unwrap();
    }
}

#[test]
fn a_random_test_split_is_exact_disjoint_and_by_seed() {
    let place = Place::new();
    let text: String = (0..101).map(|i| format!("{i},{}\n", i % 2)).collect();
    let train = place.file("x.csv", text);
    let split = |fraction, seed| {
        import_table(&TableImport { test: TestRows::Fraction(fraction, Seed(seed)), ..csv(&train) }, &place.output()).unwrap();
        let data = Dataset::open(&place.output()).unwrap();
        (data.raw::<f64>("train/x"), data.raw::<f64>("test/x"), data.digest().to_owned())
    };
    let (learn, test, digest) = split(0.2, 1);
    assert_eq!((learn.len(), test.len()), (81, 20));
    let mut all = [learn, test.clone()].concat();
    all.sort_by(f64::total_cmp);
    assert!(all.iter().enumerate().all(|(i, &value)| value == i as f64));
    assert_eq!(split(0.2, 1).2, digest);
    assert_ne!(split(0.2, 2).1, test);
    std::fs::remove_file(place.output()).unwrap();
    for fraction in [0.0, 1.0, -0.5, f64::NAN, 0.001, 0.999] {
        let import = TableImport { test: TestRows::Fraction(fraction, Seed(1)), ..csv(&train) };
        place.refused(import_table(&import, &place.output()), &["test fraction"]);
    }
    // Class 9 occurs once, in line 2: whichever seed puts it into the test half must be refused.
    let rare = place.file("rare.csv", "0,0\n0,9\n0,0\n0,1\n0,1\n0,0\n0,0\n0,0\n0,0\n0,0\n");
    let refused = (0..20).filter_map(|seed| {
        let result = import_table(&TableImport { test: TestRows::Fraction(0.5, Seed(seed)), ..csv(&rare) }, &place.output());
        result.err().map(|error| error.to_string()).filter(|message| message.contains("\"9\""))
    });
    let refused: Vec<_> = refused.collect();
    assert!(!refused.is_empty() && refused.iter().all(|message| message.contains("rare.csv, line 2: all rows with label")));
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
fn bad_csv_files_are_refused_with_file_and_line() {
    let place = Place::new();
    let cut = |bytes: Vec<u8>| bytes[..bytes.len() - 9].to_vec();
    let long: String = (0..20_000).map(|i| format!("{i},{},0\n", i * 7919 % 10_007)).collect();
    let cases: Vec<(Vec<u8>, &[&str])> = vec![
        (b"".to_vec(), &["x.csv: the file is empty"]),
        (b"\n\n".to_vec(), &["x.csv: the file has no rows"]),
        (b"a,b,c\n".to_vec(), &["x.csv: the file has no rows"]),
        (b"1\n2\n".to_vec(), &["x.csv, line 1: only one column", "--delimiter"]),
        (b"1,2,0\n1,2,3,1\n".to_vec(), &["x.csv, line 2: 4 fields, but the first line has 3"]),
        (b"a,b,c\n1,2,0\n1,1\n".to_vec(), &["x.csv, line 3: 2 fields"]),
        (b"1,2,0\n1,x,1\n".to_vec(), &["x.csv, line 2: column 2: \"x\" is not a number"]),
        (
            b"1,2,0\n1,NaN,1\n".to_vec(),
            &["x.csv, line 2: column 2: \"NaN\" looks missing: leave such rows out with --missing drop"],
        ),
        (b"1,2,0\n1e999,2,1\n".to_vec(), &["x.csv, line 2: column 1", "not a finite number"]),
        (b"1,2,0\n1,,1\n".to_vec(), &["x.csv, line 2: column 2: \"\" looks missing"]),
        (b"1,2,0\n1,2,\n".to_vec(), &["x.csv, line 2: the label \"\" looks missing: leave such rows out"]),
        (b"1,2,0\n1,\xff,1\n".to_vec(), &["x.csv, line 2: column 2: is not text"]),
        (b"1,x,0\n1,2,1\n".to_vec(), &["x.csv, line 1: 1 of 2 features are numbers"]),
        (b"1,2,0\n1,2,0\n".to_vec(), &["x.csv: every training row has the label \"0\""]),
        (cut(gzip(long)), &["x.csv, line ", "damaged or cut short"]),
        (cut(gzip("1,2,0\n3,4,1\n")), &["x.csv, line ", "damaged or cut short"]),
    ];
    for (content, says) in cases {
        let train = place.file("x.csv", content);
        place.refused(import_table(&csv(&train), &place.output()), says);
    }
    let missing = place.folder.path().join("none.csv");
    place.refused(import_table(&csv(&missing), &place.output()), &["none.csv: cannot open"]);
    let train = place.file("x.csv", "a,b,c\n1,2,0\n3,4,1\n");
    let nowhere = import_table(&csv(&train), &place.folder.path().join("none/out.h5"));
    place.refused(nowhere, &["out.h5.partial: cannot create"]);
    for (label, header, says) in [
        (Column::Number(4), Header::Detect, "x.csv, line 1: there is no column 4"),
        (Column::Number(0), Header::Detect, "x.csv, line 1: there is no column 0"),
        (Column::Name("d".into()), Header::Detect, "x.csv, line 1: no column is called \"d\""),
        (Column::Name("c".into()), Header::No, "only if the file has a header"),
        (Column::Last, Header::No, "x.csv, line 1: column 1: \"a\" is not a number"),
    ] {
        place.refused(
            import_table(
                &TableImport { layout: TableLayout { label, header, ..TableLayout::default() }, ..csv(&train) },
                &place.output(),
            ),
            &[says],
        );
    }
    let regression = TableImport { task: Task::Regression, ..csv(&place.file("x.csv", "1,2\n3,y\n")) };
    place.refused(import_table(&regression, &place.output()), &["x.csv, line 2: the target \"y\" is not a number"]);
    let pixels = TableImport { scaling: Scaling::Pixels, ..csv(&place.file("x.csv", "1,0\n256,1\n")) };
    place.refused(import_table(&pixels, &place.output()), &["x.csv: feature 1 runs from 1 to 256"]);
}

#[test]
fn bad_test_files_are_refused() {
    let place = Place::new();
    let train = place.file("x.csv", "a,b,c\n1,2,0\n3,4,1\n");
    for (content, says) in [
        ("a,b,c\n1,2,0\n1,2,5\n", &["t.csv, line 3", "\"5\" does not occur in the training data"][..]),
        ("a,b,d,c\n1,2,3,0\n", &["t.csv, line 1: 4 columns"]),
        ("b,a,c\n1,2,0\n", &["t.csv, line 1", "other names"]),
        ("1,2,0\n1,q,0\n", &["t.csv, line 2: column 2"]),
        ("", &["t.csv: the file is empty"]),
    ] {
        let test = TestRows::File(place.file("t.csv", content));
        place.refused(import_table(&TableImport { test, ..csv(&train) }, &place.output()), says);
    }
}

#[test]
fn bad_idx_files_are_refused() {
    let place = Place::new();
    let good = (idx(&[3, 2, 2], &[7; 12]), idx(&[3], &[0, 1, 0]));
    let mut floats = good.0.clone();
    floats[2] = 0x0d;
    let mut byte = noise();
    let noise: Vec<u8> = (0..40_000).map(|_| byte()).collect();
    let big = gzip(idx(&[100, 20, 20], &noise));
    let cases: Vec<(Vec<u8>, Vec<u8>, &[&str])> = vec![
        (vec![], good.1.clone(), &["img: the file is empty"]),
        (b"1,2,3".to_vec(), good.1.clone(), &["img: this is no IDX file"]),
        (floats, good.1.clone(), &["img: an IDX file of type 0x0d"]),
        (good.0[..9].to_vec(), good.1.clone(), &["img: the file ends inside the IDX header"]),
        (idx(&[u32::MAX, u32::MAX, u32::MAX], &[7; 12]), good.1.clone(), &["img: the header promises"]),
        (idx(&[4, 2, 2], &[7; 12]), good.1.clone(), &["img: the header promises"]),
        (idx(&[0, 2, 2], &[]), good.1.clone(), &["img: the header promises"]),
        (idx(&[3, 2, 2], &[7; 13]), good.1.clone(), &["img: there is more after the 3 records"]),
        (gzip(idx(&[3, 2, 2], &[7; 9])), good.1.clone(), &["img, record 3: the file ends here"]),
        (big[..big.len() / 2].to_vec(), idx(&[100], &[0, 1].repeat(50)), &["img, record ", "fetch the file again"]),
        (good.1.clone(), good.1.clone(), &["img: a list of single bytes"]),
        (good.0.clone(), good.0.clone(), &["lab: labels have one dimension, this file has 3"]),
        (good.0.clone(), idx(&[2], &[0, 1]), &["lab: 2 labels for the 3 images of", "img"]),
        (good.0.clone(), idx(&[3], &[1, 1, 1]), &["lab: every training row has the label \"1\""]),
    ];
    for (images, labels, says) in cases {
        let pair = IdxPair { images: place.file("img", images), labels: place.file("lab", labels) };
        place.refused(import_idx(&pair, None, Scaling::Pixels, &place.output()), says);
    }
    let train = IdxPair { images: place.file("img", good.0), labels: place.file("lab", good.1) };
    for (images, labels, says) in [
        (idx(&[2, 2, 2], &[7; 8]), idx(&[2], &[0, 9]), &["tlab, record 2", "\"9\" does not occur"][..]),
        (idx(&[2, 2, 3], &[7; 12]), idx(&[2], &[0, 1]), &["timg: images of shape [2, 3], but those of"]),
    ] {
        let test = IdxPair { images: place.file("timg", images), labels: place.file("tlab", labels) };
        place.refused(import_idx(&train, Some(&test), Scaling::Pixels, &place.output()), says);
    }
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
fn texts_that_are_not_utf_8_are_refused() {
    let place = Place::new();
    import_table(&csv(&place.file("x.csv", "1,aaaa\n2,bbbb\n3,aaaa\n")), &place.output()).unwrap();
    let mut bytes = std::fs::read(place.output()).unwrap();
    let at = bytes.windows(4).position(|window| window == b"aaaa").unwrap();
    bytes[at + 1] = 0xff;
    std::fs::write(place.output(), bytes).unwrap();
    let message = Dataset::open(&place.output()).unwrap_err().to_string();
    assert!(message.contains("a text in the file is not UTF-8"), "{message}");
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

#[test]
fn tables_of_every_kind_are_one_table() {
    let place = Place::new();
    let digest = |name: &str, text: &str, layout: TableLayout| {
        let import = TableImport { layout, ..csv(&place.file(name, text)) };
        import_table(&import, &place.output()).unwrap();
        Dataset::open(&place.output()).unwrap().digest().to_owned()
    };
    let plain = || TableLayout::default();
    let expected = digest("a", "1.5,2,x y\n-3,4,z\n", plain());
    for text in [
        "1.5;2;x y\n-3;4;z\n",
        "1.5\t2\tx y\r\n-3\t4\tz\r\n",
        "\u{feff}1.5, 2 ,\"x y\"\n\n \n-3,\"4\",z",
        "  1.5  2  \"x y\"\n -3\t\t4 z  \n",
    ] {
        assert_eq!(digest("a", text, plain()), expected, "{text:?}");
    }
    let pipe = TableLayout { delimiter: Delimiter::named("|"), ..plain() };
    assert_eq!(digest("a", "1.5|2|x y\n-3|4|z\n", pipe), expected);
    let first = TableLayout { label: Column::Number(1), drop: vec![Column::Number(3)], header: Header::No, ..plain() };
    assert_eq!(digest("a", "x y,1.5,some text,2\nz,-3,,4\n", first.clone()).len(), 64);
    let data = Dataset::open(&place.output()).unwrap();
    assert_eq!((data.raw::<f64>("train/x"), data.classes().len()), (vec![1.5, 2.0, -3.0, 4.0], 2));
    assert_eq!(data.feature_names().unwrap().unwrap(), ["x2", "x4"]);
    let named =
        TableLayout { label: Column::Name("kind".into()), drop: vec![Column::Name("id".into()), Column::Last], ..plain() };
    digest("a", "id,u,kind,v,second target\nr1,1.5,x,2,7\nr2,-3,y,4,\n", named);
    let data = Dataset::open(&place.output()).unwrap();
    assert_eq!(data.feature_names().unwrap().unwrap(), ["u", "v"]);
    // A column that is left out may hold anything, others may not.
    std::fs::remove_file(place.output()).unwrap();
    let kept = TableLayout { drop: Vec::new(), ..first };
    let import = TableImport { layout: kept, ..csv(&place.file("x.csv", "x y,1.5,some text,2\nz,-3,,4\n")) };
    place.refused(import_table(&import, &place.output()), &["x.csv, line 1: column 3: \"some text\" is not a number"]);
}

#[test]
fn test_rows_are_those_that_are_listed() {
    let place = Place::new();
    let train = place.file("x.csv", (0..10).map(|i| format!("{i},{}\n", if i % 3 == 2 { 2 } else { i % 2 })).collect::<String>());
    let import = |list: &[u8], split| {
        let test = TestRows::Rows { file: place.file("rows.txt", list), split };
        import_table(&TableImport { test, ..csv(&train) }, &place.output())
    };
    let list = "7 1\t4\r\n\n2 9 \n";
    for (list, split, test) in [
        (list.as_bytes().to_vec(), None, vec![1.0, 4.0, 7.0]),
        (gzip(list), Some(2), vec![2.0, 9.0]),
        (b"3\n4\n".to_vec(), Some(2), vec![4.0]),
        (b"0".to_vec(), None, vec![0.0]),
    ] {
        import(&list, split).unwrap();
        let data = Dataset::open(&place.output()).unwrap();
        assert_eq!(data.raw::<f64>("test/x"), test);
        let train: Vec<f64> = (0..10).map(f64::from).filter(|row| !test.contains(row)).collect();
        assert_eq!(data.raw::<f64>("train/x"), train);
    }
    std::fs::remove_file(place.output()).unwrap();
    for (list, split, says) in [
        ("1 2 10\n", None, "rows.txt, line 1: row 10 is past the end: "),
        ("1 2 99999999999999999999\n", None, "rows.txt, line 1: \"99999999999999999999\" is not the number of a row"),
        ("\n1 2 1\n", None, "rows.txt, line 2: row 1 is listed twice"),
        ("1 -2\n", None, "\"-2\" is not the number of a row"),
        ("1,2\n", None, "\"1,2\" is not the number of a row: list numbers from 0, separated by blanks"),
        ("1 2\n", Some(2), "rows.txt: there is no split 2: the file has splits 1 to 1"),
        ("1 2\n", Some(0), "rows.txt: there is no split 0"),
        ("1\n2\n", None, "write the rows of a split into one line"),
        ("0 1 2 3 4 5 6 7 8 9\n", None, "all 10 rows"),
        ("2 5 8\n", None, "x.csv, line 3: all rows with label \"2\" are test rows: choose other test rows"),
        ("\n \n", None, "rows.txt: the file lists no rows"),
        ("", None, "rows.txt: the file is empty"),
    ] {
        place.refused(import(list.as_bytes(), split), &[says]);
    }
    let cut = gzip("1 2 3\n");
    place.refused(import(&cut[..cut.len() - 9], None), &["rows.txt, line ", "damaged or cut short"]);
}

/// The UCI regressions with their original splits, where they are at hand.
#[test]
fn the_uci_regressions_are_imported_with_their_splits() {
    let Some(folder) = std::env::var_os("MPIBAYES_DATA").map(|data| Path::new(&data).join("uci_regression")) else { return };
    if !folder.exists() {
        return;
    }
    let place = Place::new();
    let last_but_one = TableLayout { label: Column::Number(17), drop: vec![Column::Last], ..TableLayout::default() };
    for (name, rows, features, test_rows, layout) in [
        ("bostonHousing", 506, 13, 51, TableLayout::default()),
        ("concrete", 1030, 8, 103, TableLayout::default()),
        ("kin8nm", 8192, 8, 819, TableLayout::default()),
        ("naval-propulsion-plant", 11934, 16, 1193, last_but_one),
    ] {
        let folder = folder.join(name);
        let test = TestRows::Rows { file: folder.join("test_splits.txt.gz"), split: Some(20) };
        let import = TableImport { test, task: Task::Regression, layout, ..csv(&folder.join("data.txt.gz")) };
        import_table(&import, &place.output()).unwrap();
        let data = Dataset::open(&place.output()).unwrap();
        let found = (data.rows(Split::Train), data.rows(Split::Test), data.features());
        assert_eq!(found, (rows - test_rows, test_rows, features), "{name}");
    }
}

fn npy(kind: &str, shape: &str, data: &[u8]) -> Vec<u8> {
    let header = format!("{{'descr': '{kind}', 'fortran_order': False, 'shape': {shape}, }}\n");
    let length = u16::try_from(header.len()).unwrap().to_le_bytes();
    [b"\x93NUMPY\x01\0", &length[..], header.as_bytes(), data].concat()
}

fn npz(arrays: &[(&str, Vec<u8>)]) -> Vec<u8> {
    let mut archive = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    for (i, (name, array)) in arrays.iter().enumerate() {
        let method = if i % 2 == 0 { zip::CompressionMethod::Deflated } else { zip::CompressionMethod::Stored };
        let options = zip::write::SimpleFileOptions::default().compression_method(method);
        archive.start_file(format!("{name}.npy"), options).unwrap();
        archive.write_all(array).unwrap();
    }
    archive.finish().unwrap().into_inner()
}

fn f64s(numbers: &[f64]) -> Vec<u8> {
    numbers.iter().flat_map(|number| number.to_le_bytes()).collect()
}

fn arrays(place: &Place, x: Vec<u8>, y: Vec<u8>) -> ArrayImport {
    let train = ArrayPair { features: ArrayFile::npy(&place.file("x.npy", x)), targets: ArrayFile::npy(&place.file("y.npy", y)) };
    ArrayImport { train, test: TestRows::None, task: Task::Classification, scaling: None }
}

#[test]
fn arrays_become_datasets() {
    let place = Place::new();
    let x = npy("<f8", "(3, 2)", &f64s(&[0.5, 1.0, -2.0, 3.0, 4.0, 5.0]));
    let import = arrays(&place, gzip(&x), npy("<i8", "(3,)", &[9_i64, 10, 9].map(i64::to_le_bytes).concat()));
    assert_eq!(import_arrays(&import, &place.output()).unwrap(), Scaling::Standardize);
    let data = Dataset::open(&place.output()).unwrap();
    assert_eq!((data.classes(), data.shape(), data.source()), (&["9".to_owned(), "10".into()][..], &[2][..], "x.npy, y.npy"));
    assert_eq!(data.raw::<f64>("train/x"), [0.5, 1.0, -2.0, 3.0, 4.0, 5.0]);
    assert_eq!(data.read_rows::<f64>(Split::Train, &[0, 1, 2]).unwrap().y(), array![0.0, 1.0, 0.0]);
    // Regression, with targets in a column, and listed test rows.
    let import = arrays(&place, x, npy("<f4", "(3, 1)", &[1.5_f32, 2.5, 4.0].map(f32::to_le_bytes).concat()));
    let test = TestRows::Rows { file: place.file("rows", "1"), split: None };
    import_arrays(&ArrayImport { task: Task::Regression, test, ..import }, &place.output()).unwrap();
    let data = Dataset::open(&place.output()).unwrap();
    assert_eq!((data.raw::<f64>("train/y"), data.raw::<f64>("test/y")), (vec![1.5, 4.0], vec![2.5]));
    assert_eq!(data.raw::<f64>("test/x"), [-2.0, 3.0]);
}

#[test]
fn images_in_an_archive_keep_their_bytes_and_their_test_rows() {
    let place = Place::new();
    let images: Vec<u8> = (0..24).map(|i| i * 10).collect();
    let path = place.file(
        "mnist.npz",
        npz(&[
            ("x_test", npy("|u1", "(1, 2, 3)", &[7; 6])),
            ("x_train", npy("|u1", "(4, 2, 3)", &images)),
            ("y_train", npy("|u1", "(4,)", &[3, 1, 3, 1])),
            ("y_test", npy("|u1", "(1,)", &[1])),
        ]),
    );
    let (train, test) = ArrayPair::in_npz(&path, None, None).unwrap();
    let import = ArrayImport { train, test: TestRows::File(test.unwrap()), task: Task::Classification, scaling: None };
    assert_eq!(import_arrays(&import, &place.output()).unwrap(), Scaling::Pixels);
    let data = Dataset::open(&place.output()).unwrap();
    assert_eq!((data.shape(), data.source(), data.rows(Split::Test)), (&[2, 3][..], "mnist.npz", 1));
    assert_eq!((data.raw::<u8>("train/x"), data.raw::<u8>("test/x")), (images, vec![7; 6]));
    let other = place.file("a.npz", npz(&[("A", npy("|u1", "(2, 1)", &[1, 2])), ("b", npy("|u1", "(2,)", &[1, 2]))]));
    let message = ArrayPair::in_npz(&other, None, None).unwrap_err().to_string();
    assert!(message.contains("a.npz: neither the arrays x and y") && message.contains("it has A, b"), "{message}");
    let (train, test) = ArrayPair::in_npz(&other, Some("A"), Some("b")).unwrap();
    assert!(test.is_none());
    import_arrays(&ArrayImport { train, test: TestRows::None, ..import.clone() }, &place.output()).unwrap();
    let (train, _) = ArrayPair::in_npz(&other, Some("A"), Some("c")).unwrap();
    std::fs::remove_file(place.output()).unwrap();
    let refused = import_arrays(&ArrayImport { train, test: TestRows::None, ..import }, &place.output());
    place.refused(refused.map(drop), &["a.npz: there is no array \"c\" here: it has A, b"]);
}

#[test]
fn images_in_four_dimensions_are_stored_with_the_channels_last() {
    let place = Place::new();
    let y = || npy("|u1", "(2,)", &[0, 1]);
    // Two images of 2 × 5 pixels with 3 channels.
    let last: Vec<u8> = (0..60).collect();
    let first: Vec<u8> = last
        .chunks(30)
        .flat_map(|image| (0..3).flat_map(move |channel| image.iter().copied().skip(channel).step_by(3)))
        .collect();
    let expected = |import: &ArrayImport, scaling| {
        assert_eq!(import_arrays(import, &place.output()).unwrap(), scaling);
        let data = Dataset::open(&place.output()).unwrap();
        (data.shape().to_vec(), data.raw::<u8>("train/x"))
    };
    let with_last = arrays(&place, npy("|u1", "(2, 2, 5, 3)", &last), y());
    assert_eq!(expected(&with_last, Scaling::Channels), (vec![2, 5, 3], last.clone()));
    let with_first = arrays(&place, npy("|u1", "(2, 3, 2, 5)", &first), y());
    assert_eq!(expected(&with_first, Scaling::Channels), (vec![2, 5, 3], last.clone()));
    // New rows are read in the same order.
    let mut rows = Vec::new();
    let row = |row: &[f64], _| {
        rows.extend_from_slice(row);
        Ok(())
    };
    with_first.train.features.rows(30, row).unwrap();
    assert_eq!(rows, last.iter().map(|&pixel| f64::from(pixel)).collect::<Vec<_>>());
    // One channel makes no dimension, and bytes are then pixels.
    let gray = arrays(&place, npy("|u1", "(2, 1, 5, 6)", &last), y());
    assert_eq!(expected(&gray, Scaling::Pixels), (vec![5, 6], last.clone()));
    let test = TestRows::File(gray.train.clone());
    import_arrays(&ArrayImport { test, ..gray }, &place.output()).unwrap();
    assert_eq!(Dataset::open(&place.output()).unwrap().raw::<u8>("test/x"), last);
    // Numbers that are no bytes, in an order that the sizes do not show.
    let floats: Vec<f64> = first.iter().map(|&pixel| f64::from(pixel)).collect();
    let mut unclear = arrays(&place, npy("<f8", "(2, 3, 10, 1)", &f64s(&floats)), y());
    std::fs::remove_file(place.output()).unwrap();
    place.refused(import_arrays(&unclear, &place.output()), &["x.npy: images of shape [3, 10, 1] may have", "--channels first"]);
    unclear.train.features.channels = Some(ChannelOrder::First);
    assert_eq!(import_arrays(&unclear, &place.output()).unwrap(), Scaling::Channels);
    let data = Dataset::open(&place.output()).unwrap();
    assert_eq!(
        (data.shape(), data.raw::<f64>("train/x")),
        (&[10, 1, 3][..], last.iter().map(|&pixel| f64::from(pixel)).collect())
    );
}

#[test]
fn channels_have_mean_0_and_deviation_1_over_the_training_images() {
    let place = Place::new();
    // Two images of 1 × 2 pixels: red 0, 2, 4, 10 and green 5 everywhere.
    let x = npy("|u1", "(2, 1, 2, 2)", &[0, 5, 2, 5, 4, 5, 10, 5]);
    let tx = place.file("tx.npy", npy("|u1", "(1, 1, 2, 2)", &[4, 6, 14, 5]));
    let test = ArrayPair {
        features: ArrayFile { channels: Some(ChannelOrder::Last), ..ArrayFile::npy(&tx) },
        targets: ArrayFile::npy(&place.file("ty.npy", npy("|u1", "(1,)", &[1]))),
    };
    let mut import = arrays(&place, x, npy("|u1", "(2,)", &[0, 1]));
    // Images of height 1 look like planes.
    import.train.features.channels = Some(ChannelOrder::Last);
    let scaled = |import: ArrayImport, split, rows: &[usize]| {
        import_arrays(
            &ArrayImport { test: TestRows::File(test.clone()), scaling: Some(Scaling::Channels), ..import },
            &place.output(),
        )
        .unwrap();
        let data = Dataset::open(&place.output()).unwrap();
        data.verify(&mut |_| {}).unwrap();
        data.read_rows::<f64>(split, rows).unwrap().x().to_owned()
    };
    // The mean of red is 4, its variance (16 + 4 + 0 + 36) / 4 = 14.
    let unit = 14_f64.sqrt();
    let train = array![[-4.0 / unit, 0.0, -2.0 / unit, 0.0], [0.0, 0.0, 6.0 / unit, 0.0]];
    approx::assert_abs_diff_eq!(scaled(import.clone(), Split::Train, &[0, 1]), train, epsilon = 1e-15);
    let of_test = array![[0.0, 1.0, 10.0 / unit, 0.0]];
    approx::assert_abs_diff_eq!(scaled(import, Split::Test, &[0]), of_test, epsilon = 1e-15);
    // Without a dimension of channels, all pixels are one channel: 1, 3, 5, 7 have the mean 4 and the variance 5.
    let gray = arrays(&place, npy("|u1", "(2, 1, 2)", &[1, 3, 5, 7]), npy("|u1", "(2,)", &[0, 1]));
    import_arrays(&ArrayImport { scaling: Some(Scaling::Channels), ..gray }, &place.output()).unwrap();
    let data = Dataset::open(&place.output()).unwrap();
    let rows = data.read_rows::<f64>(Split::Train, &[0, 1]).unwrap();
    approx::assert_abs_diff_eq!(rows.x().to_owned(), array![[-3.0, -1.0], [1.0, 3.0]] / 5_f64.sqrt(), epsilon = 1e-15);
    std::fs::remove_file(place.output()).unwrap();
    let table = TableImport { scaling: Scaling::Channels, ..csv(&place.file("x.csv", "1,2,0\n3,4,1\n")) };
    place.refused(import_table(&table, &place.output()), &["the scaling channels is for images", "rows have the shape [2]"]);
}

#[test]
fn bad_arrays_are_refused() {
    let place = Place::new();
    let x = || npy("<f8", "(2, 1)", &f64s(&[1.0, 2.0]));
    let y = || npy("|i1", "(2,)", &[0, 1]);
    let cases: Vec<(Vec<u8>, Vec<u8>, &[&str])> = vec![
        (vec![], y(), &["x.npy: the file is empty"]),
        (
            x()[..70].to_vec(),
            y(),
            &["x.npy: the header promises an array of shape [2, 1], which a file of this size cannot hold"],
        ),
        (gzip(&x()[..70]), y(), &["x.npy, record ", "the file ends here"]),
        (gzip(x())[..60].to_vec(), y(), &["x.npy", " again"]),
        (npy("<f8", "(2, 1)", &f64s(&[1.0, f64::INFINITY])), y(), &["x.npy, record 2: number 1 is inf"]),
        (x(), npy("<f8", "(2,)", &f64s(&[1.0, f64::NAN])), &["y.npy, record 2: number 1 is NaN"]),
        (x(), npy("<f8", "(2,)", &f64s(&[1.0, 0.5])), &["y.npy, record 2: the label 0.5 is not a whole number"]),
        (x(), npy("|i1", "(3,)", &[0, 1, 0]), &["y.npy: 3 targets for the 2 rows of", "x.npy"]),
        (x(), npy("|i1", "(2, 2)", &[0, 1, 1, 0]), &["y.npy: [2] numbers for each example", "one-hot"]),
        (x(), npy("|i1", "(2,)", &[1, 1]), &["y.npy: every training row has the label \"1\""]),
        (npy("|u1", "(1, 90000000000)", &[1]), y(), &["x.npy: the header promises"]),
        (gzip(npy("|u1", "(2, 30000)", &[1])), y(), &["x.npy, record 1: the file ends here, its header promises 2 rows"]),
        (b"1,2\n3,4\n".to_vec(), y(), &["x.npy: this is no NPY file"]),
    ];
    for (x, y, says) in cases {
        let import = arrays(&place, x, y);
        place.refused(import_arrays(&import, &place.output()).map(drop), says);
    }
    for (tx, ty, says) in [
        (npy("|u1", "(1, 2)", &[1, 2]), npy("|u1", "(1,)", &[1]), "tx.npy: rows of shape [2], but those of"),
        (npy("|u1", "(1, 1)", &[1]), npy("|u1", "(1,)", &[5]), "ty.npy, record 1: the test row's label \"5\" does not occur"),
    ] {
        let (features, targets) = (place.file("tx.npy", tx), place.file("ty.npy", ty));
        let pair = ArrayPair { features: ArrayFile::npy(&features), targets: ArrayFile::npy(&targets) };
        let import = ArrayImport { test: TestRows::File(pair), ..arrays(&place, x(), y()) };
        place.refused(import_arrays(&import, &place.output()).map(drop), &[says]);
    }
    let whole = npz(&[("x", x()), ("y", y())]);
    for cut in [20, whole.len() / 2, whole.len() - 5] {
        let message = ArrayPair::in_npz(&place.file("x.npz", &whole[..cut]), None, None).unwrap_err().to_string();
        assert!(message.contains("x.npz: this NPZ file is damaged or cut short"), "{message}");
    }
    let mut flipped = whole.clone();
    // Within the stored numbers of y: only their checksum can tell.
    let at = flipped.windows(4).position(|bytes| bytes == [b'\n', 0, 1, b'P']).unwrap();
    flipped[at + 1] = 2;
    let (train, _) = ArrayPair::in_npz(&place.file("x.npz", flipped), None, None).unwrap();
    let import = ArrayImport { train, test: TestRows::None, task: Task::Classification, scaling: None };
    place.refused(import_arrays(&import, &place.output()).map(drop), &["x.npz[y]", "checksum"]);
}

#[test]
fn what_is_no_table_is_refused() {
    let place = Place::new();
    for (content, says) in [
        (b"\x00\x01\x02,3\n".to_vec(), "this is not text"),
        ("1,2\n".encode_utf16().flat_map(u16::to_le_bytes).collect(), "this is not text"),
        ("\u{feff}1,2\n".encode_utf16().flat_map(u16::to_le_bytes).collect(), "UTF-16: save it as UTF-8"),
        (b"1,2\r3,4\r".to_vec(), "carriage return"),
        (b"1,2\n3,\"4\n".to_vec(), "line 2: a quote that opens in this record is never closed"),
    ] {
        place.refused(import_table(&csv(&place.file("x.csv", content)), &place.output()), &["x.csv", says]);
    }
    let train = place.file("x.csv", "id,a,b\n1,2,0\n3,4,1\n");
    for (label, drop, says) in [
        (Column::Last, vec![Column::Number(3)], "column 3 is to be both"),
        (Column::Last, vec![Column::Number(1), Column::Number(2)], "no feature remains"),
        (Column::Last, vec![Column::Name("ide".into())], "no column is called \"ide\""),
        (Column::Last, vec![Column::Number(9)], "there is no column 9"),
    ] {
        let layout = TableLayout { label, drop, ..TableLayout::default() };
        place.refused(import_table(&TableImport { layout, ..csv(&train) }, &place.output()), &[says]);
    }
}
