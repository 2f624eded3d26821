//! [`Source`]: bytes at positions, from a file or from what stdin held.

use crate::error::Error;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

/// What the path `-` is called in messages.
pub(super) const STDIN: &str = "stdin";

/// Bytes that can be read at any position, by many threads at once.
pub(super) struct Source {
    path: PathBuf,
    /// The entry of an archive that it is, for messages.
    part: Option<String>,
    bytes: Bytes,
}

enum Bytes {
    File(File, u64),
    Memory(Vec<u8>),
}

impl Source {
    /// Opens a file, or reads all of stdin for `-`. Pipes and devices have no positions, so they are read to their end.
    pub(super) fn open(path: &Path) -> Result<Self, Error> {
        if path == Path::new("-") {
            let path = PathBuf::from(STDIN);
            let mut bytes = Vec::new();
            io::stdin().lock().read_to_end(&mut bytes).map_err(|error| Error::file(&path, error))?;
            return Ok(Self { path, part: None, bytes: Bytes::Memory(bytes) });
        }
        let mut file = open_file(path)?;
        let metadata = file.metadata().map_err(|error| Error::file(path, error))?;
        let bytes = if metadata.is_file() {
            Bytes::File(file, metadata.len())
        } else {
            let mut bytes = Vec::new();
            file.read_to_end(&mut bytes).map_err(|error| Error::file(path, error))?;
            Bytes::Memory(bytes)
        };
        Ok(Self { path: path.to_owned(), part: None, bytes })
    }

    /// For a reader that goes through an archive by itself. Its clones have positions of their own, so that each thread can
    /// read another entry.
    pub(super) fn cursor(&self) -> Cursor<'_> {
        Cursor { source: self, position: 0 }
    }

    /// Bytes that are part of a file: an entry of an archive.
    pub(super) fn part(path: &Path, name: &str, bytes: Vec<u8>) -> Self {
        Self { path: path.to_owned(), part: Some(name.to_owned()), bytes: Bytes::Memory(bytes) }
    }

    /// The name of the part.
    pub(super) fn part_name(&self) -> &str {
        self.part.as_deref().unwrap_or_default()
    }

    /// Its path, or `stdin`.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Number of bytes when it was opened.
    pub(super) fn len(&self) -> u64 {
        match &self.bytes {
            Bytes::File(_, len) => *len,
            Bytes::Memory(bytes) => bytes.len() as u64,
        }
    }

    /// Fills `buffer` with the bytes from `position` on.
    pub(super) fn read_exact_at(&self, buffer: &mut [u8], position: u64) -> Result<(), Error> {
        let result = match &self.bytes {
            Bytes::File(file, _) => read_exact_at(file, buffer, position),
            Bytes::Memory(bytes) => usize::try_from(position)
                .ok()
                .and_then(|start| bytes.get(start..)?.get(..buffer.len()))
                .map(|bytes| buffer.copy_from_slice(bytes))
                .ok_or_else(|| io::ErrorKind::UnexpectedEof.into()),
        };
        result.map_err(|error| match error.kind() {
            // The length was checked when the file was opened.
            io::ErrorKind::UnexpectedEof => self.format(
                format!("byte {position}"),
                format!("{} more bytes", buffer.len()),
                "the end of the file (has it shrunk since it was opened?)",
            ),
            _ => Error::file(&self.path, error),
        })
    }

    /// An error about this file.
    pub(super) fn format(
        &self,
        position: impl Into<String>,
        expected: impl Into<String>,
        found: impl Into<String>,
    ) -> Error {
        let position = match &self.part {
            Some(part) => format!("{part}: {}", position.into()),
            None => position.into(),
        };
        Error::format(&self.path, position, expected, found)
    }
}

/// Reads a [`Source`] from a position on.
#[derive(Clone)]
pub(super) struct Cursor<'a> {
    source: &'a Source,
    position: u64,
}

impl Read for Cursor<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = match &self.source.bytes {
            Bytes::File(file, _) => read_at(file, buffer, self.position)?,
            Bytes::Memory(bytes) => {
                let rest = usize::try_from(self.position).ok().and_then(|start| bytes.get(start..)).unwrap_or_default();
                let count = rest.len().min(buffer.len());
                buffer[..count].copy_from_slice(&rest[..count]);
                count
            }
        };
        self.position += count as u64;
        Ok(count)
    }
}

impl Seek for Cursor<'_> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let position = match to {
            SeekFrom::Start(position) => Some(position),
            SeekFrom::End(offset) => self.source.len().checked_add_signed(offset),
            SeekFrom::Current(offset) => self.position.checked_add_signed(offset),
        };
        self.position = position.ok_or(io::ErrorKind::InvalidInput)?;
        Ok(self.position)
    }
}

/// Opens a file for reading; a folder is an error here and not at the first read.
pub(super) fn open_file(path: &Path) -> Result<File, Error> {
    let file = File::open(path).map_err(|error| Error::file(path, error))?;
    if file.metadata().is_ok_and(|metadata| metadata.is_dir()) {
        return Err(Error::file(path, io::Error::other("is a folder, not a file")));
    }
    Ok(file)
}

#[cfg(unix)]
fn read_exact_at(file: &File, buffer: &mut [u8], position: u64) -> io::Result<()> {
    std::os::unix::fs::FileExt::read_exact_at(file, buffer, position)
}

#[cfg(unix)]
fn read_at(file: &File, buffer: &mut [u8], position: u64) -> io::Result<usize> {
    std::os::unix::fs::FileExt::read_at(file, buffer, position)
}

#[cfg(windows)]
fn read_at(file: &File, buffer: &mut [u8], position: u64) -> io::Result<usize> {
    std::os::windows::fs::FileExt::seek_read(file, buffer, position)
}

#[cfg(windows)]
fn read_exact_at(file: &File, mut buffer: &mut [u8], mut position: u64) -> io::Result<()> {
    // Moves the file's cursor, which nobody uses: every read says where.
    while !buffer.is_empty() {
        match std::os::windows::fs::FileExt::seek_read(file, buffer, position) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(count) => {
                buffer = &mut buffer[count..];
                position += count as u64;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
