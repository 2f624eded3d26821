//! What edit distances reach of this machine's speed. Quote ratios taken in one run, never a single time.
//!
//! ```text
//! cargo bench --bench myers                              the forms of the protocol
//! cargo bench --bench myers -- pairs                     one of them, by the beginning of its name
//! LODESTAR_SIMD=avx2 cargo bench --bench myers           at a lower SIMD level
//! ```
//!
//! A cell is one of the table that the definition fills, whatever is computed of it.
//!
//! With `--left FILE --right FILE --mode one|pairs|all [--cutoff K] [--threads N] [--prepared]` it reads both lists (one
//! string a line) into memory, compares them for a while, and prints the median time of a call and the sum of the distances as
//! JSON (`{"ms": 12.3, "sum": 4567}`): what `benches/peers_myers.py` sets beside other libraries. Distances beyond the cutoff
//! count as one more than it. The memory for the distances is there before the clock starts; with `--prepared`, what can be
//! prepared of the texts is too.
#![expect(clippy::print_stdout, reason = "a benchmark prints its figures")]

mod timing;

use lodestar::data::{Texts, generate_texts};
use lodestar::formats::Names;
use lodestar::kernels::Platform;
use lodestar::kernels::myers::{BEYOND, PreparedTexts, all_pairs, one_to_many, pairs};
use lodestar::simd::Level;
use std::hint::black_box;
use std::path::Path;
use timing::median_seconds;

#[derive(Clone, Copy, PartialEq)]
enum Form {
    /// The first string on the left and all on the right.
    One,
    /// The same, the texts prepared outside of the call.
    Prepared,
    Pairs,
    All,
}

/// Two lists and what is asked of them.
struct Workload {
    form: Form,
    left: Texts,
    right: Texts,
    cutoff: Option<u32>,
}

impl Workload {
    fn distances(&self) -> usize {
        self.right.len() * if self.form == Form::All { self.left.len() } else { 1 }
    }

    fn cells(&self) -> f64 {
        let (left, right) = (&self.left, &self.right);
        match self.form {
            Form::One | Form::Prepared => left.length(0) as f64 * right.total() as f64,
            Form::All => left.total() as f64 * right.total() as f64,
            Form::Pairs => (0..left.len()).map(|pair| left.length(pair) as f64 * right.length(pair) as f64).sum(),
        }
    }

    /// The median time of a call, and the distances.
    fn time(&self, platform: &Platform) -> (f64, Vec<u32>) {
        let Self { form, left, right, cutoff } = self;
        let mut distances = vec![0; self.distances()];
        let prepared = PreparedTexts::new(right, platform);
        let seconds = median_seconds(|| {
            let (left, right) = (black_box(left), black_box(right));
            let done = match form {
                Form::One => one_to_many(left.get(0), right, *cutoff, &mut distances, platform),
                Form::Prepared => prepared.distances(left.get(0), *cutoff, &mut distances, platform),
                Form::Pairs => pairs(left, right, *cutoff, &mut distances, platform),
                Form::All => all_pairs(left, 0..left.len(), right, 0..right.len(), *cutoff, &mut distances, platform),
            };
            done.expect("lists that fit");
        });
        (seconds, distances)
    }
}

fn main() {
    let level = Level::from_environment().expect("LODESTAR_SIMD");
    if let Some(left) = option("--left") {
        return beside_peers(level, &left);
    }
    let wanted = std::env::args().skip(1).find(|argument| argument != "--bench").unwrap_or_default();
    let all = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    println!("{level}");
    println!("{:<34} {:>9} {:>7} {:>10} {:>9} {:>8}", "", "pairs", "threads", "ms", "ns/pair", "GCUPS");
    for (name, workload) in workloads().into_iter().filter(|(name, _)| name.starts_with(&wanted)) {
        let workload = workload();
        for threads in [1, all] {
            let (seconds, _) = workload.time(&Platform::cpu(level, threads));
            println!(
                "{name:<34} {:>9} {threads:>7} {:>10.3} {:>9.2} {:>8.1}",
                workload.distances(),
                seconds * 1e3,
                seconds * 1e9 / workload.distances() as f64,
                workload.cells() / seconds / 1e9,
            );
        }
    }
}

type Make = Box<dyn Fn() -> Workload>;

