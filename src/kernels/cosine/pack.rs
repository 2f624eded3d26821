//! Queries packed for the tiles.

use super::bounds::{QueryKind, QueryTerms};
use crate::data::Matrix;

/// Queries as \[panel\]\[k\]\[lane\], zero-padded, every vector aligned to a cache line.
pub(super) struct Panels {
    values: Vec<f32>,
    start: usize,
    dim: usize,
    /// Lanes of a panel: whole vectors, or a single query.
    pub(super) width: usize,
    pub(super) count: usize,
    /// |q| of each lane.
    pub(super) norms: Vec<f32>,
    /// The query's part of the width of an interval.
    pub(super) slacks: Vec<f32>,
}

impl Panels {
    /// The width of panels of at most `most` vectors of `lanes`: the one with the least padding; 1 for a single query.
    pub(super) fn width(queries: usize, lanes: usize, most: usize) -> usize {
        let vectors = queries.div_ceil(lanes).max(1);
        match queries {
            1 => 1,
            _ if vectors <= most => lanes * vectors,
            _ => lanes * (2..=most).rev().min_by_key(|&width| vectors.next_multiple_of(width)).unwrap_or(1),
        }
    }

    pub(super) fn new(queries: &Matrix, terms: &[QueryTerms], width: usize) -> Self {
        let (dim, count) = (queries.cols(), queries.rows().div_ceil(width));
        let mut values = vec![0.0f32; count * width * dim + 16];
        let start = values.as_ptr().align_offset(64).min(16);
        let (mut norms, mut slacks) = (vec![0.0; count * width], vec![0.0; count * width]);
        for (query, terms) in terms.iter().enumerate().filter(|(_, terms)| terms.kind == QueryKind::Usual) {
            (norms[query], slacks[query]) = (terms.norm, terms.slack);
            let panel = &mut values[start + query / width * width * dim..][..width * dim];
            for (packed, &value) in panel[query % width..].iter_mut().step_by(width).zip(queries.row(query)) {
                *packed = value * terms.factor;
            }
        }
        Self { values, start, dim, width, count, norms, slacks }
    }

    /// Number of lanes, padding included.
    pub(super) fn lanes(&self) -> usize {
        self.count * self.width
    }

    pub(super) fn panel(&self, panel: usize) -> &[f32] {
        &self.values[self.start + panel * self.width * self.dim..][..self.width * self.dim]
    }
}
