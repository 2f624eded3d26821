//! `lodestar spmm` as its users run it: products, formats, messages, exit codes, and what is left on the disk.
#![cfg(feature = "cli")]

use lodestar::data::Matrix;
use lodestar::formats::{
    DenseFormat, DenseOptions, Dtype, SparseMatrix, SparseOptions, read_dense, read_sparse, write_dense,
};
use lodestar::kernels::spmm::reference;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

fn golden(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden/sparse").join(name)
}

/// A folder to run in, so that messages name files without theirs.
struct Folder(tempfile::TempDir);

impl Folder {
    /// With the 6 x 8 matrix that scipy wrote, in two layouts, and something to multiply by it.
    fn new() -> Self {
        let folder = Self(tempfile::tempdir().unwrap());
        for name in ["m_csr_i32_stored.npz", "m_general.mtx"] {
            folder.copy(name);
        }
        write_dense(&folder.path("b.npy"), DenseFormat::Npy, &b()).unwrap();
        write_dense(&folder.path("b.csv"), DenseFormat::Csv, &b()).unwrap();
        folder
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn copy(&self, name: &str) {
        std::fs::copy(golden(name), self.path(name)).unwrap();
    }

    fn write(&self, name: &str, text: impl AsRef<[u8]>) {
        std::fs::write(self.path(name), text).unwrap();
    }

    fn read(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.path(name)).unwrap()
    }

    fn command(&self) -> Command {
        let mut command = Command::new(assert_cmd::cargo::cargo_bin!("lodestar"));
        command.current_dir(self.0.path()).env_remove("RAYON_NUM_THREADS").env_remove("CI").env("NODEVICE_SELECT", "1");
        command.arg("spmm");
        command
    }

    fn run(&self, arguments: &[&str]) -> Output {
        self.command().args(arguments).output().unwrap()
    }

    /// Standard output of a run that has to succeed.
    fn answer(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        assert_eq!(output.status.code(), Some(0), "{arguments:?}: {}", err(&output));
        out(&output)
    }

    /// The one line that a run has to fail with; nothing on stdout and no new file, exit code 2.
    fn refusal(&self, arguments: &[&str]) -> String {
        let before = self.listing();
        let output = self.run(arguments);
        let message = err(&output);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {message}");
        assert_eq!(out(&output), "", "{arguments:?}");
        assert_eq!(message.lines().count(), 1, "{message}");
        assert_eq!(self.listing(), before, "{arguments:?}");
        message.strip_prefix("lodestar: ").unwrap().trim_end().to_owned()
    }

    /// What the folder holds, hidden files included.
    fn listing(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.0.path()).unwrap();
        let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }
}

