//! `mpibayes data`: downloads from servers with all kinds of faults, and synthetic data sets.

#![allow(clippy::unwrap_used, clippy::expect_used)]
#![cfg_attr(not(feature = "download"), allow(dead_code, unused_imports))]

use crate::harness::{Cli, Launch};
use mpibayes::data::Split;
use mpibayes::data::corpus::Corpus;
use sha2::{Digest, Sha256};
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

const FILE: &str = "covtype.data.gz";

fn content() -> Vec<u8> {
    (0..200_000_u32).map(|i| (i * 31 % 251) as u8).collect()
}

/// The behavior of a server.
#[derive(Clone, Copy, PartialEq)]
enum Manner {
    /// All that was asked for.
    Good,
    /// The first answer ends after half of it.
    CutOnce,
    /// As that, and knows no ranges.
    CutOnceNoRange,
    /// The first answer ends after half of it, and then there is another version of the file.
    CutAndChanged,
    /// Every answer promises ten bytes more than come.
    Short,
    /// 503 at first.
    BusyOnce,
    /// No such file.
    Missing,
}

/// A server in a thread of this test; the header lines of all requests.
struct Server {
    url: String,
    requests: Arc<Mutex<Vec<String>>>,
}

impl Server {
    fn new(manner: Manner) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/sets", listener.local_addr().unwrap());
        let requests = Arc::new(Mutex::new(Vec::new()));
        let log = requests.clone();
        std::thread::spawn(move || {
            for (number, stream) in listener.incoming().enumerate() {
                // A client that has gone is no failure of the test.
                drop(stream.and_then(|stream| answer(stream, manner, number, &log)));
            }
        });
        Self { url, requests }
    }

    fn requests(&self) -> Vec<String> {
        self.requests.lock().unwrap().clone()
    }
}

fn answer(mut stream: TcpStream, manner: Manner, number: usize, log: &Mutex<Vec<String>>) -> std::io::Result<()> {
    let mut request = String::new();
    let mut reader = BufReader::new(stream.try_clone()?);
    while !request.ends_with("\r\n\r\n") {
        if reader.read_line(&mut request)? == 0 {
            return Ok(());
        }
    }
    log.lock().unwrap().push(request.clone());
    let field = |name: &str| {
        let line = request.lines().find(|line| line.to_ascii_lowercase().starts_with(&format!("{name}: ")))?;
        line.split_once(": ").map(|(_, value)| value.to_owned())
    };
    let (mut bytes, mut etag) = (content(), "\"one\"");
    if manner == Manner::CutAndChanged && number > 0 {
        bytes.reverse();
        etag = "\"two\"";
    }
    let from: Option<usize> = field("range").map(|range| range["bytes=".len()..range.len() - 1].parse().unwrap());
    let same = field("if-range").is_none_or(|tag| tag == etag);
    let total = bytes.len();
    let promised = |length: usize| if manner == Manner::Short { length + 10 } else { length };
    let (status, range, body) = match (manner, from) {
        (Manner::Missing, _) => ("404 Not Found", String::new(), &b"no"[..]),
        (Manner::BusyOnce, _) if number == 0 => ("503 Service Unavailable", String::new(), &b"later"[..]),
        (Manner::CutOnceNoRange | Manner::Short, _) | (_, None) => ("200 OK", String::new(), &bytes[..]),
        (_, Some(_)) if !same => ("200 OK", String::new(), &bytes[..]),
        (_, Some(from)) if from >= total => ("416 Range Not Satisfiable", format!("Content-Range: bytes */{total}\r\n"), &[][..]),
        (_, Some(from)) => {
            ("206 Partial Content", format!("Content-Range: bytes {from}-{}/{total}\r\n", total - 1), &bytes[from..])
        }
    };
    let tag = if manner == Manner::CutOnceNoRange { String::new() } else { format!("ETag: {etag}\r\n") };
    let length = promised(body.len());
    write!(stream, "HTTP/1.1 {status}\r\nContent-Length: {length}\r\n{range}{tag}Connection: close\r\n\r\n")?;
    let cuts = matches!(manner, Manner::CutOnce | Manner::CutOnceNoRange | Manner::CutAndChanged) && number == 0;
    stream.write_all(if cuts { &body[..body.len() / 2] } else { body })?;
    stream.flush()
}

