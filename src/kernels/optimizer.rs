//! Optimizers: plain gradient steps, and AdaGrad with an exponential window as in the SVGD papers.

use crate::number::Real;
use crate::settings::{KeyError, in_range};
use crate::vector::vectorized;
use serde::{Deserialize, Serialize};

/// The optimizer: how a direction φ becomes a step of θ. `{ adagrad = { step = 0.05, decay = 0.9, fudge = 1e-9 } }` adapts the step of
/// each parameter; `{ plain = { step = 1e-3 } }` uses the same step for all.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Optimizer {
    /// θ += a φ / (f + √G) elementwise, with G = φ² at the first step and ρ G + (1 − ρ) φ² later. The reference implementations of
    /// SVGD (Liu & Wang 2016) and DSVGD (Kassab & Simeone, arXiv 2009.06419) call this AdaGrad with momentum.
    Adagrad {
        /// Step size a, above 0: about the change of a parameter per step.
        #[serde(default = "default_step")]
        step: f64,
        /// Decay ρ of the running mean G of squared directions, from 0 to below 1.
        #[serde(default = "default_decay")]
        decay: f64,
        /// Constant f, above 0, that keeps the division finite. Larger values damp parameters with small gradients.
        #[serde(default = "default_fudge")]
        fudge: f64,
    },
    /// θ += ε φ for all parameters.
    Plain {
        /// Step size ε, above 0.
        step: f64,
    },
}

fn default_step() -> f64 {
    0.05
}

fn default_decay() -> f64 {
    0.9
}

fn default_fudge() -> f64 {
    1e-9
}

impl Default for Optimizer {
    /// The settings of Kassab & Simeone for logistic regression.
    fn default() -> Self {
        Self::Adagrad { step: default_step(), decay: default_decay(), fudge: default_fudge() }
    }
}

impl Optimizer {
    /// Checks that all settings are in range.
    pub fn check(&self) -> Result<(), KeyError> {
        let positive = |key, step: f64| in_range(key, step, step.is_finite() && step > 0.0, "positive");
        match *self {
            Self::Plain { step } => positive("plain.step", step),
            Self::Adagrad { step, decay, fudge } => {
                positive("adagrad.step", step)?;
                in_range("adagrad.decay", decay, (0.0..1.0).contains(&decay), "at least 0 and below 1")?;
                // A direction of 0, such as that of a weight after a dead unit, must not give 0/0, also in single precision.
                let valid = fudge.is_finite() && fudge >= f64::from(f32::MIN_POSITIVE);
                in_range("adagrad.fudge", fudge, valid, "at least 1.2e-38")
            }
        }
    }
}

/// An optimizer with its state G, the running mean square of the direction of each parameter.
#[derive(Clone, Debug)]
pub struct OptimizerState<F> {
    optimizer: Optimizer,
    squares: Vec<F>,
    started: bool,
}

impl<F: Real> OptimizerState<F> {
    /// An optimizer of `len` parameters in its initial state.
    pub fn new(optimizer: Optimizer, len: usize) -> Self {
        let len = if matches!(optimizer, Optimizer::Plain { .. }) { 0 } else { len };
        Self { optimizer, squares: vec![F::zero(); len], started: false }
    }

    /// Resets the state: the next step is a first step.
    pub fn reset(&mut self) {
        self.started = false;
    }

    /// Moves `theta` along `direction` (ascent). Both must have the length for which the optimizer was created.
    pub fn step(&mut self, theta: &mut [F], direction: &[F]) {
        let len = theta.len();
        self.step_rows(theta, direction, &[F::zero()], len);
    }

