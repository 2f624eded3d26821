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
    others: HashMap<u32, u32>,
    size: u32,
}

impl Alphabet {
    /// The symbols of all of them.
    pub(super) fn of(texts: &[&Texts]) -> Self {
        let mut alphabet = Self { listed: vec![ABSENT; 256], others: HashMap::new(), size: 0 };
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
        let places = into.iter_mut().step_by(stride);
        let per_word = 32 / bits;
        // A symbol that is not there has no code: the texts are those the alphabet was made of.
        match text {
            Text::Narrow(symbols) => {
                for (place, symbols) in places.zip(symbols.chunks(per_word)) {
                    let codes = symbols.iter().map(|&symbol| self.listed[usize::from(symbol)]);
                    *place = codes.zip(0..).fold(0, |packed, (code, k)| packed | code << (k * bits));
                }
            }
            Text::Wide(symbols) => {
                for (place, symbols) in places.zip(symbols.chunks(per_word)) {
                    let codes = symbols.iter().map(|&symbol| self.code(symbol).unwrap_or(ABSENT));
                    *place = codes.zip(0..).fold(0, |packed, (code, k)| packed | code << (k * bits));
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
