//! The program as its users run it: exit codes, messages, files.
#![cfg(feature = "cli")]

mod program;

use program::{err, out, refused};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// Messages are read with the files named as here, wherever the tests run.
fn lodestar() -> Command {
    program::lodestar(&golden())
}

fn golden() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden/topk")
}

fn run(arguments: &[&str]) -> Output {
    lodestar().args(arguments).output().unwrap()
}

/// Standard output of a run that has to succeed.
fn answer(arguments: &[&str]) -> String {
    let output = run(arguments);
    assert_eq!(output.status.code(), Some(0), "{arguments:?}: {}", err(&output));
    out(&output)
}

/// The one line that a run has to fail with; nothing on stdout, exit code 2.
fn refusal(arguments: &[&str]) -> String {
    let output = run(arguments);
    refused(&output, arguments)
}

const SEARCH: [&str; 5] = ["topk", "--corpus", "corpus.npy", "--queries", "queries.npy"];

fn search(more: &[&'static str]) -> Vec<&'static str> {
    SEARCH.iter().chain(more).copied().collect()
}

/// (query, row, score) of each line of csv.
fn results(csv: &str) -> Vec<(usize, usize, f32)> {
    let lines = csv.lines().skip(1).map(|line| line.split(',').collect::<Vec<_>>());
    lines.map(|fields| (fields[0].parse().unwrap(), fields[2].parse().unwrap(), fields[3].parse().unwrap())).collect()
}

#[test]
fn answers_are_those_of_another_program_on_every_metric() {
    for (metric, arguments) in [
        ("cosine", search(&["-k", "25"])),
        ("dot", search(&["-k", "25", "--metric", "dot"])),
        ("l2", search(&["-k", "25", "--metric", "l2"])),
    ] {
        let expected = std::fs::read_to_string(golden().join(format!("neighbors_{metric}.csv"))).unwrap();
        let found = answer(&arguments);
        assert_eq!(found.lines().next(), expected.lines().next());
        let (found, expected) = (results(&found), results(&expected));
        assert_eq!(found.len(), expected.len());
        for (found, expected) in found.iter().zip(&expected) {
            assert_eq!((found.0, found.1), (expected.0, expected.1), "{metric}");
            // Both round a sum in f64 to f32: at most one step apart.
            assert!(
                (found.2 - expected.2).abs() <= expected.2.abs() * f32::EPSILON,
                "{metric}: {found:?} {expected:?}"
            );
        }
    }
}

#[test]
fn the_answer_is_the_same_bytes_with_any_number_of_threads() {
    let one = answer(&search(&["-k", "7", "--threads", "1"]));
    assert_eq!(one, answer(&search(&["-k", "7", "--threads", "5"])));
    // And the beginning of a longer one.
    let longer = results(&answer(&search(&["-k", "30"])));
    let shorter = results(&one);
    for query in 0..9 {
        let of = |list: &[(usize, usize, f32)]| list.iter().filter(|r| r.0 == query).copied().collect::<Vec<_>>();
        assert_eq!(of(&shorter), of(&longer)[..7]);
    }
}

#[test]
fn unusual_rows_and_a_large_k_are_said_on_stderr() {
    let output = run(&search(&["-k", "1000"]));
    assert_eq!(results(&out(&output)).len(), 9 * 150);
    assert_eq!(
        err(&output),
        "k is 1000, and corpus.npy has 150 rows: all of them are returned\n\
         corpus.npy: 1 row has norm 0, so cosine 0 with everything\n"
    );
    assert_eq!(err(&run(&search(&["-k", "1000", "--quiet"]))), "");
    let output = run(&["topk", "--corpus", "m_c_be_f8.npy", "--queries", "m_c_le_f8.npy", "-k", "1", "--exclude-self"]);
    assert_eq!(
        err(&output),
        "m_c_be_f8.npy: f64 values are rounded to f32\nm_c_le_f8.npy: f64 values are rounded to f32\n"
    );
    assert_eq!(results(&out(&output)).len(), 37);
    assert!(results(&out(&output)).iter().all(|(query, row, _)| query != row));
}

#[test]
fn a_threshold_keeps_what_is_at_least_as_near() {
    let all = results(&answer(&search(&["-k", "150"])));
    let kept = results(&answer(&search(&["-k", "150", "--threshold", "0.5"])));
    assert!(!kept.is_empty());
    assert_eq!(kept, all.into_iter().filter(|result| result.2 >= 0.5).collect::<Vec<_>>());
    let all = results(&answer(&search(&["-k", "150", "--metric", "l2"])));
    let kept = results(&answer(&search(&["-k", "150", "--metric", "l2", "--threshold", "3.5"])));
    assert!(!kept.is_empty());
    assert_eq!(kept, all.into_iter().filter(|result| result.2 <= 3.5).collect::<Vec<_>>());
}

#[test]
fn matrices_that_are_none_are_refused_in_one_line() {
    let of = |corpus: &'static str| refusal(&["topk", "--corpus", corpus, "--queries", "queries.npy"]);
    assert_eq!(of("nowhere.npy"), "nowhere.npy: No such file or directory (os error 2)");
    let numbers = "header, descr: expected numbers of type float32, float16, float64, uint8 or int8, found";
    assert_eq!(of("bad_object.npy"), format!("bad_object.npy: {numbers} '|O' (Python objects)"));
    assert_eq!(of("bad_int64.npy"), format!("bad_int64.npy: {numbers} '<i8' (integers)"));
    let dimensions = "header, shape: expected 2 dimensions, (rows, columns), found";
    assert_eq!(of("bad_1d.npy"), format!("bad_1d.npy: {dimensions} 1: (7,)"));
    assert_eq!(of("bad_3d.npy"), format!("bad_3d.npy: {dimensions} 3: (37, 7, 1)"));
    assert_eq!(
        of("empty_rows.npy"),
        "empty_rows.npy: shape: expected at least one row of one column, found 0 rows of 7"
    );
    assert_eq!(of("m_c_le_f4.npy"), "queries.npy: shape: expected 7 columns, as in m_c_le_f4.npy, found 13");
    assert_eq!(
        of("versions.json"),
        "versions.json: extension: expected one of npy, fvecs, bvecs, csv, tsv (or name the format with --format), found .json"
    );
    assert_eq!(
        of("rows.parquet"),
        "rows.parquet: extension: expected one of npy, fvecs, bvecs, csv, tsv, found parquet, which is not supported yet"
    );
}

#[test]
fn a_truncated_file_and_a_size_that_does_not_fit_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let whole = std::fs::read(golden().join("corpus.npy")).unwrap();
    let path = folder.path().join("cut.npy");
    std::fs::write(&path, &whole[..5000]).unwrap();
    let path = path.to_str().unwrap();
    assert_eq!(
        refusal(&["topk", "--corpus", path, "--queries", "queries.npy"]),
        format!(
            "{path}: byte 5000: expected 7800 bytes of data (150 x 13 values of 4 bytes), found 4872: the file is truncated"
        )
    );
    let huge = &whole[..128];
    let at = huge.windows(9).position(|window| window == b"(150, 13)").unwrap();
    let huge = [&huge[..at], b"(9223372036854775807, 13)", &huge[at + 9..128 - 17], b"\n"].concat();
    std::fs::write(path, huge).unwrap();
    assert_eq!(
        refusal(&["topk", "--corpus", path, "--queries", "queries.npy"]),
        format!(
            "{path}: header, shape: expected a size that a file can have, found 9223372036854775807 x 13 values of 4 bytes"
        )
    );
}

#[test]
fn nan_and_infinity_are_refused_by_row_and_column_or_left_out_and_counted() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let good = write("good.csv", "1,0\n0,1\n1,1\n");
    let nan = write("nan.csv", "1,0\n0,nan\n1,1\n");
    let inf = write("inf.csv", "1,0\n0,1\n-inf,1\n");
    assert_eq!(
        refusal(&["topk", "--corpus", &nan, "--queries", &good]),
        format!("{nan}: row 1, column 1: expected a finite number, found NaN")
    );
    assert_eq!(
        refusal(&["topk", "--corpus", &good, "--queries", &inf]),
        format!("{inf}: row 2, column 0: expected a finite number, found -inf")
    );
    // The number in the file, not among those that were picked.
    assert_eq!(
        refusal(&["topk", "--corpus", &good, "--queries", &inf, "--query", "2"]),
        format!("{inf}: row 2, column 0: expected a finite number, found -inf")
    );
    let output = run(&["topk", "--corpus", &nan, "--queries", &inf, "--skip-bad", "-k", "2"]);
    assert_eq!(out(&output), "query,rank,row,cosine\n0,1,0,1\n0,2,2,0.70710677\n1,1,2,0.70710677\n1,2,0,0\n");
    assert_eq!(
        err(&output),
        format!(
            "{nan}: 1 row is left out for NaN or infinity\n{inf}: 1 row is without an answer for NaN or infinity\n"
        )
    );
}

