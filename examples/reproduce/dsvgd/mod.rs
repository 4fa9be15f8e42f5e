//! Kassab & Simeone, "Federated Generalized Bayesian Learning via Distributed Stein Variational Gradient Descent" (arXiv 2009.06419).
//!
//! Every curve of DSVGD but those of Fig. 8 is compared with the same method without a cavity distribution, to which it reduces if density
//! estimates have no weight; and, for predictions, with federated averaging in both weightings.

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
K agents, N particles, L local and L' distillation steps in a visit. \"DSVGD\" has the density estimate of this program's `kde` (λ = .55, \
a floor of 1e-9): the floor is that of the authors' code. The estimate of \"no floor\" is the paper's, that of \"authors' estimate\" is the code's; \"no cavity\" has \
no factors of other agents, \"sites\" our quadratic ones. Factors contain the prior, as in the authors' code, but for U-DSVGD. In Algorithm 1 they begin at 1 instead: \
what is then distilled may have no finite integral. FedAvg begins at a draw from the prior. \"Participants\" averages over the agents of a round, \
which with one agent a round averages nothing; \"total\" over all agents, those that are absent unchanged, as the authors' code does. In a round of DSGLD one of \
min(K, N) groups of chains moves, at one agent, but for fig12a, fig14 and fig15. Both make these baselines slow by construction with many agents in few rounds. Where \"no cavity\" is as good as DSVGD, as in most rows with two agents or with networks, a row cannot tell whether factors do \
anything: the rows `skew-*` can. Seeds decide which agent gets which rows, and all random numbers; those of Covertype and of images share the data and the test rows, which \
errors do not cover. With 20 agents and ten rounds no agent is visited twice (fig7, fig8-fig19, fig20): \
these rows test particles that are handed on, not factors. The text of the paper at hand lacks the bodies of Tables 2 to 4, Appendix B.4, \
Figures 13, 17 and 18, and the captions or axes of others: settings that they fix are ours.";

