//! Axis values -> seeded inputs; bytes and operations per call; how close is close enough.
//!
//! Results are canonical, so agreement means equal bytes: with the reference for a few queries of every input (the
//! reference is slow), and for all other queries between all variants.

#[cfg(feature = "gpu")]
use super::gpu::{self, GpuCorpus};
use super::simd::{self, Arithmetic, top_k_prepared};
use super::{Metric, Neighbors, Search, reference};
use crate::data::{Matrix, generate};
use crate::error::Error;
use crate::kernels::{Agreement, Case, Footprint, Mismatch, Platform, Prepared, Row, Variant, Work};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;

/// Real embeddings, and the seeded distributions; see [`generate`].
pub(super) const DISTRIBUTIONS: &[&str] = &["gaussian", "clustered", "duplicates", "sorted", WORDNET];
/// 20,000 sentence embeddings of WordNet glosses and 64 of questions, from the corpus folder.
const WORDNET: &str = "wordnet";

pub(super) const CPU_SOURCES: &[(&str, &str)] = &[
    ("bounds.rs", include_str!("bounds.rs")),
    ("exact.rs", include_str!("exact.rs")),
    ("pack.rs", include_str!("pack.rs")),
    ("quantized.rs", include_str!("quantized.rs")),
    ("rank.rs", include_str!("rank.rs")),
    ("select.rs", include_str!("select.rs")),
    ("simd.rs", include_str!("simd.rs")),
    ("tile.rs", include_str!("tile.rs")),
    ("../parallel.rs", include_str!("../parallel.rs")),
    ("../../data/buffer.rs", include_str!("../../data/buffer.rs")),
    ("../../simd/ops.rs", include_str!("../../simd/ops.rs")),
];
#[cfg(feature = "gpu")]
pub(super) const GPU_SOURCES: &[(&str, &str)] = gpu::SOURCES;
#[cfg(not(feature = "gpu"))]
pub(super) const GPU_SOURCES: &[(&str, &str)] = &[];

/// Multiply-adds that the reference may cost per input: about two seconds.
const REFERENCE_WORK: usize = 1 << 30;
/// Queries of an input that are compared with the reference, where that is affordable.
const REFERENCE_QUERIES: usize = 4;

#[derive(Debug, Clone, Copy)]
struct Shape {
    rows: usize,
    dim: usize,
    k: usize,
    queries: usize,
}

impl Shape {
    fn of(case: &Case) -> Result<Self, Error> {
        let shape =
            Self { rows: case.size()?, dim: case.axis("dim")?, k: case.axis("k")?, queries: case.axis("queries")? };
        for (what, value) in [("rows", shape.rows), ("dim", shape.dim), ("k", shape.k), ("queries", shape.queries)] {
            if value == 0 {
                return Err(Error::argument(what, "at least 1", value));
            }
        }
        let most = u32::MAX as usize;
        if shape.rows > most {
            return Err(Error::Limit { what: "rows".into(), requested: shape.rows as u64, max: most as u64 });
        }
        Ok(shape)
    }

    fn corpus_bytes(&self) -> u64 {
        (self.rows as u64).saturating_mul(self.dim as u64).saturating_mul(4)
    }

    fn query_bytes(&self) -> u64 {
        (self.queries as u64).saturating_mul(self.dim as u64).saturating_mul(4)
    }

    fn result_bytes(&self) -> u64 {
        8 * self.k.min(self.rows) as u64 * self.queries as u64
    }
}

/// Real embeddings at sizes around the tiles' edges and with one, few and many queries; every distribution once, at
/// dimensions that are no multiple of a vector.
pub(super) fn check_cases() -> Vec<Case> {
    let case = |distribution: &str, size, dim, k, queries| {
        let context = [("dim", dim), ("k", k), ("queries", queries)]
            .map(|(name, value): (_, u64)| (name.to_owned(), value.into()));
        Case { size, context: context.into(), seed: 42, ring: 2, distribution: distribution.to_owned() }
    };
    vec![
        case(WORDNET, 20_000, 384, 10, 1),
        case(WORDNET, 5_000, 384, 10, 64),
        case(WORDNET, 1_543, 384, 100, 17),
        case("gaussian", 1, 1, 1, 1),
        case("gaussian", 97, 3, 10, 5),
        case("gaussian", 3_001, 67, 10, 33),
        case("clustered", 4_000, 100, 50, 16),
        case("duplicates", 4_000, 32, 200, 9),
        case("sorted", 6_000, 48, 10, 8),
    ]
}

