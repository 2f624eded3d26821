//! The header of a .npy file: a Python dictionary literal with three keys.
//!
//! Read by a small parser of our own. The header comes from strangers: its length is bounded before anything is
//! allocated, its nesting before anything recurses, and its sizes are multiplied with care.

use super::source::Source;
use crate::error::Error;
use std::io::{self, Read};

/// The longest header that is read; numpy itself refuses more than 10,000 bytes.
const LONGEST: u32 = 65_536;
/// The deepest nesting of tuples, lists and dictionaries that is followed.
const DEEPEST: usize = 8;
const MAGIC: &[u8; 6] = b"\x93NUMPY";

/// How an array is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Number {
    F16,
    F32,
    F64,
    U8,
    I8,
}

impl Number {
    pub(super) fn bytes(self) -> usize {
        match self {
            Self::U8 | Self::I8 => 1,
            Self::F16 => 2,
            Self::F32 => 4,
            Self::F64 => 8,
        }
    }
}

/// A checked header: the file is as long as it says, and all positions fit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) number: Number,
    pub(super) big_endian: bool,
    pub(super) fortran_order: bool,
    pub(super) rows: usize,
    pub(super) cols: usize,
    /// Where the data begins.
    pub(super) start: u64,
}

/// Reads and checks the header of a matrix.
pub(super) fn read(source: &Source) -> Result<Header, Error> {
    let (text, start) = text(source)?;
    interpret(source, &text, start)
}

/// The header's text, and where the data begins.
fn text(source: &Source) -> Result<(String, u64), Error> {
    let mut fixed = [0; 12];
    let available = usize::try_from(source.len()).map_or(fixed.len(), |len| len.min(fixed.len()));
    source.read_exact_at(&mut fixed[..available], 0)?;
    if available == 0 {
        return Err(source.format("byte 0", "a .npy array", "an empty file"));
    }
    if available < 6 || fixed[..6] != *MAGIC {
        return Err(source.format(
            "byte 0",
            "the start of a .npy file, \\x93NUMPY",
            format!("\"{}\"", fixed[..available.min(6)].escape_ascii()),
        ));
    }
    let cut = |wanted: u64| {
        source.format(
            format!("byte {}", source.len()),
            format!("a header of {wanted} bytes"),
            "the end of the file: it is truncated",
        )
    };
    if available < 10 {
        return Err(cut(10));
    }
    let (text_start, text_len) = match (fixed[6], fixed[7]) {
        (1, 0) => (10_u64, u32::from(u16::from_le_bytes([fixed[8], fixed[9]]))),
        (2 | 3, 0) if available < 12 => return Err(cut(12)),
        (2 | 3, 0) => (12, u32::from_le_bytes([fixed[8], fixed[9], fixed[10], fixed[11]])),
        (major, minor) => {
            return Err(source.format("byte 6", ".npy version 1.0, 2.0 or 3.0", format!("{major}.{minor}")));
        }
    };
    if text_len > LONGEST {
        return Err(source.format(
            "byte 8",
            format!("a header of at most {LONGEST} bytes"),
            format!("{text_len} bytes"),
        ));
    }
    let start = text_start + u64::from(text_len);
    if start > source.len() {
        return Err(cut(start));
    }
    let mut text = vec![0; text_len as usize];
    source.read_exact_at(&mut text, text_start)?;
    Ok((String::from_utf8_lossy(&text).into_owned(), start))
}

/// The three entries of a header as they stand: `descr`, `fortran_order`, `shape`.
fn entries(source: &Source, text: &str) -> Result<(Literal, bool, Literal), Error> {
    let literal = Parser { rest: text }
        .document()
        .ok_or_else(|| source.format("header", "a Python dictionary", format!("{:?}", shorten(text.trim_end()))))?;
    let Literal::Dict(entries) = literal else {
        return Err(source.format("header", "a Python dictionary", format!("{:?}", shorten(text.trim_end()))));
    };
    let entry = |key: &str| {
        let found = entries.iter().find(|(name, _)| matches!(name, Literal::Text(name) if name == key));
        found
            .map(|(_, value)| value.clone())
            .ok_or_else(|| source.format("header", format!("an entry '{key}'"), "none"))
    };
    let descr = entry("descr")?;
    let fortran_order = match entry("fortran_order")? {
        Literal::Bool(value) => value,
        other => return Err(source.format("header, fortran_order", "True or False", other.describe())),
    };
    Ok((descr, fortran_order, entry("shape")?))
}

