//! Figures of the papers, row by row: each row is a claim with a criterion, and ends with a verdict that the program gives.
//!
//! Rows that are done are kept in `jobs/papers/PAPER/results`; `jobs/papers/PAPER/RESULTS.md` is written anew from them. The rows of a
//! paper are a committed list in its file here.

#[path = "../../tests/support/covertype.rs"]
mod covertype;
#[path = "../../tests/support/delayed_gradients.rs"]
mod delayed_gradients;
mod dsgld;
mod dsvgd;
mod ec_sghmc;
mod files;
#[path = "../../tests/support/gaussian_shards.rs"]
mod gaussian_shards;
#[path = "../../tests/support/grid.rs"]
mod grid;
mod judge;
mod kept;
mod numbers;
mod origin;
mod pictures;
#[path = "../../tests/support/recording.rs"]
mod recording;
mod workers;

use anyhow::{Context, ensure};
use clap::Parser;
use files::Runs;
use kept::{Confirmation, Kept};
use mpibayes::cluster::BoxError;
use mpibayes::plots::Figure;
use origin::Origin;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::panic::catch_unwind;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// Runs rows of a paper and writes what came out.
#[derive(Parser)]
struct Arguments {
    /// The paper: dsgld, dsvgd or ec-sghmc
    paper: String,
    /// Rows to run [default: all]
    rows: Vec<String>,
    /// Fewer seeds and rounds
    #[arg(long)]
    quick: bool,
    /// Also run rows whose results are up to date
    #[arg(long)]
    again: bool,
    /// Do not run rows whose results are of other sources or settings
    #[arg(long, conflicts_with = "again")]
    keep: bool,
    /// Run the quick version of rows whose results are of other sources: where its numbers are those that the sources of the result gave,
    /// the result is up to date
    #[arg(long, conflicts_with_all = ["again", "keep", "quick"])]
    confirm: bool,
}

/// What the measurements say about a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Verdict {
    /// It holds.
    Reproduced,
    /// A measurement shows that it does not.
    Refuted,
    /// The measurements do not tell.
    Undecided,
    /// The measurements do not tell, but all of their means contradict the paper.
    Contrary,
    /// It holds, because the simulated cluster is what it is.
    ByConstruction,
    /// Our own criterion is not met.
    Failed,
}

impl Verdict {
    /// What it is called for a row, which is the paper's or ours.
    fn name(self, row: &Row) -> &'static str {
        match self {
            Self::Reproduced if row.quote.is_empty() => "holds (ours)",
            Self::Reproduced => "reproduced",
            Self::Refuted => "refuted",
            Self::Undecided => "undecided",
            Self::Contrary => "undecided, all means contrary",
            Self::ByConstruction => "by construction",
            Self::Failed => "failed",
        }
    }
}

/// A row of the list.
#[derive(Clone, Copy)]
struct Row {
    id: &'static str,
    /// What the paper says, in its own words; empty if the row is ours.
    quote: &'static str,
    /// What is tested.
    claim: &'static str,
    /// How the setting differs from the paper's.
    differs: &'static str,
    /// The run files with its settings, in `jobs/papers`, without `.toml`.
    files: &'static [&'static str],
    run: fn(Effort, &[Runs]) -> Result<Outcome, BoxError>,
}

impl Row {
    fn carry_out(&self, effort: Effort) -> Result<Outcome, BoxError> {
        let files = self.files.iter().map(|name| Runs::read(name)).collect::<Result<Vec<_>, _>>()?;
        // A row that panics ends no other.
        catch_unwind(|| (self.run)(effort, &files)).unwrap_or_else(|_| Err("it has panicked, as said above".into()))
    }
}

/// How much is run.
#[derive(Clone, Copy)]
struct Effort {
    seeds: u64,
    /// Rounds are divided by this, or by another number in rows where that does not fit.
    share: u64,
}

impl Effort {
    const FULL: Self = Self { seeds: 10, share: 1 };
    const QUICK: Self = Self { seeds: 2, share: 5 };

    fn is_quick(self) -> bool {
        self.share > 1
    }
}

/// What came of a row.
#[derive(Serialize, Deserialize)]
struct Outcome {
    verdict: Verdict,
    /// Names and what was found, with what was expected.
    numbers: Vec<(String, String, String)>,
    /// Drawn into a file beside.
    #[serde(skip)]
    picture: Option<Figure>,
}

const PAPERS: [&str; 3] = ["dsgld", "dsvgd", "ec-sghmc"];

/// The rows of a paper; none if there is no such paper.
fn rows(paper: &str) -> Vec<Row> {
    match paper {
        "dsgld" => [dsgld::ROWS, dsgld::topics::ROWS].concat(),
        "dsvgd" => dsvgd::ROWS.to_vec(),
        "ec-sghmc" => ec_sghmc::ROWS.to_vec(),
        _ => Vec::new(),
    }
}

