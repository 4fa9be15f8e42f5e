//! Compression of sparse integer arrays between ranks: run lengths of zeros and variable-length values.
//!
//! Each nonzero integer is preceded by the number of zeros before it. Both are varints; the sign of the value is in the lowest bit (zigzag).
//! The encoding is lossless.

use super::codec::{Raw, raw};
use crate::number::Number;
use crate::varint;
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::slice::Iter;

/// Shorter arrays are not packed.
const MIN_INTEGERS: usize = 256;

/// Whether the ranks that add a sum share a host: decides which packed messages are faster than an all-reduce of all values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Hosts {
    /// On one host: packing and unpacking take longer than passing the values through memory, unless there are many and nearly all are 0.
    One,
    /// On several hosts: bytes on the network take longer than packing (measured with two ranks at 100 Mbit/s and 1 Gbit/s). With many ranks, a sum is
    /// less sparse than the arrays that are added.
    Several,
}

impl Hosts {
    /// Arrays with fewer bytes are added by all-reduce, which has the shorter waits.
    fn least_bytes(self) -> usize {
        match self {
            Self::One => 4 << 20,
            Self::Several => 64 << 10,
        }
    }

    /// The least ratio of the plain to the packed size.
    fn least_ratio(self) -> usize {
        match self {
            Self::One => 8,
            Self::Several => 4,
        }
    }

    /// Whether packed messages between pairs of ranks are faster than an all-reduce of all values.
    pub fn prefers_packed<N: Number>(self, numbers: &[N]) -> bool {
        let bytes = size_of_val(numbers);
        bytes >= self.least_bytes() && wire_bytes(numbers) <= bytes / self.least_ratio()
    }
}

/// The values, if they are integers that are worth packing: at most half of them nonzero.
fn integers<N: Number>(numbers: &[N]) -> Option<&[i32]> {
    let integers: &[i32] = if N::EXACT { bytemuck::try_cast_slice(numbers).ok()? } else { return None };
    let filled = integers.iter().map(|&number| usize::from(number != 0)).sum::<usize>();
    (integers.len() >= MIN_INTEGERS && filled <= integers.len() / 2).then_some(integers)
}

/// Passes gaps and zigzag values to `take`.
fn each(integers: &[i32], mut take: impl FnMut(u32)) {
    let mut gap = 0;
    for &number in integers {
        if number == 0 {
            gap += 1;
            continue;
        }
        take(std::mem::take(&mut gap));
        take((number << 1 ^ number >> 31).cast_unsigned());
    }
}

/// The number of bytes of a body in messages.
pub(super) fn wire_bytes<N: Number>(numbers: &[N]) -> usize {
    let plain = size_of_val(numbers);
    let Some(integers) = integers(numbers) else { return plain };
    let mut bytes = 0;
    each(integers, |value| bytes += varint::length(value.into()));
    bytes.min(plain)
}

/// The packed values, if that is shorter.
pub(super) fn pack<N: Number>(numbers: &[N]) -> Option<Vec<u8>> {
    let integers = integers(numbers)?;
    let mut bytes = Vec::with_capacity(size_of_val(numbers) / 4);
    each(integers, |value| varint::push(&mut bytes, value.into()));
    (bytes.len() < size_of_val(numbers)).then_some(bytes)
}

/// Unpacks an array of length `numbers`.
///
/// # Errors
/// If the bytes are not those of a packed array of this length.
pub(super) fn unpack<N: Number>(bytes: &[u8], numbers: usize) -> Result<Vec<N>, String> {
    let mut integers: Vec<i32> = Vec::new();
    integers.try_reserve_exact(numbers).map_err(|_| damaged(numbers))?;
    integers.resize(numbers, 0);
    let mut at = 0_usize;
    let mut rest = bytes.iter();
    let next = |rest: &mut Iter<u8>| varint::next(rest).and_then(|value| u32::try_from(value).ok());
    while rest.len() > 0 {
        let (Some(gap), Some(value)) = (next(&mut rest), next(&mut rest)) else { return Err(damaged(numbers)) };
        let place = at.saturating_add(gap as usize);
        let Some(number) = integers.get_mut(place) else { return Err(damaged(numbers)) };
        *number = (value >> 1).cast_signed() ^ -((value & 1).cast_signed());
        at = place + 1;
    }
    bytemuck::try_cast_vec(integers).map_err(|_| damaged(numbers))
}

/// Packed values that take at most this many values of memory are never refused: 1 GiB.
const ALWAYS_PLAUSIBLE: usize = 1 << 28;
/// More values for each byte are a sign of damage.
const MAX_VALUES_PER_BYTE: usize = 4096;

/// Whether this many values can be packed in this many bytes. Damage must not lead to any amount of memory.
pub(super) fn is_plausible(numbers: usize, bytes: usize) -> bool {
    numbers <= bytes.saturating_mul(MAX_VALUES_PER_BYTE).max(ALWAYS_PLAUSIBLE)
}

/// The packed values for a file, if that is shorter and [`unpack_saved`] accepts them.
pub(super) fn pack_saved<N: Number>(numbers: &[N]) -> Option<Vec<u8>> {
    pack(numbers).filter(|packed| is_plausible(numbers.len(), packed.len()))
}

