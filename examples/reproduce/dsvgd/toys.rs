//! The examples in one and two dimensions, compared with densities on a grid.

use super::super::files::Runs;
use super::super::grid::{Grid, GridDvi, log_normal, toy_loss};
use super::super::judge::{Case, minus};
use super::super::pictures::{Chart, curves, densities, scatters};
use super::super::{Effort, Outcome};
use super::runs::{AUTHORS, Contender, Course, EXACT, FLOOR, GVI, NO_CAVITY, PVI, REMEMBERED, Result, SVGD};
use mpibayes::kernels::kde::{Kde, KdeMode};
use ndarray::{Array2, ArrayView2, Axis};

/// The default density estimate of particles.
const MEASURE: Kde = Kde { mode: KdeMode::Lse { floor: 0.0 }, bandwidth: 0.55 };
/// The particles before the first and after each round, for several seeds.
type Paths = Vec<Vec<Array2<f64>>>;

fn paths(contender: Contender, runs: &Runs, seeds: u64) -> Result<Paths> {
    let none = (0..seeds).map(|_| None).collect::<Vec<_>>();
    runs.courses(&[contender], &none)?.iter().flatten().map(Course::particles).collect()
}

/// KL divergence of the particles' density from a distribution after each round, seed by seed.
fn divergences(paths: &Paths, grid: &Grid, kde: Kde, law: &[f64]) -> Vec<Vec<f64>> {
    let of = |path: &Vec<Array2<f64>>| path.iter().map(|theta| grid.kl_of_particles(kde, theta.view(), law)).collect();
    paths.iter().map(of).collect()
}

/// KL divergence of the Gaussian with the moments of the draws after each round, for `pvi` and `gvi`.
fn divergences_of_gaussian(paths: &Paths, grid: &Grid, law: &[f64]) -> Vec<Vec<f64>> {
    let of = |theta: &Array2<f64>| {
        let (mean, variance) = (theta.column(0).mean().unwrap_or(f64::NAN), theta.column(0).var(0.0));
        grid.kl(&grid.map(|x| log_normal(x[0], mean, variance)), law)
    };
    paths.iter().map(|path| path.iter().map(of).collect()).collect()
}

/// Pairs values with their rounds, from 1.
fn numbered(rounds: &[Vec<f64>]) -> Vec<Vec<(f64, f64)>> {
    rounds.iter().map(|values| (1..).zip(values).map(|(round, &value)| (f64::from(round), value)).collect()).collect()
}

