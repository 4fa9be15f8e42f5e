//! Imports as users type them: the report, the guessed formats, and the options that are refused.

#![allow(clippy::unwrap_used)]
use super::*;
use crate::cli::{Cli, Command};
use crate::data::Dataset;
use crate::text;
use clap::Parser;
use std::path::Path;

fn args(folder: &Path, rest: &str) -> ImportArgs {
    let place = |word: &str| word.replace("@", &format!("{}/", folder.display()));
    let typed = ["mpibayes", "import"].map(str::to_owned).into_iter().chain(rest.split(' ').map(place));
    match Cli::try_parse_from(typed).unwrap().command {
        Command::Import(args) => *args,
        other => panic!("{other:?}"),
    }
}

fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("a.csv"), "x,y,kind\n1,10,b\n2,20,a\n3,30,b\n4,40,a\n5,50,a\n").unwrap();
    std::fs::write(
        folder.path().join("images"),
        [&[0, 0, 8, 3, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 2][..], &[0, 255, 9, 8]].concat(),
    )
    .unwrap();
    std::fs::write(folder.path().join("labels"), [0, 0, 8, 1, 0, 0, 0, 2, 7, 3]).unwrap();
    folder
}

#[test]
fn a_csv_import_says_what_it_made() {
    let folder = folder();
    let said = import(&args(folder.path(), "@a.csv --test-fraction 0.4 --seed 2 -o @a.h5")).unwrap();
    for line in [
        "task      classification",
        "train     3 rows",
        "test      2 rows",
        "features  2\n",
        "scaling   standardize",
        "classes   2: a, b",
    ] {
        assert!(said.contains(&format!("\n  {line}")), "{line:?} in\n{said}");
    }
    let data = Dataset::open(&folder.path().join("a.h5")).unwrap();
    assert!(said.contains(&format!("digest    {}\n", &data.digest()[..12])), "{said}");
    std::fs::write(folder.path().join("c.csv"), "x,price\n1,90\n2,110\n").unwrap();
    let said = import(&args(folder.path(), "table @c.csv --task regression --label price -o @c.h5")).unwrap();
    assert!(said.contains(&format!("\n  targets   mean {}, standard deviation {}\n", text::value(100.0), text::value(10.0))));
    let said = import(&args(folder.path(), "table @a.csv --label 2 --header yes --task regression -o @b.h5"));
    // The control: the label is then a feature, and no number.
    assert!(said.unwrap_err().to_string().contains("a.csv, line 2"));
}

#[test]
fn an_idx_import_says_what_it_made() {
    let folder = folder();
    let said = import(&args(folder.path(), "images @images --labels @labels -o @i.h5")).unwrap();
    for line in ["features  2 (1 × 2)", "scaling   pixels", "classes   2: 3, 7", "test      none"] {
        assert!(said.contains(line), "{line:?} in\n{said}");
    }
    let refused = import(&args(folder.path(), "@images -o @j.h5")).unwrap_err().to_string();
    assert!(refused.contains("images need their labels: give them with --labels FILE"), "{refused}");
    let detected = import(&args(folder.path(), "@images --labels @labels -o @j.h5")).unwrap();
    assert_eq!(detected.replace("j.h5", "i.h5"), said);
    for (option, says) in [
        ("--test-fraction 0.5", "images: --test-fraction is not for IDX files"),
        ("--test-rows @labels", "images: --test-rows is not for IDX files"),
        ("--task classification", "images: --task is not for IDX files, whose images are classified"),
        ("--test @labels", "labels: test images in an IDX file need their labels"),
    ] {
        let typed = format!("@images --labels @labels {option} -o @n.h5");
        let refused = import(&args(folder.path(), &typed)).unwrap_err().to_string();
        assert!(refused.contains(says), "{typed}: {refused}");
    }
}

