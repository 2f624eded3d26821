//! The program as its users run it, for the tests of the commands.

use std::path::Path;
use std::process::{Command, Output};

/// The program, run in a folder, so that messages name files without theirs.
pub(crate) fn lodestar(folder: &Path) -> Command {
    let mut command = Command::new(assert_cmd::cargo::cargo_bin!("lodestar"));
    command.current_dir(folder).env_remove("RAYON_NUM_THREADS").env_remove("CI").env("NODEVICE_SELECT", "1");
    command
}

/// What a run wrote to stdout.
pub(crate) fn out(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

/// What a run wrote to stderr.
pub(crate) fn err(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

/// The one line of a run that had to fail: nothing on stdout, exit code 2.
pub(crate) fn refused(output: &Output, arguments: &[&str]) -> String {
    let message = err(output);
    assert_eq!(output.status.code(), Some(2), "{arguments:?}: {message}");
    assert_eq!(out(output), "", "{arguments:?}");
    assert_eq!(message.lines().count(), 1, "{message}");
    message.strip_prefix("lodestar: ").unwrap().trim_end().to_owned()
}
