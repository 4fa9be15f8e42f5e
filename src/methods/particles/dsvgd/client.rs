//! An agent of distributed SVGD: its loop over the global particles, and how it comes to know its own factor.

use super::sites::{Expansion, Sites};
use super::{Caution, Dsvgd, Factors, Found, SiteSettings};
use crate::cluster::{AgentId, Body, Context, Raw, Result};
use crate::kernels::kde::{KdeFactor, add_cavity_score, distillation_residual, frobenius_norm};
use crate::kernels::svgd::SvgdLoop;
use crate::methods::common::federated::{Client, ClientState};
use crate::methods::common::particles::raw;
use crate::methods::common::problem::{LocalLoss, Problem};
use crate::number::Real;
use ndarray::{Array2, ArrayView2};

/// What a visit tells: of the cavity at its start, before the loop has answered it, of the kernel at its end.
///
/// `kde_weight` is the kernel weight of t_k's estimate, averaged over the particles: near 0 where the floor has switched it off, so that
/// the agent no longer knows what it contributed; not a number where there is no estimate.
pub const COLUMNS: [&str; 7] =
    ["cavity_over_local", "cavity_norm", "local_norm", "kde_weight", "bandwidth", "mean_kernel", "caution"];

/// Holds a shard and its factor: in the state's numbers a distilled factor's particles (N × d), the particles before and after each
/// visit that is remembered, or sites.
pub struct DsvgdClient<F: Real> {
    local: LocalLoss<F>,
    problem: Problem<F>,
    method: Dsvgd,
    /// N and d.
    shape: (usize, usize),
    /// The global particles before and after a visit that is not yet distilled.
    visit: Option<Visit<F>>,
    state: ClientState<F>,
}

struct Visit<F> {
    round: u64,
    before: Body<F>,
    after: Body<F>,
    workspace: Workspace<F>,
}

/// What the loops of one visit work in. It is many times the size of the particles, and a rank hosts many agents of which few are
/// visited at a time: made for a visit, which takes long beside that, and dropped behind it.
struct Workspace<F> {
    stein: SvgdLoop<F>,
    score: Array2<F>,
}

/// The sets of a cavity.
struct Cavity<'a, F> {
    /// The agent's own last.
    frozen: Vec<KdeFactor<'a, F>>,
    /// Whether p0 stands beside the local loss.
    has_prior: bool,
    /// Whether the density estimate of the agent's own particles is a factor.
    has_factor: bool,
}

impl<'a, F: Real> Cavity<'a, F> {
    /// q^(i−1)/t_k at the start of a round; of sites it is kept elsewhere.
    fn new(
        factors: Factors,
        state: &'a ClientState<F>,
        shape: (usize, usize),
        round: u64,
        before: ArrayView2<'a, F>,
    ) -> Result<Self> {
        let (own, size) = (&state.numbers.0, before.len());
        let mut frozen = Vec::with_capacity(1 + own.len() / size);
        let has_factor = has_factor(factors, state);
        if !factors.is_exact_prior(round) && factors.sites().is_none() {
            frozen.push(KdeFactor::plus(before));
        }
        let has_prior = match factors {
            Factors::Sites(_) => true,
            Factors::Distilled { .. } => {
                if has_factor {
                    frozen.push(KdeFactor::minus(ArrayView2::from_shape(shape, own)?));
                }
                round == 1 || factors.absorb()
            }
            Factors::Remembered => {
                for (&visit, pair) in state.visits.iter().zip(own.chunks_exact(2 * size)) {
                    if visit > 1 {
                        frozen.push(KdeFactor::plus(ArrayView2::from_shape(shape, &pair[..size])?));
                    }
                    frozen.push(KdeFactor::minus(ArrayView2::from_shape(shape, &pair[size..])?));
                }
                // q^(0) is p0: as what was sent in the first round, or in the factor of whoever was visited then.
                round == 1 || state.visits.first() == Some(&1)
            }
        };
        Ok(Self { frozen, has_prior, has_factor })
    }
}

/// Whether the density estimate of an agent's own particles is a factor of the target.
fn has_factor<F: Real>(factors: Factors, state: &ClientState<F>) -> bool {
    factors.absorb() || (factors.sites().is_none() && !state.visits.is_empty())
}

