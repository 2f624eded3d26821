//! The GPU arm: one invocation a text, its column of the table in registers.
//!
//! ```text
//! once per list of texts:  symbols become dense codes, 4, 2 or 1 a word; texts sorted by length, in blocks of 64 whose
//!                          words are interleaved, so that neighbouring invocations read neighbouring words
//! one or several patterns: their tables up
//!   texts                  a group of patterns (8 words of 32 rows; one pattern alone: 1, 2, 4 or 8) x a block of texts
//!   strip                  8 words of a longer pattern x a block, or of any pattern x texts beyond 24,576 symbols; strip
//!                          after strip, what one does to the columns handed to the next as 2 bits a column
//! a pattern for each text: their codes up
//!   pairs                  a pair in an invocation, 32 rows at a time, as bit planes instead of a table
//!   long pairs             a pair in a workgroup or several, on the anti-diagonal
//! distances down, in the caller's order: the kernels put them there
//! ```
//!
//! Each of it is one submission. Everything is integers: results are those of the CPU, on every adapter.
//!
//! # What is split
//! Texts are cut into segments, patterns into batches, so that each buffer stays below what the adapter binds, at most
//! 1 GiB; blocks, columns and rounds into dispatches of at most 2^30 words of 32 rows. What cannot be cut is refused with
//! the limit's name, and [`is_for_the_cpu`]: a text, or the patterns of a block, larger than a binding.
//!
//! # Counted
//! For a symbol of a text and 32 rows of a pattern: 11 operations and a read of workgroup memory, whatever the alphabet (one
//! cached read more beyond 256 distinct symbols). Pairs: 2 operations for each bit of a code in place of that read, and
//! about 8 more. A call moves the tables up, at most 9 KiB for a pattern of 256, or 9 bytes for 8 symbols (8-bit codes) and
//! 16 for a pair; and 4 bytes a distance down.

mod alphabet;
mod call;
mod groups;
mod layout;
mod pairs;
mod parts;
mod plan;
#[cfg(test)]
mod tests;
mod texts;

pub use pairs::DevicePairs;
pub use texts::DeviceTexts;

use crate::data::Texts;
use crate::device::{Device, Shader, params};
use crate::error::{DeviceError, Error};
use groups::Shape;
use layout::as_u32;
use std::ops::Range;
use std::sync::Arc;

params! {
    /// See `texts.wgsl` and `strip.wgsl`.
    struct Work {
        first: u32,
        end: u32,
        groups_x: u32,
        base: u32,
        stride: u32,
        texts: u32,
        from_column: u32,
        to_column: u32,
        is_first: u32,
        is_last: u32,
    }
}

params! {
    /// See `pairs.wgsl`.
    struct Pairs {
        first: u32,
        end: u32,
        groups_x: u32,
        texts: u32,
        pairs: u32,
    }
}

params! {
    /// See `long_pairs.wgsl`.
    struct LongPairs {
        first: u32,
        end: u32,
        groups_x: u32,
        strip: u32,
        round: u32,
        steps: u32,
    }
}

/// Text of the shaders and of the host path, for the hash of the GPU arm.
pub(super) const SOURCES: &[(&str, &str)] = &[
    ("../../device/buffer.rs", include_str!("../../device/buffer.rs")),
    ("../../device/shader.rs", include_str!("../../device/shader.rs")),
    ("../../device/submit.rs", include_str!("../../device/submit.rs")),
    ("../../device/transfer.rs", include_str!("../../device/transfer.rs")),
    ("gpu.rs", include_str!("gpu.rs")),
    ("gpu/alphabet.rs", include_str!("gpu/alphabet.rs")),
    ("gpu/call.rs", include_str!("gpu/call.rs")),
    ("gpu/groups.rs", include_str!("gpu/groups.rs")),
    ("gpu/layout.rs", include_str!("gpu/layout.rs")),
    ("gpu/pairs.rs", include_str!("gpu/pairs.rs")),
    ("gpu/parts.rs", include_str!("gpu/parts.rs")),
    ("gpu/plan.rs", include_str!("gpu/plan.rs")),
    ("gpu/texts.rs", include_str!("gpu/texts.rs")),
    ("gpu/group.wgsl", GROUP),
    ("gpu/long_pairs.wgsl", LONG_PAIRS),
    ("gpu/pairs.wgsl", PAIRS),
    ("gpu/strip.wgsl", STRIP),
    ("gpu/texts.wgsl", TEXTS),
    ("gpu/tile.wgsl", TILE),
    ("gpu/word.wgsl", WORD),
];

const GROUP: &str = include_str!("gpu/group.wgsl");
const LONG_PAIRS: &str = include_str!("gpu/long_pairs.wgsl");
const PAIRS: &str = include_str!("gpu/pairs.wgsl");
const STRIP: &str = include_str!("gpu/strip.wgsl");
const TEXTS: &str = include_str!("gpu/texts.wgsl");
const TILE: &str = include_str!("gpu/tile.wgsl");
const WORD: &str = include_str!("gpu/word.wgsl");

/// Bits that a packed code can have.
const CODE_BITS: [usize; 3] = [8, 16, 32];

/// Every shader of this kernel, in every shape that is used.
pub(super) fn shaders() -> Vec<Shader> {
    let mut all = Vec::new();
    for bits in CODE_BITS {
        all.extend(groups::SHAPES.map(|shape| texts_shader(shape, bits)));
        all.push(strip_shader(bits));
    }
    for (planes, bits) in [(2, 8), (5, 8), (8, 8), (16, 16), (32, 32)] {
        all.extend([pairs_shader(planes, bits), long_pairs_shader(planes, bits)]);
    }
    all
}

