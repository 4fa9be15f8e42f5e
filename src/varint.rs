//! Integers in as many bytes as they need: unsigned LEB128, with seven bits in each byte.

use std::slice::Iter;

/// Appends a number.
pub fn push(bytes: &mut Vec<u8>, mut number: u64) {
    while number >= 128 {
        bytes.push((number & 127) as u8 | 128);
        number >>= 7;
    }
    bytes.push(number as u8);
}

/// The number of bytes that a number takes.
pub fn length(number: u64) -> usize {
    (64 - (number | 1).leading_zeros()).div_ceil(7) as usize
}

/// The next number; `None` if the bytes end before it does, or it has more than 64 bits.
#[inline]
pub fn next(bytes: &mut Iter<u8>) -> Option<u64> {
    let mut number = 0;
    for shift in (0..64).step_by(7) {
        let byte = *bytes.next()?;
        let bits = u64::from(byte & 127);
        if bits << shift >> shift != bits {
            return None;
        }
        number |= bits << shift;
        if byte < 128 {
            return Some(number);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_survive_a_round_trip_and_have_the_computed_length() {
        let numbers = [0, 1, 127, 128, 16_383, 16_384, u64::from(u32::MAX), u64::MAX >> 1, u64::MAX];
        let mut bytes = Vec::new();
        for number in numbers {
            let before = bytes.len();
            push(&mut bytes, number);
            assert_eq!(bytes.len() - before, length(number));
        }
        let mut rest = bytes.iter();
        assert_eq!(std::iter::from_fn(|| next(&mut rest)).collect::<Vec<_>>(), numbers);
    }

    #[test]
    fn cut_and_too_long_numbers_are_refused() {
        let refused = |bytes: &[u8]| next(&mut bytes.iter()).is_none();
        assert!(refused(&[]) && refused(&[128, 255]));
        assert!(refused(&[255; 12]) && refused(&[255, 255, 255, 255, 255, 255, 255, 255, 255, 2]));
    }
}
