//! The CPU path against the reference, at every level this CPU has; and what a distance is.

use super::*;
use crate::data::ByteStrings;
use crate::kernels::Platform;
use crate::simd::Level;
use proptest::prelude::*;
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// Around the edges of words, of blocks of 16 positions and of several words.
const LENGTHS: [usize; 30] = [
    0, 1, 2, 7, 8, 9, 15, 16, 17, 24, 31, 32, 33, 47, 63, 64, 65, 100, 127, 128, 129, 191, 193, 255, 256, 257, 300,
    511, 600, 1030,
];

fn platforms() -> Vec<Platform> {
    Level::available().into_iter().map(|level| Platform::cpu(level, 2)).collect()
}

fn noise(seed: u64) -> Xoshiro256PlusPlus {
    Xoshiro256PlusPlus::seed_from_u64(seed)
}

/// A string over an alphabet: DNA, letters, all bytes, Han characters and more.
fn string(rng: &mut Xoshiro256PlusPlus, alphabet: usize, length: usize) -> Vec<u32> {
    let symbol = |rng: &mut Xoshiro256PlusPlus| match alphabet {
        0 => u32::from(b"ACGT"[rng.random_range(0..4)]),
        1 => rng.random_range(97..123),
        2 => rng.random_range(0..256),
        3 => rng.random_range(0x4E00..0x4E00 + 3_000),
        _ => rng.random(),
    };
    (0..length).map(|_| symbol(rng)).collect()
}

const ALPHABETS: std::ops::Range<usize> = 0..5;

/// Some edits of each kind at any place.
fn edited(rng: &mut Xoshiro256PlusPlus, alphabet: usize, string: &[u32], edits: usize) -> Vec<u32> {
    let mut edited = string.to_vec();
    for _ in 0..edits {
        let symbol = self::string(rng, alphabet, 1)[0];
        let place = rng.random_range(0..=edited.len());
        match rng.random_range(0..3) {
            0 => edited.insert(place, symbol),
            1 if place < edited.len() => drop(edited.remove(place)),
            _ if place < edited.len() => edited[place] = symbol,
            _ => {}
        }
    }
    edited
}

fn one(string: &[u32]) -> Texts {
    [string].iter().collect()
}

fn expected(a: Text<'_>, b: Text<'_>, cutoff: Option<u32>) -> u32 {
    cut(reference::distance(a, b), cutoff)
}

#[test]
fn one_pattern_against_texts_of_every_length() {
    for alphabet in ALPHABETS {
        let mut rng = noise(1 + alphabet as u64);
        for length in LENGTHS.into_iter().filter(|&length| length <= 300) {
            let pattern = one(&string(&mut rng, alphabet, length));
            let texts: Texts = (0..150)
                .map(|i| {
                    let length = LENGTHS[i % 26];
                    let of_pattern: Vec<u32> = pattern.get(0).iter().collect();
                    if i % 3 == 0 {
                        edited(&mut rng, alphabet, &of_pattern, i / 10)
                    } else {
                        string(&mut rng, alphabet, length)
                    }
                })
                .collect();
            let expected: Vec<u32> = texts.iter().map(|text| reference::distance(pattern.get(0), text)).collect();
            for platform in platforms() {
                for count in [0, 1, 63, 150] {
                    let (texts, mut found) = (texts.slice(0..count), vec![7; count]);
                    one_to_many(pattern.get(0), &texts, None, &mut found, &platform).unwrap();
                    assert_eq!(
                        found,
                        expected[..count],
                        "{}, alphabet {alphabet}, pattern of {length}",
                        platform.level
                    );
                }
            }
        }
    }
}

#[test]
fn texts_of_one_length_stay_in_order() {
    let mut rng = noise(3);
    for length in [1, 16, 32, 257] {
        let texts: Texts = (0..300).map(|_| string(&mut rng, 1, length)).collect();
        for pattern in [5, 8, 16, 24, 40, 64, 70] {
            let pattern = one(&string(&mut rng, 1, pattern));
            let expected: Vec<u32> = texts.iter().map(|text| reference::distance(pattern.get(0), text)).collect();
            for platform in platforms() {
                let mut found = vec![0; 300];
                one_to_many(pattern.get(0), &texts, None, &mut found, &platform).unwrap();
                assert_eq!(found, expected, "{}, {length}", platform.level);
            }
        }
    }
}

