
// 32 rows of a pattern against up to 32 columns.

// What row 0 does to the columns of a tile: the distance to the empty pattern grows with each.
const ABOVE_ALL = vec2<u32>(0xffffffffu, 0u);

struct Column { vp: u32, vn: u32, }

// 32 rows in `patterns`: a word that says which of them have a symbol that some text has, then their packed codes.
override ROWS_WORDS: u32 = 1u + BITS;

fn load_rows(at: u32, rows: u32) -> Planes {
  var planes: Planes;
  if (rows == 0u) { return planes; }
  planes.are_known = patterns[at];
  var packed = 0u;
  for (var row = 0u; row < rows; row++) {
    if (row % CODES == 0u) {
      packed = patterns[at + 1u + row / CODES];
    }
    add_code(&planes, (packed >> ((row % CODES) * BITS)) & CODE, row);
  }
  return planes;
}

// Takes a column on by some symbols; what the rows do to each column, from what those above do.
fn tile(
  column: ptr<function, Column>,
  planes: ptr<function, Planes>,
  above: vec2<u32>,
  at: u32,
  stride: u32,
  columns: u32,
) -> vec2<u32> {
  var below = vec2<u32>();
  var packed = 0u;
  for (var k = 0u; k < columns; k++) {
    if (k % CODES == 0u) {
      packed = texts[at + (k / CODES) * stride];
    }
    let code = (packed >> ((k % CODES) * BITS)) & CODE;
    let edge = Edge((above.x >> k) & 1u, (above.y >> k) & 1u);
    let next = word((*column).vp, (*column).vn, is_equal(planes, code), edge);
    *column = Column(next.vp, next.vn);
    below |= vec2<u32>(next.edge.up << k, next.edge.down << k);
  }
  return below;
}
