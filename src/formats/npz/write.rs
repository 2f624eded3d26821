//! Writing a csr archive that `scipy.sparse.load_npz` reads.

use super::super::npy_header;
use super::super::sparse::Real;
use crate::data::Csr;
use std::io::{self, Write};
use zip::write::{SimpleFileOptions, StreamWriter, ZipWriter};
use zip::{CompressionMethod, DateTime};

/// Bytes of converted numbers that are written at a time.
const PIECE: usize = 1 << 14;
/// A larger entry needs the fields of zip64.
const LARGE: u64 = u32::MAX as u64 - (1 << 16);

/// Writes the entries in the order of scipy, stored: deflate would take longer than everything else together.
pub(in super::super) fn write<T: Real>(matrix: &Csr<T>, out: &mut dyn Write) -> io::Result<()> {
    let mut zip = ZipWriter::new_stream(out);
    let (entries, rows) = (matrix.entries(), matrix.rows());
    // scipy gives both index arrays one type.
    let small = |count: usize| i32::try_from(count).is_ok();
    let narrow = small(entries) && small(rows) && small(matrix.cols());
    let index = if narrow { "<i4" } else { "<i8" };
    let bytes = if narrow { 4 } else { 8 };
    begin(&mut zip, "indices", index, &format!("({entries},)"), entries * bytes)?;
    integers(&mut zip, matrix.indices().iter().map(|&column| u64::from(column)), narrow)?;
    begin(&mut zip, "indptr", index, &format!("({},)", rows + 1), (rows + 1) * bytes)?;
    integers(&mut zip, matrix.indptr().iter().map(|&position| position as u64), narrow)?;
    begin(&mut zip, "format", "|S3", "()", 3)?;
    zip.write_all(b"csr")?;
    begin(&mut zip, "shape", "<i8", "(2,)", 16)?;
    integers(&mut zip, [rows as u64, matrix.cols() as u64].into_iter(), false)?;
    begin(&mut zip, "data", T::DESCR, &format!("({entries},)"), size_of_val(matrix.values()))?;
    zip.write_all(bytemuck::cast_slice(matrix.values()))?;
    zip.finish()?.into_inner().flush()
}

fn begin<W: Write>(
    zip: &mut ZipWriter<StreamWriter<W>>,
    name: &str,
    descr: &str,
    shape: &str,
    bytes: usize,
) -> io::Result<()> {
    // The same matrix gives the same file: no time of day.
    let options = SimpleFileOptions::default()
        .compression_method(CompressionMethod::Stored)
        .last_modified_time(DateTime::default())
        .large_file(bytes as u64 > LARGE);
    zip.start_file(format!("{name}.npy"), options)?;
    zip.write_all(&npy_header::write_array(descr, shape))
}

fn integers(out: &mut impl Write, numbers: impl Iterator<Item = u64>, narrow: bool) -> io::Result<()> {
    let mut piece = Vec::with_capacity(PIECE + 8);
    for number in numbers {
        let bytes = number.to_le_bytes();
        piece.extend_from_slice(if narrow { &bytes[..4] } else { &bytes });
        if piece.len() >= PIECE {
            out.write_all(&piece)?;
            piece.clear();
        }
    }
    out.write_all(&piece)
}
