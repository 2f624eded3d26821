//! The GPU arm on whatever adapter there is, against the reference.

use super::super::{BEYOND, cut, reference};
use super::layout::Limits;
use super::plan::Lengths;
use super::*;
use crate::data::Text;
use crate::device::{
    Options, ShaderPatch,
    tests::{Noise, device},
};

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
            let mut resident = DevicePairs::within(limits(&device), of, &device, &right).unwrap();
            for cutoff in cutoffs(&right_distances) {
                let mut found = garbage(left.len());
                resident.distances(&left, cutoff, &mut found).unwrap();
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
            let mut resident = DevicePairs::within(limits(&device), of, &device, &right).unwrap();
            let mut found = garbage(left.len());
            for _ in 0..2 {
                resident.distances(&left, None, &mut found).unwrap();
                assert_eq!(found, expected, "{letters:?}, {steps} steps");
            }
            let cutoff = Some(expected[3]);
            resident.distances(&left, cutoff, &mut found).unwrap();
            assert_eq!(found, expected.iter().map(|&d| cut(d, cutoff)).collect::<Vec<_>>());
        }
    }
}

/// All pairs of these, by the reference.
fn expected_table(rows: &Texts, columns: &Texts) -> Vec<u32> {
    rows.iter().flat_map(|row| expected(row, columns)).collect()
}

#[test]
fn all_pairs_agree_with_the_reference_and_come_in_the_order_of_the_rows() {
    let Some(device) = device("all pairs", Options::default()) else { return };
    for letters in LETTERS {
        let mut noise = Noise(letters as u64 + 20);
        let parent = letters.text(400, &mut noise);
        // More than a group of every shape, in no order, and a long one.
        let rows: Texts = (0..60)
            .map(|i| edited(&parent, [3, 33, 65, 129, 20, 7, 300, 0][i % 8] + i / 8, letters, &mut noise))
            .collect();
        let columns: Texts =
            (0..150).map(|_| edited(&parent, noise.below(90), letters, &mut Noise(noise.next()))).collect();
        let table = expected_table(&rows, &columns);
        for cutoff in cutoffs(&table) {
            let mut found = garbage(table.len());
            all_pairs_on_device(&device, &rows, 0..60, &columns, 0..150, cutoff, &mut found).unwrap();
            assert_eq!(found, table.iter().map(|&d| cut(d, cutoff)).collect::<Vec<_>>(), "{letters:?} {cutoff:?}");
        }
        let mut found = garbage(7 * 20);
        all_pairs_on_device(&device, &rows, 3..10, &columns, 70..90, None, &mut found).unwrap();
        for (row, found) in (3..10).zip(found.chunks_exact(20)) {
            assert_eq!(found, &table[row * 150 + 70..row * 150 + 90], "{letters:?}, row {row}");
        }
    }
}