#[test]
fn patterns_of_any_symbols() {
    // 64 different symbols and one that is not among them: more than a vector of narrow levels looks up at once.
    for wide in [0, 70_000] {
        let pattern = one(&(0..64).map(|i| i * 3 + wide).collect::<Vec<_>>());
        let texts: Texts = (0..100_u32).map(|i| (i..i + 70).map(|j| j * 3 % 256 + wide).collect::<Vec<_>>()).collect();
        let expected: Vec<u32> = texts.iter().map(|text| reference::distance(pattern.get(0), text)).collect();
        for platform in platforms() {
            let mut found = vec![0; 100];
            one_to_many(pattern.get(0), &texts, None, &mut found, &platform).unwrap();
            assert_eq!(found, expected, "{}", platform.level);
        }
    }
}

#[test]
fn pairs_of_every_length() {
    for alphabet in ALPHABETS {
        let mut rng = noise(11 + alphabet as u64);
        let left: Vec<_> = (0..LENGTHS.len() * 9).map(|i| string(&mut rng, alphabet, LENGTHS[i / 9])).collect();
        let right: Vec<_> = left
            .iter()
            .enumerate()
            .map(|(i, left)| match i % 9 {
                0 => left.clone(),
                1 => string(&mut rng, alphabet, left.len()),
                2 => Vec::new(),
                3 => left.iter().rev().copied().collect(),
                4 => string(&mut rng, alphabet, LENGTHS[(i * 7) % LENGTHS.len()]),
                _ => edited(&mut rng, alphabet, left, 1 + left.len() * (i % 9 - 4) / 20),
            })
            .collect();
        let (left, right): (Texts, Texts) = (left.iter().collect(), right.iter().collect());
        let exact: Vec<u32> = left.iter().zip(right.iter()).map(|(a, b)| reference::distance(a, b)).collect();
        for cutoff in [None, Some(0), Some(2), Some(30), Some(64), Some(u32::MAX - 1)] {
            let expected: Vec<u32> = exact.iter().map(|&distance| cut(distance, cutoff)).collect();
            for platform in platforms() {
                let mut found = vec![7; left.len()];
                pairs(&left, &right, cutoff, &mut found, &platform).unwrap();
                if found != expected {
                    let at = (0..found.len()).find(|&at| found[at] != expected[at]).unwrap();
                    panic!(
                        "{}, alphabet {alphabet}, cutoff {cutoff:?}, lengths {} and {}: expected {}, found {}",
                        platform.level,
                        left.length(at),
                        right.length(at),
                        expected[at],
                        found[at]
                    );
                }
            }
        }
    }
}

#[test]
fn a_cutoff_at_the_distance_lets_it_through() {
    let mut rng = noise(5);
    for length in [3, 8, 20, 40, 70, 200, 700] {
        let left = string(&mut rng, 1, length);
        for edits in [1, 2, length / 3, length] {
            let (left, right) = (one(&left), one(&edited(&mut rng, 1, &left, edits)));
            let distance = reference::distance(left.get(0), right.get(0));
            for platform in platforms() {
                for cutoff in distance.saturating_sub(2)..distance + 3 {
                    let expected = [cut(distance, Some(cutoff))];
                    let mut found = [7];
                    pairs(&left, &right, Some(cutoff), &mut found, &platform).unwrap();
                    assert_eq!(found, expected, "pairs, {}, {length}, cutoff {cutoff}", platform.level);
                    one_to_many(left.get(0), &right, Some(cutoff), &mut found, &platform).unwrap();
                    assert_eq!(found, expected, "one to many, {}, {length}, cutoff {cutoff}", platform.level);
                    all_pairs(&left, 0..1, &right, 0..1, Some(cutoff), &mut found, &platform).unwrap();
                    assert_eq!(found, expected, "all pairs, {}, {length}, cutoff {cutoff}", platform.level);
                }
            }
        }
    }
}

