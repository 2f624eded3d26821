use super::*;
use std::io::Write;

struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn write(&self, name: &str, bytes: &[u8]) -> PathBuf {
        let path = self.0.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        path
    }

    /// An error without the folder.
    fn message<T>(&self, result: Result<T, Error>) -> String {
        let error = result.err().expect("an error").to_string();
        error.replace(&format!("{}/", self.0.path().display()), "")
    }
}

fn list(strings: &ByteStrings) -> Vec<String> {
    strings.iter().map(|string| String::from_utf8_lossy(string).into_owned()).collect()
}

fn read(name: &str, bytes: &[u8], column: Option<&str>) -> Result<StringList, String> {
    let folder = Folder::new();
    let path = folder.write(name, bytes);
    let column = column.map(Column::new);
    let result = read_strings(&path, column.as_ref(), &StringOptions::default());
    result.map_err(|error| folder.message(Err::<(), _>(error)))
}

fn strings(name: &str, bytes: &[u8], column: Option<&str>) -> Vec<String> {
    list(&read(name, bytes, column).unwrap().strings)
}

fn error(name: &str, bytes: &[u8], column: Option<&str>) -> String {
    read(name, bytes, column).expect_err("an error")
}

#[test]
fn a_line_is_a_string_whatever_its_end() {
    for (text, expected) in [
        (&b""[..], &[][..]),
        (b"\n", &[""]),
        (b"a", &["a"]),
        (b"a\n", &["a"]),
        (b"a\nb", &["a", "b"]),
        (b"a\r\nb\r\n", &["a", "b"]),
        (b"\n\na\n\n", &["", "", "a", ""]),
        (b"\r\n\r\n", &["", ""]),
        (b"abc\r", &["abc"]),
        (b"a\rb\n", &["a\rb"]),
        (b"a\r\r\n", &["a\r"]),
        (b"a\0b\n\0\n", &["a\0b", "\0"]),
        (b" a \t\n", &[" a \t"]),
        (b"\xef\xbb\xbfabc\r\nd", &["abc", "d"]),
        (b"\xef\xbb\xbf", &[]),
        (b"a\xef\xbb\xbf\n", &["a\u{feff}"]),
    ] {
        assert_eq!(strings("x.txt", text, None), expected, "{text:?}");
        // A file without an extension is one of lines.
        assert_eq!(strings("words", text, None), expected, "{text:?}");
    }
}

#[test]
fn long_and_many_lines_are_read_whole() {
    let long = [vec![b'a'; 10_000_000], vec![b'\n'], vec![b'b'; 10_000_001]].concat();
    let read = read("x.txt", &long, None).unwrap().strings;
    assert_eq!((read.len(), read.get(0).len(), read.get(1).len()), (2, 10_000_000, 10_000_001));
    let many: String = (0..100_000).map(|i| format!("{i}\r\n")).collect();
    let read = strings("x.txt", many.as_bytes(), None);
    assert!(read.iter().enumerate().all(|(i, string)| *string == i.to_string()) && read.len() == 100_000);
}

#[test]
fn compressed_files_are_read_as_what_they_hold() {
    let folder = Folder::new();
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    gzip.write_all(b"a,b\n1,2\n").unwrap();
    let gzip = gzip.finish().unwrap();
    let zstd = ruzstd::encoding::compress_to_vec(&b"x\ny\n"[..], ruzstd::encoding::CompressionLevel::Fastest);
    let read = |name: &str, bytes: &[u8], column: Option<&Column>| {
        read_strings(&folder.write(name, bytes), column, &StringOptions::default()).unwrap()
    };
    assert_eq!(list(&read("t.csv.gz", &gzip, Some(&Column::new("b"))).strings), ["2"]);
    assert_eq!(list(&read("t.gz", &gzip, None).strings), ["a,b", "1,2"]);
    assert_eq!(list(&read("t.txt.zst", &zstd, None).strings), ["x", "y"]);
}

