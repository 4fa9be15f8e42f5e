//! Topic models on the command line: import of text, runs, topics by their words, weights of documents, and messages for mistakes.

#![allow(clippy::unwrap_used, clippy::expect_used)]

use crate::harness::Cli;
use mpibayes::results::Grid;
use std::collections::BTreeSet;

/// The words of two topics, in alphabetical order.
const SEA: [&str; 8] = ["anchor", "boat", "canvas", "deck", "harbour", "keel", "mast", "rudder"];
const KITCHEN: [&str; 8] = ["basil", "butter", "flour", "garlic", "onion", "pepper", "salt", "sugar"];

const RUN: &str = "\
agents = 2
dtype = \"float32\"
[data]
file = \"c.h5\"
[model]
name = \"lda\"
topics = 2
[method]
name = \"adlda\"
rounds = 40
burn_in = 20
thin = 5
[evaluate]
every = 10
";

/// The method with φ fixed during a sweep.
const LDA: &str = "--set method.name=\"lda\"";
/// Settings of topic D-SGLD for short documents.
const DSGLD: &str = "--set method={name=\"dsgld\",chains=2,rounds=40,trajectory=5,batch=10,burn_in=100,thin=25,\
                     sweeps={burn_in=5,kept=5}}";

/// A folder with a corpus of 120 documents, 20 of them held out, each with the eight words of a topic and four more of them; rows; and a run file for each.
fn folder() -> Cli {
    let cli = Cli::new();
    let word = |i: usize, j: usize| [SEA, KITCHEN][i % 2][(i / 2 * (j / 8) + 3 * j) % 8];
    let line = |i| (0..12).map(|j| word(i, j)).collect::<Vec<_>>().join(" ") + "\n";
    cli.write("text.txt", (0..120).map(line).collect::<String>());
    cli.stdout("import text text.txt --least-documents 1 --most-share 1 --test-documents 20 -o c.h5");
    cli.write("run.toml", RUN);
    cli.write("a.csv", (0..40).map(|i| format!("{},{},{}\n", (i * 7) % 11, (i * 5) % 13, i % 2)).collect::<String>());
    cli.stdout("import a.csv --test-fraction 0.2 -o a.h5");
    let rows = "[data]\nfile = \"a.h5\"\n[model]\nname = \"logistic\"\n[method]\nname = \"svgd\"\nrounds = 1\nsteps = 1\n";
    cli.write("rows.toml", rows);
    cli
}

fn set(words: impl IntoIterator<Item = impl AsRef<str>>) -> BTreeSet<String> {
    words.into_iter().map(|word| word.as_ref().to_owned()).collect()
}

/// The top eight words of each topic of a run.
fn words(cli: &Cli, run: &str) -> Vec<BTreeSet<String>> {
    let found = cli.json(&format!("topics {run} --words 8 --json"));
    let of = |topic: &serde_json::Value| set(topic["words"].as_array().unwrap().iter().map(|word| word.as_str().unwrap()));
    found["topics"].as_array().unwrap().iter().map(of).collect()
}

fn are_both_found(topics: &[BTreeSet<String>]) -> bool {
    topics.len() == 2 && topics.contains(&set(SEA)) && topics.contains(&set(KITCHEN))
}

