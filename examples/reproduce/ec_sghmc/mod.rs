//! Springenberg, Klein, Falkner & Hutter 2016, "Asynchronous stochastic gradient MCMC with elastic coupling": its claims, row by row.
//!
//! The paper's constants are lost: those here are ours.

mod networks;
mod toys;

use super::Row;

/// The rows, in the order of the paper.
pub const ROWS: &[Row] = &[
    Row {
        id: "fig1",
        claim: "A correlated Gaussian in the plane, the first 100 steps from one far place, steps of 0.1: four coupled chains stay closer \
                together than four alone (over steps 50 to 100), and no more of them are outside the 99 % ellipse in the end. Over 200 \
                repetitions.",
        files: &[],
        run: |effort, _| toys::figure1(effort, 0.1),
    },
    Row {
        id: "fig1-short",
        claim: "The same with steps of 0.01, as they may have been in the paper.",
        files: &[],
        run: |effort, _| toys::figure1(effort, 0.01),
    },
    Row {
        id: "posterior",
        claim: "Chains that are coupled to a center sample the posterior: a Gaussian's variance, to 3 %.",
        files: &["ec-sghmc/stationary"],
        run: toys::posterior,
    },
    Row {
        id: "stationary",
        claim: "What they sample instead (ours): a chain's variance is Λ⁻¹/K + (K − 1)/K (Λ + κ)⁻¹, for each period s. Annealed coupling \
                and coupled friction sample the posterior.",
        files: &["ec-sghmc/stationary", "ec-sghmc/unbiased"],
        run: toys::stationary,
    },
    Row {
        id: "staleness",
        claim: "Old gradients (ours, of asynchronous SGLD with a fixed delay): the variance grows with the delay as the theory has it, and \
                steps above 2 sin(π/(2(2τ + 1)))/λ are unstable.",
        files: &[],
        run: |effort, _| toys::staleness(effort),
    },
    Row {
        id: "fig2-left",
        claim: "MNIST, 784-800-800-10, six workers. With few steps between exchanges both ways to parallelise are faster than one chain of \
                SGHMC; with many of them asynchronous SGHMC loses more than elastic coupling does: negative log-likelihood of the test \
                images after as many steps of each worker. Simulated cluster with a rank for each worker.",
        files: &["ec-sghmc/fig2-left-one", "ec-sghmc/fig2-left"],
        run: networks::figure2,
    },
    Row {
        id: "eamsgd",
        claim: "Without noise elastic coupling descends at least as well as elastic averaging SGD with momentum: training loss on MNIST after \
                as many steps, both with the best of the same learning rates and couplings. Logarithms.",
        files: &["ec-sghmc/eamsgd"],
        run: networks::descent,
    },
    Row {
        id: "eamsgd-logistic",
        claim: "The same for logistic regression.",
        files: &["ec-sghmc/eamsgd-logistic"],
        run: networks::descent,
    },
];
