//! The GPU arm on whatever adapter there is, against the reference.

use super::super::{BEYOND, cut, reference};
use super::layout::Limits;
use super::pairs::Lengths;
use super::*;
use crate::data::Text;
use crate::device::{Options, tests::device};

/// Splitmix64: a stream for every seed.
struct Noise(u64);

impl Noise {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.next() % end.max(1) as u64).unwrap()
    }
}

/// Which symbols texts are made of.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Letters {
    Dna,
    Bytes,
    /// More than 256, in the planes of CJK and emoji.
    Wide,
    /// Any number at all.
    Any,
}

const LETTERS: [Letters; 4] = [Letters::Dna, Letters::Bytes, Letters::Wide, Letters::Any];

impl Letters {
    fn symbol(self, noise: &mut Noise) -> u32 {
        let number = |noise: &mut Noise, end| u32::try_from(noise.below(end)).unwrap();
        match self {
            Self::Dna => [65, 67, 71, 84][noise.below(4)],
            Self::Bytes => number(noise, 256),
            Self::Wide if noise.below(4) == 0 => 0x1f600 + number(noise, 50),
            Self::Wide => 0x4e00 + number(noise, 400),
            Self::Any => u32::MAX - number(noise, 3_000) * 1_000,
        }
    }

    fn text(self, length: usize, noise: &mut Noise) -> Vec<u32> {
        (0..length).map(|_| self.symbol(noise)).collect()
    }
}

/// A text of about this length that shares much with another.
fn edited(of: &[u32], length: usize, letters: Letters, noise: &mut Noise) -> Vec<u32> {
    let mut text: Vec<u32> = of.iter().copied().cycle().take(if of.is_empty() { 0 } else { length }).collect();
    for _ in 0..length / 10 + 1 {
        let at = noise.below(text.len() + 1);
        match noise.below(3) {
            0 => text.insert(at, letters.symbol(noise)),
            1 if at < text.len() => drop(text.remove(at)),
            _ if at < text.len() => text[at] = letters.symbol(noise),
            _ => {}
        }
    }
    text
}

/// Patterns around every border: of words, of groups, of strips.
const PATTERNS: [usize; 20] = [0, 1, 7, 24, 31, 32, 33, 63, 64, 65, 100, 127, 128, 129, 255, 256, 257, 300, 513, 1_000];

fn one(symbols: &[u32]) -> Texts {
    [symbols].iter().collect()
}

fn expected(pattern: Text<'_>, texts: &Texts) -> Vec<u32> {
    texts.iter().map(|text| reference::distance(pattern, text)).collect()
}

/// Memory that was something else before.
fn garbage(len: usize) -> Vec<u32> {
    vec![0x5555_5555; len]
}

fn limits(device: &Device) -> Limits {
    Limits::of(device)
}

/// Every cutoff at which something changes, and some more.
fn cutoffs(distances: &[u32]) -> Vec<Option<u32>> {
    let mut sorted = distances.to_vec();
    sorted.sort_unstable();
    let mut all = vec![None, Some(0), Some(BEYOND - 1)];
    for d in [sorted[0], sorted[sorted.len() / 2]] {
        all.extend([d.saturating_sub(1), d, d + 1].map(Some));
    }
    all
}

#[test]
fn patterns_of_every_length_agree_with_the_reference_on_texts_of_every_length() {
    let Some(device) = device("one to many", Options::default()) else { return };
    for letters in LETTERS {
        let mut noise = Noise(letters as u64);
        let parent = letters.text(1_100, &mut noise);
        let mut lengths: Vec<usize> = (0..258).chain([700, 1_500]).collect();
        // Not in the order of their lengths.
        lengths.rotate_left(100);
        let texts: Texts = lengths.iter().map(|&length| edited(&parent, length, letters, &mut noise)).collect();
        let mut resident = DeviceTexts::new(&device, &texts).unwrap();
        for length in PATTERNS {
            let mut pattern = edited(&parent, length, letters, &mut noise);
            pattern.resize(length, 7);
            if length > 2 {
                // A symbol that no text has.
                pattern[length / 2] = 0x10_0000;
            }
            let pattern = one(&pattern);
            let right = expected(pattern.get(0), &texts);
            for cutoff in cutoffs(&right) {
                let mut found = garbage(texts.len());
                resident.one_to_many(pattern.get(0), cutoff, &mut found).unwrap();
                let right: Vec<_> = right.iter().map(|&d| cut(d, cutoff)).collect();
                assert_eq!(found, right, "{letters:?}, pattern of {length}, cutoff {cutoff:?}");
            }
        }
    }
}

/// Pairs of about these lengths, most of them alike.
fn some_pairs(lengths: &[usize], letters: Letters, noise: &mut Noise) -> (Texts, Texts) {
    let left: Vec<_> = lengths.iter().map(|&length| letters.text(length, noise)).collect();
    let right = left.iter().map(|text| match noise.below(4) {
        0 => letters.text(noise.below(text.len() + 40), noise),
        _ => edited(text, text.len(), letters, noise),
    });
    let right: Texts = right.collect();
    (left.iter().collect(), right)
}

fn expected_of_pairs(left: &Texts, right: &Texts) -> Vec<u32> {
    left.iter().zip(right.iter()).map(|(left, right)| reference::distance(left, right)).collect()
}

/// With one invocation for a pair, and with a workgroup for every one that is not empty.
const BOTH: [Lengths; 2] = [Lengths::USUAL, Lengths { most_of_one: 0, most_of_few: 0, steps: 64 }];

#[test]
fn pairs_of_every_length_agree_with_the_reference() {
    let Some(device) = device("pairs", Options::default()) else { return };
    for letters in LETTERS {
        let mut noise = Noise(letters as u64 + 10);
        let mut lengths: Vec<usize> = (0..300).chain(PATTERNS).collect();
        lengths.rotate_left(77);
        let (left, right) = some_pairs(&lengths, letters, &mut noise);
        let right_distances = expected_of_pairs(&left, &right);
        for of in BOTH {
            let mut resident = DevicePairs::within(limits(&device), of, &device, &left, &right).unwrap();
            for cutoff in cutoffs(&right_distances) {
                let mut found = garbage(left.len());
                resident.distances(cutoff, &mut found).unwrap();
                let right: Vec<_> = right_distances.iter().map(|&d| cut(d, cutoff)).collect();
                assert_eq!(found, right, "{letters:?}, cutoff {cutoff:?}, {of:?}");
            }
        }
    }
}

#[test]
fn long_pairs_agree_with_the_reference_across_strips_rounds_and_tiles() {
    let Some(device) = device("long pairs", Options::default()) else { return };
    let mut noise = Noise(5);
    let lengths = [2_047, 2_048, 2_049, 6_200, 1_500, 9_000, 4_097];
    for letters in [Letters::Dna, Letters::Wide] {
        let (left, right) = some_pairs(&lengths, letters, &mut noise);
        let expected = expected_of_pairs(&left, &right);
        for steps in [64, 65, 128] {
            let of = Lengths { steps, ..Lengths::USUAL };
            let mut resident = DevicePairs::within(limits(&device), of, &device, &left, &right).unwrap();
            let mut found = garbage(left.len());
            for _ in 0..2 {
                resident.distances(None, &mut found).unwrap();
                assert_eq!(found, expected, "{letters:?}, {steps} steps");
            }
            let cutoff = Some(expected[3]);
            resident.distances(cutoff, &mut found).unwrap();
            assert_eq!(found, expected.iter().map(|&d| cut(d, cutoff)).collect::<Vec<_>>());
        }
    }
}
