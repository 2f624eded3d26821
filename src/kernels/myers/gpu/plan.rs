//! Pairs on the device: which are worked on by one invocation, which by a workgroup, and in what steps.

use super::alphabet::Alphabet;
use super::layout::{LANES, Limits, NOWHERE, TILE, as_u32};
use super::texts::Segment;
use super::{LongPairs, Pairs};
use crate::data::Texts;
use crate::device::fold;
use std::ops::Range;

/// Rows of a strip of a long pair: 32 for each invocation.
pub(super) const STRIP: usize = 32 * LANES;

/// Iterations of one invocation in a pair at most: below the 65,535 after which some drivers leave a loop in silence.
const MOST_OF_ONE: usize = 50_000;

/// Fewer pairs than this leave most of an adapter idle where one invocation owns one, if they take more than that.
const FEW_PAIRS: usize = 4_096;
const MOST_OF_FEW: usize = 4_096;

/// Workgroups along z at most, on every adapter.
const MOST_GROUPS: usize = 65_535;

/// Where pairs become long, and how they are worked on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Lengths {
    /// Iterations of one invocation in a pair, at most.
    pub(super) most_of_one: usize,
    /// The same where there are few pairs.
    pub(super) most_of_few: usize,
    /// Steps of a round, at least [`LANES`].
    pub(super) steps: usize,
}

impl Lengths {
    pub(super) const USUAL: Self = Self { most_of_one: MOST_OF_ONE, most_of_few: MOST_OF_FEW, steps: 128 };
}

/// Iterations of an invocation that owns a pair: for each word of the pattern its rows, and the columns and their tiles.
fn iterations(rows: usize, columns: usize) -> usize {
    rows.div_ceil(32).saturating_mul(columns + columns / TILE + 34)
}

/// See `pairs.wgsl`: rows, columns, place, start of the pattern.
pub(super) type Pair = [u32; 4];

/// See `long_pairs.wgsl`.
pub(super) type LongPair = [u32; 9];

/// What the patterns of some neighbouring blocks look like to the kernels.
#[derive(Default)]
pub(super) struct Plan {
    pub(super) pairs: Vec<Pair>,
    pub(super) long: Vec<LongPair>,
    /// Patterns, 32 rows after 32 rows: see `tile.wgsl`.
    pub(super) words: Vec<u32>,
    /// Tiles and strips of long pairs.
    pub(super) long_tiles: usize,
    pub(super) strips: usize,
    /// Whether a short pair has more than 32 rows.
    pub(super) has_edges: bool,
    pub(super) short_works: Vec<Pairs>,
    pub(super) long_works: Vec<LongPairs>,
    pub(super) short_steps: Vec<[u32; 3]>,
    pub(super) long_steps: Vec<[u32; 3]>,
}

impl Plan {
    /// Of the blocks of a segment, whose patterns fit into one buffer.
    pub(super) fn new(
        alphabet: &Alphabet,
        segment: &Segment,
        blocks: Range<usize>,
        patterns: &Texts,
        lengths: Lengths,
        limits: Limits,
    ) -> Self {
        let mut plan = Self::default();
        let most = if patterns.len() < FEW_PAIRS { lengths.most_of_few } else { lengths.most_of_one };
        let codes = 32 / alphabet.bits();
        for block in blocks.clone() {
            let start = segment.blocks.starts[block][0];
            for lane in 0..LANES {
                let at = block * LANES + lane;
                let place = segment.blocks.places[at];
                if place == NOWHERE {
                    plan.pairs.push([0, 0, NOWHERE, 0]);
                    continue;
                }
                let pattern = patterns.get(segment.texts.start + place as usize);
                let (rows, columns) = (pattern.len(), segment.blocks.lengths[at] as usize);
                if rows == 0 || columns == 0 {
                    // The distance to nothing is the length.
                    plan.pairs.push([0, as_u32(rows + columns), place, 0]);
                    continue;
                }
                let first = plan.words.len();
                for from in (0..rows).step_by(TILE) {
                    let base = plan.words.len();
                    plan.words.resize(base + 1 + TILE / codes, 0);
                    let (known, packed) = plan.words[base..].split_at_mut(1);
                    for row in 0..TILE.min(rows - from) {
                        let Some(code) = alphabet.code(pattern.symbol(from + row)) else { continue };
                        known[0] |= 1 << row;
                        packed[row / codes] |= code << (row % codes * alphabet.bits());
                    }
                }
                if iterations(rows, columns) <= most {
                    plan.has_edges |= rows > TILE;
                    plan.pairs.push([as_u32(rows), as_u32(columns), place, as_u32(first)]);
                    continue;
                }
                plan.pairs.push([0, 0, NOWHERE, 0]);
                let strips = rows.div_ceil(STRIP);
                plan.long.push([
                    as_u32(first),
                    as_u32(rows),
                    start + as_u32(lane),
                    as_u32(segment.blocks.stride(block)),
                    as_u32(columns),
                    as_u32(plan.long_tiles),
                    as_u32(plan.strips),
                    place,
                    as_u32(strips),
                ]);
                plan.long_tiles += columns.div_ceil(TILE);
                plan.strips += strips;
            }
        }
        plan.short(segment, blocks, limits);
        plan.long(lengths.steps, limits);
        plan
    }

