//! SGLD and D-SGLD as implemented in the code of DSVGD's authors, to measure the effect of its errors.

use mpibayes::cluster::{AgentId, Context, Result};
use mpibayes::config::Registry;
use mpibayes::kernels::langevin::{StepSize, langevin_step};
use mpibayes::methods::chains::dsgld::{Dsgld, DsgldSettings};
use mpibayes::methods::transitions::transition::{LocalTransition, Transition, Update};
use mpibayes::methods::{LocalLoss, MethodSettings, Problem, Table, TableMethod};
use mpibayes::number::Real;
use mpibayes::random::{Purpose, Stream, Who};
use mpibayes::settings::KeyError;
use ndarray::{Array2, ArrayView2};
use serde::{Deserialize, Serialize};

/// Everything that is built in, and the methods of this file.
pub fn registry() -> Registry {
    Registry::default()
        .with_method::<AuthorsSettings<true, false>>()
        .with_method::<AuthorsSettings<false, true>>()
        .with_method::<AuthorsSettings<true, true>>()
}

/// The settings of D-SGLD, for chains with one of the errors or both.
#[derive(Clone, Serialize, Deserialize)]
struct AuthorsSettings<const NOISE: bool, const SCALE: bool>(DsgldSettings);

impl<const NOISE: bool, const SCALE: bool> MethodSettings for AuthorsSettings<NOISE, SCALE> {
    type Data = Table;

    const NAME: &'static str = match (NOISE, SCALE) {
        (true, true) => "authors_noise_and_scale",
        (true, false) => "authors_noise",
        (false, _) => "authors_scale",
    };

    fn check(&self) -> std::result::Result<(), KeyError> {
        self.0.check()
    }

    fn method<F: Real>(&self, problem: Problem<F>) -> TableMethod<F> {
        let DsgldSettings { batch, step, chains, .. } = self.0;
        let (agents, particles) = (problem.agents, chains as usize);
        let transition = Authors { problem, batch, step, particles, noise: NOISE, scale: SCALE };
        TableMethod::chains(Dsgld { agents, transition, settings: self.0.clone() })
    }
}

/// Langevin steps with two errors. *Noise*: the same noise for all coordinates and chains, with standard deviation ε² instead of √ε, and
/// divided by N: practically gradient ascent. *Scale*: losses are scaled by N_s/|B| instead of K N_s/|B|, which gives the score of a local
/// posterior.
#[derive(Clone)]
struct Authors<F> {
    problem: Problem<F>,
    batch: usize,
    /// The step size ε, divided by N.
    step: StepSize,
    /// N, the number of chains.
    particles: usize,
    noise: bool,
    scale: bool,
}

impl<F: Real> Transition for Authors<F> {
    type Number = F;
    type Local = LocalAuthors<F>;

    fn dim(&self) -> usize {
        self.problem.model.dim()
    }

    fn draw_initial(&self, chain: u64, stream: &mut Stream, state: &mut [F]) {
        self.problem.start(chain, stream, state);
    }

    fn step(&self, update: u64) -> f64 {
        self.step.at(update)
    }

    fn open(&self, agent: AgentId) -> Result<LocalAuthors<F>> {
        Ok(LocalAuthors {
            local: self.problem.open(agent, self.batch)?,
            score: Array2::zeros((1, self.dim())),
            settings: self.clone(),
        })
    }
}

/// The agent's half, on one shard.
struct LocalAuthors<F: Real> {
    settings: Authors<F>,
    local: LocalLoss<F>,
    score: Array2<F>,
}

impl<F: Real> LocalTransition<F> for LocalAuthors<F> {
    type State = ();

    fn rows(&self) -> usize {
        self.local.rows()
    }

    fn arrive(&mut self, _: &mut (), _: u64, _: &[F], _: &Context) -> Result<bool> {
        Ok(false)
    }

    fn update(&mut self, _: &mut (), theta: &mut [F], update: Update<F>, cx: &Context) -> Result<()> {
        let Authors { step, particles, noise, scale, .. } = self.settings;
        let chain = Who::Chain(update.chain);
        let at = ArrayView2::from_shape((1, theta.len()), &*theta)?;
        self.local.prior_score(at, self.score.view_mut());
        let times = if scale { 1.0 } else { update.scale };
        self.local.add_score_for(chain, at, update.number, times, self.score.view_mut(), cx);
        let score = self.score.as_slice().ok_or("a score that is not contiguous")?;
        let rate = step.at(update.number);
        if !noise {
            langevin_step(theta, score, None, rate, rate, &mut cx.stream(chain, update.number, Purpose::Noise));
            return Ok(());
        }
        // ε, not divided by N.
        let epsilon = rate * particles as f64;
        let mut z = [0.0_f64];
        cx.stream(Who::Run, update.number, Purpose::Noise).normals(&mut z);
        let (half, shift) = (F::of(0.5 * rate), F::of(epsilon * epsilon * z[0] / particles as f64));
        theta.iter_mut().zip(score).for_each(|(theta, &score)| *theta += half * score + shift);
        Ok(())
    }
}
