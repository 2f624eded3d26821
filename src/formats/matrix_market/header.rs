//! The banner and the size line.

use super::super::text::quote;
use crate::error::Error;
use std::io::{BufRead, Read};
use std::path::{Path, PathBuf};

/// The longest line that is read; what has none of these ends in that many bytes is not text.
pub(super) const LONGEST_LINE: usize = 1 << 20;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Layout {
    Coordinate,
    Array,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Field {
    Real,
    Integer,
    Pattern,
}

impl Field {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Real => "real",
            Self::Integer => "integer",
            Self::Pattern => "pattern",
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Symmetry {
    General,
    Symmetric,
    Skew,
}

impl Symmetry {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::General => "general",
            Self::Symmetric => "symmetric",
            Self::Skew => "skew-symmetric",
        }
    }
}

/// What a Matrix Market file holds, as its first line says: layout, field and symmetry. From text it is read as it stands in
/// that line, e.g. `coordinate real general`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Banner {
    pub(super) layout: Layout,
    pub(super) field: Field,
    pub(super) symmetry: Symmetry,
}

impl std::str::FromStr for Banner {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let text = text.to_ascii_lowercase();
        let words: Vec<_> = text.split_ascii_whitespace().map(str::as_bytes).collect();
        let [layout, field, symmetry] = words[..] else {
            return Err("expected a layout, a field and a symmetry, e.g. \"coordinate real general\"".into());
        };
        interpret(layout, field, symmetry).map_err(|(expected, found)| format!("expected {expected}, found {found}"))
    }
}

impl std::fmt::Display for Banner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let layout = if self.layout == Layout::Coordinate { "coordinate" } else { "array" };
        write!(f, "{layout} {} {}", self.field.name(), self.symmetry.name())
    }
}

impl Banner {
    pub(super) fn check_square<R: BufRead>(&self, lines: &Lines<R>, rows: u64, cols: u64) -> Result<(), Error> {
        if self.symmetry == Symmetry::General || rows == cols {
            return Ok(());
        }
        let expected = format!("as many columns as rows (the matrix is {})", self.symmetry.name());
        Err(lines.error(expected, format!("{rows} x {cols}")))
    }
}

/// A text and how far it has been read.
pub(super) struct Lines<R> {
    path: PathBuf,
    reader: R,
    line: u64,
    bytes: Vec<u8>,
    /// Whether the line read last is still to be taken for what it says.
    again: bool,
}

impl<R: BufRead> Lines<R> {
    pub(super) fn new(path: &Path, reader: R) -> Self {
        Self { path: path.to_owned(), reader, line: 0, bytes: Vec::new(), again: false }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// The number of the line read last, from 1 on.
    pub(super) fn line(&self) -> u64 {
        self.line
    }

    pub(super) fn reader(&mut self) -> &mut R {
        &mut self.reader
    }

    /// An error about the line read last.
    pub(super) fn error(&self, expected: impl Into<String>, found: impl Into<String>) -> Error {
        Error::format(&self.path, format!("line {}", self.line.max(1)), expected, found)
    }

    /// Reads the next line, without its end; false at the end of the text.
    fn read(&mut self) -> Result<bool, Error> {
        if std::mem::take(&mut self.again) {
            return Ok(true);
        }
        self.bytes.clear();
        let limit = LONGEST_LINE as u64 + 1;
        let count = self.reader.by_ref().take(limit).read_until(b'\n', &mut self.bytes);
        if count.map_err(|error| Error::file(&self.path, error))? == 0 {
            return Ok(false);
        }
        self.line += 1;
        if self.bytes.len() > LONGEST_LINE {
            return Err(self.error(format!("lines of at most {LONGEST_LINE} bytes"), "a longer one: is it text?"));
        }
        Ok(true)
    }
}

/// Reads the first line. Where it is no banner, what is assumed holds, and the line is one that follows a banner.
pub(super) fn banner<R: BufRead>(lines: &mut Lines<R>, assume: Option<Banner>) -> Result<Banner, Error> {
    const EXPECTED: &str =
        "%%MatrixMarket matrix coordinate|array real|integer|pattern general|symmetric|skew-symmetric";
    if !lines.read()? {
        return Err(lines.error(EXPECTED, "an empty file"));
    }
    let line = lines.bytes.strip_prefix("\u{feff}".as_bytes()).unwrap_or(&lines.bytes).trim_ascii();
    let lower = line.to_ascii_lowercase();
    let words: Vec<_> = lower.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty()).collect();
    if let Some(assumed) = assume
        && words.first() != Some(&&b"%%matrixmarket"[..])
    {
        lines.bytes = line.to_vec();
        lines.again = true;
        return Ok(assumed);
    }
    let [b"%%matrixmarket", object, layout, field, symmetry] = words[..] else {
        return Err(lines.error(EXPECTED, quote(line)));
    };
    if object != b"matrix" {
        return Err(lines.error("a matrix", quote(object)));
    }
    let banner = interpret(layout, field, symmetry).map_err(|(expected, found)| lines.error(expected, found))?;
    match assume.filter(|&assumed| assumed != banner) {
        Some(assumed) => Err(lines.error(format!("{assumed}, as was to be assumed"), quote(line))),
        None => Ok(banner),
    }
}

