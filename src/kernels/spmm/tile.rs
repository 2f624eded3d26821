//! The inner loop: rows of C summed in registers, in groups of [`GROUP`] entries.
//!
//! ```text
//! for each row of A
//!   sums = 0                                   up to MOST_VECTORS registers: a tile of the row of C
//!   for each group of entries (k0 .. k3)
//!     for each vector v of the tile
//!       group   = a0 B[k0, v];  group += a1 B[k1, v];  group += a2 B[k2, v];  group += a3 B[k3, v]
//!       sums[v] += group
//! ```
//!
//! Groups depend on each other through one addition only, so the processor works on several of them at once; a chain of
//! multiply-adds over the whole row would wait four cycles for each. The order is the same whatever the tile.

use super::Value;
use crate::simd::memory::{load_first, prefetch_near, stream};
use crate::simd::{LINE, Simd, SimdBase, SimdFloat, simd};

/// Entries that are added up before they are added to the sums of a row.
const GROUP: usize = 4;

/// Vectors of the widest tile: with a group's values and a sum of its own they fit the registers, 32 of AVX-512 and 16 of
/// the others.
pub(super) const MOST_VECTORS: usize = 8;

/// Neighbouring rows of a sparse matrix: `indptr` says where each begins in the arrays of the whole matrix, and where the
/// last one ends.
#[derive(Clone, Copy)]
pub(super) struct Entries<'a, T> {
    pub(super) indptr: &'a [usize],
    pub(super) indices: &'a [u32],
    pub(super) values: &'a [T],
}

/// Where sums go: columns from `column` on of rows `stride` apart.
pub(super) struct Sums<'a, T> {
    pub(super) values: &'a mut [T],
    pub(super) stride: usize,
    pub(super) column: usize,
    /// Whether they are stored past the caches.
    pub(super) streamed: bool,
}

/// The rows that are gathered.
pub(super) trait Gathered<T>: Copy {
    /// A row: as many values as are summed.
    fn row(&self, row: u32) -> &[T];
    /// Asks for a row that will be needed soon.
    fn ask(&self, row: u32);
}

/// `width` columns of B from `column` on, in rows `stride` apart.
#[derive(Clone, Copy)]
pub(super) struct Columns<'a, T> {
    pub(super) values: &'a [T],
    pub(super) stride: usize,
    pub(super) column: usize,
    pub(super) width: usize,
}

impl<T: Value> Gathered<T> for Columns<'_, T> {
    #[inline(always)]
    fn row(&self, row: u32) -> &[T] {
        &self.values[row as usize * self.stride + self.column..][..self.width]
    }

    #[inline(always)]
    fn ask(&self, row: u32) {
        let first = row as usize * self.stride + self.column;
        for value in (0..self.width).step_by(LINE / size_of::<T>()) {
            prefetch_near(self.values, first + value);
        }
    }
}

/// All columns of rows that lie one after the other. A length that is known when this is compiled makes finding a row one
/// comparison and one shift.
#[derive(Clone, Copy)]
pub(super) struct Packed<'a, T, const LENGTH: usize>(pub(super) &'a [[T; LENGTH]]);

impl<T: Value, const LENGTH: usize> Gathered<T> for Packed<'_, T, LENGTH> {
    #[inline(always)]
    fn row(&self, row: u32) -> &[T] {
        &self.0[row as usize]
    }

    #[inline(always)]
    fn ask(&self, _: u32) {}
}

