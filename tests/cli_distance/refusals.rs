//! What is wrong with the input is one line that names it; exit code 2, and no file.

use super::{Folder, err};

#[test]
fn what_is_not_utf8_is_named_by_its_line_and_read_as_bytes() {
    let folder = Folder::new();
    folder.write("latin.txt", b"ok\n\ncaf\xe9\n");
    for unit in ["char", "grapheme"] {
        assert_eq!(
            folder.refusal(&["cafe", "latin.txt", "--unit", unit]),
            "latin.txt: line 3, byte 4: expected UTF-8 (--unit byte takes any bytes), found 0xe9"
        );
    }
    assert_eq!(folder.answer(&["cafe", "latin.txt", "--unit", "byte", "--output-format", "txt"]), "4\n4\n1\n");
    assert_eq!(
        folder.refusal(&["cafe", "latin.txt", "--unit", "byte", "--json"]),
        "latin.txt: line 3: expected UTF-8 for jsonl (csv and tsv take any bytes, --no-text leaves the texts out), found 0xe9"
    );
    folder.write("latin.csv", b"a,b\nx,\xe9\n");
    assert_eq!(
        folder.refusal(&["--pairs", "latin.csv", "--columns", "a,b"]),
        "latin.csv: line 2, column 2, byte 1: expected UTF-8 (--unit byte takes any bytes), found 0xe9"
    );
    // Two halves of a code point in two lines are two broken lines.
    folder.write("halves.txt", b"\xc3\n\xa9\n");
    assert_eq!(
        folder.refusal(&["x", "halves.txt"]),
        "halves.txt: line 1, byte 1: expected UTF-8 (--unit byte takes any bytes), found 0xc3"
    );
}

#[cfg(unix)]
#[test]
fn a_text_that_is_not_utf8_is_compared_as_bytes() {
    use std::os::unix::ffi::OsStrExt;
    let folder = Folder::new();
    let run = |unit: &str| {
        let mut command = folder.command();
        command.arg(std::ffi::OsStr::from_bytes(b"kit\xff")).args([
            "others.txt",
            "--output-format",
            "txt",
            "--unit",
            unit,
        ]);
        command.output().unwrap()
    };
    assert_eq!(run("byte").stdout, b"4\n1\n");
    let output = run("char");
    assert_eq!(
        (output.status.code(), err(&output).as_str()),
        (Some(2), "lodestar: PATTERN: expected UTF-8 (--unit byte takes any bytes), found \"kit\\xFF\"\n")
    );
}

#[test]
fn a_missing_column_or_field_is_never_the_empty_string() {
    let folder = Folder::new();
    folder.write("a.csv", "id,name\n1,Ada\n2\n");
    folder.write("a.jsonl", "{\"name\": \"Ada\"}\n{\"name\": null}\n");
    folder.write("b.jsonl", "{\"name\": \"Ada\"}\n{\"nom\": \"Ada\"}\n");
    assert_eq!(
        folder.refusal(&["x", "a.csv", "--column", "age"]),
        "a.csv: line 1: expected a column named age, found \"id\", \"name\""
    );
    assert_eq!(
        folder.refusal(&["x", "a.csv", "--column", "3"]),
        "a.csv: line 1: expected a column from 1 to 2, found 3"
    );
    assert_eq!(
        folder.refusal(&["x", "a.csv"]),
        "a.csv: line 1: expected 1 column, or --column to choose, found 2: \"id\", \"name\""
    );
    assert_eq!(
        folder.refusal(&["x", "a.csv", "--column", "name"]),
        "a.csv: line 3: expected 2 fields, as in the first record, found 1"
    );
    assert_eq!(
        folder.refusal(&["x", "a.jsonl", "--column", "name"]),
        "a.jsonl: line 2: expected a string in the field name, found null"
    );
    assert_eq!(
        folder.refusal(&["x", "b.jsonl", "--column", "name"]),
        "b.jsonl: line 2: expected a string in the field name, found no such field"
    );
    assert_eq!(
        folder.refusal(&["x", "b.jsonl"]),
        "b.jsonl: line 1: expected a string, or --column to name a field, found an object"
    );
    assert_eq!(
        folder.refusal(&["--pairs", "a.jsonl"]),
        "a.jsonl: fields: expected --columns, two fields of the objects, found none"
    );
    assert_eq!(
        folder.refusal(&["x", "words.txt", "--column", "name"]),
        "words.txt: column: expected no column, as txt holds one string a record, found \"name\""
    );
}

