//! Columns of .csv and .tsv.

use super::lines::Lines;
use super::{Column, File, Pool, StringFormat, StringList};
use crate::error::Error;
use crate::formats::text::quote;
use memchr::{memchr, memchr_iter, memchr2, memchr3};
use std::io::Read;

/// Reads `count` columns: those that are given, or, where none is, all there are.
pub(super) fn read(file: &File, wanted: &[Column], count: usize, header: bool) -> Result<Vec<StringList>, Error> {
    let mut table =
        Table { file, wanted, count, header, width: 0, columns: Vec::new(), pools: Vec::new(), lines: Vec::new() };
    // Quotes, and the lone CR that ends a record as well, are for the csv crate; else each line is a record.
    if file.format == StringFormat::Csv && has_quotes_or_lone_cr(&file.bytes) {
        check_quotes(file)?;
        quoted(file, |line, fields| table.record(line, fields))?;
    } else {
        let delimiter = if file.format == StringFormat::Csv { b',' } else { b'\t' };
        let mut fields = Vec::new();
        for (number, line) in Lines::new(&file.bytes).filter(|(_, line)| !line.is_empty()) {
            fields.clear();
            let mut start = 0;
            for end in memchr_iter(delimiter, line) {
                fields.push(&line[start..end]);
                start = end + 1;
            }
            fields.push(&line[start..]);
            table.record(number, &fields)?;
        }
    }
    table.into_lists()
}

fn has_quotes_or_lone_cr(bytes: &[u8]) -> bool {
    memchr(b'"', bytes).is_some()
        || memchr_iter(b'\r', bytes).any(|at| bytes.get(at + 1).is_some_and(|&next| next != b'\n'))
}

/// Refuses text after a closing quote, which the csv crate takes for a part of the field.
fn check_quotes(file: &File) -> Result<(), Error> {
    let bytes = file.bytes.as_slice();
    // The start of a field; behind the end of the file, there is none.
    let mut at = 0;
    while at < bytes.len() {
        if bytes[at] != b'"' {
            at += memchr3(b',', b'\n', b'\r', &bytes[at..]).map_or(bytes.len(), |length| length + 1);
            continue;
        }
        at += 1;
        loop {
            // A quote that is never closed is found when the records are read.
            let Some(length) = memchr(b'"', &bytes[at..]) else { return Ok(()) };
            at += length + 1;
            if bytes.get(at) != Some(&b'"') {
                break;
            }
            at += 1;
        }
        match bytes.get(at) {
            None | Some(b',' | b'\n' | b'\r') => at += 1,
            Some(_) => {
                let line = 1 + memchr_iter(b'\n', &bytes[..at]).count() as u64;
                let rest = &bytes[at..];
                let rest = &rest[..memchr2(b'\n', b'\r', rest).unwrap_or(rest.len())];
                return Err(file.error(line, "a comma or the end of the line after a closing quote", quote(rest)));
            }
        }
    }
    Ok(())
}

/// Hands each record and its line on, as the csv crate reads it.
fn quoted(file: &File, mut record: impl FnMut(u64, &[&[u8]]) -> Result<(), Error>) -> Result<(), Error> {
    /// A record behind the last one: where a quote is not closed, it disappears into the field.
    const END: &[u8] = b"\n\0end\0\n";
    let bytes = file.bytes.as_slice();
    let mut reader = csv::ReaderBuilder::new().has_headers(false).flexible(true).from_reader(bytes.chain(END));
    let mut fields = csv::ByteRecord::new();
    let (mut line, mut counted, mut begun) = (1, 0, 1);
    // Reading from memory cannot fail, nor can records that may differ in length.
    while let Ok(true) = reader.read_byte_record(&mut fields) {
        // The reader's place is before the blank lines that it skips.
        let place =
            fields.position().map_or(0, |place| usize::try_from(place.byte()).unwrap_or(usize::MAX)).min(bytes.len());
        let start = place + bytes[place..].iter().take_while(|byte| matches!(byte, b'\n' | b'\r')).count();
        line += memchr_iter(b'\n', &bytes[counted..start]).count() as u64;
        counted = start;
        if start == bytes.len() && fields.len() == 1 && &fields[0] == END.trim_ascii() {
            return Ok(());
        }
        begun = line;
        let fields: Vec<&[u8]> = fields.iter().collect();
        if fields.last().is_some_and(|field| field.ends_with(END)) {
            break;
        }
        record(line, &fields)?;
    }
    Err(file.error(begun, "a closing quote for each opening one", "a record that goes on to the end of the file"))
}

