//! `lodestar distance` as its users run it: distances, formats, messages, exit codes, and what is left on the disk.
#![cfg(feature = "cli")]

#[path = "../program/folder.rs"]
mod folder;
mod formats;
#[path = "../program/mod.rs"]
mod program;
mod refusals;
mod reported;

use program::{err, lodestar, out};
use std::io::Write;
use std::path::Path;
use std::process::Stdio;

/// A folder to run in, so that messages name files without theirs.
struct Folder(folder::Folder);

impl std::ops::Deref for Folder {
    type Target = folder::Folder;

    fn deref(&self) -> &folder::Folder {
        &self.0
    }
}

impl Folder {
    fn new() -> Self {
        let folder = Self(folder::Folder::new("distance"));
        folder.write("words.txt", "kitten\nsitting\n\nsitten\nmitten\n");
        folder.write("others.txt", "sitten\nkit\n");
        folder
    }

    /// Standard output of a run that has to succeed and has nothing to say.
    fn answer(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        assert_eq!((output.status.code(), err(&output)), (Some(0), String::new()), "{arguments:?}");
        out(&output)
    }

    /// As [`answer`](Self::answer), with something on stdin.
    fn answer_to(&self, input: &str, arguments: &[&str]) -> String {
        let mut command = self.command();
        command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
        let output = child.wait_with_output().unwrap();
        assert_eq!((output.status.code(), err(&output)), (Some(0), String::new()), "{arguments:?}");
        out(&output)
    }
}

/// The definition, once more: by nothing of ours.
fn definition(a: &[char], b: &[char]) -> usize {
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.iter().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let best = (diagonal + usize::from(x != y)).min(row[j] + 1).min(row[j + 1] + 1);
            diagonal = std::mem::replace(&mut row[j + 1], best);
        }
    }
    row[b.len()]
}

/// Strings of many lengths, some of them alike.
fn many(count: usize, seed: u64) -> Vec<String> {
    let mut state = seed;
    let mut random = move |below: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    };
    let mut strings: Vec<String> = Vec::new();
    for i in 0..count {
        let string = if i > 4 && random(3) == 0 {
            let mut chars: Vec<char> = strings[usize::try_from(random(i as u64)).unwrap()].chars().collect();
            chars.insert(usize::try_from(random(chars.len() as u64 + 1)).unwrap(), '\u{142}');
            chars.into_iter().collect()
        } else {
            (0..random(90)).map(|_| char::from(b'a' + u8::try_from(random(4)).unwrap())).collect()
        };
        strings.push(string);
    }
    strings
}

fn lines(strings: &[String]) -> String {
    strings.iter().map(|string| format!("{string}\n")).collect()
}

#[test]
fn one_text_is_compared_with_every_line() {
    let folder = Folder::new();
    assert_eq!(
        folder.answer(&["kitten", "words.txt"]),
        "row,distance,text\n0,0,kitten\n1,3,sitting\n2,6,\n3,1,sitten\n4,1,mitten\n"
    );
    assert_eq!(folder.answer(&["kitten", "words.txt", "--output-format", "txt"]), "0\n3\n6\n1\n1\n");
    assert_eq!(
        folder.answer(&["kitten", "words.txt", "--no-text", "--output-format", "tsv"]),
        "row\tdistance\n0\t0\n1\t3\n2\t6\n3\t1\n4\t1\n"
    );
    assert_eq!(folder.answer(&["", "words.txt", "--output-format", "txt"]), "6\n7\n0\n6\n6\n");
    assert_eq!(
        folder.answer(&["kitten", "words.txt", "--max-distance", "1", "--json"]),
        "{\"row\":0,\"distance\":0,\"text\":\"kitten\"}\n{\"row\":3,\"distance\":1,\"text\":\"sitten\"}\n{\"row\":4,\"distance\":1,\"text\":\"mitten\"}\n"
    );
}

#[test]
fn the_first_argument_is_a_file_where_there_is_one_and_pattern_takes_any_text() {
    let folder = Folder::new();
    folder.write("kit", "mitten\n");
    std::fs::create_dir(folder.path("mitten")).unwrap();
    assert_eq!(folder.answer(&["kit", "others.txt", "--output-format", "txt"]), "1\n4\n");
    assert_eq!(folder.answer(&["--pattern", "kit", "others.txt", "--output-format", "txt"]), "4\n0\n");
    // A folder is no file, so its name is a text.
    assert_eq!(folder.answer(&["mitten", "others.txt", "--output-format", "txt"]), "1\n4\n");
    assert_eq!(folder.answer(&["--pattern", "words.txt", "others.txt", "--output-format", "txt"]), "8\n8\n");
    assert_eq!(folder.answer(&["--pattern", "-k", "others.txt", "--output-format", "txt"]), "6\n3\n");
    for (arguments, said) in [
        (
            &["kitten", "others.txt"][..],
            "one to many: \"kitten\" is the text, every string of others.txt is compared with it\n",
        ),
        (&["kit", "others.txt"], "all pairs: every string of kit, which is a file, with every string of others.txt\n"),
        (&["kit"], "all pairs of one file: the strings of kit with each other\n"),
    ] {
        let message = err(&folder.run(&[arguments, &["--explain"]].concat()));
        let (first, place) = message.split_at(said.len());
        assert_eq!(first, said);
        assert!(place.starts_with("cpu (") && place.contains("auto is the CPU"), "{place}");
    }
}