#[test]
fn the_format_is_what_the_extension_says_then_what_is_wanted() {
    let of = |name: &str, wanted| StringFormat::of(Path::new(name), wanted).map_err(|error| error.to_string());
    assert_eq!(of("a.CSV.gz", None), Ok(StringFormat::Csv));
    assert_eq!(of("a.csv", Some(StringFormat::Jsonl)), Ok(StringFormat::Csv));
    assert_eq!(of("a.fa.zst", None), Ok(StringFormat::Fasta));
    assert_eq!(of("a.ndjson", None), Ok(StringFormat::Jsonl));
    for open in ["-", "words", "words.gz", "words.txt"] {
        assert_eq!(of(open, None), Ok(StringFormat::Txt));
        assert_eq!(of(open, Some(StringFormat::Tsv)), Ok(StringFormat::Tsv));
    }
    assert_eq!(of("a.dat", Some(StringFormat::Fastq)), Ok(StringFormat::Fastq));
    assert_eq!(
        of("a.dat", None).unwrap_err(),
        "a.dat: extension: expected one of txt, csv, tsv, jsonl, fasta, fastq (or name the format with --format), found .dat"
    );
}

#[test]
fn a_compressed_file_that_is_cut_off_is_refused_by_what_is_missing() {
    let text: Vec<u8> =
        (0..5_000_u32).flat_map(|i| format!("{}\n", i.wrapping_mul(2_654_435_761)).into_bytes()).collect();
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    gzip.write_all(&text).unwrap();
    let gzip = gzip.finish().unwrap();
    assert_eq!(strings("x.txt.gz", &gzip, None).len(), 5_000);
    let message = error("x.txt.gz", &gzip[..gzip.len() / 2], None);
    let (position, rest) = message.strip_prefix("x.txt.gz: byte ").unwrap().split_once(' ').unwrap();
    assert!((1..text.len()).contains(&position.parse().unwrap()), "{message}");
    assert_eq!(rest, "of what it holds: expected whole gzip or zstd data, found the end of the file");
}

#[cfg(unix)]
#[test]
fn a_name_that_is_not_utf8_has_an_extension() {
    use std::os::unix::ffi::OsStrExt;
    let name = Path::new(std::ffi::OsStr::from_bytes(b"caf\xe9.CSV.gz"));
    assert_eq!(StringFormat::of(name, None).ok(), Some(StringFormat::Csv));
}

#[test]
fn columns_are_chosen_by_number_or_by_name() {
    let csv = b"id,name\r\n1,Ada\r\n\r\n2,\"Lovelace, A.\"\n3,\"two\nlines \"\"quoted\"\"\"\n4,\n";
    let quoted = ["Ada", "Lovelace, A.", "two\nlines \"quoted\"", ""];
    let list = read("x.csv", csv, Some("name")).unwrap();
    assert_eq!(super::tests::list(&list.strings), quoted);
    assert_eq!((0..4).map(|i| list.line(i)).collect::<Vec<_>>(), [2, 4, 5, 7]);
    assert_eq!(list.note, None);
    let list = read("x.csv", csv, Some("2")).unwrap();
    assert_eq!(super::tests::list(&list.strings), [&["name"][..], &quoted].concat());
    assert!(
        list.note
            .unwrap()
            .ends_with(": the first line is taken as strings like the others (--header takes it as a header)")
    );
    // Tabs, where quotes are characters like others.
    let tsv = b"\xef\xbb\xbfid\tname\r\n1\t5\" disk\r\n2\t\"\n";
    assert_eq!(strings("x.tsv", tsv, Some("name")), ["5\" disk", "\""]);
    assert_eq!(strings("x.tsv", tsv, Some("id")), ["1", "2"]);
    // One column need not be chosen.
    assert_eq!(strings("x.csv", b"a\n\"\"\nb\n", None), ["a", "", "b"]);
    assert_eq!(strings("x.csv", b"", None), [""; 0]);
    // Without quotes, and with a CR alone, which ends a record as well.
    assert_eq!(strings("x.csv", b"a,b\rc,d\r", Some("2")), ["b", "d"]);
}

