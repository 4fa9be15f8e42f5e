//! Topic coherence (UMass and NPMI): how often the top words of a topic occur in the same documents.

use super::documents::Bag;
use std::collections::HashMap;

/// The coherence of a topic.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Coherence {
    /// Mean over pairs of words, v before w in the topic, of log (D(v, w) + 1)/D(v), with D the number of documents that contain
    /// the words. Usually negative; higher is better (Mimno et al. 2011).
    pub umass: f64,
    /// Mean over pairs of log (p(v, w)/(p(v) p(w)))/−log p(v, w), with p the fraction of documents that contain the words: −1 if they
    /// never occur together, 0 if independent, 1 if always together (Bouma 2009; Aletras & Stevenson 2013).
    pub npmi: f64,
}

/// Co-document counts of the top words of topics.
#[derive(Clone, Debug)]
pub struct CoherenceCounts {
    /// The topics of each word, and its rank in each.
    places: HashMap<u32, Vec<(usize, usize)>>,
    /// For each topic, the number of documents with the words of ranks i ≤ j, as a packed triangle.
    together: Vec<Vec<u64>>,
    /// The number of words of each topic.
    lengths: Vec<usize>,
    documents: u64,
    /// The topics and ranks of the words of a document.
    present: Vec<(usize, usize)>,
}

/// The index of (i, j), i ≤ j, in a packed triangle.
fn triangle(i: usize, j: usize) -> usize {
    j * (j + 1) / 2 + i
}

impl CoherenceCounts {
    /// For topics given by their top words, in order of rank.
    pub fn new(topics: &[Vec<u32>]) -> Self {
        let mut places: HashMap<u32, Vec<(usize, usize)>> = HashMap::new();
        for (topic, words) in topics.iter().enumerate() {
            for (place, &word) in words.iter().enumerate() {
                places.entry(word).or_default().push((topic, place));
            }
        }
        let lengths: Vec<usize> = topics.iter().map(Vec::len).collect();
        let together = lengths.iter().map(|length| vec![0; length * (length + 1) / 2]).collect();
        Self { places, together, lengths, documents: 0, present: Vec::new() }
    }

    /// Counts a document.
    pub fn add(&mut self, bag: Bag<'_>) {
        self.documents += 1;
        self.present.clear();
        for (word, _) in bag.words.iter().zip(bag.counts).filter(|(_, count)| **count > 0) {
            self.present.extend(self.places.get(word).into_iter().flatten());
        }
        self.present.sort_unstable();
        for of_topic in self.present.chunk_by(|a, b| a.0 == b.0) {
            for (at, &(topic, j)) in of_topic.iter().enumerate() {
                of_topic[..=at].iter().for_each(|&(_, i)| self.together[topic][triangle(i, j)] += 1);
            }
        }
    }

    /// The coherence of each topic; NaN for fewer than two words.
    pub fn finish(&self) -> Vec<Coherence> {
        let all = self.documents as f64;
        let topic = |(counts, &length): (&Vec<u64>, &usize)| {
            let (mut umass, mut npmi) = (0.0, 0.0);
            let count = |i: usize, j: usize| counts[triangle(i, j)] as f64;
            for w in 1..length {
                for v in 0..w {
                    let both = count(v, w);
                    // `max` for words that occur in no document.
                    umass += ((both + 1.0) / count(v, v).max(1.0)).ln();
                    npmi += match both {
                        0.0 => -1.0,
                        both if both == all => 1.0,
                        both => (both * all / (count(v, v) * count(w, w))).ln() / -(both / all).ln(),
                    };
                }
            }
            let pairs = (length * length.saturating_sub(1) / 2) as f64;
            Coherence { umass: umass / pairs, npmi: npmi / pairs }
        };
        self.together.iter().zip(&self.lengths).map(topic).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counted(topics: &[Vec<u32>], documents: &[&[u32]]) -> Vec<Coherence> {
        let mut counts = CoherenceCounts::new(topics);
        for words in documents {
            counts.add(Bag { words, counts: &vec![1; words.len()] });
        }
        counts.finish()
    }

    #[test]
    fn coherence_agrees_with_the_formulas() {
        let documents: [&[u32]; 5] = [&[0, 1, 2], &[0, 1], &[0, 3], &[2], &[3]];
        let [one, other] = counted(&[vec![0, 1], vec![1, 3, 0]], &documents)[..] else { panic!("two topics") };
        assert!((one.umass - (3.0_f64 / 3.0).ln()).abs() < 1e-15, "{one:?}");
        assert!((one.npmi - (2.0 * 5.0 / (3.0_f64 * 2.0)).ln() / (5.0_f64 / 2.0).ln()).abs() < 1e-15, "{one:?}");
        // 1 and 3 never meet; 1 and 0 do in two documents, 3 and 0 in one.
        let umass = ((1.0_f64 / 2.0).ln() + (3.0_f64 / 2.0).ln() + (2.0_f64 / 2.0).ln()) / 3.0;
        let pair = |both: f64, v: f64, w: f64| (both * 5.0 / (v * w)).ln() / (5.0 / both).ln();
        let npmi = (-1.0 + pair(2.0, 2.0, 3.0) + pair(1.0, 2.0, 3.0)) / 3.0;
        assert!((other.umass - umass).abs() < 1e-15 && (other.npmi - npmi).abs() < 1e-15, "{other:?}");
    }

    #[test]
    fn words_that_always_occur_together_have_npmi_1_and_single_words_nan() {
        let [pair, alone] = counted(&[vec![4, 7], vec![7]], &[&[4, 7], &[4, 7]])[..] else { panic!("two topics") };
        assert_eq!(pair.npmi, 1.0);
        assert!(alone.npmi.is_nan() && alone.umass.is_nan());
    }
}
