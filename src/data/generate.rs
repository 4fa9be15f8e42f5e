//! Synthetic data sets: Breiman's generators, and a regression data set of the size of YearPredictionMSD.

use crate::random::{Purpose, Seed, Stream, Who};
use rand::RngExt;
use std::io::{self, Write};

/// A synthetic data set. Row i depends only on the seed and i, so a smaller data set is the beginning of a larger one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Generator {
    /// Two classes in 20 dimensions, normal with unit covariance around ±(a, ..., a), a = 2/√20 (Breiman 1996, "Bias, variance, and arcing
    /// classifiers"). The Bayes error is Φ(−2) = 2.28 %.
    Twonorm,
    /// Two classes in 20 dimensions: normal with covariance 4I around 0, and with covariance I around (a, ..., a), a = 2/√20 (Breiman
    /// 1996). This value of a is the one in DELVE; the Bayes error is 1.3 %.
    Ringnorm,
    /// Three classes in 21 dimensions: each a random mixture of two of three triangular waves, with unit noise (Breiman, Friedman, Olshen &
    /// Stone 1984, "Classification and regression trees", 2.6.2).
    Waveform,
    /// Regression on 90 features: y = 1998 + 6 w·x + 3 sin(v·x) + 2 x₁x₂ + 8 noise, with standard normal features and noise, and with
    /// random unit vectors w and v. It has the number of rows and columns of YearPredictionMSD, and nothing else in common with it.
    Year,
}

/// The coefficients of [`Generator::Year`], which depend only on the seed; empty for other generators.
struct Coefficients {
    /// w, the direction of the linear term.
    linear: Vec<f64>,
    /// v, the direction of the sine term.
    sine: Vec<f64>,
}

/// The standard deviation of the noise in [`Generator::Year`].
const YEAR_NOISE: f64 = 8.0;

impl Generator {
    /// All generators.
    pub const ALL: [Self; 4] = [Self::Twonorm, Self::Ringnorm, Self::Waveform, Self::Year];

    /// The name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Twonorm => "twonorm",
            Self::Ringnorm => "ringnorm",
            Self::Waveform => "waveform",
            Self::Year => "year",
        }
    }

    /// The number of features.
    pub fn features(self) -> usize {
        match self {
            Self::Twonorm | Self::Ringnorm => 20,
            Self::Waveform => 21,
            Self::Year => 90,
        }
    }

    /// The number of rows of the published data set.
    pub fn rows(self) -> u64 {
        match self {
            Self::Twonorm | Self::Ringnorm => 7400,
            Self::Waveform => 5000,
            Self::Year => 515_345,
        }
    }

    /// Writes a header and rows as CSV with six decimals. The last column is the label or target.
    ///
    /// # Errors
    /// If `out` cannot be written.
    pub fn write_csv(self, rows: u64, seed: Seed, out: &mut impl Write) -> io::Result<()> {
        let (prefix, target) = if self == Self::Year { ("synthetic_", "synthetic_year") } else { ("", "class") };
        for column in 1..=self.features() {
            write!(out, "{prefix}x{column},")?;
        }
        writeln!(out, "{target}")?;
        let coefficients = self.coefficients(seed);
        let mut x = vec![0.0; self.features()];
        for row in 0..rows {
            let label = self.row(&coefficients, seed, row, &mut x);
            for value in &x {
                write!(out, "{value:.6},")?;
            }
            if self == Self::Year { writeln!(out, "{label:.6}")? } else { writeln!(out, "{label}")? }
        }
        out.flush()
    }

    fn coefficients(self, seed: Seed) -> Coefficients {
        if self != Self::Year {
            return Coefficients { linear: Vec::new(), sine: Vec::new() };
        }
        let mut stream = seed.stream(Who::Server, 0, Purpose::Synthetic);
        let mut unit_vector = || {
            let mut vector = vec![0.0; self.features()];
            stream.normals(&mut vector);
            let length = vector.iter().map(|v| v * v).sum::<f64>().sqrt();
            vector.iter_mut().for_each(|v| *v /= length);
            vector
        };
        Coefficients { linear: unit_vector(), sine: unit_vector() }
    }

    /// Writes the features of a row to `x`; returns its label or target.
    fn row(self, coefficients: &Coefficients, seed: Seed, row: u64, x: &mut [f64]) -> f64 {
        let mut stream = seed.stream(Who::Run, row, Purpose::Synthetic);
        stream.normals(x);
        match self {
            Self::Twonorm => {
                let class = if stream.random() { 1.0 } else { -1.0 };
                x.iter_mut().for_each(|x| *x += class * 2.0 / 20.0_f64.sqrt());
                class
            }
            Self::Ringnorm => {
                if stream.random() {
                    x.iter_mut().for_each(|x| *x += 2.0 / 20.0_f64.sqrt());
                    1.0
                } else {
                    x.iter_mut().for_each(|x| *x *= 2.0);
                    -1.0
                }
            }
            Self::Waveform => {
                let class = stream.random_range(0..3_usize);
                let (one, other) = WAVES[class];
                let weight: f64 = stream.random();
                for (i, x) in (1_u32..).zip(x) {
                    *x += weight * wave(one, i) + (1.0 - weight) * wave(other, i);
                }
                class as f64 + 1.0
            }
            Self::Year => {
                let dot = |vector: &[f64]| -> f64 { vector.iter().zip(&*x).map(|(a, b)| a * b).sum() };
                let mean = 1998.0 + 6.0 * dot(&coefficients.linear) + 3.0 * dot(&coefficients.sine).sin() + 2.0 * x[0] * x[1];
                mean + YEAR_NOISE * one_normal(&mut stream)
            }
        }
    }
}

