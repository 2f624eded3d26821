//! The corpus on the device: cut into segments of whole rows, each row padded to whole vec4s, with its four terms.

use super::super::Metric;
use super::super::bounds::{Bounds, RowTerms};
use super::super::simd::Unusual;
use super::super::tile::{self, Digest};
use super::too_unusual;
use crate::data::Rows;
use crate::device::{Device, DeviceBuffer};
use crate::error::{DeviceError, Error};
use crate::simd::Level;
use half::f16;
use half::slice::HalfFloatSliceExt;

/// How the corpus is stored on the device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Storage {
    /// 4 bytes an element.
    F32,
    /// 2 bytes an element: half the memory and half the upload. What rounding loses is added to each row's error, so the
    /// answer is the same; values that are not halves cost more candidates.
    F16,
}

impl Storage {
    /// Bytes of four elements.
    fn quad_bytes(self) -> u64 {
        match self {
            Self::F32 => 16,
            Self::F16 => 8,
        }
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::F32 => "f32",
            Self::F16 => "f16",
        }
    }
}

/// Rows copied at a time: the block stays in the cache between norms and copy.
const BLOCK_BYTES: usize = 1 << 20;

/// Rows that cannot be bounded in f32 are candidates of every query. More than this many would be slower than the CPU.
const MAX_EXACT: usize = 4_096;

/// A run of rows in device memory.
pub(super) struct Segment {
    /// First row of the corpus.
    pub(super) first: u32,
    /// Number of rows now in it.
    pub(super) rows: u32,
    pub(super) values: DeviceBuffer<u32>,
    pub(super) terms: DeviceBuffer<[f32; 4]>,
}

/// What every segment of a corpus has in common.
#[derive(Debug, Clone, Copy)]
pub(super) struct Layout {
    pub(super) metric: Metric,
    pub(super) storage: Storage,
    pub(super) dim: usize,
    /// vec4s of a row.
    pub(super) quads: usize,
    /// Rows of a segment at most.
    pub(super) rows: usize,
}

impl Layout {
    pub(super) fn new(device: &Device, dim: usize, metric: Metric, storage: Storage) -> Result<Self, Error> {
        let quads = dim.div_ceil(4);
        let row_bytes = quads as u64 * storage.quad_bytes();
        // A row's terms are 16 bytes in a buffer of their own.
        let widest = row_bytes.max(16);
        let most = device.binding_bytes();
        if widest > most {
            return Err(DeviceError::Limit { what: "bytes of one row".into(), requested: widest, max: most }.into());
        }
        let rows = usize::try_from((device.segment_bytes() / widest).max(1)).unwrap_or(usize::MAX);
        // Kernels index vec4s by u32.
        Ok(Self { metric, storage, dim, quads, rows: rows.min((u32::MAX as usize) / quads.max(1)) })
    }

    /// Bytes of the corpus on the device.
    pub(super) fn bytes(&self, rows: usize) -> u64 {
        rows as u64 * (self.quads as u64 * self.storage.quad_bytes() + 16)
    }

    fn words(&self) -> usize {
        self.quads * if self.storage == Storage::F32 { 4 } else { 2 }
    }

    pub(super) fn allocate(&self, device: &Device, rows: usize) -> Result<Segment, Error> {
        Ok(Segment {
            first: 0,
            rows: 0,
            values: device.buffer("corpus segment", rows * self.words())?,
            terms: device.buffer("row terms", rows)?,
        })
    }
}

/// Rows that the device leaves to the host.
#[derive(Default)]
pub(super) struct Leftover {
    /// Finite, but beyond f32 arithmetic or f16 storage: candidates of every query. Ascending.
    pub(super) exact: Vec<u32>,
    /// With a NaN or an infinity: never in an answer. Ascending.
    pub(super) bad: Vec<u32>,
    pub(super) zero_rows: u64,
}

/// Copies rows into segments.
pub(super) struct Filler<'a> {
    pub(super) device: &'a Device,
    pub(super) layout: Layout,
    pub(super) level: Level,
    pub(super) skip_bad: bool,
}

impl Filler<'_> {
    /// Fills a segment with `rows` rows of the corpus from row `first` on.
    ///
    /// # Errors
    /// [`Error::NotFinite`] unless such rows are skipped; what reading and the device report.
    pub(super) fn fill(
        &self,
        segment: &mut Segment,
        corpus: &dyn Rows,
        first: usize,
        rows: usize,
        leftover: &mut Leftover,
    ) -> Result<(), Error> {
        let Layout { dim, quads, metric, .. } = self.layout;
        let bounds = Bounds::for_device(metric, dim);
        let block_rows = (BLOCK_BYTES / (4 * dim)).max(1);
        let mut scratch = Vec::new();
        let mut digest = Digest::default();
        let mut packed = Packed::default();
        let mut commands = self.device.commands("corpus upload");
        let mut done = 0;
        while done < rows {
            let count = block_rows.min(rows - done);
            let row = first + done;
            let block = corpus.block(row, count, &mut scratch)?;
            digest.clear();
            let mut unusual = Unusual::default();
            let found = &mut digest;
            crate::dispatch!(self.level, simd => tile::digest::<_, false>(simd, &bounds, block, dim, row, found, &mut unusual));
            leftover.zero_rows += unusual.zero_rows;
            packed.terms.clear();
            let mut narrow = (self.layout.storage == Storage::F16).then(|| packed.halves(block, dim, quads));
            for (at, (terms, values)) in digest.terms.iter().zip(block.chunks_exact(dim)).enumerate() {
                let lost = match &mut narrow {
                    Some(lost) => lost[at],
                    None => 0.0,
                };
                let number = super::super::simd::as_row(row + at);
                packed.terms.push(match device_terms(*terms, lost, metric) {
                    Some(terms) => terms,
                    None => {
                        if let Some(column) = values.iter().position(|value| !value.is_finite()) {
                            if !self.skip_bad {
                                let value = values[column];
                                return Err(Error::NotFinite { what: corpus.name(), row: row + at, column, value });
                            }
                            leftover.bad.push(number);
                        } else {
                            leftover.exact.push(number);
                        }
                        NEVER
                    }
                });
            }
            if leftover.exact.len() > MAX_EXACT {
                return Err(too_unusual("rows beyond f32 arithmetic", leftover.exact.len(), MAX_EXACT));
            }
            commands.upload(&segment.terms, done, &packed.terms)?;
            let target = done * self.layout.words();
            match self.layout.storage {
                Storage::F32 if dim == 4 * quads => {
                    commands.upload(&segment.values, target, bytemuck::cast_slice(block))?;
                }
                Storage::F32 => commands.upload(&segment.values, target, packed.padded(block, dim, quads))?,
                Storage::F16 => commands.upload(&segment.values, target, bytemuck::cast_slice(&packed.halves))?,
            }
            done += count;
        }
        commands.submit()?;
        segment.first = super::super::simd::as_row(first);
        segment.rows = super::super::simd::as_row(rows);
        Ok(())
    }
}

