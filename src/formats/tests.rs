//! Broken files, one by one: each gives one line with path, position, what was expected, what was found.

use super::*;
use std::path::PathBuf;

/// A file with these bytes; the folder lives as long as the first value.
fn file(name: &str, bytes: &[u8]) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(name);
    std::fs::write(&path, bytes).unwrap();
    (folder, path)
}

/// The message about a file with these bytes, without its path. Values are read too.
fn message(name: &str, bytes: &[u8]) -> String {
    let (_folder, path) = file(name, bytes);
    let message = read_matrix(&path, &Options::default()).expect_err(name).to_string();
    assert!(!message.contains('\n'), "{message}");
    message.strip_prefix(&format!("{}: ", path.display())).unwrap_or_else(|| panic!("no path: {message}")).to_owned()
}

fn read(name: &str, bytes: &[u8]) -> Matrix {
    let (_folder, path) = file(name, bytes);
    read_matrix(&path, &Options::default()).unwrap()
}

/// A .npy file with this header text and these data.
fn npy(header: &str, data: &[u8]) -> Vec<u8> {
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend(u16::try_from(header.len()).unwrap().to_le_bytes());
    bytes.extend(header.as_bytes());
    bytes.extend(data);
    bytes
}

fn shape(shape: &str, data: &[u8]) -> Vec<u8> {
    npy(&format!("{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}}}"), data)
}

