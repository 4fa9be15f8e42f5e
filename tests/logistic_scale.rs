//! Distributed SGLD on as many rows as Covertype has, beside a Hamiltonian reference on all of them.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod covertype;

use covertype::{AGENTS, ROWS, Sampler, reference, rows};
use mpibayes::methods::sgld::Estimator;

/// Eight chains over eight agents, with control variates: R-hat, effective sample size, means and standard deviations. The run is so
/// long that a mean is off by a tenth of its standard deviation in one case of 10,000.
#[test]
fn half_a_million_rows_on_eight_agents() {
    let rows = rows(ROWS);
    let reference = reference(&rows, 1200);
    assert!(reference.error < 0.04, "{}", reference.error);
    // a = 0.004 in the narrowest direction.
    let narrowest = reference.sd.iter().copied().fold(f64::INFINITY, f64::min);
    let sampler = Sampler {
        agents: AGENTS,
        chains: AGENTS,
        batch: 100,
        gradient: Estimator::ControlVariate(3000),
        step: 0.008 * narrowest.powi(2),
        trajectory: 4,
        rounds: 100_000,
        thin: 99,
    };
    let sampled = sampler.run(&rows, &reference);
    println!(
        "R-hat {:.4}, ESS {:.0}, {:.1} s, off {:.3}, sd ratio {:?}, of theory {:?}; {}, error of the reference {:.3}",
        sampled.r_hat, sampled.ess, sampled.seconds, sampled.off, sampled.ratio, sampled.of_theory, rows.source, reference.error
    );
    assert!(sampled.r_hat < 1.01 && sampled.ess > 400.0, "R-hat {}, ESS {}", sampled.r_hat, sampled.ess);
    assert!(sampled.off < 0.1, "{}", sampled.off);
    assert!(sampled.of_theory.0 > 0.9 && sampled.of_theory.1 < 1.1, "{:?}", sampled.of_theory);
}
