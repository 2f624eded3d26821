//! The gate as a program: what it prints, what it leaves behind, how it exits.

use assert_cmd::Command;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::Duration;

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
    let leftovers = names(path.parent().unwrap()).into_iter().filter(|name| name.ends_with(".partial")).count();
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

fn names(folder: &Path) -> Vec<String> {
    let names = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name());
    names.map(|name| name.to_string_lossy().into_owned()).collect()
}

/// Diagnostic rows of the GPU in what a run on a software adapter prints and writes: none, by name or by arm.
#[test]
fn a_software_adapter_leaves_no_diagnostic_row_in_any_output() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("p.toml"), TINY).unwrap();
    let mut command = lodestar(folder.path());
    let output =
        command.args(["gate", "cosine", "--sizes", "p.toml", "--device", "software", "--json"]).output().unwrap();
    let errors = String::from_utf8(output.stderr).unwrap();
    let files = lodestar::results::ledger::result_files(&folder.path().join("results")).unwrap();
    let Some((_, path)) = files.first() else {
        assert!(std::env::var("LODESTAR_GPU").as_deref() != Ok("require"), "{errors}");
        assert!(errors.contains("adapter"), "{errors}");
        return;
    };
    let result = lodestar::results::load(path).unwrap();
    assert!(result.machine.adapter.as_ref().unwrap().software);
    let samples = std::fs::read_to_string(path.with_file_name(&result.samples.path)).unwrap();
    let texts = [String::from_utf8(output.stdout).unwrap(), errors, std::fs::read_to_string(path).unwrap(), samples];
    assert!(texts[0].contains("\"resident\"") && texts[3].contains(",resident,simd,"), "there is something to look at");
    for name in crate::diagnostics::ROWS {
        assert!(texts.iter().all(|text| !text.contains(name)), "{name}");
    }
    assert!(!texts[3].contains(",gpu,"));
    for row in result.rows.iter().filter(|row| row.arm == "gpu") {
        let times = [row.median_ns, row.p25_ns, row.p75_ns, row.min_ns, row.max_ns];
        assert_eq!(times, [None; 5], "{row:?}");
        assert_eq!((row.upload_path.as_deref(), row.wait.as_deref()), (Some("staging_ring"), Some("poll_wait")));
    }
}

fn gate(folder: &Path, arguments: &[&str]) -> (Option<i32>, String) {
    let mut command = lodestar(folder);
    let output =
        command.args(["gate", "cosine", "--sizes", "p.toml", "--device", "cpu"]).args(arguments).output().unwrap();
    let errors = String::from_utf8(output.stderr).unwrap();
    (output.status.code(), errors.lines().last().unwrap_or_default().to_owned())
}

/// The two partial files of a run that was stopped after its first size and before its last one, result and samples; and
/// its exit code.
fn stopped(folder: &Path, stop: impl FnOnce(&mut Child)) -> (PathBuf, PathBuf, Option<i32>) {
    std::fs::write(folder.join("p.toml"), TINY.replace("[100, 300]", "[100, 300, 900, 2_700]")).unwrap();
    let mut command = std::process::Command::new(assert_cmd::cargo::cargo_bin("lodestar"));
    command.current_dir(folder).env("TMPDIR", folder).env_remove("LODESTAR_SIMD");
    command.args(["gate", "cosine", "--sizes", "p.toml", "--device", "cpu"]);
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let json = loop {
        let all = walkdir::WalkDir::new(folder).into_iter().flatten().map(walkdir::DirEntry::into_path);
        let visible = |path: &PathBuf| !path.file_name().unwrap().to_string_lossy().starts_with('.');
        let mut partial = all.filter(|path| path.to_string_lossy().ends_with(".json.partial")).filter(visible);
        if let Some(path) = partial.next() {
            break path;
        }
        assert!(child.try_wait().unwrap().is_none(), "it ended before anybody could kill it");
        std::thread::sleep(Duration::from_millis(2));
    };
    stop(&mut child);
    let code = child.wait().unwrap().code();
    let samples = json.to_string_lossy().replace(".json.partial", ".samples.csv.partial").into();
    (json, samples, code)
}

/// The hard way, and no time to tidy up.
fn kill(child: &mut Child) {
    child.kill().unwrap();
}

