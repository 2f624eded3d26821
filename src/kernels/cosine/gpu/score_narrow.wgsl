// Scores 64 rows against 1 to 8 queries and appends the candidates: a matrix-vector product bound by reading the rows.
//
// 16 invocations own a row together (each every 16th vec4, so that reads are contiguous), 4 rows at a time, 16 times;
// a workgroup of 64 owns 64 rows; dispatch fold(ceil(count / 64)) workgroups. Needs 256 QUERIES bytes of workgroup
// memory, no optional feature.
//
// Counted per row, dim d (f32): reads 4 d + 16 bytes from memory (the queries stay in cache), computes 2 d QUERIES
// operations: QUERIES / 2 operations a byte, so the bandwidth decides on every device: rows * (4 d + 16) / B seconds.

override QUERIES: u32 = 1u;                  // 1 to 8
override PARTIALS: u32 = 64u * QUERIES;
override RESULTS: u32 = 4u * QUERIES;

const LANES = 16u;                           // invocations of one row
const TEAMS = 4u;                            // rows at a time
const TURNS = 16u;

var<workgroup> partials: array<f32, PARTIALS>;

@compute @workgroup_size(64)
fn score_narrow(
  @builtin(workgroup_id) group: vec3<u32>,
  @builtin(local_invocation_index) index: u32,
) {
  let row0 = (group.y * p.tiles_x + group.x) * TEAMS * TURNS;
  let lane = index % LANES;
  let team = index / LANES;
  for (var turn = 0u; turn < TURNS; turn++) {
    let row = row0 + turn * TEAMS + team;
    var sums = array<f32, 8>();
    if (row < p.count) {
      let start = (p.first + row * p.stride) * p.quads;
      for (var quad = lane; quad < p.quads; quad += LANES) {
        let x = corpus_quad(start + quad);
        for (var query = 0u; query < QUERIES; query++) {
          sums[query] += dot(x, queries[query * p.quads + quad]);
        }
      }
    }
    for (var query = 0u; query < QUERIES; query++) {
      partials[query * 64u + index] = sums[query];
    }
    workgroupBarrier();
    if (index < RESULTS) {
      let query = index / TEAMS;
      let owner = index % TEAMS;
      var total = 0.0;
      for (var part = 0u; part < LANES; part++) {
        total += partials[query * 64u + owner * LANES + part];
      }
      offer_one(row0 + turn * TEAMS + owner, total, query);
    }
    workgroupBarrier();
  }
}

fn offer_one(row: u32, total: f32, query: u32) {
  if (row >= p.count || query >= p.queries) { return; }
  let local = p.first + row * p.stride;
  let terms = row_terms[local];
  if (terms.z < 0.0) { return; }
  let of_query = query_terms[query];
  let spread = terms.z * of_query.x;
  let upper = total * terms.x + terms.y + spread;
  if (upper >= threshold_of(query)) {
    append(query, upper - 2.0 * (spread + terms.w) - of_query.y, upper, p.base + local);
  }
}
