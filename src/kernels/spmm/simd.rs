//! The CPU path: which way the columns of B are walked, and who does what.
//!
//! A product of random sparsity waits for rows of B. Two ways to wait less, chosen by the shapes ([`Strategy::choose`]);
//! both add in the same order, so they give the same bits:
//!
//! - *tiles*: as many columns of a row of C as fit into registers, then the next ones of the same row;
//! - *panels*: where rows of B are used often, some of its columns are packed together so that they stay in the
//!   second-level cache, then all rows of A pass by.
//!
//! A result larger than the second-level cache is stored past the caches, which saves reading it first.

use super::panel::{self, PANEL_BYTES, Panel};
use super::plan::{Plan, Task};
use super::tile::{self, Columns, Entries, MOST_VECTORS, Sums};
use super::together::Together;
use super::{Value, check_shapes};
use crate::data::{Csr, Matrix};
use crate::error::Error;
use crate::kernels::Platform;
use crate::kernels::parallel::share;
use crate::simd::{LINE, Level, Simd, SimdBase, memory, simd};
use std::ops::Range;
use std::sync::{Mutex, PoisonError};

/// How the columns of B are walked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Walk {
    /// About `bytes` of a row of C at a time, all tiles of a row before the next row: a row of A is in the first-level
    /// cache when the next tile needs it, and so are the lines of B that the processor fetched beside those it was asked
    /// for. Rows of B are asked for `ahead` groups of entries early; 0 is not at all.
    Tiles { bytes: usize, ahead: usize },
    /// Some columns of every row of B packed together, then all rows of A.
    Panels,
}

/// What is chosen for a product.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Strategy {
    pub(super) walk: Walk,
    /// Whether C is stored past the caches.
    pub(super) streamed: bool,
    /// How many threads are worth waking.
    pub(super) threads: usize,
}

/// What a core's second-level cache holds, at least on the servers that such products run on. Only speed depends on it.
const SECOND_LEVEL: usize = 2 << 20;
/// Entries times cache lines of a row of B, below which waking another thread costs more than it saves.
const WORTH_A_THREAD: usize = 40_000;

impl Strategy {
    /// By what was measured; see docs/decisions/0008.
    fn choose<T: Value>(a: &Csr<T>, plan: &Plan, width: usize, threads: usize) -> Self {
        let row_bytes = width * size_of::<T>();
        let uses = a.entries() / a.cols().max(1);
        let fits = a.cols().saturating_mul(LINE) <= SECOND_LEVEL * 2 / 3;
        let walk = if uses >= 32 && fits && row_bytes >= 4 * PANEL_BYTES {
            Walk::Panels
        } else {
            // The processor runs far enough ahead to gather whole lines on its own, and rows of few; long rows that begin
            // anywhere in a line take one more, and there it needs help.
            let alone = row_bytes < 4 * LINE || row_bytes.is_multiple_of(LINE) || plan.sharing(a) >= 1.5;
            Walk::Tiles { bytes: 512, ahead: if alone { 0 } else { 2 } }
        };
        let streamed = a.rows() * row_bytes > SECOND_LEVEL && row_bytes.is_multiple_of(LINE);
        let work = (a.entries() + a.rows()).saturating_mul(row_bytes.div_ceil(LINE));
        Self { walk, streamed, threads: threads.min(work / WORTH_A_THREAD).max(1) }
    }
}

/// A B, on the platform's CPU.
///
/// Cost: 2 entries x width operations; reads A once and, for each entry, a row of B; writes C once.
///
/// # Errors
/// [`Error::Shape`] when B has not as many rows as A has columns, [`Error::Limit`] when there is no memory for C.
pub fn multiply<T: Value>(a: &Csr<T>, b: &Matrix<T>, platform: &Platform) -> Result<Matrix<T>, Error> {
    let mut c = Matrix::zeroed(a.rows(), b.cols())?;
    multiply_into(a, b, &mut c, platform)?;
    Ok(c)
}

