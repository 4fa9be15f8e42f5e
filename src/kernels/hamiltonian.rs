//! Stochastic gradient Hamiltonian Monte Carlo (SGHMC): integrators of the dynamics with friction and noise.

use crate::number::Real;
use crate::random::Stream;
use crate::settings::{KeyError, in_range, inline};
use serde::{Deserialize, Serialize};

/// The number of parameters per block: its noise fits into the first-level cache.
const BLOCK: usize = 2048;

/// The dynamics dθ = v dt, dv = −M⁻¹∇U dt − V v dt + N(0, 2V M⁻¹ dt), with the momentum M v (Chen, Fox & Guestrin 2014,
/// "Stochastic gradient Hamiltonian Monte Carlo"). Other implementations call ε² the learning rate and εV the momentum decay.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SghmcDynamics {
    /// The integrator.
    pub scheme: Scheme,
    /// The step size ε.
    pub step: f64,
    /// The friction V, the decay rate of velocities.
    pub friction: f64,
    /// The estimate B̂ = ½ε·(variance of the gradient noise), by which the added noise is reduced; 0 if unknown.
    pub gradient_noise: f64,
    /// Whether noise is added. Without noise this is gradient descent with momentum.
    pub noise: bool,
}

/// The integrator of the SGHMC dynamics: `"middle"` or `"semi_implicit"`. Both use one gradient per step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scheme {
    /// v ← e^(−εV) v + N(0, (1 − e^(−2εV)) M⁻¹), θ ← θ + ½εv, v ← v − ε M⁻¹∇Û(θ), θ ← θ + ½εv (Leimkuhler & Matthews 2013; Zhang et al. 2019
    /// call it the middle scheme). For a Gaussian posterior, θ has the exact covariance where the gradient is evaluated, at every stable
    /// step size. At the end of a step, θ and v are independent.
    #[default]
    Middle,
    /// v ← (1 − εV) v − ε M⁻¹∇Û(θ) + N(0, 2ε(V M⁻¹ − B̂ M⁻²)), θ ← θ + ε v, as in the SGHMC paper. θ moves with the new
    /// velocity, because the explicit scheme is unstable for ε ≥ V/λ.
    SemiImplicit,
}

impl SghmcDynamics {
    /// Checks that all settings are in range for inverse masses up to `max_inverse_mass`.
    pub fn check(&self, max_inverse_mass: f64) -> Result<(), KeyError> {
        let Self { step, friction, gradient_noise, noise, .. } = *self;
        in_range("step", step, step.is_finite() && step > 0.0, "positive")?;
        let stable = friction.is_finite() && step * friction < 2.0;
        in_range("friction", friction, friction > 0.0 || !noise && friction == 0.0, "above 0")?;
        if !stable {
            let [friction, step] = [friction, step].map(|number| inline(&number.into()));
            let sentence =
                format!("= {friction} with step = {step} is unstable: their product must be below 2. Set a smaller step");
            return Err(KeyError::invalid("friction", sentence));
        }
        let [added, known] = self.noise_variances();
        let fits = gradient_noise >= 0.0 && known * max_inverse_mass <= added.max(0.0);
        in_range("gradient_noise", gradient_noise, !noise || fits, "from 0 to about friction, times floor with a preconditioner")
    }

    /// The stability limit: steps are stable if ε²λ is below it, with λ the largest eigenvalue of M⁻¹∇²U.
    pub fn stability_limit(&self) -> f64 {
        match self.scheme {
            Scheme::Middle => 4.0,
            Scheme::SemiImplicit => 4.0 - 2.0 * self.step * self.friction,
        }
    }

    /// The factor by which friction reduces a velocity in a step.
    pub fn velocity_decay(&self) -> f64 {
        match self.scheme {
            Scheme::Middle => (-self.step * self.friction).exp(),
            Scheme::SemiImplicit => 1.0 - self.step * self.friction,
        }
    }

    /// Per step: the noise variance that the dynamics need, in units of M⁻¹, and the part that the gradient noise already contributes, in
    /// units of M⁻².
    fn noise_variances(&self) -> [f64; 2] {
        let known = 2.0 * self.step * self.gradient_noise;
        match self.scheme {
            // Kicks and noise are separated by friction, which scales the contribution of kicks by (1 + e^(−εV))/2.
            Scheme::Middle => {
                [-(-2.0 * self.step * self.friction).exp_m1(), known * (0.5 * (1.0 + self.velocity_decay())).powi(2)]
            }
            Scheme::SemiImplicit => [2.0 * self.step * self.friction, known],
        }
    }

    /// The first half of a step of the middle scheme, before the gradient: friction, noise, half of the move.
    ///
    /// # Panics
    /// If arrays differ in length.
    pub fn first_half<F: Real>(&self, chain: ChainState<F>, noise: &mut Stream) {
        let decay = F::of(self.velocity_decay());
        let half_step = F::of(0.5 * self.step);
        self.for_each(chain, noise, |theta, velocity, _, z| {
            *velocity = decay * *velocity + z;
            *theta += half_step * *velocity;
        });
    }

