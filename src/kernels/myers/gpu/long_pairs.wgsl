// Distances of long texts, each to a pattern of its own.
//
// A workgroup of 64 owns a strip of 2,048 rows of one pair, each invocation 32 of them, on the anti-diagonal: in step s,
// invocation i takes the 32 columns of tile s - i and hands what its rows do to them, 2 bits a column, to invocation i + 1
// through workgroup memory; the last one leaves it in `edges` for the strip below. The strips of a pair are on an
// anti-diagonal as well: in round r, strip g takes its steps from (r - 2 g) p.steps on, so that what it needs of the strip
// above was left in an earlier round (with at least 64 steps a round). Dispatch fold(pairs) x strips workgroups, round
// after round. Needs 1 KiB of workgroup memory.
//
// Counted as in pairs.wgsl, and one barrier for 32 columns. The invocations are idle for 63 steps of each strip.

struct LongPairs {
  first: u32,         // first pair of this dispatch
  end: u32,           // one past its last
  groups_x: u32,      // workgroups along x; those beyond are folded into y
  strip: u32,         // first strip of this dispatch
  round: u32,
  steps: u32,         // of a round, at least 64
}

struct Pair {
  pattern: u32,       // its first word in `patterns`
  rows: u32,
  text: u32,          // its first word in `texts`
  stride: u32,        // from there to the next
  columns: u32,
  edges: u32,         // its first tile in `edges`
  kept: u32,          // its first strip in `kept`
  place: u32,         // of its distance
  strips: u32,
}

@group(0) @binding(0) var<storage, read> patterns: array<u32>;        // see tile.wgsl
@group(0) @binding(1) var<storage, read> texts: array<u32>;           // codes
@group(0) @binding(2) var<storage, read> pairs: array<Pair>;
@group(0) @binding(3) var<storage, read_write> edges: array<vec2<u32>>;
@group(0) @binding(4) var<storage, read_write> kept: array<vec4<u32>>;    // [strip][invocation], between rounds
@group(0) @binding(5) var<storage, read_write> distances: array<atomic<u32>>;
@group(0) @binding(6) var<uniform> p: LongPairs;

// By parity of the step.
var<workgroup> handed: array<vec2<u32>, 128>;

@compute @workgroup_size(64)
fn long_pairs(
  @builtin(workgroup_id) id: vec3<u32>,
  @builtin(local_invocation_index) index: u32,
) {
  let number = p.first + id.y * p.groups_x + id.x;
  let pair = pairs[min(number, p.end - 1u)];
  let strip = p.strip + id.z;
  let tiles = (pair.columns + 31u) / 32u;
  let first_step = (p.round - min(2u * strip, p.round)) * p.steps;
  let first_row = (strip * LANES + index) * 32u;
  let is_here = number < p.end && strip < pair.strips && 2u * strip <= p.round && first_row < pair.rows
    && first_step < tiles + LANES;
  let rows = select(0u, min(pair.rows - first_row, 32u), is_here);
  let keep_at = (pair.kept + strip) * LANES + index;
  var planes = load_rows(pair.pattern + (first_row / 32u) * ROWS_WORDS, rows);
  var column = Column(0xffffffffu, 0u);
  var below = vec2<u32>();
  if (is_here && first_step > 0u) {
    let state = kept[keep_at];
    column = Column(state.x, state.y);
    below = state.zw;
  }
  handed[((first_step + 1u) & 1u) * LANES + index] = below;
  workgroupBarrier();
  for (var s = 0u; s < p.steps; s++) {
    let step = first_step + s;
    let now = step - min(index, step);
    if (is_here && step >= index && now < tiles) {
      var above = ABOVE_ALL;
      if (index > 0u) {
        above = handed[((step + 1u) & 1u) * LANES + index - 1u];
      } else if (strip > 0u) {
        above = edges[pair.edges + now];
      }
      let columns = min(pair.columns - now * 32u, 32u);
      below = tile(&column, &planes, above, pair.text + now * (32u / CODES) * pair.stride, pair.stride, columns);
      handed[(step & 1u) * LANES + index] = below;
      if (index == LANES - 1u) {
        edges[pair.edges + now] = below;
      }
      if (now + 1u == tiles) {
        // Modulo 2^32, where a sum of differences below 0 is one as well.
        let start = select(0u, pair.columns, first_row == 0u);
        atomicAdd(&distances[pair.place], start + height(column.vp, column.vn, rows));
      }
    }
    workgroupBarrier();
  }
  if (is_here) {
    kept[keep_at] = vec4<u32>(column.vp, column.vn, below);
  }
}
