//! What the draws of a run say about each parameter, for `mpibayes summary`: estimates, and how far they can be trusted.

use crate::methods::chains::dsgld::EXPECTATIONS;
use crate::metrics::convergence::{Convergence, Estimate, LEAST_DRAWS, estimates, particle_estimates};
use crate::models::Part;
use crate::report::text;
use crate::results::{RunFile, SampleKind, Values};
use ndarray::{Array3, ArrayView3, s};
use serde::Serialize;

/// Stein particles spread too little where they are few for each parameter: on Gaussians, 0.72 of the standard deviation with 7 of
/// them (measured), some 0.98 with this many by the same trend.
const ENOUGH_FOR_EACH: usize = 100;
/// How many parameters people are shown.
const SHOWN: usize = 15;
/// Chains with more numbers than these are judged by an even spread of parameters: about five seconds of one core.
const MOST_NUMBERS: usize = 16_000_000;
/// From this R-hat on, chains have not converged (Vehtari et al. 2021, section 4).
const HIGH_R_HAT: f64 = 1.01;
/// Up to this effective sample size, quantiles and the diagnostics themselves are rough (the same).
const LOW_ESS: f64 = 400.0;
/// Letters of a parameter's name that people are shown.
const NAME: usize = 30;

/// A group of draws and what it says.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Draws {
    /// The group in the file: `posterior`.
    pub group: String,
    /// What its draws are.
    pub kind: SampleKind,
    /// How many chains; particles are one chain.
    pub chains: usize,
    /// Draws of each chain, or particles.
    pub draws: usize,
    /// How many parameters a draw has.
    pub parameters: usize,
    /// Their named parts with their shapes.
    pub parts: Vec<Part>,
    /// What the draws say about each parameter, in their order; about an even spread of them where all would take long.
    pub estimates: Vec<Parameter>,
}

/// A parameter and what the draws say about it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Parameter {
    /// Its part, with its index where the part has a shape: `weights[3]`.
    pub name: String,
    /// What the draws say.
    #[serde(flatten)]
    pub estimate: Estimate,
}

/// A parameter's posterior mean and standard deviation, computed without draws.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Expected {
    /// Its part, with its index where the part has a shape.
    pub name: String,
    /// E θ.
    pub mean: f64,
    /// The square root of E (θ − E θ)².
    pub sd: f64,
}

/// What a run has computed of its posterior without draws; nothing where it has not.
///
/// # Errors
/// When the file cannot be read.
pub fn expectations(file: &RunFile) -> crate::results::Result<Vec<Expected>> {
    let there = file.sample_groups()?;
    if !EXPECTATIONS.iter().all(|name| there.iter().any(|other| other == name)) {
        return Ok(Vec::new());
    }
    let [mean, sd] = [file.samples(EXPECTATIONS[0])?, file.samples(EXPECTATIONS[1])?];
    let names = mean.parts.iter().flat_map(|part| (0..part.size()).map(|number| name(part, number)));
    let numbers = |values: &Values| values.matrix().into_iter().collect::<Vec<f64>>();
    let both = numbers(&mean.values).into_iter().zip(numbers(&sd.values));
    Ok(names.zip(both).map(|(name, (mean, sd))| Expected { name, mean, sd }).collect())
}

/// The table of them for people: the first ones, or all.
pub(super) fn expectations_table(expected: &[Expected], all: bool) -> String {
    let rows = &expected[..if all { expected.len() } else { expected.len().min(SHOWN) }];
    let cell = |of: fn(&Expected) -> f64| rows.iter().map(|row| text::value(of(row))).collect::<Vec<_>>();
    let columns = [
        ("parameter".to_owned(), rows.iter().map(|row| shortened(&row.name)).collect()),
        ("mean".into(), cell(|row| row.mean)),
        ("sd".into(), cell(|row| row.sd)),
    ];
    let mut shown = text::table(&columns);
    if rows.len() < expected.len() {
        let left = text::count(expected.len() - rows.len());
        shown.push_str(&format!("  {left} more are not shown: --all shows them, --json has them for programs\n"));
    }
    shown
}

