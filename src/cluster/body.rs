//! The flat array of a task or report: a shared slice that its last holder can take without a copy.

use crate::number::Number;
use std::ops::{Deref, Range};
use std::sync::Arc;

/// A flat array that is sent with a task or a report; clones share its memory.
#[derive(Clone, Debug)]
pub struct Body<N> {
    data: Arc<Vec<N>>,
    range: Range<usize>,
}

impl<N: Number> Body<N> {
    /// An array of length 0.
    pub fn empty() -> Self {
        Vec::new().into()
    }

    /// The values of several arrays one after another.
    pub(super) fn joined(mut bodies: Vec<Self>) -> Self {
        bodies.retain(|body| !body.is_empty());
        match bodies.len() {
            1 => bodies.remove(0),
            _ => bodies.iter().map(|body| &**body).collect::<Vec<&[N]>>().concat().into(),
        }
    }

    /// A part of this array; shares its memory.
    pub(super) fn slice(&self, range: Range<usize>) -> Self {
        let start = self.range.start + range.start;
        Self { data: self.data.clone(), range: start..self.range.start + range.end }
    }

    /// Whether this is the only holder of the whole array, which [`into_vec`](Self::into_vec) then takes without a copy.
    pub(super) fn is_sole(&self) -> bool {
        self.range == (0..self.data.len()) && Arc::strong_count(&self.data) == 1
    }

    /// The values as bytes.
    pub(super) fn bytes(&self) -> &[u8] {
        bytemuck::cast_slice(self)
    }

    /// Reads values from bytes.
    ///
    /// # Errors
    /// If the number of bytes is not a multiple of the size of a value.
    pub(super) fn from_bytes(bytes: &[u8]) -> Result<Self, String> {
        if !bytes.len().is_multiple_of(size_of::<N>()) {
            return Err(format!("{} bytes are not a whole number of {} values", bytes.len(), N::NAME));
        }
        Ok(bytemuck::allocation::pod_collect_to_vec::<u8, N>(bytes).into())
    }

    /// The values as an owned array: without a copy if this is the only holder of the whole array.
    pub fn into_vec(self) -> Vec<N> {
        if self.range == (0..self.data.len()) {
            Arc::try_unwrap(self.data).unwrap_or_else(|shared| shared.as_ref().clone())
        } else {
            self.data[self.range].to_vec()
        }
    }
}

impl<N> Deref for Body<N> {
    type Target = [N];

    fn deref(&self) -> &[N] {
        &self.data[self.range.clone()]
    }
}

impl<N: Number> From<Vec<N>> for Body<N> {
    fn from(data: Vec<N>) -> Self {
        Arc::new(data).into()
    }
}

impl<N: Number> From<Arc<Vec<N>>> for Body<N> {
    fn from(data: Arc<Vec<N>>) -> Self {
        let range = 0..data.len();
        Self { data, range }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_holder_takes_the_array_without_a_copy() {
        let numbers = vec![1.0_f64, 2.0, 3.0];
        let address = numbers.as_ptr();
        let body: Body<f64> = numbers.into();
        let other = body.clone();
        let copied = body.into_vec();
        assert_ne!(copied.as_ptr(), address);
        let taken = other.into_vec();
        assert_eq!(taken.as_ptr(), address);
    }

    #[test]
    fn a_body_is_read_from_its_bytes_and_truncated_bytes_are_refused() {
        let body: Body<f64> = vec![1.5, f64::MIN_POSITIVE].into();
        assert_eq!(&*Body::<f64>::from_bytes(body.bytes()).expect("whole"), &*body);
        assert!(Body::<f64>::from_bytes(&body.bytes()[..7]).is_err_and(|cause| cause.contains("7 bytes")));
    }

    #[test]
    fn a_slice_of_a_slice_has_the_right_offset() {
        let body: Body<i32> = (0..10).collect::<Vec<_>>().into();
        let inner = body.slice(2..8).slice(1..3);
        assert_eq!(&*inner, &[3, 4]);
        assert_eq!(inner.into_vec(), vec![3, 4]);
    }
}
