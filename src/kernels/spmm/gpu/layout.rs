//! Where the operands lie on the device, decided on the host before anything is allocated: column tiles of B and C, row
//! blocks of A and C, and the items that the kernel works on.

use crate::device::Device;
use crate::error::Error;
use std::ops::Range;

/// Bytes of a vector: what an invocation reads of B at once.
pub(super) const VECTOR_BYTES: u64 = VECTOR as u64;
const VECTOR: usize = 16;

/// Entries of an item at most, unless a row then had more than [`MOST_PIECES`].
const PIECE: usize = 256;

/// Pieces of one row at most, so that adding them up stays short whatever the row.
const MOST_PIECES: usize = 16_384;

/// Vectors of multiply-adds in one dispatch at most: 16 GiB of B gathered, well under the 2 seconds after which some
/// systems reset a GPU.
const MOST_STEPS: u64 = 1 << 30;

/// Lanes that an item can have.
pub(super) const LANES: [usize; 6] = [1, 2, 4, 8, 16, MOST_LANES];
const MOST_LANES: usize = 32;

/// Workgroups along z at most, on every adapter.
const MOST_GROUPS_Z: usize = 65_535;

/// Where an item of a short row goes; see `multiply.wgsl`.
pub(super) const TO_C: u32 = u32::MAX;

/// Row, first entry, end, slot: see `multiply.wgsl`.
pub(super) type Item = [u32; 4];

/// Row, first slot, pieces: see `add_pieces.wgsl`.
pub(super) type LongRow = [u32; 3];

/// Entries of a piece of a row of `entries`. Nothing but the row decides, so that neither does anything else of its sum.
pub(super) fn piece(entries: usize) -> usize {
    // Most rows, without a division.
    if entries <= PIECE { PIECE } else { entries.div_ceil(MOST_PIECES).next_multiple_of(4).max(PIECE) }
}

/// Pieces of a row of `entries`; an empty row is one, so that it is written.
fn pieces(entries: usize) -> usize {
    if entries <= PIECE { 1 } else { entries.div_ceil(piece(entries)) }
}

/// Lanes of an item for rows of `vectors`: as wide as possible without more idle lanes than a narrower choice has.
pub(super) fn lanes(vectors: usize) -> usize {
    if vectors < 8 {
        return vectors.next_power_of_two().max(1);
    }
    let idle = |lanes: usize| vectors.next_multiple_of(lanes) - vectors;
    [MOST_LANES, 16, 8].into_iter().min_by_key(|&lanes| idle(lanes)).unwrap_or(MOST_LANES)
}

/// What one buffer may hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Limits {
    /// Bytes of a buffer that could as well be two.
    pub(super) segment: u64,
    /// Bytes of a buffer that cannot be cut.
    pub(super) binding: u64,
    /// Vectors of multiply-adds in one dispatch.
    pub(super) steps: u64,
}

impl Limits {
    pub(super) fn of(device: &Device) -> Self {
        Self { segment: device.segment_bytes(), binding: device.binding_bytes(), steps: MOST_STEPS }
    }
}

/// Neighbouring columns of B and C, in vectors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Tile {
    pub(super) first: usize,
    pub(super) vectors: usize,
}

/// Neighbouring rows of A and C.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Block {
    pub(super) rows: Range<usize>,
    pub(super) entries: Range<usize>,
    pub(super) items: usize,
    pub(super) long_rows: usize,
    /// Pieces of its long rows.
    pub(super) slots: usize,
    /// Where one dispatch ends and the next begins, in items; the last one is `items`.
    pub(super) dispatches: Vec<usize>,
}

/// Everything about a product that its shapes and the row lengths of A decide.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Layout {
    /// Columns of A, rows of B.
    pub(super) inner: usize,
    /// Rows of A and C.
    pub(super) rows: usize,
    /// Columns of B and C.
    pub(super) width: usize,
    /// Values of a vector.
    pub(super) per_vector: usize,
    pub(super) tiles: Vec<Tile>,
    pub(super) blocks: Vec<Block>,
    /// Entries of A, and those of its longest row.
    pub(super) entries: usize,
    pub(super) longest: usize,
}

impl Layout {
    /// For `indptr` of A, for values of `value_bytes`.
    ///
    /// # Errors
    /// [`Error::Limit`] for what does not fit into one buffer and cannot be cut.
    pub(super) fn new(
        indptr: &[usize],
        inner: usize,
        width: usize,
        value_bytes: usize,
        limits: Limits,
    ) -> Result<Self, Error> {
        let rows = indptr.len() - 1;
        let per_vector = VECTOR / value_bytes;
        let (entries, longest) = (indptr[rows], indptr.windows(2).map(|pair| pair[1] - pair[0]).max().unwrap_or(0));
        let (tiles, blocks) = (Vec::new(), Vec::new());
        let mut layout = Self { inner, rows, width, per_vector, tiles, blocks, entries, longest };
        if rows == 0 || width == 0 {
            return Ok(layout);
        }
        layout.cut_columns(limits)?;
        layout.cut_rows(indptr, value_bytes, limits)?;
        Ok(layout)
    }