#[test]
fn arguments_outside_of_their_range_are_refused_in_one_line() {
    assert_eq!(refusal(&search(&["-k", "0"])), "-k: expected at least 1, found 0");
    assert_eq!(refusal(&search(&["--threads", "0"])), "--threads: expected at least 1, found 0");
    assert_eq!(refusal(&search(&["--threshold", "nan"])), "--threshold: expected a number, found NaN");
    assert_eq!(
        refusal(&search(&["--output-format", "npy"])),
        "--output: expected a file name: npy is two files, found stdout"
    );
    assert_eq!(refusal(&search(&["--query", "9"])), "--query: expected a query number below 9, found 9");
    assert_eq!(
        refusal(&search(&["--query", "x"])),
        "--query: expected a query number, or --query-ids to find names in, found x"
    );
    assert_eq!(
        refusal(&["topk", "--corpus", "-", "--queries", "-"]),
        "-: expected stdin for one file only, found it several times"
    );
    assert_eq!(
        refusal(&["topk", "--corpus", "corpus.npy", "--queries", "-"]),
        "--format: expected one of npy, fvecs, bvecs, csv, tsv when reading stdin, found none"
    );
    assert_eq!(
        refusal(&search(&["--ids", "m_matrix.csv"])),
        "m_matrix.csv: names: expected 150, one for each row of corpus.npy, found 37"
    );
    // What clap refuses is a usage error too.
    assert_eq!(run(&search(&["--metric", "manhattan"])).status.code(), Some(2));
    assert_eq!(run(&["topk", "--corpus", "corpus.npy"]).status.code(), Some(2));
}