    /// The second half of a step of the middle scheme: the kick by the score of the posterior at θ, and the other half of the move.
    ///
    /// # Panics
    /// If arrays differ in length.
    pub fn second_half<F: Real>(&self, chain: ChainState<F>, score: &[F], force: Option<ElasticForce<F>>) {
        let ChainState { theta, velocity, inverse_mass } = chain;
        let dim = theta.len();
        let (center, masses) = (force.map_or(dim, |force| force.center.len()), inverse_mass.map_or(dim, <[F]>::len));
        assert!(
            [velocity.len(), score.len(), center, masses].iter().all(|&len| len == dim),
            "arrays need one value per parameter"
        );
        let (step, half_step) = (F::of(self.step), F::of(0.5 * self.step));
        let kick_and_move = |theta: &mut F, velocity: &mut F, gradient: F| {
            *velocity += step * gradient;
            *theta += half_step * *velocity;
        };
        let each = theta.iter_mut().zip(velocity).zip(score);
        match (force, inverse_mass) {
            (None, None) => each.for_each(|((theta, velocity), &score)| kick_and_move(theta, velocity, score)),
            (Some(ElasticForce { strength, center }), None) => {
                each.zip(center).for_each(|(((theta, velocity), &score), &center)| {
                    let force = score + strength * (center - *theta);
                    kick_and_move(theta, velocity, force);
                })
            }
            (None, Some(masses)) => {
                each.zip(masses).for_each(|(((theta, velocity), &score), &mass)| kick_and_move(theta, velocity, mass * score));
            }
            (Some(ElasticForce { strength, center }), Some(masses)) => {
                each.zip(masses).zip(center).for_each(|((((theta, velocity), &score), &mass), &center)| {
                    let gradient = mass * (score + strength * (center - *theta));
                    kick_and_move(theta, velocity, gradient);
                });
            }
        }
    }

    /// A step of the semi-implicit scheme with the score of the posterior at θ.
    ///
    /// # Panics
    /// If arrays differ in length.
    pub fn step<F: Real>(&self, chain: ChainState<F>, score: &[F], force: Option<ElasticForce<F>>, noise: &mut Stream) {
        let dim = chain.theta.len();
        assert!(score.len() == dim && force.is_none_or(|force| force.center.len() == dim), "arrays need one value per parameter");
        let (step, decay) = (F::of(self.step), F::of(self.velocity_decay()));
        let masses = chain.inverse_mass;
        self.for_each(chain, noise, |theta, velocity, i, z| {
            let gradient = force.map_or(score[i], |force| score[i] + force.strength * (force.center[i] - *theta));
            *velocity = decay * *velocity + step * masses.map_or(gradient, |masses| masses[i] * gradient) + z;
            *theta += step * *velocity;
        });
    }

    /// Calls `each` for every parameter with its velocity, index and noise.
    fn for_each<F: Real>(&self, chain: ChainState<F>, noise: &mut Stream, each: impl Fn(&mut F, &mut F, usize, F)) {
        let ChainState { theta, velocity, inverse_mass } = chain;
        let dim = theta.len();
        assert!(
            velocity.len() == dim && inverse_mass.is_none_or(|masses| masses.len() == dim),
            "arrays need one value per parameter"
        );
        let [added, known] = self.noise_variances();
        let deviation = F::of((added - known).max(0.0).sqrt());
        let (added, known) = (F::of(added), F::of(known));
        let mut normals = [F::zero(); BLOCK];
        for from in (0..dim).step_by(BLOCK) {
            let part = from..(from + BLOCK).min(dim);
            let normals = &mut normals[..part.len()];
            if self.noise {
                noise.normals(normals);
                match inverse_mass {
                    None => normals.iter_mut().for_each(|z| *z *= deviation),
                    Some(masses) => normals.iter_mut().zip(&masses[part.clone()]).for_each(|(z, mass)| {
                        *z *= (*mass * (added - known * *mass)).max(F::zero()).sqrt();
                    }),
                }
            }
            let both = theta[part.clone()].iter_mut().zip(&mut velocity[part.clone()]).zip(&*normals).zip(part);
            both.for_each(|(((theta, velocity), &z), i)| each(theta, velocity, i, z));
        }
    }
}

/// The state of a chain; each array has one value per parameter.
pub struct ChainState<'a, F> {
    /// The parameters θ.
    pub theta: &'a mut [F],
    /// The velocities v.
    pub velocity: &'a mut [F],
    /// The diagonal of M⁻¹; `None` for the identity.
    pub inverse_mass: Option<&'a [F]>,
}

/// The force κ (c − θ) towards a center c, which couples chains.
#[derive(Clone, Copy, Debug)]
pub struct ElasticForce<'a, F> {
    /// The coupling strength κ.
    pub strength: F,
    /// The center c.
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
    fn values_out_of_range_are_refused() {
        let valid = SghmcDynamics { scheme: Scheme::Middle, step: 0.1, friction: 1.0, gradient_noise: 0.0, noise: true };
        assert!(valid.check(1.0).is_ok());
        for (wrong, message) in [
            (SghmcDynamics { step: 0.0, ..valid }, "step: must be positive, not 0"),
            (SghmcDynamics { friction: 20.0, ..valid }, "friction = 20.0 with step = 0.1 is unstable"),
            (SghmcDynamics { friction: -1.0, ..valid }, "not -1"),
            (SghmcDynamics { friction: 0.0, ..valid }, "friction: must be above 0, not 0"),
            (SghmcDynamics { gradient_noise: 1.5, ..valid }, "gradient_noise: must be from 0 to"),
        ] {
            assert!(wrong.check(1.0).unwrap_err().to_string().contains(message));
        }
        let known = SghmcDynamics { gradient_noise: 0.5, ..valid };
        assert!(
            known.check(1.0).is_ok()
                && known.check(10.0).is_err()
                && SghmcDynamics { friction: 0.0, noise: false, ..valid }.check(1.0).is_ok()
        );
    }
}
