//! `mpibayes predict`: equal predictions for all formats of the test rows, and error messages.

#![allow(clippy::unwrap_used, clippy::expect_used)]

use crate::harness::Cli;
use mpibayes::models::Part;
use mpibayes::results::Values;
use std::path::Path;

/// The largest relative error of a number with twelve digits, and that of averages in another order.
const TWELVE_DIGITS: f64 = 6e-12;

/// The fields of a CSV file, by row and column.
fn fields(text: &str) -> Vec<Vec<String>> {
    text.lines().map(|line| line.split(',').map(str::to_owned).collect()).collect()
}

/// Three features and a class or a target; rows with odd numbers are the test rows of the run.
fn rows(number: usize) -> ([f64; 3], &'static str, f64) {
    let x = [(number * 7 % 11) as f64, (number * 5 % 13) as f64 * 100.0, -((number % 3) as f64)];
    (x, if x[0] + 0.01 * x[1] > 9.0 { "yes" } else { "no" }, 50.0 + 3.0 * x[0] - x[2])
}

fn write(path: &Path, header: &str, line: impl Fn(usize) -> String, numbers: impl Iterator<Item = usize>) {
    let lines: String = numbers.map(|number| line(number) + "\n").collect();
    std::fs::write(path, format!("{header}\n{lines}")).unwrap();
}

/// Makes a finished run, the table of its test rows, and the same table with reordered columns and an extra one.
fn prepared(cli: &Cli, task: &str, model: &str) {
    prepared_in(cli, task, model, "standardize");
}

/// The same with another scaling.
fn prepared_in(cli: &Cli, task: &str, model: &str, scaling: &str) {
    let answer = |number: usize| if task == "classification" { rows(number).1.to_owned() } else { rows(number).2.to_string() };
    let line = |number: usize| format!("{},{},{},{}", rows(number).0[0], rows(number).0[1], rows(number).0[2], answer(number));
    write(&cli.path("train.csv"), "a,b,c,answer", line, (0..60).step_by(2));
    write(&cli.path("test.csv"), "a,b,c,answer", line, (1..60).step_by(2));
    let turned = |number: usize| {
        let [a, b, c] = rows(number).0;
        format!("{c},remark,{},{a},{b}", answer(number))
    };
    write(&cli.path("turned.csv"), "c,note,answer,a,b", turned, (1..60).step_by(2));
    cli.succeed(&format!("import train.csv --test test.csv --task {task} --scaling {scaling} -o data.h5"));
    let run = format!(
        "dtype = \"float64\"\n[data]\nfile = \"data.h5\"\n[model]\n{model}\n[method]\nname = \"svgd\"\nparticles = 5\nrounds = 2\nsteps = 30\n"
    );
    cli.write("run.toml", run);
    cli.succeed("run run.toml --output run");
}

#[test]
fn tables_and_datasets_give_the_same_predictions() {
    let cli = Cli::new();
    prepared(&cli, "classification", "name = \"logistic\"\nintercept = true");
    let kept = cli.results("run").grid("test_predictions").unwrap().unwrap();
    assert_eq!(kept.list("classes"), ["no", "yes"]);
    let probability = kept.array("probability").unwrap();
    let density = kept.array("density").unwrap();
    for command in ["predict run turned.csv", "predict run turned.csv --label answer", "predict run/result.h5 data.h5"] {
        let output = cli.succeed(command);
        let table = fields(&output.stdout);
        let labelled = table[0].len() == 5;
        assert_eq!(table[0].last().unwrap(), "p(yes)");
        assert_eq!((labelled, table.len()), (command != "predict run turned.csv", 31));
        for (row, record) in table[1..].iter().enumerate() {
            let yes: f64 = record.last().unwrap().parse().unwrap();
            assert!((yes / probability[[row, 1]] - 1.0).abs() < TWELVE_DIGITS, "{command}: row {row}: {yes}");
            assert_eq!(record[1], if yes > 0.5 { "yes" } else { "no" });
            let own = if rows(2 * row + 1).1 == "yes" { 1 } else { 0 };
            assert_eq!(density[[row]], probability[[row, own]]);
        }
        let report = output.stderr;
        assert_eq!(report.contains("accuracy"), labelled, "{report}");
    }
    // The control: matched by position, reordered columns give other predictions.
    let wrong = fields(&cli.succeed("predict run test.csv --label answer").stdout);
    std::fs::write(
        cli.path("bare.csv"),
        (1..60).step_by(2).map(|n| format!("{},{},{}\n", rows(n).0[2], rows(n).0[0], rows(n).0[1])).collect::<String>(),
    )
    .unwrap();
    let bare = fields(&cli.succeed("predict run bare.csv").stdout);
    assert!(bare.iter().zip(&wrong).skip(1).any(|(bare, right)| bare.last() != right.last()));
}