fn texts_shader(shape: Shape, bits: usize) -> Shader {
    let words = match shape.words {
        1 => parts::WORDS_1,
        2 => parts::WORDS_2,
        4 => parts::WORDS_4,
        _ => parts::WORDS_8,
    };
    with_shape(Shader::new("myers texts", &[TEXTS, WORD, GROUP, words], "texts"), shape, bits)
}

fn strip_shader(bits: usize) -> Shader {
    let parts = [STRIP, WORD, GROUP, parts::WORDS_8, parts::KEPT_8];
    with_shape(Shader::new("myers strip", &parts, "strip"), groups::STRIP_SHAPE, bits)
}

fn planes_part(planes: usize) -> &'static str {
    match planes {
        2 => parts::PLANES_2,
        5 => parts::PLANES_5,
        8 => parts::PLANES_8,
        16 => parts::PLANES_16,
        _ => parts::PLANES_32,
    }
}

fn pairs_shader(planes: usize, bits: usize) -> Shader {
    let shader = Shader::new("myers pairs", &[PAIRS, WORD, TILE, planes_part(planes)], "short_pairs");
    shader.with_params(Pairs::LAYOUT).set("BITS", as_u32(bits)).set("PLANES", as_u32(planes))
}

fn long_pairs_shader(planes: usize, bits: usize) -> Shader {
    let shader = Shader::new("myers long pairs", &[LONG_PAIRS, WORD, TILE, planes_part(planes)], "long_pairs");
    shader.with_params(LongPairs::LAYOUT).set("BITS", as_u32(bits)).set("PLANES", as_u32(planes))
}

fn with_shape(shader: Shader, shape: Shape, bits: usize) -> Shader {
    let shader = shader.with_params(Work::LAYOUT).set("BITS", as_u32(bits));
    shader.set("WORDS", as_u32(shape.words)).set("PER", as_u32(shape.per))
}

/// Whether an error of the device only says that this work is none for it, so that the CPU path should take it: beyond a
/// limit, or out of device memory. Anything else is a failure to be reported.
pub fn is_for_the_cpu(error: &Error) -> bool {
    matches!(error, Error::Limit { .. } | Error::Device(DeviceError::Limit { .. } | DeviceError::OutOfMemory { .. }))
}

/// [`all_pairs`](super::all_pairs) on a device. For columns that stay for several calls see [`DeviceTexts`].
///
/// Cost: columns and the rows' tables up, 4 bytes a pair down.
///
/// # Errors
/// [`Error::Shape`] when `distances` has not `rows.len()` x `columns.len()` places; what the device reports.
///
/// # Panics
/// When there are no such rows or columns.
pub fn all_pairs_on_device(
    device: &Arc<Device>,
    row_texts: &Texts,
    rows: Range<usize>,
    column_texts: &Texts,
    columns: Range<usize>,
    cutoff: Option<u32>,
    distances: &mut [u32],
) -> Result<(), Error> {
    let whole = columns == (0..column_texts.len());
    let mut columns = if whole {
        DeviceTexts::new(device, column_texts)?
    } else {
        DeviceTexts::new(device, &column_texts.slice(columns))?
    };
    columns.all_pairs(row_texts, rows, cutoff, distances)
}

/// [`pairs`](super::pairs) on a device. For pairs that stay for several calls see [`DevicePairs`].
///
/// Cost: both sides up, 4 bytes a pair down.
///
/// # Errors
/// [`Error::Shape`] when there are not as many of both, or not as many places for distances; what the device reports.
pub fn pairs_on_device(
    device: &Arc<Device>,
    left: &Texts,
    right: &Texts,
    cutoff: Option<u32>,
    distances: &mut [u32],
) -> Result<(), Error> {
    check("pairs: right side", left.len(), right.len())?;
    check("distances", left.len(), distances.len())?;
    // Texts are what is sorted and interleaved: the longer side.
    let (patterns, texts) = if left.total() <= right.total() { (left, right) } else { (right, left) };
    DevicePairs::new(device, texts)?.distances(patterns, cutoff, distances)
}

/// Device memory of a call, at most, where lengths do not differ much: `texts` of `text_bytes` together as they are packed,
/// 1, 2 or 4 bytes a symbol, and `patterns` of `pattern_length` symbols, one for each text (`is_pairs`) or all for all.
pub(super) fn device_bytes(texts: u64, text_bytes: u64, patterns: u64, pattern_length: u64, is_pairs: bool) -> u64 {
    // Codes, and for each text its place and its length.
    let resident = text_bytes.saturating_add(texts.saturating_mul(12));
    // 16 bytes for 32 columns, and what is kept of a text.
    let edges = (text_bytes / 4).saturating_add(texts.saturating_mul(64));
    let words = pattern_length.div_ceil(32);
    let (operand, places) = if is_pairs {
        (words.saturating_mul(4 * 33).saturating_add(16), texts)
    } else {
        // A table of 257 rows, and, at most, the row of each symbol.
        (words.next_multiple_of(8).saturating_mul(4 * 257).saturating_add(96), texts.saturating_mul(patterns))
    };
    let call = patterns.saturating_mul(operand).saturating_add(places.saturating_mul(4));
    resident.saturating_add(edges).saturating_add(call)
}

fn check(what: &str, expected: usize, found: usize) -> Result<(), Error> {
    if expected == found { Ok(()) } else { Err(Error::Shape { what: what.into(), expected, found }) }
}

/// A step that has nothing to work on: a mistake of the caller, reported and never answered with zeros.
fn wrong(message: &str) -> Error {
    let what = "edit distance on the device".to_owned();
    Error::Device(DeviceError::Internal { what, message: message.to_owned() })
}
