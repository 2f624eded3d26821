//! Matrix Market by hand, edge by edge; what is written is read back; broken text is named by line.

use super::*;
use crate::data::Csr;
use proptest::prelude::*;
use std::path::PathBuf;

fn file(name: &str, bytes: &[u8]) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(name);
    std::fs::write(&path, bytes).unwrap();
    (folder, path)
}

fn input(text: &[u8]) -> SparseInput {
    let (_folder, path) = file("a.mtx", text);
    read_sparse(&path, &SparseOptions { dtype: Some(Dtype::F64), ..SparseOptions::default() })
        .unwrap_or_else(|error| panic!("{error}"))
}

fn read(text: &[u8]) -> Csr<f64> {
    match input(text).matrix {
        SparseMatrix::F64(matrix) => matrix,
        SparseMatrix::F32(_) => panic!("f64 was asked for"),
    }
}

/// The message about a file, without its path.
fn message_of(name: &str, text: &[u8]) -> String {
    let (_folder, path) = file(name, text);
    let message = read_sparse(&path, &SparseOptions::default()).unwrap_err().to_string();
    assert!(!message.contains('\n'), "{message}");
    message.strip_prefix(&format!("{}: ", path.display())).unwrap_or_else(|| panic!("no path: {message}")).to_owned()
}

fn message(text: &str) -> String {
    message_of("a.mtx", text.as_bytes())
}

/// The entries of a 2 x 3 matrix, one a row and one more.
fn plain() -> Csr<f64> {
    Csr::new(2, 3, vec![0, 2, 3], vec![0, 2, 1], vec![0.5, -2.0, 300.0]).unwrap()
}

const BANNER: &str = "%%MatrixMarket matrix coordinate real general\n";

#[test]
fn every_way_to_lay_out_the_lines_is_read() {
    let good = format!("{BANNER}2 3 3\n1 1 0.5\n1 3 -2\n2 2 3e2\n");
    assert_eq!(read(good.as_bytes()), plain());
    let variants = [
        good.replace('\n', "\r\n"),
        format!("\u{feff}{good}"),
        good.trim_end().to_owned(),
        good.trim_end().replace('\n', "\r\n"),
        format!("{good}\n\n  \n\t\n"),
        good.to_uppercase(),
        good.to_lowercase(),
        "%%MatrixMarket   matrix\tcoordinate  double general \n\n%\n  % indented\n\n2 3 3\n1 1 0.5\n1 3 -2\n2 2 3e2"
            .to_owned(),
        format!("{BANNER}2 3\n% between\n3\n1 1 0.5\n1 3 -2\n2 2 3e2\n"),
        format!("{BANNER} 2\t3  3 \n\t1 1 0.5\n % among the entries: 1 1 1\n\n  1\t3\t-2 \n%\n2   2 3E+2\t\n% the end"),
        format!("{BANNER}2 3 3\n2 2 3D2\n1 3 -2.d0\n1 1 5.0D-01\n"),
        format!("{BANNER}2 3 4\n2 2 100\n1 3 -2\n1 1 .5\n2 2 +200.\n"),
    ];
    for text in variants {
        assert_eq!(read(text.as_bytes()), plain(), "{text:?}");
    }
    assert_eq!(input(format!("{BANNER}1 1 3\n1 1 1\n1 1 2\n1 1 4\n").as_bytes()).summed, 2);
}