#[test]
fn all_pairs_of_every_length() {
    for alphabet in ALPHABETS {
        let mut rng = noise(21 + alphabet as u64);
        let rows: Texts = (0..40).map(|i| string(&mut rng, alphabet, LENGTHS[i % 24])).collect();
        let columns: Texts = (0..130)
            .map(|i| {
                let length = if i < 100 { i / 3 } else { LENGTHS[i % 24] };
                string(&mut rng, alphabet, length)
            })
            .collect();
        for (part_rows, part_columns) in
            [(0..40, 0..130), (3..17, 20..33), (5..6, 0..130), (0..40, 129..130), (2..2, 0..4)]
        {
            for cutoff in [None, Some(5)] {
                let expected: Vec<u32> = part_rows
                    .clone()
                    .flat_map(|row| part_columns.clone().map(move |column| (row, column)))
                    .map(|(row, column)| expected(rows.get(row), columns.get(column), cutoff))
                    .collect();
                for platform in platforms() {
                    let mut found = vec![7; expected.len()];
                    all_pairs(&rows, part_rows.clone(), &columns, part_columns.clone(), cutoff, &mut found, &platform)
                        .unwrap();
                    assert_eq!(
                        found, expected,
                        "{}, alphabet {alphabet}, {part_rows:?} {part_columns:?}",
                        platform.level
                    );
                }
            }
        }
    }
}

#[test]
fn rows_that_begin_alike() {
    // What is shared ends at every place, in no order: nothing, all of a row, more than is kept.
    for alphabet in [1, 3, 4] {
        let mut rng = noise(41 + alphabet as u64);
        let stem = string(&mut rng, alphabet, 90);
        let row = |i: usize, rng: &mut _| {
            let tail = string(rng, alphabet, i % 3);
            [&stem[..i * 7 % 91], &tail].concat()
        };
        let rows: Texts = (0..200).map(|i| row(i, &mut rng)).collect();
        // Words of 8, 16, 32 and 64 bits and longer ones, one or many side by side.
        let columns: Texts = (0..260)
            .map(|i| {
                let length = [3, 8, 16, 9, 30, 64, 70, 5, 0, 33][if i < 90 { i % 10 } else { i / 30 }];
                let edited = edited(&mut rng, alphabet, &stem, i % 7);
                edited[..length.min(edited.len())].to_vec()
            })
            .collect();
        for cutoff in [None, Some(9)] {
            let expected: Vec<u32> =
                rows.iter().flat_map(|row| columns.iter().map(move |column| expected(row, column, cutoff))).collect();
            for platform in platforms() {
                let mut found = vec![7; expected.len()];
                all_pairs(&rows, 0..200, &columns, 0..260, cutoff, &mut found, &platform).unwrap();
                assert_eq!(found, expected, "{}, alphabet {alphabet}, {cutoff:?}", platform.level);
            }
        }
    }
}

#[test]
fn pairs_that_are_much_alike_stay_in_place() {
    // As many as need no order for each width of a word, now and then one that breaks the row: shorter, longer, empty.
    for (alphabet, typical) in ALPHABETS.zip([6, 13, 29, 31, 61]).chain([(1, 61), (3, 6), (4, 13)]) {
        let mut rng = noise(71 + alphabet as u64);
        let pair = |i: usize, rng: &mut _| {
            let length = match i {
                700..900 if i.is_multiple_of(40) => [0, 3, 20, 40, 70, 300][i / 40 % 6],
                _ => typical + i % 2,
            };
            let left = string(rng, alphabet, length);
            let right = edited(rng, alphabet, &left, 1 + i % 2);
            (left, right)
        };
        let (left, right): (Vec<_>, Vec<_>) = (0..1_100).map(|i| pair(i, &mut rng)).unzip();
        let (left, right): (Texts, Texts) = (left.iter().collect(), right.iter().collect());
        for cutoff in [None, Some(1)] {
            let expected: Vec<u32> = left.iter().zip(right.iter()).map(|(a, b)| expected(a, b, cutoff)).collect();
            for platform in platforms() {
                let mut found = vec![7; 1_100];
                pairs(&left, &right, cutoff, &mut found, &platform).unwrap();
                assert_eq!(found, expected, "{}, alphabet {alphabet}, {typical}, {cutoff:?}", platform.level);
            }
        }
    }
}

