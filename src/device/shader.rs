//! WGSL text and constants -> a pipeline, compiled once per device.

use super::{Device, MAX_WORKGROUP_BYTES, fault, lock, nanos};
use crate::error::DeviceError;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;
use wgpu::naga;

/// A compute shader: named WGSL parts joined in order, the entry point, and the values of its `override` constants.
///
/// Only this crate makes them: they run with loop bounding off (see [`Device::pipeline`]), which is sound for loops that
/// are known to end.
#[derive(Debug, Clone)]
pub struct Shader {
    name: &'static str,
    parts: Vec<&'static str>,
    entry: &'static str,
    overrides: Vec<(&'static str, u32)>,
    params: Vec<Params>,
}

/// The layout of a Rust struct that a shader sees as a uniform; tests compare it with the layout of the WGSL struct.
#[derive(Debug, Clone, Copy)]
pub struct Params {
    /// Name of the struct, the same in WGSL.
    pub name: &'static str,
    /// Its size in bytes.
    pub size: usize,
    /// Its fields in order.
    pub fields: &'static [Field],
}

/// One field of [`Params`].
#[derive(Debug, Clone, Copy)]
pub struct Field {
    /// Name, the same in WGSL.
    pub name: &'static str,
    /// Offset in bytes.
    pub offset: usize,
}

/// Declares a `#[repr(C)]` struct of parameters together with its [`Params`].
macro_rules! params {
    ($(#[$meta:meta])* struct $name:ident { $($(#[$field_meta:meta])* $field:ident: $kind:ty,)* }) => {
        $(#[$meta])*
        #[repr(C)]
        #[derive(Debug, Clone, Copy, PartialEq, Default, bytemuck::Pod, bytemuck::Zeroable)]
        struct $name { $($(#[$field_meta])* $field: $kind,)* }

        impl $name {
            /// What tests compare with the WGSL struct of the same name.
            const LAYOUT: $crate::device::Params = $crate::device::Params {
                name: stringify!($name),
                size: size_of::<Self>(),
                fields: &[$($crate::device::Field {
                    name: stringify!($field),
                    offset: std::mem::offset_of!(Self, $field),
                },)*],
            };
        }
    };
}
pub(crate) use params;

impl Shader {
    pub(crate) fn new(name: &'static str, parts: &[&'static str], entry: &'static str) -> Self {
        Self { name, parts: parts.to_vec(), entry, overrides: Vec::new(), params: Vec::new() }
    }

    /// Sets an `override` constant.
    pub(crate) fn set(mut self, name: &'static str, value: u32) -> Self {
        self.overrides.push((name, value));
        self
    }

    /// Says which Rust struct a uniform of the shader is filled from.
    pub(crate) fn with_params(mut self, params: Params) -> Self {
        self.params.push(params);
        self
    }

    /// Its name: which text and which entry point.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// The whole WGSL text.
    pub fn source(&self) -> String {
        self.parts.join("\n")
    }

    /// Name of the entry point.
    pub fn entry(&self) -> &'static str {
        self.entry
    }

    /// Values of the `override` constants.
    pub fn overrides(&self) -> &[(&'static str, u32)] {
        &self.overrides
    }

    /// The Rust structs behind its uniforms.
    pub fn params(&self) -> &[Params] {
        &self.params
    }

    /// Name and constants, for labels and errors: `cosine tile f32 (TILE=8)`.
    pub fn label(&self) -> String {
        if self.overrides.is_empty() {
            return self.name.to_owned();
        }
        let overrides: Vec<_> = self.overrides.iter().map(|(name, value)| format!("{name}={value}")).collect();
        format!("{} ({})", self.name, overrides.join(", "))
    }

    fn key(&self) -> Key {
        (self.name, self.entry, self.overrides.clone())
    }
}

/// Pipelines are cached by name, entry point and constants.
pub(super) type Key = (&'static str, &'static str, Vec<(&'static str, u32)>);

/// A shader compiled for a device.
pub struct Pipeline {
    pub(super) raw: wgpu::ComputePipeline,
    pub(super) name: String,
    /// For each `@group`, its layout and its `@binding`s in order.
    pub(super) groups: Vec<(wgpu::BindGroupLayout, Vec<u32>)>,
}

impl Device {
    /// The pipeline of a shader, compiled at its first use.
    ///
    /// Bounds checks are on. Loop bounding and the checks of integer division are off: all loops of our shaders end, all
    /// divisors are non-zero constants or checked on the host, and the hidden counter would keep compilers from
    /// unrolling. A shader that was [patched](super::ShaderPatch) is compiled with every check.
    ///
    /// # Errors
    /// [`DeviceError::Shader`] with the compiler's message, [`DeviceError::Limit`] for too much workgroup memory.
    pub fn pipeline(&self, shader: &Shader) -> Result<Arc<Pipeline>, DeviceError> {
        let key = shader.key();
        if let Some(pipeline) = lock(&self.pipelines).get(&key) {
            return Ok(Arc::clone(pipeline));
        }
        let start = Instant::now();
        let pipeline = Arc::new(self.compile(shader)?);
        self.compile_ns.fetch_add(nanos(start.elapsed()), Ordering::Relaxed);
        lock(&self.pipelines).insert(key, Arc::clone(&pipeline));
        Ok(pipeline)
    }

    fn compile(&self, shader: &Shader) -> Result<Pipeline, DeviceError> {
        let name = shader.label();
        let refused = |message: String| DeviceError::Shader { shader: name.clone(), message };
        let original = shader.source();
        let (source, patched) = match &self.options.shader_patch {
            Some(patch) if original.contains(&patch.from) => (original.replace(&patch.from, &patch.to), true),
            _ => (original, false),
        };
        // The compiler can panic on valid text (it has), which no error scope catches.
        let compiled = catch_unwind(AssertUnwindSafe(|| self.compile_text(shader, &name, &source, patched)));
        compiled.unwrap_or_else(|panic| {
            let message = panic.downcast_ref::<String>().map(String::as_str);
            let message = message.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no message");
            Err(refused(format!("the shader compiler panicked: {}", fault::one_line(message))))
        })
    }

    fn compile_text(&self, shader: &Shader, name: &str, source: &str, patched: bool) -> Result<Pipeline, DeviceError> {
        let refused = |message: String| DeviceError::Shader { shader: name.to_owned(), message };
        let as_shader = |error: DeviceError| match error {
            DeviceError::Internal { message, .. } => refused(message),
            other => other,
        };
        let reflection = reflect(shader, source).map_err(refused)?;
        let allowed = self.limits.max_compute_workgroup_storage_size.min(MAX_WORKGROUP_BYTES);
        if reflection.workgroup_bytes > allowed {
            return Err(DeviceError::Limit {
                what: format!("{name}: bytes of workgroup memory"),
                requested: reflection.workgroup_bytes.into(),
                max: allowed.into(),
            });
        }
        let module = self.scoped(name, 0, || self.module(name, source, patched)).map_err(as_shader)?;
        let mut groups = Vec::new();
        for entries in reflection.groups.values() {
            let descriptor = wgpu::BindGroupLayoutDescriptor { label: Some(name), entries };
            let layout = self.scoped(name, 0, || self.raw.create_bind_group_layout(&descriptor)).map_err(as_shader)?;
            groups.push((layout, entries.iter().map(|entry| entry.binding).collect()));
        }
        let layouts: Vec<_> = groups.iter().map(|(layout, _)| Some(layout)).collect();
        let constants: Vec<_> = shader.overrides().iter().map(|(name, value)| (*name, f64::from(*value))).collect();
        let raw = self
            .scoped(name, 0, || {
                let layout = self.raw.create_pipeline_layout(&wgpu::PipelineLayoutDescriptor {
                    label: Some(name),
                    bind_group_layouts: &layouts,
                    immediate_size: 0,
                });
                self.raw.create_compute_pipeline(&wgpu::ComputePipelineDescriptor {
                    label: Some(name),
                    layout: Some(&layout),
                    module: &module,
                    entry_point: Some(shader.entry()),
                    compilation_options: wgpu::PipelineCompilationOptions {
                        constants: &constants,
                        // Our kernels write workgroup memory before they read it.
                        zero_initialize_workgroup_memory: patched,
                    },
                    cache: None,
                })
            })
            .map_err(as_shader)?;
        // A failed compilation in the driver can lose the device without an error in any scope.
        self.check()?;
        Ok(Pipeline { raw, name: name.to_owned(), groups })
    }

    fn module(&self, name: &str, source: &str, patched: bool) -> wgpu::ShaderModule {
        let descriptor =
            wgpu::ShaderModuleDescriptor { label: Some(name), source: wgpu::ShaderSource::Wgsl(source.into()) };
        if patched {
            return self.raw.create_shader_module(descriptor);
        }
        let mut checks = wgpu::ShaderRuntimeChecks::checked();
        checks.force_loop_bounding = false;
        checks.int_div_checks = false;
        // SAFETY: the text is a constant of this crate (`Shader::new` is not public, and a patched one went the other
        // way). Bounds checks stay on. With loop bounding off every loop has to end: each one in our shaders counts up
        // to a bound that does not change inside it. With division checks off no divisor may be zero: ours are
        // constants, or parameters that the host sets to at least 1.
        #[expect(unsafe_code, reason = "wgpu has no safe way to leave loop bounding out, which costs up to 2.4 times")]
        unsafe {
            self.raw.create_shader_module_trusted(descriptor, checks)
        }
    }
}

struct Reflection {
    workgroup_bytes: u32,
    groups: BTreeMap<u32, Vec<wgpu::BindGroupLayoutEntry>>,
}

/// What the text declares, with its constants filled in: bindings of the entry point and bytes of workgroup memory.
fn reflect(shader: &Shader, source: &str) -> Result<Reflection, String> {
    let parsed =
        naga::front::wgsl::parse_str(source).map_err(|error| fault::one_line(&error.emit_to_string(source)))?;
    let mut validator =
        naga::valid::Validator::new(naga::valid::ValidationFlags::all(), naga::valid::Capabilities::all());
    let info = validator.validate(&parsed).map_err(|error| fault::one_line(&error.emit_to_string(source)))?;
    let constants = shader.overrides().iter().map(|(name, value)| ((*name).to_owned(), f64::from(*value))).collect();
    let entry = (naga::ShaderStage::Compute, shader.entry());
    let (module, info) = naga::back::pipeline_constants::process_overrides(&parsed, &info, Some(entry), &constants)
        .map_err(|error| error.to_string())?;
    let position = module
        .entry_points
        .iter()
        .position(|point| point.name == shader.entry())
        .ok_or_else(|| format!("no entry point `{}`", shader.entry()))?;
    let used = info.get_entry_point(position);
    let mut reflection = Reflection { workgroup_bytes: 0, groups: BTreeMap::new() };
    for (handle, variable) in module.global_variables.iter() {
        if used[handle].is_empty() {
            continue;
        }
        let (kind, dynamic) = match variable.space {
            naga::AddressSpace::WorkGroup => {
                reflection.workgroup_bytes += module.types[variable.ty].inner.size(module.to_ctx());
                continue;
            }
            naga::AddressSpace::Uniform => (wgpu::BufferBindingType::Uniform, true),
            naga::AddressSpace::Storage { access } => {
                let read_only = !access.contains(naga::StorageAccess::STORE);
                (wgpu::BufferBindingType::Storage { read_only }, false)
            }
            _ => continue,
        };
        let Some(binding) = variable.binding else { continue };
        reflection.groups.entry(binding.group).or_default().push(wgpu::BindGroupLayoutEntry {
            binding: binding.binding,
            visibility: wgpu::ShaderStages::COMPUTE,
            ty: wgpu::BindingType::Buffer { ty: kind, has_dynamic_offset: dynamic, min_binding_size: None },
            count: None,
        });
    }
    for entries in reflection.groups.values_mut() {
        entries.sort_by_key(|entry| entry.binding);
    }
    if !reflection.groups.keys().copied().eq(0..u32::try_from(reflection.groups.len()).unwrap_or(0)) {
        return Err("its groups are not numbered from 0 without a gap".to_owned());
    }
    Ok(reflection)
}
