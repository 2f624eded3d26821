//! Exact top-k by cosine, inner product or Euclidean distance.
//!
//! For a corpus X (rows x dim) and queries Q (queries x dim), the `k` best rows of each query:
//!
//! - cosine: q.x / (|q| |x|), in \[-1, 1\]; 0 where either norm is 0 (such rows are counted);
//! - dot: q.x;
//! - l2: |q - x|, the smaller the better.
//!
//! One total order on every device: better score first, then the lower row. So a result for k is a prefix of the
//! result for a larger k. Scores are *canonical*: a fast pass in f32 keeps every row that could belong to the answer
//! (its error is bounded, not guessed), then those rows are scored in f64 in one fixed order of summation. Output is
//! identical, byte for byte, on every SIMD level, number of threads, and device.
//!
//! NaN and infinities are refused with their row and column ([`Error::NotFinite`]).

mod bounds;
mod case;
#[cfg(feature = "cli")]
mod command;
mod exact;
#[cfg(feature = "gpu")]
mod gpu;
mod pack;
mod quantized;
mod rank;
pub mod reference;
mod select;
mod simd;
#[cfg(test)]
mod tests;
mod tile;

#[cfg(feature = "gpu")]
pub use gpu::{Storage, is_for_the_cpu, top_k_on_device};
pub use simd::top_k;

use super::{Axes, Axis, Case, Footprint, Kernel, Platform, Prepared};
use crate::data::{Matrix, Rows};
use crate::error::Error;

/// What makes a row near.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Metric {
    /// q.x / (|q| |x|), larger is nearer; 0 where a norm is 0.
    Cosine,
    /// q.x, larger is nearer.
    Dot,
    /// |q - x|, smaller is nearer.
    L2,
}

impl Metric {
    /// All metrics.
    pub const ALL: [Self; 3] = [Self::Cosine, Self::Dot, Self::L2];

    /// Name on the command line and of the score column.
    pub fn name(self) -> &'static str {
        match self {
            Self::Cosine => "cosine",
            Self::Dot => "dot",
            Self::L2 => "l2",
        }
    }
}

/// What to search for.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Search {
    /// Neighbours per query, at least 1; more than there are rows gives all rows.
    pub k: usize,
    /// What makes a row near.
    pub metric: Metric,
    /// Query `i` and row `i` are the same item: leave row `i` out of the answer to query `i`.
    pub exclude_self: bool,
    /// Leave rows and queries with NaN or infinity out and count them, instead of refusing them.
    pub skip_bad: bool,
}

impl Search {
    /// The `k` nearest rows by this metric, with nothing left out.
    pub fn new(k: usize, metric: Metric) -> Self {
        Self { k, metric, exclude_self: false, skip_bad: false }
    }

    /// How many rows a fast pass has to find for each query: one more where the query's own row will be left out.
    pub(crate) fn candidates(&self, rows: usize) -> usize {
        (self.k.saturating_add(usize::from(self.exclude_self))).min(rows)
    }

    /// Whether this can be searched for at all; called once by every public function.
    pub(crate) fn check(&self, queries: &Matrix, corpus: &dyn Rows) -> Result<(), Error> {
        if self.k == 0 {
            return Err(Error::argument("k", "at least 1", 0));
        }
        if corpus.cols() == 0 || corpus.rows() == 0 {
            let found = format!("{} rows of {}", corpus.rows(), corpus.cols());
            return Err(Error::argument(corpus.name(), "at least one row of one column", found));
        }
        if queries.cols() != corpus.cols() {
            let (expected, found) = (corpus.cols(), queries.cols());
            return Err(Error::Shape { what: "queries: columns (the corpus has as many)".into(), expected, found });
        }
        for (what, rows) in [("queries: rows", queries.rows()), ("corpus: rows", corpus.rows())] {
            let (requested, max) = (rows as u64, u64::from(u32::MAX));
            if requested > max {
                return Err(Error::Limit { what: what.into(), requested, max });
            }
        }
        Ok(())
    }
}

/// The answer: for each query its nearest rows, best first, equal scores by lower row.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Neighbors {
    /// Where each query's list begins in `rows` and `scores`; one more entry than queries.
    pub offsets: Vec<usize>,
    /// Row numbers in the corpus.
    pub rows: Vec<u32>,
    /// Canonical scores: cosine or dot product, or the distance for L2; f64 rounded to f32.
    pub scores: Vec<f32>,
    /// Rows of the corpus whose norm is 0 (their cosine is 0 by definition).
    pub zero_rows: u64,
    /// Rows of the corpus left out for NaN or infinity (only with `skip_bad`).
    pub bad_rows: u64,
    /// Queries left without an answer for NaN or infinity (only with `skip_bad`).
    pub bad_queries: u64,
}

impl Neighbors {
    /// Number of queries.
    pub fn queries(&self) -> usize {
        self.offsets.len().saturating_sub(1)
    }

    /// Rows and scores of one query.
    pub fn query(&self, query: usize) -> (&[u32], &[f32]) {
        let range = self.offsets[query]..self.offsets[query + 1];
        (&self.rows[range.clone()], &self.scores[range])
    }
}

/// The registered kernel.
pub struct Cosine;

impl Kernel for Cosine {
    fn id(&self) -> &'static str {
        "cosine"
    }

    fn title(&self) -> &'static str {
        "Tiled cosine + top-k"
    }

    fn summary(&self) -> &'static str {
        "exact k best rows for each query; cosine, dot or L2"
    }

    fn axes(&self) -> Axes {
        const CONTEXT: &[Axis] = &[Axis::number("dim"), Axis::number("k"), Axis::number("queries")];
        Axes { size: "rows", context: CONTEXT }
    }

    fn distributions(&self) -> &'static [&'static str] {
        case::DISTRIBUTIONS
    }

    fn footprint(&self, case: &Case) -> Result<Footprint, Error> {
        case::footprint(case)
    }

    fn prepare(&self, case: &Case, platform: &Platform) -> Result<Box<dyn Prepared>, Error> {
        case::prepare(case, platform)
    }

    fn protocol(&self) -> &'static str {
        include_str!("../../../protocols/cosine.toml")
    }

    fn check_cases(&self) -> Vec<Case> {
        case::check_cases()
    }

    fn input_sources(&self) -> &'static [(&'static str, &'static str)] {
        &[("generate.rs", include_str!("../../data/generate.rs"))]
    }

    fn gpu_sources(&self) -> &'static [(&'static str, &'static str)] {
        case::GPU_SOURCES
    }

    fn cpu_sources(&self) -> &'static [(&'static str, &'static str)] {
        case::CPU_SOURCES
    }

    #[cfg(feature = "gpu")]
    fn shaders(&self) -> Vec<crate::device::Shader> {
        gpu::shaders()
    }

    #[cfg(feature = "cli")]
    fn command(&self) -> clap::Command {
        command::command()
    }

    #[cfg(feature = "cli")]
    fn run_command(&self, arguments: &clap::ArgMatches, io: &mut crate::cli::Io) -> anyhow::Result<()> {
        command::run(arguments, io)
    }
}
