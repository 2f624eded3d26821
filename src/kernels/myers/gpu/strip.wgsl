// One strip of 8 words (256 rows) of one pattern against a block of texts, for some of their columns: patterns of any
// length, strip by strip, and texts of any length, some columns at a time.
//
// As in texts.wgsl, one invocation owns one text and a workgroup a block of 64. What the strip above did to a column, one
// of +1, 0 and -1, is read from `edges`, as 2 bits for each column, and replaced by what this strip does. The column in
// which a dispatch stops is kept in `kept`. Dispatch fold(blocks) workgroups. Needs 8 KiB of workgroup memory.

struct Work {
  first: u32,         // first block of this dispatch
  end: u32,           // one past its last
  groups_x: u32,      // workgroups along x; those beyond are folded into y
  base: u32,          // of the first group of this dispatch in `patterns`
  stride: u32,        // words of a group
  texts: u32,         // in this segment: places of a row of `distances`
  from_column: u32,   // columns of this dispatch, from a multiple of 32 on
  to_column: u32,     // a multiple of 32
  is_first: u32,      // whether there is no strip above
  is_last: u32,       // whether there is none below
}

@group(0) @binding(0) var<storage, read> codes: array<u32>;
@group(0) @binding(1) var<storage, read> starts: array<vec2<u32>>;   // of a block, in `codes` and `edges`
@group(0) @binding(2) var<storage, read> lengths: array<u32>;
@group(0) @binding(3) var<storage, read> places: array<u32>;         // of a text in a row of `distances`, or NOWHERE
@group(1) @binding(0) var<storage, read> patterns: array<u32>;       // see group.wgsl
@group(1) @binding(1) var<storage, read_write> distances: array<u32>;
@group(1) @binding(2) var<uniform> p: Work;
@group(2) @binding(0) var<storage, read_write> edges: array<vec2<u32>>;   // [tile][text of the block]: +1 in x, -1 in y
@group(2) @binding(1) var<storage, read_write> kept: array<u32>;          // [block][vertical differences][text]

@compute @workgroup_size(64)
fn strip(
  @builtin(workgroup_id) id: vec3<u32>,
  @builtin(local_invocation_index) index: u32,
) {
  let base = p.base;
  fill_table(base, index);
  workgroupBarrier();
  let block = p.first + id.y * p.groups_x + id.x;
  if (block >= p.end) { return; }
  let text = block * LANES + index;
  let place = places[text];
  let length = lengths[text];
  // A text that ended in a dispatch before this one is done.
  if (place == NOWHERE || (length <= p.from_column && p.from_column > 0u)) { return; }
  if (is_far(base, length)) {
    distances[patterns[base + TO_ROWS] * p.texts + place] = BEYOND;
    return;
  }
  let start = starts[block].x + index;
  let edge_start = starts[block].y + index;
  let stride = stride_of(block, p.texts);
  let keep_at = block * (2u * WORDS * LANES) + index;
  var state = fresh();
  if (p.from_column > 0u) {
    recall(&state, keep_at);
  }
  let end = min(length, p.to_column);
  for (var first = p.from_column; first < end; first += 32u) {
    let edge_at = edge_start + (first / 32u) * stride;
    var above = vec2<u32>(0xffffffffu, 0u);
    if (p.is_first == 0u) {
      above = edges[edge_at];
    }
    var below = vec2<u32>();
    let columns = min(end - first, 32u);
    var packed = 0u;
    for (var k = 0u; k < columns; k++) {
      if (k % CODES == 0u) {
        packed = codes[start + ((first + k) / CODES) * stride];
      }
      let code = (packed >> ((k % CODES) * BITS)) & CODE;
      let edge = column(&state, table_row(base, code), Edge((above.x >> k) & 1u, (above.y >> k) & 1u));
      below |= vec2<u32>(edge.up << k, edge.down << k);
    }
    edges[edge_at] = below;
  }
  if (length > p.to_column) {
    keep(&state, keep_at);
  } else {
    finish(&state, base, select(0u, length, p.is_first == 1u), place);
  }
}

fn write(base: u32, pattern: u32, distance: u32, place: u32) {
  let at = patterns[base + TO_ROWS + pattern] * p.texts + place;
  var sum = distance;
  if (p.is_first == 0u) {
    sum += distances[at];
  }
  distances[at] = select(sum, BEYOND, p.is_last == 1u && sum > patterns[base]);
}