fn out(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn err(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

const M: &str = "m_csr_i32_stored.npz";

/// 8 x 3 small whole numbers: every product with quarters is exact, in f32 too.
fn b() -> Matrix<f64> {
    let value = |at: u32| f64::from(at * 7 % 11) - 5.0;
    Matrix::new(8, 3, (0..24).map(value).collect()).unwrap()
}

/// A matrix in plain text, parsed here and by nothing of ours.
fn plain(text: &str) -> Vec<Vec<f64>> {
    text.lines().map(|line| line.split(',').map(|field| field.parse().unwrap()).collect()).collect()
}

fn m() -> Vec<Vec<f64>> {
    plain(&std::fs::read_to_string(golden("m_matrix.csv")).unwrap())
}

fn times(a: &[Vec<f64>], b: &Matrix<f64>) -> Vec<Vec<f64>> {
    let element = |row: &Vec<f64>, col: usize| (0..row.len()).map(|k| row[k] * b.row(k)[col]).sum();
    a.iter().map(|row| (0..b.cols()).map(|col| element(row, col)).collect()).collect()
}

fn transposed(a: &[Vec<f64>]) -> Vec<Vec<f64>> {
    (0..a[0].len()).map(|col| a.iter().map(|row| row[col]).collect()).collect()
}

fn rows(matrix: &Matrix<f64>) -> Vec<Vec<f64>> {
    (0..matrix.rows()).map(|row| matrix.row(row).to_vec()).collect()
}

/// A dense file of any format and either type.
fn load(path: &Path) -> (Vec<Vec<f64>>, &'static str) {
    let matrix = read_dense(path, &DenseOptions::default()).unwrap().matrix;
    let dtype = matrix.dtype().name();
    (rows(&matrix.into_f64().unwrap()), dtype)
}

#[test]
fn every_layout_of_a_matrix_gives_the_same_product() {
    let folder = Folder::new();
    let expected = times(&m(), &b());
    assert!(expected.concat().iter().filter(|&&value| value != 0.0).count() > 10);
    let mut count = 0;
    for entry in std::fs::read_dir(golden("")).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        if name.starts_with("m_") && name != "m_matrix.csv" {
            let a = golden(&name);
            let a = a.to_str().unwrap();
            assert_eq!(plain(&folder.answer(&[a, "b.csv"])), expected, "{name}");
            assert_eq!(plain(&folder.answer(&[a, "b.npy", "--dtype", "f32"])), expected, "{name}");
            count += 1;
        }
    }
    assert_eq!(count, 43);
    let symmetric = golden("s_symmetric.mtx");
    let dense = plain(&std::fs::read_to_string(golden("s_matrix.csv")).unwrap());
    let ones = Matrix::new(dense.len(), 1, vec![1.0; dense.len()]).unwrap();
    write_dense(&folder.path("ones.npy"), DenseFormat::Npy, &ones).unwrap();
    let found = plain(&folder.answer(&[symmetric.to_str().unwrap(), "ones.npy"])).concat();
    for (found, row) in found.iter().zip(&dense) {
        let (sum, magnitude) = row.iter().fold((0.0, 0.0), |(sum, all), value| (sum + value, all + value.abs()));
        assert!((found - sum).abs() <= 1e-14 * magnitude, "{found} {sum}");
    }
}

/// The start of a .npy file, then its values.
fn npy(descr: &str, fortran: bool, shape: (usize, usize), values: &[u8]) -> Vec<u8> {
    let order = if fortran { "True" } else { "False" };
    let text = format!("{{'descr': '{descr}', 'fortran_order': {order}, 'shape': ({}, {}), }}\n", shape.0, shape.1);
    let length = u16::try_from(text.len()).unwrap().to_le_bytes();
    [b"\x93NUMPY\x01\x00", &length[..], text.as_bytes(), values].concat()
}

fn column_by_column(matrix: &Matrix<f64>) -> Vec<f64> {
    (0..matrix.cols()).flat_map(|col| (0..matrix.rows()).map(move |row| matrix.row(row)[col])).collect()
}

#[test]
fn b_is_read_from_every_format() {
    let folder = Folder::new();
    let expected = folder.answer(&[M, "b.npy"]);
    assert_eq!(plain(&expected), times(&m(), &b()));
    for (name, format) in
        [("b.tsv", DenseFormat::Tsv), ("b.mtx", DenseFormat::MatrixMarket), ("b.csv", DenseFormat::Csv)]
    {
        write_dense(&folder.path(name), format, &b()).unwrap();
    }
    std::fs::copy(folder.path("b.mtx"), folder.path("b.mm")).unwrap();
    std::fs::copy(folder.path("b.npy"), folder.path("b.bin")).unwrap();
    let columns = column_by_column(&b());
    let bytes: Vec<u8> = columns.iter().flat_map(|value| value.to_le_bytes()).collect();
    folder.write("fortran.npy", npy("<f8", true, (8, 3), &bytes));
    let bytes: Vec<u8> = b().values().iter().flat_map(|value| value.to_be_bytes()).collect();
    folder.write("big.npy", npy(">f8", false, (8, 3), &bytes));
    #[expect(clippy::cast_possible_truncation, reason = "small whole numbers")]
    let bytes: Vec<u8> = columns.iter().flat_map(|&value| (value as i8).to_le_bytes()).collect();
    folder.write("i1.npy", npy("|i1", true, (8, 3), &bytes));
    for name in ["b.tsv", "b.mtx", "b.mm", "b.csv", "fortran.npy", "big.npy", "i1.npy"] {
        assert_eq!(folder.answer(&[M, name]), expected, "{name}");
    }
    assert_eq!(folder.answer(&[M, "b.bin", "--format-b", "npy"]), expected);
    std::fs::copy(folder.path(M), folder.path("a.bin")).unwrap();
    assert_eq!(folder.answer(&["a.bin", "b.npy", "--format-a", "npz"]), expected);
    // By its first bytes.
    assert_eq!(folder.answer(&["a.bin", "b.npy"]), expected);
}

#[test]
fn c_is_written_in_every_format() {
    let folder = Folder::new();
    let expected = times(&m(), &b());
    for name in ["c.npy", "c.csv", "c.tsv", "c.mtx"] {
        assert_eq!(folder.answer(&[M, "b.npy", "--output", name]), "");
        assert_eq!(load(&folder.path(name)).0, expected, "{name}");
    }
    assert_eq!(folder.answer(&[M, "b.npy", "-o", "c.out", "--output-format", "NPY"]), "");
    assert_eq!(folder.read("c.out"), folder.read("c.npy"));
    // What stdout is given is what a file is given.
    for format in ["npy", "csv", "tsv", "mtx"] {
        let output = folder.run(&[M, "b.npy", "--output-format", format, "--output", "-"]);
        assert_eq!(output.stdout, folder.read(&format!("c.{format}")), "{format}");
    }
    // As numpy writes it: the data begin at a multiple of 64, in C order.
    let bytes = folder.read("c.npy");
    assert!(bytes.starts_with(b"\x93NUMPY\x01\x00\x76\x00{'descr': '<f8', 'fortran_order': False, 'shape': (6, 3), }"));
    assert_eq!(bytes.len(), 128 + 6 * 3 * 8);
    // One that is there is replaced.
    assert_eq!(folder.answer(&[M, "b.npy", "-o", "c.npy", "--dtype", "f32"]), "");
    assert_eq!(load(&folder.path("c.npy")), (expected, "f32"));
}

#[test]
fn the_product_with_the_transposed_matrix_is_that_of_its_columns() {
    let folder = Folder::new();
    let tall = Matrix::new(6, 2, (0..12).map(f64::from).collect()).unwrap();
    write_dense(&folder.path("tall.npy"), DenseFormat::Npy, &tall).unwrap();
    let expected = times(&transposed(&m()), &tall);
    for a in [M, "m_general.mtx"] {
        assert_eq!(plain(&folder.answer(&[a, "tall.npy", "--transpose-a"])), expected, "{a}");
    }
}

#[test]
fn the_wider_type_decides_and_is_said() {
    let folder = Folder::new();
    folder.copy("m_csr_f4.npz");
    let narrow = Matrix::new(8, 3, b().values().iter().map(|&value| value as f32).collect()).unwrap();
    write_dense(&folder.path("narrow.npy"), DenseFormat::Npy, &narrow).unwrap();
    for (a, b, dtype, note) in [
        (M, "b.npy", "f64", ""),
        ("m_csr_f4.npz", "narrow.npy", "f32", ""),
        (M, "narrow.npy", "f64", "m_csr_i32_stored.npz holds f64 and narrow.npy f32: computed in f64\n"),
        ("m_csr_f4.npz", "b.npy", "f64", "m_csr_f4.npz holds f32 and b.npy f64: computed in f64\n"),
        ("m_csr_f4.npz", "b.csv", "f64", "m_csr_f4.npz holds f32 and b.csv f64: computed in f64\n"),
    ] {
        let output = folder.run(&[a, b, "-o", "c.npy"]);
        assert_eq!((output.status.code(), err(&output)), (Some(0), note.to_owned()));
        assert_eq!(load(&folder.path("c.npy")), (times(&m(), &self::b()), dtype), "{a} {b}");
        // What is asked for needs no note, and holds.
        for dtype in ["f32", "f64"] {
            let output = folder.run(&[a, b, "-o", "c.npy", "--dtype", dtype]);
            assert_eq!((output.status.code(), err(&output)), (Some(0), String::new()));
            assert_eq!(load(&folder.path("c.npy")), (times(&m(), &self::b()), dtype), "{a} {b}");
        }
    }
    // Where it changes values, it is said; also of what is read block by block.
    folder.write("third.csv", "0.1\n".repeat(8));
    let output = folder.run(&[M, "third.csv", "--dtype", "f32"]);
    assert_eq!(err(&output), "third.csv: f64 values are rounded to f32 (8 of 8 change)\n");
    assert_eq!(err(&folder.run(&[M, "third.csv", "--dtype", "f32", "-q"])), "");
    let output = folder.run(&[M, "b.npy", "--dtype", "f32", "--memory", "100", "-o", "c.npy"]);
    assert_eq!(err(&output), "b.npy: f64 values are rounded to f32\n");
    assert_eq!(load(&folder.path("c.npy")), (times(&m(), &self::b()), "f32"));
    let output = folder.run(&["m_csr_f4.npz", "b.npy", "--memory", "100", "-o", "c.npy"]);
    assert_eq!(err(&output), "m_csr_f4.npz holds f32 and b.npy f64: computed in f64\n");
    assert_eq!(load(&folder.path("c.npy")), (times(&m(), &self::b()), "f64"));
    let output = folder.run(&[M, "narrow.npy", "--memory", "100", "-o", "c.npy"]);
    assert_eq!(err(&output), "m_csr_i32_stored.npz holds f64 and narrow.npy f32: computed in f64\n");
    assert_eq!(load(&folder.path("c.npy")), (times(&m(), &self::b()), "f64"));
}

#[test]
fn what_is_not_stored_is_not_multiplied_and_a_stored_zero_is() {
    let folder = Folder::new();
    folder.write("a.mtx", "%%MatrixMarket matrix coordinate real general\n4 3 4\n1 1 2\n2 2 0\n4 1 1\n4 3 -1\n");
    folder.write("b.csv", "1,2\ninf,nan\n3,inf\n");
    assert_eq!(folder.answer(&["a.mtx", "b.csv", "-q"]), "2,4\nnan,nan\n0,0\n-2,-inf\n");
    assert_eq!(err(&folder.run(&["a.mtx", "b.csv"])), "a.mtx: 1 stored zeros are kept\n");
}

#[test]
fn matrices_without_rows_columns_or_entries_are_multiplied() {
    let folder = Folder::new();
    for name in ["e_4x0_csr.npz", "e_0x4_real.mtx", "e_3x2_csc.npz", "e_0x0_coo.npz"] {
        folder.copy(name);
    }
    folder.write("0x2.npy", npy("<f8", false, (0, 2), &[]));
    folder.write("4x0.npy", npy("<f4", false, (4, 0), &[]));
    folder.write("0x0.npy", npy("<f8", true, (0, 0), &[]));
    folder.write("2x3.csv", "1,2,3\n4,5,inf\n");
    let shape = |a: &str, b: &str, extra: &[&str]| {
        let output = folder.run(&[&[a, b, "-o", "c.npy", "-q"], extra].concat());
        assert_eq!((output.status.code(), err(&output)), (Some(0), String::new()), "{a} {b}");
        let bytes = folder.read("c.npy");
        let text = String::from_utf8_lossy(&bytes[..128]).into_owned();
        assert!(bytes[128..].iter().all(|&byte| byte == 0));
        text[text.find("'shape'").unwrap() + 9..text.rfind(", }").unwrap()].to_owned()
    };
    for memory in [&[][..], &["--memory", "1"]] {
        assert_eq!(shape("e_4x0_csr.npz", "0x2.npy", memory), "(4, 2)");
        assert_eq!(shape("e_0x4_real.mtx", "4x0.npy", memory), "(0, 0)");
        assert_eq!(shape("e_0x0_coo.npz", "0x0.npy", memory), "(0, 0)");
        assert_eq!(shape("e_3x2_csc.npz", "2x3.csv", memory), "(3, 3)");
    }
    assert_eq!(folder.answer(&["e_3x2_csc.npz", "2x3.csv", "-q"]), "0,0,0\n0,0,0\n0,0,0\n");
    assert_eq!(folder.answer(&["e_0x4_real.mtx", "4x0.npy", "-q"]), "");
}

#[test]
fn shapes_that_do_not_fit_are_both_named_with_their_files() {
    let folder = Folder::new();
    folder.write("six.csv", "1,2\n".repeat(6));
    let of = |arguments: &[&str]| folder.refusal(&[arguments, &["-o", "c.npy"]].concat());
    assert_eq!(of(&[M, "six.csv"]), "six.csv: shape: expected 8 rows (m_csr_i32_stored.npz is 6 x 8), found 6 x 2");
    let transposed = "b.npy: shape: expected 6 rows (m_csr_i32_stored.npz transposed is 8 x 6), found 8 x 3";
    assert_eq!(of(&[M, "b.npy", "--transpose-a"]), transposed);
    assert_eq!(of(&[M, "b.npy", "--transpose-a", "--memory", "1"]), transposed);
}

#[test]
fn a_broken_sparse_matrix_is_refused_at_its_place() {
    let folder = Folder::new();
    let archives = [
        ("bad_column.npz", "indices.npy: value 1: expected an index from 0 to below 3, found 3"),
        ("bad_negative_column.npz", "indices.npy: value 1: expected an index from 0 to below 3, found -1"),
        ("bad_negative_indptr.npz", "indptr.npy: value 1: expected a position from 0 on, found -1"),
        ("bad_decreasing_indptr.npz", "indptr.npy: value 2: expected at least 2, found 1"),
        ("bad_short_data.npz", "data.npy: shape: expected 3 entries, as indptr.npy says, found 2"),
        ("bad_checksum.npz", "data.npy: data: expected readable data, found Invalid checksum"),
        ("bad_complex.npz", "data.npy: header, descr: expected numbers or a text, found '<c16' (complex numbers)"),
    ];
    let banner = "%%MatrixMarket matrix coordinate real general\n";
    let texts = [
        ("row.mtx", "3 8 2\n1 2 0.5\n4 1 1\n", "line 4: expected a row from 1 to 3, found \"4\""),
        ("column.mtx", "3 8 2\n1 9 0.5\n3 1 1\n", "line 3: expected a column from 1 to 8, found \"9\""),
        ("word.mtx", "3 8 2\n1 2 one\n3 1 1\n", "line 3: expected a number that f64 can hold, found \"one\""),
        (
            "fewer.mtx",
            "3 8 3\n1 2 0.5\n3 1 1\n",
            "line 4, the last one: expected 3 entries, as the size line says, found 2: the file is truncated, or its size line is wrong",
        ),
        (
            "more.mtx",
            "3 8 1\n1 2 0.5\n3 1 1\n",
            "line 4: expected the end of the file after its last entries, as the size line says, found another one",
        ),
        ("cut.mtx", "3 8 2\n1 2 0.5\n3 ", "line 4: expected a column from 1 to 8, found the end of the line"),
    ];
    for (name, _) in archives {
        folder.copy(name);
    }
    for (name, text, _) in texts {
        folder.write(name, format!("{banner}{text}"));
    }
    for (name, message) in archives.into_iter().chain(texts.map(|(name, _, message)| (name, message))) {
        assert_eq!(folder.refusal(&[name, "b.npy", "-o", "c.npy"]), format!("{name}: {message}"));
        assert_eq!(folder.refusal(&[name, "b.npy", "--memory", "1", "-o", "c.npy"]), format!("{name}: {message}"));
    }
    folder.write("complex.mtx", banner.replace("real", "complex") + "8 8 1\n1 1 1 1\n");
    folder.write("hermitian.mtx", banner.replace("general", "hermitian") + "8 8 1\n1 1 1\n");
    assert_eq!(
        folder.refusal(&["complex.mtx", "b.npy"]),
        "complex.mtx: line 1: expected the field real, integer or pattern, found \"complex\": complex values are not supported"
    );
    assert_eq!(
        folder.refusal(&["hermitian.mtx", "b.npy"]),
        "hermitian.mtx: line 1: expected the symmetry general, symmetric or skew-symmetric, found \"hermitian\": it is about complex values, which are not supported"
    );
    let whole = folder.read(M);
    folder.write("cut.npz", &whole[..whole.len() / 2]);
    let message = folder.refusal(&["cut.npz", "b.npy"]);
    assert!(message.starts_with("cut.npz: the directory of the archive: expected a whole zip archive, "), "{message}");
}

#[test]
fn a_file_that_is_not_what_its_extension_says_is_refused() {
    let folder = Folder::new();
    for (from, to) in [
        (M, "archive.mtx"),
        ("m_general.mtx", "text.npz"),
        (M, "archive.npy"),
        ("b.csv", "text.npy"),
        ("b.npy", "array.csv"),
        ("b.npy", "b.npy.gz"),
    ] {
        std::fs::copy(folder.path(from), folder.path(to)).unwrap();
    }
    let a = |name: &str| folder.refusal(&[name, "b.npy", "-o", "c.npy"]);
    let message = a("archive.mtx");
    let start = "archive.mtx: line 1: expected %%MatrixMarket matrix coordinate|array real|integer|pattern \
                 general|symmetric|skew-symmetric, found \"PK";
    assert!(message.starts_with(start), "{message}");
    assert_eq!(a("text.npz"), "text.npz: byte 0: expected a zip archive (.npz), found \"%%Ma\"");
    assert_eq!(
        a("b.npy"),
        "b.npy: extension: expected a sparse matrix: .mtx, .mtx.gz or .npz, found .npy, which is dense"
    );
    let b = |name: &str| folder.refusal(&[M, name, "-o", "c.npy"]);
    let magic = "byte 0: expected the start of a .npy file, \\x93NUMPY, found";
    assert_eq!(b("archive.npy"), format!("archive.npy: {magic} \"PK\\x03\\x04-\\x00\""));
    assert_eq!(b("text.npy"), format!("text.npy: {magic} \"-5,2,-\""));
    assert!(b("array.csv").starts_with("array.csv: line "));
    assert_eq!(
        b("b.npy.gz"),
        "b.npy.gz: extension: expected an uncompressed .npy (only text is read compressed), found a compressed file"
    );
    assert_eq!(b(M), format!("{M}: extension: expected a dense matrix: one of npy, csv, tsv, mtx, found .npz"));
    assert_eq!(
        b("m_general.mtx"),
        "m_general.mtx: line 1: expected array, which is dense, found coordinate, which is sparse"
    );
    let whole = folder.read("b.npy");
    folder.write("cut.npy", &whole[..200]);
    assert_eq!(
        b("cut.npy"),
        "cut.npy: byte 200: expected 192 bytes of data (8 x 3 values of 8 bytes), found 72: the file is truncated"
    );
    folder.write("word.csv", "1,2\n3,x\n");
    assert_eq!(b("word.csv"), "word.csv: line 2, column 2: expected a number, found \"x\"");
    folder.write("ragged.csv", "1,2\n3\n");
    assert_eq!(b("ragged.csv"), "ragged.csv: line 2: expected 2 fields, as in the first line, found 1");
    assert_eq!(b("nowhere.npy"), "nowhere.npy: No such file or directory (os error 2)");
    assert_eq!(a("nowhere.npz"), "nowhere.npz: No such file or directory (os error 2)");
}

#[test]
fn entries_beyond_the_last_rows_end_are_left_out_and_counted() {
    let folder = Folder::new();
    folder.copy("m_csr_slack.npz");
    folder.copy("m_csc_slack_i64.npz");
    for name in ["m_csr_slack.npz", "m_csc_slack_i64.npz"] {
        let output = folder.run(&[name, "b.npy"]);
        assert_eq!(plain(&out(&output)), times(&m(), &b()), "{name}");
        assert_eq!(err(&output), format!("{name}: 3 entries beyond the last row's end are left out\n"));
    }
}

#[test]
fn a_file_without_a_banner_is_read_where_somebody_says_what_it_holds() {
    let folder = Folder::new();
    folder.write("b.csv", "1,2\n3,4\n5,6\n");
    folder.write("none.mtx", "2 3 2\n1 2 0.5\n2 3 -1\n");
    folder.write("one.mtx", "%MatrixMarket matrix coordinate real general\n%\n2 3 2\n1 2 0.5\n2 3 -1\n");
    folder.write("right.mtx", "%%MatrixMarket matrix coordinate real general\n2 3 2\n1 2 0.5\n2 3 -1\n");
    folder.write("pattern.mtx", "3 3 2\n2 1\n3 2\n");
    let banner = "%%MatrixMarket matrix coordinate|array real|integer|pattern general|symmetric|skew-symmetric";
    for (name, found) in [("none.mtx", "\"2 3 2\""), ("one.mtx", "\"%MatrixMarket matrix coordinate real gen\"...")] {
        assert_eq!(
            folder.refusal(&[name, "b.csv"]),
            format!("{name}: line 1: expected {banner}, found {found} (--assume says what a file without it holds)")
        );
    }
    for name in ["none.mtx", "one.mtx", "right.mtx"] {
        assert_eq!(folder.answer(&[name, "b.csv", "--assume", "Coordinate REAL general"]), "1.5,2\n-5,-6\n", "{name}");
    }
    let symmetric = ["pattern.mtx", "b.csv", "--assume", "coordinate pattern symmetric"];
    assert_eq!(folder.answer(&symmetric), "3,4\n6,8\n3,4\n");
    assert_eq!(
        folder.refusal(&["none.mtx", "b.csv", "--assume", "coordinate pattern general"]),
        "none.mtx: line 2: expected the end of the line after 2 columns, found \"0.5\""
    );
    assert_eq!(
        folder.refusal(&["right.mtx", "b.csv", "--assume", "coordinate integer general"]),
        "right.mtx: line 1: expected coordinate integer general, as was to be assumed, found \"%%MatrixMarket matrix coordinate real ge\"..."
    );
    assert_eq!(
        folder.refusal(&[M, "b.csv", "--assume", "coordinate real general"]),
        format!("--assume: expected a Matrix Market file, found {M}, an .npz")
    );
    let output = folder.run(&["none.mtx", "b.csv", "--assume", "coordinate complex hermitian"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(err(&output).contains("complex values are not supported"), "{}", err(&output));
    assert_eq!(folder.run(&["none.mtx", "b.csv", "--assume", "real"]).status.code(), Some(2));
}

#[test]
fn arguments_outside_of_their_range_are_refused_in_one_line() {
    let folder = Folder::new();
    let of = |more: &[&str]| folder.refusal(&[&[M, "b.npy"], more].concat());
    assert_eq!(of(&["--threads", "0"]), "--threads: expected at least 1, found 0");
    assert_eq!(of(&["--json"]), "--json: expected --output FILE with it, as C would go to stdout too, found none");
    assert_eq!(
        of(&["-o", "c.xyz"]),
        "c.xyz: extension: expected one of npy, csv, tsv, mtx (or name the format with --output-format), found .xyz"
    );
    assert_eq!(
        of(&["-o", "c.csv.gz"]),
        "c.csv.gz: extension: expected one of npy, csv, tsv, mtx, not compressed, found .gz"
    );
    assert_eq!(of(&["-o", "no/c.npy"]), "no/c.npy: No such file or directory (os error 2)");
    assert_eq!(folder.refusal(&["-", "-"]), "-: expected stdin for one matrix only, found it twice");
    assert_eq!(folder.refusal(&["-", "b.npy"]), "--format-a: expected one of mtx, npz for stdin, found none");
    assert_eq!(folder.refusal(&[M, "-"]), "--format-b: expected one of npy, csv, tsv, mtx for stdin, found none");
    for usage in [&["--dtype", "f16"][..], &["--memory", "0"], &["--memory", "lots"], &["--output-format", "npz"]] {
        assert_eq!(folder.run(&[&[M, "b.npy"], usage].concat()).status.code(), Some(2), "{usage:?}");
    }
    assert_eq!(folder.run(&[M]).status.code(), Some(2));
}

/// A matrix with rows of every length up to 40, unsorted and repeated columns among them, as Matrix Market text.
fn ragged(rows: u32, cols: u32) -> String {
    let mut lines = Vec::new();
    for row in 0..rows {
        for entry in 0..row * 7 % 41 {
            let column = (row * 31 + entry * entry * 17) % cols;
            lines.push(format!("{} {} {}", row + 1, column + 1, f64::from(entry * 29 % 97) / 7.0 - 6.0));
        }
    }
    format!("%%MatrixMarket matrix coordinate real general\n{rows} {cols} {}\n{}\n", lines.len(), lines.join("\n"))
}

#[test]
fn a_product_in_blocks_is_the_same_bytes_as_the_whole() {
    let folder = Folder::new();
    folder.write("a.mtx", ragged(301, 120));
    for (rows, more) in [(120, &[][..]), (301, &["--transpose-a"][..])] {
        let values = (0..rows * 37).map(|at| f64::from(at * 7919 % 10_007) / 11.0 - 450.0).collect();
        let b = Matrix::new(rows as usize, 37, values).unwrap();
        write_dense(&folder.path("c_order.npy"), DenseFormat::Npy, &b).unwrap();
        write_dense(&folder.path("text.csv"), DenseFormat::Csv, &b).unwrap();
        let columns: Vec<u8> = column_by_column(&b).iter().flat_map(|value| value.to_le_bytes()).collect();
        folder.write("fortran.npy", npy("<f8", true, (b.rows(), 37), &columns));
        for dtype in ["f64", "f32"] {
            // Into how many blocks it was cut.
            let run = |b: &str, output: &str, memory: &str| {
                let arguments = ["a.mtx", b, "-q", "--json", "--dtype", dtype, "-o", output, "--memory", memory];
                let line = folder.answer(&[&arguments[..], more, &["--threads", "3"]].concat());
                serde_json::from_str::<serde_json::Value>(&line).unwrap()["blocks"].as_u64().unwrap()
            };
            assert_eq!(run("c_order.npy", "whole.npy", "1MB"), 1);
            let whole = folder.read("whole.npy");
            let mut seen = std::collections::BTreeSet::new();
            for memory in ["1", "999", "5000", "20000", "30000", "50000", "76000"] {
                for (b, output) in [("c_order.npy", "c.npy"), ("fortran.npy", "f.npy"), ("text.csv", "t.npy")] {
                    let count = run(b, output, memory);
                    assert!(folder.read(output) == whole, "{b} in {count} blocks, {memory} bytes, {dtype}");
                    seen.insert(count);
                }
            }
            assert!(seen.len() > 6, "{seen:?}");
        }
    }
}

#[test]
fn the_product_is_the_same_bytes_with_any_number_of_threads() {
    let folder = Folder::new();
    folder.write("a.mtx", ragged(2_000, 500));
    let b = Matrix::new(500, 9, (0..4_500).map(|at| f64::from(at * 7919 % 10_007) / 11.0 - 450.0).collect()).unwrap();
    write_dense(&folder.path("b.npy"), DenseFormat::Npy, &b).unwrap();
    let product = |threads: &str| {
        assert_eq!(folder.answer(&["a.mtx", "b.npy", "-q", "--threads", threads, "-o", "c.npy"]), "");
        folder.read("c.npy")
    };
    let one = product("1");
    assert!(one.len() > 100_000);
    for threads in ["2", "3", "16"] {
        assert!(product(threads) == one, "{threads} threads");
    }
}

#[test]
fn what_cannot_be_held_is_refused_before_it_is_computed() {
    let folder = Folder::new();
    let cut = "(B and C are cut into blocks only where both are .npy files)";
    for b in ["b.npy", "b.csv"] {
        assert_eq!(
            folder.refusal(&[M, b, "--memory", "335"]),
            format!("--memory: expected at least 336 B {cut}, found 335 B")
        );
        assert!(!folder.answer(&[M, b, "--memory", "336"]).is_empty());
    }
    assert_eq!(
        folder.refusal(&[M, "b.npy", "--memory", "100", "-o", "c.csv"]),
        format!("--memory: expected at least 336 B {cut}, found 100 B")
    );
    folder.write("tall.mtx", "%%MatrixMarket matrix coordinate real general\n100000000 1 1\n5 1 1\n");
    folder.write("wide.csv", vec!["1"; 200_000].join(","));
    // 160 TB of C.
    let message = folder.refusal(&["tall.mtx", "wide.csv"]);
    assert!(message.starts_with("B and C: expected at most "), "{message}");
    let end = "iB of memory (they are cut into blocks where both are .npy files), found 146 TiB";
    assert!(message.ends_with(end), "{message}");
}

#[cfg(target_os = "linux")]
#[test]
fn memory_that_the_system_does_not_give_is_one_line() {
    let folder = Folder::new();
    // A file of 8 GB that takes no room on the disk.
    let header = npy("<f8", false, (8, 125_000_000), &[]);
    folder.write("b.npy", &header);
    let file = std::fs::OpenOptions::new().write(true).open(folder.path("b.npy")).unwrap();
    file.set_len(header.len() as u64 + 8_000_000_000).unwrap();
    let output = Command::new("bash")
        .args(["-c", r#"ulimit -v 4000000; exec "$0" "$@""#])
        .arg(assert_cmd::cargo::cargo_bin!("lodestar"))
        .args(["spmm", M, "b.npy", "-o", "c.csv", "--memory", "1TB"])
        .current_dir(folder.0.path())
        .output()
        .unwrap();
    assert_eq!(
        err(&output),
        "lodestar: b.npy: header, shape: expected a matrix that fits into memory, found 8 x 125000000 values of 8 bytes\n"
    );
    assert_eq!((output.status.code(), folder.path("c.csv").exists()), (Some(2), false));
}

#[cfg(target_os = "linux")]
#[test]
fn a_disk_that_fills_up_is_one_line_and_leaves_nothing() {
    let folder = Folder::new();
    assert_eq!(
        folder.refusal(&[M, "b.npy", "-o", "/dev/full", "--output-format", "npy"]),
        "/dev/full: No space left on device (os error 28)"
    );
    assert_eq!(folder.answer(&[M, "b.npy", "-o", "/dev/null", "--output-format", "npy"]), "");
    // Row after row a device can take it, at positions not.
    assert_eq!(folder.answer(&[M, "b.csv", "-o", "/dev/null", "--output-format", "npy", "--memory", "1"]), "");
    assert_eq!(
        folder.refusal(&[M, "b.npy", "-o", "/dev/null", "--output-format", "npy", "--memory", "1"]),
        "--output: expected a file, as B and C are cut into blocks that are written at their positions, found /dev/null"
    );
    let wide = Matrix::new(8, 100, vec![1.5; 800]).unwrap();
    write_dense(&folder.path("wide.npy"), DenseFormat::Npy, &wide).unwrap();
    write_dense(&folder.path("wide.csv"), DenseFormat::Csv, &wide).unwrap();
    let before = folder.listing();
    for (b, output, memory) in [
        ("wide.npy", "c.npy", "1MB"),
        ("wide.npy", "c.npy", "1"),
        ("wide.csv", "c.npy", "1"),
        ("wide.npy", "c.csv", "1MB"),
        ("wide.npy", "c.mtx", "1MB"),
    ] {
        // A limit on the size of files stands for a full disk: the second KiB cannot be written.
        let result = Command::new("bash")
            .args(["-c", r#"trap "" XFSZ; ulimit -f 1; exec "$0" "$@""#])
            .arg(assert_cmd::cargo::cargo_bin!("lodestar"))
            .args(["spmm", M, b, "-q", "--memory", memory, "--output", output])
            .current_dir(folder.0.path())
            .output()
            .unwrap();
        let case = format!("{b} {output} {memory}");
        assert_eq!(err(&result), format!("lodestar: {output}: File too large (os error 27)\n"), "{case}");
        assert_eq!((result.status.code(), folder.listing()), (Some(2), before.clone()), "{case}");
    }
}

#[test]
fn stdin_is_read_and_a_closed_pipe_is_no_error() {
    let folder = Folder::new();
    let expected = folder.answer(&[M, "b.npy"]);
    for (file, arguments) in [
        ("b.csv", [M, "-", "--format-b", "csv"]),
        ("b.npy", [M, "-", "--format-b", "npy"]),
        (M, ["-", "b.npy", "--format-a", "npz"]),
        ("m_general.mtx", ["-", "b.npy", "--format-a", "mtx"]),
    ] {
        let input = std::fs::File::open(folder.path(file)).unwrap();
        let output = folder.command().args(arguments).stdin(input).output().unwrap();
        assert_eq!(out(&output), expected, "{file}: {}", err(&output));
    }
    let input = std::fs::File::open(folder.path("m_general.mtx")).unwrap();
    let output = folder.command().args(["-", "b.npy", "--format-a", "npz"]).stdin(input).output().unwrap();
    assert_eq!(err(&output), "lodestar: stdin: byte 0: expected a zip archive (.npz), found \"%%Ma\"\n");
    // Far more output than a pipe holds, and nobody to read it.
    write_dense(&folder.path("wide.npy"), DenseFormat::Npy, &Matrix::new(8, 30_000, vec![1.5; 240_000]).unwrap())
        .unwrap();
    for format in ["csv", "npy"] {
        let arguments = [M, "wide.npy", "--output-format", format];
        let mut child = folder.command().args(arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        drop(child.stdout.take());
        let output = child.wait_with_output().unwrap();
        assert_eq!((output.status.code(), err(&output)), (Some(0), String::new()), "{format}");
    }
}

#[test]
fn json_and_timing_are_one_line_about_the_product() {
    let folder = Folder::new();
    for flag in ["--json", "--timing"] {
        let text = folder.answer(&[M, "b.npy", "-o", "c.npy", flag]);
        assert_eq!(text.lines().count(), 1);
        let line: serde_json::Value = serde_json::from_str(&text).unwrap();
        let entries = m().concat().iter().filter(|&&value| value != 0.0).count();
        assert_eq!((&line["a"], &line["b"]), (&serde_json::json!([6, 8]), &serde_json::json!([8, 3])));
        assert_eq!((&line["c"], &line["entries"]), (&serde_json::json!([6, 3]), &entries.into()));
        assert_eq!((&line["dtype"], &line["blocks"]), (&"f64".into(), &1.into()));
        for key in ["ms", "gflops", "read_ms", "write_ms"] {
            assert!(line[key].as_f64().unwrap() > 0.0, "{key}: {text}");
        }
    }
    let output = folder.run(&[M, "b.npy", "--timing", "--explain", "--device", "cpu", "--threads", "1"]);
    assert_eq!(plain(&out(&output)), times(&m(), &b()));
    let notes = err(&output);
    let lines: Vec<_> = notes.lines().collect();
    assert!(lines[0].starts_with("cpu (") && lines[0].ends_with(", 1 threads): as asked for"), "{notes}");
    assert!(serde_json::from_str::<serde_json::Value>(lines[1]).unwrap()["ms"].is_number(), "{notes}");
}

#[cfg(feature = "gpu")]
#[test]
fn a_device_multiplies_and_leaves_what_is_not_finite_to_the_cpu() {
    let wanted = std::env::var("LODESTAR_GPU").unwrap_or_default();
    if wanted == "off" {
        return;
    }
    let folder = Folder::new();
    folder.write("inf.csv", "1,2\n3,inf\n5,6\n1,2\n3,4\n5,6\n1,2\n3,4\n");
    let run = |b: &str, more: &[&str]| {
        folder.run(&[&[M, b, "--dtype", "f32", "--explain", "--device", "software"], more].concat())
    };
    let output = run("b.npy", &[]);
    let notes = err(&output);
    if output.status.code() == Some(2) && notes.contains("lodestar: no software adapter") {
        assert_ne!(wanted, "require", "{notes}");
        #[expect(clippy::print_stderr, reason = "a skip is named")]
        {
            eprintln!("skipped: {notes}");
        }
        return;
    }
    assert_eq!(plain(&out(&output)), times(&m(), &b()), "{notes}");
    assert!(notes.contains("software adapter (") && !notes.contains("the CPU multiplies instead"), "{notes}");
    let output = run("inf.csv", &[]);
    let notes = err(&output);
    assert_eq!(out(&output), folder.answer(&[M, "inf.csv", "--dtype", "f32"]), "{notes}");
    assert!(notes.contains("; the CPU multiplies instead"), "{notes}");
    // Block by block, said once.
    let output = run("b.npy", &["--memory", "100", "-o", "c.npy"]);
    assert_eq!((output.status.code(), load(&folder.path("c.npy")).0), (Some(0), times(&m(), &b())), "{}", err(&output));
}

fn corpus(name: &str) -> String {
    format!("{}/corpus/{name}", env!("CARGO_MANIFEST_DIR"))
}

#[test]
fn every_matrix_of_the_corpus_is_multiplied_within_the_bound_of_its_sums() {
    let folder = Folder::new();
    let mut count = 0;
    for entry in std::fs::read_dir(corpus("sparse")).unwrap() {
        let path = entry.unwrap().path();
        let Some(a) = path.to_str().filter(|path| !path.ends_with(".txt")) else { continue };
        let options = SparseOptions { dtype: Some(Dtype::F64), ..SparseOptions::default() };
        let SparseMatrix::F64(matrix) = read_sparse(&path, &options).unwrap().matrix else { panic!("{a}") };
        for (shape, more) in [(matrix.cols(), &[][..]), (matrix.rows(), &["--transpose-a"][..])] {
            let values = (0..u32::try_from(shape * 5).unwrap()).map(|at| f64::from(at * 7919 % 10_007) / 64.0 - 80.0);
            let b = Matrix::new(shape, 5, values.collect()).unwrap();
            write_dense(&folder.path("b.npy"), DenseFormat::Npy, &b).unwrap();
            folder.answer(&[&[a, "b.npy", "-q", "--dtype", "f64", "-o", "c.npy"], more].concat());
            let (c, dtype) = load(&folder.path("c.npy"));
            let wanted = if more.is_empty() { matrix.clone() } else { matrix.transpose().unwrap() };
            assert_eq!((c.len(), dtype), (wanted.rows(), "f64"));
            for (row, found) in c.iter().enumerate() {
                let (sums, magnitudes) = reference::row(&wanted, &b, row);
                let eps = (wanted.row(row).0.len() + 2) as f64 * f64::EPSILON / 2.0;
                // The reference has an error of the same size.
                let near =
                    |((found, sum), magnitude): ((&f64, &f64), &f64)| (found - sum).abs() <= 2.0 * eps * magnitude;
                assert!(found.iter().zip(&sums).zip(&magnitudes).all(near), "{a}: row {row}: {found:?} {sums:?}");
            }
        }
        count += 1;
    }
    assert_eq!(count, 12);
}

#[test]
fn the_words_of_the_readme_are_those_of_the_lighthouse() {
    let folder = Folder::new();
    let (tfidf, embeddings) = (corpus("sparse/wordnet-tfidf.npz"), corpus("wordnet/embeddings.npy"));
    assert_eq!(folder.answer(&[&tfidf, &embeddings, "--transpose-a", "--output", "words.npy"]), "");
    let files = ["sparse/wordnet-tfidf.txt", "wordnet/queries.npy", "wordnet/queries.txt"].map(corpus);
    let output = Command::new(assert_cmd::cargo::cargo_bin!("lodestar"))
        .current_dir(folder.0.path())
        .args(["topk", "--corpus", "words.npy", "--ids", &files[0], "--queries", &files[1], "--query-ids", &files[2]])
        .args(["--query", "a tower with a light that guides ships at night", "-k", "3", "--output-format", "table"])
        .output()
        .unwrap();
    let table = out(&output);
    assert_eq!(
        table.lines().map(|line| line.rsplit(' ').next().unwrap()).collect::<Vec<_>>(),
        ["night", "id", "tower", "night", "light"]
    );
    assert!(include_str!("../README.md").contains(&table), "{table}");
}