fn interpret(source: &Source, text: &str, start: u64) -> Result<Header, Error> {
    let (descr, fortran_order, sizes) = entries(source, text)?;
    let (number, big_endian) = dtype(source, &descr)?;
    let (rows, cols) = shape(source, &sizes)?;
    let overflow = || {
        source.format(
            "header, shape",
            "a size that a file can have",
            format!("{rows} x {cols} values of {} bytes", number.bytes()),
        )
    };
    let expected = rows.checked_mul(cols).and_then(|values| values.checked_mul(number.bytes() as u64));
    let expected = expected.filter(|bytes| bytes.checked_add(start).is_some()).ok_or_else(overflow)?;
    let found = source.len() - start;
    if found < expected {
        return Err(source.format(
            format!("byte {}", source.len()),
            format!("{expected} bytes of data ({rows} x {cols} values of {} bytes)", number.bytes()),
            format!("{found}: the file is truncated"),
        ));
    }
    if found > expected {
        return Err(source.format(
            format!("byte {}", start + expected),
            format!("the end of the file after {rows} x {cols} values of {} bytes", number.bytes()),
            format!("{} more bytes", found - expected),
        ));
    }
    let (Ok(rows), Ok(cols)) = (usize::try_from(rows), usize::try_from(cols)) else { return Err(overflow()) };
    Ok(Header { number, big_endian, fortran_order, rows, cols, start })
}

fn dtype(source: &Source, descr: &Literal) -> Result<(Number, bool), Error> {
    let refuse = |found: String| {
        source.format("header, descr", "numbers of type float32, float16, float64, uint8 or int8", found)
    };
    let text = match descr {
        Literal::Text(text) => text,
        Literal::List(_) => return Err(refuse("a structured type".into())),
        other => return Err(refuse(other.describe())),
    };
    let (order, kind) = text.split_at_checked(1).unwrap_or(("", ""));
    let number = match kind {
        "f2" => Number::F16,
        "f4" => Number::F32,
        "f8" => Number::F64,
        "u1" => Number::U8,
        "i1" => Number::I8,
        _ => {
            return Err(refuse(format!("'{}' ({})", shorten(text), meaning(kind))));
        }
    };
    match order {
        "<" | ">" => Ok((number, order == ">")),
        // For one byte there is no order; "=" is what some writers other than numpy put for their own machine's.
        "|" if number.bytes() == 1 => Ok((number, false)),
        "=" => Ok((number, cfg!(target_endian = "big"))),
        _ => Err(refuse(format!("'{}' (no byte order)", shorten(text)))),
    }
}

/// What a type that is not read is called.
fn meaning(kind: &str) -> &'static str {
    match kind.as_bytes().first() {
        Some(b'O') => "Python objects",
        Some(b'c') => "complex numbers",
        Some(b'i' | b'u') => "integers",
        Some(b'b') => "booleans",
        Some(b'f') => "floats of another size",
        Some(b'U' | b'S' | b'a') => "strings",
        Some(b'm' | b'M') => "times",
        Some(b'V') => "raw bytes",
        _ => "an unknown type",
    }
}

/// The type of an array that is part of something; sizes in bytes, for `Unicode` in characters of 4.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Bool,
    Int(usize),
    Uint(usize),
    Float(usize),
    Bytes(usize),
    Unicode(usize),
}

impl Kind {
    pub(super) fn bytes(self) -> usize {
        match self {
            Self::Bool => 1,
            Self::Int(bytes) | Self::Uint(bytes) | Self::Float(bytes) | Self::Bytes(bytes) => bytes,
            Self::Unicode(characters) => 4 * characters,
        }
    }

    pub(super) fn describe(self) -> &'static str {
        match self {
            Self::Bool => "booleans",
            Self::Int(_) | Self::Uint(_) => "integers",
            Self::Float(_) => "floats",
            Self::Bytes(_) | Self::Unicode(_) => "strings",
        }
    }
}

/// The header of an array of any number of dimensions; whether the data are as long as it says is for the caller to check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ArrayHeader {
    pub(super) kind: Kind,
    pub(super) big_endian: bool,
    pub(super) fortran_order: bool,
    pub(super) shape: Vec<u64>,
    /// Where the data begins.
    pub(super) start: u64,
}

/// The bytes up to the data, or as many as there are; nothing beyond them is read.
pub(super) fn head(reader: &mut impl Read) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    reader.by_ref().take(10).read_to_end(&mut bytes)?;
    if bytes.len() < 10 || bytes[..6] != *MAGIC {
        return Ok(bytes);
    }
    let mut length = u64::from(u16::from_le_bytes([bytes[8], bytes[9]]));
    if bytes[6] != 1 {
        reader.by_ref().take(2).read_to_end(&mut bytes)?;
        let Some(high) = bytes.get(10..12) else { return Ok(bytes) };
        length += u64::from(u16::from_le_bytes([high[0], high[1]])) << 16;
    }
    reader.by_ref().take(length.min(LONGEST.into())).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Reads the header of an array from what [`head`] gave.
