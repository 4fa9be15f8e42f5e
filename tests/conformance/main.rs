//! The conformance suite of all methods: equal bits under every driver, resumption from checkpoints, faults that end the job.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
#![allow(clippy::map_identity, reason = "the lint does not see that a report of one method becomes that of another")]

mod bits;
mod checkpoints;
mod clock;
mod collectives;
mod controls;
mod evaluation;
mod faults;
mod faulty;
mod launch;
#[path = "../support/launcher.rs"]
mod launcher;
mod methods;
mod misuse;
mod resume;
mod subject;
#[path = "../support/suite.rs"]
mod suite;
mod waiting;
mod worker;

use methods::{Average, Chains, Counts, Eager, Elastic, Groups, Relay, Spread, Subset, stein, topics};
use mpibayes::kernels::langevin::StepSize;
use mpibayes::kernels::optimizer::Optimizer;
use mpibayes::methods::TopicArray;
use mpibayes::methods::chains::coupled::CouplingSchedule;
use mpibayes::methods::chains::dsgld::{AveragingPhase, Schedule, Trajectory};
use mpibayes::methods::chains::ec_sghmc::Variant;
use mpibayes::methods::common::participation::Participation;
use mpibayes::methods::common::scores::Estimator;
use mpibayes::methods::particles::dsvgd::{Caution, Curvature, Factors, Found, PriorConvention, SiteSettings};
use mpibayes::methods::particles::pmd::Pmd;
use mpibayes::methods::particles::svgd::Svgd;
use mpibayes::methods::point::fedavg::{FedAvg, Weighting};
use mpibayes::methods::transitions::sghmc::Preconditioner;
use mpibayes::methods::tuning::Step;
use mpibayes::methods::variational::npv::Npv;
use std::sync::LazyLock;
use subject::{Subject, conforms};
use suite::Suite;

/// The methods under test.
fn roster() -> impl Iterator<Item = &'static dyn Subject> {
    static SUBJECTS: LazyLock<Vec<Box<dyn Subject>>> = LazyLock::new(subjects);
    SUBJECTS.iter().map(AsRef::as_ref)
}