/// What a folder holds, hidden files included.
fn listing(folder: &Path) -> Vec<String> {
    let mut names: Vec<_> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn an_output_that_cannot_be_written_is_refused_and_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let of = |output: &str| refusal(&[SEARCH.as_slice(), &["--output", output]].concat());
    assert_eq!(of(&path("no/out.csv")), format!("{}: No such file or directory (os error 2)", path("no/out.csv")));
    std::fs::write(path("file"), b"").unwrap();
    assert_eq!(of(&path("file/out.csv")), format!("{}: Not a directory (os error 20)", path("file/out.csv")));
    assert_eq!(
        of(&path("out.xyz")),
        format!(
            "{}: extension: expected one of csv, tsv, jsonl, npy, ivecs (or name the format with --output-format), found .xyz",
            path("out.xyz")
        )
    );
    // A search that fails after the output was tried leaves none behind.
    let output = path("out.csv");
    refusal(&["topk", "--corpus", "bad_1d.npy", "--queries", "queries.npy", "--output", &output]);
    assert_eq!(listing(folder.path()), ["file"]);
}

#[cfg(target_os = "linux")]
#[test]
fn a_disk_that_fills_up_is_one_line_and_leaves_nothing() {
    assert_eq!(
        refusal(&search(&["--output", "/dev/full", "--output-format", "csv", "-q"])),
        "/dev/full: No space left on device (os error 28)"
    );
    let folder = tempfile::tempdir().unwrap();
    for name in ["out.csv", "out.jsonl", "out.npy", "out.ivecs"] {
        let path = folder.path().join(name);
        // A limit on the size of files stands for a full disk: the second KiB cannot be written.
        let output = Command::new("bash")
            .args(["-c", r#"trap "" XFSZ; ulimit -f 1; exec "$0" "$@""#])
            .arg(assert_cmd::cargo::cargo_bin!("lodestar"))
            .args(SEARCH)
            .args(["-k", "100", "-q", "--output"])
            .arg(&path)
            .current_dir(golden())
            .output()
            .unwrap();
        let message = err(&output);
        assert_eq!(output.status.code(), Some(2), "{message}");
        assert!(
            message.starts_with("lodestar: ") && message.ends_with(": File too large (os error 27)\n"),
            "{message}"
        );
        assert_eq!(message.lines().count(), 1, "{message}");
        assert_eq!(listing(folder.path()), [""; 0], "{name}");
    }
}

#[test]
fn files_hold_what_stdout_would() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let write = |name: &str| {
        let output = path(name);
        let arguments = [SEARCH.as_slice(), &["-k", "4", "--query", "2", "--query", "0"]].concat();
        let output = lodestar().args(&arguments).arg("--output").arg(output).output().unwrap();
        assert_eq!((output.status.code(), out(&output)), (Some(0), String::new()), "{}", err(&output));
    };
    let csv = answer(&search(&["-k", "4", "--query", "2", "--query", "0"]));
    assert_eq!(results(&csv).iter().map(|result| result.0).collect::<Vec<_>>(), [2, 2, 2, 2, 0, 0, 0, 0]);
    for name in ["out.csv", "out.tsv", "out.jsonl", "out.npy", "out.ivecs"] {
        write(name);
    }
    assert_eq!(
        listing(folder.path()),
        ["out.csv", "out.fvecs", "out.indices.npy", "out.ivecs", "out.jsonl", "out.scores.npy", "out.tsv"]
    );
    let read = |name: &str| std::fs::read_to_string(path(name)).unwrap();
    assert_eq!(read("out.csv"), csv);
    // A name says what the file holds; --json is about stdout.
    let arguments = [SEARCH.as_slice(), &["-k", "4", "--query", "2", "--query", "0", "--json"]].concat();
    let output = lodestar().args(&arguments).arg("--output").arg(path("json.csv")).output().unwrap();
    assert_eq!((output.status.code(), read("json.csv")), (Some(0), csv.clone()), "{}", err(&output));
    assert_eq!(read("out.tsv"), csv.replace(',', "\t"));
    assert_eq!(read("out.jsonl"), answer(&search(&["-k", "4", "--query", "2", "--query", "0", "--json"])));
    for line in read("out.jsonl").lines() {
        let value: serde_json::Value = serde_json::from_str(line).unwrap();
        assert_eq!(value["neighbors"].as_array().unwrap().len(), 4);
    }
    let scores = lodestar::formats::read_matrix(&path("out.scores.npy"), &Default::default()).unwrap();
    assert_eq!(scores, lodestar::formats::read_matrix(&path("out.fvecs"), &Default::default()).unwrap());
    assert_eq!(scores.values(), results(&csv).iter().map(|result| result.2).collect::<Vec<_>>());
    let rows: Vec<_> = std::fs::read(path("out.indices.npy")).unwrap()[128..]
        .chunks_exact(8)
        .map(|bytes| usize::try_from(i64::from_le_bytes(bytes.try_into().unwrap())).unwrap())
        .collect();
    assert_eq!(rows, results(&csv).iter().map(|result| result.1).collect::<Vec<_>>());
}

#[test]
fn stdin_is_read_and_a_closed_pipe_is_no_error() {
    let expected = answer(&["topk", "--corpus", "m_matrix.csv", "--queries", "m_matrix.csv", "-k", "2"]);
    for (file, format) in [("m_c_le_f4.npy", "npy"), ("m_records.fvecs", "fvecs"), ("m_two_members.csv.gz", "csv")] {
        let input = std::fs::File::open(golden().join(file)).unwrap();
        let arguments = ["topk", "--corpus", "m_matrix.csv", "--queries", "-", "--format", format, "-k", "2"];
        let output = lodestar().args(arguments).stdin(input).output().unwrap();
        assert_eq!(out(&output), expected, "{file}: {}", err(&output));
    }
    // Far more output than a pipe holds, and nobody to read it.
    let corpus = concat!(env!("CARGO_MANIFEST_DIR"), "/corpus/wordnet/queries.npy");
    let mut child = lodestar()
        .args(["topk", "--corpus", corpus, "--queries", corpus, "-k", "64"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), err(&output)), (Some(0), String::new()));
}

