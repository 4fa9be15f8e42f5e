//! A metric over several seeds, and which settings are the best as far as the seeds can tell.

use super::quantity::Better;
use serde::Serialize;
use statrs::distribution::{ContinuousCDF, StudentsT};

/// Smaller relative differences are roundings.
const ROUNDING: f64 = 1e-9;
/// Fewer seeds tell nothing.
pub const MIN_SEEDS: usize = 3;
/// With settings of equal means, the probability of a mark.
const FALSE_ALARMS: f64 = 0.05;

/// What the band around a mean over seeds shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Band {
    /// One standard deviation to each side
    Sd,
    /// The smallest and the largest value
    Range,
}

impl Band {
    /// Its name in a legend.
    pub fn name(self) -> &'static str {
        match self {
            Self::Sd => "sd",
            Self::Range => "range",
        }
    }
}

/// Mean and standard deviation of a metric over seeds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct OverSeeds {
    /// How many seeds have a value.
    pub seeds: usize,
    /// The mean; NaN without a value.
    pub mean: f64,
    /// The sample standard deviation; NaN with fewer than two values.
    pub sd: f64,
}

impl OverSeeds {
    /// Those of values, where NaN is a missing one.
    pub fn of(values: impl IntoIterator<Item = f64>) -> Self {
        let values: Vec<f64> = values.into_iter().filter(|value| !value.is_nan()).collect();
        let n = values.len() as f64;
        let mean = values.iter().sum::<f64>() / n;
        let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
        let sd = if values.len() > 1 { (squares / (n - 1.0)).sqrt() } else { f64::NAN };
        Self { seeds: values.len(), mean, sd }
    }

    /// The variance of the mean, by the seeds' own spread, and at least by `spread`.
    fn variance(&self, spread: f64) -> f64 {
        self.sd.max(spread).powi(2) / self.seeds as f64
    }

    /// The probability, under equal means, that Welch's t-test finds this one larger by at least as much as it is. Spreads are at least
    /// `spread`, because a few seeds can agree by chance.
    fn p_value_of_being_larger(&self, other: &Self, spread: f64) -> f64 {
        let [variance, other_variance] = [self, other].map(|side| side.variance(spread));
        let error = variance + other_variance;
        let freedom = |variance: f64, side: &Self| variance.powi(2) / (side.seeds - 1) as f64;
        let freedom = error.powi(2) / (freedom(variance, self) + freedom(other_variance, other));
        let t = (self.mean - other.mean) / error.sqrt();
        StudentsT::new(0.0, 1.0, freedom).map_or(1.0, |distribution| distribution.sf(t))
    }
}

/// The settings with the best mean and those that the seeds cannot tell from it; none if that is all of them, or if a setting has fewer than
/// three seeds: it may be better than all others. The test is Welch's, at 5 % over all pairs.
pub fn best(settings: &[OverSeeds], better: Better) -> Vec<usize> {
    if settings.iter().any(|one| (1..MIN_SEEDS).contains(&one.seeds)) {
        return Vec::new();
    }
    let compared: Vec<usize> = (0..settings.len()).filter(|&place| settings[place].sd.is_finite()).collect();
    let of_compared = || compared.iter().map(|&place| &settings[place]);
    let Some(value) = better.best(of_compared().map(|one| one.mean)).filter(|_| compared.len() > 1) else { return Vec::new() };
    // Seeds that change nothing but roundings tell nothing.
    if of_compared().all(|one| one.sd <= ROUNDING * one.mean.abs()) {
        return Vec::new();
    }
    let spread_of_all = pooled_spread(of_compared());
    let spread = |one: &OverSeeds, other: &OverSeeds| match pooled_spread([one, other]) {
        // Both have the same value with every seed.
        none if none <= ROUNDING * one.mean.abs().max(other.mean.abs()) => spread_of_all,
        spread => spread,
    };
    // Each pair is tested in the direction of its larger mean.
    let level = FALSE_ALARMS / (compared.len() * (compared.len() - 1)) as f64;
    let is_worse = |one: &OverSeeds| {
        of_compared().filter(|leader| leader.mean == value).any(|leader| match better {
            Better::Higher => leader.p_value_of_being_larger(one, spread(leader, one)) < level,
            Better::Lower => one.p_value_of_being_larger(leader, spread(leader, one)) < level,
        })
    };
    let best: Vec<usize> = compared.iter().copied().filter(|&place| !is_worse(&settings[place])).collect();
    if best.len() == compared.len() { Vec::new() } else { best }
}

