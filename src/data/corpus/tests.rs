//! Imports of small corpora: what went in comes out in another order, and bad input has its message and leaves nothing behind.

#![allow(clippy::unwrap_used, clippy::expect_used)]

use super::super::tests::Place;
use super::read::DOCUMENTS_PER_READ;
use super::*;
use crate::data::Split;
use crate::lda::Bag;
use crate::lda::HeldOut;
use crate::random::Seed;
use std::collections::BTreeMap;
use std::path::Path;

fn import(place: &Place, documents: &str, vocabulary: Option<&str>, format: BagFormat) -> CorpusImport {
    let documents = place.file("x", documents);
    import_of(Input::Counted { documents, format, vocabulary: vocabulary.map(|words| place.file("v", words)) })
}

fn import_of(input: Input) -> CorpusImport {
    CorpusImport { input, held_out: TestSize::Number(0), scored_share: 0.1, seed: Seed(1) }
}

/// Asserts that an import failed with a message that says all of this, and left nothing.
fn refused(place: &Place, import: &CorpusImport, says: &[&str]) {
    place.refused(import_corpus(import, &place.output()).map(drop), says);
}

const DOCWORD: &str = "4\n3\n6\n1 1 2\n1 3 1\n2 2 5\n4 3 1\n4 1 1\n4 2 7\n";
const LDA_C: &str = "2 0:2 2:1\n1 1:5\n0\n3 2:1 0:1 1:7\n";
const MATRIX: &str =
    "%%MatrixMarket matrix coordinate integer general\n% a comment\n4 3 6\n1 1 2\n1 3 1\n2 2 5\n4 3 1\n4 1 1\n4 2 7\n";
const WORDS: &str = "apple\npear\nplum\n";

/// The documents of a split by where they stood in the input.
fn by_number(corpus: &Corpus, split: Split) -> BTreeMap<u64, (Vec<u32>, Vec<u32>)> {
    let all = 0..corpus.documents(split);
    let documents = corpus.train(all.clone()).unwrap();
    let bag = |bag: Bag| (bag.words.to_vec(), bag.counts.to_vec());
    corpus.numbers(split, all).unwrap().into_iter().zip(documents.iter().map(bag)).collect()
}

#[test]
fn three_formats_give_the_same_corpus() {
    let mut digests = Vec::new();
    // As gensim writes them (blanks behind the sizes), and as SciPy does.
    let real = MATRIX.replace("integer", "real").replace("4 3 6\n", "4 3 6          \n").replace("2 2 5", "2 2 5.0");
    let long = real.replace("5.0", "5.0000000000000000e+00").replace("1 3 1", "1 3 1e0").replace("4 2 7", "4 2 +7.");
    for (format, text) in [
        (BagFormat::Docword, DOCWORD),
        (BagFormat::LdaC, LDA_C),
        (BagFormat::MatrixMarket, MATRIX),
        (BagFormat::MatrixMarket, &real),
        (BagFormat::MatrixMarket, &long),
    ] {
        for text in [text.to_owned(), text.replace('\n', "\r\n"), format!("{text}\n"), format!("\u{feff}{text}")] {
            let place = Place::new();
            let import = self::import(&place, &text, Some(WORDS), format);
            assert_eq!(BagFormat::detect(&place.file("x", &text)).unwrap(), Some(format));
            let found = import_corpus(&import, &place.output()).unwrap();
            // Behind the last document of lda-c a blank line is nothing, and a document without words is left out.
            assert_eq!(found, CorpusReport { empty: 1, scored_tokens: 0, text: None }, "{format:?} {text:?}");
            let corpus = Corpus::open(&place.output()).unwrap();
            assert!(Corpus::is_corpus(&place.output()));
            assert_eq!((corpus.words(), corpus.documents(Split::Train), corpus.documents(Split::Test)), (3, 3, 0));
            assert_eq!(corpus.tokens(Split::Train), 2 + 1 + 5 + 1 + 1 + 7);
            assert_eq!(corpus.vocabulary().unwrap().unwrap(), ["apple", "pear", "plum"]);
            let documents = by_number(&corpus, Split::Train);
            let expected = [(0, (vec![0, 2], vec![2, 1])), (1, (vec![1], vec![5])), (3, (vec![0, 1, 2], vec![1, 7, 1]))];
            assert_eq!(documents, BTreeMap::from(expected));
            digests.push(corpus.digest().to_owned());
        }
    }
    assert!(digests.iter().all(|digest| *digest == digests[0]));
    // The control: other words, another corpus.
    let place = Place::new();
    import_corpus(&import(&place, DOCWORD, Some("apple\npear\nplums\n"), BagFormat::Docword), &place.output()).unwrap();
    assert_ne!(Corpus::open(&place.output()).unwrap().digest(), digests[0]);
    // Without a vocabulary words have numbers alone.
    import_corpus(&import(&place, LDA_C, None, BagFormat::LdaC), &place.output()).unwrap();
    let corpus = Corpus::open(&place.output()).unwrap();
    assert_eq!((corpus.words(), corpus.vocabulary().unwrap()), (3, None));
}

