//! Imports of small corpora: what went in comes out in another order, and bad input has its message and leaves nothing behind.

#![allow(clippy::unwrap_used, clippy::expect_used)]

use super::super::tests::Place;
use super::*;
use crate::lda::Bag;
use crate::random::Seed;
use std::collections::BTreeMap;

fn import(place: &Place, documents: &str, vocabulary: Option<&str>, format: BagFormat) -> CorpusImport {
    CorpusImport {
        documents: place.file("x", documents),
        format,
        vocabulary: vocabulary.map(|words| place.file("v", words)),
        held_out: Part::Number(0),
        scored: 0.1,
        seed: Seed(1),
    }
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
    for (format, text) in [(BagFormat::Docword, DOCWORD), (BagFormat::LdaC, LDA_C), (BagFormat::MatrixMarket, MATRIX)] {
        for text in [text.to_owned(), text.replace('\n', "\r\n"), format!("{text}\n"), format!("\u{feff}{text}")] {
            let place = Place::new();
            let import = self::import(&place, &text, Some(WORDS), format);
            assert_eq!(BagFormat::detect(&import.documents).unwrap(), Some(format));
            let empty = import_corpus(&import, &place.output()).unwrap();
            // Behind the last document of lda-c a blank line is nothing, and a document without words is left out.
            assert_eq!(empty, 1, "{format:?} {text:?}");
            let corpus = Corpus::open(&place.output()).unwrap();
            assert!(Corpus::is_one(&place.output()));
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
    import.held_out = Part::Share(0.2);
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

#[test]
fn a_share_of_the_tokens_of_held_out_documents_is_scored() {
    let place = Place::new();
    // 400 documents of 40 tokens in 4 words, and one of a single token.
    let lines: String =
        (1..=400).map(|document| format!("{document} 1 4\n{document} 2 16\n{document} 3 12\n{document} 4 8\n")).collect();
    let mut import = self::import(&place, &format!("401\n4\n1601\n{lines}401 1 1\n"), None, BagFormat::Docword);
    import.held_out = Part::Number(400);
    import_corpus(&import, &place.output()).unwrap();
    let corpus = Corpus::open(&place.output()).unwrap();
    let HeldOut { observed, scored } = corpus.held_out(0..400).unwrap();
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
    (import.held_out, import.scored) = (Part::Number(1), 0.5);
    for seed in (1..).map(Seed) {
        import_corpus(&CorpusImport { seed, ..import.clone() }, &place.output()).unwrap();
        let scored = Corpus::open(&place.output()).unwrap().held_out(0..1).unwrap().scored;
        if scored.tokens() > 0 {
            // 48 of the second word, with a hypergeometric standard deviation of 4.8.
            assert!((1000..=1001).contains(&scored.tokens()) && scored.document(0).counts[1].abs_diff(48) < 22, "{scored:?}");
            break;
        }
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
        ("2 0:1\n", ["line 1", "2 words are promised, and 1 come"]),
        ("1 3:1\n", ["line 1", "words 0 to 2"]),
        ("1 0\n", ["line 1", "word:count"]),
        ("2 0:9000000 1:9000000\n", ["line 1", "more than 16777215 tokens"]),
        ("x 0:1\n", ["line 1", "\"x\" is no whole number"]),
    ] {
        refused(&place, &import(&place, text, Some(WORDS), BagFormat::LdaC), &says);
    }
    for other in ["complex", "real"] {
        let other = MATRIX.replace("integer", other);
        refused(&place, &import(&place, &other, Some(WORDS), BagFormat::MatrixMarket), &["line 1", "integer general"]);
    }
    for (words, says) in [
        ("", ["v: ", "empty"]),
        ("\n\n", ["v: ", "no words"]),
        ("a\n\nb\n", ["v, line 2", "empty"]),
        ("a\nb\0\nc\n", ["v, line 2", "zero byte"]),
    ] {
        refused(&place, &import(&place, DOCWORD, Some(words), BagFormat::Docword), &says);
    }
    let mut all = import(&place, DOCWORD, Some(WORDS), BagFormat::Docword);
    all.held_out = Part::Number(3);
    refused(&place, &all, &["x: ", "3 documents to hold out, of 3 with words"]);
    all.held_out = Part::Share(0.1);
    refused(&place, &all, &["x: ", "a share of 3 documents that is none"]);
}

#[test]
fn rows_are_no_corpus_and_a_corpus_has_no_rows() {
    let place = Place::new();
    import_corpus(&import(&place, DOCWORD, Some(WORDS), BagFormat::Docword), &place.output()).unwrap();
    let message = super::super::Dataset::open(&place.output()).unwrap_err().to_string();
    assert!(message.contains("corpus of documents"), "{message}");
    let text = place.file("no.h5", "no HDF5");
    assert!(!Corpus::is_one(&text) && !Corpus::is_one(&place.output().with_file_name("missing")));
    let message = Corpus::open(&text).unwrap_err().to_string();
    assert!(message.contains("no corpus of this program"), "{message}");
}
