//! `mpibayes predict`: the run's own predictions of its test rows, whatever way the rows are given; and what it refuses.

#![allow(clippy::unwrap_used, clippy::expect_used)]

use crate::launcher::unlaunched;
use mpibayes::results::RunFile;
use std::path::Path;
use std::process::Output;

fn mpibayes(folder: &Path, arguments: &str) -> Output {
    unlaunched(env!("CARGO_BIN_EXE_mpibayes")).current_dir(folder).args(arguments.split_whitespace()).output().unwrap()
}

fn went_well(folder: &Path, arguments: &str) -> Output {
    let output = mpibayes(folder, arguments);
    assert!(output.status.success(), "{arguments}: {}", String::from_utf8_lossy(&output.stderr));
    output
}

fn refused(folder: &Path, arguments: &str, says: &[&str]) {
    let output = mpibayes(folder, arguments);
    let error = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{arguments}: {error}");
    assert!(says.iter().all(|says| error.contains(says)) && error.lines().count() == 1, "{error} must say {says:?}");
}

/// The fields of a CSV file, by row and column.
fn fields(text: &str) -> Vec<Vec<String>> {
    text.lines().map(|line| line.split(',').map(str::to_owned).collect()).collect()
}

/// Rows of three features and a class, or a target; those of odd number are the test rows of the run.
fn rows(number: usize) -> ([f64; 3], &'static str, f64) {
    let x = [(number * 7 % 11) as f64, (number * 5 % 13) as f64 * 100.0, -((number % 3) as f64)];
    (x, if x[0] + 0.01 * x[1] > 9.0 { "yes" } else { "no" }, 50.0 + 3.0 * x[0] - x[2])
}

fn write(path: &Path, header: &str, line: impl Fn(usize) -> String, numbers: impl Iterator<Item = usize>) {
    let lines: String = numbers.map(|number| line(number) + "\n").collect();
    std::fs::write(path, format!("{header}\n{lines}")).unwrap();
}

/// A finished run, the table of its test rows, and the same with columns in another order and one more.
fn prepared(folder: &Path, task: &str, model: &str) {
    prepared_in(folder, task, model, "standardize");
}

/// As [`prepared`], in another scaling.
fn prepared_in(folder: &Path, task: &str, model: &str, scaling: &str) {
    let answer = |number: usize| if task == "classification" { rows(number).1.to_owned() } else { rows(number).2.to_string() };
    let line = |number: usize| format!("{},{},{},{}", rows(number).0[0], rows(number).0[1], rows(number).0[2], answer(number));
    write(&folder.join("train.csv"), "a,b,c,answer", line, (0..60).step_by(2));
    write(&folder.join("test.csv"), "a,b,c,answer", line, (1..60).step_by(2));
    let turned = |number: usize| {
        let [a, b, c] = rows(number).0;
        format!("{c},remark,{},{a},{b}", answer(number))
    };
    write(&folder.join("turned.csv"), "c,note,answer,a,b", turned, (1..60).step_by(2));
    went_well(folder, &format!("import train.csv --test test.csv --task {task} --scaling {scaling} -o data.h5"));
    let run = format!(
        "[data]\nfile = \"data.h5\"\n[model]\n{model}\n[method]\nname = \"svgd\"\nparticles = 5\nrounds = 2\nsteps = 30\n"
    );
    std::fs::write(folder.join("run.toml"), run).unwrap();
    went_well(folder, "run run.toml --output run");
}

