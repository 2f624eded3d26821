//! The GPU arm: threshold filter and append in the epilogue of a tiled product, so that queries x rows are never written.
//!
//! ```text
//! sample of rows:  score against every query, merge: a first threshold T_q, candidates forgotten
//! for range of rows, each longer than the last
//!   score          append every row whose upper bound reaches T_q (a proven superset of the answer)
//!   merge          T_q = k-th largest lower bound; drop candidates whose upper bound is below it
//! read back        k + margin row numbers per query
//! rank             on the CPU, in f64: the same bytes as every other path
//! ```
//!
//! All of it is one submission; nothing is read back in between. The corpus lies in segments of at most one binding; a
//! corpus larger than the device's memory is streamed through two of them. A query whose candidates overflow (a corpus
//! full of duplicates, say) is searched again in pieces that cannot overflow. k is at most 2,048.
//!
//! Counted against an adapter with F flop/s, B bytes/s of memory and P bytes/s of upload, N rows, d columns, Q queries,
//! f32 (f16 halves the reads and the corpus upload):
//!
//! - resident call: up 4 Q d bytes, down about 4 Q (1.25 k + 1) bytes; scores 2 N Q d / F or 4 N d / B seconds,
//!   whichever is longer. They meet at Q = 2 F / B (40 on a card of 40 Tflop/s and 2 TB/s); below, a call costs one read
//!   of the corpus, above, its arithmetic.
//! - tile of 128 x 128: 32 operations a byte of global memory, 8 KiB of rows and 8 KiB of queries staged, 64 accumulators
//!   an invocation; merges add about 30 bytes per candidate, a few k per query.
//! - one-shot call: 4 N d / P more, which for N = 1,000,000, d = 384 over 25 GB/s is 61 ms against 19 ms of arithmetic
//!   for Q = 1,000: the upload decides. The host side of it is one thread's copy.
//!
//! # Precision
//! WGSL lets every operation round either way and lets subnormals be flushed: the bounds allow for both
//! ([`Bounds::for_device`](super::bounds::Bounds::for_device)). NaN and infinities never reach the device.

mod engine;
mod schedule;
mod segments;
#[cfg(test)]
mod tests;

pub use segments::Storage;

use super::bounds::{QueryKind, QueryTerms};
use super::rank::rank;
use super::{Metric, Neighbors, Search};
use crate::data::{Matrix, Rows};
use crate::device::{Device, Shader, params};
use crate::error::{DeviceError, Error};
use crate::kernels::Platform;
use crate::simd::Level;
use engine::{Batch, CROWDED_BATCH, Crowd, Engine, Found, RowCheck};
use schedule::{MAX_K, Shape};
use segments::{Filler, Layout, Leftover, Segment};
use std::sync::Arc;

params! {
    /// See `offer.wgsl`.
    struct Score {
        first: u32,
        stride: u32,
        count: u32,
        base: u32,
        queries: u32,
        quads: u32,
        cap: u32,
        tiles_x: u32,
    }
}

params! {
    /// See `merge.wgsl`.
    struct Merge {
        queries: u32,
        k: u32,
        cap: u32,
        mode: u32,
        room: u32,
    }
}

/// Text of the shaders and of the host path, for the hash of the GPU arm.
pub(super) const SOURCES: &[(&str, &str)] = &[
    ("bounds.rs", include_str!("bounds.rs")),
    ("exact.rs", include_str!("exact.rs")),
    ("rank.rs", include_str!("rank.rs")),
    ("../../device/buffer.rs", include_str!("../../device/buffer.rs")),
    ("../../device/shader.rs", include_str!("../../device/shader.rs")),
    ("../../device/submit.rs", include_str!("../../device/submit.rs")),
    ("../../device/transfer.rs", include_str!("../../device/transfer.rs")),
    ("gpu.rs", include_str!("gpu.rs")),
    ("gpu/engine.rs", include_str!("gpu/engine.rs")),
    ("gpu/schedule.rs", include_str!("gpu/schedule.rs")),
    ("gpu/segments.rs", include_str!("gpu/segments.rs")),
    ("gpu/merge.wgsl", MERGE),
    ("gpu/offer.wgsl", OFFER),
    ("gpu/rows_f16.wgsl", ROWS_F16),
    ("gpu/rows_f32.wgsl", ROWS_F32),
    ("gpu/score_narrow.wgsl", SCORE_NARROW),
    ("gpu/score_tile.wgsl", SCORE_TILE),
];