#[test]
fn content_decides_where_the_extension_says_nothing() {
    let good = format!("{BANNER}2 3 3\n1 1 0.5\n1 3 -2\n2 2 3e2\n");
    for name in ["a", "a.txt", "a.dat.gz", "a.MTX"] {
        let (_folder, path) = file(name, good.as_bytes());
        let input = read_sparse(&path, &SparseOptions::default()).unwrap();
        assert_eq!(input.matrix, SparseMatrix::F64(plain()), "{name}");
    }
    assert_eq!(message_of("a.bin", b"1 2 3"), "extension: expected a sparse matrix: .mtx, .mtx.gz or .npz, found .bin");
    assert_eq!(
        message_of("a.npy", b"\x93NUMPY"),
        "extension: expected a sparse matrix: .mtx, .mtx.gz or .npz, found .npy, which is dense"
    );
    assert_eq!(message_of("a.npz", good.as_bytes()), "byte 0: expected a zip archive (.npz), found \"%%Ma\"");
    assert_eq!(message_of("a.npz", b""), "byte 0: expected a zip archive (.npz), found an empty file");
    let zip = message_of("a.mtx", b"PK\x03\x04\n");
    assert!(
        zip.starts_with("line 1: expected %%MatrixMarket matrix ") && zip.ends_with(r#"found "PK\u{3}\u{4}""#),
        "{zip}"
    );
}

#[test]
fn symmetries_fill_the_other_triangle() {
    let text = "%%MatrixMarket matrix coordinate real symmetric\n3 3 3\n1 1 1\n2 1 2\n3 2 3\n";
    let symmetric = Csr::new(3, 3, vec![0, 2, 4, 5], vec![0, 1, 0, 2, 1], vec![1.0, 2.0, 2.0, 3.0, 3.0]).unwrap();
    assert_eq!(read(text.as_bytes()), symmetric);
    let upper = text.replace("2 1 2", "1 2 2").replace("3 2 3", "2 3 3");
    assert_eq!(read(upper.as_bytes()), symmetric);
    let skew = text.replace("symmetric", "skew-symmetric").replace("1 1 1", "1 1 0");
    let values = vec![0.0, -2.0, 2.0, -3.0, 3.0];
    assert_eq!(read(skew.as_bytes()).values(), values);
    let pattern = "%%MatrixMarket matrix coordinate pattern symmetric\n2 2 1\n2 1\n";
    assert_eq!(read(pattern.as_bytes()).values(), [1.0, 1.0]);
    // Repeated entries of a triangle add up in both.
    let twice = "%%MatrixMarket matrix coordinate integer symmetric\n2 2 2\n2 1 3\n2 1 4\n";
    let input = input(twice.as_bytes());
    assert_eq!(input.summed, 2);
    assert_eq!(read(twice.as_bytes()).values(), [7.0, 7.0]);
}

#[test]
fn symmetric_files_that_contradict_themselves_are_refused() {
    let text = "%%MatrixMarket matrix coordinate real symmetric\n3 3 3\n2 1 1\n1 1 2\n1 2 3\n";
    let expected = "entries on one side of the diagonal (the matrix is symmetric, and those so far are below it)";
    assert_eq!(message(text), format!("line 5: expected {expected}, found one above it"));
    assert_eq!(
        message("%%MatrixMarket matrix coordinate real symmetric\n3 4 0\n"),
        "line 2: expected as many columns as rows (the matrix is symmetric), found 3 x 4"
    );
    assert_eq!(
        message("%%MatrixMarket matrix coordinate real skew-symmetric\n3 3 1\n2 2 5\n"),
        "line 3: expected no entry on the diagonal, or a zero (the matrix is skew-symmetric), found 5 at row 2, column 2"
    );
    assert_eq!(
        message("%%MatrixMarket matrix coordinate pattern skew-symmetric\n3 3 0\n"),
        "line 1: expected the symmetry general or symmetric, found \"skew-symmetric\": a pattern has no signs"
    );
    assert_eq!(
        message("%%MatrixMarket matrix coordinate real hermitian\n3 3 0\n"),
        "line 1: expected the symmetry general, symmetric or skew-symmetric, found \"hermitian\": it is about complex values, which are not supported"
    );
}

#[test]
fn what_is_no_banner_is_named() {
    let expected = "%%MatrixMarket matrix coordinate|array real|integer|pattern general|symmetric|skew-symmetric";
    assert_eq!(message(""), format!("line 1: expected {expected}, found an empty file"));
    for (line, found) in [
        ("%MatrixMarket matrix coordinate pattern general", "\"%MatrixMarket matrix coordinate pattern \"..."),
        ("3 3 3", "\"3 3 3\""),
        ("", "\"\""),
        ("%%MatrixMarket matrix coordinate real", "\"%%MatrixMarket matrix coordinate real\""),
        ("% no banner", "\"% no banner\""),
    ] {
        assert_eq!(message(&format!("{line}\n1 1 1\n")), format!("line 1: expected {expected}, found {found}"));
    }
    assert_eq!(
        message("%%MatrixMarket vector coordinate real general\n3 0\n"),
        "line 1: expected a matrix, found \"vector\""
    );
    assert_eq!(
        message("%%MatrixMarket matrix elemental real general\n"),
        "line 1: expected the layout coordinate or array, found \"elemental\""
    );
    assert_eq!(
        message("%%MatrixMarket matrix coordinate quaternion general\n"),
        "line 1: expected the field real, integer or pattern, found \"quaternion\""
    );
    assert_eq!(
        message("%%MatrixMarket matrix coordinate real diagonal\n"),
        "line 1: expected the symmetry general, symmetric or skew-symmetric, found \"diagonal\""
    );
}

#[test]
fn sizes_that_are_none_or_lie_are_named() {
    let size = |size: &str| message(&format!("{BANNER}% comment\n{size}"));
    assert_eq!(
        size("2 3\n"),
        "line 3: expected 3 whole numbers (rows, columns, entries), found 2, then the end of the file: it is truncated"
    );
    assert_eq!(size("2 3 x\n"), "line 3: expected 3 whole numbers (rows, columns, entries), found \"2 3 x\"");
    assert_eq!(size("2 3 -1\n"), "line 3: expected 3 whole numbers (rows, columns, entries), found \"2 3 -1\"");
    assert_eq!(size("2 3 1 1\n"), "line 3: expected 3 whole numbers (rows, columns, entries), found \"2 3 1 1\"");
    // Without a count, as some archives of networks have it, the first entry makes five numbers.
    assert_eq!(size("2 3\n1 1 1\n"), "line 4: expected 3 whole numbers (rows, columns, entries), found \"1 1 1\"");
    assert_eq!(
        size("2 3 2\n1 1 1\n"),
        "line 4, the last one: expected 2 entries, as the size line says, found 1: the file is truncated, or its size line is wrong"
    );
    assert_eq!(
        size("2 3 1\n1 1 1\n\n% more\n1 2 1\n1 3 1\n"),
        "line 7: expected the end of the file after its last entries, as the size line says, found another one"
    );
    assert_eq!(
        size("2 3 18446744073709551615\n1 1 1\n"),
        "line 4, the last one: expected 18446744073709551615 entries, as the size line says, found 1: the file is truncated, or its size line is wrong"
    );
    assert_eq!(size("1000000000000 3 0\n"), "line 3: rows: 1000000000000 requested, at most 134217728 possible");
    assert_eq!(size("1 4294967297 0\n"), "line 3: columns: 4294967297 requested, at most 4294967296 possible");
    assert_eq!(
        size("1 99999999999999999999 0\n"),
        "line 3: expected 3 whole numbers (rows, columns, entries), found \"1 99999999999999999999 0\""
    );
}

#[test]
fn entries_that_are_none_are_named() {
    let entry = |entry: &str| message(&format!("{BANNER}2 3 1\n\n{entry}\n"));
    assert_eq!(entry("0 1 1"), "line 4: expected a row from 1 to 2, found \"0\"");
    assert_eq!(entry("3 1 1"), "line 4: expected a row from 1 to 2, found \"3\"");
    assert_eq!(entry("1 4 1"), "line 4: expected a column from 1 to 3, found \"4\"");
    assert_eq!(entry("1 0 1"), "line 4: expected a column from 1 to 3, found \"0\"");
    assert_eq!(entry("-1 1 1"), "line 4: expected a row from 1 to 2, found \"-1\"");
    assert_eq!(entry("1.0 1 1"), "line 4: expected a row from 1 to 2, found \"1.0\"");
    assert_eq!(entry("99999999999999999999 1 1"), "line 4: expected a row from 1 to 2, found \"99999999999999999999\"");
    assert_eq!(entry("1"), "line 4: expected a column from 1 to 3, found the end of the line");
    assert_eq!(entry("1 2"), "line 4: expected a number that f64 can hold, found the end of the line");
    assert_eq!(entry("1 2 x"), "line 4: expected a number that f64 can hold, found \"x\"");
    assert_eq!(entry("1 2 1e999"), "line 4: expected a number that f64 can hold, found \"1e999\"");
    assert_eq!(entry("1 2 1,5"), "line 4: expected a number that f64 can hold, found \"1,5\"");
    assert_eq!(entry("1 2 1 7"), "line 4: expected the end of the line after 3 columns, found \"7\"");
    assert_eq!(entry("1 2 1 % note"), "line 4: expected the end of the line after 3 columns, found \"%\"");
    let pattern = "%%MatrixMarket matrix coordinate pattern general\n2 3 1\n1 2 1\n";
    assert_eq!(message(pattern), "line 3: expected the end of the line after 2 columns, found \"1\"");
    for value in ["3.5", "3.0", "1e3", "x", "nan"] {
        assert_eq!(
            message(&format!("%%MatrixMarket matrix coordinate integer general\n2 3 1\n1 2 {value}\n")),
            format!("line 3: expected a whole number (the field is integer), found \"{value}\"")
        );
    }
}

#[test]
fn integers_beyond_f64_are_rounded_and_said() {
    let input = input(b"%%MatrixMarket matrix coordinate integer general\n1 3 3\n1 1 9007199254740993\n1 2 -5\n1 3 9223372036854775807\n");
    assert!(input.note.unwrap().ends_with("a.mtx: 2 integers beyond 2^53 are rounded to f64"));
    let SparseMatrix::F64(matrix) = input.matrix else { panic!() };
    assert_eq!(matrix.values(), [9_007_199_254_740_992.0, -5.0, 9_223_372_036_854_775_808.0]);
}

#[test]
fn nan_and_infinity_are_values() {
    let matrix = read(format!("{BANNER}1 3 3\n1 1 nan\n1 2 -Inf\n1 3 infinity\n").as_bytes());
    assert!(matrix.values()[0].is_nan());
    assert_eq!(matrix.values()[1..], [f64::NEG_INFINITY, f64::INFINITY]);
}

#[test]
fn arrays_become_entries_without_their_zeros() {
    let text = b"%%MatrixMarket matrix array integer general\n2 3\n1\n0\n\n% second column\n-2\n3\n0\n0";
    let input = input(text);
    assert!(input.note.unwrap().ends_with("3 zeros of a dense layout are left out"));
    assert_eq!(
        input.matrix,
        SparseMatrix::F64(Csr::new(2, 3, vec![0, 2, 3], vec![0, 1, 1], vec![1.0, -2.0, 3.0]).unwrap())
    );
    let array = |rest: &str| message(&format!("%%MatrixMarket matrix array real general\n{rest}"));
    assert_eq!(
        array("2 2\n1\n2\n3\n"),
        "line 5, the last one: expected 4 values, as the size line says, found 3: the file is truncated, or its size line is wrong"
    );
    assert_eq!(
        array("1 1\n1\n2\n"),
        "line 4: expected the end of the file after its last values, as the size line says, found another one"
    );
    assert_eq!(array("1 1\n1 2\n"), "line 3: expected the end of the line after 1 columns, found \"2\"");
    assert_eq!(
        array("4000000000 4000000000\n1\n"),
        "line 3, the last one: expected 16000000000000000000 values, as the size line says, found 1: the file is truncated, or its size line is wrong"
    );
    assert_eq!(
        array("9000000000 9000000000\n1\n"),
        "line 2: expected a size that a file can have, found 9000000000 x 9000000000"
    );
    assert_eq!(
        message("%%MatrixMarket matrix array pattern general\n1 1\n"),
        "line 1: expected real or integer values (an array has all of them), found \"pattern\""
            .replace("\"pattern\"", "pattern")
    );
}

#[test]
fn lines_are_counted_across_blocks_and_pieces() {
    // More than two blocks of text, so that lines and entries lie across their borders.
    let mut text = format!("{BANNER}300000 7 1200000\n");
    for entry in 0..1_200_000_u32 {
        use std::fmt::Write;
        writeln!(text, "{} {} {}.25", entry % 300_000 + 1, entry % 7 + 1, entry).unwrap();
    }
    assert!(text.len() > 20_000_000);
    let matrix = read(text.as_bytes());
    assert_eq!(matrix.entries(), 1_200_000);
    let sum: f64 = matrix.values().iter().sum();
    assert_eq!(sum, 1_200_000.0 * 599_999.5 + 300_000.0);
    let broken = text.replacen("\n1000001 ", "\n", 1).replace(" 1100000.25\n", " x\n");
    assert_eq!(message(&broken), "line 1100003: expected a number that f64 can hold, found \"x\"");
    text.push_str("1 1 1\n");
    assert_eq!(
        message(&text),
        "line 1200003: expected the end of the file after its last entries, as the size line says, found another one"
    );
    let long = format!("{BANNER}1 1 1\n{}", " ".repeat(9 << 20));
    assert_eq!(message(&long), "line 3: expected lines of at most 1048576 bytes, found a longer one: is it text?");
}

#[test]
fn compressed_text_is_recognised_by_content_and_its_damage_is_an_error() {
    use std::io::Write;
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(format!("{BANNER}2 3 3\n1 1 0.5\n1 3 -2\n2 2 3e2\n").as_bytes()).unwrap();
    let gz = encoder.finish().unwrap();
    assert_eq!(read(&gz), plain());
    let message = message_of("a.mtx.gz", &gz[..gz.len() - 9]);
    assert!(!message.is_empty());
}

#[test]
fn no_change_to_the_text_makes_the_reader_panic() {
    let good = b"%%MatrixMarket matrix coordinate real symmetric\n% c\n3 3 3\n1 1 1.5\n2 1 -2e1\n3 2 3\n";
    let (_folder, path) = file("a.mtx", good);
    for length in 0..good.len() - 1 {
        std::fs::write(&path, &good[..length]).unwrap();
        assert!(read_sparse(&path, &SparseOptions::default()).is_err(), "{length} bytes");
    }
    for position in 0..good.len() {
        for byte in [0, b'\n', b' ', b'%', b'9', b'-', b'.', b'e', 0xff] {
            let mut changed = good.to_vec();
            changed[position] = byte;
            std::fs::write(&path, &changed).unwrap();
            let _ = read_sparse(&path, &SparseOptions::default());
        }
    }
}

/// Equal bits, NaN included.
fn bits(matrix: &Csr<f64>) -> Vec<u64> {
    matrix.values().iter().map(|value| value.to_bits()).collect()
}

fn back(path: &Path, dtype: Dtype) -> SparseMatrix {
    read_sparse(path, &SparseOptions { dtype: Some(dtype), ..SparseOptions::default() }).unwrap().matrix
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn what_is_written_is_read_back_as_the_same_bits(
        (rows, cols, entries) in (0..7_usize, 0..7_usize).prop_flat_map(|(rows, cols)| {
            let most = if rows * cols == 0 { 0 } else { 30 };
            let entry = (0..rows.max(1) as u64, 0..u32::try_from(cols.max(1)).unwrap(), any::<f64>());
            (Just(rows), Just(cols), proptest::collection::vec(entry, 0..=most))
        })
    ) {
        let row_of: Vec<u64> = entries.iter().map(|entry| entry.0).collect();
        let columns = entries.iter().map(|entry| entry.1).collect();
        let values: Vec<f64> = entries.iter().map(|entry| entry.2).collect();
        let (matrix, _) = Csr::from_coordinates(rows, cols, &row_of, columns, values).unwrap();
        #[expect(clippy::cast_possible_truncation, reason = "any f32 will do")]
        let narrow = matrix.clone().map(|value| value as f32);
        let folder = tempfile::tempdir().unwrap();
        for format in SparseFormat::ALL {
            let path = folder.path().join(format!("a.{}", format.name()));
            write_sparse(&path, format, &matrix).unwrap();
            let SparseMatrix::F64(read) = back(&path, Dtype::F64) else { panic!() };
            let nan = |values: &[u64]| values.iter().map(|&v| if f64::from_bits(v).is_nan() { 0 } else { v }).collect::<Vec<_>>();
            prop_assert_eq!(nan(&bits(&read)), nan(&bits(&matrix)));
            prop_assert_eq!(read.indptr(), matrix.indptr());
            prop_assert_eq!(read.indices(), matrix.indices());
            prop_assert_eq!((read.rows(), read.cols()), (rows, cols));
            write_sparse(&path, format, &narrow).unwrap();
            let SparseMatrix::F32(read) = back(&path, Dtype::F32) else { panic!() };
            for (a, b) in read.values().iter().zip(narrow.values()) {
                prop_assert!(a.to_bits() == b.to_bits() || a.is_nan() && b.is_nan(), "{} {}", a, b);
            }
        }
    }

    #[test]
    fn dense_matrices_are_read_back_as_the_same_bits(
        (rows, cols, values) in (1..6_usize, 1..6_usize).prop_flat_map(|(rows, cols)| {
            (Just(rows), Just(cols), proptest::collection::vec(proptest::num::f64::NORMAL, rows * cols))
        })
    ) {
        let matrix = Matrix::new(rows, cols, values).unwrap();
        let folder = tempfile::tempdir().unwrap();
        for format in DenseFormat::ALL {
            let path = folder.path().join(format!("a.{}", format.name()));
            write_dense(&path, format, &matrix).unwrap();
            let read = read_dense(&path, &DenseOptions::default()).unwrap();
            prop_assert_eq!(&read.matrix, &DenseMatrix::F64(matrix.clone()));
            prop_assert_eq!(read.note, None);
        }
    }
}

#[test]
fn repeated_and_unsorted_entries_are_kept_by_npz() {
    let matrix = Csr::new(1, 3, vec![0, 4], vec![2, 0, 2, 1], vec![1.0, 2.0, 3.0, 0.0]).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.npz");
    write_sparse(&path, SparseFormat::Npz, &matrix).unwrap();
    assert_eq!(back(&path, Dtype::F64), SparseMatrix::F64(matrix.clone()));
    // The same matrix is the same file.
    let first = std::fs::read(&path).unwrap();
    write_sparse(&path, SparseFormat::Npz, &matrix).unwrap();
    assert_eq!(std::fs::read(&path).unwrap(), first);
}

#[test]
fn every_f32_is_written_so_that_a_reader_of_f64_finds_it() {
    for bits in (0..u32::MAX).step_by(9_973) {
        let value = f32::from_bits(bits);
        if value.is_finite() {
            let mut text = Vec::new();
            Real::write(value, &mut text).unwrap();
            let text = String::from_utf8(text).unwrap();
            #[expect(clippy::cast_possible_truncation, reason = "what a reader does")]
            let read = text.parse::<f64>().unwrap() as f32;
            assert_eq!(read.to_bits(), bits, "{text}");
            assert!(text.len() <= 17, "{text}");
        }
    }
}

#[test]
fn f64_arrays_are_not_rounded_unless_asked() {
    let (_folder, path) = file("a.npy", &[]);
    let matrix = Matrix::new(2, 2, vec![0.1_f64, 1e300, -0.5, f64::INFINITY]).unwrap();
    write_dense(&path, DenseFormat::Npy, &matrix).unwrap();
    let read = |dtype| read_dense(&path, &DenseOptions { dtype, format: None }).unwrap();
    assert_eq!(read(None).matrix, DenseMatrix::F64(matrix));
    let narrow = read(Some(Dtype::F32));
    assert_eq!(
        narrow.matrix,
        DenseMatrix::F32(Matrix::new(2, 2, vec![0.1_f32, f32::INFINITY, -0.5, f32::INFINITY]).unwrap())
    );
    assert_eq!(narrow.note, Some(format!("{}: f64 values are rounded to f32 (2 of 4 change)", path.display())));
    let DenseMatrix::F32(narrow) = narrow.matrix else { panic!() };
    write_dense(&path, DenseFormat::Npy, &narrow).unwrap();
    assert_eq!(read(None).matrix, DenseMatrix::F32(narrow.clone()));
    let wide = Matrix::new(2, 2, narrow.values().iter().map(|&value| f64::from(value)).collect()).unwrap();
    assert_eq!(read(Some(Dtype::F64)).matrix, DenseMatrix::F64(wide));
}

#[test]
fn what_cannot_be_written_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let missing = folder.path().join("no/a.mtx");
    let error = write_sparse(&missing, SparseFormat::MatrixMarket, &plain()).unwrap_err().to_string();
    assert_eq!(error, format!("{}: No such file or directory (os error 2)", missing.display()));
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn a_banner_that_is_assumed_stands_for_one_that_is_not_there() {
    let banner: Banner = "Coordinate  real\tGENERAL".parse().unwrap();
    assert_eq!(banner.to_string(), "coordinate real general");
    let read = |text: &str| {
        let (_folder, path) = file("a.mtx", text.as_bytes());
        let options = SparseOptions { assume: Some(banner), ..SparseOptions::default() };
        read_sparse(&path, &options).map_err(|error| error.to_string())
    };
    let body = "2 3 3\n1 1 0.5\n1 3 -2\n2 2 3e2\n";
    for start in ["", "\u{feff}", "\n\n", "% comment\n", "%MatrixMarket matrix coordinate real symmetric\n", BANNER] {
        let text = format!("{start}{body}");
        assert_eq!(read(&text).unwrap().matrix, SparseMatrix::F64(plain()), "{text:?}");
        // Lines are counted as they stand in the file.
        let lines = start.matches('\n').count();
        let message = read(&text.replace("3e2", "x")).unwrap_err();
        assert!(message.contains(&format!("line {}: expected a number", lines + 4)), "{message}");
        let message = read(&text.replace("2 3 3", "2 3 x")).unwrap_err();
        assert!(message.contains(&format!("line {}: expected 3 whole numbers", lines + 1)), "{message}");
    }
    let other = "%%MatrixMarket matrix coordinate real symmetric\n2 2 0\n";
    let message = read(other).unwrap_err();
    assert!(message.contains("line 1: expected coordinate real general, as was to be assumed, found "), "{message}");
    assert!(read("").unwrap_err().ends_with("found an empty file"));
    for (text, message) in [
        ("coordinate real", "expected a layout, a field and a symmetry, e.g. \"coordinate real general\""),
        (
            "matrix coordinate real general",
            "expected a layout, a field and a symmetry, e.g. \"coordinate real general\"",
        ),
        ("sparse real general", "expected the layout coordinate or array, found \"sparse\""),
    ] {
        assert_eq!(text.parse::<Banner>().unwrap_err(), message);
    }
}