impl Draws {
    /// Reads a group of draws and judges its parameters: of very many an even spread, unless `all` are wanted.
    ///
    /// # Errors
    /// When there is no such group, or it cannot be read.
    pub fn read(file: &RunFile, group: &str, all: bool) -> crate::results::Result<Self> {
        Self::judge(file, group, if all { usize::MAX } else { MOST_NUMBERS })
    }

    /// Reads a group of draws and judges so many parameters that they have at most so many numbers.
    fn judge(file: &RunFile, group: &str, most: usize) -> crate::results::Result<Self> {
        let kind = file.kind(group)?;
        let (chains, draws, parts) = file.shape(group)?;
        // Where the run still goes on, what all chains have.
        let common = file.lengths(group)?.into_iter().min().unwrap_or(0).min(draws);
        let parameters = parts.iter().map(Part::size).sum();
        let numbers = chains.saturating_mul(common).saturating_mul(parameters);
        let stride = numbers.div_ceil(most).max(1);
        let mut found = Vec::new();
        let mut before: usize = 0;
        let means_something = !matches!(kind, SampleKind::Paths | SampleKind::Topics) && common > 1;
        for part in parts.iter().filter(|_| means_something) {
            let first = before.next_multiple_of(stride) - before;
            before += part.size();
            if first >= part.size() {
                continue;
            }
            let estimates = match &file.part(group, part)? {
                Values::F32(values) => judged(values, kind, common, first, stride),
                Values::F64(values) => judged(values, kind, common, first, stride),
                Values::I32(values) => judged(values, kind, common, first, stride),
            };
            let names = (first..part.size()).step_by(stride).map(|number| name(part, number));
            found.extend(names.zip(estimates).map(|(name, estimate)| Parameter { name, estimate }));
        }
        Ok(Self { group: group.to_owned(), kind, chains, draws: common, parameters, parts, estimates: found })
    }

    /// Parameters that people are shown: all of them, or of chains the worst, of particles some of every part.
    fn rows(&self, all: bool) -> Vec<&Parameter> {
        if self.kind == SampleKind::Particles {
            if all {
                return self.estimates.iter().collect();
            }
            let sizes: Vec<usize> = self.parts.iter().map(Part::size).collect();
            let mut start = 0;
            let mut rows = Vec::new();
            for (size, share) in sizes.iter().zip(shares(&sizes, SHOWN)) {
                rows.extend(self.estimates.iter().skip(start).take(share));
                start += size;
            }
            return rows;
        }
        let mut rows: Vec<&Parameter> = self.estimates.iter().collect();
        // What cannot be judged is the worst; a stable sort leaves equals in their order.
        rows.sort_by(|a, b| badness(b).partial_cmp(&badness(a)).unwrap_or(std::cmp::Ordering::Equal));
        rows.truncate(if all { usize::MAX } else { SHOWN });
        rows
    }

    /// Whether the draws can be trusted, in a line or two.
    pub fn verdict(&self) -> String {
        if self.kind == SampleKind::Particles {
            let mut verdict = "particles have no order: R-hat, ESS and MCSE of them would mean nothing".to_owned();
            if self.draws < ENOUGH_FOR_EACH * self.parameters {
                verdict += "\n  fewer than 100 particles for each parameter: their sd may be too small";
            }
            return verdict;
        }
        if self.draws < LEAST_DRAWS {
            return format!("fewer than {LEAST_DRAWS} draws of each chain: too few to judge whether they have converged");
        }
        let judged: Vec<&Convergence> =
            self.estimates.iter().filter_map(|parameter| parameter.estimate.convergence.as_ref()).collect();
        let number = text::count(judged.len());
        let of = |count: usize| format!("{} of {number} parameters", text::count(count));
        let few = judged.iter().filter(|c| c.ess_bulk.min(c.ess_tail) <= LOW_ESS).count();
        let ess = match few {
            0 => format!("ESS > {LOW_ESS}"),
            few => format!("{} have an ESS of {LOW_ESS} or less: run longer", of(few)),
        };
        if self.chains == 1 {
            let ess = if few == 0 { format!("all {number} parameters have {ess}") } else { ess };
            return format!("{ess}; R-hat needs two chains or more");
        }
        let unknown = judged.iter().filter(|c| c.r_hat.is_nan()).count();
        let high = judged.iter().filter(|c| c.r_hat >= HIGH_R_HAT).count();
        if unknown > 0 {
            let more = if high > 0 { format!("; {} have R-hat ≥ {HIGH_R_HAT}", of(high)) } else { String::new() };
            return format!("{} never moved or are not finite: no R-hat{more}", of(unknown));
        }
        match (high, few) {
            (0, 0) => format!("all {number} parameters have R-hat < {HIGH_R_HAT} and {ess}"),
            (0, _) => ess,
            (high, _) => format!("{} have R-hat ≥ {HIGH_R_HAT}: run longer", of(high)),
        }
    }