const MERGE: &str = include_str!("gpu/merge.wgsl");
const OFFER: &str = include_str!("gpu/offer.wgsl");
const ROWS_F16: &str = include_str!("gpu/rows_f16.wgsl");
const ROWS_F32: &str = include_str!("gpu/rows_f32.wgsl");
const SCORE_NARROW: &str = include_str!("gpu/score_narrow.wgsl");
const SCORE_TILE: &str = include_str!("gpu/score_tile.wgsl");

/// Every shader of this kernel, in every shape that is used.
pub(super) fn shaders() -> Vec<Shader> {
    let mut all = vec![merge_shader()];
    for storage in [Storage::F32, Storage::F16] {
        all.extend(Shape::ALL.map(|shape| score_shader(shape, storage)));
    }
    all
}

fn score_shader(shape: Shape, storage: Storage) -> Shader {
    let rows = match storage {
        Storage::F32 => ROWS_F32,
        Storage::F16 => ROWS_F16,
    };
    let shader = match (shape, storage) {
        (Shape::Narrow { queries }, Storage::F32) => {
            Shader::new("cosine narrow f32", &[rows, OFFER, SCORE_NARROW], "score_narrow").set("QUERIES", queries)
        }
        (Shape::Narrow { queries }, Storage::F16) => {
            Shader::new("cosine narrow f16", &[rows, OFFER, SCORE_NARROW], "score_narrow").set("QUERIES", queries)
        }
        (Shape::Tile { x, y, slab }, storage) => {
            let name = if storage == Storage::F32 { "cosine tile f32" } else { "cosine tile f16" };
            let shader = Shader::new(name, &[rows, OFFER, SCORE_TILE], "score_tile");
            shader.set("WX", x).set("WY", y).set("SLAB", slab)
        }
    };
    shader.with_params(Score::LAYOUT)
}

fn merge_shader() -> Shader {
    Shader::new("cosine merge", &[MERGE], "merge").with_params(Merge::LAYOUT)
}

/// Whether an error of [`top_k_on_device`] only says that this search is none for this device, so that the CPU path
/// should take it: beyond a limit, or out of device memory. Anything else is a failure to be reported.
pub fn is_for_the_cpu(error: &Error) -> bool {
    matches!(error, Error::Limit { .. } | Error::Device(DeviceError::Limit { .. } | DeviceError::OutOfMemory { .. }))
}

/// A search that the device could do, and the CPU does better.
fn too_unusual(what: &str, requested: usize, max: usize) -> Error {
    Error::Limit { what: format!("{what} on the device"), requested: requested as u64, max: max as u64 }
}

/// Where and how a corpus is searched on a device.
#[derive(Clone)]
pub(super) struct Settings {
    pub(super) device: Arc<Device>,
    pub(super) storage: Storage,
    /// SIMD level of the norms and of the final ranking.
    pub(super) level: Level,
    /// Threads of the final ranking.
    pub(super) threads: usize,
}

/// A corpus in device memory.
pub(super) struct GpuCorpus {
    settings: Settings,
    layout: Layout,
    rows: usize,
    skip_bad: bool,
    segments: Vec<Segment>,
    leftover: Leftover,
    engine: Option<Engine>,
}

