//! Topics to begin with: those of some documents drawn one token after the other, given those before.
//!
//! Where all topics are drawn uniformly, sweeps first have to break the symmetry between topics; where all are drawn in turn, the first
//! documents decide on topics that later ones hardly leave. Some of both needs about half of the sweeps of either.

use super::collapsed::{Tokens, TopicCounts};
use super::lanes::{LANES, draw, smoothing};
use crate::random::Stream;
use crate::vector::{self, SimdKernel, SimdLevel};

/// Draws the topics of the first documents anew, token after token, with P(z = k | those before) ∝ (n_dk + α)(n_kw + β)/(n_k + W β);
/// document d draws from `stream(d)`. The topics of other documents stay as they are and count for nothing.
///
/// # Panics
/// When there are fewer documents or topics, or a word is not below the size of the vocabulary.
pub fn draw_topics_sequentially(
    tokens: &Tokens,
    documents: usize,
    topics: &mut [u32],
    counts: &mut TopicCounts,
    alpha: f64,
    beta: f64,
    stream: impl FnMut(u64) -> Stream,
) {
    vector::dispatch(InTurn { tokens, documents, topics, counts, alpha, beta, stream });
}

struct InTurn<'a, S> {
    tokens: &'a Tokens,
    documents: usize,
    topics: &'a mut [u32],
    counts: &'a mut TopicCounts,
    alpha: f64,
    beta: f64,
    stream: S,
}

impl<S: FnMut(u64) -> Stream> SimdKernel for InTurn<'_, S> {
    type Output = ();

    #[inline(always)]
    fn compute<U: SimdLevel>(self) {
        let Self { tokens, documents, topics, counts, alpha, beta, mut stream } = self;
        let (beta, spread) = smoothing(beta, counts.vocabulary());
        let alpha = alpha.clamp(1e-6, 1e10) as f32;
        let mut scales: Vec<f32> = counts.totals().iter().map(|&total| 1.0 / (total as f32 + spread)).collect();
        // n_dk + α.
        let mut here = vec![alpha; counts.topics()];
        let blocks = counts.topics().div_ceil(LANES);
        let mut weights = vec![[0.0_f32; LANES]; blocks];
        let mut sums = vec![[0.0_f32; LANES]; blocks.div_ceil(LANES)];
        for (document, span) in (0..).zip(tokens.spans()).take(documents) {
            here.fill(alpha);
            let mut stream = stream(document);
            for (&word, topic) in tokens.words()[span.clone()].iter().zip(&mut topics[span]) {
                let (row, totals) = counts.row_and_totals(word);
                let each = here.iter().zip(&*row).zip(&scales);
                for (weight, ((here, &count), scale)) in weights.as_flattened_mut().iter_mut().zip(each) {
                    *weight = here * ((count as f32 + beta) * scale);
                }
                let mut all = 0.0;
                for (sum, block) in sums.as_flattened_mut().iter_mut().zip(&weights) {
                    let mut lanes = *block;
                    for step in [8, 4, 2, 1] {
                        for lane in 0..step {
                            lanes[lane] += lanes[lane + step];
                        }
                    }
                    *sum = lanes[0];
                    all += f64::from(lanes[0]);
                }
                let k = draw::<U>(&weights, sums.len(), |group| sums[group], all, &mut stream);
                *topic = k as u32;
                here[k] += 1.0;
                row[k] += 1;
                totals[k] += 1;
                scales[k] = 1.0 / (totals[k] as f32 + spread);
            }
        }
    }
}
