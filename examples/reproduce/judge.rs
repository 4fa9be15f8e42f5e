//! Verdicts: claims with an effect size, tested over seeds.
//!
//! A claim, of the paper or of ours, says where the mean over seeds of a difference between runs lies that share the seed (and so their data,
//! where these are drawn). Two t-tests speak about it: one against the hypothesis that the mean lies elsewhere, the other against the
//! hypothesis that it lies there. One rule serves for both: by Holm's method at 1 % over the claims of a row, those hold whose first
//! hypothesis is rejected, and those do not hold whose second one is. So the chance that a row has a claim that falsely holds is below 1 %, and
//! so is the chance that it has one that falsely does not.
//!
//! A row is reproduced if all of its claims hold, and refuted if one of the paper's does not. Where one of ours does not hold, or a mean is no
//! number, it has failed. An undecided row is marked if all of its means lie where the paper does not have them.

pub use super::numbers::{mean_and_error, minus};
use super::numbers::{short, told};
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
    is_by_construction: bool,
}

impl Claim {
    /// That this is not the paper's claim.
    pub fn is_ours(&mut self) {
        self.is_ours = true;
    }

    /// That this follows from how the cluster is simulated, so that it says nothing about samplers.
    pub fn is_by_construction(&mut self) {
        self.is_by_construction = true;
    }

    /// The least and the largest mean of which the claim would be true.
    fn region(&self) -> (f64, f64) {
        match self.said {
            Said::Above(bound) => (bound, f64::INFINITY),
            Said::Between(least, most) => (least, most),
        }
    }

    fn expected(&self) -> String {
        match self.said {
            Said::Above(bound) => format!("above {}", short(bound)),
            Said::Between(least, most) => format!("{} to {}", short(least), short(most)),
        }
    }

    /// The p-values of the hypotheses that the mean lies outside of the region, and inside.
    fn p_values(&self) -> (f64, f64) {
        p_values(mean_and_error(&self.values), self.values.len(), self.region())
    }

    /// Whether the mean lies outside of the region.
    fn is_contradicted(&self) -> bool {
        let (mean, (least, most)) = (mean_and_error(&self.values).0, self.region());
        mean < least || mean > most
    }
}

/// The p-values of the hypotheses that a mean over seeds, found with this standard error, lies outside of a region, and inside; 1 if one seed leaves
/// them open.
fn p_values((mean, error): (f64, f64), seeds: usize, (least, most): (f64, f64)) -> (f64, f64) {
    let Ok(law) = StudentsT::new(0.0, 1.0, seeds as f64 - 1.0) else { return (1.0, 1.0) };
    let beyond = |t: f64| match t {
        // Seeds that agree exactly.
        t if t.is_nan() => 0.5,
        f64::NEG_INFINITY => 1.0,
        f64::INFINITY => 0.0,
        t => law.sf(t),
    };
    // In standard errors: how far the mean lies above the least and below the most, and how wide the region is.
    let (above, below, width) = ((mean - least) / error, (most - mean) / error, (most - least) / error);
    let outside = (-above).max(-below);
    // With the truth at the nearer end, a mean as far beyond the other end would reject as well.
    (beyond(above).max(beyond(below)), (beyond(outside) + beyond(outside + width)).min(1.0))
}

/// The hypotheses that Holm's method rejects.
fn rejected(p_values: &[f64]) -> Vec<bool> {
    let mut order: Vec<usize> = (0..p_values.len()).collect();
    order.sort_by(|a, b| p_values[*a].total_cmp(&p_values[*b]));
    let count =
        order.iter().zip(0..).take_while(|&(&at, place)| p_values[at] < ERROR_RATE / (order.len() - place) as f64).count();
    let mut rejected = vec![false; p_values.len()];
    order[..count].iter().for_each(|&at| rejected[at] = true);
    rejected
}

/// What a row has to say.
#[derive(Default)]
pub struct Case {
    claims: Vec<Claim>,
    /// Our own criteria, and whether they are met.
    musts: Vec<bool>,
    numbers: Vec<(String, String, String)>,
}

