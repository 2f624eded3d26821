use super::*;
use crate::kernels::{Row, Variant};
use crate::simd::Level;
use crate::units::AxisValue;
use std::collections::BTreeSet;

/// A case of letters: form, texts and patterns, lengths of patterns and texts.
fn case(form: &str, [texts, patterns]: [u64; 2], [pattern_length, text_length]: [u64; 2]) -> Case {
    let context = [
        ("form", form.into()),
        ("strings", "letters".into()),
        ("patterns", patterns.into()),
        ("pattern_length", pattern_length.into()),
        ("text_length", text_length.into()),
        ("edits", "unrelated".into()),
        ("cutoff", "no cutoff".into()),
    ];
    let context = context.map(|(name, value): (_, AxisValue)| (name.to_owned(), value)).into();
    Case { size: texts, context, seed: 7, ring: 2, distribution: DISTRIBUTIONS[0].into() }
}

fn with(mut case: Case, axis: &str, value: impl Into<AxisValue>) -> Case {
    case.context.insert(axis.into(), value.into());
    case
}

fn platform() -> Platform {
    Platform::cpu(Level::detect(), 2)
}

#[test]
fn the_axis_of_strings_has_every_kind_that_is_made_first() {
    assert_eq!(STRINGS[..generate_texts::STRINGS.len()], *generate_texts::STRINGS);
    #[cfg(feature = "cli")]
    assert!(STRINGS[generate_texts::STRINGS.len()..].iter().all(|name| inputs::real(name).is_some()));
}

#[test]
fn every_cpu_variant_and_row_agrees_with_equal_checksums() {
    let cases = [
        case("one-to-many", [150, 1], [24, 32]),
        with(case("pairs", [90, 1], [33, 33]), "edits", "10% edits"),
        with(with(case("all-pairs", [40, 7], [65, 65]), "edits", "20% edits"), "cutoff", "cutoff 16"),
        Case { distribution: DISTRIBUTIONS[1].into(), ..with(case("pairs", [90, 1], [5, 9]), "strings", "cjk") },
    ];
    for case in cases {
        let mut prepared = prepare(&case, &platform()).unwrap();
        for input in 0..2 {
            let mut checksums = BTreeSet::new();
            for variant in prepared.variants() {
                for row in [Row::Resident, Row::OneShot] {
                    prepared.run(variant, row, input).unwrap();
                    let agreement = prepared.check(variant, row, input).unwrap();
                    assert_eq!((agreement.compared, agreement.exact), (prepared.work(row).items, agreement.compared));
                    assert_eq!((agreement.max_error, agreement.tolerance), (0.0, 0.0));
                    checksums.insert(agreement.checksum);
                }
            }
            assert_eq!(checksums.len(), 1, "{case:?}: {checksums:?}");
        }
    }
}

#[test]
fn the_inputs_of_a_ring_differ_and_a_seed_gives_the_same_ones() {
    for form in FORMS {
        let mut checksums = Vec::new();
        for seed in [7, 7, 8] {
            let mut prepared = prepare(&Case { seed, ..case(form, [60, 1], [20, 30]) }, &platform()).unwrap();
            let variant = prepared.variants()[0];
            for input in 0..2 {
                prepared.run(variant, Row::Resident, input).unwrap();
                checksums.push(prepared.check(variant, Row::Resident, input).unwrap().checksum);
            }
        }
        assert_eq!(checksums[..2], checksums[2..4]);
        assert_ne!(checksums[0], checksums[1]);
        assert_ne!(checksums[0], checksums[4]);
    }
}

#[test]
fn a_result_that_was_not_computed_is_no_agreement() {
    let mut prepared = prepare(&case("one-to-many", [30, 1], [3, 4]), &platform()).unwrap();
    let variant = prepared.variants()[0];
    prepared.run(variant, Row::Resident, 0).unwrap();
    assert!(prepared.check(variant, Row::Resident, 1).is_err());
    assert!(prepared.check(variant, Row::OneShot, 0).is_err());
    assert!(prepared.check(Variant::Gpu, Row::Resident, 0).is_err());
    assert!(prepared.check(variant, Row::Resident, 0).is_ok());
    assert!(prepared.run(variant, Row::Upload, 0).is_err());
    assert!(prepared.check(variant, Row::Resident, 0).is_err(), "nothing is known after a failed call");
}

