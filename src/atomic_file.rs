//! [`AtomicFile`]: a file that appears whole or not at all.

use crate::error::Error;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// Temporary files now open, so that an interrupt can remove them.
static OPEN: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// Written under a temporary name in the same folder, renamed by [`commit`](Self::commit), removed when dropped without it.
pub struct AtomicFile {
    file: Option<BufWriter<tempfile::NamedTempFile>>,
    path: PathBuf,
    temporary: PathBuf,
}

impl AtomicFile {
    /// Starts writing what will be `path`.
    ///
    /// # Errors
    /// [`Error::File`] when the folder does not exist or cannot be written.
    pub fn create(path: impl AsRef<Path>) -> Result<Self, Error> {
        let path = path.as_ref().to_owned();
        let folder = match path.parent() {
            Some(folder) if !folder.as_os_str().is_empty() => folder,
            _ => Path::new("."),
        };
        if path.is_dir() {
            return Err(Error::file(&path, io::Error::other("is a folder")));
        }
        let file = tempfile::Builder::new()
            .prefix(".lodestar-")
            .suffix(".partial")
            .tempfile_in(folder)
            .map_err(|error| Error::file(&path, plain(error)))?;
        let temporary = file.path().to_owned();
        OPEN.lock().unwrap_or_else(PoisonError::into_inner).push(temporary.clone());
        Ok(Self { file: Some(BufWriter::with_capacity(1 << 20, file)), path, temporary })
    }

    /// Writes what is buffered to the disk and gives the file its name.
    ///
    /// # Errors
    /// [`Error::File`], a full disk included; then the file does not appear.
    pub fn commit(mut self) -> Result<(), Error> {
        let result = self.finish();
        result.map_err(|error| Error::file(&self.path, error))
    }

    fn finish(&mut self) -> io::Result<()> {
        let Some(writer) = self.file.take() else { return Ok(()) };
        let file = writer.into_inner().map_err(io::IntoInnerError::into_error)?;
        file.as_file().sync_all()?;
        // A temporary file is private to its owner; the result is as readable as any file the user makes.
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            file.as_file().set_permissions(std::fs::Permissions::from_mode(0o644))?;
        }
        file.persist(&self.path).map_err(|error| error.error)?;
        Ok(())
    }
}

/// The operating system's message without the temporary path that `tempfile` adds.
fn plain(error: io::Error) -> io::Error {
    error
        .raw_os_error()
        .or_else(|| os_code(&error))
        .map_or_else(|| io::Error::from(error.kind()), io::Error::from_raw_os_error)
}

fn os_code(error: &io::Error) -> Option<i32> {
    error.get_ref()?.source()?.downcast_ref::<io::Error>()?.raw_os_error()
}

impl Write for AtomicFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.as_mut().map_or(Ok(0), |file| file.write(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.as_mut().map_or(Ok(()), Write::flush)
    }
}

impl Drop for AtomicFile {
    fn drop(&mut self) {
        OPEN.lock().unwrap_or_else(PoisonError::into_inner).retain(|path| *path != self.temporary);
    }
}

/// Removes every file that is being written; for an interrupt, right before the process exits.
pub fn remove_unfinished() {
    for path in OPEN.lock().unwrap_or_else(PoisonError::into_inner).drain(..) {
        // Nothing is left to be done about a file that cannot be removed on the way out.
        let _ = std::fs::remove_file(path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_appears_only_when_committed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out.csv");
        let mut file = AtomicFile::create(&path).unwrap();
        file.write_all(b"half").unwrap();
        drop(file);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
        let mut file = AtomicFile::create(&path).unwrap();
        file.write_all(b"whole").unwrap();
        file.commit().unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"whole");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_missing_folder_is_named_with_the_path_the_user_gave() {
        let message = AtomicFile::create("/no/such/folder/out.csv").err().unwrap().to_string();
        assert_eq!(message, "/no/such/folder/out.csv: No such file or directory (os error 2)");
    }
}
