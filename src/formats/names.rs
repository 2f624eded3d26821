//! [`Names`]: what rows are called, one name a line.

use super::text;
use crate::error::Error;
use std::io::BufRead;
use std::path::Path;

/// The names of rows: in one piece of memory, UTF-8 checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Names {
    text: String,
    ends: Vec<usize>,
}

impl Names {
    /// Reads one name a line; of a `.tsv` (compressed or not) the first column. `-` is stdin.
    ///
    /// # Errors
    /// [`Error::File`], or [`Error::Format`] with the line that is not UTF-8.
    pub fn read(path: &Path) -> Result<Self, Error> {
        let first_column = super::extension(path).is_some_and(|extension| extension == "tsv");
        Self::read_fields(path, first_column.then_some(0))
    }

    /// Reads one column, counted from 0, of lines whose fields are separated by tabs. `-` is stdin.
    ///
    /// # Errors
    /// [`Error::File`], or [`Error::Format`] with the line that has no such column, or is not UTF-8 there.
    pub fn read_column(path: &Path, column: usize) -> Result<Self, Error> {
        Self::read_fields(path, Some(column))
    }

    /// Reads whole lines, whatever the file is called. `-` is stdin.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub fn read_lines(path: &Path) -> Result<Self, Error> {
        Self::read_fields(path, None)
    }

    /// The field of each line, or, for none, the whole line.
    fn read_fields(path: &Path, field: Option<usize>) -> Result<Self, Error> {
        let mut reader = text::open(path)?;
        let path = text::named(path);
        let mut names = Self { text: String::new(), ends: Vec::new() };
        let mut line = Vec::new();
        loop {
            line.clear();
            if reader.read_until(b'\n', &mut line).map_err(|error| Error::file(&path, error))? == 0 {
                return Ok(names);
            }
            let mut name = line.strip_suffix(b"\n").unwrap_or(&line);
            name = name.strip_suffix(b"\r").unwrap_or(name);
            if names.is_empty() {
                name = name.strip_prefix("\u{feff}".as_bytes()).unwrap_or(name);
            }
            let position = || format!("line {}", names.len() + 1);
            if let Some(field) = field {
                let mut fields = name.split(|&byte| byte == b'\t');
                name = fields.nth(field).ok_or_else(|| {
                    let found = name.split(|&byte| byte == b'\t').count();
                    let expected = format!("at least {} columns, separated by tabs", field + 1);
                    Error::format(&path, position(), expected, found.to_string())
                })?;
            }
            let name = std::str::from_utf8(name).map_err(|_| {
                let found = format!("\"{}\"", name[..name.len().min(40)].escape_ascii());
                Error::format(&path, position(), "UTF-8", found)
            })?;
            names.text.push_str(name);
            names.ends.push(names.text.len());
        }
    }

    /// Number of names.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there is no name.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// The name of a row. Panics if there is no such row.
    pub fn get(&self, row: usize) -> &str {
        let start = row.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.text[start..self.ends[row]]
    }

    /// All rows of this name.
    pub fn rows_named<'a>(&'a self, name: &'a str) -> impl Iterator<Item = usize> + 'a {
        self.iter().enumerate().filter(move |(_, other)| *other == name).map(|(row, _)| row)
    }

    /// At most `count` different names that begin as `name` does, the longest common beginning first, then the
    /// shortest; for messages.
    /// A common beginning counts from 3 letters on, upper and lower case alike.
    pub fn similar(&self, name: &str, count: usize) -> Vec<&str> {
        let name = name.to_lowercase();
        let common = |other: &str| name.chars().zip(other.to_lowercase().chars()).take_while(|(a, b)| a == b).count();
        let mut similar: Vec<_> = self.iter().map(|other| (common(other), other)).filter(|(n, _)| *n >= 3).collect();
        similar.sort_by_key(|(common, other)| (std::cmp::Reverse(*common), other.len(), *other));
        similar.dedup();
        similar.into_iter().take(count).map(|(_, other)| other).collect()
    }

    /// All names in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &str> {
        (0..self.len()).map(|row| self.get(row))
    }
}