/// A line for each method: this is all that a new method needs.
fn subjects() -> Vec<Box<dyn Subject>> {
    vec![
        conforms("relay", || Relay),
        conforms("subset", || Subset),
        conforms("average", || Average),
        conforms("spread", || Spread::<500, 2>),
        conforms("spread sliced", || Spread::<6001, 3>),
        conforms("counts", || Counts::<50>),
        conforms("counts sliced", || Counts::<10_001>),
        conforms("chains", || Chains),
        conforms("groups", || Groups),
        conforms("elastic", || Elastic),
        conforms("eager", || Eager::<1>),
        conforms("eager, two deep", || Eager::<2>),
        conforms("svgd on one agent", || stein::svgd::<f64>(1)),
        conforms("svgd spread", || stein::svgd::<f32>(4)),
        conforms("dsvgd", || stein::evaluated(stein::distilling::<f32>(5), 2)),
        conforms("dsvgd, pure prior", || {
            stein::evaluated(stein::dsvgd::<f32>(5, Participation::RoundRobin, distilled(PriorConvention::Pure)), 5)
        }),
        conforms("dsvgd with sites", || {
            let sites = SiteSettings { caution: Caution::Found(Found::Measured), curvature: Curvature::PerParticle, rows: 9 };
            stein::evaluated(stein::dsvgd::<f32>(4, Participation::Random, Factors::Sites(sites)), 3)
        }),
        conforms("u_dsvgd, random order", || {
            stein::evaluated(stein::dsvgd::<f32>(4, Participation::RandomPermutation, Factors::Remembered), 6)
        }),
        conforms("p_dsvgd", || {
            stein::evaluated(stein::dsvgd::<f32>(5, Participation::Subset(3), distilled(PriorConvention::Absorbed)), 3)
        }),
        conforms("p_dsvgd with shared sites", || {
            let sites = SiteSettings { caution: Caution::Fixed(1.5), curvature: Curvature::Shared, rows: 100 };
            stein::evaluated(stein::dsvgd::<f32>(4, Participation::All, Factors::Sites(sites)), 4)
        }),
        conforms("pvi", || stein::evaluated(stein::pvi::<f32>(5, Participation::Subset(2), 3), 3)),
        conforms("gvi", || stein::evaluated(stein::pvi::<f32>(4, Participation::All, 1), 5)),
        conforms("fedavg", || {
            let (schedule, optimizer, weighting) = (Participation::Subset(3), Optimizer::default(), Weighting::Total);
            let problem = stein::problem::<f32>(5);
            stein::evaluated(FedAvg { problem, rounds: 12, schedule, local_steps: 5, batch: 8, optimizer, weighting }, 4)
        }),
        conforms("npv", || {
            let problem = stein::problem::<f32>(1);
            stein::evaluated(Npv { problem, rounds: 12, components: 2, iterations: 2, particles: 3 }, 6)
        }),
        conforms("pmd", || {
            let problem = stein::problem::<f32>(1);
            stein::evaluated(Pmd { problem, rounds: 12, particles: 5, steps: 3, batch: 8, gain: 500.0, jitter: 0.002 }, 4)
        }),
        conforms("dsgld", || stein::evaluated(stein::dsgld::<f64>(|_| {}), 4)),
        conforms("dsgld, more chains than agents, control variate", || {
            stein::dsgld::<f32>(|settings| {
                (settings.chains, settings.gradient) = (7, Estimator::ControlVariate(3));
                (settings.schedule, settings.max_rounds_in_flight) = (Schedule::Derangement, 3);
            })
        }),
        conforms("dsgld, coupled", || {
            stein::dsgld::<f64>(|settings| {
                settings.chains = 5;
                settings.coupling = vec![AveragingPhase { groups: 1, rounds: 3 }, AveragingPhase { groups: 2, rounds: 4 }];
            })
        }),
        conforms("dsgld, groups in turn, expectations", || {
            stein::dsgld::<f64>(|settings| {
                (settings.chains, settings.schedule) = (7, Schedule::Rotating);
                (settings.rounds, settings.expectations) = (Some(4 * settings.rounds()), true);
            })
        }),
        conforms("dsgld, through the server", || {
            stein::dsgld::<f64>(|settings| {
                (settings.chains, settings.through_server) = (5, true);
                (settings.trajectory, settings.noise_correction) = (Trajectory::Same(1.0), true);
                settings.coupling = vec![AveragingPhase { groups: 2, rounds: 8 }];
            })
        }),
        conforms("hmc", || stein::evaluated(stein::hmc::<f64>(), 3)),
        conforms("hmc, single precision", stein::hmc::<f32>),
        conforms("sghmc", || stein::evaluated(stein::sghmc::<f64>(), 2)),
        conforms("ec-sghmc", || stein::evaluated(stein::ec_sghmc::<f32>(false, |_| {}), 3)),
        conforms("ec-sghmc, cyclic, extrapolated, masses", || {
            stein::ec_sghmc::<f64>(false, |settings| {
                settings.coupling_schedule = Some(CouplingSchedule::Cyclic { coupled: 8, free: 9, settle: 2 });
                (settings.extrapolate, settings.burn_in) = (true, Some(20));
                settings.preconditioner = Some(Preconditioner { burn_in: 20, ..Preconditioner::default() });
            })
        }),
        conforms("ec-sghmc, mean", || stein::ec_sghmc::<f64>(false, |settings| settings.variant = Variant::Mean)),
        conforms("ec-sghmc, friction", || {
            stein::evaluated(stein::ec_sghmc::<f64>(false, |settings| settings.variant = Variant::Friction), 4)
        }),
        conforms("ec-sghmc, asynchronous", || stein::evaluated(stein::ec_sghmc::<f32>(true, |_| {}), 3)),
        conforms("ec-sgld", stein::ec_sgld::<f64>),
        conforms("easgd", || stein::evaluated(stein::easgd::<f32>(false), 3)),
        conforms("easgd, asynchronous", || stein::easgd::<f32>(true)),
        conforms("async sghmc", || stein::evaluated(stein::async_sghmc::<f64>(1, 2), 20)),
        conforms("async sghmc, all gradients", || stein::async_sghmc::<f64>(4, 1)),
        conforms("svgd of a residual network", || Svgd { problem: stein::images(3), ..stein::svgd::<f32>(3) }),
        conforms("dsgld of a residual network", || {
            let method = stein::dsgld_on::<f32>(stein::images(5), |settings| settings.step = StepSize::Constant(1e-4));
            stein::evaluated_on(stein::images(5), method, 4)
        }),
        conforms("ec-sghmc of a residual network, asynchronous", || {
            let method = stein::ec_sghmc_on::<f64>(stein::images(4), true, |settings| {
                (settings.step, settings.steps) = (Step::Size(0.01), Some(20));
            });
            stein::evaluated_on(stein::images(4), method, 3)
        }),
        conforms("lda", topics::lda),
        conforms("lda in files", topics::lda_in_files),
        conforms("adlda", topics::adlda),
        conforms("async lda", topics::async_lda),
        conforms("dsgld on topics", topics::dsgld::<f32>),
        conforms("lda, evaluated", || topics::evaluated(topics::lda(), TopicArray::Counts, 2)),
        conforms("adlda, evaluated", || topics::evaluated(topics::adlda(), TopicArray::Counts, 2)),
        conforms("async lda, evaluated", || topics::evaluated(topics::async_lda(), TopicArray::Counts, 2)),
        conforms("dsgld on topics, evaluated", || topics::evaluated(topics::dsgld::<f32>(), TopicArray::Phi, 3)),
        conforms("adlda, priors optimized", || topics::evaluated(topics::adlda_with_priors(), TopicArray::Counts, 2)),
        conforms("async lda, priors optimized", || topics::evaluated(topics::async_lda_with_priors(), TopicArray::Counts, 2)),
        conforms("elastic, evaluated", || stein::evaluated(Elastic, 3)),
        conforms("eager, evaluated", || stein::evaluated(Eager::<2>, 5)),
    ]
}

fn distilled(prior: PriorConvention) -> Factors {
    Factors::Distilled { steps: 5, prior }
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let code = match arguments.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["--worker", script] => worker::main(script),
        ["--start"] => worker::start_only(),
        ["--collectives", what] => {
            collectives::rank(what);
            0
        }
        _ => suite(),
    };
    std::process::exit(code);
}

/// Runs the tests that the command line selects.
fn suite() -> ! {
    let mut suite = Suite::default();
    bits::register(&mut suite);
    resume::register(&mut suite);
    controls::register(&mut suite);
    checkpoints::register(&mut suite);
    misuse::register(&mut suite);
    clock::register(&mut suite);
    evaluation::register(&mut suite);
    collectives::register(&mut suite);
    faults::register(&mut suite);
    waiting::register(&mut suite);
    suite.run()
}
