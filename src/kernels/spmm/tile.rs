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
use crate::simd::memory::{Rows, stream};
use crate::simd::{Simd, SimdBase, SimdFloat, simd};

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

impl<'a, T> Columns<'a, T> {
    /// To be gathered.
    pub(super) fn rows(self) -> Rows<'a, T> {
        Rows::new(self.values.get(self.column..).unwrap_or_default(), self.stride, self.width)
    }
}

impl<T: Value> Gathered<T> for Rows<'_, T> {
    #[inline(always)]
    fn row(&self, row: u32) -> &[T] {
        Rows::row(self, row as usize)
    }

    #[inline(always)]
    fn ask(&self, row: u32) {
        self.prefetch(row as usize);
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
/// A tile is a number of vectors and a last one, which is the shortest that holds the columns left over. It begins early
/// where they are fewer than it holds, and some columns are summed twice: that is cheaper than to read a part of a vector,
/// and gives the same. Less than one vector of the machine is tiled with shorter ones.
#[simd]
pub(super) fn add<S: Simd, T: Value, B: Gathered<T>>(
    simd: S,
    a: Entries<'_, T>,
    b: B,
    width: usize,
    ahead: usize,
    sums: Sums<'_, T>,
) {
    let (native, medium, short) = (T::Native::<S>::LEN, T::Medium::<S>::LEN, T::Short::<S>::LEN);
    macro_rules! tiles {
        ($last:ty, $has:literal: $($vectors:literal)*) => {
            match width / native {
                $($vectors => tile::<S, T, B, T::Native<S>, $last, $vectors, $has>(simd, a, b, width, ahead, sums),)*
                vectors => debug_assert!(false, "{vectors} vectors are more than a tile has"),
            }
        };
    }
    match width % native {
        _ if width < short => match width {
            1 => tile::<S, T, B, T::Short<S>, T::Short<S>, 0, 1>(simd, a, b, width, ahead, sums),
            2 => tile::<S, T, B, T::Short<S>, T::Short<S>, 0, 2>(simd, a, b, width, ahead, sums),
            _ => tile::<S, T, B, T::Short<S>, T::Short<S>, 0, 3>(simd, a, b, width, ahead, sums),
        },
        0 => tiles!(T::Native<S>, 0: 1 2 3 4 5 6 7 8),
        _ if width < medium => tile::<S, T, B, T::Short<S>, T::Short<S>, 1, 1>(simd, a, b, width, ahead, sums),
        _ if width < native => tile::<S, T, B, T::Medium<S>, T::Medium<S>, 1, 1>(simd, a, b, width, ahead, sums),
        rest if rest <= short => tiles!(T::Short<S>, 1: 1 2 3 4 5 6 7),
        rest if rest <= medium => tiles!(T::Medium<S>, 1: 1 2 3 4 5 6 7),
        _ => tiles!(T::Native<S>, 1: 1 2 3 4 5 6 7),
    }
}

/// As [`add`], for all columns of a B of at most two vectors and one column. A length that is known makes finding a row of B
/// one comparison and one shift, which counts where there is little else to do.
#[simd]
pub(super) fn add_narrow<S: Simd, T: Value>(simd: S, a: Entries<'_, T>, b: Columns<'_, T>, sums: Sums<'_, T>) {
    // Width => vectors of a kind, and one of a kind for what is left over, as `add` chooses them.
    macro_rules! by_width {
        ($($width:literal => $vector:ident $vectors:literal, $last_vector:ident $last:literal;)*) => {
            match b.width {
                $($width => {
                    let rows = Packed(b.values.as_chunks::<$width>().0);
                    tile::<S, T, _, T::$vector<S>, T::$last_vector<S>, $vectors, $last>(simd, a, rows, $width, 0, sums);
                })*
                _ => add(simd, a, b.rows(), b.width, 0, sums),
            }
        };
    }
    match (T::Short::<S>::LEN, T::Native::<S>::LEN, b.width) {
        (2, _, ..=7) => by_width! {
            1 => Short 0, Short 1;
            2 => Short 1, Short 0;
            3 => Short 1, Short 1;
            4 => Medium 1, Short 0;
            5 => Medium 1, Medium 1;
            6 => Medium 1, Medium 1;
            7 => Medium 1, Medium 1;
        },
        (2, 8, _) => by_width! {
            8 => Native 1, Short 0;
            9 => Native 1, Short 1;
            10 => Native 1, Short 1;
            11 => Native 1, Medium 1;
            12 => Native 1, Medium 1;
            13 => Native 1, Native 1;
            14 => Native 1, Native 1;
            15 => Native 1, Native 1;
            16 => Native 2, Short 0;
            17 => Native 2, Short 1;
        },
        (4, _, ..=8) => by_width! {
            1 => Short 0, Short 1;
            2 => Short 0, Short 2;
            3 => Short 0, Short 3;
            4 => Short 1, Short 0;
            5 => Short 1, Short 1;
            6 => Short 1, Short 1;
            7 => Short 1, Short 1;
            8 => Medium 1, Short 0;
        },
        (4, 16, _) => by_width! {
            9 => Medium 1, Short 1;
            10 => Medium 1, Short 1;
            11 => Medium 1, Short 1;
            12 => Medium 1, Short 1;
            13 => Medium 1, Medium 1;
            14 => Medium 1, Medium 1;
            15 => Medium 1, Medium 1;
            16 => Native 1, Short 0;
            17 => Native 1, Short 1;
        },
        _ => add(simd, a, b.rows(), b.width, 0, sums),
    }
}

/// VECTORS of `V`, and where LAST is not 0 one of `L`, which ends where the tile does. Without any of `V` the tile is LAST
/// columns wide, fewer than `L` holds.
#[simd]
fn tile<S: Simd, T: Value, B: Gathered<T>, V, L, const VECTORS: usize, const LAST: usize>(
    simd: S,
    a: Entries<'_, T>,
    b: B,
    width: usize,
    ahead: usize,
    sums: Sums<'_, T>,
) where
    V: SimdFloat<S, Element = T>,
    L: SimdFloat<S, Element = T>,
{
    // Said once: no load needs to look again.
    assert!(width >= VECTORS * V::LEN && width >= if VECTORS > 0 && LAST > 0 { L::LEN } else { LAST });
    for row in 0..a.indptr.len() - 1 {
        let (start, end) = (a.indptr[row], a.indptr[row + 1]);
        let (columns, values) = (&a.indices[start..end], &a.values[start..end]);
        let mut whole = [V::splat(simd, T::default()); VECTORS];
        let mut last = L::splat(simd, T::default());
        macro_rules! add_group {
            ($at:expr, $entries:literal) => {{
                let (columns, values) = (&columns[$at..$at + $entries], &values[$at..$at + $entries]);
                group::<S, T, B, V, L, VECTORS, LAST>(simd, b, width, columns, values, &mut whole, &mut last);
            }};
        }
        let mut at = 0;
        while at + GROUP <= columns.len() {
            let next = start + at + ahead * GROUP;
            if ahead > 0 && next + GROUP <= a.indices.len() {
                for &column in &a.indices[next..next + GROUP] {
                    b.ask(column);
                }
            }
            add_group!(at, 4);
            at += GROUP;
        }
        match columns.len() - at {
            0 => {}
            1 => add_group!(at, 1),
            2 => add_group!(at, 2),
            _ => add_group!(at, 3),
        }
        let out = &mut sums.values[row * sums.stride + sums.column..][..width];
        for vector in 0..VECTORS {
            let out = &mut out[vector * V::LEN..][..V::LEN];
            if sums.streamed { stream(simd, whole[vector], out) } else { whole[vector].store_slice(out) }
        }
        if LAST > 0 && VECTORS == 0 {
            for (lane, out) in out[..LAST].iter_mut().enumerate() {
                *out = last[lane];
            }
        } else if LAST > 0 {
            last.store_slice(&mut out[width - L::LEN..]);
        }
    }
}

/// Adds the sum of a group of entries, at most [`GROUP`].
#[inline(always)]
fn group<S: Simd, T: Value, B: Gathered<T>, V, L, const VECTORS: usize, const LAST: usize>(
    simd: S,
    b: B,
    width: usize,
    columns: &[u32],
    values: &[T],
    whole: &mut [V; VECTORS],
    last: &mut L,
) where
    V: SimdFloat<S, Element = T>,
    L: SimdFloat<S, Element = T>,
{
    let mut rows: [&[T]; GROUP] = [&[]; GROUP];
    for i in 0..columns.len() {
        rows[i] = &b.row(columns[i])[..width];
    }
    for vector in 0..VECTORS {
        let mut group = V::splat(simd, values[0]) * V::from_slice(simd, &rows[0][vector * V::LEN..][..V::LEN]);
        for i in 1..values.len() {
            let row = V::from_slice(simd, &rows[i][vector * V::LEN..][..V::LEN]);
            group = V::splat(simd, values[i]).mul_add(row, group);
        }
        whole[vector] += group;
    }
    if LAST > 0 {
        let mut group = L::splat(simd, values[0]) * load_last::<S, L, VECTORS, LAST>(simd, rows[0], width);
        for i in 1..values.len() {
            let row = load_last::<S, L, VECTORS, LAST>(simd, rows[i], width);
            group = L::splat(simd, values[i]).mul_add(row, group);
        }
        *last += group;
    }
}

/// What the last vector of a tile holds of a row.
#[inline(always)]
fn load_last<S: Simd, L: SimdFloat<S>, const VECTORS: usize, const LAST: usize>(
    simd: S,
    row: &[L::Element],
    width: usize,
) -> L {
    match (VECTORS, LAST) {
        (0, 1) => L::splat(simd, row[0]),
        (0, 2) => L::from_fn(simd, |lane| row[lane.min(1)]),
        (0, _) => L::from_fn(simd, |lane| row[lane.min(2)]),
        _ => L::from_slice(simd, &row[width - L::LEN..width]),
    }
}
