//! Estimation of the Dirichlet priors α and β from topic counts.
//!
//! A vector of counts n_i of D outcomes with the sum n has the likelihood Γ(Σ a_i)/Γ(n + Σ a_i) Π_i Γ(n_i + a_i)/Γ(a_i) under a prior a.
//! With equal a_i = a, the fixed-point iteration a ← a Σ \[ψ(n_i + a) − ψ(a)\] / (D Σ \[ψ(n + D a) − ψ(D a)\]), with sums over many
//! vectors, increases the likelihood; with one a_i for each outcome, a_i ← a_i Σ \[ψ(n_i + a_i) − ψ(a_i)\] / Σ \[ψ(n + Σ a) − ψ(Σ a)\]
//! does (Minka 2000, "Estimating a Dirichlet distribution"). A prior Gamma(2, 1) of each a_i adds 1 to the numerator and to the denominator of the
//! latter. Both only need histograms of the counts (Wallach 2008, "Structured topic models for language", section 2.3).

use serde::{Deserialize, Serialize};
use statrs::function::gamma::digamma;
use std::iter::Peekable;
use std::ops::Range;
use std::slice::Iter;

/// α_k, the prior count of each topic in a document.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Alpha {
    /// The same for all topics.
    Symmetric(f64),
    /// One for each topic.
    Asymmetric(Vec<f64>),
}

impl Alpha {
    /// The mean over the topics.
    pub fn mean(&self) -> f64 {
        match self {
            Self::Symmetric(alpha) => *alpha,
            Self::Asymmetric(alphas) => alphas.iter().sum::<f64>() / alphas.len() as f64,
        }
    }

    /// α of K topics.
    ///
    /// # Panics
    /// The iterator panics if K is above the number of α_k.
    pub fn of_topics(&self, topics: usize) -> impl ExactSizeIterator<Item = f64> {
        (0..topics).map(|topic| match self {
            Self::Symmetric(alpha) => *alpha,
            Self::Asymmetric(alphas) => alphas[topic],
        })
    }

    /// α of K topics as multiples of the mean.
    ///
    /// # Panics
    /// As [`Alpha::of_topics`].
    pub fn relative(&self, topics: usize) -> impl ExactSizeIterator<Item = f64> {
        let mean = self.mean();
        self.of_topics(topics).map(move |alpha| alpha / mean)
    }
}

/// The current values of the priors.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Priors {
    /// α, the prior of the topic weights of a document.
    pub alpha: Alpha,
    /// β, the prior of the word probabilities of a topic.
    pub beta: f64,
}

impl Priors {
    /// The bits of all values, which are appended to transferred counts: of α, or of α_1, ..., α_K; and of β.
    pub fn to_i32s(&self) -> Vec<i32> {
        let alphas = match &self.alpha {
            Alpha::Symmetric(alpha) => std::slice::from_ref(alpha),
            Alpha::Asymmetric(alphas) => alphas,
        };
        let halves = |value: &f64| {
            let bytes = value.to_bits().to_le_bytes();
            [0, 4].map(|at| i32::from_le_bytes(std::array::from_fn(|byte| bytes[at + byte])))
        };
        alphas.iter().chain([&self.beta]).flat_map(halves).collect()
    }

    /// The values with these bits, for K topics. None if the length is that of neither one α nor K of them.
    pub fn from_i32s(numbers: &[i32], topics: usize) -> Option<Self> {
        let (pairs, []) = numbers.as_chunks() else { return None };
        let value =
            |&[low, high]: &[i32; 2]| f64::from_bits(u64::from(low.cast_unsigned()) | u64::from(high.cast_unsigned()) << 32);
        let (beta, alphas) = pairs.split_last()?;
        let alpha = match alphas {
            [alpha] => Alpha::Symmetric(value(alpha)),
            alphas if alphas.len() == topics => Alpha::Asymmetric(alphas.iter().map(value).collect()),
            _ => return None,
        };
        Some(Self { alpha, beta: value(beta) })
    }
}