/// Sums of `width` columns, at most [`MOST_VECTORS`] of vectors. Rows are asked for `ahead` groups before they are needed; 0
/// is not at all.
///
/// Where the width is no whole number of vectors, the last vector begins early, and some columns are summed twice: that is
/// cheaper than to read a part of a vector, and gives the same. Only less than one vector is read in part.
#[simd]
pub(super) fn add<S: Simd, T: Value, B: Gathered<T>>(
    simd: S,
    a: Entries<'_, T>,
    b: B,
    width: usize,
    ahead: usize,
    sums: Sums<'_, T>,
) {
    let lanes = T::Native::<S>::LEN;
    match (width / lanes, width % lanes > 0) {
        (0, _) => tile::<S, T, B, 0, true>(simd, a, b, width, ahead, sums),
        (1, false) => tile::<S, T, B, 1, false>(simd, a, b, width, ahead, sums),
        (2, false) => tile::<S, T, B, 2, false>(simd, a, b, width, ahead, sums),
        (3, false) => tile::<S, T, B, 3, false>(simd, a, b, width, ahead, sums),
        (4, false) => tile::<S, T, B, 4, false>(simd, a, b, width, ahead, sums),
        (5, false) => tile::<S, T, B, 5, false>(simd, a, b, width, ahead, sums),
        (6, false) => tile::<S, T, B, 6, false>(simd, a, b, width, ahead, sums),
        (7, false) => tile::<S, T, B, 7, false>(simd, a, b, width, ahead, sums),
        (1, true) => tile::<S, T, B, 1, true>(simd, a, b, width, ahead, sums),
        (2, true) => tile::<S, T, B, 2, true>(simd, a, b, width, ahead, sums),
        (3, true) => tile::<S, T, B, 3, true>(simd, a, b, width, ahead, sums),
        (4, true) => tile::<S, T, B, 4, true>(simd, a, b, width, ahead, sums),
        (5, true) => tile::<S, T, B, 5, true>(simd, a, b, width, ahead, sums),
        (6, true) => tile::<S, T, B, 6, true>(simd, a, b, width, ahead, sums),
        (7, true) => tile::<S, T, B, 7, true>(simd, a, b, width, ahead, sums),
        _ => {
            debug_assert_eq!(width, MOST_VECTORS * lanes, "a tile is at most {MOST_VECTORS} vectors wide");
            tile::<S, T, B, MOST_VECTORS, false>(simd, a, b, width, ahead, sums);
        }
    }
}

/// As [`add`], for all columns of a B of less than a vector, or of one.
#[simd]
pub(super) fn add_narrow<S: Simd, T: Value>(simd: S, a: Entries<'_, T>, b: Columns<'_, T>, sums: Sums<'_, T>) {
    macro_rules! of_width {
        ($($width:literal)*) => {
            match b.width {
                $($width if $width < T::Native::<S>::LEN => {
                    tile::<S, T, _, 0, true>(simd, a, Packed(b.values.as_chunks::<$width>().0), $width, 0, sums);
                })*
                width if width == T::Native::<S>::LEN => one_vector(simd, a, b, sums),
                width => debug_assert!(false, "{width} columns are more than a vector"),
            }
        };
    }
    // All there are: a vector has at most 16 lanes.
    of_width!(1 2 3 4 5 6 7 8 9 10 11 12 13 14 15);
}

#[simd]
fn one_vector<S: Simd, T: Value>(simd: S, a: Entries<'_, T>, b: Columns<'_, T>, sums: Sums<'_, T>) {
    macro_rules! of_width {
        ($($width:literal)*) => {
            match b.width {
                $($width => {
                    tile::<S, T, _, 1, false>(simd, a, Packed(b.values.as_chunks::<$width>().0), $width, 0, sums);
                })*
                width => tile::<S, T, _, 1, false>(simd, a, b, width, 0, sums),
            }
        };
    }
    of_width!(2 4 8 16);
}

