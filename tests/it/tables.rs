//! A table as it is found, from import to odds or rate ratios and predictions: texts, gaps, groups, exposures, columns of no use.

#![allow(clippy::unwrap_used)]

use crate::harness::Cli;
use arrow_array::{ArrayRef, Date32Array, Float64Array, Int32Array, RecordBatch, StringArray};
use mpibayes::data::Dataset;
use parquet::arrow::ArrowWriter;
use std::sync::Arc;

/// Regions, gaps in ages, years of exposure and schools; every dead end is in it.
fn messy() -> String {
    let region = ["north", "south", "west"];
    let noise = |row: usize| (row as f64 * 0.618_033_988_749_895 + 0.13).fract();
    let line = |row: usize| {
        let (region_at, age, years) = (row * 7 % 3, 20 + row * 13 % 50, 0.5 + (row * 5 % 8) as f64 * 0.5);
        let school = row / 3 % 6;
        let of_school = [0.4, -0.4, 0.2, -0.2, 0.5, -0.5][school];
        let rate = (0.3 * region_at as f64 + 0.02 * (age as f64 - 45.0) + of_school - 0.5).exp();
        let claims = (2.0 * rate * years * noise(row)).round();
        let age = if row % 29 == 3 { "NA".to_owned() } else { age.to_string() };
        format!("{},{},{age},{years},s{school},{claims}\n", 1000 + row, region[region_at])
    };
    format!("id,region,age,years,school,claims\n{}", (0..300).map(line).collect::<String>())
}

const OPTIONS: &str =
    "import messy.csv --label claims --task counts --drop id --categorical region --exposure years --group school";

