//! Compares EC-SGHMC with one chain, with asynchronous SGHMC and with momentum descent, for a residual network on CIFAR-10.

use super::super::dsvgd::sets::Set;
use super::super::files::{Runs, value};
use super::super::judge::{Case, mean_and_error, means_and_errors, minus};
use super::super::pictures::{Chart, Curves, curves};
use super::super::workers::side_by_side;
use super::super::{Effort, Outcome};
use super::networks::{
    Evaluated, GUESSING, Images, OfAverage, Path, Tuned, gradient_seconds, mean_log, race, shortened, steps_of_worker, tuned,
    with, with_step,
};
use mpibayes::cluster::BoxError;
use toml::Table;

type Result<T, E = BoxError> = std::result::Result<T, E>;

/// Test images that are judged.
const JUDGED: usize = 500;
/// The maximum number of times that a step size is doubled or halved.
const MOVES: u32 = 3;
/// Step sizes are compared by runs that are so many times shorter.
const TUNING_SHARE: u64 = 2;
/// The maximum number of seeds, because a run of six chains takes minutes.
const SEEDS: u64 = 3;
/// The runs of the files, in their order.
const NAMES: [&str; 3] = ["SGHMC, one chain", "asynchronous SGHMC, s = 8", "EC-SGHMC, s = 8"];

/// Reference runs: a name, and the settings that differ from the run of coupled chains.
const REFERENCES: [(&str, &[&str]); 3] = [
    ("EC-SGHMC with filter response normalization", &[NORMALIZED, SMOOTH]),
    ("momentum descent, six networks", &[WITHOUT_NOISE, ALONE, OWN_START]),
    ("momentum descent with filter response normalization, six networks", &[NORMALIZED, SMOOTH, WITHOUT_NOISE, ALONE, OWN_START]),
];
/// What the quick version has instead: a shallow network, small batches, and fewer test images.
const QUICK: [&str; 2] = ["model.depth=8", "method.batch=10"];
const QUICK_JUDGED: usize = 100;
const NORMALIZED: &str = "model.normalization=\"filter_response\"";
const SMOOTH: &str = "model.activation=\"swish\"";
const WITHOUT_NOISE: &str = "method.noise=false";
const ALONE: &str = "method.coupling=0.0";
const OWN_START: &str = "method.same_start=false";

