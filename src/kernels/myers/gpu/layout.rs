//! Where texts lie on the device: segments of neighbouring texts, sorted by length within one, in blocks of 64 whose words
//! are interleaved.

use super::alphabet::Alphabet;
use crate::data::{Text, Texts};
use crate::device::Device;
use crate::error::Error;
use std::ops::Range;

/// Texts of a block: the invocations of a workgroup.
pub(super) const LANES: usize = 64;

/// Columns of a tile, whose edges are two words.
pub(super) const TILE: usize = 32;

/// The place of no text.
pub(super) const NOWHERE: u32 = u32::MAX;

/// Words of 32 rows times columns that one dispatch takes at most: a tenth of a second on a small adapter.
const MOST_STEPS: u64 = 1 << 30;

/// Columns that one invocation takes at most in one dispatch. With the loops around them it stays below the 65,535
/// iterations after which some drivers leave a loop in silence.
const MOST_COLUMNS: usize = 24_576;

/// Words of a text that one step of the upload packs, about.
const UPLOAD_WORDS: usize = 1 << 20;

/// What one buffer may hold, and one dispatch do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Limits {
    /// Bytes of a buffer that could as well be two.
    pub(super) segment: u64,
    /// Bytes of a buffer that cannot be cut.
    pub(super) binding: u64,
    /// Words times columns of a dispatch.
    pub(super) steps: u64,
    /// Columns of a dispatch, a multiple of [`TILE`].
    pub(super) columns: usize,
    /// Workgroups in one dimension.
    pub(super) workgroups: u32,
}

impl Limits {
    pub(super) fn of(device: &Device) -> Self {
        Self {
            segment: device.segment_bytes(),
            binding: device.binding_bytes(),
            steps: MOST_STEPS,
            columns: MOST_COLUMNS,
            workgroups: device.max_workgroups(),
        }
    }
}

/// Texts in blocks of [`LANES`].
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Blocks {
    /// For each block, where its words begin in the buffer of codes, and its edges in theirs.
    pub(super) starts: Vec<[u32; 2]>,
    /// Length of each text, as they are sorted; 0 for the places that fill the last block.
    pub(super) lengths: Vec<u32>,
    /// For each text, as they are sorted, its number; [`NOWHERE`] in the places that fill the last block.
    pub(super) places: Vec<u32>,
    /// Words of all blocks.
    pub(super) words: usize,
    /// Edges of all blocks: one for every tile of every text.
    pub(super) edges: usize,
    /// Number of texts.
    pub(super) texts: usize,
}

impl Blocks {
    /// Of texts in this order, where `length` says how long each is.
    pub(super) fn new(order: Vec<u32>, bits: usize, length: impl Fn(usize) -> usize) -> Self {
        let mut blocks = Self { places: order, ..Self::default() };
        blocks.lengths = blocks.places.iter().map(|&place| as_u32(length(place as usize))).collect();
        blocks.texts = blocks.places.len();
        let filled = blocks.texts.next_multiple_of(LANES);
        blocks.places.resize(filled, NOWHERE);
        blocks.lengths.resize(filled, 0);
        for (block, lengths) in blocks.lengths.chunks_exact(LANES).enumerate() {
            let longest = lengths.iter().copied().max().unwrap_or(0) as usize;
            let stride = blocks.stride(block);
            blocks.starts.push([as_u32(blocks.words), as_u32(blocks.edges)]);
            blocks.words += longest.div_ceil(32 / bits) * stride;
            blocks.edges += longest.div_ceil(TILE) * stride;
        }
        blocks
    }

    /// How far the words of a text lie apart: the last block has fewer texts.
    pub(super) fn stride(&self, block: usize) -> usize {
        LANES.min(self.texts - block * LANES)
    }

    /// The length of the longest text of a block, where the longest come first.
    pub(super) fn longest(&self, block: usize) -> usize {
        self.lengths[block * LANES] as usize
    }

    /// How many blocks, from the first on, have a text that is longer than `columns`, where the longest come first.
    pub(super) fn longer_than(&self, columns: usize) -> usize {
        (0..self.starts.len()).collect::<Vec<_>>().partition_point(|&block| self.longest(block) > columns)
    }

    /// Packs all texts, some blocks at a time: `take` gets where the words go, and the words.
    pub(super) fn pack<'a>(
        &self,
        alphabet: &Alphabet,
        bits: usize,
        text: impl Fn(usize) -> Text<'a>,
        mut take: impl FnMut(usize, &[u32]) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let mut scratch = Vec::new();
        let mut from = 0;
        for (block, places) in self.places.chunks_exact(LANES).enumerate() {
            let start = self.starts[block][0] as usize;
            let end = self.starts.get(block + 1).map_or(self.words, |next| next[0] as usize);
            if start - from >= UPLOAD_WORDS {
                take(from, &scratch)?;
                scratch.clear();
                from = start;
            }
            scratch.resize(end - from, 0);
            let words = &mut scratch[start - from..];
            if words.is_empty() {
                continue;
            }
            for (lane, &place) in places.iter().enumerate().filter(|(_, place)| **place != NOWHERE) {
                alphabet.pack(text(place as usize), bits, self.stride(block), &mut words[lane..]);
            }
        }
        take(from, &scratch)
    }
}

/// Cuts texts into runs of neighbours that fit into one buffer each.
///
/// # Errors
/// [`Error::Limit`] for a text that alone does not.
pub(super) fn segments(texts: &Texts, bits: usize, limits: Limits) -> Result<Vec<Range<usize>>, Error> {
    let bytes = |length: usize| (length.div_ceil(32 / bits) * 4) as u64;
    let longest = limits.binding;
    // The buffers that have something for every text have at most 64 bytes of it.
    let most = usize::try_from(limits.segment / 64).unwrap_or(usize::MAX).max(LANES);
    let (mut all, mut current, mut sum, mut widest) = (Vec::new(), 0..0, 0, 0);
    for text in 0..texts.len() {
        let mine = bytes(texts.length(text));
        if mine > longest {
            let what = format!("text {text} on the device, in bytes");
            return Err(Error::Limit { what, requested: mine, max: longest });
        }
        // Sorted by length, every block but the first takes no more than the texts of the one before.
        let next = sum + mine + widest.max(mine) * LANES.min(current.len() + 1) as u64;
        if !current.is_empty() && (next > limits.segment || current.len() >= most) {
            all.push(current);
            (current, sum, widest) = (text..text, 0, 0);
        }
        (current.end, sum, widest) = (text + 1, sum + mine, widest.max(mine));
    }
    if !current.is_empty() {
        all.push(current);
    }
    Ok(all)
}

pub(super) fn as_u32(value: usize) -> u32 {
    // Positions in a buffer and lengths of texts: both are kept below.
    u32::try_from(value).unwrap_or(u32::MAX)
}