/// `data get covertype` from a server.
fn get(cli: &Cli, server: &Server) -> Launch {
    cli.alone(&format!("data get covertype --from {} --attempts 2", server.url))
}

/// Asserts that the folder holds the file and its checksum, and nothing else.
fn arrived(cli: &Cli, bytes: &[u8]) {
    let place = cli.path("datasets/covertype");
    assert!(std::fs::read(place.join(FILE)).unwrap() == bytes);
    let digest: String = Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(std::fs::read_to_string(place.join(format!("{FILE}.sha256"))).unwrap(), format!("{digest}  {FILE}\n"));
    assert_eq!(std::fs::read_dir(place).unwrap().count(), 2);
}

#[test]
#[cfg(feature = "download")]
fn a_file_is_downloaded_once_and_verified_afterwards() {
    let (cli, server) = (Cli::new(), Server::new(Manner::Good));
    let told = get(&cli, &server).succeed(&[]).stdout;
    assert!(
        told.contains("195.3 KiB, SHA-256 ") && told.contains("mpibayes import datasets/covertype/covtype.data.gz"),
        "{told}"
    );
    arrived(&cli, &content());
    assert!(get(&cli, &server).succeed(&[]).stdout.contains("exists, with the checksum"));
    assert_eq!(server.requests().len(), 1);
    assert!(server.requests()[0].starts_with(&format!("GET /sets/{FILE} HTTP/1.1\r\n")), "{:?}", server.requests());
    let listed = cli.stdout("data list");
    assert!(listed.contains("available in datasets/covertype") && listed.contains("mpibayes data get mnist"), "{listed}");
    // A damaged file is reported and not replaced.
    let path = cli.path("datasets/covertype").join(FILE);
    std::fs::write(&path, "damaged").unwrap();
    get(&cli, &server).refuse(&[FILE, "SHA-256", "damaged, or another version"]);
    assert_eq!(std::fs::read(&path).unwrap(), b"damaged");
    // A file without a checksum is accepted as it is.
    std::fs::remove_file(path.with_extension("gz.sha256")).unwrap();
    assert!(get(&cli, &server).succeed(&[]).stdout.contains("exists, without a recorded checksum"));
    // A file that is downloaded again must have the recorded checksum.
    std::fs::remove_file(&path).unwrap();
    std::fs::write(path.with_extension("gz.sha256"), format!("{:064}  {FILE}\n", 0)).unwrap();
    get(&cli, &server).refuse(&["records 0000", "another version"]);
    assert!(!path.exists());
}

#[test]
#[cfg(feature = "download")]
fn an_interrupted_download_resumes() {
    let (cli, server) = (Cli::new(), Server::new(Manner::CutOnce));
    get(&cli, &server).succeed(&[]);
    arrived(&cli, &content());
    let requests = server.requests();
    let second = requests[1].to_ascii_lowercase();
    assert!(
        requests.len() == 2 && second.contains("range: bytes=100000-\r\n") && second.contains("if-range: \"one\"\r\n"),
        "{second}"
    );

    // What lies there without a word on its version may be a part of another: the file comes anew.
    for left in [1, 70_000, 200_000] {
        let (cli, server) = (Cli::new(), Server::new(Manner::Good));
        let place = cli.path("datasets/covertype");
        std::fs::create_dir_all(&place).unwrap();
        std::fs::write(place.join(format!("{FILE}.part")), &content()[..left]).unwrap();
        get(&cli, &server).succeed(&[]);
        arrived(&cli, &content());
        assert!(!server.requests()[0].to_ascii_lowercase().contains("range:"));
    }
    // What is longer than the file is no part of it.
    let (cli, server) = (Cli::new(), Server::new(Manner::Good));
    let place = cli.path("datasets/covertype");
    std::fs::create_dir_all(&place).unwrap();
    std::fs::write(place.join(format!("{FILE}.part")), vec![0; 200_001]).unwrap();
    get(&cli, &server).succeed(&[]);
    arrived(&cli, &content());
}