#[test]
fn all_pairs_of_two_files_come_row_by_row() {
    let folder = Folder::new();
    let pairs = folder.answer(&["words.txt", "others.txt"]);
    assert_eq!(
        pairs,
        "left,right,distance,left_text,right_text\n0,0,1,kitten,sitten\n0,1,3,kitten,kit\n1,0,2,sitting,sitten\n1,1,5,sitting,kit\n\
         2,0,6,,sitten\n2,1,3,,kit\n3,0,0,sitten,sitten\n3,1,4,sitten,kit\n4,0,1,mitten,sitten\n4,1,4,mitten,kit\n"
    );
    assert_eq!(
        folder.answer(&["words.txt", "others.txt", "--max-distance", "1", "--no-text"]),
        "left,right,distance\n0,0,1\n3,0,0\n4,0,1\n"
    );
    let same = folder.answer(&["others.txt", "others.txt", "--no-text"]);
    assert_eq!(same, "left,right,distance\n0,0,0\n0,1,4\n1,0,4\n1,1,0\n");
    assert_eq!(
        folder.answer(&["others.txt", "others.txt", "--no-text", "--exclude-self"]),
        "left,right,distance\n0,1,4\n1,0,4\n"
    );
}

#[test]
fn the_strings_of_one_file_are_compared_once_each() {
    let folder = Folder::new();
    assert_eq!(
        folder.answer(&["words.txt", "--no-text"]),
        "left,right,distance\n0,1,3\n0,2,6\n0,3,1\n0,4,1\n1,2,7\n1,3,2\n1,4,3\n2,3,6\n2,4,6\n3,4,1\n"
    );
    assert_eq!(folder.answer(&["words.txt", "--output-format", "txt"]), "3\n6\n1\n1\n7\n2\n3\n6\n6\n1\n");
    assert_eq!(
        folder.answer(&["words.txt", "--nearest", "1"]),
        "left,right,distance,left_text,right_text\n0,3,1,kitten,sitten\n1,3,2,sitting,sitten\n2,0,6,,kitten\n3,0,1,sitten,kitten\n4,0,1,mitten,kitten\n"
    );
}

#[test]
fn the_nearest_come_first_and_of_equally_near_ones_the_lower_row() {
    let folder = Folder::new();
    let nearest = |k: &str| folder.answer(&["kitten", "words.txt", "--no-text", "--nearest", k]);
    let all = "row,distance\n0,0\n3,1\n4,1\n1,3\n2,6\n";
    for k in 1..=5 {
        assert_eq!(nearest(&k.to_string()), all.split_inclusive('\n').take(k + 1).collect::<String>());
    }
    let output = folder.run(&["kitten", "words.txt", "--no-text", "--nearest", "9"]);
    assert_eq!(out(&output), all);
    assert_eq!(err(&output), "--nearest is 9, and words.txt has 5 strings: all of them are returned\n");
    let output = folder.run(&["words.txt", "--no-text", "--nearest", "9", "--max-distance", "1"]);
    assert_eq!(out(&output), "left,right,distance\n0,3,1\n0,4,1\n3,0,1\n3,4,1\n4,0,1\n4,3,1\n");
    assert_eq!(err(&output), "--nearest is 9, and words.txt has 4 strings beside each: all of them are returned\n");
    assert_eq!(
        folder.answer(&["kitten", "words.txt", "--no-text", "--nearest", "9", "--max-distance", "0", "--quiet"]),
        "row,distance\n0,0\n"
    );
}