#[cfg(unix)]
#[test]
fn ctrl_c_leaves_what_is_finished_to_be_resumed_and_nothing_in_the_ledger_yet() {
    let folder = tempfile::tempdir().unwrap();
    let (json, _, code) = stopped(folder.path(), |child| {
        let sent = std::process::Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
        assert!(sent.success());
    });
    assert_eq!(code, Some(130));
    let left = lodestar::results::load(&json).unwrap();
    assert!(!left.run.complete && (1..4).contains(&left.planned.len()), "{} of 4 sizes", left.planned.len());
    let results = folder.path().join("results");
    assert_eq!(lodestar::results::load_all(&results).unwrap(), []);
    let (_, message) = gate(folder.path(), &["--resume"]);
    let all = lodestar::results::load_all(&results).unwrap();
    assert_eq!(all.len(), 1, "{message}");
    let run = &all[0].1.run;
    assert_eq!((&run.id, run.complete, run.resumed.len()), (&left.run.id, true, 1));
    assert_eq!(run.resumed[0].interrupted_utc, left.run.ended_utc);
    assert_eq!(lodestar::results::ledger::check(&results).unwrap(), []);
}

#[test]
fn a_killed_run_goes_on_where_it_was_and_only_as_it_began() {
    let folder = tempfile::tempdir().unwrap();
    let (json, csv, _) = stopped(folder.path(), kill);
    let began = lodestar::results::load(&json).unwrap();
    assert!((1..4).contains(&began.planned.len()), "{} of 4 sizes", began.planned.len());
    let kept = [std::fs::read(&json).unwrap(), std::fs::read(&csv).unwrap()];
    let untouched = |message: &str| {
        assert_eq!([std::fs::read(&json).unwrap(), std::fs::read(&csv).unwrap()], kept, "{message}");
    };
    let refused = |arguments: &[&str], wanted: &str| {
        let (code, message) = gate(folder.path(), arguments);
        assert_eq!(code, Some(2), "{message}");
        assert!(message.starts_with("lodestar: gate --resume: results") && message.contains(wanted), "{message}");
        untouched(&message);
    };
    refused(&["--resume", "--quick"], ".json.partial: run.mode: expected \"full\", as it began, found \"quick\"");
    refused(&["--resume", "--extend"], ": run.looks: expected 1, as it began, found 3");
    let protocol = std::fs::read_to_string(folder.path().join("p.toml")).unwrap();
    std::fs::write(folder.path().join("p.toml"), protocol.replace("gate = 5.0", "gate = 4.0")).unwrap();
    refused(&["--resume"], &format!(": protocol.sha256: expected \"{}\"", began.protocol.sha256));
    std::fs::write(folder.path().join("p.toml"), &protocol).unwrap();
    std::fs::write(&csv, &kept[1][..kept[1].len() / 3]).unwrap();
    let (code, message) = gate(folder.path(), &["--resume"]);
    assert_eq!(code, Some(2), "{message}");
    assert!(message.contains(".samples.csv.partial: line ") && message.contains("the end of the file"), "{message}");
    assert_eq!(std::fs::read(&csv).unwrap(), kept[1][..kept[1].len() / 3]);
    std::fs::write(&csv, &kept[1]).unwrap();

    let (code, message) = gate(folder.path(), &["--resume"]);
    assert_eq!(code, Some(if cfg!(debug_assertions) { 4 } else { 5 }), "{message}");
    let files = lodestar::results::ledger::result_files(&folder.path().join("results")).unwrap();
    let [(_, path)] = &files[..] else { panic!("one result: {files:?}") };
    assert_eq!(names(path.parent().unwrap()).len(), 2, "no partial file stays");
    assert_eq!(lodestar::results::ledger::check(&folder.path().join("results")).unwrap(), []);
    lodestar(folder.path()).arg("verify").arg(path).assert().success();
    let result = lodestar::results::load(path).unwrap();
    assert_eq!((&result.run.id, &result.run.started_utc), (&began.run.id, &began.run.started_utc));
    assert!(result.run.complete && result.planned.len() == 4 && result.run.resumed.len() == 1);
    let samples = std::fs::read(path.with_file_name(&result.samples.path)).unwrap();
    let finished =
        kept[1].split_inclusive(|byte| *byte == b'\n').take(1 + usize::try_from(began.samples.rows).unwrap());
    let finished: Vec<u8> = finished.flatten().copied().collect();
    assert!(samples.starts_with(&finished), "what was finished is as it was, byte for byte");
    assert!(began.agreement.iter().all(|row| result.agreement.contains(row)));

    let (code, message) = gate(folder.path(), &["--resume"]);
    assert_eq!(code, Some(2));
    assert!(message.ends_with("expected an unfinished run, found none"), "a finished run is not resumed: {message}");
}