#[test]
fn formats_are_told_from_rows_of_other_data() {
    let place = Place::new();
    for rows in
        ["1,2\n", "1 3:0.5 7:1\n", "5\n6\n7\n8\n", "2 0:2\n", "+1 1:1 2:1\n", "the cat sat\n", "1 2 3\n4 5 6\n7 8 9\n1 1 1\n"]
    {
        assert_eq!(BagFormat::detect(&place.file("rows", rows)).unwrap(), None, "{rows:?}");
    }
    // Longer than what is looked at, and cut off within a line there.
    let long: String = (0..20_000).map(|row| format!("2 {}:1 {}:2\n", row % 100, row % 100 + 100)).collect();
    assert_eq!(BagFormat::detect(&place.file("long", &long)).unwrap(), Some(BagFormat::LdaC));
}

/// Many documents with one word each, whose counts are all different.
fn numbered(documents: u32) -> String {
    let lines: String = (1..=documents).map(|document| format!("{document} {} {document}\n", document % 7 + 1)).collect();
    format!("{documents}\n7\n{documents}\n{lines}")
}

#[test]
fn documents_come_in_random_order_and_each_once() {
    let place = Place::new();
    let mut import = self::import(&place, &numbered(5000), None, BagFormat::Docword);
    import.held_out = TestSize::Share(0.2);
    import_corpus(&import, &place.output()).unwrap();
    let corpus = Corpus::open(&place.output()).unwrap();
    let numbers = |split| corpus.numbers(split, 0..corpus.documents(split)).unwrap();
    let (train, test) = (numbers(Split::Train), numbers(Split::Test));
    assert_eq!((train.len(), test.len()), (4000, 1000));
    let mut all = [train.clone(), test].concat();
    // Of n documents in random order the mean of |place − number|/n is 1/3, with a standard deviation of 0.3 √(1/n) at most.
    let displaced: f64 =
        (0_u32..).zip(&all).map(|(place, &number)| (f64::from(place) - number as f64).abs()).sum::<f64>() / 5000.0_f64.powi(2);
    assert!((displaced - 1.0 / 3.0).abs() < 4.5 * 0.3 / 5000.0_f64.sqrt(), "{displaced}");
    all.sort_unstable();
    assert!(all.into_iter().eq(0..5000));
    // Stretches are read as they are, and a document's count tells its number.
    let stretch = corpus.train(1000..1010).unwrap();
    assert!(stretch.iter().zip(&train[1000..1010]).all(|(bag, &number)| u64::from(bag.counts[0]) == number + 1));
    // Another seed, another order; the same seed, the same file.
    let digest = corpus.digest().to_owned();
    import_corpus(&import, &place.output()).unwrap();
    assert_eq!(Corpus::open(&place.output()).unwrap().digest(), digest);
    import_corpus(&CorpusImport { seed: Seed(2), ..import }, &place.output()).unwrap();
    assert_ne!(Corpus::open(&place.output()).unwrap().digest(), digest);
}