fn wordnet(more: &[&'static str]) -> Vec<String> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/corpus/wordnet");
    let files = ["--corpus", "embeddings.npy", "--ids", "titles.tsv"];
    let mut arguments = vec!["topk".to_owned()];
    for word in files.iter().chain(more) {
        let is_file = Path::new(folder).join(word).is_file();
        arguments.push(if is_file { format!("{folder}/{word}") } else { (*word).to_owned() });
    }
    arguments
}

#[test]
fn the_answer_about_lighthouses_is_one_that_a_person_can_judge() {
    let question = "a tower with a light that guides ships at night";
    let arguments = wordnet(&["--queries", "queries.npy", "--query-ids", "queries.txt", "--query", question]);
    let output = lodestar().args(arguments).args(["-k", "5", "--output-format", "table"]).output().unwrap();
    assert_eq!(
        out(&output),
        "\
query 1: a tower with a light that guides ships at night
  rank  cosine    row  id
     1  0.5420   3501  lightship
     2  0.5368   4051  sidelight
     3  0.4975  10749  sunbeam
     4  0.4932   3618  mooring tower
     5  0.4922   4346  turret
"
    );
}

#[test]
fn what_is_like_a_row_is_found_by_its_name() {
    let of = |more: &[&'static str]| lodestar().args(wordnet(more)).output().unwrap();
    let output = of(&["--like", "lightship", "-k", "2"]);
    assert_eq!(
        out(&output),
        "query,query_id,rank,row,id,cosine\n3501,lightship,1,3978,save-all,0.592653\n3501,lightship,2,3929,rigger,0.58690155\n"
    );
    // A number is a row; two rows have this name, and each is near the other.
    assert_eq!(out(&of(&["--like", "3501", "-k", "2"])), out(&output));
    let rows: Vec<_> =
        out(&of(&["--like", "harbor", "-k", "1"])).lines().skip(1).map(|line| line[..21].to_owned()).collect();
    assert_eq!(rows, ["3316,harbor,1,16033,h", "16033,harbor,1,3316,h"]);
    let output = of(&["--like", "lighthouse"]);
    assert_eq!(output.status.code(), Some(2));
    let message = err(&output);
    assert!(message.contains("--like: expected a name in ") && message.contains("(such as light, "), "{message}");
    assert!(message.ends_with(", found lighthouse\n"), "{message}");
}

#[test]
fn timing_is_the_last_line_of_stdout_when_the_answer_is_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let output = folder.path().join("out.csv");
    let output = lodestar().args(SEARCH).arg("--timing").arg("--output").arg(output).output().unwrap();
    let line: serde_json::Value = serde_json::from_str(out(&output).trim()).unwrap();
    assert!(line["ms"].as_f64().unwrap() > 0.0 && line["gflops"].is_number());
    assert_eq!((&line["rows"], &line["queries"], &line["k"]), (&150.into(), &9.into(), &10.into()));
    let output = run(&search(&["--timing", "--explain", "--device", "cpu"]));
    assert!(out(&output).starts_with("query,rank,row,cosine\n"));
    let notes = err(&output);
    let lines: Vec<_> = notes.lines().collect();
    assert!(lines[0].starts_with("cpu (") && lines[0].ends_with("as asked for"), "{notes}");
    assert!(serde_json::from_str::<serde_json::Value>(lines[lines.len() - 1]).is_ok(), "{notes}");
}

#[test]
fn the_committed_corpus_is_verified_and_a_changed_file_is_named() {
    let corpus = concat!(env!("CARGO_MANIFEST_DIR"), "/corpus");
    let verified = answer(&["corpus", "verify", "--corpus-dir", corpus]);
    assert_eq!(verified.lines().count(), 21);
    assert!(verified.starts_with("ok  wordnet/embeddings.npy\n"));
    let listed: serde_json::Value = serde_json::from_str(&answer(&["corpus", "list", "--json"])).unwrap();
    assert_eq!(listed.as_array().unwrap().len(), 21);
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("wordnet")).unwrap();
    std::fs::write(folder.path().join("wordnet/embeddings.npy"), b"x").unwrap();
    let path = folder.path().to_str().unwrap();
    assert_eq!(
        refusal(&["corpus", "verify", "--corpus-dir", path]),
        format!("{path}/wordnet/embeddings.npy: length: expected 15360128 bytes, found 1")
    );
}

