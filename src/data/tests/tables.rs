//! Tables: CSV and its relatives, labels, classes and test rows.

use super::*;

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
        (
            Column::Name("a,b".into()),
            Header::Detect,
            "no column is called \"a,b\" here: --label takes one column; there are a, b, c",
        ),
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
    let two = || Some(Column::Name("a,b".into()));
    for (columns, says) in [
        (ColumnOptions { group: two(), ..ColumnOptions::default() }, "--group takes one column"),
        (ColumnOptions { weight: two(), ..ColumnOptions::default() }, "--exposure, --offset and --weight take one column"),
    ] {
        place.refused(import_table(&TableImport { columns, ..csv(&train) }, &place.output()), &["\"a,b\" here", says]);
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
        ("1,2,3,0\n", &["t.csv, line 1: 4 columns"]),
        ("b,a,c\n1,2,0\n", &["t.csv, line 1", "another order"]),
        ("a,d,c\n1,2,0\n", &["t.csv, line 1", "the header lacks b"]),
        ("a,b\n1,2\n", &["t.csv, line 1", "the header lacks c"]),
        ("a,b,c,d\n1,2,0,1\n", &["t.csv, line 1", "the header has d, which"]),
        ("1,2,0\n1,q,0\n", &["t.csv, line 2: column 2"]),
        ("", &["t.csv: the file is empty"]),
    ] {
        let test = TestRows::File(place.file("t.csv", content));
        place.refused(import_table(&TableImport { test, ..csv(&train) }, &place.output()), says);
    }
}

/// pandas writes a column of whole numbers with decimals if one of its values is missing.
#[test]
fn test_rows_may_spell_levels_and_labels_in_another_way() {
    let place = Place::new();
    let train: String = (0..40).map(|row| format!("{row}.5,{},{},{}\n", row % 3, row % 4, row % 2)).collect();
    let import = |test: &str| {
        let import = TableImport {
            test: TestRows::File(place.file("t.csv", test)),
            columns: ColumnOptions {
                categorical: vec![Column::Number(2)],
                group: Some(Column::Number(3)),
                ..ColumnOptions::default()
            },
            ..csv(&place.file("x.csv", &train))
        };
        let warnings = import_table(&import, &place.output()).unwrap();
        let data = Dataset::open(&place.output()).unwrap();
        (data.raw::<f64>("test/x"), data.raw::<u32>("test/y"), warnings)
    };
    let (plain, labels, warnings) = import("0.5,2,3,1\n1.5,0,1,0\n");
    assert_eq!((labels, warnings), (vec![1, 0], Vec::<String>::new()));
    let (others, labels, warnings) = import("0.5,2.0,3.0,1.0\n1.5,0.0,1.0,0.0\n");
    assert_eq!((labels, warnings), (vec![1, 0], Vec::<String>::new()));
    assert_eq!(others, plain);
    // A group that training rows do not have is said.
    let (_, _, warnings) = import("0.5,2,9,1\n");
    assert!(warnings.len() == 1 && warnings[0].starts_with("1 test row is of groups without training rows"), "{warnings:?}");
}

#[test]
fn a_test_file_without_a_header_is_noticed() {
    let place = Place::new();
    let test = TestRows::File(place.file("t.csv", "1,2,0\n"));
    let train = place.file("x.csv", "a,b,c\n1,2,0\n3,4,1\n");
    let warnings = import_table(&TableImport { test, ..csv(&train) }, &place.output()).unwrap();
    assert!(warnings.len() == 1 && warnings[0].contains("t.csv has no header"), "{warnings:?}");
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
        (Column::Last, vec![Column::Number(3)], "column 3 (b) is both the label and in --drop"),
        (Column::Last, vec![Column::Number(1), Column::Number(2)], "no feature remains"),
        (Column::Last, vec![Column::Name("ide".into())], "no column is called \"ide\""),
        (Column::Last, vec![Column::Number(9)], "there is no column 9"),
    ] {
        let layout = TableLayout { label, drop, ..TableLayout::default() };
        place.refused(import_table(&TableImport { layout, ..csv(&train) }, &place.output()), &[says]);
    }
}
