//! [`ByteStrings`]: many strings in one pool of bytes.

use crate::error::Error;

/// A list of byte strings: one pool and the offsets at which each begins. Any bytes, empty strings included.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ByteStrings {
    pool: Vec<u8>,
    offsets: Vec<usize>,
}

impl ByteStrings {
    /// Takes a pool and `n + 1` offsets: string `i` is `pool[offsets[i]..offsets[i + 1]]`.
    ///
    /// # Errors
    /// [`Error::Argument`] when the offsets are empty, do not start at 0, decrease, or do not end with the pool.
    pub fn new(pool: Vec<u8>, offsets: Vec<usize>) -> Result<Self, Error> {
        match offsets.first() {
            None => return Err(Error::argument("byte strings: offsets", "at least one", "none")),
            Some(0) => {}
            Some(first) => return Err(Error::argument("byte strings: offsets[0]", "0", first)),
        }
        if let Some(i) = (1..offsets.len()).find(|&i| offsets[i] < offsets[i - 1]) {
            return Err(Error::argument(
                format!("byte strings: offsets[{i}]"),
                format!("at least {}", offsets[i - 1]),
                offsets[i],
            ));
        }
        let last = offsets[offsets.len() - 1];
        if last != pool.len() {
            return Err(Error::argument(
                format!("byte strings: offsets[{}]", offsets.len() - 1),
                pool.len().to_string(),
                last,
            ));
        }
        Ok(Self { pool, offsets })
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
    pub fn get(&self, index: usize) -> &[u8] {
        &self.pool[self.offsets[index]..self.offsets[index + 1]]
    }

    /// The first string that is not UTF-8, and the byte in it from which on it is not.
    pub fn not_utf8(&self) -> Option<(usize, usize)> {
        // All at once, which is fast; but halves of a code point may lie on two sides of a border.
        if let Ok(text) = std::str::from_utf8(&self.pool)
            && (text.is_ascii() || self.offsets.iter().all(|&offset| text.is_char_boundary(offset)))
        {
            return None;
        }
        let broken = |(index, string)| std::str::from_utf8(string).err().map(|error| (index, error.valid_up_to()));
        self.iter().enumerate().find_map(broken)
    }

    /// The pool and the offsets.
    pub fn into_parts(self) -> (Vec<u8>, Vec<usize>) {
        (self.pool, self.offsets)
    }

    /// All strings in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &[u8]> {
        (0..self.len()).map(|index| self.get(index))
    }
}

impl<S: AsRef<[u8]>> FromIterator<S> for ByteStrings {
    fn from_iter<I: IntoIterator<Item = S>>(strings: I) -> Self {
        let mut pool = Vec::new();
        let mut offsets = vec![0];
        for string in strings {
            pool.extend_from_slice(string.as_ref());
            offsets.push(pool.len());
        }
        Self { pool, offsets }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_come_back_as_they_went_in() {
        let strings: ByteStrings = ["", "a", "", "bc\0"].into_iter().collect();
        assert_eq!(strings.len(), 4);
        assert_eq!(strings.iter().collect::<Vec<_>>(), [&b""[..], b"a", b"", b"bc\0"]);
    }

    #[test]
    fn what_is_not_utf8_is_found_across_borders_too() {
        let first = |strings: &[&[u8]]| strings.iter().collect::<ByteStrings>().not_utf8();
        assert_eq!(first(&[]), None);
        assert_eq!(first(&[b"a", b"", "\u{e9}\u{1f431}".as_bytes(), b"\0"]), None);
        assert_eq!(first(&[b"a", b"bc\xff", b"\xfe"]), Some((1, 2)));
        assert_eq!(first(&["\u{e9}".as_bytes(), b"x\xc3", b"\xa9"]), Some((1, 1)));
    }

    #[test]
    fn broken_offsets_are_named() {
        let message = |offsets: &[usize]| ByteStrings::new(b"abc".to_vec(), offsets.to_vec()).unwrap_err().to_string();
        assert_eq!(message(&[]), "byte strings: offsets: expected at least one, found none");
        assert_eq!(message(&[1, 3]), "byte strings: offsets[0]: expected 0, found 1");
        assert_eq!(message(&[0, 2, 1, 3]), "byte strings: offsets[2]: expected at least 2, found 1");
        assert_eq!(message(&[0, 2]), "byte strings: offsets[1]: expected 3, found 2");
    }
}
