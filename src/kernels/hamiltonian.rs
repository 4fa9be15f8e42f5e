//! Steps of stochastic gradient Hamiltonian Monte Carlo, in two passes over the parameters or in one.

use super::{SettingsError, ranged};
use crate::number::Real;
use crate::random::Stream;
use serde::{Deserialize, Serialize};

/// Parameters that one pass works on at a time: noise for so many lies in the first-level cache.
const BLOCK: usize = 2048;

/// ε, V and B̂ of the dynamics dθ = v dt, dv = −M⁻¹∇U dt − V v dt + N(0, 2V M⁻¹ dt), with the momentum M v (Chen, Fox & Guestrin 2014,
/// "Stochastic gradient Hamiltonian Monte Carlo"). What others call learning rate is ε², and their momentum decay εV.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SghmcDynamics {
    /// How a step follows the dynamics.
    pub scheme: Scheme,
    /// ε.
    pub step: f64,
    /// V, the rate at which velocities are forgotten.
    pub friction: f64,
    /// B̂ = ½ε·(variance of the gradient's noise), which the noise that is added does without; 0 where it is not known.
    pub gradient_noise: f64,
    /// Whether noise is added at all: without, this is gradient descent with momentum.
    pub noise: bool,
}

/// How a step follows the dynamics; both take one gradient.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scheme {
    /// v ← e^(−εV) v + N(0, (1 − e^(−2εV)) M⁻¹), θ ← θ + ½εv, v ← v − ε M⁻¹∇Û(θ), θ ← θ + ½εv (Leimkuhler & Matthews 2013; Zhang et al. 2019
    /// call it the middle scheme). Where the gradient is taken, a Gaussian posterior has its exact covariance at every stable step; at
    /// the ends of steps θ and v are independent.
    #[default]
    Middle,
    /// v ← (1 − εV) v − ε M⁻¹∇Û(θ) + N(0, 2ε(V M⁻¹ − B̂ M⁻²)), θ ← θ + ε v, as in the paper. With the new velocity: the explicit scheme is
    /// unstable for ε ≥ V/λ.
    SemiImplicit,
}

impl SghmcDynamics {
    /// Whether it can be run with inverse masses of at most this.
    ///
    /// # Errors
    /// Says which number is out of its range.
    pub fn check(&self, lightest: f64) -> Result<(), SettingsError> {
        let Self { step, friction, gradient_noise, noise, .. } = *self;
        ranged("step", step, step.is_finite() && step > 0.0, "a number above 0")?;
        let limit = friction.is_finite() && step * friction < 2.0;
        if noise {
            ranged("friction", friction, limit && friction > 0.0, "a number from above 0 to below 2/step")?;
        } else {
            ranged("friction", friction, limit && friction >= 0.0, "a number from 0 to below 2/step")?;
        }
        let [added, known] = self.of_noise();
        let fits = gradient_noise >= 0.0 && known * lightest <= added.max(0.0);
        ranged(
            "gradient_noise",
            gradient_noise,
            !noise || fits,
            "a number from 0 to about friction, times floor with a preconditioner",
        )
    }

    /// The largest stiffness of U, beside the step, with which steps are stable: ε²λ must be below it.
    pub fn stability_limit(&self) -> f64 {
        match self.scheme {
            Scheme::Middle => 4.0,
            Scheme::SemiImplicit => 4.0 - 2.0 * self.step * self.friction,
        }
    }

    /// What of a velocity is kept in a step.
    pub fn velocity_decay(&self) -> f64 {
        match self.scheme {
            Scheme::Middle => (-self.step * self.friction).exp(),
            Scheme::SemiImplicit => 1.0 - self.step * self.friction,
        }
    }

    /// The variance of the noise that a step adds, by M⁻¹, and what of it the gradient's noise makes already, by M⁻².
    fn of_noise(&self) -> [f64; 2] {
        let known = 2.0 * self.step * self.gradient_noise;
        match self.scheme {
            // Kicks come a step's friction later or earlier than the noise: they reach (1 + e^(−εV))/2 as far.
            Scheme::Middle => {
                [-(-2.0 * self.step * self.friction).exp_m1(), known * (0.5 * (1.0 + self.velocity_decay())).powi(2)]
            }
            Scheme::SemiImplicit => [2.0 * self.step * self.friction, known],
        }
    }

