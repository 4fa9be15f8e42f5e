//! One codec for messages, saved states and parcels: a small head by postcard, arrays as raw little-endian bytes.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// What a head or a saved state is made of: any owned serde type that postcard gives back as it was. It goes through bytes under every
/// driver: skipped fields are not there then, and types that describe themselves, `untagged` or `flatten`, cannot be read.
pub trait Serializable: Serialize + DeserializeOwned + Clone + std::fmt::Debug + Send + Sync + 'static {}

impl<T: Serialize + DeserializeOwned + Clone + std::fmt::Debug + Send + Sync + 'static> Serializable for T {}

/// What is written as a saved state of type `S` is, without being one: a reference to it, or such things side by side.
pub trait SerializesAs<S>: Serialize {}

impl<S: Serializable> SerializesAs<S> for &S {}

impl<A, B, X: SerializesAs<A>, Y: SerializesAs<B>> SerializesAs<(A, B)> for (X, Y) {}

/// An array that is written as raw little-endian bytes, not number by number: for the arrays inside saved states.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent, bound = "N: bytemuck::Pod")]
pub struct Raw<N>(#[serde(with = "raw")] pub Vec<N>);

/// How serde writes and reads the array of a [`Raw`], for fields that are plain arrays: `#[serde(with = "raw")]`.
pub mod raw {
    use serde::de::{Error, Visitor};
    use serde::{Deserializer, Serializer};
    use std::marker::PhantomData;

    /// The bytes of the array.
    ///
    /// # Errors
    /// Those of the serializer.
    pub fn serialize<N: bytemuck::Pod, S: Serializer>(array: &[N], serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bytes(bytemuck::cast_slice(array))
    }

    /// The array of these bytes.
    ///
    /// # Errors
    /// Where the bytes end within a number.
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
                        "{} bytes are no whole number of {}",
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

/// What went wrong with bytes that should hold a head or a state.
#[derive(Debug, thiserror::Error)]
#[error("cannot {action} {what}: {cause}")]
pub struct CodecError {
    action: &'static str,
    what: &'static str,
    cause: postcard::Error,
}

/// Writes `value` as bytes; `what` names it in errors.
pub fn encode<T: Serialize>(what: &'static str, value: &T) -> Result<Vec<u8>, CodecError> {
    postcard::to_stdvec(value).map_err(|cause| CodecError { action: "encode", what, cause })
}

/// Reads a value back from `bytes`; `what` names it in errors.
pub fn decode<T: DeserializeOwned>(what: &'static str, bytes: &[u8]) -> Result<T, CodecError> {
    postcard::from_bytes(bytes).map_err(|cause| CodecError { action: "decode", what, cause })
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
    fn arrays_come_back_bit_for_bit_whatever_their_alignment() {
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
    fn a_cut_off_state_is_an_error() {
        let bytes = encode("sample", &Raw(vec![1.0_f64, 2.0])).unwrap();
        assert!(decode::<Raw<f64>>("sample", &bytes[..bytes.len() - 1]).is_err());
        let odd = encode("sample", &Raw(vec![1_i32])).unwrap();
        assert!(decode::<Raw<f64>>("sample", &odd).unwrap_err().to_string().contains("sample"));
    }
}
