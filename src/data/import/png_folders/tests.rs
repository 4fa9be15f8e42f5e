//! Imports of PNG files that the tests make: gray, colors, palettes, alpha, and input that is refused.

#![allow(clippy::unwrap_used)]

use super::*;
use crate::data::Dataset;
use crate::data::tests::Place as Folder;
use png::{BitDepth, ColorType, Encoder};

fn png(width: u32, color: ColorType, depth: BitDepth, data: &[u8]) -> Vec<u8> {
    let mut file = Vec::new();
    let channels = u32::try_from(color.samples()).unwrap();
    let row = (width * channels * depth as u32).div_ceil(8);
    let mut encoder = Encoder::new(&mut file, width, u32::try_from(data.len()).unwrap() / row);
    encoder.set_color(color);
    encoder.set_depth(depth);
    if color == ColorType::Indexed {
        encoder.set_palette(&[10, 20, 30, 40, 50, 60][..]);
    }
    let mut writer = encoder.write_header().unwrap();
    writer.write_image_data(data).unwrap();
    writer.finish().unwrap();
    file
}

fn rgb(data: &[u8]) -> Vec<u8> {
    png(2, ColorType::Rgb, BitDepth::Eight, data)
}

fn gray(data: &[u8]) -> Vec<u8> {
    png(2, ColorType::Grayscale, BitDepth::Eight, data)
}

