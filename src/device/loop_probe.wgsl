// Counts to a number that the compiler does not know. A driver that silently leaves loops early counts less.
// One invocation, one workgroup. Also the fixed piece of work by which timestamps are checked: its time is
// proportional to `steps`.

struct LoopProbe { steps: u32, }

@group(0) @binding(0) var<storage, read_write> counted: array<u32>;
@group(0) @binding(1) var<uniform> p: LoopProbe;

@compute @workgroup_size(1)
fn count() {
  var n = 0u;
  // The value mixes as it counts, so that no compiler replaces the loop by its result.
  var mixed = counted[1];
  for (var i = 0u; i < p.steps; i++) {
    mixed = mixed * 1664525u + 1013904223u;
    n++;
  }
  counted[0] = n;
  counted[1] = mixed;
}
