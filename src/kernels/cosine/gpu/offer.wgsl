// Joined to `score_tile.wgsl` and `score_narrow.wgsl`: operands, and the step from a dot product to a candidate.
//
// A row has four numbers, so that one formula serves cosine, dot and L2 (see bounds.rs):
//   upper = q.x * scale + bias + error * |q|,   lower = upper - 2 (error * |q| + slack) - slack_q.
// A row is a candidate of a query when its upper bound reaches the query's threshold: the k-th largest lower bound
// so far. Rows that can be in the answer are never lost; queries x rows are never written.

struct Score {
  first: u32,    // first row of this step in the segment
  stride: u32,   // rows between two rows of this step
  count: u32,    // rows of this step
  base: u32,     // row number of the segment's first row in the corpus
  queries: u32,
  quads: u32,    // vec4s of a row
  cap: u32,      // candidates that a query has room for
  tiles_x: u32,  // workgroups along x; tiles beyond are folded into y
}

struct State {
  count: atomic<u32>,   // candidates offered since the last merge; above cap: some were lost
  threshold: u32,       // ordered bits of the k-th largest lower bound; 0: none yet
  overflowed: u32,      // whether candidates were ever lost
  kept: u32,
}

@group(0) @binding(1) var<storage, read> row_terms: array<vec4<f32>>;    // scale, bias, error, slack; error < 0: never
@group(1) @binding(0) var<storage, read> queries: array<vec4<f32>>;
@group(1) @binding(1) var<storage, read> query_terms: array<vec2<f32>>;  // |q|, slack_q
@group(1) @binding(2) var<storage, read_write> state: array<State>;
@group(1) @binding(3) var<storage, read_write> candidates: array<u32>;   // lower, upper (ordered bits), row
@group(1) @binding(4) var<uniform> p: Score;

const LARGEST = 3.0e38;

// Bits that order as the numbers do; never 0 for a finite number.
fn ordered(x: f32) -> u32 {
  let bits = bitcast<u32>(x);
  return select(bits | 0x80000000u, ~bits, (bits & 0x80000000u) != 0u);
}

fn from_ordered(key: u32) -> f32 {
  return bitcast<f32>(select(~key, key & 0x7fffffffu, (key & 0x80000000u) != 0u));
}

// The threshold that an upper bound has to reach; a query beyond the last one is never reached.
fn threshold_of(query: u32) -> f32 {
  if (query >= p.queries) { return LARGEST; }
  let key = state[query].threshold;
  if (key == 0u) { return -LARGEST; }
  return from_ordered(key);
}

fn terms_of_query(query: u32) -> vec2<f32> {
  if (query >= p.queries) { return vec2<f32>(0.0, 0.0); }
  return query_terms[query];
}

fn append(query: u32, lower: f32, upper: f32, row: u32) {
  if (query >= p.queries) { return; }
  let slot = atomicAdd(&state[query].count, 1u);
  if (slot < p.cap) {
    let at = (query * p.cap + slot) * 3u;
    candidates[at] = ordered(lower);
    candidates[at + 1u] = ordered(upper);
    candidates[at + 2u] = row;
  }
}
