//! Seeded strings; every kind has a name.
//!
//! | name | symbols | why |
//! |---|---|---|
//! | `letters` | a to z | the alphabet of published figures |
//! | `dna` | A, C, G, T | the smallest alphabet that people have: matches everywhere |
//! | `bytes` | 0 to 255 | more symbols than a register has places, NUL among them |
//! | `cjk` | 3,000 Han characters, and 64 emoji that are three times as frequent | more symbols than a small table can have, from two planes of Unicode |
//!
//! All are independent and, but for the emoji, equally frequent. [`edited`] makes from each string one at some distance, and
//! [`sample`] takes some strings of a list.
//!
//! Random numbers come in blocks of strings, each with a stream of its own that is seeded from (seed, purpose, block). So the
//! strings are made on all threads and are the same for any number of them. The streams are pinned by a test: a change of a
//! dependency cannot alter an input unnoticed.

use super::{LONGEST, Symbols, Text, Texts};
use crate::error::Error;
use rand::RngExt as _;
use rand::seq::SliceRandom as _;
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::SeedableRng as _;
use rayon::prelude::*;
use sha2::{Digest as _, Sha256};
use std::ops::RangeInclusive;

/// The names of all kinds of strings; the first is the default.
pub const STRINGS: &[&str] = &["letters", "dna", "bytes", "cjk"];

/// Strings that share one random stream.
const BLOCK_STRINGS: usize = 256;

/// The Han characters of `cjk`: the first 3,000 of their block.
const HAN: std::ops::Range<u32> = 0x4e00..0x4e00 + 3_000;
/// The emoji of `cjk`: faces.
const EMOJI: std::ops::Range<u32> = 0x1f600..0x1f640;

/// What the random numbers of a stream are for.
#[derive(Debug, Clone, Copy)]
enum Purpose {
    /// The set of strings of this number.
    Strings(u64),
    /// The edits of this number.
    Edits(u64),
    /// The sample of this number.
    Sample(u64),
}

/// The symbols that strings of a named kind are drawn from; what is there several times is as much more frequent.
///
/// # Errors
/// [`Error::Argument`] for an unknown name.
pub fn alphabet(kind: &str) -> Result<Vec<u32>, Error> {
    Ok(match kind {
        "letters" => (b'a'..=b'z').map(u32::from).collect(),
        "dna" => b"ACGT".map(u32::from).to_vec(),
        "bytes" => (0..256).collect(),
        "cjk" => HAN.chain(EMOJI).chain(EMOJI).chain(EMOJI).collect(),
        other => return Err(Error::argument("strings", format!("one of {}", STRINGS.join(", ")), other)),
    })
}

/// `count` strings of a named kind whose lengths lie in `lengths`, each length as likely; made on all threads of the current
/// pool. `call` numbers independent sets of the same seed. O(symbols).
///
/// # Errors
/// [`Error::Argument`] for an unknown name and for a range without a length, [`Error::Limit`] for strings longer than
/// [`LONGEST`] and when memory is not to be had.
pub fn texts(kind: &str, count: usize, lengths: RangeInclusive<usize>, seed: u64, call: u64) -> Result<Texts, Error> {
    let alphabet = alphabet(kind)?;
    let (shortest, longest) = (*lengths.start() as u64, *lengths.end() as u64);
    if shortest > longest {
        return Err(Error::argument("longest length", format!("at least {shortest}"), longest));
    }
    if longest > LONGEST as u64 {
        return Err(Error::Limit { what: format!("symbols of {kind}"), requested: longest, max: LONGEST as u64 });
    }
    let expected = shortest.midpoint(longest).saturating_mul(count as u64);
    let narrow = alphabet.iter().all(|&symbol| symbol < 256);
    let draw = |random: &mut Xoshiro256PlusPlus| alphabet[random.random_range(0..alphabet.len())];
    build(count, expected, narrow, seed, Purpose::Strings(call), |_, random, symbols| {
        let length = random.random_range(shortest..=longest);
        symbols.extend((0..length).map(|_| draw(random)));
    })
}