#[test]
fn a_killed_run_that_nobody_resumes_is_recorded_by_the_next_one() {
    let folder = tempfile::tempdir().unwrap();
    let (json, _, _) = stopped(folder.path(), kill);
    let (_, message) = gate(folder.path(), &["--null"]);
    assert!(!json.exists(), "{message}");
    let results = folder.path().join("results");
    let all = lodestar::results::load_all(&results).unwrap();
    assert_eq!(all.iter().map(|(_, result)| result.run.complete).collect::<Vec<_>>(), [false, true], "{message}");
    assert_eq!(lodestar::results::ledger::check(&results).unwrap(), []);
    assert_eq!(gate(folder.path(), &["--resume"]).0, Some(2));
}

#[test]
fn nothing_to_resume_is_one_line_and_leaves_nothing() {
    let message = refused(TINY, &["--resume"]);
    assert!(message.starts_with("lodestar: gate --resume: results"), "{message}");
    assert!(message.ends_with("cosine: expected an unfinished run, found none"), "{message}");
}

/// The protocol of [`TINY`] for a kernel whose contexts pin names.
const NAMED: &str = r#"
version = 1
[plan]
cpu_only_seconds_per_size = 1
[spmm]
gate = 5.0
gate_row = "resident"
residency = "A stays"
gate_sizes = [300]
sizes = [100, 300]
contexts = [{ matrix = "banded", width = 8, values = "f32" }, { matrix = "skewed", width = 9, values = "f64" }]
inputs = { distribution = "gaussian", seed = 1, ring = 2 }
tolerance = 1
sources = ["src/**"]
"#;

#[test]
fn a_plan_with_names_is_shown_as_a_person_would_say_it() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("p.toml"), NAMED).unwrap();
    let arguments = ["gate", "spmm", "--sizes", "p.toml", "--device", "cpu", "--dry-run"];
    let output = lodestar(folder.path()).args(arguments).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    let line =
        |words: &str| text.lines().find(|line| line.trim_start().starts_with(words)).unwrap_or_default().to_owned();
    assert!(line("banded, f32, width 8  300").ends_with("yes"), "{text}");
    assert!(
        !line("skewed, f64, width 9  100").is_empty() && !line("skewed, f64, width 9  100").ends_with("yes"),
        "{text}"
    );
    let json = lodestar(folder.path()).args(arguments).arg("--json").output().unwrap();
    let plan: serde_json::Value = serde_json::from_slice(&json.stdout).unwrap();
    assert_eq!(plan["cells"][0]["context"], serde_json::json!({ "matrix": "banded", "values": "f32", "width": 8 }));
    let refused = |from: &str, to: &str| {
        std::fs::write(folder.path().join("p.toml"), NAMED.replace(from, to)).unwrap();
        let output = lodestar(folder.path()).args(arguments).output().unwrap();
        assert_eq!(output.status.code(), Some(2));
        String::from_utf8(output.stderr).unwrap()
    };
    let message = refused("\"skewed\"", "\"skewd\"");
    assert!(
        message.starts_with("lodestar: p.toml: [spmm] contexts, entry 2, matrix: expected one of tf-idf, zipf, "),
        "{message}"
    );
    assert!(message.ends_with("found skewd\n") && message.lines().count() == 1, "{message}");
}

#[test]
fn a_run_with_names_compares_within_bounds_and_verifies() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("p.toml"), NAMED).unwrap();
    let arguments = ["gate", "spmm", "--sizes", "p.toml", "--device", "cpu", "--quick"];
    let output = lodestar(folder.path()).args(arguments).output().unwrap();
    // A debug build decides nothing, and compares all the same.
    assert_eq!(output.status.code(), Some(4), "{}", String::from_utf8_lossy(&output.stderr));
    let results = store_of(folder.path());
    let result: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(&results).unwrap()).unwrap();
    let agreement = result["agreement"].as_array().unwrap();
    assert!(agreement.iter().any(|row| row["context"]["matrix"] == "skewed" && row["context"]["width"] == 9));
    for row in agreement {
        assert!(row["mismatch"].is_null() && row["tolerance"] == 1.0 && row["compared"].as_u64() > Some(0), "{row}");
        assert!(row["max_error"].as_f64().unwrap() <= 1.0, "{row}");
    }
    lodestar(folder.path()).arg("verify").arg(&results).assert().success();
}

/// The only result below a folder.
fn store_of(folder: &Path) -> PathBuf {
    let machine = std::fs::read_dir(folder.join("results")).unwrap().map(|entry| entry.unwrap().path());
    let machine = machine.into_iter().find(|path| path.is_dir()).unwrap();
    let files = std::fs::read_dir(machine.join("spmm")).unwrap().map(|entry| entry.unwrap().path());
    files.into_iter().find(|path| path.extension().is_some_and(|extension| extension == "json")).unwrap()
}
