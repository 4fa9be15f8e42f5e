//! Langevin dynamics (SGLD): step-size schedules and the update.

use super::hamiltonian::ElasticForce;
use crate::number::Real;
use crate::random::Stream;
use crate::settings::{KeyError, in_range};
use serde::de::value::MapAccessDeserializer;
use serde::de::{Error, IntoDeserializer, MapAccess, Unexpected, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;

/// The step size ε_t of update t = 0, 1, ...: `"auto"`, a number, or `{ annealed = { a = 0.01, b = 1.0, c = 0.55 } }`. An update moves θ by ε/2
/// times the score and adds noise of variance ε (Welling & Teh 2011; Ahn, Shahbaba & Welling 2014, eq. 1).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum StepSize {
    /// A constant step size that is found before the run; where other keys hinder that, the annealed one with a = 0.01, b = 1 and c = 0.55.
    #[default]
    Auto,
    /// The same step size for every update, above 0. Draws have a bias that grows with it.
    Constant(f64),
    /// The decreasing step size a·(b + t)^(−c).
    Annealed {
        /// Scale a, above 0.
        a: f64,
        /// Offset b of the update number, above 0.
        b: f64,
        /// Exponent c, from 0 to 1. The chain converges to the posterior for c above 0.5.
        c: f64,
    },
}

impl StepSize {
    /// The step size that [`StepSize::Auto`] stands for where none is found.
    pub const PRESET: Self = Self::Annealed { a: 0.01, b: 1.0, c: 0.55 };

    /// The step size of update t.
    pub fn at(self, update: u64) -> f64 {
        match self {
            Self::Auto => Self::PRESET.at(update),
            Self::Constant(step) => step,
            Self::Annealed { a, b, c } => a * (b + update as f64).powf(-c),
        }
    }

    /// Checks that all settings are in range.
    pub fn check(self) -> Result<(), KeyError> {
        let positive = |name, value: f64| in_range(name, value, value.is_finite() && value > 0.0, "positive");
        match self {
            Self::Auto => Ok(()),
            Self::Constant(step) => positive("step", step),
            Self::Annealed { a, b, c } => {
                positive("step.annealed.a", a)?;
                positive("step.annealed.b", b)?;
                in_range("step.annealed.c", c, (0.0..=1.0).contains(&c), "from 0 to 1")
            }
        }
    }
}

/// A step size that is a table in a run file.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
enum InTable {
    /// The number alone is shorter.
    #[serde(skip_serializing)]
    Constant(f64),
    Annealed {
        a: f64,
        b: f64,
        c: f64,
    },
}

impl Serialize for StepSize {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match *self {
            Self::Auto => serializer.serialize_str("auto"),
            Self::Constant(step) => serializer.serialize_f64(step),
            Self::Annealed { a, b, c } => InTable::Annealed { a, b, c }.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for StepSize {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(StepSizeVisitor)
    }
}

struct StepSizeVisitor;

impl<'de> Visitor<'de> for StepSizeVisitor {
    type Value = StepSize;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("\"auto\", a number, or { annealed = { a = 0.01, b = 1.0, c = 0.55 } }")
    }

    fn visit_f64<E: Error>(self, step: f64) -> Result<StepSize, E> {
        Ok(StepSize::Constant(step))
    }

    fn visit_i64<E: Error>(self, step: i64) -> Result<StepSize, E> {
        f64::deserialize(step.into_deserializer()).map(StepSize::Constant)
    }