/// Runs of `async_lda` are not reproducible: none of 60 runs missed a topic, and 400 perplexities were between 8.12 and 8.14. The other
/// methods missed no topic with any of 60 seeds. One sweep found both topics with 3 of the seeds, but its perplexity was never below 13.
#[test]
fn every_method_finds_planted_topics_and_one_sweep_does_not() {
    let cli = folder();
    let checked = cli.stdout("check run.toml");
    for says in ["adlda", "lda, 32 parameters", "100 for training, 20 for testing", "16 in the vocabulary, 1,200 training tokens"]
    {
        assert!(checked.contains(says), "{says} in {checked}");
    }
    // 50 documents of an agent with 600 tokens, and three arrays of 32 counts, which are integers whatever is asked for.
    let memory = |how: &str| {
        let checked = cli.stdout(&format!("check run.toml {how}"));
        let line = |name: &str| checked.lines().find(|line| line.trim_start().starts_with(name)).unwrap().to_owned();
        (line("memory"), line("values"))
    };
    for (how, says) in [
        // 50 × 80 + 600 × 20 + 384.
        ("", "about 16.0 KiB per agent"),
        // 50 × 8 + 600 × 8 + 384.
        ("--set method.sweep_by=\"document\" --set dtype=\"float64\"", "about 5.5 KiB per agent"),
    ] {
        let (memory, numbers) = memory(how);
        assert!(memory.contains(says) && numbers.contains("4 bytes each"), "{says} in {memory}, {numbers}");
    }
    let methods = [("adlda", ""), ("lda", LDA), ("async_lda", "--set method.name=\"async_lda\""), ("dsgld", DSGLD)];
    for (run, how) in methods {
        cli.stdout(&format!("run run.toml {how} --output {run}"));
        let summary = cli.json(&format!("summary {run} --json"));
        let perplexity = summary["metrics"]["perplexity"].as_f64().unwrap();
        // Eight words have equal probability given the topic; the noise of steps raises the perplexity.
        assert!((7.9..9.0).contains(&perplexity), "{run}: {perplexity}");
        assert!(are_both_found(&words(&cli, run)), "{run}: {:?}", words(&cli, run));
        let shown = cli.stdout(&format!("topics {run} --words 3"));
        let lines: Vec<&str> = shown.lines().collect();
        assert!(lines.len() == 5 && lines[0].starts_with(&format!("{run}/result.h5: 2 topics of chain 0")), "{shown}");
        assert!(lines[1].trim_start().starts_with("topic") && lines[2].matches(',').count() == 2, "{shown}");
        assert!(lines[4].starts_with("mean NPMI ") && lines[4].contains("mean UMass "), "{shown}");
    }
    assert_eq!(cli.json("topics dsgld --chain 1 --json")["chain"], 1);
    let of_chain = |chain: &str| cli.stdout(&format!("predict dsgld c.h5 {chain}"));
    assert!(of_chain("") == of_chain("--chain 0") && of_chain("") != of_chain("--chain 1"));
    // A single word has no coherence.
    assert!(cli.stdout("topics adlda --words 1").ends_with("\nmean NPMI -, mean UMass -\n"));
    let one = "--set method.rounds=1 --set method.burn_in=0 --set method.thin=1";
    cli.stdout(&format!("run run.toml {one} --output one"));
    assert!(!are_both_found(&words(&cli, "one")));
    assert!(cli.json("summary one --json")["metrics"]["perplexity"].as_f64().unwrap() > 12.0);
}

#[test]
fn exported_arrays_are_distributions_and_new_documents_get_topics() {
    let cli = folder();
    cli.stdout("run run.toml --output run");
    cli.stdout("topics run --arrays arrays.h5");
    cli.refuse("topics run --arrays arrays.h5", &["arrays.h5", "--force"]);
    let file = Grid::read_file(&cli.path("arrays.h5")).unwrap();
    let array = |name: &str| file.array(name).unwrap();
    let shapes =
        ["topic_term_dists", "doc_topic_dists", "doc_lengths", "term_frequency"].map(|name| array(name).shape().to_vec());
    assert_eq!(shapes, [vec![2, 16], vec![100, 2], vec![100], vec![16]]);
    let rows_add_up = |name: &str, within: f64| {
        array(name).rows().into_iter().all(|row| (row.sum() - 1.0).abs() < within && row.iter().all(|&x| x >= 0.0))
    };
    assert!(rows_add_up("topic_term_dists", 1e-6) && rows_add_up("doc_topic_dists", 1e-9));
    assert!(array("doc_lengths").iter().all(|&length| length == 12.0) && array("term_frequency").sum() == 1200.0);
    let mut sorted = [SEA, KITCHEN].concat();
    sorted.sort_unstable();
    assert_eq!(file.list("vocab"), sorted);

    // Held-out documents are few and short, but clear: each is of one topic, as its number says.
    let weights = |arguments: &str| -> Vec<Vec<f64>> {
        let shown = cli.stdout(arguments);
        let mut lines = shown.lines();
        assert_eq!(lines.next(), Some("document,tokens,topic_0,topic_1"));
        let rows: Vec<Vec<f64>> = lines.map(|line| line.split(',').map(|cell| cell.parse().unwrap()).collect()).collect();
        assert!(rows.iter().all(|row| (row[2] + row[3] - 1.0).abs() < 1e-9), "{shown}");
        rows
    };
    let sea = 2 + usize::from(!words_of_topic_0(&cli, "run").contains("anchor"));
    let rows = weights("predict run c.h5");
    assert!(rows.len() == 20 && rows.iter().all(|row| row[1] == 12.0 && (row[sea] > 0.9) == (row[0] % 2.0 == 0.0)), "{rows:?}");
    assert_eq!(weights("predict run c.h5 --split train").len(), 100);

    // Other words have other numbers there, and those that the run does not know are left out.
    cli.write("new.txt", "zeppelin sugar salt onion sugar aardvark\nmast deck anchor keel\nzeppelin aardvark\n");
    cli.stdout("import text new.txt --least-documents 1 --most-share 1 -o new.h5");
    let mut rows = weights("predict run new.h5");
    rows.sort_by(|a, b| a[0].total_cmp(&b[0]));
    assert_eq!(rows.iter().map(|row| row[1]).collect::<Vec<_>>(), [4.0, 4.0, 0.0]);
    assert!(rows[0][sea] < 0.2 && rows[1][sea] > 0.8 && (rows[2][sea] - 0.5).abs() < 0.2, "{rows:?}");
    cli.write("foreign.txt", "zeppelin aardvark\n");
    cli.stdout("import text foreign.txt --least-documents 1 --most-share 1 -o foreign.h5");
    for arguments in ["predict run foreign.h5", "topics run --data foreign.h5"] {
        cli.refuse(arguments, &["foreign.h5: it has no word in common with the topics"]);
    }

    let plots = cli.stdout("plot run");
    assert_eq!(plots.lines().collect::<Vec<_>>(), ["run/plots/history.svg", "run/plots/history.png"]);
}