/// Rows as an NPY file with these dimensions after the first.
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

/// The last column of predictions.
fn probabilities(cli: &Cli, command: &str) -> Vec<String> {
    let output = cli.succeed(command);
    fields(&output.stdout)[1..].iter().map(|record| record.last().unwrap().clone()).collect()
}

/// The result file holds the rotation, so that rows in original units are transformed as during the run, independent of other rows.
#[test]
fn rows_in_original_units_are_rotated_to_principal_axes() {
    for (dtype, task) in [("float32", "classification"), ("float64", "regression")] {
        let cli = Cli::new();
        let model =
            if task == "regression" { "name = \"network\"\nhidden = [3]" } else { "name = \"logistic\"\nintercept = true" };
        prepared_in(&cli, task, model, "principal");
        std::fs::remove_dir_all(cli.path("run")).unwrap();
        cli.succeed(&format!("run run.toml --set dtype={dtype} --output run"));
        let result = cli.results("run");
        assert_eq!(result.grid("preprocessing").unwrap().unwrap().array("rotation").unwrap().shape(), [3, 3]);
        let kept = result.grid("test_predictions").unwrap().unwrap();
        let own: Vec<f64> = match kept.array("probability") {
            Some(both) => both.iter().copied().skip(1).step_by(2).collect(),
            None => kept.array("mean").unwrap().iter().copied().collect(),
        };
        let numbers: Vec<[f64; 3]> = (1..60).step_by(2).map(|number| rows(number).0).collect();
        cli.write("test.npy", npy(&[3], &numbers));
        // A dataset with its own scaling is converted back to original units.
        cli.succeed(&format!("import test.csv --task {task} -o other.h5"));
        let predictions = |input: &str| -> Vec<f64> {
            let table = fields(&cli.succeed(&format!("predict run {input}")).stdout);
            let wanted = if task == "regression" { "predicted" } else { "p(yes)" };
            let column = table[0].iter().position(|name| name == wanted).unwrap();
            table[1..].iter().map(|record| record[column].parse().unwrap()).collect()
        };
        for input in ["turned.csv", "test.npy", "data.h5", "other.h5"] {
            let predicted = predictions(input);
            // Averaging and converting to original units are done in different orders.
            let same = |(one, other): (&f64, &f64)| (one - other).abs() <= TWELVE_DIGITS * other.abs();
            assert!(predicted.len() == 30 && predicted.iter().zip(&own).all(same), "{dtype} {input}: {predicted:?} {own:?}");
        }
        // A single row.
        cli.write("one.npy", npy(&[3], &numbers[4..5]));
        let alone = predictions("one.npy")[0];
        let tolerance = if dtype == "float32" { 1e-5 } else { 2.0 * TWELVE_DIGITS };
        assert!((alone - own[4]).abs() <= tolerance * own[4].abs(), "{alone} {}", own[4]);
        // The control: columns in the wrong order are other rows.
        let wrong: Vec<[f64; 3]> = numbers.iter().map(|[a, b, c]| [*c, *a, *b]).collect();
        cli.write("wrong.npy", npy(&[3], &wrong));
        let wrong = predictions("wrong.npy")[4];
        assert!((wrong - own[4]).abs() > 1e-3 * own[4].abs(), "{wrong} {}", own[4]);
    }
}

#[test]
fn sparse_rows_have_no_principal_axes() {
    let cli = Cli::new();
    cli.write("a.svm", "1 1:1 3:2\n2 2:1\n");
    cli.refuse("import a.svm --scaling principal -o a.h5", &["the scaling principal", "zeros of sparse rows", "max-abs"]);
    assert!(!cli.exists("a.h5"));
}

/// The same rows as a text table, an array, LIBSVM text, and a dataset with a scaling of its own.
#[test]
fn rows_in_every_format_are_predicted_alike() {
    let cli = Cli::new();
    prepared(&cli, "classification", "name = \"logistic\"\nintercept = true");
    let table = probabilities(&cli, "predict run test.csv --label answer");
    let numbers: Vec<[f64; 3]> = (1..60).step_by(2).map(|number| rows(number).0).collect();
    cli.write("test.npy", npy(&[3], &numbers));
    assert_eq!(probabilities(&cli, "predict run test.npy"), table);
    let pairs = |number: usize| {
        let (x, class, _) = rows(number);
        let entries = (1..).zip(x).filter(|(_, value)| *value != 0.0).map(|(index, value)| format!(" {index}:{value}"));
        format!("{class}{}\n", entries.collect::<String>())
    };
    cli.write("test.svm", (1..60).step_by(2).map(pairs).collect::<String>());
    assert_eq!(probabilities(&cli, "predict run test.svm --label first"), table);
    let report = cli.succeed("predict run test.svm --label first").stderr;
    assert!(report.contains("accuracy"), "{report}");
    cli.succeed("import test.csv -o other.h5");
    assert_eq!(probabilities(&cli, "predict run other.h5"), table);
    // The control: scaled by itself, that dataset is another one than the run's.
    cli.succeed("run run.toml --set data.file=other.h5 --output other");
    assert_ne!(probabilities(&cli, "predict other other.h5"), table);
}

