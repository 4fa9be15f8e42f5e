//! Random streams: pinned values, independence of addresses, uniform integers and permutations.

use super::*;
use rand::Rng;
use rand::distr::Distribution;
use std::collections::{HashMap, HashSet};

fn stream(step: u64) -> Stream {
    Seed(42).stream(Who::Agent(7), step, Purpose::Noise)
}

/// A change of these changes the results of every seed.
#[test]
fn the_sequences_are_pinned() {
    let mut stream = stream(11);
    let words: [u32; 4] = std::array::from_fn(|_| stream.next_u32());
    let (mut singles, mut doubles) = ([0.0_f32; 4], [0.0_f64; 4]);
    stream.normals(&mut singles);
    stream.normals(&mut doubles);
    let pinned = (words, singles.map(f32::to_bits), doubles.map(f64::to_bits));
    assert_eq!(
        pinned,
        (
            [211_880_769, 4_186_509_969, 2_043_591_353, 1_004_786_065],
            [1062820607, 1051281415, 3190864751, 1063007246],
            [13834507370755568802, 13828984772000084166, 4604437826615296254, 4593436974105194778]
        )
    );
}

/// Initial particles are drawn by the library's method: a version of it that draws otherwise changes the results of every seed.
#[test]
fn the_librarys_gamma_is_pinned() {
    let draws = [1.0, 2.5, 0.3].map(|shape| rand_distr::Gamma::new(shape, 1.0).unwrap().sample(&mut stream(12)));
    let pinned = [1.142_103_883_762_663_1, 4.436_901_244_412_513, 0.378_022_361_111_058_7];
    // Logarithms and powers are the system's, and may differ in the last bits between systems.
    assert!(draws.iter().zip(pinned).all(|(draw, pinned): (&f64, f64)| (draw - pinned).abs() < 1e-14), "{draws:?}");
}

#[test]
fn nearby_addresses_share_no_block() {
    let (mut blocks, mut count) = (HashSet::new(), 0);
    let mut add = |mut stream: Stream| {
        for _ in 0..4 {
            count += 1;
            blocks.insert((stream.next_u64(), stream.next_u64()));
        }
    };
    for seed in [0, 1, 2, 3, 1 << 32, 1 << 63, u64::MAX, 0x9E37_79B9_7F4A_7C15].map(Seed) {
        for who in [0, 1, 2, 255, 256, 1 << 16, u32::MAX].into_iter().flat_map(|id| [Who::Agent(id), Who::Chain(id)]) {
            for step in [0, 1, 2, 3, 1 << 32, (1 << 32) + 1, u64::MAX] {
                for purpose in [Purpose::Initial, Purpose::Minibatch, Purpose::Noise, Purpose::Partition, Purpose::Schedule] {
                    add(seed.stream(who, step, purpose));
                }
            }
        }
        add(seed.stream(Who::Run, 0, Purpose::Initial));
        add(seed.stream(Who::Server, 0, Purpose::Initial));
    }
    // By chance two of 16,000 blocks of 128 bits agree with probability 4e-31.
    assert_eq!(blocks.len(), count);
}

#[test]
fn one_bit_of_the_address_changes_half_of_the_bits() {
    let first = |seed: u64, id: u32, step: u64| Seed(seed).stream(Who::Agent(id), step, Purpose::Noise).next_u64();
    let base = first(5, 5, 5);
    let mut ones = 0;
    for bit in 0..64 {
        ones += (first(5 ^ 1 << bit, 5, 5) ^ base).count_ones() + (first(5, 5, 5 ^ 1 << bit) ^ base).count_ones();
        if bit < 32 {
            ones += (first(5, 5 ^ 1 << bit, 5) ^ base).count_ones();
        }
    }
    let bits = 64.0 * 160.0;
    let z = (f64::from(ones) - bits / 2.0) / f64::sqrt(bits / 4.0);
    assert!(z.abs() < 4.5, "{z}");
}