/// More of them than are read at once.
#[test]
fn long_stretches_of_documents_are_read_as_they_are() {
    let place = Place::new();
    import_corpus(&import(&place, &numbered(140_000), None, BagFormat::Docword), &place.output()).unwrap();
    let corpus = Corpus::open(&place.output()).unwrap();
    assert_eq!(corpus.entries(Split::Train), 140_000);
    let numbers = corpus.numbers(Split::Train, 0..140_000).unwrap();
    for stretch in
        [0..140_000, 5..DOCUMENTS_PER_READ + 5, 1..DOCUMENTS_PER_READ + 2, DOCUMENTS_PER_READ..2 * DOCUMENTS_PER_READ, 7..7]
    {
        let read = corpus.train(stretch.clone()).unwrap();
        assert!(read.iter().map(|bag| u64::from(bag.counts[0]) - 1).eq(numbers[stretch].iter().copied()));
    }
    assert!(corpus.train(0..140_001).is_err());
}

#[test]
fn a_share_of_the_tokens_of_held_out_documents_is_scored() {
    let place = Place::new();
    // 400 documents of 40 tokens in 4 words, and one of a single token.
    let lines: String =
        (1..=400).map(|document| format!("{document} 1 4\n{document} 2 16\n{document} 3 12\n{document} 4 8\n")).collect();
    let mut import = self::import(&place, &format!("401\n4\n1601\n{lines}401 1 1\n"), None, BagFormat::Docword);
    import.held_out = TestSize::Number(400);
    let found = import_corpus(&import, &place.output()).unwrap();
    let corpus = Corpus::open(&place.output()).unwrap();
    let HeldOut { observed, scored } = corpus.held_out(0..400).unwrap();
    assert_eq!(found.scored_tokens, scored.tokens());
    let mut of_words = [0; 4];
    for (seen, bag) in observed.iter().zip(scored.iter()) {
        assert!(bag.tokens() == 4 && seen.tokens() == 36 || seen.tokens() == 1 && bag.tokens() == 0, "{seen:?} {bag:?}");
        bag.words.iter().zip(bag.counts).for_each(|(&word, &count)| of_words[word as usize] += count);
    }
    // Every token of a document is as likely: by words 4 : 16 : 12 : 8 of 40, with hypergeometric spread.
    let documents = f64::from(of_words.iter().sum::<u32>()) / 4.0;
    for (count, of_40) in of_words.into_iter().zip([4.0, 16.0, 12.0, 8.0]) {
        let p = of_40 / 40.0;
        let sd = (documents * 4.0 * p * (1.0 - p) * 36.0 / 39.0).sqrt();
        assert!((f64::from(count) - documents * 4.0 * p).abs() < 4.5 * sd, "{of_words:?}");
    }
    // One long document, in which a word has more tokens than are scored.
    let place = Place::new();
    let mut import = self::import(&place, "2\n2\n3\n1 1 1904\n1 2 96\n2 1 1\n", None, BagFormat::Docword);
    (import.held_out, import.scored_share) = (TestSize::Number(1), 0.5);
    for seed in (1..).map(Seed) {
        let import = CorpusImport { seed, ..import.clone() };
        match import_corpus(&import, &place.output()) {
            Ok(found) => assert!(found.scored_tokens >= 1000),
            // The other document, of whose only token nothing could be predicted.
            Err(_) => {
                refused(&place, &import, &["x: ", "none of the tokens of the 1 held-out documents would be scored"]);
                continue;
            }
        }
        let scored = Corpus::open(&place.output()).unwrap().held_out(0..1).unwrap().scored;
        // 48 of the second word, with a hypergeometric standard deviation of 4.8.
        assert!((1000..=1001).contains(&scored.tokens()) && scored.document(0).counts[1].abs_diff(48) < 22, "{scored:?}");
        break;
    }
    // A part of them is what it is as a part of all.
    let part = corpus.held_out(100..103).unwrap();
    assert!(part.scored.iter().zip(scored.iter().skip(100)).all(|(part, all)| part == all));
}