    /// The first half of a step of the middle scheme, before the gradient is taken: friction, noise, half of the way.
    ///
    /// # Panics
    /// When arrays differ in length.
    pub fn first_half<F: Real>(&self, chain: ChainState<F>, noise: &mut Stream) {
        let kept = F::of(self.velocity_decay());
        let half = F::of(0.5 * self.step);
        self.pass(chain, noise, |theta, velocity, _, z| {
            *velocity = kept * *velocity + z;
            *theta += half * *velocity;
        });
    }

    /// The second half: the score of the posterior at θ, the other half of the way.
    ///
    /// # Panics
    /// When arrays differ in length.
    pub fn second_half<F: Real>(&self, chain: ChainState<F>, score: &[F], pull: Option<ElasticForce<F>>) {
        let ChainState { theta, velocity, inverse_mass } = chain;
        let dim = theta.len();
        let (pulled, masses) = (pull.map_or(dim, |pull| pull.center.len()), inverse_mass.map_or(dim, <[F]>::len));
        assert!([velocity.len(), score.len(), pulled, masses].iter().all(|&len| len == dim), "one number for each parameter");
        let (step, half) = (F::of(self.step), F::of(0.5 * self.step));
        let move_by = |theta: &mut F, velocity: &mut F, force: F| {
            *velocity += step * force;
            *theta += half * *velocity;
        };
        let each = theta.iter_mut().zip(velocity).zip(score);
        match (pull, inverse_mass) {
            (None, None) => each.for_each(|((theta, velocity), &score)| move_by(theta, velocity, score)),
            (Some(ElasticForce { strength, center }), None) => {
                each.zip(center).for_each(|(((theta, velocity), &score), &center)| {
                    let force = score + strength * (center - *theta);
                    move_by(theta, velocity, force);
                })
            }
            (None, Some(masses)) => {
                each.zip(masses).for_each(|(((theta, velocity), &score), &mass)| move_by(theta, velocity, mass * score));
            }
            (Some(ElasticForce { strength, center }), Some(masses)) => {
                each.zip(masses).zip(center).for_each(|((((theta, velocity), &score), &mass), &center)| {
                    let force = mass * (score + strength * (center - *theta));
                    move_by(theta, velocity, force);
                });
            }
        }
    }

    /// A step of the semi-implicit scheme from θ, where the posterior's score is this.
    ///
    /// # Panics
    /// When arrays differ in length.
    pub fn step<F: Real>(&self, chain: ChainState<F>, score: &[F], pull: Option<ElasticForce<F>>, noise: &mut Stream) {
        let dim = chain.theta.len();
        assert!(score.len() == dim && pull.is_none_or(|pull| pull.center.len() == dim), "one number for each parameter");
        let (step, kept) = (F::of(self.step), F::of(self.velocity_decay()));
        let masses = chain.inverse_mass;
        self.pass(chain, noise, |theta, velocity, place, z| {
            let force = pull.map_or(score[place], |pull| score[place] + pull.strength * (pull.center[place] - *theta));
            *velocity = kept * *velocity + step * masses.map_or(force, |masses| masses[place] * force) + z;
            *theta += step * *velocity;
        });
    }

    /// Does something to every parameter, its velocity, its place and its noise.
    fn pass<F: Real>(&self, chain: ChainState<F>, noise: &mut Stream, each: impl Fn(&mut F, &mut F, usize, F)) {
        let ChainState { theta, velocity, inverse_mass } = chain;
        let dim = theta.len();
        assert!(velocity.len() == dim && inverse_mass.is_none_or(|masses| masses.len() == dim), "one number for each parameter");
        let [added, known] = self.of_noise();
        let common = F::of((added - known).max(0.0).sqrt());
        let (added, known) = (F::of(added), F::of(known));
        let mut normals = [F::zero(); BLOCK];
        for from in (0..dim).step_by(BLOCK) {
            let part = from..(from + BLOCK).min(dim);
            let normals = &mut normals[..part.len()];
            if self.noise {
                noise.normals(normals);
                match inverse_mass {
                    None => normals.iter_mut().for_each(|z| *z *= common),
                    Some(masses) => normals.iter_mut().zip(&masses[part.clone()]).for_each(|(z, mass)| {
                        *z *= (*mass * (added - known * *mass)).max(F::zero()).sqrt();
                    }),
                }
            }
            let both = theta[part.clone()].iter_mut().zip(&mut velocity[part.clone()]).zip(&*normals).zip(part);
            both.for_each(|(((theta, velocity), &z), place)| each(theta, velocity, place, z));
        }
    }
}

/// The state of a chain: each array has a number for each parameter.
pub struct ChainState<'a, F> {
    /// θ.
    pub theta: &'a mut [F],
    /// v.
    pub velocity: &'a mut [F],
    /// The diagonal of M⁻¹; the identity where there is none.
    pub inverse_mass: Option<&'a [F]>,
}

