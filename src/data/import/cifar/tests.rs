//! Imports of made-up CIFAR files: records, original archives, and input that is refused.

#![allow(clippy::unwrap_used)]

use super::*;
use crate::data::Dataset;
use crate::data::tests::{Place as Folder, gzip};
use ndarray::array;

/// The planes of an image whose red, green and blue pixels are these values plus the number of the pixel, modulo 256.
fn planes(colors: [usize; 3]) -> Vec<u8> {
    colors.iter().flat_map(|color| (0..SIDE * SIDE).map(move |pixel| u8::try_from((color + pixel) % 256).unwrap())).collect()
}

fn record(labels: &[u8], colors: [usize; 3]) -> Vec<u8> {
    [labels, &planes(colors)].concat()
}

/// The pixels of the image, height × width × channels.
fn pixels(colors: [usize; 3]) -> Vec<u8> {
    (0..SIDE * SIDE).flat_map(|pixel| colors.map(|color| u8::try_from((color + pixel) % 256).unwrap())).collect()
}

pub(crate) fn archive(members: &[(&str, &[u8])]) -> Vec<u8> {
    let mut archive = tar::Builder::new(Vec::new());
    for (name, content) in members {
        let mut header = tar::Header::new_ustar();
        header.set_size(content.len() as u64);
        header.set_mode(0o644);
        archive.append_data(&mut header, format!("cifar/{name}"), *content).unwrap();
    }
    archive.into_inner().unwrap()
}

fn import(train: &[PathBuf]) -> CifarImport {
    CifarImport { train: train.to_vec(), ..CifarImport::default() }
}

const TEN: &str = "airplane\nautomobile\nbird\ncat\ndeer\ndog\nfrog\nhorse\nship\ntruck\n\n";

#[test]
fn records_become_images_with_the_channels_last() {
    let folder = Folder::new();
    let one = folder.file("a.bin", [record(&[9], [0, 10, 20]), record(&[2], [3, 1, 4])].concat());
    let two = folder.file("b.bin.gz", gzip(record(&[9], [7, 7, 7])));
    let test = folder.file("t.bin", record(&[2], [90, 80, 70]));
    let import = CifarImport { test: Some(test), ..import(&[one, two]) };
    assert_eq!(import_cifar(&import, &folder.output()).unwrap(), Scaling::Channels);
    let data = Dataset::open(&folder.output()).unwrap();
    assert_eq!((data.shape(), data.classes()), (&[32, 32, 3][..], &["2".to_owned(), "9".into()][..]));
    assert_eq!(data.source(), "a.bin, b.bin.gz, t.bin");
    assert_eq!(data.raw::<u32>("train/y"), [1, 0, 1]);
    assert_eq!(data.raw::<u8>("train/x"), [pixels([0, 10, 20]), pixels([3, 1, 4]), pixels([7, 7, 7])].concat());
    assert_eq!((data.raw::<u8>("test/x"), data.raw::<u32>("test/y")), (pixels([90, 80, 70]), vec![0]));
    let first = CifarImport { first: Some(2), scaling: Some(Scaling::None), ..import.clone() };
    import_cifar(&first, &folder.output()).unwrap();
    let data = Dataset::open(&folder.output()).unwrap();
    assert_eq!((data.rows(Split::Train), data.rows(Split::Test)), (2, 1));
    let shard = data.read_rows::<f64>(Split::Train, &[1]).unwrap();
    assert_eq!(shard.x().slice(ndarray::s![0, 95..99]), array![35.0, 35.0, 33.0, 36.0]);
    std::fs::remove_file(folder.output()).unwrap();
    folder.refused(import_cifar(&CifarImport { first: Some(4), ..import }, &folder.output()), &["a.bin: the first 4", "are 3"]);
}

