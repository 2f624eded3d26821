//! Tells the program which code it was built from: compiler, commit, target, version of wgpu. Results carry them.

use std::path::{Path, PathBuf};
use std::process::Command;

/// What decides the program; other files of the repository do not make a build differ from its commit.
const SOURCES: [&str; 4] = ["src", "build.rs", "Cargo.toml", "Cargo.lock"];

fn main() {
    let root = PathBuf::from(variable("CARGO_MANIFEST_DIR"));
    for source in SOURCES {
        println!("cargo::rerun-if-changed={source}");
    }
    let rustc = output(Command::new(variable("RUSTC")).arg("--version")).unwrap_or_else(|| "rustc unknown".to_owned());
    set("RUSTC", &rustc);
    set("TARGET", &variable("TARGET"));
    set("PROFILE", &variable("PROFILE"));
    if let Some(version) = locked_version(&root, "wgpu").filter(|_| std::env::var_os("CARGO_FEATURE_GPU").is_some()) {
        set("WGPU", &version);
    }
    // Only in a checkout of this repository, not when its sources lie inside another one.
    let top = git(&root, &["rev-parse", "--show-toplevel"]).and_then(|top| Path::new(&top).canonicalize().ok());
    if top.is_none() || top != root.canonicalize().ok() {
        return;
    }
    if let Some(log) = git(&root, &["rev-parse", "--git-path", "logs/HEAD"]) {
        println!("cargo::rerun-if-changed={log}");
    }
    if let Some(commit) = git(&root, &["rev-parse", "HEAD"]) {
        set("COMMIT", &commit);
        let mut status = vec!["status", "--porcelain", "--"];
        status.extend(SOURCES);
        if let Some(changes) = git(&root, &status) {
            set("DIRTY", if changes.is_empty() { "false" } else { "true" });
        }
    }
}

fn set(name: &str, value: &str) {
    println!("cargo::rustc-env=LODESTAR_{name}={value}");
}

fn variable(name: &str) -> String {
    std::env::var(name).unwrap_or_default()
}

fn git(root: &Path, arguments: &[&str]) -> Option<String> {
    output(Command::new("git").arg("-C").arg(root).args(arguments))
}

/// What a command printed, trimmed; `None` when it is not there or fails.
fn output(command: &mut Command) -> Option<String> {
    let output = command.output().ok().filter(|output| output.status.success())?;
    Some(String::from_utf8(output.stdout).ok()?.trim().to_owned())
}

/// Version of a package in Cargo.lock.
fn locked_version(root: &Path, package: &str) -> Option<String> {
    let lock = std::fs::read_to_string(root.join("Cargo.lock")).ok()?;
    let mut lines = lock.lines();
    lines.find(|line| *line == format!("name = \"{package}\""))?;
    Some(lines.next()?.strip_prefix("version = \"")?.strip_suffix('"')?.to_owned())
}
