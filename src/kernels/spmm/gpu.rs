//! The GPU arm.

use super::Value;
use crate::data::{Csr, Matrix};
use crate::device::Shader;
use crate::error::Error;
use crate::kernels::Platform;

/// Every shader of this kernel.
pub(super) fn shaders() -> Vec<Shader> {
    Vec::new()
}

/// As [`multiply`](super::multiply), on the platform's device.
///
/// # Errors
/// See there.
pub fn multiply_on_device<T: Value>(a: &Csr<T>, b: &Matrix<T>, platform: &Platform) -> Result<Matrix<T>, Error> {
    super::multiply(a, b, platform)
}
