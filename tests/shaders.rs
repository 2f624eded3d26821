//! Every registered shader, without a GPU: it parses, validates, translates for every backend, sees the parameters that
//! Rust writes, stays within the memory that every adapter has, and keeps its barriers uniform.
#![cfg(feature = "gpu")]

use lodestar::device::{MAX_WORKGROUP_BYTES, Shader, shaders};
use lodestar::kernels::KERNELS;
use naga::valid::{Capabilities, FunctionInfo, ModuleInfo, ValidationFlags, Validator};
use naga::{AddressSpace, Block, Module, ShaderStage, Statement, TypeInner};
use std::collections::HashSet;

/// All shaders of the program, every shape of each.
fn all() -> Vec<Shader> {
    let all: Vec<_> = KERNELS.iter().flat_map(|kernel| kernel.shaders()).chain(shaders()).collect();
    assert!(all.len() > KERNELS.len(), "only {} shaders: the tests would hold for nothing", all.len());
    all
}

/// Whether any of its types holds an f64.
fn computes_in_f64(module: &Module) -> bool {
    module.types.iter().any(|(_, ty)| ty.inner.scalar().is_some_and(|scalar| scalar == naga::Scalar::F64))
}

/// The module as a driver gets it: validated, its constants filled in.
fn compiled(label: &str, source: &str, entry: &str, overrides: &[(&str, u32)]) -> (Module, ModuleInfo) {
    let parsed = naga::front::wgsl::parse_str(source)
        .unwrap_or_else(|error| panic!("{label}: {}", error.emit_to_string(source)));
    // Only what every adapter has. Unpacking halves needs no feature of the device. A shader in f64 is made only where the
    // adapter has that.
    let mut capabilities = Capabilities::default() | Capabilities::SHADER_FLOAT16_IN_FLOAT32;
    capabilities.set(Capabilities::FLOAT64, computes_in_f64(&parsed));
    let info = Validator::new(ValidationFlags::all(), capabilities)
        .validate(&parsed)
        .unwrap_or_else(|error| panic!("{label}: {}", error.emit_to_string(source)));
    for (name, _) in overrides {
        let known = parsed.overrides.iter().any(|(_, known)| known.name.as_deref() == Some(name));
        assert!(known, "{label}: sets `{name}`, which the shader does not declare");
    }
    let constants = overrides.iter().map(|(name, value)| ((*name).to_owned(), f64::from(*value))).collect();
    let entry = Some((ShaderStage::Compute, entry));
    let (module, info) = naga::back::pipeline_constants::process_overrides(&parsed, &info, entry, &constants)
        .unwrap_or_else(|error| panic!("{label}: {error}"));
    (module.into_owned(), info.into_owned())
}

fn compile(shader: &Shader) -> (Module, ModuleInfo) {
    compiled(&shader.label(), &shader.source(), shader.entry(), shader.overrides())
}

#[test]
fn every_shader_translates_for_vulkan_metal_and_dx12() {
    for shader in all() {
        let (module, info) = compile(&shader);
        let label = shader.label();
        let in_f64 = computes_in_f64(&module);
        let spirv = naga::back::spv::write_vec(&module, &info, &naga::back::spv::Options::default(), None)
            .unwrap_or_else(|error| panic!("{label}: SPIR-V: {error}"));
        assert!(spirv.len() > 100, "{label}: {} words of SPIR-V", spirv.len());
        if in_f64 {
            // wgpu has f64 on Vulkan alone, so such a shader never gets to the others.
            assert!(label.contains("f64"), "{label}: its name does not say that it needs f64");
            continue;
        }
        let options = naga::back::msl::Options { lang_version: (2, 3), ..Default::default() };
        let (msl, _) = naga::back::msl::write_string(&module, &info, &options, &Default::default())
            .unwrap_or_else(|error| panic!("{label}: MSL: {error}"));
        assert!(msl.contains(shader.entry()), "{label}: no {} in the MSL", shader.entry());
        let options =
            naga::back::hlsl::Options { shader_model: naga::back::hlsl::ShaderModel::V6_0, ..Default::default() };
        let mut hlsl = String::new();
        naga::back::hlsl::Writer::new(&mut hlsl, &options, &Default::default())
            .write(&module, &info, None)
            .unwrap_or_else(|error| panic!("{label}: HLSL: {error}"));
        assert!(hlsl.contains("numthreads"), "{label}: no entry point in the HLSL");
    }
}

