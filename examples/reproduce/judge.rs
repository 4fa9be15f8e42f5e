//! Verdicts: claims with an effect size, tested over seeds.
//!
//! A claim, of the paper or of ours, is about the mean over seeds of a difference between runs that share the seed (and so their data, where
//! these are drawn). It holds by one t-test at 1 %, and does not hold by another at 1 % over the number of claims: a row is reproduced if
//! all of its claims hold, and refuted if one does not, so that either is wrong in less than one case of a hundred. Where one of ours does
//! not hold, it has failed.

use super::{Outcome, Verdict};
use mpibayes::plots::Figure;
use statrs::distribution::{ContinuousCDF, StudentsT};

const ERROR_RATE: f64 = 0.01;

/// What the mean of some differences is said to be.
enum Said {
    Above(f64),
    /// Between these.
    Between(f64, f64),
}

pub struct Claim {
    name: String,
    values: Vec<f64>,
    said: Said,
    is_ours: bool,
}

impl Claim {
    /// That this is not the paper's claim.
    pub fn is_ours(&mut self) {
        self.is_ours = true;
    }
}

/// What a row has to say.
#[derive(Default)]
pub struct Case {
    claims: Vec<Claim>,
    /// Our own criteria, and whether they are met.
    musts: Vec<bool>,
    numbers: Vec<(String, String, String)>,
}

/// A mean and its standard error; not a number where one of them is none.
pub fn mean_and_error(values: &[f64]) -> (f64, f64) {
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    let square = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>();
    (mean, (square / (count * (count - 1.0))).sqrt())
}

/// What the curves of a picture are.
pub fn means_and_errors(seeds: u64) -> String {
    format!("means and standard errors of {seeds} seeds")
}

fn told(values: &[f64]) -> String {
    let (mean, error) = mean_and_error(values);
    format!("{mean:.4} ± {error:.4}")
}

impl Case {
    /// The claim that the mean of these is above a bound; the paper's, if nothing else is said of it.
    pub fn above(&mut self, name: impl Into<String>, values: Vec<f64>, bound: f64) -> &mut Claim {
        self.claim(name.into(), values, Said::Above(bound))
    }

    /// The same that the mean of these is at most so far from 0.
    pub fn within(&mut self, name: impl Into<String>, values: Vec<f64>, bound: f64) -> &mut Claim {
        self.claim(name.into(), values, Said::Between(-bound, bound))
    }

    fn claim(&mut self, name: String, values: Vec<f64>, said: Said) -> &mut Claim {
        let place = self.claims.len();
        self.claims.push(Claim { name, values, said, is_ours: false });
        &mut self.claims[place]
    }

    /// A criterion of our own.
    pub fn must(&mut self, name: impl Into<String>, found: String, expected: impl Into<String>, holds: bool) {
        self.musts.push(holds);
        self.numbers.push((name.into(), found, expected.into()));
    }

    /// A number to look at.
    pub fn shows(&mut self, name: impl Into<String>, values: &[f64], expected: impl Into<String>) {
        self.numbers.push((name.into(), told(values), expected.into()));
    }

    /// All claims and criteria together.
    pub fn judged(self, picture: Option<Figure>) -> Outcome {
        let Self { claims, musts, mut numbers } = self;
        let mut verdicts = Vec::new();
        let mut first = Vec::new();
        for Claim { name, values, said, is_ours } in &claims {
            let (mean, error) = mean_and_error(values);
            let freedom = values.len().saturating_sub(1).max(1) as f64;
            // One seed has no error: nothing is then decided.
            let half = |rate: f64| StudentsT::new(0.0, 1.0, freedom).map_or(f64::NAN, |law| law.inverse_cdf(1.0 - rate)) * error;
            let (holds, fails) = (half(ERROR_RATE), half(ERROR_RATE / claims.len() as f64));
            let (least, most, expected) = match *said {
                Said::Above(bound) => (bound, f64::INFINITY, format!("above {bound}")),
                Said::Between(least, most) => (least, most, format!("{least} to {most}")),
            };
            let verdict = if mean - holds > least && mean + holds < most {
                Verdict::Reproduced
            } else if mean + fails < least || mean - fails > most {
                if *is_ours { Verdict::Failed } else { Verdict::Refuted }
            } else {
                Verdict::Undecided
            };
            verdicts.push(verdict);
            let says = match verdict {
                Verdict::Reproduced => "holds",
                Verdict::Refuted | Verdict::Failed => "does not hold",
                Verdict::Undecided => "undecided",
            };
            first.push((name.clone(), format!("{}, {} seeds: {says}", told(values), values.len()), expected));
        }
        first.append(&mut numbers);
        let verdict = if musts.contains(&false) || verdicts.contains(&Verdict::Failed) {
            Verdict::Failed
        } else if verdicts.contains(&Verdict::Refuted) {
            Verdict::Refuted
        } else if verdicts.contains(&Verdict::Undecided) {
            Verdict::Undecided
        } else {
            Verdict::Reproduced
        };
        Outcome { verdict, numbers: first, picture }
    }
}

/// The differences of two lists, seed by seed.
pub fn minus(one: &[f64], other: &[f64]) -> Vec<f64> {
    one.iter().zip(other).map(|(one, other)| one - other).collect()
}