#[test]
fn a_header_may_be_passed_over_and_then_is_no_string() {
    let folder = Folder::new();
    let path = folder.write("x.csv", b"left,right\nabc,abd\n,x\n");
    let options = StringOptions { header: true, ..StringOptions::default() };
    let [left, right] = read_string_pairs(&path, None, &options).unwrap();
    assert_eq!(
        (list(&left.strings), list(&right.strings)),
        (vec!["abc".into(), String::new()], vec!["abd".into(), "x".into()])
    );
    assert_eq!((left.line(1), right.line(1), left.note), (3, 3, None));
    let swapped = [Column::new("right"), Column::new("1")];
    let [left, right] = read_string_pairs(&path, Some(&swapped), &StringOptions::default()).unwrap();
    assert_eq!(
        (list(&left.strings), list(&right.strings)),
        (vec!["abd".into(), "x".into()], vec!["abc".into(), String::new()])
    );
}

#[test]
fn a_broken_table_is_refused_by_its_line() {
    let three = b"a,b,c\n1,2,3\n";
    assert_eq!(
        error("x.csv", three, None),
        "x.csv: line 1: expected 1 column, or --column to choose, found 3: \"a\", \"b\", \"c\""
    );
    assert_eq!(error("x.csv", three, Some("d")), "x.csv: line 1: expected a column named d, found \"a\", \"b\", \"c\"");
    assert_eq!(error("x.csv", three, Some("4")), "x.csv: line 1: expected a column from 1 to 3, found 4");
    assert_eq!(error("x.csv", three, Some("0")), "x.csv: line 1: expected a column from 1 to 3, found 0");
    assert_eq!(
        error("x.csv", three, Some("99999999999999999999")),
        "x.csv: line 1: expected a column from 1 to 3, found 99999999999999999999"
    );
    assert_eq!(
        error("x.csv", b"a,a\n", Some("a")),
        "x.csv: line 1: expected one column named a (or its number), found \"a\", \"a\""
    );
    assert_eq!(
        error("x.csv", b"a,b\n\n1,2\n3\n", Some("b")),
        "x.csv: line 4: expected 2 fields, as in the first record, found 1"
    );
    assert_eq!(
        error("x.csv", b"a,b\n\n\"1\n1\",2\n\n3\n", Some("b")),
        "x.csv: line 6: expected 2 fields, as in the first record, found 1"
    );
    assert_eq!(
        error("x.tsv", b"a\tb\n1\t2\t3\n", Some("b")),
        "x.tsv: line 2: expected 2 fields, as in the first record, found 3"
    );
    assert_eq!(error("x.csv", b"", Some("name")), "x.csv: line 1: expected a header, found an empty file");
    for unclosed in [&b"a\n\nb\n\"c\nd\n"[..], b"a\nb\n\n\"c"] {
        assert_eq!(
            error("x.csv", unclosed, None),
            "x.csv: line 4: expected a closing quote for each opening one, found a record that goes on to the end of the file"
        );
    }
    assert_eq!(strings("x.csv", b"\"closed at the end\"", None), ["closed at the end"]);
    for (text, line, found) in [
        (&b"\"a\"b,c\n"[..], 1, "b,c"),
        (b"x,\"y\ny\"\r\nz,\"\"\"\" \r\n", 3, " "),
        (b"a,b\r\n\r\n1,\"2\"3\"\n", 3, "3\\\""),
    ] {
        assert_eq!(
            error("x.csv", text, Some("1")),
            format!(
                "x.csv: line {line}: expected a comma or the end of the line after a closing quote, found \"{found}\""
            )
        );
    }
    assert_eq!(strings("x.csv", b"5\" disk,\"\"\n\"\"\"\",\"b,\"\"\"\r\"x\",", Some("1")), ["5\" disk", "\"", "x"]);
}