impl GpuCorpus {
    /// Allocates and uploads. `search` gives the metric and what to do with rows that are not finite.
    ///
    /// # Errors
    /// [`Error::NotFinite`]; [`Error::Device`] with `OutOfMemory` for a corpus beyond the device's memory; see
    /// [`is_for_the_cpu`].
    pub(super) fn upload(settings: &Settings, corpus: &dyn Rows, search: &Search) -> Result<Self, Error> {
        let device = &settings.device;
        let layout = Layout::new(device, corpus.cols(), search.metric, settings.storage)?;
        let mut segments = Vec::new();
        let mut first = 0;
        while first < corpus.rows() {
            let rows = layout.rows.min(corpus.rows() - first);
            segments.push(layout.allocate(device, rows)?);
            first += rows;
        }
        let mut uploaded = Self {
            settings: settings.clone(),
            layout,
            rows: corpus.rows(),
            skip_bad: search.skip_bad,
            segments,
            leftover: Leftover::default(),
            engine: None,
        };
        uploaded.refill(corpus)?;
        Ok(uploaded)
    }

    /// Uploads a corpus of the same shape into the same memory.
    ///
    /// # Errors
    /// As [`upload`](Self::upload); [`Error::Shape`] for another shape.
    pub(super) fn refill(&mut self, corpus: &dyn Rows) -> Result<(), Error> {
        for (what, expected, found) in [
            ("corpus on the device: rows", self.rows, corpus.rows()),
            ("corpus on the device: columns", self.layout.dim, corpus.cols()),
        ] {
            if expected != found {
                return Err(Error::Shape { what: what.into(), expected, found });
            }
        }
        let Settings { device, level, .. } = &self.settings;
        let filler = Filler { device, layout: self.layout, level: *level, skip_bad: self.skip_bad };
        let mut leftover = Leftover::default();
        let mut first = 0;
        for segment in &mut self.segments {
            let rows = self.layout.rows.min(self.rows - first);
            filler.fill(segment, corpus, first, rows, &mut leftover)?;
            first += rows;
        }
        self.leftover = leftover;
        Ok(())
    }

    /// Bytes that go up for the corpus.
    pub(super) fn corpus_bytes(&self) -> u64 {
        self.layout.bytes(self.rows)
    }

    /// Bytes that go up, and come down, for a call.
    pub(super) fn call_bytes(&self, queries: usize, search: &Search) -> (u64, u64) {
        let up = queries as u64 * (self.layout.quads as u64 * 16 + 8);
        (up, Engine::found_bytes(search.candidates(self.rows), queries))
    }

    /// The answer, the same bytes as from the CPU. `corpus` is what was uploaded: the final scores are taken from it.
    ///
    /// # Errors
    /// As [`candidates`](Self::candidates).
    pub(super) fn top_k(&mut self, queries: &Matrix, corpus: &dyn Rows, search: &Search) -> Result<Neighbors, Error> {
        let plan = QueryPlan::new(queries, self.layout, search, self.settings.level)?;
        let found = self.candidates_of(&plan, queries, corpus, search)?;
        finish(&plan, found, &self.leftover, queries, corpus, search, &self.settings)
    }

    fn candidates_of(
        &mut self,
        plan: &QueryPlan,
        queries: &Matrix,
        corpus: &dyn Rows,
        search: &Search,
    ) -> Result<Vec<(usize, Vec<u32>)>, Error> {
        search.check(queries, corpus)?;
        if (corpus.rows(), search.metric) != (self.rows, self.layout.metric) {
            let (expected, found) = (self.rows, corpus.rows());
            return Err(Error::Shape { what: "corpus on the device: rows (or its metric)".into(), expected, found });
        }
        let k = search.candidates(self.rows);
        let rows = row_check(self.rows, &self.leftover, k);
        let size = Engine::batch_size(&self.settings.device, k);
        let mut lists = Vec::new();
        for numbers in plan.active.chunks(size) {
            let batch = plan.batch(queries, numbers, self.layout);
            let found = {
                self.ready(k, numbers.len())?;
                let Some(engine) = &mut self.engine else { break };
                engine.resident(&self.segments, &batch, rows)?
            };
            let Some(engine) = &self.engine else { break };
            let crowded = take(found, &batch, &mut lists);
            for positions in crowded.chunks(CROWDED_BATCH.min(size)) {
                let part = batch.subset(positions, self.layout.quads);
                let mut crowds = crowds(&part, queries, corpus, search, self.settings.level);
                for (number, segment) in self.segments.iter().enumerate() {
                    engine.crowded(segment, &part, number == 0, &mut crowds)?;
                }
                lists.extend(part.numbers.iter().copied().zip(crowds.into_iter().map(Crowd::into_rows)));
            }
        }
        Ok(lists)
    }

