//! The arrays of an .npz archive, each converted to what the caller needs while it is read.

use super::super::npy_header::{self, ArrayHeader, Kind};
use super::super::source::{Cursor, Source};
use crate::error::Error;
use half::f16;
use std::io::Read;
use std::path::Path;
use zip::ZipArchive;
use zip::result::ZipError;

/// Bytes that are read at a time where they have to be converted.
const PIECE: usize = 1 << 16;
/// Bytes that are read at a time where memory holds them as the file does: what is read is still in the cache when the
/// checksum is computed.
const RUN: usize = 1 << 18;
/// The best that deflate can do: 258 bytes for 2 bits.
const BEST_COMPRESSION: u64 = 1032;
/// Up to here f64 holds every whole number.
const EXACT: u64 = 1 << 53;

/// An archive; clones read other entries at the same time.
#[derive(Clone)]
pub(super) struct Archive<'a> {
    zip: ZipArchive<Cursor<'a>>,
    path: &'a Path,
    bytes: u64,
}

/// Values in the smaller type that holds the stored one.
pub(super) enum Values {
    F32(Vec<f32>),
    F64(Vec<f64>),
}

impl Values {
    pub(super) fn truncate(&mut self, length: usize) {
        match self {
            Self::F32(values) => values.truncate(length),
            Self::F64(values) => values.truncate(length),
        }
    }
}

pub(super) struct Data {
    pub(super) shape: Vec<usize>,
    /// The last dimension varies fastest.
    pub(super) values: Values,
    /// Integers that f64 cannot hold.
    pub(super) rounded: u64,
}

/// An entry of the archive after its header.
struct Member<'a> {
    reader: Box<dyn Read + 'a>,
    source: Source,
    header: ArrayHeader,
    count: usize,
}

impl<'a> Archive<'a> {
    pub(super) fn open(source: &'a Source) -> Result<Self, Error> {
        let (path, bytes) = (source.path(), source.len());
        let mut start = [0; 4];
        let available = usize::try_from(bytes.min(4)).unwrap_or(4);
        source.read_exact_at(&mut start[..available], 0)?;
        let expected = "a zip archive (.npz)";
        if available == 0 {
            return Err(Error::format(path, "byte 0", expected, "an empty file"));
        }
        if !start[..available].starts_with(b"PK") {
            let found = format!("\"{}\"", start[..available].escape_ascii());
            return Err(Error::format(path, "byte 0", expected, found));
        }
        let zip = ZipArchive::new(source.cursor()).map_err(|error| match error {
            ZipError::Io(error) if error.kind() != std::io::ErrorKind::UnexpectedEof => Error::file(path, error),
            error => Error::format(path, "the directory of the archive", "a whole zip archive", plain(&error)),
        })?;
        Ok(Self { zip, path, bytes })
    }

    pub(super) fn path(&self) -> &Path {
        self.path
    }