#[test]
fn a_messy_table_becomes_rate_ratios_and_predictions() {
    let cli = Cli::new();
    cli.write("messy.csv", messy());
    // Each mistake says what to type.
    for (typed, says) in [
        (
            "import messy.csv --label claims -o a.h5",
            "column 2 (region): \"north\" is not a number: make indicators of this column with --categorical region, or effects of groups with --group region, or leave it out with --drop region",
        ),
        (
            "import messy.csv --label claims --task counts --drop id --categorical region,school -o a.h5",
            "\"NA\" looks missing: leave such rows out with --missing drop, or fill them in with --missing mean-and-flag (11 rows lack a value)",
        ),
        ("import messy.csv --label claims --categorical regoin -o a.h5", "no column is called \"regoin\""),
        ("import messy.csv --label claims --categorical region --drop region -o a.h5", "column 2 (region)"),
        (
            "import messy.csv --label age --task counts --drop region,school -o a.h5",
            "the label \"NA\" looks missing: leave such rows out with --missing drop",
        ),
        (
            "import messy.csv --label years --task counts --drop region,school,age -o a.h5",
            "is not a count 0, 1, 2, ...: is this a regression (--task regression)?",
        ),
        (
            "import messy.csv --label claims --task counts --drop id,age,school,region --exposure claims -o a.h5",
            "is the label: choose another column",
        ),
        (
            "import messy.csv --label claims --task counts --drop id,age,school,region --exposure years -o a.h5",
            "no feature remains",
        ),
    ] {
        cli.alone(typed).end(1, &[says]);
        assert!(!cli.exists("a.h5"));
    }
    let text = cli.stdout(&format!("{OPTIONS} --missing drop --test-fraction 0.2 -o dropped.h5"));
    for says in [
        "counts",
        "left out     11 rows, where a value is missing",
        "categorical  region: south, west, each compared with the reference level north",
        "exposure     log(years) is added to linear predictors",
        "groups       school: 6 groups: s0, s1, s2, s3, s4, s5",
        "features     3\n",
    ] {
        assert!(text.contains(says), "{text}");
    }
    let text = cli.stdout(&format!("{OPTIONS} --missing mean-and-flag -o claims.h5"));
    assert!(text.contains("300 rows") && text.contains("filled in    age: its mean"), "{text}");

    cli.succeed("init hmc --data claims.h5 -o claims.toml");
    let file = cli.read("claims.toml");
    assert!(file.contains("name = \"negative_binomial\"") && file.contains("counts, which may vary more"), "{file}");
    cli.succeed("init hmc --model poisson --data claims.h5 -o claims.toml --force");
    cli.succeed("run claims.toml --output claims");
    cli.mpirun(3, "run claims.toml --output three").end(0, &[]);
    assert!(cli.posterior("claims") == cli.posterior("three"));
    cli.succeed("plot claims coefficients --format svg --interval 0.8");
    let svg = cli.read("claims/plots/coefficients.svg");
    for says in [">Rate ratios<", "median and 80 % interval", ">region[south]<", ">age<"] {
        assert!(svg.contains(says), "{says} in {svg}");
    }
    cli.succeed("plot claims coefficients --output one.svg --parameter region");
    let svg = cli.read("one.svg");
    assert!(svg.contains(">region[west]<") && !svg.contains(">age<"), "{svg}");
    // Without a kind, the figures that know the term are drawn.
    let drawn = cli.stdout("plot claims --parameter region --output some --format svg");
    assert!(drawn.contains("some/coefficients.svg") && !drawn.contains("posterior"), "{drawn}");
    for typed in ["--parameter nothing", "--parameter region --parameter nothing"] {
        cli.refuse(&format!("plot claims {typed}"), &["there is no parameter \"nothing\"; the run has"]);
    }
    cli.alone("plot claims coefficients --parameter nothing")
        .end(1, &["cannot draw \"coefficients\": none with the given --parameter nothing; `mpibayes summary` lists the terms"]);
    let summary = cli.stdout("summary claims --interval 0.95");
    for says in
        ["in the units of the data (95 % interval)", "rate ratio", "region[south]", "age[missing]", "sd of school", "school[s5]"]
    {
        assert!(summary.contains(says), "{says}: {summary}");
    }
    assert!(summary.contains("2.5 %") && summary.contains("weights[region[west]]"), "{summary}");
    assert!(cli.stdout("summary claims --kind hdi").contains("(90 % highest-density interval)"));
    // Ten years have ten times the coefficient, the tenth power of the ratio, and the same draws.
    let rows = |typed: &str| -> Vec<serde_json::Value> {
        let json: serde_json::Value = serde_json::from_str(&cli.stdout(typed)).unwrap();
        json["coefficients"]["rows"].as_array().unwrap().clone()
    };
    let row = |rows: &[serde_json::Value], name: &str| rows.iter().find(|row| row["name"] == name).unwrap().clone();
    let (one, ten) = (rows("summary claims --json"), rows("summary claims --json --per age=10"));
    let (one_year, ten_years) = (row(&one, "age"), row(&ten, "age (per 10)"));
    let number = |value: &serde_json::Value| value.as_f64().unwrap();
    assert!((number(&ten_years["mean"]) / number(&one_year["mean"]) / 10.0 - 1.0).abs() < 1e-9);
    // Quantiles are interpolated between draws.
    assert!((number(&ten_years["ratio"][2]).ln() / number(&one_year["ratio"][2]).ln() / 10.0 - 1.0).abs() < 0.01);
    assert_eq!(row(&one, "region[west]"), row(&ten, "region[west]"));
    cli.alone("summary claims --per years=10").end(1, &["--per years: there is no such column; there are region[south]"]);
    cli.succeed("plot claims coefficients --output ten.svg --parameter age --per age=10");
    assert!(cli.read("ten.svg").contains(">age (per 10)<"));
    cli.succeed("summary claims --draws draws.csv");
    let draws = cli.read("draws.csv");
    let head: Vec<&str> = draws.lines().next().unwrap().split(',').collect();
    let place = head.iter().position(|name| *name == "age").unwrap();
    let values: Vec<f64> = draws.lines().skip(1).map(|line| line.split(',').nth(place).unwrap().parse().unwrap()).collect();
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    assert!((mean / number(&one_year["mean"]) - 1.0).abs() < 1e-9 && head[..2] == ["chain", "draw"], "{head:?}");
    assert!(draws.lines().last().unwrap().starts_with("3,999,"), "{}", draws.lines().last().unwrap());
    cli.alone("summary claims --draws draws.csv").end(1, &["this file exists"]);
    // Runs with other models side by side.
    cli.succeed("run claims.toml --set model.group_effects=false --output alone");
    let table = cli.stdout("compare claims alone --coefficients --per age=10 --interval 0.5");
    let line = |term: &str| table.lines().find(|line| line.trim_start().starts_with(term)).unwrap().to_owned();
    assert!(table.starts_with("in the units of the data, with the 50 % interval\n"), "{table}");
    assert!(line("age (per 10)").matches(" to ").count() == 2 && line("sd of school").ends_with(" -"), "{table}");
    let csv = cli.stdout("compare claims alone --coefficients --csv");
    let ratio = |run: &str| -> f64 {
        let row = csv.lines().find(|line| line.starts_with(&format!("{run},age,"))).unwrap();
        row.split(',').nth(6).unwrap().parse().unwrap()
    };
    assert!((ratio("claims") - number(&one_year["ratio"][0])).abs() < 1e-12 && ratio("alone") > 1.0);
    cli.alone("compare claims alone --interval 0.5").end(2, &["--coefficients"]);
    cli.alone("compare claims alone --coefficients --per wages=10").end(1, &["--per wages: no run has such a column"]);

    // Two models of the same rows, by cross-validation.
    cli.succeed("run claims.toml --set evaluate.pointwise=true --output groups");
    cli.succeed("run claims.toml --set evaluate.pointwise=true --set model.group_effects=false --output pooled");
    let compared: serde_json::Value = serde_json::from_str(&cli.stdout("compare groups pooled --json")).unwrap();
    let [best, other] = &compared["predictive_scores"].as_array().unwrap()[..] else { panic!("{compared}") };
    assert!(best["elpd"]["value"].as_f64() > other["elpd"]["value"].as_f64() && best["difference"].is_null());
    assert!(other["difference"]["value"].as_f64().unwrap() < 0.0 && other["rows"] == 300, "{compared}");
    assert!(cli.stdout("compare groups pooled").contains("cross-validation of 300 training rows"));
    assert!(cli.stdout("compare claims pooled").contains("Log-likelihoods are not compared: all runs must keep them"));
    let drawn = cli.results("groups").grid("posterior_predictive").unwrap().unwrap().array("y").unwrap();
    let observed = cli.results("groups").grid("observed_data").unwrap().unwrap().array("y").unwrap();
    assert!(drawn.iter().all(|count| *count >= 0.0 && count.fract() == 0.0));
    // Poisson regression with an intercept reproduces the mean of the counts.
    let (drawn, observed) = (drawn.mean().unwrap(), observed.mean().unwrap());
    assert!((drawn / observed - 1.0).abs() < 0.02, "{drawn} {observed}");

    // The coefficient of the age is that of a year: the standardized weight over the standard deviation of ages.
    let json: serde_json::Value = serde_json::from_str(&cli.stdout("summary claims --json")).unwrap();
    let row = |name: &str| {
        let rows = json["coefficients"]["rows"].as_array().unwrap();
        rows.iter().find(|row| row["name"] == name).unwrap_or_else(|| panic!("{name} in {rows:?}")).clone()
    };
    let age = row("age");
    let (mean, ratio) = (age["mean"].as_f64().unwrap(), age["ratio"][0].as_f64().unwrap());
    let estimates = json["draws"][0]["estimates"].as_array().unwrap();
    let weight = estimates.iter().find(|row| row["name"] == "weights[age]").unwrap()["mean"].as_f64().unwrap();
    let scale = cli.results("claims").grid("preprocessing").unwrap().unwrap().array("scale").unwrap();
    assert!((mean - weight * scale[[2]]).abs() < 1e-12, "{mean} {weight} {scale}");
    assert!((ratio.ln() - mean).abs() < 0.005 && (mean - 0.02).abs() < 0.01, "{ratio} {mean}");

    // The original table is predicted as the dataset is, in any order of columns, without its target.
    let predicted = |arguments: &str| cli.stdout(&format!("predict claims {arguments}"));
    let of_data = predicted("claims.h5 --split train");
    let of_table = predicted("messy.csv --label claims");
    assert!(of_data.lines().count() == 301 && of_data == of_table);
    // Counts have at least the variance of Poisson's distribution, and intervals that contain nine tenths of them.
    let columns = |line: &str| line.split(',').map(|field| field.parse().unwrap_or(f64::NAN)).collect::<Vec<f64>>();
    assert!(of_table.starts_with("row,predicted,label,sd,5 %,95 %\n"), "{of_table}");
    let rows: Vec<Vec<f64>> = of_table.lines().skip(1).map(columns).collect();
    assert!(rows.iter().all(|row| row[3].powi(2) > 0.75 * row[1] && row[4] <= row[1].ceil() && row[1].floor() <= row[5]));
    let inside = rows.iter().filter(|row| (row[4]..=row[5]).contains(&row[2])).count();
    assert!((260..=300).contains(&inside), "{inside} of 300 inside");
    let drawn = predicted("messy.csv --draws 2 --interval 0.5");
    assert!(drawn.starts_with("row,predicted,sd,25 %,75 %,draw_1,draw_2\n"), "{drawn}");
    let row = columns(drawn.lines().nth(1).unwrap());
    assert!(row[5].fract() == 0.0 && row[6] >= 0.0 && row[3] >= rows[0][4] && row[4] <= rows[0][5], "{row:?}");
    cli.alone("predict claims messy.csv --draws 99999").end(1, &["--draws 99999: must be at most"]);
    cli.write("new.csv", "school,region,years,age\ns3,west,2,NA\ns3,west,4,NA\n");
    let means: Vec<f64> =
        predicted("new.csv").lines().skip(1).map(|line| line.split(',').nth(1).unwrap().parse().unwrap()).collect();
    // Twice the exposure, twice the count.
    assert!((means[1] / means[0] - 2.0).abs() < 2e-8, "{means:?}");
    // The effect of a new school is drawn from all schools, whose effects have a standard deviation of .4. That of a known one is certain to
    // some .1, so that its predictions vary far less where the noise of counts is small.
    cli.write("new.csv", "school,region,years,age\ns3,west,4000,40\ns9,west,4000,40\n");
    let rows: Vec<Vec<f64>> = predicted("new.csv").lines().skip(1).map(columns).collect();
    assert!(rows[1][2] > 2.0 * rows[0][2], "{rows:?}");
    // The interval of the mean contains the effect of the new group too; without it, the mean of a new group would be more certain than that
    // of a known one.
    let said = "1 row of groups without training rows";
    let of_means = cli.alone("predict claims new.csv --of mean").end(0, &[said]).stdout;
    let rows: Vec<Vec<f64>> = of_means.lines().skip(1).map(columns).collect();
    let kept = cli.alone("predict claims messy.csv --keep id").end(0, &[]).stdout;
    assert!(kept.starts_with("row,id,predicted,") && kept.lines().nth(2).unwrap().starts_with("1,1001,"), "{kept}");
    cli.alone("predict claims new.csv --keep age").end(1, &["--keep age: the model uses this column"]);
    cli.alone("predict claims new.csv --keep id").end(1, &["--keep: the header lacks id; it has school, region, years, age"]);
    assert!(rows[1][2] > rows[0][2], "{rows:?}");
    // Rows that cannot be predicted stay empty, and the first of them is explained.
    let usable = "s3,west,2,40\n";
    for (row, says) in [
        ("s3,east,2,40\n", "line 3: \"region\" has a value that no training row has; they have north, south, west, not \"east\""),
        ("s3,west,0,40\n", "line 3: the exposure \"years\" is 0: it must be positive"),
        ("s3,west,NA,40\n", "line 3: the value of \"years\" is missing"),
        // Of two reasons, the missing value is named.
        ("s3,east,NA,40\n", "line 3: the value of \"years\" is missing"),
    ] {
        cli.write("new.csv", format!("school,region,years,age\n{usable}{row}{usable}{row}"));
        let said = format!("2 rows without a prediction, of which the first is new.csv, {says}");
        let ended = cli.alone("predict claims new.csv").end(0, &[&said]);
        assert_eq!(ended.stderr.contains(", not "), says.contains(", not "), "{}", ended.stderr);
        let text = ended.stdout;
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines.len() == 5 && lines[2] == "1,,,," && lines[4] == "3,,,,", "{text}");
        assert!(lines[1].starts_with("0,") && lines[3].starts_with("2,") && lines[3].len() > 20, "{text}");
    }
    cli.write("new.csv", "school,region,years,age\ns3,west,NA,40\ns3,east,2,40\ns3,west,0,40\ns3,south,NA,40\n");
    let said = "4 rows without a prediction (2 with a missing value, 1 with a value that no training row has, 1 with an exposure or a weight \
                that is not allowed), of which the first is new.csv, line 2: the value of \"years\" is missing";
    cli.alone("predict claims new.csv").end(0, &[said]);
    // Numbers far from those of the training rows, as in another unit, are predicted and said. A rare level is not far.
    let rows = "s3,south,2,40\ns3,west,2,14600\ns3,west,2,NA\ns3,west,2,-900\n";
    cli.write("new.csv", format!("school,region,years,age\n{rows}"));
    let said = "2 rows far from most training rows, of which the first is new.csv, line 3: \"age\" is 14600. ";
    let text = cli.alone("predict claims new.csv").end(0, &[said]).stdout;
    assert!(text.lines().count() == 5 && text.lines().all(|line| !line.ends_with(",,,,")), "{text}");
    cli.write("new.csv", format!("school,region,years,age\n{usable}"));
    assert!(!cli.alone("predict claims new.csv").end(0, &[]).stderr.contains("far from"));
    cli.write("new.csv", "school,region,age\ns3,west,40\n");
    cli.alone("predict claims new.csv").end(1, &["the header lacks years"]);
}