#[test]
#[cfg(feature = "download")]
fn downloads_start_over_if_the_server_cannot_resume_or_the_file_changed() {
    let (cli, server) = (Cli::new(), Server::new(Manner::CutOnceNoRange));
    get(&cli, &server).succeed(&[]);
    arrived(&cli, &content());
    let (cli, server) = (Cli::new(), Server::new(Manner::CutAndChanged));
    get(&cli, &server).succeed(&[]);
    let mut other = content();
    other.reverse();
    arrived(&cli, &other);
    let (cli, server) = (Cli::new(), Server::new(Manner::BusyOnce));
    get(&cli, &server).succeed(&[]);
    arrived(&cli, &content());
}

#[test]
#[cfg(feature = "download")]
fn failed_downloads_report_the_cause_and_the_remedy() {
    let (cli, server) = (Cli::new(), Server::new(Manner::Missing));
    get(&cli, &server).refuse(&[FILE, "404", "--from"]);
    assert_eq!(server.requests().len(), 1, "a missing file is requested once");
    let (cli, server) = (Cli::new(), Server::new(Manner::Short));
    get(&cli, &server).refuse(&["interrupted after 200000", "the same command resumes"]);
    assert!(!cli.path("datasets/covertype").join(FILE).exists());
    // Nothing listens on this port.
    let from = "http://127.0.0.1:1";
    let get = |name: &str, from: &str| cli.alone(&format!("data get {name} --attempts 1 --from {from}"));
    get("kos", from).refuse(&["docword.kos.txt.gz", "refused", "(attempt 1)"]);
    get("kos", "nowhere").refuse(&["nowhere/docword.kos.txt.gz", "must begin with"]);
    get("mnits", from).refuse(&["no data set \"mnits\"", "mnist, "]);
    get("twonorm", from).refuse(&["mpibayes data make twonorm"]);
    get("wikipedia", from).refuse(&["https://dumps.wikimedia.org/enwiki/", "take a dump"]);
}

#[test]
#[cfg(not(feature = "download"))]
fn a_build_without_downloads_prints_the_commands() {
    let cli = Cli::new();
    let mirror = "data get kos --from https://example.org";
    let command = "curl -L -o datasets/kos/vocab.kos.txt https://example.org/vocab.kos.txt";
    cli.refuse(mirror, &["built without downloads", command]);
    for file in ["docword.kos.txt.gz", "vocab.kos.txt"] {
        cli.write(&format!("datasets/kos/{file}"), "x");
    }
    assert!(cli.stdout(mirror).contains("mpibayes import counts datasets/kos/docword.kos.txt.gz"));
}

#[test]
fn a_synthetic_table_depends_on_its_seed_only_and_can_be_imported() {
    let cli = Cli::new();
    let told = cli.stdout("data make waveform --rows 300 --seed 4 -o made/a.csv");
    assert!(told.contains("300 rows, 21 features") && told.contains("mpibayes import made/a.csv"), "{told}");
    cli.succeed("data make waveform --rows 300 --seed 4 -o b.csv.gz");
    let imported = |file: &str| {
        let told = cli.stdout(&format!("import {file} -o a.h5 --force"));
        assert!(told.contains("classes   3: 1, 2, 3"), "{told}");
        told.lines().last().unwrap().to_owned()
    };
    assert_eq!(imported("made/a.csv"), imported("b.csv.gz"));
    cli.succeed("data make waveform --rows 300 --seed 5 -o c.csv");
    assert_ne!(imported("made/a.csv"), imported("c.csv"));
    cli.refuse("data make waveform -o c.csv", &["c.csv", "--force"]);
    assert!(cli.stdout("data make year --rows 5 -o y.csv").contains("synthetic"));
    assert!(cli.stdout("import y.csv --task regression -o y.h5").contains("targets"));
}