    fn cut_columns(&mut self, limits: Limits) -> Result<(), Error> {
        let limit = |what: &str, requested: u64| {
            Err(Error::Limit { what: format!("{what} on the device, in bytes"), requested, max: limits.binding })
        };
        // What one more vector in a tile adds to B, and to the pieces of the longest row.
        let column = (self.inner as u64).max(1).saturating_mul(VECTOR_BYTES);
        if column > limits.binding {
            return limit("B, 16 bytes of each row in one buffer", column);
        }
        let longest = pieces(self.longest) as u64 * VECTOR_BYTES;
        if longest > limits.binding {
            return limit("the pieces of one row, 16 bytes of each in one buffer", longest);
        }
        let vectors = self.width.div_ceil(self.per_vector);
        let most = (limits.segment / column.max(longest)).max(1);
        let mut tile = usize::try_from(most).unwrap_or(usize::MAX).min(vectors).min(MOST_GROUPS_Z * 8);
        if tile < vectors && tile > MOST_LANES {
            tile -= tile % MOST_LANES;
        }
        let tiles = (0..vectors).step_by(tile);
        self.tiles = tiles.map(|first| Tile { first, vectors: tile.min(vectors - first) }).collect();
        Ok(())
    }

    /// Vectors of the widest tile, which is the first.
    pub(super) fn widest(&self) -> usize {
        self.tiles.first().map_or(0, |tile| tile.vectors)
    }

    fn cut_rows(&mut self, indptr: &[usize], value_bytes: usize, limits: Limits) -> Result<(), Error> {
        let entry_bytes = value_bytes.max(4) as u64;
        let row_bytes = self.widest() as u64 * VECTOR_BYTES;
        let steps_per_entry = self.widest() as u64;
        let max = (limits.binding / entry_bytes).min(u32::MAX.into());
        let fits = |count: usize, bytes: u64| count as u64 * bytes <= limits.segment;
        let mut block = Block::default();
        let mut steps = 0;
        for (row, pair) in indptr.windows(2).enumerate() {
            let (start, end) = (pair[0], pair[1]);
            let entries = end - start;
            let pieces = pieces(entries);
            let slots = if pieces > 1 { pieces } else { 0 };
            // A row is never cut between two buffers.
            if entries as u64 > max {
                let what = format!("entries of A in row {row}, in one buffer on the device");
                return Err(Error::Limit { what, requested: entries as u64, max });
            }
            let fits = fits(end - block.entries.start, entry_bytes)
                && fits(block.items + pieces, size_of::<Item>() as u64)
                && fits(block.slots + slots, row_bytes)
                && fits(row + 1 - block.rows.start, row_bytes);
            if !fits && !block.rows.is_empty() {
                self.blocks.push(finish(std::mem::take(&mut block)));
                steps = 0;
            }
            if block.rows.is_empty() {
                block.rows = row..row;
                block.entries = start..start;
            }
            let piece = piece(entries);
            for number in 0..pieces {
                let length = piece.min(entries - (number * piece).min(entries));
                let more = (length as u64).max(1) * steps_per_entry;
                if steps + more > limits.steps && steps > 0 {
                    block.dispatches.push(block.items);
                    steps = 0;
                }
                steps += more;
                block.items += 1;
            }
            block.rows.end = row + 1;
            block.entries.end = end;
            block.slots += slots;
            block.long_rows += usize::from(slots > 0);
        }
        self.blocks.push(finish(block));
        Ok(())
    }

    /// Slots of the block that has most.
    pub(super) fn most_slots(&self) -> usize {
        self.blocks.iter().map(|block| block.slots).max().unwrap_or(0)
    }

    /// Loop iterations of one invocation in the worst case, of both kernels the larger.
    pub(super) fn iterations(&self) -> u64 {
        let piece = piece(self.longest);
        let multiply = piece / 4 + 4;
        let add = pieces(self.longest).div_ceil(16) + 16;
        multiply.max(add) as u64
    }

    /// Bytes of A on the device.
    pub(super) fn a_bytes(&self) -> u64 {
        let value_bytes = VECTOR_BYTES / self.per_vector as u64;
        let of_block = |block: &Block| {
            block.entries.len() as u64 * (4 + value_bytes)
                + (block.items * size_of::<Item>()) as u64
                + (block.long_rows * size_of::<LongRow>()) as u64
        };
        self.blocks.iter().map(of_block).sum()
    }

