//! Result files: their schema, how they are stored, and the ledger that keeps every one of them.

pub mod ledger;
pub mod samples;
pub mod schema;
pub mod store;

pub use store::{load, load_all};

use crate::error::Error;
use sha2::{Digest, Sha256};
use std::path::Path;

/// Bytes as lower-case hexadecimal digits.
pub fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write;
    bytes.iter().fold(String::with_capacity(2 * bytes.len()), |mut text, byte| {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// SHA-256 of a file.
///
/// # Errors
/// [`Error::File`].
pub fn sha256_of(path: &Path) -> Result<String, Error> {
    let mut hash = Sha256::new();
    let mut file = std::fs::File::open(path).map_err(|error| Error::file(path, error))?;
    let mut buffer = vec![0; 1 << 20];
    loop {
        match std::io::Read::read(&mut file, &mut buffer).map_err(|error| Error::file(path, error))? {
            0 => return Ok(hex(&hash.finalize())),
            read => hash.update(&buffer[..read]),
        }
    }
}

/// The JSON Schema of result files, as committed under `schemas/`.
pub fn json_schema() -> String {
    let schema = schemars::schema_for!(schema::ResultFile);
    // A schema of plain types has no value that JSON cannot hold.
    serde_json::to_string_pretty(&schema).unwrap_or_default() + "\n"
}