impl<F: Real> DsvgdClient<F> {
    /// Opens the agent's shard.
    ///
    /// # Errors
    /// Where it cannot be read, or the model does not tell the curvature that sites want.
    pub fn new(method: Dsvgd, problem: Problem<F>, id: AgentId, mut state: ClientState<F>) -> Result<Self> {
        let shape = (method.particles, problem.model.dim());
        if let Some(sites) = method.factors.sites() {
            sites.check_model(problem.model.as_ref())?;
            if state.numbers.0.is_empty() {
                state.numbers = Raw(vec![F::zero(); sites.size(shape.0, shape.1)]);
            }
        }
        Ok(Self { local: problem.open(id, method.batch)?, problem, method, shape, visit: None, state })
    }

    /// The global loop from the particles of a message: what it tells, and where they get to. `pull` are the sites of all others.
    fn walk(
        &mut self,
        round: u64,
        before: ArrayView2<F>,
        pull: Option<&Sites<F>>,
        cx: &Context,
    ) -> Result<(Vec<f64>, Array2<F>, Workspace<F>)> {
        let Dsvgd { factors, local_steps, stein: settings, .. } = self.method;
        let cavity = Cavity::new(factors, &self.state, self.shape, round, before)?;
        let mut stein = SvgdLoop::new(self.shape.0, self.shape.1, settings);
        let mut score = Array2::zeros(self.shape);
        stein.begin(before, &cavity.frozen);
        let mut theta = before.to_owned();
        let mut told = None;
        let mut last = None;
        let first = (round - 1) * local_steps;
        for step in first..first + local_steps {
            if cavity.has_prior {
                self.local.prior_score(theta.view(), score.view_mut());
            } else {
                score.fill(F::zero());
            }
            if let Some(pull) = pull {
                pull.add_score(theta.view(), score.view_mut())?;
            }
            // Where p0 is the cavity, or of it, and not a part of the local score.
            let prior = (told.is_none() && cavity.has_prior && !factors.absorb()).then(|| score.clone());
            self.local.add_score(theta.view(), step, score.view_mut(), cx);
            told.get_or_insert_with(|| {
                let mut unused = Array2::zeros(self.shape);
                let report = add_cavity_score(settings.kde, &cavity.frozen, before, unused.view_mut());
                let (norm, local) = match prior {
                    Some(prior) => (frobenius_norm((&unused + &prior).view()), frobenius_norm((&score - &prior).view())),
                    None => (report.norm, frobenius_norm(score.view())),
                };
                let weight = report.weights.last().copied().filter(|_| cavity.has_factor).unwrap_or(f64::NAN);
                vec![norm / local, norm, local, weight]
            });
            last = Some(stein.step(Some(score.view()), Some(theta.view_mut())));
        }
        let (Some(mut told), Some(last)) = (told, last) else { return Err("a visit needs at least one local step".into()) };
        told.extend([last.bandwidth, last.mean_kernel, f64::NAN]);
        Ok((told, theta, Workspace { stein, score }))
    }

    /// A visit whose factor is sites: the walk with the sites of all others, and new sites where it ends.
    fn leave_sites(
        &mut self,
        settings: SiteSettings,
        round: u64,
        message: &[F],
        cx: &mut Context,
    ) -> Result<(Vec<f64>, Body<F>)> {
        let (before, sums) = message.split_at(self.shape.0 * self.shape.1);
        let before = ArrayView2::from_shape(self.shape, before)?;
        let sites = |numbers: &[F]| Sites::of(settings.curvature, self.shape, numbers.to_vec());
        let own = sites(&self.state.numbers.0)?;
        let pull = sites(sums)?.over(&own)?;
        let (mut told, theta, _) = self.walk(round, before, Some(&pull), cx)?;
        self.local.set_batch(settings.rows);
        // The same rows each time, and others than those of the steps, which count from 0.
        let step = u64::MAX - round;
        let curvature = settings.curvature_of(&mut self.local, theta.view(), step, cx);
        let mut score_at = |theta: ArrayView2<F>| {
            let mut score = Array2::zeros(theta.raw_dim());
            self.local.add_score(theta, step, score.view_mut(), cx);
            score
        };
        let score = score_at(theta.view());
        let expansion = Expansion { theta: theta.view(), score: score.view(), curvature };
        let caution = match settings.caution {
            Caution::Fixed(caution) => caution,
            Caution::Found(Found::Measured) => {
                let nudged = expansion.nudged(before);
                expansion.measured(settings.curvature, nudged.view(), score_at(nudged.view()).view())?
            }
        };
        self.local.set_batch(self.method.batch);
        let new = expansion.sites(settings.curvature, caution)?;
        let change = new.over(&own)?.into_numbers();
        self.state = ClientState { numbers: Raw(new.into_numbers()), visits: vec![round] };
        if let Some(told) = told.last_mut() {
            *told = caution;
        }
        if self.method.server_steps.is_some() {
            return Ok((told, change.into()));
        }
        let mut answer = theta.into_raw_vec_and_offset().0;
        answer.extend(change);
        Ok((told, answer.into()))
    }

