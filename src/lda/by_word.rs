//! Collapsed Gibbs sweeps word by word, at a cost that follows the topics of a token's document and the logarithm of all topics.
//!
//! With q_k = (n_kw + β)/(n_k + W β), P(z = k | rest) ∝ n_dk q_k + α q_k: the first part is a sum over the topics that the document has, and
//! the second is drawn from a tree over q, which changes in two leaves with each token of the word that changes its topic (Yu, Hsieh,
//! Yun, Vishwanathan & Dhillon 2015, "A scalable asynchronous distributed algorithm for topic modeling").

use super::collapsed::{Tokens, TopicCounts};
use crate::random::Stream;
use rand::RngExt;

/// What a sweep over some tokens needs beside topics and counts; topics and the sweep's bits do not depend on what was swept before.
#[derive(Clone, Debug)]
pub struct WordSweep {
    /// The tokens in the order of their words, as places among all tokens, and the document of each.
    places: Vec<u32>,
    documents: Vec<u32>,
    /// The tokens of each word that occurs: the word, and where they end in that order.
    words: Vec<(u32, usize)>,
    /// Where the topics of each document begin; there are as many places as it can have topics.
    starts: Vec<usize>,
    /// How many topics a document has.
    lengths: Vec<u32>,
    /// These topics, and how many tokens of the document each.
    held: Vec<(u32, u32)>,
    tree: Tree,
}

impl WordSweep {
    /// For these tokens and K topics.
    ///
    /// # Panics
    /// When there are 2^32 tokens or more.
    pub fn new(tokens: &Tokens, topics: usize) -> Self {
        assert!(u32::try_from(tokens.len()).is_ok(), "at most 2^32 tokens of an agent");
        let mut places: Vec<u32> = (0..).take(tokens.len()).collect();
        // Stable: the tokens of a word stay in the order of their documents.
        places.sort_by_key(|&place| tokens.words()[place as usize]);
        let mut of_place = Vec::with_capacity(tokens.len());
        let mut starts = vec![0];
        for (document, span) in (0..).zip(tokens.spans()) {
            of_place.resize(span.end, document);
            starts.push(starts[starts.len() - 1] + span.len().min(topics));
        }
        let mut words: Vec<(u32, usize)> = Vec::new();
        for (at, &place) in places.iter().enumerate() {
            let word = tokens.words()[place as usize];
            match words.last_mut() {
                Some((last, end)) if *last == word => *end = at + 1,
                _ => words.push((word, at + 1)),
            }
        }
        Self {
            documents: places.iter().map(|&place| of_place[place as usize]).collect(),
            places,
            words,
            lengths: vec![0; tokens.documents()],
            held: vec![(0, 0); starts[starts.len() - 1]],
            starts,
            tree: Tree::new(topics),
        }
    }

    /// Sweeps over all tokens, word by word; word w draws from `stream(w)`. `topics` has the topic of each token, and `counts` has them
    /// and perhaps more.
    ///
    /// # Panics
    /// When topics are not as many as tokens, or a word or topic is none of the counts.
    pub fn sweep(
        &mut self,
        topics: &mut [u32],
        counts: &mut TopicCounts,
        alpha: f64,
        beta: f64,
        mut stream: impl FnMut(u32) -> Stream,
    ) {
        assert_eq!(self.places.len(), topics.len(), "a topic for each token");
        self.lengths.fill(0);
        for (at, &place) in self.places.iter().enumerate() {
            let mut document = Held::of(&mut self.held, &self.starts, &mut self.lengths, self.documents[at]);
            document.add(topics[place as usize]);
        }
        let spread = beta * counts.vocabulary() as f64;
        let mut scales: Vec<f64> = counts.totals().iter().map(|&total| 1.0 / (f64::from(total) + spread)).collect();
        let mut running = Vec::new();
        let mut from = 0;
        for &(word, to) in &self.words {
            let mut stream = stream(word);
            let (row, totals) = counts.row_and_totals(word);
            self.tree.fill(row.iter().zip(&scales).map(|(&count, scale)| (f64::from(count) + beta) * scale));
            for at in from..to {
                let topic = &mut topics[self.places[at] as usize];
                let mut document = Held::of(&mut self.held, &self.starts, &mut self.lengths, self.documents[at]);
                let old = *topic;
                // q of its own topic without the token; the tree stays as it is until the topic changes.
                let k = old as usize;
                let without = (f64::from(row[k] - 1) + beta) / (f64::from(totals[k] - 1) + spread);
                let (mut sum, mut own) = (0.0, 0);
                running.clear();
                for (place, &(topic, count)) in document.topics().iter().enumerate() {
                    sum += if topic == old {
                        own = place;
                        f64::from(count - 1) * without
                    } else {
                        f64::from(count) * self.tree.leaf(topic as usize)
                    };
                    running.push(sum);
                }
                let all = self.tree.sum() - self.tree.leaf(k) + without;
                let point = stream.random::<f64>() * (sum + alpha * all);
                let new = if point < sum {
                    // The last running sum is the sum itself.
                    let place = running.iter().position(|&running| point < running).unwrap_or(0);
                    document.topics()[place].0
                } else {
                    loop {
                        let found = self.tree.find(stream.random::<f64>() * self.tree.sum());
                        // The tree has too much of the token's own topic.
                        if found != k || stream.random::<f64>() * self.tree.leaf(k) < without {
                            break found as u32;
                        }
                    }
                };
                if new == old {
                    continue;
                }
                document.exchange(own, new);
                for (topic, one) in [(old, -1), (new, 1)] {
                    let k = topic as usize;
                    row[k] += one;
                    totals[k] += one;
                    scales[k] = 1.0 / (f64::from(totals[k]) + spread);
                    self.tree.set(k, (f64::from(row[k]) + beta) * scales[k]);
                }
                *topic = new;
            }
            from = to;
        }
    }
}