    /// The table for people: the worst parameters, or all.
    pub(super) fn table(&self, all: bool) -> String {
        let mut shown = String::new();
        if self.estimates.is_empty() {
            return shown;
        }
        let rows = self.rows(all);
        let cell = |of: fn(&Estimate) -> f64| rows.iter().map(|row| text::value(of(&row.estimate))).collect::<Vec<_>>();
        let mut columns = vec![
            ("parameter".to_owned(), rows.iter().map(|row| shortened(&row.name)).collect()),
            ("mean".into(), cell(|e| e.mean)),
            ("sd".into(), cell(|e| e.sd)),
            ("5 %".into(), cell(|e| e.q5)),
            ("95 %".into(), cell(|e| e.q95)),
        ];
        if self.kind == SampleKind::Chains {
            let of = |row: &&Parameter, of: fn(&Convergence) -> f64| row.estimate.convergence.as_ref().map_or(f64::NAN, of);
            let ess = |which: fn(&Convergence) -> f64| rows.iter().map(|row| whole(of(row, which))).collect();
            columns.push(("MCSE".into(), rows.iter().map(|row| text::value(of(row, |c| c.mcse_mean))).collect()));
            columns.push(("bulk ESS".into(), ess(|c| c.ess_bulk)));
            columns.push(("tail ESS".into(), ess(|c| c.ess_tail)));
            columns.push(("R-hat".into(), rows.iter().map(|row| three_digits(of(row, |c| c.r_hat))).collect()));
        }
        shown.push_str(&text::table(&columns));
        let number = |number: usize| text::count(number);
        if rows.len() < self.estimates.len() {
            let which = if self.kind == SampleKind::Chains { "the worst first" } else { "some of every part" };
            let left = number(self.parameters - rows.len());
            shown.push_str(&format!("  {which}; {left} more are not shown: --all shows them, --json has them for programs\n"));
        }
        if self.estimates.len() < self.parameters {
            let (judged, all) = (number(self.estimates.len()), number(self.parameters));
            shown.push_str(&format!("  judged by {judged} of the {all} parameters, evenly spread; --all judges every one\n"));
        }
        shown.push_str(&format!("  {}\n", self.verdict()));
        shown
    }
}

/// The estimates of every `stride`-th parameter of a part from the first `draws` draws.
fn judged<T: Copy + Into<f64> + Sync>(
    values: &Array3<T>,
    kind: SampleKind,
    draws: usize,
    first: usize,
    stride: usize,
) -> Vec<Estimate> {
    // A step of an array is an `isize`, and so is every length in memory.
    let step = isize::try_from(stride).unwrap_or(isize::MAX);
    let chosen: ArrayView3<T> = values.slice(s![.., ..draws, first..;step]);
    match (kind, chosen.outer_iter().next()) {
        (SampleKind::Particles, Some(particles)) => particle_estimates(particles),
        _ => estimates(chosen),
    }
}

/// The name of a part's number, row-major.
fn name(part: &Part, mut number: usize) -> String {
    let mut index = Vec::new();
    for &side in part.shape.iter().rev() {
        index.push((number % side.max(1)).to_string());
        number /= side.max(1);
    }
    index.reverse();
    if index.is_empty() { part.name.clone() } else { format!("{}[{}]", part.name, index.join(",")) }
}