#[test]
fn what_looks_like_a_file_and_is_none_is_not_taken_for_a_text() {
    let folder = Folder::new();
    for name in ["word.txt", "names.csv", "genes.fa.gz", "data/words", "x.gz"] {
        assert_eq!(
            folder.refusal(&[name, "words.txt"]),
            format!(
                "PATTERN: expected a file, or a text that does not look like one (--pattern takes any), found {name:?}, and there is no such file"
            )
        );
    }
    assert_eq!(
        folder.refusal(&["kitten"]),
        "FILE: expected a file (of one text, say also which file to compare it with), found \"kitten\", and there is no such file"
    );
    for second in ["nowhere.txt", "sitting"] {
        for first in ["kitten", "words.txt"] {
            assert_eq!(
                folder.refusal(&[first, second]),
                format!("FILE: expected a file of strings, found {second:?}, and there is no such file")
            );
        }
    }
    std::fs::create_dir(folder.path("folder")).unwrap();
    assert_eq!(
        folder.refusal(&["folder"]),
        "FILE: expected a file (of one text, say also which file to compare it with), found \"folder\", which is a folder"
    );
    assert_eq!(folder.refusal(&["kitten", "folder"]), "folder: is a folder, not a file");
    assert_eq!(folder.refusal(&["--pairs", "nowhere.csv"]), "nowhere.csv: No such file or directory (os error 2)");
    folder.write("x.dat", "a\n");
    assert_eq!(
        folder.refusal(&["kitten", "x.dat"]),
        "x.dat: extension: expected one of txt, csv, tsv, jsonl, fasta, fastq (or name the format with --format), found .dat"
    );
    folder.write("x.csv", "a\n");
    assert_eq!(
        folder.refusal(&["kitten", "x.csv", "--format", "jsonl"]),
        "--format: expected csv, as the extension of x.csv says, found jsonl (stdin may hold any format)"
    );
    assert_eq!(
        folder.refusal(&["--pairs", "words.txt"]),
        "words.txt: format: expected two strings a line: csv, tsv or jsonl (--format says which, where the extension does not), found txt, one string a record"
    );
}