/// The standard deviation of settings together, so that seeds of one that agree by chance do not look certain.
fn pooled_spread<'a>(settings: impl IntoIterator<Item = &'a OverSeeds>) -> f64 {
    let (mut squares, mut freedom) = (0.0, 0.0);
    for one in settings {
        let own = (one.seeds - 1) as f64;
        squares += own * one.sd.powi(2);
        freedom += own;
    }
    (squares / freedom).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::{Purpose, Seed, Who};

    #[test]
    fn the_test_is_that_of_welch() {
        // scipy.stats.ttest_ind([5.1, 4.9, 5.6, 5.2], [4.2, 4.8, 4.4], equal_var=False, alternative="greater")
        let (a, b) = (OverSeeds::of([5.1, 4.9, 5.6, 5.2]), OverSeeds::of([4.2, f64::NAN, 4.8, 4.4]));
        assert_eq!((a.seeds, b.seeds), (4, 3));
        assert!((a.mean - 5.2).abs() < 1e-12 && (a.sd - 0.294_392_028_877_594_5).abs() < 1e-12, "{a:?}");
        let p = a.p_value_of_being_larger(&b, 0.0);
        assert!((p - 0.014_727_346_922_495_619).abs() < 1e-9, "{p}");
    }

    #[test]
    fn a_mark_means_something() {
        let clear = [OverSeeds::of([0.9, 0.91, 0.92]), OverSeeds::of([0.7, 0.71, 0.72]), OverSeeds::of([0.9, 0.92, 0.93])];
        assert_eq!(best(&clear, Better::Higher), [0, 2]);
        assert_eq!(best(&clear, Better::Lower), [1]);
        // The control: the same means with a spread that hides the difference, and single seeds.
        let hidden = [OverSeeds::of([0.5, 0.9, 1.3]), OverSeeds::of([0.3, 0.7, 1.1])];
        assert_eq!(best(&hidden, Better::Higher), [0_usize; 0]);
        assert_eq!(best(&[OverSeeds::of([0.9]), OverSeeds::of([0.1])], Better::Higher), [0_usize; 0]);
        // A setting with a single seed may be the best; one without the metric takes no part.
        let [best_one, worse, _] = clear;
        assert_eq!(best(&[OverSeeds::of([0.99]), best_one, worse], Better::Higher), [0_usize; 0]);
        assert_eq!(best(&[OverSeeds::of([f64::NAN]), best_one, worse], Better::Higher), [1]);
        // A noisy setting does not hide the difference between others.
        let noisy = OverSeeds::of([0.2, 0.5, 0.8]);
        let apart = [OverSeeds::of([0.9, 0.901, 0.902]), OverSeeds::of([0.7, 0.701, 0.702]), noisy];
        assert!(!best(&apart, Better::Higher).contains(&1), "{:?}", best(&apart, Better::Higher));
        // The spread of another setting decides between two that have none.
        let without = [OverSeeds::of([0.9; 3]), OverSeeds::of([0.1; 3]), OverSeeds::of([0.5, 0.51, 0.52])];
        assert_eq!(best(&without, Better::Higher), [0]);
        // No spread at all: seeds that change nothing tell nothing.
        assert_eq!(best(&[OverSeeds::of([0.9; 3]), OverSeeds::of([0.1; 3])], Better::Higher), [0_usize; 0]);
    }

    /// Without differences, marks appear in at most 5 % of 2,000 comparisons, within three standard errors: four settings of five normal values,
    /// and six settings of three accuracies on 50 rows, which are often equal.
    #[test]
    fn equal_settings_rarely_get_a_mark() {
        let mut stream = Seed(1).stream(Who::Run, 0, Purpose::Partition);
        let mut normals = |count: usize| {
            let mut values = vec![0.0; count];
            stream.normals(&mut values);
            values
        };
        let mut rate = |settings: usize, seeds: usize, value: &dyn Fn(&[f64]) -> f64, size: usize| {
            let marked = (0..2000).filter(|_| {
                let values: Vec<f64> = normals(settings * seeds * size).chunks(size).map(value).collect();
                let settings: Vec<OverSeeds> = values.chunks(seeds).map(|seeds| OverSeeds::of(seeds.iter().copied())).collect();
                !best(&settings, Better::Higher).is_empty()
            });
            marked.count() as f64 / 2000.0
        };
        let of_normals = rate(4, 5, &|values| values[0], 1);
        // 95 % of rows are right.
        let of_accuracies = rate(6, 3, &|rows| rows.iter().filter(|&&row| row < 1.645).count() as f64 / 50.0, 50);
        assert!((0.005..0.0646).contains(&of_normals), "{of_normals}");
        assert!(of_accuracies < 0.0646, "{of_accuracies}");
    }
}
