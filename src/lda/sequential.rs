//! Sequential initialization of topics: the topic of each token is drawn given the topics of all tokens before it.
//!
//! With uniformly drawn topics, sweeps first have to break the symmetry between topics. With sequentially drawn topics, the first
//! documents fix topics that later documents hardly change. A mixture of both needs about half the sweeps of either.

use super::collapsed::{Tokens, TopicCounts};
use super::lanes::{LANES, draw, lane_sum, smoothing, uniform};
use crate::random::Stream;
use crate::vector::{self, SimdKernel, SimdLevel};

/// Draws the topics of the first `documents` documents token by token, with P(z = k | tokens before) ∝ (n_dk + α)(n_kw + β)/(n_k + W β),
/// and adds them to `counts`. Document d draws from `stream(d)`. The topics of other documents are neither changed nor counted.
///
/// # Panics
/// If `topics` is too short, or a word is outside the vocabulary.
pub fn draw_topics_sequentially(
    tokens: &Tokens,
    documents: usize,
    topics: &mut [u32],
    counts: &mut TopicCounts,
    alpha: f64,
    beta: f64,
    stream: impl FnMut(u64) -> Stream,
) {
    vector::dispatch(Sequential { tokens, documents, topics, counts, alpha, beta, stream });
}

struct Sequential<'a, S> {
    tokens: &'a Tokens,
    documents: usize,
    topics: &'a mut [u32],
    counts: &'a mut TopicCounts,
    alpha: f64,
    beta: f64,
    stream: S,
}

impl<S: FnMut(u64) -> Stream> SimdKernel for Sequential<'_, S> {
    type Output = ();

    #[inline(always)]
    fn compute<U: SimdLevel>(self) {
        let Self { tokens, documents, topics, counts, alpha, beta, mut stream } = self;
        let (beta, spread) = smoothing(beta, counts.vocabulary());
        let alpha = alpha.clamp(1e-6, 1e10) as f32;
        let mut scales: Vec<f32> = counts.totals().iter().map(|&total| 1.0 / (total as f32 + spread)).collect();
        // n_dk + α.
        let mut in_document = vec![alpha; counts.topics()];
        let blocks = counts.topics().div_ceil(LANES);
        let mut weights = vec![[0.0_f32; LANES]; blocks];
        let mut sums = vec![[0.0_f32; LANES]; blocks.div_ceil(LANES)];
        for (document, span) in (0..).zip(tokens.spans()).take(documents) {
            in_document.fill(alpha);
            let mut stream = stream(document);
            for (&word, topic) in tokens.words()[span.clone()].iter().zip(&mut topics[span]) {
                let (row, totals) = counts.row_and_totals(word);
                let each = in_document.iter().zip(&*row).zip(&scales);
                for (weight, ((in_document, &count), scale)) in weights.as_flattened_mut().iter_mut().zip(each) {
                    *weight = in_document * ((count as f32 + beta) * scale);
                }
                let mut total = 0.0;
                for (sum, block) in sums.as_flattened_mut().iter_mut().zip(&weights) {
                    *sum = lane_sum(*block);
                    total += f64::from(*sum);
                }
                let k = draw::<U>(|block| weights[block], sums.len(), |group| sums[group], total, || uniform(&mut stream));
                *topic = k as u32;
                in_document[k] += 1.0;
                row[k] += 1;
                totals[k] += 1;
                scales[k] = 1.0 / (totals[k] as f32 + spread);
            }
        }
    }
}