#[test]
fn an_original_archive_has_everything() {
    let folder = Folder::new();
    let (one, two) = (record(&[3], [1, 2, 3]), record(&[0], [4, 5, 6]));
    let (three, test) = (record(&[3], [7, 8, 9]), record(&[3], [9, 9, 9]));
    // The members are in no order.
    let members: [(&str, &[u8]); 7] = [
        ("readme.html", b"<html>"),
        ("data_batch_3.bin", &three),
        ("data_batch_1.bin", &one),
        ("test_batch.bin", &test),
        ("._data_batch_1.bin", b"of another system"),
        ("batches.meta.txt", TEN.as_bytes()),
        ("data_batch_2.bin", &two),
    ];
    let plain = archive(&members);
    for content in [gzip(&plain), plain] {
        import_cifar(&import(&[folder.file("cifar.tar.gz", content)]), &folder.output()).unwrap();
        let data = Dataset::open(&folder.output()).unwrap();
        assert_eq!((data.classes(), data.source()), (&["airplane".to_owned(), "cat".into()][..], "cifar.tar.gz"));
        assert_eq!((data.raw::<u32>("train/y"), data.raw::<u32>("test/y")), (vec![1, 0, 1], vec![1]));
        assert_eq!(data.raw::<u8>("train/x"), [pixels([1, 2, 3]), pixels([4, 5, 6]), pixels([7, 8, 9])].concat());
        assert_eq!(data.raw::<u8>("test/x"), pixels([9, 9, 9]));
    }
}

#[test]
fn cifar_100_has_fine_and_coarse_labels() {
    let folder = Folder::new();
    let train = [record(&[19, 4], [0, 0, 0]), record(&[3, 99], [1, 1, 1]), record(&[19, 7], [2, 2, 2])].concat();
    let test = record(&[3, 99], [3, 3, 3]);
    // Descending, so that sorted names would not be in the order of the labels.
    let names = |count: u32, kind: &str| (0..count).rev().map(|i| format!("{kind}{i:02}\r\n")).collect::<String>();
    let (fine, coarse) = (names(100, "fine"), names(20, "coarse"));
    let members: [(&str, &[u8]); 4] = [
        ("train.bin", &train),
        ("test.bin", &test),
        ("fine_label_names.txt", fine.as_bytes()),
        ("coarse_label_names.txt", coarse.as_bytes()),
    ];
    let path = folder.file("c.tar", archive(&members));
    for (coarse_labels, classes, labels) in
        [(false, &["fine95", "fine92", "fine00"][..], [0, 2, 1]), (true, &["coarse16", "coarse00"], [1, 0, 1])]
    {
        import_cifar(&CifarImport { coarse_labels, ..import(std::slice::from_ref(&path)) }, &folder.output()).unwrap();
        let data = Dataset::open(&folder.output()).unwrap();
        assert_eq!(
            (data.classes(), data.raw::<u32>("train/y")),
            (&classes.iter().map(|&x| x.into()).collect::<Vec<String>>()[..], labels.to_vec())
        );
        assert_eq!(data.raw::<u8>("test/x"), pixels([3, 3, 3]));
    }
    // Without an archive the format is seen in the records.
    import_cifar(&import(&[folder.file("x", &train)]), &folder.output()).unwrap();
    assert_eq!(Dataset::open(&folder.output()).unwrap().classes(), ["4", "7", "99"]);
}

#[test]
fn the_name_decides_only_where_both_formats_are_possible() {
    let folder = Folder::new();
    // A black image of class 0 in both formats.
    let black = vec![0; 3073 * 3074];
    let found = |name: &str, content: &[u8]| {
        let path = folder.file(name, content);
        detect_cifar(&path, &mut Source::open(&path).unwrap().reader)
    };
    assert_eq!(found("train.bin.gz", &black).unwrap(), CifarFormat::Hundred);
    assert_eq!(found("data_batch_1.bin", &black).unwrap(), CifarFormat::Ten);
    assert!(
        found("x", &black)
            .unwrap_err()
            .to_string()
            .contains("rename the file to data_batch_1.bin (CIFAR-10) or train.bin (CIFAR-100)")
    );
    assert_eq!(found("train.bin", &record(&[9], [200, 200, 200])).unwrap(), CifarFormat::Ten);
    assert_eq!(found("data_batch_1.bin", &record(&[9, 10], [200, 200, 200]).repeat(3073)).unwrap(), CifarFormat::Hundred);
}

