//! What is read and what is written.

use super::{Folder, err, lines, out};
use std::io::Write;

#[test]
fn columns_of_tables_are_chosen_by_name_or_number() {
    let folder = Folder::new();
    folder.write("people.csv", "id,name\n1,Ada\n2,\"Lovelace, A.\"\n3,\n");
    folder.write("people.tsv", "Ada\t1\nAida\t2\n");
    let expected = "row,distance,text\n0,0,Ada\n1,11,\"Lovelace, A.\"\n2,3,\n";
    assert_eq!(folder.answer(&["Ada", "people.csv", "--column", "name"]), expected);
    assert_eq!(folder.answer(&["Ada", "people.csv", "--field", "name"]), expected);
    assert_eq!(folder.answer(&["Ada", "people.csv", "--column", "2", "--header"]), expected);
    let output = folder.run(&["Ada", "people.tsv", "--column", "1"]);
    assert_eq!(out(&output), "row,distance,text\n0,0,Ada\n1,1,Aida\n");
    let note = "people.tsv: the first line is taken as strings like the others (--header takes it as a header)\n";
    assert_eq!(err(&output), note);
    assert_eq!(
        folder.answer(&["people.csv", "people.tsv", "--columns", "name,1", "--nearest", "1", "--no-text", "--quiet"]),
        "left,right,distance\n0,0,0\n1,0,11\n2,0,3\n"
    );
    // Of two files, a column is of the one that has columns.
    folder.write("names.txt", "Ada\n");
    let (first, second) =
        ("left,right,distance\n0,0,0\n0,1,11\n0,2,3\n", "left,right,distance\n0,0,0\n1,0,11\n2,0,3\n");
    for columns in [["--column", "name"], ["--columns", ",name"]] {
        assert_eq!(folder.answer(&[&["names.txt", "people.csv", "--no-text"], &columns[..]].concat()), first);
    }
    for columns in [["--column", "name"], ["--columns", "name,"]] {
        assert_eq!(folder.answer(&[&["people.csv", "names.txt", "--no-text"], &columns[..]].concat()), second);
    }
    // Where there is one column, it need not be chosen.
    folder.write("one.csv", "Ada\n\n\"\"\n");
    assert_eq!(folder.answer(&["Ada", "one.csv", "--output-format", "txt", "-q"]), "0\n3\n");
}

#[test]
fn pairs_are_two_columns_of_a_table_or_two_fields_of_json() {
    let folder = Folder::new();
    folder.write("pairs.csv", "id,left,right\n1,kitten,sitting\n2,,abc\n");
    folder.write(
        "pairs.jsonl",
        "{\"a\": {\"x\": \"kitten\"}, \"b\": \"sitting\"}\n\n{\"b\": \"abc\", \"a\": {\"x\": \"\"}}\n",
    );
    let expected = "row,distance,left_text,right_text\n0,3,kitten,sitting\n1,3,,abc\n";
    assert_eq!(folder.answer(&["--pairs", "pairs.csv", "--columns", "left,right"]), expected);
    assert_eq!(folder.answer(&["--pairs", "pairs.csv", "--columns", "2,3", "--header"]), expected);
    assert_eq!(folder.answer(&["--pairs", "pairs.jsonl", "--fields", "a.x,b"]), expected);
    assert_eq!(folder.answer_to("kitten\tsitting\n\tabc\n", &["--pairs", "-", "--format", "tsv", "-q"]), expected);
    assert_eq!(
        folder.answer(&["--pairs", "pairs.jsonl", "--columns", "a.x,b", "--json"]),
        "{\"row\":0,\"distance\":3,\"left_text\":\"kitten\",\"right_text\":\"sitting\"}\n{\"row\":1,\"distance\":3,\"left_text\":\"\",\"right_text\":\"abc\"}\n"
    );
}

#[test]
fn sequences_go_by_their_names() {
    let folder = Folder::new();
    folder.write("genes.fasta", ">one first\nAC\nGT\n>two\nACGA\n>\"three\",x\nTT\n");
    folder.write("reads.fastq", "@r1\nACGT\n+\nIIII\n");
    assert_eq!(folder.answer(&["ACGT", "genes.fasta"]), "row,distance,id\n0,0,one\n1,1,two\n2,3,\"\"\"three\"\",x\"\n");
    assert_eq!(
        folder.answer(&["genes.fasta", "reads.fastq", "--max-distance", "1"]),
        "left,right,distance,left_id,right_id\n0,0,0,one,r1\n1,0,1,two,r1\n"
    );
    assert_eq!(
        folder.answer(&["genes.fasta", "--nearest", "1", "--json"]),
        "{\"left\":0,\"right\":1,\"distance\":1,\"left_id\":\"one\",\"right_id\":\"two\"}\n\
         {\"left\":1,\"right\":0,\"distance\":1,\"left_id\":\"two\",\"right_id\":\"one\"}\n\
         {\"left\":2,\"right\":0,\"distance\":3,\"left_id\":\"\\\"three\\\",x\",\"right_id\":\"one\"}\n"
    );
    assert_eq!(folder.answer_to(">a\nACG\n", &["ACGT", "-", "--format", "fasta"]), "row,distance,id\n0,1,a\n");
}