/// Paths in a folder, and what the files contain.
type Files = Vec<(&'static str, Vec<u8>)>;

/// A folder with these files.
fn files(folder: &Folder, root: &str, all: &[(&str, Vec<u8>)]) -> PathBuf {
    let root = folder.folder(root);
    for (name, content) in all {
        let path = root.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }
    root
}

fn import(train: &Path) -> PngImport {
    PngImport { train: train.to_path_buf(), test: None, scaling: None }
}

#[test]
fn color_images_of_every_kind_become_rows_in_the_order_of_their_names() {
    let folder = Folder::new();
    let root = files(
        &folder,
        "pets",
        &[
            ("dog/b.png", rgb(&[1, 2, 3, 4, 5, 6])),
            ("dog/a.PNG", png(2, ColorType::Rgba, BitDepth::Eight, &[7, 8, 9, 255, 10, 11, 12, 255])),
            ("cat/z.png", png(2, ColorType::Indexed, BitDepth::Eight, &[1, 0])),
            ("cat/.hidden", vec![1]),
            ("notes.txt", vec![1]),
        ],
    );
    let test = files(&folder, "more", &[("cat/1.png", rgb(&[9; 6]))]);
    let import = PngImport { test: Some(test), ..import(&root) };
    assert_eq!(import_png(&import, &folder.output()).unwrap(), Scaling::Channels);
    let data = Dataset::open(&folder.output()).unwrap();
    assert_eq!(
        (data.shape(), data.classes(), data.source()),
        (&[1, 2, 3][..], &["cat".to_owned(), "dog".into()][..], "pets, more")
    );
    assert_eq!(data.raw::<u8>("train/x"), [40, 50, 60, 10, 20, 30, 7, 8, 9, 10, 11, 12, 1, 2, 3, 4, 5, 6]);
    assert_eq!((data.raw::<u32>("train/y"), data.raw::<u32>("test/y")), (vec![0, 1, 1], vec![0]));
    assert_eq!(data.raw::<u8>("test/x"), [9; 6]);
}

#[test]
fn gray_images_have_two_dimensions_and_folders_may_name_the_splits() {
    let folder = Folder::new();
    let root = files(
        &folder,
        "digits",
        &[
            ("train/10/a.png", gray(&[1, 2, 3, 4, 5, 6])),
            (
                "train/9/a.png",
                png(2, ColorType::GrayscaleAlpha, BitDepth::Eight, &[7, 255, 8, 255, 9, 255, 10, 255, 11, 255, 12, 255]),
            ),
            ("train/9/b.png", png(2, ColorType::Grayscale, BitDepth::One, &[0x40, 0x80, 0xc0])),
            ("test/10/a.png", gray(&[6, 5, 4, 3, 2, 1])),
        ],
    );
    assert_eq!(import_png(&import(&root), &folder.output()).unwrap(), Scaling::Pixels);
    let data = Dataset::open(&folder.output()).unwrap();
    assert_eq!((data.shape(), data.classes()), (&[3, 2][..], &["9".to_owned(), "10".into()][..]));
    assert_eq!(data.raw::<u8>("train/x"), [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 0, 255, 255, 0, 255, 255]);
    assert_eq!((data.raw::<u32>("train/y"), data.raw::<u8>("test/x")), (vec![1, 0, 0], vec![6, 5, 4, 3, 2, 1]));
    std::fs::remove_file(folder.output()).unwrap();
    let again = PngImport { test: Some(root.join("test")), ..import(&root) };
    folder.refused(import_png(&again, &folder.output()), &["digits: this folder has a subfolder test"]);
    std::fs::create_dir(root.join("valid")).unwrap();
    folder.refused(import_png(&import(&root), &folder.output()), &["digits: beside train and test", "\"valid\""]);
}

#[test]
fn bad_folders_of_images_are_refused() {
    let good = || rgb(&[1, 2, 3, 4, 5, 6]);
    let mut damaged = good();
    let middle = damaged.len() / 2;
    damaged[middle] ^= 0x55;
    let cut = good()[..middle].to_vec();
    let mut huge = good();
    huge[16..24].copy_from_slice(&[0, 0, 0x7f, 0xff, 0, 0, 0x7f, 0xff]);
    let all_256: Vec<u8> = vec![0; 12];
    let cases: Vec<(Files, &[&str])> = vec![
        (
            vec![("a/1.png", good()), ("b/1.png", rgb(&[1; 12]))],
            &["b/1.png: this image is 2 × 2 with 3", "a/1.png is 2 × 1 with 3"],
        ),
        (
            vec![("a/1.png", good()), ("a/2.png", gray(&[1, 2]))],
            &["a/2.png: this image is 2 × 1 with 1 channel", "a/1.png is 2 × 1 with 3"],
        ),
        (vec![("a/1.png", good()), ("b/.x", vec![])], &["b: this class has no images"]),
        (vec![("a/1.png", good()), ("b/1.png", b"GIF89a".to_vec())], &["b/1.png: this is not a PNG file"]),
        (vec![("a/1.png", good()), ("b/1.jpg", vec![])], &["b/1.jpg: this is not a PNG file, or it is cut short"]),
        (vec![("a/1.png", good()), ("b/1.png", damaged)], &["b/1.png: this"]),
        (vec![("a/1.png", good()), ("b/1.png", cut)], &["b/1.png: this"]),
        (vec![("a/1.png", good()), ("b/1.png", huge)], &["b/1.png: this is not a PNG file, or it is damaged"]),
        (vec![("a/1.png", good()), ("b/1/1.png", good())], &["b/1: class folders cannot have subfolders"]),
        (vec![("a/1.png", good()), ("1.png", good())], &["x/1.png: this image is outside the class folders"]),
        (vec![("a/1.png", good())], &["x: every training row has the label \"a\""]),
        (vec![("notes", vec![])], &["x: no class folders here"]),
        (vec![("a/1.png", png(2, ColorType::Rgb, BitDepth::Sixteen, &all_256))], &["a/1.png: an image of 16 bits"]),
        (
            vec![("a/1.png", png(2, ColorType::Rgba, BitDepth::Eight, &[1, 2, 3, 255, 1, 2, 3, 254]))],
            &["a/1.png: an image with transparent pixels"],
        ),
        (
            vec![("train/a/1.png", good()), ("train/b/1.png", good()), ("test/c/1.png", good())],
            &["test/c/1.png", "\"c\" does not occur"],
        ),
    ];
    for (all, says) in cases {
        let folder = Folder::new();
        let root = files(&folder, "x", &all);
        folder.refused(import_png(&import(&root), &folder.output()), says);
    }
}

#[test]
fn a_header_cannot_claim_any_amount_of_memory() {
    let folder = Folder::new();
    let mut file = Vec::new();
    // The header alone.
    drop(Encoder::new(&mut file, 1 << 15, 1 << 15).write_header().unwrap());
    let root = files(&folder, "x", &[("a/1.png", file)]);
    folder.refused(import_png(&import(&root), &folder.output()), &["a/1.png: an image of 32768 × 32768 pixels"]);
}
