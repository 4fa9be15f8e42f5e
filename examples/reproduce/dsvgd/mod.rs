//! Kassab & Simeone, "Federated Generalized Bayesian Learning via Distributed Stein Variational Gradient Descent" (arXiv 2009.06419).
//!
//! Every curve of DSVGD is compared with the same method without a cavity distribution, to which it reduces if density estimates have no
//! weight; and, for predictions, with federated averaging in both weightings.

mod authors;
mod logistic;
mod networks;
pub mod runs;
pub mod sets;
mod skew;
mod toys;

use super::judge::Case;
use super::{Outcome, Row};

/// Notes that apply to all rows.
pub const LEGEND: &str = "\
K agents, N particles, L local and L' distillation steps in a visit. \"DSVGD\" is with the density estimate of this program's `kde` (λ = .55, \
a floor of 1e-9), \"no floor\" the paper's estimate, \"authors' estimate\" that of its code, \"no cavity\" with none, \"sites\" our quadratic \
sites. FedAvg begins at a draw from the prior; \"participants\" weighs the agents of a round alone, \"total\" against all absent ones, as the \
authors' code does. Chains of DSGLD rotate: in a round of one agent at a time, one of min(K, N) moves. Where the paper says \"better\", rows \
test \"not worse by more than\" a margin that they name. Seeds deal rows and drive methods; those of Covertype and of images share the data \
and the test rows, so that errors tell of chance in dealing and methods, not in data. Figures 1, 13, 17 and 18 and Tables 2 to 4 are not here: \
the paper does not say what they were made with.";