pub(super) fn footprint(case: &Case) -> Result<Footprint, Error> {
    let shape = Shape::of(case)?;
    let ring = case.ring.max(1) as u64;
    let candidates = 12 * (9 * shape.k as u64 + 246) * shape.queries as u64;
    // A query's room on the device, as in gpu/schedule.rs; one batch of queries at a time.
    let device_candidates = (12 * (32 * shape.k as u64).max(4_096) * shape.queries as u64).min(256 << 20);
    // Values, once more as integers, 20 bytes of terms per row for each; the ring, packed queries, and each thread's
    // candidates (up to 64 threads).
    let host = shape.corpus_bytes() * 5 / 4 + 48 * shape.rows as u64;
    let host = host + (ring + 2) * shape.query_bytes() + ring * shape.result_bytes() + 64 * candidates;
    let device = shape.corpus_bytes() + 16 * shape.rows as u64 + shape.query_bytes() + device_candidates;
    Ok(Footprint { host_bytes: host, device_bytes: device })
}

pub(super) fn prepare(case: &Case, platform: &Platform) -> Result<Box<dyn Prepared>, Error> {
    let shape = Shape::of(case)?;
    let (corpus, queries) = inputs(case, shape)?;
    let search = Search::new(shape.k, Metric::Cosine);
    let choose = |prepared| Arithmetic::choose(shape.queries, &corpus, &search, platform.level, prepared);
    let arithmetic = [choose(true), choose(false)];
    let resident = simd::prepare(&corpus, &search, arithmetic[0], platform.level, platform.threads)?;
    let inputs = queries.len();
    #[cfg(feature = "gpu")]
    let gpu = match &platform.device {
        Some(device) => {
            let settings = gpu::Settings {
                device: std::sync::Arc::clone(device),
                storage: gpu::Storage::F32,
                level: platform.level,
                threads: platform.threads,
            };
            let mut uploaded = GpuCorpus::upload(&settings, &corpus, &search)?;
            // Everything is allocated and compiled before the first call is timed.
            uploaded.upload_queries(&queries[0], &search)?;
            Some(uploaded)
        }
        None => None,
    };
    Ok(Box::new(Searches {
        #[cfg(feature = "gpu")]
        gpu,
        shape,
        platform: platform.clone(),
        search,
        corpus,
        queries,
        resident,
        arithmetic,
        last: None,
        expected: (0..inputs).map(|_| None).collect(),
    }))
}

fn inputs(case: &Case, shape: Shape) -> Result<(Matrix, Vec<Matrix>), Error> {
    let ring = case.ring.max(1);
    if case.distribution == WORDNET {
        return wordnet(shape, ring);
    }
    let corpus = generate::matrix(&case.distribution, shape.rows, shape.dim, case.seed)?;
    let queries = (0..ring as u64)
        .map(|call| generate::queries(&case.distribution, shape.queries, shape.dim, case.seed, call))
        .collect::<Result<_, _>>()?;
    Ok((corpus, queries))
}

/// The first rows of the real corpus. Queries are the 64 real questions, then rows of the corpus, each input beginning
/// at another place.
#[cfg(feature = "cli")]
fn wordnet(shape: Shape, ring: usize) -> Result<(Matrix, Vec<Matrix>), Error> {
    use crate::data::Buffer;
    use crate::formats::{Options, read_matrix};
    let folder = std::path::Path::new("corpus/wordnet");
    let all = read_matrix(&folder.join("embeddings.npy"), &Options::default())?;
    let questions = read_matrix(&folder.join("queries.npy"), &Options::default())?;
    if shape.dim != all.cols() {
        return Err(Error::argument("dim of wordnet", all.cols().to_string(), shape.dim));
    }
    if shape.rows > all.rows() {
        let (requested, max) = (shape.rows as u64, all.rows() as u64);
        return Err(Error::Limit { what: "rows of wordnet".into(), requested, max });
    }
    let mut values = Buffer::zeroed(shape.rows * shape.dim)?;
    values.copy_from_slice(&all.values()[..shape.rows * shape.dim]);
    let corpus = Matrix::from_buffer(shape.rows, shape.dim, values)?;
    let pool = questions.rows() + all.rows();
    let row = |at: usize| if at < questions.rows() { questions.row(at) } else { all.row(at - questions.rows()) };
    let queries = (0..ring)
        .map(|input| {
            let values = (0..shape.queries).flat_map(|query| row((input * shape.queries + query) % pool)).copied();
            Matrix::new(shape.queries, shape.dim, values.collect())
        })
        .collect::<Result<_, _>>()?;
    Ok((corpus, queries))
}