/// How bad a parameter is: by R-hat, then by its smaller ESS.
fn badness(parameter: &Parameter) -> (f64, f64) {
    let worst = |value: f64| if value.is_nan() { f64::INFINITY } else { value };
    parameter.estimate.convergence.map_or((0.0, 0.0), |c| (worst(c.r_hat), worst(-c.ess_bulk.min(c.ess_tail))))
}

/// Deals a number of rows to parts of these sizes: small parts are shown whole, large ones share the rest.
fn shares(sizes: &[usize], rows: usize) -> Vec<usize> {
    let mut shares = vec![0; sizes.len()];
    for _ in 0..rows {
        let open = (0..sizes.len()).filter(|&part| shares[part] < sizes[part]);
        match open.min_by_key(|&part| shares[part]) {
            Some(part) => shares[part] += 1,
            None => break,
        }
    }
    shares
}

fn shortened(name: &str) -> String {
    let letters = name.chars().count();
    if letters <= NAME {
        return name.to_owned();
    }
    // The index at the end tells parameters apart.
    let end: String = name.chars().skip(letters - NAME / 2).collect();
    name.chars().take(NAME - 1 - NAME / 2).chain(['…']).collect::<String>() + &end
}

/// An effective sample size without digits behind the point.
fn whole(value: f64) -> String {
    // Saturates, and a NaN is caught before.
    if value.is_finite() { text::count(value.max(0.0).round() as u64) } else { text::value(value) }
}

