// Distances of a group of patterns, WORDS words of 32 rows together and PER for each pattern, to a block of texts.
//
// One invocation owns one text and keeps a column of every pattern of the group in registers; a workgroup owns a block of
// 64 texts, whose symbols lie [word][text], so that neighbours read neighbours. Its workgroup memory holds the group's
// table: for each word the rows whose symbol is a given one. Dispatch fold(blocks) x groups workgroups.
//
// Counted for a symbol of a text: 11 operations and one read of the table for each word; 4 (8-bit codes) symbols for 4
// bytes of the text. So operations decide. The distance is not followed through the loop: in the last column it is the
// length of the text plus the sum of the vertical differences.

struct Work {
  first: u32,         // first block of this dispatch
  end: u32,           // one past its last
  groups_x: u32,      // workgroups along x; those beyond are folded into y
  base: u32,          // of the first group of this dispatch in `patterns`
  stride: u32,        // words of a group
  texts: u32,         // in this segment: places of a row of `distances`
  from_column: u32,   // columns of this dispatch (strips only)
  to_column: u32,
  is_first: u32,      // whether there is no strip above (strips only)
  is_last: u32,       // whether there is none below (strips only)
}

@group(0) @binding(0) var<storage, read> codes: array<u32>;
@group(0) @binding(1) var<storage, read> starts: array<vec2<u32>>;   // of a block, in `codes` and `edges`
@group(0) @binding(2) var<storage, read> lengths: array<u32>;
@group(0) @binding(3) var<storage, read> places: array<u32>;         // of a text in a row of `distances`, or NOWHERE
@group(1) @binding(0) var<storage, read> patterns: array<u32>;       // see group.wgsl
@group(1) @binding(1) var<storage, read_write> distances: array<u32>;
@group(1) @binding(2) var<uniform> p: Work;

@compute @workgroup_size(64)
fn texts(
  @builtin(workgroup_id) id: vec3<u32>,
  @builtin(local_invocation_index) index: u32,
) {
  let base = p.base + id.z * p.stride;
  fill_table(base, index);
  workgroupBarrier();
  let block = p.first + id.y * p.groups_x + id.x;
  if (block >= p.end) { return; }
  let text = block * LANES + index;
  let place = places[text];
  if (place == NOWHERE) { return; }
  let length = lengths[text];
  if (is_far(base, length)) {
    for (var pattern = 0u; pattern < WORDS / PER; pattern++) {
      write(base, pattern, BEYOND, place);
    }
    return;
  }
  let start = starts[block].x + index;
  let stride = stride_of(block, p.texts);
  var state = fresh();
  let full = length / CODES;
  for (var at = 0u; at < full; at++) {
    let packed = codes[start + at * stride];
    for (var k = 0u; k < CODES; k++) {
      column(&state, table_row(base, (packed >> (k * BITS)) & CODE), START);
    }
  }
  let left = length - full * CODES;
  if (left > 0u) {
    let packed = codes[start + full * stride];
    for (var k = 0u; k < left; k++) {
      column(&state, table_row(base, (packed >> (k * BITS)) & CODE), START);
    }
  }
  finish(&state, base, length, place);
}

fn write(base: u32, pattern: u32, distance: u32, place: u32) {
  let row = patterns[base + TO_ROWS + pattern];
  if (row == NOWHERE) { return; }
  distances[row * p.texts + place] = select(distance, BEYOND, distance > patterns[base]);
}