    /// Bytes of B and of C on the device.
    pub(super) fn call_bytes(&self) -> (u64, u64) {
        let row = self.tiles.iter().map(|tile| tile.vectors as u64).sum::<u64>() * VECTOR_BYTES;
        let rows: usize = self.blocks.iter().map(|block| block.rows.len()).sum();
        (self.inner as u64 * row, rows as u64 * row)
    }
}

fn finish(mut block: Block) -> Block {
    block.dispatches.push(block.items);
    block
}

/// The items and the long rows of a block, some at a time.
pub(super) struct Items<'a> {
    indptr: &'a [usize],
    block: &'a Block,
    row: usize,
    slot: u32,
}

impl<'a> Items<'a> {
    pub(super) fn new(indptr: &'a [usize], block: &'a Block) -> Self {
        Self { indptr, block, row: block.rows.start, slot: 0 }
    }

    /// The next `most` items, or some more, in place of what the lists held. No item: there are no more.
    pub(super) fn next(&mut self, most: usize, items: &mut Vec<Item>, long_rows: &mut Vec<LongRow>) {
        items.clear();
        long_rows.clear();
        while self.row < self.block.rows.end && items.len() < most {
            let first = self.block.entries.start;
            let (start, end) = (self.indptr[self.row] - first, self.indptr[self.row + 1] - first);
            let row = as_u32(self.row - self.block.rows.start);
            self.row += 1;
            let piece = piece(end - start);
            if end - start <= piece {
                items.push([row, as_u32(start), as_u32(end), TO_C]);
                continue;
            }
            let first_slot = self.slot;
            for from in (start..end).step_by(piece) {
                items.push([row, as_u32(from), as_u32(end.min(from + piece)), self.slot]);
                self.slot += 1;
            }
            long_rows.push([row, first_slot, self.slot - first_slot]);
        }
    }
}

