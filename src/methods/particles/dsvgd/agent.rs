//! Agent of distributed SVGD: the global loop over the particles, and the update of the agent's own approximate likelihood factor.

use super::sites::{Expansion, Sites, sites_at_zero};
use super::{Caution, Dsvgd, Factors, Found, SiteSettings};
use crate::cluster::{Agent, AgentId, Body, Context, Raw, Result, SerializesAs};
use crate::kernels::kde::{KdeFactor, add_cavity_score, distillation_residual, frobenius_norm};
use crate::kernels::svgd::SvgdLoop;
use crate::methods::common::particles::raw;
use crate::methods::common::shard_scores::ShardScores;
use crate::number::Real;
use ndarray::{Array2, ArrayView2};
use serde::{Deserialize, Serialize};

/// Names of a visit's metrics: of the cavity distribution at the first step, and of the kernel at the last.
///
/// `kde_weight` is the kernel weight of the estimate of t_k, averaged over the particles: near 0 where the floor has switched it off, so
/// that the agent no longer subtracts its own contribution; NaN if there is no estimate. `caution` is NaN without sites.
pub const METRICS: [&str; 7] =
    ["cavity_over_local", "cavity_norm", "local_norm", "kde_weight", "bandwidth", "mean_kernel", "caution"];

/// Holds a shard and its approximate likelihood factor t_k.
pub struct DsvgdAgent<F: Real> {
    local: ShardScores<F>,
    method: Dsvgd<F>,
    factor: Factor<F>,
    /// A visit that is to be distilled once its report is sent.
    pending: Option<Visit<F>>,
}

/// What an agent keeps of its factor between visits.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(bound = "")]
pub enum Factor<F: Real> {
    /// Particles (N × d) whose density estimate is the factor; empty before the first visit.
    Distilled {
        /// The particles.
        theta: Raw<F>,
        /// Whether a distillation has moved them.
        visited: bool,
    },
    /// All visits so far.
    Remembered(Vec<RememberedVisit<F>>),
    /// Natural parameters of the sites.
    Sites(Raw<F>),
}

/// The global particles (N × d) before and after a visit.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(bound = "")]
pub struct RememberedVisit<F: Real> {
    round: u64,
    before: Raw<F>,
    after: Raw<F>,
}

/// A visit that is not yet distilled.
struct Visit<F> {
    round: u64,
    before: Body<F>,
    after: Body<F>,
    workspace: Workspace<F>,
}

/// Arrays of the loops of one visit. They are many times larger than the particles, and a rank hosts many agents of which few are visited
/// at a time: they are allocated for each visit, which takes long in comparison, and dropped after it.
struct Workspace<F> {
    stein: SvgdLoop<F>,
    score: Array2<F>,
}

/// The cavity distribution q^(i−1)/t_k, without sites.
struct Cavity<'a, F> {
    /// Particle sets whose density estimates are its factors; the agent's own set is the last.
    frozen: Vec<KdeFactor<'a, F>>,
    /// Whether the prior is added to the local score.
    has_prior: bool,
    /// Whether the density estimate of the agent's own particles is one of the factors.
    has_own_estimate: bool,
}

impl<'a, F: Real> Cavity<'a, F> {
    /// The cavity distribution in a round that starts with the particles `before`.
    fn new(factors: Factors, factor: &'a Factor<F>, round: u64, before: ArrayView2<'a, F>) -> Result<Self> {
        let set = |values: &'a Raw<F>| ArrayView2::from_shape(before.dim(), &values.0);
        let mut frozen = Vec::new();
        if !factors.uses_exact_prior(round) && factors.sites().is_none() {
            frozen.push(KdeFactor::plus(before));
        }
        let (has_prior, has_own_estimate) = match factor {
            Factor::Sites(_) => (true, false),
            Factor::Distilled { theta, visited } => {
                let has_own_estimate = *visited || factors.contain_prior();
                if has_own_estimate {
                    frozen.push(KdeFactor::minus(set(theta)?));
                }
                (round == 1 || factors.contain_prior(), has_own_estimate)
            }
            Factor::Remembered(visits) => {
                for visit in visits {
                    if visit.round > 1 {
                        frozen.push(KdeFactor::plus(set(&visit.before)?));
                    }
                    frozen.push(KdeFactor::minus(set(&visit.after)?));
                }
                // q^(0) is the prior itself: what is sent in the first round, and part of the factor of the agent visited then.
                (round == 1 || visits.first().is_some_and(|visit| visit.round == 1), !visits.is_empty())
            }
        };
        Ok(Self { frozen, has_prior, has_own_estimate })
    }
}

