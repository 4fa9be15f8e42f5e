//! Tests of posterior tables: order of rows, verdicts, very many parameters.

#![allow(clippy::unwrap_used)]
use super::*;
use crate::random::{Purpose, Seed, Who};
use crate::results::{RunInfo, Samples, write_run};

/// 4 chains of 500 independent draws of 1 + 3 × 7 parameters; for the parameters in `shift`, one chain is shifted.
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

fn read(kind: SampleKind, values: Values, all: bool) -> PosteriorGroup {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("r.h5");
    let samples = Samples { group: "posterior".into(), kind, parts: parts(), values };
    write_run(&path, &RunInfo::new("chains", "toy", 1, "", ""), &[samples], &[]).unwrap();
    PosteriorGroup::read(&ResultFile::open(&path).unwrap(), "posterior", all).unwrap()
}

#[test]
fn the_worst_parameters_come_first_and_the_verdict_counts_them() {
    let draws = read(SampleKind::Chains, Values::F64(chains(&[6, 20])), false);
    assert_eq!(draws.estimates.len(), 22);
    assert_eq!((draws.estimates[0].name.as_str(), draws.estimates[8].name.as_str()), ("log_precision", "weights[1,0]"));
    let table = draws.table(false, false);
    let lines: Vec<&str> = table.lines().collect();
    assert!(lines[1].starts_with("  weights[2,5] ") && lines[2].starts_with("  weights[0,5] "), "{table}");
    assert_eq!(lines.len(), 1 + SHOWN + 2, "{table}");
    assert!(lines[16].contains("sorted by R-hat, worst first; 7 parameters omitted: --all"), "{table}");
    assert_eq!(lines[17], "  2 of 22 parameters have R-hat ≥ 1.01: run longer");
    assert!(lines.iter().all(|line| line.chars().count() <= 110), "{table}");
    assert_eq!(draws.table(true, false).lines().count(), 1 + 22 + 1);
    // The control: chains that agree.
    let fine = read(SampleKind::Chains, Values::F64(chains(&[])), false);
    assert_eq!(fine.verdict(), "all 22 parameters have R-hat < 1.01 and ESS > 400");
    let json = serde_json::to_value(&draws).unwrap();
    assert!(json["estimates"][20]["r_hat"].as_f64() > Some(1.5) && json["estimates"][20]["q5"].is_f64());
}

#[test]
fn verdicts_for_few_chains_few_draws_and_constant_parameters() {
    let cut = |values: Array3<f64>, chains: usize, draws: usize| {
        read(SampleKind::Chains, Values::F64(values.slice(s![..chains, ..draws, ..]).to_owned()), false).verdict()
    };
    assert_eq!(cut(chains(&[]), 1, 200), "22 of 22 parameters have ESS ≤ 400: run longer; R-hat needs at least two chains");
    assert!(cut(chains(&[]), 4, 3).starts_with("fewer than 4 draws"));
    assert_eq!(cut(chains(&[]), 4, 1), cut(chains(&[]), 4, 3));
    let mut still = chains(&[3]);
    still.slice_mut(s![.., .., 0]).fill(1.0);
    let says = cut(still, 4, 500);
    assert_eq!(says, "1 of 22 parameters are constant or not finite and have no R-hat; 1 of 22 parameters have R-hat ≥ 1.01");
}

#[test]
fn particles_have_no_diagnostics_and_every_variable_is_shown() {
    let values = Values::F32(chains(&[]).slice(s![..1, ..20, ..]).mapv(|x| x as f32));
    let draws = read(SampleKind::Particles, values, false);
    let table = draws.table(false, false);
    assert!(
        table.contains("  log_precision  ") && table.contains("  weights[1,6]  ") && !table.contains("weights[2,0]"),
        "{table}"
    );
    assert!(
        !table.contains("MCSE  ")
            && table.contains("R-hat, ESS and MCSE are not defined for particles\n")
            && table.ends_with("sd may be too small\n")
    );
    let json = serde_json::to_value(&draws).unwrap();
    assert!(json["estimates"][0]["mean"].is_f64() && json["estimates"][0].get("r_hat").is_none());
    assert_eq!(json["kind"], "particles");
}

#[test]
fn very_many_parameters_are_sampled_evenly() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("r.h5");
    let parts = vec![Part::new("small", &[7]), Part::new("none", &[0]), Part::new("large", &[493])];
    let values = Values::F32(Array3::from_shape_fn((2, 8, 500), |(chain, draw, j)| (chain + draw + j) as f32));
    let samples = Samples { group: "posterior".into(), kind: SampleKind::Chains, parts, values };
    write_run(&path, &RunInfo::new("chains", "toy", 1, "", ""), &[samples], &[]).unwrap();
    let file = ResultFile::open(&path).unwrap();
    let draws = PosteriorGroup::read_at_most(&file, "posterior", 2 * 8 * 250).unwrap();
    assert_eq!(draws.estimates.len(), 250);
    assert_eq!(["small[6]", "large[1]", "large[491]"], [3, 4, 249].map(|place: usize| draws.estimates[place].name.as_str()));
    assert_eq!(draws.estimates[249].estimate.mean, 4.0 + 498.0);
    assert!(draws.table(false, false).contains("250 of 500 parameters, evenly spaced; --all"), "{}", draws.table(false, false));
    // The control: all of them fit, or all are requested.
    for whole in [PosteriorGroup::read_at_most(&file, "posterior", 2 * 8 * 500), PosteriorGroup::read(&file, "posterior", true)]
        .map(Result::unwrap)
    {
        assert!(whole.estimates.len() == 500 && !whole.table(false, false).contains("evenly"));
    }
}

#[test]
fn rows_are_shared_between_variables_and_names_are_shortened() {
    assert_eq!(quotas(&[1, 100, 2, 100], 15), [1, 6, 2, 6]);
    assert_eq!(quotas(&[2, 3], 15), [2, 3]);
    assert_eq!(Part::new("w", &[2, 3, 4]).element_name(23), "w[1,2,3]");
    let long = shortened(&format!("{}[12,3]", "x".repeat(50)));
    assert!(long.chars().count() == NAME_WIDTH && long.ends_with("x[12,3]"), "{long}");
}