pub(super) fn as_u32(value: usize) -> u32 {
    // Positions in a buffer: the layout keeps them far below.
    u32::try_from(value).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits(segment: u64) -> Limits {
        Limits { segment, binding: 1 << 20, steps: 5_000 }
    }

    /// Positions of rows whose lengths are small, zero, and now and then long.
    fn indptr(rows: usize, seed: usize) -> Vec<usize> {
        let mut state = seed;
        let lengths = (0..rows).map(|_| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            match state >> 60 {
                0..6 => 0,
                6..14 => (state >> 50) % 40,
                14 => (state >> 50) % 700,
                _ => (state >> 50) % 9_000,
            }
        });
        let mut end = 0;
        std::iter::once(0).chain(lengths.map(|length| (end += length, end).1)).collect()
    }

    /// Everything that [`Items`] gives, a few at a time.
    fn all_items(indptr: &[usize], block: &Block) -> (Vec<Item>, Vec<LongRow>) {
        let mut all = (Vec::new(), Vec::new());
        let mut next = Items::new(indptr, block);
        let (mut items, mut long_rows) = (Vec::new(), Vec::new());
        loop {
            next.next(7, &mut items, &mut long_rows);
            if items.is_empty() {
                assert!(long_rows.is_empty());
                return all;
            }
            all.0.extend_from_slice(&items);
            all.1.extend_from_slice(&long_rows);
        }
    }

    #[test]
    fn blocks_and_items_cover_every_row_and_entry_once_and_fit_their_buffers() {
        for (rows, width, segment, seed) in
            [(1, 1, 1 << 20, 1), (300, 64, 1 << 14, 2), (1_000, 3, 70_000, 3), (500, 2_000, 1 << 16, 4)]
        {
            for value_bytes in [4, 8] {
                let indptr = indptr(rows, seed);
                let layout = Layout::new(&indptr, 50, width, value_bytes, limits(segment)).unwrap();
                let (mut row, mut entry) = (0, 0);
                for block in &layout.blocks {
                    assert_eq!((block.rows.start, block.entries.start), (row, entry));
                    (row, entry) = (block.rows.end, block.entries.end);
                    assert!(!block.rows.is_empty());
                    let (list, long_rows) = all_items(&indptr, block);
                    assert_eq!((list.len(), long_rows.len()), (block.items, block.long_rows));
                    let alone = block.rows.len() == 1;
                    let row_bytes = layout.widest() as u64 * VECTOR_BYTES;
                    for bytes in [
                        block.entries.len() as u64 * value_bytes as u64,
                        block.items as u64 * 16,
                        block.slots as u64 * row_bytes,
                        block.rows.len() as u64 * row_bytes,
                    ] {
                        assert!(bytes <= if alone { 1 << 20 } else { segment }, "{bytes} of {segment}: {block:?}");
                    }
                    let (mut next, mut slot, mut last_row) = (0, 0, None);
                    for &[of, start, end, to] in &list {
                        assert!(start == next && end >= start && end - start <= 256);
                        next = end;
                        let row = block.rows.start + of as usize;
                        let entries = indptr[row + 1] - indptr[row];
                        if to == TO_C {
                            assert_eq!((end - start) as usize, entries);
                        } else {
                            assert!(entries > 256 && to == slot && end > start);
                            slot += 1;
                        }
                        assert!(
                            last_row.is_none_or(|last| of == last || of == last + 1),
                            "row {of} after {last_row:?}"
                        );
                        last_row = Some(of);
                    }
                    assert_eq!(last_row, Some(as_u32(block.rows.len() - 1)), "a row without an item is never written");
                    assert_eq!((next as usize, slot as usize), (block.entries.len(), block.slots));
                    assert_eq!(long_rows.iter().map(|long| long[2]).sum::<u32>(), slot);
                    assert!(long_rows.is_sorted_by_key(|long| long[1]));
                    assert!(block.dispatches.is_sorted_by(|a, b| a < b));
                    assert_eq!(block.dispatches.last(), Some(&block.items));
                }
                assert_eq!((row, entry), (rows, indptr[rows]));
                let covered: usize = layout.tiles.iter().map(|tile| tile.vectors).sum();
                assert_eq!(covered, width.div_ceil(16 / value_bytes));
            }
        }
    }

    #[test]
    fn no_dispatch_takes_more_steps_than_allowed_unless_one_item_does() {
        let indptr = indptr(2_000, 9);
        let layout = Layout::new(&indptr, 10, 16, 4, limits(1 << 19)).unwrap();
        assert!(layout.blocks.iter().any(|block| block.dispatches.len() > 3));
        for block in &layout.blocks {
            let (list, _) = all_items(&indptr, block);
            let mut first = 0;
            for &end in &block.dispatches {
                let steps: u32 = list[first..end].iter().map(|item| (item[2] - item[1]).max(1) * 4).sum();
                assert!(steps <= 5_000 || end - first == 1, "{steps} steps in {} items", end - first);
                first = end;
            }
        }
    }

    #[test]
    fn what_cannot_be_cut_is_refused_by_name() {
        let small = Limits { segment: 1_024, binding: 4_096, steps: 1 << 30 };
        let message = |indptr: &[usize], inner, bytes| match Layout::new(indptr, inner, 8, bytes, small) {
            Ok(layout) => panic!("{layout:?}"),
            Err(error) => error.to_string(),
        };
        assert_eq!(
            message(&[0, 3], 257, 4),
            "B, 16 bytes of each row in one buffer on the device, in bytes: 4112 requested, at most 4096 possible"
        );
        assert_eq!(
            message(&[0, 1, 1_026], 256, 4),
            "entries of A in row 1, in one buffer on the device: 1025 requested, at most 1024 possible"
        );
        assert!(message(&[0, 513], 256, 8).starts_with("entries of A in row 0"));
        assert!(Layout::new(&[0, 1_024, 1_024], 256, 8, 4, small).is_ok());
    }

    #[test]
    fn rows_of_any_length_have_few_pieces_and_short_loops() {
        for entries in [0, 1, 255, 256, 257, 70_000, 4_194_304, 4_194_305, 1 << 28, u32::MAX as usize] {
            assert!((1..=MOST_PIECES).contains(&pieces(entries)), "{entries} entries");
            assert!(piece(entries) * pieces(entries) >= entries);
        }
        assert_eq!((pieces(0), pieces(256), pieces(257), piece(4_194_304)), (1, 1, 2, 256));
        let longest =
            Layout::new(&[0, 1 << 27], 1 << 10, 4, 4, Limits { segment: 1 << 30, binding: 1 << 31, steps: 1 });
        assert!(longest.unwrap().iterations() < 58_000);
    }

    #[test]
    fn lanes_cover_the_vectors_with_the_fewest_idle() {
        for (vectors, expected) in
            [(0, 1), (1, 1), (2, 2), (3, 4), (5, 8), (8, 8), (9, 16), (16, 16), (17, 8), (32, 32), (33, 8), (64, 32)]
        {
            assert_eq!(lanes(vectors), expected, "{vectors} vectors");
            assert!(LANES.contains(&lanes(vectors)));
        }
        // The third dimension of a dispatch is not folded.
        for vectors in [1, 7, 8, 9, 1_000, MOST_GROUPS_Z * 8] {
            assert!(vectors.div_ceil(lanes(vectors)) <= MOST_GROUPS_Z);
        }
    }
}
