// Multiplies items (a row of A, or a piece of a long row) by a column tile of B.
//
// One invocation owns one vector (16 bytes of neighbouring columns) of one item, in registers; LANES invocations own LANES
// vectors of the same item, a workgroup 128 / LANES items. Dispatch fold(ceil(items / (128 / LANES))) x
// ceil(vectors / LANES) workgroups: the columns are slowest, so that the rows of B that workgroups share stay in cache. No
// workgroup memory.
//
// Counted per entry of A and lane: 16 bytes of B and one vector of multiply-adds; the column and the value of the entry
// are the same for all lanes of an item (one broadcast). So 8 operations (f32) per 16 bytes: the gather of B decides, from
// cache where B fits in it, else from memory. C is written once.
//
// The sum of an element has an order that nothing but its own row decides: four interleaved ones, then the rest, added as
// (0 + 1) + (2 + 3).

struct Multiply {
  first: u32,     // first item of this dispatch
  end: u32,       // one past its last
  vectors: u32,   // vectors of a row of this tile of B and C
  groups_x: u32,  // workgroups along x; those beyond are folded into y
}

struct Item {
  row: u32,       // row of C, within its segment
  start: u32,     // entries of A, within their segment
  end: u32,
  slot: u32,      // the row of `partials` to write, or TO_C
}

@group(0) @binding(0) var<storage, read> items: array<Item>;
@group(0) @binding(1) var<storage, read> columns: array<u32>;
@group(0) @binding(2) var<storage, read> values: array<Value>;
@group(1) @binding(0) var<storage, read> b: array<Vector>;
@group(1) @binding(1) var<storage, read_write> c: array<Vector>;
@group(1) @binding(2) var<storage, read_write> partials: array<Vector>;
@group(1) @binding(3) var<uniform> p: Multiply;

override LANES: u32 = 16u;                   // a power of two up to 128

const THREADS = 128u;
const TO_C = 0xffffffffu;

@compute @workgroup_size(128)
fn multiply(
  @builtin(workgroup_id) group: vec3<u32>,
  @builtin(local_invocation_index) index: u32,
) {
  let number = p.first + (group.y * p.groups_x + group.x) * (THREADS / LANES) + index / LANES;
  let vector = group.z * LANES + index % LANES;
  if (number >= p.end || vector >= p.vectors) { return; }
  let item = items[number];
  var sum0 = Vector();
  var sum1 = Vector();
  var sum2 = Vector();
  var sum3 = Vector();
  var at = item.start;
  // Four at a time: the reads of B do not wait for each other.
  for (; at + 4u <= item.end; at += 4u) {
    let b0 = b[columns[at] * p.vectors + vector];
    let b1 = b[columns[at + 1u] * p.vectors + vector];
    let b2 = b[columns[at + 2u] * p.vectors + vector];
    let b3 = b[columns[at + 3u] * p.vectors + vector];
    sum0 = fma(Vector(values[at]), b0, sum0);
    sum1 = fma(Vector(values[at + 1u]), b1, sum1);
    sum2 = fma(Vector(values[at + 2u]), b2, sum2);
    sum3 = fma(Vector(values[at + 3u]), b3, sum3);
  }
  for (; at < item.end; at++) {
    sum0 = fma(Vector(values[at]), b[columns[at] * p.vectors + vector], sum0);
  }
  let sum = (sum0 + sum1) + (sum2 + sum3);
  if (item.slot == TO_C) {
    c[item.row * p.vectors + vector] = sum;
  } else {
    partials[item.slot * p.vectors + vector] = sum;
  }
}
