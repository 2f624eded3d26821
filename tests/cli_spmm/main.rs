//! `lodestar spmm` as its users run it: products, formats, messages, exit codes, and what is left on the disk.
#![cfg(feature = "cli")]

#[path = "../program/folder.rs"]
mod folder;
mod memory;
#[path = "../program/mod.rs"]
mod program;
mod refusals;

use lodestar::data::Matrix;
use lodestar::formats::{
    DenseFormat, DenseOptions, Dtype, SparseMatrix, SparseOptions, read_dense, read_sparse, write_dense,
};
use lodestar::kernels::spmm::reference;
use program::{err, out};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

fn golden(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden/sparse").join(name)
}

/// A folder to run in, so that messages name files without theirs.
struct Folder(folder::Folder);

impl std::ops::Deref for Folder {
    type Target = folder::Folder;

    fn deref(&self) -> &folder::Folder {
        &self.0
    }
}

impl Folder {
    /// With the 6 x 8 matrix that scipy wrote, in two layouts, and something to multiply by it.
    fn new() -> Self {
        let folder = Self(folder::Folder::new("spmm"));
        for name in ["m_csr_i32_stored.npz", "m_general.mtx"] {
            folder.copy(name);
        }
        write_dense(&folder.path("b.npy"), DenseFormat::Npy, &b()).unwrap();
        write_dense(&folder.path("b.csv"), DenseFormat::Csv, &b()).unwrap();
        folder
    }

    fn copy(&self, name: &str) {
        std::fs::copy(golden(name), self.path(name)).unwrap();
    }

    /// Standard output of a run that has to succeed.
    fn answer(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        assert_eq!(output.status.code(), Some(0), "{arguments:?}: {}", err(&output));
        out(&output)
    }
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
    #[expect(clippy::cast_possible_truncation, reason = "small whole numbers")]
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

#[cfg(unix)]
#[test]
fn pipes_are_read_once_whatever_the_memory() {
    let folder = Folder::new();
    let expected = folder.answer(&[M, "b.npy"]);
    for memory in ["1MB", "336"] {
        let script = r#""$0" spmm <(cat "$1") <(cat b.npy) --format-a npz --format-b npy --memory "$2""#;
        let output = Command::new("bash")
            .args(["-c", script])
            .arg(assert_cmd::cargo::cargo_bin!("lodestar"))
            .args([M, memory])
            .current_dir(folder.root())
            .output()
            .unwrap();
        assert_eq!(out(&output), expected, "{}", err(&output));
    }
    let output = Command::new("bash")
        .args(["-c", r#""$0" spmm <(cat "$1") b.npy"#])
        .arg(assert_cmd::cargo::cargo_bin!("lodestar"))
        .arg(M)
        .current_dir(folder.root())
        .output()
        .unwrap();
    assert_eq!(err(&output), "lodestar: --format-a: expected one of mtx, npz for stdin or a pipe, found none\n");
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
        .current_dir(folder.root())
        .args(["topk", "--corpus", "words.npy", "--ids", &files[0], "--queries", &files[1], "--query-ids", &files[2]])
        .args(["--query", "a tower with a light that guides ships at night", "-k", "3", "--output-format", "table"])
        .output()
        .unwrap();
    let table = out(&output);
    assert_eq!(
        table.lines().map(|line| line.rsplit(' ').next().unwrap()).collect::<Vec<_>>(),
        ["night", "id", "tower", "night", "light"]
    );
    assert!(include_str!("../../README.md").contains(&table), "{table}");
}
