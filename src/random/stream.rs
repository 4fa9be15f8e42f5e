//! One addressed stream of random numbers: a counter-based generator with its position.

use super::{Purpose, Seed, Who};
use crate::number::Real;

/// Random numbers at one address; also a `rand` generator.
#[derive(Clone, Debug)]
pub struct Stream {
    state: u64,
}

impl Stream {
    pub(super) fn at(seed: Seed, who: Who, step: u64, purpose: Purpose) -> Self {
        let (kind, id) = match who {
            Who::Run => (0, 0),
            Who::Server => (1, 0),
            Who::Agent(id) => (2, u64::from(id)),
            Who::Chain(id) => (3, u64::from(id)),
        };
        let mut state = seed.0;
        for word in [kind, id, step, purpose as u64] {
            state = (state ^ word).wrapping_mul(0x9E37_79B9_7F4A_7C15);
            state ^= state >> 29;
        }
        Self { state }
    }

    /// Fills `out` with standard normal numbers.
    pub fn normals<F: Real>(&mut self, out: &mut [F]) {
        use rand::RngExt;
        for value in out {
            *value = F::of(self.sample::<f64, _>(rand_distr::StandardNormal));
        }
    }
}

impl rand::TryRng for Stream {
    type Error = std::convert::Infallible;

    fn try_next_u32(&mut self) -> Result<u32, Self::Error> {
        self.try_next_u64().map(|word| (word >> 32) as u32)
    }

    fn try_next_u64(&mut self) -> Result<u64, Self::Error> {
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        Ok(z ^ (z >> 31))
    }

    fn try_fill_bytes(&mut self, bytes: &mut [u8]) -> Result<(), Self::Error> {
        for chunk in bytes.chunks_mut(8) {
            let word = self.try_next_u64()?.to_le_bytes();
            chunk.copy_from_slice(&word[..chunk.len()]);
        }
        Ok(())
    }
}
