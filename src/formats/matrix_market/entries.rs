//! The lines after the size, parsed block by block and each block in parallel.

use super::super::text::quote;
use super::header::{Banner, Field, LONGEST_LINE, Layout, Lines, Symmetry};
use super::number::{index, is_blank, real, whole, word};
use crate::error::Error;
use rayon::prelude::*;
use std::io::{BufRead, Read};

/// Bytes that are read at a time.
const BLOCK: usize = 8 << 20;
/// Bytes that one thread parses at a time.
const PIECE: usize = 256 << 10;

/// What the lines must look like.
pub(super) struct Rules {
    pub(super) banner: Banner,
    pub(super) rows: u64,
    pub(super) cols: u64,
}

/// What the lines hold: mirrored entries follow theirs. Rows and columns are empty for an array, values for a pattern.
#[derive(Default)]
pub(super) struct Entries {
    pub(super) rows: Vec<u32>,
    pub(super) columns: Vec<u32>,
    pub(super) values: Vec<f64>,
    /// Integers that f64 does not hold.
    pub(super) rounded: u64,
    /// Entries as the file counts them.
    count: u64,
    lines: u64,
    /// The first lines, from 0 on, that give an entry above and below the diagonal.
    triangles: [Option<u64>; 2],
}

/// The first thing wrong in a piece of text.
struct Problem {
    /// From 0 on within the piece.
    line: u64,
    expected: String,
    found: String,
}

/// Reads all entries and compares their number with `claimed`.
pub(super) fn read<R: BufRead>(
    lines: &mut Lines<R>,
    rules: &Rules,
    claimed: u64,
    file_bytes: u64,
) -> Result<Entries, Error> {
    let mut all = Entries { lines: lines.line(), ..Entries::default() };
    all.reserve(rules, claimed, file_bytes);
    let path = lines.path().to_owned();
    let mut block = Vec::new();
    loop {
        let wanted = (BLOCK - block.len()) as u64;
        let read = lines.reader().by_ref().take(wanted).read_to_end(&mut block);
        let at_end = (read.map_err(|error| Error::file(&path, error))? as u64) < wanted;
        let whole =
            if at_end { Some(block.len()) } else { block.iter().rposition(|&byte| byte == b'\n').map(|at| at + 1) };
        let found = "a longer one: is it text?".to_owned();
        let long = Problem { line: 0, expected: format!("lines of at most {LONGEST_LINE} bytes"), found };
        let parsed = match whole.filter(|&whole| block.len() - whole <= LONGEST_LINE) {
            Some(whole) => {
                let result = all.extend(&block[..whole], rules, claimed);
                block.drain(..whole);
                result
            }
            None => Err(long),
        };
        parsed.map_err(|problem| {
            let line = format!("line {}", all.lines + problem.line + 1);
            Error::format(&path, line, problem.expected, problem.found)
        })?;
        if at_end {
            break;
        }
    }
    if all.count < claimed {
        let what = if rules.banner.layout == Layout::Array { "values" } else { "entries" };
        return Err(Error::format(
            &path,
            format!("line {}, the last one", all.lines),
            format!("{claimed} {what}, as the size line says"),
            format!("{}: the file is truncated, or its size line is wrong", all.count),
        ));
    }
    Ok(all)
}

impl Entries {
    /// Room for what the size line says, but not for more than the file can hold: an entry has at least 4 bytes.
    fn reserve(&mut self, rules: &Rules, claimed: u64, file_bytes: u64) {
        let mirrored = if rules.banner.symmetry == Symmetry::General { 1 } else { 2 };
        let Ok(count) = usize::try_from(claimed.min(file_bytes / 4) * mirrored) else { return };
        // Only an attempt: where it fails, the vectors grow as they are filled.
        if rules.banner.layout == Layout::Coordinate {
            let _ = self.rows.try_reserve_exact(count);
            let _ = self.columns.try_reserve_exact(count);
        }
        if rules.banner.field != Field::Pattern {
            let _ = self.values.try_reserve_exact(count);
        }
    }

    /// Appends the entries of a block of whole lines. A problem's line counts from `self.lines` on.
    fn extend(&mut self, block: &[u8], rules: &Rules, claimed: u64) -> Result<(), Problem> {
        let parts: Vec<_> = pieces(block).into_par_iter().map(|piece| (piece, parse(piece, rules, u64::MAX))).collect();
        for (piece, (part, problem)) in parts {
            let left = claimed - self.count;
            // The line with one entry too many is looked for only when there is one.
            let problem = if part.count > left { parse(piece, rules, left).1 } else { problem };
            let problem = earlier(problem, self.other_triangle(&part, rules));
            if let Some(problem) = problem {
                return Err(problem);
            }
            for (seen, line) in self.triangles.iter_mut().zip(part.triangles) {
                *seen = seen.or(line.map(|line| self.lines + line));
            }
            self.rows.extend_from_slice(&part.rows);
            self.columns.extend_from_slice(&part.columns);
            self.values.extend_from_slice(&part.values);
            self.rounded += part.rounded;
            self.count += part.count;
            self.lines += part.lines;
        }
        Ok(())
    }

    /// The first entry of `part` on the other side of the diagonal than the entries before it.
    fn other_triangle(&self, part: &Self, rules: &Rules) -> Option<Problem> {
        let [above, below] = part.triangles;
        let at = match (self.triangles, above, below) {
            ([Some(_), _], _, Some(line)) | ([_, Some(_)], Some(line), _) => line,
            (_, Some(above), Some(below)) => above.max(below),
            _ => return None,
        };
        let before = if below == Some(at) { "above" } else { "below" };
        let after = if below == Some(at) { "below" } else { "above" };
        Some(Problem {
            line: at,
            expected: format!(
                "entries on one side of the diagonal (the matrix is {}, and those so far are {before} it)",
                rules.banner.symmetry.name()
            ),
            found: format!("one {after} it"),
        })
    }
}