/// The statistics from which a prior is estimated: histograms of counts and of their sums.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PriorStatistics {
    /// The histogram of the counts n_i above 0: one of all outcomes together, or one of each outcome.
    counts: Vec<Histogram>,
    /// The histogram of the sums n.
    totals: Histogram,
}

/// The range of estimates. The likelihood may have no maximum inside, for example if every document has one topic.
const RANGE: (f64, f64) = (1e-6, 1e4);
/// The maximum number of iterations, and the relative change at which they stop.
const MAX_STEPS: usize = 20;
const TOLERANCE: f64 = 1e-6;

impl PriorStatistics {
    /// The statistics for one α: a histogram of the counts n_dk of `topic_count` topics, pooled over topics. `spans` are the tokens of each
    /// document, `topics` their topics.
    ///
    /// # Panics
    /// If a span exceeds the topics, or a topic is not below K.
    pub fn for_symmetric_alpha<T: Copy + Into<u32>>(
        spans: impl Iterator<Item = Range<usize>>,
        topics: &[T],
        topic_count: usize,
    ) -> Self {
        let mut counts = Tally::default();
        let totals = Self::count_topics(spans, topics, topic_count, |_, count| counts.add(count.into()));
        Self { counts: vec![counts.into()], totals }
    }

    /// As [`PriorStatistics::for_symmetric_alpha`], with a histogram for each topic.
    ///
    /// # Panics
    /// As there.
    pub fn for_asymmetric_alpha<T: Copy + Into<u32>>(
        spans: impl Iterator<Item = Range<usize>>,
        topics: &[T],
        topic_count: usize,
    ) -> Self {
        let mut counts: Vec<Tally> = (0..topic_count).map(|_| Tally::compact()).collect();
        let totals = Self::count_topics(spans, topics, topic_count, |topic, count| counts[topic].add(count.into()));
        Self { counts: counts.into_iter().map(Into::into).collect(), totals }
    }

    /// Calls `add(k, n_dk)` once for each topic that a document has, and `add(k, 0)` for each further token of that topic. Returns the
    /// histogram of the lengths of documents.
    fn count_topics<T: Copy + Into<u32>>(
        spans: impl Iterator<Item = Range<usize>>,
        topics: &[T],
        topic_count: usize,
        mut add: impl FnMut(usize, u32),
    ) -> Histogram {
        let mut in_document = vec![0_u32; topic_count];
        let mut totals = Tally::default();
        let place = |topic: &T| {
            let topic: u32 = (*topic).into();
            topic as usize
        };
        for span in spans {
            let topics = &topics[span];
            topics.iter().for_each(|topic| in_document[place(topic)] += 1);
            topics.iter().for_each(|topic| add(place(topic), std::mem::take(&mut in_document[place(topic)])));
            totals.add(topics.len() as u64);
        }
        totals.into()
    }

    /// The statistics of pseudo-counts: `outcomes_of_vectors` says how many outcomes of each vector have this pseudo-count.
    pub fn of_pseudo_counts(count: u32, outcomes_of_vectors: &[u32]) -> Self {
        let totals = outcomes_of_vectors.iter().map(|&outcomes| u64::from(outcomes) * u64::from(count)).collect();
        let all: u64 = outcomes_of_vectors.iter().map(|&outcomes| u64::from(outcomes)).sum();
        let counts = if count > 0 && all > 0 { vec![(count.into(), all)] } else { Vec::new() };
        Self { counts: vec![Histogram(counts)], totals }
    }