pub(super) fn read_array(source: &Source) -> Result<ArrayHeader, Error> {
    let (text, start) = text(source)?;
    let (descr, fortran_order, sizes) = entries(source, &text)?;
    let refuse = |found: String| source.format("header, descr", "numbers or a text", found);
    let Literal::Text(name) = &descr else {
        let structured = matches!(descr, Literal::List(_));
        return Err(refuse(if structured { "a structured type".into() } else { descr.describe() }));
    };
    let (order, rest) = name.split_at_checked(1).unwrap_or(("", ""));
    let (letter, size) = rest.split_at_checked(1).unwrap_or(("", ""));
    let size = size.parse().ok().filter(|&size: &usize| size <= LONGEST as usize).unwrap_or(usize::MAX);
    let kind = match (letter, size) {
        ("b", 1) => Kind::Bool,
        ("i", 1 | 2 | 4 | 8) => Kind::Int(size),
        ("u", 1 | 2 | 4 | 8) => Kind::Uint(size),
        ("f", 2 | 4 | 8) => Kind::Float(size),
        ("S", ..=64) => Kind::Bytes(size),
        ("U", ..=64) => Kind::Unicode(size),
        ("O", _) => return Err(refuse(format!("'{}' (Python objects: a pickle, which can run code)", shorten(name)))),
        _ => return Err(refuse(format!("'{}' ({})", shorten(name), meaning(rest)))),
    };
    let big_endian = match order {
        "<" => false,
        ">" => true,
        "|" if kind.bytes() == 1 || matches!(kind, Kind::Bytes(_)) => false,
        "=" => cfg!(target_endian = "big"),
        _ => return Err(refuse(format!("'{}' (no byte order)", shorten(name)))),
    };
    let bad_shape = || source.format("header, shape", "whole numbers", sizes.describe());
    let (Literal::Tuple(lengths) | Literal::List(lengths)) = &sizes else { return Err(bad_shape()) };
    let length = |length: &Literal| if let Literal::Int(length) = length { Some(*length) } else { None };
    let shape = lengths.iter().map(length).collect::<Option<Vec<_>>>().ok_or_else(bad_shape)?;
    Ok(ArrayHeader { kind, big_endian, fortran_order, shape, start })
}

fn shape(source: &Source, shape: &Literal) -> Result<(u64, u64), Error> {
    let refuse = |found| source.format("header, shape", "2 dimensions, (rows, columns)", found);
    let (Literal::Tuple(items) | Literal::List(items)) = shape else { return Err(refuse(shape.describe())) };
    match items.as_slice() {
        [Literal::Int(rows), Literal::Int(cols)] => Ok((*rows, *cols)),
        [_, _] => Err(source.format("header, shape", "two whole numbers", shape.describe())),
        _ => Err(refuse(format!("{}: {}", items.len(), shape.describe()))),
    }
}

/// What a literal can be, as far as headers need it.
#[derive(Debug, Clone, PartialEq)]
enum Literal {
    Text(String),
    Int(u64),
    Bool(bool),
    None,
    Tuple(Vec<Literal>),
    List(Vec<Literal>),
    Dict(Vec<(Literal, Literal)>),
}

impl Literal {
    fn describe(&self) -> String {
        let list = |items: &[Self]| items.iter().map(Self::describe).collect::<Vec<_>>().join(", ");
        let text = match self {
            Self::Text(text) => format!("'{text}'"),
            Self::Int(value) => value.to_string(),
            Self::Bool(true) => "True".into(),
            Self::Bool(false) => "False".into(),
            Self::None => "None".into(),
            Self::Tuple(items) if items.len() == 1 => format!("({},)", list(items)),
            Self::Tuple(items) => format!("({})", list(items)),
            Self::List(items) => format!("[{}]", list(items)),
            Self::Dict(_) => "a dictionary".into(),
        };
        shorten(&text)
    }
}

/// At most 60 characters, so that a message stays one readable line.
fn shorten(text: &str) -> String {
    match text.char_indices().nth(60) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text.to_owned(),
    }
}

/// Recursive descent over a Python literal; `None` wherever it is not one.
struct Parser<'a> {
    rest: &'a str,
}

