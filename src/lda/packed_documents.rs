//! Documents that are kept in one to three bytes for each distinct word, and unpacked a few at a time, such as those of a minibatch.
//!
//! A document is a sequence of varints. Each distinct word is an entry 2 g + m: g is the number of words of the vocabulary that are skipped
//! since the previous entry, and m = 1 if the document has more than one token of it. In this case the number of tokens less 2 follows.

use super::documents::{Bag, DocumentSource, Documents};
use crate::varint;
use std::error::Error;
use std::slice::Iter;

/// The number of documents that are read at once.
const READ_AT_ONCE: usize = 4096;

/// Documents in compressed form.
#[derive(Clone, Debug)]
pub struct PackedDocuments {
    vocabulary: u32,
    /// Document d has the bytes `starts[d]..starts[d + 1]`.
    starts: Vec<usize>,
    bytes: Vec<u8>,
    largest_count: u32,
}

impl PackedDocuments {
    /// Packs these documents, a few at a time.
    ///
    /// # Errors
    /// If they cannot be read.
    pub fn new(documents: &dyn DocumentSource) -> Result<Self, Box<dyn Error + Send + Sync>> {
        let all = documents.len();
        let mut starts = Vec::with_capacity(all + 1);
        starts.push(0);
        let mut packed = Self { vocabulary: documents.vocabulary(), starts, bytes: Vec::new(), largest_count: 0 };
        for first in (0..all).step_by(READ_AT_ONCE) {
            let read = documents.read(first..all.min(first + READ_AT_ONCE))?;
            read.iter().for_each(|bag| packed.push(bag));
        }
        packed.bytes.shrink_to_fit();
        Ok(packed)
    }

    fn push(&mut self, bag: Bag<'_>) {
        let mut first_possible = 0;
        for (&word, &count) in bag.words.iter().zip(bag.counts) {
            let gap = u64::from(word - first_possible);
            first_possible = word + 1;
            varint::push(&mut self.bytes, gap << 1 | u64::from(count > 1));
            if count > 1 {
                varint::push(&mut self.bytes, u64::from(count - 2));
            }
            self.largest_count = self.largest_count.max(count);
        }
        self.starts.push(self.bytes.len());
    }

    /// The number of documents.
    pub fn len(&self) -> usize {
        self.starts.len() - 1
    }

    /// Whether there are no documents.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The largest count of a word in a document.
    pub fn largest_count(&self) -> u32 {
        self.largest_count
    }

    /// Unpacks the documents with these indices, which replace those in `documents`.
    ///
    /// # Panics
    /// If there is no such document.
    pub fn unpack(&self, indices: &[usize], documents: &mut Documents) {
        documents.clear(self.vocabulary);
        let (mut words, mut counts) = (Vec::new(), Vec::new());
        for &index in indices {
            words.clear();
            counts.clear();
            let mut bytes = self.bytes[self.starts[index]..self.starts[index + 1]].iter();
            let mut first_possible = 0;
            while let Some(entry) = varint::next(&mut bytes) {
                let word = first_possible + (entry >> 1) as u32;
                first_possible = word + 1;
                words.push(word);
                counts.push(if entry & 1 == 1 { repeated_count(&mut bytes) } else { 1 });
            }
            documents.push(&words, &counts);
        }
    }
}

/// The count of a word after an entry with m = 1.
fn repeated_count(bytes: &mut Iter<u8>) -> u32 {
    let Some(less_two) = varint::next(bytes) else { panic!("a packed document ends in the middle of an entry") };
    less_two as u32 + 2
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn documents_are_unpacked_as_they_were() {
        let last = u32::MAX - 1;
        let mut documents = Documents::new(u32::MAX);
        documents.push(&[0, 3, 4, 300, last], &[2, 1, 7, 200, 1]);
        documents.push(&[], &[]);
        documents.push(&[last], &[u32::MAX]);
        documents.push(&[1, 2], &[1, 1]);
        let packed = PackedDocuments::new(&documents).unwrap();
        assert_eq!((packed.len(), packed.is_empty(), packed.largest_count()), (4, false, u32::MAX));
        let mut unpacked = Documents::new(3);
        packed.unpack(&[0, 1, 2, 3], &mut unpacked);
        assert_eq!(unpacked, documents);
        packed.unpack(&[3, 0, 3], &mut unpacked);
        let chosen = [3, 0, 3].map(|number| documents.document(number));
        assert_eq!(unpacked.iter().collect::<Vec<_>>(), chosen);
    }

    #[test]
    fn many_documents_are_packed_in_parts() {
        let mut documents = Documents::new(50);
        (0..2 * READ_AT_ONCE as u32 + 7).for_each(|number| documents.push(&[number % 40, number % 40 + 3], &[1, number % 3 + 1]));
        let packed = PackedDocuments::new(&documents).unwrap();
        let all: Vec<usize> = (0..packed.len()).collect();
        let mut unpacked = Documents::new(50);
        packed.unpack(&all, &mut unpacked);
        assert_eq!(unpacked, documents);
        // Two entries with a byte each, and two of three documents with a byte for the second count.
        assert_eq!(packed.bytes.len(), documents.iter().map(|bag| 2 + usize::from(bag.counts[1] > 1)).sum::<usize>());
    }
}
