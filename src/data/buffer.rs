//! [`Buffer`]: values in memory that large operands are fast to read from.

use crate::error::Error;
use std::ops::{Deref, DerefMut};

/// From this size on a buffer is a mapping of its own, on huge pages where the system has them.
const MAPPED_BYTES: usize = 2 << 20;

/// A run of plain values. Large ones begin at a page and lie on huge pages: reading a matrix of 150 MB from pages of 4 KiB
/// takes 37,500 address translations, which in a virtual machine cost as much as the reading itself.
pub struct Buffer<T>(Storage<T>);

enum Storage<T> {
    Heap(Vec<T>),
    Mapped { map: memmap2::MmapMut, kind: std::marker::PhantomData<T> },
}

impl<T: bytemuck::Pod> Buffer<T> {
    /// `length` zeros.
    ///
    /// # Errors
    /// [`Error::Limit`] when there is not that much memory.
    pub fn zeroed(length: usize) -> Result<Self, Error> {
        let too_large = || Error::Limit {
            what: "memory for a matrix, in values".into(),
            requested: length as u64,
            max: (isize::MAX as usize / size_of::<T>().max(1)) as u64,
        };
        let bytes = length.checked_mul(size_of::<T>()).ok_or_else(too_large)?;
        if bytes < MAPPED_BYTES {
            return Ok(Self(Storage::Heap(vec![T::zeroed(); length])));
        }
        let map = memmap2::MmapMut::map_anon(bytes).map_err(|_| too_large())?;
        // Advice only: without huge pages everything works, slower.
        #[cfg(target_os = "linux")]
        let _ = map.advise(memmap2::Advice::HugePage);
        Ok(Self(Storage::Mapped { map, kind: std::marker::PhantomData }))
    }
}

impl<T> From<Vec<T>> for Buffer<T> {
    fn from(values: Vec<T>) -> Self {
        Self(Storage::Heap(values))
    }
}

impl<T: bytemuck::Pod> Deref for Buffer<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        match &self.0 {
            Storage::Heap(values) => values,
            Storage::Mapped { map, .. } => bytemuck::cast_slice(map),
        }
    }
}

impl<T: bytemuck::Pod> DerefMut for Buffer<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        match &mut self.0 {
            Storage::Heap(values) => values,
            Storage::Mapped { map, .. } => bytemuck::cast_slice_mut(map),
        }
    }
}

impl<T: bytemuck::Pod> Clone for Buffer<T> {
    fn clone(&self) -> Self {
        Self::from(self.to_vec())
    }
}

impl<T: bytemuck::Pod + PartialEq> PartialEq for Buffer<T> {
    fn eq(&self, other: &Self) -> bool {
        self[..] == other[..]
    }
}

impl<T: bytemuck::Pod + std::fmt::Debug> std::fmt::Debug for Buffer<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self[..].fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_and_mapped_buffers_hold_what_is_written() {
        for length in [0, 1, 1_000, MAPPED_BYTES / 4 - 1, MAPPED_BYTES / 4, MAPPED_BYTES] {
            let mut buffer = Buffer::<f32>::zeroed(length).unwrap();
            assert_eq!(buffer.len(), length);
            assert!(buffer.iter().all(|&value| value == 0.0));
            if let Some(last) = buffer.last_mut() {
                *last = 1.5;
                assert_eq!(buffer.clone(), buffer);
                assert_eq!(buffer[length - 1], 1.5);
            }
        }
    }

    #[test]
    fn more_than_there_can_be_is_an_error() {
        assert!(Buffer::<f32>::zeroed(usize::MAX / 2).is_err());
        assert!(Buffer::<f32>::zeroed(1 << 60).is_err());
    }
}
