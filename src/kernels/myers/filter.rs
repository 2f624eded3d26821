//! Which pairs can be at most a cutoff apart: a look at two words tells most that cannot.
//!
//! The signature of a string says for each of 24 classes of symbols whether the string has one of them, and whether it has
//! a second one; 16 more bits run through a cycle as the string gets longer, one bit for each symbol. An edit changes one
//! bit for a symbol that goes, one for a symbol that comes, and one if the length changes: two in all, whatever it does. So
//! strings whose signatures differ in more than twice the cutoff are farther apart; no pair that counts is lost.
//!
//! Of six million pairs of English words, 0.03% pass with a cutoff of 1, 0.5% with 2, 3% with 3, 12% with 4, most with 8.

use crate::data::{Text, Texts};
use crate::simd::{Simd, SimdBase, SimdInt, SimdMask, simd};

const CLASSES: u32 = 24;
const CYCLE: u32 = 16;

/// The signatures of some texts.
pub(super) fn signatures(texts: &Texts, indices: impl Iterator<Item = usize>) -> Vec<u64> {
    indices.map(|index| signature(texts.get(index))).collect()
}

fn signature(text: Text<'_>) -> u64 {
    let of_symbols = match text {
        Text::Narrow(symbols) => of_symbols(symbols.iter().map(|&symbol| symbol.into())),
        Text::Wide(symbols) => of_symbols(symbols.iter().copied()),
    };
    // Ones come in from below, then zeros.
    #[expect(clippy::cast_possible_truncation, reason = "below twice the cycle")]
    let length = (text.len() % (2 * CYCLE as usize)) as u32;
    let ones =
        if length <= CYCLE { (1 << length) - 1 } else { ((1_u64 << (2 * CYCLE - length)) - 1) << (length - CYCLE) };
    of_symbols | ones << (2 * CLASSES)
}

fn of_symbols(symbols: impl Iterator<Item = u32>) -> u64 {
    let (mut once, mut twice) = (0, 0);
    for symbol in symbols {
        // Letters that stand side by side in a script are of different classes.
        let class = ((symbol ^ symbol >> 5 ^ symbol >> 10) & 31) % CLASSES;
        twice |= once & 1 << class;
        once |= 1 << class;
    }
    once | twice << CLASSES
}

/// Calls `found` with every signature, by number, that differs from one in at most `most` bits.
#[simd]
pub(super) fn near<S: Simd>(simd: S, one: u64, signatures: &[u64], most: u32, mut found: impl FnMut(usize)) {
    let lanes = S::u64s::LEN;
    let (of_one, limit) = (S::u64s::splat(simd, one), S::u64s::splat(simd, most.into()));
    let vectors = signatures.chunks_exact(lanes);
    let rest = vectors.remainder();
    let first_of_rest = signatures.len() - rest.len();
    for (at, vector) in vectors.enumerate() {
        let differences = (S::u64s::from_slice(simd, vector) ^ of_one).count_ones();
        let mut near = differences.simd_le(limit).to_bitmask();
        while near > 0 {
            found(at * lanes + near.trailing_zeros() as usize);
            near &= near - 1;
        }
    }
    for (at, signature) in (first_of_rest..).zip(rest) {
        if (signature ^ one).count_ones() <= most {
            found(at);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn of(symbols: &[u32]) -> u64 {
        signature([symbols].iter().collect::<Texts>().get(0))
    }

    #[test]
    fn a_longer_string_changes_one_bit_for_its_length_all_around_the_cycle() {
        for length in 0..100 {
            let (shorter, longer) = (of(&vec![7; length]), of(&vec![7; length + 1]));
            assert_eq!(((shorter ^ longer) >> (2 * CLASSES)).count_ones(), 1, "{length}");
        }
    }

    proptest! {
        #[test]
        fn an_edit_changes_two_bits_at_most(
            string in prop::collection::vec(prop_oneof![97_u32..123, any::<u32>()], 1..60),
            place in any::<prop::sample::Index>(),
            symbol in prop_oneof![97_u32..123, any::<u32>()],
        ) {
            let (before, place) = (of(&string), place.index(string.len()));
            let mut edited = string.clone();
            edited[place] = symbol;
            prop_assert!((before ^ of(&edited)).count_ones() <= 2, "substituted");
            edited.remove(place);
            prop_assert!((before ^ of(&edited)).count_ones() <= 2, "deleted");
        }
    }

    #[test]
    fn the_near_ones_are_found_at_every_level() {
        let signatures: Vec<u64> = (0..77).map(|i| (1_u64 << (i % 23)) - 1).collect();
        for level in crate::simd::Level::available() {
            let mut found = Vec::new();
            crate::dispatch!(level, simd => near(simd, 0b111, &signatures, 2, |at| found.push(at)));
            let expected: Vec<_> = (0..77).filter(|i| (1..=5).contains(&(i % 23))).collect();
            assert_eq!(found, expected, "{level}");
        }
    }
}
