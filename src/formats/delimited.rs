//! Matrices as text: .csv (commas) and .tsv (tabs), one row a line. They are read whole: text has no positions.
//!
//! A first line without any number is a header. So is `0,1,2,...`, the names that pandas gives unnamed columns; the note
//! says so.

use super::text::{self, quote};
use crate::data::{Matrix, Rows};
use crate::error::Error;
use csv::ByteRecord;
use std::io::BufRead;
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// A matrix read from text.
pub(super) struct Delimited {
    path: PathBuf,
    matrix: Matrix,
}

/// Reads all of it; the note says what was assumed about its first line, where that is not plain.
pub(super) fn open(path: &Path, delimiter: u8) -> Result<(Delimited, Option<String>), Error> {
    let (matrix, note) = read(path, delimiter)?;
    Ok((Delimited { path: text::named(path), matrix }, note))
}

/// As [`open`], with values of any type.
pub(super) fn read<T: bytemuck::Pod + FromStr>(
    path: &Path,
    delimiter: u8,
) -> Result<(Matrix<T>, Option<String>), Error> {
    let mut reader = text::open(path)?;
    let path = text::named(path);
    let mut table = Table { path: &path, line: 0, width: None, values: Vec::new() };
    let mut note = None;
    let mut bytes = Vec::new();
    let mut record = ByteRecord::new();
    loop {
        bytes.clear();
        if reader.read_until(b'\n', &mut bytes).map_err(|error| Error::file(&path, error))? == 0 {
            break;
        }
        table.line += 1;
        let mut line = bytes.as_slice();
        if table.line == 1 {
            line = line.strip_prefix("\u{feff}".as_bytes()).unwrap_or(line);
        }
        let line = line.strip_suffix(b"\n").unwrap_or(line);
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        if line.trim_ascii().is_empty() {
            continue;
        }
        split(line, delimiter, &mut record);
        if table.width.is_some() {
            table.push(&record)?;
            continue;
        }
        table.width = Some(record.len());
        match header(&record) {
            Header::No => table.push(&record)?,
            Header::Names if record[0].trim_ascii().is_empty() => {
                let found = "an empty field (is it a column of row numbers? leave it out)";
                return Err(table.format(1, "a name or a number", found));
            }
            Header::Names => {}
            Header::Counting => {
                let said = "(0, 1, 2, ...) is taken as the names of the columns, not as a row";
                note = Some(format!("{}: line {} {said}", path.display(), table.line));
            }
        }
    }
    let Table { width, values, .. } = table;
    let cols = width.unwrap_or(0);
    let matrix = Matrix::new(values.len().checked_div(cols).unwrap_or(0), cols, values)?;
    Ok((matrix, note))
}

/// The fields of one line. The lines are told apart here and not by the csv reader, which does not count blank ones.
fn split(line: &[u8], delimiter: u8, record: &mut ByteRecord) {
    record.clear();
    if line.contains(&b'"') {
        let mut reader = csv::ReaderBuilder::new()
            .has_headers(false)
            .delimiter(delimiter)
            .buffer_capacity(line.len())
            .from_reader(line);
        // Reading from memory cannot fail, and one record cannot differ in length from another.
        if let Ok(true) = reader.read_byte_record(record) {
            return;
        }
    }
    line.split(|&byte| byte == delimiter).for_each(|field| record.push_field(field));
}

struct Table<'a, T> {
    path: &'a Path,
    line: u64,
    width: Option<usize>,
    values: Vec<T>,
}

impl<T: FromStr> Table<'_, T> {
    fn push(&mut self, record: &ByteRecord) -> Result<(), Error> {
        let width = self.width.unwrap_or(record.len());
        if record.len() != width {
            return Err(Error::format(
                self.path,
                format!("line {}", self.line),
                format!("{width} fields, as in the first line"),
                record.len().to_string(),
            ));
        }
        for (column, field) in record.iter().enumerate() {
            let value = number(field).ok_or_else(|| {
                let found = if field.trim_ascii().is_empty() { "an empty field".into() } else { quote(field) };
                self.format(column + 1, "a number", found)
            })?;
            self.values.push(value);
        }
        Ok(())
    }

    fn format(&self, column: usize, expected: &str, found: impl Into<String>) -> Error {
        Error::format(self.path, format!("line {}, column {column}", self.line), expected, found)
    }
}

enum Header {
    No,
    Names,
    Counting,
}

fn header(record: &ByteRecord) -> Header {
    if record.iter().all(|field| number::<f32>(field).is_none()) {
        Header::Names
    } else if record.len() > 1
        && record.iter().enumerate().all(|(column, field)| field.trim_ascii() == column.to_string().as_bytes())
    {
        Header::Counting
    } else {
        Header::No
    }
}

fn number<T: FromStr>(field: &[u8]) -> Option<T> {
    std::str::from_utf8(field.trim_ascii()).ok()?.parse().ok()
}

impl Rows for Delimited {
    fn rows(&self) -> usize {
        self.matrix.rows()
    }

    fn cols(&self) -> usize {
        self.matrix.cols()
    }

    fn name(&self) -> String {
        self.path.display().to_string()
    }

    fn block<'a>(&'a self, first: usize, count: usize, scratch: &'a mut Vec<f32>) -> Result<&'a [f32], Error> {
        self.matrix.block(first, count, scratch)
    }
}
