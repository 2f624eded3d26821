//! [`Texts`]: many strings as sequences of symbols.

use super::ByteStrings;
use crate::error::Error;
use std::borrow::Cow;
use std::ops::Range;

/// The symbols of all strings, one after the other. Two symbols are the same if their numbers are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Symbols {
    /// All are below 256: bytes, or text of Latin-1.
    Narrow(Vec<u8>),
    /// Any.
    Wide(Vec<u32>),
}

/// A list of strings as sequences of symbols: numbers that mean bytes, code points or whatever else is compared. Empty
/// strings are strings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Texts {
    symbols: Symbols,
    offsets: Vec<usize>,
}

/// One of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Text<'a> {
    /// Of narrow symbols.
    Narrow(&'a [u8]),
    /// Of wide ones.
    Wide(&'a [u32]),
}

/// The most symbols that a string may have: a distance is at most the longer length, and [`u32::MAX`] means something else.
pub const LONGEST: usize = u32::MAX as usize - 1;

impl Texts {
    /// Bytes are the symbols.
    ///
    /// # Errors
    /// [`Error::Limit`] when a string is longer than [`LONGEST`].
    pub fn of_bytes(strings: ByteStrings) -> Result<Self, Error> {
        let (pool, offsets) = strings.into_parts();
        Self::new(Symbols::Narrow(pool), offsets)
    }

    /// Takes symbols and `n + 1` offsets, as [`ByteStrings::new`] does. Wide symbols that are all below 256 become narrow.
    ///
    /// # Errors
    /// [`Error::Argument`] when the offsets do not fit, [`Error::Limit`] when a string is longer than [`LONGEST`].
    pub fn new(symbols: Symbols, offsets: Vec<usize>) -> Result<Self, Error> {
        let total = match &symbols {
            Symbols::Narrow(symbols) => symbols.len(),
            Symbols::Wide(symbols) => symbols.len(),
        };
        if offsets.first() != Some(&0) || offsets.last() != Some(&total) {
            let found = format!("{:?} to {:?}", offsets.first(), offsets.last());
            return Err(Error::argument("texts: offsets", format!("0 to {total}"), found));
        }
        for (i, ends) in offsets.windows(2).enumerate() {
            match ends[1].checked_sub(ends[0]) {
                None => {
                    let expected = format!("at least {}", ends[0]);
                    return Err(Error::argument(format!("texts: offsets[{}]", i + 1), expected, ends[1]));
                }
                Some(length) if length > LONGEST => {
                    let (requested, max) = (length as u64, LONGEST as u64);
                    return Err(Error::Limit { what: format!("texts: symbols of text {i}"), requested, max });
                }
                Some(_) => {}
            }
        }
        let symbols = match symbols {
            Symbols::Wide(wide) if wide.iter().all(|&symbol| symbol < 256) =>
            {
                #[expect(clippy::cast_possible_truncation, reason = "all are below 256")]
                Symbols::Narrow(wide.into_iter().map(|symbol| symbol as u8).collect())
            }
            symbols => symbols,
        };
        Ok(Self { symbols, offsets })
    }

    /// Number of strings.
    pub fn len(&self) -> usize {
        self.offsets.len() - 1
    }

    /// Whether there is no string.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// One string. Panics if there is no such string.
    pub fn get(&self, index: usize) -> Text<'_> {
        let range = self.offsets[index]..self.offsets[index + 1];
        match &self.symbols {
            Symbols::Narrow(symbols) => Text::Narrow(&symbols[range]),
            Symbols::Wide(symbols) => Text::Wide(&symbols[range]),
        }
    }

    /// Symbols of one string. Panics if there is no such string.
    pub fn length(&self, index: usize) -> usize {
        self.offsets[index + 1] - self.offsets[index]
    }

    /// All strings in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = Text<'_>> {
        (0..self.len()).map(|index| self.get(index))
    }

    /// Some neighbouring strings as a list of their own. Panics if there are no such strings.
    pub fn slice(&self, range: Range<usize>) -> Self {
        let (start, end) = (self.offsets[range.start], self.offsets[range.end]);
        let offsets = self.offsets[range.start..=range.end].iter().map(|offset| offset - start).collect();
        let symbols = match &self.symbols {
            Symbols::Narrow(symbols) => Symbols::Narrow(symbols[start..end].to_vec()),
            Symbols::Wide(symbols) => Symbols::Wide(symbols[start..end].to_vec()),
        };
        Self { symbols, offsets }
    }

    /// The symbols of all strings.
    pub fn symbols(&self) -> &Symbols {
        &self.symbols
    }

    /// The symbols of all strings as wide ones.
    pub fn wide_symbols(&self) -> Cow<'_, [u32]> {
        match &self.symbols {
            Symbols::Narrow(symbols) => symbols.iter().map(|&symbol| symbol.into()).collect(),
            Symbols::Wide(symbols) => Cow::Borrowed(symbols),
        }
    }

    /// Where each string begins among the symbols, and where the last one ends.
    pub fn offsets(&self) -> &[usize] {
        &self.offsets
    }

    /// Symbols of all strings together.
    pub fn total(&self) -> usize {
        self.offsets[self.offsets.len() - 1]
    }
}

