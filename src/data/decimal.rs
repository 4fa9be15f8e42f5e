//! Short decimal numbers in text: most fields of most tables, read eight bytes at once without a branch for each digit.

/// Eight times this byte.
const fn repeat(byte: u8) -> u64 {
    u64::from_le_bytes([byte; 8])
}

/// 10⁰ to 10⁷.
const POWERS: [f64; 8] = [1.0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7];

/// The number at the start of `field` and how many bytes it takes, if it is `[-]digits[.digits]` of at most eight bytes after the
/// sign, followed by `delimiter`, and by seven more bytes if it is only one long. To the bit what `str::parse` gives: digits and
/// power of ten are exact, so that the only rounding is that of their quotient.
#[inline]
pub(super) fn short(field: &[u8], delimiter: u8) -> Option<(f64, usize)> {
    let negative = usize::from(*field.first()? == b'-');
    // The first character is the lowest byte.
    let word = u64::from_le_bytes(*field.get(negative..)?.first_chunk()?);
    let length = first(word, delimiter);
    if length == 8 && field.get(negative + 8) != Some(&delimiter) {
        return None;
    }
    let point = first(word, b'.');
    let has_point = point < length;
    let before = u64::MAX.checked_shr(64 - 8 * point).unwrap_or(0);
    let without_point = (word & before) | ((word >> 8) & !before);
    let digits = if has_point { without_point } else { word };
    let count = length - u32::from(has_point);
    if count == 0 {
        return None;
    }
    // The last digit becomes the highest byte, and zeros come before the first.
    let digits = (digits ^ repeat(b'0')) << (64 - 8 * count);
    // A byte of 10 or more gets its highest bit from the sum, or has it already.
    if (digits.wrapping_add(repeat(0x76)) | digits) & repeat(0x80) != 0 {
        return None;
    }
    let fraction = if has_point { length - 1 - point } else { 0 };
    let value = f64::from(value(digits)) / POWERS[fraction as usize];
    let value = if negative == 1 { -value } else { value };
    Some((value, negative + length as usize))
}

/// The position of the first byte that equals `byte`; 8 if none does.
#[inline]
fn first(word: u64, byte: u8) -> u32 {
    let zero_where_equal = word ^ repeat(byte);
    let highest_bits = zero_where_equal.wrapping_sub(repeat(1)) & !zero_where_equal & repeat(0x80);
    highest_bits.trailing_zeros() / 8
}

/// The number of these eight digits, the first of which is the lowest byte: pairs, then fours, then all, side by side.
#[inline]
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
        for seed in 0..200_000_u64 {
            // Scattered, with short ones among them.
            let number = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
            let digits = format!("{:0width$}", number % 10_u64.pow(1 + (seed % 8) as u32), width = (seed % 3) as usize);
            for point in (0..=digits.len()).map(Some).chain([None]) {
                for sign in ["", "-"] {
                    let mut text = format!("{sign}{digits}");
                    if let Some(point) = point {
                        text.insert(sign.len() + point, '.');
                    }
                    let found = short(format!("{text},12345678").as_bytes(), b',');
                    if text.len() - sign.len() > 8 {
                        assert_eq!(found, None, "{text}");
                    } else {
                        let (value, length) = found.unwrap();
                        assert_eq!((value.to_bits(), length), (text.parse::<f64>().unwrap().to_bits(), text.len()), "{text}");
                        read += 1;
                    }
                }
            }
        }
        assert!(read > 1_000_000, "{read}");
    }

    #[test]
    fn all_else_is_left_to_others() {
        for text in [
            "",
            ",",
            "-",
            "--1,45678901",
            "-,3456789",
            ".,34567890",
            "-.,4567890",
            "1.2.3,567890",
            "1e5,567890",
            " 1,4567890",
            "1 ,4567890",
            "+1,4567890",
            "12a,567890",
            "\u{b1}1,567890",
            "123456789,",
            "12345678;90",
            "1,2",
            "1:,4567890",
            "/1,4567890",
        ] {
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
