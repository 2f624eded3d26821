//! What a result says before anything is measured: run, protocol, code, machine.

use crate::cli::Io;
use crate::cli::current::fingerprint;
use crate::gate::protocol::Protocol;
use crate::kernels::{Kernel, Platform};
use crate::machine::{Build, Machine, measure_cpu_ceilings};
use crate::results::schema::{Code, KernelVerdict, Mode, ResultFile, Run, SCHEMA, Samples, Verdict};
use crate::results::{hex, sha256_of};
use anyhow::Context;
use sha2::{Digest, Sha256};
use std::path::{Component, Path};

/// Now, in whole seconds: RFC 3339, UTC.
pub(super) fn now() -> String {
    jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

pub(super) fn machine(platform: &Platform) -> Machine {
    let (adapter, _) = super::child::opened(platform);
    Machine::detect(platform.level, adapter, &Build::current())
}

pub(super) fn with_ceilings(mut machine: Machine, platform: &Platform, io: &Io) -> anyhow::Result<Machine> {
    io.note("Measuring what this machine can do (about 3 s).");
    machine.ceilings = measure_cpu_ceilings(platform.level, platform.threads);
    #[cfg(feature = "gpu")]
    if let Some(device) = &platform.device {
        machine.ceilings.measure_device(device).context("ceilings of the device")?;
    }
    Ok(machine)
}

/// A path that says nothing about the computer: relative to the working directory, or the bare file name.
pub(super) fn public_path(path: &str) -> String {
    let path = Path::new(path);
    let here = std::env::current_dir().ok();
    let inside = here.as_deref().and_then(|here| path.strip_prefix(here).ok()).unwrap_or(path);
    let plain = inside.components().all(|part| matches!(part, Component::Normal(_) | Component::CurDir));
    let shown = if plain { inside } else { Path::new(path.file_name().unwrap_or(path.as_os_str())) };
    shown.to_string_lossy().replace('\\', "/")
}

fn argv() -> Vec<String> {
    // Only what looks like a path can name a user or a folder.
    let public = |argument: String| {
        let (flag, value) = argument.split_once('=').map_or(("", argument.as_str()), |(flag, value)| (flag, value));
        let value = if value.contains(['/', '\\']) { public_path(value) } else { value.to_owned() };
        if flag.is_empty() { value } else { format!("{flag}={value}") }
    };
    std::env::args_os().skip(1).map(|argument| public(argument.to_string_lossy().into_owned())).collect()
}

pub(super) fn result(
    kernel: &dyn Kernel,
    protocol: &Protocol,
    machine: Machine,
    mode: Mode,
    extend: bool,
    max_seconds_per_size: u64,
) -> anyhow::Result<ResultFile> {
    let program = std::env::current_exe().context("the path of this program")?;
    let build = Build::current();
    let started = now();
    // Different for every run, and small enough for any reader of JSON.
    let nanos = jiff::Timestamp::now().as_nanosecond();
    let random = hex(&Sha256::digest(format!("{nanos}-{}", std::process::id())));
    let generator_hash = fingerprint(kernel.input_sources());
    Ok(ResultFile {
        schema: SCHEMA.into(),
        kernel: kernel.id().into(),
        run: Run {
            id: random[..8].to_owned(),
            started_utc: started.clone(),
            ended_utc: started,
            argv: argv(),
            seed: u64::from_str_radix(&random[8..20], 16)?,
            mode,
            looks: if extend { 3 } else { 1 },
            complete: false,
            resumed: Vec::new(),
        },
        protocol: protocol.record(&generator_hash, max_seconds_per_size),
        code: Code {
            version: build.version.into(),
            commit: build.commit.map(str::to_owned),
            dirty: build.dirty,
            binary_sha256: sha256_of(&program)?,
            rustc: build.rustc.into(),
            profile: if cfg!(debug_assertions) { "debug".into() } else { build.profile.into() },
            target: build.target.into(),
            wgpu: build.wgpu.map(str::to_owned),
            kernel_hash: fingerprint(kernel.gpu_sources()),
            baseline_hash: fingerprint(kernel.cpu_sources()),
        },
        machine,
        planned: Vec::new(),
        state: Vec::new(),
        agreement: Vec::new(),
        rows: Vec::new(),
        gates: Vec::new(),
        crossovers: Vec::new(),
        verdict: KernelVerdict { verdict: Verdict::Inconclusive, reason: Some("incomplete".into()) },
        samples: Samples { path: String::new(), sha256: String::new(), rows: 0 },
    })
}

/// `<utc>-<commit8>-<run8>`.
pub(super) fn stem(result: &ResultFile) -> String {
    let utc: String = result.run.started_utc.chars().filter(|letter| !matches!(letter, '-' | ':')).collect();
    let commit = result.code.commit.as_deref().and_then(|commit| commit.get(..8)).unwrap_or("nocommit");
    format!("{utc}-{commit}-{}", result.run.id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_outside_of_the_working_directory_is_only_a_name() {
        assert_eq!(public_path("protocols/cosine.toml"), "protocols/cosine.toml");
        assert_eq!(public_path("/home/somebody/secret/mine.toml"), "mine.toml");
        assert_eq!(public_path("../mine.toml"), "mine.toml");
        let here = std::env::current_dir().unwrap().join("protocols/cosine.toml");
        assert_eq!(public_path(&here.to_string_lossy()), "protocols/cosine.toml");
    }
}