#[test]
fn texts_of_mixed_lengths_in_several_tasks() {
    let mut rng = noise(81);
    for wide in [0, 1_000] {
        let text = |i: usize, rng: &mut _| -> Vec<u32> {
            string(rng, 0, i * 7 % 41).into_iter().map(|symbol| symbol + wide).collect()
        };
        let texts: Texts = (0..9_000).map(|i| text(i, &mut rng)).collect();
        for (length, cutoff) in [(24, None), (24, Some(3)), (2, Some(0)), (40, Some(2)), (60, Some(5))] {
            let pattern = one(&text(length * 6 % 41, &mut rng));
            let exact: Vec<u32> = texts.iter().map(|text| expected(pattern.get(0), text, cutoff)).collect();
            for platform in platforms() {
                let mut found = vec![7; 9_000];
                one_to_many(pattern.get(0), &texts, cutoff, &mut found, &platform).unwrap();
                assert_eq!(found, exact, "{}, {length}, {cutoff:?}", platform.level);
                let prepared = PreparedTexts::new(&texts, &platform);
                let mut found = vec![7; 9_000];
                prepared.distances(pattern.get(0), cutoff, &mut found, &platform).unwrap();
                assert_eq!(found, exact, "prepared, {}, {length}, {cutoff:?}", platform.level);
            }
        }
    }
}

#[test]
fn more_columns_than_are_prepared_together() {
    // Symbols that only rows have, and that would be letters of the columns if their upper bits were lost.
    let mut rng = noise(91);
    for (of_rows, of_columns) in [(0, 0), (0, 256), (256, 0), (0x1_0000, 0x1_0000)] {
        let text = |length: usize, wide: u32, rng: &mut _| -> Vec<u32> {
            let beyond = |(place, symbol)| if place % 2 == 1 { symbol + wide } else { symbol };
            string(rng, 0, length).into_iter().enumerate().map(beyond).collect()
        };
        let columns: Texts =
            (0..4_200).map(|i| text([5, 11, 3, 20, 40, 8, 70][i * i % 7], of_columns, &mut rng)).collect();
        let rows: Vec<_> = (0..70).map(|i| text(i % 23, of_rows, &mut rng)).collect();
        let of_row = |row: &Vec<u32>| -> Vec<u32> {
            columns.iter().map(|column| reference::distance(one(row).get(0), column)).collect()
        };
        let exact: Vec<u32> = rows.iter().flat_map(of_row).collect();
        // Few rows, and so many that tables of the columns are shared.
        for times in [1, 12] {
            let (rows, exact): (Texts, _) = (rows.iter().cycle().take(70 * times).collect(), exact.repeat(times));
            for (level, threads) in [(Level::detect(), 1), (Level::detect(), 3), (Level::available()[0], 2)] {
                let mut found = vec![7; exact.len()];
                let platform = Platform::cpu(level, threads);
                all_pairs(&rows, 0..70 * times, &columns, 0..4_200, None, &mut found, &platform).unwrap();
                assert!(
                    found == exact,
                    "{level}, {threads} threads, {times} times, symbols from {of_rows} and {of_columns} on"
                );
            }
        }
    }
}