#[test]
fn classes_are_predicted_alike_from_a_table_and_from_the_dataset() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    prepared(folder, "classification", "name = \"logistic\"\nintercept = true");
    let kept = RunFile::open(&folder.join("run/result.h5")).unwrap().grid("test_predictions").unwrap().unwrap();
    assert_eq!(kept.list("classes"), ["no", "yes"]);
    let probability = kept.array("probability").unwrap();
    let density = kept.array("density").unwrap();
    for command in ["predict run turned.csv", "predict run turned.csv --label answer", "predict run/result.h5 data.h5"] {
        let output = went_well(folder, command);
        let table = fields(std::str::from_utf8(&output.stdout).unwrap());
        let labelled = table[0].len() == 5;
        assert_eq!(table[0].last().unwrap(), "p(yes)");
        assert_eq!((labelled, table.len()), (command != "predict run turned.csv", 31));
        for (row, record) in table[1..].iter().enumerate() {
            let yes: f64 = record.last().unwrap().parse().unwrap();
            assert_eq!(yes, probability[[row, 1]], "{command}: row {row}");
            assert_eq!(record[1], if yes > 0.5 { "yes" } else { "no" });
            let own = if rows(2 * row + 1).1 == "yes" { 1 } else { 0 };
            assert_eq!(density[[row]], probability[[row, own]]);
        }
        let told = String::from_utf8(output.stderr).unwrap();
        assert_eq!(told.contains("accuracy"), labelled, "{told}");
    }
    // The control: without their scaling rows give other predictions, and by place the columns of the turned table are others.
    let wrong = fields(std::str::from_utf8(&went_well(folder, "predict run test.csv --label answer").stdout).unwrap());
    std::fs::write(
        folder.join("bare.csv"),
        (1..60).step_by(2).map(|n| format!("{},{},{}\n", rows(n).0[2], rows(n).0[0], rows(n).0[1])).collect::<String>(),
    )
    .unwrap();
    let bare = fields(std::str::from_utf8(&went_well(folder, "predict run bare.csv").stdout).unwrap());
    assert!(bare.iter().zip(&wrong).skip(1).any(|(bare, right)| bare.last() != right.last()));
}

/// Rows as an NPY file of these dimensions behind the first.
fn npy<const N: usize>(row: &[usize], rows: &[[f64; N]]) -> Vec<u8> {
    let shape: String = [rows.len()].iter().chain(row).map(|size| format!("{size}, ")).collect();
    let mut header = format!("{{'descr': '<f8', 'fortran_order': False, 'shape': ({shape})}}");
    header += &" ".repeat(63 - (10 + header.len()) % 64);
    header.push('\n');
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend(u16::try_from(header.len()).unwrap().to_le_bytes());
    bytes.extend(header.bytes());
    bytes.extend(rows.iter().flatten().flat_map(|number| number.to_le_bytes()));
    bytes
}

/// The column of predictions of class `yes`.
fn probabilities(folder: &Path, command: &str) -> Vec<String> {
    let output = went_well(folder, command);
    fields(std::str::from_utf8(&output.stdout).unwrap())[1..].iter().map(|record| record.last().unwrap().clone()).collect()
}

/// The result file keeps the rotation: rows in their own units become what the run has seen, whatever rows they come with.
#[test]
fn rows_in_principal_axes_are_predicted_as_the_run_has_them() {
    for (precision, task) in [("f32", "classification"), ("f64", "regression")] {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        let model =
            if task == "regression" { "name = \"network\"\nhidden = [3]" } else { "name = \"logistic\"\nintercept = true" };
        prepared_in(folder, task, model, "principal");
        std::fs::remove_dir_all(folder.join("run")).unwrap();
        went_well(folder, &format!("run run.toml --set precision={precision} --output run"));
        let result = RunFile::open(&folder.join("run/result.h5")).unwrap();
        assert_eq!(result.grid("preprocessing").unwrap().unwrap().array("rotation").unwrap().shape(), [3, 3]);
        let kept = result.grid("test_predictions").unwrap().unwrap();
        let own: Vec<f64> = match kept.array("probability") {
            Some(both) => both.iter().copied().skip(1).step_by(2).collect(),
            None => kept.array("mean").unwrap().iter().copied().collect(),
        };
        let numbers: Vec<[f64; 3]> = (1..60).step_by(2).map(|number| rows(number).0).collect();
        std::fs::write(folder.join("test.npy"), npy(&[3], &numbers)).unwrap();
        // A dataset that is scaled by itself is taken back to raw rows.
        went_well(folder, &format!("import test.csv --task {task} -o other.h5"));
        let predictions = |input: &str| -> Vec<f64> {
            let table = fields(std::str::from_utf8(&went_well(folder, &format!("predict run {input}")).stdout).unwrap());
            let wanted = if task == "regression" { "predicted" } else { "p(yes)" };
            let column = table[0].iter().position(|name| name == wanted).unwrap();
            table[1..].iter().map(|record| record[column].parse().unwrap()).collect()
        };
        for input in ["turned.csv", "test.npy", "data.h5", "other.h5"] {
            let predicted = predictions(input);
            // Means get their units on one way before, on the other behind their average.
            let same = |(one, other): (&f64, &f64)| (one - other).abs() <= 1e-12 * other.abs();
            assert!(predicted.len() == 30 && predicted.iter().zip(&own).all(same), "{precision} {input}: {predicted:?} {own:?}");
        }
        // A row alone.
        std::fs::write(folder.join("one.npy"), npy(&[3], &numbers[4..5])).unwrap();
        let alone = predictions("one.npy")[0];
        let tolerance = if precision == "f32" { 1e-5 } else { 1e-12 };
        assert!((alone - own[4]).abs() <= tolerance * own[4].abs(), "{alone} {}", own[4]);
        // The control: columns in the wrong order are other rows.
        let wrong: Vec<[f64; 3]> = numbers.iter().map(|[a, b, c]| [*c, *a, *b]).collect();
        std::fs::write(folder.join("wrong.npy"), npy(&[3], &wrong)).unwrap();
        let wrong = predictions("wrong.npy")[4];
        assert!((wrong - own[4]).abs() > 1e-3 * own[4].abs(), "{wrong} {}", own[4]);
    }
}

