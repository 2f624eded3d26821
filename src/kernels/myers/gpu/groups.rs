//! Patterns as the kernels see them: in groups of up to 8 words, each with its table. See `group.wgsl`.

use super::alphabet::Alphabet;
use super::layout::{NOWHERE, as_u32};
use crate::data::Text;
use std::collections::HashMap;

/// Rows of a strip, the most of a pattern that a group takes.
pub(super) const STRIP: usize = 256;

const TO_LENGTHS: usize = 8;
const TO_ROWS: usize = 16;
const TO_TABLE: usize = 24;

/// Rows of a table where codes have more than 8 bits: one for each symbol that a group can have, and one for all others.
const WIDE_ROWS: usize = STRIP + 1;

/// Words of a group and words of each of its patterns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Shape {
    pub(super) words: usize,
    pub(super) per: usize,
}

/// The shapes there are: of one pattern alone, and of several.
pub(super) const SHAPES: [Shape; 7] = [
    Shape { words: 1, per: 1 },
    Shape { words: 2, per: 2 },
    Shape { words: 4, per: 4 },
    STRIP_SHAPE,
    Shape { words: 8, per: 1 },
    Shape { words: 8, per: 2 },
    Shape { words: 8, per: 4 },
];

/// That of a strip of a long pattern.
pub(super) const STRIP_SHAPE: Shape = Shape { words: 8, per: 8 };

impl Shape {
    /// For patterns of this length, one of them or several.
    pub(super) fn of(length: usize, alone: bool) -> Self {
        let per = length.div_ceil(32).clamp(1, 8).next_power_of_two();
        Self { words: if alone { per } else { 8 }, per }
    }

    /// Patterns of a group.
    pub(super) fn patterns(self) -> usize {
        self.words / self.per
    }

    /// Words of a group in the buffer.
    pub(super) fn stride(self, alphabet: &Alphabet) -> usize {
        let map = if alphabet.bits() == 8 { 0 } else { alphabet.size() };
        TO_TABLE + self.words * rows(alphabet) + map
    }
}

fn rows(alphabet: &Alphabet) -> usize {
    if alphabet.bits() == 8 { alphabet.size() } else { WIDE_ROWS }
}

/// Part of a pattern, and where its distances go.
#[derive(Debug, Clone, Copy)]
pub(super) struct Member<'a> {
    pub(super) pattern: Text<'a>,
    /// The first of its rows that belongs to the group.
    pub(super) first: usize,
    /// Row of the distances.
    pub(super) row: usize,
}

/// Appends a group.
pub(super) fn push(
    into: &mut Vec<u32>,
    shape: Shape,
    alphabet: &Alphabet,
    members: &[Member<'_>],
    cutoff: Option<u32>,
) {
    let base = into.len();
    into.resize(base + shape.stride(alphabet), 0);
    let group = &mut into[base..];
    let rows = rows(alphabet);
    group[0] = cutoff.unwrap_or(u32::MAX);
    group[1] = as_u32(rows);
    group[2] = as_u32(members.iter().map(|member| member.pattern.len()).min().unwrap_or(0));
    group[3] = as_u32(members.iter().map(|member| member.pattern.len()).max().unwrap_or(0));
    group[TO_ROWS..TO_TABLE].fill(NOWHERE);
    let (header, table) = group.split_at_mut(TO_TABLE);
    let (table, map) = table.split_at_mut(shape.words * rows);
    let mut of_code = HashMap::new();
    for (number, member) in members.iter().enumerate() {
        let end = member.pattern.len().min(member.first + shape.per * 32);
        header[TO_LENGTHS + number] = as_u32(end - member.first);
        header[TO_ROWS + number] = as_u32(member.row);
        for at in member.first..end {
            let Some(code) = alphabet.code(member.pattern.symbol(at)) else { continue };
            let row = if map.is_empty() {
                code as usize
            } else {
                let next = of_code.len() + 1;
                let row = *of_code.entry(code).or_insert(next);
                map[code as usize] = as_u32(row);
                row
            };
            let bit = at - member.first;
            table[(number * shape.per + bit / 32) * rows + row] |= 1 << (bit % 32);
        }
    }
}
