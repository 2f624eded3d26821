//! Distances that rapidfuzz computed (`tests/golden/make_myers.py`), by every call of the CPU path.
#![cfg(feature = "cli")]

use lodestar::data::Texts;
use lodestar::kernels::Platform;
use lodestar::kernels::myers::{BEYOND, PreparedTexts, all_pairs, one_to_many, pairs};
use lodestar::simd::Level;
use std::path::PathBuf;

struct Golden {
    name: &'static str,
    left: Texts,
    right: Texts,
    cases: Vec<Case>,
}

struct Case {
    cutoff: Option<u32>,
    distances: Vec<u32>,
}

fn read(name: &'static str, form: &str) -> Golden {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(format!("tests/golden/myers/{name}.json"));
    let value: serde_json::Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    assert_eq!(value["form"], form, "{name}");
    let texts = |side: &str| {
        let strings = value[side].as_array().unwrap().iter().map(|string| string.as_str().unwrap());
        strings.map(|string| string.chars().map(u32::from).collect::<Vec<_>>()).collect()
    };
    let number = |value: &serde_json::Value| u32::try_from(value.as_u64().unwrap()).unwrap();
    let case = |case: &serde_json::Value| Case {
        cutoff: Some(&case["cutoff"]).filter(|cutoff| !cutoff.is_null()).map(number),
        distances: (case["distances"].as_array().unwrap().iter())
            .map(|distance| if distance.is_null() { BEYOND } else { number(distance) })
            .collect(),
    };
    let cases = value["cases"].as_array().unwrap().iter().map(case).collect();
    Golden { name, left: texts("left"), right: texts("right"), cases }
}

/// Every level of this CPU, with one thread and with several.
fn platforms() -> impl Iterator<Item = Platform> {
    let at = |level| [1, 3].map(|threads| Platform::cpu(level, threads));
    Level::available().into_iter().flat_map(at)
}

/// The place of the first distance that is wrong, if any, with both numbers.
fn disagreement(found: &[u32], expected: &[u32]) -> Option<(usize, u32, u32)> {
    assert_eq!(found.len(), expected.len());
    (0..found.len()).find(|&place| found[place] != expected[place]).map(|at| (at, found[at], expected[at]))
}

fn agree(golden: &Golden, call: &str, platform: &Platform, cutoff: Option<u32>, found: &[u32], expected: &[u32]) {
    let wrong = disagreement(found, expected);
    let Golden { name, .. } = golden;
    let Platform { level, threads, .. } = platform;
    assert_eq!(wrong, None, "{name}: {call}, cutoff {cutoff:?}, {}, {threads} threads", level.name());
}

/// The strings of a list, each reversed.
fn reversed(texts: &Texts) -> Texts {
    texts.iter().map(|text| text.iter().rev().collect::<Vec<_>>()).collect()
}

fn check_pairs(golden: &Golden) {
    let (left, right) = (&golden.left, &golden.right);
    let sides = [(left.clone(), right.clone()), (right.clone(), left.clone()), (reversed(left), reversed(right))];
    for platform in platforms() {
        for Case { cutoff, distances } in &golden.cases {
            for (call, (left, right)) in ["pairs", "the other way round", "reversed"].iter().zip(&sides) {
                let mut found = vec![7; distances.len()];
                pairs(left, right, *cutoff, &mut found, &platform).unwrap();
                agree(golden, call, &platform, *cutoff, &found, distances);
            }
        }
    }
    // Alone, where nothing in the neighbourhood can help or harm.
    let platform = platforms().next().unwrap();
    for Case { cutoff, distances } in &golden.cases {
        let alone = (0..left.len()).map(|pair| {
            let mut found = [7];
            one_to_many(left.get(pair), &right.slice(pair..pair + 1), *cutoff, &mut found, &platform).unwrap();
            found[0]
        });
        agree(golden, "one by one", &platform, *cutoff, &alone.collect::<Vec<_>>(), distances);
    }
}

fn check_all(golden: &Golden) {
    let (left, right) = (&golden.left, &golden.right);
    for platform in platforms() {
        let prepared = PreparedTexts::new(right, &platform);
        for Case { cutoff, distances } in &golden.cases {
            let mut found = vec![7; distances.len()];
            all_pairs(left, 0..left.len(), right, 0..right.len(), *cutoff, &mut found, &platform).unwrap();
            agree(golden, "all pairs", &platform, *cutoff, &found, distances);
            found.fill(7);
            for (row, found) in found.chunks_mut(right.len()).enumerate() {
                one_to_many(left.get(row), right, *cutoff, found, &platform).unwrap();
            }
            agree(golden, "one to many", &platform, *cutoff, &found, distances);
            found.fill(7);
            for (row, found) in found.chunks_mut(right.len()).enumerate() {
                prepared.distances(left.get(row), *cutoff, found, &platform).unwrap();
            }
            agree(golden, "one to prepared texts", &platform, *cutoff, &found, distances);
            // A block out of the middle.
            let (rows, columns) = (1..left.len().min(20), 3..right.len() - 2);
            let mut found = vec![7; rows.len() * columns.len()];
            all_pairs(left, rows.clone(), right, columns.clone(), *cutoff, &mut found, &platform).unwrap();
            let block = rows.flat_map(|row| &distances[row * right.len()..][columns.clone()]).copied();
            agree(golden, "a block", &platform, *cutoff, &found, &block.collect::<Vec<_>>());
        }
    }
}

#[test]
fn awkward_strings_have_the_distances_of_rapidfuzz() {
    let golden = read("awkward", "pairs");
    assert!(golden.left.len() > 40 && golden.cases.len() == 7);
    check_pairs(&golden);
}

#[test]
fn lengths_around_the_widths_of_words_have_the_distances_of_rapidfuzz() {
    check_pairs(&read("lengths_pairs", "pairs"));
    check_all(&read("lengths_all", "all"));
}

#[test]
fn words_and_names_have_the_distances_of_rapidfuzz() {
    check_all(&read("words", "all"));
    check_all(&read("names", "all"));
}

#[test]
fn reads_of_dna_have_the_distances_of_rapidfuzz() {
    check_pairs(&read("dna", "pairs"));
}

#[test]
fn han_kana_and_emoji_have_the_distances_of_rapidfuzz() {
    check_all(&read("cjk", "all"));
}

#[test]
fn a_cutoff_lets_through_what_it_equals_and_nothing_above() {
    let golden = read("cutoffs", "pairs");
    let exact = &golden.cases[0];
    assert_eq!(exact.cutoff, None);
    for Case { cutoff, distances } in &golden.cases[1..] {
        let cutoff = cutoff.unwrap();
        for (cut, distance) in distances.iter().zip(&exact.distances) {
            assert_eq!(*cut, if *distance <= cutoff { *distance } else { BEYOND });
        }
        assert!(
            cutoff > 8 || exact.distances.contains(&cutoff) && exact.distances.contains(&(cutoff + 1)) || cutoff > 6
        );
    }
    check_pairs(&golden);
}

#[test]
fn a_distance_that_is_wrong_is_noticed() {
    assert_eq!(disagreement(&[1, 2, BEYOND], &[1, 2, BEYOND]), None);
    assert_eq!(disagreement(&[1, 3, BEYOND], &[1, 2, BEYOND]), Some((1, 3, 2)));
    assert_eq!(disagreement(&[1, 2, 4], &[1, 2, BEYOND]), Some((2, 4, BEYOND)));
}
