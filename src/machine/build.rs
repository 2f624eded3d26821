//! Which code this program was built from.

/// What the build script recorded.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Build {
    /// Version of the package.
    pub version: &'static str,
    /// Full commit hash, or `None` outside a checkout.
    pub commit: Option<&'static str>,
    /// Whether the sources differed from the commit.
    pub dirty: Option<bool>,
    /// `rustc --version`.
    pub rustc: &'static str,
    /// `release`, or `debug` for the development profile.
    pub profile: &'static str,
    /// Target triple.
    pub target: &'static str,
    /// Version of wgpu, or `None` without the feature.
    pub wgpu: Option<&'static str>,
}

impl Build {
    /// Of this program.
    pub fn current() -> Self {
        Self {
            version: env!("CARGO_PKG_VERSION"),
            commit: option_env!("LODESTAR_COMMIT"),
            dirty: option_env!("LODESTAR_DIRTY").map(|dirty| dirty == "true"),
            rustc: env!("LODESTAR_RUSTC"),
            profile: env!("LODESTAR_PROFILE"),
            target: env!("LODESTAR_TARGET"),
            wgpu: option_env!("LODESTAR_WGPU"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_build_knows_its_compiler_target_and_commit() {
        let build = Build::current();
        assert!(build.rustc.starts_with("rustc 1."), "{build:?}");
        assert!(build.target.contains(std::env::consts::ARCH) && !build.profile.is_empty(), "{build:?}");
        if let Some(commit) = build.commit {
            assert!(commit.len() >= 40 && commit.bytes().all(|byte| byte.is_ascii_hexdigit()), "{build:?}");
            assert!(build.dirty.is_some(), "{build:?}");
        }
        if cfg!(feature = "gpu")
            && let Some(wgpu) = build.wgpu
        {
            assert!(wgpu.starts_with("30."), "{build:?}");
        }
    }
}