    /// The length of the archive.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.zip.index_for_name(&format!("{name}.npy")).is_some()
    }

    /// An error about an entry.
    pub(super) fn error(
        &self,
        name: &str,
        position: impl std::fmt::Display,
        expected: impl Into<String>,
        found: impl Into<String>,
    ) -> Error {
        Error::format(self.path, format!("{name}.npy: {position}"), expected, found)
    }

    pub(super) fn check_shape(&self, name: &str, found: &[usize], expected: &[usize]) -> Result<(), Error> {
        if found == expected {
            return Ok(());
        }
        let expected = format!("{} entries, as indptr.npy says", expected[0]);
        Err(self.error(name, "shape", expected, listed(found)))
    }

    fn member(&mut self, name: &str) -> Result<Member<'_>, Error> {
        let (path, bytes) = (self.path, self.bytes);
        let file_name = format!("{name}.npy");
        let Some(index) = self.zip.index_for_name(&file_name) else {
            let mut names: Vec<_> =
                self.zip.file_names().take(8).filter_map(|name| Some(name.ok()?.into_owned())).collect();
            names.sort();
            let found = if names.is_empty() { "none at all".into() } else { format!("only {}", names.join(", ")) };
            return Err(Error::format(path, "archive", format!("an entry {file_name}"), found));
        };
        let refuse = |expected: &str, found: String| Error::format(path, &file_name, expected, found);
        let file = self.zip.by_index(index).map_err(|error| refuse("a readable entry", plain(&error)))?;
        let (size, compressed) = (file.size(), file.compressed_size());
        if compressed > bytes || size / BEST_COMPRESSION > compressed {
            return Err(refuse("a size that the archive can hold", format!("{size} bytes, compressed {compressed}")));
        }
        let mut reader: Box<dyn Read> = Box::new(file);
        let head = npy_header::head(&mut reader).map_err(|error| refuse("a readable entry", error.to_string()))?;
        let source = Source::part(path, &file_name, head);
        let header = npy_header::read_array(&source)?;
        let count = header.shape.iter().try_fold(1_u64, |product, &length| product.checked_mul(length));
        let expected = count.and_then(|count| count.checked_mul(header.kind.bytes() as u64));
        let found = size.saturating_sub(header.start);
        match (expected, count.and_then(|count| usize::try_from(count).ok())) {
            (Some(expected), Some(count)) if expected == found => Ok(Member { reader, source, header, count }),
            _ => {
                let shape = header.shape.iter().map(u64::to_string).collect::<Vec<_>>().join(" x ");
                let values = if shape.is_empty() { "1 value".into() } else { format!("{shape} values") };
                let expected = format!("{values} of {} bytes", header.kind.bytes());
                Err(source.format("data", expected, format!("{found} bytes")))
            }
        }
    }

    /// The text of an array without dimensions.
    pub(super) fn text(&mut self, name: &str) -> Result<String, Error> {
        let mut member = self.member(name)?;
        let (Kind::Bytes(length) | Kind::Unicode(length)) = member.header.kind else {
            return Err(member.source.format("header, descr", "a text, bytes or str", member.header.kind.describe()));
        };
        if member.count != 1 || length > 64 {
            return Err(member.source.format("header, shape", "one short text", format!("{} texts", member.count)));
        }
        let mut bytes = vec![0; member.header.kind.bytes()];
        member.fill(&mut bytes)?;
        member.end()?;
        let big = member.header.big_endian;
        let text = if matches!(member.header.kind, Kind::Unicode(_)) {
            let (words, _) = bytes.as_chunks::<4>();
            let number = |&word| if big { u32::from_be_bytes(word) } else { u32::from_le_bytes(word) };
            words.iter().map(|word| char::from_u32(number(word)).unwrap_or(char::REPLACEMENT_CHARACTER)).collect()
        } else {
            String::from_utf8_lossy(&bytes).into_owned()
        };
        Ok(text.trim_end_matches('\0').to_owned())
    }

    /// Whole numbers in one dimension, converted; `None` from `convert` is an error that names the value.
    pub(super) fn integers<T>(
        &mut self,
        name: &str,
        expected: &str,
        convert: impl Fn(i64) -> Option<T>,
    ) -> Result<Vec<T>, Error> {
        let mut member = self.member(name)?;
        if member.header.shape.len() != 1 {
            let found = member.header.shape.len().to_string();
            return Err(member.source.format("header, shape", "1 dimension", found));
        }
        member.integers(expected, convert)
    }

    /// As many row or column numbers below `most` as `count` says.
    pub(super) fn indices(&mut self, name: &str, count: usize, most: usize) -> Result<Vec<u32>, Error> {
        let (indices, stored) = self.first_indices(name, count, most)?;
        if stored > count {
            let by = if self.has("indptr") { "indptr.npy" } else { "data.npy" };
            return Err(self.error(name, "length", format!("{count}, as {by} says"), stored.to_string()));
        }
        Ok(indices)
    }

    /// As [`indices`](Self::indices), and how many there are: those after the first `count` mean nothing.
    pub(super) fn first_indices(&mut self, name: &str, count: usize, most: usize) -> Result<(Vec<u32>, usize), Error> {
        let by = if self.has("indptr") { "indptr.npy" } else { "data.npy" };
        let mut member = self.member(name)?;
        if member.header.shape.len() != 1 {
            return Err(member.source.format("header, shape", "1 dimension", member.header.shape.len().to_string()));
        }
        if member.count < count {
            return Err(member.source.format("length", format!("{count}, as {by} says"), member.count.to_string()));
        }
        Ok((member.indices(count, most)?, member.count))
    }

    /// How many values an array of one dimension has, by its header.
    pub(super) fn length(&mut self, name: &str) -> Result<usize, Error> {
        let member = self.member(name)?;
        match member.header.shape[..] {
            [_] => Ok(member.count),
            _ => Err(member.source.format("shape", "1 dimension", member.header.shape.len().to_string())),
        }
    }

    /// Row and column numbers as the two rows of one array.
    pub(super) fn coordinates(
        &mut self,
        name: &str,
        count: usize,
        [rows, cols]: [usize; 2],
    ) -> Result<(Vec<u32>, Vec<u32>), Error> {
        let mut member = self.member(name)?;
        if member.header.shape != [2, count as u64] {
            let found = member.header.shape.iter().map(u64::to_string).collect::<Vec<_>>().join(" x ");
            return Err(member.source.format("header, shape", format!("2 x {count}, as data.npy says"), found));
        }
        let fortran_order = member.header.fortran_order;
        let all = member
            .integers(&format!("an index from 0 to below {}", rows.max(cols)), |value| index(value, rows.max(cols)))?;
        let (row_of, columns): (Vec<_>, Vec<_>) = if fortran_order {
            all.as_chunks::<2>().0.iter().map(|&[row, column]| (row, column)).unzip()
        } else {
            let (row_of, columns) = all.split_at(count);
            (row_of.to_vec(), columns.to_vec())
        };
        for (which, numbers, most) in [("row", &row_of, rows), ("column", &columns, cols)] {
            if let Some(at) = numbers.iter().position(|&number| number as usize >= most) {
                let position = format!("{which} of entry {at}");
                return Err(member.source.format(position, format!("below {most}"), numbers[at].to_string()));
            }
        }
        Ok((row_of, columns))
    }

    /// The diagonals' numbers.
    pub(super) fn offsets(&mut self, name: &str, count: usize) -> Result<Vec<i64>, Error> {
        let offsets = self.integers(name, "an offset", Some)?;
        if offsets.len() != count {
            let found = offsets.len().to_string();
            return Err(self.error(name, "length", format!("{count}, as data.npy says"), found));
        }
        Ok(offsets)
    }

    /// Numbers of any kind but complex ones.
    pub(super) fn data(&mut self, name: &str) -> Result<Data, Error> {
        let mut member = self.member(name)?;
        let shape: Result<Vec<usize>, _> = member.header.shape.iter().map(|&length| usize::try_from(length)).collect();
        let Ok(shape) = shape else {
            return Err(member.source.format("header, shape", "a size that memory can hold", "a larger one"));
        };
        let (values, rounded) = member.values()?;
        let values = if member.header.fortran_order && shape.len() > 1 {
            match values {
                Values::F32(values) => Values::F32(last_fastest(&shape, &values)),
                Values::F64(values) => Values::F64(last_fastest(&shape, &values)),
            }
        } else {
            values
        };
        Ok(Data { shape, values, rounded })
    }
}