#[cfg(not(feature = "cli"))]
fn wordnet(_: Shape, _: usize) -> Result<(Matrix, Vec<Matrix>), Error> {
    Err(Error::argument("distribution", "one that is generated (the feature `cli` reads files)", WORDNET))
}

/// Built inputs of a case.
struct Searches {
    shape: Shape,
    platform: Platform,
    search: Search,
    corpus: Matrix,
    queries: Vec<Matrix>,
    resident: simd::Prepared,
    /// Of the resident row and of the one-shot row.
    arithmetic: [Arithmetic; 2],
    /// The corpus on the device, if there is one.
    #[cfg(feature = "gpu")]
    gpu: Option<GpuCorpus>,
    last: Option<(Variant, Row, usize, Neighbors)>,
    /// For each input: what every variant has to give, once known.
    expected: Vec<Option<Expected>>,
}

struct Expected {
    /// The reference's answer to some queries: rows and the bits of the scores.
    reference: BTreeMap<usize, Vec<(u32, u32)>>,
    /// The first answer that agreed with it.
    all: Option<Neighbors>,
}

impl Prepared for Searches {
    fn variants(&self) -> Vec<Variant> {
        let mut variants = vec![Variant::Simd { threads: 1 }];
        if self.platform.threads > 1 {
            variants.insert(0, Variant::Simd { threads: self.platform.threads });
        }
        #[cfg(feature = "gpu")]
        if self.gpu.is_some() {
            variants.push(Variant::Gpu);
        }
        variants
    }

    fn has_row(&self, variant: Variant, row: Row) -> bool {
        match variant {
            Variant::Simd { .. } => matches!(row, Row::Resident | Row::OneShot),
            #[cfg(feature = "gpu")]
            Variant::Gpu => self.gpu.is_some(),
            #[cfg(not(feature = "gpu"))]
            Variant::Gpu => false,
        }
    }

    fn run(&mut self, variant: Variant, row: Row, input: usize) -> Result<Option<u64>, Error> {
        let neighbors = match (variant, row) {
            (Variant::Simd { threads }, Row::Resident | Row::OneShot) => {
                let queries = &self.queries[input];
                let resident = (row == Row::Resident).then_some(&self.resident);
                let arithmetic = self.arithmetic[usize::from(row == Row::OneShot)];
                let level = self.platform.level;
                top_k_prepared(queries, &self.corpus, resident, &self.search, arithmetic, level, threads)?
            }
            #[cfg(feature = "gpu")]
            (Variant::Gpu, row) => match self.run_gpu(row, input)? {
                Ran::Answer(neighbors) => neighbors,
                Ran::Part(time) => return Ok(time),
            },
            _ => return Err(Error::argument("row", "one that this variant has", row.name())),
        };
        self.last = Some((variant, row, input, neighbors));
        Ok(None)
    }

    fn work(&self, row: Row) -> Work {
        let Shape { rows, dim, queries, .. } = self.shape;
        let (corpus_up, call_up, down) = self.moved_bytes();
        let up = call_up + if row == Row::OneShot { corpus_up } else { 0 };
        Work {
            bytes_up: if matches!(row, Row::KernelOnly | Row::Download | Row::Floor) { 0 } else { up },
            bytes_down: if matches!(row, Row::KernelOnly | Row::Upload | Row::Floor) { 0 } else { down },
            bytes_touched: self.shape.corpus_bytes() + self.shape.query_bytes(),
            operations: 2.0 * rows as f64 * dim as f64 * queries as f64,
            items: queries as u64,
        }
    }

    fn check(&mut self, variant: Variant, row: Row, input: usize) -> Result<Agreement, Mismatch> {
        let Some((_, _, _, found)) =
            self.last.as_ref().filter(|last| (last.0, last.1, last.2) == (variant, row, input))
        else {
            return Err(Mismatch {
                position: format!("input {input}"),
                expected: format!("a result of {variant:?}, {}", row.name()),
                found: "none: it has not been run".into(),
            });
        };
        let expected = self.expected[input].get_or_insert_with(|| Expected {
            reference: references(&self.queries[input], &self.corpus, &self.search),
            all: None,
        });
        for (&query, list) in &expected.reference {
            compare(query, list, &answer(found, query))?;
        }
        let all = expected.all.get_or_insert_with(|| found.clone());
        for query in 0..self.queries[input].rows() {
            compare(query, &answer(all, query), &answer(found, query))?;
        }
        let compared = 2 * found.rows.len() as u64;
        Ok(Agreement { compared, exact: compared, max_error: 0.0, tolerance: 0.0, checksum: checksum(found) })
    }
}