#[test]
fn similarities_are_shares_of_the_longer_string() {
    let folder = Folder::new();
    folder.write("some.txt", "kitten\n\nsitting\nkit\n");
    assert_eq!(
        folder.answer(&["kitten", "some.txt", "--similarity"]),
        "row,similarity,text\n0,1,kitten\n1,0,\n2,0.5714285714285714,sitting\n3,0.5,kit\n"
    );
    assert_eq!(folder.answer(&["", "some.txt", "--similarity", "--output-format", "txt"]), "0\n1\n0\n0\n");
    // One edit in ten symbols is more alike than one in two, though as far apart.
    folder.write("lengths.txt", "ab\nabcdefghij\n");
    folder.write("edited.txt", "ax\nabcdefghix\n");
    folder.write("pairs.tsv", "ab\tax\nabcdefghij\tabcdefghix\nab\tab\n");
    let pairs = |more: &[&str]| folder.answer(&[&["--pairs", "pairs.tsv", "--no-text", "--quiet"], more].concat());
    assert_eq!(pairs(&["--nearest", "3"]), "row,distance\n2,0\n0,1\n1,1\n");
    assert_eq!(pairs(&["--nearest", "3", "--similarity"]), "row,similarity\n2,1\n1,0.9\n0,0.5\n");
}

#[test]
fn the_bytes_are_the_same_with_any_number_of_threads_and_any_memory() {
    let folder = Folder::new();
    let (left, right) = (many(150, 1), many(230, 2));
    folder.write("left.txt", lines(&left));
    folder.write("right.txt", lines(&right));
    let chars = |strings: &[String]| strings.iter().map(|s| s.chars().collect()).collect::<Vec<Vec<char>>>();
    let (a, b) = (chars(&left), chars(&right));
    let mut expected = String::from("left,right,distance\n");
    for (i, a) in a.iter().enumerate() {
        for (j, b) in b.iter().enumerate() {
            expected += &format!("{i},{j},{}\n", definition(a, b));
        }
    }
    let variants: [&[&str]; 6] = [
        &[],
        &["--threads", "1"],
        &["--threads", "7"],
        &["--memory", "1"],
        &["--memory", "100KB", "--threads", "2"],
        &["--memory", "2GiB"],
    ];
    for variant in variants {
        let found = folder.answer(&[&["left.txt", "right.txt", "--no-text"], variant].concat());
        assert!(found == expected, "{variant:?}");
    }
    // Memory cuts the matrix, down to one row.
    for (memory, blocks) in [("1", 150), ("2GiB", 1)] {
        let output = folder.run(&["left.txt", "right.txt", "--no-text", "--timing", "--memory", memory]);
        let timing: serde_json::Value = serde_json::from_str(&err(&output)).unwrap();
        assert_eq!(timing["blocks"], blocks, "{memory}");
    }
    for form in [
        &["left.txt"][..],
        &["left.txt", "--nearest", "3"],
        &["left.txt", "right.txt", "--nearest", "4", "--similarity"],
        &["left.txt", "right.txt", "--max-distance", "30", "--json"],
        &["left.txt", "--output-format", "npy", "--quiet"],
        &["left.txt", "--output-format", "npy", "--similarity", "--quiet"],
        &[left[7].as_str(), "right.txt", "--nearest", "10"],
    ] {
        let run = |variant: &[&str]| folder.run(&[form, variant].concat());
        let first = run(&[]);
        assert_eq!((first.status.code(), err(&first)), (Some(0), String::new()), "{form:?}");
        for variant in &variants[1..] {
            assert!(run(variant).stdout == first.stdout, "{form:?} {variant:?}");
        }
    }
}

#[test]
fn a_cutoff_and_a_number_of_neighbours_are_parts_of_the_whole() {
    let folder = Folder::new();
    let strings = many(120, 3);
    folder.write("many.txt", lines(&strings));
    let records = |arguments: &[&str]| {
        let text = folder.answer(&[&["many.txt", "--no-text", "--quiet"], arguments].concat());
        let record = |line: &str| {
            let fields: Vec<usize> = line.split(',').map(|field| field.parse().unwrap()).collect();
            (fields[0], fields[1], fields[2])
        };
        text.lines().skip(1).map(record).collect::<Vec<_>>()
    };
    let all = records(&[]);
    assert_eq!(all.len(), 120 * 119 / 2);
    for cutoff in [0, 1, 5, 33, 89, 90] {
        let kept: Vec<_> = all.iter().copied().filter(|&(.., distance)| distance <= cutoff).collect();
        assert_eq!(records(&["--max-distance", &cutoff.to_string()]), kept, "{cutoff}");
    }
    let mut nearest = Vec::new();
    for left in 0..120 {
        let mut of: Vec<_> = all
            .iter()
            .filter_map(|&(a, b, distance)| {
                (a == left).then_some((distance, b)).or((b == left).then_some((distance, a)))
            })
            .collect();
        of.sort_unstable();
        nearest.extend(of.into_iter().take(6).map(|(distance, right)| (left, right, distance)));
    }
    assert_eq!(records(&["--nearest", "6"]), nearest);
}

