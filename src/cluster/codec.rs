//! Serialization of messages and saved states: postcard for heads, raw little-endian bytes for arrays.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::io::Write;

/// Types of heads and saved states: any owned serde type that survives a round trip through postcard. Values are serialized under
/// every driver, so skipped fields are lost, and self-describing formats (`untagged`, `flatten`) cannot be read.
pub trait Serializable: Serialize + DeserializeOwned + Clone + std::fmt::Debug + Send + Sync + 'static {}

impl<T: Serialize + DeserializeOwned + Clone + std::fmt::Debug + Send + Sync + 'static> Serializable for T {}

/// Types that serialize to the same bytes as `S` without being `S`: references, and tuples of such types.
pub trait SerializesAs<S>: Serialize {}

impl<S: Serializable> SerializesAs<S> for &S {}

impl<A, B, X: SerializesAs<A>, Y: SerializesAs<B>> SerializesAs<(A, B)> for (X, Y) {}

/// An array inside a saved state that is serialized as raw little-endian bytes, not element by element.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent, bound = "N: bytemuck::Pod")]
pub struct Raw<N>(#[serde(with = "raw")] pub Vec<N>);

/// Serialization of array fields as raw bytes: `#[serde(with = "raw")]`.
pub mod raw {
    use serde::de::{Error, Visitor};
    use serde::{Deserializer, Serializer};
    use std::marker::PhantomData;

    /// Serializes the array as bytes.
    ///
    /// # Errors
    /// Errors of the serializer.
    pub fn serialize<N: bytemuck::Pod, S: Serializer>(array: &[N], serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bytes(bytemuck::cast_slice(array))
    }

    /// Reads an array from bytes.
    ///
    /// # Errors
    /// If the number of bytes is not a multiple of the element size.
    pub fn deserialize<'de, N: bytemuck::Pod, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<N>, D::Error> {
        struct Bytes<N>(PhantomData<N>);
        impl<N: bytemuck::Pod> Visitor<'_> for Bytes<N> {
            type Value = Vec<N>;

            fn expecting(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
                write!(f, "the raw bytes of an array of {}", std::any::type_name::<N>())
            }

            fn visit_bytes<E: Error>(self, bytes: &[u8]) -> Result<Vec<N>, E> {
                if !bytes.len().is_multiple_of(size_of::<N>()) {
                    return Err(E::custom(format!(
                        "{} bytes are not a whole number of {} values",
                        bytes.len(),
                        std::any::type_name::<N>()
                    )));
                }
                Ok(bytemuck::allocation::pod_collect_to_vec(bytes))
            }
        }
        deserializer.deserialize_bytes(Bytes(PhantomData)).map_err(D::Error::custom)
    }
}

/// A head or a state that cannot be encoded or decoded.
#[derive(Debug, thiserror::Error)]
#[error("cannot {action} {what}: {cause}")]
pub struct CodecError {
    action: &'static str,
    what: &'static str,
    cause: postcard::Error,
}

/// Serializes `value`; `what` names it in errors.
pub fn encode<T: Serialize>(what: &'static str, value: &T) -> Result<Vec<u8>, CodecError> {
    postcard::to_stdvec(value).map_err(|cause| CodecError { action: "encode", what, cause })
}

/// Serializes `value` to a writer; `what` names it in errors, which do not have those of the writer.
pub fn encode_to<T: Serialize>(to: &mut dyn Write, what: &'static str, value: &T) -> Result<(), CodecError> {
    postcard::to_io(value, to).map(drop).map_err(|cause| CodecError { action: "encode", what, cause })
}

/// Reads a value from `bytes`; `what` names it in errors.
pub fn decode<T: DeserializeOwned>(what: &'static str, bytes: &[u8]) -> Result<T, CodecError> {
    postcard::from_bytes(bytes).map_err(|cause| CodecError { action: "decode", what, cause })
}

/// Serializes `value` behind `magic` and a checksum; `what` names it in errors.
pub fn seal<T: Serialize>(magic: &[u8], what: &'static str, value: &T) -> Result<Vec<u8>, CodecError> {
    let body = encode(what, value)?;
    Ok([magic, blake3::hash(&body).as_bytes(), &body].concat())
}

/// Reads a value that was sealed with the same `magic`.
///
/// # Errors
/// If the bytes are truncated, damaged or of another version.
pub fn unseal<T: DeserializeOwned>(magic: &[u8], what: &'static str, bytes: &[u8]) -> Result<T, String> {
    let rest = bytes.strip_prefix(magic).ok_or_else(|| format!("it does not begin like {what} of this version"))?;
    let (sum, body) = rest.split_at_checked(blake3::OUT_LEN).ok_or("it is truncated")?;
    if blake3::hash(body).as_bytes() != sum {
        return Err("its checksum is wrong".into());
    }
    decode(what, body).map_err(|error| error.to_string())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
    struct Sample {
        round: u64,
        particles: Raw<f64>,
        counts: Raw<i32>,
    }

    #[test]
    fn arrays_survive_a_round_trip_bit_for_bit_at_any_alignment() {
        for shift in 0..9 {
            let sample = Sample {
                round: 1 << (7 * shift),
                particles: Raw(vec![-0.0, f64::NAN, f64::MIN_POSITIVE, 1.5]),
                counts: Raw(vec![i32::MIN, 7]),
            };
            let bytes = encode("sample", &sample).unwrap();
            let back: Sample = decode("sample", &bytes).unwrap();
            assert_eq!(back.round, sample.round);
            assert_eq!(back.counts, sample.counts);
            let bits = |raw: &Raw<f64>| raw.0.iter().map(|x| x.to_bits()).collect::<Vec<_>>();
            assert_eq!(bits(&back.particles), bits(&sample.particles));
        }
    }

    #[test]
    fn a_truncated_state_is_an_error() {
        let bytes = encode("sample", &Raw(vec![1.0_f64, 2.0])).unwrap();
        assert!(decode::<Raw<f64>>("sample", &bytes[..bytes.len() - 1]).is_err());
        let odd = encode("sample", &Raw(vec![1_i32])).unwrap();
        assert!(decode::<Raw<f64>>("sample", &odd).unwrap_err().to_string().contains("sample"));
    }
}