/// Odds ratios of a logistic regression, coefficients of a linear one in the units of the target, and cutpoints.
#[test]
fn coefficients_are_in_the_units_of_the_data() {
    let cli = Cli::new();
    let noise = |row: usize| (row as f64 * 0.618_033_988_749_895 + 0.13).fract() - 0.5;
    let line = |row: usize| {
        let size = 100.0 + (row * 7 % 50) as f64;
        let price = 1000.0 + 30.0 * size + 400.0 * noise(row);
        let grade = 1 + usize::from(size + 30.0 * noise(row) > 120.0) + usize::from(size + 30.0 * noise(row) > 140.0);
        format!("{size},{price},{},{grade}\n", if grade > 1 { "yes" } else { "no" })
    };
    cli.write("houses.csv", format!("size,price,sold,grade\n{}", (0..200).map(line).collect::<String>()));
    let fitted = |name: &str, import: &str, model: &str| {
        cli.succeed(&format!("import houses.csv {import} -o {name}.h5"));
        cli.succeed(&format!("init hmc --data {name}.h5 --model {model} -o {name}.toml"));
        cli.succeed(&format!("run {name}.toml --output {name}"));
        let json: serde_json::Value = serde_json::from_str(&cli.stdout(&format!("summary {name} --json"))).unwrap();
        let rows = json["coefficients"]["rows"].as_array().unwrap().clone();
        move |term: &str| rows.iter().find(|row| row["name"] == term).unwrap()["mean"].as_f64().unwrap()
    };
    let linear = fitted("linear", "--task regression --label price --drop sold,grade", "linear");
    // The noise is uniform: 400 √(1/12) = 115.
    assert!((linear("size") - 30.0).abs() < 2.0 && (linear("intercept") - 1000.0).abs() < 250.0);
    assert!((linear("sd of noise") - 115.0).abs() < 15.0, "{}", linear("sd of noise"));
    let logistic = fitted("logistic", "--label sold --drop price,grade", "logistic");
    let summary = cli.stdout("summary logistic");
    assert!(summary.contains("odds ratio") && summary.contains("odds of yes against no"), "{summary}");
    // Even odds at a size of 120.
    assert!((-logistic("intercept") / logistic("size") - 120.0).abs() < 4.0);
    let ordinal = fitted("ordinal", "--label grade --drop price,sold", "ordinal");
    for (cutpoint, size) in [("cutpoint[1 | 2]", 120.0), ("cutpoint[2 | 3]", 140.0)] {
        assert!((ordinal(cutpoint) / ordinal("size") - size).abs() < 4.0, "{cutpoint}");
    }
}