#[test]
fn image_files_are_predicted_like_the_dataset() {
    let cli = Cli::new();
    let images = |numbers: &[u8]| {
        let pixels = numbers.iter().flat_map(|&number| [number.wrapping_mul(37), number, 255 - number, number.wrapping_mul(101)]);
        [&[0, 0, 8, 3, 0, 0, 0, numbers.len() as u8, 0, 0, 0, 2, 0, 0, 0, 2][..], &pixels.collect::<Vec<u8>>()].concat()
    };
    let labels = |numbers: &[u8]| {
        let labels: Vec<u8> = numbers.iter().map(|number| number % 2).collect();
        [&[0, 0, 8, 1, 0, 0, 0, numbers.len() as u8][..], &labels].concat()
    };
    for (name, numbers) in [("train", (0..40).collect::<Vec<u8>>()), ("test", (40..60).collect())] {
        cli.write(&format!("{name}.images"), images(&numbers));
        cli.write(&format!("{name}.labels"), labels(&numbers));
    }
    cli.succeed(
        "import images train.images --labels train.labels --test-images test.images --test-labels test.labels -o data.h5",
    );
    let run = "[data]\nfile = \"data.h5\"\n[model]\nname = \"logistic\"\n[method]\nname = \"svgd\"\nparticles = 4\nrounds = 1\nsteps = 20\n";
    cli.write("run.toml", run);
    cli.succeed("run run.toml --output run");
    let of_dataset = probabilities(&cli, "predict run data.h5");
    assert_eq!(probabilities(&cli, "predict run test.images"), of_dataset);
    assert_ne!(probabilities(&cli, "predict run train.images")[..20], of_dataset);
    cli.alone("predict run test.labels").fail(&["test.labels: these images have 1 pixels, but the run has 4 features"]);
}

#[test]
fn targets_are_predicted_in_the_units_of_the_table() {
    let cli = Cli::new();
    prepared(&cli, "regression", "name = \"network\"\nhidden = []");
    let kept = cli.results("run").grid("test_predictions").unwrap().unwrap();
    let mean = kept.array("mean").unwrap();
    cli.succeed("predict run turned.csv --label answer -o predicted.csv");
    let table = fields(&cli.read("predicted.csv"));
    assert_eq!(table[0], ["row", "predicted", "label"]);
    for (row, record) in table[1..].iter().enumerate() {
        let [predicted, target] = [1, 2].map(|column| record[column].parse::<f64>().unwrap());
        assert!((predicted - mean[[row]]).abs() < TWELVE_DIGITS * mean[[row]].abs(), "row {row}");
        assert!((kept.array("target").unwrap()[[row]] - target).abs() < 1e-12 * target);
        // Targets run from 50 to 82: a mean in other units would be near 0.
        assert!((40.0..95.0).contains(&predicted), "row {row}: {predicted}");
    }
}

