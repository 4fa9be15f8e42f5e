//! Consecutive training documents of a corpus, read in parts.

use super::read::Corpus;
use crate::lda::{DocumentSource, Documents};
use std::error::Error;
use std::ops::Range;
use std::sync::Arc;

/// Consecutive training documents of a corpus, such as those of an agent.
pub struct CorpusShard {
    corpus: Arc<Corpus>,
    documents: Range<usize>,
}

impl CorpusShard {
    /// These training documents.
    pub fn new(corpus: Arc<Corpus>, documents: Range<usize>) -> Self {
        Self { corpus, documents }
    }
}

impl DocumentSource for CorpusShard {
    fn vocabulary(&self) -> u32 {
        self.corpus.words()
    }

    fn len(&self) -> usize {
        self.documents.len()
    }

    fn read(&self, documents: Range<usize>) -> Result<Documents, Box<dyn Error + Send + Sync>> {
        let first = self.documents.start;
        Ok(self.corpus.train(first + documents.start..first + documents.end)?)
    }
}