#[test]
fn the_page_has_the_topics_with_their_words_and_documents() {
    let cli = folder();
    cli.stdout("run run.toml --output run");
    cli.succeed("topics run --html topics.html");
    cli.refuse("topics run --html topics.html", &["topics.html", "--force"]);
    cli.succeed("topics run --html topics.html --force");
    let html = cli.read("topics.html");
    assert_eq!((html.matches("<title>Topics of run</title>").count(), html.matches("{{").count()), (1, 0));
    let (_, data) = html.split_once("<script id=\"data\" type=\"application/json\">").unwrap();
    let page: serde_json::Value = serde_json::from_str(data.split_once("</script>").unwrap().0).unwrap();
    let list = |value: &serde_json::Value| value.as_array().unwrap().clone();
    let (topics, words) = (list(&page["topics"]), list(&page["words"]));
    assert_eq!((topics.len(), words.len(), page["tokens"].as_f64().unwrap().round()), (2, 16, 1200.0));
    let number = |value: &serde_json::Value| value.as_f64().unwrap();
    // Shares of words are those of the model: they sum to 1, and so do the parts of a word.
    assert!((words.iter().map(|word| number(&word["share"])).sum::<f64>() - 1.0).abs() < 1e-5);
    for word in &words {
        assert!((list(&word["topics"]).iter().map(|topic| number(&topic[1])).sum::<f64>() - 1.0).abs() < 1e-5, "{word}");
    }
    // Two topics are on one line, around the middle.
    assert!(
        (number(&topics[0]["place"][0]) + number(&topics[1]["place"][0])).abs() < 1e-5
            && number(&topics[0]["place"][0]).abs() > 0.5
    );
    for topic in &topics {
        let documents = list(&topic["documents"]);
        assert_eq!(documents.len(), 5);
        let of_sea = SEA.contains(&topic["words"][0].as_str().unwrap());
        for document in &documents {
            // Documents with even numbers are of the sea.
            assert!(
                (document["document"].as_u64().unwrap() % 2 == 0) == of_sea && number(&document["weight"]) > 0.9,
                "{document}"
            );
            let names = set(list(&document["words"]).iter().map(|word| word.as_str().unwrap()));
            assert!(names.is_subset(&set(if of_sea { SEA } else { KITCHEN })) && document["tokens"] == 12, "{document}");
        }
        let weights: Vec<f64> = documents.iter().map(|document| number(&document["weight"])).collect();
        assert!(weights.is_sorted_by(|a, b| a >= b), "{weights:?}");
    }
}

