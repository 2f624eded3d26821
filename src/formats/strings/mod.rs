//! Lists of strings: .txt, .csv, .tsv, .jsonl, .fasta, .fastq, each also .gz and .zst.
//!
//! Files are read whole: every string is wanted, and text has no positions. What a string is:
//!
//! - `.txt`, and files without an extension: a line. It ends at LF or CR LF, which are no part of it, or at the end of the
//!   file. An empty line is the empty string; what follows the last line end is a line only if it is not empty.
//! - `.csv`: a field of each record, quoted as in RFC 4180: a quoted field may hold commas, quotes and line ends, and ends
//!   at its closing quote: text after it is an error. Elsewhere than at the start of a field, a quote is a letter. An empty
//!   field is the empty string; a record with fewer or more fields than the first is an error. Blank lines are no records.
//! - `.tsv`: a field of each line. Quotes have no meaning. Blank lines are no records.
//! - `.jsonl`: a field of the object in each line, or the line where it is a JSON string. A field that is missing, null or
//!   no string is an error. Blank lines are skipped.
//! - `.fasta`: the sequence of each record, its lines joined; its name is the first word of the heading. Lines that begin
//!   with `;` are comments; blanks inside a sequence are no symbols.
//! - `.fastq`: the sequence of each record of four lines; its name likewise.
//!
//! A byte order mark (UTF-8) at the start of the file is left out. Bytes are taken as they are; whether they have to be
//! UTF-8 is for the user of the list to say ([`StringList::check_utf8`]).
//!
//! # Columns
//! A column is given by its number, from 1, or by its name. With a name, the first record is the header. With a number, it is
//! a string like the others, unless the reader is told that it is a header. Where there is one column, it need not be given.

mod json_lines;
mod lines;
mod sequences;
mod table;
#[cfg(test)]
mod tests;

use super::{dotted, extension, text};
use crate::data::ByteStrings;
use crate::error::Error;
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// How strings are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StringFormat {
    /// One a line.
    Txt,
    /// Fields between commas.
    Csv,
    /// Fields between tabs.
    Tsv,
    /// One JSON value a line.
    Jsonl,
    /// Sequences of any number of lines, each under its heading.
    Fasta,
    /// Sequences with qualities, four lines each.
    Fastq,
}

impl StringFormat {
    /// All formats.
    pub const ALL: [Self; 6] = [Self::Txt, Self::Csv, Self::Tsv, Self::Jsonl, Self::Fasta, Self::Fastq];

    /// Its name on the command line, which is its extension.
    pub fn name(self) -> &'static str {
        match self {
            Self::Txt => "txt",
            Self::Csv => "csv",
            Self::Tsv => "tsv",
            Self::Jsonl => "jsonl",
            Self::Fasta => "fasta",
            Self::Fastq => "fastq",
        }
    }

    /// Whether a column can be chosen, or a field.
    pub fn has_columns(self) -> bool {
        self.is_table() || self == Self::Jsonl
    }

    /// Whether its first line may be a header.
    pub fn is_table(self) -> bool {
        matches!(self, Self::Csv | Self::Tsv)
    }

    /// The names of all formats, for messages.
    pub fn names() -> String {
        Self::ALL.map(Self::name).join(", ")
    }

    /// The format that the extension of a file says, `.gz` and `.zst` apart. `.txt` says none: it may be anything.
    fn said(path: &Path) -> Option<Self> {
        Some(match extension(path)?.as_str() {
            "csv" => Self::Csv,
            "tsv" => Self::Tsv,
            "jsonl" | "ndjson" => Self::Jsonl,
            "fasta" | "fa" | "fas" | "fna" | "ffn" | "faa" => Self::Fasta,
            "fastq" | "fq" => Self::Fastq,
            _ => return None,
        })
    }

    /// Whether a wanted format counts for this file: its extension does not say another one.
    pub fn is_open(path: &Path) -> bool {
        Self::said(path).is_none()
    }

    /// The format of a file: what its extension says, else the wanted one, else lines for `.txt`, for files without an
    /// extension, and for stdin.
    ///
    /// # Errors
    /// [`Error::Format`] for another extension where no format is wanted.
    pub fn of(path: &Path, wanted: Option<Self>) -> Result<Self, Error> {
        if let Some(format) = Self::said(path).or(wanted) {
            return Ok(format);
        }
        match extension(path) {
            Some(other) if other != "txt" => {
                let expected = format!("one of {} (or name the format with --format)", Self::names());
                Err(Error::format(path, "extension", expected, dotted(&other)))
            }
            _ => Ok(Self::Txt),
        }
    }
}

/// A column, or a field of a JSON object: its number from 1, or its name.
///
/// In JSON it is always a name, and dots go into objects: `author.name`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Column(String);

impl Column {
    /// Of this name, or of this number where it is all digits.
    pub fn new(name: impl Into<String>) -> Self {
        Self(name.into())
    }

    fn number(&self) -> Option<&str> {
        (!self.0.is_empty() && self.0.bytes().all(|byte| byte.is_ascii_digit())).then_some(self.0.as_str())
    }
}

/// How to read a list of strings.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StringOptions {
    /// The format of files whose extension does not say it.
    pub format: Option<StringFormat>,
    /// Whether the first record of a .csv or .tsv is a header even if columns are given by number.
    pub header: bool,
}

/// Strings, and where in a file each of them stands.
#[derive(Debug, Clone)]
pub struct StringList {
    /// The strings, in the order of the file.
    pub strings: ByteStrings,
    /// What they are called, in formats that have names.
    pub names: Option<ByteStrings>,
    /// What the person should know about how they were read, in one line.
    pub note: Option<String>,
    path: PathBuf,
    /// The line of each string; none where string i is line i + 1.
    lines: Option<Arc<Vec<u64>>>,
    column: Option<String>,
}

