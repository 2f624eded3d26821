//! *Does this kernel deserve a GPU, on this machine, at my sizes?*
//!
//! Lodestar holds a GPU version (WGSL through wgpu) and the best SIMD version we can write of each kernel, measures both
//! in one process with the transfers included, and says which one won. The kernels are usable on their own.

pub mod data;
pub mod error;
pub mod kernels;
pub mod simd;
pub mod units;

#[cfg(feature = "gpu")]
pub mod device;

#[cfg(feature = "cli")]
pub mod atomic_file;
#[cfg(feature = "cli")]
pub mod cli;
#[cfg(feature = "cli")]
pub mod formats;
#[cfg(feature = "cli")]
pub mod gate;
#[cfg(feature = "cli")]
pub mod machine;
#[cfg(feature = "cli")]
pub mod report;
#[cfg(feature = "cli")]
pub mod results;

pub use error::{DeviceError, Error};