/// What the curves of a picture are.
pub fn means_and_errors(seeds: u64) -> String {
    format!("means and standard errors of {seeds} seeds")
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
        self.claims.push(Claim { name, values, said, is_ours: false, is_by_construction: false });
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

    /// The same for one that is no mean over seeds.
    pub fn tells(&mut self, name: impl Into<String>, found: String, expected: impl Into<String>) {
        self.numbers.push((name.into(), found, expected.into()));
    }

    /// All claims and criteria together.
    pub fn judged(self, picture: Option<Figure>) -> Outcome {
        let Self { claims, musts, mut numbers } = self;
        let (outside, inside): (Vec<f64>, Vec<f64>) = claims.iter().map(Claim::p_values).unzip();
        let (hold, fail) = (rejected(&outside), rejected(&inside));
        let mut verdicts = Vec::new();
        let mut first = Vec::new();
        for (claim, (holds, fails)) in claims.iter().zip(hold.into_iter().zip(fail)) {
            let is_number = mean_and_error(&claim.values).0.is_finite();
            let (verdict, says) = match (is_number, holds, fails) {
                (false, ..) => (Verdict::Failed, "not a number"),
                (_, true, _) => (Verdict::Reproduced, "holds"),
                (_, _, true) if claim.is_ours => (Verdict::Failed, "does not hold"),
                (_, _, true) => (Verdict::Refuted, "does not hold"),
                _ => (Verdict::Undecided, "undecided"),
            };
            verdicts.push(verdict);
            let how = if claim.is_by_construction { " by construction" } else { "" };
            let found = format!("{}, {} seeds: {says}{how}", told(&claim.values), claim.values.len());
            first.push((claim.name.clone(), found, claim.expected()));
        }
        first.append(&mut numbers);
        let has = |wanted| verdicts.contains(&wanted);
        let verdict = if musts.contains(&false) || has(Verdict::Failed) {
            Verdict::Failed
        } else if has(Verdict::Refuted) {
            Verdict::Refuted
        } else if has(Verdict::Undecided) {
            let mut of_paper = claims.iter().filter(|claim| !claim.is_ours && !claim.is_by_construction).peekable();
            let is_contrary = of_paper.peek().is_some() && of_paper.all(Claim::is_contradicted);
            if is_contrary { Verdict::Contrary } else { Verdict::Undecided }
        } else if !claims.is_empty() && claims.iter().all(|claim| claim.is_by_construction) {
            Verdict::ByConstruction
        } else {
            Verdict::Reproduced
        };
        Outcome { verdict, numbers: first, picture }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(claims: &[(&[f64], f64)]) -> Verdict {
        let mut case = Case::default();
        for (values, bound) in claims {
            case.above("", values.to_vec(), *bound);
        }
        case.judged(None).verdict
    }

    #[test]
    fn both_directions_have_one_rule() {
        let near = [1.0, 1.1, 0.9, 1.05, 0.95];
        assert_eq!((verdict(&[(&near, 0.0)]), verdict(&[(&near, 2.0)])), (Verdict::Reproduced, Verdict::Refuted));
        // t is 2.8 with four degrees of freedom: .024 on one side.
        assert_eq!((verdict(&[(&near, 0.9)]), verdict(&[(&near, 1.1)])), (Verdict::Undecided, Verdict::Contrary));
        // t is 4.2: .0066. Alone that decides, but not among two.
        assert_eq!((verdict(&[(&near, 0.85)]), verdict(&[(&near, 1.15)])), (Verdict::Reproduced, Verdict::Refuted));
        assert_eq!(verdict(&[(&near, 0.85), (&near, 0.9)]), Verdict::Undecided);
        assert_eq!(verdict(&[(&near, 1.15), (&near, 1.1)]), Verdict::Contrary);
        // After the first of two, the second has the whole rate.
        assert_eq!(verdict(&[(&near, 0.0), (&near, 0.85)]), Verdict::Reproduced);
    }

    #[test]
    fn what_is_no_number_has_failed_and_one_seed_decides_nothing() {
        assert_eq!(verdict(&[(&[1.0, f64::NAN], 0.0)]), Verdict::Failed);
        assert_eq!(verdict(&[(&[1.0], 0.0)]), Verdict::Undecided);
        assert_eq!(verdict(&[(&[1.0, 1.0], 0.0)]), Verdict::Reproduced);
        assert_eq!(verdict(&[(&[1.0, 1.0], 1.0)]), Verdict::Undecided);
    }

    #[test]
    fn a_mean_is_said_to_lie_between_bounds_by_two_tests() {
        let of = |values: &[f64], bound: f64| {
            let mut case = Case::default();
            case.within("", values.to_vec(), bound);
            case.judged(None).verdict
        };
        let near = [0.1, 0.2, 0.0, 0.15, 0.05];
        assert_eq!(
            (of(&near, 0.5), of(&near, 0.15), of(&near, 0.02)),
            (Verdict::Reproduced, Verdict::Undecided, Verdict::Contrary)
        );
        let far = near.map(|value| -3.0 - value);
        assert_eq!(of(&far, 0.5), Verdict::Refuted);
        // A mean of 2 is 1 beyond one end of this interval and 3 beyond the other.
        let (_, inside) = p_values((2.0, 1.0), 5, (-1.0, 1.0));
        let law = StudentsT::new(0.0, 1.0, 4.0).map_or(f64::NAN, |law| law.sf(1.0) + law.sf(3.0));
        assert!((inside - law).abs() < 1e-12, "{inside} {law}");
        // t is 4.0 with four degrees of freedom: .008 beyond one end, and as much again beyond the other end of an interval without width.
        let shifted = near.map(|value| value + 0.0414);
        assert_eq!((of(&shifted, 1e-9), of(&near.map(|value| value + 0.2414), 0.2)), (Verdict::Contrary, Verdict::Refuted));
    }

    /// A claim in a stored result.
    struct Stored {
        mean: f64,
        error: f64,
        seeds: usize,
        region: (f64, f64),
        says: String,
    }

    impl Stored {
        /// Of the numbers of a result, those that are claims.
        fn parse(found: &str, expected: &str) -> Option<Self> {
            let (mean, rest) = found.split_once(" ± ")?;
            let (error, rest) = rest.split_once(", ")?;
            let (seeds, says) = rest.split_once(" seeds: ")?;
            let region = match expected.strip_prefix("above ") {
                Some(bound) => (bound.parse().ok()?, f64::INFINITY),
                None => expected.split_once(" to ").and_then(|(least, most)| Some((least.parse().ok()?, most.parse().ok()?)))?,
            };
            let says = says.trim_end_matches(" by construction").to_owned();
            Some(Self { mean: mean.parse().ok()?, error: error.parse().ok()?, seeds: seeds.parse().ok()?, region, says })
        }

        /// The least and the largest p-values that its numbers, which are rounded to four digits, allow.
        fn p_values(&self) -> [(f64, f64); 2] {
            // That of the mean and that of a bound.
            let means = [-1e-4, 1e-4].map(|off| self.mean + off);
            let errors = [-5e-5, 5e-5].map(|off| (self.error + off).max(0.0));
            let all = means.iter().flat_map(|mean| errors.map(|error| p_values((*mean, error), self.seeds, self.region)));
            let all: Vec<(f64, f64)> = all.collect();
            [f64::min as fn(f64, f64) -> f64, f64::max]
                .map(|one| all.iter().copied().reduce(|a, b| (one(a.0, b.0), one(a.1, b.1))).unwrap_or((1.0, 1.0)))
        }
    }

    /// So results need not be made anew when the rule changes, unless this fails.
    #[test]
    fn stored_results_say_what_the_rule_says_of_their_numbers() -> anyhow::Result<()> {
        let mut count = 0;
        for paper in crate::PAPERS {
            let results = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("jobs/papers").join(paper).join("results");
            for file in std::fs::read_dir(&results)? {
                let file = file?.path();
                if file.extension().is_none_or(|extension| extension != "json") {
                    continue;
                }
                let Some(kept) = crate::Kept::read(&file)? else { continue };
                let of_claims = kept.outcome.numbers.iter().filter(|(_, found, _)| found.contains(" seeds: "));
                let parse = |(name, found, expected): &(String, String, String)| {
                    Stored::parse(found, expected)
                        .ok_or_else(|| anyhow::anyhow!("{}: {name}: {found}, {expected}", file.display()))
                };
                let claims: Vec<Stored> = of_claims.map(parse).collect::<Result<_, _>>()?;
                let [least, largest] = [0, 1].map(|end| {
                    let (outside, inside): (Vec<f64>, Vec<f64>) = claims.iter().map(|claim| claim.p_values()[end]).unzip();
                    (rejected(&outside), rejected(&inside))
                });
                for (place, claim) in claims.iter().enumerate() {
                    let agrees = match claim.says.as_str() {
                        "holds" => least.0[place],
                        "does not hold" => least.1[place],
                        "undecided" => !largest.0[place] && !largest.1[place],
                        "not a number" => !claim.mean.is_finite(),
                        other => anyhow::bail!("{}: {other}", file.display()),
                    };
                    anyhow::ensure!(agrees, "{}, claim {}: {}", file.display(), place + 1, claim.says);
                    count += 1;
                }
                let some_claim = |wanted: &str| claims.iter().any(|claim| claim.says == wanted);
                let verdict = kept.outcome.verdict;
                // Failed rows may also miss criteria of ours.
                let agrees = match (some_claim("does not hold"), some_claim("undecided")) {
                    _ if claims.is_empty() || verdict == Verdict::Failed => true,
                    (true, _) => verdict == Verdict::Refuted,
                    (false, true) => matches!(verdict, Verdict::Undecided | Verdict::Contrary),
                    (false, false) => matches!(verdict, Verdict::Reproduced | Verdict::ByConstruction),
                };
                anyhow::ensure!(agrees, "{}: {verdict:?}", file.display());
            }
        }
        anyhow::ensure!(count > 100, "only {count} claims were found");
        Ok(())
    }

    #[test]
    fn what_follows_from_the_simulation_is_not_reproduced() {
        let mut case = Case::default();
        case.above("", vec![1.0, 1.0], 0.0).is_by_construction();
        assert_eq!(case.judged(None).verdict, Verdict::ByConstruction);
        let mut case = Case::default();
        case.above("", vec![1.0, 1.0], 0.0).is_by_construction();
        case.above("", vec![1.0, 1.0], 0.0);
        assert_eq!(case.judged(None).verdict, Verdict::Reproduced);
    }
}