    fn visit_str<E: Error>(self, word: &str) -> Result<StepSize, E> {
        match word {
            "auto" => Ok(StepSize::Auto),
            _ => Err(E::invalid_value(Unexpected::Str(word), &self)),
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, table: A) -> Result<StepSize, A::Error> {
        Ok(match InTable::deserialize(MapAccessDeserializer::new(table))? {
            InTable::Constant(step) => StepSize::Constant(step),
            InTable::Annealed { a, b, c } => StepSize::Annealed { a, b, c },
        })
    }
}

/// The SGLD update θ ← θ + (ε/2)·(score + κ (c − θ)) + N(0, σ² I), with the optional elastic force κ (c − θ). σ² is ε, or less
/// where the score has noise of its own.
///
/// # Panics
/// If θ, the score and c differ in length.
pub fn langevin_step<F: Real>(
    theta: &mut [F],
    score: &[F],
    force: Option<ElasticForce<F>>,
    step: f64,
    variance: f64,
    noise: &mut Stream,
) {
    assert_eq!(theta.len(), score.len(), "the score needs one value per parameter");
    let half_step = F::of(0.5 * step);
    let both = theta.iter_mut().zip(score);
    match force {
        None => both.for_each(|(theta, &score)| *theta += half_step * score),
        Some(ElasticForce { strength, center }) => {
            assert_eq!(score.len(), center.len(), "the center needs one value per parameter");
            both.zip(center).for_each(|((theta, &score), &center)| *theta += half_step * (score + strength * (center - *theta)));
        }
    }
    noise.add_normals(F::of(variance.sqrt()), theta);
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
        for (wrong, message) in [
            (StepSize::Constant(0.0), "step: must be positive, not 0"),
            (StepSize::Constant(f64::NAN), "step: must be positive, not NaN"),
            (StepSize::Annealed { a: 1.0, b: 0.0, c: 0.5 }, "annealed.b: must"),
            (StepSize::Annealed { a: 1.0, b: 1.0, c: 1.5 }, "annealed.c: must be from 0 to 1, not 1.5"),
        ] {
            assert!(wrong.check().unwrap_err().to_string().contains(message));
        }
    }

    #[test]
    fn step_sizes_are_written_as_they_are_read() {
        let read = |text: &str| toml::from_str::<std::collections::BTreeMap<String, StepSize>>(text).map(|table| table["step"]);
        for (text, step) in [
            ("step = \"auto\"", StepSize::Auto),
            ("step = 0.25", StepSize::Constant(0.25)),
            ("step = 2", StepSize::Constant(2.0)),
            ("step = { constant = 0.25 }", StepSize::Constant(0.25)),
            ("step = { annealed = { a = 0.01, b = 0.5, c = 0.55 } }", StepSize::Annealed { a: 0.01, b: 0.5, c: 0.55 }),
        ] {
            assert_eq!(read(text).unwrap(), step, "{text}");
            let written = toml::to_string(&std::collections::BTreeMap::from([("step", step)])).unwrap();
            assert_eq!(read(&written).unwrap(), step, "{written}");
        }
        assert_eq!(
            toml::to_string(&std::collections::BTreeMap::from([("step", StepSize::Constant(0.25))])).unwrap(),
            "step = 0.25\n"
        );
        for (text, message) in [
            ("step = \"small\"", "expected \"auto\", a number, or { annealed"),
            ("step = true", "expected \"auto\", a number, or { annealed"),
            ("step = { annealed = { a = 0.01, b = 0.5 } }", "missing field `c`"),
            ("step = { anealed = 1 }", "unknown variant `anealed`"),
        ] {
            assert!(read(text).unwrap_err().to_string().contains(message), "{text}: {}", read(text).unwrap_err());
        }
    }

    #[test]
    fn an_update_adds_half_the_scaled_score_and_noise() {
        let stream = || Seed(1).stream(Who::Chain(0), 5, Purpose::Noise);
        let mut theta: [f64; 3] = [1.0, -2.0, 0.5];
        langevin_step(&mut theta, &[2.0, 4.0, -6.0], None, 0.25, 0.09, &mut stream());
        let mut noise = [0.0; 3];
        stream().normals(&mut noise);
        let exact: [f64; 3] = [1.25 + 0.3 * noise[0], -1.5 + 0.3 * noise[1], -0.25 + 0.3 * noise[2]];
        assert!(theta.iter().zip(exact).all(|(theta, exact)| (theta - exact).abs() < 1e-15), "{theta:?} {exact:?}");
    }
}
