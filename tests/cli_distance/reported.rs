//! What users of other libraries reported as wrong, with the right values.

use super::Folder;

/// Two strings, and their distance in code points, bytes and grapheme clusters.
type Reported = (String, String, [usize; 3]);

fn reported() -> Vec<Reported> {
    let a = |n: usize| "a".repeat(n);
    let mut all: Vec<Reported> = Vec::new();
    let mut add = |left: &str, right: &str, distances: [usize; 3]| all.push((left.into(), right.into(), distances));
    add("kitten", "sitting", [3; 3]);
    add("", "abc", [3; 3]);
    add("", "AA", [2; 3]);
    add("", "", [0; 3]);
    // A symbol beyond the table, past the first word.
    add(&a(65), &format!("a\u{100}{}", a(63)), [1, 2, 1]);
    add(&"\u{161}".repeat(5), "aaaaa", [5, 10, 5]);
    add("a\0b", "ab", [1; 3]);
    add("a\0\0", "a", [2; 3]);
    add("\0", "", [1; 3]);
    // Composed or not; joined emoji.
    add("\u{e9}", "e\u{301}", [2, 3, 1]);
    add("\u{1f468}\u{200d}\u{1f469}\u{200d}\u{1f467}", "\u{1f468}", [4, 14, 1]);
    // Bytes taken for text.
    add("\u{43c}", "\u{433}", [1; 3]);
    add(
        "\u{442}\u{44b} \u{43c}\u{438}\u{43b}\u{430}\u{44f}",
        "\u{442}\u{44b} \u{433}\u{435}\u{43d}\u{438}\u{439}",
        [5, 6, 5],
    );
    add("Testing\u{2710}What", "Testing What", [1, 3, 1]);
    add("a", "\u{e4}", [1, 2, 1]);
    add("\u{80}", "\u{80}", [0; 3]);
    add("\u{1f431}", "", [1, 4, 1]);
    // Damerau mistaken for it, or wrong in lanes.
    add("warsa", "was", [2; 3]);
    add("AL NASSER", "HALA NASSER", [2; 3]);
    // Around the width of a word, and of two.
    let digits = "123456789012345678901234567890123";
    add(digits, digits, [0; 3]);
    add(&a(64), &format!("{}b", a(63)), [1; 3]);
    add(&format!("{}b", a(64)), &format!("b{}", a(64)), [2; 3]);
    add(&format!("{}b", a(128)), &format!("b{}", a(128)), [2; 3]);
    for n in [1, 31, 32, 33, 63, 64, 65, 127, 128, 129, 255, 256, 257] {
        add(&a(n), &"b".repeat(n), [n; 3]);
        add(&a(n), "", [n; 3]);
        add(&a(n), &a(n), [0; 3]);
        add(&format!("x{}", a(n)), &format!("{}y", a(n)), [2; 3]);
        add(&"\u{4f60}".repeat(n), &"\u{4f61}".repeat(n), [n; 3]);
    }
    // Long ones, in linear memory.
    add(&a(70_000), &"b".repeat(70_000), [70_000; 3]);
    all
}

fn json_lines(reported: &[Reported]) -> String {
    let line = |(left, right, _): &Reported| serde_json::json!({ "a": left, "b": right }).to_string() + "\n";
    reported.iter().map(line).collect()
}

#[test]
fn every_reported_pair_has_its_right_distance_in_every_unit() {
    let (folder, reported) = (Folder::new(), reported());
    folder.write("pairs.jsonl", json_lines(&reported));
    for (at, unit) in ["char", "byte", "grapheme"].into_iter().enumerate() {
        for columns in ["a,b", "b,a"] {
            let found = folder.answer(&[
                "--pairs",
                "pairs.jsonl",
                "--columns",
                columns,
                "--unit",
                unit,
                "--output-format",
                "txt",
            ]);
            for ((left, right, expected), found) in reported.iter().zip(found.lines()) {
                let short = |text: &String| text.chars().take(20).collect::<String>();
                assert_eq!(found, expected[at].to_string(), "{:?} {:?} {unit}", short(left), short(right));
            }
            assert_eq!(found.lines().count(), reported.len());
        }
    }
}

#[test]
fn one_text_against_each_gives_the_same() {
    let folder = Folder::new();
    for (left, right, expected) in reported() {
        // What an argument, and a line, can hold.
        if left.contains('\0') || left.len() > 5_000 {
            continue;
        }
        folder.write("one.txt", format!("{right}\n{left}\nz\n"));
        let found = folder.answer(&["--pattern", &left, "one.txt", "--output-format", "txt"]);
        let found: Vec<_> = found.lines().collect();
        assert_eq!(found[..2], [expected[0].to_string().as_str(), "0"], "{left:?} {right:?}");
    }
}