    /// Cuts the blocks into dispatches.
    fn short(&mut self, segment: &Segment, blocks: Range<usize>, limits: Limits) {
        let mut push = |range: Range<usize>| {
            let [x, y] = fold(range.len() as u64, limits.workgroups);
            self.short_steps.push([x, y, 1]);
            self.short_works.push(Pairs {
                first: as_u32(range.start),
                end: as_u32(range.end),
                groups_x: x,
                texts: as_u32(segment.texts.len()),
                pairs: as_u32(blocks.start),
            });
        };
        let (mut first, mut sum) = (blocks.start, 0);
        for (block, pairs) in blocks.clone().zip(self.pairs.chunks_exact(LANES)) {
            let longest = pairs.iter().map(|pair| iterations(pair[0] as usize, pair[1] as usize)).max().unwrap_or(0);
            let mine = (longest.max(TILE) * LANES) as u64;
            if block > first && sum + mine > limits.steps {
                push(first..block);
                (first, sum) = (block, 0);
            }
            sum += mine;
        }
        push(first..blocks.end);
    }

    /// Cuts the long pairs into dispatches, and those into rounds.
    fn long(&mut self, steps: usize, limits: Limits) {
        // Strips of a pair, and rounds that one of them takes.
        let shape = |pair: &LongPair| (pair[8] as usize, ((pair[4] as usize).div_ceil(TILE) + LANES).div_ceil(steps));
        // Neighbours that take as long.
        self.long.sort_by_key(|pair| std::cmp::Reverse(shape(pair)));
        let most = usize::try_from(limits.steps / (steps * TILE * LANES) as u64).unwrap_or(usize::MAX).max(1);
        let mut first = 0;
        while first < self.long.len() {
            let (mut end, mut sum, mut strips, mut rounds) = (first, 0, 0, 0);
            while end < self.long.len() {
                let (its_strips, its_rounds) = shape(&self.long[end]);
                // Strips at work in one round.
                sum += its_strips.min(its_rounds / 2 + 1);
                if end > first && sum > most {
                    break;
                }
                (strips, rounds) = (strips.max(its_strips), rounds.max(its_rounds));
                end += 1;
            }
            let [x, y] = fold((end - first) as u64, limits.workgroups);
            for round in 0..rounds + 2 * (strips - 1) {
                let from = (round + 1).saturating_sub(rounds).div_ceil(2);
                let to = strips.min(round / 2 + 1);
                for from in (from..to).step_by(MOST_GROUPS) {
                    self.long_steps.push([x, y, as_u32((to - from).min(MOST_GROUPS))]);
                    self.long_works.push(LongPairs {
                        first: as_u32(first),
                        end: as_u32(end),
                        groups_x: x,
                        strip: as_u32(from),
                        round: as_u32(round),
                        steps: as_u32(steps),
                    });
                }
            }
            first = end;
        }
    }
}
