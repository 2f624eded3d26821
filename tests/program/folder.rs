//! A folder to run one command in.

use crate::program::{lodestar, refused};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// A folder to run one command in.
pub(crate) struct Folder {
    folder: tempfile::TempDir,
    command: &'static str,
}

impl Folder {
    /// An empty one.
    pub(crate) fn new(command: &'static str) -> Self {
        Self { folder: tempfile::tempdir().unwrap(), command }
    }

    pub(crate) fn root(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.root().join(name)
    }

    pub(crate) fn write(&self, name: &str, text: impl AsRef<[u8]>) {
        std::fs::write(self.path(name), text).unwrap();
    }

    pub(crate) fn read(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.path(name)).unwrap()
    }

    pub(crate) fn command(&self) -> Command {
        let mut command = lodestar(self.root());
        command.arg(self.command);
        command
    }

    pub(crate) fn run(&self, arguments: &[&str]) -> Output {
        self.command().args(arguments).output().unwrap()
    }

    /// The one line that a run has to fail with; nothing on stdout and no new file, exit code 2.
    pub(crate) fn refusal(&self, arguments: &[&str]) -> String {
        let before = self.listing();
        let message = refused(&self.run(arguments), arguments);
        assert_eq!(self.listing(), before, "{arguments:?}");
        message
    }

    /// What the folder holds, hidden files included.
    pub(crate) fn listing(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.root()).unwrap();
        let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }
}
