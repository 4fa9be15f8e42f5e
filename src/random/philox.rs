//! The counter-based generator Philox4x32-10, computed for several blocks at once with the widest vectors of the machine.
//!
//! Salmon, Moraes, Dror & Shaw (2011), "Parallel random numbers: as easy as 1, 2, 3", SC '11. The code for all instruction sets is compiled
//! from the same source, which the compiler can vectorize. It uses correctly rounded operations only, so all bits are equal.

use std::sync::OnceLock;

/// Blocks of a group; a group is computed together.
pub(super) const BLOCKS: usize = 16;
/// The 64-bit halves of [`BLOCKS`] consecutive Philox blocks: block b fills elements 2b and 2b+1, with words 0 and 1, then 2 and 3, low
/// word first.
pub(super) type Halves = [u64; 2 * BLOCKS];

/// Groups that go through each stage together, so that their latencies overlap.
const GROUPS: usize = 4;
const LOW_32_BITS: u64 = 0xFFFF_FFFF;
const MULTIPLIERS: [u64; 2] = [0xD251_1F53, 0xCD9E_8D57];
const WEYL: [u32; 2] = [0x9E37_79B9, 0xBB67_AE85];
const ROUNDS: usize = 10;

/// Key and upper half of the counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Address {
    pub key: [u32; 2],
    pub step: u64,
}

/// Turns the blocks of an address into items. Each kernel uses its own quarter of the counter's lower half.
pub(super) trait Kernel {
    type Item: Copy;
    /// The items of [`BLOCKS`] blocks.
    type Chunk: AsRef<[Self::Item]> + AsMut<[Self::Item]>;
    const EMPTY: Self::Chunk;
    /// The quarter of the counter's lower half, 0 to 3.
    const QUARTER: u64;
    const ITEMS_PER_BLOCK: usize;
    fn convert(halves: &Halves, chunk: &mut Self::Chunk);
}

/// The kernel whose items are the words themselves.
pub(super) struct Words;

impl Kernel for Words {
    type Item = u32;
    type Chunk = [u32; 4 * BLOCKS];
    const EMPTY: Self::Chunk = [0; 4 * BLOCKS];
    const QUARTER: u64 = 0;
    const ITEMS_PER_BLOCK: usize = 4;

    #[inline(always)]
    fn convert(halves: &Halves, chunk: &mut Self::Chunk) {
        *chunk = bytemuck::cast(*halves);
    }
}

/// The instruction set that a fill uses. This machine supports it: the private field can be set in this file only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct InstructionSet(Extension);

/// What an instruction set adds to that of the build's target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Extension {
    Nothing,
    #[cfg(target_arch = "x86_64")]
    Avx2,
    #[cfg(target_arch = "x86_64")]
    Avx512,
}

impl InstructionSet {
    /// The instruction set of the build's target. Without a fused multiply-add, it computes normal numbers more slowly, with the same bits.
    pub const PORTABLE: Self = Self(Extension::Nothing);

    /// The instruction sets that this machine supports, the fastest last.
    pub fn available() -> Vec<Self> {
        let mut sets = vec![Self::PORTABLE];
        #[cfg(target_arch = "x86_64")]
        {
            if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
                sets.push(Self(Extension::Avx2));
                if is_x86_feature_detected!("avx512f")
                    && is_x86_feature_detected!("avx512dq")
                    && is_x86_feature_detected!("avx512bw")
                    && is_x86_feature_detected!("avx512vl")
                {
                    sets.push(Self(Extension::Avx512));
                }
            }
        }
        sets
    }

    /// The fastest instruction set that this machine supports.
    #[inline]
    pub fn best() -> Self {
        static BEST: OnceLock<InstructionSet> = OnceLock::new();
        *BEST.get_or_init(|| Self::available().last().copied().unwrap_or(Self::PORTABLE))
    }
}