/// Whichever comes first in the file.
fn earlier(a: Option<Problem>, b: Option<Problem>) -> Option<Problem> {
    [a, b].into_iter().flatten().min_by_key(|problem| problem.line)
}

/// Cuts a block after ends of lines.
fn pieces(block: &[u8]) -> Vec<&[u8]> {
    let mut pieces = Vec::new();
    let mut rest = block;
    while !rest.is_empty() {
        let end = rest.iter().skip(PIECE).position(|&byte| byte == b'\n').map_or(rest.len(), |at| PIECE + at + 1);
        let (piece, after) = rest.split_at(end);
        pieces.push(piece);
        rest = after;
    }
    pieces
}

/// The entries of a piece of whole lines, up to the first problem or to one entry more than `most`.
fn parse(text: &[u8], rules: &Rules, most: u64) -> (Entries, Option<Problem>) {
    let mut entries = Entries::default();
    // No line with an entry is shorter than 2 bytes, nor most shorter than 16; what is too much is given back.
    let expected = text.len() / 16;
    if rules.banner.layout == Layout::Coordinate {
        entries.rows.reserve(expected);
        entries.columns.reserve(expected);
    }
    if rules.banner.field != Field::Pattern {
        entries.values.reserve(expected);
    }
    let mut at = 0;
    while at < text.len() {
        match text[at] {
            b'\n' => {
                at += 1;
                entries.lines += 1;
            }
            b' ' | b'\t' | b'\r' => at += 1,
            b'%' => at += text[at..].iter().position(|&byte| byte == b'\n').unwrap_or(text.len() - at),
            _ => {
                let result = if entries.count == most {
                    let what = if rules.banner.layout == Layout::Array { "values" } else { "entries" };
                    Err((
                        format!("the end of the file after its last {what}, as the size line says"),
                        "another one".into(),
                    ))
                } else {
                    line(&text[at..], rules, &mut entries)
                };
                match result {
                    Ok(length) => at += length,
                    Err((expected, found)) => {
                        let problem = Problem { line: entries.lines, expected, found };
                        return (entries, Some(problem));
                    }
                }
                entries.count += 1;
            }
        }
    }
    // A last line without an end is a line.
    entries.lines += u64::from(text.last().is_some_and(|&byte| byte != b'\n'));
    (entries, None)
}

/// Reads the entry that begins `text`; how long it is, or what was expected and found.
#[inline]
fn line(text: &[u8], rules: &Rules, entries: &mut Entries) -> Result<usize, (String, String)> {
    let Rules { banner, rows, cols } = rules;
    let (place, mut at) = if banner.layout == Layout::Coordinate {
        let (row, length) = place(text, 0, *rows, "row")?;
        let (column, length) = place(text, blanks(text, length), *cols, "column")?;
        (Some((row, column)), blanks(text, length))
    } else {
        (None, 0)
    };
    let value = match banner.field {
        Field::Pattern => 1.0,
        Field::Real => {
            let (value, length) =
                real(&text[at..]).ok_or_else(|| ("a number that f64 can hold".to_owned(), found(&text[at..])))?;
            at += length;
            value
        }
        Field::Integer => {
            let (value, length, exact) = whole(&text[at..])
                .ok_or_else(|| ("a whole number (the field is integer)".to_owned(), found(&text[at..])))?;
            at += length;
            entries.rounded += u64::from(!exact);
            value
        }
    };
    at = blanks(text, at);
    if text.get(at).is_some_and(|&byte| byte != b'\n') {
        let columns =
            usize::from(banner.layout == Layout::Coordinate) * 2 + usize::from(banner.field != Field::Pattern);
        return Err((format!("the end of the line after {columns} columns"), found(&text[at..])));
    }
    let Some((row, column)) = place else {
        entries.values.push(value);
        return Ok(at);
    };
    let valued = banner.field != Field::Pattern;
    entries.rows.push(row);
    entries.columns.push(column);
    if valued {
        entries.values.push(value);
    }
    if banner.symmetry != Symmetry::General {
        let skew = banner.symmetry == Symmetry::Skew;
        if row != column {
            entries.rows.push(column);
            entries.columns.push(row);
            if valued {
                entries.values.push(if skew { -value } else { value });
            }
            entries.triangles[usize::from(row > column)].get_or_insert(entries.lines);
        } else if skew && value != 0.0 {
            let expected = "no entry on the diagonal, or a zero (the matrix is skew-symmetric)".to_owned();
            return Err((expected, format!("{value} at row {0}, column {0}", row + 1)));
        }
    }
    Ok(at)
}

/// A row or column number, from 0 on, and where it ends.
#[inline]
fn place(text: &[u8], at: usize, most: u64, what: &str) -> Result<(u32, usize), (String, String)> {
    let read = index(&text[at..]).filter(|&(number, _)| 0 < number && number <= most);
    read.and_then(|(number, length)| Some((u32::try_from(number - 1).ok()?, at + length)))
        .ok_or_else(|| (format!("a {what} from 1 to {most}"), found(&text[at..])))
}

/// Where the blanks from `at` on end, the end of the line excepted.
#[inline]
fn blanks(text: &[u8], mut at: usize) -> usize {
    while text.get(at).is_some_and(|&byte| byte != b'\n' && is_blank(byte)) {
        at += 1;
    }
    at
}

fn found(text: &[u8]) -> String {
    match word(text) {
        b"" => "the end of the line".into(),
        word => quote(word),
    }
}