#[test]
fn a_cifar_import_and_a_folder_of_png_files_say_what_they_made() {
    let folder = folder();
    let file = |name: &str, content: &[u8]| std::fs::write(folder.path().join(name), content).unwrap();
    let record = |label: u8| [&[label][..], &[9; 3072]].concat();
    file("train.bin", &[record(8), record(3)].concat());
    file("test.bin", &record(3));
    let said = import(&args(folder.path(), "images @train.bin --test-images @test.bin -o @c.h5")).unwrap();
    for line in ["features  3,072 (32 × 32 × 3)", "scaling   channels", "classes   2: 3, 8", "test      1 row"] {
        assert!(said.contains(line), "{line:?} in\n{said}");
    }
    for (class, pixels) in [("pets/cat", [0, 255]), ("pets/dog", [9, 8])] {
        std::fs::create_dir_all(folder.path().join(class)).unwrap();
        let mut image = Vec::new();
        png::Encoder::new(&mut image, 2, 1).write_header().unwrap().write_image_data(&pixels).unwrap();
        file(&format!("{class}/1.png"), &image);
    }
    let said = import(&args(folder.path(), "images @pets -o @pets/../p.h5")).unwrap();
    for line in ["features  2 (1 × 2)", "scaling   pixels", "classes   2: cat, dog"] {
        assert!(said.contains(line), "{line:?} in\n{said}");
    }
    file("a.npy", b"\x93NUMPY\x01\0");
    std::fs::create_dir(folder.path().join("run")).unwrap();
    file("run/config.toml", b"");
    for (typed, says) in [
        ("images @images -o @n.h5", "images: images in an IDX file need their labels: give them with --labels FILE"),
        ("images @images --labels @labels --test-images @train.bin -o @n.h5", "train.bin: test images in an IDX file need"),
        ("images @images @images --labels @labels -o @n.h5", "images: only one IDX file can be imported as training images"),
        ("images @images --labels @labels --coarse-labels -o @n.h5", "--coarse-labels is for CIFAR-100"),
        ("images @train.bin --labels @labels -o @n.h5", "train.bin: --labels needs an IDX file of images"),
        ("images @a.npy --labels @labels -o @n.h5", "a.npy: this file contains NumPy arrays"),
        ("images @train.bin -o @run/checkpoint.bin", "checkpoint.bin: this is the name of a file of the run"),
        ("images @pets -o @pets/new/n.h5", "the output lies in the input folder"),
        ("images @train.bin --coarse-labels -o @n.h5", "train.bin: only CIFAR-100 has coarse labels"),
        ("images @pets/cat/1.png -o @n.h5", "1.png: this is one PNG file: name the folder"),
        ("images @pets --rows 1 -o @n.h5", "pets: --rows is not for folders of PNG files"),
        ("images @pets --test-images @test.bin -o @n.h5", "test.bin: this is not a folder"),
        ("images @pets @pets -o @n.h5", "pets: only one folder can be imported as training images"),
        (
            "@pets -o @n.h5",
            "pets: this folder contains PNG files, and a folder is read as documents in text: use `mpibayes import images`",
        ),
        ("images @a.csv -o @n.h5", "a.csv: 44 bytes are neither records of CIFAR-10"),
        ("@a.csv --scaling channels -o @n.h5", "the scaling channels is for images"),
    ] {
        let refused = import(&args(folder.path(), typed)).unwrap_err().to_string();
        assert!(refused.contains(says), "{typed}: {refused:?} must say {says:?}");
        assert!(!folder.path().join("n.h5").exists());
    }
}

