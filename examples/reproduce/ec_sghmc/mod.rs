//! Springenberg, Klein, Falkner & Hutter 2016, "Asynchronous stochastic gradient MCMC with elastic coupling": its claims, row by row.
//!
//! The paper's constants are lost: those here are ours.

mod networks;
mod paper_scheme;
mod residual;
mod toys;

use super::Row;

/// What the report says of all rows.
pub const LEGEND: &str = "The text of the paper at hand has neither equations nor constants: steps, frictions, couplings, the target of Fig. 1 \
and what s counts are our choices, and its equations are as we remember them. \"Our sampler\" is `ec_sghmc`, which moves the center exactly and \
sends it when it is new; \"the paper's steps\" are Euler's, with a center as old as the last exchange; all chains exchange at the same time. What \
does not hold here may hold with the paper's constants, and the reverse; only `posterior` follows from algebra. The paper does not say which \
negative log-likelihood it plots: claims are about that of a chain's own state, and those of averaged predictions are shown.";

/// The rows, in the order of the paper.
pub const ROWS: &[Row] = &[
    Row {
        id: "fig1",
        quote: "in contrast the four samplers with elastic coupling quickly sample from high density regions and show coherent behaviour.",
        claim: "A correlated Gaussian in the plane, the first 100 steps of .01 from one far place: over steps 50 to 100 four coupled chains have \
                at most .8 times the distance of four alone, and in all 100 steps fewer of their states are outside the 99 % ellipse. 200 \
                repetitions, by our sampler and by the paper's steps with s = 1, 4 and 8. That coupled chains are somewhat closer to each other \
                follows from the equations; of the distances only our bound .8 fails. The row depends on the length of steps: \
                compare `fig1-long`.",
        differs: "The target, V = C = κ = 1 and the start are ours: 9 standard deviations out along the narrow axis, where the center begins \
                  too, at rest. So in one unit of time, as here, coupling can only hold chains back.",
        files: &[],
        run: |effort, _| toys::figure1(effort, 0.01, &[1, 4, 8], &[]),
    },
    Row {
        id: "fig1-long",
        quote: "in contrast the four samplers with elastic coupling quickly sample from high density regions and show coherent behaviour.",
        claim: "The same with steps of .1, for s = 1 and 4. s = 8 is only shown: the center of the paper's steps then swings more and more, and more \
                states are outside. In the long run the distance of coupled chains is .68 times that of chains alone, by the law that makes their variance too \
                small (`posterior`): only the shares outside the ellipse say something new.",
        differs: "As for fig1; steps are probably ten times as long.",
        files: &[],
        run: |effort, _| toys::figure1(effort, 0.1, &[1, 4], &[8]),
    },
    Row {
        id: "posterior",
        quote: "the dynamics […] has the posterior distribution […] as the stationary distribution for all […] samplers.",
        claim: "A Gaussian's variance, to 3 %, with four chains, κ = λ, and exchanges every step and every eighth: a coupled chain has the variance of \
                the posterior (our sampler, without an error of steps), or of a chain alone with the same steps (the paper's). It \
                cannot have it: with the center integrated out, the density has a factor exp(−κ/2 Σ|θ_i − mean|²), which makes the variance \
                1/K + (K − 1)/K · λ/(λ + κ) times that of the posterior, .625 here.",
        differs: "A Gaussian with unit variance and exact gradients.",
        files: &["ec-sghmc/stationary"],
        run: toys::posterior,
    },
    Row {
        id: "buffer",
        quote: "",
        claim: "The paper hopes \"that the center variable acts as a buffer, damping the injected noise\". All chains exchange at the same time, so \
                that an old center changes only the law of their mean. By the paper's steps of .05, and by steps that move velocities first, \
                the variance of four coupled chains on a Gaussian, κ = λ, is with exchanges every s = 2, 4 and 8 steps at most 1.03 times what it is \
                with s = 1. It becomes smaller, by up to 7 %, away from that of the posterior. A center older than here makes the steps unstable (`fig1-long`, s = 8).",
        differs: "A Gaussian with unit variance and exact gradients.",
        files: &[],
        run: |effort, _| toys::buffer(effort),
    },
    Row {
        id: "stationary",
        quote: "",
        claim: "What synchronous chains sample instead: a chain's variance is Λ⁻¹/K + (K − 1)/K (Λ + κ)⁻¹, for each period s, because our center is \
                moved exactly. Chains whose coupling has ended and those with coupled friction sample the posterior.",
        differs: "",
        files: &["ec-sghmc/stationary", "ec-sghmc/unbiased"],
        run: toys::stationary,
    },
    Row {
        id: "staleness",
        quote: "",
        claim: "Old gradients, of asynchronous SGLD with a fixed delay: the variance grows with the delay as the theory has it, and \
                steps above 2 sin(π/(2(2τ + 1)))/λ are unstable.",
        differs: "",
        files: &[],
        run: |effort, _| toys::staleness(effort),
    },
    Row {
        id: "fig2-left",
        quote: "both parallel samplers […] perform significantly better than standard sghmc. however, when we increase the communication delay \
                and only synchronize threads every […] steps the additional noise injected into the sampler via this procedure becomes \
                problematic for async sghmc whereas ec-sghmc copes with it much more gracefully.",
        claim: "MNIST, 784-800-800-10, six workers: the mean over the run of the logarithm of a chain's negative log-likelihood on test images is lower \
                for both parallel methods with s = 1 than for one chain; from s = 1 to 8 asynchronous SGHMC loses, and elastic coupling loses less than half \
                (ours) of that. Each method has its best step size, doubled or halved, at most six times, as long as that helps with another seed. A run that has \
                diverged is as good as guessing.",
        differs: "640 steps of each worker, about one epoch, so that only the descent is compared, on a simulated cluster of equally fast \
                  ranks, where the paper has seconds: with s = 1 messages of 5 MB make a step of asynchronous SGHMC 2.6 times as long, and \
                  one of coupled chains 4 times, so that by seconds the former is behind one chain for the first 2.6 of that chain's 3.4 \
                  seconds, and the latter for the first 2.4. Only our bound of a half is undecided: that coupled chains lose less than \
                  asynchronous SGHMC, .52 against 1.07, is beyond doubt. The likelihood of coupled chains with s = 8 and their best step \
                  rises again in the last tenth, from .22 to .27; on a machine with slower gradients (8.1 ms), beside which messages travel \
                  faster, from .22 to .23. Steps that the program refuses, because the coupling would be unstable, count as guessing. s \
                  counts the gradients of a worker at one state, so that with s = 8 a gradient of asynchronous SGHMC is 26 updates old on \
                  average; 2,000 test images, which also choose the steps; prior precision, V and κ are ours and not tuned.",
        files: &["ec-sghmc/fig2-left-one", "ec-sghmc/fig2-left"],
        run: networks::figure2,
    },
    Row {
        id: "fig2-right",
        quote: "we again aim to sample the posterior […] only now the neural network […] is the 32-layer residual network […] (with \
                batch-normalization removed). the results […] showing that, again, ec-sghmc leads to a significant speed-up over standard \
                sghmc sampling.",
        claim: "CIFAR-10, ResNet-32 without normalization, six workers, s = 8: the mean over the run of the logarithm of a chain's negative log-likelihood on \
                test images is lower for coupled chains than for one chain. Each method has its best step size, doubled or halved, at most three times, as long \
                as that helps in runs half as long with another seed. A run that has diverged is as good as guessing.",
        differs: "The first 320 steps with batch 50, 1.6 epochs, so that only the descent is compared; 10,000 of the 50,000 images unless the \
                  whole archive is there; 500 test images, which also choose the steps; by steps of each worker on a simulated cluster, where the \
                  paper has seconds; at most three seeds, which decide nothing unless the difference is some seven standard errors; prior precision \
                  100, where fig2-left has 1e-5. V and κ are ours and not tuned. A likelihood of 2.3026 is that of guessing. The references have one seed and the step of the coupled chains: they are not tuned.",
        files: &["ec-sghmc/fig2-right-one", "ec-sghmc/fig2-right"],
        run: residual::figure2_right,
    },
    Row {
        id: "eamsgd",
        quote: "an initial test we performed suggests that the former perform at least as good as eamsgd.",
        claim: "Without noise, elastic coupling descends at least as well (within 5 %, ours) as elastic averaging SGD with Nesterov's momentum: \
                logarithm of the training loss on MNIST after as many steps, both with the best of their learning rates and couplings, chosen \
                with other seeds.",
        differs: "784-100-10, 600 steps with batch 100, four workers, s = 8, momentum .95. Elastic coupling is that of our sampler, which moves the \
                  center exactly; it has three more couplings to choose from, and the friction of the center is not tuned. The loss is that \
                  of the center, on the first 4,000 training images. The paper rewrites its equations like EAMSGD's with standard momentum.",
        files: &["ec-sghmc/eamsgd"],
        run: networks::without_noise,
    },
    Row {
        id: "eamsgd-logistic",
        quote: "an initial test we performed suggests that the former perform at least as good as eamsgd.",
        claim: "The same for logistic regression. Elastic coupling is worse by 1.5 % (five standard errors), within the margin. Where couplings change the loss by less than 5 %, as the losses below may show, the claim is a weak \
                one.",
        differs: "As for eamsgd.",
        files: &["ec-sghmc/eamsgd-logistic"],
        run: networks::without_noise,
    },
];