/// The intervals of probabilities and means are those over the draws of the posterior, computed here from its parameters.
#[test]
fn intervals_of_probabilities_and_means_are_those_of_the_draws() {
    for (task, model, arguments, first) in [
        ("classification", "name = \"logistic\"", "--interval 0.5", 4),
        ("regression", "name = \"linear\"", "--interval 0.5 --of mean", 2),
    ] {
        let cli = Cli::new();
        prepared(&cli, task, model);
        let file = cli.results("run");
        let Values::F64(draws) = file.samples("posterior").unwrap().values else { panic!("not in f64") };
        let parts = file.shape("posterior").unwrap().2;
        let place = |name: &str| {
            let before = parts.iter().take_while(|part| part.name != name).map(Part::size);
            before.sum::<usize>()
        };
        let grid = file.grid("preprocessing").unwrap().unwrap();
        let array = |name: &str| grid.array(name).unwrap().into_iter().collect::<Vec<f64>>();
        let (scale, offset) = (array("scale"), array("offset"));
        let (weights, intercept) = (place("weights"), place("intercept"));
        let table = fields(&cli.stdout(&format!("predict run turned.csv {arguments}")));
        let subject = if task == "classification" { "p(no) " } else { "mean " };
        assert_eq!(table[0][first..first + 3], ["sd", "25 %", "75 %"].map(|name| format!("{subject}{name}")));
        for (row, number) in (1..60).step_by(2).enumerate() {
            let means = draws.rows().into_iter().map(|draw| {
                let x = rows(number).0;
                let terms = (0..3).map(|column| draw[weights + column] * (x[column] * scale[column] + offset[column]));
                let predictor = draw[intercept] + terms.sum::<f64>();
                match task {
                    "classification" => 1.0 / (1.0 + predictor.exp()),
                    _ => (predictor - array("target_offset")[0]) / array("target_scale")[0],
                }
            });
            let mut means: Vec<f64> = means.collect();
            means.sort_by(f64::total_cmp);
            let mean = means.iter().sum::<f64>() / 5.0;
            let sd = (means.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / 4.0).sqrt();
            // The quartiles of five values are the second and the fourth.
            for (column, expected) in [sd, means[1], means[3]].into_iter().enumerate() {
                let found: f64 = table[row + 1][first + column].parse().unwrap();
                assert!((found - expected).abs() < 1e-6 * (1.0 + expected.abs()), "{task} {number} {column}: {found} {expected}");
            }
        }
    }
}

#[test]
fn rows_that_do_not_match_the_run_are_refused() {
    let cli = Cli::new();
    prepared(&cli, "classification", "name = \"logistic\"");
    cli.write("lacks.csv", "a,c,answer\n1,2,yes\n");
    cli.refuse("predict run lacks.csv", &["lacks.csv", "lacks b", "it has a, c, answer"]);
    cli.write("wide.csv", "1,2,3,4\n");
    cli.refuse("predict run wide.csv", &["wide.csv: the table has 4 columns of features, but the run has 3", "--label"]);
    cli.write("word.csv", "a,b,c\n1,2,3\n1,x,3\n");
    cli.alone("predict run word.csv").fail(&["word.csv, line 3"]);
    cli.write("class.csv", "a,b,c,answer\n1,2,3,perhaps\n");
    cli.alone("predict run class.csv --label answer").fail(&["class.csv, line 2", "unknown class \"perhaps\"", "no, yes"]);
    cli.refuse("predict run none.csv", &["none.csv", "cannot open"]);
    cli.succeed("import train.csv -o untested.h5");
    cli.refuse("predict run untested.h5 --split test", &["--split test: untested.h5 has no test rows"]);
    cli.refuse("predict none test.csv", &["none: there is no such folder"]);
    // A dataset that matches the run except for unknown classes, or numbers instead of classes.
    let (train, test) = ("a,b,c,answer\n1,2,3,maybe\n4,5,6,no\n2,5,6,yes\n", "a,b,c,answer\n1,2,3,yes\n4,5,6,no\n");
    cli.write("three.csv", train);
    cli.write("two.csv", test);
    cli.succeed("import three.csv --test two.csv -o three.h5");
    cli.succeed("predict run three.h5");
    cli.refuse("predict run three.h5 --split train", &["three.h5", "unknown class \"maybe\""]);
    cli.write("number.csv", "a,b,c,answer\n1,2,3,0\n4,5,6,1\n");
    cli.succeed("import number.csv --task regression -o number.h5");
    cli.refuse("predict run number.h5", &["number.h5: this is for regression, the run is for classification"]);
    for (content, says) in [
        ("a,b,d,answer\n1,2,3,yes\n4,5,6,no\n", "\"d\" where the run has \"c\""),
        ("a,b,answer\n1,2,yes\n4,5,no\n", "its rows have 2 features, but the model was fitted to rows with 3"),
        ("a,b,c,answer\n1,2,3,yes\n4,5,6,perhaps\n", "unknown class \"perhaps\""),
    ] {
        cli.write("other.csv", content);
        cli.succeed("import other.csv --force -o other.h5");
        cli.refuse("predict run other.h5", &["other.h5", says]);
    }
    cli.write("four.npy", npy(&[4], &[[1.0, 2.0, 3.0, 4.0]]));
    cli.alone("predict run four.npy").fail(&["four.npy: rows of 4 numbers where there should be 3"]);
    cli.write("far.svm", "1 1:2 9:3\n");
    cli.alone("predict run far.svm").fail(&["far.svm, line 1", "9", "the features of the run"]);
    cli.refuse("predict run far.svm --label last", &["the labels of a LIBSVM file come first"]);
    cli.refuse("predict run four.npy --label last", &["four.npy", "import features and labels"]);
    cli.refuse("predict run test.csv --label answer -o no/such/p.csv", &["no/such/p.csv", "cannot write"]);
}