impl StringList {
    /// The path, as messages call it.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The line, from 1, in which a string stands, or begins.
    pub fn line(&self, index: usize) -> u64 {
        self.lines.as_ref().map_or(index as u64 + 1, |lines| lines[index])
    }

    /// Refuses strings that are not UTF-8.
    ///
    /// # Errors
    /// [`Error::Format`] with the line and the byte; `instead` says what else could be done.
    pub fn check_utf8(&self, instead: &str) -> Result<(), Error> {
        let Some((index, at)) = self.strings.not_utf8() else { return Ok(()) };
        let column = self.column.as_ref().map_or_else(String::new, |column| format!(", {column}"));
        let position = format!("line {}{column}, byte {}", self.line(index), at + 1);
        let found = format!("{:#04x}", self.strings.get(index)[at]);
        Err(Error::format(&self.path, position, format!("UTF-8 ({instead})"), found))
    }
}

/// Reads a list of strings. `-` is stdin. A column is needed where there are several.
///
/// # Errors
/// [`Error::File`], and [`Error::Format`] with path and line.
pub fn read_strings(path: &Path, column: Option<&Column>, options: &StringOptions) -> Result<StringList, Error> {
    let file = File::read(path, options)?;
    if let (Some(column), StringFormat::Txt | StringFormat::Fasta | StringFormat::Fastq) = (column, file.format) {
        return Err(file.without_columns(column));
    }
    let columns: &[Column] = column.map_or(&[], std::slice::from_ref);
    let lists = match file.format {
        StringFormat::Txt => {
            let strings = lines::read(file.bytes)?;
            return Ok(StringList { strings, names: None, note: None, path: file.path, lines: None, column: None });
        }
        StringFormat::Fasta => return sequences::read_fasta(&file),
        StringFormat::Fastq => return sequences::read_fastq(&file),
        StringFormat::Csv | StringFormat::Tsv => table::read(&file, columns, 1, options.header)?,
        StringFormat::Jsonl => json_lines::read(&file, columns, 1)?,
    };
    lists.into_iter().next().ok_or_else(|| Error::argument("columns", "one", "none"))
}

/// Reads two columns, which have as many strings. `-` is stdin. They need not be given where there are two.
///
/// # Errors
/// As [`read_strings`]; formats with one string a record are refused.
pub fn read_string_pairs(
    path: &Path,
    columns: Option<&[Column; 2]>,
    options: &StringOptions,
) -> Result<[StringList; 2], Error> {
    let file = File::read(path, options)?;
    let columns = columns.map_or(&[][..], |columns| &columns[..]);
    let lists = match file.format {
        StringFormat::Csv | StringFormat::Tsv => table::read(&file, columns, 2, options.header)?,
        StringFormat::Jsonl => json_lines::read(&file, columns, 2)?,
        format => {
            let expected = "two strings a line: csv, tsv or jsonl (--format says which, where the extension does not)";
            let found = format!("{}, one string a record", format.name());
            return Err(Error::format(file.path, "format", expected, found));
        }
    };
    lists.try_into().map_err(|_| Error::argument("columns", "two", "another number"))
}

/// A file in memory.
struct File {
    path: PathBuf,
    format: StringFormat,
    /// Without a byte order mark.
    bytes: Vec<u8>,
}

impl File {
    fn read(path: &Path, options: &StringOptions) -> Result<Self, Error> {
        let format = StringFormat::of(path, options.format)?;
        let mut bytes = Vec::new();
        text::open(path)?.read_to_end(&mut bytes).map_err(|error| {
            // Only what decompresses finds these in a file.
            let found = match error.kind() {
                ErrorKind::UnexpectedEof => "the end of the file".to_owned(),
                ErrorKind::InvalidData | ErrorKind::InvalidInput => error.to_string(),
                _ => return Error::file(text::named(path), error),
            };
            let position = format!("byte {} of what it holds", bytes.len() + 1);
            Error::format(text::named(path), position, "whole gzip or zstd data", found)
        })?;
        if bytes.starts_with("\u{feff}".as_bytes()) {
            bytes.drain(..3);
        }
        Ok(Self { path: text::named(path), format, bytes })
    }

    fn error(&self, line: u64, expected: impl Into<String>, found: impl Into<String>) -> Error {
        Error::format(&self.path, format!("line {line}"), expected, found)
    }

    fn without_columns(&self, column: &Column) -> Error {
        let expected = format!("no column, as {} holds one string a record", self.format.name());
        Error::format(&self.path, "column", expected, format!("{:?}", column.0))
    }

    /// As many lists as there are columns, of the same lines.
    fn lists(&self, columns: Vec<(Pool, String)>, lines: Vec<u64>) -> Result<Vec<StringList>, Error> {
        let lines = Some(Arc::new(lines));
        let list = |(pool, column): (Pool, String)| {
            let (strings, lines) = (pool.into_strings()?, lines.clone());
            Ok(StringList { strings, names: None, note: None, path: self.path.clone(), lines, column: Some(column) })
        };
        columns.into_iter().map(list).collect()
    }
}

/// Strings while they are collected.
struct Pool {
    bytes: Vec<u8>,
    offsets: Vec<usize>,
}

impl Pool {
    fn new() -> Self {
        Self { bytes: Vec::new(), offsets: vec![0] }
    }

    fn push(&mut self, string: &[u8]) {
        self.bytes.extend_from_slice(string);
        self.end();
    }

    /// Ends a string that was added piece by piece.
    fn end(&mut self) {
        self.offsets.push(self.bytes.len());
    }

    fn into_strings(self) -> Result<ByteStrings, Error> {
        ByteStrings::new(self.bytes, self.offsets)
    }
}