#[test]
fn topics_of_other_seeds_are_matched() {
    let cli = folder();
    cli.stdout("run run.toml --output run");
    cli.stdout("run run.toml --set seed=2 --output again");
    cli.stdout("run run.toml --set model.topics=1 --output one");
    let found = cli.json("topics run --stability again one --json");
    assert_eq!(found["runs"], serde_json::json!(["again", "one"]));
    let topics = found["topics"].as_array().unwrap();
    // Both seeds find both topics; one topic for everything is half of each.
    assert!(topics.iter().all(|topic| topic["matches"][0]["similarity"].as_f64().unwrap() > 0.95), "{found}");
    let matched: Vec<f64> = topics.iter().filter_map(|topic| topic["matches"][1]["similarity"].as_f64()).collect();
    assert!(matches!(matched[..], [half] if (half - 0.5_f64.sqrt()).abs() < 0.05), "{matched:?}");
    let shown = cli.stdout("topics run --stability again");
    assert!(
        shown.starts_with("  topic ")
            && shown.contains("again  top words\n")
            && shown.contains("\nsimilarity of matched topics: mean 1.00;"),
        "{shown}"
    );
    cli.refuse("topics run --stability rows.toml", &["rows.toml"]);
}

#[test]
fn a_word_cannot_end_the_script_of_the_page() {
    let cli = folder();
    rename(&cli, "c.h5", &[("anchor", "</scri")]);
    cli.stdout("run run.toml --output run");
    cli.succeed("topics run --html topics.html");
    let html = cli.read("topics.html");
    assert!(!html.contains("</scri\"") && html.contains("\\u003c/scri"), "{html}");
}

/// Replaces words in the file of a corpus by others of the same length, as in files with repeated words.
fn rename(cli: &Cli, corpus: &str, names: &[(&str, &str)]) {
    let path = cli.path(corpus);
    let mut bytes = std::fs::read(&path).unwrap();
    for (name, other) in names {
        let places: Vec<usize> = (0..bytes.len()).filter(|&at| bytes[at..].starts_with(name.as_bytes())).collect();
        assert!(places.len() == 1 && name.len() == other.len(), "{name} in {places:?}");
        bytes[places[0]..places[0] + name.len()].copy_from_slice(other.as_bytes());
    }
    std::fs::write(path, bytes).unwrap();
}

#[test]
fn repeated_words_of_a_vocabulary_are_different_words() {
    let cli = folder();
    cli.stdout("run run.toml --output distinct");
    let distinct = cli.stdout("predict distinct c.h5");
    let arrays = |run: &str| {
        cli.stdout(&format!("topics {run} --arrays {run}.arrays"));
        Grid::read_file(&cli.path(format!("{run}.arrays"))).unwrap().array("term_frequency").unwrap()
    };
    let frequency = arrays("distinct");
    // Words of both topics, which are told apart by their numbers alone.
    std::fs::copy(cli.path("c.h5"), cli.path("other.h5")).unwrap();
    let shared = [("butter", "anchor"), ("rudder", "anchor")];
    rename(&cli, "c.h5", &shared);
    cli.stdout("run run.toml --output shared");
    assert_eq!(cli.stdout("predict shared c.h5"), distinct);
    assert_eq!(arrays("shared"), frequency);
    // In a corpus of other words a name stands for the first that has it, however often it comes.
    rename(&cli, "other.h5", &shared);
    rename(&cli, "other.h5", &[("sugar", "wheat")]);
    let tokens = |corpus: &str| -> f64 {
        let rows = cli.stdout(&format!("predict shared {corpus} --split train"));
        rows.lines().skip(1).map(|line| line.split(',').nth(1).unwrap().parse::<f64>().unwrap()).sum()
    };
    assert_eq!((tokens("c.h5"), tokens("other.h5")), (1200.0, 1200.0 - frequency[15]), "sugar is the last word");
}

/// The words of the topic with the number 0, whatever its rank by weight.
fn words_of_topic_0(cli: &Cli, run: &str) -> BTreeSet<String> {
    let found = cli.json(&format!("topics {run} --words 8 --json"));
    let first = found["topics"].as_array().unwrap().iter().find(|topic| topic["topic"] == 0).unwrap().clone();
    set(first["words"].as_array().unwrap().iter().map(|word| word.as_str().unwrap()))
}

