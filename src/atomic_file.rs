//! [`AtomicFile`]: a file that appears whole or not at all.

use crate::error::Error;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// Temporary files now open, so that an interrupt can remove them.
static OPEN: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// Written under a temporary name in the same folder, renamed by [`commit`](Self::commit), removed when dropped without it.
///
/// A path that is no regular file (`/dev/null`, a named pipe) is written to directly: it must not be replaced by one.
pub struct AtomicFile {
    file: Option<BufWriter<Target>>,
    path: PathBuf,
    temporary: PathBuf,
}

enum Target {
    Temporary(tempfile::NamedTempFile),
    Direct(std::fs::File),
}

impl Write for Target {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            // To the file itself: errors of the wrapper would name the temporary path.
            Self::Temporary(file) => file.as_file_mut().write(bytes),
            Self::Direct(file) => file.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Temporary(file) => file.as_file_mut().flush(),
            Self::Direct(file) => file.flush(),
        }
    }
}

impl AtomicFile {
    /// Starts writing what will be `path`.
    ///
    /// # Errors
    /// [`Error::File`] when the folder does not exist or cannot be written.
    pub fn create(path: impl AsRef<Path>) -> Result<Self, Error> {
        let path = path.as_ref().to_owned();
        let buffered = |target| Some(BufWriter::with_capacity(1 << 20, target));
        match std::fs::metadata(&path) {
            Ok(metadata) if metadata.is_dir() => return Err(Error::file(&path, io::Error::other("is a folder"))),
            Ok(metadata) if !metadata.is_file() => {
                let file = std::fs::OpenOptions::new().write(true).open(&path);
                let file = file.map_err(|error| Error::file(&path, error))?;
                return Ok(Self { file: buffered(Target::Direct(file)), temporary: PathBuf::new(), path });
            }
            // A new file, or one that is replaced; of a symbolic link, what it points to.
            _ => {}
        }
        let path = std::fs::canonicalize(&path).ok().filter(|_| path.is_symlink()).unwrap_or(path);
        let folder = match path.parent() {
            Some(folder) if !folder.as_os_str().is_empty() => folder,
            _ => Path::new("."),
        };
        let mut builder = tempfile::Builder::new();
        builder.prefix(".lodestar-").suffix(".partial");
        // A temporary file is private to its owner; the result is as readable as any file the user makes (umask applies).
        #[cfg(unix)]
        builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
        let file = builder.tempfile_in(folder).map_err(|error| Error::file(&path, plain(error)))?;
        let temporary = file.path().to_owned();
        OPEN.lock().unwrap_or_else(PoisonError::into_inner).push(temporary.clone());
        Ok(Self { file: buffered(Target::Temporary(file)), path, temporary })
    }

    /// Whether [`write_all_at`](Self::write_all_at) can be used: not for a pipe or a device.
    pub fn has_positions(&self) -> bool {
        self.file.as_ref().is_some_and(|file| matches!(file.get_ref(), Target::Temporary(_)))
    }

    /// Writes at a position, whatever has been written so far; what lies between reads as zeros until it is written.
    /// What is written after the last position makes the file longer.
    ///
    /// # Errors
    /// A full disk; [`NotSeekable`](io::ErrorKind::NotSeekable) where there are no positions.
    pub fn write_all_at(&mut self, bytes: &[u8], position: u64) -> io::Result<()> {
        let Some(file) = self.file.as_mut() else { return Ok(()) };
        file.flush()?;
        match file.get_ref() {
            Target::Temporary(file) => write_all_at(file.as_file(), bytes, position),
            Target::Direct(_) => Err(io::ErrorKind::NotSeekable.into()),
        }
    }

    /// Writes what is buffered to the disk and gives the file its name.
    ///
    /// # Errors
    /// [`Error::File`], a full disk included; then the file does not appear.
    pub fn commit(mut self) -> Result<(), Error> {
        let result = self.finish(true);
        result.map_err(|error| Error::file(&self.path, error))
    }

    /// As [`commit`](Self::commit), without waiting for the disk: for what can be computed again. Waiting can take longer
    /// than the computation. Until the system has written it, a loss of power loses the file, or leaves it empty.
    ///
    /// # Errors
    /// As [`commit`](Self::commit).
    pub fn commit_without_sync(mut self) -> Result<(), Error> {
        let result = self.finish(false);
        result.map_err(|error| Error::file(&self.path, error))
    }

    fn finish(&mut self, sync: bool) -> io::Result<()> {
        let Some(writer) = self.file.take() else { return Ok(()) };
        let file = writer.into_inner().map_err(io::IntoInnerError::into_error)?;
        if let Target::Temporary(file) = file {
            if sync {
                file.as_file().sync_all()?;
            }
            file.persist(&self.path).map_err(|error| error.error)?;
        }
        Ok(())
    }
}

#[cfg(unix)]
fn write_all_at(file: &std::fs::File, bytes: &[u8], position: u64) -> io::Result<()> {
    std::os::unix::fs::FileExt::write_all_at(file, bytes, position)
}

#[cfg(windows)]
fn write_all_at(file: &std::fs::File, mut bytes: &[u8], mut position: u64) -> io::Result<()> {
    while !bytes.is_empty() {
        match std::os::windows::fs::FileExt::seek_write(file, bytes, position) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(count) => {
                bytes = &bytes[count..];
                position += count as u64;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// The operating system's message without the temporary path that `tempfile` adds.
fn plain(error: io::Error) -> io::Error {
    let text = error.to_string();
    match text.split_once(" at path ") {
        Some((message, _)) => io::Error::new(error.kind(), message.to_owned()),
        None => error,
    }
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
    fn parts_are_written_at_their_positions_in_any_order() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out");
        let mut file = AtomicFile::create(&path).unwrap();
        assert!(file.has_positions());
        file.write_all(b"head").unwrap();
        file.write_all_at(b"ef", 8).unwrap();
        file.write_all_at(b"abcd", 4).unwrap();
        file.commit().unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"headabcdef");
        let mut file = AtomicFile::create(&path).unwrap();
        file.write_all(b"buffered").unwrap();
        file.commit_without_sync().unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"buffered");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[cfg(unix)]
    #[test]
    fn a_device_is_written_to_and_stays_a_device() {
        let mut file = AtomicFile::create("/dev/null").unwrap();
        assert!(!file.has_positions());
        assert!(file.write_all_at(b"x", 5).is_err());
        file.write_all(b"gone").unwrap();
        file.commit().unwrap();
        assert!(!std::fs::metadata("/dev/null").unwrap().is_file());
    }

    #[cfg(unix)]
    #[test]
    fn a_symbolic_link_stays_and_its_target_is_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let (target, link) = (folder.path().join("target"), folder.path().join("link"));
        std::fs::write(&target, b"old").unwrap();
        std::os::unix::fs::symlink(&target, &link).unwrap();
        let mut file = AtomicFile::create(&link).unwrap();
        file.write_all(b"new").unwrap();
        file.commit().unwrap();
        assert!(link.is_symlink());
        assert_eq!(std::fs::read(&target).unwrap(), b"new");
    }

    #[test]
    fn a_missing_folder_is_named_with_the_path_the_user_gave() {
        let message = AtomicFile::create("/no/such/folder/out.csv").err().unwrap().to_string();
        assert_eq!(message, "/no/such/folder/out.csv: No such file or directory (os error 2)");
    }
}