#[test]
fn a_shader_in_f64_is_recognised_and_no_other_may_use_it() {
    let source = |value: &str| {
        format!(
            "@group(0) @binding(0) var<storage, read_write> o: array<vec2<{value}>>;
             @compute @workgroup_size(1) fn f() {{ o[0] = fma(o[1], o[2], o[3]); }}"
        )
    };
    for (value, expected) in [("f32", false), ("f64", true)] {
        let parsed = naga::front::wgsl::parse_str(&source(value)).unwrap();
        assert_eq!(computes_in_f64(&parsed), expected, "{value}");
        let validated = Validator::new(ValidationFlags::all(), Capabilities::default()).validate(&parsed);
        assert_eq!(validated.is_err(), expected, "{value}");
        compiled(value, &source(value), "f", &[]);
    }
}

#[test]
fn labels_tell_every_shader_from_every_other() {
    let mut seen = HashSet::new();
    for shader in all() {
        assert!(seen.insert(shader.label()), "{} is registered twice", shader.label());
    }
}

/// Where the layouts of a struct in Rust and in WGSL differ.
fn layout_differences(module: &Module, params: &lodestar::device::Params) -> Vec<String> {
    let name = params.name;
    let found = module.types.iter().find(|(_, ty)| ty.name.as_deref() == Some(name));
    let Some((_, naga::Type { inner: TypeInner::Struct { members, span }, .. })) = found else {
        return vec![format!("no struct {name} in WGSL")];
    };
    let mut differences = Vec::new();
    if members.len() != params.fields.len() {
        differences.push(format!("{name}: {} fields in Rust, {} in WGSL", params.fields.len(), members.len()));
    }
    for (field, member) in params.fields.iter().zip(members) {
        if member.name.as_deref() != Some(field.name) || member.offset as usize != field.offset {
            let (there, offset) = (member.name.as_deref().unwrap_or("?"), member.offset);
            differences
                .push(format!("{name}: {} at {} in Rust, {there} at {offset} in WGSL", field.name, field.offset));
        }
    }
    if *span as usize != params.size {
        differences.push(format!("{name}: {} bytes in Rust, {span} in WGSL", params.size));
    }
    differences
}

#[test]
fn parameters_lie_where_the_shader_reads_them() {
    for shader in all() {
        let (module, _) = compile(&shader);
        let uniforms: Vec<_> =
            module.global_variables.iter().filter(|(_, variable)| variable.space == AddressSpace::Uniform).collect();
        assert_eq!(uniforms.len(), shader.params().len(), "{}: uniforms and their Rust structs", shader.label());
        for params in shader.params() {
            assert_eq!(layout_differences(&module, params), [""; 0], "{}", shader.label());
        }
    }
}

#[test]
fn a_moved_field_is_found() {
    use lodestar::device::{Field, Params};
    let source = "struct P { a: u32, b: vec2<f32>, } @group(0) @binding(0) var<uniform> p: P;
        @group(0) @binding(1) var<storage, read_write> o: array<f32>;
        @compute @workgroup_size(1) fn f() { o[p.a] = p.b.x; }";
    let (module, _) = compiled("moved", source, "f", &[]);
    let right =
        Params { name: "P", size: 16, fields: &[Field { name: "a", offset: 0 }, Field { name: "b", offset: 8 }] };
    assert_eq!(layout_differences(&module, &right), [""; 0]);
    let moved = Params { fields: &[Field { name: "a", offset: 0 }, Field { name: "b", offset: 4 }], size: 12, ..right };
    assert_eq!(layout_differences(&module, &moved).len(), 2);
    assert_eq!(layout_differences(&module, &Params { name: "Q", ..right }), ["no struct Q in WGSL"]);
}

/// Bytes of workgroup memory that the entry point uses.
fn workgroup_bytes(module: &Module) -> u32 {
    let variables = module.global_variables.iter().filter(|(_, variable)| variable.space == AddressSpace::WorkGroup);
    variables.map(|(_, variable)| module.types[variable.ty].inner.size(module.to_ctx())).sum()
}

#[test]
fn every_shader_fits_every_adapter() {
    for shader in all() {
        let (module, _) = compile(&shader);
        let label = shader.label();
        assert!(workgroup_bytes(&module) <= MAX_WORKGROUP_BYTES, "{label}: {} bytes", workgroup_bytes(&module));
        let [x, y, z] = module.entry_points[0].workgroup_size;
        assert!(x * y * z <= 256 && x <= 256 && y <= 256 && z <= 64, "{label}: workgroup of {x} x {y} x {z}");
        let storage = |variable: &naga::GlobalVariable| matches!(variable.space, AddressSpace::Storage { .. });
        let buffers = module.global_variables.iter().filter(|(_, variable)| storage(variable)).count();
        assert!(buffers <= 8, "{label}: {buffers} storage buffers");
    }
}