#[test]
fn fields_of_json_are_found_by_their_path() {
    let jsonl = b"{\"name\": \"Ada\", \"who\": {\"born\": {\"in\": \"London\"}, \"name\": 7}}\n\n\
        {\"x\": [1, {\"name\": null}], \"name\": \"caf\\u00e9 \\\"x\\\"\", \"who\": {\"born\": {\"in\": \"\"}}}\r\n";
    let list = read("x.jsonl", jsonl, Some("name")).unwrap();
    assert_eq!(super::tests::list(&list.strings), ["Ada", "caf\u{e9} \"x\""]);
    assert_eq!((list.line(0), list.line(1)), (1, 3));
    assert_eq!(strings("x.jsonl", jsonl, Some("who.born.in")), ["London", ""]);
    assert_eq!(strings("x.jsonl", b"{\"a.b\": \"x\"}", Some("a.b")), ["x"]);
    assert_eq!(strings("x.jsonl", b"{\"2\": \"x\"}", Some("2")), ["x"]);
    assert_eq!(strings("x.jsonl", b"{\"a\": 1, \"a\": \"last\"}", Some("a")), ["last"]);
    assert_eq!(strings("x.jsonl", b"\"one\"\n\"\"\n", None), ["one", ""]);
    let folder = Folder::new();
    let path = folder.write("x.jsonl", b"{\"a\":\"1\",\"b\":\"2\"}\n{\"b\":\"4\",\"a\":\"3\"}\n");
    let both = [Column::new("b"), Column::new("a")];
    let [left, right] = read_string_pairs(&path, Some(&both), &StringOptions::default()).unwrap();
    assert_eq!(
        (super::tests::list(&left.strings), super::tests::list(&right.strings)),
        (vec!["2".into(), "4".into()], vec!["1".into(), "3".into()])
    );
    assert_eq!(
        folder.message(read_string_pairs(&path, None, &StringOptions::default())),
        "x.jsonl: fields: expected --columns, two fields of the objects, found none"
    );
}

#[test]
fn a_field_that_is_missing_or_null_is_never_the_empty_string() {
    for (line, found) in [
        ("{}", "no such field"),
        ("{\"A\": \"x\"}", "no such field"),
        ("{\"a\": null}", "null"),
        ("{\"a\": 1}", "a number"),
        ("{\"a\": -1.5}", "a number"),
        ("{\"a\": false}", "true or false"),
        ("{\"a\": [\"x\"]}", "an array"),
        ("{\"a\": {\"a\": \"x\"}}", "an object"),
        ("{\"a\": \"x\", \"a\": null}", "null"),
        ("\"a\"", "no such field"),
        ("[{\"a\": \"x\"}]", "no such field"),
    ] {
        let text = format!("{{\"a\": \"good\"}}\n{line}\n");
        assert_eq!(
            error("x.jsonl", text.as_bytes(), Some("a")),
            format!("x.jsonl: line 2: expected a string in the field a, found {found}")
        );
    }
    assert_eq!(
        error("x.jsonl", b"{\"a\": {\"b\": \"x\"}}\n{\"a\": \"b\"}\n", Some("a.b")),
        "x.jsonl: line 2: expected a string in the field a.b, found no such field"
    );
    assert_eq!(
        error("x.jsonl", b"{\"a\": \"x\"}\n", None),
        "x.jsonl: line 1: expected a string, or --column to name a field, found an object"
    );
}

#[test]
fn broken_json_is_refused_by_its_line_and_byte() {
    assert_eq!(
        error("x.jsonl", b"{\"a\": \"x\"}\n{\"a\": \"x\"", Some("a")),
        "x.jsonl: line 2, byte 9: expected one JSON value, found \"{\\\"a\\\": \\\"x\\\"\" (EOF while parsing an object)"
    );
    assert_eq!(
        error("x.jsonl", b"{\"a\": \"x\"} {}\n", Some("a")),
        "x.jsonl: line 1, byte 12: expected one JSON value, found \"{\\\"a\\\": \\\"x\\\"} {}\" (trailing characters)"
    );
    assert!(error("x.jsonl", b"{\"a\": \"\\ud800\"}\n", Some("a")).starts_with("x.jsonl: line 1, byte "));
    assert!(error("x.jsonl", b"{\"a\": \"\xff\"}\n", Some("a")).starts_with("x.jsonl: line 1, byte "));
    let deep = "[".repeat(100_000);
    assert!(error("x.jsonl", deep.as_bytes(), Some("a")).starts_with("x.jsonl: line 1, byte "));
}