#[test]
fn timing_is_one_line_of_json() {
    let folder = Folder::new();
    let output = folder.run(&["kitten", "words.txt", "--timing"]);
    let value: serde_json::Value = serde_json::from_str(&err(&output)).unwrap();
    assert_eq!((&value["pairs"], &value["left"], &value["right"]), (&5.into(), &1.into(), &5.into()));
    assert_eq!((&value["form"], &value["cells"]), (&"one to many".into(), &150.0.into()));
    let output = folder.run(&["words.txt", "--timing", "--output", "out.csv"]);
    let value: serde_json::Value = serde_json::from_str(&out(&output)).unwrap();
    assert_eq!((&value["pairs"], &value["form"]), (&10.into(), &"all pairs of one file".into()));
    assert_eq!(err(&output), "");
}

#[test]
fn the_examples_of_the_help_work_on_the_corpora() {
    let run = |arguments: &[&str]| {
        let output = lodestar(Path::new(env!("CARGO_MANIFEST_DIR"))).arg("distance").args(arguments).output().unwrap();
        assert_eq!((output.status.code(), err(&output)), (Some(0), String::new()), "{arguments:?}");
        out(&output)
    };
    let (words, names) = ("corpus/words/american-english.txt.gz", "corpus/names/surnames.txt.gz");
    assert_eq!(
        run(&["recieve", words, "--nearest", "10"]),
        "row,distance,text\n81345,1,relieve\n26617,2,believe\n80192,2,recede\n80202,2,receive\n80264,2,recipe\n80291,2,recite\n\
         80765,2,reeve\n81346,2,relieved\n81347,2,relieves\n81366,2,relive\n"
    );
    let near = run(&["recieve", words, "--max-distance", "2", "--json"]);
    assert!(near.lines().all(|line| line.contains("\"distance\":1,") || line.contains("\"distance\":2,")));
    assert!(near.contains("{\"row\":80202,\"distance\":2,\"text\":\"receive\"}\n"), "{near}");
    assert_eq!(run(&["recieve", words, "--output-format", "txt"]).lines().count(), 104_334);
    assert_eq!(
        run(&["lovelace", names, "--nearest", "1", "--ignore-case", "--similarity"])
            .lines()
            .nth(1)
            .map(|line| line.contains(",1,")),
        Some(true)
    );
    // Letters beyond ASCII count once.
    assert_eq!(
        run(&["Asuncion", words, "--nearest", "1"]).lines().nth(1).map(|line| line.ends_with(",1,Asunci\u{f3}n")),
        Some(true)
    );
}

#[test]
fn the_examples_of_the_help_that_have_files_of_their_own_work_on_small_ones() {
    let folder = Folder::new();
    folder.write("people.csv", "id,name,name_in_register\n1,Jos\u{e9},Jose\u{301}\n2,Ada,Aida\n");
    assert_eq!(
        folder.answer(&[
            "--pairs",
            "people.csv",
            "--columns",
            "name,name_in_register",
            "--normalize",
            "nfc",
            "--no-text"
        ]),
        "row,distance\n0,0\n1,1\n"
    );
    // What paste makes of two files.
    assert_eq!(
        folder.answer_to("kitten\tsitting\nkit\tkit\n", &["--pairs", "-", "--format", "tsv", "--quiet"]),
        "row,distance,left_text,right_text\n0,3,kitten,sitting\n1,0,kit,kit\n"
    );
    folder.write("genes.fasta", ">a\nACGT\n>b\nACG\nA\n");
    let output = folder.run(&["genes.fasta", "--output", "distances.npy"]);
    assert_eq!((output.status.code(), out(&output)), (Some(0), String::new()), "{}", err(&output));
    assert!(folder.read("distances.npy").ends_with(&[0, 1, 1, 0]));
}

#[test]
fn the_help_names_every_form_and_every_option() {
    let folder = Folder::new();
    let help = folder.answer(&["--help"]);
    for wanted in [
        "distance PATTERN FILE",
        "distance A B",
        "distance FILE",
        "distance --pairs FILE",
        "--pattern",
        "--column",
        "--columns",
        "--header",
        "--format",
        "--unit",
        "--normalize",
        "--ignore-case",
        "--max-distance",
        "--nearest",
        "--similarity",
        "--exclude-self",
        "--output-format",
        "--no-text",
        "--memory",
        "--device",
        "--threads",
        "--explain",
        "--timing",
    ] {
        let begins = |line: &str| {
            let line = line.trim_start();
            // A short name may stand before the long one.
            let line = if line.as_bytes().get(2) == Some(&b',') { line[3..].trim_start() } else { line };
            line.strip_prefix(wanted).is_some_and(|rest| rest.is_empty() || rest.starts_with(' '))
        };
        assert!(help.lines().any(begins), "{wanted}");
    }
}