/// Of each of these strings a copy with edits: so many per cent of its length, rounded, and at least one. An edit is a
/// substitution, an insertion or a deletion, each as likely, anywhere in what the edits before have left; new symbols come
/// from `alphabet`, and may be the old ones. So a distance is at most the number of edits. `call` numbers independent copies
/// of the same seed.
///
/// # Errors
/// [`Error::Argument`] for an empty alphabet, [`Error::Limit`] when memory is not to be had or a string gets longer than
/// [`LONGEST`].
pub fn edited(texts: &Texts, percent: u64, alphabet: &[u32], seed: u64, call: u64) -> Result<Texts, Error> {
    if alphabet.is_empty() {
        return Err(Error::argument("alphabet", "at least one symbol", "none"));
    }
    let narrow = matches!(texts.symbols(), Symbols::Narrow(_)) && alphabet.iter().all(|&symbol| symbol < 256);
    let draw = |random: &mut Xoshiro256PlusPlus| alphabet[random.random_range(0..alphabet.len())];
    build(texts.len(), texts.total() as u64, narrow, seed, Purpose::Edits(call), |number, random, symbols| {
        let start = symbols.len();
        symbols.extend(texts.get(number).iter());
        for _ in 0..edits(texts.get(number), percent) {
            let length = symbols.len() - start;
            match random.random_range(0..3) {
                0 if length > 0 => symbols[start + random.random_range(0..length)] = draw(random),
                1 => symbols.insert(start + random.random_range(0..=length), draw(random)),
                2 if length > 0 => {
                    symbols.remove(start + random.random_range(0..length));
                }
                _ => {}
            }
        }
    })
}

/// How many edits [`edited`] makes.
fn edits(text: Text<'_>, percent: u64) -> u64 {
    ((text.len() as u64).saturating_mul(percent).saturating_add(50) / 100).max(1)
}

/// `count` strings of a list in random order: different ones, and where there are fewer, all of them again and again, each
/// time in another order. `call` numbers independent samples of the same seed.
///
/// # Errors
/// [`Error::Limit`] when the list is empty and strings are asked for.
pub fn sample(texts: &Texts, count: usize, seed: u64, call: u64) -> Result<Texts, Error> {
    if texts.is_empty() && count > 0 {
        return Err(Error::Limit { what: "strings of an empty list".into(), requested: count as u64, max: 0 });
    }
    let mut random = random(seed, Purpose::Sample(call), 0);
    let mut order: Vec<usize> = Vec::new();
    while order.len() < count {
        let start = order.len();
        order.extend(0..texts.len());
        order[start..].shuffle(&mut random);
    }
    order.truncate(count);
    let narrow = matches!(texts.symbols(), Symbols::Narrow(_));
    let expected = order.iter().map(|&number| texts.length(number) as u64).sum();
    build(count, expected, narrow, seed, Purpose::Sample(call), |place, _, symbols| {
        symbols.extend(texts.get(order[place]).iter());
    })
}

/// Neighbouring strings: how long each is, and the symbols of all of them.
struct Block<T> {
    lengths: Vec<usize>,
    symbols: Vec<T>,
}

/// Makes all strings, block by block on all threads. `string` appends the symbols of one.
fn build(
    count: usize,
    expected: u64,
    narrow: bool,
    seed: u64,
    purpose: Purpose,
    string: impl Fn(usize, &mut Xoshiro256PlusPlus, &mut Vec<u32>) + Send + Sync,
) -> Result<Texts, Error> {
    let too_large = || Error::Limit {
        what: format!("bytes for {count} strings"),
        requested: expected.saturating_mul(if narrow { 1 } else { 4 }).saturating_add((count as u64).saturating_mul(8)),
        max: isize::MAX as u64,
    };
    // Asked for before any work is done, so that what cannot be had is known at once.
    let mut offsets: Vec<usize> = Vec::new();
    offsets.try_reserve_exact(count.saturating_add(1)).map_err(|_| too_large())?;
    let expected = usize::try_from(expected).map_err(|_| too_large())?;
    offsets.push(0);
    let symbols = if narrow {
        #[expect(clippy::cast_possible_truncation, reason = "all are below 256")]
        let blocks = blocks(count, seed, purpose, string, |symbol| symbol as u8);
        Symbols::Narrow(joined(blocks, expected, &mut offsets).ok_or_else(too_large)?)
    } else {
        let blocks = blocks(count, seed, purpose, string, |symbol| symbol);
        Symbols::Wide(joined(blocks, expected, &mut offsets).ok_or_else(too_large)?)
    };
    Texts::new(symbols, offsets)
}