    /// The statistics for β: the topic-word counts (W × K, at least 0) of a range of topics.
    ///
    /// # Panics
    /// If the range exceeds the number of topics.
    pub fn for_beta(counts: &[i32], topics: usize, topic_range: Range<usize>) -> Self {
        if topic_range.is_empty() {
            return Self::default();
        }
        let mut totals = vec![0_u64; topic_range.len()];
        let mut of_words = Tally::default();
        for row in counts.chunks_exact(topics) {
            for (total, count) in totals.iter_mut().zip(&row[topic_range.clone()]) {
                *total += u64::from(count.unsigned_abs());
                of_words.add(count.unsigned_abs().into());
            }
        }
        Self { counts: vec![of_words.into()], totals: totals.into_iter().collect() }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.counts.is_empty()
    }

    /// Whether each topic has a histogram of its own; false for a single topic.
    pub fn is_of_each_topic(&self) -> bool {
        self.counts.len() > 1
    }

    /// Adds the statistics of other documents or topics.
    pub fn merge(&mut self, other: &Self) {
        self.counts.resize(self.counts.len().max(other.counts.len()), Histogram::default());
        self.counts.iter_mut().zip(&other.counts).for_each(|(counts, other)| counts.merge(other));
        self.totals.merge(&other.totals);
    }

    /// Iterates from `prior` towards the most probable values of the topics' α_k, given the statistics of each topic and a weak prior
    /// α_k ~ Gamma(2, 1), which keeps α_k of a topic without tokens above 0. Without tokens the values do not change.
    pub fn update_alphas(&self, prior: &Alpha, topics: usize) -> Alpha {
        let mut alphas: Vec<f64> = prior.of_topics(topics).collect();
        if self.totals.0.is_empty() {
            return Alpha::Asymmetric(alphas);
        }
        for _ in 0..MAX_STEPS {
            let totals = self.totals.digamma_sum(alphas.iter().sum());
            let mut largest_change: f64 = 0.0;
            for (alpha, counts) in alphas.iter_mut().zip(&self.counts) {
                let updated = ((*alpha * counts.digamma_sum(*alpha) + 1.0) / (totals + 1.0)).clamp(RANGE.0, RANGE.1);
                largest_change = largest_change.max((updated / *alpha - 1.0).abs());
                *alpha = updated;
            }
            if largest_change < TOLERANCE {
                break;
            }
        }
        Alpha::Asymmetric(alphas)
    }

    /// Iterates from `prior` towards the maximum-likelihood value, for vectors of `outcomes` counts. The value does not
    /// change without tokens, or if the likelihood is constant.
    pub fn update_prior(&self, prior: f64, outcomes: usize) -> f64 {
        self.update_prior_beyond(&Self::default(), prior, outcomes)
    }

    /// As [`PriorStatistics::update_prior`], where the counts n_i include pseudo-counts c_i with these statistics: the prior of outcome i is the
    /// value that is estimated plus c_i. A sum of ψ(n_i + a) − ψ(c_i + a) is then the sum of ψ(n_i + a) − ψ(a) less that of ψ(c_i + a) − ψ(a),
    /// which histograms give.
    pub fn update_prior_beyond(&self, pseudo_counts: &Self, mut prior: f64, outcomes: usize) -> f64 {
        let Some(counts) = self.counts.first() else { return prior };
        let beyond = |counts: &Histogram, pseudo: Option<&Histogram>, a: f64| {
            counts.digamma_sum(a) - pseudo.map_or(0.0, |pseudo| pseudo.digamma_sum(a))
        };
        let all = outcomes as f64;
        for _ in 0..MAX_STEPS {
            let total = beyond(&self.totals, Some(&pseudo_counts.totals), all * prior);
            let change = beyond(counts, pseudo_counts.counts.first(), prior) / (all * total);
            if !change.is_finite() {
                return prior;
            }
            prior = (prior * change).clamp(RANGE.0, RANGE.1);
            if (change - 1.0).abs() < TOLERANCE {
                break;
            }
        }
        prior
    }
}

/// Distinct numbers above 0 in ascending order, with their frequencies.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Histogram(Vec<(u64, u64)>);

