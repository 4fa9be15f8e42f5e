//! Weights of documents against known values.

use super::*;
use crate::lda::Documents;
use crate::random::{Purpose, Seed, Who};

/// Words 0 and 1 have one topic each, so that their counts are known; word 2 has the same probability in all topics, so that the topic of a
/// single token is drawn in proportion to α.
#[test]
fn weights_of_documents_follow_from_the_alpha_of_each_topic() {
    let mut corpus = Documents::new(3);
    corpus.push(&[0, 1], &[3, 1]);
    corpus.push(&[2], &[1]);
    let alphas = [0.5, 0.1, 0.9];
    let mean = alphas.iter().sum::<f64>() / 3.0;
    let weights = |relative: [f64; 3]| {
        let mut table = WordTable::<f64>::new(3, 3);
        table.set_relative_alpha(relative.into_iter());
        table.fill(corpus.iter(), |word, phi| {
            phi.copy_from_slice(&[[0.4, 0.0, 0.0], [0.0, 0.3, 0.0], [0.2, 0.2, 0.2]][word as usize]);
        });
        let mut gibbs = DocumentGibbs::new(3, mean);
        let mut of = |document: usize, kept: u32| {
            let mut stream = Seed(3).stream(Who::Agent(0), 7, Purpose::Topics);
            let mut weights = vec![0.0; 3];
            gibbs.weights(corpus.document(document), &table, Sweeps { burn_in: 2, kept }, &mut stream, &mut weights);
            weights
        };
        [of(0, 3), of(1, 40_000)]
    };
    let [known, drawn] = weights(alphas.map(|alpha| alpha / mean));
    for topic in 0..3 {
        let exact = ([3.0, 1.0, 0.0][topic] + alphas[topic]) / 5.5;
        assert!((known[topic] - exact).abs() < 1e-12, "{known:?}");
        // (E n_k + α_k)/(1 + Σ α), where E n_k = α_k/Σ α, of 40,000 independent draws: five standard errors.
        let exact = alphas[topic] / 1.5;
        let error = 5.0 * (exact * (1.0 - exact) / 40_000.0).sqrt() / 2.5;
        assert!((drawn[topic] - exact).abs() < error, "{drawn:?}");
    }
    // Negative control: with the same α for all topics.
    let [_, same] = weights([1.0; 3]);
    assert!((same[1] - alphas[1] / 1.5).abs() > 0.1, "{same:?}");
}