#[test]
fn nothing_changes_where_buffers_dispatches_and_columns_are_cut() {
    let Some(device) = device("cuts", Options::default()) else { return };
    let mut noise = Noise(30);
    for letters in [Letters::Bytes, Letters::Wide] {
        let rows: Texts = (0..30).map(|i| letters.text([5, 40, 100, 300, 600][i % 5], &mut noise)).collect();
        let columns: Texts = (0..700).map(|_| letters.text(noise.below(150), &mut Noise(noise.next()))).collect();
        let table = expected_table(&rows, &columns);
        let whole = limits(&device);
        for (segment, steps, columns_at_once, workgroups) in [
            (20_000, 1 << 30, 24_576, 65_535),
            (whole.segment, 100_000, 24_576, 65_535),
            (whole.segment, 1 << 30, 32, 65_535),
            (15_000, 50_000, 64, 3),
        ] {
            let cut_limits = Limits { segment, steps, columns: columns_at_once, workgroups, ..whole };
            let mut resident = DeviceTexts::within(cut_limits, &device, &columns).unwrap();
            let mut found = garbage(table.len());
            resident.all_pairs(&rows, 0..rows.len(), None, &mut found).unwrap();
            assert_eq!(found, table, "{letters:?}, {cut_limits:?}");
            let (segments, batches) = resident.pieces();
            assert_eq!(segments > 3 && batches > 1, segment < 1 << 20, "{segments} segments, {batches} batches");
            let cutoff = Some(100);
            let right: Vec<_> = table.iter().map(|&d| cut(d, cutoff)).collect();
            for (row, right) in right.chunks_exact(columns.len()).enumerate().take(5) {
                let mut found = garbage(columns.len());
                resident.one_to_many(rows.get(row), cutoff, &mut found).unwrap();
                assert_eq!(found, right, "{letters:?}, row {row}, {cut_limits:?}");
            }
            let patterns: Texts = (0..columns.len()).map(|i| rows.get(i % 30).iter().collect::<Vec<_>>()).collect();
            let right: Vec<_> = (0..columns.len()).map(|i| right[i % 30 * columns.len() + i]).collect();
            for of in BOTH {
                let mut resident = DevicePairs::within(cut_limits, of, &device, &columns).unwrap();
                let mut found = garbage(columns.len());
                resident.distances(&patterns, cutoff, &mut found).unwrap();
                assert_eq!(found, right, "{letters:?}, pairs, {cut_limits:?}, {of:?}");
                let (segments, parts) = resident.pieces();
                assert!(
                    parts >= segments && (segments > 3) == (segment < 1 << 20),
                    "{segments} segments, {parts} parts"
                );
            }
        }
    }
}

#[test]
fn patterns_that_are_longer_than_their_texts_are_cut_by_themselves() {
    let Some(device) = device("cut patterns", Options::default()) else { return };
    let mut noise = Noise(35);
    let texts: Texts = (0..600).map(|_| Letters::Dna.text(noise.below(9), &mut Noise(noise.next()))).collect();
    let patterns: Texts = (0..600).map(|_| Letters::Dna.text(noise.below(400), &mut Noise(noise.next()))).collect();
    let cut_limits = Limits { segment: 25_000, ..limits(&device) };
    for of in BOTH {
        let mut resident = DevicePairs::within(cut_limits, of, &device, &texts).unwrap();
        let mut found = garbage(600);
        for _ in 0..2 {
            resident.distances(&patterns, None, &mut found).unwrap();
            assert_eq!(found, expected_of_pairs(&patterns, &texts), "{of:?}");
        }
        let (segments, parts) = resident.pieces();
        assert!(segments > 1 && parts > 2 * segments, "{segments} segments, {parts} parts");
    }
}

#[test]
fn texts_longer_than_one_dispatch_and_codes_of_32_bits_agree_with_the_reference() {
    let Some(device) = device("long texts", Options::default()) else { return };
    let mut noise = Noise(40);
    // All different, more than 65,536 of them.
    let long: Vec<u32> = (0..70_000).map(|i: u32| i.wrapping_mul(2_654_435_761)).collect();
    let texts: Texts = [long.clone(), long[500..560].to_vec(), vec![], long[30_000..].to_vec()].iter().collect();
    let mut resident = DeviceTexts::new(&device, &texts).unwrap();
    for length in [1, 20, 40, 300] {
        let pattern = edited(&long[510..], length, Letters::Any, &mut noise);
        let pattern = one(&pattern);
        let right = expected(pattern.get(0), &texts);
        let mut found = garbage(4);
        resident.one_to_many(pattern.get(0), None, &mut found).unwrap();
        assert_eq!(found, right, "pattern of {length}");
        let patterns: Texts = (0..4).map(|_| pattern.get(0).iter().collect::<Vec<_>>()).collect();
        let mut found = garbage(4);
        pairs_on_device(&device, &patterns, &texts, None, &mut found).unwrap();
        assert_eq!(found, right, "pairs with a pattern of {length}");
    }
}

