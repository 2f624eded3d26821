//! The SIMD layer: the only module that names the SIMD crate.
//!
//! A kernel is one function generic over [`Simd`], marked `#[simd]`, and entered through [`dispatch!`](crate::dispatch)
//! with a [`Level`]. The level is detected once at start, may be capped by `LODESTAR_SIMD`, is passed down as an
//! argument, and is written into every result.

pub mod blocks;
pub mod ceilings;
pub mod memory;
pub mod ops;

#[doc(hidden)]
pub use fearless_simd as implementation;
pub use fearless_simd::Simd;
pub use fearless_simd::prelude::*;
pub use fearless_simd::{f32x4, f32x8, f64x2, f64x4};
pub use fearless_simd_macros::simd;
pub use ops::LINE;

use crate::error::Error;

/// An instruction set that this CPU has and that code may use.
#[derive(Debug, Clone, Copy)]
pub struct Level(fearless_simd::Level);

impl Level {
    /// The best level of this CPU.
    pub fn detect() -> Self {
        Self(fearless_simd::Level::new())
    }

    /// The best level of this CPU, capped by the environment variable `LODESTAR_SIMD` where it is set.
    ///
    /// # Errors
    /// [`Error::Argument`] when the variable names a level that does not exist or that this CPU does not have.
    pub fn from_environment() -> Result<Self, Error> {
        match std::env::var("LODESTAR_SIMD") {
            Ok(name) if !name.is_empty() => Self::named(&name),
            _ => Ok(Self::detect()),
        }
    }

    /// A level by name.
    ///
    /// # Errors
    /// [`Error::Argument`] when there is no such level on this CPU; the message lists those there are.
    pub fn named(name: &str) -> Result<Self, Error> {
        let available = Self::available();
        available.iter().find(|level| level.name() == name).copied().ok_or_else(|| {
            let names: Vec<_> = available.iter().map(|level| level.name()).collect();
            Error::argument("LODESTAR_SIMD", format!("one of {}", names.join(", ")), name)
        })
    }

    /// Every level this CPU has, the best first.
    pub fn available() -> Vec<Self> {
        use fearless_simd::Level as Inner;
        let best = Inner::new();
        let mut levels = vec![best];
        #[cfg(target_arch = "x86_64")]
        {
            levels.extend(best.as_avx2().map(Inner::Avx2));
            levels.extend(best.as_sse4_2().map(Inner::Sse4_2));
        }
        levels.push(Inner::baseline());
        let mut levels: Vec<_> = levels.into_iter().map(Self).collect();
        levels.dedup_by_key(|level| level.name());
        levels
    }

    /// Its name, in lower case: `avx512` (the Ice Lake set), `avx2`, `sse4.2`, `sse2`, `neon`, `simd128`, `scalar`.
    pub fn name(self) -> &'static str {
        use fearless_simd::Level as Inner;
        match self.0 {
            #[cfg(target_arch = "x86_64")]
            Inner::Avx512(_) => "avx512",
            #[cfg(target_arch = "x86_64")]
            Inner::Avx2(_) => "avx2",
            #[cfg(target_arch = "x86_64")]
            Inner::Sse4_2(_) => "sse4.2",
            #[cfg(target_arch = "x86_64")]
            Inner::Sse2(_) => "sse2",
            #[cfg(target_arch = "aarch64")]
            Inner::Neon(_) => "neon",
            _ => "scalar",
        }
    }

    /// Bytes of its vectors.
    pub fn bytes(self) -> usize {
        #[simd]
        fn bytes<S: Simd>(_: S) -> usize {
            S::u8s::LEN
        }
        crate::dispatch!(self, simd => bytes(simd))
    }

    #[doc(hidden)]
    pub fn inner(self) -> fearless_simd::Level {
        self.0
    }
}

impl std::fmt::Display for Level {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

/// Runs an expression at a [`Level`]: `dispatch!(level, simd => search(simd, rows))`. Once, outside the loops.
#[macro_export]
macro_rules! dispatch {
    ($level:expr, $simd:pat => $body:expr) => {{
        use $crate::simd::implementation as fearless_simd;
        fearless_simd::dispatch!($level.inner(), $simd => $body)
    }};
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_available_level_is_found_by_its_name() {
        for level in Level::available() {
            assert_eq!(Level::named(level.name()).unwrap().name(), level.name());
        }
    }

    #[test]
    fn an_unknown_level_names_those_there_are() {
        let message = Level::named("mmx").unwrap_err().to_string();
        assert!(
            message.starts_with("LODESTAR_SIMD: expected one of ") && message.ends_with(", found mmx"),
            "{message}"
        );
    }

    #[test]
    fn a_level_dispatches_to_itself() {
        #[simd]
        fn lanes<S: Simd>(_: S) -> usize {
            S::f32s::LEN
        }
        for level in Level::available() {
            let lanes = dispatch!(level, simd => lanes(simd));
            let expected = match level.name() {
                "avx512" => 16,
                "avx2" => 8,
                _ => 4,
            };
            assert_eq!(lanes, expected, "{level}");
        }
    }
}
