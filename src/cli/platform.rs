//! `--device` and the environment -> where a command computes.

use crate::kernels::Platform;
use crate::simd::Level;

/// What `--device` accepts, for help pages.
pub const DEVICE_HELP: &str = "auto, cpu, gpu, software, or the name or number of an adapter (see `lodestar adapters`)";

/// The platform of a command that was given `--device flag`. `cpu` has no device, and nothing is opened; `auto` takes
/// the best GPU and no device where there is none; anything else must exist.
///
/// Opening a device takes a tenth of a second or more: a command that decides for the CPU by itself passes `cpu`.
///
/// # Errors
/// No such adapter, or a bad value of `LODESTAR_SIMD`, `RAYON_NUM_THREADS`, `LODESTAR_SEGMENT_BYTES` or
/// `LODESTAR_BREAK_SHADER`.
pub fn platform(flag: &str) -> anyhow::Result<Platform> {
    Ok(Platform {
        level: Level::from_environment()?,
        threads: threads()?,
        #[cfg(feature = "gpu")]
        device: gpu::open(flag, false)?,
    })
    .and_then(|platform| checked(flag, platform))
}

/// As [`platform`], but `auto` takes the software adapter where there is no GPU: for work that is about right results
/// (`gate`, `check`), not about time.
///
/// # Errors
/// As [`platform`].
pub fn platform_for_checks(flag: &str) -> anyhow::Result<Platform> {
    Ok(Platform {
        level: Level::from_environment()?,
        threads: threads()?,
        #[cfg(feature = "gpu")]
        device: gpu::open(flag, true)?,
    })
    .and_then(|platform| checked(flag, platform))
}

#[cfg(feature = "gpu")]
fn checked(_flag: &str, platform: Platform) -> anyhow::Result<Platform> {
    Ok(platform)
}

#[cfg(not(feature = "gpu"))]
fn checked(flag: &str, platform: Platform) -> anyhow::Result<Platform> {
    anyhow::ensure!(
        matches!(flag, "auto" | "cpu"),
        "--device {flag}: this lodestar was built without GPU support (feature `gpu`); auto and cpu work"
    );
    Ok(platform)
}

/// Threads of the CPU arm: what the operating system lets this process use, capped by `RAYON_NUM_THREADS`.
fn threads() -> anyhow::Result<usize> {
    let available = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let Some(value) = std::env::var("RAYON_NUM_THREADS").ok().filter(|value| !value.is_empty()) else {
        return Ok(available);
    };
    threads_of(&value, available)
}

fn threads_of(value: &str, available: usize) -> anyhow::Result<usize> {
    match value.parse::<usize>() {
        // rayon reads 0 as "as many as there are".
        Ok(0) => Ok(available),
        Ok(cap) => Ok(cap.min(available)),
        Err(_) => anyhow::bail!("RAYON_NUM_THREADS: expected a number of threads, found {value}"),
    }
}

#[cfg(feature = "gpu")]
mod gpu {
    use crate::device::{Choice, Device, Options, ShaderPatch, shaders};
    use crate::error::DeviceError;
    use crate::kernels::KERNELS;
    use std::sync::Arc;

    pub(super) fn open(flag: &str, software_will_do: bool) -> anyhow::Result<Option<Arc<Device>>> {
        let Ok(choice) = flag.parse::<Choice>();
        if choice == Choice::Cpu {
            return Ok(None);
        }
        let options = options()?;
        match Device::open_with(&choice, options.clone()) {
            Ok(device) => Ok(Some(device)),
            Err(DeviceError::NoAdapter { .. }) if choice == Choice::Auto => {
                if !software_will_do {
                    return Ok(None);
                }
                match Device::open_with(&Choice::Software, options) {
                    Ok(device) => Ok(Some(device)),
                    Err(DeviceError::NoAdapter { .. }) => Ok(None),
                    Err(error) => Err(error.into()),
                }
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Options of the device from the environment.
    fn options() -> anyhow::Result<Options> {
        let set = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
        let segment_bytes = match set("LODESTAR_SEGMENT_BYTES") {
            None => None,
            Some(value) => match value.parse::<u64>() {
                Ok(bytes) if bytes > 0 => Some(bytes),
                _ => anyhow::bail!("LODESTAR_SEGMENT_BYTES: expected a number of bytes above 0, found {value}"),
            },
        };
        let shader_patch = match set("LODESTAR_BREAK_SHADER") {
            None => None,
            Some(value) => {
                let Some(patch) = ShaderPatch::parse(&value) else {
                    anyhow::bail!("LODESTAR_BREAK_SHADER: expected from=>to, found {value}");
                };
                let mut all = KERNELS.iter().flat_map(|kernel| kernel.shaders()).chain(shaders());
                // A fault that is not injected would let a broken check pass for a good one.
                anyhow::ensure!(
                    all.any(|shader| shader.source().contains(&patch.from)),
                    "LODESTAR_BREAK_SHADER: no shader contains `{}`",
                    patch.from
                );
                Some(patch)
            }
        };
        Ok(Options { segment_bytes, shader_patch })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_are_capped_and_never_raised() {
        assert_eq!(threads_of("1", 8).unwrap(), 1);
        assert_eq!(threads_of("16", 8).unwrap(), 8);
        assert_eq!(threads_of("0", 8).unwrap(), 8);
        assert_eq!(
            threads_of("many", 8).unwrap_err().to_string(),
            "RAYON_NUM_THREADS: expected a number of threads, found many"
        );
    }

    #[test]
    fn cpu_opens_no_device() {
        let platform = platform("cpu").unwrap();
        assert!(platform.threads >= 1);
        #[cfg(feature = "gpu")]
        assert!(platform.device.is_none());
    }
}
