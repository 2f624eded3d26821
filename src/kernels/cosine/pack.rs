//! Queries packed for the tiles.

use super::bounds::{QueryKind, QueryTerms};
use crate::data::Matrix;

/// Queries as \[panel\]\[k\]\[lane\], zero-padded, every vector aligned to a cache line.
pub(super) struct Panels {
    values: Vec<f32>,
    start: usize,
    dim: usize,
    /// Lanes of a panel: one vector, two, or a single query.
    pub(super) width: usize,
    pub(super) count: usize,
    /// |q| of each lane.
    pub(super) norms: Vec<f32>,
}

impl Panels {
    /// Panels of two vectors of `lanes`; of one vector where that holds all queries; and the query itself if it is alone.
    pub(super) fn new(queries: &Matrix, terms: &[QueryTerms], lanes: usize) -> Self {
        let width = match queries.rows() {
            1 => 1,
            few if few <= lanes => lanes,
            _ => 2 * lanes,
        };
        let (dim, count) = (queries.cols(), queries.rows().div_ceil(width));
        let mut values = vec![0.0f32; count * width * dim + 16];
        let start = values.as_ptr().align_offset(64).min(16);
        let mut norms = vec![0.0; count * width];
        for (query, terms) in terms.iter().enumerate().filter(|(_, terms)| terms.kind == QueryKind::Usual) {
            norms[query] = terms.norm;
            let panel = &mut values[start + query / width * width * dim..][..width * dim];
            for (packed, &value) in panel[query % width..].iter_mut().step_by(width).zip(queries.row(query)) {
                *packed = value * terms.factor;
            }
        }
        Self { values, start, dim, width, count, norms }
    }

    /// Number of lanes, padding included.
    pub(super) fn lanes(&self) -> usize {
        self.count * self.width
    }

    pub(super) fn panel(&self, panel: usize) -> &[f32] {
        &self.values[self.start + panel * self.width * self.dim..][..self.width * self.dim]
    }
}
