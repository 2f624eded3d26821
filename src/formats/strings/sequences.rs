//! FASTA and FASTQ: sequences with names.

use super::lines::Lines;
use super::{File, Pool, StringList};
use crate::error::Error;
use crate::formats::text::quote;
use std::sync::Arc;

struct Records {
    sequences: Pool,
    names: Pool,
    lines: Vec<u64>,
}

impl Records {
    fn new() -> Self {
        Self { sequences: Pool::new(), names: Pool::new(), lines: Vec::new() }
    }

    /// Takes the heading, without its mark: its first word is the name, with or without a space before it.
    fn begin(&mut self, heading: &[u8], line: u64) {
        self.names.push(heading.trim_ascii_start().split(u8::is_ascii_whitespace).next().unwrap_or_default());
        self.lines.push(line);
    }

    fn into_list(self, file: &File) -> Result<StringList, Error> {
        Ok(StringList {
            strings: self.sequences.into_strings()?,
            names: Some(self.names.into_strings()?),
            note: None,
            path: file.path.clone(),
            lines: Some(Arc::new(self.lines)),
            column: Some("the record that begins here".into()),
        })
    }
}

pub(super) fn read_fasta(file: &File) -> Result<StringList, Error> {
    let mut records = Records::new();
    for (number, line) in Lines::new(&file.bytes) {
        if let Some(heading) = line.strip_prefix(b">") {
            if !records.lines.is_empty() {
                records.sequences.end();
            }
            records.begin(heading, number);
        } else if line.starts_with(b";") {
            // A comment.
        } else if !records.lines.is_empty() {
            // Blanks only group the symbols.
            line.split(u8::is_ascii_whitespace).for_each(|word| records.sequences.bytes.extend_from_slice(word));
        } else if !line.trim_ascii().is_empty() {
            return Err(file.error(number, "a heading, > and a name, before the first sequence", quote(line)));
        }
    }
    if !records.lines.is_empty() {
        records.sequences.end();
    }
    records.into_list(file)
}

pub(super) fn read_fastq(file: &File) -> Result<StringList, Error> {
    let mut records = Records::new();
    let mut lines = Lines::new(&file.bytes);
    while let Some((number, line)) = lines.next() {
        if line.is_empty() {
            continue;
        }
        let heading =
            line.strip_prefix(b"@").ok_or_else(|| file.error(number, "a heading, @ and a name", quote(line)))?;
        let mut next = |expected: &str| {
            lines.next().ok_or_else(|| {
                file.error(number, format!("{expected} in a record of four lines"), "the end of the file")
            })
        };
        let (_, sequence) = next("a sequence")?;
        let (at, plus) = next("+")?;
        if !plus.starts_with(b"+") {
            return Err(file.error(at, "+, the third line of a record", quote(plus)));
        }
        let (at, quality) = next("qualities")?;
        if quality.len() != sequence.len() {
            let expected = format!("{} qualities, as the sequence is long", sequence.len());
            return Err(file.error(at, expected, quality.len().to_string()));
        }
        records.begin(heading, number);
        records.sequences.push(sequence);
    }
    records.into_list(file)
}
