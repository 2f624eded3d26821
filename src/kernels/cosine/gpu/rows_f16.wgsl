// The corpus in f16: four elements of a row in 8 bytes, unpacked without any optional feature. A device may flush
// subnormal halves to zero: the host has put what that can change into each row's error.
@group(0) @binding(0) var<storage, read> corpus: array<vec2<u32>>;

fn corpus_quad(index: u32) -> vec4<f32> {
  let packed = corpus[index];
  return vec4<f32>(unpack2x16float(packed.x), unpack2x16float(packed.y));
}