fn three_digits(value: f64) -> String {
    if value.is_finite() && value < 1e4 { format!("{value:.3}") } else { text::value(value) }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::random::{Purpose, Seed, Who};
    use crate::results::{RunInfo, Samples, write_run};

    /// 4 chains of 500 independent draws of 1 + 3 × 7 parameters, and as many as there are in `shift` with one chain apart.
    fn chains(shift: &[usize]) -> Array3<f64> {
        let mut draws = vec![0.0; 4 * 500 * 22];
        Seed(5).stream(Who::Run, 0, Purpose::Synthetic).normals(&mut draws);
        let mut draws = Array3::from_shape_vec((4, 500, 22), draws).unwrap();
        for &parameter in shift {
            draws.slice_mut(s![1, .., parameter]).mapv_inplace(|x| x + 2.0 + parameter as f64);
        }
        draws
    }

    fn parts() -> Vec<Part> {
        vec![Part::new("log_precision", &[]), Part::new("weights", &[3, 7])]
    }

    fn read(kind: SampleKind, values: Values, all: bool) -> Draws {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("r.h5");
        let samples = Samples { group: "posterior".into(), kind, parts: parts(), values };
        write_run(&path, &RunInfo::new("chains", "toy", 1, "", ""), &[samples], &[]).unwrap();
        Draws::read(&RunFile::open(&path).unwrap(), "posterior", all).unwrap()
    }

    #[test]
    fn the_worst_parameters_come_first_and_the_verdict_counts_them() {
        let draws = read(SampleKind::Chains, Values::F64(chains(&[6, 20])), false);
        assert_eq!(draws.estimates.len(), 22);
        assert_eq!((draws.estimates[0].name.as_str(), draws.estimates[8].name.as_str()), ("log_precision", "weights[1,0]"));
        let table = draws.table(false);
        let lines: Vec<&str> = table.lines().collect();
        assert!(lines[1].starts_with("  weights[2,5] ") && lines[2].starts_with("  weights[0,5] "), "{table}");
        assert_eq!(lines.len(), 1 + SHOWN + 2, "{table}");
        assert!(lines[16].contains("7 more are not shown: --all"), "{table}");
        assert_eq!(lines[17], "  2 of 22 parameters have R-hat ≥ 1.01: run longer");
        assert!(lines.iter().all(|line| line.chars().count() <= 110), "{table}");
        assert_eq!(draws.table(true).lines().count(), 1 + 22 + 1);
        // The control: chains that agree.
        let fine = read(SampleKind::Chains, Values::F64(chains(&[])), false);
        assert_eq!(fine.verdict(), "all 22 parameters have R-hat < 1.01 and ESS > 400");
        let json = serde_json::to_value(&draws).unwrap();
        assert!(json["estimates"][20]["r_hat"].as_f64() > Some(1.5) && json["estimates"][20]["q5"].is_f64());
    }

    #[test]
    fn other_verdicts() {
        let cut = |values: Array3<f64>, chains: usize, draws: usize| {
            read(SampleKind::Chains, Values::F64(values.slice(s![..chains, ..draws, ..]).to_owned()), false).verdict()
        };
        assert_eq!(
            cut(chains(&[]), 1, 200),
            "22 of 22 parameters have an ESS of 400 or less: run longer; R-hat needs two chains or more"
        );
        assert!(cut(chains(&[]), 4, 3).starts_with("fewer than 4 draws"));
        assert_eq!(cut(chains(&[]), 4, 1), cut(chains(&[]), 4, 3));
        let mut still = chains(&[3]);
        still.slice_mut(s![.., .., 0]).fill(1.0);
        let says = cut(still, 4, 500);
        assert_eq!(says, "1 of 22 parameters never moved or are not finite: no R-hat; 1 of 22 parameters have R-hat ≥ 1.01");
    }

    #[test]
    fn particles_have_no_diagnostics_and_every_part_is_shown() {
        let values = Values::F32(chains(&[]).slice(s![..1, ..20, ..]).mapv(|x| x as f32));
        let draws = read(SampleKind::Particles, values, false);
        let table = draws.table(false);
        assert!(
            table.contains("  log_precision  ") && table.contains("  weights[1,6]  ") && !table.contains("weights[2,0]"),
            "{table}"
        );
        assert!(
            !table.contains("MCSE  ")
                && table.contains("particles have no order: R-hat, ESS and MCSE of them would mean nothing\n")
                && table.ends_with("their sd may be too small\n")
        );
        let json = serde_json::to_value(&draws).unwrap();
        assert!(json["estimates"][0]["mean"].is_f64() && json["estimates"][0].get("r_hat").is_none());
        assert_eq!(json["kind"], "particles");
    }

    #[test]
    fn of_very_many_parameters_an_even_spread_is_judged() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("r.h5");
        let parts = vec![Part::new("small", &[7]), Part::new("none", &[0]), Part::new("large", &[493])];
        let values = Values::F32(Array3::from_shape_fn((2, 8, 500), |(chain, draw, j)| (chain + draw + j) as f32));
        let samples = Samples { group: "posterior".into(), kind: SampleKind::Chains, parts, values };
        write_run(&path, &RunInfo::new("chains", "toy", 1, "", ""), &[samples], &[]).unwrap();
        let file = RunFile::open(&path).unwrap();
        let draws = Draws::judge(&file, "posterior", 2 * 8 * 250).unwrap();
        assert_eq!(draws.estimates.len(), 250);
        assert_eq!(["small[6]", "large[1]", "large[491]"], [3, 4, 249].map(|place: usize| draws.estimates[place].name.as_str()));
        assert_eq!(draws.estimates[249].estimate.mean, 4.0 + 498.0);
        assert!(draws.table(false).contains("250 of the 500 parameters, evenly spread; --all"), "{}", draws.table(false));
        // The control: all of them fit, or all are wanted.
        for whole in [Draws::judge(&file, "posterior", 2 * 8 * 500), Draws::read(&file, "posterior", true)].map(Result::unwrap) {
            assert!(whole.estimates.len() == 500 && !whole.table(false).contains("evenly"));
        }
    }

    #[test]
    fn rows_are_dealt_fairly_and_names_stay_short() {
        assert_eq!(shares(&[1, 100, 2, 100], 15), [1, 6, 2, 6]);
        assert_eq!(shares(&[2, 3], 15), [2, 3]);
        assert_eq!(name(&Part::new("w", &[2, 3, 4]), 23), "w[1,2,3]");
        let long = shortened(&format!("{}[12,3]", "x".repeat(50)));
        assert!(long.chars().count() == NAME && long.ends_with("x[12,3]"), "{long}");
    }
}