#[test]
fn elements_depend_on_their_position_only() {
    let mut whole = stream(1);
    let (mut singles, mut doubles) = (vec![0.0_f32; 1000], vec![0.0_f64; 1000]);
    whole.normals(&mut singles);
    whole.normals(&mut doubles);
    let words: Vec<u32> = (0..1000).map(|_| whole.next_u32()).collect();

    let mut mixed = stream(1);
    let (mut singles_again, mut doubles_again, mut words_again) = (vec![0.0; 1000], vec![0.0; 1000], Vec::new());
    let mut from = 0;
    for length in [1, 54, 3, 0, 64, 129, 31, 333, 385] {
        let to = from + length;
        mixed.normals(&mut singles_again[from..to]);
        while words_again.len() < to {
            words_again.extend_from_slice(mixed.some_words(to - words_again.len()));
        }
        mixed.add_normals(1.0, &mut doubles_again[from..to]);
        from = to;
    }
    assert_eq!((singles, doubles, words), (singles_again, doubles_again, words_again));
}

#[test]
fn bytes_and_long_words_are_the_words() {
    let mut one_by_one = stream(2);
    let words: [u32; 4] = std::array::from_fn(|_| one_by_one.next_u32());
    let mut stream = stream(2);
    let mut bytes = [0; 6];
    stream.fill_bytes(&mut bytes);
    assert_eq!(bytes[..4], words[0].to_le_bytes());
    assert_eq!(bytes[4..], words[1].to_le_bytes()[..2]);
    assert_eq!(stream.next_u64(), u64::from(words[2]) | u64::from(words[3]) << 32);
}

#[test]
fn added_normals_are_scaled_normals() {
    let mut z = [0.0_f64; 54];
    stream(3).normals(&mut z);
    let mut sum = [2.5; 54];
    stream(3).add_normals(0.1, &mut sum);
    assert_eq!(sum, z.map(|z| 2.5 + 0.1 * z));
}

#[test]
fn the_librarys_gamma_has_its_moments() {
    let (shape, scale, n) = (2.5, 3.0, 400_000);
    let gamma = rand_distr::Gamma::new(shape, scale).unwrap();
    let mut stream = stream(4);
    let draws: Vec<f64> = (0..n).map(|_| gamma.sample(&mut stream)).collect();
    let mean = draws.iter().sum::<f64>() / f64::from(n);
    let variance = draws.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / f64::from(n);
    let exact = shape * scale * scale;
    assert!((mean - shape * scale).abs() < 4.5 * f64::sqrt(exact / f64::from(n)), "{mean}");
    // The sample variance has variance σ⁴ (κ − 1) / n with kurtosis κ = 3 + 6 / shape.
    assert!((variance - exact).abs() < 4.5 * exact * f64::sqrt((2.0 + 6.0 / shape) / f64::from(n)), "{variance}");
}

/// How many standard deviations chi-square is off for equally likely cells.
fn chi_square(counts: &[u32]) -> f64 {
    let free = counts.len() as f64 - 1.0;
    let expected = f64::from(counts.iter().sum::<u32>()) / (free + 1.0);
    let chi: f64 = counts.iter().map(|&count| (f64::from(count) - expected).powi(2) / expected).sum();
    (chi - free) / f64::sqrt(2.0 * free)
}

#[test]
fn permutations_are_equally_likely() {
    let mut stream = stream(5);
    let mut counts = HashMap::new();
    for _ in 0..240_000 {
        *counts.entry(stream.permutation(5)).or_insert(0) += 1;
    }
    assert_eq!(counts.len(), 120);
    let z = chi_square(&counts.into_values().collect::<Vec<_>>());
    assert!(z.abs() < 4.5, "{z}");
    for n in [0, 1, 2, 1000] {
        let mut order = stream.permutation(n);
        order.sort_unstable();
        assert!(order.into_iter().eq(0..n));
    }
}

#[test]
fn bounded_numbers_are_uniform() {
    let mut stream = stream(6);
    // Just above 2/3 of the range of one and of two words: without rejection every second number would come twice as often.
    for bound in [0xAAAA_AAAB_usize, 0xAAAA_AAAA_AAAA_AAAB, 1 << 32, 3] {
        let (mut thirds, mut remainders) = ([0; 3], [0; 3]);
        for _ in 0..300_000 {
            let number = stream.below(bound);
            assert!(number < bound);
            thirds[(number as u128 * 3 / bound as u128) as usize] += 1;
            remainders[number % 3] += 1;
        }
        // Two degrees of freedom: exceeded with probability exp(−(2 + 2 · 11) / 2) = 6e-6.
        assert!(chi_square(&thirds) < 11.0, "{bound} {thirds:?}");
        assert!(chi_square(&remainders) < 11.0, "{bound} {remainders:?}");
    }
    assert_eq!(stream.below(1), 0);
}
