//! Topic weights of documents: each rank predicts blocks of them, and rank 0 writes all in the order of the documents.

use super::all_ranks::agree;
use super::args::{BLOCK, PredictArgs};
use super::files::refuse_for;
use super::output::Predicted;
use crate::cli::bar::{COUNT, progress_bar};
use crate::data::{Format, Split, detect};
use crate::job::Ranks;
use crate::job::topic_model::{Adopted, TopicModel};
use crate::text;
use anyhow::{anyhow, ensure};
use std::io::Write;
use std::ops::Range;

/// Rank 0 receives at most this many weights at once, each of about 20 characters.
const MAX_WEIGHTS_AT_ONCE: usize = 1 << 25;

/// Writes the topic weights of each document, with its index in the imported files. Every rank calls this; rank 0 has a place to write to.
///
/// # Errors
/// On all ranks, if a rank cannot read the documents or rank 0 cannot write.
pub(super) fn predict_documents(
    args: &PredictArgs,
    model: &TopicModel,
    ranks: &Ranks,
    mut to: Option<Box<dyn Write>>,
) -> anyhow::Result<Predicted> {
    let documents = agree(ranks, adopt(args, model))?;
    check_same(ranks, model, &documents)?;
    let split = agree(ranks, args.split(documents.documents(Split::Test) > 0, "documents"))?;
    let (all, rank, count) = (documents.documents(split), ranks.rank() as usize, ranks.count() as usize);
    let block = (MAX_WEIGHTS_AT_ONCE / (model.topics() * count)).clamp(1, BLOCK);
    let bar = ranks.is_root().then(|| progress_bar("documents", COUNT));
    if let Some(bar) = &bar {
        bar.set_length(all as u64);
    }
    let mut write = |texts: &[Vec<u8>]| -> anyhow::Result<()> {
        let Some(to) = &mut to else { return Ok(()) };
        texts.iter().try_for_each(|text| to.write_all(text))?;
        Ok(to.flush()?)
    };
    let mut written = head(model).and_then(|head| write(&[head]));
    for first in (0..all).step_by(block * count) {
        let start = all.min(first + rank * block);
        let mine = start..all.min(start + block);
        let lines = written.and_then(|()| lines(model, &documents, split, mine));
        let lines = agree(ranks, lines)?;
        written = write(&ranks.collect(&lines));
        if let Some(bar) = &bar {
            bar.set_position((first + block * count).min(all) as u64);
        }
    }
    if let Some(bar) = bar {
        bar.finish_and_clear();
    }
    agree(ranks, written)?;
    let count = text::counted(all, "document");
    Ok(Predicted { count, unpredicted: None, of_new_groups: 0, filled_in: 0, far: None, metrics: None })
}

/// Checks that all ranks see the same topics and documents.
fn check_same(ranks: &Ranks, model: &TopicModel, documents: &Adopted) -> anyhow::Result<()> {
    if ranks.count() == 1 {
        return Ok(());
    }
    let mine = format!("{} {}", model.digest(), documents.digest());
    let of_root = ranks.broadcast(mine.as_bytes());
    let is_same = match of_root == mine.as_bytes() {
        true => Ok(()),
        false => Err(anyhow!("this rank sees another run or other documents than rank 0: give every rank the same files")),
    };
    agree(ranks, is_same)
}

/// Opens the documents.
fn adopt(args: &PredictArgs, model: &TopicModel) -> anyhow::Result<Adopted> {
    refuse_for(
        "a corpus",
        args,
        &["label", "header", "delimiter", "decimal", "features-name", "channels", "interval", "of", "draws", "keep"],
    )?;
    ensure!(
        detect(&args.data)? == Format::Hdf5,
        "{file}: the run is a topic model and needs a corpus: import the documents first, for example with `mpibayes import text {file} \
         --least-documents 1 --most-share 1 -o new.h5`, which keeps all of their words",
        file = args.data.display()
    );
    Ok(model.adopt(&args.data)?)
}

/// The first line of the predictions.
fn head(model: &TopicModel) -> anyhow::Result<Vec<u8>> {
    let names = ["document".to_owned(), "tokens".to_owned()];
    as_csv([names.into_iter().chain((0..model.topics()).map(|topic| format!("topic_{topic}")))])
}

/// The lines of these documents.
fn lines(model: &TopicModel, documents: &Adopted, split: Split, range: Range<usize>) -> anyhow::Result<Vec<u8>> {
    let (bags, numbers) = (documents.read(split, range.clone())?, documents.numbers(split, range.clone())?);
    let weights = model.weights(&bags, range.start as u64);
    as_csv(bags.iter().zip(weights.rows()).zip(numbers).map(|((bag, weights), number)| {
        [number.to_string(), bag.tokens().to_string()].into_iter().chain(weights.into_iter().map(f64::to_string))
    }))
}

fn as_csv(rows: impl IntoIterator<Item = impl Iterator<Item = String>>) -> anyhow::Result<Vec<u8>> {
    let mut csv = csv::Writer::from_writer(Vec::new());
    rows.into_iter().try_for_each(|row| csv.write_record(row))?;
    Ok(csv.into_inner()?)
}