/// Calls `emit(place, item)` for each place of `out` with items `start`, `start + 1`, ... of an address.
#[inline]
pub(super) fn fill<K: Kernel>(
    instructions: InstructionSet,
    address: Address,
    start: u64,
    out: &mut [K::Item],
    emit: impl Fn(&mut K::Item, K::Item),
) {
    match instructions.0 {
        Extension::Nothing => body::<K>(address, start, out, emit),
        // SAFETY: only `InstructionSet::available` makes values with these two, after it has found the required features.
        #[cfg(target_arch = "x86_64")]
        Extension::Avx2 => unsafe { avx2::<K>(address, start, out, emit) },
        #[cfg(target_arch = "x86_64")]
        Extension::Avx512 => unsafe { avx512::<K>(address, start, out, emit) },
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
fn avx2<K: Kernel>(address: Address, start: u64, out: &mut [K::Item], emit: impl Fn(&mut K::Item, K::Item)) {
    body::<K>(address, start, out, emit);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma,avx512f,avx512dq,avx512bw,avx512vl")]
fn avx512<K: Kernel>(address: Address, start: u64, out: &mut [K::Item], emit: impl Fn(&mut K::Item, K::Item)) {
    body::<K>(address, start, out, emit);
}

#[inline(always)]
fn body<K: Kernel>(address: Address, start: u64, out: &mut [K::Item], emit: impl Fn(&mut K::Item, K::Item)) {
    let per_block = K::ITEMS_PER_BLOCK as u64;
    let mut block = start / per_block;
    let mut skip = (start % per_block) as usize;
    let mut groups = [[0; 2 * BLOCKS]; GROUPS];
    let mut chunk = K::EMPTY;
    let mut rest = out;
    while !rest.is_empty() {
        let needed = (skip + rest.len()).div_ceil(BLOCKS * K::ITEMS_PER_BLOCK).min(GROUPS);
        for group in &mut groups[..needed] {
            blocks(address, K::QUARTER, block, group);
            block += BLOCKS as u64;
        }
        for group in &groups[..needed] {
            K::convert(group, &mut chunk);
            let items = &chunk.as_ref()[skip..];
            let (now, later) = rest.split_at_mut(items.len().min(rest.len()));
            for (place, &item) in now.iter_mut().zip(items) {
                emit(place, item);
            }
            rest = later;
            skip = 0;
        }
    }
}

#[inline(always)]
fn blocks(address: Address, quarter: u64, first: u64, halves: &mut Halves) {
    for (lane, half) in halves.chunks_exact_mut(2).enumerate() {
        let counter = first.wrapping_add(lane as u64) | quarter << 62;
        let [a, b, c, d] = block(counter, address.step, address.key);
        half[0] = (a & LOW_32_BITS) | b << 32;
        half[1] = (c & LOW_32_BITS) | d << 32;
    }
}

/// One block, its words in the lower halves of 64-bit lanes, because vector units multiply 32 × 32 → 64 bits only. The upper halves hold
/// leftovers of the products.
#[inline(always)]
fn block(low: u64, high: u64, key: [u32; 2]) -> [u64; 4] {
    let [mut a, mut b, mut c, mut d] = [low, low >> 32, high, high >> 32];
    let [mut left, mut right] = key;
    for _ in 0..ROUNDS {
        let first = (a & LOW_32_BITS) * MULTIPLIERS[0];
        let second = (c & LOW_32_BITS) * MULTIPLIERS[1];
        (a, b, c, d) = ((second >> 32) ^ b ^ u64::from(left), second, (first >> 32) ^ d ^ u64::from(right), first);
        left = left.wrapping_add(WEYL[0]);
        right = right.wrapping_add(WEYL[1]);
    }
    [a, b, c, d]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_answers_of_random123() {
        for (low, high, key, answer) in [
            (0, 0, [0, 0], [0x6627_e8d5, 0xe169_c58d, 0xbc57_ac4c, 0x9b00_dbd8]),
            (u64::MAX, u64::MAX, [u32::MAX; 2], [0x408f_276d, 0x41c8_3b0e, 0xa20b_c7c6, 0x6d54_51fd]),
            (
                0x85a3_08d3_243f_6a88,
                0x0370_7344_1319_8a2e,
                [0xa409_3822, 0x299f_31d0],
                [0xd16c_fe09, 0x94fd_cceb, 0x5001_e420, 0x2412_6ea1],
            ),
        ] {
            assert_eq!(block(low, high, key).map(|word| word as u32), answer);
        }
    }

    #[test]
    fn words_are_the_blocks_in_order_with_every_instruction_set_and_from_any_start() {
        let address = Address { key: [3, 4], step: 5 << 40 };
        let expected: Vec<u32> =
            (0..100).flat_map(|b| block((1 << 32) - 50 + b, address.step, address.key)).map(|w| w as u32).collect();
        for instructions in InstructionSet::available() {
            for (offset, length) in [(0, 400), (1, 3), (3, 0), (5, 200), (64, 64), (130, 65)] {
                let mut out = vec![0; length];
                let start = 4 * ((1 << 32) - 50) + offset as u64;
                fill::<Words>(instructions, address, start, &mut out, |place, word| *place = word);
                assert_eq!(out, expected[offset..offset + length], "{instructions:?} {offset} {length}");
            }
        }
    }
}