#[test]
fn a_call_after_another_keeps_nothing_of_it() {
    let Some(device) = device("call after call", Options::default()) else { return };
    let mut noise = Noise(50);
    let texts: Texts = (0..100).map(|_| Letters::Bytes.text(noise.below(60), &mut Noise(noise.next()))).collect();
    let mut resident = DeviceTexts::new(&device, &texts).unwrap();
    let mut pairs = DevicePairs::new(&device, &texts).unwrap();
    for length in [10, 300, 10, 12, 31, 40, 1, 0, 500, 300] {
        let pattern = one(&Letters::Bytes.text(length, &mut noise));
        let right = expected(pattern.get(0), &texts);
        let mut found = garbage(100);
        resident.one_to_many(pattern.get(0), None, &mut found).unwrap();
        assert_eq!(found, right, "pattern of {length}");
        let patterns: Texts = (0..100).map(|_| pattern.get(0).iter().collect::<Vec<_>>()).collect();
        let mut found = garbage(100);
        pairs.distances(&patterns, Some(45), &mut found).unwrap();
        assert_eq!(found, right.iter().map(|&d| cut(d, Some(45))).collect::<Vec<_>>(), "pairs with {length}");
    }
}

#[test]
fn other_texts_of_the_same_lengths_go_into_the_same_memory() {
    let Some(device) = device("refill", Options::default()) else { return };
    let mut noise = Noise(55);
    let list = |letters: Letters, noise: &mut Noise| -> Texts {
        // As many symbols in each list, but not the same ones at the same places.
        (0..150).map(|i| if i == 3 { (0..256).collect() } else { letters.text(i % 40, noise) }).collect()
    };
    let patterns = list(Letters::Bytes, &mut noise);
    let first = list(Letters::Bytes, &mut noise);
    let (mut texts, mut pairs) =
        (DeviceTexts::new(&device, &first).unwrap(), DevicePairs::new(&device, &first).unwrap());
    let mut found = garbage(150);
    texts.one_to_many(patterns.get(20), None, &mut found).unwrap();
    pairs.distances(&patterns, None, &mut found).unwrap();
    let allocated = device.allocations();
    for (letters, is_same) in
        [(Letters::Bytes, true), (Letters::Dna, true), (Letters::Wide, false), (Letters::Bytes, false)]
    {
        let list = list(letters, &mut noise);
        texts.refill(&list).unwrap();
        assert!(texts.kernel_only().is_err(), "the patterns before are gone");
        texts.one_to_many(patterns.get(20), None, &mut found).unwrap();
        assert_eq!(found, expected(patterns.get(20), &list), "{letters:?}");
        pairs.refill(&list).unwrap();
        assert!(pairs.kernel_only().is_err(), "the patterns before are gone");
        pairs.distances(&patterns, None, &mut found).unwrap();
        assert_eq!(found, expected_of_pairs(&patterns, &list), "{letters:?}");
        assert_eq!(device.allocations() == allocated, is_same, "{letters:?}");
    }
}

#[test]
fn the_steps_apart_give_what_a_call_gives_and_refuse_to_work_on_nothing() {
    let Some(device) = device("steps", Options::default()) else { return };
    let mut noise = Noise(60);
    let lists: Vec<Texts> = (0..3)
        .map(|_| (0..200).map(|_| Letters::Dna.text(noise.below(50), &mut Noise(noise.next()))).collect())
        .collect();
    let (texts, patterns) = (&lists[0], &lists[1]);
    let mut resident = DeviceTexts::new(&device, &lists[2]).unwrap();
    assert!(resident.kernel_only().is_err());
    let mut found = garbage(2 * 200);
    assert!(resident.download(&mut found).is_err());
    resident.refill(texts).unwrap();
    let some = [patterns.get(3), patterns.get(4)];
    resident.upload_patterns(&some, Some(20)).unwrap();
    assert!(resident.download(&mut found).is_err());
    resident.kernel_only().unwrap();
    resident.download(&mut found).unwrap();
    let right: Vec<_> = some.iter().flat_map(|&p| expected(p, texts)).map(|d| cut(d, Some(20))).collect();
    assert_eq!(found, right);
    assert!(resident.download(&mut found[1..]).is_err());
    assert_eq!(resident.call_bytes().1, 1_600);
    resident.forget_call();
    assert!(resident.kernel_only().is_err());
    assert!(resident.one_to_many(patterns.get(0), None, &mut found).is_err());

    let mut pairs = DevicePairs::new(&device, &lists[2]).unwrap();
    let mut found = garbage(200);
    assert!(pairs.kernel_only().is_err() && pairs.download(&mut found).is_err());
    pairs.refill(texts).unwrap();
    pairs.upload_patterns(patterns, Some(20)).unwrap();
    assert!(pairs.download(&mut found).is_err());
    pairs.kernel_only().unwrap();
    pairs.download(&mut found).unwrap();
    let right: Vec<_> = expected_of_pairs(patterns, texts).into_iter().map(|d| cut(d, Some(20))).collect();
    assert_eq!(found, right);
    pairs.forget_call();
    assert!(pairs.kernel_only().is_err() && pairs.download(&mut found).is_err());
    assert!(pairs.distances(&texts.slice(0..199), None, &mut found).is_err());
    pairs.distances(patterns, Some(20), &mut found).unwrap();
    assert_eq!(found, right);
}