fn one_normal(stream: &mut Stream) -> f64 {
    let mut z = [0.0];
    stream.normals(&mut z);
    z[0]
}

/// The peaks of the two waves that each class mixes.
const WAVES: [(u32, u32); 3] = [(11, 15), (11, 7), (15, 7)];

/// A triangular wave: 6 at its peak, and 0 at a distance of 6 or more.
fn wave(peak: u32, position: u32) -> f64 {
    f64::from(6_u32.saturating_sub(position.abs_diff(peak)))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    const ROWS: u64 = 60_000;

    /// Labels and features of all rows.
    fn rows(generator: Generator) -> Vec<(f64, Vec<f64>)> {
        let coefficients = generator.coefficients(Seed(5));
        let row = |row| {
            let mut x = vec![0.0; generator.features()];
            (generator.row(&coefficients, Seed(5), row, &mut x), x)
        };
        (0..ROWS).map(row).collect()
    }

    /// Asserts that numbers have this mean and variance within 4.8 standard errors. With probability 0.9995 all 300 such checks in this
    /// file pass. The standard error of a variance is estimated from the fourth moment.
    fn check_moments(numbers: &[f64], mean: f64, variance: f64, what: &str) {
        let n = numbers.len() as f64;
        let found = numbers.iter().sum::<f64>() / n;
        assert!((found - mean).abs() < 4.8 * (variance / n).sqrt(), "{what}: mean {found}, not {mean}");
        let power = |k| numbers.iter().map(|x| (x - mean).powi(k)).sum::<f64>() / n;
        let error = ((power(4) - power(2).powi(2)) / n).sqrt();
        assert!((power(2) - variance).abs() < 4.8 * error, "{what}: variance {}, not {variance}", power(2));
    }

    /// Asserts that `count` of `n` is a fraction `p`, whose standard error is √(p (1 − p)/n).
    fn check_fraction(count: usize, n: usize, p: f64, what: &str) {
        let found = count as f64 / n as f64;
        assert!((found - p).abs() < 4.8 * (p * (1.0 - p) / n as f64).sqrt(), "{what}: {found}, not {p}");
    }

    fn column(rows: &[(f64, Vec<f64>)], class: f64, j: usize) -> Vec<f64> {
        rows.iter().filter(|row| row.0 == class).map(|row| row.1[j]).collect()
    }

    #[test]
    fn twonorm_and_ringnorm_have_their_moments() {
        let a = 2.0 / 20.0_f64.sqrt();
        for (generator, of_one, of_other) in
            [(Generator::Twonorm, (a, 1.0), (-a, 1.0)), (Generator::Ringnorm, (a, 1.0), (0.0, 4.0))]
        {
            let rows = rows(generator);
            check_fraction(rows.iter().filter(|row| row.0 == 1.0).count(), rows.len(), 0.5, generator.name());
            for (class, (mean, variance)) in [(1.0, of_one), (-1.0, of_other)] {
                for j in 0..20 {
                    check_moments(&column(&rows, class, j), mean, variance, &format!("{} {class} {j}", generator.name()));
                }
                // Columns are independent: products of neighbors are centered.
                let products: Vec<f64> =
                    rows.iter().filter(|row| row.0 == class).map(|row| (row.1[3] - mean) * (row.1[4] - mean)).collect();
                check_moments(&products, 0.0, variance * variance, "products");
            }
        }
    }

    /// The Bayes classifier is the sign of the sum of the features. Its error is Φ(−2).
    #[test]
    fn twonorm_has_its_bayes_error() {
        let rows = rows(Generator::Twonorm);
        let errors = |rule: fn(&[f64]) -> f64| rows.iter().filter(|(class, x)| rule(x) * class < 0.0).count();
        check_fraction(errors(|x| x.iter().sum()), rows.len(), 0.022_750_131_948, "Bayes classifier");
        // The same with the first half of the features has the error Φ(−√2).
        check_fraction(errors(|x| x[..10].iter().sum()), rows.len(), 0.078_649_603_525, "half of the features");
    }

    #[test]
    fn waveforms_have_their_moments() {
        let rows = rows(Generator::Waveform);
        // The waves are h(i) = max(6 − |i − 11|, 0), h(i − 4) and h(i + 4).
        let h = |i: i32| f64::from((6 - (i - 11).abs()).max(0));
        let waves = [|i| i, |i| i - 4, |i: i32| i + 4];
        for (class, (one, other)) in [(1.0, (0, 1)), (2.0, (0, 2)), (3.0, (1, 2))] {
            check_fraction(rows.iter().filter(|row| row.0 == class).count(), rows.len(), 1.0 / 3.0, "classes");
            for j in 0..21 {
                let i = i32::try_from(j).unwrap() + 1;
                let (a, b) = (h(waves[one](i)), h(waves[other](i)));
                // u a + (1 − u) b + noise, u uniform.
                check_moments(&column(&rows, class, j), (a + b) / 2.0, (a - b).powi(2) / 12.0 + 1.0, &format!("{class} {j}"));
            }
        }
    }

    #[test]
    fn year_has_its_moments_and_its_noise() {
        let rows = rows(Generator::Year);
        let targets: Vec<f64> = rows.iter().map(|row| row.0).collect();
        // w·x and v·x have covariance c = w·v, so that the two terms have covariance 18 c E[cos] = 18 c e^(−1/2); sin has variance
        // (1 − e^(−2))/2. The product x₁x₂ is uncorrelated with both, which are odd.
        let coefficients = Generator::Year.coefficients(Seed(5));
        let c: f64 = coefficients.linear.iter().zip(&coefficients.sine).map(|(w, v)| w * v).sum();
        let sine_variance = 9.0 * (1.0 - (-2.0_f64).exp()) / 2.0;
        let variance = 36.0 + sine_variance + 36.0 * c * (-0.5_f64).exp() + 4.0 + YEAR_NOISE.powi(2);
        check_moments(&targets, 1998.0, variance, "targets");
        let dot = |vector: &[f64], x: &[f64]| -> f64 { vector.iter().zip(x).map(|(a, b)| a * b).sum() };
        let noise: Vec<f64> = rows
            .iter()
            .map(|(y, x)| {
                y - 1998.0 - 6.0 * dot(&coefficients.linear, x) - 3.0 * dot(&coefficients.sine, x).sin() - 2.0 * x[0] * x[1]
            })
            .collect();
        check_moments(&noise, 0.0, YEAR_NOISE.powi(2), "noise");
        for j in [0, 1, 89] {
            check_moments(&rows.iter().map(|row| row.1[j]).collect::<Vec<_>>(), 0.0, 1.0, "features");
        }
    }

    #[test]
    fn a_seed_determines_the_file_and_fewer_rows_are_its_beginning() {
        let csv = |generator: Generator, rows, seed| {
            let mut out = Vec::new();
            generator.write_csv(rows, Seed(seed), &mut out).unwrap();
            String::from_utf8(out).unwrap()
        };
        for generator in Generator::ALL {
            let text = csv(generator, 50, 1);
            assert_eq!(text, csv(generator, 50, 1));
            assert!(text.starts_with(&csv(generator, 20, 1)));
            assert_ne!(text, csv(generator, 50, 2));
            assert_eq!(text.lines().count(), 51);
            assert!(text.lines().all(|line| line.split(',').count() == generator.features() + 1));
            assert!(
                generator != Generator::Year || text.lines().next().unwrap().split(',').all(|name| name.starts_with("synthetic"))
            );
        }
    }
}