    /// Makes the engine for this `k` and number of queries, unless the one there is fits.
    fn ready(&mut self, k: usize, queries: usize) -> Result<(), Error> {
        check_k(k)?;
        if self.engine.as_ref().is_none_or(|engine| !engine.fits(k, queries)) {
            // The old one's memory first.
            self.engine = None;
            self.engine = Some(Engine::new(&self.settings.device, self.layout, k, queries)?);
        }
        Ok(())
    }

    /// Gives up the buffers and bind groups of a call: the next one allocates its own. Corpus and pipelines stay.
    pub(super) fn forget_call(&mut self) {
        self.engine = None;
    }

    /// The queries up, and nothing else; they are what [`kernel_only`](Self::kernel_only) then searches for.
    ///
    /// # Errors
    /// [`Error::Limit`] for more queries than one batch, or an unusual one.
    pub(super) fn upload_queries(&mut self, queries: &Matrix, search: &Search) -> Result<(), Error> {
        let k = search.candidates(self.rows);
        let plan = QueryPlan::new(queries, self.layout, search, self.settings.level)?;
        let size = Engine::batch_size(&self.settings.device, k);
        if plan.active.len() != queries.rows() || queries.rows() > size {
            return Err(too_unusual("queries in one batch", queries.rows(), size.min(plan.active.len())));
        }
        let batch = plan.batch(queries, &plan.active, self.layout);
        self.ready(k, queries.rows())?;
        let Some(engine) = &mut self.engine else { return Ok(()) };
        engine.prepare_resident(&self.segments, queries.rows())?;
        engine.upload_queries(&batch)
    }

    /// The kernel alone on the uploaded queries, dispatch to completion; the device's own nanoseconds where its
    /// timestamps hold.
    ///
    /// # Errors
    /// What the device reports.
    pub(super) fn kernel_only(&self) -> Result<Option<u64>, Error> {
        self.engine.as_ref().map_or(Ok(None), Engine::kernel_only)
    }

    /// An empty submission and its wait.
    ///
    /// # Errors
    /// What the device reports.
    pub(super) fn floor(&self) -> Result<(), Error> {
        Ok(self.settings.device.floor()?)
    }

    /// The results down, and nothing else.
    ///
    /// # Errors
    /// What the device reports.
    pub(super) fn download_found(&self, queries: usize) -> Result<(), Error> {
        self.engine.as_ref().map_or(Ok(()), |engine| engine.download_found(queries))
    }
}

/// [`top_k`](super::top_k) on the platform's device, the same bytes whatever the storage. A corpus larger than the device's memory is
/// streamed.
///
/// # Errors
/// As [`top_k`](super::top_k); [`DeviceError`]. Where [`is_for_the_cpu`] holds, the CPU path can do what the device
/// cannot: k above 2,048, values beyond f32 arithmetic, rows too wide.
pub fn top_k_on_device(
    queries: &Matrix,
    corpus: &dyn Rows,
    search: &Search,
    storage: Storage,
    platform: &Platform,
) -> Result<Neighbors, Error> {
    let Some(device) = &platform.device else {
        let (wanted, hint) = ("open".to_owned(), "the platform has no device".to_owned());
        return Err(DeviceError::NoAdapter { wanted, hint }.into());
    };
    let settings = Settings { device: Arc::clone(device), storage, level: platform.level, threads: platform.threads };
    top_k(queries, corpus, search, &settings)
}

/// The answer from a corpus that is not on the device: uploaded whole where it fits, else streamed through two segments.
///
/// # Errors
/// As the CPU path; [`is_for_the_cpu`] tells which errors mean that the CPU path should be taken.
pub(super) fn top_k(
    queries: &Matrix,
    corpus: &dyn Rows,
    search: &Search,
    settings: &Settings,
) -> Result<Neighbors, Error> {
    search.check(queries, corpus)?;
    check_k(search.candidates(corpus.rows()))?;
    match GpuCorpus::upload(settings, corpus, search) {
        Ok(mut uploaded) => uploaded.top_k(queries, corpus, search),
        Err(Error::Device(DeviceError::OutOfMemory { .. })) => stream(queries, corpus, search, settings),
        Err(error) => Err(error),
    }
}