fn over(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// The logarithm of a Gaussian's density on a grid.
fn gaussian(grid: &Grid, mean: &[f64], precision: &Array2<f64>) -> Vec<f64> {
    grid.normalize(grid.map(|x| {
        let off = |i: usize| x[i] - mean[i];
        precision.indexed_iter().map(|((i, j), precision)| -0.5 * off(i) * precision * off(j)).sum()
    }))
}

/// The Gaussian of least KL(q ‖ p) from a log-density on a grid: the damped fixed point of Λ = −E ∇² log p, E ∇ log p = 0, with derivatives by
/// partial integration.
fn nearest_gaussian(grid: &Grid, log: &[f64]) -> (Vec<f64>, Array2<f64>, f64) {
    let d = grid.points.ncols();
    let (mut mean, mut precision) = (vec![0.0; d], Array2::eye(d));
    for _ in 0..400 {
        let q = gaussian(grid, &mean, &precision);
        let (mut level, mut first, mut second) = (0.0, vec![0.0; d], Array2::<f64>::zeros((d, d)));
        for (x, (q, p)) in grid.points.rows().into_iter().zip(q.iter().zip(log)) {
            // Points with density 0 have negligible q.
            let weight = if p.is_finite() { q.exp() * grid.volume * p } else { 0.0 };
            level += weight;
            for i in 0..d {
                first[i] += weight * (x[i] - mean[i]);
                (0..d).for_each(|j| second[[i, j]] += weight * (x[i] - mean[i]) * (x[j] - mean[j]));
            }
        }
        // E ∇ log p = Λ E (x − m) log p; E ∇² log p = Λ E (x − m)(x − m)ᵀ log p Λ − Λ E log p. A Newton step moves m by Λ⁻¹ E ∇ log p.
        let curvature = precision.dot(&second).dot(&precision) - &precision * level;
        mean.iter_mut().zip(&first).for_each(|(mean, step)| *mean += 0.1 * step);
        // Asymmetry from rounding would grow.
        precision = &precision * 0.9 - (&curvature + &curvature.t()) * 0.05;
    }
    let divergence = grid.kl(&gaussian(grid, &mean, &precision), log);
    (mean, precision, divergence)
}

/// The local maxima of a density on a line that reach a twentieth of the highest, from left to right.
fn modes(grid: &Grid, log: &[f64]) -> Vec<f64> {
    let top = log.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let is_mode = |i: &usize| log[*i] > log[i - 1] && log[*i] >= log[i + 1] && log[*i] > top - 20_f64.ln();
    (1..log.len() - 1).filter(is_mode).map(|i| grid.points[[i, 0]]).collect()
}

fn estimate(grid: &Grid, theta: ArrayView2<f64>) -> Vec<f64> {
    let mut log = vec![0.0; grid.points.nrows()];
    MEASURE.log_density(theta, grid.points.view(), &mut log);
    log
}

fn losses(grid: &Grid) -> Vec<Vec<f64>> {
    (0..2).map(|agent| grid.map(|x| toy_loss(agent, x[0]))).collect()
}

/// The distance of a mode where there is another number of them.
const NO_MODE: f64 = 6.0;

/// Fig. 2.
pub fn uniform_prior(effort: Effort, files: &[Runs]) -> Result<Outcome> {
    let grid = Grid::line(-6.0, 6.0, 1200);
    let mut exact = GridDvi::new(grid.clone(), vec![0.0; 1200], losses(&grid), 1.0);
    let law = exact.optimum();
    exact.visit(0);
    let local = exact.q.clone();
    let seeds = effort.seeds;
    let found = paths(FLOOR, &files[0], seeds)?;
    let without = paths(NO_CAVITY, &files[0], seeds)?;
    let kl = divergences(&found, &grid, MEASURE, &law);
    let mut case = Case::default();
    let found_modes =
        |round: usize| -> Vec<Vec<f64>> { found.iter().map(|path| modes(&grid, &estimate(&grid, path[round].view()))).collect() };
    let first: Vec<f64> = found_modes(0).iter().map(|at| if at.len() == 1 { at[0] - 1.0 } else { NO_MODE }).collect();
    case.within("round 1: the only mode less 1, that of the first agent's factor", first, 0.5);
    for round in 2..=4_usize {
        let at = found_modes(round - 1);
        let side =
            |place: usize, exact: f64| at.iter().map(|at| if at.len() == 2 { at[place] - exact } else { NO_MODE }).collect();
        case.within(format!("round {round}: the left one of two modes less the exact −2.197"), side(0, -2.197), 0.5);
        case.within(format!("round {round}: the right one of two modes less the exact 2.333"), side(1, 2.333), 0.5);
        let values: Vec<f64> = kl.iter().map(|kl| 0.06 - kl[round - 1]).collect();
        case.above(format!("round {round}: .06 less the divergence from the posterior"), values, 0.0);
    }
    for round in 1..=4_usize {
        let at: Vec<f64> = kl.iter().map(|kl| kl[round - 1]).collect();
        let none: Vec<f64> = divergences(&without, &grid, MEASURE, &law).iter().map(|kl| kl[round - 1]).collect();
        case.shows(format!("divergence from the posterior, round {round}"), &at, "");
        case.shows(format!("the same without cavity, round {round}"), &none, "");
    }
    let xs = || grid.points.column(0).to_vec();
    let line =
        |log: &[f64]| xs().into_iter().zip(grid.normalize(log.to_vec())).map(|(x, log)| (x, log.exp())).collect::<Vec<_>>();
    let panels: Vec<_> = (1..=4_usize)
        .map(|round| {
            let visited = if round % 2 == 1 { "first" } else { "second" };
            let lines = vec![
                ("posterior", line(&law)),
                ("DSVGD", line(&estimate(&grid, found[0][round - 1].view()))),
                ("DSVGD, no cavity", line(&estimate(&grid, without[0][round - 1].view()))),
                ("first agent's factor alone", if round == 1 { line(&local) } else { Vec::new() }),
            ];
            (format!("Round {round}: the {visited} agent"), lines)
        })
        .collect();
    let caption = "200 particles, 100 steps; kernel density estimates with λ = 0.55, the first seed. The prior is uniform on (−6, 6). In \
                   round 1 there is nothing yet that a cavity could hold.";
    Ok(case.judged(Some(densities("Two agents with a factor each: the posterior in turns", &panels, caption))))
}

fn normal_prior() -> (Grid, Vec<f64>, Vec<f64>) {
    let grid = Grid::line(-8.0, 8.0, 1600);
    let mut exact = GridDvi::new(grid.clone(), grid.map(|x| log_normal(x[0], 0.0, 1.0)), losses(&grid), 1.0);
    let law = exact.optimum();
    exact.visit(0);
    (grid, law, exact.q)
}

/// Fig. 3 and Fig. 9 (a).
pub fn rounds(effort: Effort, files: &[Runs]) -> Result<Outcome> {
    let (grid, law, after_first) = normal_prior();
    let [particles, gaussian]: &[Runs; 2] = files.try_into()?;
    let seeds = effort.seeds;
    let of = |contender| -> Result<Vec<Vec<f64>>> { Ok(divergences(&paths(contender, particles, seeds)?, &grid, MEASURE, &law)) };
    let (dsvgd, remembered, svgd, none) = (of(FLOOR)?, of(REMEMBERED)?, of(SVGD)?, of(NO_CAVITY)?);
    let (_, _, gvi) = nearest_gaussian(&grid, &law);
    let gaussian =
        |contender| -> Result<Vec<Vec<f64>>> { Ok(divergences_of_gaussian(&paths(contender, gaussian, 1)?, &grid, &law)) };
    let (pvi, global) = (gaussian(PVI)?, gaussian(GVI)?);
    let first = grid.kl(&after_first, &law);
    let mut case = Case::default();
    let late = |kl: &Vec<Vec<f64>>| kl.iter().map(|kl| over(&kl[6..10])).collect::<Vec<f64>>();
    let less = |bound: f64, values: Vec<f64>| values.into_iter().map(|value| bound - value).collect::<Vec<f64>>();
    let central: Vec<f64> = svgd.iter().map(|kl| kl[3]).collect();
    for (name, kl) in [("DSVGD", &dsvgd), ("U-DSVGD", &remembered)] {
        case.above(format!("{name}, rounds 7 to 10: PVI's divergence less its own"), less(gvi, late(kl)), 0.0);
        case.within(
            format!("{name}, rounds 7 to 10: its divergence less SVGD's after 800 steps"),
            minus(&late(kl), &central),
            0.01,
        );
    }
    case.within("U-DSVGD's divergence less DSVGD's, rounds 7 to 10", minus(&late(&remembered), &late(&dsvgd)), 0.01);
    let (exact, authors) = (of(EXACT)?, of(AUTHORS)?);
    for (name, kl) in
        [(FLOOR, &dsvgd), (EXACT, &exact), (AUTHORS, &authors), (REMEMBERED, &remembered), (NO_CAVITY, &none), (SVGD, &svgd)]
    {
        for (rounds, from) in [("3 to 6", 2), ("7 to 10", 6)] {
            let values: Vec<f64> = kl.iter().map(|kl| over(&kl[from..from + 4])).collect();
            case.shows(format!("{name}: divergence in rounds {rounds}"), &values, "0.034 of the exact posterior, smoothed alike");
        }
    }
    let close = |found: f64, exact: f64| (found - exact).abs() <= 0.0005;
    case.must("GVI's Gaussian on a grid", format!("{gvi:.4}"), "0.0773 ± 0.0005", close(gvi, 0.0773));
    case.must("`gvi` in the end", format!("{:.4}", global[0][9]), "0.0773 ± 0.0005", close(global[0][9], 0.0773));
    let (low, high) = pvi[0][1..].iter().fold((f64::INFINITY, 0.0_f64), |(low, high), &kl| (low.min(kl), high.max(kl)));
    case.must(
        "`pvi` from round 2 on",
        format!("{low:.4} to {high:.4}"),
        "0.0773 ± 0.0005",
        close(low, 0.0773) && close(high, 0.0773),
    );
    let expected = format!("{first:.4} of the exact Gaussian, within 2 %");
    case.must("`pvi` after round 1", format!("{:.4}", pvi[0][0]), expected, (pvi[0][0] / first - 1.0).abs() < 0.02);
    let lines = vec![
        ("DSVGD".to_owned(), numbered(&dsvgd)),
        ("U-DSVGD".to_owned(), numbered(&remembered)),
        ("SVGD, all data".to_owned(), numbered(&svgd)),
        ("PVI".to_owned(), numbered(&pvi)),
        ("GVI".to_owned(), numbered(&global)),
        ("DSVGD, no cavity".to_owned(), numbered(&none)),
    ];
    let chart = Chart::new("", "round", "KL divergence from the posterior, nats", lines);
    let caption = format!(
        "Prior N(0, 1), 200 particles, 200 steps in a round; divergences of density estimates with λ = 0.55, of which that of the exact \
         posterior, smoothed alike, is 0.034. Means and standard errors of {seeds} seeds."
    );
    Ok(case.judged(Some(curves("Two agents in one dimension", vec![chart], &caption))))
}

/// What Fig. 9 (b) compares with PVI and GVI.
const NONPARAMETRIC: [Contender; 3] = [FLOOR, REMEMBERED, SVGD];

/// Fig. 9 (b).
pub fn steps(effort: Effort, files: &[Runs]) -> Result<Outcome> {
    let (grid, law, _) = normal_prior();
    let seeds = 2 * effort.seeds;
    let (_, _, gvi) = nearest_gaussian(&grid, &law);
    let mut groups = files[0].by("method.local_steps");
    if effort.share > 1 {
        groups.retain(|runs| runs.value("method.local_steps").is_ok_and(|steps: u64| [1, 5, 50, 200].contains(&steps)));
    }
    let counts = groups.iter().map(|runs| runs.value("method.local_steps")).collect::<Result<Vec<u64>>>()?;
    let of = |contender| -> Result<Vec<Vec<f64>>> {
        let each = groups.iter().map(|runs| {
            let kl = divergences(&paths(contender, runs, seeds)?, &grid, MEASURE, &law);
            Ok(kl.iter().map(|kl| kl[kl.len() - 1]).collect::<Vec<f64>>())
        });
        each.collect()
    };
    let lineup = [NONPARAMETRIC.as_slice(), &[NO_CAVITY]].concat();
    let found = lineup.iter().map(|&contender| of(contender)).collect::<Result<Vec<_>>>()?;
    let at_200 = counts.iter().position(|&steps| steps == 200).unwrap_or(0);
    let mut case = Case::default();
    for (contender, kl) in NONPARAMETRIC.iter().zip(&found) {
        let few = kl[0].iter().map(|kl| kl - gvi).collect();
        case.above(format!("L = {}: divergence of {contender} less PVI's", counts[0]), few, 0.0);
        let many = kl[at_200].iter().map(|kl| gvi - kl).collect();
        case.above(format!("L = 200: PVI's divergence less that of {contender}"), many, 0.0);
    }
    for (contender, kl) in lineup.iter().zip(&found) {
        counts.iter().zip(kl).for_each(|(steps, kl)| case.shows(format!("{contender}, L = {steps}"), kl, ""));
    }
    let by_seed = |each: &Vec<Vec<f64>>| -> Vec<Vec<(f64, f64)>> {
        (0..seeds as usize).map(|seed| counts.iter().zip(each).map(|(&steps, kl)| (steps as f64, kl[seed])).collect()).collect()
    };
    let mut lines: Vec<_> = lineup.iter().zip(&found).map(|(contender, each)| ((*contender).to_owned(), by_seed(each))).collect();
    lines.push(("PVI and GVI".to_owned(), vec![counts.iter().map(|&steps| (steps as f64, gvi)).collect()]));
    let chart = Chart::new("", "steps in a round, L = L'", "KL divergence from the posterior, nats", lines);
    let caption = format!(
        "Five rounds; prior N(0, 1), 200 particles, estimates with λ = 0.55. Means and standard errors of {seeds} seeds."
    );
    Ok(case.judged(Some(curves("How many steps a round takes", vec![chart], &caption))))
}

/// DSVGD over many rounds.
pub fn drift(effort: Effort, files: &[Runs]) -> Result<Outcome> {
    let (grid, law, _) = normal_prior();
    let seeds = effort.seeds;
    let found = paths(FLOOR, &files[0], seeds)?;
    let central = paths(SVGD, &files[0].clone().set("method.rounds=10")?, seeds)?;
    let none = paths(NO_CAVITY, &files[0], seeds)?;
    let variances = |paths: &Paths| -> Vec<Vec<f64>> {
        paths.iter().map(|path| path.iter().map(|theta| theta.column(0).var(0.0)).collect()).collect()
    };
    let (kl, variance) = (divergences(&found, &grid, MEASURE, &law), variances(&found));
    let mut case = Case::default();
    let late = |values: &[f64]| over(&values[36..40]);
    case.above(
        "mean divergence of rounds 37 to 40 less that of 3 to 6",
        kl.iter().map(|kl| late(kl) - over(&kl[2..6])).collect(),
        0.05,
    )
    .is_ours();
    let shrunk = variance.iter().map(|of| 0.5 * 1.409938 - late(of)).collect();
    case.above("half of the posterior's variance less the particles' in rounds 37 to 40", shrunk, 0.0).is_ours();
    let at = |each: &[Vec<f64>], round: usize| each.iter().map(|of| of[round - 1]).collect::<Vec<f64>>();
    for round in [4, 6, 12, 20, 40] {
        case.shows(format!("divergence in round {round}"), &at(&kl, round), "");
    }
    case.shows("variance of the particles in round 4", &at(&variance, 4), "1.41 of the posterior");
    case.shows("variance of the particles in round 40", &at(&variance, 40), "1.41 of the posterior");
    let flat = |each: Vec<Vec<f64>>| -> Vec<Vec<f64>> {
        each.into_iter()
            .map(|mut of| {
                let last = of[of.len() - 1];
                of.resize(40, last);
                of
            })
            .collect()
    };
    let lines = |of: &dyn Fn(&Paths) -> Vec<Vec<f64>>| {
        vec![
            ("DSVGD".to_owned(), numbered(&of(&found))),
            ("SVGD, all data (10 rounds)".to_owned(), numbered(&flat(of(&central)))),
            ("DSVGD, no cavity".to_owned(), numbered(&of(&none))),
        ]
    };
    let charts = vec![
        Chart::new(
            "Distance from the posterior",
            "round",
            "KL divergence, nats",
            lines(&|paths| divergences(paths, &grid, MEASURE, &law)),
        ),
        Chart::new("Variance of the particles", "round", "variance (1.41 of the posterior)", lines(&variances)),
    ];
    let caption = format!(
        "Prior N(0, 1), 100 particles, 200 steps. Every distillation smooths an agent's factor again: factors flatten, and data count \
         more than once. Means and standard errors of {seeds} seeds."
    );
    Ok(case.judged(Some(curves("DSVGD over many rounds", charts, &caption))))
}

/// log N(x | mean, covariance) in two dimensions, up to a constant, and the squared Mahalanobis distance.
fn two(x: &[f64], mean: [f64; 2], covariance: [[f64; 2]; 2]) -> (f64, f64) {
    let [[a, b], [_, c]] = covariance;
    let determinant = a * c - b * b;
    let (u, v) = (x[0] - mean[0], x[1] - mean[1]);
    let square = (c * u * u - 2.0 * b * u * v + a * v * v) / determinant;
    (-0.5 * square - 0.5 * determinant.ln() - (2.0 * std::f64::consts::PI).ln(), square)
}

const MINOR: ([f64; 2], [[f64; 2]; 2]) = ([-1.40061, -1.29388], [[0.195868, 0.121736], [0.121736, 0.480346]]);
const MAJOR: ([f64; 2], [[f64; 2]; 2]) = ([0.742660, 0.061809], [[0.905741, 0.267443], [0.267443, 0.905741]]);

/// By how much the share of particles at the minor mode may be off.
const MARGIN: f64 = 0.05;

/// Fig. 10.
pub fn plane(effort: Effort, files: &[Runs]) -> Result<Outcome> {
    let grid = Grid::square(-7.0, 7.0, 140);
    let law = grid.normalize(grid.map(|x| {
        let (minor, major) = (0.270661 * two(x, MINOR.0, MINOR.1).0.exp(), 0.729339 * two(x, MAJOR.0, MAJOR.1).0.exp());
        (minor + major).ln()
    }));
    let (mean, precision, gvi) = nearest_gaussian(&grid, &law);
    let seeds = 2 * effort.seeds;
    let lineup = [FLOOR, SVGD, NO_CAVITY];
    let found = lineup.iter().map(|contender| paths(contender, &files[0], seeds)).collect::<Result<Vec<_>>>()?;
    let last = |paths: &Paths| paths.iter().filter_map(|path| path.last().cloned()).collect::<Vec<_>>();
    let ends: Vec<Vec<Array2<f64>>> = found.iter().map(last).collect();
    let is_near = |x: &[f64]| two(x, MINOR.0, MINOR.1).1 < 2.25;
    let share = |theta: &Array2<f64>| {
        let near = theta.rows().into_iter().filter(|x| is_near(&x.to_vec())).count();
        near as f64 / theta.nrows() as f64
    };
    let off = |theta: &Array2<f64>| {
        let mean = theta.mean_axis(Axis(0)).map_or(vec![f64::NAN; 2], |mean| mean.to_vec());
        (mean[0] - 0.162561).hypot(mean[1] + 0.305123)
    };
    let at_minor = |log: &[f64]| {
        let near = grid.points.rows().into_iter().zip(log).filter(|(x, _)| is_near(&x.to_vec()));
        near.map(|(_, log)| log.exp() * grid.volume).sum::<f64>()
    };
    let [exact, of_gaussian] = [at_minor(&law), at_minor(&gaussian(&grid, &mean, &precision))];
    let mut case = Case::default();
    let narrow = Kde { bandwidth: 0.3, ..MEASURE };
    for (place, name) in [(0, "DSVGD"), (1, "SVGD")] {
        let less = ends[place].iter().map(|theta| gvi - grid.kl_of_particles(narrow, theta.view(), &law)).collect();
        case.above(format!("{name}: the divergence of the best Gaussian less its own, measured with λ = .3"), less, 0.0);
        let shares: Vec<f64> = ends[place].iter().map(share).collect();
        let more = shares.iter().map(|share| share - exact).collect();
        case.within(format!("{name}: share of particles at the minor mode less that of the posterior"), more, MARGIN);
        let distances: Vec<f64> = ends[place].iter().map(off).collect();
        case.shows(format!("{name}: distance of its mean from the posterior's"), &distances, "");
    }
    let place = (mean[0] - 0.309).hypot(mean[1] + 0.198) < 2e-3;
    case.must("GVI's mean, on a grid", format!("({:.4}, {:.4})", mean[0], mean[1]), "(0.309, −0.198)", place);
    case.must("GVI's divergence, on a grid", format!("{gvi:.4}"), "0.1075 ± 0.001", (gvi - 0.1075).abs() <= 0.001);
    let far = format!("farther than {MARGIN} from {exact:.3}");
    let is_far = (of_gaussian - exact).abs() > MARGIN;
    case.must("share of the best Gaussian at the minor mode", format!("{of_gaussian:.3}"), far, is_far);
    for (contender, ends) in lineup.iter().zip(&ends) {
        let wide: Vec<f64> = ends.iter().map(|theta| grid.kl_of_particles(MEASURE, theta.view(), &law)).collect();
        let kl: Vec<f64> = ends.iter().map(|theta| grid.kl_of_particles(narrow, theta.view(), &law)).collect();
        case.shows(format!("{}: divergence, measured with λ = .3", *contender), &kl, ".016 of the exact posterior");
        case.shows(format!("{}: divergence, measured with λ = .55", *contender), &wide, ".117 of the exact posterior");
        let shares: Vec<f64> = ends.iter().map(share).collect();
        case.shows(format!("{}: share of particles at the minor mode", *contender), &shares, format!("{exact:.3}"));
    }
    let determinant = precision[[0, 0]] * precision[[1, 1]] - precision[[0, 1]].powi(2);
    let covariance = [
        [precision[[1, 1]] / determinant, -precision[[0, 1]] / determinant],
        [-precision[[0, 1]] / determinant, precision[[0, 0]] / determinant],
    ];
    let laws = [
        ("mode of the posterior, 1.5 sd", MINOR.0, MINOR.1, 1.5),
        ("", MAJOR.0, MAJOR.1, 1.5),
        ("GVI, 1.5 sd", [mean[0], mean[1]], covariance, 1.5),
    ];
    let panels: Vec<(&str, Vec<(f64, f64)>)> = lineup
        .iter()
        .zip(&ends)
        .map(|(contender, ends)| (*contender, ends[0].rows().into_iter().map(|x| (x[0], x[1])).collect()))
        .collect();
    let caption = "200 particles after five rounds of 200 steps, the first seed. Paper: bandwidth b = 0.1 of unclear meaning; here λ = 0.55.";
    Ok(case.judged(Some(scatters("Two agents in two dimensions", "particles", &panels, &laws, caption))))
}
