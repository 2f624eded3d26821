use super::*;
use crate::kernels::{Row, Variant};
use crate::simd::Level;
use crate::units::AxisValue;

fn case(matrix: &str, size: u64, width: u64, values: &str) -> Case {
    let context = [("matrix", matrix.into()), ("width", width.into()), ("values", values.into())];
    let context = context.map(|(name, value): (_, AxisValue)| (name.to_owned(), value)).into();
    Case { size, context, seed: 7, ring: 2, distribution: "gaussian".into() }
}

fn platform() -> Platform {
    Platform::cpu(Level::detect(), 2)
}

#[test]
fn the_axis_of_matrices_has_every_kind_that_is_made_first() {
    assert_eq!(MATRICES[..generate_sparse::MATRICES.len()], *generate_sparse::MATRICES);
    #[cfg(feature = "cli")]
    assert!(REAL.iter().map(|real| real.name).eq(MATRICES[generate_sparse::MATRICES.len()..].iter().copied()));
}

#[test]
fn every_cpu_variant_and_row_agrees_with_equal_checksums() {
    for (matrix, size, width, values) in
        [("skewed", 900, 9, "f64"), ("power-law", 500, 64, "f32"), ("tf-idf", 70, 3, "f64"), ("banded", 30, 1, "f32")]
    {
        let mut prepared = prepare(&case(matrix, size, width, values), &platform()).unwrap();
        for input in 0..2 {
            let mut checksums = Vec::new();
            for variant in prepared.variants() {
                for row in [Row::Resident, Row::OneShot] {
                    prepared.run(variant, row, input).unwrap();
                    let agreement = prepared.check(variant, row, input).unwrap();
                    assert!(
                        agreement.compared >= width * 30 && agreement.exact > agreement.compared / 8,
                        "{agreement:?}"
                    );
                    assert!(agreement.max_error <= 1.0 && agreement.tolerance == 1.0, "{agreement:?}");
                    checksums.push(agreement.checksum);
                }
            }
            assert_eq!(checksums.len(), 4);
            checksums.dedup();
            assert_eq!(checksums.len(), 1, "{matrix} {values}: {checksums:?}");
        }
    }
}

