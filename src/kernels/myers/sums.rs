//! Where the distances of a block come together: a byte for each pair, first by class, then in the order of the columns.
//!
//! Patterns are compared by class, and the members of a class may stand anywhere among the columns. Distances that go to
//! their places one by one cost as much as computing them; here, vectors of bytes are put in order.

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
            classes.words.get_mut(batches::class(length)).unwrap_or(&mut classes.long).push(index);
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

/// For each text of a block, the sum of differences of every pattern: at most 64 either way, so a byte holds it.
pub(super) struct Sums<'s> {
    /// A row for each text; in it, the members of each class in their order.
    bytes: &'s mut [u8],
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

impl<'s> Sums<'s> {
    pub(super) fn new(level: Level, classes: &Classes, columns: usize, texts: usize, bytes: &'s mut Vec<u8>) -> Self {
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
        // What is read may begin at the last member.
        bytes.resize(texts * stride + width, 0);
        Self { bytes, stride, starts, parts }
    }

    /// Where the members of a class go.
    pub(super) fn of_class(&mut self, class: usize) -> Out<'_> {
        Out { bytes: &mut self.bytes[self.starts[class]..], stride: self.stride }
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
        let sums = &self.bytes[text * self.stride..];
        for (parts, distances) in self.parts.iter().zip(distances.chunks_mut(S::u8s::LEN)) {
            let mut merged = S::u8s::splat(simd, 0);
            for Part { start, which } in parts {
                let of_class = S::u8s::from_slice(simd, &sums[*start..][..S::u8s::LEN]);
                let which = S::u8s::from_slice(simd, &which[..S::u8s::LEN]);
                merged |= of_class.swizzle_dyn_precise(which);
            }
            for (distance, sum) in distances.iter_mut().zip(merged.as_slice()) {
                *distance = cut(length.wrapping_add_signed(sum.cast_signed().into()), cutoff);
            }
        }
    }
}

/// The rows of [`Sums`] from some member on.
pub(super) struct Out<'s> {
    bytes: &'s mut [u8],
    stride: usize,
}

impl Out<'_> {
    /// The next bytes of a text.
    #[inline(always)]
    pub(super) fn of(&mut self, text: usize, bytes: usize) -> &mut [u8] {
        &mut self.bytes[text * self.stride..][..bytes]
    }

    /// Goes on behind so many members.
    pub(super) fn skip(&mut self, members: usize) {
        self.bytes = &mut std::mem::take(&mut self.bytes)[members..];
    }
}