#[test]
fn bad_documents_have_their_message() {
    let place = Place::new();
    for (text, says) in [
        ("4\n3\n6\n1 1 2\n1 4 1\n", ["x, line 5", "word 4: there are words 1 to 3"]),
        ("4\n3\n6\n5 1 2\n", ["line 4", "documents 1 to 4"]),
        ("4\n3\n6\n0 1 2\n", ["line 4", "document 0"]),
        ("4\n3\n2\n2 1 2\n1 1 1\n", ["line 5", "sort the lines by document"]),
        ("4\n3\n6\n1 1 2\n", ["1 entries", "promises 6"]),
        ("4\n3\n1\n1 1 2\n1 2 1\n", ["line 5", "more entries than the 1"]),
        ("4 3 1 7 9\n1 1 2\n", ["line 1", "numbers of documents, words and entries"]),
        ("4\n3\n6\n1 1 x\n", ["line 4", "\"x\" is no whole number"]),
        ("4\n3\n6\n1 1 -2\n", ["line 4", "no whole number"]),
        ("4\n3\n6\n1 1\n", ["line 4", "three numbers"]),
        ("4\n3\n6\n1 1 2 9\n", ["line 4", "three numbers"]),
        ("4\n3\n1\n1 1 4294967296\n", ["line 4", "at most 4294967295"]),
        ("4\n3\n2\n1 1 16777215\n1 1 1\n", ["line 5", "more than 16777215 tokens"]),
        ("4\n2\n1\n1 1 1\n", ["line 3", "2 words here, and 3 in the vocabulary"]),
        ("4\n3\n", ["x: ", "ends before"]),
        ("4\n3\n1\n1 1 0\n", ["x: ", "no document has a word"]),
        ("99999999999999999999\n3\n0\n", ["line 1", "no whole number"]),
        ("18446744073709551615\n3\n0\n", ["x: ", "no document has a word"]),
    ] {
        refused(&place, &import(&place, text, Some(WORDS), BagFormat::Docword), &says);
    }
    for (text, says) in [
        ("2 0:1\n", ["line 1", "the line begins with 2, but has 1 word:count pairs"]),
        ("1 3:1\n", ["line 1", "words 0 to 2"]),
        ("1 0\n", ["line 1", "word:count"]),
        ("2 0:9000000 1:9000000\n", ["line 1", "more than 16777215 tokens"]),
        ("x 0:1\n", ["line 1", "\"x\" is no whole number"]),
    ] {
        refused(&place, &import(&place, text, Some(WORDS), BagFormat::LdaC), &says);
    }
    for other in ["complex", "pattern", "real symmetric"] {
        let other = MATRIX.replace("integer", other);
        refused(&place, &import(&place, &other, Some(WORDS), BagFormat::MatrixMarket), &["line 1", "integer general", "real"]);
    }
    let real = MATRIX.replace("integer", "real");
    for (count, says) in [
        ("5.5", "\"5.5\" is no whole number of tokens"),
        ("-5", "\"-5\" is no"),
        ("nan", "\"nan\" is no"),
        ("5e9", "\"5e9\" is no"),
        ("1e-300", "\"1e-300\" is no"),
    ] {
        let text = real.replace("2 2 5", &format!("2 2 {count}"));
        refused(&place, &import(&place, &text, Some(WORDS), BagFormat::MatrixMarket), &["line 6", says]);
    }
    // Whole numbers are whole numbers elsewhere.
    refused(&place, &import(&place, &MATRIX.replace("2 2 5", "2 2 5.0"), Some(WORDS), BagFormat::MatrixMarket), &["line 6"]);
    for (words, says) in [
        ("", ["v: ", "empty"]),
        ("\n\n", ["v: ", "no words"]),
        ("a\n\nb\n", ["v, line 2", "empty"]),
        ("a\nb\0\nc\n", ["v, line 2", "zero byte"]),
        // The first word that was there before, whatever the alphabet says.
        ("pear\nplum\n plum\npear\nfig\nfig\n", ["v, line 3", "\"plum\" is in line 2 already"]),
    ] {
        refused(&place, &import(&place, DOCWORD, Some(words), BagFormat::Docword), &says);
    }
    let mut all = import(&place, DOCWORD, Some(WORDS), BagFormat::Docword);
    all.held_out = TestSize::Number(3);
    refused(&place, &all, &["x: ", "3 documents to hold out, of 3 with words"]);
    all.held_out = TestSize::Share(0.1);
    refused(&place, &all, &["x: ", "--test-fraction: this share of 3 documents rounds to none"]);
}

