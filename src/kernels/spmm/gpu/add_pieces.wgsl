// Adds up the pieces of long rows.
//
// A workgroup of 16 x 16 owns 16 vectors of one row of C: an invocation adds a sixteenth of the pieces of one vector, in
// order; then the sixteen sums are added in order. The shares depend on nothing but the number of pieces. Dispatch
// fold(long rows) x ceil(vectors / 16) workgroups. Needs 4 KiB of workgroup memory.
//
// Counted per piece and vector: 16 bytes read for at least 256 vectors of B in `multiply`: a hundredth of the time.

struct AddPieces {
  rows: u32,      // long rows of this segment
  vectors: u32,   // vectors of a row of this tile of C
  groups_x: u32,  // workgroups along x; those beyond are folded into y
}

struct LongRow {
  row: u32,       // row of C, within its segment
  slot: u32,      // its first piece in `partials`
  pieces: u32,
}

@group(0) @binding(0) var<storage, read> long_rows: array<LongRow>;
@group(0) @binding(1) var<storage, read> partials: array<Vector>;
@group(0) @binding(2) var<storage, read_write> c: array<Vector>;
@group(0) @binding(3) var<uniform> p: AddPieces;

const SHARES = 16u;
const WIDTH = 16u;

var<workgroup> sums: array<Vector, 256>;

@compute @workgroup_size(16, 16)
fn add_pieces(
  @builtin(workgroup_id) group: vec3<u32>,
  @builtin(local_invocation_id) local: vec3<u32>,
) {
  let number = group.y * p.groups_x + group.x;
  let vector = group.z * WIDTH + local.x;
  let is_here = number < p.rows && vector < p.vectors;
  var sum = Vector();
  if (is_here) {
    let long = long_rows[number];
    let share = (long.pieces + SHARES - 1u) / SHARES;
    let end = min((local.y + 1u) * share, long.pieces);
    for (var piece = local.y * share; piece < end; piece++) {
      sum += partials[(long.slot + piece) * p.vectors + vector];
    }
  }
  sums[local.y * WIDTH + local.x] = sum;
  workgroupBarrier();
  if (is_here && local.y == 0u) {
    var total = sums[local.x];
    for (var other = 1u; other < SHARES; other++) {
      total += sums[other * WIDTH + local.x];
    }
    c[long_rows[number].row * p.vectors + vector] = total;
  }
}
