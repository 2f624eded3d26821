//! The CPU path.

use super::{Text, Texts, cut, reference};
use crate::error::Error;
use crate::kernels::Platform;
use std::ops::Range;

/// The distances of one pattern to all texts, in their order.
///
/// # Errors
/// [`Error::Shape`] when `distances` has not as many places as there are texts.
pub fn one_to_many(
    pattern: Text<'_>,
    texts: &Texts,
    cutoff: Option<u32>,
    distances: &mut [u32],
    _platform: &Platform,
) -> Result<(), Error> {
    check_length(texts.len(), distances)?;
    for (distance, text) in distances.iter_mut().zip(texts.iter()) {
        *distance = cut(reference::distance(pattern, text), cutoff);
    }
    Ok(())
}

/// Texts made ready to be compared with one pattern after another.
pub struct PreparedTexts {
    texts: Texts,
}

impl PreparedTexts {
    /// Takes what it needs from the texts. Cost: reads and writes each symbol once.
    ///
    /// # Errors
    /// [`Error::Limit`] when there is no memory.
    pub fn new(texts: &Texts, _platform: &Platform) -> Result<Self, Error> {
        Ok(Self { texts: texts.clone() })
    }

    /// As [`one_to_many`].
    ///
    /// # Errors
    /// As [`one_to_many`].
    pub fn distances(
        &self,
        pattern: Text<'_>,
        cutoff: Option<u32>,
        distances: &mut [u32],
        platform: &Platform,
    ) -> Result<(), Error> {
        one_to_many(pattern, &self.texts, cutoff, distances, platform)
    }
}

/// The distance of each text on the left to the one at its place on the right.
///
/// # Errors
/// [`Error::Shape`] when there are not as many of both, or not as many places for distances.
pub fn pairs(
    left: &Texts,
    right: &Texts,
    cutoff: Option<u32>,
    distances: &mut [u32],
    _platform: &Platform,
) -> Result<(), Error> {
    if left.len() != right.len() {
        return Err(Error::Shape { what: "pairs: right side".into(), expected: left.len(), found: right.len() });
    }
    check_length(left.len(), distances)?;
    for (distance, (left, right)) in distances.iter_mut().zip(left.iter().zip(right.iter())) {
        *distance = cut(reference::distance(left, right), cutoff);
    }
    Ok(())
}

/// The distances of some rows to some columns, row by row: `distances` has `rows.len()` x `columns.len()` places.
///
/// # Errors
/// [`Error::Shape`] when it has not.
///
/// # Panics
/// When there are no such rows or columns.
pub fn all_pairs(
    row_texts: &Texts,
    rows: Range<usize>,
    column_texts: &Texts,
    columns: Range<usize>,
    cutoff: Option<u32>,
    distances: &mut [u32],
    _platform: &Platform,
) -> Result<(), Error> {
    check_length(rows.len() * columns.len(), distances)?;
    if columns.is_empty() {
        return Ok(());
    }
    for (row, distances) in rows.zip(distances.chunks_exact_mut(columns.len())) {
        for (distance, column) in distances.iter_mut().zip(columns.clone()) {
            *distance = cut(reference::distance(row_texts.get(row), column_texts.get(column)), cutoff);
        }
    }
    Ok(())
}

fn check_length(expected: usize, distances: &[u32]) -> Result<(), Error> {
    if distances.len() == expected {
        return Ok(());
    }
    Err(Error::Shape { what: "distances".into(), expected, found: distances.len() })
}
