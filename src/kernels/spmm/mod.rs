//! Sparse times dense: C = A B, for a sparse A (rows x inner, CSR) and a dense B (inner x width, row-major), in f32 or f64.
//!
//! C\[i, j\] is the sum of A\[i, k\] B\[k, j\] over the *stored* entries of row i:
//!
//! - what is not stored is not multiplied, so NaN or infinity in B is ignored where A has no entry; a stored zero
//!   multiplies like any other value, so that zero times infinity is NaN;
//! - columns of a row may be unsorted or repeated; repeated entries add up;
//! - C is overwritten, whatever it held; a row without entries gives zeros.
//!
//! # Order of summation
//! Each element of C is summed in groups of four entries in stored order: the products of a group with fused
//! multiply-adds (separate ones below AVX2), then the group to the sum. A row of more than [`LONG_ROW`] entries is summed in
//! pieces of [`PIECE`] entries, and the pieces in order. Nothing else decides the order: on one SIMD level the results are
//! the same bits for any number of threads, any blocking, and any other rows or columns beside them.
//!
//! # Precision
//! The error of an element is at most (n + 2) eps times the sum of the magnitudes |A\[i, k\]| |B\[k, j\]| over the n entries
//! of its row, where eps is 2^-24 for f32 and 2^-53 for f64 (Higham, *Accuracy and Stability of Numerical Algorithms*,
//! 3.1).

mod case;
#[cfg(feature = "cli")]
mod command;
#[cfg(feature = "gpu")]
mod gpu;
mod panel;
mod plan;
pub mod reference;
mod simd;
#[cfg(test)]
mod tests;
mod tile;
mod together;

#[cfg(feature = "gpu")]
pub use gpu::{is_for_the_cpu, multiply_on_device};
pub use simd::{multiply, multiply_into};

use super::{Axes, Case, Footprint, Kernel, Platform, Prepared};
use crate::data::{Csr, Matrix};
use crate::error::Error;
use crate::simd::{Simd, SimdFloat, SimdFloatElement, f32x4, f32x8, f64x2, f64x4};

/// Entries from which on a row is summed in pieces.
pub const LONG_ROW: usize = 32_768;

/// Entries of a piece of a long row.
pub const PIECE: usize = 8_192;

/// The numbers that can be multiplied: `f32` and `f64`.
pub trait Value:
    SimdFloatElement + bytemuck::Pod + Send + Sync + Default + PartialEq + std::fmt::Debug + Into<f64> + sealed::Sealed
{
    /// `f32` or `f64`.
    const NAME: &'static str;
    /// A vector of 128 bits, whatever the level.
    type Short<S: Simd>: SimdFloat<S, Element = Self>;
    /// A vector of 256 bits.
    type Medium<S: Simd>: SimdFloat<S, Element = Self>;
    /// The relative error of one operation: half the distance from 1 to the next larger number.
    const EPSILON: f64;
}

impl Value for f32 {
    type Short<S: Simd> = f32x4<S>;
    type Medium<S: Simd> = f32x8<S>;
    const NAME: &'static str = "f32";
    const EPSILON: f64 = f32::EPSILON as f64 / 2.0;
}

impl Value for f64 {
    type Short<S: Simd> = f64x2<S>;
    type Medium<S: Simd> = f64x4<S>;
    const NAME: &'static str = "f64";
    const EPSILON: f64 = f64::EPSILON / 2.0;
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for f32 {}
    impl Sealed for f64 {}
}

/// Whether the shapes fit; called once by every public function.
fn check_shapes<T: Value>(a: &Csr<T>, b: &Matrix<T>, c: &Matrix<T>) -> Result<(), Error> {
    let shape = |what: &str, expected, found| Err(Error::Shape { what: what.into(), expected, found });
    if b.rows() != a.cols() {
        return shape("B: rows (A has as many columns)", a.cols(), b.rows());
    }
    if c.rows() != a.rows() {
        return shape("C: rows (A has as many)", a.rows(), c.rows());
    }
    if c.cols() != b.cols() {
        return shape("C: columns (B has as many)", b.cols(), c.cols());
    }
    Ok(())
}

/// The registered kernel.
pub struct Spmm;

impl Kernel for Spmm {
    fn id(&self) -> &'static str {
        "spmm"
    }

    fn title(&self) -> &'static str {
        "CSR SpMM"
    }

    fn summary(&self) -> &'static str {
        "C = A B, A sparse (CSR), B dense; f32 and f64"
    }

    fn axes(&self) -> Axes {
        case::AXES
    }

    fn distributions(&self) -> &'static [&'static str] {
        case::DISTRIBUTIONS
    }

    fn footprint(&self, case: &Case) -> Result<Footprint, Error> {
        case::footprint(case)
    }

    fn prepare(&self, case: &Case, platform: &Platform) -> Result<Box<dyn Prepared>, Error> {
        case::prepare(case, platform)
    }

    fn protocol(&self) -> &'static str {
        include_str!("../../../protocols/spmm.toml")
    }

    fn check_cases(&self) -> Vec<Case> {
        case::check_cases()
    }

    fn input_sources(&self) -> &'static [(&'static str, &'static str)] {
        case::INPUT_SOURCES
    }

    fn gpu_sources(&self) -> &'static [(&'static str, &'static str)] {
        case::GPU_SOURCES
    }

    fn cpu_sources(&self) -> &'static [(&'static str, &'static str)] {
        case::CPU_SOURCES
    }

    #[cfg(feature = "gpu")]
    fn shaders(&self) -> Vec<crate::device::Shader> {
        gpu::shaders()
    }

    #[cfg(feature = "cli")]
    fn command(&self) -> clap::Command {
        command::command()
    }

    #[cfg(feature = "cli")]
    fn run_command(&self, arguments: &clap::ArgMatches, io: &mut crate::cli::Io) -> anyhow::Result<()> {
        command::run(arguments, io)
    }
}