/// Texts and gaps that only test rows or new rows have, and labels that are missing.
#[test]
fn training_rows_decide_what_columns_become() {
    let cli = Cli::new();
    let line = |row: usize| format!("{},{},s{},{}\n", row * 7 % 11, ["x", "y"][row % 2], row % 3, row * 5 % 4);
    let train = format!("size,kind,site,count\n{}", (0..60).map(line).collect::<String>());
    cli.write("train.csv", train.clone() + "3,x,s1,NA\n");
    cli.write("test.csv", "size,kind,site,count\n1,w,s0,2\n");
    let import = "import train.csv --task counts --categorical kind --group site";
    cli.alone(&format!("{import} -o a.h5"))
        .end(1, &["line 62: the label \"NA\" looks missing: leave such rows out with --missing drop"]);
    // The reference level is one of the training rows.
    cli.write("test.csv", "size,kind,site,count\n1,w,s0,2\n1,y,s9,2\n,x,s0,1\n");
    let text = cli.stdout(&format!("{import} --missing mean-and-flag --test test.csv -o a.h5"));
    assert!(text.contains("train        60 rows") && text.contains("test         2 rows"), "{text}");
    assert!(text.contains("left out     1 row") && text.contains("3 groups: s0, s1, s2"), "{text}");
    assert!(text.contains("note: 1 test row is left out, because \"kind\" has a value there"), "{text}");
    cli.write("run.toml", "[data]\nfile = \"a.h5\"\n[model]\nname = \"poisson\"\n[method]\nname = \"hmc\"\ndraws = 200\n");
    cli.succeed("run run.toml --output run");
    // A site that the training rows do not have is an average one; a gap is the mean of the training rows.
    let mean: f64 = (0..60).map(|row| (row * 7 % 11) as f64).sum::<f64>() / 60.0;
    cli.write("new.csv", format!("size,kind,site\n,y,s9\n{mean},y,other\n"));
    let predicted = cli.stdout("predict run new.csv");
    let means: Vec<f64> = predicted.lines().skip(1).map(|line| line.split(',').nth(1).unwrap().parse().unwrap()).collect();
    assert!((means[0] / means[1] - 1.0).abs() < 2e-8, "{means:?}");

    cli.write("gaps.csv", "a,b,y\n1,,0\n,2,1\n3,4,0\n");
    cli.alone("import gaps.csv -o c.h5").end(1, &["line 2", "(2 rows lack a value: a in 1, b in 1)"]);
    cli.write("same.csv", "a,a[missing],y\n1,2,0\n,1,1\n3,4,0\n");
    cli.alone("import same.csv --missing mean-and-flag -o b.h5").end(1, &["two features would be called \"a[missing]\""]);
}

/// The rows of the table in the units of the data add up to what is predicted, with slopes of groups and without an intercept.
#[test]
fn coefficients_add_up_to_predictions() {
    let cli = Cli::new();
    let noise = |row: usize| (row as f64 * 0.618_033_988_749_895 + 0.13).fract() - 0.5;
    let line = |row: usize| {
        let (x, site) = (50.0 + 20.0 * noise(row), row % 4);
        format!("{x},s{site},{}\n", 10.0 + [0.2, 0.5, -0.3, 0.1][site] * x + [3.0, -4.0, 0.0, 2.0][site] + noise(row * 31 + 5))
    };
    cli.write("a.csv", format!("x,site,y\n{}", (0..120).map(line).collect::<String>()));
    cli.write("zero.csv", "x,site\n0,s1\n0,s3\n100,s3\n");
    for (model, group) in [("name = \"linear\"\ngroup_slopes = [\"x\"]", true), ("name = \"linear\"\nintercept = false\n", false)]
    {
        cli.succeed(&format!(
            "import a.csv --task regression {} -o a.h5 --force",
            if group { "--group site" } else { "--drop site" }
        ));
        cli.write(
            "run.toml",
            format!("[data]\nfile = \"a.h5\"\n[model]\n{model}\n[method]\nname = \"hmc\"\nburn_in = 100\ndraws = 50\n"),
        );
        cli.succeed(&format!("run run.toml --output {group}"));
        let json: serde_json::Value = serde_json::from_str(&cli.stdout(&format!("summary {group} --json"))).unwrap();
        let rows = json["coefficients"]["rows"].as_array().unwrap();
        let of = |name: &str| rows.iter().find(|row| row["name"] == name).unwrap()["mean"].as_f64().unwrap();
        let by_hand = |x: f64, site: &str| {
            let own = if group { of(&format!("site[{site},intercept]")) + x * of(&format!("site[{site},x]")) } else { 0.0 };
            of("intercept") + x * of("x") + own
        };
        let predicted = cli.stdout(&format!("predict {group} zero.csv"));
        for (line, (x, site)) in predicted.lines().skip(1).zip([(0.0, "s1"), (0.0, "s3"), (100.0, "s3")]) {
            let mean: f64 = line.split(',').nth(1).unwrap().parse().unwrap();
            assert!((mean - by_hand(x, site)).abs() < 1e-8 * mean.abs().max(1.0), "{x} {site}: {mean} {}", by_hand(x, site));
        }
    }
}

/// The search for the mode integrates the effects of many groups out, and ends.
#[test]
fn the_mode_of_a_hundred_groups_is_found() {
    let cli = Cli::new();
    let noise = |row: usize| (row as f64 * 0.618_033_988_749_895 + 0.13).fract() - 0.5;
    for (name, scale) in [("wide", 7.0), ("narrow", 0.5)] {
        let line = |row: usize| {
            let (x, site) = (4.0 * noise(row * 13 + 3), row % 100);
            let eta = 0.3 * x + scale * noise(site * 17 + 1);
            format!("{x},s{site},{},{}\n", (eta.exp() + 2.0 * noise(row)).max(0.0).round(), eta + 2.0 * noise(row))
        };
        cli.write("a.csv", format!("x,site,count,number\n{}", (0..1000).map(line).collect::<String>()));
        for (model, task, label, other) in [("poisson", "counts", "count", "number"), ("linear", "regression", "number", "count")]
        {
            cli.succeed(&format!("import a.csv --task {task} --label {label} --drop {other} --group site -o a.h5 --force"));
            cli.write(
                "run.toml",
                format!(
                    "[data]\nfile = \"a.h5\"\n[model]\nname = \"{model}\"\n[method]\nname = \"hmc\"\nburn_in = 60\ndraws = 20\n"
                ),
            );
            cli.succeed(&format!("run run.toml --output {name}-{model}"));
            let summary = cli.stdout(&format!("summary {name}-{model}"));
            assert!(summary.contains("the Laplace approximation, for comparison"), "{summary}");
        }
    }
}