#[test]
fn bad_cifar_files_are_refused() {
    let folder = Folder::new();
    let good = [record(&[0], [1, 1, 1]), record(&[1], [2, 2, 2])].concat();
    let hundred = [record(&[0, 1], [100, 100, 100]), record(&[1, 5], [100, 100, 100])].concat();
    let noise: Vec<u8> = (0..1_000_000_u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
    let zipped = gzip([&good[..], &noise].concat());
    let packed = archive(&[("data_batch_1.bin", &good)]);
    let cases: Vec<(Vec<u8>, &[&str])> = vec![
        (vec![], &["x: the file is empty"]),
        (good[..good.len() - 1].to_vec(), &["x: 6145 bytes are neither records of CIFAR-10 (3,073 bytes each)"]),
        (b"a,b\n1,2\n".to_vec(), &["x: 8 bytes are neither"]),
        (gzip(b""), &["x: 0 bytes are neither"]),
        (zipped[..zipped.len() / 2].to_vec(), &["x", "damaged or cut short"]),
        ([&good[..], &record(&[10], [1, 1, 1])].concat(), &["x, record 3: the label 10, but labels of CIFAR-10 are 0 to 9"]),
        (
            [&hundred[..], &record(&[20, 1], [1, 1, 1])].concat(),
            &["x, record 3: the label 20, but labels of CIFAR-100 are 0 to 19"],
        ),
        ([&hundred[..], &record(&[1, 100], [1, 1, 1])].concat(), &["x, record 3: the label 100, but", "0 to 99"]),
        (record(&[0], [1, 1, 1]), &["x: every training row has the label \"0\""]),
        (archive(&[("x.csv", b"1,2"), ("notes", b"")]), &["x: no training images", "it has x.csv, notes"]),
        (archive(&[("data_batch_1.bin", &good[..4000])]), &["x[data_batch_1.bin]: 4000 bytes are neither"]),
        (archive(&[("data_batch_1.bin", &good), ("data_batch_1.bin", &good)]), &["x: two files data_batch_1.bin"]),
        (
            archive(&[("data_batch_1.bin", &good), ("batches.meta.txt", b"a\nb\n")]),
            &["x: 2 names of classes, but CIFAR-10 has 10"],
        ),
        (archive(&[("data_batch_1.bin", &good), ("test.bin", &hundred)]), &["x[test.bin]: records of CIFAR-100, but those of"]),
        (packed[..4000].to_vec(), &["x", "neither records"]),
        (gzip(&packed)[..40].to_vec(), &["x", "again"]),
        ([&packed[..packed.len() - 1024], &[7; 700]].concat(), &["x: this tar archive is damaged or cut short"]),
    ];
    for (content, says) in cases {
        let path = folder.file("x", content);
        folder.refused(import_cifar(&import(&[path]), &folder.output()), says);
    }
    let (train, other) = (folder.file("a", &good), folder.file("b", &hundred));
    let tar = folder.file("c", archive(&[("data_batch_1.bin", &good)]));
    let unknown = folder.file("d", record(&[7], [1, 1, 1]));
    let both = import(&[train.clone(), other]);
    folder.refused(import_cifar(&both, &folder.output()), &["b: records of CIFAR-100, but those of", "are of CIFAR-10"]);
    folder.refused(import_cifar(&import(&[train.clone(), tar.clone()]), &folder.output()), &["c: import an archive alone"]);
    let with = |test: PathBuf| CifarImport { test: Some(test), ..import(std::slice::from_ref(&train)) };
    folder.refused(import_cifar(&with(tar), &folder.output()), &["c: an archive cannot be used as test images"]);
    folder.refused(import_cifar(&with(unknown), &folder.output()), &["d, record 1", "\"7\" does not occur"]);
    let coarse = CifarImport { coarse_labels: true, ..import(&[train]) };
    folder.refused(import_cifar(&coarse, &folder.output()), &["a: only CIFAR-100 has coarse labels"]);
}