#[test]
fn stdin_and_files_without_an_extension_are_lines() {
    let folder = Folder::new();
    folder.write("dictionary", "kitten\nsitten\n");
    assert_eq!(folder.answer(&["kitten", "dictionary", "--output-format", "txt"]), "0\n1\n");
    assert_eq!(folder.answer_to("kitten\r\n\r\nkit", &["kitten", "-", "--output-format", "txt"]), "0\n6\n3\n");
    assert_eq!(
        folder.answer_to("kit\n", &["-", "others.txt"]),
        "left,right,distance,left_text,right_text\n0,0,4,kit,sitten\n0,1,0,kit,kit\n"
    );
    assert_eq!(folder.answer_to("a\nb\n", &["-", "--no-text"]), "left,right,distance\n0,1,1\n");
}

#[test]
fn compressed_files_are_read_as_what_they_hold() {
    let folder = Folder::new();
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    gzip.write_all(&folder.read("words.txt")).unwrap();
    folder.write("words.txt.gz", gzip.finish().unwrap());
    let zstd =
        ruzstd::encoding::compress_to_vec(&folder.read("words.txt")[..], ruzstd::encoding::CompressionLevel::Fastest);
    folder.write("words.txt.zst", zstd);
    let plain = folder.answer(&["kitten", "words.txt"]);
    assert_eq!(folder.answer(&["kitten", "words.txt.gz"]), plain);
    assert_eq!(folder.answer(&["kitten", "words.txt.zst"]), plain);
}

#[test]
fn files_hold_what_stdout_would() {
    let folder = Folder::new();
    for format in ["csv", "tsv", "jsonl", "txt", "npy"] {
        for form in [&["words.txt", "others.txt"][..], &["kitten", "words.txt"], &["words.txt"]] {
            let name = format!("out.{format}");
            let to_stdout = folder.run(&[form, &["--output-format", format, "--quiet"]].concat());
            assert_eq!(to_stdout.status.code(), Some(0), "{}", err(&to_stdout));
            let to_file = folder.run(&[form, &["--output", &name, "--quiet"]].concat());
            assert_eq!((to_file.status.code(), to_file.stdout.len()), (Some(0), 0), "{}", err(&to_file));
            assert!(folder.read(&name) == to_stdout.stdout && !to_stdout.stdout.is_empty(), "{format} {form:?}");
        }
    }
}

#[test]
fn a_file_holds_what_its_name_says_with_and_without_json() {
    let folder = Folder::new();
    for name in ["out.csv", "out.tsv", "out.txt", "out.npy"] {
        assert_eq!(folder.answer(&["kitten", "words.txt", "--output", name]), "");
        let expected = folder.read(name);
        assert_eq!(folder.answer(&["kitten", "words.txt", "--output", name, "--json"]), "");
        assert!(folder.read(name) == expected, "{name}");
    }
}

#[test]
fn long_texts_are_written_one_by_one_and_whole() {
    let folder = Folder::new();
    let texts: Vec<String> = [3_000_000, 1, 600_000, 0].into_iter().map(|length| "a".repeat(length)).collect();
    folder.write("long.txt", lines(&texts));
    folder.write("short.txt", "\na\n");
    let mut expected = String::from("left,right,distance,left_text,right_text\n");
    for (at, text) in texts.iter().enumerate() {
        let length = text.len();
        expected += &format!("{at},0,{length},{text},\n{at},1,{},{text},a\n", length.abs_diff(1));
    }
    for threads in ["1", "3"] {
        assert!(folder.answer(&["long.txt", "short.txt", "--threads", threads]) == expected, "{threads}");
    }
    let nearest = folder.answer(&["short.txt", "long.txt", "--nearest", "4"]);
    let rows: Vec<_> = nearest.lines().skip(1).map(|line| (&line[..3], line.len())).collect();
    assert_eq!(
        rows,
        [
            ("0,3", 7),
            ("0,1", 8),
            ("0,2", 600_012),
            ("0,0", 3_000_013),
            ("1,1", 9),
            ("1,3", 8),
            ("1,2", 600_013),
            ("1,0", 3_000_014)
        ]
    );
}

/// The header of a .npy file, and its data.
fn npy(bytes: &[u8]) -> (String, &[u8]) {
    let start = 10 + usize::from(u16::from_le_bytes([bytes[8], bytes[9]]));
    (String::from_utf8(bytes[10..start].to_vec()).unwrap().trim_end().to_owned(), &bytes[start..])
}

