// Raises each query's threshold to the k-th largest lower bound among its candidates, and drops those whose upper bound
// is below it.
//
// A workgroup of 256 owns one query, an invocation every 256th of its candidates; dispatch `queries` workgroups. Radix
// selection, 8 bits at a time, then compaction in place. Needs 2 KiB of workgroup memory, no optional feature.
//
// Counted per query with n candidates: reads 4 * 4 n + 12 n bytes, writes at most 12 n; n is a few times k except in the
// first rounds. All queries together are a small part of the scores: 28 n against rows * dim * 4 bytes.

struct Merge {
  queries: u32,
  k: u32,
  cap: u32,
  mode: u32,  // 0: keep the threshold, forget the candidates; 1: keep both; 2: keep both and write what was found
  room: u32,  // row numbers that `found` has room for, per query
}

struct State {
  count: atomic<u32>,
  threshold: u32,
  overflowed: u32,
  kept: u32,
}

@group(0) @binding(0) var<storage, read_write> state: array<State>;
@group(0) @binding(1) var<storage, read_write> candidates: array<u32>;
@group(0) @binding(2) var<storage, read_write> found: array<u32>;  // per query: candidates kept, then row numbers
@group(0) @binding(3) var<uniform> p: Merge;

const THREADS = 256u;

var<workgroup> histogram: array<atomic<u32>, 256>;
var<workgroup> at_least: array<u32, 256>;    // candidates in this bin and the bins above
var<workgroup> total: u32;
var<workgroup> chosen: vec2<u32>;            // bin of the k-th largest, and its rank within the bin
var<workgroup> kept: atomic<u32>;

@compute @workgroup_size(256)
fn merge(
  @builtin(workgroup_id) group: vec3<u32>,
  @builtin(local_invocation_index) index: u32,
) {
  let query = min(group.x, p.queries - 1u);
  let first = query * p.cap * 3u;
  if (index == 0u) {
    total = atomicLoad(&state[query].count);
    atomicStore(&kept, 0u);
  }
  let offered = workgroupUniformLoad(&total);
  let n = min(offered, p.cap);

  var threshold = 0u;
  if (n >= p.k) {
    var mask = 0u;
    var rank = p.k;
    for (var pass_number = 0u; pass_number < 4u; pass_number++) {
      let shift = 24u - 8u * pass_number;
      atomicStore(&histogram[index], 0u);
      workgroupBarrier();
      for (var i = index; i < n; i += THREADS) {
        let key = candidates[first + 3u * i];
        if (((key ^ threshold) & mask) == 0u) {
          atomicAdd(&histogram[(key >> shift) & 255u], 1u);
        }
      }
      workgroupBarrier();
      at_least[index] = atomicLoad(&histogram[index]);
      workgroupBarrier();
      for (var step = 1u; step < 256u; step = step << 1u) {
        var more = 0u;
        if (index + step < 256u) { more = at_least[index + step]; }
        workgroupBarrier();
        at_least[index] += more;
        workgroupBarrier();
      }
      var above = 0u;
      if (index < 255u) { above = at_least[index + 1u]; }
      if (at_least[index] >= rank && above < rank) {
        chosen = vec2<u32>(index, rank - above);
      }
      let found_bin = workgroupUniformLoad(&chosen);
      threshold |= found_bin.x << shift;
      rank = found_bin.y;
      mask |= 255u << shift;
    }
  }
  threshold = max(threshold, state[query].threshold);

  if (p.mode != 0u) {
    for (var base = 0u; base < n; base += THREADS) {
      let i = base + index;
      var lower = 0u;
      var upper = 0u;
      var row = 0u;
      if (i < n) {
        lower = candidates[first + 3u * i];
        upper = candidates[first + 3u * i + 1u];
        row = candidates[first + 3u * i + 2u];
      }
      // All 256 were read before any of them is overwritten.
      storageBarrier();
      if (i < n && upper >= threshold) {
        let slot = atomicAdd(&kept, 1u);
        candidates[first + 3u * slot] = lower;
        candidates[first + 3u * slot + 1u] = upper;
        candidates[first + 3u * slot + 2u] = row;
        if (p.mode == 2u && slot < p.room) {
          found[query * (p.room + 1u) + 1u + slot] = row;
        }
      }
    }
  }
  workgroupBarrier();
  if (index == 0u && group.x < p.queries) {
    let left = atomicLoad(&kept);
    let lost = max(state[query].overflowed, select(0u, 1u, offered > p.cap && p.mode != 0u));
    atomicStore(&state[query].count, left);
    state[query].threshold = threshold;
    state[query].overflowed = lost;
    state[query].kept = left;
    if (p.mode == 2u) {
      found[query * (p.room + 1u)] = select(left, 0xffffffffu, lost != 0u);
    }
  }
}