/// The topics of one document.
struct Held<'a> {
    held: &'a mut [(u32, u32)],
    length: &'a mut u32,
}

impl<'a> Held<'a> {
    #[inline]
    fn of(held: &'a mut [(u32, u32)], starts: &[usize], lengths: &'a mut [u32], document: u32) -> Self {
        let document = document as usize;
        Self { held: &mut held[starts[document]..starts[document + 1]], length: &mut lengths[document] }
    }

    #[inline]
    fn topics(&self) -> &[(u32, u32)] {
        &self.held[..*self.length as usize]
    }

    #[inline]
    fn place(&self, topic: u32) -> Option<usize> {
        self.topics().iter().position(|&(other, _)| other == topic)
    }

    #[inline]
    fn add(&mut self, topic: u32) {
        match self.place(topic) {
            Some(place) => self.held[place].1 += 1,
            None => {
                self.held[*self.length as usize] = (topic, 1);
                *self.length += 1;
            }
        }
    }

    /// Moves a token from the topic in this place to another topic.
    #[inline]
    fn exchange(&mut self, place: usize, topic: u32) {
        self.held[place].1 -= 1;
        if self.held[place].1 == 0 {
            *self.length -= 1;
            self.held[place] = self.held[*self.length as usize];
        }
        self.add(topic);
    }
}

/// A binary tree over numbers, each node the sum of the two below it: one changes, and one is drawn, in the logarithm of their count.
#[derive(Clone, Debug)]
struct Tree {
    numbers: usize,
    /// The leaves begin here: a power of two.
    first: usize,
    nodes: Vec<f64>,
}

impl Tree {
    fn new(numbers: usize) -> Self {
        let first = numbers.next_power_of_two();
        Self { numbers, first, nodes: vec![0.0; 2 * first] }
    }

    fn fill(&mut self, numbers: impl Iterator<Item = f64>) {
        self.nodes[self.first..].iter_mut().zip(numbers).for_each(|(node, number)| *node = number);
        for node in (1..self.first).rev() {
            self.nodes[node] = self.nodes[2 * node] + self.nodes[2 * node + 1];
        }
    }

    #[inline]
    fn leaf(&self, at: usize) -> f64 {
        self.nodes[self.first + at]
    }

    #[inline]
    fn sum(&self) -> f64 {
        self.nodes[1]
    }

    #[inline]
    fn set(&mut self, at: usize, number: f64) {
        let mut node = self.first + at;
        self.nodes[node] = number;
        while node > 1 {
            node /= 2;
            self.nodes[node] = self.nodes[2 * node] + self.nodes[2 * node + 1];
        }
    }

    /// The first number with which the running sum is above `point`.
    #[inline]
    fn find(&self, mut point: f64) -> usize {
        let mut node = 1;
        while node < self.first {
            node *= 2;
            let left = self.nodes[node];
            if point >= left {
                point -= left;
                node += 1;
            }
        }
        // Rounding may lead past the end.
        (node - self.first).min(self.numbers - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tree_finds_what_running_sums_find() {
        for numbers in [1, 2, 5, 8, 13] {
            let mut tree = Tree::new(numbers);
            let mut values: Vec<f64> = (0..numbers).map(|at| (at * 7 % 5) as f64).collect();
            tree.fill(values.iter().copied());
            for change in 0..20 {
                values[change * 3 % numbers] = (change % 4) as f64;
                tree.set(change * 3 % numbers, values[change * 3 % numbers]);
                let sum: f64 = values.iter().sum();
                assert_eq!(tree.sum(), sum);
                for point in 0..(2.0 * sum) as usize {
                    let point = point as f64 / 2.0;
                    let mut running = 0.0;
                    let exact = values.iter().position(|value| {
                        running += value;
                        point < running
                    });
                    assert_eq!(Some(tree.find(point)), exact, "{values:?} {point}");
                }
            }
        }
    }
}