/// A table with a date, a text, gaps and whole numbers, as CSV in two files and as Parquet and Arrow.
#[test]
fn parquet_and_arrow_are_read_like_text() {
    let cli = Cli::new();
    let date = |row: i32| 19_700 + row * 3;
    let region = |row: i32| ["north", "south", "west"][(row * 7 % 3) as usize];
    let weight = |row: i32| (row % 7 != 2).then_some(f64::from(row * 13 % 11) / 8.0);
    let level = |row: i32| row % 4 + 1;
    let kind = |row: i32| ["no", "yes"][(row * 5 % 8 / 4) as usize];
    let mut days = String::from("id,sold,region,weight,level,kind\n");
    let mut lines = Vec::new();
    for row in 0..80 {
        let day = iso_date(date(row));
        let weight = weight(row).map_or_else(|| "NA".to_owned(), |weight| weight.to_string());
        lines.push(format!("{},{day},{},{weight},{},{}\n", row + 5, region(row), level(row), kind(row)));
    }
    cli.write("first.csv", days.clone() + &lines[..50].concat());
    cli.write("second.csv", days.clone() + &lines[50..].concat());
    days.push_str(&lines.concat());
    cli.write("all.csv", days);
    let columns: [(&str, ArrayRef); 6] = [
        ("id", Arc::new(Int32Array::from_iter_values((0..80).map(|row| row + 5)))),
        ("sold", Arc::new(Date32Array::from_iter_values((0..80).map(date)))),
        ("region", Arc::new(StringArray::from_iter_values((0..80).map(region)))),
        ("weight", Arc::new((0..80).map(weight).collect::<Float64Array>())),
        ("level", Arc::new(Int32Array::from_iter_values((0..80).map(level)))),
        ("kind", Arc::new(StringArray::from_iter_values((0..80).map(kind)))),
    ];
    let batch = RecordBatch::try_from_iter(columns).unwrap();
    let file = |name: &str| std::fs::File::create(cli.path(name)).unwrap();
    let mut writer = ArrowWriter::try_new(file("all.parquet"), batch.schema(), None).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
    let mut writer = arrow_ipc::writer::FileWriter::try_new(file("all.arrow"), &batch.schema()).unwrap();
    writer.write(&batch).unwrap();
    writer.finish().unwrap();

    // Each dead end says what to type.
    for (file, says) in [
        (
            "all.parquet",
            "column 2 (sold) holds dates: read them as days since 1970 with --date sold, or leave them out with --drop sold",
        ),
        ("all.csv", "column 2 (sold): \"2023-12-09\" is not a number: read this column as dates with --date sold"),
        (
            "all.parquet --date sold",
            "column 3 (region): \"north\" is not a number: make indicators of this column with --categorical region",
        ),
        ("all.parquet --date region", "column 2 (sold) holds dates"),
        ("all.parquet --date level,sold --categorical region", "column 5 (level) holds no dates"),
        ("all.csv --date sold --categorical region", "\"NA\" looks missing"),
        ("all.parquet --date sold --categorical region", "\"\" looks missing: leave such rows out with --missing drop"),
        (
            "all.csv --date sold --categorical region --reference level=2 --missing drop",
            "\"level\" is no column of --categorical",
        ),
        (
            "all.csv --date sold --categorical region --reference region=east --missing drop",
            "--reference region=east: the values of training rows are north, south, west",
        ),
    ] {
        cli.alone(&format!("import {file} -o a.h5")).end(1, &[says]);
        assert!(!cli.exists("a.h5"));
    }
    let options = "--drop id --date sold --categorical region,level --reference region=south --missing mean-and-flag";
    let mut digests = Vec::new();
    for (name, files) in [("csv", "all.csv"), ("two", "first.csv second.csv"), ("parquet", "all.parquet"), ("arrow", "all.arrow")]
    {
        let text = cli.stdout(&format!("import {files} {options} -o {name}.h5"));
        assert!(text.contains("region: north, west, each compared with the reference level south"), "{text}");
        assert!(text.contains("level: 2, 3, 4, each compared") && text.contains("sold: days since 1970-01-01"), "{text}");
        digests.push(Dataset::open(&cli.path(format!("{name}.h5"))).unwrap().digest().to_owned());
    }
    assert!(digests.windows(2).all(|pair| pair[0] == pair[1]), "{digests:?}");

    // Other columns of a table that is predicted may hold anything.
    cli.succeed("import all.parquet --drop id,sold,region --missing drop -o few.h5");
    cli.succeed("init hmc --data few.h5 -o few.toml");
    cli.succeed("run few.toml --set method.draws=50 --output few");
    cli.write("full.csv", cli.read("all.csv").replace(",NA,", ",1.5,"));
    assert!(cli.stdout("predict few full.csv").lines().count() == 81);
    let said = "12 rows without a prediction, of which the first is all.parquet, record 3: the value of \"weight\" is missing";
    assert_eq!(cli.alone("predict few all.parquet").end(0, &[said]).stdout.lines().count(), 81);

    // What columns are taken for, and probably are not, is said.
    let text = cli.stdout("import all.parquet --drop sold,region --missing drop -o plain.h5");
    assert!(
        text.contains("note: id grows from row to row") && text.contains("note: level has no other values than 1, 2, 3, 4"),
        "{text}"
    );

    // A run on one of them predicts the others.
    cli.succeed("init hmc --data parquet.h5 -o run.toml");
    cli.succeed("run run.toml --set method.draws=50 --output run");
    let predicted = cli.stdout("predict run all.parquet --label kind");
    assert!(predicted.lines().count() == 81 && predicted == cli.stdout("predict run all.csv --label kind"), "{predicted}");
    assert!(predicted == cli.stdout("predict run all.arrow --label kind") && predicted == cli.stdout("predict run two.h5"));
}