fn main() -> anyhow::Result<()> {
    // As the program does: the kernels for this processor, on which last digits depend, and one thread.
    mpibayes::cli::blas::prepare();
    let arguments = Arguments::parse();
    let rows = rows(&arguments.paper);
    ensure!(!rows.is_empty(), "there are no rows of {:?}; there are those of {}", arguments.paper, PAPERS.join(", "));
    let legend = match arguments.paper.as_str() {
        "dsvgd" => dsvgd::LEGEND,
        "dsgld" => dsgld::LEGEND,
        "ec-sghmc" => ec_sghmc::LEGEND,
        _ => "",
    };
    for row in &arguments.rows {
        let known: Vec<&str> = rows.iter().map(|row| row.id).collect();
        ensure!(known.contains(&row.as_str()), "there is no row {row:?}; there are {}", known.join(", "));
    }
    let folder = Path::new("jobs/papers").join(&arguments.paper);
    ensure!(Path::new("jobs/papers").is_dir(), "jobs/papers: there is no such folder here: run this in that of the repository");
    let results = folder.join(if arguments.quick { "results-quick" } else { "results" });
    std::fs::create_dir_all(&results).with_context(|| results.display().to_string())?;
    let place = |row: &Row| results.join(format!("{}.json", row.id));
    let effort = if arguments.quick { Effort::QUICK } else { Effort::FULL };
    let mut broken = Vec::new();
    // Before the runs, in case the files change meanwhile.
    let origins = Origin::of_rows(&arguments.paper, &rows).context("the sources")?;
    // Runs are side by side here, one thread each; rows of `dsgld` spread their references over cores.
    if arguments.paper != "dsgld" {
        rayon::ThreadPoolBuilder::new().num_threads(1).build_global().context("the threads of runs")?;
    }
    for (row, now) in rows.iter().zip(&origins) {
        if !arguments.rows.is_empty() && !arguments.rows.iter().any(|asked| asked == row.id) {
            continue;
        }
        let before = Kept::read(&place(row))?;
        let is_stale = before.as_ref().is_some_and(|kept| !kept.origin.is_same(now));
        if arguments.confirm {
            let Some(mut kept) = before else { continue };
            match kept.confirm(row, now) {
                Err(error) => {
                    eprintln!("reproduce: {}: the quick version has ended early: {error:#}", row.id);
                    broken.push(row.id);
                    continue;
                }
                Ok(Confirmation::UpToDate) => {}
                Ok(Confirmation::Confirmed) => eprintln!("reproduce: {}: the quick version gives the same numbers", row.id),
                Ok(Confirmation::Stale(why)) => {
                    eprintln!("reproduce: {} is stale: {why}", row.id);
                    continue;
                }
            }
            kept.write(&place(row))?;
            continue;
        }
        let is_kept = before.is_some() && (!is_stale || arguments.keep) && !arguments.again;
        if is_kept {
            continue;
        }
        eprintln!("reproduce: {}{}", row.id, if is_stale { ", whose result is of other sources or settings" } else { "" });
        let since = Instant::now();
        let outcome = row.carry_out(effort);
        let seconds = since.elapsed().as_secs_f64();
        let outcome = match outcome {
            Ok(outcome) => outcome,
            Err(error) => {
                eprintln!("reproduce: {} has ended early, and its former result is kept: {error}", row.id);
                broken.push(row.id);
                continue;
            }
        };
        if let Some(picture) = &outcome.picture {
            let drawing = picture.draw(None).with_context(|| format!("the picture of {}", row.id))?;
            let file = picture_of(&results, row);
            std::fs::write(&file, drawing.svg()).with_context(|| file.display().to_string())?;
            std::fs::write(file.with_extension("png"), drawing.png(2.0)?).with_context(|| file.display().to_string())?;
        }
        let mut kept = Kept::new(outcome, seconds, now.clone());
        // Before the quick version, which takes minutes and may be stopped.
        kept.write(&place(row))?;
        if !arguments.quick {
            if let Err(error) = kept.confirm(row, now) {
                eprintln!(
                    "reproduce: {}: the quick version has ended early, so that the result cannot be confirmed later: {error}",
                    row.id
                );
            }
            kept.write(&place(row))?;
        }
        eprintln!("reproduce: {}: {}", row.id, kept.verdict_and_time(row));
    }
    let kept = rows.iter().zip(&origins).map(|(row, now)| {
        let kept = Kept::read(&place(row))?;
        let is_stale = kept.as_ref().is_some_and(|kept| !kept.origin.is_same(now));
        Ok(Known { row, kept, is_stale })
    });
    let kept: Vec<Known> = kept.collect::<anyhow::Result<_>>()?;
    let file = folder.join(if arguments.quick { "RESULTS-quick.md" } else { "RESULTS.md" });
    std::fs::write(&file, report(&arguments.paper, legend, arguments.quick, &results, &kept)?)
        .with_context(|| file.display().to_string())?;
    let mut counts = BTreeMap::new();
    for Known { row, kept, .. } in &kept {
        let verdict = kept.as_ref().map_or("not run", |kept| kept.outcome.verdict.name(row));
        *counts.entry(verdict).or_insert(0) += 1;
        println!("{:<18} {}", row.id, kept.as_ref().map_or("not run".to_owned(), |kept| kept.verdict_and_time(row)));
    }
    println!("{}", file.display());
    let counts: Vec<String> = counts.iter().map(|(name, count)| format!("{count} {name}")).collect();
    println!("reproduce: {} of {}", counts.join(", "), rows.len());
    ensure!(broken.is_empty(), "ended early: {}; see above", broken.join(", "));
    Ok(())
}