impl Parser<'_> {
    fn document(mut self) -> Option<Literal> {
        let value = self.value(0)?;
        // The padding that aligns the data.
        self.rest.trim_matches(['\0', ' ', '\n', '\r', '\t']).is_empty().then_some(value)
    }

    fn value(&mut self, depth: usize) -> Option<Literal> {
        if depth > DEEPEST {
            return None;
        }
        self.rest = self.rest.trim_start();
        for (word, value) in [("True", Literal::Bool(true)), ("False", Literal::Bool(false)), ("None", Literal::None)] {
            if let Some(rest) = self.rest.strip_prefix(word) {
                self.rest = rest;
                return Some(value);
            }
        }
        match self.rest.chars().next()? {
            quote @ ('\'' | '"') => self.text(quote).map(Literal::Text),
            '0'..='9' => self.int(),
            '(' => self.parenthesis(depth),
            '[' => self.items(depth, ']').map(|(items, _)| Literal::List(items)),
            '{' => self.dict(depth),
            _ => None,
        }
    }

    fn text(&mut self, quote: char) -> Option<String> {
        let mut text = String::new();
        let mut characters = self.rest.char_indices().skip(1);
        while let Some((position, character)) = characters.next() {
            match character {
                // Only names of fields can hold escapes, and files with fields are refused: the letter itself will do.
                '\\' => text.push(characters.next()?.1),
                end if end == quote => {
                    self.rest = &self.rest[position + 1..];
                    return Some(text);
                }
                other => text.push(other),
            }
        }
        None
    }

    fn int(&mut self) -> Option<Literal> {
        let end = self.rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(self.rest.len());
        let (digits, rest) = self.rest.split_at(end);
        // Python 2 wrote long integers as `20L`.
        self.rest = rest.strip_prefix('L').unwrap_or(rest);
        // A number beyond u64 is no size that a file can have; the largest u64 is refused as that further on.
        Some(Literal::Int(digits.parse().unwrap_or(u64::MAX)))
    }

    fn parenthesis(&mut self, depth: usize) -> Option<Literal> {
        let (mut items, comma) = self.items(depth, ')')?;
        if items.len() == 1 && !comma { items.pop() } else { Some(Literal::Tuple(items)) }
    }

    /// Items up to the closing bracket, and whether a comma came last.
    fn items(&mut self, depth: usize, close: char) -> Option<(Vec<Literal>, bool)> {
        let mut items = Vec::new();
        let mut comma = true;
        self.rest = &self.rest[1..];
        loop {
            if self.take(close) {
                return Some((items, comma));
            }
            if !comma {
                return None;
            }
            items.push(self.value(depth + 1)?);
            comma = self.take(',');
        }
    }

    fn dict(&mut self, depth: usize) -> Option<Literal> {
        let mut entries = Vec::new();
        let mut comma = true;
        self.rest = &self.rest[1..];
        loop {
            if self.take('}') {
                return Some(Literal::Dict(entries));
            }
            if !comma {
                return None;
            }
            let key = self.value(depth + 1)?;
            if !self.take(':') {
                return None;
            }
            entries.push((key, self.value(depth + 1)?));
            comma = self.take(',');
        }
    }

    fn take(&mut self, character: char) -> bool {
        self.rest = self.rest.trim_start();
        self.rest.strip_prefix(character).map(|rest| self.rest = rest).is_some()
    }
}

/// The bytes before the data of a C-order matrix, in version 1.0, padded so that the data begins at a multiple of 64.
pub(super) fn write(descr: &str, rows: usize, cols: usize) -> Vec<u8> {
    write_array(descr, &format!("({rows}, {cols})"))
}

/// As [`write`], for any shape, given as Python writes it.
pub(super) fn write_array(descr: &str, shape: &str) -> Vec<u8> {
    let mut text = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}");
    let unpadded = 10 + text.len() + 1;
    text.extend(std::iter::repeat_n(' ', unpadded.next_multiple_of(64) - unpadded));
    text.push('\n');
    let mut bytes = MAGIC.to_vec();
    bytes.extend([1, 0]);
    bytes.extend(u16::try_from(text.len()).unwrap_or(u16::MAX).to_le_bytes());
    bytes.extend(text.as_bytes());
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Option<Literal> {
        Parser { rest: text }.document()
    }

    #[test]
    fn literals_are_read_as_python_reads_them() {
        use Literal::{Bool, Dict, Int, List, Text, Tuple};
        assert_eq!(parse("()"), Some(Tuple(vec![])));
        assert_eq!(parse("(3)"), Some(Int(3)));
        assert_eq!(parse("(3,)"), Some(Tuple(vec![Int(3)])));
        assert_eq!(parse(" ( 3L , 40 ) \n"), Some(Tuple(vec![Int(3), Int(40)])));
        assert_eq!(
            parse(r#"{"a'": [True,], 'b': 'x\'y'}"#),
            Some(Dict(vec![(Text("a'".into()), List(vec![Bool(true)])), (Text("b".into()), Text("x'y".into())),]))
        );
        for broken in ["", "(", "(,)", "(1 2)", "{'a' 1}", "{'a': }", "'a", "'a\\", "-1", "1.5", "{}x", "Truth", "[1)"]
        {
            assert_eq!(parse(broken), None, "{broken}");
        }
    }

    #[test]
    fn deep_nesting_and_long_numbers_end_well() {
        assert_eq!(parse(&"(".repeat(60_000)), None);
        assert_eq!(parse(&"[[".repeat(20)), None);
        assert_eq!(parse(&"9".repeat(60_000)), Some(Literal::Int(u64::MAX)));
    }
}
