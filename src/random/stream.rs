//! A random stream: the counter-based generator at one address, with its position.

use super::normals::{Normals32, Normals64};
use super::philox::{Address, BLOCKS, InstructionSet, Kernel, Words, fill};
use super::{Purpose, Seed, Who};
use crate::number::Real;
use std::any::TypeId;

/// Random numbers at one address; also a `rand` generator.
///
/// An address has three sequences that share no bits: 32-bit words (for everything that goes through `rand`), `f32` normals
/// and `f64` normals. Element i of each depends on the address and i alone. Mixing calls of different kinds or lengths does not change
/// the elements, and their bits are the same on every machine.
///
/// For one seed, different addresses have different keys or counters by construction. The words are those of Philox4x32-10.
#[derive(Clone, Debug)]
pub struct Stream {
    address: Address,
    /// The number of words used; the next two fields count the normals.
    words: u64,
    normals32: u64,
    normals64: u64,
    /// The chunk that contains the next word, unless the next word is the first of a chunk.
    buffer: [u32; 4 * BLOCKS],
}

impl Stream {
    #[inline]
    pub(super) fn at(seed: Seed, who: Who, step: u64, purpose: Purpose) -> Self {
        let (kind, id) = match who {
            Who::Run => (0, 0),
            Who::Server => (1, 0),
            Who::Agent(id) => (2, id),
            Who::Chain(id) => (3, id),
        };
        let place = u64::from(id) | kind << 32 | (purpose as u64) << 40;
        // A bijection of `place`, so that addresses of one seed never collide; two rounds of mixing separate seeds.
        let key = mix(mix(seed.0.wrapping_add(0x9E37_79B9_7F4A_7C15)) ^ mix(place));
        Self {
            address: Address { key: [key as u32, (key >> 32) as u32], step },
            words: 0,
            normals32: 0,
            normals64: 0,
            buffer: [0; 4 * BLOCKS],
        }
    }

    /// Fills `out` with the next standard normal numbers, at most ±6.77 in `f32` and ±9.42 in `f64`.
    #[inline]
    pub fn normals<F: Real>(&mut self, out: &mut [F]) {
        self.each_normal(out, |place, z| *place = z);
    }

    /// Adds `scale` times the next standard normal numbers to `out`, the same numbers as those of [`Stream::normals`].
    #[inline]
    pub fn add_normals<F: Real>(&mut self, scale: F, out: &mut [F]) {
        self.each_normal(out, |place, z| *place += scale * z);
    }

    #[inline]
    fn each_normal<F: Real>(&mut self, out: &mut [F], emit: impl Fn(&mut F, F)) {
        if TypeId::of::<F>() == TypeId::of::<f32>() {
            each::<Normals32, F>(self.address, &mut self.normals32, out, emit);
        } else if TypeId::of::<F>() == TypeId::of::<f64>() {
            each::<Normals64, F>(self.address, &mut self.normals64, out, emit);
        } else {
            for part in out.chunks_mut(2 * BLOCKS) {
                let mut normals = [0.0_f64; 2 * BLOCKS];
                let normals = &mut normals[..part.len()];
                self.normals(normals);
                part.iter_mut().zip(normals).for_each(|(place, z)| emit(place, F::of(*z)));
            }
        }
    }

    /// A uniformly random permutation of 0 .. `n` (Fisher-Yates).
    pub fn permutation(&mut self, n: usize) -> Vec<usize> {
        let mut order: Vec<usize> = (0..n).collect();
        for i in (1..n).rev() {
            order.swap(i, self.below(i + 1));
        }
        order
    }

    /// An integer, uniform on 0 .. `bound`, without bias: Lemire (2019), "Fast random integer generation in an interval". A `bound`
    /// of 0 counts as 1.
    #[inline]
    pub(super) fn below(&mut self, bound: usize) -> usize {
        if let Ok(bound) = u32::try_from(bound) {
            let mut product = u64::from(self.word()) * u64::from(bound);
            if (product as u32) < bound {
                let least = bound.wrapping_neg() % bound;
                while (product as u32) < least {
                    product = u64::from(self.word()) * u64::from(bound);
                }
            }
            (product >> 32) as usize
        } else {
            let bound = bound as u64;
            let least = bound.wrapping_neg() % bound;
            loop {
                let product = u128::from(self.two_words()) * u128::from(bound);
                if product as u64 >= least {
                    return (product >> 64) as usize;
                }
            }
        }
    }

    #[inline]
    fn word(&mut self) -> u32 {
        let place = (self.words % self.buffer.len() as u64) as usize;
        if place == 0 {
            self.refill();
        }
        self.words += 1;
        self.buffer[place]
    }

    /// Some of the next words: at least 1, at most `most` (`most` > 0).
    #[inline]
    pub(super) fn some_words(&mut self, most: usize) -> &[u32] {
        let place = (self.words % self.buffer.len() as u64) as usize;
        if place == 0 {
            self.refill();
        }
        let words = &self.buffer[place..];
        let words = &words[..words.len().min(most)];
        self.words += words.len() as u64;
        words
    }

    #[inline]
    fn two_words(&mut self) -> u64 {
        let low = u64::from(self.word());
        low | u64::from(self.word()) << 32
    }

    #[inline(never)]
    fn refill(&mut self) {
        fill::<Words>(InstructionSet::best(), self.address, self.words, &mut self.buffer, |place, word| *place = word);
    }
}

/// [`fill`] for an array whose type is that of the kernel's items; advances the position.
#[inline]
fn each<K: Kernel<Item: bytemuck::Pod>, F: Real>(address: Address, position: &mut u64, out: &mut [F], emit: impl Fn(&mut F, F)) {
    let start = *position;
    *position += out.len() as u64;
    let out = bytemuck::cast_slice_mut::<F, K::Item>(out);
    fill::<K>(InstructionSet::best(), address, start, out, |place, z| emit(bytemuck::cast_mut(place), bytemuck::cast(z)));
}

/// A bijection in which every input bit affects every output bit: Stafford's variant 13 of the finalizer of MurmurHash3.
#[inline(always)]
pub(crate) fn mix(word: u64) -> u64 {
    let word = (word ^ (word >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let word = (word ^ (word >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    word ^ (word >> 31)
}

impl rand::TryRng for Stream {
    type Error = std::convert::Infallible;

    #[inline]
    fn try_next_u32(&mut self) -> Result<u32, Self::Error> {
        Ok(self.word())
    }

    /// Two words, the lower half first.
    #[inline]
    fn try_next_u64(&mut self) -> Result<u64, Self::Error> {
        Ok(self.two_words())
    }

    /// Whole words in little-endian order; surplus bytes of the last word are dropped.
    fn try_fill_bytes(&mut self, bytes: &mut [u8]) -> Result<(), Self::Error> {
        for part in bytes.chunks_mut(4) {
            part.copy_from_slice(&self.word().to_le_bytes()[..part.len()]);
        }
        Ok(())
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;
