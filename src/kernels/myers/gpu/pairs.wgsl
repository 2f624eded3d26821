// Distances of texts, each to a pattern of its own.
//
// One invocation owns one pair: 32 rows of its pattern at a time, as bit planes in registers, against all of its text; what
// these rows do to each column, 2 bits, is kept in `edges` for the next 32. A workgroup owns a block of 64 texts, whose
// symbols lie [word][text], so that neighbours read neighbours. Dispatch fold(blocks) workgroups. No workgroup memory.
//
// Counted for a symbol of the text and 32 rows: 2 operations for each bit of a symbol's code to find the equal rows, 11
// for the recurrence, about 8 for the rest. The edges are 16 bytes moved for 32 symbols.

struct Pairs {
  first: u32,         // first block of this dispatch
  end: u32,           // one past its last
  groups_x: u32,      // workgroups along x; those beyond are folded into y
  texts: u32,         // in this segment
  pairs: u32,         // the first block of `pairs`
}

@group(0) @binding(0) var<storage, read> patterns: array<u32>;        // see tile.wgsl
@group(0) @binding(1) var<storage, read> texts: array<u32>;           // codes
@group(0) @binding(2) var<storage, read> starts: array<vec2<u32>>;    // of a block, in `texts` and `edges`
@group(0) @binding(3) var<storage, read> pairs: array<vec4<u32>>;     // rows, columns, place of the distance, pattern's start
@group(0) @binding(4) var<storage, read> call: array<u32>;            // the cutoff
@group(0) @binding(5) var<storage, read_write> edges: array<vec2<u32>>;   // [tile][pair of the block]
@group(0) @binding(6) var<storage, read_write> distances: array<u32>;
@group(0) @binding(7) var<uniform> p: Pairs;

@compute @workgroup_size(64)
fn short_pairs(
  @builtin(workgroup_id) id: vec3<u32>,
  @builtin(local_invocation_index) index: u32,
) {
  let block = p.first + id.y * p.groups_x + id.x;
  if (block >= p.end) { return; }
  let pair = pairs[(block - p.pairs) * LANES + index];
  if (pair.z == NOWHERE) { return; }
  let cutoff = call[0];
  if (max(pair.x, pair.y) - min(pair.x, pair.y) > cutoff) {
    distances[pair.z] = BEYOND;
    return;
  }
  let start = starts[block] + vec2<u32>(index);
  let stride = stride_of(block, p.texts);
  var sum = pair.y;
  for (var first_row = 0u; first_row < pair.x; first_row += 32u) {
    let rows = min(pair.x - first_row, 32u);
    var planes = load_rows(pair.w + (first_row / 32u) * ROWS_WORDS, rows);
    var column = Column(0xffffffffu, 0u);
    for (var first = 0u; first < pair.y; first += 32u) {
      let edge_at = start.y + (first / 32u) * stride;
      var above = ABOVE_ALL;
      if (first_row > 0u) {
        above = edges[edge_at];
      }
      let columns = min(pair.y - first, 32u);
      let below = tile(&column, &planes, above, start.x + (first / CODES) * stride, stride, columns);
      if (first_row + 32u < pair.x) {
        edges[edge_at] = below;
      }
    }
    sum += height(column.vp, column.vn, rows);
  }
  distances[pair.z] = select(sum, BEYOND, sum > cutoff);
}