#[test]
fn synthetic_documents_come_with_their_topics_and_can_be_imported() {
    let cli = Cli::new();
    let make = "data make topics --documents 1200 --words 300 --topics 4 --tokens 50 --alpha 0.2 --seed 3 -o";
    let told = cli.stdout(&format!("{make} made/t.docword.txt.gz"));
    assert!(told.starts_with("wrote made/t.docword.txt.gz (") && told.contains("1,200 documents, 300 words, "), "{told}");
    assert!(told.contains("wrote made/t.phi.npy (9.5 KiB): their true topics, float64 4 × 300, a topic in each row"), "{told}");
    // As it says, word for word; a mean of 50 tokens and a standard deviation of 50 √(e^0.36 − 1) = 33, within 4.5 errors.
    let then = told.lines().last().unwrap().strip_prefix("then: mpibayes ").unwrap();
    let told = cli.stdout(then);
    assert!(told.contains("train   1,080 documents, ") && told.contains("test    120 documents, "), "{told}");
    let tokens = |line: &str| -> u64 {
        let line = told.lines().find(|found| found.trim_start().starts_with(line)).unwrap();
        line.split(" tokens").next().unwrap().rsplit(' ').next().unwrap().replace(',', "").parse().unwrap()
    };
    assert!((tokens("train") + tokens("test")).abs_diff(60_000) < 5_200, "{told}");
    // The same documents as a dataset, in the order of their numbers.
    let direct = cli.stdout(&format!("{make} direct/t.h5"));
    assert!(
        direct.contains("1,200 documents, 300 words, ") && direct.contains("then: mpibayes init --data direct/t.h5"),
        "{direct}"
    );
    let [made, imported] = ["direct/t.h5", "datasets/topics.h5"].map(|file| Corpus::open(&cli.path(file)).unwrap());
    assert_eq!([made.documents(Split::Test), made.documents(Split::Train)], [120, 1080]);
    let all = |corpus: &Corpus| {
        let of = |split| {
            let numbers = corpus.numbers(split, 0..corpus.documents(split)).unwrap();
            let documents = corpus.whole(split, 0..corpus.documents(split)).unwrap();
            let bags = documents.iter().map(|bag| (bag.words.to_vec(), bag.counts.to_vec())).collect::<Vec<_>>();
            numbers.into_iter().zip(bags)
        };
        of(Split::Test).chain(of(Split::Train)).collect::<Vec<_>>()
    };
    let (made_all, mut imported_all) = (all(&made), all(&imported));
    assert!(made_all.is_sorted() && !imported_all.is_sorted());
    imported_all.sort();
    assert!(made_all == imported_all);
    let held_out = made.held_out(0..120).unwrap();
    let share = held_out.scored.tokens() as f64 / (held_out.scored.tokens() + held_out.observed.tokens()) as f64;
    // 6,000 tokens.
    assert!((share - 0.1).abs() < 0.01, "{share}");
    cli.succeed(&format!("{make} direct/again.h5"));
    assert_eq!(made.digest(), Corpus::open(&cli.path("direct/again.h5")).unwrap().digest());
    cli.refuse("data make topics --documents 5 --test-documents 5 -o five.h5", &["--test-documents 5 of 5 documents leave none"]);
    cli.refuse(
        "data make topics --documents 3 --test-documents 1 --tokens 1 -o five.h5",
        &["none of the tokens of the 1 held-out documents would be scored"],
    );
    assert!(!cli.exists("five.h5") && !cli.exists("five.phi.npy"), "nothing remains");
    cli.refuse("data make topics --test-documents 5 -o five.txt", &["--test-documents is for datasets"]);
    // The same seed makes the same files.
    cli.succeed(&format!("{make} again.docword.txt.gz"));
    let read = |name: &str| std::fs::read(cli.path(name)).unwrap();
    assert!(read("made/t.docword.txt.gz") == read("again.docword.txt.gz") && read("made/t.phi.npy") == read("again.phi.npy"));
    cli.succeed("data make topics --documents 1200 --words 300 --topics 4 --tokens 50 --alpha 0.2 --seed 4 -o other.txt");
    assert_ne!(read("other.phi.npy"), read("again.phi.npy"));
    for (arguments, says) in [
        ("topics -o other.txt", ["other.txt", "--force"]),
        ("topics -o other.docword.txt", ["other.phi.npy", "--force"]),
        ("topics --rows 5 -o n.txt", ["--rows is for tables", "--documents"]),
        ("twonorm --words 5 -o n.csv", ["--words is for documents", "--rows"]),
        ("topics --words 4000000000 -o n.txt", ["20 topics of 4000000000 words", "268435456"]),
        ("topics --alpha 0 -o n.txt", ["--alpha = 0", "above 0"]),
    ] {
        cli.refuse(&format!("data make {arguments}"), &says);
    }
}
