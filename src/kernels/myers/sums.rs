//! Where the distances of a block come together: a byte for each pair, first by class, then in the order of the columns.
//!
//! Patterns are compared by class, and the members of a class may stand anywhere among the columns. Were each distance put in
//! its place by itself, a line of the result would be visited again for each group of patterns; here, whole vectors of bytes
//! are put in order, and each line is written once.

use super::{batches, cut};
use crate::simd::{Level, Simd, SimdBase, simd};

/// Places of strings by the words that they fit into.
pub(super) struct Classes {
    pub(super) words: [Vec<u32>; 4],
    pub(super) long: Vec<u32>,
}

impl Classes {
    pub(super) fn of(lengths: impl Iterator<Item = usize>) -> Self {
        let mut classes = Self { words: Default::default(), long: Vec::new() };
        for (index, length) in (0..).zip(lengths) {
            let class = usize::from(batches::class(super::length(length)));
            classes.words.get_mut(class).unwrap_or(&mut classes.long).push(index);
        }
        // A few that would fit into narrower words join the next.
        for class in 0..3 {
            if 8 * classes.words[class].len() < classes.words[class + 1].len() {
                let few = std::mem::take(&mut classes.words[class]);
                classes.words[class + 1].extend(few);
                classes.words[class + 1].sort_unstable();
            }
        }
        classes
    }
}

/// How the sums of a text lie: the members of each class in their order, and how they get into that of the columns.
pub(super) struct Layout {
    stride: usize,
    /// Where in a row each class begins.
    starts: [usize; 4],
    /// What is put together for as many columns as a vector has bytes.
    parts: Vec<Vec<Part>>,
}

/// Members of one class among neighbouring columns.
struct Part {
    /// Where in a row they begin.
    start: usize,
    /// For each column which of them it is; beyond all for columns of another class.
    which: [u8; 64],
}

impl Layout {
    pub(super) fn new(level: Level, classes: &Classes, columns: usize) -> Self {
        let width = level.bytes();
        let mut parts: Vec<Vec<Part>> = (0..columns.div_ceil(width)).map(|_| Vec::new()).collect();
        let (mut starts, mut stride) = ([0; 4], 0);
        for (members, start) in classes.words.iter().zip(&mut starts) {
            *start = stride;
            for members in members.chunk_by(|&a, &b| a as usize / width == b as usize / width) {
                let mut which = [u8::MAX; 64];
                for (place, &member) in (0..).zip(members) {
                    which[member as usize % width] = place;
                }
                parts[members[0] as usize / width].push(Part { start: stride, which });
                stride += members.len();
            }
            // Groups are written in whole vectors, of at most as many lanes as there are bytes.
            stride = stride.next_multiple_of(width);
        }
        Self { stride, starts, parts }
    }
}

/// For each text of a block, the sum of differences of every pattern: at most 64 either way, so a byte holds it.
pub(super) struct Sums<'s> {
    layout: &'s Layout,
    /// A row for each text.
    bytes: &'s mut [u8],
}

impl<'s> Sums<'s> {
    pub(super) fn new(level: Level, layout: &'s Layout, texts: usize, bytes: &'s mut Vec<u8>) -> Self {
        // What is read may begin at the last member.
        bytes.resize(texts * layout.stride + level.bytes(), 0);
        Self { layout, bytes }
    }

    /// Where the members of a class go.
    pub(super) fn of_class(&mut self, class: usize) -> Out<'_> {
        Out { bytes: &mut self.bytes[self.layout.starts[class]..], stride: self.layout.stride }
    }

    /// The distances of a text of some length, in the order of the columns. Those of longer patterns get any value.
    #[simd]
    pub(super) fn distances<S: Simd>(
        &self,
        simd: S,
        text: usize,
        length: u32,
        cutoff: Option<u32>,
        distances: &mut [u32],
    ) {
        let sums = &self.bytes[text * self.layout.stride..];
        let (whole, rest) = self.layout.parts.split_at(distances.len() / S::u8s::LEN);
        let mut of_vectors = distances.chunks_exact_mut(S::u8s::LEN);
        for (parts, distances) in whole.iter().zip(&mut of_vectors) {
            put(length, cutoff, merged(simd, sums, parts).as_slice(), distances);
        }
        if let [parts] = rest {
            put(length, cutoff, merged(simd, sums, parts).as_slice(), of_vectors.into_remainder());
        }
    }
}

/// The sums of as many columns as a vector has bytes.
#[inline(always)]
fn merged<S: Simd>(simd: S, sums: &[u8], parts: &[Part]) -> S::u8s {
    let mut merged = S::u8s::splat(simd, 0);
    for Part { start, which } in parts {
        let of_class = S::u8s::from_slice(simd, &sums[*start..][..S::u8s::LEN]);
        let which = S::u8s::from_slice(simd, &which[..S::u8s::LEN]);
        merged |= of_class.swizzle_dyn_precise(which);
    }
    merged
}

/// Distances from sums.
#[inline(always)]
fn put(length: u32, cutoff: Option<u32>, sums: &[u8], distances: &mut [u32]) {
    for (distance, sum) in distances.iter_mut().zip(sums) {
        *distance = cut(length.wrapping_add_signed(sum.cast_signed().into()), cutoff);
    }
}

/// The rows of [`Sums`] from some member on.
pub(super) struct Out<'s> {
    bytes: &'s mut [u8],
    stride: usize,
}

impl Out<'_> {
    /// Bytes of a text, from a member on.
    #[inline(always)]
    pub(super) fn of(&mut self, text: usize, member: usize, bytes: usize) -> &mut [u8] {
        &mut self.bytes[text * self.stride + member..][..bytes]
    }
}