#[test]
fn two_ranks_and_resumed_runs_give_the_same_draws() {
    let cli = folder();
    // Long enough for a signal.
    let long = "--set method.rounds=3000 --set method.burn_in=2980 --set evaluate.every=500";
    let optimized = format!("{long} --set method.optimize=\"both\"");
    let lda = format!("{LDA} {long} --set method.optimize=\"asymmetric\" --set model.seed_words=[\"sugar\"]");
    for (how, is_stopped) in [(long, true), (&optimized, true), (&lda, true), (DSGLD, false)] {
        let run = |output: &str| format!("run run.toml {how} --output {output}");
        cli.stdout(&run("whole"));
        if is_stopped {
            cli.stop("parts", || cli.alone(&run("parts")));
            has_no_topics(&cli, "parts");
        }
        cli.mpirun(2, &run("parts")).succeed(&[]);
        assert_eq!(cli.posterior("parts"), cli.posterior("whole"));
        let perplexity = |run: &str| cli.stdout(&format!("summary {run} --get perplexity"));
        assert_eq!(perplexity("parts"), perplexity("whole"));
        for run in ["whole", "parts"] {
            std::fs::remove_dir_all(cli.path(run)).unwrap();
        }
    }
}

/// Ranks take turns with blocks of documents: as many blocks as ranks, fewer, and more.
#[test]
fn all_ranks_predict_documents_with_the_bits_of_one() {
    let cli = folder();
    cli.stdout("run run.toml --output run");
    let line = |i: usize| format!("{} {}\n", SEA[i % 8], KITCHEN[i / 8 % 8]);
    cli.write("many.txt", (0..9000).map(line).collect::<String>());
    cli.stdout("import text many.txt --least-documents 1 --most-share 1 -o many.h5");
    for (corpus, ranks) in [("c.h5", 2), ("c.h5", 3), ("many.h5", 2)] {
        let alone = cli.stdout(&format!("predict run {corpus} --split train"));
        assert_eq!(cli.mpirun(ranks, &format!("predict run {corpus} --split train")).succeed(&[]).stdout, alone);
    }
    let into_file = "predict run c.h5 -o weights.csv";
    cli.mpirun(2, into_file).succeed(&["20 documents predicted in weights.csv"]);
    assert_eq!(cli.read("weights.csv"), cli.stdout("predict run c.h5"));
    for (arguments, says) in [
        (into_file, "weights.csv: this file exists"),
        ("predict nowhere c.h5", "nowhere: there is no such folder or file"),
        ("predict run nothing.h5", "nothing.h5"),
        ("predict run c.h5 --label first", "--label has no meaning"),
    ] {
        let ended = cli.mpirun(2, arguments).run();
        assert!(ended.code != 0 && ended.stderr.matches(says).count() == 1, "{}", ended.stderr);
    }
    // Rows are predicted by rank 0 alone.
    cli.stdout("run rows.toml --output rows");
    assert_eq!(cli.mpirun(2, "predict rows a.h5").succeed(&[]).stdout, cli.stdout("predict rows a.h5"));
}

#[test]
fn zeros_of_large_sparse_counts_do_not_travel() {
    let cli = folder();
    cli.stdout("data make topics --documents 400 --words 30000 --topics 4 --tokens 50 --test-documents 1 -o sparse.h5");
    let run = "run run.toml --set data.file=\"sparse.h5\" --set model.topics=50 --set method.rounds=4 --set method.burn_in=3 --set method.thin=1 --set evaluate.every=0";
    let runs = [("auto", ""), ("all", " --set cluster.collectives={integer_sums=\"allreduce\"}")];
    let bytes = runs.map(|(output, how)| {
        cli.mpirun(2, &format!("{run} {LDA}{how} --output {output}")).succeed(&[]);
        let traffic = cli.results(output).table("traffic").unwrap();
        ["parts_of_sums_bytes", "sums_by_all-reduce_bytes"].map(|column| traffic.column(column).map_or(0.0, |column| column[0]))
    });
    assert_eq!(cli.posterior("auto"), cli.posterior("all"));
    let array = 4.0 * 30_000.0 * 50.0;
    let [[slices, reduced], [no_slices, all_reduced]] = bytes;
    assert!(slices > 0.0 && slices < array / 8.0 && reduced <= 2.0 * array, "{bytes:?}");
    assert!(no_slices == 0.0 && all_reduced > 4.0 * array, "{bytes:?}");
}

