//! The raw samples: CSV, one line per sample, in time order.

use super::schema::Sample;
use crate::error::Error;
use sha2::{Digest, Sha256};
use std::path::Path;

/// Samples as lines of CSV, with the header where asked.
///
/// # Errors
/// Never for samples as they are made here; the writer's error is passed on rather than hidden.
pub fn to_csv(samples: &[Sample], header: bool) -> Result<Vec<u8>, csv::Error> {
    let mut writer = csv::WriterBuilder::new().has_headers(header).from_writer(Vec::new());
    for sample in samples {
        writer.serialize(sample)?;
    }
    writer.into_inner().map_err(|error| csv::Error::from(error.into_error()))
}

/// Reads a samples file and checks that it is the one the result was made from.
///
/// # Errors
/// [`Error::File`], or [`Error::Format`] when the checksum is another or a line is not a sample.
pub fn read(path: &Path, sha256: &str) -> Result<Vec<Sample>, Error> {
    let bytes = std::fs::read(path).map_err(|error| Error::file(path, error))?;
    let found = super::hex(&Sha256::digest(&bytes));
    if found != sha256 {
        return Err(Error::format(path, "checksum", sha256, found));
    }
    parse(path, &bytes)
}

/// Reads the lines of a samples file.
///
/// # Errors
/// [`Error::Format`] with the line.
pub fn parse(path: &Path, bytes: &[u8]) -> Result<Vec<Sample>, Error> {
    let mut reader = csv::Reader::from_reader(bytes);
    let samples = reader.deserialize().map(|sample| {
        sample.map_err(|error| {
            let position = error.position().map_or_else(|| "header".into(), |at| format!("line {}", at.line()));
            Error::format(path, position, "a sample", error.to_string())
        })
    });
    samples.collect()
}