#[test]
fn what_is_no_npy_file_is_named() {
    assert_eq!(message("a.npy", b""), "byte 0: expected a .npy array, found an empty file");
    assert_eq!(
        message("a.npy", b"PK\x03\x04 a zip file"),
        r#"byte 0: expected the start of a .npy file, \x93NUMPY, found "PK\x03\x04 a""#
    );
    assert_eq!(message("a.npy", b"\x93NU"), r#"byte 0: expected the start of a .npy file, \x93NUMPY, found "\x93NU""#);
    assert_eq!(
        message("a.npy", b"\x93NUMPY\x01\x00"),
        "byte 8: expected a header of 10 bytes, found the end of the file: it is truncated"
    );
    assert_eq!(
        message("a.npy", b"\x93NUMPY\x09\x00\x10\x00    "),
        "byte 6: expected .npy version 1.0, 2.0 or 3.0, found 9.0"
    );
    assert_eq!(
        message("a.npy", b"\x93NUMPY\x01\x00\x76\x00{'descr'"),
        "byte 18: expected a header of 128 bytes, found the end of the file: it is truncated"
    );
    assert_eq!(
        message("a.npy", b"\x93NUMPY\x02\x00\xff\xff\xff\xff{'descr'"),
        "byte 8: expected a header of at most 65536 bytes, found 4294967295 bytes"
    );
}

#[test]
fn a_header_that_is_no_dictionary_or_lacks_an_entry_is_named() {
    assert_eq!(message("a.npy", &npy("[1]", b"")), r#"header: expected a Python dictionary, found "[1]""#);
    let long = format!("{{{}", "'a': ".repeat(40));
    assert!(message("a.npy", &npy(&long, b"")).ends_with(r#"...""#));
    assert_eq!(
        message("a.npy", &npy("{'descr': '<f4', 'shape': (1, 1)}", b"")),
        "header: expected an entry 'fortran_order', found none"
    );
    assert_eq!(
        message("a.npy", &npy("{'descr': '<f4', 'fortran_order': 1, 'shape': (1, 1)}", b"")),
        "header, fortran_order: expected True or False, found 1"
    );
    assert_eq!(message("a.npy", &shape("(2, '3')", b"")), "header, shape: expected two whole numbers, found (2, '3')");
    assert_eq!(message("a.npy", &shape("(-2, 3)", b"")).split(": ").next(), Some("header"));
    assert_eq!(
        message("a.npy", &npy("{'descr': 'f4', 'fortran_order': False, 'shape': (1, 1)}", b"")),
        "header, descr: expected numbers of type float32, float16, float64, uint8 or int8, found 'f4' (an unknown type)"
    );
}

#[test]
fn a_length_that_is_not_what_the_header_says_is_named() {
    assert_eq!(
        message("a.npy", &shape("(3, 2)", &[0; 23])),
        "byte 90: expected 24 bytes of data (3 x 2 values of 4 bytes), found 23: the file is truncated"
    );
    assert_eq!(
        message("a.npy", &shape("(3, 2)", &[0; 25])),
        "byte 91: expected the end of the file after 3 x 2 values of 4 bytes, found 1 more bytes"
    );
    assert_eq!(
        message("a.npy", &shape("(1000000000, 384)", &[0; 4])),
        "byte 82: expected 1536000000000 bytes of data (1000000000 x 384 values of 4 bytes), found 4: the file is truncated"
    );
    for overflow in ["(9223372036854775808, 4)", "(18446744073709551615, 1)", "(4611686018427387903, 1)"] {
        let message = message("a.npy", &shape(overflow, &[]));
        assert!(message.starts_with("header, shape: expected a size that a file can have, found "), "{message}");
    }
    assert!(message("a.npy", &shape("(99999999999999999999999999, 4)", &[])).contains("a size that a file can have"));
    // No values at all, whatever the other dimension says.
    assert_eq!(read("a.npy", &shape("(0, 384)", &[])).rows(), 0);
}

#[test]
fn no_header_makes_the_reader_panic() {
    // Every prefix and every single changed byte of a good file: an error or a matrix, never a panic.
    let good = shape("(2, 3)", &[7; 24]);
    let (_folder, path) = file("a.npy", &good);
    for length in 0..good.len() {
        std::fs::write(&path, &good[..length]).unwrap();
        assert!(read_matrix(&path, &Options::default()).is_err(), "{length} bytes");
    }
    for position in 0..good.len() - 24 {
        for byte in [0, b'(', b'\'', b'9', b'{', 0xff] {
            let mut changed = good.clone();
            changed[position] = byte;
            std::fs::write(&path, &changed).unwrap();
            let _ = read_matrix(&path, &Options::default());
        }
    }
}

#[test]
fn a_file_that_shrinks_after_it_was_opened_is_an_error() {
    let (_folder, path) = file("a.npy", &shape("(2, 2)", &[0; 16]));
    let input = open(&path, &Options::default()).unwrap();
    std::fs::write(&path, b"").unwrap();
    let message = input.rows.block(1, 1, &mut Vec::new()).unwrap_err().to_string();
    let expected = "byte 75: expected 8 more bytes, found the end of the file (has it shrunk since it was opened?)";
    assert_eq!(message, format!("{}: {expected}", path.display()));
}

fn fvecs(rows: &[&[f32]]) -> Vec<u8> {
    let record = |row: &&[f32]| -> Vec<u8> {
        let head = i32::try_from(row.len()).unwrap().to_le_bytes().to_vec();
        head.into_iter().chain(row.iter().flat_map(|value| value.to_le_bytes())).collect()
    };
    rows.iter().flat_map(record).collect()
}

#[test]
fn broken_records_are_named() {
    let good = fvecs(&[&[1.0, 2.0], &[3.0, 4.0], &[5.0, 6.0]]);
    assert_eq!(read("a.fvecs", &good).values(), [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    assert_eq!(
        message("a.fvecs", &good[..good.len() - 3]),
        "record 2: expected 12 bytes (2 columns), found 9: the file is truncated"
    );
    assert_eq!(
        message("a.fvecs", &good[..26]),
        "record 2: expected its number of columns, 4 bytes, found 2: the file is truncated"
    );
    assert_eq!(
        message("a.fvecs", &fvecs(&[&[1.0, 2.0], &[3.0], &[5.0, 6.0]])),
        "record 1: expected 2 columns, as in record 0, found 1"
    );
    // Lengths that add up to a whole number of records are found when the record is read.
    assert_eq!(
        message("a.fvecs", &fvecs(&[&[1.0, 2.0], &[3.0], &[5.0, 6.0, 7.0]])),
        "record 1: expected 2 columns, as in record 0, found 1"
    );
    assert_eq!(message("a.fvecs", &[0; 12]), "record 0: expected a number of columns above 0, found 0");
    assert_eq!(message("a.fvecs", &[0xff; 12]), "record 0: expected a number of columns above 0, found -1");
    assert_eq!(
        message("a.bvecs", b"\xff\xff\xff\x7f1234"),
        "record 0: expected 2147483651 bytes (2147483647 columns), found 8: the file is truncated"
    );
    assert_eq!(
        message("a.bvecs", b"\x01\0\0\0a\x02\0\0\0bc\x01\0\0\0d"),
        "record 1: expected 1 columns, as in record 0, found 2"
    );
    assert_eq!(read("a.bvecs", b"\x01\0\0\0a\x01\0\0\0\xff").values(), [97.0, 255.0]);
    assert_eq!(read("a.fvecs", b"").rows(), 0);
}

#[test]
fn broken_text_is_named_by_line_and_column() {
    assert_eq!(message("a.csv", b"1,2\n3,x\n"), r#"line 2, column 2: expected a number, found "x""#);
    assert_eq!(message("a.csv", b"1,2\n\n3,\n"), "line 3, column 2: expected a number, found an empty field");
    assert_eq!(message("a.csv", b"a,b\n3,4\n5\n"), "line 3: expected 2 fields, as in the first line, found 1");
    assert_eq!(message("a.csv", b"1,2\n3,4,5\n"), "line 2: expected 2 fields, as in the first line, found 3");
    assert_eq!(message("a.csv", b"id,1\n"), r#"line 1, column 1: expected a number, found "id""#);
    assert_eq!(message("a.csv", b"1,\xff\n"), "line 1, column 2: expected a number, found \"\u{fffd}\"");
    assert_eq!(message("a.csv", b"1,2\n3;4\n"), "line 2: expected 2 fields, as in the first line, found 1");
    assert_eq!(message("a.csv", b"1;2\n3;4\n"), r#"line 2, column 1: expected a number, found "3;4""#);
    // Blank lines count, quoted or not, with either end of line.
    assert_eq!(
        message("a.csv", b"\"1\",\"2\"\r\n\r\n3,\"x\"\r\n"),
        r#"line 3, column 2: expected a number, found "x""#
    );
    assert_eq!(
        message("a.csv", b",a,b\n0,1,2\n"),
        "line 1, column 1: expected a name or a number, found an empty field (is it a column of row numbers? leave it out)"
    );
    let long = format!("1,{}\n", "z".repeat(100));
    assert_eq!(
        message("a.csv", long.as_bytes()),
        format!("line 1, column 2: expected a number, found {:?}...", "z".repeat(40))
    );
}

#[test]
fn numbers_are_read_as_written() {
    let matrix = read("a.csv", b"x,y\n 1e3 ,-0.5\n\"+2\",1E-3\n0.1,16777217\n");
    assert_eq!(matrix.values(), [1000.0, -0.5, 2.0, 0.001, 0.1, 16_777_216.0]);
    assert_eq!(read("a.csv", b"").cols(), 0);
    assert_eq!(read("a.csv", b"a,b\n").rows(), 0);
    assert!(read("a.csv", b"nan,inf\n").values()[0].is_nan());
    assert_eq!(read("a.csv", b"0,1\n").rows(), 0);
    assert_eq!(read("a.csv", b"0\n1\n").rows(), 2);
}

#[test]
fn compressed_text_that_is_cut_or_changed_is_an_error() {
    use std::io::Write;
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    let text = "1,2\n".repeat(1000);
    encoder.write_all(text.as_bytes()).unwrap();
    let gz = encoder.finish().unwrap();
    assert_eq!(read("a.csv.gz", &gz).rows(), 1000);
    message("a.csv.gz", &gz[..gz.len() - 9]);
    let zst = ruzstd::encoding::compress_to_vec(text.as_bytes(), ruzstd::encoding::CompressionLevel::Fastest);
    assert_eq!(read("a.csv.zst", &zst).rows(), 1000);
    message("a.csv.zst", &zst[..zst.len() - 5]);
    let mut changed = zst.clone();
    *changed.last_mut().unwrap() ^= 1;
    assert_eq!(message("a.csv.zst", &changed), "zstd: the checksum does not match");
}

#[test]
fn missing_files_folders_and_extensions_are_named() {
    let error = |path: &str| open(Path::new(path), &Options::default()).err().unwrap().to_string();
    assert_eq!(error("/no/such/file.npy"), "/no/such/file.npy: No such file or directory (os error 2)");
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("folder.npy");
    std::fs::create_dir(&path).unwrap();
    assert_eq!(error(path.to_str().unwrap()), format!("{}: is a folder, not a file", path.display()));
    assert_eq!(
        error("x.parquet"),
        "x.parquet: extension: expected one of npy, fvecs, bvecs, csv, tsv, found parquet, which is not supported yet"
    );
    for (path, name) in [("x.safetensors", "safetensors"), ("x.arrow", "Arrow IPC"), ("X.FEATHER", "Arrow IPC")] {
        assert!(error(path).ends_with(&format!("found {name}, which is not supported yet")), "{path}");
    }
    assert_eq!(
        error("x.bin"),
        "x.bin: extension: expected one of npy, fvecs, bvecs, csv, tsv (or name the format with --format), found .bin"
    );
    assert!(error("x").ends_with("found none"));
    assert_eq!(error("-"), "--format: expected one of npy, fvecs, bvecs, csv, tsv when reading stdin, found none");
    assert_eq!(
        error("x.npy.gz"),
        "x.npy.gz: extension: expected an uncompressed .npy (only text is read compressed), found a compressed file"
    );
    assert_eq!(Format::of(Path::new("A.CSV.GZ")).unwrap(), Format::Csv);
}

#[test]
fn a_format_that_is_named_wins_over_the_extension() {
    let (_folder, path) = file("numbers.txt", b"1,2\n");
    let options = Options { format: Some(Format::Csv) };
    assert_eq!(read_matrix(&path, &options).unwrap().values(), [1.0, 2.0]);
}

#[test]
fn names_are_lines_or_first_columns() {
    let names = |name: &str, bytes: &[u8]| {
        let (_folder, path) = file(name, bytes);
        Names::read(&path).map(|names| names.iter().map(str::to_owned).collect::<Vec<_>>())
    };
    assert_eq!(names("a.txt", "\u{feff}eins\r\n\nd\u{f6}rt\t2".as_bytes()).unwrap(), ["eins", "", "d\u{f6}rt\t2"]);
    assert_eq!(names("a.tsv", b"a\tb\tc\n\"d\nx\t").unwrap(), ["a", "\"d", "x"]);
    assert_eq!(names("a.txt", b"").unwrap(), [""; 0]);
    assert!(
        names("a.txt", b"a\nb\xff\n").unwrap_err().to_string().ends_with(r#"line 2: expected UTF-8, found "b\xff""#)
    );
}

#[test]
fn a_column_is_one_field_of_each_line() {
    let column = |bytes: &[u8], column| {
        let (_folder, path) = file("a.txt", bytes);
        Names::read_column(&path, column).map(|names| names.iter().map(str::to_owned).collect::<Vec<_>>())
    };
    assert_eq!(column(b"a\tb\tc d\r\n\t\t\n1\t2\t3\t4", 2).unwrap(), ["c d", "", "3"]);
    assert_eq!(column(b"", 5).unwrap(), [""; 0]);
    let message = column(b"a\tb\nc\n", 1).unwrap_err().to_string();
    assert!(message.ends_with("line 2: expected at least 2 columns, separated by tabs, found 1"), "{message}");
    // Only what is read has to be text.
    assert_eq!(column(b"\xff\tb\n", 1).unwrap(), ["b"]);
    assert!(column(b"a\t\xff\n", 1).is_err());
    let (_folder, path) = file("a.tsv", b"a\tb\n");
    assert_eq!(Names::read_lines(&path).unwrap().get(0), "a\tb");
}

#[test]
fn names_like_one_that_is_not_there_are_suggested() {
    let (_folder, path) = file("a.txt", b"lightship\nlight\nship\nlightship\ntower\nLighter\nmoonlight\n");
    let names = Names::read(&path).unwrap();
    assert_eq!(names.rows_named("lightship").collect::<Vec<_>>(), [0, 3]);
    assert_eq!(names.rows_named("lighthouse").count(), 0);
    assert_eq!(names.similar("lighthouse", 3), ["light", "Lighter", "lightship"]);
    assert_eq!(names.similar("moon", 3), ["moonlight"]);
    assert_eq!(names.similar("xyz", 3), [""; 0]);
}

const OFFSETS: [usize; 4] = [0, 2, 2, 3];

fn lists<'a>(ids: Option<&'a Names>, query_ids: Option<&'a Names>) -> RankedLists<'a> {
    RankedLists {
        offsets: &OFFSETS,
        rows: &[1, 0, 2],
        scores: &[1.0, 0.1, -2.5e-9],
        width: 2,
        score: "cosine",
        numbers: None,
        ids,
        query_ids,
    }
}

fn text(lists: &RankedLists, format: ListFormat) -> String {
    let mut bytes = Vec::new();
    lists.write_text(format, &mut bytes).unwrap().unwrap();
    String::from_utf8(bytes).unwrap()
}

#[test]
fn lists_are_written_with_and_without_names() {
    let (_folder, path) = file("names.txt", b"say \"hi\"\nb,c\nd\n");
    let names = Names::read(&path).unwrap();
    assert_eq!(text(&lists(None, None), ListFormat::Csv), "query,rank,row,cosine\n0,1,1,1\n0,2,0,0.1\n2,1,2,-2.5e-9\n");
    assert_eq!(
        text(&lists(Some(&names), Some(&names)), ListFormat::Csv),
        "query,query_id,rank,row,id,cosine\n0,\"say \"\"hi\"\"\",1,1,\"b,c\",1\n0,\"say \"\"hi\"\"\",2,0,\"say \"\"hi\"\"\",0.1\n2,d,1,2,d,-2.5e-9\n"
    );
    assert_eq!(
        text(&lists(Some(&names), None), ListFormat::Jsonl),
        r#"{"query":0,"neighbors":[{"row":1,"id":"b,c","cosine":1},{"row":0,"id":"say \"hi\"","cosine":0.1}]}
{"query":1,"neighbors":[]}
{"query":2,"neighbors":[{"row":2,"id":"d","cosine":-2.5e-9}]}
"#
    );
}

#[test]
fn queries_keep_their_own_numbers_and_names() {
    let (_folder, path) = file("names.txt", b"a\nb\nc\nd\n");
    let names = Names::read(&path).unwrap();
    let lists = RankedLists { numbers: Some(&[3, 0, 1]), ..lists(None, Some(&names)) };
    assert_eq!(
        text(&lists, ListFormat::Tsv),
        "query\tquery_id\trank\trow\tcosine\n3\td\t1\t1\t1\n3\td\t2\t0\t0.1\n1\tb\t1\t2\t-2.5e-9\n"
    );
    assert!(text(&lists, ListFormat::Jsonl).starts_with(r#"{"query":3,"query_id":"d","#));
}

#[test]
fn pairs_of_files_have_one_width_and_padding() {
    let folder = tempfile::tempdir().unwrap();
    let paths = lists(None, None).write_files(ListFormat::Npy, &folder.path().join("near.npy")).unwrap();
    assert_eq!(paths, ["near.indices.npy", "near.scores.npy"].map(|name| folder.path().join(name)));
    let bytes = std::fs::read(&paths[0]).unwrap();
    assert_eq!(bytes.len(), 128 + 48);
    assert!(bytes[10..].starts_with(b"{'descr': '<i8', 'fortran_order': False, 'shape': (3, 2), }"));
    let indices: Vec<_> = bytes[128..].as_chunks().0.iter().map(|&bytes| i64::from_le_bytes(bytes)).collect();
    assert_eq!(indices, [1, 0, -1, -1, 2, -1]);
    let scores = read_matrix(&paths[1], &Options::default()).unwrap();
    assert_eq!(scores.row(0), [1.0, 0.1]);
    assert!(scores.row(1).iter().all(|score| score.is_nan()) && scores.row(2)[1].is_nan());
    let paths = lists(None, None).write_files(ListFormat::Ivecs, &folder.path().join("near.ivecs")).unwrap();
    let words: Vec<_> =
        std::fs::read(&paths[0]).unwrap().as_chunks().0.iter().map(|&bytes| i32::from_le_bytes(bytes)).collect();
    assert_eq!(words, [2, 1, 0, 2, -1, -1, 2, 2, -1]);
    assert_eq!(read_matrix(&paths[1], &Options::default()).unwrap().row(0), [1.0, 0.1]);
}

#[test]
fn a_pair_that_cannot_be_written_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("near.scores.npy")).unwrap();
    let error = lists(None, None).write_files(ListFormat::Npy, &folder.path().join("near.npy")).unwrap_err();
    assert!(error.to_string().ends_with("near.scores.npy: is a folder"), "{error}");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    assert!(lists(None, None).write_text(ListFormat::Npy, &mut Vec::new()).is_err());
}

#[test]
fn scores_come_back_as_the_same_f32() {
    for bits in (0..u32::MAX).step_by(65_537) {
        let score = f32::from_bits(bits);
        if score.is_finite() {
            let text = lists::Score(score).to_string();
            assert_eq!(text.parse::<f32>().unwrap().to_bits(), bits, "{text}");
            assert!(text.len() <= 18, "{text}");
        }
    }
}

#[test]
fn a_npy_header_is_padded_to_64_bytes() {
    for (rows, cols) in [(0, 0), (1, 1), (123_456_789_012, 384), (usize::MAX, usize::MAX)] {
        let header = npy_f32_header(rows, cols);
        assert!(header.len().is_multiple_of(64) && header.ends_with(b"\n"), "{rows} x {cols}");
    }
    let mut bytes = npy_f32_header(1, 2);
    bytes.extend(bytemuck::bytes_of(&[1.5_f32, 2.5]));
    assert_eq!(read("a.npy", &bytes).values(), [1.5, 2.5]);
}