/// The forms of the protocol, made when their turn comes.
fn workloads() -> Vec<(String, Make)> {
    let letters =
        |count, length, call| generate_texts::texts("letters", count, length..=length, 1, call).expect("texts");
    let mut all: Vec<(String, Make)> = Vec::new();
    for (form, name) in [(Form::One, "one to many"), (Form::Prepared, "one to prepared")] {
        for (pattern, length, count) in [(24, 32, 10_000), (24, 32, 200_000), (24, 256, 200_000), (256, 256, 40_000)] {
            let make =
                move || Workload { form, left: letters(1, pattern, 1), right: letters(count, length, 0), cutoff: None };
            all.push((format!("{name}, {pattern} x {length}"), Box::new(make)));
        }
    }
    let lengths =
        [("letters", 8, 200_000), ("letters", 32, 100_000), ("letters", 128, 20_000), ("letters", 512, 4_000)];
    for (kind, length, count) in lengths.into_iter().chain([("dna", 1_000, 400), ("dna", 10_000, 40)]) {
        let percent = if kind == "dna" { 5 } else { 10 };
        let make = move || {
            let right = generate_texts::texts(kind, count, length..=length, 1, 0).expect("texts");
            let alphabet = generate_texts::alphabet(kind).expect("a kind");
            let left = generate_texts::edited(&right, percent, &alphabet, 1, 0).expect("copies");
            Workload { form: Form::Pairs, left, right, cutoff: None }
        };
        all.push((format!("pairs, {kind} {length}, {percent}% edits"), Box::new(make)));
    }
    for (list, rows, columns, percent, cutoff) in [
        ("names/surnames", 2_000, 2_000, None, None),
        ("words/american-english", 100, 50_000, Some(20), Some(2)),
        ("words/american-english", 100, 50_000, Some(20), None),
    ] {
        let make = move || {
            let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("corpus/{list}.txt.gz"));
            let sample = |count, call| generate_texts::sample(&read(&path), count, 1, call).expect("a sample");
            let mut left = sample(rows, 1);
            if let Some(percent) = percent {
                let alphabet = generate_texts::alphabet("letters").expect("a kind");
                left = generate_texts::edited(&left, percent, &alphabet, 1, 0).expect("copies");
            }
            Workload { form: Form::All, left, right: sample(columns, 0), cutoff }
        };
        let (_, list) = list.split_once('/').expect("a folder");
        let cutoff = cutoff.map(|cutoff: u32| format!(", cutoff {cutoff}")).unwrap_or_default();
        all.push((format!("all pairs, {list}{cutoff}"), Box::new(make)));
    }
    let cjk = || {
        let texts = |call| generate_texts::texts("cjk", 1_000, 8..=20, 1, call).expect("texts");
        Workload { form: Form::All, left: texts(1), right: texts(0), cutoff: None }
    };
    all.push(("all pairs, cjk".into(), Box::new(cjk)));
    all
}

/// Lines as code points.
fn read(path: &Path) -> Texts {
    let lines = Names::read_lines(path).expect("a list of strings");
    lines.iter().map(|line| line.chars().map(u32::from).collect::<Vec<_>>()).collect()
}

fn option(name: &str) -> Option<String> {
    std::env::args().skip_while(|argument| argument != name).nth(1)
}

fn beside_peers(level: Level, left: &str) {
    let right = option("--right").expect("--right FILE");
    let prepared = std::env::args().any(|argument| argument == "--prepared");
    let form = match option("--mode").as_deref() {
        Some("one") if prepared => Form::Prepared,
        Some("one") => Form::One,
        Some("pairs") => Form::Pairs,
        Some("all") => Form::All,
        other => panic!("--mode one, pairs or all, not {other:?}"),
    };
    let number = |name: &str| option(name).map(|number| number.parse().unwrap_or_else(|_| panic!("{name}: {number}")));
    let cutoff: Option<u32> = number("--cutoff");
    let workload = Workload { form, left: read(Path::new(left)), right: read(Path::new(&right)), cutoff };
    let threads = number("--threads").map_or(1, |threads| threads as usize);
    let (seconds, distances) = workload.time(&Platform::cpu(level, threads));
    let counted = |distance: u32| match cutoff {
        Some(cutoff) if distance == BEYOND => u64::from(cutoff) + 1,
        _ => u64::from(distance),
    };
    let sum: u64 = distances.into_iter().map(counted).sum();
    println!("{{\"ms\": {}, \"sum\": {sum}}}", seconds * 1e3);
}
