//! The committed matrices and strings, read as their users read them.
#![cfg(feature = "cli")]

use lodestar::data::Csr;
use lodestar::formats::{Dtype, Names, SparseInput, SparseMatrix, SparseOptions, read_sparse};
use std::path::PathBuf;

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("corpus/sparse")
}

struct Expected {
    name: &'static str,
    layout: &'static str,
    shape: (usize, usize),
    entries: usize,
    longest: usize,
    empty: usize,
    /// The sum of all values and that of their magnitudes, as scipy has them.
    sums: (f64, f64),
}

const MATRICES: &[Expected] = &[
    Expected {
        name: "Erdos971.mtx",
        layout: "pattern symmetric",
        shape: (472, 472),
        entries: 2_628,
        longest: 41,
        empty: 39,
        sums: (2628.0, 2628.0),
    },
    Expected {
        name: "LFAT5.mtx",
        layout: "real symmetric",
        shape: (14, 14),
        entries: 46,
        longest: 5,
        empty: 0,
        sums: (12581499.907366201, 62908555.16819101),
    },
    Expected {
        name: "Pd.mtx.gz",
        layout: "real general",
        shape: (8_081, 8_081),
        entries: 13_036,
        longest: 5,
        empty: 0,
        sums: (-140281.09039262374, 165114.42296137614),
    },
    Expected {
        name: "Ragusa16.mtx",
        layout: "integer general",
        shape: (24, 24),
        entries: 81,
        longest: 9,
        empty: 5,
        sums: (113.0, 113.0),
    },
    Expected {
        name: "arrow_33000.mtx.gz",
        layout: "real general",
        shape: (33_000, 33_000),
        entries: 98_998,
        longest: 33_000,
        empty: 0,
        sums: (164996.0, 230994.0),
    },
    Expected {
        name: "ash219.mtx",
        layout: "pattern general",
        shape: (219, 85),
        entries: 438,
        longest: 2,
        empty: 0,
        sums: (438.0, 438.0),
    },
    Expected {
        name: "bcspwr10.mtx.gz",
        layout: "pattern symmetric",
        shape: (5_300, 5_300),
        entries: 21_842,
        longest: 14,
        empty: 0,
        sums: (21842.0, 21842.0),
    },
    Expected {
        name: "dwt_992.mtx.gz",
        layout: "pattern symmetric",
        shape: (992, 992),
        entries: 16_744,
        longest: 18,
        empty: 0,
        sums: (16744.0, 16744.0),
    },
    Expected {
        name: "empty_0x4.mtx",
        layout: "real general",
        shape: (0, 4),
        entries: 0,
        longest: 0,
        empty: 0,
        sums: (0.0, 0.0),
    },
    Expected {
        name: "lp_e226.mtx.gz",
        layout: "real general",
        shape: (223, 472),
        entries: 2_768,
        longest: 110,
        empty: 0,
        sums: (-3157.9105600000007, 37533.86676),
    },
    Expected {
        name: "west0067.mtx",
        layout: "real general",
        shape: (67, 67),
        entries: 294,
        longest: 6,
        empty: 0,
        sums: (34.30874860000001, 191.09351496),
    },
    Expected {
        name: "wordnet-tfidf.npz",
        layout: "csr",
        shape: (20_000, 11_174),
        entries: 176_881,
        longest: 49,
        empty: 82,
        sums: (52265.953, 52265.953),
    },
];

fn read(name: &str) -> (SparseInput, Csr<f64>) {
    let options = SparseOptions { dtype: Some(Dtype::F64), ..Default::default() };
    let input = read_sparse(&folder().join(name), &options).unwrap();
    let SparseMatrix::F64(matrix) = input.matrix.clone() else { panic!("f64 was asked for") };
    (input, matrix)
}

