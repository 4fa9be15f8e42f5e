//! Short decimal numbers in text: most fields of most tables, read eight bytes at once without a branch for each digit.

use std::hint::select_unpredictable;

/// Eight times this byte.
const fn repeat(byte: u8) -> u64 {
    u64::from_le_bytes([byte; 8])
}

/// 10⁰ to 10⁷.
const POWERS: [f64; 8] = [1.0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7];

/// The number at the start of `field` and how many bytes it takes, if it is `[-]digits[.digits]` of at most eight bytes after the
/// sign, `delimiter` follows, and eight bytes can be read after the sign. To the bit what `str::parse` gives: digits and power of ten
/// are exact, so that the only rounding is that of their quotient.
#[inline(always)]
pub(super) fn short(field: &[u8], delimiter: u8) -> Option<(f64, usize)> {
    let negative = *field.first()? == b'-';
    let sign = usize::from(negative);
    // The first character is the lowest byte.
    let word = u64::from_le_bytes(*field.get(sign..)?.first_chunk()?);
    let length = bytes_before(first_match(word, delimiter));
    if length == 8 && field.get(sign + 8) != Some(&delimiter) {
        return None;
    }
    let points = first_match(word, b'.');
    let point = bytes_before(points);
    // Points come as they like, and signs: no branches for them.
    let has_point = point < length;
    let count = select_unpredictable(has_point, length.wrapping_sub(1), length);
    if count == 0 {
        return None;
    }
    // All bits below the byte of the point; all there are if there is none. A point behind the number moves nothing within it.
    let before = ((points & points.wrapping_neg()) >> 7).wrapping_sub(1);
    let without_point = (word & before) | ((word >> 8) & !before);
    // The last digit becomes the highest byte, and zeros come before the first.
    let digits = (without_point ^ repeat(b'0')) << (64 - 8 * count);
    // A byte of 10 or more gets its highest bit from the sum, or has it already.
    if (digits.wrapping_add(repeat(0x76)) | digits) & repeat(0x80) != 0 {
        return None;
    }
    let power = select_unpredictable(has_point, length.wrapping_sub(point + 1), 0);
    let value = f64::from(value(digits)) / POWERS[power & 7];
    Some((f64::from_bits(value.to_bits() | u64::from(negative) << 63), sign + length))
}

/// The highest bit of the first byte that equals `byte`, and of some bytes behind it; nothing if none does.
#[inline(always)]
fn first_match(word: u64, byte: u8) -> u64 {
    let zero_where_equal = word ^ repeat(byte);
    zero_where_equal.wrapping_sub(repeat(1)) & !zero_where_equal & repeat(0x80)
}

/// How many bytes come before the first of these bits; 8 if there are none.
#[inline(always)]
fn bytes_before(highest_bits: u64) -> usize {
    (highest_bits.trailing_zeros() / 8) as usize
}

/// The number of these eight digits, the first of which is the lowest byte: pairs, then fours, then all, side by side.
#[inline(always)]
fn value(digits: u64) -> u32 {
    const EVERY_OTHER_PAIR: u64 = 0x0000_00ff_0000_00ff;
    let pairs = digits.wrapping_mul(10).wrapping_add(digits >> 8);
    let high = (pairs & EVERY_OTHER_PAIR).wrapping_mul(100 + (1_000_000 << 32));
    let low = ((pairs >> 16) & EVERY_OTHER_PAIR).wrapping_mul(1 + (10_000 << 32));
    // The upper half is at most 99,999,999.
    (high.wrapping_add(low) >> 32) as u32
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn every_shape_of_a_short_number_is_read_to_the_bit() {
        let mut read = 0;
        for seed in 0..10_000_u64 {
            // Scattered, with short ones among them.
            let number = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
            let digits = format!("{:0width$}", number % 10_u64.pow(1 + (seed % 8) as u32), width = (seed % 3) as usize);
            for point in (0..=digits.len()).map(Some).chain([None]) {
                for sign in ["", "-"] {
                    let mut text = format!("{sign}{digits}");
                    if let Some(point) = point {
                        text.insert(sign.len() + point, '.');
                    }
                    for behind in [",12345678", ",.2345678", ",,,,,,,,"] {
                        let found = short(format!("{text}{behind}").as_bytes(), b',');
                        if text.len() - sign.len() > 8 {
                            assert_eq!(found, None, "{text}");
                        } else {
                            let (value, length) = found.unwrap();
                            let expected = (text.parse::<f64>().unwrap().to_bits(), text.len());
                            assert_eq!((value.to_bits(), length), expected, "{text}");
                            read += 1;
                        }
                    }
                }
            }
        }
        assert!(read > 200_000, "{read}");
    }

    #[test]
    fn all_else_is_left_to_others() {
        for text in [
            "",
            "-",
            "--1",
            ".",
            "-.",
            "1.2.3",
            "1e5",
            " 1",
            "1 ",
            "+1",
            "12a",
            "\u{b1}1",
            "123456789",
            "1:",
            "/1",
            "..",
            "1..",
            "nan",
        ] {
            assert_eq!(short(format!("{text},123456789").as_bytes(), b','), None, "{text:?}");
        }
        // No delimiter, or too near to the end to look at eight bytes.
        for text in ["", "12345678", "1234567;9012", "1,2", "-1,345678"] {
            assert_eq!(short(text.as_bytes(), b','), None, "{text:?}");
        }
        // Any byte beside the digits and the point, at any place.
        for byte in (0..=255_u8).filter(|byte| !b"0123456789.,".contains(byte)) {
            for at in 0..4 {
                let mut text = *b"1234,67890123";
                text[at] = byte;
                assert_eq!(short(&text, b',').is_some(), at == 0 && byte == b'-', "{byte} at {at}");
            }
        }
    }
}