    /// The distillation loop.
    fn distil(&mut self, visit: Visit<F>, steps: u64, cx: &mut Context) -> Result<()> {
        let factors = self.method.factors;
        let before = ArrayView2::from_shape(self.shape, &visit.before)?;
        let after = ArrayView2::from_shape(self.shape, &visit.after)?;
        let own = ArrayView2::from_shape(self.shape, &self.state.numbers.0)?;
        let exact_prior = factors.is_exact_prior(visit.round);
        let mut factor = vec![KdeFactor::plus(after)];
        if has_factor(factors, &self.state) {
            factor.push(KdeFactor::plus(own));
        }
        if !exact_prior {
            factor.push(KdeFactor::minus(before));
        }
        let Workspace { mut stein, mut score } = visit.workspace;
        stein.begin(own, &factor);
        let mut theta = own.to_owned();
        for _ in 0..steps {
            if exact_prior {
                self.local.prior_score(theta.view(), score.view_mut());
                score.mapv_inplace(|x| -x);
                stein.step(Some(score.view()), Some(theta.view_mut()));
            } else {
                stein.step(None, None);
            }
        }
        stein.read(theta.view_mut());
        let residual = distillation_residual([own, theta.view()], [before, after]);
        cx.log_row("distillation", visit.round, [("residual", residual)]);
        self.state = ClientState { numbers: raw(theta), visits: vec![visit.round] };
        Ok(())
    }
}

impl<F: Real> Client<F> for DsvgdClient<F> {
    fn state(&self) -> &ClientState<F> {
        &self.state
    }

    fn respond(&mut self, round: u64, message: Body<F>, cx: &mut Context) -> Result<(Vec<f64>, Body<F>)> {
        let Dsvgd { factors, particles, server_steps, .. } = self.method;
        let size = particles * self.shape.1;
        let sites = factors.sites().map_or(0, |sites| sites.size(self.shape.0, self.shape.1));
        if message.len() != size + sites {
            return Err(format!("{} numbers for a visit of {particles} particles", message.len()).into());
        }
        let before = ArrayView2::from_shape(self.shape, &message[..size])?;
        match factors {
            Factors::Sites(settings) => self.leave_sites(settings, round, &message, cx),
            Factors::Remembered => {
                let (told, theta, _) = self.walk(round, before, None, cx)?;
                let after: Body<F> = theta.into_raw_vec_and_offset().0.into();
                self.state.numbers.0.extend(message.iter().chain(after.iter()));
                self.state.visits.push(round);
                Ok((told, after))
            }
            Factors::Distilled { steps, .. } => {
                if self.state.numbers.0.is_empty() {
                    self.state.numbers = raw(self.problem.initial_particles(particles, cx));
                }
                let (told, theta, workspace) = self.walk(round, before, None, cx)?;
                let after: Body<F> = theta.into_raw_vec_and_offset().0.into();
                let visit = Visit { round, before: message, after: after.clone(), workspace };
                if server_steps.is_some() {
                    self.distil(visit, steps, cx)?;
                    return Ok((told, self.state.numbers.0.clone().into()));
                }
                self.visit = Some(visit);
                Ok((told, after))
            }
        }
    }

    fn after_report(&mut self, cx: &mut Context) -> Result<()> {
        let (Factors::Distilled { steps, .. }, Some(visit)) = (self.method.factors, self.visit.take()) else { return Ok(()) };
        // Without density estimates there is no factor to distil, and the loop would only repel.
        if self.method.stein.kde.is_none() {
            return Ok(());
        }
        self.distil(visit, steps, cx)
    }
}