impl<S: AsRef<[u32]>> FromIterator<S> for Texts {
    /// # Panics
    /// When a string is longer than [`LONGEST`].
    fn from_iter<I: IntoIterator<Item = S>>(strings: I) -> Self {
        let (mut symbols, mut offsets) = (Vec::new(), vec![0]);
        for string in strings {
            symbols.extend_from_slice(string.as_ref());
            offsets.push(symbols.len());
        }
        Self::new(Symbols::Wide(symbols), offsets).expect("offsets made from the lengths, and short strings")
    }
}

impl<'a> Text<'a> {
    /// Number of symbols.
    pub fn len(self) -> usize {
        match self {
            Self::Narrow(symbols) => symbols.len(),
            Self::Wide(symbols) => symbols.len(),
        }
    }

    /// Whether it is the empty string.
    pub fn is_empty(self) -> bool {
        self.len() == 0
    }

    /// One symbol. Panics if there is no such symbol.
    pub fn symbol(self, index: usize) -> u32 {
        match self {
            Self::Narrow(symbols) => symbols[index].into(),
            Self::Wide(symbols) => symbols[index],
        }
    }

    /// All symbols in order.
    pub fn iter(self) -> impl ExactSizeIterator<Item = u32> + DoubleEndedIterator + 'a {
        (0..self.len()).map(move |index| self.symbol(index))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_come_back_as_they_went_in() {
        for symbols in [[0, 1, 255], [0, 256, u32::MAX]] {
            let strings = [&symbols[..], &[], &symbols[1..]];
            let texts: Texts = strings.iter().collect();
            assert_eq!((texts.len(), texts.total(), texts.length(1)), (3, 5, 0));
            for (text, string) in texts.iter().zip(strings) {
                assert_eq!(text.iter().collect::<Vec<_>>(), string);
            }
            assert_eq!(texts.slice(1..3).iter().map(Text::len).collect::<Vec<_>>(), [0, 2]);
            assert_eq!(texts.slice(2..3).get(0), texts.get(2));
        }
    }

    #[test]
    fn symbols_are_narrow_where_all_are() {
        let of = |symbols: &[u32]| matches!([symbols].iter().collect::<Texts>().symbols(), Symbols::Narrow(_));
        assert!(of(&[]) && of(&[0, 255]) && !of(&[0, 256]));
    }

    #[test]
    fn broken_offsets_are_named() {
        let message =
            |offsets: &[usize]| Texts::new(Symbols::Narrow(vec![1, 2, 3]), offsets.to_vec()).unwrap_err().to_string();
        assert_eq!(message(&[]), "texts: offsets: expected 0 to 3, found None to None");
        assert_eq!(message(&[0, 2]), "texts: offsets: expected 0 to 3, found Some(0) to Some(2)");
        assert_eq!(message(&[0, 2, 1, 3]), "texts: offsets[2]: expected at least 2, found 1");
    }
}
