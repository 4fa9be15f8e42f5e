//! Parses short decimal numbers, eight bytes at once and without a branch per digit.
//!
//! Most fields of most tables are such numbers.

/// A word of eight equal bytes.
const fn repeat(byte: u8) -> u64 {
    u64::from_le_bytes([byte; 8])
}

/// 10⁰ to 10⁷.
const POWERS_OF_TEN: [f64; 8] = [1.0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7];

/// Parses the number that starts at `start`; returns it and its end. `None` unless the number is `[-]digits[.digits]` with at most eight
/// bytes after the sign, `delimiter` follows, and the text has eight bytes after the sign. The result has the same bits as that of
/// `str::parse`: digits and power of ten are exact, so only their quotient is rounded.
#[inline(always)]
pub(crate) fn parse_short(text: &[u8], start: usize, delimiter: u8) -> Option<(f64, usize)> {
    let negative = *text.get(start)? == b'-';
    let start = start + usize::from(negative);
    // The first character is the lowest byte.
    let word = u64::from_le_bytes(*text.get(start..)?.first_chunk()?) ^ repeat(b'0');
    // Digits are now below 10. The highest bit marks all other bytes: the sum sets it, or it is set already. A carry reaches only bytes
    // after one that is neither digit nor point nor delimiter.
    let non_digits = (word.wrapping_add(repeat(0x76)) | word) & repeat(0x80);
    let first = (non_digits.trailing_zeros() / 8) as usize;
    let after_digits = *text.get(start + first)?;
    let (digits, count, power, length) = if after_digits == delimiter {
        (word, first, 1.0, first)
    } else if after_digits == b'.' && first < 8 {
        let second = ((non_digits & (non_digits - 1)).trailing_zeros() / 8) as usize;
        if text.get(start + second) != Some(&delimiter) {
            return None;
        }
        let before = ((non_digits & non_digits.wrapping_neg()) >> 7) - 1;
        ((word & before) | ((word >> 8) & !before), second - 1, POWERS_OF_TEN[second - 1 - first], second)
    } else {
        return None;
    };
    if count == 0 {
        return None;
    }
    // The last digit becomes the highest byte, and zeros come before the first.
    let value = f64::from(parse_digits(digits << (64 - 8 * count))) / power;
    // Signs are hard to predict, so this has no branch.
    Some((f64::from_bits(value.to_bits() | u64::from(negative) << 63), start + length))
}

/// Converts eight digits, the first in the lowest byte: adds up pairs, then groups of four, then all.
#[inline(always)]
fn parse_digits(digits: u64) -> u32 {
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
            // Pseudorandom numbers of one to eight digits.
            let number = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
            let digits = format!("{:0width$}", number % 10_u64.pow(1 + (seed % 8) as u32), width = (seed % 3) as usize);
            for point in (0..=digits.len()).map(Some).chain([None]) {
                for sign in ["", "-"] {
                    let mut text = format!("{sign}{digits}");
                    if let Some(point) = point {
                        text.insert(sign.len() + point, '.');
                    }
                    for after in [",12345678", ",.2345678", ",,,,,,,,"] {
                        let found = parse_short(format!("{text}{after}").as_bytes(), 0, b',');
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
    fn all_else_is_not_parsed() {
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
            assert_eq!(parse_short(format!("{text},123456789").as_bytes(), 0, b','), None, "{text:?}");
        }
        // No delimiter, or fewer than eight bytes left.
        for text in ["", "12345678", "1234567;9012", "1,2", "-1,34567"] {
            assert_eq!(parse_short(text.as_bytes(), 0, b','), None, "{text:?}");
        }
        // Any byte but digits and the point, at any position.
        for byte in (0..=255_u8).filter(|byte| !b"0123456789.,".contains(byte)) {
            for at in 0..4 {
                let mut text = *b"1234,67890123";
                text[at] = byte;
                assert_eq!(parse_short(&text, 0, b',').is_some(), at == 0 && byte == b'-', "{byte} at {at}");
            }
        }
    }
}
