//! Scaled columns, rows in their principal axes and standardized targets.

use super::*;

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
