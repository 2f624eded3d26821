//! Lines, and files of one string a line.

use crate::data::ByteStrings;
use crate::error::Error;
use memchr::memchr;

/// The strings of a file of one a line. They move together where they are: no second copy.
pub(super) fn read(mut bytes: Vec<u8>) -> Result<ByteStrings, Error> {
    let (mut offsets, mut start, mut end) = (vec![0], 0, 0);
    while start < bytes.len() {
        let next = memchr(b'\n', &bytes[start..]).map_or(bytes.len(), |length| start + length);
        let stop = if next > start && bytes[next - 1] == b'\r' { next - 1 } else { next };
        bytes.copy_within(start..stop, end);
        end += stop - start;
        offsets.push(end);
        start = next + 1;
    }
    bytes.truncate(end);
    ByteStrings::new(bytes, offsets)
}

/// The lines of a file, without their ends (LF, CR LF), numbered from 1.
pub(super) struct Lines<'a> {
    rest: &'a [u8],
    number: u64,
}

impl<'a> Lines<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes, number: 0 }
    }
}

impl<'a> Iterator for Lines<'a> {
    type Item = (u64, &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let (line, rest) = match memchr(b'\n', self.rest) {
            Some(length) => (&self.rest[..length], &self.rest[length + 1..]),
            None => (self.rest, &[][..]),
        };
        self.rest = rest;
        self.number += 1;
        Some((self.number, line.strip_suffix(b"\r").unwrap_or(line)))
    }
}