#[test]
fn the_inputs_of_a_ring_differ_and_a_seed_gives_the_same_ones() {
    let mut checksums = Vec::new();
    for seed in [7, 7, 8] {
        let mut prepared = prepare(&Case { seed, ..case("zipf", 40, 5, "f32") }, &platform()).unwrap();
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

#[test]
fn a_result_that_was_not_computed_is_no_agreement() {
    let mut prepared = prepare(&case("banded", 30, 3, "f64"), &platform()).unwrap();
    let variant = prepared.variants()[0];
    prepared.run(variant, Row::Resident, 0).unwrap();
    assert!(prepared.check(variant, Row::Resident, 1).is_err());
    assert!(prepared.check(variant, Row::OneShot, 0).is_err());
    assert!(prepared.check(Variant::Gpu, Row::Resident, 0).is_err());
    assert!(prepared.check(variant, Row::Resident, 0).is_ok());
    assert!(prepared.run(variant, Row::Upload, 0).is_err());
    assert!(prepared.check(variant, Row::Resident, 0).is_err(), "what C holds is not known after a failed call");
}

#[test]
fn what_a_call_moves_and_computes_is_that_of_the_matrix() {
    // 3 x 3 x 3 points, each with all its neighbours: 7^3 entries.
    let prepared = prepare(&case("banded", 27, 4, "f64"), &platform()).unwrap();
    let work = prepared.work(Row::Resident);
    let (a, b, c) = (343 * 12 + 28 * 8, 27 * 4 * 8, 27 * 4 * 8);
    assert_eq!((work.bytes_up, work.bytes_down, work.bytes_touched), (b, c, a + b));
    assert_eq!((work.operations, work.items), (2.0 * 343.0 * 4.0, 27));
    assert_eq!(prepared.work(Row::OneShot).bytes_up, a + b);
    assert_eq!(prepared.work(Row::KernelOnly).bytes_up, 0);
}

#[test]
fn axes_that_make_no_sense_are_refused() {
    let message = |case: &Case| {
        assert!(prepare(case, &platform()).is_err());
        footprint(case).unwrap_err().to_string()
    };
    assert_eq!(message(&case("banded", 30, 0, "f32")), "width: expected at least 1, found 0");
    assert_eq!(message(&case("banded", 0, 3, "f32")), "rows: expected at least 1, found 0");
    assert_eq!(message(&case("banded", 30, 3, "f16")), "values: expected one of f32, f64, found f16");
    assert!(message(&case("dense", 30, 3, "f32")).starts_with("matrix: expected one of tf-idf, zipf, power-law, "));
    assert_eq!(
        message(&case("banded", (1 << 32) + 1, 1, "f32")),
        "rows of banded: 4294967297 requested, at most 4294967296 possible"
    );
    let mut strange = case("banded", 30, 3, "f32");
    strange.distribution = "uniform".into();
    assert_eq!(message(&strange), "distribution: expected one of gaussian, found uniform");
    #[cfg(feature = "cli")]
    assert_eq!(message(&case("wordnet", 20_001, 3, "f32")), "rows of wordnet: 20001 requested, at most 20000 possible");
}

#[test]
fn the_footprint_is_no_less_than_what_is_built() {
    for kind in generate_sparse::MATRICES {
        let case = case(kind, 3_000, 64, "f64");
        let (host, built) = (footprint(&case).unwrap().host_bytes, prepare(&case, &platform()).unwrap());
        let work = built.work(Row::OneShot);
        // A and one B went into `bytes_up`; another B and C beside them.
        let least = work.bytes_up + work.bytes_down + (work.bytes_up - (work.bytes_touched - work.bytes_up));
        assert!(host >= least.min(work.bytes_up + 2 * work.bytes_down), "{kind}: {host} for {least}");
    }
    // 50,000 x 20,000 at 0.2%, 256 columns of f64: megabytes, not gigabytes.
    let published = footprint(&Case { ring: 4, ..case("tf-idf", 50_000, 256, "f64") }).unwrap();
    assert!((400_000_000..800_000_000).contains(&published.host_bytes), "{published:?}");
    let huge = footprint(&case("power-law", 1 << 32, u64::from(u32::MAX), "f64")).unwrap();
    assert_eq!(huge.host_bytes, u64::MAX, "too much is said to be too much");
}

#[test]
fn every_kind_both_types_and_the_awkward_widths_are_checked() {
    let cases = check_cases();
    let of =
        |axis: &str| cases.iter().map(|case| case.context[axis].to_string()).collect::<std::collections::BTreeSet<_>>();
    assert!(MATRICES.iter().all(|kind| of("matrix").contains(*kind)));
    assert!(VALUES.iter().all(|values| of("values").contains(*values)));
    assert!(["1", "3", "8", "9", "64", "100"].iter().all(|width| of("width").contains(*width)));
    for case in &cases {
        let shape = Shape::of(case).unwrap();
        // A software adapter does some 10^9 a second.
        assert!(shape.entries * shape.width as u64 <= 50_000_000, "{case:?}");
    }
}

#[cfg(feature = "gpu")]
#[test]
fn the_device_agrees_within_the_bound_and_runs_every_row() {
    let Some(device) = crate::device::tests::device("sparse case", crate::device::Options::default()) else { return };
    let double = if device.has_f64() { "f64" } else { "f32" };
    for (matrix, values) in [("skewed", "f32"), ("zipf", double)] {
        let platform = Platform { device: Some(std::sync::Arc::clone(&device)), ..platform() };
        let mut prepared = prepare(&case(matrix, 600, 9, values), &platform).unwrap();
        assert!(prepared.variants().contains(&Variant::Gpu) && prepared.no_gpu().is_none());
        for input in [0, 1, 0] {
            for row in Row::ALL {
                prepared.run(Variant::Gpu, row, input).unwrap();
                if matches!(row, Row::Resident | Row::OneShot | Row::E2eFresh) {
                    let agreement = prepared.check(Variant::Gpu, row, input).unwrap();
                    // All of C against the CPU's, and some rows against the reference.
                    assert!(agreement.compared > 600 * 9 && agreement.max_error <= 1.0, "{agreement:?}");
                }
            }
        }
        let (resident, one_shot) = (prepared.work(Row::Resident), prepared.work(Row::OneShot));
        assert!(one_shot.bytes_up > resident.bytes_up && resident.bytes_down >= 600 * 9 * 4);
    }
}

#[cfg(feature = "gpu")]
#[test]
fn without_a_device_the_reason_is_named() {
    let prepared = prepare(&case("banded", 30, 3, "f64"), &platform()).unwrap();
    assert_eq!(prepared.no_gpu().as_deref(), Some("the platform has no device"));
    assert!(!prepared.has_row(Variant::Gpu, Row::Resident));
}
