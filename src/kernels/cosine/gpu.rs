//! The GPU arm.

pub(super) fn shaders() -> Vec<crate::device::Shader> {
    Vec::new()
}
