use super::*;

/// FNV-1a over the bytes of all arrays: one number that changes when any bit does.
fn hash(words: impl Iterator<Item = u64>) -> u64 {
    words
        .flat_map(u64::to_le_bytes)
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3))
}

fn hash_of(matrix: &Csr<f64>) -> u64 {
    let lengths = matrix.indptr().iter().map(|&position| position as u64);
    let columns = matrix.indices().iter().map(|&column| u64::from(column));
    hash(lengths.chain(columns).chain(matrix.values().iter().map(|value| value.to_bits())))
}

fn lengths(matrix: &Csr<f64>) -> Vec<usize> {
    matrix.indptr().windows(2).map(|pair| pair[1] - pair[0]).collect()
}

fn on_threads<T: Send>(threads: usize, work: impl FnOnce() -> T + Send) -> T {
    rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap().install(work)
}

#[test]
fn the_streams_are_those_of_the_first_release() {
    let hashes: Vec<_> = MATRICES.iter().map(|kind| (*kind, hash_of(&matrix(kind, 700, 42).unwrap()))).collect();
    let expected = [
        ("tf-idf", 8_573_784_965_165_388_485),
        ("zipf", 12_444_707_939_399_962_071),
        ("power-law", 13_497_938_874_270_759_785),
        ("banded", 16_255_689_241_176_533_248),
        ("skewed", 1_381_815_580_684_572_040),
    ];
    assert_eq!(hashes, expected);
    let dense = dense(700, 40, 42, 3).unwrap();
    assert_eq!(hash(dense.values().iter().map(|value| value.to_bits())), 18_434_103_892_255_803_941);
}

#[test]
fn a_matrix_is_the_same_on_any_number_of_threads() {
    for kind in MATRICES {
        let one = on_threads(1, || matrix(kind, 3_000, 7).unwrap());
        assert_eq!(on_threads(3, || matrix(kind, 3_000, 7).unwrap()), one, "{kind}");
    }
    let one = on_threads(1, || dense(300, 200, 7, 0).unwrap());
    assert_eq!(on_threads(3, || dense(300, 200, 7, 0).unwrap()), one);
}

#[test]
fn seeds_and_calls_give_different_matrices() {
    for kind in MATRICES {
        assert_ne!(
            matrix(kind, 300, 1).unwrap().values()[..50],
            matrix(kind, 300, 2).unwrap().values()[..50],
            "{kind}"
        );
    }
    for kind in ["tf-idf", "zipf", "power-law", "skewed"] {
        assert_ne!(matrix(kind, 300, 1).unwrap().indices(), matrix(kind, 300, 2).unwrap().indices(), "{kind}");
    }
    let values = |seed, call| dense(2, 2, seed, call).unwrap().values().to_vec();
    let all = [values(1, 0), values(1, 1), values(2, 0), matrix("banded", 4, 1).unwrap().values().to_vec()];
    for (at, one) in all.iter().enumerate() {
        assert!(all[..at].iter().all(|other| other[0] != one[0]), "number {at}");
    }
}

#[test]
fn blocks_of_a_stream_differ() {
    let tf_idf = matrix("tf-idf", 2 * BLOCK_ROWS, 1).unwrap();
    assert_ne!(tf_idf.row(0).0, tf_idf.row(BLOCK_ROWS).0);
    let dense = dense(2, BLOCK_VALUES, 1, 0).unwrap();
    assert_ne!(dense.row(0), dense.row(1));
}

#[test]
fn values_have_mean_0_and_variance_1() {
    let tf_idf = matrix("tf-idf", 5_000, 3).unwrap();
    let dense = dense(1_000, 200, 3, 0).unwrap();
    for values in [tf_idf.values(), dense.values()] {
        let count = values.len() as f64;
        let mean = values.iter().sum::<f64>() / count;
        let variance = values.iter().map(|value| value * value).sum::<f64>() / count - mean * mean;
        // Four standard errors of 200,000 values.
        assert!(mean.abs() < 0.009 && (variance - 1.0).abs() < 0.0127, "mean {mean}, variance {variance}");
    }
}