/// A row or column number.
fn index(value: i64, most: usize) -> Option<u32> {
    u32::try_from(value).ok().filter(|&index| (index as usize) < most)
}

fn listed(shape: &[usize]) -> String {
    shape.iter().map(usize::to_string).collect::<Vec<_>>().join(" x ")
}

/// What the archive's reader says, in one line.
fn plain(error: &ZipError) -> String {
    error.to_string().replace('\n', " ")
}

/// From the first dimension varying fastest to the last one.
fn last_fastest<T: Copy>(shape: &[usize], values: &[T]) -> Vec<T> {
    let mut at = vec![0; shape.len()];
    let mut moved = Vec::with_capacity(values.len());
    for _ in 0..values.len() {
        let mut position = 0;
        for (&place, &length) in at.iter().zip(shape).rev() {
            position = position * length + place;
        }
        moved.push(values[position]);
        for (place, &length) in at.iter_mut().zip(shape).rev() {
            *place += 1;
            if *place < length {
                break;
            }
            *place = 0;
        }
    }
    moved
}

impl Member<'_> {
    fn fill(&mut self, bytes: &mut [u8]) -> Result<(), Error> {
        bytes.chunks_mut(RUN).try_for_each(|run| {
            let read = self.reader.read_exact(run);
            read.map_err(|error| self.source.format("data", "readable data", error.to_string()))
        })
    }

    /// All numbers as they are stored.
    fn as_stored<T: bytemuck::Pod>(&mut self) -> Result<Vec<T>, Error> {
        // Asked for, so that what does not fit is an error; given back, as zeros cost nothing where they are allocated.
        drop(self.room::<T>()?);
        let mut all = vec![T::zeroed(); self.count];
        self.fill(bytemuck::cast_slice_mut(&mut all))?;
        self.end()?;
        Ok(all)
    }

    fn is_native(&self) -> bool {
        self.header.big_endian == cfg!(target_endian = "big")
    }

    /// The first `count` of these numbers, each below `most`.
    fn indices(&mut self, count: usize, most: usize) -> Result<Vec<u32>, Error> {
        let expected = format!("an index from 0 to below {most}");
        let (Kind::Int(4) | Kind::Uint(4), true) = (self.header.kind, self.is_native()) else {
            let mut at = 0;
            // What is of no meaning may have any value.
            let mut all = self.integers(&expected, |value| {
                at += 1;
                index(value, most).or((at > count).then_some(0))
            })?;
            all.truncate(count);
            return Ok(all);
        };
        let mut all = self.as_stored::<u32>()?;
        all.truncate(count);
        // The largest first: finding it takes a fraction of the time that looking for the first beyond takes. As bits, a
        // negative number is 2^31 or more, which no positive one is.
        let signed = self.header.kind == Kind::Int(4);
        let limit = if signed { most.min(1 << 31) } else { most };
        if all.iter().max().is_some_and(|&largest| largest as usize >= limit)
            && let Some(at) = all.iter().position(|&index| index as usize >= limit)
        {
            let found = if signed { all[at].cast_signed().to_string() } else { all[at].to_string() };
            return Err(self.source.format(format!("value {at}"), expected, found));
        }
        Ok(all)
    }

    /// Reads the end, where the checksum is compared.
    fn end(&mut self) -> Result<(), Error> {
        match self.reader.read(&mut [0]) {
            Ok(0) => Ok(()),
            Ok(_) => Err(self.source.format("data", "the end of the entry", "more bytes")),
            Err(error) => Err(self.source.format("data", "readable data", error.to_string())),
        }
    }

    fn room<T>(&self) -> Result<Vec<T>, Error> {
        let mut room = Vec::new();
        let found = || self.source.format("data", "an array that fits into memory", format!("{} values", self.count));
        room.try_reserve_exact(self.count).map_err(|_| found())?;
        Ok(room)
    }

    /// Gives every stored number, in turn, to `push`.
    fn each<const N: usize>(&mut self, mut push: impl FnMut([u8; N]) -> Result<(), Error>) -> Result<(), Error> {
        let mut piece = vec![0; PIECE.min(self.count * N)];
        let mut left = self.count;
        while left > 0 {
            let count = left.min(PIECE / N);
            let piece = &mut piece[..count * N];
            self.fill(piece)?;
            if N > 1 && !self.is_native() {
                piece.as_chunks_mut::<N>().0.iter_mut().for_each(|number| number.reverse());
            }
            for &number in piece.as_chunks::<N>().0 {
                push(number)?;
            }
            left -= count;
        }
        self.end()
    }

    /// Appends what every stored number is converted to.
    fn convert<T, const N: usize>(
        &mut self,
        values: &mut Vec<T>,
        mut convert: impl FnMut([u8; N]) -> T,
    ) -> Result<(), Error> {
        self.each(|bytes| {
            values.push(convert(bytes));
            Ok(())
        })
    }

    fn integers<T>(&mut self, expected: &str, mut convert: impl FnMut(i64) -> Option<T>) -> Result<Vec<T>, Error> {
        let mut all = self.room()?;
        let source = Source::part(self.source.path(), self.source.part_name(), Vec::new());
        let kind = self.header.kind;
        let mut push = |value: i64| match convert(value) {
            Some(value) => {
                all.push(value);
                Ok(())
            }
            None => Err(source.format(format!("value {}", all.len()), expected, value.to_string())),
        };
        match kind {
            Kind::Int(1) => self.each(|bytes| push(i8::from_ne_bytes(bytes).into())),
            Kind::Int(2) => self.each(|bytes| push(i16::from_ne_bytes(bytes).into())),
            Kind::Int(4) => self.each(|bytes| push(i32::from_ne_bytes(bytes).into())),
            Kind::Int(8) => self.each(|bytes| push(i64::from_ne_bytes(bytes))),
            Kind::Uint(1) => self.each(|bytes| push(u8::from_ne_bytes(bytes).into())),
            Kind::Uint(2) => self.each(|bytes| push(u16::from_ne_bytes(bytes).into())),
            Kind::Uint(4) => self.each(|bytes| push(u32::from_ne_bytes(bytes).into())),
            // No index or size is larger than i64 can say.
            Kind::Uint(8) => self.each(|bytes| push(i64::try_from(u64::from_ne_bytes(bytes)).unwrap_or(i64::MAX))),
            other => Err(self.source.format("header, descr", "whole numbers", other.describe())),
        }?;
        Ok(all)
    }

    fn values(&mut self) -> Result<(Values, u64), Error> {
        match self.header.kind {
            Kind::Float(4) if self.is_native() => return Ok((Values::F32(self.as_stored()?), 0)),
            Kind::Float(8) if self.is_native() => return Ok((Values::F64(self.as_stored()?), 0)),
            _ => {}
        }
        let mut narrow = Vec::new();
        let mut wide = Vec::new();
        let mut rounded = 0;
        match self.header.kind {
            Kind::Float(8) | Kind::Int(4 | 8) | Kind::Uint(4 | 8) => wide = self.room::<f64>()?,
            _ => narrow = self.room::<f32>()?,
        }
        let is_wide = matches!(self.header.kind, Kind::Float(8) | Kind::Int(4 | 8) | Kind::Uint(4 | 8));
        match self.header.kind {
            Kind::Float(2) => self.convert(&mut narrow, |bytes| f16::from_ne_bytes(bytes).to_f32())?,
            Kind::Float(4) => self.convert(&mut narrow, f32::from_ne_bytes)?,
            Kind::Float(8) => self.convert(&mut wide, f64::from_ne_bytes)?,
            Kind::Bool => self.convert(&mut narrow, |[byte]| f32::from(u8::from(byte != 0)))?,
            Kind::Int(1) => self.convert(&mut narrow, |bytes| i8::from_ne_bytes(bytes).into())?,
            Kind::Int(2) => self.convert(&mut narrow, |bytes| i16::from_ne_bytes(bytes).into())?,
            Kind::Int(4) => self.convert(&mut wide, |bytes| i32::from_ne_bytes(bytes).into())?,
            Kind::Uint(1) => self.convert(&mut narrow, |bytes| u8::from_ne_bytes(bytes).into())?,
            Kind::Uint(2) => self.convert(&mut narrow, |bytes| u16::from_ne_bytes(bytes).into())?,
            Kind::Uint(4) => self.convert(&mut wide, |bytes| u32::from_ne_bytes(bytes).into())?,
            Kind::Int(8) => self.convert(&mut wide, |bytes| {
                let value = i64::from_ne_bytes(bytes);
                rounded += u64::from(!is_exact(value.unsigned_abs()));
                value as f64
            })?,
            Kind::Uint(8) => self.convert(&mut wide, |bytes| {
                let value = u64::from_ne_bytes(bytes);
                rounded += u64::from(!is_exact(value));
                value as f64
            })?,
            other => {
                let expected = "numbers of type bool, integer, float16, float32 or float64";
                return Err(self.source.format("header, descr", expected, other.describe()));
            }
        }
        Ok((if is_wide { Values::F64(wide) } else { Values::F32(narrow) }, rounded))
    }
}

/// Whether f64 holds this whole number: not more than 53 bits between its first and its last one.
fn is_exact(value: u64) -> bool {
    value <= EXACT || 64 - value.leading_zeros() - value.trailing_zeros() <= 53
}
