//! What is wrong with the input is one line that names it; exit code 2, and no file.

use super::{Folder, M, err};

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
    assert_eq!(folder.refusal(&["-", "b.npy"]), "--format-a: expected one of mtx, npz for stdin or a pipe, found none");
    assert_eq!(
        folder.refusal(&[M, "-"]),
        "--format-b: expected one of npy, csv, tsv, mtx for stdin or a pipe, found none"
    );
    for usage in [&["--dtype", "f16"][..], &["--memory", "0"], &["--memory", "lots"], &["--output-format", "npz"]] {
        assert_eq!(folder.run(&[&[M, "b.npy"], usage].concat()).status.code(), Some(2), "{usage:?}");
    }
    assert_eq!(folder.run(&[M]).status.code(), Some(2));
}
