//! Data sets that are made, not fetched: Breiman's generators, and a stand-in at the size of YearPredictionMSD.

use crate::random::{Purpose, Seed, Stream, Who};
use rand::RngExt;
use std::io::{self, Write};

/// A data set that is made by a rule and a seed. Row i is a function of the seed and i alone: fewer rows are the first of more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Generator {
    /// Two classes in 20 dimensions, normal with unit covariance around ±(a, ..., a), a = 2/√20 (Breiman 1996, "Bias, variance, and arcing
    /// classifiers"): no rule errs less than Φ(−2) = 2.28 %.
    Twonorm,
    /// Two classes in 20 dimensions: normal with covariance 4I around 0, and with covariance I around (a, ..., a), a = 2/√20 (Breiman
    /// 1996; this a is that of the set in DELVE, and gives the 1.3 % of the best rule).
    Ringnorm,
    /// Three classes in 21 dimensions: each a random mixture of two of three triangular waves, with unit noise (Breiman, Friedman, Olshen &
    /// Stone 1984, "Classification and regression trees", 2.6.2).
    Waveform,
    /// **Synthetic**, a number from 90: y = 1998 + 6 w·x + 3 sin(v·x) + 2 x₁x₂ + 8 noise, with unit vectors w and v by the seed and
    /// standard normal features. As many rows and columns as YearPredictionMSD has, and nothing else of it.
    Year,
}

/// The coefficients that all rows of a seed share.
struct Plan {
    linear: Vec<f64>,
    angle: Vec<f64>,
}

/// The standard deviation of the noise in [`Generator::Year`].
const YEAR_NOISE: f64 = 8.0;

impl Generator {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Twonorm, Self::Ringnorm, Self::Waveform, Self::Year];

    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Twonorm => "twonorm",
            Self::Ringnorm => "ringnorm",
            Self::Waveform => "waveform",
            Self::Year => "year",
        }
    }

    /// How many features rows have.
    pub fn features(self) -> usize {
        match self {
            Self::Twonorm | Self::Ringnorm => 20,
            Self::Waveform => 21,
            Self::Year => 90,
        }
    }

    /// As many rows as the set that people know by this name has.
    pub fn rows(self) -> u64 {
        match self {
            Self::Twonorm | Self::Ringnorm => 7400,
            Self::Waveform => 5000,
            Self::Year => 515_345,
        }
    }

    /// Writes a header and rows as CSV with six digits after the point, the label or target in the last column.
    ///
    /// # Errors
    /// Where `out` cannot be written.
    pub fn write_csv(self, rows: u64, seed: Seed, out: &mut impl Write) -> io::Result<()> {
        let (prefix, target) = if self == Self::Year { ("synthetic_", "synthetic_year") } else { ("", "class") };
        for column in 1..=self.features() {
            write!(out, "{prefix}x{column},")?;
        }
        writeln!(out, "{target}")?;
        let plan = self.plan(seed);
        let mut x = vec![0.0; self.features()];
        for row in 0..rows {
            let label = self.row(&plan, seed, row, &mut x);
            for value in &x {
                write!(out, "{value:.6},")?;
            }
            if self == Self::Year { writeln!(out, "{label:.6}")? } else { writeln!(out, "{label}")? }
        }
        out.flush()
    }

    fn plan(self, seed: Seed) -> Plan {
        if self != Self::Year {
            return Plan { linear: Vec::new(), angle: Vec::new() };
        }
        let mut stream = seed.stream(Who::Server, 0, Purpose::Synthetic);
        let mut unit = || {
            let mut vector = vec![0.0; self.features()];
            stream.normals(&mut vector);
            let length = vector.iter().map(|v| v * v).sum::<f64>().sqrt();
            vector.iter_mut().for_each(|v| *v /= length);
            vector
        };
        Plan { linear: unit(), angle: unit() }
    }

    /// Fills the features of a row; its label or target.
    fn row(self, plan: &Plan, seed: Seed, row: u64, x: &mut [f64]) -> f64 {
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
                let share: f64 = stream.random();
                for (i, x) in (1_u32..).zip(x) {
                    *x += share * wave(one, i) + (1.0 - share) * wave(other, i);
                }
                class as f64 + 1.0
            }
            Self::Year => {
                let dot = |vector: &[f64]| -> f64 { vector.iter().zip(&*x).map(|(a, b)| a * b).sum() };
                let exact = 1998.0 + 6.0 * dot(&plan.linear) + 3.0 * dot(&plan.angle).sin() + 2.0 * x[0] * x[1];
                exact + YEAR_NOISE * one_normal(&mut stream)
            }
        }
    }
}

fn one_normal(stream: &mut Stream) -> f64 {
    let mut z = [0.0];
    stream.normals(&mut z);
    z[0]
}

/// The two waves that each class mixes, by the places of their peaks.
const WAVES: [(u32, u32); 3] = [(11, 15), (11, 7), (15, 7)];

