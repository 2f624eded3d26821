//! The device layer: the only module that names wgpu.

/// An open device.
pub struct Device {}

/// Named WGSL parts and overrides that make a pipeline.
pub struct Shader {}
