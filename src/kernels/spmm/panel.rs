//! Some columns of B packed together, row after row, in whole cache lines: small enough to stay in the second-level cache
//! while all rows of A pass by.

use super::Value;
use super::tile::{self, Columns, Entries, Packed, Sums};
use crate::data::Buffer;
use crate::error::Error;
use crate::simd::memory::prefetch_near;
use crate::simd::{LINE, Simd, SimdBase, simd};

/// Bytes of a row of a panel.
pub(super) const PANEL_BYTES: usize = 2 * LINE;

/// Memory for a panel, at the beginning of a huge page: an address translation that misses costs more than reading the
/// line from the second-level cache.
#[derive(Debug)]
pub(super) struct Panel(Buffer<u8>);

impl Panel {
    const HUGE_PAGE: usize = 2 << 20;

    /// For so many rows.
    ///
    /// # Errors
    /// [`Error::Limit`] when there is no memory.
    pub(super) fn new(rows: usize) -> Result<Self, Error> {
        Ok(Self(Buffer::zeroed(rows.saturating_mul(PANEL_BYTES).saturating_add(Self::HUGE_PAGE))?))
    }

    /// The rows.
    pub(super) fn values<T: Value>(&mut self) -> &mut [T] {
        let start = self.0.as_ptr().align_offset(Self::HUGE_PAGE).min(self.0.len());
        let end = self.0.len() - (self.0.len() - start) % PANEL_BYTES;
        bytemuck::cast_slice_mut(&mut self.0[start..end])
    }
}

/// Copies columns of B; what a row of the panel has more stays as it is, and nobody looks at it.
#[simd]
pub(super) fn pack<S: Simd, T: Value>(simd: S, b: Columns<'_, T>, panel: &mut [T]) {
    /// Rows of B that are asked for before they are copied.
    const AHEAD: usize = 16;
    let lanes = T::Native::<S>::LEN;
    let whole = b.width / lanes * lanes;
    for (row, packed) in panel.chunks_exact_mut(PANEL_BYTES / size_of::<T>()).enumerate() {
        let first = row * b.stride + b.column;
        let Some(columns) = b.values.get(first..first + b.width) else { break };
        prefetch_near(b.values, first + AHEAD * b.stride);
        for at in (0..whole).step_by(lanes) {
            T::Native::<S>::from_slice(simd, &columns[at..][..lanes]).store_slice(&mut packed[at..][..lanes]);
        }
        packed[whole..b.width].copy_from_slice(&columns[whole..]);
    }
}

/// The first `width` columns of the product of some rows with a panel.
#[simd]
pub(super) fn add<S: Simd, T: Value>(simd: S, a: Entries<'_, T>, panel: &[T], width: usize, sums: Sums<'_, T>) {
    if size_of::<T>() == 4 {
        let panel = panel.as_chunks::<{ PANEL_BYTES / 4 }>().0;
        tile::add(simd, a, Packed(panel), width, 0, sums);
    } else {
        let panel = panel.as_chunks::<{ PANEL_BYTES / 8 }>().0;
        tile::add(simd, a, Packed(panel), width, 0, sums);
    }
}