#[test]
fn rows_are_no_corpus_and_a_corpus_has_no_rows() {
    let place = Place::new();
    import_corpus(&import(&place, DOCWORD, Some(WORDS), BagFormat::Docword), &place.output()).unwrap();
    let message = super::super::Dataset::open(&place.output()).unwrap_err().to_string();
    assert!(message.contains("corpus of documents"), "{message}");
    let text = place.file("no.h5", "no HDF5");
    assert!(!Corpus::is_corpus(&text) && !Corpus::is_corpus(&place.output().with_file_name("missing")));
    let message = Corpus::open(&text).unwrap_err().to_string();
    assert!(message.contains("no corpus of this program"), "{message}");
}

/// Everything of a text that occurs.
const ALL: WordFilter = WordFilter { stop_words: StopWords::None, least_documents: 1, most_share: 1.0, most_words: u32::MAX };

fn text(inputs: &[&Path], filter: WordFilter) -> CorpusImport {
    let inputs = inputs.iter().map(|path| path.to_path_buf()).collect();
    import_of(Input::Text(Text { inputs, vocabulary: Vocabulary::Chosen { shortest: 3, filter } }))
}

/// Imports a text: the words, the documents by number, and what was found.
type Read = (Vec<String>, BTreeMap<u64, (Vec<u32>, Vec<u32>)>, TextReport);

fn read(place: &Place, import: &CorpusImport) -> Read {
    let found = import_corpus(import, &place.output()).unwrap();
    let corpus = Corpus::open(&place.output()).unwrap();
    let (words, documents) = (corpus.vocabulary().unwrap().unwrap(), by_number(&corpus, Split::Train));
    assert_eq!(words.len(), corpus.words() as usize);
    let text = found.text.unwrap();
    assert_eq!(text.documents() - found.empty, documents.len() as u64);
    std::fs::remove_file(place.output()).unwrap();
    (words, documents, text)
}

const FABLES: &str = "The fox and the grapes.\nThe dog; the FOX! A dog's dog\n\n12 34 a b\nGrapes na\u{ef}ve grapes\n";

#[test]
fn text_becomes_the_corpus_that_its_lines_say() {
    let place = Place::new();
    let (words, documents, found) = read(&place, &text(&[&place.file("x", FABLES)], ALL));
    assert_eq!(words, ["and", "dog", "fox", "grapes", "na\u{ef}ve", "the"]);
    let expected =
        [(0, (vec![0, 2, 3, 5], vec![1, 1, 1, 2])), (1, (vec![1, 2, 5], vec![3, 1, 2])), (4, (vec![3, 4], vec![2, 1]))];
    assert_eq!(documents, BTreeMap::from(expected.clone()));
    let all = WordTotals { words: 6, tokens: 14 };
    let chosen = FilterReport { seen: all, kept: all, ..FilterReport::default() };
    assert_eq!(found, TextReport { lines: 5, words: VocabularyReport::Chosen(chosen), ..TextReport::default() });
    // What does not change a text: how lines end, a mark in front, compression, and how it is cut into files.
    let digest = |paths: &[&Path]| {
        import_corpus(&text(paths, ALL), &place.output()).unwrap();
        Corpus::open(&place.output()).unwrap().digest().to_owned()
    };
    let plain = digest(&[&place.file("x", FABLES)]);
    for other in [FABLES.replace('\n', "\r\n"), format!("\u{feff}{FABLES}"), FABLES.trim_end().to_owned(), FABLES.to_uppercase()]
    {
        assert_eq!(digest(&[&place.file("y", &other)]), plain, "{other:?}");
        assert_eq!(digest(&[&place.file("y.gz", super::super::tests::gzip(&other))]), plain);
    }
    let (first, second) = FABLES.split_at(FABLES.find("12").unwrap());
    assert_eq!(digest(&[&place.file("1", first), &place.file("2", second)]), plain);
    assert_ne!(digest(&[&place.file("2", second), &place.file("1", first)]), plain);
    // The same in Latin-1, and two documents that say so.
    let latin: Vec<u8> = FABLES.chars().map(|c| u32::from(c) as u8).collect();
    let latin = place.file("x", latin);
    assert_eq!(digest(&[&latin]), plain);
    assert_eq!(read(&place, &text(&[&latin], ALL)).2.not_utf_8, 1);
}