#[test]
fn the_format_is_found_and_what_does_not_suit_it_is_refused() {
    let folder = folder();
    let file = |name: &str, content: &[u8]| std::fs::write(folder.path().join(name), content).unwrap();
    let npy = |shape: &str, data: &[u8]| {
        let header = format!("{{'descr': '|u1', 'fortran_order': False, 'shape': {shape}}}");
        [b"\x93NUMPY\x01\0", &(header.len() as u16).to_le_bytes()[..], header.as_bytes(), data].concat()
    };
    file("x.npy", &npy("(2, 1, 2)", &[1, 2, 3, 4]));
    file("y.npy", &npy("(2,)", &[0, 1]));
    file("test.npy", &npy("(2, 1, 2)", &[4, 3, 2, 1]));
    file("t.txt", b"1 2 7\n3 4 8\n5 6 9\n");
    file("rows.txt", b"0\n");
    file("z.npz", b"PK\x03\x04 and no more");
    file("book.csv", &[b"PK\x03\x04".as_slice(), &[0; 26], b"[Content_Types].xml"].concat());
    file("n.npy", b"1,2\n3,4\n");
    file("rows.json", b"[{\"a\": 1}, {\"a\": 2}]\n");
    file("cat.png", b"\x89PNG\r\n\x1a\n\0\0\0\x0d");
    file("model.rds", b"X\n\0\0\0\x03\0\x04\n\0\n");
    file("same.csv", b"a,y\n5,1\n6,1\n7,1\n");
    let said = import(&args(folder.path(), "arrays @x.npy --targets @y.npy -o @x.h5")).unwrap();
    assert!(said.contains("features  2 (1 × 2)") && said.contains("scaling   pixels"), "{said}");
    let again = import(&args(folder.path(), "@x.npy --labels @y.npy --test @test.npy --test-labels @y.npy -o @l.h5")).unwrap();
    assert!(again.contains("features  2 (1 × 2)") && again.contains("test      2 rows"), "{again}");
    let constant = import(&args(folder.path(), "@same.csv --task regression -o @c.h5")).unwrap();
    assert!(constant.contains("the target is the same in all training rows"), "{constant}");
    let said =
        import(&args(folder.path(), "table @t.txt --task regression --label first --drop last --test-rows @rows.txt -o @t.h5"));
    let said = said.unwrap();
    assert!(said.contains("train     2 rows") && said.contains("features  1\n"), "{said}");
    for (typed, says) in [
        ("@x.npy -o @n.h5", "x.npy: an NPY file holds features alone: give their labels or targets with `mpibayes import arrays"),
        ("@t.txt --labels @y.npy -o @n.h5", "t.txt: --labels is for NPY and IDX files: the labels of a table are a column"),
        ("@x.npy @x.npy --labels @y.npy -o @n.h5", "--labels is for one file"),
        ("@x.npy --labels @y.npy --label 1 -o @n.h5", "--labels is for NPY and IDX files"),
        ("arrays @x.npy --targets @y.npy --label 1 -o @n.h5", "unexpected argument '--label'"),
        ("arrays @x.npy --targets @y.npy --features-name x -o @n.h5", "cannot be used"),
        ("arrays @x.npy --targets @y.npy --test @test.npy -o @n.h5", "--test-targets FILE.npy"),
        ("arrays @x.npy --targets @y.npy --test @a.csv -o @n.h5", "a.csv: test rows need the format of the training rows"),
        ("table @a.csv --targets @y.npy -o @n.h5", "unexpected argument '--targets'"),
        ("@a.csv --test @x.npy -o @n.h5", "x.npy: test rows need the format of the training rows"),
        ("arrays @a.csv -o @n.h5", "a.csv: this is no NumPy file"),
        ("table @x.npy -o @n.h5", "x.npy: this file contains NumPy arrays: use `mpibayes import arrays`"),
        ("@z.npz -o @n.h5", "z.npz: this NPZ file is damaged"),
        ("libsvm @z.npz -o @n.h5", "z.npz: this file contains NumPy arrays"),
        ("@book.csv -o @n.h5", "book.csv: this is a spreadsheet: save it as CSV"),
        ("@n.npy -o @n.h5", "n.npy: this is no npy file, despite its name"),
        ("@rows.json -o @n.h5", "rows.json: this is JSON: save it as CSV or Parquet"),
        ("@cat.png -o @n.h5", "cat.png: this is an image: images are imported as PNG files in folders"),
        ("@model.rds -o @n.h5", "model.rds: this is not text, and no format that is known"),
        (
            "@same.csv b c -o @n.h5",
            "b: cannot open: there is no such file; names of columns in an option are separated by commas",
        ),
        ("@x.h5 -o @n.h5", "x.h5: this is an HDF5 file"),
        ("table @a.csv --delimiter 5 -o @n.h5", "give comma, semicolon, tab, blanks"),
        ("@a.csv --split 2 -o @n.h5", "--test-rows"),
    ] {
        let typed = typed.replace('@', &format!("{}/", folder.path().display()));
        let parsed = Cli::try_parse_from(["mpibayes", "import"].into_iter().chain(typed.split(' ')));
        let message = match parsed.map(|cli| cli.command) {
            Ok(Command::Import(args)) => import(&args).unwrap_err().to_string(),
            Ok(other) => panic!("{other:?}"),
            Err(error) => error.to_string(),
        };
        assert!(message.contains(says), "{typed}: {message:?} must say {says:?}");
        assert!(!folder.path().join("n.h5").exists() && !folder.path().join("n.h5.partial").exists());
    }
}