/// Fractions with a comma are read as asked for, also in new rows and in targets; a missing text is a level of its own.
#[test]
fn decimal_commas_and_missing_texts() {
    let cli = Cli::new();
    let lines = |comma: bool| {
        let line = |row: usize| {
            let region = ["north", "", "south"][row % 3];
            let line = format!("{}.25;{region};{}.5\n", row * 7 % 11, row * 5 % 13 + row % 3);
            if comma { line.replace('.', ",") } else { line }
        };
        format!("size;region;price\n{}", (0..90).map(line).collect::<String>())
    };
    cli.write("comma.csv", lines(true));
    cli.write("point.csv", lines(false));
    let options = "--task regression --categorical region --missing mean-and-flag";
    for (typed, says) in [
        ("import comma.csv", "\"0,25\" is not a number: if numbers have a decimal comma, say so with --decimal comma"),
        (
            "import point.csv --decimal comma --categorical region --missing mean-and-flag",
            "\"0.25\" has a point: numbers with a decimal comma have none",
        ),
        (
            "import point.csv --categorical region",
            "\"\" looks missing: leave such rows out with --missing drop, or make it a level of its own with --missing mean-and-flag",
        ),
    ] {
        cli.alone(&format!("{typed} --task regression -o a.h5")).end(1, &[says]);
        assert!(!cli.exists("a.h5"));
    }
    let text = cli.stdout(&format!("import comma.csv {options} --decimal comma -o comma.h5"));
    assert!(
        text.contains("90 rows") && text.contains("region: south, missing, each compared with the reference level north"),
        "{text}"
    );
    cli.succeed(&format!("import point.csv {options} -o point.h5"));
    for name in ["comma", "point"] {
        cli.write(
            &format!("{name}.toml"),
            format!("[data]\nfile = \"{name}.h5\"\n[model]\nname = \"linear\"\n[method]\nname = \"hmc\"\ndraws = 100\n"),
        );
        cli.succeed(&format!("run {name}.toml --output {name}"));
    }
    let predicted = cli.stdout("predict comma comma.csv --label price");
    assert!(predicted == cli.stdout("predict comma point.csv --decimal point --label price"));
    assert!(predicted == cli.stdout("predict point point.csv --label price"));
    let ended = cli.alone("predict comma point.csv").end(1, &["\"0.25\" has a point"]);
    assert!(ended.stdout.lines().count() <= 1, "{}", ended.stdout);
    // Targets are written like features.
    cli.write("mixed.csv", "size;price\n1,5;1.234\n2,5;12,50\n");
    cli.alone("import mixed.csv --task regression --decimal comma -o a.h5").end(1, &["\"1.234\" has a point"]);
    // The numbers of texts are no values: the second region is not the missing number 1.
    let text = cli.stdout("import point.csv --task regression --categorical region --missing drop --na 1 -o na.h5");
    assert!(text.contains("60 rows") && text.contains("region: south, each compared with the reference level north"), "{text}");
    // A text that reads `missing` is no reason to keep rows without one.
    cli.write("named.csv", lines(false).replace("north", "missing"));
    let text = cli.stdout("import named.csv --task regression --categorical region --missing drop -o named.h5");
    assert!(text.contains("60 rows") && text.contains("left out     30 rows"), "{text}");
    // Texts where numbers are expected are listed together.
    cli.write("texts.csv", "a,b,c,d,y\n1,x,2,u,0\n2,y,3,v,1\n");
    cli.alone("import texts.csv -o a.h5").end(1, &["column 2 (b): \"x\" is not a number", "There are texts in d too"]);
}

/// What nothing in a table tells is asked for, and no row is taken for names, nor a number for two levels.
#[test]
fn what_a_table_does_not_tell_is_asked_for() {
    let cli = Cli::new();
    cli.write(
        "cat.csv",
        (0..40)
            .map(|row| format!("{},{},2024-01-0{} 05:06,{}\n", ["a", "b"][row % 2], row % 3, row % 9 + 1, row % 2))
            .collect::<String>(),
    );
    cli.alone("import cat.csv --categorical 1,2 --date 3 -o a.h5")
        .end(1, &["say with --header yes that it does, or with --header no"]);
    let text = cli.stdout("import cat.csv --categorical 1,2 --date 3 --header no -o a.h5");
    assert!(text.contains("40 rows") && text.contains("x3: days since 1970-01-01"), "{text}");
    cli.write("twice.csv", "g,x,y\n1,2,0\n1.0,3,1\n2,4,0\n2,5,1\n");
    cli.alone("import twice.csv --categorical g -o b.h5").end(1, &["\"1\" and \"1.0\" are the same number written in two ways"]);
    // A column whose name is a number is named by its place.
    cli.write(
        "numbers.csv",
        format!("2,3,y\n{}", (0..40).map(|row| format!("{},{}.5,{}\n", row, row * 7 % 11, row % 2)).collect::<String>()),
    );
    let text = cli.stdout("import numbers.csv --header yes -o c.h5");
    assert!(text.contains("note: 2 grows from row to row: if it is a row number or an id, --drop 1"), "{text}");
}

/// The date of a day since 1970, as ISO 8601 has it.
fn iso_date(days: i32) -> String {
    arrow_cast::display::array_value_to_string(&Date32Array::from(vec![days]), 0).unwrap()
}

/// Coefficients of a multinomial regression, in the units of the data and named by class.
#[test]
fn a_multinomial_regression_names_classes_and_columns() {
    let cli = Cli::new();
    let size = |row: u64| (row * 37 % 101) as f64;
    let line = |row: u64| {
        let noise = (row as f64 * 0.618_033_988_749_895 + 0.13).fract();
        let class = match size(row) + 60.0 * (noise - 0.5) {
            size if size < 35.0 => "apple",
            size if size < 70.0 => "melon",
            _ => "pear",
        };
        format!("{},{},{class}\n", size(row), row * 13 % 7)
    };
    cli.write("fruit.csv", format!("size,spots,kind\n{}", (0..400).map(line).collect::<String>()));
    cli.succeed("import fruit.csv --test-fraction 0.2 -o fruit.h5");
    cli.succeed("init dsgld --data fruit.h5 -o run.toml");
    assert!(cli.read("run.toml").contains("name = \"multinomial\""));
    cli.succeed("run run.toml --output run");
    let summary = cli.stdout("summary run");
    for says in ["right: ", "weights[pear,size]", "melon: intercept", "pear: size", "odds of the class of the term against apple"]
    {
        assert!(summary.contains(says), "{says}: {summary}");
    }
    let json: serde_json::Value = serde_json::from_str(&cli.stdout("summary run --json")).unwrap();
    let rows = json["coefficients"]["rows"].as_array().unwrap();
    let mean = |name: &str| rows.iter().find(|row| row["name"] == name).unwrap()["mean"].as_f64().unwrap();
    // Apples are as probable as melons where a size of 35 is.
    assert!((-mean("melon: intercept") / mean("melon: size") - 35.0).abs() < 10.0, "{summary}");
    assert!(mean("pear: size") > mean("melon: size") && mean("melon: size") > 0.0);
    let predicted = cli.stdout("predict run fruit.h5 --draws 1");
    assert!(predicted.starts_with("row,predicted,label,p(apple),p(melon),p(pear),draw_1\n"), "{predicted}");
}