/// Documents have one topic each: the most likely alpha is far below 5, with which weights of documents would be nearly equal.
#[test]
fn optimized_alpha_fits_the_documents_and_changes_their_weights() {
    let cli = folder();
    let alpha = |run: &str| {
        let history = cli.results(run).table("history").unwrap();
        history.column("alpha").map(<[f64]>::to_vec)
    };
    // The largest weight of a document without tokens but one, which tells little but alpha.
    cli.write("new.txt", "mast\nsugar\n");
    cli.stdout("import text new.txt --least-documents 1 --most-share 1 -o new.h5");
    let certain = |run: &str| {
        let shown = cli.stdout(&format!("predict {run} new.h5"));
        shown.lines().nth(1).unwrap().split(',').skip(2).map(|cell| cell.parse().unwrap()).fold(0.0, f64::max)
    };
    cli.stdout("run run.toml --set model.alpha=5 --output fixed");
    cli.stdout("run run.toml --set model.alpha=5 --set method.optimize=\"both\" --set method.optimize_after=5 --output free");
    let free = alpha("free").unwrap();
    assert!(free.len() == 40 && free[4] == 5.0 && free[39] < 0.3, "{free:?}");
    assert!(alpha("fixed").is_none());
    assert!(certain("free") > 0.75 && certain("fixed") < 0.65, "{} {}", certain("free"), certain("fixed"));
    let perplexity = |run: &str| cli.json(&format!("summary {run} --json"))["metrics"]["perplexity"].as_f64().unwrap();
    assert!(perplexity("free") < 0.9 * perplexity("fixed"), "{} {}", perplexity("free"), perplexity("fixed"));
    assert!(cli.stdout("plot free history --metric alpha,beta").contains("free/plots/history.svg"));
}

/// Most words are of the kitchen: the α of its topic is larger.
#[test]
fn alphas_of_topics_are_kept_with_the_draws_and_used_for_new_documents() {
    let cli = folder();
    let word =
        |i: usize, j: usize| if j < [0, 0, 1, 3, 2, 12][i % 6] { SEA[(i / 6 + 3 * j) % 8] } else { KITCHEN[(i / 6 + 5 * j) % 8] };
    let line = |i: usize| (0..12).map(|j| word(i, j)).collect::<Vec<_>>().join(" ") + "\n";
    cli.write("text.txt", (0..120).map(line).collect::<String>());
    cli.stdout("import text text.txt --least-documents 1 --most-share 1 --test-documents 20 -o c.h5 --force");
    let asymmetric = "--set method.optimize=\"asymmetric\" --set method.optimize_after=5";
    cli.stdout(&format!("run run.toml {LDA} {asymmetric} --output run"));
    let file = cli.results("run");
    let (_, draws, parts) = file.shape("posterior").unwrap();
    assert_eq!(parts.iter().map(|part| (&part.name[..], part.size())).collect::<Vec<_>>(), [("phi", 32), ("alpha", 2)]);
    let sea = usize::from(!words_of_topic_0(&cli, "run").contains("mast"));
    let places: Vec<(usize, usize)> = (0..draws).map(|draw| (0, draw)).collect();
    let all = file.draws::<f64>("posterior", &places).unwrap();
    let alpha = |topic: usize| all.column(32 + topic).mean().unwrap();
    assert!(alpha(sea) > 0.0 && alpha(1 - sea) > 1.3 * alpha(sea), "{} {}", alpha(sea), alpha(1 - sea));
    // Of a document with one word of each topic, about (1 + α_k)/(2 + Σ α) is of a topic.
    cli.write("new.txt", "mast sugar\n".repeat(200));
    cli.stdout("import text new.txt --least-documents 1 --most-share 1 -o new.h5");
    let shown = cli.stdout("predict run new.h5");
    let weights: Vec<f64> = shown.lines().skip(1).map(|line| line.split(',').nth(2 + sea).unwrap().parse().unwrap()).collect();
    let mean = weights.iter().sum::<f64>() / weights.len() as f64;
    assert!(weights.len() == 200 && mean < 0.48, "{mean}");
    assert!(cli.stdout("summary run").contains("alpha"));
    cli.refuse(&format!("run run.toml {asymmetric} --output no"), &["'method.optimize'", "for the method lda only"]);
}