#[test]
fn a_folder_has_a_document_in_each_file() {
    let place = Place::new();
    let folder = place.folder("news");
    for (name, content) in [
        ("b/2", &b"second words\nof this"[..]),
        ("b/10", b"first words"),
        ("b.txt", b"words na\xefve"),
        ("c/d/deep", b"words deep"),
        ("c/.hidden", b"hidden"),
        (".git/config", b"hidden"),
        ("empty", b""),
        ("picture.png", b"\x89PNG\0\0\0words"),
        ("z.gz", &super::super::tests::gzip("words packed")),
    ] {
        let path = folder.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }
    let (words, documents, found) = read(&place, &text(&[&folder], ALL));
    assert_eq!(words, ["deep", "first", "na\u{ef}ve", "packed", "second", "this", "words"]);
    // By the bytes of paths: b.txt, b/10, b/2, c/d/deep, empty, picture.png, z.gz.
    let order: Vec<(u64, Vec<u32>)> = documents.into_iter().map(|(number, (words, _))| (number, words)).collect();
    let expected = [(0, vec![2, 6]), (1, vec![1, 6]), (2, vec![4, 5, 6]), (3, vec![0, 6]), (6, vec![3, 6])];
    assert_eq!(order, expected);
    let first_not_text = Some(folder.join("picture.png"));
    assert_eq!((found.files, found.not_text, found.not_utf_8, found.first_not_text), (7, 1, 1, first_not_text));
    refused(&place, &text(&[&place.folder("none")], ALL), &["none: there are no files in this folder"]);
    #[cfg(unix)]
    {
        std::os::unix::fs::symlink(&folder, folder.join("loop")).unwrap();
        refused(&place, &text(&[&folder], ALL), &["news/loop: ", "link"]);
    }
}

#[test]
fn words_are_left_out_by_the_first_limit_that_they_miss() {
    let place = Place::new();
    // Ten documents: `word` is in all, `half` in five, `rare` in one, `which` is a stop word, `twice` and `again` are in two.
    let line = |number: usize| match number {
        0 => "word half which rare rare twice\n",
        1 => "word half which twice again again\n",
        2 => "word half again\n",
        3 | 4 => "word half half\n",
        _ => "word Don't\n",
    };
    let path = place.file("x", (0..10).map(line).collect::<String>());
    let filter = WordFilter { least_documents: 2, most_share: 0.5, stop_words: StopWords::English, most_words: 100 };
    let chosen = |filter: &WordFilter| {
        let (words, _, found) = read(&place, &text(&[&path], filter.clone()));
        let VocabularyReport::Chosen(chosen) = found.words else { panic!("{found:?}") };
        (words.join(" "), chosen)
    };
    let sum = |words, tokens| WordTotals { words, tokens };
    let expected = FilterReport {
        seen: sum(7, 31),
        stop_words: sum(3, 10),
        rare: sum(1, 2),
        common: sum(1, 10),
        over_limit: sum(0, 0),
        kept: sum(2, 9),
    };
    let (words, found) = chosen(&filter);
    assert_eq!(found.stop_words.words, 3);
    assert_eq!((words.as_str(), found), ("half twice", expected));
    let list = StopWords::File(place.file("stop", "Which\nagain,half\n"));
    assert_eq!(chosen(&WordFilter { stop_words: list, ..filter.clone() }).0, "don twice");
    // Of `again` (3), `don` (5), `half` (7), `twice` (2), `which` (2) those with the most tokens, the first of equals.
    let all = WordFilter { stop_words: StopWords::None, ..filter.clone() };
    assert_eq!(chosen(&all).0, "again don half twice which");
    let (words, found) = chosen(&WordFilter { most_words: 4, ..all.clone() });
    assert_eq!((words.as_str(), found.over_limit), ("again don half twice", sum(1, 2)));
    assert_eq!(
        chosen(&WordFilter { least_documents: 1, most_share: 1.0, ..all.clone() }).0,
        "again don half rare twice which word"
    );
    // A word in exactly the largest share of the documents is kept, although 0.29 · 100 is rounded to less than 29.
    let hundred = place.file("hundred", (0..100).map(|i| if i < 29 { "word often\n" } else { "word\n" }).collect::<String>());
    let exactly = WordFilter { most_share: 0.29, stop_words: StopWords::None, ..filter.clone() };
    assert_eq!(read(&place, &text(&[&hundred], exactly)).0.join(" "), "often");
    // Nothing is left, and what to do.
    let none = WordFilter { least_documents: 6, ..filter };
    let says = [
        "x: none of the 7 words of 10 documents is kept",
        "3 are stop words, 3 are in fewer than 6",
        "1 in more than 0.5 of them: lower --least-documents",
    ];
    refused(&place, &text(&[&path], none), &says);
}