fn blocks<T: Send>(
    count: usize,
    seed: u64,
    purpose: Purpose,
    string: impl Fn(usize, &mut Xoshiro256PlusPlus, &mut Vec<u32>) + Send + Sync,
    narrowed: impl Fn(u32) -> T + Send + Sync,
) -> impl IndexedParallelIterator<Item = Block<T>> {
    (0..count.div_ceil(BLOCK_STRINGS)).into_par_iter().map(move |number| {
        let mut random = random(seed, purpose, number);
        let first = number * BLOCK_STRINGS;
        let (mut wide, mut block) = (Vec::new(), Block { lengths: Vec::new(), symbols: Vec::new() });
        for number in first..(first + BLOCK_STRINGS).min(count) {
            wide.clear();
            string(number, &mut random, &mut wide);
            block.lengths.push(wide.len());
            block.symbols.extend(wide.iter().map(|&symbol| narrowed(symbol)));
        }
        block
    })
}

/// The symbols of all blocks, and where each string ends; nothing when there is no memory for so many.
fn joined<T: Copy + Send>(
    blocks: impl IndexedParallelIterator<Item = Block<T>>,
    expected: usize,
    offsets: &mut Vec<usize>,
) -> Option<Vec<T>> {
    let mut symbols: Vec<T> = Vec::new();
    symbols.try_reserve_exact(expected).ok()?;
    for block in blocks.collect::<Vec<_>>() {
        symbols.try_reserve(block.symbols.len()).ok()?;
        symbols.extend_from_slice(&block.symbols);
        for length in block.lengths {
            offsets.push(offsets[offsets.len() - 1] + length);
        }
    }
    Some(symbols)
}