#[test]
fn what_a_call_moves_and_computes_is_that_of_the_strings() {
    let work = |case: &Case, row| prepare(case, &platform()).unwrap().work(row);
    // 100 texts of 32 bytes and their 101 offsets; a pattern of 24 and its 2.
    let (texts, pattern) = (100 * 32 + 101 * 8, 24 + 2 * 8);
    let one = case("one-to-many", [100, 1], [24, 32]);
    let resident = work(&one, Row::Resident);
    assert_eq!((resident.bytes_up, resident.bytes_down, resident.bytes_touched), (pattern, 400, texts + pattern));
    assert_eq!((resident.operations, resident.items), (100.0 * 24.0 * 32.0, 100));
    assert_eq!(work(&one, Row::OneShot).bytes_up, texts + pattern);
    assert_eq!(work(&one, Row::KernelOnly).bytes_up, 0);
    let all = work(&case("all-pairs", [100, 5], [24, 32]), Row::Resident);
    assert_eq!((all.operations, all.items, all.bytes_down), (500.0 * 24.0 * 32.0, 500, 2_000));
    let pairs = work(&case("pairs", [100, 1], [24, 32]), Row::Resident);
    assert_eq!((pairs.operations, pairs.items, pairs.bytes_down), (100.0 * 24.0 * 32.0, 100, 400));
}

#[test]
fn edits_make_related_patterns_and_mixed_lengths_make_empty_strings() {
    let of = |case: &Case| inputs::build(&Shape::of(case).unwrap(), case).unwrap();
    let (texts, patterns) = of(&with(case("pairs", [200, 1], [40, 40]), "edits", "5% edits"));
    let distance = |pair| super::super::reference::distance(patterns[0].get(pair), texts.get(pair));
    assert!((0..200).all(|pair| distance(pair) <= 2) && (0..200).any(|pair| distance(pair) == 2));
    // A pattern of one-to-many and of all-pairs is near one of the texts, and not near the others.
    let (texts, patterns) = of(&with(case("all-pairs", [50, 10], [40, 40]), "edits", "5% edits"));
    for pattern in patterns[1].iter() {
        let near = |text: &crate::data::Text<'_>| super::super::reference::distance(pattern, *text) <= 2;
        assert_eq!(texts.iter().filter(near).count(), 1);
    }
    let mixed = Case { distribution: "mixed lengths".into(), ..case("one-to-many", [200, 1], [24, 4]) };
    let lengths: BTreeSet<_> = of(&mixed).0.iter().map(crate::data::Text::len).collect();
    assert_eq!(lengths, (0..=8).collect());
}

#[test]
fn axes_that_make_no_sense_are_refused() {
    let message = |case: &Case| {
        assert!(prepare(case, &platform()).is_err());
        footprint(case).unwrap_err().to_string()
    };
    let one = || case("one-to-many", [10, 1], [24, 32]);
    assert_eq!(message(&case("one-to-many", [0, 1], [24, 32])), "texts: expected at least 1, found 0");
    assert_eq!(
        message(&case("pairs", [10, 2], [24, 32])),
        "patterns: expected 1 for pairs: a text is compared with one pattern, found 2"
    );
    assert_eq!(message(&case("all-pairs", [10, 0], [24, 32])), "patterns: expected at least 1, found 0");
    assert_eq!(
        message(&with(one(), "form", "some")),
        "form: expected one of one-to-many, pairs, all-pairs, found some"
    );
    assert!(message(&with(one(), "cutoff", 2)).starts_with("cutoff: expected one of no cutoff, cutoff 0, "));
    assert_eq!(
        message(&with(one(), "edits", "5% edits")),
        "pattern_length: expected 32, as long as the text that is edited, found 24"
    );
    assert!(message(&case("pairs", [1, 1], [1, u64::from(u32::MAX)])).starts_with("text_length: 4294967295 requested"));
    let strange = Case { distribution: "uniform".into(), ..one() };
    assert_eq!(message(&strange), "distribution: expected one of equal lengths, mixed lengths, found uniform");
    #[cfg(feature = "cli")]
    {
        let words = |texts, length| with(case("one-to-many", [texts, 1], [length, length]), "strings", "words");
        assert_eq!(message(&words(5, 9)), "text_length: expected 8, the mean of words, found 9");
        assert_eq!(message(&words(104_335, 8)), "words: 104335 requested, at most 104334 possible");
    }
}