/// Unpacks an array of length `numbers` from a file, which may be damaged.
///
/// # Errors
/// If the bytes are not those of a packed array of this length, or this many values would take far more memory than they have bytes.
pub(super) fn unpack_saved<N: Number>(bytes: &[u8], numbers: usize) -> Result<Vec<N>, String> {
    if is_plausible(numbers, bytes.len()) { unpack(bytes, numbers) } else { Err(damaged(numbers)) }
}

/// Integers inside a saved state, which are packed if that is shorter.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Packed(pub Vec<i32>);

impl Serialize for Packed {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Plain<'a>(#[serde(serialize_with = "plain")] &'a [i32]);
        fn plain<S: Serializer>(numbers: &&[i32], serializer: S) -> Result<S::Ok, S::Error> {
            raw::serialize(numbers, serializer)
        }
        match pack_saved(&self.0) {
            Some(packed) => (self.0.len() as u64, true, Raw(packed)).serialize(serializer),
            None => (self.0.len() as u64, false, Plain(&self.0)).serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for Packed {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let (numbers, is_packed, bytes) = <(u64, bool, Raw<u8>)>::deserialize(deserializer)?;
        let count = usize::try_from(numbers).unwrap_or(usize::MAX);
        let integers = match is_packed {
            true => unpack_saved(&bytes.0, count).map_err(D::Error::custom)?,
            false => bytemuck::allocation::pod_collect_to_vec(&bytes.0[..bytes.0.len() / 4 * 4]),
        };
        if integers.len() == count { Ok(Self(integers)) } else { Err(D::Error::custom(damaged(count))) }
    }
}

fn damaged(numbers: usize) -> String {
    format!("the bytes do not hold {numbers} packed values")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sparse_integers_survive_a_round_trip_in_fewer_bytes() {
        let extremes = [1, -1, 63, 64, -64, -65, 127, 128, i32::MAX, i32::MIN, 8191, 8192];
        for spread in [2, 3, 130, 70_000] {
            let mut numbers = vec![0; spread * extremes.len() + 300];
            extremes.iter().enumerate().for_each(|(at, &number)| numbers[at * spread] = number);
            let bytes = pack(&numbers).expect("mostly zeros");
            assert_eq!(wire_bytes(&numbers), bytes.len());
            assert!(bytes.len() < 100);
            assert_eq!(unpack::<i32>(&bytes, numbers.len()), Ok(numbers));
        }
        assert_eq!(unpack::<i32>(&pack(&[0; 1000]).expect("zeros"), 1000), Ok(vec![0; 1000]));
    }

    #[test]
    fn only_large_arrays_with_few_values_are_sums_to_send_packed() {
        let spread =
            |bytes: usize, gap: usize| (0..bytes as i32 / 4).map(|at| i32::from(at % gap as i32 == 0)).collect::<Vec<_>>();
        // One of `sparse` or `dense` integers is not 0, and takes two bytes when it is packed.
        for (hosts, sparse, dense) in [(Hosts::One, 4, 3), (Hosts::Several, 2, 1)] {
            let least = hosts.least_bytes();
            assert!(hosts.prefers_packed(&spread(least, sparse)) && hosts.prefers_packed(&spread(least, 1000)));
            assert!(!hosts.prefers_packed(&spread(least, dense)) && !hosts.prefers_packed(&spread(least / 2, 1000)));
            assert!(!hosts.prefers_packed(&vec![0.0; least]));
        }
    }

    #[test]
    fn dense_short_and_floating_point_arrays_are_not_packed() {
        assert_eq!((pack(&[7; 1000]), wire_bytes(&[7; 1000])), (None, 4000));
        assert_eq!((pack(&[0.0_f32; 1000]), wire_bytes(&[0.0_f32; 1000])), (None, 4000));
        assert_eq!((pack(&[0; 10]), wire_bytes(&[0; 10])), (None, 40));
    }

    #[test]
    fn integers_in_states_survive_a_round_trip_and_damage_is_refused() {
        use super::super::codec::{decode, encode};
        let sparse = Packed((0..10_000).map(|at| if at % 100 == 0 { at - 5000 } else { 0 }).collect());
        let dense = Packed((0..1000).map(|at| at - 500).collect());
        for (numbers, bytes) in [(&sparse, 400), (&dense, 4010), (&Packed(Vec::new()), 8)] {
            let encoded = encode("counts", numbers).expect("it can be encoded");
            assert!(encoded.len() <= bytes, "{}", encoded.len());
            assert_eq!(&decode::<Packed>("counts", &encoded).expect("it can be decoded"), numbers);
        }
        let claim = |count: u64, is_packed: bool| encode("counts", &(count, is_packed, Raw(vec![0_u8, 2]))).expect("encoded");
        assert!(decode::<Packed>("counts", &claim(3, true)).is_ok());
        for damaged in [claim(u64::MAX, true), claim(1 << 40, true), claim(3, false), claim(0, true)] {
            assert!(decode::<Packed>("counts", &damaged).is_err());
        }
    }

    #[test]
    fn damaged_bytes_are_refused() {
        let numbers: Vec<i32> = (0..1000).map(|at| if at % 50 == 0 { at * 1000 } else { 0 }).collect();
        let bytes = pack(&numbers).expect("mostly zeros");
        assert!(unpack::<i32>(&bytes, 900).is_err());
        assert!(unpack::<i32>(&bytes[..bytes.len() - 1], 1000).is_err());
        assert!(unpack::<i32>(&[128], 1000).is_err());
        assert!(unpack::<i32>(&[255; 12], 1000).is_err());
    }
}