/// What one call on the device gave.
#[cfg(feature = "gpu")]
enum Ran {
    Answer(Neighbors),
    /// A part of a call: no answer, perhaps the device's own nanoseconds.
    Part(Option<u64>),
}

impl Searches {
    /// Bytes to the device for the corpus and for a call, and bytes from the device for a call.
    fn moved_bytes(&self) -> (u64, u64, u64) {
        #[cfg(feature = "gpu")]
        if let Some(gpu) = &self.gpu {
            let (up, down) = gpu.call_bytes(self.shape.queries, &self.search);
            return (gpu.corpus_bytes(), up, down);
        }
        (self.shape.corpus_bytes(), self.shape.query_bytes(), self.shape.result_bytes())
    }

    #[cfg(feature = "gpu")]
    fn run_gpu(&mut self, row: Row, input: usize) -> Result<Ran, Error> {
        let Some(gpu) = &mut self.gpu else {
            return Err(Error::argument("variant", "one that this platform has", "gpu"));
        };
        let queries = &self.queries[input];
        Ok(match row {
            Row::Resident => Ran::Answer(gpu.top_k(queries, &self.corpus, &self.search)?),
            Row::OneShot => {
                gpu.refill(&self.corpus)?;
                Ran::Answer(gpu.top_k(queries, &self.corpus, &self.search)?)
            }
            Row::E2eFresh => {
                gpu.forget_call();
                Ran::Answer(gpu.top_k(queries, &self.corpus, &self.search)?)
            }
            // On the queries that are on the device: those of the last call.
            Row::KernelOnly => Ran::Part(gpu.kernel_only()?),
            Row::Upload => {
                gpu.upload_queries(queries, &self.search)?;
                Ran::Part(None)
            }
            Row::Download => {
                gpu.download_found(self.shape.queries)?;
                Ran::Part(None)
            }
            Row::Floor => {
                gpu.floor()?;
                Ran::Part(None)
            }
        })
    }
}

/// The reference's answers to the first query, the last, and some between.
fn references(queries: &Matrix, corpus: &Matrix, search: &Search) -> BTreeMap<usize, Vec<(u32, u32)>> {
    let affordable = (REFERENCE_WORK / corpus.values().len().max(1)).clamp(1, REFERENCE_QUERIES);
    let step = queries.rows().div_ceil(affordable).max(1);
    (0..queries.rows())
        .step_by(step)
        .map(|query| {
            let list = reference::top_k(queries.row(query), corpus, search, query);
            (query, list.into_iter().map(|(row, score)| (row, score.to_bits())).collect())
        })
        .collect()
}

fn answer(neighbors: &Neighbors, query: usize) -> Vec<(u32, u32)> {
    let (rows, scores) = neighbors.query(query);
    rows.iter().zip(scores).map(|(&row, score)| (row, score.to_bits())).collect()
}

fn compare(query: usize, expected: &[(u32, u32)], found: &[(u32, u32)]) -> Result<(), Mismatch> {
    let words = |list: &[(u32, u32)], rank: usize| {
        list.get(rank).map_or("nothing".into(), |&(row, score)| format!("row {row}, score {}", f32::from_bits(score)))
    };
    match (0..expected.len().max(found.len())).find(|&rank| expected.get(rank) != found.get(rank)) {
        None => Ok(()),
        Some(rank) => Err(Mismatch {
            position: format!("query {query}, rank {rank}"),
            expected: words(expected, rank),
            found: words(found, rank),
        }),
    }
}

