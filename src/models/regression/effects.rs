//! Effects of groups: each group has an intercept, and slopes of some features, that deviate from the common ones.
//!
//! The deviation of group g is u_gk = τ_k z_gk with z_gk ~ N(0, 1) and a sampled scale τ_k: the non-centered form, which samplers
//! can explore also where a group has few rows. k = 0 is the intercept. The parameters are log τ, then z.

use super::block::Block;
use super::log_scale::{ScalePrior, scale_from_log};
use crate::models::Part;
use crate::number::Real;
use crate::random::Stream;

/// Effects of groups.
#[derive(Clone, Debug)]
pub struct GroupEffects {
    /// The names of the groups.
    pub groups: Vec<String>,
    /// The features whose slopes deviate.
    pub slopes: Vec<usize>,
    /// The column of x that holds the index of the group.
    pub column: usize,
    /// The prior of each scale τ.
    pub scale_prior: ScalePrior,
}

/// The deviations of groups for some particles.
pub struct Deviations<'a, F> {
    theta: &'a [F],
    dim: usize,
    first: usize,
    width: usize,
    /// τ of each kind of deviation, for each particle.
    scales: Vec<F>,
}

impl<F: Real> Deviations<'_, F> {
    /// The deviations u of the group at this position.
    fn of_group(&self, particle: usize, position: usize) -> impl Iterator<Item = F> {
        let standardized = &self.theta[particle * self.dim + self.first + self.width + position..][..self.width];
        standardized.iter().zip(&self.scales[particle * self.width..]).map(|(&z, &scale)| scale * z)
    }
}

impl GroupEffects {
    /// The number of deviations of a group.
    fn width(&self) -> usize {
        1 + self.slopes.len()
    }

    /// The number of deviations of all groups.
    pub fn all_deviations(&self) -> usize {
        self.groups.len() * self.width()
    }

    /// The number of parameters.
    pub fn dim(&self) -> usize {
        self.width() + self.all_deviations()
    }

    /// The places of log τ_k and of its z_k, for each k, where the parameters begin at `first`.
    pub fn log_scales(&self, first: usize) -> Vec<(usize, Vec<usize>)> {
        let width = self.width();
        (0..width).map(|k| (first + k, (0..self.groups.len()).map(|group| first + width * (1 + group) + k).collect())).collect()
    }

    /// The named parts of the parameters. Without slopes, they have no axis for the kinds of deviations.
    pub fn parts(&self, features: &[String]) -> [Part; 2] {
        let (scale, effects) = ("log_group_scale", "standardized_group_effects");
        if self.slopes.is_empty() {
            return [Part::new(scale, &[]), Part::new(effects, &[self.groups.len()]).labelled(0, &self.groups)];
        }
        let named = self.slopes.iter().map(|&slope| features.get(slope).cloned().unwrap_or_else(|| slope.to_string()));
        let kinds: Vec<String> = std::iter::once("intercept".to_owned()).chain(named).collect();
        let scale = Part::new(scale, &[kinds.len()]).labelled(0, &kinds);
        [scale, Part::new(effects, &[self.groups.len(), kinds.len()]).labelled(0, &self.groups).labelled(1, &kinds)]
    }

    /// Draws initial parameters: scales around the typical one.
    pub fn draw_initial<F: Real>(&self, stream: &mut Stream, own: &mut [F]) {
        let mut normals = vec![0.0; own.len()];
        stream.normals(&mut normals);
        own.iter_mut().zip(&normals).for_each(|(own, &normal)| *own = F::of(normal));
        own[..self.width()].iter_mut().for_each(|log| *log = F::of(self.scale_prior.typical.ln() + 0.5 * log.f64()));
    }

    /// The log-density of the prior, up to a constant.
    pub fn log_prior<F: Real>(&self, own: &[F]) -> f64 {
        let (logs, standardized) = own.split_at(self.width());
        let scales: f64 = logs.iter().map(|log| self.scale_prior.log_density(log.f64())).sum();
        scales - 0.5 * standardized.iter().map(|z| z.f64().powi(2)).sum::<f64>()
    }

    /// Overwrites the gradient of that.
    pub fn prior_score<F: Real>(&self, own: &[F], score: &mut [F]) {
        let (logs, standardized) = own.split_at(self.width());
        let (by_log, by_standardized) = score.split_at_mut(self.width());
        for (score, log) in by_log.iter_mut().zip(logs) {
            *score = F::of(self.scale_prior.score(log.f64()));
        }
        by_standardized.iter_mut().zip(standardized).for_each(|(score, &z)| *score = -z);
    }

    /// τ of each kind of deviation.
    fn scales<F: Real>(&self, own: &[F]) -> impl Iterator<Item = F> + Clone {
        own[..self.width()].iter().map(|log| F::of(scale_from_log(log.f64()))).collect::<Vec<_>>().into_iter().cycle()
    }