/// The picture of a row, as SVG.
fn picture_of(results: &Path, row: &Row) -> PathBuf {
    results.join(format!("{}.svg", row.id))
}

/// How verdicts are found, for readers of a report.
const RULE: &str = "A claim is about the mean of a number that is computed once for each seed, most often a difference of two runs, given as mean ± \
standard error. It holds, or does not hold, if a t-test rejects the opposite, by Holm's method at 1 % over the claims of a row. A row is \
*reproduced* if all of its claims hold, *refuted* if one of the paper's does not, and *undecided* otherwise; that all means are contrary is said \
if that of every claim of the paper lies on the wrong side. What follows from the simulated cluster, or from how the program computes, is *by construction*. A row without \
claims of the paper *holds (ours)*. Bounds and margins marked \"ours\" belong to what is called a claim of the paper. The numbers of a *stale* row are of earlier code, tests or settings; if \
only code has changed, and the quick version of a row (fewer seeds and rounds) still gives the same numbers, the row is not stale. Any row has \
*failed* if a claim or a check of ours fails, or a mean is not a number. Times are those of two cores, some of them beside other work.";

/// A row with its result, if it has one, and whether the sources or settings have changed since.
struct Known<'a> {
    row: &'a Row,
    kept: Option<Kept>,
    is_stale: bool,
}

impl Known<'_> {
    fn verdict(&self) -> String {
        let Some(kept) = &self.kept else { return "not run".into() };
        format!("{}{}", kept.outcome.verdict.name(self.row), if self.is_stale { " (stale)" } else { "" })
    }
}

/// The rows that are done, as Markdown.
fn report(paper: &str, legend: &str, quick: bool, results: &Path, rows: &[Known]) -> Result<String, std::fmt::Error> {
    let mut text = String::new();
    let how = if quick { " (quick: fewer seeds and rounds)" } else { "" };
    writeln!(text, "# {paper}: what came of its figures{how}\n")?;
    writeln!(text, "Made by `bash jobs/papers/reproduce.sh {paper}{}`.\n", if quick { " --quick" } else { "" })?;
    if !legend.is_empty() {
        writeln!(text, "{legend}\n")?;
    }
    writeln!(text, "{RULE}\n")?;
    writeln!(text, "| row | verdict |\n| --- | --- |")?;
    for known in rows {
        writeln!(text, "| {} | {} |", known.row.id, known.verdict())?;
    }
    writeln!(text)?;
    for known in rows {
        let Known { row, kept, .. } = known;
        writeln!(text, "## {}: {}\n", row.id, known.verdict())?;
        if row.quote.is_empty() {
            writeln!(text, "Ours, not the paper's.\n")?;
        } else {
            writeln!(text, "> {}\n", row.quote)?;
        }
        writeln!(text, "**Tested.** {}\n", row.claim)?;
        if !row.differs.is_empty() {
            writeln!(text, "**Differs from the paper.** {}\n", row.differs)?;
        }
        let Some(kept) = kept else { continue };
        writeln!(text, "| | found | expected |\n| --- | --- | --- |")?;
        for (name, found, expected) in &kept.outcome.numbers {
            // A bar would begin a column.
            let [name, found, expected] = [name, found, expected].map(|cell| cell.replace('|', "\\|"));
            writeln!(text, "| {name} | {found} | {expected} |")?;
        }
        let picture = picture_of(results, row);
        if let (true, Some(name), Some(folder)) = (picture.exists(), picture.file_name(), results.file_name()) {
            writeln!(text, "\n![{}]({}/{})", row.id, folder.display(), Path::new(name).display())?;
        }
        writeln!(text, "\n{}\n", kept.made_by())?;
    }
    Ok(text)
}