#[test]
fn columns_increase_in_every_row_but_the_long_one_of_skewed() {
    for kind in MATRICES {
        for rows in [1, 2, 3, 5, 9, 26, 27, 28, 31, 64, 1_000] {
            let matrix = matrix(kind, rows, 11).unwrap();
            for row in 0..rows {
                let columns = matrix.row(row).0;
                if *kind == "skewed" && row == rows / 3 {
                    let expected = (0..rows).cycle().take(columns.len());
                    assert!(columns.iter().map(|&column| column as usize).eq(expected), "{rows} rows");
                } else {
                    assert!(columns.is_sorted_by(|a, b| a < b), "{kind} of {rows} rows: row {row}: {columns:?}");
                }
            }
        }
    }
}

#[test]
fn every_number_of_rows_works_and_has_its_shape() {
    for kind in MATRICES {
        for rows in (0..70).chain([255, 256, 257, 511, 513]) {
            let matrix = matrix(kind, rows, 5).unwrap();
            let cols = if ["tf-idf", "zipf"].contains(kind) { 20_000 } else { rows };
            assert_eq!((matrix.rows(), matrix.cols()), (rows, cols), "{kind}");
            assert!(matrix.values().iter().all(|value| value.is_finite()));
            assert_eq!(matrix.entries() == 0, rows == 0, "{kind} of {rows} rows");
        }
    }
    for (rows, cols) in [(0, 0), (0, 3), (3, 0), (1, 1)] {
        let dense = dense(rows, cols, 0, 0).unwrap();
        assert_eq!((dense.rows(), dense.cols(), dense.values().len()), (rows, cols, rows * cols));
    }
}

#[test]
fn the_number_of_entries_is_known_beforehand() {
    for (kind, tolerance) in [("tf-idf", 0.005), ("zipf", 0.01), ("power-law", 0.12), ("banded", 0.0), ("skewed", 0.01)]
    {
        for rows in [20_000, 40_001] {
            let made = matrix(kind, rows, 1).unwrap().entries() as f64;
            let expected = entries(kind, rows).unwrap() as f64;
            assert!((made / expected - 1.0).abs() <= tolerance, "{kind}: {made} made, {expected} expected");
        }
    }
    assert_eq!(entries("tf-idf", 50_000).unwrap(), 2_000_000);
    for rows in 0..200 {
        assert_eq!(entries("banded", rows).unwrap(), matrix("banded", rows, 0).unwrap().entries() as u64, "{rows}");
    }
    for kind in MATRICES {
        assert_eq!(entries(kind, 0).unwrap(), 0, "{kind}");
    }
}

#[test]
fn rows_of_tf_idf_vary_as_a_binomial_does_and_its_columns_are_alike() {
    let matrix = matrix("tf-idf", 20_000, 9).unwrap();
    let lengths = lengths(&matrix);
    let mean = lengths.iter().sum::<usize>() as f64 / 20_000.0;
    let variance = lengths.iter().map(|&length| (length as f64 - mean).powi(2)).sum::<f64>() / 20_000.0;
    // 20,000 x 0.002 and 20,000 x 0.002 x 0.998; four standard errors each.
    assert!((mean - 40.0).abs() < 0.18 && (variance - 39.92).abs() < 1.6, "mean {mean}, variance {variance}");
    let mut counts = vec![0u32; 20_000];
    matrix.indices().iter().for_each(|&column| counts[column as usize] += 1);
    // Each is about Poisson of mean 40: the chance of any beyond is below 1e-4.
    assert!(counts.iter().all(|count| (8..90).contains(count)), "{:?}", counts.iter().max());
}

#[test]
fn the_chances_of_row_lengths_sum_to_1() {
    let chances = binomial();
    assert!(chances.is_sorted() && (chances.last().unwrap() - 1.0).abs() < 1e-12, "{:?}", chances.last());
}

#[test]
fn few_columns_of_zipf_hold_most_entries_and_its_rows_differ() {
    let matrix = matrix("zipf", 10_000, 9).unwrap();
    let mut counts = vec![0usize; 20_000];
    matrix.indices().iter().for_each(|&column| counts[column as usize] += 1);
    let places: Vec<_> = (0..20_000).filter(|&column| counts[column] > 3_000).collect();
    assert!(places.iter().any(|&place| place > 5_000), "the frequent columns stand together: {places:?}");
    counts.sort_unstable_by(|a, b| b.cmp(a));
    let share = counts[..200].iter().sum::<usize>() as f64 / matrix.entries() as f64;
    assert!((0.35..0.55).contains(&share), "the first hundredth of the columns holds {share}");
    let lengths = lengths(&matrix);
    let (shortest, longest) = (lengths.iter().min().unwrap(), lengths.iter().max().unwrap());
    assert!(*shortest >= 1 && *shortest < 15 && *longest > 250, "rows of {shortest} to {longest}");
}