impl<F: Real> DsvgdAgent<F> {
    /// Opens the agent's shard.
    ///
    /// # Errors
    /// If the shard cannot be read, or the model does not provide the curvature that sites need.
    pub(super) fn new(method: Dsvgd<F>, id: AgentId, saved: Option<Factor<F>>) -> Result<Self> {
        if let Some(sites) = method.factors.sites() {
            sites.check_model(method.problem.model.as_ref()).map_err(|error| error.to_string())?;
        }
        let factor = saved.unwrap_or_else(|| match method.factors {
            Factors::Distilled { .. } => Factor::Distilled { theta: Raw::default(), visited: false },
            Factors::Remembered => Factor::Remembered(Vec::new()),
            // Set in the first visit.
            Factors::Sites(_) if method.starts_at_mode() => Factor::Sites(Raw::default()),
            Factors::Sites(_) => Factor::Sites(Raw(vec![F::zero(); method.sites_len()])),
        });
        Ok(Self { local: ShardScores::open(&method.problem, id, method.batch)?, method, factor, pending: None })
    }

    /// Runs the global loop from the particles `before`; `others` are the sites of all other agents. Returns the visit's metrics, the new
    /// particles, and the workspace for the distillation.
    fn global_loop(
        &mut self,
        round: u64,
        before: ArrayView2<F>,
        others: Option<&Sites<F>>,
        cx: &Context,
    ) -> Result<([f64; 7], Array2<F>, Workspace<F>)> {
        let Dsvgd { factors, local_steps, stein: settings, .. } = self.method;
        if local_steps == 0 {
            return Err("dsvgd: local_steps = 0: must be at least 1".into());
        }
        let cavity = Cavity::new(factors, &self.factor, round, before)?;
        let mut stein = SvgdLoop::new(before.nrows(), before.ncols(), settings);
        let mut score = Array2::zeros(before.dim());
        stein.begin(before, &cavity.frozen);
        let mut theta = before.to_owned();
        let mut metrics = [f64::NAN; 7];
        let first = (round - 1) * local_steps;
        for step in first..first + local_steps {
            if cavity.has_prior {
                self.method.problem.model.prior_score(theta.view(), score.view_mut());
            } else {
                score.fill(F::zero());
            }
            if let Some(others) = others {
                others.add_score(theta.view(), score.view_mut())?;
            }
            // The prior belongs to the cavity distribution, unless every factor contains it.
            let prior = (step == first && cavity.has_prior && !factors.contain_prior()).then(|| score.clone());
            self.local.add_score(theta.view(), step, score.view_mut(), cx);
            if step == first {
                let mut estimates = Array2::zeros(before.dim());
                let report = add_cavity_score(settings.kde, &cavity.frozen, before, estimates.view_mut());
                let (norm, local) = match prior {
                    Some(prior) => (frobenius_norm((&estimates + &prior).view()), frobenius_norm((&score - &prior).view())),
                    None => (report.norm, frobenius_norm(score.view())),
                };
                let weight = report.weights.last().copied().filter(|_| cavity.has_own_estimate).unwrap_or(f64::NAN);
                metrics[..4].copy_from_slice(&[norm / local, norm, local, weight]);
            }
            let last = stein.step(Some(score.view()), Some(theta.view_mut()));
            metrics[4..6].copy_from_slice(&[last.bandwidth, last.mean_kernel]);
        }
        Ok((metrics, theta, Workspace { stein, score }))
    }

    /// The values of the sites that expand the loss of all rows at the mode.
    fn sites_at_mode(&mut self, settings: SiteSettings, cx: &Context) -> Vec<F> {
        let dim = self.method.problem.model.dim();
        let score = self.local.at_mode(dim, cx).iter().copied().collect::<Vec<F>>();
        self.local.set_batch(usize::MAX);
        let curvature = settings.curvature_of(&mut self.local.loss, Array2::zeros((1, dim)).view(), 0, cx);
        self.local.set_batch(self.method.batch);
        sites_at_zero(self.method.particles, &score, &curvature)
    }

