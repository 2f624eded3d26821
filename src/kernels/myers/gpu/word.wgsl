
// A word of 32 rows of one column, by the recurrence of Hyyrö (2003), section 4: each bit of `vp` says that the distance
// grows by one from the row above, of `vn` that it shrinks.

const BEYOND = 0xffffffffu;
const NOWHERE = 0xffffffffu;
const LANES = 64u;

override BITS: u32 = 8u;                                 // of a symbol's code: 8, 16 or 32
override CODES: u32 = 32u / BITS;                        // in a word
override CODE: u32 = 0xffffffffu >> (32u - BITS);

// How far the words of a text lie apart: the last block has fewer than 64 texts.
fn stride_of(block: u32, texts: u32) -> u32 {
  return min(LANES, texts - block * LANES);
}

// What a row does from one column to the next, in bit 0: grows or shrinks by one.
struct Edge { up: u32, down: u32, }

// Above the first row: the distance to the empty pattern grows with each symbol of the text.
const START = Edge(1u, 0u);

struct Word { vp: u32, vn: u32, edge: Edge, }

fn word(vp: u32, vn: u32, is_equal: u32, above: Edge) -> Word {
  let x = is_equal | above.down;
  let d0 = (((x & vp) + vp) ^ vp) | x | vn;
  let up = vn | ~(d0 | vp);
  let down = vp & d0;
  let shifted = (up << 1u) | above.up;
  return Word(
    ((down << 1u) | above.down) | ~(d0 | shifted),
    shifted & d0,
    Edge(up >> 31u, down >> 31u),
  );
}

// The sum of the vertical differences in the first `rows` rows of a word.
fn height(vp: u32, vn: u32, rows: u32) -> u32 {
  let mask = select((1u << (rows & 31u)) - 1u, 0xffffffffu, rows >= 32u);
  return countOneBits(vp & mask) - countOneBits(vn & mask);
}
