//! .fvecs and .bvecs: each row is its number of columns (a little-endian i32), then its values (f32 or u8).

use super::source::Source;
use crate::data::Rows;
use crate::error::Error;

/// Bytes of .bvecs records that are read at a time, at least one record.
const PIECE: usize = 1 << 16;
const HEAD: usize = 4;

/// How a record stores its values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Values {
    /// .fvecs
    F32,
    /// .bvecs
    U8,
}

/// A matrix in a file of records.
pub(super) struct Vecs {
    source: Source,
    values: Values,
    rows: usize,
    cols: usize,
}

impl Vecs {
    /// Takes the number of columns from the first record and checks that the file is a whole number of such records;
    /// each record's own number of columns is checked when it is read.
    pub(super) fn open(source: Source, values: Values) -> Result<Self, Error> {
        if source.len() == 0 {
            return Ok(Self { source, values, rows: 0, cols: 0 });
        }
        let cols = columns(&source, 0, 0)?;
        let vecs = Self { source, values, rows: 0, cols: cols as usize };
        let record = vecs.record();
        if !vecs.source.len().is_multiple_of(record) {
            return Err(vecs.misfit());
        }
        let rows = usize::try_from(vecs.source.len() / record).map_err(|_| Error::Limit {
            what: format!("{}: rows", vecs.name()),
            requested: vecs.source.len() / record,
            max: usize::MAX as u64,
        })?;
        Ok(Self { rows, ..vecs })
    }

    /// Bytes of one record.
    fn record(&self) -> u64 {
        HEAD as u64 + self.cols as u64 * self.value_bytes()
    }

    fn value_bytes(&self) -> u64 {
        match self.values {
            Values::F32 => 4,
            Values::U8 => 1,
        }
    }

    /// Finds the record that explains why the file is not a whole number of records.
    fn misfit(&self) -> Error {
        let whole = self.source.len() / self.record();
        for row in 0..=whole {
            let position = row * self.record();
            match columns(&self.source, position, row) {
                Ok(cols) if u64::from(cols) != self.cols as u64 => return self.inconsistent(row, i64::from(cols)),
                Ok(_) => {}
                Err(error) => return error,
            }
        }
        let found = self.source.len() - whole * self.record();
        self.source.format(
            format!("record {whole}"),
            format!("{} bytes ({} columns)", self.record(), self.cols),
            format!("{found}: the file is truncated"),
        )
    }

    fn inconsistent(&self, row: u64, found: i64) -> Error {
        self.source.format(format!("record {row}"), format!("{} columns, as in record 0", self.cols), found.to_string())
    }

    fn check(&self, row: usize, head: i32) -> Result<(), Error> {
        if usize::try_from(head) == Ok(self.cols) { Ok(()) } else { Err(self.inconsistent(row as u64, head.into())) }
    }
}

/// The number of columns that a record says it has.
fn columns(source: &Source, position: u64, row: u64) -> Result<u32, Error> {
    let available = source.len() - position;
    if available < HEAD as u64 {
        return Err(source.format(
            format!("record {row}"),
            "its number of columns, 4 bytes",
            format!("{available}: the file is truncated"),
        ));
    }
    let mut head = [0; HEAD];
    source.read_exact_at(&mut head, position)?;
    let cols = i32::from_le_bytes(head);
    u32::try_from(cols)
        .ok()
        .filter(|&cols| cols > 0)
        .ok_or_else(|| source.format(format!("record {row}"), "a number of columns above 0", cols.to_string()))
}

impl Rows for Vecs {
    fn rows(&self) -> usize {
        self.rows
    }

    fn cols(&self) -> usize {
        self.cols
    }

    fn name(&self) -> String {
        self.source.path().display().to_string()
    }

    fn block<'a>(&'a self, first: usize, count: usize, scratch: &'a mut Vec<f32>) -> Result<&'a [f32], Error> {
        debug_assert!(first <= self.rows && count <= self.rows - first, "rows {first} + {count} of {}", self.rows);
        let cols = self.cols;
        let position = first as u64 * self.record();
        match self.values {
            Values::F32 => {
                // Heads included, then each row moves to its place.
                scratch.resize(count * (cols + 1), 0.0);
                self.source.read_exact_at(bytemuck::cast_slice_mut(scratch), position)?;
                for row in 0..count {
                    let head = row * (cols + 1);
                    self.check(first + row, i32::from_le_bytes(bytemuck::cast(scratch[head])))?;
                    scratch.copy_within(head + 1..head + 1 + cols, row * cols);
                }
                scratch.truncate(count * cols);
                if cfg!(target_endian = "big") {
                    scratch.iter_mut().for_each(|value| *value = f32::from_bits(value.to_bits().swap_bytes()));
                }
            }
            Values::U8 => {
                let record = HEAD + cols;
                let mut bytes = vec![0; record * (PIECE / record).clamp(1, count.max(1))];
                let at_a_time = bytes.len() / record;
                scratch.resize(count * cols, 0.0);
                for start in (0..count).step_by(at_a_time) {
                    let rows = at_a_time.min(count - start);
                    let bytes = &mut bytes[..rows * record];
                    self.source.read_exact_at(bytes, position + (start * record) as u64)?;
                    for (row, bytes) in bytes.chunks_exact(record).enumerate() {
                        let (head, bytes) = bytes.split_at(HEAD);
                        self.check(first + start + row, i32::from_le_bytes([head[0], head[1], head[2], head[3]]))?;
                        let values = &mut scratch[(start + row) * cols..][..cols];
                        values.iter_mut().zip(bytes).for_each(|(value, &byte)| *value = f32::from(byte));
                    }
                }
            }
        }
        Ok(scratch)
    }
}