#[test]
fn workgroup_memory_is_counted_with_the_constants_filled_in() {
    let source = "override N: u32 = 1u; var<workgroup> a: array<vec4<f32>, N>;
        @group(0) @binding(0) var<storage, read_write> o: array<f32>;
        @compute @workgroup_size(1) fn f() { a[0] = vec4<f32>(1.0); o[0] = a[0].x; }";
    for n in [1, 1_024, 2_000] {
        let (module, _) = compiled("sized", source, "f", &[("N", n)]);
        assert_eq!(workgroup_bytes(&module), 16 * n);
    }
}

#[test]
fn every_file_begins_with_what_it_computes_and_needs() {
    for shader in all() {
        let source = shader.source();
        assert!(source.starts_with("// "), "{}: begins without a comment", shader.label());
        let text: String = source.lines().filter(|line| line.starts_with("//")).collect();
        for word in ["invocation", "workgroup"] {
            assert!(text.contains(word), "{}: its comments never say {word}", shader.label());
        }
    }
}

/// Barriers that some invocations of a workgroup may not reach: after a return, or under a condition that may differ.
fn unsafe_barriers(block: &Block, info: &FunctionInfo, divergent: bool, returned: &mut bool, found: &mut Vec<String>) {
    for statement in block {
        match statement {
            Statement::ControlBarrier(_) | Statement::WorkGroupUniformLoad { .. } => {
                if *returned {
                    found.push("a barrier after an early return".to_owned());
                } else if divergent {
                    found.push("a barrier under a condition that may differ between invocations".to_owned());
                }
            }
            Statement::Block(inner) => unsafe_barriers(inner, info, divergent, returned, found),
            Statement::If { condition, accept, reject } => {
                let divergent = divergent || info[*condition].uniformity.non_uniform_result.is_some();
                unsafe_barriers(accept, info, divergent, returned, found);
                unsafe_barriers(reject, info, divergent, returned, found);
            }
            Statement::Switch { selector, cases } => {
                let divergent = divergent || info[*selector].uniformity.non_uniform_result.is_some();
                cases.iter().for_each(|case| unsafe_barriers(&case.body, info, divergent, returned, found));
            }
            Statement::Loop { body, continuing, .. } => {
                unsafe_barriers(body, info, divergent, returned, found);
                unsafe_barriers(continuing, info, divergent, returned, found);
            }
            Statement::Return { .. } => *returned = true,
            _ => {}
        }
    }
}

fn objections(module: &Module, info: &ModuleInfo) -> Vec<String> {
    let mut found = Vec::new();
    for (number, point) in module.entry_points.iter().enumerate() {
        unsafe_barriers(&point.function.body, info.get_entry_point(number), false, &mut false, &mut found);
    }
    for (handle, function) in module.functions.iter() {
        // Helpers return early as they like, so they hold no barrier at all.
        unsafe_barriers(&function.body, &info[handle], true, &mut false, &mut found);
    }
    found
}

#[test]
fn every_barrier_is_reached_by_the_whole_workgroup() {
    for shader in all() {
        let (module, info) = compile(&shader);
        assert_eq!(objections(&module, &info), [""; 0], "{}", shader.label());
    }
}

#[test]
fn a_barrier_that_some_invocations_miss_is_found() {
    let lint = |body: &str| {
        let source = format!(
            "var<workgroup> w: u32; struct P {{ n: u32, }} @group(0) @binding(1) var<uniform> p: P;
             @group(0) @binding(0) var<storage, read_write> o: array<u32>;
             @compute @workgroup_size(64) fn f(@builtin(local_invocation_index) i: u32) {{ {body} o[i] = w + p.n; }}"
        );
        let parsed = naga::front::wgsl::parse_str(&source).unwrap();
        // Without naga's own check of uniformity, which refuses some of this.
        let flags = ValidationFlags::all() & !ValidationFlags::CONTROL_FLOW_UNIFORMITY;
        let info = Validator::new(flags, Capabilities::default()).validate(&parsed).unwrap();
        objections(&parsed, &info)
    };
    assert_eq!(lint("workgroupBarrier();"), [""; 0]);
    assert_eq!(lint("if (p.n > 3u) { workgroupBarrier(); }"), [""; 0]);
    assert_eq!(lint("let n = workgroupUniformLoad(&w); if (n > 3u) { workgroupBarrier(); }"), [""; 0]);
    assert_eq!(lint("if (i > 3u) { return; } workgroupBarrier();"), ["a barrier after an early return"]);
    assert_eq!(
        lint("if (i > 3u) { workgroupBarrier(); }"),
        ["a barrier under a condition that may differ between invocations"]
    );
}