/// The force κ (c − θ) towards a center.
#[derive(Clone, Copy, Debug)]
pub struct ElasticForce<'a, F> {
    /// κ.
    pub strength: F,
    /// c, a number for each parameter.
    pub center: &'a [F],
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::random::{Purpose, Seed, Who};

    fn stream() -> Stream {
        Seed(3).stream(Who::Chain(1), 8, Purpose::Noise)
    }

    /// Every path of both schemes, over the end of a block, against the formulas one parameter at a time.
    #[test]
    fn a_step_is_its_formula() {
        let dim = BLOCK + 7;
        let numbers = |shift: f64| -> Vec<f64> { (0..dim).map(|place| (place as f64 * 0.7 + shift).sin()).collect() };
        let (score, center) = (numbers(2.0), numbers(3.0));
        let masses: Vec<f64> = numbers(4.0).iter().map(|number| 1.5 + number).collect();
        let mut normals = vec![0.0; dim];
        stream().normals(&mut normals);
        for (scheme, pulled, heavy) in [Scheme::Middle, Scheme::SemiImplicit]
            .into_iter()
            .flat_map(|scheme| [(false, false), (true, false), (false, true), (true, true)].map(|(a, b)| (scheme, a, b)))
        {
            let settings = SghmcDynamics { scheme, step: 0.1, friction: 0.7, gradient_noise: 0.05, noise: true };
            let (mut theta, mut velocity) = (numbers(0.0), numbers(1.0));
            let (before, rates) = (numbers(0.0), numbers(1.0));
            let pull = pulled.then_some(ElasticForce { strength: 1.3, center: &center });
            let inverse_mass = heavy.then_some(masses.as_slice());
            if scheme == Scheme::Middle {
                settings.first_half(ChainState { theta: &mut theta, velocity: &mut velocity, inverse_mass }, &mut stream());
                settings.second_half(ChainState { theta: &mut theta, velocity: &mut velocity, inverse_mass }, &score, pull);
            } else {
                settings.step(
                    ChainState { theta: &mut theta, velocity: &mut velocity, inverse_mass },
                    &score,
                    pull,
                    &mut stream(),
                );
            }
            for place in 0..dim {
                let mass = if heavy { masses[place] } else { 1.0 };
                let force = |at: f64| score[place] + if pulled { 1.3 * (center[place] - at) } else { 0.0 };
                let known = 2.0 * 0.1 * 0.05 * mass * mass;
                let reach = 0.5 * (1.0 + (-0.07_f64).exp());
                let (x, v) = if scheme == Scheme::Middle {
                    let sd = ((1.0 - (-0.14_f64).exp()) * mass - known * reach * reach).sqrt();
                    let v = (-0.07_f64).exp() * rates[place] + sd * normals[place];
                    let x = before[place] + 0.05 * v;
                    let v = v + 0.1 * mass * force(x);
                    (x + 0.05 * v, v)
                } else {
                    let sd = (0.14 * mass - known).sqrt();
                    let v = (1.0 - 0.07) * rates[place] + 0.1 * mass * force(before[place]) + sd * normals[place];
                    (before[place] + 0.1 * v, v)
                };
                assert!((velocity[place] - v).abs() < 1e-14 && (theta[place] - x).abs() < 1e-14, "{scheme:?}");
            }
        }
    }

    #[test]
    fn numbers_out_of_range_are_named() {
        let fine = SghmcDynamics { scheme: Scheme::Middle, step: 0.1, friction: 1.0, gradient_noise: 0.0, noise: true };
        assert!(fine.check(1.0).is_ok());
        for (wrong, says) in [
            (SghmcDynamics { step: 0.0, ..fine }, "step = 0"),
            (SghmcDynamics { friction: 20.0, ..fine }, "friction = 20"),
            (SghmcDynamics { friction: -1.0, ..fine }, "friction = -1"),
            (SghmcDynamics { friction: 0.0, ..fine }, "friction = 0"),
            (SghmcDynamics { gradient_noise: 1.5, ..fine }, "gradient_noise = 1.5"),
        ] {
            assert!(wrong.check(1.0).unwrap_err().to_string().contains(says));
        }
        let known = SghmcDynamics { gradient_noise: 0.5, ..fine };
        assert!(
            known.check(1.0).is_ok()
                && known.check(10.0).is_err()
                && SghmcDynamics { friction: 0.0, noise: false, ..fine }.check(1.0).is_ok()
        );
    }
}