/// The generator of one block of one stream: its state is a digest of all three, so that no two are related.
fn random(seed: u64, purpose: Purpose, block: usize) -> Xoshiro256PlusPlus {
    let (purpose, number) = match purpose {
        Purpose::Strings(call) => (0, call),
        Purpose::Edits(call) => (1, call),
        Purpose::Sample(call) => (2, call),
    };
    let mut digest = Sha256::new();
    for part in [seed, purpose, number, block as u64] {
        digest.update(part.to_le_bytes());
    }
    Xoshiro256PlusPlus::from_seed(digest.finalize().into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn symbols(texts: &Texts) -> Vec<Vec<u32>> {
        texts.iter().map(|text| text.iter().collect()).collect()
    }

    fn digest(texts: &Texts) -> String {
        let mut digest = Sha256::new();
        for text in texts.iter() {
            digest.update((text.len() as u64).to_le_bytes());
            text.iter().for_each(|symbol| digest.update(symbol.to_le_bytes()));
        }
        digest.finalize().iter().take(8).map(|byte| format!("{byte:02x}")).collect()
    }

    #[test]
    fn the_streams_are_pinned() {
        let of = |kind: &str| digest(&texts(kind, 600, 3..=40, 42, 0).unwrap());
        let found: Vec<_> = STRINGS.iter().map(|kind| of(kind)).collect();
        assert_eq!(found, ["b908a7aefc81e37a", "b891ed5bd9fb1817", "b788e4c1e8e1f51f", "9520514c5c68ae81"]);
        let words = texts("letters", 600, 0..=20, 42, 1).unwrap();
        let copies = edited(&words, 10, &alphabet("letters").unwrap(), 42, 0).unwrap();
        let sample = sample(&words, 500, 42, 0).unwrap();
        assert_eq!([copies, sample].map(|texts| digest(&texts)), ["0447109e4342b046", "e144ae44e18417dd"]);
    }

    #[test]
    fn strings_are_of_their_kind_and_lengths() {
        for kind in STRINGS {
            let alphabet: BTreeSet<_> = alphabet(kind).unwrap().into_iter().collect();
            let texts = texts(kind, 1_000, 5..=9, 7, 0).unwrap();
            let lengths: BTreeSet<_> = texts.iter().map(Text::len).collect();
            assert_eq!((texts.len(), lengths.into_iter().collect::<Vec<_>>()), (1_000, vec![5, 6, 7, 8, 9]), "{kind}");
            let found: BTreeSet<_> = symbols(&texts).into_iter().flatten().collect();
            assert!(found.is_subset(&alphabet), "{kind}");
            assert!(
                found.len() == alphabet.len() || (*kind == "cjk" && found.len() > 2_500),
                "{kind}: {}",
                found.len()
            );
            assert_eq!(matches!(texts.symbols(), Symbols::Narrow(_)), *kind != "cjk");
        }
        assert_eq!(texts("dna", 3, 0..=0, 7, 0).unwrap().total(), 0);
        assert!(texts("dna", 0, 4..=4, 7, 0).unwrap().is_empty());
    }

    #[test]
    fn a_seed_and_a_call_give_the_same_strings_on_any_number_of_threads_and_others_differ() {
        let all = |seed, call| {
            let strings = texts("dna", 2_000, 10..=20, seed, call).unwrap();
            let copies = edited(&strings, 10, &alphabet("dna").unwrap(), seed, call).unwrap();
            let sample = sample(&strings, 100, seed, call).unwrap();
            [strings, copies, sample].map(|texts| digest(&texts))
        };
        let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
        let one = pool.install(|| all(1, 0));
        assert_eq!(one, all(1, 0));
        for (part, (other_seed, other_call)) in one.iter().zip(all(2, 0).iter().zip(all(1, 1).iter())) {
            assert!(part != other_seed && part != other_call && other_seed != other_call);
        }
    }

    #[test]
    fn an_edit_of_each_kind_is_made_and_no_more_than_asked_for() {
        let strings = texts("letters", 300, 20..=20, 3, 0).unwrap();
        let other = [u32::from(b'#')];
        let (mut longer, mut shorter, mut as_long) = (0, 0, 0);
        for (copy, string) in symbols(&edited(&strings, 5, &other, 3, 0).unwrap()).iter().zip(symbols(&strings)) {
            // One edit, of a symbol that no string has.
            let new = copy.iter().filter(|symbol| **symbol == other[0]).count();
            let kept = copy.iter().zip(&string).take_while(|(a, b)| a == b).count();
            match copy.len() {
                21 => assert!(new == 1 && copy[kept + 1..] == string[kept..]),
                20 => assert!(new == 1 && copy[kept + 1..] == string[kept + 1..]),
                19 => assert!(new == 0 && copy[kept..] == string[kept + 1..]),
                length => panic!("{length} symbols"),
            }
            *[&mut shorter, &mut as_long, &mut longer][copy.len() - 19] += 1;
        }
        assert!([longer, shorter, as_long].iter().all(|&count| count > 70), "{longer} {shorter} {as_long}");
        for (length, percent, expected) in [(0, 10, 1), (8, 10, 1), (14, 10, 1), (15, 10, 2), (512, 10, 51), (7, 0, 1)]
        {
            assert_eq!(edits(Text::Narrow(&vec![0; length]), percent), expected, "{length} {percent}");
        }
    }

    #[test]
    fn a_sample_has_no_string_twice_before_it_has_all_once() {
        let strings: Texts = (0..500_u32).map(|number| [number]).collect();
        let sampled = symbols(&sample(&strings, 1_300, 5, 0).unwrap()).concat();
        let (first, second, third) = (&sampled[..500], &sampled[500..1_000], &sampled[1_000..]);
        for part in [first, second, third] {
            assert_eq!(part.iter().collect::<BTreeSet<_>>().len(), part.len());
            assert!(!part.is_sorted());
        }
        assert_ne!(first, second);
        let empty = sample(&strings, 0, 5, 0).unwrap();
        assert!(sample(&empty, 0, 5, 0).unwrap().is_empty());
        let message = sample(&empty, 1, 5, 0).unwrap_err().to_string();
        assert_eq!(message, "strings of an empty list: 1 requested, at most 0 possible");
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        let message = |kind: &str, count, lengths| texts(kind, count, lengths, 1, 0).unwrap_err().to_string();
        assert_eq!(message("rna", 1, 1..=1), "strings: expected one of letters, dna, bytes, cjk, found rna");
        #[expect(clippy::reversed_empty_ranges, reason = "it is what is refused")]
        let reversed = 5..=4;
        assert_eq!(message("dna", 1, reversed), "longest length: expected at least 5, found 4");
        assert_eq!(
            message("dna", 1, 0..=LONGEST + 1),
            "symbols of dna: 4294967295 requested, at most 4294967294 possible"
        );
        assert!(message("dna", usize::MAX, 1..=1).starts_with(&format!("bytes for {} strings: ", usize::MAX)));
        assert!(edited(&texts("dna", 1, 1..=1, 1, 0).unwrap(), 5, &[], 1, 0).is_err());
    }
}