/// Segments that a streamed corpus passes through: one is searched while the other is filled.
const STREAM_SEGMENTS: usize = 2;

fn stream(queries: &Matrix, corpus: &dyn Rows, search: &Search, settings: &Settings) -> Result<Neighbors, Error> {
    let Settings { device, level, .. } = settings;
    let mut layout = Layout::new(device, corpus.cols(), search.metric, settings.storage)?;
    // Two segments and the candidates share what a full binding each might not leave.
    let row_bytes = layout.bytes(1);
    layout.rows = layout.rows.min(usize::try_from((256 << 20) / row_bytes).unwrap_or(usize::MAX)).max(1);
    let plan = QueryPlan::new(queries, layout, search, *level)?;
    let filler = Filler { device, layout, level: *level, skip_bad: search.skip_bad };
    let mut pool = Vec::new();
    for _ in 0..STREAM_SEGMENTS {
        pool.push(layout.allocate(device, layout.rows.min(corpus.rows()))?);
    }
    let k = search.candidates(corpus.rows());
    let size = Engine::batch_size(device, k).min(plan.active.len()).max(1);
    let engine = Engine::new(device, layout, k, size)?;
    let mut leftover = Leftover::default();
    let mut lists = Vec::new();
    // At least once, so that the rows are looked at even where no query is usual.
    let batches: Vec<&[usize]> = if plan.active.is_empty() { vec![&[]] } else { plan.active.chunks(size).collect() };
    for numbers in batches {
        leftover = Leftover::default();
        let batch = plan.batch(queries, numbers, layout);
        for (turn, first) in (0..corpus.rows()).step_by(layout.rows).enumerate() {
            let segment = &mut pool[turn % STREAM_SEGMENTS];
            filler.fill(segment, corpus, first, layout.rows.min(corpus.rows() - first), &mut leftover)?;
            if !numbers.is_empty() {
                engine.part(segment, &batch, first as u64)?;
            }
        }
        if numbers.is_empty() {
            break;
        }
        let found = engine.parts_found(numbers.len(), row_check(corpus.rows(), &leftover, k))?;
        let crowded = take(found, &batch, &mut lists);
        for positions in crowded.chunks(CROWDED_BATCH.min(size)) {
            let part = batch.subset(positions, layout.quads);
            let mut crowds = crowds(&part, queries, corpus, search, *level);
            for (turn, first) in (0..corpus.rows()).step_by(layout.rows).enumerate() {
                let segment = &mut pool[turn % STREAM_SEGMENTS];
                let rows = layout.rows.min(corpus.rows() - first);
                filler.fill(segment, corpus, first, rows, &mut Leftover::default())?;
                engine.crowded(segment, &part, turn == 0, &mut crowds)?;
            }
            lists.extend(part.numbers.iter().copied().zip(crowds.into_iter().map(Crowd::into_rows)));
        }
    }
    finish(&plan, lists, &leftover, queries, corpus, search, settings)
}

fn check_k(k: usize) -> Result<(), Error> {
    if k <= MAX_K { Ok(()) } else { Err(too_unusual("k (one more with exclude_self)", k, MAX_K)) }
}

fn row_check(rows: usize, leftover: &Leftover, k: usize) -> RowCheck {
    RowCheck { rows, least: k.min(rows - leftover.exact.len() - leftover.bad.len()) }
}

/// Moves what was found into `lists`; the positions of the queries that overflowed.
fn take(found: Vec<Found>, batch: &Batch, lists: &mut Vec<(usize, Vec<u32>)>) -> Vec<usize> {
    let mut crowded = Vec::new();
    for (position, found) in found.into_iter().enumerate() {
        match found {
            Found::Rows(rows) => lists.push((batch.numbers[position], rows)),
            Found::Crowded => crowded.push(position),
        }
    }
    crowded
}