#[test]
fn seed_words_choose_the_topics_that_they_are_for() {
    let cli = folder();
    let write =
        |seeds: &str| cli.write("seeded.toml", RUN.replace("topics = 2\n", &format!("topics = 2\nseed_words = {seeds}\n")));
    for (seeds, first, output) in [(r#"["Sugar onion", ""]"#, KITCHEN, "kitchen"), (r#"["mast", "butter blorb"]"#, SEA, "sea")] {
        write(seeds);
        cli.stdout(&format!("run seeded.toml {LDA} --output {output}"));
        assert_eq!(words_of_topic_0(&cli, output), set(first));
    }
    let checked = cli.stdout(&format!("check seeded.toml {LDA}"));
    assert!(checked.contains("seed words that are not in the vocabulary are left out: blorb"), "{checked}");
    for (seeds, change, says) in [
        (r#"["", "blorb"]"#, LDA, ["'model.seed_words'", "of topic 1 are not in the vocabulary: blorb"]),
        (r#"["", "", "mast"]"#, LDA, ["'model.seed_words'", "are for 3 topics, and there are only 2"]),
        (r#"["mast"]"#, "", ["'model.seed_words'", "with the method lda only, not with adlda"]),
    ] {
        write(seeds);
        cli.refuse(&format!("run seeded.toml {change} --output no"), &says);
        let said = cli.run(&format!("check seeded.toml {change}")).stderr;
        assert!(says.iter().all(|says| said.contains(says)), "{said:?} must say {says:?}");
    }
    write(r#"["mast"]"#);
    cli.refuse(&format!("run seeded.toml {LDA} --set model.seed_tokens=0 --output no"), &["'model.seed_tokens'", "from 1 to"]);
    cli.refuse(&format!("run run.toml {LDA} --set model.seed_tokens=9 --output no"), &["'model.seed_tokens'", "for seed_words"]);
}

/// Documents with even numbers are of the sea and of 2023, the others of 2024.
#[test]
fn shares_of_topics_are_reported_by_a_column_of_a_table() {
    let cli = folder();
    cli.stdout("run run.toml --output run");
    let row = |i: usize| format!("{i},{}\n", ["2023-05-01", "2024-07-09"][i % 2]);
    cli.write("by.csv", format!("id,date\n{}", (0..120).map(row).collect::<String>()));
    let found = cli.json("topics run --by by.csv --column date --json");
    assert_eq!(found["groups"]["names"].as_array().unwrap().len(), 15);
    assert_eq!((&found["groups"]["names"][0], &found["groups"]["names"][14]), (&"2023-05".into(), &"2024-07".into()));
    let documents = |group: usize| found["groups"]["documents"][group].as_u64().unwrap();
    assert_eq!((documents(0) + documents(14), documents(1)), (100, 0));
    for topic in found["topics"].as_array().unwrap() {
        let of_sea = SEA.contains(&topic["words"][0].as_str().unwrap());
        let share = |group: usize| topic["share_of_groups"][group].as_f64().unwrap();
        let (own, other) = if of_sea { (share(0), share(14)) } else { (share(14), share(0)) };
        assert!(topic["share_of_groups"][1].is_null(), "{topic}");
        assert!(own > 0.97 && other < 0.03, "{topic}");
    }
    let shown = cli.stdout("topics run --by by.csv --column date");
    assert!(shown.contains("15 groups by date, from 2023-05 to 2024-07: 0 to "), "{shown}");
    let header = shown.lines().nth(2).unwrap();
    assert!(header.contains(" date  largest  top words") && shown.contains('█'), "{shown}");
    // Few groups have a column each.
    let source = |i: usize| format!("{}\n", ["sea", "kitchen"][i % 2]);
    cli.write("source.csv", format!("source\n{}", (0..120).map(source).collect::<String>()));
    let shown = cli.stdout("topics run --by source.csv");
    assert!(shown.contains("2 groups by source, kitchen, sea: "), "{shown}");
    assert!(shown.lines().nth(2).unwrap().contains("kitchen      sea  top words"), "{shown}");
    cli.succeed("topics run --by by.csv --column date --html topics.html");
    assert!(cli.read("topics.html").contains("\"column\":\"date\""));
    // A row too few for the documents, and no such column.
    cli.write("short.csv", "date\n2023\n");
    cli.refuse("topics run --by short.csv", &["short.csv", "has 1 row,", "needs a row for each imported document"]);
    cli.refuse("topics run --by by.csv", &["by.csv", "choose one of its columns with --column: id, date"]);
    cli.refuse("topics run --by none.csv", &["none.csv"]);
}

/// Asserts that commands on topics refuse a stopped run.
fn has_no_topics(cli: &Cli, run: &str) {
    for arguments in [format!("topics {run}"), format!("predict {run} c.h5")] {
        let output = cli.run(&arguments);
        let error = output.stderr;
        assert!(output.code == 1 && error.lines().count() == 1, "{error}");
        assert!(error.contains("not finished"), "{error}");
    }
}

#[test]
fn mistakes_are_reported_in_one_line() {
    let cli = folder();
    cli.stdout("run rows.toml --output rows");
    cli.stdout("run run.toml --output run");
    for (change, says) in [
        (
            "run.toml --set method.name=\"svgd\"",
            ["'method.name' = \"svgd\" is not a method for a corpus", "adlda, async_lda, dsgld"],
        ),
        ("rows.toml --set method.name=\"adlda\"", ["'method.name' = \"adlda\" is not a method for a table", "svgd, dsvgd"]),
        ("rows.toml --set data.file=\"c.h5\"", ["c.h5, which holds a corpus", "the model logistic is for a table"]),
        ("run.toml --set data.file=\"a.h5\"", ["a.h5, which holds a table", "the model lda is for a corpus"]),
        ("run.toml --set evaluate.ksd=true", ["'evaluate.ksd' is not a key of runs on a corpus", "Remove it"]),
        ("run.toml --set evaluate.particle_paths=true", ["'evaluate.particle_paths'", "not a key of runs on a corpus"]),
        ("run.toml --set temperature=2", ["'temperature' is not a key of runs on a corpus", "Remove it"]),
        ("run.toml --set data.partition=\"by_label\"", ["'data.partition' = \"by_label\"", "{ sizes = [0.7, 0.3] }"]),
        ("run.toml --set agents=101", ["100", "agents"]),
        ("run.toml --set model.topics=0", ["'model.topics'", "from 1 to"]),
        ("run.toml --set model.alpha=0", ["'model.alpha'", "must be from 1e-12 to 1e12, not 0"]),
        ("run.toml --set model.beta=1e-18", ["'model.beta'", "must be from 1e-12 to 1e12, not 1e-18"]),
        ("run.toml --set method={name=\"dsgld\",evaluation_window=7}", ["'method.evaluation_window'", "is not a key"]),
        ("run.toml --set method={name=\"dsgld\",chains=4097}", ["'method.chains'", "at most 4096"]),
        (&format!("run.toml {LDA} --set method.phi=\"exact\""), ["'method.phi'", "auto, drawn, collapsed"]),
        (&format!("run.toml {LDA} --set method.burn_in=40"), ["'method.burn_in'", "leaves no draws"]),
        ("run.toml --set method.burn_in=40", ["'method.burn_in'", "leaves no draws"]),
        ("run.toml --set method.optimize=\"beta\"", ["'method.optimize'", "none, alpha, both"]),
        ("run.toml --set method.optimize_every=0", ["'method.optimize_every'", "at least 1"]),
        (
            "run.toml --set method.optimize=\"alpha\" --set method.optimize_after=40",
            ["'method.optimize_after'", "leaves no estimate"],
        ),
        (
            &format!("run.toml {DSGLD} --set method.optimize=\"alpha\""),
            ["'method.optimize'", "Other methods have it, such as lda"],
        ),
        ("run.toml --set method.name=\"adlad\"", ["Did you mean \"adlda\"?", "async_lda"]),
    ] {
        cli.refuse(&format!("run {change} --output wrong"), &says);
        // `mpibayes check` reports it once.
        let checked = cli.run(&format!("check {change}"));
        let said = checked.stderr;
        assert!(checked.code == 1 && said.lines().count() == 2, "{said}");
        assert!(says.iter().all(|says| said.contains(says)), "{said:?} must say {says:?}");
    }
    // An unknown model is not reported as a mistake of the method.
    let said = cli.run("check run.toml --set model.name=\"ldaa\"").stderr;
    assert!(said.lines().count() == 2 && said.contains("Did you mean \"lda\"?"), "{said}");
    assert!(!cli.exists("wrong"));
    for (arguments, says) in [
        ("topics rows", ["rows/result.h5: the run uses the model logistic", "lda"]),
        ("topics run --chain 3", ["there is no chain 3", "Chains with draws: 0"]),
        ("topics run --data a.h5", ["a.h5", "--data"]),
        ("topics run --data none.h5", ["none.h5", "--data"]),
        ("predict run a.csv", ["a.csv: the run is a topic model", "mpibayes import"]),
        ("predict run c.h5 --label first", ["this is a corpus", "--label has no meaning"]),
        ("predict run a.h5", ["a.h5: this dataset has rows", "documents"]),
        ("predict rows c.h5", ["c.h5", "documents"]),
        ("predict run c.h5 --chain 3", ["there is no chain 3", "Chains with draws: 0"]),
        ("predict rows a.h5 --chain 0", ["--chain is for topic models", "all chains"]),
    ] {
        cli.refuse(arguments, &says);
    }
}