#[test]
fn a_generated_matrix_is_the_same_file_every_time() {
    let folder = tempfile::tempdir().unwrap();
    let make = |name: &str, more: &[&str]| {
        let path = folder.path().join(name);
        let output = lodestar().args(["corpus", "make"]).args(more).arg("--output").arg(&path).output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{}", err(&output));
        lodestar::formats::read_matrix(&path, &Default::default()).unwrap()
    };
    let matrix = make("a.npy", &["clustered", "--rows", "1000", "--cols", "33", "--seed", "7"]);
    assert_eq!(matrix, lodestar::data::generate::matrix("clustered", 1000, 33, 7).unwrap());
    let queries = make("q.npy", &["sorted", "--rows", "3", "--cols", "5", "--queries", "2"]);
    assert_eq!(queries, lodestar::data::generate::queries("sorted", 3, 5, 42, 2).unwrap());
    // Wider than a batch: one block at a time.
    assert_eq!(make("w.npy", &["gaussian", "--rows", "600", "--cols", "20000"]).rows(), 600);
    assert_eq!(
        refusal(&["corpus", "make", "normal", "--rows", "1", "--cols", "1", "-o", "x.npy"]),
        "distribution: expected one of gaussian, clustered, duplicates, sorted, tf-idf, zipf, power-law, banded, skewed, \
         letters, dna, cjk, found normal"
    );
    assert_eq!(
        refusal(&["corpus", "make", "gaussian", "--rows", "99999999999", "--cols", "99999999999", "-o", "x.npy"]),
        "matrix: expected a size that fits into memory, found 99999999999 x 99999999999 values of 4 bytes"
    );
}

