//! [`Error`]: every way a library call can fail, each with the numbers a reader needs.

use std::path::{Path, PathBuf};

/// What went wrong. One line when printed; nothing is lost on the way (paths, positions, limits).
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Two shapes that must agree do not.
    #[error("{what}: expected {expected}, found {found}")]
    Shape {
        /// Which operand or property, e.g. `queries: columns`.
        what: String,
        /// What it had to be.
        expected: usize,
        /// What it was.
        found: usize,
    },
    /// An argument outside of what the call is defined for.
    #[error("{what}: expected {expected}, found {found}")]
    Argument {
        /// The argument's name as the caller wrote it.
        what: String,
        /// What would have been accepted.
        expected: String,
        /// What was given.
        found: String,
    },
    /// More was asked for than this machine, device or format can hold.
    #[error("{what}: {requested} requested, at most {max} possible")]
    Limit {
        /// Which limit.
        what: String,
        /// What was asked for.
        requested: u64,
        /// The most there can be.
        max: u64,
    },
    /// A NaN or an infinity where scores are computed; rows and columns count from 0.
    #[error("{what}: row {row}, column {column}: expected a finite number, found {value}")]
    NotFinite {
        /// Which operand (`corpus`, `queries`), or the file it came from.
        what: String,
        /// Row, from 0.
        row: usize,
        /// Column, from 0.
        column: usize,
        /// The value found.
        value: f32,
    },
    /// Reading or writing a file failed.
    #[error("{}: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What the operating system said.
        source: std::io::Error,
    },
    /// A file that is not what its format says.
    #[error("{}: {position}: expected {expected}, found {found}", path.display())]
    Format {
        /// The file.
        path: PathBuf,
        /// Line, row, byte or header field.
        position: String,
        /// What had to be there.
        expected: String,
        /// What was there.
        found: String,
    },
    /// The device layer failed; see [`DeviceError`].
    #[error(transparent)]
    Device(#[from] DeviceError),
}

impl Error {
    /// An I/O error with the path it happened on.
    pub fn file(path: impl AsRef<Path>, source: std::io::Error) -> Self {
        Self::File { path: path.as_ref().to_owned(), source }
    }

    /// A malformed file: where, what was expected, what was found.
    pub fn format(
        path: impl AsRef<Path>,
        position: impl Into<String>,
        expected: impl Into<String>,
        found: impl Into<String>,
    ) -> Self {
        Self::Format {
            path: path.as_ref().to_owned(),
            position: position.into(),
            expected: expected.into(),
            found: found.into(),
        }
    }

    /// An argument outside its domain.
    pub fn argument(what: impl Into<String>, expected: impl Into<String>, found: impl ToString) -> Self {
        Self::Argument { what: what.into(), expected: expected.into(), found: found.to_string() }
    }
}

/// How work on a device can fail. Never a panic, and never a buffer of zeros in place of a result.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum DeviceError {
    /// No adapter of the wanted kind; the hint names the package or flag that would bring one.
    #[error("no {wanted} adapter: {hint}")]
    NoAdapter {
        /// What was asked for: `GPU`, `software`, or a name.
        wanted: String,
        /// How to get one.
        hint: String,
    },
    /// The adapter refused to open a device.
    #[error("{adapter}: cannot open the device: {message}")]
    Request {
        /// Adapter name.
        adapter: String,
        /// What wgpu said.
        message: String,
    },
    /// Beyond a limit of the adapter.
    #[error("{what}: {requested} requested, the adapter allows {max}")]
    Limit {
        /// Which limit.
        what: String,
        /// What was asked for.
        requested: u64,
        /// The adapter's limit.
        max: u64,
    },
    /// The device has no memory left for this.
    #[error("{what}: out of device memory ({bytes} bytes requested)")]
    OutOfMemory {
        /// What was being allocated.
        what: String,
        /// Its size.
        bytes: u64,
    },
    /// The device is gone; every later call fails the same way.
    #[error("device lost: {message}")]
    Lost {
        /// What the driver said.
        message: String,
    },
    /// The device did not finish in time.
    #[error("{what}: no answer from the device after {seconds} s")]
    Timeout {
        /// Which step.
        what: String,
        /// How long it was waited for.
        seconds: u64,
    },
    /// A shader or pipeline was refused.
    #[error("shader {shader}: {message}")]
    Shader {
        /// Its name.
        shader: String,
        /// The compiler's message.
        message: String,
    },
    /// A validation error: a bug in lodestar, reported instead of a wrong result.
    #[error("{what}: {message}")]
    Internal {
        /// Which step.
        what: String,
        /// What wgpu said.
        message: String,
    },
}