#[test]
fn sparse_rows_have_no_principal_axes() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    std::fs::write(folder.join("a.svm"), "1 1:1 3:2\n2 2:1\n").unwrap();
    refused(folder, "import a.svm --scaling principal -o a.h5", &["the scaling principal", "zeros of sparse rows", "max-abs"]);
    assert!(!folder.join("a.h5").exists());
}

/// The same rows as a table, an array, pairs of indices and values, and a dataset that was scaled by itself.
#[test]
fn rows_in_every_format_are_predicted_alike() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    prepared(folder, "classification", "name = \"logistic\"\nintercept = true");
    let table = probabilities(folder, "predict run test.csv --label answer");
    let numbers: Vec<[f64; 3]> = (1..60).step_by(2).map(|number| rows(number).0).collect();
    std::fs::write(folder.join("test.npy"), npy(&[3], &numbers)).unwrap();
    assert_eq!(probabilities(folder, "predict run test.npy"), table);
    let pairs = |number: usize| {
        let (x, class, _) = rows(number);
        let entries = (1..).zip(x).filter(|(_, value)| *value != 0.0).map(|(index, value)| format!(" {index}:{value}"));
        format!("{class}{}\n", entries.collect::<String>())
    };
    std::fs::write(folder.join("test.svm"), (1..60).step_by(2).map(pairs).collect::<String>()).unwrap();
    assert_eq!(probabilities(folder, "predict run test.svm --label first"), table);
    let told = String::from_utf8(went_well(folder, "predict run test.svm --label first").stderr).unwrap();
    assert!(told.contains("accuracy"), "{told}");
    went_well(folder, "import test.csv -o other.h5");
    assert_eq!(probabilities(folder, "predict run other.h5"), table);
    // The control: scaled by itself, that dataset is another one than the run's.
    went_well(folder, "run run.toml --set data.file=other.h5 --output other");
    assert_ne!(probabilities(folder, "predict other other.h5"), table);
}

#[test]
fn images_are_predicted_as_those_of_the_dataset() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let images = |numbers: &[u8]| {
        let pixels = numbers.iter().flat_map(|&number| [number.wrapping_mul(37), number, 255 - number, number.wrapping_mul(101)]);
        [&[0, 0, 8, 3, 0, 0, 0, numbers.len() as u8, 0, 0, 0, 2, 0, 0, 0, 2][..], &pixels.collect::<Vec<u8>>()].concat()
    };
    let labels = |numbers: &[u8]| {
        let labels: Vec<u8> = numbers.iter().map(|number| number % 2).collect();
        [&[0, 0, 8, 1, 0, 0, 0, numbers.len() as u8][..], &labels].concat()
    };
    for (name, numbers) in [("train", (0..40).collect::<Vec<u8>>()), ("test", (40..60).collect())] {
        std::fs::write(folder.join(format!("{name}.images")), images(&numbers)).unwrap();
        std::fs::write(folder.join(format!("{name}.labels")), labels(&numbers)).unwrap();
    }
    went_well(
        folder,
        "import --images train.images --labels train.labels --test-images test.images --test-labels test.labels -o data.h5",
    );
    let run = "[data]\nfile = \"data.h5\"\n[model]\nname = \"logistic\"\n[method]\nname = \"svgd\"\nparticles = 4\nrounds = 1\nsteps = 20\n";
    std::fs::write(folder.join("run.toml"), run).unwrap();
    went_well(folder, "run run.toml --output run");
    let of_dataset = probabilities(folder, "predict run data.h5");
    assert_eq!(probabilities(folder, "predict run test.images"), of_dataset);
    assert_ne!(probabilities(folder, "predict run train.images")[..20], of_dataset);
    refused(folder, "predict run test.labels", &["test.labels: images of 1 pixels, the run has 4 features"]);
}