#[simd]
fn tile<S: Simd, T: Value, B: Gathered<T>, const VECTORS: usize, const LAST: bool>(
    simd: S,
    a: Entries<'_, T>,
    b: B,
    width: usize,
    ahead: usize,
    sums: Sums<'_, T>,
) {
    let lanes = T::Native::<S>::LEN;
    let zero = T::Native::<S>::splat(simd, T::default());
    let rows = sums.values.chunks_exact_mut(sums.stride);
    for (row, sums_of_row) in a.indptr.windows(2).zip(rows) {
        let (start, end) = (row[0], row[1]);
        let mut whole = [zero; VECTORS];
        let mut last = zero;
        let (columns, columns_left) = a.indices[start..end].as_chunks::<GROUP>();
        let (values, values_left) = a.values[start..end].as_chunks::<GROUP>();
        let mut next = start + ahead * GROUP;
        for (columns, values) in columns.iter().zip(values) {
            if ahead > 0 && next + GROUP <= a.indices.len() {
                for &column in &a.indices[next..next + GROUP] {
                    b.ask(column);
                }
                next += GROUP;
            }
            add_group::<S, T, B, VECTORS, LAST>(simd, b, width, columns, values, &mut whole, &mut last);
        }
        if !columns_left.is_empty() {
            let mut group = [zero; VECTORS];
            let mut last_group = zero;
            for (&column, &value) in columns_left.iter().zip(values_left) {
                let row = &b.row(column)[..width];
                let factor = T::Native::<S>::splat(simd, value);
                for (vector, sum) in group.iter_mut().enumerate() {
                    let row = T::Native::<S>::from_slice(simd, &row[vector * lanes..][..lanes]);
                    *sum = factor.mul_add(row, *sum);
                }
                if LAST {
                    last_group = factor.mul_add(last_of::<S, T, VECTORS>(simd, row, width), last_group);
                }
            }
            for (sum, group) in whole.iter_mut().zip(group) {
                *sum += group;
            }
            last += last_group;
        }
        let out = &mut sums_of_row[sums.column..][..width];
        for vector in 0..VECTORS {
            let out = &mut out[vector * lanes..][..lanes];
            if sums.streamed { stream(simd, whole[vector], out) } else { whole[vector].store_slice(out) }
        }
        if LAST && VECTORS == 0 {
            out.copy_from_slice(&last.as_slice()[..width]);
        } else if LAST {
            last.store_slice(&mut out[width - lanes..]);
        }
    }
}

#[inline(always)]
fn add_group<S: Simd, T: Value, B: Gathered<T>, const VECTORS: usize, const LAST: bool>(
    simd: S,
    b: B,
    width: usize,
    columns: &[u32; GROUP],
    values: &[T; GROUP],
    whole: &mut [T::Native<S>; VECTORS],
    last: &mut T::Native<S>,
) {
    let lanes = T::Native::<S>::LEN;
    let mut rows: [&[T]; GROUP] = [&[]; GROUP];
    let mut factors = [T::Native::<S>::splat(simd, T::default()); GROUP];
    for i in 0..GROUP {
        rows[i] = &b.row(columns[i])[..width];
        factors[i] = T::Native::<S>::splat(simd, values[i]);
    }
    for vector in 0..VECTORS {
        let mut group = factors[0] * T::Native::<S>::from_slice(simd, &rows[0][vector * lanes..][..lanes]);
        for i in 1..GROUP {
            let row = T::Native::<S>::from_slice(simd, &rows[i][vector * lanes..][..lanes]);
            group = factors[i].mul_add(row, group);
        }
        whole[vector] += group;
    }
    if LAST {
        let mut group = factors[0] * last_of::<S, T, VECTORS>(simd, rows[0], width);
        for i in 1..GROUP {
            group = factors[i].mul_add(last_of::<S, T, VECTORS>(simd, rows[i], width), group);
        }
        *last += group;
    }
}

/// The last vector of a row, or all of it where it is less than a vector.
#[inline(always)]
fn last_of<S: Simd, T: Value, const VECTORS: usize>(simd: S, row: &[T], width: usize) -> T::Native<S> {
    let lanes = T::Native::<S>::LEN;
    if VECTORS == 0 { load_first(simd, row) } else { T::Native::<S>::from_slice(simd, &row[width - lanes..width]) }
}