#[test]
fn a_cutoff_is_inclusive_and_what_is_beyond_is_not_reported() {
    let folder = Folder::new();
    folder.write("some.txt", "sitting\n");
    folder.write("empty.txt", "\n");
    let rows = |text: &str, file: &str, cutoff: &str| {
        folder
            .answer(&["--pattern", text, file, "--max-distance", cutoff, "--no-text"])
            .lines()
            .skip(1)
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    assert_eq!(rows("kitten", "some.txt", "3"), ["0,3"]);
    assert_eq!(rows("kitten", "some.txt", "2"), [""; 0]);
    assert_eq!(rows("sitting", "some.txt", "0"), ["0,0"]);
    assert_eq!(rows("sittin", "some.txt", "0"), [""; 0]);
    // The empty string has no way around it.
    assert_eq!(rows("ACGT", "empty.txt", "1"), [""; 0]);
    assert_eq!(rows("ACGT", "empty.txt", "4"), ["0,4"]);
    assert_eq!(rows("", "empty.txt", "0"), ["0,0"]);
    assert_eq!(rows("kitten", "some.txt", "4294967295"), ["0,3"]);
    // At every cutoff, exactly those that it lets through.
    let reported = super::reported::reported();
    let reported: Vec<_> = reported.into_iter().filter(|(left, ..)| left.len() < 5_000).collect();
    folder.write("pairs.jsonl", json_lines(&reported));
    for cutoff in [0, 1, 2, 3, 5, 31, 32, 64, 65, 128, 300] {
        let found = folder.answer(&[
            "--pairs",
            "pairs.jsonl",
            "--columns",
            "a,b",
            "--no-text",
            "--max-distance",
            &cutoff.to_string(),
        ]);
        let expected: String = reported
            .iter()
            .enumerate()
            .filter(|(_, (_, _, distances))| distances[0] <= cutoff)
            .map(|(row, (_, _, distances))| format!("{row},{}\n", distances[0]))
            .collect();
        assert_eq!(found, format!("row,distance\n{expected}"), "{cutoff}");
    }
}

#[test]
fn spellings_of_the_same_text_are_the_same_where_that_is_asked_for() {
    let folder = Folder::new();
    folder.write("spellings.txt", "e\u{301}\n\u{e9}\n\u{c9}\n\u{fb01}\nFI\n");
    let distances = |pattern: &str, more: &[&str]| {
        let text = folder.answer(&[&["--pattern", pattern, "spellings.txt", "--output-format", "txt"], more].concat());
        text.lines().map(|line| line.parse().unwrap()).collect::<Vec<u32>>()
    };
    assert_eq!(distances("\u{e9}", &[]), [2, 0, 1, 1, 2]);
    assert_eq!(distances("\u{e9}", &["--unit", "grapheme"]), [1, 0, 1, 1, 2]);
    assert_eq!(distances("\u{e9}", &["--normalize", "nfc"]), [0, 0, 1, 1, 2]);
    assert_eq!(distances("\u{e9}", &["--normalize", "nfc", "--ignore-case"]), [0, 0, 0, 2, 2]);
    assert_eq!(distances("fi", &["--normalize", "nfc"]), [2, 2, 2, 2, 2]);
    assert_eq!(distances("fi", &["--normalize", "nfkc"]), [2, 2, 2, 0, 2]);
    assert_eq!(distances("fi", &["--normalize", "nfkc", "--ignore-case"]), [2, 2, 2, 0, 0]);
    assert_eq!(distances("E\u{301}", &["--normalize", "nfc", "--ignore-case"]), [0, 0, 0, 2, 2]);
    assert_eq!(distances("\u{e9}", &["--unit", "byte"]), [3, 0, 1, 3, 2]);
}

#[test]
fn line_ends_and_a_byte_order_mark_are_no_part_of_a_string() {
    let folder = Folder::new();
    folder.write("windows.txt", "\u{feff}abc\r\nabc\r\n\r\nabc");
    assert_eq!(folder.answer(&["abc", "windows.txt", "--output-format", "txt"]), "0\n0\n3\n0\n");
    folder.write("windows.csv", "\u{feff}name,other\r\nabc,abd\r\n\"abc\",\"a\nc\"\r\n");
    assert_eq!(
        folder.answer(&["--pairs", "windows.csv", "--columns", "name,other"]),
        "row,distance,left_text,right_text\n0,1,abc,abd\n1,1,abc,\"a\nc\"\n"
    );
    // Elsewhere they count.
    folder.write("inside.txt", "a\rbc\nabc\u{feff}\n");
    assert_eq!(folder.answer(&["abc", "inside.txt", "--output-format", "txt"]), "1\n1\n");
}

#[test]
fn lines_of_ten_megabytes_are_compared_whole() {
    let folder = Folder::new();
    let long = "a".repeat(10_000_000);
    folder.write("long.txt", format!("{long}\nkitten\n{long}kitten"));
    assert_eq!(folder.answer(&["kitten", "long.txt", "--output-format", "txt"]), "10000000\n0\n10000000\n");
    assert_eq!(folder.answer(&["kitten", "long.txt", "--max-distance", "0"]), "row,distance,text\n1,0,kitten\n");
    folder.run(&["kitten", "long.txt", "--output", "long.npy"]);
    let npy = folder.read("long.npy");
    assert!(String::from_utf8_lossy(&npy[..128]).contains("'descr': '<u4', 'fortran_order': False, 'shape': (3,), }"));
    assert_eq!(npy[128..], [10_000_000_u32, 0, 10_000_000].map(u32::to_le_bytes).concat());
}