/// As [`multiply`], into memory that is there already.
///
/// # Errors
/// [`Error::Shape`] when the three shapes do not fit.
pub fn multiply_into<T: Value>(a: &Csr<T>, b: &Matrix<T>, c: &mut Matrix<T>, platform: &Platform) -> Result<(), Error> {
    let plan = Plan::new(a, platform.threads);
    multiply_planned(a, &plan, b, c, platform.level, platform.threads)
}

/// As [`multiply_into`], with the plan made before.
pub(super) fn multiply_planned<T: Value>(
    a: &Csr<T>,
    plan: &Plan,
    b: &Matrix<T>,
    c: &mut Matrix<T>,
    level: Level,
    threads: usize,
) -> Result<(), Error> {
    check_shapes(a, b, c)?;
    let strategy = Strategy::choose(a, plan, b.cols(), threads);
    run(a, plan, b, c, level, strategy)
}

/// A part of C that one task writes.
type Part<'a, T> = Mutex<&'a mut [T]>;

/// What a thread keeps between tasks.
struct Scratch<'a> {
    panel: Option<Panel>,
    /// Which columns it holds.
    packed: Option<usize>,
    /// Where it goes when the thread has nothing left to do.
    pool: &'a Mutex<Vec<Panel>>,
}

impl Drop for Scratch<'_> {
    fn drop(&mut self) {
        self.pool.lock().unwrap_or_else(PoisonError::into_inner).extend(self.panel.take());
    }
}

pub(super) fn run<T: Value>(
    a: &Csr<T>,
    plan: &Plan,
    b: &Matrix<T>,
    c: &mut Matrix<T>,
    level: Level,
    strategy: Strategy,
) -> Result<(), Error> {
    let width = b.cols();
    if a.rows() == 0 || width == 0 {
        return Ok(());
    }
    let mut pieces = vec![T::default(); plan.slots * width];
    {
        let parts = parts(plan, c.values_mut(), &mut pieces, width);
        let product = Product { a, b, plan, parts: &parts, width, strategy };
        let packed = strategy.walk == Walk::Panels;
        let tiles = if packed { (width * size_of::<T>()).div_ceil(PANEL_BYTES) } else { 1 };
        let tasks = plan.tasks.len();
        let threads = strategy.threads.min(tiles * tasks);
        let together = Together::new(threads, tiles * tasks);
        let start = || {
            together.count();
            let panel = packed.then(|| plan.panels.lock().unwrap_or_else(PoisonError::into_inner).pop());
            Scratch { panel: panel.flatten(), packed: None, pool: &plan.panels }
        };
        // The last task of a thread is to wait for the others.
        share(threads, tiles * tasks + threads, start, |scratch, task| {
            if task >= tiles * tasks {
                together.wait();
                return Ok(());
            }
            if packed && scratch.panel.is_none() {
                scratch.panel = Some(Panel::new(a.cols())?);
            }
            crate::dispatch!(level, simd => product.task(simd, scratch, task / tasks, task % tasks));
            memory::fence();
            together.count();
            Ok::<_, Error>(())
        })?;
    }
    for long in &plan.long {
        let sums = &mut c.values_mut()[long.row * width..][..width];
        sums.fill(T::default());
        for slot in long.slots.clone() {
            sums.iter_mut().zip(&pieces[slot * width..][..width]).for_each(|(sum, &piece)| *sum += piece);
        }
    }
    Ok(())
}