/// A row that the device never offers: its error is negative.
const NEVER: [f32; 4] = [0.0, 0.0, -1.0, 0.0];

/// The terms as the device takes them, `lost` being the norm of what storage changed in the row. `None` for a row that
/// the device cannot judge.
fn device_terms(terms: RowTerms, lost: f32, metric: Metric) -> Option<[f32; 4]> {
    let RowTerms { scale, bias, error, slack, .. } = terms;
    if !(bias.is_finite() && lost.is_finite()) {
        return None;
    }
    // |q . (x - stored)| <= |q| lost, and gamma |stored| <= gamma (|x| + lost); for cosine in units of the row's norm.
    let lost = if metric == Metric::Cosine { lost * scale } else { lost };
    let error = error + lost * 1.01;
    (error.is_finite() && error < 1e30).then_some([scale, bias, error, slack])
}

#[derive(Default)]
struct Packed {
    terms: Vec<[f32; 4]>,
    words: Vec<u32>,
    halves: Vec<f16>,
    lost: Vec<f32>,
}

impl Packed {
    /// f32 rows with zeros up to whole vec4s.
    fn padded(&mut self, block: &[f32], dim: usize, quads: usize) -> &[u32] {
        self.words.clear();
        self.words.resize(block.len() / dim * 4 * quads, 0);
        for (words, values) in self.words.chunks_exact_mut(4 * quads).zip(block.chunks_exact(dim)) {
            words[..dim].copy_from_slice(bytemuck::cast_slice(values));
        }
        &self.words
    }

    /// Fills `halves` and returns, for each row, the norm of what the device may see differently: what rounding changed,
    /// and all of the subnormal halves, which a device may flush. Infinite where a value is too large for f16.
    fn halves(&mut self, block: &[f32], dim: usize, quads: usize) -> Vec<f32> {
        self.halves.clear();
        self.halves.resize(block.len() / dim * 4 * quads, f16::ZERO);
        self.lost.resize(dim, 0.0);
        let wide = &mut self.lost;
        let rows = self.halves.chunks_exact_mut(4 * quads).zip(block.chunks_exact(dim));
        rows.map(|(halves, values)| {
            let halves = &mut halves[..dim];
            halves.convert_from_f32_slice(values);
            halves.convert_to_f32_slice(wide);
            let sum: f64 = values
                .iter()
                .zip(wide.iter())
                .map(|(&value, &stored)| {
                    let changed = f64::from(value) - f64::from(stored);
                    let flushed = if stored.abs() < f16::MIN_POSITIVE.to_f32() { f64::from(stored) } else { 0.0 };
                    let lost = changed.abs() + flushed.abs();
                    lost * lost
                })
                .sum();
            #[expect(clippy::cast_possible_truncation, reason = "raised by more than the rounding")]
            let lost = (sum.sqrt() * 1.000_001) as f32;
            lost
        })
        .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_f16_loses_is_rounding_and_subnormals() {
        let mut packed = Packed::default();
        let lost = packed.halves(&[1.0, 0.5, 1.0 + 1.0 / 4_096.0, 0.0, 3e-6, 0.0, 1e6, 0.0], 2, 1);
        assert_eq!(lost[0], 0.0);
        assert!((lost[1] - 1.0 / 4_096.0).abs() < 1e-6, "{}", lost[1]);
        assert!(lost[2] >= 2.9e-6 && lost[2] < 3.3e-6, "{}", lost[2]);
        assert_eq!(lost[3], f32::INFINITY);
        assert_eq!(packed.halves.len(), 16, "rows are padded to whole vec4s");
    }

    #[test]
    fn a_row_that_storage_overflows_is_left_to_the_host() {
        let usual = RowTerms { scale: 1.0, bias: 0.0, error: 1e-5, slack: 0.0, rounding: 0.0 };
        assert!(device_terms(usual, 0.0, Metric::Dot).is_some());
        assert_eq!(device_terms(usual, f32::INFINITY, Metric::Dot), None);
        assert_eq!(device_terms(RowTerms::NEVER, 0.0, Metric::L2), None);
        let [_, _, error, _] = device_terms(usual, 1e-3, Metric::Dot).unwrap();
        assert!(error > 1.01e-3 - 1e-6, "{error}");
    }
}