/// A triangle of height 6 around its peak, 0 from six places off.
fn wave(peak: u32, place: u32) -> f64 {
    f64::from(6_u32.saturating_sub(place.abs_diff(peak)))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    const ROWS: u64 = 60_000;

    /// Labels and rows.
    fn rows(generator: Generator) -> Vec<(f64, Vec<f64>)> {
        let plan = generator.plan(Seed(5));
        let row = |row| {
            let mut x = vec![0.0; generator.features()];
            (generator.row(&plan, Seed(5), row, &mut x), x)
        };
        (0..ROWS).map(row).collect()
    }

    /// Asserts that numbers have this mean and variance, within 4.8 standard errors: of all 300 in this file none is that far off by chance,
    /// with probability 0.9995. The error of a variance comes from the numbers' own fourth moment.
    fn moments(numbers: &[f64], mean: f64, variance: f64, what: &str) {
        let n = numbers.len() as f64;
        let found = numbers.iter().sum::<f64>() / n;
        assert!((found - mean).abs() < 4.8 * (variance / n).sqrt(), "{what}: mean {found}, not {mean}");
        let power = |k| numbers.iter().map(|x| (x - mean).powi(k)).sum::<f64>() / n;
        let error = ((power(4) - power(2).powi(2)) / n).sqrt();
        assert!((power(2) - variance).abs() < 4.8 * error, "{what}: variance {}, not {variance}", power(2));
    }

    /// A share of p in n has standard deviation √(p (1 − p)/n).
    fn share(count: usize, n: usize, p: f64, what: &str) {
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
            share(rows.iter().filter(|row| row.0 == 1.0).count(), rows.len(), 0.5, generator.name());
            for (class, (mean, variance)) in [(1.0, of_one), (-1.0, of_other)] {
                for j in 0..20 {
                    moments(&column(&rows, class, j), mean, variance, &format!("{} {class} {j}", generator.name()));
                }
                // Columns are independent: products of neighbours are centred.
                let products: Vec<f64> =
                    rows.iter().filter(|row| row.0 == class).map(|row| (row.1[3] - mean) * (row.1[4] - mean)).collect();
                moments(&products, 0.0, variance * variance, "products");
            }
        }
    }

    /// The best rule is the sign of the sum of the features, and errs with probability Φ(−2).
    #[test]
    fn twonorm_has_its_bayes_error() {
        let rows = rows(Generator::Twonorm);
        let errors = |rule: fn(&[f64]) -> f64| rows.iter().filter(|(class, x)| rule(x) * class < 0.0).count();
        share(errors(|x| x.iter().sum()), rows.len(), 0.022_750_131_948, "the best rule");
        // A worse one, of the first half of the features, errs with probability Φ(−√2).
        share(errors(|x| x[..10].iter().sum()), rows.len(), 0.078_649_603_525, "half of it");
    }

    #[test]
    fn waveforms_have_their_moments() {
        let rows = rows(Generator::Waveform);
        // The waves are h(i) = max(6 − |i − 11|, 0), h(i − 4) and h(i + 4).
        let h = |i: i32| f64::from((6 - (i - 11).abs()).max(0));
        let waves = [|i| i, |i| i - 4, |i: i32| i + 4];
        for (class, (one, other)) in [(1.0, (0, 1)), (2.0, (0, 2)), (3.0, (1, 2))] {
            share(rows.iter().filter(|row| row.0 == class).count(), rows.len(), 1.0 / 3.0, "classes");
            for j in 0..21 {
                let i = i32::try_from(j).unwrap() + 1;
                let (a, b) = (h(waves[one](i)), h(waves[other](i)));
                // u a + (1 − u) b + noise, u uniform.
                moments(&column(&rows, class, j), (a + b) / 2.0, (a - b).powi(2) / 12.0 + 1.0, &format!("{class} {j}"));
            }
        }
    }

    #[test]
    fn the_stand_in_for_years_has_its_moments_and_its_noise() {
        let rows = rows(Generator::Year);
        let targets: Vec<f64> = rows.iter().map(|row| row.0).collect();
        // w·x and v·x have covariance c = w·v, so that the two terms have covariance 18 c E[cos] = 18 c e^(−1/2); sin has variance
        // (1 − e^(−2))/2. The product x₁x₂ is uncorrelated with both, which are odd.
        let plan = Generator::Year.plan(Seed(5));
        let c: f64 = plan.linear.iter().zip(&plan.angle).map(|(w, v)| w * v).sum();
        let sine = 9.0 * (1.0 - (-2.0_f64).exp()) / 2.0;
        let variance = 36.0 + sine + 36.0 * c * (-0.5_f64).exp() + 4.0 + YEAR_NOISE.powi(2);
        moments(&targets, 1998.0, variance, "targets");
        let dot = |vector: &[f64], x: &[f64]| -> f64 { vector.iter().zip(x).map(|(a, b)| a * b).sum() };
        let noise: Vec<f64> = rows
            .iter()
            .map(|(y, x)| y - 1998.0 - 6.0 * dot(&plan.linear, x) - 3.0 * dot(&plan.angle, x).sin() - 2.0 * x[0] * x[1])
            .collect();
        moments(&noise, 0.0, YEAR_NOISE.powi(2), "noise");
        for j in [0, 1, 89] {
            moments(&rows.iter().map(|row| row.1[j]).collect::<Vec<_>>(), 0.0, 1.0, "features");
        }
    }

    #[test]
    fn a_seed_gives_the_same_file_and_fewer_rows_are_its_beginning() {
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