    /// A visit with sites: the global loop with the sites of all other agents, and new own sites at its end.
    fn visit_with_sites(
        &mut self,
        settings: SiteSettings,
        round: u64,
        message: &[F],
        cx: &mut Context,
    ) -> Result<([f64; 7], Body<F>)> {
        if matches!(&self.factor, Factor::Sites(own) if own.0.is_empty()) {
            self.factor = Factor::Sites(Raw(self.sites_at_mode(settings, cx)));
        }
        let Factor::Sites(own) = &self.factor else { return Err("dsvgd: the saved state has no sites".into()) };
        let shape = self.method.shape();
        let (before, all) = message.split_at(shape.0 * shape.1);
        let before = ArrayView2::from_shape(shape, before)?;
        let sites = |values: &[F]| Sites::new(settings.curvature, shape, values.to_vec());
        let own = sites(&own.0)?;
        let others = sites(all)?.divided_by(&own)?;
        let (mut metrics, theta, _) = self.global_loop(round, before, Some(&others), cx)?;
        self.local.set_batch(settings.rows);
        // The same rows for all evaluations below, and other rows than those of the steps, which count from 0.
        let step = u64::MAX - round;
        let curvature = settings.curvature_of(&mut self.local.loss, theta.view(), step, cx);
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
                expansion.measured_caution(settings.curvature, nudged.view(), score_at(nudged.view()).view())?
            }
        };
        metrics[6] = caution;
        self.local.set_batch(self.method.batch);
        let new = expansion.sites(settings.curvature, caution)?;
        let change = new.divided_by(&own)?.into_values();
        self.factor = Factor::Sites(Raw(new.into_values()));
        if self.method.server_steps.is_some() {
            return Ok((metrics, change.into()));
        }
        let mut body = raw(theta).0;
        body.extend(change);
        Ok((metrics, body.into()))
    }

    /// The distillation loop: moves the agent's own particles to the new factor.
    fn distill(&mut self, visit: Visit<F>, steps: u64, cx: &mut Context) -> Result<()> {
        let Factor::Distilled { theta: own, visited } = &mut self.factor else {
            return Err("dsvgd: the saved state has no particles to distill".into());
        };
        let (factors, shape) = (self.method.factors, self.method.shape());
        let before = ArrayView2::from_shape(shape, &visit.before)?;
        let after = ArrayView2::from_shape(shape, &visit.after)?;
        let old = ArrayView2::from_shape(shape, &own.0)?;
        let exact_prior = factors.uses_exact_prior(visit.round);
        let mut target = vec![KdeFactor::plus(after)];
        if *visited || factors.contain_prior() {
            target.push(KdeFactor::plus(old));
        }
        if !exact_prior {
            target.push(KdeFactor::minus(before));
        }
        let Workspace { mut stein, mut score } = visit.workspace;
        stein.begin(old, &target);
        let mut theta = old.to_owned();
        for _ in 0..steps {
            if exact_prior {
                self.method.problem.model.prior_score(theta.view(), score.view_mut());
                score.mapv_inplace(|x| -x);
                stein.step(Some(score.view()), Some(theta.view_mut()));
            } else {
                stein.step(None, None);
            }
        }
        stein.read(theta.view_mut());
        let residual = distillation_residual([old, theta.view()], [before, after]);
        cx.log_row("distillation", visit.round, [("residual", residual)]);
        (*own, *visited) = (raw(theta), true);
        Ok(())
    }
}

impl<F: Real> Agent<Dsvgd<F>> for DsvgdAgent<F> {
    type State = Factor<F>;

    fn state(&self) -> impl SerializesAs<Factor<F>> {
        &self.factor
    }

    fn perform(&mut self, &round: &u64, message: Body<F>, cx: &mut Context) -> Result<([f64; 7], Body<F>)> {
        let Dsvgd { factors, particles, server_steps, .. } = self.method;
        let shape = self.method.shape();
        let size = shape.0 * shape.1;
        if message.len() != size + self.method.sites_len() {
            return Err(format!("dsvgd: a message of {} values for {particles} particles", message.len()).into());
        }
        if let Factors::Sites(settings) = factors {
            return self.visit_with_sites(settings, round, &message, cx);
        }
        if let Factor::Distilled { theta, .. } = &mut self.factor
            && theta.0.is_empty()
        {
            *theta = raw(self.method.problem.initial_particles(particles, cx));
        }
        let before = ArrayView2::from_shape(shape, &message)?;
        let (metrics, theta, workspace) = self.global_loop(round, before, None, cx)?;
        let after: Body<F> = raw(theta).0.into();
        if let Factors::Distilled { steps, .. } = factors {
            let visit = Visit { round, before: message.clone(), after: after.clone(), workspace };
            if server_steps.is_none() {
                self.pending = Some(visit);
            } else {
                self.distill(visit, steps, cx)?;
            }
        }
        match &mut self.factor {
            Factor::Remembered(visits) => {
                visits.push(RememberedVisit { round, before: Raw(message.into_vec()), after: Raw(after.to_vec()) });
                Ok((metrics, after))
            }
            Factor::Distilled { theta, .. } if server_steps.is_some() => Ok((metrics, theta.0.clone().into())),
            _ => Ok((metrics, after)),
        }
    }

    fn after_report(&mut self, cx: &mut Context) -> Result<()> {
        match (self.method.factors, self.pending.take()) {
            // Without density estimates there is no factor to distill: particles would only repel each other.
            (Factors::Distilled { steps, .. }, Some(visit)) if !self.method.stein.kde.is_none() => self.distill(visit, steps, cx),
            _ => Ok(()),
        }
    }
}
