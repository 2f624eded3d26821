// Scores a tile of 8 WY rows against 8 WX queries and appends the candidates.
//
// One invocation owns 8 x 8 scores (16 vec4 accumulators); a workgroup of WX x WY one tile; dispatch
// fold(ceil(count / (8 WY))) x ceil(queries / (8 WX)) workgroups. Needs SLAB * 8 (WX + WY) * 4 bytes of workgroup
// memory (16 KiB at 16 x 16 x 16), no optional feature.
//
// Counted per tile of 128 x 128 at SLAB = 16, dim d (f32): reads 2 * 128 * 4 d bytes, computes 2 * 128 * 128 * d
// operations: 32 operations a byte from L2 or memory, 16 multiply-adds for 4 vec4 of workgroup memory. On a device with
// F flop/s and B bytes/s it is bound by arithmetic when F / B < 32 per tile row, and since all query tiles of a row tile
// hit L2, by memory only below about F / B / 2 queries.

override WX: u32 = 16u;
override WY: u32 = 16u;
override SLAB: u32 = 16u;                    // elements of a row staged at once, a multiple of 4
override ROW_QUADS: u32 = 2u * WY;
override QUERY_QUADS: u32 = 2u * WX;
override SLAB_QUADS: u32 = SLAB / 4u;
override ROW_TASKS: u32 = ROW_QUADS * SLAB_QUADS;
override TASKS: u32 = (ROW_QUADS + QUERY_QUADS) * SLAB_QUADS;
override THREADS: u32 = WX * WY;
override ROW_SLAB: u32 = ROW_QUADS * SLAB;
override QUERY_SLAB: u32 = QUERY_QUADS * SLAB;

// Element-major: slab[element * quads + quad] holds one element of four rows (queries).
var<workgroup> row_slab: array<vec4<f32>, ROW_SLAB>;
var<workgroup> query_slab: array<vec4<f32>, QUERY_SLAB>;

fn row_part(row: u32, quad: u32) -> vec4<f32> {
  if (row >= p.count || quad >= p.quads) { return vec4<f32>(); }
  return corpus_quad((p.first + row * p.stride) * p.quads + quad);
}

fn query_part(query: u32, quad: u32) -> vec4<f32> {
  if (query >= p.queries || quad >= p.quads) { return vec4<f32>(); }
  return queries[query * p.quads + quad];
}

struct QueryGroup {
  first: u32,
  norms: vec4<f32>,
  slacks: vec4<f32>,
  thresholds: vec4<f32>,
}

fn query_group(first: u32) -> QueryGroup {
  let a = terms_of_query(first);
  let b = terms_of_query(first + 1u);
  let c = terms_of_query(first + 2u);
  let d = terms_of_query(first + 3u);
  return QueryGroup(
    first,
    vec4<f32>(a.x, b.x, c.x, d.x),
    vec4<f32>(a.y, b.y, c.y, d.y),
    vec4<f32>(threshold_of(first), threshold_of(first + 1u), threshold_of(first + 2u), threshold_of(first + 3u)),
  );
}

fn offer(row: u32, dots: vec4<f32>, group: QueryGroup) {
  if (row >= p.count) { return; }
  let local = p.first + row * p.stride;
  let terms = row_terms[local];
  if (terms.z < 0.0) { return; }
  let spread = terms.z * group.norms;
  let upper = dots * terms.x + vec4<f32>(terms.y) + spread;
  let hit = upper >= group.thresholds;
  if (!any(hit)) { return; }
  let lower = upper - 2.0 * (spread + vec4<f32>(terms.w)) - group.slacks;
  let number = p.base + local;
  if (hit.x) { append(group.first, lower.x, upper.x, number); }
  if (hit.y) { append(group.first + 1u, lower.y, upper.y, number); }
  if (hit.z) { append(group.first + 2u, lower.z, upper.z, number); }
  if (hit.w) { append(group.first + 3u, lower.w, upper.w, number); }
}