#[test]
fn documents_become_a_corpus() {
    let folder = folder();
    let file = |name: &str, content: &str| std::fs::write(folder.path().join(name), content).unwrap();
    file("docword.txt", "5\n3\n5\n1 1 2\n1 3 9\n2 2 11\n3 3 1\n5 1 7\n");
    file("words.txt", "a\nb\nc\n");
    file("c.ldac", "1 0:2\n2 0:1 4:3\n");
    let said = import(&args(
        folder.path(),
        "counts @docword.txt --vocabulary @words.txt --test-documents 1 --scored 0.5 --seed 4 -o @d.h5",
    ))
    .unwrap();
    for line in
        ["task      topics", "train     3 documents, ", "test      1 document, ", "words     3\n", "left out  1 document without"]
    {
        assert!(said.contains(&format!("\n  {line}")), "{line:?} in\n{said}");
    }
    let said = import(&args(folder.path(), "@c.ldac -o @c.h5")).unwrap();
    for line in ["test    none, so runs cannot evaluate topics: import again", "words   5, without names"] {
        assert!(said.contains(&format!("\n  {line}")), "{line:?} in\n{said}");
    }
    for (typed, says) in [
        (
            "@docword.txt --test-rows @words.txt -o @n.h5",
            "docword.txt: --test-rows is for rows, and this input contains documents",
        ),
        ("@docword.txt --task regression -o @n.h5", "--task is for rows"),
        ("counts @docword.txt --format lda-c -o @n.h5", "looks like UCI bag of words, not like lda-c"),
        ("counts @docword.txt --test-documents 4 -o @n.h5", "leave some to learn from"),
        ("counts @docword.txt --test-documents 2 --scored 1e-9 -o @n.h5", "none of the tokens of the 2 held-out documents"),
        ("counts @docword.txt --scored 0.2 -o @n.h5", "--scored needs test documents"),
        ("counts @docword.txt --vocabulary @words.txt -o @words.txt --force", "would replace this input file"),
        ("counts @a.csv --vocabulary @words.txt -o @n.h5", "a.csv: this looks like none of UCI bag of words"),
        ("@a.csv --seed 3 -o @n.h5", "--seed needs --test-fraction"),
    ] {
        let refused = import(&args(folder.path(), typed)).unwrap_err().to_string();
        assert!(refused.contains(says), "{typed}: {refused:?} must say {says:?}");
        assert!(!folder.path().join("n.h5").exists());
    }
}