fn crowds<'a>(batch: &Batch, queries: &Matrix, corpus: &'a dyn Rows, search: &Search, level: Level) -> Vec<Crowd<'a>> {
    batch.numbers.iter().map(|&number| Crowd::new(queries, number, corpus, *search, level)).collect()
}

/// Which queries go to the device.
struct QueryPlan {
    terms: Vec<QueryTerms>,
    /// Those that the device searches for.
    active: Vec<usize>,
    /// Zeros under cosine or dot product: every row has score 0, the first rows are the answer.
    zero: Vec<usize>,
    bad: u64,
}

impl QueryPlan {
    fn new(queries: &Matrix, layout: Layout, search: &Search, level: Level) -> Result<Self, Error> {
        if queries.cols() != layout.dim {
            let (expected, found) = (layout.dim, queries.cols());
            return Err(Error::Shape { what: "queries: columns (the corpus has as many)".into(), expected, found });
        }
        let mut plan = Self { terms: Vec::with_capacity(queries.rows()), active: Vec::new(), zero: Vec::new(), bad: 0 };
        for row in 0..queries.rows() {
            let terms = QueryTerms::new(level, search.metric, queries.row(row));
            match terms.kind {
                QueryKind::Bad { column } if !search.skip_bad => {
                    let value = queries.row(row)[column];
                    return Err(Error::NotFinite { what: "queries".into(), row, column, value });
                }
                QueryKind::Bad { .. } => plan.bad += 1,
                QueryKind::Exact => return Err(too_unusual("queries beyond f32 arithmetic", 1, 0)),
                QueryKind::Usual if terms.norm == 0.0 && search.metric != Metric::L2 => plan.zero.push(row),
                QueryKind::Usual => plan.active.push(row),
            }
            plan.terms.push(terms);
        }
        Ok(plan)
    }

    fn batch(&self, queries: &Matrix, numbers: &[usize], layout: Layout) -> Batch {
        let mut values = vec![[0.0; 4]; numbers.len() * layout.quads];
        let rows = values.chunks_exact_mut(layout.quads.max(1));
        for (quads, &number) in rows.zip(numbers) {
            let factor = self.terms[number].factor;
            let padded = bytemuck::cast_slice_mut::<[f32; 4], f32>(quads);
            for (padded, &value) in padded.iter_mut().zip(queries.row(number)) {
                *padded = value * factor;
            }
        }
        let terms = numbers.iter().map(|&number| [self.terms[number].norm, self.terms[number].slack]).collect();
        Batch { numbers: numbers.to_vec(), values, terms }
    }
}

/// Candidates -> the answer.
fn finish(
    plan: &QueryPlan,
    found: Vec<(usize, Vec<u32>)>,
    leftover: &Leftover,
    queries: &Matrix,
    corpus: &dyn Rows,
    search: &Search,
    settings: &Settings,
) -> Result<Neighbors, Error> {
    let candidates = all_candidates(plan, found, leftover, queries.rows(), corpus.rows(), search);
    let mut neighbors = rank(queries, corpus, search, &candidates, settings.level, settings.threads)?;
    neighbors.zero_rows = leftover.zero_rows;
    neighbors.bad_rows = leftover.bad.len() as u64;
    neighbors.bad_queries = plan.bad;
    Ok(neighbors)
}

/// A list for every query: what the device found, the rows it could not judge, and the answers that need no search.
fn all_candidates(
    plan: &QueryPlan,
    found: Vec<(usize, Vec<u32>)>,
    leftover: &Leftover,
    queries: usize,
    rows: usize,
    search: &Search,
) -> Vec<Vec<u32>> {
    let mut candidates = vec![Vec::new(); queries];
    for (query, mut list) in found {
        list.extend(&leftover.exact);
        candidates[query] = list;
    }
    if !plan.zero.is_empty() {
        let finite = (0..rows).map(super::simd::as_row).filter(|row| leftover.bad.binary_search(row).is_err());
        let first: Vec<_> = finite.take(search.candidates(rows)).collect();
        plan.zero.iter().for_each(|&query| candidates[query].clone_from(&first));
    }
    candidates
}
