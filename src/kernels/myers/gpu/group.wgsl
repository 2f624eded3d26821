
// A group of patterns in `patterns`: a header of TO_TABLE words, the table as [word][row], and, where codes have more
// than 8 bits, the row of each code. In the header: the cutoff; rows of the table; the shortest and the longest
// pattern's length; from TO_LENGTHS on how many rows of this group each pattern has; from TO_ROWS on the row of
// `distances` it goes to, or NOWHERE.

const TO_LENGTHS = 8u;
const TO_ROWS = 16u;
const TO_TABLE = 24u;

// Rows of the table at most: one for each of 256 symbols, and one for the symbols that no pattern of the group has.
const ROWS = 257u;

override WORDS: u32 = 8u;                                // 1, 2, 4 or 8
override PER: u32 = 8u;                                  // words of a pattern: divides WORDS
override TABLE: u32 = 257u * WORDS;

var<workgroup> table: array<u32, TABLE>;

fn fill_table(base: u32, index: u32) {
  let rows = patterns[base + 1u];
  for (var word = 0u; word < WORDS; word++) {
    for (var row = index; row < rows; row += LANES) {
      table[word * ROWS + row] = patterns[base + TO_TABLE + word * rows + row];
    }
  }
}

fn table_row(base: u32, code: u32) -> u32 {
  if (BITS == 8u) { return code; }
  return patterns[base + TO_TABLE + WORDS * ROWS + code];
}

// Whether the length of a text alone puts it beyond the cutoff, for all patterns of the group.
fn is_far(base: u32, length: u32) -> bool {
  let cutoff = patterns[base];
  let shortest = patterns[base + 2u];
  let longest = patterns[base + 3u];
  return (length > longest && length - longest > cutoff) || (length < shortest && shortest - length > cutoff);
}

// Rows of word `word` of a pattern.
fn rows_of(base: u32, pattern: u32, word: u32) -> u32 {
  let rows = patterns[base + TO_LENGTHS + pattern];
  return rows - min(rows, word * 32u);
}
