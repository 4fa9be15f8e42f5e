//! Gamma cells against the gamma distribution, and topics against the moments of the Dirichlet distribution.
#![allow(clippy::unwrap_used)]

use super::*;
use crate::lda::TopicTable;
use crate::random::{Purpose, Seed, Who};
use statrs::function::gamma::gamma_lr;

fn stream(step: u64) -> Stream {
    Seed(9).stream(Who::Run, step, Purpose::Topics)
}

/// The Kolmogorov-Smirnov distance times √n between the cells with this count, at values above `least`, and a gamma distribution. A correct
/// sampler exceeds 2.2 for about one seed in ten thousand.
fn distance(cell: i32, beta: f64, shape: f64, least: f64) -> f64 {
    let (rows, width) = (400, 500);
    let mut drawn = Vec::new();
    let mut row = vec![0.0; width];
    for number in 0..rows {
        GammaCells::new(beta).draw(&vec![cell; width], &mut row, &mut stream(number));
        drawn.extend(row.iter().map(|&x| f64::from(x)));
    }
    drawn.sort_by(f64::total_cmp);
    let n = drawn.len() as f64;
    let above = (1..).zip(&drawn).filter(|(_, x)| **x >= least);
    above.map(|(number, &x): (u32, _)| (f64::from(number) / n - gamma_lr(shape, x)).abs()).fold(0.0, f64::max) * n.sqrt()
}

#[test]
fn cells_have_gamma_distributions() {
    for (cell, beta, least) in [(0, 0.01, 1e-7), (0, 0.1, 1e-7), (0, 0.7, 1e-7), (0, 3.0, 0.0), (1, 0.01, 0.0), (7, 0.5, 0.0)] {
        let shape = f64::from(cell) + beta;
        let found = distance(cell, beta, shape, least);
        assert!(found < 2.2, "{cell} {beta}: {found}");
        // Negative control: a slightly different shape.
        let found = distance(cell, beta, shape * 1.1, least);
        assert!(found > 3.0, "{cell} {beta}: {found}");
    }
}

/// The mean over cells without tokens is β, with the variance β: a million cells are more than 4.5 standard errors off for less than one
/// seed in a hundred thousand.
#[test]
fn small_priors_have_their_mean() {
    for beta in [1e-3, 1e-4] {
        let mut row = vec![0.0; 10_000];
        let mut sum = 0.0;
        for number in 0..400 {
            GammaCells::new(beta).draw(&vec![0; 10_000], &mut row, &mut stream(number));
            sum += row.iter().map(|&x| f64::from(x)).sum::<f64>();
        }
        let (n, mean) = (4e6, sum / 4e6);
        assert!((mean - beta).abs() < 4.5 * (beta / n).sqrt(), "{mean} {beta}");
    }
    // So small that nothing but zeros is drawn.
    let mut row = vec![1.0; 1000];
    GammaCells::new(1e-12).draw(&[0; 1000], &mut row, &mut stream(0));
    assert!(row.iter().all(|&x| x == 0.0));
}

/// Mean and variance of φ_kw over draws, in standard errors of the mean and as a ratio of variances.
fn moments(counts: &[i32], beta: f64, exact_beta: f64) -> (f64, f64) {
    let (words, topics, draws) = (4, 3, 20_000);
    let mut table = TopicTable::new(words, topics);
    let (mut sums, mut squares) = (vec![0.0; words * topics], vec![0.0; words * topics]);
    for draw in 0..draws {
        table.draw(counts, beta, |word| stream(draw << 10 | word), |topic| stream(draw << 10 | 1 << 9 | topic));
        let mut totals = vec![0.0; topics];
        for word in 0..words {
            for (topic, &phi) in table.phi(word).iter().enumerate() {
                let phi = f64::from(phi);
                totals[topic] += phi;
                sums[word * topics + topic] += phi;
                squares[word * topics + topic] += phi * phi;
            }
        }
        assert!(totals.iter().all(|total| (total - 1.0).abs() < 1e-6), "{totals:?}");
    }
    let (n, mut z, mut ratio) = (draws as f64, 0.0_f64, 0.0_f64);
    for topic in 0..topics {
        let total: f64 = (0..words).map(|word| f64::from(counts[word * topics + topic]) + exact_beta).sum();
        for word in 0..words {
            let at = word * topics + topic;
            let exact = (f64::from(counts[at]) + exact_beta) / total;
            let exact_variance = exact * (1.0 - exact) / (total + 1.0);
            let mean = sums[at] / n;
            z = z.max((mean - exact).abs() / (exact_variance / n).sqrt());
            ratio = ratio.max(((squares[at] / n - mean * mean) / exact_variance).ln().abs());
        }
    }
    (z, ratio)
}

/// Among twelve cells, a mean is 4.5 standard errors off for less than one seed in ten thousand. One topic has no tokens.
#[test]
fn topics_have_the_moments_of_dirichlet_distributions() {
    let counts = [3, 0, 20, 1, 0, 0, 0, 0, 40, 2, 0, 1];
    for beta in [0.5, 0.05] {
        let (z, ratio) = moments(&counts, beta, beta);
        assert!(z < 4.5 && ratio < 0.2, "{beta}: {z} {ratio}");
        let (z, _) = moments(&counts, beta, 1.3 * beta);
        assert!(z > 8.0, "{beta}: {z}");
    }
}

/// Logarithms of gamma variables far below the smallest number: nearly all mass of a topic without tokens is at one word, any of them.
#[test]
fn topics_without_tokens_are_distributions_for_tiny_priors() {
    let (words, draws) = (5, 3000);
    let mut table = TopicTable::new(words, 2);
    let mut largest = vec![0; words];
    for draw in 0..draws {
        table.draw(&[0; 10], 1e-9, |word| stream(draw << 10 | word), |topic| stream(draw << 10 | 1 << 9 | topic));
        for topic in 0..2 {
            let phi: Vec<f32> = (0..words).map(|word| table.phi(word)[topic]).collect();
            assert!((phi.iter().sum::<f32>() - 1.0).abs() < 1e-6, "{phi:?}");
            let at = phi.iter().position(|&phi| phi > 0.999).unwrap();
            largest[at] += u8::from(topic == 0) as u32;
        }
    }
    // Each word is the one in a fifth of the draws; 4.5 standard deviations.
    let sd = f64::sqrt(draws as f64 * 0.2 * 0.8);
    assert!(largest.iter().all(|&times| (f64::from(times) - 600.0).abs() < 4.5 * sd), "{largest:?}");
}