/// All rows, reproduced or not.
pub const ROWS: &[Row] = &[
    Row {
        id: "table1",
        claim: "Table 1: the methods that are compared, and what they are. All of them are here.",
        files: &[],
        run: |_, _| Ok(methods()),
    },
    Row {
        id: "fig2",
        claim: "One dimension, prior U(−6, 6), two agents, 200 particles, L = L' = 100: after round 1 the local posterior of the first agent, \
                with one mode at 1; from round 2 on two modes near −2.2 and 2.3 (within 0.5), and a KL divergence from the posterior below \
                .06 on [−6, 6].",
        files: &["dsvgd/fig2"],
        run: toys::uniform_prior,
    },
    Row {
        id: "fig3",
        claim: "Fig. 3 and Fig. 9 (a): the same with prior N(0, 1) and L = L' = 200: DSVGD and U-DSVGD come nearer to the posterior than PVI \
                and GVI. KL of density estimates; that of the best Gaussian is .0773, \
                which PVI has from round 2 on.",
        files: &["dsvgd/fig3", "dsvgd/fig3-gaussian"],
        run: toys::rounds,
    },
    Row {
        id: "fig9b",
        claim: "Fig. 9 (b): the example of Fig. 3 after five rounds with L = L' = 1 to 400: particle methods need enough local steps to beat PVI \
                and GVI, here those with all the steps they want. DSVGD is worse than PVI with L = 1, and better with 200. The paper does not \
                name its step size; with ours of .05, five steps are enough.",
        files: &["dsvgd/fig9b"],
        run: toys::steps,
    },
    Row {
        id: "fig9-extra",
        claim: "Ours: DSVGD does not settle as rounds go on. Each distillation smooths factors again: over 40 rounds KL rises by more than .05, \
                and the particles keep less than half of the posterior's variance.",
        files: &["dsvgd/fig9-extra"],
        run: toys::drift,
    },
    Row {
        id: "fig10",
        claim: "Two dimensions, 200 particles, five rounds: SVGD and DSVGD have both modes, with 12 to 28 % of the particles at the minor one \
                and the right mean; the best Gaussian has one.",
        files: &["dsvgd/fig10"],
        run: toys::plane,
    },
    Row {
        id: "fig4-twonorm",
        claim: "Logistic regression, K = 2 and 20, N = 6 (and 2): DSVGD is not below FedAvg and DSGLD by more than .005 in accuracy, does as \
                well with 20 agents as with 2 (.02), and is faster with more particles. Generated Twonorm; L = L' = 200, 40 rounds for \
                K = 20 (paper: up to 100). Ours: accuracies of .96 by round 5 (K = 2), .94 by round 4, .96 and a log-likelihood above −.2 in round 40 (K = 20).",
        files: &["dsvgd/fig4-2-agents", "dsvgd/fig4-20-agents"],
        run: logistic::twonorm,
    },
    Row {
        id: "fig4-covertype",
        claim: "Fig. 4 on 20,000 rows of Covertype scaled to [0, 1] (paper: 581,012): K = 2 and 20, N = 6, L = L' = 200. With 20 agents DSVGD \
                has 70 % after five rounds, and FedAvg, weighted as in the authors' code, needs about 100, so that it has less than that \
                after 40. Weighted by participants it does not.",
        files: &["dsvgd/fig4-2-agents", "dsvgd/fig4-20-agents"],
        run: logistic::covertype,
    },
    Row {
        id: "fig5",
        claim: "Four agents with 40 % and 10 % of the classes, N = 6: log-likelihoods of FedAvg lose more by it than those of DSVGD. German, \
                and 20,000 rows of Covertype. Generated Twonorm is only shown: its classes mirror each other, so that nobody loses anything.",
        files: &["dsvgd/fig5"],
        run: logistic::unlike,
    },
    Row {
        id: "kde-modes",
        claim: "Ours: with 20 features and more the authors' density estimate does what no cavity does (accuracy within .005), and the floor \
                of 1e-9 is better in log-likelihood with K = 20. Generated Twonorm, 20,000 rows of Covertype.",
        files: &["dsvgd/fig4-20-agents"],
        run: logistic::estimates,
    },
    Row {
        id: "baseline-bugs",
        claim: "Ours: weighting one agent's result against all absent ones makes FedAvg slow by itself, by more than .02 of accuracy in round \
                4 of 20 agents. Beside it what the authors' noise does to SGLD, and their noise and scale to DSGLD. Generated Twonorm, \
                20,000 rows of Covertype.",
        files: &["dsvgd/fig4-20-agents"],
        run: logistic::baselines,
    },
    Row {
        id: "fig11",
        claim: "Nine binary sets (which the paper had is not known), N = 100, two agents, four rounds of 200 steps, SVGD 800: DSVGD and \
                U-DSVGD are as accurate as SVGD, within .02 on most. Beside them NPV with as many components.",
        files: &["dsvgd/fig11"],
        run: logistic::nine_sets,
    },
    Row {
        id: "fig12a",
        claim: "Accuracy by N, two agents: DSVGD and U-DSVGD are as accurate as SVGD (within .02) and not below SGLD, DSGLD and PMD \
                by more than .01 with 50 particles. Generated Twonorm, 20,000 rows of Covertype; four rounds.",
        files: &["dsvgd/fig12a"],
        run: logistic::particles,
    },
    Row {
        id: "skew-four",
        claim: "Ours: MNIST on four agents with digits 012, 34, 567 and 89, each visited ten times. Sites have a mean \
                accuracy of .94 or more over the last sweep of all agents, and are more accurate than no cavity, every density estimate and FedAvg.",
        files: &["dsvgd/skew-four"],
        run: skew::four,
    },
    Row {
        id: "skew-ten",
        claim: "Ours: MNIST on ten agents with one digit each, each visited ten times. Sites have a mean accuracy of .93 or more over the last \
                sweep, and are more accurate than no cavity, every density estimate and FedAvg.",
        files: &["dsvgd/skew-ten"],
        run: skew::ten,
    },
    Row {
        id: "skew-covertype",
        claim: "Ours: Covertype, 20 agents with one class each: sites with whole matrices are as accurate as SVGD on all data (within .01) and \
                more accurate than no cavity, density estimates and FedAvg.",
        files: &["dsvgd/skew-covertype"],
        run: skew::covertype,
    },
    Row {
        id: "fig12b",
        claim: "DSVGD with 8 particles and 6 rounds is as accurate as with 4 and 10 (within .01). Generated Twonorm, 20,000 rows of Covertype.",
        files: &["dsvgd/fig12b"],
        run: logistic::particles_and_rounds,
    },
    Row {
        id: "fig14",
        claim: "With 2,000 steps in all, N = 6: DSVGD and U-DSVGD are as accurate as SVGD (within .02) and not below SGLD and DSGLD by more \
                than .005. Generated Twonorm, 20,000 rows of Covertype.",
        files: &["dsvgd/fig14"],
        run: logistic::iterations,
    },
    Row {
        id: "fig15",
        claim: "A hundred agents, 20 random ones in a round: P-DSVGD, its density estimates without a floor, is not below FedAvg and DSGLD by \
                more than .005. Generated Twonorm with 5,000 rows, 20,000 rows of Covertype; ten rounds, N = 20. With a floor no factor follows its \
                agent's particles: of the product of V visited agents' factors the server is left with the prior to the power 1 − V, which \
                drives particles away. Sites stand beside both.",
        files: &["dsvgd/fig15", "dsvgd/fig15-dsgld"],
        run: logistic::hundred_agents,
    },
    Row {
        id: "fig16",
        claim: "Fig. 4 on further sets (here diabetis, german and splice): with 20 agents DSVGD moves more from round to round than with 2, \
                and is not below FedAvg and DSGLD by more than .01.",
        files: &["dsvgd/fig4-20-agents"],
        run: logistic::further_sets,
    },
    Row {
        id: "fig6-kin8nm",
        claim: "Network regression on Kin8nm with its standard splits, 50 hidden units, K = 2 and 20, N = 20: the RMSE of DSVGD is not above \
                those of FedAvg and DSGLD by more than .005 standard deviations of the targets. Ours: the authors' estimate does what no \
                cavity does.",
        files: &["dsvgd/fig6-kin8nm"],
        run: networks::kin8nm,
    },
    Row {
        id: "fig6-year",
        claim: "Network regression as for Kin8nm with 100 hidden units on a synthetic stand-in for Year: 20,000 generated rows of 90 features (Year: 515,345), ten \
                rounds of 100 steps.",
        files: &["dsvgd/fig6-year", "dsvgd/fig6-year-dsgld"],
        run: networks::year,
    },
    Row {
        id: "fig7-mnist",
        claim: "Network classification, MNIST, 784-100-10, N = 20, K = 2 and 20: DSVGD is more accurate than FedAvg. Ten rounds of 50 steps \
                (paper: 200). With 20 agents and ten rounds none is visited twice, and nothing is distilled, as nobody would read it.",
        files: &["dsvgd/fig7"],
        run: networks::mnist,
    },
    Row { id: "fig7-fashion", claim: "Fig. 7 as for MNIST, on Fashion-MNIST.", files: &["dsvgd/fig7"], run: networks::fashion },
    Row {
        id: "fig8-fig19",
        claim: "Calibration on Fashion-MNIST, K = 20, N = 20, widths 25 to 200: FedAvg's expected calibration error is above DSVGD's and the gap \
                grows with width; DSVGD's is SVGD's (within .02). Ten rounds of 50 steps (paper: 200).",
        files: &["dsvgd/fig8"],
        run: networks::widths,
    },
    Row {
        id: "fig20",
        claim: "The same with width 100 and N = 2 to 40: accuracy grows with N, the maximal calibration error (bins of 20 images or more) is \
                flat (.02 for each factor e of N) and below FedAvg's.",
        files: &["dsvgd/fig20"],
        run: networks::particles,
    },
];

/// Table 1: checks that the program has all methods that the paper compares.
fn methods() -> Outcome {
    let registry = mpibayes::config::Registry::default();
    let there = registry.methods();
    let mut case = Case::default();
    let wanted = [
        ("SVGD: Bayesian, particles, on all data", "svgd"),
        ("DSVGD: Bayesian, particles, distributed", "dsvgd"),
        ("U-DSVGD: Bayesian, particles, distributed", "u_dsvgd"),
        ("P-DSVGD: Bayesian, particles, distributed", "p_dsvgd"),
        ("SGLD (one agent) and DSGLD: Bayesian, chains, distributed", "dsgld"),
        ("FedAvg: not Bayesian, distributed", "fedavg"),
        ("PVI: Bayesian, Gaussian, distributed", "pvi"),
        ("GVI: Bayesian, Gaussian, on all data", "gvi"),
        ("NPV: Bayesian, Gaussian mixture, on all data", "npv"),
        ("PMD: Bayesian, weighted particles, on all data", "pmd"),
    ];
    for (name, key) in wanted {
        let has = there.contains(&key);
        case.must(name, if has { key.into() } else { "not there".into() }, key, has);
    }
    case.judged(None)
}
