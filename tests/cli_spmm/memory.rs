//! Products in blocks, on threads, and beyond what memory or the disk holds.

use super::{Folder, M, column_by_column, err, npy};
use lodestar::data::Matrix;
use lodestar::formats::{DenseFormat, write_dense};
use std::process::Command;

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
        .current_dir(folder.root())
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
            .current_dir(folder.root())
            .output()
            .unwrap();
        let case = format!("{b} {output} {memory}");
        assert_eq!(err(&result), format!("lodestar: {output}: File too large (os error 27)\n"), "{case}");
        assert_eq!((result.status.code(), folder.listing()), (Some(2), before.clone()), "{case}");
    }
}
