//! Where the operands lie on the device, decided on the host before anything is allocated: column tiles of B and C, row
//! blocks of A and C, and the items that the kernel works on.

use crate::device::Device;
use crate::error::Error;
use std::ops::Range;

/// Bytes of a vector: what an invocation reads of B at once.
pub(super) const VECTOR_BYTES: u64 = 16;

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
    entries.div_ceil(MOST_PIECES).next_multiple_of(4).max(PIECE)
}

/// Pieces of a row of `entries`; an empty row is one, so that it is written.
fn pieces(entries: usize) -> usize {
    entries.div_ceil(piece(entries)).max(1)
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
}

impl Limits {
    pub(super) fn of(device: &Device) -> Self {
        Self { segment: device.segment_bytes(), binding: device.binding_bytes() }
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
        let per_vector = VECTOR_BYTES as usize / value_bytes;
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
        let fits = |count: usize, bytes: u64| count as u64 * bytes <= limits.segment;
        let mut block = Block::default();
        let mut steps = 0;
        for (row, pair) in indptr.windows(2).enumerate() {
            let (start, end) = (pair[0], pair[1]);
            let entries = end - start;
            let pieces = pieces(entries);
            let slots = if pieces > 1 { pieces } else { 0 };
            // A row is never cut between two buffers.
            if entries as u64 > (limits.binding / entry_bytes).min(u32::MAX.into()) {
                let max = (limits.binding / entry_bytes).min(u32::MAX.into());
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
                if steps + more > MOST_STEPS && steps > 0 {
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

/// The items and the long rows of a block.
pub(super) fn items(indptr: &[usize], block: &Block, items: &mut Vec<Item>, long_rows: &mut Vec<LongRow>) {
    items.clear();
    long_rows.clear();
    let mut slot = 0;
    let indptr = &indptr[block.rows.start..=block.rows.end];
    for (row, pair) in indptr.windows(2).enumerate() {
        let (start, end) = (pair[0] - block.entries.start, pair[1] - block.entries.start);
        let piece = piece(end - start);
        let row = as_u32(row);
        if end - start <= piece {
            items.push([row, as_u32(start), as_u32(end), TO_C]);
            continue;
        }
        let first_slot = slot;
        for from in (start..end).step_by(piece) {
            items.push([row, as_u32(from), as_u32(end.min(from + piece)), slot]);
            slot += 1;
        }
        long_rows.push([row, first_slot, slot - first_slot]);
    }
}

pub(super) fn as_u32(value: usize) -> u32 {
    // Positions in a buffer: the layout keeps them far below.
    u32::try_from(value).unwrap_or(u32::MAX)
}