#[test]
fn numbers_are_predicted_in_the_units_of_the_table() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    prepared(folder, "regression", "name = \"network\"\nhidden = []");
    let kept = RunFile::open(&folder.join("run/result.h5")).unwrap().grid("test_predictions").unwrap().unwrap();
    let mean = kept.array("mean").unwrap();
    went_well(folder, "predict run turned.csv --label answer -o predicted.csv");
    let table = fields(&std::fs::read_to_string(folder.join("predicted.csv")).unwrap());
    assert_eq!(table[0], ["row", "predicted", "label"]);
    for (row, record) in table[1..].iter().enumerate() {
        let [predicted, target] = [1, 2].map(|column| record[column].parse::<f64>().unwrap());
        assert!((predicted - mean[[row]]).abs() < 1e-12 * mean[[row]].abs(), "row {row}");
        assert!((kept.array("target").unwrap()[[row]] - target).abs() < 1e-12 * target);
        // Targets run from 50 to 82: a mean in other units would be near 0.
        assert!((40.0..95.0).contains(&predicted), "row {row}: {predicted}");
    }
}

#[test]
fn rows_that_are_none_for_the_run_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    prepared(folder, "classification", "name = \"logistic\"");
    std::fs::write(folder.join("lacks.csv"), "a,c,answer\n1,2,yes\n").unwrap();
    refused(folder, "predict run lacks.csv", &["lacks.csv", "lacks b", "it has a, c, answer"]);
    std::fs::write(folder.join("wide.csv"), "1,2,3,4\n").unwrap();
    refused(folder, "predict run wide.csv", &["wide.csv: 4 columns of features, the run has 3", "--label"]);
    std::fs::write(folder.join("word.csv"), "a,b,c\n1,2,3\n1,x,3\n").unwrap();
    refused(folder, "predict run word.csv", &["word.csv, line 3"]);
    std::fs::write(folder.join("class.csv"), "a,b,c,answer\n1,2,3,perhaps\n").unwrap();
    refused(folder, "predict run class.csv --label answer", &["class.csv, line 2", "no class \"perhaps\"", "no, yes"]);
    refused(folder, "predict run none.csv", &["none.csv", "cannot open"]);
    refused(folder, "predict none test.csv", &["none: there is no such folder"]);
    // Classes and numbers of which a model knows nothing, in a dataset that is otherwise the run's.
    let (train, test) = ("a,b,c,answer\n1,2,3,maybe\n4,5,6,no\n2,5,6,yes\n", "a,b,c,answer\n1,2,3,yes\n4,5,6,no\n");
    std::fs::write(folder.join("three.csv"), train).unwrap();
    std::fs::write(folder.join("two.csv"), test).unwrap();
    went_well(folder, "import three.csv --test two.csv -o three.h5");
    went_well(folder, "predict run three.h5");
    refused(folder, "predict run three.h5 --split train", &["three.h5", "no class \"maybe\""]);
    std::fs::write(folder.join("number.csv"), "a,b,c,answer\n1,2,3,0\n4,5,6,1\n").unwrap();
    went_well(folder, "import number.csv --task regression -o number.h5");
    refused(folder, "predict run number.h5", &["number.h5: this is for regression, the run is a classification"]);
    for (content, says) in [
        ("a,b,d,answer\n1,2,3,yes\n4,5,6,no\n", "\"d\" where the run has \"c\""),
        ("a,b,answer\n1,2,yes\n4,5,no\n", "rows of 2 features, those that were learned from have 3"),
        ("a,b,c,answer\n1,2,3,yes\n4,5,6,perhaps\n", "no class \"perhaps\""),
    ] {
        std::fs::write(folder.join("other.csv"), content).unwrap();
        went_well(folder, "import other.csv --force -o other.h5");
        refused(folder, "predict run other.h5", &["other.h5", says]);
    }
    std::fs::write(folder.join("four.npy"), npy(&[4], &[[1.0, 2.0, 3.0, 4.0]])).unwrap();
    refused(folder, "predict run four.npy", &["four.npy: rows of 4 numbers where there should be 3"]);
    std::fs::write(folder.join("far.svm"), "1 1:2 9:3\n").unwrap();
    refused(folder, "predict run far.svm", &["far.svm, line 1", "9", "the features of the run"]);
    refused(folder, "predict run far.svm --label last", &["the labels of a LIBSVM file come first"]);
    refused(folder, "predict run four.npy --label last", &["four.npy", "import both"]);
    refused(folder, "predict run test.csv --label answer -o no/such/p.csv", &["no/such/p.csv", "cannot write"]);
}