#[test]
fn a_generated_sparse_matrix_is_the_same_in_either_format() {
    use lodestar::formats::{SparseMatrix, SparseOptions, read_sparse};
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    for kind in lodestar::data::generate_sparse::MATRICES {
        let expected = lodestar::data::generate_sparse::matrix(kind, 100, 7).unwrap();
        for output in [path("a.npz"), path("a.mtx")] {
            answer(&["--quiet", "corpus", "make", kind, "--rows", "100", "--seed", "7", "--output", &output]);
            let input = read_sparse(output.as_ref(), &SparseOptions::default()).unwrap();
            // Repeated entries of text are added up.
            if expected.repeated() == 0 || output.ends_with("npz") {
                assert_eq!(input.matrix, SparseMatrix::F64(expected.clone()), "{output}");
            } else {
                assert_eq!(input.matrix.entries() + input.summed, expected.entries(), "{output}");
            }
        }
    }
    let make = |kind: &str, more: &[&str]| refusal(&[&["corpus", "make", kind, "--rows", "9"], more].concat());
    let own = "expected none: zipf is a sparse matrix, which has its own width and no queries, found";
    assert_eq!(make("zipf", &["--cols", "5", "-o", "x.npz"]), format!("--cols: {own} 5"));
    assert_eq!(make("zipf", &["--queries", "0", "-o", "x.npz"]), format!("--queries: {own} 0"));
    assert_eq!(make("zipf", &["-o", "x.npy"]), "x.npy: extension: expected .npz or .mtx, found .npy");
    assert_eq!(
        make("sorted", &["-o", "x.npy"]),
        "--cols: expected a number of columns: sorted is a dense matrix of any width, found none"
    );
}

#[test]
fn generated_strings_are_lines_and_edited_ones_lie_beside_them() {
    use lodestar::data::generate_texts::{alphabet, edited, texts};
    let folder = tempfile::tempdir().unwrap();
    let make = |name: &str, more: &[&str]| {
        let path = folder.path().join(name);
        let output = path.to_str().unwrap();
        answer(&[&["--quiet", "corpus", "make"], more, &["--seed", "7", "--output", output]].concat());
        let lines = std::fs::read_to_string(&path).unwrap();
        assert!(lines.ends_with('\n') && !lines.contains('\r'));
        lines.lines().map(|line| line.chars().map(u32::from).collect::<Vec<_>>()).collect::<Vec<_>>()
    };
    for kind in ["letters", "dna", "cjk"] {
        let strings = texts(kind, 300, 12..=12, 7, 0).unwrap();
        let copies = edited(&strings, 20, &alphabet(kind).unwrap(), 7, 0).unwrap();
        let symbols = |texts: &lodestar::data::Texts| {
            texts.iter().map(|text| text.iter().collect::<Vec<_>>()).collect::<Vec<_>>()
        };
        assert_eq!(make("a.txt", &[kind, "--rows", "300", "--cols", "12"]), symbols(&strings));
        assert_eq!(make("b.txt", &[kind, "--rows", "300", "--cols", "12", "--edits", "20"]), symbols(&copies));
    }
    let make = |kind: &str, more: &[&str]| refusal(&[&["corpus", "make", kind, "--rows", "9"], more].concat());
    assert_eq!(
        make("dna", &["-o", "x.txt"]),
        "--cols: expected a number of symbols: dna are strings of any length, found none"
    );
    assert_eq!(make("dna", &["--cols", "5", "-o", "x.npy"]), "x.npy: extension: expected .txt, found another");
    assert_eq!(
        make("dna", &["--cols", "5", "--queries", "1", "-o", "x.txt"]),
        "--queries: expected none: dna are strings, found 1"
    );
    assert_eq!(make("zipf", &["--edits", "5", "-o", "x.npz"]), "--edits: expected none: zipf is a matrix, found 5");
}