#[test]
fn power_law_has_empty_rows_long_rows_and_no_order() {
    let matrix = matrix("power-law", 100_000, 9).unwrap();
    let lengths = lengths(&matrix);
    let empty = lengths.iter().filter(|&&length| length == 0).count() as f64 / 100_000.0;
    let mean = matrix.entries() as f64 / 100_000.0;
    let longest = *lengths.iter().max().unwrap();
    assert!((0.3..0.36).contains(&empty), "{empty} empty");
    assert!((19.0..21.5).contains(&mean) && longest > 1_500, "mean {mean}, longest {longest}");
    // In random order all tenths hold about the same.
    for tenth in lengths.chunks(10_000) {
        let share = tenth.iter().sum::<usize>() as f64 / matrix.entries() as f64;
        assert!((0.085..0.115).contains(&share), "a tenth of the rows holds {share}");
    }
}

#[test]
fn banded_rows_hold_the_neighbours_in_the_cube() {
    let matrix = matrix("banded", 30, 9).unwrap();
    // Side 3: the middle of the cube has all 27, a corner has 8, what is beyond has its diagonal.
    assert_eq!(matrix.row(13).0, (0..27).collect::<Vec<_>>());
    assert_eq!(matrix.row(0).0, [0, 1, 3, 4, 9, 10, 12, 13]);
    assert_eq!(matrix.row(26).0, [13, 14, 16, 17, 22, 23, 25, 26]);
    assert_eq!((27..30).map(|row| matrix.row(row).0.to_vec()).collect::<Vec<_>>(), [[27], [28], [29]]);
    assert_eq!(entries("banded", 97_336).unwrap(), 136u64.pow(3));
}

#[test]
fn the_side_of_the_cube_is_exact() {
    for root in [0, 1, 2, 3, 10, 46, 1_000, 1_625, 1_000_000] {
        assert_eq!(side(root * root * root), root);
        assert_eq!(side((root + 1).pow(3) - 1), root);
    }
    assert_eq!(side(usize::MAX), 2_642_245);
}

#[test]
fn one_row_of_skewed_holds_a_quarter_and_three_in_ten_hold_nothing() {
    let matrix = matrix("skewed", 10_000, 9).unwrap();
    let mut lengths = lengths(&matrix);
    let long = lengths.remove(3_333);
    assert!((long as f64 / matrix.entries() as f64 - 0.25).abs() < 1e-4, "{long} of {}", matrix.entries());
    assert!(long > matrix.cols());
    let empty = lengths.iter().filter(|&&length| length == 0).count();
    // Four standard errors.
    assert!((2_817..=3_183).contains(&empty), "{empty} empty rows");
    assert!(lengths.iter().all(|&length| length == 0 || (10..=30).contains(&length)));
}

#[test]
fn an_unknown_name_lists_those_there_are() {
    let expected = "matrix: expected one of tf-idf, zipf, power-law, banded, skewed, found uniform";
    assert_eq!(matrix("uniform", 1, 0).unwrap_err().to_string(), expected);
    assert_eq!(entries("uniform", 1).unwrap_err().to_string(), expected);
}

#[test]
fn sizes_beyond_memory_are_errors() {
    for kind in ["tf-idf", "zipf"] {
        for rows in [usize::MAX, usize::MAX / 2, 1 << 50] {
            let message = matrix(kind, rows, 0).unwrap_err().to_string();
            let expected = format!("matrix: expected a size that fits into memory, found {rows} rows of {kind}");
            assert_eq!(message, expected);
        }
    }
    for kind in ["power-law", "banded", "skewed"] {
        let message = matrix(kind, (1 << 32) + 1, 0).unwrap_err().to_string();
        assert!(message.ends_with("4294967297 requested, at most 4294967296 possible"), "{message}");
    }
    assert!(entries("tf-idf", usize::MAX).is_err());
    assert!(dense(usize::MAX, 2, 0, 0).is_err());
    assert!(dense(usize::MAX / 16, 1, 0, 0).is_err());
}
