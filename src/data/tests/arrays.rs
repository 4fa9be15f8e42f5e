//! Arrays and images: IDX, NumPy files and archives, scaled channels.

use super::*;

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