    /// The deviations for particles whose parameters, `dim` numbers each, have those of the effects from `first` on.
    pub fn deviations<'a, F: Real>(&self, theta: &'a [F], dim: usize, first: usize) -> Deviations<'a, F> {
        let scales = theta.chunks_exact(dim).flat_map(|theta| self.scales(&theta[first..]).take(self.width())).collect();
        Deviations { theta, dim, first, width: self.width(), scales }
    }

    /// Whether the group of a row is none of the training rows.
    pub fn is_new<F: Real>(&self, x: &[F]) -> bool {
        self.position(x).is_none()
    }

    /// The standard deviation of the deviation of a row of a new group.
    pub fn new_group_sd<F: Real>(&self, own: &[F], x: &[F]) -> f64 {
        let factors = std::iter::once(1.0).chain(self.slopes.iter().map(|&slope| x[slope].f64()));
        self.scales(own).zip(factors).map(|(scale, factor)| (scale.f64() * factor).powi(2)).sum::<f64>().sqrt()
    }

    /// The position of the row's group among the deviations; none for a group that the training rows do not have.
    fn position<F: Real>(&self, x: &[F]) -> Option<usize> {
        self.group(x[self.column]).map(|group| group * self.width())
    }

    /// The group whose index a row holds; none for one that the training rows do not have.
    #[inline]
    fn group<F: Real>(&self, held: F) -> Option<usize> {
        // Models check before a run that it is an index. 32 bits are converted by one instruction.
        held.to_u32().and_then(|group| usize::try_from(group).ok()).filter(|&group| group < self.groups.len())
    }

    /// Draws how far η of a row deviates if its group is not one of the training rows; 0 if it is.
    pub fn draw_deviation<F: Real>(&self, own: &[F], x: &[F], stream: &mut Stream) -> f64 {
        if self.position(x).is_some() {
            return 0.0;
        }
        let mut normals = vec![0.0; self.width()];
        stream.normals(&mut normals);
        let factors = std::iter::once(1.0).chain(self.slopes.iter().map(|&slope| x[slope].f64()));
        normals.iter().zip(self.scales(own)).zip(factors).map(|((normal, scale), factor)| normal * scale.f64() * factor).sum()
    }

    /// Adds the deviations of the rows' groups to the predictors of a block.
    pub fn add_to_predictors<F: Real>(&self, block: &mut Block<F>, columns: usize, deviations: &Deviations<F>) {
        let x = block.x;
        if self.slopes.is_empty() {
            return self.add_intercepts(block, columns, deviations);
        }
        block.for_each_row(|row, particles, values| {
            let x = &x[row * columns..][..columns];
            let Some(position) = self.position(x) else { return };
            for (particle, value) in particles.zip(values) {
                let mut own = deviations.of_group(particle, position);
                *value += own.next().unwrap_or(F::zero());
                for (&slope, deviation) in self.slopes.iter().zip(own) {
                    *value += deviation * x[slope];
                }
            }
        });
    }

    /// The same where groups deviate in their intercepts alone.
    fn add_intercepts<F: Real>(&self, block: &mut Block<F>, columns: usize, deviations: &Deviations<F>) {
        let Deviations { theta, dim, first, width, scales } = deviations;
        let (x, dim, column) = (block.x, *dim, self.column);
        let standardized = &theta[first + width..];
        block.for_each_row(|row, particles, values| {
            let Some(group) = self.group(x[row * columns + column]) else { return };
            let own = standardized[particles.start * dim + group..].iter().step_by(dim);
            for ((value, &z), &scale) in values.iter_mut().zip(own).zip(&scales[particles]) {
                *value += scale * z;
            }
        });
    }

    /// Adds the derivatives by the deviations, given those by the predictors, which are the values of the block.
    pub fn add_by_deviations<F: Real>(&self, block: &mut Block<F>, columns: usize, by_deviations: &mut [F]) {
        let (x, all) = (block.x, self.all_deviations());
        block.for_each_row(|row, particles, values| {
            let x = &x[row * columns..][..columns];
            let Some(position) = self.position(x) else { return };
            for (particle, value) in particles.zip(values) {
                let own = &mut by_deviations[particle * all + position..][..self.width()];
                own[0] += *value;
                for (&slope, own) in self.slopes.iter().zip(&mut own[1..]) {
                    *own += *value * x[slope];
                }
            }
        });
    }

    /// Adds `weight` times the derivatives by a particle's own parameters, given those by its deviations.
    pub fn add_score<F: Real>(&self, own: &[F], by_deviations: &[F], weight: F, score: &mut [F]) {
        let (width, standardized) = (self.width(), &own[self.width()..]);
        let (by_log, by_standardized) = score.split_at_mut(width);
        for (i, (&by_deviation, scale)) in by_deviations.iter().zip(self.scales(own)).enumerate() {
            let by_standardized_one = weight * scale * by_deviation;
            by_standardized[i] += by_standardized_one;
            by_log[i % width] += by_standardized_one * standardized[i];
        }
    }

    /// Writes the derivatives of a row's predictor by a particle's own parameters, and returns the places of those that are not
    /// zero. Nothing is written elsewhere, so that only these places need be read.
    pub fn write_derivatives<F: Real>(&self, own: &[F], x: &[F], out: &mut [F]) -> [std::ops::Range<usize>; 2] {
        let Some(position) = self.position(x) else { return [0..0, 0..0] };
        let (width, first) = (self.width(), self.width() + position);
        for k in 0..width {
            let feature = if k == 0 { F::one() } else { x[self.slopes[k - 1]] };
            let by_standardized = F::of(scale_from_log(own[k].f64())) * feature;
            out[k] = by_standardized * own[first + k];
            out[first + k] = by_standardized;
        }
        [0..width, first..first + width]
    }

    /// Checks the column of groups. The index after the last one stands for a group that the training rows do not have.
    ///
    /// # Errors
    /// Which groups are allowed.
    pub fn check<F: Real>(&self, x: &[F], columns: usize) -> Result<(), String> {
        for row in x.chunks_exact(columns.max(1)) {
            let (group, count) = (row[self.column].f64(), self.groups.len());
            if !(group.fract() == 0.0 && (0.0..=count as f64).contains(&group)) {
                let last = count.saturating_sub(1);
                return Err(format!("a row has the group {group}; groups are 0 to {last}, or {count} for an unknown group"));
            }
        }
        Ok(())
    }
}