/// The memory that each task writes: rows of C, or the sums of a piece.
fn parts<'a, T: Value>(plan: &Plan, mut c: &'a mut [T], mut pieces: &'a mut [T], width: usize) -> Vec<Part<'a, T>> {
    let mut done = 0;
    let mut parts = Vec::with_capacity(plan.tasks.len());
    for task in &plan.tasks {
        let part = match task {
            Task::Rows(rows) => {
                // Rows between the last task and this one are long: they are summed from pieces.
                let (_, rest) = std::mem::take(&mut c).split_at_mut((rows.start - done) * width);
                let (part, rest) = rest.split_at_mut(rows.len() * width);
                (c, done) = (rest, rows.end);
                part
            }
            Task::Piece { .. } => {
                let (part, rest) = std::mem::take(&mut pieces).split_at_mut(width);
                pieces = rest;
                part
            }
        };
        parts.push(Mutex::new(part));
    }
    parts
}

struct Product<'a, 'b, T: Value> {
    a: &'a Csr<T>,
    b: &'a Matrix<T>,
    plan: &'a Plan,
    parts: &'a [Part<'b, T>],
    width: usize,
    strategy: Strategy,
}

impl<T: Value> Product<'_, '_, T> {
    #[simd]
    fn task<S: Simd>(&self, simd: S, scratch: &mut Scratch<'_>, tile: usize, task: usize) {
        let (indptr, streamed): (&[usize], bool) = match &self.plan.tasks[task] {
            Task::Rows(rows) => (&self.a.indptr()[rows.start..=rows.end], self.strategy.streamed),
            Task::Piece { entries, .. } => (&[entries.start, entries.end], false),
        };
        let a = Entries { indptr, indices: self.a.indices(), values: self.a.values() };
        let mut part = self.parts[task].lock().unwrap_or_else(PoisonError::into_inner);
        let whole = Columns { values: self.b.values(), stride: self.width, column: 0, width: self.width };
        match self.strategy.walk {
            Walk::Tiles { .. } if self.width <= 2 * T::Native::<S>::LEN + 1 => {
                let sums = Sums { values: &mut part, stride: self.width, column: 0, streamed };
                tile::add_narrow(simd, a, whole, sums);
            }
            Walk::Tiles { bytes, ahead } => {
                let tiles = || cut(self.width, bytes / size_of::<T>(), T::Native::<S>::LEN);
                // With one tile there is no next one to wait for a row.
                let rows_at_once = if tiles().count() == 1 { indptr.len() - 1 } else { 1 };
                for (at, sums_of_rows) in part.chunks_mut(rows_at_once * self.width).enumerate() {
                    let first = at * rows_at_once;
                    let a = Entries { indptr: &indptr[first..=first + rows_at_once], ..a };
                    for columns in tiles() {
                        let (column, width) = (columns.start, columns.len());
                        let sums = Sums { values: &mut *sums_of_rows, stride: self.width, column, streamed };
                        tile::add(simd, a, Columns { column, width, ..whole }.rows(), width, ahead, sums);
                    }
                }
            }
            Walk::Panels => {
                let most = PANEL_BYTES / size_of::<T>();
                let column = tile * most;
                let width = most.min(self.width - column);
                let Some(panel) = &mut scratch.panel else { return };
                if scratch.packed != Some(tile) {
                    panel::pack(simd, Columns { column, width, ..whole }, panel.values());
                    scratch.packed = Some(tile);
                }
                let sums = Sums { values: &mut part, stride: self.width, column, streamed };
                panel::add(simd, a, panel.values(), width, sums);
            }
        }
    }
}

/// `width` columns in runs of about `wanted`, none longer than a tile can be, none shorter than a vector.
fn cut(width: usize, wanted: usize, lanes: usize) -> impl Iterator<Item = Range<usize>> {
    let most = MOST_VECTORS * lanes;
    let wanted = wanted.clamp(lanes, most);
    // Rounded: a few columns more are cheaper than another pass over A.
    let runs = ((width + wanted / 2) / wanted).max(width.div_ceil(most)).max(1);
    let length = width.div_ceil(runs).next_multiple_of(lanes).min(most);
    (0..width).step_by(length).map(move |first| {
        let end = width.min(first + length);
        // The last run may begin early, inside the one before.
        end.saturating_sub(lanes).min(first)..end
    })
}
