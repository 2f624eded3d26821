//! The gate as a program: what it prints, what it leaves behind, how it exits.

use assert_cmd::Command;
use std::path::Path;

const TINY: &str = r#"
version = 1
[plan]
cpu_only_seconds_per_size = 1
[cosine]
gate = 5.0
gate_row = "resident"
residency = "the corpus stays"
gate_sizes = [300]
sizes = [100, 300]
contexts = [{ dim = 8, k = 3, queries = 2 }]
inputs = { distribution = "gaussian", seed = 1, ring = 2 }
tolerance = 0
sources = ["src/**"]
"#;

fn lodestar(folder: &Path) -> Command {
    let mut command = Command::cargo_bin("lodestar").unwrap();
    // The lock that keeps gates apart lies in the folder for temporary files: these tests may overlap.
    command.current_dir(folder).env("TMPDIR", folder).env_remove("LODESTAR_SIMD");
    command
}

fn refused(text: &str, arguments: &[&str]) -> String {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("p.toml"), text).unwrap();
    let mut command = lodestar(folder.path());
    let output =
        command.args(["gate", "cosine", "--sizes", "p.toml", "--device", "cpu"]).args(arguments).output().unwrap();
    let message = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{message}");
    assert!(output.stdout.is_empty());
    let message = message.lines().last().unwrap().to_owned();
    assert!(!folder.path().join("results").exists(), "nothing is left behind");
    message
}

#[test]
fn an_unknown_key_is_one_line_and_exit_code_2() {
    let message = refused(&TINY.replace("gate = 5.0", "gait = 5.0"), &[]);
    assert!(
        message.starts_with("lodestar: p.toml: line 6: expected a protocol, found unknown field `gait`"),
        "{message}"
    );
}

#[test]
fn a_size_that_does_not_fit_is_refused_with_the_numbers() {
    let huge = TINY
        .replace("[100, 300]", "[4_000_000_000]")
        .replace("[300]", "[4_000_000_000]")
        .replace("dim = 8", "dim = 4096");
    let message = refused(&huge, &[]);
    assert!(
        message.contains("rows 4000000000") && message.contains("expected a size that fits in memory ("),
        "{message}"
    );
}

#[test]
fn a_missing_protocol_and_an_unknown_kernel_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let output = lodestar(folder.path()).args(["gate", "cosine", "--sizes", "none.toml"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8(output.stderr).unwrap().starts_with("lodestar: none.toml: No such file"));
    let output = lodestar(folder.path()).args(["gate", "cosinus"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8(output.stderr).unwrap().contains("kernel: expected one of cosine"));
}

#[test]
fn a_results_folder_that_cannot_be_written_is_named() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("p.toml"), TINY).unwrap();
    std::fs::write(folder.path().join("file"), "").unwrap();
    let mut command = lodestar(folder.path());
    let output = command.args(["gate", "cosine", "--sizes", "p.toml", "--device", "cpu", "--results", "file"]);
    let output = output.output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    let message = String::from_utf8(output.stderr).unwrap();
    assert!(message.lines().last().unwrap().starts_with("lodestar: file"), "{message}");
}

#[test]
fn a_dry_run_shows_the_plan_and_measures_nothing() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("p.toml"), TINY).unwrap();
    let mut command = lodestar(folder.path());
    let output =
        command.args(["gate", "cosine", "--sizes", "p.toml", "--device", "cpu", "--dry-run"]).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(0));
    assert!(text.contains("8 launches of 6 blocks at each of 2 sizes"), "{text}");
    assert!(text.contains("adapter: none") && text.contains("at most about 1 minutes"), "{text}");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "nothing was written");
}

#[test]
fn a_run_leaves_a_result_that_verifies_and_a_changed_one_does_not() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("p.toml"), TINY).unwrap();
    let mut command = lodestar(folder.path());
    let output = command.args(["gate", "cosine", "--sizes", "p.toml", "--device", "cpu"]).output().unwrap();
    let errors = String::from_utf8(output.stderr).unwrap();
    // A debug build is INVALID; a release build has nothing but its missing GPU to complain of.
    let expected = if cfg!(debug_assertions) { 4 } else { 5 };
    assert_eq!(output.status.code(), Some(expected), "{errors}");
    let files = lodestar::results::ledger::result_files(&folder.path().join("results")).unwrap();
    let [(relative, path)] = &files[..] else { panic!("one result: {files:?}") };
    assert!(relative.contains("/cosine/"));
    let leftovers = walkdir(path.parent().unwrap()).into_iter().filter(|name| name.ends_with(".partial")).count();
    assert_eq!(leftovers, 0);
    assert_eq!(lodestar::results::ledger::check(&folder.path().join("results")).unwrap(), []);
    let text = std::fs::read_to_string(path).unwrap();
    let private = folder.path().file_name().unwrap().to_string_lossy().into_owned();
    assert!(!text.contains(&private), "no path of this computer is recorded");
    lodestar(folder.path()).arg("verify").arg(path).assert().success();
    let result = lodestar::results::load(path).unwrap();
    let samples = path.with_file_name(&result.samples.path);
    let changed = std::fs::read_to_string(&samples).unwrap().replacen("pilot", "slot", 1);
    std::fs::write(&samples, changed).unwrap();
    let output = lodestar(folder.path()).arg("verify").arg(path).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8(output.stderr).unwrap().contains("checksum: expected "));
}

fn walkdir(folder: &Path) -> Vec<String> {
    let names = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name());
    names.map(|name| name.to_string_lossy().into_owned()).collect()
}
