//! Dense codes for the symbols of texts.

use crate::data::{Symbols, Text, Texts};
use std::collections::HashMap;

/// One past the last code point: below, a symbol's code is looked up in a list.
const LISTED: u32 = 0x11_0000;

/// No code.
const ABSENT: u32 = u32::MAX;

/// The distinct symbols of some texts, numbered from 0.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Alphabet {
    listed: Vec<u32>,
    /// The codes below 256 of the symbols below 256.
    narrow: [u8; 256],
    others: HashMap<u32, u32>,
    size: u32,
}

impl Alphabet {
    /// The symbols of all of them.
    pub(super) fn of(texts: &[&Texts]) -> Self {
        let mut alphabet = Self { listed: vec![ABSENT; 256], narrow: [0; 256], others: HashMap::new(), size: 0 };
        for texts in texts {
            match texts.symbols() {
                Symbols::Narrow(symbols) => {
                    let mut seen = [false; 256];
                    symbols.iter().for_each(|&symbol| seen[usize::from(symbol)] = true);
                    (0..256).filter(|&symbol| seen[symbol as usize]).for_each(|symbol| alphabet.add(symbol));
                }
                Symbols::Wide(symbols) => symbols.iter().for_each(|&symbol| alphabet.add(symbol)),
            }
        }
        for (narrow, code) in alphabet.narrow.iter_mut().zip(&alphabet.listed) {
            *narrow = u8::try_from(*code).unwrap_or(0);
        }
        alphabet
    }

    fn add(&mut self, symbol: u32) {
        let code = if symbol < LISTED {
            let at = symbol as usize;
            if at >= self.listed.len() {
                self.listed.resize((at + 1).next_power_of_two().min(LISTED as usize), ABSENT);
            }
            &mut self.listed[at]
        } else {
            self.others.entry(symbol).or_insert(ABSENT)
        };
        if *code == ABSENT {
            *code = self.size;
            self.size += 1;
        }
    }

    /// The code of a symbol, if one of the texts has it.
    pub(super) fn code(&self, symbol: u32) -> Option<u32> {
        let listed = self.listed.get(symbol as usize).copied();
        let code = listed.or_else(|| self.others.get(&symbol).copied()).unwrap_or(ABSENT);
        (code != ABSENT).then_some(code)
    }

    /// Number of symbols.
    pub(super) fn size(&self) -> usize {
        self.size as usize
    }

    /// Bits of a code as it is packed: 8, 16 or 32.
    pub(super) fn bits(&self) -> usize {
        match self.size {
            0..=0x100 => 8,
            0x101..=0x1_0000 => 16,
            _ => 32,
        }
    }

    /// Packs the codes of a text of these symbols: word `i` goes to place `i * stride`.
    pub(super) fn pack(&self, text: Text<'_>, bits: usize, stride: usize, into: &mut [u32]) {
        let mut places = into.iter_mut().step_by(stride);
        // A symbol that is not there has no code: the texts are those the alphabet was made of.
        match text {
            Text::Narrow(symbols) if bits == 8 => {
                let code = |symbol: u8| self.narrow[usize::from(symbol)];
                let (whole, rest) = symbols.as_chunks();
                // In this order: a zip takes from its first side before it asks the second.
                for (&[a, b, c, d], place) in whole.iter().zip(places.by_ref()) {
                    *place = u32::from_le_bytes([code(a), code(b), code(c), code(d)]);
                }
                if let (false, Some(place)) = (rest.is_empty(), places.next()) {
                    *place = rest.iter().rev().fold(0, |packed, &symbol| packed << 8 | u32::from(code(symbol)));
                }
            }
            text => {
                let per_word = 32 / bits;
                let mut codes = text.iter().map(|symbol| self.code(symbol).unwrap_or(ABSENT));
                for place in places.take(text.len().div_ceil(per_word)) {
                    *place = (0..per_word).zip(&mut codes).fold(0, |packed, (k, code)| packed | code << (k * bits));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_symbol_has_a_code_of_its_own_and_no_other_has_one() {
        let texts: Texts = [vec![7, 0x1f600, 7, 0x4e2d], vec![], vec![u32::MAX, LISTED, 0]].iter().collect();
        let alphabet = Alphabet::of(&[&texts]);
        let mut codes: Vec<_> =
            [7, 0x1f600, 0x4e2d, u32::MAX, LISTED, 0].iter().map(|&s| alphabet.code(s).unwrap()).collect();
        codes.sort_unstable();
        assert_eq!(codes, [0, 1, 2, 3, 4, 5]);
        for absent in [1, 255, 256, 0x4e2e, LISTED - 1, LISTED + 1, u32::MAX - 1] {
            assert_eq!(alphabet.code(absent), None, "{absent}");
        }
        assert_eq!((alphabet.size(), alphabet.bits()), (6, 8));
    }

    #[test]
    fn narrow_symbols_are_packed_to_the_last() {
        for length in (0..20).chain([255, 256]) {
            let symbols: Vec<u8> = (0..=255).rev().step_by(3).cycle().take(length).collect();
            let texts = Texts::new(Symbols::Narrow(symbols), vec![0, length]).unwrap();
            let alphabet = Alphabet::of(&[&texts]);
            let mut packed = vec![0; length.div_ceil(4) + 1];
            alphabet.pack(texts.get(0), 8, 1, &mut packed);
            let bytes = packed.iter().flat_map(|word| word.to_le_bytes()).map(u32::from);
            let right: Vec<_> = texts.get(0).iter().map(|symbol| alphabet.code(symbol).unwrap()).collect();
            assert_eq!(bytes.take(length).collect::<Vec<_>>(), right, "{length} symbols");
            assert_eq!(packed.last(), Some(&0));
        }
    }

    #[test]
    fn codes_take_the_bits_that_the_alphabet_needs() {
        for (symbols, bits) in [(0, 8), (1, 8), (256, 8), (257, 16), (65_536, 16), (65_537, 32)] {
            let texts: Texts = [(1_000..1_000 + symbols).collect::<Vec<u32>>()].iter().collect();
            let alphabet = Alphabet::of(&[&texts]);
            assert_eq!((alphabet.size(), alphabet.bits()), (symbols as usize, bits));
            let mut packed = vec![9; alphabet.size().div_ceil(32 / bits) * 3];
            alphabet.pack(texts.get(0), bits, 3, &mut packed);
            for (i, symbol) in texts.get(0).iter().enumerate() {
                let word = u64::from(packed[i / (32 / bits) * 3]) >> (i % (32 / bits) * bits);
                assert_eq!(
                    word & ((1 << bits) - 1),
                    u64::from(alphabet.code(symbol).unwrap()),
                    "symbol {i} of {symbols}"
                );
            }
            assert!(packed.iter().skip(1).step_by(3).all(|&other| other == 9));
        }
    }
}