#[test]
fn the_footprint_is_no_less_than_what_is_built() {
    for strings in generate_texts::STRINGS {
        for (form, patterns) in [("one-to-many", 1), ("pairs", 1), ("all-pairs", 30)] {
            let case = with(case(form, [2_000, patterns], [50, 50]), "strings", *strings);
            let case = with(case, "edits", "10% edits");
            let (host, built) = (footprint(&case).unwrap().host_bytes, prepare(&case, &platform()).unwrap());
            let work = built.work(Row::OneShot);
            assert!(host >= work.bytes_up + work.bytes_down, "{strings}, {form}: {host}");
        }
    }
    // 200,000 texts of 256 bytes: megabytes, not gigabytes.
    let published = footprint(&Case { ring: 4, ..case("one-to-many", [200_000, 1], [24, 256]) }).unwrap();
    assert!((100_000_000..300_000_000).contains(&published.host_bytes), "{published:?}");
    let huge = footprint(&case("all-pairs", [u64::MAX >> 1, u64::MAX >> 1], [9, 9])).unwrap();
    assert_eq!(huge.host_bytes, u64::MAX, "too much is said to be too much");
}

#[test]
#[cfg(feature = "cli")] // Real strings are read from files.
fn every_form_with_every_kind_awkward_lengths_and_cutoffs_are_checked() {
    let cases = check_cases();
    let of = |axis: &str| cases.iter().map(|case| case.context[axis].to_string()).collect::<BTreeSet<_>>();
    for axis in ["pattern_length", "text_length"] {
        assert!(AWKWARD.iter().all(|length| of(axis).contains(&length.to_string())), "{axis}");
    }
    for (axis, names) in [("form", FORMS), ("strings", STRINGS), ("cutoff", CUTOFFS)] {
        assert!(names.iter().all(|name| of(axis).contains(*name)), "{axis}: {:?}", of(axis));
    }
    let both: BTreeSet<_> = cases.iter().map(|case| [&case.context["form"], &case.context["strings"]]).collect();
    assert_eq!(both.len(), FORMS.len() * STRINGS.len(), "every form with every kind");
    assert!(DISTRIBUTIONS.iter().all(|name| cases.iter().any(|case| case.distribution == *name)));
    for case in &cases {
        let shape = Shape::of(case).unwrap();
        // A software adapter does some 10^9 a second, and the reference as many.
        assert!(shape.pairs() * (shape.pattern_length * shape.text_length) as u64 <= 8_000_000, "{case:?}");
    }
}

#[test]
fn every_check_case_agrees_on_the_cpu() {
    for case in check_cases() {
        let mut prepared = prepare(&case, &platform()).unwrap();
        for variant in prepared.variants() {
            for row in [Row::Resident, Row::OneShot] {
                prepared.run(variant, row, 0).unwrap();
                let agreement = prepared.check(variant, row, 0);
                assert!(agreement.is_ok(), "{case:?}, {variant:?}, {row:?}: {}", agreement.unwrap_err());
            }
        }
    }
}

#[cfg(feature = "gpu")]
#[test]
fn the_device_gives_the_same_distances_and_runs_every_row() {
    let Some(device) = crate::device::tests::device("edit distance case", crate::device::Options::default()) else {
        return;
    };
    let cases = [
        case("one-to-many", [300, 1], [24, 32]),
        with(case("pairs", [150, 1], [70, 70]), "edits", "10% edits"),
        with(with(case("all-pairs", [90, 7], [33, 33]), "strings", "cjk"), "cutoff", "cutoff 64"),
    ];
    for case in cases {
        let platform = Platform { device: Some(std::sync::Arc::clone(&device)), ..platform() };
        let mut prepared = prepare(&case, &platform).unwrap();
        assert!(prepared.variants().contains(&Variant::Gpu) && prepared.no_gpu().is_none());
        let items = prepared.work(Row::Resident).items;
        for input in [0, 1, 0] {
            for row in Row::ALL {
                prepared.run(Variant::Gpu, row, input).unwrap();
                if matches!(row, Row::Resident | Row::OneShot | Row::E2eFresh) {
                    let agreement = prepared.check(Variant::Gpu, row, input).unwrap();
                    assert_eq!((agreement.compared, agreement.exact), (items, items), "{case:?}, {row:?}");
                }
            }
        }
        let (resident, one_shot) = (prepared.work(Row::Resident), prepared.work(Row::OneShot));
        assert!(one_shot.bytes_up >= resident.bytes_up && resident.bytes_down >= items * 4);
    }
}

#[cfg(feature = "gpu")]
#[test]
fn without_a_device_the_reason_is_named() {
    let prepared = prepare(&case("pairs", [30, 1], [3, 4]), &platform()).unwrap();
    assert_eq!(prepared.no_gpu().as_deref(), Some("the platform has no device"));
    assert!(!prepared.has_row(Variant::Gpu, Row::Resident));
}