/// A row of weight w counts as w rows. Rows to predict need no weight, and a table without header is predicted by the places of its columns.
#[test]
fn rows_count_by_their_weights_and_tables_need_no_header() {
    let cli = Cli::new();
    let noise = |row: usize| (row as f64 * 0.618_033_988_749_895 + 0.13).fract();
    let fields = |row: usize| {
        let (size, kind) = (row % 8, ["b", "a", "c"][row % 3]);
        (size, kind, u8::from(0.3 * size as f64 - 1.0 + [0.0, 0.8, -0.5][row % 3] > 2.0 * noise(row) - 1.0))
    };
    let (mut weighted, mut copied) = (String::new(), String::new());
    for row in 0..120 {
        let (size, kind, label) = fields(row);
        let weight = row * 7 % 4;
        weighted += &format!("{size},{kind},{weight},{label}\n");
        copied += &format!("{size},{kind},{label}\n").repeat(weight);
    }
    cli.write("weighted.csv", weighted);
    cli.write("copied.csv", copied);
    let text = cli.stdout("import weighted.csv --categorical 2 --weight 3 --scaling none -o weighted.h5");
    assert!(text.contains("weight       each row counts x3 times") && text.contains("train        120 rows"), "{text}");
    cli.succeed("import copied.csv --categorical 2 --scaling none -o copied.h5");
    for name in ["weighted", "copied"] {
        cli.succeed(&format!("init hmc --data {name}.h5 --model logistic -o {name}.toml"));
        cli.succeed(&format!("run {name}.toml --set method.draws=2000 --output {name}"));
    }
    // Without weights the posterior is another one.
    cli.succeed("import weighted.csv --categorical 2 --drop 3 --scaling none -o plain.h5");
    cli.succeed("run weighted.toml --set data.file=plain.h5 --set method.draws=2000 --output plain");
    let coefficients = |run: &str| -> Vec<[f64; 2]> {
        let json: serde_json::Value = serde_json::from_str(&cli.stdout(&format!("summary {run} --json"))).unwrap();
        let rows = json["coefficients"]["rows"].as_array().unwrap();
        rows.iter().map(|row| ["mean", "sd"].map(|name| row[name].as_f64().unwrap())).collect()
    };
    let copied = coefficients("copied");
    assert_eq!(copied.len(), 4);
    // 8,000 draws have standard errors of about .015 sds.
    let agrees = |run: &str| {
        let pairs = || coefficients(run).into_iter().zip(&copied);
        pairs().all(|(one, other)| (one[0] - other[0]).abs() < 0.1 * other[1] && (one[1] / other[1] - 1.0).abs() < 0.08)
    };
    assert!(agrees("weighted") && !agrees("plain"), "{:?} {copied:?}", coefficients("weighted"));

    cli.write("new.csv", "3,a,2\n5,c,0\n");
    let by_place = cli.stdout("predict weighted new.csv");
    cli.write("labelled.csv", "yes,3,a,2\nno,5,c,0\n");
    cli.alone("predict weighted labelled.csv --label first").end(1, &["unknown class \"yes\": the run has 0, 1"]);
    cli.write("labelled.csv", "1,3,a,2\n0,5,c,0\n");
    let columns = |text: &str, from: usize| -> Vec<String> {
        text.lines().skip(1).map(|line| line.split(',').skip(from).collect::<Vec<_>>().join(",")).collect()
    };
    let labelled = cli.stdout("predict weighted labelled.csv --label first");
    assert_eq!(columns(&by_place, 2), columns(&labelled, 3));
    cli.write("named.csv", "x2,x1\na,3\nc,5\n");
    assert_eq!(cli.stdout("predict weighted named.csv"), by_place);
    cli.write("new.csv", "3,a\n");
    cli.alone("predict weighted new.csv").end(1, &["the table has 2 columns of features, but the run has 3"]);
    cli.write("negative.csv", "1,a,-1,0\n2,b,1,1\n");
    cli.alone("import negative.csv --categorical 2 --weight 3 -o a.h5")
        .end(1, &["line 1: the weight \"x3\" is -1: it cannot be negative"]);
    cli.write("m.toml", "[data]\nfile = \"weighted.h5\"\n[model]\nname = \"network\"\n[method]\nname = \"hmc\"\n");
    cli.alone("run m.toml --output m").end(1, &["a network has no use for them; import without them"]);
}

/// The order of classes is that of their names, or the one that is asked for.
#[test]
fn classes_have_the_order_that_is_asked_for() {
    let cli = Cli::new();
    let line = |row: usize| {
        let x = (row * 7 % 40) as f64 / 10.0;
        let noise = (row as f64 * 0.618_033_988_749_895 + 0.13).fract() - 0.5;
        format!("{x},{}\n", ["low", "medium", "high"][usize::from(x + noise > 1.5) + usize::from(x + noise > 2.5)])
    };
    cli.write("grades.csv", format!("x,grade\n{}", (0..120).map(line).collect::<String>()));
    let sorted = cli.stdout("import grades.csv -o a.h5");
    let ordered = cli.stdout("import grades.csv --classes low,medium,high -o b.h5");
    assert!(sorted.contains("3: high, low, medium") && ordered.contains("3: low, medium, high"), "{sorted}{ordered}");
    cli.succeed("init hmc --data b.h5 --model ordinal -o b.toml");
    cli.succeed("run b.toml --set method.draws=200 --output b");
    let summary = cli.stdout("summary b");
    assert!(summary.contains("cutpoint[low | medium]") && summary.contains("cutpoint[medium | high]"), "{summary}");
    for (classes, says) in [
        ("low,medium", "rows have the label \"high\", which is not among the classes low, medium"),
        ("low,medium,high,huge", "no row has the label \"huge\"; the labels are"),
        ("low,medium,low,high", "the class \"low\" is listed twice"),
    ] {
        cli.alone(&format!("import grades.csv --classes {classes} -o c.h5")).end(1, &[says]);
    }
    cli.alone("import grades.csv --task regression --classes low -o c.h5")
        .end(1, &["an order of classes is for classifications"]);
}