#[test]
fn a_given_vocabulary_says_which_words_count() {
    let place = Place::new();
    let inputs = vec![place.file("x", FABLES)];
    let given = |words: &str| {
        let vocabulary = Vocabulary::Given(place.file("v", words));
        import_of(Input::Text(Text { inputs: inputs.clone(), vocabulary }))
    };
    // In the order of the list, also short ones; a capital letter never occurs.
    let (words, documents, found) = read(&place, &given("grapes\nfox\nFox\na\n"));
    assert_eq!(words, ["grapes", "fox", "Fox", "a"]);
    let expected = [(0, vec![0, 1]), (1, vec![1, 3]), (3, vec![3]), (4, vec![0])];
    assert_eq!(documents.into_iter().map(|(number, (words, _))| (number, words)).collect::<Vec<_>>(), expected);
    assert_eq!(found.words, VocabularyReport::Given { tokens: 18, found: WordTotals { words: 3, tokens: 7 } });
    refused(&place, &given("Fox\nwolf\n"), &["v: none of the 2 words of the vocabulary occurs", "lower case"]);
    refused(&place, &given("fox\n\nwolf\n"), &["v, line 2", "empty"]);
    refused(&place, &given("fox\nwolf\nfox\n"), &["v, line 3", "\"fox\" is in line 1 already"]);
}

#[test]
fn text_that_cannot_be_read_has_its_message() {
    let place = Place::new();
    for (content, says) in [
        (&b""[..], "x: the file is empty"),
        (b"12 34\n", "x: no document has a word of 3 to 64 letters"),
        (b"\xff\xfet\0h\0e\0", "x: this is text in UTF-16: write it in UTF-8"),
        (b"%PDF-1.4\nwords", "x: this is a PDF file"),
        (b"PK\x03\x04words", "x: this is an NPZ or another ZIP file"),
        (b"\x89HDF\r\n\x1a\nwords", "x: this is an HDF5 file"),
        (b"\x93NUMPY words", "x: this is an NPY file"),
        (b"words\0and\n", "x: this is no text: it has zero bytes"),
        (&super::super::tests::gzip(FABLES)[..40], "the compressed data is damaged"),
    ] {
        refused(&place, &text(&[&place.file("x", content)], ALL), &[says]);
    }
    refused(&place, &text(&[&place.file("x", FABLES), Path::new("missing")], ALL), &["missing: cannot open"]);
    let missing = WordFilter { stop_words: StopWords::File("missing".into()), ..ALL };
    refused(&place, &text(&[&place.file("x", FABLES)], missing), &["missing: cannot open"]);
    // One token too many, in the second line.
    let long = format!("few words\n{}\n", "abc ".repeat(usize::try_from(MAX_TOKENS).unwrap() + 1));
    refused(&place, &text(&[&place.file("x", long)], ALL), &["x, line 2: a document of more than 16777215 tokens: cut it"]);
}