    /// Moves each row θ_n, of length `width`, along `direction`_n + `push`_n · θ_n.
    pub(super) fn step_rows(&mut self, theta: &mut [F], direction: &[F], push: &[F], width: usize) {
        match self.optimizer {
            Optimizer::Plain { step } => plain(theta, direction, push, width, F::of(step)),
            Optimizer::Adagrad { step, decay, fudge } => {
                // The first step sets G = φ².
                let (keep, gain) = if self.started { (F::of(decay), F::of(1.0 - decay)) } else { (F::zero(), F::one()) };
                adaptive(theta, direction, &mut self.squares, push, width, [F::of(step), keep, gain, F::of(fudge)]);
            }
        }
        self.started = true;
    }
}

vectorized! {
    fn plain<F: Real>(theta: &mut [F], direction: &[F], push: &[F], width: usize, step: F) {
        for ((row, phi), &push) in theta.chunks_exact_mut(width).zip(direction.chunks_exact(width)).zip(push) {
            for (x, &phi) in row.iter_mut().zip(phi) {
                *x += step * (phi + push * *x);
            }
        }
    }
}

vectorized! {
    fn adaptive<F: Real>(theta: &mut [F], direction: &[F], squares: &mut [F], push: &[F], width: usize, settings: [F; 4]) {
        let [step, keep, gain, fudge] = settings;
        let rows = theta.chunks_exact_mut(width).zip(direction.chunks_exact(width)).zip(squares.chunks_exact_mut(width));
        for (((row, phi), squares), &push) in rows.zip(push) {
            for ((x, &phi), square) in row.iter_mut().zip(phi).zip(squares) {
                let phi = phi + push * *x;
                // After a reset G is overwritten, because 0 · G is NaN if G is infinite.
                *square = if keep == F::zero() { phi * phi } else { keep * *square + gain * phi * phi };
                *x += step * phi / (fudge + square.sqrt());
            }
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn steps_follow_the_recursion() {
        let (a, rho, f) = (0.05, 0.9, 1e-9);
        let mut state = OptimizerState::<f64>::new(Optimizer::default(), 3);
        let mut theta = [1.0, -2.0, 0.5];
        let (mut expected, mut g) = (theta, [0.0; 3]);
        for l in 0..7 {
            if l == 4 {
                state.reset();
            }
            let phi = [1.0 + f64::from(l), -0.3 * f64::from(l), 0.0];
            state.step(&mut theta, &phi);
            for i in 0..3 {
                g[i] = if l == 0 || l == 4 { phi[i] * phi[i] } else { rho * g[i] + (1.0 - rho) * phi[i] * phi[i] };
                expected[i] += a * phi[i] / (f + g[i].sqrt());
            }
        }
        for (x, y) in theta.iter().zip(expected) {
            assert!((x - y).abs() < 1e-14, "{theta:?} {expected:?}");
        }
        // A direction of 0 does not move the parameter.
        assert_eq!(theta[2], 0.5);
    }

    #[test]
    fn settings_from_toml() {
        #[derive(Deserialize)]
        struct Holder {
            optimizer: Optimizer,
        }
        let parse = |text: &str| toml::from_str::<Holder>(text).map(|h| h.optimizer);
        assert_eq!(parse("optimizer = { plain = { step = 0.1 } }").unwrap(), Optimizer::Plain { step: 0.1 });
        assert_eq!(parse("optimizer = { adagrad = { step = 0.05, decay = 0.9, fudge = 1e-9 } }").unwrap(), Optimizer::default());
        assert!(parse("optimizer = { plain = { step = 0.1, decay = 0.9 } }").is_err());
        assert!(Optimizer::Plain { step: 0.0 }.check().is_err());
        assert!(Optimizer::Adagrad { step: 0.1, decay: 1.0, fudge: 1e-9 }.check().is_err());
        for (fudge, valid) in [(0.0, false), (1e-45, false), (-1.0, false), (f64::NAN, false), (1e-38 * 1.2, true)] {
            assert_eq!(Optimizer::Adagrad { step: 0.1, decay: 0.9, fudge }.check().is_ok(), valid, "{fudge}");
        }
        assert!(Optimizer::default().check().is_ok());
    }
}