#[test]
fn arguments_that_do_not_fit_together_are_refused() {
    let folder = Folder::new();
    let of = |arguments: &[&str]| folder.refusal(arguments);
    assert_eq!(of(&["-", "-"]), "-: expected stdin for one file only, found it twice");
    assert_eq!(of(&["kitten", "words.txt", "--nearest", "0"]), "--nearest: expected at least 1, found 0");
    assert_eq!(of(&["kitten", "words.txt", "--threads", "0"]), "--threads: expected at least 1, found 0");
    let bytes = "expected --unit char or grapheme with it, as bytes are compared as they are, found byte";
    assert_eq!(of(&["kitten", "words.txt", "--unit", "byte", "--ignore-case"]), format!("--ignore-case: {bytes}"));
    assert_eq!(of(&["kitten", "words.txt", "--unit", "byte", "--normalize", "nfc"]), format!("--normalize: {bytes}"));
    assert_eq!(
        of(&["kitten", "words.txt", "--exclude-self"]),
        "--exclude-self: expected two files, A and B, found one text or pairs"
    );
    assert_eq!(
        of(&["words.txt", "--exclude-self"]),
        "--exclude-self: expected two files, A and B, found one file, whose strings are not compared with themselves"
    );
    assert_eq!(of(&["words.txt", "--columns", "a"]), "--columns: expected two, with a comma between them, found 1");
    assert_eq!(
        of(&["words.txt", "--columns", "a,b"]),
        "--columns: expected --pairs or two files; --column for one, found one file"
    );
    assert_eq!(
        of(&["--pairs", "x.csv", "--column", "a"]),
        "--column: expected --columns A,B with --pairs, found one column"
    );
    assert_eq!(
        of(&["--pairs", "x.csv", "--columns", ",b"]),
        "--columns: expected two with --pairs, A,B, found one column"
    );
    assert_eq!(
        of(&["words.txt", "others.txt", "--columns", ","]),
        "--columns: expected a name or a number, found only a comma"
    );
    assert_eq!(
        of(&["words.txt", "others.txt", "--header"]),
        "--header: expected csv or tsv, whose first line may be one, found txt and txt"
    );
    assert_eq!(
        of(&["kitten", "words.txt", "--format", "jsonl", "--header"]),
        "--header: expected csv or tsv, whose first line may be one, found jsonl"
    );
    assert_eq!(
        of(&["words.txt", "others.txt", "--column", "a"]),
        "words.txt: column: expected no column, as txt holds one string a record, found \"a\""
    );
    let each = "with it, as npy has one number for each pair, found npy";
    assert_eq!(
        of(&["words.txt", "--nearest", "1", "--output", "m.npy"]),
        format!("--nearest: expected csv, tsv or jsonl {each}")
    );
    assert_eq!(
        of(&["words.txt", "--max-distance", "1", "--output-format", "txt"]),
        "--max-distance: expected csv, tsv or jsonl with it, as txt has one number for each pair, found txt"
    );
    assert_eq!(
        of(&["words.txt", "others.txt", "--exclude-self", "--output", "m.npy"]),
        format!("--exclude-self: expected csv, tsv or jsonl {each}")
    );
    for arguments in [
        &[][..],
        &["--pattern", "x"],
        &["--pairs", "x.csv", "kitten"],
        &["--pattern", "x", "words.txt", "others.txt"],
        &["kitten", "words.txt", "--unit", "word"],
        &["kitten", "words.txt", "--max-distance", "-1"],
        &["kitten", "words.txt", "--max-distance", "4294967296"],
        &["kitten", "words.txt", "--memory", "much"],
    ] {
        assert_eq!(folder.run(arguments).status.code(), Some(2), "{arguments:?}");
    }
}

#[test]
fn an_output_that_cannot_be_written_is_refused_before_the_work() {
    let folder = Folder::new();
    assert_eq!(
        folder.refusal(&["words.txt", "--output", "out.xyz"]),
        "out.xyz: extension: expected one of csv, tsv, jsonl, txt, npy (or name the format with --output-format), found .xyz"
    );
    assert_eq!(
        folder.refusal(&["words.txt", "--output", "no/out.csv"]),
        "no/out.csv: No such file or directory (os error 2)"
    );
    assert_eq!(
        folder.refusal(&["words.txt", "--output", "words.txt"]),
        "--output: expected another file than the input, found words.txt"
    );
    folder.write("tab.txt", "a\n\nb\tc\n");
    assert_eq!(
        folder.refusal(&["words.txt", "tab.txt", "--output", "out.tsv"]),
        "tab.txt: line 3: expected a text without tabs and line ends for tsv (csv and jsonl take any), found one with them"
    );
    // What fails after the output was begun leaves nothing of it.
    folder.write("broken.csv", "a,b\nc\n");
    folder.refusal(&["--pairs", "broken.csv", "--output", "out.csv"]);
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_one_line_and_a_reader_that_leaves_is_none() {
    let folder = Folder::new();
    assert_eq!(
        folder.refusal(&["words.txt", "--output", "/dev/full", "--output-format", "csv"]),
        "/dev/full: No space left on device (os error 28)"
    );
    let lines: String = (0..2_000).map(|i| format!("{i}\n")).collect();
    folder.write("many.txt", lines);
    let program = assert_cmd::cargo::cargo_bin!("lodestar");
    let script = format!("{:?} distance many.txt | head -n 1; exit ${{PIPESTATUS[0]}}", program.display().to_string());
    let output =
        std::process::Command::new("bash").args(["-c", &script]).current_dir(folder.path(".")).output().unwrap();
    assert_eq!((output.status.code(), err(&output).as_str()), (Some(0), ""));
    assert_eq!(output.stdout, b"left,right,distance,left_text,right_text\n");
}