#[test]
fn sequences_keep_their_names() {
    let fasta = b"\n>seq1 first one\r\nACGT\r\nAC GT\r\n\r\n>seq2\n>\nTT\n";
    let read_ = read("x.fasta", fasta, None).unwrap();
    assert_eq!(list(&read_.strings), ["ACGTACGT", "", "TT"]);
    assert_eq!(list(read_.names.as_ref().unwrap()), ["seq1", "seq2", ""]);
    assert_eq!((read_.line(0), read_.line(1), read_.line(2)), (2, 6, 7));
    assert_eq!(strings("x.fa", b"", None), [""; 0]);
    // A space before the name is none; what begins with ; is a comment, wherever it stands.
    let read_ = read("x.fa", b";of old\n> name of it\nAC ;\n; in between\n G\tT \n>\tb\n", None).unwrap();
    assert_eq!(list(&read_.strings), ["AC;GT", ""]);
    assert_eq!(list(read_.names.as_ref().unwrap()), ["name", "b"]);
    assert_eq!(
        error("x.fa", b"\nACGT\n", None),
        "x.fa: line 2: expected a heading, > and a name, before the first sequence, found \"ACGT\""
    );
    assert_eq!(
        error("x.fa", b">a\nA\n", Some("1")),
        "x.fa: column: expected no column, as fasta holds one string a record, found \"1\""
    );
    let fastq = b"@r1 x\nACGT\n+\n!!!!\n@r2\n\n+r2\n\n";
    let read_ = read("x.fq", fastq, None).unwrap();
    assert_eq!(
        (list(&read_.strings), list(read_.names.as_ref().unwrap())),
        (vec!["ACGT".into(), String::new()], vec!["r1".into(), "r2".to_owned()])
    );
    assert_eq!(
        error("x.fq", b"@r1\nACGT\n+\n!!!\n", None),
        "x.fq: line 4: expected 4 qualities, as the sequence is long, found 3"
    );
    assert_eq!(
        error("x.fq", b"@r1\nACGT\n", None),
        "x.fq: line 1: expected + in a record of four lines, found the end of the file"
    );
    assert_eq!(error("x.fq", b">r1\nACGT\n", None), "x.fq: line 1: expected a heading, @ and a name, found \">r1\"");
    assert_eq!(
        error("x.fq", b"@r1\nACGT\nACGT\n!!!!\n", None),
        "x.fq: line 3: expected +, the third line of a record, found \"ACGT\""
    );
}

#[test]
fn what_is_not_utf8_is_named_by_line_and_byte() {
    let message = |name: &str, bytes: &[u8], column: Option<&str>| {
        let list = read(name, bytes, column).unwrap();
        let error = list.check_utf8("or --unit byte").unwrap_err().to_string();
        error.rsplit_once('/').unwrap().1.to_owned()
    };
    assert_eq!(
        message("x.txt", b"ok\n\ncaf\xe9\n", None),
        "x.txt: line 3, byte 4: expected UTF-8 (or --unit byte), found 0xe9"
    );
    assert_eq!(
        message("x.csv", b"a,b\n\n\xff,\xfe\n", Some("b")),
        "x.csv: line 3, column 2, byte 1: expected UTF-8 (or --unit byte), found 0xfe"
    );
    assert_eq!(
        message("x.fa", b">a\nAC\n>b\nAC\nG\xc3\n", None),
        "x.fa: line 3, the record that begins here, byte 4: expected UTF-8 (or --unit byte), found 0xc3"
    );
    assert!(read("x.txt", "caf\u{e9}\n".as_bytes(), None).unwrap().check_utf8("").is_ok());
}

#[test]
fn pairs_need_two_strings_a_record() {
    let folder = Folder::new();
    let message = |name: &str, bytes: &[u8]| {
        folder.message(read_string_pairs(&folder.write(name, bytes), None, &StringOptions::default()))
    };
    assert_eq!(
        message("x.txt", b"a b\n"),
        "x.txt: format: expected two strings a line: csv, tsv or jsonl (--format says which, where the extension does not), found txt, one string a record"
    );
    assert_eq!(
        message("x.csv", b"a,b,c\n"),
        "x.csv: line 1: expected 2 columns, or --columns to choose, found 3: \"a\", \"b\", \"c\""
    );
    assert_eq!(message("x.csv", b"a,b\nc\n"), "x.csv: line 2: expected 2 fields, as in the first record, found 1");
    let empty = read_string_pairs(&folder.write("x.csv", b""), None, &StringOptions::default()).unwrap();
    assert!(empty.iter().all(|list| list.strings.is_empty()));
}