#[test]
fn text_becomes_a_corpus_and_says_what_it_left_out() {
    let folder = folder();
    let file = |name: &str, content: &[u8]| std::fs::write(folder.path().join(name), content).unwrap();
    let fables = "the fox and the grapes\nthe dog and 2 foxes\n\nno grapes, no fox: caf\u{e9}\n";
    file("fables.txt", fables.as_bytes());
    file("words.txt", b"fox\ngrapes\nwolf\n");
    std::fs::create_dir(folder.path().join("news")).unwrap();
    file("news/1", b"the fox and caf\xe9 grapes");
    file("news/2", b"grapes of the dog");
    file("news/3.png", b"\x89PNG\0");
    let all = "--least-documents 1 --most-share 1";
    let said = import(&args(folder.path(), &format!("text @fables.txt {all} --stop-words english -o @t.h5"))).unwrap();
    for line in [
        "task      topics",
        "text      4 documents, one per line",
        "seen      7 words, 12 tokens, of 3 letters or more",
        "dropped   2 words, 5 tokens: stop words",
        "kept      5 words, 7 tokens",
        "train     3 documents, 7 tokens",
        "words     5\n",
        "left out  1 document without",
    ] {
        assert!(said.contains(&format!("\n  {line}")), "{line:?} in\n{said}");
    }
    let said = import(&args(folder.path(), "text @fables.txt --least-documents 1 --most-share 0.4 -o @r.h5")).unwrap();
    let note = "note: 4 words are left out by --most-share 0.4, more than the 3 that are kept: raise it";
    assert!(said.contains(note), "{said}");
    // A vocabulary leaves no words to choose.
    let said = import(&args(folder.path(), "text @news --vocabulary @words.txt -o @f.h5")).unwrap();
    for line in [
        "text     2 documents, one per file",
        "skipped  1 file without text; the first is ",
        "Latin-1  1 document with bytes that are not UTF-8",
        "seen     9 tokens",
        "kept     2 words, 3 tokens of the vocabulary",
        "words    3\n",
    ] {
        assert!(said.contains(&format!("\n  {line}")), "{line:?} in\n{said}");
    }
    let said = import(&args(folder.path(), &format!("text @fables.txt @words.txt @news {all} -o @s.h5"))).unwrap();
    assert!(said.contains("text      7 documents, one per line; 2 documents, one per file\n"), "{said}");
    for (typed, says) in [
        ("@fables.txt -o @n.h5", "fables.txt: hardly any field is a number: use `mpibayes import text` if"),
        ("text @fables.txt -o @n.h5", "none of the 7 words of "),
        ("counts @fables.txt --stop-words english -o @n.h5", "unexpected argument '--stop-words'"),
        (
            "@fables.txt @words.txt -o @n.h5",
            "words.txt: one file at a time: several files of text are imported by `mpibayes import text`",
        ),
        ("text @fables.txt --stop-words german -o @n.h5", "german: there is no such file of stop words"),
        ("text @fables.txt --label 1 -o @n.h5", "unexpected argument '--label'"),
        ("text @news --vocabulary @words.txt --shortest 4 -o @n.h5", "cannot be used with"),
        ("table @news -o @n.h5", "news: this is a folder"),
        ("counts @news --format lda-c -o @n.h5", "news: this is a folder"),
        ("@news -o @news/out.h5", "news/out.h5: the output lies in"),
        ("@news -o @news/new/out.h5", "the output lies in the input folder"),
        ("text @fables.txt --stop-words @words.txt -o @words.txt --force", "would replace this input file"),
        ("@docword.txt -o @n.h5", "docword.txt: cannot open"),
        ("text @fables.txt --most-share 1.5 -o @n.h5", "give a share above 0 and up to 1"),
    ] {
        let typed = typed.replace('@', &format!("{}/", folder.path().display()));
        let parsed = Cli::try_parse_from(["mpibayes", "import"].into_iter().chain(typed.split(' ')));
        let refused = match parsed.map(|cli| cli.command) {
            Ok(Command::Import(args)) => import(&args).unwrap_err().to_string(),
            Ok(other) => panic!("{other:?}"),
            Err(error) => error.to_string(),
        };
        assert!(refused.contains(says), "{typed}: {refused:?} must say {says:?}");
        assert!(!folder.path().join("n.h5").exists() && !folder.path().join("news/new").exists());
    }
}

#[test]
fn nothing_is_replaced_unasked_and_no_input_ever() {
    let folder = folder();
    let output = folder.path().join("a.h5");
    std::fs::write(&output, "precious").unwrap();
    let refused = import(&args(folder.path(), "@a.csv -o @a.h5")).unwrap_err().to_string();
    assert!(refused.contains("--force"), "{refused}");
    assert_eq!(std::fs::read(&output).unwrap(), b"precious");
    import(&args(folder.path(), "@a.csv -o @a.h5 --force")).unwrap();
    assert!(Dataset::open(&output).is_ok());
    let refused = import(&args(folder.path(), "@a.csv -o @a.csv --force")).unwrap_err().to_string();
    assert!(refused.contains("would replace this input file"), "{refused}");
    let refused = import(&args(folder.path(), "@a.csv -o @a.csv/a.h5")).unwrap_err().to_string();
    assert!(refused.contains("a.csv: cannot create this folder"), "{refused}");
    import(&args(folder.path(), "@a.csv -o @new/folder/a.h5")).unwrap();
    assert!(Dataset::open(&folder.path().join("new/folder/a.h5")).is_ok());
}