#[test]
fn a_matrix_has_the_smallest_type_that_holds_every_distance() {
    let folder = Folder::new();
    let header = |kind: &str, shape: &str| format!("{{'descr': '{kind}', 'fortran_order': False, 'shape': {shape}, }}");
    let output = folder.run(&["words.txt", "others.txt", "--output", "m.npy"]);
    assert_eq!((err(&output).as_str(), out(&output).as_str()), ("m.npy: 5 x 2 numbers of type u8, 10.0 B\n", ""));
    let bytes = folder.read("m.npy");
    assert_eq!(npy(&bytes), (header("|u1", "(5, 2)"), &[1, 3, 2, 5, 6, 3, 0, 4, 1, 4][..]));
    // Of one file, the whole matrix.
    folder.run(&["others.txt", "--output", "m.npy"]);
    assert_eq!(npy(&folder.read("m.npy")), (header("|u1", "(2, 2)"), &[0, 4, 4, 0][..]));
    // What is farther is the largest number, which is no distance.
    for (length, plain, below, above) in [
        (254, "|u1", "|u1", "|u1"),
        (255, "|u1", "|u1", "<u2"),
        (256, "<u2", "<u2", "<u2"),
        (65_535, "<u2", "<u2", "<u4"),
        (65_536, "<u4", "<u4", "<u4"),
    ] {
        folder.write("long.txt", format!("{}\n", "b".repeat(length)));
        folder.run(&["a", "long.txt", "--output", "m.npy"]);
        let bytes = folder.read("m.npy");
        let expected = u32::try_from(length).unwrap().to_le_bytes();
        let width = npy(&bytes).1.len();
        assert_eq!(npy(&bytes), (header(plain, "(1,)"), &expected[..width]));
        folder.run(&["a", "long.txt", "--output", "m.npy", "--max-distance", &(length - 1).to_string()]);
        let bytes = folder.read("m.npy");
        let (found, data) = npy(&bytes);
        assert_eq!(found, header(below, "(1,)"), "{length}");
        assert!(data.iter().all(|&byte| byte == 255), "{length}");
        folder.run(&["a", "long.txt", "--output", "m.npy", "--max-distance", "70000"]);
        assert_eq!(npy(&folder.read("m.npy")).0, header(above, "(1,)"), "{length}");
    }
    folder.run(&["kitten", "words.txt", "--output", "m.npy", "--similarity", "--max-distance", "3"]);
    let bytes = folder.read("m.npy");
    let (found, data) = npy(&bytes);
    assert_eq!(found, header("<f4", "(5,)"));
    let numbers: Vec<f32> = data.chunks_exact(4).map(|bytes| f32::from_le_bytes(bytes.try_into().unwrap())).collect();
    assert_eq!((numbers[0], numbers[1], numbers[3]), (1.0, 4.0 / 7.0, 5.0 / 6.0));
    assert!(numbers[2].is_nan());
}

#[test]
fn texts_stand_in_the_output_as_they_stand_in_the_file() {
    let folder = Folder::new();
    folder.write("odd.csv", "\"a,b\"\n\"say \"\"x\"\"\"\n\"two\nlines\"\n\"\rx\"\n plain \n\u{c9}T\u{c9}\n\"a\tb\"\n");
    assert_eq!(
        folder.answer(&["a", "odd.csv", "-q"]),
        "row,distance,text\n0,2,\"a,b\"\n1,6,\"say \"\"x\"\"\"\n2,9,\"two\nlines\"\n3,2,\"\rx\"\n4,6, plain \n5,3,\u{c9}T\u{c9}\n6,2,a\tb\n"
    );
    let json = folder.answer(&["a", "odd.csv", "-q", "--json", "--ignore-case"]);
    let texts: Vec<String> = json
        .lines()
        .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap()["text"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(texts, ["a,b", "say \"x\"", "two\nlines", "\rx", " plain ", "\u{c9}T\u{c9}", "a\tb"]);
    folder.write("bytes.txt", b"a\xff\n");
    let output = folder.run(&["a", "bytes.txt", "--unit", "byte"]);
    assert_eq!(output.stdout, b"row,distance,text\n0,1,a\xff\n");
}

#[test]
fn a_file_without_strings_is_said_and_is_no_error() {
    let folder = Folder::new();
    folder.write("empty.txt", "");
    let output = folder.run(&["kitten", "empty.txt"]);
    assert_eq!(
        (out(&output).as_str(), err(&output).as_str()),
        ("row,distance,text\n", "empty.txt: there are no strings\n")
    );
    for arguments in [&["empty.txt"][..], &["words.txt", "empty.txt"], &["empty.txt", "words.txt", "--nearest", "2"]] {
        let output = folder.run(&[arguments, &["--no-text", "--quiet"]].concat());
        assert_eq!((output.status.code(), out(&output).as_str()), (Some(0), "left,right,distance\n"), "{arguments:?}");
    }
    folder.run(&["empty.txt", "words.txt", "--output", "m.npy"]);
    let bytes = folder.read("m.npy");
    assert!(npy(&bytes).0.ends_with("'shape': (0, 5), }") && npy(&bytes).1.is_empty());
    folder.write("empty.csv", "");
    assert_eq!(folder.answer(&["--pairs", "empty.csv", "-q"]), "row,distance,left_text,right_text\n");
}
