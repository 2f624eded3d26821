// The corpus in f32: four elements of a row in 16 bytes.
@group(0) @binding(0) var<storage, read> corpus: array<vec4<f32>>;

fn corpus_quad(index: u32) -> vec4<f32> {
  return corpus[index];
}