#[test]
fn every_matrix_is_read_as_what_it_is() {
    for expected in MATRICES {
        let name = expected.name;
        let (input, matrix) = read(name);
        assert!(input.layout.ends_with(expected.layout), "{name}: {}", input.layout);
        assert_eq!((matrix.rows(), matrix.cols()), expected.shape, "{name}");
        assert_eq!(matrix.entries(), expected.entries, "{name}");
        assert_eq!((input.summed, input.repeated), (0, 0), "{name}");
        let lengths = || matrix.indptr().windows(2).map(|pair| pair[1] - pair[0]);
        assert_eq!(lengths().max().unwrap_or(0), expected.longest, "{name}");
        assert_eq!(lengths().filter(|&length| length == 0).count(), expected.empty, "{name}");
        let sums = (matrix.values().iter().sum::<f64>(), matrix.values().iter().map(|value| value.abs()).sum::<f64>());
        // scipy sums in another order, and the weights of terms in f32.
        let close =
            |a: f64, b: f64| (a - b).abs() <= expected.sums.1 * if name.ends_with("npz") { 1e-6 } else { 1e-13 };
        assert!(close(sums.0, expected.sums.0) && close(sums.1, expected.sums.1), "{name}: {sums:?}");
    }
}

#[test]
fn every_matrix_in_the_folder_is_expected_here() {
    let mut present: Vec<_> = std::fs::read_dir(folder())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name != "wordnet-tfidf.txt")
        .collect();
    present.sort();
    assert_eq!(present, MATRICES.iter().map(|expected| expected.name).collect::<Vec<_>>());
}

#[test]
fn what_is_stored_as_one_half_is_symmetric_and_the_rest_is_not() {
    for expected in MATRICES.iter().filter(|expected| expected.shape.0 == expected.shape.1) {
        let (_, matrix) = read(expected.name);
        let symmetric = matrix.transpose().unwrap() == matrix;
        assert_eq!(symmetric, expected.layout.ends_with("symmetric"), "{}", expected.name);
    }
}

#[test]
fn every_column_of_the_matrix_of_terms_has_its_term_and_rows_have_length_1() {
    let (_, matrix) = read("wordnet-tfidf.npz");
    let terms = std::fs::read_to_string(folder().join("wordnet-tfidf.txt")).unwrap();
    let terms: Vec<_> = terms.lines().collect();
    assert_eq!(terms.len(), matrix.cols());
    assert!(terms.is_sorted_by(|a, b| a < b));
    let mut documents = vec![0; terms.len()];
    matrix.indices().iter().for_each(|&column| documents[column as usize] += 1);
    assert_eq!(documents.iter().min(), Some(&2));
    let most = (0..terms.len()).max_by_key(|&column| documents[column]).unwrap();
    assert_eq!((terms[most], documents[most]), ("a", 9_185));
    for row in 0..matrix.rows() {
        let length: f64 = matrix.row(row).1.iter().map(|value| value * value).sum();
        assert!(matrix.row(row).0.is_empty() || (length - 1.0).abs() < 1e-6, "row {row}: {length}");
    }
}

#[test]
fn words_and_names_are_whole_lines_each_there_once() {
    for (path, count, symbols, longest, beyond_ascii, first) in [
        ("corpus/words/american-english.txt.gz", 104_334, 880_476, 23, 256, ["A", "AA", "AAA"]),
        ("corpus/names/surnames.txt.gz", 88_799, 606_623, 13, 0, ["Smith", "Johnson", "Williams"]),
    ] {
        let strings = Names::read(&PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(path)).unwrap();
        let lengths = || strings.iter().map(|string| string.chars().count());
        assert_eq!(
            (strings.len(), lengths().sum::<usize>(), lengths().max()),
            (count, symbols, Some(longest)),
            "{path}"
        );
        assert_eq!(strings.iter().filter(|string| !string.is_ascii()).count(), beyond_ascii, "{path}");
        assert_eq!(strings.iter().take(3).collect::<Vec<_>>(), first);
        let distinct: std::collections::HashSet<_> = strings.iter().collect();
        assert_eq!(distinct.len(), count, "{path}");
        assert!(strings.iter().all(|string| !string.is_empty() && string.trim() == string), "{path}");
    }
}