fn checksum(neighbors: &Neighbors) -> String {
    let mut hash = Sha256::new();
    for &offset in &neighbors.offsets {
        hash.update((offset as u64).to_le_bytes());
    }
    neighbors.rows.iter().for_each(|row| hash.update(row.to_le_bytes()));
    neighbors.scores.iter().for_each(|score| hash.update(score.to_bits().to_le_bytes()));
    hash.finalize().iter().take(8).map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simd::Level;

    fn case() -> Case {
        let context =
            [("dim", 20), ("k", 3), ("queries", 6)].map(|(name, value): (_, u64)| (name.to_owned(), value.into()));
        Case { size: 500, context: context.into(), seed: 7, ring: 2, distribution: "clustered".into() }
    }

    fn platform() -> Platform {
        Platform::cpu(Level::detect(), 2)
    }

    #[test]
    fn every_variant_and_row_agrees_with_equal_checksums() {
        let mut prepared = prepare(&case(), &platform()).unwrap();
        for input in 0..2 {
            let mut checksums = Vec::new();
            for variant in prepared.variants() {
                for row in [Row::Resident, Row::OneShot] {
                    prepared.run(variant, row, input).unwrap();
                    let agreement = prepared.check(variant, row, input).unwrap();
                    assert_eq!((agreement.compared, agreement.exact, agreement.tolerance), (36, 36, 0.0));
                    checksums.push(agreement.checksum);
                }
            }
            assert_eq!(checksums.len(), 4);
            checksums.dedup();
            assert_eq!(checksums.len(), 1, "{checksums:?}");
        }
    }

    #[cfg(feature = "gpu")]
    #[test]
    fn the_device_agrees_with_the_same_checksum_and_runs_every_row() {
        let Some(device) = crate::device::tests::device("case", crate::device::Options::default()) else { return };
        let mut prepared = prepare(&case(), &Platform { device: Some(device), ..platform() }).unwrap();
        assert!(prepared.variants().contains(&Variant::Gpu));
        let cpu = prepared.variants()[0];
        for input in [0, 1, 0] {
            prepared.run(cpu, Row::Resident, input).unwrap();
            let expected = prepared.check(cpu, Row::Resident, input).unwrap();
            for row in Row::ALL {
                prepared.run(Variant::Gpu, row, input).unwrap();
                if matches!(row, Row::Resident | Row::OneShot | Row::E2eFresh) {
                    assert_eq!(prepared.check(Variant::Gpu, row, input).unwrap(), expected);
                }
            }
        }
        let (resident, one_shot) = (prepared.work(Row::Resident), prepared.work(Row::OneShot));
        assert_eq!(one_shot.bytes_up - resident.bytes_up, 500 * (20 * 4 + 16));
    }

    #[cfg(feature = "gpu")]
    #[test]
    fn a_fresh_call_allocates_its_buffers_every_time_and_a_resident_one_none() {
        let Some(device) = crate::device::tests::device("fresh", crate::device::Options::default()) else { return };
        let platform = Platform { device: Some(std::sync::Arc::clone(&device)), ..platform() };
        let mut prepared = prepare(&case(), &platform).unwrap();
        let mut allocated = |row| {
            let before = device.allocations();
            prepared.run(Variant::Gpu, row, 0).unwrap();
            device.allocations() - before
        };
        // The first calls fill the staging memory, which the device keeps.
        for _ in 0..4 {
            allocated(Row::Resident);
        }
        assert_eq!(allocated(Row::Resident), 0);
        // Queries, their terms, state, candidates, results, and the parameters of the two kernels.
        for _ in 0..3 {
            assert!(allocated(Row::E2eFresh) >= 7);
        }
        assert_eq!(allocated(Row::Resident), 0);
    }

    #[test]
    fn a_result_that_was_not_computed_is_no_agreement() {
        let mut prepared = prepare(&case(), &platform()).unwrap();
        let variant = prepared.variants()[0];
        prepared.run(variant, Row::Resident, 0).unwrap();
        assert!(prepared.check(variant, Row::Resident, 1).is_err());
        assert!(prepared.check(variant, Row::OneShot, 0).is_err());
    }

    #[test]
    fn a_wrong_row_is_named() {
        let right = [(4, 1.0f32.to_bits()), (9, 0.5f32.to_bits())];
        let wrong = [(4, 1.0f32.to_bits()), (8, 0.5f32.to_bits())];
        let message = |found: &[(u32, u32)]| compare(3, &right, found).unwrap_err().to_string();
        assert_eq!(message(&wrong), "query 3, rank 1: expected row 9, score 0.5, found row 8, score 0.5");
        assert_eq!(message(&right[..1]), "query 3, rank 1: expected row 9, score 0.5, found nothing");
    }

    #[test]
    fn sizes_that_make_no_sense_are_refused() {
        let mut zero = case();
        zero.context.insert("k".into(), 0.into());
        assert_eq!(footprint(&zero).unwrap_err().to_string(), "k: expected at least 1, found 0");
        let mut real = case();
        real.distribution = "no such".into();
        assert!(prepare(&real, &platform()).is_err());
    }
}