#[test]
fn long_pairs_of_all_kinds_side_by_side() {
    let mut rng = noise(61);
    let base = string(&mut rng, 1, 3_000);
    let (mut left, mut right) = (Vec::new(), Vec::new());
    for edits in [0, 3, 40, 400] {
        for length in [65, 70, 300, 2_900, 3_000] {
            left.push(base[..length].to_vec());
            right.push(edited(&mut rng, 1, &base[..length.max(1_000)], edits));
        }
    }
    left.extend([vec![], base.clone(), base[..10].to_vec()]);
    right.extend([base.clone(), vec![], base.clone()]);
    let (left, right): (Texts, Texts) = (left.iter().collect(), right.iter().collect());
    let exact: Vec<u32> = left.iter().zip(right.iter()).map(|(a, b)| reference::distance(a, b)).collect();
    for cutoff in [None, Some(1), Some(40), Some(700)] {
        let expected: Vec<u32> = exact.iter().map(|&distance| cut(distance, cutoff)).collect();
        for platform in platforms() {
            let mut found = vec![7; left.len()];
            pairs(&left, &right, cutoff, &mut found, &platform).unwrap();
            assert_eq!(found, expected, "{}, cutoff {cutoff:?}", platform.level);
        }
    }
}

#[test]
fn a_cutoff_ends_nothing_too_early() {
    // All edits at one end, or in the middle: there, what was found so far is what is found at last.
    let mut rng = noise(67);
    let base = string(&mut rng, 1, 3_000);
    let (mut left, mut right) = (Vec::new(), Vec::new());
    for edits in [1, 30, 300] {
        for (from, to) in [(0, 400), (1_300, 1_700), (2_600, 3_000)] {
            let other = [&base[..from], &edited(&mut rng, 1, &base[from..to], edits), &base[to..]].concat();
            // With a frame that is not trimmed.
            left.push([&[98], &base[..], &[98]].concat());
            right.push([&[99], &other[..], &[99]].concat());
        }
    }
    // Hopeless from the beginning, alone and beside others.
    left.push(string(&mut rng, 1, 3_000));
    right.push(string(&mut rng, 1, 3_000));
    let (left, right): (Texts, Texts) = (left.iter().collect(), right.iter().collect());
    let exact: Vec<u32> = left.iter().zip(right.iter()).map(|(a, b)| reference::distance(a, b)).collect();
    for cutoff in exact.iter().flat_map(|&distance| [distance - 1, distance, distance + 1]) {
        let expected: Vec<u32> = exact.iter().map(|&distance| cut(distance, Some(cutoff))).collect();
        for platform in platforms() {
            let mut found = vec![7; left.len()];
            pairs(&left, &right, Some(cutoff), &mut found, &platform).unwrap();
            assert_eq!(found, expected, "{}, cutoff {cutoff}", platform.level);
            for (i, &expected) in expected.iter().enumerate() {
                let mut found = [7];
                pairs(&left.slice(i..i + 1), &right.slice(i..i + 1), Some(cutoff), &mut found, &platform).unwrap();
                assert_eq!(found, [expected], "{}, cutoff {cutoff}, pair {i} alone", platform.level);
            }
        }
    }
}

#[test]
fn a_small_cutoff_loses_no_pair_however_many_there_are() {
    let mut rng = noise(71);
    // Nearly all are near; some are; few are.
    for longest in [4, 9, 14] {
        let texts: Texts = (0..300).map(|i| string(&mut rng, 0, 1 + i % longest)).collect();
        let exact: Vec<u32> = texts
            .iter()
            .flat_map(|a| texts.iter().map(move |b| reference::distance(a, b)).collect::<Vec<_>>())
            .collect();
        for cutoff in [0, 1, 2, 8, 9] {
            let expected: Vec<u32> = exact.iter().map(|&distance| cut(distance, Some(cutoff))).collect();
            for platform in platforms() {
                let mut found = vec![7; exact.len()];
                all_pairs(&texts, 0..300, &texts, 0..300, Some(cutoff), &mut found, &platform).unwrap();
                assert!(found == expected, "{}, up to {longest}, cutoff {cutoff}", platform.level);
            }
        }
    }
}

#[test]
fn texts_of_very_different_lengths_are_not_laid_out() {
    let texts: Texts = (0..300).map(|i| vec![97; if i == 7 { 20_000 } else { 3 }]).collect();
    let pattern = one(&[97; 5]);
    for platform in platforms() {
        let mut found = vec![0; 300];
        PreparedTexts::new(&texts, &platform).distances(pattern.get(0), None, &mut found, &platform).unwrap();
        let expected: Vec<u32> = (0..300).map(|i| if i == 7 { 19_995 } else { 2 }).collect();
        assert_eq!(found, expected, "{}", platform.level);
    }
}