impl Histogram {
    fn merge(&mut self, other: &Self) {
        let mut both = Vec::with_capacity(self.0.len().max(other.0.len()));
        let (mut own, mut others) = (self.0.iter().peekable(), other.0.iter().peekable());
        while let Some(&&(number, _)) = [own.peek(), others.peek()].into_iter().flatten().min() {
            let times = |list: &mut Peekable<Iter<(u64, u64)>>| list.next_if(|next| next.0 == number).map_or(0, |next| next.1);
            both.push((number, times(&mut own) + times(&mut others)));
        }
        self.0 = both;
    }

    /// Σ \[ψ(n + a) − ψ(a)\] = Σ_(i ≥ 0) |{n > i}|/(a + i).
    fn digamma_sum(&self, a: f64) -> f64 {
        let mut above: u64 = self.0.iter().map(|(_, times)| times).sum();
        let (mut from, mut sum) = (0_u64, 0.0);
        for &(number, times) in &self.0 {
            let (low, steps) = (a + from as f64, number - from);
            let increase = match steps {
                // A few quotients are faster than two digamma evaluations.
                ..=16 => (0..steps).map(|i| 1.0 / (low + i as f64)).sum::<f64>(),
                _ => digamma(a + number as f64) - digamma(low),
            };
            sum += above as f64 * increase;
            above -= times;
            from = number;
        }
        sum
    }
}

impl FromIterator<u64> for Histogram {
    fn from_iter<I: IntoIterator<Item = u64>>(numbers: I) -> Self {
        let mut tally = Tally::default();
        numbers.into_iter().for_each(|number| tally.add(number));
        tally.into()
    }
}

/// A histogram under construction.
struct Tally {
    /// The frequency of each small number.
    small: Vec<u64>,
    /// Numbers without a place in `small`, once for each time that they were added.
    large: Vec<u64>,
}

impl Default for Tally {
    fn default() -> Self {
        Self { small: vec![0; 1 << 10], large: Vec::new() }
    }
}

impl Tally {
    /// A tally with room for few small numbers, because there are many such tallies.
    fn compact() -> Self {
        Self { small: vec![0; 1 << 5], large: Vec::new() }
    }

    #[inline]
    fn add(&mut self, number: u64) {
        match usize::try_from(number).ok().and_then(|place| self.small.get_mut(place)) {
            Some(times) => *times += 1,
            None => self.large.push(number),
        }
    }
}