#[test]
fn the_committed_matrix_of_terms_is_made_from_the_glosses_by_its_command() {
    let corpus = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("corpus");
    let titles = corpus.join("wordnet/titles.tsv");
    let folder = tempfile::tempdir().unwrap();
    let output = folder.path().join("wordnet-tfidf.npz");
    let command = ["corpus", "tfidf", titles.to_str().unwrap(), "--column", "3", "--min-df", "2", "--output"];
    let run = lodestar().args(command).arg(&output).arg("--json").output().unwrap();
    assert_eq!(run.status.code(), Some(0), "{}", err(&run));
    for name in ["wordnet-tfidf.npz", "wordnet-tfidf.txt"] {
        let [made, committed] = [folder.path(), &corpus.join("sparse")].map(|at| std::fs::read(at.join(name)).unwrap());
        assert!(made == committed, "{name} differs from the committed file");
    }
    let said: serde_json::Value = serde_json::from_str(&out(&run)).unwrap();
    assert_eq!((&said["rows"], &said["cols"], &said["entries"]), (&20_000.into(), &11_174.into(), &176_881.into()));
}

#[test]
fn text_that_gives_no_matrix_is_refused_and_nothing_is_overwritten() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (text, matrix) = (path("text.txt"), path("matrix.mtx"));
    std::fs::write(&text, "one\ttwo\nthree\n...\n").unwrap();
    let make = |more: &[&str]| refusal(&[&["corpus", "tfidf", &text], more].concat());
    let overwrites = format!("--output: expected a name under which nothing overwrites the input, found {text}");
    assert_eq!(make(&["--output", &path("text.npz")]), overwrites);
    assert_eq!(
        make(&["--output", &matrix, "--min-df", "2"]),
        format!("{text}: terms: expected at least one word that is in 2 or more of the 3 lines, found none")
    );
    assert_eq!(
        make(&["--output", &matrix, "--column", "2"]),
        format!("{text}: line 2: expected at least 2 columns, separated by tabs, found 1")
    );
    assert_eq!(
        make(&["--output", &path("matrix.mtx.gz")]),
        format!("{}: extension: expected .npz or .mtx, found .gz", path("matrix.mtx.gz"))
    );
    assert!(refusal(&["corpus", "tfidf", &path("none.txt"), "--output", &matrix]).starts_with(&path("none.txt")));
    let present: Vec<_> = std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(present, ["text.txt"]);
    // A column that every line has; weights of single words are 1.
    assert_eq!(answer(&["--quiet", "corpus", "tfidf", &text, "--column", "1", "--output", &matrix]), "");
    assert_eq!(std::fs::read_to_string(path("matrix.txt")).unwrap(), "one\nthree\n");
    let written = std::fs::read_to_string(&matrix).unwrap();
    assert!(written.ends_with("3 2 2\n1 1 1\n2 2 1\n"), "{written}");
}

#[cfg(feature = "gpu")]
#[test]
fn the_answer_of_a_device_is_that_of_the_cpu() {
    let wanted = std::env::var("LODESTAR_GPU").unwrap_or_default();
    if wanted == "off" {
        return;
    }
    for metric in ["cosine", "dot", "l2"] {
        let arguments = [search(&["-k", "25", "--explain", "--metric"]), vec![metric]].concat();
        let expected = answer(&arguments);
        let output = run(&[arguments.as_slice(), &["--device", "software"]].concat());
        let notes = err(&output);
        if output.status.code() == Some(2) && notes.contains("lodestar: no software adapter") {
            assert_ne!(wanted, "require", "{notes}");
            #[expect(clippy::print_stderr, reason = "a skip is named")]
            {
                eprintln!("skipped: {notes}");
            }
            return;
        }
        assert_eq!(out(&output), expected, "{metric}: {notes}");
        assert!(notes.contains("software adapter ("), "{notes}");
        assert!(!notes.contains("the CPU searches instead"), "{notes}");
    }
}
