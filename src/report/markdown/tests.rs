use super::super::fixtures::{self, FORBIDDEN_NS, Fixture};
use super::super::{Page, Record, Settings, render};
use crate::results::schema::{Mode, Verdict};
use crate::units::Nanos;

fn page(records: &[Record]) -> Page {
    render(records, &fixtures::settings()).unwrap()
}

/// The line of a table whose first cells contain these words.
fn row<'a>(page: &'a Page, words: &[&str]) -> &'a str {
    let mut lines = page.text.lines().filter(|line| line.starts_with('|'));
    lines
        .find(|line| words.iter().all(|word| line.contains(word)))
        .unwrap_or_else(|| panic!("{words:?}\n{}", page.text))
}

/// Every verdict there is, on two machines.
fn everything() -> Vec<Record> {
    let run = |kernel: &str, machine: &str, day: u32, verdict: Verdict, reason: Option<&str>| {
        Fixture::new(kernel, machine).day(day).verdict(verdict, reason).record()
    };
    let gpu = fixtures::GPU_MACHINE;
    let mut records = vec![
        run("cosine", gpu, 1, Verdict::Pass, None),
        run("cosine", fixtures::CPU_MACHINE, 2, Verdict::NoGpu, None),
        run("myers", gpu, 3, Verdict::Fail, Some("below_gate")),
    ];
    // One of two runs passed.
    records.push(run("chain", gpu, 4, Verdict::Pass, None));
    records.push(run("chain", gpu, 5, Verdict::Fail, Some("below_gate")));
    records.push(run("minhash", gpu, 6, Verdict::Invalid, Some("mismatch")));
    let mut withdrawn = run("myers", gpu, 7, Verdict::Pass, None);
    withdrawn.withdrawn = Some("another job ran | on the card".into());
    let mut interrupted = run("cosine", gpu, 8, Verdict::Inconclusive, Some("interrupted"));
    interrupted.result.run.complete = false;
    let mut quick = run("cosine", gpu, 9, Verdict::Pass, None);
    quick.result.run.mode = Mode::Quick;
    let mut null = run("cosine", gpu, 10, Verdict::Inconclusive, None);
    null.result.run.mode = Mode::Null;
    for gate in &mut null.result.gates {
        (gate.point, gate.lo, gate.hi) = (Some(1.0), Some(0.991), Some(1.008));
    }
    records.extend([withdrawn, interrupted, quick, null]);
    records
}

/// The present code has a chain and a minhash too, the latter changed since it was measured.
fn all_kernels() -> Settings {
    let mut settings = fixtures::settings();
    for (id, title) in [("chain", "Device-resident chain"), ("minhash", "MinHash")] {
        let kernel = settings.kernels[0].clone();
        settings.kernels.push(super::super::CurrentKernel { id: id.into(), title: title.into(), ..kernel });
    }
    if let Some(minhash) = settings.kernels.last_mut() {
        minhash.kernel_hash = Some("ff".repeat(32));
    }
    settings
}

#[test]
fn the_page_of_every_verdict_reads_as_it_did() {
    let page = render(&everything(), &all_kernels()).unwrap();
    insta::assert_snapshot!(page.text);
}

#[test]
fn the_page_without_any_result_says_so() {
    insta::assert_snapshot!(page(&[]).text);
}

/// Of a kernel whose contexts pin names: what stands under its heading.
#[test]
fn the_section_of_a_kernel_with_named_axes_reads_as_it_did() {
    let page = page(&[Fixture::new("spmm", fixtures::GPU_MACHINE).record()]);
    let section = page.text.split("\n## CSR SpMM").nth(1).unwrap().split("\n## ").next().unwrap();
    insta::assert_snapshot!(section);
    for (name, chart) in &page.charts {
        // Panels are told apart by what differs: nothing is the same in all four.
        for label in ["tf-idf, f32, width 64", "tf-idf, f64, width 64", "power-law, f64, width 512"] {
            assert!(chart.contains(label), "{name}: {label}");
        }
    }
}

#[test]
fn two_renders_are_equal_byte_by_byte_in_whatever_order_the_files_come() {
    let mut records = everything();
    let first = render(&records, &all_kernels()).unwrap();
    assert_eq!(render(&records, &all_kernels()).unwrap(), first);
    records.reverse();
    assert_eq!(render(&records, &all_kernels()).unwrap(), first);
    assert!(first.charts.len() >= 14, "{}", first.charts.len());
}