impl From<Tally> for Histogram {
    fn from(Tally { small, mut large }: Tally) -> Self {
        large.sort_unstable();
        let small = (0..).zip(small).skip(1).filter(|(_, times)| *times > 0);
        let large = large.chunk_by(|one, other| one == other).map(|same| (same[0], same.len() as u64));
        Self(small.chain(large).collect())
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::lda::{Documents, SeedWords, Tokens};
    use crate::random::{Purpose, Seed, Who};
    use rand::RngExt;
    use statrs::function::gamma::ln_gamma;

    #[test]
    fn words_preserve_all_bits() {
        for (alpha, beta) in [(0.1, 1e-300), (f64::MAX, 5e-324), (-0.0, std::f64::consts::PI)] {
            for alpha in [Alpha::Symmetric(alpha), Alpha::Asymmetric(vec![alpha, beta, 0.3])] {
                let priors = Priors { alpha, beta };
                let words = priors.to_i32s();
                let back = Priors::from_i32s(&words, 3).unwrap();
                let bits =
                    |priors: &Priors| -> Vec<u64> { priors.alpha.of_topics(3).chain([priors.beta]).map(f64::to_bits).collect() };
                assert_eq!(bits(&back), bits(&priors));
                for length in [0, 1, words.len() - 1, words.len() + 2] {
                    let cut: Vec<i32> = words.iter().copied().chain([0; 2]).take(length).collect();
                    assert_eq!(Priors::from_i32s(&cut, 3), None);
                }
            }
        }
    }

    /// Documents with this many tokens of each topic, as tokens of words with these numbers; and the topics of the tokens.
    fn corpus(counts: &[Vec<u32>]) -> (Tokens, Vec<u32>) {
        let mut documents = Documents::new(counts[0].len() as u32);
        let words: Vec<u32> = (0..counts[0].len() as u32).collect();
        counts.iter().for_each(|counts| documents.push(&words, counts));
        let tokens = Tokens::from_documents(&documents);
        let topics = tokens.words().to_vec();
        (tokens, topics)
    }

    /// log Γ(D a)/Γ(n + D a) Π_i Γ(n_i + a)/Γ(a), summed over rows.
    fn log_likelihood(counts: &[Vec<u32>], a: f64) -> f64 {
        let of = |counts: &Vec<u32>| {
            let all = a * counts.len() as f64;
            let n: u32 = counts.iter().sum();
            let each: f64 = counts.iter().map(|&count| ln_gamma(f64::from(count) + a) - ln_gamma(a)).sum();
            each + ln_gamma(all) - ln_gamma(f64::from(n) + all)
        };
        counts.iter().map(of).sum()
    }

    /// The best of ever finer grids.
    fn brute_force(counts: &[Vec<u32>]) -> f64 {
        let (mut middle, mut width) = (0.0_f64, 10.0_f64);
        for _ in 0..12 {
            let at = |step: i32| middle + width * f64::from(step) / 50.0;
            let best = |one: &f64, other: &f64| log_likelihood(counts, one.exp()).total_cmp(&log_likelihood(counts, other.exp()));
            middle = (-50..=50).map(at).max_by(best).unwrap();
            width /= 10.0;
            if width < 1e-6 {
                break;
            }
        }
        middle.exp()
    }

    fn converged(statistics: &PriorStatistics, mut prior: f64, outcomes: usize) -> f64 {
        (0..200).for_each(|_| prior = statistics.update_prior(prior, outcomes));
        prior
    }

    #[test]
    fn estimates_maximize_the_likelihood() {
        let mut random = Seed(4).stream(Who::Run, 0, Purpose::Synthetic);
        // Sparse and short; long, with gaps between counts; some of a document empty.
        for (documents, topics, most, share) in [(40, 3, 6, 0.7), (12, 8, 3000, 0.4), (30, 5, 40, 0.9)] {
            let mut draw = || if random.random::<f64>() < share { random.random_range(0..most) } else { 0 };
            let mut counts: Vec<Vec<u32>> = (0..documents).map(|_| (0..topics).map(|_| draw()).collect()).collect();
            counts.push(vec![0; topics]);
            let best = brute_force(&counts);
            let (tokens, assigned) = corpus(&counts);
            let of_documents = PriorStatistics::for_symmetric_alpha(tokens.spans(), &assigned, topics);
            // As topics: words and topics change places.
            let of_words: Vec<i32> = (0..topics).flat_map(|word| counts.iter().map(move |row| row[word] as i32)).collect();
            let mut of_topics = PriorStatistics::for_beta(&of_words, counts.len(), 0..7);
            of_topics.merge(&PriorStatistics::for_beta(&of_words, counts.len(), 7..counts.len()));
            assert_eq!(of_topics, of_documents);
            for start in [1e-3, 1.0, 50.0] {
                let found = converged(&of_documents, start, topics);
                assert!((found / best - 1.0).abs() < 1e-3, "{found}, not {best}, from {start}");
                // No iteration decreases the likelihood.
                let once = of_documents.update_prior(start, topics);
                assert!(log_likelihood(&counts, once) >= log_likelihood(&counts, start) - 1e-9);
            }
            // Negative control: with one more outcome the maximum differs.
            let other = converged(&of_documents, 1.0, topics + 1);
            assert!((other / best - 1.0).abs() > 0.01, "{other}");
        }
    }

    #[test]
    fn estimates_of_each_topic_maximize_the_posterior() {
        let log_posterior = |counts: &[Vec<u32>], alphas: &[f64]| -> f64 {
            let all: f64 = alphas.iter().sum();
            let of = |counts: &Vec<u32>| {
                let n: u32 = counts.iter().sum();
                let each = counts.iter().zip(alphas).map(|(&count, &alpha)| ln_gamma(f64::from(count) + alpha) - ln_gamma(alpha));
                each.sum::<f64>() + ln_gamma(all) - ln_gamma(f64::from(n) + all)
            };
            // With the prior Gamma(2, 1).
            counts.iter().map(of).sum::<f64>() + alphas.iter().map(|alpha| alpha.ln() - alpha).sum::<f64>()
        };
        let mut random = Seed(4).stream(Who::Run, 1, Purpose::Synthetic);
        // Counts are small and rare, or above those that a tally of many has places for.
        for (documents, most) in [(60, [3, 9, 30]), (25, [2000, 10, 400])] {
            let mut draw = |most: u32, share: f64| if random.random::<f64>() < share { random.random_range(0..most) } else { 0 };
            let mut row = || most.iter().zip([0.9, 0.2, 0.5]).map(|(&most, share)| draw(most, share)).collect();
            let counts: Vec<Vec<u32>> = (0..documents).map(|_| row()).collect();
            let (tokens, assigned) = corpus(&counts);
            let half = tokens.spans().map(|span| span.end).nth(documents / 2).unwrap();
            let statistics = |part: Range<usize>| {
                let spans = tokens.spans().filter(move |span| part.contains(&span.start)).map(|span| span.start..span.end);
                PriorStatistics::for_asymmetric_alpha(spans, &assigned, 3)
            };
            let mut both = PriorStatistics::default();
            both.merge(&statistics(0..half));
            both.merge(&statistics(half..tokens.len()));
            let mut alpha = Alpha::Symmetric(0.7);
            let mut before = f64::NEG_INFINITY;
            for _ in 0..300 {
                alpha = both.update_alphas(&alpha, 3);
                let now = log_posterior(&counts, &alpha.of_topics(3).collect::<Vec<_>>());
                assert!(now >= before - 1e-9 * now.abs(), "{now} after {before}");
                before = now;
            }
            let found: Vec<f64> = alpha.of_topics(3).collect();
            for topic in 0..3 {
                for factor in [0.98, 1.02] {
                    let mut other = found.clone();
                    other[topic] *= factor;
                    assert!(log_posterior(&counts, &other) < before, "{found:?}: {factor} times topic {topic} is better");
                }
            }
            // Negative control: equal values, as they are estimated, are worse.
            let (tokens, assigned) = corpus(&counts);
            let equal = converged(&PriorStatistics::for_symmetric_alpha(tokens.spans(), &assigned, 3), 0.7, 3);
            assert!(log_posterior(&counts, &[equal; 3]) < before - 3.0, "{equal} {found:?}");
        }
        assert_eq!(PriorStatistics::default().update_alphas(&Alpha::Symmetric(0.3), 2), Alpha::Asymmetric(vec![0.3; 2]));
        // A topic without tokens: where (α S + 1)/(T + 1) is α, with S = 0.
        let (tokens, topics) = corpus(&[vec![7, 0], vec![9, 0]]);
        let of = |alpha| PriorStatistics::for_asymmetric_alpha(tokens.spans(), &topics, 2).update_alphas(&alpha, 2);
        let found = (0..300).fold(Alpha::Symmetric(0.3), |alpha, _| of(alpha));
        let [used, unused] = found.of_topics(2).collect::<Vec<_>>()[..] else { panic!("two topics") };
        let total: f64 = [7, 9].map(|n: u32| digamma(f64::from(n) + used + unused) - digamma(used + unused)).iter().sum();
        assert!((unused - 1.0 / (total + 1.0)).abs() < 1e-6 && unused > 0.01 && used > unused, "{found:?}");
        // One topic: the likelihood is constant, and the most probable value that of the prior.
        let one = PriorStatistics::for_asymmetric_alpha(tokens.spans(), &vec![0_u32; topics.len()], 1);
        let found = (0..300).fold(Alpha::Symmetric(0.3), |alpha, _| one.update_alphas(&alpha, 1));
        assert!((found.mean() - 1.0).abs() < 1e-3, "{found:?}");
    }

    /// φ of two topics with pseudo-counts of some words: the estimate of the rest of the prior, beside the best of a grid.
    #[test]
    fn estimates_beyond_pseudo_counts_maximize_the_likelihood() {
        let mut random = Seed(4).stream(Who::Run, 2, Purpose::Synthetic);
        let (words, pseudo_count) = (40, 30);
        let mut draw = |most: u32| if random.random::<f64>() < 0.3 { random.random_range(0..most) } else { 0 };
        let seeded = |word: usize, topic: usize| if word < 3 + 4 * topic { pseudo_count } else { 0 };
        let counts: Vec<[u32; 2]> = (0..words).map(|word| [0, 1].map(|topic| seeded(word, topic) + draw(20))).collect();
        let log_likelihood = |beta: f64| -> f64 {
            let of_topic = |topic: usize| {
                let of_word = |word: usize| {
                    let prior = beta + f64::from(seeded(word, topic));
                    (prior, prior + f64::from(counts[word][topic] - seeded(word, topic)))
                };
                let pairs: Vec<(f64, f64)> = (0..words).map(of_word).collect();
                let (prior, posterior): (f64, f64) = pairs.iter().fold((0.0, 0.0), |sum, pair| (sum.0 + pair.0, sum.1 + pair.1));
                let each = pairs.iter().map(|(prior, posterior)| ln_gamma(*posterior) - ln_gamma(*prior)).sum::<f64>();
                each + ln_gamma(prior) - ln_gamma(posterior)
            };
            of_topic(0) + of_topic(1)
        };
        let grid = (1..3000).map(|step| f64::from(step) * 2e-3);
        let best = grid.max_by(|one, other| log_likelihood(*one).total_cmp(&log_likelihood(*other))).unwrap();
        let as_array: Vec<i32> = counts.iter().flatten().map(|&count| count as i32).collect();
        let statistics = PriorStatistics::for_beta(&as_array, 2, 0..2);
        let cells = (0..2).flat_map(|topic| (0..3 + 4 * topic).map(move |word| (word, topic)));
        let seed_words = SeedWords::new(cells, pseudo_count as i32);
        let found = (0..200).fold(1.0, |beta, _| statistics.update_prior_beyond(&seed_words.statistics(), beta, words));
        assert!((found / best - 1.0).abs() < 2e-3, "{found} {best}");
        // Negative control: as if all counts were of tokens.
        let other = (0..200).fold(1.0, |beta, _| statistics.update_prior(beta, words));
        assert!((other / best - 1.0).abs() > 0.1, "{other} {best}");
    }

    #[test]
    fn uninformative_counts_keep_the_prior_and_estimates_stay_in_range() {
        let improved = |counts: &[Vec<u32>], prior: f64| {
            let (tokens, topics) = corpus(counts);
            converged(&PriorStatistics::for_symmetric_alpha(tokens.spans(), &topics, counts[0].len()), prior, counts[0].len())
        };
        assert_eq!(PriorStatistics::default().update_prior(0.3, 5), 0.3);
        assert_eq!(improved(&[vec![0, 0], vec![0, 0]], 0.3), 0.3);
        assert!((improved(&[vec![7], vec![2000]], 0.3) - 0.3).abs() < 1e-9);
        // A topic for each document: the fewer the better; all alike: the more the better.
        assert!(improved(&[vec![9, 0], vec![0, 5]], 0.3) < 1e-3);
        assert!(improved(&[vec![9, 0], vec![0, 5]], 1e-9) == RANGE.0);
        assert!(improved(&[vec![500, 500], vec![300, 300]], 0.3) > 300.0);
        assert!(improved(&[vec![500, 500], vec![300, 300]], 1e9) == RANGE.1);
    }
}