struct Table<'a> {
    file: &'a File,
    wanted: &'a [Column],
    count: usize,
    header: bool,
    /// Fields of the first record; 0 before it.
    width: usize,
    /// Which fields are read, from 0.
    columns: Vec<usize>,
    pools: Vec<Pool>,
    lines: Vec<u64>,
}

impl Table<'_> {
    fn record(&mut self, line: u64, fields: &[&[u8]]) -> Result<(), Error> {
        if self.width == 0 {
            self.width = fields.len();
            self.columns = self.choose(line, fields)?;
            self.pools = self.columns.iter().map(|_| Pool::new()).collect();
            if self.is_header() {
                return Ok(());
            }
        }
        if fields.len() != self.width {
            let expected = format!("{} fields, as in the first record", self.width);
            return Err(self.file.error(line, expected, fields.len().to_string()));
        }
        for (pool, &column) in self.pools.iter_mut().zip(&self.columns) {
            pool.push(fields[column]);
        }
        self.lines.push(line);
        Ok(())
    }

    fn is_header(&self) -> bool {
        self.header || self.wanted.iter().any(|column| column.number().is_none())
    }

    fn choose(&self, line: u64, first: &[&[u8]]) -> Result<Vec<usize>, Error> {
        if self.wanted.is_empty() {
            if self.width == self.count {
                return Ok((0..self.count).collect());
            }
            let (flag, few) = if self.count == 1 { ("--column", "1 column") } else { ("--columns", "2 columns") };
            let expected = format!("{few}, or {flag} to choose");
            return Err(self.file.error(line, expected, format!("{}: {}", self.width, list(first))));
        }
        let choose = |column: &Column| {
            if let Some(number) = column.number() {
                // A number that is too large for a number is too large for the table.
                let number = number.parse().unwrap_or(usize::MAX);
                if (1..=self.width).contains(&number) {
                    return Ok(number - 1);
                }
                return Err(self.file.error(line, format!("a column from 1 to {}", self.width), &column.0));
            }
            let mut same = (0..first.len()).filter(|&at| first[at].trim_ascii() == column.0.as_bytes());
            match (same.next(), same.next()) {
                (Some(at), None) => Ok(at),
                (None, _) => Err(self.file.error(line, format!("a column named {}", column.0), list(first))),
                (Some(_), Some(_)) => {
                    let expected = format!("one column named {} (or its number)", column.0);
                    Err(self.file.error(line, expected, list(first)))
                }
            }
        };
        self.wanted.iter().map(choose).collect()
    }

    fn into_lists(self) -> Result<Vec<StringList>, Error> {
        if self.width == 0 {
            // Without a first record, no column is known; there is nothing in any of them.
            if self.is_header() {
                return Err(Error::format(&self.file.path, "line 1", "a header", "an empty file"));
            }
            return self.file.lists((0..self.count).map(|_| (Pool::new(), String::new())).collect(), Vec::new());
        }
        let note = (!self.is_header()).then(|| {
            let path = self.file.path.display();
            format!("{path}: the first line is taken as strings like the others (--header takes it as a header)")
        });
        let columns = self.pools.into_iter().zip(&self.columns).map(|(pool, at)| (pool, format!("column {}", at + 1)));
        let mut lists = self.file.lists(columns.collect(), self.lines)?;
        lists[0].note = note;
        Ok(lists)
    }
}

/// Fields, as messages show them.
fn list(fields: &[&[u8]]) -> String {
    const SHOWN: usize = 8;
    let mut shown: Vec<_> = fields.iter().take(SHOWN).map(|field| quote(field)).collect();
    if fields.len() > SHOWN {
        shown.push("...".into());
    }
    shown.join(", ")
}