/// The mistakes of people who bring tables as other programs write them, and what answers them.
#[test]
fn tables_of_other_programs_are_read_or_answered() {
    let cli = Cli::new();
    let noise = |row: usize| (row as f64 * 0.618_033_988_749_895 + 0.13).fract() - 0.5;
    let line =
        |row: usize| format!("{},{:.3},{},{}\n", row, noise(row), ["True", "FALSE"][row % 2], ["low", "high", "mid"][row % 3]);
    let rows: String = (0..60).map(line).collect();
    // pandas and R write row numbers without a name.
    cli.write("numbered.csv", format!(",a,b,kind\n{rows}"));
    cli.alone("import numbered.csv -o a.h5").end(1, &["column 1 has no name", "--drop 1"]);
    let text = cli.stdout("import numbered.csv --drop 1 -o a.h5");
    assert!(text.contains("features  2"), "{text}");
    // The text of a truth value does not matter, gaps and further columns are no obstacle, and a row without label counts in no metric.
    cli.write(
        "run.toml",
        "[data]\nfile = \"a.h5\"\n[model]\nname = \"multinomial\"\n[method]\nname = \"hmc\"\nburn_in = 60\ndraws = 30\n",
    );
    cli.succeed("run run.toml --output a");
    cli.write("new.csv", ",a,b,kind,extra,extra\n0,0.1,true,low,1,x\n1,,false,high,2,y\n2,0.3,False,NA,3,z\n");
    let predicted = cli.succeed("predict a new.csv --label kind");
    let lines: Vec<&str> = predicted.stdout.lines().collect();
    assert!(lines.len() == 4 && lines[2].starts_with("1,,high,,") && lines[3].starts_with("2,"), "{}", predicted.stdout);
    assert!(predicted.stderr.contains("the value of \"a\" is missing"), "{}", predicted.stderr);
    assert!(predicted.stderr.contains("(1 row without a label left out)"), "{}", predicted.stderr);
    cli.write("text.csv", "a,b\nx,true\n");
    cli.alone("predict a text.csv").end(1, &["\"x\" is not a number"]);

    // Marks of missing values, reference levels by number, and columns of names.
    cli.write(
        "marks.csv",
        format!(
            "a,who,y\n{}",
            (0..60)
                .map(|row| {
                    let a = if row == 7 {
                        "unknown".to_owned()
                    } else if row == 9 {
                        "-999.0".to_owned()
                    } else {
                        format!("{:.3}", noise(row))
                    };
                    format!("{a},p{row},{}\n", row % 2)
                })
                .collect::<String>()
        ),
    );
    cli.alone("import marks.csv --drop who -o b.h5")
        .end(1, &["line 9: column 1 (a): \"unknown\" is not a number", "--na \"unknown\""]);
    cli.alone("import marks.csv --drop who --na unknown,-999 -o b.h5").end(1, &["\"unknown\" looks missing", "--missing drop"]);
    let text = cli.stdout("import marks.csv --drop who --na unknown,-999 --missing drop -o b.h5");
    assert!(text.contains("2 rows, where a value is missing"), "{text}");
    cli.alone("import marks.csv --na unknown,-999 --missing drop --categorical who -o b.h5 --force")
        .end(1, &["\"who\" has 58 different values in 58 training rows", "--drop who", "--group who"]);
    cli.write("codes.csv", (0..60).map(|row| format!("{:.3},{},{}\n", noise(row), row % 3, row % 2)).collect::<String>());
    for one in ["1.0", "1"] {
        let text = cli.stdout(&format!("import codes.csv --header no --categorical 2 --reference 2={one} -o c.h5 --force"));
        assert!(text.contains("x2: 0, 2, each compared with the reference level 1"), "{text}");
    }

    // Only the user knows whether classes have an order.
    let proposed = |data: &str| cli.stdout(&format!("init hmc --data {data}"));
    let text = proposed("a.h5");
    assert!(text.contains("# multinomial, because there are 3 classes without an order"), "{text}");
    cli.succeed("import numbered.csv --drop 1 --classes low,mid,high -o d.h5");
    assert!(proposed("d.h5").contains("# ordinal, because there are 3 classes with an order"));
    cli.succeed("import numbered.csv --drop 1 --weight b -o e.h5");
    cli.alone("init hmc --data e.h5").end(1, &["classes without an order", "--classes in their order"]);
    let text = cli.stdout("init --goal intervals --data b.h5");
    assert!(
        text.contains("# hmc, because intervals are wanted") && text.contains("# logistic, because there are two classes"),
        "{text}"
    );

    assert!(cli.stdout("init --data b.h5").contains("# hmc, because intervals are wanted"));
    cli.alone("import marks.csv --exposure a --drop who -o f.h5").end(1, &["an exposure is for counts: add --task counts"]);

    // A finished run does not take up what is computed at its end, and says so.
    cli.alone("run run.toml --set evaluate.pointwise=true --output a").end(1, &["evaluate.pointwise is false there, true here"]);
    cli.succeed("plot a posterior --parameter weights[mid,a] --output one.svg");
    cli.succeed("plot a posterior --parameter a --output two.svg");

    // Rows of numbers do not say which are texts or weights.
    cli.write(
        "run.toml",
        "[data]\nfile = \"c.h5\"\n[model]\nname = \"logistic\"\n[method]\nname = \"hmc\"\nburn_in = 60\ndraws = 30\n",
    );
    cli.succeed("run run.toml --output c");
    cli.write("new.svm", "1 1:0.5 2:1\n");
    cli.alone("predict c new.svm").end(1, &["give a table with the columns that were imported"]);
}

/// An offset is in the units of the target: y − base without an offset has the same coefficients.
#[test]
fn an_offset_of_a_linear_regression_has_the_units_of_the_target() {
    let cli = Cli::new();
    let noise = |row: usize| (row as f64 * 0.618_033_988_749_895 + 0.13).fract() - 0.5;
    let rows: Vec<[f64; 3]> = (0..200)
        .map(|row| {
            let (x, base) = (10.0 * noise(row), 80.0 * noise(row * 7 + 2));
            [x, base, base + 3.0 * x + 20.0 + 5.0 * noise(row * 31 + 5)]
        })
        .collect();
    let table =
        |of: &dyn Fn(&[f64; 3]) -> f64| rows.iter().map(|row| format!("{},{},{}\n", row[0], row[1], of(row))).collect::<String>();
    cli.write("a.csv", format!("x,base,y\n{}", table(&|row| row[2])));
    cli.write("b.csv", format!("x,base,y\n{}", table(&|row| row[2] - row[1])));
    cli.succeed("import a.csv --task regression --offset base -o a.h5");
    cli.succeed("import b.csv --task regression --drop base -o b.h5");
    let coefficient = |data: &str| {
        // Priors that say nothing, because targets are standardized differently.
        cli.write(
            "run.toml",
            format!(
                "[data]\nfile = \"{data}.h5\"\n[model]\nname = \"linear\"\nprior = {{ normal = 100.0 }}\nintercept_scale = 100.0\n\
                 [method]\nname = \"hmc\"\nburn_in = 300\ndraws = 500\n"
            ),
        );
        cli.succeed(&format!("run run.toml --output {data}"));
        let json: serde_json::Value = serde_json::from_str(&cli.stdout(&format!("summary {data} --json"))).unwrap();
        let rows = json["coefficients"]["rows"].as_array().unwrap().clone();
        let row = rows.iter().find(|row| row["name"] == "x").unwrap();
        assert!(row["r_hat"].as_f64().unwrap() < 1.02, "{row}");
        [row["mean"].as_f64().unwrap(), row["sd"].as_f64().unwrap()]
    };
    let ([with, sd], [without, _]) = (coefficient("a"), coefficient("b"));
    // Standard errors of the difference are about sd/25.
    assert!((with - without).abs() < 0.25 * sd && (with - 3.0).abs() < 5.0 * sd, "{with} {without} ± {sd}");
    cli.write("new.csv", "x,base\n1,100\n1,0\n");
    let predicted = cli.stdout("predict a new.csv");
    let mean = |line: usize| predicted.lines().nth(line).unwrap().split(',').nth(1).unwrap().parse::<f64>().unwrap();
    assert!((mean(1) - mean(2) - 100.0).abs() < 1e-6, "{predicted}");
}