/// All rows, reproduced or not.
pub const ROWS: &[Row] = &[
    Row {
        id: "table1",
        quote: "",
        claim: "The methods of Table 1 are all here: a list of names.",
        differs: "",
        files: &[],
        run: |_, _| Ok(methods()),
    },
    Row {
        id: "fig2",
        quote: "at each round, the global posterior updated by DSVGD integrates the local likelihood of the scheduled agent, while \
                still preserving information about the likelihood of the other agent from prior iterates, until (approximate) \
                convergence",
        claim: "One dimension, prior U(−6, 6), two agents, 200 particles, L = L' = 100: after round 1 the local posterior of the first \
                agent, with one mode at 1; from round 2 on two modes near −2.2 and 2.3 (within 0.5; another number of modes counts as a distance of 6), and a KL divergence from the \
                posterior below .06 (ours) on [−6, 6].",
        differs: "Step size .05, the floor and ±.5 for the modes are ours. With the prior N(0, 1), 100 particles and L = 200 DSVGD drifts in more rounds (`fig9-extra`).",
        files: &["dsvgd/fig2"],
        run: toys::uniform_prior,
    },
    Row {
        id: "fig3",
        quote: "Both U-DSVGD and DSVGD exhibit similar behaviour, converging to SVGD and outperforming the parametric counterparts PVI \
                and […] GVI",
        claim: "Fig. 3 and Fig. 9 (a): the same with prior N(0, 1) and L = L' = 200: in the last four of ten rounds (ours) DSVGD and U-DSVGD \
                are nearer to the posterior than PVI and GVI (.0773, the best Gaussian), within .01 (ours) of SVGD after 800 steps, \
                and within .01 of each other. KL of density estimates. In rounds 3 to 6 DSVGD, but not U-DSVGD, is as near as SVGD. Other density estimates are shown.",
        differs: "Step size .05 and the floor are ours.",
        files: &["dsvgd/fig3", "dsvgd/fig3-gaussian"],
        run: toys::rounds,
    },
    Row {
        id: "fig9b",
        quote: "require a sufficiently large number of local iterations in order to outperform the parametric strategies PVI and GVI",
        claim: "Fig. 9 (b): the example of Fig. 3 after five rounds: with L = L' = 1 (ours) DSVGD, U-DSVGD and SVGD are farther from the posterior than PVI, \
                with 200 nearer. Twenty seeds. PVI and GVI have all the steps they want.",
        differs: "Step size .05 and the floor are ours. With L = 5, the least of the figure, all three are nearer than PVI at this step: L = 1 and 2 \
                are ours. The sentence names no number of steps.",
        files: &["dsvgd/fig9b"],
        run: toys::steps,
    },
    Row {
        id: "fig9-extra",
        quote: "",
        claim: "DSVGD does not settle as rounds go on: each distillation smooths factors again. Over 40 rounds, with 100 particles, KL \
                rises by more than .05, and the particles keep less than half of the posterior's variance.",
        differs: "",
        files: &["dsvgd/fig9-extra"],
        run: toys::drift,
    },
    Row {
        id: "fig10",
        quote: "capture the different modes of the posterior, obtaining lower values for the KL divergence between the approximate and \
                exact posterior",
        claim: "Two dimensions, 200 particles, five rounds: by density estimates with λ = .3 (ours) SVGD and DSVGD have a lower divergence \
                than the best Gaussian, and their share of particles within 1.5 standard deviations of the minor mode is within .05 (ours) of the posterior's. The share of the \
                best Gaussian differs by more. With λ = .55 even exact draws would lose against the Gaussian.",
        differs: "PVI is not run, but no Gaussian can be better than the best; the paper's bandwidth b = .1 has an unclear meaning, and with its \
                general .55 both means contradict the claim.",
        files: &["dsvgd/fig10"],
        run: toys::plane,
    },
    Row {
        id: "fig4-twonorm",
        quote: "DSVGD consistently outperforms the mentioned decentralized benchmarks and that, in contrast to FedAvg and DSGLD, its \
                performance scales well with the number K of agents",
        claim: "Logistic regression, K = 2 and 20, N = 6: DSVGD is more accurate than FedAvg and DSGLD in the last three rounds, these \
                lose more accuracy than DSVGD from 2 to 20 agents in ten rounds, and with K = 2 six particles are ahead of two in \
                round 2. Ours: accuracies of .96 by round 5 (K = 2), .94 by round 4, .96 and a log-likelihood above −.2 in round 40 (K \
                = 20).",
        differs: "Generated Twonorm; 40 rounds for K = 20 (paper: up to 100). The step of chains is that of fig12a.",
        files: &["dsvgd/fig4-2-agents", "dsvgd/fig4-20-agents", "dsvgd/fig4-chains"],
        run: logistic::twonorm,
    },
    Row {
        id: "fig4-covertype",
        quote: "DSVGD consistently outperforms the mentioned decentralized benchmarks and that, in contrast to FedAvg and DSGLD, its \
                performance scales well with the number K of agents […] DSVGD reaches an accuracy of 70% after 5 communication rounds \
                with N = 6 […] FedAvg requires around 100 rounds to obtain the same accuracy",
        claim: "The same on Covertype. With 20 agents DSVGD has 70 % after five rounds, and FedAvg, weighted as in the authors' code, \
                less than that after 40. Weighted by participants it has more, which is shown: this claim is about the weighting.",
        differs: "A sample of 20,000 rows (paper: 581,012) scaled to [0, 1]; which plot has K = 20 is a guess. The step of chains is that of fig12a: with .01 / N, the other reading, DSGLD is behind.",
        files: &["dsvgd/fig4-2-agents", "dsvgd/fig4-20-agents", "dsvgd/fig4-chains"],
        run: logistic::covertype,
    },
    Row {
        id: "fig5",
        quote: "DSVGD is seen in Fig. 5 to have a robust performance against heterogeneity as compared to FedAvg, whose convergence \
                speed is severely affected",
        claim: "Two agents have 40 % of one class and 10 % of the other, two the reverse; N = 6, Covertype: in most seeds the log-likelihood of FedAvg loses more \
                by this, against equal shards, than that of DSVGD. Signs are judged, as means are those of a few seeds with large losses; by means both claims would hold. What DSVGD itself loses \
                is shown: with unlike agents it is worse than guessing. Generated Twonorm is only shown: its classes mirror each other, so that nobody loses anything.",
        differs: "A sample of 20,000 rows scaled to [0, 1]; FedAvg begins at a draw from a prior with heavy tails. Speed of convergence is not judged.",
        files: &["dsvgd/fig5"],
        run: logistic::unlike,
    },
    Row {
        id: "kde-modes",
        quote: "",
        claim: "With 20 features and more the authors' density estimate gives the results of no cavity (accuracy within .005), and the floor \
                of 1e-9 gives a better log-likelihood than no cavity with K = 20. Generated Twonorm, 20,000 rows of Covertype.",
        differs: "",
        files: &["dsvgd/fig4-20-agents"],
        run: logistic::estimates,
    },
    Row {
        id: "weighting",
        quote: "",
        claim: "Weighting one agent's result against all absent ones makes FedAvg slow by itself, by more than .02 of accuracy in \
                round 4 of 20 agents. Shown beside it: SGLD with the noise of the authors' code, and DSGLD with its scale, or with both. \
                Generated Twonorm, 20,000 rows of Covertype. Chains begin with steps of .01 / 6.",
        differs: "",
        files: &["dsvgd/fig4-20-agents"],
        run: logistic::baselines,
    },
    Row {
        id: "fig11",
        quote: "both U-DSVGD and DSVGD perform similarly to SVGD and NPV over most datasets",
        claim: "Nine binary sets, N = 100, two agents, four rounds of 200 steps, SVGD 800: the accuracies of DSVGD and U-DSVGD differ from those of SVGD and of \
                NPV with as many components by less than .02 (ours) on most sets: the median over sets of the absolute difference in a seed, which chance makes larger.",
        differs: "The sets are ours, from the collection that the paper names, with standardized columns (paper: as they are). Accuracies stand for log-likelihoods.",
        files: &["dsvgd/fig11"],
        run: logistic::nine_sets,
    },
    Row {
        id: "fig12a",
        quote: "SVGD, DSVGD and U-DSVGD exhibit the same performance, which is superior to […] (PMD) and similar to SGLD and DSGLD \
                when the number of particles increases",
        claim: "Two agents, four rounds, 50 particles: the accuracies of DSVGD and U-DSVGD are SVGD's within .02 (ours), those of SGLD \
                and DSGLD are DSVGD's within .02, and DSVGD is more accurate than PMD.",
        differs: "Chains of SGLD and DSGLD make 2,000 updates, as the paper's DSGLD does (500 rounds of four, half of the chains at each \
                agent); as a method on all data SGLD might have 800. Their step begins at the order of .01, as the text has it, for all N; a footnote may be read as .01 / N, with which 50 chains hardly move. \
                Generated Twonorm, 20,000 rows of Covertype, where chains are more accurate than DSVGD.",
        files: &["dsvgd/fig12a", "dsvgd/fig12a-chains"],
        run: logistic::particles,
    },
    Row {
        id: "skew-four",
        quote: "",
        claim: "MNIST on four agents with digits 012, 34, 567 and 89, each visited ten times. Sites have a mean accuracy of .94 or \
                more over the last sweep of all agents, and are more accurate than no cavity, every density estimate and FedAvg.",
        differs: "",
        files: &["dsvgd/skew-four"],
        run: skew::four,
    },
    Row {
        id: "skew-ten",
        quote: "",
        claim: "MNIST on ten agents with one digit each, each visited ten times. Sites have a mean accuracy of .93 or more over the \
                evaluations of the last sweep, after rounds 93, 96, 99 and 100, and are more accurate than no cavity, every density estimate and FedAvg.",
        differs: "",
        files: &["dsvgd/skew-ten"],
        run: skew::ten,
    },
    Row {
        id: "skew-covertype",
        quote: "",
        claim: "Covertype, 20 agents with one class each: sites with whole matrices are as accurate as SVGD on all data (within .01) \
                and more accurate than no cavity, density estimates and FedAvg.",
        differs: "",
        files: &["dsvgd/skew-covertype"],
        run: skew::covertype,
    },
    Row {
        id: "fig12b",
        quote: "N = 8 with I = 6 communication rounds achieves similar performance as N = 4 with I = 10",
        claim: "DSVGD with 8 particles and 6 rounds is as accurate as with 4 and 10 (within .01, ours).",
        differs: "Generated Twonorm, 20,000 rows of Covertype.",
        files: &["dsvgd/fig12b"],
        run: logistic::particles_and_rounds,
    },
    Row {
        id: "fig14",
        quote: "U-DSVGD and DSVGD have similar performance to SVGD and that they consistently outperform other schemes for \
                sufficiently high L",
        claim: "With 2,000 steps in all, N = 6: DSVGD and U-DSVGD are as accurate as SVGD (within .02, ours) and more accurate than \
                SGLD and DSGLD. FedAvg, which the text does not name here, is shown.",
        differs: "Only the largest L is judged. Every chain of SGLD and DSGLD moves in every round, so that it makes as many updates as \
                SVGD; their step is that of fig12a. Generated Twonorm, 20,000 rows of Covertype.",
        files: &["dsvgd/fig14", "dsvgd/fig14-chains"],
        run: logistic::iterations,
    },
    Row {
        id: "fig15",
        quote: "P-DSVGD exhibits similar behaviour and gain over other schemes similarly to DSVGD",
        claim: "A hundred agents, 20 random ones in a round: P-DSVGD, its density estimates without a floor, is more accurate than \
                FedAvg and DSGLD. With a floor no factor follows its agent's particles. Sites stand beside both.",
        differs: "Generated Twonorm with 5,000 rows, 20,000 rows of Covertype; ten rounds, N = 20; factors are our implementation of the \
                paper's, with priors in them; the step of chains is that of fig12a.",
        files: &["dsvgd/fig15", "dsvgd/fig15-dsgld"],
        run: logistic::hundred_agents,
    },
    Row {
        id: "fig16",
        quote: "the slightly noisy behaviour of DSVGD with K = 20 agents is attributed to the small local dataset sizes",
        claim: "Fig. 4 on diabetis, german and splice: with 20 agents the accuracy of DSVGD moves more from round to round than with \
                2.",
        differs: "The sets are ours, with standardized columns; steps of DSGLD begin at .01 / 6. With more agents each has fewer rows: the row cannot separate the two.",
        files: &["dsvgd/fig4-20-agents"],
        run: logistic::further_sets,
    },
    Row {
        id: "fig6-kin8nm",
        quote: "DSVGD consistently outperforms the other decentralized benchmarks in terms of RMSE and accuracy, while being more \
                robust in terms of convergence speed to an increase in the number of agents",
        claim: "Network regression on Kin8nm with its standard splits, 50 hidden units, K = 2 and 20, N = 20: the RMSE of DSVGD is \
                below those of FedAvg and DSGLD. Ours: the authors' estimate gives the results of no cavity.",
        differs: "The steps are ours; that of DSGLD, .0005 / 20, is smaller, as it would diverge with the others, and is not tuned. Convergence by the number of agents is only shown.",
        files: &["dsvgd/fig6-kin8nm", "dsvgd/fig6-kin8nm-dsgld"],
        run: networks::kin8nm,
    },
    Row {
        id: "fig6-year-like",
        quote: "DSVGD consistently outperforms the other decentralized benchmarks in terms of RMSE and accuracy, while being more \
                robust in terms of convergence speed to an increase in the number of agents",
        claim: "Network regression as for Kin8nm with 100 hidden units.",
        differs: "A synthetic stand-in for Year: 20,000 generated rows of 90 features (Year: 515,345), ten rounds of 100 steps; DSGLD has a smaller step, \
                  which is ours; convergence by the number of agents is only shown.",
        files: &["dsvgd/fig6-year", "dsvgd/fig6-year-dsgld"],
        run: networks::year,
    },
    Row {
        id: "fig7-mnist",
        quote: "DSVGD consistently outperforms the other decentralized benchmarks in terms of RMSE and accuracy, while being more \
                robust in terms of convergence speed to an increase in the number of agents",
        claim: "Network classification, MNIST, 784-100-10, N = 20, K = 2 and 20: DSVGD is more accurate than FedAvg. With 20 agents \
                and ten rounds none is visited twice, and nothing is distilled, as nobody would read it.",
        differs: "Ten rounds of 50 steps (paper: 200); 2,000 test images; DSGLD is not run; convergence by the number of agents is only shown.",
        files: &["dsvgd/fig7"],
        run: networks::mnist,
    },
    Row {
        id: "fig7-fashion",
        quote: "DSVGD consistently outperforms the other decentralized benchmarks in terms of RMSE and accuracy, while being more \
                robust in terms of convergence speed to an increase in the number of agents",
        claim: "Fig. 7 as for MNIST, on Fashion-MNIST.",
        differs: "Ten rounds of 50 steps (paper: 200); 2,000 test images; DSGLD is not run; convergence by the number of agents is only shown.",
        files: &["dsvgd/fig7"],
        run: networks::fashion,
    },
    Row {
        id: "fig8-fig19",
        quote: "While increasing the number of hidden neurons negatively affects FedAvg due to overfitting, DSVGD enjoys excellent \
                calibration even for large models […] DSVGD retains the same calibration level as SVGD across all datasets",
        claim: "Calibration on Fashion-MNIST, K = 20, N = 20, widths 25 to 200: FedAvg's expected calibration error, by either \
                weighting, is above DSVGD's and grows with width, DSVGD's does not by more than .01, and is SVGD's within .01 (ours).",
        differs: "Ten rounds: half of the agents are never visited, and nobody is visited twice, in as many dimensions DSVGD is what it is without cavity to the third digit. The expected calibration error on 5,000 test images of \
                Fashion-MNIST, where the paper has the maximal one and several sets. Five seeds, which cannot decide all of it. The sentence does not say that FedAvg is worse with every width.",
        files: &["dsvgd/fig8"],
        run: networks::widths,
    },
    Row {
        id: "fig20",
        quote: "While increasing N improves the accuracy […] for SVGD and DSVGD, the MCE is unaffected and is lower than the MCE value \
                for FedAvg",
        claim: "The same with width 100 and N = 2 to 40: accuracy grows with N, the maximal calibration error (bins of 20 images or \
                more) with N = 40 is that with N = 2 within .02 (ours) and below FedAvg's by either weighting.",
        differs: "Ten rounds of 50 steps (paper: 200); SVGD is not run.",
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