@compute @workgroup_size(WX, WY)
fn score_tile(
  @builtin(workgroup_id) group: vec3<u32>,
  @builtin(local_invocation_id) local: vec3<u32>,
  @builtin(local_invocation_index) index: u32,
) {
  let row0 = (group.y * p.tiles_x + group.x) * 8u * WY;
  let query0 = group.z * 8u * WX;
  // An invocation's rows are 4 at local.y and 4 in the other half of the tile, its queries likewise: neighbours read
  // neighbouring vec4 of workgroup memory, so no two of them meet in a bank.
  var acc = array<vec4<f32>, 16>();
  for (var quad0 = 0u; quad0 < p.quads; quad0 += SLAB_QUADS) {
    for (var task = index; task < TASKS; task += THREADS) {
      // Four rows, one quad of each: read as it lies in memory, written transposed, whole vec4 both times.
      let is_row = task < ROW_TASKS;
      let number = select(task - ROW_TASKS, task, is_row);
      let part = number % SLAB_QUADS;
      let quad = number / SLAB_QUADS;
      let column = quad0 + part;
      if (is_row) {
        let row = row0 + 4u * quad;
        let a = row_part(row, column);
        let b = row_part(row + 1u, column);
        let c = row_part(row + 2u, column);
        let d = row_part(row + 3u, column);
        let at = 4u * part * ROW_QUADS + quad;
        row_slab[at] = vec4<f32>(a.x, b.x, c.x, d.x);
        row_slab[at + ROW_QUADS] = vec4<f32>(a.y, b.y, c.y, d.y);
        row_slab[at + 2u * ROW_QUADS] = vec4<f32>(a.z, b.z, c.z, d.z);
        row_slab[at + 3u * ROW_QUADS] = vec4<f32>(a.w, b.w, c.w, d.w);
      } else {
        let query = query0 + 4u * quad;
        let a = query_part(query, column);
        let b = query_part(query + 1u, column);
        let c = query_part(query + 2u, column);
        let d = query_part(query + 3u, column);
        let at = 4u * part * QUERY_QUADS + quad;
        query_slab[at] = vec4<f32>(a.x, b.x, c.x, d.x);
        query_slab[at + QUERY_QUADS] = vec4<f32>(a.y, b.y, c.y, d.y);
        query_slab[at + 2u * QUERY_QUADS] = vec4<f32>(a.z, b.z, c.z, d.z);
        query_slab[at + 3u * QUERY_QUADS] = vec4<f32>(a.w, b.w, c.w, d.w);
      }
    }
    workgroupBarrier();
    for (var element = 0u; element < SLAB; element++) {
      let r = row_slab[element * ROW_QUADS + local.y];
      let s = row_slab[element * ROW_QUADS + WY + local.y];
      let u = query_slab[element * QUERY_QUADS + local.x];
      let v = query_slab[element * QUERY_QUADS + WX + local.x];
      acc[0] = fma(vec4<f32>(r.x), u, acc[0]);
      acc[1] = fma(vec4<f32>(r.x), v, acc[1]);
      acc[2] = fma(vec4<f32>(r.y), u, acc[2]);
      acc[3] = fma(vec4<f32>(r.y), v, acc[3]);
      acc[4] = fma(vec4<f32>(r.z), u, acc[4]);
      acc[5] = fma(vec4<f32>(r.z), v, acc[5]);
      acc[6] = fma(vec4<f32>(r.w), u, acc[6]);
      acc[7] = fma(vec4<f32>(r.w), v, acc[7]);
      acc[8] = fma(vec4<f32>(s.x), u, acc[8]);
      acc[9] = fma(vec4<f32>(s.x), v, acc[9]);
      acc[10] = fma(vec4<f32>(s.y), u, acc[10]);
      acc[11] = fma(vec4<f32>(s.y), v, acc[11]);
      acc[12] = fma(vec4<f32>(s.z), u, acc[12]);
      acc[13] = fma(vec4<f32>(s.z), v, acc[13]);
      acc[14] = fma(vec4<f32>(s.w), u, acc[14]);
      acc[15] = fma(vec4<f32>(s.w), v, acc[15]);
    }
    workgroupBarrier();
  }
  let near = query_group(query0 + 4u * local.x);
  let far = query_group(query0 + 4u * (WX + local.x));
  let low = row0 + 4u * local.y;
  let high = row0 + 4u * (WY + local.y);
  offer(low, acc[0], near);
  offer(low, acc[1], far);
  offer(low + 1u, acc[2], near);
  offer(low + 1u, acc[3], far);
  offer(low + 2u, acc[4], near);
  offer(low + 2u, acc[5], far);
  offer(low + 3u, acc[6], near);
  offer(low + 3u, acc[7], far);
  offer(high, acc[8], near);
  offer(high, acc[9], far);
  offer(high + 1u, acc[10], near);
  offer(high + 1u, acc[11], far);
  offer(high + 2u, acc[12], near);
  offer(high + 2u, acc[13], far);
  offer(high + 3u, acc[14], near);
  offer(high + 3u, acc[15], far);
}