#[test]
fn the_same_for_any_number_of_threads() {
    let mut rng = noise(31);
    let texts: Texts = (0..9_000).map(|i| string(&mut rng, 1, i % 40)).collect();
    let pattern = one(&string(&mut rng, 1, 20));
    let of = |threads| {
        let platform = Platform::cpu(Level::detect(), threads);
        let mut distances = vec![0; 9_000];
        one_to_many(pattern.get(0), &texts, None, &mut distances, &platform).unwrap();
        let mut matrix = vec![0; 700 * 9_000];
        all_pairs(&texts, 100..800, &texts, 0..9_000, None, &mut matrix, &platform).unwrap();
        let mut of_pairs = vec![0; 4_500];
        pairs(&texts.slice(0..4_500), &texts.slice(4_500..9_000), None, &mut of_pairs, &platform).unwrap();
        (distances, matrix, of_pairs)
    };
    let of_one = of(1);
    for row in [0, 123, 699] {
        for column in (0..9_000).step_by(41) {
            let expected = reference::distance(texts.get(100 + row), texts.get(column));
            assert_eq!(of_one.1[row * 9_000 + column], expected, "row {row}, column {column}");
        }
    }
    for threads in [2, 3, 7] {
        assert!(of(threads) == of_one, "{threads} threads");
    }
}

#[test]
fn wrong_shapes_are_named() {
    let texts = Texts::of_bytes(["a", "b"].into_iter().collect::<ByteStrings>()).unwrap();
    let platform = Platform::cpu(Level::detect(), 1);
    let message = |result: Result<(), crate::Error>| result.unwrap_err().to_string();
    let found = message(one_to_many(texts.get(0), &texts, None, &mut [0], &platform));
    assert_eq!(found, "distances: expected 2, found 1");
    let found = message(pairs(&texts, &texts.slice(0..1), None, &mut [0; 2], &platform));
    assert_eq!(found, "pairs: right side: expected 2, found 1");
    let found = message(all_pairs(&texts, 0..2, &texts, 1..2, None, &mut [0], &platform));
    assert_eq!(found, "distances: expected 2, found 1");
}

fn distance(a: &[u32], b: &[u32]) -> u32 {
    let mut found = [0];
    pairs(&one(a), &one(b), None, &mut found, &Platform::cpu(Level::detect(), 1)).unwrap();
    found[0]
}

fn strings() -> impl Strategy<Value = Vec<u32>> {
    prop::collection::vec(prop_oneof![97_u32..101, 0_u32..300], 0..150)
}

proptest! {
    #[test]
    fn a_distance_is_a_metric((a, b, c) in (strings(), strings(), strings())) {
        let (ab, bc, ac) = (distance(&a, &b), distance(&b, &c), distance(&a, &c));
        prop_assert_eq!(ab, distance(&b, &a));
        prop_assert_eq!(ab == 0, a == b);
        prop_assert!(ac <= ab + bc);
        let (short, long) = (a.len().min(b.len()), a.len().max(b.len()));
        prop_assert!((long - short..=long).contains(&(ab as usize)));
    }

    #[test]
    fn a_distance_is_the_same_from_behind((mut a, mut b) in (strings(), strings())) {
        let forwards = distance(&a, &b);
        a.reverse();
        b.reverse();
        prop_assert_eq!(forwards, distance(&a, &b));
    }

    #[test]
    fn what_both_begin_or_end_with_does_not_count((a, b, c) in (strings(), strings(), strings())) {
        let join = |parts: [&[u32]; 2]| parts.concat();
        prop_assert_eq!(distance(&join([&c, &a]), &join([&c, &b])), distance(&a, &b));
        prop_assert_eq!(distance(&join([&a, &c]), &join([&b, &c])), distance(&a, &b));
    }
}