#[test]
fn no_gpu_duration_of_a_software_adapter_reaches_the_page_or_a_chart() {
    let page = page(&[Fixture::new("cosine", fixtures::CPU_MACHINE).verdict(Verdict::NoGpu, None).record()]);
    let everything = page.charts.iter().fold(page.text.clone(), |all, (_, svg)| all + svg);
    // What the file holds: GPU rows, and rates and the floor of the software adapter.
    for forbidden in [Nanos(FORBIDDEN_NS).to_string(), "12.0 GB/s".into(), "11.0 GB/s".into(), "31.0 us".into()] {
        assert!(!everything.contains(&forbidden), "{forbidden}\n{}", page.text);
    }
    assert!(!page.text.contains("speedup") && page.charts.iter().all(|(name, _)| !name.contains("speedup")));
    assert!(row(&page, &["Tiled cosine", "NO-GPU"]).contains("| - | NO-GPU | - | - | - |"), "{}", page.text);
    // The CPU's figures and the agreement of the GPU arm are there.
    assert!(page.text.contains("| gpu | resident | 15,360 | 15,360 | 0 | 0 | agrees |"), "{}", page.text);
    assert!(page.text.contains("llvmpipe (LLVM 15.0.6, 256 bits), a program on the CPU"), "{}", page.text);
}

#[test]
fn a_verdict_says_no_gpu_even_if_the_adapter_looks_real() {
    let mut record = Fixture::new("cosine", fixtures::GPU_MACHINE).record();
    record.result.verdict.verdict = Verdict::NoGpu;
    let page = page(&[record]);
    assert!(!page.text.contains("7.9") && page.charts.len() == 2, "{}", page.text);
}

#[test]
fn failures_stand_in_the_same_table_sorted_by_name_and_not_by_outcome() {
    let page = render(&everything(), &all_kernels()).unwrap();
    let table = page.text.split("## Verdicts").nth(1).unwrap().split("\n## ").next().unwrap();
    let lines = table.lines().filter(|line| line.starts_with("| ")).skip(2);
    let found: Vec<_> = lines
        .map(|line| {
            let cells: Vec<_> = line.split(" | ").collect();
            (cells[0].trim_start_matches(['|', ' ', '[']).split(']').next().unwrap(), cells[4])
        })
        .collect();
    assert_eq!(
        found,
        [
            ("Bit-parallel Myers", "**FAIL** below_gate"),
            ("CSR SpMM", "not measured"),
            ("Device-resident chain", "INCONCLUSIVE disagree 1/2"),
            ("MinHash", "stale (measured at a1b2c3d4): was **INVALID** mismatch"),
            ("Tiled cosine + top-k", "PASS"),
            ("Tiled cosine + top-k", "NO-GPU"),
        ]
    );
}

#[test]
fn each_way_to_fail_is_named() {
    for reason in ["below_gate", "parity", "slower"] {
        let page = page(&[Fixture::new("cosine", fixtures::GPU_MACHINE).verdict(Verdict::Fail, Some(reason)).record()]);
        assert!(row(&page, &["Tiled cosine", "machine-"]).contains(&format!("**FAIL** {reason}")), "{}", page.text);
        assert!(
            row(
                &page,
                &["2026-09-01", "below_gate", "a1b2c3d4"].map(|word| if word == "below_gate" { reason } else { word })
            )
            .contains("results/")
        );
    }
}

#[test]
fn failed_withdrawn_and_interrupted_runs_are_all_listed() {
    let page = render(&everything(), &all_kernels()).unwrap();
    let list = page.text.split("## Failed, invalid").nth(1).unwrap().split("\n## ").next().unwrap();
    let days: Vec<_> = list.lines().filter_map(|line| line.strip_prefix("| 2026-09-")?.get(..2)).collect();
    assert_eq!(days, ["03", "05", "06", "07", "08"]);
    assert!(list.contains("PASS; withdrawn: another job ran \\| on the card"), "{list}");
    assert!(list.contains("| interrupted |"), "{list}");
}

#[test]
fn a_wrong_result_has_no_ratio_anywhere() {
    let record = Fixture::new("cosine", fixtures::GPU_MACHINE).verdict(Verdict::Invalid, Some("mismatch")).record();
    // A run of the same code that passed does not bring the ratio back.
    let pass = Fixture::new("cosine", fixtures::GPU_MACHINE).day(2).record();
    let page = page(&[record, pass]);
    assert!(
        !page.text.contains("7.9") && !page.charts.iter().any(|(name, _)| name.contains("speedup")),
        "{}",
        page.text
    );
    assert!(page.text.contains("query 3, rank 7: expected row 12, found row 13"), "{}", page.text);
}

#[test]
fn stale_results_keep_their_figures_and_lose_their_verdict() {
    let mut settings = fixtures::settings();
    settings.kernels[0].baseline_hash = "ff".into();
    let page = render(&[Fixture::new("cosine", fixtures::GPU_MACHINE).record()], &settings).unwrap();
    let line = row(&page, &["Tiled cosine", "machine-"]);
    assert!(line.contains("stale (measured at a1b2c3d4): was PASS") && line.contains("7.9"), "{line}");
}

#[test]
fn links_lead_to_places_that_exist() {
    let page = render(&everything(), &all_kernels()).unwrap();
    let targets = page.text.split("](#").skip(1).map(|rest| rest.split(')').next().unwrap());
    for target in targets {
        assert!(page.text.contains(&format!("<a id=\"{target}\"></a>")), "{target}");
    }
    for chart in page.text.split("charts/").skip(1) {
        let name = chart.split('"').next().unwrap();
        assert!(page.charts.iter().any(|(chart, _)| chart == name), "{name}");
    }
}