#[test]
fn no_texts_and_no_patterns_are_fine_and_wrong_numbers_of_places_are_refused() {
    let Some(device) = device("nothing", Options::default()) else { return };
    let (none, two) = (Texts::from_iter([[0; 0]; 0]), Texts::from_iter([vec![1, 2], vec![]]));
    DeviceTexts::new(&device, &none).unwrap().one_to_many(two.get(0), None, &mut []).unwrap();
    DevicePairs::new(&device, &none).unwrap().distances(&none, None, &mut []).unwrap();
    pairs_on_device(&device, &none, &none, Some(1), &mut []).unwrap();
    all_pairs_on_device(&device, &two, 0..0, &two, 0..2, None, &mut []).unwrap();
    all_pairs_on_device(&device, &two, 0..2, &two, 1..1, None, &mut []).unwrap();
    for error in [
        pairs_on_device(&device, &two, &none, None, &mut [0; 2]).unwrap_err(),
        pairs_on_device(&device, &two, &two, None, &mut [0]).unwrap_err(),
        all_pairs_on_device(&device, &two, 0..2, &two, 0..2, None, &mut [0; 3]).unwrap_err(),
    ] {
        assert!(matches!(error, Error::Shape { .. }), "{error}");
    }
}

#[test]
fn a_text_or_pattern_beyond_a_binding_is_for_the_cpu() {
    let Some(device) = device("limits", Options::default()) else { return };
    let small = Limits { binding: 4_096, segment: 4_096, ..limits(&device) };
    let texts = one(&vec![1; 5_000]);
    let error = DeviceTexts::within(small, &device, &texts).err().unwrap();
    assert_eq!(error.to_string(), "text 0 on the device, in bytes: 5000 requested, at most 4096 possible");
    assert!(is_for_the_cpu(&error));
    let mut pairs = DevicePairs::within(small, Lengths::USUAL, &device, &one(&[1, 2])).unwrap();
    let error = pairs.distances(&texts, None, &mut [0]).unwrap_err();
    assert!(is_for_the_cpu(&error), "{error}");
}

#[test]
fn every_shader_compiles() {
    let Some(device) = device("shaders", Options::default()) else { return };
    for shader in shaders() {
        device.pipeline(&shader).unwrap();
    }
}

#[test]
fn a_wrong_shader_is_caught() {
    for from in ["(x & vp) + vp=>(x & vp) - vp", "differs |= =>differs ^= ", "row < rows=>row + 1u < rows"] {
        let patch = ShaderPatch::parse(from);
        let Some(device) = device("fault injection", Options { shader_patch: patch, ..Options::default() }) else {
            return;
        };
        let mut noise = Noise(70);
        let (left, right) = some_pairs(&[20, 30, 40, 50, 33, 64], Letters::Bytes, &mut noise);
        let expected = expected_of_pairs(&left, &right);
        let mut found = garbage(6);
        pairs_on_device(&device, &left, &right, None, &mut found).unwrap();
        assert_ne!(found, expected, "{from}");
    }
}