/// The last three words of a banner, in lower case; or what was expected and found.
fn interpret(layout: &[u8], field: &[u8], symmetry: &[u8]) -> Result<Banner, (&'static str, String)> {
    let refuse = |expected: &'static str, word: &[u8], reason: &str| {
        Err((expected, if reason.is_empty() { quote(word) } else { format!("{}: {reason}", quote(word)) }))
    };
    let layout = match layout {
        b"coordinate" => Layout::Coordinate,
        b"array" => Layout::Array,
        other => return refuse("the layout coordinate or array", other, ""),
    };
    let field = match field {
        b"real" | b"double" => Field::Real,
        b"integer" | b"unsigned-integer" => Field::Integer,
        b"pattern" => Field::Pattern,
        b"complex" => {
            return refuse("the field real, integer or pattern", field, "complex values are not supported");
        }
        other => return refuse("the field real, integer or pattern", other, ""),
    };
    const SYMMETRY: &str = "the symmetry general, symmetric or skew-symmetric";
    let symmetry = match symmetry {
        b"general" => Symmetry::General,
        b"symmetric" => Symmetry::Symmetric,
        b"skew-symmetric" if field == Field::Pattern => {
            return refuse("the symmetry general or symmetric", symmetry, "a pattern has no signs");
        }
        b"skew-symmetric" => Symmetry::Skew,
        b"hermitian" => return refuse(SYMMETRY, symmetry, "it is about complex values, which are not supported"),
        other => return refuse(SYMMETRY, other, ""),
    };
    Ok(Banner { layout, field, symmetry })
}

/// The numbers of the size line, which some programs spread over several.
pub(super) fn size<R: BufRead, const N: usize>(lines: &mut Lines<R>) -> Result<[u64; N], Error> {
    let names = if N == 3 { "rows, columns, entries" } else { "rows, columns" };
    let expected = format!("{N} whole numbers ({names})");
    let mut numbers = [0; N];
    let mut count = 0;
    while count < N {
        if !lines.read()? {
            let found = format!("{count}, then the end of the file: it is truncated");
            return Err(lines.error(expected, found));
        }
        let line = lines.bytes.trim_ascii();
        if line.starts_with(b"%") {
            continue;
        }
        for word in line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty()) {
            let number = std::str::from_utf8(word).ok().filter(|word| !word.starts_with('+'));
            let number = number.and_then(|word| word.parse().ok());
            let (Some(number), true) = (number, count < N) else {
                return Err(lines.error(expected, quote(line)));
            };
            numbers[count] = number;
            count += 1;
        }
    }
    Ok(numbers)
}
