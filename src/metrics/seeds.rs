//! A metric over several seeds, and which settings are the best as far as the seeds can tell.

use super::quantity::Better;
use serde::Serialize;
use statrs::distribution::{ContinuousCDF, StudentsT};

/// With settings of equal means, the probability of a mark.
const FALSE_ALARMS: f64 = 0.05;

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

    /// The probability, under equal means, that Welch's t-test finds this one larger by at least as much as it is.
    fn p_value_of_being_larger(&self, other: &Self) -> f64 {
        let [variance, other_variance] = [self, other].map(|side| side.sd.powi(2) / side.seeds as f64);
        let (difference, error) = (self.mean - other.mean, variance + other_variance);
        if error == 0.0 {
            return if difference > 0.0 { 0.0 } else { 1.0 };
        }
        let freedom = |variance: f64, side: &Self| variance.powi(2) / (side.seeds - 1) as f64;
        let freedom = error.powi(2) / (freedom(variance, self) + freedom(other_variance, other));
        StudentsT::new(0.0, 1.0, freedom).map_or(1.0, |t| t.sf(difference / error.sqrt()))
    }
}

/// The settings with the best mean and those that the seeds cannot tell from it; none if that is all of them, or if one has fewer than
/// two seeds. The test is Welch's, at 5 % over all pairs.
pub fn best(settings: &[OverSeeds], better: Better) -> Vec<usize> {
    if settings.len() < 2 || settings.iter().any(|one| one.seeds < 2 || !one.sd.is_finite()) {
        return Vec::new();
    }
    let Some(value) = better.best(settings.iter().map(|one| one.mean)) else { return Vec::new() };
    // Each pair is tested in the direction of its larger mean.
    let level = FALSE_ALARMS / (settings.len() * (settings.len() - 1)) as f64;
    let is_worse = |one: &OverSeeds| {
        settings.iter().filter(|leader| leader.mean == value).any(|leader| match better {
            Better::Higher => leader.p_value_of_being_larger(one) < level,
            Better::Lower => one.p_value_of_being_larger(leader) < level,
        })
    };
    let best: Vec<usize> = (0..settings.len()).filter(|&place| !is_worse(&settings[place])).collect();
    if best.len() == settings.len() { Vec::new() } else { best }
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
        let p = a.p_value_of_being_larger(&b);
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
        assert_eq!(best(&[OverSeeds::of([0.9, 0.9]), OverSeeds::of([0.1, 0.1])], Better::Higher), [0]);
    }

    /// Without differences, marks appear in at most 5 % of 2,000 comparisons of four settings, within three standard errors.
    #[test]
    fn equal_settings_rarely_get_a_mark() {
        let mut stream = Seed(1).stream(Who::Run, 0, Purpose::Partition);
        let marked = (0..2000).filter(|_| {
            let mut values = [0.0; 20];
            stream.normals(&mut values);
            let settings: Vec<OverSeeds> = values.chunks(5).map(|seeds| OverSeeds::of(seeds.iter().copied())).collect();
            !best(&settings, Better::Higher).is_empty()
        });
        let rate = marked.count() as f64 / 2000.0;
        assert!((0.01..0.0646).contains(&rate), "{rate}");
    }
}
