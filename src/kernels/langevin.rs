//! Langevin steps: step sizes that stay or fall, and the step itself.

use super::hamiltonian::ElasticForce;
use super::{SettingsError, ranged};
use crate::number::Real;
use crate::random::Stream;
use serde::{Deserialize, Serialize};

/// ε_t, the step size of update t = 0, 1, ..., in the half convention: θ moves by ε/2 times the score, with noise of variance ε
/// (Welling & Teh 2011; Ahn, Shahbaba & Welling 2014, eq. 1).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum StepSize {
    /// The same for every update.
    Constant(f64),
    /// a·(b + t)^(−c).
    Annealed {
        /// a.
        a: f64,
        /// b.
        b: f64,
        /// c: above 0.5 and at most 1 for a chain that converges.
        c: f64,
    },
}

impl Default for StepSize {
    fn default() -> Self {
        Self::Annealed { a: 0.01, b: 1.0, c: 0.55 }
    }
}

impl StepSize {
    /// ε_t.
    pub fn at(self, update: u64) -> f64 {
        match self {
            Self::Constant(step) => step,
            Self::Annealed { a, b, c } => a * (b + update as f64).powf(-c),
        }
    }

    /// Whether it is one.
    ///
    /// # Errors
    /// Says which number is out of its range.
    pub fn check(self) -> Result<(), SettingsError> {
        let positive = |name, value: f64| ranged(name, value, value.is_finite() && value > 0.0, "a number above 0");
        match self {
            Self::Constant(step) => positive("step.constant", step),
            Self::Annealed { a, b, c } => {
                positive("step.annealed.a", a)?;
                positive("step.annealed.b", b)?;
                ranged("step.annealed.c", c, (0.0..=1.0).contains(&c), "a number from 0 to 1")
            }
        }
    }
}

/// θ ← θ + (ε/2)·(score + κ (c − θ)) + N(0, ε I), the pull towards c where there is one.
///
/// # Panics
/// When θ, the score and c differ in length.
pub fn langevin_step<F: Real>(theta: &mut [F], score: &[F], pull: Option<ElasticForce<F>>, step: f64, noise: &mut Stream) {
    assert_eq!(theta.len(), score.len(), "a score has a number for each parameter");
    let half = F::of(0.5 * step);
    let both = theta.iter_mut().zip(score);
    match pull {
        None => both.for_each(|(theta, &score)| *theta += half * score),
        Some(ElasticForce { strength, center }) => {
            assert_eq!(score.len(), center.len(), "a center has a number for each parameter");
            both.zip(center).for_each(|((theta, &score), &center)| *theta += half * (score + strength * (center - *theta)));
        }
    }
    noise.add_normals(F::of(step.sqrt()), theta);
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::random::{Purpose, Seed, Who};

    #[test]
    fn step_sizes_follow_their_formula() {
        let annealed: StepSize = toml::from_str::<toml::Table>("step = { annealed = { a = 0.01, b = 0.5, c = 0.55 } }").unwrap()
            ["step"]
            .clone()
            .try_into()
            .unwrap();
        assert!((annealed.at(0) / 0.01 - 1.464_085_695_5).abs() < 1e-9, "0.5^-0.55");
        assert!((annealed.at(3) - 0.01 * 3.5_f64.powf(-0.55)).abs() < 1e-18);
        assert_eq!(StepSize::Constant(0.25).at(1 << 40), 0.25);
        assert!(annealed.check().is_ok() && StepSize::default().check().is_ok());
        for (wrong, says) in [
            (StepSize::Constant(0.0), "constant = 0"),
            (StepSize::Constant(f64::NAN), "constant = NaN"),
            (StepSize::Annealed { a: 1.0, b: 0.0, c: 0.5 }, "b = 0"),
            (StepSize::Annealed { a: 1.0, b: 1.0, c: 1.5 }, "c = 1.5"),
        ] {
            assert!(wrong.check().unwrap_err().to_string().contains(says));
        }
    }

    #[test]
    fn a_step_is_half_of_the_score_and_noise_of_its_variance() {
        let stream = || Seed(1).stream(Who::Chain(0), 5, Purpose::Noise);
        let mut theta: [f64; 3] = [1.0, -2.0, 0.5];
        langevin_step(&mut theta, &[2.0, 4.0, -6.0], None, 0.25, &mut stream());
        let mut noise = [0.0; 3];
        stream().normals(&mut noise);
        let exact: [f64; 3] = [1.25 + 0.5 * noise[0], -1.5 + 0.5 * noise[1], -0.25 + 0.5 * noise[2]];
        assert!(theta.iter().zip(exact).all(|(theta, exact)| (theta - exact).abs() < 1e-15), "{theta:?} {exact:?}");
    }
}