/// Fig. 2, right.
pub fn figure2_right(effort: Effort, files: &[Runs]) -> Result<Outcome> {
    let tests = if effort.is_quick() { QUICK_JUDGED } else { JUDGED };
    let images = Images::new(&Set::cifar(JUDGED)?)?.with_first_tests(tests);
    let seeds: Vec<u64> = (1..=effort.seeds.min(SEEDS)).collect();
    // Evaluations, after each tenth of the steps, must coincide with exchanges, after each eighth step.
    let (share, tuning_share, moves) = if effort.is_quick() { (4, 4, 0) } else { (1, TUNING_SHARE, MOVES) };
    let shortened = |share| -> Result<Vec<Table>> {
        let runs = shortened(files, share);
        if !effort.is_quick() {
            return Ok(runs);
        }
        runs.iter().map(|run| QUICK.iter().try_fold(run.clone(), |run, setting| with(&run, setting))).collect()
    };
    let runs = shortened(share)?;
    let [one, _, coupled] = runs.as_slice() else { return Err("three runs are needed".into()) };
    let steps = steps_of_worker(one)?;
    let seconds = gradient_seconds(&images, one, effort)?;

    let tuned = tuned(&shortened(tuning_share)?, moves, &images, seconds, steps * share / tuning_share)?;
    let with_best = |(run, tuned): (&Table, &Tuned)| with_step(run, tuned.factor);
    let runs = runs.iter().zip(&tuned).map(with_best).collect::<Result<Vec<_>>>()?;
    let references = REFERENCES.iter().map(|(_, settings)| {
        let tuned = with_step(coupled, tuned[NAMES.len() - 1].factor)?;
        settings.iter().try_fold(tuned, |run, setting| with(&run, setting))
    });
    let references = references.collect::<Result<Vec<_>>>()?;

    let judged = runs.iter().flat_map(|run| seeds.iter().map(move |&seed| (run, seed)));
    let jobs: Vec<(&Table, u64)> = judged.chain(references.iter().map(|run| (run, seeds[0]))).collect();
    let found = side_by_side(&jobs, |&(run, seed)| race(run, &images, seconds, seed))?;
    let (judged, of_references) = found.split_at(runs.len() * seeds.len());
    let of = |place: usize| &judged[place * seeds.len()..][..seeds.len()];
    let means = |place: usize| of(place).iter().map(|course| mean_log(course, steps)).collect::<Vec<f64>>();

    let mut case = Case::default();
    case.above("one chain less EC-SGHMC", minus(&means(0), &means(2)), 0.0);
    let difference = minus(&means(1), &means(2));
    case.shows("asynchronous SGHMC less EC-SGHMC", &difference, "");
    for (place, name) in NAMES.iter().enumerate() {
        case.tells(format!("{name}: step size"), tuned[place].step()?, "");
        let ends = of(place).iter().map(|course| end(course, steps)).collect::<Vec<Evaluated>>();
        let all = |of: fn(&Evaluated) -> f64| ends.iter().map(of).collect::<Vec<f64>>();
        case.shows(format!("{name}: a chain's own NLL in the end"), &all(|end| end.own_nll), "");
        case.shows(format!("{name}: of the averaged predictions"), &all(|end| end.of_average.nll), "");
        case.shows(format!("{name}: their accuracy"), &all(|end| end.of_average.accuracy), "");
        case.shows(format!("{name}: their expected calibration error"), &all(|end| end.of_average.ece), "");
    }
    for ((name, _), course) in REFERENCES.iter().zip(of_references) {
        let Evaluated { own_nll, of_average: OfAverage { nll, accuracy, ece }, .. } = end(course, steps);
        let all =
            format!("{own_nll:.3}; of the averaged predictions {nll:.3}, accuracy {accuracy:.3}, calibration error {ece:.3}");
        case.tells(format!("{name}, one seed: own NLL in the end"), all, "");
    }
    let lines = |x: fn(&Evaluated) -> f64| -> Curves {
        let line = |course: &Path| course.iter().map(|at| (x(at), at.own_nll.min(GUESSING))).collect();
        let judged = NAMES.iter().enumerate().map(|(place, name)| (name.to_string(), of(place).iter().map(line).collect()));
        let others = REFERENCES.iter().zip(of_references).map(|((name, _), course)| (name.to_string(), vec![line(course)]));
        judged.chain(others).collect()
    };
    let label = "test NLL of a chain";
    let charts = vec![
        Chart::new("", "steps of each worker", label, lines(|at| at.steps)),
        Chart::new("", "simulated seconds", label, lines(|at| at.seconds)),
    ];
    let (mean, error) = mean_and_error(&difference);
    let caption = format!(
        "{} images of CIFAR-10, ResNet-{} without normalization, batch {}, prior precision {}, V = {}, κ = {:e}; a gradient takes {:.0} ms. NLL: \
         mean negative log-likelihood of {tests} test images; what has diverged is as good as guessing; asynchronous less coupled chains \
         {mean:.3} ± {error:.3}; {}.",
        images.train.rows(),
        value::<u32>(one, "model.depth")?,
        value::<usize>(one, "method.batch")?,
        value::<f64>(one, "model.prior_precision")?,
        value::<f64>(one, "method.friction")?,
        value::<f64>(coupled, "method.coupling")?,
        seconds * 1e3,
        means_and_errors(seeds.len() as u64)
    );
    Ok(case.judged(Some(curves("Six workers on CIFAR-10", charts, &caption))))
}

/// The evaluation after so many steps. A run that has diverged before is as good as guessing, and no likelihood counts as worse.
fn end(course: &Path, steps: u64) -> Evaluated {
    let guessing = OfAverage { nll: GUESSING, accuracy: 0.1, ece: 0.0 };
    let guessing = Evaluated { steps: steps as f64, seconds: f64::NAN, own_nll: GUESSING, of_average: guessing };
    let is_finite = |at: &&Evaluated| at.own_nll.is_finite() && at.of_average.nll.is_finite();
    let last = course.iter().find(|at| at.is_at(steps)).filter(is_finite).copied().unwrap_or(guessing);
    let of_average = OfAverage { nll: last.of_average.nll.min(GUESSING), ..last.of_average };
    Evaluated { own_nll: last.own_nll.min(GUESSING), of_average, ..last }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_that_has_diverged_ends_as_good_as_guessing_and_one_that_is_too_certain_does_not() {
        let at = |steps: f64, nll: f64| {
            let of_average = OfAverage { nll, accuracy: 0.3, ece: 0.25 };
            Evaluated { steps, seconds: 1.0, own_nll: nll, of_average }
        };
        let shown = |course: &Path| {
            let Evaluated { own_nll, of_average, .. } = end(course, 20);
            [own_nll, of_average.nll, of_average.accuracy, of_average.ece]
        };
        assert_eq!(shown(&vec![at(10.0, 2.0), at(20.0, 1.5)]), [1.5, 1.5, 0.3, 0.25]);
        assert_eq!(shown(&vec![at(10.0, 2.0), at(20.0, 4.0)]), [GUESSING, GUESSING, 0.3, 0.25]);
        let guessing = [GUESSING, GUESSING, 0.1, 0.0];
        assert_eq!(shown(&vec![at(10.0, 2.0)]), guessing);
        assert_eq!(shown(&vec![at(20.0, f64::NAN)]), guessing);
    }
}
